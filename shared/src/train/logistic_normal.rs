//! What the coordinator does with the answers of a round: variational EM of a PCFG with logistic-normal priors (Cohen, Gimpel & Smith
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

use serde::{Deserialize, Serialize};

use crate::models::dmv::constraint::Component;
use crate::models::logistic_normal::prior::PriorError;
use crate::models::logistic_normal::{Multinomials, Params, Part, PointEstimate, Prior, Statistics, Until};
use crate::num::Wide;
use crate::train::mixture::{Limit, Mixture, MixtureError};
use crate::train::round::{RoundReport, Step, relative_change};
use crate::work::task::{Answer, Fit, Fitted, Named, Weighted, Work};

/// How to train.
#[derive(Clone, PartialEq, Debug)]
pub struct Settings {
    /// When the rounds of a sentence end.
    pub until: Until,
    /// What sentences are read with after training.
    pub estimate: PointEstimate,
    /// Relative change of the bound below which training has converged, once the base's limit rises no more.
    pub tolerance: f64,
    /// What there is beside the base, if anything is.
    pub constrained: Option<Constrained>,
}

/// Components of a dependency model beside the base, and how they are weighed.
#[derive(Clone, PartialEq, Debug)]
pub struct Constrained {
    /// The components.
    pub components: Vec<Component>,
    /// The base's weight and theirs.
    pub mixture: Mixture,
}

/// What a component came to in a round.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Share {
    /// Its λ.
    pub weight: f64,
    /// Its F, with the base's where it is empty.
    pub bound: f64,
    /// Sentences in which it is: it allows none of their trees.
    pub n_empty: u64,
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
    /// λ of the next round, the base's first; empty without components.
    pub weights: Vec<f64>,
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
    /// There are no best weights.
    #[error(transparent)]
    Mixture(#[from] MixtureError),
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
        Ok(State { priors, rounds: 0, bound: None, weights: Vec::new() })
    }

    /// The same before the first round with components.
    pub fn weighed(self, mixture: &Mixture) -> Result<State, Failure> {
        Ok(State { weights: mixture.first()?, ..self })
    }

    /// Whether a trainer of these multinomials can go on from it, if it has as many components; an error says what does not
    /// hold.
    pub fn check(&self, multinomials: &Multinomials) -> Result<(), String> {
        if self.rounds > MAX_ROUNDS {
            return Err(format!("it has {} rounds behind it", self.rounds));
        }
        if self.bound.is_some_and(|bound| !bound.is_finite()) {
            return Err("its bound is no number".to_owned());
        }
        let sum: f64 = self.weights.iter().sum();
        let is_weight = |weight: &f64| (0.0..=1.0).contains(weight);
        if !self.weights.is_empty() && (!self.weights.iter().all(is_weight) || (sum - 1.0).abs() > 1e-6) {
            return Err("its weights of components are not of 0 or more with sum 1".to_owned());
        }
        multinomials.check(&self.priors)
    }

    /// Whether it has weights for these components; an error says how many it has.
    pub fn suits(&self, settings: &Settings) -> Result<(), String> {
        let expected = settings.constrained.as_ref().map_or(0, |those| those.mixture.names().len());
        match self.weights.len() {
            found if found == expected => Ok(()),
            found => Err(format!("it has weights of {found} components, expected {expected}")),
        }
    }
}

/// Moves the priors from round to round.
pub struct Trainer {
    settings: Settings,
    state: State,
    /// Of the round under way.
    fit: Named<Fit>,
    gathered: Statistics,
    /// Of the components, the base's first, in the last round.
    shares: Vec<Share>,
    /// The first sentence without a bound, by shard and position.
    unbounded: Option<(usize, usize)>,
}

impl Trainer {
    /// Goes on from `state`, which is new, or which [`State::check`] and [`State::suits`] found in order.
    pub fn new(settings: Settings, state: State) -> Trainer {
        let fit = Named::new(Fit { priors: Vec::new(), until: settings.until, components: Vec::new() });
        let (gathered, shares, unbounded) = (Statistics::default(), Vec::new(), None);
        Trainer { settings, state, fit, gathered, shares, unbounded }
    }

    /// What it knows.
    pub fn state(&self) -> &State {
        &self.state
    }

    /// The components by name, the base first, and what each came to in the last round; none without components.
    pub fn shares(&self) -> impl Iterator<Item = (&str, Share)> {
        let names = self.settings.constrained.iter().flat_map(|those| those.mixture.names());
        names.map(String::as_str).zip(self.shares.iter().copied())
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
        let components = self.settings.constrained.iter().flat_map(|those| &those.components).cloned();
        let weights = self.state.weights.iter().copied().skip(1);
        let weighted = |(component, weight)| Weighted { component, weight };
        let components = components.zip(weights).map(weighted).collect();
        self.fit = Named::new(Fit { priors, until: self.settings.until, components });
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
        let maximise =
            |(multinomial, (moments, prior)): (usize, (&crate::models::logistic_normal::Moments, &Prior))| {
                let found = moments.maximise(prior, gathered.n_sentences);
                found.map_err(|source| Failure::Prior { multinomial, source })
            };
        let pairs = gathered.moments.iter().zip(priors).enumerate();
        let new = pairs.map(maximise).collect::<Result<_, _>>()?;
        let (rounds, mut weights, mut is_even) = (self.state.rounds + 1, Vec::new(), true);
        if let Some(Constrained { mixture, .. }) = &self.settings.constrained {
            let bounds = gathered.part_bounds(priors);
            weights = mixture.best(rounds + 1, &bounds)?;
            let parts = gathered.parts.iter().zip(bounds).zip(&self.state.weights);
            let share = |((part, bound), &weight): ((&Part, f64), &f64)| {
                let n_empty = part.n_empty;
                Share { weight, bound, n_empty }
            };
            self.shares = parts.map(share).collect();
            // What λ may be was the same in this round and the one before.
            let is_over = |limit: Limit| rounds > 1 && limit.is_over(rounds - 1);
            is_even = mixture.limit().is_none_or(is_over);
        }
        self.state = State { priors: new, rounds, bound, weights };
        let converged = is_even && change.is_some_and(|change| change.abs() < self.settings.tolerance);
        let (dropped, resorted, temperature, moves) = (0, false, None, None);
        Ok(Step::Next(RoundReport { bound, change, dropped, resorted, converged, temperature, moves }))
    }
}
