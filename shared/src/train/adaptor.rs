//! The trainer of adaptor grammars by variational Bayes.
//!
//! A round's sums over the shards ([`Summing`]) move the parameters: strings in use ([`crate::models::adaptor::selection`]), order of the sticks,
//! γ and τ, hyper-parameters. Rounds read all shards (`batch`; Cohen, Blei & Smith 2010), or all shards of strings and a sample of the
//! sentences (`samples`; Hoffman et al. 2013); strings leave and return by a rule of either.
//!
//! ```text
//! weights → shards → sums ─┬─ some item has no derivation → strings restored ──┐
//!                          ├─ batch: a drop was wrong     → it is taken back ──┤ Step::Again
//!                          └─ grow, drop, sort, update, fit → Step::Next       ┘→ weights
//! ```
//!
//! Between two rounds its [`State`] is all that matters: a trainer made from a saved one goes on to the same bits.

mod batch;
mod samples;

use std::ops::Range;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::grammar::Grammar;
use crate::grammar::ParamId;
use crate::grammar::lexicon::Lexicon;
use crate::models;
use crate::models::adaptor::hyper::Fit;
use crate::models::adaptor::params::{Params, Stick};
use crate::models::adaptor::selection::StringTable;
use crate::models::adaptor::start::Start;
use crate::models::sampler::Hyper;
use crate::num::{Noise, Wide};
use crate::train::round::{Ask, Step, Summing, are_out_of_use, in_use};
use crate::train::state::{StateError, check_counts, check_rounds};
use crate::train::trainer::{self, Collect, Failure, Learned, Past, Read, Report, Shards};
use crate::work::task::Answer;

/// How to train.
#[derive(Clone, PartialEq, Debug)]
pub struct Settings {
    /// Whether strings are dropped when the bound rises without them; else the sticks stay as they are.
    pub select_by_bound: bool,
    /// Share of a stick that a round may drop.
    pub drop_share: f64,
    /// Whether sticks are sorted by expected uses when that raises the bound.
    pub resort: bool,
    /// Hyper-parameters to fit.
    pub fit: Fit,
    /// Whether sticks have a discount; without, they are Dirichlet processes.
    pub pitman_yor: bool,
    /// Discount of sticks whose grammar says nothing.
    pub discount: f64,
    /// Concentration of sticks whose grammar says nothing.
    pub concentration: f64,
    /// Growing sticks (PY+inc, footnote 5 of the paper); `None`: all strings from the start.
    pub growth: Option<Growth>,
    /// Relative change of the bound below which training has converged.
    pub tolerance: f64,
    /// The weights of the first round.
    pub start: Start,
    /// The samples that rounds read; `None`: each reads all shards.
    pub samples: Option<Samples>,
}

/// Sticks that grow while training.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Growth {
    /// Strings of each stick in the first round.
    pub start: usize,
    /// Strings added to each stick after every round.
    pub step: usize,
}

impl Settings {
    /// Parameters that equal the priors, with all strings of `lexicon` in use, or the first of them if sticks grow.
    pub(super) fn prior(&self, grammar: &Grammar, lexicon: &Lexicon) -> Params {
        let in_use = self.growth.map_or(usize::MAX, |growth| growth.start);
        let space = lexicon.space(grammar);
        let sticks = space.sticks().zip(&lexicon.sticks).map(|(params, strings)| {
            let adaptor = grammar.adaptors[strings.symbol.index()].unwrap_or_default();
            let discount = if self.pitman_yor { adaptor.discount.unwrap_or(self.discount) } else { 0.0 };
            let concentration = adaptor.concentration.unwrap_or(self.concentration);
            Stick::new(strings.symbol, params.take(in_use), discount, concentration)
        });
        Params::new(grammar, sticks.collect())
    }

    /// Weights for the first round, `[n_params]`. `noise` is drawn from only if there is jitter.
    pub(super) fn first_weights(
        &self,
        params: &Params,
        grammar: &Grammar,
        lexicon: &Lexicon,
        noise: Noise,
    ) -> Vec<Wide> {
        let mut weights = params.uniform_weights(grammar, lexicon);
        let in_use = weights.iter_mut().enumerate().skip(1).filter(|(_, weight)| !weight.is_zero());
        match &self.start {
            Start::Uniform => {}
            Start::Jitter(size) => {
                in_use.for_each(|(at, weight)| {
                    *weight = Wide::from_ln(size * noise.symmetric(at as u64));
                });
            }
            Start::Weights(given) => in_use.for_each(|(at, weight)| *weight = given[at]),
        }
        weights
    }
}

pub use samples::Samples;
use samples::Statistics;

/// Moves the parameters from round to round.
pub struct Trainer {
    grammar: Arc<Grammar>,
    lexicon: Arc<Lexicon>,
    table: StringTable,
    settings: Settings,
    noise: Noise,
    state: State,
    /// The state in which the round under way began, once it runs again.
    before_round: Option<State>,
    /// The weights of the round under way; empty between two rounds.
    weights: Arc<Vec<Wide>>,
    /// The sums over its shards; over samples, those of sentences.
    totals: Summing,
    /// Over samples, the sums over the shards of strings.
    of_strings: Summing,
}

/// State of a [`Trainer`] after a round.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct State {
    /// The parameters.
    pub params: Params,
    /// The rounds so far.
    pub past: Past,
    /// Expected uses that `params` were updated from.
    counts: Vec<f64>,
    /// The parameters before the last drop, as long as it may be taken back.
    before_drop: Option<Params>,
    /// The share of a stick that a round may drop.
    drop_share: f64,
    /// Whether strings were added since the last round: the bound may fall then.
    grew: bool,
    /// Over samples, the averages of sentences.
    sentences: Option<Statistics>,
}

impl State {
    /// Checks that a trainer of this grammar and lexicon can go on from it.
    pub fn check(&self, grammar: &Grammar, lexicon: &Lexicon) -> Result<(), StateError> {
        let n_params = lexicon.space(grammar).n_params();
        check_counts(&self.counts, n_params)?;
        self.sentences.iter().try_for_each(|sentences| sentences.check(n_params))?;
        check_rounds(self.past.rounds)?;
        if !(0.0..=1.0).contains(&self.drop_share) {
            return Err(StateError::Violated(
                format!("a round may drop {} of a stick", self.drop_share).into(),
            ));
        }
        self.params.check(grammar, lexicon)?;
        // These are updated before they are used: strings that were added since have no γ yet.
        self.before_drop.iter().try_for_each(|params| params.check_strings(grammar, lexicon))?;
        Ok(())
    }
}

/// Rounds before the first drop: the first counts are those of uniform weights.
const ROUNDS_BEFORE_DROPS: usize = 2;

impl Trainer {
    /// Starts with all strings of `lexicon` in use, or the first of them if sticks grow. `noise` is drawn from only if
    /// there is jitter.
    pub fn new(grammar: Arc<Grammar>, lexicon: Arc<Lexicon>, settings: Settings, noise: Noise) -> Trainer {
        let state = State {
            params: settings.prior(&grammar, &lexicon),
            past: Past::default(),
            counts: vec![0.0; lexicon.space(&grammar).n_params()],
            before_drop: None,
            drop_share: settings.drop_share,
            grew: false,
            sentences: settings.samples.map(|_| Statistics::new(lexicon.space(&grammar).n_params())),
        };
        Trainer::resume(grammar, lexicon, settings, noise, state)
    }

    /// Goes on from `state`, which [`State::check`] found in order; all else as it was then.
    pub fn resume(
        grammar: Arc<Grammar>,
        lexicon: Arc<Lexicon>,
        settings: Settings,
        noise: Noise,
        state: State,
    ) -> Trainer {
        let table = StringTable::new(&grammar, &lexicon);
        let (weights, totals, of_strings) = (Arc::default(), Summing::default(), Summing::default());
        let before_round = None;
        Trainer { grammar, lexicon, table, settings, noise, state, before_round, weights, totals, of_strings }
    }

    /// Returns the state before the current round, which a resumed trainer begins anew.
    pub fn state(&self) -> &State {
        self.before_round.as_ref().unwrap_or(&self.state)
    }

    /// How it trains.
    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    /// The parameters as they are.
    pub fn params(&self) -> &Params {
        &self.state.params
    }

    /// Weights for the next round, `[n_params]`.
    pub fn weights(&self) -> Vec<Wide> {
        if self.is_first(self.state.past.rounds + 1) {
            return self.settings.first_weights(&self.state.params, &self.grammar, &self.lexicon, self.noise);
        }
        self.state.params.weights(&self.grammar, &self.lexicon)
    }

    /// Whether a round has the weights that training starts with.
    fn is_first(&self, round: usize) -> bool {
        round <= self.n_first()
    }

    /// The number of rounds that have the weights that training starts with.
    fn n_first(&self) -> usize {
        self.settings.samples.map_or(1, |samples| samples.schedule.first)
    }

    /// The number of rounds before the first drop.
    fn rounds_before_drops(&self) -> usize {
        self.n_first() + ROUNDS_BEFORE_DROPS - 1
    }

    /// Whether the next round is to report losses.
    pub fn wants_losses(&self) -> bool {
        self.settings.select_by_bound
            && self.state.past.rounds >= self.rounds_before_drops()
            && self.state.drop_share > 0.0
    }

    /// Takes strings back into use, with what the last round that counted says of them.
    fn restore(&mut self, missing: &[ParamId]) -> Step {
        self.before_round.get_or_insert_with(|| self.state.clone());
        let restored = self.state.params.use_strings(&self.table, missing);
        self.state.params.update(&self.state.counts);
        Step::Again { restored }
    }

    /// Falls whenever a round runs again: whether a drop may be taken back, and the strings out of use.
    fn unsettled(&self) -> (bool, usize) {
        let State { params, before_drop, counts, .. } = &self.state;
        (before_drop.is_some(), counts.len() - params.in_use().count())
    }

    /// Sorts, updates and fits from the last counts; whether some stick was sorted.
    fn advance(&mut self) -> bool {
        let counts = &self.state.counts;
        let mut resorted = false;
        if self.settings.resort {
            for stick in &mut self.state.params.sticks {
                resorted |= stick.sort_by_uses(&|param| counts[param.index()]);
            }
        }
        self.state.params.update(counts);
        self.state.params.fit(&self.grammar, self.settings.fit);
        resorted
    }
}

impl trainer::Trainer for Trainer {
    fn past(&self) -> Past {
        self.state.past
    }

    fn shards(&self, shards: &dyn Shards) -> Vec<usize> {
        let Some(Samples { schedule, .. }) = self.settings.samples else {
            return (0..shards.len()).collect();
        };
        let of_strings = (0..shards.len()).filter(|&shard| shards.strings(shard).is_some());
        schedule.sampled(self.state.past.rounds + 1).into_iter().chain(of_strings).collect()
    }

    fn begin(&mut self, _: Collect) {
        self.weights = Arc::new(self.weights());
        let totals = || Summing::new(self.weights.len(), self.wants_losses());
        (self.totals, self.of_strings) = (totals(), totals());
    }

    fn ask(&self, _: &dyn Shards) -> Read<Ask> {
        Ok(Ask::Expect { weights: self.weights.clone(), losses: self.wants_losses() })
    }

    fn add(&mut self, shards: &dyn Shards, group: Range<usize>, answer: Answer) -> Read<bool> {
        let Answer::Expectation(found) = answer else { return Ok(false) };
        let (params, strings) = (shards.params_of_group(&group)?, shards.strings_of_group(&group));
        let is_apart = strings.is_some() && self.settings.samples.is_some();
        let totals = if is_apart { &mut self.of_strings } else { &mut self.totals };
        Ok(are_out_of_use(&self.weights, &params, &found.missing)
            && totals.add(group.start, strings.as_ref(), in_use(&self.weights, &params), found))
    }

    fn finish(&mut self) -> Result<Step, Failure> {
        let [totals, of_strings] =
            [&mut self.totals, &mut self.of_strings].map(|sums| std::mem::take(sums).finish());
        self.weights = Arc::default();
        let before = self.unsettled();
        let step = match self.settings.samples {
            Some(samples) => self.absorb_sample(samples, totals, of_strings),
            None => self.absorb(totals)?,
        };
        match step {
            Step::Again { .. } if self.unsettled() >= before => {
                Err(Failure::NoProgress { round: self.state.past.rounds + 1 })
            }
            step => Ok(step),
        }
    }

    fn learned(&self) -> Learned {
        Learned::Grammar { lexicon: None, params: models::Params::Adaptor(self.state.params.clone()) }
    }

    fn report(&self) -> Report<'_> {
        let sticks = &self.state.params.sticks;
        let hyper = |stick: &Stick| Hyper { discount: stick.discount, concentration: stick.concentration };
        Report {
            sticks,
            hyper: sticks.iter().map(hyper).collect(),
            n_strings: sticks.iter().map(|stick| stick.order.len()).collect(),
            ..Report::default()
        }
    }
}
