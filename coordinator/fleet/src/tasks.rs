//! The tasks of a batch, and the register of open batches.
//!
//! A task is made when it is assigned and kept until it is answered, so the weights and shards of all tasks are never in memory at the
//! same time.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use anyhow::Result;
use grammaton::stop::Stop;
use grammaton::work::lease::{BatchId, TaskIndex};
use grammaton::work::task::Task;
use parking_lot::{Mutex, MutexGuard};
use rustc_hash::FxHashMap;

use super::Compute;
use super::audit::{self, Replicas};
use scheduler::Needs;

/// The tasks of a batch.
pub trait Tasks: Send + Sync {
    /// Number of tasks.
    fn len(&self) -> usize;

    /// Whether the batch has no tasks.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Shard and shard state of the task at that position.
    fn needs(&self, at: usize) -> Needs;

    /// Makes the task at that position; every call returns an equal task.
    fn make(&self, at: usize) -> Result<Task>;

    /// Computes the task at that position in its job's own process, until `stop` is requested. Returns the digest of the answer, by which
    /// the answers of workers are judged. An error says why there is no answer.
    fn digest(&self, at: usize, compute: &Compute, stop: &Stop) -> Result<blake3::Hash> {
        audit::digest(compute, &self.make(at)?, stop)
    }
}

impl Tasks for Vec<Task> {
    fn len(&self) -> usize {
        self.len()
    }

    fn needs(&self, at: usize) -> Needs {
        let task = &self[at];
        let shard_state = task.work.shard_state().map(|shard_state| shard_state.hash);
        Needs { shard_state, ..Needs::shard(task.shard.hash) }
    }

    fn make(&self, at: usize) -> Result<Task> {
        Ok(self[at].clone())
    }
}

/// An open batch: its tasks, and their replicas after them.
pub(super) struct Open {
    tasks: Arc<dyn Tasks>,
    replicas: Mutex<Replicas>,
    /// Assigned tasks without an answer.
    made: Mutex<FxHashMap<TaskIndex, Arc<Task>>>,
}

impl Open {
    pub fn new(tasks: Arc<dyn Tasks>, replicas: Replicas) -> Open {
        Open { tasks, replicas: Mutex::new(replicas), made: Mutex::default() }
    }

    pub fn len(&self) -> usize {
        self.tasks.len() + self.replicas().len()
    }

    pub fn needs(&self) -> Vec<Needs> {
        let replicas = self.replicas();
        let all = (0..self.tasks.len() as u32).map(TaskIndex).chain(replicas.originals());
        all.map(|task| self.tasks.needs(task.index())).collect()
    }

    /// The original of a replica; the task itself otherwise.
    pub fn original(&self, task: TaskIndex) -> TaskIndex {
        self.replicas().original(task)
    }

    /// Adds a replica of `task`; returns it.
    pub fn add_replica(&self, task: TaskIndex) -> TaskIndex {
        self.replicas().add(task)
    }

    /// Returns the task; makes it unless it is assigned already.
    pub fn task(&self, task: TaskIndex) -> Result<Arc<Task>> {
        if let Some(made) = self.made().get(&task) {
            return Ok(made.clone());
        }
        let made = Arc::new(self.tasks.make(self.original(task).index())?);
        self.made().insert(task, made.clone());
        Ok(made)
    }

    /// Removes an answered task.
    pub fn close(&self, task: TaskIndex) {
        self.made().remove(&task);
    }

    fn replicas(&self) -> MutexGuard<'_, Replicas> {
        self.replicas.lock()
    }

    fn made(&self) -> MutexGuard<'_, FxHashMap<TaskIndex, Arc<Task>>> {
        self.made.lock()
    }
}

/// Register of open batches, to check answers, and source of batch ids.
#[derive(Default)]
pub(super) struct Register {
    next: AtomicU64,
    open: Mutex<FxHashMap<BatchId, Arc<Open>>>,
}

impl Register {
    /// Returns a new batch id.
    pub fn next(&self) -> BatchId {
        BatchId(self.next.fetch_add(1, Ordering::Relaxed))
    }

    /// Whether the id was given out.
    pub fn knows(&self, batch: BatchId) -> bool {
        batch.0 < self.next.load(Ordering::Relaxed)
    }

    /// The batch, if it is open.
    pub fn tasks(&self, batch: BatchId) -> Option<Arc<Open>> {
        self.open().get(&batch).cloned()
    }

    /// Adds an open batch.
    pub fn insert(&self, batch: BatchId, tasks: Arc<Open>) {
        self.open().insert(batch, tasks);
    }

    /// Removes a finished batch.
    pub fn remove(&self, batch: BatchId) {
        self.open().remove(&batch);
    }

    fn open(&self) -> MutexGuard<'_, FxHashMap<BatchId, Arc<Open>>> {
        self.open.lock()
    }
}
