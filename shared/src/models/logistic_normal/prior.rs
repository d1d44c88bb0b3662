//! The prior of one multinomial, N(μ, Σ), and the weights it gives without a sentence.

use serde::{Deserialize, Serialize};

use crate::limits::{MAX_OUTCOMES, is_count};
use crate::num::special::{exp, ln};

use crate::num::cholesky::Cholesky;

/// Least share of the mean variance that a pivot of Σ may have, and the first jitter.
const LEAST_JITTER: f64 = 1e-10;

/// η ~ N(μ, Σ) of one multinomial.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(into = "Plain", try_from = "Plain")]
pub struct Prior {
    mean: Vec<f64>,
    /// Rows; symmetric and positive definite. `[n, n]`
    covariance: Vec<f64>,
    /// (Σ⁻¹)_jj. `[n]`
    precision: Vec<f64>,
    ln_determinant: f64,
}

/// Why numbers are not a prior.
#[derive(Clone, PartialEq, Debug, thiserror::Error)]
pub enum PriorError {
    /// More outcomes than a multinomial with a prior may have.
    #[error("{found} outcomes, expected at most {MAX_OUTCOMES}")]
    Outcomes {
        /// Number of outcomes.
        found: usize,
    },
    /// The prior has another shape.
    #[error("a covariance of {found} numbers, expected {n} · {n} for a multinomial of {n} outcomes")]
    Shape {
        /// Number of outcomes.
        n: usize,
        /// Numbers given.
        found: usize,
    },
    /// A mean that is not finite, or whose square is not.
    #[error(
        "outcome {outcome} has mean {found}, expected a number between -1e100 and 1e100; smooth the grammar to start from"
    )]
    Mean {
        /// Number of the outcome.
        outcome: usize,
        /// The mean.
        found: f64,
    },
    /// A covariance that is read, and that no prior was written with.
    #[error("the covariance is not symmetric, or lacks jitter; no prior was written so")]
    Foreign,
    /// A covariance that no jitter makes one.
    #[error("the covariance is not positive definite, even with its mean variance added to the diagonal")]
    Covariance,
}

/// Point estimates of a multinomial, for parsing.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum PointEstimate {
    /// softmax(μ): the “exponentiated mean” of Cohen, Gimpel & Smith (2008), §5, as probabilities.
    #[default]
    Softmax,
    /// e^μ as it is, which need not sum to one: what JDageem writes and parses with. Training moves μ by constants that mean
    /// nothing within a multinomial, and here they change which trees win.
    Raw,
}

impl Prior {
    /// N(`mean`, `covariance`), shapes `[n]` and `[n, n]`; of the covariance the lower triangle is read.
    ///
    /// If a pivot of its Cholesky factor is not above 10⁻¹⁰ of the mean variance, jitter is added to the diagonal: that share of the
    /// mean variance, multiplied by ten until it is enough.
    pub fn new(mean: Vec<f64>, mut covariance: Vec<f64>) -> Result<Prior, PriorError> {
        let n = mean.len();
        if covariance.len() != n * n {
            return Err(PriorError::Shape { n, found: covariance.len() });
        }
        if let Some(outcome) = mean.iter().position(|mean| !is_count(mean.abs())) {
            return Err(PriorError::Mean { outcome, found: mean[outcome] });
        }
        (0..n).for_each(|i| (0..i).for_each(|j| covariance[j * n + i] = covariance[i * n + j]));
        let variances: Vec<f64> = (0..n).map(|i| covariance[i * n + i]).collect();
        let scale = variances.iter().sum::<f64>() / n as f64;
        let floor = LEAST_JITTER * scale;
        let mut jitter = 0.0;
        let factor = loop {
            if let Some(factor) = Cholesky::new(&covariance, n, floor) {
                break factor;
            }
            jitter = if jitter == 0.0 { LEAST_JITTER } else { 10.0 * jitter };
            if jitter > 1.0 {
                return Err(PriorError::Covariance);
            }
            (0..n).for_each(|i| covariance[i * n + i] = variances[i] + jitter * scale);
        };
        let ln_determinant = 2.0 * factor.diagonal().map(ln).sum::<f64>();
        Ok(Prior { mean, covariance, precision: factor.inverse_diagonal(), ln_determinant })
    }

    /// N(`mean`, I).
    pub fn independent(mean: Vec<f64>) -> Result<Prior, PriorError> {
        let alone = vec![None; mean.len()];
        Prior::related(mean, &alone)
    }

    /// N(`mean`, Σ) with variances 1, covariance ½ between outcomes of the same family and 0 otherwise (Cohen, Gimpel & Smith
    /// 2008, §5). `families` holds the family of each outcome, `None` for one that is alone. `[n]`
    pub fn related(mean: Vec<f64>, families: &[Option<usize>]) -> Result<Prior, PriorError> {
        let covariance = |i: usize, j: usize| match (families[i], families[j]) {
            _ if i == j => 1.0,
            (Some(a), Some(b)) if a == b => 0.5,
            _ => 0.0,
        };
        let all = 0..families.len();
        let rows = all.clone().flat_map(|i| all.clone().map(move |j| covariance(i, j))).collect();
        Prior::new(mean, rows)
    }

    /// Number of outcomes.
    pub fn n_outcomes(&self) -> usize {
        self.mean.len()
    }

    /// μ. `[n]`
    pub fn mean(&self) -> &[f64] {
        &self.mean
    }

    /// Σ with its jitter. `[n, n]`
    pub fn covariance(&self) -> &[f64] {
        &self.covariance
    }

    /// The diagonal of Σ⁻¹. `[n]`
    pub fn precision(&self) -> &[f64] {
        &self.precision
    }

    /// ln |Σ|.
    pub fn ln_determinant(&self) -> f64 {
        self.ln_determinant
    }

    /// KL(q ‖ N(μ, Σ)) in sentences in which the multinomial has no events, where λ = μ and ν_j = 1 / (Σ⁻¹)_jj:
    /// ½ (ln |Σ| + Σ_j ln (Σ⁻¹)_jj). Not 0 unless Σ is diagonal, since q is.
    pub fn divergence_unused(&self) -> f64 {
        0.5 * (self.ln_determinant + self.precision.iter().copied().map(ln).sum::<f64>())
    }

    /// Log weights of the outcomes without a sentence. `[n]`
    pub fn ln_weights(&self, estimate: PointEstimate) -> Vec<f64> {
        let ln_sum = match estimate {
            PointEstimate::Softmax => {
                let largest = self.mean.iter().copied().fold(f64::NEG_INFINITY, f64::max);
                largest + ln(self.mean.iter().map(|mean| exp(mean - largest)).sum())
            }
            PointEstimate::Raw => 0.0,
        };
        self.mean.iter().map(|mean| mean - ln_sum).collect()
    }
}

/// The stored part of a [`Prior`]; the rest follows from it, to the bit, since Σ includes the jitter.
#[derive(Clone, Serialize, Deserialize)]
struct Plain {
    mean: Vec<f64>,
    covariance: Vec<f64>,
}

impl From<Prior> for Plain {
    fn from(prior: Prior) -> Plain {
        Plain { mean: prior.mean, covariance: prior.covariance }
    }
}

impl TryFrom<Plain> for Prior {
    type Error = PriorError;

    fn try_from(plain: Plain) -> Result<Prior, PriorError> {
        if plain.mean.len() > MAX_OUTCOMES {
            return Err(PriorError::Outcomes { found: plain.mean.len() });
        }
        let prior = Prior::new(plain.mean, plain.covariance.clone())?;
        let bits = |numbers: &[f64]| numbers.iter().map(|number| number.to_bits()).collect::<Vec<_>>();
        if bits(&prior.covariance) == bits(&plain.covariance) { Ok(prior) } else { Err(PriorError::Foreign) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn families_share_half_their_variance() {
        let families = [Some(0), None, Some(0), Some(1), None];
        let prior = Prior::related(vec![0.0; 5], &families).unwrap();
        let mut expected = [0.0; 25];
        (0..5).for_each(|i| expected[i * 5 + i] = 1.0);
        (expected[2], expected[10]) = (0.5, 0.5);
        assert_eq!(prior.covariance(), expected);
        // 1 / (1 − ¼) for the two, whose block has determinant ¾
        let third = 4.0 / 3.0;
        for (found, expected) in prior.precision().iter().zip([third, 1.0, third, 1.0, 1.0]) {
            assert!((found - expected).abs() < 1e-15, "{found}, expected {expected}");
        }
        assert!((prior.ln_determinant() - ln(0.75)).abs() < 1e-15);
        assert!((prior.divergence_unused() - 0.5 * (ln(0.75) + 2.0 * ln(third))).abs() < 1e-15);
        assert_eq!(Prior::independent(vec![0.3; 4]).unwrap().divergence_unused(), 0.0);
    }

    #[test]
    fn jitter_is_the_least_that_is_enough() {
        let singular = Prior::new(vec![0.0; 2], vec![2.0, 2.0, 2.0, 2.0]).unwrap();
        let variance = 2.0 + 1e-10 * 2.0;
        assert_eq!(singular.covariance(), [variance, 2.0, 2.0, variance]);
        let sound = vec![2.0, 0.3, 0.3, 1.0];
        assert_eq!(Prior::new(vec![0.0; 2], sound.clone()).unwrap().covariance(), sound);
        // the eigenvalue −0.1 needs at least 0.1
        let indefinite = Prior::new(vec![0.0; 2], vec![1.0, 1.1, 1.1, 1.0]).unwrap();
        assert_eq!(indefinite.covariance(), [2.0, 1.1, 1.1, 2.0]);
    }

    #[test]
    fn covariances_that_are_no_priors_are_refused() {
        let error = |mean: &[f64], covariance: &[f64]| {
            Prior::new(mean.to_vec(), covariance.to_vec()).unwrap_err().to_string()
        };
        assert_eq!(
            error(&[0.0, f64::NEG_INFINITY], &[1.0, 0.0, 0.0, 1.0]),
            "outcome 1 has mean -inf, expected a number between -1e100 and 1e100; smooth the grammar to start from"
        );
        assert_eq!(
            error(&[0.0, 0.0], &[1.0, 0.0, 1.0]),
            "a covariance of 3 numbers, expected 2 · 2 for a multinomial of 2 outcomes"
        );
        let not_positive =
            "the covariance is not positive definite, even with its mean variance added to the diagonal";
        assert_eq!(error(&[0.0], &[-1.0]), not_positive);
        assert_eq!(error(&[0.0], &[f64::NAN]), not_positive);
        assert_eq!(error(&[0.0], &[f64::INFINITY]), not_positive);
    }

    #[test]
    fn written_records_are_read_and_nothing_else() {
        let read = |mean: Vec<f64>, covariance: Vec<f64>| Prior::try_from(Plain { mean, covariance });
        for covariance in [vec![2.0, 0.3, 0.3, 1.0], vec![2.0; 4], vec![1.0, 1.1, 1.1, 1.0]] {
            let prior = Prior::new(vec![0.5, -1.0], covariance).unwrap();
            assert_eq!(Prior::try_from(Plain::from(prior.clone())), Ok(prior));
        }
        assert_eq!(read(vec![0.0; 2], vec![2.0; 4]), Err(PriorError::Foreign));
        assert_eq!(read(vec![0.0; 2], vec![1.0, 0.5, 0.25, 1.0]), Err(PriorError::Foreign));
    }

    #[test]
    fn point_estimates_differ_by_a_constant() {
        let prior = Prior::independent(vec![1.0, 1.0 + ln(2.0), 1.0 + ln(5.0)]).unwrap();
        let softmax: Vec<f64> = prior.ln_weights(PointEstimate::Softmax).iter().copied().map(exp).collect();
        for (found, expected) in softmax.iter().zip([0.125, 0.25, 0.625]) {
            assert!((found - expected).abs() < 1e-15, "{found}, expected {expected}");
        }
        assert_eq!(prior.ln_weights(PointEstimate::Raw), prior.mean());
    }
}
