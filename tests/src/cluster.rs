//! A coordinator and workers as separate processes.

use std::process::Command;
use std::time::Duration;

use serde_json::Value;

use crate::folder::{Folder, Trained};
use crate::{Heard, Lines, Process, SOON, binary, clock};

/// A coordinator for remote workers only, which listens.
pub struct Coordinator {
    /// The process. It writes a line for each round, and blocks if they are not read.
    pub process: Process,
    lines: Lines,
    /// URL for workers.
    pub url: String,
}

/// Command of a `grammaton-worker` with one thread.
pub fn worker_command(url: &str, name: &str) -> Command {
    let mut command = Command::new(binary("grammaton-worker"));
    command.args(["--coordinator", url, "--threads", "1", "--name", name]);
    command.env_remove("GRAMMATON_TOKEN").env_remove("GRAMMATON_LOG");
    command
}

impl Coordinator {
    /// Starts `grammaton train` in `folder` on a free port.
    pub fn start(folder: &Folder, out: &str, more: &[&str]) -> Coordinator {
        Coordinator::start_at(folder, out, "127.0.0.1:0", more)
    }

    /// Starts `grammaton train` in `folder`, listening at `address`.
    pub fn start_at(folder: &Folder, out: &str, address: &str, more: &[&str]) -> Coordinator {
        Coordinator::spawn(&mut Coordinator::command(folder, out, address, more))
    }

    /// Command of `grammaton train` in `folder`, listening at `address`.
    pub fn command(folder: &Folder, out: &str, address: &str, more: &[&str]) -> Command {
        let args = ["train", "job.toml", "--json", "--out", out, "--listen", address];
        folder.command(&[&args, more].concat())
    }

    /// Starts a command of [`Coordinator::command`].
    pub fn spawn(command: &mut Command) -> Coordinator {
        let (process, lines) = Process::spawn_read(command);
        let next = || -> Value {
            let Some(line) = lines.next() else { panic!("it ended: {}", process.log()) };
            serde_json::from_str(&line).expect("lines are JSON")
        };
        let mut listening = next();
        while listening["event"] == "notice" {
            listening = next();
        }
        assert_eq!(listening["event"], "listening");
        let url = format!("http://{}", listening["address"].as_str().expect("an address is text"));
        Coordinator { process, lines, url }
    }

    /// Starts a worker with one thread.
    pub fn worker(&self, name: &str) -> Process {
        self.worker_with(name, &[])
    }

    /// Starts a worker with one thread and additional arguments.
    pub fn worker_with(&self, name: &str, more: &[&str]) -> Process {
        Process::spawn(worker_command(&self.url, name).args(more))
    }

    /// Reads the line with the address of the metrics; returns `host:port`.
    pub fn serving(&self) -> String {
        let line = self.lines.next().expect("metrics were asked for");
        let event: Value = serde_json::from_str(&line).expect("lines are JSON");
        assert_eq!(event["event"], "serving");
        event["address"].as_str().expect("an address is text").to_owned()
    }

    /// Address without the scheme.
    pub fn address(&self) -> String {
        self.url.trim_start_matches("http://").to_owned()
    }

    /// Next line within a time.
    pub fn poll(&self, within: Duration) -> Heard {
        self.lines.poll(within)
    }

    /// Reads lines until `condition` holds; panics if the process ends before.
    pub fn read_until(&self, mut condition: impl FnMut() -> bool) {
        let begun = clock();
        while !condition() {
            let heard = self.poll(Duration::from_millis(50));
            assert!(heard != Heard::End, "it ended before: {}", self.process.log());
            assert!(begun.elapsed() < SOON, "did not happen within {SOON:?}: {}", self.process.log());
        }
    }

    /// Reads lines until round `round` or a later one has ended.
    pub fn read_to(&self, round: usize) {
        while let Some(line) = self.lines.next() {
            let event: Value = serde_json::from_str(&line).expect("lines are JSON");
            if event["event"] == "round" && event["round"].as_u64() >= Some(round as u64) {
                return;
            }
        }
        panic!("it ended before round {round}: {}", self.process.log());
    }

    /// Reads until an event of that name.
    pub fn read_event(&self, name: &str) -> Value {
        while let Some(line) = self.lines.next() {
            let event: Value = serde_json::from_str(&line).expect("lines are JSON");
            if event["event"] == name {
                return event;
            }
        }
        panic!("it ended before an event {name}: {}", self.process.log());
    }

    /// Reads to the end and checks that it succeeded.
    pub fn finish(self, folder: &Folder, out: &str) -> Trained {
        self.finish_with_log(folder, out).0
    }

    /// As [`Coordinator::finish`]; also returns the log.
    pub fn finish_with_log(mut self, folder: &Folder, out: &str) -> (Trained, String) {
        let mut last = None;
        while let Some(line) = self.lines.next() {
            last = Some(line);
        }
        assert_eq!(self.process.wait().code(), Some(0), "{}", self.process.log());
        let trained = Trained::read(&folder.path(out));
        let event: Value = serde_json::from_str(&last.expect("there are lines")).expect("lines are JSON");
        assert_eq!(event["event"], "finished");
        assert_eq!(event["parameters_sha256"], trained.summary["parameters_sha256"]);
        let log = self.process.log();
        (trained, log)
    }
}

/// Trains the job of `folder` with two worker processes. Checks that they exit with code 0, and that the result equals `one` bit for
/// bit.
pub fn check_two_workers(folder: &Folder, one: &Trained) {
    let coordinator = Coordinator::start(folder, "remote", &["--min-workers", "2"]);
    let mut workers = ["alice", "bob"].map(|name| coordinator.worker(name));
    let remote = coordinator.finish(folder, "remote");
    assert_eq!(remote.summary["workers"], 2);
    remote.check_equals(one);
    for worker in &mut workers {
        assert_eq!(worker.wait().code(), Some(0), "{}", worker.log());
    }
}
