//! Input and output of the scheduler: events, actions, and causes of losses and failures.

use std::time::Duration;

use grammaton::work::lease::{BatchId, LeaseId, TaskIndex};
use grammaton::work::task::ContentHash;
use serde::{Deserialize, Serialize};

use super::MemberId;
use super::accounts::{Account, AccountId};
use super::identity::Identity;

/// Cause of the loss of a member.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, thiserror::Error)]
pub enum Cause {
    /// The member sent nothing, not even heartbeats.
    #[error("silent for {0:?}")]
    Silent(Duration),
    /// Its connection or its process ended.
    #[error("connection lost: {0}")]
    Disconnected(String),
    /// The member sent a message that breaks the protocol.
    #[error("broke the protocol: {0}")]
    Protocol(String),
    /// The member answered or failed a lease that it was never given.
    #[error("broke the protocol: it answered lease {lease}, which was not given to it")]
    NotHolder {
        /// The lease.
        lease: LeaseId,
    },
    /// The member did not confirm that it stopped computing a withdrawn lease.
    #[error("did not stop computing task {} within {age:?}", task.0)]
    Stuck {
        /// The task that it was assigned.
        task: TaskIndex,
        /// Time since the lease was withdrawn.
        age: Duration,
    },
    /// Its answer was wrong, so that it may not come back.
    #[error("expelled: {0}")]
    Expelled(String),
    /// The member left after it answered all its leases.
    #[error("left")]
    Left,
}

impl Cause {
    /// Name of the kind of cause, for counters.
    pub fn kind(&self) -> &'static str {
        match self {
            Cause::Silent(_) => "silent",
            Cause::Disconnected(_) => "disconnected",
            Cause::Protocol(_) | Cause::NotHolder { .. } => "protocol",
            Cause::Stuck { .. } => "stuck",
            Cause::Expelled(_) => "expelled",
            Cause::Left => "left",
        }
    }
}

/// How a worker failed a task.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, thiserror::Error)]
pub enum Fault {
    /// It reported that the task cannot be computed.
    #[error("reported: {0}")]
    Reported(String),
    /// It reported that it has too little memory for the task, which another one may have.
    #[error("lacks memory: {0}")]
    LacksMemory(String),
    /// It was lost while it held the task.
    #[error("was lost with it: {0}")]
    Lost(Cause),
    /// It computed the task for that long without an end.
    #[error("computed it for {0:?} without an end")]
    Overdue(Duration),
}

/// A member that reported that a task cannot be computed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Reporter {
    /// The member, which may be gone.
    pub member: MemberId,
    /// Its name.
    pub name: String,
    /// Its identity.
    pub identity: Identity,
}

/// A failed attempt at a task.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, thiserror::Error)]
#[error("{worker} {how}")]
pub struct FailedAttempt {
    /// Name and machine of the worker.
    pub worker: String,
    /// How it failed the task.
    pub how: Fault,
}

/// Cause of the failure of a batch.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, thiserror::Error)]
pub enum Failure {
    /// The task fails in this process.
    #[error("task {}: {detail}", task.0)]
    Task {
        /// The task.
        task: TaskIndex,
        /// Error of the attempt.
        detail: String,
        /// Whether the process has too little memory for it.
        lacks_memory: bool,
    },
    /// The workers that tried the task failed it, and there is no other that could.
    #[error("task {}: {}{}", task.0, list(attempts), advice(attempts))]
    GivenUp {
        /// The task.
        task: TaskIndex,
        /// The failed attempts, at most [`MOST_FAILURES`](super::MOST_FAILURES).
        attempts: Vec<FailedAttempt>,
    },
    /// There are no members left.
    #[error("no workers for {waited:?}; start some and run the job again")]
    NoMembers {
        /// Time without members.
        waited: Duration,
    },
}

/// The attempts in a line.
fn list(attempts: &[FailedAttempt]) -> String {
    attempts.iter().map(FailedAttempt::to_string).collect::<Vec<_>>().join("; ")
}

/// What to do about such failures.
fn advice(attempts: &[FailedAttempt]) -> &'static str {
    let any = |is: fn(&Fault) -> bool| attempts.iter().any(|attempt| is(&attempt.how));
    if any(|how| matches!(how, Fault::Overdue(_))) {
        "; look at its sentences, or allow more with --lease-deadline SECONDS"
    } else if any(|how| matches!(how, Fault::LacksMemory(_))) {
        "; start a worker with more --memory, or split the sentence"
    } else if any(|how| matches!(how, Fault::Lost(_))) {
        "; look at its sentences and at the workers' memory"
    } else {
        ""
    }
}

/// What a task is on, which some member may have cached.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Needs {
    /// Hash of the shard, or of the hashes of several.
    pub shard: ContentHash,
    /// Hash of the shard's state, if it has one.
    pub shard_state: Option<ContentHash>,
    /// Time that it takes to compute; zero if that is not known.
    pub takes: Duration,
}

impl Needs {
    /// Those of a task on a shard that has no state, of which nothing else is known.
    pub fn shard(shard: ContentHash) -> Needs {
        Needs { shard, shard_state: None, takes: Duration::ZERO }
    }
}

/// Input of the state machine.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Event {
    /// A worker registered.
    MemberJoined {
        /// New id, never used before.
        member: MemberId,
        /// Name that the worker chose; it keeps it when it reconnects.
        name: String,
        /// Identity of the worker.
        identity: Identity,
        /// Number of tasks that it computes at the same time, at least 1.
        slots: u32,
        /// Shards and states that it has cached since an earlier connection.
        holds: Vec<ContentHash>,
        /// Leases of an earlier connection that its process still computes, or has answers to.
        running: Vec<LeaseId>,
        /// Whether the heartbeat timeout applies; false for threads of this process.
        watched: bool,
    },
    /// A member accepts no more leases.
    MemberDraining {
        /// The member.
        member: MemberId,
    },
    /// A member is gone.
    MemberLost {
        /// The member.
        member: MemberId,
        /// Cause.
        cause: Cause,
    },
    /// A message or heartbeat arrived.
    Heard {
        /// The member.
        member: MemberId,
    },
    /// A valid answer arrived.
    Answered {
        /// The sender, which may be gone by now.
        member: MemberId,
        /// The lease; its batch may have ended.
        lease: LeaseId,
        /// Whether the answer claims something that would end, repeat or restart the job.
        claims: bool,
    },
    /// A member no longer computes a withdrawn lease. If it was not withdrawn, the member has failed its task.
    Withdrawn {
        /// The member.
        member: MemberId,
        /// The lease.
        lease: LeaseId,
    },
    /// A member reported that a task cannot be computed.
    Failed {
        /// The member.
        member: MemberId,
        /// The lease.
        lease: LeaseId,
        /// Reason, as a line of text.
        detail: String,
        /// Whether it only lacks memory for the task. Then it is not judged if another member answers.
        lacks_memory: bool,
        /// Whether this process computed it. A remote member may be wrong, so another member tries the task as well.
        is_certain: bool,
    },
    /// A new batch of tasks.
    BatchSubmitted {
        /// New id, never used before.
        batch: BatchId,
        /// Account of the job.
        account: Account,
        /// Needs of each task.
        needs: Vec<Needs>,
        /// Pairs of tasks with the same answer, to be computed by two different members for an audit. A task is in at most one
        /// pair; the second task of a pair exists only for the audit.
        replicas: Vec<(TaskIndex, TaskIndex)>,
    },
    /// An open batch was cancelled by its caller.
    BatchCancelled {
        /// The batch.
        batch: BatchId,
    },
    /// An account without open batches has ended.
    AccountClosed {
        /// The account.
        account: AccountId,
    },
    /// The backlog of answers that the caller of an open batch has not taken became full, or is no longer full.
    Backlog {
        /// The batch.
        batch: BatchId,
        /// If the backlog is full, the task whose answer the caller takes next: no other task may begin.
        only: Option<TaskIndex>,
    },
    /// Time passed without another event.
    Tick,
}

/// Output of the state machine.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Action {
    /// Send the task to the member.
    Assign {
        /// The member.
        member: MemberId,
        /// The lease.
        lease: LeaseId,
    },
    /// Tell the member to stop computing the lease; its answer is not needed. The lease occupies its slot until the member confirms with
    /// [`Event::Withdrawn`].
    Withdraw {
        /// The member.
        member: MemberId,
        /// The lease.
        lease: LeaseId,
    },
    /// A replica of the task was appended to its open batch, since an answer claims something. The claiming answer is accepted next.
    Confirm {
        /// The batch.
        batch: BatchId,
        /// The task.
        task: TaskIndex,
        /// Its replica: the number of tasks of the batch before.
        replica: TaskIndex,
    },
    /// Accept this answer. If it claims something and its task has no replica, or one that the same process answers, no other member can
    /// confirm it.
    Accept {
        /// The member that sent it.
        member: MemberId,
        /// The lease.
        lease: LeaseId,
        /// Workers that reported that the task cannot be computed, and before it other tasks that others answered: so many in a row that they are
        /// to be judged.
        refuted: Vec<Reporter>,
    },
    /// Discard this answer: its task has one already, or its batch has ended.
    Discard {
        /// The member that sent it.
        member: MemberId,
        /// The lease.
        lease: LeaseId,
    },
    /// Close the member's connection.
    Forget {
        /// The member.
        member: MemberId,
        /// Cause.
        cause: Cause,
    },
    /// Report that there are not enough members.
    ReportWaiting {
        /// Number of present members.
        members: usize,
        /// Number of members needed.
        wanted: usize,
        /// Whether this is the first report of a run that never had enough members.
        just_begun: bool,
    },
    /// Every task has its answer.
    BatchDone {
        /// The batch.
        batch: BatchId,
    },
    /// The batch failed.
    Fail {
        /// The batch.
        batch: BatchId,
        /// Cause.
        failure: Failure,
        /// The workers that reported that a task which is given up cannot be computed.
        reporters: Vec<Reporter>,
    },
}
