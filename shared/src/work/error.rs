//! Why a task has no answer.

use crate::forest::TooAmbiguous;
use crate::models::dmv::constraint::Unsuited;
use crate::models::latent::layout::TooManyWeights;
use crate::models::logistic_normal::PriorsError;

/// Why a task has no answer. The same task fails everywhere, unless the process [lacks memory](ComputeError::lacks_memory).
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum ComputeError {
    /// The weights have another length than the index of the shard, or than the parameters of the model.
    #[error("task has {found} weights, its shard or model has {expected} parameters")]
    Weights {
        /// Number in the task.
        found: usize,
        /// Parameters there are.
        expected: usize,
    },
    /// A shard state is not of this shard.
    #[error("what the shard carries does not fit it: {problem}")]
    ShardState {
        /// The violated condition.
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
    /// Work for sentences or strings in a task without a grammar.
    #[error("the task names no grammar; only trees are annotated without one")]
    NoGrammar,
    /// Work for trees on another shard.
    #[error("this task needs a shard of trees")]
    NotTrees,
    /// A decoder of dependency trees under another grammar.
    #[error("decoder mbr-arcs is for dependency grammars; this task has another grammar")]
    NotDependencies,
    /// Labels without subtypes, or with more than there can be.
    #[error("labels have {found} subtypes, expected 1 to {}", crate::models::latent::layout::MAX_SUBTYPES)]
    Subtypes {
        /// Number in the task.
        found: usize,
    },
    /// Split rules with too many weights.
    #[error(transparent)]
    SplitWeights(#[from] TooManyWeights),
    /// Priors of another grammar.
    #[error("the priors do not fit the grammar: {0}")]
    Priors(#[from] PriorsError),
    /// Components of a mixture that say nothing of the grammar.
    #[error("the components do not fit the grammar: {0}")]
    Components(#[from] Unsuited),
    /// Strings of a shard that the lexicon does not have, or not on a stick of an adapted nonterminal.
    #[error("shard of strings {start}..{end} does not fit a lexicon with parameters below {n_params}")]
    NoSuchStrings {
        /// First parameter.
        start: u32,
        /// End of the strings, exclusive.
        end: u32,
        /// Parameters there are.
        n_params: usize,
    },
}

impl ComputeError {
    /// Whether a process with more memory may compute the task.
    pub fn lacks_memory(&self) -> bool {
        matches!(self, ComputeError::TooAmbiguous(error) if !error.is_everywhere())
    }
}
