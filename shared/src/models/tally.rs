//! Decoding from samples: what most of them say.
//!
//! Two answers per sentence, over the samples of any number of chains: the *sample average*, the tree that most samples have, and
//! *maximum marginal*, the segmentation that most have, whatever the trees (Johnson & Goldwater 2009). Of equals in number
//! the one that comes first in order wins, so that nothing depends on who was counted first: of trees by their brackets, of
//! segmentations by their ends.
//!
//! Trees are counted by their hashes, since most samples of a long sentence differ; only the tree of most samples so far is kept.

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

/// The first half of the hash of a tree's brackets.
type TreeHash = [u8; 16];

/// The samples of one sentence.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Tally {
    /// Number of samples with a tree, by the hash of its brackets.
    trees: BTreeMap<TreeHash, u32>,
    /// The tree of most samples, of equals the first; empty without samples.
    tree: String,
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
    /// The tree or a segmentation is of another length, or another tree has more samples.
    #[error("a tree or segmentation is not of its sentence of {n_tokens} tokens")]
    Foreign {
        /// Tokens of the sentence.
        n_tokens: usize,
    },
}

impl Tally {
    /// Counts a sample.
    pub fn add(&mut self, sample: &Analysis) {
        let most = self.trees.get(&hash(&self.tree)).copied().unwrap_or_default();
        let n = self.trees.entry(hash(&sample.tree)).or_default();
        *n += 1;
        if *n > most || *n == most && sample.tree < self.tree {
            self.tree.clone_from(&sample.tree);
        }
        *self.segmentations.entry(sample.ends.clone()).or_default() += 1;
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
        let is_tree = || {
            Tree::parse(&self.tree).is_ok_and(|tree| tree.terminals().count() == n_tokens)
                && self.trees.get(&hash(&self.tree)) == self.trees.values().max()
        };
        if self.segmentations.keys().all(is_segmentation) && (self.is_empty() || is_tree()) {
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
        (!self.is_empty()).then_some(&self.tree)
    }

    /// Maximum marginal: the segmentation of most samples, as the ends of its segments.
    pub fn segmentation(&self) -> Option<&[u32]> {
        let most = self.segmentations.values().max()?;
        self.segmentations.iter().find(|(_, n)| *n == most).map(|(ends, _)| &ends[..])
    }
}

fn hash(tree: &str) -> TreeHash {
    let hash = blake3::hash(tree.as_bytes());
    std::array::from_fn(|at| hash.as_bytes()[at])
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn tally(trees: &[&str]) -> Tally {
        let mut tally = Tally::default();
        for text in trees {
            let ends = Tree::parse(text).unwrap().segment_ends(|label| label == "W");
            tally.add(&Analysis { ends, tree: (*text).to_owned() });
        }
        tally
    }

    const SAMPLES: [&str; 5] =
        ["(S (W a b))", "(S (W a b))", "(S (W (X a)) (W b))", "(S (W a) (W b))", "(S (W a) (W (X b)))"];

    #[test]
    fn trees_and_segmentations_have_their_own_majorities() {
        let whole = tally(&SAMPLES);
        assert_eq!(
            (whole.tree(), whole.segmentation(), whole.len()),
            (Some("(S (W a b))"), Some([1, 2].as_slice()), 5)
        );
    }

    proptest! {
        /// Law: whatever the order of the samples, the tree is one that most of them have, of equals the first by its brackets.
        #[test]
        fn the_order_of_samples_does_not_matter(samples in prop::collection::vec(0..SAMPLES.len(), 1..12)) {
            let trees: Vec<&str> = samples.iter().map(|&at| SAMPLES[at]).collect();
            let n_of = |tree: &str| trees.iter().filter(|other| **other == tree).count();
            let expected = trees.iter().copied().min_by_key(|tree| (std::cmp::Reverse(n_of(tree)), *tree));
            let found = tally(&trees);
            prop_assert_eq!(found.tree(), expected);
            prop_assert_eq!(found.check(2), Ok(()));
            let mut sorted = trees.clone();
            sorted.sort_unstable();
            prop_assert_eq!(tally(&sorted), found);
        }
    }

    /// Law: a tally is of sentences of one length, and its tree is one of most samples.
    #[test]
    fn what_is_no_tally_is_refused() {
        let foreign = |n_tokens| Err(TallyError::Foreign { n_tokens });
        assert_eq!(Tally::default().check(0), Ok(()));
        assert_eq!(tally(&SAMPLES).check(3), foreign(3));
        for tree in ["(S (W a) (W b))", "(S a b)", "(S (W a b)", ""] {
            let other = Tally { tree: tree.to_owned(), ..tally(&SAMPLES) };
            assert_eq!(other.check(2), foreign(2), "{tree}");
        }
        let fewer = Tally { trees: tally(&SAMPLES[1..]).trees, ..tally(&SAMPLES) };
        assert_eq!(fewer.check(2), Err(TallyError::Numbers { n_trees: 4, n_segmentations: 5 }));
    }

    #[test]
    fn the_first_of_equals_wins() {
        assert_eq!(tally(&["(S (W a b))", "(S (W a) (W b))"]).segmentation(), Some([1, 2].as_slice()));
        assert_eq!(tally(&["(S (W a) (W b))", "(S (W a b))"]).tree(), Some("(S (W a b))"));
        assert_eq!((Tally::default().tree(), Tally::default().segmentation()), (None, None));
    }
}
