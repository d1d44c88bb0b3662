//! An open batch: its tasks, their holders, the tasks that go alone, and the tasks that may need a backup.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use grammaton::work::lease::{Attempt, BatchId, LeaseId, TaskIndex};
use grammaton::work::task::ContentHash;
use rustc_hash::FxHashMap;

use super::accounts::AccountId;
use super::balance;
use super::blame::{Blame, Kinship};
use super::broken::Broken;
use super::free::{Free, Offer, Preferred};
use super::identity::{Identity, Process};
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
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Assignee {
    /// The member, which may be gone.
    pub member: MemberId,
    /// Its worker, which may have reconnected as another member.
    pub worker: Identity,
    /// Time at which the lease was assigned.
    pub at: Duration,
}

/// A lease of a task that is not withdrawn.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) struct Holding {
    /// Time at which it was assigned.
    pub since: Duration,
    /// The attempt.
    pub attempt: Attempt,
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
    /// The worker whose answer was accepted.
    pub answered_by: Option<Identity>,
    /// Members that hold a lease of it that is not withdrawn.
    pub holders: BTreeMap<MemberId, Holding>,
}

impl Task {
    fn new(needs: Needs) -> Task {
        Task {
            needs,
            replica: None,
            audits: false,
            assignees: Vec::new(),
            blame: Blame::default(),
            answered_by: None,
            holders: BTreeMap::new(),
        }
    }

    /// Whether it goes alone: one more failure makes it poison.
    fn goes_alone(&self) -> bool {
        self.blame.len() >= POISON - 1
    }

    /// Time at which it was assigned, if it may have a backup: it has exactly one holder and no answer, and does not go alone. A task that no member
    /// can compute would have holders for ever, if each had a backup.
    fn lone(&self) -> Option<Duration> {
        let (None, 1, false) = (&self.answered_by, self.holders.len(), self.goes_alone()) else {
            return None;
        };
        self.holders.values().next().map(|holding| holding.since)
    }

    /// Workers that compute it, or gave its accepted answer.
    fn workers(&self) -> impl Iterator<Item = &Identity> {
        let worker = |holding: &Holding| Some(&self.assignees.get(holding.attempt.0 as usize)?.worker);
        self.holders.values().filter_map(worker).chain(&self.answered_by)
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
    /// Tasks that may have a backup, by the time at which they were assigned.
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
        let mut tasks: Vec<Task> = needs.into_iter().map(Task::new).collect();
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

    /// Appends a replica of `task`, which has none, to confirm its answer.
    pub fn add_replica(&mut self, task: TaskIndex) -> TaskIndex {
        let replica = TaskIndex(self.tasks.len() as u32);
        let state = &mut self.tasks[task.index()];
        state.replica = Some(replica);
        let needs = state.needs;
        self.tasks.push(Task { replica: Some(task), audits: true, ..Task::new(needs) });
        self.free.insert(replica, None);
        replica
    }

    /// Assigns a preferred member to the free tasks without one, from what members have cached.
    pub fn prefer_affinity(&mut self, affinity: &Affinity) {
        let found = self.free.unowned().filter(|&task| self.preferred(task, affinity).is_some());
        for task in found.collect::<Vec<_>>() {
            self.release(task, affinity);
        }
    }

    /// Moves free tasks from members that have more to do than others ([`balance`]).
    pub fn balance(&mut self, slots: &BTreeMap<MemberId, usize>) {
        let takes = |task: TaskIndex| self.tasks[task.index()].needs.takes;
        let owned = self.free.owned().map(|(task, member)| (task, member, takes(task)));
        for (task, member) in balance::moves(slots, owned) {
            self.free.insert(task, Some(member));
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
            Some(only) => self.with_replica(only).filter(|&task| self.free.contains(task)).count(),
            None => self.free.len(),
        }
    }

    /// Free tasks that may begin and go alone.
    pub fn ready_alone(&self) -> impl Iterator<Item = TaskIndex> {
        self.alone.iter().copied().filter(|&task| self.may_begin(task))
    }

    /// Whether the backlog lets `task` begin. The replica of the only task that may begin may confirm its answer.
    pub fn may_begin(&self, task: TaskIndex) -> bool {
        self.only.is_none_or(|only| self.with_replica(only).any(|ready| ready == task))
    }

    /// `task`, and its replica if it has one.
    fn with_replica(&self, task: TaskIndex) -> impl Iterator<Item = TaskIndex> {
        let replica = self.tasks.get(task.index()).and_then(|state| state.replica);
        std::iter::once(task).chain(replica)
    }

    /// Whether `task` goes alone: one more failure makes it poison.
    pub fn goes_alone(&self, task: TaskIndex) -> bool {
        self.tasks[task.index()].goes_alone()
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
            (Some(only), Offer::Own) => {
                self.with_replica(only).find(|&task| self.free.contains(task) && may(task))
            }
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
        let is_own =
            |assignee: &Assignee| assignee.member == member || Some(assignee.worker.process) == process;
        match self.assignee(lease) {
            Some(assignee) if !is_own(assignee) => Claim::Foreign,
            Some(_) if self.is_open(lease) => Claim::Open,
            Some(_) => Claim::Over,
            None => Claim::Foreign,
        }
    }

    /// The member that the lease was given to, if it was given.
    pub fn assignee(&self, lease: LeaseId) -> Option<&Assignee> {
        let task = self.tasks.get(lease.task.index()).filter(|_| lease.batch == self.id)?;
        task.assignees.get(lease.attempt.0 as usize)
    }

    /// Whether `task` may have a backup: it has exactly one holder and no answer, and does not go alone.
    pub fn is_lone(&self, task: TaskIndex) -> bool {
        self.tasks[task.index()].lone().is_some()
    }

    /// Whether `member` holds `task`.
    pub fn is_held_by(&self, member: MemberId, task: TaskIndex) -> bool {
        self.tasks[task.index()].holders.contains_key(&member)
    }

    /// Relation of `worker` to those that compute the replica of `task`, or answered it.
    pub fn kinship(&self, worker: &Identity, task: TaskIndex) -> Kinship {
        let Some(replica) = self.tasks[task.index()].replica else { return Kinship::None };
        let kinship = |other: &Identity| {
            if other.process == worker.process {
                Kinship::SameProcess
            } else if other.machine == worker.machine {
                Kinship::SameMachine
            } else {
                Kinship::None
            }
        };
        self.tasks[replica.index()].workers().map(kinship).max().unwrap_or(Kinship::None)
    }

    /// Assigns `task`; returns the lease.
    pub fn assign(&mut self, to: Assignee, task: TaskIndex) -> LeaseId {
        self.remove(task);
        let attempt = self.change(task, |task| {
            let attempt = Attempt(task.assignees.len() as u32);
            task.holders.insert(to.member, Holding { since: to.at, attempt });
            task.assignees.push(to);
            attempt
        });
        LeaseId { batch: self.id, task, attempt }
    }

    /// Makes `member` a holder of a `lease` of its process's earlier connection, assigned at `since`.
    pub fn adopt(&mut self, member: MemberId, lease: LeaseId, since: Duration) {
        self.remove(lease.task);
        let holding = Holding { since, attempt: lease.attempt };
        self.change(lease.task, |task| task.holders.insert(member, holding));
    }

    /// Leases of `task` that are not withdrawn, with their members.
    pub fn held(&self, task: TaskIndex) -> impl Iterator<Item = (MemberId, LeaseId)> {
        let lease = move |attempt| LeaseId { batch: self.id, task, attempt };
        self.tasks[task.index()].holders.iter().map(move |(&member, held)| (member, lease(held.attempt)))
    }

    /// Leases of all tasks that are not withdrawn, with their members.
    pub fn all_held(&self) -> impl Iterator<Item = (MemberId, LeaseId)> {
        (0..self.tasks.len() as u32).flat_map(|task| self.held(TaskIndex(task)))
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

    /// Accepts an answer to `task`, from a lease of that `age`. The task has no holder any more.
    pub fn accept(&mut self, by: Identity, task: TaskIndex, age: Duration) {
        self.remove(task);
        self.change(task, |task| {
            task.answered_by = Some(by);
            task.holders.clear();
        });
        self.n_done += 1;
        self.answered_age += age;
    }

    /// Shifts the times of all leases of open tasks by `time`.
    pub fn shift_times(&mut self, now: Duration, time: Duration) {
        let later = |at: &mut Duration| *at = now.min(*at + time);
        for task in 0..self.tasks.len() as u32 {
            self.change(TaskIndex(task), |task| {
                task.holders.values_mut().for_each(|holding| later(&mut holding.since));
                task.assignees.iter_mut().for_each(|assignee| later(&mut assignee.at));
            });
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
            if done && !state.holders.is_empty() {
                return Err(format!("task {} is answered, and a lease of it is not withdrawn", task.0).into());
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
