//! Rounds over all shards. The bound never falls, which is checked.
//!
//! Dropping strings is decided to first order; where that was wrong and the bound of the next round is lower, the drop is taken back, the round
//! runs again, and fewer strings are dropped from then on.

use super::{Growth, ROUNDS_BEFORE_DROPS, Trainer};
use crate::grammar::ParamId;
use crate::models::adaptor::selection::Evidence;
use crate::train::round::{BoundFell, ROUNDING, RoundReport, Step, Totals, relative_change};

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

impl Trainer {
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
            (self.state.past.rounds > 0).then(|| totals.log_z - self.state.params.divergence(&self.grammar));
        let fell = self
            .state
            .past
            .bound
            .zip(bound)
            .filter(|(before, after)| *after < before - ROUNDING * before.abs());
        match (fell, self.state.grew) {
            (None, _) | (Some(_), true) => Verdict::Counts { bound },
            (Some(_), false) if self.state.before_drop.is_some() => Verdict::DropFailed,
            (Some((before, after)), false) => {
                Verdict::Fell(BoundFell { round: self.state.past.rounds + 1, before, after })
            }
        }
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
        let change = relative_change(self.state.past.bound, bound);
        let with_losses = self.wants_losses();
        self.state.past.bound = bound;
        self.state.past.rounds += 1;
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
            && !(self.settings.select_by_bound && self.state.past.rounds <= ROUNDS_BEFORE_DROPS);
        let converged = still && change.is_some_and(|change| change.abs() < self.settings.tolerance);
        Step::Next(RoundReport { bound, change, dropped, resorted, converged, ..RoundReport::default() })
    }

    /// Puts the next strings at the ends of the sticks; whether there were any.
    fn grow(&mut self) -> bool {
        let Some(Growth { start, step }) = self.settings.growth else { return false };
        let seen = start + (self.state.past.rounds - 1) * step;
        let space = self.lexicon.space(&self.grammar);
        let next: Vec<ParamId> =
            space.sticks().flat_map(|strings| strings.skip(seen).take(step)).map(ParamId).collect();
        self.state.params.use_strings(&self.table, &next) > 0
    }
}
