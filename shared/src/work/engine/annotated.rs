//! A pass over trees whose labels have subtypes.

use crate::models::latent::layout::MAX_SUBTYPES;
use crate::models::latent::{Layout, Weights, collapsed, expect};
use crate::work::shard::Shard;
use crate::work::task::{Annotate, Annotated, Pass, ShardState};

use super::ComputeError;

/// Expected uses of split rules in `shard`.
pub fn pass(shard: &Shard, annotate: &Annotate) -> Result<Annotated, ComputeError> {
    let Shard::Trees { rules, trees } = shard else { return Err(ComputeError::NotTrees) };
    let n_subtypes = annotate.n_subtypes;
    if !(1..=MAX_SUBTYPES).contains(&n_subtypes) {
        return Err(ComputeError::Subtypes { found: n_subtypes });
    }
    Layout::check(rules, n_subtypes)?;
    let layout = Layout::new(rules, n_subtypes);
    match &annotate.pass {
        Pass::Expect { weights } => {
            check(&layout, weights)?;
            Ok(Annotated { expectation: expect(&layout, weights, trees), carried: None })
        }
        Pass::Begin { weights } => {
            check(&layout, weights)?;
            let (expectation, own) = collapsed::begin(&layout, weights, trees);
            Ok(Annotated { expectation, carried: Some(ShardState::Latent(own)) })
        }
        Pass::Others { totals, alpha, carried } => {
            n_params(&layout, totals.len())?;
            let ShardState::Latent(own) = &*carried.value else {
                return Err(ComputeError::ShardState {
                    problem: format!("it is of {}", carried.value.method()),
                });
            };
            if !own.fits(&layout, trees) {
                let problem = "its counts are not of the shard's trees".to_owned();
                return Err(ComputeError::ShardState { problem });
            }
            let (expectation, own) = collapsed::pass(&layout, totals, *alpha, trees, own.clone());
            Ok(Annotated { expectation, carried: Some(ShardState::Latent(own)) })
        }
    }
}

fn check(layout: &Layout, weights: &Weights) -> Result<(), ComputeError> {
    n_params(layout, weights.values.len())?;
    let (found, expected) = (weights.exponents.len(), layout.blocks.len());
    if found == expected { Ok(()) } else { Err(ComputeError::Weights { found, expected }) }
}

fn n_params(layout: &Layout, found: usize) -> Result<(), ComputeError> {
    let expected = layout.n_params();
    if found == expected { Ok(()) } else { Err(ComputeError::Weights { found, expected }) }
}
