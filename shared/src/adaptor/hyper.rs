//! The M-step of variational EM: hyper-parameters that maximise the bound with q fixed (§3, Fig. 2, corrected).
//!
//! Each is a one-dimensional safeguarded Newton ascent, a few steps a round, since q moves as well. A step is taken
//! only if the objective rises, so the bound never falls.

use super::params::{Params, Stick, groups};
use crate::grammar::Grammar;
use crate::num::special::{digamma, ln_beta, ln_gamma, trigamma};

/// Which hyper-parameters to fit.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Fit {
    /// Concentration a of every stick.
    pub concentration: bool,
    /// Discount b of every stick.
    pub discount: bool,
    /// α of every nonterminal, scaled as a whole.
    pub alpha: bool,
}

/// Value, slope and curvature of an objective.
type Point = (f64, f64, f64);

const STEPS: usize = 3;
const MAX_DISCOUNT: f64 = 0.99;
const MIN_CONCENTRATION: f64 = 1e-3;
const MAX_CONCENTRATION: f64 = 1e6;

impl Params {
    /// Moves the hyper-parameters uphill.
    pub fn fit(&mut self, grammar: &Grammar, fit: Fit) {
        for stick in self.sticks.iter_mut().filter(|stick| stick.order.len() > 1) {
            let logs = stick.logs();
            let (sum_broken, left) = (logs.broken.iter().sum(), logs.left);
            if fit.concentration {
                stick.fit_concentration(sum_broken, &left);
            }
            if fit.discount {
                stick.fit_discount(sum_broken, &left);
            }
        }
        if fit.alpha {
            for rules in groups(grammar).filter(|rules| rules.len() > 1) {
                let scale = alpha_scale(&self.alpha[rules.clone()], &self.tau[rules.clone()]);
                self.alpha[rules].iter_mut().for_each(|alpha| *alpha *= scale);
            }
        }
    }
}

impl Stick {
    fn fit_concentration(&mut self, sum_broken: f64, left: &[f64]) {
        let discount = self.discount;
        if discount == 0.0 {
            // Beta(1, a): Σ 1/a + Σ E[ln(1 − v_i)] = 0
            let a = -(left.len() as f64) / left.iter().sum::<f64>();
            let (low, high) =
                (self.concentration.min(MIN_CONCENTRATION), self.concentration.max(MAX_CONCENTRATION));
            self.concentration = a.clamp(low, high);
            return;
        }
        self.concentration = ascend(self.concentration, MIN_CONCENTRATION, MAX_CONCENTRATION, |a| {
            let (mut slope, mut curvature) = (0.0, 0.0);
            for (i, left) in left.iter().enumerate() {
                let c = a + (i + 1) as f64 * discount; // a + i·b, i from 1
                let d = 1.0 + c - discount; //             a + 1 + (i − 1)·b
                slope += digamma(d) - digamma(c) + left;
                curvature += trigamma(d) - trigamma(c);
            }
            (expected_log_prior(a, discount, sum_broken, left), slope, curvature)
        });
    }

    fn fit_discount(&mut self, sum_broken: f64, left: &[f64]) {
        let a = self.concentration;
        self.discount = ascend(self.discount, 0.0, MAX_DISCOUNT, |b| {
            let n = left.len() as f64;
            // −b·Σ E[ln v_i] belongs to the objective; Fig. 2 prints it without, which drives b to 0.
            let mut slope = n * digamma(1.0 - b) - sum_broken;
            let mut curvature = -n * trigamma(1.0 - b);
            for (at, left) in left.iter().enumerate() {
                let i = (at + 1) as f64;
                let (c, d) = (a + i * b, a + 1.0 + (i - 1.0) * b);
                slope += (i - 1.0) * digamma(d) - i * digamma(c) + i * left;
                curvature += (i - 1.0) * (i - 1.0) * trigamma(d) - i * i * trigamma(c);
            }
            (expected_log_prior(a, b, sum_broken, left), slope, curvature)
        });
    }
}

/// Σ_{i<N} E_q[ln Beta(v_i; 1 − b, a + i·b)].
pub fn expected_log_prior(a: f64, b: f64, sum_broken: f64, left: &[f64]) -> f64 {
    let terms = left.iter().enumerate().map(|(i, left)| {
        let second = a + (i + 1) as f64 * b;
        (second - 1.0) * left - ln_beta(1.0 - b, second)
    });
    terms.sum::<f64>() - b * sum_broken
}

/// The factor of α that maximises E_q[ln Dirichlet(θ; α)].
fn alpha_scale(alpha: &[f64], tau: &[f64]) -> f64 {
    let psi_sum = digamma(tau.iter().sum());
    let logs: Vec<f64> = tau.iter().map(|&tau| digamma(tau) - psi_sum).collect();
    let total: f64 = alpha.iter().sum();
    let smallest = alpha.iter().copied().fold(f64::INFINITY, f64::min);
    ascend(1.0, 1e-5 / smallest, 1e5 / total, |s| {
        let mut value = ln_gamma(s * total);
        let mut slope = total * digamma(s * total);
        let mut curvature = total * total * trigamma(s * total);
        for (&alpha, log) in alpha.iter().zip(&logs) {
            value += (s * alpha - 1.0) * log - ln_gamma(s * alpha);
            slope += alpha * (log - digamma(s * alpha));
            curvature -= alpha * alpha * trigamma(s * alpha);
        }
        (value, slope, curvature)
    })
}

/// A few safeguarded Newton steps uphill from `start` within `[low, high]`: a step is at most a factor of four, is
/// halved until the value rises, and left out if it never does. A start outside of the limits moves them.
fn ascend(start: f64, low: f64, high: f64, objective: impl Fn(f64) -> Point) -> f64 {
    let (low, high) = (low.min(start), high.max(start));
    let mut x = start;
    let (mut value, mut slope, mut curvature) = objective(x);
    for _ in 0..STEPS {
        let reach = 3.0 * x.max(0.01);
        let mut step = if curvature < 0.0 { -slope / curvature } else { slope.signum() * reach };
        step = step.clamp(-0.75 * x, reach);
        let mut moved = false;
        for _ in 0..20 {
            let next = (x + step).clamp(low, high);
            let point = objective(next);
            if point.0 > value {
                (x, moved) = (next, true);
                (value, slope, curvature) = point;
                break;
            }
            step *= 0.5;
        }
        if !moved || step.abs() < 1e-4 * x {
            break;
        }
    }
    x
}
