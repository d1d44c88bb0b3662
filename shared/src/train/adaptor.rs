//! Variational Bayes: what the coordinator does with the counts of a round.
//!
//! A [`Trainer`] is handed the sums over all shards ([`Totals`]) of a round that ran with its weights, and moves the
//! parameters: strings out of use ([`crate::models::adaptor::selection`]), order of the sticks, γ and τ, hyper-parameters. It guards the
//! bound: it may never fall. Dropping strings is decided to first order; where that was wrong and the bound of the next
//! round is lower, the drop is taken back, the round runs again, and fewer strings are dropped from then on.
//!
//! ```text
//! weights → shards → Totals ─┬─ some item has no derivation → strings restored ────┐
//!                            ├─ bound fell after a drop     → drop taken back  ────┤ Step::Again
//!                            └─ bound rose → drop, sort, update, fit → Step::Next  ┘→ weights
//! ```
//!
//! Between two rounds its [`State`] is all that matters: a trainer made from a saved one goes on to the same bits.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::grammar::Grammar;
use crate::grammar::ParamId;
use crate::grammar::lexicon::Lexicon;
use crate::models;
use crate::models::adaptor::hyper::Fit;
use crate::models::adaptor::params::{Params, Stick};
use crate::models::adaptor::selection::{Evidence, StringTable};
use crate::models::adaptor::start::Start;
use crate::num::{Noise, Wide};
use crate::train::round::{Ask, BoundFell, ROUNDING, RoundReport, Step, Totals};
use crate::train::round::{are_out_of_use, in_use, relative_change};
use crate::train::state::{StateError, check_counts, check_rounds};
use crate::train::trainer::{self, Collect, Failure, Learned, Read, Shards};
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
    /// The sums over its shards.
    totals: Totals,
}

/// State of a [`Trainer`] after a round.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct State {
    /// The parameters.
    pub params: Params,
    /// Rounds that counted.
    pub rounds: usize,
    /// The last bound.
    pub bound: Option<f64>,
    /// Expected uses that `params` were updated from.
    counts: Vec<f64>,
    /// The parameters before the last drop, as long as it may be taken back.
    before_drop: Option<Params>,
    drop_share: f64,
    /// Whether strings were added since the last round: the bound may fall then.
    grew: bool,
}

impl State {
    /// Checks that a trainer of this grammar and lexicon can go on from it.
    pub fn check(&self, grammar: &Grammar, lexicon: &Lexicon) -> Result<(), StateError> {
        check_counts(&self.counts, lexicon.space(grammar).n_params())?;
        check_rounds(self.rounds)?;
        if !(0.0..=1.0).contains(&self.drop_share) {
            return Err(StateError::DropShare { share: self.drop_share });
        }
        self.params.check(grammar, lexicon)?;
        // These are updated before they are used: strings that were added since have no γ yet.
        self.before_drop.iter().try_for_each(|params| params.check_strings(grammar, lexicon))?;
        Ok(())
    }
}

/// Result of a round for the parameters of its weights.
enum Verdict {
    /// Some item has no derivation without strings that are out of use: they return, and the round runs again.
    StringsMissing,
    /// The bound fell after strings were dropped: the drop is taken back, and the round runs again.
    DropFailed,
    /// The bound fell without a drop: a defect.
    Fell(BoundFell),
    /// The round counts. A drop that was on trial stays.
    Counts {
        /// The bound; none in the first round.
        bound: Option<f64>,
    },
}

/// Rounds before the first drop: the first counts are those of uniform weights.
pub(super) const ROUNDS_BEFORE_DROPS: usize = 2;

impl Trainer {
    /// Starts with all strings of `lexicon` in use, or the first of them if sticks grow. `noise` is drawn from only if
    /// there is jitter.
    pub fn new(grammar: Arc<Grammar>, lexicon: Arc<Lexicon>, settings: Settings, noise: Noise) -> Trainer {
        let state = State {
            params: settings.prior(&grammar, &lexicon),
            rounds: 0,
            bound: None,
            counts: vec![0.0; lexicon.space(&grammar).n_params()],
            before_drop: None,
            drop_share: settings.drop_share,
            grew: false,
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
        let (weights, totals) = (Arc::default(), Totals::default());
        Trainer { grammar, lexicon, table, settings, noise, state, before_round: None, weights, totals }
    }

    /// Returns the state before the current round, which a resumed trainer begins anew.
    pub fn state(&self) -> &State {
        self.before_round.as_ref().unwrap_or(&self.state)
    }

    /// The parameters as they are.
    pub fn params(&self) -> &Params {
        &self.state.params
    }

    /// Weights for the next round, `[n_params]`.
    pub fn weights(&self) -> Vec<Wide> {
        if self.state.rounds > 0 {
            return self.state.params.weights(&self.grammar, &self.lexicon);
        }
        self.settings.first_weights(&self.state.params, &self.grammar, &self.lexicon, self.noise)
    }

    /// Whether the next round is to report losses.
    pub fn wants_losses(&self) -> bool {
        self.settings.select_by_bound
            && self.state.rounds >= ROUNDS_BEFORE_DROPS
            && self.state.drop_share > 0.0
    }

    /// Takes in a round that ran with [`Trainer::weights`].
    ///
    /// # Errors
    /// [`BoundFell`] if the bound fell, and no drop is on trial that could be taken back.
    pub fn absorb(&mut self, totals: Totals) -> Result<Step, BoundFell> {
        match self.verdict(&totals) {
            Verdict::StringsMissing => Ok(self.restore(&totals.missing)),
            Verdict::DropFailed => Ok(self.take_back()),
            Verdict::Fell(fell) => Err(fell),
            Verdict::Counts { bound } => Ok(self.go_on(bound, totals)),
        }
    }

    /// Judges the round. A drop is on trial until then.
    fn verdict(&self, totals: &Totals) -> Verdict {
        if !totals.missing.is_empty() {
            return Verdict::StringsMissing;
        }
        // The weights of the first round come from no q.
        let bound =
            (self.state.rounds > 0).then(|| totals.log_z - self.state.params.divergence(&self.grammar));
        let fell =
            self.state.bound.zip(bound).filter(|(before, after)| *after < before - ROUNDING * before.abs());
        match (fell, self.state.grew) {
            (None, _) | (Some(_), true) => Verdict::Counts { bound },
            (Some(_), false) if self.state.before_drop.is_some() => Verdict::DropFailed,
            (Some((before, after)), false) => {
                Verdict::Fell(BoundFell { round: self.state.rounds + 1, before, after })
            }
        }
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

    /// Goes back to the parameters before the drop; later drops are smaller, and in the end there are none.
    fn take_back(&mut self) -> Step {
        self.before_round.get_or_insert_with(|| self.state.clone());
        let in_use = self.state.params.in_use().count();
        if let Some(before_drop) = self.state.before_drop.take() {
            self.state.params = before_drop;
        }
        self.advance();
        let several = self.state.drop_share * in_use as f64 > 1.0;
        self.state.drop_share = if several { self.state.drop_share / 4.0 } else { 0.0 };
        // Strings of earlier drops that were restored since are out of use again.
        Step::Again { restored: self.state.params.in_use().count().saturating_sub(in_use) }
    }

    /// Moves the parameters by a round that counts: grows the sticks, drops strings on trial, and updates.
    fn go_on(&mut self, bound: Option<f64>, totals: Totals) -> Step {
        let change = relative_change(self.state.bound, bound);
        let with_losses = self.wants_losses();
        self.state.bound = bound;
        self.state.rounds += 1;
        self.state.counts = totals.counts;
        self.state.before_drop = None;
        self.before_round = None;
        self.state.grew = self.grow();

        let mut dropped = 0;
        if with_losses {
            let evidence =
                Evidence { counts: &self.state.counts, losses: &totals.losses, log_z: &totals.log_z_strings };
            let before = self.state.params.clone();
            dropped = self.state.params.drop_strings(&self.table, &evidence, self.state.drop_share).len();
            self.state.before_drop = (dropped > 0).then_some(before);
        }
        let resorted = self.advance();
        let still = dropped == 0
            && !self.state.grew
            && !(self.settings.select_by_bound && self.state.rounds <= ROUNDS_BEFORE_DROPS);
        let converged = still && change.is_some_and(|change| change.abs() < self.settings.tolerance);
        Step::Next(RoundReport { bound, change, dropped, resorted, converged, ..RoundReport::default() })
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

    /// Puts the next strings at the ends of the sticks; whether there were any.
    fn grow(&mut self) -> bool {
        let Some(Growth { start, step }) = self.settings.growth else { return false };
        let seen = start + (self.state.rounds - 1) * step;
        let space = self.lexicon.space(&self.grammar);
        let next: Vec<ParamId> =
            space.sticks().flat_map(|strings| strings.skip(seen).take(step)).map(ParamId).collect();
        self.state.params.use_strings(&self.table, &next) > 0
    }
}

impl trainer::Trainer for Trainer {
    fn rounds(&self) -> usize {
        self.state.rounds
    }

    fn bound(&self) -> Option<f64> {
        self.state.bound
    }

    fn begin(&mut self, _: Collect) {
        self.weights = Arc::new(self.weights());
        self.totals = Totals::new(self.weights.len(), self.wants_losses());
    }

    fn ask(&self, _: &dyn Shards) -> Read<Ask> {
        Ok(Ask::Expect { weights: self.weights.clone(), losses: self.wants_losses() })
    }

    fn add(&mut self, shards: &dyn Shards, shard: usize, answer: Answer) -> Read<bool> {
        let Answer::Expectation(found) = answer else { return Ok(false) };
        let params = shards.params(shard)?;
        Ok(are_out_of_use(&self.weights, &params, &found.missing)
            && self.totals.add(shards.strings(shard).as_ref(), in_use(&self.weights, &params), found))
    }

    fn finish(&mut self) -> Result<Step, Failure> {
        let totals = std::mem::take(&mut self.totals);
        self.weights = Arc::default();
        let before = self.unsettled();
        let step = self.absorb(totals)?;
        match step {
            Step::Again { .. } if self.unsettled() >= before => {
                Err(Failure::NoProgress { round: self.state.rounds + 1 })
            }
            step => Ok(step),
        }
    }

    fn learned(&self) -> Learned {
        Learned::Grammar { lexicon: None, params: models::Params::Adaptor(self.state.params.clone()) }
    }

    fn sticks(&self) -> &[Stick] {
        &self.state.params.sticks
    }
}
