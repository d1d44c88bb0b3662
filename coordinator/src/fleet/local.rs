//! Members of this process: one member, as many slots as threads, nothing serialised.
//!
//! In: orders from the driver. Out: answers to it, and confirmations of withdrawals. The threads share one [`Compute`], and stop computing
//! and end when the driver drops their desk. A panic in a computation fails the task; the thread lives on.

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use anyhow::{Error, Result};
use proto::cpu_time;
use shared::stop::{self, Stop, Stopped};
use shared::work::engine::ComputeError;
use shared::work::lease::LeaseId;
use shared::work::queue::{Queue, Withdrawal};
use shared::work::task::{Answer, Task};
use tokio::sync::mpsc;

use super::Compute;
use super::messages::{Given, Input, Job, Order, Orders};
use scheduler::{Event, MemberId};

/// The driver's side of the threads. When it is dropped, they end.
struct ToThreads(Arc<Shared>);

/// The threads' side.
pub(super) struct Received(Arc<Shared>);

#[derive(Default)]
struct Shared {
    state: Mutex<State>,
    /// Notified of a new task, and of the end.
    changed: Condvar,
}

#[derive(Default)]
struct State {
    queue: Queue<LeaseId, Job>,
    closed: bool,
}

/// Creates the two sides of orders to threads.
pub(super) fn orders() -> (Box<dyn Orders>, Received) {
    let shared = Arc::<Shared>::default();
    (Box::new(ToThreads(shared.clone())), Received(shared))
}

impl Orders for ToThreads {
    fn give(&self, order: Order) -> Given {
        let mut state = self.0.state();
        match order {
            Order::Compute(job) => {
                state.queue.push(job.lease, job);
                self.0.changed.notify_one();
                Given::Taken
            }
            Order::Withdraw(lease) => match state.queue.withdraw(lease) {
                Withdrawal::Removed => Given::Withdrawn,
                Withdrawal::Requested | Withdrawal::Unknown => Given::Taken,
            },
            Order::Leave => {
                state.closed = true;
                self.0.changed.notify_all();
                Given::Taken
            }
        }
    }
}

impl Drop for ToThreads {
    fn drop(&mut self) {
        let mut state = self.0.state();
        state.closed = true;
        state.queue.clear();
        self.0.changed.notify_all();
    }
}

impl Shared {
    /// Waits for the next task; `None` at the end.
    fn next(&self) -> Option<(LeaseId, Job, Stop)> {
        let waits = |state: &mut State| state.queue.n_waiting() == 0 && !state.closed;
        let state = self.changed.wait_while(self.state(), waits);
        state.unwrap_or_else(PoisonError::into_inner).queue.begin()
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Starts `threads` threads that follow the orders given to `member`.
pub(super) fn start(
    member: MemberId,
    threads: usize,
    Received(shared): Received,
    compute: Compute,
    to_fleet: mpsc::Sender<Input>,
) {
    for thread in 0..threads {
        let (shared, compute, to_fleet) = (shared.clone(), compute.clone(), to_fleet.clone());
        let body = move || work(member, &shared, &compute, &to_fleet);
        let spawned = std::thread::Builder::new().name(format!("compute-{thread}")).spawn(body);
        if let Err(error) = spawned {
            tracing::error!(%error, thread, "cannot start a compute thread; continuing with fewer");
        }
    }
}

fn work(member: MemberId, shared: &Shared, compute: &Compute, to_fleet: &mpsc::Sender<Input>) {
    while let Some((lease, job, stop)) = shared.next() {
        let computed = answer(member, &job, &stop, compute);
        let is_withdrawn = shared.state().queue.end(lease);
        let withdrawn = || Input::Happened(Event::Withdrawn { member, lease });
        let input = computed.ok().filter(|_| !is_withdrawn).unwrap_or_else(withdrawn);
        if to_fleet.blocking_send(input).is_err() {
            return;
        }
    }
}

/// Computes a task unless it is stopped.
fn answer(member: MemberId, job: &Job, stop: &Stop, compute: &Compute) -> Result<Input, Stopped> {
    let (begun, lease) = (cpu_time::of_thread(), job.lease);
    let computed = stop::until(stop, || job.task().and_then(|task| run(compute, &task)))?;
    Ok(match computed {
        Ok(answer) => Input::Answered { member, lease, answer, busy: cpu_time::of_thread() - begun },
        Err(error) => {
            let (detail, lacks_memory) = (format!("{error:#}"), lacks_memory(&error));
            Input::Happened(Event::Failed { member, lease, detail, lacks_memory, is_certain: true })
        }
    })
}

/// Whether a task was not computed because this process lacks memory for it.
pub(super) fn lacks_memory(error: &Error) -> bool {
    error.downcast_ref().is_some_and(ComputeError::lacks_memory)
}

/// Computes one task on the calling thread; an error says why it has no answer.
pub(super) fn run(compute: &Compute, task: &Task) -> Result<Answer> {
    // The engine's caches hold finished values only, so a panic leaves nothing half-made behind.
    match catch_unwind(AssertUnwindSafe(|| compute(task))) {
        Ok(answer) => answer.map_err(Error::new),
        // It ends the computation around this one.
        Err(panic) if panic.is::<Stopped>() => resume_unwind(panic),
        Err(_) => Err(Error::msg("the computation panicked, which is a bug; the message is above")),
    }
}
