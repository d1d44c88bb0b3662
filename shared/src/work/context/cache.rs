//! Cache of models, each a grammar with its strings: both prepared, and shards built under them.
//!
//! In: what a task needs, built by the first task that needs it. Out: the same again. Several jobs may take turns on one engine, so there is room for
//! several models: if a shard of the model in use does not fit, all shards of the least recently used model are removed. Once the strings of
//! a chain are used to read its sentences, it has ended, and its charts are removed. Prepared
//! forms are bounded by themselves, since one that is gone takes longer to come back than any shard: they may be half as large together as
//! all shards, the one in use not counted, which is there in any case.
//!
//! Nothing is built while the table is locked. Tasks that need the same prepared form or shard wait for it, and no others do. A task that is
//! stopped while it builds leaves nothing behind.

use std::sync::Arc;

use parking_lot::{Mutex, MutexGuard};
use rustc_hash::FxHashMap;

use super::ModelKey;
use super::built::BuiltShard;
use super::once::Once;
use crate::forest::Prepared;
use crate::forest::TooAmbiguous;
use crate::limits::MAX_FOREST;
use crate::models::sampler::Items;
use crate::work::content::ContentHash;
use crate::work::counts::GroupIndex;
use crate::work::language::Language;

/// Models in memory.
pub struct Models {
    /// Bytes of shards.
    memory: usize,
    /// Bytes that the forest of a sentence may take.
    pub forest_limit: usize,
    table: Mutex<Table>,
}

#[derive(Default)]
struct Table {
    all: FxHashMap<ModelKey, Model>,
    uses: u64,
}

#[derive(Default)]
struct Model {
    last_use: u64,
    prepared: Arc<Once<Arc<Prepared>>>,
    shards: Shards,
}

/// Shards of a model in the forms that work needs.
#[derive(Default)]
pub struct Shards {
    pub built: CachedShards<BuiltShard>,
    /// Forests of shards under dense grammars, for work that needs them.
    pub forests: CachedShards<BuiltShard>,
    /// Shards with the forests of components.
    pub constrained: CachedShards<BuiltShard>,
    /// Items of Markov chains.
    pub items: CachedShards<Items>,
    /// Indexes of groups of shards.
    pub groups: CachedShards<GroupIndex>,
}

/// Shards in one form.
pub struct CachedShards<T> {
    shards: FxHashMap<ContentHash, Arc<T>>,
    bytes: usize,
    /// Those that tasks wait for.
    building: FxHashMap<ContentHash, Arc<Building<T>>>,
}

type Building<T> = Once<Result<Arc<T>, TooAmbiguous>>;

impl<T> Default for CachedShards<T> {
    fn default() -> CachedShards<T> {
        CachedShards { shards: FxHashMap::default(), bytes: 0, building: FxHashMap::default() }
    }
}

impl Shards {
    /// Bytes of all forms together.
    fn bytes(&self) -> usize {
        let forests = self.built.bytes + self.forests.bytes + self.constrained.bytes;
        forests + self.items.bytes + self.groups.bytes
    }
}

impl Models {
    /// Creates an empty cache with room for so many bytes of shards.
    pub fn new(memory: usize) -> Models {
        Models { memory, forest_limit: MAX_FOREST, table: Mutex::default() }
    }

    /// Grammar and lexicon, prepared. They are the ones in use from now on.
    pub fn prepared(&self, language: &Language) -> Arc<Prepared> {
        let key = language.key();
        let prepared = self.table().use_model(key).prepared.clone();
        let prepare = || {
            let prepared = Prepared::new(language.grammar.value.clone(), language.lexicon.value.clone());
            Arc::new(prepared.with_forest_limit(self.forest_limit))
        };
        let prepared = prepared.get_or_build(prepare).clone();
        self.table().keep_prepared(key, self.memory / 2);
        prepared
    }

    /// Returns the entry of `form` and `key`, built by `build` unless it is cached, and whether it is cached from now on.
    pub fn shard<T>(
        &self,
        model_key: ModelKey,
        form: fn(&mut Shards) -> &mut CachedShards<T>,
        key: ContentHash,
        build: impl FnOnce() -> Result<T, TooAmbiguous>,
        size: impl Fn(&T) -> usize,
    ) -> Result<(Arc<T>, bool), TooAmbiguous> {
        let building = {
            let mut table = self.table();
            let known = form(&mut table.use_model(model_key).shards);
            if let Some(built) = known.shards.get(&key) {
                return Ok((built.clone(), true));
            }
            known.building.entry(key).or_default().clone()
        };
        let built = building.get_or_build(|| build().map(Arc::new)).clone();
        let mut table = self.table();
        form(&mut table.use_model(model_key).shards).building.remove(&key);
        let built = built?;
        let bytes = size(&built);
        let fits = table.make_room(model_key, bytes, self.memory);
        let kept = form(&mut table.use_model(model_key).shards);
        if fits && !kept.shards.contains_key(&key) {
            kept.bytes += bytes;
            kept.shards.insert(key, built.clone());
        }
        Ok((built, kept.shards.contains_key(&key)))
    }

    /// Removes the charts that chains with other strings have of a shard under the same grammar.
    pub fn end_chains(&self, (grammar, lexicon): ModelKey, shard: ContentHash) {
        let mut ended = Vec::new();
        for (key, model) in &mut self.table().all {
            if key.0 == grammar && key.1 != lexicon {
                let items = &mut model.shards.items;
                let removed = items.shards.remove(&shard);
                items.bytes -= removed.as_ref().map_or(0, |items| items.size());
                ended.extend(removed);
            }
        }
        // The table is open again while the charts are dropped.
        drop(ended);
    }

    fn table(&self) -> MutexGuard<'_, Table> {
        self.table.lock()
    }
}

impl Table {
    /// The model, which is the one used last.
    fn use_model(&mut self, model_key: ModelKey) -> &mut Model {
        self.uses += 1;
        let model = self.all.entry(model_key).or_default();
        model.last_use = self.uses;
        model
    }

    /// Whether this many more bytes of the model's shards fit, after removing shards of other models if needed.
    fn make_room(&mut self, model_key: ModelKey, bytes: usize, memory: usize) -> bool {
        let own = self.all.get(&model_key).map_or(0, |model| model.shards.bytes());
        if own + bytes > memory {
            return false; // and would not have if all others had gone
        }
        while self.all.values().map(|model| model.shards.bytes()).sum::<usize>() + bytes > memory {
            let others =
                self.all.iter_mut().filter(|(other, model)| **other != model_key && model.shards.bytes() > 0);
            let Some((_, oldest)) = others.min_by_key(|(_, model)| model.last_use) else { return false };
            oldest.shards = Shards::default();
        }
        true
    }

    /// Forgets models until the prepared forms of others than this one have no more than so many bytes.
    fn keep_prepared(&mut self, model_key: ModelKey, most: usize) {
        let size = |model: &Model| model.prepared.get().map_or(0, |prepared| prepared.size());
        loop {
            let others = || self.all.iter().filter(|(other, _)| **other != model_key);
            if others().map(|(_, model)| size(model)).sum::<usize>() <= most {
                return;
            }
            let Some((&oldest, _)) = others().min_by_key(|(_, model)| model.last_use) else { return };
            self.all.remove(&oldest);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::Sentence;
    use crate::grammar::lexicon::Lexicon;
    use crate::grammar::syntax;
    use crate::stop::{Stop, Stopped, until};
    use crate::work::content::Named;
    use crate::work::shard::Shard;

    /// References of a task.
    struct Refers {
        language: Language,
        shard: Named<Shard>,
    }

    /// A grammar of its own; the shard is always the same.
    fn task(name: &str) -> Refers {
        let (grammar, _) = syntax::parse(&format!("S --> {name} S\nS --> a"), "test").unwrap();
        let tokens = vec![grammar.symbol("a").unwrap()];
        let shard = Named::new(Shard::Sentences(vec![Sentence::new(tokens, 1)]));
        let language = Language { grammar: Named::new(grammar), lexicon: Named::new(Lexicon::default()) };
        Refers { language, shard }
    }

    fn prepared(models: &Models, task: &Refers) -> Arc<Prepared> {
        models.prepared(&task.language)
    }

    /// Builds the task's shard, of so many bytes, if it is not there; whether it was.
    fn was_there(models: &Models, task: &Refers, bytes: usize) -> bool {
        let (mut built, prepared) = (false, prepared(models, task));
        let build = || {
            built = true;
            BuiltShard::new(&prepared, task.shard.value.clone())
        };
        let key = task.language.key();
        models.shard(key, |shards| &mut shards.built, task.shard.hash, build, |_| bytes).unwrap();
        !built
    }

    #[test]
    fn models_that_take_turns_are_built_once() {
        let (models, tasks) = (Models::new(1 << 20), ["x", "y", "z"].map(task));
        let all = tasks.each_ref().map(|task| prepared(&models, task));
        assert!(tasks.iter().all(|task| !was_there(&models, task, 100)));
        for _ in 0..3 {
            for (task, known) in tasks.iter().zip(&all) {
                assert!(Arc::ptr_eq(&prepared(&models, task), known) && was_there(&models, task, 100));
            }
        }
    }

    #[test]
    fn the_model_that_was_used_least_recently_goes_first_with_all_its_shards() {
        let (models, [x, y, z]) = (Models::new(1 << 20), ["x", "y", "z"].map(task));
        let third = (1 << 20) / 3 + 1;
        assert!(
            !was_there(&models, &x, third) && !was_there(&models, &y, third) && was_there(&models, &x, third)
        );
        assert!(!was_there(&models, &z, third), "there is room for two");
        assert!(was_there(&models, &x, third) && was_there(&models, &z, third));
        assert!(!was_there(&models, &y, 2 << 20), "one that has no room at all");
        assert!(was_there(&models, &x, third) && was_there(&models, &z, third), "takes that of no other");
    }

    /// Law: a task that needs a shard which another one builds waits for it, and can be stopped.
    #[test]
    fn a_shard_that_two_tasks_need_is_built_once() {
        let (models, task) = (Models::new(1 << 20), task("x"));
        let prepared = prepared(&models, &task);
        let shard = |build: &dyn Fn()| {
            let build = || {
                build();
                BuiltShard::new(&prepared, task.shard.value.clone())
            };
            let key = task.language.key();
            models.shard(key, |shards| &mut shards.built, task.shard.hash, build, |_| 100).unwrap().0
        };
        let another = || -> () { unreachable!("another task builds it") };
        let built = shard(&|| assert_eq!(until(&Stop::at_check(3), || shard(&another)).err(), Some(Stopped)));
        assert!(Arc::ptr_eq(&built, &shard(&another)));
    }

    /// Law: sentences that are read with the strings of a chain take the place of its charts, and of no other's.
    #[test]
    fn charts_go_when_chains_end() {
        let (models, tasks) = (Models::new(1 << 20), ["x", "y"].map(task));
        let is_there = |task: &Refers| {
            let (mut built, prepared) = (false, prepared(&models, task));
            let Shard::Sentences(sentences) = &*task.shard.value else { unreachable!("it has sentences") };
            let build = || {
                built = true;
                Items::new(prepared, sentences)
            };
            let key = task.language.key();
            models.shard(key, |shards| &mut shards.items, task.shard.hash, build, Items::size).unwrap();
            !built
        };
        assert!(!tasks.iter().any(is_there) && tasks.iter().all(is_there));
        let [x, y] = &tasks;
        let (grammar, lexicon) = x.language.key();
        let other = ContentHash::of(b"other strings");
        models.end_chains((grammar, lexicon), x.shard.hash);
        models.end_chains((grammar, other), ContentHash::of(b"another shard"));
        assert!(tasks.iter().all(is_there));
        models.end_chains((grammar, other), x.shard.hash);
        let bytes = models.table().all[&x.language.key()].shards.bytes();
        assert!(bytes == 0 && is_there(y) && !is_there(x));
    }

    #[test]
    fn prepared_forms_are_few_where_there_is_little_room() {
        let [x, y] = ["x", "y"].map(task);
        let size = Prepared::new(x.language.grammar.value.clone(), x.language.lexicon.value.clone()).size();
        for (memory, stays) in [(2 * size, true), (2 * size - 2, false)] {
            let models = Models::new(memory);
            let first = prepared(&models, &x);
            prepared(&models, &y);
            assert_eq!(Arc::ptr_eq(&prepared(&models, &x), &first), stays, "{memory} bytes");
        }
    }
}
