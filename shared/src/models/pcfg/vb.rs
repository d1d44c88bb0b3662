//! Variational Bayes: q(θ) = Dirichlet(α + f) (Kurihara & Sato 2006; Wang & Blunsom 2013, Eq. 4).

use crate::grammar::groups::{Estimate, Groups};
use crate::num::Wide;
use crate::num::dirichlet::divergence;
use crate::num::special::digamma;

/// exp(Ψ(α_r + f_r) − Ψ(Σ α + f)): they sum to less than one.
pub fn weights(groups: &Groups, estimate: &Estimate) -> Vec<Wide> {
    let mut weights = vec![Wide::ONE; groups.n_params()];
    let posterior = estimate.posterior();
    for group in groups.iter() {
        let psi_sum = digamma(posterior[group.clone()].iter().sum());
        for at in group {
            weights[at] = Wide::from_ln(digamma(posterior[at]) - psi_sum);
        }
    }
    weights
}

/// Σ log Z − Σ KL(Dirichlet(α + f) ‖ Dirichlet(α)), where the round ran with [`weights`] of this estimate. It never falls.
pub fn bound(groups: &Groups, estimate: &Estimate, log_z: f64) -> f64 {
    let posterior = estimate.posterior();
    log_z - groups.iter().map(|group| divergence(&posterior, &estimate.alpha, group)).sum::<f64>()
}
