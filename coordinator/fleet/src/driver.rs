//! The driver: owns the fleet's clock and channels. It waits for an input, asks the scheduler, and performs its actions.
//!
//! In: [`Input`]s from members and from callers. Out: orders to members, progress to callers.
//! Invariant: the driver waits only for the next input or deadline; each channel that it sends to has room for all messages that can be
//! in it.

use std::collections::BTreeMap;
use std::net::TcpListener;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use basics::clock;
use grammaton::work::lease::{BatchId, LeaseId, SessionId, TaskIndex};
use grammaton::work::task::{Answer, ContentHash};
use tokio::sync::{mpsc, oneshot, watch};
use tracing::{Span, debug, info, info_span, warn};

use super::audit::Witness;
use super::backlog::Backlog;
use super::decisions::Decisions;
use super::expulsion::{Expelled, Expulsion};
use super::fleet_events::{EventQueue, FleetEvent, Waiting};
use super::messages::{Given, Input, Job, MemberChannel, NotAdmitted, Order, Progress, Submission};
use super::status::{AccountStatus, FleetStatus, MemberInfo, OldestLease};
use super::tasks::{Open, Register};
use super::watcher::Watcher;
use super::{FleetConfig, LOSSES, Loss, MapReport, Stage, Traffic, local, remote};
use scheduler::{
    Account, AccountId, AccountState, Action, Cause, Event, Failure, Identity, Machine, MemberId,
    MemberState, Process, Reporter, Scheduler, Shards, Shortage, Timeouts,
};

/// Timeout for telling members that the job is finished.
const FAREWELL: Duration = Duration::from_secs(5);

struct Member {
    name: String,
    slots: u32,
    remote: bool,
    identity: Identity,
    tasks_done: u64,
    /// Sum over its accepted answers.
    busy: Duration,
    joined: Instant,
    /// `None` once the member is gone.
    channel: Option<MemberChannel>,
    /// Cause and time of its end.
    gone: Option<(Cause, Instant)>,
}

struct Batch {
    account: AccountId,
    stage: Stage,
    /// Span of its log lines, with stage, run and round.
    span: Span,
    tasks: Arc<Open>,
    progress: mpsc::Sender<Progress>,
    backlog: Arc<Backlog>,
    /// Whether a notice of events is on its way to its caller.
    is_told: Arc<AtomicBool>,
    begun: Instant,
    report: MapReport,
    /// Bytes sent and received when it was submitted.
    traffic: (u64, u64),
}

/// The account of a job.
struct Client {
    account: Arc<Account>,
    events: Arc<EventQueue>,
    /// The wait of its tasks that was last put into `events`.
    waiting: Option<Waiting>,
}

/// Totals since the start.
#[derive(Default)]
struct Tally {
    /// Number of lost members by kind of cause.
    losses: BTreeMap<&'static str, u64>,
    attempts: u64,
    accepted: u64,
    discarded: u64,
}

struct Driver {
    started: Instant,
    max_members: usize,
    scheduler: Scheduler,
    members: BTreeMap<MemberId, Member>,
    next_member: u64,
    /// Open batches.
    batches: BTreeMap<BatchId, Batch>,
    /// Accounts of the open batches, and of callers that may submit others.
    clients: BTreeMap<AccountId, Client>,
    register: Arc<Register>,
    /// Whether workers may still join.
    open: watch::Sender<bool>,
    traffic: Arc<Traffic>,
    tally: Tally,
    decisions: Decisions,
    expelled: Expelled,
    /// Keeps expulsions for the next fleet.
    keep: Arc<dyn Fn(Expulsion) + Send + Sync>,
    /// Set when the job is finished: the deadline for members to leave, and the channel to confirm the end.
    farewell: Option<(Instant, oneshot::Sender<()>)>,
}

/// Directs members until the fleet is shut down or dropped.
pub(super) async fn run(
    config: FleetConfig,
    listener: Option<TcpListener>,
    register: Arc<Register>,
    to_fleet: mpsc::Sender<Input>,
    mut inputs: mpsc::Receiver<Input>,
) {
    let (open, opened) = watch::channel(true);
    let traffic = Arc::new(Traffic::default());
    let mut driver = Driver::new(&config, register.clone(), traffic.clone(), open);
    if config.local_workers > 0 {
        let slots = config.local_workers as u32;
        let (orders, received) = local::orders();
        let here = Machine("this process".into());
        let channel = MemberChannel::local(orders);
        let process = Process::Unnamed(MemberId(driver.next_member));
        let identity = Identity { process, machine: here };
        if let Some(member) = driver.join("local".into(), identity, slots, (Vec::new(), Vec::new()), channel)
        {
            local::start(member, config.local_workers, received, config.compute, to_fleet.clone());
        }
    }
    if let (Some(listener), Some(listen)) = (listener, config.listen) {
        let services = (listen.services)(Watcher::new(to_fleet.clone()));
        let admission = remote::Admission::new(listen.access, session(), to_fleet, traffic, register, opened);
        tokio::spawn(remote::serve(listener, listen.tls, admission, services));
    }
    loop {
        let deadline = driver.next_deadline();
        let input = tokio::select! {
            biased; // time passes only when nothing else is to be heard
            input = inputs.recv() => input,
            () = tokio::time::sleep_until(deadline.into()) => Some(Input::Happened(Event::Tick)),
        };
        match input {
            None | Some(Input::Abandoned) => return,
            Some(input) => driver.handle(input),
        }
        if driver.is_over() {
            if let Some((_, reply)) = driver.farewell.take() {
                // The caller need not wait for it.
                let _ = reply.send(());
            }
            return;
        }
    }
}

/// A session id that no other process has.
fn session() -> SessionId {
    let mut session = [0; 16];
    getrandom::fill(&mut session).expect("an operating system that has started gives random bytes");
    SessionId(session)
}

/// The loss of a member whose connection takes no more orders.
fn no_room(member: MemberId) -> Event {
    Event::MemberLost { member, cause: Cause::Disconnected("it takes no more orders".into()) }
}

impl Batch {
    /// Notifies the caller of events; the channel has room for the one notice that may be in it.
    fn wake(&self) {
        if !self.is_told.swap(true, Ordering::AcqRel) {
            // The caller may have gone.
            let _ = self.progress.try_send(Progress::Events);
        }
    }
}

impl Driver {
    fn new(
        config: &FleetConfig,
        register: Arc<Register>,
        traffic: Arc<Traffic>,
        open: watch::Sender<bool>,
    ) -> Driver {
        let timeouts = Timeouts {
            min_members: config.min_members,
            no_workers_grace: config.no_workers_grace,
            suspect_after: config.suspect_after,
            dead_after: config.dead_after,
            lease_deadline: config.lease_deadline,
            ..Timeouts::default()
        };
        Driver {
            started: clock::instant(),
            max_members: config.max_members,
            scheduler: Scheduler::new(timeouts),
            members: BTreeMap::new(),
            next_member: 0,
            batches: BTreeMap::new(),
            clients: BTreeMap::new(),
            register,
            open,
            traffic,
            tally: Tally::default(),
            decisions: Decisions::default(),
            expelled: Expelled::by(&config.expulsions.earlier),
            keep: config.expulsions.keep.clone(),
            farewell: None,
        }
    }

    fn next_deadline(&self) -> Instant {
        let idle = self.started + self.started.elapsed() + Duration::from_secs(3600);
        let scheduler = self.scheduler.next_deadline().map(|at| self.started + at);
        let farewell = self.farewell.as_ref().map(|(until, _)| *until);
        [scheduler, farewell].into_iter().flatten().fold(idle, Instant::min)
    }

    /// Whether the job is finished and all remote members know, or took too long.
    fn is_over(&self) -> bool {
        let remote = |member: &Member| member.remote && member.channel.is_some();
        self.farewell
            .as_ref()
            .is_some_and(|(until, _)| *until <= clock::instant() || !self.members.values().any(remote))
    }

    fn handle(&mut self, input: Input) {
        match input {
            Input::Joined { name, instance, machine, slots, holds, running, channel, reply } => {
                let id = MemberId(self.next_member);
                let process = instance.map_or(Process::Unnamed(id), Process::Named);
                let identity = Identity { process, machine };
                let admitted = match self.expelled.reason(&identity) {
                    Some(reason) => Err(NotAdmitted::Expelled(reason.to_owned())),
                    None => {
                        self.join(name, identity, slots, (holds, running), channel).ok_or(NotAdmitted::Full)
                    }
                };
                if let (Err(_), Ok(member)) = (reply.send(admitted.clone()), admitted) {
                    let cause = Cause::Disconnected("closed before the welcome".into());
                    self.decide(Event::MemberLost { member, cause }, None);
                }
            }
            Input::Happened(event) => self.decide(event, None),
            Input::Answered { member, lease, answer, busy } => {
                let is_remote = self.members.get(&member).is_none_or(|member| member.remote);
                let claims = is_remote && answer.claims();
                self.decide(Event::Answered { member, lease, claims }, Some((answer, busy)))
            }
            Input::Submitted(submission) => self.submit(submission),
            Input::RoomFreed { batch } => {
                if let Some(open) = self.batches.get(&batch) {
                    let only = open.backlog.only();
                    self.decide(Event::Backlog { batch, only }, None);
                }
            }
            Input::Cancelled { batch } => {
                if let Some(Batch { span, .. }) = self.close(batch) {
                    span.in_scope(|| debug!("cancelled"));
                    self.decide(Event::BatchCancelled { batch }, None);
                }
            }
            Input::Expelled { member, identity, reason } => {
                let members = self.members.values().map(|member| &member.identity);
                (self.keep)(self.expelled.add(&identity, &reason, members));
                // Its process may have connected again meanwhile.
                let is_present = |member: &&Member| member.channel.is_some();
                let is_same = |member: &Member| member.identity.process == identity.process;
                let present = self.members.iter().filter(|(_, member)| is_present(member));
                let again = present.filter(|(_, member)| is_same(member)).map(|(&id, _)| id).next();
                let member = again.unwrap_or(member);
                self.decide(Event::MemberLost { member, cause: Cause::Expelled(reason) }, None);
            }
            Input::StatusAsked { reply } => {
                // The caller may have gone.
                let _ = reply.send(self.status());
            }
            Input::Finished { reply } => {
                self.open.send_replace(false);
                for channel in self.members.values().filter_map(|member| member.channel.as_ref()) {
                    channel.orders.give(Order::Leave);
                }
                self.farewell = Some((clock::instant() + FAREWELL, reply));
            }
            Input::Abandoned => {}
        }
    }

    /// Adds a member; returns its id unless there are too many members.
    fn join(
        &mut self,
        name: String,
        identity: Identity,
        slots: u32,
        (holds, running): (Vec<ContentHash>, Vec<LeaseId>),
        channel: MemberChannel,
    ) -> Option<MemberId> {
        if self.n_present() >= self.max_members || self.farewell.is_some() {
            return None;
        }
        let member = MemberId(self.next_member);
        self.next_member += 1;
        info!(member = name, id = member.0, slots, held = holds.len(), "joined");
        let (remote, member_name) = (channel.remote, name.clone());
        let (tasks_done, busy) = self.take_over(&name);
        let state = Member {
            name,
            slots,
            remote,
            identity: identity.clone(),
            tasks_done,
            busy,
            joined: clock::instant(),
            channel: Some(channel),
            gone: None,
        };
        self.members.insert(member, state);
        let name = member_name.clone();
        self.tell(&FleetEvent::WorkerJoined { name, slots, workers: self.n_present() });
        self.decide(
            Event::MemberJoined {
                member,
                name: member_name,
                identity,
                slots,
                holds,
                running,
                watched: remote,
            },
            None,
        );
        Some(member)
    }

    /// Removes and returns the totals of a lost worker of that name, so that a worker is listed once however often it reconnects.
    fn take_over(&mut self, name: &str) -> (u64, Duration) {
        let mut before =
            self.members.iter().filter(|(_, member)| member.gone.is_some() && member.name == name);
        let before = before.next().map(|(&id, _)| id);
        let before = before.and_then(|id| self.members.remove(&id));
        before.map_or((0, Duration::ZERO), |before| (before.tasks_done, before.busy))
    }

    fn submit(&mut self, submission: Submission) {
        let Submission { batch, account, stage, tasks, replicas, progress, backlog, events, is_told } =
            submission;
        self.close_accounts();
        // Whether the batch waits is reported again, since its caller has not heard of the one before.
        self.clients.insert(account.id, Client { account: account.clone(), events, waiting: None });
        let pairs = replicas.pairs();
        let tasks = Arc::new(Open::new(tasks, replicas));
        let needs = tasks.needs();
        self.register.insert(batch, tasks.clone());
        let (mut report, traffic) = (MapReport::default(), self.traffic.so_far());
        report.busy_by_task = vec![Duration::ZERO; needs.len()];
        let (run, round) = stage.place().unzip();
        // Reported only where there are several.
        let named = Some(account.id.0).filter(|_| account.id != AccountId::default());
        let span = info_span!("batch", account = named, %stage, run, round);
        let (account, begun) = (*account, clock::instant());
        let open = Batch {
            account: account.id,
            stage,
            span,
            tasks,
            progress,
            backlog,
            is_told,
            begun,
            report,
            traffic,
        };
        self.batches.insert(batch, open);
        self.decide(Event::BatchSubmitted { batch, account, needs, replicas: pairs }, None);
    }

    /// Removes accounts without handle and open batch.
    fn close_accounts(&mut self) {
        let mut over: Vec<AccountId> = self.clients.keys().copied().collect();
        over.retain(|&account| !self.is_in_use(account));
        for account in over {
            self.clients.remove(&account);
            self.decide(Event::AccountClosed { account }, None);
        }
    }

    /// Whether the account has an open batch or a handle.
    fn is_in_use(&self, id: AccountId) -> bool {
        self.clients.get(&id).is_some_and(|client| Arc::strong_count(&client.account) > 1)
            || self.batches.values().any(|batch| batch.account == id)
    }

    /// Passes an event to the scheduler and performs its actions; `answer` is the value of an `Answered`.
    fn decide(&mut self, event: Event, mut answer: Option<(Answer, Duration)>) {
        let mut events = vec![event];
        while let Some(event) = events.pop() {
            if let Event::MemberLost { member, cause } = &event {
                self.dismiss(*member, cause.clone());
            }
            let at = self.started.elapsed();
            self.decisions.happened(at, &event);
            for action in self.scheduler.handle(at, event) {
                self.decisions.did(at, &action);
                match action {
                    Action::Assign { member, lease } => {
                        if !self.assign(member, lease) {
                            events.push(no_room(member));
                        }
                    }
                    Action::Withdraw { member, lease } => events.extend(self.withdraw(member, lease)),
                    Action::Confirm { batch, task, replica } => self.confirm(batch, task, replica),
                    Action::Accept { member, lease, refuted } => {
                        if let Some((answer, busy)) = answer.take() {
                            let batch = lease.batch;
                            let only = self.accept(member, lease, answer, busy, refuted);
                            events.extend(only.map(|only| Event::Backlog { batch, only: Some(only) }));
                        }
                    }
                    Action::Discard { member, lease } => {
                        let _logged = self.span(Some(lease.batch)).entered();
                        self.tally.discarded += 1;
                        let (shard, member) = (self.shard(lease), self.name(member));
                        debug!(shard, attempt = lease.attempt.0, member, "answer came too late");
                    }
                    Action::Forget { member, cause } => self.dismiss(member, cause),
                    Action::ReportWaiting { members, wanted, just_begun } => {
                        let _logged = self.span(None).entered();
                        if just_begun {
                            info!(members, wanted, "waiting for workers");
                        } else {
                            warn!(members, wanted, "waiting for workers");
                        }
                    }
                    Action::BatchDone { batch } => self.end(batch, None),
                    Action::Fail { batch, failure, reporters } => self.end(batch, Some((failure, reporters))),
                }
            }
        }
        self.review_waiting();
    }

    /// Adds an event to the queues of all jobs.
    fn tell(&self, event: &FleetEvent) {
        self.clients.values().for_each(|client| client.events.push(event.clone()));
        self.batches.values().for_each(Batch::wake);
    }

    /// Updates for each job whether its tasks wait for workers.
    fn review_waiting(&mut self) {
        for (&account, client) in &mut self.clients {
            let mut own = self.batches.values().filter(|batch| batch.account == account);
            let waiting = self.scheduler.shortage(account).and_then(|shortage| {
                let Shortage { members: workers, wanted } = shortage;
                Some(Waiting { stage: own.next()?.stage, workers, wanted })
            });
            if waiting != client.waiting {
                client.waiting = waiting;
                client.events.set_waiting(waiting);
                let own = self.batches.values().filter(|batch| batch.account == account);
                own.for_each(Batch::wake);
            }
        }
    }

    /// Number of present members.
    fn n_present(&self) -> usize {
        self.members.values().filter(|member| member.channel.is_some()).count()
    }

    /// The span of a batch's log lines; without a batch, that of the only open batch, if there is exactly one.
    fn span(&self, batch: Option<BatchId>) -> Span {
        let only = self.batches.values().next().filter(|_| self.batches.len() == 1);
        let batch = batch.and_then(|batch| self.batches.get(&batch)).or(only);
        batch.map_or_else(Span::none, |batch| batch.span.clone())
    }

    /// Sends a lease to a member. Returns false if there is no room for it.
    fn assign(&mut self, id: MemberId, lease: LeaseId) -> bool {
        let (shard, member) = (self.shard(lease), self.name(id));
        let Some(batch) = self.batches.get_mut(&lease.batch) else { return true };
        let _logged = batch.span.enter();
        debug!(shard, attempt = lease.attempt.0, member, "assigned");
        batch.report.attempts += 1;
        self.tally.attempts += 1;
        let job = Job { lease, tasks: batch.tasks.clone() };
        let channel = self.members.get(&id).and_then(|member| member.channel.as_ref());
        channel.map(|channel| channel.orders.give(Order::Compute(job))) != Some(Given::Full)
    }

    /// Withdraws a lease from a member. Returns the event that follows at once.
    fn withdraw(&self, member: MemberId, lease: LeaseId) -> Option<Event> {
        debug!(%lease, member = self.name(member), "withdrawn");
        match self.members.get(&member)?.channel.as_ref()?.orders.give(Order::Withdraw(lease)) {
            Given::Taken => None,
            Given::Withdrawn => Some(Event::Withdrawn { member, lease }),
            Given::Full => Some(no_room(member)),
        }
    }

    /// Adds a replica of a task, whose answer claims something, to an open batch.
    fn confirm(&mut self, batch: BatchId, task: TaskIndex, replica: TaskIndex) {
        let Some(batch) = self.batches.get_mut(&batch) else { return };
        let _logged = batch.span.enter();
        debug!(task = task.0, "another member is asked to confirm a claim");
        let added = batch.tasks.add_replica(task);
        debug_assert_eq!(added, replica, "the scheduler counts the tasks as this batch does");
        batch.report.busy_by_task.push(Duration::ZERO);
        // The channel has room for all; the caller may have gone.
        let _ = batch.progress.try_send(Progress::Confirming { task });
    }

    /// Passes an answer on to the caller. If this makes the backlog full, returns the task whose answer is processed next.
    fn accept(
        &mut self,
        id: MemberId,
        lease: LeaseId,
        answer: Answer,
        busy: Duration,
        refuted: Vec<Reporter>,
    ) -> Option<TaskIndex> {
        let (shard, member) = (self.shard(lease), self.name(id));
        let witness = self.witness(id);
        let batch = self.batches.get_mut(&lease.batch)?;
        let _logged = batch.span.enter();
        debug!(shard, attempt = lease.attempt.0, member, ?busy, "answered");
        self.tally.accepted += 1;
        batch.tasks.close(lease.task);
        // Busy is what the member says: it must not overflow.
        if let Some(member) = self.members.get_mut(&id) {
            member.tasks_done += 1;
            member.busy = member.busy.saturating_add(busy);
        }
        batch.report.busy = batch.report.busy.saturating_add(busy);
        if let Some(of_task) = batch.report.busy_by_task.get_mut(lease.task.index()) {
            *of_task = busy;
        }
        let is_full = batch.backlog.add(answer.size());
        // The channel has room for all; the caller may have gone.
        let task = lease.task;
        let answer = Box::new(answer);
        let _ = batch.progress.try_send(Progress::Answered { task, witness, answer, refuted });
        batch.backlog.only().filter(|_| is_full)
    }

    /// The member as a witness; one that is gone without an accepted answer is an unknown worker.
    fn witness(&self, id: MemberId) -> Witness {
        let name = self.name(id);
        match self.members.get(&id) {
            Some(member) => Witness { id, name, identity: member.identity.clone(), is_remote: member.remote },
            None => {
                let identity = Identity { process: Process::Unnamed(id), machine: Machine("unknown".into()) };
                Witness { id, name, identity, is_remote: true }
            }
        }
    }

    /// The caller's task of a lease, for logs.
    fn shard(&self, lease: LeaseId) -> u32 {
        let batch = self.batches.get(&lease.batch);
        batch.map_or(lease.task, |batch| batch.tasks.original(lease.task)).0
    }

    /// Name of a member, for messages; the id of a lost member without accepted answers.
    fn name(&self, id: MemberId) -> String {
        self.members.get(&id).map_or_else(|| format!("#{}", id.0), |member| member.name.clone())
    }

    fn dismiss(&mut self, id: MemberId, cause: Cause) {
        let span = self.span(None);
        let Some(member) = self.members.get_mut(&id).filter(|member| member.channel.is_some()) else {
            return;
        };
        member.channel = None;
        let name = member.name.clone();
        let cause = if self.farewell.is_some() { Cause::Left } else { cause };
        let _logged = span.entered();
        *self.tally.losses.entry(cause.kind()).or_default() += 1;
        if cause == Cause::Left {
            info!(member = name, id = id.0, "left");
        } else {
            warn!(member = name, id = id.0, kind = cause.kind(), %cause, "lost");
            for batch in self.batches.values_mut().filter(|batch| batch.report.losses.len() < LOSSES) {
                batch.report.losses.push(Loss { name: name.clone(), cause: cause.clone() });
            }
        }
        member.gone = Some((cause.clone(), clock::instant()));
        if member.tasks_done == 0 {
            self.members.remove(&id);
        }
        self.tell(&FleetEvent::WorkerLost { name, cause, workers: self.n_present() });
    }

    /// Removes and returns an open batch.
    fn close(&mut self, batch: BatchId) -> Option<Batch> {
        self.register.remove(batch);
        self.batches.remove(&batch)
    }

    fn end(&mut self, batch: BatchId, failure: Option<(Failure, Vec<Reporter>)>) {
        let Some(Batch { span, progress, begun, mut report, traffic, .. }) = self.close(batch) else {
            return;
        };
        let (sent, received) = self.traffic.so_far();
        report.wall = begun.elapsed();
        let present = || self.members.values().filter(|member| member.channel.is_some());
        report.slots = present().map(|member| member.slots as usize).sum();
        report.n_remote = present().filter(|member| member.remote).count();
        (report.bytes_sent, report.bytes_received) = (sent - traffic.0, received - traffic.1);
        let end = match failure {
            None => Progress::Done(report),
            Some((failure, reporters)) => {
                span.in_scope(|| warn!(%failure, "batch failed"));
                let decisions = self.decisions.report(|member| self.name(member));
                Progress::Failed { failure, reporters, decisions }
            }
        };
        // Room is never short; the caller may have gone.
        let _ = progress.try_send(end);
    }

    fn status(&self) -> FleetStatus {
        let now = clock::instant();
        let standings = self.scheduler.accounts();
        let in_use = standings.iter().filter(|standing| self.is_in_use(standing.account.id));
        let accounts: Vec<AccountStatus> = in_use.map(|standing| self.account(now, standing)).collect();
        let mut shards = Shards::default();
        accounts.iter().for_each(|account| shards += account.shards);
        let oldest = accounts.iter().filter_map(|account| account.oldest.clone());
        let (bytes_sent, bytes_received) = self.traffic.so_far();
        FleetStatus {
            stage: self.batches.values().next().map(|batch| batch.stage),
            shards,
            members: self.members.iter().map(|(&id, member)| self.info(now, id, member)).collect(),
            oldest: oldest.max_by_key(|lease| lease.age),
            accounts,
            losses: self.tally.losses.clone(),
            attempts: self.tally.attempts,
            accepted: self.tally.accepted,
            discarded: self.tally.discarded,
            bytes_sent,
            bytes_received,
            up: now - self.started,
        }
    }

    fn account(&self, now: Instant, standing: &AccountState) -> AccountStatus {
        let oldest = standing.oldest.and_then(|(lent_at, member, lease)| {
            let member = self.members.get(&member)?.name.clone();
            let age = (now - self.started).saturating_sub(lent_at);
            let task = TaskIndex(self.shard(lease));
            Some(OldestLease { task, attempt: lease.attempt, member, age })
        });
        let batch = standing.batch.and_then(|batch| self.batches.get(&batch));
        AccountStatus {
            account: standing.account,
            stage: batch.map(|batch| batch.stage),
            shards: standing.shards,
            oldest,
            slot_time: standing.slot_time,
            members: standing.n_members,
        }
    }

    fn info(&self, now: Instant, id: MemberId, member: &Member) -> MemberInfo {
        let age = |at: Duration| (now - self.started).saturating_sub(at);
        let here = self.scheduler.member(id);
        let (state, silent) = match (&member.gone, &here) {
            (Some((cause, since)), _) => (MemberState::Gone(cause.clone()), now - *since),
            // Threads of this process need not say that they live.
            (None, Some(here)) if member.remote => (here.state.clone(), age(here.heard)),
            (None, _) => (MemberState::Healthy, Duration::ZERO),
        };
        MemberInfo {
            id,
            name: member.name.clone(),
            slots: member.slots,
            tasks_done: member.tasks_done,
            busy: member.busy,
            state,
            losses: self.scheduler.losses(&member.name),
            failures: self.scheduler.failures(&member.name),
            on_probation: here.as_ref().is_some_and(|here| here.on_probation),
            leases: here.as_ref().map_or(0, |here| here.n_leases),
            oldest_lease: here.and_then(|here| here.oldest_lease).map(age),
            joined: now - member.joined,
            silent,
        }
    }
}

#[cfg(test)]
mod tests {
    use grammaton::work::task::Task;

    use super::super::audit::Replicas;
    use super::super::tasks::Tasks;
    use super::*;

    /// One task, which is never made.
    struct One;

    impl Tasks for One {
        fn len(&self) -> usize {
            1
        }

        fn needs(&self, _: usize) -> scheduler::Needs {
            scheduler::Needs::shard(ContentHash([0; 32]))
        }

        fn make(&self, _: usize) -> anyhow::Result<Task> {
            anyhow::bail!("never made")
        }
    }

    #[test]
    fn the_cause_of_a_loss_is_what_the_connection_says_even_if_an_order_finds_it_closed_before() {
        let register = Arc::<Register>::default();
        let (open, _opened) = watch::channel(true);
        let mut driver = Driver::new(&FleetConfig::default(), register.clone(), Arc::default(), open);
        let (channel, orders, _dismissed) = MemberChannel::remote(1);
        let identity = Identity { process: Process::Unnamed(MemberId(0)), machine: Machine("here".into()) };
        let member = driver.join("alice".into(), identity, 1, (Vec::new(), Vec::new()), channel).unwrap();
        drop(orders);
        let (progress, _received) = mpsc::channel(4);
        driver.handle(Input::Submitted(Submission {
            batch: register.next(),
            account: Arc::default(),
            stage: Stage::Cover,
            tasks: Arc::new(One),
            replicas: Replicas::choose(1, 0.0, 0),
            progress,
            backlog: Arc::new(Backlog::new(1)),
            events: Arc::default(),
            is_told: Arc::default(),
        }));
        assert_eq!((driver.tally.attempts, driver.tally.losses.len()), (1, 0));

        let cause = Cause::Disconnected("the other process was killed".into());
        driver.handle(Input::Happened(Event::MemberLost { member, cause: cause.clone() }));
        let losses = driver.batches.values().flat_map(|batch| &batch.report.losses);
        assert_eq!(losses.map(|loss| &loss.cause).collect::<Vec<_>>(), [&cause]);
        assert_eq!(driver.tally.losses.get("disconnected"), Some(&1));
    }
}
