//! Writes checkpoints beside training.
//!
//! In: the progress of a job between two rounds. Out: a file in the store, and an event. The training thread
//! passes a snapshot and continues with the next round; a thread of the writer serialises, compresses and stores it.
//!
//! Invariants:
//!
//! - One snapshot at most is being written. Another checkpoint is not due until then; a job that wants one after every round
//!   waits for the writer instead.
//! - The observer is called on the training thread, which looks after every round whether a checkpoint is written.
//! - After [`CheckpointWriter::wait`], and after the writer is dropped, no snapshot is being written.
//! - A checkpoint that cannot be written is reported and counted, and does not end the job: the next one may be written.
//! - A checkpoint is in the store before an older one is removed, so a killed process leaves one to resume from.

use std::borrow::Cow;
use std::sync::Arc;
use std::thread::{self, JoinHandle};

use anyhow::{Context, Result, anyhow};
use basics::faults::Shared;

use super::stopped::Resumable;
use crate::events::{Observer, RunEvent};
use crate::metrics::CheckpointStatus;
use crate::train::checkpoint::{Checkpoint, Checkpoints, Origin, Progress, Written};
use grammaton::prepare::Chosen;

/// Writes the checkpoints of one job.
pub struct CheckpointWriter<'a> {
    checkpoints: &'a mut Checkpoints,
    /// The common part of all checkpoints of the job.
    job: Arc<(Origin, Vec<Chosen>)>,
    /// The thread that writes a snapshot, if there is one.
    in_flight: Option<JoinHandle<Written>>,
    /// Outcome of the last checkpoint.
    last: Resumable,
    failed: usize,
}

impl<'a> CheckpointWriter<'a> {
    /// A writer for the job of that origin, with the strings that were chosen for it, by group of points.
    pub fn new(
        checkpoints: &'a mut Checkpoints,
        origin: Origin,
        chosen: Vec<Chosen>,
    ) -> CheckpointWriter<'a> {
        let job = Arc::new((origin, chosen));
        CheckpointWriter { checkpoints, job, in_flight: None, last: Resumable::Nothing, failed: 0 }
    }

    /// Says why the job cannot go on from its checkpoint.
    pub fn refusal(&self, problem: &str) -> anyhow::Error {
        let name = self.checkpoints.resumed().unwrap_or_default();
        anyhow!(
            "{name}: cannot go on from this checkpoint: {problem}; remove it, or start over without --resume"
        )
    }

    /// Checkpoints that could not be written.
    pub fn n_failed(&self) -> usize {
        self.failed
    }

    /// Begins to write the progress that `snapshot` takes, if it is time for a checkpoint. Tells the observer of one that has been
    /// written.
    pub fn advance(
        &mut self,
        snapshot: impl FnOnce() -> Progress,
        observer: &mut dyn Observer,
    ) -> Result<()> {
        if self.in_flight.as_ref().is_some_and(JoinHandle::is_finished) {
            self.wait(observer)?;
        }
        let has_turn = self.in_flight.is_none() || self.checkpoints.are_after_every_round();
        if has_turn && self.checkpoints.are_due() {
            self.begin(snapshot, observer)?;
        }
        Ok(())
    }

    /// Writes a checkpoint now, and says whether it is kept.
    pub fn keep(
        &mut self,
        snapshot: impl FnOnce() -> Progress,
        observer: &mut dyn Observer,
    ) -> Result<Resumable> {
        if !self.checkpoints.are_kept() {
            return Ok(Resumable::Off);
        }
        self.begin(snapshot, observer)?;
        self.wait(observer)?;
        Ok(self.last.clone())
    }

    /// Waits until no snapshot is being written, and tells the observer.
    pub fn wait(&mut self, observer: &mut dyn Observer) -> Result<()> {
        let Some(thread) = self.in_flight.take() else { return Ok(()) };
        let written = thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        let status = self.checkpoints.written(written);
        self.tell(status, observer)
    }

    /// Hands over a snapshot, after the one before it is written.
    fn begin(&mut self, snapshot: impl FnOnce() -> Progress, observer: &mut dyn Observer) -> Result<()> {
        self.wait(observer)?;
        let Some(file) = self.checkpoints.next_file() else { return Ok(()) };
        let (job, progress) = (self.job.clone(), snapshot());
        let faults = Shared::here();
        let write = move || {
            let (origin, chosen) = (Cow::Borrowed(&job.0), Cow::Borrowed(&job.1));
            faults.within(|| file.write(&Checkpoint { origin, chosen, progress: Cow::Owned(progress) }))
        };
        match thread::Builder::new().name("checkpoint".into()).spawn(write) {
            Ok(thread) => {
                self.in_flight = Some(thread);
                Ok(())
            }
            Err(error) => {
                let failed = Err(error).context("cannot start a thread that writes checkpoints");
                self.tell(failed, observer)
            }
        }
    }

    fn tell(&mut self, status: Result<CheckpointStatus>, observer: &mut dyn Observer) -> Result<()> {
        self.failed += usize::from(status.is_err());
        self.last = match &status {
            Ok(_) => Resumable::Checkpoint,
            Err(error) => Resumable::Failed(format!("{error:#}")),
        };
        match &status {
            Ok(status) => observer.on(&RunEvent::Checkpointed(*status)),
            Err(error) => observer.on(&RunEvent::CheckpointFailed(format!("{error:#}"))),
        }
    }
}

impl Drop for CheckpointWriter<'_> {
    /// A job that ends with an error keeps the checkpoint that is being written.
    fn drop(&mut self) {
        if let Some(thread) = self.in_flight.take() {
            // Its panic was printed when it happened.
            let _ = thread.join();
        }
    }
}

#[cfg(test)]
mod tests {
    use basics::faults;
    use std::path::Path;
    use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};
    use std::time::Duration;
    use std::{fs, io};

    use fleet::Inline;
    use parking_lot::Mutex;

    use super::*;
    use crate::job::{Job, OutputTable};
    use crate::model::parameters_sha256;
    use crate::train::checkpoint::tests::{checkpoint, files, origin, output, resumed};
    use crate::train::group::Inputs;
    use crate::train::train;

    /// An observer that records events, on the thread that made it.
    struct Recorder {
        thread: thread::ThreadId,
        /// By checkpoint: the round, or the error.
        checkpoints: Vec<Result<usize, String>>,
        /// The round in which storage begins to answer.
        opens_at: usize,
        storage: Arc<Storage>,
    }

    impl Recorder {
        fn new(storage: Arc<Storage>) -> Recorder {
            Recorder { thread: thread::current().id(), checkpoints: Vec::new(), opens_at: 0, storage }
        }
    }

    impl Observer for Recorder {
        fn on(&mut self, event: &RunEvent) -> Result<()> {
            assert_eq!(thread::current().id(), self.thread);
            match event {
                RunEvent::RoundFinished(round) if round.round == self.opens_at => {
                    self.storage.is_closed.store(false, SeqCst);
                }
                RunEvent::Checkpointed(status) => self.checkpoints.push(Ok(status.round)),
                RunEvent::CheckpointFailed(error) => self.checkpoints.push(Err(error.clone())),
                _ => {}
            }
            Ok(())
        }
    }

    /// Storage that can be slow, and fail.
    #[derive(Default)]
    struct Storage {
        /// Whether a step waits until it is open.
        is_closed: AtomicBool,
        fails: AtomicBool,
    }

    impl Storage {
        fn new(is_closed: bool) -> Arc<Storage> {
            Arc::new(Storage { is_closed: is_closed.into(), ..Storage::default() })
        }

        /// Opens it a while later.
        fn opens_soon(self: &Arc<Storage>) {
            let storage = self.clone();
            thread::spawn(move || {
                thread::sleep(Duration::from_millis(50));
                storage.is_closed.store(false, SeqCst);
            });
        }

        /// Does `work`, in which storage is this one, and which may not use it on this thread.
        fn within<T>(self: &Arc<Storage>, work: impl FnOnce(&mut Recorder) -> T) -> T {
            let (storage, thread) = (self.clone(), thread::current().id());
            let step = move || {
                assert_ne!(thread::current().id(), thread, "the training thread waits for storage");
                let is_open = (0..20_000).any(|_| {
                    let is_closed = storage.is_closed.load(SeqCst);
                    is_closed.then(|| thread::sleep(Duration::from_millis(1)));
                    !is_closed
                });
                if is_open && !storage.fails.load(SeqCst) { Ok(()) } else { Err(io::Error::other("a fault")) }
            };
            let mut recorder = Recorder::new(self.clone());
            faults::inject(step, || work(&mut recorder))
        }
    }

    /// Checkpoints in `dir`, of which one is due `seconds` after another.
    fn checkpoints(dir: &Path, seconds: f64) -> Checkpoints {
        Checkpoints::open(&OutputTable { checkpoint_seconds: seconds, ..output(dir) }, false).unwrap()
    }

    fn writer(checkpoints: &mut Checkpoints) -> CheckpointWriter<'_> {
        let job = checkpoint(1, -1.0);
        CheckpointWriter::new(checkpoints, job.origin.into_owned(), job.chosen.into_owned())
    }

    fn progress(rounds: usize) -> Progress {
        checkpoint(rounds, -(rounds as f64)).progress.into_owned()
    }

    fn read(dir: &Path, name: &str) -> Vec<u8> {
        fs::read(dir.join("checkpoints").join(name)).unwrap()
    }

    /// Always due.
    const ALWAYS: f64 = 1e-9;

    #[test]
    fn one_snapshot_is_written_at_a_time_and_the_bytes_are_its_checkpoint() {
        let dir = tempfile::tempdir().unwrap();
        let mut checkpoints = checkpoints(dir.path(), ALWAYS);
        Storage::new(true).within(|recorder| {
            let mut writer = writer(&mut checkpoints);
            writer.advance(|| progress(1), recorder).unwrap();
            writer.advance(|| panic!("no snapshot is taken while one is being written"), recorder).unwrap();
            assert!(recorder.checkpoints.is_empty());
            recorder.storage.opens_soon();
            writer.wait(recorder).unwrap();
            assert_eq!(recorder.checkpoints, [Ok(1)]);
            writer.advance(|| progress(3), recorder).unwrap();
            writer.wait(recorder).unwrap();
            assert_eq!((&recorder.checkpoints[..], writer.n_failed()), (&[Ok(1), Ok(3)][..], 0));
        });
        assert_eq!(files(dir.path()), ["000001.ckpt", "000002.ckpt"]);
        for (name, rounds) in [("000001.ckpt", 1), ("000002.ckpt", 3)] {
            let expected = checkpoint(rounds, -(rounds as f64)).to_bytes();
            assert!(read(dir.path(), name) == expected, "{name}");
        }
    }

    #[test]
    fn a_written_checkpoint_is_told_after_a_later_round() {
        let dir = tempfile::tempdir().unwrap();
        let mut checkpoints = checkpoints(dir.path(), 3600.0);
        Storage::new(false).within(|recorder| {
            let mut writer = writer(&mut checkpoints);
            writer.advance(|| panic!("none is due"), recorder).unwrap();
            writer.begin(|| progress(1), recorder).unwrap();
            while !writer.in_flight.as_ref().unwrap().is_finished() {
                thread::sleep(Duration::from_millis(1));
            }
            assert!(recorder.checkpoints.is_empty());
            writer.advance(|| panic!("none is due"), recorder).unwrap();
            assert_eq!(recorder.checkpoints, [Ok(1)]);
        });
    }

    #[test]
    fn checkpoints_may_follow_every_round() {
        let dir = tempfile::tempdir().unwrap();
        let mut checkpoints = checkpoints(dir.path(), 0.0);
        Storage::new(true).within(|recorder| {
            let mut writer = writer(&mut checkpoints);
            recorder.storage.opens_soon();
            (1..=5).for_each(|round| writer.advance(|| progress(round), recorder).unwrap());
            writer.wait(recorder).unwrap();
            assert_eq!(recorder.checkpoints, [1, 2, 3, 4, 5].map(Ok));
        });
        assert_eq!(files(dir.path()), ["000001.ckpt", "000004.ckpt", "000005.ckpt"], "the best and the last");
    }

    #[test]
    fn a_job_that_stops_or_ends_waits_for_what_is_being_written() {
        let dir = tempfile::tempdir().unwrap();
        let mut checkpoints = checkpoints(dir.path(), ALWAYS);
        let storage = Storage::new(true);
        storage.within(|recorder| {
            let mut writer = writer(&mut checkpoints);
            writer.advance(|| progress(1), recorder).unwrap();
            storage.opens_soon();
            assert_eq!(writer.keep(|| progress(2), recorder).unwrap(), Resumable::Checkpoint);
            assert_eq!(recorder.checkpoints, [Ok(1), Ok(2)]);
            assert!(read(dir.path(), "000002.ckpt") == checkpoint(2, -2.0).to_bytes());
            storage.is_closed.store(true, SeqCst);
            writer.advance(|| progress(3), recorder).unwrap();
            storage.opens_soon();
        });
        let (found, _) = resumed(dir.path(), &origin(""));
        assert_eq!(found.unwrap().unwrap().place(), (1, 3), "the writer was dropped");
        let off = &mut Checkpoints::none();
        storage.within(|recorder| {
            assert_eq!(writer(off).keep(|| panic!("none is kept"), recorder).unwrap(), Resumable::Off)
        });
    }

    #[test]
    fn a_failed_checkpoint_is_reported_and_counted() {
        let dir = tempfile::tempdir().unwrap();
        let mut checkpoints = checkpoints(dir.path(), ALWAYS);
        let storage = Storage::new(false);
        storage.within(|recorder| {
            let mut writer = writer(&mut checkpoints);
            storage.fails.store(true, SeqCst);
            writer.advance(|| progress(1), recorder).unwrap();
            writer.wait(recorder).unwrap();
            let Resumable::Failed(reason) = writer.keep(|| progress(2), recorder).unwrap() else { panic!() };
            assert!(reason.contains("000001.ckpt: cannot be written: a fault"), "{reason}");
            assert_eq!((&recorder.checkpoints[1], writer.n_failed()), (&Err(reason), 2));
            storage.fails.store(false, SeqCst);
            assert_eq!(writer.keep(|| progress(3), recorder).unwrap(), Resumable::Checkpoint);
            assert_eq!((&recorder.checkpoints[2], writer.n_failed()), (&Ok(3), 2));
        });
        assert_eq!(files(dir.path()), ["000001.ckpt"], "a number counts once it is in the store");
    }

    /// Whenever a process is killed, before or after an operation of storage: the newest checkpoint that is there is intact, and not
    /// older than the last one that was reported.
    #[test]
    fn a_process_that_is_killed_leaves_a_checkpoint_to_go_on_from() {
        const ROUNDS: usize = 5;
        for n in 1.. {
            let dir = tempfile::tempdir().unwrap();
            let mut checkpoints = checkpoints(dir.path(), 0.0);
            let killed = Arc::new(Mutex::new(None));
            let (at, folder, n_steps) = (killed.clone(), dir.path().join("checkpoints"), AtomicUsize::new(0));
            let step = move || {
                let step = n_steps.fetch_add(1, SeqCst) + 1;
                if step == n {
                    *at.lock() = Some(copy_of(&folder));
                }
                if step >= n { Err(io::Error::other("a fault")) } else { Ok(()) }
            };
            let mut recorder = Recorder::new(Storage::new(false));
            faults::inject(step, || {
                let mut writer = writer(&mut checkpoints);
                (1..=ROUNDS).for_each(|round| writer.advance(|| progress(round), &mut recorder).unwrap());
                writer.wait(&mut recorder).unwrap();
            });
            let Some(killed) = killed.lock().take() else {
                assert!(n > 2 * ROUNDS + 4, "{n} steps");
                assert_eq!(recorder.checkpoints.len(), ROUNDS);
                break;
            };
            let last = recorder.checkpoints.iter().filter_map(|written| written.as_ref().ok()).max().copied();
            let (found, notices) = resumed(killed.path(), &origin(""));
            let found = found.unwrap().map(|checkpoint| checkpoint.place().1);
            assert!(found >= last && found.unwrap_or(1) <= ROUNDS, "step {n}: {found:?} after {last:?}");
            assert!(notices.is_empty(), "step {n}: {notices:?}");
        }
    }

    /// A folder whose checkpoints are those in `folder` now.
    fn copy_of(folder: &Path) -> tempfile::TempDir {
        let copy = tempfile::tempdir().unwrap();
        fs::create_dir_all(copy.path().join("checkpoints")).unwrap();
        for entry in fs::read_dir(folder).unwrap().map(|entry| entry.unwrap()) {
            fs::copy(entry.path(), copy.path().join("checkpoints").join(entry.file_name())).unwrap();
        }
        copy
    }

    #[test]
    fn rounds_go_on_while_a_checkpoint_is_written_and_results_do_not_change() {
        const OPENS_AT: usize = 5;
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join("words.txt"), "ab abc ab\nabc ba ab\nba ba\ncab ab\n").unwrap();
        let job = format!(
            "[model]\ngrammar = \"auto:unigram\"\n[corpus]\npath = \"words.txt\"\n\
             [inference]\nmax_rounds = 12\ntolerance = 0\n[output]\ndir = \"out\"\ncheckpoint_seconds = {ALWAYS}\n"
        );
        let job = Job::parse(&job, "job.toml", dir.path(), &[]).unwrap();
        let inputs = Inputs::load(&job).unwrap();
        let run = |checkpoints: &mut Checkpoints, recorder: &mut Recorder| {
            let outcome = train(&job, &inputs, &Inline::default(), checkpoints, recorder).unwrap();
            assert_eq!(outcome.result.rounds_run, 12);
            parameters_sha256(&outcome.model)
        };
        let without = Storage::new(false).within(|recorder| run(&mut Checkpoints::none(), recorder));
        let mut checkpoints = Checkpoints::open(&job.output, false).unwrap();
        let with = Storage::new(true).within(|recorder| {
            recorder.opens_at = OPENS_AT;
            let with = run(&mut checkpoints, recorder);
            // The first begins before the first round, and storage takes it once round `OPENS_AT` is over.
            let rounds: Vec<usize> =
                recorder.checkpoints.iter().map(|written| *written.as_ref().unwrap()).collect();
            assert_eq!(rounds.first(), Some(&0));
            assert!(rounds.iter().all(|&round| round == 0 || round >= OPENS_AT) && rounds.is_sorted());
            with
        });
        assert_eq!(with, without);
    }
}
