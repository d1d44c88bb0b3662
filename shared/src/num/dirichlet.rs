//! Dirichlet distributions: their divergence, and the scale of their parameters.

use std::ops::Range;

use super::newton::ascend;
use super::special::{digamma, ln_gamma, trigamma};

/// KL(Dirichlet(τ) ‖ Dirichlet(α)) of one multinomial.
pub fn divergence(tau: &[f64], alpha: &[f64], group: Range<usize>) -> f64 {
    let (tau, alpha) = (&tau[group.clone()], &alpha[group]);
    let (sum_tau, sum_alpha): (f64, f64) = (tau.iter().sum(), alpha.iter().sum());
    let psi_sum = digamma(sum_tau);
    let changed = tau.iter().zip(alpha).filter(|(t, a)| t != a);
    let terms = changed.map(|(&t, &a)| ln_gamma(a) - ln_gamma(t) + (t - a) * (digamma(t) - psi_sum));
    ln_gamma(sum_tau) - ln_gamma(sum_alpha) + terms.sum::<f64>()
}

/// The factor of α that maximises E_q[ln Dirichlet(θ; α)].
pub fn scale(alpha: &[f64], tau: &[f64]) -> f64 {
    let psi_sum = digamma(tau.iter().sum());
    let logs: Vec<f64> = tau.iter().map(|&tau| digamma(tau) - psi_sum).collect();
    let total: f64 = alpha.iter().sum();
    let smallest = alpha.iter().copied().fold(f64::INFINITY, f64::min);
    ascend(1.0, 1e-5 / smallest..=1e5 / total, |s| {
        let mut slope = total * digamma(s * total);
        let mut curvature = total * total * trigamma(s * total);
        for (&alpha, log) in alpha.iter().zip(&logs) {
            slope += alpha * (log - digamma(s * alpha));
            curvature -= alpha * alpha * trigamma(s * alpha);
        }
        (slope, curvature)
    })
}
