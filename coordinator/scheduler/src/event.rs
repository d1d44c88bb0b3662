//! What the scheduler hears and what it says: events, actions, and the reasons given in them.

use std::time::Duration;

use shared::work::lease::{BatchId, LeaseId, TaskIndex};
use shared::work::task::ContentHash;

use super::MemberId;
use super::accounts::{Account, AccountId};
use super::identity::Identity;

/// Why a member is gone.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum Cause {
    /// Nothing was heard of it.
    #[error("silent for {0:?}")]
    Silent(Duration),
    /// The connection ended, or the process did.
    #[error("connection lost: {0}")]
    Disconnected(String),
    /// It sent what no worker of this version sends.
    #[error("broke the protocol: {0}")]
    Protocol(String),
    /// It answered, or failed, a lease that it was never given.
    #[error("broke the protocol: it answered lease {lease}, which was not given to it")]
    NotHolder {
        /// The lease.
        lease: LeaseId,
    },
    /// It lives, and does not answer.
    #[error("still computing task {} after {age:?}", task.0)]
    Overdue {
        /// The task that it was assigned.
        task: TaskIndex,
        /// Since then.
        age: Duration,
    },
    /// It left after answering all it had.
    #[error("left")]
    Left,
}

impl Cause {
    /// A word for it, to count by.
    pub fn kind(&self) -> &'static str {
        match self {
            Cause::Silent(_) => "silent",
            Cause::Disconnected(_) => "disconnected",
            Cause::Protocol(_) | Cause::NotHolder { .. } => "protocol",
            Cause::Overdue { .. } => "overdue",
            Cause::Left => "left",
        }
    }
}

/// Why a batch has no result.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum Failure {
    /// The task fails wherever it is computed: in this process, or at every member that tried it.
    #[error("task {}: {detail}", task.0)]
    Task {
        /// The task.
        task: TaskIndex,
        /// Why, by the last of them.
        detail: String,
    },
    /// The task's holders were lost again and again.
    #[error(
        "task {} was lost with its worker {losses} times, last because the worker {cause}; look at its \
         sentences and at the workers' memory", task.0
    )]
    Poison {
        /// The task.
        task: TaskIndex,
        /// Holders lost.
        losses: usize,
        /// Why the last holder was lost.
        cause: Cause,
    },
    /// A thread of this process does not come to an end with it.
    #[error(
        "task {}: a thread of this process has been computing it for {age:?}; look at its sentences, or allow more \
         with --lease-deadline SECONDS", task.0
    )]
    Overdue {
        /// The task.
        task: TaskIndex,
        /// Since it was assigned.
        age: Duration,
    },
    /// Nobody is left to compute.
    #[error("no workers for {waited:?}; start some and run the job again")]
    NoMembers {
        /// How long there were none.
        waited: Duration,
    },
}

/// What a task needs that some member may have already.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Needs {
    /// What it computes on.
    pub shard: ContentHash,
    /// What the shard carries.
    pub carried: Option<ContentHash>,
}

/// What happened.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Event {
    /// A worker registered.
    MemberJoined {
        /// Its id, never used before.
        member: MemberId,
        /// What it calls itself; a worker that returns goes by the same name.
        name: String,
        /// What tells it from other workers.
        identity: Identity,
        /// Tasks that it computes at the same time, ≥ 1.
        slots: u32,
        /// Shards, and what they carry, that it kept from an earlier connection.
        holds: Vec<ContentHash>,
        /// Whether silence means something: threads of this process are never suspect.
        watched: bool,
    },
    /// It takes no more leases.
    MemberDraining {
        /// The member.
        member: MemberId,
    },
    /// It is gone.
    MemberLost {
        /// The member.
        member: MemberId,
        /// Why.
        cause: Cause,
    },
    /// A sign of life.
    Heard {
        /// The member.
        member: MemberId,
    },
    /// A valid answer arrived.
    Answered {
        /// From whom; may be gone by now.
        member: MemberId,
        /// To which lease; its batch may be over.
        lease: LeaseId,
    },
    /// The task cannot be computed.
    Failed {
        /// The member.
        member: MemberId,
        /// The lease.
        lease: LeaseId,
        /// Why.
        detail: String,
        /// Whether this process found that out: a remote member may be wrong, so another one tries the task as well.
        is_certain: bool,
    },
    /// Tasks to compute, beside those of other batches.
    BatchSubmitted {
        /// Its id, never used before.
        batch: BatchId,
        /// On whose behalf.
        account: Account,
        /// What each task needs.
        needs: Vec<Needs>,
        /// Pairs of tasks with the same answer, to be computed by two members, so that one audits the other; a
        /// task is in one pair at most, and the second of a pair came in for the audit alone.
        replicas: Vec<(TaskIndex, TaskIndex)>,
    },
    /// Nobody wants the answers of an open batch any more.
    BatchCancelled {
        /// The batch.
        batch: BatchId,
    },
    /// There will be no more batches on this account; none is open.
    AccountClosed {
        /// The account.
        account: AccountId,
    },
    /// The answers that the caller of an open batch has yet to take fill the room for them, or do so no longer.
    Backlog {
        /// The batch.
        batch: BatchId,
        /// The answer that the caller takes next: while there is no room, no other task is begun.
        only: Option<TaskIndex>,
    },
    /// Time passed, and nothing else happened.
    Tick,
}

/// What to do.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Action {
    /// Send the task to the member.
    Assign {
        /// The member.
        member: MemberId,
        /// The lease.
        lease: LeaseId,
    },
    /// This answer counts.
    Accept {
        /// Who gave it.
        member: MemberId,
        /// The lease.
        lease: LeaseId,
    },
    /// This answer does not count: there was one before, or its batch is over.
    Discard {
        /// Who gave it.
        member: MemberId,
        /// The lease.
        lease: LeaseId,
    },
    /// Close the member's connection.
    Forget {
        /// The member.
        member: MemberId,
        /// Why.
        cause: Cause,
    },
    /// Say that there are not enough members.
    ReportWaiting {
        /// Members there.
        members: usize,
        /// Members needed.
        wanted: usize,
        /// Whether it is the first time, before there ever were enough: how a run with remote members begins.
        just_begun: bool,
    },
    /// Every task has its answer.
    BatchDone {
        /// The batch.
        batch: BatchId,
    },
    /// The batch is over without a result.
    Fail {
        /// The batch.
        batch: BatchId,
        /// Why.
        failure: Failure,
    },
}
