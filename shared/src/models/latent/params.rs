//! Parameters of split rules: the weights they give, their update, and the bound.
//!
//! Between rounds there is one vector, the totals: the expected uses of every entry in the round before. With the prior α, of
//! every entry alike, it is all that EM (Dirichlet–multinomial without prior), variational Bayes and collapsed variational Bayes
//! need.

use serde::{Deserialize, Serialize};

use crate::data::treebank::{RuleId, Rules};
use crate::num::special::{digamma, ln_gamma};
use crate::num::{Noise, Wide};

use super::{Expectation, Layout};

/// How parameters are estimated.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Method {
    /// Expectation maximisation: maximum likelihood, no prior.
    Em,
    /// Variational Bayes (Kurihara & Sato 2006; Wang & Blunsom 2013, §2.2).
    Vb,
    /// Collapsed variational Bayes (Wang & Blunsom 2013, §3.2).
    Cvb,
}

/// Weights of split rules.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct Weights {
    /// `[n_params]`; those of one rule carry a factor of their own.
    pub values: Vec<f64>,
    /// That factor, a power of two: the weight is `value · 2^exponent`. `[n_rules]`
    pub exponents: Vec<i64>,
}

impl Weights {
    /// Weights without factors.
    fn plain(values: Vec<f64>, layout: &Layout) -> Weights {
        Weights { values, exponents: vec![0; layout.blocks.len()] }
    }

    /// Z of a tree, from what it is with the values alone.
    pub(super) fn unscaled(&self, tree: &[RuleId], z: Wide) -> Wide {
        if z.is_zero() {
            return z;
        }
        let factors: i64 = tree.iter().map(|rule| self.exponents[rule.index()]).sum();
        Wide { exponent: z.exponent + factors, ..z }
    }
}

/// State of training between rounds.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Params {
    /// How they are estimated.
    pub method: Method,
    /// α, the prior's count of every entry; EM ignores it.
    pub alpha: f64,
    /// Expected uses, by entry. `[n_params]`
    pub totals: Vec<f64>,
}

/// Weights to begin with: the rules' relative frequencies, split evenly, times 1 ± up to `noise` (Wang & Blunsom 2013, §4.3: 0.01),
/// normalised.
pub fn start(rules: &Rules, layout: &Layout, noise: f64, seed: u64) -> Weights {
    let draws = Noise::new(seed, 0);
    let mut values = Vec::with_capacity(layout.n_params());
    for (block, frequency) in layout.blocks.iter().zip(rules.relative_frequencies()) {
        let even = frequency / block.row() as f64;
        let entries = block.start..block.start + block.n_entries();
        values.extend(entries.map(|entry| even * (1.0 + noise * draws.symmetric(entry as u64))));
    }
    Weights::plain(mean(layout, &values, 0.0), layout)
}

/// (f + α) / Σ (f + α) by group; 0 where a group has nothing.
fn mean(layout: &Layout, totals: &[f64], alpha: f64) -> Vec<f64> {
    let sums = layout.group_sums(totals);
    let mut values = vec![0.0; totals.len()];
    for (group, row) in layout.rows() {
        let sum = sums[group] + alpha * layout.group_sizes[group] as f64;
        if sum > 0.0 {
            row.for_each(|entry| values[entry] = (totals[entry] + alpha) / sum);
        }
    }
    values
}

impl Params {
    /// The weights of the next round. Of collapsed variational Bayes they are the posterior mean; its trees are read with that of
    /// the others instead ([`super::collapsed::pass`]).
    pub fn weights(&self, layout: &Layout) -> Weights {
        match self.method {
            Method::Em | Method::Cvb => Weights::plain(self.estimate(layout), layout),
            Method::Vb => self.geometric_mean(layout),
        }
    }

    /// One number for each entry, to parse with: the maximum of the likelihood for EM, else the posterior mean. `[n_params]`
    pub fn estimate(&self, layout: &Layout) -> Vec<f64> {
        mean(layout, &self.totals, if self.method == Method::Em { 0.0 } else { self.alpha })
    }

    /// exp(Ψ(α + f) − Ψ(Σ α + f)) (Wang & Blunsom 2013, Eq. 4). With few uses of an entry that is less than any `f64`, so each
    /// rule has its own factor.
    fn geometric_mean(&self, layout: &Layout) -> Weights {
        let sums = layout.group_sums(&self.totals);
        let ln_sum = |group: usize| digamma(sums[group] + self.alpha * layout.group_sizes[group] as f64);
        let ln_sums: Vec<f64> = (0..sums.len()).map(ln_sum).collect();
        let mut wide = vec![Wide::ZERO; self.totals.len()];
        for (group, row) in layout.rows() {
            row.for_each(|entry| {
                wide[entry] = Wide::from_ln(digamma(self.totals[entry] + self.alpha) - ln_sums[group]);
            });
        }
        let mut weights = Weights { values: Vec::with_capacity(wide.len()), exponents: Vec::new() };
        for block in &layout.blocks {
            let entries = &wide[block.start..block.start + block.n_entries()];
            let factor = entries.iter().map(|entry| entry.exponent).max().unwrap_or(0);
            let scaled = entries.iter().map(|entry| Wide { exponent: entry.exponent - factor, ..*entry });
            weights.values.extend(scaled.map(Wide::to_f64));
            weights.exponents.push(factor);
        }
        weights
    }

    /// Takes in what all shards expect.
    pub fn update(&mut self, expectation: Expectation) {
        self.totals = expectation.counts;
    }

    /// The objective of the round with these parameters' weights, with `ln_z` from its expectation. With EM it is the log-likelihood of the
    /// trees; of variational Bayes the lower bound Σ ln Z − Σ KL(q(θ) ‖ p(θ)); neither ever falls. Of collapsed variational Bayes
    /// the sum of every tree's log-probability given the others, which may.
    pub fn bound(&self, layout: &Layout, ln_z: f64) -> f64 {
        match self.method {
            Method::Em | Method::Cvb => ln_z,
            Method::Vb => ln_z - self.divergence(layout),
        }
    }

    /// Σ over groups of KL(Dirichlet(α + f) ‖ Dirichlet(α)).
    fn divergence(&self, layout: &Layout) -> f64 {
        let alpha = self.alpha;
        let ln_gamma_alpha = ln_gamma(alpha);
        let sums = layout.group_sums(&self.totals);
        let mut digammas = Vec::with_capacity(sums.len());
        let mut divergence = 0.0;
        for (sum, &size) in sums.iter().zip(&layout.group_sizes) {
            let prior = alpha * size as f64;
            if size > 0 {
                divergence += ln_gamma(sum + prior) - ln_gamma(prior);
            }
            digammas.push(if size > 0 { digamma(sum + prior) } else { 0.0 });
        }
        for (group, row) in layout.rows() {
            for &total in self.totals[row].iter().filter(|&&total| total > 0.0) {
                let tau = total + alpha;
                divergence += total * (digamma(tau) - digammas[group]) - (ln_gamma(tau) - ln_gamma_alpha);
            }
        }
        divergence
    }
}
