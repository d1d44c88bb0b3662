//! Inside–outside: expected counts under given weights.

use crate::work::context::Context;
use crate::work::counts::Expectation;
use crate::work::error::ComputeError;
use crate::work::weights::ShardWeights;

/// The expected counts of the shard under `weights`, by its index; with [`Expectation::losses`] if `losses`.
pub fn run(context: &Context<'_>, weights: &ShardWeights, losses: bool) -> Result<Expectation, ComputeError> {
    let (built, stays) = context.built()?;
    built.expect(weights, losses, stays)
}
