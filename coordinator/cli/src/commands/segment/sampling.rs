//! Arguments that `segment` and `morphemes` share about chains and results, and how their job is run.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context as _, Result, anyhow, bail, ensure};
use basics::streams;
use proto::log::Form;
use segment::sampling::{CORPUS, JOB, ModelFile, SEGMENTED, Sampling, is_own, names_in, write};
use segment::text::Text;
use training::job::Job;
use training::progress::{Progress, Style, with_names};
use training::run::Earlier;

use crate::commands::Answer;
use crate::commands::train::{End, FleetOptions, seconds, train_with};

/// Arguments about chains and results.
#[derive(clap::Args, Clone, Debug, Default)]
pub struct SamplingOptions {
    /// Folder for the results: segmented.txt, report.html, job.toml, … [default: print the segmentation only]
    #[arg(help_heading = "Output", long, value_name = "DIR")]
    pub out: Option<PathBuf>,
    /// Number of chains of every grammar, whose models vote [default: chosen with the grammar; more with --seconds]
    #[arg(help_heading = "Sampling", long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1000))]
    pub chains: Option<u16>,
    /// Number of sweeps of each chain [default: chosen with the grammar]
    #[arg(help_heading = "Sampling", long, value_name = "N", value_parser = clap::value_parser!(u32).range(2..=1_000_000))]
    pub sweeps: Option<u32>,
    /// Time in seconds for everything: the choice of a grammar, sweeps and results. The numbers of sweeps and chains are estimated from it, and simpler
    /// grammars take the place of those that are too slow; job.toml has what was chosen
    #[arg(help_heading = "Sampling", long, value_name = "N", conflicts_with = "sweeps", value_parser = seconds)]
    pub seconds: Option<Duration>,
    /// Seed of all random choices
    #[arg(help_heading = "Sampling", long, value_name = "N", default_value_t = 1)]
    pub seed: u64,
    /// Number of compute threads [default: all cores]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    pub workers: Option<u16>,
    /// Replace the files of an earlier run in the folder
    #[arg(help_heading = "Output", long, requires = "out", conflicts_with = "resume")]
    pub overwrite: bool,
    /// Resume the run in the folder, which must be of the same text, as its job.toml says; without one, start
    #[arg(help_heading = "Output", long, requires = "out")]
    pub resume: bool,
    /// Show no progress
    #[arg(help_heading = "Output", long, short, conflicts_with = "json")]
    pub quiet: bool,
    /// Show progress as one JSON object per line on standard output
    #[arg(help_heading = "Output", long, requires = "out")]
    pub json: bool,
}

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

impl SamplingOptions {
    /// How progress is shown.
    pub fn style(&self, log: Form) -> Style {
        Style::choose(self.quiet || log == Form::Json && !self.json, self.json)
    }

    /// The chains, without what is printed.
    pub fn sampling(&self) -> Sampling {
        let &SamplingOptions { chains, sweeps, seconds, seed, workers, overwrite, .. } = self;
        Sampling { chains, sweeps, seconds, seed, workers, overwrite }
    }

    /// Segments `text` with `model` in a folder that [`SamplingOptions::folder`] gave: writes a corpus and a job, trains the job, and prints the vote
    /// of its chains.
    pub fn segment(&self, folder: &Folder, text: &Text, model: &ModelFile, log: Form) -> Result<Answer> {
        let dir = folder.path();
        let earlier = if self.overwrite { Earlier::Overwrite } else { Earlier::Refuse };
        let file = self.sampling().write_job(text, model, dir, &mut Progress::new(self.style(log)))?;
        let names =
            model.files.iter().map(|(name, _, given)| (dir.join(name).display().to_string(), given.clone()));
        self.train(&file, dir, text, names.collect(), earlier, log)
    }

    /// Goes on with the run that an earlier command began in the folder; nothing without one, or if this is not asked for.
    pub fn resume(&self, folder: &Folder, text: &Text, log: Form) -> Result<Option<Answer>> {
        let dir = folder.path();
        if !self.resume || !is_own(dir) {
            return Ok(None);
        }
        let corpus = fs::read_to_string(dir.join(CORPUS)).unwrap_or_default();
        ensure!(
            corpus == text.corpus_file()?,
            "{}: the folder has a run of another text; choose another folder with --out DIR",
            dir.display()
        );
        self.train(&dir.join(JOB), dir, text, Vec::new(), Earlier::Resume, log).map(Some)
    }

    /// Trains the job of `text` in the file `job`, and prints the vote of its chains. Messages say the second of `names` for the first.
    fn train(
        &self,
        job: &Path,
        dir: &Path,
        text: &Text,
        names: Vec<(String, String)>,
        earlier: Earlier,
        log: Form,
    ) -> Result<Answer> {
        let names = [names, names_in(dir, text)].concat();
        let progress = Progress::new(self.style(log)).with_names(names.clone());
        let fleet = FleetOptions { workers: self.workers, ..FleetOptions::default() };
        let trained = train_with(&Job::load(job, &[])?, job, earlier, progress, &fleet);
        let ended = trained.map_err(|error| {
            let message = format!("{error:#}");
            let renamed = with_names(&message, &names);
            if renamed == message { error } else { anyhow!(renamed) }
        })?;
        if let End::Stopped(signal) = ended {
            if self.out.is_some() {
                streams::tell("to go on: the same command with --resume");
            }
            return Ok(Answer::Stopped(signal));
        }
        let segmented = text.segmented_in(dir)?;
        match self.out {
            Some(_) => {
                write(dir, SEGMENTED, &segmented)?;
                if !self.json {
                    streams::print(&format!("{}\n", dir.join(SEGMENTED).display()))?;
                }
            }
            None => streams::print(&segmented)?,
        }
        Ok(Answer::Yes)
    }

    /// The folder for the results of `text`, which has no finished result unless that may be replaced or resumed.
    pub fn folder(&self, text: &Text) -> Result<Folder> {
        let Some(dir) = &self.out else {
            return Ok(Folder::Temporary(tempfile::tempdir().context("cannot create a temporary folder")?));
        };
        ensure!(!dir.as_os_str().is_empty(), "--out must be the path of a folder, found an empty one");
        self.sampling().check_own(dir, text)?;
        if !self.overwrite && !self.resume && dir.join("summary.json").exists() {
            bail!(
                "{}: the folder has a finished result; replace it with --overwrite, or choose another folder with --out DIR",
                dir.display()
            );
        }
        Ok(Folder::Given(dir.clone()))
    }
}
