//! A round in the coordinator, for all methods: sums over the shards, and its result.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

use crate::grammar::ParamId;
use crate::grammar::SymbolId;
use crate::models::sampler::Moves;
use crate::num::tree_sum::TreeSum;
use crate::num::{Wide, random};
use crate::work::counts::{ByPosition, Counts};
use crate::work::task::{Expectation, Named, Sample, TaskWeights, WeightsInUse, Work};

/// Questions of a round to the shards.
#[derive(Clone, Debug)]
pub enum Ask {
    /// [`Work::Expect`], with the weights that the shards touch, or with all.
    Expect {
        /// Weights of all parameters, `[n_params]`.
        weights: Arc<Vec<Wide>>,
        /// Whether losses are to be returned.
        losses: bool,
    },
    /// [`Work::Sample`], with the weights that the shard touches.
    Sample {
        /// Weights of all parameters, `[n_params]`.
        weights: Arc<Vec<Wide>>,
        /// Seed, run and round: with the shard, they say where its random numbers come from.
        seeds: [u64; 3],
        /// The nonterminals whose constituents are the segments, if the trees are to be returned.
        keep: Option<Vec<SymbolId>>,
    },
    /// The same work for all shards.
    Same(Work),
    /// Work by shard, for those that the round reads.
    Each(BTreeMap<usize, Work>),
}

impl Ask {
    /// Whether several shards can be asked at once, and answer with their sum.
    pub fn is_summed(&self) -> bool {
        match self {
            Ask::Expect { .. } => true,
            Ask::Same(work) => work.is_summed(),
            Ask::Sample { .. } | Ask::Each(_) => false,
        }
    }

    /// The work of the shards that begin with number `shard`, whose index is `params`; an E-step with `shared` weights, if there are any.
    pub fn work<'a>(
        &'a self,
        shard: usize,
        params: &'a [ParamId],
        shared: Option<&Named<WeightsInUse>>,
    ) -> Work {
        let touched = |weights: &'a [Wide]| params.iter().map(|param| weights[param.index()]);
        match self {
            Ask::Expect { weights, losses } => {
                let weights = match shared {
                    None => touched(weights).collect(),
                    Some(all) => TaskWeights::Shared {
                        all: all.clone(),
                        n_touched: params.len() as u32,
                        n_in_use: in_use(weights, params).count() as u32,
                    },
                };
                Work::Expect { weights, losses: *losses }
            }
            Ask::Sample { weights, seeds: [seed, run, round], keep } => {
                let stream = random::shard_seed(*seed, *run, *round, shard as u64);
                Work::Sample(Sample { weights: touched(weights).collect(), stream, keep: keep.clone() })
            }
            Ask::Same(work) => work.clone(),
            Ask::Each(works) => works[&shard].clone(),
        }
    }
}

/// Sums over all shards of a round.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Totals {
    /// Expected uses by parameter, `[n_params]`.
    pub counts: Vec<f64>,
    /// Losses by parameter, `[n_params]`; empty if nothing was asked for.
    pub losses: Vec<f64>,
    /// log Z of every string's own grammaton by parameter, which is compared with its loss, `[n_params]`; empty without losses.
    pub log_z_strings: Vec<f64>,
    /// Σ log Z over all items.
    pub log_z: f64,
    /// Strings out of use that some item needs, sorted.
    pub missing: Vec<ParamId>,
}

/// The sums of a round under way.
#[derive(Default)]
pub struct Summing {
    n_params: usize,
    with_losses: bool,
    sums: TreeSum<Counts>,
    log_z_strings: Vec<f64>,
    missing: Vec<ParamId>,
}

impl Summing {
    /// Sums without shards; `with_losses` if the shards are asked for them.
    pub fn new(n_params: usize, with_losses: bool) -> Summing {
        let log_z_strings = vec![0.0; if with_losses { n_params } else { 0 }];
        Summing { n_params, with_losses, log_z_strings, ..Summing::default() }
    }

    /// Adds the answer of the next shards, which are a node of the tree of shards ([`crate::num::tree_sum`]) and begin with number `first`. It has
    /// counts of `params`, and is of these `strings` if it is of strings. Returns whether it has numbers for all of these.
    pub fn add(
        &mut self,
        first: usize,
        strings: Option<&Range<u32>>,
        params: impl Iterator<Item = ParamId> + Clone,
        found: Expectation,
    ) -> bool {
        if !found.missing.is_empty() {
            self.missing.extend(found.missing); // and the counts mean nothing
            return true;
        }
        if found.log_z_items.len() != strings.map_or(0, |strings| strings.len()) {
            return false;
        }
        let at = params.map(|param| param.0);
        let Some(counts) = Counts::new(self.n_params, self.with_losses, at, &found) else { return false };
        self.sums.push(first, counts);
        if let (Some(strings), true) = (strings, self.with_losses) {
            let strings = strings.start as usize..strings.end as usize;
            self.log_z_strings[strings].copy_from_slice(&found.log_z_items);
        }
        true
    }

    /// The sums over all shards.
    pub fn finish(self) -> Totals {
        let Summing { n_params, with_losses, sums, log_z_strings, mut missing } = self;
        missing.sort_unstable(); // they come by shard or by group
        missing.dedup();
        let sums = sums.finish().unwrap_or_else(|| Counts::none(n_params, with_losses));
        let (ByPosition { counts, losses }, log_z) = sums.all();
        Totals { counts, losses, log_z_strings, log_z, missing }
    }
}

/// The parameters of shards whose weight is above zero, in the order of their index: those that an answer to [`Work::Expect`] has
/// counts of.
pub fn in_use<'a>(weights: &'a [Wide], params: &'a [ParamId]) -> impl Iterator<Item = ParamId> + Clone {
    params.iter().copied().filter(|param| !weights[param.index()].is_zero())
}

/// Whether all `missing` parameters are among the `params` of a shard, and have weight zero: so using them changes something.
pub fn are_out_of_use(weights: &[Wide], params: &[ParamId], missing: &[ParamId]) -> bool {
    let is_out = |param: &ParamId| params.binary_search(param).is_ok() && weights[param.index()].is_zero();
    missing.iter().all(is_out)
}

/// The share of the bound by which rounding may lower it.
pub const ROUNDING: f64 = 1e-9;

/// Relative change of the objective.
pub fn relative_change(before: Option<f64>, after: Option<f64>) -> Option<f64> {
    let (before, after) = before.zip(after)?;
    Some(if after == before { 0.0 } else { (after - before) / before.abs() })
}

/// Result of a round.
#[derive(Clone, PartialEq, Debug)]
pub enum Step {
    /// The round has to run again, with new weights.
    Again {
        /// Strings taken back into use.
        restored: usize,
    },
    /// The round goes on with further work of some shards.
    Continue,
    /// The round is done, and the next one follows.
    Next(RoundReport),
}

/// A round that counts.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct RoundReport {
    /// The bound under the weights of the round; none for the first, whose weights come from no q.
    pub bound: Option<f64>,
    /// Its change relative to the round before.
    pub change: Option<f64>,
    /// Strings that went out of use.
    pub dropped: usize,
    /// Whether some stick was put into a new order.
    pub resorted: bool,
    /// Whether the change is below the tolerance and no string was dropped or added.
    pub converged: bool,
    /// The temperature of the round, where it is not 1.
    pub temperature: Option<f64>,
    /// Outcomes of the proposed trees, with Metropolis–Hastings.
    pub moves: Option<Moves>,
}

/// The bound fell though nothing was dropped or added: a defect, never noise.
#[derive(Clone, PartialEq, Debug, thiserror::Error)]
#[error(
    "the bound fell from {before} to {after} in round {round}: a worker computes wrongly, or this is a defect of the program; connect another worker, or \
     report it"
)]
pub struct BoundFell {
    /// The round.
    pub round: usize,
    /// The bound of the round before.
    pub before: f64,
    /// The bound of this round.
    pub after: f64,
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Law: shards that lack strings say the same as their group, so that strings return to the sticks in the same order.
    #[test]
    fn what_is_missing_has_one_order() {
        let lacks = |missing: &[u32]| {
            let missing = missing.iter().copied().map(ParamId).collect();
            Expectation { missing, ..Expectation::default() }
        };
        let (mut by_shard, mut by_group) = (Summing::new(9, true), Summing::new(9, true));
        assert!(by_shard.add(0, None, std::iter::empty(), lacks(&[5, 8])));
        assert!(by_shard.add(1, None, std::iter::empty(), lacks(&[2, 5])));
        assert!(by_group.add(0, None, std::iter::empty(), lacks(&[2, 5, 8])));
        let totals = by_shard.finish();
        assert_eq!(totals.missing, [2, 5, 8].map(ParamId));
        assert_eq!(totals, by_group.finish());
    }
}
