//! `grammaton segment`: finds the words of a text, without a job file.
//!
//! In: unsegmented utterances. Out: the same lines with spaces between words. The command writes a corpus file and a job file, trains the
//! job as `grammaton train` does, and prints one of its segmentations; so `grammaton train` on the job file gives the same result.

mod budget;
pub mod sampling;
pub mod text;

use std::path::PathBuf;

use anyhow::Result;
use proto::log::Form;

use super::Answer;
use super::eval::UnitName;
use sampling::{ModelFile, Sampling};
use text::Text;

/// Arguments of `segment`.
#[derive(clap::Args, Debug)]
pub struct Args {
    /// Text with one utterance per line, plain or .gz; `-` for standard input. Spaces in its lines are gold word boundaries, which are
    /// scored against and otherwise ignored
    text: PathBuf,
    /// Unit of a symbol: char, with spaces between words, or token (phonemes between spaces), with | between words
    #[arg(long, value_enum, default_value = "char")]
    unit: UnitName,
    /// Grammar, as listed by `grammaton grammars`; auto: chosen by the number of symbols
    #[arg(long, value_name = "NAME", default_value = AUTO)]
    grammar: String,
    /// Vowels, with spaces between them [default: found in the text]
    #[arg(long, value_name = "SYMBOLS", default_value = "")]
    vowels: String,
    /// Chains and results
    #[command(flatten)]
    sampling: Sampling,
}

/// The choice of a grammar by the text.
const AUTO: &str = "auto";
/// Number of symbols above which a script writes more than single sounds, as syllables or morphemes.
const MANY_SYMBOLS: usize = 200;

/// Runs the command.
pub fn run(args: &Args, log: Form) -> Result<Answer> {
    let text = Text::read(&args.text, args.unit.into())?;
    let grammar = sampling::grammar(match &args.grammar[..] {
        AUTO if text.n_symbols() > MANY_SYMBOLS => "colloc",
        AUTO => "colloc3-syllable",
        name => name,
    })?;
    let vowels = args.vowels.trim();
    let keys = if vowels.is_empty() { Vec::new() } else { vec![("vowels", vowels.to_owned())] };
    args.sampling.segment(&text, &ModelFile { grammar, keys, files: Vec::new() }, log)
}
