//! Failures of a task: which members may try it next, and when it is given up.
//!
//! In: losses of holders, overdue leases, and failures that holders report. Out: the preference of a member for the task ([`MemberPreference`]), and whether
//! the failures suffice to give it up ([`Blame::is_proof`]). Failures are counted by [`Machine`]: a worker that restarts or reconnects under
//! other names is on the same machine, so it is not asked again while there is another one.

use std::collections::BTreeSet;
use std::time::Duration;

use super::event::{FailedAttempt, Fault, Reporter};
use super::identity::Machine;
use super::members::Member;
use super::{MOST_FAILURES, MemberId, POISON};

/// Preference of a member for a task that has failed before; the least is the best.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) struct MemberPreference {
    /// How the member is involved in the failures.
    pub involvement: Involvement,
    /// How it is involved in the task's replica.
    pub kinship: Kinship,
}

/// Involvement of a member in the failures of a task.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) enum Involvement {
    /// No process of its machine failed the task.
    None,
    /// Another process on its machine failed the task. The member was there before the first failure.
    Neighbour,
    /// The member joined after a failure, from a machine that had failed the task. So it may be the same worker.
    Newcomer,
    /// The member failed the task itself.
    Failed,
}

/// Relation of a member to the holder of a task's replica, or to the worker that answered it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) enum Kinship {
    /// Another machine.
    None,
    /// Another process on the same machine.
    SameMachine,
    /// The same process, which would confirm its own answer.
    SameProcess,
}

/// Failures of one task, in the order in which they happened.
#[derive(Debug, Default)]
pub(super) struct Blame(Vec<Entry>);

#[derive(Debug)]
struct Entry {
    at: Duration,
    /// The member that failed it, by a report or otherwise.
    by: Reporter,
    how: Fault,
}

impl Blame {
    /// Records that the member failed the task.
    pub fn add(&mut self, at: Duration, id: MemberId, member: &Member, how: Fault) {
        let (name, identity) = (member.name.clone(), member.identity.clone());
        self.0.push(Entry { at, by: Reporter { member: id, name, identity }, how });
    }

    /// Number of failures.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there are no failures.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Names of the members that said or showed that they cannot compute the task, and neither were lost nor lack memory.
    pub fn accused(&self) -> impl Iterator<Item = &str> {
        let is_accused = |how: &Fault| matches!(how, Fault::Reported(_) | Fault::Overdue(_));
        self.0.iter().filter(move |entry| is_accused(&entry.how)).map(|entry| &entry.by.name[..])
    }

    /// The members that reported that the task cannot be computed, each process once, by its last connection.
    pub fn reporters(&self) -> Vec<Reporter> {
        let reports = self.0.iter().rev().filter(|entry| matches!(entry.how, Fault::Reported(_)));
        let mut seen = BTreeSet::new();
        reports.map(|entry| &entry.by).filter(|by| seen.insert(by.identity.process)).cloned().collect()
    }

    /// The failures, for messages.
    pub fn attempts(&self) -> Vec<FailedAttempt> {
        let attempt = |Entry { by, how, .. }: &Entry| FailedAttempt {
            worker: format!("{} ({})", by.name, by.identity.machine.0),
            how: how.clone(),
        };
        self.0.iter().map(attempt).collect()
    }

    /// Whether the task is given up even if there are members that could try it: [`POISON`] machines were lost or overdue with it, or it failed
    /// [`MOST_FAILURES`] times. A reported failure costs nothing, a lost machine does.
    pub fn is_proof(&self) -> bool {
        let is_free = |how: &Fault| matches!(how, Fault::Reported(_) | Fault::LacksMemory(_));
        let costly = self.0.iter().filter(|entry| !is_free(&entry.how));
        let machines: BTreeSet<&Machine> = costly.map(|entry| &entry.by.identity.machine).collect();
        machines.len() >= POISON || self.len() >= MOST_FAILURES
    }

    /// Involvement of `member` in the failures.
    pub fn involvement(&self, member: &Member) -> Involvement {
        let on_machine = |entry: &&Entry| entry.by.identity.machine == member.identity.machine;
        let is_same = |entry: &Entry| entry.by.identity.process == member.identity.process;
        match self.0.first() {
            _ if self.0.iter().any(is_same) => Involvement::Failed,
            Some(first) if self.0.iter().any(|entry| on_machine(&entry)) => {
                if member.joined < first.at {
                    Involvement::Neighbour
                } else {
                    Involvement::Newcomer
                }
            }
            _ => Involvement::None,
        }
    }
}
