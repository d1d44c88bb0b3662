//! What a list of sentences, none of them annotated, says about a position between two symbols: how many symbols can follow what stands before it,
//! and how evenly, and likewise in the other direction (Harris 1955; Tanaka-Ishii 2005).
//!
//! In: sentences; of equal ones, one counts. Out: for each position and side a [`Branching`].

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use crate::stop;

/// Symbols of the longest context of an entropy.
pub const DEPTH: usize = 5;
/// The edge of a sentence, which counts as a symbol.
pub const EDGE: u32 = u32::MAX;

/// What stands on one side of a position, and what it says about the symbol on the other side.
#[derive(Clone, PartialEq, Debug)]
pub struct Branching {
    /// Entropy of that symbol, in nats, given the nearest symbol, the two nearest, and so on up to [`DEPTH`] or the edge.
    pub entropies: Vec<f64>,
    /// Number of distinct symbols there, given everything on the side up to the edge.
    pub variety: u32,
}

/// Statistics of a list of sentences, by side: before a position, after it.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct Statistics([Contexts; 2]);

/// Contexts on one side that leave a choice.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
struct Contexts {
    /// By symbols, nearest to the position first: entropies above zero.
    entropies: BTreeMap<Vec<u32>, f64>,
    /// By everything from the edge to the position: varieties above one.
    varieties: BTreeMap<Vec<u32>, u32>,
}

impl Statistics {
    /// Statistics of sentences of symbols, in time n log n of their length.
    pub fn of<'a>(sentences: impl IntoIterator<Item = &'a [u32]>) -> Statistics {
        let forward: BTreeSet<Vec<u32>> = sentences.into_iter().map(<[u32]>::to_vec).collect();
        let backward: BTreeSet<Vec<u32>> = forward.iter().map(|sentence| reversed(sentence)).collect();
        let side = |outward: &BTreeSet<Vec<u32>>, inward: &BTreeSet<Vec<u32>>| Contexts {
            entropies: entropies(outward),
            varieties: varieties(inward),
        };
        Statistics([side(&backward, &forward), side(&forward, &backward)])
    }

    /// Whether all entropies are finite.
    pub fn is_finite(&self) -> bool {
        self.0.iter().flat_map(|contexts| contexts.entropies.values()).all(|entropy| entropy.is_finite())
    }

    /// What stands before and after each position between two symbols of a sentence.
    pub fn positions(&self, sentence: &[u32]) -> Vec<[Branching; 2]> {
        let n = sentence.len();
        let (inward, outward) = (reversed(sentence), sentence);
        let before = |at: usize| self.0[0].branching(&inward[n - at..], &outward[..at]);
        let after = |at: usize| self.0[1].branching(&outward[at..], &inward[..n - at]);
        (1..n).map(|at| [before(at), after(at)]).collect()
    }
}

impl Contexts {
    /// Of what stands on the side, read from the position and from the edge.
    fn branching(&self, from_position: &[u32], from_edge: &[u32]) -> Branching {
        let context: Vec<u32> = from_position.iter().copied().chain([EDGE]).take(DEPTH).collect();
        let entropy = |n| self.entropies.get(&context[..n]).copied().unwrap_or_default();
        Branching {
            entropies: (1..=context.len()).map(entropy).collect(),
            variety: self.varieties.get(from_edge).copied().unwrap_or(1),
        }
    }
}

fn reversed(sentence: &[u32]) -> Vec<u32> {
    sentence.iter().rev().copied().collect()
}

/// Entropies of the symbol before each run of up to [`DEPTH`] symbols in sentences.
fn entropies(sentences: &BTreeSet<Vec<u32>>) -> BTreeMap<Vec<u32>, f64> {
    let padded: Vec<Vec<u32>> =
        sentences.iter().map(|sentence| [&[EDGE], &sentence[..], &[EDGE]].concat()).collect();
    let mut places: Vec<(&[u32], u32)> = Vec::new();
    for sentence in &padded {
        stop::check();
        places.extend((1..sentence.len()).map(|at| (&sentence[at..], sentence[at - 1])));
    }
    let of_place = |(after, before): (&[u32], u32)| -> (Vec<u32>, u32) {
        (after[..after.len().min(DEPTH)].to_vec(), before)
    };
    let mut places: Vec<(Vec<u32>, u32)> = places.into_iter().map(of_place).collect();
    places.sort_unstable();
    let mut found = BTreeMap::new();
    for depth in 1..=DEPTH {
        for run in places.chunk_by(|(one, _), (other, _)| one.get(..depth) == other.get(..depth)) {
            stop::check();
            let Some(context) = run[0].0.get(..depth) else { continue };
            let mut counts: BTreeMap<u32, u32> = BTreeMap::new();
            run.iter().for_each(|&(_, symbol)| *counts.entry(symbol).or_default() += 1);
            if counts.len() > 1 {
                let share = |&n: &u32| f64::from(n) / run.len() as f64;
                let entropy: f64 = counts.values().map(share).map(|p| -p * libm::log(p)).sum();
                found.insert(context.to_vec(), entropy);
            }
        }
    }
    found
}

/// Numbers of distinct symbols after each begin of sentences: each two neighbours in order add one to what they have in common.
fn varieties(sentences: &BTreeSet<Vec<u32>>) -> BTreeMap<Vec<u32>, u32> {
    let mut found = BTreeMap::new();
    for (one, other) in sentences.iter().zip(sentences.iter().skip(1)) {
        let n_common = one.iter().zip(other).take_while(|(a, b)| a == b).count();
        *found.entry(one[..n_common].to_vec()).or_insert(1) += 1;
    }
    found
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// Law: entropy and variety are those of the symbols that stand beside a context in the distinct sentences, counted one by one.
        #[test]
        fn contexts_are_counted(sentences in prop::collection::vec(prop::collection::vec(0..3_u32, 1..9), 1..20)) {
            let statistics = Statistics::of(sentences.iter().map(Vec::as_slice));
            let distinct: BTreeSet<&Vec<u32>> = sentences.iter().collect();
            let padded = |sentence: &[u32]| [&[EDGE], sentence, &[EDGE]].concat();
            for sentence in &sentences {
                let whole = padded(sentence);
                for (found, at) in statistics.positions(sentence).iter().zip(2..) {
                    for (side, Branching { entropies, variety }) in found.iter().enumerate() {
                        let here = if side == 0 { at } else { whole.len() - at };
                        prop_assert_eq!(entropies.len(), here.min(DEPTH));
                        for (&entropy, n) in entropies.iter().zip(1..) {
                            let mut counts = BTreeMap::<u32, f64>::new();
                            for other in distinct.iter().map(|other| padded(other)) {
                                let places = (1..other.len()).filter_map(|place| match side {
                                    0 => (place >= n && other[place - n..place] == whole[at - n..at]).then(|| other[place]),
                                    _ => (other.get(place..place + n) == Some(&whole[at..at + n])).then(|| other[place - 1]),
                                });
                                places.for_each(|symbol| *counts.entry(symbol).or_default() += 1.0);
                            }
                            let n_all: f64 = counts.values().sum();
                            let expected: f64 = counts.values().map(|c| -c / n_all * libm::log(c / n_all)).sum();
                            prop_assert!((entropy - expected).abs() < 1e-12, "{entropy} {expected}");
                        }
                        let beside: BTreeSet<u32> = distinct.iter().map(|other| padded(other)).filter_map(|other| match side {
                            0 => other.starts_with(&whole[..at]).then(|| other[at]),
                            _ => other.ends_with(&whole[at..]).then(|| other[other.len() - (whole.len() - at) - 1]),
                        }).collect();
                        prop_assert_eq!(*variety as usize, beside.len());
                    }
                }
            }
        }
    }
}
