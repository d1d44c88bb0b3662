//! The trainer of logistic-normal priors: variational EM of a PCFG with logistic-normal priors (Cohen, Gimpel & Smith
//! 2008, §3).
//!
//! ```text
//! begin → work … add(shard, answer) … → finish → begin …
//! ```
//!
//! With [`Constrained`] components ([`crate::train::mixture`]; Cohen & Smith 2009) every round takes as many of a sentence's posteriors, and mixes
//! them by the weights λ that the round before found best.
//!
//! Between two rounds the [`State`] is all that matters: a trainer made from a saved one goes on to the same bits.

use std::ops::Range;

use serde::{Deserialize, Serialize};

use crate::models;
use crate::models::dmv::constraint::Component;
use crate::models::logistic_normal::prior::PriorError;
use crate::models::logistic_normal::{
    ComponentSums, Multinomials, Params, PointEstimate, Prior, Statistics, StopRule,
};
use crate::num::Wide;
use crate::num::tree_sum::TreeSum;
use crate::train::mixture::{Limit, Mixture, MixtureError};
use crate::train::round::{Ask, RoundReport, Step, relative_change};
use crate::train::state::{StateError, check_rounds};
use crate::train::trainer::{self, Collect, ComponentResult, Learned, Past, Read, Report, Shards};
use crate::work::task::{Answer, Fit, Fitted, Named, Weighted, Work};

/// How to train.
#[derive(Clone, PartialEq, Debug)]
pub struct Settings {
    /// End of the rounds of a sentence.
    pub until: StopRule,
    /// Weights for reading sentences after training.
    pub estimate: PointEstimate,
    /// Relative change of the bound below which training has converged, once the base's limit rises no more.
    pub tolerance: f64,
    /// Components besides the base, if there are any.
    pub constrained: Option<Constrained>,
}

/// Components of a dependency model beside the base, and their weights.
#[derive(Clone, PartialEq, Debug)]
pub struct Constrained {
    /// The components.
    pub components: Vec<Component>,
    /// The base's weight and theirs.
    pub mixture: Mixture,
}

/// State of a [`Trainer`] after a round.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct State {
    /// Priors by multinomial.
    pub priors: Vec<Prior>,
    /// The rounds so far.
    pub past: Past,
    /// λ of the next round, the base's first; empty without components.
    pub weights: Vec<f64>,
}

/// Why there are no priors or weights of components for the next round.
#[derive(Clone, PartialEq, Debug, thiserror::Error)]
pub enum Failure {
    /// The new prior of a multinomial is not finite or not positive definite.
    #[error("multinomial {multinomial}: {source}")]
    Prior {
        /// Number of the multinomial.
        multinomial: usize,
        /// Cause.
        source: PriorError,
    },
    /// There are no best weights.
    #[error(transparent)]
    Mixture(#[from] MixtureError),
}

impl From<Failure> for trainer::Failure {
    fn from(failure: Failure) -> trainer::Failure {
        trainer::Failure::Method(Box::new(failure))
    }
}

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
        Ok(State { priors, past: Past::default(), weights: Vec::new() })
    }

    /// Returns the state with a mixture, before its first round.
    pub fn with_mixture(self, mixture: &Mixture) -> Result<State, Failure> {
        Ok(State { weights: mixture.first()?, ..self })
    }

    /// Checks that a trainer of these multinomials can go on from it, if it has as many components.
    pub fn check(&self, multinomials: &Multinomials) -> Result<(), StateError> {
        check_rounds(self.past.rounds)?;
        if self.past.bound.is_some_and(|bound| !bound.is_finite()) {
            return Err("its bound is no number".into());
        }
        let sum: f64 = self.weights.iter().sum();
        let is_weight = |weight: &f64| (0.0..=1.0).contains(weight);
        if !self.weights.is_empty() && (!self.weights.iter().all(is_weight) || (sum - 1.0).abs() > 1e-6) {
            return Err("its weights of components are not of 0 or more with sum 1".into());
        }
        Ok(multinomials.check(&self.priors)?)
    }

    /// Checks that it has weights for these components.
    pub fn suits(&self, settings: &Settings) -> Result<(), StateError> {
        let expected = settings.constrained.as_ref().map_or(0, |those| those.mixture.names().len());
        match self.weights.len() {
            found if found == expected => Ok(()),
            found => Err(StateError::Violated(
                format!("it has weights of {found} components, expected {expected}").into(),
            )),
        }
    }
}

/// Moves the priors from round to round.
pub struct Trainer {
    settings: Settings,
    state: State,
    /// Priors of the current round.
    fit: Named<Fit>,
    gathered: TreeSum<Statistics>,
    /// Shares of the components in the last round, the base's first.
    shares: Vec<ComponentResult>,
    /// The first sentence without a bound, by shard and position.
    unbounded: Option<(usize, usize)>,
}

impl Trainer {
    /// Goes on from `state`, which is new, or which [`State::check`] and [`State::suits`] found in order.
    pub fn new(settings: Settings, state: State) -> Trainer {
        let fit = Named::new(Fit { priors: Vec::new(), until: settings.until, components: Vec::new() });
        let (gathered, shares, unbounded) = (TreeSum::default(), Vec::new(), None);
        Trainer { settings, state, fit, gathered, shares, unbounded }
    }

    /// The state.
    pub fn state(&self) -> &State {
        &self.state
    }

    /// Weights for reading sentences.
    pub fn params(&self) -> Params {
        Params { priors: self.state.priors.clone(), estimate: self.settings.estimate }
    }
}

impl trainer::Trainer for Trainer {
    fn past(&self) -> Past {
        self.state.past
    }

    fn begin(&mut self, _: Collect) {
        let priors = self.state.priors.clone();
        self.gathered = TreeSum::default();
        self.unbounded = None;
        let components = self.settings.constrained.iter().flat_map(|those| &those.components).cloned();
        let weights = self.state.weights.iter().copied().skip(1);
        let weighted = |(component, weight)| Weighted { component, weight };
        let components = components.zip(weights).map(weighted).collect();
        self.fit = Named::new(Fit { priors, until: self.settings.until, components });
    }

    fn ask(&self, _: &dyn Shards) -> Read<Ask> {
        Ok(Ask::Same(Work::Fit(self.fit.clone())))
    }

    fn add(&mut self, _: &dyn Shards, group: Range<usize>, answer: Answer) -> Read<bool> {
        Ok(match answer {
            Answer::Fitted(Fitted::Statistics(statistics)) => {
                self.gathered.push(group.start, statistics);
                true
            }
            Answer::Fitted(Fitted::Unbounded { shard, sentence }) => {
                self.unbounded.get_or_insert((group.start + shard as usize, sentence as usize));
                true
            }
            _ => false,
        })
    }

    fn finish(&mut self) -> Result<Step, trainer::Failure> {
        if let Some((shard, sentence)) = self.unbounded {
            return Err(trainer::Failure::Unbounded { shard, sentence });
        }
        let priors = &self.fit.value.priors;
        let gathered = std::mem::take(&mut self.gathered).finish();
        let gathered = gathered.unwrap_or_else(|| Statistics::new(priors.len()));
        let bound = Some(gathered.total_bound(priors));
        let change = relative_change(self.state.past.bound, bound);
        let maximise =
            |(multinomial, (moments, prior)): (usize, (&crate::models::logistic_normal::Moments, &Prior))| {
                let found = moments.maximise(prior, gathered.n_sentences);
                found.map_err(|source| Failure::Prior { multinomial, source })
            };
        let pairs = gathered.moments.iter().zip(priors).enumerate();
        let new = pairs.map(maximise).collect::<Result<_, Failure>>()?;
        let (rounds, mut weights, mut is_even) = (self.state.past.rounds + 1, Vec::new(), true);
        if let Some(Constrained { mixture, .. }) = &self.settings.constrained {
            let bounds = gathered.part_bounds(priors);
            weights = mixture.best(rounds + 1, &bounds).map_err(Failure::from)?;
            let parts = gathered.parts.iter().zip(bounds).zip(&self.state.weights);
            let share = |((part, bound), &weight): ((&ComponentSums, f64), &f64)| {
                let n_empty = part.n_empty;
                ComponentResult { weight, bound, n_empty }
            };
            self.shares = parts.map(share).collect();
            // What λ may be was the same in this round and the one before.
            let is_over = |limit: Limit| rounds > 1 && limit.is_over(rounds - 1);
            is_even = mixture.limit().is_none_or(is_over);
        }
        self.state = State { priors: new, past: Past { rounds, bound }, weights };
        let converged = is_even && change.is_some_and(|change| change.abs() < self.settings.tolerance);
        Ok(Step::Next(RoundReport { bound, change, converged, ..RoundReport::default() }))
    }

    fn learned(&self) -> Learned {
        Learned::Grammar { lexicon: None, params: models::Params::LogisticNormal(self.params()) }
    }

    fn report(&self) -> Report<'_> {
        let names = self.settings.constrained.iter().flat_map(|those| those.mixture.names());
        let components = names.map(String::as_str).zip(self.shares.iter().copied()).collect();
        Report { components, ..Report::default() }
    }
}
