//! `grammaton dependencies`: finds the heads of words, without a job file.
//!
//! In: CoNLL-U, or a word, its tag and perhaps its head a line, or with induced tags a text. Out: the same file with the heads that were found. The command writes a corpus file and a
//! job file, and trains the job as `grammaton train` does.

use std::path::PathBuf;

use anyhow::{Context as _, Result, anyhow, bail, ensure};
use basics::streams;
use grammaton::data::dependency::Tags;
use proto::log::Form;
use segment::dependencies::{self, FOUND, Options, Parsing, TagSource};
use segment::sampling::write;
use training::job::Job;
use training::progress::{Progress, Style, with_names};
use training::run::Earlier;

use super::Answer;
use super::segment::sampling::Folder;
use super::train::{End, FleetOptions, train_with};

/// Arguments of `dependencies`.
#[derive(clap::Args, Debug)]
#[command(after_help = "Examples:\n\
    \x20 grammaton dependencies treebank.conllu --out heads\n\
    \x20 grammaton dependencies tagged.conllu --rules none --quiet\n\
    \x20 grammaton dependencies raw.txt --tags induce --out heads\n\
    \x20 grammaton dependencies partly.conllu --constrain --out completed")]
pub struct Args {
    /// Tagged sentences: CoNLL-U, or a word and its tag a line with a tab between them and a blank line after each sentence; with --tags induce also text
    /// with one sentence a line and spaces between words; plain, .gz or .zst;
    /// `-` for standard input. Heads that all words have are scored against and otherwise ignored
    file: PathBuf,
    /// Tags: a column of the file, or classes of words that are learned from the text [default: upos if all words have one, induce if no word has any, else xpos]
    #[arg(long, value_enum)]
    tags: Option<TagChoice>,
    /// Rules that say which trees are probable: those of universal tags (ud), a file in TOML with rules = [...], or none, which with universal tags
    /// lets counts of the text say which tags govern [default: ud for universal tags, else none]
    #[arg(long, value_name = "none|ud|FILE")]
    rules: Option<String>,
    /// Find trees that have the heads of the file; words whose head is _ may have any
    #[arg(long)]
    constrain: bool,
    /// Folder for the results: dependencies.conllu, report.html, job.toml, model, … [default: print the sentences only]
    #[arg(help_heading = "Output", long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Number of compute threads [default: all cores]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    workers: Option<u16>,
    /// Replace the files of an earlier run in the folder
    #[arg(help_heading = "Output", long, requires = "out")]
    overwrite: bool,
    /// Show no progress
    #[arg(help_heading = "Output", long, short, conflicts_with = "json")]
    quiet: bool,
    /// Show progress as one JSON object per line on standard output
    #[arg(help_heading = "Output", long, requires = "out")]
    json: bool,
}

/// Where tags are from.
#[derive(Clone, Copy, PartialEq, Eq, Debug, clap::ValueEnum)]
enum TagChoice {
    /// Universal tags
    Upos,
    /// Language-specific tags
    Xpos,
    /// Classes of words in similar contexts
    Induce,
}

/// Runs the command.
pub fn run(args: &Args, log: Form) -> Result<Answer> {
    let tags = args.tags.map(|tags| match tags {
        TagChoice::Upos => TagSource::Column(Tags::Upos),
        TagChoice::Xpos => TagSource::Column(Tags::Xpos),
        TagChoice::Induce => TagSource::Induced,
    });
    let rules = args.rules.as_deref().map(dependencies::rules).transpose()?;
    let options = Options { tags, rules, constrain: args.constrain, overwrite: args.overwrite };
    let parsing = Parsing::read(&args.file, options)?;
    parsing.notices.iter().for_each(|notice| streams::tell(&format!("notice: {notice}")));
    let folder = match &args.out {
        None => Folder::Temporary(tempfile::tempdir().context("cannot create a temporary folder")?),
        Some(dir) => {
            ensure!(!dir.as_os_str().is_empty(), "--out must be the path of a folder, found an empty one");
            if !args.overwrite && dir.join("summary.json").exists() {
                bail!(
                    "{}: the folder has a finished result; replace it with --overwrite, or choose another folder with --out DIR",
                    dir.display()
                );
            }
            Folder::Given(dir.clone())
        }
    };
    let dir = folder.path();
    let job = parsing.write_job(dir)?;
    let names = parsing.names_in(dir);
    let style = Style::choose(args.quiet || log == Form::Json && !args.json, args.json);
    let progress = Progress::new(style).with_names(names.clone());
    let fleet = FleetOptions { workers: args.workers, ..FleetOptions::default() };
    let earlier = if args.overwrite { Earlier::Overwrite } else { Earlier::Refuse };
    let trained = train_with(&Job::load(&job, &[])?, &job, earlier, progress, &fleet);
    let ended = trained.map_err(|error| {
        let message = format!("{error:#}");
        let renamed = with_names(&message, &names);
        if renamed == message { error } else { anyhow!(renamed) }
    })?;
    if let End::Stopped(signal) = ended {
        return Ok(Answer::Stopped(signal));
    }
    let found = parsing.found_in(dir)?;
    match &args.out {
        Some(_) => {
            write(dir, FOUND, &found)?;
            if !args.json {
                streams::print(&format!("{}\n", dir.join(FOUND).display()))?;
            }
        }
        None => streams::print(&found)?,
    }
    Ok(Answer::Yes)
}
