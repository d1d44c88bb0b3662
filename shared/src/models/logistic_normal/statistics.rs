//! Statistics of a shard for μ and Σ: sums over the tree of shards ([`crate::num::tree_sum`]), and the M-step.
//!
//! Sums are of λ − μ, not of λ. So a sentence without events of a multinomial, in which λ = μ, adds nothing but ν, which is the same in
//! all of them; and Σ is not the small difference of two large numbers when η lies far from 0. With M sentences, of which M_k
//! could use multinomial k, δ = λ − μ and ν⁰_j = 1 / (Σ⁻¹)_jj, the M-step (Cohen, Gimpel & Smith 2008, Appendix A) becomes
//!
//! ```text
//! μ ← μ + δ̄           with δ̄ = Σ δ / M
//! Σ ← (Σ δ δᵀ + diag(Σ ν + (M − M_k) ν⁰)) / M − δ̄ δ̄ᵀ
//! ```

use serde::{Deserialize, Serialize};

use crate::num::tree_sum::Sum;
use crate::stop::Meter;

use super::prior::{Prior, PriorError};
use super::sentence::{Fit, SentenceFitter};

/// Sums over the sentences that can use a multinomial.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct Moments {
    /// M_k, how many they are.
    pub n_sentences: u64,
    /// Σ δ. `[n]`, or empty if there is no such sentence
    pub first: Vec<f64>,
    /// Σ δ δᵀ, the rows of the lower triangle. `[n (n + 1) / 2]` or empty
    pub second: Vec<f64>,
    /// Σ ν. `[n]` or empty
    pub variance: Vec<f64>,
}

/// Result of a mixture's component ([`crate::train::mixture`]).
#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct ComponentSums {
    /// Sum of [`Fit::bound`]; of the base where the component is empty.
    pub bound: f64,
    /// Sentences in which it is empty: it allows none of their trees.
    pub n_empty: u64,
}

/// Statistics of a shard, or of all shards together.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct Statistics {
    /// M, all sentences.
    pub n_sentences: u64,
    /// Sum of [`Fit::bound`]; of a mixture, that of its components by their weights.
    pub bound: f64,
    /// Rounds of the sentences.
    pub n_rounds: u64,
    /// Moments of each multinomial.
    pub moments: Vec<Moments>,
    /// Sums of each component of a mixture, the base first; empty without a mixture.
    pub parts: Vec<ComponentSums>,
}

impl Sum for Statistics {
    fn add(&mut self, other: Statistics) {
        self.merge(&other);
    }
}

impl Moments {
    /// Adds what is so many sentences' λ and ν.
    fn add(&mut self, prior: &Prior, lambda: &[f64], nu: &[f64], times: f64) {
        let n = prior.n_outcomes();
        self.first.resize(n, 0.0);
        self.second.resize(n * (n + 1) / 2, 0.0);
        self.variance.resize(n, 0.0);
        let (mut row, mut meter) = (0, Meter::default());
        for i in 0..n {
            let delta = times * (lambda[i] - prior.mean()[i]);
            self.first[i] += delta;
            self.variance[i] += times * nu[i];
            let others = lambda.iter().zip(prior.mean());
            let sums = &mut self.second[row..=row + i];
            meter.add(1 + i);
            sums.iter_mut().zip(others).for_each(|(sum, (lambda, mean))| *sum += delta * (lambda - mean));
            row += i + 1;
        }
    }

    fn merge(&mut self, other: &Moments) {
        self.n_sentences += other.n_sentences;
        for (sums, others) in [
            (&mut self.first, &other.first),
            (&mut self.second, &other.second),
            (&mut self.variance, &other.variance),
        ] {
            if sums.is_empty() {
                sums.clone_from(others);
            } else {
                sums.iter_mut().zip(others).for_each(|(sum, other)| *sum += other);
            }
        }
    }

    /// The prior that fits best: the M-step for one multinomial over `n_sentences`, all that there are.
    pub fn maximise(&self, prior: &Prior, n_sentences: u64) -> Result<Prior, PriorError> {
        let n = prior.n_outcomes();
        let share = 1.0 / n_sentences as f64;
        let n_unused = (n_sentences - self.n_sentences) as f64;
        let mut covariance = vec![0.0; n * n];
        for j in 0..n {
            covariance[j * n + j] = share * (n_unused / prior.precision()[j]);
        }
        if self.n_sentences == 0 {
            return Prior::new(prior.mean().to_vec(), covariance);
        }
        let moved: Vec<f64> = self.first.iter().map(|sum| share * sum).collect();
        let mut second = self.second.iter();
        for i in 0..n {
            let row = &mut covariance[i * n..=i * n + i];
            row[i] += share * self.variance[i];
            for ((entry, sum), other) in row.iter_mut().zip(&mut second).zip(&moved) {
                *entry += share * sum - moved[i] * other;
            }
        }
        let mean = prior.mean().iter().zip(&moved).map(|(mean, moved)| mean + moved).collect();
        Prior::new(mean, covariance)
    }
}

/// Why [`Statistics`] are not of some priors.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum StatisticsError {
    /// The number of multinomials differs from that of the priors.
    #[error("{found} multinomials, expected {expected}")]
    Number {
        /// Number of multinomials.
        found: usize,
        /// Number of priors.
        expected: usize,
    },
    /// Sums have other lengths than the outcomes ask for, or are of more sentences than there are.
    #[error("sums of multinomial {at} are of other outcomes or of too many sentences")]
    Sums {
        /// The multinomial.
        at: usize,
    },
    /// A component is empty in more sentences than there are.
    #[error("a component is empty in too many sentences")]
    Component,
}

impl Statistics {
    /// Statistics without sentences.
    pub fn new(n_multinomials: usize) -> Statistics {
        Statistics { moments: vec![Moments::default(); n_multinomials], ..Statistics::default() }
    }

    /// Adds `times` equal sentences, of which one was fitted, to a finite bound.
    pub fn add(&mut self, priors: &[Prior], sentence: &SentenceFitter, fit: Fit, times: u32) {
        self.count(sentence, times);
        self.mix(priors, sentence, fit, times, 1.0);
    }

    /// Counts `times` equal sentences, which can use the multinomials of the one that was fitted.
    pub fn count(&mut self, sentence: &SentenceFitter, times: u32) {
        self.n_sentences += u64::from(times);
        for (multinomial, _) in sentence.posteriors() {
            self.moments[multinomial as usize].n_sentences += u64::from(times);
        }
    }

    /// Adds a `share` of what was fitted to `times` sentences that are counted; shares of all that is fitted to them sum to 1.
    pub fn mix(&mut self, priors: &[Prior], sentence: &SentenceFitter, fit: Fit, times: u32, share: f64) {
        self.n_rounds += u64::from(times) * u64::from(fit.n_rounds);
        let times = share * f64::from(times);
        self.bound += times * fit.bound;
        for (multinomial, posterior) in sentence.posteriors() {
            let at = multinomial as usize;
            self.moments[at].add(&priors[at], posterior.lambda, posterior.nu, times);
        }
    }

    /// Adds what another shard answers.
    pub fn merge(&mut self, other: &Statistics) {
        self.n_sentences += other.n_sentences;
        self.n_rounds += other.n_rounds;
        self.bound += other.bound;
        self.moments.iter_mut().zip(&other.moments).for_each(|(sums, others)| sums.merge(others));
        self.parts.resize(other.parts.len(), ComponentSums::default());
        for (sums, others) in self.parts.iter_mut().zip(&other.parts) {
            sums.bound += others.bound;
            sums.n_empty += others.n_empty;
        }
    }

    /// Checks that they are of these priors.
    pub fn check(&self, priors: &[Prior]) -> Result<(), StatisticsError> {
        if self.moments.len() != priors.len() {
            let (found, expected) = (self.moments.len(), priors.len());
            return Err(StatisticsError::Number { found, expected });
        }
        for (at, (moments, prior)) in self.moments.iter().zip(priors).enumerate() {
            let n = if moments.n_sentences == 0 { 0 } else { prior.n_outcomes() };
            let lengths = [moments.first.len(), moments.second.len(), moments.variance.len()];
            if lengths != [n, n * (n + 1) / 2, n] || moments.n_sentences > self.n_sentences {
                return Err(StatisticsError::Sums { at });
            }
        }
        if self.parts.iter().any(|part| part.n_empty > self.n_sentences) {
            return Err(StatisticsError::Component);
        }
        Ok(())
    }

    /// The variational bound of all sentences (Eq. 8), with the multinomials that sentences left out. Never falls from one M-step to the
    /// next, but for what [`super::StopRule`] leaves undone.
    pub fn total_bound(&self, priors: &[Prior]) -> f64 {
        self.bound - self.divergence_unused(priors)
    }

    /// The bound of every component of a mixture. `[n_parts]`
    pub fn part_bounds(&self, priors: &[Prior]) -> Vec<f64> {
        let unused = self.divergence_unused(priors);
        self.parts.iter().map(|part| part.bound - unused).collect()
    }

    fn divergence_unused(&self, priors: &[Prior]) -> f64 {
        let unused = self.moments.iter().zip(priors).map(|(moments, prior)| {
            (self.n_sentences - moments.n_sentences) as f64 * prior.divergence_unused()
        });
        unused.sum::<f64>()
    }

    /// The M-step: the priors under which the bound of these sentences is highest.
    ///
    /// A multinomial that no sentence uses keeps its mean; its Σ becomes diagonal.
    pub fn maximise(&self, priors: &[Prior]) -> Result<Vec<Prior>, PriorError> {
        self.moments
            .iter()
            .zip(priors)
            .map(|(moments, prior)| moments.maximise(prior, self.n_sentences))
            .collect()
    }
}
