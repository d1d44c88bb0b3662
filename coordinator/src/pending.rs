//! What other parts will bring.

use crate::commands::train::FleetOptions;
use crate::job::Job;
use crate::metrics::Observer;
use crate::outcome::Outcome;
use anyhow::{Result, bail};

/// Trains.
pub fn train(_job: &Job, _fleet: &FleetOptions, _observer: &mut dyn Observer) -> Result<Outcome> {
    bail!("training is not part of this build")
}
