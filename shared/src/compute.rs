//! How a worker answers a task.

use crate::task::{Answer, Task};

/// Answers tasks; keeps what is costly to build (forests) from one task to the next. One per process, shared
/// by its threads.
#[derive(Default)]
pub struct Engine {}

/// Why a task has no answer. Never depends on the machine: the same task fails everywhere.
#[derive(Debug, thiserror::Error)]
pub enum ComputeError {
    /// The task does not fit its shard, e.g. weights of another length than the shard's index.
    #[error("task does not fit its shard: {0}")]
    Mismatch(String),
}

impl Engine {
    /// The answer to `task`.
    pub fn run(&self, task: &Task) -> Result<Answer, ComputeError> {
        let _ = task;
        Err(ComputeError::Mismatch("not written".into()))
    }
}
