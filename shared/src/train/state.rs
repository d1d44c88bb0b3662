//! Checks of saved states that several methods have in common.

use crate::grammar::groups::EstimateError;
use crate::limits::is_count;
use crate::models::adaptor;
use crate::models::logistic_normal::PriorsError;
use crate::work::task::CountsError;

/// Why a run cannot go on from a saved state. The way out is another checkpoint, or a new run.
#[derive(Clone, PartialEq, Debug, thiserror::Error)]
pub enum StateError {
    /// A number of rounds that no run has.
    #[error("it has {rounds} rounds behind it")]
    Rounds {
        /// Number of rounds in the state.
        rounds: usize,
    },
    /// Counts are not as many as parameters.
    #[error("its counts are not those of its parameters")]
    Length,
    /// A count is negative or not finite.
    #[error("its counts are not counts")]
    Counts,
    /// The share of a stick that a round may drop is not from 0 to 1.
    #[error("a round may drop {share} of a stick")]
    DropShare {
        /// Share in the state.
        share: f64,
    },
    /// Averages are not as many as parameters.
    #[error("its statistics are not those of its parameters")]
    StatisticsLength,
    /// An average is negative or not finite.
    #[error("its statistics are not counts")]
    Statistics,
    /// Sums over samples are not as many as parameters.
    #[error("its samples are not of its parameters")]
    SamplesLength,
    /// The grammar cannot derive a string of a sample, or a sum is no count.
    #[error("its samples are not of its grammar")]
    Samples,
    /// A sum over samples is negative or not finite.
    #[error("the counts of its samples are not counts")]
    SampleCounts,
    /// More samples than rounds.
    #[error("it has more samples than rounds")]
    TooManySamples,
    /// A shard carries something else than a chain.
    #[error("a shard carries no trees")]
    NoTrees,
    /// The chain of a shard has other parameters or processes than the grammar.
    #[error("a shard's chain is of another grammar")]
    OtherChain,
    /// A parameter that is kept above zero is out of the grammar's range.
    #[error("it keeps a parameter that is not there")]
    NoSuchParam,
    /// The number of shards differs from the run's.
    #[error("its shards are others")]
    Shards,
    /// Counts of a shard are not as many as the parameters that it touches.
    #[error("a shard's counts are not those of its parameters")]
    ShardLength,
    /// The bound is not finite.
    #[error("its bound is no number")]
    Bound,
    /// Weights of components are negative, or do not sum to 1.
    #[error("its weights of components are not of 0 or more with sum 1")]
    Weights,
    /// Weights are not as many as components.
    #[error("it has weights of {found} components, expected {expected}")]
    Components {
        /// Number of weights.
        found: usize,
        /// Components of the job.
        expected: usize,
    },
    /// Counts are not as many as split rules.
    #[error("its counts are not those of its rules")]
    RulesLength,
    /// A shard state is of other trees.
    #[error("its own counts are not those of its trees")]
    Own,
    /// The parameters of an adaptor grammar.
    #[error(transparent)]
    Adaptor(#[from] adaptor::ParamsError),
    /// Pseudo-counts and counts.
    #[error(transparent)]
    Estimate(#[from] EstimateError),
    /// Invalid priors.
    #[error(transparent)]
    Priors(#[from] PriorsError),
    /// Invalid counts in a shard state.
    #[error(transparent)]
    ShardCounts(#[from] CountsError),
}

/// More rounds than any run has.
const MAX_ROUNDS: usize = 1 << 32;

/// Checks the number of rounds of a saved run.
pub fn check_rounds(rounds: usize) -> Result<(), StateError> {
    if rounds <= MAX_ROUNDS { Ok(()) } else { Err(StateError::Rounds { rounds }) }
}

/// Checks that counts are as many as parameters, and each one a count.
pub fn check_counts(counts: &[f64], n_params: usize) -> Result<(), StateError> {
    if counts.len() != n_params {
        return Err(StateError::Length);
    }
    if counts.iter().all(|&count| is_count(count)) { Ok(()) } else { Err(StateError::Counts) }
}
