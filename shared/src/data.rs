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
pub mod statistics;
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
    /// What is known of its tree.
    pub marks: TreeMarks,
}

/// What is known of the tree of a sentence; an empty list says nothing.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default, Serialize, Deserialize)]
pub struct TreeMarks {
    /// Of a dependency tree, by word: its head, from 1, 0 for the root; `None` if it may be any. Trees with other heads are left out. `[n_words]`, or empty.
    pub heads: Vec<Option<u32>>,
    /// The numbers of words before each place inside the sentence where punctuation was removed, ascending.
    pub breaks: Vec<u32>,
    /// Of a constituent tree: spans that no constituent crosses, in any order. Trees with constituents that do, or that lack a label of a bracket, are left out.
    pub brackets: Vec<Bracket>,
}

/// A span of the symbols of a sentence that no constituent crosses (Pereira & Schabes 1992), and which, with labels, is that of a constituent.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub struct Bracket {
    /// Number of symbols before it.
    pub start: u32,
    /// Number of symbols before its end.
    pub end: u32,
    /// Of the nonterminals at least one has a constituent of exactly this span; none says nothing.
    pub labels: Vec<SymbolId>,
}

/// Labelled brackets that a span of a sentence may have.
pub const MAX_LABELLED: usize = 16;

impl TreeMarks {
    /// Whether nothing is known.
    pub fn is_empty(&self) -> bool {
        self.heads.is_empty() && self.breaks.is_empty() && self.brackets.is_empty()
    }

    /// Whether they are of a sentence of so many symbols, and its heads and breaks of so many words.
    pub fn suits(&self, n_symbols: usize, n_words: usize) -> bool {
        let is_span = |bracket: &Bracket| bracket.start < bracket.end && bracket.end as usize <= n_symbols;
        let is_head = |head: &Option<u32>| head.is_none_or(|head| head as usize <= n_words);
        let is_inside = |at: &u32| (1..n_words).contains(&(*at as usize));
        (self.heads.is_empty() || self.heads.len() == n_words && self.heads.iter().all(is_head))
            && self.breaks.iter().all(is_inside)
            && self.breaks.is_sorted_by(|a, b| a < b)
            && self.brackets.iter().all(is_span)
            && self.most_labelled() <= MAX_LABELLED
    }

    /// Labelled brackets of the span that has most.
    pub fn most_labelled(&self) -> usize {
        let labelled = self.brackets.iter().filter(|bracket| !bracket.labels.is_empty());
        let mut spans: Vec<(u32, u32)> = labelled.map(|bracket| (bracket.start, bracket.end)).collect();
        spans.sort_unstable();
        spans.chunk_by(|a, b| a == b).map(<[_]>::len).max().unwrap_or_default()
    }

    /// Whether punctuation stood between two words, by their numbers from 1.
    pub fn separates(&self, a: usize, b: usize) -> bool {
        let (first, last) = (a.min(b), a.max(b));
        let next = self.breaks.partition_point(|&at| (at as usize) < first);
        self.breaks.get(next).is_some_and(|&at| (at as usize) < last)
    }

    /// Whether `head`, 0 for the root, may be the head of `child`, both counted from 1.
    pub fn allows(&self, head: usize, child: usize) -> bool {
        self.heads.get(child - 1).copied().flatten().is_none_or(|known| known as usize == head)
    }
}

impl Sentence {
    /// Creates a sentence that occurs so often.
    pub fn new(tokens: Vec<SymbolId>, multiplicity: u32) -> Sentence {
        Sentence { tokens, multiplicity, marks: TreeMarks::default() }
    }

    /// The sentence with what is known of its tree.
    pub fn with_marks(self, marks: TreeMarks) -> Sentence {
        Sentence { marks, ..self }
    }
}
