//! Counts of what happened in simulated worlds, so that no kind of failure goes untested.

use std::collections::BTreeMap;

/// Counts of what happened in worlds.
#[derive(Clone, Default, Debug)]
pub(in crate::simulation) struct Tally {
    pub(super) events: u64,
    pub(super) batches: u64,
    pub(super) done: u64,
    pub(super) given_up: u64,
    pub(super) unending: u64,
    pub(super) deserted: u64,
    pub(super) impossible: u64,
    pub(super) withdrawn: u64,
    pub(super) adopted: u64,
    pub(super) expelled: u64,
    pub(super) confirmed: u64,
    pub(super) unconfirmed: u64,
    pub(super) accepted: u64,
    pub(super) discarded: u64,
    pub(super) losses: BTreeMap<&'static str, u64>,
    pub(super) rejoins: u64,
    pub(super) resumed: u64,
    pub(super) probations: u64,
    pub(super) audited: u64,
    pub(super) unaudited: u64,
    pub(super) pauses: u64,
    pub(super) restarts: u64,
    pub(super) backlogs: u64,
    pub(super) cancelled: u64,
    pub(super) reserved: u64,
    pub(super) most_members: usize,
    pub(super) most_batches: usize,
}

impl Tally {
    pub fn add(&mut self, other: &Tally) {
        self.events += other.events;
        self.batches += other.batches;
        self.done += other.done;
        self.given_up += other.given_up;
        self.unending += other.unending;
        self.deserted += other.deserted;
        self.impossible += other.impossible;
        self.withdrawn += other.withdrawn;
        self.adopted += other.adopted;
        self.expelled += other.expelled;
        self.confirmed += other.confirmed;
        self.unconfirmed += other.unconfirmed;
        self.accepted += other.accepted;
        self.discarded += other.discarded;
        for (kind, count) in &other.losses {
            *self.losses.entry(kind).or_default() += count;
        }
        self.rejoins += other.rejoins;
        self.resumed += other.resumed;
        self.probations += other.probations;
        self.audited += other.audited;
        self.unaudited += other.unaudited;
        self.pauses += other.pauses;
        self.restarts += other.restarts;
        self.backlogs += other.backlogs;
        self.cancelled += other.cancelled;
        self.reserved += other.reserved;
        self.most_members = self.most_members.max(other.most_members);
        self.most_batches = self.most_batches.max(other.most_batches);
    }

    /// Asserts that every kind of failure occurred, and that most batches were done.
    pub fn check(&self) {
        assert!(self.done * 10 >= self.batches * 9, "too few batches were done");
        let happened = [
            ("tasks that are given up", self.given_up),
            ("tasks without an end", self.unending),
            ("desertion", self.deserted),
            ("withdrawn leases", self.withdrawn),
            ("leases of earlier connections", self.adopted),
            ("expelled workers", self.expelled),
            ("confirmed claims", self.confirmed),
            ("claims that no member could confirm", self.unconfirmed),
            ("impossible tasks", self.impossible),
            ("answers to leases of other members", self.losses.get("protocol").copied().unwrap_or(0)),
            ("answers of processes that reconnected", self.resumed),
            ("stuck members", self.losses.get("stuck").copied().unwrap_or(0)),
            ("silent members", self.losses.get("silent").copied().unwrap_or(0)),
            ("late answers", self.discarded),
            ("returns", self.rejoins),
            ("probations", self.probations),
            ("audits", self.audited),
            ("audits by a single member", self.unaudited),
            ("pauses", self.pauses),
            ("restarts", self.restarts),
            ("backlogs", self.backlogs),
            ("cancellations", self.cancelled),
            ("reserved members", self.reserved),
        ];
        for (what, count) in happened {
            assert!(count > 0, "the worlds had no {what}");
        }
        assert!(self.most_members >= 1000, "no world was large");
        assert!(self.most_batches >= 4, "no world had many jobs at a time");
    }
}
