//! A trained PCFG with logistic-normal priors.

use serde::{Deserialize, Serialize};

use super::{Multinomials, PointEstimate, Prior, PriorsError};
use crate::grammar::Grammar;
use crate::num::Wide;

/// The learned priors, and the weights for reading sentences.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Params {
    /// One for each of the [`Multinomials`].
    pub priors: Vec<Prior>,
    /// Weights for reading sentences.
    pub estimate: PointEstimate,
}

impl Params {
    /// Weights to read sentences of `grammar` with, which [`Params::check`] found to be theirs. `[n_params]`
    pub fn decoding_weights(&self, grammar: &Grammar) -> Vec<Wide> {
        self.weights(grammar, self.estimate)
    }

    /// Weights for the probability of sentences, which [`PointEstimate::Raw`] are not.
    pub fn predictive_weights(&self, grammar: &Grammar) -> Vec<Wide> {
        self.weights(grammar, PointEstimate::Softmax)
    }

    fn weights(&self, grammar: &Grammar, estimate: PointEstimate) -> Vec<Wide> {
        let multinomials = Multinomials::new(grammar).expect("it was checked that the grammar has priors");
        multinomials.weights(&self.priors, estimate)
    }

    /// Checks that they belong to this grammar.
    pub fn check(&self, grammar: &Grammar) -> Result<(), PriorsError> {
        Multinomials::new(grammar)?.check(&self.priors)
    }
}
