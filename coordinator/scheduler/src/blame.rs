//! Failures of a task: which members may try it next, and when it is given up.
//!
//! In: losses of holders and failures that they report. Out: the preference of a member for the task ([`Suit`]), and whether enough
//! different workers have failed it ([`Blame::is_proof`]). An attacker that reconnects under new names counts as one worker: members
//! without an accepted answer are distinguished by their [`Machine`] alone.

use std::collections::BTreeSet;
use std::time::Duration;

use super::POISON;
use super::identity::{Identity, Machine, Process};
use super::members::Member;

/// Preference of a member for a task that has failed before; the least is the best.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) enum Suit {
    /// The member is not involved in the failures.
    Fresh,
    /// The member is not involved in the failures, but holds or answered the task's replica, so an audit would be void.
    ComputedReplica,
    /// The member joined after a failure from the same machine, and has no accepted answer.
    SameMachine,
    /// The member failed the task itself.
    Failed,
}

/// Failures of one task, in the order in which they happened.
#[derive(Debug, Default)]
pub(super) struct Blame(Vec<Entry>);

#[derive(Debug)]
struct Entry {
    at: Duration,
    name: String,
    identity: Identity,
    /// Whether the member had an accepted answer.
    is_proven: bool,
    /// Whether the member was lost; otherwise it reported the failure.
    is_loss: bool,
}

/// Identity by which failures of different workers are counted.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
enum Worker<'a> {
    Proven(Process),
    Stranger(&'a Machine),
}

impl Blame {
    /// Records that `member` failed the task: it was lost while it held the task, or reported a failure.
    pub fn add(&mut self, at: Duration, member: &Member, is_loss: bool) {
        let (identity, is_proven) = (member.identity.clone(), member.is_proven);
        self.0.push(Entry { at, name: member.name.clone(), identity, is_proven, is_loss });
    }

    /// Number of failures.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there are no failures.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Number of failures in which the member was lost.
    pub fn n_losses(&self) -> usize {
        self.0.iter().filter(|entry| entry.is_loss).count()
    }

    /// Names of the members that reported a failure.
    pub fn reporters(&self) -> impl Iterator<Item = &str> {
        self.0.iter().filter(|entry| !entry.is_loss).map(|entry| &entry.name[..])
    }

    /// Whether [`POISON`] different workers have failed the task.
    pub fn is_proof(&self) -> bool {
        let workers: BTreeSet<Worker<'_>> = self.0.iter().map(Entry::worker).collect();
        workers.len() >= POISON
    }

    /// Preference of `member` for the task; `computed_replica` is whether it holds or answered the replica.
    pub fn suit(&self, member: &Member, computed_replica: bool) -> Suit {
        let is_same = |entry: &Entry| entry.identity.process == member.identity.process;
        let followed = |entry: &Entry| {
            entry.identity.machine == member.identity.machine
                && entry.at <= member.joined
                && !member.is_proven
        };
        match () {
            () if self.0.iter().any(is_same) => Suit::Failed,
            () if self.0.iter().any(followed) => Suit::SameMachine,
            () if computed_replica => Suit::ComputedReplica,
            () => Suit::Fresh,
        }
    }
}

impl Entry {
    fn worker(&self) -> Worker<'_> {
        match self.is_proven {
            true => Worker::Proven(self.identity.process),
            false => Worker::Stranger(&self.identity.machine),
        }
    }
}
