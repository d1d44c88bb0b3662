//! The tasks of a batch, each made when it is assigned and kept until it is answered: weights and shards of all of them are never in
//! memory at once. And the register of all batches that are open.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use anyhow::Result;
use proto::convert::blob;
use rustc_hash::FxHashMap;
use shared::work::lease::{BatchId, TaskIndex};
use shared::work::task::Task;

use super::audit::Replicas;
use scheduler::Needs;

/// What a batch is made of.
pub trait Tasks: Send + Sync {
    /// How many.
    fn len(&self) -> usize;

    /// Whether there are none.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// What the task at that position works on.
    fn needs(&self, at: usize) -> Needs;

    /// The task at that position, equal in every call; an error if it cannot be made.
    fn make(&self, at: usize) -> Result<Task>;
}

impl Tasks for Vec<Task> {
    fn len(&self) -> usize {
        self.len()
    }

    fn needs(&self, at: usize) -> Needs {
        let task = &self[at];
        Needs {
            shard: task.shard.hash,
            shard_state: blob::shard_state(&task.work).map(|shard_state| shard_state.hash),
        }
    }

    fn make(&self, at: usize) -> Result<Task> {
        Ok(self[at].clone())
    }
}

/// The tasks of an open batch, their replicas after them.
pub(super) struct Open {
    tasks: Arc<dyn Tasks>,
    replicas: Replicas,
    /// Those that were assigned and are not answered.
    made: Mutex<FxHashMap<TaskIndex, Arc<Task>>>,
}

impl Open {
    pub fn new(tasks: Arc<dyn Tasks>, replicas: Replicas) -> Open {
        Open { tasks, replicas, made: Mutex::default() }
    }

    pub fn len(&self) -> usize {
        self.tasks.len() + self.replicas.audited().count()
    }

    pub fn needs(&self) -> Vec<Needs> {
        let all = (0..self.tasks.len() as u32).map(TaskIndex).chain(self.replicas.audited());
        all.map(|task| self.tasks.needs(task.index())).collect()
    }

    /// The task, made if it is not there.
    pub fn task(&self, task: TaskIndex) -> Result<Arc<Task>> {
        if let Some(made) = self.made().get(&task) {
            return Ok(made.clone());
        }
        let made = Arc::new(self.tasks.make(self.replicas.original(task).index())?);
        self.made().insert(task, made.clone());
        Ok(made)
    }

    /// Forgets the task, which was answered.
    pub fn close(&self, task: TaskIndex) {
        self.made().remove(&task);
    }

    fn made(&self) -> MutexGuard<'_, FxHashMap<TaskIndex, Arc<Task>>> {
        self.made.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The open batches, used to check answers, and the source of batch ids.
#[derive(Default)]
pub(super) struct Register {
    next: AtomicU64,
    open: Mutex<FxHashMap<BatchId, Arc<Open>>>,
}

impl Register {
    /// An id for a batch, never used before.
    pub fn next(&self) -> BatchId {
        BatchId(self.next.fetch_add(1, Ordering::Relaxed))
    }

    /// Whether there ever was a batch of that id, or is about to be.
    pub fn knows(&self, batch: BatchId) -> bool {
        batch.0 < self.next.load(Ordering::Relaxed)
    }

    /// The tasks of the batch, if it is open.
    pub fn tasks(&self, batch: BatchId) -> Option<Arc<Open>> {
        self.open().get(&batch).cloned()
    }

    /// The batch is open.
    pub fn insert(&self, batch: BatchId, tasks: Arc<Open>) {
        self.open().insert(batch, tasks);
    }

    /// The batch is over.
    pub fn remove(&self, batch: BatchId) {
        self.open().remove(&batch);
    }

    fn open(&self) -> MutexGuard<'_, FxHashMap<BatchId, Arc<Open>>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
