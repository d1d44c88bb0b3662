//! Members of this process: one member, as many slots as threads, nothing serialised.
//!
//! In: orders from the driver. Out: answers to it. The threads share one [`Compute`], and end when the driver
//! drops their desk. A panic in a computation fails the task; the thread lives on.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex, PoisonError};

use anyhow::{Error, Result};
use shared::work::task::{Answer, Task};
use tokio::sync::mpsc;

use super::Compute;
use super::messages::{Input, Job, Order, clock};
use scheduler::{Event, MemberId};

/// Starts `threads` threads that follow the orders given to `member`.
pub(super) fn start(
    member: MemberId,
    threads: usize,
    orders: mpsc::Receiver<Order>,
    compute: Compute,
    to_fleet: mpsc::Sender<Input>,
) {
    let orders = Arc::new(Mutex::new(orders));
    for thread in 0..threads {
        let (orders, compute, to_fleet) = (orders.clone(), compute.clone(), to_fleet.clone());
        let body = move || work(member, &orders, &compute, &to_fleet);
        let spawned = std::thread::Builder::new().name(format!("compute-{thread}")).spawn(body);
        if let Err(error) = spawned {
            tracing::error!(%error, thread, "cannot start a compute thread; continuing with fewer");
        }
    }
}

fn work(
    member: MemberId,
    orders: &Mutex<mpsc::Receiver<Order>>,
    compute: &Compute,
    to_fleet: &mpsc::Sender<Input>,
) {
    loop {
        // The lock is held while waiting: the others wait for the lock instead of the channel.
        let order = orders.lock().unwrap_or_else(PoisonError::into_inner).blocking_recv();
        let Some(Order::Compute(job)) = order else { return };
        if to_fleet.blocking_send(answer(member, &job, compute)).is_err() {
            return;
        }
    }
}

fn answer(member: MemberId, job: &Job, compute: &Compute) -> Input {
    let (begun, lease) = (clock(), job.lease);
    match job.task().and_then(|task| run(compute, &task)) {
        Ok(answer) => Input::Answered { member, lease, answer, busy: begun.elapsed() },
        Err(error) => {
            let detail = format!("{error:#}");
            Input::Happened(Event::Failed { member, lease, detail, is_certain: true })
        }
    }
}

/// Computes one task on the calling thread; an error says why it has no answer.
pub(super) fn run(compute: &Compute, task: &Task) -> Result<Answer> {
    // The engine's caches hold finished values only, so a panic leaves nothing half-made behind.
    match catch_unwind(AssertUnwindSafe(|| compute(task))) {
        Ok(answer) => answer.map_err(Error::msg),
        Err(_) => Err(Error::msg("the computation panicked, which is a bug; the message is above")),
    }
}
