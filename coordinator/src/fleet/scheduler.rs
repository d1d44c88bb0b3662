//! Which member computes which task: a pure state machine.
//!
//! In: [`Event`]s with the time at which they happened. Out: [`Action`]s for the driver. One *batch* of tasks is
//! in work at a time. No clock, no channels, no values: tasks are known by index, shards by hash.
//!
//! A task:
//!
//! ```text
//!                 Lend                        Answered: Accept
//!     free ─────────────────> lent ─────────────────────────────────> done
//!      ^                      │  ^                                      │ Answered again: Discard
//!      │  last holder lost    │  │ Lend to another (holder suspect or   │
//!      └──────────────────────┘  └ slow, and that other one idle)       v
//!                    third holder lost, or Failed: Fail          all done: BatchDone
//! ```
//!
//! An audited task has a *twin*, a task with the same answer. A member that holds or answered one of them is not lent
//! the other, unless it is the only healthy one.
//!
//! A member:
//!
//! ```text
//!     joined ──> healthy ──suspect_after──> suspect ──dead_after──> gone (Forget)
//!                 │   ^                        │
//!                 │   └───── any sign of life ─┘
//!                 ├ MemberDraining ──> draining ── MemberLost ──> gone
//!                 └ a lease is lease_deadline old ──> gone (Forget)
//! ```
//!
//! One whose name was lost again and again is on probation, and is lent one task at a time.
//!
//! Invariants ([`Scheduler::check`], after each event): a task is free, lent or done; a member holds at most
//! `slots + 1` leases; no task is free while a healthy member that may have it has a free slot, but for those that may not be begun
//! while the caller has answers enough ([`Event::Backlog`]). A result depends on
//! the task alone, so of several answers the first one counts, whoever sent it and however late.
//!
//! Placement: a shard goes to the member that computed it last, who has its forests and what it carries, or to the one that
//! came with what it carries, but never is a slot left idle for that. The one lease beyond the slots (so that the next task is there when one ends) is given
//! only while more tasks are free than there are slots: at the end of a batch it would make tasks queue behind
//! a busy member. Ties are broken by id.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use proto::lease::{BatchId, LeaseId, TaskIndex};
use rustc_hash::FxHashMap;
use shared::task::ContentHash;

use self::batch::Batch;
use self::free::Offer;
use self::members::{Member, Members, Room};
use self::record::Records;
use super::status::{MemberState, Shards};

pub use self::event::{Action, Cause, Event, Failure, Needs};

mod batch;
mod event;
mod free;
mod members;
mod record;

#[cfg(test)]
mod simulation;
#[cfg(test)]
mod story;

/// Losses of holders after which a task is not lent again.
pub const POISON: u32 = 3;

/// A worker as the coordinator sees it, from joining to leaving; a worker that returns is a new member.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct MemberId(pub u64);

/// When to give up on whom.
#[derive(Clone, Debug)]
pub struct Patience {
    /// Members to wait for before the first task is lent; at least 1.
    pub min_members: usize,
    /// How long a batch waits without any member, once there were some.
    pub no_workers_grace: Duration,
    /// Silence after which a member is lent nothing more.
    pub suspect_after: Duration,
    /// Silence after which a member is forgotten.
    pub dead_after: Duration,
    /// Age of a lease at which its holder counts as stuck, though it still gives signs of life.
    pub lease_deadline: Duration,
    /// How often waiting for members is reported.
    pub report_waiting: Duration,
    /// Least age of a lease before an idle member may compute its task as well; also needs
    /// [`Patience::backup_factor`].
    pub backup_after: Duration,
    /// Least age of such a lease, as a multiple of the mean age of answered ones.
    pub backup_factor: u32,
}

impl Default for Patience {
    fn default() -> Patience {
        Patience {
            min_members: 1,
            no_workers_grace: Duration::from_secs(30),
            suspect_after: Duration::from_secs(5),
            dead_after: Duration::from_secs(15),
            lease_deadline: Duration::from_secs(30 * 60),
            report_waiting: Duration::from_secs(10),
            backup_after: Duration::from_secs(2),
            backup_factor: 3,
        }
    }
}

/// A member that is there, at a moment.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Presence {
    /// How it is.
    pub state: MemberState,
    /// Whether it is lent one task at a time, for the losses of its name.
    pub on_probation: bool,
    /// Last sign of life.
    pub heard: Duration,
    /// Leases that it holds, of this batch or an earlier one.
    pub n_leases: usize,
    /// When the oldest of them was lent.
    pub oldest_lease: Option<Duration>,
}

/// Decides, never acts.
#[derive(Debug)]
pub struct Scheduler {
    patience: Patience,
    members: Members,
    records: Records,
    batch: Option<Batch>,
    /// The member that last computed a shard, or came with it or with what it carries; only members that are there.
    affinity: FxHashMap<ContentHash, MemberId>,
    /// Whether `min_members` were there once.
    assembled: bool,
    /// Since when there is no member, once assembled.
    empty_since: Option<Duration>,
    /// When to report waiting next, while a batch waits for members.
    report_at: Option<Duration>,
}

impl Scheduler {
    /// Without members or tasks.
    pub fn new(patience: Patience) -> Scheduler {
        Scheduler {
            members: Members::new(&patience),
            patience,
            records: Records::default(),
            batch: None,
            affinity: FxHashMap::default(),
            assembled: false,
            empty_since: None,
            report_at: None,
        }
    }

    /// Takes note of `event` and says what to do.
    pub fn handle(&mut self, now: Duration, event: Event) -> Vec<Action> {
        let actions = self.decide(now, event);
        debug_assert_eq!(self.check(), Ok(()), "after {actions:?}");
        actions
    }

    /// As [`Scheduler::handle`], and leaves checking to the caller.
    fn decide(&mut self, now: Duration, event: Event) -> Vec<Action> {
        let mut actions = Vec::new();
        match event {
            Event::MemberJoined { member, name, slots, holds, watched } => {
                self.join(now, member, name, slots, holds, watched)
            }
            Event::MemberDraining { member } => {
                self.hear(now, member);
                self.members.change(member, |member| member.draining = true);
            }
            Event::MemberLost { member, cause } => self.lose(now, member, &cause, &mut actions),
            Event::Heard { member } => self.hear(now, member),
            Event::Answered { member, lease } => self.answer(now, member, lease, &mut actions),
            Event::Failed { member, lease, detail } => {
                self.hear(now, member);
                // Only of what it was lent itself: nobody ends a job with a task that is another's.
                let held = self.give_back(member, lease).is_some();
                if held && self.is_open(lease) {
                    self.fail(Failure::Task { task: self.original(lease), detail }, &mut actions);
                }
            }
            Event::BatchSubmitted { batch, needs, twins } => {
                self.submit(now, batch, needs, twins, &mut actions)
            }
            Event::Backlog { only } => {
                if let Some(batch) = &mut self.batch {
                    batch.only = only;
                }
            }
            Event::Tick => self.tick(now, &mut actions),
        }
        self.await_members(now, &mut actions);
        self.lend(now, &mut actions);
        actions
    }

    /// When [`Event::Tick`] is due, if nothing else happens before.
    pub fn next_deadline(&self) -> Option<Duration> {
        let silence = self.members.next_silence().map(|(at, _)| at);
        let overdue =
            self.members.lent().first().map(|&(lent_at, ..)| lent_at + self.patience.lease_deadline);
        let grace = self.batch.as_ref().and(self.empty_since);
        let grace = grace.map(|since| since + self.patience.no_workers_grace);
        [silence, overdue, grace, self.report_at, self.next_backup()].into_iter().flatten().min()
    }

    /// How a member that is there is.
    pub fn member(&self, id: MemberId) -> Option<Presence> {
        let member = self.members.get(id)?;
        let state = match (member.draining, member.suspect) {
            (true, _) => MemberState::Draining,
            (false, true) => MemberState::Suspect,
            (false, false) => MemberState::Healthy,
        };
        let oldest_lease = member.leases.values().min().copied();
        let Member { on_probation, heard, .. } = *member;
        Some(Presence { state, on_probation, heard, n_leases: member.leases.len(), oldest_lease })
    }

    /// How often workers of that name were lost.
    pub fn losses(&self, name: &str) -> u32 {
        self.records.losses(name)
    }

    /// How many tasks of the batch in work are free, lent and done.
    pub fn shards(&self) -> Shards {
        let Some(batch) = &self.batch else { return Shards::default() };
        let (free, done) = (batch.free.len(), batch.n_done);
        Shards { free, lent: batch.tasks.len() - free - done, done }
    }

    /// The oldest lease of a task without an answer: when it was lent, and to whom.
    pub fn oldest_lease(&self) -> Option<(Duration, MemberId, LeaseId)> {
        self.members.lent().iter().find(|&&(.., lease)| self.is_open(lease)).copied()
    }

    fn join(
        &mut self,
        now: Duration,
        id: MemberId,
        name: String,
        slots: u32,
        holds: Vec<ContentHash>,
        watched: bool,
    ) {
        let member = Member {
            on_probation: self.records.is_on_probation(&name),
            name,
            slots: slots.max(1),
            watched,
            heard: now,
            suspect: false,
            draining: false,
            leases: BTreeMap::new(),
        };
        self.members.insert(id, member);
        self.assembled |= self.members.len() >= self.patience.min_members;
        self.empty_since = None;
        if holds.is_empty() {
            return;
        }
        for held in holds {
            self.affinity.entry(held).or_insert(id);
        }
        if let Some(batch) = &mut self.batch {
            batch.prefer_affinity(&self.affinity);
        }
    }

    fn hear(&mut self, now: Duration, id: MemberId) {
        self.members.change(id, |member| {
            member.heard = now;
            member.suspect = false;
        });
    }

    fn lose(&mut self, now: Duration, id: MemberId, cause: &Cause, actions: &mut Vec<Action>) {
        let Some(member) = self.members.remove(id) else { return };
        if self.members.is_empty() && self.assembled {
            self.empty_since = Some(now);
        }
        let counts = *cause != Cause::Left;
        if counts {
            self.records.lost(now, &member.name);
            self.review(&member.name);
        }
        self.affinity.retain(|_, holder| *holder != id);
        let Some(batch) = &mut self.batch else { return };
        batch.disown(id);
        let (open, mut poison) = (batch.id, None);
        for lease in member.leases.keys().filter(|lease| lease.batch == open) {
            let losses = batch.lose(id, lease.task, counts, &self.affinity);
            if losses >= Some(POISON) {
                poison.get_or_insert(*lease);
            }
        }
        if let Some(lease) = poison {
            self.fail(Failure::Poison { task: self.original(lease), cause: cause.clone() }, actions);
        }
    }

    /// Loses a member of whom nothing good is to be expected.
    fn forget(&mut self, now: Duration, member: MemberId, cause: Cause, actions: &mut Vec<Action>) {
        self.lose(now, member, &cause, actions);
        actions.push(Action::Forget { member, cause });
    }

    fn answer(&mut self, now: Duration, id: MemberId, lease: LeaseId, actions: &mut Vec<Action>) {
        self.hear(now, id);
        self.praise(id);
        let lent_at = self.give_back(id, lease);
        let Some(batch) = self.batch.as_mut().filter(|batch| batch.is_open(lease)) else {
            actions.push(Action::Discard { member: id, lease });
            return;
        };
        batch.accept(id, lease.task, lent_at.map_or(Duration::ZERO, |lent_at| now.saturating_sub(lent_at)));
        let task = &batch.tasks[lease.task.index()];
        if !task.audits && self.members.get(id).is_some() {
            self.affinity.insert(task.needs.shard, id);
        }
        actions.push(Action::Accept { member: id, lease });
        if batch.n_done == batch.tasks.len() {
            actions.push(Action::BatchDone { batch: batch.id });
            self.close();
        }
    }

    /// An answer shortens the probation of a member that is on one.
    fn praise(&mut self, id: MemberId) {
        let Some(member) = self.members.get(id).filter(|member| member.on_probation) else { return };
        let name = member.name.clone();
        self.records.answered(&name);
        self.review(&name);
    }

    /// Puts members of that name on probation, or takes them off it, as their record has it.
    fn review(&mut self, name: &str) {
        let on_probation = self.records.is_on_probation(name);
        let namesakes = self.members.iter().filter(|(_, member)| member.name == name);
        let ids: Vec<MemberId> = namesakes.map(|(id, _)| id).collect();
        for id in ids {
            self.members.change(id, |member| member.on_probation = on_probation);
        }
    }

    fn submit(
        &mut self,
        now: Duration,
        id: BatchId,
        needs: Vec<Needs>,
        twins: Vec<(TaskIndex, TaskIndex)>,
        actions: &mut Vec<Action>,
    ) {
        if needs.is_empty() {
            actions.push(Action::BatchDone { batch: id });
            return;
        }
        let mut batch = Batch::new(id, needs, twins);
        batch.prefer_affinity(&self.affinity);
        self.batch = Some(batch);
        self.empty_since = self.empty_since.map(|_| now);
    }

    /// Gives up on the silent and the stuck. Only a tick does, which comes when nothing else is there to be heard.
    fn tick(&mut self, now: Duration, actions: &mut Vec<Action>) {
        let late = self.next_deadline().map_or(Duration::ZERO, |due| now.saturating_sub(due));
        if late > self.patience.suspect_after / 2 {
            // This process was stopped: it heard nobody, and nobody it.
            self.members.forgive(now, late);
            if let Some(batch) = &mut self.batch {
                batch.forgive(now, late);
            }
        }
        self.suspect(now, actions);
        self.give_up_overdue(now, actions);
    }

    /// Suspects and forgets the silent.
    fn suspect(&mut self, now: Duration, actions: &mut Vec<Action>) {
        while let Some((_, id)) = self.members.next_silence().filter(|&(at, _)| at <= now) {
            let heard = self.members.get(id).map_or(now, |member| member.heard);
            let silence = now.saturating_sub(heard);
            if silence >= self.patience.dead_after {
                self.forget(now, id, Cause::Silent(silence), actions);
            } else {
                self.members.change(id, |member| member.suspect = true);
            }
        }
    }

    /// Forgets whoever lives and does not answer. A thread of this process cannot be forgotten: if its task is
    /// waited for, the batch fails, and in any case there is one slot less.
    fn give_up_overdue(&mut self, now: Duration, actions: &mut Vec<Action>) {
        while let Some((lent_at, id, lease)) = self.members.lent().first().copied() {
            let (task, age) = (self.original(lease), now.saturating_sub(lent_at));
            if age < self.patience.lease_deadline {
                return;
            }
            let cause = Cause::Overdue { task, age };
            if self.members.get(id).is_some_and(|member| member.watched) {
                self.forget(now, id, cause, actions);
                continue;
            }
            if self.is_open(lease) {
                self.fail(Failure::Overdue { task, age }, actions);
            }
            self.give_back(id, lease);
            let give_up = |member: &mut Member| {
                member.slots -= 1;
                member.slots == 0
            };
            if self.members.change(id, give_up) == Some(true) {
                self.forget(now, id, cause, actions);
            }
        }
    }

    /// Says that members are wanting, and gives up, as time has it.
    fn await_members(&mut self, now: Duration, actions: &mut Vec<Action>) {
        if self.batch.is_none() {
            return;
        }
        if let Some(since) = self.empty_since {
            let waited = now.saturating_sub(since);
            if waited >= self.patience.no_workers_grace {
                self.fail(Failure::NoMembers { waited }, actions);
                return;
            }
        }
        if self.assembled && !self.members.is_empty() {
            self.report_at = None;
        } else if self.report_at.is_none_or(|at| at <= now) {
            let just_begun = !self.assembled && self.report_at.is_none();
            self.report_at = Some(now + self.patience.report_waiting);
            let wanted = if self.assembled { 1 } else { self.patience.min_members.max(1) };
            actions.push(Action::ReportWaiting { members: self.members.len(), wanted, just_begun });
        }
    }

    /// Lends what may be begun; then, to the ones who idle, what is late.
    fn lend(&mut self, now: Duration, actions: &mut Vec<Action>) {
        if !self.assembled {
            return;
        }
        match self.batch.as_ref().and_then(|batch| batch.only) {
            Some(task) => self.lend_only(now, task, actions),
            None => self.lend_free(now, actions),
        }
        self.lend_backups(now, actions);
    }

    /// Lends until no healthy member has a free slot, or no free task that it may have.
    fn lend_free(&mut self, now: Duration, actions: &mut Vec<Action>) {
        for room in [Room::Slot, Room::Beyond] {
            for offer in [Offer::Own, Offer::Unowned, Offer::Others] {
                let enough = if room == Room::Slot { 0 } else { self.members.n_slots() };
                if self.batch.as_ref().is_some_and(|batch| batch.free.len() > enough) {
                    self.lend_round_robin(now, room, offer, actions);
                }
            }
        }
    }

    /// Lends that task, if it is free.
    fn lend_only(&mut self, now: Duration, task: TaskIndex, actions: &mut Vec<Action>) {
        let only = self.members.n_healthy() == 1;
        let Some(batch) = self.batch.as_mut().filter(|batch| batch.free.contains(task)) else { return };
        let taker = self.members.with(Room::Slot).find(|&id| batch.may(id, task, only));
        if let Some(id) = taker {
            let lease = batch.lend(now, id, task);
            self.members.lend(now, id, lease);
            actions.push(Action::Lend { member: id, lease });
        }
    }

    /// One lease to each member with that room in turn, until none takes any.
    fn lend_round_robin(&mut self, now: Duration, room: Room, offer: Offer, actions: &mut Vec<Action>) {
        let Some(batch) = &mut self.batch else { return };
        let only = self.members.n_healthy() == 1;
        let mut turns: Vec<MemberId> = self.members.with(room).collect();
        while batch.free.len() > 0 && !turns.is_empty() {
            turns.retain(|&id| {
                if self.members.get(id).is_none_or(|member| member.room() != room) {
                    return false;
                }
                let task = batch.free.offer(id, offer, |task| batch.may(id, task, only));
                let Some(task) = task else { return false };
                let lease = batch.lend(now, id, task);
                self.members.lend(now, id, lease);
                actions.push(Action::Lend { member: id, lease });
                true
            });
        }
    }

    /// Lends tasks a second time that are late, to members that have nothing else to do.
    fn lend_backups(&mut self, now: Duration, actions: &mut Vec<Action>) {
        let idle: Vec<MemberId> = self.members.with(Room::Slot).collect();
        if idle.is_empty() {
            return;
        }
        let mut late = self.late(now);
        let Some(batch) = &mut self.batch else { return };
        let only = self.members.n_healthy() == 1;
        for id in idle {
            while self.members.get(id).is_some_and(|member| member.room() == Room::Slot) {
                let Some(at) = late.iter().position(|&task| batch.may(id, task, only)) else { break };
                let lease = batch.lend(now, id, late.remove(at));
                self.members.lend(now, id, lease);
                actions.push(Action::Lend { member: id, lease });
            }
        }
    }

    /// Tasks that one member holds alone, and for too long: at once those of suspects, then the oldest.
    fn late(&self, now: Duration) -> Vec<TaskIndex> {
        let Some(batch) = &self.batch else { return Vec::new() };
        let of_suspects = self.members.suspects().flat_map(|member| member.leases.keys());
        let of_suspects = of_suspects.filter(|lease| lease.batch == batch.id && batch.is_lone(lease.task));
        let mut late: Vec<TaskIndex> = of_suspects.map(|lease| lease.task).collect();
        if let Some(patience) = self.backup_patience(batch) {
            let n_suspect = late.len();
            for &(_, task) in batch.lone.iter().take_while(|(lent_at, _)| *lent_at + patience <= now) {
                if !late[..n_suspect].contains(&task) {
                    late.push(task);
                }
            }
        }
        late
    }

    /// When the first task will be late that an idle member may have.
    fn next_backup(&self) -> Option<Duration> {
        let batch = self.batch.as_ref()?;
        let patience = self.backup_patience(batch)?;
        self.members.with(Room::Slot).next()?;
        let only = self.members.n_healthy() == 1;
        let wanted = |task| self.members.with(Room::Slot).any(|id| batch.may(id, task, only));
        let (lent_at, _) = batch.lone.iter().find(|(_, task)| wanted(*task))?;
        Some(*lent_at + patience)
    }

    /// The age at which a lease is late; none before something was answered.
    fn backup_patience(&self, batch: &Batch) -> Option<Duration> {
        let mean = batch.answered_age.checked_div(batch.n_done as u32)?;
        Some(self.patience.backup_after.max(mean * self.patience.backup_factor))
    }

    /// The task as people know it: not the one that came in for an audit, but its twin.
    fn original(&self, lease: LeaseId) -> TaskIndex {
        let batch = self.batch.as_ref().filter(|batch| batch.id == lease.batch);
        let task = batch.and_then(|batch| batch.tasks.get(lease.task.index()));
        task.filter(|task| task.audits).and_then(|task| task.twin).unwrap_or(lease.task)
    }

    /// Whether an answer to `lease` is wanted.
    fn is_open(&self, lease: LeaseId) -> bool {
        self.batch.as_ref().is_some_and(|batch| batch.is_open(lease))
    }

    /// The member no longer holds the lease; answers when it was lent, if it was.
    fn give_back(&mut self, id: MemberId, lease: LeaseId) -> Option<Duration> {
        let lent_at = self.members.give_back(id, lease)?;
        if let Some(batch) = self.batch.as_mut().filter(|batch| batch.id == lease.batch) {
            batch.give_back(id, lease.task);
        }
        Some(lent_at)
    }

    fn fail(&mut self, failure: Failure, actions: &mut Vec<Action>) {
        if let Some(batch) = &self.batch {
            actions.push(Action::Fail { batch: batch.id, failure });
            self.close();
        }
    }

    fn close(&mut self) {
        self.batch = None;
        self.report_at = None;
    }

    /// The invariants; an error names the one that does not hold.
    pub fn check(&self) -> Result<(), String> {
        let ensure = |holds: bool, what: &str| if holds { Ok(()) } else { Err(what.to_owned()) };
        self.members.check()?;
        for (id, member) in self.members.iter() {
            let within = member.leases.len() <= member.slots as usize + 1;
            ensure(within, &format!("{id:?} holds more than its slots and one"))?;
            let on_probation = self.records.is_on_probation(&member.name);
            ensure(member.on_probation == on_probation, &format!("{id:?} is not trusted as it should be"))?;
        }
        let is_there = |id: &MemberId| self.members.get(*id).is_some();
        ensure(self.affinity.values().all(is_there), "affinity to a lost member")?;
        let Some(batch) = &self.batch else { return Ok(()) };
        batch.check()?;
        let held = self.members.iter().flat_map(|(id, member)| {
            let leases = member.leases.iter().filter(|(lease, _)| lease.batch == batch.id);
            leases.map(move |(lease, &lent_at)| (lease.task, id, lent_at))
        });
        let holders = (0..)
            .map(TaskIndex)
            .zip(&batch.tasks)
            .flat_map(|(at, task)| task.holders.iter().map(move |(&holder, &lent_at)| (at, holder, lent_at)));
        let (held, holders): (BTreeSet<_>, BTreeSet<_>) = (held.collect(), holders.collect());
        ensure(held == holders, "leases of members and holders of tasks differ")?;
        let only = self.members.n_healthy() == 1;
        let may_begin = |task: &TaskIndex| batch.only.is_none_or(|only| only == *task);
        let idles = |id| batch.free.iter().filter(may_begin).any(|task| batch.may(id, task, only));
        let idle = self.assembled && self.members.with(Room::Slot).any(idles);
        ensure(!idle, "a slot is idle while a task is free that its member may have")
    }
}
