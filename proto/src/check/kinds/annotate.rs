//! Passes over trees whose labels have subtypes.

use grammaton::data::treebank::RuleId;
use grammaton::models::latent::layout::MAX_SUBTYPES;
use grammaton::models::latent::{self, Layout, Weights};
use grammaton::work::shard::Shard;
use grammaton::work::task::{Annotate, Annotated, Pass, ShardState};

use crate::check::sizes::{DOUBLE, FLOAT, VARINT};
use crate::check::{FINITE, Invalid, NON_NEGATIVE, finite, in_range, non_negative, numbers, same_length};

/// Largest exponent of a weight, so that the sum over a tree cannot overflow: no payload holds a tree of 2^30 nodes.
const LARGEST_EXPONENT: f64 = (1u64 << 32) as f64;

fn check_weights(weights: &Weights) -> Result<(), Invalid> {
    // Probabilities, or mantissas.
    numbers("annotate.values", &weights.values, "from 0 to 2", |value| (0.0..=2.0).contains(&value))?;
    let exponents: Vec<f64> = weights.exponents.iter().map(|&exponent| exponent as f64).collect();
    numbers("annotate.exponents", &exponents, "of at most 2^32 in magnitude", |exponent| {
        exponent.abs() <= LARGEST_EXPONENT
    })
}

pub fn largest_answer(shard: &Shard, annotate: &Annotate) -> u64 {
    let [n_counts, n_own] = n_numbers(shard, annotate);
    n_counts * DOUBLE + n_own * FLOAT + shard.len() as u64 * VARINT
}

/// Checks the numbers of a request against the trees of `shard`.
pub fn check(shard: &Shard, annotate: &Annotate) -> Result<(), Invalid> {
    let (layout, trees) = layout(shard, annotate)?;
    match &annotate.pass {
        Pass::Expect { weights } | Pass::Begin { weights } => {
            check_weights(weights)?;
            same_length("annotate.values", weights.values.len(), layout.n_params())?;
            same_length("annotate.exponents", weights.exponents.len(), layout.blocks.len())
        }
        Pass::Others { totals, alpha, shard_state } => {
            numbers("annotate.totals", totals, NON_NEGATIVE, non_negative)?;
            numbers("annotate.alpha", &[*alpha], "above 0 and at most 1e9", |alpha| {
                alpha > 0.0 && alpha <= 1e9
            })?;
            same_length("annotate.totals", totals.len(), layout.n_params())?;
            self::shard_state(&layout, trees, &shard_state.value)
        }
    }
}

/// Checks an answer against the request and the trees of `shard`.
pub fn check_answer(shard: &Shard, annotate: &Annotate, annotated: &Annotated) -> Result<(), Invalid> {
    let (layout, trees) = layout(shard, annotate)?;
    let latent::Expectation { counts, ln_z } = &annotated.expectation;
    numbers("annotated.log_z", &[*ln_z], FINITE, finite)?;
    same_length("annotated.counts", counts.len(), layout.n_params())?;
    // Each node is a use of one entry of its rule's block.
    let most = 2.0 * trees.trees.iter().map(Vec::len).sum::<usize>() as f64;
    numbers("annotated.counts", counts, "of uses in the trees", |count| (0.0..=most).contains(&count))?;
    match (&annotate.pass, &annotated.shard_state) {
        (Pass::Expect { .. }, None) => Ok(()),
        (Pass::Begin { .. } | Pass::Others { .. }, Some(shard_state)) => {
            self::shard_state(&layout, trees, shard_state)?;
            match shard_state {
                ShardState::Latent(own) if own.counts(&layout, trees) == *counts => Ok(()),
                _ => Err(Invalid::Inconsistent { field: "annotated.counts" }),
            }
        }
        (Pass::Expect { .. }, Some(_)) => {
            Err(Invalid::ShardState { problem: "this pass carries nothing".to_owned() })
        }
        (Pass::Begin { .. } | Pass::Others { .. }, None) => {
            Err(Invalid::Missing { field: "annotated.shard_state" })
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

fn layout<'s>(shard: &'s Shard, annotate: &Annotate) -> Result<(Layout, &'s latent::Shard), Invalid> {
    let Shard::Trees { rules, trees } = shard else {
        return Err(Invalid::Missing { field: "lease.grammar" });
    };
    let n_subtypes = u32::try_from(annotate.n_subtypes).unwrap_or(u32::MAX);
    in_range("annotate.n_subtypes", [n_subtypes], 1..MAX_SUBTYPES as u64 + 1)?;
    Layout::check(rules, annotate.n_subtypes)
        .map_err(|error| Invalid::Trees { problem: error.to_string() })?;
    Ok((Layout::new(rules, annotate.n_subtypes), trees))
}

fn shard_state(layout: &Layout, trees: &latent::Shard, shard_state: &ShardState) -> Result<(), Invalid> {
    match shard_state {
        ShardState::Latent(own) if own.fits(layout, trees) => Ok(()),
        _ => Err(Invalid::ShardState { problem: "it is not of the shard's trees".to_owned() }),
    }
}
