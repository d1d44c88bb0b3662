//! Present members with their leases, and indexes to find them.
//!
//! In: changes, one member at a time. Out: members by queue, silent members, the oldest lease, and the leases that are overdue or not stopped,
//! without a walk over all members. Invariant ([`Members::check`]): the indexes agree with the members, since a member changes only within
//! [`Members::change`].

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::time::Duration;

use grammaton::work::lease::{LeaseId, MAX_QUEUE};

use super::accounts::Charge;
use super::broken::Broken;
use super::identity::{Identity, Machine};
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
    /// Time at which it was withdrawn. It occupies its slot until the member confirms.
    pub withdrawn: Option<Duration>,
    /// Charge to the account; `None` for a lease of an earlier connection that is not needed any more.
    pub charge: Option<Charge>,
}

impl Lease {
    /// The lease, unless it is withdrawn.
    fn current(&self) -> Option<&Lease> {
        Some(self).filter(|lease| lease.withdrawn.is_none())
    }

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
    /// Unanswered leases, of open and earlier batches, and withdrawn ones that it may still compute.
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
        let longest = if self.on_probation {
            0
        } else if self.is_proven && self.watched {
            // Threads of this process take the next task without a message.
            MAX_QUEUE
        } else {
            1
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

/// Leases with their members, by time.
pub(super) type LeasesByTime = BTreeSet<(Duration, MemberId, LeaseId)>;

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
    /// Leases that are not withdrawn, by the time at which they were assigned.
    assigned: LeasesByTime,
    /// Leases that are not withdrawn, by the time at which computation began.
    begun: LeasesByTime,
    /// Withdrawn leases, by the time at which they were withdrawn.
    withdrawn: LeasesByTime,
    /// Number of healthy members on each machine that has any.
    machines: BTreeMap<Machine, usize>,
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
            begun: BTreeSet::new(),
            withdrawn: BTreeSet::new(),
            machines: BTreeMap::new(),
            n_healthy: 0,
            n_slots: 0,
        }
    }

    /// Adds a member.
    pub fn insert(&mut self, id: MemberId, member: Member) {
        self.count_machine(&member.identity.machine, false, member.is_healthy());
        for (&lease, state) in &member.leases {
            self.list_lease(id, lease, state);
        }
        self.all.insert(id, member);
        self.list(id);
        self.review_sole();
    }

    /// Removes a member; returns it with its leases.
    pub fn remove(&mut self, id: MemberId) -> Option<Member> {
        self.unlist(id);
        let member = self.all.remove(&id)?;
        self.count_machine(&member.identity.machine, member.is_healthy(), false);
        for (&lease, state) in &member.leases {
            self.unlist_lease(id, lease, state);
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
        let member = self.all.get_mut(&id)?;
        let before = member.is_healthy();
        let result = change(member);
        let after = member.is_healthy();
        if before != after {
            let machine = member.identity.machine.clone();
            self.count_machine(&machine, before, after);
        }
        self.list(id);
        Some(result)
    }

    /// Adds a lease to the member, which begins if a slot is free.
    pub fn assign(&mut self, now: Duration, id: MemberId, lease: LeaseId, alone: bool, charge: Charge) {
        let state = Lease { assigned_at: now, begun: None, alone, withdrawn: None, charge: Some(charge) };
        self.add(now, id, lease, state);
    }

    /// Adds a lease of an earlier connection, assigned at some time. If it is not needed any more, it is withdrawn at once.
    pub fn adopt(
        &mut self,
        now: Duration,
        id: MemberId,
        lease: LeaseId,
        assigned_at: Duration,
        charge: Option<Charge>,
    ) {
        let withdrawn = charge.is_none().then_some(now);
        let state = Lease { assigned_at, begun: None, alone: false, withdrawn, charge };
        self.add(assigned_at, id, lease, state);
    }

    fn add(&mut self, begun: Duration, id: MemberId, lease: LeaseId, state: Lease) {
        let state = self.change(id, |member| {
            let begun = (member.leases.len() < member.limit()).then_some(begun);
            let state = Lease { begun, ..state };
            member.leases.insert(lease, state);
            state
        });
        if let Some(state) = state {
            self.list_lease(id, lease, &state);
        }
    }

    /// Marks the lease as withdrawn. Returns whether the member holds it, and it was not withdrawn before.
    pub fn withdraw(&mut self, now: Duration, id: MemberId, lease: LeaseId) -> bool {
        let withdraw = |member: &mut Member| {
            let state = member.leases.get_mut(&lease).filter(|state| state.withdrawn.is_none())?;
            let before = *state;
            state.withdrawn = Some(now);
            Some((before, *state))
        };
        let Some((before, after)) = self.change(id, withdraw).flatten() else { return false };
        self.unlist_lease(id, lease, &before);
        self.list_lease(id, lease, &after);
        true
    }

    /// Removes the lease from the member; returns it if the member held it.
    pub fn give_back(&mut self, now: Duration, id: MemberId, lease: LeaseId) -> Option<Lease> {
        let give_back = |member: &mut Member| {
            let ended = member.leases.remove(&lease)?;
            let mut waiting = member.leases.iter_mut().filter(|(_, lease)| lease.begun.is_none());
            let next = waiting.next().filter(|_| ended.begun.is_some()).map(|(&id_of_lease, next)| {
                next.begun = Some(now);
                (id_of_lease, *next)
            });
            Some((ended, next))
        };
        let (ended, next) = self.change(id, give_back).flatten()?;
        self.unlist_lease(id, lease, &ended);
        if let Some((next, state)) = next {
            self.list_lease(id, next, &state);
        }
        Some(ended)
    }

    /// Shifts all times by `time`, for which this process was stopped.
    pub fn shift_times(&mut self, now: Duration, time: Duration) {
        let later = |at: Duration| now.min(at + time);
        let ids: Vec<MemberId> = self.all.keys().copied().collect();
        for leases in [&mut self.assigned, &mut self.begun, &mut self.withdrawn] {
            leases.clear();
        }
        for id in ids {
            let leases = self.change(id, |member| {
                member.heard = now;
                for lease in member.leases.values_mut() {
                    lease.assigned_at = later(lease.assigned_at);
                    (lease.begun, lease.withdrawn) = (lease.begun.map(later), lease.withdrawn.map(later));
                }
                member.leases.clone()
            });
            for (lease, state) in leases.into_iter().flatten() {
                self.list_lease(id, lease, &state);
            }
        }
    }

    /// The member with that id.
    pub fn get(&self, id: MemberId) -> Option<&Member> {
        self.all.get(&id)
    }

    /// All members, by id.
    pub fn iter(&self) -> impl Iterator<Item = (MemberId, &Member)> {
        self.all.iter().map(|(&id, member)| (id, member))
    }

    /// Healthy members, with the number of leases that each may hold in slots.
    pub fn slots(&self) -> BTreeMap<MemberId, usize> {
        let healthy = self.all.iter().filter(|(_, member)| member.is_healthy());
        healthy.map(|(&id, member)| (id, member.limit())).collect()
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

    /// Leases that are not withdrawn, the oldest first.
    pub fn assigned(&self) -> &LeasesByTime {
        &self.assigned
    }

    /// The lease that has been computed for the longest time, of those that are not withdrawn.
    pub fn longest(&self) -> Option<(Duration, MemberId, LeaseId)> {
        self.begun.first().copied()
    }

    /// The lease that was withdrawn first.
    pub fn first_withdrawn(&self) -> Option<(Duration, MemberId, LeaseId)> {
        self.withdrawn.first().copied()
    }

    /// Number of machines with a healthy member.
    pub fn n_machines(&self) -> usize {
        self.machines.len()
    }

    /// Updates the number of healthy members on a machine, when a member becomes healthy or is healthy no more.
    fn count_machine(&mut self, machine: &Machine, before: bool, after: bool) {
        let n_healthy = self.machines.entry(machine.clone()).or_default();
        *n_healthy = *n_healthy + usize::from(after) - usize::from(before);
        if *n_healthy == 0 {
            self.machines.remove(machine);
        }
    }

    fn list_lease(&mut self, id: MemberId, lease: LeaseId, state: &Lease) {
        match state.withdrawn {
            Some(withdrawn) => drop(self.withdrawn.insert((withdrawn, id, lease))),
            None => {
                self.assigned.insert((state.assigned_at, id, lease));
                self.begun.extend(state.begun.map(|begun| (begun, id, lease)));
            }
        }
    }

    fn unlist_lease(&mut self, id: MemberId, lease: LeaseId, state: &Lease) {
        match state.withdrawn {
            Some(withdrawn) => drop(self.withdrawn.remove(&(withdrawn, id, lease))),
            None => {
                self.assigned.remove(&(state.assigned_at, id, lease));
                if let Some(begun) = state.begun {
                    self.begun.remove(&(begun, id, lease));
                }
            }
        }
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
        let by_time = |time: fn(&Lease) -> Option<Duration>| -> LeasesByTime {
            let leases = self.all.iter().flat_map(|(&id, member)| {
                member.leases.iter().map(move |(&lease, state)| (time(state), id, lease))
            });
            leases.filter_map(|(at, id, lease)| Some((at?, id, lease))).collect()
        };
        let mut machines: BTreeMap<Machine, usize> = BTreeMap::new();
        healthy().for_each(|member| *machines.entry(member.identity.machine.clone()).or_default() += 1);
        let orders = [
            ("sole member", self.all.values().all(|member| member.is_sole == (self.all.len() == 1))),
            ("queues", self.queues == queues.collect()),
            ("suspects", self.suspects == those(&|member| member.suspect)),
            ("healthy members", self.n_healthy == healthy().count()),
            ("slots", self.n_slots == healthy().map(Member::limit).sum::<usize>()),
            ("timeouts_due", self.timeouts_due == timeouts_due.collect()),
            ("leases", self.assigned == by_time(|lease| lease.current().map(|lease| lease.assigned_at))),
            ("begun leases", self.begun == by_time(|lease| lease.current()?.begun)),
            ("withdrawn leases", self.withdrawn == by_time(|lease| lease.withdrawn)),
            ("machines", self.machines == machines),
        ];
        match orders.iter().find(|(_, holds)| !holds) {
            Some((order, _)) => Err(format!("the index of {order} does not match the members").into()),
            None => Ok(()),
        }
    }
}
