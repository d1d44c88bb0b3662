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
use super::scheduler::{Cause, MemberId};

/// A fleet at one moment.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct FleetStatus {
    /// What the batch in work is for, if there is one.
    pub stage: Option<Stage>,
    /// The tasks of that batch.
    pub shards: Shards,
    /// Who is there, and who of those that computed something is gone.
    pub members: Vec<MemberInfo>,
    /// The lease of the batch in work that is waited for the longest.
    pub oldest: Option<OldestLease>,
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

/// Numbers of tasks of a batch; one that is audited counts twice.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Shards {
    /// Lent to nobody.
    pub free: usize,
    /// Lent and not answered.
    pub lent: usize,
    /// Answered.
    pub done: usize,
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
    /// Answers of it that counted.
    pub tasks_done: u64,
    /// Time that those answers took it, as it says.
    pub busy: Duration,
    /// How it is.
    pub state: MemberState,
    /// How often a worker of its name was lost since the start.
    pub losses: u32,
    /// Leases that it holds.
    pub leases: usize,
    /// Age of the oldest of them.
    pub oldest_lease: Option<Duration>,
    /// Since it joined.
    pub joined: Duration,
    /// Since it was last heard of.
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
