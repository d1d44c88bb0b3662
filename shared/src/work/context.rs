//! The context of a task: its grammar and its shard, prepared and built.
//!
//! A [`Cache`] keeps what is costly to build from one task to the next: binarised grammars with the index of their strings, and the
//! forests of shards. Nothing that it keeps changes an answer.

pub mod built;
mod cache;
mod once;
pub mod patterns;

use std::path::Path;
use std::sync::Arc;

use built::BuiltShard;
use built::spill::Spill;
use cache::Models;
use once::Once;
use parking_lot::Mutex;
use patterns::Patterns;

use super::content::{ContentHash, Named};
use super::counts::GroupIndex;
use super::error::ComputeError;
use super::language::Language;
use super::shard::Shard;
use crate::data::Sentence;
use crate::forest::{Prepared, TooAmbiguous};
use crate::models::dmv::constraint::{Component, Constraints};
use crate::models::sampler::Items;

/// Grammar and lexicon.
type ModelKey = (ContentHash, ContentHash);

/// Patterns, built by the first task that needs them.
type OncePatterns = Once<Arc<Patterns>>;

/// Prepared grammars and built shards, for the tasks of a process.
pub struct Cache {
    models: Models,
    /// Files for built shards that do not fit in memory.
    spill: Option<Spill>,
    /// Patterns of the latest grammar and length.
    patterns: Mutex<Option<(ContentHash, u32, Arc<OncePatterns>)>>,
}

impl Cache {
    /// Keeps at most `bytes` of forests, under all grammars together; shards beyond that are built anew for every task. Of grammars
    /// and lexicons, prepared, it keeps half as many bytes, and the ones in use.
    pub fn with_memory(bytes: usize) -> Cache {
        Cache { models: Models::new(bytes), spill: None, patterns: Mutex::default() }
    }

    /// Refuses forests of sentences that would take more bytes.
    pub fn with_forest_limit(mut self, bytes: usize) -> Cache {
        self.models.forest_limit = bytes;
        self
    }

    /// Writes forests for which there is no memory into files in `folder`, and reads them from there. The folder is empty, and for
    /// this cache alone.
    pub fn spilling_to(self, folder: &Path) -> Cache {
        Cache { spill: Some(Spill::new(folder)), ..self }
    }
}

/// The grammar, the strings and the shard of a task.
pub struct Context<'a> {
    cache: &'a Cache,
    language: &'a Language,
    shard: &'a Named<Shard>,
}

impl<'a> Context<'a> {
    /// The context of a task on this shard.
    pub fn new(cache: &'a Cache, language: &'a Language, shard: &'a Named<Shard>) -> Context<'a> {
        Context { cache, language, shard }
    }

    /// The items.
    pub fn shard(&self) -> &'a Shard {
        &self.shard.value
    }

    /// The items, which have to be sentences.
    pub fn sentences(&self) -> Result<&'a [Sentence], ComputeError> {
        match self.shard() {
            Shard::Sentences(sentences) => Ok(sentences),
            Shard::Strings(_) | Shard::Trees { .. } => Err(ComputeError::NotSentences),
        }
    }

    /// The grammar and the strings, prepared for parsing.
    pub fn prepared(&self) -> Arc<Prepared> {
        self.cache.models.prepared(self.language)
    }

    /// Constituents of at most `max_length` symbols by pattern.
    pub fn patterns(&self, max_length: u32) -> Arc<Patterns> {
        let grammar = &self.language.grammar;
        let patterns = {
            let mut last = self.cache.patterns.lock();
            match &*last {
                Some((hash, length, patterns)) if (*hash, *length) == (grammar.hash, max_length) => {
                    patterns.clone()
                }
                _ => {
                    let patterns = Arc::default();
                    *last = Some((grammar.hash, max_length, Arc::clone(&patterns)));
                    patterns
                }
            }
        };
        patterns.get_or_build(|| Arc::new(Patterns::new(&grammar.value, max_length))).clone()
    }

    /// The shard of sentences or strings with its forests, and whether it stays in memory.
    pub fn built(&self) -> Result<(Arc<BuiltShard>, bool), ComputeError> {
        self.check_items(&self.prepared())?;
        Ok(self.build()?)
    }

    /// As [`Context::built`], of items that were checked.
    fn build(&self) -> Result<(Arc<BuiltShard>, bool), TooAmbiguous> {
        let prepared = self.prepared();
        let (model, shard) = (self.model(), self.shard.hash);
        let build = || {
            self.end_chains();
            let spilled = self.cache.spill.as_ref().and_then(|spill| spill.read(model, shard));
            spilled.map_or_else(|| BuiltShard::new(&prepared, self.shard.value.clone()), Ok)
        };
        let models = &self.cache.models;
        let (built, stays) =
            models.shard(model, |shards| &mut shards.built, shard, build, BuiltShard::size)?;
        if let (Some(spill), false) = (&self.cache.spill, stays) {
            spill.write(model, shard, &built);
        }
        Ok((built, stays))
    }

    /// The parameters that shards touch which are counted together.
    pub fn index_of_group(shards: &[Context<'_>]) -> Result<Arc<GroupIndex>, ComputeError> {
        let [first, ..] = shards else { return Ok(Arc::default()) };
        let prepared = first.prepared();
        shards.iter().try_for_each(|shard| shard.check_items(&prepared))?;
        let index = || {
            let indexes = shards.iter().map(|shard| Ok(shard.build()?.0.index.params.clone()));
            Ok(GroupIndex::new(&indexes.collect::<Result<Vec<_>, TooAmbiguous>>()?))
        };
        let hashes: Vec<ContentHash> = shards.iter().map(|shard| shard.shard.hash).collect();
        let (key, models) = (Named::new(hashes).hash, &first.cache.models);
        Ok(models.shard(first.model(), |shards| &mut shards.groups, key, index, GroupIndex::size)?.0)
    }

    /// The shard with its forests, also under a dense grammar, which computes without them.
    pub fn forests(&self) -> Result<Arc<BuiltShard>, ComputeError> {
        let (built, _) = self.built()?;
        if !built.is_dense() {
            return Ok(built);
        }
        let prepared = self.prepared();
        let build = || built.with_forests(&prepared, self.shard.value.clone());
        self.form(|shards| &mut shards.forests, self.shard.hash, build)
    }

    /// The shard with its forests, and the forests of every component.
    pub fn constrained(&self, components: &[&Component]) -> Result<Arc<BuiltShard>, ComputeError> {
        let prepared = self.prepared();
        let constraints = Constraints::new(&prepared.grammar, components.iter().copied())?;
        let key = Named::new((self.shard.hash, components)).hash;
        let build = || BuiltShard::constrained(&prepared, self.shard.value.clone(), &constraints);
        self.form(|shards| &mut shards.constrained, key, build)
    }

    /// Removes the charts of chains whose strings the sentences are read with: such chains have ended.
    pub fn end_chains(&self) {
        self.cache.models.end_chains(self.model(), self.shard.hash);
    }

    /// The sentences, prepared for chains.
    pub fn chain_items(&self) -> Result<Arc<Items>, ComputeError> {
        let (prepared, sentences) = (self.prepared(), self.sentences()?);
        let build = || Items::new(prepared, sentences);
        let models = &self.cache.models;
        Ok(models.shard(self.model(), |shards| &mut shards.items, self.shard.hash, build, Items::size)?.0)
    }

    fn form(
        &self,
        form: fn(&mut cache::Shards) -> &mut cache::CachedShards<BuiltShard>,
        key: ContentHash,
        build: impl FnOnce() -> Result<BuiltShard, TooAmbiguous>,
    ) -> Result<Arc<BuiltShard>, ComputeError> {
        Ok(self.cache.models.shard(self.model(), form, key, build, BuiltShard::size)?.0)
    }

    fn model(&self) -> ModelKey {
        self.language.key()
    }

    /// Checks that strings are strings of the lexicon, and that the items are not trees.
    fn check_items(&self, prepared: &Prepared) -> Result<(), ComputeError> {
        match self.shard() {
            Shard::Sentences(_) => Ok(()),
            Shard::Trees { .. } => Err(ComputeError::NotSentences),
            Shard::Strings(params) => {
                let (strings, n_params) = (prepared.space().strings(), prepared.space().n_params());
                let (start, end) = (params.start, params.end);
                if !prepared.binary.base.is_empty() && strings.start <= start && end <= strings.end {
                    return Ok(());
                }
                Err(ComputeError::NoSuchStrings { start, end, n_params })
            }
        }
    }
}
