//! The environment of a simulated scheduler. Jobs of several users submit one batch after the other, pause, and are cancelled. Workers join,
//! several on a machine; they compute, stall, get stuck, crash, leave and reconnect. Some threads that are stuck obey a withdrawal, some do
//! not. Some workers report that no task can be computed. Some lie: they claim something in their answers, answer twice, answer for others, report failures, and that they stopped what
//! they still compute, name leases that were never given to them, and answer what cannot be computed. A worker that the scheduler names is
//! judged, and expelled if it was wrong. The network delays, reorders and repeats messages. The coordinator is stopped for a
//! while, or restarts.
//!
//! After every event the [`Invariants`] and [`Scheduler::check`] are checked. In large worlds only the members concerned are checked after
//! each event, and all of them at intervals.

mod tally;
mod workers;

use std::collections::{BTreeMap, VecDeque};
use std::ops::Range;
use std::time::Duration;

use grammaton::work::lease::{Attempt, BatchId, InstanceId, LeaseId, TaskIndex, max_leases};
use grammaton::work::task::ContentHash;
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;

pub(super) use self::tally::Tally;
use super::invariants::{Accepted, Invariants, Made};
use crate::{
    Account, AccountId, Action, Broken, Cause, Event, Failure, Fault, Identity, Machine, MemberId, Needs,
    Process, Scheduler, Timeouts, UserId,
};

/// Size of a world.
#[derive(Clone, Copy, Debug)]
pub(super) struct Size {
    /// Maximum number of workers at the beginning.
    pub members: u64,
    /// Maximum number of tasks of a batch.
    pub tasks: usize,
    /// Maximum number of jobs.
    pub jobs: u64,
    /// Number of batches of each job.
    pub batches: u64,
}

impl Size {
    /// Whether everything can be checked after every event.
    fn is_small(self) -> bool {
        self.members <= 10
    }
}

/// A worker's process, over all its connections.
struct Worker {
    slots: u32,
    lies: bool,
    /// Whether it reports that no task can be computed.
    fails: bool,
    /// Time until which it does nothing.
    stalled: Duration,
    /// Its current member.
    member: Option<MemberId>,
    /// Leases that it computes, or has answers to that the coordinator does not have.
    leases: BTreeMap<LeaseId, Work>,
    /// Shards of its last answers, and their states.
    kept: VecDeque<ContentHash>,
}

/// State of a lease in a worker.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Work {
    /// Its answer will come.
    Computing,
    /// Its thread does not end by itself.
    Stuck,
    /// It is withdrawn, and its thread ends.
    Stopping,
}

/// A job: one batch after the other.
struct Job {
    account: Account,
    /// Number of batches so far.
    n_batches: u64,
    /// Number of batches left, including the open one.
    left: u64,
    /// Content of the open or next batch.
    made: Made,
    open: Option<BatchId>,
}

/// A planned event, which may be void when its time comes.
#[derive(Clone, Debug)]
enum Planned {
    /// An event reaches the coordinator, if its process is still the same.
    Event(Event),
    /// A new worker starts.
    Arrival,
    /// A worker connects.
    Join(u64),
    /// A worker's process ends.
    Crash(u64),
    /// A worker's connection ends.
    Cut(u64),
    /// A worker is asked to leave.
    Drain(u64),
    /// A worker is stopped for a while.
    Stall(u64),
    /// A worker sends a heartbeat and plans the next one.
    Heartbeat(u64),
    /// A job submits its next batch.
    Submission(usize),
    /// A job cancels its open batch.
    Cancellation(usize),
    /// The backlog of a job becomes full (true) or has room again.
    Backlog(usize, bool),
    /// The coordinator is stopped for a while.
    Pause,
    /// The coordinator's process restarts.
    Restart,
}

pub(super) struct World {
    seed: u64,
    size: Size,
    rng: Pcg64Mcg,
    timeouts: Timeouts,
    now: Duration,
    scheduler: Scheduler,
    /// Planned events by time and order of planning.
    planned: BTreeMap<(Duration, u64), Planned>,
    n_planned: u64,
    workers: BTreeMap<u64, Worker>,
    next_worker: u64,
    next_member: u64,
    worker_of: BTreeMap<MemberId, u64>,
    /// Number of hosts. The coordinator cannot tell which of several workers on one host fails.
    n_hosts: u64,
    invariants: Invariants,
    jobs: Vec<Job>,
    next_batch: u64,
    /// Whether threads of the coordinator's process are members.
    has_threads: bool,
    tally: Tally,
    log: VecDeque<Line>,
}

/// A line of the log, formatted only when the log is printed.
enum Line {
    Event(Duration, Event),
    Action(Action),
    Note(Duration, String),
}

/// Number of lines of the log that are kept.
const KEPT: usize = 60;

impl World {
    pub fn new(seed: u64, size: Size) -> World {
        let mut rng = Pcg64Mcg::seed_from_u64(seed);
        let timeouts = Timeouts {
            min_members: if rng.random_bool(0.8) { 1 } else { 2 },
            lease_deadline: Duration::from_secs(rng.random_range(40..300)),
            ..Timeouts::default()
        };
        let n_hosts = [1, 3, 1 << 40][rng.random_range(0..3)];
        World {
            seed,
            size,
            rng,
            now: Duration::ZERO,
            scheduler: Scheduler::new(timeouts.clone()),
            planned: BTreeMap::new(),
            n_planned: 0,
            workers: BTreeMap::new(),
            next_worker: 0,
            next_member: 0,
            worker_of: BTreeMap::new(),
            n_hosts,
            invariants: Invariants::new(timeouts.clone()),
            timeouts,
            jobs: Vec::new(),
            next_batch: 1,
            has_threads: false,
            tally: Tally::default(),
            log: VecDeque::new(),
        }
    }

    /// Counts of what happened.
    pub fn tally(&self) -> Tally {
        self.tally.clone()
    }

    /// The last events.
    pub fn log(&self) -> String {
        let print = |line: &Line| match line {
            Line::Event(at, event) => format!("{at:?} {event:?}\n"),
            Line::Action(action) => format!("    {action:?}\n"),
            Line::Note(at, text) => format!("{at:?} {text}\n"),
        };
        self.log.iter().map(print).collect()
    }

    /// Runs all jobs to their ends.
    pub fn run(&mut self) -> Result<(), Broken> {
        let n_workers = if self.size.is_small() {
            self.rng.random_range(1..self.size.members)
        } else {
            self.size.members
        };
        (0..n_workers).for_each(|_| self.plan(0..20_000, Planned::Arrival));
        self.has_threads = self.size.is_small() && self.rng.random_bool(0.2);
        if self.has_threads {
            self.join_threads()?;
        }
        let n_jobs = self.rng.random_range(1..=self.size.jobs);
        let n_users = self.rng.random_range(1..=n_jobs);
        for id in 0..n_jobs {
            let most = self.rng.random_range(1..4);
            let is_bounded = self.size.is_small() && self.rng.random_bool(0.3);
            let max_members = Some(most).filter(|_| is_bounded);
            let (user, share) = (UserId(id % n_users), self.rng.random_range(1..4));
            let account = Account { id: AccountId(id), user, share, max_members };
            let left = self.size.batches;
            self.jobs.push(Job { account, n_batches: 0, left, made: Made::default(), open: None });
            self.prepare(id as usize);
            let within = if id == 0 { 0..1 } else { 0..30_000 };
            self.plan(within, Planned::Submission(id as usize));
        }
        for _ in 0..2_000_000 {
            if self.jobs.iter().all(|job| job.left == 0) {
                return Ok(());
            }
            let deadline = self.scheduler.next_deadline();
            let next = self.planned.first_key_value().map(|(&key, _)| key);
            match (deadline, next) {
                (Some(deadline), next) if next.is_none_or(|(at, _)| deadline < at) => {
                    self.now = self.now.max(deadline);
                    self.happen(Event::Tick)?;
                    if self.scheduler.next_deadline().is_some_and(|again| again <= self.now) {
                        return Err(format!("the deadline {deadline:?} is still due after its tick").into());
                    }
                }
                (_, Some(key)) => {
                    self.now = self.now.max(key.0);
                    let planned = self.planned.remove(&key).expect("it is the first");
                    self.process_planned(planned)?;
                }
                (_, None) => return Err("no event is planned although batches are open".into()),
            }
        }
        Err("a batch does not end".into())
    }

    fn plan(&mut self, within_millis: Range<u64>, what: Planned) {
        let at = self.now + Duration::from_millis(self.rng.random_range(within_millis));
        self.n_planned += 1;
        self.planned.insert((at, self.n_planned), what);
    }

    /// Plans the event, and sometimes a repetition of it.
    fn plan_event(&mut self, within_millis: Range<u64>, event: Event) {
        if self.rng.random_bool(0.1) {
            let later = within_millis.start..3 * within_millis.end;
            self.plan(later, Planned::Event(event.clone()));
        }
        self.plan(within_millis, Planned::Event(event));
    }

    /// Makes the job's next batch, and plans what happens to it.
    fn prepare(&mut self, job: usize) {
        let Job { account, n_batches: round, .. } = self.jobs[job];
        let most = self.size.tasks;
        let n_tasks = if self.size.is_small() { self.rng.random_range(1..most) } else { most };
        let audit =
            if self.rng.random_bool(0.3) { [0.1, 0.5, 1.0][self.rng.random_range(0..3)] } else { 0.0 };
        let task = |shard: ContentHash| Needs {
            shard_state: (round > 0).then(|| shard_state(shard, account.id, round)),
            takes: Duration::from_millis(if round > 0 { shard.0[0].into() } else { 0 }),
            ..Needs::shard(shard)
        };
        let mut made = Made { needs: (0..n_tasks).map(shard).map(task).collect(), ..Made::default() };
        for task in 0..n_tasks {
            if self.rng.random_bool(audit) {
                let (task, replica) = (TaskIndex(task as u32), TaskIndex(made.needs.len() as u32));
                made.replicas.extend([(task, replica), (replica, task)]);
                made.needs.push(made.needs[task.index()]);
            }
        }
        let one = TaskIndex(self.rng.random_range(0..n_tasks) as u32);
        let (is_impossible, is_deadly) = (self.rng.random_bool(0.01), self.rng.random_bool(0.02));
        made.impossible = Some(one).filter(|_| self.size.is_small() && is_impossible);
        made.deadly = Some(one).filter(|_| self.size.is_small() && is_deadly);
        let (is_endless, is_claiming) = (self.rng.random_bool(0.01), self.rng.random_bool(0.2));
        made.endless = Some(one).filter(|_| self.size.is_small() && is_endless);
        made.claiming = Some(one).filter(|_| is_claiming);
        self.jobs[job].made = made;
        self.jobs[job].n_batches += 1;
        self.tally.batches += 1;
        if self.rng.random_bool(0.1) {
            self.plan(0..40_000, Planned::Restart);
        }
        if !self.has_threads && self.rng.random_bool(0.1) {
            self.plan(0..40_000, Planned::Pause);
        }
        if self.rng.random_bool(0.15) {
            self.plan(0..20_000, Planned::Backlog(job, true));
            if self.rng.random_bool(0.7) {
                self.plan(20_000..60_000, Planned::Backlog(job, false));
            }
        }
        if self.rng.random_bool(0.05) {
            self.plan(0..40_000, Planned::Cancellation(job));
        }
    }

    fn submit(&mut self, job: usize) -> Result<(), Broken> {
        let batch = BatchId(self.next_batch);
        self.next_batch += 1;
        let Job { account, made, open, .. } = &mut self.jobs[job];
        let (account, made) = (*account, made.clone());
        *open = Some(batch);
        let replicas = made
            .replicas
            .iter()
            .filter(|(task, replica)| task < replica)
            .map(|(&task, &replica)| (task, replica));
        let (needs, replicas): (Vec<Needs>, Vec<_>) = (made.needs.clone(), replicas.collect());
        let (n_tasks, n_replicas) = (needs.len(), replicas.len());
        self.note(Line::Note(
            self.now,
            format!("{account:?}: {batch:?} of {n_tasks} tasks, {n_replicas} of them replicas"),
        ));
        self.invariants.open(batch, account, made);
        self.tally.most_batches = self.tally.most_batches.max(self.invariants.batches().count());
        self.happen(Event::BatchSubmitted { batch, account, needs, replicas })
    }

    /// Ends a batch; the job submits the next one after a while.
    fn end(&mut self, batch: BatchId) {
        let Some(job) = self.jobs.iter().position(|job| job.open == Some(batch)) else { return };
        self.jobs[job].open = None;
        self.jobs[job].left -= 1;
        if self.jobs[job].left > 0 {
            self.prepare(job);
            let pause = if self.rng.random_bool(0.8) { 2000 } else { 60_000 };
            self.plan(0..pause, Planned::Submission(job));
        }
        // There is always another worker in the end.
        self.plan(0..20_000, Planned::Arrival);
    }

    fn process_planned(&mut self, planned: Planned) -> Result<(), Broken> {
        match planned {
            Planned::Event(event) => {
                let event = self.readdress(event);
                return self.happen(event);
            }
            Planned::Arrival => return self.arrive(),
            Planned::Join(worker) => return self.join(worker),
            Planned::Restart => return self.restart(),
            Planned::Submission(job) => return self.submit(job),
            Planned::Cancellation(job) => {
                let Some(batch) = self.jobs[job].open else { return Ok(()) };
                self.tally.cancelled += 1;
                self.happen(Event::BatchCancelled { batch })?;
                self.end(batch);
            }
            Planned::Backlog(job, full) => {
                let Some(batch) = self.jobs[job].open else { return Ok(()) };
                let Some((next, _)) = self.invariants.first_open(batch) else { return Ok(()) };
                self.tally.backlogs += u64::from(full);
                return self.happen(Event::Backlog { batch, only: full.then_some(next) });
            }
            Planned::Crash(worker) => {
                let Some(worker) = self.workers.remove(&worker) else { return Ok(()) };
                let late = if self.rng.random_bool(0.1) { 200_000 } else { 20_000 };
                self.plan(0..late, Planned::Arrival);
                if self.rng.random_bool(0.7) {
                    self.disconnect(worker.member);
                }
            }
            Planned::Cut(id) => {
                let Some(worker) = self.workers.get_mut(&id) else { return Ok(()) };
                let member = worker.member.take();
                self.plan(100..5000, Planned::Join(id));
                if self.rng.random_bool(0.9) {
                    self.disconnect(member);
                }
            }
            Planned::Drain(id) => {
                if let Some(member) = self.workers.get(&id).and_then(|worker| worker.member) {
                    self.plan_event(0..300, Event::MemberDraining { member });
                    let left = Event::MemberLost { member, cause: Cause::Left };
                    self.plan_event(3000..40_000, left);
                }
                self.plan(0..20_000, Planned::Arrival);
            }
            Planned::Stall(id) => {
                let until = self.now + Duration::from_millis(self.rng.random_range(0..40_000));
                if let Some(worker) = self.workers.get_mut(&id) {
                    worker.stalled = until;
                }
            }
            Planned::Heartbeat(id) => {
                let Some(&Worker { stalled, member, .. }) = self.workers.get(&id) else { return Ok(()) };
                self.plan(900..1100, Planned::Heartbeat(id));
                if let Some(member) = member.filter(|_| stalled <= self.now) {
                    self.plan_event(0..300, Event::Heard { member });
                }
            }
            Planned::Pause => {
                let pause = Duration::from_millis(self.rng.random_range(0..60_000));
                self.note(Line::Note(self.now, format!("the coordinator is stopped for {pause:?}")));
                self.now += pause;
                self.tally.pauses += 1;
                self.invariants.pause(self.now, pause);
            }
        }
        Ok(())
    }

    /// Changes the sender of an event to the worker's current member.
    fn readdress(&mut self, mut event: Event) -> Event {
        if let Event::Answered { member, .. } | Event::Failed { member, .. } | Event::Withdrawn { member, .. } =
            &mut event
            && let Some(worker) = self.worker_of.get(member).and_then(|id| self.workers.get(id))
            && let Some(now) = worker.member.filter(|now| now != member)
            && self.rng.random_bool(0.5)
        {
            *member = now;
            self.tally.resumed += 1;
        }
        event
    }

    fn disconnect(&mut self, member: Option<MemberId>) {
        if let Some(member) = member {
            let cause = Cause::Disconnected("reset".into());
            self.plan_event(0..2000, Event::MemberLost { member, cause });
        }
    }

    /// Starts a worker's process, and plans what happens to it.
    fn arrive(&mut self) -> Result<(), Broken> {
        let id = self.next_worker;
        self.next_worker += 1;
        let slots = self.rng.random_range(1..5);
        let kept = VecDeque::from([shard(self.rng.random_range(0..self.size.tasks))]);
        let (lies, fails) = (self.rng.random_bool(0.1), self.rng.random_bool(0.1));
        let (stalled, leases) = (Duration::ZERO, BTreeMap::new());
        self.workers.insert(id, Worker { slots, lies, fails, stalled, member: None, leases, kept });
        self.plan(900..1100, Planned::Heartbeat(id));
        let fates = [
            (0.15, 20_000, Planned::Crash(id)),
            (0.3, 20_000, Planned::Stall(id)),
            (0.1, 20_000, Planned::Drain(id)),
        ];
        for (probability, within, fate) in fates {
            if self.rng.random_bool(probability) {
                self.plan(0..within, fate);
            }
        }
        if self.rng.random_bool(0.2) {
            (0..self.rng.random_range(1..5)).for_each(|_| self.plan(0..20_000, Planned::Cut(id)));
        }
        self.join(id)
    }

    fn join(&mut self, id: u64) -> Result<(), Broken> {
        let member = MemberId(self.next_member);
        let Some(worker) = self.workers.get_mut(&id) else { return Ok(()) };
        if worker.member.is_some() {
            return Ok(());
        }
        if worker.stalled > self.now {
            let wait = (worker.stalled - self.now).as_millis() as u64;
            self.plan(wait..wait + 1000, Planned::Join(id));
            return Ok(());
        }
        worker.member = Some(member);
        self.next_member += 1;
        // A coordinator that was stopped reckons the ages of leases otherwise than the model.
        let goes_on = !self.invariants.is_paused();
        worker.leases.retain(|_, work| *work != Work::Stopping && goes_on);
        let leases: Vec<(LeaseId, Work)> =
            worker.leases.iter().map(|(&lease, &work)| (lease, work)).collect();
        let mut running: Vec<LeaseId> = leases.iter().map(|&(lease, _)| lease).collect();
        let lies = worker.lies && goes_on;
        let (slots, holds) = (worker.slots, worker.kept.iter().copied().collect());
        self.tally.rejoins += u64::from(self.worker_of.values().any(|&known| known == id));
        self.worker_of.insert(member, id);
        let (name, machine) = (format!("w{id}"), Machine(format!("host{}", id % self.n_hosts).into()));
        let identity = Identity { process: process(id), machine };
        if lies && self.rng.random_bool(0.5) {
            self.make_up(id, slots, &mut running);
        }
        self.tally.adopted += running.len() as u64;
        self.happen(Event::MemberJoined { member, name, identity, slots, holds, running, watched: true })?;
        for (lease, _) in leases.into_iter().filter(|(_, work)| *work == Work::Computing) {
            self.reply(Some(id), member, lease);
        }
        Ok(())
    }

    /// Adds leases to those that a worker computes: of other members, of batches that have ended, and more than it may hold.
    fn make_up(&mut self, id: u64, slots: u32, running: &mut Vec<LeaseId>) {
        let start = self.rng.random_range(0..1000);
        running.extend(self.invariants.held_by_others(process(id), start));
        let n_more = if self.rng.random_bool(0.2) { 2 * max_leases(slots) as u32 } else { 2 };
        let of_none = |task| LeaseId { batch: BatchId(0), task: TaskIndex(task), attempt: Attempt(0) };
        running.extend((0..n_more).map(of_none));
        let again = running.first().copied();
        running.extend(again);
    }

    /// Adds the threads of the coordinator's own process.
    fn join_threads(&mut self) -> Result<(), Broken> {
        let member = MemberId(self.next_member);
        self.next_member += 1;
        let slots = self.rng.random_range(1..4);
        let identity = Identity { process: Process::Unnamed(member), machine: Machine("here".into()) };
        let (name, holds) = ("local".into(), vec![]);
        let joined =
            Event::MemberJoined { member, name, identity, slots, holds, running: vec![], watched: false };
        self.happen(joined)
    }

    /// Replaces the coordinator's process. Each worker reconnects after some time, messages to the old process are lost, and the jobs submit
    /// their open batches again.
    fn restart(&mut self) -> Result<(), Broken> {
        self.note(Line::Note(self.now, "the coordinator restarts".into()));
        self.tally.restarts += 1;
        self.scheduler = Scheduler::new(self.timeouts.clone());
        self.planned.retain(|_, planned| !matches!(planned, Planned::Event(_)));
        self.invariants.begin_anew();
        self.worker_of.clear();
        let ids: Vec<u64> = self.workers.keys().copied().collect();
        for id in ids {
            if let Some(worker) = self.workers.get_mut(&id) {
                worker.member = None;
                worker.leases.clear();
            }
            self.plan(0..5000, Planned::Join(id));
        }
        if self.has_threads {
            self.join_threads()?;
        }
        let open = (0..self.jobs.len()).filter(|&job| self.jobs[job].open.is_some());
        open.collect::<Vec<_>>().into_iter().try_for_each(|job| self.submit(job))
    }

    /// Passes the event to the scheduler and performs its actions.
    fn happen(&mut self, event: Event) -> Result<(), Broken> {
        self.tally.events += 1;
        if !matches!(event, Event::BatchSubmitted { .. }) {
            self.note(Line::Event(self.now, event.clone()));
        }
        let (joins, joining) = match &event {
            // What it still computes may fill its slots.
            Event::MemberJoined { identity, running, .. } => {
                (true, Some(identity).filter(|_| running.is_empty()))
            }
            _ => (false, None),
        };
        // The member that completes the minimum number shares the tasks with the members before it.
        let in_work = joining.is_some_and(|identity| self.invariants.is_in_work(identity));
        self.note_worker(&event);
        let concerned = self.invariants.enter(self.now, &event);
        let newcomer = concerned.filter(|_| joins);
        let actions = self.scheduler.decide(self.now, event);
        actions.iter().for_each(|action| self.note(Line::Action(action.clone())));
        if let Some(member) = newcomer {
            let on_probation = self.scheduler.member(member).is_some_and(|presence| presence.on_probation);
            self.invariants.begin_adopted(member, on_probation);
        }
        let is_lent = |id| {
            actions.iter().any(|action| matches!(action, Action::Assign { member, .. } if *member == id))
        };
        if newcomer.is_some_and(|member| in_work && !is_lent(member)) {
            return Err("a new member is assigned nothing while tasks are free".into());
        }
        let presence = newcomer.and_then(|member| self.scheduler.member(member));
        self.tally.probations += u64::from(presence.is_some_and(|presence| presence.on_probation));
        let mut over = Vec::new();
        for action in &actions {
            over.extend(self.follow(action)?);
        }
        self.tally.most_members = self.tally.most_members.max(self.invariants.members().len());
        if self.size.is_small() || self.tally.events.is_multiple_of(256) {
            self.scheduler.check()?;
            self.invariants.check_withdrawn()?;
            let mut ids = self.workers.keys();
            ids.try_for_each(|id| self.check_worker(*id))?;
            let mut members = self.invariants.members();
            members.try_for_each(|member| self.invariants.check_member(self.now, member, &self.scheduler))?;
            self.invariants.check_suspects(&self.scheduler)?;
            self.tally.reserved += self.invariants.check_reserved(&self.scheduler)? as u64;
        } else if let Some(member) = concerned.filter(|&member| self.invariants.knows(member)) {
            self.invariants.check_member(self.now, member, &self.scheduler)?;
            self.worker_of.get(&member).map_or(Ok(()), |id| self.check_worker(*id))?;
        }
        over.into_iter().for_each(|batch| self.end(batch));
        Ok(())
    }

    /// Checks that the leases that an honest worker computes, or has answers to, are those that occupy the slots of its member.
    fn check_worker(&self, id: u64) -> Result<(), Broken> {
        let Some(worker) = self.workers.get(&id).filter(|worker| !worker.lies) else { return Ok(()) };
        let held = worker.member.and_then(|member| self.invariants.held_by(member));
        match held.filter(|held| !held.iter().eq(worker.leases.keys())) {
            None => Ok(()),
            Some(held) => {
                let leases: Vec<String> = worker.leases.keys().map(LeaseId::to_string).collect();
                Err(format!("worker {id} computes {leases:?}, and its slots are occupied by {held:?}").into())
            }
        }
    }

    /// Updates the worker that sent the event.
    fn note_worker(&mut self, event: &Event) {
        if let Event::Answered { member, lease, .. }
        | Event::Failed { member, lease, .. }
        | Event::Withdrawn { member, lease } = event
            && let Some(worker) = self.worker_of.get(member).and_then(|id| self.workers.get_mut(id))
            && worker.member == Some(*member)
        {
            worker.leases.remove(lease);
        }
        match event {
            Event::MemberLost { member, cause } => {
                *self.tally.losses.entry(cause.kind()).or_default() +=
                    u64::from(self.invariants.knows(*member));
                if *cause == Cause::Left
                    && let Some(id) = self.worker_of.get(member)
                    && self.workers.get(id).is_some_and(|worker| worker.member == Some(*member))
                {
                    self.workers.remove(id);
                }
            }
            Event::Answered { member, lease, .. } => {
                let worker = self.worker_of.get(member).and_then(|id| self.workers.get_mut(id));
                let job = self.jobs.iter().find(|job| job.open == Some(lease.batch));
                if let (Some(worker), Some(job)) = (worker, job)
                    && let Some(Needs { shard, .. }) = job.made.needs.get(lease.task.index()).copied()
                {
                    worker.kept.extend([shard, shard_state(shard, job.account.id, job.n_batches)]);
                    worker.kept.truncate(16);
                }
            }
            _ => {}
        }
    }

    /// Handles the removal of a member; its worker reconnects if it is alive.
    fn forget(&mut self, member: MemberId, cause: &Cause) -> Result<(), Broken> {
        *self.tally.losses.entry(cause.kind()).or_default() += 1;
        self.invariants.forget(self.now, member, cause)?;
        if let Some(&id) = self.worker_of.get(&member)
            && let Some(worker) = self.workers.get_mut(&id)
            && worker.member == Some(member)
        {
            worker.member = None;
            self.plan(100..3000, Planned::Join(id));
        }
        Ok(())
    }

    /// Expels the workers of these members, which may not come back.
    fn expel(&mut self, members: impl Iterator<Item = MemberId>) -> Result<(), Broken> {
        for member in members {
            let Some(id) = self.worker_of.get(&member).copied() else { continue };
            let Some(worker) = self.workers.get(&id) else { continue };
            if !worker.lies && !worker.fails {
                return Err(format!("the honest worker {id} is expelled").into());
            }
            self.tally.expelled += 1;
            let member = worker.member;
            self.workers.remove(&id);
            if let Some(member) = member {
                let cause = Cause::Expelled("it was wrong".into());
                self.plan_event(0..300, Event::MemberLost { member, cause });
            }
        }
        Ok(())
    }

    /// Performs an action; returns the batch that it ends, if it ends one.
    fn follow(&mut self, action: &Action) -> Result<Option<BatchId>, Broken> {
        self.invariants.end(action, &self.scheduler)?;
        match action {
            Action::Assign { member, lease } => {
                self.invariants.assign(self.now, *member, *lease, &self.scheduler)?;
                self.work(*member, *lease);
            }
            Action::Withdraw { member, lease } => {
                self.invariants.withdraw(self.now, *member, *lease)?;
                self.tally.withdrawn += 1;
                self.stop(*member, *lease);
            }
            Action::Confirm { batch, task, replica } => {
                self.invariants.confirm(*batch, *task, *replica)?;
                self.tally.confirmed += 1;
            }
            Action::Accept { member, lease, refuted } => {
                let before = self.invariants.first_open(lease.batch);
                let made = self.invariants.made(lease.batch);
                let is_right = made.is_none_or(|made| made.impossible != Some(made.original(lease.task)));
                if !refuted.is_empty() && is_right {
                    self.expel(refuted.iter().map(|reporter| reporter.member))?;
                } else if !refuted.is_empty() {
                    self.expel([*member].into_iter())?;
                }
                match self.invariants.accept(*member, *lease, refuted, &self.scheduler)? {
                    Accepted::Task => {}
                    Accepted::Lone => self.tally.unconfirmed += 1,
                    Accepted::Pair { by_two: true } => self.tally.audited += 1,
                    Accepted::Pair { by_two: false } => self.tally.unaudited += 1,
                }
                self.tally.accepted += 1;
                // The caller takes the answer, and waits for the next one.
                if let Some((_, true)) = before.filter(|_| self.invariants.first_open(lease.batch) != before)
                    && let Some(job) = self.jobs.iter().position(|job| job.open == Some(lease.batch))
                {
                    self.plan(0..300, Planned::Backlog(job, true));
                }
            }
            Action::Discard { lease, .. } => {
                self.invariants.discard(*lease)?;
                self.tally.discarded += 1;
            }
            // A report of waiting leads to one more worker.
            Action::ReportWaiting { members, .. } if *members > 0 => self.plan(0..20_000, Planned::Arrival),
            Action::Forget { member, cause } => self.forget(*member, cause)?,
            Action::ReportWaiting { .. } => {}
            Action::BatchDone { batch } => {
                self.tally.done += 1;
                return Ok(Some(*batch));
            }
            Action::Fail { batch, failure, reporters } => {
                let job = self.jobs.iter().position(|job| job.open == Some(*batch));
                if let (Failure::GivenUp { task, .. }, Some(job), false) =
                    (failure, job, reporters.is_empty())
                    && !self.jobs[job].made.is_bad(*task)
                {
                    // The job goes on without these workers.
                    self.expel(reporters.iter().map(|reporter| reporter.member))?;
                    self.jobs[job].open = None;
                    self.plan(0..20_000, Planned::Arrival);
                    self.plan(0..2000, Planned::Submission(job));
                    return Ok(None);
                }
                let count = match failure {
                    Failure::GivenUp { attempts, .. }
                        if attempts.iter().any(|attempt| matches!(attempt.how, Fault::Overdue(_))) =>
                    {
                        &mut self.tally.unending
                    }
                    Failure::GivenUp { .. } => &mut self.tally.given_up,
                    Failure::NoMembers { .. } => &mut self.tally.deserted,
                    Failure::Task { .. } => &mut self.tally.impossible,
                };
                *count += 1;
                return Ok(Some(*batch));
            }
        }
        Ok(None)
    }

    fn note(&mut self, line: Line) {
        if self.log.len() == KEPT {
            self.log.pop_front();
        }
        self.log.push_back(line);
    }
}

/// Prints the log if the scheduler panics.
impl Drop for World {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("SEED={}: panicked\n{}", self.seed, self.log());
        }
    }
}

/// State of the shard in that round of a job.
fn shard_state(shard: ContentHash, account: AccountId, round: u64) -> ContentHash {
    let mut hash = shard;
    hash.0[8..16].copy_from_slice(&round.to_le_bytes());
    hash.0[16..24].copy_from_slice(&account.0.to_le_bytes());
    hash
}

/// The process of a worker.
fn process(worker: u64) -> Process {
    Process::Named(InstanceId(u128::from(worker).to_le_bytes()))
}

fn shard(number: usize) -> ContentHash {
    let mut hash = [0; 32];
    hash[..8].copy_from_slice(&(number as u64).to_le_bytes());
    ContentHash(hash)
}
