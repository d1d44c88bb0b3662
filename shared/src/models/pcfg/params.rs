//! A trained PCFG.

use std::ops::Range;

use serde::{Deserialize, Serialize};

use super::collapsed;
use crate::grammar::Grammar;
use crate::grammar::groups::{Estimate, Groups};
use crate::grammar::lexicon::Lexicon;
use crate::num::Wide;

/// What was learned, and how sentences are read with it.
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

impl Params {
    /// What an estimate is read with. A string that is not in the lexicon weighs as much as one that was never used: nothing, of
    /// a point.
    pub fn new(groups: &Groups, estimate: Estimate, weights: Vec<Wide>, is_point: bool) -> Params {
        let posterior = estimate.posterior();
        let unused = |group: Range<usize>| match is_point {
            true => Wide::ZERO,
            false => Wide::from_f64(estimate.alpha[group.start] / posterior[group].iter().sum::<f64>()),
        };
        let escapes = groups.sticks().map(unused).collect();
        Params { estimate, weights, is_point, escapes }
    }

    /// `weights`, then `escapes`.
    pub fn decoding_weights(&self) -> Vec<Wide> {
        self.weights.iter().chain(&self.escapes).copied().collect()
    }

    /// Weights for the probability of sentences: the estimate, or its mean. By parameter, then `escapes`.
    pub fn predictive_weights(&self, groups: &Groups) -> Vec<Wide> {
        match self.is_point {
            true => self.decoding_weights(),
            false => {
                collapsed::weights(groups, &self.estimate).into_iter().chain(self.escapes.clone()).collect()
            }
        }
    }

    /// Whether they are those of this grammar and lexicon; an error says what does not hold.
    pub fn check(&self, grammar: &Grammar, lexicon: &Lexicon) -> Result<(), String> {
        if grammar.adapted().next().is_some() {
            return Err("a PCFG has no adapted nonterminals".to_owned());
        }
        self.estimate.check(&Groups::new(grammar, lexicon))?;
        let weighs = |weight: &Wide| weight.is_weight();
        if self.weights.len() != lexicon.space(grammar).n_params() || !self.weights.iter().all(weighs) {
            return Err("a rule has no weight".to_owned());
        }
        if self.escapes.len() != lexicon.sticks.len() || !self.escapes.iter().all(weighs) {
            return Err("a stick has no weight for new strings".to_owned());
        }
        Ok(())
    }
}
