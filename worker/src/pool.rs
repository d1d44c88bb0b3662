//! Compute threads.
//!
//! In: tasks. Out: encoded answers, so that the network's threads need not encode them. A panic in a computation fails the
//! task; the thread continues.
//!
//! Answers are passed on together, as soon as they are at least as many as the tasks that wait for a thread: a message costs as much as
//! a short task. So an answer is passed on at once while no task waits, and the coordinator's next tasks arrive while the second half of
//! a queue is computed.

use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use prost::bytes::Bytes;
use proto::convert::Wire;
use shared::work::task::Task;
use tokio::sync::mpsc;

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

/// The threads; they end when it is dropped.
pub(crate) struct Pool(Arc<Queue>);

/// Tasks for the threads, and answers that wait for further ones.
#[derive(Default)]
struct Queue {
    state: Mutex<State>,
    /// Notified of a new task, and of the end.
    changed: Condvar,
}

#[derive(Default)]
struct State {
    /// Tasks that wait for a thread; the coordinator bounds their number.
    jobs: VecDeque<Job>,
    /// Computed tasks that are not passed on; fewer than `jobs`, or none.
    done: Vec<Computed>,
    closed: bool,
}

impl Pool {
    /// Starts `threads` threads that pass what they compute to `computed`.
    pub fn start(
        threads: u32,
        compute: Compute,
        computed: mpsc::Sender<Vec<Computed>>,
    ) -> Result<Pool, RunError> {
        let pool = Pool(Arc::default());
        for thread in 0..threads {
            let (queue, compute, computed) = (pool.0.clone(), compute.clone(), computed.clone());
            std::thread::Builder::new()
                .name(format!("compute-{thread}"))
                .spawn(move || work(&queue, &compute, &computed))
                .map_err(RunError::Thread)?;
        }
        Ok(pool)
    }

    /// Adds a task.
    pub fn push(&self, job: Job) {
        self.0.state().jobs.push_back(job);
        self.0.changed.notify_one();
    }
}

impl Drop for Pool {
    fn drop(&mut self) {
        self.0.state().closed = true;
        self.0.changed.notify_all();
    }
}

impl Queue {
    /// Waits for the next task; `None` at the end.
    fn next(&self) -> Option<Job> {
        let waits = |state: &mut State| state.jobs.is_empty() && !state.closed;
        let state = self.changed.wait_while(self.state(), waits);
        let mut state = state.unwrap_or_else(PoisonError::into_inner);
        if state.closed { None } else { state.jobs.pop_front() }
    }

    /// Adds a computed task. Returns the tasks to pass on, if it is time.
    fn finish(&self, computed: Computed) -> Option<Vec<Computed>> {
        let mut state = self.state();
        state.done.push(computed);
        (state.done.len() >= state.jobs.len()).then(|| std::mem::take(&mut state.done))
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn work(queue: &Queue, compute: &Compute, computed: &mpsc::Sender<Vec<Computed>>) {
    while let Some(Job { lease, task }) = queue.next() {
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
        let done = queue.finish(Computed { lease, answer, shard_state, busy: begun.elapsed() });
        if done.is_some_and(|done| computed.blocking_send(done).is_err()) {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use shared::work::lease::{Attempt, BatchId, LeaseId, SessionId, TaskIndex};
    use shared::work::shard::Shard;
    use shared::work::task::{Named, Work};

    use super::*;

    fn lease(task: u32) -> SessionLease {
        let id = LeaseId { batch: BatchId(0), task: TaskIndex(task), attempt: Attempt(0) };
        SessionLease { session: SessionId([0; 16]), id }
    }

    #[test]
    fn every_task_is_passed_on_once_and_an_answer_waits_only_for_more_tasks_than_answers() {
        for n_tasks in 0..40 {
            let queue = Queue::default();
            for task in 0..n_tasks {
                let shard = Named::new(Shard::Sentences(Vec::new()));
                let task =
                    Job { lease: lease(task), task: Task { language: None, shard, work: Work::Cover } };
                queue.state().jobs.push_back(task);
            }
            let mut passed_on = Vec::new();
            for left in (0..n_tasks as usize).rev() {
                let lease = queue.next().unwrap().lease;
                let computed =
                    Computed { lease, answer: Ok(Bytes::new()), shard_state: None, busy: Duration::ZERO };
                passed_on.extend(queue.finish(computed).into_iter().flatten().map(|done| done.lease));
                let n_waiting = n_tasks as usize - left - passed_on.len();
                assert!(n_waiting == 0 || n_waiting < left, "{n_waiting} answers wait for {left} tasks");
            }
            assert_eq!(passed_on, (0..n_tasks).map(lease).collect::<Vec<_>>());
        }
    }
}
