//! Weights of an E-step, without those of weight zero.
//!
//! Most strings of a stick go out of use in the first rounds, and their weights are zero from then on. A request holds the weights in use
//! and the places of the others, so that its size follows the strings in use; the answer has counts for the parameters in use alone.
//!
//! Where a worker's tasks together touch more parameters than there are, all weights are sent to it once in the place of each task's own.

use super::content::Named;
use crate::grammar::ParamId;
use crate::num::Wide;
use serde::{Deserialize, Serialize};

/// The weights of the parameters that the shards of a task touch; `W` names weights of all parameters.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub enum TaskWeights<W = Named<WeightsInUse>> {
    /// These, in the order of the index of the shards.
    Touched(WeightsInUse),
    /// Those among the weights of all parameters, which the tasks of a round share.
    Shared {
        /// Weights of all parameters of the grammar and its strings.
        all: W,
        /// How many of them the shards touch.
        n_touched: u32,
        /// How many of those are in use.
        n_in_use: u32,
    },
}

impl<W> TaskWeights<W> {
    /// Number of parameters that the shards touch, with those of weight zero.
    pub fn n_touched(&self) -> u64 {
        match self {
            TaskWeights::Touched(weights) => weights.n_params(),
            TaskWeights::Shared { n_touched, .. } => u64::from(*n_touched),
        }
    }

    /// Number of weights in use among them.
    pub fn n_in_use(&self) -> usize {
        match self {
            TaskWeights::Touched(weights) => weights.in_use().len(),
            TaskWeights::Shared { n_in_use, .. } => *n_in_use as usize,
        }
    }

    /// The same, with the weights of all parameters that `find` has for their name.
    pub fn resolve<V, E>(self, find: impl FnOnce(W) -> Result<V, E>) -> Result<TaskWeights<V>, E> {
        Ok(match self {
            TaskWeights::Touched(weights) => TaskWeights::Touched(weights),
            TaskWeights::Shared { all, n_touched, n_in_use } => {
                TaskWeights::Shared { all: find(all)?, n_touched, n_in_use }
            }
        })
    }
}

impl TaskWeights {
    /// Weights of `params`, the index of the shards.
    pub fn of(&self, params: &[ParamId]) -> Vec<Wide> {
        match self {
            TaskWeights::Touched(weights) => weights.all(),
            TaskWeights::Shared { all, .. } => all.value.of(params),
        }
    }
}

impl<W> FromIterator<Wide> for TaskWeights<W> {
    fn from_iter<T: IntoIterator<Item = Wide>>(weights: T) -> TaskWeights<W> {
        TaskWeights::Touched(weights.into_iter().collect())
    }
}

/// Weights of a list of parameters.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct WeightsInUse {
    /// Lengths of runs in the order of the list: weights in use, zeros, weights in use, and so on. Only the first can be 0.
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

impl FromIterator<Wide> for WeightsInUse {
    fn from_iter<T: IntoIterator<Item = Wide>>(weights: T) -> WeightsInUse {
        let mut found = WeightsInUse { runs: vec![0], in_use: Vec::new() };
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

impl WeightsInUse {
    /// Weights of these runs.
    ///
    /// # Errors
    ///
    /// If the runs in use do not have as many weights as there are, a weight is zero, or a run after the first is empty.
    pub fn new(runs: Vec<u32>, in_use: Vec<Wide>) -> Result<WeightsInUse, RunsError> {
        let weights = WeightsInUse { runs, in_use };
        weights.check().map(|()| weights)
    }

    /// Checks runs and weights that were read.
    ///
    /// # Errors
    ///
    /// As [`WeightsInUse::new`].
    pub fn check(&self) -> Result<(), RunsError> {
        let WeightsInUse { runs, in_use } = self;
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

    /// Weights in use, in the order of the list.
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

    /// Weights of these parameters, ascending, if the list is of all parameters.
    pub fn of(&self, params: &[ParamId]) -> Vec<Wide> {
        let mut runs = self.runs.iter().enumerate();
        // The end of the run that was reached, whether it is in use, and the weights in use up to its end.
        let (mut end, mut is_in_use, mut n_in_use) = (0, false, 0);
        let weight = |param: &ParamId| {
            while end <= param.index() {
                let Some((at, &run)) = runs.next() else { return Wide::ZERO };
                (end, is_in_use) = (end + run as usize, at % 2 == 0);
                n_in_use += if is_in_use { run as usize } else { 0 };
            }
            if is_in_use { self.in_use[n_in_use + param.index() - end] } else { Wide::ZERO }
        };
        params.iter().map(weight).collect()
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
                let weights: WeightsInUse = all.iter().copied().collect();
                for some in 0..1u32 << n {
                    let params: Vec<ParamId> =
                        (0..n as u32).filter(|at| some >> at & 1 == 1).map(ParamId).collect();
                    let of_each: Vec<Wide> = params.iter().map(|param| all[param.index()]).collect();
                    assert_eq!(weights.of(&params), of_each, "{some:b} of {pattern:b}");
                }
                assert_eq!((weights.all(), weights.n_params()), (all, n as u64), "{pattern:b}");
                let again = WeightsInUse::new(weights.runs.clone(), weights.in_use.clone());
                assert_eq!(again, Ok(weights));
            }
        }
    }

    #[test]
    fn runs_and_weights_agree() {
        let one = vec![Wide::ONE];
        assert_eq!(WeightsInUse::new(vec![1, 4_000_000_000], one.clone()).unwrap().n_params(), 4_000_000_001);
        for (runs, weights) in [
            (vec![], one.clone()),
            (vec![2], one.clone()),
            (vec![0, 1], one.clone()),
            (vec![1, 0], one.clone()),
            (vec![0, 1, 0], vec![]),
            (vec![1], vec![Wide::ZERO]),
            (vec![u32::MAX, 1, u32::MAX], one),
        ] {
            assert!(WeightsInUse::new(runs.clone(), weights).is_err(), "{runs:?}");
        }
    }
}
