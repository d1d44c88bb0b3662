//! Decoding from samples: what most of them say.
//!
//! Two answers per sentence, over the samples of any number of chains: the *sample average*, the tree that most samples have, and
//! *maximum marginal*, the segmentation that most have, whatever the trees (Johnson & Goldwater 2009). Of equals in number
//! the one that comes first in order wins, so that nothing depends on who was counted first: of trees by their brackets, of
//! segmentations by their ends.
//!
//! Trees are counted by their hashes, since most samples of a long sentence differ; only the tree of most samples so far is kept. A segmentation is kept as a
//! bit for each token, since many chains keep many samples of many sentences.

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

/// The first bytes of the hash of a tree's brackets.
type TreeHash = [u8; 8];

/// The samples of one sentence.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Tally {
    /// Hashes of the brackets of trees, ascending, each with the number of its samples.
    trees: Vec<(TreeHash, u32)>,
    /// The tree of most samples, of equals the first; empty without samples.
    tree: String,
    /// Tokens of the sentence; 0 without samples.
    n_tokens: u32,
    /// The segmentations, by the ends of their segments: each has a bit for every token, set if a segment ends with it, the first one highest, in so many
    /// bytes as it needs.
    segmentations: Vec<u8>,
    /// Number of samples with each segmentation.
    n_samples: Vec<u32>,
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
        let most = self.n_of_tree(&self.tree);
        let hash = hash(&sample.tree);
        let at = self.trees.binary_search_by_key(&hash, |&(hash, _)| hash).unwrap_or_else(|at| {
            self.trees.insert(at, (hash, 0));
            at
        });
        self.trees[at].1 += 1;
        let n = self.trees[at].1;
        if n > most || n == most && sample.tree < self.tree {
            self.tree = sample.tree.clone();
        }
        self.n_tokens = sample.ends.last().copied().unwrap_or_default();
        let bits = bits(&sample.ends);
        let at = self.place(&bits);
        if at == self.n_samples.len() || self.bits(at) != bits {
            let start = at * self.width();
            self.segmentations.splice(start..start, bits);
            self.n_samples.insert(at, 0);
        }
        self.n_samples[at] += 1;
    }

    /// Number of samples of a tree.
    fn n_of_tree(&self, tree: &str) -> u32 {
        let found = self.trees.binary_search_by_key(&hash(tree), |&(hash, _)| hash);
        found.map_or(0, |at| self.trees[at].1)
    }

    /// Bytes of a segmentation.
    fn width(&self) -> usize {
        width(self.n_tokens)
    }

    /// The bits of segmentation number `at`.
    fn bits(&self, at: usize) -> &[u8] {
        &self.segmentations[at * self.width()..][..self.width()]
    }

    /// The place of a segmentation among all others. Of two, that is first whose segment ends first where they differ.
    fn place(&self, bits: &[u8]) -> usize {
        let (mut first, mut end) = (0, self.n_samples.len());
        while first < end {
            let middle = first.midpoint(end);
            if self.bits(middle) > bits {
                first = middle + 1;
            } else {
                end = middle;
            }
        }
        first
    }

    /// Checks that all samples are of a sentence of so many tokens.
    pub fn check(&self, n_tokens: usize) -> Result<(), TallyError> {
        let n = |samples: &mut dyn Iterator<Item = u32>| samples.map(u64::from).sum::<u64>();
        let n_trees = n(&mut self.trees.iter().map(|&(_, n)| n));
        let n_segmentations = n(&mut self.n_samples.iter().copied());
        if n_trees != n_segmentations || u32::try_from(n_trees).is_err() {
            return Err(TallyError::Numbers { n_trees, n_segmentations });
        }
        let is_of_sentence = || {
            let n = self.n_samples.len();
            let last = |at: usize| ends(self.bits(at)).last().unwrap_or_default();
            self.n_tokens as usize == n_tokens
                && Some(self.segmentations.len()) == n.checked_mul(self.width())
                && (1..n).all(|at| self.bits(at - 1) > self.bits(at))
                && (0..n).all(|at| last(at) == self.n_tokens)
        };
        let is_tree = || {
            Tree::parse(&self.tree).is_ok_and(|tree| tree.terminals().count() == n_tokens)
                && self.trees.is_sorted_by_key(|&(hash, _)| hash)
                && Some(self.n_of_tree(&self.tree)) == self.trees.iter().map(|&(_, n)| n).max()
        };
        if self.is_empty() && self.segmentations.is_empty() || is_of_sentence() && is_tree() {
            Ok(())
        } else {
            Err(TallyError::Foreign { n_tokens })
        }
    }

    /// Number of samples.
    pub fn len(&self) -> u32 {
        self.n_samples.iter().sum()
    }

    /// Whether there are no samples.
    pub fn is_empty(&self) -> bool {
        self.n_samples.is_empty()
    }

    /// The segmentations of the samples, as the ends of their segments, each with the number of its samples.
    pub fn segmentations(&self) -> impl Iterator<Item = (impl Iterator<Item = u32>, u32)> {
        self.n_samples.iter().enumerate().map(|(at, &n)| (ends(self.bits(at)), n))
    }

    /// Sample average: the tree of most samples.
    pub fn tree(&self) -> Option<&str> {
        (!self.is_empty()).then_some(&self.tree)
    }

    /// Maximum marginal: the segmentation of most samples, as the ends of its segments.
    pub fn segmentation(&self) -> Option<Vec<u32>> {
        let most = self.n_samples.iter().max()?;
        let at = self.n_samples.iter().position(|n| n == most)?;
        Some(ends(self.bits(at)).collect())
    }
}

fn hash(tree: &str) -> TreeHash {
    let hash = blake3::hash(tree.as_bytes());
    std::array::from_fn(|at| hash.as_bytes()[at])
}

/// Bytes of a segmentation of so many tokens.
fn width(n_tokens: u32) -> usize {
    n_tokens.div_ceil(8) as usize
}

/// The segmentation with these ends.
fn bits(ends: &[u32]) -> Vec<u8> {
    let mut bits = vec![0; width(ends.last().copied().unwrap_or_default())];
    for token in ends.iter().map(|end| end - 1) {
        bits[token as usize / 8] |= 0x80 >> (token % 8);
    }
    bits
}

/// The ends of a segmentation.
fn ends(bits: &[u8]) -> impl Iterator<Item = u32> {
    let tokens =
        (0..8 * bits.len() as u32).filter(|&token| bits[token as usize / 8] & 0x80 >> (token % 8) != 0);
    tokens.map(|token| token + 1)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

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
            (Some("(S (W a b))"), Some(vec![1, 2]), 5)
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
        let mut swapped = tally(&["(S (W a b))", "(S (W a) (W b))"]);
        swapped.segmentations.reverse();
        let cut = Tally { segmentations: vec![0x80], ..tally(&SAMPLES) };
        let longer = Tally { n_tokens: u32::MAX, ..tally(&SAMPLES) };
        for other in [swapped, cut, longer] {
            assert_eq!(other.check(2), foreign(2), "{other:?}");
        }
        let fewer = Tally { trees: tally(&SAMPLES[1..]).trees, ..tally(&SAMPLES) };
        assert_eq!(fewer.check(2), Err(TallyError::Numbers { n_trees: 4, n_segmentations: 5 }));
    }

    proptest! {
        /// Law: segmentations come back as they were, in the order of their ends, each with the number of its samples.
        #[test]
        fn segmentations_come_back(samples in prop::collection::vec(prop::collection::btree_set(1..21_u32, 0..6), 1..30)) {
            let (mut tally, mut expected) = (Tally::default(), BTreeMap::new());
            for mut ends in samples {
                ends.insert(21);
                let ends: Vec<u32> = ends.into_iter().collect();
                tally.add(&Analysis { ends: ends.clone(), tree: format!("(S{})", " a".repeat(21)) });
                *expected.entry(ends).or_insert(0) += 1;
            }
            prop_assert_eq!(tally.check(21), Ok(()));
            let found = tally.segmentations().map(|(ends, n)| (ends.collect::<Vec<_>>(), n));
            prop_assert_eq!(found.collect::<Vec<_>>(), expected.into_iter().collect::<Vec<_>>());
        }
    }

    #[test]
    fn the_first_of_equals_wins() {
        assert_eq!(tally(&["(S (W a b))", "(S (W a) (W b))"]).segmentation(), Some(vec![1, 2]));
        assert_eq!(tally(&["(S (W a) (W b))", "(S (W a b))"]).tree(), Some("(S (W a b))"));
        assert_eq!((Tally::default().tree(), Tally::default().segmentation()), (None, None));
    }
}
