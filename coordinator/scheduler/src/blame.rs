//! The members that failed a task, who may try it next, and when it is given up.
//!
//! In: losses of holders and failures that they report. Out: how well a member suits the task now ([`Suit`]), and whether enough different
//! workers failed it ([`Blame::is_proof`]). One stranger that returns under new names is one worker here: until a member has given an
//! answer that counted, it is told from others by its [`Origin`] alone.

use std::collections::BTreeSet;
use std::time::Duration;

use super::POISON;
use super::identity::{Identity, Origin, Process};
use super::members::Member;

/// How well a member suits a task that was failed before; the least is the best.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) enum Suit {
    /// It has had nothing to do with the failures.
    Fresh,
    /// The same, and it holds or answered the task's replica: the two would not audit each other.
    ComputedReplica,
    /// It came after a failure from where that one came from, and has not given an answer that counted.
    SameOrigin,
    /// It failed the task itself.
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
    /// Whether it had given an answer that counted.
    is_proven: bool,
    /// Whether the member was lost, or else reported that the task fails.
    is_loss: bool,
}

/// What makes two failures those of different workers.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
enum Worker<'a> {
    Proven(Process),
    Stranger(&'a Origin),
}

impl Blame {
    /// `member` failed the task: it was lost with it, or reported a failure.
    pub fn add(&mut self, at: Duration, member: &Member, is_loss: bool) {
        let (identity, is_proven) = (member.identity.clone(), member.is_proven);
        self.0.push(Entry { at, name: member.name.clone(), identity, is_proven, is_loss });
    }

    /// Number of failures.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there was no failure.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Number of failures by which the member was lost.
    pub fn n_losses(&self) -> usize {
        self.0.iter().filter(|entry| entry.is_loss).count()
    }

    /// The names of the members that reported a failure.
    pub fn reporters(&self) -> impl Iterator<Item = &str> {
        self.0.iter().filter(|entry| !entry.is_loss).map(|entry| &entry.name[..])
    }

    /// Whether [`POISON`] different workers failed the task.
    pub fn is_proof(&self) -> bool {
        let workers: BTreeSet<Worker<'_>> = self.0.iter().map(Entry::worker).collect();
        workers.len() >= POISON
    }

    /// How well `member` suits the task, of whose replica it knows or not.
    pub fn suit(&self, member: &Member, computed_replica: bool) -> Suit {
        let is_same = |entry: &Entry| entry.identity.process == member.identity.process;
        let followed = |entry: &Entry| {
            entry.identity.origin == member.identity.origin && entry.at <= member.joined && !member.is_proven
        };
        match () {
            () if self.0.iter().any(is_same) => Suit::Failed,
            () if self.0.iter().any(followed) => Suit::SameOrigin,
            () if computed_replica => Suit::ComputedReplica,
            () => Suit::Fresh,
        }
    }
}

impl Entry {
    fn worker(&self) -> Worker<'_> {
        match self.is_proven {
            true => Worker::Proven(self.identity.process),
            false => Worker::Stranger(&self.identity.origin),
        }
    }
}
