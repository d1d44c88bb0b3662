//! An open batch: its tasks, who holds each, which of them go alone, and which could do with a second holder.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use proto::lease::{Attempt, BatchId, LeaseId, TaskIndex};
use rustc_hash::FxHashMap;
use shared::task::ContentHash;

use super::accounts::AccountId;
use super::free::{Free, Offer, Preferred};
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

/// A task of a batch: free, lent, or answered.
#[derive(Debug)]
pub(super) struct Task {
    /// What some member may have already.
    pub needs: Needs,
    /// The task with the same answer that must not go to the same member.
    pub twin: Option<TaskIndex>,
    /// Whether it came in for an audit alone, the second of a pair: it goes to whoever has time, and its shard does
    /// not change hands.
    pub audits: bool,
    /// Number of times it was lent.
    pub attempts: u32,
    /// Number of holders lost; that it is [`POISON`], only one that held nothing else tells.
    pub losses: u32,
    /// Whose answer counted.
    pub answered_by: Option<MemberId>,
    /// Members with a lease of it, and since when.
    pub holders: BTreeMap<MemberId, Duration>,
}

impl Task {
    /// The time of lending, if it waits for one holder alone.
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
    /// Those that wait for one holder alone, by the time of lending.
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
        twins: Vec<(TaskIndex, TaskIndex)>,
    ) -> Batch {
        let task = |needs| Task {
            needs,
            twin: None,
            audits: false,
            attempts: 0,
            losses: 0,
            answered_by: None,
            holders: BTreeMap::new(),
        };
        let mut tasks: Vec<Task> = needs.into_iter().map(task).collect();
        for (audited, audit) in twins {
            tasks[audited.index()].twin = Some(audit);
            tasks[audit.index()].twin = Some(audited);
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

    /// Whether `task` is lent only to a member that holds nothing else: one more holder that is lost, and it is poison.
    pub fn goes_alone(&self, task: TaskIndex) -> bool {
        self.tasks[task.index()].losses >= POISON - 1
    }

    /// A task that may be begun, of those that `member` is offered.
    pub fn offer(&self, member: MemberId, offer: Offer, only: bool) -> Option<TaskIndex> {
        let may = |task| self.may(member, task, only);
        match (self.only, offer) {
            // Whoever comes first is as good as any other.
            (Some(task), Offer::Own) => Some(task).filter(|&task| self.free.contains(task) && may(task)),
            (Some(_), Offer::Unowned | Offer::Others) => None,
            (None, offer) => self.free.offer(member, offer, may),
        }
    }

    /// Whether `lease` was given, and its task has no answer.
    pub fn is_open(&self, lease: LeaseId) -> bool {
        let waits = |task: &Task| task.answered_by.is_none() && lease.attempt.0 < task.attempts;
        lease.batch == self.id && self.tasks.get(lease.task.index()).is_some_and(waits)
    }

    /// Whether `task` waits for one holder alone.
    pub fn is_lone(&self, task: TaskIndex) -> bool {
        self.tasks[task.index()].lone().is_some()
    }

    /// Whether `member` may compute `task` as well: it does not already, nor had to do with its twin, unless it is
    /// the `only` one who could compute anything.
    pub fn may(&self, member: MemberId, task: TaskIndex, only: bool) -> bool {
        let state = &self.tasks[task.index()];
        !state.holders.contains_key(&member) && (only || !self.knows_twin(member, task))
    }

    /// Whether `member` holds the twin of `task`, or gave the answer to it that counted.
    pub fn knows_twin(&self, member: MemberId, task: TaskIndex) -> bool {
        self.tasks[task.index()].twin.is_some_and(|twin| {
            let twin = &self.tasks[twin.index()];
            twin.holders.contains_key(&member) || twin.answered_by == Some(member)
        })
    }

    /// Lends `task` to `member`.
    pub fn lend(&mut self, now: Duration, member: MemberId, task: TaskIndex) -> LeaseId {
        self.remove(task);
        let attempt = self.change(task, |task| {
            task.holders.insert(member, now);
            task.attempts += 1;
            Attempt(task.attempts - 1)
        });
        LeaseId { batch: self.id, task, attempt }
    }

    /// `member` no longer holds `task`; that others hold it, or that it was answered, is not looked at.
    pub fn give_back(&mut self, member: MemberId, task: TaskIndex) {
        self.change(task, |task| task.holders.remove(&member));
    }

    /// `member`, a holder of `task`, is gone; how many were lost with it by now, if that leaves it to nobody. The one that makes it
    /// poison counts only if it held the task `alone`: others may have been lost for what they held beside it.
    pub fn lose(
        &mut self,
        member: MemberId,
        task: TaskIndex,
        counts: bool,
        alone: bool,
        affinity: &Affinity,
    ) -> Option<u32> {
        self.change(task, |task| {
            task.holders.remove(&member);
            let most = if alone { POISON } else { POISON - 1 };
            if counts && task.losses < most {
                task.losses += 1;
            }
        });
        let state = &self.tasks[task.index()];
        if state.answered_by.is_some() || !state.holders.is_empty() {
            return None;
        }
        let losses = state.losses;
        self.release(task, affinity);
        Some(losses)
    }

    /// The answer of `member` to `task` counts; the lease was of that age.
    pub fn accept(&mut self, member: MemberId, task: TaskIndex, age: Duration) {
        self.remove(task);
        self.change(task, |task| task.answered_by = Some(member));
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
