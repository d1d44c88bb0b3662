//! A process for each job, so that a job that takes too much memory, or crashes, ends itself and nothing else.
//!
//! ```text
//!  service                                        process of the job (`grammaton job-process`)
//!    Processes::train ──assignment──────────────────> job_side ──> train::train
//!      batch thread  <──batch, needs of its tasks────── service_fleet (a Map)
//!        Handle::map                                       │
//!          foreign_tasks ──task wanted, blob wanted──────> │ makes them
//!          each answer ────────────────────────────────────> each
//!          foreign_tasks ──digest wanted─────────────────> │ computes a task of which workers gave different answers
//!      observers     <──events of the run─────────────────── Teller
//!      result        <──digest of the parameters, or an error
//! ```
//!
//! The process reads and checks the job, prepares it, updates the parameters, and writes its results into the job's folder; the service keeps the
//! fleet. Over pipes (`frames`, `messages`), tasks and answers have the form that they have for workers, so that results are the same bits as
//! those of `train`. [`folder`] is the layout of a job's folder, [`limits`] what the process may use.
//!
//! Invariants: a process ends with its service, by a signal of the system or when its pipe closes; a process that ends without a result is an error of
//! its job alone; threads of the service that wait for a process wait no longer than it lives, or a minute.

mod exchange;
pub mod folder;
mod foreign_tasks;
mod frames;
mod job_side;
pub mod limits;
mod messages;
mod service_fleet;

use std::io::{self, Read, Write};
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::Duration;

use basics::clock;
use basics::human;
use fleet::{Handle, Map};
use parking_lot::Mutex;
use proto::log::Form;
use proto::token::TOKEN_VARIABLE;
use training::events::Observer;
use training::outcome::FleetUse;

use self::exchange::{Exchange, Reply};
use self::foreign_tasks::{Blobs, ForeignTasks};
use self::frames::Sender;
use self::messages::{Action, Assignment, FromJob, ToJob};

pub use self::job_side::run;
pub use self::messages::Reason;

/// CPU time of checking a job, in seconds.
const CHECK_CPU: u64 = 600;
/// Time from a cancellation to the end of the process; then it is killed. The checkpoint has to be written within it.
const STOP_WITHIN: Duration = Duration::from_secs(120);
/// Time for a process that has reported its end to exit.
const EXIT_WITHIN: Duration = Duration::from_secs(10);
/// Time between two looks at whether a job was cancelled.
const LOOK: Duration = Duration::from_millis(20);

/// How the processes of jobs are started. Clones share what they keep.
#[derive(Clone)]
pub struct Processes {
    /// Largest amount of memory of a process, in bytes.
    memory: u64,
    /// Form of their logs.
    log: Form,
    start: fn(Form) -> io::Result<Started>,
    blobs: Arc<Blobs>,
}

impl Processes {
    /// Processes of this program that may use `memory` bytes each, and log in this form.
    pub fn of_this_program(memory: u64, log: Form) -> Processes {
        Processes { memory, log, start: start_process, blobs: Arc::default() }
    }

    /// Threads of this process instead, for tests of storage in memory.
    #[cfg(test)]
    pub fn threads() -> Processes {
        Processes { memory: u64::MAX, log: Form::Text, start: start_thread, blobs: Arc::default() }
    }

    /// Checks the job in `folder`, which may read URLs below `urls`, until `is_wanted` says no more.
    pub fn check(
        &self,
        folder: &Path,
        urls: &[String],
        is_wanted: &(dyn Fn() -> bool + Sync),
    ) -> Result<(), Unfinished> {
        let mut process = self.start(folder, urls, Action::Check)?;
        let is_over = AtomicBool::new(false);
        let exchange = process.exchange.clone();
        let result = thread::scope(|scope| {
            scope.spawn(|| {
                while !is_over.load(Ordering::SeqCst) && is_wanted() {
                    thread::sleep(LOOK);
                }
                if !is_over.load(Ordering::SeqCst) {
                    exchange.kill();
                }
            });
            let result = loop {
                match frames::receive(&mut process.output) {
                    Ok(Some((FromJob::Ended(result), _))) => break Some(result),
                    Ok(Some(_)) => {}
                    Ok(None) | Err(_) => break None,
                }
            };
            is_over.store(true, Ordering::SeqCst);
            result
        });
        process.end(result).map(drop)
    }

    /// Trains the job in `folder` on the fleet of `handle`, tells `observer` what happens, and returns the digest of the parameters. `fleet_use` says who
    /// worked on it.
    pub fn train(
        &self,
        folder: &Path,
        urls: &[String],
        checkpoints: String,
        handle: &Handle,
        fleet_use: &dyn Fn() -> FleetUse,
        observer: &mut dyn Observer,
    ) -> Result<String, Unfinished> {
        let mut process = self.start(folder, urls, Action::Train { checkpoints })?;
        let exchange = &process.exchange.clone();
        let (batches, received) = mpsc::channel();
        let is_over = AtomicBool::new(false);
        let result = thread::scope(|scope| {
            scope.spawn(|| self.map_batches(handle, exchange, received));
            scope.spawn(|| kill_when_stuck(handle, exchange, &is_over));
            let mut result = None;
            while let Ok(Some((message, payload))) = frames::receive(&mut process.output) {
                match message {
                    FromJob::Batch { batch, stage, needs, ahead } => {
                        exchange.begin(batch, ahead);
                        // The thread lives as long as the channel.
                        let _ = batches.send((batch, stage, needs));
                    }
                    FromJob::TaskAhead(task) => {
                        exchange.arrived(task.map(|(head, hashes)| (head, hashes, payload)));
                    }
                    FromJob::NoMoreAhead => exchange.no_more_ahead(),
                    FromJob::Task { request, task } => {
                        let task = task.map(|(head, hashes)| (head, hashes, payload));
                        exchange.reply(request, Reply::Task(task));
                    }
                    FromJob::Blob { request, kind } => {
                        exchange.reply(request, Reply::Blob(kind.map(|kind| (kind, payload))));
                    }
                    FromJob::Digest { request, digest } => exchange.reply(request, Reply::Digest(digest)),
                    FromJob::Processed { bytes } => exchange.processed(bytes),
                    FromJob::Event(event) => {
                        let received = serde_json::from_str(&event).map_err(anyhow::Error::from);
                        if let Err(error) = received.and_then(|event| observer.on(&event)) {
                            tracing::warn!("an event of the job is not shown: {error:#}");
                        }
                    }
                    FromJob::AuditAll => drop(handle.audit_all()),
                    // A process that is gone is noticed at the next frame.
                    FromJob::FleetUseWanted => drop(exchange.send(&ToJob::FleetUse(fleet_use()))),
                    FromJob::Ended(ended) => {
                        result = Some(ended);
                        break;
                    }
                }
            }
            is_over.store(true, Ordering::SeqCst);
            exchange.close();
            if result.is_none() {
                handle.interrupt(); // the caller of the batch is gone
            }
            drop(batches);
            result
        });
        process.end(result)
    }

    /// Has batches computed, one after the other, and tells the process if the job is cancelled.
    fn map_batches(
        &self,
        handle: &Handle,
        job: &Arc<Exchange>,
        batches: mpsc::Receiver<(u64, fleet::Stage, Vec<scheduler::Needs>)>,
    ) {
        let mut is_told = false;
        loop {
            let batch = batches.recv_timeout(LOOK);
            // A process that is gone takes no messages; the loop ends with the channel.
            if !is_told && handle.is_cancelled() {
                is_told = true;
                let _ = job.send(&ToJob::Cancelled);
            }
            let (batch, stage, needs) = match batch {
                Ok(batch) => batch,
                Err(RecvTimeoutError::Timeout) => continue,
                Err(RecvTimeoutError::Disconnected) => return,
            };
            let tasks = ForeignTasks { job: job.clone(), batch, needs, blobs: self.blobs.clone() };
            let each = &mut |at, answer| job.answer(at, &answer);
            let hear = &mut |event| drop(job.send(&ToJob::FleetEvent(event)));
            let result = handle.map_with_events(stage, Arc::new(tasks), each, hear);
            let _ = job.send(&ToJob::BatchOver(result.map_err(Into::into)));
        }
    }

    fn start(&self, folder: &Path, urls: &[String], action: Action) -> Result<Process, Unfinished> {
        let failed = |error: io::Error| {
            Unfinished::Lost(Reason(format!("the process of the job cannot be started: {error}")))
        };
        let Started { input, output, ending } = (self.start)(self.log).map_err(failed)?;
        let ending = Arc::new(Mutex::new(ending));
        let to_kill = ending.clone();
        let exchange = Exchange::new(Sender::new(input), Box::new(move || to_kill.lock().kill()));
        let cpu_seconds = (action == Action::Check).then_some(CHECK_CPU);
        let assignment = Assignment {
            folder: folder.to_owned(),
            urls: urls.to_vec(),
            memory: self.memory,
            cpu_seconds,
            action,
        };
        // A process that has ended already is noticed when nothing comes from it.
        let _ = exchange.send(&ToJob::Assigned(assignment));
        Ok(Process { exchange: Arc::new(exchange), output, ending, memory: self.memory })
    }
}

/// Why a job has no result.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Unfinished {
    /// Its process reported an error, which it would report again.
    Failed(Reason),
    /// Its process ended without a report, as if killed.
    Lost(Reason),
}

impl Unfinished {
    /// The reason alone.
    pub fn into_reason(self) -> Reason {
        match self {
            Unfinished::Failed(reason) | Unfinished::Lost(reason) => reason,
        }
    }
}

/// Kills a process that does not end though its job was cancelled.
fn kill_when_stuck(handle: &Handle, job: &Exchange, is_over: &AtomicBool) {
    let mut since = None;
    while !is_over.load(Ordering::SeqCst) {
        thread::sleep(LOOK);
        if handle.is_cancelled() && since.get_or_insert_with(clock::instant).elapsed() > STOP_WITHIN {
            return job.kill();
        }
    }
}

/// A running process of a job.
struct Process {
    exchange: Arc<Exchange>,
    output: Box<dyn Read + Send>,
    ending: Arc<Mutex<Ending>>,
    memory: u64,
}

impl Process {
    /// Waits until the process has exited, and returns what it reported, or else how it ended.
    fn end(self, reported: Option<Result<String, Reason>>) -> Result<String, Unfinished> {
        let status = self.ending.lock().wait();
        match reported {
            Some(result) => result.map_err(Unfinished::Failed),
            None => Err(Unfinished::Lost(Reason(describe(status, self.memory)))),
        }
    }
}

/// Describes how a process ended that reported no result.
fn describe(status: io::Result<ExitStatus>, memory: u64) -> String {
    let text = match status {
        Ok(status) => status,
        Err(error) => return format!("the process of the job was lost: {error}"),
    };
    let signal = std::os::unix::process::ExitStatusExt::signal(&text);
    match signal {
        Some(6 | 9) => format!(
            "the job's process was ended by signal {}: it needs more than the {} of memory that it may have (--job-memory of the service), \
             or it was killed, or met a defect; the service's log says more",
            signal.unwrap_or_default(),
            human::bytes(memory)
        ),
        Some(24) => format!("checking the job took more than {CHECK_CPU} s of CPU time"),
        _ => format!("the job's process ended without a result ({text}); the service's log says more"),
    }
}

/// A process that was started, without an assignment.
struct Started {
    input: Box<dyn Write + Send>,
    output: Box<dyn Read + Send>,
    ending: Ending,
}

/// How a process ends.
enum Ending {
    Process(Child),
    #[cfg(test)]
    Thread(Option<thread::JoinHandle<()>>),
}

impl Ending {
    fn kill(&mut self) {
        match self {
            // An error says that it has ended.
            Ending::Process(child) => drop(child.kill()),
            #[cfg(test)]
            Ending::Thread(_) => {}
        }
    }

    /// Waits for the end; kills the process if it does not exit.
    fn wait(&mut self) -> io::Result<ExitStatus> {
        match self {
            Ending::Process(child) => {
                let begun = clock::instant();
                while child.try_wait()?.is_none() {
                    if begun.elapsed() > EXIT_WITHIN {
                        child.kill()?;
                        break;
                    }
                    thread::sleep(Duration::from_millis(1));
                }
                child.wait()
            }
            #[cfg(test)]
            Ending::Thread(thread) => {
                let joined = thread.take().map(thread::JoinHandle::join);
                joined
                    .map(|joined| joined.is_ok())
                    .map_or_else(|| Err(io::ErrorKind::NotFound.into()), |_| Ok(ExitStatus::default()))
            }
        }
    }
}

/// Starts this program as the process of a job.
fn start_process(log: Form) -> io::Result<Started> {
    // The link leads to this program even if its file has been replaced.
    let program = if cfg!(target_os = "linux") { "/proc/self/exe".into() } else { std::env::current_exe()? };
    let mut command = Command::new(program);
    command.args(["job-process", "--log", &log.to_string()]);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).env_remove(TOKEN_VARIABLE);
    // Ctrl-C in the service's terminal is for the service, which stops its jobs.
    std::os::unix::process::CommandExt::process_group(&mut command, 0);
    let mut child = command.spawn()?;
    let lost = || io::Error::other("no pipe");
    let (input, output) = (child.stdin.take().ok_or_else(lost)?, child.stdout.take().ok_or_else(lost)?);
    Ok(Started { input: Box::new(input), output: Box::new(output), ending: Ending::Process(child) })
}

#[cfg(test)]
fn start_thread(_: Form) -> io::Result<Started> {
    let (input, to_job) = io::pipe()?;
    let (output, from_job) = io::pipe()?;
    let body = move || drop(job_side::run(input, Box::new(from_job), false, || {}));
    let thread = thread::Builder::new().name("job-process".into()).spawn(body)?;
    Ok(Started { input: Box::new(to_job), output: Box::new(output), ending: Ending::Thread(Some(thread)) })
}
