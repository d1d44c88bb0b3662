//! Weights of a shard's parameters, without those of weight zero.
//!
//! Most strings of a stick go out of use in the first rounds, and their weights are zero from then on. A request holds the weights in use
//! and the places of the others, so that its size follows the strings in use; the answer has counts for the parameters in use alone.

use crate::num::Wide;
use serde::{Deserialize, Serialize};

/// Weights in the order of a shard's index.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct ShardWeights {
    /// Lengths of runs in the order of the index: weights in use, zeros, weights in use, and so on. Only the first can be 0.
    runs: Vec<u32>,
    /// The weights in use.
    in_use: Vec<Wide>,
}

/// Runs that do not fit the weights.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error("runs of {found} weights in use, expected {expected}, each run but the first of 1 or more")]
pub struct RunsError {
    /// Sum of the runs in use.
    pub found: u64,
    /// Number of weights in use.
    pub expected: usize,
}

impl FromIterator<Wide> for ShardWeights {
    fn from_iter<T: IntoIterator<Item = Wide>>(weights: T) -> ShardWeights {
        let mut found = ShardWeights { runs: vec![0], in_use: Vec::new() };
        for weight in weights {
            let is_run_in_use = found.runs.len() % 2 == 1;
            match found.runs.last_mut() {
                Some(run) if is_run_in_use != weight.is_zero() => *run += 1,
                _ => found.runs.push(1),
            }
            if !weight.is_zero() {
                found.in_use.push(weight);
            }
        }
        found
    }
}

impl ShardWeights {
    /// Weights of these runs.
    ///
    /// # Errors
    ///
    /// If the runs in use do not have as many weights as there are, a weight is zero, or a run after the first is empty.
    pub fn new(runs: Vec<u32>, in_use: Vec<Wide>) -> Result<ShardWeights, RunsError> {
        let weights = ShardWeights { runs, in_use };
        weights.check().map(|()| weights)
    }

    /// Checks runs and weights that were read.
    ///
    /// # Errors
    ///
    /// As [`ShardWeights::new`].
    pub fn check(&self) -> Result<(), RunsError> {
        let ShardWeights { runs, in_use } = self;
        let found = runs.iter().step_by(2).map(|&run| u64::from(run)).sum();
        let is_valid = found == in_use.len() as u64
            && !runs.iter().skip(1).any(|&run| run == 0)
            && !in_use.iter().any(|weight| weight.is_zero());
        if is_valid { Ok(()) } else { Err(RunsError { found, expected: in_use.len() }) }
    }

    /// Number of parameters, with those of weight zero.
    pub fn n_params(&self) -> u64 {
        self.runs.iter().map(|&run| u64::from(run)).sum()
    }

    /// Weights in use, in the order of the index.
    pub fn in_use(&self) -> &[Wide] {
        &self.in_use
    }

    /// Lengths of runs: weights in use, zeros, weights in use, and so on.
    pub fn runs(&self) -> &[u32] {
        &self.runs
    }

    /// Weights of all parameters, `[n_params]`.
    pub fn all(&self) -> Vec<Wide> {
        let mut all = Vec::with_capacity(self.n_params() as usize);
        let mut in_use = self.in_use.iter().copied();
        for (at, &run) in self.runs.iter().enumerate() {
            match at % 2 {
                0 => all.extend(in_use.by_ref().take(run as usize)),
                _ => all.resize(all.len() + run as usize, Wide::ZERO),
            }
        }
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_hold_every_pattern_of_zeros() {
        for pattern in 0..1u32 << 8 {
            for n in 0..=8 {
                let weight = |at: i32| match pattern >> at & 1 {
                    1 => Wide::from_f64(1.0 + f64::from(at)),
                    _ => Wide::ZERO,
                };
                let all: Vec<Wide> = (0..n).map(weight).collect();
                let weights: ShardWeights = all.iter().copied().collect();
                assert_eq!((weights.all(), weights.n_params()), (all, n as u64), "{pattern:b}");
                let again = ShardWeights::new(weights.runs.clone(), weights.in_use.clone());
                assert_eq!(again, Ok(weights));
            }
        }
    }

    #[test]
    fn runs_and_weights_agree() {
        let one = vec![Wide::ONE];
        assert_eq!(ShardWeights::new(vec![1, 4_000_000_000], one.clone()).unwrap().n_params(), 4_000_000_001);
        for (runs, weights) in [
            (vec![], one.clone()),
            (vec![2], one.clone()),
            (vec![0, 1], one.clone()),
            (vec![1, 0], one.clone()),
            (vec![0, 1, 0], vec![]),
            (vec![1], vec![Wide::ZERO]),
            (vec![u32::MAX, 1, u32::MAX], one),
        ] {
            assert!(ShardWeights::new(runs.clone(), weights).is_err(), "{runs:?}");
        }
    }
}
