//! Stochastic variational Bayes: what the coordinator does with the counts of a sample (Hoffman et al. 2013; sticks that are pruned and
//! grow, after Zhai, Boyd-Graber & Cohen 2014).
//!
//! A round reads some shards of sentences ([`Schedule`]) and all shards of strings. The statistics of sentences, estimated, are
//! averaged; those of strings are known, and are taken as they are: so what a dropped string was made of is gone at once, as in
//! batch training, and every string's price is that of this round.
//!
//! ```text
//! weights → sampled shards, strings → absorb ─┬─ some item has no derivation → strings restored → Step::Again, of the same sample
//!                                             └─ average, grow, drop, sort, update, fit         → Step::Next
//! ```
//!
//! The bound is an estimate and may fall, so that nothing is taken back. A string that was dropped too early comes back when a sampled
//! sentence needs it, or, with sticks that grow, when its turn comes again: they take the strings out of use in the order of
//! the lexicon, over and over.
//!
//! Between two rounds its [`State`] is all that matters: a trainer made from a saved one goes on to the same bits.

use std::ops::Range;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::adaptor::{Growth, ROUNDS_BEFORE_DROPS, Settings};
use crate::grammar::Grammar;
use crate::grammar::ParamId;
use crate::grammar::lexicon::Lexicon;
use crate::limits::is_count;
use crate::models;
use crate::models::adaptor::params::{Params, Stick};
use crate::models::adaptor::selection::{Evidence, StringTable};
use crate::num::{Noise, Wide};
use crate::train::round::{Ask, RoundReport, Step, Totals, are_out_of_use, in_use, relative_change};
use crate::train::state::{StateError, check_rounds};
use crate::train::stochastic::{Schedule, average, averaged};
use crate::train::trainer::{self, Collect, Failure, Learned, Read, Shards};
use crate::work::task::Answer;

/// Moves the parameters from round to round.
pub struct Trainer {
    grammar: Arc<Grammar>,
    lexicon: Arc<Lexicon>,
    table: StringTable,
    /// But for the tolerance: nothing converges by a bound that is estimated.
    settings: Settings,
    schedule: Schedule,
    /// Rounds from one change of the strings in use to the next.
    select_every: usize,
    state: State,
    /// The state in which the round under way began, once it runs again.
    before_round: Option<State>,
    /// The weights of the round under way.
    weights: Arc<Vec<Wide>>,
    /// The sums over its shards of sentences.
    sample: Totals,
    /// The sums over the shards of strings.
    strings: Totals,
}

/// State of a [`Trainer`] after a round.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct State {
    /// The parameters.
    pub params: Params,
    /// Rounds that counted.
    pub rounds: usize,
    /// The last estimate of the bound.
    pub bound: Option<f64>,
    /// Expected uses that `params` were updated from: in sentences, averaged, and in strings. `[n_params]`
    uses: Vec<f64>,
    /// Averaged statistics of sentences.
    sentences: Statistics,
}

/// Averages of what the sentences of the corpus are estimated to give.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
struct Statistics {
    /// Expected uses, `[n_params]`.
    counts: Vec<f64>,
    /// Losses, `[n_params]`.
    losses: Vec<f64>,
    /// Σ log Z, under weights that came from parameters.
    log_z: Option<f64>,
}

/// Loss of a use without replacement, finite so that averages stay finite: as much as one with the largest posterior that is distinguished
/// from one ([`crate::forest::inside`]), rounded up.
const IRREPLACEABLE: f64 = 30.0;

impl State {
    /// Checks that a trainer of this grammar and lexicon can go on from it.
    pub fn check(&self, grammar: &Grammar, lexicon: &Lexicon) -> Result<(), StateError> {
        let n_params = lexicon.space(grammar).n_params();
        for statistics in [&self.uses, &self.sentences.counts, &self.sentences.losses] {
            if statistics.len() != n_params {
                return Err(StateError::StatisticsLength);
            }
            if !statistics.iter().all(|&value| is_count(value)) {
                return Err(StateError::Statistics);
            }
        }
        check_rounds(self.rounds)?;
        Ok(self.params.check(grammar, lexicon)?)
    }
}

impl Trainer {
    /// Starts with all strings of `lexicon` in use, or the first of them if sticks grow.
    pub fn new(
        grammar: Arc<Grammar>,
        lexicon: Arc<Lexicon>,
        settings: Settings,
        schedule: Schedule,
        select_every: usize,
    ) -> Trainer {
        let zeros = || vec![0.0; lexicon.space(&grammar).n_params()];
        let state = State {
            params: settings.prior(&grammar, &lexicon),
            rounds: 0,
            bound: None,
            uses: zeros(),
            sentences: Statistics { counts: zeros(), losses: zeros(), log_z: None },
        };
        Trainer::resume(grammar, lexicon, settings, schedule, select_every, state)
    }

    /// Goes on from `state`, which [`State::check`] found in order; all else as it was then.
    pub fn resume(
        grammar: Arc<Grammar>,
        lexicon: Arc<Lexicon>,
        settings: Settings,
        schedule: Schedule,
        select_every: usize,
        state: State,
    ) -> Trainer {
        let table = StringTable::new(&grammar, &lexicon);
        let (weights, sample, strings) = (Arc::default(), Totals::default(), Totals::default());
        let before_round = None;
        Trainer {
            grammar,
            lexicon,
            table,
            settings,
            schedule,
            select_every,
            state,
            before_round,
            weights,
            sample,
            strings,
        }
    }

    /// Returns the state before the current round, which a resumed trainer begins anew.
    pub fn state(&self) -> &State {
        self.before_round.as_ref().unwrap_or(&self.state)
    }

    /// The parameters as they are.
    pub fn params(&self) -> &Params {
        &self.state.params
    }

    /// The shards of sentences that the next round reads, ascending; those of strings it reads all.
    pub fn sampled(&self) -> Vec<usize> {
        self.schedule.sampled(self.state.rounds + 1)
    }

    /// Weights for the next round, `[n_params]`.
    pub fn weights(&self) -> Vec<Wide> {
        if !self.schedule.is_first(self.state.rounds + 1) {
            return self.state.params.weights(&self.grammar, &self.lexicon);
        }
        let noise = Noise::new(self.schedule.seed, self.schedule.run);
        self.settings.first_weights(&self.state.params, &self.grammar, &self.lexicon, noise)
    }

    /// Whether the next round is to report losses.
    pub fn wants_losses(&self) -> bool {
        self.settings.select_by_bound
            && self.state.rounds >= self.rounds_before_drops()
            && self.settings.drop_share > 0.0
    }

    /// Number of rounds before drops, as in batch, where the one first round is an epoch.
    fn rounds_before_drops(&self) -> usize {
        self.schedule.first + ROUNDS_BEFORE_DROPS - 1
    }

    /// Takes in a round that ran with [`Trainer::weights`]: the sums over the shards of [`Trainer::sampled`], and those over all
    /// shards of strings.
    pub fn absorb(&mut self, sample: Totals, strings: Totals) -> Step {
        if !sample.missing.is_empty() || !strings.missing.is_empty() {
            self.before_round.get_or_insert_with(|| self.state.clone());
            let missing = [sample.missing, strings.missing].concat();
            let restored = self.state.params.use_strings(&self.table, &missing);
            self.state.params.update(&self.state.uses);
            return Step::Again { restored };
        }
        let round = self.state.rounds + 1;
        let (rate, scale) = (self.schedule.rate(round), self.schedule.scale(round));
        let with_losses = self.wants_losses();
        let bound = self.bound(round, scale * sample.log_z, strings.log_z);
        let change = relative_change(self.state.bound, bound);
        self.state.bound = bound;
        self.state.rounds = round;
        self.before_round = None;

        let scaled = |values: &[f64]| -> Vec<f64> { values.iter().map(|value| scale * value).collect() };
        average(&mut self.state.sentences.counts, &scaled(&sample.counts), rate);
        self.state.uses = sums(&self.state.sentences.counts, &strings.counts);

        let due = round.is_multiple_of(self.select_every);
        if due {
            self.grow();
        }
        let mut dropped = 0;
        if with_losses {
            let losses = sample.losses.iter().zip(&sample.counts);
            let finite: Vec<f64> = losses.map(|(loss, uses)| loss.min(IRREPLACEABLE * uses)).collect();
            // The first ones have nothing to be averaged with.
            let rate = if round == self.rounds_before_drops() + 1 { 1.0 } else { rate };
            average(&mut self.state.sentences.losses, &scaled(&finite), rate);
            if due {
                let losses = sums(&self.state.sentences.losses, &strings.losses);
                let (counts, log_z) = (&self.state.uses, &strings.log_z_strings);
                let evidence = Evidence { counts, losses: &losses, log_z };
                let share = self.settings.drop_share;
                dropped = self.state.params.drop_strings(&self.table, &evidence, share).len();
            }
        }
        let resorted = self.advance();
        Step::Next(RoundReport { bound, change, dropped, resorted, ..RoundReport::default() })
    }

    /// Σ log Z of all sentences, averaged, and of all strings, less the divergence of the parameters of this round. None for
    /// first rounds, whose weights come from no q.
    fn bound(&mut self, round: usize, sentences: f64, strings: f64) -> Option<f64> {
        if self.schedule.is_first(round) {
            return None;
        }
        let (before, rate) = (self.state.sentences.log_z, self.schedule.rate(round));
        let log_z = before.map_or(sentences, |before| averaged(before, sentences, rate));
        self.state.sentences.log_z = Some(log_z);
        Some(log_z + strings - self.state.params.divergence(&self.grammar))
    }

    /// Puts the next strings out of use at the ends of the sticks, after the last one beginning with the first again.
    fn grow(&mut self) {
        let Some(Growth { start, step }) = self.settings.growth else { return };
        let seen = start + (self.state.rounds / self.select_every - 1) * step;
        let next = |mut strings: Range<u32>| {
            let n = strings.len();
            let skipped = if n > 0 { seen % n } else { 0 };
            let first = strings.start;
            strings.start += skipped as u32;
            strings.chain(first..first + skipped as u32).take(step).map(ParamId).collect::<Vec<_>>()
        };
        let next: Vec<ParamId> = self.lexicon.space(&self.grammar).sticks().flat_map(next).collect();
        self.state.params.use_strings(&self.table, &next);
    }

    /// Sorts, updates and fits from the statistics; whether some stick was sorted.
    fn advance(&mut self) -> bool {
        let uses = &self.state.uses;
        let mut resorted = false;
        if self.settings.resort {
            for stick in &mut self.state.params.sticks {
                resorted |= stick.sort_by_uses(&|param| uses[param.index()]);
            }
        }
        self.state.params.update(uses);
        self.state.params.fit(&self.grammar, self.settings.fit);
        resorted
    }
}

impl trainer::Trainer for Trainer {
    fn rounds(&self) -> usize {
        self.state.rounds
    }

    fn bound(&self) -> Option<f64> {
        self.state.bound
    }

    fn shards(&self, shards: &dyn Shards) -> Vec<usize> {
        let of_strings = (0..shards.len()).filter(|&shard| shards.strings(shard).is_some());
        self.sampled().into_iter().chain(of_strings).collect()
    }

    fn begin(&mut self, _: Collect) {
        self.weights = Arc::new(self.weights());
        let totals = || Totals::new(self.weights.len(), self.wants_losses());
        (self.sample, self.strings) = (totals(), totals());
    }

    fn ask(&self, _: &dyn Shards) -> Read<Ask> {
        Ok(Ask::Expect { weights: self.weights.clone(), losses: self.wants_losses() })
    }

    fn add(&mut self, shards: &dyn Shards, shard: usize, answer: Answer) -> Read<bool> {
        let Answer::Expectation(found) = answer else { return Ok(false) };
        let strings = shards.strings(shard);
        let totals = if strings.is_some() { &mut self.strings } else { &mut self.sample };
        let params = shards.params(shard)?;
        Ok(are_out_of_use(&self.weights, &params, &found.missing)
            && totals.add(strings.as_ref(), in_use(&self.weights, &params), found))
    }

    fn finish(&mut self) -> Result<Step, Failure> {
        let [sample, strings] = [&mut self.sample, &mut self.strings].map(std::mem::take);
        match self.absorb(sample, strings) {
            // A round runs again with more strings in use.
            Step::Again { restored: 0 } => Err(Failure::NoProgress { round: self.state.rounds + 1 }),
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

fn sums(a: &[f64], b: &[f64]) -> Vec<f64> {
    a.iter().zip(b).map(|(a, b)| a + b).collect()
}
