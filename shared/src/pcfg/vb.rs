//! Variational Bayes: q(θ) = Dirichlet(α + f) (Kurihara & Sato 2006; Wang & Blunsom 2013, Eq. 4).

use std::ops::Range;

use super::{Estimate, Groups};
use crate::num::Wide;
use crate::num::special::{digamma, ln_gamma};

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

/// KL(Dirichlet(τ) ‖ Dirichlet(α)) of one multinomial.
pub fn divergence(tau: &[f64], alpha: &[f64], group: Range<usize>) -> f64 {
    let (tau, alpha) = (&tau[group.clone()], &alpha[group]);
    let (sum_tau, sum_alpha): (f64, f64) = (tau.iter().sum(), alpha.iter().sum());
    let psi_sum = digamma(sum_tau);
    let changed = tau.iter().zip(alpha).filter(|(t, a)| t != a);
    let terms = changed.map(|(&t, &a)| ln_gamma(a) - ln_gamma(t) + (t - a) * (digamma(t) - psi_sum));
    ln_gamma(sum_tau) - ln_gamma(sum_alpha) + terms.sum::<f64>()
}
