//! Draws trees for a shard of sentences (Johnson, Griffiths & Goldwater 2007, §4).
//!
//! Sentence by sentence, in order, and for each of its occurrences, from one stream. Without trees to return, folded forests do
//! as well: what is folded is no choice.

use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::convert::Infallible;

use rand_pcg::Pcg64Mcg;
use rand_pcg::rand_core::SeedableRng;

use crate::data::Sentence;
use crate::forest::Prepared;
use crate::forest::best::Derivation;
use crate::forest::binary::Adapted;
use crate::forest::build::Builder;
use crate::forest::inside::{Weights, real};
use crate::forest::sample::{self, Scratch};
use crate::forest::{Edge, Forest, steps};
use crate::grammar::ParamId;
use crate::grammar::SymbolId;
use crate::models::dmv::factors::{Factored, Factors};
use crate::models::tally::Analysis;
use crate::num::Wide;
use crate::stop;
use crate::work::context::Context;
use crate::work::context::built::BuiltShard;
use crate::work::error::ComputeError;
use crate::work::heap::{flat, rows};

/// Draws trees from their distribution under the weights (Johnson, Griffiths & Goldwater 2007, §4).
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Sample {
    /// Weights by the shard's index.
    pub weights: Vec<Wide>,
    /// Seed of the random numbers, of this shard in this round alone.
    pub stream: u64,
    /// The nonterminals whose constituents are the segments, if the trees are to be returned.
    pub keep: Option<Vec<SymbolId>>,
}

/// Trees drawn for the sentences of a shard.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct Sampled {
    /// Uses in the trees, in the order of the shard's index.
    pub counts: Vec<f64>,
    /// Analysis of each occurrence of each sentence, in the order of the sentences; empty if not asked for.
    pub analyses: Vec<Analysis>,
    /// Parameters of weight zero without which some sentence has no derivation; sorted. The rest means nothing if there are
    /// any.
    pub missing: Vec<ParamId>,
}

impl Sampled {
    /// Bytes on the heap.
    pub fn size(&self) -> usize {
        flat(&self.counts) + rows(&self.analyses, Analysis::size) + flat(&self.missing)
    }
}

/// Draws trees for the sentences of the shard.
pub fn run(context: &Context<'_>, sample: &Sample) -> Result<Sampled, ComputeError> {
    let sentences = context.sentences()?;
    draw(&context.prepared(), &*context.forests()?, sentences, sample)
}

fn draw(
    prepared: &Prepared,
    shard: &BuiltShard,
    sentences: &[Sentence],
    sample: &Sample,
) -> Result<Sampled, ComputeError> {
    let n = shard.index.params.len();
    if sample.weights.len() != n {
        return Err(ComputeError::Weights { found: sample.weights.len(), expected: n });
    }
    let mut random = Pcg64Mcg::seed_from_u64(sample.stream);
    let mut scratch = Scratch::default();
    let mut answer = Sampled { counts: vec![0.0; n], ..Sampled::default() };
    let mut missing = BTreeSet::new();
    match &sample.keep {
        None => {
            let chain_weights = shard.chains.weights(&sample.weights);
            let real = real(&chain_weights);
            let weights = Weights { wide: &chain_weights, real: &real };
            let mut uses = vec![0.0; shard.chains.len()];
            for item in &shard.items {
                let Some(forest) = &item.forest else { continue };
                for _ in 0..item.multiplicity as usize {
                    stop::check();
                    let drawn = |_: usize, edge: &Edge| uses[edge.param as usize] += 1.0;
                    let z = sample::sample(forest, &weights, &mut random, &mut scratch, drawn);
                    if z.is_zero() {
                        missing.extend(item.needs(&shard.chains, &sample.weights));
                    }
                }
            }
            shard.chains.distribute(&uses, &mut answer.counts);
        }
        Some(segments) => {
            let mut weights = vec![Wide::ZERO; prepared.space().n_params()];
            let mut local = vec![0; weights.len()];
            for (at, (param, &weight)) in shard.index.params.iter().zip(&sample.weights).enumerate() {
                (weights[param.index()], local[param.index()]) = (weight, at);
            }
            let real = real(&weights);
            let weights = Weights { wide: &weights, real: &real };
            let mut builder = Builder::new(&prepared.binary, &prepared.strings, Adapted::Strings);
            let factors = Factors::of_sentences(&prepared.grammar, sentences);
            let mut factored = factors.map(|factors| Factored::new(factors, weights.wide));
            for (sentence, item) in sentences.iter().zip(&shard.items) {
                let built = builder.build_within(0, &sentence.tokens, &sentence.marks.brackets)?;
                let Some(forest) = built.cloned() else { continue };
                let slotted = match &mut factored {
                    Some(factored) => {
                        let Some(found) = factored.apply(&forest, &sentence.tokens, &sentence.marks) else {
                            continue;
                        };
                        Some((found, &*factored))
                    }
                    None => None,
                };
                let (plain, forest) = match &slotted {
                    Some(((plain, slotted), _)) => (plain, slotted),
                    None => (&forest, &forest),
                };
                let with_slots = slotted.as_ref().map(|(_, factored)| factored.weights());
                let weights = with_slots.as_ref().unwrap_or(&weights);
                let param_of =
                    |edge: &Edge| slotted.as_ref().map_or(edge.param, |(_, factored)| factored.param(edge));
                for _ in 0..sentence.multiplicity {
                    stop::check();
                    let mut edges = Vec::new();
                    let drawn = |node: usize, edge: &Edge| edges.push((node, *edge));
                    let z = sample::sample(forest, weights, &mut random, &mut scratch, drawn);
                    if z.is_zero() {
                        missing.extend(item.needs(&shard.chains, &sample.weights));
                        continue;
                    }
                    let params =
                        edges.iter().map(|(_, edge)| param_of(edge) as usize).filter(|&param| param != 0);
                    params.for_each(|param| answer.counts[local[param]] += 1.0);
                    let derivation = Derivation::new(forest, edges.iter().map(|(node, edge)| (*node, edge)));
                    answer.analyses.push(analysis(prepared, plain, &derivation, &sentence.tokens, segments));
                }
            }
        }
    }
    answer.missing = missing.into_iter().map(|at| shard.index.params[at as usize]).collect();
    Ok(answer)
}

/// A derivation as it is read.
fn analysis(
    prepared: &Prepared,
    forest: &Forest,
    derivation: &Derivation,
    tokens: &[SymbolId],
    segments: &[SymbolId],
) -> Analysis {
    let Ok(steps) =
        steps::steps(&prepared.binary, forest, derivation, tokens, true, |_, _| Ok::<_, Infallible>(None));
    let tree = steps::tree(&prepared.grammar, &steps);
    let is_segment = |label: &str| segments.iter().any(|&symbol| prepared.grammar.name(symbol) == label);
    Analysis { ends: tree.segment_ends(is_segment), tree: tree.to_string() }
}
