//! `grammaton morphemes`: finds the morphemes of words, without a job file.
//!
//! In: words, and affixes if some are known. Out: the same lines with spaces between morphemes, as by [`super::segment`].

use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Result, ensure};
use grammaton::data::corpus::sniff::Contents;
use proto::log::Form;
use segment::effort::Effort;
use segment::sampling::{self, ModelFile};
use training::input;

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
    /// Run twice: the N prefixes and N suffixes that a first run with morph15 uses most are known to the second [without N: 40]
    #[arg(long, value_name = "N", num_args = 0..=1, require_equals = true, default_missing_value = "40",
          conflicts_with_all = ["prefixes", "suffixes"], value_parser = clap::value_parser!(u32).range(1..=100_000))]
    cascade: Option<u32>,
    /// Grammar: morph1, or another that `grammaton grammars` lists
    #[arg(long, value_name = "NAME", default_value = "morph1")]
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
    let grammar = sampling::grammar(&args.grammar)?;
    let cascade = args.cascade.unwrap_or(0);
    ensure!(
        cascade == 0 || grammar.has_affixes(),
        "--cascade: {grammar} has no affixes; choose a grammar of morphemes, such as morph1"
    );
    let folder = args.sampling.folder(&text)?;
    if let Some(answer) = args.sampling.resume(&folder, &text, log)? {
        return Ok(answer);
    }
    let (mut keys, mut files) = (Vec::new(), Vec::new());
    for (key, file, path) in
        [("prefixes", "prefixes.txt", &args.prefixes), ("suffixes", "suffixes.txt", &args.suffixes)]
    {
        if let Some(path) = path {
            keys.push((key, file.to_owned()));
            let name = path.display().to_string();
            files.push((file, input::text(path, &name, "affixes")?, name));
        }
    }
    let (voters, simpler, reason, spent) = (Vec::new(), Vec::new(), None, Duration::ZERO);
    let model = ModelFile { grammar, voters, simpler, effort: EFFORT, cascade, reason, spent, keys, files };
    args.sampling.segment(&folder, &text, &model, log)
}

/// Several short chains.
const EFFORT: Effort = Effort { chains: 4, voter_chains: None, sweeps: 50 };
