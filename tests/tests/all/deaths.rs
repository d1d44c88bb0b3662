//! Processes killed, stopped, drained and disconnected during training, in every order. Law: the run ends with the same bits as an
//! undisturbed run.
//!
//! A run with `--json` blocks when the pipe is full, so events that a test awaits without reading happen before the end of the run.
//! `soak.rs` draws random schedules of faults from a seed.

use std::fs;
use std::process::Command;
use std::sync::LazyLock;

use grammaton_tests::cluster::{Coordinator, worker_command};
use grammaton_tests::folder::{Folder, Trained, examples};
use grammaton_tests::lan::{HEAD, Lan};
use grammaton_tests::{Process, eventually, requirement};

/// Far more rounds than it takes to converge, so that their lines fill a pipe.
const ROUNDS: usize = 500;
const TOKEN: &str = "a-token-of-the-test";
/// Minimum heartbeat timeout.
const QUICK_DEATHS: [&str; 2] = ["--dead-after", "3"];

fn folder() -> Folder {
    let corpus = fs::read_to_string(examples().join("segmentation/corpus.txt")).unwrap();
    let corpus: String = corpus.split_inclusive('\n').take(600).collect();
    let job = format!(
        "[model]\ngrammar = \"auto:unigram\"\n[corpus]\npath = \"corpus.txt\"\n\
         [inference]\ntruncation = 300\nmax_rounds = {ROUNDS}\ntolerance = 0\n\
         [output]\ncheckpoint_seconds = 0\nscore_every = 0\n"
    );
    Folder::new(&[("job.toml", &job), ("corpus.txt", &corpus)])
}

/// Expected result of all runs.
static UNDISTURBED: LazyLock<Trained> =
    LazyLock::new(|| folder().train("out", &["--workers", "1", "--set", "output.keep_checkpoints=0"]));

/// Waits until a worker has joined `times` times.
fn await_joins(worker: &Process, times: usize) {
    eventually(&|| worker.log(), || worker.log().matches(" joined ").count() >= times);
}

/// Whether the coordinator has removed a worker.
fn is_lost(coordinator: &Coordinator, name: &str) -> bool {
    let log = coordinator.process.log();
    log.lines().any(|line| line.contains(" lost ") && line.contains(&format!("\"{name}\"")))
}

fn finish(coordinator: Coordinator, folder: &Folder) -> Trained {
    finish_with_log(coordinator, folder).0
}

fn finish_with_log(coordinator: Coordinator, folder: &Folder) -> (Trained, String) {
    let (trained, log) = coordinator.finish_with_log(folder, "out");
    assert_eq!(trained.digest(), UNDISTURBED.digest());
    assert!(trained.files == UNDISTURBED.files, "some file differs");
    assert_eq!(trained.rounds.len(), ROUNDS);
    (trained, log)
}

#[test]
#[ignore = "slow"]
fn a_stopped_worker_is_removed_and_its_late_answers_count_once() {
    let folder = folder();
    let coordinator =
        Coordinator::start(&folder, "out", &[&["--min-workers", "2"], &QUICK_DEATHS[..]].concat());
    let mut workers = ["alice", "bob"].map(|name| coordinator.worker(name));
    coordinator.read_to(3);
    workers[0].signal("STOP");
    // Rounds continue, so other workers compute its tasks.
    coordinator.read_until(|| is_lost(&coordinator, "alice"));
    workers[0].signal("CONT");
    await_joins(&workers[0], 2);
    finish(coordinator, &folder);
    for worker in &mut workers {
        assert_eq!(worker.wait().code(), Some(0), "{}", worker.log());
    }
}

#[test]
#[ignore = "slow"]
fn workers_killed_and_drained_during_training_change_no_bit() {
    let folder = folder();
    let coordinator = Coordinator::start(&folder, "out", &["--min-workers", "3"]);
    let mut workers = ["alice", "bob", "carol"].map(|name| coordinator.worker(name));
    coordinator.read_to(3);
    workers[0].kill();
    workers[1].signal("TERM");
    coordinator.read_to(6);
    assert_eq!(workers[1].wait().code(), Some(0), "{}", workers[1].log());
    let (trained, log) = finish_with_log(coordinator, &folder);
    assert!(trained.summary["losses"]["disconnected"].as_u64() >= Some(1), "{log}");
    assert_eq!(workers[2].wait().code(), Some(0), "{}", workers[2].log());
}

/// Hosts with one worker each, and the coordinator on the head.
struct Cluster {
    folder: Folder,
    lan: Lan,
    coordinator: Coordinator,
}

impl Cluster {
    /// Starts the cluster; `None` if the machine does not allow namespaces.
    fn start(n_hosts: usize) -> Option<Cluster> {
        let folder = folder();
        let lan = Lan::new(n_hosts).map_err(|why| requirement::missing("namespaces", &why)).ok()?;
        let n_hosts = n_hosts.to_string();
        let command = coordinator_command(&folder, &format!("{HEAD}:0"), &["--min-workers", &n_hosts]);
        let coordinator = Coordinator::spawn(&mut with_token(lan.on_head(&command)));
        Some(Cluster { folder, lan, coordinator })
    }

    fn worker(&self, host: usize, name: &str) -> Process {
        let command = worker_command(&self.coordinator.url, name);
        Process::spawn(&mut with_token(self.lan.on(host, &command)))
    }

    /// Kills the coordinator; another one resumes in its place.
    fn replace_coordinator(&mut self) {
        self.coordinator.process.kill();
        self.coordinator.process.wait();
        let command = coordinator_command(&self.folder, &self.coordinator.address(), &["--resume"]);
        self.coordinator = Coordinator::spawn(&mut with_token(self.lan.on_head(&command)));
    }
}

fn coordinator_command(folder: &Folder, address: &str, more: &[&str]) -> Command {
    Coordinator::command(folder, "out", address, &[more, &QUICK_DEATHS].concat())
}

fn with_token(mut command: Command) -> Command {
    command.env("GRAMMATON_TOKEN", TOKEN);
    command
}

#[test]
#[ignore = "slow"]
fn a_host_disconnected_and_reconnected_changes_no_bit() {
    let Some(cluster) = Cluster::start(2) else { return };
    let mut workers = [0, 1].map(|host| cluster.worker(host, ["alice", "bob"][host]));
    cluster.coordinator.read_to(3);
    cluster.lan.cut(0);
    cluster.coordinator.read_until(|| is_lost(&cluster.coordinator, "alice"));
    cluster.lan.heal(0);
    await_joins(&workers[0], 2);
    let Cluster { folder, lan: _lan, coordinator } = cluster;
    finish(coordinator, &folder);
    for worker in &mut workers {
        assert_eq!(worker.wait().code(), Some(0), "{}", worker.log());
    }
}

#[test]
#[ignore = "slow"]
fn all_faults_together_change_no_bit() {
    let Some(mut cluster) = Cluster::start(4) else { return };
    let mut workers: Vec<Process> =
        (0..4).map(|host| cluster.worker(host, ["alice", "bob", "carol", "dora"][host])).collect();
    for round in [5, 20, 40] {
        cluster.coordinator.read_to(round);
        workers[0].kill();
        workers[1].signal("STOP");
        cluster.lan.cut(2);
        workers[3].signal("TERM");
        cluster.replace_coordinator();
        assert_eq!(workers[3].wait().code(), Some(0), "{}", workers[3].log());
        workers[0] = cluster.worker(0, "alice");
        workers[3] = cluster.worker(3, "dora");
        await_joins(&workers[0], 1);
        cluster.coordinator.process.kill(); // before its first round
        cluster.coordinator.process.wait();
        cluster.replace_coordinator();
        workers[1].signal("CONT");
        cluster.lan.heal(2);
    }
    let Cluster { folder, lan: _lan, coordinator } = cluster;
    let trained = finish(coordinator, &folder);
    assert!(trained.summary["resumed"].as_u64() >= Some(3), "{}", trained.summary);
    workers.iter().for_each(|worker| assert!(worker.log().contains("joined"), "{}", worker.log()));
}
