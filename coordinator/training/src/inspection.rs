//! The learned parameters of a model, for display.

pub mod dependencies;

use grammaton::data::corpus::Unit;
use grammaton::data::treebank::ROOT;
use grammaton::grammar::{Grammar, SymbolId};
use grammaton::models::Trained;
use grammaton::models::baselines::Baseline;
use serde::Serialize;

use crate::model::{self, Entry, SavedModel};

/// The learned parameters of a model, for display.
#[derive(Serialize)]
pub struct Inspection<'a> {
    /// Number of nonterminals, or of labels.
    pub nonterminals: usize,
    /// Number of terminals.
    pub terminals: usize,
    /// Number of rules.
    pub rules: usize,
    /// The start symbol.
    pub start: &'a str,
    /// Nonterminals whose yields are segments.
    pub segments: Vec<&'a str>,
    /// Unit of a symbol.
    pub unit: Unit,
    /// Number of models that vote on new text.
    pub models: usize,
    /// Segmentations without a model that vote with them.
    pub baselines: Vec<Baseline>,
    /// The probability from which on the symbols around a position alone decide for a boundary in new text; 0 if they vote with the models, `None` if they were not learned.
    pub contexts: Option<f64>,
    /// Digest of the parameters.
    pub parameters_sha256: String,
    /// Adapted nonterminals.
    pub sticks: Vec<Stick<'a>>,
    /// Number of subtypes of every label, with latent annotations.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub subtypes: Option<usize>,
}

/// An adapted nonterminal.
#[derive(Serialize)]
pub struct Stick<'a> {
    /// Its name.
    pub nonterminal: &'a str,
    /// Number of its strings.
    pub strings: usize,
    /// Discount of an adapted nonterminal.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub discount: Option<f64>,
    /// Concentration of an adapted nonterminal.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub concentration: Option<f64>,
    /// Its most used strings.
    pub top: Vec<Entry>,
}

/// Describes a model, with so many strings of each adapted nonterminal, the most used first.
pub fn inspect(saved: &SavedModel, top: usize) -> Inspection<'_> {
    let parameters_sha256 = model::parameters_sha256(&saved.model);
    let model = match &saved.model {
        Trained::Grammar(model) => model,
        Trained::Treebank(latent) => {
            let rules = &latent.rules;
            return Inspection {
                nonterminals: rules.labels.len(),
                terminals: rules.words.len(),
                rules: rules.rules.len(),
                start: ROOT,
                segments: Vec::new(),
                unit: saved.unit,
                models: 1,
                baselines: Vec::new(),
                contexts: None,
                parameters_sha256,
                sticks: Vec::new(),
                subtypes: Some(latent.n_subtypes),
            };
        }
    };
    let nonterminals = model.grammar.n_nonterminals as usize;
    let sticks = model.lexicon.sticks.iter().enumerate().map(|(at, strings)| {
        let stick = model.adaptor().map(|params| &params.sticks[at]);
        Stick {
            nonterminal: model.grammar.name(strings.symbol),
            strings: stick.map_or(strings.strings.len(), |stick| stick.order.len()),
            discount: stick.map(|stick| stick.discount),
            concentration: stick.map(|stick| stick.concentration),
            top: model::top(saved, at, top),
        }
    });
    Inspection {
        nonterminals,
        terminals: model.grammar.symbols.len() - nonterminals,
        rules: model.grammar.rules.len(),
        start: model.grammar.name(Grammar::START),
        segments: model.segments.iter().map(|&symbol: &SymbolId| model.grammar.name(symbol)).collect(),
        unit: saved.unit,
        models: 1 + saved.voters.len(),
        baselines: saved.segmenter.baselines.iter().map(|(learned, _)| learned.baseline()).collect(),
        contexts: saved.segmenter.contexts.as_ref().map(|_| saved.segmenter.threshold),
        parameters_sha256,
        sticks: sticks.collect(),
        subtypes: None,
    }
}
