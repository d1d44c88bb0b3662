//! `grammaton eval`: how well an analysis agrees with gold.

use std::path::PathBuf;

use anyhow::{Result, ensure};
use shared::corpus::{Options, Unit};
use shared::eval::segmentation::score_corpora;

use super::Answer;
use crate::input;
use crate::metrics::{Scores, score_text};
use crate::streams;

/// Kinds of analysis that can be compared.
#[derive(clap::Subcommand, Debug)]
pub enum Args {
    /// Compare two segmentations of one text, a sentence a line
    Segmentation(SegmentationArgs),
}

/// Arguments of `eval segmentation`.
#[derive(clap::Args, Debug)]
pub struct SegmentationArgs {
    /// The gold segmentation
    pub gold: PathBuf,
    /// The segmentation to score; `-` for standard input
    pub predicted: PathBuf,
    /// Print one JSON object
    #[arg(long)]
    pub json: bool,
    /// What a symbol is: a character, spaces being between words, or a token, with | between words
    #[arg(long, value_enum, default_value = "char")]
    pub unit: UnitName,
}

/// Units by name.
#[derive(Clone, Copy, PartialEq, Eq, Debug, clap::ValueEnum)]
pub enum UnitName {
    /// A character
    Char,
    /// A token between spaces
    Token,
}

impl From<UnitName> for Unit {
    fn from(name: UnitName) -> Unit {
        match name {
            UnitName::Char => Unit::Char,
            UnitName::Token => Unit::Token,
        }
    }
}

/// Compares.
pub fn run(args: &Args) -> Result<Answer> {
    match args {
        Args::Segmentation(args) => segmentation(args),
    }
}

fn segmentation(args: &SegmentationArgs) -> Result<Answer> {
    ensure!(
        args.gold.as_os_str() != "-" || args.predicted.as_os_str() != "-",
        "only one of GOLD and PREDICTED can be standard input"
    );
    // The limit is there for training; scores have none.
    let options = Options { unit: args.unit.into(), max_symbols: u32::MAX, ..Options::default() };
    let (gold, _) = input::corpus(&args.gold, &options)?;
    let (predicted, _) = input::corpus(&args.predicted, &options)?;
    let scores = Scores::from(&score_corpora(&gold, &predicted)?);
    let text = if args.json { serde_json::to_string(&scores)? + "\n" } else { table(&scores) };
    streams::print(&text)?;
    Ok(Answer::Yes)
}

fn table(scores: &Scores) -> String {
    let mut text = format!("{:<22}{:>10}{:>10}{:>10}\n", "", "precision", "recall", "F1");
    for (kind, values) in scores.kinds() {
        let [precision, recall, f1] = values.map(|score| score_text(score, 4));
        text.push_str(&format!("{kind:<22}{precision:>10}{recall:>10}{f1:>10}\n"));
    }
    text + &format!("{} of {} sentences are exact\n", scores.exact, scores.sentences)
}
