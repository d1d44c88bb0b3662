//! Law: one worker never ends a job. Whatever a worker claims, the jobs of a service have the bits of `train`, and a worker whose answer is
//! wrong, or that reports failures of what others compute, is expelled.

use std::fs;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use grammaton::grammar::ParamId;
use grammaton::work::engine::ComputeError;
use grammaton::work::task::{Answer, Index};
use grammaton_tests::folder::{Folder, Trained, examples};
use grammaton_tests::serving::{Serving, job_processes};
use grammaton_tests::{clock, eventually};
use proto::token::Token;
use serde_json::Value;
use worker::{Compute, RunError, WorkerConfig, engine};

use self::lies::{LIES, Lie};

#[path = "../../../coordinator/training/src/train/liars/lies.rs"]
mod lies;

const WORDS: &str =
    "1 1 Sentence --> Words\n1 1 Words --> Word\n1 1 Words --> Word Words\n1 1 Word --> <substrings>\n";

/// Kinds of jobs: name, `[model]`, and further keys of `[inference]`.
const KINDS: [(&str, &str, &str); 4] = [
    ("vb", "grammar = \"auto:unigram\"", "method = \"vb\"\ntruncation = 60\ntolerance = 0"),
    ("em", "kind = \"pcfg\"\ngrammar = \"words.gr\"", "method = \"em\"\nstart = \"jitter\"\ntolerance = 0"),
    ("gibbs", "kind = \"pcfg\"\ngrammar = \"words.gr\"", "method = \"gibbs\"\nkeep_every = 1"),
    ("cvb", "kind = \"pcfg\"\ngrammar = \"words.gr\"", "method = \"cvb\"\ntolerance = 0"),
];

fn folder() -> Folder {
    let corpus = fs::read_to_string(examples().join("segmentation/corpus.txt")).unwrap();
    let corpus: String = corpus.split_inclusive('\n').take(60).collect();
    let folder = Folder::new(&[("corpus.txt", &corpus), ("words.gr", WORDS)]);
    for (name, model, inference) in KINDS {
        let job = format!(
            "[model]\n{model}\n[corpus]\npath = \"corpus.txt\"\nshard_symbols = 200\n[inference]\n{inference}\nmax_rounds = 6\n\
             max_string = 5\n[output]\ndir = \"out-{name}\"\ncheckpoint_seconds = 0\nscore_every = 3\n"
        );
        fs::write(folder.path(&format!("{name}.toml")), job).unwrap();
    }
    folder
}

/// Lies of the workers of one machine.
struct Case {
    name: &'static str,
    lie: Lie,
    /// Number of lying processes.
    n_processes: usize,
    /// Number of honest answers of a process before its first lie.
    n_honest: usize,
}

fn case(name: &'static str, lie: Lie) -> Case {
    Case { name, lie, n_processes: 1, n_honest: 0 }
}

/// What no honest worker can say ends its connection; the other lies could be true.
fn cases() -> impl Iterator<Item = Case> {
    let others = case("the trees of other sentences", |_, mut answer| {
        if let Answer::Sampled(sampled) = &mut answer {
            sampled.analyses.reverse();
        }
        Ok(answer)
    });
    let three = Case {
        n_processes: 3,
        n_honest: 1,
        ..case("three processes fail after an answer", |_, _| Err(ComputeError::NoGrammar))
    };
    LIES.into_iter().map(|(name, lie)| case(name, lie)).chain([others, three])
}

impl Case {
    /// Computes as the engine does, and lies after the honest answers; counts the lies.
    fn compute(&self, lies: Arc<AtomicUsize>) -> Compute {
        let (engine, lie, left) = (engine(), self.lie, AtomicUsize::new(self.n_honest));
        Arc::new(move |task| {
            let answer = engine(task)?;
            if left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(1)).is_ok() {
                return Ok(answer);
            }
            let lied = lie(task, answer.clone());
            lies.fetch_add(usize::from(lied.as_ref() != Ok(&answer)), Ordering::Relaxed);
            lied
        })
    }
}

/// A worker in this process, with a separate thread and runtime.
fn start_worker(
    service: &Serving,
    name: &str,
    token: Option<&str>,
    compute: Compute,
) -> JoinHandle<Result<(), RunError>> {
    let (coordinator, name, token) =
        (service.url.clone(), name.to_owned(), token.map(|token| Token::new(token, "test").unwrap()));
    let config = WorkerConfig { coordinator, name, token, threads: 1, compute, ..WorkerConfig::default() };
    std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build();
        let runtime = runtime.expect("a runtime can be made");
        let result = runtime.block_on(worker::run(config, std::future::pending()));
        runtime.shutdown_background();
        result
    })
}

/// Outcome of jobs beside liars.
struct Outcome {
    /// Time until all jobs had ended.
    seconds: f64,
    n_lies: usize,
    /// Number of jobs that ended with the bits of `train`.
    n_right: usize,
    /// Errors of the other jobs.
    errors: Vec<String>,
    /// Number of liars that were expelled.
    n_expelled: usize,
    /// Largest memory of the service, in MiB, less that before the first job.
    more: u64,
}

/// Largest memory of a process so far, in MiB; 0 where it is not known.
fn peak(process: u32) -> u64 {
    let status = fs::read_to_string(format!("/proc/{process}/status")).unwrap_or_default();
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap_or("0 kB");
    peak.trim().trim_end_matches(" kB").parse::<u64>().unwrap() >> 10
}

/// Runs these jobs (file and seed) on a service with two honest workers and the liars of `case`, which are another machine by their token.
fn run(folder: &Folder, jobs: &[(&str, u64)], case: Option<&Case>) -> Outcome {
    let name = case.map_or("honest", |case| case.name).replace(' ', "-");
    let store = (1..).map(|n| format!("store-{name}-{n}")).find(|store| !folder.path(store).exists());
    let store = store.expect("there are many numbers");
    let secrets = [("honest", "work"), ("liar", "work"), ("ann", "operate")].map(|(name, role)| {
        folder.grammaton(&["token", name, role, "--tokens", &store.replace("store", "tokens")])
    });
    let token = [("GRAMMATON_TOKEN", secrets[2].clone())];
    let args = ["--tokens", &store.replace("store", "tokens"), "--running", "8"];
    let mut service = Serving::start_at(folder, &store, &args, &[]);
    fs::write(folder.path("token"), &token[0].1).unwrap();
    let command = |args: &[&str]| service.grammaton(folder, &[args, &["--token-file", "token"]].concat());
    let n_lies = Arc::new(AtomicUsize::new(0));
    let start_liar =
        |case: &Case| start_worker(&service, "liar", Some(&secrets[1]), case.compute(n_lies.clone()));
    let n_liars = case.map_or(0, |case| case.n_processes);
    let _liars: Vec<_> = case.iter().cycle().take(n_liars).map(|case| start_liar(case)).collect();
    let _honest = ["alice", "bob"].map(|name| start_worker(&service, name, Some(&secrets[0]), engine()));
    // All are there before the first task.
    let workers = || command(&["workers", "--json"]);
    eventually(&workers, || {
        let workers: Value = serde_json::from_str(&workers()).expect("it is JSON");
        workers["members"].as_array().is_some_and(|members| members.len() == n_liars + 2)
    });
    let (begun, idle) = (clock(), peak(service.id()));
    let submit = |(kind, seed): &(&str, u64)| {
        let (file, seed) = (format!("{kind}.toml"), format!("inference.seed={seed}"));
        command(&["submit", &file, "--set", &seed, "--name", kind])
    };
    let ids: Vec<String> = jobs.iter().map(submit).collect();
    let mut outcome =
        Outcome { seconds: 0.0, n_lies: 0, n_right: 0, errors: Vec::new(), n_expelled: 0, more: 0 };
    for ((kind, seed), id) in jobs.iter().zip(&ids) {
        let job =
            || -> Value { serde_json::from_str(&command(&["status", id, "--json"])).expect("it is JSON") };
        let mut last = job();
        while ["queued", "running"].contains(&last["state"].as_str().unwrap_or_default()) {
            assert!(begun.elapsed() < Duration::from_secs(300), "{last}\n{}", service.log());
            std::thread::sleep(Duration::from_millis(20));
            last = job();
        }
        if last["parameters_sha256"] == Trained::read(&folder.path(&format!("{kind}-{seed}"))).digest() {
            outcome.n_right += 1
        } else {
            outcome.errors.push(format!("{kind}: {} {}", last["state"], last["error"]))
        }
    }
    outcome.seconds = begun.elapsed().as_secs_f64();
    outcome.n_lies = n_lies.load(Ordering::Relaxed);
    outcome.more = peak(service.id()).saturating_sub(idle);
    let (code, log) = service.stop();
    assert_eq!(code, Some(0), "{log}");
    assert!(!log.contains("panicked"), "{log}");
    let is_expulsion = |line: &&str| line.contains("kind=\"expelled\"");
    let expelled: Vec<&str> = log.lines().filter(is_expulsion).collect();
    assert!(expelled.iter().all(|line| line.contains("liar")), "{expelled:?}");
    assert!(expelled.len() <= n_liars, "{expelled:?}");
    outcome.n_expelled = expelled.len();
    outcome
}

/// Trains the jobs by themselves.
fn train(folder: &Folder, jobs: &[(&str, u64)]) {
    for (kind, seed) in jobs {
        let (file, set, out) =
            (format!("{kind}.toml"), format!("inference.seed={seed}"), format!("{kind}-{seed}"));
        folder.grammaton(&["train", &file, "--quiet", "--out", &out, "--set", &set]);
    }
}

#[test]
fn no_lie_of_a_worker_ends_a_job() {
    let (folder, jobs) = (folder(), [("vb", 1), ("gibbs", 1)]);
    train(&folder, &jobs);
    let mut n_found = 0;
    for case in &cases().collect::<Vec<_>>() {
        let Outcome { n_lies, n_right, n_expelled, errors, .. } = run(&folder, &jobs, Some(case));
        assert_eq!((n_right, errors), (jobs.len(), vec![]), "{}", case.name);
        // The liar may not be asked, and its answer may be too late.
        assert!(n_expelled <= case.n_processes.min(n_lies), "{}: {n_expelled} of {n_lies}", case.name);
        n_found += n_expelled;
    }
    assert!(n_found >= 3, "{n_found} liars were expelled");
}

#[cfg(target_os = "linux")]
#[test]
#[ignore = "slow"]
fn a_doubted_task_is_judged_by_the_process_of_its_job() {
    let rules = "1 1 S --> S T\n1 1 T --> T U\n1 1 U --> U S\n1 1 S --> a\n1 1 T --> a\n1 1 U --> a\n";
    let job = "[model]\nkind = \"pcfg\"\ngrammar = \"rules.gr\"\n[corpus]\npath = \"long.txt\"\n\
               [inference]\nmethod = \"em\"\nstart = \"jitter\"\nmax_rounds = 2\n";
    let folder = Folder::new(&[("rules.gr", rules), ("long.txt", &"a".repeat(200)), ("job.toml", job)]);
    let service = Serving::start(&folder, &[]);
    let id = service.grammaton(&folder, &["submit", "job.toml"]);
    let lie: Compute =
        Arc::new(|_| Ok(Answer::Index(Index { params: vec![ParamId(1)], unparsable: vec![0] })));
    let liar = start_worker(&service, "liar", None, lie);
    let log = || format!("{}\n{}", service.log(), service.job(&folder, &id));
    eventually(&log, || liar.is_finished());
    let error = liar.join().unwrap().unwrap_err().to_string();
    assert!(error.contains("expelled"), "{error}");
    let [(process, _)] = &job_processes(service.id())[..] else { panic!("{}", log()) };
    let (of_job, of_service) = (peak(*process), peak(service.id()));
    assert!(of_job > 100 && of_service < 100, "{of_job} MiB of the job, {of_service} MiB of the service");
    let _honest = start_worker(&service, "alice", None, engine());
    eventually(&log, || service.job(&folder, &id)["state"] == "done");
    let alone = folder.train("alone", &[]);
    assert_eq!(service.job(&folder, &id)["parameters_sha256"], alone.digest());
}

#[test]
fn an_expelled_worker_stays_out_over_a_restart_until_its_line_is_removed() {
    let folder = folder();
    let mut service = Serving::start(&folder, &[]);
    let id = service.grammaton(&folder, &["submit", "em.toml"]);
    let failing: Compute = Arc::new(|_| Err(ComputeError::NoGrammar));
    let refused = |service: &Serving| {
        let liar = start_worker(service, "liar", None, failing.clone());
        eventually(&|| format!("{}\n{}", service.log(), service.job(&folder, &id)), || liar.is_finished());
        liar.join().unwrap().unwrap_err().to_string()
    };
    let cannot = |error: &str| error.contains("reported that task") && error.contains("and it can");
    for _ in 0..2 {
        let error = refused(&service);
        assert!(cannot(&error) && !error.contains("no new process"), "{error}");
    }
    // The second one has closed the machine.
    let list = folder.path("store").join("expelled.jsonl");
    eventually(&|| service.log(), || fs::read_to_string(&list).unwrap().lines().count() == 2);
    service.stop();
    service.begin();
    let error = refused(&service);
    assert!(cannot(&error) && error.contains("no new process of its machine is admitted"), "{error}");
    service.stop();
    fs::remove_file(&list).unwrap();
    service.begin();
    let _honest = start_worker(&service, "alice", None, engine());
    let job = || service.job(&folder, &id);
    eventually(&|| format!("{}\n{}", service.log(), job()), || job()["state"] == "done");
    folder.grammaton(&["train", "em.toml", "--quiet", "--out", "alone"]);
    assert_eq!(job()["parameters_sha256"], Trained::read(&folder.path("alone")).digest());
}

/// Prints the table of `docs/results/cluster.md`.
#[test]
#[ignore = "a measurement"]
fn by_hand_eight_jobs_beside_a_liar() {
    let folder = folder();
    let jobs: Vec<(&str, u64)> = KINDS.iter().flat_map(|&(kind, ..)| [(kind, 1), (kind, 2)]).collect();
    train(&folder, &jobs);
    println!(
        "| lie | jobs right | lies | liars expelled | seconds | seconds without liars | MiB over idle |\n|---|---|---|---|---|---|---|"
    );
    for case in &cases().collect::<Vec<_>>() {
        // The machine may be busy, so the two are measured one after the other.
        let alone = run(&folder, &jobs, None).seconds;
        let Outcome { seconds, n_lies, n_right, errors, n_expelled, more } = run(&folder, &jobs, Some(case));
        let (n_jobs, n_liars, name) = (jobs.len(), case.n_processes, case.name);
        println!(
            "| {name} | {n_right} of {n_jobs} | {n_lies} | {n_expelled} of {n_liars} | {seconds:.1} | {alone:.1} | {more} |"
        );
        assert_eq!(errors, [""; 0], "{name}");
    }
}
