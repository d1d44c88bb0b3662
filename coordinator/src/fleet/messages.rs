//! What the driver of a fleet hears from members and callers, and what it tells them.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use anyhow::Result;
use scheduler::{Account, Event, Failure, MemberId, Origin};
use shared::work::lease::{BatchId, InstanceId, LeaseId, TaskIndex};
use shared::work::task::{Answer, ContentHash, Task};
use tokio::sync::{mpsc, oneshot};

use super::audit::{Replicas, Witness};
use super::backlog::Backlog;
use super::fleet_events::EventQueue;
use super::status::FleetStatus;
use super::tasks::{Open, Tasks};
use super::{MapReport, Stage};

/// The present moment.
#[expect(clippy::disallowed_methods, reason = "the clock of the fleet")]
pub(super) fn clock() -> Instant {
    Instant::now()
}

/// What reaches the driver.
pub(super) enum Input {
    /// A member wants to join.
    Joined {
        /// What it calls itself.
        name: String,
        /// Its process, if it names it.
        instance: Option<InstanceId>,
        /// Where it is.
        origin: Origin,
        /// Whether a certificate shows where it is.
        has_certificate: bool,
        /// Tasks that it computes at the same time.
        slots: u32,
        /// Blobs that it kept from an earlier connection.
        holds: Vec<ContentHash>,
        /// How it is reached.
        desk: Desk,
        /// Its id, or why it may not join.
        reply: oneshot::Sender<Result<MemberId, NotAdmitted>>,
    },
    /// Something happened to a member; an answer has its own variant.
    Happened(Event),
    /// A valid answer arrived.
    Answered {
        /// From whom.
        member: MemberId,
        /// To which lease.
        lease: LeaseId,
        /// The answer.
        answer: Answer,
        /// Time spent on it.
        busy: Duration,
    },
    /// A caller has tasks.
    Submitted(Submission),
    /// The caller processed answers after the backlog was full.
    RoomFreed {
        /// Of this batch.
        batch: BatchId,
    },
    /// The caller of the batch is gone, or does not want its answers.
    Cancelled {
        /// The batch.
        batch: BatchId,
    },
    /// An answer of a remote member was wrong.
    Expelled {
        /// The member.
        member: MemberId,
        /// Which answer.
        reason: String,
    },
    /// Somebody wants to know what the fleet is doing.
    StatusAsked {
        /// Where to say so.
        reply: oneshot::Sender<FleetStatus>,
    },
    /// The job is finished.
    Finished {
        /// Told when the members know.
        reply: oneshot::Sender<()>,
    },
    /// The last handle of the fleet was dropped.
    Abandoned,
}

/// Why a worker may not join.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum NotAdmitted {
    /// There are as many members as there may be.
    Full,
    /// It was expelled, for this reason.
    Expelled(String),
}

/// A batch that begins.
pub(super) struct Submission {
    /// From the register.
    pub batch: BatchId,
    /// On whose account; only the driver has it once there will be no more batches.
    pub account: Arc<Account>,
    /// What the tasks are for.
    pub stage: Stage,
    /// The tasks.
    pub tasks: Arc<dyn Tasks>,
    /// Those among them that came in for an audit alone.
    pub replicas: Replicas,
    /// Where answers go; has room for all of them, the end, a cancellation, and a notice of events.
    pub progress: mpsc::Sender<Progress>,
    /// Those that the caller has yet to take.
    pub backlog: Arc<Backlog>,
    /// What the account hears of the fleet.
    pub events: Arc<EventQueue>,
    /// Whether a [`Progress::Events`] is on its way to the caller.
    pub is_told: Arc<AtomicBool>,
}

/// What the caller of a batch hears.
pub(super) enum Progress {
    /// The answer that counts.
    Answered {
        /// To which task.
        task: TaskIndex,
        /// The member that gave it.
        witness: Witness,
        /// The answer.
        answer: Answer,
    },
    /// There are events in the account's [`EventQueue`].
    Events,
    /// All were answered.
    Done(MapReport),
    /// The batch has no result; with the last decisions of the scheduler, a line each.
    Failed(Failure, Vec<String>),
    /// The batch was cancelled.
    Cancelled,
}

/// How a member is reached; dropping it dismisses the member.
pub(super) struct Desk {
    /// Has room for `slots + 1` leases and the farewell.
    pub orders: mpsc::Sender<Order>,
    /// Never sent to: its end tells a connection that it is dismissed, even one that cannot send.
    #[expect(dead_code, reason = "its end is the message")]
    dismissal: oneshot::Sender<()>,
    /// Whether it is reached over a connection.
    pub remote: bool,
}

impl Desk {
    /// A desk for a member of `slots`, and the member's side of it.
    pub fn new(slots: u32, remote: bool) -> (Desk, mpsc::Receiver<Order>, oneshot::Receiver<()>) {
        let (orders, received) = mpsc::channel(slots as usize + 2);
        let (dismissal, dismissed) = oneshot::channel();
        (Desk { orders, dismissal, remote }, received, dismissed)
    }
}

/// What a member is told.
pub(super) enum Order {
    /// Compute a task.
    Compute(Job),
    /// The job is finished.
    Leave,
}

/// A lease and where its task is.
#[derive(Clone)]
pub(super) struct Job {
    /// The lease.
    pub lease: LeaseId,
    /// The tasks of its batch.
    pub tasks: Arc<Open>,
}

impl Job {
    /// The task; an error if it cannot be made.
    pub fn task(&self) -> Result<Arc<Task>> {
        self.tasks.task(self.lease.task)
    }
}
