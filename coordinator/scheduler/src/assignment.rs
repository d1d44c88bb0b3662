//! Assignment of tasks to members, after each event, until no slot is idle for which there is a task.
//!
//! First the tasks that go alone; then free tasks, to slots, and beyond them if there are plenty; then backups of late tasks, to members
//! that are still idle. Cost: proportional to the leases given, and a walk over open batches; a walk over members only if slots stay
//! idle, or a member is to be reserved.

use std::collections::{BTreeMap, VecDeque};
use std::ops::Range;
use std::time::Duration;

use grammaton::work::lease::{BatchId, TaskIndex};

use super::accounts::{AccountId, Ledger};
use super::batch::{Assignee, Batch};
use super::blame::{Involvement, Kinship, MemberPreference};
use super::free::Offer;
use super::members::{FREE, Member};
use super::{Action, MemberId, POISON, Scheduler};

/// Slot time of the tasks that may wait for a slot, besides the one that always may: some times the time of a message and its answer.
const AHEAD: Duration = Duration::from_millis(4);

/// Round-robin of an account's tasks over the members with room, until none takes any, offer after offer.
struct RoundRobin {
    account: AccountId,
    /// Queues of the members that it is offered to.
    queue: Range<usize>,
    /// Number of free tasks, in all batches, that are left for slots.
    left: usize,
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
            let taker = self.members.with(FREE).find(|&member| self.may(member, batch, task));
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
        for to_slots in [true, false] {
            let mut all = if n_ready > 0 { self.turns(to_slots, n_ready) } else { Vec::new() };
            all.retain(|turns| {
                n_ready > turns.left && self.members.with(turns.queue.clone()).next().is_some()
            });
            if all.is_empty() {
                continue;
            }
            self.accounts.queue(|id| all.iter().any(|turns| turns.account == id), n_slots);
            while let Some(at) = (0..all.len()).min_by_key(|&at| self.accounts.turn(all[at].account)) {
                let more = n_ready > all[at].left;
                if self.assign_next(now, more, &mut all[at], actions) {
                    n_ready -= 1;
                } else {
                    all.remove(at);
                }
            }
        }
    }

    /// RoundRobin of all accounts that have tasks, for free slots or to wait, of `n_ready` free tasks.
    fn turns(&self, to_slots: bool, n_ready: usize) -> Vec<RoundRobin> {
        let mut all: Vec<RoundRobin> = Vec::new();
        for batch in self.batches.values() {
            // The only task that may begin does not wait beyond the slots.
            if batch.n_ready() == 0 || !to_slots && batch.only.is_some() {
                continue;
            }
            let (queue, left) = if to_slots { (FREE, 0) } else { self.waiting(batch.account, n_ready) };
            match all.iter_mut().find(|turns| turns.account == batch.account) {
                Some(turns) => turns.batches.push(batch.id),
                None => all.push(RoundRobin {
                    account: batch.account,
                    queue,
                    left,
                    batches: vec![batch.id],
                    offers: VecDeque::from([Offer::Own, Offer::Unowned, Offer::Others]),
                    members: None,
                }),
            }
        }
        all
    }

    /// Queues in which tasks of the account may wait, and the number of free tasks that are left for slots. Of short tasks a slot is assigned
    /// its share of half of the free ones at a time, and none is left: waiting for a short task takes no longer than a message.
    fn waiting(&self, account: AccountId, n_ready: usize) -> (Range<usize>, usize) {
        let n_slots = self.members.n_slots().max(1);
        let mean = self.accounts.get(account).map_or(AHEAD, Ledger::estimate).as_nanos().max(1);
        match (AHEAD.as_nanos() / mean) as usize {
            0 | 1 => (1..2, n_slots),
            n_short => (1..2 + n_short.min(n_ready / (2 * n_slots)), 0),
        }
    }

    /// Assigns the account's next task to a member whose turn it is; returns whether there was one. Goes on to the next offer only if there
    /// are `more` tasks.
    fn assign_next(
        &mut self,
        now: Duration,
        more: bool,
        turns: &mut RoundRobin,
        actions: &mut Vec<Action>,
    ) -> bool {
        turns.batches.retain(|id| self.batches[id].n_ready() > 0);
        while let Some(&offer) = turns.offers.front().filter(|_| !turns.batches.is_empty()) {
            if turns.members.is_none() && !more {
                return false;
            }
            let all = || self.with_room(turns.account, turns.queue.clone()).collect();
            let mut members = turns.members.take().unwrap_or_else(all);
            while let Some(member) = members.pop_front() {
                if let Some((batch, task)) = self.offered(member, offer, turns) {
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

    /// The task that the member is offered on the account, if it has such a queue.
    fn offered(&self, member: MemberId, offer: Offer, turns: &RoundRobin) -> Option<(BatchId, TaskIndex)> {
        self.members.get(member).filter(|state| state.has(&turns.queue))?;
        self.accounts.get(turns.account).filter(|ledger| ledger.admits(member))?;
        let of = |&id: &BatchId| {
            let batch = self.batches.get(&id)?;
            Some((id, batch.offer(member, offer, |task| self.may(member, batch, task))?))
        };
        turns.batches.iter().find_map(of)
    }

    /// Assigns backups of late tasks to idle members.
    fn assign_backups(&mut self, now: Duration, actions: &mut Vec<Action>) {
        let idle: Vec<MemberId> = self.members.with(FREE).collect();
        if idle.is_empty() {
            return;
        }
        let mut late = self.late(now);
        for member in idle {
            while self.members.get(member).is_some_and(|state| state.has(&FREE)) {
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
        let has_idle = |batch: &&Batch| self.with_room(batch.account, FREE).next().is_some();
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
        self.members.with(FREE).next()?;
        let of = |batch: &Batch| {
            let wanted =
                |task| self.with_room(batch.account, FREE).any(|member| self.may(member, batch, task));
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
        let lease = batch.assign(Assignee { member, worker: state.identity.clone(), at: now }, task);
        let charge = self.accounts.charge(batch.account, member);
        self.members.assign(now, member, lease, alone, charge);
        actions.push(Action::Assign { member, lease });
    }

    /// Members with room and such a queue that may hold leases of the account.
    fn with_room(&self, account: AccountId, queue: Range<usize>) -> Box<dyn Iterator<Item = MemberId> + '_> {
        match self.accounts.get(account).filter(|ledger| ledger.is_full()) {
            Some(ledger) => {
                let has = move |&id: &MemberId| self.members.get(id).is_some_and(|state| state.has(&queue));
                Box::new(ledger.holders().filter(has))
            }
            None => Box::new(self.members.with(queue)),
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
        if batch.tasks[task.index()].blame.is_empty() {
            return match batch.kinship(&member.identity, task) {
                Kinship::None => true,
                Kinship::SameMachine => self.members.n_machines() == 1 || self.is_only_choice(batch.account),
                Kinship::SameProcess => self.is_only_choice(batch.account),
            };
        }
        let preference = preference(member, batch, task);
        self.candidates(batch, task).all(|other| preference <= other)
    }

    /// Whether the member may hold leases of the account, and does not hold the task.
    fn admits(&self, member: MemberId, batch: &Batch, task: TaskIndex) -> bool {
        self.accounts.get(batch.account).is_some_and(|ledger| ledger.admits(member))
            && !batch.is_held_by(member, task)
    }

    /// Preferences of all members that could have the task once they have room, and the account has.
    fn candidates(&self, batch: &Batch, task: TaskIndex) -> impl Iterator<Item = MemberPreference> {
        let stay = self.members.iter().filter(|(_, member)| !member.draining);
        let others = stay.filter(move |&(id, _)| !batch.is_held_by(id, task));
        others.map(move |(_, member)| preference(member, batch, task))
    }

    /// Whether the task is given up: its failures are proof, or it has failed [`POISON`] times and no present member could try it that is not
    /// involved.
    pub(super) fn is_hopeless(&self, batch: &Batch, task: TaskIndex) -> bool {
        let blame = &batch.tasks[task.index()].blame;
        let could_try = |preference: MemberPreference| preference.involvement <= Involvement::Neighbour;
        blame.is_proof() || blame.len() >= POISON && !self.candidates(batch, task).any(could_try)
    }

    /// Whether a member could try the task whose machine has not failed it.
    pub(super) fn has_uninvolved(&self, batch: &Batch, task: TaskIndex) -> bool {
        self.candidates(batch, task).any(|preference| preference.involvement == Involvement::None)
    }

    /// Whether another worker could confirm an answer of that member.
    pub(super) fn could_confirm(&self, member: MemberId, account: AccountId) -> bool {
        let own = self.members.get(member).is_some_and(Member::is_healthy);
        self.members.n_healthy() > usize::from(own) && !self.is_for_one(account)
    }

    /// Whether a task and its replica must go to the same member, since there is no other.
    fn is_only_choice(&self, account: AccountId) -> bool {
        self.members.n_healthy() == 1 || self.is_for_one(account)
    }

    fn is_for_one(&self, account: AccountId) -> bool {
        self.accounts.get(account).is_some_and(|ledger| ledger.account.is_for_one())
    }

    /// Whether the member, which has a free slot, may be assigned a free task.
    pub(super) fn could_begin(&self, member: MemberId) -> bool {
        self.batches.values().any(|batch| {
            let mut beside = batch.free.iter().filter(|&task| batch.may_begin(task));
            beside.any(|task| self.may(member, batch, task))
                || batch.ready_alone().any(|task| self.may(member, batch, task))
        })
    }
}

fn preference(member: &Member, batch: &Batch, task: TaskIndex) -> MemberPreference {
    let involvement = batch.tasks[task.index()].blame.involvement(member);
    MemberPreference { involvement, kinship: batch.kinship(&member.identity, task) }
}

#[cfg(test)]
mod tests {
    use grammaton::work::lease::LeaseId;
    use grammaton::work::task::ContentHash;

    use super::*;
    use crate::{Account, Event, Identity, Machine, Needs, Process, Timeouts};

    /// A scheduler with members of so many slots, and its time.
    struct World {
        scheduler: Scheduler,
        now: Duration,
        n_batches: u64,
    }

    impl World {
        fn new(n_members: u64, slots: u32) -> World {
            let mut world =
                World { scheduler: Scheduler::new(Timeouts::default()), now: Duration::ZERO, n_batches: 0 };
            for member in (0..n_members).map(MemberId) {
                let (name, holds) = (format!("{member:?}"), Vec::new());
                let identity =
                    Identity { process: Process::Unnamed(member), machine: Machine("here".into()) };
                world.happen(Event::MemberJoined {
                    member,
                    name,
                    identity,
                    slots,
                    holds,
                    running: Vec::new(),
                    watched: true,
                });
            }
            world
        }

        fn happen(&mut self, event: Event) -> Vec<(MemberId, LeaseId)> {
            let assigned = |action| match action {
                Action::Assign { member, lease } => Some((member, lease)),
                _ => None,
            };
            self.scheduler.handle(self.now, event).into_iter().filter_map(assigned).collect()
        }

        /// Submits a batch of new shards; returns the leases given at once.
        fn submit(&mut self, n_tasks: u32) -> Vec<(MemberId, LeaseId)> {
            let (batch, account) = (BatchId(self.n_batches), Account::default());
            self.n_batches += 1;
            let needs = |task: u32| {
                let mut hash = [0; 32];
                hash[..4].copy_from_slice(&task.to_le_bytes());
                Needs::shard(ContentHash(hash))
            };
            let needs = (0..n_tasks).map(needs).collect();
            self.happen(Event::BatchSubmitted { batch, account, needs, replicas: Vec::new() })
        }

        /// Answers the leases, and those that follow, in the order in which they were given, each after `takes`. Returns their number.
        fn answer_all(&mut self, given: Vec<(MemberId, LeaseId)>, takes: Duration) -> u32 {
            let (mut open, mut n_answered) = (VecDeque::from(given), 0);
            while let Some((member, lease)) = open.pop_front() {
                self.now += takes;
                n_answered += 1;
                open.extend(self.happen(Event::Answered { member, lease, claims: false }));
            }
            n_answered
        }
    }

    /// Long tasks are assigned one beyond the slots; short ones, some milliseconds of them and at most half of them, in equal numbers.
    #[test]
    fn the_queue_of_a_slot_is_short_in_time_and_leaves_half_of_the_tasks() {
        for (n_members, slots) in [(1, 1), (2, 1), (2, 3), (5, 2)] {
            for micros in [50, 300, 1000, 1500, 3000, 10_000, 1_000_000] {
                let (n_slots, takes) = (n_members as u32 * slots, Duration::from_micros(micros));
                for n_tasks in [1, 2, 7, 30, 200] {
                    let mut world = World::new(n_members, slots);
                    // All members have answered, and the mean duration is known: all slots compute, and one answer follows another.
                    let first = world.submit(300);
                    assert_eq!(world.answer_all(first, takes / n_slots), 300);
                    let given = world.submit(n_tasks);
                    let held = (0..n_members).map(MemberId);
                    let held = held.map(|id| given.iter().filter(|(member, _)| *member == id).count() as u32);
                    let held: Vec<u32> = held.collect();
                    let (least, most) = (held.iter().min().unwrap(), held.iter().max().unwrap());
                    let case = format!("{n_tasks} tasks of {takes:?}, {slots} slots: {held:?}");
                    assert!(given.len() as u32 >= n_tasks.min(n_slots), "a slot is idle; {case}");
                    assert!(most - least <= slots.max(1), "{case}");
                    let waiting = most.saturating_sub(slots + 1);
                    assert!(waiting == 0 || takes * (waiting / slots) <= AHEAD, "{case}");
                    let n_rest = n_tasks.saturating_sub(n_slots);
                    assert!(given.len() as u32 <= n_slots + n_rest.min(n_rest / 2 + n_slots), "{case}");
                    if takes > AHEAD / 2 {
                        assert!(*most <= slots + 1, "{case}");
                    }
                    assert_eq!(world.answer_all(given, takes / n_slots), n_tasks, "{case}");
                }
            }
        }
    }
}
