//! Passes of collapsed variational Bayes.

use grammaton::work::shard::Shard;
use grammaton::work::task::{Collapse, Collapsed, ShardState};

use super::expect;
use crate::check::items::{Items, n_occurrences};
use crate::check::sizes::{DOUBLE, VARINT, of_occurrences};
use crate::check::{self, Invalid, NON_NEGATIVE, POSITIVE, non_negative, numbers, positive, same_length};

pub fn check(task: &Items<'_>, collapse: &Collapse) -> Result<(), Invalid> {
    match collapse {
        Collapse::Start { weights } => check::weights("collapse.weights", weights),
        Collapse::Others { pseudo, sums, temperature, shard_state } => {
            numbers("collapse.pseudo", pseudo, NON_NEGATIVE, non_negative)?;
            numbers("collapse.sums", sums, NON_NEGATIVE, non_negative)?;
            numbers("collapse.temperature", &[*temperature], POSITIVE, positive)?;
            check_carried(task.shard, pseudo.len(), &shard_state.value)
        }
    }
}

pub fn check_answer(task: &Items<'_>, collapse: &Collapse, collapsed: &Collapsed) -> Result<(), Invalid> {
    let n_touched = n_touched(collapse);
    // A pass has no weights of zero.
    same_length("expectation.missing", collapsed.expectation.missing.len(), 0)?;
    expect::check_counts(task, n_touched, false, &collapsed.expectation)?;
    check_carried(task.shard, n_touched, &collapsed.shard_state)?;
    let mut sums = vec![0.0; n_touched];
    if let ShardState::Counts(counts) = &collapsed.shard_state {
        counts.iter().flatten().for_each(|&(param, count)| sums[param as usize] += count);
    }
    if sums == collapsed.expectation.counts {
        Ok(())
    } else {
        Err(Invalid::Inconsistent { field: "expectation.counts" })
    }
}

/// Checks that `shard_state` is the state of a shard that touches `n_params` parameters.
fn check_carried(shard: &Shard, n_params: usize, shard_state: &ShardState) -> Result<(), Invalid> {
    let ShardState::Counts(counts) = shard_state else {
        return Err(Invalid::ShardState { problem: format!("it is of {}", shard_state.method()) });
    };
    same_length("shard_state.counts", counts.len(), n_occurrences(shard))?;
    shard_state.check(n_params).map_err(|error| Invalid::ShardState { problem: error.to_string() })
}

/// Number of parameters in the shard's index.
fn n_touched(collapse: &Collapse) -> usize {
    match collapse {
        Collapse::Start { weights } => weights.len(),
        Collapse::Others { pseudo, .. } => pseudo.len(),
    }
}

pub fn largest_answer(task: &Items<'_>, collapse: &Collapse) -> u64 {
    let (grammar, lexicon) = (task.grammar, task.lexicon);
    let n_touched = n_touched(collapse) as u64;
    // Rules, and strings that are substrings of the sentence.
    let n_rules = grammar.space().n_params() as u64;
    let n_sticks = lexicon.sticks.len() as u64;
    let own = |length: u64| n_touched.min(n_rules + n_sticks * length * (length + 1) / 2);
    let shard_state = |length| VARINT + own(length) * (VARINT + DOUBLE);
    of_occurrences(task.shard, shard_state).saturating_add(n_touched * DOUBLE)
}
