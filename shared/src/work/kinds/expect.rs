//! Inside–outside: expected counts under given weights.

use crate::grammar::ParamId;
use crate::num::Wide;
use crate::num::tree_sum::TreeSum;
use crate::work::context::Context;
use crate::work::counts::{ByPosition, Counts, Expectation};
use crate::work::error::ComputeError;
use crate::work::weights::TaskWeights;

/// The expected counts of the shards under `weights` of the parameters that any of them touches, in the order of their index; with
/// [`Expectation::losses`] if `losses`.
pub fn run(shards: &[Context<'_>], weights: &TaskWeights, losses: bool) -> Result<Expectation, ComputeError> {
    match shards {
        [shard] => {
            let (built, stays) = shard.built()?;
            built.expect(&touched(weights, shard, &built.index.params)?, losses, stays)
        }
        shards => sum(shards, weights, losses),
    }
}

/// The weights of `params`, which the shards of the task touch.
fn touched(
    weights: &TaskWeights,
    shard: &Context<'_>,
    params: &[ParamId],
) -> Result<Vec<Wide>, ComputeError> {
    let (found, expected) = match weights {
        TaskWeights::Touched(weights) => (weights.n_params(), params.len()),
        TaskWeights::Shared { all, .. } => (all.value.n_params(), shard.prepared().space().n_params()),
    };
    if found != expected as u64 {
        return Err(ComputeError::Weights { found: found as usize, expected });
    }
    Ok(weights.of(params))
}

fn sum(shards: &[Context<'_>], weights: &TaskWeights, losses: bool) -> Result<Expectation, ComputeError> {
    let index = Context::index_of_group(shards)?;
    let weights = touched(weights, &shards[0], &index.params)?;
    // Of each parameter, how many before it are in use.
    let mut n_in_use = 0;
    let mut rank = |weight: &Wide| {
        let rank = n_in_use;
        n_in_use += u32::from(!weight.is_zero());
        rank
    };
    let ranks: Vec<u32> = weights.iter().map(&mut rank).collect();
    let (mut sums, mut answer) = (TreeSum::default(), Expectation::default());
    for (at, (shard, places)) in shards.iter().zip(&index.places).enumerate() {
        let of_places: Vec<Wide> = places.iter().map(|&place| weights[place as usize]).collect();
        let (built, stays) = shard.built()?;
        let found = built.expect(&of_places, losses, stays)?;
        let in_use = places.iter().filter(|&&place| !weights[place as usize].is_zero());
        let positions = in_use.map(|&place| ranks[place as usize]);
        let counts = Counts::new(n_in_use as usize, losses, positions, &found);
        sums.push(at, counts.expect("a shard has numbers of its parameters in use"));
        answer.log_z_items.extend(found.log_z_items);
        answer.missing.extend(found.missing);
    }
    if let Some(sums) = sums.finish() {
        let (ByPosition { counts, losses }, log_z) = sums.all();
        (answer.counts, answer.losses, answer.log_z) = (counts, losses, log_z);
    }
    answer.missing.sort_unstable();
    answer.missing.dedup();
    Ok(answer)
}
