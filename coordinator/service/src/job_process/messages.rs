//! Messages between a service and the process of a job. Payloads (answers, requests of tasks, blobs) are those of the workers' protocol.

use std::path::PathBuf;

use anyhow::Result;
use grammaton::work::task::ContentHash;
use serde::{Deserialize, Serialize};

use fleet::{FleetError, FleetEvent, MapReport, Mismatch, Stage};
use scheduler::{Failure, Needs};
use training::outcome::FleetUse;

/// An error as one line of text: to another process, into a file, or onto a page.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, thiserror::Error)]
#[error("{0}")]
pub struct Reason(pub String);

impl From<&str> for Reason {
    fn from(text: &str) -> Reason {
        Reason(text.to_owned())
    }
}

impl From<anyhow::Error> for Reason {
    fn from(error: anyhow::Error) -> Reason {
        Reason(format!("{error:#}"))
    }
}

/// Encoded head of a task's lease, and hashes of its blobs; an error says why there is no task.
pub type HeadOfTask = Result<(Vec<u8>, Vec<ContentHash>), Reason>;

/// Assignment of the process; the first message to it.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Assignment {
    /// The job's folder.
    pub folder: PathBuf,
    /// Prefixes of URLs that the job may read.
    pub urls: Vec<String>,
    /// Largest amount of memory, in bytes.
    pub memory: u64,
    /// CPU time after which the process is ended, in seconds, if there is a limit.
    pub cpu_seconds: Option<u64>,
    /// Whether to train, or only to check the job.
    pub action: Action,
}

/// Actions on a job.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub enum Action {
    /// Reads the job, its grammar and its corpus, and reports the first error.
    Check,
    /// Trains it, from its newest checkpoint if there is one.
    Train {
        /// Folder or URL of its checkpoints; empty: among its results.
        checkpoints: String,
    },
}

/// A message to the process of a job.
#[derive(Debug, Serialize, Deserialize)]
pub enum ToJob {
    /// The assignment.
    Assigned(Assignment),
    /// Asks for the task at a position of a batch.
    TaskWanted {
        /// Returned with the reply.
        request: u64,
        /// Number of the batch.
        batch: u64,
        /// Position in the batch.
        at: usize,
    },
    /// Asks for a blob of the task at a position of a batch.
    BlobWanted {
        /// Returned with the reply.
        request: u64,
        /// Number of the batch.
        batch: u64,
        /// Position in the batch.
        at: usize,
        /// Hash of the blob.
        hash: ContentHash,
    },
    /// Asks for the digest of the answer that the process computes to a task, since the answers of workers differ.
    DigestWanted {
        /// Returned with the reply.
        request: u64,
        /// Number of the batch.
        batch: u64,
        /// Position in the batch.
        at: usize,
    },
    /// The next answer of the open batch, which is the payload.
    Answered {
        /// Position of its task.
        at: usize,
    },
    /// Something happened to the fleet.
    FleetEvent(FleetEvent),
    /// The open batch is over.
    BatchOver(Result<MapReport, BatchError>),
    /// The workers of the job.
    FleetUse(FleetUse),
    /// The job was cancelled.
    Cancelled,
}

/// A message from the process of a job.
#[derive(Debug, Serialize, Deserialize)]
pub enum FromJob {
    /// A batch; there is one at a time.
    Batch {
        /// Its number: 0, 1, …
        batch: u64,
        /// Stage of its tasks.
        stage: Stage,
        /// Needs by task.
        needs: Vec<Needs>,
        /// Number of its tasks, from the first, that follow without a request.
        ahead: usize,
    },
    /// The next of the tasks that follow a batch; its payload is that of its lease.
    TaskAhead(HeadOfTask),
    /// No more tasks follow without a request, though fewer came than announced.
    NoMoreAhead,
    /// A task that was asked for; its payload is that of its lease.
    Task {
        /// The request.
        request: u64,
        /// The task.
        task: HeadOfTask,
    },
    /// A blob, which is the payload.
    Blob {
        /// The request.
        request: u64,
        /// Its kind, as in the workers' protocol; an error says why there is no blob.
        kind: Result<i32, Reason>,
    },
    /// The digest of an answer that was asked for; an error says why there is no answer.
    Digest {
        /// The request.
        request: u64,
        /// The digest.
        digest: Result<[u8; 32], Reason>,
    },
    /// An answer has been processed.
    Processed {
        /// Bytes of its payload.
        bytes: usize,
    },
    /// An event of the run: a [`RunEvent`](training::events::RunEvent) as JSON.
    Event(String),
    /// Asks for [`ToJob::FleetUse`].
    FleetUseWanted,
    /// Every task of later batches is to be computed by two members.
    AuditAll,
    /// The end, and the last message: the digest of the parameters, empty after a check; or the reason of the failure in one line.
    Ended(Result<String, Reason>),
}

/// Why a batch has no result.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub enum BatchError {
    /// [`FleetError::Batch`].
    Failed {
        /// Cause.
        failure: Failure,
        /// The last events and decisions of the scheduler.
        decisions: Vec<String>,
    },
    /// [`FleetError::Audit`].
    Audit(Mismatch),
    /// [`FleetError::Cancelled`].
    Cancelled,
    /// [`FleetError::Stopped`], or an error that has no other variant.
    Stopped,
}

impl BatchError {
    /// Returns the error of a batch for `stage`.
    pub fn into_error(self, stage: Stage) -> FleetError {
        match self {
            BatchError::Failed { failure, decisions } => FleetError::Batch { stage, failure, decisions },
            BatchError::Audit(mismatch) => FleetError::Audit { stage, mismatch: Box::new(mismatch) },
            BatchError::Cancelled => FleetError::Cancelled,
            BatchError::Stopped => FleetError::Stopped,
        }
    }
}

impl From<FleetError> for BatchError {
    fn from(error: FleetError) -> BatchError {
        match error {
            FleetError::Batch { failure, decisions, .. } => BatchError::Failed { failure, decisions },
            FleetError::Audit { mismatch, .. } => BatchError::Audit(*mismatch),
            FleetError::Cancelled => BatchError::Cancelled,
            _ => BatchError::Stopped,
        }
    }
}
