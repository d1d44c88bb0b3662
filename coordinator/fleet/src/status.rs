//! The state of a fleet at one moment: members, assigned tasks, losses.
//!
//! In: the question, from any task or thread. Out: a [`FleetStatus`], as the driver knows it between two events.
//! Invariant: asking changes nothing.

use std::collections::BTreeMap;
use std::time::Duration;

use grammaton::work::lease::{Attempt, TaskIndex};

use super::Stage;
use scheduler::{Account, AccountId, MemberId, MemberState, Shards};

/// A fleet at one moment.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct FleetStatus {
    /// Stage of the oldest open batch, if there is one.
    pub stage: Option<Stage>,
    /// Numbers of tasks of all open batches.
    pub shards: Shards,
    /// Present members, and lost members with accepted answers.
    pub members: Vec<MemberInfo>,
    /// The oldest lease of an unanswered task.
    pub oldest: Option<OldestLease>,
    /// Accounts with open batches or a handle, by id.
    pub accounts: Vec<AccountStatus>,
    /// Members lost since the start, by [`Cause::kind`](scheduler::Cause::kind); members that left in order are counted as well.
    pub losses: BTreeMap<&'static str, u64>,
    /// Number of leases since the start, with backups and repeats.
    pub attempts: u64,
    /// Number of accepted answers since the start.
    pub accepted: u64,
    /// Number of discarded answers since the start: the task had an answer, or the batch was over.
    pub discarded: u64,
    /// Bytes sent to remote members since the start.
    pub bytes_sent: u64,
    /// Bytes received from remote members since the start.
    pub bytes_received: u64,
    /// Time since the start.
    pub up: Duration,
}

impl FleetStatus {
    /// The status with the batches of that account alone.
    pub fn of(&self, account: AccountId) -> FleetStatus {
        let own = self.accounts.iter().find(|status| status.account.id == account);
        let (stage, oldest) = (own.and_then(|own| own.stage), own.and_then(|own| own.oldest.clone()));
        let shards = own.map_or(Shards::default(), |own| own.shards);
        FleetStatus { stage, shards, oldest, ..self.clone() }
    }
}

/// Open batches of an account.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct AccountStatus {
    /// The account, as its latest batch declared it.
    pub account: Account,
    /// Stage of the batch that is open the longest, if there is one.
    pub stage: Option<Stage>,
    /// Numbers of tasks of its open batches.
    pub shards: Shards,
    /// The oldest lease of an unanswered task of these.
    pub oldest: Option<OldestLease>,
    /// Slot time of its ended leases.
    pub slot_time: Duration,
    /// Number of members that hold its leases.
    pub members: usize,
}

/// The oldest unanswered lease.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct OldestLease {
    /// Its task.
    pub task: TaskIndex,
    /// Attempt of the lease.
    pub attempt: Attempt,
    /// Name of the member that holds it.
    pub member: String,
    /// Time since it was assigned.
    pub age: Duration,
}

/// A member, for status and summary.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct MemberInfo {
    /// Its id.
    pub id: MemberId,
    /// Its name.
    pub name: String,
    /// Number of tasks that it computes at the same time.
    pub slots: u32,
    /// Number of its accepted answers, also before it was lost and reconnected.
    pub tasks_done: u64,
    /// Computing time of these answers, as the worker reports it.
    pub busy: Duration,
    /// Its state.
    pub state: MemberState,
    /// Number of losses of workers of its name since the start.
    pub losses: u32,
    /// Number of tasks that workers of its name failed and others answered.
    pub failures: u32,
    /// Whether it is assigned one task at a time, because of these losses and failures.
    pub on_probation: bool,
    /// Number of leases that it holds.
    pub leases: usize,
    /// Age of the oldest of them.
    pub oldest_lease: Option<Duration>,
    /// Time since it joined.
    pub joined: Duration,
    /// Time since its last message; `None` for threads of this process.
    pub silent: Duration,
}

impl MemberInfo {
    /// Why it is on probation, if it is.
    pub fn probation(&self) -> Option<String> {
        let MemberInfo { losses, failures, .. } = self;
        let lost = (*losses > 0).then(|| format!("lost {losses} times"));
        let failed = (*failures > 0).then(|| format!("failed {failures} tasks that others answered"));
        let reasons: Vec<String> = lost.into_iter().chain(failed).collect();
        self.on_probation.then(|| reasons.join(", "))
    }
}
