//! The members that are there, each with its leases, and the orders in which they are looked for.
//!
//! In: changes, one member at a time. Out: who idles, who is silent for too long, which lease is the oldest, without
//! a walk over all of them. Invariant ([`Members::check`]): the orders hold exactly the members that they name,
//! since a member changes only within [`Members::change`].

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use shared::work::lease::LeaseId;

use super::accounts::Charge;
use super::identity::Identity;
use super::{MemberId, Timeouts};

/// A lease, at its holder.
#[derive(Clone, Copy, Debug)]
pub(super) struct Lease {
    /// When it was assigned.
    pub lent_at: Duration,
    /// Since when it is computed; that beyond the slots waits until another one ends.
    pub begun: Option<Duration>,
    /// Whether its holder is assigned nothing else until it ends.
    pub alone: bool,
    /// What it was charged.
    pub charge: Charge,
}

impl Lease {
    /// How long it took a slot.
    pub fn slot_time(&self, now: Duration) -> Duration {
        self.begun.map_or(Duration::ZERO, |begun| now.saturating_sub(begun))
    }
}

/// Slots of a member beside others before its first answer that counts, however many it claims: one that never answers holds few tasks,
/// and an honest one computes on two threads for the time of one task.
pub(super) const UNPROVEN_SLOTS: usize = 2;

/// A worker as the scheduler sees it.
#[derive(Debug)]
pub(super) struct Member {
    /// What it calls itself.
    pub name: String,
    /// What tells it from others.
    pub identity: Identity,
    /// When it joined.
    pub joined: Duration,
    /// Tasks that it computes at the same time, as it says.
    pub slots: u32,
    /// Whether an answer of its process counted, or it is a member of this process.
    pub is_proven: bool,
    /// Whether there is no other member.
    pub is_sole: bool,
    /// Whether it is assigned one task at a time, for the losses of its name.
    pub on_probation: bool,
    /// Whether silence means something.
    pub watched: bool,
    /// Last sign of life.
    pub heard: Duration,
    /// Whether it was silent for a while.
    pub suspect: bool,
    /// Whether it takes no more leases.
    pub draining: bool,
    /// Whether it is assigned nothing until it holds nothing, for a task that goes alone.
    pub aside: bool,
    /// Assigned and not answered, of open batches or of earlier ones; one at most waits.
    pub leases: BTreeMap<LeaseId, Lease>,
}

/// For what a member has room.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Room {
    /// A task to compute now.
    Slot,
    /// The one task that waits until another one ends.
    Beyond,
    /// Nothing.
    Nothing,
}

impl Member {
    /// Whether it may be assigned anything.
    pub fn is_healthy(&self) -> bool {
        !self.suspect && !self.draining
    }

    /// Leases that it may hold for its slots.
    pub fn limit(&self) -> usize {
        match self.slots as usize {
            _ if self.on_probation => 1,
            // A member that is alone keeps no other waiting.
            slots if self.is_proven || self.is_sole => slots,
            slots => slots.min(UNPROVEN_SLOTS),
        }
    }

    /// Whether it holds a lease beside which there is no other.
    pub fn is_alone(&self) -> bool {
        self.leases.values().next().is_some_and(|lease| lease.alone)
    }

    /// For what it has room at this moment.
    pub fn room(&self) -> Room {
        match self.leases.len() {
            _ if !self.is_healthy() || self.aside || self.is_alone() => Room::Nothing,
            held if held < self.limit() => Room::Slot,
            held if held == self.limit() && !self.on_probation => Room::Beyond,
            _ => Room::Nothing,
        }
    }
}

/// All members that are there.
#[derive(Debug)]
pub(super) struct Members {
    suspect_after: Duration,
    dead_after: Duration,
    all: BTreeMap<MemberId, Member>,
    /// Those that have room for [`Room::Slot`].
    idle: BTreeSet<MemberId>,
    /// Those that have room for [`Room::Beyond`].
    busy: BTreeSet<MemberId>,
    /// Those that are suspect.
    suspects: BTreeSet<MemberId>,
    /// The watched ones, by the time at which further silence makes them suspect, or dead.
    silences: BTreeSet<(Duration, MemberId)>,
    /// All leases, by the time of assigning.
    assigned: BTreeSet<(Duration, MemberId, LeaseId)>,
    n_healthy: usize,
    /// Leases that the healthy ones may hold for their slots.
    n_slots: usize,
}

impl Members {
    /// Nobody.
    pub fn new(timeouts: &Timeouts) -> Members {
        Members {
            suspect_after: timeouts.suspect_after,
            dead_after: timeouts.dead_after,
            all: BTreeMap::new(),
            idle: BTreeSet::new(),
            busy: BTreeSet::new(),
            suspects: BTreeSet::new(),
            silences: BTreeSet::new(),
            assigned: BTreeSet::new(),
            n_healthy: 0,
            n_slots: 0,
        }
    }

    /// One more.
    pub fn insert(&mut self, id: MemberId, member: Member) {
        self.all.insert(id, member);
        self.list(id);
        self.review_sole();
    }

    /// One less; gives it back with its leases.
    pub fn remove(&mut self, id: MemberId) -> Option<Member> {
        self.unlist(id);
        let member = self.all.remove(&id)?;
        for (&id_of_lease, lease) in &member.leases {
            self.assigned.remove(&(lease.lent_at, id, id_of_lease));
        }
        self.review_sole();
        Some(member)
    }

    /// Notes whether a member is the only one: no more than two can have become so, or ceased to be.
    fn review_sole(&mut self) {
        let is_sole = self.all.len() == 1;
        let ids: Vec<MemberId> =
            if self.all.len() <= 2 { self.all.keys().copied().collect() } else { vec![] };
        for id in ids {
            self.change(id, |member| member.is_sole = is_sole);
        }
    }

    /// Changes a member that is there in whatever decides on its place; leases have ways of their own.
    pub fn change<R>(&mut self, id: MemberId, change: impl FnOnce(&mut Member) -> R) -> Option<R> {
        self.unlist(id);
        let result = self.all.get_mut(&id).map(change);
        self.list(id);
        result
    }

    /// The member holds the lease from now on.
    pub fn assign(&mut self, now: Duration, id: MemberId, lease: LeaseId, alone: bool, charge: Charge) {
        let assigned = self.change(id, |member| {
            let begun = (member.leases.len() < member.limit()).then_some(now);
            member.leases.insert(lease, Lease { lent_at: now, begun, alone, charge });
        });
        if assigned.is_some() {
            self.assigned.insert((now, id, lease));
        }
    }

    /// The member no longer holds the lease; gives it back, if it did.
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
        self.assigned.remove(&(ended.lent_at, id, lease));
        Some(ended)
    }

    /// Nobody was heard, and no lease grew older, in the `time` before `now`: this process was stopped.
    pub fn forgive(&mut self, now: Duration, time: Duration) {
        let (ids, mut assigned): (Vec<MemberId>, _) = (self.all.keys().copied().collect(), BTreeSet::new());
        for id in ids {
            self.change(id, |member| {
                member.heard = now;
                for (&id_of_lease, lease) in &mut member.leases {
                    let later = |at: Duration| now.min(at + time);
                    (lease.lent_at, lease.begun) = (later(lease.lent_at), lease.begun.map(later));
                    assigned.insert((lease.lent_at, id, id_of_lease));
                }
            });
        }
        self.assigned = assigned;
    }

    /// The member of that id.
    pub fn get(&self, id: MemberId) -> Option<&Member> {
        self.all.get(&id)
    }

    /// Everybody, by id.
    pub fn iter(&self) -> impl Iterator<Item = (MemberId, &Member)> {
        self.all.iter().map(|(&id, member)| (id, member))
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.all.len()
    }

    /// Whether nobody is there.
    pub fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    /// Those that have `room`, by id.
    pub fn with(&self, room: Room) -> impl Iterator<Item = MemberId> {
        let listed = match room {
            Room::Slot => Some(&self.idle),
            Room::Beyond => Some(&self.busy),
            Room::Nothing => None,
        };
        listed.into_iter().flatten().copied()
    }

    /// Those that were silent for a while, by id.
    pub fn suspects(&self) -> impl Iterator<Item = &Member> {
        self.suspects.iter().filter_map(|id| self.all.get(id))
    }

    /// Number of members that may be assigned something.
    pub fn n_healthy(&self) -> usize {
        self.n_healthy
    }

    /// Number of leases that they may hold for their slots.
    pub fn n_slots(&self) -> usize {
        self.n_slots
    }

    /// Who will have been silent for too long next, and when.
    pub fn next_silence(&self) -> Option<(Duration, MemberId)> {
        self.silences.first().copied()
    }

    /// All leases, the oldest first.
    pub fn assigned(&self) -> &BTreeSet<(Duration, MemberId, LeaseId)> {
        &self.assigned
    }

    fn list(&mut self, id: MemberId) {
        let Some(member) = self.all.get(&id) else { return };
        match member.room() {
            Room::Slot => self.idle.insert(id),
            Room::Beyond => self.busy.insert(id),
            Room::Nothing => false,
        };
        if member.is_healthy() {
            self.n_healthy += 1;
            self.n_slots += member.limit();
        }
        if member.suspect {
            self.suspects.insert(id);
        }
        self.silences.extend(self.silence_of(member).map(|at| (at, id)));
    }

    fn unlist(&mut self, id: MemberId) {
        let Some(member) = self.all.get(&id) else { return };
        let silence = self.silence_of(member);
        if member.is_healthy() {
            self.n_healthy -= 1;
            self.n_slots -= member.limit();
        }
        self.idle.remove(&id);
        self.busy.remove(&id);
        self.suspects.remove(&id);
        if let Some(at) = silence {
            self.silences.remove(&(at, id));
        }
    }

    fn silence_of(&self, member: &Member) -> Option<Duration> {
        let timeouts = if member.suspect { self.dead_after } else { self.suspect_after };
        member.watched.then(|| member.heard + timeouts)
    }

    /// Whether the orders hold what they should; an error names the one that does not.
    pub fn check(&self) -> Result<(), String> {
        let those = |is: &dyn Fn(&Member) -> bool| -> BTreeSet<MemberId> {
            self.all.iter().filter(|(_, member)| is(member)).map(|(&id, _)| id).collect()
        };
        let healthy = || self.all.values().filter(|member| member.is_healthy());
        let silences = self.all.iter().filter_map(|(&id, member)| Some((self.silence_of(member)?, id)));
        let assigned = self.all.iter().flat_map(|(&id, member)| {
            member.leases.iter().map(move |(&id_of_lease, lease)| (lease.lent_at, id, id_of_lease))
        });
        let orders = [
            ("sole member", self.all.values().all(|member| member.is_sole == (self.all.len() == 1))),
            ("idle members", self.idle == those(&|member| member.room() == Room::Slot)),
            ("busy members", self.busy == those(&|member| member.room() == Room::Beyond)),
            ("suspects", self.suspects == those(&|member| member.suspect)),
            ("healthy members", self.n_healthy == healthy().count()),
            ("slots", self.n_slots == healthy().map(Member::limit).sum::<usize>()),
            ("silences", self.silences == silences.collect()),
            ("leases by age", self.assigned == assigned.collect()),
        ];
        match orders.iter().find(|(_, holds)| !holds) {
            Some((order, _)) => Err(format!("{order} are not what the members are")),
            None => Ok(()),
        }
    }
}
