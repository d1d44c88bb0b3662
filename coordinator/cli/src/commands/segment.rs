//! `grammaton segment`: finds the words of a text, without a job file.
//!
//! In: unsegmented utterances. Out: the same lines with spaces between words. The command writes a corpus file and a job file, trains the
//! job as `grammaton train` does, and prints one of its segmentations; so `grammaton train` on the job file gives the same result.

pub mod reading;
pub mod sampling;

use std::path::{Path, PathBuf};

use anyhow::{Result, anyhow};
use basics::streams;
use grammaton::data::corpus::sniff::Contents;
use proto::log::Form;
use segment::model::{AUTO, Known, model};
use segment::text::Text;
use training::input::format::Ambiguous;
use training::progress::Progress;

use self::reading::ReadingOptions;
use self::sampling::SamplingOptions;
use super::Answer;

/// Arguments of `segment`.
#[derive(clap::Args, Debug)]
#[command(after_help = "Examples:\n\
    \x20 grammaton segment text.txt\n\
    \x20 grammaton segment text.txt --out words --seconds 600\n\
    \x20 grammaton segment phonemes.txt --unit token --grammar colloc-syllable --quiet")]
pub struct Args {
    /// Text with one utterance per line, plain, .gz or .zst; `-` for standard input. Spaces in its lines are gold word boundaries, which are
    /// scored against and otherwise ignored
    text: PathBuf,
    /// Grammars, as listed by `grammaton grammars`, with commas between them, whose models vote; auto: chosen by short trials
    /// on the text
    #[arg(long, value_name = "NAMES", default_value = AUTO, value_delimiter = ',')]
    grammar: Vec<String>,
    /// Vowels, with spaces between them [default: found in the text]
    #[arg(long, value_name = "SYMBOLS", default_value = "")]
    vowels: String,
    /// Symbols that mark stress, with spaces between them, for a grammar with stress [default: ˈ ˌ]
    #[arg(long, value_name = "SYMBOLS", default_value = "", hide_default_value = true)]
    stress: String,
    /// File of known words, one per line
    #[arg(long, value_name = "FILE")]
    words: Option<PathBuf>,
    /// Format and cleaning of the text
    #[command(flatten)]
    reading: ReadingOptions,
    /// Chains and results
    #[command(flatten)]
    sampling: SamplingOptions,
}

/// Runs the command.
pub fn run(args: &Args, log: Form) -> Result<Answer> {
    let text = given_text(&args.text, Contents::Utterances, &args.reading, "segment")?;
    let folder = args.sampling.folder(&text)?;
    if let Some(answer) = args.sampling.resume(&folder, &text, log)? {
        return Ok(answer);
    }
    let mut progress = Progress::new(args.sampling.style(log));
    let known = Known { vowels: &args.vowels, words: args.words.as_deref() };
    let mut model = model(&text, &args.grammar, known, &args.sampling.sampling(), &mut progress)?;
    if !args.stress.trim().is_empty() {
        model.keys.push(("stress", args.stress.trim().into()));
    }
    args.sampling.segment(&folder, &text, &model, log)
}

/// The text at `path` for a command of that name, with notices.
pub fn given_text(path: &Path, contents: Contents, options: &ReadingOptions, command: &str) -> Result<Text> {
    let text = Text::read(path, contents, &options.keys()?).map_err(|error| {
        match error.downcast::<Ambiguous>() {
            Ok(ambiguous) => {
                anyhow!(ambiguous.of_command(&format!("grammaton {command} {}", path.display())))
            }
            Err(error) => error,
        }
    })?;
    text.notices.iter().for_each(|notice| streams::tell(&format!("notice: {notice}")));
    Ok(text)
}
