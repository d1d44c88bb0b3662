//! Where the weights of split rules stand in one flat vector.
//!
//! In: the rules of a treebank and the number of subtypes. Out: a [`Block`] per rule, in rule order and without gaps, so that the
//! blocks of one parent are neighbours. A block has the shape `[parent][left][right]`, with 1 for a child that is not there, so
//! that binary, unary and lexical rules are read by the same loops.
//!
//! A *group* is what one distribution is over: all entries with the same label and subtype of the parent. ROOT is not split.

use crate::data::treebank::{LabelId, Rule, Rules};
use crate::limits::MAX_SPLIT_WEIGHTS;

/// The most subtypes that a label can have: a binary rule has their cube of weights.
pub const MAX_SUBTYPES: usize = 64;

/// Too many weights of split rules.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error(
    "{n_rules} rules with {n_subtypes} subtypes of every label have {found} weights, expected at most {MAX_SPLIT_WEIGHTS}; lower \
     inference.subtypes, or train on fewer trees"
)]
pub struct TooManyWeights {
    /// Rules of the treebank.
    pub n_rules: usize,
    /// Subtypes of a label.
    pub n_subtypes: usize,
    /// Number of weights.
    pub found: usize,
}

/// The weights of one rule.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Block {
    /// First index.
    pub start: usize,
    /// Subtypes of the parent.
    pub n_parent: usize,
    /// Subtypes of the left or only child, 1 if it is a word.
    pub n_left: usize,
    /// Subtypes of the right child, 1 if there is none.
    pub n_right: usize,
    /// Number of children that are labels.
    pub n_children: usize,
    /// Group of the parent's first subtype.
    pub group: usize,
}

impl Block {
    /// Number of entries.
    pub fn n_entries(&self) -> usize {
        self.n_parent * self.row()
    }

    /// Number of entries with the same subtype of the parent.
    pub fn row(&self) -> usize {
        self.n_left * self.n_right
    }
}

/// The blocks of all rules.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Layout {
    /// Block of each rule.
    pub blocks: Vec<Block>,
    /// Number of entries of each group. `[n_groups]`
    pub group_sizes: Vec<usize>,
    n_subtypes: usize,
    root: LabelId,
}

impl Layout {
    /// Whether `rules`, with labels split in `n_subtypes`, have no more weights than [`MAX_SPLIT_WEIGHTS`].
    ///
    /// # Errors
    /// [`TooManyWeights`] otherwise.
    pub fn check(rules: &Rules, n_subtypes: usize) -> Result<(), TooManyWeights> {
        let root = rules.root();
        let n_subtypes_of = |label| if label == root { 1 } else { n_subtypes };
        let n_weights = |rule: &Rule| -> usize {
            std::iter::once(rule.parent).chain(rule.right.labels()).map(n_subtypes_of).product()
        };
        let found: usize = rules.rules.iter().map(n_weights).sum();
        if found > MAX_SPLIT_WEIGHTS {
            return Err(TooManyWeights { n_rules: rules.rules.len(), n_subtypes, found });
        }
        Ok(())
    }

    /// The layout of `rules` with labels split in `n_subtypes`.
    ///
    /// # Panics
    /// If their number is 0, or more than [`MAX_SUBTYPES`].
    pub fn new(rules: &Rules, n_subtypes: usize) -> Layout {
        assert!((1..=MAX_SUBTYPES).contains(&n_subtypes), "a label has 1 to {MAX_SUBTYPES} subtypes");
        let root = rules.root();
        let mut layout = Layout { blocks: Vec::new(), group_sizes: Vec::new(), n_subtypes, root };
        let mut first_groups = Vec::new();
        for label in (0..rules.labels.len() as u32).map(LabelId) {
            first_groups.push(layout.group_sizes.len());
            let n_groups = layout.group_sizes.len() + layout.n_subtypes_of(label);
            layout.group_sizes.resize(n_groups, 0);
        }
        let mut start = 0;
        for rule in &rules.rules {
            let mut children = rule.right.labels().map(|label| layout.n_subtypes_of(label));
            let (left, right) = (children.next(), children.next());
            let block = Block {
                start,
                n_parent: layout.n_subtypes_of(rule.parent),
                n_left: left.unwrap_or(1),
                n_right: right.unwrap_or(1),
                n_children: usize::from(left.is_some()) + usize::from(right.is_some()),
                group: first_groups[rule.parent.index()],
            };
            start += block.n_entries();
            let groups = block.group..block.group + block.n_parent;
            layout.group_sizes[groups].iter_mut().for_each(|size| *size += block.row());
            layout.blocks.push(block);
        }
        layout
    }

    /// Number of subtypes of all labels but the root.
    pub fn n_subtypes(&self) -> usize {
        self.n_subtypes
    }

    /// Number of subtypes of a label.
    pub fn n_subtypes_of(&self, label: LabelId) -> usize {
        if label == self.root { 1 } else { self.n_subtypes }
    }

    /// Number of entries of all blocks.
    pub fn n_params(&self) -> usize {
        self.blocks.last().map_or(0, |block| block.start + block.n_entries())
    }

    /// The rows of all blocks, in order: their group, and where their entries stand.
    pub fn rows(&self) -> impl Iterator<Item = (usize, std::ops::Range<usize>)> + '_ {
        self.blocks.iter().flat_map(|block| {
            (0..block.n_parent).map(move |parent| {
                let start = block.start + parent * block.row();
                (block.group + parent, start..start + block.row())
            })
        })
    }

    /// Sums of `values` by group. `[n_groups]`
    pub fn group_sums(&self, values: &[f64]) -> Vec<f64> {
        let mut sums = vec![0.0; self.group_sizes.len()];
        self.rows().for_each(|(group, row)| sums[group] += values[row].iter().sum::<f64>());
        sums
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::treebank::{Classes, Treebank};
    use crate::grammar::tree::Tree;

    #[test]
    fn blocks_follow_each_other_and_groups_are_whole() {
        let tree = Tree::parse("(ROOT (S (N a) (V (N b) (X b))))").unwrap();
        let rules = Treebank::new(&[tree], 0, Classes::Generic).rules;
        let layout = Layout::new(&rules, 3);
        // N → a, N → b, ROOT → S, S → N V, V → N X, X → b.
        let shapes: Vec<[usize; 3]> =
            layout.blocks.iter().map(|block| [block.n_parent, block.n_left, block.n_right]).collect();
        assert_eq!(shapes, [[3, 1, 1], [3, 1, 1], [1, 3, 1], [3, 3, 3], [3, 3, 3], [3, 1, 1]]);
        let starts: Vec<usize> = layout.blocks.iter().map(|block| block.start).collect();
        assert_eq!(starts, [0, 3, 6, 9, 36, 63]);
        assert_eq!(layout.n_params(), 66);
        assert_eq!(layout.group_sizes, [2, 2, 2, 3, 9, 9, 9, 9, 9, 9, 1, 1, 1]);
        let ones = vec![1.0; 66];
        let sizes: Vec<f64> = layout.group_sizes.iter().map(|&size| size as f64).collect();
        assert_eq!(layout.group_sums(&ones), sizes);
    }
}
