//! What is read and written: corpora, treebanks, dependency trees, tag sets; what is generated, and how outputs are scored.

pub mod corpus;
pub mod dependency;
pub mod eval;
pub mod generate;
pub mod tags;
pub mod treebank;

use serde::{Deserialize, Serialize};

use crate::grammar::SymbolId;

/// A distinct sentence and how often it occurs.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Sentence {
    /// Terminals.
    pub tokens: Vec<SymbolId>,
    /// Occurrences in the corpus, ≥ 1.
    pub multiplicity: u32,
}
