//! Law: training gives the same bits on every fleet: threads, processes, with killed or late workers.
//!
//! A run with `--json` writes more than a pipe holds, so it blocks long before its end. So actions of a test between two lines happen
//! during training, on any machine.

use std::fs;

use grammaton_tests::cluster::{Coordinator, check_two_workers};
use grammaton_tests::eventually;
use grammaton_tests::folder::{Folder, Trained, examples};

/// Far more rounds than it takes to converge, so that their lines fill a pipe.
const ROUNDS: usize = 350;
/// Round after which members join and leave.
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

#[test]
#[ignore = "slow"]
fn threads_and_processes_give_the_same_bits() {
    let folder = folder();
    let one = undisturbed(&folder);
    assert_eq!(one.summary["workers"], 1);
    let two = folder.train("two", &["--workers", "2"]);
    assert_eq!(two.summary["workers"], 2);
    two.check_equals(&one);

    check_two_workers(&folder, &one);
}

#[test]
#[ignore = "slow"]
fn a_worker_killed_during_training_changes_no_bit() {
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
#[ignore = "slow"]
fn a_worker_that_joins_late_helps_and_changes_no_bit() {
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
