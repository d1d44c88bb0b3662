//! The batch in work: its tasks, who holds each, and which of them could do with a second holder.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use proto::lease::{Attempt, BatchId, LeaseId, TaskIndex};
use rustc_hash::FxHashMap;
use shared::task::ContentHash;

use super::free::{Free, Preferred};
use super::{MemberId, Needs};

/// A task of the batch: free, lent, or answered.
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
    /// Number of holders lost.
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

/// The batch in work.
#[derive(Debug)]
pub(super) struct Batch {
    /// Its id.
    pub id: BatchId,
    /// All of its tasks.
    pub tasks: Vec<Task>,
    /// How many are answered.
    pub n_done: usize,
    /// The only one that may be begun, while answers are not taken as fast as they come.
    pub only: Option<TaskIndex>,
    /// Those that nobody holds.
    pub free: Free,
    /// Those that wait for one holder alone, by the time of lending.
    pub lone: BTreeSet<(Duration, TaskIndex)>,
    /// Sum of the ages of the accepted leases.
    pub answered_age: Duration,
}

impl Batch {
    /// Tasks that need these, all free.
    pub fn new(id: BatchId, needs: Vec<Needs>, twins: Vec<(TaskIndex, TaskIndex)>) -> Batch {
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
        Batch { id, tasks, n_done: 0, only: None, free, lone: BTreeSet::new(), answered_age: Duration::ZERO }
    }

    /// Sorts the free tasks that prefer nobody by the members that have what they need.
    pub fn prefer_affinity(&mut self, affinity: &FxHashMap<ContentHash, MemberId>) {
        let found = self.free.unowned().filter(|&task| self.preferred(task, affinity).is_some());
        for task in found.collect::<Vec<_>>() {
            self.release(task, affinity);
        }
    }

    /// No free task prefers `member` any more.
    pub fn disown(&mut self, member: MemberId) {
        self.free.disown(member);
    }

    /// Nobody holds `task`.
    fn release(&mut self, task: TaskIndex, affinity: &FxHashMap<ContentHash, MemberId>) {
        self.free.insert(task, self.preferred(task, affinity));
    }

    fn preferred(&self, task: TaskIndex, affinity: &FxHashMap<ContentHash, MemberId>) -> Preferred {
        let Task { needs, audits, .. } = &self.tasks[task.index()];
        let carried = needs.carried.and_then(|carried| affinity.get(&carried));
        carried.or_else(|| affinity.get(&needs.shard)).filter(|_| !audits).copied()
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
        self.free.remove(task);
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

    /// `member`, a holder of `task`, is gone; how many were lost with it by now, if that leaves it to nobody.
    pub fn lose(
        &mut self,
        member: MemberId,
        task: TaskIndex,
        counts: bool,
        affinity: &FxHashMap<ContentHash, MemberId>,
    ) -> Option<u32> {
        self.change(task, |task| {
            task.holders.remove(&member);
            task.losses += u32::from(counts);
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
        self.free.remove(task);
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
            let states = u32::from(self.free.contains(task)) + u32::from(done);
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
