//! `grammaton export`: a segmented text in the formats of other programs.

use std::io::Write as _;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, ensure};
use basics::atomic_write;
use basics::streams::{self, Stdout};
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use training::export::{Format, Kind, Level, Request, Writer};

use super::Answer;

/// Arguments of `export`.
#[derive(clap::Args, Debug)]
#[command(after_help = "Examples:\n\
    \x20 grammaton export results --format json\n\
    \x20 grammaton export results --original session.eaf --out segmented.eaf\n\
    \x20 grammaton export results --original session.TextGrid --tier words --level morphemes --out segmented.TextGrid\n\
    \x20 grammaton export results --format latex-scores")]
pub struct Args {
    /// Results of segment, morphemes or train
    results: PathBuf,
    /// Output format [default: that of --original]
    #[arg(help_heading = "Output", long, value_parser = kind_parser())]
    format: Option<Kind>,
    /// File that the text was made of (CHAT, TextGrid, .eaf, .flextext): the segments are added to it, with all that it has
    #[arg(long, value_name = "FILE")]
    original: Option<PathBuf>,
    /// Tier of --original that has the text; several times for several tiers [default: the only one]
    #[arg(long, value_name = "NAME", requires = "original")]
    tier: Vec<String>,
    /// Decoder of the segmentation [default: the recommended one]
    #[arg(long, value_name = "DECODER")]
    decoder: Option<String>,
    #[command(flatten)]
    writing: Writing,
    /// File for the text [default: standard output]
    #[arg(help_heading = "Output", short, long, value_name = "FILE")]
    out: Option<PathBuf>,
    /// Replace the file of --out
    #[arg(help_heading = "Output", long)]
    overwrite: bool,
}

/// Options of formats of other programs.
#[derive(clap::Args, Clone, Debug, Default)]
pub struct Writing {
    /// What the segments are, in formats of other programs: words of a line, or morphemes of a line that is a word [default: by the names of their nonterminals]
    #[arg(help_heading = "Output", long, value_parser = level_parser())]
    level: Option<Level>,
    /// Code of the language in CHAT and FLExText [default: und]
    #[arg(help_heading = "Output", long, value_name = "CODE", value_parser = language)]
    language: Option<String>,
}

impl Writing {
    /// Whether something is given.
    pub fn is_given(&self) -> bool {
        self.level.is_some() || self.language.is_some()
    }

    /// A writer of this format.
    pub fn writer(&self, format: Format) -> Writer {
        Writer::new(format, self.language.as_deref())
    }

    /// What the segments are: as given, or else by `default`.
    pub fn level(&self, default: impl FnOnce() -> Level) -> Level {
        self.level.unwrap_or_else(default)
    }
}

fn level_parser() -> impl TypedValueParser<Value = Level> {
    PossibleValuesParser::new(["words", "morphemes"])
        .map(|name| if name == "words" { Level::Words } else { Level::Morphemes })
}

/// A code such as `sna` or `qaa-x-spoken`.
fn language(code: &str) -> Result<String, String> {
    let is_of_code = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-';
    let is_code = !code.is_empty() && code.bytes().all(is_of_code);
    if is_code { Ok(code.to_owned()) } else { Err("expected a code of a language, such as sna".to_owned()) }
}

fn kind_parser() -> impl TypedValueParser<Value = Kind> {
    let values = Kind::all().map(|kind| PossibleValue::new(kind.name()).help(kind.about()));
    PossibleValuesParser::new(values).map(|name| Kind::of(&name).expect("a possible value"))
}

/// Runs the command.
pub fn run(args: &Args) -> Result<Answer> {
    if let Some(out) = &args.out {
        let is_original = args.original.as_ref().is_some_and(|original| is_same(original, out));
        ensure!(!is_original, "{}: this is the original file; choose another file with --out", out.display());
        ensure!(
            args.overwrite || !out.exists(),
            "{}: the file exists; choose another with --out, or replace it with --overwrite",
            out.display()
        );
    }
    let Writing { level, language } = args.writing.clone();
    let request = Request {
        kind: args.format,
        original: args.original.clone(),
        tiers: args.tier.clone(),
        decoder: args.decoder.clone(),
        level,
        language,
    };
    let mut out = Out::open(args.out.as_deref())?;
    let notices = training::export::export(&args.results, &request, &mut |text| out.text(text))?;
    out.finish()?;
    notices.iter().for_each(|notice| streams::tell(&format!("notice: {notice}")));
    Ok(Answer::Yes)
}

fn is_same(a: &Path, b: &Path) -> bool {
    matches!((a.canonicalize(), b.canonicalize()), (Ok(a), Ok(b)) if a == b)
}

/// Standard output, or a file that is complete or not there.
enum Out<'a> {
    Standard(Stdout),
    File(tempfile::NamedTempFile, &'a Path),
}

impl Out<'_> {
    fn open(path: Option<&Path>) -> Result<Out<'_>> {
        let Some(path) = path else { return Ok(Out::Standard(Stdout::lock())) };
        let file = atomic_write::create(path);
        Ok(Out::File(file.with_context(|| refused(path))?, path))
    }

    fn text(&mut self, text: &str) -> Result<()> {
        match self {
            Out::Standard(out) => out.text(text),
            Out::File(file, path) => file.write_all(text.as_bytes()).with_context(|| refused(path)),
        }
    }

    fn finish(self) -> Result<()> {
        match self {
            Out::Standard(mut out) => out.flush(),
            Out::File(file, path) => atomic_write::commit(file, path).with_context(|| refused(path)),
        }
    }
}

fn refused(path: &Path) -> String {
    format!("{}: cannot write the file; choose another with --out", path.display())
}
