//! A pass of collapsed variational Bayes over a shard (Wang & Blunsom 2013, §3.2, Fig. 3).
//!
//! Sentence by sentence, in order, and each occurrence by itself: its own expected counts are taken out of those of the shard,
//! it is read with the posterior mean of all others, and its new counts are put in. Over one shard this is the paper's
//! algorithm; over several, each sees the others as they were when the round began.
//!
//! Adding and subtracting rounds: the counts of the shard are summed anew from those of its sentences at the beginning of each
//! pass, and what falls below zero in between counts as zero.

use crate::forest::chains::ActiveChains;
use crate::forest::inside::{Scratch, Weights, edge_posteriors};
use crate::grammar::groups::Groups;
use crate::num::Wide;
use crate::num::wide::heat;
use crate::stop::{self, checked};
use crate::work::content::Named;
use crate::work::context::Context;
use crate::work::context::built::BuiltShard;
use crate::work::counts::Expectation;
use crate::work::error::ComputeError;
use crate::work::state::ShardState;
use serde::{Deserialize, Serialize};

/// A pass of collapsed variational Bayes (Wang & Blunsom 2013, §3.2).
#[derive(Clone, Debug, Serialize, Deserialize)]
pub enum Collapse<S = Named<ShardState>> {
    /// The first one, in which all sentences are read with the same weights.
    Start {
        /// Weights by the shard's index.
        weights: Vec<Wide>,
    },
    /// Any other.
    Others {
        /// α and the counts of all other shards, by the shard's index.
        pseudo: Vec<f64>,
        /// Counts summed over each multinomial, with the parameters that the shard does not touch.
        sums: Vec<f64>,
        /// Weights are taken to the power 1/temperature.
        temperature: f64,
        /// The state in the shard's last answer.
        shard_state: S,
    },
}

impl<S> Collapse<S> {
    /// The same pass, with the state that `find` returns for its own.
    pub(crate) fn with_state<T, E>(self, find: impl FnOnce(S) -> Result<T, E>) -> Result<Collapse<T>, E> {
        Ok(match self {
            Collapse::Start { weights } => Collapse::Start { weights },
            Collapse::Others { pseudo, sums, temperature, shard_state } => {
                Collapse::Others { pseudo, sums, temperature, shard_state: find(shard_state)? }
            }
        })
    }
}

/// Expected counts of a shard, and of each of its sentences.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Collapsed {
    /// Expectation of the shard, without losses.
    pub expectation: Expectation,
    /// State for the next round.
    pub shard_state: ShardState,
}

/// Smaller expected counts are not kept.
const NEGLIGIBLE: f64 = 1e-12;

impl Collapsed {
    /// Bytes on the heap, but for what the shard carries, which stays.
    pub fn size(&self) -> usize {
        self.expectation.size()
    }
}

/// A pass over the sentences of the shard.
pub fn run(context: &Context<'_>, work: &Collapse) -> Result<Collapsed, ComputeError> {
    context.sentences()?;
    let (prepared, shard) = (context.prepared(), context.forests()?);
    let groups = Groups::new(&prepared.grammar, &prepared.lexicon);
    pass(&shard, &groups, work)
}

fn pass(shard: &BuiltShard, groups: &Groups, work: &Collapse) -> Result<Collapsed, ComputeError> {
    let n = shard.index.params.len();
    let n_occurrences: usize = shard.items.iter().map(|item| item.multiplicity as usize).sum();
    let expected = |found: usize, expected: usize| {
        if found == expected { Ok(()) } else { Err(ComputeError::Weights { found, expected }) }
    };
    let mut old: &[Vec<(u32, f64)>] = &[];
    let mut pass = match work {
        Collapse::Start { weights } => {
            expected(weights.len(), n)?;
            Pass::new(shard, groups, Source::Fixed(weights))
        }
        Collapse::Others { pseudo, sums, temperature, shard_state } => {
            expected(pseudo.len(), n)?;
            expected(sums.len(), groups.len())?;
            let ShardState::Counts(own) = &*shard_state.value else {
                let problem = format!("it is of {}", shard_state.value.method());
                return Err(ComputeError::ShardState { problem });
            };
            expected(own.len(), n_occurrences)?;
            shard_state
                .value
                .check(n)
                .map_err(|error| ComputeError::ShardState { problem: error.to_string() })?;
            old = own;
            let source = Source::Others { pseudo, sums, temperature: *temperature };
            let mut pass = Pass::new(shard, groups, source);
            for &(param, count) in checked(old.iter().flatten()) {
                pass.add(param, count);
            }
            pass
        }
    };
    let mut answer = Expectation { counts: vec![0.0; n], ..Expectation::default() };
    let mut new = Vec::with_capacity(n_occurrences);
    for (at, item) in shard.items.iter().enumerate() {
        if let Some(forest) = &item.forest {
            pass.chains.load(forest);
        }
        for _ in 0..item.multiplicity as usize {
            stop::check();
            let own = old.get(new.len()).map_or(&[][..], |own| own);
            own.iter().for_each(|&(param, count)| pass.add(param, -count));
            let (log_z, own) = pass.read(at);
            answer.log_z += log_z;
            for &(param, count) in &own {
                pass.add(param, count);
                answer.counts[param as usize] += count;
            }
            new.push(own);
        }
    }
    Ok(Collapsed { expectation: answer, shard_state: ShardState::Counts(new) })
}

/// Sources of weights.
enum Source<'a> {
    /// Given weights.
    Fixed(&'a [Wide]),
    /// From the counts of all other sentences: these, and those of the shard.
    Others { pseudo: &'a [f64], sums: &'a [f64], temperature: f64 },
}

struct Pass<'a> {
    shard: &'a BuiltShard,
    source: Source<'a>,
    /// The multinomial of each parameter of the shard; `u32::MAX` for the constant one.
    groups: Vec<u32>,
    /// Counts of the shard's other sentences, by the shard's index.
    counts: Vec<f64>,
    /// Counts by multinomial.
    sums: Vec<f64>,
    /// The chains of the sentence.
    chains: ActiveChains,
    /// Weights by chain; only chains of the sentence are valid.
    wide: Vec<Wide>,
    real: Vec<f64>,
    uses: Vec<f64>,
    /// Counts of the sentence by parameter.
    own: Vec<f64>,
    scratch: Scratch,
}

impl<'a> Pass<'a> {
    fn new(shard: &'a BuiltShard, groups: &Groups, source: Source<'a>) -> Pass<'a> {
        let (n, n_chains) = (shard.index.params.len(), shard.chains.len());
        let group = |&param: &_| groups.of(param).map_or(u32::MAX, |group| group as u32);
        Pass {
            shard,
            source,
            groups: shard.index.params.iter().map(group).collect(),
            counts: vec![0.0; n],
            sums: vec![0.0; groups.len()],
            chains: ActiveChains::new(&shard.chains),
            wide: vec![Wide::ZERO; n_chains],
            real: vec![0.0; n_chains],
            uses: vec![0.0; n_chains],
            own: vec![0.0; n],
            scratch: Scratch::default(),
        }
    }

    fn add(&mut self, param: u32, count: f64) {
        let group = self.groups[param as usize];
        if group != u32::MAX {
            self.counts[param as usize] += count;
            self.sums[group as usize] += count;
        }
    }

    /// Reads the item whose chains were found; its log Z and its expected counts.
    fn read(&mut self, item: usize) -> (f64, Vec<(u32, f64)>) {
        let Some(forest) = &self.shard.items[item].forest else { return (0.0, Vec::new()) };
        for chain in checked(self.chains.iter()) {
            let params = self.shard.chains.params(chain);
            let mut weight = [Wide::product(params.iter().map(|&param| self.weight(param)))];
            if let Source::Others { temperature, .. } = self.source {
                heat(&mut weight, temperature);
            }
            let weight = self.shard.chains.with_factor(chain, weight[0]);
            self.wide[chain as usize] = weight;
            self.real[chain as usize] = if weight.exponent < -500 { 0.0 } else { weight.to_f64() };
            self.uses[chain as usize] = 0.0;
        }
        let (weights, uses) = (Weights { wide: &self.wide, real: &self.real }, &mut self.uses);
        let z = edge_posteriors(forest, &weights, &mut self.scratch, |_, edge, posterior| {
            uses[edge.param as usize] += posterior;
        });
        let mut touched: Vec<u32> = Vec::new();
        for chain in self.chains.iter() {
            let used = self.uses[chain as usize];
            if used > NEGLIGIBLE {
                for &param in self.shard.chains.params(chain) {
                    if self.own[param as usize] == 0.0 {
                        touched.push(param);
                    }
                    self.own[param as usize] += used;
                }
            }
        }
        touched.sort_unstable();
        let own = touched.into_iter().map(|param| (param, std::mem::take(&mut self.own[param as usize])));
        (if z.is_zero() { 0.0 } else { z.ln() }, own.collect())
    }

    /// (α_r + f_r) / Σ (α + f), the sentence's own counts taken out (Wang & Blunsom 2013, Eq. 8).
    fn weight(&self, param: u32) -> Wide {
        match self.source {
            Source::Fixed(weights) => weights[param as usize],
            Source::Others { pseudo, sums, .. } => match self.groups[param as usize] {
                u32::MAX => Wide::ONE,
                group => {
                    let count = pseudo[param as usize] + self.counts[param as usize].max(0.0);
                    let sum = sums[group as usize] + self.sums[group as usize].max(0.0);
                    Wide::from_f64(count / sum)
                }
            },
        }
    }
}
