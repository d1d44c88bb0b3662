//! `grammaton eval`: scores of an analysis against a gold standard.

use std::path::{Path, PathBuf};

use anyhow::{Result, ensure};
use basics::streams;
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use grammaton::data::corpus::{Options, Unit};
use grammaton::data::eval::Source;
use grammaton::data::eval::alternatives::{morphemes, with_analyses};
use grammaton::data::eval::brackets::{self, BracketScores, ByLength};
use grammaton::data::eval::emma;
use grammaton::data::eval::segmentation::{Prf, check_text, score_corpora};
use training::baselines as floors;
use training::input;
use training::metrics::{Scores, score_text};

use super::Answer;

pub mod baselines;
pub mod boundaries;
pub mod dependencies;

/// Kinds of analysis that can be compared.
#[derive(clap::Subcommand, Debug)]
pub enum Args {
    /// Compare two segmentations of a text, with one sentence per line
    Segmentation(SegmentationArgs),
    /// Score segmentations of a text that take no training, so that a score has a floor
    Baselines(baselines::Args),
    /// Compare the probabilities of boundaries of a result with gold
    Boundaries(boundaries::Args),
    /// Compare two sets of trees, in Penn Treebank brackets, as EVALB does
    Brackets(BracketsArgs),
    /// Compare dependency trees with gold, or two outputs with each other
    Dependencies(dependencies::Args),
}

/// Arguments of `eval segmentation`.
#[derive(clap::Args, Debug)]
#[command(after_help = "Examples:\n\
    \x20 grammaton eval segmentation gold.txt results/segmentation.mbr.txt")]
pub struct SegmentationArgs {
    /// File of the gold segmentation; or of words with their analyses, as in `gladly<TAB>glad ly, gladly`, of which the best counts
    pub gold: PathBuf,
    /// File of the segmentation to score; `-` for standard input
    pub predicted: PathBuf,
    /// Print one JSON object
    #[arg(help_heading = "Output", long)]
    pub json: bool,
    /// Unit of a symbol
    #[arg(long, value_parser = unit_parser(), default_value = "char")]
    pub unit: Unit,
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
        Args::Segmentation(args) => segmentation(args),
        Args::Baselines(args) => self::baselines::run(args),
        Args::Boundaries(args) => boundaries::run(args),
        Args::Brackets(args) => brackets(args),
        Args::Dependencies(args) => dependencies::run(args),
    }
}

fn not_both_standard_input(gold: &Path, predicted: &Path) -> Result<()> {
    let both = gold.as_os_str() == "-" && predicted.as_os_str() == "-";
    ensure!(!both, "only one of GOLD and PREDICTED can be standard input");
    Ok(())
}

fn segmentation(args: &SegmentationArgs) -> Result<Answer> {
    not_both_standard_input(&args.gold, &args.predicted)?;
    // The limit of symbols is for training; scoring has none.
    let options = Options { unit: args.unit, max_symbols: u32::MAX, ..Options::default() };
    let (gold, _) = input::corpus(&args.gold, &options)?;
    let (predicted, _) = input::corpus(&args.predicted, &options)?;
    let (words, has_analyses) = match check_text(&gold, &predicted) {
        Ok(()) => (gold.clone(), false),
        Err(error) => (with_analyses(&gold).ok_or(error)?, true),
    };
    let scores = Scores::from(&score_corpora(&words, &predicted)?);
    let n_analyses = words.gold.iter().flatten().map(Vec::len).sum();
    let found: Vec<Vec<String>> = morphemes(&predicted, false).into_iter().flatten().collect();
    let morphemes = emma::score(&morphemes(&gold, has_analyses), &found);
    let compared = Compared { scores, morphemes, analyses: has_analyses.then_some(n_analyses) };
    let text = if args.json { serde_json::to_string(&compared.line())? + "\n" } else { compared.table() };
    streams::print(&text)?;
    Ok(Answer::Yes)
}

/// Scores of a segmentation.
struct Compared {
    scores: Scores,
    /// Of its segments as morphemes (EMMA-2).
    morphemes: Prf,
    /// Number of gold analyses, if the gold has words with their analyses.
    analyses: Option<usize>,
}

/// The scores as a JSON object.
#[derive(serde::Serialize)]
struct Line {
    #[serde(flatten)]
    scores: Scores,
    emma2_precision: Option<f64>,
    emma2_recall: Option<f64>,
    emma2_f1: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    analyses: Option<usize>,
}

impl Compared {
    fn line(&self) -> Line {
        let Compared { scores, morphemes: Prf { precision, recall, f1 }, analyses } = *self;
        Line { scores, emma2_precision: precision, emma2_recall: recall, emma2_f1: f1, analyses }
    }

    fn table(&self) -> String {
        let Compared { scores, morphemes: Prf { precision, recall, f1 }, analyses } = self;
        let mut text = format!("{:<22}{:>10}{:>10}{:>10}\n", "", "precision", "recall", "F1");
        let morphemes = [("morphemes (EMMA-2)", [*precision, *recall, *f1])];
        for (kind, values) in scores.kinds().into_iter().chain(morphemes) {
            let [precision, recall, f1] = values.map(|score| score_text(score, 4));
            text.push_str(&format!("{kind:<22}{precision:>10}{recall:>10}{f1:>10}\n"));
        }
        text += &format!("{} of {} sentences are exact\n", scores.exact, scores.sentences);
        if let Some(n) = analyses {
            text += &format!("{n} gold analyses; the one that agrees best counts\n");
        }
        text += &floors::of_segmentation(&[("", scores)]).map(|below| below + "\n").unwrap_or_default();
        text
    }
}

fn brackets(args: &BracketsArgs) -> Result<Answer> {
    not_both_standard_input(&args.gold, &args.predicted)?;
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
