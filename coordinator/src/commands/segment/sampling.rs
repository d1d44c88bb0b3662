//! A text segmented by sampling: the arguments that commands share, the job that they write, and how it is run.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context as _, Result, anyhow, bail, ensure};
use proto::log::Form;
use shared::grammar::auto::{Auto, NAMES};

use super::budget;
use super::text::Text;
use crate::commands::Answer;
use crate::commands::train::{End, FleetOptions, seconds, train_job};
use crate::job::Job;
use crate::metrics::MBR_VOTE;
use crate::nearest::nearest;
use crate::progress::Style;
use crate::run::Earlier;
use crate::streams;

/// Arguments about chains and results.
#[derive(clap::Args, Debug)]
pub struct Sampling {
    /// Folder for the results: segmented.txt, report.html, job.toml, … [default: print the segmentation only]
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Number of chains, whose samples vote
    #[arg(long, value_name = "N", default_value_t = 4, value_parser = clap::value_parser!(u16).range(1..=1000))]
    chains: u16,
    /// Number of sweeps of each chain
    #[arg(long, value_name = "N", default_value_t = 50, value_parser = clap::value_parser!(u32).range(2..=1_000_000))]
    sweeps: u32,
    /// Time for the sweeps in seconds, from which their number is estimated; job.toml has the number
    #[arg(long, value_name = "N", conflicts_with = "sweeps", value_parser = seconds)]
    seconds: Option<Duration>,
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

/// The model of a job.
pub struct ModelFile {
    /// The grammar.
    pub grammar: Auto,
    /// Further keys of `[model]` with their values.
    pub keys: Vec<(&'static str, String)>,
    /// Further files of the job, each with its name in the folder.
    pub files: Vec<(&'static str, String)>,
}

/// The grammar of that name, with or without `auto:`.
pub fn grammar(name: &str) -> Result<Auto> {
    let name = name.strip_prefix("auto:").unwrap_or(name);
    name.parse().map_err(|_| match nearest(name, NAMES) {
        Some(near) => anyhow!("--grammar {name}: not a grammar; did you mean \"{near}\"?"),
        None => anyhow!("--grammar {name}: not a grammar; `grammaton grammars` lists them"),
    })
}

const CORPUS: &str = "corpus.txt";
const JOB: &str = "job.toml";
/// The segmentation, as the text is written.
const SEGMENTED: &str = "segmented.txt";

impl Sampling {
    /// Segments `text` with `model`: writes a corpus and a job, trains the job, and prints the vote of its chains.
    pub fn segment(&self, text: &Text, model: &ModelFile, log: Form) -> Result<Answer> {
        ensure!(
            text.n_symbols() > 1,
            "{}: the text has a single symbol, so that every segmentation is as good as another; give a text of more",
            text.name()
        );
        let temporary = tempfile::tempdir().context("cannot create a temporary folder")?;
        let dir = self.out.as_deref().unwrap_or(temporary.path());
        ensure!(!dir.as_os_str().is_empty(), "--out must be the path of a folder, found an empty one");
        let earlier = if self.overwrite { Earlier::Overwrite } else { Earlier::Refuse };
        if earlier == Earlier::Refuse && dir.join("summary.json").exists() {
            bail!(
                "{}: the folder has a finished result; replace it with --overwrite, or choose another folder with --out DIR",
                dir.display()
            );
        }
        fs::create_dir_all(dir).with_context(|| format!("{}: cannot create the folder", dir.display()))?;
        write(dir, CORPUS, &text.corpus_file()?)?;
        model.files.iter().try_for_each(|(name, content)| write(dir, name, content))?;
        let sweeps = match self.seconds {
            Some(seconds) => {
                let probe = Job::parse(&self.job(text, model, budget::PROBE_SWEEPS), JOB, dir, &[])?;
                budget::sweeps(&probe, seconds, self.workers)?
            }
            None => self.sweeps as usize,
        };
        write(dir, JOB, &self.job(text, model, sweeps))?;
        let file = dir.join(JOB);
        let style = Style::choose(self.quiet || log == Form::Json, false);
        let options = FleetOptions { workers: self.workers, ..FleetOptions::default() };
        match train_job(&Job::load(&file, &[])?, &file, earlier, style, &options)? {
            End::Stopped(signal) => {
                if self.out.is_some() {
                    streams::tell(&format!("to go on: grammaton train {} --resume", file.display()));
                }
                return Ok(Answer::Stopped(signal));
            }
            End::Finished | End::Earlier => {}
        }
        let segmented = text.segmented(&dir.join(format!("segmentation.{MBR_VOTE}.txt")))?;
        match self.out {
            Some(_) => {
                write(dir, SEGMENTED, &segmented)?;
                streams::print(&format!("{}\n", dir.join(SEGMENTED).display()))?;
            }
            None => streams::print(&segmented)?,
        }
        Ok(Answer::Yes)
    }

    /// The job file of a run of so many sweeps, each a round.
    fn job(&self, text: &Text, model: &ModelFile, sweeps: usize) -> String {
        let ModelFile { grammar, keys, .. } = model;
        let keys: String =
            keys.iter().map(|(key, value)| format!("{key} = {}\n", toml::Value::from(&value[..]))).collect();
        let unit = text.unit_name();
        let Sampling { chains, seed, .. } = self;
        format!(
            "# Written by grammaton. `grammaton train {JOB} --out again` gives the same result.\n\
             [model]\ngrammar = \"auto:{grammar}\"\n{keys}\n\
             [corpus]\npath = \"{CORPUS}\"\nunit = \"{unit}\"\n\n\
             [inference]\nmethod = \"hastings\"\ndiscount = 0.0001\nconcentration = 10000.0\n\
             max_rounds = {sweeps}\nkeep_every = 2\nrestarts = {chains}\nseed = {seed}\n\n\
             [output]\ndir = \".\"\ndecoders = [\"mbr\"]\nscore_every = 0\n"
        )
    }
}

fn write(dir: &Path, name: &str, text: &str) -> Result<()> {
    let path = dir.join(name);
    fs::write(&path, text).with_context(|| format!("{}: cannot write the file", path.display()))
}
