//! The folder of a submitted job: its job file, its files, its log, its results.

use std::path::{Component, Path, PathBuf};

use anyhow::{Context, Result, anyhow};
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
pub fn told(error: &anyhow::Error, folder: &Path) -> Reason {
    let text = format!("{error:#}").replace(&format!("{}/", inputs_in(folder).display()), "");
    Reason(text.replace(&format!("{}/", folder.display()), ""))
}

/// Largest number of bytes of a path, and of a part of it: file systems take no more.
pub const MAX_PATH: [usize; 2] = [512, 255];

/// Whether `path` stays below the folder that it is put in, can be displayed, and is short enough for a file system.
pub fn is_safe(path: &str) -> bool {
    let is_short = path.len() <= MAX_PATH[0] && path.split('/').all(|part| part.len() <= MAX_PATH[1]);
    let below = Path::new(path).components().all(|part| matches!(part, Component::Normal(_)));
    let told = path.chars().all(|letter| !letter.is_control() && letter != '\\');
    !path.is_empty() && is_short && below && told && !path.ends_with('/') && !path.contains("//")
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

    #[test]
    fn paths_that_leave_their_folder_are_not_safe() {
        for path in ["a", "a/b.txt", "b&a <b>.txt", "a..b"] {
            assert!(is_safe(path), "{path}");
        }
        for path in ["", "/etc/passwd", "../a", "a/../../b", "./a", "a\nb", "a\\b", "a//b", "a/"] {
            assert!(!is_safe(path), "{path}");
        }
        let long = |n: usize| "a".repeat(n);
        assert!(is_safe(&format!("{}/{}", long(255), long(255))));
        assert!(!is_safe(&long(256)) && !is_safe(&format!("{0}/{0}/a", long(255))));
    }
}
