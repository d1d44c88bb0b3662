//! Many jobs of many people on one fleet.
//!
//! ```text
//!             files ─┐
//! submission ──check─┴─> controller ──record stored──> queue ──order──> thread of the job ──Map──> fleet
//!                          ^                             │                   └── output folder, log, run status
//!                          └──────── how it ended ───────│───────────────────┘
//!                                                        v
//!                                                     readers
//! ```
//!
//! A job is trained by the code that `train` runs, in a process of its own ([`crate::job_process`]), and so has the same result. [`queue`] decides which jobs run, by
//! the [`shares`] of their users, and the fleet shares itself among these ([`fleet::Account`]). `controller` is the one thread that changes jobs; `submission` and `deletion`
//! are what comes before and after. `annotations` keeps what users say of the lines of results. `reading` is what readers ask, [`rpc`] how commands reach all this.
//! [`record`] is what is stored of a job, [`records`] and [`job_store`] where, and [`remote`] the copy in an object store, for which one process at a time has
//! the [`leader_lease`], which `upkeep` renews. [`acceptance`] gives ids. [`job_log`] and [`view`] tell what happened to a job.
//!
//! Invariants: a job is accepted when its record is stored, and not before; an accepted job goes on in the next process, however this one ends;
//! what ends one job (a panic, a poisonous sentence, a corpus that cannot be read) ends no other; no lock is held while storage works.

pub mod acceptance;
pub mod annotate;
pub mod annotation;
mod annotations;
pub mod audit;
mod controller;
mod deletion;
pub mod expulsions;
pub mod job_log;
mod job_runner;
pub mod job_store;
pub mod leader_lease;
mod minimum_rate;
pub mod outgoing;
pub mod permits;
pub mod queue;
mod quota;
mod reading;
pub mod record;
pub mod records;
pub mod remote;
pub mod rpc;
pub mod shares;
mod submission;
mod upkeep;
pub mod view;

pub mod job_process;
pub mod status;
pub mod web;

#[cfg(test)]
mod partitions;
#[cfg(test)]
mod simulation;
#[cfg(test)]
mod tests;

#[cfg(test)]
mod readers;
#[cfg(test)]
#[path = "../../../tests/src/requirement.rs"]
mod requirement;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{self, Sender};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, SystemTime};

use anyhow::{Context, Result};
use basics::faults::Shared;
use blake3::Hash;
use fleet::access::{Identity, Role};
use fleet::{Fleet, Handle, Watcher};
use parking_lot::{Mutex, RwLock, RwLockReadGuard};
use tokio::sync::watch;

use crate::job_process::Processes;
use crate::status::RunStatus;

use self::acceptance::Acceptance;
use self::audit::Audit;
use self::controller::{Command, Controller};
use self::job_log::{JobLog, Notifier};
use self::job_store::{Incoming, JobStore};
use self::queue::{Event, Most, Queue, Refusal};
use self::quota::{Charge, OverQuota, Uploads};
use self::record::{JobId, Millis, Record, View};
use self::records::ReadRecords;
use self::shares::Room;
use self::upkeep::Upkeep;
use self::view::SharedView;

pub use self::reading::Page;
pub use self::submission::Submission;

/// Limits of a service.
#[derive(Clone)]
pub struct Limits {
    /// Places for running jobs.
    pub room: Room,
    /// Jobs that wait or are in work.
    pub jobs: usize,
    /// Jobs of a user that wait or are in work.
    pub user_jobs: usize,
    /// Bytes of a file that is uploaded.
    pub upload: u64,
    /// Bytes that a user uploads within a day.
    pub daily_upload: u64,
    /// Folders in object stores that jobs may read.
    pub urls: Vec<String>,
    /// Time that a job is kept after its end; `None`: without limit.
    pub keep: Option<Duration>,
    /// The processes of jobs.
    pub processes: Processes,
}

impl Limits {
    /// The default limits, with jobs in these processes.
    pub fn with(processes: Processes) -> Limits {
        Limits {
            room: Room { n: 16, priority_bound: 2 },
            jobs: 10_000,
            user_jobs: 10_000,
            upload: 64 << 30,
            daily_upload: u64::MAX,
            urls: Vec::new(),
            keep: None,
            processes,
        }
    }
}

/// A day.
pub const DAY: Duration = Duration::from_secs(24 * 60 * 60);

/// Why something was not done.
#[derive(Debug, thiserror::Error)]
pub enum Problem {
    /// The user may not do this.
    #[error("{0}")]
    Denied(String),
    /// The state of the job or the service does not allow the operation.
    #[error(transparent)]
    Refused(#[from] Refusal),
    /// A file is not here.
    #[error("{path}: the service does not have this file (any more); submit the job again, and it is sent")]
    Lacking {
        /// The path as the job has it.
        path: String,
    },
    /// An invalid job or file.
    #[error("{0}")]
    Invalid(String),
    /// The user has used up a quota.
    #[error(transparent)]
    Quota(#[from] OverQuota),
    /// The service cannot.
    #[error("{0:#}")]
    Failed(#[from] anyhow::Error),
}

/// A file that a user uploads.
pub struct Receiving {
    incoming: Incoming,
    who: String,
    charge: Charge,
}

impl Receiving {
    /// The next bytes of it.
    pub fn push(&mut self, bytes: &[u8]) -> Result<()> {
        self.incoming.push(bytes)
    }
}

/// A running service. Clones share it.
#[derive(Clone)]
pub struct Service(Arc<Inner>);

struct Inner {
    job_store: JobStore,
    /// All jobs as they are stored. Only the controller writes.
    queue: RwLock<Queue>,
    /// Channel to the thread that changes jobs.
    commands: Sender<Command>,
    /// The fleet accounts of running jobs.
    working: Mutex<BTreeMap<JobId, Handle>>,
    /// Jobs that threads have begun, or are to begin, and whose logs are not copied yet.
    n_ordered: AtomicUsize,
    /// The progress of jobs that run, or ran in this process.
    run_statuses: Mutex<BTreeMap<JobId, RunStatus>>,
    /// The rounds and snapshots of running jobs.
    views: Mutex<BTreeMap<JobId, SharedView>>,
    fleet: Fleet,
    /// Threads of this process that compute.
    local_workers: usize,
    limits: Limits,
    uploads: Uploads,
    audit: Audit,
    /// Rings with every change of a job.
    notifier: Notifier,
    /// Set once the service has started.
    upkeep: OnceLock<Upkeep>,
    /// Why this service has to end, once there is a reason.
    ousted: watch::Sender<Option<String>>,
}

impl Service {
    /// Goes on with the jobs in `job_store`, on `fleet`. Not to be called within a runtime.
    pub fn start(
        mut job_store: JobStore,
        fleet: Fleet,
        local_workers: usize,
        limits: Limits,
    ) -> Result<Service> {
        let lease = job_store.take_lease();
        let audit = Audit::open(&job_store.audit())?;
        let uploads = Uploads::new(limits.daily_upload);
        if uploads.are_limited() {
            let since = Millis(now().0.saturating_sub(DAY.as_millis() as u64));
            let earlier = audit::uploads(&job_store.audit(), since).context("the audit cannot be read")?;
            earlier.iter().for_each(|upload| uploads.restore(&upload.who, upload.bytes, upload.millis));
        }
        let ReadRecords { records, damaged } = job_store.records().read()?;
        let mut accepted: BTreeSet<JobId> = records.iter().map(|record| record.id).collect();
        // A damaged record does not tell which files its job reads, so that all are kept.
        let has_damaged = !damaged.is_empty();
        for (id, problem) in damaged {
            tracing::error!("{problem}");
            audit.note(now(), "service", "set aside", id, &problem);
            accepted.extend(id);
        }
        let (deleted, records): (Vec<Record>, Vec<Record>) =
            records.into_iter().partition(|record| record.is_deleted);
        job_store.remove_all_deleted(&deleted, now());
        let found = job_store.remove_unaccepted(&accepted).context("unused files cannot be removed")?;
        if !has_damaged {
            job_store.forget_others(records.iter()).context("unused files cannot be removed")?;
        }
        let used = found.max(accepted.last().copied());
        let mut acceptance = Acceptance::open(job_store.open_place()?, job_store.term(), used)?;
        acceptance.void_last(&job_store, &accepted).context("an id cannot be voided")?;
        let (commands, received_commands) = mpsc::channel();
        let (orders, received_orders) = mpsc::channel();
        let room = limits.room.n.max(1);
        let service = Service(Arc::new(Inner {
            job_store,
            queue: RwLock::new(Queue::new(
                records,
                limits.room,
                Most { jobs: limits.jobs, of_user: limits.user_jobs },
            )),
            commands,
            working: Mutex::default(),
            n_ordered: AtomicUsize::new(0),
            run_statuses: Mutex::default(),
            views: Mutex::default(),
            fleet,
            local_workers,
            uploads,
            limits,
            audit,
            notifier: Notifier::default(),
            upkeep: OnceLock::new(),
            ousted: watch::Sender::new(None),
        }));
        job_runner::start(&service, room, received_orders)?;
        let controller = Controller::start(service.clone(), acceptance, orders)?;
        spawn("controller", move || controller.run(&received_commands))?;
        let upkeep = Upkeep::start(Arc::downgrade(&service.0), lease)?;
        let _first = service.0.upkeep.set(upkeep);
        Ok(service)
    }

    /// Has the controller do `work`, and returns where the result arrives.
    fn ask<T: Send + 'static>(
        &self,
        work: impl FnOnce(&mut Controller) -> T + Send + 'static,
    ) -> mpsc::Receiver<T> {
        let (answer, answered) = mpsc::sync_channel(1);
        let faults = Shared::here();
        let command: Command = Box::new(move |controller| {
            // A caller that has given up takes no answer.
            let _ = answer.send(faults.within(|| work(controller)));
        });
        // Without a controller the answer's channel closes, which tells as much.
        let _ = self.0.commands.send(command);
        answered
    }

    /// Has the controller do `work`, and waits for the result.
    fn control<T: Send + 'static>(
        &self,
        work: impl FnOnce(&mut Controller) -> T + Send + 'static,
    ) -> Result<T, Problem> {
        let answered = self.ask(work).recv();
        Ok(answered.context("the service is about to end, or has a defect that its log tells; try again")?)
    }

    /// A way to ask the fleet for its status.
    pub fn watcher(&self) -> Watcher {
        self.0.fleet.watcher()
    }

    /// Rings with every change of any job.
    pub fn notifier(&self) -> &Notifier {
        &self.0.notifier
    }

    /// Takes note of what somebody did, or tried, that is about no job.
    pub fn note(&self, who: &str, what: &str, detail: &str) {
        self.audit(who, what, None, detail);
    }

    /// Whether the service has a file.
    pub fn has(&self, hash: Hash) -> bool {
        self.0.job_store.has(hash)
    }

    /// Begins to receive a file that a user uploads.
    pub fn receive(&self, who: &Identity, hash: Hash, size: u64) -> Result<Receiving, Problem> {
        let most = self.0.limits.upload;
        if size > most {
            return Err(Problem::Invalid(format!(
                "a file of {size} bytes; the service takes {most} at most (--max-upload)"
            )));
        }
        let charge = self.0.uploads.charge(&who.name, size, now())?;
        Ok(Receiving { incoming: self.0.job_store.receive(hash, size)?, who: who.name.clone(), charge })
    }

    /// Keeps a file that has been uploaded.
    pub fn keep(&self, receiving: Receiving) -> Result<(), Problem> {
        let Receiving { incoming, who, charge } = receiving;
        let arrived = incoming.finish().map_err(|error| Problem::Invalid(format!("{error:#}")))?;
        let (bytes, detail) = (arrived.size(), arrived.to_string());
        self.0.job_store.keep(arrived)?;
        charge.keep();
        self.0.audit.note_upload(now(), &who, bytes, &detail);
        Ok(())
    }

    /// Stops a job that is not over.
    pub fn cancel(&self, who: &Identity, id: JobId) -> Result<View, Problem> {
        self.change(who, id, "cancel", Event::Cancelled(id))
    }

    /// Resumes a job that failed or was cancelled.
    pub fn resume(&self, who: &Identity, id: JobId) -> Result<View, Problem> {
        self.change(who, id, "resume", Event::Resumed(id))
    }

    fn change(&self, who: &Identity, id: JobId, what: &'static str, event: Event) -> Result<View, Problem> {
        self.check_may(who, &self.job(id)?.record, what)?;
        self.0.job_store.recall(id)?;
        let name = who.name.clone();
        let view = self.control(move |controller| {
            controller.change(event, |service| {
                service.audit(&name, what, Some(id), "");
                service.job_log(id).tell(now(), &format!("{what} by {name}"));
            })?;
            controller.job(id)
        })??;
        self.tell(id);
        Ok(view)
    }

    /// Whether a job is of this user, or the user may change all.
    fn may_change(&self, who: &Identity, record: &Record) -> bool {
        record.owner == who.name || who.may(Role::Operate)
    }

    /// Refuses a user who may not do this to a job.
    fn check_may(&self, who: &Identity, record: &Record, what: &str) -> Result<(), Problem> {
        let Record { id, owner, .. } = record;
        if self.may_change(who, record) {
            return Ok(());
        }
        self.audit(&who.name, &format!("{what} refused"), Some(*id), "");
        Err(Problem::Denied(format!(
            "{id}: the job is {owner}'s; to {what} the jobs of others takes the role {}",
            Role::Operate
        )))
    }

    /// Copies log and view of a job that may not be in work to the object store.
    fn tell(&self, id: JobId) {
        if let Err(error) = self.0.job_store.tell(id) {
            tracing::warn!(job = id.0, "the log of the job cannot be copied to the object store: {error:#}");
        }
    }

    /// Waits until another service has taken over from this one, and gives what there is to say then.
    pub async fn ousted(&self) -> String {
        let mut ousted = self.0.ousted.subscribe();
        let reason = ousted.wait_for(Option::is_some).await;
        reason.ok().and_then(|reason| reason.clone()).unwrap_or_default()
    }

    /// Leaves running jobs to the next process, and waits up to `timeout` until they have stopped.
    pub fn close(&self, timeout: Duration) {
        if self.ask(Controller::close).recv_timeout(timeout).is_err() {
            tracing::warn!("storage does not answer; running jobs begin again with the next service");
        }
        self.0.working.lock().values().for_each(Handle::cancel);
        let mut waited = Duration::ZERO;
        while self.n_ordered() > 0 && waited < timeout {
            std::thread::sleep(Duration::from_millis(20));
            waited += Duration::from_millis(20);
        }
        if let Some(upkeep) = self.0.upkeep.get() {
            upkeep.stop(timeout);
        }
    }

    fn n_ordered(&self) -> usize {
        self.0.n_ordered.load(Ordering::SeqCst)
    }

    fn queue(&self) -> RwLockReadGuard<'_, Queue> {
        self.0.queue.read()
    }

    /// The queue as it may be shown to clients: not by a service that another one may have replaced.
    fn current(&self) -> Result<RwLockReadGuard<'_, Queue>, Problem> {
        self.0.job_store.term().map_or(Ok(()), |term| term.check())?;
        Ok(self.queue())
    }

    fn job_log(&self, id: JobId) -> JobLog {
        JobLog::new(self.0.job_store.log(id), self.0.notifier.clone())
    }

    /// Adds a line to the audit.
    fn audit(&self, who: &str, what: &str, job: Option<JobId>, detail: &str) {
        self.0.audit.note(now(), who, what, job, detail);
    }
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

fn spawn(name: &str, body: impl FnOnce() + Send + 'static) -> Result<()> {
    let spawned = std::thread::Builder::new().name(name.to_owned()).spawn(body);
    spawned.map(drop).with_context(|| format!("cannot start the thread `{name}`"))
}
