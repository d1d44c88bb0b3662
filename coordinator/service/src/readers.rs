//! Laws of all readers over runs of every course: after each event, what readers show is the truth.

use std::sync::Arc;
use std::time::Duration;

use fleet::{FleetEvent, Stage, Waiting};
use grammaton::num::random::{below, stream};
use parking_lot::Mutex;
use rand_pcg::Pcg64Mcg;
use scheduler::Cause;
use training::events::{All, Observer, RunEvent};
use training::metrics::{CheckpointStatus, Phase, RoundMetrics, Start};
use training::progress::Progress;
use training::snapshot::Snapshot;

use crate::status::posting::Posting;
use crate::status::{JobStatus, RunStatus, WAITING};
use crate::view::SharedView;

/// A run of random course, in an order that training can produce.
struct Course {
    random: Pcg64Mcg,
    events: Vec<RunEvent>,
    workers: usize,
}

impl Course {
    fn of(seed: u64) -> Vec<RunEvent> {
        let (random, events) = (stream(seed, 0, 0), Vec::new());
        let mut course = Course { random, events, workers: 0 };
        let is_stopped = course.train().is_none();
        course.events.push(if is_stopped {
            RunEvent::Stopped("stopped".to_owned())
        } else {
            RunEvent::Finished(Box::default())
        });
        course.events
    }

    fn one_in(&mut self, n: usize) -> bool {
        below(n, &mut self.random) == 0
    }

    /// Trains; `None` if the run is stopped.
    fn train(&mut self) -> Option<()> {
        let (runs, max_rounds) = (1 + below(3, &mut self.random), 1 + below(6, &mut self.random));
        self.events.push(RunEvent::Started(Start { runs, max_rounds, ..Start::default() }));
        self.events.push(RunEvent::PhaseBegun(Phase::Preprocess));
        let mut done = 0;
        if self.one_in(3) {
            // The job file may have been given fewer rounds since.
            done = below(max_rounds + 2, &mut self.random);
            self.events.push(RunEvent::Resumed { checkpoint: "000001.ckpt".to_owned(), round: done });
        }
        self.map(Stage::Candidates)?;
        let earlier = (1..=done).flat_map(|round| (1..=runs).map(move |run| (run, round)));
        let earlier = earlier.map(|(run, round)| RoundMetrics { run, round, ..RoundMetrics::default() });
        self.events.push(RunEvent::Prepared { earlier: earlier.collect() });
        self.events.push(RunEvent::Notice("skipped a line".to_owned()));
        self.events.push(RunEvent::PhaseBegun(Phase::Rounds));
        let mut active: Vec<usize> = (1..=runs).collect();
        for round in done + 1..=max_rounds {
            self.map(Stage::Round { run: 1, round })?;
            for &run in &active {
                let seconds = below(1000, &mut self.random) as f64 / 100.0;
                let metrics = RoundMetrics { run, round, seconds, ..RoundMetrics::default() };
                self.events.push(RunEvent::RoundFinished(Box::new(metrics)));
                let snapshot = Snapshot { run, round, ..Snapshot::default() };
                self.events.push(RunEvent::Scored(Box::new(snapshot)));
            }
            if self.one_in(2) {
                let is_written = !self.one_in(4);
                self.events.push(if is_written {
                    RunEvent::Checkpointed(CheckpointStatus::default())
                } else {
                    RunEvent::CheckpointFailed("no room".to_owned())
                });
            }
            active.retain(|_| below(5, &mut self.random) > 0);
            if active.is_empty() {
                break;
            }
        }
        self.events.push(RunEvent::PhaseBegun(Phase::Decode));
        self.map(Stage::Decode)
    }

    /// A batch, before and in which workers come and go. Nothing if the job is cancelled meanwhile.
    fn map(&mut self, stage: Stage) -> Option<()> {
        let mut waits = false;
        for at in 0.. {
            let name = format!("worker\u{1b}{at}");
            match below(4, &mut self.random) {
                0 => {
                    self.workers += 1;
                    let workers = self.workers;
                    self.fleet(FleetEvent::WorkerJoined { name, slots: 2, workers });
                }
                1 if self.workers > 0 => {
                    self.workers -= 1;
                    let (cause, workers) = (Cause::Disconnected("cut".into()), self.workers);
                    self.fleet(FleetEvent::WorkerLost { name, cause, workers });
                }
                2 => self.fleet(FleetEvent::Missed { events: at }),
                _ => {}
            }
            if waits != (self.workers == 0) {
                waits = !waits;
                if waits {
                    self.fleet(FleetEvent::Waiting(Waiting { stage, workers: 0, wanted: 1 }))
                } else {
                    self.fleet(FleetEvent::WaitingOver { waited: Duration::from_secs(1) })
                }
            }
            let is_cancelled = self.one_in(60);
            if waits && is_cancelled {
                self.fleet(FleetEvent::WaitingOver { waited: Duration::from_secs(1) });
            }
            if is_cancelled {
                return None;
            }
            if !waits && self.one_in(3) {
                return Some(());
            }
        }
        None
    }

    fn fleet(&mut self, event: FleetEvent) {
        self.events.push(RunEvent::Fleet(event));
    }
}

/// The facts after some events.
#[derive(Default)]
struct Truth {
    phase: Option<Phase>,
    waiting: Option<Waiting>,
    /// Run and round that ended last, in this process.
    last: Option<(usize, usize)>,
    n_rounds: usize,
    written: u64,
    failed: u64,
    is_over: bool,
}

impl Truth {
    fn on(&mut self, event: &RunEvent) {
        match event {
            RunEvent::Prepared { earlier } => self.n_rounds = earlier.len(),
            RunEvent::PhaseBegun(phase) => self.phase = Some(*phase),
            RunEvent::RoundFinished(round) => {
                self.last = Some((round.run, round.round));
                self.n_rounds += 1;
            }
            RunEvent::Checkpointed(_) => self.written += 1,
            RunEvent::CheckpointFailed(_) => self.failed += 1,
            RunEvent::Fleet(FleetEvent::Waiting(waiting)) => self.waiting = Some(*waiting),
            RunEvent::Fleet(FleetEvent::WaitingOver { .. }) => self.waiting = None,
            RunEvent::Stopped(_) | RunEvent::Finished(_) => self.is_over = true,
            _ => {}
        }
    }

    /// Whether there is something to estimate the time left by.
    fn has_time_left(&self) -> bool {
        self.phase == Some(Phase::Rounds) && self.last.is_some() && self.waiting.is_none() && !self.is_over
    }

    fn check(&self, status: &JobStatus) {
        assert_eq!((status.phase, status.waiting), (self.phase, self.waiting));
        assert_eq!(status.activity() == WAITING, self.waiting.is_some());
        assert_eq!((status.run, status.round), self.last.unwrap_or_default());
        assert_eq!((status.written_checkpoints, status.failed_checkpoints), (self.written, self.failed));
        assert_eq!(status.seconds_left.is_some(), self.has_time_left());
        assert!(status.seconds_left.is_none_or(|left| left.is_finite() && left >= 0.0));
    }
}

#[test]
fn readers_show_the_truth_after_every_event() {
    let (mut n_waits, mut n_lefts, mut n_stopped) = (0, 0, 0);
    for seed in 0..500 {
        let run_status = RunStatus::default();
        let (mut posting, mut view) = (Posting::new("out".into(), run_status.clone()), SharedView::default());
        let mut truth = Truth::default();
        let said: Arc<Mutex<Vec<String>>> = Arc::default();
        let put = said.clone();
        let mut lines = Progress::lines(move |line| put.lock().push(line.to_owned()));
        let seen = view.clone();
        for event in Course::of(seed) {
            truth.on(&event);
            All(vec![&mut posting, &mut view, &mut lines]).on(&event).unwrap();
            n_stopped += usize::from(matches!(event, RunEvent::Stopped(_)));
            let status = run_status.read();
            truth.check(&status);
            n_waits += usize::from(status.waiting.is_some());
            n_lefts += usize::from(status.seconds_left.is_some());
            let said = said.lock();
            let waits = said.iter().rev().find_map(|line| {
                let over = line.starts_with("waited for workers").then_some(false);
                line.starts_with("waiting for workers").then_some(true).or(over)
            });
            assert_eq!(waits.unwrap_or(false), truth.waiting.is_some(), "seed {seed}: {said:?}");
            assert!(said.iter().all(|line| !line.contains(char::is_control)), "{said:?}");
            assert_eq!(seen.read().rounds.len(), truth.n_rounds, "seed {seed}: {event:?}");
        }
    }
    assert!(n_waits > 500 && n_lefts > 500 && n_stopped > 20, "{n_waits}, {n_lefts}, {n_stopped}");
}
