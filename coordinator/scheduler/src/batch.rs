//! An open batch: its tasks, who holds each, which of them go alone, and which could do with a second holder.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use rustc_hash::FxHashMap;
use shared::work::lease::{Attempt, BatchId, LeaseId, TaskIndex};
use shared::work::task::ContentHash;

use super::accounts::AccountId;
use super::blame::Blame;
use super::free::{Free, Offer, Preferred};
use super::identity::Process;
use super::members::Member;
use super::{MemberId, Needs, POISON};

/// Who computed a shard last, or came with it or with what it carries.
pub(super) type Affinity = FxHashMap<ContentHash, Home>;

/// Where a shard is at home.
#[derive(Clone, Copy, Debug)]
pub(super) struct Home {
    /// With whom.
    pub member: MemberId,
    /// For whom it was computed there.
    pub account: Option<AccountId>,
}

/// Whom a lease was given to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Assignee {
    /// The member, which may be gone.
    pub member: MemberId,
    /// Its worker's process, which may have returned as another member.
    pub process: Process,
}

/// What a lease is to a member that answers it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Claim {
    /// It was given to the member, or to the member that this worker was before; its task waits for an answer.
    Open,
    /// Its batch is over, or its task was answered; whose it was may be forgotten.
    Over,
    /// It was never given to the member.
    Foreign,
}

/// A task of a batch: free, assigned, or answered.
#[derive(Debug)]
pub(super) struct Task {
    /// What some member may have already.
    pub needs: Needs,
    /// The task with the same answer that must not go to the same member.
    pub replica: Option<TaskIndex>,
    /// Whether it came in for an audit alone, the second of a pair: it goes to whoever has time, and its shard does
    /// not change hands.
    pub audits: bool,
    /// Whom it was assigned to, by attempt.
    pub assignees: Vec<Assignee>,
    /// Holders that failed it; that they are [`POISON`], only one that held nothing else tells, if it was lost.
    pub blame: Blame,
    /// Whose answer counted.
    pub answered_by: Option<Assignee>,
    /// Members with a lease of it, and since when.
    pub holders: BTreeMap<MemberId, Duration>,
}

impl Task {
    /// The time of assigning, if it waits for one holder alone.
    fn lone(&self) -> Option<Duration> {
        let (None, 1) = (self.answered_by, self.holders.len()) else { return None };
        self.holders.values().next().copied()
    }
}

/// A batch that is open.
#[derive(Debug)]
pub(super) struct Batch {
    /// Its id.
    pub id: BatchId,
    /// On whose account.
    pub account: AccountId,
    /// All of its tasks.
    pub tasks: Vec<Task>,
    /// How many are answered.
    pub n_done: usize,
    /// The only one that may be begun, while answers are not taken as fast as they come.
    pub only: Option<TaskIndex>,
    /// Those that nobody holds, but for those that go alone.
    pub free: Free,
    /// Those that nobody holds and that go alone.
    pub alone: BTreeSet<TaskIndex>,
    /// The member that is set aside for these; holds something still.
    pub aside: Option<MemberId>,
    /// Those that wait for one holder alone, by the time of assigning.
    pub lone: BTreeSet<(Duration, TaskIndex)>,
    /// Sum of the ages of the accepted leases.
    pub answered_age: Duration,
}

impl Batch {
    /// Tasks that need these, all free.
    pub fn new(
        id: BatchId,
        account: AccountId,
        needs: Vec<Needs>,
        replicas: Vec<(TaskIndex, TaskIndex)>,
    ) -> Batch {
        let task = |needs| Task {
            needs,
            replica: None,
            audits: false,
            assignees: Vec::new(),
            blame: Blame::default(),
            answered_by: None,
            holders: BTreeMap::new(),
        };
        let mut tasks: Vec<Task> = needs.into_iter().map(task).collect();
        for (audited, audit) in replicas {
            tasks[audited.index()].replica = Some(audit);
            tasks[audit.index()].replica = Some(audited);
            tasks[audit.index()].audits = true;
        }
        let mut free = Free::default();
        (0..tasks.len() as u32).for_each(|task| free.insert(TaskIndex(task), None));
        Batch {
            id,
            account,
            tasks,
            n_done: 0,
            only: None,
            free,
            alone: BTreeSet::new(),
            aside: None,
            lone: BTreeSet::new(),
            answered_age: Duration::ZERO,
        }
    }

    /// Sorts the free tasks that prefer nobody by the members that have what they need.
    pub fn prefer_affinity(&mut self, affinity: &Affinity) {
        let found = self.free.unowned().filter(|&task| self.preferred(task, affinity).is_some());
        for task in found.collect::<Vec<_>>() {
            self.release(task, affinity);
        }
    }

    /// `member` is gone: no free task prefers it any more, and it is set aside no more.
    pub fn disown(&mut self, member: MemberId) {
        self.free.disown(member);
        self.aside = self.aside.filter(|&aside| aside != member);
    }

    /// Nobody holds `task`.
    fn release(&mut self, task: TaskIndex, affinity: &Affinity) {
        if self.goes_alone(task) {
            self.alone.insert(task);
        } else {
            self.free.insert(task, self.preferred(task, affinity));
        }
    }

    fn preferred(&self, task: TaskIndex, affinity: &Affinity) -> Preferred {
        let Task { needs, audits, .. } = &self.tasks[task.index()];
        let carried = needs.carried.and_then(|carried| affinity.get(&carried));
        carried.or_else(|| affinity.get(&needs.shard)).filter(|_| !audits).map(|home| home.member)
    }

    /// How many tasks nobody holds.
    pub fn n_free(&self) -> usize {
        self.free.len() + self.alone.len()
    }

    /// How many of these may be begun, and beside others.
    pub fn n_ready(&self) -> usize {
        match self.only {
            Some(task) => usize::from(self.free.contains(task)),
            None => self.free.len(),
        }
    }

    /// Those that may be begun and go alone.
    pub fn ready_alone(&self) -> impl Iterator<Item = TaskIndex> {
        self.alone.iter().copied().filter(|&task| self.only.is_none_or(|only| only == task))
    }

    /// Whether `task` is assigned only to a member that holds nothing else: one more holder that is lost, and it is poison.
    pub fn goes_alone(&self, task: TaskIndex) -> bool {
        self.tasks[task.index()].blame.len() >= POISON - 1
    }

    /// A task that may be begun, of those that `member` is offered and `may` take.
    pub fn offer(
        &self,
        member: MemberId,
        offer: Offer,
        may: impl Fn(TaskIndex) -> bool,
    ) -> Option<TaskIndex> {
        match (self.only, offer) {
            // Whoever comes first is as good as any other.
            (Some(task), Offer::Own) => Some(task).filter(|&task| self.free.contains(task) && may(task)),
            (Some(_), Offer::Unowned | Offer::Others) => None,
            (None, offer) => self.free.offer(member, offer, may),
        }
    }

    /// Whether `lease` was given, and its task has no answer.
    pub fn is_open(&self, lease: LeaseId) -> bool {
        let task = self.tasks.get(lease.task.index());
        task.is_some_and(|task| task.answered_by.is_none()) && self.assignee(lease).is_some()
    }

    /// What `lease`, which is of this batch, is to a member with that id, of that process if it is still there.
    pub fn claim(&self, lease: LeaseId, member: MemberId, process: Option<Process>) -> Claim {
        let is_own = |assignee: &Assignee| assignee.member == member || Some(assignee.process) == process;
        match self.assignee(lease) {
            Some(assignee) if !is_own(&assignee) => Claim::Foreign,
            Some(_) if self.is_open(lease) => Claim::Open,
            Some(_) => Claim::Over,
            None => Claim::Foreign,
        }
    }

    /// Whom the lease was given to, if it ever was.
    fn assignee(&self, lease: LeaseId) -> Option<Assignee> {
        let task = self.tasks.get(lease.task.index()).filter(|_| lease.batch == self.id)?;
        task.assignees.get(lease.attempt.0 as usize).copied()
    }

    /// Whether `task` waits for one holder alone.
    pub fn is_lone(&self, task: TaskIndex) -> bool {
        self.tasks[task.index()].lone().is_some()
    }

    /// Whether `member` holds `task`.
    pub fn is_held_by(&self, member: MemberId, task: TaskIndex) -> bool {
        self.tasks[task.index()].holders.contains_key(&member)
    }

    /// Whether `member`, or its process, holds the replica of `task`, or gave the answer to it that counted.
    pub fn computed_replica(&self, id: MemberId, member: &Member, task: TaskIndex) -> bool {
        self.tasks[task.index()].replica.is_some_and(|replica| {
            let Task { holders, answered_by, .. } = &self.tasks[replica.index()];
            let by = |by: Assignee| by.member == id || by.process == member.identity.process;
            holders.contains_key(&id) || answered_by.is_some_and(by)
        })
    }

    /// Lends `task`.
    pub fn assign(&mut self, now: Duration, to: Assignee, task: TaskIndex) -> LeaseId {
        self.remove(task);
        let attempt = self.change(task, |task| {
            task.holders.insert(to.member, now);
            task.assignees.push(to);
            Attempt(task.assignees.len() as u32 - 1)
        });
        LeaseId { batch: self.id, task, attempt }
    }

    /// `member` no longer holds `task`; that others hold it, or that it was answered, is not looked at.
    pub fn give_back(&mut self, member: MemberId, task: TaskIndex) {
        self.change(task, |task| task.holders.remove(&member));
    }

    /// A holder of `task` holds it no longer, and is to `blame` for that or not. Returns whether the task has no holder left.
    pub fn drop_holder(
        &mut self,
        member: MemberId,
        task: TaskIndex,
        blame: impl FnOnce(&mut Blame),
        affinity: &Affinity,
    ) -> bool {
        self.change(task, |task| {
            task.holders.remove(&member);
            blame(&mut task.blame);
        });
        let state = &self.tasks[task.index()];
        let is_left = state.answered_by.is_none() && state.holders.is_empty();
        if is_left {
            self.release(task, affinity);
        }
        is_left
    }

    /// The answer to `task` counts; the lease was of that age.
    pub fn accept(&mut self, by: Assignee, task: TaskIndex, age: Duration) {
        self.remove(task);
        self.change(task, |task| task.answered_by = Some(by));
        self.n_done += 1;
        self.answered_age += age;
    }

    /// All leases of open tasks were given that much later.
    pub fn forgive(&mut self, now: Duration, time: Duration) {
        for task in 0..self.tasks.len() as u32 {
            let later = |lent_at: &mut Duration| *lent_at = now.min(*lent_at + time);
            self.change(TaskIndex(task), |task| task.holders.values_mut().for_each(later));
        }
    }

    /// `task` is free no longer, if it was.
    fn remove(&mut self, task: TaskIndex) {
        self.free.remove(task);
        self.alone.remove(&task);
    }

    fn change<R>(&mut self, task: TaskIndex, change: impl FnOnce(&mut Task) -> R) -> R {
        let state = &mut self.tasks[task.index()];
        let before = state.lone();
        let result = change(state);
        let after = state.lone();
        if let Some(lent_at) = before {
            self.lone.remove(&(lent_at, task));
        }
        self.lone.extend(after.map(|lent_at| (lent_at, task)));
        result
    }

    /// Whether the tasks are in one state each, and listed as they are; an error names what is wrong.
    pub fn check(&self) -> Result<(), String> {
        self.free.check()?;
        let mut lone = BTreeSet::new();
        for (task, state) in (0..).map(TaskIndex).zip(&self.tasks) {
            let done = state.answered_by.is_some();
            let (beside, alone) = (self.free.contains(task), self.alone.contains(&task));
            if beside && self.goes_alone(task) || alone && !self.goes_alone(task) {
                return Err(format!("task {} does not go as it should", task.0));
            }
            let states = u32::from(beside) + u32::from(alone) + u32::from(done);
            if states + u32::from(!done && !state.holders.is_empty()) != 1 {
                return Err(format!("task {} is not in one state", task.0));
            }
            lone.extend(state.lone().map(|lent_at| (lent_at, task)));
        }
        let done = self.tasks.iter().filter(|task| task.answered_by.is_some()).count();
        if done != self.n_done || done == self.tasks.len() {
            return Err("done tasks are not counted".into());
        }
        if lone != self.lone {
            return Err("tasks with one holder are not listed".into());
        }
        Ok(())
    }
}
