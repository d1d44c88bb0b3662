//! The estimate of the time that the rounds left take, the only one: bar, lines, status, page and metrics show it.
//!
//! In: the events of a run. Out: seconds, at most. All runs of a job go on together, and a round's seconds are its share of their batch, so the
//! rounds left of all runs take their sum times the seconds of one. A run that converges has fewer rounds than it may have.

use std::collections::BTreeMap;

use fleet::FleetEvent;

use crate::events::RunEvent;
use crate::metrics::Phase;

/// Rounds of each run that the mean remembers: it follows a fleet that grows, and one slow round does not move it much.
const REMEMBERED: usize = 16;

/// An estimate of the time left.
#[derive(Clone, Default, Debug)]
pub struct TimeLeft {
    max_rounds: usize,
    runs: usize,
    /// The last round of each run that has one.
    rounds: BTreeMap<usize, usize>,
    /// Mean wall seconds of a round, of those that this process ran lately; nothing before the first.
    mean: Option<f64>,
    /// Number of rounds in the mean, [`REMEMBERED`] of each run at most.
    n_rounds: usize,
    is_training: bool,
    /// Whether no worker can compute.
    is_waiting: bool,
    /// Seconds without workers in the batch under way: its rounds took longer for them, others do not.
    waited: f64,
    /// Rounds that may have taken longer and are yet to end: one of each run at most.
    n_longer: usize,
}

impl TimeLeft {
    /// Takes note of an event.
    pub fn on(&mut self, event: &RunEvent) {
        match event {
            RunEvent::Started(start) => {
                let (max_rounds, runs) = (start.max_rounds, start.runs);
                *self = TimeLeft { max_rounds, runs, ..TimeLeft::default() };
            }
            RunEvent::Prepared { earlier } => {
                self.rounds = earlier.iter().map(|round| (round.run, round.round)).collect();
            }
            RunEvent::PhaseBegun(phase) => (self.is_training, self.waited) = (*phase == Phase::Rounds, 0.0),
            RunEvent::RoundFinished(round) => {
                self.rounds.insert(round.run, round.round);
                self.n_rounds = (self.n_rounds + 1).min(REMEMBERED * self.runs.max(1));
                if self.n_longer == 0 {
                    self.waited = 0.0;
                }
                let waited = self.waited.min(round.seconds);
                self.waited -= waited;
                self.n_longer = self.n_longer.saturating_sub(1);
                let mean = self.mean.unwrap_or(0.0);
                self.mean = Some(mean + (round.seconds - waited - mean) / self.n_rounds as f64);
            }
            RunEvent::Fleet(FleetEvent::Waiting(_)) => self.is_waiting = true,
            RunEvent::Fleet(FleetEvent::WaitingOver { waited }) => {
                self.is_waiting = false;
                self.waited += waited.as_secs_f64();
                self.n_longer = self.runs;
            }
            RunEvent::Stopped(_) | RunEvent::Finished(_) => self.is_training = false,
            _ => {}
        }
    }

    /// Seconds that the rounds left take at most; nothing before this process has run one, after the last one, and while
    /// no worker can compute.
    pub fn seconds(&self) -> Option<f64> {
        let done: usize = self.rounds.values().map(|&round| round.min(self.max_rounds)).sum();
        let left = (self.max_rounds as f64 * self.runs as f64 - done as f64).max(0.0);
        self.mean.filter(|_| self.is_training && !self.is_waiting).map(|mean| mean * left)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::metrics::{RoundMetrics, Start};

    fn started(runs: usize, max_rounds: usize) -> TimeLeft {
        let mut left = TimeLeft::default();
        left.on(&RunEvent::Started(Start { runs, max_rounds, ..Start::default() }));
        left
    }

    fn round(run: usize, round: usize, seconds: f64) -> RoundMetrics {
        RoundMetrics { run, round, seconds, ..RoundMetrics::default() }
    }

    #[test]
    fn rounds_left_of_all_runs_take_their_mean_each() {
        let mut left = started(2, 10);
        assert_eq!(left.seconds(), None);
        left.on(&RunEvent::PhaseBegun(Phase::Rounds));
        assert_eq!(left.seconds(), None, "no round has ended");
        left.on(&RunEvent::RoundFinished(Box::new(round(1, 1, 3.0))));
        assert_eq!(left.seconds(), Some(19.0 * 3.0));
        left.on(&RunEvent::RoundFinished(Box::new(round(2, 1, 1.0))));
        assert_eq!(left.seconds(), Some(18.0 * 2.0));
    }

    #[test]
    fn rounds_of_an_earlier_process_are_done_and_not_measured() {
        let mut left = started(1, 10);
        left.on(&RunEvent::Prepared { earlier: vec![round(1, 1, 500.0), round(1, 2, 500.0)] });
        left.on(&RunEvent::PhaseBegun(Phase::Rounds));
        assert_eq!(left.seconds(), None);
        left.on(&RunEvent::RoundFinished(Box::new(round(1, 3, 2.0))));
        assert_eq!(left.seconds(), Some(14.0));
        // It goes on from a checkpoint with fewer rounds than it has.
        left.on(&RunEvent::RoundFinished(Box::new(round(1, 30, 2.0))));
        assert_eq!(left.seconds(), Some(0.0));
    }

    #[test]
    fn the_mean_follows_a_fleet_that_grows() {
        let mut left = started(1, 1000);
        left.on(&RunEvent::PhaseBegun(Phase::Rounds));
        (1..=100).for_each(|at| left.on(&RunEvent::RoundFinished(Box::new(round(1, at, 10.0)))));
        (101..=200).for_each(|at| left.on(&RunEvent::RoundFinished(Box::new(round(1, at, 1.0)))));
        let seconds = left.seconds().unwrap();
        assert!((800.0..850.0).contains(&seconds), "{seconds}");
    }

    #[test]
    fn time_without_workers_is_not_time_that_rounds_take() {
        let mut left = started(2, 10);
        let over = |seconds| FleetEvent::WaitingOver { waited: Duration::from_secs(seconds) };
        left.on(&RunEvent::Fleet(over(500)));
        left.on(&RunEvent::PhaseBegun(Phase::Rounds));
        left.on(&RunEvent::RoundFinished(Box::new(round(1, 1, 2.0))));
        left.on(&RunEvent::RoundFinished(Box::new(round(2, 1, 2.0))));
        // A batch of 604 seconds, in halves.
        left.on(&RunEvent::Fleet(over(600)));
        left.on(&RunEvent::RoundFinished(Box::new(round(1, 2, 302.0))));
        left.on(&RunEvent::RoundFinished(Box::new(round(2, 2, 302.0))));
        assert_eq!(left.seconds(), Some(16.0 * 2.0));
        // It waited while a round was measured, whose seconds had been taken before.
        left.on(&RunEvent::Fleet(over(600)));
        for at in 3..10 {
            left.on(&RunEvent::RoundFinished(Box::new(round(1, at, 2.0))));
            left.on(&RunEvent::RoundFinished(Box::new(round(2, at, 2.0))));
        }
        let seconds = left.seconds().unwrap();
        assert!((1.5..=2.0).contains(&(seconds / 2.0)), "{seconds}");
    }

    #[test]
    fn nothing_is_left_after_the_rounds() {
        for end in [
            RunEvent::PhaseBegun(Phase::Decode),
            RunEvent::Stopped("after round 1".to_owned()),
            RunEvent::Finished(Box::default()),
        ] {
            let mut left = started(1, 10);
            left.on(&RunEvent::PhaseBegun(Phase::Rounds));
            left.on(&RunEvent::RoundFinished(Box::new(round(1, 1, 1.0))));
            assert!(left.seconds().is_some());
            left.on(&end);
            assert_eq!(left.seconds(), None);
        }
    }
}
