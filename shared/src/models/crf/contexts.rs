//! Boundaries by the symbols around them, learned without annotations: a logistic regression on the probabilities that models find.
//!
//! In: sentences, each with the probability of a boundary at every position. Out: of any sentence, also of a new one, the probability of each boundary.
//!
//! With pᵢ the probability that the models find at a position and fᵢ its windows, up to five symbols on each side and two across it, the weights w have the lowest
//!
//! ```text
//! Σᵢ − pᵢ log qᵢ − (1 − pᵢ) log (1 − qᵢ) + λ/2 |w|²,    qᵢ = 1 / (1 + exp(− w · fᵢ))
//! ```
//!
//! A model cuts a word as its chain happens to do, and another word with the same ending in another way. What many words have in common remains here, what a single one
//! has does not. That is distillation (Hinton, Vinyals & Dean 2015) by a field without weights of pairs of positions.
//!
//! ```
//! use grammaton::models::crf::contexts::Contexts;
//!
//! // Before 9 is a boundary, as most models find.
//! let words: Vec<Vec<u32>> = (0..40).map(|at| vec![at % 7, 9]).collect();
//! let contexts = Contexts::learn(words.iter().map(|word| (&word[..], &[0.8][..])));
//! assert!(contexts.probabilities(&[8, 9])[0] > 0.5);
//! ```

use std::collections::BTreeMap;

use rustc_hash::FxHashMap;
use serde::{Deserialize, Serialize};

use super::features::{ACROSS, LONGEST};
use super::lattice::Lattice;
use super::statistics::EDGE;
use super::{Reading, longest};
use crate::models::segments::Segments;
use crate::num::lbfgs::minimise;
use crate::stop;

/// λ, the precision of the normal priors of the weights. 10 is better by .004 in lists of 6,000 words, and worse by .013 in one of 50,000, of whose words the models know
/// more (docs/results/segment.md, "Contexts").
const PRECISION: f64 = 3.0;
/// Precision of the prior of the weight that all positions have.
const OF_ANY: f64 = 0.1;
/// Steps of the optimiser at most.
const ROUNDS: usize = 100;
/// A lower probability of a span decides no vote.
const NEGLIGIBLE: f64 = 1e-3;
/// Windows of a position.
const WINDOWS: usize = 2 * LONGEST + ACROSS.len();
/// The number of a window that a single position has, and so no weight.
const SINGLE: u32 = u32::MAX;

/// Symbols around a position, and how many of them stand before it.
type Window<'a> = (u8, &'a [u32]);

/// Weights of the symbols around a position.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Contexts {
    /// Of every position.
    any: f64,
    /// Of windows that two positions or more have, by the number of symbols before the position.
    weights: Vec<BTreeMap<Vec<u32>, f64>>,
}

impl Contexts {
    /// Learns from sentences of n symbols, each with the n − 1 probabilities of its boundaries.
    pub fn learn<'a>(sentences: impl IntoIterator<Item = (&'a [u32], &'a [f64])>) -> Contexts {
        let (padded, probabilities): (Vec<Vec<u32>>, Vec<&[f64]>) =
            sentences.into_iter().map(|(symbols, found)| (padded(symbols), found)).unzip();
        let probabilities = probabilities.concat();
        let mut positions: FxHashMap<Window<'_>, u32> = FxHashMap::default();
        padded.iter().flat_map(|padded| windows(padded)).flatten().for_each(|window| {
            *positions.entry(window).or_default() += 1;
        });
        positions.retain(|_, n| *n > 1);
        let (mut numbers, mut names) = (FxHashMap::default(), Vec::new());
        let mut number = |window| {
            if !positions.contains_key(&window) {
                return SINGLE;
            }
            *numbers.entry(window).or_insert_with(|| {
                names.push(window);
                names.len() as u32 - 1
            })
        };
        let features: Vec<[u32; WINDOWS]> =
            padded.iter().flat_map(|padded| windows(padded)).map(|of| of.map(&mut number)).collect();
        drop((positions, numbers));
        // The last weight is that of all positions.
        let any = names.len();
        let objective = |weights: &[f64], gradient: &mut [f64]| {
            let mut value = 0.0;
            for (at, (weight, slope)) in weights.iter().zip(gradient.iter_mut()).enumerate() {
                let precision = if at == any { OF_ANY } else { PRECISION };
                value += 0.5 * precision * weight * weight;
                *slope += precision * weight;
            }
            for (of_position, expected) in features.iter().zip(&probabilities) {
                let known = || of_position.iter().filter(|&&feature| feature != SINGLE);
                let logit = weights[any] + known().map(|&feature| weights[feature as usize]).sum::<f64>();
                value += logit.max(0.0) + libm::log1p(libm::exp(-logit.abs())) - expected * logit;
                let slope = probability(logit) - expected;
                gradient[any] += slope;
                known().for_each(|&feature| gradient[feature as usize] += slope);
            }
            stop::check();
            value
        };
        let found = minimise(vec![0.0; any + 1], ROUNDS, objective);
        let mut weights = vec![BTreeMap::new(); LONGEST + 1];
        for ((before, symbols), weight) in names.into_iter().zip(&found) {
            weights[usize::from(before)].insert(symbols.to_vec(), *weight);
        }
        Contexts { any: found[any], weights }
    }

    /// Whether all its numbers are finite, as in a file that can be read.
    pub fn is_finite(&self) -> bool {
        self.any.is_finite()
            && self.weights.iter().flat_map(BTreeMap::values).all(|weight| weight.is_finite())
    }

    /// The probability of a boundary at each of the n − 1 positions of a sentence of n symbols. Symbols that are new have no weight.
    pub fn probabilities(&self, symbols: &[u32]) -> Vec<f64> {
        self.logits(symbols).into_iter().map(probability).collect()
    }

    /// Reads a sentence: there is a boundary where its probability is at least the threshold, which is between 0 and 1.
    pub fn read(&self, symbols: &[u32], threshold: f64) -> Reading {
        let probabilities = self.probabilities(symbols);
        let likely = (1..).zip(&probabilities).filter(|(_, probability)| **probability >= threshold);
        let ends: Vec<u32> = likely.map(|(at, _)| at).chain([symbols.len() as u32]).collect();
        // Positions are independent.
        let at =
            |end: u32| (end as usize).checked_sub(1).and_then(|at| probabilities.get(at)).unwrap_or(&1.0);
        let segment = |(&start, &end): (&u32, &u32)| {
            (start + 1..end).map(|inside| 1.0 - at(inside)).product::<f64>() * at(start) * at(end)
        };
        let segments = [0].iter().chain(&ends).zip(&ends).map(segment).collect();
        Reading { probabilities, ends, segments }
    }

    /// The probabilities of the segments of a sentence, those of spans with a negligible one left out, which adds to that of a symbol alone.
    pub fn segments(&self, symbols: &[u32]) -> Segments {
        let (n, probabilities) = (symbols.len() as u32, self.probabilities(symbols));
        let at =
            |end: u32| (end as usize).checked_sub(1).and_then(|at| probabilities.get(at)).unwrap_or(&1.0);
        let mut spans = Vec::new();
        for start in 0..n {
            let mut uncut = *at(start);
            for end in start + 1..=n {
                if uncut < NEGLIGIBLE {
                    break;
                }
                let probability = uncut * at(end);
                spans.extend((probability >= NEGLIGIBLE).then_some((start, end, probability)));
                uncut *= 1.0 - at(end);
            }
        }
        Segments::new(n, spans)
    }

    fn logits(&self, symbols: &[u32]) -> Vec<f64> {
        let padded = padded(symbols);
        let weight = |(before, symbols): Window<'_>| {
            self.weights.get(usize::from(before)).and_then(|weights| weights.get(symbols)).unwrap_or(&0.0)
        };
        windows(&padded).map(|of| self.any + of.map(weight).into_iter().sum::<f64>()).collect()
    }

    /// The `n` best segmentations of a sentence, each with its probability, in order; all if there are fewer. The first one is that of [`Contexts::read`]; the
    /// odds of a boundary beside those of the threshold are worth the same at each position.
    pub fn n_best(&self, symbols: &[u32], threshold: f64, n: usize) -> Vec<(f64, Vec<u32>)> {
        let logits = self.logits(symbols);
        let chosen = self.read(symbols, threshold).ends;
        let longest = longest(&chosen, &[]);
        let least = libm::log(threshold / (1.0 - threshold));
        let lattice = Lattice::new(symbols.len(), longest, |start| {
            logits[start..].iter().map(|logit| logit - least).chain([0.0])
        });
        let log_z: f64 =
            logits.iter().map(|logit| logit.max(0.0) + libm::log1p(libm::exp(-logit.abs()))).sum();
        // Whatever was rounded.
        let others = lattice.best(n).into_iter().map(|(_, ends)| ends).filter(|ends| *ends != chosen);
        let ranked = std::iter::once(chosen.clone()).chain(others).take(n);
        let inner = |ends: &[u32]| -> f64 {
            ends[..ends.len() - 1].iter().map(|end| logits[*end as usize - 1]).sum()
        };
        ranked.map(|ends| (libm::exp(inner(&ends) - log_z).min(1.0), ends)).collect()
    }
}

fn probability(logit: f64) -> f64 {
    1.0 / (1.0 + libm::exp(-logit))
}

/// A sentence between its edges, so that each position has all windows.
fn padded(symbols: &[u32]) -> Vec<u32> {
    [&[EDGE; LONGEST], symbols, &[EDGE; LONGEST]].concat()
}

/// The windows of each position between the symbols of a sentence: the nearest symbols before it, those after it, and those across it.
fn windows(padded: &[u32]) -> impl Iterator<Item = [Window<'_>; WINDOWS]> {
    (LONGEST + 1..(padded.len() - LONGEST).max(LONGEST + 1)).map(move |place| {
        let window = |before: usize, after: usize| (before as u8, &padded[place - before..place + after]);
        std::array::from_fn(|at| match at {
            _ if at < LONGEST => window(at + 1, 0),
            _ if at < 2 * LONGEST => window(0, at - LONGEST + 1),
            _ => {
                let (before, after) = ACROSS[at - 2 * LONGEST];
                window(before, after)
            }
        })
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn found() -> impl Strategy<Value = Vec<(Vec<u32>, Vec<f64>)>> {
        let sentence = prop::collection::vec(0..4_u32, 1..7).prop_flat_map(|symbols| {
            let n = symbols.len() - 1;
            (Just(symbols), prop::collection::vec(0.0..=1.0_f64, n))
        });
        prop::collection::vec(sentence, 1..30)
    }

    fn learn(found: &[(Vec<u32>, Vec<f64>)]) -> Contexts {
        Contexts::learn(found.iter().map(|(symbols, probabilities)| (&symbols[..], &probabilities[..])))
    }

    proptest! {
        /// Law: at the minimum the weight of a window, times λ, is what the probabilities of its positions lack in sum; one that a single position has is not there.
        #[test]
        fn a_weight_is_what_its_positions_lack(found in found()) {
            let contexts = learn(&found);
            let mut lacks: BTreeMap<(usize, Vec<u32>), (u32, f64)> = BTreeMap::new();
            let mut of_any = 0.0;
            for (symbols, expected) in &found {
                let own = contexts.probabilities(symbols);
                for (at, windows) in windows(&padded(symbols)).enumerate() {
                    of_any += expected[at] - own[at];
                    for (before, window) in windows {
                        let (n, lack) = lacks.entry((usize::from(before), window.to_vec())).or_default();
                        *n += 1;
                        *lack += expected[at] - own[at];
                    }
                }
            }
            prop_assert!((OF_ANY * contexts.any - of_any).abs() < 0.1, "{} {of_any}", contexts.any);
            for ((before, window), (n, lack)) in lacks {
                let weight = contexts.weights[before].get(&window);
                prop_assert_eq!(weight.is_some(), n > 1);
                weight.into_iter().for_each(|weight| assert!((PRECISION * weight - lack).abs() < 0.1, "{weight} {lack}"));
            }
        }

        /// Law: the best segmentations are in the order of their odds beside the threshold, each with its probability; all of them together have 1.
        #[test]
        fn segmentations_are_ranked_as_by_enumeration(found in found(), threshold in 0.05..0.95_f64) {
            let contexts = learn(&found);
            for (symbols, _) in &found {
                let own = contexts.probabilities(symbols);
                let all = contexts.n_best(symbols, threshold, 1000);
                prop_assert_eq!(all.len(), 1 << own.len());
                let read = contexts.read(symbols, threshold);
                prop_assert_eq!(&all[0].1, &read.ends);
                for ((start, end), of_segment) in [0].iter().chain(&read.ends).zip(&read.ends).zip(&read.segments) {
                    let has = |at: &u32| *at == 0 || *at as usize == symbols.len();
                    let cut = |ends: &[u32], at: &u32| has(at) || ends.contains(at);
                    let with = all.iter().filter(|(_, ends)| {
                        cut(ends, start) && cut(ends, end) && (start + 1..*end).all(|at| !ends.contains(&at))
                    });
                    let sum: f64 = with.map(|(probability, _)| probability).sum();
                    prop_assert!((of_segment - sum).abs() < 1e-9, "{of_segment} {sum}");
                }
                let segments = contexts.segments(symbols);
                let n = symbols.len() as u32;
                for ((start, end), (found, expected)) in
                    [0].iter().chain(&read.ends).zip(&read.ends).zip(segments.of(&read.ends).iter().zip(&read.segments))
                {
                    // A symbol alone has what the spans around it lack that are left out.
                    let around = if end - start == 1 { (start + 1) * (n - start) - 1 } else { 0 };
                    let most = f64::from(around) * NEGLIGIBLE;
                    let found = if *expected < NEGLIGIBLE { *expected } else { *found };
                    prop_assert!((-1e-9..most + 1e-9).contains(&(found - expected)), "{found} {expected} {around}");
                }
                prop_assert!((all.iter().map(|(probability, _)| probability).sum::<f64>() - 1.0).abs() < 1e-9);
                let odds = |p: f64| libm::log(p / (1.0 - p));
                let value = |ends: &[u32]| -> f64 {
                    ends[..ends.len() - 1].iter().map(|&at| odds(own[at as usize - 1]) - odds(threshold)).sum()
                };
                for ((probability, ends), next) in all.iter().zip(all[1..].iter().map(Some).chain([None])) {
                    let each = (1..).zip(&own).map(|(at, p)| if ends.contains(&at) { *p } else { 1.0 - p });
                    prop_assert!((probability - each.product::<f64>()).abs() < 1e-9);
                    next.into_iter().for_each(|(_, next)| assert!(value(ends) > value(next) - 1e-9));
                }
            }
        }
    }

    #[test]
    fn sentences_without_positions_and_with_new_symbols_are_read() {
        let none = learn(&[]);
        assert_eq!(none.probabilities(&[]), [] as [f64; 0]);
        assert_eq!(none.probabilities(&[1, 2]), [0.5]);
        assert_eq!(none.n_best(&[1], 0.3, 2), [(1.0, vec![1])]);
        let one = learn(&[(vec![0, 1], vec![1.0]), (vec![0, 1], vec![1.0])]);
        assert!(
            one.probabilities(&[7, 7])[0] > 0.5
                && one.probabilities(&[0, 1])[0] > one.probabilities(&[7, 7])[0]
        );
        assert!(one.is_finite());
    }
}
