//! The E-step of a sentence with logistic-normal priors as in JDageem, in plain loops: each of λ, ζ, ν, ζ at its optimum given the others, then
//! a parse, until the bound changes by less than the tolerance. With nothing of the code under test.

use grammaton::models::logistic_normal::{Prior, StopRule};
use grammaton::num::special::{exp, ln};

/// A⁻¹ and |A| by Gauss–Jordan elimination. `[n, n]`
pub fn inverse(matrix: &[f64], n: usize) -> (Vec<f64>, f64) {
    let mut left = matrix.to_vec();
    let mut right: Vec<f64> = (0..n * n).map(|at| if at / n == at % n { 1.0 } else { 0.0 }).collect();
    let mut determinant = 1.0;
    for pivot in 0..n {
        let factor = left[pivot * n + pivot];
        determinant *= factor;
        for k in 0..n {
            left[pivot * n + k] /= factor;
            right[pivot * n + k] /= factor;
        }
        for row in (0..n).filter(|&row| row != pivot) {
            let factor = left[row * n + pivot];
            for k in 0..n {
                left[row * n + k] -= factor * left[pivot * n + k];
                right[row * n + k] -= factor * right[pivot * n + k];
            }
        }
    }
    (right, determinant)
}

/// q(η) of one multinomial.
struct Posterior {
    mean: Vec<f64>,
    precision: Vec<f64>,
    determinant: f64,
    lambda: Vec<f64>,
    nu: Vec<f64>,
    zeta: f64,
}

impl Posterior {
    /// λ = μ, ν = 10, and ζ the best for λ = 0.
    fn new(prior: &Prior) -> Posterior {
        let n = prior.n_outcomes();
        let (precision, determinant) = inverse(prior.covariance(), n);
        let mean = prior.mean().to_vec();
        Posterior {
            lambda: mean.clone(),
            mean,
            precision,
            determinant,
            nu: vec![10.0; n],
            zeta: n as f64 * exp(5.0),
        }
    }

    /// Σ⁻¹ (λ − μ).
    fn pull(&self, lambda: &[f64]) -> Vec<f64> {
        let n = lambda.len();
        let row = |i: usize| (0..n).map(|j| self.precision[i * n + j] * (lambda[j] - self.mean[j])).sum();
        (0..n).map(row).collect()
    }

    /// e^{λ + ν/2} / ζ.
    fn shares(&self, lambda: &[f64]) -> Vec<f64> {
        lambda.iter().zip(&self.nu).map(|(lambda, nu)| exp(lambda + 0.5 * nu) / self.zeta).collect()
    }

    fn fit_zeta(&mut self) {
        self.zeta = self.lambda.iter().zip(&self.nu).map(|(lambda, nu)| exp(lambda + 0.5 * nu)).sum();
    }

    /// Newton's method, with halved steps.
    fn fit_lambda(&mut self, counts: &[f64]) {
        let n = counts.len();
        let n_events: f64 = counts.iter().sum();
        let value = |posterior: &Posterior, lambda: &[f64]| -> f64 {
            let pulls = posterior.pull(lambda);
            let terms =
                (0..n).map(|j| counts[j] * lambda[j] - 0.5 * (lambda[j] - posterior.mean[j]) * pulls[j]);
            terms.sum::<f64>() - n_events * posterior.shares(lambda).iter().sum::<f64>()
        };
        for _ in 0..100 {
            let (shares, pulls) = (self.shares(&self.lambda), self.pull(&self.lambda));
            let mut hessian = self.precision.clone();
            (0..n).for_each(|j| hessian[j * n + j] += n_events * shares[j]);
            let (hessian, _) = inverse(&hessian, n);
            let slope: Vec<f64> = (0..n).map(|j| counts[j] - n_events * shares[j] - pulls[j]).collect();
            let step: Vec<f64> =
                (0..n).map(|i| (0..n).map(|j| hessian[i * n + j] * slope[j]).sum()).collect();
            let moved =
                |length: f64| -> Vec<f64> { (0..n).map(|j| self.lambda[j] + length * step[j]).collect() };
            let before = value(self, &self.lambda);
            let lengths = (0..40).map(|halvings| 0.5_f64.powi(halvings));
            let Some(length) = lengths.into_iter().find(|&length| value(self, &moved(length)) > before)
            else {
                return;
            };
            self.lambda = moved(length);
        }
    }

    /// By bisection.
    fn fit_nu(&mut self, n_events: f64) {
        let n = self.nu.len();
        for j in 0..n {
            let precision = self.precision[j * n + j];
            let weight = n_events * exp(self.lambda[j]) / self.zeta;
            let (mut low, mut high) = (0.0, 1.0 / precision);
            for _ in 0..100 {
                let nu = 0.5 * (low + high);
                let is_above = nu * (precision + weight * exp(0.5 * nu)) > 1.0;
                (low, high) = if is_above { (low, nu) } else { (nu, high) };
            }
            self.nu[j] = high;
        }
    }

    fn divergence(&self) -> f64 {
        let (n, pulls) = (self.nu.len(), self.pull(&self.lambda));
        let of = |j: usize| {
            let distance = pulls[j] * (self.lambda[j] - self.mean[j]);
            distance + self.precision[j * n + j] * self.nu[j] - ln(self.nu[j]) - 1.0
        };
        0.5 * (ln(self.determinant) + (0..n).map(of).sum::<f64>())
    }
}

/// The bound of a sentence that uses all of the priors' multinomials; `parse` as for
/// [`grammaton::models::logistic_normal::SentenceFitter::fit`].
pub fn bound(priors: &[&Prior], until: StopRule, mut parse: impl FnMut(&[f64], &mut [f64]) -> f64) -> f64 {
    let mut posteriors: Vec<Posterior> = priors.iter().map(|prior| Posterior::new(prior)).collect();
    let mut weights: Vec<f64> = priors.iter().flat_map(|prior| prior.mean()).copied().collect();
    let mut counts = vec![0.0; weights.len()];
    let mut bound = parse(&weights, &mut counts);
    for round in 1..=until.max_rounds {
        let (mut start, mut divergence) = (0, 0.0);
        for posterior in &mut posteriors {
            let own = start..start + posterior.nu.len();
            start = own.end;
            let counts = &counts[own.clone()];
            posterior.fit_lambda(counts);
            posterior.fit_zeta();
            posterior.fit_nu(counts.iter().sum());
            posterior.fit_zeta();
            let ln_zeta = ln(posterior.zeta);
            let found = weights[own].iter_mut().zip(&posterior.lambda);
            found.for_each(|(weight, lambda)| *weight = lambda - ln_zeta);
            divergence += posterior.divergence();
        }
        let before = std::mem::replace(&mut bound, parse(&weights, &mut counts) - divergence);
        if round > 1 && (bound - before).abs() <= until.tolerance * bound.abs() {
            break;
        }
    }
    bound
}
