//! Checks of saved states that several methods have in common.

use std::borrow::Cow;

use crate::grammar::groups::EstimateError;
use crate::limits::is_count;
use crate::models::adaptor;
use crate::models::logistic_normal::PriorsError;
use crate::work::task::CountsError;

/// Why a run cannot go on from a saved state. The way out is another checkpoint, or a new run.
#[derive(Clone, PartialEq, Debug, thiserror::Error)]
pub enum StateError {
    /// A condition that the state violates.
    #[error("{0}")]
    Violated(Cow<'static, str>),
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

impl From<&'static str> for StateError {
    fn from(condition: &'static str) -> StateError {
        StateError::Violated(condition.into())
    }
}

/// More rounds than any run has.
const MAX_ROUNDS: usize = 1 << 32;

/// Checks the number of rounds of a saved run.
pub fn check_rounds(rounds: usize) -> Result<(), StateError> {
    if rounds <= MAX_ROUNDS {
        Ok(())
    } else {
        Err(StateError::Violated(format!("it has {rounds} rounds behind it").into()))
    }
}

/// Checks that counts are as many as parameters, and each one a count.
pub fn check_counts(counts: &[f64], n_params: usize) -> Result<(), StateError> {
    if counts.len() != n_params {
        return Err("its counts are not those of its parameters".into());
    }
    if counts.iter().all(|&count| is_count(count)) { Ok(()) } else { Err("its counts are not counts".into()) }
}
