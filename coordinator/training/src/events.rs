//! Events of a run, and the trait of their observers.
//!
//! Training tells [`RunEvent`]s on its own thread, in the order in which things happen, and passes on those of the fleet
//! ([`Stream`](crate::train::stream::Stream)). Progress, logs, metrics, status, page, history and report are [`Observer`]s of this one stream.

use fleet::FleetEvent;

use crate::metrics::{CheckpointStatus, Phase, RoundMetrics, Start, Summary};
use crate::snapshot::Snapshot;

/// Something that happens in a run.
#[derive(Clone, Copy)]
pub enum RunEvent<'a> {
    /// The corpus and the grammar are read.
    Started(&'a Start),
    /// The job goes on from a checkpoint.
    Resumed {
        /// The checkpoint's name.
        checkpoint: &'a str,
        /// The round after which it was written; 0 before the first.
        round: usize,
    },
    /// Every sentence has a derivation; what an earlier run left may be cleared.
    Prepared {
        /// The rounds before the checkpoint that the job goes on from.
        earlier: &'a [RoundMetrics],
    },
    /// A phase begins.
    PhaseBegun(Phase),
    /// A round of a run ends.
    RoundFinished(&'a RoundMetrics),
    /// A round was scored, or was the first or last of its run. Calling the function takes a snapshot of what the run has
    /// learned so far, which costs nothing unless it is called.
    Scored(&'a dyn Fn() -> Snapshot),
    /// Something happened to the fleet: workers joined or were lost, or the run's tasks wait for workers.
    Fleet(&'a FleetEvent),
    /// A checkpoint was written.
    Checkpointed(&'a CheckpointStatus),
    /// A checkpoint could not be written; the job goes on.
    CheckpointFailed(&'a anyhow::Error),
    /// Something that the user should know; also in the summary.
    Notice(&'a str),
    /// The run was cancelled; the text says what is kept. Nothing comes after.
    Stopped(&'a str),
    /// All results are written. Nothing comes after.
    Finished(&'a Summary),
}

/// A reader of the events of a run.
pub trait Observer {
    /// Takes note of an event. An error (the disk is full) ends the run.
    fn on(&mut self, event: &RunEvent<'_>) -> anyhow::Result<()>;
}

/// Several observers as one, called in their order. After an error those behind it are not called. There may be none.
pub struct All<'a>(pub Vec<&'a mut dyn Observer>);

impl Observer for All<'_> {
    fn on(&mut self, event: &RunEvent<'_>) -> anyhow::Result<()> {
        self.0.iter_mut().try_for_each(|observer| observer.on(event))
    }
}
