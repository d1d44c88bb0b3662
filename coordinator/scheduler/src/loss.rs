//! Losses of members and failures of tasks: members that are gone, silent or stuck; tasks that are reported, overdue or given up; withdrawals.
//!
//! In: losses, reports and ticks. Out: actions that remove members, withdraw leases and fail batches; and the failures of each task
//! (`blame`), by which others are chosen for it.

use std::time::Duration;

use grammaton::work::lease::{BatchId, LeaseId};

use super::batch::Claim;
use super::blame::Blame;
use super::event::{Action, Cause, Failure, Fault, Reporter};
use super::members::Member;
use super::{MemberId, POISON, Scheduler};

impl Scheduler {
    /// Removes a member, which has failed the tasks that it holds, except those of the leases that its process still computes.
    pub(super) fn lose(
        &mut self,
        now: Duration,
        id: MemberId,
        cause: &Cause,
        running: &[LeaseId],
        actions: &mut Vec<Action>,
    ) {
        let Some(member) = self.members.remove(id) else { return };
        if self.members.is_empty() && self.assembled {
            self.empty_since = Some(now);
        }
        if *cause != Cause::Left {
            self.records.lost(now, &member.name);
            self.review(&member.name);
        }
        self.affinity.retain(|_, home| home.member != id);
        self.batches.values_mut().for_each(|batch| batch.disown(id));
        let mut left = Vec::new();
        for (&lease, held) in &member.leases {
            self.settle(now, id, held);
            let Some(batch) = self.batches.get_mut(&lease.batch) else { continue };
            if held.withdrawn.is_some() {
                continue;
            }
            let is_young = now.saturating_sub(held.assigned_at) < self.timeouts.lease_deadline;
            // A lease that goes alone is not carried over, so that each attempt ends with a failure at some time.
            let is_failure = held.alone || !is_young || !running.contains(&lease);
            let blame = |blame: &mut Blame| {
                // The last loss is proof only if the member held the task alone: otherwise another task may have killed it.
                if is_failure && (held.alone || blame.len() < POISON - 1) {
                    blame.add(now, id, &member, Fault::Lost(cause.clone()));
                }
            };
            if batch.drop_holder(id, lease.task, blame, &self.affinity) && is_failure {
                left.push(lease);
            }
        }
        left.into_iter().for_each(|lease| self.give_up_if_hopeless(now, lease, actions));
    }

    /// Fails the batch of a task without holder that no member can compute.
    fn give_up_if_hopeless(&mut self, now: Duration, lease: LeaseId, actions: &mut Vec<Action>) {
        if self.batches.get(&lease.batch).is_some_and(|batch| self.is_hopeless(batch, lease.task)) {
            self.give_up(now, lease, actions);
        }
    }

    fn give_up(&mut self, now: Duration, lease: LeaseId, actions: &mut Vec<Action>) {
        let Some(batch) = self.batches.get(&lease.batch) else { return };
        let blame = &batch.tasks[lease.task.index()].blame;
        let (attempts, reporters) = (blame.attempts(), blame.reporters());
        let failure = Failure::GivenUp { task: self.original(lease), attempts };
        self.fail(now, lease.batch, failure, reporters, actions);
    }

    /// Removes a member that is silent, stuck or breaks the protocol.
    pub(super) fn forget(
        &mut self,
        now: Duration,
        member: MemberId,
        cause: Cause,
        actions: &mut Vec<Action>,
    ) {
        actions.push(Action::Forget { member, cause: cause.clone() });
        self.lose(now, member, &cause, &[], actions);
    }

    /// Handles a reported failure. Unless the failure is certain, another member tries the task, if there is one. The end of a withdrawn lease
    /// is no failure.
    pub(super) fn report(
        &mut self,
        now: Duration,
        id: MemberId,
        lease: LeaseId,
        fault: Fault,
        is_certain: bool,
        actions: &mut Vec<Action>,
    ) {
        let claim = self.claim(now, id, lease, actions);
        let held = self.give_back(now, id, lease);
        if held.is_none_or(|held| held.withdrawn.is_some()) || claim != Claim::Open {
            return;
        }
        let (Some(batch), Some(member)) = (self.batches.get_mut(&lease.batch), self.members.get(id)) else {
            return;
        };
        let blame = |blame: &mut Blame| blame.add(now, id, member, fault.clone());
        let is_left = batch.drop_holder(id, lease.task, blame, &self.affinity);
        if is_certain {
            let lacks_memory = matches!(fault, Fault::LacksMemory(_));
            let (Fault::Reported(detail) | Fault::LacksMemory(detail)) = fault else { return };
            let failure = Failure::Task { task: self.original(lease), detail, lacks_memory };
            self.fail(now, lease.batch, failure, Vec::new(), actions);
        } else if is_left {
            self.give_up_if_hopeless(now, lease, actions);
        }
    }

    /// Removes silent and stuck members, and withdraws overdue leases. Only a tick does this, since it comes when no other event is waiting.
    pub(super) fn tick(&mut self, now: Duration, actions: &mut Vec<Action>) {
        let late = self.next_deadline().map_or(Duration::ZERO, |due| now.saturating_sub(due));
        if late > self.timeouts.suspect_after / 2 {
            // This process was stopped, and received nothing meanwhile.
            self.members.shift_times(now, late);
            self.batches.values_mut().for_each(|batch| batch.shift_times(now, late));
        }
        self.suspect(now, actions);
        self.withdraw_overdue(now, actions);
        self.give_up_stuck(now, actions);
    }

    /// Suspects and removes silent members.
    fn suspect(&mut self, now: Duration, actions: &mut Vec<Action>) {
        while let Some((_, id)) = self.members.next_timeout().filter(|&(at, _)| at <= now) {
            let heard = self.members.get(id).map_or(now, |member| member.heard);
            let silent_for = now.saturating_sub(heard);
            if silent_for >= self.timeouts.dead_after {
                self.forget(now, id, Cause::Silent(silent_for), actions);
            } else {
                self.members.change(id, |member| member.suspect = true);
            }
        }
    }

    /// Withdraws overdue leases. Their members have failed the tasks, and go on with others. What does not end in this process is not
    /// tried again on the same machine.
    fn withdraw_overdue(&mut self, now: Duration, actions: &mut Vec<Action>) {
        while let Some((begun, id, lease)) = self.members.longest() {
            let age = now.saturating_sub(begun);
            if age < self.timeouts.lease_deadline {
                return;
            }
            self.withdraw(now, id, lease, actions);
            let (Some(batch), Some(member)) = (self.batches.get_mut(&lease.batch), self.members.get(id))
            else {
                continue;
            };
            let is_local = !member.watched;
            let blame = |blame: &mut Blame| blame.add(now, id, member, Fault::Overdue(age));
            if !batch.drop_holder(id, lease.task, blame, &self.affinity) {
                continue;
            }
            if is_local && !self.has_uninvolved(&self.batches[&lease.batch], lease.task) {
                self.give_up(now, lease, actions);
            } else {
                self.give_up_if_hopeless(now, lease, actions);
            }
        }
    }

    /// Removes members that do not confirm the end of withdrawn leases. Of this process only the thread is given up.
    fn give_up_stuck(&mut self, now: Duration, actions: &mut Vec<Action>) {
        while let Some((withdrawn, id, lease)) = self.members.first_withdrawn() {
            let (task, age) = (self.original(lease), now.saturating_sub(withdrawn));
            if age < self.timeouts.stop_grace {
                return;
            }
            let cause = Cause::Stuck { task, age };
            if self.members.get(id).is_some_and(|member| member.watched) {
                self.forget(now, id, cause, actions);
                continue;
            }
            self.give_back(now, id, lease);
            let give_up = |member: &mut Member| {
                member.slots -= 1;
                member.slots == 0
            };
            if self.members.change(id, give_up) == Some(true) {
                self.forget(now, id, cause, actions);
            }
        }
    }

    /// Tells the member to stop computing the lease, and marks it as withdrawn.
    pub(super) fn withdraw(
        &mut self,
        now: Duration,
        member: MemberId,
        lease: LeaseId,
        actions: &mut Vec<Action>,
    ) {
        if self.members.withdraw(now, member, lease) {
            actions.push(Action::Withdraw { member, lease });
        }
    }

    pub(super) fn fail(
        &mut self,
        now: Duration,
        batch: BatchId,
        failure: Failure,
        reporters: Vec<Reporter>,
        actions: &mut Vec<Action>,
    ) {
        if self.batches.contains_key(&batch) {
            actions.push(Action::Fail { batch, failure, reporters });
            self.close(now, batch, actions);
        }
    }
}
