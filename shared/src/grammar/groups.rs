//! The multinomials of a grammar, and what is known of their parameters.

use std::ops::Range;

use serde::{Deserialize, Serialize};

use crate::grammar::Grammar;
use crate::grammar::ParamId;
use crate::grammar::lexicon::Lexicon;
use crate::limits::{is_count, is_parameter};
use crate::num::Wide;
use crate::num::special::ln_gamma;

/// Groups of parameters of one multinomial: the rules of each nonterminal, and the strings of each nonterminal that
/// rewrites to substrings. All parameters but [`ParamId::ONE`] are in one of them; strings of adapted nonterminals are not.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Groups {
    /// First of rules, then of strings.
    ranges: Vec<Range<usize>>,
    n_sticks: usize,
    n_params: usize,
}

/// Pseudo-counts and counts, by parameter; those of [`ParamId::ONE`] mean nothing.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Estimate {
    /// Parameters of the Dirichlet priors, `[n_params]`.
    pub alpha: Vec<f64>,
    /// Expected or sampled uses, `[n_params]`.
    pub counts: Vec<f64>,
}

/// Why an [`Estimate`] is not one of a grammar.
#[derive(Clone, PartialEq, Debug, thiserror::Error)]
#[error("{0}")]
pub struct EstimateError(&'static str);

impl Groups {
    /// Returns the groups of a grammar.
    pub fn new(grammar: &Grammar, lexicon: &Lexicon) -> Groups {
        let space = lexicon.space(grammar);
        let mut start = space.rules().start;
        let mut ranges: Vec<Range<usize>> = Vec::new();
        for rules in grammar.rules.chunk_by(|a, b| a.parent == b.parent) {
            ranges.push(start..start + rules.len());
            start += rules.len();
        }
        let of_substrings =
            space.sticks().zip(&lexicon.sticks).filter(|(_, of)| !grammar.is_adapted(of.symbol));
        for (strings, _) in of_substrings {
            ranges.push(strings.start as usize..strings.end as usize);
        }
        Groups { ranges, n_sticks: lexicon.sticks.len(), n_params: space.n_params() }
    }

    /// Number of multinomials.
    pub fn len(&self) -> usize {
        self.ranges.len()
    }

    /// Whether there are no groups.
    pub fn is_empty(&self) -> bool {
        self.ranges.is_empty()
    }

    /// Parameters in all, with [`ParamId::ONE`].
    pub fn n_params(&self) -> usize {
        self.n_params
    }

    /// The parameters of each multinomial.
    pub fn iter(&self) -> impl Iterator<Item = Range<usize>> + '_ {
        self.ranges.iter().cloned()
    }

    /// The strings of each stick of the lexicon.
    pub fn sticks(&self) -> impl Iterator<Item = Range<usize>> + '_ {
        self.iter().skip(self.ranges.len() - self.n_sticks)
    }

    /// The number of the multinomial that `param` belongs to; none for [`ParamId::ONE`].
    pub fn of(&self, param: ParamId) -> Option<usize> {
        let after = self.ranges.partition_point(|range| range.start <= param.index());
        after.checked_sub(1)
    }

    /// `values` summed by multinomial.
    pub fn sums(&self, values: &[f64]) -> Vec<f64> {
        self.iter().map(|group| values[group].iter().sum()).collect()
    }

    /// Weights from non-negative numbers by dividing each by the sum of its multinomial; where that is 0, all are alike.
    pub fn normalised(&self, numbers: &[f64]) -> Vec<Wide> {
        let mut weights = vec![Wide::ONE; self.n_params];
        for group in self.iter() {
            let sum: f64 = numbers[group.clone()].iter().sum();
            let uniform = 1.0 / group.len() as f64;
            for at in group {
                weights[at] = Wide::from_f64(if sum > 0.0 { numbers[at] / sum } else { uniform });
            }
        }
        weights
    }

    /// The pseudo-counts that the grammar gives: those of its rules, and for a string that of its rule `X --> <substrings>`.
    pub fn alpha(&self, grammar: &Grammar) -> Vec<f64> {
        let mut alpha = vec![1.0; self.n_params];
        for (rule, alpha) in grammar.rules.iter().zip(&mut alpha[grammar.space().rules()]) {
            *alpha = rule.alpha;
        }
        for (rule, strings) in grammar.substring_rules().zip(self.sticks()) {
            alpha[strings].fill(grammar.rule(rule).alpha);
        }
        alpha
    }
}

impl Estimate {
    /// Checks that it fits `groups`.
    pub fn check(&self, groups: &Groups) -> Result<(), EstimateError> {
        if self.alpha.len() != groups.n_params || self.counts.len() != groups.n_params {
            return Err(EstimateError("its counts are not those of its parameters"));
        }
        if !self.alpha.iter().all(|&alpha| is_parameter(alpha)) {
            return Err(EstimateError("a pseudo-count is not positive"));
        }
        if !self.counts.iter().all(|&count| is_count(count)) {
            return Err(EstimateError("its counts are not counts"));
        }
        Ok(())
    }

    /// α + f, by parameter.
    pub fn posterior(&self) -> Vec<f64> {
        self.alpha.iter().zip(&self.counts).map(|(alpha, count)| alpha + count).collect()
    }

    /// log P(trees | α) of trees with these counts, the probabilities integrated out (Johnson, Griffiths & Goldwater 2007, Eq. 3).
    pub fn log_joint(&self, groups: &Groups) -> f64 {
        let of_group = |group: Range<usize>| {
            let (alpha, counts) = (&self.alpha[group.clone()], &self.counts[group]);
            let (sum_alpha, sum_counts): (f64, f64) = (alpha.iter().sum(), counts.iter().sum());
            let used = alpha.iter().zip(counts).filter(|&(_, &count)| count > 0.0);
            let terms = used.map(|(&alpha, &count)| ln_gamma(alpha + count) - ln_gamma(alpha));
            ln_gamma(sum_alpha) - ln_gamma(sum_alpha + sum_counts) + terms.sum::<f64>()
        };
        groups.iter().map(of_group).sum()
    }
}
