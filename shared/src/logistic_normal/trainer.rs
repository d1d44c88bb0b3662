//! What the coordinator does with the answers of a round: variational EM of a PCFG with logistic-normal priors (Cohen, Gimpel & Smith
//! 2008, §3).
//!
//! ```text
//! begin → work … add(shard, answer) … → finish → begin …
//! ```
//!
//! Between two rounds the [`State`] is all that matters: a trainer made from a saved one goes on to the same bits.

use serde::{Deserialize, Serialize};

use super::prior::PriorError;
use super::{Multinomials, Params, PointEstimate, Prior, Statistics, Until};
use crate::num::Wide;
use crate::round::{RoundReport, Step, relative_change};
use crate::task::{Answer, Fit, Fitted, Named, Work};

/// How to train.
#[derive(Clone, PartialEq, Debug)]
pub struct Settings {
    /// When the rounds of a sentence end.
    pub until: Until,
    /// What sentences are read with after training.
    pub estimate: PointEstimate,
    /// Relative change of the bound below which training has converged.
    pub tolerance: f64,
}

/// What a [`Trainer`] knows after a round.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct State {
    /// One for each multinomial.
    pub priors: Vec<Prior>,
    /// Rounds that counted.
    pub rounds: usize,
    /// The last objective.
    pub bound: Option<f64>,
}

/// Why a round came to nothing.
#[derive(Clone, PartialEq, Debug, thiserror::Error)]
pub enum Failure {
    /// A sentence has no bound.
    #[error(
        "the bound of a sentence is not finite: its weights are beyond all bounds; start from other weights, or leave the sentence out"
    )]
    Unbounded {
        /// The shard,
        shard: usize,
        /// and the position in it.
        sentence: usize,
    },
    /// The new prior of a multinomial is none.
    #[error("multinomial {multinomial}: {source}")]
    Prior {
        /// Which.
        multinomial: usize,
        /// Why.
        source: PriorError,
    },
}

/// More than any run has.
const MAX_ROUNDS: usize = 1 << 32;

impl State {
    /// Before the first round: μ = ln θ with θ the given weights, and variances 1. Outcomes of a multinomial that are of the same family
    /// have covariance ½. Both by parameter, `[n_params]`.
    pub fn new(
        multinomials: &Multinomials,
        weights: &[Wide],
        families: &[Option<usize>],
    ) -> Result<State, Failure> {
        let prior = |(multinomial, range): (usize, std::ops::Range<usize>)| {
            let mean = weights[range.clone()].iter().map(|weight| weight.ln()).collect();
            Prior::related(mean, &families[range]).map_err(|source| Failure::Prior { multinomial, source })
        };
        let priors = multinomials.iter().enumerate().map(prior).collect::<Result<_, _>>()?;
        Ok(State { priors, rounds: 0, bound: None })
    }

    /// Whether a trainer of these multinomials can go on from it; an error says what does not hold.
    pub fn check(&self, multinomials: &Multinomials) -> Result<(), String> {
        if self.rounds > MAX_ROUNDS {
            return Err(format!("it has {} rounds behind it", self.rounds));
        }
        if self.bound.is_some_and(|bound| !bound.is_finite()) {
            return Err("its bound is no number".to_owned());
        }
        multinomials.check(&self.priors)
    }
}

/// Moves the priors from round to round.
pub struct Trainer {
    settings: Settings,
    state: State,
    /// Of the round under way.
    fit: Named<Fit>,
    gathered: Statistics,
    /// The first sentence without a bound, by shard and position.
    unbounded: Option<(usize, usize)>,
}

impl Trainer {
    /// Goes on from `state`, which is new, or which [`State::check`] found in order.
    pub fn new(settings: Settings, state: State) -> Trainer {
        let fit = Named::new(Fit { priors: Vec::new(), until: settings.until });
        Trainer { settings, state, fit, gathered: Statistics::default(), unbounded: None }
    }

    /// What it knows.
    pub fn state(&self) -> &State {
        &self.state
    }

    /// What to read sentences with.
    pub fn params(&self) -> Params {
        Params { priors: self.state.priors.clone(), estimate: self.settings.estimate }
    }

    /// Begins a round.
    pub fn begin(&mut self) {
        let priors = self.state.priors.clone();
        self.gathered = Statistics::new(priors.len());
        self.unbounded = None;
        self.fit = Named::new(Fit { priors, until: self.settings.until });
    }

    /// What every shard is asked.
    pub fn work(&self) -> Work {
        Work::Fit(self.fit.clone())
    }

    /// Takes in what was found for a shard; shards come in order. Whether the answer is one to [`Trainer::work`].
    pub fn add(&mut self, shard: usize, answer: Answer) -> bool {
        match answer {
            Answer::Fitted(Fitted::Statistics(statistics)) => {
                self.gathered.merge(&statistics);
                true
            }
            Answer::Fitted(Fitted::Unbounded { sentence }) => {
                self.unbounded.get_or_insert((shard, sentence as usize));
                true
            }
            _ => false,
        }
    }

    /// Ends a round to which all shards were added.
    pub fn finish(&mut self) -> Result<Step, Failure> {
        if let Some((shard, sentence)) = self.unbounded {
            return Err(Failure::Unbounded { shard, sentence });
        }
        let priors = &self.fit.value.priors;
        let gathered = std::mem::take(&mut self.gathered);
        let bound = Some(gathered.total_bound(priors));
        let change = relative_change(self.state.bound, bound);
        let maximise = |(multinomial, (moments, prior)): (usize, (&super::Moments, &Prior))| {
            let found = moments.maximise(prior, gathered.n_sentences);
            found.map_err(|source| Failure::Prior { multinomial, source })
        };
        let pairs = gathered.moments.iter().zip(priors).enumerate();
        let priors = pairs.map(maximise).collect::<Result<_, _>>()?;
        self.state = State { priors, rounds: self.state.rounds + 1, bound };
        let converged = change.is_some_and(|change| change.abs() < self.settings.tolerance);
        let (dropped, resorted, temperature, moves) = (0, false, None, None);
        Ok(Step::Next(RoundReport { bound, change, dropped, resorted, converged, temperature, moves }))
    }
}
