//! Sentences of a shard fitted to logistic-normal priors ([`crate::models::logistic_normal`]), one after the other.
//!
//! Forests are those of the shard: their edges hold chains, and chains hold parameters. A [`Reader`] finds what a sentence knows of
//! them, its multinomials and the place of each parameter among their outcomes.
//!
//! Of a mixture ([`crate::train::mixture`]) every component is fitted by itself, with the multinomials of all trees of the sentence, so that
//! all have the same priors; statistics are added by weight. A component without a tree of the sentence is the base there: the base
//! has its weight, and assigns it its bound. So the bound is Σ λ_r F_r in every sentence, and linear in λ.

use crate::forest::chains::ActiveChains;
use crate::forest::inside::{LEAST_LN, Scratch, real_posteriors, wide_posteriors};
use crate::forest::{Edge, Forest};
use crate::grammar::Grammar;
use crate::models::dmv::constraint::Component;
use crate::models::logistic_normal::{ComponentSums, Multinomials, PriorsError, SentenceFitter, Statistics};
use crate::models::logistic_normal::{Prior, StopRule};
use crate::num::Wide;
use crate::num::special::{exp_each, ln};
use crate::num::tree_sum::TreeSum;
use crate::stop::{self, checked};
use crate::work::context::Context;
use crate::work::context::built::BuiltShard;
use crate::work::error::ComputeError;
use crate::work::heap::{flat, rows};
use serde::{Deserialize, Serialize};

/// Priors that sentences are fitted to ([`crate::models::logistic_normal`]).
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Fit {
    /// One for each of the grammar's [`crate::models::logistic_normal::Multinomials`].
    pub priors: Vec<Prior>,
    /// End of the rounds of a sentence.
    pub until: StopRule,
    /// Components of a mixture beside the base, of a dependency grammar ([`crate::models::dmv`]) alone.
    pub components: Vec<Weighted>,
}

/// A component and its weight in a mixture, of which the base has the rest.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Weighted {
    /// The component.
    pub component: Component,
    /// Its λ.
    pub weight: f64,
}

impl Fit {
    /// Number of [`Statistics::parts`]: the components with the base, or none.
    pub fn n_parts(&self) -> usize {
        if self.components.is_empty() { 0 } else { 1 + self.components.len() }
    }
}

/// Statistics of a shard's sentences for their priors.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub enum Fitted {
    /// Sums over those that have a derivation.
    Statistics(Statistics),
    /// A sentence whose bound is not finite, so that the others do not matter.
    Unbounded {
        /// The shard, among those of the task.
        shard: u32,
        /// Position in the shard.
        sentence: u32,
    },
}

impl Fitted {
    /// Bytes on the heap.
    pub fn size(&self) -> usize {
        match self {
            Fitted::Statistics(Statistics { moments, parts, .. }) => {
                let of = rows(moments, |of| flat(&of.first) + flat(&of.second) + flat(&of.variance));
                of + flat(parts)
            }
            Fitted::Unbounded { .. } => 0,
        }
    }
}

/// Fits all sentences of the shards that have a derivation.
pub fn run(shards: &[Context<'_>], with: &Fit) -> Result<Fitted, ComputeError> {
    let mut sum = TreeSum::default();
    for (at, context) in shards.iter().enumerate() {
        match of_shard(context, with)? {
            Fitted::Statistics(statistics) => sum.push(at, statistics),
            Fitted::Unbounded { sentence, .. } => {
                return Ok(Fitted::Unbounded { shard: at as u32, sentence });
            }
        }
    }
    Ok(Fitted::Statistics(sum.finish().unwrap_or_default()))
}

fn of_shard(context: &Context<'_>, with: &Fit) -> Result<Fitted, ComputeError> {
    context.sentences()?;
    let components: Vec<&Component> = with.components.iter().map(|weighted| &weighted.component).collect();
    let built = match &components[..] {
        [] => context.forests()?,
        components => context.constrained(components)?,
    };
    fit(&built, &context.prepared().grammar, with)
}

fn fit(shard: &BuiltShard, grammar: &Grammar, with: &Fit) -> Result<Fitted, ComputeError> {
    let multinomials = Multinomials::new(grammar).map_err(PriorsError::from)?;
    multinomials.check(&with.priors)?;
    let mut statistics = Statistics::new(multinomials.len());
    statistics.parts = vec![ComponentSums::default(); with.n_parts()];
    let mut sentence = SentenceFitter::default();
    let mut reader = Reader::new(shard, &multinomials);
    for (at, item) in shard.items.iter().enumerate() {
        stop::check();
        let Some(forest) = &item.forest else { continue };
        let own = reader.load(forest);
        let times = item.multiplicity as u32;
        let others = || item.restricted.iter().zip(&with.components);
        let taken = others().filter(|(forest, _)| forest.is_some()).map(|(_, other)| other.weight);
        let base = (Some(forest), (1.0 - taken.sum::<f64>()).max(0.0));
        let all = others().map(|(forest, other)| (forest.as_ref(), other.weight));
        let mut of_base = 0.0;
        for (part, (forest, share)) in std::iter::once(base).chain(all).enumerate() {
            let Some(forest) = forest else {
                statistics.parts[part].bound += f64::from(times) * of_base;
                statistics.parts[part].n_empty += u64::from(times);
                continue;
            };
            reader.load_chains(forest);
            let parse = |ln_weights: &[f64], counts: &mut [f64]| reader.read(forest, ln_weights, counts);
            let fit = sentence.fit(&with.priors, &own, with.until, parse);
            if !fit.bound.is_finite() {
                return Ok(Fitted::Unbounded { shard: 0, sentence: at as u32 });
            }
            if part == 0 {
                statistics.count(&sentence, times);
                of_base = fit.bound;
            }
            statistics.mix(&with.priors, &sentence, fit, times, share);
            if let Some(part) = statistics.parts.get_mut(part) {
                part.bound += f64::from(times) * fit.bound;
            }
        }
    }
    Ok(Fitted::Statistics(statistics))
}

/// Reads one forest after the other, each with weights of its own.
struct Reader<'a> {
    shard: &'a BuiltShard,
    multinomials: &'a Multinomials,
    /// Multinomial and outcome of each parameter of the shard, if there is anything to learn of it; the others weigh 1.
    outcomes: Vec<Option<(usize, usize)>>,
    /// By parameter of the shard, its place among the outcomes of the sentence; only those of the sentence are valid.
    places: Vec<u32>,
    /// Chains of the forest.
    chains: ActiveChains,
    /// The places of what each of them uses, end to end, and where those of each end.
    used: Vec<u32>,
    ends: Vec<usize>,
    /// Log weights of the forest's chains, then weights.
    own: Vec<f64>,
    /// Weights by chain, in either form, and expected uses; only chains of the forest are valid.
    real: Vec<f64>,
    wide: Vec<Wide>,
    chain_uses: Vec<f64>,
    scratch: Scratch,
}

impl<'a> Reader<'a> {
    fn new(shard: &'a BuiltShard, multinomials: &'a Multinomials) -> Reader<'a> {
        let (n, n_chains) = (shard.index.params.len(), shard.chains.len());
        Reader {
            shard,
            multinomials,
            outcomes: shard.index.params.iter().map(|&param| multinomials.outcome(param)).collect(),
            places: vec![0; n],
            chains: ActiveChains::new(&shard.chains),
            used: Vec::new(),
            ends: Vec::new(),
            own: Vec::new(),
            real: vec![0.0; n_chains],
            wide: vec![Wide::ZERO; n_chains],
            chain_uses: vec![0.0; n_chains],
            scratch: Scratch::default(),
        }
    }

    /// Selects another sentence; returns the multinomials that it can use, ascending.
    fn load(&mut self, forest: &Forest) -> Vec<u32> {
        self.chains.load(forest);
        let params = self.chains.iter().flat_map(|chain| self.shard.chains.params(chain)).copied();
        let mut params: Vec<u32> = params.collect();
        params.sort_unstable();
        params.dedup();
        let (mut own, mut start, mut end): (Vec<u32>, usize, usize) = (Vec::new(), 0, 0);
        for param in params {
            let Some((multinomial, outcome)) = self.outcomes[param as usize] else { continue };
            if own.last() != Some(&(multinomial as u32)) {
                own.push(multinomial as u32);
                (start, end) = (end, end + self.multinomials.n_outcomes(multinomial));
            }
            self.places[param as usize] = (start + outcome) as u32;
        }
        own
    }

    /// Selects a forest of the sentence: that which was loaded, or one with some of its edges.
    fn load_chains(&mut self, forest: &Forest) {
        self.chains.load(forest);
        self.used.clear();
        self.ends.clear();
        for chain in checked(self.chains.iter()) {
            let params = self.shard.chains.params(chain).iter();
            let learned = params.filter(|&&param| self.outcomes[param as usize].is_some());
            self.used.extend(learned.map(|&param| self.places[param as usize]));
            self.ends.push(self.used.len());
        }
    }

    /// The places of what each chain of the forest uses.
    fn places(&self) -> impl Iterator<Item = &[u32]> {
        let starts = std::iter::once(0).chain(self.ends.iter().copied());
        starts.zip(&self.ends).map(|(start, &end)| &self.used[start..end])
    }

    /// log Z of the sentence under log weights of its outcomes, and their expected uses.
    fn read(&mut self, forest: &Forest, ln_weights: &[f64], counts: &mut [f64]) -> f64 {
        let mut own = std::mem::take(&mut self.own);
        let ln_weight = |places: &[u32]| places.iter().map(|&at| ln_weights[at as usize]).sum::<f64>();
        own.clear();
        let ln_factors = self.chains.iter().map(|chain| self.shard.chains.ln_factor(chain));
        let lns = self.places().map(ln_weight).zip(ln_factors).map(|(ln, ln_factor)| ln + ln_factor);
        own.extend(lns.map(|ln| if ln < LEAST_LN { f64::NEG_INFINITY } else { ln }));
        exp_each(&mut own);
        for (chain, &weight) in self.chains.iter().zip(&own) {
            self.real[chain as usize] = weight;
            self.chain_uses[chain as usize] = 0.0;
        }
        let uses = &mut self.chain_uses;
        let mut found = |_, edge: &Edge, posterior| uses[edge.param as usize] += posterior;
        let ln_z = match real_posteriors(forest, &self.real, &mut self.scratch, &mut found) {
            Some(z) => ln(z),
            None => {
                let starts = std::iter::once(0).chain(self.ends.iter().copied());
                for ((chain, start), &end) in self.chains.iter().zip(starts).zip(&self.ends) {
                    let ln = ln_weight(&self.used[start..end]) + self.shard.chains.ln_factor(chain);
                    self.wide[chain as usize] = Wide::from_ln(ln);
                }
                wide_posteriors(forest, &self.wide, &mut self.scratch, found).ln()
            }
        };
        counts.fill(0.0);
        for (chain, places) in self.chains.iter().zip(self.places()) {
            places.iter().for_each(|&at| counts[at as usize] += self.chain_uses[chain as usize]);
        }
        self.own = own;
        ln_z
    }
}
