//! The model of the checks: batches with their tasks, members with their leases, and the failures of holders.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use grammaton::work::lease::{LeaseId, TaskIndex};

use crate::{Account, AccountId, Identity, MemberId, Needs, POISON};

/// Content of a batch.
#[derive(Clone, Default)]
pub(in crate::simulation) struct Made {
    pub needs: Vec<Needs>,
    pub replicas: BTreeMap<TaskIndex, TaskIndex>,
    /// A task that fails on every member.
    pub impossible: Option<TaskIndex>,
    /// A task that kills every process that begins it.
    pub deadly: Option<TaskIndex>,
    /// A task that no thread finishes.
    pub endless: Option<TaskIndex>,
    /// A task whose answer claims something.
    pub claiming: Option<TaskIndex>,
}

impl Made {
    /// The task itself, or the original of which it is the replica.
    pub fn original(&self, task: TaskIndex) -> TaskIndex {
        task.min(self.replica_or_itself(task))
    }

    /// Whether no worker can compute the task.
    pub fn is_bad(&self, task: TaskIndex) -> bool {
        let original = Some(self.original(task));
        [self.impossible, self.deadly, self.endless].contains(&original)
    }

    pub(super) fn replica_or_itself(&self, task: TaskIndex) -> TaskIndex {
        *self.replicas.get(&task).unwrap_or(&task)
    }
}

/// An open batch.
pub(super) struct Page {
    pub(super) account: Account,
    pub(super) made: Made,
    /// While the backlog of answers is full, the only task that may begin.
    pub(super) only: Option<TaskIndex>,
    pub(super) answered_by: BTreeMap<TaskIndex, Identity>,
    /// Workers that leases were given to, and when.
    pub(super) given: BTreeMap<LeaseId, (Identity, Duration)>,
    /// The first task without an answer.
    pub(super) first_open: TaskIndex,
    /// Holders of each task, whose leases are not withdrawn.
    pub(super) holders: Vec<BTreeMap<MemberId, Identity>>,
    /// Tasks without holder and answer.
    pub(super) free: BTreeSet<TaskIndex>,
    pub(super) blame: BTreeMap<TaskIndex, Vec<Blamed>>,
}

impl Page {
    /// Whether the task may begin if it is free.
    pub(super) fn may_begin(&self, task: TaskIndex) -> bool {
        self.only.is_none_or(|only| only == task || self.made.replicas.get(&only) == Some(&task))
    }

    /// Whether the task goes alone, to a member that holds nothing else.
    pub(super) fn goes_alone(&self, task: TaskIndex) -> bool {
        self.blame_of(task).len() >= POISON - 1
    }

    /// Free tasks that may begin.
    pub(super) fn ready(&self) -> impl Iterator<Item = TaskIndex> {
        self.free.iter().copied().filter(|&task| self.may_begin(task))
    }

    /// Whether the worker, or else another one on its machine, holds the task's replica or answered it: 2 or 1, or else 0.
    pub(super) fn kinship(&self, worker: &Identity, task: TaskIndex) -> u32 {
        let Some(replica) = self.made.replicas.get(&task) else { return 0 };
        let mut kinship = 0;
        for other in self.holders[replica.index()].values().chain(self.answered_by.get(replica)) {
            let is_same = if other.process == worker.process { 2 } else { 0 };
            kinship = kinship.max(is_same.max(u32::from(other.machine == worker.machine)));
        }
        kinship
    }

    /// Workers that reported that the task cannot be computed, the last one first.
    pub(super) fn reporters(&self, task: TaskIndex) -> Vec<&Identity> {
        let mut reporters: Vec<&Identity> = Vec::new();
        for Blamed { identity, .. } in
            self.blame_of(task).iter().rev().filter(|blamed| blamed.how == How::Reported)
        {
            if reporters.iter().all(|known| known.process != identity.process) {
                reporters.push(identity);
            }
        }
        reporters
    }

    pub(super) fn blame_of(&self, task: TaskIndex) -> &[Blamed] {
        self.blame.get(&task).map_or(&[], |blame| &blame[..])
    }

    /// Involvement of the worker in the failures of the task: 3 if it failed the task; 2 if it joined later than another worker on its machine
    /// failed the task, and 1 if it was there before; else 0.
    pub(super) fn involvement(&self, known: &Known, task: TaskIndex) -> u32 {
        let blame = self.blame_of(task);
        let is_late = blame.first().is_some_and(|first| known.joined >= first.at);
        let failed = |blamed: &Blamed| blamed.identity.process == known.identity.process;
        let on_machine = |blamed: &Blamed| blamed.identity.machine == known.identity.machine;
        match (blame.iter().any(failed), blame.iter().any(on_machine)) {
            (true, _) => 3,
            (false, true) => 1 + u32::from(is_late),
            (false, false) => 0,
        }
    }

    /// Rank of the member for a task that has failed before; the least is the best.
    pub(super) fn rank(&self, known: &Known, task: TaskIndex) -> (u32, u32) {
        (self.involvement(known, task), self.kinship(&known.identity, task))
    }

    pub(super) fn drop_holder(&mut self, member: MemberId, task: TaskIndex) {
        let holders = &mut self.holders[task.index()];
        holders.remove(&member);
        if holders.is_empty() && !self.answered_by.contains_key(&task) {
            self.free.insert(task);
        }
    }
}

/// How a holder failed a task.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum How {
    /// It reported the failure, and is judged if another member answers.
    Reported,
    /// It reported that it lacks memory.
    LacksMemory,
    /// It was lost with the task, or did not end in time.
    Lost,
}

/// A holder that failed a task.
pub(super) struct Blamed {
    pub(super) at: Duration,
    pub(super) identity: Identity,
    pub(super) how: How,
    /// Whether another task that it held may be to blame.
    pub(super) is_doubtful: bool,
}

/// A lease of a member.
#[derive(Clone)]
pub(super) struct Held {
    pub(super) since: Duration,
    /// Time at which a thread began.
    pub(super) begun: Option<Duration>,
    /// `None` if the account is not charged: a lease of an earlier connection that is not needed.
    pub(super) account: Option<AccountId>,
    pub(super) alone: bool,
    pub(super) withdrawn: Option<Duration>,
}

/// State of a member as the coordinator should know it.
pub(super) struct Known {
    pub(super) identity: Identity,
    pub(super) joined: Duration,
    pub(super) slots: u32,
    pub(super) watched: bool,
    /// Time at which its last message reached the coordinator.
    pub(super) heard: Duration,
    pub(super) held: BTreeMap<LeaseId, Held>,
}

impl Known {
    /// Adds a lease, which begins if fewer than `limit` are held.
    pub(super) fn add(&mut self, lease: LeaseId, held: Held, limit: usize) {
        let begun = (self.held.len() < limit).then_some(held.since);
        self.held.insert(lease, Held { begun, ..held });
    }
}

/// Kinds of accepted answers.
pub(in crate::simulation) enum Accepted {
    /// The answer to a task without an answered replica.
    Task,
    /// An answer that claims something, and to which there is no other worker.
    Lone,
    /// The answer to a task whose replica was answered before; whether by another member.
    Pair { by_two: bool },
}
