//! Names of leases: which task of which batch, assigned for which time.
//!
//! Answers carry the name of their lease, so of several answers to one task each can be distinguished.

use serde::{Deserialize, Serialize};

/// A batch of tasks: one phase or round of a job. Never used twice in a session.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub struct BatchId(pub u64);

/// Position of a task in its batch.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub struct TaskIndex(pub u32);

impl TaskIndex {
    /// Returns the id as an index.
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

/// Number of earlier assignments of the task.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub struct Attempt(pub u32);

/// Maximum number of tasks in a row that one slot of a member is assigned.
pub const MAX_QUEUE: usize = 16;

/// Maximum number of leases that a member of so many slots holds: [`MAX_QUEUE`] for each slot, and one that waits.
pub fn max_leases(slots: u32) -> usize {
    MAX_QUEUE * slots as usize + 1
}

/// A task assigned to a member.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub struct LeaseId {
    /// The batch.
    pub batch: BatchId,
    /// The task.
    pub task: TaskIndex,
    /// Number of earlier assignments of the task.
    pub attempt: Attempt,
}

impl std::fmt::Display for LeaseId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}.{}.{}", self.batch.0, self.task.0, self.attempt.0)
    }
}

/// Names one process of a coordinator: leases of another session mean nothing to it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct SessionId(pub [u8; 16]);

/// Names one process of a worker, by a secret that it draws when it starts. Only that process can return under it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct InstanceId(pub [u8; 16]);
