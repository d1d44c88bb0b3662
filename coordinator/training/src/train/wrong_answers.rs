//! Laws of jobs whose workers give wrong answers: once these are found, the job has the result that it has without them, to the last bit, for
//! every model and method, wherever they are found.

use std::cell::Cell;
use std::path::Path;
use std::sync::Arc;

use fleet::{FleetError, Inline, Map, MapReport, Mismatch, Stage, Tasks};
use grammaton::work::lease::TaskIndex;
use grammaton::work::task::Answer;

use super::group::Inputs;
use super::laws::{all, came_to_with, folder, job, parse};
use super::train;
use crate::events::{All, Observer, RunEvent};
use crate::job::Job;
use crate::metrics::RoundMetrics;
use crate::train::checkpoint::Checkpoints;

/// A fleet of which an audit finds a wrong answer in some batches, the last one of the batch.
struct Audited {
    /// The batch of every attempt in which it does; later attempts get further.
    fails_at: usize,
    batches: Cell<usize>,
    failures: Cell<usize>,
}

impl Map for Audited {
    fn map(
        &self,
        stage: Stage,
        tasks: Arc<dyn Tasks>,
        each: &mut dyn FnMut(usize, Answer),
    ) -> Result<MapReport, FleetError> {
        self.batches.set(self.batches.get() + 1);
        let last = tasks.len() - 1;
        let fails =
            self.batches.get() == self.fails_at * (self.failures.get() + 1) && self.failures.get() < 3;
        let report = Inline::default().map(stage, tasks, &mut |at, answer| {
            if !(fails && at == last) {
                each(at, answer)
            }
        })?;
        if fails {
            self.failures.set(self.failures.get() + 1);
            let (task, wrong) = (TaskIndex(last as u32), vec!["bob".to_owned()]);
            let (right, expelled) = (Some("alice".to_owned()), vec![self.failures.get() as u64]);
            let mismatch = Mismatch { task, wrong, reported: vec![], expelled, right, is_mended: true };
            return Err(FleetError::Audit { stage, mismatch: Box::new(mismatch) });
        }
        Ok(report)
    }
}

/// A fleet whose counts are wrong in one round, unless every task is audited.
struct Lying {
    round: usize,
    is_audited: Cell<bool>,
    lies: Cell<usize>,
}

impl Map for Lying {
    fn map(
        &self,
        stage: Stage,
        tasks: Arc<dyn Tasks>,
        each: &mut dyn FnMut(usize, Answer),
    ) -> Result<MapReport, FleetError> {
        let is_wrong = stage.place().is_some_and(|(_, round)| round == self.round) && !self.is_audited.get();
        Inline::default().map(stage, tasks, &mut |at, mut answer| {
            if let Answer::Expectation(expectation) = &mut answer
                && is_wrong
            {
                self.lies.set(self.lies.get() + 1);
                expectation.counts.iter_mut().for_each(|count| *count *= 1e-3);
                expectation.log_z *= 2.0;
            }
            each(at, answer);
        })
    }

    fn audit_all(&self) -> bool {
        !self.is_audited.replace(true)
    }
}

/// A fleet on which a job is cancelled in some batch.
struct Cancelling {
    batches_left: Cell<usize>,
}

impl Map for Cancelling {
    fn map(
        &self,
        stage: Stage,
        tasks: Arc<dyn Tasks>,
        each: &mut dyn FnMut(usize, Answer),
    ) -> Result<MapReport, FleetError> {
        match self.batches_left.get().checked_sub(1) {
            None => Err(FleetError::Cancelled),
            Some(left) => {
                self.batches_left.set(left);
                Inline::default().map(stage, tasks, each)
            }
        }
    }
}

fn came_to(job: &Job, fleet: &dyn Map, out: &Path) -> Result<String, String> {
    let mut job = job.clone();
    (job.output.dir, job.output.keep_checkpoints, job.output.checkpoint_seconds) = (out.to_owned(), 2, 0.0);
    let message = |error: anyhow::Error| format!("{error:#}");
    let inputs = Inputs::load(&job).map_err(message)?;
    let mut checkpoints = Checkpoints::open(&job.output, false).map_err(message)?;
    train(&job, &inputs, fleet, &mut checkpoints, &mut All(Vec::new()))
        .map(|outcome| came_to_with(&outcome))
        .map_err(message)
}

/// Keeps the rounds of a run, and ends it as a kill would, after some checkpoint.
struct Killed {
    checkpoints_left: usize,
    rounds: Vec<(usize, usize, Option<f64>, usize, usize)>,
}

impl Observer for Killed {
    fn on(&mut self, event: &RunEvent) -> anyhow::Result<()> {
        let counted =
            |round: &RoundMetrics| (round.run, round.round, round.bound, round.dropped, round.restored);
        match event {
            RunEvent::Prepared { earlier } => self.rounds = earlier.iter().map(counted).collect(),
            RunEvent::RoundFinished(round) => self.rounds.push(counted(round)),
            RunEvent::Checkpointed(_) => {
                self.checkpoints_left -= 1;
                anyhow::ensure!(self.checkpoints_left > 0, "killed");
            }
            _ => {}
        }
        Ok(())
    }
}

#[test]
#[ignore = "slow"]
fn rounds_after_a_kill_or_a_cancellation_at_any_moment_are_those_of_an_undisturbed_run() {
    let dir = folder();
    let mut restored = 0;
    for (model, estimator) in all() {
        // Parameters of zero that a later round has to restore, where the method reads these keys.
        let sparse = ["alpha=0.01", "start=jitter", "anneal_from=2", "anneal_rounds=3"];
        let sparse = sparse.map(|set| format!("inference.{set}"));
        let text = job(model, estimator);
        let parsed = parse(&text, dir.path(), &sparse).or_else(|_| parse(&text, dir.path(), &[]));
        let mut job = parsed.unwrap();
        (job.output.keep_checkpoints, job.output.checkpoint_seconds) = (2, 0.0);
        let inputs = Inputs::load(&job).unwrap();
        let mut train = |kill_at: usize, cancel_at: usize, resume: bool, out: &Path| {
            job.output.dir = out.to_owned();
            let mut checkpoints = Checkpoints::open(&job.output, resume).unwrap();
            let mut observer = Killed { checkpoints_left: kill_at, rounds: Vec::new() };
            let fleet = Cancelling { batches_left: Cell::new(cancel_at) };
            let result = train(&job, &inputs, &fleet, &mut checkpoints, &mut observer);
            (result.is_ok(), observer.rounds)
        };
        const NEVER: usize = usize::MAX;
        let (_, undisturbed) = train(NEVER, NEVER, false, tempfile::tempdir().unwrap().path());
        restored += undisturbed.iter().map(|round| round.4).sum::<usize>();
        for is_killed in [true, false] {
            for at in 1..100 {
                let out = tempfile::tempdir().unwrap();
                let (kill_at, cancel_at) = if is_killed { (at, NEVER) } else { (NEVER, at) };
                if train(kill_at, cancel_at, false, out.path()).0 {
                    break;
                }
                let (_, rounds) = train(NEVER, NEVER, true, out.path());
                assert_eq!(rounds, undisturbed, "{model:?} {estimator:?}, {at}, killed: {is_killed}");
            }
        }
    }
    assert!(restored > 0);
}

#[test]
#[ignore = "slow"]
fn answers_that_an_audit_finds_to_be_wrong_change_no_result() {
    let dir = folder();
    let mut found = 0;
    for (model, estimator) in all() {
        let job = parse(&job(model, estimator), dir.path(), &[]).unwrap();
        let undisturbed = came_to(&job, &Inline::default(), &dir.path().join("undisturbed")).unwrap();
        for fails_at in 1..=6 {
            let fleet = Audited { fails_at, batches: Cell::new(0), failures: Cell::new(0) };
            let out = tempfile::tempdir().unwrap();
            assert_eq!(
                came_to(&job, &fleet, out.path()).unwrap(),
                undisturbed,
                "{model:?} {estimator:?} {fails_at}"
            );
            found += fleet.failures.get();
        }
    }
    assert!(found > 100, "{found} wrong answers");
}

#[test]
fn a_bound_that_falls_by_wrong_counts_is_asked_again_of_other_workers() {
    let dir = folder();
    let text = "[model]\ngrammar = \"auto:unigram\"\n[corpus]\npath = \"words.txt\"\n[inference]\nmax_rounds = 8\ntolerance = 0\n";
    let job = parse(text, dir.path(), &[]).unwrap();
    let undisturbed = came_to(&job, &Inline::default(), &dir.path().join("undisturbed")).unwrap();
    let mut found = 0;
    for round in 2..=8 {
        let fleet = Lying { round, is_audited: Cell::new(false), lies: Cell::new(0) };
        let out = tempfile::tempdir().unwrap();
        let result = came_to(&job, &fleet, out.path()).unwrap();
        assert!(fleet.lies.get() > 0);
        // After strings were dropped a lower bound has them restored instead, so that wrong counts are not noticed.
        if fleet.is_audited.get() {
            found += 1;
            assert_eq!(result, undisturbed, "round {round}");
        }
    }
    assert!(found >= 4, "{found} of 7");
}
