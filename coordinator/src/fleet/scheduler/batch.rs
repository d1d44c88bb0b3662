//! The batch in work: which of its tasks are free, and whom each would best go to.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use proto::lease::{Attempt, BatchId, LeaseId, TaskIndex};
use rustc_hash::FxHashMap;
use shared::task::ContentHash;

use super::{Action, Member, MemberId};

/// A task of the batch.
#[derive(Debug)]
pub(super) struct Task {
    /// What it computes on.
    pub shard: ContentHash,
    /// Number of times it was lent.
    pub attempts: u32,
    /// Number of holders lost.
    pub losses: u32,
    /// Whether it was answered.
    pub done: bool,
    /// Members with a lease of it.
    pub holders: BTreeSet<MemberId>,
}

/// The batch in work: its tasks, and which of them are free.
#[derive(Debug)]
pub(super) struct Batch {
    /// Its id.
    pub id: BatchId,
    /// All of them.
    pub tasks: Vec<Task>,
    /// How many are done.
    pub n_done: usize,
    /// Tasks neither lent nor done, by the member that should have them; no set is empty.
    pub free: BTreeMap<Option<MemberId>, BTreeSet<TaskIndex>>,
    /// How many are free.
    pub n_free: usize,
    /// Sum of the ages of the accepted leases.
    pub answered_age: Duration,
}

/// Which free tasks a member is offered.
#[derive(Clone, Copy)]
pub(super) enum Offer {
    /// Those whose shard it computed last.
    Own,
    /// Those of no member.
    Unowned,
    /// Those of the member with the most of them.
    Others,
}

impl Batch {
    /// A task per shard, all free.
    pub fn new(id: BatchId, shards: Vec<ContentHash>) -> Batch {
        let task = |shard| Task { shard, attempts: 0, losses: 0, done: false, holders: BTreeSet::new() };
        let tasks: Vec<Task> = shards.into_iter().map(task).collect();
        let all: BTreeSet<TaskIndex> = (0..tasks.len() as u32).map(TaskIndex).collect();
        let (n_free, free) = (tasks.len(), BTreeMap::from([(None, all)]));
        Batch { id, tasks, n_done: 0, free, n_free, answered_age: Duration::ZERO }
    }

    /// Sorts the unowned free tasks by the members that computed their shards.
    pub fn prefer_affinity(&mut self, affinity: &FxHashMap<ContentHash, MemberId>) {
        for task in self.free.remove(&None).unwrap_or_default() {
            let preferred = affinity.get(&self.tasks[task.index()].shard).copied();
            self.free.entry(preferred).or_default().insert(task);
        }
    }

    /// No free task waits for `member` any more.
    pub fn disown(&mut self, member: MemberId) {
        if let Some(tasks) = self.free.remove(&Some(member)) {
            self.free.entry(None).or_default().extend(tasks);
        }
    }

    /// Whether `task` is lent to one member only.
    pub fn has_one_holder(&self, task: TaskIndex) -> bool {
        let task = &self.tasks[task.index()];
        !task.done && task.holders.len() == 1
    }

    /// Nobody holds `task` any more.
    pub fn release(&mut self, task: TaskIndex, affinity: &FxHashMap<ContentHash, MemberId>) {
        let preferred = affinity.get(&self.tasks[task.index()].shard).copied();
        self.free.entry(preferred).or_default().insert(task);
        self.n_free += 1;
    }

    /// The first free task that is offered to `member`.
    pub fn offer(&self, member: MemberId, offer: Offer) -> Option<TaskIndex> {
        let owner = match offer {
            Offer::Own => Some(member),
            Offer::Unowned => None,
            Offer::Others => {
                let richest = self.free.iter().max_by_key(|(owner, tasks)| (tasks.len(), **owner));
                richest.and_then(|(owner, _)| *owner)
            }
        };
        self.free.get(&owner)?.first().copied()
    }

    /// Removes `task` from the free ones, if it is among them.
    pub fn take(&mut self, task: TaskIndex) {
        let holds = |tasks: &BTreeSet<TaskIndex>| tasks.contains(&task);
        let Some(owner) = self.free.iter().find(|(_, tasks)| holds(tasks)).map(|(&owner, _)| owner) else {
            return;
        };
        if let Some(tasks) = self.free.get_mut(&owner) {
            tasks.remove(&task);
            if tasks.is_empty() {
                self.free.remove(&owner);
            }
            self.n_free -= 1;
        }
    }

    /// Lends `task` to the member.
    pub fn lend(&mut self, now: Duration, id: MemberId, member: &mut Member, task: TaskIndex) -> Action {
        self.take(task);
        let state = &mut self.tasks[task.index()];
        let lease = LeaseId { batch: self.id, task, attempt: Attempt(state.attempts) };
        state.attempts += 1;
        state.holders.insert(id);
        member.leases.insert(lease, now);
        Action::Lend { member: id, lease }
    }
}
