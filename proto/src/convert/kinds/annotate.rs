//! Passes over trees whose labels have subtypes.

use grammaton::data::treebank::RuleId;
use grammaton::limits::is_count;
use grammaton::models::latent::layout::MAX_SUBTYPES;
use grammaton::models::latent::{self, Layout, Weights};
use grammaton::work::shard::Shard;
use grammaton::work::task::{Annotate, Annotated, Named, Pass, ShardState};

use crate::convert::sizes::{DOUBLE, FLOAT, VARINT};
use crate::convert::{
    COUNT, FINITE, NON_NEGATIVE, Wire, WireError, finite, in_range, non_negative, numbers, same_length,
};
use crate::payload::MAX_PAYLOAD;
use crate::v1;

/// Upper bound on the bytes of a request, which may hold numbers for every split rule.
pub const LARGEST_LEASE: u64 = MAX_PAYLOAD;

pub fn request_to_wire(annotate: &Annotate) -> v1::Annotate {
    let pass = match &annotate.pass {
        Pass::Expect { weights } => v1::annotate::Pass::Expect(weights_to_wire(weights)),
        Pass::Begin { weights } => v1::annotate::Pass::Begin(weights_to_wire(weights)),
        Pass::Others { totals, alpha, shard_state: _ } => {
            v1::annotate::Pass::Others(v1::OtherTrees { totals: totals.to_vec(), alpha: *alpha })
        }
    };
    v1::Annotate { n_subtypes: annotate.n_subtypes as u32, pass: Some(pass) }
}

pub fn request_from_wire(
    message: v1::Annotate,
    shard_state: impl FnOnce() -> Result<Named<ShardState>, WireError>,
) -> Result<Annotate, WireError> {
    let v1::Annotate { n_subtypes, pass } = message;
    in_range("annotate.n_subtypes", [n_subtypes], 1..MAX_SUBTYPES as u64 + 1)?;
    let pass = match pass.ok_or(WireError::Missing { field: "annotate.pass" })? {
        v1::annotate::Pass::Expect(weights) => Pass::Expect { weights: weights_from_wire(weights)?.into() },
        v1::annotate::Pass::Begin(weights) => Pass::Begin { weights: weights_from_wire(weights)?.into() },
        v1::annotate::Pass::Others(v1::OtherTrees { totals, alpha }) => {
            numbers("annotate.totals", &totals, NON_NEGATIVE, non_negative)?;
            numbers("annotate.alpha", &[alpha], "above 0 and at most 1e9", |alpha| {
                alpha > 0.0 && alpha <= 1e9
            })?;
            Pass::Others { totals: totals.into(), alpha, shard_state: shard_state()? }
        }
    };
    Ok(Annotate { n_subtypes: n_subtypes as usize, pass })
}

fn weights_to_wire(weights: &Weights) -> v1::SplitWeights {
    v1::SplitWeights { values: weights.values.clone(), exponents: weights.exponents.clone() }
}

/// Largest exponent of a weight, so that the sum over a tree cannot overflow: no payload holds a tree of 2^30 nodes.
const LARGEST_EXPONENT: i64 = 1 << 32;

fn weights_from_wire(message: v1::SplitWeights) -> Result<Weights, WireError> {
    let v1::SplitWeights { values, exponents } = message;
    // Probabilities, or mantissas.
    numbers("annotate.values", &values, "from 0 to 2", |value| (0.0..=2.0).contains(&value))?;
    match exponents.iter().position(|exponent| !(-LARGEST_EXPONENT..=LARGEST_EXPONENT).contains(exponent)) {
        Some(at) => {
            let (found, largest) = (exponents[at], LARGEST_EXPONENT);
            Err(WireError::Exponent { field: "annotate.exponents", at, found, largest })
        }
        None => Ok(Weights { values, exponents }),
    }
}

pub fn to_wire(annotated: &Annotated) -> v1::Annotated {
    v1::Annotated {
        counts: annotated.expectation.counts.clone(),
        log_z: annotated.expectation.ln_z,
        shard_state: annotated.shard_state.as_ref().map(Wire::to_wire),
    }
}

pub fn from_wire(message: v1::Annotated) -> Result<Annotated, WireError> {
    let v1::Annotated { counts, log_z, shard_state } = message;
    numbers("annotated.counts", &counts, COUNT, is_count)?;
    numbers("annotated.log_z", &[log_z], FINITE, finite)?;
    let expectation = latent::Expectation { counts, ln_z: log_z };
    Ok(Annotated { expectation, shard_state: shard_state.map(ShardState::from_wire).transpose()? })
}

pub fn largest_answer(shard: &Shard, annotate: &Annotate) -> u64 {
    let [n_counts, n_own] = n_numbers(shard, annotate);
    n_counts * DOUBLE + n_own * FLOAT + shard.len() as u64 * VARINT
}

/// Checks the numbers of a request against the trees of `shard`.
pub fn check(shard: &Shard, annotate: &Annotate) -> Result<(), WireError> {
    let (layout, trees) = layout(shard, annotate)?;
    match &annotate.pass {
        Pass::Expect { weights } | Pass::Begin { weights } => {
            same_length("annotate.values", weights.values.len(), layout.n_params())?;
            same_length("annotate.exponents", weights.exponents.len(), layout.blocks.len())
        }
        Pass::Others { totals, shard_state, .. } => {
            same_length("annotate.totals", totals.len(), layout.n_params())?;
            self::shard_state(&layout, trees, &shard_state.value)
        }
    }
}

/// Checks an answer against the request and the trees of `shard`.
pub fn check_answer(shard: &Shard, annotate: &Annotate, annotated: &Annotated) -> Result<(), WireError> {
    let (layout, trees) = layout(shard, annotate)?;
    let counts = &annotated.expectation.counts;
    same_length("annotated.counts", counts.len(), layout.n_params())?;
    // Each node is a use of one entry of its rule's block.
    let most = 2.0 * trees.trees.iter().map(Vec::len).sum::<usize>() as f64;
    numbers("annotated.counts", counts, "of uses in the trees", |count| count <= most)?;
    match (&annotate.pass, &annotated.shard_state) {
        (Pass::Expect { .. }, None) => Ok(()),
        (Pass::Begin { .. } | Pass::Others { .. }, Some(shard_state)) => {
            self::shard_state(&layout, trees, shard_state)?;
            match shard_state {
                ShardState::Latent(own) if own.counts(&layout, trees) == *counts => Ok(()),
                _ => Err(WireError::Inconsistent { field: "annotated.counts" }),
            }
        }
        (Pass::Expect { .. }, Some(_)) => {
            Err(WireError::ShardState { problem: "this pass carries nothing".to_owned() })
        }
        (Pass::Begin { .. } | Pass::Others { .. }, None) => {
            Err(WireError::Missing { field: "annotated.shard_state" })
        }
    }
}

/// Largest numbers of elements of an answer: its counts, and the own counts that the shard keeps.
fn n_numbers(shard: &Shard, annotate: &Annotate) -> [u64; 2] {
    let Ok((layout, trees)) = layout(shard, annotate) else { return [0; 2] };
    let own = |rule: &RuleId| layout.blocks[rule.index()].n_entries() as u64;
    let n_own = match annotate.pass {
        Pass::Expect { .. } => 0,
        Pass::Begin { .. } | Pass::Others { .. } => trees.trees.iter().flatten().map(own).sum(),
    };
    [layout.n_params() as u64, n_own]
}

fn layout<'s>(shard: &'s Shard, annotate: &Annotate) -> Result<(Layout, &'s latent::Shard), WireError> {
    let Shard::Trees { rules, trees } = shard else {
        return Err(WireError::Kind { found: "a shard of sentences or strings", expected: "one of trees" });
    };
    Layout::check(rules, annotate.n_subtypes)
        .map_err(|error| WireError::Trees { problem: error.to_string() })?;
    Ok((Layout::new(rules, annotate.n_subtypes), trees))
}

fn shard_state(layout: &Layout, trees: &latent::Shard, shard_state: &ShardState) -> Result<(), WireError> {
    match shard_state {
        ShardState::Latent(own) if own.fits(layout, trees) => Ok(()),
        _ => Err(WireError::ShardState { problem: "it is not of the shard's trees".to_owned() }),
    }
}
