//! Services in this process, whose storage fails or is cut off at every step.

use std::cell::Cell;
use std::fs;
use std::io;
use std::rc::Rc;

use super::leader_lease::Timeouts;
use super::*;
use crate::faults;
use crate::fleet::FleetConfig;

const JOB: &str =
    "[model]\ngrammar = \"auto:unigram\"\n[corpus]\npath = \"corpus.txt\"\n[inference]\nmax_rounds = 2\n";
const HASTY: Timeouts = Timeouts { look: Duration::from_millis(2), silence: 2 };

/// Where a service keeps things.
struct Place {
    dir: tempfile::TempDir,
    /// Whether that is an object store, for which a folder stands in.
    is_remote: bool,
}

impl Place {
    fn new(is_remote: bool) -> Place {
        Place { dir: tempfile::tempdir().unwrap(), is_remote }
    }

    fn job_store(&self) -> JobStore {
        let (folder, store) = (self.dir.path().join("folder"), self.dir.path().join("store"));
        let store = store.display().to_string();
        JobStore::open(&folder, self.is_remote.then_some((&store, HASTY))).unwrap()
    }

    fn serve(&self) -> Service {
        self.serve_with(Limits { room: 1, ..Default::default() })
    }

    fn serve_with(&self, limits: Limits) -> Service {
        let fleet = Fleet::start(FleetConfig { local_workers: 1, ..Default::default() }).unwrap();
        Service::start(self.job_store(), fleet, 1, limits).unwrap()
    }

    /// What another machine finds if the process is killed now: of an object store nothing but that.
    fn killed(&self) -> Place {
        let copy = Place::new(self.is_remote);
        copy_below(&self.kept(), &copy.kept()).unwrap();
        copy
    }

    /// The folder whose loss would be the loss of all.
    fn kept(&self) -> PathBuf {
        self.dir.path().join(if self.is_remote { "store" } else { "folder" })
    }
}

fn copy_below(from: &Path, to: &Path) -> io::Result<()> {
    fs::create_dir_all(to)?;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        let (path, copy) = (entry.path(), to.join(entry.file_name()));
        let copied = if path.is_dir() { copy_below(&path, &copy) } else { fs::copy(&path, &copy).map(drop) };
        match copied {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {} // a log that is being replaced
            copied => copied?,
        }
    }
    Ok(())
}

fn ann() -> Identity {
    Identity::anyone("ann")
}

/// Sends a corpus of its own, and the job.
fn submit(service: &Service, key: &str) -> Result<JobId, Problem> {
    let corpus = format!("ab ab\nba ab\n{}\n", key.replace(' ', "")).into_bytes();
    let hash = blake3::hash(&corpus);
    if !service.has(hash) {
        let mut incoming = service.receive(hash, corpus.len() as u64)?;
        incoming.push(&corpus)?;
        service.keep(&ann(), incoming)?;
    }
    let inputs = vec![Input { path: "corpus.txt".into(), hash }];
    let (job, name, key) = (JOB.to_owned(), "job".to_owned(), key.to_owned());
    let submission = Submission { job, inputs, name, key, ..Default::default() };
    service.submit(&ann(), submission).map(|view| view.record.id)
}

fn ids(service: &Service) -> BTreeSet<JobId> {
    service.jobs(None, usize::MAX).iter().map(|view| view.record.id).collect()
}

/// The job once it is over.
fn over(service: &Service, id: JobId) -> Record {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let mut notifier = service.notifier().listen();
    loop {
        notifier.borrow_and_update();
        let record = service.job(id).unwrap().record;
        if record.state.is_over() {
            return record;
        }
        let rings = async { tokio::time::timeout(Duration::from_secs(60), notifier.changed()).await };
        runtime.block_on(rings).expect("a job ends").unwrap();
    }
}

#[track_caller]
fn check_done(service: &Service, id: JobId) {
    let state = over(service, id).state;
    assert!(matches!(state, State::Done { .. }), "{id}: {state:?}");
}

/// From the `n`-th step on all fail; `killed` is what is in storage before it.
fn kill(
    n: usize,
    place: &Rc<Place>,
    killed: &Rc<Cell<Option<Place>>>,
) -> impl FnMut() -> io::Result<()> + use<> {
    let (place, killed, mut step) = (place.clone(), killed.clone(), 0);
    move || {
        step += 1;
        if step == n {
            killed.set(Some(place.killed()));
        }
        if step >= n { Err(io::Error::other("a fault")) } else { Ok(()) }
    }
}

/// Whichever step of a submission fails, before or after it took effect: who submitted has an id, and the job is there and runs, or has an
/// error, and the same submission works later; no id is given to two jobs; and the service starts. With `is_killed` all steps after it fail
/// as well, and what is in storage then is all that is left.
fn submissions_survive_faults(is_remote: bool, is_killed: bool) {
    let place = Rc::new(Place::new(is_remote));
    let service = place.serve();
    let mut given = BTreeSet::new();
    for n in 1.. {
        let key = format!("key {n}");
        let killed = Rc::new(Cell::new(None));
        let mut kill = kill(n, &place, &killed);
        let mut has_failed = false;
        let fault = move || {
            let step = kill();
            if has_failed && !is_killed {
                return Ok(());
            }
            has_failed = step.is_err();
            step
        };
        let answer = faults::inject(fault, || submit(&service, &key));
        let Some(killed) = killed.take() else {
            assert!(n > 20 && answer.is_ok(), "{n} steps: {answer:?}");
            break;
        };
        if is_killed {
            let next = killed.serve();
            let there = ids(&next);
            assert!(there.is_superset(&given), "{n}: {there:?}");
            if let Ok(id) = answer {
                assert!(there.contains(&id) && given.insert(id), "{n}: {id} is lost, or was used before");
                check_done(&service, id);
            }
            let id = submit(&next, &key).unwrap();
            assert!(there.contains(&id) || Some(&id) > there.last(), "{n}: {id} was used before");
            let state = next.job(id).unwrap().record.state;
            assert!(matches!(state, State::Running | State::Done { .. }), "{n}: {state:?}");
            assert_eq!(submit(&next, &key).unwrap(), id, "{n}: twice is once");
            next.close(Duration::from_secs(60));
            continue;
        }
        let id = answer.or_else(|_| submit(&service, &key)).unwrap();
        assert_eq!(submit(&service, &key).unwrap(), id, "{n}: twice is once");
        assert!(given.insert(id), "{n}: {id} was used before");
        check_done(&service, id);
    }
    service.close(Duration::from_secs(60));
    let killed = place.killed();
    let next = killed.serve();
    let there = ids(&next);
    assert!(there.is_superset(&given));
    if !is_remote {
        let left = |part: &str| fs::read_dir(killed.dir.path().join("folder").join(part)).unwrap().count();
        assert_eq!((left("jobs"), left("work")), (there.len(), there.len()), "nothing is left of others");
    }
}

#[test]
fn a_submission_survives_a_failure_of_any_step_on_disk() {
    submissions_survive_faults(false, false);
}

#[test]
fn a_submission_survives_a_failure_of_any_step_in_an_object_store() {
    submissions_survive_faults(true, false);
}

#[test]
fn a_submission_survives_a_kill_at_any_step_on_disk() {
    submissions_survive_faults(false, true);
}

#[test]
fn a_submission_survives_a_kill_at_any_step_in_an_object_store() {
    submissions_survive_faults(true, true);
}

/// A deleted job leaves nothing behind but its lines in the audit and the files that others read; its id is not used again, not by the next
/// process on another machine either.
#[test]
fn a_deleted_job_leaves_nothing_and_its_id_is_not_used_again() {
    for is_remote in [false, true] {
        let place = Place::new(is_remote);
        let service = place.serve();
        let [one, two] = ["a b", "ab"].map(|key| submit(&service, key).unwrap());
        [one, two].iter().for_each(|&id| check_done(&service, id));
        let hash = service.job(one).unwrap().record.inputs[0].hash;
        let root = place.kept();
        let is_there = |id: JobId| {
            let paths = [
                format!("jobs/{id}.json"),
                format!("work/{id}/job.toml"),
                format!("work/{id}/out/summary.json"),
            ];
            paths.map(|path| root.join(path).exists())
        };
        assert_eq!(is_there(two), [true; 3]);
        service.delete(&ann(), two).unwrap();
        assert!(matches!(service.job(two), Err(Problem::Refused(Refusal::Unknown(_)))));
        assert_eq!((is_there(one), is_there(two)), ([true; 3], [false; 3]));
        assert!(service.has(hash), "the other job reads it");
        service.delete(&ann(), one).unwrap();
        assert!(!service.has(hash) && is_there(one) == [false; 3]);
        let elsewhere = place.killed();
        let next = elsewhere.serve();
        assert_eq!(submit(&next, "ab").unwrap(), JobId(3), "the same key is free again");
        check_done(&next, JobId(3));
        next.close(Duration::from_secs(60));
        assert_eq!(submit(&service, "a b").unwrap(), JobId(3));
        service.close(Duration::from_secs(60));
    }
}

/// Whenever a process is killed that deletes a job: for the next one the job is there with its results, or nothing of it is.
#[test]
fn a_deletion_survives_a_kill_at_any_step() {
    for is_remote in [false, true] {
        for n in 1.. {
            let place = Rc::new(Place::new(is_remote));
            let (job_store, id) = (place.job_store(), JobId(1));
            let work = place.kept().join("work/1");
            fs::create_dir_all(work.join("out")).unwrap();
            for name in ["job.toml", "out/model.bin", "out/summary.json"] {
                fs::write(work.join(name), name).unwrap();
            }
            let done = State::Done { parameters_sha256: "ab".into() };
            let results = vec![("model.bin".into(), 13), ("summary.json".into(), 16)];
            job_store
                .save(&Record { results, ended: Some(Millis(1)), ..record::tests::record(1, done) })
                .unwrap();
            drop(job_store);
            let service = place.serve();
            let killed = Rc::new(Cell::new(None));
            let answer = faults::inject(kill(n, &place, &killed), || service.delete(&ann(), id));
            service.close(Duration::from_secs(60));
            let Some(killed) = killed.take() else {
                assert!(n > 4 && answer.is_ok(), "{n}");
                break;
            };
            let next = killed.serve();
            match next.job(id) {
                Ok(view) => {
                    assert!(answer.is_err(), "{n}");
                    assert_eq!(next.results(id).unwrap().1, view.record.results, "{n}");
                }
                Err(_) => {
                    let left = ["jobs/1.json", "work/1/job.toml", "work/1/out/summary.json"];
                    assert!(left.iter().all(|path| !killed.kept().join(path).exists()), "{n}");
                }
            }
            next.close(Duration::from_secs(60));
        }
    }
}

#[test]
fn jobs_are_kept_as_many_days_as_asked_for() {
    let place = Place::new(false);
    let job_store = place.job_store();
    let (day, present) = (DAY.as_millis() as u64, now().0);
    for (id, state, days) in [
        (1, State::Cancelled, 4),
        (2, State::Failed { error: "no".into() }, 2),
        (3, State::Done { parameters_sha256: "ab".into() }, 4),
    ] {
        let ended = Some(Millis(present - days * day));
        job_store.save(&Record { ended, ..record::tests::record(id, state) }).unwrap();
    }
    drop(job_store);
    let service = place.serve_with(Limits { room: 1, keep: Some(DAY * 3), ..Default::default() });
    service.expire(Millis(present));
    assert_eq!(ids(&service), [JobId(2)].into());
    service.expire(Millis(present + day + 1));
    assert_eq!(ids(&service), [].into());
    let audit = fs::read_to_string(service.0.job_store.audit()).unwrap();
    assert_eq!(audit.matches("it ended more than 3 days ago").count(), 3, "{audit}");
}

/// To look at a job that is done brings nothing from the object store but what is told of it.
#[test]
fn results_are_brought_when_they_are_fetched_and_not_before() {
    let place = Place::new(true);
    let service = place.serve();
    let id = submit(&service, "key").unwrap();
    check_done(&service, id);
    service.close(Duration::from_secs(60));
    let elsewhere = place.killed();
    let next = elsewhere.serve();
    let files = next.files(&next.job(id).unwrap().record).unwrap();
    assert!(files.iter().any(|(path, size)| path == "model/model.bin" && *size > 0), "{files:?}");
    next.last_lines(id, 20).unwrap();
    assert!(!next.seen(id).rounds.is_empty());
    assert!(!next.0.job_store.results(id).exists());
    let (folder, brought) = next.results(id).unwrap();
    assert_eq!(brought, files);
    assert!(files.iter().all(|(path, size)| fs::metadata(folder.join(path)).unwrap().len() == *size));
}
