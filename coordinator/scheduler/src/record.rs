//! How workers did so far, by name, so that one that fails again and again is trusted with less.
//!
//! In: losses, failures that were wrong, and answers. Out: who is on probation, which means one task at a time: a worker that was lost
//! or reported a failure of a task that another one answered, [`MANY`] times within [`RECENTLY`], until it has answered [`ENOUGH`] tasks in a row. And which processes are
//! proven: an answer of theirs counted.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use super::identity::Process;

/// Losses and failures that put a name on probation.
const MANY: usize = 3;

/// The time within which they count.
const RECENTLY: Duration = Duration::from_secs(5 * 60);

/// Answers, with no loss or failure between them, that end a probation.
const ENOUGH: u32 = 10;

#[derive(Debug, Default)]
struct Record {
    losses: u32,
    /// Failures that it reported of tasks that another one answered.
    failures: u32,
    /// The times of the last losses and failures, [`MANY`] at most.
    recent: Vec<Duration>,
    /// Answers that are still wanting; 0 if it is not on probation.
    wanting: u32,
}

/// Records of all names that were lost or failed once; members of the same name share one.
#[derive(Debug, Default)]
pub(super) struct Records {
    by_name: BTreeMap<String, Record>,
    proven: BTreeSet<Process>,
}

impl Records {
    /// A worker of that name was lost.
    pub fn lost(&mut self, now: Duration, name: &str) {
        let record = self.by_name.entry(name.to_owned()).or_default();
        record.losses += 1;
        record.note(now);
    }

    /// A worker of that name reported that a task fails, and another one answered it.
    pub fn failed(&mut self, now: Duration, name: &str) {
        let record = self.by_name.entry(name.to_owned()).or_default();
        record.failures += 1;
        record.note(now);
    }

    /// A worker of that name answered.
    pub fn answered(&mut self, name: &str) {
        if let Some(record) = self.by_name.get_mut(name) {
            record.wanting = record.wanting.saturating_sub(1);
        }
    }

    /// An answer of that process counted; whether it was the first.
    pub fn prove(&mut self, process: Process) -> bool {
        self.proven.insert(process)
    }

    /// Whether an answer of that process counted.
    pub fn is_proven(&self, process: Process) -> bool {
        self.proven.contains(&process)
    }

    /// Whether workers of that name are assigned one task at a time.
    pub fn is_on_probation(&self, name: &str) -> bool {
        self.by_name.get(name).is_some_and(|record| record.wanting > 0)
    }

    /// How often workers of that name were lost.
    pub fn losses(&self, name: &str) -> u32 {
        self.by_name.get(name).map_or(0, |record| record.losses)
    }

    /// How many failures workers of that name reported of tasks that others answered.
    pub fn failures(&self, name: &str) -> u32 {
        self.by_name.get(name).map_or(0, |record| record.failures)
    }
}

impl Record {
    /// A loss or a failure.
    fn note(&mut self, now: Duration) {
        if self.recent.len() == MANY {
            self.recent.remove(0);
        }
        self.recent.push(now);
        let often = self.recent.len() == MANY && now.saturating_sub(self.recent[0]) <= RECENTLY;
        if often || self.wanting > 0 {
            self.wanting = ENOUGH;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn losses_in_short_time_mean_probation_until_it_answers_well() {
        let mut records = Records::default();
        let minutes = |minutes: u64| Duration::from_secs(60 * minutes);
        for at in [0, 3, 6, 9] {
            records.lost(minutes(at), "bob");
            assert!(!records.is_on_probation("bob"), "lost every three minutes, by minute {at}");
        }
        records.lost(minutes(10), "bob");
        assert!(records.is_on_probation("bob") && !records.is_on_probation("alice"));
        (0..9).for_each(|_| records.answered("bob"));
        records.lost(minutes(60), "bob");
        (0..9).for_each(|_| records.answered("bob"));
        assert!(records.is_on_probation("bob"), "ten in a row were wanted");
        records.answered("bob");
        assert!(!records.is_on_probation("bob"));
        assert_eq!((records.losses("bob"), records.losses("alice")), (6, 0));
        (0..3).for_each(|at| records.failed(minutes(90 + at), "carol"));
        assert!(records.is_on_probation("carol"), "failures that others answered count as losses do");
        assert_eq!((records.losses("carol"), records.failures("carol")), (0, 3));
    }
}
