//! The items of a task.

use grammaton::data::Sentence;
use grammaton::grammar::Grammar;
use grammaton::grammar::lexicon::Lexicon;
use grammaton::work::shard::Shard;
use grammaton::work::task::{Language, Named, Task};

use super::Invalid;

/// The sentences or strings of a task, and what they are computed with.
pub struct Items<'t> {
    pub grammar: &'t Grammar,
    pub lexicon: &'t Lexicon,
    pub shard: &'t Shard,
    /// The shards after it whose answers are added to its own.
    pub further: &'t [Named<Shard>],
}

impl<'t> Items<'t> {
    /// The items of a task that is not on trees.
    pub fn of(task: &'t Task) -> Result<Items<'t>, Invalid> {
        let language = task.language.as_ref().ok_or(Invalid::Missing { field: "lease.grammar" })?;
        let Language { grammar, lexicon } = language;
        Ok(Items {
            grammar: &grammar.value,
            lexicon: &lexicon.value,
            shard: &task.shard.value,
            further: &task.further,
        })
    }
}

impl<'t> Items<'t> {
    /// Each of its shards by itself.
    pub fn each(&self) -> impl Iterator<Item = Items<'t>> {
        let &Items { grammar, lexicon, shard, further } = self;
        let shards = std::iter::once(shard).chain(further.iter().map(|shard| &*shard.value));
        shards.map(move |shard| Items { grammar, lexicon, shard, further: &[] })
    }
}

pub fn sentences(shard: &Shard) -> &[Sentence] {
    if let Shard::Sentences(sentences) = shard { sentences } else { &[] }
}

/// Number of sentences, each counted with its multiplicity.
pub fn n_occurrences(shard: &Shard) -> usize {
    sentences(shard).iter().map(|sentence| sentence.multiplicity as usize).sum()
}
