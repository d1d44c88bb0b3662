//! The events of a run, put on a [`RunStatus`] and into the log.

use anyhow::Result;
use tracing::{info, warn};

use super::{JobStatus, RunStatus};
use crate::events::{Observer, RunEvent};
use crate::metrics::{CheckpointStatus, RoundMetrics, Summary};

/// Keeps a run status up to date.
pub struct Posting {
    /// Of the job.
    pub name: String,
    /// Where others look.
    pub run_status: RunStatus,
}

impl Observer for Posting {
    fn on(&mut self, event: &RunEvent<'_>) -> Result<()> {
        log(event);
        self.run_status.update(|status| match *event {
            RunEvent::Started(start) => {
                *status = JobStatus {
                    name: self.name.clone(),
                    runs: start.runs,
                    max_rounds: start.max_rounds,
                    sentences: start.sentences,
                    ..JobStatus::default()
                };
            }
            RunEvent::PhaseBegun(phase) => status.phase = Some(phase),
            RunEvent::RoundFinished(round) => {
                (status.run, status.round, status.bound) = (round.run, round.round, round.bound);
                status.sentences_per_second = round.sentences_per_second;
                (status.round_seconds, status.busy_seconds) = (round.seconds, round.busy_seconds);
                // All runs go on together.
                let left = status.max_rounds.saturating_sub(round.round) * status.runs;
                status.seconds_left = Some(left as f64 * round.seconds);
            }
            RunEvent::Checkpointed(written) => {
                status.checkpoint = Some(*written);
                status.written_checkpoints += 1;
            }
            RunEvent::CheckpointFailed(_) => status.failed_checkpoints += 1,
            _ => {}
        });
        Ok(())
    }
}

fn log(event: &RunEvent<'_>) {
    match *event {
        RunEvent::PhaseBegun(phase) => info!(phase = phase.key(), "phase"),
        RunEvent::RoundFinished(round) => {
            let RoundMetrics { run, round, bound, seconds, sentences_per_second, .. } = *round;
            info!(run, round, bound, seconds, sentences_per_second, "round");
        }
        RunEvent::Checkpointed(written) => {
            let CheckpointStatus { run, round, bytes, seconds } = *written;
            info!(run, round, bytes, seconds, "checkpoint");
        }
        RunEvent::CheckpointFailed(error) => warn!("no checkpoint: {error:#}; the job goes on without"),
        RunEvent::Notice(text) => info!(text, "notice"),
        RunEvent::Finished(summary) => {
            let Summary { rounds, converged, bound, parameters_sha256, .. } = summary;
            info!(rounds, converged, bound, parameters_sha256, "finished");
        }
        _ => {}
    }
}
