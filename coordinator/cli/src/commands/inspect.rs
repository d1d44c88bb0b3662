//! `grammaton inspect`: shows the learned parameters of a model.

use std::path::PathBuf;

use anyhow::Result;
use basics::streams::Stdout;
use training::inspection::{Inspection, inspect};
use training::model::{Entry, SavedModel};

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

fn print(inspection: &Inspection<'_>, out: &mut Stdout) -> Result<()> {
    let Inspection { rules, nonterminals, terminals, start, .. } = inspection;
    out.line(&format!("{rules} rules, {nonterminals} nonterminals, {terminals} terminals, start {start}"))?;
    match inspection.subtypes {
        Some(subtypes) => out.line(&format!("subtypes: {subtypes}"))?,
        None => out.line(&format!("segments: {}", inspection.segments.join(", ")))?,
    }
    if inspection.models > 1 {
        out.line(&format!(
            "models that vote on new text: {}, of which the first one follows",
            inspection.models
        ))?;
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
