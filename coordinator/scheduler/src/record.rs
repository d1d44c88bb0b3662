//! Records of workers by name: losses, failures and probation.
//!
//! In: losses, wrong reports of failures, and answers. Out: which names are on probation, and so are assigned one task at a time. A
//! name is on probation after [`MANY`] losses or wrong reports within [`RECENTLY`], until its workers have answered [`ENOUGH`] tasks
//! in a row. Also which processes are proven, that is, had an answer accepted.
//!
//! Workers choose names and ids of processes, so the number of records is bounded: at [`MOST`], the record that changed longest ago is
//! forgotten, and those of names without probation first.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use super::identity::Process;

/// Number of losses and failures that put a name on probation.
const MANY: usize = 3;

/// Time within which they count.
const RECENTLY: Duration = Duration::from_secs(5 * 60);

/// Number of answers, with no loss or failure between them, that end a probation.
const ENOUGH: u32 = 10;

/// Maximum number of names with a record, and of proven processes.
const MOST: usize = 4096;

#[derive(Debug, Default)]
struct Record {
    losses: u32,
    /// Number of reported failures of tasks that another worker answered.
    failures: u32,
    /// Times of the last losses and failures, at most [`MANY`].
    recent: Vec<Duration>,
    /// Number of answers until the probation ends; 0 without probation.
    wanting: u32,
}

/// Records of all names with a loss or failure; members of the same name share one.
#[derive(Debug, Default)]
pub(super) struct Records {
    by_name: BTreeMap<String, Record>,
    proven: BTreeSet<Process>,
}

impl Records {
    /// Records the loss of a worker of that name.
    pub fn lost(&mut self, now: Duration, name: &str) {
        let record = self.of(name);
        record.losses += 1;
        record.note(now);
    }

    /// Records a reported failure of a task that another worker answered.
    pub fn failed(&mut self, now: Duration, name: &str) {
        let record = self.of(name);
        record.failures += 1;
        record.note(now);
    }

    /// The record of a name, in the place of another one if there are too many.
    fn of(&mut self, name: &str) -> &mut Record {
        if self.by_name.len() >= MOST && !self.by_name.contains_key(name) {
            let age = |record: &Record| (record.wanting > 0, record.recent.last().copied());
            let oldest =
                self.by_name.iter().min_by_key(|(_, record)| age(record)).map(|(name, _)| name.clone());
            oldest.map(|name| self.by_name.remove(&name));
        }
        self.by_name.entry(name.to_owned()).or_default()
    }

    /// Records an answer of a worker of that name.
    pub fn answered(&mut self, name: &str) {
        if let Some(record) = self.by_name.get_mut(name) {
            record.wanting = record.wanting.saturating_sub(1);
        }
    }

    /// Records an accepted answer of that process; returns whether it was the first.
    pub fn prove(&mut self, process: Process) -> bool {
        if self.proven.len() >= MOST && !self.proven.contains(&process) {
            // A process that is forgotten has to prove itself again.
            self.proven.pop_first();
        }
        self.proven.insert(process)
    }

    /// Whether an answer of that process was accepted.
    pub fn is_proven(&self, process: Process) -> bool {
        self.proven.contains(&process)
    }

    /// Whether workers of that name are assigned one task at a time.
    pub fn is_on_probation(&self, name: &str) -> bool {
        self.by_name.get(name).is_some_and(|record| record.wanting > 0)
    }

    /// Number of losses of workers of that name.
    pub fn losses(&self, name: &str) -> u32 {
        self.by_name.get(name).map_or(0, |record| record.losses)
    }

    /// Number of reported failures of tasks that others answered.
    pub fn failures(&self, name: &str) -> u32 {
        self.by_name.get(name).map_or(0, |record| record.failures)
    }
}

impl Record {
    /// Records a loss or a failure.
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
    fn repeated_losses_mean_probation_until_enough_answers() {
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
        assert!(records.is_on_probation("bob"), "ten answers in a row are needed");
        records.answered("bob");
        assert!(!records.is_on_probation("bob"));
        assert_eq!((records.losses("bob"), records.losses("alice")), (6, 0));
        (0..3).for_each(|at| records.failed(minutes(90 + at), "carol"));
        assert!(records.is_on_probation("carol"), "failures that others answered count as losses do");
        assert_eq!((records.losses("carol"), records.failures("carol")), (0, 3));
    }

    #[test]
    fn names_without_number_take_bounded_memory_and_end_no_probation() {
        let mut records = Records::default();
        (0..3).for_each(|at| records.lost(Duration::from_secs(at), "bob"));
        for at in 0..3 * MOST as u64 {
            records.lost(Duration::from_secs(9 + at), &format!("mallory {at}"));
            records.prove(Process::Unnamed(crate::MemberId(at)));
        }
        assert_eq!((records.by_name.len(), records.proven.len()), (MOST, MOST));
        assert!(records.is_on_probation("bob"));
        assert_eq!(records.losses(&format!("mallory {}", 3 * MOST - 1)), 1);
    }
}
