//! Inside–outside: weights and expected counts.

use grammaton::work::task::{Expectation, TaskWeights};

use crate::check::items::Items;
use crate::check::sizes::{DOUBLE, VARINT};
use crate::check::values::{at_most, missing, uses};
use crate::check::{FINITE, Invalid, finite, numbers, same_length, weights};

/// Checks weights. Whether they are as many as the parameters that the shards touch is checked when the task is computed.
pub fn check(task: &Items<'_>, of_task: &TaskWeights) -> Result<(), Invalid> {
    let given = match of_task {
        TaskWeights::Touched(weights) => weights,
        TaskWeights::Shared { all, n_touched, n_in_use } => {
            let n_params = task.lexicon.space(task.grammar).n_params();
            same_length("expect.weights", all.value.n_params() as usize, n_params)?;
            at_most("expect.n_touched", u64::from(*n_touched), all.value.n_params())?;
            at_most("expect.n_in_use", u64::from(*n_in_use), u64::from(*n_touched))?;
            &all.value
        }
    };
    given.check()?;
    weights("expect.weights", given.in_use())
}

pub fn check_answer(
    task: &Items<'_>,
    weights: &TaskWeights,
    losses: bool,
    found: &Expectation,
) -> Result<(), Invalid> {
    let n_in_use = weights.n_in_use();
    missing("expectation.missing", task, weights.n_touched() - n_in_use as u64, &found.missing)?;
    check_counts(task, n_in_use, losses, found)
}

/// Checks the numbers of counts, losses and items, and that the items can have the counts.
pub fn check_counts(
    task: &Items<'_>,
    n_touched: usize,
    losses: bool,
    found: &Expectation,
) -> Result<(), Invalid> {
    same_length("expectation.counts", found.counts.len(), n_touched)?;
    same_length("expectation.losses", found.losses.len(), if losses { n_touched } else { 0 })?;
    uses("expectation.counts", task, &found.counts)?;
    let n_log_z = task.each().map(|items| items.shard.strings().map_or(0, |strings| strings.len())).sum();
    numbers("expectation.losses", &found.losses, "that is not negative", |loss| loss >= 0.0)?;
    numbers("expectation.log_z", &[found.log_z], FINITE, finite)?;
    numbers("expectation.log_z_items", &found.log_z_items, FINITE, finite)?;
    same_length("expectation.log_z_items", found.log_z_items.len(), n_log_z)
}

pub fn largest_answer(task: &Items<'_>, n_touched: usize, losses: bool) -> u64 {
    let n_items = task.each().map(|items| items.shard.len() as u64).sum::<u64>();
    let n_numbers = n_touched as u64 * (1 + u64::from(losses)) + n_items;
    n_numbers * DOUBLE + task.lexicon.space(task.grammar).n_params() as u64 * VARINT
}
