//! The folder of a submitted job: its job file, its files, its log, its results.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, anyhow};
use basics::paths::is_safe;
use basics::store;
use training::job::{Job, JobError};

use super::messages::Reason;

/// Name of the job file.
pub const JOB: &str = "job.toml";
/// Name of the folder of results.
pub const RESULTS: &str = "out";

/// Checkpoints that a job of a service keeps at most, so that one job does not fill the disk of all.
const MAX_CHECKPOINTS: usize = 10;

/// Returns the folder of a job's files.
pub fn inputs_in(folder: &Path) -> PathBuf {
    folder.join("inputs")
}

/// Reads the job of a folder. An error if it reads files outside of the folder, or URLs that are below none of `urls`. Its results go into the
/// folder.
pub fn load(folder: &Path, urls: &[String]) -> Result<Job> {
    let inputs = inputs_in(folder);
    let text = std::fs::read_to_string(folder.join(JOB)).context("the job file is gone")?;
    let mut job = Job::parse(&text, JOB, &inputs, &[]).map_err(JobError::from)?;
    let mut foreign = None;
    job.visit_files(&mut |key, path| {
        let allowed = match store::url(path) {
            Some(url) => urls.iter().any(|place| store::is_below(url, place)),
            None => path.strip_prefix(&inputs).is_ok_and(|path| path.to_str().is_some_and(is_safe)),
        };
        if !allowed {
            foreign.get_or_insert(format!(
                "job.toml: {key}: {}: the service lets jobs read what is sent with them, and URLs that it was started with (--allow-url)",
                path.display()
            ));
        }
    });
    job.output.dir = folder.join(RESULTS);
    job.output.checkpoints = String::new();
    job.output.keep_checkpoints = job.output.keep_checkpoints.min(MAX_CHECKPOINTS);
    foreign.map_or(Ok(job), |foreign| Err(anyhow!(foreign)))
}

/// Returns the reason of a failure, in which files have the names that the job gives them.
pub fn reason(error: &anyhow::Error, folder: &Path) -> Reason {
    let text = format!("{error:#}").replace(&format!("{}/", inputs_in(folder).display()), "");
    Reason(text.replace(&format!("{}/", folder.display()), ""))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_job_keeps_a_bounded_number_of_checkpoints() {
        let dir = tempfile::tempdir().unwrap();
        let keeps = |n: usize| {
            let job = format!(
                "[model]\ngrammar = \"auto:unigram\"\n[corpus]\npath = \"c\"\n[output]\nkeep_checkpoints = {n}\n"
            );
            std::fs::write(dir.path().join(JOB), job).unwrap();
            load(dir.path(), &[]).unwrap().output.keep_checkpoints
        };
        assert_eq!([0, 3, 1_000_000_000].map(keeps), [0, 3, MAX_CHECKPOINTS]);
    }
}
