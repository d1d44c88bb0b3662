//! Sentences of a shard fitted to logistic-normal priors ([`crate::models::logistic_normal`]), one after the other.
//!
//! Forests are those of the shard: their edges hold chains, and chains hold parameters. A [`Reader`] finds what a sentence knows of
//! them, its multinomials and the place of each parameter among their outcomes.
//!
//! Of a mixture ([`crate::train::mixture`]) every component is fitted by itself, with the multinomials of all trees of the sentence, so that
//! all have the same priors; statistics are added by weight. A component without a tree of the sentence is the base there: the base
//! has its weight, and assigns it its bound. So the bound is Σ λ_r F_r in every sentence, and linear in λ.

use crate::forest::Forest;
use crate::forest::chains::ActiveChains;
use crate::forest::inside::{Scratch, Weights, edge_posteriors};
use crate::grammar::Grammar;
use crate::models::dmv::constraint::Component;
use crate::models::logistic_normal::{Multinomials, Part, PriorsError, SentenceFitter, Statistics};
use crate::models::logistic_normal::{Prior, Until};
use crate::num::Wide;
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
    pub until: Until,
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
#[derive(Clone, PartialEq, Debug)]
pub enum Fitted {
    /// Sums over those that have a derivation.
    Statistics(Statistics),
    /// A sentence whose bound is not finite, so that the others do not matter.
    Unbounded {
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

/// Fits all sentences of the shard that have a derivation.
pub fn run(context: &Context<'_>, with: &Fit) -> Result<Fitted, ComputeError> {
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
    statistics.parts = vec![Part::default(); with.n_parts()];
    let mut sentence = SentenceFitter::default();
    let mut reader = Reader::new(shard, &multinomials);
    for (at, item) in shard.items.iter().enumerate() {
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
            reader.chains.load(forest);
            let parse = |ln_weights: &[f64], counts: &mut [f64]| reader.read(forest, ln_weights, counts);
            let fit = sentence.fit(&with.priors, &own, with.until, parse);
            if !fit.bound.is_finite() {
                return Ok(Fitted::Unbounded { sentence: at as u32 });
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
    /// Multinomial and outcome of each parameter of the shard, if there is anything to learn of it.
    outcomes: Vec<Option<(usize, usize)>>,
    /// Chains of the sentence's forest.
    chains: ActiveChains,
    /// The sentence's parameters, as positions in the shard's index, and the place of each among its outcomes.
    places: Vec<(u32, usize)>,
    /// By parameter of the shard; those that are not learned weigh 1; of the others only those of the sentence are read.
    weights: Vec<Wide>,
    uses: Vec<f64>,
    /// Weights by chain; only chains of the sentence are valid.
    wide: Vec<Wide>,
    real: Vec<f64>,
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
            chains: ActiveChains::new(&shard.chains),
            places: Vec::new(),
            weights: vec![Wide::ONE; n],
            uses: vec![0.0; n],
            wide: vec![Wide::ZERO; n_chains],
            real: vec![0.0; n_chains],
            chain_uses: vec![0.0; n_chains],
            scratch: Scratch::default(),
        }
    }

    /// Selects another sentence; returns the multinomials that it can use, ascending.
    fn load(&mut self, forest: &Forest) -> Vec<u32> {
        self.chains.load(forest);
        let params = self.chains.iter().flat_map(|chain| self.shard.chains.params(chain)).copied();
        let mut params: Vec<u32> = params.filter(|&param| self.outcomes[param as usize].is_some()).collect();
        params.sort_unstable();
        params.dedup();
        self.places.clear();
        let (mut own, mut start, mut end): (Vec<u32>, usize, usize) = (Vec::new(), 0, 0);
        for param in params {
            let Some((multinomial, outcome)) = self.outcomes[param as usize] else { continue };
            if own.last() != Some(&(multinomial as u32)) {
                own.push(multinomial as u32);
                (start, end) = (end, end + self.multinomials.n_outcomes(multinomial));
            }
            self.places.push((param, start + outcome));
        }
        own
    }

    /// log Z of the sentence under log weights of its outcomes, and their expected uses.
    fn read(&mut self, forest: &Forest, ln_weights: &[f64], counts: &mut [f64]) -> f64 {
        for &(param, place) in &self.places {
            self.weights[param as usize] = Wide::from_ln(ln_weights[place]);
            self.uses[param as usize] = 0.0;
        }
        let chains = &self.shard.chains;
        for chain in self.chains.iter() {
            let params = chains.params(chain).iter();
            let weight = Wide::product(params.map(|&param| self.weights[param as usize]));
            self.wide[chain as usize] = weight;
            self.real[chain as usize] = if weight.exponent < -500 { 0.0 } else { weight.to_f64() };
            self.chain_uses[chain as usize] = 0.0;
        }
        let (weights, uses) = (Weights { wide: &self.wide, real: &self.real }, &mut self.chain_uses);
        let z = edge_posteriors(forest, &weights, &mut self.scratch, |_, edge, posterior| {
            uses[edge.param as usize] += posterior;
        });
        for chain in self.chains.iter() {
            let used = self.chain_uses[chain as usize];
            chains.params(chain).iter().for_each(|&param| self.uses[param as usize] += used);
        }
        counts.fill(0.0);
        self.places.iter().for_each(|&(param, place)| counts[place] = self.uses[param as usize]);
        z.ln()
    }
}
