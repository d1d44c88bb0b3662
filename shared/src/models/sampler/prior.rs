//! Priors: pseudo-counts of the parameters, and priors of the Pitman–Yor processes.

use crate::grammar::Grammar;
use crate::grammar::groups::{Estimate, Groups};
use crate::grammar::lexicon::Lexicon;
use crate::num::special::{ln, ln_gamma};
use serde::{Deserialize, Serialize};

/// Dirichlet priors over the multinomials of a grammar.
#[derive(Clone, PartialEq, Debug)]
pub struct Prior {
    /// Groups of parameters of one multinomial.
    pub groups: Groups,
    /// `[n_params]`: pseudo-counts, and the uses in other shards, which stay as they are during a sweep.
    pub pseudo: Vec<f64>,
}

impl Prior {
    /// The pseudo-counts that `grammar` gives.
    pub fn new(grammar: &Grammar, lexicon: &Lexicon) -> Prior {
        let groups = Groups::new(grammar, lexicon);
        let pseudo = groups.alpha(grammar);
        Prior { groups, pseudo }
    }

    /// Adds the uses in other shards, `[n_params]`.
    pub fn with_others(mut self, others: &[f64]) -> Prior {
        self.pseudo.iter_mut().zip(others).for_each(|(pseudo, &others)| *pseudo += others);
        self
    }

    /// ln of the probability that parameters are used that often, `[n_params]`, in a certain order.
    pub fn log_joint(&self, uses: &[u32]) -> f64 {
        let counts = uses.iter().map(|&uses| f64::from(uses)).collect();
        Estimate { alpha: self.pseudo.clone(), counts }.log_joint(&self.groups)
    }
}

/// Prior of the discount and the concentration of every process: a discount is uniform in (0, 1), a concentration
/// Gamma(shape, scale).
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
pub struct HyperPrior {
    /// Shape of the Gamma distribution, > 0.
    pub shape: f64,
    /// Scale of the Gamma distribution, > 0.
    pub scale: f64,
}

impl HyperPrior {
    /// ln of the density of a concentration; that of a discount is nothing.
    pub fn ln_density(&self, concentration: f64) -> f64 {
        let HyperPrior { shape, scale } = *self;
        (shape - 1.0) * ln(concentration) - concentration / scale - ln_gamma(shape) - shape * ln(scale)
    }
}
