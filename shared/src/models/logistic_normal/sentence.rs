//! The E-step of one sentence: q(η) of its multinomials and q(trees) in turn, until the sentence's bound stands still.
//!
//! In: the priors, which multinomials can have events in the sentence, and a function that parses it. Out: the bound, and a
//! [`Posterior`] of each of those multinomials.
//!
//! A round lets every posterior climb once, given the expected counts of the last parse, then parses with the weights that they
//! give, as Appendix A does. (Counts and posteriors depend on one another: to take posteriors to their optimum between two parses
//! would save few rounds.) With q(trees) at its best for weights φ, Σ f·ln φ + H(q(trees)) = log Z(φ) (Cohen, Gimpel & Smith 2008,
//! Lemma 1), so the bound (Eq. 8) is
//!
//! ```text
//! log Z(φ) − Σ_k KL(N(λ_k, diag ν_k) ‖ N(μ_k, Σ_k))
//! ```
//!
//! and neither step lowers it. The first parse has the weights e^μ (§5: the initialiser serves “inside the E-step” too).

use serde::{Deserialize, Serialize};

use super::posterior::Scratch;
use super::{Posterior, Prior};

/// When the rounds of a sentence end.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
pub struct Until {
    /// Change of the bound, as a share of it, below which they do.
    pub tolerance: f64,
    /// Most rounds, at least 1.
    pub max_rounds: u32,
}

impl Default for Until {
    /// As JDageem: 10⁻⁵ of the bound, 300 rounds.
    fn default() -> Until {
        Until { tolerance: 1e-5, max_rounds: 300 }
    }
}

/// What became of a sentence.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Fit {
    /// The lower bound of the sentence's log-probability, without the multinomials that were left out
    /// ([`Prior::divergence_unused`]). −∞ or NaN if a parse came to that; posteriors mean nothing then.
    pub bound: f64,
    /// Rounds it took.
    pub n_rounds: u32,
}

/// Fits sentences, one after the other, in the same memory.
#[derive(Clone, Debug, Default)]
pub struct SentenceFitter {
    /// Of the multinomials of the last sentence; more behind them, to be used again.
    posteriors: Vec<Posterior>,
    multinomials: Vec<u32>,
    /// Log weights of the outcomes of those multinomials, one multinomial after the other, and their expected counts.
    weights: Vec<f64>,
    counts: Vec<f64>,
    scratch: Scratch,
}

impl SentenceFitter {
    /// Fits a sentence that can use the given `multinomials` (positions in `priors`, each once) and no others.
    ///
    /// `parse(weights, counts)` returns log Z under the log weights, and overwrites `counts` with expected uses; both are of the outcomes of
    /// `multinomials`, one multinomial after the other.
    pub fn fit(
        &mut self,
        priors: &[Prior],
        multinomials: &[u32],
        until: Until,
        mut parse: impl FnMut(&[f64], &mut [f64]) -> f64,
    ) -> Fit {
        self.begin(priors, multinomials);
        let mut fit = Fit { bound: parse(&self.weights, &mut self.counts), n_rounds: 0 };
        if !fit.bound.is_finite() {
            return fit;
        }
        while fit.n_rounds < until.max_rounds {
            let divergence = self.climb(priors);
            let bound = parse(&self.weights, &mut self.counts) - divergence;
            fit.n_rounds += 1;
            // what the first parse came to is no bound
            let settled = fit.n_rounds > 1 && (bound - fit.bound).abs() <= until.tolerance * bound.abs();
            fit.bound = bound;
            if settled || !bound.is_finite() {
                break;
            }
        }
        fit
    }

    /// The multinomials of the last sentence and what was fitted to each.
    pub fn posteriors(&self) -> impl Iterator<Item = (u32, &Posterior)> {
        self.multinomials.iter().copied().zip(&self.posteriors)
    }

    /// Posteriors without events, and the first weights, e^μ.
    fn begin(&mut self, priors: &[Prior], multinomials: &[u32]) {
        self.multinomials.clear();
        self.multinomials.extend_from_slice(multinomials);
        self.weights.clear();
        if self.posteriors.len() < multinomials.len() {
            self.posteriors.resize_with(multinomials.len(), Posterior::default);
        }
        for (&multinomial, posterior) in multinomials.iter().zip(&mut self.posteriors) {
            let prior = &priors[multinomial as usize];
            posterior.reset(prior);
            self.weights.extend_from_slice(prior.mean());
        }
        self.counts.clear();
        self.counts.resize(self.weights.len(), 0.0);
    }

    /// Moves every posterior towards the counts and writes its weights; returns the sum of divergences.
    fn climb(&mut self, priors: &[Prior]) -> f64 {
        let (mut start, mut divergence) = (0, 0.0);
        for (&multinomial, posterior) in self.multinomials.iter().zip(&mut self.posteriors) {
            let prior = &priors[multinomial as usize];
            let outcomes = start..start + prior.n_outcomes();
            start = outcomes.end;
            posterior.climb(prior, &self.counts[outcomes.clone()], &mut self.scratch);
            posterior.ln_weights(&mut self.weights[outcomes]);
            divergence += posterior.divergence(prior);
        }
        divergence
    }
}
