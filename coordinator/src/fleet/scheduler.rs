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
//! A member:
//!
//! ```text
//!     joined ──> healthy ──suspect_after──> suspect ──dead_after──> gone (Forget)
//!                 │   ^                        │
//!                 │   └───── any sign of life ─┘
//!                 └ MemberDraining ──> draining ── MemberLost ──> gone
//! ```
//!
//! Invariants ([`Scheduler::check`], after each event): a task is free, lent or done; a member holds at most
//! `slots + 1` leases; no task is free while a healthy member has a free slot. A result depends on the task
//! alone, so of several answers the first one counts, whoever sent it and however late.
//!
//! Placement: a shard goes to the member that computed it last, whose forests are cached, but never is a slot
//! left idle for that. The one lease beyond the slots (so that the next task is there when one ends) is given
//! only while more tasks are free than there are slots: at the end of a batch it would make tasks queue behind
//! a busy member. Ties are broken by id.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use proto::lease::{BatchId, LeaseId, TaskIndex};
use rustc_hash::FxHashMap;
use shared::task::ContentHash;

use self::batch::{Batch, Offer};
use super::status::{MemberState, Shards};

mod batch;

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
            report_waiting: Duration::from_secs(10),
            backup_after: Duration::from_secs(2),
            backup_factor: 3,
        }
    }
}

/// Why a member is gone.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum Cause {
    /// Nothing was heard of it.
    #[error("silent for {0:?}")]
    Silent(Duration),
    /// The connection ended, or the process did.
    #[error("connection lost: {0}")]
    Disconnected(String),
    /// It sent what no worker of this version sends.
    #[error("broke the protocol: {0}")]
    Protocol(String),
    /// It lives, and does not answer.
    #[error("still computing task {} after {age:?}", task.0)]
    Overdue {
        /// The task that it was lent.
        task: TaskIndex,
        /// Since then.
        age: Duration,
    },
    /// It left after answering all it had.
    #[error("left")]
    Left,
}

impl Cause {
    /// A word for it, to count by.
    pub fn kind(&self) -> &'static str {
        match self {
            Cause::Silent(_) => "silent",
            Cause::Disconnected(_) => "disconnected",
            Cause::Protocol(_) => "protocol",
            Cause::Overdue { .. } => "overdue",
            Cause::Left => "left",
        }
    }
}

/// Why a batch has no result.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum Failure {
    /// The task fails wherever it is computed.
    #[error("task {}: {detail}", task.0)]
    Task {
        /// The task.
        task: TaskIndex,
        /// Why.
        detail: String,
    },
    /// The task's holders were lost again and again.
    #[error(
        "task {} was lost with its worker {POISON} times, last because the worker {cause}; look at its \
         sentences and at the workers' memory", task.0
    )]
    Poison {
        /// The task.
        task: TaskIndex,
        /// Why the last holder was lost.
        cause: Cause,
    },
    /// Nobody is left to compute.
    #[error("no workers for {waited:?}; start some and run the job again")]
    NoMembers {
        /// How long there were none.
        waited: Duration,
    },
}

/// What happened.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Event {
    /// A worker registered.
    MemberJoined {
        /// Its id, never used before.
        member: MemberId,
        /// Tasks that it computes at the same time, ≥ 1.
        slots: u32,
        /// Shards that it kept from an earlier connection.
        holds: Vec<ContentHash>,
        /// Whether silence means something: threads of this process are never suspect.
        watched: bool,
    },
    /// It takes no more leases.
    MemberDraining {
        /// The member.
        member: MemberId,
    },
    /// It is gone.
    MemberLost {
        /// The member.
        member: MemberId,
        /// Why.
        cause: Cause,
    },
    /// A sign of life.
    Heard {
        /// The member.
        member: MemberId,
    },
    /// A valid answer arrived.
    Answered {
        /// From whom; may be gone by now.
        member: MemberId,
        /// To which lease; its batch may be over.
        lease: LeaseId,
    },
    /// The task cannot be computed, by anybody.
    Failed {
        /// The member.
        member: MemberId,
        /// The lease.
        lease: LeaseId,
        /// Why.
        detail: String,
    },
    /// Tasks to compute; the batch before is over.
    BatchSubmitted {
        /// Its id, never used before.
        batch: BatchId,
        /// The shard of each task.
        shards: Vec<ContentHash>,
    },
    /// Time passed, and nothing else happened.
    Tick,
}

/// What to do.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Action {
    /// Send the task to the member.
    Lend {
        /// The member.
        member: MemberId,
        /// The lease.
        lease: LeaseId,
    },
    /// This answer counts.
    Accept {
        /// Who gave it.
        member: MemberId,
        /// The lease.
        lease: LeaseId,
    },
    /// This answer does not count: there was one before, or its batch is over.
    Discard {
        /// Who gave it.
        member: MemberId,
        /// The lease.
        lease: LeaseId,
    },
    /// Close the member's connection.
    Forget {
        /// The member.
        member: MemberId,
        /// Why.
        cause: Cause,
    },
    /// Say that there are not enough members.
    ReportWaiting {
        /// Members there.
        members: usize,
        /// Members needed.
        wanted: usize,
        /// Whether it is the first time, before there ever were enough: how a run with remote members begins.
        just_begun: bool,
    },
    /// Every task has its answer.
    BatchDone {
        /// The batch.
        batch: BatchId,
    },
    /// The batch is over without a result.
    Fail {
        /// The batch.
        batch: BatchId,
        /// Why.
        failure: Failure,
    },
}

/// A member that is there, at a moment.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Presence {
    /// Last sign of life.
    pub heard: Duration,
    /// Leases that it holds, of this batch or an earlier one.
    pub n_leases: usize,
    /// When the oldest of them was lent.
    pub oldest_lease: Option<Duration>,
}

#[derive(Debug)]
struct Member {
    slots: u32,
    watched: bool,
    /// Last sign of life.
    heard: Duration,
    suspect: bool,
    draining: bool,
    /// Lent and not answered, of this batch or an earlier one, with the time of lending.
    leases: BTreeMap<LeaseId, Duration>,
}

impl Member {
    /// Whether it may hold `limit` leases and holds fewer.
    fn takes(&self, limit: u32) -> bool {
        !self.suspect && !self.draining && self.leases.len() < limit as usize
    }
}

/// Decides, never acts.
#[derive(Debug)]
pub struct Scheduler {
    patience: Patience,
    members: BTreeMap<MemberId, Member>,
    batch: Option<Batch>,
    /// The member that last computed a shard; only members that are there.
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
            patience,
            members: BTreeMap::new(),
            batch: None,
            affinity: FxHashMap::default(),
            assembled: false,
            empty_since: None,
            report_at: None,
        }
    }

    /// Takes note of `event` and says what to do.
    pub fn handle(&mut self, now: Duration, event: Event) -> Vec<Action> {
        let mut actions = Vec::new();
        match event {
            Event::MemberJoined { member, slots, holds, watched } => {
                self.join(now, member, slots, holds, watched)
            }
            Event::MemberDraining { member } => {
                self.hear(now, member);
                if let Some(member) = self.members.get_mut(&member) {
                    member.draining = true;
                }
            }
            Event::MemberLost { member, cause } => self.lose(now, member, &cause, &mut actions),
            Event::Heard { member } => self.hear(now, member),
            Event::Answered { member, lease } => self.answer(now, member, lease, &mut actions),
            Event::Failed { member, lease, detail } => {
                self.hear(now, member);
                self.give_back(member, lease);
                if self.is_open(lease) {
                    self.fail(Failure::Task { task: lease.task, detail }, &mut actions);
                }
            }
            Event::BatchSubmitted { batch, shards } => self.submit(now, batch, shards, &mut actions),
            Event::Tick => self.suspect(now, &mut actions),
        }
        self.await_members(now, &mut actions);
        self.lend(now, &mut actions);
        debug_assert_eq!(self.check(), Ok(()), "after {actions:?}");
        actions
    }

    /// When [`Event::Tick`] is due, if nothing else happens before.
    pub fn next_deadline(&self) -> Option<Duration> {
        let silence = self.members.values().filter(|member| member.watched).map(|member| {
            let patience = &self.patience;
            member.heard + if member.suspect { patience.dead_after } else { patience.suspect_after }
        });
        let grace = self.batch.as_ref().and(self.empty_since);
        let grace = grace.map(|since| since + self.patience.no_workers_grace);
        let backups = self.backups().filter_map(|(_, at)| at);
        silence.chain(grace).chain(self.report_at).chain(backups).min()
    }

    /// How a member that is there is.
    pub fn state(&self, member: MemberId) -> MemberState {
        match self.members.get(&member) {
            Some(member) if member.draining => MemberState::Draining,
            Some(member) if member.suspect => MemberState::Suspect,
            _ => MemberState::Healthy,
        }
    }

    /// What a member that is there holds, and when it was heard.
    pub fn member(&self, member: MemberId) -> Option<Presence> {
        let member = self.members.get(&member)?;
        let oldest_lease = member.leases.values().min().copied();
        Some(Presence { heard: member.heard, n_leases: member.leases.len(), oldest_lease })
    }

    /// How many tasks of the batch in work are free, lent and done.
    pub fn shards(&self) -> Shards {
        let Some(batch) = &self.batch else { return Shards::default() };
        let (free, done) = (batch.n_free, batch.n_done);
        Shards { free, lent: batch.tasks.len() - free - done, done }
    }

    /// The oldest lease of a task without an answer: when it was lent, and to whom.
    pub fn oldest_lease(&self) -> Option<(Duration, MemberId, LeaseId)> {
        let leases = self.members.iter().flat_map(|(&id, member)| {
            member.leases.iter().map(move |(&lease, &lent_at)| (lent_at, id, lease))
        });
        leases.filter(|&(_, _, lease)| self.is_open(lease)).min()
    }

    fn join(&mut self, now: Duration, id: MemberId, slots: u32, holds: Vec<ContentHash>, watched: bool) {
        let leases = BTreeMap::new();
        let member =
            Member { slots: slots.max(1), watched, heard: now, suspect: false, draining: false, leases };
        self.members.insert(id, member);
        self.assembled |= self.members.len() >= self.patience.min_members;
        self.empty_since = None;
        for shard in holds {
            self.affinity.entry(shard).or_insert(id);
        }
        if let Some(batch) = &mut self.batch {
            batch.prefer_affinity(&self.affinity);
        }
    }

    fn hear(&mut self, now: Duration, id: MemberId) {
        if let Some(member) = self.members.get_mut(&id) {
            member.heard = now;
            member.suspect = false;
        }
    }

    fn lose(&mut self, now: Duration, id: MemberId, cause: &Cause, actions: &mut Vec<Action>) {
        let Some(member) = self.members.remove(&id) else { return };
        if self.members.is_empty() && self.assembled {
            self.empty_since = Some(now);
        }
        self.affinity.retain(|_, holder| *holder != id);
        let Some(batch) = &mut self.batch else { return };
        batch.disown(id);
        let (open, mut poison) = (batch.id, None);
        for lease in member.leases.keys().filter(|lease| lease.batch == open) {
            let task = &mut batch.tasks[lease.task.index()];
            task.holders.remove(&id);
            task.losses += u32::from(*cause != Cause::Left);
            if task.done || !task.holders.is_empty() {
                continue;
            }
            if task.losses >= POISON {
                poison.get_or_insert(lease.task);
            }
            batch.release(lease.task, &self.affinity);
        }
        if let Some(task) = poison {
            self.fail(Failure::Poison { task, cause: cause.clone() }, actions);
        }
    }

    fn answer(&mut self, now: Duration, id: MemberId, lease: LeaseId, actions: &mut Vec<Action>) {
        self.hear(now, id);
        let lent_at = self.give_back(id, lease);
        if !self.is_open(lease) {
            actions.push(Action::Discard { member: id, lease });
            return;
        }
        let Some(batch) = &mut self.batch else { return };
        batch.take(lease.task);
        batch.n_done += 1;
        batch.answered_age += lent_at.map_or(Duration::ZERO, |lent_at| now.saturating_sub(lent_at));
        let task = &mut batch.tasks[lease.task.index()];
        task.done = true;
        if self.members.contains_key(&id) {
            self.affinity.insert(task.shard, id);
        }
        actions.push(Action::Accept { member: id, lease });
        if batch.n_done == batch.tasks.len() {
            actions.push(Action::BatchDone { batch: batch.id });
            self.close();
        }
    }

    fn submit(&mut self, now: Duration, id: BatchId, shards: Vec<ContentHash>, actions: &mut Vec<Action>) {
        if shards.is_empty() {
            actions.push(Action::BatchDone { batch: id });
            return;
        }
        let mut batch = Batch::new(id, shards);
        batch.prefer_affinity(&self.affinity);
        self.batch = Some(batch);
        self.empty_since = self.empty_since.map(|_| now);
    }

    /// Suspects and forgets the silent. Only a tick does, which comes when nothing else is there to be heard.
    fn suspect(&mut self, now: Duration, actions: &mut Vec<Action>) {
        let (suspect_after, dead_after) = (self.patience.suspect_after, self.patience.dead_after);
        let late = self.next_deadline().map_or(Duration::ZERO, |due| now.saturating_sub(due));
        let mut dead = Vec::new();
        for (&id, member) in self.members.iter_mut().filter(|(_, member)| member.watched) {
            if late > suspect_after / 2 {
                member.heard = now; // this process was stopped, and heard nobody
            }
            let silence = now.saturating_sub(member.heard);
            member.suspect |= silence >= suspect_after;
            if silence >= dead_after {
                dead.push((id, Cause::Silent(silence)));
            }
        }
        for (member, cause) in dead {
            self.lose(now, member, &cause, actions);
            actions.push(Action::Forget { member, cause });
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

    /// Lends until no healthy member has a free slot, or no task is free; then again to the ones who idle.
    fn lend(&mut self, now: Duration, actions: &mut Vec<Action>) {
        if !self.assembled {
            return;
        }
        for offer in [Offer::Own, Offer::Unowned, Offer::Others] {
            self.lend_round_robin(now, 0, offer, actions);
        }
        let healthy = self.members.values().filter(|member| !member.suspect && !member.draining);
        let n_slots: usize = healthy.map(|member| member.slots as usize).sum();
        for offer in [Offer::Own, Offer::Unowned, Offer::Others] {
            if self.batch.as_ref().is_some_and(|batch| batch.n_free > n_slots) {
                self.lend_round_robin(now, 1, offer, actions);
            }
        }
        self.lend_backups(now, actions);
    }

    /// One lease to each member in turn, until none takes any.
    fn lend_round_robin(&mut self, now: Duration, beyond: u32, offer: Offer, actions: &mut Vec<Action>) {
        let Some(batch) = &mut self.batch else { return };
        let mut turns: Vec<MemberId> = self.members.keys().copied().collect();
        while batch.n_free > 0 && !turns.is_empty() {
            turns.retain(|&id| {
                let Some(member) = self.members.get_mut(&id) else { return false };
                if !member.takes(member.slots + beyond) {
                    return false;
                }
                let Some(task) = batch.offer(id, offer) else { return false };
                actions.push(batch.lend(now, id, member, task));
                true
            });
        }
    }

    /// Lends tasks a second time that are late, to members that have nothing else to do.
    fn lend_backups(&mut self, now: Duration, actions: &mut Vec<Action>) {
        let is_late = |&(_, at): &(TaskIndex, Option<Duration>)| at.is_none_or(|at| at <= now);
        let mut late: Vec<TaskIndex> = self.backups().filter(is_late).map(|(task, _)| task).collect();
        let Some(batch) = &mut self.batch else { return };
        for (&id, member) in &mut self.members {
            while member.takes(member.slots) {
                let other = |task: &TaskIndex| !batch.tasks[task.index()].holders.contains(&id);
                let Some(at) = late.iter().position(other) else { break };
                actions.push(batch.lend(now, id, member, late.remove(at)));
            }
        }
    }

    /// Tasks with one holder that an idle member could compute as well, and from when on it should; at once
    /// if the holder is suspect. Empty while a task is free.
    fn backups(&self) -> impl Iterator<Item = (TaskIndex, Option<Duration>)> {
        let batch = self.batch.as_ref().filter(|batch| batch.n_free == 0);
        let idle = self.members.iter().filter(|(_, member)| batch.is_some() && member.takes(member.slots));
        let idle: Vec<MemberId> = idle.map(|(&id, _)| id).take(2).collect();
        // Nothing is late before something was answered.
        let patience = batch.filter(|batch| batch.n_done > 0).map(|batch| {
            let mean = batch.answered_age / batch.n_done as u32;
            self.patience.backup_after.max(mean * self.patience.backup_factor)
        });
        let holders = self.members.iter().filter(move |(id, _)| idle.iter().any(|idle| idle != *id));
        holders.flat_map(move |(_, holder)| {
            let leases = holder.leases.iter().filter(move |(lease, _)| {
                batch.is_some_and(|batch| batch.id == lease.batch && batch.has_one_holder(lease.task))
            });
            leases.filter_map(move |(lease, &lent_at)| match patience {
                _ if holder.suspect => Some((lease.task, None)),
                Some(patience) => Some((lease.task, Some(lent_at + patience))),
                None => None,
            })
        })
    }

    /// Whether an answer to `lease` is wanted.
    fn is_open(&self, lease: LeaseId) -> bool {
        self.batch.as_ref().is_some_and(|batch| {
            batch.id == lease.batch && batch.tasks.get(lease.task.index()).is_some_and(|task| !task.done)
        })
    }

    /// The member no longer holds the lease; answers when it was lent, if it was.
    fn give_back(&mut self, id: MemberId, lease: LeaseId) -> Option<Duration> {
        let lent_at = self.members.get_mut(&id)?.leases.remove(&lease)?;
        if let Some(batch) = self.batch.as_mut().filter(|batch| batch.id == lease.batch) {
            batch.tasks[lease.task.index()].holders.remove(&id);
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
        for (id, member) in &self.members {
            let within = member.leases.len() <= member.slots as usize + 1;
            ensure(within, &format!("{id:?} holds more than its slots and one"))?;
        }
        ensure(self.affinity.values().all(|id| self.members.contains_key(id)), "affinity to a lost member")?;
        let Some(batch) = &self.batch else { return Ok(()) };
        let free: BTreeSet<TaskIndex> = batch.free.values().flatten().copied().collect();
        ensure(free.len() == batch.n_free, "free tasks are not counted, or are in two sets")?;
        ensure(batch.free.values().all(|tasks| !tasks.is_empty()), "an empty set of free tasks")?;
        for (at, task) in batch.tasks.iter().enumerate() {
            let is_free = free.contains(&TaskIndex(at as u32));
            let states = u32::from(is_free) + u32::from(task.done);
            let lent = u32::from(!task.done && !task.holders.is_empty());
            ensure(states + lent == 1, &format!("task {at} is not in one state"))?;
        }
        let held = self.members.iter().flat_map(|(&id, member)| {
            let leases = member.leases.keys().filter(|lease| lease.batch == batch.id);
            leases.map(move |lease| (lease.task, id))
        });
        let holders =
            batch.tasks.iter().enumerate().flat_map(|(at, task)| {
                task.holders.iter().map(move |&holder| (TaskIndex(at as u32), holder))
            });
        let (held, holders): (BTreeSet<_>, BTreeSet<_>) = (held.collect(), holders.collect());
        ensure(held == holders, "leases of members and holders of tasks differ")?;
        let done = batch.tasks.iter().filter(|task| task.done).count();
        ensure(done == batch.n_done && done < batch.tasks.len(), "done tasks are not counted")?;
        let idle = self.members.values().any(|member| member.takes(member.slots));
        ensure(!(self.assembled && idle && batch.n_free > 0), "a slot is idle while a task is free")
    }
}
