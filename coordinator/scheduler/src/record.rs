//! Records of workers by name: losses, failures and probation.
//!
//! In: losses, wrong reports of failures, and answers. Out: which names are on probation, and so are assigned one task at a time. A
//! name is on probation after [`MANY`] losses or wrong reports within [`RECENTLY`], until its workers have answered [`ENOUGH`] tasks
//! in a row. Also which processes are proven, that is, had an answer accepted, and which are to be judged: [`REFUTED`] of their reports in a
//! row were wrong.
//!
//! Workers choose names and ids of processes, so the number of records is bounded: at [`MOST`], the record that changed longest ago is
//! forgotten, and those of names without probation first.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use super::identity::{Identity, Machine, Process};

/// Number of losses and failures that put a name on probation.
const MANY: usize = 3;

/// Time within which they count.
const RECENTLY: Duration = Duration::from_secs(5 * 60);

/// Number of answers, with no loss or failure between them, that end a probation.
const ENOUGH: u32 = 10;

/// Number of wrong reports without an accepted answer in between, after which a worker is to be judged. A machine that fails now and then
/// answers something in between.
pub(super) const REFUTED: u32 = 3;

/// Maximum number of names with a record, of proven processes, and of processes and machines with wrong reports.
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
    /// Numbers of wrong reports since the last accepted answer. A machine is counted beside its processes, since these have as many ids as they
    /// like.
    refuted: BTreeMap<Process, u32>,
    refuted_by_machine: BTreeMap<Machine, u32>,
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

    /// Records an accepted answer of that worker; returns whether it was the first of its process.
    pub fn prove(&mut self, identity: &Identity) -> bool {
        let Identity { process, machine } = identity;
        self.refuted.remove(process);
        self.refuted_by_machine.remove(machine);
        if self.proven.len() >= MOST && !self.proven.contains(process) {
            // A process that is forgotten has to prove itself again.
            self.proven.pop_first();
        }
        self.proven.insert(*process)
    }

    /// Records that another worker answered a task of which that worker reported that it cannot be computed; returns whether it is to be judged.
    pub fn refute(&mut self, identity: &Identity) -> bool {
        let Identity { process, machine } = identity;
        let many = [count(&mut self.refuted, process), count(&mut self.refuted_by_machine, machine)]
            .into_iter()
            .any(|count| count >= REFUTED);
        if many {
            self.refuted.remove(process);
            self.refuted_by_machine.remove(machine);
        }
        many
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

/// Adds one to the count of `key`, in the place of another one if there are too many.
fn count<K: Ord + Clone>(counts: &mut BTreeMap<K, u32>, key: &K) -> u32 {
    if counts.len() >= MOST && !counts.contains_key(key) {
        counts.pop_first();
    }
    let count = counts.entry(key.clone()).or_default();
    *count += 1;
    *count
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

    fn worker(process: u64, machine: &str) -> Identity {
        let process = Process::Unnamed(crate::MemberId(process));
        Identity { process, machine: Machine(machine.into()) }
    }

    #[test]
    fn wrong_reports_in_a_row_are_judged_by_process_and_by_machine() {
        let mut records = Records::default();
        let (liar, beside) = (worker(1, "a"), worker(2, "a"));
        let mut refute = |by: &[&Identity]| by.iter().map(|by| records.refute(by)).collect::<Vec<bool>>();
        assert_eq!(refute(&[&liar, &liar, &liar, &liar]), [false, false, true, false]);
        assert_eq!(refute(&[&beside, &worker(3, "a")]), [false, true], "three processes of a machine");
        records.prove(&beside);
        let mut refute = |by: &[&Identity]| by.iter().map(|by| records.refute(by)).collect::<Vec<bool>>();
        assert_eq!(refute(&[&beside, &beside]), [false, false], "an answer came in between");
        records.prove(&worker(4, "a"));
        assert!(records.refute(&beside), "answers of another process do not hide those of a liar");
    }

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
            records.prove(&worker(at, "host"));
            records.refute(&worker(at, &format!("host {at}")));
        }
        assert_eq!((records.by_name.len(), records.proven.len()), (MOST, MOST));
        assert_eq!((records.refuted.len(), records.refuted_by_machine.len()), (MOST, MOST));
        assert!(records.is_on_probation("bob"));
        assert_eq!(records.losses(&format!("mallory {}", 3 * MOST - 1)), 1);
    }
}
