//! Present members with their leases, and indexes to find them.
//!
//! In: changes, one member at a time. Out: members by queue, silent members and the oldest lease, without a walk over all
//! members. Invariant ([`Members::check`]): the indexes agree with the members, since a member changes only within
//! [`Members::change`].

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::time::Duration;

use shared::work::lease::{LeaseId, MAX_QUEUE};

use super::accounts::Charge;
use super::broken::Broken;
use super::identity::Identity;
use super::{MemberId, Timeouts};

/// A lease of a member.
#[derive(Clone, Copy, Debug)]
pub(super) struct Lease {
    /// Time at which it was assigned.
    pub assigned_at: Duration,
    /// Time at which computation began; `None` for a lease beyond the slots, which waits until another one ends.
    pub begun: Option<Duration>,
    /// Whether the task goes alone: its holder is assigned nothing else until it ends.
    pub alone: bool,
    /// Virtual time charged to the account.
    pub charge: Charge,
}

impl Lease {
    /// Time for which it has occupied a slot.
    pub fn slot_time(&self, now: Duration) -> Duration {
        self.begun.map_or(Duration::ZERO, |begun| now.saturating_sub(begun))
    }
}

/// Maximum number of slots of a member before its first accepted answer, if there are other members. A worker that never answers
/// holds few tasks, and an honest worker computes on two threads for the duration of one task.
pub(super) const UNPROVEN_SLOTS: usize = 2;

/// A present member.
#[derive(Debug)]
pub(super) struct Member {
    /// Name that the worker chose.
    pub name: String,
    /// Identity of the worker.
    pub identity: Identity,
    /// Time at which it joined.
    pub joined: Duration,
    /// Declared number of tasks that it computes at the same time.
    pub slots: u32,
    /// Whether an answer of its process was accepted, or it is a member of this process.
    pub is_proven: bool,
    /// Whether it is the only member.
    pub is_sole: bool,
    /// Whether it is assigned one task at a time, because of losses under its name.
    pub on_probation: bool,
    /// Whether the heartbeat timeout applies.
    pub watched: bool,
    /// Time of its last message.
    pub heard: Duration,
    /// Whether it is suspect.
    pub suspect: bool,
    /// Whether it accepts no more leases.
    pub draining: bool,
    /// Whether it is reserved: assigned nothing until it holds nothing, for a task that goes alone.
    pub reserved: bool,
    /// Unanswered leases, of open and earlier batches.
    pub leases: BTreeMap<LeaseId, Lease>,
}

/// Queue of a member with a free slot, as a range for [`Members::with`].
pub(super) const FREE: Range<usize> = 0..1;

impl Member {
    /// Whether it may be assigned tasks.
    pub fn is_healthy(&self) -> bool {
        !self.suspect && !self.draining
    }

    /// Number of leases that it may hold in slots.
    pub fn limit(&self) -> usize {
        match self.slots as usize {
            _ if self.on_probation => 1,
            // The only member keeps no other waiting.
            slots if self.is_proven || self.is_sole => slots,
            slots => slots.min(UNPROVEN_SLOTS),
        }
    }

    /// Whether it holds a task that goes alone.
    pub fn is_alone(&self) -> bool {
        self.leases.values().next().is_some_and(|lease| lease.alone)
    }

    /// Number of tasks that a slot computes before a further one: 0 if a slot is free, 1 if all slots are taken and no task waits. `None` if
    /// the member has no room.
    pub fn queue(&self) -> Option<usize> {
        let longest = match () {
            () if self.on_probation => 0,
            // Threads of this process take the next task without a message.
            () if self.is_proven && self.watched => MAX_QUEUE,
            () => 1,
        };
        let queue = match self.leases.len().checked_sub(self.limit()) {
            None => 0,
            Some(n_waiting) => 1 + n_waiting.div_ceil(self.limit().max(1)),
        };
        let has_room = self.is_healthy() && !self.reserved && !self.is_alone();
        Some(queue).filter(|&queue| has_room && queue <= longest)
    }

    /// Whether it has room and a queue of such a length.
    pub fn has(&self, queue: &Range<usize>) -> bool {
        self.queue().is_some_and(|own| queue.contains(&own))
    }
}

/// All present members.
#[derive(Debug)]
pub(super) struct Members {
    suspect_after: Duration,
    dead_after: Duration,
    all: BTreeMap<MemberId, Member>,
    /// Members with room, by [`Member::queue`].
    queues: BTreeSet<(usize, MemberId)>,
    /// Suspect members.
    suspects: BTreeSet<MemberId>,
    /// Watched members, by the time at which their next heartbeat timeout expires.
    timeouts_due: BTreeSet<(Duration, MemberId)>,
    /// All leases, by the time at which they were assigned.
    assigned: BTreeSet<(Duration, MemberId, LeaseId)>,
    n_healthy: usize,
    /// Number of leases that healthy members may hold in slots.
    n_slots: usize,
}

impl Members {
    /// Creates a register without members.
    pub fn new(timeouts: &Timeouts) -> Members {
        Members {
            suspect_after: timeouts.suspect_after,
            dead_after: timeouts.dead_after,
            all: BTreeMap::new(),
            queues: BTreeSet::new(),
            suspects: BTreeSet::new(),
            timeouts_due: BTreeSet::new(),
            assigned: BTreeSet::new(),
            n_healthy: 0,
            n_slots: 0,
        }
    }

    /// Adds a member.
    pub fn insert(&mut self, id: MemberId, member: Member) {
        self.all.insert(id, member);
        self.list(id);
        self.review_sole();
    }

    /// Removes a member; returns it with its leases.
    pub fn remove(&mut self, id: MemberId) -> Option<Member> {
        self.unlist(id);
        let member = self.all.remove(&id)?;
        for (&id_of_lease, lease) in &member.leases {
            self.assigned.remove(&(lease.assigned_at, id, id_of_lease));
        }
        self.review_sole();
        Some(member)
    }

    /// Updates `is_sole`, which can change for at most two members.
    fn review_sole(&mut self) {
        let is_sole = self.all.len() == 1;
        let ids: Vec<MemberId> =
            if self.all.len() <= 2 { self.all.keys().copied().collect() } else { vec![] };
        for id in ids {
            self.change(id, |member| member.is_sole = is_sole);
        }
    }

    /// Changes fields of a present member, other than its leases, and updates the indexes.
    pub fn change<R>(&mut self, id: MemberId, change: impl FnOnce(&mut Member) -> R) -> Option<R> {
        self.unlist(id);
        let result = self.all.get_mut(&id).map(change);
        self.list(id);
        result
    }

    /// Adds a lease to the member.
    pub fn assign(&mut self, now: Duration, id: MemberId, lease: LeaseId, alone: bool, charge: Charge) {
        let assigned = self.change(id, |member| {
            let begun = (member.leases.len() < member.limit()).then_some(now);
            member.leases.insert(lease, Lease { assigned_at: now, begun, alone, charge });
        });
        if assigned.is_some() {
            self.assigned.insert((now, id, lease));
        }
    }

    /// Removes the lease from the member; returns it if the member held it.
    pub fn give_back(&mut self, now: Duration, id: MemberId, lease: LeaseId) -> Option<Lease> {
        let give_back = |member: &mut Member| {
            let ended = member.leases.remove(&lease)?;
            let mut waiting = member.leases.values_mut().filter(|lease| lease.begun.is_none());
            if let (Some(_), Some(next)) = (ended.begun, waiting.next()) {
                next.begun = Some(now);
            }
            Some(ended)
        };
        let ended = self.change(id, give_back).flatten()?;
        self.assigned.remove(&(ended.assigned_at, id, lease));
        Some(ended)
    }

    /// Shifts all times by `time`, for which this process was stopped.
    pub fn shift_times(&mut self, now: Duration, time: Duration) {
        let (ids, mut assigned): (Vec<MemberId>, _) = (self.all.keys().copied().collect(), BTreeSet::new());
        for id in ids {
            self.change(id, |member| {
                member.heard = now;
                for (&id_of_lease, lease) in &mut member.leases {
                    let later = |at: Duration| now.min(at + time);
                    (lease.assigned_at, lease.begun) = (later(lease.assigned_at), lease.begun.map(later));
                    assigned.insert((lease.assigned_at, id, id_of_lease));
                }
            });
        }
        self.assigned = assigned;
    }

    /// The member with that id.
    pub fn get(&self, id: MemberId) -> Option<&Member> {
        self.all.get(&id)
    }

    /// All members, by id.
    pub fn iter(&self) -> impl Iterator<Item = (MemberId, &Member)> {
        self.all.iter().map(|(&id, member)| (id, member))
    }

    /// Number of members.
    pub fn len(&self) -> usize {
        self.all.len()
    }

    /// Whether there are no members.
    pub fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    /// Members with room whose [`Member::queue`] is in that range, the shortest first, then by id.
    pub fn with(&self, queue: Range<usize>) -> impl Iterator<Item = MemberId> {
        let first = |queue: usize| (queue, MemberId(0));
        self.queues.range(first(queue.start)..first(queue.end)).map(|&(_, id)| id)
    }

    /// Suspect members, by id.
    pub fn suspects(&self) -> impl Iterator<Item = &Member> {
        self.suspects.iter().filter_map(|id| self.all.get(id))
    }

    /// Number of members that may be assigned tasks.
    pub fn n_healthy(&self) -> usize {
        self.n_healthy
    }

    /// Number of leases that healthy members may hold in slots.
    pub fn n_slots(&self) -> usize {
        self.n_slots
    }

    /// The next heartbeat timeout: its time and its member.
    pub fn next_timeout(&self) -> Option<(Duration, MemberId)> {
        self.timeouts_due.first().copied()
    }

    /// All leases, the oldest first.
    pub fn assigned(&self) -> &BTreeSet<(Duration, MemberId, LeaseId)> {
        &self.assigned
    }

    fn list(&mut self, id: MemberId) {
        let Some(member) = self.all.get(&id) else { return };
        self.queues.extend(member.queue().map(|queue| (queue, id)));
        if member.is_healthy() {
            self.n_healthy += 1;
            self.n_slots += member.limit();
        }
        if member.suspect {
            self.suspects.insert(id);
        }
        self.timeouts_due.extend(self.timeout_of(member).map(|at| (at, id)));
    }

    fn unlist(&mut self, id: MemberId) {
        let Some(member) = self.all.get(&id) else { return };
        let timeout = self.timeout_of(member);
        if member.is_healthy() {
            self.n_healthy -= 1;
            self.n_slots -= member.limit();
        }
        if let Some(queue) = member.queue() {
            self.queues.remove(&(queue, id));
        }
        self.suspects.remove(&id);
        if let Some(at) = timeout {
            self.timeouts_due.remove(&(at, id));
        }
    }

    fn timeout_of(&self, member: &Member) -> Option<Duration> {
        let timeouts = if member.suspect { self.dead_after } else { self.suspect_after };
        member.watched.then(|| member.heard + timeouts)
    }

    /// Checks the indexes; an error names the one that is wrong.
    pub fn check(&self) -> Result<(), Broken> {
        let those = |is: &dyn Fn(&Member) -> bool| -> BTreeSet<MemberId> {
            self.all.iter().filter(|(_, member)| is(member)).map(|(&id, _)| id).collect()
        };
        let healthy = || self.all.values().filter(|member| member.is_healthy());
        let queues = self.all.iter().filter_map(|(&id, member)| Some((member.queue()?, id)));
        let timeouts_due = self.all.iter().filter_map(|(&id, member)| Some((self.timeout_of(member)?, id)));
        let assigned = self.all.iter().flat_map(|(&id, member)| {
            member.leases.iter().map(move |(&id_of_lease, lease)| (lease.assigned_at, id, id_of_lease))
        });
        let orders = [
            ("sole member", self.all.values().all(|member| member.is_sole == (self.all.len() == 1))),
            ("queues", self.queues == queues.collect()),
            ("suspects", self.suspects == those(&|member| member.suspect)),
            ("healthy members", self.n_healthy == healthy().count()),
            ("slots", self.n_slots == healthy().map(Member::limit).sum::<usize>()),
            ("timeouts_due", self.timeouts_due == timeouts_due.collect()),
            ("leases by age", self.assigned == assigned.collect()),
        ];
        match orders.iter().find(|(_, holds)| !holds) {
            Some((order, _)) => Err(format!("the index of {order} does not match the members").into()),
            None => Ok(()),
        }
    }
}
