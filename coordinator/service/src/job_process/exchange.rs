//! The service's side of the pipes to the process of a job: requests and their replies, and a window for answers.

use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, SyncSender};
use std::time::Duration;

use anyhow::{anyhow, bail};
use grammaton::encoding::encode;
use grammaton::stop::{Stop, Stopped};
use grammaton::work::task::{Answer, ContentHash};
use parking_lot::{Condvar, Mutex, MutexGuard};
use prost::bytes::Bytes;
use rustc_hash::FxHashMap;

use super::frames::Sender;
use super::messages::{Reason, ToJob};

/// Bytes of answers that the process has not processed yet; one answer may exceed it.
const WINDOW: usize = 32 << 20;

/// Time that the process has for a reply.
const REPLY_WITHIN: Duration = Duration::from_secs(60);

/// Time between two looks at whether a computation is to stop.
const LOOK: Duration = Duration::from_millis(20);

/// Why there is no reply.
const GONE: &str = "the process of the job has ended";

/// The head of a lease, the hashes of its blobs, and its payload.
pub type Made = (Vec<u8>, Vec<ContentHash>, Bytes);

/// A reply to a request.
pub enum Reply {
    /// Reply to [`Exchange::task`].
    Task(Result<Made, Reason>),
    /// Reply to [`Exchange::blob`]: kind and bytes.
    Blob(Result<(i32, Bytes), Reason>),
    /// Reply to [`Exchange::digest`].
    Digest(Result<[u8; 32], Reason>),
}

/// The way to the process of a job.
pub struct Exchange {
    to_job: Sender,
    requests: AtomicU64,
    state: Mutex<State>,
    /// Notified with every change of `in_flight`, `ahead` and `is_over`.
    changed: Condvar,
    /// Kills the process.
    kill: Box<dyn Fn() + Send + Sync>,
}

#[derive(Default)]
struct State {
    /// Channels for replies, by request.
    waiting: FxHashMap<u64, SyncSender<Reply>>,
    /// Bytes of answers that were sent and not processed.
    in_flight: usize,
    /// Tasks that come without a request.
    ahead: Ahead,
    /// Whether the process has ended, or is about to.
    is_over: bool,
}

/// The first tasks of the last batch, which come without a request, in their order.
#[derive(Default)]
struct Ahead {
    batch: u64,
    /// Number of announced tasks.
    announced: usize,
    /// Number of arrived tasks.
    arrived: usize,
    /// Arrived tasks that were not used yet.
    tasks: FxHashMap<usize, Result<Made, Reason>>,
}

impl Exchange {
    /// An exchange over a pipe to a process; `kill` kills the process.
    pub fn new(to_job: Sender, kill: Box<dyn Fn() + Send + Sync>) -> Exchange {
        let (requests, state, changed) = (AtomicU64::new(0), Mutex::default(), Condvar::new());
        Exchange { to_job, requests, state, changed, kill }
    }

    /// Sends a message.
    pub fn send(&self, message: &ToJob) -> io::Result<()> {
        self.to_job.send(message, &[])
    }

    /// Kills the process.
    pub fn kill(&self) {
        (self.kill)();
    }

    /// A batch begins, whose first tasks, `ahead` in number, come without a request.
    pub fn begin(&self, batch: u64, ahead: usize) {
        self.state().ahead = Ahead { batch, announced: ahead, ..Ahead::default() };
    }

    /// The next task has come without a request.
    pub fn arrived(&self, task: Result<Made, Reason>) {
        let mut state = self.state();
        let at = state.ahead.arrived;
        state.ahead.arrived += 1;
        state.ahead.tasks.insert(at, task);
        self.changed.notify_all();
    }

    /// No more tasks come without a request.
    pub fn no_more_ahead(&self) {
        let mut state = self.state();
        state.ahead.announced = state.ahead.arrived;
        self.changed.notify_all();
    }

    /// Returns a task, which may have come already.
    pub fn task(&self, batch: u64, at: usize) -> anyhow::Result<Made> {
        let comes = |state: &mut State| {
            let Ahead { batch: last, announced, arrived, .. } = state.ahead;
            batch == last && (arrived..announced).contains(&at) && !state.is_over
        };
        let mut state = self.state();
        self.changed.wait_while_for(&mut state, comes, REPLY_WITHIN);
        if state.ahead.batch == batch
            && let Some(task) = state.ahead.tasks.remove(&at)
        {
            return Ok(task?);
        }
        drop(state);
        match self.ask(|request| ToJob::TaskWanted { request, batch, at })? {
            Reply::Task(task) => Ok(task?),
            Reply::Blob(_) | Reply::Digest(_) => bail!("the reply is not a task"),
        }
    }

    /// Asks for a blob of a task.
    pub fn blob(&self, batch: u64, at: usize, hash: ContentHash) -> anyhow::Result<(i32, Bytes)> {
        match self.ask(|request| ToJob::BlobWanted { request, batch, at, hash })? {
            Reply::Blob(blob) => Ok(blob?),
            Reply::Task(_) | Reply::Digest(_) => bail!("the reply is not a blob"),
        }
    }

    /// Has the process compute a task, for as long as the process lives and until `stop` is requested. Returns the digest of its answer.
    pub fn digest(&self, batch: u64, at: usize, stop: &Stop) -> anyhow::Result<blake3::Hash> {
        let replied = self.request(|request| ToJob::DigestWanted { request, batch, at })?;
        loop {
            match replied.recv_timeout(LOOK) {
                Ok(Reply::Digest(digest)) => return Ok(digest?.into()),
                Ok(Reply::Task(_) | Reply::Blob(_)) => bail!("the reply is not a digest"),
                Err(RecvTimeoutError::Disconnected) => bail!(GONE),
                Err(RecvTimeoutError::Timeout) if stop.is_requested() => bail!(Stopped),
                Err(RecvTimeoutError::Timeout) => {}
            }
        }
    }

    fn ask(&self, message: impl FnOnce(u64) -> ToJob) -> anyhow::Result<Reply> {
        self.request(message)?.recv_timeout(REPLY_WITHIN).map_err(|error| match error {
            RecvTimeoutError::Disconnected => anyhow!(GONE),
            RecvTimeoutError::Timeout => {
                self.kill();
                anyhow!("the process of the job did not answer for {} s", REPLY_WITHIN.as_secs())
            }
        })
    }

    /// Sends a request; returns the channel of its reply.
    fn request(&self, message: impl FnOnce(u64) -> ToJob) -> anyhow::Result<Receiver<Reply>> {
        let request = self.requests.fetch_add(1, Ordering::Relaxed);
        let (reply, replied) = mpsc::sync_channel(1);
        let mut state = self.state();
        if state.is_over {
            bail!(GONE);
        }
        state.waiting.insert(request, reply);
        drop(state);
        self.send(&message(request)).map_err(|_| anyhow!(GONE))?;
        Ok(replied)
    }

    /// Passes a reply on to the thread that asked.
    pub fn reply(&self, request: u64, reply: Reply) {
        if let Some(waiting) = self.state().waiting.remove(&request) {
            // There is room for one; the thread may have given up.
            let _ = waiting.try_send(reply);
        }
    }

    /// Sends an answer, as soon as the process has processed enough of those before.
    pub fn answer(&self, at: usize, answer: &Answer) {
        let bytes = encode(answer);
        let mut state = self.state();
        while state.in_flight > 0 && state.in_flight + bytes.len() > WINDOW && !state.is_over {
            self.changed.wait(&mut state);
        }
        state.in_flight += bytes.len();
        drop(state);
        // Without a process the batch ends soon.
        let _ = self.to_job.send(&ToJob::Answered { at }, &bytes);
    }

    /// The process has processed answers of so many bytes.
    pub fn processed(&self, bytes: usize) {
        let mut state = self.state();
        state.in_flight = state.in_flight.saturating_sub(bytes);
        self.changed.notify_all();
    }

    /// The process has ended: threads that wait for it wait no more.
    pub fn close(&self) {
        let mut state = self.state();
        state.is_over = true;
        state.waiting.clear();
        self.changed.notify_all();
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock()
    }
}
