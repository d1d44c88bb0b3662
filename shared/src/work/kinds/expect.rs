//! Inside–outside: expected counts under given weights.

use crate::num::Wide;
use crate::work::context::Context;
use crate::work::counts::Expectation;
use crate::work::error::ComputeError;

/// The expected counts of the shard under `weights`, by its index; with [`Expectation::losses`] if `losses`.
pub fn run(context: &Context<'_>, weights: &[Wide], losses: bool) -> Result<Expectation, ComputeError> {
    let (built, stays) = context.built()?;
    built.expect(weights, losses, stays)
}
