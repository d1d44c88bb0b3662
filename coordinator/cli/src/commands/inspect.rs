//! `grammaton inspect`: shows the learned parameters of a model.

use std::path::PathBuf;

use anyhow::Result;
use basics::streams::Stdout;
use serde::Serialize;
use shared::data::corpus::Unit;
use shared::data::treebank::ROOT;
use shared::grammar::{Grammar, SymbolId};
use shared::models::Trained;
use training::model::{self, Entry, SavedModel};

use super::Answer;

/// Arguments of `inspect`.
#[derive(clap::Args, Debug)]
#[command(after_help = "Examples:\n\
    \x20 grammaton inspect results --top 50\n\
    \x20 grammaton inspect results --json")]
pub struct Args {
    /// Model: a folder written by `train`, or its model.bin
    pub model: PathBuf,
    /// Number of strings to show of each adapted nonterminal, the most used first
    #[arg(long, value_name = "N", default_value_t = 20)]
    pub top: usize,
    /// Print one JSON object
    #[arg(help_heading = "Output", long)]
    pub json: bool,
}

/// The learned parameters of a model, for display.
#[derive(Serialize)]
pub struct Inspection<'a> {
    nonterminals: usize,
    terminals: usize,
    rules: usize,
    start: &'a str,
    segments: Vec<&'a str>,
    unit: Unit,
    parameters_sha256: String,
    sticks: Vec<Stick<'a>>,
    /// Number of subtypes of every label, with latent annotations.
    #[serde(skip_serializing_if = "Option::is_none")]
    subtypes: Option<usize>,
}

#[derive(Serialize)]
struct Stick<'a> {
    nonterminal: &'a str,
    strings: usize,
    /// Hyper-parameters of an adapted nonterminal.
    #[serde(skip_serializing_if = "Option::is_none")]
    discount: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    concentration: Option<f64>,
    top: Vec<Entry>,
}

/// Shows a model.
pub fn run(args: &Args) -> Result<Answer> {
    let saved = SavedModel::load(&args.model)?;
    let inspection = inspect(&saved, args.top);
    let mut out = Stdout::lock();
    if args.json {
        out.line(&serde_json::to_string_pretty(&inspection)?)?;
    } else {
        print(&inspection, &mut out)?;
    }
    out.flush()?;
    Ok(Answer::Yes)
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
        parameters_sha256,
        sticks: sticks.collect(),
        subtypes: None,
    }
}

fn print(inspection: &Inspection<'_>, out: &mut Stdout) -> Result<()> {
    let Inspection { rules, nonterminals, terminals, start, .. } = inspection;
    out.line(&format!("{rules} rules, {nonterminals} nonterminals, {terminals} terminals, start {start}"))?;
    match inspection.subtypes {
        Some(subtypes) => out.line(&format!("subtypes: {subtypes}"))?,
        None => out.line(&format!("segments: {}", inspection.segments.join(", ")))?,
    }
    out.line(&format!("parameters_sha256: {}", inspection.parameters_sha256))?;
    for stick in &inspection.sticks {
        out.line("")?;
        let prior = match stick.discount.zip(stick.concentration) {
            Some((discount, concentration)) => {
                format!(", discount {discount:.4}, concentration {concentration:.4}")
            }
            None => String::new(),
        };
        out.line(&format!("{}: {} strings{prior}", stick.nonterminal, stick.strings))?;
        if !stick.top.is_empty() {
            out.line("      uses    weight  string")?;
        }
        for Entry { string, uses, weight, .. } in &stick.top {
            out.line(&format!("{uses:>10.2}  {weight:>8.6}  {string}"))?;
        }
    }
    Ok(())
}
