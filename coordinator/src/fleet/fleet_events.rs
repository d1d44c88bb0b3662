//! What a job hears of its fleet while it goes on: workers that join and are lost, and whether its tasks wait for workers.
//!
//! In: events, from the driver. Out: the same, on the thread that calls [`Map::map`](super::Map::map), while it waits for answers.
//! Invariants: the driver never waits, and what waits for a caller is bounded, since of more events than [`EVENTS`] only the number is kept; whether
//! tasks wait is a state and not an event, so it cannot be lost.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use scheduler::Cause;
use serde::{Deserialize, Serialize};

use super::Stage;

/// Events that may wait for a caller between two batches.
const EVENTS: usize = 256;

/// Something that happens to a fleet, as a job sees it.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub enum FleetEvent {
    /// A worker joined.
    WorkerJoined {
        /// What it calls itself.
        name: String,
        /// Tasks that it computes at the same time.
        slots: u32,
        /// Workers that are there from now on.
        workers: usize,
    },
    /// A worker is gone; one that left as it should has the cause [`Cause::Left`].
    WorkerLost {
        /// What it called itself.
        name: String,
        /// Why.
        cause: Cause,
        /// Workers that are there from now on.
        workers: usize,
    },
    /// More workers came and went than could be told one by one.
    Missed {
        /// Events that were left out.
        events: usize,
    },
    /// No worker can compute the job's tasks.
    Waiting(Waiting),
    /// Workers compute again, or the batch is over.
    WaitingOver {
        /// How long none could.
        waited: Duration,
    },
}

/// What tasks wait for.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Waiting {
    /// What the tasks are for.
    pub stage: Stage,
    /// Workers that are there and can compute.
    pub workers: usize,
    /// Workers that have to be there.
    pub wanted: usize,
}

impl std::fmt::Display for Waiting {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "waiting for workers: {} of {}", self.workers, self.wanted)
    }
}

/// The events that a job has yet to hear, and whether its tasks wait.
#[derive(Default)]
pub(super) struct EventQueue(Mutex<Pending>);

/// What was not taken yet.
#[derive(Clone, Default)]
pub(super) struct Pending {
    /// The first ones, in their order.
    pub events: Vec<FleetEvent>,
    /// How many came after them.
    pub missed: usize,
    /// What tasks wait for at this moment, if they do.
    pub waiting: Option<Waiting>,
}

impl EventQueue {
    /// One more event, or the number of one.
    pub fn push(&self, event: FleetEvent) {
        let mut pending = self.pending();
        if pending.events.len() < EVENTS {
            pending.events.push(event);
        } else {
            pending.missed += 1;
        }
    }

    /// Says whether tasks wait.
    pub fn set_waiting(&self, waiting: Option<Waiting>) {
        self.pending().waiting = waiting;
    }

    /// All that has not been taken, and the state.
    pub fn take(&self) -> Pending {
        let mut pending = self.pending();
        let waiting = pending.waiting;
        std::mem::replace(&mut *pending, Pending { waiting, ..Pending::default() })
    }

    fn pending(&self) -> MutexGuard<'_, Pending> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_caller_that_does_not_listen_costs_bounded_memory_and_loses_no_state() {
        let queue = EventQueue::default();
        let waiting = Waiting { stage: Stage::Decode, workers: 0, wanted: 1 };
        for at in 0..EVENTS + 10 {
            queue.push(FleetEvent::WorkerJoined { name: at.to_string(), slots: 1, workers: at + 1 });
            queue.set_waiting(Some(waiting));
        }
        let Pending { events, missed, waiting: state } = queue.take();
        assert_eq!((events.len(), missed, state), (EVENTS, 10, Some(waiting)));
        let FleetEvent::WorkerJoined { name, .. } = &events[EVENTS - 1] else { panic!("{events:?}") };
        assert_eq!(*name, (EVENTS - 1).to_string());
        let Pending { events, missed, waiting: state } = queue.take();
        assert_eq!((events.len(), missed, state), (0, 0, Some(waiting)), "a state stays");
        queue.set_waiting(None);
        assert_eq!(queue.take().waiting, None);
    }
}
