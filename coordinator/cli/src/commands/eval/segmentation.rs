//! `grammaton eval segmentation`: scores of one segmentation, or a comparison of several.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use anyhow::{Result, ensure};
use basics::streams;
use grammaton::data::corpus::{Analyses, Options, Unit};
use grammaton::data::eval::alternatives::{gold_of, morphemes};
use grammaton::data::eval::comparison::{self, Difference, Output};
use grammaton::data::eval::emma;
use grammaton::data::eval::segmentation::{Prf, score_corpora};
use grammaton::data::eval::significance::{Bootstrap, Interval};
use serde::Serialize;
use training::baselines as floors;
use training::compare::scores::{self, label};
use training::export::scores::of_segmentations;
use training::input;
use training::metrics::{Scores, score_text};

use super::{check_standard_input, unit_parser};
use crate::commands::Answer;

/// Arguments of `eval segmentation`.
#[derive(clap::Args, Debug)]
#[command(after_help = "Examples:\n\
    \x20 grammaton eval segmentation gold.txt results/segmentation.mbr.txt\n\
    \x20 grammaton eval segmentation gold.txt results/segmentation.mbr.txt --latex\n\
    \x20 grammaton eval segmentation first.txt second.txt --against gold.txt")]
pub struct Args {
    /// File of the gold segmentation, or of words with their analyses, as in `gladly<TAB>glad ly, gladly`, of which the best counts; with --against, of the first output
    pub gold: PathBuf,
    /// File of the segmentation to score; with --against, of the second output; `-` for standard input
    pub predicted: PathBuf,
    /// With --against: files of further outputs, which are compared with the first
    #[arg(requires = "against")]
    pub more: Vec<PathBuf>,
    /// Compare outputs, all scored against the gold segmentation in this file
    #[arg(help_heading = "Comparison", long, value_name = "GOLD")]
    pub against: Option<PathBuf>,
    /// Number of bootstrap samples of a comparison
    #[arg(help_heading = "Comparison", long, value_name = "N", default_value_t = training::compare::RESAMPLES, requires = "against",
        value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub resamples: u32,
    /// Seed of the bootstrap
    #[arg(help_heading = "Comparison", long, value_name = "S", default_value_t = training::compare::SEED, requires = "against")]
    pub seed: u64,
    /// Print one JSON object
    #[arg(help_heading = "Output", long)]
    pub json: bool,
    /// Print a table in LaTeX (booktabs), in percent
    #[arg(help_heading = "Output", long, conflicts_with_all = ["json", "against"])]
    pub latex: bool,
    /// Unit of a symbol
    #[arg(long, value_parser = unit_parser(), default_value = "char")]
    pub unit: Unit,
}

/// Runs the command.
pub fn run(args: &Args) -> Result<Answer> {
    let files: Vec<&PathBuf> = [&args.gold, &args.predicted].into_iter().chain(&args.more).collect();
    check_standard_input(files.iter().copied().chain(&args.against))?;
    // The limit of symbols is for training; scoring has none.
    let options = Options { unit: args.unit, max_symbols: u32::MAX, ..Options::default() };
    let text = match &args.against {
        None => one(args, &options)?,
        Some(gold) => several(args, &files, gold, &options)?,
    };
    streams::print(&text)?;
    Ok(Answer::Yes)
}

fn one(args: &Args, options: &Options) -> Result<String> {
    let (gold, _) = input::corpus(&args.gold, options)?;
    let (predicted, _) = input::corpus(&args.predicted, options)?;
    let (words, has_analyses) = gold_of(&gold, &predicted)?;
    let scores = Scores::from(&score_corpora(&words, &predicted)?);
    let n_analyses = words.gold.iter().flatten().map(Vec::len).sum();
    let found: Vec<Vec<String>> = morphemes(&predicted, false).into_iter().flatten().collect();
    let morphemes = emma::score(&morphemes(&gold, has_analyses), &found);
    let scored = Scored { scores, morphemes, analyses: has_analyses.then_some(n_analyses) };
    Ok(if args.json {
        serde_json::to_string(&scored.line())? + "\n"
    } else if args.latex {
        of_segmentations(&[(&predicted.source_name, &scores)])
    } else {
        scored.table()
    })
}

/// Scores of a segmentation.
struct Scored {
    scores: Scores,
    /// Of its segments as morphemes (EMMA-2).
    morphemes: Prf,
    /// Number of gold analyses, if the gold has words with their analyses.
    analyses: Option<usize>,
}

/// The scores as a JSON object.
#[derive(Serialize)]
struct Line {
    #[serde(flatten)]
    scores: Scores,
    emma2_precision: Option<f64>,
    emma2_recall: Option<f64>,
    emma2_f1: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    analyses: Option<usize>,
}

impl Scored {
    fn line(&self) -> Line {
        let Scored { scores, morphemes: Prf { precision, recall, f1 }, analyses } = *self;
        Line { scores, emma2_precision: precision, emma2_recall: recall, emma2_f1: f1, analyses }
    }

    fn table(&self) -> String {
        let Scored { scores, morphemes: Prf { precision, recall, f1 }, analyses } = self;
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

/// Several outputs as a JSON object.
#[derive(Serialize)]
struct Compared {
    outputs: Vec<Named>,
    differences: Vec<Between>,
}

/// An output with its letter.
#[derive(Serialize)]
struct Named {
    output: char,
    file: String,
    #[serde(flatten)]
    scores: Scores,
    intervals: BTreeMap<&'static str, Interval>,
}

/// A difference with the letters of both outputs.
#[derive(Serialize)]
struct Between {
    first: char,
    second: char,
    differences: BTreeMap<&'static str, Bootstrap>,
    only_first: u64,
    only_second: u64,
    sign_test: f64,
}

fn several(args: &Args, files: &[&PathBuf], gold: &Path, options: &Options) -> Result<String> {
    ensure!(files.len() <= 26, "compare 26 outputs at most, found {}", files.len());
    let (gold, _) = input::corpus(gold, options)?;
    let mut outputs = Vec::new();
    let mut words = None;
    for file in files {
        let (output, _) = input::corpus(file, options)?;
        words = Some(gold_of(&gold, &output)?.0);
        outputs.push(output);
    }
    let words = words.unwrap_or(gold);
    let analyses: Vec<Analyses> = match &words.gold {
        Some(gold) => gold.clone(),
        None => words.segmentation().into_iter().map(|ends| vec![ends]).collect(),
    };
    let ends: Vec<Vec<Vec<u32>>> = outputs.iter().map(|output| output.segmentation()).collect();
    let ends: Vec<&[Vec<u32>]> = ends.iter().map(Vec::as_slice).collect();
    let found = comparison::compare(&words.sentences, &analyses, &ends, args.resamples, args.seed);
    if args.json {
        let named = |(at, output): (usize, &Output)| Named {
            output: label(at),
            file: outputs[at].source_name.clone(),
            scores: Scores::from(&output.scores),
            intervals: output.intervals.clone(),
        };
        let between = |(at, difference): (usize, &Difference)| {
            let Difference { measures, only_first, only_second, sign_test } = difference.clone();
            Between {
                first: label(0),
                second: label(at + 1),
                differences: measures,
                only_first,
                only_second,
                sign_test,
            }
        };
        let compared = Compared {
            outputs: found.outputs.iter().enumerate().map(named).collect(),
            differences: found.differences.iter().enumerate().map(between).collect(),
        };
        return Ok(serde_json::to_string(&compared)? + "\n");
    }
    let names: String = outputs
        .iter()
        .enumerate()
        .map(|(at, output)| format!("{}  {}\n", label(at), basics::human::visible(&output.source_name)))
        .collect();
    let verdicts = found.differences.iter().zip(1..).filter_map(|(difference, other)| {
        Some(scores::verdict("Token F1", other, difference.measures.get("token_f1")?) + "\n")
    });
    Ok(format!("{names}\n{}{}", scores::text(&found), verdicts.collect::<String>()))
}
