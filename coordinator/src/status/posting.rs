//! What training tells, put on a [`RunStatus`] and into the log.

use anyhow::Result;
use tracing::{info, warn};

use super::{CheckpointStatus, JobStatus, RunStatus};
use crate::metrics::{Phase, RoundMetrics, Start, Summary};
use crate::observer::Observer;

/// Keeps a run status up to date.
pub struct Posting {
    /// Of the job.
    pub name: String,
    /// Where others look.
    pub run_status: RunStatus,
}

impl Observer for Posting {
    fn started(&mut self, start: &Start) -> Result<()> {
        let name = self.name.clone();
        self.run_status.update(|status| {
            *status = JobStatus {
                name,
                runs: start.runs,
                max_rounds: start.max_rounds,
                sentences: start.sentences,
                ..JobStatus::default()
            };
        });
        Ok(())
    }

    fn phase(&mut self, phase: Phase) {
        info!(phase = phase.key(), "phase");
        self.run_status.update(|status| status.phase = Some(phase));
    }

    fn round(&mut self, round: &RoundMetrics) -> Result<()> {
        let RoundMetrics { run, round: number, bound, seconds, sentences_per_second, .. } = *round;
        info!(run, round = number, bound, seconds, sentences_per_second, "round");
        self.run_status.update(|status| {
            (status.run, status.round, status.bound) = (round.run, round.round, round.bound);
            status.sentences_per_second = round.sentences_per_second;
            (status.round_seconds, status.busy_seconds) = (round.seconds, round.busy_seconds);
            // All runs go on together.
            let left = status.max_rounds.saturating_sub(round.round) * status.runs;
            status.seconds_left = Some(left as f64 * round.seconds);
        });
        Ok(())
    }

    fn checkpoint(&mut self, written: Result<&CheckpointStatus, &anyhow::Error>) {
        match written {
            Ok(CheckpointStatus { run, round, bytes, seconds }) => {
                info!(run, round, bytes, seconds, "checkpoint");
            }
            Err(error) => warn!("no checkpoint: {error:#}; the job goes on without"),
        }
        self.run_status.update(|status| match written {
            Ok(written) => {
                status.checkpoint = Some(*written);
                status.written_checkpoints += 1;
            }
            Err(_) => status.failed_checkpoints += 1,
        });
    }

    fn notice(&mut self, text: &str) {
        info!(text, "notice");
    }

    fn finished(&mut self, summary: &Summary) {
        let Summary { rounds, converged, bound, parameters_sha256, .. } = summary;
        info!(rounds, converged, bound, parameters_sha256, "finished");
    }
}
