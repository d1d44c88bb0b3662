//! Data in files: corpora, treebanks, dependency trees, tag sets; generation of corpora, and scores of outputs.
//!
//! ```
//! use grammaton::data::eval::segmentation::score;
//! use grammaton::data::treebank::{Classes, Treebank};
//! use grammaton::grammar::tree::Tree;
//!
//! // A treebank is its trees as derivations of its rules.
//! let tree = Tree::parse("(ROOT (S (N dogs) (V (V see) (N cats))))")?;
//! let treebank = Treebank::new(&[tree], 0, Classes::Generic);
//! assert_eq!(treebank.rules.labels, ["N", "ROOT", "S", "V"]);
//! assert!(treebank.rules.derive(&treebank.derivations[0]));
//!
//! // Segmentations are where segments end: `ab|a` in gold, `a|b|a` predicted.
//! let scores = score(&[vec!['a', 'b', 'a']], &[vec![2, 3]], &[vec![1, 2, 3]]);
//! assert_eq!((scores.token.precision, scores.token.recall), (Some(1.0 / 3.0), Some(1.0 / 2.0)));
//! # Ok::<(), grammaton::grammar::tree::TreeError>(())
//! ```

pub mod corpus;
pub mod dependency;
pub mod eval;
pub mod generate;
pub mod ipa;
pub mod letters;
pub mod tags;
pub mod treebank;
pub mod vowels;

use serde::{Deserialize, Serialize};

use crate::grammar::SymbolId;

/// A distinct sentence and how often it occurs.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Sentence {
    /// Its terminals.
    pub tokens: Vec<SymbolId>,
    /// Occurrences in the corpus, ≥ 1.
    pub multiplicity: u32,
}
