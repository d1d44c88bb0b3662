//! How a worker answers a task.
//!
//! An [`Engine`] keeps what is costly to build from one task to the next: binarised grammars with the index of their
//! strings, and the forests of shards (`cache`). Nothing it keeps changes an answer.

mod annotated;
mod built;
mod cache;
mod candidates;
mod chained;
mod collapsed;
mod fitted;
mod sampled;

use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard};

use crate::data::Sentence;
use crate::forest::Prepared;
use crate::forest::TooAmbiguous;
use crate::grammar::groups::Groups;
use crate::models::decode;
use crate::models::decode::Decoder;
use crate::models::dmv::constraint::{Component, Constraints, Unsuited};
use crate::models::dmv::nouns;
use crate::models::latent::layout::TooManyWeights;
use crate::models::sampler::Items;
use crate::work::shard::Shard;
use crate::work::task::{Answer, ContentHash, Named, Task, Weighted, Work};
use built::BuiltShard;
use built::spill::Spill;
use cache::Models;

/// Answers tasks. One per process, shared by its threads.
pub struct Engine {
    models: Models,
    /// For built shards that do not fit in memory.
    spill: Option<Spill>,
}

/// How a task is answered; [`engine`] unless a test says otherwise.
pub type Compute = Arc<dyn Fn(&Task) -> Result<Answer, ComputeError> + Send + Sync>;

/// The mathematics: one [`Engine`] for all threads of a process, with room for [`MEMORY`] bytes.
pub fn engine() -> Compute {
    engine_with(MEMORY, None)
}

/// The same with room for so many bytes, and for more in files of a folder that is empty and for this alone, if there is such.
pub fn engine_with(memory: usize, spill: Option<&Path>) -> Compute {
    let engine = Engine::with_memory(memory);
    let engine = match spill {
        Some(folder) => engine.spilling_to(folder),
        None => engine,
    };
    Arc::new(move |task| engine.run(task))
}

/// Bytes of forests to keep where nobody says how many.
pub const MEMORY: usize = 4 << 30;

/// Why a task has no answer. Never depends on the machine: the same task fails everywhere.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum ComputeError {
    /// The weights have another length than the index of the shard, or than the parameters of the model.
    #[error("task has {found} weights, its shard or model has {expected} parameters")]
    Weights {
        /// In the task.
        found: usize,
        /// Parameters there are.
        expected: usize,
    },
    /// What a shard carries is not of this shard.
    #[error("what the shard carries does not fit it: {problem}")]
    ShardState {
        /// What does not hold.
        problem: String,
    },
    /// A sentence with too many derivations.
    #[error(transparent)]
    TooAmbiguous(#[from] TooAmbiguous),
    /// Work for sentences on a shard of strings.
    #[error(
        "a shard of stick strings can only be indexed and counted, one of trees annotated; this task needs a shard of sentences"
    )]
    NotSentences,
    /// Work for trees on another shard.
    #[error("this task needs a shard of trees")]
    NotTrees,
    /// A decoder of dependency trees under another grammar.
    #[error("decoder mbr-arcs is for dependency grammars; this task has another grammar")]
    NotDependencies,
    /// Labels without subtypes, or with more than there can be.
    #[error("labels have {found} subtypes, expected 1 to {}", crate::models::latent::layout::MAX_SUBTYPES)]
    Subtypes {
        /// In the task.
        found: usize,
    },
    /// Split rules with too many weights.
    #[error(transparent)]
    SplitWeights(#[from] TooManyWeights),
    /// Priors that are not those of the grammar.
    #[error("the priors do not fit the grammar: {problem}")]
    Priors {
        /// What does not hold.
        problem: String,
    },
    /// Components of a mixture that say nothing of the grammar.
    #[error("the components do not fit the grammar: {0}")]
    Components(#[from] Unsuited),
    /// Strings of a shard that the lexicon does not have, or not on a stick of an adapted nonterminal.
    #[error("shard of strings {start}..{end} does not fit a lexicon with parameters below {n_params}")]
    NoSuchStrings {
        /// First parameter.
        start: u32,
        /// One past the last.
        end: u32,
        /// Parameters there are.
        n_params: usize,
    },
}

/// Grammar and lexicon.
type ModelKey = (ContentHash, ContentHash);

/// Those of a task.
fn under(task: &Task) -> ModelKey {
    (task.grammar.hash, task.lexicon.hash)
}

impl Default for Engine {
    /// With room for [`MEMORY`] bytes of forests.
    fn default() -> Engine {
        Engine::with_memory(MEMORY)
    }
}

impl Engine {
    /// Keeps at most `bytes` of forests, whatever grammars they are under; shards beyond that are built anew for every task. Of grammars
    /// and lexicons, prepared, it keeps half as many bytes, and those in use.
    pub fn with_memory(bytes: usize) -> Engine {
        Engine { models: Models::new(bytes), spill: None }
    }

    /// Writes forests for which there is no room into files in `folder`, which is empty and for this alone, and reads them from
    /// there.
    pub fn spilling_to(self, folder: &Path) -> Engine {
        Engine { spill: Some(Spill::new(folder)), ..self }
    }

    /// The answer to `task`.
    pub fn run(&self, task: &Task) -> Result<Answer, ComputeError> {
        if let Work::Annotate(annotate) = &task.work {
            return annotated::pass(&task.shard.value, annotate).map(Answer::Annotated);
        }
        let prepared = self.models.prepared(task);
        let sentences = match task.shard.value.as_ref() {
            Shard::Sentences(sentences) => Some(sentences),
            Shard::Strings(params) => {
                let n_params = prepared.lexicon.n_params(&prepared.grammar);
                let is_on_stick =
                    !prepared.binary.base.is_empty() && params.start as usize > prepared.grammar.rules.len();
                if !is_on_stick || params.end as usize > n_params {
                    let (start, end) = (params.start, params.end);
                    return Err(ComputeError::NoSuchStrings { start, end, n_params });
                }
                None
            }
            Shard::Trees { .. } => return Err(ComputeError::NotSentences),
        };
        match &task.work {
            Work::Candidates { max_length } => {
                let sentences = sentences.ok_or(ComputeError::NotSentences)?;
                Ok(Answer::Candidates(candidates::count(&prepared, sentences, *max_length)?))
            }
            Work::Cover => {
                let sentences = sentences.ok_or(ComputeError::NotSentences)?;
                Ok(Answer::Missing(candidates::missing(&prepared, sentences)?))
            }
            Work::Index => Ok(Answer::Index(self.built(task, &prepared)?.0.index.clone())),
            Work::Expect { weights, losses } => {
                let (built, stays) = self.built(task, &prepared)?;
                built.expect(weights, *losses, stays).map(Answer::Expectation)
            }
            Work::Sample(sample) => {
                let sentences = sentences.ok_or(ComputeError::NotSentences)?;
                let built = self.forests(task, &prepared)?;
                sampled::draw(&prepared, &built, sentences, sample).map(Answer::Sampled)
            }
            Work::Collapse(collapse) => {
                sentences.ok_or(ComputeError::NotSentences)?;
                let groups = Groups::new(&prepared.grammar, &prepared.lexicon);
                collapsed::pass(&*self.forests(task, &prepared)?, &groups, collapse).map(Answer::Collapsed)
            }
            Work::Sweep(sweeps) => {
                let sentences = sentences.ok_or(ComputeError::NotSentences)?;
                let n_params = prepared.lexicon.n_params(&prepared.grammar);
                if sweeps.pseudo.len() != n_params {
                    let found = sweeps.pseudo.len();
                    return Err(ComputeError::Weights { found, expected: n_params });
                }
                let items = self.items(task, &prepared, sentences)?;
                chained::sweep(&prepared, &items, sweeps).map(Answer::Chained)
            }
            Work::Fit(with) => {
                sentences.ok_or(ComputeError::NotSentences)?;
                let built = match &with.value.components[..] {
                    [] => self.forests(task, &prepared)?,
                    components => self.constrained(task, &prepared, components)?,
                };
                fitted::fit(&built, &prepared.grammar, &with.value).map(Answer::Fitted)
            }
            Work::Annotate(_) => unreachable!("trees need no grammar, and were read above"),
            Work::Decode(with) => {
                let sentences = sentences.ok_or(ComputeError::NotSentences)?;
                let expected = prepared.lexicon.n_params(&prepared.grammar) + prepared.lexicon.sticks.len();
                if with.value.weights.len() != expected {
                    return Err(ComputeError::Weights { found: with.value.weights.len(), expected });
                }
                let of_arcs = with.value.decoders.contains(&Decoder::MbrArcs);
                if of_arcs && nouns::tags(&prepared.grammar).is_none() {
                    return Err(ComputeError::NotDependencies);
                }
                let sentences: Vec<_> = sentences.iter().map(|sentence| sentence.tokens.as_slice()).collect();
                Ok(Answer::Decoded(decode::decode(&prepared, &with.value, &sentences)?))
            }
        }
    }

    /// The shard, and whether it stays in memory.
    fn built(&self, task: &Task, prepared: &Prepared) -> Result<(Arc<BuiltShard>, bool), TooAmbiguous> {
        let (under, shard) = (under(task), task.shard.hash);
        let build = || {
            let spilled = self.spill.as_ref().and_then(|spill| spill.read(under, shard));
            spilled.map_or_else(|| BuiltShard::new(prepared, task.shard.value.clone()), Ok)
        };
        let (built, stays) =
            self.models.shard(under, |shards| &mut shards.built, shard, build, BuiltShard::size)?;
        if let (Some(spill), false) = (&self.spill, stays) {
            spill.write(under, shard, &built);
        }
        Ok((built, stays))
    }

    fn forests(&self, task: &Task, prepared: &Prepared) -> Result<Arc<BuiltShard>, TooAmbiguous> {
        let (built, _) = self.built(task, prepared)?;
        if !built.is_dense() {
            return Ok(built);
        }
        let build = || built.with_forests(prepared, task.shard.value.clone());
        let forests = self.models.shard(
            under(task),
            |shards| &mut shards.forests,
            task.shard.hash,
            build,
            BuiltShard::size,
        );
        Ok(forests?.0)
    }

    fn constrained(
        &self,
        task: &Task,
        prepared: &Prepared,
        components: &[Weighted],
    ) -> Result<Arc<BuiltShard>, ComputeError> {
        let components: Vec<&Component> = components.iter().map(|weighted| &weighted.component).collect();
        let constraints = Constraints::new(&prepared.grammar, components.iter().copied())?;
        let key = Named::new((task.shard.hash, components)).hash;
        let build = || BuiltShard::constrained(prepared, task.shard.value.clone(), &constraints);
        Ok(self.models.shard(under(task), |shards| &mut shards.constrained, key, build, BuiltShard::size)?.0)
    }

    fn items(
        &self,
        task: &Task,
        prepared: &Arc<Prepared>,
        sentences: &[Sentence],
    ) -> Result<Arc<Items>, TooAmbiguous> {
        let build = || Items::new(prepared.clone(), sentences);
        Ok(self.models.shard(under(task), |shards| &mut shards.items, task.shard.hash, build, Items::size)?.0)
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}
