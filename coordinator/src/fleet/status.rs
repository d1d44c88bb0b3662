//! What a fleet is doing at this moment, for whoever asks: who is there, what is lent, what was lost.
//!
//! In: the question, from any task or thread. Out: a [`FleetStatus`], as the driver knows it between two events.
//! Invariant: asking changes nothing.

use std::collections::BTreeMap;
use std::time::Duration;

use proto::lease::{Attempt, TaskIndex};
use tokio::sync::{mpsc, oneshot};

use super::Stage;
use super::driver::Input;
use super::scheduler::{Account, AccountId, Cause, MemberId};

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
    /// Members lost since the start, by [`Cause::kind`]; whoever left is counted as well.
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

/// Numbers of tasks; one that is audited counts twice.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Shards {
    /// Lent to nobody.
    pub free: usize,
    /// Lent and not answered.
    pub lent: usize,
    /// Answered.
    pub done: usize,
}

impl std::ops::AddAssign for Shards {
    fn add_assign(&mut self, other: Shards) {
        self.free += other.free;
        self.lent += other.lent;
        self.done += other.done;
    }
}

/// A lease that has not been answered for long.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct OldestLease {
    /// Its task.
    pub task: TaskIndex,
    /// Which time the task was lent.
    pub attempt: Attempt,
    /// Name of the member that holds it.
    pub member: String,
    /// Since it was lent.
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
    /// Whether it is lent one task at a time, for these losses.
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

/// How a member is.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum MemberState {
    /// Heard of lately.
    Healthy,
    /// Silent for a while.
    Suspect,
    /// Takes no more leases.
    Draining,
    /// No longer there.
    Gone(Cause),
}

/// A way to ask a fleet for its status, from any task; does not keep the fleet alive.
#[derive(Clone)]
pub struct Watcher {
    inputs: mpsc::Sender<Input>,
}

impl Watcher {
    /// Asks the driver at the other end of `inputs`.
    pub(super) fn new(inputs: mpsc::Sender<Input>) -> Watcher {
        Watcher { inputs }
    }

    /// What the fleet is doing; nothing once it has stopped.
    pub async fn status(&self) -> Option<FleetStatus> {
        let (reply, status) = oneshot::channel();
        self.inputs.send(Input::StatusAsked { reply }).await.ok()?;
        status.await.ok()
    }

    /// As [`Watcher::status`], for threads outside a runtime.
    pub(super) fn blocking_status(&self) -> Option<FleetStatus> {
        let (reply, status) = oneshot::channel();
        self.inputs.blocking_send(Input::StatusAsked { reply }).ok()?;
        status.blocking_recv().ok()
    }
}
