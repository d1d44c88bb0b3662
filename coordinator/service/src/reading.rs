//! Requests of readers: lists of jobs, single jobs, logs, results. No reader waits for storage that another request keeps busy.

use std::collections::BTreeMap;
use std::path::PathBuf;

use anyhow::Context as _;

use super::job_log;
use super::job_store::ResultFile;
use super::queue::Queue;
use super::record::{JobId, Record, State, View};
use super::view::JobView;
use super::{Problem, Service};
use crate::job_process::folder::JOB;
use crate::status::RunStatus;

/// A page of the list of all jobs, the newest first.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Page {
    /// The jobs of this page.
    pub jobs: Vec<View>,
    /// Its number, from 1.
    pub page: usize,
    /// Number of pages.
    pub pages: usize,
    /// Number of jobs in each state, by its name.
    pub by_state: BTreeMap<&'static str, usize>,
}

impl Service {
    /// The newest `n` jobs that are older than `before`.
    pub fn jobs(&self, before: Option<JobId>, n: usize) -> Result<Vec<View>, Problem> {
        let queue = self.current()?;
        Ok(self.views(&queue, queue.older(before).take(n).collect()))
    }

    /// The jobs that run or stop.
    pub fn working(&self) -> Vec<View> {
        let queue = self.queue();
        self.views(&queue, queue.working().collect())
    }

    /// Number of jobs in each state, by its name.
    pub fn by_state(&self) -> BTreeMap<&'static str, usize> {
        self.queue().by_state()
    }

    /// Returns page number `page` of the list of all jobs, of `size` jobs each; the last one if there are fewer.
    pub fn page(&self, page: usize, size: usize) -> Result<Page, Problem> {
        let queue = self.current()?;
        let by_state = queue.by_state();
        let pages = by_state.values().sum::<usize>().div_ceil(size).max(1);
        let page = page.clamp(1, pages);
        let jobs = self.views(&queue, queue.older(None).skip((page - 1) * size).take(size).collect());
        Ok(Page { jobs, page, pages, by_state })
    }

    /// Returns a job.
    pub fn job(&self, id: JobId) -> Result<View, Problem> {
        let queue = self.current()?;
        Ok(self.view(&queue, queue.find(id)?))
    }

    /// A job as `queue` knows it.
    pub(super) fn view(&self, queue: &Queue, record: &Record) -> View {
        let ahead = match record.state {
            State::Queued => queue.ahead(&[record.id].into()),
            _ => BTreeMap::new(),
        };
        self.view_of(&self.0.run_statuses.lock(), &ahead, record)
    }

    fn views(&self, queue: &Queue, records: Vec<&Record>) -> Vec<View> {
        let waiting = records.iter().filter(|record| record.state == State::Queued);
        let ahead = queue.ahead(&waiting.map(|record| record.id).collect());
        let run_statuses = self.0.run_statuses.lock();
        records.into_iter().map(|record| self.view_of(&run_statuses, &ahead, record)).collect()
    }

    fn view_of(
        &self,
        run_statuses: &BTreeMap<JobId, RunStatus>,
        ahead: &BTreeMap<JobId, usize>,
        record: &Record,
    ) -> View {
        let ahead = ahead.get(&record.id).copied().unwrap_or(0);
        View { record: record.clone(), ahead, progress: run_statuses.get(&record.id).map(RunStatus::read) }
    }

    /// Opens the log of a job.
    pub fn log(&self, id: JobId) -> Result<job_log::Reader, Problem> {
        self.job(id)?;
        self.0.job_store.recall(id)?;
        Ok(job_log::Reader::new(self.0.job_store.log(id)))
    }

    /// Returns the last `n` lines of the log of a job.
    pub fn last_lines(&self, id: JobId, n: usize) -> Result<Vec<job_log::Line>, Problem> {
        self.0.job_store.recall(id)?;
        let path = self.0.job_store.log(id);
        Ok(job_log::last(&path, n).with_context(|| format!("{id}: cannot read the log"))?)
    }

    /// Returns the job file of a job, with the values that the user has set; `None` if it is gone.
    pub fn job_file(&self, id: JobId) -> Result<Option<String>, Problem> {
        self.0.job_store.recall(id)?;
        Ok(std::fs::read_to_string(self.0.job_store.job(id).join(JOB)).ok())
    }

    /// Returns the rounds and snapshots of a job; none before it has begun.
    pub fn seen(&self, id: JobId) -> JobView {
        let view = self.0.views.lock().get(&id).cloned();
        let left = || {
            self.0.job_store.recall(id).ok()?;
            serde_json::from_slice(&std::fs::read(self.0.job_store.view(id)).ok()?).ok()
        };
        view.map(|view| view.read()).or_else(left).unwrap_or_default()
    }

    /// Paths and sizes in bytes of the result files of a job, none before it is done. Downloads none of them, unless the record is from a
    /// version that did not list them.
    pub fn files(&self, record: &Record) -> Result<Vec<(String, u64)>, Problem> {
        match record.state {
            State::Done { .. } if record.results.is_empty() => Ok(self.0.job_store.list(record.id)?),
            _ => Ok(record.results.clone()),
        }
    }

    /// The folder of the results of a job that is done, and its files.
    pub fn results(&self, id: JobId) -> Result<(PathBuf, Vec<ResultFile>), Problem> {
        let record = self.job(id)?.record;
        if !matches!(record.state, State::Done { .. }) {
            return Err(Problem::Invalid(format!(
                "{id}: the job is {}; there are results once it is done",
                record.state.name()
            )));
        }
        Ok((self.0.job_store.results(id), self.0.job_store.results_of(&record)?))
    }
}
