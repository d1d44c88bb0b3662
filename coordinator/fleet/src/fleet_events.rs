//! Fleet events for a job: workers that join and are lost, and whether the job's tasks wait for workers.
//!
//! In: events, from the driver. Out: the same, on the thread that calls [`Map::map`](super::Map::map), while it waits for answers.
//! Invariants: the driver never waits; the queue of a caller is bounded, since only the number of events beyond [`EVENTS`] is kept; whether
//! tasks wait is a state and not an event, so it cannot be lost.

use std::time::Duration;

use parking_lot::{Mutex, MutexGuard};
use scheduler::Cause;
use serde::{Deserialize, Serialize};

use super::Stage;

/// Maximum number of events in the queue of a caller.
const EVENTS: usize = 256;

/// Something that happens to a fleet, as a job sees it.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub enum FleetEvent {
    /// A worker joined.
    WorkerJoined {
        /// Its name.
        name: String,
        /// Number of tasks that it computes at the same time.
        slots: u32,
        /// Number of workers after the event.
        workers: usize,
    },
    /// A worker is gone; the cause is [`Cause::Left`] if it left in order.
    WorkerLost {
        /// Its name.
        name: String,
        /// Cause of the loss.
        cause: Cause,
        /// Number of workers after the event.
        workers: usize,
    },
    /// The queue was full, and events were dropped.
    Missed {
        /// Number of dropped events.
        events: usize,
    },
    /// No worker can compute the job's tasks.
    Waiting(Waiting),
    /// Workers compute again, or the batch is over.
    WaitingOver {
        /// Time of waiting.
        waited: Duration,
    },
}

/// A wait of tasks for workers.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Waiting {
    /// Stage of the tasks.
    pub stage: Stage,
    /// Number of workers that can compute.
    pub workers: usize,
    /// Number of workers that are needed.
    pub wanted: usize,
}

impl std::fmt::Display for Waiting {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "waiting for workers: {} of {}", self.workers, self.wanted)
    }
}

/// Queue of fleet events of a job, and whether its tasks wait.
#[derive(Default)]
pub(super) struct EventQueue(Mutex<Pending>);

/// Content of a queue.
#[derive(Clone, Default)]
pub(super) struct Pending {
    /// The first events, in their order.
    pub events: Vec<FleetEvent>,
    /// Number of events after them.
    pub missed: usize,
    /// The wait of the tasks, if they wait.
    pub waiting: Option<Waiting>,
}

impl EventQueue {
    /// Adds an event; beyond [`EVENTS`], counts it.
    pub fn push(&self, event: FleetEvent) {
        let mut pending = self.pending();
        if pending.events.len() < EVENTS {
            pending.events.push(event);
        } else {
            pending.missed += 1;
        }
    }

    /// Sets whether tasks wait.
    pub fn set_waiting(&self, waiting: Option<Waiting>) {
        self.pending().waiting = waiting;
    }

    /// Removes and returns all events, with the state.
    pub fn take(&self) -> Pending {
        let mut pending = self.pending();
        let waiting = pending.waiting;
        std::mem::replace(&mut *pending, Pending { waiting, ..Pending::default() })
    }

    fn pending(&self) -> MutexGuard<'_, Pending> {
        self.0.lock()
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
