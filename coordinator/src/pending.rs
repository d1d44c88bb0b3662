//! What other parts will bring.

use anyhow::{Result, bail};
use shared::adaptor::Model;
use shared::num::Wide;

use crate::commands::train::FleetOptions;
use crate::job::Job;
use crate::metrics::Observer;
use crate::outcome::Outcome;

/// Trains.
pub fn train(_job: &Job, _fleet: &FleetOptions, _observer: &mut dyn Observer) -> Result<Outcome> {
    bail!("training is not part of this build")
}

/// Weights of all parameters under which sentences are decoded.
pub fn decoding_weights(_model: &Model) -> Result<Vec<Wide>> {
    bail!("decoding is not part of this build")
}
