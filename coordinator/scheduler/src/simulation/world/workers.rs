//! What simulated workers do with a lease: compute it, answer, stop, or lie.

use super::*;

impl World {
    /// Begins to compute a lease.
    pub(super) fn work(&mut self, member: MemberId, lease: LeaseId) {
        let worker = self.worker_of.get(&member).copied();
        let Some(made) = self.invariants.made(lease.batch) else { return };
        let original = Some(made.original(lease.task));
        let (is_deadly, is_endless) = (made.deadly == original, made.endless == original);
        let stuck = match (self.size.is_small(), worker) {
            (true, None) => 0.02,
            (true, Some(_)) => 0.005,
            (false, _) => 0.0005,
        };
        let is_stuck = is_endless || self.rng.random_bool(stuck);
        if let Some(id) = worker {
            let connected = |worker: &&mut Worker| worker.member == Some(member);
            let Some(state) = self.workers.get_mut(&id).filter(connected) else { return };
            state.leases.insert(lease, if is_stuck || is_deadly { Work::Stuck } else { Work::Computing });
            if is_deadly && !is_stuck {
                return self.plan(1..1000, Planned::Crash(id));
            }
        }
        if !is_stuck {
            self.reply(worker, member, lease);
        }
    }

    /// Plans the answer to a lease.
    pub(super) fn reply(&mut self, worker: Option<u64>, member: MemberId, lease: LeaseId) {
        let state = worker.and_then(|id| self.workers.get(&id));
        let (stalled, lies, fails) = state
            .map_or((Duration::ZERO, false, false), |worker| (worker.stalled, worker.lies, worker.fails));
        let Some(made) = self.invariants.made(lease.batch) else { return };
        let original = Some(made.original(lease.task));
        let (is_impossible, is_claiming) = (made.impossible == original, made.claiming == original);
        let slow = if self.rng.random_bool(0.05) { 30_000 } else { 2000 };
        let busy = stalled.saturating_sub(self.now).as_millis() as u64;
        let claims = is_claiming || lies && self.rng.random_bool(0.5);
        let is_made_up = is_impossible && lies && self.rng.random_bool(0.3);
        let answer = if fails || is_impossible && !is_made_up || lies && self.rng.random_bool(0.2) {
            let lacks_memory = worker.is_some() && self.rng.random_bool(0.2);
            let (detail, is_certain) = ("impossible".into(), worker.is_none());
            Event::Failed { member, lease, detail, lacks_memory, is_certain }
        } else {
            Event::Answered { member, lease, claims }
        };
        if let Some(worker) = worker.filter(|_| lies) {
            if self.rng.random_bool(0.3) {
                self.lie(worker, member, lease);
            }
            if self.rng.random_bool(0.1) {
                self.plan_event(1..2000, Event::Withdrawn { member, lease });
            }
            if self.rng.random_bool(0.2) {
                self.plan_event(busy + 1..busy + slow, answer.clone());
            }
        }
        self.plan_event(busy + 1..busy + slow, answer);
    }

    /// Stops a withdrawn lease, if its thread obeys. A worker with a thread that does not may begin anew without it.
    pub(super) fn stop(&mut self, member: MemberId, lease: LeaseId) {
        let obeys = self.rng.random_bool(0.5);
        let mut busy = 0;
        if let Some(&id) = self.worker_of.get(&member) {
            let connected = |worker: &&mut Worker| worker.member == Some(member);
            let Some(worker) = self.workers.get_mut(&id).filter(connected) else { return };
            busy = worker.stalled.saturating_sub(self.now).as_millis() as u64;
            let Some(work) = worker.leases.get_mut(&lease) else {
                // A liar made it up.
                return if obeys {
                    self.plan_event(0..1000, Event::Withdrawn { member, lease })
                };
            };
            if *work == Work::Stuck && !obeys {
                if self.rng.random_bool(0.5) {
                    self.plan(10_000..11_000, Planned::Crash(id));
                }
                return;
            }
            *work = Work::Stopping;
        } else if !obeys {
            return;
        }
        self.plan_event(busy..busy + 1000, Event::Withdrawn { member, lease });
    }

    /// Answers or fails a lease that is not the worker's own, or does not exist.
    pub(super) fn lie(&mut self, worker: u64, member: MemberId, own: LeaseId) {
        let never = LeaseId { attempt: Attempt(own.attempt.0 + 1000), ..own };
        let start = self.rng.random_range(0..1000);
        let others = self.invariants.held_by_others(process(worker), start);
        let lease = others.filter(|_| self.rng.random_bool(0.8)).unwrap_or(never);
        let lie = match self.rng.random_range(0..4) {
            0 => Event::Answered { member, lease, claims: false },
            1 => Event::Answered { member, lease, claims: true },
            2 => {
                let (detail, lacks_memory) = ("a lie".into(), self.rng.random_bool(0.5));
                Event::Failed { member, lease, detail, lacks_memory, is_certain: false }
            }
            _ => Event::Withdrawn { member, lease },
        };
        self.plan(0..2000, Planned::Event(lie));
    }
}
