//! A simulated cluster in virtual time: no worker fails, and every step takes its measured time.
//!
//! The way of a task, in which each line takes time, and `──` is a queue:
//!
//! ```text
//! scheduler ── cores encode ── network ─ latency ─> member ── thread computes ─ latency ─> ── network ── cores decode
//!     ^                                                                                                     │
//!     └──────────────────────────────── decides <──────────────────────────────────────────────────────────┘
//!                                          └─ accepted, in task order ── adding thread ─> totals
//! ```
//!
//! The next event is the earliest planned one; ties are broken by the order of planning. So every simulation of a world is the same.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::time::Duration;

use grammaton::num::Noise;
use grammaton::work::lease::{BatchId, LeaseId, TaskIndex};
use grammaton::work::task::ContentHash;
use rustc_hash::{FxHashMap, FxHashSet};

use super::servers::Servers;
use super::{Cluster, Load, Message, Round, TaskLoad};
use crate::blob_cache::BlobCache;
use scheduler::{Account, Action, Event, Identity, Machine, MemberId, Needs, Process, Scheduler, Timeouts};

/// Longer than any forecast.
const FOREVER: Duration = Duration::from_secs(10 * 366 * 24 * 60 * 60);

/// Bytes of a heartbeat.
const BEAT_BYTES: u64 = 2;

/// Bytes of a message that releases a blob.
const RELEASE_BYTES: u64 = 36;

/// Planned events.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Planned {
    /// A lease and its blobs are encoded; the number of bytes to send.
    Encoded(MemberId, LeaseId, u64),
    /// The lease has reached its member.
    Assigned(MemberId, LeaseId),
    /// The member has an answer.
    Computed(MemberId, LeaseId),
    /// The first bytes of the answer have reached the coordinator.
    Answering(MemberId, LeaseId),
    /// The last bytes of the answer have reached the coordinator.
    Received(MemberId, LeaseId),
    /// The answer is decoded.
    Decoded(MemberId, LeaseId),
    /// A member sends a heartbeat, and plans the next one.
    Heartbeat(MemberId),
    /// The scheduler processes an answer.
    Answered(MemberId, LeaseId),
    /// The scheduler processes a heartbeat.
    Heard(MemberId),
}

/// A remote member, and the coordinator's view of its blob cache.
struct Worker {
    blob_cache: BlobCache,
    /// Leases that wait for a thread.
    queue: VecDeque<LeaseId>,
    /// Number of threads that compute.
    running: u32,
    /// Tasks whose forests it has.
    forests: FxHashSet<TaskIndex>,
}

pub(super) struct World<'a> {
    load: &'a Load,
    n_tasks: usize,
    cluster: &'a Cluster,
    noise: Noise,
    now: Duration,
    scheduler: Scheduler,
    workers: Vec<Worker>,
    /// Planned events by time and order of planning.
    planned: BinaryHeap<Reverse<(Duration, u64, Planned)>>,
    n_planned: u64,
    /// Number of answers and heartbeats that wait for the scheduler; its clock stands until they are processed.
    unheard: usize,
    n_events: u64,
    /// Number of rounds begun.
    round: u64,
    /// Whether this round is in progress.
    open: bool,
    /// By task of this round, whether its answer has arrived.
    accepted: Vec<bool>,
    /// Number of tasks of this round whose answers are added, or about to be.
    n_added: usize,
    /// Computing times of leases in progress.
    begun: FxHashMap<LeaseId, Duration>,
    /// Whether the messages that all members are sent once, and once a round, are encoded.
    encoded_once: bool,
    encoded_this_round: bool,
    codec: Servers,
    network: Servers,
    decider: Servers,
    adder: Servers,
    /// Totals since the start.
    tally: Tally,
}

#[derive(Clone, Copy, Default)]
struct Tally {
    work: Duration,
    bytes_down: u64,
    bytes_up: u64,
    leases: u64,
}

impl<'a> World<'a> {
    /// A world in which all members are present with empty caches.
    pub fn new(load: &'a Load, n_tasks: usize, cluster: &'a Cluster, seed: u64) -> World<'a> {
        let timeouts = Timeouts { dead_after: FOREVER, lease_deadline: FOREVER, ..Timeouts::default() };
        let worker = |_| Worker {
            blob_cache: BlobCache::new(cluster.cache, []),
            queue: VecDeque::new(),
            running: 0,
            forests: FxHashSet::default(),
        };
        let mut world = World {
            load,
            n_tasks,
            cluster,
            noise: Noise::new(seed, 0),
            now: Duration::ZERO,
            scheduler: Scheduler::new(timeouts),
            workers: (0..cluster.workers).map(worker).collect(),
            planned: BinaryHeap::new(),
            n_planned: 0,
            unheard: 0,
            n_events: 0,
            round: 0,
            open: false,
            accepted: Vec::new(),
            n_added: 0,
            begun: FxHashMap::default(),
            encoded_once: false,
            encoded_this_round: false,
            codec: Servers::new(cluster.cores),
            network: Servers::new(1),
            decider: Servers::new(1),
            adder: Servers::new(1),
            tally: Tally::default(),
        };
        for id in 0..cluster.workers as u64 {
            let member = MemberId(id);
            let (name, slots, holds, watched) = (format!("{id}"), cluster.threads, Vec::new(), true);
            let identity =
                Identity { process: Process::Unnamed(member), machine: Machine(name.as_str().into()) };
            world.decide(Event::MemberJoined {
                member,
                name,
                identity,
                slots,
                holds,
                running: Vec::new(),
                watched,
            });
            let since = proto::HEARTBEAT_INTERVAL.mul_f64(world.chance(id));
            world.plan(since, Planned::Heartbeat(member));
        }
        world
    }

    /// Number of events of the scheduler.
    pub fn n_events(&self) -> u64 {
        self.n_events
    }

    /// Simulates the next round.
    pub fn round(&mut self) -> Round {
        let (begun, before) = (self.now, self.tally);
        let busy = |world: &Self| [&world.codec, &world.adder, &world.decider].map(|servers| servers.busy);
        let busy_before = busy(self);
        self.round += 1;
        (self.open, self.n_added, self.encoded_this_round) = (true, 0, false);
        self.accepted = vec![false; self.n_tasks];
        let needs = (0..self.n_tasks as u32).map(TaskIndex).map(|task| self.needs(task)).collect();
        let (batch, account) = (BatchId(self.round), Account::default());
        self.decide(Event::BatchSubmitted { batch, account, needs, replicas: Vec::new() });
        while self.open {
            self.step(FOREVER);
        }
        // What is left to add, and what is between rounds; meanwhile backups may answer.
        let added = self.adder.serve(self.now, Duration::ZERO);
        let end = self.adder.serve(added, self.load.between);
        while self.step(end) {}
        self.now = end;
        let [codec, adder, decider] = busy(self);
        let [codec_before, adder_before, decider_before] = busy_before;
        Round {
            seconds: (end - begun).as_secs_f64(),
            work_seconds: (self.tally.work - before.work).as_secs_f64(),
            bytes_down: self.tally.bytes_down - before.bytes_down,
            bytes_up: self.tally.bytes_up - before.bytes_up,
            codec_seconds: (codec - codec_before).as_secs_f64(),
            reduce_seconds: (adder - adder_before).as_secs_f64(),
            decide_seconds: (decider - decider_before).as_secs_f64(),
            leases: self.tally.leases - before.leases,
        }
    }

    /// Processes the next event if it is before `end`. Returns whether it was.
    fn step(&mut self, end: Duration) -> bool {
        let next = self.planned.peek().map(|Reverse((at, ..))| *at);
        let deadline = self.scheduler.next_deadline().filter(|_| self.unheard == 0);
        match (deadline, next) {
            (Some(deadline), next) if deadline <= end && next.is_none_or(|at| deadline < at) => {
                self.now = self.now.max(deadline);
                self.decide(Event::Tick);
                true
            }
            (_, Some(at)) if at <= end => {
                self.now = at;
                if let Some(Reverse((.., planned))) = self.planned.pop() {
                    self.process_planned(planned);
                }
                true
            }
            _ => false,
        }
    }

    fn process_planned(&mut self, planned: Planned) {
        match planned {
            Planned::Encoded(member, lease, bytes) => {
                let sent = self.transfer(bytes);
                self.tally.bytes_down += bytes;
                self.plan(sent + self.cluster.latency, Planned::Assigned(member, lease));
            }
            Planned::Assigned(member, lease) => {
                self.worker(member).queue.push_back(lease);
                self.compute(member);
            }
            Planned::Computed(member, lease) => {
                self.worker(member).running -= 1;
                self.plan(self.now + self.cluster.latency, Planned::Answering(member, lease));
                self.compute(member);
            }
            Planned::Answering(member, lease) => {
                let bytes = self.task(lease.task).answer_bytes;
                let received = self.transfer(bytes);
                self.tally.bytes_up += bytes;
                self.plan(received, Planned::Received(member, lease));
            }
            Planned::Received(member, lease) => {
                let decode = self.task(lease.task).decode + self.load.message;
                let decoded = self.codec.serve(self.now, decode);
                self.plan(decoded, Planned::Decoded(member, lease));
            }
            Planned::Decoded(member, lease) => self.queue_for_decision(Planned::Answered(member, lease)),
            Planned::Heartbeat(member) => {
                self.tally.bytes_up += BEAT_BYTES;
                self.plan(self.now + proto::HEARTBEAT_INTERVAL, Planned::Heartbeat(member));
                self.queue_for_decision(Planned::Heard(member));
            }
            Planned::Answered(member, lease) => {
                self.unheard -= 1;
                self.keep_carried(member, lease);
                self.decide(Event::Answered { member, lease, claims: false });
            }
            Planned::Heard(member) => {
                self.unheard -= 1;
                self.decide(Event::Heard { member });
            }
        }
    }

    /// Passes an event to the scheduler and performs its actions.
    fn decide(&mut self, event: Event) {
        self.n_events += 1;
        for action in self.scheduler.handle(self.now, event) {
            match action {
                Action::Assign { member, lease } => self.assign(member, lease),
                Action::Accept { lease, .. } => self.accept(lease),
                Action::Discard { lease, .. } => drop(self.begun.remove(&lease)),
                Action::BatchDone { .. } => self.open = false,
                // Members finish what they compute.
                Action::ReportWaiting { .. } | Action::Withdraw { .. } => {}
                Action::Forget { .. } | Action::Fail { .. } | Action::Confirm { .. } => {
                    unreachable!("members are there from the beginning and for ever, and tasks have answers")
                }
            }
        }
    }

    /// Encodes the blobs that the member lacks, and the lease.
    fn assign(&mut self, member: MemberId, lease: LeaseId) {
        self.tally.leases += 1;
        let task = self.task(lease.task);
        let Load { once, every_round, message, .. } = *self.load;
        let needs = self.needs(lease.task);
        let (grammar, of_round) = (name(b"once", 0, 0), name(b"round", 0, self.round));
        let mut blobs = vec![(grammar, once), (needs.shard, task.shard)];
        blobs.extend(Some((of_round, every_round)).filter(|(_, message)| message.bytes > 0));
        blobs.extend(needs.shard_state.zip(task.shard_state));
        let needed: Vec<ContentHash> = blobs.iter().map(|(hash, _)| *hash).collect();
        let (mut bytes, mut time) = (task.lease.bytes, task.lease.encode + message);
        for (hash, Message { bytes: size, encode }) in blobs {
            let blob_cache = &mut self.worker(member).blob_cache;
            if blob_cache.touch(hash) {
                continue;
            }
            blob_cache.insert(hash, size, (hash == of_round).then_some(lease.batch));
            bytes += size;
            time += message;
            // What everybody needs is encoded for the first one.
            let known = match hash {
                _ if hash == grammar => std::mem::replace(&mut self.encoded_once, true),
                _ if hash == of_round => std::mem::replace(&mut self.encoded_this_round, true),
                _ => false,
            };
            time += if known { Duration::ZERO } else { encode };
        }
        let blob_cache = &mut self.worker(member).blob_cache;
        bytes += RELEASE_BYTES * blob_cache.release(&needed).len() as u64;
        blob_cache.assign();
        let encoded = self.codec.serve(self.now, time);
        self.plan(encoded, Planned::Encoded(member, lease, bytes));
    }

    /// Begins tasks until all threads of the member compute.
    fn compute(&mut self, member: MemberId) {
        while self.worker(member).running < self.cluster.threads {
            let Some(lease) = self.worker(member).queue.pop_front() else { return };
            let worker = self.worker(member);
            worker.running += 1;
            let is_first = worker.forests.insert(lease.task);
            let task = self.task(lease.task);
            let time = if is_first { task.first } else { task.in_round(self.round) };
            self.begun.insert(lease, time);
            self.plan(self.now + task.handling + time, Planned::Computed(member, lease));
        }
    }

    /// Accepts an answer, which is added once all answers before it are.
    fn accept(&mut self, lease: LeaseId) {
        self.tally.work += self.begun.remove(&lease).unwrap_or_default();
        self.accepted[lease.task.index()] = true;
        while self.accepted.get(self.n_added) == Some(&true) {
            let add = self.task(TaskIndex(self.n_added as u32)).add;
            self.adder.serve(self.now, add);
            self.n_added += 1;
        }
    }

    /// Puts the shard state of an answer into the member's cache.
    fn keep_carried(&mut self, member: MemberId, lease: LeaseId) {
        let Some(shard_state) = self.task(lease.task).shard_state else { return };
        let (task, round) = (u64::from(lease.task.0), lease.batch.0);
        let before = (round > 1).then(|| name(b"shard_state", task, round));
        let blob_cache = &mut self.worker(member).blob_cache;
        blob_cache.keep(before, name(b"shard_state", task, round + 1), shard_state.bytes);
    }

    /// Queues an event for the scheduler's thread.
    fn queue_for_decision(&mut self, planned: Planned) {
        self.unheard += 1;
        let decided = self.decider.serve(self.now, self.load.decide);
        self.plan(decided, planned);
    }

    /// Returns when these bytes have passed the coordinator's network.
    fn transfer(&mut self, bytes: u64) -> Duration {
        let time = Duration::from_secs_f64(bytes as f64 / self.cluster.bandwidth);
        self.network.serve(self.now, time)
    }

    fn plan(&mut self, at: Duration, planned: Planned) {
        self.n_planned += 1;
        self.planned.push(Reverse((at, self.n_planned, planned)));
    }

    /// Pseudo-random number in (0, 1), a function of the place alone.
    fn chance(&self, place: u64) -> f64 {
        (self.noise.symmetric(place) + 1.0) / 2.0
    }

    fn needs(&self, task: TaskIndex) -> Needs {
        let number = u64::from(task.0);
        let carries = self.round > 1 && self.task(task).shard_state.is_some();
        let shard_state = carries.then(|| name(b"shard_state", number, self.round));
        let takes = if self.round > 1 { self.task(task).mean() } else { Duration::ZERO };
        Needs { shard: name(b"shard", number, 0), shard_state, takes }
    }

    /// The measurements of the task; the tasks of the load repeat.
    fn task(&self, task: TaskIndex) -> &'a TaskLoad {
        &self.load.tasks[task.index() % self.load.tasks.len()]
    }

    fn worker(&mut self, member: MemberId) -> &mut Worker {
        &mut self.workers[member.0 as usize]
    }
}

/// Hash of a blob.
fn name(kind: &[u8], number: u64, round: u64) -> ContentHash {
    let mut hash = [0; 32];
    hash[..8].copy_from_slice(&number.to_le_bytes());
    hash[8..16].copy_from_slice(&round.to_le_bytes());
    hash[16..16 + kind.len()].copy_from_slice(kind);
    ContentHash(hash)
}
