//! The events of a run, put on a [`RunStatus`] and into the log.

use anyhow::Result;
use fleet::FleetEvent;
use tracing::{info, warn};
use training::events::{Observer, RunEvent};
use training::metrics::{CheckpointStatus, RoundMetrics, RunResult};
use training::time_left::TimeLeft;

use super::{JobStatus, RunStatus};

/// Keeps a run status up to date.
pub struct Posting {
    /// The job's name.
    name: String,
    /// Status that others read.
    run_status: RunStatus,
    time_left: TimeLeft,
}

impl Posting {
    /// An observer that posts the status of the job of that name to `run_status`.
    pub fn new(name: String, run_status: RunStatus) -> Posting {
        Posting { name, run_status, time_left: TimeLeft::default() }
    }
}

impl Observer for Posting {
    fn on(&mut self, event: &RunEvent) -> Result<()> {
        log(event);
        self.time_left.on(event);
        self.run_status.update(|status| {
            match event {
                RunEvent::Started(start) => {
                    *status = JobStatus {
                        name: self.name.clone(),
                        runs: start.runs,
                        max_rounds: start.max_rounds,
                        sentences: start.sentences,
                        ..JobStatus::default()
                    };
                }
                RunEvent::PhaseBegun(phase) => status.phase = Some(*phase),
                RunEvent::RoundFinished(round) => {
                    (status.run, status.round, status.bound) = (round.run, round.round, round.bound);
                    status.sentences_per_second = round.sentences_per_second;
                    (status.round_seconds, status.busy_seconds) = (round.seconds, round.busy_seconds);
                }
                RunEvent::Checkpointed(written) => {
                    status.checkpoint = Some(*written);
                    status.written_checkpoints += 1;
                }
                RunEvent::CheckpointFailed(_) => status.failed_checkpoints += 1,
                RunEvent::Fleet(FleetEvent::Waiting(waiting)) => status.waiting = Some(*waiting),
                RunEvent::Fleet(FleetEvent::WaitingOver { .. }) => status.waiting = None,
                _ => {}
            }
            status.seconds_left = self.time_left.seconds();
        });
        Ok(())
    }
}

/// Logs what training tells; the fleet logs for itself, once for all jobs.
fn log(event: &RunEvent) {
    match event {
        RunEvent::PhaseBegun(phase) => info!(phase = phase.key(), "phase"),
        RunEvent::RoundFinished(round) => {
            let RoundMetrics { run, round, bound, seconds, sentences_per_second, .. } = **round;
            info!(run, round, bound, seconds, sentences_per_second, "round");
        }
        RunEvent::Checkpointed(written) => {
            let CheckpointStatus { run, round, bytes, seconds } = *written;
            info!(run, round, bytes, seconds, "checkpoint");
        }
        RunEvent::CheckpointFailed(error) => warn!("no checkpoint: {error:#}; the job continues without one"),
        RunEvent::Notice(text) => info!(text, "notice"),
        RunEvent::Finished(summary) => {
            let RunResult { rounds, converged, bound, parameters_sha256, .. } = &summary.result;
            info!(rounds, converged, bound, parameters_sha256, "finished");
        }
        _ => {}
    }
}
