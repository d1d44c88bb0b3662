//! A round in the coordinator, for all methods: sums over the shards, and its result.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

use crate::grammar::ParamId;
use crate::grammar::SymbolId;
use crate::models::sampler::Moves;
use crate::num::{Wide, random};
use crate::work::task::{Expectation, Sample, Work};

/// Questions of a round to the shards.
#[derive(Clone, Debug)]
pub enum Ask {
    /// [`Work::Expect`], with the weights that the shard touches.
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
    /// The work of shard number `shard`, whose index is `params`.
    pub fn work<'a>(&'a self, shard: usize, params: &'a [ParamId]) -> Work {
        let touched = |weights: &'a [Wide]| params.iter().map(|param| weights[param.index()]);
        match self {
            Ask::Expect { weights, losses } => {
                Work::Expect { weights: touched(weights).collect(), losses: *losses }
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
    /// Strings out of use that some item needs; may hold repeats.
    pub missing: Vec<ParamId>,
}

impl Totals {
    /// Totals without shards; `with_losses` if the shards are asked for them.
    pub fn new(n_params: usize, with_losses: bool) -> Totals {
        let n_losses = if with_losses { n_params } else { 0 };
        Totals {
            counts: vec![0.0; n_params],
            losses: vec![0.0; n_losses],
            log_z_strings: vec![0.0; n_losses],
            log_z: 0.0,
            missing: Vec::new(),
        }
    }

    /// Adds the answer of the next shard, which has counts of `params`, and is of these `strings` if it is of strings. The sums depend on
    /// the order of the shards, which must be the same every time. Returns whether it has numbers for all of these.
    pub fn add(
        &mut self,
        strings: Option<&Range<u32>>,
        params: impl Iterator<Item = ParamId> + Clone,
        found: Expectation,
    ) -> bool {
        if !found.missing.is_empty() {
            self.missing.extend(found.missing); // and the counts mean nothing
            return true;
        }
        let n = params.clone().count();
        let n_losses = if self.losses.is_empty() { 0 } else { n };
        let n_strings = strings.map_or(0, |strings| strings.len());
        if [found.counts.len(), found.losses.len(), found.log_z_items.len()] != [n, n_losses, n_strings] {
            return false;
        }
        self.log_z += found.log_z;
        for (param, count) in params.clone().zip(&found.counts) {
            self.counts[param.index()] += count;
        }
        if self.losses.is_empty() {
            return true;
        }
        for (param, loss) in params.zip(&found.losses) {
            self.losses[param.index()] += loss;
        }
        if let Some(strings) = strings {
            let strings = strings.start as usize..strings.end as usize;
            self.log_z_strings[strings].copy_from_slice(&found.log_z_items);
        }
        true
    }
}

/// The parameters of a shard whose weight is above zero, in the order of its index: those that an answer to [`Work::Expect`] has
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
