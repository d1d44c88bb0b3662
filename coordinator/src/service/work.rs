//! The threads of jobs: from a job's folder to its result, as `train` would.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc::Receiver;
use std::sync::{Arc, Mutex};

use anyhow::{Context, Result, bail};
use tracing::info_span;

use super::record::JobId;
use super::scene::Scene;
use super::{Service, lock, now, told};
use crate::commands::train::crew;
use crate::fleet::Handle;
use crate::metrics::{All, Observer, RoundMetrics, Start, Summary};
use crate::progress::Progress;
use crate::run::Run;
use crate::status::Board;
use crate::status::posting::Posting;
use crate::train::{input::Input, train};

/// A job to begin with.
pub(super) struct Order {
    pub id: JobId,
    pub name: String,
    pub handle: Handle,
    pub board: Board,
    pub scene: Scene,
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
    let Order { id, name, handle, board, scene } = order;
    let _span = info_span!("job", id = id.0, name).entered();
    let work = AssertUnwindSafe(|| work(service, id, name.clone(), &handle, board, scene.clone()));
    let how = match catch_unwind(work) {
        Ok(Ok(summary)) => Ok(summary.parameters_sha256),
        Ok(Err(error)) => Err(told(&error, &service.0.depot.job(id))),
        Err(_) => {
            Err("internal error: the job panicked; the service's log says where, please report it".to_owned())
        }
    };
    service.leave(id, &scene.read());
    let depot = &service.0.depot;
    let how = how.and_then(|sha256| {
        let published =
            depot.publish(id).context("the results cannot be put into the object store; resume the job");
        published.map(|()| sha256).map_err(|error| format!("{error:#}"))
    });
    service.ended(id, how);
    service.tell(id);
}

fn work(
    service: &Service,
    id: JobId,
    name: String,
    handle: &Handle,
    board: Board,
    mut scene: Scene,
) -> Result<Summary> {
    let depot = &service.0.depot;
    depot.restore(id, &service.job(id)?.record.inputs)?;
    let folder = depot.job(id);
    let journal = service.journal(id);
    journal.tell(now(), "begun");
    let mut job = service.load(&folder)?;
    job.output.checkpoints = depot.checkpoints(id);
    scene.of(&job);
    let job_file = folder.join("job.toml");
    let mut run = Run::open(&job, &job_file, true)?;
    let input = Input::load(&job)?;
    let mut lines = Progress::lines(move |line| journal.tell(now(), line));
    let (mut posting, mut stoppable) = (Posting { name, board }, Stoppable(handle));
    let told = &mut All(vec![&mut posting, &mut stoppable, &mut scene, &mut lines]);
    let outcome = run.train(told, |checkpoints, told| train(&job, &input, handle, checkpoints, told))?;
    let crew = crew(service.0.local_workers, &service.0.fleet.status());
    run.finish(outcome, &crew, told)
}

/// Ends a job between two steps if it is wanted no more; in between, the fleet does.
struct Stoppable<'a>(&'a Handle);

impl Stoppable<'_> {
    fn check(&self) -> Result<()> {
        if self.0.is_cancelled() {
            bail!("the job was stopped");
        }
        Ok(())
    }
}

impl Observer for Stoppable<'_> {
    fn started(&mut self, _: &Start) -> Result<()> {
        self.check()
    }

    fn prepared(&mut self, _: &[RoundMetrics]) -> Result<()> {
        self.check()
    }

    fn round(&mut self, _: &RoundMetrics) -> Result<()> {
        self.check()
    }
}
