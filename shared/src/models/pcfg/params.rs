//! A trained PCFG.

use std::ops::Range;

use serde::{Deserialize, Serialize};

use super::collapsed;
use crate::grammar::groups::{Estimate, EstimateError, Groups};
use crate::grammar::lexicon::Lexicon;
use crate::grammar::{Grammar, Rule};
use crate::num::Wide;

/// The learned parameters, and how sentences are read with them.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Params {
    /// Pseudo-counts and counts; of a sampler, the mean counts of its samples.
    pub estimate: Estimate,
    /// The method's weights, `[n_params]`.
    pub weights: Vec<Wide>,
    /// Whether these are the estimate itself (EM, MAP-EM); else it is a distribution, Dirichlet(α + f).
    pub is_point: bool,
    /// By stick of the lexicon: the weight of a string that is not in it.
    pub escapes: Vec<Wide>,
}

/// Why [`Params`] do not belong to a grammar and a lexicon.
#[derive(Clone, PartialEq, Debug, thiserror::Error)]
pub enum ParamsError {
    /// The grammar has adapted nonterminals.
    #[error("a PCFG has no adapted nonterminals")]
    Adapted,
    /// Pseudo-counts or counts are negative or not finite.
    #[error(transparent)]
    Estimate(#[from] EstimateError),
    /// Weights are not as many as parameters, or one is no weight.
    #[error("a rule has no weight")]
    Weights,
    /// Escapes are not as many as sticks, or one is no weight.
    #[error("a stick has no weight for new strings")]
    Escapes,
}

impl Params {
    /// Parameters for reading with an estimate. A string that is not in the lexicon weighs as much as one that was never used: nothing, of
    /// a point.
    pub fn new(groups: &Groups, estimate: Estimate, weights: Vec<Wide>, is_point: bool) -> Params {
        let posterior = estimate.posterior();
        let unused = |group: Range<usize>| {
            if is_point {
                Wide::ZERO
            } else {
                Wide::from_f64(estimate.alpha[group.start] / posterior[group].iter().sum::<f64>())
            }
        };
        let escapes = groups.sticks().map(unused).collect();
        Params { estimate, weights, is_point, escapes }
    }

    /// Probability of every rule: the estimate itself, or its mean among the rules of the parent. `[n_rules]`
    pub fn rule_probabilities(&self, grammar: &Grammar) -> Vec<f64> {
        let rules = grammar.space().rules();
        if self.is_point {
            return self.weights[rules].iter().map(|weight| weight.to_f64()).collect();
        }
        let posterior = &self.estimate.posterior()[rules];
        let mut totals = vec![0.0; grammar.n_nonterminals as usize];
        for (rule, posterior) in grammar.rules.iter().zip(posterior) {
            totals[rule.parent.index()] += posterior;
        }
        let mean = |(rule, posterior): (&Rule, &f64)| posterior / totals[rule.parent.index()];
        grammar.rules.iter().zip(posterior).map(mean).collect()
    }

    /// `weights`, then `escapes`.
    pub fn decoding_weights(&self) -> Vec<Wide> {
        self.weights.iter().chain(&self.escapes).copied().collect()
    }

    /// Weights for the probability of sentences: the estimate, or its mean. By parameter, then `escapes`.
    pub fn predictive_weights(&self, groups: &Groups) -> Vec<Wide> {
        if self.is_point {
            self.decoding_weights()
        } else {
            collapsed::weights(groups, &self.estimate).into_iter().chain(self.escapes.clone()).collect()
        }
    }

    /// Checks that they belong to this grammar and lexicon.
    pub fn check(&self, grammar: &Grammar, lexicon: &Lexicon) -> Result<(), ParamsError> {
        if grammar.adapted().next().is_some() {
            return Err(ParamsError::Adapted);
        }
        self.estimate.check(&Groups::new(grammar, lexicon))?;
        let weighs = |weight: &Wide| weight.is_weight();
        if self.weights.len() != lexicon.space(grammar).n_params() || !self.weights.iter().all(weighs) {
            return Err(ParamsError::Weights);
        }
        if self.escapes.len() != lexicon.sticks.len() || !self.escapes.iter().all(weighs) {
            return Err(ParamsError::Escapes);
        }
        Ok(())
    }
}
