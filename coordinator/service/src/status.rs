//! The present state of a training run, for `grammaton status`, metrics and probes.
//!
//! The run writes a [`RunStatus`] ([`posting`]), the fleet knows its own [`FleetStatus`](fleet::FleetStatus). Nothing is decided
//! by either. [`snapshot`] puts both into one message, [`service`] answers with it.

pub mod posting;

pub mod snapshot;

pub mod service;

use std::sync::Arc;

use fleet::Waiting;
use parking_lot::Mutex;
use training::metrics::{CheckpointStatus, Phase};

/// Progress of a job.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct JobStatus {
    /// Its name: that of the output folder.
    pub name: String,
    /// The phase that began last; none before the first.
    pub phase: Option<Phase>,
    /// The reason why tasks wait, while no worker can compute them.
    pub waiting: Option<Waiting>,
    /// The run whose round ended last, from 1; 0 before the first. All runs go on together.
    pub run: usize,
    /// Number of runs.
    pub runs: usize,
    /// The round.
    pub round: usize,
    /// The job's limit of rounds per run.
    pub max_rounds: usize,
    /// Its bound, or what else the method's objective is.
    pub bound: Option<f64>,
    /// Sentences of the corpus.
    pub sentences: usize,
    /// Sentences by wall time, in the last round.
    pub sentences_per_second: f64,
    /// Wall seconds of the last round.
    pub round_seconds: f64,
    /// Seconds that computing took in the last round, summed over workers.
    pub busy_seconds: f64,
    /// Seconds that the rounds left take at most ([`TimeLeft`](training::time_left::TimeLeft)).
    pub seconds_left: Option<f64>,
    /// The last checkpoint, if there is one.
    pub checkpoint: Option<CheckpointStatus>,
    /// Checkpoints that were written by this process.
    pub written_checkpoints: u64,
    /// Checkpoints that could not be.
    pub failed_checkpoints: u64,
}

/// Activities of a job in metrics and JSON: one at a time, or none before the first phase.
pub const ACTIVITIES: [&str; 4] =
    [WAITING, Phase::Preprocess.key(), Phase::Rounds.key(), Phase::Decode.key()];

/// The activity of a job whose tasks wait for workers.
pub const WAITING: &str = "waiting";

impl JobStatus {
    /// The current activity: [`WAITING`], or else the key of its phase; empty before the first.
    pub fn activity(&self) -> &'static str {
        match (self.waiting, self.phase) {
            (Some(_), _) => WAITING,
            (None, phase) => phase.map_or("", Phase::key),
        }
    }
}

/// Status that a run writes and others read.
#[derive(Clone, Debug, Default)]
pub struct RunStatus(Arc<Mutex<JobStatus>>);

impl RunStatus {
    /// The status as it is.
    pub fn read(&self) -> JobStatus {
        self.0.lock().clone()
    }

    /// Changes the status.
    pub fn update(&self, change: impl FnOnce(&mut JobStatus)) {
        change(&mut self.0.lock());
    }
}
