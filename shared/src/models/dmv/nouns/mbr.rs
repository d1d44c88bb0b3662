//! The tree of a sentence with the highest expected number of words with the right head, under a grammar with phrases or without.
//!
//! In: weights by parameter, and tokens. Out: a derivation of the model without phrases ([`crate::models::dmv::heads`]), since all trees
//! are possible there, whichever phrases they are made of.

use std::sync::Arc;

use super::arcs::Reader;
use super::{tags, tokens};
use crate::forest::Prepared;
use crate::forest::TooAmbiguous;
use crate::forest::binary::Adapted;
use crate::forest::build::Builder;
use crate::forest::inside::Weights;
use crate::grammar::SymbolId;
use crate::grammar::lexicon::Lexicon;
use crate::grammar::tree::Tree;
use crate::models::dmv::grammar::grammar;
use crate::models::dmv::layout::Layout;
use crate::models::dmv::{decode, heads};

/// Finds the trees of sentences.
pub struct Mbr<'a> {
    reader: Reader<'a>,
    n_nonterminals: u32,
    tags: Vec<String>,
    /// The model without phrases.
    plain: Prepared,
}

impl<'a> Mbr<'a> {
    /// Creates a decoder as [`Reader::new`] does; `None` for a grammar without dependencies.
    pub fn new(prepared: &'a Prepared, weights: Weights<'a>, open: bool) -> Option<Mbr<'a>> {
        let tags = tags(&prepared.grammar)?;
        let plain = Prepared::new(Arc::new(grammar(&tags).ok()?), Lexicon::default());
        let n_nonterminals = prepared.grammar.n_nonterminals;
        Some(Mbr { reader: Reader::new(prepared, weights, open), n_nonterminals, tags, plain })
    }

    /// The tree; `None` if the sentence has no derivation.
    ///
    /// # Errors
    /// [`TooAmbiguous`] if it has too many.
    pub fn tree(&mut self, sentence: &[SymbolId]) -> Result<Option<Tree>, TooAmbiguous> {
        let Some((_, arcs)) = self.reader.arcs(sentence)? else { return Ok(None) };
        let tag = |half: &SymbolId| (half.0 - self.n_nonterminals) / 2;
        let numbers: Vec<u32> = sentence.iter().step_by(2).map(tag).collect();
        let mut builder = Builder::new(&self.plain.binary, &self.plain.strings, Adapted::Strings);
        let forest = builder.build(0, &tokens(&self.plain.grammar, &numbers))?;
        let Some(forest) = forest else { return Ok(None) };
        let (_, heads) = decode::mbr(Layout::new(self.tags.len()), &forest, &arcs);
        let names: Vec<String> = numbers.iter().map(|&tag| self.tags[tag as usize].clone()).collect();
        Ok(heads::tree(&names, &heads).ok())
    }
}
