//! The process of a job: checks or trains it, and has its batches computed by the fleet of the service.

use std::fs::File;
use std::io::{Read, Write};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::Arc;

use anyhow::{Context, Result, bail};
use training::events::{Observer, RunEvent};
use training::run::{Earlier, Run};
use training::train::{group::Inputs, train};

use super::folder::{JOB, RESULTS, load, reason};
use super::frames::{self, Sender};
use super::limits;
use super::messages::{Action, Assignment, FromJob, ToJob};
use super::service_fleet::ServiceFleet;

/// Does what the service assigns on `input`, and reports on `output`. Calls `orphaned` when the service closes the pipe, which it does
/// after the end, or because it is gone.
pub fn run(
    mut input: impl Read + Send + 'static,
    output: Box<dyn Write + Send>,
    has_own_process: bool,
    orphaned: fn(),
) -> Result<()> {
    let service = Arc::new(Sender::new(output));
    let assignment = match frames::receive(&mut input)? {
        Some((ToJob::Assigned(assignment), _)) => assignment,
        _ => bail!("expected the assignment of a service; `grammaton train` trains a job file"),
    };
    if has_own_process {
        limits::apply(assignment.memory, assignment.cpu_seconds)
            .context("the limits of the process cannot be set")?;
    }
    let folder = assignment.folder.clone();
    let fleet = ServiceFleet::start(input, service.clone(), orphaned)?;
    let ended = match catch_unwind(AssertUnwindSafe(|| execute(&assignment, &fleet))) {
        Ok(Ok(digest)) => Ok(digest),
        Ok(Err(error)) => Err(reason(&error, &folder)),
        Err(_) => {
            Err("internal error: the job panicked; the service's log says where, please report it".into())
        }
    };
    Ok(service.send(&FromJob::Ended(ended), &[])?)
}

fn execute(assignment: &Assignment, fleet: &ServiceFleet) -> Result<String> {
    let Assignment { folder, urls, action, .. } = assignment;
    let mut job = load(folder, urls)?;
    let checkpoints = match action {
        Action::Check => return Inputs::load(&job).map(|_| String::new()),
        Action::Train { checkpoints } => checkpoints,
    };
    job.output.checkpoints = checkpoints.clone();
    let results = folder.join(RESULTS);
    wait_for_predecessor(&results)?;
    let job_file = folder.join(JOB);
    let mut run = Run::open(&job, &job_file, Earlier::Resume)?;
    let inputs = Inputs::load(&job)?;
    let observer = &mut Teller(fleet.service());
    let inputs = run.complete_job(inputs, fleet, observer)?;
    let outcome =
        run.train(observer, |job, checkpoints, observer| train(job, &inputs, fleet, checkpoints, observer))?;
    let fleet_use = fleet.fleet_use()?;
    Ok(run.finish(outcome, &fleet_use, observer)?.result.parameters_sha256)
}

/// Waits until a process of an earlier service, which is about to end, has left the folder of results.
fn wait_for_predecessor(results: &Path) -> Result<()> {
    std::fs::create_dir_all(results)?;
    // A file system without locks has no way to wait.
    let _ = File::open(results)?.lock();
    Ok(())
}

/// Tells the service what happens in the run.
struct Teller(Arc<Sender>);

impl Observer for Teller {
    fn on(&mut self, event: &RunEvent) -> Result<()> {
        let event = serde_json::to_string(event)?;
        self.0.send(&FromJob::Event(event), &[]).context("the service is gone")
    }

    fn shows_snapshots(&self) -> bool {
        true
    }
}
