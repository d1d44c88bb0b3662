//! Messages between the driver of a fleet, its members and callers.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use anyhow::Result;
use grammaton::work::lease::{BatchId, InstanceId, LeaseId, TaskIndex, max_leases};
use grammaton::work::task::{Answer, ContentHash, Task};
use scheduler::{Account, Event, Failure, Identity, Machine, MemberId, Reporter};
use tokio::sync::mpsc::error::TrySendError;
use tokio::sync::{mpsc, oneshot};

use super::audit::{Replicas, Witness};
use super::backlog::Backlog;
use super::fleet_events::EventQueue;
use super::status::FleetStatus;
use super::tasks::{Open, Tasks};
use super::{MapReport, Stage};

/// Inputs of the driver.
pub(super) enum Input {
    /// A member wants to join.
    Joined {
        /// Its name.
        name: String,
        /// Id of its process, if it has one.
        instance: Option<InstanceId>,
        /// Its machine.
        machine: Machine,
        /// Number of tasks that it computes at the same time.
        slots: u32,
        /// Blobs from an earlier connection that it has cached.
        holds: Vec<ContentHash>,
        /// Leases from an earlier connection that it has not reported.
        running: Vec<LeaseId>,
        /// The channel of the member.
        channel: MemberChannel,
        /// Receives its id, or why it may not join.
        reply: oneshot::Sender<Result<MemberId, NotAdmitted>>,
    },
    /// Something happened to a member; an answer has its own variant.
    Happened(Event),
    /// A valid answer arrived.
    Answered {
        /// The member that answered.
        member: MemberId,
        /// The lease that it answers.
        lease: LeaseId,
        /// The answer.
        answer: Answer,
        /// Computing time.
        busy: Duration,
    },
    /// A caller has tasks.
    Submitted(Submission),
    /// The caller processed answers after the backlog was full.
    RoomFreed {
        /// The batch.
        batch: BatchId,
    },
    /// The caller of a batch is gone, or cancels it.
    Cancelled {
        /// The batch.
        batch: BatchId,
    },
    /// What a remote member said of a task was wrong.
    Expelled {
        /// The member, which may be gone.
        member: MemberId,
        /// Its identity.
        identity: Identity,
        /// The reason, which names the task.
        reason: String,
    },
    /// A request for the status of the fleet.
    StatusAsked {
        /// Receives the status.
        reply: oneshot::Sender<FleetStatus>,
    },
    /// The job is finished.
    Finished {
        /// Notified when the members know.
        reply: oneshot::Sender<()>,
    },
    /// The last handle of the fleet was dropped.
    Abandoned,
}

/// Why a worker may not join.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum NotAdmitted {
    /// The fleet has its maximum number of members.
    Full,
    /// The worker was expelled, for this reason.
    Expelled(String),
}

/// A new batch.
pub(super) struct Submission {
    /// Its id, from the register.
    pub batch: BatchId,
    /// Its account; once only the driver holds it, no more batches can follow.
    pub account: Arc<Account>,
    /// Stage of the tasks.
    pub stage: Stage,
    /// The tasks.
    pub tasks: Arc<dyn Tasks>,
    /// Its replicas, for audits.
    pub replicas: Replicas,
    /// Channel for answers, with room for all of them, the end, a cancellation and a notice of events.
    pub progress: mpsc::Sender<Progress>,
    /// Answers that the caller has not processed.
    pub backlog: Arc<Backlog>,
    /// Fleet events for the account.
    pub events: Arc<EventQueue>,
    /// Whether a [`Progress::Events`] is on its way to the caller.
    pub is_told: Arc<AtomicBool>,
}

/// Messages to the caller of a batch.
pub(super) enum Progress {
    /// The next answer to a task claims something: a replica was added, after all others.
    Confirming {
        /// The task.
        task: TaskIndex,
    },
    /// An accepted answer.
    Answered {
        /// The task that it answers.
        task: TaskIndex,
        /// The member that answered.
        witness: Witness,
        /// The answer.
        answer: Box<Answer>,
        /// Workers to be judged by it: they reported that the task cannot be computed.
        refuted: Vec<Reporter>,
    },
    /// There are events in the account's [`EventQueue`].
    Events,
    /// All tasks are answered.
    Done(MapReport),
    /// The batch failed.
    Failed {
        /// Cause.
        failure: Failure,
        /// Workers to be judged: they reported that the task cannot be computed.
        reporters: Vec<Reporter>,
        /// The last decisions of the scheduler, a line each.
        decisions: Vec<String>,
    },
    /// The batch was cancelled.
    Cancelled,
}

/// The driver's side of a member; dropping it dismisses the member.
pub(super) struct MemberChannel {
    /// Takes orders.
    pub orders: Box<dyn Orders>,
    /// Channel without messages: dropping it dismisses a connection, even one that cannot send. `None` for threads of this process.
    #[expect(dead_code, reason = "its end is the message")]
    dismissal: Option<oneshot::Sender<()>>,
    /// Whether the member is a remote worker.
    pub remote: bool,
}

impl MemberChannel {
    /// A channel for threads of this process.
    pub fn local(orders: Box<dyn Orders>) -> MemberChannel {
        MemberChannel { orders, dismissal: None, remote: false }
    }

    /// A channel for a remote worker of `slots`, and the connection's side of it.
    pub fn remote(slots: u32) -> (MemberChannel, mpsc::Receiver<Order>, oneshot::Receiver<()>) {
        // A lease and its withdrawal, the late withdrawal of one that was reported before, and the farewell.
        let (orders, received) = mpsc::channel(3 * max_leases(slots) + 1);
        let (dismissal, dismissed) = oneshot::channel();
        (
            MemberChannel { orders: Box::new(orders), dismissal: Some(dismissal), remote: true },
            received,
            dismissed,
        )
    }
}

/// Takes orders to a member, without waiting.
pub(super) trait Orders: Send {
    /// Passes an order on.
    fn give(&self, order: Order) -> Given;
}

/// Effect of an order.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Given {
    /// The member has it, or is gone and says so itself.
    Taken,
    /// The withdrawn task had not begun, and will not.
    Withdrawn,
    /// There is no room for further orders.
    Full,
}

impl Orders for mpsc::Sender<Order> {
    fn give(&self, order: Order) -> Given {
        match self.try_send(order) {
            Err(TrySendError::Full(_)) => Given::Full,
            Ok(()) | Err(TrySendError::Closed(_)) => Given::Taken,
        }
    }
}

/// Orders to a member.
pub(super) enum Order {
    /// Compute a task.
    Compute(Job),
    /// Stop computing a task, and confirm it.
    Withdraw(LeaseId),
    /// The job is finished.
    Leave,
}

/// A lease with the tasks of its batch.
#[derive(Clone)]
pub(super) struct Job {
    /// The lease.
    pub lease: LeaseId,
    /// The tasks of its batch.
    pub tasks: Arc<Open>,
}

impl Job {
    /// Returns the task; makes it unless it is made already.
    pub fn task(&self) -> Result<Arc<Task>> {
        self.tasks.task(self.lease.task)
    }
}
