//! Checks of values against the grammar and the shard of their task.

use shared::data::Sentence;
use shared::grammar::lexicon::Lexicon;
use shared::grammar::{Grammar, SymbolId};
use shared::work::shard::Shard;
use shared::work::task::{Language, Task};

use super::{WireError, in_range};

/// The sentences or strings of a task, and what they are computed with.
pub struct Items<'t> {
    pub grammar: &'t Grammar,
    pub lexicon: &'t Lexicon,
    pub shard: &'t Shard,
}

impl<'t> Items<'t> {
    /// The items of a task that is not on trees.
    pub fn of(task: &'t Task) -> Result<Items<'t>, WireError> {
        let language = task.language.as_ref().ok_or(WireError::Missing { field: "lease.grammar" })?;
        let Language { grammar, lexicon } = language;
        Ok(Items { grammar: &grammar.value, lexicon: &lexicon.value, shard: &task.shard.value })
    }
}

pub fn at_most(field: &'static str, found: u64, expected: u64) -> Result<(), WireError> {
    if found <= expected { Ok(()) } else { Err(WireError::Excess { field, found, expected }) }
}

pub fn adapted(field: &'static str, at: usize, grammar: &Grammar, symbol: SymbolId) -> Result<(), WireError> {
    if grammar.is_adapted(symbol) {
        return Ok(());
    }
    let (found, end) = (i64::from(symbol.0), u64::from(grammar.n_nonterminals));
    Err(WireError::Range { field, at, found, start: 0, end })
}

pub fn nonterminals<'a>(
    field: &'static str,
    grammar: &Grammar,
    symbols: impl IntoIterator<Item = &'a SymbolId>,
) -> Result<(), WireError> {
    let nonterminals = 0..u64::from(grammar.n_nonterminals);
    in_range(field, symbols.into_iter().map(|symbol| symbol.0), nonterminals)
}

pub fn terminals<'a>(
    field: &'static str,
    grammar: &Grammar,
    symbols: impl IntoIterator<Item = &'a SymbolId>,
) -> Result<(), WireError> {
    let terminals = u64::from(grammar.n_nonterminals)..grammar.symbols.len() as u64;
    in_range(field, symbols.into_iter().map(|symbol| symbol.0), terminals)
}

/// Checks that the last segment ends where the sentence ends.
pub fn whole<'a>(
    field: &'static str,
    ends: impl IntoIterator<Item = &'a Vec<u32>>,
    length: usize,
) -> Result<(), WireError> {
    let length = length as u64;
    in_range(field, ends.into_iter().map(|ends| ends.last().copied().unwrap_or(0)), length..length + 1)
}

pub fn sentences(shard: &Shard) -> &[Sentence] {
    if let Shard::Sentences(sentences) = shard { sentences } else { &[] }
}

/// Number of sentences, each counted with its multiplicity.
pub fn n_occurrences(shard: &Shard) -> usize {
    sentences(shard).iter().map(|sentence| sentence.multiplicity as usize).sum()
}
