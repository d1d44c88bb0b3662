//! The thread that changes jobs, one change after the other.
//!
//! ```text
//! command ──plan──> record stored ──> log line ──> committed, readers see it ──> job begins or stops ──> answer
//! ```
//!
//! Invariants: what readers see is stored; the queue is locked to commit a record and never while storage works; a change that cannot be
//! stored does not happen, except that the end of a job is stored again and again until it is.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::Ordering;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender};
use std::time::Duration;

use anyhow::Result;
use basics::clock;
use tempfile::TempDir;

use super::acceptance::Acceptance;
use super::job_runner::Order;
use super::job_store;
use super::queue::{Done, Event, MAX_LOSSES, Step, Then};
use super::record::{JobId, Record, State, View};
use super::submission::Submission;
use super::view::SharedView;
use super::{Problem, Service, now};
use crate::job_process::Reason;
use crate::status::RunStatus;

/// Work for the controller.
pub(super) type Command = Box<dyn FnOnce(&mut Controller) + Send>;

/// Time from one attempt to store what could not be stored to the next.
const RETRY: Duration = Duration::from_secs(1);

/// State of the controller's thread.
pub(super) struct Controller {
    service: Service,
    acceptance: Acceptance,
    /// Channel to the threads of jobs; `None` once the service closes.
    orders: Option<Sender<Order>>,
    /// Ends of jobs that are not stored yet. These jobs count as running.
    unsaved: Vec<(JobId, Result<Done, Reason>)>,
    /// Whether a job waits though there is room, as its record could not be stored.
    is_behind: bool,
}

impl Controller {
    /// Has the jobs of the last process go on.
    pub fn start(service: Service, acceptance: Acceptance, orders: Sender<Order>) -> Result<Controller> {
        let (orders, unsaved) = (Some(orders), Vec::new());
        let mut controller = Controller { service, acceptance, orders, unsaved, is_behind: false };
        let steps = controller.service.queue().plan(now(), Event::Started)?;
        for step in steps {
            controller.service.0.job_store.records().save(&step.record)?;
            controller.commit(step);
        }
        Ok(controller)
    }

    /// Executes commands until the service is closed and no job runs.
    pub fn run(mut self, commands: &Receiver<Command>) {
        let service = self.service.clone();
        let is_over = |controller: &Controller| {
            controller.orders.is_none() && controller.unsaved.is_empty() && service.n_ordered() == 0
        };
        // When to try again, whatever else there is to do meanwhile.
        let mut retry_at = None;
        while !is_over(&self) {
            let waits = self.orders.is_none() || self.is_behind || !self.unsaved.is_empty();
            let due = waits.then(|| *retry_at.get_or_insert_with(|| clock::now() + RETRY));
            let left = due.map(|due| due.saturating_sub(clock::now()));
            let command = match left {
                Some(Duration::ZERO) => Err(RecvTimeoutError::Timeout),
                Some(left) => commands.recv_timeout(left),
                None => commands.recv().map_err(|_| RecvTimeoutError::Disconnected),
            };
            match command {
                // Commands change nothing but by commits, so that one that panics leaves a whole state; its caller gets an error.
                Ok(command) => drop(catch_unwind(AssertUnwindSafe(|| command(&mut self)))),
                Err(RecvTimeoutError::Timeout) => {
                    retry_at = None;
                    self.retry();
                }
                Err(RecvTimeoutError::Disconnected) => return,
            }
        }
    }

    /// Stores a job in the folder `staging` that was checked, and has it wait or begin.
    pub fn accept(
        &mut self,
        owner: String,
        submission: Submission,
        staging: TempDir,
    ) -> Result<View, Problem> {
        // It may have been submitted twice at once, and its files deleted with another job.
        if let Some(known) = self.service.admit(&owner, &submission)? {
            return Ok(known);
        }
        self.service.check_inputs(&submission.inputs)?;
        let service = self.service.clone();
        let store = |id: JobId| {
            let record = submission.into_record(id, owner, now());
            let mut steps = service.queue().plan(now(), Event::Accepted(Box::new(record)))?.into_iter();
            let first = steps.next().ok_or_else(|| anyhow::anyhow!("a job without a record"))?;
            service.0.job_store.records().save(&first.record)?;
            Ok((first, steps))
        };
        let (first, others) = self.acceptance.accept(&service.0.job_store, staging, store)?;
        let Record { id, owner, name, .. } = &first.record;
        let id = *id;
        service.audit(owner, "submit", Some(id), name);
        self.commit(first);
        self.store_all(others);
        service.job(id)
    }

    /// Stores the change that `event` makes; `announce` tells of it before readers see it, unless there is none.
    pub fn change(&mut self, event: Event, announce: impl FnOnce(&Service)) -> Result<(), Problem> {
        let mut steps = self.service.queue().plan(now(), event)?.into_iter();
        if let Some(first) = steps.next() {
            self.service.0.job_store.records().save(&first.record)?;
            announce(&self.service);
            self.commit(first);
            self.store_all(steps);
        }
        Ok(())
    }

    /// Stores how a running job ended, now or later. A job that was interrupted by the service's own end is left to the next process.
    pub fn end(&mut self, id: JobId, how: Result<Done, Reason>) {
        self.service.0.working.lock().remove(&id);
        if self.orders.is_some() || how.is_ok() {
            let ended = self.change(Event::Ended(id, how.clone()), |service| {
                let queue = service.queue();
                let state = queue.find(id).map(|record| record.state.clone());
                drop(queue);
                let text = match (&how, state) {
                    (Ok(done), _) => format!("done: parameters {}", done.parameters_sha256),
                    (Err(_), Ok(State::Stopping)) => "cancelled".to_owned(),
                    (Err(_), Ok(State::Pausing)) => {
                        "paused, as the job of another user has a claim to its place".to_owned()
                    }
                    (Err(error), _) => format!("failed: {error}"),
                };
                service.job_log(id).tell(now(), &text);
            });
            match ended {
                Ok(()) | Err(Problem::Refused(_)) => {}
                Err(problem) => {
                    tracing::warn!(
                        job = id.0,
                        "the end of the job cannot be stored: {problem}; trying again"
                    );
                    self.unsaved.push((id, how));
                }
            }
        }
    }

    /// Leaves running jobs to the next process. If a record cannot be stored, the next process finds the job as running, and resumes it too.
    pub fn close(&mut self) {
        self.orders = None;
        let service = self.service.clone();
        service.0.queue.write().close();
        // A service that was replaced leaves the records to its successor.
        if service.0.ousted.borrow().is_some() {
            return;
        }
        let steps = service.queue().plan(now(), Event::Closed).unwrap_or_default();
        self.store_all(steps.into_iter());
    }

    /// Removes the files of deleted jobs that no other job reads.
    pub fn forget_files(&mut self, deleted: &[Record]) -> Result<()> {
        let unread = job_store::unread(deleted, self.service.queue().iter());
        self.service.0.job_store.forget(&unread)
    }

    /// A job, as readers see it.
    pub fn job(&self, id: JobId) -> Result<View, Problem> {
        self.service.job(id)
    }

    fn retry(&mut self) {
        for (id, how) in std::mem::take(&mut self.unsaved) {
            self.end(id, how);
        }
        if std::mem::take(&mut self.is_behind) {
            self.take_turns();
        }
    }

    /// Has jobs begin or pause whose time has come.
    pub fn take_turns(&mut self) {
        let steps = self.service.queue().plan(now(), Event::Retried).unwrap_or_default();
        self.store_all(steps.into_iter());
    }

    /// Counts the loss of a job's process. Returns whether there were too many in a row.
    pub fn lose(&mut self, id: JobId) -> Result<bool, Problem> {
        self.change(Event::Lost(id), |_| {})?;
        Ok(self.service.queue().find(id)?.deaths >= MAX_LOSSES)
    }

    /// Stores and commits steps that follow from another one; without storage they wait.
    fn store_all(&mut self, steps: impl Iterator<Item = Step>) {
        for step in steps {
            let id = step.record.id;
            if let Err(error) = self.service.0.job_store.records().save(&step.record) {
                tracing::warn!(job = id.0, "the record of the job cannot be stored: {error:#}; trying again");
                self.is_behind = true;
                return;
            }
            self.commit(step);
        }
    }

    /// Shows a stored record to readers, and does what follows.
    fn commit(&mut self, Step { record, then }: Step) {
        let inner = &self.service.0;
        let (id, name, account) = (record.id, record.name.clone(), record.account());
        let commit = |record| {
            inner.queue.write().commit(record);
        };
        match then {
            Then::Nothing => commit(record),
            Then::Begin => {
                let handle = inner.fleet.account(account);
                let (run_status, view) = (RunStatus::default(), SharedView::default());
                inner.n_ordered.fetch_add(1, Ordering::SeqCst);
                inner.working.lock().insert(id, handle.clone());
                inner.run_statuses.lock().insert(id, run_status.clone());
                inner.views.lock().insert(id, view.clone());
                commit(record);
                // The threads of jobs are there as long as the service is.
                let _ = self
                    .orders
                    .as_ref()
                    .map(|orders| orders.send(Order { id, name, handle, run_status, view }));
            }
            Then::Stop => {
                commit(record);
                if let Some(handle) = inner.working.lock().get(&id) {
                    handle.cancel();
                }
            }
        }
        inner.notifier.ring();
    }
}
