//! Record of a job, as the service keeps it on disk.

use std::collections::BTreeMap;
use std::fmt;
use std::num::ParseIntError;
use std::str::FromStr;

use blake3::Hash;
use fleet::{Account, AccountId, FleetStatus, UserId};
use proto::v1;
use serde::{Deserialize, Serialize};

use super::DAY;
use crate::status::JobStatus;

/// Names a job, by the order of submission, from 1.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub struct JobId(pub u64);

impl fmt::Display for JobId {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(out)
    }
}

impl FromStr for JobId {
    type Err = ParseIntError;

    fn from_str(text: &str) -> Result<JobId, ParseIntError> {
        text.parse().map(JobId)
    }
}

/// Milliseconds since 1970.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
pub struct Millis(pub u64);

/// States of a job.
///
/// ```text
/// queued ──> running ──> done
///   │  ^        │ └────> failed ──resumed──> queued      (its process lost for the third time in a row: failed)
///   │  │ service│ended, or paused for another user (pausing)
///   │  └────────┤
///   │           └─cancelled─> stopping ──> cancelled ──resumed──> queued
///   └──────cancelled─────────────────^
/// ```
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum State {
    /// The job waits.
    Queued,
    /// The job runs.
    Running,
    /// The job runs, and is to leave its place to a job of another user, and to wait.
    Pausing,
    /// The job runs, and is to stop.
    Stopping,
    /// Its result is complete.
    Done {
        /// The digest of its parameters.
        parameters_sha256: String,
    },
    /// The job has no result.
    Failed {
        /// Why, in a line.
        error: String,
    },
    /// The job was cancelled.
    Cancelled,
}

impl State {
    /// Name of the state.
    pub fn name(&self) -> &'static str {
        match self {
            State::Queued => "queued",
            State::Running => "running",
            State::Pausing => "pausing",
            State::Stopping => "stopping",
            State::Done { .. } => "done",
            State::Failed { .. } => "failed",
            State::Cancelled => "cancelled",
        }
    }

    /// Whether the job runs, pauses or stops.
    pub fn is_working(&self) -> bool {
        matches!(self, State::Running | State::Pausing | State::Stopping)
    }

    /// Whether nothing more happens to it by itself.
    pub fn is_over(&self) -> bool {
        matches!(self, State::Done { .. } | State::Failed { .. } | State::Cancelled)
    }
}

/// A file that a job reads.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Input {
    /// Path in the job: relative, without `..`.
    pub path: String,
    /// BLAKE3 of its bytes.
    #[serde(with = "as_hex")]
    pub hash: Hash,
}

mod as_hex {
    use blake3::Hash;
    use serde::{Deserialize, Deserializer, Serializer, de::Error};

    pub fn serialize<S: Serializer>(hash: &Hash, to: S) -> Result<S::Ok, S::Error> {
        to.collect_str(&hash.to_hex())
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Hash, D::Error> {
        Hash::from_hex(String::deserialize(from)?).map_err(D::Error::custom)
    }
}

/// Minimum, maximum and default of a priority.
pub const PRIORITIES: [u32; 3] = [1, 100, 10];

/// A job, from submission on.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Record {
    /// Its id.
    pub id: JobId,
    /// Name for people.
    pub name: String,
    /// The name of the token that submitted it.
    pub owner: String,
    /// Its share of the fleet against other jobs of its owner, of which the highest begins first; between users it weighs within a bound.
    pub priority: u32,
    /// Workers that compute for it at a time, at most.
    pub max_workers: Option<u32>,
    /// Chosen by its owner, so that submitting twice makes one job; empty: none.
    pub key: String,
    /// The files it reads.
    pub inputs: Vec<Input>,
    /// BLAKE3 of the job file, as hex digits; none in records of earlier versions.
    #[serde(default)]
    pub job_blake3: Option<String>,
    /// Its state.
    pub state: State,
    /// Number of times that work on it began.
    #[serde(default)]
    pub starts: u32,
    /// Number of times in a row that the job's own process was lost, without a checkpoint in between.
    #[serde(default)]
    pub deaths: u32,
    /// The files of its results, once it is done: paths below their folder, sorted, and bytes. (A job that was done before this was
    /// written down has none.)
    #[serde(default)]
    pub results: Vec<(String, u64)>,
    /// BLAKE3 of these files by path, as hex digits. (Empty in records of earlier versions.)
    #[serde(default)]
    pub checksums: BTreeMap<String, String>,
    /// The main score or the objective, once it is done: name and value. (None in records of earlier versions.)
    #[serde(default)]
    pub score: Option<(String, String)>,
    /// Whether it was deleted: it is hidden, and its files are being removed.
    #[serde(default)]
    pub is_deleted: bool,
    /// Time at which it was accepted.
    pub submitted: Millis,
    /// Time at which it last began or resumed.
    pub begun: Option<Millis>,
    /// Time of its end.
    pub ended: Option<Millis>,
}

impl Record {
    /// The record of an id whose job was not accepted at `now`, and which stands in the way of a record that arrives late.
    pub fn void(id: JobId, now: Millis) -> Record {
        Record {
            id,
            name: String::new(),
            owner: String::new(),
            priority: PRIORITIES[2],
            max_workers: None,
            key: String::new(),
            inputs: Vec::new(),
            job_blake3: None,
            state: State::Cancelled,
            starts: 0,
            deaths: 0,
            results: Vec::new(),
            checksums: BTreeMap::new(),
            score: None,
            is_deleted: true,
            submitted: now,
            begun: None,
            ended: Some(now),
        }
    }

    /// Whether it is such a record of less than a day ago.
    pub fn is_void(&self, now: Millis) -> bool {
        self.owner.is_empty() && u128::from(now.0.saturating_sub(self.submitted.0)) < DAY.as_millis()
    }

    /// The record of the job once it is over, since `now`.
    pub fn over(self, state: State, now: Millis) -> Record {
        Record { state, ended: Some(now), ..self }
    }

    /// Id of its owner on the fleet: a hash of the name.
    fn user(&self) -> UserId {
        let hash = blake3::hash(self.owner.as_bytes());
        let mut id = [0; 8];
        id.copy_from_slice(&hash.as_bytes()[..8]);
        UserId(u64::from_le_bytes(id))
    }

    /// The account on which the fleet computes for it.
    pub fn account(&self) -> Account {
        let max_members = self.max_workers.map(|workers| workers as usize);
        Account { id: AccountId(self.id.0), user: self.user(), share: self.priority, max_members }
    }
}

/// A job as those see it who watch.
#[derive(Clone, PartialEq, Debug)]
pub struct View {
    /// The record.
    pub record: Record,
    /// Jobs that begin before it, if it waits.
    pub ahead: usize,
    /// Progress, if the job runs, or ran in this process.
    pub progress: Option<JobStatus>,
}

impl View {
    /// The message to clients, given the fleet that computes for it.
    pub fn to_wire(&self, fleet: Option<&FleetStatus>) -> v1::JobInfo {
        let account = self.record.account().id;
        let accounts = fleet.into_iter().flat_map(|fleet| &fleet.accounts);
        let worker_seconds =
            accounts.filter(|of| of.account.id == account).map(|of| of.slot_time.as_secs_f64()).sum();
        let Record { id, name, owner, priority, max_workers, state, starts, submitted, begun, ended, .. } =
            &self.record;
        let millis = |at: &Option<Millis>| at.map_or(0, |at| at.0);
        let (error, parameters_sha256) = match state {
            State::Failed { error } => (error.clone(), String::new()),
            State::Done { parameters_sha256 } => (String::new(), parameters_sha256.clone()),
            _ => (String::new(), String::new()),
        };
        v1::JobInfo {
            id: id.0,
            name: name.clone(),
            state: state.name().to_owned(),
            priority: *priority,
            max_workers: max_workers.unwrap_or(0),
            owner: owner.clone(),
            submitted_millis: submitted.0,
            begun_millis: millis(begun),
            ended_millis: millis(ended),
            error,
            ahead: self.ahead as u32,
            progress: self.progress.as_ref().map(crate::status::snapshot::of_job),
            parameters_sha256,
            worker_seconds,
            starts: *starts,
        }
    }
}

/// Records for tests.
#[cfg(test)]
pub mod tests {
    use super::*;

    /// Ann's job of that id, submitted at that millisecond, with nothing said about it.
    pub fn record(id: u64, state: State) -> Record {
        Record {
            id: JobId(id),
            name: format!("job {id}"),
            owner: "ann".into(),
            priority: PRIORITIES[2],
            max_workers: None,
            key: String::new(),
            inputs: Vec::new(),
            job_blake3: None,
            state,
            starts: 0,
            deaths: 0,
            results: Vec::new(),
            checksums: BTreeMap::new(),
            score: None,
            is_deleted: false,
            submitted: Millis(id),
            begun: None,
            ended: None,
        }
    }
}
