//! Submissions: how a job is checked before the service accepts it.

use std::collections::BTreeMap;

use basics::paths::{MAX_PATH, is_safe};
use fleet::access::Identity;

use super::job_log::JobLog;
use super::job_store::log_in;
use super::record::{Input, JobId, Millis, PRIORITIES, Record, State, View};
use super::{Limits, Problem, Service, now};

/// Largest job file, in bytes.
pub(super) const MAX_JOB: usize = 1 << 20;
/// Files that a job reads, at most.
pub(super) const MAX_INPUTS: usize = 64;
/// Letters of a name or key, at most.
const MAX_NAME: usize = 100;

/// A job as a user submits it.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Submission {
    /// The job file.
    pub job: String,
    /// The files it reads.
    pub inputs: Vec<Input>,
    /// A name for people.
    pub name: String,
    /// Priority, as in [`Record`]; 0 stands for the default.
    pub priority: u32,
    /// Maximum number of workers, as in [`Record`]; 0 stands for no limit.
    pub max_workers: u32,
    /// Idempotency key, as in [`Record`].
    pub key: String,
}

impl Service {
    /// Accepts a job after checking all of it, unless `is_wanted` says no before. Blocks for as long as reading its corpus takes.
    pub fn submit(
        &self,
        who: &Identity,
        submission: Submission,
        is_wanted: &(dyn Fn() -> bool + Sync),
    ) -> Result<View, Problem> {
        if let Some(known) = self.admit(&who.name, &submission)? {
            return Ok(known);
        }
        check_words(&submission)?;
        self.check_inputs(&submission.inputs)?;
        let staging = self.0.job_store.lay_out(&submission.job, &submission.inputs)?;
        if let Some(Input { path, hash }) = self.0.job_store.damaged(staging.path(), &submission.inputs)? {
            // The client sends it again, or it is downloaded again.
            self.0.job_store.remove_damaged(*hash)?;
            return Err(Problem::Lacking { path: path.clone() });
        }
        let Limits { urls, processes, .. } = &self.0.limits;
        processes
            .check(staging.path(), urls, is_wanted)
            .map_err(|unfinished| Problem::Invalid(unfinished.into_reason().0))?;
        JobLog::new(log_in(staging.path()), self.0.notifier.clone())
            .tell(now(), &format!("submitted by {}", who.name));
        self.0.job_store.sync(&staging)?;
        let who = who.name.clone();
        self.control(move |controller| controller.accept(who, submission, staging))?
    }

    /// Returns the job that `owner` submitted before with the key of `submission`, if there is one; refuses if that is another job, or if the
    /// service is full.
    pub(super) fn admit(&self, owner: &str, submission: &Submission) -> Result<Option<View>, Problem> {
        let queue = self.current()?;
        match queue.with_key(owner, &submission.key) {
            Some(record) if submission.is_of(record) => Ok(Some(self.view(&queue, record))),
            Some(record) => Err(Problem::Invalid(format!(
                "--idempotency-key {}: job {} has this key, and another job file or other files; choose another key",
                submission.key, record.id
            ))),
            None => Ok(queue.admit(owner).map(|()| None)?),
        }
    }

    /// Refuses a job whose files are not all here.
    pub(super) fn check_inputs(&self, inputs: &[Input]) -> Result<(), Problem> {
        let lacking = inputs.iter().find(|input| !self.has(input.hash));
        lacking.map_or(Ok(()), |Input { path, .. }| Err(Problem::Lacking { path: path.clone() }))
    }
}

impl Submission {
    /// Whether the job of `record` has this job file and these files. Records of earlier versions do not tell the former.
    fn is_of(&self, record: &Record) -> bool {
        let job = self.job_blake3();
        let sorted = |inputs: &[Input]| {
            let mut inputs: Vec<(String, [u8; 32])> =
                inputs.iter().map(|input| (input.path.clone(), *input.hash.as_bytes())).collect();
            inputs.sort_unstable();
            inputs
        };
        record.job_blake3.as_ref().is_none_or(|known| *known == job)
            && sorted(&record.inputs) == sorted(&self.inputs)
    }

    /// BLAKE3 of the job file, as hex digits.
    fn job_blake3(&self) -> String {
        blake3::hash(self.job.as_bytes()).to_hex().to_string()
    }

    /// The record of the job, which `owner` submits.
    pub(super) fn into_record(self, id: JobId, owner: String, submitted: Millis) -> Record {
        let job_blake3 = Some(self.job_blake3());
        let Submission { job: _, inputs, name, priority, max_workers, key } = self;
        Record {
            id,
            name,
            owner,
            priority: if priority == 0 { PRIORITIES[2] } else { priority },
            max_workers: (max_workers > 0).then_some(max_workers),
            key,
            inputs,
            job_blake3,
            state: State::Queued,
            starts: 0,
            deaths: 0,
            results: Vec::new(),
            checksums: BTreeMap::new(),
            score: None,
            is_deleted: false,
            submitted,
            begun: None,
            ended: None,
        }
    }
}

/// A path that is also the folder of another one.
fn folder_among<'a>(paths: &[&'a str]) -> Option<&'a str> {
    let folders = |path: &'a str| path.match_indices('/').map(move |(at, _)| &path[..at]);
    paths.iter().flat_map(|path| folders(path)).find(|folder| paths.contains(folder))
}

/// Refuses texts that are too long or cannot be displayed, and paths that leave the job's folder.
fn check_words(submission: &Submission) -> Result<(), Problem> {
    let Submission { job, inputs, name, priority, key, .. } = submission;
    let [least, most, _] = PRIORITIES;
    let is_short = |text: &str| text.chars().count() <= MAX_NAME && !text.chars().any(char::is_control);
    let mut paths: Vec<&str> = inputs.iter().map(|input| &input.path[..]).collect();
    paths.sort_unstable();
    let twice = paths.windows(2).any(|pair| pair[0] == pair[1]);
    let problem = if job.len() > MAX_JOB {
        format!("the job file has {} bytes, expected {MAX_JOB} at most", job.len())
    } else if inputs.len() > MAX_INPUTS || twice {
        format!("expected {MAX_INPUTS} files at most, each once")
    } else if !is_short(name) || name.is_empty() {
        format!("expected a name of 1 to {MAX_NAME} visible letters (--name)")
    } else if !is_short(key) {
        format!("expected a key of at most {MAX_NAME} visible letters (--idempotency-key)")
    } else if *priority > most {
        format!("priority {priority}, expected {least} to {most} (--priority)")
    } else {
        match (paths.iter().find(|path| !is_safe(path)), folder_among(&paths)) {
            (Some(path), _) => {
                let [most, most_of_part] = MAX_PATH;
                format!(
                    "{path:?}: not a path below the job's own folder, of at most {most} bytes and {most_of_part} between slashes"
                )
            }
            (None, Some(path)) => {
                format!("{path:?}: a file, and the folder of another one; rename one of them")
            }
            (None, None) => return Ok(()),
        }
    };
    Err(Problem::Invalid(problem))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_that_no_folder_can_hold_are_refused_by_name() {
        let check = |paths: &[&str]| {
            let inputs = paths.iter().map(|path| Input { path: (*path).to_owned(), hash: blake3::hash(b"") });
            let submission =
                Submission { inputs: inputs.collect(), name: "job".into(), ..Default::default() };
            check_words(&submission).map_err(|problem| problem.to_string())
        };
        assert_eq!(check(&["a", "b/a", "b/c", "b.txt", "a b/c"]), Ok(()));
        for paths in [["a", "a/b"], ["a/b/c", "a/b"], ["a/b", "a"]] {
            let refused = check(&paths).unwrap_err();
            assert!(
                refused.ends_with(": a file, and the folder of another one; rename one of them"),
                "{refused}"
            );
        }
        let long = "a".repeat(300);
        assert!(check(&["b", &long]).unwrap_err().contains("of at most 512 bytes and 255 between slashes"));
    }
}
