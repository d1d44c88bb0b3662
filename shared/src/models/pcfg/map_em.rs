//! Expectation maximisation with a prior: the mode of the posterior (Johnson, Griffiths & Goldwater 2007, §6).
//!
//! With α < 1 a rule whose expected count is below 1 − α gets probability 0, and soon sentences lose their last derivation. Those
//! are found by the workers and what they lack comes back ([`crate::train::pcfg`]), but the estimate is what the paper says it is.

use crate::grammar::groups::{Estimate, Groups};
use crate::num::Wide;

/// θ_r ∝ max(0, f_r + α_r − 1); if that is 0 for a whole multinomial, the largest f_r + α_r takes it all.
pub fn weights(groups: &Groups, estimate: &Estimate) -> Vec<Wide> {
    let posterior = estimate.posterior();
    let mut numbers: Vec<f64> = posterior.iter().map(|sum| (sum - 1.0).max(0.0)).collect();
    for group in groups.iter() {
        let unused = estimate.counts[group.clone()].iter().all(|&count| count == 0.0);
        if !unused && numbers[group.clone()].iter().all(|&number| number == 0.0) {
            let largest = group.reduce(|best, at| if posterior[at] > posterior[best] { at } else { best });
            numbers[largest.expect("a multinomial has a parameter")] = 1.0;
        }
    }
    groups.normalised(&numbers)
}

/// log-likelihood + Σ (α − 1) ln θ over the rules that are left: the log-posterior up to a constant, which never falls if no α
/// is below 1; with such it has no maximum (zeros make the density infinite), and may fall.
pub fn bound(groups: &Groups, estimate: &Estimate, weights: &[Wide], log_z: f64) -> f64 {
    let params = groups.iter().flatten().filter(|&at| !weights[at].is_zero());
    log_z + params.map(|at| (estimate.alpha[at] - 1.0) * weights[at].ln()).sum::<f64>()
}
