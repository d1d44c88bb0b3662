//! Expectation maximisation: the maximum of the likelihood (Lari & Young 1990; Wang & Blunsom 2013, Eq. 3).

use crate::grammar::groups::{Estimate, Groups};
use crate::num::Wide;

/// θ_r = f_r / Σ f.
pub fn weights(groups: &Groups, estimate: &Estimate) -> Vec<Wide> {
    groups.normalised(&estimate.counts)
}

/// The log-likelihood, which never falls.
pub fn bound(log_z: f64) -> f64 {
    log_z
}
