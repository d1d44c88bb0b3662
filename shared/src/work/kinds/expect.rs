//! Inside–outside: expected counts under given weights.

use crate::num::Wide;
use crate::num::tree_sum::TreeSum;
use crate::work::context::Context;
use crate::work::counts::{ByPosition, Counts, Expectation};
use crate::work::error::ComputeError;
use crate::work::weights::ShardWeights;

/// The expected counts of the shards under `weights` of the parameters that any of them touches, in the order of their index; with
/// [`Expectation::losses`] if `losses`.
pub fn run(
    shards: &[Context<'_>],
    weights: &ShardWeights,
    losses: bool,
) -> Result<Expectation, ComputeError> {
    let all = weights.all();
    match shards {
        [shard] => of_shard(shard, &all, losses),
        shards => sum(shards, &all, losses),
    }
}

fn of_shard(shard: &Context<'_>, weights: &[Wide], losses: bool) -> Result<Expectation, ComputeError> {
    let (built, stays) = shard.built()?;
    built.expect(weights, losses, stays)
}

fn sum(shards: &[Context<'_>], weights: &[Wide], losses: bool) -> Result<Expectation, ComputeError> {
    let index = Context::index_of_group(shards)?;
    let (found, expected) = (weights.len(), index.n_params);
    if found != expected {
        return Err(ComputeError::Weights { found, expected });
    }
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
        let found = of_shard(shard, &of_places, losses)?;
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
