//! A coordinator and workers as processes of their own.

use std::process::Command;
use std::time::Duration;

use serde_json::Value;

use crate::folder::{Folder, Trained};
use crate::{Heard, Lines, Process, SOON, binary, clock};

/// A coordinator for remote workers only, up to the line that says where it listens.
pub struct Coordinator {
    /// The process; writes a line for each round, and waits when nobody reads them.
    pub process: Process,
    lines: Lines,
    /// Where workers dial.
    pub url: String,
}

/// `grammaton-worker` of one thread, yet to be started.
pub fn worker_command(url: &str, name: &str) -> Command {
    let mut command = Command::new(binary("grammaton-worker"));
    command.args(["--coordinator", url, "--threads", "1", "--name", name]);
    command.env_remove("GRAMMATON_TOKEN").env_remove("GRAMMATON_LOG");
    command
}

impl Coordinator {
    /// Starts `grammaton train` in `folder` on any free port.
    pub fn start(folder: &Folder, out: &str, more: &[&str]) -> Coordinator {
        Coordinator::start_at(folder, out, "127.0.0.1:0", more)
    }

    /// Starts `grammaton train` in `folder`, listening at `address`.
    pub fn start_at(folder: &Folder, out: &str, address: &str, more: &[&str]) -> Coordinator {
        Coordinator::spawn(&mut Coordinator::command(folder, out, address, more))
    }

    /// `grammaton train` in `folder`, listening at `address`, yet to be started.
    pub fn command(folder: &Folder, out: &str, address: &str, more: &[&str]) -> Command {
        let args = ["train", "job.toml", "--json", "--out", out, "--listen", address];
        folder.command(&[&args, more].concat())
    }

    /// Starts what [`Coordinator::command`] made.
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

    /// A worker of one thread.
    pub fn worker(&self, name: &str) -> Process {
        self.worker_with(name, &[])
    }

    /// A worker of one thread, with these arguments as well.
    pub fn worker_with(&self, name: &str, more: &[&str]) -> Process {
        Process::spawn(worker_command(&self.url, name).args(more))
    }

    /// Reads the line that says where metrics are, and gives `host:port`.
    pub fn serving(&self) -> String {
        let line = self.lines.next().expect("metrics were asked for");
        let event: Value = serde_json::from_str(&line).expect("lines are JSON");
        assert_eq!(event["event"], "serving");
        event["address"].as_str().expect("an address is text").to_owned()
    }

    /// Its address, without the scheme.
    pub fn address(&self) -> String {
        self.url.trim_start_matches("http://").to_owned()
    }

    /// What it says next, if that comes in time.
    pub fn poll(&self, within: Duration) -> Heard {
        self.lines.poll(within)
    }

    /// Reads on until `condition` holds, which has to be before the end.
    pub fn read_until(&self, mut condition: impl FnMut() -> bool) {
        let begun = clock();
        while !condition() {
            let heard = self.poll(Duration::from_millis(50));
            assert!(heard != Heard::End, "it ended before: {}", self.process.log());
            assert!(begun.elapsed() < SOON, "did not happen within {SOON:?}: {}", self.process.log());
        }
    }

    /// Reads until round `round` is over; one that goes on from a checkpoint may be beyond it already.
    pub fn read_to(&self, round: usize) {
        while let Some(line) = self.lines.next() {
            let event: Value = serde_json::from_str(&line).expect("lines are JSON");
            if event["event"] == "round" && event["round"].as_u64() >= Some(round as u64) {
                return;
            }
        }
        panic!("it ended before round {round}: {}", self.process.log());
    }

    /// Reads to the end, which has to be a good one.
    pub fn finish(self, folder: &Folder, out: &str) -> Trained {
        self.finish_with_log(folder, out).0
    }

    /// As [`Coordinator::finish`]; with what it logged.
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

/// Trains the job of `folder` with two workers in processes of their own; they leave with exit code 0, and the result is that of
/// `one`, bit for bit.
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
