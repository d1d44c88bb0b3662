//! The threads of jobs: each follows the process of a job, from the job's folder to its result.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::Receiver;
use std::time::Duration;

use anyhow::{Context, Result};
use fleet::Handle;
use parking_lot::Mutex;
use tracing::info_span;
use training::events::{All, Observer, RunEvent};
use training::outcome::FleetUse;
use training::progress::Progress;

use super::queue::{Done, Event};
use super::record::JobId;
use super::view::SharedView;
use super::{Limits, Service, now};
use crate::job_process::folder::{load, reason};
use crate::job_process::{Reason, Unfinished};
use crate::status::RunStatus;
use crate::status::posting::Posting;

/// Time after which the loss of a job's process counts against the job: what ends the service as well, as the end of a machine, has done so.
const COUNTED_AFTER: Duration = Duration::from_secs(1);

/// A job to begin with.
pub(super) struct Order {
    pub id: JobId,
    pub name: String,
    pub handle: Handle,
    pub run_status: RunStatus,
    pub view: SharedView,
}

/// Starts threads that work on what they are ordered to, as many jobs at a time as there are threads, and end with `orders`.
pub(super) fn start(service: &Service, threads: usize, orders: Receiver<Order>) -> Result<()> {
    let orders = Arc::new(Mutex::new(orders));
    for thread in 0..threads {
        let (service, orders) = (service.clone(), orders.clone());
        let body = move || {
            // The lock is held while waiting: the others wait for the lock instead of the channel.
            while let Ok(order) = { orders.lock().recv() } {
                follow(&service, order);
            }
        };
        let spawned = std::thread::Builder::new().name(format!("job-{thread}")).spawn(body);
        spawned.context("cannot start a thread for jobs; allow fewer at a time with --running")?;
    }
    Ok(())
}

fn follow(service: &Service, order: Order) {
    let Order { id, name, handle, run_status, view } = order;
    let _span = info_span!("job", id = id.0, name).entered();
    let work = AssertUnwindSafe(|| work(service, id, name.clone(), &handle, run_status, view.clone()));
    let how = catch_unwind(work).unwrap_or_else(|_| {
        Err("internal error: the job's thread panicked; the service's log says where, please report it"
            .into())
    });
    let job_store = &service.0.job_store;
    let seen = view.read();
    if let Err(error) = job_store.save_view(id, &seen) {
        tracing::warn!(job = id.0, "the rounds of the job cannot be stored: {error:#}");
    }
    service.0.views.lock().remove(&id);
    let how = how.and_then(|parameters_sha256| {
        let published =
            job_store.publish(id).context("the results cannot be put into the object store; resume the job");
        let score = seen.final_scores.into_iter().next();
        published
            .map(|(results, checksums)| Done { parameters_sha256, results, checksums, score })
            .map_err(Reason::from)
    });
    // Without a controller the service has ended, and the next one goes on with the job.
    let _ = service.control(move |controller| controller.end(id, how));
    service.tell(id);
    service.0.n_ordered.fetch_sub(1, Ordering::SeqCst);
}

fn work(
    service: &Service,
    id: JobId,
    name: String,
    handle: &Handle,
    run_status: RunStatus,
    mut view: SharedView,
) -> Result<String, Reason> {
    let job_store = &service.0.job_store;
    let restore = || -> Result<()> {
        let record = service.job(id)?.record;
        job_store.restore(id, &record.inputs)?;
        job_store.check(&record)
    };
    restore().map_err(|error| reason(&error, &job_store.job(id)))?;
    let folder = job_store.job(id);
    let job_log = service.job_log(id);
    job_log.tell(now(), "begun");
    view.of(&load(&folder, &service.0.limits.urls).map_err(|error| reason(&error, &folder))?);
    let mut lines = Progress::lines(move |line| job_log.tell(now(), line));
    let mut posting = Posting::new(name, run_status);
    let fleet_use = || FleetUse::of(service.0.local_workers, &service.0.fleet.status(), handle.effort());
    let Limits { urls, processes, .. } = &service.0.limits;
    loop {
        let mut advancing = Advancing { service, id };
        let observers = &mut All(vec![&mut posting, &mut advancing, &mut view, &mut lines]);
        let trained =
            processes.train(&folder, urls, job_store.checkpoints(id), handle, &fleet_use, observers);
        let Err(Unfinished::Lost(reason)) = trained else { return trained.map_err(Unfinished::into_reason) };
        std::thread::sleep(COUNTED_AFTER);
        if handle.is_cancelled() || is_lost_too_often(service, id) {
            return Err(reason);
        }
        service.job_log(id).tell(now(), &format!("{reason}; starting again"));
    }
}

/// Counts the loss of a job's process; whether there were too many in a row.
fn is_lost_too_often(service: &Service, id: JobId) -> bool {
    match service.control(move |controller| controller.lose(id)) {
        Ok(Ok(is_too_often)) => is_too_often,
        Ok(Err(problem)) | Err(problem) => {
            tracing::warn!(job = id.0, "the loss of the job's process cannot be stored: {problem}");
            false
        }
    }
}

/// Tells the service of checkpoints: the next process does not do the same work again.
struct Advancing<'a> {
    service: &'a Service,
    id: JobId,
}

impl Observer for Advancing<'_> {
    fn on(&mut self, event: &RunEvent) -> Result<()> {
        if let RunEvent::Checkpointed(_) = event {
            let id = self.id;
            // Training need not wait. If it cannot be stored, a later checkpoint counts.
            drop(self.service.ask(move |controller| controller.change(Event::Checkpointed(id), |_| {})));
        }
        Ok(())
    }
}
