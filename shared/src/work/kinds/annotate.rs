//! A pass over trees whose labels have subtypes.

use crate::models::latent;
use crate::models::latent::layout::MAX_SUBTYPES;
use crate::models::latent::{Layout, Weights, collapsed, expect};
use crate::work::content::Named;
use crate::work::heap::flat;
use crate::work::shard::Shard;
use crate::work::state::ShardState;
use serde::{Deserialize, Serialize};
use std::sync::Arc;

use crate::work::error::ComputeError;

/// A pass over trees whose labels have latent subtypes ([`crate::models::latent`]).
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Annotate<S = Named<ShardState>> {
    /// Subtypes of every label but the root, at most [`latent::layout::MAX_SUBTYPES`].
    pub n_subtypes: usize,
    /// The pass.
    pub pass: Pass<S>,
}

/// Parameters for reading trees.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub enum Pass<S = Named<ShardState>> {
    /// Expected counts, given weights.
    Expect {
        /// Weights of all split rules.
        weights: Arc<latent::Weights>,
    },
    /// Weights, and own counts are kept: the first pass of collapsed variational Bayes.
    Begin {
        /// Weights of all split rules.
        weights: Arc<latent::Weights>,
    },
    /// The posterior mean of all other trees.
    Others {
        /// Expected uses in all shards. `[n_params]`
        totals: Arc<Vec<f64>>,
        /// The prior's count of every entry.
        alpha: f64,
        /// The state in the shard's last answer.
        shard_state: S,
    },
}

impl<S> Annotate<S> {
    /// The same pass, with the state that `find` returns for its own.
    pub(crate) fn with_state<T, E>(self, find: impl FnOnce(S) -> Result<T, E>) -> Result<Annotate<T>, E> {
        let pass = match self.pass {
            Pass::Expect { weights } => Pass::Expect { weights },
            Pass::Begin { weights } => Pass::Begin { weights },
            Pass::Others { totals, alpha, shard_state } => {
                Pass::Others { totals, alpha, shard_state: find(shard_state)? }
            }
        };
        Ok(Annotate { n_subtypes: self.n_subtypes, pass })
    }
}

/// Expected uses of split rules in a shard of trees.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Annotated {
    /// Expectation of the shard.
    pub expectation: latent::Expectation,
    /// [`ShardState::Latent`], for the next round; not of [`Pass::Expect`].
    pub shard_state: Option<ShardState>,
}

impl Annotated {
    /// Bytes on the heap, but for what the shard carries, which stays.
    pub fn size(&self) -> usize {
        flat(&self.expectation.counts)
    }
}

/// The expected uses of split rules in the trees of the shard.
pub fn run(shard: &Shard, annotate: &Annotate) -> Result<Annotated, ComputeError> {
    let Shard::Trees { rules, trees } = shard else {
        return Err(ComputeError::NotTrees);
    };
    let n_subtypes = annotate.n_subtypes;
    if !(1..=MAX_SUBTYPES).contains(&n_subtypes) {
        return Err(ComputeError::Subtypes { found: n_subtypes });
    }
    Layout::check(rules, n_subtypes)?;
    let layout = Layout::new(rules, n_subtypes);
    match &annotate.pass {
        Pass::Expect { weights } => {
            check(&layout, weights)?;
            Ok(Annotated { expectation: expect(&layout, weights, trees), shard_state: None })
        }
        Pass::Begin { weights } => {
            check(&layout, weights)?;
            let (expectation, own) = collapsed::begin(&layout, weights, trees);
            Ok(Annotated { expectation, shard_state: Some(ShardState::Latent(own)) })
        }
        Pass::Others { totals, alpha, shard_state } => {
            n_params(&layout, totals.len())?;
            let ShardState::Latent(own) = &*shard_state.value else {
                return Err(ComputeError::ShardState {
                    problem: format!("it is of {}", shard_state.value.method()),
                });
            };
            if !own.fits(&layout, trees) {
                let problem = "its counts are not of the shard's trees".to_owned();
                return Err(ComputeError::ShardState { problem });
            }
            let (expectation, own) = collapsed::pass(&layout, totals, *alpha, trees, own.clone());
            Ok(Annotated { expectation, shard_state: Some(ShardState::Latent(own)) })
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
