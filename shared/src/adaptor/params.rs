//! The global variational parameters, and a model to keep.

use serde::{Deserialize, Serialize};

use crate::grammar::{Grammar, SymbolId};
use crate::shard::{Lexicon, ParamId};

/// What training gives: all that decoding needs.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Model {
    /// The grammar.
    pub grammar: Grammar,
    /// The strings of the sticks, with those that are no longer in use.
    pub lexicon: Lexicon,
    /// The variational parameters.
    pub params: Params,
    /// The nonterminals whose constituents are the segments of a sentence.
    pub segments: Vec<SymbolId>,
}

/// Variational parameters and hyper-parameters.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Params {
    /// τ of every rule, `[n_rules]`: Dirichlet parameters of q(θ).
    pub tau: Vec<f64>,
    /// α of every rule, `[n_rules]`: Dirichlet parameters of the prior.
    pub alpha: Vec<f64>,
    /// One per adapted nonterminal, in symbol order.
    pub sticks: Vec<Stick>,
}

/// The truncated stick of one adapted nonterminal.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Stick {
    /// The adapted nonterminal.
    pub symbol: SymbolId,
    /// The strings in use, in stick order.
    pub order: Vec<ParamId>,
    /// First Beta parameter of q(v_i), `[order.len()]`; that of the last atom is not used, v = 1.
    pub gamma1: Vec<f64>,
    /// Second Beta parameter of q(v_i), `[order.len()]`.
    pub gamma2: Vec<f64>,
    /// Discount of the Pitman–Yor process.
    pub discount: f64,
    /// Concentration of the Pitman–Yor process.
    pub concentration: f64,
}
