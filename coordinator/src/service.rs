//! Many jobs of many people on one fleet.
//!
//! ```text
//! submitted ──check──> record on disk ──queue──> thread ──Map──> fleet
//!                                                  └── output folder, job log, run status ──> observers
//! ```
//!
//! A job is trained by the code that `train` runs, on a thread of its own, and so comes to the same result. [`queue`] decides which jobs are in
//! work, the fleet shares itself among these ([`crate::fleet::Account`]); [`record`] is what is known of a job, [`job_store`] where things are kept,
//! [`acceptance`] how a job gets there,
//! [`remote`] their copy in an object store, for which one process at a time has [`leader_lease`],
//! [`job_log`] what happened; `work` is the thread of a job, [`view`] what there is to see of it; [`rpc`] is how commands reach all this.
//!
//! Invariants: a job is accepted when its record is on disk, and not before; a job that was accepted goes on in the next process, whatever became
//! of this one; what ends one job (a panic, a poisonous sentence, a corpus that cannot be read) ends no other.

pub mod acceptance;
pub mod audit;
pub mod job_log;
mod job_runner;
pub mod job_store;
pub mod leader_lease;
pub mod outgoing;
pub mod queue;
pub mod record;
pub mod remote;
pub mod rpc;
pub mod view;

#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::Sender;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime};

use anyhow::{Context, Result, anyhow};
use blake3::Hash;
use tokio::sync::watch;

use crate::access::{Identity, Role};
use crate::fleet::{Fleet, Handle, Watcher};
use crate::job::{Job, JobError};
use crate::status::RunStatus;
use crate::store;
use crate::train::group::Inputs;

use self::acceptance::Acceptance;
use self::audit::Audit;
use self::job_log::{JobLog, Notifier};
use self::job_runner::Order;
use self::job_store::{Incoming, JobStore, inputs_in, is_safe, log_in};
use self::queue::{Action, Done, Event, Queue, Refusal};
use self::record::{Input, JobId, Millis, PRIORITIES, Record, State, View};
use self::remote::BEAT;
use self::view::{JobView, SharedView};

/// How much a service takes on.
#[derive(Clone, PartialEq, Debug)]
pub struct Limits {
    /// Jobs in work at a time.
    pub room: usize,
    /// Jobs that wait or are in work.
    pub jobs: usize,
    /// Bytes of a file that is brought.
    pub upload: u64,
    /// Beginnings of URLs that jobs may read.
    pub urls: Vec<String>,
    /// How long a job is kept after its end; `None`: for ever.
    pub keep: Option<Duration>,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits { room: 16, jobs: 10_000, upload: 64 << 30, urls: Vec::new(), keep: None }
    }
}

/// Bytes of a job file.
const MAX_JOB: usize = 1 << 20;
/// Files that a job reads.
const MAX_INPUTS: usize = 64;
/// A day.
pub const DAY: Duration = Duration::from_secs(24 * 60 * 60);
/// Letters of a name or key.
const MAX_NAME: usize = 100;

/// A job as it is submitted.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Submission {
    /// The job file.
    pub job: String,
    /// The files it reads.
    pub inputs: Vec<Input>,
    /// For people.
    pub name: String,
    /// As in [`Record`]; 0: the usual one.
    pub priority: u32,
    /// As in [`Record`]; 0: any number.
    pub max_workers: u32,
    /// As in [`Record`].
    pub key: String,
}

/// Some of the jobs, the newest first, and how many there are.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Page {
    /// Those of this page.
    pub jobs: Vec<View>,
    /// Its number, from 1,
    pub page: usize,
    /// of so many.
    pub pages: usize,
    /// All jobs, by the names of states.
    pub by_state: BTreeMap<&'static str, usize>,
}

/// Why something was not done.
#[derive(Debug, thiserror::Error)]
pub enum Problem {
    /// Not by this person.
    #[error("{0}")]
    Denied(String),
    /// Not in this state of things.
    #[error(transparent)]
    Refused(#[from] Refusal),
    /// A file is not here.
    #[error("{path}: the service does not have this file (any more); submit the job again, and it is sent")]
    Lacking {
        /// As it stands in the job.
        path: String,
    },
    /// It is not a job that can be trained, or not a file.
    #[error("{0}")]
    Invalid(String),
    /// The service cannot.
    #[error("{0:#}")]
    Failed(#[from] anyhow::Error),
}

/// A service at work; clones are the same one.
#[derive(Clone)]
pub struct Service(Arc<Inner>);

struct Inner {
    job_store: JobStore,
    /// Locked before the queue, if both are.
    acceptance: Mutex<Acceptance>,
    queue: Mutex<Queue>,
    /// Of those in work.
    working: Mutex<BTreeMap<JobId, Handle>>,
    /// Of those in work now, or before in this process.
    run_statuses: Mutex<BTreeMap<JobId, RunStatus>>,
    /// Of those in work.
    views: Mutex<BTreeMap<JobId, SharedView>>,
    fleet: Fleet,
    /// Threads of this process that compute.
    local_workers: usize,
    /// To the threads of jobs, until the service closes.
    orders: Mutex<Option<Sender<Order>>>,
    limits: Limits,
    audit: Audit,
    /// Rings with every change.
    notifier: Notifier,
    /// Whether jobs in work are to be left for the next process.
    closing: AtomicBool,
    /// Why this service may not go on, once there is a reason.
    ousted: watch::Sender<Option<String>>,
}

impl Service {
    /// Goes on with what is in `job_store`, on `fleet`. Not to be called within a runtime.
    pub fn start(job_store: JobStore, fleet: Fleet, local_workers: usize, limits: Limits) -> Result<Service> {
        let audit = Audit::open(&job_store.audit())?;
        let records = job_store.records()?;
        let accepted: BTreeSet<JobId> = records.iter().map(|record| record.id).collect();
        let (deleted, records): (Vec<Record>, Vec<Record>) =
            records.into_iter().partition(|record| record.is_deleted);
        for Record { id, .. } in deleted {
            if let Err(error) = job_store.remove_deleted(id) {
                tracing::warn!("{id}: the job was deleted, but cannot be removed yet: {error:#}");
            }
        }
        let found = job_store.remove_unaccepted(&accepted).context("what is of no use cannot be removed")?;
        job_store.forget_others(records.iter()).context("what is of no use cannot be removed")?;
        let acceptance = Acceptance::open(job_store.open_records()?, found.max(accepted.last().copied()))?;
        let (queue, actions) = Queue::new(records, limits.room, limits.jobs, now());
        let (orders, received) = std::sync::mpsc::channel();
        let room = limits.room.max(1);
        let service = Service(Arc::new(Inner {
            job_store,
            acceptance: Mutex::new(acceptance),
            queue: Mutex::new(queue),
            working: Mutex::default(),
            run_statuses: Mutex::default(),
            views: Mutex::default(),
            fleet,
            local_workers,
            orders: Mutex::new(Some(orders)),
            limits,
            audit,
            notifier: Notifier::default(),
            closing: AtomicBool::new(false),
            ousted: watch::Sender::new(None),
        }));
        job_runner::start(&service, room, received)?;
        if service.0.job_store.is_remote() || service.0.limits.keep.is_some() {
            let upkeep = Arc::downgrade(&service.0);
            let body = move || {
                while upkeep.upgrade().is_some_and(|inner| Service(inner).keep_up()) {
                    std::thread::sleep(BEAT);
                }
            };
            let spawned = std::thread::Builder::new().name("upkeep".into()).spawn(body);
            spawned.context("cannot start a thread")?;
        }
        {
            let queue = service.queue();
            for action in &actions {
                if let Action::Save(id) = action
                    && let Some(Record { state: State::Failed { error }, .. }) = queue.get(*id)
                {
                    let _ = service.0.job_store.recall(*id); // if it cannot be brought, there is no log to tell it in
                    service.job_log(*id).tell(now(), &format!("failed: {error}"));
                    service.tell(*id);
                }
            }
            service.perform(&queue, actions);
        }
        Ok(service)
    }

    /// A way to ask the fleet for its status.
    pub fn watcher(&self) -> Watcher {
        self.0.fleet.watcher()
    }

    /// Rings with every change of any job.
    pub fn notifier(&self) -> &Notifier {
        &self.0.notifier
    }

    /// The newest `n` jobs that are older than `before`.
    pub fn jobs(&self, before: Option<JobId>, n: usize) -> Vec<View> {
        let queue = self.queue();
        self.views(&queue, queue.older(before).take(n).collect())
    }

    /// All jobs in work.
    pub fn working(&self) -> Vec<View> {
        let queue = self.queue();
        self.views(&queue, queue.working().collect())
    }

    /// How many jobs there are in each state, by its name.
    pub fn by_state(&self) -> BTreeMap<&'static str, usize> {
        self.queue().by_state()
    }

    /// Page number `page` of all jobs, of `size` jobs each; the last one if there are fewer.
    pub fn page(&self, page: usize, size: usize) -> Page {
        let queue = self.queue();
        let by_state = queue.by_state();
        let pages = by_state.values().sum::<usize>().div_ceil(size).max(1);
        let page = page.clamp(1, pages);
        let jobs = self.views(&queue, queue.older(None).skip((page - 1) * size).take(size).collect());
        Page { jobs, page, pages, by_state }
    }

    /// One job.
    pub fn job(&self, id: JobId) -> Result<View, Problem> {
        let queue = self.queue();
        let record = queue.get(id).ok_or(Refusal::Unknown(id))?;
        Ok(self.view(&queue, record))
    }

    fn view(&self, queue: &Queue, record: &Record) -> View {
        let ahead = match record.state {
            State::Queued => queue.ahead(&[record.id].into()),
            _ => BTreeMap::new(),
        };
        self.view_of(&lock(&self.0.run_statuses), &ahead, record)
    }

    fn views(&self, queue: &Queue, records: Vec<&Record>) -> Vec<View> {
        let waiting = records.iter().filter(|record| record.state == State::Queued);
        let ahead = queue.ahead(&waiting.map(|record| record.id).collect());
        let run_statuses = lock(&self.0.run_statuses);
        records.into_iter().map(|record| self.view_of(&run_statuses, &ahead, record)).collect()
    }

    fn view_of(
        &self,
        run_statuses: &BTreeMap<JobId, RunStatus>,
        ahead: &BTreeMap<JobId, usize>,
        record: &Record,
    ) -> View {
        let ahead = ahead.get(&record.id).copied().unwrap_or(0);
        View { record: record.clone(), ahead, progress: run_statuses.get(&record.id).map(RunStatus::read) }
    }

    /// A way to read what happened to a job.
    pub fn log(&self, id: JobId) -> Result<job_log::Reader, Problem> {
        self.job(id)?;
        self.0.job_store.recall(id)?;
        Ok(job_log::Reader::new(self.0.job_store.log(id)))
    }

    /// The last `n` lines of what happened to a job.
    pub fn last_lines(&self, id: JobId, n: usize) -> Result<Vec<job_log::Line>, Problem> {
        self.0.job_store.recall(id)?;
        let path = self.0.job_store.log(id);
        Ok(job_log::last(&path, n).with_context(|| format!("{id}: cannot read the log"))?)
    }

    /// What there is to see of a job; nothing before it has begun.
    pub fn seen(&self, id: JobId) -> JobView {
        let view = lock(&self.0.views).get(&id).cloned();
        let left = || {
            self.0.job_store.recall(id).ok()?;
            serde_json::from_slice(&std::fs::read(self.0.job_store.view(id)).ok()?).ok()
        };
        view.map(|view| view.read()).or_else(left).unwrap_or_default()
    }

    /// Writes down what there is to see of a job that is about to end.
    fn leave(&self, id: JobId, seen: &JobView) {
        let json = serde_json::to_vec(seen).unwrap_or_default();
        if let Err(error) = std::fs::write(self.0.job_store.view(id), json) {
            tracing::warn!(job = id.0, %error, "cannot write down what there is to see of a job");
        }
        lock(&self.0.views).remove(&id);
    }

    /// Takes note of what somebody did, or tried, that is about no job.
    pub fn note(&self, who: &str, what: &str, detail: &str) {
        self.0.audit.note(now(), who, what, None, detail);
    }

    /// Paths and bytes of the files of a job's results, none before it is done; brings none of them, unless the job was done before its
    /// record said so.
    pub fn files(&self, record: &Record) -> Result<Vec<(String, u64)>, Problem> {
        match record.state {
            State::Done { .. } if record.results.is_empty() => Ok(self.0.job_store.list(record.id)?),
            _ => Ok(record.results.clone()),
        }
    }

    /// The files of the results of a job that is done: where they are, and their paths below, with sizes.
    pub fn results(&self, id: JobId) -> Result<(PathBuf, Vec<(String, u64)>), Problem> {
        let record = self.job(id)?.record;
        if !matches!(record.state, State::Done { .. }) {
            return Err(Problem::Invalid(format!(
                "{id}: the job is {}; there are results once it is done",
                record.state.name()
            )));
        }
        Ok((self.0.job_store.results(id), self.0.job_store.list(id)?))
    }

    /// Whether a file was brought before.
    pub fn has(&self, hash: Hash) -> bool {
        self.0.job_store.has(hash)
    }

    /// Begins with a file that is brought.
    pub fn receive(&self, hash: Hash, size: u64) -> Result<Incoming, Problem> {
        let most = self.0.limits.upload;
        if size > most {
            return Err(Problem::Invalid(format!(
                "a file of {size} bytes; the service takes {most} at most (--max-upload)"
            )));
        }
        Ok(self.0.job_store.receive(hash, size)?)
    }

    /// Keeps a file that was brought.
    pub fn keep(&self, who: &Identity, incoming: Incoming) -> Result<(), Problem> {
        let arrived = incoming.finish().map_err(|error| Problem::Invalid(format!("{error:#}")))?;
        let detail = arrived.to_string();
        self.0.job_store.keep(arrived)?;
        self.0.audit.note(now(), &who.name, "upload", None, &detail);
        Ok(())
    }

    /// Accepts a job, after checking all of it: blocks as long as reading its corpus takes.
    pub fn submit(&self, who: &Identity, submission: Submission) -> Result<View, Problem> {
        let known =
            |queue: &Queue| queue.with_key(&who.name, &submission.key).map(|record| self.view(queue, record));
        {
            let queue = self.queue();
            if let Some(known) = known(&queue) {
                return Ok(known);
            }
            queue.admit()?;
        }
        check_words(&submission)?;
        self.check_inputs(&submission.inputs)?;
        let aside = self.0.job_store.lay_out(&submission.job, &submission.inputs)?;
        let loaded = self.load(aside.path()).and_then(|job| Inputs::load(&job));
        loaded.map_err(|error| Problem::Invalid(told(&error, aside.path())))?;
        let Submission { inputs, name, priority, max_workers, key, .. } = submission.clone();
        let mut acceptance = lock(&self.0.acceptance);
        {
            let queue = self.queue();
            if let Some(known) = known(&queue) {
                return Ok(known); // it was submitted twice at once
            }
            queue.admit()?;
        }
        self.check_inputs(&inputs)?; // one may have gone with a job that was deleted
        let submitted = now();
        JobLog::new(log_in(aside.path()), self.0.notifier.clone())
            .tell(submitted, &format!("submitted by {}", who.name));
        let record = acceptance.accept(&self.0.job_store, aside, |id| Record {
            id,
            name,
            owner: who.name.clone(),
            priority: if priority == 0 { PRIORITIES[2] } else { priority },
            max_workers: (max_workers > 0).then_some(max_workers),
            key,
            inputs,
            state: State::Queued,
            starts: 0,
            deaths: 0,
            results: Vec::new(),
            is_deleted: false,
            submitted,
            begun: None,
            ended: None,
        })?;
        let id = record.id;
        self.0.audit.note(now(), &who.name, "submit", Some(id), &record.name);
        let mut queue = self.queue();
        let actions = queue.handle(now(), Event::Accepted(Box::new(record)))?;
        self.perform_on(&mut queue, actions);
        let record = queue.get(id).ok_or(Refusal::Unknown(id))?;
        Ok(self.view(&queue, record))
    }

    fn check_inputs(&self, inputs: &[Input]) -> Result<(), Problem> {
        let lacking = inputs.iter().find(|input| !self.has(input.hash));
        lacking.map_or(Ok(()), |Input { path, .. }| Err(Problem::Lacking { path: path.clone() }))
    }

    /// Stops a job that is not over.
    pub fn cancel(&self, who: &Identity, id: JobId) -> Result<View, Problem> {
        self.change(who, id, "cancel", Event::Cancelled(id))
    }

    /// Has a job go on that failed or was cancelled.
    pub fn resume(&self, who: &Identity, id: JobId) -> Result<View, Problem> {
        self.change(who, id, "resume", Event::Resumed(id))
    }

    /// Deletes a job that is over, with all that is stored of it but the audit; the job as it was.
    pub fn delete(&self, who: &Identity, id: JobId) -> Result<View, Problem> {
        let mut queue = self.queue();
        let record = queue.get(id).ok_or(Refusal::Unknown(id))?;
        self.check_may(who, record, "delete")?;
        let view = self.view(&queue, record);
        self.forget(&mut queue, id, &who.name, "")?;
        drop(queue);
        self.discard(std::slice::from_ref(&view.record));
        Ok(view)
    }

    /// Deletes the jobs that were kept long enough.
    fn expire(&self, now: Millis) {
        let Some(keep) = self.0.limits.keep else { return };
        let old = |record: &&Record| {
            record.ended.is_some_and(|ended| u128::from(now.0.saturating_sub(ended.0)) > keep.as_millis())
        };
        let old: Vec<Record> =
            self.queue().iter().filter(|record| record.state.is_over()).filter(old).cloned().collect();
        let why = format!("it ended more than {} days ago", keep.as_secs() / DAY.as_secs());
        let mut deleted = Vec::new();
        for record in old {
            match self.forget(&mut self.queue(), record.id, "service", &why) {
                Ok(()) => deleted.push(record),
                Err(Problem::Refused(_)) => {} // somebody deleted it, or has it go on
                Err(problem) => tracing::warn!(job = record.id.0, "cannot delete the job: {problem}"),
            }
        }
        if !deleted.is_empty() {
            self.discard(&deleted);
        }
    }

    /// Has a job be none any more, for the next process as well.
    fn forget(&self, queue: &mut Queue, id: JobId, who: &str, why: &str) -> Result<(), Problem> {
        let record = Record { is_deleted: true, ..queue.deletable(id)?.clone() };
        self.0.job_store.save(&record)?;
        self.0.audit.note(now(), who, "delete", Some(id), why);
        let actions = queue.handle(now(), Event::Deleted(id))?;
        lock(&self.0.run_statuses).remove(&id);
        self.perform_on(queue, actions);
        Ok(())
    }

    /// Removes what is stored of jobs that were deleted. What cannot be removed now is removed when the service starts.
    fn discard(&self, deleted: &[Record]) {
        let job_store = &self.0.job_store;
        let removed = deleted.iter().try_for_each(|record| job_store.remove_deleted(record.id));
        // No job that reads one of the files is accepted meanwhile.
        let _acceptance = lock(&self.0.acceptance);
        let unread = job_store::unread(deleted, self.queue().iter());
        if let Err(error) = removed.and(job_store.forget(&unread)) {
            tracing::warn!("some of what was deleted is removed when the service starts again: {error:#}");
        }
    }

    /// Refuses who may not do this to a job.
    fn check_may(&self, who: &Identity, record: &Record, what: &str) -> Result<(), Problem> {
        let Record { id, owner, .. } = record;
        if *owner == who.name || who.may(Role::Operate) {
            return Ok(());
        }
        self.0.audit.note(now(), &who.name, &format!("{what} refused"), Some(*id), "");
        Err(Problem::Denied(format!(
            "{id}: the job is {owner}'s; to {what} those of others takes the role {}",
            Role::Operate
        )))
    }

    fn change(&self, who: &Identity, id: JobId, what: &str, event: Event) -> Result<View, Problem> {
        self.job(id)?;
        self.0.job_store.recall(id)?;
        let mut queue = self.queue();
        let record = queue.get(id).ok_or(Refusal::Unknown(id))?;
        self.check_may(who, record, what)?;
        let actions = queue.handle(now(), event)?;
        if !actions.is_empty() {
            self.0.audit.note(now(), &who.name, what, Some(id), "");
            self.job_log(id).tell(now(), &format!("{what} by {}", who.name));
        }
        self.perform_on(&mut queue, actions);
        let record = queue.get(id).ok_or(Refusal::Unknown(id))?;
        let view = self.view(&queue, record);
        drop(queue);
        self.tell(id);
        Ok(view)
    }

    /// Has the object store follow what is told of a job that may not be in work.
    fn tell(&self, id: JobId) {
        if let Err(error) = self.0.job_store.tell(id) {
            tracing::warn!(job = id.0, "what happened to the job is not told in the object store: {error:#}");
        }
    }

    /// Waits until another service has taken over from this one, and gives what there is to say then.
    pub async fn ousted(&self) -> String {
        let mut ousted = self.0.ousted.subscribe();
        let reason = ousted.wait_for(Option::is_some).await;
        reason.ok().and_then(|reason| reason.clone()).unwrap_or_default()
    }

    /// Has the object store follow, and deletes jobs that were kept long enough; whether this service is still its leader.
    fn keep_up(&self) -> bool {
        let work: Vec<JobId> = lock(&self.0.working).keys().copied().collect();
        match self.0.job_store.keep_up(&work) {
            Ok(None) => {}
            Ok(Some(reason)) => {
                self.0.ousted.send_replace(Some(reason));
                return false;
            }
            Err(error) => tracing::warn!("the object store cannot follow: {error:#}; trying again"),
        }
        self.expire(now());
        !self.0.closing.load(Ordering::SeqCst)
    }

    /// Leaves the jobs in work for the next process, and waits a while for them to notice.
    pub fn close(&self, timeout: Duration) {
        self.0.closing.store(true, Ordering::SeqCst);
        drop(lock(&self.0.orders).take());
        // A service that was replaced leaves the records to the other one.
        if self.0.ousted.borrow().is_none() {
            let mut queue = self.queue();
            match queue.handle(now(), Event::Closed) {
                Ok(actions) => self.perform_on(&mut queue, actions),
                Err(refusal) => tracing::error!("internal error: {refusal}; please report it"),
            }
        }
        lock(&self.0.working).values().for_each(Handle::cancel);
        let mut waited = Duration::ZERO;
        while !lock(&self.0.working).is_empty() && waited < timeout {
            std::thread::sleep(Duration::from_millis(20));
            waited += Duration::from_millis(20);
        }
        if let Err(error) = self.0.job_store.keep_up(&[]).and_then(|_| self.0.job_store.leave()) {
            tracing::warn!("the next service will wait for this one: {error:#}");
        }
    }

    fn queue(&self) -> MutexGuard<'_, Queue> {
        lock(&self.0.queue)
    }

    fn job_log(&self, id: JobId) -> JobLog {
        JobLog::new(self.0.job_store.log(id), self.0.notifier.clone())
    }

    /// Does what the queue says. A record that cannot be written is told; the next process then takes the job to be where it was before, and
    /// comes to the same result.
    fn perform_on(&self, queue: &mut Queue, actions: Vec<Action>) {
        self.perform(queue, actions);
        self.0.notifier.ring();
    }

    fn perform(&self, queue: &Queue, actions: Vec<Action>) {
        for action in actions {
            match action {
                Action::Save(id) => {
                    let saved = queue.get(id).map_or(Ok(()), |record| self.0.job_store.save(record));
                    if let Err(error) = saved {
                        tracing::error!(job = id.0, "cannot write down where the job is: {error:#}");
                    }
                }
                Action::Begin(id) => {
                    let Some(record) = queue.get(id) else { continue };
                    let handle = self.0.fleet.account(record.account());
                    lock(&self.0.working).insert(id, handle.clone());
                    let run_status = RunStatus::default();
                    lock(&self.0.run_statuses).insert(id, run_status.clone());
                    let view = SharedView::default();
                    lock(&self.0.views).insert(id, view.clone());
                    // The threads are there as long as the service is.
                    let order = Order { id, name: record.name.clone(), handle, run_status, view };
                    let _ = lock(&self.0.orders).as_ref().map(|orders| orders.send(order));
                }
                Action::Stop(id) => {
                    if let Some(handle) = lock(&self.0.working).get(&id) {
                        handle.cancel();
                    }
                }
            }
        }
    }

    /// A checkpoint of a job was written.
    fn checkpointed(&self, id: JobId) {
        let mut queue = self.queue();
        // A job in work is known.
        if let Ok(actions) = queue.handle(now(), Event::Checkpointed(id)) {
            self.perform(&queue, actions);
        }
    }

    /// The thread of a job has ended.
    fn ended(&self, id: JobId, how: Result<Done, String>) {
        lock(&self.0.working).remove(&id);
        if self.0.closing.load(Ordering::SeqCst) && how.is_err() {
            return; // the next process begins with it
        }
        let mut queue = self.queue();
        let ended = queue.handle(now(), Event::Ended(id, how));
        if let Some(record) = queue.get(id) {
            let text = match &record.state {
                State::Failed { error } => format!("failed: {error}"),
                State::Done { parameters_sha256 } => format!("done: parameters {parameters_sha256}"),
                other => other.name().to_owned(),
            };
            self.job_log(id).tell(now(), &text);
        }
        match ended {
            Ok(actions) => self.perform_on(&mut queue, actions),
            Err(refusal) => tracing::error!("internal error: {refusal}; please report it"),
        }
    }

    /// The job in a folder of the job store, which reads nothing that is not its own, and writes nowhere else.
    fn load(&self, folder: &Path) -> Result<Job> {
        let inputs = inputs_in(folder);
        let text = std::fs::read_to_string(folder.join("job.toml")).context("the job file is gone")?;
        let mut job = Job::parse(&text, "job.toml", &inputs, &[]).map_err(JobError::from)?;
        let mut foreign = None;
        job.visit_files(&mut |key, path| {
            let allowed = match store::url(path) {
                Some(url) => self.0.limits.urls.iter().any(|start| url.starts_with(start)),
                None => path.strip_prefix(&inputs).is_ok_and(|path| path.to_str().is_some_and(is_safe)),
            };
            if !allowed {
                foreign.get_or_insert(format!(
                    "job.toml: {key}: {}: the service lets jobs read what is sent with them, and URLs that it was started with (--allow-url)",
                    path.display()
                ));
            }
        });
        job.output.dir = folder.join("out");
        job.output.checkpoints = String::new();
        foreign.map_or(Ok(job), |foreign| Err(anyhow!(foreign)))
    }
}

/// Refuses words that are too long, or cannot be told.
fn check_words(submission: &Submission) -> Result<(), Problem> {
    let Submission { job, inputs, name, priority, key, .. } = submission;
    let [least, most, _] = PRIORITIES;
    let told = |text: &str| text.chars().count() <= MAX_NAME && !text.chars().any(char::is_control);
    let mut paths: Vec<&str> = inputs.iter().map(|input| &input.path[..]).collect();
    paths.sort_unstable();
    let twice = paths.windows(2).any(|pair| pair[0] == pair[1]);
    let problem = match () {
        () if job.len() > MAX_JOB => {
            format!("the job file has {} bytes, expected {MAX_JOB} at most", job.len())
        }
        () if inputs.len() > MAX_INPUTS || twice => format!("expected {MAX_INPUTS} files at most, each once"),
        () if !told(name) || name.is_empty() => {
            format!("expected a name of 1 to {MAX_NAME} visible letters (--name)")
        }
        () if !told(key) => format!("expected a key of at most {MAX_NAME} visible letters (--key)"),
        () if *priority > most => format!("priority {priority}, expected {least} to {most} (--priority)"),
        () => match paths.iter().find(|path| !is_safe(path)) {
            Some(path) => format!("{path:?}: not a path below the job's own folder"),
            None => return Ok(()),
        },
    };
    Err(Problem::Invalid(problem))
}

/// An error in a line, with files by the names that the job has for them.
fn told(error: &anyhow::Error, folder: &Path) -> String {
    let text = format!("{error:#}").replace(&format!("{}/", inputs_in(folder).display()), "");
    text.replace(&format!("{}/", folder.display()), "")
}

/// The present moment.
#[expect(
    clippy::disallowed_methods,
    reason = "a service tells when things happened; nothing is decided by it"
)]
fn now() -> Millis {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    Millis(since.as_millis() as u64)
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
