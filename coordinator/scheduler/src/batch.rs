//! An open batch: its tasks, their holders, the tasks that go alone, and the tasks that may need a backup.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use rustc_hash::FxHashMap;
use shared::work::lease::{Attempt, BatchId, LeaseId, TaskIndex};
use shared::work::task::ContentHash;

use super::accounts::AccountId;
use super::blame::Blame;
use super::broken::Broken;
use super::free::{Free, Offer, Preferred};
use super::identity::Process;
use super::members::Member;
use super::{MemberId, Needs, POISON};

/// The member that computed each shard last, or joined with the shard or its state.
pub(super) type Affinity = FxHashMap<ContentHash, Home>;

/// The preferred member of a shard.
#[derive(Clone, Copy, Debug)]
pub(super) struct Home {
    /// The member.
    pub member: MemberId,
    /// The account for which the member computed it, if it did.
    pub account: Option<AccountId>,
}

/// The member that a lease was given to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Assignee {
    /// The member, which may be gone.
    pub member: MemberId,
    /// Its worker's process, which may have reconnected as another member.
    pub process: Process,
}

/// Claim of a member to a lease that it answers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Claim {
    /// The lease was given to the member, or to an earlier member of its process; its task has no answer.
    Open,
    /// The batch has ended, or the task has an answer; the holder may be unknown.
    Over,
    /// The lease was never given to the member.
    Foreign,
}

/// A task of a batch: free, assigned, or answered.
#[derive(Debug)]
pub(super) struct Task {
    /// Blobs that some member may have cached.
    pub needs: Needs,
    /// Replica of the task, which must not go to the same member.
    pub replica: Option<TaskIndex>,
    /// Whether it is the second task of a pair, which exists only for the audit: it goes to any idle member, and does not
    /// change the affinity of its shard.
    pub audits: bool,
    /// Members that it was assigned to, by attempt.
    pub assignees: Vec<Assignee>,
    /// Holders that failed it. The loss that reaches [`POISON`] is proof only if the member held nothing else.
    pub blame: Blame,
    /// The member whose answer was accepted.
    pub answered_by: Option<Assignee>,
    /// Members that hold a lease of it, and since when.
    pub holders: BTreeMap<MemberId, Duration>,
}

impl Task {
    /// Time at which it was assigned, if it has exactly one holder and no answer.
    fn lone(&self) -> Option<Duration> {
        let (None, 1) = (self.answered_by, self.holders.len()) else { return None };
        self.holders.values().next().copied()
    }
}

/// An open batch.
#[derive(Debug)]
pub(super) struct Batch {
    /// Its id.
    pub id: BatchId,
    /// Account of its job.
    pub account: AccountId,
    /// All tasks, by index.
    pub tasks: Vec<Task>,
    /// Number of answered tasks.
    pub n_done: usize,
    /// The only task that may begin, while the backlog of answers is full.
    pub only: Option<TaskIndex>,
    /// Free tasks, except those that go alone.
    pub free: Free,
    /// Free tasks that go alone.
    pub alone: BTreeSet<TaskIndex>,
    /// The member that is reserved for them, and still holds other leases.
    pub reserved: Option<MemberId>,
    /// Tasks with exactly one holder and no answer, by the time at which they were assigned.
    pub lone: BTreeSet<(Duration, TaskIndex)>,
    /// Sum of the ages of the accepted leases.
    pub answered_age: Duration,
}

impl Batch {
    /// A batch of free tasks with these needs.
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
            reserved: None,
            lone: BTreeSet::new(),
            answered_age: Duration::ZERO,
        }
    }

    /// Assigns a preferred member to the free tasks without one, from what members have cached.
    pub fn prefer_affinity(&mut self, affinity: &Affinity) {
        let found = self.free.unowned().filter(|&task| self.preferred(task, affinity).is_some());
        for task in found.collect::<Vec<_>>() {
            self.release(task, affinity);
        }
    }

    /// Removes `member` as preferred member of free tasks, and as the reserved member.
    pub fn disown(&mut self, member: MemberId) {
        self.free.disown(member);
        self.reserved = self.reserved.filter(|&reserved| reserved != member);
    }

    /// Makes `task` free.
    fn release(&mut self, task: TaskIndex, affinity: &Affinity) {
        if self.goes_alone(task) {
            self.alone.insert(task);
        } else {
            self.free.insert(task, self.preferred(task, affinity));
        }
    }

    fn preferred(&self, task: TaskIndex, affinity: &Affinity) -> Preferred {
        let Task { needs, audits, .. } = &self.tasks[task.index()];
        let shard_state = needs.shard_state.and_then(|shard_state| affinity.get(&shard_state));
        shard_state.or_else(|| affinity.get(&needs.shard)).filter(|_| !audits).map(|home| home.member)
    }

    /// Number of free tasks.
    pub fn n_free(&self) -> usize {
        self.free.len() + self.alone.len()
    }

    /// Number of free tasks that may begin, except those that go alone.
    pub fn n_ready(&self) -> usize {
        match self.only {
            Some(task) => usize::from(self.free.contains(task)),
            None => self.free.len(),
        }
    }

    /// Free tasks that may begin and go alone.
    pub fn ready_alone(&self) -> impl Iterator<Item = TaskIndex> {
        self.alone.iter().copied().filter(|&task| self.only.is_none_or(|only| only == task))
    }

    /// Whether `task` goes alone: one more failure makes it poison.
    pub fn goes_alone(&self, task: TaskIndex) -> bool {
        self.tasks[task.index()].blame.len() >= POISON - 1
    }

    /// A task that may begin, which `member` is offered and `may` take.
    pub fn offer(
        &self,
        member: MemberId,
        offer: Offer,
        may: impl Fn(TaskIndex) -> bool,
    ) -> Option<TaskIndex> {
        match (self.only, offer) {
            // Any task of the offer is as good as another, so the first one is taken.
            (Some(task), Offer::Own) => Some(task).filter(|&task| self.free.contains(task) && may(task)),
            (Some(_), Offer::Unowned | Offer::Others) => None,
            (None, offer) => self.free.offer(member, offer, may),
        }
    }

    /// Whether `lease` was given and its task has no answer.
    pub fn is_open(&self, lease: LeaseId) -> bool {
        let task = self.tasks.get(lease.task.index());
        task.is_some_and(|task| task.answered_by.is_none()) && self.assignee(lease).is_some()
    }

    /// Claim of `member` to a `lease` of this batch; `process` is that of the member, if it is present.
    pub fn claim(&self, lease: LeaseId, member: MemberId, process: Option<Process>) -> Claim {
        let is_own = |assignee: &Assignee| assignee.member == member || Some(assignee.process) == process;
        match self.assignee(lease) {
            Some(assignee) if !is_own(&assignee) => Claim::Foreign,
            Some(_) if self.is_open(lease) => Claim::Open,
            Some(_) => Claim::Over,
            None => Claim::Foreign,
        }
    }

    /// The member that the lease was given to, if it was given.
    fn assignee(&self, lease: LeaseId) -> Option<Assignee> {
        let task = self.tasks.get(lease.task.index()).filter(|_| lease.batch == self.id)?;
        task.assignees.get(lease.attempt.0 as usize).copied()
    }

    /// Whether `task` has exactly one holder and no answer.
    pub fn is_lone(&self, task: TaskIndex) -> bool {
        self.tasks[task.index()].lone().is_some()
    }

    /// Whether `member` holds `task`.
    pub fn is_held_by(&self, member: MemberId, task: TaskIndex) -> bool {
        self.tasks[task.index()].holders.contains_key(&member)
    }

    /// Whether `member` or its process holds the replica of `task`, or gave its accepted answer.
    pub fn computed_replica(&self, id: MemberId, member: &Member, task: TaskIndex) -> bool {
        self.tasks[task.index()].replica.is_some_and(|replica| {
            let Task { holders, answered_by, .. } = &self.tasks[replica.index()];
            let by = |by: Assignee| by.member == id || by.process == member.identity.process;
            holders.contains_key(&id) || answered_by.is_some_and(by)
        })
    }

    /// Assigns `task`; returns the lease.
    pub fn assign(&mut self, now: Duration, to: Assignee, task: TaskIndex) -> LeaseId {
        self.remove(task);
        let attempt = self.change(task, |task| {
            task.holders.insert(to.member, now);
            task.assignees.push(to);
            Attempt(task.assignees.len() as u32 - 1)
        });
        LeaseId { batch: self.id, task, attempt }
    }

    /// Removes `member` from the holders of `task`, without making the task free.
    pub fn give_back(&mut self, member: MemberId, task: TaskIndex) {
        self.change(task, |task| task.holders.remove(&member));
    }

    /// Removes a holder of `task` and records a failure if it is to `blame`. Returns whether the task has no holder left.
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

    /// Accepts an answer to `task`, from a lease of that `age`.
    pub fn accept(&mut self, by: Assignee, task: TaskIndex, age: Duration) {
        self.remove(task);
        self.change(task, |task| task.answered_by = Some(by));
        self.n_done += 1;
        self.answered_age += age;
    }

    /// Shifts the times of all leases of open tasks by `time`.
    pub fn shift_times(&mut self, now: Duration, time: Duration) {
        for task in 0..self.tasks.len() as u32 {
            let later = |assigned_at: &mut Duration| *assigned_at = now.min(*assigned_at + time);
            self.change(TaskIndex(task), |task| task.holders.values_mut().for_each(later));
        }
    }

    /// Removes `task` from the free tasks, if it is free.
    fn remove(&mut self, task: TaskIndex) {
        self.free.remove(task);
        self.alone.remove(&task);
    }

    fn change<R>(&mut self, task: TaskIndex, change: impl FnOnce(&mut Task) -> R) -> R {
        let state = &mut self.tasks[task.index()];
        let before = state.lone();
        let result = change(state);
        let after = state.lone();
        if let Some(assigned_at) = before {
            self.lone.remove(&(assigned_at, task));
        }
        self.lone.extend(after.map(|assigned_at| (assigned_at, task)));
        result
    }

    /// Checks that each task is in exactly one state and in the right indexes; an error names the first violation.
    pub fn check(&self) -> Result<(), Broken> {
        self.free.check()?;
        let mut lone = BTreeSet::new();
        for (task, state) in (0..).map(TaskIndex).zip(&self.tasks) {
            let done = state.answered_by.is_some();
            let (beside, alone) = (self.free.contains(task), self.alone.contains(&task));
            if beside && self.goes_alone(task) || alone && !self.goes_alone(task) {
                return Err(format!("task {} is in the wrong set of free tasks", task.0).into());
            }
            let states = u32::from(beside) + u32::from(alone) + u32::from(done);
            if states + u32::from(!done && !state.holders.is_empty()) != 1 {
                return Err(format!("task {} is not in exactly one state", task.0).into());
            }
            lone.extend(state.lone().map(|assigned_at| (assigned_at, task)));
        }
        let done = self.tasks.iter().filter(|task| task.answered_by.is_some()).count();
        if done != self.n_done || done == self.tasks.len() {
            return Err("the number of done tasks is wrong".into());
        }
        if lone != self.lone {
            return Err("the index of tasks with one holder is wrong".into());
        }
        Ok(())
    }
}
