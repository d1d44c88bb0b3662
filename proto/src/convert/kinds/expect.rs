//! Inside–outside: weights and expected counts.

use grammaton::limits::is_count;
use grammaton::num::Wide;
use grammaton::work::task::{Expectation, Language, ShardWeights};

use crate::convert::checks::{missing, uses};
use crate::convert::items::Items;
use crate::convert::sizes::{DOUBLE, ENVELOPE, EXPONENT, VARINT};
use crate::convert::{COUNT, FINITE, Wire, WireError, finite, numbers, params, same_length, weights_to_wire};
use crate::v1;

impl Wire for ShardWeights {
    type Message = v1::ShardWeights;
    const NAME: &'static str = "shard weights";

    fn to_wire(&self) -> v1::ShardWeights {
        v1::ShardWeights { runs: self.runs().to_vec(), in_use: Some(weights_to_wire(self.in_use())) }
    }

    fn from_wire(message: v1::ShardWeights) -> Result<ShardWeights, WireError> {
        let v1::ShardWeights { runs, in_use } = message;
        let in_use =
            Vec::<Wide>::from_wire(in_use.ok_or(WireError::Missing { field: "shard_weights.in_use" })?)?;
        Ok(ShardWeights::new(runs, in_use)?)
    }
}

impl Wire for Expectation {
    type Message = v1::Expectation;
    const NAME: &'static str = "expectation";

    fn to_wire(&self) -> v1::Expectation {
        v1::Expectation {
            counts: self.counts.clone(),
            losses: self.losses.clone(),
            log_z: self.log_z,
            log_z_items: self.log_z_items.clone(),
            missing: self.missing.iter().map(|param| param.0).collect(),
        }
    }

    fn from_wire(message: v1::Expectation) -> Result<Expectation, WireError> {
        let v1::Expectation { counts, losses, log_z, log_z_items, missing } = message;
        numbers("expectation.counts", &counts, COUNT, is_count)?;
        numbers("expectation.losses", &losses, "that is not negative", |loss| loss >= 0.0)?;
        if !losses.is_empty() {
            same_length("expectation.losses", losses.len(), counts.len())?;
        }
        numbers("expectation.log_z", &[log_z], FINITE, finite)?;
        numbers("expectation.log_z_items", &log_z_items, FINITE, finite)?;
        let missing = params("expectation.missing", missing)?;
        Ok(Expectation { counts, losses, log_z, log_z_items, missing })
    }
}

pub fn check_answer(
    task: &Items<'_>,
    weights: &ShardWeights,
    losses: bool,
    found: &Expectation,
) -> Result<(), WireError> {
    let n_in_use = weights.in_use().len();
    missing("expectation.missing", task, weights.n_params() - n_in_use as u64, &found.missing)?;
    check_counts(task, n_in_use, losses, found)
}

/// Checks the numbers of counts, losses and items, and that the items can have the counts.
pub fn check_counts(
    task: &Items<'_>,
    n_touched: usize,
    losses: bool,
    found: &Expectation,
) -> Result<(), WireError> {
    same_length("expectation.counts", found.counts.len(), n_touched)?;
    same_length("expectation.losses", found.losses.len(), if losses { n_touched } else { 0 })?;
    uses("expectation.counts", task, &found.counts)?;
    let n_log_z = task.shard.strings().map_or(0, |strings| strings.len());
    same_length("expectation.log_z_items", found.log_z_items.len(), n_log_z)
}

/// Upper bound on the bytes of the weights of a shard and a list of nonterminals.
pub fn largest_lease(language: &Language) -> u64 {
    let segments = u64::from(language.grammar.value.n_nonterminals) * VARINT;
    ENVELOPE + language.n_params() as u64 * (DOUBLE + EXPONENT + VARINT) + segments
}

pub fn largest_answer(task: &Items<'_>, n_touched: usize, losses: bool) -> u64 {
    let n_numbers = n_touched as u64 * (1 + u64::from(losses)) + task.shard.len() as u64;
    n_numbers * DOUBLE + task.lexicon.space(task.grammar).n_params() as u64 * VARINT
}
