//! One job, from its file to its folder of results: what `train` does once, and a service for each of its jobs.
//!
//! In: a checked [`Job`], and how it is trained. Out: the output folder, and events on the way. The caller chooses
//! the fleet, and further observers.

use std::path::Path;

use anyhow::{Result, bail};
use fleet::{Fleet, FleetConfig, FleetError, Map, engine_with};
use tempfile::TempDir;

use crate::cascade::First;
use crate::choice;
use crate::events::{All, Observer, RunEvent};
use crate::job::{Job, OutputTable};
use crate::metrics::{RoundMetrics, Summary};
use crate::outcome::{FleetUse, Outcome};
use crate::output::Output;
use crate::train::checkpoint::Checkpoints;
use crate::train::group::Inputs;
use crate::train::{spill, train};

/// A job that may write to its folder.
pub struct Run<'a> {
    job: Job,
    job_file: &'a Path,
    output: Output,
    checkpoints: Checkpoints,
    /// The first run of a cascade, before it has ended.
    first: Option<First>,
    rounds: Vec<RoundMetrics>,
}

/// Treatment of an earlier run in the output folder.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Earlier {
    /// Refuse the folder, so that neither a result nor a checkpoint is lost.
    Refuse,
    /// Go on from its newest checkpoint.
    Resume,
    /// Replace what it left.
    Overwrite,
}

impl<'a> Run<'a> {
    /// Takes the output folder of `job`, which was read from `job_file`.
    pub fn open(job: &Job, job_file: &'a Path, earlier: Earlier) -> Result<Run<'a>> {
        let output = Output::open(&job.output.dir)?;
        if earlier == Earlier::Refuse && output.is_finished() {
            bail!("{}: {FINISHED}; {REPLACE}", output.dir().display());
        }
        let open = |job: &Job| -> Result<Checkpoints> {
            let checkpoints = Checkpoints::open(&job.output, earlier == Earlier::Resume)?;
            match checkpoints.newest() {
                Some(newest) if earlier == Earlier::Refuse => bail!(
                    "{newest}: a checkpoint of a run that is not finished; go on from it with --resume, start over with --overwrite, \
                     or choose another folder with --out DIR"
                ),
                _ => Ok(checkpoints),
            }
        };
        let (checkpoints, first) = (open(job)?, First::of(job, open)?);
        Ok(Run { job: job.clone(), job_file, output, checkpoints, first, rounds: Vec::new() })
    }

    /// Whether the result of this very job is in the folder. Refuses the result of another job from which nothing can be gone on.
    pub fn is_finished(&self) -> Result<bool> {
        if !self.output.is_finished() {
            return Ok(false);
        }
        let found = self.output.job().map(|found| {
            let dir = self.job.output.dir.clone();
            let found = choice::opened(found, &self.job);
            let output = OutputTable { dir, ..found.output.clone() };
            Job { output, ..found }.to_toml()
        });
        if found.is_some_and(|found| found == self.job.to_toml()) {
            return Ok(true);
        }
        if self.checkpoint().is_none() {
            bail!(
                "{}: {FINISHED}, of another job, and no checkpoint to go on from; {REPLACE}",
                self.folder().display()
            );
        }
        Ok(false)
    }

    /// The newest checkpoint, if the job goes on from one.
    pub fn checkpoint(&self) -> Option<String> {
        let of_first = self.first.as_ref().map(First::checkpoints);
        let newest = self.checkpoints.newest().or_else(|| of_first?.newest());
        newest.filter(|_| self.checkpoints.are_resumed())
    }

    /// The output folder.
    pub fn folder(&self) -> &Path {
        self.output.dir()
    }

    /// Finds out what the job leaves open, its grammars or known affixes; `fleet` computes the trials or the first run. `inputs` are those
    /// before; returns those of the job that is trained.
    pub fn complete_job(
        &mut self,
        inputs: Inputs,
        fleet: &dyn Map,
        observer: &mut dyn Observer,
    ) -> Result<Inputs> {
        if let Some(chosen) = choice::chosen(&self.job, fleet, observer)? {
            self.job = chosen;
        } else if let Some(mut first) = self.first.take() {
            self.job.found = first.run(self.job.model.cascade, fleet, observer)?;
        } else {
            return Ok(inputs);
        }
        drop(inputs);
        Inputs::load(&self.job)
    }

    /// The job; once its grammars are chosen and affixes are found, with them.
    pub fn job(&self) -> &Job {
        &self.job
    }

    /// Trains as `train` does, given checkpoints and an observer of all events; metrics are written as they come.
    pub fn train(
        &mut self,
        observer: &mut dyn Observer,
        train: impl FnOnce(&Job, &mut Checkpoints, &mut dyn Observer) -> Result<Outcome>,
    ) -> Result<Outcome> {
        let Run { job, job_file, output, checkpoints, rounds, .. } = self;
        let mut recorder = Recorder { job, job_file, output, rounds };
        let trained = train(job, checkpoints, &mut All(vec![&mut recorder, observer]));
        if let Err(error) = &trained
            && let Some(FleetError::Batch { decisions, .. }) = error.downcast_ref()
            && !decisions.is_empty()
        {
            match output.failed(decisions) {
                Ok(name) => {
                    let text = format!(
                        "{name} in the output folder has the last decisions of the scheduler, for a report"
                    );
                    // The failure of the batch is the error, whether it can be shown or not.
                    let _ = observer.on(&RunEvent::Notice(text.clone()));
                }
                Err(error) => {
                    tracing::warn!("the last decisions of the scheduler cannot be written: {error:#}")
                }
            }
        }
        trained
    }

    /// Starts a fleet of `config` for this run. `memory` is the number of bytes for forests; others go to files in the output folder, or
    /// are rebuilt if it takes none.
    pub fn start_fleet(&self, config: FleetConfig, memory: usize) -> Result<OwnFleet> {
        let forests = spill::folder_in(self.folder()).ok();
        let compute = engine_with(memory, forests.as_ref().map(|forests| forests.path()));
        let local_workers = config.local_workers;
        let fleet = Fleet::start(FleetConfig { compute, ..config })?;
        Ok(OwnFleet { fleet, local_workers, _forests: forests })
    }

    /// Trains on a fleet of its own, stops the fleet, and writes the result. If the fleet's handle is cancelled, the error is
    /// [`Stopped`](crate::train::stopped::Stopped).
    pub fn complete(mut self, inputs: Inputs, own: OwnFleet, observer: &mut dyn Observer) -> Result<Summary> {
        let OwnFleet { fleet, local_workers, _forests } = own;
        let inputs = self.complete_job(inputs, &fleet, observer)?;
        let outcome = self.train(observer, |job, checkpoints, observer| {
            train(job, &inputs, &fleet, checkpoints, observer)
        })?;
        let fleet_use = FleetUse::of(local_workers, &fleet.status(), fleet.effort());
        fleet.shutdown();
        self.finish(outcome, &fleet_use, observer)
    }

    /// Writes the result with its `fleet_use`.
    pub fn finish(
        self,
        mut outcome: Outcome,
        fleet_use: &FleetUse,
        observer: &mut dyn Observer,
    ) -> Result<Summary> {
        if let Some(notice) = fleet_use.notice() {
            observer.on(&RunEvent::Notice(notice.clone()))?;
            outcome.notices.push(notice);
        }
        let summary = self.output.finish(&self.job, &self.rounds, &mut outcome, fleet_use)?;
        observer.on(&RunEvent::Finished(Box::new(summary.clone())))?;
        Ok(summary)
    }
}

/// A fleet that computes for one run alone.
pub struct OwnFleet {
    fleet: Fleet,
    local_workers: usize,
    /// Folder of forests that do not fit in memory.
    _forests: Option<TempDir>,
}

impl OwnFleet {
    /// The fleet.
    pub fn fleet(&self) -> &Fleet {
        &self.fleet
    }
}

const FINISHED: &str = "the folder has a finished result";
const REPLACE: &str = "replace it with --overwrite, or choose another folder with --out DIR";

/// Keeps the rounds.
struct Recorder<'a> {
    job: &'a Job,
    job_file: &'a Path,
    output: &'a mut Output,
    rounds: &'a mut Vec<RoundMetrics>,
}

impl Observer for Recorder<'_> {
    fn on(&mut self, event: &RunEvent) -> Result<()> {
        match event {
            RunEvent::Prepared { earlier } => {
                self.output.begin(self.job, self.job_file, earlier)?;
                *self.rounds = earlier.to_vec();
            }
            RunEvent::RoundFinished(round) => {
                self.output.round(round)?;
                self.rounds.push((**round).clone());
            }
            _ => {}
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::PathBuf;

    use super::*;
    use crate::fixture;
    use crate::metrics::Start;
    use crate::model::SavedModel;
    use crate::progress::{Progress, Style};

    /// Runs a job in `dir` whose results go to `out`.
    fn run(
        dir: &Path,
        out: &Path,
        train: impl FnOnce(&mut dyn Observer) -> Result<Outcome>,
    ) -> Result<Summary> {
        let file = dir.join("job.toml");
        fs::write(&file, "[model]\ngrammar = \"auto:unigram\"\n[corpus]\npath = \"corpus.txt\"\n").unwrap();
        let mut job = Job::load(&file, &["inference.seed=7".to_owned()])?;
        job.output.dir = out.to_owned();
        let observer = &mut Progress::new(Style::Quiet);
        let mut run = Run::open(&job, &file, Earlier::Overwrite)?;
        let outcome = run.train(observer, |_, _, observer| train(observer))?;
        run.finish(outcome, &FleetUse { workers: 2, ..FleetUse::default() }, observer)
    }

    fn folder() -> (tempfile::TempDir, PathBuf) {
        let dir = tempfile::tempdir().unwrap();
        let out = dir.path().join("out");
        (dir, out)
    }

    #[test]
    fn a_run_leaves_a_whole_folder() {
        let (dir, out) = folder();
        run(dir.path(), &out, fixture::train).unwrap();
        let read = |name: &str| fs::read_to_string(out.join(name)).unwrap();
        let rounds: Vec<RoundMetrics> =
            read("metrics.jsonl").lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        assert_eq!(rounds.len(), 40);
        assert_eq!(rounds[0].bound, None);
        let summary: Summary = serde_json::from_str(&read("summary.json")).unwrap();
        assert_eq!((summary.result.rounds, summary.seed, summary.workers), (40, 7, 2));
        assert!(summary.result.scores["mbr"].token_f1 > summary.result.scores["viterbi"].token_f1);
        assert!(read("job.toml").contains("seed = 7"));
        for name in ["segmentation.viterbi.txt", "segmentation.mbr.txt", "parses.txt"] {
            assert_eq!(read(name).lines().count(), fixture::GOLD.len(), "{name}");
        }
        let saved = SavedModel::load(&out).unwrap();
        assert_eq!(crate::model::parameters_sha256(&saved.model), summary.result.parameters_sha256);
        assert!(read("model/sticks.tsv").lines().count() > 20);
        assert!(read("model/grammar.txt").contains("Word"));
        assert!(read("lexicon.tsv").lines().count() > 30);
        let left: Vec<_> = fs::read_dir(&out).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        assert!(left.iter().all(|name| !name.to_string_lossy().starts_with('.')), "{left:?}");
    }

    #[test]
    fn a_failed_run_keeps_the_old_result_until_it_is_prepared() {
        let (dir, out) = folder();
        run(dir.path(), &out, fixture::train).unwrap();
        let summary = out.join("summary.json");
        let before = run(dir.path(), &out, |observer| {
            observer.on(&RunEvent::Started(Start::default()))?;
            anyhow::bail!("no derivation")
        });
        assert!(before.is_err() && summary.exists());
        let after = run(dir.path(), &out, |observer| {
            observer.on(&RunEvent::Prepared { earlier: Vec::new() })?;
            anyhow::bail!("interrupted")
        });
        assert!(after.is_err() && !summary.exists() && !out.join("report.html").exists());
    }

    #[test]
    fn a_finished_result_is_replaced_only_when_asked_for() {
        let (dir, out) = folder();
        run(dir.path(), &out, fixture::train).unwrap();
        let load = |set: &str| {
            let overrides =
                ["inference.seed=7".to_owned(), format!("output.dir={}", out.display()), set.to_owned()];
            Job::load(&dir.path().join("job.toml"), &overrides).unwrap()
        };
        let (same, other) = (load("corpus.max_symbols=10000"), load("inference.rho=2"));
        let open = |job, earlier| Run::open(job, Path::new("job.toml"), earlier).map(|run| run.is_finished());
        let refused = open(&same, Earlier::Refuse).err().unwrap().to_string();
        assert_eq!(
            refused,
            format!(
                "{}: the folder has a finished result; replace it with --overwrite, or choose another folder with --out DIR",
                out.display()
            )
        );
        assert!(open(&same, Earlier::Overwrite).is_ok() && out.join("summary.json").exists());
        assert!(open(&same, Earlier::Resume).unwrap().unwrap());
        let refused = open(&other, Earlier::Resume).unwrap().unwrap_err().to_string();
        assert!(refused.contains("a finished result, of another job"), "{refused}");
        std::fs::remove_file(out.join("summary.json")).unwrap();
        assert!(!open(&same, Earlier::Refuse).unwrap().unwrap());
    }

    #[test]
    fn job_file_in_the_output_folder_stays_as_it_is() {
        let (dir, _) = folder();
        run(dir.path(), dir.path(), fixture::train).unwrap();
        let job = fs::read_to_string(dir.path().join("job.toml")).unwrap();
        assert!(!job.contains("seed") && dir.path().join("summary.json").exists());
    }

    #[test]
    fn report_shows_the_run_and_escapes_its_symbols() {
        let (dir, out) = folder();
        run(dir.path(), &out, fixture::train).unwrap();
        let page = fs::read_to_string(out.join("report.html")).unwrap();
        for expected in [
            "corpus.txt",
            "Token F1 is 0.900 (mbr)",
            "<svg class=\"chart\"",
            "<svg class=\"tree\"",
            "h&amp;t",
            "&lt;",
        ] {
            assert!(page.contains(expected), "{expected}");
        }
        for unwanted in ["h&t", "NaN", "http://", "https://"] {
            assert!(!page.contains(unwanted), "{unwanted}");
        }
    }
}
