//! The state of a fleet at one moment: members, assigned tasks, losses.
//!
//! In: the question, from any task or thread. Out: a [`FleetStatus`], as the driver knows it between two events.
//! Invariant: asking changes nothing.

use std::collections::BTreeMap;
use std::time::Duration;

use shared::work::lease::{Attempt, TaskIndex};

use super::Stage;
use scheduler::{Account, AccountId, MemberId, MemberState, Shards};

/// A fleet at one moment.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct FleetStatus {
    /// What the batch is for that is open the longest, if there is one.
    pub stage: Option<Stage>,
    /// The tasks of all open batches.
    pub shards: Shards,
    /// Who is there, and who of those that computed something is gone.
    pub members: Vec<MemberInfo>,
    /// The lease that is waited for the longest.
    pub oldest: Option<OldestLease>,
    /// For whom all this is: accounts with open batches, and those that may have others; by id.
    pub accounts: Vec<AccountStatus>,
    /// Members lost since the start, by [`Cause::kind`](scheduler::Cause::kind); members that left in order are counted as well.
    pub losses: BTreeMap<&'static str, u64>,
    /// Leases given since the start, backups and repeats included.
    pub attempts: u64,
    /// Answers that counted since the start.
    pub accepted: u64,
    /// Answers since the start that did not count, since there was one before or their batch was over.
    pub discarded: u64,
    /// Bytes sent to remote members since the start.
    pub bytes_sent: u64,
    /// Bytes received from remote members since the start.
    pub bytes_received: u64,
    /// Since the start.
    pub up: Duration,
}

impl FleetStatus {
    /// The same with what is in work for that account alone.
    pub fn of(&self, account: AccountId) -> FleetStatus {
        let own = self.accounts.iter().find(|status| status.account.id == account);
        let (stage, oldest) = (own.and_then(|own| own.stage), own.and_then(|own| own.oldest.clone()));
        let shards = own.map_or(Shards::default(), |own| own.shards);
        FleetStatus { stage, shards, oldest, ..self.clone() }
    }
}

/// What is in work for an account.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct AccountStatus {
    /// As it was given with the latest of its batches.
    pub account: Account,
    /// What its batch is for that is open the longest, if there is one.
    pub stage: Option<Stage>,
    /// The tasks of its open batches.
    pub shards: Shards,
    /// The lease of these that is waited for the longest.
    pub oldest: Option<OldestLease>,
    /// Time that its leases took slots, those that have ended.
    pub slot_time: Duration,
    /// Members that hold its leases.
    pub members: usize,
}

/// A lease that has not been answered for long.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct OldestLease {
    /// Its task.
    pub task: TaskIndex,
    /// Which time the task was assigned.
    pub attempt: Attempt,
    /// Name of the member that holds it.
    pub member: String,
    /// Since it was assigned.
    pub age: Duration,
}

/// A member, for status and summary.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct MemberInfo {
    /// Its id.
    pub id: MemberId,
    /// What it calls itself.
    pub name: String,
    /// Tasks that it computes at the same time.
    pub slots: u32,
    /// Answers of it that counted, those before it was lost and returned included.
    pub tasks_done: u64,
    /// Time that those answers took it, as it says.
    pub busy: Duration,
    /// How it is.
    pub state: MemberState,
    /// How often a worker of its name was lost since the start.
    pub losses: u32,
    /// How many tasks a worker of its name failed that another one answered.
    pub failures: u32,
    /// Whether it is assigned one task at a time, for these losses and failures.
    pub on_probation: bool,
    /// Leases that it holds.
    pub leases: usize,
    /// Age of the oldest of them.
    pub oldest_lease: Option<Duration>,
    /// Since it joined.
    pub joined: Duration,
    /// Since it was last heard of; nothing for threads of this process.
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
