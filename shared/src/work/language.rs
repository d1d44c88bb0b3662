//! A grammar with its strings, for sentences and strings.

use crate::grammar::Grammar;
use crate::grammar::lexicon::Lexicon;
use crate::work::content::{ContentHash, Named};

/// A grammar with the strings of its sticks.
///
/// Trees of a treebank need none: their shards bring the rules that they are made of.
#[derive(Clone, Debug)]
pub struct Language {
    /// The grammar.
    pub grammar: Named<Grammar>,
    /// The stick strings; an empty lexicon before they are chosen.
    pub lexicon: Named<Lexicon>,
}

impl Language {
    /// The names of the grammar and of the lexicon, by which prepared forms are cached.
    pub(super) fn key(&self) -> (ContentHash, ContentHash) {
        (self.grammar.hash, self.lexicon.hash)
    }

    /// The number of parameters: the constant one, the rules and the strings.
    pub fn n_params(&self) -> usize {
        self.lexicon.value.space(&self.grammar.value).n_params()
    }
}
