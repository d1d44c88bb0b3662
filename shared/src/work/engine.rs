//! The engine: answers tasks.

use std::path::Path;
use std::sync::Arc;

use super::context::{Cache, Context};
pub use super::error::ComputeError;
use super::kinds::{annotate, candidates, collapse, cover, decode, expect, fit, index, sample, sweep};
use super::task::{Answer, Task, Work};
use crate::stop;

/// Answers tasks. One per process, shared by its threads.
pub struct Engine(Cache);

/// How a task is answered; [`engine`] unless a test says otherwise.
pub type Compute = Arc<dyn Fn(&Task) -> Result<Answer, ComputeError> + Send + Sync>;

/// The mathematics: one [`Engine`] for all threads of a process, with room for [`MEMORY`] bytes.
pub fn engine() -> Compute {
    engine_with(MEMORY, None)
}

/// Returns an engine with room for so many bytes, and for more in files of `spill`, an empty folder for this engine alone. It computes no sentence
/// whose forest would take more, unless [`ONE_FOREST`] suffices.
pub fn engine_with(memory: usize, spill: Option<&Path>) -> Compute {
    let engine = Engine(Cache::with_memory(memory).with_forest_limit(memory.max(ONE_FOREST)));
    let engine = match spill {
        Some(folder) => engine.spilling_to(folder),
        None => engine,
    };
    Arc::new(move |task| engine.run(task))
}

/// Bytes of forests to keep by default.
pub const MEMORY: usize = 3 << 30;

/// Bytes that the forest of a sentence may always take: however little a process keeps, it computes what most jobs need.
pub const ONE_FOREST: usize = 64 << 20;

impl Default for Engine {
    /// An engine with room for [`MEMORY`] bytes of forests.
    fn default() -> Engine {
        Engine::with_memory(MEMORY)
    }
}

impl Engine {
    /// An engine that keeps at most `bytes` of forests, under all grammars together; shards beyond that are built anew for every task. Of
    /// grammars and lexicons, prepared, it keeps half as many bytes, and the ones in use.
    pub fn with_memory(bytes: usize) -> Engine {
        Engine(Cache::with_memory(bytes))
    }

    /// Writes forests for which there is no memory into files in `folder`, which is empty and for this engine alone.
    pub fn spilling_to(self, folder: &Path) -> Engine {
        Engine(self.0.spilling_to(folder))
    }

    /// The answer to `task`.
    pub fn run(&self, task: &Task) -> Result<Answer, ComputeError> {
        stop::check();
        let language = || task.language.as_ref().ok_or(ComputeError::NoGrammar);
        let on = |language, shard| Context::new(&self.0, language, shard);
        let context = || language().map(|language| on(language, &task.shard));
        let contexts =
            || language().map(|language| task.shards().map(|shard| on(language, shard)).collect::<Vec<_>>());
        Ok(match &task.work {
            Work::Candidates(lengths) => Answer::Candidates(candidates::run(&context()?, lengths)?),
            Work::Cover => Answer::Missing(cover::run(&context()?)?),
            Work::Index => Answer::Index(index::run(&context()?)?),
            Work::Expect { weights, losses } => {
                Answer::Expectation(expect::run(&contexts()?, weights, *losses)?)
            }
            Work::Sample(sample) => Answer::Sampled(sample::run(&context()?, sample)?),
            Work::Collapse(collapse) => Answer::Collapsed(collapse::run(&context()?, collapse)?),
            Work::Sweep(sweeps) => Answer::Chained(sweep::run(&context()?, sweeps)?),
            Work::Decode(with) => Answer::Decoded(decode::run(&context()?, &with.value)?),
            Work::Annotate(annotate) => Answer::Annotated(annotate::run(&task.shard.value, annotate)?),
            Work::Fit(with) => Answer::Fitted(fit::run(&contexts()?, &with.value)?),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::Sentence;
    use crate::forest::TooAmbiguous;
    use crate::grammar::lexicon::Lexicon;
    use crate::grammar::syntax;
    use crate::work::shard::Shard;
    use crate::work::task::{Language, Named};

    /// Law: a sentence for which a process lacks memory is an error there, which says so, and not one that the grammar cannot derive; a process
    /// with more memory computes it.
    #[test]
    fn a_sentence_beyond_the_memory_of_a_process_is_left_to_others() {
        let (grammar, _) =
            syntax::parse("1 1 S --> S S\n1 1 S --> a\nW --> a a\n1 1 S --> W a\n", "test").unwrap();
        let tokens = vec![grammar.symbol("a").unwrap(); 170];
        let lexicon = Lexicon::default();
        let language = Language { grammar: Named::new(grammar), lexicon: Named::new(lexicon) };
        let shard = Named::new(Shard::Sentences(vec![Sentence::new(tokens, 1)]));
        let task = Task { language: Some(language), shard, work: Work::Index, further: Vec::new() };
        let Err(ComputeError::TooAmbiguous(error)) = engine_with(0, None)(&task) else { panic!() };
        assert!(!error.is_everywhere() && error.to_string().ends_with("(--memory)"), "{error}");
        let Ok(Answer::Index(index)) = Engine::with_memory(0).run(&task) else { panic!() };
        assert_eq!(index.unparsable, [0; 0]);
        let limit = crate::limits::MAX_FOREST;
        assert!(TooAmbiguous { limit, ..error }.is_everywhere());
    }
}
