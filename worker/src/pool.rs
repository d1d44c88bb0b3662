//! Compute threads.
//!
//! In: tasks. Out: encoded answers, so that the network's threads need not encode them. A panic in a computation fails the
//! task; the thread continues.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use prost::bytes::Bytes;
use proto::convert::Wire;
use shared::work::task::Task;

use crate::blobs::KeptState;
use crate::driver::clock;
use crate::membership::SessionLease;
use crate::{Compute, RunError};

/// A task to compute.
pub(crate) struct Job {
    /// The lease that it belongs to.
    pub lease: SessionLease,
    /// The task.
    pub task: Task,
}

/// A computed task.
#[derive(Clone)]
pub(crate) struct Computed {
    /// The lease that it belongs to.
    pub lease: SessionLease,
    /// The encoded answer, or the reason of the failure.
    pub answer: Result<Bytes, String>,
    /// The new state of the shard, if the answer has one.
    pub shard_state: Option<KeptState>,
    /// Compute time.
    pub busy: Duration,
}

/// Starts `threads` threads; they end when the returned sender or the receiver of `computed` is dropped.
pub(crate) fn start(
    threads: u32,
    compute: Compute,
    computed: tokio::sync::mpsc::Sender<Computed>,
) -> Result<Sender<Job>, RunError> {
    // Unbounded: the coordinator assigns each connection at most one task more than there are threads.
    let (jobs, received) = channel();
    let received = Arc::new(Mutex::new(received));
    for thread in 0..threads {
        let (received, compute, computed) = (received.clone(), compute.clone(), computed.clone());
        std::thread::Builder::new()
            .name(format!("compute-{thread}"))
            .spawn(move || work(&received, &compute, &computed))
            .map_err(RunError::Thread)?;
    }
    Ok(jobs)
}

fn work(jobs: &Mutex<Receiver<Job>>, compute: &Compute, computed: &tokio::sync::mpsc::Sender<Computed>) {
    loop {
        // The lock is held while waiting: the others wait for the lock instead of the channel.
        let job = jobs.lock().unwrap_or_else(PoisonError::into_inner).recv();
        let Ok(Job { lease, task }) = job else { return };
        let begun = clock();
        // The engine's caches hold only finished values, so a panic cannot leave them inconsistent.
        let (answer, shard_state) = match catch_unwind(AssertUnwindSafe(|| compute(&task))) {
            Ok(Ok(answer)) => (Ok(answer.to_bytes()), KeptState::of(&task, answer)),
            Ok(Err(error)) => (Err(error.to_string()), None),
            Err(_) => {
                let panicked = "the computation panicked, which is a bug; the worker's log has the message";
                (Err(panicked.into()), None)
            }
        };
        if computed.blocking_send(Computed { lease, answer, shard_state, busy: begun.elapsed() }).is_err() {
            return;
        }
    }
}
