//! Weights of the first round.

use std::sync::Arc;

use crate::forest::TooAmbiguous;
use crate::forest::binary::{Adapted, BinaryGrammar};
use crate::forest::build::Builder;
use crate::forest::inside::{Scratch, Weights, edge_posteriors, real};
use crate::forest::strings::StringIndex;
use crate::grammar::Grammar;
use crate::grammar::ParamId;
use crate::grammar::lexicon::Lexicon;
use crate::num::Wide;

/// Initial weights.
#[derive(Clone, PartialEq, Debug)]
pub enum Start {
    /// Weight one for each.
    Uniform,
    /// e^{±j} at most.
    Jitter(f64),
    /// These, `[n_params]`: see [`base_weights`].
    Weights(Vec<Wide>),
}

/// The given weights of rules, and for every string what it weighs under them alone, as if nothing were adapted: with these the
/// first round counts what a PCFG would, of the strings there are. `[n_params]`, from `[1 + n_rules]`.
///
/// # Errors
/// [`TooAmbiguous`] if a string has too many derivations.
pub fn base_weights(grammar: &Grammar, lexicon: &Lexicon, rules: &[Wide]) -> Result<Vec<Wide>, TooAmbiguous> {
    let plain = grammar.clone().without_adaptors();
    let binary = BinaryGrammar::new(&plain);
    let strings = StringIndex::new(&plain, Arc::default());
    let mut builder = Builder::new(&binary, &strings, Adapted::Strings);
    let real = real(rules);
    let rule_weights = Weights { wide: rules, real: &real };
    let mut scratch = Scratch::default();
    let mut weights = rules.to_vec();
    for (params, stick) in lexicon.space(grammar).sticks().zip(&lexicon.sticks) {
        debug_assert_eq!(weights.len() as u32, params.start, "strings come in order");
        for string in &stick.strings {
            let forest = builder.build(stick.symbol.0, string)?;
            let weight = forest.map_or(Wide::ZERO, |forest| {
                edge_posteriors(&forest, &rule_weights, &mut scratch, |_, _, _| {})
            });
            weights.push(weight);
        }
    }
    weights[ParamId::ONE.index()] = Wide::ONE;
    Ok(weights)
}
