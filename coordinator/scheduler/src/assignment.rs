//! Assignment of tasks to members, after each event, until no slot is idle for which there is a task.
//!
//! First the tasks that go alone; then free tasks, to slots, and beyond them if there are plenty; then backups of late tasks, to members
//! that are still idle. Cost: proportional to the leases given, and a walk over open batches; a walk over members only if slots stay
//! idle, or a member is to be reserved.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use shared::work::lease::{BatchId, TaskIndex};

use super::accounts::{AccountId, Ledger};
use super::batch::{Assignee, Batch};
use super::blame::Suit;
use super::free::Offer;
use super::members::{Member, Room};
use super::{Action, MemberId, POISON, Scheduler};

/// Round-robin of an account's tasks over the members with room, until none takes any, offer after offer.
struct Turns {
    account: AccountId,
    /// Its batches with tasks to assign.
    batches: Vec<BatchId>,
    /// The current offer, and the offers after it.
    offers: VecDeque<Offer>,
    /// Members left in this turn; `None` before the first.
    members: Option<VecDeque<MemberId>>,
}

impl Scheduler {
    /// Assigns all tasks that can be assigned.
    pub(super) fn assign(&mut self, now: Duration, actions: &mut Vec<Action>) {
        if !self.assembled || self.batches.is_empty() {
            return;
        }
        let with_alone = |batch: &&Batch| batch.reserved.is_some() || !batch.alone.is_empty();
        let with_alone: Vec<BatchId> =
            self.batches.values().filter(with_alone).map(|batch| batch.id).collect();
        for batch in with_alone {
            self.assign_alone(now, batch, actions);
        }
        self.assign_free(now, actions);
        self.assign_backups(now, actions);
    }

    /// Assigns tasks of the batch that go alone to members that hold nothing; if there are too few of them, reserves one member.
    fn assign_alone(&mut self, now: Duration, id: BatchId, actions: &mut Vec<Action>) {
        let batch = &self.batches[&id];
        let (tasks, reserved): (Vec<TaskIndex>, _) = (batch.ready_alone().collect(), batch.reserved);
        self.reserve(id, None);
        let mut left = None;
        for task in tasks {
            let batch = &self.batches[&id];
            let taker = self.members.with(Room::Slot).find(|&member| self.may(member, batch, task));
            match taker {
                Some(member) => self.assign_to(now, member, id, task, actions),
                None => left = left.or(Some(task)),
            }
        }
        let Some(task) = left else { return };
        let batch = &self.batches[&id];
        let could = |member: MemberId, state: &Member| {
            let may = self.may_once_empty(member, batch, task);
            state.is_healthy() && !state.reserved && !state.is_alone() && may
        };
        let again = reserved
            .filter(|&reserved| self.members.get(reserved).is_some_and(|state| could(reserved, state)));
        let fewest = || {
            let all = self.members.iter().filter(|&(member, state)| could(member, state));
            all.min_by_key(|(member, state)| (state.leases.len(), *member)).map(|(member, _)| member)
        };
        let reserved = again.or_else(fewest);
        self.reserve(id, reserved);
    }

    /// Reserves `reserved` for the batch, instead of the member before.
    fn reserve(&mut self, id: BatchId, reserved: Option<MemberId>) {
        let Some(batch) = self.batches.get_mut(&id) else { return };
        if let Some(before) = std::mem::replace(&mut batch.reserved, reserved) {
            self.members.change(before, |member| member.reserved = false);
        }
        if let Some(reserved) = reserved {
            self.members.change(reserved, |member| member.reserved = true);
        }
    }

    /// Assigns free tasks until no healthy member has a free slot and a free task that it may have.
    fn assign_free(&mut self, now: Duration, actions: &mut Vec<Action>) {
        let mut n_ready: usize = self.batches.values().map(Batch::n_ready).sum();
        let n_slots = self.members.n_slots();
        for (room, enough) in [(Room::Slot, 0), (Room::Beyond, n_slots)] {
            if n_ready <= enough || self.members.with(room).next().is_none() {
                continue;
            }
            let mut all = self.turns(room);
            self.accounts.queue(|id| all.iter().any(|turns| turns.account == id), n_slots);
            while let Some(at) = (0..all.len()).min_by_key(|&at| self.accounts.turn(all[at].account)) {
                if self.assign_next(now, room, n_ready > enough, &mut all[at], actions) {
                    n_ready -= 1;
                } else {
                    all.remove(at);
                }
            }
        }
    }

    /// Turns of all accounts that have tasks for members with that room.
    fn turns(&self, room: Room) -> Vec<Turns> {
        let mut all: Vec<Turns> = Vec::new();
        for batch in self.batches.values() {
            // The only task that may begin does not wait beyond the slots.
            if batch.n_ready() == 0 || room == Room::Beyond && batch.only.is_some() {
                continue;
            }
            match all.iter_mut().find(|turns| turns.account == batch.account) {
                Some(turns) => turns.batches.push(batch.id),
                None => all.push(Turns {
                    account: batch.account,
                    batches: vec![batch.id],
                    offers: VecDeque::from([Offer::Own, Offer::Unowned, Offer::Others]),
                    members: None,
                }),
            }
        }
        all
    }

    /// Assigns the account's next task to a member with that room; returns whether there was one. Goes on to the next offer only if there
    /// are `more` tasks.
    fn assign_next(
        &mut self,
        now: Duration,
        room: Room,
        more: bool,
        turns: &mut Turns,
        actions: &mut Vec<Action>,
    ) -> bool {
        turns.batches.retain(|id| self.batches[id].n_ready() > 0);
        while let Some(&offer) = turns.offers.front().filter(|_| !turns.batches.is_empty()) {
            if turns.members.is_none() && !more {
                return false;
            }
            let all = || self.with_room(turns.account, room).collect();
            let mut members = turns.members.take().unwrap_or_else(all);
            while let Some(member) = members.pop_front() {
                if let Some((batch, task)) = self.offered(member, room, offer, turns) {
                    self.assign_to(now, member, batch, task, actions);
                    members.push_back(member);
                    turns.members = Some(members);
                    return true;
                }
            }
            turns.offers.pop_front();
        }
        false
    }

    /// The task that the member is offered on the account, if it has that room.
    fn offered(
        &self,
        member: MemberId,
        room: Room,
        offer: Offer,
        turns: &Turns,
    ) -> Option<(BatchId, TaskIndex)> {
        self.members.get(member).filter(|state| state.room() == room)?;
        self.accounts.get(turns.account).filter(|ledger| ledger.admits(member))?;
        let of = |&id: &BatchId| {
            let batch = self.batches.get(&id)?;
            Some((id, batch.offer(member, offer, |task| self.may(member, batch, task))?))
        };
        turns.batches.iter().find_map(of)
    }

    /// Assigns backups of late tasks to idle members.
    fn assign_backups(&mut self, now: Duration, actions: &mut Vec<Action>) {
        let idle: Vec<MemberId> = self.members.with(Room::Slot).collect();
        if idle.is_empty() {
            return;
        }
        let mut late = self.late(now);
        for member in idle {
            while self.members.get(member).is_some_and(|state| state.room() == Room::Slot) {
                let may =
                    |&(batch, task): &(BatchId, TaskIndex)| self.may(member, &self.batches[&batch], task);
                let Some(at) = late.iter().position(may) else { break };
                let (batch, task) = late.remove(at);
                self.assign_to(now, member, batch, task, actions);
            }
        }
    }

    /// Late tasks with one holder that an idle member may have: first the tasks of suspects, then the oldest ones.
    fn late(&self, now: Duration) -> Vec<(BatchId, TaskIndex)> {
        let mut of_suspects: BTreeMap<BatchId, Vec<TaskIndex>> = BTreeMap::new();
        for lease in self.members.suspects().flat_map(|member| member.leases.keys()) {
            of_suspects.entry(lease.batch).or_default().push(lease.task);
        }
        let has_idle = |batch: &&Batch| self.with_room(batch.account, Room::Slot).next().is_some();
        let mut batches: Vec<&Batch> = self.batches.values().filter(has_idle).collect();
        batches.sort_by_key(|batch| (self.accounts.turn(batch.account), batch.id));
        let mut all = Vec::new();
        for batch in batches {
            let mut late = of_suspects.remove(&batch.id).unwrap_or_default();
            late.retain(|&task| batch.is_lone(task));
            let (timeouts, n_suspect) = (self.backup_timeout(batch), late.len());
            for &(_, task) in batch.lone.iter().take_while(|(assigned_at, _)| *assigned_at + timeouts <= now)
            {
                if !late[..n_suspect].contains(&task) {
                    late.push(task);
                }
            }
            all.extend(late.into_iter().map(|task| (batch.id, task)));
        }
        all
    }

    /// Time at which the first task becomes late that an idle member may have.
    pub(super) fn next_backup(&self) -> Option<Duration> {
        self.members.with(Room::Slot).next()?;
        let of = |batch: &Batch| {
            let wanted =
                |task| self.with_room(batch.account, Room::Slot).any(|member| self.may(member, batch, task));
            let (assigned_at, _) = batch.lone.iter().find(|(_, task)| wanted(*task))?;
            Some(*assigned_at + self.backup_timeout(batch))
        };
        self.batches.values().filter_map(of).min()
    }

    /// Age at which a lease is late. Before the first answer there is no mean age to compare with, and the timeout of silent members
    /// applies.
    fn backup_timeout(&self, batch: &Batch) -> Duration {
        match batch.answered_age.checked_div(batch.n_done as u32) {
            Some(mean) => self.timeouts.backup_after.max(mean * self.timeouts.backup_factor),
            None => self.timeouts.dead_after,
        }
    }

    fn assign_to(
        &mut self,
        now: Duration,
        member: MemberId,
        id: BatchId,
        task: TaskIndex,
        actions: &mut Vec<Action>,
    ) {
        let (Some(batch), Some(state)) = (self.batches.get_mut(&id), self.members.get(member)) else {
            return;
        };
        let alone = batch.goes_alone(task);
        let lease = batch.assign(now, Assignee { member, process: state.identity.process }, task);
        let charge = self.accounts.charge(batch.account, member);
        self.members.assign(now, member, lease, alone, charge);
        actions.push(Action::Assign { member, lease });
    }

    /// Members with that room that may hold leases of the account, by id.
    fn with_room(&self, account: AccountId, room: Room) -> Box<dyn Iterator<Item = MemberId> + '_> {
        match self.accounts.get(account).filter(|ledger| ledger.is_full()) {
            Some(ledger) => {
                let has =
                    move |&id: &MemberId| self.members.get(id).is_some_and(|state| state.room() == room);
                Box::new(ledger.holders().filter(has))
            }
            None => Box::new(self.members.with(room)),
        }
    }

    /// Whether the member may be assigned the task and has room for it.
    fn may(&self, member: MemberId, batch: &Batch, task: TaskIndex) -> bool {
        let holds_nothing = || self.members.get(member).is_some_and(|state| state.leases.is_empty());
        (!batch.goes_alone(task) || holds_nothing()) && self.may_once_empty(member, batch, task)
    }

    /// Whether the member may be assigned the task if it held nothing. A task that has failed before goes to the best member for it,
    /// which may have to become free first.
    fn may_once_empty(&self, id: MemberId, batch: &Batch, task: TaskIndex) -> bool {
        let Some(member) = self.members.get(id).filter(|_| self.admits(id, batch, task)) else {
            return false;
        };
        let computed_replica = || batch.computed_replica(id, member, task);
        if batch.tasks[task.index()].blame.is_empty() {
            return self.is_only_choice(batch.account) || !computed_replica();
        }
        let suit = self.suit(id, member, batch, task);
        suit == Suit::Fresh || self.candidates(batch, task).all(|other| suit <= other)
    }

    /// Whether the member may hold leases of the account, and does not hold the task.
    fn admits(&self, member: MemberId, batch: &Batch, task: TaskIndex) -> bool {
        self.accounts.get(batch.account).is_some_and(|ledger| ledger.admits(member))
            && !batch.is_held_by(member, task)
    }

    fn suit(&self, id: MemberId, member: &Member, batch: &Batch, task: TaskIndex) -> Suit {
        let computed_replica = batch.computed_replica(id, member, task);
        batch.tasks[task.index()].blame.suit(member, computed_replica)
    }

    /// Preferences of all members that may have the task, now or when they have room.
    fn candidates(&self, batch: &Batch, task: TaskIndex) -> impl Iterator<Item = Suit> {
        let stay = self.members.iter().filter(|(_, member)| !member.draining);
        let admitted = stay.filter(move |&(id, _)| self.admits(id, batch, task));
        admitted.map(move |(id, member)| self.suit(id, member, batch, task))
    }

    /// Whether the task is given up: [`POISON`] different workers have failed it, or it has failed that often and every present member is
    /// involved.
    pub(super) fn is_hopeless(&self, batch: &Batch, task: TaskIndex) -> bool {
        let blame = &batch.tasks[task.index()].blame;
        let could_try = |suit| matches!(suit, Suit::Fresh | Suit::ComputedReplica);
        blame.is_proof() || blame.len() >= POISON && !self.candidates(batch, task).any(could_try)
    }

    /// Whether a task and its replica must go to the same member, since there is no other.
    fn is_only_choice(&self, account: AccountId) -> bool {
        let is_for_one = |ledger: &Ledger| ledger.account.is_for_one();
        self.members.n_healthy() == 1 || self.accounts.get(account).is_some_and(is_for_one)
    }

    /// Whether the member, which has a free slot, may be assigned a free task.
    pub(super) fn could_begin(&self, member: MemberId) -> bool {
        self.batches.values().any(|batch| {
            let mut beside = batch.free.iter().filter(|&task| batch.only.is_none_or(|only| only == task));
            beside.any(|task| self.may(member, batch, task))
                || batch.ready_alone().any(|task| self.may(member, batch, task))
        })
    }
}
