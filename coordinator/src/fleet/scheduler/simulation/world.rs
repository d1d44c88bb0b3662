//! A world around a scheduler: workers that come, work, stall, get stuck, crash, leave and return, a network that
//! delays, reorders and repeats, and a coordinator that is stopped for a while or starts anew.
//!
//! The world keeps its own books of who holds what. After every event, from these books alone: an open task is
//! accepted once, no answer to an earlier batch counts, no member holds more than its slots and one, one that joins
//! while tasks are free is lent one at once, nothing but the first open task is begun while there is no room for answers,
//! nobody is lent the twin of what it holds or answered while another healthy member is there; and, for all members in small worlds, for whoever is concerned and now and then for all in
//! large ones: no healthy member idles while a task that it may have is free, or is held by a suspect alone, nobody is
//! kept who was silent for `dead_after` or whose lease is as old as `lease_deadline`, and [`Scheduler::check`]. Every batch ends: it is done,
//! or fails for a reason that the books confirm.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::ops::Range;
use std::time::Duration;

use proto::lease::{BatchId, LeaseId, TaskIndex};
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;
use shared::task::ContentHash;

use crate::fleet::scheduler::{
    Action, Cause, Event, Failure, MemberId, Needs, POISON, Patience, Presence, Scheduler,
};
use crate::fleet::status::MemberState;

/// How large a world is.
#[derive(Clone, Copy, Debug)]
pub(super) struct Size {
    /// Most workers at the beginning.
    pub members: u64,
    /// Most tasks of a batch.
    pub tasks: usize,
    /// Batches, one after the other.
    pub batches: usize,
}

impl Size {
    /// Whether everything can be checked after every event.
    fn is_small(self) -> bool {
        self.members <= 10
    }
}

/// What happened in worlds.
#[derive(Clone, Default, Debug)]
pub(super) struct Tally {
    events: u64,
    batches: u64,
    done: u64,
    poisoned: u64,
    deserted: u64,
    overdue: u64,
    impossible: u64,
    accepted: u64,
    discarded: u64,
    losses: BTreeMap<&'static str, u64>,
    rejoins: u64,
    probations: u64,
    audited: u64,
    unaudited: u64,
    pauses: u64,
    restarts: u64,
    backlogs: u64,
    most_members: usize,
}

impl Tally {
    pub fn add(&mut self, other: &Tally) {
        self.events += other.events;
        self.batches += other.batches;
        self.done += other.done;
        self.poisoned += other.poisoned;
        self.deserted += other.deserted;
        self.overdue += other.overdue;
        self.impossible += other.impossible;
        self.accepted += other.accepted;
        self.discarded += other.discarded;
        for (kind, count) in &other.losses {
            *self.losses.entry(kind).or_default() += count;
        }
        self.rejoins += other.rejoins;
        self.probations += other.probations;
        self.audited += other.audited;
        self.unaudited += other.unaudited;
        self.pauses += other.pauses;
        self.restarts += other.restarts;
        self.backlogs += other.backlogs;
        self.most_members = self.most_members.max(other.most_members);
    }

    /// Whether the worlds, all together, were as bad as they should be, and no worse.
    pub fn check(&self) {
        assert!(self.done * 10 >= self.batches * 9, "too few batches were done");
        let happened = [
            ("poison", self.poisoned),
            ("desertion", self.deserted),
            ("stuck threads", self.overdue),
            ("impossible tasks", self.impossible),
            ("stuck members", self.losses.get("overdue").copied().unwrap_or(0)),
            ("silent members", self.losses.get("silent").copied().unwrap_or(0)),
            ("late answers", self.discarded),
            ("returns", self.rejoins),
            ("probations", self.probations),
            ("audits", self.audited),
            ("audits for want of members", self.unaudited),
            ("pauses", self.pauses),
            ("restarts", self.restarts),
            ("backlogs", self.backlogs),
        ];
        for (what, count) in happened {
            assert!(count > 0, "the worlds had no {what}");
        }
        assert!(self.most_members >= 1000, "no world was large");
    }
}

/// A worker process, whatever connection it has.
struct Worker {
    slots: u32,
    /// Until then it does nothing.
    stalled: Duration,
    /// As whom the coordinator knows it.
    member: Option<MemberId>,
    /// The shards of its last answers, and what these carry on.
    kept: VecDeque<ContentHash>,
}

/// A member as the coordinator should know it.
struct Known {
    slots: u32,
    watched: bool,
    /// When the last of its messages reached the coordinator.
    heard: Duration,
    /// Since when it holds what.
    held: BTreeMap<LeaseId, Duration>,
}

/// What will happen, unless the world changes before.
#[derive(Clone, Debug)]
enum Coming {
    /// Reaches the coordinator, if that is the same process still.
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
    /// A worker says that it lives, and will again.
    Beat(u64),
    /// There is no room for answers, or there is again.
    Backlog(bool),
    /// The coordinator is stopped for a while.
    Pause,
    /// The coordinator's process ends, and another one begins.
    Restart,
}

/// How a batch, or an attempt at one, ended.
enum End {
    Done,
    Failed,
    /// The coordinator started anew.
    Restarted,
}

pub(super) struct World {
    seed: u64,
    size: Size,
    rng: Pcg64Mcg,
    patience: Patience,
    now: Duration,
    scheduler: Scheduler,
    /// By time and order of planning.
    coming: BTreeMap<(Duration, u64), Coming>,
    planned: u64,
    workers: BTreeMap<u64, Worker>,
    next_worker: u64,
    next_member: u64,
    known: BTreeMap<MemberId, Known>,
    worker_of: BTreeMap<MemberId, u64>,
    batch: BatchId,
    /// Whether it is in work.
    open: bool,
    /// While there is no room for answers, the only task that may be begun, as the scheduler was told last.
    only: Option<TaskIndex>,
    needs: Vec<Needs>,
    twins: BTreeMap<TaskIndex, TaskIndex>,
    answered_by: BTreeMap<TaskIndex, MemberId>,
    /// The first task without an answer.
    first_open: TaskIndex,
    /// Of each task.
    holders: Vec<BTreeSet<MemberId>>,
    /// Tasks without holder and answer.
    free: BTreeSet<TaskIndex>,
    lost: BTreeMap<TaskIndex, u32>,
    /// A task that nobody can compute.
    impossible: Option<TaskIndex>,
    /// A task that ends the process of whoever begins it.
    deadly: Option<TaskIndex>,
    /// Tasks in which threads of the coordinator's process are stuck.
    given_up: BTreeSet<TaskIndex>,
    /// Whether enough members were there once.
    assembled: bool,
    /// Whether the coordinator was ever stopped: its clock is behind then.
    paused: bool,
    tally: Tally,
    story: VecDeque<Line>,
}

/// Something that happened, written out only if somebody wants to read it.
enum Line {
    Event(Duration, Event),
    Action(Action),
    Note(Duration, String),
}

/// Lines of the story that are kept.
const KEPT: usize = 60;

impl World {
    pub fn new(seed: u64, size: Size) -> World {
        let mut rng = Pcg64Mcg::seed_from_u64(seed);
        let patience = Patience {
            min_members: if rng.random_bool(0.8) { 1 } else { 2 },
            lease_deadline: Duration::from_secs(rng.random_range(40..300)),
            ..Patience::default()
        };
        World {
            seed,
            size,
            rng,
            now: Duration::ZERO,
            scheduler: Scheduler::new(patience.clone()),
            patience,
            coming: BTreeMap::new(),
            planned: 0,
            workers: BTreeMap::new(),
            next_worker: 0,
            next_member: 0,
            known: BTreeMap::new(),
            worker_of: BTreeMap::new(),
            batch: BatchId(0),
            open: false,
            only: None,
            needs: Vec::new(),
            twins: BTreeMap::new(),
            answered_by: BTreeMap::new(),
            first_open: TaskIndex(0),
            holders: Vec::new(),
            free: BTreeSet::new(),
            lost: BTreeMap::new(),
            impossible: None,
            deadly: None,
            given_up: BTreeSet::new(),
            assembled: false,
            paused: false,
            tally: Tally::default(),
            story: VecDeque::new(),
        }
    }

    /// What happened in it.
    pub fn tally(&self) -> Tally {
        self.tally.clone()
    }

    /// The last that happened.
    pub fn story(&self) -> String {
        let print = |line: &Line| match line {
            Line::Event(at, event) => format!("{at:?} {event:?}\n"),
            Line::Action(action) => format!("    {action:?}\n"),
            Line::Note(at, text) => format!("{at:?} {text}\n"),
        };
        self.story.iter().map(print).collect()
    }

    /// Runs all batches to their ends.
    pub fn run(&mut self) -> Result<(), String> {
        let n_workers = match self.size.is_small() {
            true => self.rng.random_range(1..self.size.members),
            false => self.size.members,
        };
        (0..n_workers).for_each(|_| self.plan(0..20_000, Coming::Arrival));
        let has_threads = self.size.is_small() && self.rng.random_bool(0.2);
        if has_threads {
            self.join_threads()?;
        }
        for _ in 0..self.size.batches {
            self.prepare_batch();
            self.tally.batches += 1;
            if self.rng.random_bool(0.15) {
                self.plan(0..40_000, Coming::Restart);
            }
            if !has_threads && self.rng.random_bool(0.1) {
                self.plan(0..40_000, Coming::Pause);
            }
            if self.rng.random_bool(0.15) {
                self.plan(0..20_000, Coming::Backlog(true));
                if self.rng.random_bool(0.7) {
                    self.plan(20_000..60_000, Coming::Backlog(false));
                }
            }
            loop {
                match self.run_batch()? {
                    End::Done => self.tally.done += 1,
                    End::Failed => {}
                    End::Restarted => {
                        if has_threads {
                            self.join_threads()?;
                        }
                        continue;
                    }
                }
                break;
            }
            // Somebody always comes, in the end.
            self.plan(0..20_000, Coming::Arrival);
        }
        Ok(())
    }

    fn plan(&mut self, within_millis: Range<u64>, what: Coming) {
        let at = self.now + Duration::from_millis(self.rng.random_range(within_millis));
        self.planned += 1;
        self.coming.insert((at, self.planned), what);
    }

    /// Plans the event, and sometimes that it reaches the coordinator once more.
    fn plan_event(&mut self, within_millis: Range<u64>, event: Event) {
        if self.rng.random_bool(0.1) {
            let later = within_millis.start..3 * within_millis.end;
            self.plan(later, Coming::Event(event.clone()));
        }
        self.plan(within_millis, Coming::Event(event));
    }

    fn prepare_batch(&mut self) {
        let most = self.size.tasks;
        let n_tasks = if self.size.is_small() { self.rng.random_range(1..most) } else { most };
        let audit =
            if self.rng.random_bool(0.3) { [0.1, 0.5, 1.0][self.rng.random_range(0..3)] } else { 0.0 };
        let round = self.tally.batches;
        let task = |shard| Needs { shard, carried: (round > 0).then(|| carried(shard, round)) };
        let mut needs: Vec<Needs> = (0..n_tasks).map(shard).map(task).collect();
        self.twins.clear();
        for task in 0..n_tasks {
            if self.rng.random_bool(audit) {
                let (task, twin) = (TaskIndex(task as u32), TaskIndex(needs.len() as u32));
                self.twins.extend([(task, twin), (twin, task)]);
                needs.push(needs[task.index()]);
            }
        }
        let one = TaskIndex(self.rng.random_range(0..n_tasks) as u32);
        let (is_impossible, is_deadly) = (self.rng.random_bool(0.01), self.rng.random_bool(0.02));
        self.impossible = Some(one).filter(|_| self.size.is_small() && is_impossible);
        self.deadly = Some(one).filter(|_| self.size.is_small() && is_deadly);
        self.needs = needs;
    }

    /// Submits the batch that was prepared and lets the world go on until it ends.
    fn run_batch(&mut self) -> Result<End, String> {
        let (n_tasks, n_twins) = (self.needs.len(), self.twins.len() / 2);
        self.batch = BatchId(self.batch.0 + 1);
        (self.open, self.only, self.first_open) = (true, None, TaskIndex(0));
        self.answered_by.clear();
        self.lost.clear();
        self.given_up.clear();
        self.holders = vec![BTreeSet::new(); n_tasks];
        self.free = (0..n_tasks as u32).map(TaskIndex).collect();
        self.note(Line::Note(self.now, format!("{n_tasks} tasks, of them {n_twins} twins, are submitted")));
        let twins = self.twins.iter().filter(|(task, twin)| task < twin).map(|(&task, &twin)| (task, twin));
        let (batch, needs, twins) = (self.batch, self.needs.clone(), twins.collect());
        if let Some(end) = self.happen(Event::BatchSubmitted { batch, needs, twins })? {
            return Ok(end);
        }
        for _ in 0..2_000_000 {
            let deadline = self.scheduler.next_deadline();
            let next = self.coming.first_key_value().map(|(&key, _)| key);
            let end = match (deadline, next) {
                (Some(deadline), next) if next.is_none_or(|(at, _)| deadline < at) => {
                    self.now = self.now.max(deadline);
                    let end = self.happen(Event::Tick)?;
                    if self.scheduler.next_deadline().is_some_and(|again| again <= self.now) {
                        return Err(format!("the deadline {deadline:?} is still due after its tick"));
                    }
                    end
                }
                (_, Some(key)) => {
                    self.now = self.now.max(key.0);
                    let coming = self.coming.remove(&key).expect("it is the first");
                    self.come(coming)?
                }
                (_, None) => return Err("nothing will ever happen again".into()),
            };
            if let Some(end) = end {
                return Ok(end);
            }
        }
        Err("the batch does not end".into())
    }

    fn come(&mut self, coming: Coming) -> Result<Option<End>, String> {
        match coming {
            Coming::Event(event) => return self.happen(event),
            Coming::Arrival => return self.arrive(),
            Coming::Join(worker) => return self.join(worker),
            Coming::Restart => return Ok(Some(self.restart())),
            Coming::Backlog(full) => {
                self.tally.backlogs += u64::from(self.open && full);
                self.only = full.then_some(self.first_open);
                return self.happen(Event::Backlog { only: self.only });
            }
            Coming::Crash(worker) => {
                let Some(worker) = self.workers.remove(&worker) else { return Ok(None) };
                let late = if self.rng.random_bool(0.1) { 200_000 } else { 20_000 };
                self.plan(0..late, Coming::Arrival);
                if self.rng.random_bool(0.7) {
                    self.disconnect(worker.member);
                }
            }
            Coming::Cut(id) => {
                let Some(worker) = self.workers.get_mut(&id) else { return Ok(None) };
                let member = worker.member.take();
                self.plan(100..5000, Coming::Join(id));
                if self.rng.random_bool(0.9) {
                    self.disconnect(member);
                }
            }
            Coming::Drain(id) => {
                if let Some(member) = self.workers.get(&id).and_then(|worker| worker.member) {
                    self.plan_event(0..300, Event::MemberDraining { member });
                    let left = Event::MemberLost { member, cause: Cause::Left };
                    self.plan_event(3000..40_000, left);
                }
                self.plan(0..20_000, Coming::Arrival);
            }
            Coming::Stall(id) => {
                let until = self.now + Duration::from_millis(self.rng.random_range(0..40_000));
                if let Some(worker) = self.workers.get_mut(&id) {
                    worker.stalled = until;
                }
            }
            Coming::Beat(id) => {
                let Some(&Worker { stalled, member, .. }) = self.workers.get(&id) else { return Ok(None) };
                self.plan(900..1100, Coming::Beat(id));
                if let Some(member) = member.filter(|_| stalled <= self.now) {
                    self.plan_event(0..300, Event::Heard { member });
                }
            }
            Coming::Pause => {
                let pause = Duration::from_millis(self.rng.random_range(0..60_000));
                self.note(Line::Note(self.now, format!("the coordinator is stopped for {pause:?}")));
                self.now += pause;
                (self.paused, self.tally.pauses) = (true, self.tally.pauses + 1);
                for member in self.known.values_mut() {
                    member.heard = self.now;
                    member.held.values_mut().for_each(|lent_at| *lent_at += pause);
                }
            }
        }
        Ok(None)
    }

    fn disconnect(&mut self, member: Option<MemberId>) {
        if let Some(member) = member {
            let cause = Cause::Disconnected("reset".into());
            self.plan_event(0..2000, Event::MemberLost { member, cause });
        }
    }

    /// A new process; what will become of it is its fate from the beginning.
    fn arrive(&mut self) -> Result<Option<End>, String> {
        let id = self.next_worker;
        self.next_worker += 1;
        let slots = self.rng.random_range(1..5);
        let kept = VecDeque::from([shard(self.rng.random_range(0..self.size.tasks))]);
        self.workers.insert(id, Worker { slots, stalled: Duration::ZERO, member: None, kept });
        self.plan(900..1100, Coming::Beat(id));
        let fates = [
            (0.15, 20_000, Coming::Crash(id)),
            (0.3, 20_000, Coming::Stall(id)),
            (0.1, 20_000, Coming::Drain(id)),
        ];
        for (probability, within, fate) in fates {
            if self.rng.random_bool(probability) {
                self.plan(0..within, fate);
            }
        }
        if self.rng.random_bool(0.2) {
            (0..self.rng.random_range(1..5)).for_each(|_| self.plan(0..20_000, Coming::Cut(id)));
        }
        self.join(id)
    }

    fn join(&mut self, id: u64) -> Result<Option<End>, String> {
        let member = MemberId(self.next_member);
        let Some(worker) = self.workers.get_mut(&id) else { return Ok(None) };
        if worker.member.is_some() {
            return Ok(None);
        }
        if worker.stalled > self.now {
            let wait = (worker.stalled - self.now).as_millis() as u64;
            self.plan(wait..wait + 1000, Coming::Join(id));
            return Ok(None);
        }
        worker.member = Some(member);
        self.next_member += 1;
        let (slots, holds) = (worker.slots, worker.kept.iter().copied().collect());
        self.tally.rejoins += u64::from(self.worker_of.values().any(|&known| known == id));
        self.worker_of.insert(member, id);
        self.happen(Event::MemberJoined { member, name: format!("w{id}"), slots, holds, watched: true })
    }

    /// The threads of the coordinator's own process.
    fn join_threads(&mut self) -> Result<(), String> {
        let member = MemberId(self.next_member);
        self.next_member += 1;
        let slots = self.rng.random_range(1..4);
        let joined =
            Event::MemberJoined { member, name: "local".into(), slots, holds: vec![], watched: false };
        self.happen(joined).map(|_| ())
    }

    /// Another process takes the coordinator's place; the workers find it, each in its time, and what they say to the
    /// old one is heard by nobody.
    fn restart(&mut self) -> End {
        self.note(Line::Note(self.now, "the coordinator starts anew".into()));
        self.tally.restarts += 1;
        self.scheduler = Scheduler::new(self.patience.clone());
        self.coming.retain(|_, coming| !matches!(coming, Coming::Event(_)));
        self.known.clear();
        self.worker_of.clear();
        (self.batch, self.assembled, self.open) = (BatchId(0), false, false);
        let ids: Vec<u64> = self.workers.keys().copied().collect();
        for id in ids {
            if let Some(worker) = self.workers.get_mut(&id) {
                worker.member = None;
            }
            self.plan(0..5000, Coming::Join(id));
        }
        End::Restarted
    }

    /// Hands the event to the scheduler and follows its actions; whether the batch ended, and how.
    fn happen(&mut self, event: Event) -> Result<Option<End>, String> {
        self.tally.events += 1;
        if !matches!(event, Event::BatchSubmitted { .. }) {
            self.note(Line::Event(self.now, event.clone()));
        }
        // The one that completes the assembly shares with those who were there before.
        let in_work = self.open && self.assembled && self.free.iter().any(|&task| self.may_begin(task));
        let concerned = self.book(&event);
        let newcomer = concerned.filter(|_| matches!(event, Event::MemberJoined { .. }));
        let hungry = newcomer.filter(|_| in_work);
        let actions = self.scheduler.decide(self.now, event);
        actions.iter().for_each(|action| self.note(Line::Action(action.clone())));
        let is_lent =
            |id| actions.iter().any(|action| matches!(action, Action::Lend { member, .. } if *member == id));
        if hungry.is_some_and(|member| !is_lent(member)) {
            return Err("a newcomer is lent nothing while tasks are free".into());
        }
        let presence = newcomer.and_then(|member| self.scheduler.member(member));
        self.tally.probations += u64::from(presence.is_some_and(|presence| presence.on_probation));
        // A batch that fails for a loss is told of before the loss.
        for action in &actions {
            if let Action::Forget { member, cause } = action {
                self.forget(*member, cause)?;
            }
        }
        let mut end = None;
        for action in &actions {
            end = self.follow(action)?.or(end);
        }
        self.tally.most_members = self.tally.most_members.max(self.known.len());
        if self.size.is_small() || self.tally.events.is_multiple_of(256) {
            self.scheduler.check()?;
            self.known.keys().try_for_each(|&member| self.check_member(member))?;
            self.check_suspects()?;
        } else if let Some(member) = concerned.filter(|member| self.known.contains_key(member)) {
            self.check_member(member)?;
        }
        Ok(end)
    }

    /// Enters into the books what an event says, and whom it concerns.
    fn book(&mut self, event: &Event) -> Option<MemberId> {
        match event {
            Event::MemberJoined { member, slots, watched, .. } => {
                let (slots, watched, heard) = (*slots, *watched, self.now);
                self.known.insert(*member, Known { slots, watched, heard, held: BTreeMap::new() });
                self.assembled |= self.known.len() >= self.patience.min_members;
                return Some(*member);
            }
            Event::MemberLost { member, cause } => {
                self.lose(*member, cause);
                if *cause == Cause::Left
                    && let Some(id) = self.worker_of.get(member)
                    && self.workers.get(id).is_some_and(|worker| worker.member == Some(*member))
                {
                    self.workers.remove(id);
                }
                return Some(*member);
            }
            Event::Answered { member, lease } | Event::Failed { member, lease, .. } => {
                self.release(*member, *lease);
                let worker = self.worker_of.get(member).and_then(|id| self.workers.get_mut(id));
                if let Some(worker) = worker.filter(|_| lease.task.index() < self.needs.len()) {
                    let shard = self.needs[lease.task.index()].shard;
                    worker.kept.extend([shard, carried(shard, self.tally.batches)]);
                    worker.kept.truncate(16);
                }
                self.hear(*member);
                return Some(*member);
            }
            Event::Heard { member } | Event::MemberDraining { member } => {
                self.hear(*member);
                return Some(*member);
            }
            Event::Tick => self.give_up_threads(),
            Event::BatchSubmitted { .. } | Event::Backlog { .. } => {}
        }
        None
    }

    fn hear(&mut self, member: MemberId) {
        if let Some(known) = self.known.get_mut(&member) {
            known.heard = self.now;
        }
    }

    /// Threads of the coordinator's process that are stuck for too long are not counted with any more.
    fn give_up_threads(&mut self) {
        let (now, deadline) = (self.now, self.patience.lease_deadline);
        let threads = self.known.iter_mut().filter(|(_, known)| !known.watched);
        let mut stuck = Vec::new();
        for (&id, known) in threads {
            let overdue = known.held.iter().filter(|&(_, &lent_at)| now >= lent_at + deadline);
            let overdue: Vec<LeaseId> = overdue.map(|(&lease, _)| lease).take(known.slots as usize).collect();
            known.slots -= overdue.len() as u32;
            stuck.extend(overdue.into_iter().map(|lease| (id, lease)));
        }
        for (id, lease) in stuck {
            self.release(id, lease);
            if lease.batch == self.batch {
                self.given_up.extend([lease.task, *self.twins.get(&lease.task).unwrap_or(&lease.task)]);
            }
        }
    }

    /// The member no longer holds the lease.
    fn release(&mut self, member: MemberId, lease: LeaseId) {
        let Some(known) = self.known.get_mut(&member) else { return };
        if known.held.remove(&lease).is_some() && self.open && lease.batch == self.batch {
            self.drop_holder(member, lease.task);
        }
    }

    fn drop_holder(&mut self, member: MemberId, task: TaskIndex) {
        let holders = &mut self.holders[task.index()];
        holders.remove(&member);
        if holders.is_empty() && !self.answered_by.contains_key(&task) {
            self.free.insert(task);
        }
    }

    /// The member is gone.
    fn lose(&mut self, member: MemberId, cause: &Cause) {
        let Some(known) = self.known.remove(&member) else { return };
        *self.tally.losses.entry(cause.kind()).or_default() += 1;
        let current = self.open.then_some(self.batch);
        for lease in known.held.into_keys().filter(|lease| Some(lease.batch) == current) {
            self.drop_holder(member, lease.task);
            *self.lost.entry(lease.task).or_default() += u32::from(*cause != Cause::Left);
        }
    }

    /// The coordinator gave up on the member: it should have had a reason, and the worker, if it lives, returns.
    fn forget(&mut self, member: MemberId, cause: &Cause) -> Result<(), String> {
        let known = self.known.get(&member).ok_or(format!("{member:?} is forgotten twice"))?;
        let since = match cause {
            Cause::Silent(_) => known.heard + self.patience.dead_after,
            // The leases of threads were given up before.
            Cause::Overdue { .. } if !known.watched => self.now,
            Cause::Overdue { .. } => {
                let oldest = known.held.values().min().ok_or("one without a lease is overdue")?;
                *oldest + self.patience.lease_deadline
            }
            other => return Err(format!("{member:?} is forgotten, for it {other}")),
        };
        if self.now < since && !self.paused {
            return Err(format!("{member:?} is forgotten before its time, for it is {cause}"));
        }
        self.lose(member, cause);
        if let Some(&id) = self.worker_of.get(&member)
            && let Some(worker) = self.workers.get_mut(&id)
            && worker.member == Some(member)
        {
            worker.member = None;
            self.plan(100..3000, Coming::Join(id));
        }
        Ok(())
    }

    fn follow(&mut self, action: &Action) -> Result<Option<End>, String> {
        match action {
            Action::Lend { member, lease } => self.lend(*member, *lease)?,
            Action::Accept { member, lease } => {
                let is_current = self.open && lease.batch == self.batch;
                if !is_current || self.answered_by.insert(lease.task, *member).is_some() {
                    return Err(format!("{lease} was accepted twice, or late"));
                }
                self.free.remove(&lease.task);
                while self.answered_by.contains_key(&self.first_open) {
                    self.first_open.0 += 1;
                    // The caller takes it, and waits for the next one.
                    if self.only.is_some() {
                        self.plan(0..300, Coming::Backlog(true));
                    }
                }
                self.tally.accepted += 1;
                let twin = self.twins.get(&lease.task).and_then(|twin| self.answered_by.get(twin));
                match twin {
                    Some(auditor) if auditor == member => self.tally.unaudited += 1,
                    Some(_) => self.tally.audited += 1,
                    None => {}
                }
            }
            Action::Discard { lease, .. } => {
                let is_current = self.open && lease.batch == self.batch;
                if is_current && !self.answered_by.contains_key(&lease.task) {
                    return Err(format!("{lease} was discarded, and had no answer"));
                }
                self.tally.discarded += 1;
            }
            // Who reads that members are wanting starts one more.
            Action::ReportWaiting { members, .. } if *members > 0 => self.plan(0..20_000, Coming::Arrival),
            Action::Forget { .. } | Action::ReportWaiting { .. } => {}
            Action::BatchDone { batch } => {
                if *batch != self.batch || self.answered_by.len() != self.needs.len() {
                    return Err("done before all tasks were".into());
                }
                self.open = false;
                return Ok(Some(End::Done));
            }
            Action::Fail { failure, .. } => {
                let twin_or = |task: &TaskIndex| [*task, *self.twins.get(task).unwrap_or(task)];
                let (count, is_confirmed) = match failure {
                    Failure::Poison { task, .. } => {
                        let is_lost = |task| self.lost.get(task) >= Some(&POISON);
                        (&mut self.tally.poisoned, twin_or(task).iter().any(is_lost))
                    }
                    Failure::NoMembers { .. } => (&mut self.tally.deserted, self.known.is_empty()),
                    Failure::Overdue { task, .. } => (&mut self.tally.overdue, self.given_up.contains(task)),
                    Failure::Task { task, .. } => {
                        (&mut self.tally.impossible, self.impossible == Some(*task))
                    }
                };
                *count += 1;
                if !is_confirmed {
                    return Err(format!("failed for no reason: {failure}"));
                }
                self.open = false;
                return Ok(Some(End::Failed));
            }
        }
        Ok(None)
    }

    fn lend(&mut self, member: MemberId, lease: LeaseId) -> Result<(), String> {
        if self.knows_twin(member, lease.task) && self.has_other_healthy(member) {
            return Err(format!("{member:?} is lent {lease}, and had to do with its twin"));
        }
        let begins = self.may_begin(lease.task);
        let known =
            self.known.get_mut(&member).ok_or(format!("{lease} was lent to {member:?}, who is gone"))?;
        known.held.insert(lease, self.now);
        if self.free.contains(&lease.task) && !begins {
            return Err(format!("{lease} is begun while there is no room for its answer"));
        }
        if known.held.len() > known.slots as usize + 1 {
            return Err(format!("{member:?} holds {} leases in {} slots", known.held.len(), known.slots));
        }
        self.free.remove(&lease.task);
        self.holders[lease.task.index()].insert(member);
        let stalled = match self.worker_of.get(&member) {
            Some(id) => match self.workers.get(id).filter(|worker| worker.member == Some(member)) {
                Some(worker) => worker.stalled,
                None => return Ok(()),
            },
            None => Duration::ZERO,
        };
        let original = lease.task.min(*self.twins.get(&lease.task).unwrap_or(&lease.task));
        let worker = self.worker_of.get(&member).copied();
        let stuck = match (self.size.is_small(), worker) {
            (true, None) => 0.02,
            (true, Some(_)) => 0.005,
            (false, _) => 0.0005,
        };
        if self.rng.random_bool(stuck) {
            return Ok(());
        }
        if let Some(worker) = worker.filter(|_| self.deadly == Some(original)) {
            self.plan(1..1000, Coming::Crash(worker));
            return Ok(());
        }
        let slow = if self.rng.random_bool(0.05) { 30_000 } else { 2000 };
        let busy = stalled.saturating_sub(self.now).as_millis() as u64;
        let answer = if self.impossible == Some(original) {
            Event::Failed { member, lease, detail: "impossible".into() }
        } else {
            Event::Answered { member, lease }
        };
        self.plan_event(busy + 1..busy + slow, answer);
        Ok(())
    }

    /// Whether the member holds the twin of the task, or gave the answer to it that counted.
    fn knows_twin(&self, member: MemberId, task: TaskIndex) -> bool {
        self.twins.get(&task).is_some_and(|twin| {
            self.answered_by.get(twin) == Some(&member) || self.holders[twin.index()].contains(&member)
        })
    }

    fn has_other_healthy(&self, member: MemberId) -> bool {
        self.known.keys().any(|&other| other != member && self.is_healthy(other))
    }

    fn is_healthy(&self, member: MemberId) -> bool {
        self.state(member) == Some(MemberState::Healthy)
    }

    fn state(&self, member: MemberId) -> Option<MemberState> {
        self.scheduler.member(member).map(|presence| presence.state)
    }

    /// Whether the scheduler knows what the books say, the member is not kept for too long, and does not idle.
    fn check_member(&self, id: MemberId) -> Result<(), String> {
        let Known { watched, heard, held, .. } = &self.known[&id];
        let presence: Presence = self.scheduler.member(id).ok_or(format!("{id:?} is not known"))?;
        if presence.n_leases != held.len() {
            return Err(format!("{id:?} holds {} leases, known are {}", held.len(), presence.n_leases));
        }
        if *watched && self.now > *heard + self.patience.dead_after {
            return Err(format!("{id:?} is kept, silent since {heard:?}"));
        }
        let deadline = self.patience.lease_deadline;
        if *watched && held.values().any(|lent_at| self.now > *lent_at + deadline) {
            return Err(format!("{id:?} is kept with a lease older than {deadline:?}"));
        }
        if !self.open || !self.has_free_slot(id) {
            return Ok(());
        }
        match self.free.iter().find(|&&task| self.may_begin(task) && self.may(id, task)) {
            Some(task) => Err(format!("{id:?} idles while {task:?} is free")),
            None => Ok(()),
        }
    }

    /// Whether those who idle have what suspects alone hold.
    fn check_suspects(&self) -> Result<(), String> {
        let suspects = self.known.iter().filter(|(id, _)| self.state(**id) == Some(MemberState::Suspect));
        let leases =
            suspects.flat_map(|(_, known)| known.held.keys()).filter(|lease| lease.batch == self.batch);
        let lone =
            |task: &TaskIndex| self.holders[task.index()].len() == 1 && !self.answered_by.contains_key(task);
        let lone: Vec<TaskIndex> = leases.map(|lease| lease.task).filter(lone).collect();
        if !self.open || lone.is_empty() {
            return Ok(());
        }
        for id in self.known.keys().copied().filter(|&id| self.has_free_slot(id)) {
            if let Some(task) = lone.iter().find(|&&task| self.may(id, task)) {
                return Err(format!("{id:?} idles while a suspect alone holds {task:?}"));
            }
        }
        Ok(())
    }

    fn has_free_slot(&self, id: MemberId) -> bool {
        let (Some(known), Some(presence)) = (self.known.get(&id), self.scheduler.member(id)) else {
            return false;
        };
        let limit = if presence.on_probation { 1 } else { known.slots as usize };
        self.assembled && known.held.len() < limit && presence.state == MemberState::Healthy
    }

    /// Whether the member may be lent the task, which it does not hold.
    fn may(&self, id: MemberId, task: TaskIndex) -> bool {
        !self.knows_twin(id, task) || !self.has_other_healthy(id)
    }

    /// Whether the task, which is free, may be begun.
    fn may_begin(&self, task: TaskIndex) -> bool {
        self.only.is_none_or(|only| only == task)
    }

    fn note(&mut self, line: Line) {
        if self.story.len() == KEPT {
            self.story.pop_front();
        }
        self.story.push_back(line);
    }
}

/// A panic in the scheduler tells the story as well.
impl Drop for World {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("SEED={}: panicked\n{}", self.seed, self.story());
        }
    }
}

/// What the shard carries into that round.
fn carried(shard: ContentHash, round: u64) -> ContentHash {
    let mut hash = shard;
    hash.0[8..16].copy_from_slice(&round.to_le_bytes());
    hash
}

fn shard(number: usize) -> ContentHash {
    let mut hash = [0; 32];
    hash[..8].copy_from_slice(&(number as u64).to_le_bytes());
    ContentHash(hash)
}
