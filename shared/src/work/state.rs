//! State of a shard between rounds.

use serde::{Deserialize, Serialize};

use crate::limits::is_count;
use crate::models::{latent, sampler};

/// State of a shard between rounds.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub enum ShardState {
    /// Collapsed variational Bayes: the expected counts of every occurrence of its sentences, in the order of the sentences, as
    /// positions in the shard's index, ascending, and uses.
    Counts(Vec<Vec<(u32, f64)>>),
    /// A Markov chain: trees and tables.
    Chain(sampler::State),
    /// Collapsed variational Bayes over split rules.
    Latent(latent::collapsed::TreeCounts),
    /// A Markov chain within a round.
    Sweeping(Sweeping),
}

/// A Markov chain whose round has more sweeps than one task.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Sweeping {
    /// Trees and tables.
    pub state: sampler::State,
    /// State of the round's random numbers ([`crate::num::random::state`]).
    pub random: [u64; 2],
    /// Sweeps of the round that are left, at least 1.
    pub left: u32,
}

/// Why counts do not belong to a shard.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum CountsError {
    /// Parameters do not ascend, or are out of the shard's range.
    #[error("a sentence's counts are not of the shard's parameters")]
    Params,
    /// A count is not positive and finite.
    #[error("a sentence's counts are not counts")]
    Counts,
}

impl ShardState {
    /// The method that it is of, for messages.
    pub fn method(&self) -> &'static str {
        match self {
            ShardState::Counts(_) => "collapsed variational Bayes",
            ShardState::Chain(_) | ShardState::Sweeping(_) => "a Markov chain",
            ShardState::Latent(_) => "collapsed variational Bayes with latent annotations",
        }
    }

    /// Checks that counts are of a shard with `n_params` parameters, as far as can be seen without its sentences.
    pub fn check(&self, n_params: usize) -> Result<(), CountsError> {
        let ShardState::Counts(by_occurrence) = self else { return Ok(()) };
        for counts in by_occurrence {
            let ascending = counts.windows(2).all(|pair| pair[0].0 < pair[1].0);
            if !ascending || counts.last().is_some_and(|&(param, _)| param as usize >= n_params) {
                return Err(CountsError::Params);
            }
            if !counts.iter().all(|&(_, count)| count > 0.0 && is_count(count)) {
                return Err(CountsError::Counts);
            }
        }
        Ok(())
    }
}
