//! `grammaton segment`: finds the words of a text, without a job file.
//!
//! In: unsegmented utterances. Out: the same lines with spaces between words. The command writes a corpus file and a job file, trains the
//! job as `grammaton train` does, and prints one of its segmentations; so `grammaton train` on the job file gives the same result.

mod budget;
mod text;

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, bail, ensure};
use proto::log::Form;
use shared::grammar::auto::{Auto, NAMES};

use super::Answer;
use super::eval::UnitName;
use super::train::{End, FleetOptions, train_job};
use crate::job::Job;
use crate::metrics::MINIMUM_RISK;
use crate::nearest::nearest;
use crate::progress::Style;
use crate::run::Earlier;
use crate::streams;
use text::Text;

/// Arguments of `segment`.
#[derive(clap::Args, Debug)]
pub struct Args {
    /// Text with one utterance per line, plain or .gz; `-` for standard input. Spaces in its lines are gold word boundaries, which are
    /// scored against and otherwise ignored
    text: PathBuf,
    /// Folder for the results: segmented.txt, report.html, job.toml, … [default: print the segmentation only]
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Unit of a symbol: char, with spaces between words, or token (phonemes between spaces), with | between words
    #[arg(long, value_enum, default_value = "char")]
    unit: UnitName,
    /// Grammar, as listed by `grammaton grammars`; auto: chosen by the number of symbols
    #[arg(long, value_name = "NAME", default_value = AUTO)]
    grammar: String,
    /// Vowels, with spaces between them [default: found in the text]
    #[arg(long, value_name = "SYMBOLS", default_value = "")]
    vowels: String,
    /// Number of chains, whose samples vote
    #[arg(long, value_name = "N", default_value_t = 4, value_parser = clap::value_parser!(u16).range(1..=1000))]
    chains: u16,
    /// Number of sweeps of each chain
    #[arg(long, value_name = "N", default_value_t = 50, value_parser = clap::value_parser!(u32).range(2..=1_000_000))]
    sweeps: u32,
    /// Time for the sweeps in seconds, from which their number is estimated; job.toml has the number
    #[arg(long, value_name = "N", conflicts_with = "sweeps", value_parser = super::train::seconds)]
    seconds: Option<std::time::Duration>,
    /// Seed of all random choices
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    /// Number of compute threads [default: all cores]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    workers: Option<u16>,
    /// Replace the files of an earlier run in the folder
    #[arg(long, requires = "out")]
    overwrite: bool,
    /// Show no progress
    #[arg(long, short)]
    quiet: bool,
}

/// The choice of a grammar by the text.
const AUTO: &str = "auto";

const CORPUS: &str = "corpus.txt";
const JOB: &str = "job.toml";
/// The segmentation, as the text is written.
const SEGMENTED: &str = "segmented.txt";

/// Runs the command.
pub fn run(args: &Args, log: Form) -> Result<Answer> {
    let text = Text::read(&args.text, args.unit.into())?;
    ensure!(
        text.n_symbols() > 1,
        "{}: the text has a single symbol, so that every segmentation is as good as another; give a text of more",
        text.name()
    );
    let grammar = grammar(&args.grammar, &text)?;
    let temporary = tempfile::tempdir().context("cannot create a temporary folder")?;
    let dir = args.out.as_deref().unwrap_or(temporary.path());
    ensure!(!dir.as_os_str().is_empty(), "--out must be the path of a folder, found an empty one");
    let earlier = if args.overwrite { Earlier::Overwrite } else { Earlier::Refuse };
    if earlier == Earlier::Refuse && dir.join("summary.json").exists() {
        bail!(
            "{}: the folder has a finished result; replace it with --overwrite, or choose another folder with --out DIR",
            dir.display()
        );
    }
    fs::create_dir_all(dir).with_context(|| format!("{}: cannot create the folder", dir.display()))?;
    write(dir, CORPUS, &text.corpus_file()?)?;
    let sweeps = match args.seconds {
        Some(seconds) => {
            let probe = job(args, &text, grammar, budget::PROBE_ROUNDS * SWEEPS as usize);
            budget::rounds(&parsed(&probe, dir)?, seconds, args.workers)? * SWEEPS as usize
        }
        None => args.sweeps as usize,
    };
    write(dir, JOB, &job(args, &text, grammar, sweeps))?;
    let file = dir.join(JOB);
    let style = Style::choose(args.quiet || log == Form::Json, false);
    let options = FleetOptions { workers: args.workers, ..FleetOptions::default() };
    match train_job(&Job::load(&file, &[])?, &file, earlier, style, &options)? {
        End::Stopped(signal) => return Ok(Answer::Stopped(signal)),
        End::Finished | End::Earlier => {}
    }
    let segmented = text.segmented(&dir.join(format!("segmentation.{MINIMUM_RISK}.txt")))?;
    match args.out {
        Some(_) => {
            write(dir, SEGMENTED, &segmented)?;
            streams::print(&format!("{}\n", dir.join(SEGMENTED).display()))?;
        }
        None => streams::print(&segmented)?,
    }
    Ok(Answer::Yes)
}

/// Number of symbols above which a script writes more than single sounds, as syllables or morphemes.
const MANY_SYMBOLS: usize = 200;

/// The grammar of that name, without `auto:`. Syllables are for alphabets.
fn grammar(name: &str, text: &Text) -> Result<Auto> {
    let name = match name {
        AUTO if text.n_symbols() > MANY_SYMBOLS => "colloc",
        AUTO => "colloc3-syllable",
        name => name.strip_prefix("auto:").unwrap_or(name),
    };
    name.parse().map_err(|_| match nearest(name, NAMES) {
        Some(near) => anyhow::anyhow!("--grammar {name}: not a grammar; did you mean \"{near}\"?"),
        None => anyhow::anyhow!("--grammar {name}: not a grammar; `grammaton grammars` lists them"),
    })
}

/// Sweeps of a round.
const SWEEPS: u32 = 1;

/// The job file of a run of so many sweeps.
fn job(args: &Args, text: &Text, grammar: Auto, sweeps: usize) -> String {
    let vowels = match args.vowels.trim() {
        "" => String::new(),
        vowels => format!("vowels = {}\n", toml::Value::from(vowels)),
    };
    let unit = text.unit_name();
    let Args { chains, seed, .. } = args;
    format!(
        "# Written by `grammaton segment`. `grammaton train {JOB} --out again` gives the same result.\n\
         [model]\ngrammar = \"auto:{grammar}\"\n{vowels}\n\
         [corpus]\npath = \"{CORPUS}\"\nunit = \"{unit}\"\n\n\
         [inference]\nmethod = \"hastings\"\ndiscount = 0.0001\nconcentration = 10000.0\n\
         max_rounds = {sweeps}\nkeep_every = 2\nrestarts = {chains}\nseed = {seed}\n\n\
         [output]\ndir = \".\"\ndecoders = [\"mbr\"]\nscore_every = 0\n"
    )
}

fn parsed(job: &str, dir: &Path) -> Result<Job> {
    Ok(Job::parse(job, JOB, dir, &[])?)
}

fn write(dir: &Path, name: &str, text: &str) -> Result<()> {
    let path = dir.join(name);
    fs::write(&path, text).with_context(|| format!("{}: cannot write the file", path.display()))
}
