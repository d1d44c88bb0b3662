//! A text segmented by sampling: the arguments that commands share, the job that they write, and how it is run.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context as _, Result, anyhow, bail, ensure};
use proto::log::Form;
use shared::grammar::auto::{Auto, NAMES};

use super::effort::{self, Effort};
use super::text::Text;
use crate::commands::Answer;
use crate::commands::train::{End, FleetOptions, seconds, train_job};
use crate::job::Job;
use crate::nearest::nearest;
use crate::progress::Style;
use crate::run::Earlier;
use crate::streams;

/// Arguments about chains and results.
#[derive(clap::Args, Clone, Debug, Default)]
pub struct Sampling {
    /// Folder for the results: segmented.txt, report.html, job.toml, … [default: print the segmentation only]
    #[arg(help_heading = "Output", long, value_name = "DIR")]
    pub out: Option<PathBuf>,
    /// Number of chains of every grammar, whose models vote [default: chosen with the grammar; more with --seconds]
    #[arg(help_heading = "Sampling", long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1000))]
    pub chains: Option<u16>,
    /// Number of sweeps of each chain [default: chosen with the grammar]
    #[arg(help_heading = "Sampling", long, value_name = "N", value_parser = clap::value_parser!(u32).range(2..=1_000_000))]
    pub sweeps: Option<u32>,
    /// Time for the choice of a grammar and for the sweeps in seconds, from which the numbers of sweeps and chains are estimated; job.toml has them
    #[arg(help_heading = "Sampling", long, value_name = "N", conflicts_with = "sweeps", value_parser = seconds)]
    pub seconds: Option<Duration>,
    /// Seed of all random choices
    #[arg(help_heading = "Sampling", long, value_name = "N", default_value_t = 1)]
    pub seed: u64,
    /// Number of compute threads [default: all cores]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    pub workers: Option<u16>,
    /// Replace the files of an earlier run in the folder
    #[arg(help_heading = "Output", long, requires = "out")]
    pub overwrite: bool,
    /// Show no progress
    #[arg(help_heading = "Output", long, short)]
    pub quiet: bool,
}

/// The model of a job.
pub struct ModelFile {
    /// The grammar.
    pub grammar: Auto,
    /// Further grammars, whose models vote with its models.
    pub voters: Vec<Auto>,
    /// Number and length of its chains unless the command line says.
    pub effort: Effort,
    /// Number of prefixes and of suffixes that a first run finds; 0 without one.
    pub cascade: u32,
    /// Why these grammars; for the job file.
    pub reason: Option<String>,
    /// Time that the choice of the model took, which is left out of the time for its sweeps.
    pub spent: Duration,
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
/// The begin of every job file that the commands write.
const MARK: &str = "# Written by grammaton";
/// The segmentation, as the text is written.
const SEGMENTED: &str = "segmented.txt";

/// A folder for the results of a command.
pub enum Folder {
    /// Named on the command line.
    Given(PathBuf),
    /// Removed when the command ends.
    Temporary(tempfile::TempDir),
}

impl Folder {
    /// Its path.
    pub fn path(&self) -> &Path {
        match self {
            Folder::Given(path) => path,
            Folder::Temporary(dir) => dir.path(),
        }
    }
}

impl Sampling {
    /// How progress is shown.
    pub fn style(&self, log: Form) -> Style {
        Style::choose(self.quiet || log == Form::Json, false)
    }

    /// The compute threads of this process.
    pub fn fleet(&self) -> FleetOptions {
        FleetOptions { workers: self.workers, ..FleetOptions::default() }
    }

    /// Segments `text` with `model` in a folder that [`Sampling::folder`] gave: writes a corpus and a job, trains the job, and prints the vote
    /// of its chains.
    pub fn segment(&self, folder: &Folder, text: &Text, model: &ModelFile, log: Form) -> Result<Answer> {
        let dir = folder.path();
        if let End::Stopped(signal) = self.train(dir, text, model, log)? {
            if self.out.is_some() {
                let file = dir.join(JOB);
                streams::tell(&format!("to go on: grammaton train {} --resume", file.display()));
            }
            return Ok(Answer::Stopped(signal));
        }
        let segmented = text.segmented_in(dir)?;
        match self.out {
            Some(_) => {
                write(dir, SEGMENTED, &segmented)?;
                streams::print(&format!("{}\n", dir.join(SEGMENTED).display()))?;
            }
            None => streams::print(&segmented)?,
        }
        Ok(Answer::Yes)
    }

    /// The folder for the results, which has no finished result unless it may be replaced.
    pub fn folder(&self) -> Result<Folder> {
        let Some(dir) = &self.out else {
            return Ok(Folder::Temporary(tempfile::tempdir().context("cannot create a temporary folder")?));
        };
        ensure!(!dir.as_os_str().is_empty(), "--out must be the path of a folder, found an empty one");
        check_own(dir)?;
        if !self.overwrite && dir.join("summary.json").exists() {
            bail!(
                "{}: the folder has a finished result; replace it with --overwrite, or choose another folder with --out DIR",
                dir.display()
            );
        }
        Ok(Folder::Given(dir.clone()))
    }

    /// Writes the corpus and the job of `text` to `dir`, and trains the job.
    fn train(&self, dir: &Path, text: &Text, model: &ModelFile, log: Form) -> Result<End> {
        let earlier = if self.overwrite { Earlier::Overwrite } else { Earlier::Refuse };
        let file = self.write_job(text, model, dir)?;
        train_job(&Job::load(&file, &[])?, &file, earlier, self.style(log), &self.fleet())
    }

    /// Writes the corpus and the job of `text` to `dir`, and returns the path of the job file.
    pub fn write_job(&self, text: &Text, model: &ModelFile, dir: &Path) -> Result<PathBuf> {
        check_own(dir)?;
        fs::create_dir_all(dir).with_context(|| format!("{}: cannot create the folder", dir.display()))?;
        write(dir, CORPUS, &text.corpus_file()?)?;
        model.files.iter().try_for_each(|(name, content)| write(dir, name, content))?;
        let mut effort = self.effort(model);
        if let Some(seconds) = self.seconds {
            let probe = Effort { sweeps: effort::PROBE_SWEEPS, ..effort };
            let probe = Job::parse(&self.job(text, model, probe), JOB, dir, &[])?;
            // Of a cascade the second run is measured; the first one has as many sweeps.
            let n_runs = if model.cascade > 0 { 2 } else { 1 };
            let time = seconds.saturating_sub(model.spent) / n_runs;
            let config = self.fleet().config()?;
            let n_threads = config.local_workers;
            effort.sweeps = effort::sweeps(&probe, time, config)?;
            if self.chains.is_none() {
                effort = effort::spread(effort, probe.n_runs(), n_threads);
            }
        }
        write(dir, JOB, &self.job(text, model, effort))?;
        Ok(dir.join(JOB))
    }

    /// The effort of `model`, with what the command line says.
    fn effort(&self, model: &ModelFile) -> Effort {
        let sweeps = self.sweeps.unwrap_or(model.effort.sweeps);
        match self.chains {
            Some(chains) => Effort { chains, voter_chains: None, sweeps },
            None => Effort { sweeps, ..model.effort },
        }
    }

    /// The job file of a run with this effort; each sweep is a round.
    fn job(&self, text: &Text, model: &ModelFile, effort: Effort) -> String {
        let ModelFile { grammar, voters, keys, reason, .. } = model;
        let Effort { chains, voter_chains, sweeps } = effort;
        let reason = reason.as_ref().map(|reason| format!("# {reason}\n")).unwrap_or_default();
        let keys: String =
            keys.iter().map(|(key, value)| format!("{key} = {}\n", toml::Value::from(&value[..]))).collect();
        let unit = text.unit_name();
        let voters: Vec<String> = voters.iter().map(|voter| format!("\"auto:{voter}\"")).collect();
        let voters = match voters.is_empty() {
            true => String::new(),
            false => format!("voters = [{}]\n", voters.join(", ")),
        };
        let voter_chains = voter_chains.filter(|_| !voters.is_empty());
        let voter_chains = voter_chains.map(|n| format!("voter_chains = {n}\n")).unwrap_or_default();
        let cascade = match model.cascade {
            0 => String::new(),
            n => format!("cascade = {n}\n"),
        };
        let keep_every = effort.keep_every(model.voters.len());
        let (seed, hyperparameters) = (self.seed, hyperparameters(*grammar));
        format!(
            "{MARK}. `grammaton train {JOB} --out again` gives the same result.\n{reason}\
             [model]\ngrammar = \"auto:{grammar}\"\n{voters}{voter_chains}{cascade}{keys}\n\
             [corpus]\npath = \"{CORPUS}\"\nunit = \"{unit}\"\n\n\
             [inference]\nmethod = \"hastings\"\n{hyperparameters}\
             max_rounds = {sweeps}\nkeep_every = {keep_every}\nrestarts = {chains}\nseed = {seed}\n\n\
             [output]\ndir = \".\"\ndecoders = [\"mbr\"]\nscore_every = 0\n"
        )
    }
}

/// Keys of `[inference]` about discounts and concentrations. In grammars of morphemes they start at the means of their priors, which prefer few tables:
/// with those of utterances, chains of fifty sweeps end with a lower log P and find fewer boundaries (docs/results/segment.md).
fn hyperparameters(grammar: Auto) -> &'static str {
    match grammar.has_affixes() {
        true => "discount = 0.5\nconcentration = 1.0\ngamma_shape = 10.0\ngamma_scale = 0.1\n",
        false => "discount = 0.0001\nconcentration = 10000.0\n",
    }
}

/// Files that the commands write, besides those of `train`, and that a user may have in a folder.
const WRITTEN: [&str; 5] = [CORPUS, JOB, SEGMENTED, "prefixes.txt", "suffixes.txt"];

/// Refuses a folder with files of these names that no earlier run wrote: they may be the text itself.
fn check_own(dir: &Path) -> Result<()> {
    let is_ours = fs::read_to_string(dir.join(JOB)).is_ok_and(|job| job.starts_with(MARK));
    match WRITTEN.iter().find(|name| !is_ours && dir.join(name).exists()) {
        Some(name) => bail!(
            "{}: the file would be overwritten; choose another folder with --out DIR",
            dir.join(name).display()
        ),
        None => Ok(()),
    }
}

fn write(dir: &Path, name: &str, text: &str) -> Result<()> {
    let path = dir.join(name);
    fs::write(&path, text).with_context(|| format!("{}: cannot write the file", path.display()))
}
