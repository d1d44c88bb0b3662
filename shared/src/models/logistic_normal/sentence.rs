//! The E-step of one sentence: q(η) of its multinomials and q(trees) in turn, until the sentence's bound stands still.
//!
//! In: the priors, which multinomials can have events in the sentence, and a function that parses it. Out: the bound, and a
//! [`Posterior`] of each of those multinomials.
//!
//! A round lets every posterior climb once, given the expected counts of the last parse, then parses with the weights that they
//! give, as Appendix A does. Counts and posteriors depend on one another: to take posteriors to their optimum between two parses
//! would save few rounds, so they come near it only as the rounds end. With q(trees) at its best for weights φ, Σ f·ln φ + H(q(trees)) = log Z(φ) (Cohen, Gimpel & Smith 2008,
//! Lemma 1), so the bound (Eq. 8) is
//!
//! ```text
//! log Z(φ) − Σ_k KL(N(λ_k, diag ν_k) ‖ N(μ_k, Σ_k))
//! ```
//!
//! and neither step lowers it. The first parse has the weights e^μ (§5: the initialiser serves “inside the E-step” too).

use serde::{Deserialize, Serialize};

use crate::stop;

use super::Prior;
use super::pairs::Pairs;
use super::posterior::{Posteriors, SideBySide};

/// End of the rounds of a sentence.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
pub struct StopRule {
    /// Change of the bound, as a share of it, below which they do.
    pub tolerance: f64,
    /// Most rounds, at least 1.
    pub max_rounds: u32,
}

impl Default for StopRule {
    /// The values of JDageem: 10⁻⁵ of the bound, 300 rounds.
    fn default() -> StopRule {
        StopRule { tolerance: 1e-5, max_rounds: 300 }
    }
}

/// Result of fitting a sentence.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Fit {
    /// The lower bound of the sentence's log-probability, without the multinomials that were left out
    /// ([`Prior::divergence_unused`]). −∞ or NaN if a parse came to that; posteriors mean nothing then.
    pub bound: f64,
    /// Rounds it took.
    pub n_rounds: u32,
}

/// A step of a posterior is followed by another one before the next parse if it gains the tolerance times this, in nats an event. An event
/// amounts to about a nat of the bound, and a sentence to dozens.
const LEAST_GAIN: f64 = 100.0;
/// Multinomials that climb side by side: as many numbers as a vector has in most machines.
const LANES: usize = 4;
/// The same of those of two outcomes, which need little memory.
const PAIR_LANES: usize = 8;
/// Outcomes beyond which a multinomial fills vectors by itself, and would not fit the caches beside others.
const MOST_OUTCOMES_BESIDE: usize = 64;

/// Fits sentences, one after the other, in the same memory.
#[derive(Clone, Debug, Default)]
pub struct SentenceFitter {
    /// Multinomials of the last sentence, in the order of the vectors below.
    multinomials: Vec<u32>,
    /// Start of each multinomial's outcomes among all outcomes.
    starts: Vec<usize>,
    pairs: Groups<PAIR_LANES, Pairs<PAIR_LANES>>,
    small: Groups<LANES, Posteriors<LANES>>,
    large: Groups<1, Posteriors<1>>,
    /// Log weights of the outcomes of those multinomials, one multinomial after the other, and their expected counts.
    weights: Vec<f64>,
    counts: Vec<f64>,
    /// λ and ν of the outcomes.
    lambda: Vec<f64>,
    nu: Vec<f64>,
}

/// The fitted q(η) = N(λ, diag ν) of a multinomial.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Posterior<'a> {
    /// λ, the means of η. `[n]`
    pub lambda: &'a [f64],
    /// ν, the variances of η. `[n]`
    pub nu: &'a [f64],
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
        until: StopRule,
        mut parse: impl FnMut(&[f64], &mut [f64]) -> f64,
    ) -> Fit {
        self.begin(priors, multinomials);
        let mut fit = Fit { bound: parse(&self.weights, &mut self.counts), n_rounds: 0 };
        while fit.bound.is_finite() && fit.n_rounds < until.max_rounds {
            let divergence = self.climb(LEAST_GAIN * until.tolerance);
            let bound = parse(&self.weights, &mut self.counts) - divergence;
            fit.n_rounds += 1;
            // what the first parse came to is no bound
            let settled = fit.n_rounds > 1 && (bound - fit.bound).abs() <= until.tolerance * bound.abs();
            fit.bound = bound;
            if settled {
                break;
            }
        }
        self.pairs.write(&mut self.lambda, &mut self.nu);
        self.small.write(&mut self.lambda, &mut self.nu);
        self.large.write(&mut self.lambda, &mut self.nu);
        fit
    }

    /// The multinomials of the last sentence and what was fitted to each.
    pub fn posteriors(&self) -> impl Iterator<Item = (u32, Posterior<'_>)> {
        let ends = self.starts.iter().copied().skip(1).chain([self.lambda.len()]);
        let ranges = self.starts.iter().zip(ends).map(|(&start, end)| start..end);
        let of = |range: std::ops::Range<usize>| Posterior {
            lambda: &self.lambda[range.clone()],
            nu: &self.nu[range],
        };
        self.multinomials.iter().copied().zip(ranges.map(of))
    }

    /// Posteriors without events, and the first weights, e^μ.
    fn begin(&mut self, priors: &[Prior], multinomials: &[u32]) {
        self.multinomials.clear();
        self.multinomials.extend_from_slice(multinomials);
        self.starts.clear();
        self.weights.clear();
        for &multinomial in multinomials {
            self.starts.push(self.weights.len());
            self.weights.extend_from_slice(priors[multinomial as usize].mean());
        }
        for numbers in [&mut self.counts, &mut self.lambda, &mut self.nu] {
            numbers.clear();
            numbers.resize(self.weights.len(), 0.0);
        }
        let mut all: Vec<(&Prior, usize)> =
            multinomials.iter().map(|&at| &priors[at as usize]).zip(self.starts.iter().copied()).collect();
        // pairs first; stable: those of as many outcomes keep their order
        all.sort_by_key(|(prior, _)| (prior.n_outcomes() != 2, prior.n_outcomes()));
        let (pairs, others) = all.split_at(all.partition_point(|(prior, _)| prior.n_outcomes() == 2));
        let is_small = |(prior, _): &(&Prior, usize)| prior.n_outcomes() <= MOST_OUTCOMES_BESIDE;
        let (small, large) = others.split_at(others.partition_point(is_small));
        self.pairs.begin(pairs);
        self.small.begin(small);
        self.large.begin(large);
    }

    /// Moves every posterior towards the counts and writes its weights; returns the sum of divergences.
    fn climb(&mut self, least_gain: f64) -> f64 {
        let (counts, weights) = (&self.counts, &mut self.weights);
        self.pairs.climb(counts, least_gain, weights)
            + self.small.climb(counts, least_gain, weights)
            + self.large.climb(counts, least_gain, weights)
    }
}

/// The posteriors of a sentence, `L` side by side.
#[derive(Clone, Debug, Default)]
struct Groups<const L: usize, P: SideBySide<L>> {
    /// Groups of the sentence, and others behind them for reuse.
    groups: Vec<Group<P>>,
    n_groups: usize,
    counts: Vec<[f64; L]>,
    scratch: P::Scratch,
}

/// Multinomials of as many outcomes, at most `L`.
#[derive(Clone, Debug, Default)]
struct Group<P> {
    posteriors: P,
    /// Start of each multinomial's outcomes among those of the sentence.
    starts: Vec<usize>,
}

impl<const L: usize, P: SideBySide<L>> Groups<L, P> {
    /// Posteriors without events, of multinomials by number of outcomes, each with the place of its outcomes.
    fn begin(&mut self, all: &[(&Prior, usize)]) {
        self.n_groups = 0;
        for alike in all.chunk_by(|(a, _), (b, _)| a.n_outcomes() == b.n_outcomes()) {
            for members in alike.chunks(L) {
                if self.groups.len() == self.n_groups {
                    self.groups.push(Group::default());
                }
                let group = &mut self.groups[self.n_groups];
                self.n_groups += 1;
                group.starts.clear();
                group.starts.extend(members.iter().map(|&(_, start)| start));
                group
                    .posteriors
                    .reset(&std::array::from_fn(|lane| members.get(lane).unwrap_or(&members[0]).0));
            }
        }
    }

    /// Moves all of them towards the counts and writes their weights; returns the sum of divergences.
    fn climb(&mut self, counts: &[f64], least_gain: f64, weights: &mut [f64]) -> f64 {
        let mut divergence = 0.0;
        for Group { posteriors, starts } in &mut self.groups[..self.n_groups] {
            stop::check();
            let places: [usize; L] = std::array::from_fn(|lane| *starts.get(lane).unwrap_or(&starts[0]));
            let of_outcome = |j: usize| places.map(|start| counts[start + j]);
            self.counts.clear();
            self.counts.extend((0..posteriors.lambda().len()).map(of_outcome));
            posteriors.climb(&self.counts, least_gain, &mut self.scratch);
            let (ln_zeta, of_lane) = (posteriors.ln_zeta(), posteriors.divergence());
            for (lane, &start) in starts.iter().enumerate() {
                let weights = weights[start..].iter_mut().zip(posteriors.lambda());
                weights.for_each(|(weight, lambda)| *weight = lambda[lane] - ln_zeta[lane]);
                divergence += of_lane[lane];
            }
        }
        divergence
    }

    /// Writes λ and ν to the places of the outcomes.
    fn write(&self, lambda: &mut [f64], nu: &mut [f64]) {
        for Group { posteriors, starts } in &self.groups[..self.n_groups] {
            for (lane, &start) in starts.iter().enumerate() {
                let found = lambda[start..].iter_mut().zip(posteriors.lambda());
                found.for_each(|(to, from)| *to = from[lane]);
                nu[start..].iter_mut().zip(posteriors.nu()).for_each(|(to, from)| *to = from[lane]);
            }
        }
    }
}
