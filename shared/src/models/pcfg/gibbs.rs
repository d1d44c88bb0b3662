//! Gibbs sampling of trees and probabilities in turn (Johnson, Griffiths & Goldwater 2007, §3).
//!
//! Given the trees, θ is drawn from Dirichlet(α + f); given θ, each sentence's tree is drawn by itself, on any worker.

use crate::grammar::groups::{Estimate, Groups};
use crate::num::{Wide, random};

/// A draw of θ, from the stream of (seed, run, round).
pub fn weights(groups: &Groups, estimate: &Estimate, seed: u64, run: u64, round: u64) -> Vec<Wide> {
    let mut stream = random::stream(seed, run, round);
    let mut weights = vec![Wide::ONE; groups.n_params()];
    let posterior = estimate.posterior();
    for group in groups.iter() {
        let drawn = random::dirichlet(&posterior[group.clone()], &mut stream);
        weights[group].copy_from_slice(&drawn);
    }
    weights
}

/// log P(trees | α), θ integrated out.
pub fn bound(groups: &Groups, estimate: &Estimate) -> f64 {
    estimate.log_joint(groups)
}
