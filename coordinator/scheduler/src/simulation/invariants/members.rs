//! Laws of members: their timeouts, that none is idle without need, and which tasks each may have.

use std::collections::BTreeSet;
use std::time::Duration;

use grammaton::work::lease::TaskIndex;

use super::model::{Blamed, Held, How, Known, Page};
use super::{Invariants, is_thread, state};
use crate::{
    Account, AccountId, Broken, MOST_FAILURES, Machine, MemberId, MemberState, POISON, Presence, Scheduler,
};

impl Invariants {
    /// Checks a member: the scheduler's view of it, its timeouts, and that it is not idle without need.
    pub fn check_member(&self, now: Duration, id: MemberId, scheduler: &Scheduler) -> Result<(), Broken> {
        let Known { watched, heard, held, .. } = &self.known[&id];
        let presence: Presence = scheduler.member(id).ok_or(format!("{id:?} is not known"))?;
        if presence.n_leases != held.len() {
            return Err(format!("{id:?} holds {} leases, known are {}", held.len(), presence.n_leases).into());
        }
        if *watched && now > *heard + self.timeouts.dead_after {
            return Err(format!("{id:?} is kept, silent since {heard:?}").into());
        }
        let deadline = self.timeouts.lease_deadline;
        let is_overdue =
            |held: &Held| held.withdrawn.is_none() && held.begun.is_some_and(|begun| now > begun + deadline);
        if held.values().any(is_overdue) {
            return Err(format!("{id:?} computes a lease for longer than {deadline:?}").into());
        }
        let grace = self.timeouts.stop_grace;
        if held.values().any(|held| held.withdrawn.is_some_and(|withdrawn| now > withdrawn + grace)) {
            return Err(
                format!("{id:?} does not confirm the end of a lease for longer than {grace:?}").into()
            );
        }
        if !self.has_free_slot(id, scheduler) {
            return Ok(());
        }
        for (batch, page) in &self.batches {
            if let Some(task) = page.ready().find(|&task| self.may(id, page, task, scheduler)) {
                return Err(format!("{id:?} idles while {task:?} of {batch:?} is free").into());
            }
        }
        Ok(())
    }

    /// Checks that idle members have backups of the tasks that suspects alone hold.
    pub fn check_suspects(&self, scheduler: &Scheduler) -> Result<(), Broken> {
        let is_suspect = |id: MemberId| state(id, scheduler) == Some(MemberState::Suspect);
        let suspects = self.known.iter().filter(|(id, _)| is_suspect(**id));
        let held = suspects.flat_map(|(_, known)| known.held.keys());
        let waiting = held.filter_map(|lease| Some((self.batches.get(&lease.batch)?, lease.task)));
        let lone = |(page, task): &(&Page, TaskIndex)| {
            page.holders[task.index()].len() == 1
                && !page.answered_by.contains_key(task)
                && !page.goes_alone(*task)
        };
        let lone: Vec<(&Page, TaskIndex)> = waiting.filter(lone).collect();
        if lone.is_empty() {
            return Ok(());
        }
        for id in self.members().filter(|&id| self.has_free_slot(id, scheduler)) {
            let may = |(page, task): &&(&Page, TaskIndex)| self.may(id, page, *task, scheduler);
            if let Some((_, task)) = lone.iter().find(may) {
                return Err(format!("{id:?} is idle while suspects alone hold {task:?}").into());
            }
        }
        Ok(())
    }

    /// Checks that no more members are reserved than needed; returns their number.
    pub fn check_reserved(&self, scheduler: &Scheduler) -> Result<usize, Broken> {
        let is_reserved = |id: &MemberId| scheduler.member(*id).is_some_and(|presence| presence.is_reserved);
        let reserved = self.members().filter(is_reserved).count();
        let waits = |page: &&Page| page.ready().any(|task| page.goes_alone(task));
        if reserved <= self.batches.values().filter(waits).count() {
            Ok(reserved)
        } else {
            Err(format!("{reserved} members are reserved without need").into())
        }
    }

    pub(super) fn has_free_slot(&self, id: MemberId, scheduler: &Scheduler) -> bool {
        let (Some(known), Some(presence)) = (self.known.get(&id), scheduler.member(id)) else {
            return false;
        };
        let limit = self.limit(id, presence.on_probation);
        let excused = presence.is_reserved || known.held.values().any(|held| held.alone);
        let is_healthy = presence.state == MemberState::Healthy;
        self.assembled && known.held.len() < limit && is_healthy && !excused
    }

    /// Number of leases that the member may hold in slots.
    pub(super) fn limit(&self, id: MemberId, on_probation: bool) -> usize {
        let Some(known) = self.known.get(&id) else { return 0 };
        match known.slots as usize {
            _ if on_probation => 1,
            slots if self.is_proven(known) || self.known.len() == 1 => slots,
            slots => slots.min(2),
        }
    }

    /// Whether the member is far enough from the workers of the task's replica.
    pub(super) fn is_kin_enough(
        &self,
        id: MemberId,
        page: &Page,
        task: TaskIndex,
        scheduler: &Scheduler,
    ) -> bool {
        let to_one = || page.account.max_members == Some(1) || !self.has_other_healthy(id, scheduler);
        match page.kinship(&self.known[&id].identity, task) {
            0 => true,
            1 => self.has_one_machine(scheduler) || to_one(),
            _ => to_one(),
        }
    }

    /// Whether all healthy members are on one machine.
    pub(super) fn has_one_machine(&self, scheduler: &Scheduler) -> bool {
        let is_healthy = |id: &MemberId| state(*id, scheduler) == Some(MemberState::Healthy);
        let healthy = self.known.iter().filter(|(id, _)| is_healthy(id));
        let machines: BTreeSet<&Machine> = healthy.map(|(_, known)| &known.identity.machine).collect();
        machines.len() == 1
    }

    /// Whether the member, which has a free slot and does not hold the task, may be assigned it.
    pub(super) fn may(&self, id: MemberId, page: &Page, task: TaskIndex, scheduler: &Scheduler) -> bool {
        let alone = !page.goes_alone(task) || self.known[&id].held.is_empty();
        let suits = || match page.blame_of(task) {
            [] => self.is_kin_enough(id, page, task, scheduler),
            _ => self.ranks_best(id, page, task, scheduler),
        };
        alone && self.admits(page.account, id) && suits()
    }

    /// Ranks of the members that could have the task at some time.
    pub(super) fn ranks<'a>(
        &'a self,
        page: &'a Page,
        task: TaskIndex,
        scheduler: &'a Scheduler,
    ) -> impl Iterator<Item = (u32, u32)> + 'a {
        let stays = |id: MemberId| state(id, scheduler) != Some(MemberState::Draining);
        let may = move |id: MemberId| stays(id) && !page.holders[task.index()].contains_key(&id);
        self.known.iter().filter(move |(id, _)| may(**id)).map(move |(_, known)| page.rank(known, task))
    }

    /// Whether no other member ranks better for a task that has failed before.
    pub(super) fn ranks_best(
        &self,
        id: MemberId,
        page: &Page,
        task: TaskIndex,
        scheduler: &Scheduler,
    ) -> bool {
        let own = page.rank(&self.known[&id], task);
        self.ranks(page, task, scheduler).all(|other| own <= other)
    }

    /// Whether there is a reason to give up the task. If it is sound, three machines failed it, or all that are present are involved. The last
    /// failure is its own.
    pub(super) fn is_hopeless(&self, page: &Page, task: TaskIndex, scheduler: &Scheduler) -> bool {
        let blame = page.blame_of(task);
        let Some(last) = blame.last().filter(|last| !last.is_doubtful) else { return false };
        let machines = |is: fn(&&Blamed) -> bool| {
            blame.iter().filter(is).map(|blamed| &blamed.identity.machine).collect::<BTreeSet<_>>().len()
        };
        let has =
            |involvement: u32| self.ranks(page, task, scheduler).any(|(involved, _)| involved <= involvement);
        // A thread of the coordinator's process does not end.
        if is_thread(&last.identity) && last.how == How::Lost && !has(0) {
            return true;
        }
        if !page.made.is_bad(task) && machines(|_| true) < POISON && has(0) {
            return false;
        }
        machines(|blamed| blamed.how == How::Lost) >= POISON
            || blame.len() >= MOST_FAILURES
            || blame.len() >= POISON && !has(1)
    }

    pub(super) fn has_threads(&self) -> bool {
        self.known.values().any(|known| !known.watched)
    }

    /// Whether the member may hold leases of the account.
    pub(super) fn admits(&self, account: Account, id: MemberId) -> bool {
        let holds = |known: &Known| known.held.values().any(|held| held.account == Some(account.id));
        let Some(most) = account.max_members else { return true };
        self.known.get(&id).is_some_and(holds) || self.n_holders(account.id) < most
    }

    pub(super) fn n_holders(&self, account: AccountId) -> usize {
        let holds = |known: &&Known| known.held.values().any(|held| held.account == Some(account));
        self.known.values().filter(holds).count()
    }

    pub(super) fn has_other_healthy(&self, member: MemberId, scheduler: &Scheduler) -> bool {
        let is_healthy = |id| state(id, scheduler) == Some(MemberState::Healthy);
        self.members().any(|other| other != member && is_healthy(other))
    }
}
