//! Training gives the same bits on every fleet: threads, processes, killed ones, late ones.
//!
//! A run with `--json` writes more than a pipe holds, so it waits for its reader long before its end: what a test does
//! between two lines happens in the middle of training, however fast the machine.

use std::fs;
use std::process::Command;

use grammaton_tests::folder::{Folder, Trained, examples};
use grammaton_tests::{Lines, Process, binary, eventually};
use serde_json::Value;

/// Far more rounds than it takes to converge, so that their lines fill a pipe.
const ROUNDS: usize = 350;
/// The round after which members come and go.
const MIDDLE: usize = 3;

fn folder() -> Folder {
    let corpus = fs::read_to_string(examples().join("segmentation/corpus.txt")).unwrap();
    let job = format!(
        "[model]\ngrammar = \"auto:unigram\"\n[corpus]\npath = \"corpus.txt\"\n\
         [inference]\ntruncation = 500\nmax_rounds = {ROUNDS}\ntolerance = 0\n"
    );
    Folder::new(&[("job.toml", &job), ("corpus.txt", &corpus)])
}

fn undisturbed(folder: &Folder) -> Trained {
    let trained = folder.train("one", &["--workers", "1"]);
    assert_eq!(trained.rounds.len(), ROUNDS);
    trained.check_bounds();
    trained
}

/// A coordinator for remote workers only, up to the line that says where it listens.
struct Coordinator {
    process: Process,
    lines: Lines,
    url: String,
}

impl Coordinator {
    fn start(folder: &Folder, out: &str, more: &[&str]) -> Coordinator {
        let args = ["train", "job.toml", "--json", "--out", out, "--listen", "127.0.0.1:0"];
        let (process, lines) = Process::spawn_read(&mut folder.command(&[&args, more].concat()));
        let first: Value = match lines.next() {
            Some(line) => serde_json::from_str(&line).unwrap(),
            None => panic!("it ended: {}", process.log()),
        };
        assert_eq!(first["event"], "listening");
        let url = format!("http://{}", first["address"].as_str().unwrap());
        Coordinator { process, lines, url }
    }

    fn worker(&self, name: &str) -> Process {
        let args = ["--coordinator", &self.url, "--threads", "1", "--name", name];
        let mut command = Command::new(binary("grammaton-worker"));
        Process::spawn(command.args(args).env_remove("GRAMMATON_TOKEN").env_remove("GRAMMATON_LOG"))
    }

    /// Reads until round `round` is over.
    fn read_to(&self, round: usize) {
        while let Some(line) = self.lines.next() {
            let event: Value = serde_json::from_str(&line).unwrap();
            if event["event"] == "round" && event["round"] == round {
                return;
            }
        }
        panic!("it ended before round {round}: {}", self.process.log());
    }

    fn finish(mut self, folder: &Folder, out: &str) -> Trained {
        let mut last = None;
        while let Some(line) = self.lines.next() {
            last = Some(line);
        }
        assert_eq!(self.process.wait().code(), Some(0), "{}", self.process.log());
        let trained = Trained::read(&folder.path(out));
        let event: Value = serde_json::from_str(&last.unwrap()).unwrap();
        assert_eq!(event["event"], "finished");
        assert_eq!(event["parameters_sha256"], trained.summary["parameters_sha256"]);
        trained
    }
}

#[test]
fn threads_and_processes_give_the_same_bits() {
    let folder = folder();
    let one = undisturbed(&folder);
    assert_eq!(one.summary["workers"], 1);
    let two = folder.train("two", &["--workers", "2"]);
    assert_eq!(two.summary["workers"], 2);
    two.check_equals(&one);

    let coordinator = Coordinator::start(&folder, "remote", &["--min-workers", "2"]);
    let mut workers = ["alice", "bob"].map(|name| coordinator.worker(name));
    let remote = coordinator.finish(&folder, "remote");
    assert_eq!(remote.summary["workers"], 2);
    remote.check_equals(&one);
    for worker in &mut workers {
        assert_eq!(worker.wait().code(), Some(0), "{}", worker.log());
    }
}

#[test]
fn a_worker_killed_in_the_middle_changes_nothing() {
    let folder = folder();
    let one = undisturbed(&folder);
    let coordinator = Coordinator::start(&folder, "killed", &["--min-workers", "2"]);
    let mut workers = ["alice", "bob"].map(|name| coordinator.worker(name));
    coordinator.read_to(MIDDLE);
    let written = folder.read("killed/metrics.jsonl").lines().count();
    assert!((MIDDLE..ROUNDS).contains(&written), "{written} rounds are over");
    workers[0].kill();
    let killed = coordinator.finish(&folder, "killed");
    killed.check_equals(&one);
    assert_eq!(workers[1].wait().code(), Some(0), "{}", workers[1].log());
}

#[test]
fn a_worker_that_joins_late_helps_and_changes_nothing() {
    let folder = folder();
    let one = undisturbed(&folder);
    let coordinator = Coordinator::start(&folder, "late", &[]);
    let _early = coordinator.worker("early");
    coordinator.read_to(MIDDLE);
    let late = coordinator.worker("late");
    eventually(&|| late.log(), || late.log().contains("joined"));
    let joined = coordinator.finish(&folder, "late");
    joined.check_equals(&one);
    assert_eq!(joined.summary["workers"], 2);
}
