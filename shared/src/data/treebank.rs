//! Treebanks: trees that people drew, made into derivations of a grammar.
//!
//! In: brackets of the Penn Treebank ([`brackets`]). Out: a [`Treebank`]: its rules, and every tree as the sequence of its
//! rules in preorder, which together with the grammar is the whole tree. On the way a tree is
//! - cleaned ([`clean`]): function tags, traces and what they leave empty go, ROOT is put on top;
//! - given at most one unary step between two branchings ([`unary`]);
//! - binarised to the right ([`binary`]);
//! - freed of rare words, which become classes ([`words`]).
//!
//! The first three are those of Petrov et al. (2006), after Matsuzaki et al. (2005) and Klein & Manning (2003).
//! A plain PCFG is read off by [`pcfg`]. Does not markovise vertically: labels do not see their parents.

use serde::{Deserialize, Serialize};

use crate::grammar::tree::Tree;

pub mod brackets;

pub mod clean;

pub mod unary;

pub mod binary;

pub mod words;

pub mod rules;

pub mod pcfg;

pub use rules::{Derivation, LabelId, Rhs, Rule, RuleId, Rules, RulesError, WordId};
pub use unary::Chains;
pub use words::{Classes, Vocabulary};

/// Label of the node on top of every tree.
pub const ROOT: &str = "ROOT";

/// Trees as derivations, and all that is needed to make trees of derivations again.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Treebank {
    /// The rules of the trees.
    pub rules: Rules,
    /// The words of rules, and the classes of all others.
    pub vocabulary: Vocabulary,
    /// The unary chains before they were cut.
    pub chains: Chains,
    /// The trees.
    pub derivations: Vec<Derivation>,
}

impl Treebank {
    /// Makes a treebank of cleaned trees; words that occur `threshold` times or less become `classes`.
    pub fn new(trees: &[Tree], threshold: u32, classes: Classes) -> Treebank {
        let mut chains = Chains::default();
        let trees: Vec<Tree> =
            trees.iter().map(|tree| binary::binarise(&unary::cut(tree, &mut chains))).collect();
        let vocabulary = Vocabulary::new(trees.iter().flat_map(Tree::terminals), threshold, classes);
        let (rules, derivations) = Rules::read(&trees, &vocabulary);
        Treebank { rules, vocabulary, chains, derivations }
    }
}

/// A tree as people draw it, of one that was binarised and whose chains were cut.
pub fn restore(tree: &Tree, chains: &Chains) -> Tree {
    chains.restore(&binary::debinarise(tree))
}
