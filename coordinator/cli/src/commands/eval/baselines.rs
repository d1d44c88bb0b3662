//! `grammaton eval baselines`: scores of segmentations that take no training.

use std::path::PathBuf;

use anyhow::{Context, Result};
use basics::streams;
use grammaton::data::corpus::{Corpus, Options, Unit};
use grammaton::data::eval::segmentation::{BASELINES, score_corpora};
use grammaton::models::baselines::Baseline;
use serde::Serialize;
use training::input;
use training::metrics::{Scores, score_text};

use super::unit_parser;
use crate::commands::Answer;

/// Arguments of `eval baselines`.
#[derive(clap::Args, Debug)]
#[command(after_help = "Examples:\n\
    \x20 grammaton eval baselines gold.txt\n\
    \x20 grammaton eval baselines gold.txt --print puddle")]
pub struct Args {
    /// File of the gold segmentation, whose boundaries are only scored against
    pub gold: PathBuf,
    /// Print one JSON object
    #[arg(help_heading = "Output", long)]
    pub json: bool,
    /// Print the text as this baseline segments it, instead of scores; the text needs no boundaries then
    #[arg(help_heading = "Output", long, value_name = "NAME", value_parser = clap::builder::PossibleValuesParser::new(Baseline::ALL.map(Baseline::name)), conflicts_with = "json")]
    pub print: Option<String>,
    /// Unit of a symbol
    #[arg(long, value_parser = unit_parser(), default_value = "char")]
    pub unit: Unit,
}

/// A baseline and its scores.
#[derive(Serialize)]
struct Row {
    name: &'static str,
    about: &'static str,
    #[serde(flatten)]
    scores: Scores,
}

/// Runs the command.
pub fn run(args: &Args) -> Result<Answer> {
    let options = Options { unit: args.unit, max_symbols: u32::MAX, ..Options::default() };
    let (gold, _) = input::corpus(&args.gold, &options)?;
    let segmented = |baseline: Baseline| {
        let analyses = baseline.segment(&gold.sentences).into_iter().map(|ends| vec![ends]);
        Corpus { gold: Some(analyses.collect()), ..gold.clone() }
    };
    if let Some(name) = &args.print {
        let named = |baseline: &Baseline| baseline.name() == name;
        let segmented =
            segmented(Baseline::ALL.into_iter().find(named).context("clap has checked the name")?);
        let lines = (0..segmented.sentences.len()).filter_map(|at| segmented.gold_line(at));
        streams::print(&lines.map(|line| line + "\n").collect::<String>())?;
        return Ok(Answer::Yes);
    }
    let mut rows = Vec::new();
    for baseline in Baseline::ALL {
        let scores = Scores::from(&score_corpora(&gold, &segmented(baseline))?);
        rows.push(Row { name: baseline.name(), about: baseline.about(), scores });
    }
    let text = if args.json { serde_json::to_string(&rows)? + "\n" } else { table(&rows) };
    streams::print(&text)?;
    Ok(Answer::Yes)
}

fn table(rows: &[Row]) -> String {
    let head = ["token F1", "boundary F1", "lexicon F1"];
    let mut text = format!("{:<44}{:>10}{:>13}{:>12}\n", "", head[0], head[1], head[2]);
    for Row { about, scores, .. } in rows {
        let [token, boundary, lexicon] =
            [scores.token_f1, scores.boundary_f1, scores.lexicon_f1].map(|score| score_text(score, 4));
        text += &format!("{about:<44}{token:>10}{boundary:>13}{lexicon:>12}\n");
    }
    let first = rows.first().map(|row| row.scores).unwrap_or_default();
    for (name, token) in BASELINES.iter().zip(first.baselines().map(|(_, score)| score)) {
        text += &format!("{name:<44}{:>10}\n", score_text(token, 4));
    }
    text
}
