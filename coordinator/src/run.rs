//! One job, from its file to its folder of results: what `train` does once, and a service for each of its jobs.
//!
//! In: a checked [`Job`], and how it is trained. Out: the output folder, and what there is to tell on the way. Whoever runs it chooses
//! the fleet, and who else is told.

use std::path::Path;

use anyhow::{Result, bail};

use crate::checkpoint::Checkpoints;
use crate::job::Job;
use crate::metrics::{All, Observer, RoundMetrics, Summary};
use crate::outcome::{Crew, Outcome};
use crate::output::Output;

/// A job that may write to its folder.
pub struct Run<'a> {
    job: &'a Job,
    job_file: &'a Path,
    output: Output,
    checkpoints: Checkpoints,
    rounds: Vec<RoundMetrics>,
}

impl<'a> Run<'a> {
    /// Takes the output folder of `job`, which was read from `job_file`. Refuses one in which a run is not finished, unless that is
    /// what `resume` asks for.
    pub fn open(job: &'a Job, job_file: &'a Path, resume: bool) -> Result<Run<'a>> {
        let output = Output::open(&job.output.dir)?;
        let checkpoints = Checkpoints::open(&job.output, resume)?;
        if let (Some(newest), false) = (checkpoints.newest(), resume || output.is_finished()) {
            bail!(
                "{newest}: a checkpoint of a run that is not finished; go on from it with --resume, remove it to start over, \
                 or choose another folder with --out DIR"
            );
        }
        Ok(Run { job, job_file, output, checkpoints, rounds: Vec::new() })
    }

    /// The output folder.
    pub fn folder(&self) -> &Path {
        self.output.dir()
    }

    /// Trains as `train` does, given checkpoints and whom to tell; metrics are written as they come, and `told` hears of all.
    pub fn train(
        &mut self,
        told: &mut dyn Observer,
        train: impl FnOnce(&mut Checkpoints, &mut dyn Observer) -> Result<Outcome>,
    ) -> Result<Outcome> {
        let Run { job, job_file, output, checkpoints, rounds } = self;
        let mut recorder = Recorder { job, job_file, output, rounds };
        train(checkpoints, &mut All(vec![&mut recorder, told]))
    }

    /// Writes the result, on which `crew` worked.
    pub fn finish(self, mut outcome: Outcome, crew: &Crew, told: &mut dyn Observer) -> Result<Summary> {
        let summary = self.output.finish(self.job, &self.rounds, &mut outcome, crew)?;
        told.finished(&summary);
        Ok(summary)
    }
}

/// Keeps the rounds.
struct Recorder<'a> {
    job: &'a Job,
    job_file: &'a Path,
    output: &'a mut Output,
    rounds: &'a mut Vec<RoundMetrics>,
}

impl Observer for Recorder<'_> {
    fn prepared(&mut self, earlier: &[RoundMetrics]) -> Result<()> {
        self.output.begin(self.job, self.job_file, earlier)?;
        *self.rounds = earlier.to_vec();
        Ok(())
    }

    fn round(&mut self, round: &RoundMetrics) -> Result<()> {
        self.output.round(round)?;
        self.rounds.push(round.clone());
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

    /// Of a job in `dir` whose results go to `out`.
    fn run(
        dir: &Path,
        out: &Path,
        train: impl FnOnce(&mut dyn Observer) -> Result<Outcome>,
    ) -> Result<Summary> {
        let file = dir.join("job.toml");
        fs::write(&file, "[model]\ngrammar = \"auto:unigram\"\n[corpus]\npath = \"corpus.txt\"\n").unwrap();
        let mut job = Job::load(&file, &["inference.seed=7".to_owned()])?;
        job.output.dir = out.to_owned();
        let told = &mut Progress::new(Style::Quiet);
        let mut run = Run::open(&job, &file, false)?;
        let outcome = run.train(told, |_, observer| train(observer))?;
        run.finish(outcome, &Crew { workers: 2, ..Crew::default() }, told)
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
        assert_eq!((summary.rounds, summary.seed, summary.workers), (40, 7, 2));
        assert!(summary.scores["mbr"].token_f1 > summary.scores["viterbi"].token_f1);
        assert!(read("job.toml").contains("seed = 7"));
        for name in ["segmentation.viterbi.txt", "segmentation.mbr.txt", "parses.txt"] {
            assert_eq!(read(name).lines().count(), fixture::GOLD.len(), "{name}");
        }
        let saved = SavedModel::load(&out).unwrap();
        assert_eq!(crate::model::parameters_sha256(&saved.model), summary.parameters_sha256);
        assert!(read("model/sticks.tsv").lines().count() > 20);
        assert!(read("model/grammar.txt").contains("Word"));
        let left: Vec<_> = fs::read_dir(&out).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        assert!(left.iter().all(|name| !name.to_string_lossy().starts_with('.')), "{left:?}");
    }

    #[test]
    fn a_failed_run_keeps_the_old_result_until_it_is_prepared() {
        let (dir, out) = folder();
        run(dir.path(), &out, fixture::train).unwrap();
        let summary = out.join("summary.json");
        let before = run(dir.path(), &out, |observer| {
            observer.started(&Start::default())?;
            anyhow::bail!("no derivation")
        });
        assert!(before.is_err() && summary.exists());
        let after = run(dir.path(), &out, |observer| {
            observer.prepared(&[])?;
            anyhow::bail!("interrupted")
        });
        assert!(after.is_err() && !summary.exists() && !out.join("report.html").exists());
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
        for expected in
            ["corpus.txt", "token F1, mbr", "<svg class=\"chart\"", "<svg class=\"tree\"", "h&amp;t", "&lt;"]
        {
            assert!(page.contains(expected), "{expected}");
        }
        for unwanted in ["h&t", "NaN", "<script", "http://", "https://"] {
            assert!(!page.contains(unwanted), "{unwanted}");
        }
    }
}
