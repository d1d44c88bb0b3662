//! A grammar and its strings, ready for building forests.

use std::sync::Arc;

use super::binary::{Adapted, BinaryGrammar};
use super::build::Builder;
use super::strings::StringIndex;
use crate::grammar::lexicon::Lexicon;
use crate::grammar::{Grammar, ParamSpace};
use crate::limits::MAX_FOREST;

/// New strings are no longer than this, or than the longest learned one.
const MAX_NEW_STRING: u32 = 64;

/// A grammar and its strings, ready for building forests.
pub struct Prepared {
    /// The grammar.
    pub grammar: Arc<Grammar>,
    /// The lexicon.
    pub lexicon: Arc<Lexicon>,
    /// The binarised grammar.
    pub binary: BinaryGrammar,
    /// Index of the strings.
    pub strings: StringIndex,
}

impl Prepared {
    /// Prepares `grammar` and `lexicon`.
    pub fn new(grammar: impl Into<Arc<Grammar>>, lexicon: impl Into<Arc<Lexicon>>) -> Prepared {
        let (grammar, lexicon) = (grammar.into(), lexicon.into());
        let binary = BinaryGrammar::new(&grammar);
        let strings = StringIndex::new(&grammar, lexicon.clone());
        Prepared { grammar, lexicon, binary, strings }
    }

    /// Refuses forests that would take more bytes; [`MAX_FOREST`] is the limit of every process.
    pub fn with_forest_limit(mut self, bytes: usize) -> Prepared {
        self.binary.forest_limit = bytes.min(MAX_FOREST);
        self
    }

    /// Bytes held, lexicon included.
    pub fn size(&self) -> usize {
        let strings = self.lexicon.sticks.iter().map(|stick| stick.strings.size());
        self.binary.size() + self.strings.size() + strings.sum::<usize>()
    }

    /// Builds forests of sentences: of `open` ones, which training has never seen, with new strings as well.
    pub fn builder(&self, open: bool) -> Builder<'_> {
        if open {
            Builder::open(&self.binary, &self.strings).with_max_yield(self.longest_string())
        } else {
            Builder::new(&self.binary, &self.strings, Adapted::Strings)
        }
    }

    /// The parameters of the grammar and its strings.
    pub fn space(&self) -> &ParamSpace {
        self.strings.space()
    }

    fn longest_string(&self) -> u32 {
        let strings = self.lexicon.sticks.iter().flat_map(|stick| &stick.strings);
        strings.map(|string| string.len() as u32).fold(MAX_NEW_STRING, u32::max)
    }
}
