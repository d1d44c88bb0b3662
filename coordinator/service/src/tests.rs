//! Services in this process, whose storage fails or is cut off at every step.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, AtomicU64};

use basics::faults;
use basics::store;
use fleet::{FleetConfig, Listen};

use super::leader_lease::Timeouts;
use super::record::{Input, State};
use super::*;

const JOB: &str =
    "[model]\ngrammar = \"auto:unigram\"\n[corpus]\npath = \"corpus.txt\"\n[inference]\nmax_rounds = 2\n";
/// A killed service stays, so that its term must not end while the next one begins.
const HASTY: Timeouts =
    Timeouts { look: Duration::from_millis(2), unchanged_looks: 2, term: Duration::from_secs(3600) };

/// Storage of a service.
pub struct Place {
    dir: tempfile::TempDir,
    /// The URL of the object store, if there is one.
    remote: Option<String>,
}

impl Place {
    pub fn new(is_remote: bool) -> Place {
        static STORES: AtomicUsize = AtomicUsize::new(0);
        let url = || format!("memory://service-{}", STORES.fetch_add(1, Ordering::SeqCst));
        Place { dir: tempfile::tempdir().unwrap(), remote: is_remote.then(url) }
    }

    fn folder(&self) -> PathBuf {
        self.dir.path().join("folder")
    }

    fn job_store(&self) -> JobStore {
        JobStore::open(&self.folder(), self.remote.as_deref().map(|url| (url, HASTY))).unwrap()
    }

    pub fn serve(&self) -> Service {
        self.serve_with(Limits { room: ONE, ..limits() })
    }

    fn serve_with(&self, limits: Limits) -> Service {
        let fleet = Fleet::start(FleetConfig { local_workers: 1, ..Default::default() }).unwrap();
        Service::start(self.job_store(), fleet, 1, limits).unwrap()
    }

    /// The store as another machine finds it if the process is killed now.
    pub fn killed(&self) -> Place {
        let copy = Place::new(self.remote.is_some());
        match self.remote.as_ref().zip(copy.remote.as_ref()) {
            Some((from, to)) => store::memory::copy(from, to),
            None => copy_below(&self.folder(), &copy.folder()).unwrap(),
        }
        copy
    }

    /// The folder or object store whose loss would be the loss of all.
    fn kept(&self) -> store::Store {
        let folder = self.folder().display().to_string();
        store::Store::open(self.remote.as_ref().unwrap_or(&folder)).unwrap()
    }
}

/// With jobs on threads of this process, whose storage may be in memory.
fn limits() -> Limits {
    Limits::with(Processes::threads())
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

const ONE: Room = Room { n: 1, priority_bound: 2 };

pub fn ann() -> Identity {
    Identity::anyone("ann")
}

/// Results of `history` for the seeds below `n`, in any order; eight at a time, as a history waits most of the time.
pub fn histories<T: Send>(n: u64, history: impl Fn(u64) -> T + Sync) -> Vec<T> {
    let (next, all) = (AtomicU64::new(0), Mutex::new(Vec::new()));
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                loop {
                    let seed = next.fetch_add(1, Ordering::Relaxed);
                    if seed >= n {
                        return;
                    }
                    let found = history(seed);
                    all.lock().push(found);
                }
            });
        }
    });
    all.into_inner()
}

/// Sends a corpus of its own, and the job.
pub fn submit(service: &Service, key: &str) -> Result<JobId, Problem> {
    let corpus = format!("ab ab\nba ab\n{}\n", key.replace(' ', "")).into_bytes();
    let hash = blake3::hash(&corpus);
    if !service.has(hash) {
        let mut incoming = service.receive(&ann(), hash, corpus.len() as u64)?;
        incoming.push(&corpus)?;
        service.keep(incoming)?;
    }
    let inputs = vec![Input { path: "corpus.txt".into(), hash }];
    let (job, name, key) = (JOB.to_owned(), "job".to_owned(), key.to_owned());
    let submission = Submission { job, inputs, name, key, ..Default::default() };
    service.submit(&ann(), submission, &|| true).map(|view| view.record.id)
}

pub fn ids(service: &Service) -> BTreeSet<JobId> {
    service.jobs(None, usize::MAX).unwrap().iter().map(|view| view.record.id).collect()
}

/// Paths and sizes of results.
fn paths(files: &[job_store::ResultFile]) -> Vec<(String, u64)> {
    files.iter().map(|file| (file.path.clone(), file.size)).collect()
}

/// The job once it is over.
pub fn over(service: &Service, id: JobId) -> Record {
    once(service, id, State::is_over)
}

/// The job once its state is one of those that `is_reached` names.
fn once(service: &Service, id: JobId, is_reached: impl Fn(&State) -> bool) -> Record {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let mut notifier = service.notifier().listen();
    loop {
        notifier.borrow_and_update();
        let record = service.job(id).unwrap().record;
        if is_reached(&record.state) {
            return record;
        }
        let rings = async { tokio::time::timeout(Duration::from_secs(60), notifier.changed()).await };
        runtime.block_on(rings).expect("the job changes").unwrap();
    }
}

#[track_caller]
fn check_done(service: &Service, id: JobId) {
    let state = over(service, id).state;
    assert!(matches!(state, State::Done { .. }), "{id}: {state:?}");
}

/// Storage that fails from its `n`-th step on, until it is mended; what is stored before that step is kept.
#[derive(Clone)]
pub struct Kill(Arc<KillState>);

struct KillState {
    n: usize,
    steps: AtomicUsize,
    place: Arc<Place>,
    killed: Mutex<Option<Place>>,
    /// Whether only the `n`-th step fails.
    is_mended: bool,
}

impl Kill {
    pub fn at(n: usize, place: &Arc<Place>, is_mended: bool) -> Kill {
        let (steps, place, killed) = (AtomicUsize::new(0), place.clone(), Mutex::default());
        Kill(Arc::new(KillState { n, steps, place, killed, is_mended }))
    }

    fn step(&self) -> io::Result<()> {
        let KillState { n, steps, place, killed, is_mended } = &*self.0;
        let step = steps.fetch_add(1, Ordering::SeqCst) + 1;
        if step == *n {
            *killed.lock() = Some(place.killed());
        }
        let fails = step == *n || step > *n && !is_mended;
        if fails { Err(io::Error::other("a fault")) } else { Ok(()) }
    }

    /// Does `work` with this storage.
    pub fn during<T>(&self, work: impl FnOnce() -> T) -> T {
        let kill = self.clone();
        faults::inject(move || kill.step(), work)
    }

    /// The store as it was before the `n`-th step, if there was one.
    pub fn killed(&self) -> Option<Place> {
        self.0.killed.lock().take()
    }
}

/// Whichever step of a submission fails, before or after it took effect: who submitted has an id, and the job is there and runs, or has an
/// error, and the same submission works later; no id is given to two jobs; and the service starts. With `is_killed` all steps after it fail
/// as well, and what is in storage then is all that is left.
fn submissions_survive_faults(is_remote: bool, is_killed: bool) {
    let place = Arc::new(Place::new(is_remote));
    let service = place.serve();
    let mut given = BTreeSet::new();
    for n in 1.. {
        let key = format!("key {n}");
        let kill = Kill::at(n, &place, !is_killed);
        let answer = kill.during(|| submit(&service, &key));
        let Some(killed) = kill.killed() else {
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
#[ignore = "slow"]
fn a_submission_survives_a_failure_of_any_step_on_disk() {
    submissions_survive_faults(false, false);
}

#[test]
#[ignore = "slow"]
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

/// A service that cannot renew its lease does not show what its successor may have changed.
#[test]
fn a_service_whose_term_is_over_shows_no_job() {
    let place = Place::new(true);
    let timeouts = Timeouts { term: Duration::from_secs(2), ..HASTY };
    let job_store =
        JobStore::open(&place.folder(), Some((place.remote.as_ref().unwrap(), timeouts))).unwrap();
    let fleet = Fleet::start(FleetConfig { local_workers: 1, ..Default::default() }).unwrap();
    let service = Service::start(job_store, fleet, 1, limits()).unwrap();
    let id = submit(&service, "ab").unwrap();
    std::thread::sleep(timeouts.term);
    for refused in [
        service.job(id).map(drop),
        service.jobs(None, 9).map(drop),
        service.page(1, 9).map(drop),
        submit(&service, "ab").map(drop),
    ] {
        let refused = refused.unwrap_err().to_string();
        assert!(refused.contains("has lost its object store"), "{refused}");
    }
    service.close(Duration::from_secs(60));
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
            paths.map(|path| root.find(&path).unwrap().is_some())
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
/// Annotations that were acknowledged are there for the next process, on another machine too, whichever step of a change is the last; what another service has
/// changed is not overwritten; and all is removed with the job.
#[test]
fn annotations_survive_a_kill_at_any_step_and_go_with_their_job() {
    for is_remote in [false, true] {
        let place = Arc::new(Place::new(is_remote));
        let service = place.serve();
        let id = submit(&service, "a b").unwrap();
        check_done(&service, id);
        for n in 1.. {
            let (before, version) = service.annotations(id).unwrap();
            let after = [&before[..], b"a b\n"].concat();
            let kill = Kill::at(n, &place, false);
            let answer = kill.during(|| service.keep_annotations(id, &after, version.as_ref()));
            let Some(killed) = kill.killed() else {
                assert!(n > 1 && answer.is_ok(), "{n} steps: {answer:?}");
                assert_eq!(service.annotations(id).unwrap().0, after);
                let stale = service.keep_annotations(id, b"", version.as_ref());
                assert_eq!(stale.is_err(), is_remote, "{stale:?}");
                break;
            };
            let next = killed.serve();
            let (found, _) = next.annotations(id).unwrap();
            assert!(found == after || answer.is_err() && found == before, "{n}: {answer:?}");
            next.close(Duration::from_secs(60));
        }
        let (kept, version) = service.annotations(id).unwrap();
        let elsewhere = place.killed();
        let next = elsewhere.serve();
        assert_eq!(next.annotations(id).unwrap().0, kept);
        next.close(Duration::from_secs(60));
        let large = vec![b'a'; 1 << 20];
        let refused = service.keep_annotations(id, &large, version.as_ref()).unwrap_err().to_string();
        assert!(refused.contains("grammaton annotate"), "{refused}");
        service.delete(&ann(), id).unwrap();
        assert!(service.annotations(id).is_err());
        assert!(service.keep_annotations(id, b"a b\n", None).is_err());
        assert_eq!(place.kept().list_below(&format!("work/{id}")).unwrap(), [""; 0]);
        service.close(Duration::from_secs(60));
    }
}

#[test]
fn a_deletion_survives_a_kill_at_any_step() {
    for is_remote in [false, true] {
        for n in 1.. {
            let place = Arc::new(Place::new(is_remote));
            let (job_store, id) = (place.job_store(), JobId(1));
            for name in ["job.toml", "out/model.bin", "out/summary.json"] {
                place.kept().put(&format!("work/1/{name}"), name.into()).unwrap();
            }
            let done = State::Done { parameters_sha256: "ab".into() };
            let results = vec![("model.bin".into(), 13), ("summary.json".into(), 16)];
            job_store
                .records()
                .save(&Record { results, ended: Some(Millis(1)), ..record::tests::record(1, done) })
                .unwrap();
            drop(job_store);
            let service = place.serve();
            let kill = Kill::at(n, &place, false);
            let answer = kill.during(|| service.delete(&ann(), id));
            service.close(Duration::from_secs(60));
            let Some(killed) = kill.killed() else {
                assert!(n > 4 && answer.is_ok(), "{n}");
                break;
            };
            let next = killed.serve();
            match next.job(id) {
                Ok(view) => {
                    assert!(answer.is_err(), "{n}");
                    assert_eq!(paths(&next.results(id).unwrap().1), view.record.results, "{n}");
                }
                Err(_) => {
                    let left = ["jobs/1.json", "work/1/job.toml", "work/1/out/summary.json"];
                    assert!(left.iter().all(|path| killed.kept().find(path).unwrap().is_none()), "{n}");
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
        job_store.records().save(&Record { ended, ..record::tests::record(id, state) }).unwrap();
    }
    drop(job_store);
    let service = place.serve_with(Limits { room: ONE, keep: Some(DAY * 3), ..limits() });
    service.expire(Millis(present));
    assert_eq!(ids(&service), [JobId(2)].into());
    service.expire(Millis(present + day + 1));
    assert_eq!(ids(&service), [].into());
    let audit = fs::read_to_string(service.0.job_store.audit()).unwrap();
    assert_eq!(audit.matches("it ended more than 3 days ago").count(), 3, "{audit}");
}

/// To look at a job that is done brings only its log and view from the object store.
#[test]
fn results_are_downloaded_when_they_are_fetched() {
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
    let (folder, downloaded) = next.results(id).unwrap();
    assert_eq!(paths(&downloaded), files);
    assert!(downloaded.iter().all(|file| file.hash.is_some() && file.check(&folder).is_ok()));
    assert!(files.iter().all(|(path, size)| fs::metadata(folder.join(path)).unwrap().len() == *size));
}

/// A service whose jobs never end, as no worker computes for them.
fn serve_without_workers(place: &Place) -> Service {
    let listen = Some(Listen::at("127.0.0.1:0".parse().unwrap()));
    let fleet = Fleet::start(FleetConfig { local_workers: 0, listen, ..Default::default() }).unwrap();
    Service::start(place.job_store(), fleet, 0, Limits { room: ONE, ..limits() }).unwrap()
}

#[test]
fn readers_do_not_wait_while_storage_hangs() {
    let place = Place::new(false);
    let service = serve_without_workers(&place);
    let id = submit(&service, "first").unwrap();
    let (hangs, goes_on) = (Arc::new(Barrier::new(2)), Arc::new(Barrier::new(2)));
    let is_first = AtomicBool::new(true);
    let fault = {
        let (hangs, goes_on) = (hangs.clone(), goes_on.clone());
        move || {
            if is_first.swap(false, Ordering::SeqCst) {
                hangs.wait();
                goes_on.wait();
            }
            Ok(())
        }
    };
    std::thread::scope(|scope| {
        let cancelled = scope.spawn(|| faults::inject(fault, || service.cancel(&ann(), id)));
        hangs.wait();
        assert_eq!(service.job(id).unwrap().record.state, State::Running, "what is not stored is not shown");
        assert_eq!((service.jobs(None, 9).unwrap().len(), service.page(1, 9).unwrap().jobs.len()), (1, 1));
        assert_eq!((service.working().len(), service.by_state()), (1, [("running", 1)].into()));
        assert!(!service.last_lines(id, 9).unwrap().is_empty());
        goes_on.wait();
        cancelled.join().unwrap().unwrap();
    });
    assert_eq!(over(&service, id).state, State::Cancelled);
    service.close(Duration::from_secs(60));
}

/// While the end of a job cannot be stored, the job counts as running and no other takes its place; once it can, both are right, however much
/// else there is to do.
#[test]
fn an_end_that_cannot_be_stored_is_stored_later() {
    let place = Place::new(false);
    let service = serve_without_workers(&place);
    let [first, second] = ["first", "second"].map(|key| submit(&service, key).unwrap());
    let handle = service.0.working.lock()[&first].clone();
    let fails = || Err(io::Error::other("the disk is full"));
    faults::inject(fails, || {
        service.control(move |controller| controller.end(first, Err("no".into()))).unwrap();
    });
    let state = |id| service.job(id).unwrap().record.state;
    assert_eq!((state(first), state(second)), (State::Running, State::Queued));
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !is_over.load(Ordering::Relaxed) {
                drop(service.ask(|_| ()));
                std::thread::sleep(Duration::from_millis(20));
            }
        });
        let ended = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| over(&service, first)));
        is_over.store(true, Ordering::Relaxed);
        assert_eq!(ended.unwrap().state, State::Failed { error: "no".into() });
    });
    once(&service, second, |state| *state == State::Running);
    handle.cancel(); // its thread ends as well, which changes nothing
    service.close(Duration::from_secs(60));
}

#[test]
fn a_change_that_cannot_be_stored_does_not_happen() {
    let place = Arc::new(Place::new(false));
    let service = serve_without_workers(&place);
    let id = submit(&service, "first").unwrap();
    for n in 1.. {
        let kill = Kill::at(n, &place, false);
        let answer = kill.during(|| service.cancel(&ann(), id));
        let state = service.job(id).unwrap().record.state;
        let Some(killed) = kill.killed() else {
            assert!(n > 1 && answer.is_ok() && state != State::Running, "{n}: {answer:?}, {state:?}");
            break;
        };
        assert!(answer.is_err() && state == State::Running, "{n}: {answer:?}, {state:?}");
        let next = serve_without_workers(&killed);
        // An answer that was lost on its way is an error as well.
        let stored = next.job(id).unwrap().record.state;
        assert!(stored == State::Running || n > 1 && stored == State::Cancelled, "{n}: {stored:?}");
        next.close(Duration::from_secs(60));
    }
    service.close(Duration::from_secs(60));
}

/// Law: uploads of a day count in the next process as well, and for their user alone.
#[test]
fn a_restart_does_not_reset_the_uploads_of_a_day() {
    let place = Place::new(false);
    let upload = |service: &Service, who: &str, byte: u8| {
        let bytes = [byte; 60];
        let mut receiving = service.receive(&Identity::anyone(who), blake3::hash(&bytes), 60)?;
        receiving.push(&bytes)?;
        service.keep(receiving)
    };
    let limits = || Limits { daily_upload: 100, ..limits() };
    let service = place.serve_with(limits());
    upload(&service, "ann", 1).unwrap();
    service.close(Duration::from_secs(60));
    let next = place.killed();
    // A line that a kill has cut off.
    let audit = next.folder().join("audit.jsonl");
    let cut_off = format!("{}{{\"millis\":1", fs::read_to_string(&audit).unwrap());
    fs::write(&audit, cut_off).unwrap();
    let service = next.serve_with(limits());
    assert!(matches!(upload(&service, "ann", 2), Err(Problem::Quota(_))));
    upload(&service, "bob", 2).unwrap();
    service.close(Duration::from_secs(60));
}

/// Whichever file of a job changes after it was submitted: the job fails and says so, and another job that needs the file is asked for it.
#[test]
fn changed_bytes_are_noticed() {
    for changed in ["inputs/corpus.txt", "job.toml"] {
        let place = Place::new(false);
        let service = serve_without_workers(&place);
        let id = submit(&service, "first").unwrap();
        service.close(Duration::from_secs(60));
        drop(service);
        let path = place.killed();
        let file = path.folder().join("work/1").join(changed);
        let bytes = fs::read(&file).unwrap();
        let other = String::from_utf8(bytes)
            .unwrap()
            .replace("ab ab", "ab bb")
            .replace("max_rounds = 2", "max_rounds = 3");
        fs::write(&file, &other).unwrap();
        let service = path.serve();
        let name = changed.rsplit('/').next().unwrap();
        let State::Failed { error } = over(&service, id).state else { panic!("{changed}") };
        assert_eq!(
            error,
            format!("{name}: its bytes have changed since the job was submitted; submit the job again")
        );
        service.close(Duration::from_secs(60));
    }
    let place = Place::new(false);
    let service = place.serve();
    let id = submit(&service, "first").unwrap();
    check_done(&service, id);
    let hash = service.job(id).unwrap().record.inputs[0].hash;
    let file = place.folder().join(remote::file_name(hash));
    fs::remove_file(&file).unwrap();
    fs::write(&file, "other bytes").unwrap();
    let refused = service.submit(
        &ann(),
        Submission {
            job: JOB.to_owned(),
            inputs: vec![Input { path: "corpus.txt".into(), hash }],
            name: "job".into(),
            ..Default::default()
        },
        &|| true,
    );
    assert!(matches!(refused, Err(Problem::Lacking { path }) if path == "corpus.txt"));
    assert!(!service.has(hash));
    let again = submit(&service, "first again").unwrap();
    check_done(&service, again);
    service.close(Duration::from_secs(60));
}

/// A key names one job: the same submission again is that job, and another one is refused.
#[test]
fn a_key_is_of_one_job() {
    let place = Place::new(false);
    let service = serve_without_workers(&place);
    let id = submit(&service, "first").unwrap();
    assert_eq!(submit(&service, "first").unwrap(), id);
    let inputs = service.job(id).unwrap().record.inputs;
    let submission = |job: &str, inputs: &[Input]| Submission {
        job: job.into(),
        inputs: inputs.into(),
        name: "job".into(),
        key: "first".into(),
        ..Default::default()
    };
    for other in [submission(&JOB.replace('2', "3"), &inputs), submission(JOB, &[])] {
        let Err(Problem::Invalid(refused)) = service.submit(&ann(), other, &|| true) else {
            panic!("accepted")
        };
        assert!(refused.starts_with("--idempotency-key first: job 1 has this key"), "{refused}");
    }
    // The keys of others are their own.
    let bob = service.submit(&Identity::anyone("bob"), submission(JOB, &inputs), &|| true).unwrap();
    assert_ne!(bob.record.id, id);
    service.close(Duration::from_secs(60));
}
