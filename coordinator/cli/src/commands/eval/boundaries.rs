//! `grammaton eval boundaries`: whether the probabilities of boundaries are right.

use std::path::PathBuf;

use anyhow::Result;
use basics::streams;
use grammaton::data::eval::reliability::{Bin, N_BINS, Reliability};
use serde::Serialize;
use training::calibration::calibration;
use training::metrics::score_text;
use training::segmented::Segmented;

use crate::commands::Answer;

/// Arguments of `eval boundaries`.
#[derive(clap::Args, Debug)]
#[command(after_help = "Examples:\n\
    \x20 grammaton eval boundaries results gold.txt\n\
    \x20 grammaton eval boundaries results gold.txt --json")]
pub struct Args {
    /// Results of segment, morphemes or train, with boundaries.tsv
    results: PathBuf,
    /// File of segmented lines of the text, or of words with their analyses; other than those that were learned from
    gold: PathBuf,
    /// Print one JSON object
    #[arg(help_heading = "Output", long)]
    json: bool,
}

/// The scores as a JSON object.
#[derive(Serialize)]
struct Line {
    sentences: usize,
    positions: u64,
    brier: Option<f64>,
    brier_of_share: Option<f64>,
    expected_calibration_error: Option<f64>,
    bins: Vec<Row>,
}

/// An interval of probabilities.
#[derive(Serialize)]
struct Row {
    from: f64,
    to: f64,
    positions: u64,
    mean_probability: Option<f64>,
    share_of_boundaries: Option<f64>,
}

/// Runs the command.
pub fn run(args: &Args) -> Result<Answer> {
    let text = Segmented::read(&args.results)?;
    let (found, sentences) = calibration(&text, &args.gold)?;
    let text = if args.json {
        serde_json::to_string(&line(&found, sentences))? + "\n"
    } else {
        table(&found, sentences)
    };
    streams::print(&text)?;
    Ok(Answer::Yes)
}

fn line(found: &Reliability, sentences: usize) -> Line {
    let edge = |at: usize| at as f64 / N_BINS as f64;
    let row = |(at, bin): (usize, &Bin)| Row {
        from: edge(at),
        to: edge(at + 1),
        positions: bin.n,
        mean_probability: bin.mean(),
        share_of_boundaries: bin.share(),
    };
    Line {
        sentences,
        positions: found.n(),
        brier: found.brier(),
        brier_of_share: found.brier_of_share(),
        expected_calibration_error: found.expected_calibration_error(),
        bins: found.bins.iter().enumerate().map(row).collect(),
    }
}

fn table(found: &Reliability, sentences: usize) -> String {
    let mut text = format!(
        "{:<14}{:>10}{:>18}{:>22}\n",
        "probability", "positions", "mean probability", "share of boundaries"
    );
    for row in line(found, sentences).bins {
        let range = format!("{:.1} to {:.1}", row.from, row.to);
        let [mean, share] = [row.mean_probability, row.share_of_boundaries].map(|value| score_text(value, 4));
        text += &format!("{range:<14}{:>10}{mean:>18}{share:>22}\n", row.positions);
    }
    let [brier, of_share, error] =
        [found.brier(), found.brier_of_share(), found.expected_calibration_error()]
            .map(|it| score_text(it, 4));
    text + &format!(
        "Brier score {brier} ({of_share} if the share of all boundaries is said of every position)\n\
         expected calibration error {error}\n\
         {sentences} sentences, {} positions\n",
        found.n()
    )
}
