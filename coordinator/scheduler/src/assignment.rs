//! Who is assigned what: whenever something happened, until no slot is idle for which there is a task.
//!
//! First the tasks that go alone; then free ones, to slots, and beyond them if there are plenty; then, to whoever idles still, what is late.
//! Cost: that of the leases given, and a walk over open batches; one over members only where slots stay idle, or somebody is to be set aside.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use shared::work::lease::{BatchId, TaskIndex};

use super::accounts::{AccountId, Ledger};
use super::batch::{Assignee, Batch};
use super::blame::Suit;
use super::free::Offer;
use super::members::{Member, Room};
use super::{Action, MemberId, POISON, Scheduler};

/// The way of an account's tasks through the members: to each that has room one in turn, until none takes any; offer after offer.
struct Turns {
    account: AccountId,
    /// Those of its batches that have something to assign.
    batches: Vec<BatchId>,
    /// The offer that is made, and those to come.
    offers: VecDeque<Offer>,
    /// Whose turn it is; nobody was asked yet if there is none.
    members: Option<VecDeque<MemberId>>,
}

impl Scheduler {
    /// Lends whatever can be assigned.
    pub(super) fn assign(&mut self, now: Duration, actions: &mut Vec<Action>) {
        if !self.assembled || self.batches.is_empty() {
            return;
        }
        let with_alone = |batch: &&Batch| batch.aside.is_some() || !batch.alone.is_empty();
        let with_alone: Vec<BatchId> =
            self.batches.values().filter(with_alone).map(|batch| batch.id).collect();
        for batch in with_alone {
            self.lend_alone(now, batch, actions);
        }
        self.lend_free(now, actions);
        self.lend_backups(now, actions);
    }

    /// Lends tasks of the batch that go alone to members that hold nothing; if there are not enough of these, one is set aside until it
    /// does.
    fn lend_alone(&mut self, now: Duration, id: BatchId, actions: &mut Vec<Action>) {
        let batch = &self.batches[&id];
        let (tasks, aside): (Vec<TaskIndex>, _) = (batch.ready_alone().collect(), batch.aside);
        self.set_aside(id, None);
        let mut left = None;
        for task in tasks {
            let batch = &self.batches[&id];
            let taker = self.members.with(Room::Slot).find(|&member| self.may(member, batch, task));
            match taker {
                Some(member) => self.lend_to(now, member, id, task, actions),
                None => left = left.or(Some(task)),
            }
        }
        let Some(task) = left else { return };
        let batch = &self.batches[&id];
        let could = |member: MemberId, state: &Member| {
            let may = self.may_once_empty(member, batch, task);
            state.is_healthy() && !state.aside && !state.is_alone() && may
        };
        let again = aside.filter(|&aside| self.members.get(aside).is_some_and(|state| could(aside, state)));
        let fewest = || {
            let all = self.members.iter().filter(|&(member, state)| could(member, state));
            all.min_by_key(|(member, state)| (state.leases.len(), *member)).map(|(member, _)| member)
        };
        let aside = again.or_else(fewest);
        self.set_aside(id, aside);
    }

    /// That member, and no other, is assigned nothing for the sake of the batch.
    fn set_aside(&mut self, id: BatchId, aside: Option<MemberId>) {
        let Some(batch) = self.batches.get_mut(&id) else { return };
        if let Some(before) = std::mem::replace(&mut batch.aside, aside) {
            self.members.change(before, |member| member.aside = false);
        }
        if let Some(aside) = aside {
            self.members.change(aside, |member| member.aside = true);
        }
    }

    /// Lends until no healthy member has a free slot, or no free task that it may have.
    fn lend_free(&mut self, now: Duration, actions: &mut Vec<Action>) {
        let mut n_ready: usize = self.batches.values().map(Batch::n_ready).sum();
        let n_slots = self.members.n_slots();
        for (room, enough) in [(Room::Slot, 0), (Room::Beyond, n_slots)] {
            if n_ready <= enough || self.members.with(room).next().is_none() {
                continue;
            }
            let mut all = self.turns(room);
            self.accounts.queue(|id| all.iter().any(|turns| turns.account == id), n_slots);
            while let Some(at) = (0..all.len()).min_by_key(|&at| self.accounts.turn(all[at].account)) {
                if self.lend_next(now, room, n_ready > enough, &mut all[at], actions) {
                    n_ready -= 1;
                } else {
                    all.remove(at);
                }
            }
        }
    }

    /// The turns of all accounts that have something to assign to members with that room.
    fn turns(&self, room: Room) -> Vec<Turns> {
        let mut all: Vec<Turns> = Vec::new();
        for batch in self.batches.values() {
            // The only task that may be begun does not wait beyond the slots.
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

    /// Lends the account's next task to a member with that room; whether there was one. Another offer is begun only where there are `more`
    /// tasks than enough.
    fn lend_next(
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
                    self.lend_to(now, member, batch, task, actions);
                    members.push_back(member);
                    turns.members = Some(members);
                    return true;
                }
            }
            turns.offers.pop_front();
        }
        false
    }

    /// What the member is offered on the account, if it has that room.
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

    /// Lends tasks a second time that are late, to members that have nothing else to do.
    fn lend_backups(&mut self, now: Duration, actions: &mut Vec<Action>) {
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
                self.lend_to(now, member, batch, task, actions);
            }
        }
    }

    /// Tasks that one member holds alone, and for too long, that somebody who idles might have; by whose turn it is: at once those of
    /// suspects, then the oldest.
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
            let (timeouts, n_suspect) = (self.backup_patience(batch), late.len());
            for &(_, task) in batch.lone.iter().take_while(|(lent_at, _)| *lent_at + timeouts <= now) {
                if !late[..n_suspect].contains(&task) {
                    late.push(task);
                }
            }
            all.extend(late.into_iter().map(|task| (batch.id, task)));
        }
        all
    }

    /// When the first task will be late that an idle member may have.
    pub(super) fn next_backup(&self) -> Option<Duration> {
        self.members.with(Room::Slot).next()?;
        let of = |batch: &Batch| {
            let wanted =
                |task| self.with_room(batch.account, Room::Slot).any(|member| self.may(member, batch, task));
            let (lent_at, _) = batch.lone.iter().find(|(_, task)| wanted(*task))?;
            Some(*lent_at + self.backup_patience(batch))
        };
        self.batches.values().filter_map(of).min()
    }

    /// The age at which a lease is late. Before anything was answered there is nothing to compare with: a member that gives signs of life
    /// and no answer has as long as one that is silent.
    fn backup_patience(&self, batch: &Batch) -> Duration {
        match batch.answered_age.checked_div(batch.n_done as u32) {
            Some(mean) => self.timeouts.backup_after.max(mean * self.timeouts.backup_factor),
            None => self.timeouts.dead_after,
        }
    }

    fn lend_to(
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

    /// The members with that room that may hold leases of the account, by id.
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

    /// Whether the member may be assigned the task, if it has room for it.
    fn may(&self, member: MemberId, batch: &Batch, task: TaskIndex) -> bool {
        let holds_nothing = || self.members.get(member).is_some_and(|state| state.leases.is_empty());
        (!batch.goes_alone(task) || holds_nothing()) && self.may_once_empty(member, batch, task)
    }

    /// The same if it held nothing. A task that was failed before goes to the best member for it, which may have to become free
    /// first.
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

    /// How well the members suit the task that stay and may have it, now or once they have room.
    fn candidates(&self, batch: &Batch, task: TaskIndex) -> impl Iterator<Item = Suit> {
        let stay = self.members.iter().filter(|(_, member)| !member.draining);
        let admitted = stay.filter(move |&(id, _)| self.admits(id, batch, task));
        admitted.map(move |(id, member)| self.suit(id, member, batch, task))
    }

    /// Whether there is no use in trying the task again: [`POISON`] different workers failed it, or it failed that often and each member
    /// that is there had to do with it.
    pub(super) fn is_hopeless(&self, batch: &Batch, task: TaskIndex) -> bool {
        let blame = &batch.tasks[task.index()].blame;
        let could_try = |suit| matches!(suit, Suit::Fresh | Suit::ComputedReplica);
        blame.is_proof() || blame.len() >= POISON && !self.candidates(batch, task).any(could_try)
    }

    /// Whether a task and its replica must go to one member, since there is no other.
    fn is_only_choice(&self, account: AccountId) -> bool {
        let is_for_one = |ledger: &Ledger| ledger.account.is_for_one();
        self.members.n_healthy() == 1 || self.accounts.get(account).is_some_and(is_for_one)
    }

    /// Whether the member, which has a free slot, could be assigned a free task.
    pub(super) fn could_begin(&self, member: MemberId) -> bool {
        self.batches.values().any(|batch| {
            let mut beside = batch.free.iter().filter(|&task| batch.only.is_none_or(|only| only == task));
            beside.any(|task| self.may(member, batch, task))
                || batch.ready_alone().any(|task| self.may(member, batch, task))
        })
    }
}
