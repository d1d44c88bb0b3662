//! Decoding from samples: what most of them say.
//!
//! Two answers per sentence, over the samples of any number of chains: the *sample average*, the tree that most samples have, and
//! *maximum marginal*, the segmentation that most have, whatever the trees (Johnson & Goldwater 2009). Of equals in number
//! the one that comes first in order wins, so that nothing depends on who was counted first: of trees by their brackets, of
//! segmentations by their ends.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::grammar::tree::Tree;

/// A tree of a sentence.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
pub struct Analysis {
    /// End positions of the segments, ascending, the last one the sentence's length.
    pub ends: Vec<u32>,
    /// The tree in brackets.
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
    /// Number of samples with a tree, by its brackets.
    trees: BTreeMap<String, u32>,
    /// Number of samples with a segmentation, by the ends of its segments.
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
        if self.segmentations.keys().all(is_segmentation) && self.trees.keys().all(is_tree) {
            Ok(())
        } else {
            Err(TallyError::Foreign { n_tokens })
        }
    }

    /// Number of samples.
    pub fn len(&self) -> u32 {
        self.segmentations.values().sum()
    }

    /// Whether there are no samples.
    pub fn is_empty(&self) -> bool {
        self.segmentations.is_empty()
    }

    /// The segmentations of the samples, as the ends of their segments, each with the number of its samples.
    pub fn segmentations(&self) -> impl Iterator<Item = (&[u32], u32)> {
        self.segmentations.iter().map(|(ends, &n)| (&ends[..], n))
    }

    /// Sample average: the tree of most samples.
    pub fn tree(&self) -> Option<&str> {
        mode(&self.trees).map(String::as_str)
    }

    /// Maximum marginal: the segmentation of most samples, as the ends of its segments.
    pub fn segmentation(&self) -> Option<&[u32]> {
        mode(&self.segmentations).map(Vec::as_slice)
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

    #[test]
    fn the_first_of_equals_wins() {
        assert_eq!(tally(&["(S (W a b))", "(S (W a) (W b))"]).segmentation(), Some([1, 2].as_slice()));
        assert_eq!(tally(&["(S (W a) (W b))", "(S (W a b))"]).tree(), Some("(S (W a b))"));
        assert_eq!((Tally::default().tree(), Tally::default().segmentation()), (None, None));
    }
}
