//! A segmentation learned from annotated sentences, above one that a model found without them: a conditional random field (Lafferty, McCallum & Pereira
//! 2001) on the positions between symbols.
//!
//! In: of every sentence what the model finds ([`Evidence`]), and of a few sentences the positions that are known ([`Known`]), all or some. Out: of
//! any sentence the probability of each boundary, and the segmentation.
//!
//! With yᵢ = 1 where a segment ends after symbol i (y₀ = yₙ = 1) and [`features`] fᵢ of that position,
//!
//! ```text
//! log p(y | x) = Σᵢ yᵢ (oᵢ + u · fᵢ) + Σᵢ v[yᵢ₋₁, yᵢ] · fᵢ + Σₛ w · gₛ − log Z(x)
//! oᵢ = logit of the share of samples with the boundary, + 1 if the model's segmentation has it, − 1 if not
//! ```
//!
//! with features gₛ of each segment s ([`words`]) and normal priors of u, v and w with mean 0. So without annotations it says what the model says, and the more there
//! are, the less the model counts. Weights are those of the highest posterior probability, by L-BFGS; of a sentence some of whose positions are known, the probability is that of all segmentations
//! that agree, log Z(x) of these alone minus log Z(x) of all. Ruokolainen, Kohonen, Virpioja & Kurimo (2013) segment words by such a field without w, which is a
//! chain; with w it is a semi-Markov chain (Sarawagi & Cohen 2004), whose sums are those of a [`Lattice`].
//!
//! ```
//! use grammaton::models::crf::{Crf, Evidence};
//! use grammaton::models::crf::statistics::Statistics;
//! use grammaton::models::crf::words::Words;
//!
//! // A model that is sure of nothing; two annotated sentences cut after the symbol 1.
//! let evidence = |symbols: &'static [u32]| Evidence { symbols, shares: &[0.5, 0.5], ends: &[3] };
//! let statistics = Statistics::of([&[0, 1, 2], &[1, 0, 0]].map(|sentence| &sentence[..]));
//! let known = [false, true].map(Some).to_vec(); // no segment ends after the first symbol, one after the second
//! let annotated = [(evidence(&[0, 1, 2]), known), (evidence(&[1, 0, 0]), vec![Some(true), None])];
//! let crf = Crf::learn(statistics, Words::default(), &annotated);
//! assert_eq!(crf.read(&evidence(&[2, 1, 0])).ends, [2, 3]);
//! ```

pub mod contexts;
pub mod features;
pub mod lattice;
pub mod statistics;
pub mod words;

use std::collections::BTreeMap;

use rustc_hash::FxHashMap;
use serde::{Deserialize, Serialize};

use self::features::{Feature, logit};
use self::lattice::{Lattice, Marginals};
use self::statistics::Statistics;
use self::words::{N_FEATURES, Word, Words};
use super::segments::Probabilities;
use crate::num::lbfgs::minimise;
use crate::stop;

/// Precision of the normal priors of u and of v: what two positions have in common counts less than what one has.
const PRECISION: [f64; 2] = [0.1, 3.0];
/// Precision of the prior of the weight of the share of samples, beside that of others: its weight is 1 to begin with.
const OF_SHARE: f64 = 10.0;
/// Precision of the prior of the weight that all positions have, beside that of others.
const OF_ANY: f64 = 0.1;
/// Precision of the prior of the weights of segments.
const OF_SEGMENTS: f64 = 0.3;
/// Symbols of the longest segments; more where the model finds longer ones, and where a known one is longer.
const LONGEST: usize = 64;
/// Symbols of the longest segments of the model that are thought of whole: there are so many spans for each symbol.
const LONGEST_FOUND: usize = 512;
/// The logit of a boundary of the model's segmentation.
const OF_SEGMENTATION: f64 = 1.0;
/// Weights of a feature: of yᵢ, and of each pair of yᵢ₋₁ and yᵢ.
const WEIGHTS: usize = 5;
/// Steps of the optimiser at most.
const ROUNDS: usize = 200;

/// What a model found in a sentence without annotations.
#[derive(Clone, Copy, Debug)]
pub struct Evidence<'a> {
    /// The sentence of n symbols.
    pub symbols: &'a [u32],
    /// For each of n − 1 positions between symbols, the share of samples that have a boundary there, or its probability without samples.
    pub shares: &'a [f64],
    /// Ends of the segments that it finds, ascending, the last one n.
    pub ends: &'a [u32],
}

impl Evidence<'_> {
    /// The shares where a segmentation is all that is known: 1 of its boundaries, 0 of others.
    pub fn shares_of(ends: &[u32]) -> Vec<f64> {
        let n = ends.last().copied().unwrap_or_default();
        (1..n).map(|at| f64::from(u8::from(ends.binary_search(&at).is_ok()))).collect()
    }
}

/// What is known of each position between the symbols of a sentence: whether a segment ends there, or nothing.
pub type Known = Vec<Option<bool>>;

/// The positions of a sentence that is known whole, whose segments end at `ends`.
pub fn whole(ends: &[u32]) -> Known {
    let n = ends.last().copied().unwrap_or_default();
    (1..n).map(|at| Some(ends.binary_search(&at).is_ok())).collect()
}

/// A sentence as the field reads it.
#[derive(Clone, PartialEq, Debug)]
pub struct Reading {
    /// Probability of a boundary at each position between symbols.
    pub probabilities: Vec<f64>,
    /// Ends of segments, ascending, the last one the length of the sentence: the positions whose boundary is more probable than none.
    pub ends: Vec<u32>,
    /// Probability of each of these segments: of both its boundaries, and none between them.
    pub segments: Vec<f64>,
}

impl Reading {
    /// Its probabilities.
    pub fn posterior(&self) -> Probabilities {
        Probabilities { boundaries: self.probabilities.clone(), segments: self.segments.clone() }
    }
}

/// A field with its weights.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Crf {
    statistics: Statistics,
    /// Features of the annotated sentences, with their weights.
    weights: BTreeMap<Feature, [f64; WEIGHTS]>,
    words: Words,
    /// Weights of features of segments.
    of_words: [f64; N_FEATURES],
}

/// Features of a position by their number, with their values.
type Numbered = Vec<(usize, f64)>;

/// An annotated sentence as it is learned from.
struct Sentence<'a> {
    features: Vec<Numbered>,
    offsets: Vec<f64>,
    known: &'a Known,
    longest: usize,
    /// By start, then by length.
    spans: Vec<Vec<Word>>,
}

/// Potentials of a sentence: by position, the logits of yᵢ with each yᵢ₋₁. The last position is the end of the sentence, where y is 1.
type Scores = Vec<[[f64; 2]; 2]>;

impl Crf {
    /// Learns from annotated sentences, each with what is known of it. `statistics`: of all sentences that there are; `words`: what models find in them.
    pub fn learn(statistics: Statistics, mut words: Words, annotated: &[(Evidence<'_>, Known)]) -> Crf {
        let mut numbers: FxHashMap<Feature, usize> = FxHashMap::default();
        let mut names: Vec<Feature> = Vec::new();
        let mut number = |feature: Feature| {
            *numbers.entry(feature).or_insert_with_key(|feature| {
                names.push(feature.clone());
                names.len() - 1
            })
        };
        annotated.iter().for_each(|(evidence, known)| words.annotate(evidence.symbols, known));
        let sentences: Vec<Sentence<'_>> = annotated
            .iter()
            .map(|(evidence, known)| {
                stop::check();
                let features = features::of_sentence(evidence, &statistics).into_iter();
                let numbered = features
                    .map(|of| of.into_iter().map(|(feature, value)| (number(feature), value)).collect());
                let longest = longest(evidence.ends, known);
                Sentence {
                    features: numbered.collect(),
                    offsets: offsets(evidence),
                    known,
                    longest,
                    spans: words.spans(evidence.symbols, longest, Some(known)),
                }
            })
            .collect();
        let precision = |feature: &Feature| match feature {
            Feature::Share(0) => OF_SHARE,
            Feature::Any => OF_ANY,
            _ => 1.0,
        };
        let of_position = |name: &Feature| {
            let which = |of: usize| precision(name) * PRECISION[usize::from(of > 0)];
            (0..WEIGHTS).map(which).collect::<Vec<f64>>()
        };
        let n_of_positions = names.len() * WEIGHTS;
        let of_segments = std::iter::repeat_n(OF_SEGMENTS, N_FEATURES);
        let precisions: Vec<f64> = names.iter().flat_map(of_position).chain(of_segments).collect();
        let objective = |weights: &[f64], gradient: &mut [f64]| {
            let mut value = 0.0;
            for ((weight, slope), precision) in weights.iter().zip(gradient.iter_mut()).zip(&precisions) {
                value += 0.5 * precision * weight * weight;
                *slope += precision * weight;
            }
            let (weights, of_words) = weights.split_at(n_of_positions);
            let (gradient, of_words_gradient) = gradient.split_at_mut(n_of_positions);
            for Sentence { features, offsets, known, longest, spans } in &sentences {
                stop::check();
                let scores = scores(features, offsets, |feature| {
                    std::array::from_fn(|of| weights[feature * WEIGHTS + of])
                });
                let all = lattice(&scores, *longest, spans, of_words).marginals();
                let agreeing = lattice(&agreeing(scores, known), *longest, spans, of_words).marginals();
                value += all.log_z - agreeing.log_z;
                for ((features, expected), agreeing) in features.iter().zip(all.pairs()).zip(agreeing.pairs())
                {
                    let excess = |a: usize, b: usize| expected[a][b] - agreeing[a][b];
                    let [none, one, end, both] = [excess(0, 0), excess(0, 1), excess(1, 0), excess(1, 1)];
                    let slopes = [one + both, none, one, end, both];
                    for &(feature, x) in features {
                        let gradient = &mut gradient[feature * WEIGHTS..][..WEIGHTS];
                        gradient.iter_mut().zip(slopes).for_each(|(sum, slope)| *sum += slope * x);
                    }
                }
                for ((start, end, expected), (.., agreeing)) in all.spans().zip(agreeing.spans()) {
                    for (feature, x) in spans[start][end - start - 1].features(end - start) {
                        of_words_gradient[feature] += (expected - agreeing) * x;
                    }
                }
            }
            value
        };
        let found = minimise(vec![0.0; n_of_positions + N_FEATURES], ROUNDS, objective);
        let (of_positions, of_segments) = found.split_at(n_of_positions);
        let weights = of_positions.chunks_exact(WEIGHTS).map(|of| std::array::from_fn(|at| of[at]));
        let of_words = std::array::from_fn(|feature| of_segments[feature]);
        Crf { statistics, weights: names.into_iter().zip(weights).collect(), words, of_words }
    }

    /// Whether all its numbers are finite, as in a file that can be read.
    pub fn is_finite(&self) -> bool {
        let mut weights = self.weights.values().flatten().chain(&self.of_words);
        weights.all(|weight| weight.is_finite()) && self.statistics.is_finite()
    }

    /// Reads a sentence of which nothing is known.
    pub fn read(&self, evidence: &Evidence<'_>) -> Reading {
        self.read_known(evidence, &vec![None; evidence.shares.len()])
    }

    /// The `n` most probable segmentations of a sentence, each with its probability p(y | x), in order; all if there are fewer. Only, the first one is that
    /// of [`Crf::read`], which decides on each position by itself, so that another one may be more probable.
    pub fn n_best(&self, evidence: &Evidence<'_>, n: usize) -> Vec<(f64, Vec<u32>)> {
        let known = vec![None; evidence.shares.len()];
        let lattice = self.lattice(evidence, &known);
        let marginals = lattice.marginals();
        let mut found = lattice.best(n);
        let chosen = reading(&marginals, &known).ends;
        let first = found.iter().position(|(_, ends)| *ends == chosen).map(|at| found.remove(at));
        found.insert(0, first.unwrap_or_else(|| (lattice.sum(&chosen), chosen)));
        found.truncate(n);
        found.into_iter().map(|(score, ends)| (libm::exp(score - marginals.log_z).min(1.0), ends)).collect()
    }

    /// The values of the segments of a sentence, of which this is known.
    fn lattice(&self, evidence: &Evidence<'_>, known: &Known) -> Lattice {
        let features = features::of_sentence(evidence, &self.statistics);
        let scores = scores(&features, &offsets(evidence), |feature| {
            self.weights.get(feature).copied().unwrap_or_default()
        });
        let longest = longest(evidence.ends, known);
        let spans = self.words.spans(evidence.symbols, longest, None);
        lattice(&agreeing(scores, known), longest, &spans, &self.of_words)
    }

    /// Reads a sentence as it agrees with what is known of it.
    pub fn read_known(&self, evidence: &Evidence<'_>, known: &Known) -> Reading {
        reading(&self.lattice(evidence, known).marginals(), known)
    }
}

/// A sentence as its probabilities say, in agreement with what is known of it.
fn reading(marginals: &Marginals, known: &Known) -> Reading {
    let n = known.len() + 1;
    // What is known is certain exactly, whatever was rounded.
    let probabilities: Vec<f64> = (marginals.pairs().iter().zip(known))
        .map(|(pair, known)| known.map_or(pair[0][1] + pair[1][1], |is_end| f64::from(u8::from(is_end))))
        .collect();
    let likely = (1..).zip(&probabilities).filter(|(_, probability)| **probability > 0.5).map(|(at, _)| at);
    let ends: Vec<u32> = likely.chain([n as u32]).collect();
    let inside = |start: u32, end: u32| &known[start as usize..end as usize - 1];
    let is_known = |start: u32, end: u32| {
        let is_edge = |at: u32| at == 0 || at as usize == n || known[at as usize - 1] == Some(true);
        is_edge(start) && is_edge(end) && inside(start, end).iter().all(|known| *known == Some(false))
    };
    let starts = [0].iter().chain(&ends);
    let segment = |(&start, &end): (&u32, &u32)| {
        if is_known(start, end) { 1.0 } else { marginals.span(start, end) }
    };
    Reading { segments: starts.zip(&ends).map(segment).collect(), ends, probabilities }
}

/// The potentials of the segmentations that agree with what is known.
fn agreeing(mut scores: Scores, known: &Known) -> Scores {
    let known_before = [Some(true)].iter().chain(known);
    for (score, (before, here)) in scores.iter_mut().zip(known_before.zip(known)) {
        for (a, b) in [(0, 0), (0, 1), (1, 0), (1, 1)] {
            let is_other =
                |known: &Option<bool>, state| known.is_some_and(|is_end| usize::from(is_end) != state);
            if is_other(before, a) || is_other(here, b) {
                score[a][b] = f64::NEG_INFINITY;
            }
        }
    }
    scores
}

/// Symbols of the longest segments that a sentence may have whose segments by the model end at `ends`.
fn longest(ends: &[u32], known: &[Option<bool>]) -> usize {
    let found = [0].iter().chain(ends).zip(ends).map(|(start, end)| (end - start) as usize).max();
    let joined = known.split(|known| *known != Some(false)).map(|joined| joined.len() + 1).max();
    found.unwrap_or_default().clamp(LONGEST, LONGEST_FOUND).max(joined.unwrap_or_default())
}

/// The logit of each boundary by what the model finds.
fn offsets(evidence: &Evidence<'_>) -> Vec<f64> {
    let offset = |(share, at): (&f64, u32)| {
        let is_found = evidence.ends.binary_search(&at).is_ok();
        logit(*share) + if is_found { OF_SEGMENTATION } else { -OF_SEGMENTATION }
    };
    evidence.shares.iter().zip(1..).map(offset).collect()
}

/// Potentials of a sentence whose features have these weights.
fn scores<F>(features: &[Vec<(F, f64)>], offsets: &[f64], weights: impl Fn(&F) -> [f64; WEIGHTS]) -> Scores {
    let of_position = |(features, offset): (&Vec<(F, f64)>, &f64)| {
        let mut sums = [*offset, 0.0, 0.0, 0.0, 0.0];
        for (feature, x) in features {
            sums.iter_mut().zip(weights(feature)).for_each(|(sum, weight)| *sum += weight * x);
        }
        let [boundary, none, one, end, both] = sums;
        [[none, boundary + one], [end, boundary + both]]
    };
    let end = [[f64::NEG_INFINITY, 0.0]; 2];
    features.iter().zip(offsets).map(of_position).chain([end]).collect()
}

/// The values of segments: the potentials of their positions, and what they are worth as a whole.
fn lattice(scores: &Scores, longest: usize, spans: &[Vec<Word>], of_words: &[f64]) -> Lattice {
    Lattice::new(scores.len(), longest, |start| {
        let mut open = 0.0;
        let mut before = 1;
        spans[start].iter().zip(&scores[start..]).enumerate().map(move |(at, (word, score))| {
            let closed = open + score[before][1];
            open += score[before][0];
            before = 0;
            let features = word.features(at + 1);
            closed + features.iter().map(|(feature, x)| of_words[*feature] * x).sum::<f64>()
        })
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// Law: the n best readings are the field's own, then the most probable others; the probabilities of all sum to one.
        #[test]
        fn the_n_best_begin_with_the_fields_own_reading(shares in prop::collection::vec(0.0..1.0_f64, 0..6), set in 0..32_u32) {
            let n = shares.len() as u32 + 1;
            let symbols: Vec<u32> = (0..n).map(|at| at % 2).collect();
            let ends: Vec<u32> = (1..n).filter(|at| set >> (at - 1) & 1 == 1).chain([n]).collect();
            let evidence = Evidence { symbols: &symbols, shares: &shares, ends: &ends };
            let annotated = [(Evidence { symbols: &[0, 1, 0], shares: &[0.5, 0.5], ends: &[3] }, whole(&[1, 2, 3]))];
            let crf = Crf::learn(Statistics::of([&symbols[..]].into_iter()), Words::default(), &annotated);
            let all = crf.n_best(&evidence, 100);
            prop_assert_eq!(all.len(), 1 << shares.len());
            prop_assert_eq!(&all[0].1, &crf.read(&evidence).ends);
            prop_assert!((all.iter().map(|(probability, _)| probability).sum::<f64>() - 1.0).abs() < 1e-9);
            prop_assert!(all[1..].is_sorted_by(|(a, _), (b, _)| a >= b));
            for (at, probability) in crf.read(&evidence).probabilities.iter().enumerate() {
                let has = |ends: &Vec<u32>| ends.contains(&(at as u32 + 1));
                let sum: f64 = all.iter().filter(|(_, ends)| has(ends)).map(|(probability, _)| probability).sum();
                prop_assert!((sum - probability).abs() < 1e-9);
            }
            for n in 1..4 {
                let found = crf.n_best(&evidence, n);
                prop_assert_eq!(&found[..], &all[..n.min(all.len())]);
            }
        }

        /// Law: under what is known, log Z, probabilities and segments are those of the segmentations that agree, one by one; what is known is certain exactly.
        #[test]
        fn what_is_known_leaves_the_segmentations_that_agree(
            shares in prop::collection::vec(0.0..1.0_f64, 0..7),
            known in prop::collection::vec(prop::option::of(any::<bool>()), 7),
        ) {
            let n = shares.len() + 1;
            let known = &known[..n - 1].to_vec();
            let (symbols, ends): (Vec<u32>, [u32; 1]) = ((0..n as u32).collect(), [n as u32]);
            let evidence = Evidence { symbols: &symbols, shares: &shares, ends: &ends };
            let reading = Crf::learn(Statistics::default(), Words::default(), &[]).read_known(&evidence, known);
            let weight = |set: u32| -> f64 {
                let odds = shares.iter().zip(offsets(&evidence)).enumerate();
                odds.map(|(at, (_, offset))| if set >> at & 1 == 1 { libm::exp(offset) } else { 1.0 }).product()
            };
            let agrees = |set: &u32| known.iter().enumerate().all(|(at, known)| known.is_none_or(|is_end| is_end == (set >> at & 1 == 1)));
            let all: Vec<u32> = (0..1 << (n - 1)).filter(agrees).collect();
            let share = |has: &dyn Fn(u32) -> bool| -> f64 {
                let z: f64 = all.iter().map(|&set| weight(set)).sum();
                all.iter().filter(|set| has(**set)).map(|&set| weight(set)).sum::<f64>() / z
            };
            for (at, (probability, known)) in reading.probabilities.iter().zip(known).enumerate() {
                prop_assert!((probability - share(&|set| set >> at & 1 == 1)).abs() < 1e-9);
                prop_assert!(known.is_none_or(|is_end| *probability == f64::from(u8::from(is_end))));
            }
            let starts = [0].iter().chain(&reading.ends);
            for ((&start, &end), probability) in starts.zip(&reading.ends).zip(&reading.segments) {
                let is_end = |set: u32, at: u32| at == 0 || at as usize == n || set >> (at - 1) & 1 == 1;
                let has = |set: u32| is_end(set, start) && is_end(set, end) && (start + 1..end).all(|at| !is_end(set, at));
                prop_assert!((probability - share(&has)).abs() < 1e-9);
            }
        }

        /// Law: without annotations the field says what the model says, so that a boundary is where most samples have one and the model's
        /// segmentation does not object.
        #[test]
        fn without_annotations_the_model_decides(shares in prop::collection::vec(0.0..1.0_f64, 1..9), set in 0..256_u32) {
            let n = shares.len() as u32 + 1;
            let symbols: Vec<u32> = (0..n).collect();
            let ends: Vec<u32> = (1..n).filter(|at| set >> (at - 1) & 1 == 1).chain([n]).collect();
            let evidence = Evidence { symbols: &symbols, shares: &shares, ends: &ends };
            let reading = Crf::learn(Statistics::default(), Words::default(), &[]).read(&evidence);
            for ((share, probability), at) in shares.iter().zip(&reading.probabilities).zip(1..n) {
                let odds = libm::exp(logit(*share) + if ends.contains(&at) { 1.0 } else { -1.0 });
                prop_assert!((probability - odds / (1.0 + odds)).abs() < 1e-12);
                prop_assert_eq!(reading.ends.contains(&at), *probability > 0.5);
            }
        }
    }

    #[test]
    fn long_segments_stay_whole() {
        let (crf, symbols) = (Crf::learn(Statistics::default(), Words::default(), &[]), [0; 600]);
        let found = Evidence { symbols: &symbols[..300], shares: &[0.01; 299], ends: &[300] };
        assert_eq!(crf.read(&found).ends, [300]);
        let ends: Vec<u32> = (1..=600).collect();
        let cut = Evidence { symbols: &symbols, shares: &[0.99; 599], ends: &ends };
        let known = crf.read_known(&cut, &vec![Some(false); 599]);
        assert_eq!((known.ends, known.segments), (vec![600], vec![1.0]));
    }

    /// Law: annotated sentences are read as they are annotated if they are many beside their features, whatever the model finds.
    #[test]
    fn annotations_are_learned_against_the_model() {
        // A segment ends after every symbol 0, while the model cuts after every symbol 1.
        let sentence = |seed: u32| -> Vec<u32> {
            (0..12).map(|at| (seed * 7 + at * at * 5 + at / 3 * seed) % 4).collect()
        };
        let cut = |symbols: &[u32], after: u32| -> Vec<u32> {
            let inner = (1..symbols.len()).filter(|&at| symbols[at - 1] == after).map(|at| at as u32);
            inner.chain([symbols.len() as u32]).collect()
        };
        let sentences: Vec<Vec<u32>> = (0..40).map(sentence).collect();
        let found: Vec<Vec<u32>> = sentences.iter().map(|symbols| cut(symbols, 1)).collect();
        let shares: Vec<Vec<f64>> = found
            .iter()
            .map(|ends| (1..12).map(|at| if ends.contains(&at) { 0.9 } else { 0.1 }).collect())
            .collect();
        let evidence =
            |at: usize| Evidence { symbols: &sentences[at], shares: &shares[at], ends: &found[at] };
        let statistics = Statistics::of(sentences.iter().map(Vec::as_slice));
        let words = Words::found(sentences.iter().map(Vec::as_slice).zip(found.iter().map(Vec::as_slice)));
        let all_known = |at: usize| whole(&cut(&sentences[at], 0));
        // Of every third position nothing is known.
        let some_known = |at: usize| {
            let known = all_known(at).into_iter().enumerate();
            known.map(|(position, known)| known.filter(|_| !(position + at).is_multiple_of(3))).collect()
        };
        for known in [&all_known as &dyn Fn(usize) -> Known, &some_known] {
            let annotated: Vec<(Evidence<'_>, Known)> = (0..20).map(|at| (evidence(at), known(at))).collect();
            let crf = Crf::learn(statistics.clone(), words.clone(), &annotated);
            for (at, sentence) in sentences.iter().enumerate() {
                assert_eq!(crf.read(&evidence(at)).ends, cut(sentence, 0), "{sentence:?}");
            }
            assert_eq!(crf, Crf::learn(statistics.clone(), words.clone(), &annotated));
        }
    }
}
