//! Kills at every system call that changes storage: of a service while jobs are submitted, cancelled, resumed, trained and deleted, of `train` with
//! its checkpoints, and of `fetch`. Law: what was acknowledged is there and ends with the bits of `train`; an id is that of one job; nothing
//! half-written is shown; and nothing of it is left once the process has begun again.
//!
//! A test kills at some of the calls; `KILLS=all` kills at each, `KILLS=100 SEED=2` at others.
#![cfg(all(target_os = "linux", target_arch = "x86_64"))]

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use grammaton_tests::cluster::worker_command;
use grammaton_tests::folder::{Folder, Printed, Trained, examples};
use grammaton_tests::kills::{KillAt, points};
use grammaton_tests::serving::Serving;
use grammaton_tests::{Process, eventually};
use serde_json::Value;

fn folder() -> Folder {
    let corpus = fs::read_to_string(examples().join("segmentation/corpus.txt")).unwrap();
    let corpus: String = corpus.split_inclusive('\n').take(60).collect();
    let job = "[model]\ngrammar = \"auto:unigram\"\n[corpus]\npath = \"corpus.txt\"\n\
               [inference]\ntruncation = 100\nmax_rounds = 5\ntolerance = 0\n\
               [output]\ncheckpoint_seconds = 0\nscore_every = 0\n";
    Folder::new(&[("job.toml", job), ("corpus.txt", &corpus)])
}

/// Files below a folder: paths without it.
fn files(folder: &Path) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(here) = folders.pop() {
        for entry in fs::read_dir(&here).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path)
            } else {
                found.insert(path.strip_prefix(folder).unwrap().display().to_string());
            }
        }
    }
    found
}

/// Files that were never completed: of a name that is only used while something is written.
fn leftovers(folder: &Path) -> Vec<String> {
    let is_partial = |path: &String| {
        path.split('/').any(|part| part.starts_with('.'))
            || path.rsplit('/').next().is_some_and(|name| name.contains('#'))
    };
    files(folder).into_iter().filter(is_partial).collect()
}

// A service.

/// A client of a service that may be killed once: it repeats what was not acknowledged.
struct Client<'a> {
    folder: &'a Folder,
    url: String,
    scenario: String,
}

impl Client<'_> {
    /// Repeats a command until it is answered.
    fn run(&self, args: &[&str]) -> Printed {
        let mut answer = None;
        eventually(&|| format!("{args:?}: {}", self.scenario), || {
            let printed = self.folder.run(&[args, &["--coordinator", &self.url]].concat());
            // Without an answer the message has the URL.
            let is_answered = printed.code == 0 || !printed.log.contains(&self.url);
            answer = Some(printed).filter(|_| is_answered);
            answer.is_some()
        });
        answer.expect("it was answered")
    }

    /// Repeats a command until it succeeds.
    fn grammaton(&self, args: &[&str]) -> String {
        let printed = self.run(args);
        assert_eq!(printed.code, 0, "{args:?}: {}: {}", printed.log, self.scenario);
        printed.out.trim_end().to_owned()
    }

    fn submit(&self, key: &str) -> String {
        self.grammaton(&["submit", "job.toml", "--idempotency-key", key, "--name", key])
    }

    fn state(&self, id: &str) -> Value {
        let json: Value = serde_json::from_str(&self.grammaton(&["status", id, "--json"])).unwrap();
        assert_ne!(json["state"], "failed", "{json}: {}", self.scenario);
        json["state"].clone()
    }

    fn is_in(&self, id: &str, states: &[&str]) -> Value {
        let mut state = Value::Null;
        eventually(&|| format!("{id} {states:?}: {}", self.scenario), || {
            state = self.state(id);
            states.iter().any(|expected| state == *expected)
        });
        state
    }
}

/// Submits two jobs, cancels and resumes one of them, trains both, downloads their results, and deletes one, while the service is killed at call `n`
/// that changes its store, and restarted. Returns the number of calls and the files that are stored at the end.
fn history(n: u64, expected: &Trained) -> (u64, BTreeSet<String>) {
    let folder = folder();
    fs::create_dir(folder.path("store")).unwrap();
    let kill = KillAt::new(n, &folder.path("store"), &folder.path("count"));
    let mut service = Serving::prepare(&folder, "store", &[], &[]);
    service.begin_by(|command| kill.wrap(command));
    let client =
        Client { folder: &folder, url: service.url.clone(), scenario: format!("killed at call {n}") };
    let over = AtomicBool::new(false);
    let service = std::thread::scope(|scope| {
        let restarting = scope.spawn(|| {
            while !over.load(Ordering::Relaxed) {
                if service.has_ended() {
                    service.begin();
                    break;
                }
                std::thread::sleep(std::time::Duration::from_millis(5));
            }
            service
        });
        let ids = ["kept", "cancelled"].map(|key| client.submit(key));
        // Without workers no job ends, so that a cancellation finds it running.
        let [kept, cancelled] = [&ids[0][..], &ids[1][..]];
        let answer = client.run(&["cancel", cancelled]);
        let is_again = answer.code == 2 && answer.log.contains("cancelled");
        assert!(answer.code == 0 || is_again, "{}: {}", answer.log, client.scenario);
        client.is_in(cancelled, &["cancelled"]);
        let answer = client.run(&["resume", cancelled]);
        // An earlier attempt may have had its effect.
        let state = client.is_in(cancelled, &["queued", "running"]);
        assert!(answer.code == 0 || answer.code == 2, "{state}: {}: {}", answer.log, client.scenario);
        let _worker = Process::spawn(&mut worker_command(&client.url, "alice"));
        for id in [kept, cancelled] {
            client.is_in(id, &["done"]);
        }
        for (at, id) in ids.iter().enumerate() {
            let out = format!("out-{at}");
            client.grammaton(&["fetch", id, "--out", &out, "--overwrite"]);
            Trained::read(&folder.path(&out)).check_equals(expected);
            assert_eq!(leftovers(&folder.path(&out)), [""; 0], "{}", client.scenario);
        }
        assert_eq!(["kept", "cancelled"].map(|key| client.submit(key)), ids, "{}", client.scenario);
        let jobs: Vec<Value> = serde_json::from_str(&client.grammaton(&["jobs", "--json"])).unwrap();
        assert_eq!(jobs.len(), 2, "{jobs:?}: {}", client.scenario);
        let answer = client.run(&["delete", cancelled]);
        let is_again = answer.code == 2 && answer.log.contains("there is no such job");
        assert!(answer.code == 0 || is_again, "{}: {}", answer.log, client.scenario);
        let work = folder.path("store/work").join(cancelled);
        eventually(&|| format!("{cancelled} is left: {}", client.scenario), || !work.exists());
        let jobs: Vec<Value> = serde_json::from_str(&client.grammaton(&["jobs", "--json"])).unwrap();
        assert_eq!(jobs.len(), 1, "{jobs:?}: {}", client.scenario);
        over.store(true, Ordering::Relaxed);
        restarting.join().unwrap()
    });
    let calls = kill.calls();
    drop(service);
    assert_eq!(leftovers(&folder.path("store")), [""; 0], "{}", client.scenario);
    (calls, files(&folder.path("store")))
}

#[test]
#[ignore = "slow"]
fn a_service_killed_at_a_system_call_loses_and_repeats_nothing() {
    let folder = folder();
    let expected = folder.train("alone", &["--workers", "1"]);
    let (calls, _) = history(0, &expected);
    let points = points(calls, 10);
    let reached = points.iter().filter(|&&n| history(n, &expected).0 == n).count();
    println!("service: {reached} kills, {} planned, of {calls} calls", points.len());
    // Threads do not always take the same number of steps.
    assert!(2 * reached > points.len(), "{reached} of {} kills", points.len());
}

// `train` with its checkpoints.

#[test]
#[ignore = "slow"]
fn a_run_killed_at_a_system_call_resumes_to_the_same_bits_and_leaves_nothing() {
    let folder = folder();
    let expected = folder.train("alone", &["--workers", "1"]);
    let run = |out: &str, n: u64| {
        fs::create_dir_all(folder.path(out)).unwrap();
        let kill = KillAt::new(n, &folder.path(out), &folder.path("count"));
        let args = ["train", "job.toml", "--quiet", "--workers", "1", "--resume", "--out", out];
        let code = Process::spawn(&mut kill.wrap(&folder.command(&args))).wait().code();
        (code, kill.calls())
    };
    let (code, calls) = run("counted", 0);
    assert_eq!(code, Some(0));
    Trained::read(&folder.path("counted")).check_equals(&expected);
    let complete = files(&folder.path("counted"));
    let points = points(calls, 24);
    let mut reached = 0;
    for &n in &points {
        let out = format!("killed-{n}");
        let (code, _) = run(&out, n);
        reached += usize::from(code == Some(137));
        if folder.path(&out).join("summary.json").exists() {
            Trained::read(&folder.path(&out)).check_equals(&expected);
        }
        // The second process is killed as well, the third one not.
        run(&out, 1 + n / 2);
        assert_eq!(run(&out, 0).0, Some(0), "killed at call {n}");
        Trained::read(&folder.path(&out)).check_equals(&expected);
        let left: Vec<_> = files(&folder.path(&out)).difference(&complete).cloned().collect();
        let left: Vec<_> = left.into_iter().filter(|path| !path.ends_with(".ckpt")).collect();
        assert_eq!(left, [""; 0], "killed at call {n}");
    }
    println!("train: {reached} kills, {} planned, of {calls} calls", points.len());
    assert!(2 * reached > points.len(), "{reached} of {} kills", points.len());
}

// `fetch`.

#[test]
fn a_download_killed_at_a_system_call_is_complete_or_has_no_summary() {
    let folder = folder();
    let expected = folder.train("alone", &["--workers", "1"]);
    let service = Serving::start(&folder, &["--workers", "1"]);
    let id = service.grammaton(&folder, &["submit", "job.toml", "--wait"]).lines().next().unwrap().to_owned();
    let fetch = |out: &str, n: u64, more: &[&str]| {
        fs::create_dir_all(folder.path(out)).unwrap();
        let kill = KillAt::new(n, &folder.path(out), &folder.path("count"));
        let args = [&["fetch", &id[..], "--out", out, "--coordinator", &service.url], more].concat();
        let mut process = Process::spawn(&mut kill.wrap(&folder.command(&args)));
        (process.wait().code(), kill.calls(), process.log())
    };
    let contents = |out: &str| -> BTreeMap<String, Vec<u8>> {
        let folder = folder.path(out);
        files(&folder).into_iter().map(|path| (path.clone(), fs::read(folder.join(path)).unwrap())).collect()
    };
    let (code, calls, log) = fetch("whole", 0, &[]);
    assert_eq!(code, Some(0), "{log}");
    Trained::read(&folder.path("whole")).check_equals(&expected);
    let whole = contents("whole");
    let points = points(calls, 16);
    let mut reached = 0;
    for &n in &points {
        let out = format!("killed-{n}");
        let (code, ..) = fetch(&out, n, &[]);
        reached += usize::from(code == Some(137));
        let found = contents(&out);
        let complete = found.iter().filter(|(path, _)| !path.contains(".writing-"));
        assert!(complete.clone().all(|(path, bytes)| whole[path] == *bytes), "killed at call {n}");
        if found.contains_key("summary.json") {
            assert!(complete.eq(whole.iter()), "killed at call {n}");
        }
        let (code, _, log) = fetch(&out, 0, &["--overwrite"]);
        assert_eq!(code, Some(0), "{log}");
        assert!(contents(&out) == whole, "killed at call {n}");
    }
    println!("fetch: {reached} kills, {} planned, of {calls} calls", points.len());
    assert_eq!(reached, points.len());
}
