//! The inner E-step: q(η) of one multinomial in one sentence, given the expected counts of its outcomes.
//!
//! q(η) = N(λ, diag ν). With f the counts, N = Σ f and p_j = e^{λ_j + ν_j/2} / ζ, the bound of Cohen, Gimpel & Smith (2008, Eqs. 7
//! and 8) is, as far as it depends on the multinomial,
//!
//! ```text
//! B(λ, ν, ζ) = Σ_j f_j (λ_j − ln ζ + 1 − Σ_i p_i) − KL(N(λ, diag ν) ‖ N(μ, Σ))
//! ```
//!
//! It is concave in λ, in each ν_j, and largest over ζ at Σ_j e^{λ_j + ν_j/2}, where Σ p = 1 and B = Σ f·λ − N ln ζ − KL, which is
//! concave in λ and ν together: there is one optimum, wherever one starts. [`Posterior::climb`] goes λ, ζ, ν, ζ, as Appendix A does:
//!
//! - λ by conjugate gradients with Σ as the preconditioner. The Hessian then is −(I + N Σ^½ diag(p) Σ^½), the identity and
//!   something small, since a sentence has few events of a multinomial. Few steps are enough; each costs one product with Σ, and none
//!   needs Σ⁻¹, which an ill-conditioned Σ would spoil. Newton's method would factor a new matrix, [n, n], at every step.
//! - ν_j by Newton's method. The equation 1 = ν_j ((Σ⁻¹)_jj + N p_j(ν_j)), logarithms taken, is convex and rising in ln ν_j, so
//!   Newton's method converges from everywhere, from above once it is there. As it stands it is convex and rising in ν_j, which does
//!   as well near the root, without logarithms.
//!
//! No allocation once the vectors have grown. The order of sums is fixed.

use crate::num::rows::{add, dot};
use crate::num::special::{exp, exp_each, ln};

use super::Prior;

/// A step of λ that promises less, in nats an event, is not taken.
const LEAST_GAIN: f64 = 1e-14;
/// Share of what the slope promises that a step must gain (Armijo's rule).
const ARMIJO: f64 = 1e-4;
/// ν to begin with, in every outcome.
const FIRST_NU: f64 = 10.0;
/// Bounds of loops that end long before.
const MAX_STEPS: usize = 200;
const MAX_HALVINGS: usize = 40;

/// q(η) of one multinomial in one sentence.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Posterior {
    /// λ, the means of η. `[n]`
    lambda: Vec<f64>,
    /// ν, its variances. `[n]`
    nu: Vec<f64>,
    /// ln ζ.
    ln_zeta: f64,
    /// Σ⁻¹ (λ − μ). `[n]`
    precision_residual: Vec<f64>,
    /// p. `[n]`
    shares: Vec<f64>,
}

/// Memory for the fits of posteriors, used again and again.
#[derive(Clone, Debug, Default)]
pub struct Scratch {
    /// ∂B/∂λ. `[n]`
    gradient: Vec<f64>,
    /// Σ · gradient. `[n]`
    ascent: Vec<f64>,
    /// Direction of λ, and Σ⁻¹ times it. `[n]` each
    direction: Vec<f64>,
    precision_direction: Vec<f64>,
    /// λ where a step leads, and p there. `[n]` each
    trial: Vec<f64>,
    trial_shares: Vec<f64>,
}

impl Posterior {
    /// Where [`Self::climb`] begins in a sentence: ν = 10, and ζ at its best for λ = 0, as in JDageem. λ itself, which is fitted first,
    /// begins at μ.
    pub fn reset(&mut self, prior: &Prior) {
        let n = prior.n_outcomes();
        self.lambda.clear();
        self.lambda.extend_from_slice(prior.mean());
        self.precision_residual.clear();
        self.precision_residual.resize(n, 0.0);
        self.nu.clear();
        self.nu.resize(n, FIRST_NU);
        self.ln_zeta = ln(n as f64) + 0.5 * FIRST_NU;
        self.shares.clear();
        self.shares.resize(n, 0.0);
        write_shares(&self.lambda, &self.nu, self.ln_zeta, &mut self.shares);
    }

    /// λ, the means of η. `[n]`
    pub fn lambda(&self) -> &[f64] {
        &self.lambda
    }

    /// ν, the variances of η. `[n]`
    pub fn nu(&self) -> &[f64] {
        &self.nu
    }

    /// Writes the log weights to parse with: ln φ_j = λ_j − ln ζ (Eq. 7 at the best ζ). `[n]`
    pub fn ln_weights(&self, weights: &mut [f64]) {
        weights.iter_mut().zip(&self.lambda).for_each(|(weight, lambda)| *weight = lambda - self.ln_zeta);
    }

    /// KL(N(λ, diag ν) ‖ N(μ, Σ)).
    pub fn divergence(&self, prior: &Prior) -> f64 {
        let mut sum = prior.ln_determinant();
        for (j, &nu) in self.nu.iter().enumerate() {
            let distance = self.precision_residual[j] * (self.lambda[j] - prior.mean()[j]);
            sum += distance + prior.precision()[j] * nu - 1.0 - ln(nu);
        }
        0.5 * sum
    }

    /// Raises B by fitting λ, ζ, ν and ζ, each given the others, to expected counts of the outcomes. `[n]`
    ///
    /// B never falls, so if one call follows another as counts change, the bound of the sentence rises steadily.
    pub fn climb(&mut self, prior: &Prior, counts: &[f64], scratch: &mut Scratch) {
        scratch.resize(prior.n_outcomes());
        let n_events: f64 = counts.iter().sum();
        self.climb_lambda(prior, counts, n_events, scratch);
        self.fit_zeta();
        self.climb_nu(prior, n_events);
        self.fit_zeta();
    }

    /// ζ given λ and ν: Σ_j e^{λ_j + ν_j/2}, with which shares sum to one. Found from the largest term, for all may be beyond an `f64`.
    fn fit_zeta(&mut self) {
        let exponents = self.lambda.iter().zip(&self.nu).map(|(lambda, nu)| lambda + 0.5 * nu);
        let largest = exponents.fold(f64::NEG_INFINITY, f64::max);
        write_shares(&self.lambda, &self.nu, largest, &mut self.shares);
        let sum: f64 = self.shares.iter().sum();
        self.shares.iter_mut().for_each(|share| *share /= sum);
        self.ln_zeta = largest + ln(sum);
    }

    /// λ given ν and ζ, by conjugate gradients (Polak & Ribière).
    fn climb_lambda(&mut self, prior: &Prior, counts: &[f64], n_events: f64, scratch: &mut Scratch) {
        let mut before = 0.0;
        scratch.direction.fill(0.0);
        scratch.precision_direction.fill(0.0);
        for _ in 0..MAX_STEPS {
            // ∂B/∂λ = f − N p − Σ⁻¹ (λ − μ) (Appendix A, corrected as `docs/MATHS.md` says)
            for (j, slope) in scratch.gradient.iter_mut().enumerate() {
                *slope = counts[j] - n_events * self.shares[j] - self.precision_residual[j];
            }
            let conjugate = dot(&scratch.gradient, &scratch.ascent);
            product(prior.covariance(), &scratch.gradient, &mut scratch.ascent);
            let square = dot(&scratch.gradient, &scratch.ascent);
            let beta_pr = if before > 0.0 { ((square - conjugate) / before).max(0.0) } else { 0.0 };
            before = square;
            blend(&scratch.ascent, beta_pr, &mut scratch.direction);
            blend(&scratch.gradient, beta_pr, &mut scratch.precision_direction);
            if dot(&scratch.gradient, &scratch.direction) <= 0.0 {
                scratch.direction.copy_from_slice(&scratch.ascent);
                scratch.precision_direction.copy_from_slice(&scratch.gradient);
            }
            if !self.step(counts, n_events, scratch) {
                break;
            }
        }
    }

    /// Moves λ along the direction, to where B would be highest if it were a parabola, or half as far, and so on, until B rises.
    /// Returns false, and stays, where there is nothing to gain.
    fn step(&mut self, counts: &[f64], n_events: f64, scratch: &mut Scratch) -> bool {
        let direction = &scratch.direction;
        let slope = dot(&scratch.gradient, direction);
        let curvature = dot(&scratch.precision_direction, direction);
        let squares =
            direction.iter().zip(&self.shares).map(|(direction, share)| share * direction * direction);
        let mut length = slope / (curvature + n_events * squares.sum::<f64>());
        let promised = 0.5 * slope * length;
        if promised.is_nan() || promised < LEAST_GAIN * (1.0 + n_events) {
            return false;
        }
        // f·d − Σ⁻¹(λ − μ)·d
        let linear = dot(counts, direction) - dot(&self.precision_residual, direction);
        let sum: f64 = self.shares.iter().sum();
        for _ in 0..MAX_HALVINGS {
            for (j, trial) in scratch.trial.iter_mut().enumerate() {
                *trial = self.lambda[j] + length * direction[j];
            }
            write_shares(&scratch.trial, &self.nu, self.ln_zeta, &mut scratch.trial_shares);
            let trial_sum: f64 = scratch.trial_shares.iter().sum();
            let gain = length * (linear - 0.5 * length * curvature) - n_events * (trial_sum - sum);
            if gain >= ARMIJO * length * slope {
                std::mem::swap(&mut self.lambda, &mut scratch.trial);
                std::mem::swap(&mut self.shares, &mut scratch.trial_shares);
                add(length, &scratch.precision_direction, &mut self.precision_residual);
                return true;
            }
            length *= 0.5;
        }
        false
    }

    /// ν given λ and ζ (Appendix A, with (Σ⁻¹)_jj where Σ_jj is printed).
    fn climb_nu(&mut self, prior: &Prior, n_events: f64) {
        for ((nu, share), &precision) in self.nu.iter_mut().zip(&self.shares).zip(prior.precision()) {
            *nu = best_variance(precision, n_events * share, *nu);
        }
    }
}

/// The ν for which ν (c + w e^{(ν − ν₀)/2}) = 1, where c is the prior's precision, ν₀ the variance now, and w what events add to
/// the precision there.
fn best_variance(c: f64, w: f64, now: f64) -> f64 {
    let (mut nu, mut events) = (now, w);
    for _ in 0..MAX_STEPS {
        let product = nu * (c + events);
        // of ln ν, as a share of ν the same near the root
        let slope = 1.0 + 0.5 * nu * events / (c + events);
        let is_near = (0.5..1.5).contains(&product);
        let step = if is_near { (product - 1.0) / (product * slope) } else { ln(product) / slope };
        if step.abs() < 1e-7 {
            return nu - step * nu; // what is left is about the square of the step
        }
        nu *= if is_near { 1.0 - step } else { exp(-step) };
        // cut where an f64 would end; a root is never there
        events = w * exp((0.5 * (nu - now)).min(500.0));
    }
    nu
}

impl Scratch {
    fn resize(&mut self, n: usize) {
        for vector in [
            &mut self.gradient,
            &mut self.ascent,
            &mut self.direction,
            &mut self.precision_direction,
            &mut self.trial,
            &mut self.trial_shares,
        ] {
            vector.resize(n, 0.0);
        }
    }
}

/// Writes p_j = e^{λ_j + ν_j/2} / ζ.
fn write_shares(lambda: &[f64], nu: &[f64], ln_zeta: f64, shares: &mut [f64]) {
    for ((share, lambda), nu) in shares.iter_mut().zip(lambda).zip(nu) {
        *share = lambda + 0.5 * nu - ln_zeta;
    }
    exp_each(shares);
}

/// Writes Σ · vector, from the rows of a symmetric Σ, four at a time.
fn product(covariance: &[f64], vector: &[f64], out: &mut [f64]) {
    let n = vector.len();
    out.fill(0.0);
    let (rows, factors) = (covariance.chunks_exact(4 * n), vector.chunks_exact(4));
    let rest = rows.remainder().chunks_exact(n).zip(factors.remainder());
    for (rows, factors) in rows.zip(factors) {
        let (a, rest) = rows.split_at(n);
        let (b, rest) = rest.split_at(n);
        let (c, d) = rest.split_at(n);
        for (((sum, a), b), (c, d)) in out.iter_mut().zip(a).zip(b).zip(c.iter().zip(d)) {
            *sum = *sum + factors[0] * a + factors[1] * b + factors[2] * c + factors[3] * d;
        }
    }
    rest.for_each(|(row, &factor)| add(factor, row, out));
}

/// direction ← ascent + beta pr · direction.
fn blend(ascent: &[f64], beta_pr: f64, direction: &mut [f64]) {
    direction
        .iter_mut()
        .zip(ascent)
        .for_each(|(direction, ascent)| *direction = ascent + beta_pr * *direction);
}
