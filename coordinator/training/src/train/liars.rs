//! Laws of jobs on fleets with a worker that lies: whatever it claims, the job has the result that it has without the worker, to the last bit,
//! for every model and method; who was wrong is expelled; and the job restarts at most twice.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use fleet::{Compute, Fleet, FleetConfig, Inline, Listen, Map};
use grammaton::grammar::ParamId;
use grammaton::work::engine::{ComputeError, engine};
use grammaton::work::task::{Answer, Work};

use self::lies::{LIES, Lie};
use super::group::Inputs;
use super::laws::{all, came_to_with, folder, job, parse};
use super::train;
use crate::events::{Observer, RunEvent};
use crate::job::Job;
use crate::train::checkpoint::Checkpoints;
use grammaton::settings::{Estimator, Model};

mod lies;

/// Counts the restarts of a job.
#[derive(Default)]
struct Restarts(usize);

impl Observer for Restarts {
    fn on(&mut self, event: &RunEvent) -> anyhow::Result<()> {
        self.0 += usize::from(matches!(event, RunEvent::Notice(text) if text.contains("the job continues")));
        Ok(())
    }
}

fn came_to(job: &Job, inputs: &Inputs, fleet: &dyn Map) -> (Result<String, String>, usize) {
    let (mut job, out) = (job.clone(), tempfile::tempdir().unwrap());
    (job.output.dir, job.output.keep_checkpoints, job.output.checkpoint_seconds) =
        (out.path().to_owned(), 2, 0.0);
    let mut checkpoints = Checkpoints::open(&job.output, false).unwrap();
    let mut restarts = Restarts::default();
    let result = train(&job, inputs, fleet, &mut checkpoints, &mut restarts);
    (result.map(|outcome| came_to_with(&outcome)).map_err(|error| format!("{error:#}")), restarts.0)
}

/// Trains beside a worker that lies and two that do not, and checks the result; returns the number of expelled workers.
fn beside(
    job: &Job,
    inputs: &Inputs,
    lie: Lie,
    audit: f64,
    undisturbed: &Result<String, String>,
    case: &str,
) -> u64 {
    let (engine, lies) = (engine(), Arc::new(AtomicUsize::new(0)));
    let listen = Some(Listen::at("127.0.0.1:0".parse().unwrap()));
    let (min_members, compute) = (3, engine.clone());
    let config =
        FleetConfig { local_workers: 0, min_members, listen, audit, compute, ..FleetConfig::default() };
    let fleet = Fleet::start(config).unwrap();
    let (n_lies, honest) = (lies.clone(), engine.clone());
    let lying: Compute = Arc::new(move |task| {
        let answer = honest(task)?;
        let lie = lie(task, answer.clone());
        n_lies.fetch_add(usize::from(lie.as_ref() != Ok(&answer)), Ordering::Relaxed);
        lie
    });
    for (process, machine, compute) in [(1, "a", &lying), (2, "b", &engine), (3, "c", &engine)] {
        fleet.join(process, machine, compute.clone()).unwrap();
    }
    let (result, restarts) = came_to(job, inputs, &fleet);
    let lies = lies.load(Ordering::Relaxed);
    assert_eq!(result, *undisturbed, "{case}");
    assert!(restarts <= 2, "{case}: {restarts} restarts");
    // A lie that changes nothing is not noticed, such as the parameters of a shard that its method does not read.
    let n_expelled = fleet.status().losses.get("expelled").copied().unwrap_or_default();
    assert!(n_expelled <= u64::from(lies > 0), "{case}: {n_expelled} of {lies}");
    assert_eq!(fleet.join(1, "a", lying).is_err(), n_expelled > 0, "{case}");
    n_expelled
}

#[test]
fn with_audits_no_plausible_index_changes_a_result() {
    let dir = folder();
    let lie: Lie = |task, mut answer| {
        if let (Answer::Index(index), Some(of)) = (&mut answer, &task.language) {
            let n_params = of.lexicon.value.space(&of.grammar.value).n_params() as u32;
            let other = (0..n_params).map(ParamId).find(|param| index.params.binary_search(param).is_err());
            if let (Some(last), Some(other)) = (index.params.last_mut(), other) {
                *last = other;
            }
            index.params.sort_unstable();
        }
        Ok(answer)
    };
    let mut n_expelled = 0;
    for (model, estimator) in all() {
        let job = parse(&job(model, estimator), dir.path(), &[]).unwrap();
        let inputs = Inputs::load(&job).unwrap();
        let (undisturbed, _) = came_to(&job, &inputs, &Inline::new(engine()));
        let case = format!("{model:?} {estimator:?}");
        n_expelled += beside(&job, &inputs, lie, 0.01, &undisturbed, &case);
    }
    assert!(n_expelled > 0);
}

#[test]
#[ignore = "slow"]
fn no_claim_of_a_worker_changes_a_result() {
    let (dir, engine) = (folder(), engine());
    let mut expelled_by_kind = [0; LIES.len()];
    // With so few strings, some sentences have no derivation without others.
    let covered = (Model::Adaptor, Estimator::Vb, &["inference.truncation=2".to_owned()][..]);
    for (model, estimator, settings) in
        all().map(|(model, estimator)| (model, estimator, &[][..])).chain([covered])
    {
        let job = parse(&job(model, estimator), dir.path(), settings).unwrap();
        let inputs = Inputs::load(&job).unwrap();
        let (undisturbed, _) = came_to(&job, &inputs, &Inline::new(engine.clone()));
        for (kind, &(name, lie)) in LIES.iter().enumerate() {
            let case = format!("{model:?} {estimator:?}: {name}");
            expelled_by_kind[kind] += beside(&job, &inputs, lie, 0.0, &undisturbed, &case);
        }
    }
    for ((name, _), n_expelled) in LIES.iter().zip(expelled_by_kind) {
        assert!(n_expelled > 0, "{name}");
    }
}

#[test]
fn a_lone_worker_that_reports_failures_ends_no_job() {
    let (dir, engine) = (folder(), engine());
    for (model, estimator) in all() {
        let job = parse(&job(model, estimator), dir.path(), &[]).unwrap();
        let inputs = Inputs::load(&job).unwrap();
        let (undisturbed, _) = came_to(&job, &inputs, &Inline::new(engine.clone()));
        let listen = Some(Listen::at("127.0.0.1:0".parse().unwrap()));
        let config =
            FleetConfig { local_workers: 0, listen, compute: engine.clone(), ..FleetConfig::default() };
        let fleet = Fleet::start(config).unwrap();
        let failing: Compute = Arc::new(|_| Err(ComputeError::NoGrammar));
        fleet.join(1, "a", failing.clone()).unwrap();
        let (result, restarts) = std::thread::scope(|scope| {
            let trained = scope.spawn(|| came_to(&job, &inputs, &fleet));
            while fleet.status().losses.get("expelled") != Some(&1) && !trained.is_finished() {
                std::thread::sleep(Duration::from_millis(1));
            }
            fleet.join(2, "b", engine.clone()).unwrap();
            trained.join().unwrap()
        });
        assert_eq!((result, restarts), (undisturbed, 1), "{model:?} {estimator:?}");
        assert!(fleet.join(1, "a", failing).is_err());
    }
}

#[test]
fn a_failure_that_the_job_s_own_process_has_as_well_ends_the_job_and_expels_no_worker() {
    let (dir, engine) = (folder(), engine());
    let job = parse(&job(Model::Pcfg, Estimator::Em), dir.path(), &[]).unwrap();
    let inputs = Inputs::load(&job).unwrap();
    let failing: Compute = Arc::new(move |task| match &task.work {
        Work::Index => Err(ComputeError::NoGrammar),
        _ => engine(task),
    });
    let listen = Some(Listen::at("127.0.0.1:0".parse().unwrap()));
    let config = FleetConfig { local_workers: 0, listen, compute: failing.clone(), ..FleetConfig::default() };
    let fleet = Fleet::start(config).unwrap();
    fleet.join(1, "a", failing.clone()).unwrap();
    fleet.join(2, "b", failing).unwrap();
    let (result, restarts) = came_to(&job, &inputs, &fleet);
    let error = result.unwrap_err();
    let reported = |worker: &str| error.contains(&format!("{worker} reported: the task names no grammar"));
    assert!(reported("w1 (a)") && reported("w2 (b)"), "{error}");
    assert_eq!((restarts, fleet.status().losses.get("expelled")), (0, None));
}
