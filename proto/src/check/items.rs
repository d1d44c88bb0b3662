//! The items of a task.

use grammaton::data::Sentence;
use grammaton::grammar::Grammar;
use grammaton::grammar::lexicon::Lexicon;
use grammaton::work::shard::Shard;
use grammaton::work::task::{Language, Task};

use super::Invalid;

/// The sentences or strings of a task, and what they are computed with.
pub struct Items<'t> {
    pub grammar: &'t Grammar,
    pub lexicon: &'t Lexicon,
    pub shard: &'t Shard,
}

impl<'t> Items<'t> {
    /// The items of a task that is not on trees.
    pub fn of(task: &'t Task) -> Result<Items<'t>, Invalid> {
        let language = task.language.as_ref().ok_or(Invalid::Missing { field: "lease.grammar" })?;
        let Language { grammar, lexicon } = language;
        Ok(Items { grammar: &grammar.value, lexicon: &lexicon.value, shard: &task.shard.value })
    }
}

pub fn sentences(shard: &Shard) -> &[Sentence] {
    if let Shard::Sentences(sentences) = shard { sentences } else { &[] }
}

/// Number of sentences, each counted with its multiplicity.
pub fn n_occurrences(shard: &Shard) -> usize {
    sentences(shard).iter().map(|sentence| sentence.multiplicity as usize).sum()
}
