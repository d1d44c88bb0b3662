//! A job's handle of the fleet: computes batches on the job's account until the job is cancelled.
//!
//! In: batches, on the threads of their callers; several may be open. Out: their answers, in task order. Invariant: a batch whose caller
//! is gone is not computed any further.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Instant;

use basics::clock;
use grammaton::stop::Stop;
use grammaton::work::lease::{BatchId, TaskIndex};
use grammaton::work::task::Answer;
use parking_lot::{Mutex, MutexGuard};
use tokio::sync::mpsc;

use super::audit::{Audit, Doubt, Heard, Replicas};
use super::backlog::Backlog;
use super::fleet_events::{EventQueue, FleetEvent, Pending, Waiting};
use super::local::lacks_memory;
use super::messages::{Input, Progress, Submission};
use super::tasks::{Register, Tasks};
use super::watcher::Watcher;
use super::{Compute, Effort, FleetError, Map, MapReport, Mismatch, Stage};
use scheduler::{Account, Failure, Identity};

/// The parts that all handles of a fleet share.
#[derive(Clone)]
pub(super) struct Link {
    /// Channel to the driver.
    pub inputs: mpsc::Sender<Input>,
    /// Source of batch ids.
    pub register: Arc<Register>,
    /// Share of the tasks that two members compute.
    pub audit: f64,
    /// Maximum size of a batch's backlog, in bytes.
    pub room: usize,
    /// The arbiter of audits.
    pub compute: Compute,
}

/// Handle of an account. Clones share it; it does not keep the fleet alive.
#[derive(Clone)]
pub struct Handle(Arc<Inner>);

struct Inner {
    link: Link,
    /// The driver removes the account when this is dropped.
    account: Arc<Account>,
    /// Fleet events for the account, from its first batch on.
    events: Arc<EventQueue>,
    /// Number of batches so far; the first audited task depends on the job's own batches alone.
    n_batches: AtomicUsize,
    /// Whether every task of later batches is audited.
    audits_all: AtomicBool,
    calls: Mutex<Calls>,
    effort: Mutex<Effort>,
}

/// Calls in progress, which a cancellation ends.
#[derive(Default)]
struct Calls {
    cancelled: bool,
    /// Channels to callers, some of which may have ended, and the ends of what they compute themselves.
    waiting: Vec<(mpsc::WeakSender<Progress>, Stop)>,
}

impl Calls {
    /// Cancels the calls in progress.
    fn end(&mut self) {
        for (waiting, stop) in self.waiting.drain(..) {
            stop.request();
            if let Some(progress) = waiting.upgrade() {
                // There is room for one; the caller may have gone.
                let _ = progress.try_send(Progress::Cancelled);
            }
        }
    }
}

impl Handle {
    pub(super) fn new(link: Link, account: Account) -> Handle {
        let (n_batches, audits_all) = (AtomicUsize::new(0), AtomicBool::new(false));
        let (calls, effort) = (Mutex::default(), Mutex::default());
        let (account, events) = (Arc::new(account), Arc::default());
        Handle(Arc::new(Inner { link, account, events, n_batches, audits_all, calls, effort }))
    }

    /// The account on which it computes batches.
    pub fn account(&self) -> Account {
        *self.0.account
    }

    /// Ends the calls of [`Map::map`] in progress with [`FleetError::Cancelled`], at the next answer at the latest, and any later ones at
    /// once. May be called from any thread, also within a runtime.
    pub fn cancel(&self) {
        let mut calls = self.calls();
        calls.cancelled = true;
        calls.end();
    }

    /// Ends the calls of [`Map::map`] in progress as [`Handle::cancel`] does; later ones are computed.
    pub fn interrupt(&self) {
        self.calls().end();
    }

    /// Whether the job was cancelled.
    pub fn is_cancelled(&self) -> bool {
        self.calls().cancelled
    }

    /// Effort of its finished batches so far.
    pub fn effort(&self) -> Effort {
        *self.0.effort.lock()
    }

    fn calls(&self) -> MutexGuard<'_, Calls> {
        self.0.calls.lock()
    }

    /// Adds a call in progress; returns the end of what it computes itself.
    fn enlist(&self, progress: &mpsc::Sender<Progress>) -> Stop {
        let (stop, mut calls) = (Stop::default(), self.calls());
        calls.waiting.retain(|(waiting, _)| waiting.strong_count() > 0);
        calls.waiting.push((progress.downgrade(), stop.clone()));
        stop
    }

    fn stop_if_cancelled(&self) -> Result<(), FleetError> {
        if self.is_cancelled() { Err(FleetError::Cancelled) } else { Ok(()) }
    }

    /// Decides who is wrong by the answer that the job's own process computes, and expels those members. Returns an error if an answer is wrong,
    /// or if there is none.
    fn judge(&self, stage: Stage, tasks: &dyn Tasks, doubt: Doubt, stop: &Stop) -> Result<(), FleetError> {
        let Doubt { task, testimonies, reporters } = doubt;
        let own = tasks.digest(task.index(), &self.0.link.compute, stop).map_err(|error| {
            if stop.is_requested() {
                return FleetError::Cancelled;
            }
            let detail =
                format!("the answers of workers cannot be checked by the job's own process: {error:#}");
            let failure = Failure::Task { task, detail, lacks_memory: lacks_memory(&error) };
            FleetError::Batch { stage, failure, decisions: Vec::new() }
        })?;
        let (right, wrong): (Vec<_>, Vec<_>) =
            testimonies.into_iter().partition(|testimony| testimony.digest == own);
        let [right, wrong] = [right, wrong].map(|of| of.into_iter().map(|of| of.witness).collect::<Vec<_>>());
        let expel = |member, identity: &Identity, why: &str| {
            let (identity, reason) = (identity.clone(), format!("{stage}: {why}"));
            // A fleet that has stopped has no members.
            let _ = self.0.link.tell(Input::Expelled { member, identity, reason });
        };
        for witness in &wrong {
            expel(witness.id, &witness.identity, &format!("its answer to task {} was wrong", task.0));
        }
        for reporter in &reporters {
            let why = format!("it reported that task {} cannot be computed, and it can", task.0);
            expel(reporter.member, &reporter.identity, &why);
        }
        if wrong.is_empty() && !right.is_empty() {
            return Ok(());
        }
        let ids = wrong.iter().map(|witness| witness.id).chain(reporters.iter().map(|by| by.member));
        let mismatch = Mismatch {
            task,
            is_mended: wrong.iter().all(|witness| witness.is_remote),
            expelled: ids.map(|id| id.0).collect(),
            right: right.into_iter().next().map(|witness| witness.name),
            wrong: wrong.into_iter().map(|witness| witness.name).collect(),
            reported: reporters.into_iter().map(|reporter| reporter.name).collect(),
        };
        Err(FleetError::Audit { stage, mismatch: Box::new(mismatch) })
    }
}

impl Map for Handle {
    fn check(&self) -> Result<(), FleetError> {
        self.stop_if_cancelled()
    }

    fn audit_all(&self) -> bool {
        let status = Watcher::new(self.0.link.inputs.clone()).blocking_status().unwrap_or_default();
        status.members.len() > 1 && !self.0.audits_all.swap(true, Ordering::Relaxed)
    }

    fn map(
        &self,
        stage: Stage,
        tasks: Arc<dyn Tasks>,
        each: &mut dyn FnMut(usize, Answer),
    ) -> Result<MapReport, FleetError> {
        self.map_with_events(stage, tasks, each, &mut |_| {})
    }

    fn map_with_events(
        &self,
        stage: Stage,
        tasks: Arc<dyn Tasks>,
        each: &mut dyn FnMut(usize, Answer),
        hear: &mut dyn FnMut(FleetEvent),
    ) -> Result<MapReport, FleetError> {
        let mut listener = Listener { events: &self.0.events, hear, waits: None };
        let result = self.compute(stage, tasks, each, &mut listener);
        listener.end();
        result
    }
}

impl Handle {
    fn compute(
        &self,
        stage: Stage,
        tasks: Arc<dyn Tasks>,
        each: &mut dyn FnMut(usize, Answer),
        listener: &mut Listener<'_>,
    ) -> Result<MapReport, FleetError> {
        let Inner { link, account, events, n_batches, audits_all, effort, .. } = &*self.0;
        let n_tasks = tasks.len();
        // All later tasks of a shard are made by its index, and another set of parameters is as plausible.
        let audits_all = audits_all.load(Ordering::Relaxed) || stage == Stage::Index && link.audit > 0.0;
        let share = if audits_all { 1.0 } else { link.audit };
        let replicas = Replicas::choose(n_tasks, share, n_batches.fetch_add(1, Ordering::Relaxed));
        let mut n_replicas = replicas.len();
        let mut audit = Audit::new(replicas.clone());
        // Each task and its replica are accepted once, with a notice of the replica; and then comes the end, or before it a cancellation, and one
        // notice of events at a time: sending never waits for a slow `each`, for which others are begun later.
        let (progress, mut received) = mpsc::channel(3 * n_tasks + 3);
        let stop = self.enlist(&progress);
        self.stop_if_cancelled()?;
        let backlog = Arc::new(Backlog::new(link.room));
        let (batch, is_told) = (link.register.next(), Arc::new(AtomicBool::new(false)));
        link.tell(Input::Submitted(Submission {
            batch,
            account: account.clone(),
            stage,
            tasks: tasks.clone(),
            replicas,
            progress,
            backlog: backlog.clone(),
            events: events.clone(),
            is_told: is_told.clone(),
        }))?;
        let mut caller = Caller { link, batch: Some(batch) };
        listener.tell_events();
        let mut early = BTreeMap::new();
        let mut next = TaskIndex(0);
        loop {
            let progress = received.blocking_recv().ok_or(FleetError::Stopped)?;
            self.stop_if_cancelled()?;
            match progress {
                Progress::Confirming { task } => {
                    audit.confirm(task);
                    n_replicas += 1;
                }
                Progress::Answered { task, witness, answer, refuted } => {
                    if !refuted.is_empty() {
                        let doubt = audit.refute(task, &witness, &answer, refuted);
                        self.judge(stage, &*tasks, doubt, &stop)?;
                    }
                    let processed = |size, awaited| {
                        if backlog.take(size, awaited) {
                            link.tell(Input::RoomFreed { batch })
                        } else {
                            Ok(())
                        }
                    };
                    let Heard { certain, confirming, doubt } = audit.hear(task, witness, *answer);
                    if let Some(doubt) = doubt {
                        self.judge(stage, &*tasks, doubt, &stop)?;
                    }
                    early.extend(certain);
                    processed(confirming, audit.awaited(next))?;
                    while let Some(answer) = early.remove(&next) {
                        let size = answer.size();
                        each(next.index(), answer);
                        next = TaskIndex(next.0 + 1);
                        processed(size, audit.awaited(next))?;
                        self.stop_if_cancelled()?;
                    }
                }
                Progress::Events => {
                    is_told.store(false, Ordering::Release);
                    listener.tell_all();
                }
                Progress::Done(report) => {
                    caller.batch = None;
                    let (audited, unaudited) = (audit.audited, audit.unaudited);
                    let report = MapReport { audited, unaudited, ..report };
                    effort.lock().add(n_tasks, n_replicas, &report);
                    return Ok(report);
                }
                Progress::Failed { failure, reporters, decisions } => {
                    caller.batch = None;
                    if let (Failure::GivenUp { task, .. }, false) = (&failure, reporters.is_empty()) {
                        let doubt = Doubt { task: *task, testimonies: Vec::new(), reporters };
                        match self.judge(stage, &*tasks, doubt, &stop) {
                            // The reports are right.
                            Err(FleetError::Batch { .. }) => {}
                            judged => judged?,
                        }
                    }
                    return Err(FleetError::Batch { stage, failure, decisions });
                }
                Progress::Cancelled => return Err(FleetError::Cancelled),
            }
        }
    }
}

impl Link {
    fn tell(&self, input: Input) -> Result<(), FleetError> {
        self.inputs.blocking_send(input).map_err(|_| FleetError::Stopped)
    }
}

/// Passes fleet events to the caller of a batch.
struct Listener<'a> {
    events: &'a EventQueue,
    hear: &'a mut dyn FnMut(FleetEvent),
    /// The wait that was last reported to the caller, and its begin.
    waits: Option<(Waiting, Instant)>,
}

impl Listener<'_> {
    /// Tells all new events, and whether tasks wait.
    fn tell_all(&mut self) {
        match self.tell_events() {
            Some(waiting) if self.waits.is_some_and(|(known, _)| known == waiting) => {}
            Some(waiting) => {
                self.waits = Some((waiting, self.waits.map_or_else(clock::instant, |(_, since)| since)));
                (self.hear)(FleetEvent::Waiting(waiting));
            }
            None => self.end(),
        }
    }

    /// Tells all new events; returns what the tasks of the account wait for.
    fn tell_events(&mut self) -> Option<Waiting> {
        let Pending { events, missed, waiting } = self.events.take();
        events.into_iter().for_each(|event| (self.hear)(event));
        if missed > 0 {
            (self.hear)(FleetEvent::Missed { events: missed });
        }
        waiting
    }

    /// Tells the end of waiting: tasks are assigned again, or the batch is over.
    fn end(&mut self) {
        if let Some((_, since)) = self.waits.take() {
            (self.hear)(FleetEvent::WaitingOver { waited: since.elapsed() });
        }
    }
}

/// The caller of a batch. Dropped while the batch is open, it cancels the batch.
struct Caller<'a> {
    link: &'a Link,
    batch: Option<BatchId>,
}

impl Drop for Caller<'_> {
    fn drop(&mut self) {
        if let Some(batch) = self.batch {
            // An error means that the driver is gone, and so has stopped.
            let _ = self.link.tell(Input::Cancelled { batch });
        }
    }
}
