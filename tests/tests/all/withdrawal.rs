//! Law: a task whose answer is no longer needed stops, and its slot is offered again only when its thread is free: when its batch is
//! cancelled or over, its task is answered or overdue, or its coordinator is gone. A worker whose thread does not stop comes back without
//! that thread, and no other job fails.
//!
//! The stand-in for computing records when it begins and ends. Tests assert the order of these events, never times.

use std::collections::BTreeSet;
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

use fleet::{
    Account, AccountId, Compute, Fleet, FleetConfig, FleetError, Handle, Inline, Listen, Map, MapReport,
    MemberState, Stage,
};
use grammaton::stop;
use grammaton::work::task::{Answer, Task, Work};
use grammaton_tests::cluster::worker_command;
use grammaton_tests::folder::{Folder, examples};
use grammaton_tests::serving::Serving;
use grammaton_tests::{Network, Process, SOON, clock, echo, echo_at_once, echo_task, eventually};
use parking_lot::Mutex;
use serde_json::Value;
use worker::WorkerConfig;

/// Number of weights of a task that only its withdrawal ends.
const ENDLESS: usize = 7;

/// What the stand-in did, in order.
#[derive(Clone, Default)]
struct Record(Arc<Mutex<Vec<&'static str>>>);

/// Records the end of a computation, also when it is stopped.
struct Ends<'a>(&'a Record, &'static str);

impl Drop for Ends<'_> {
    fn drop(&mut self) {
        self.0.add(self.1);
    }
}

impl Record {
    fn add(&self, what: &'static str) {
        self.0.lock().push(what);
    }

    fn all(&self) -> Vec<&'static str> {
        self.0.lock().clone()
    }

    fn await_one(&self, what: &'static str) {
        eventually(&|| format!("{:?}", self.all()), || self.all().contains(&what));
    }

    /// Computes endless tasks while `is_endless`, and echoes all others.
    fn compute(&self, is_endless: impl Fn() -> bool + Send + Sync + 'static) -> Compute {
        let record = self.clone();
        Arc::new(move |task: &Task| {
            let is_marked =
                matches!(&task.work, Work::Expect { weights, .. } if weights.n_touched() == ENDLESS as u64);
            if is_marked && is_endless() {
                record.add("endless begins");
                let _ends = Ends(&record, "endless ends");
                loop {
                    stop::check();
                    std::thread::sleep(Duration::from_millis(1));
                }
            }
            record.add("another task");
            echo(task)
        })
    }
}

fn endless() -> Vec<Task> {
    vec![echo_task(0, Duration::ZERO, ENDLESS)]
}

fn short(count: u32) -> Vec<Task> {
    (0..count).map(|name| echo_task(name, Duration::ZERO, 5)).collect()
}

fn answers(map: &impl Map, tasks: Vec<Task>) -> Result<(Vec<Answer>, MapReport), FleetError> {
    let mut answers = Vec::new();
    let report = map.map(Stage::Decode, Arc::new(tasks), &mut |_, answer| answers.push(answer))?;
    Ok((answers, report))
}

fn expected(tasks: Vec<Task>) -> Vec<Answer> {
    answers(&Inline::new(Arc::new(echo_at_once)), tasks).unwrap().0
}

fn account(fleet: &Fleet, id: u64) -> Handle {
    fleet.account(Account { id: AccountId(id), ..Account::default() })
}

fn remote(config: FleetConfig) -> Fleet {
    let listen = Some(Listen::at("127.0.0.1:0".parse().unwrap()));
    Fleet::start(FleetConfig { local_workers: 0, listen, ..config }).unwrap()
}

fn url(fleet: &Fleet) -> String {
    format!("http://{}", fleet.address().unwrap())
}

/// Starts a worker with one thread in this process.
fn start_worker(coordinator: String, name: &str, compute: Compute) {
    let config =
        WorkerConfig { coordinator, threads: 1, name: name.into(), compute, ..WorkerConfig::default() };
    std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let ended = runtime.block_on(worker::run(config, std::future::pending()));
        runtime.shutdown_background();
        ended
    });
}

/// Waits until all members are healthy and hold nothing.
fn await_idle(fleet: &Fleet, members: usize) {
    eventually(&|| format!("{:?}", fleet.status()), || {
        let present = fleet.members().into_iter().filter(|member| member.state == MemberState::Healthy);
        let leases: Vec<usize> = present.map(|member| member.leases).collect();
        leases == vec![0; members]
    });
}

/// A fleet of one thread, of this process or remote.
fn one_thread(is_local: bool, config: FleetConfig, compute: Compute) -> Fleet {
    if is_local {
        return Fleet::start(FleetConfig { local_workers: 1, compute, ..config }).unwrap();
    }
    let fleet = remote(config);
    start_worker(url(&fleet), "alice", compute);
    fleet
}

#[test]
fn a_cancelled_task_stops_and_its_thread_computes_the_next() {
    for is_local in [true, false] {
        let record = Record::default();
        let fleet = one_thread(is_local, FleetConfig::default(), record.compute(|| true));
        let (cancelled, stays) = (account(&fleet, 1), account(&fleet, 2));
        std::thread::scope(|scope| {
            let job = scope.spawn(|| answers(&cancelled, endless()));
            record.await_one("endless begins");
            // They wait for the only thread.
            let other = scope.spawn(|| answers(&stays, short(9)));
            cancelled.cancel();
            assert!(matches!(job.join().unwrap(), Err(FleetError::Cancelled)));
            assert_eq!(other.join().unwrap().unwrap().0, expected(short(9)));
        });
        assert_eq!(record.all()[..3], ["endless begins", "endless ends", "another task"]);
        await_idle(&fleet, 1);
        let status = fleet.status();
        assert_eq!((status.losses, status.discarded), ([].into(), 0));
        fleet.shutdown();
    }
}

#[test]
fn nothing_is_computed_for_a_batch_that_is_over() {
    for is_local in [true, false] {
        let record = Record::default();
        let fleet = one_thread(is_local, FleetConfig::default(), record.compute(|| true));
        let (cancelled, stays) = (account(&fleet, 1), account(&fleet, 2));
        // The others of its tasks wait behind the endless one, on the worker or at the coordinator.
        let tasks = [endless(), short(20)].concat();
        std::thread::scope(|scope| {
            let job = scope.spawn(|| answers(&cancelled, tasks));
            record.await_one("endless begins");
            cancelled.cancel();
            assert!(matches!(job.join().unwrap(), Err(FleetError::Cancelled)));
        });
        let begun = record.all().len();
        answers(&stays, short(1)).unwrap();
        await_idle(&fleet, 1);
        let after = record.all()[begun..].iter().filter(|what| **what == "another task").count();
        assert_eq!(after, 1, "{:?}", record.all());
        fleet.shutdown();
    }
}

#[test]
fn a_slot_stays_taken_over_a_reconnection_until_its_thread_is_free() {
    let record = Record::default();
    let fleet = remote(FleetConfig { no_workers_grace: SOON, ..FleetConfig::default() });
    let network = Network::to(fleet.address().unwrap());
    start_worker(network.url(), "alice", record.compute(|| true));
    let (cancelled, stays) = (account(&fleet, 1), account(&fleet, 2));
    std::thread::scope(|scope| {
        let job = scope.spawn(|| answers(&cancelled, endless()));
        record.await_one("endless begins");
        for n_cuts in 1..=2 {
            network.cut();
            // It is back with its lease.
            eventually(&|| format!("{:?}", fleet.status()), || {
                let status = fleet.status();
                let lost = status.losses.values().sum::<u64>();
                lost == n_cuts && status.members.iter().any(|member| member.leases == 1)
            });
        }
        let other = scope.spawn(|| answers(&stays, short(1)));
        eventually(&|| format!("{:?}", fleet.status()), || {
            fleet.status().of(AccountId(2)).shards.free + fleet.status().of(AccountId(2)).shards.assigned == 1
        });
        cancelled.cancel();
        assert!(matches!(job.join().unwrap(), Err(FleetError::Cancelled)));
        assert_eq!(other.join().unwrap().unwrap().0, expected(short(1)));
    });
    assert_eq!(record.all(), ["endless begins", "endless ends", "another task"]);
    await_idle(&fleet, 1);
    fleet.shutdown();
}

#[test]
fn a_worker_joins_another_session_when_its_threads_are_free() {
    let record = Record::default();
    let fleet = remote(FleetConfig::default());
    let address = fleet.address().unwrap();
    start_worker(url(&fleet), "alice", record.compute(|| true));
    let job = account(&fleet, 1);
    std::thread::spawn(move || answers(&job, endless()));
    record.await_one("endless begins");
    drop(fleet);
    let mut fleet = None;
    eventually(&|| "the port is still in use".into(), || {
        let config =
            FleetConfig { local_workers: 0, listen: Some(Listen::at(address)), ..FleetConfig::default() };
        fleet = Fleet::start(config).ok();
        fleet.is_some()
    });
    let fleet = fleet.unwrap();
    assert_eq!(answers(&fleet, short(9)).unwrap().0, expected(short(9)));
    assert_eq!(record.all()[..3], ["endless begins", "endless ends", "another task"]);
    assert_eq!(fleet.status().losses, [].into(), "it was no member before");
    fleet.shutdown();
}

#[test]
fn the_slower_of_two_attempts_stops_when_the_other_one_answers() {
    let record = Record::default();
    let is_first = std::sync::atomic::AtomicBool::new(true);
    let compute = record.compute(move || is_first.swap(false, std::sync::atomic::Ordering::Relaxed));
    let fleet = remote(FleetConfig { min_members: 2, ..FleetConfig::default() });
    for name in ["alice", "bob"] {
        start_worker(url(&fleet), name, compute.clone());
    }
    let tasks = || [endless(), short(6)].concat();
    let (found, report) = answers(&fleet, tasks()).unwrap();
    assert_eq!(found, expected(tasks()));
    assert_eq!(report.losses, []);
    record.await_one("endless ends");
    await_idle(&fleet, 2);
    fleet.shutdown();
}

#[test]
fn an_overdue_task_stops_and_its_worker_keeps_its_place() {
    let record = Record::default();
    let is_first = std::sync::atomic::AtomicBool::new(true);
    let compute = record.compute(move || is_first.swap(false, std::sync::atomic::Ordering::Relaxed));
    let config = FleetConfig { lease_deadline: Duration::from_secs(2), ..FleetConfig::default() };
    let fleet = one_thread(false, config, compute);
    let (found, report) = answers(&fleet, endless()).unwrap();
    assert_eq!(found, expected(endless()));
    assert_eq!((report.attempts, report.losses), (2, vec![]));
    assert_eq!(record.all(), ["endless begins", "endless ends", "another task"]);
    await_idle(&fleet, 1);
    fleet.shutdown();
}

#[test]
fn a_worker_whose_thread_does_not_stop_comes_back_and_no_other_job_fails() {
    let fleet = remote(FleetConfig { min_members: 2, ..FleetConfig::default() });
    let workers = ["alice", "bob"].map(|name| {
        Process::spawn(Command::new(env!("CARGO_BIN_EXE_echo-worker")).args([&url(&fleet), name]))
    });
    let (cancelled, stays) = (account(&fleet, 1), account(&fleet, 2));
    // The worker sleeps, and heeds no request.
    let stuck = || vec![echo_task(0, Duration::from_secs(24 * 3600), 5)];
    std::thread::scope(|scope| {
        let job = scope.spawn(|| answers(&cancelled, stuck()));
        let log = || workers.iter().map(Process::log).collect::<String>();
        eventually(&log, || log().contains("a long task begins"));
        cancelled.cancel();
        assert!(matches!(job.join().unwrap(), Err(FleetError::Cancelled)));
        // The other worker answers meanwhile.
        eventually(&log, || {
            assert_eq!(answers(&stays, short(20)).unwrap().0, expected(short(20)));
            log().contains("starting again")
        });
        await_idle(&fleet, 2);
        let (found, report) = answers(&stays, short(20)).unwrap();
        assert_eq!((found, report.losses), (expected(short(20)), vec![]));
    });
    assert_eq!(fleet.status().losses, [("left", 1)].into());
    fleet.shutdown();
    for mut worker in workers {
        assert_eq!(worker.wait().code(), Some(0), "{}", worker.log());
    }
}

/// A small job with one task, which takes days.
const ENDLESS_JOB: &str = "model.grammar=\"auto:unigram\"\ncorpus.path=\"corpus.txt\"\n\
                           [inference]\nmethod=\"hastings\"\nsweeps=1000000\n";

const THREE_ROUNDS: &str = "model.grammar=\"auto:unigram\"\ncorpus.path=\"corpus.txt\"\n\
                            [inference]\nmax_rounds=3\ntruncation=300\ntolerance=0\n";

fn jobs() -> Folder {
    let corpus = std::fs::read_to_string(examples().join("segmentation/corpus.txt")).unwrap();
    let corpus: String = corpus.split_inclusive('\n').take(300).collect();
    Folder::new(&[("endless.toml", ENDLESS_JOB), ("short.toml", THREE_ROUNDS), ("corpus.txt", &corpus)])
}

fn await_state(service: &Serving, folder: &Folder, id: &str, state: &str) {
    let job = || service.job(folder, id);
    eventually(&|| format!("{}\n{}", job(), service.log()), || job()["state"] == state);
}

/// Leases that the workers of a service hold.
fn n_leases(service: &Serving, folder: &Folder) -> u64 {
    let workers: Value = serde_json::from_str(&service.grammaton(folder, &["workers", "--json"])).unwrap();
    let members = workers["members"].as_array().cloned().unwrap_or_default();
    members.iter().filter_map(|member| member["leases"].as_u64()).sum()
}

#[test]
fn a_job_without_end_neither_holds_up_nor_fails_another() {
    for n_workers in [1, 2] {
        let folder = jobs();
        let service = Serving::start(&folder, &["--running", "2", "--lease-deadline", "3"]);
        let workers: Vec<Process> = (0..n_workers)
            .map(|at| Process::spawn(&mut worker_command(&service.url, &format!("w{at}"))))
            .collect();
        let endless = service.grammaton(&folder, &["submit", "endless.toml"]);
        eventually(&|| service.log(), || n_leases(&service, &folder) > 0);
        let short = service.grammaton(&folder, &["submit", "short.toml"]);
        await_state(&service, &folder, &short, "done");
        // It may have failed by itself, as it is overdue each time.
        if service.job(&folder, &endless)["state"] == "running" {
            service.grammaton(&folder, &["cancel", &endless]);
        }
        eventually(&|| service.log(), || n_leases(&service, &folder) == 0);
        let after = service.grammaton(&folder, &["submit", "short.toml"]);
        await_state(&service, &folder, &after, "done");
        assert!(!service.log().contains("lost"), "{}", service.log());
        drop(workers);
    }
}

/// Jobs to measure: name, job file, and the kinds of work whose tasks take long in it.
const MEASURED: [(&str, &str, &[&str]); 10] = [
    (
        "cover",
        "model.grammar=\"auto:unigram\"\ncorpus.path=\"long.txt\"\ncorpus.shard_symbols=0\n\
         [inference]\nmax_rounds=1\ntruncation=2\nmax_string=2\n",
        &["cover"],
    ),
    (
        "index",
        "model.kind=\"pcfg\"\nmodel.grammar=\"letters.gr\"\ncorpus.path=\"long.txt\"\ncorpus.shard_symbols=0\n\
         [inference]\nmethod=\"em\"\nmax_rounds=1\n",
        &["index"],
    ),
    (
        "vb",
        "model.grammar=\"auto:colloc\"\ncorpus.path=\"long.txt\"\ncorpus.shard_symbols=0\n\
         [inference]\nmax_rounds=1\ntruncation=2000\n",
        &["candidates", "decode"],
    ),
    (
        "em",
        "model.kind=\"pcfg\"\nmodel.grammar=\"letters.gr\"\ncorpus.path=\"long.txt\"\ncorpus.shard_symbols=0\n\
         [inference]\nmethod=\"em\"\nmax_rounds=1000\ntolerance=0\n",
        &["expect"],
    ),
    (
        "gibbs",
        "model.kind=\"pcfg\"\nmodel.grammar=\"words.gr\"\ncorpus.path=\"long.txt\"\ncorpus.shard_symbols=0\n\
         [inference]\nmethod=\"gibbs\"\nmax_string=6\n",
        &["sample"],
    ),
    (
        "cvb",
        "model.kind=\"pcfg\"\nmodel.grammar=\"words.gr\"\ncorpus.path=\"long.txt\"\ncorpus.shard_symbols=0\n\
         [inference]\nmethod=\"cvb\"\nmax_string=6\n",
        &["collapse"],
    ),
    (
        "hastings",
        "model.grammar=\"auto:colloc\"\ncorpus.path=\"long.txt\"\n[inference]\nmethod=\"hastings\"\nsweeps=1000000\n",
        &["sweep"],
    ),
    (
        "latent",
        "model.kind=\"pcfg-la\"\ncorpus.path=\"trees.mrg\"\ncorpus.shard_symbols=0\n\
         [inference]\nmethod=\"vb\"\nsubtypes=16\nmax_rounds=30\n",
        &["annotate"],
    ),
    (
        "prior",
        "model.kind=\"dmv\"\ncorpus.path=\"train.conllu\"\ncorpus.max_length=20\ncorpus.shard_symbols=0\n\
         [inference]\nprior=\"logistic-normal\"\nmax_rounds=30\n",
        &["fit"],
    ),
    (
        "sentence",
        "model.kind=\"pcfg\"\nmodel.grammar=\"pairs.gr\"\ncorpus.path=\"sentence.txt\"\ncorpus.max_symbols=600\n\
         [inference]\nmethod=\"em\"\nmax_rounds=1000\ntolerance=0\n",
        &["index", "expect"],
    ),
];

fn kind(work: &Work) -> &'static str {
    match work {
        Work::Candidates(_) => "candidates",
        Work::Cover => "cover",
        Work::Index => "index",
        Work::Expect { .. } => "expect",
        Work::Sample(_) => "sample",
        Work::Collapse(_) => "collapse",
        Work::Sweep(_) => "sweep",
        Work::Decode(_) => "decode",
        Work::Annotate(_) => "annotate",
        Work::Fit(_) => "fit",
    }
}

/// What the thread of a worker computes, and when it last stopped before an answer.
#[derive(Default)]
struct Thread {
    running: Option<&'static str>,
    stopped: Option<(&'static str, std::time::Instant)>,
}

/// Prints how long after `grammaton cancel` was called the thread of a worker over gRPC was free, by kind of work.
#[test]
#[ignore = "takes minutes, and prints figures"]
fn by_hand_times_from_a_cancellation_to_a_free_thread() {
    let example = |name: &str| std::fs::read_to_string(examples().join(name)).unwrap();
    let lines = example("segmentation/corpus.txt");
    let lines: Vec<&str> = lines.lines().collect();
    let long: String =
        (0..20_000).map(|at| format!("{} {}\n", lines[at % 2500], lines[at * 7 / 3 % 2500])).collect();
    let sentence: String =
        lines.concat().chars().filter(|letter| !letter.is_whitespace()).take(400).collect();
    let trees = example("treebank/trees.mrg").repeat(40);
    let words =
        "1 1 Sentence --> Words\n1 1 Words --> Word\n1 1 Words --> Word Words\n1 1 Word --> <substrings>\n";
    let terminals: BTreeSet<char> = long.chars().filter(|letter| !letter.is_whitespace()).collect();
    let mut letters =
        "1 1 Sentence --> Words\n1 1 Words --> Word\n1 1 Words --> Word Words\n1 1 Word --> X\n\
        1 1 Word --> X Word\n"
            .to_owned();
    letters.extend(terminals.iter().map(|letter| format!("1 1 X --> {letter}\n")));
    let mut pairs = "1 1 Sentence --> Pair\n1 1 Pair --> Pair Pair\n".to_owned();
    pairs.extend(terminals.iter().map(|letter| format!("1 1 Pair --> {letter}\n")));
    let (tags, jobs) =
        (example("dependency/train.conllu"), MEASURED.map(|(name, job, _)| (format!("{name}.toml"), job)));
    let mut files: Vec<(&str, &str)> = jobs.iter().map(|(name, job)| (&name[..], *job)).collect();
    files.extend([
        ("long.txt", &long[..]),
        ("sentence.txt", &sentence),
        ("words.gr", words),
        ("letters.gr", &letters),
        ("pairs.gr", &pairs),
    ]);
    files.extend([("trees.mrg", &trees[..]), ("train.conllu", &tags)]);
    let folder = Folder::new(&files);
    let service = Serving::start(&folder, &[]);
    let thread = Arc::new(Mutex::new(Thread::default()));
    let (engine, shared) = (grammaton::work::engine::engine(), thread.clone());
    let compute: Compute = Arc::new(move |task: &Task| {
        struct Watch(Arc<Mutex<Thread>>, &'static str);
        impl Drop for Watch {
            fn drop(&mut self) {
                let mut thread = self.0.lock();
                thread.running = None;
                if std::thread::panicking() {
                    thread.stopped = Some((self.1, clock()));
                }
            }
        }
        let kind = kind(&task.work);
        shared.lock().running = Some(kind);
        let _watch = Watch(shared.clone(), kind);
        engine(task)
    });
    start_worker(service.url.clone(), "measured", compute);
    println!("{:<12}{:<10}{:>6}{:>12}{:>12}{:>12}", "job", "work", "n", "median ms", "99 % ms", "longest ms");
    let mut all = Vec::new();
    let only = std::env::var("JOB").unwrap_or_default();
    for (name, _, kinds) in MEASURED.into_iter().filter(|(name, ..)| name.contains(&only)) {
        for work in kinds {
            let mut millis = Vec::new();
            for sample in 0..12 {
                let id = service.grammaton(
                    &folder,
                    &["submit", &format!("{name}.toml"), "--set", &format!("inference.seed={sample}")],
                );
                let running = || thread.lock().running;
                let begun = clock();
                let is_seen = loop {
                    if running() == Some(*work) {
                        break true;
                    }
                    let state = service.job(&folder, &id)["state"].to_string();
                    if begun.elapsed() > SOON || !["\"running\"", "\"waiting\""].contains(&&state[..]) {
                        println!("{name} {work}: {state}");
                        break false;
                    }
                    std::thread::sleep(Duration::from_micros(200));
                };
                std::thread::sleep(Duration::from_millis(23 * sample));
                let called = clock();
                service.run(&folder, &["cancel", &id]);
                eventually(&|| service.log(), || thread.lock().running.is_none());
                let stopped = thread.lock().stopped;
                if let (true, Some((kind, at))) = (is_seen, stopped)
                    && kind == *work
                    && at >= called
                {
                    millis.push((at - called).as_millis());
                }
                eventually(&|| service.log(), || service.job(&folder, &id)["state"] != "running");
            }
            millis.sort_unstable();
            let quantile = |share: f64| {
                millis.get(((millis.len() as f64 * share) as usize).min(millis.len().saturating_sub(1)))
            };
            let [median, most, longest] =
                [0.5, 0.99, 1.0].map(|share| quantile(share).map_or("-".into(), u128::to_string));
            println!("{name:<12}{work:<10}{:>6}{median:>12}{most:>12}{longest:>12}", millis.len());
            all.extend(millis);
        }
    }
    let within = all.iter().filter(|millis| **millis <= 1000).count();
    println!("within a second: {within} of {}", all.len());
}
