//! The parameters that a shard touches.

use crate::work::context::Context;
use crate::work::counts::Index;
use crate::work::error::ComputeError;

/// The index of the shard.
pub fn run(context: &Context<'_>) -> Result<Index, ComputeError> {
    Ok(context.built()?.0.index.clone())
}
