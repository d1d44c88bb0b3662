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

use brackets::TreebankError;
pub use rules::{Derivation, LabelId, Rhs, Rule, RuleId, Rules, RulesError, WordId};
pub use unary::Chains;
pub use words::{Classes, Vocabulary};

/// Label of the node on top of every tree.
pub const ROOT: &str = "ROOT";

/// Trees as derivations, and all that is needed to make trees of derivations again.
///
/// ```
/// use grammaton::Treebank;
/// use grammaton::data::Classes;
///
/// // Function tags and traces go.
/// let text = "( (S (NP-SBJ (NN dog)) (VP (VBZ barks))) )\n( (S (NP-SBJ (-NONE- *)) (VP (VB bark))) )\n";
/// let treebank = Treebank::read(text, "trees", 0, Classes::Generic)?;
/// assert_eq!(treebank.n_trees(), 2);
/// # Ok::<(), grammaton::data::TreebankError>(())
/// ```
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Treebank {
    #[doc(hidden)]
    /// The rules of the trees.
    pub rules: Rules,
    #[doc(hidden)]
    /// The words of rules, and the classes of all others.
    pub vocabulary: Vocabulary,
    #[doc(hidden)]
    /// The unary chains before they were cut.
    pub chains: Chains,
    #[doc(hidden)]
    /// The trees.
    pub derivations: Vec<Derivation>,
}

impl Treebank {
    /// Reads the trees of a text in the format of the Penn Treebank, and leaves out function tags, traces and what these leave empty; words
    /// that occur `threshold` times or less become `classes`.
    ///
    /// # Errors
    /// [`TreebankError`] at the first thing that does not fit.
    pub fn read(
        text: &str,
        source_name: &str,
        threshold: u32,
        classes: Classes,
    ) -> Result<Treebank, TreebankError> {
        let entries = brackets::read(text, source_name)?;
        let trees = entries.iter().filter_map(|entry| clean::clean(entry.tree.as_ref()?));
        Ok(Treebank::new(&trees.collect::<Vec<_>>(), threshold, classes))
    }

    /// Number of trees.
    pub fn n_trees(&self) -> usize {
        self.derivations.len()
    }

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
