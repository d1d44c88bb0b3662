//! `grammaton eval`: scores of an analysis against a gold standard.

use std::path::PathBuf;

use anyhow::{Result, ensure};
use basics::streams;
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use grammaton::data::corpus::Unit;
use grammaton::data::eval::Source;
use grammaton::data::eval::brackets::{self, BracketScores, ByLength};
use training::baselines as floors;
use training::input;
use training::metrics::score_text;

use super::Answer;

pub mod baselines;
pub mod boundaries;
pub mod dependencies;
pub mod segmentation;
pub mod stats;

/// Kinds of analysis that can be compared.
#[derive(clap::Subcommand, Debug)]
pub enum Args {
    /// Compare a segmentation with gold, or several with each other, with one sentence per line
    Segmentation(segmentation::Args),
    /// Score segmentations of a text that take no training, so that a score has a floor
    Baselines(baselines::Args),
    /// Compare the probabilities of boundaries of a result with gold
    Boundaries(boundaries::Args),
    /// Count the words and symbols of texts, as wordseg-stats does
    Stats(stats::Args),
    /// Compare two sets of trees, in Penn Treebank brackets, as EVALB does
    Brackets(BracketsArgs),
    /// Compare dependency trees with gold, or two outputs with each other
    Dependencies(dependencies::Args),
}

/// Arguments of `eval brackets`.
#[derive(clap::Args, Debug)]
#[command(after_help = "Examples:\n\
    \x20 grammaton eval brackets gold.mrg predicted.mrg --max-length 20")]
pub struct BracketsArgs {
    /// File of the gold trees
    pub gold: PathBuf,
    /// File of the trees to score, with `(())` for a missing tree; `-` for standard input
    pub predicted: PathBuf,
    /// Print one JSON object
    #[arg(help_heading = "Output", long)]
    pub json: bool,
    /// Also score sentences of at most N words, including punctuation
    #[arg(long, value_name = "N", default_value_t = 40)]
    pub max_length: usize,
}

/// Parser of a unit by its name.
pub fn unit_parser() -> impl TypedValueParser<Value = Unit> {
    let value = |unit: Unit| PossibleValue::new(unit.name()).help(unit.about());
    PossibleValuesParser::new(Unit::ALL.map(value))
        .map(|name| Unit::ALL.into_iter().find(|unit| unit.name() == name).unwrap_or_default())
}

/// Runs the command.
pub fn run(args: &Args) -> Result<Answer> {
    match args {
        Args::Segmentation(args) => segmentation::run(args),
        Args::Baselines(args) => self::baselines::run(args),
        Args::Boundaries(args) => boundaries::run(args),
        Args::Stats(args) => stats::run(args),
        Args::Brackets(args) => brackets(args),
        Args::Dependencies(args) => dependencies::run(args),
    }
}

/// At most one of the files is standard input.
fn check_standard_input<'a>(paths: impl IntoIterator<Item = &'a PathBuf>) -> Result<()> {
    let n = paths.into_iter().filter(|path| path.as_os_str() == "-").count();
    ensure!(n < 2, "only one of the files can be standard input");
    Ok(())
}

fn brackets(args: &BracketsArgs) -> Result<Answer> {
    check_standard_input([&args.gold, &args.predicted])?;
    let (gold_name, gold) = input::trees(&args.gold)?;
    let (predicted_name, predicted) = input::trees(&args.predicted)?;
    let gold = Source { name: &gold_name, items: &gold };
    let predicted = Source { name: &predicted_name, items: &predicted };
    let scores = brackets::score(gold, predicted, args.max_length)?;
    let text = if args.json { serde_json::to_string(&scores)? + "\n" } else { bracket_table(&scores) };
    streams::print(&text)?;
    Ok(Answer::Yes)
}

fn bracket_table(scores: &ByLength) -> String {
    let mut text = format!(
        "{:<12}{:>10}{:>10}{:>10}{:>15}{:>10}{:>10}{:>11}{:>11}\n",
        "", "precision", "recall", "F1", "unlabelled F1", "exact", "tagging", "sentences", "unparsed"
    );
    let short = format!("up to {}", scores.max_length);
    for (kind, scores) in [("all", &scores.all), (short.as_str(), &scores.short)] {
        let BracketScores { labelled, unlabelled, tagging, exact, sentences, unparsed, .. } = scores;
        text.push_str(&format!("{kind:<12}"));
        for score in [labelled.precision, labelled.recall, labelled.f1] {
            text.push_str(&format!("{:>10}", score_text(score, 4)));
        }
        text.push_str(&format!("{:>15}", score_text(unlabelled.f1, 4)));
        for score in [exact, tagging] {
            text.push_str(&format!("{:>10}", score_text(*score, 4)));
        }
        text.push_str(&format!("{sentences:>11}{unparsed:>11}\n"));
    }
    text +=
        &format!("unlabelled F1 of right-branching trees: {}\n", score_text(scores.all.right_branching, 4));
    text += &floors::of_brackets(&[("", &scores.all)]).map(|below| below + "\n").unwrap_or_default();
    text
}
