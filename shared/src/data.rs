//! Data in files: options for reading corpora, treebanks and dependency trees, and what is wrong with a file.
//!
//! Words of tokens, marked by `|`, in lower case:
//!
//! ```
//! use grammaton::Corpus;
//! use grammaton::data::{Cleaning, Options, Unit};
//!
//! let cleaning = Cleaning { lowercase: true, ..Cleaning::default() };
//! let options = Options { unit: Unit::Token, cleaning, ..Options::default() };
//! let (corpus, notices) = Corpus::read("Y u | W a n t\n".as_bytes(), "text", &options)?;
//! assert_eq!(corpus.symbols, ["y", "u", "w", "a", "n", "t"]);
//! assert_eq!(corpus.gold, Some(vec![vec![vec![2, 6]]]));
//! assert!(notices.is_empty());
//! # Ok::<(), grammaton::data::ReadError>(())
//! ```

#[doc(hidden)]
pub mod corpus;
#[doc(hidden)]
pub mod dependency;
#[doc(hidden)]
pub mod eval;
#[doc(hidden)]
pub mod generate;
#[doc(hidden)]
pub mod ipa;
#[doc(hidden)]
pub mod letters;
#[doc(hidden)]
pub mod tags;
#[doc(hidden)]
pub mod treebank;
#[doc(hidden)]
pub mod vowels;

use serde::{Deserialize, Serialize};

use crate::grammar::SymbolId;
#[doc(inline)]
pub use corpus::decode::{Change, Container, Fault};
#[doc(inline)]
pub use corpus::layout::{Column, Counts, Layout, LayoutError, LineKind, Separators};
#[doc(inline)]
pub use corpus::read::{Invisible, Notice, ReadError};
#[doc(inline)]
pub use corpus::{Analyses, Cleaning, Format, Marks, Normalise, Options, Unit};
#[doc(inline)]
pub use dependency::{Problem, SentenceError, Tags, read as read_sentences};
#[doc(inline)]
pub use treebank::Classes;
#[doc(inline)]
pub use treebank::brackets::TreebankError;

#[doc(hidden)]
/// A distinct sentence and how often it occurs.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Sentence {
    /// Its terminals.
    pub tokens: Vec<SymbolId>,
    /// Occurrences in the corpus, ≥ 1.
    pub multiplicity: u32,
}

impl Sentence {
    /// Creates a sentence that occurs so often.
    pub fn new(tokens: Vec<SymbolId>, multiplicity: u32) -> Sentence {
        Sentence { tokens, multiplicity }
    }
}
