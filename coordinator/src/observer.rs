//! Who is told how a training run goes.

use crate::metrics::{CheckpointStatus, Phase, RoundMetrics, Start, Summary};
use crate::snapshot::Snapshot;

/// Is told how a training run goes; listens to what it cares for.
pub trait Observer {
    /// The corpus and the grammar are read.
    fn started(&mut self, _start: &Start) -> anyhow::Result<()> {
        Ok(())
    }

    /// The job goes on from the checkpoint of that name, which was written after that round; 0 before the first.
    fn resumed(&mut self, _checkpoint: &str, _round: usize) {}

    /// Every sentence has a derivation; what an earlier run left may be cleared. `earlier` are the rounds before the
    /// checkpoint that the job goes on from.
    fn prepared(&mut self, _earlier: &[RoundMetrics]) -> anyhow::Result<()> {
        Ok(())
    }

    /// A phase begins.
    fn phase(&mut self, _phase: Phase) {}

    /// A round is over. An error (the disk is full) ends the run.
    fn round(&mut self, _round: &RoundMetrics) -> anyhow::Result<()> {
        Ok(())
    }

    /// A round was scored, or was the first or last of its run: `look` takes a snapshot of what the run has
    /// learned so far, which costs nothing unless it is called.
    fn snapshot(&mut self, _look: &dyn Fn() -> Snapshot) {}

    /// A checkpoint was written, or could not be.
    fn checkpoint(&mut self, _written: Result<&CheckpointStatus, &anyhow::Error>) {}

    /// Something that the user should know; also in the summary.
    fn notice(&mut self, _text: &str) {}

    /// All is written.
    fn finished(&mut self, _summary: &Summary) {}
}

/// All of them are told, in their order; an error leaves those behind it untold. There may be none.
pub struct All<'a>(pub Vec<&'a mut dyn Observer>);

impl Observer for All<'_> {
    fn started(&mut self, start: &Start) -> anyhow::Result<()> {
        self.0.iter_mut().try_for_each(|told| told.started(start))
    }

    fn prepared(&mut self, earlier: &[RoundMetrics]) -> anyhow::Result<()> {
        self.0.iter_mut().try_for_each(|told| told.prepared(earlier))
    }

    fn phase(&mut self, phase: Phase) {
        self.0.iter_mut().for_each(|told| told.phase(phase));
    }

    fn round(&mut self, round: &RoundMetrics) -> anyhow::Result<()> {
        self.0.iter_mut().try_for_each(|told| told.round(round))
    }

    fn snapshot(&mut self, look: &dyn Fn() -> Snapshot) {
        self.0.iter_mut().for_each(|told| told.snapshot(look));
    }

    fn resumed(&mut self, checkpoint: &str, round: usize) {
        self.0.iter_mut().for_each(|told| told.resumed(checkpoint, round));
    }

    fn checkpoint(&mut self, written: Result<&CheckpointStatus, &anyhow::Error>) {
        self.0.iter_mut().for_each(|told| told.checkpoint(written));
    }

    fn notice(&mut self, text: &str) {
        self.0.iter_mut().for_each(|told| told.notice(text));
    }

    fn finished(&mut self, summary: &Summary) {
        self.0.iter_mut().for_each(|told| told.finished(summary));
    }
}
