//! What training tells, put on a [`Board`] and into the log, and handed on.

use anyhow::Result;
use tracing::{info, warn};

use super::{Board, CheckpointStatus, JobStatus};
use crate::glimpse::Glimpse;
use crate::metrics::{Observer, Phase, RoundMetrics, Start, Summary};

/// Keeps a board up to date.
pub struct Posting<'a> {
    /// Of the job.
    pub name: String,
    /// Where others look.
    pub board: Board,
    /// Who hears of it afterwards.
    pub others: &'a mut dyn Observer,
}

impl Observer for Posting<'_> {
    fn started(&mut self, start: &Start) -> Result<()> {
        let name = self.name.clone();
        self.board.update(|status| {
            *status = JobStatus {
                name,
                runs: start.runs,
                max_rounds: start.max_rounds,
                sentences: start.sentences,
                ..JobStatus::default()
            };
        });
        self.others.started(start)
    }

    fn prepared(&mut self, earlier: &[RoundMetrics]) -> Result<()> {
        self.others.prepared(earlier)
    }

    fn phase(&mut self, phase: Phase) {
        info!(phase = phase.key(), "phase");
        self.board.update(|status| status.phase = Some(phase));
        self.others.phase(phase);
    }

    fn round(&mut self, round: &RoundMetrics) -> Result<()> {
        let RoundMetrics { run, round: number, bound, seconds, sentences_per_second, .. } = *round;
        info!(run, round = number, bound, seconds, sentences_per_second, "round");
        self.board.update(|status| {
            (status.run, status.round, status.bound) = (round.run, round.round, round.bound);
            status.sentences_per_second = round.sentences_per_second;
            (status.round_seconds, status.busy_seconds) = (round.seconds, round.busy_seconds);
            // All runs go on together.
            let left = status.max_rounds.saturating_sub(round.round) * status.runs;
            status.seconds_left = Some(left as f64 * round.seconds);
        });
        self.others.round(round)
    }

    fn glimpse(&mut self, look: &dyn Fn() -> Glimpse) {
        self.others.glimpse(look);
    }

    fn checkpoint(&mut self, written: Result<&CheckpointStatus, &anyhow::Error>) {
        match written {
            Ok(CheckpointStatus { run, round, bytes, seconds }) => {
                info!(run, round, bytes, seconds, "checkpoint");
            }
            Err(error) => warn!("no checkpoint: {error:#}; the job goes on without"),
        }
        self.board.update(|status| match written {
            Ok(written) => {
                status.checkpoint = Some(*written);
                status.written_checkpoints += 1;
            }
            Err(_) => status.failed_checkpoints += 1,
        });
        self.others.checkpoint(written);
    }

    fn notice(&mut self, text: &str) {
        info!(text, "notice");
        self.others.notice(text);
    }

    fn finished(&mut self, summary: &Summary) {
        let Summary { rounds, converged, bound, parameters_sha256, .. } = summary;
        info!(rounds, converged, bound, parameters_sha256, "finished");
        self.others.finished(summary);
    }
}
