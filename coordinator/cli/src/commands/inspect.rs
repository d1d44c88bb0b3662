//! `grammaton inspect`: shows the learned parameters of a model.

use std::path::PathBuf;

use anyhow::{Context as _, Result};
use basics::streams::{self, Stdout};
use training::inspection::dependencies::{Table, table};
use training::inspection::{Inspection, inspect};
use training::model::{Entry, SavedModel};

use super::Answer;

/// Arguments of `inspect`.
#[derive(clap::Args, Debug)]
#[command(after_help = "Examples:\n\
    \x20 grammaton inspect results --top 50\n\
    \x20 grammaton inspect heads --table attachments\n\
    \x20 grammaton inspect results --json")]
pub struct Args {
    /// Model: a folder written by `train`, or its model.bin
    pub model: PathBuf,
    /// Number of strings to show of each adapted nonterminal, the most used first
    #[arg(long, value_name = "N", default_value_t = 20)]
    pub top: usize,
    /// Print a table of a dependency model, with tabs between its columns
    #[arg(help_heading = "Output", long, value_enum, conflicts_with = "json")]
    pub table: Option<TableName>,
    /// Print one JSON object
    #[arg(help_heading = "Output", long)]
    pub json: bool,
}

/// A table of the parameters of a dependency model.
#[derive(Clone, Copy, clap::ValueEnum, Debug)]
pub enum TableName {
    /// head, side, child, probability
    Attachments,
    /// head, side, children on it so far (none or some), probability of no more
    Stops,
    /// tag, probability as root
    Roots,
    /// event, mean and variance of its logistic-normal prior
    Means,
    /// two events, covariance and correlation of their logistic-normal prior
    Covariances,
}

impl From<TableName> for Table {
    fn from(name: TableName) -> Table {
        match name {
            TableName::Attachments => Table::Attachments,
            TableName::Stops => Table::Stops,
            TableName::Roots => Table::Roots,
            TableName::Means => Table::Means,
            TableName::Covariances => Table::Covariances,
        }
    }
}

/// Shows a model.
pub fn run(args: &Args) -> Result<Answer> {
    let saved = SavedModel::load(&args.model)?;
    if let Some(name) = args.table {
        let text =
            table(&saved, name.into()).with_context(|| format!("{}: --table", args.model.display()))?;
        streams::print(&text)?;
        return Ok(Answer::Yes);
    }
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
    let baselines = inspection.baselines.iter().map(|baseline| baseline.about());
    let contexts = inspection.contexts.filter(|&least| least == 0.0).map(|_| "the symbols around boundaries");
    let others: Vec<&str> = baselines.chain(contexts).collect();
    if !others.is_empty() {
        out.line(&format!("with them vote: {}", others.join(", ")))?;
    }
    if let Some(least) = inspection.contexts.filter(|&least| least > 0.0) {
        out.line(&format!(
            "new text is read by the symbols around boundaries, from a probability of {least} on"
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
