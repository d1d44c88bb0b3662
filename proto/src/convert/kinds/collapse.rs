//! Passes of collapsed variational Bayes.

use grammaton::num::Wide;
use grammaton::work::shard::Shard;
use grammaton::work::task::{Collapse, Collapsed, Expectation, Named, ShardState};

use super::expect;
use crate::convert::items::{Items, n_occurrences};
use crate::convert::sizes::{DOUBLE, VARINT, of_occurrences};
use crate::convert::{NON_NEGATIVE, POSITIVE, Wire, WireError, non_negative, numbers, positive, same_length};
use crate::v1;

pub fn request_to_wire(collapse: &Collapse) -> v1::Collapse {
    let pass = match collapse {
        Collapse::Start { weights } => v1::collapse::Pass::Start(weights.to_wire()),
        Collapse::Others { pseudo, sums, temperature, shard_state: _ } => {
            let (pseudo, sums) = (pseudo.clone(), sums.clone());
            v1::collapse::Pass::Others(v1::Others { pseudo, sums, temperature: *temperature })
        }
    };
    v1::Collapse { pass: Some(pass) }
}

pub fn request_from_wire(
    message: v1::Collapse,
    shard_state: impl FnOnce() -> Result<Named<ShardState>, WireError>,
) -> Result<Collapse, WireError> {
    match message.pass.ok_or(WireError::Missing { field: "collapse.pass" })? {
        v1::collapse::Pass::Start(weights) => {
            Ok(Collapse::Start { weights: Vec::<Wide>::from_wire(weights)? })
        }
        v1::collapse::Pass::Others(v1::Others { pseudo, sums, temperature }) => {
            numbers("collapse.pseudo", &pseudo, NON_NEGATIVE, non_negative)?;
            numbers("collapse.sums", &sums, NON_NEGATIVE, non_negative)?;
            numbers("collapse.temperature", &[temperature], POSITIVE, positive)?;
            Ok(Collapse::Others { pseudo, sums, temperature, shard_state: shard_state()? })
        }
    }
}

pub fn to_wire(Collapsed { expectation, shard_state }: &Collapsed) -> v1::Collapsed {
    v1::Collapsed { expectation: Some(expectation.to_wire()), shard_state: Some(shard_state.to_wire()) }
}

pub fn from_wire(message: v1::Collapsed) -> Result<Collapsed, WireError> {
    let v1::Collapsed { expectation, shard_state } = message;
    let expectation = expectation.ok_or(WireError::Missing { field: "collapsed.expectation" })?;
    let shard_state = shard_state.ok_or(WireError::Missing { field: "collapsed.shard_state" })?;
    let (expectation, shard_state) =
        (Expectation::from_wire(expectation)?, ShardState::from_wire(shard_state)?);
    Ok(Collapsed { expectation, shard_state })
}

pub fn check(task: &Items<'_>, collapse: &Collapse) -> Result<(), WireError> {
    match collapse {
        Collapse::Start { .. } => Ok(()),
        Collapse::Others { pseudo, shard_state, .. } => {
            check_carried(task.shard, pseudo.len(), &shard_state.value)
        }
    }
}

pub fn check_answer(task: &Items<'_>, collapse: &Collapse, collapsed: &Collapsed) -> Result<(), WireError> {
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
        Err(WireError::Inconsistent { field: "expectation.counts" })
    }
}

/// Checks that `shard_state` is the state of a shard that touches `n_params` parameters.
fn check_carried(shard: &Shard, n_params: usize, shard_state: &ShardState) -> Result<(), WireError> {
    let ShardState::Counts(counts) = shard_state else {
        return Err(WireError::ShardState { problem: format!("it is of {}", shard_state.method()) });
    };
    same_length("shard_state.counts", counts.len(), n_occurrences(shard))?;
    shard_state.check(n_params).map_err(|error| WireError::ShardState { problem: error.to_string() })
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
