//! Decoding from samples: what most of them say.
//!
//! Three answers per sentence, over the samples of any number of chains: the *sample average*, the tree that most samples have;
//! *maximum marginal*, the segmentation that most have, whatever the trees (Johnson & Goldwater 2009); and *minimum risk*, the segmentation
//! with the highest expected number of correct segments (Goodman 1996, over samples), which no sample need have. Of equals in number
//! the one that comes first in order wins, so that nothing depends on who was counted first: of trees by their brackets, of
//! segmentations by their ends; of minimum risk, the one with fewer segments.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::grammar::tree::Tree;

/// A tree of a sentence.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
pub struct Analysis {
    /// End positions of the segments, ascending, the last one the sentence's length.
    pub ends: Vec<u32>,
    /// Bracketed.
    pub tree: String,
}

impl Analysis {
    /// Bytes on the heap.
    pub fn size(&self) -> usize {
        size_of_val(&self.ends[..]) + self.tree.len()
    }
}

/// The samples of one sentence.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Tally {
    /// How many samples have a tree, by its brackets.
    trees: BTreeMap<String, u32>,
    /// How many samples have a segmentation, by the ends of its segments.
    segmentations: BTreeMap<Vec<u32>, u32>,
}

/// Why a [`Tally`] is not of a sentence.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum TallyError {
    /// Trees are not as many as segmentations, or too many.
    #[error("a sentence has {n_trees} trees and {n_segmentations} segmentations")]
    Numbers {
        /// Samples of the tree.
        n_trees: u64,
        /// Samples of the segmentation.
        n_segmentations: u64,
    },
    /// A tree or a segmentation is of another length.
    #[error("a tree or segmentation is not of its sentence of {n_tokens} tokens")]
    Foreign {
        /// Tokens of the sentence.
        n_tokens: usize,
    },
}

impl Tally {
    /// Counts a sample.
    pub fn add(&mut self, sample: &Analysis) {
        *self.trees.entry(sample.tree.clone()).or_default() += 1;
        *self.segmentations.entry(sample.ends.clone()).or_default() += 1;
    }

    /// Counts the samples of another chain.
    pub fn merge(&mut self, other: Tally) {
        other.trees.into_iter().for_each(|(tree, n)| *self.trees.entry(tree).or_default() += n);
        other
            .segmentations
            .into_iter()
            .for_each(|(ends, n)| *self.segmentations.entry(ends).or_default() += n);
    }

    /// Checks that all samples are of a sentence of so many tokens.
    pub fn check(&self, n_tokens: usize) -> Result<(), TallyError> {
        let n = |samples: &mut dyn Iterator<Item = &u32>| samples.map(|&n| u64::from(n)).sum::<u64>();
        let (n_trees, n_segmentations) = (n(&mut self.trees.values()), n(&mut self.segmentations.values()));
        if n_trees != n_segmentations || u32::try_from(n_trees).is_err() {
            return Err(TallyError::Numbers { n_trees, n_segmentations });
        }
        let is_segmentation = |ends: &Vec<u32>| {
            ends.is_sorted_by(|a, b| a < b)
                && ends.first() != Some(&0)
                && ends.last().copied().unwrap_or(0) as usize == n_tokens
        };
        let is_tree =
            |tree: &String| Tree::parse(tree).is_ok_and(|tree| tree.terminals().count() == n_tokens);
        match self.segmentations.keys().all(is_segmentation) && self.trees.keys().all(is_tree) {
            true => Ok(()),
            false => Err(TallyError::Foreign { n_tokens }),
        }
    }

    /// Number of samples.
    pub fn len(&self) -> u32 {
        self.segmentations.values().sum()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.segmentations.is_empty()
    }

    /// Sample average: the tree of most samples.
    pub fn tree(&self) -> Option<&str> {
        mode(&self.trees).map(String::as_str)
    }

    /// Maximum marginal: the segmentation of most samples, as the ends of its segments.
    pub fn segmentation(&self) -> Option<&[u32]> {
        mode(&self.segmentations).map(Vec::as_slice)
    }

    /// Minimum risk: of the segmentations into segments that occur in samples, the one whose segments have the highest sum of sample
    /// counts, as the ends of its segments.
    pub fn minimum_risk(&self) -> Option<Vec<u32>> {
        let mut counts: BTreeMap<(u32, u32), u64> = BTreeMap::new();
        for (ends, &n) in &self.segmentations {
            let starts = [0].iter().chain(ends);
            ends.iter().zip(starts).for_each(|(&end, &start)| {
                *counts.entry((end, start)).or_default() += u64::from(n);
            });
        }
        // By end: the highest sum so far, the number of segments, and the start of the last one. Segments in order of their ends.
        let mut best: BTreeMap<u32, (u64, Reverse<u32>, u32)> = BTreeMap::from([(0, (0, Reverse(0), 0))]);
        for ((end, start), n) in counts {
            let (sum, Reverse(segments), _) = best[&start];
            let found = (sum + n, Reverse(segments + 1), start);
            let known = best.entry(end).or_insert(found);
            *known = found.max(*known);
        }
        let mut end = *self.segmentations.keys().next()?.last()?;
        let mut ends = Vec::new();
        while end > 0 {
            ends.push(end);
            end = best[&end].2;
        }
        ends.reverse();
        Some(ends)
    }
}

/// The key with the largest number, the first of equals.
fn mode<K: Ord>(counts: &BTreeMap<K, u32>) -> Option<&K> {
    let best = counts.values().max()?;
    counts.iter().find(|(_, n)| *n == best).map(|(key, _)| key)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::grammar::tree::Tree;

    fn tally(trees: &[&str]) -> Tally {
        let mut tally = Tally::default();
        for text in trees {
            let ends = Tree::parse(text).unwrap().segment_ends(|label| label == "W");
            tally.add(&Analysis { ends, tree: (*text).to_owned() });
        }
        tally
    }

    #[test]
    fn trees_and_segmentations_have_their_own_majorities() {
        let samples =
            ["(S (W a b))", "(S (W a b))", "(S (W (X a)) (W b))", "(S (W a) (W b))", "(S (W a) (W (X b)))"];
        let whole = tally(&samples);
        assert_eq!(
            (whole.tree(), whole.segmentation(), whole.len()),
            (Some("(S (W a b))"), Some([1, 2].as_slice()), 5)
        );
        let mut merged = tally(&samples[3..]);
        merged.merge(tally(&samples[..3]));
        assert_eq!(merged, whole);
    }

    /// Segmentations of five tokens, each with its number of samples, by sets of inner boundaries.
    fn segmented(samples: &[(u32, u32)]) -> Tally {
        let ends = |boundaries: u32| (1..5).filter(|at| boundaries >> (at - 1) & 1 == 1).chain([5]).collect();
        let mut tally = Tally::default();
        for &(boundaries, n) in samples {
            tally.segmentations.insert(ends(boundaries), n);
        }
        tally
    }

    #[test]
    fn minimum_risk_is_the_best_of_all_segmentations() {
        let mut differ = 0;
        for seed in 0..200u32 {
            let sample = |at: u32| ((seed * 7 + at * 5 + seed / 3 * at) % 16, 1 + (seed + at * at) % 4);
            let tally = segmented(&[sample(1), sample(2), sample(3), sample(4)]);
            let segments = |ends: &[u32]| -> Vec<(u32, u32)> {
                [0].iter().chain(ends).copied().zip(ends.iter().copied()).collect()
            };
            let expected = |ends: &[u32]| -> (u64, Reverse<usize>) {
                let wanted = segments(ends);
                let in_sample = |(sample, &n): (&Vec<u32>, &u32)| {
                    let common = segments(sample).iter().filter(|segment| wanted.contains(segment)).count();
                    common as u64 * u64::from(n)
                };
                (tally.segmentations.iter().map(in_sample).sum(), Reverse(ends.len()))
            };
            let found = tally.minimum_risk().unwrap();
            let occurs =
                |segment: &(u32, u32)| tally.segmentations.keys().any(|s| segments(s).contains(segment));
            let all =
                (0..16).map(|boundaries| segmented(&[(boundaries, 1)]).segmentation().unwrap().to_vec());
            let all = all.filter(|ends| segments(ends).iter().all(occurs));
            let best = all.map(|ends| expected(&ends)).max().unwrap();
            assert_eq!(expected(&found), best, "{tally:?}: {found:?}");
            differ += usize::from(Some(&found[..]) != tally.segmentation());
        }
        assert!(differ > 10, "it is not the maximum marginal");
        assert_eq!(Tally::default().minimum_risk(), None);
    }

    #[test]
    fn of_equals_the_first_in_order_wins() {
        assert_eq!(tally(&["(S (W a b))", "(S (W a) (W b))"]).segmentation(), Some([1, 2].as_slice()));
        assert_eq!(tally(&["(S (W a) (W b))", "(S (W a b))"]).tree(), Some("(S (W a b))"));
        assert_eq!((Tally::default().tree(), Tally::default().segmentation()), (None, None));
    }
}
