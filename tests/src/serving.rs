//! A service as a separate process, which can be killed and restarted with its store and address.

use std::fs;
use std::net::TcpListener;
use std::path::PathBuf;
use std::process::Command;

use serde_json::Value;

use crate::folder::{Folder, Printed};
use crate::{Lines, Process};

/// A `grammaton serve` with a fixed address.
pub struct Serving {
    /// The process; `None` while it is dead.
    process: Option<(Process, Lines)>,
    /// Path of the store in the folder of the test, unless it is an object store.
    pub store: PathBuf,
    /// URL for commands and workers.
    pub url: String,
    command: Box<dyn Fn() -> Command + Send>,
}

impl Serving {
    /// Starts a service in `folder` with additional arguments.
    pub fn start(folder: &Folder, more: &[&str]) -> Serving {
        Serving::start_at(folder, "store", more, &[])
    }

    /// As [`Serving::start`], with the given store and environment.
    pub fn start_at(folder: &Folder, store: &str, more: &[&str], environment: &[(&str, String)]) -> Serving {
        let mut serving = Serving::prepare(folder, store, more, environment);
        serving.begin();
        serving
    }

    /// As [`Serving::start_at`], without starting the process.
    pub fn prepare(folder: &Folder, store: &str, more: &[&str], environment: &[(&str, String)]) -> Serving {
        let port = || TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr());
        let address = port().expect("loopback has free ports").to_string();
        let args: Vec<String> = ["serve", "--json", "--store", store, "--listen", &address]
            .iter()
            .chain(more)
            .map(|arg| (*arg).to_owned())
            .collect();
        let (place, url) = (folder.path(""), format!("http://{address}"));
        let environment: Vec<(String, String)> =
            environment.iter().map(|(key, value)| ((*key).to_owned(), value.clone())).collect();
        let command = move || {
            let mut command = Command::new(crate::binary("grammaton"));
            command.args(&args).current_dir(&place).env_remove("GRAMMATON_TOKEN").env_remove("GRAMMATON_LOG");
            command.envs(environment.iter().cloned());
            command
        };
        Serving { process: None, store: folder.path(store), url, command: Box::new(command) }
    }

    /// Starts the process; waits until it listens.
    pub fn begin(&mut self) {
        let (process, lines) = Process::spawn_read(&mut (self.command)());
        let first = lines.next().unwrap_or_else(|| panic!("it ended: {}", process.log()));
        assert!(first.contains("\"listening\""), "{first}");
        self.process = Some((process, lines));
    }

    /// Starts the process by a command that is given its own; returns whether it listened before its end.
    pub fn begin_by(&mut self, by: impl FnOnce(&Command) -> Command) -> bool {
        let (process, lines) = Process::spawn_read(&mut by(&(self.command)()));
        let listens = lines.next().is_some();
        self.process = Some((process, lines));
        listens
    }

    /// Whether the process has ended.
    pub fn has_ended(&mut self) -> bool {
        self.process.as_mut().is_none_or(|(process, _)| process.ended().is_some())
    }

    /// Kills it at once.
    pub fn kill(&mut self) {
        if let Some((mut process, _)) = self.process.take() {
            process.kill();
            process.wait();
        }
    }

    /// Stops the process with SIGTERM; returns its exit code and log.
    pub fn stop(&mut self) -> (Option<i32>, String) {
        let (mut process, _lines) = self.process.take().expect("it is there");
        process.signal("TERM");
        (process.wait().code(), process.log())
    }

    /// Process id.
    pub fn id(&self) -> u32 {
        self.process.as_ref().expect("it is there").0.id()
    }

    /// Log so far.
    pub fn log(&self) -> String {
        self.process.as_ref().map_or(String::new(), |(process, _)| process.log())
    }

    /// Reads the line with the address of the page; returns `host:port`.
    pub fn serving(&self) -> String {
        let (_, lines) = self.process.as_ref().expect("it is there");
        let event: Value =
            serde_json::from_str(&lines.next().expect("a page was asked for")).expect("lines are JSON");
        assert_eq!(event["event"], "serving");
        event["address"].as_str().expect("an address is text").to_owned()
    }

    /// Runs a command of `grammaton` as a client in `folder`, successful or not.
    pub fn run(&self, folder: &Folder, args: &[&str]) -> Printed {
        folder.run(&[args, &["--coordinator", &self.url]].concat())
    }

    /// As [`Serving::run`], and checks that it succeeds; returns its standard output without the line end.
    pub fn grammaton(&self, folder: &Folder, args: &[&str]) -> String {
        let printed = self.run(folder, args);
        assert_eq!(printed.code, 0, "grammaton {args:?}: {}\n{}", printed.log, self.log());
        printed.out.trim_end().to_owned()
    }

    /// Status of a job.
    pub fn job(&self, folder: &Folder, id: &str) -> Value {
        let json = self.grammaton(folder, &["status", id, "--json"]);
        serde_json::from_str(&json).expect("a job is JSON")
    }
}

/// The job processes of a service: process id and job id.
pub fn job_processes(service: u32) -> Vec<(u32, String)> {
    let mut found = Vec::new();
    for entry in fs::read_dir("/proc").expect("Linux lists its processes") {
        let path = entry.expect("the list can be read").path();
        let Some(id) = path.file_name().and_then(|name| name.to_str()?.parse().ok()) else { continue };
        // A process may end while it is looked at.
        let Ok(stat) = fs::read_to_string(path.join("stat")) else { continue };
        let fields = stat.rsplit(')').next().unwrap_or_default();
        let parent = fields.split_whitespace().nth(1);
        let Ok(args) = fs::read_to_string(path.join("cmdline")) else { continue };
        if parent == Some(&service.to_string()) && args.contains("job-process") {
            let open = fs::read_dir(path.join("fd")).into_iter().flatten().flatten();
            let files = open.filter_map(|file| fs::read_link(file.path()).ok());
            let job = files
                .filter_map(|file| {
                    let path = file.to_str()?;
                    let mut ids = path.split("/work/").skip(1).filter_map(|rest| rest.split('/').next());
                    ids.find(|id| id.parse::<u64>().is_ok()).map(str::to_owned)
                })
                .next();
            found.push((id, job.unwrap_or_default()));
        }
    }
    found
}
