//! `grammaton compare`: what differs between the results of several runs on the same text.

use std::path::PathBuf;

use anyhow::Result;
use basics::streams;
use training::compare::tables::PAGE;
use training::compare::{compare, text};

use super::Answer;

/// Arguments of `compare`.
#[derive(clap::Args, Debug)]
#[command(after_help = "Examples:\n\
    \x20 grammaton compare first second\n\
    \x20 grammaton compare first second third --against gold.txt --out compared")]
pub struct Args {
    /// Folders of results of segment, morphemes or train, of which the first is compared with each of the others
    #[arg(required = true, num_args = 2.., value_name = "RUN")]
    runs: Vec<PathBuf>,
    /// Score against this file instead of the gold of the runs: segmented lines, some or all, or words with their analyses
    #[arg(long, value_name = "GOLD")]
    against: Option<PathBuf>,
    /// Number of lines, and of words of each kind, to print
    #[arg(help_heading = "Output", short, long, value_name = "N", default_value_t = 10)]
    n: usize,
    /// Folder for a page (compare.html) and tables (scores.tsv, lines.tsv, words.tsv)
    #[arg(help_heading = "Output", long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Print one JSON object
    #[arg(help_heading = "Output", long)]
    json: bool,
}

/// Runs the command.
pub fn run(args: &Args) -> Result<Answer> {
    let found = compare(&args.runs, args.against.as_deref())?;
    if let Some(dir) = &args.out {
        found.write(dir)?;
    }
    if args.json {
        streams::show_json(&found.to_json())?;
        return Ok(Answer::Yes);
    }
    found.notices.iter().for_each(|notice| streams::tell(&format!("notice: {notice}")));
    streams::show(text::render(&found, args.n).trim_end())?;
    if let Some(dir) = &args.out {
        streams::tell(&format!("the page is {}", dir.join(PAGE).display()));
    }
    Ok(Answer::Yes)
}
