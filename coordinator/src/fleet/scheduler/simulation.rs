//! The scheduler against a world that loses, delays and repeats, in virtual time, from a seed.
//!
//! After each event: an open task is accepted once, no member holds more than its slots and one, and all of
//! [`Scheduler::check`]. At the end: every batch is done, or failed for a reason that the world confirms.
//! A failure prints its seed; run it alone with `SEED=… cargo test -p grammaton-coordinator simulation`.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use proto::lease::{BatchId, LeaseId};
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;
use shared::task::ContentHash;

use super::*;

const SEEDS: u64 = 500;

/// What will happen to the scheduler, unless the world changes before.
#[derive(Clone, Debug)]
enum Coming {
    Event(Event),
    /// A worker starts.
    Arrival,
    /// A member's process dies; the coordinator hears of it later, or never.
    Crash(MemberId),
    /// A member says that it lives, and will again.
    Beat(MemberId),
    /// A member is stopped for a while.
    Stall(MemberId),
}

struct World {
    seed: u64,
    rng: Pcg64Mcg,
    now: Duration,
    scheduler: Scheduler,
    /// By time and order of planning.
    coming: BTreeMap<(Duration, u64), Coming>,
    planned: u64,
    next_member: u64,
    /// Members whose process lives, and until when each is stopped.
    alive: BTreeMap<MemberId, Duration>,
    /// Slots of members that the scheduler should know.
    known: BTreeMap<MemberId, u32>,
    /// Leases that each known member holds.
    held: BTreeMap<MemberId, BTreeSet<LeaseId>>,
    batch: BatchId,
    n_tasks: usize,
    accepted: BTreeSet<TaskIndex>,
    lost: BTreeMap<TaskIndex, u32>,
    log: Vec<String>,
}

impl World {
    fn new(seed: u64) -> World {
        World {
            seed,
            rng: Pcg64Mcg::seed_from_u64(seed),
            now: Duration::ZERO,
            scheduler: Scheduler::new(Patience::default()),
            coming: BTreeMap::new(),
            planned: 0,
            next_member: 0,
            alive: BTreeMap::new(),
            known: BTreeMap::new(),
            held: BTreeMap::new(),
            batch: BatchId(0),
            n_tasks: 0,
            accepted: BTreeSet::new(),
            lost: BTreeMap::new(),
            log: Vec::new(),
        }
    }

    fn plan(&mut self, within_millis: std::ops::Range<u64>, what: Coming) {
        let at = self.now + Duration::from_millis(self.rng.random_range(within_millis));
        self.planned += 1;
        self.coming.insert((at, self.planned), what);
    }

    /// Runs one batch to its end; whether it was done.
    fn run_batch(&mut self, n_tasks: usize) -> Result<bool, String> {
        self.batch = BatchId(self.batch.0 + 1);
        self.n_tasks = n_tasks;
        self.accepted.clear();
        self.lost.clear();
        let shards = (0..n_tasks).map(|shard| ContentHash([shard as u8; 32])).collect();
        let submitted = Event::BatchSubmitted { batch: self.batch, shards, twins: vec![] };
        if let Some(done) = self.happen(submitted)? {
            return Ok(done);
        }
        for _ in 0..200_000 {
            let deadline = self.scheduler.next_deadline();
            let next = self.coming.first_key_value().map(|(&key, _)| key);
            let ended = match (deadline, next) {
                (Some(deadline), next) if next.is_none_or(|(at, _)| deadline < at) => {
                    self.now = self.now.max(deadline);
                    let ended = self.happen(Event::Tick)?;
                    if self.scheduler.next_deadline().is_some_and(|again| again <= self.now) {
                        return Err(format!("the deadline {deadline:?} is still due after its tick"));
                    }
                    ended
                }
                (_, Some(key)) => {
                    self.now = self.now.max(key.0);
                    let coming = self.coming.remove(&key).expect("it is the first");
                    self.come(coming)?
                }
                (_, None) => return Err("nothing will ever happen again".into()),
            };
            if let Some(done) = ended {
                return Ok(done);
            }
        }
        Err("the batch does not end".into())
    }

    fn come(&mut self, coming: Coming) -> Result<Option<bool>, String> {
        match coming {
            Coming::Event(event) => self.happen(event),
            Coming::Arrival => {
                let member = MemberId(self.next_member);
                self.next_member += 1;
                self.alive.insert(member, Duration::ZERO);
                self.plan(900..1100, Coming::Beat(member));
                if self.rng.random_bool(0.15) {
                    self.plan(0..60_000, Coming::Crash(member));
                }
                if self.rng.random_bool(0.3) {
                    self.plan(0..30_000, Coming::Stall(member));
                }
                if self.rng.random_bool(0.1) {
                    self.plan(0..30_000, Coming::Event(Event::MemberDraining { member }));
                    let left = Event::MemberLost { member, cause: Cause::Left };
                    self.plan(30_000..90_000, Coming::Event(left));
                    self.plan(0..20_000, Coming::Arrival);
                }
                let slots = self.rng.random_range(1..5);
                let holds = vec![ContentHash([self.rng.random_range(0..40); 32])];
                self.happen(Event::MemberJoined {
                    member,
                    name: format!("{}", member.0 % 5),
                    slots,
                    holds,
                    watched: true,
                })
            }
            Coming::Crash(member) => {
                self.alive.remove(&member);
                self.plan(0..20_000, Coming::Arrival);
                if self.rng.random_bool(0.7) {
                    let cause = Cause::Disconnected("crash".into());
                    self.plan(0..2000, Coming::Event(Event::MemberLost { member, cause }));
                }
                Ok(None)
            }
            Coming::Stall(member) => {
                let until = self.now + Duration::from_millis(self.rng.random_range(0..40_000));
                if let Some(stalled) = self.alive.get_mut(&member) {
                    *stalled = until;
                }
                Ok(None)
            }
            Coming::Beat(member) => {
                let Some(&stalled) = self.alive.get(&member) else { return Ok(None) };
                self.plan(900..1100, Coming::Beat(member));
                if stalled > self.now { Ok(None) } else { self.happen(Event::Heard { member }) }
            }
        }
    }

    /// Hands the event to the scheduler and follows its actions; whether the batch ended, and how.
    fn happen(&mut self, event: Event) -> Result<Option<bool>, String> {
        self.log.push(format!("{:?} {event:?}", self.now));
        match &event {
            Event::MemberJoined { member, slots, .. } => {
                self.known.insert(*member, *slots);
                self.held.insert(*member, BTreeSet::new());
            }
            Event::MemberLost { member, cause } => self.forget(*member, *cause != Cause::Left),
            Event::Answered { member, lease } => {
                self.held.entry(*member).or_default().remove(lease);
            }
            _ => {}
        }
        let mut ended = None;
        for action in self.scheduler.handle(self.now, event) {
            self.log.push(format!("    {action:?}"));
            match action {
                Action::Lend { member, lease } => self.lend(member, lease)?,
                Action::Accept { lease, .. } => {
                    if lease.batch != self.batch || !self.accepted.insert(lease.task) {
                        return Err(format!("{lease} was accepted twice, or late"));
                    }
                }
                Action::Discard { lease, .. } => {
                    if lease.batch == self.batch && !self.accepted.contains(&lease.task) {
                        return Err(format!("{lease} was discarded, and had no answer"));
                    }
                }
                Action::Forget { member, .. } => self.forget(member, true),
                Action::ReportWaiting { .. } => {}
                Action::BatchDone { batch } => {
                    if batch != self.batch || self.accepted.len() != self.n_tasks {
                        return Err("done before all tasks were".into());
                    }
                    ended = Some(true);
                }
                Action::Fail { failure, .. } => {
                    let confirmed = match &failure {
                        Failure::Poison { task, .. } => self.lost.get(task) >= Some(&POISON),
                        Failure::NoMembers { .. } => self.known.is_empty(),
                        Failure::Task { .. } | Failure::Overdue { .. } => false,
                    };
                    if !confirmed {
                        return Err(format!("failed for no reason: {failure}"));
                    }
                    ended = Some(false);
                }
            }
        }
        self.scheduler.check()?;
        Ok(ended)
    }

    fn lend(&mut self, member: MemberId, lease: LeaseId) -> Result<(), String> {
        let slots = self.known.get(&member).ok_or(format!("{lease} was lent to {member:?}, who is gone"))?;
        let held = self.held.entry(member).or_default();
        held.insert(lease);
        if held.len() > *slots as usize + 1 {
            return Err(format!("{member:?} holds {} leases in {slots} slots", held.len()));
        }
        let Some(&stalled) = self.alive.get(&member) else { return Ok(()) };
        let slow = if self.rng.random_bool(0.05) { 30_000 } else { 2000 };
        let busy = stalled.saturating_sub(self.now).as_millis() as u64;
        let answered = Event::Answered { member, lease };
        if self.rng.random_bool(0.1) {
            self.plan(busy + 1..busy + 3 * slow, Coming::Event(answered.clone()));
        }
        self.plan(busy + 1..busy + slow, Coming::Event(answered));
        Ok(())
    }

    fn forget(&mut self, member: MemberId, loss: bool) {
        if self.known.remove(&member).is_none() {
            return;
        }
        for lease in self.held.remove(&member).unwrap_or_default() {
            if lease.batch == self.batch && loss {
                *self.lost.entry(lease.task).or_default() += 1;
            }
        }
    }
}

/// A panic prints the seed as well, above all one of [`Scheduler::check`] in [`Scheduler::handle`].
impl Drop for World {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("SEED={}: panicked\n{}", self.seed, last(&self.log));
        }
    }
}

/// The last lines.
fn last(log: &[String]) -> String {
    log[log.len().saturating_sub(60)..].join("\n")
}

fn simulate(seed: u64) -> Result<usize, (String, Vec<String>)> {
    let mut world = World::new(seed);
    for _ in 0..world.rng.random_range(1..7) {
        world.plan(0..20_000, Coming::Arrival);
    }
    let mut done = 0;
    for _ in 0..4 {
        let n_tasks = world.rng.random_range(1..40);
        match world.run_batch(n_tasks) {
            Ok(true) => done += 1,
            Ok(false) => {}
            Err(error) => return Err((error, std::mem::take(&mut world.log))),
        }
        // Somebody always comes, in the end.
        world.plan(0..20_000, Coming::Arrival);
    }
    Ok(done)
}

#[test]
fn every_batch_ends_and_every_task_counts_once() {
    let seeds = match std::env::var("SEED").map(|seed| seed.parse()) {
        Ok(Ok(seed)) => seed..seed + 1,
        _ => 0..SEEDS,
    };
    let n_batches = 4 * (seeds.end - seeds.start) as usize;
    let mut done = 0;
    for seed in seeds {
        match simulate(seed) {
            Ok(batches) => done += batches,
            Err((error, log)) => panic!("SEED={seed}: {error}\n{}", last(&log)),
        }
    }
    assert!(done * 10 >= n_batches * 9, "only {done} of {n_batches} batches were done");
}
