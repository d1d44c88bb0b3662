//! `grammaton morphemes`: finds the morphemes of words, without a job file.
//!
//! In: words, and affixes if some are known. Out: the same lines with spaces between morphemes, as by [`super::segment`].

use std::path::PathBuf;

use anyhow::Result;
use proto::log::Form;

use super::Answer;
use super::eval::UnitName;
use super::segment::sampling::{self, Effort, ModelFile, Sampling};
use super::segment::text::Text;
use crate::input;

/// Arguments of `morphemes`.
#[derive(clap::Args, Debug)]
#[command(after_help = "Examples:\n\
    \x20 grammaton morphemes words.txt\n\
    \x20 grammaton morphemes words.txt --suffixes suffixes.txt --out morphemes")]
pub struct Args {
    /// Words, one a line, plain or .gz; `-` for standard input. Spaces in a line are gold morpheme boundaries, which are scored against and
    /// otherwise ignored
    words: PathBuf,
    /// File of known prefixes, one a line
    #[arg(long, value_name = "FILE")]
    prefixes: Option<PathBuf>,
    /// File of known suffixes, one a line
    #[arg(long, value_name = "FILE")]
    suffixes: Option<PathBuf>,
    /// Unit of a symbol: char, with spaces between morphemes, or token, with | between morphemes
    #[arg(long, value_enum, default_value = "char")]
    unit: UnitName,
    /// Grammar: morph1 or morph15, or another that `grammaton grammars` lists
    #[arg(long, value_name = "NAME", default_value = "morph15")]
    grammar: String,
    /// Chains and results
    #[command(flatten)]
    sampling: Sampling,
}

/// Runs the command.
pub fn run(args: &Args, log: Form) -> Result<Answer> {
    let text = Text::read(&args.words, args.unit.into())?;
    let grammar = sampling::grammar(&args.grammar)?;
    let (mut keys, mut files) = (Vec::new(), Vec::new());
    let given = [("prefixes", "prefixes.txt", &args.prefixes), ("suffixes", "suffixes.txt", &args.suffixes)];
    for (key, name, path) in given {
        if let Some(path) = path {
            keys.push((key, name.to_owned()));
            files.push((name, input::text(path, &path.display().to_string(), "affixes")?));
        }
    }
    args.sampling.segment(&text, &ModelFile { grammar, voters: Vec::new(), effort: EFFORT, keys, files }, log)
}

/// Several short chains.
const EFFORT: Effort = Effort { chains: 4, sweeps: 50 };
