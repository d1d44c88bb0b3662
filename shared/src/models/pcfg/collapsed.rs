//! Methods that integrate the probabilities out: collapsed VB (Wang & Blunsom 2013, §3.2) and Hastings (Johnson, Griffiths &
//! Goldwater 2007, §5).
//!
//! A sentence is read with the posterior mean of all *other* sentences' counts, one sentence after the other: a worker takes a
//! sentence's own counts out, reads it, and puts the new ones in ([`crate::work::engine`]). What is here is what the coordinator
//! needs: the weights of the first round, and those for reading other sentences.

use crate::grammar::groups::{Estimate, Groups};
use crate::num::Wide;

/// (α_r + f_r) / Σ (α + f): the posterior mean (Wang & Blunsom 2013, Eq. 8, of all sentences).
pub fn weights(groups: &Groups, estimate: &Estimate) -> Vec<Wide> {
    groups.normalised(&estimate.posterior())
}

/// Σ log Z of the sentences, each given the others: an approximation that usually rises, but no bound.
pub fn bound(log_z: f64) -> f64 {
    log_z
}
