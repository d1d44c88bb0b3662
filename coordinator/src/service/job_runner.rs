//! The threads of jobs: from a job's folder to its result, as `train` would.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::Ordering;
use std::sync::mpsc::Receiver;
use std::sync::{Arc, Mutex};

use anyhow::{Context, Result};
use tracing::info_span;

use super::queue::{Done, Event};
use super::record::JobId;
use super::view::SharedView;
use super::{Service, lock, now, told};
use crate::events::{All, Observer, RunEvent};
use crate::fleet::Handle;
use crate::metrics::Summary;
use crate::outcome::Crew;
use crate::progress::Progress;
use crate::run::{Earlier, Run};
use crate::status::RunStatus;
use crate::status::posting::Posting;
use crate::train::{group::Inputs, train};

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
            while let Ok(order) = { lock(&orders).recv() } {
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
    let how = match catch_unwind(work) {
        Ok(Ok(summary)) => Ok(summary.parameters_sha256),
        Ok(Err(error)) => Err(told(&error, &service.0.job_store.job(id))),
        Err(_) => {
            Err("internal error: the job panicked; the service's log says where, please report it".to_owned())
        }
    };
    let job_store = &service.0.job_store;
    if let Err(error) = job_store.save_view(id, &view.read()) {
        tracing::warn!(job = id.0, "the rounds of the job cannot be stored: {error:#}");
    }
    lock(&service.0.views).remove(&id);
    let how = how.and_then(|parameters_sha256| {
        let published =
            job_store.publish(id).context("the results cannot be put into the object store; resume the job");
        published.map(|results| Done { parameters_sha256, results }).map_err(|error| format!("{error:#}"))
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
) -> Result<Summary> {
    let job_store = &service.0.job_store;
    let record = service.job(id)?.record;
    job_store.restore(id, &record.inputs)?;
    job_store.check(&record)?;
    let folder = job_store.job(id);
    let job_log = service.job_log(id);
    job_log.tell(now(), "begun");
    let mut job = service.load(&folder)?;
    job.output.checkpoints = job_store.checkpoints(id);
    view.of(&job);
    let job_file = folder.join("job.toml");
    let mut run = Run::open(&job, &job_file, Earlier::Resume)?;
    let inputs = Inputs::load(&job)?;
    let mut lines = Progress::lines(move |line| job_log.tell(now(), line));
    let mut posting = Posting::new(name, run_status);
    let mut advancing = Advancing(service, id);
    let told = &mut All(vec![&mut posting, &mut advancing, &mut view, &mut lines]);
    let outcome = run.train(told, |checkpoints, told| train(&job, &inputs, handle, checkpoints, told))?;
    let crew = Crew::of(service.0.local_workers, &service.0.fleet.status(), handle.effort());
    run.finish(outcome, &crew, told)
}

/// Tells the service of checkpoints: the next process does not do the same work again.
struct Advancing<'a>(&'a Service, JobId);

impl Observer for Advancing<'_> {
    fn on(&mut self, event: &RunEvent<'_>) -> Result<()> {
        if let RunEvent::Checkpointed(_) = event {
            let id = self.1;
            // Training need not wait. If it cannot be stored, a later checkpoint counts.
            drop(self.0.ask(move |controller| controller.change(Event::Checkpointed(id), |_| {})));
        }
        Ok(())
    }
}
