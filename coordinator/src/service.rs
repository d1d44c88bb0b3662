//! Many jobs of many people on one fleet.
//!
//! ```text
//! submitted ──check──> record on disk ──queue──> thread ──Map──> fleet
//!                                                  └── output folder, journal, board ──> whoever watches
//! ```
//!
//! A job is trained by the code that `train` runs, on a thread of its own, and so comes to the same result. [`queue`] decides which jobs are in
//! work, the fleet shares itself among these ([`crate::fleet::Account`]); [`record`] is what is known of a job, [`depot`] where things are kept,
//! [`remote`] their copy in an object store, for which one process at a time has [`tenure`],
//! [`journal`] what happened; `work` is the thread of a job, [`scene`] what there is to see of it; [`rpc`] is how commands reach all this.
//!
//! Invariants: a job is accepted when its record is on disk, and not before; a job that was accepted goes on in the next process, whatever became
//! of this one; what ends one job (a panic, a poisonous sentence, a corpus that cannot be read) ends no other.

pub mod audit;
pub mod depot;
pub mod journal;
pub mod outgoing;
pub mod queue;
pub mod record;
pub mod remote;
pub mod rpc;
pub mod scene;
pub mod tenure;
mod work;

use std::collections::BTreeMap;
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
use crate::status::Board;
use crate::store;
use crate::train::input;

use self::audit::Audit;
use self::depot::{Depot, Incoming, inputs_in, is_safe, log_in};
use self::journal::{Bell, Journal};
use self::queue::{Action, Event, Queue, Refusal};
use self::record::{Input, JobId, Millis, PRIORITIES, Record, State, View};
use self::remote::BEAT;
use self::scene::{Scene, Seen};
use self::work::Order;

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
}

impl Default for Limits {
    fn default() -> Limits {
        Limits { room: 16, jobs: 10_000, upload: 64 << 30, urls: Vec::new() }
    }
}

/// Bytes of a job file.
const MAX_JOB: usize = 1 << 20;
/// Files that a job reads.
const MAX_INPUTS: usize = 64;
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
    depot: Depot,
    queue: Mutex<Queue>,
    /// Of those in work.
    working: Mutex<BTreeMap<JobId, Handle>>,
    /// Of those in work now, or before in this process.
    boards: Mutex<BTreeMap<JobId, Board>>,
    /// Of those in work.
    scenes: Mutex<BTreeMap<JobId, Scene>>,
    fleet: Fleet,
    /// Threads of this process that compute.
    local_workers: usize,
    /// To the threads of jobs.
    orders: Sender<Order>,
    limits: Limits,
    audit: Audit,
    /// Rings with every change.
    bell: Bell,
    /// Whether jobs in work are to be left for the next process.
    closing: AtomicBool,
    /// Why this service may not go on, once there is a reason.
    ousted: watch::Sender<Option<String>>,
}

impl Service {
    /// Goes on with what is in `depot`, on `fleet`. Not to be called within a runtime.
    pub fn start(depot: Depot, fleet: Fleet, local_workers: usize, limits: Limits) -> Result<Service> {
        let audit = Audit::open(&depot.audit())?;
        let records = depot.records()?;
        depot.forget_others(records.iter()).context("what is of no use cannot be removed")?;
        let (queue, actions) = Queue::new(records, limits.room, limits.jobs, now());
        let (orders, received) = std::sync::mpsc::channel();
        let room = limits.room.max(1);
        let service = Service(Arc::new(Inner {
            depot,
            queue: Mutex::new(queue),
            working: Mutex::default(),
            boards: Mutex::default(),
            scenes: Mutex::default(),
            fleet,
            local_workers,
            orders,
            limits,
            audit,
            bell: Bell::default(),
            closing: AtomicBool::new(false),
            ousted: watch::Sender::new(None),
        }));
        work::start(&service, room, received)?;
        if service.0.depot.is_remote() {
            let upkeep = service.clone();
            let spawned = std::thread::Builder::new().name("upkeep".into()).spawn(move || upkeep.keep_up());
            spawned.context("cannot start a thread")?;
        }
        service.perform(&service.queue(), actions);
        Ok(service)
    }

    /// A way to ask the fleet for its status.
    pub fn watcher(&self) -> Watcher {
        self.0.fleet.watcher()
    }

    /// Rings with every change of any job.
    pub fn bell(&self) -> &Bell {
        &self.0.bell
    }

    /// All jobs, the newest first.
    pub fn jobs(&self) -> Vec<View> {
        let queue = self.queue();
        queue.iter().map(|record| self.view(&queue, record)).collect()
    }

    /// One job.
    pub fn job(&self, id: JobId) -> Result<View, Problem> {
        let queue = self.queue();
        let record = queue.get(id).ok_or(Refusal::Unknown(id))?;
        Ok(self.view(&queue, record))
    }

    fn view(&self, queue: &Queue, record: &Record) -> View {
        let board = lock(&self.0.boards).get(&record.id).map(Board::read);
        View { record: record.clone(), ahead: queue.ahead(record), progress: board }
    }

    /// A way to read what happened to a job.
    pub fn log(&self, id: JobId) -> Result<journal::Reader, Problem> {
        self.job(id)?;
        self.0.depot.recall(id)?;
        Ok(journal::Reader::new(self.0.depot.log(id)))
    }

    /// The last `n` lines of what happened to a job.
    pub fn last_lines(&self, id: JobId, n: usize) -> Result<Vec<journal::Line>, Problem> {
        self.0.depot.recall(id)?;
        let path = self.0.depot.log(id);
        Ok(journal::last(&path, n).with_context(|| format!("{id}: cannot read the log"))?)
    }

    /// What there is to see of a job; nothing before it has begun.
    pub fn seen(&self, id: JobId) -> Seen {
        let scene = lock(&self.0.scenes).get(&id).cloned();
        let left = || {
            self.0.depot.recall(id).ok()?;
            serde_json::from_slice(&std::fs::read(self.0.depot.scene(id)).ok()?).ok()
        };
        scene.map(|scene| scene.read()).or_else(left).unwrap_or_default()
    }

    /// Writes down what there is to see of a job that is about to end.
    fn leave(&self, id: JobId, seen: &Seen) {
        let json = serde_json::to_vec(seen).unwrap_or_default();
        if let Err(error) = std::fs::write(self.0.depot.scene(id), json) {
            tracing::warn!(job = id.0, %error, "cannot write down what there is to see of a job");
        }
        lock(&self.0.scenes).remove(&id);
    }

    /// Takes note of what somebody did, or tried, that is about no job.
    pub fn note(&self, who: &str, what: &str, detail: &str) {
        self.0.audit.note(now(), who, what, None, detail);
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
        Ok((self.0.depot.results(id), self.0.depot.list(id)?))
    }

    /// Whether a file was brought before.
    pub fn has(&self, hash: Hash) -> bool {
        self.0.depot.has(hash)
    }

    /// Begins with a file that is brought.
    pub fn receive(&self, hash: Hash, size: u64) -> Result<Incoming, Problem> {
        let most = self.0.limits.upload;
        if size > most {
            return Err(Problem::Invalid(format!(
                "a file of {size} bytes; the service takes {most} at most (--max-upload)"
            )));
        }
        Ok(self.0.depot.receive(hash, size)?)
    }

    /// Keeps a file that was brought.
    pub fn keep(&self, who: &Identity, incoming: Incoming) -> Result<(), Problem> {
        let arrived = incoming.finish().map_err(|error| Problem::Invalid(format!("{error:#}")))?;
        let detail = arrived.to_string();
        self.0.depot.keep(arrived)?;
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
        let lacking = submission.inputs.iter().find(|input| !self.has(input.hash));
        if let Some(Input { path, .. }) = lacking {
            return Err(Problem::Lacking { path: path.clone() });
        }
        let aside = self.0.depot.lay_out(&submission.job, &submission.inputs)?;
        let loaded = self.load(aside.path()).and_then(|job| input::Input::load(&job));
        loaded.map_err(|error| Problem::Invalid(told(&error, aside.path())))?;
        let Submission { inputs, name, priority, max_workers, key, .. } = submission.clone();
        let mut queue = self.queue();
        if let Some(known) = known(&queue) {
            return Ok(known); // it was submitted twice at once
        }
        let id = queue.next_id();
        let record = Record {
            id,
            name,
            owner: who.name.clone(),
            priority: if priority == 0 { PRIORITIES[2] } else { priority },
            max_workers: (max_workers > 0).then_some(max_workers),
            key,
            inputs,
            state: State::Queued,
            submitted: now(),
            begun: None,
            ended: None,
        };
        queue.admit()?;
        Journal::new(log_in(aside.path()), self.0.bell.clone())
            .tell(now(), &format!("submitted by {}", who.name));
        self.0.depot.settle(aside, id)?;
        self.0.depot.save(&record)?;
        self.0.audit.note(now(), &who.name, "submit", Some(id), &record.name);
        let actions = queue.handle(now(), Event::Accepted(Box::new(record)))?;
        self.perform_on(&mut queue, actions);
        let record = queue.get(id).ok_or(Refusal::Unknown(id))?;
        Ok(self.view(&queue, record))
    }

    /// Stops a job that is not over.
    pub fn cancel(&self, who: &Identity, id: JobId) -> Result<View, Problem> {
        self.change(who, id, "cancel", Event::Cancelled(id))
    }

    /// Has a job go on that failed or was cancelled.
    pub fn resume(&self, who: &Identity, id: JobId) -> Result<View, Problem> {
        self.change(who, id, "resume", Event::Resumed(id))
    }

    fn change(&self, who: &Identity, id: JobId, what: &str, event: Event) -> Result<View, Problem> {
        self.job(id)?;
        self.0.depot.recall(id)?;
        let mut queue = self.queue();
        let record = queue.get(id).ok_or(Refusal::Unknown(id))?;
        if record.owner != who.name && !who.may(Role::Operate) {
            let owner = &record.owner;
            let denied = format!(
                "{id}: the job is {owner}'s; to {what} those of others takes the role {}",
                Role::Operate
            );
            self.0.audit.note(now(), &who.name, &format!("{what} refused"), Some(id), "");
            return Err(Problem::Denied(denied));
        }
        let actions = queue.handle(now(), event)?;
        if !actions.is_empty() {
            self.0.audit.note(now(), &who.name, what, Some(id), "");
            self.journal(id).tell(now(), &format!("{what} by {}", who.name));
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
        if let Err(error) = self.0.depot.tell(id) {
            tracing::warn!(job = id.0, "what happened to the job is not told in the object store: {error:#}");
        }
    }

    /// Waits until another service has taken over from this one, and gives what there is to say then.
    pub async fn ousted(&self) -> String {
        let mut ousted = self.0.ousted.subscribe();
        let reason = ousted.wait_for(Option::is_some).await;
        reason.ok().and_then(|reason| reason.clone()).unwrap_or_default()
    }

    /// Has the object store follow, as long as this service is its keeper.
    fn keep_up(&self) {
        while !self.0.closing.load(Ordering::SeqCst) {
            let work: Vec<JobId> = lock(&self.0.working).keys().copied().collect();
            match self.0.depot.keep_up(&work) {
                Ok(None) => {}
                Ok(Some(reason)) => return drop(self.0.ousted.send_replace(Some(reason))),
                Err(error) => tracing::warn!("the object store cannot follow: {error:#}; trying again"),
            }
            std::thread::sleep(BEAT);
        }
    }

    /// Leaves the jobs in work for the next process, and waits a while for them to notice.
    pub fn close(&self, patience: Duration) {
        self.0.closing.store(true, Ordering::SeqCst);
        lock(&self.0.working).values().for_each(Handle::cancel);
        let mut waited = Duration::ZERO;
        while !lock(&self.0.working).is_empty() && waited < patience {
            std::thread::sleep(Duration::from_millis(20));
            waited += Duration::from_millis(20);
        }
        if let Err(error) = self.0.depot.keep_up(&[]).and_then(|_| self.0.depot.leave()) {
            tracing::warn!("the next service will wait for this one: {error:#}");
        }
    }

    fn queue(&self) -> MutexGuard<'_, Queue> {
        lock(&self.0.queue)
    }

    fn journal(&self, id: JobId) -> Journal {
        Journal::new(self.0.depot.log(id), self.0.bell.clone())
    }

    /// Does what the queue says. A record that cannot be written is told; the next process then takes the job to be where it was before, and
    /// comes to the same result.
    fn perform_on(&self, queue: &mut Queue, actions: Vec<Action>) {
        self.perform(queue, actions);
        self.0.bell.ring();
    }

    fn perform(&self, queue: &Queue, actions: Vec<Action>) {
        for action in actions {
            match action {
                Action::Save(id) => {
                    let saved = queue.get(id).map_or(Ok(()), |record| self.0.depot.save(record));
                    if let Err(error) = saved {
                        tracing::error!(job = id.0, "cannot write down where the job is: {error:#}");
                    }
                }
                Action::Begin(id) => {
                    let Some(record) = queue.get(id) else { continue };
                    let handle = self.0.fleet.account(record.account());
                    lock(&self.0.working).insert(id, handle.clone());
                    let board = Board::default();
                    lock(&self.0.boards).insert(id, board.clone());
                    let scene = Scene::default();
                    lock(&self.0.scenes).insert(id, scene.clone());
                    // The threads are there as long as the service is.
                    let _ = self.0.orders.send(Order { id, name: record.name.clone(), handle, board, scene });
                }
                Action::Stop(id) => {
                    if let Some(handle) = lock(&self.0.working).get(&id) {
                        handle.cancel();
                    }
                }
            }
        }
    }

    /// The thread of a job has ended.
    fn ended(&self, id: JobId, how: Result<String, String>) {
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
            self.journal(id).tell(now(), &text);
        }
        match ended {
            Ok(actions) => self.perform_on(&mut queue, actions),
            Err(refusal) => tracing::error!("internal error: {refusal}; please report it"),
        }
    }

    /// The job in a folder of the depot, which reads nothing that is not its own, and writes nowhere else.
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
