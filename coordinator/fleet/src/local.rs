//! Members of this process: one member, as many slots as threads, nothing serialised.
//!
//! In: orders from the driver. Out: answers to it, and confirmations of withdrawals. The threads share one [`Compute`], and stop computing
//! and end when the driver drops their desk. A panic in a computation fails the task; the thread lives on.

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Arc;

use anyhow::{Error, Result};
use grammaton::stop::{self, Stop, Stopped};
use grammaton::work::engine::ComputeError;
use grammaton::work::lease::LeaseId;
use grammaton::work::queue::{Threads, Withdrawal};
use grammaton::work::task::{Answer, Task};
use proto::cpu_time;
use tokio::sync::mpsc;

use super::Compute;
use super::messages::{Given, Input, Job, Order, Orders};
use scheduler::{Event, MemberId};

/// The driver's side of the threads. When it is dropped, they end.
struct ToThreads(Arc<Tasks>);

/// The threads' side.
pub(super) struct Received(Arc<Tasks>);

type Tasks = Threads<LeaseId, Job>;

/// Creates the two sides of orders to threads.
pub(super) fn orders() -> (Box<dyn Orders>, Received) {
    let tasks = Arc::<Tasks>::default();
    (Box::new(ToThreads(tasks.clone())), Received(tasks))
}

impl Orders for ToThreads {
    fn give(&self, order: Order) -> Given {
        match order {
            Order::Compute(job) => self.0.push(job.lease, job),
            Order::Withdraw(lease) => {
                if self.0.lock().queue.withdraw(lease) == Withdrawal::Removed {
                    return Given::Withdrawn;
                }
            }
            Order::Leave => self.0.close(),
        }
        Given::Taken
    }
}

impl Drop for ToThreads {
    fn drop(&mut self) {
        self.0.stop();
    }
}

/// Starts `threads` threads that follow the orders given to `member`.
pub(super) fn start(
    member: MemberId,
    threads: usize,
    Received(tasks): Received,
    compute: Compute,
    to_fleet: mpsc::Sender<Input>,
) {
    for thread in 0..threads {
        let (tasks, compute, to_fleet) = (tasks.clone(), compute.clone(), to_fleet.clone());
        let body = move || work(member, &tasks, &compute, &to_fleet);
        let spawned = std::thread::Builder::new().name(format!("compute-{thread}")).spawn(body);
        if let Err(error) = spawned {
            tracing::error!(%error, thread, "cannot start a compute thread; continuing with fewer");
        }
    }
}

fn work(member: MemberId, tasks: &Tasks, compute: &Compute, to_fleet: &mpsc::Sender<Input>) {
    while let Some((lease, job, stop)) = tasks.next() {
        let computed = answer(member, &job, &stop, compute);
        let is_withdrawn = tasks.lock().queue.end(lease);
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
