//! `grammaton morphemes`: finds the morphemes of words, without a job file.
//!
//! In: words, and affixes and stems if some are known. Out: the same lines with spaces between morphemes, as by [`super::segment`].

use std::path::PathBuf;

use anyhow::Result;
use grammaton::data::corpus::sniff::Contents;
use proto::log::Form;
use segment::model::AUTO;
use segment::morphemes::{Known, THRESHOLD, model};
use training::progress::Progress;

use super::Answer;
use super::segment::given_text;
use super::segment::reading::ReadingOptions;
use super::segment::sampling::SamplingOptions;

/// Arguments of `morphemes`.
#[derive(clap::Args, Debug)]
#[command(after_help = "Examples:\n\
    \x20 grammaton morphemes words.txt\n\
    \x20 grammaton morphemes words.txt --suffixes suffixes.txt --out morphemes\n\
    \x20 grammaton morphemes words.txt --cascade --out morphemes")]
pub struct Args {
    /// Words, one per line, plain, .gz or .zst; `-` for standard input. Spaces in a line are gold morpheme boundaries, which are scored against and
    /// otherwise ignored
    words: PathBuf,
    /// File of known prefixes, one per line
    #[arg(long, value_name = "FILE")]
    prefixes: Option<PathBuf>,
    /// File of known suffixes, one per line
    #[arg(long, value_name = "FILE")]
    suffixes: Option<PathBuf>,
    /// File of known stems, one per line
    #[arg(long, value_name = "FILE")]
    stems: Option<PathBuf>,
    /// Run twice: the N prefixes and N suffixes that a first, shorter run with morph15 uses most are known to the second; 0: run once [without N: 40; without
    /// the option: 40 for lists of 40,000 different words or more without known affixes and --seconds, else 0]
    #[arg(long, value_name = "N", num_args = 0..=1, require_equals = true, default_missing_value = "40",
          conflicts_with_all = ["prefixes", "suffixes"], value_parser = clap::value_parser!(u32).range(0..=100_000))]
    cascade: Option<u32>,
    /// Print a boundary where its probability is at least P: the lower, the more boundaries, and the more wrong ones; 0: as the models vote
    #[arg(long, value_name = "P", default_value_t = THRESHOLD, value_parser = super::train::share)]
    threshold: f64,
    /// Grammar, as listed by `grammaton grammars`; auto: morph1, or another one that short trials show to agree better with annotated lines
    #[arg(long, value_name = "NAME", default_value = AUTO)]
    grammar: String,
    /// Format and cleaning of the words
    #[command(flatten)]
    reading: ReadingOptions,
    /// Chains and results
    #[command(flatten)]
    sampling: SamplingOptions,
}

/// Runs the command.
pub fn run(args: &Args, log: Form) -> Result<Answer> {
    let text = given_text(&args.words, Contents::Words, &args.reading, "morphemes")?;
    let known =
        Known { prefixes: args.prefixes.clone(), suffixes: args.suffixes.clone(), stems: args.stems.clone() };
    let folder = args.sampling.folder(&text)?;
    if let Some(answer) = args.sampling.resume(&folder, &text, log)? {
        return Ok(answer);
    }
    let mut progress = Progress::new(args.sampling.style(log));
    let sampling = args.sampling.sampling();
    let model = model(&text, &args.grammar, &known, args.cascade, args.threshold, &sampling, &mut progress)?;
    args.sampling.segment(&folder, &text, &model, log)
}
