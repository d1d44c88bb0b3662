//! Events of a run, and the trait of their observers.
//!
//! Training tells [`RunEvent`]s on its own thread, in the order in which things happen, and passes on those of the fleet
//! ([`Stream`](crate::train::stream::Stream)). Progress, logs, metrics, status, page, history and report are [`Observer`]s of this one stream.

use fleet::FleetEvent;
use serde::{Deserialize, Serialize};

use crate::metrics::{CheckpointStatus, Phase, RoundMetrics, Start, Summary};
use crate::snapshot::Snapshot;

/// Something that happens in a run.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub enum RunEvent {
    /// The corpus and the grammar are read.
    Started(Start),
    /// The job goes on from a checkpoint.
    Resumed {
        /// The checkpoint's name.
        checkpoint: String,
        /// The round after which it was written; 0 before the first.
        round: usize,
    },
    /// Every sentence has a derivation; what an earlier run left may be cleared.
    Prepared {
        /// The rounds before the checkpoint that the job goes on from.
        earlier: Vec<RoundMetrics>,
    },
    /// A phase begins.
    PhaseBegun(Phase),
    /// A round of a run ends.
    RoundFinished(Box<RoundMetrics>),
    /// What a run has learned so far, after a round that was scored, or was the first or last of its run. Told only if an observer
    /// [shows it](Observer::shows_snapshots).
    Scored(Box<Snapshot>),
    /// Something happened to the fleet: workers joined or were lost, or the run's tasks wait for workers.
    Fleet(FleetEvent),
    /// A checkpoint was written.
    Checkpointed(CheckpointStatus),
    /// A checkpoint could not be written, for this reason; the job goes on.
    CheckpointFailed(String),
    /// Something that the user should know; also in the summary.
    Notice(String),
    /// The run was cancelled; the text says what is kept. Nothing comes after.
    Stopped(String),
    /// All results are written. Nothing comes after.
    Finished(Box<Summary>),
}

/// A reader of the events of a run.
pub trait Observer {
    /// Takes note of an event. An error (the disk is full) ends the run.
    fn on(&mut self, event: &RunEvent) -> anyhow::Result<()>;

    /// Whether it reads [`RunEvent::Scored`], which costs a pass over what the run has learned.
    fn shows_snapshots(&self) -> bool {
        false
    }

    /// Whether it reads the memory that chains will take ([`Start::memory`]), for which charts of some sentences are built.
    fn shows_memory(&self) -> bool {
        false
    }
}

/// Several observers as one, called in their order. After an error those behind it are not called. There may be none.
pub struct All<'a>(pub Vec<&'a mut dyn Observer>);

impl Observer for All<'_> {
    fn on(&mut self, event: &RunEvent) -> anyhow::Result<()> {
        self.0.iter_mut().try_for_each(|observer| observer.on(event))
    }

    fn shows_snapshots(&self) -> bool {
        self.0.iter().any(|observer| observer.shows_snapshots())
    }

    fn shows_memory(&self) -> bool {
        self.0.iter().any(|observer| observer.shows_memory())
    }
}
