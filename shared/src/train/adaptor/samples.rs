//! Rounds over samples of the sentences: stochastic variational Bayes (Hoffman et al. 2013; sticks that are pruned and grow, after Zhai,
//! Boyd-Graber & Cohen 2014).
//!
//! A round reads some shards of sentences ([`Schedule`]) and all shards of strings. The statistics of sentences, estimated, are
//! averaged; those of strings are known, and are taken as they are: so what a dropped string was made of is gone at once, as in
//! batch training, and every string's price is that of this round.
//!
//! The bound is an estimate and may fall, so that nothing is taken back. A string that was dropped too early comes back when a sampled
//! sentence needs it, or, with sticks that grow, when its turn comes again: they take the strings out of use in the order of
//! the lexicon, over and over.

use std::ops::Range;

use serde::{Deserialize, Serialize};

use super::{Growth, Trainer};
use crate::grammar::ParamId;
use crate::limits::is_count;
use crate::models::adaptor::selection::Evidence;
use crate::train::round::{RoundReport, Step, Totals, relative_change};
use crate::train::state::StateError;
use crate::train::stochastic::{Schedule, average, averaged};

/// The samples of a run.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Samples {
    /// Which shards of sentences each round reads, and how far it moves the averages.
    pub schedule: Schedule,
    /// Rounds from one change of the strings in use to the next.
    pub select_every: usize,
}

/// Averages of what the sentences of the corpus are estimated to give.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub(super) struct Statistics {
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

impl Statistics {
    /// Those of no round.
    pub(super) fn new(n_params: usize) -> Statistics {
        Statistics { counts: vec![0.0; n_params], losses: vec![0.0; n_params], log_z: None }
    }

    /// Checks that these are averages of so many parameters.
    pub(super) fn check(&self, n_params: usize) -> Result<(), StateError> {
        for statistics in [&self.counts, &self.losses] {
            if statistics.len() != n_params {
                return Err("its statistics are not those of its parameters".into());
            }
            if !statistics.iter().all(|&value| is_count(value)) {
                return Err("its statistics are not counts".into());
            }
        }
        Ok(())
    }
}

impl Trainer {
    /// Takes in a round that ran with [`Trainer::weights`]: the sums over its sample of the sentences, and those over all shards of strings.
    pub fn absorb_sample(&mut self, samples: Samples, sample: Totals, strings: Totals) -> Step {
        if !sample.missing.is_empty() || !strings.missing.is_empty() {
            return self.restore(&[sample.missing, strings.missing].concat());
        }
        let Samples { schedule, select_every } = samples;
        let round = self.state.past.rounds + 1;
        let (rate, scale) = (schedule.rate(round), schedule.scale(round));
        let with_losses = self.wants_losses();
        let mut sentences =
            self.state.sentences.take().unwrap_or_else(|| Statistics::new(self.state.counts.len()));
        let bound = (!schedule.is_first(round)).then(|| {
            // The first weights come from no q.
            let found = scale * sample.log_z;
            let log_z = sentences.log_z.map_or(found, |before| averaged(before, found, rate));
            sentences.log_z = Some(log_z);
            log_z + strings.log_z - self.state.params.divergence(&self.grammar)
        });
        let change = relative_change(self.state.past.bound, bound);
        self.state.past.bound = bound;
        self.state.past.rounds = round;
        self.before_round = None;

        let scaled = |values: &[f64]| -> Vec<f64> { values.iter().map(|value| scale * value).collect() };
        average(&mut sentences.counts, &scaled(&sample.counts), rate);
        self.state.counts = sums(&sentences.counts, &strings.counts);

        let due = round.is_multiple_of(select_every);
        if due {
            self.grow_over_and_over(select_every);
        }
        let mut dropped = 0;
        if with_losses {
            let losses = sample.losses.iter().zip(&sample.counts);
            let finite: Vec<f64> = losses.map(|(loss, uses)| loss.min(IRREPLACEABLE * uses)).collect();
            // The first ones have nothing to be averaged with.
            let rate = if round == self.rounds_before_drops() + 1 { 1.0 } else { rate };
            average(&mut sentences.losses, &scaled(&finite), rate);
            if due {
                let losses = sums(&sentences.losses, &strings.losses);
                let (counts, log_z) = (&self.state.counts, &strings.log_z_strings);
                let evidence = Evidence { counts, losses: &losses, log_z };
                let share = self.state.drop_share;
                dropped = self.state.params.drop_strings(&self.table, &evidence, share).len();
            }
        }
        self.state.sentences = Some(sentences);
        let resorted = self.advance();
        Step::Next(RoundReport { bound, change, dropped, resorted, ..RoundReport::default() })
    }

    /// Puts the next strings out of use at the ends of the sticks, after the last one beginning with the first again.
    fn grow_over_and_over(&mut self, select_every: usize) {
        let Some(Growth { start, step }) = self.settings.growth else { return };
        let seen = start + (self.state.past.rounds / select_every - 1) * step;
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
}

fn sums(a: &[f64], b: &[f64]) -> Vec<f64> {
    a.iter().zip(b).map(|(a, b)| a + b).collect()
}
