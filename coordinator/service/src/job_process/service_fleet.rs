//! The fleet of the service, as the process of a job sees it.
//!
//! Training maps over it as over any fleet. Batches go to the service one at a time; a thread hears the service, makes the tasks and blobs that it asks
//! for, and passes answers on to training.

use std::io::{self, Read};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver};
use std::thread;

use anyhow::{Context, Result};
use fleet::{self, FleetError, FleetEvent, Map, MapReport, Stage, Tasks, engine};
use grammaton::stop::Stop;
use grammaton::work::lease::{Attempt, BatchId, LeaseId, TaskIndex};
use grammaton::work::task::{Answer, ContentHash, Task};
use parking_lot::{Mutex, MutexGuard};
use prost::Message;
use prost::bytes::Bytes;
use proto::blob::Blob;
use proto::{check, lease};
use training::outcome::FleetUse;

use super::frames::{self, Sender};
use super::messages::{BatchError, FromJob, HeadOfTask, Reason, ToJob};
use scheduler::Failure;

/// Tasks of a batch that are sent before they are asked for,
const AHEAD: usize = 64;
/// until they have so many bytes.
const BYTES_AHEAD: usize = 4 << 20;

/// The service's fleet.
pub struct ServiceFleet {
    service: Arc<Sender>,
    shared: Arc<Shared>,
    progress: Mutex<Receiver<Progress>>,
}

/// State of the thread that maps and the thread that hears the service.
#[derive(Default)]
struct Shared {
    /// Requested when the job is cancelled; ends the computations of this process.
    cancelled: Stop,
    audits_all: AtomicBool,
    open: Mutex<Open>,
}

/// The open batch.
#[derive(Default)]
struct Open {
    /// Batches so far.
    batch: u64,
    /// Tasks of the last one, unless it is over.
    tasks: Option<Arc<dyn Tasks>>,
}

/// Messages of the service to training.
enum Progress {
    Answered(usize, Bytes),
    FleetEvent(FleetEvent),
    Over(Result<MapReport, BatchError>),
    FleetUse(FleetUse),
}

impl ServiceFleet {
    /// Hears the service on `input`, and calls `orphaned` when it is gone.
    pub fn start(
        mut input: impl Read + Send + 'static,
        service: Arc<Sender>,
        orphaned: fn(),
    ) -> Result<ServiceFleet> {
        let (to_training, progress) = mpsc::channel();
        let shared = Arc::<Shared>::default();
        let fleet =
            ServiceFleet { service: service.clone(), shared: shared.clone(), progress: Mutex::new(progress) };
        let hear = move || {
            while let Ok(Some((message, payload))) = frames::receive(&mut input) {
                shared.hear(&service, message, payload, &to_training);
            }
            orphaned();
        };
        std::thread::Builder::new().name("service".into()).spawn(hear)?;
        Ok(fleet)
    }

    /// The way to the service.
    pub fn service(&self) -> Arc<Sender> {
        self.service.clone()
    }

    /// Asks who worked on the job.
    pub fn fleet_use(&self) -> Result<FleetUse> {
        self.service.send(&FromJob::FleetUseWanted, &[]).context("the service is gone")?;
        let progress = self.progress.lock();
        loop {
            if let Progress::FleetUse(fleet_use) = progress.recv().context("the service is gone")? {
                return Ok(fleet_use);
            }
        }
    }

    /// Sends the first `ahead` tasks, up to a number of bytes, so that the service need not wait for each.
    fn send_ahead(&self, tasks: &dyn Tasks, ahead: usize) -> io::Result<()> {
        let mut bytes = 0;
        for at in 0..ahead {
            let (head, payload) = encode(tasks.make(at));
            bytes += payload.len();
            self.service.send(&FromJob::TaskAhead(head), &payload)?;
            if bytes > BYTES_AHEAD {
                return self.service.send(&FromJob::NoMoreAhead, &[]);
            }
        }
        Ok(())
    }

    fn send(&self, message: &FromJob) -> Result<(), FleetError> {
        self.service.send(message, &[]).map_err(|_| FleetError::Stopped)
    }
}

impl Map for ServiceFleet {
    fn audit_all(&self) -> bool {
        !self.shared.audits_all.swap(true, Ordering::SeqCst) && self.send(&FromJob::AuditAll).is_ok()
    }

    fn check(&self) -> Result<(), FleetError> {
        if self.shared.cancelled.is_requested() { Err(FleetError::Cancelled) } else { Ok(()) }
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
        self.check()?;
        let needs = (0..tasks.len()).map(|at| tasks.needs(at)).collect();
        let ahead = tasks.len().min(AHEAD);
        let batch = self.shared.begin(tasks.clone());
        self.send(&FromJob::Batch { batch, stage, needs, ahead })?;
        self.send_ahead(&*tasks, ahead).map_err(|_| FleetError::Stopped)?;
        let progress = self.progress.lock();
        loop {
            match progress.recv().map_err(|_| FleetError::Stopped)? {
                Progress::Answered(at, bytes) => {
                    let size = bytes.len();
                    let answer = check::decoded("answer", &bytes).map_err(|error| {
                        let (task, detail) = (TaskIndex(at as u32), error.to_string());
                        let failure = Failure::Task { task, detail, lacks_memory: false };
                        FleetError::Batch { stage, failure, decisions: Vec::new() }
                    })?;
                    each(at, answer);
                    self.send(&FromJob::Processed { bytes: size })?;
                }
                Progress::FleetEvent(event) => hear(event),
                Progress::Over(result) => {
                    self.shared.open().tasks = None;
                    return result.map_err(|error| error.into_error(stage));
                }
                Progress::FleetUse(_) => {} // not asked for
            }
        }
    }
}

impl Shared {
    fn open(&self) -> MutexGuard<'_, Open> {
        self.open.lock()
    }

    /// Opens a batch and returns its number.
    fn begin(&self, tasks: Arc<dyn Tasks>) -> u64 {
        let mut open = self.open();
        open.batch += 1;
        open.tasks = Some(tasks);
        open.batch
    }

    /// Processes a message of the service.
    fn hear(
        &self,
        service: &Arc<Sender>,
        message: ToJob,
        payload: Bytes,
        to_training: &mpsc::Sender<Progress>,
    ) {
        let progress = match message {
            ToJob::TaskWanted { request, batch, at } => {
                return reply_with_task(service, request, self.make(batch, at));
            }
            ToJob::BlobWanted { request, batch, at, hash } => {
                return reply_with_blob(service, request, self.make(batch, at), hash);
            }
            ToJob::DigestWanted { request, batch, at } => {
                return self.reply_with_digest(service, request, self.make(batch, at));
            }
            ToJob::Cancelled => return self.cancelled.request(),
            ToJob::Assigned(_) => return,
            ToJob::Answered { at } => Progress::Answered(at, payload),
            ToJob::FleetEvent(event) => Progress::FleetEvent(event),
            ToJob::BatchOver(result) => Progress::Over(result),
            ToJob::FleetUse(fleet_use) => Progress::FleetUse(fleet_use),
        };
        // A run that has ended hears nothing more.
        let _ = to_training.send(progress);
    }

    /// Computes a task on a thread of its own, since the service goes on asking for others.
    fn reply_with_digest(&self, service: &Arc<Sender>, request: u64, task: Result<Task>) {
        let (stop, to_service) = (self.cancelled.clone(), service.clone());
        // A service that is gone needs no reply.
        let reply = move |digest: Result<blake3::Hash>| {
            let digest = digest.map(<[u8; 32]>::from).map_err(Reason::from);
            drop(to_service.send(&FromJob::Digest { request, digest }, &[]));
        };
        let refused = reply.clone();
        // It keeps nothing: the next doubt, if there is one, is about another task.
        let judge = move || reply(task.and_then(|task| fleet::digest(&engine(), &task, &stop)));
        if let Err(error) = thread::Builder::new().name("judge".into()).spawn(judge) {
            refused(Err(error.into()));
        }
    }

    /// Makes a task of a batch.
    fn make(&self, batch: u64, at: usize) -> Result<Task> {
        let open = self.open();
        let tasks = open.tasks.clone().filter(|tasks| open.batch == batch && at < tasks.len());
        drop(open);
        tasks.context("its batch is over")?.make(at)
    }
}

/// Encodes a task as head and payload.
fn encode(task: Result<Task>) -> (HeadOfTask, Bytes) {
    match task {
        Ok(task) => {
            let unused = LeaseId { batch: BatchId(0), task: TaskIndex(0), attempt: Attempt(0) };
            let (head, payload) = lease::to_wire(unused, &task);
            let blobs = Blob::of_task(&task).iter().map(Blob::hash).collect();
            (Ok((head.encode_to_vec(), blobs)), payload)
        }
        Err(error) => (Err(error.into()), Bytes::new()),
    }
}

// A service that is gone needs no reply; the process ends.
fn reply_with_task(service: &Sender, request: u64, task: Result<Task>) {
    let (task, payload) = encode(task);
    let _ = service.send(&FromJob::Task { request, task }, &payload);
}

fn reply_with_blob(service: &Sender, request: u64, task: Result<Task>, hash: ContentHash) {
    let blob = task.and_then(|task| {
        let found = Blob::of_task(&task).into_iter().find(|blob| blob.hash() == hash);
        found.context("no task has this blob")
    });
    let _ = match blob {
        Ok(blob) => {
            let kind = Ok(i32::from(blob.kind()));
            service.send(&FromJob::Blob { request, kind }, &blob.to_bytes())
        }
        Err(error) => service.send(&FromJob::Blob { request, kind: Err(error.into()) }, &[]),
    };
}
