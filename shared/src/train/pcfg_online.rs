//! Online training of a PCFG: each round reads a sample of the corpus, and moves statistics s that are averages over samples
//! ([`crate::train::stochastic`]).
//!
//! By [`Method::Em`] θ is s, normalised: stepwise EM (Liang & Klein 2009, §3). By [`Method::Vb`] q(θ) = Dirichlet(α + s): stochastic variational
//! Bayes (Hoffman et al. 2013; of PCFGs Pate & Johnson 2016). [`em`] and [`vb`] give weights and objective, with s for the counts of a
//! corpus.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::pcfg::Start;
use crate::grammar::groups::{Estimate, Groups};
use crate::models;
use crate::models::pcfg::{Params, em, vb};
use crate::num::Wide;
use crate::train::round::{Ask, RoundReport, Step, Totals, in_use, relative_change};
use crate::train::state::{StateError, check_rounds};
use crate::train::stochastic::{Schedule, average, averaged};
use crate::train::trainer::{self, Collect, Failure, Learned, Read, Shards};
use crate::work::task::Answer;

/// How the probabilities of rules are estimated from the statistics.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Method {
    /// Stepwise EM.
    Em,
    /// Stochastic variational Bayes.
    Vb,
}

/// The least weight of a parameter by EM. A rule that the samples so far did not use may be needed by the next one.
const LEAST: f64 = 1e-30;

/// Moves the parameters from round to round.
pub struct Trainer {
    groups: Groups,
    method: Method,
    start: Start,
    schedule: Schedule,
    state: State,
    /// The weights of the round under way.
    weights: Arc<Vec<Wide>>,
    /// The sums over its shards.
    sample: Totals,
}

/// State of a [`Trainer`] after a round.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct State {
    /// α, and s for counts.
    pub estimate: Estimate,
    /// Rounds that counted.
    pub rounds: usize,
    /// The last estimate of the objective.
    pub bound: Option<f64>,
    /// Σ log Z of the corpus, averaged over the rounds that have an objective.
    log_z: Option<f64>,
}

impl State {
    /// Checks that a trainer of these multinomials can go on from it.
    pub fn check(&self, groups: &Groups) -> Result<(), StateError> {
        check_rounds(self.rounds)?;
        Ok(self.estimate.check(groups)?)
    }
}

impl Trainer {
    /// Starts with the pseudo-counts `alpha`.
    pub fn new(groups: Groups, alpha: Vec<f64>, method: Method, start: Start, schedule: Schedule) -> Trainer {
        let counts = match &start {
            Start::Counts(counts) => counts.clone(),
            Start::Uniform | Start::Jitter(_) | Start::Noise(_) => vec![0.0; groups.n_params()],
        };
        let estimate = Estimate { alpha, counts };
        let state = State { estimate, rounds: 0, bound: None, log_z: None };
        Trainer::resume(groups, method, start, schedule, state)
    }

    /// Goes on from `state`, which [`State::check`] found in order; all else as it was then.
    pub fn resume(groups: Groups, method: Method, start: Start, schedule: Schedule, state: State) -> Trainer {
        let first = if matches!(start, Start::Counts(_)) { 0 } else { schedule.first };
        let schedule = Schedule { first, ..schedule };
        Trainer { groups, method, start, schedule, state, weights: Arc::default(), sample: Totals::default() }
    }

    /// Returns the state between two rounds.
    pub fn state(&self) -> &State {
        &self.state
    }

    /// Returns the learned parameters for decoding.
    pub fn params(&self) -> Params {
        let is_point = self.method == Method::Em;
        Params::new(&self.groups, self.state.estimate.clone(), self.estimated_weights(), is_point)
    }

    /// The shards of sentences that the next round reads, ascending.
    pub fn sampled(&self) -> Vec<usize> {
        self.schedule.sampled(self.state.rounds + 1)
    }

    /// Weights from the statistics, `[n_params]`.
    fn estimated_weights(&self) -> Vec<Wide> {
        match self.method {
            Method::Em => {
                let weights = em::weights(&self.groups, &self.state.estimate);
                let least = Wide::from_f64(LEAST);
                weights.into_iter().map(|weight| if weight < least { least } else { weight }).collect()
            }
            Method::Vb => vb::weights(&self.groups, &self.state.estimate),
        }
    }

    /// Weights for the next round, `[n_params]`. None is zero, so that no sentence lacks a derivation.
    pub fn weights(&self) -> Vec<Wide> {
        if self.schedule.is_first(self.state.rounds + 1) {
            self.start.weights(&self.groups, self.schedule.seed, self.schedule.run)
        } else {
            self.estimated_weights()
        }
    }

    /// Takes in a round that ran with [`Trainer::weights`]: the sums over the shards of [`Trainer::sampled`].
    pub fn absorb(&mut self, sample: Totals) -> Step {
        let State { estimate, rounds, bound: last, log_z } = &mut self.state;
        let round = *rounds + 1;
        let (rate, scale) = (self.schedule.rate(round), self.schedule.scale(round));
        let mut bound = None;
        // The first weights of variational Bayes come from no q, and have no bound.
        if self.method == Method::Em || !self.schedule.is_first(round) {
            let found = scale * sample.log_z;
            let averaged = log_z.map_or(found, |before| averaged(before, found, rate));
            *log_z = Some(averaged);
            bound = Some(match self.method {
                Method::Em => em::bound(averaged),
                Method::Vb => vb::bound(&self.groups, estimate, averaged),
            });
        }
        let change = relative_change(*last, bound);
        let scaled: Vec<f64> = sample.counts.iter().map(|count| scale * count).collect();
        average(&mut estimate.counts, &scaled, rate);
        (*rounds, *last) = (round, bound);
        Step::Next(RoundReport { bound, change, ..RoundReport::default() })
    }
}

impl trainer::Trainer for Trainer {
    fn rounds(&self) -> usize {
        self.state.rounds
    }

    fn bound(&self) -> Option<f64> {
        self.state.bound
    }

    fn shards(&self, _: &dyn Shards) -> Vec<usize> {
        self.sampled()
    }

    fn begin(&mut self, _: Collect) {
        self.weights = Arc::new(self.weights());
        self.sample = Totals::new(self.weights.len(), false);
    }

    fn ask(&self, _: &dyn Shards) -> Read<Ask> {
        Ok(Ask::Expect { weights: self.weights.clone(), losses: false })
    }

    fn add(&mut self, shards: &dyn Shards, shard: usize, answer: Answer) -> Read<bool> {
        let Answer::Expectation(found) = answer else { return Ok(false) };
        let params = shards.params(shard)?;
        // No weight is zero, so that nothing can be missing.
        Ok(found.missing.is_empty() && self.sample.add(None, in_use(&self.weights, &params), found))
    }

    fn finish(&mut self) -> Result<Step, Failure> {
        let sample = std::mem::take(&mut self.sample);
        Ok(self.absorb(sample))
    }

    fn learned(&self) -> Learned {
        Learned::Grammar { lexicon: None, params: models::Params::Pcfg(self.params()) }
    }
}
