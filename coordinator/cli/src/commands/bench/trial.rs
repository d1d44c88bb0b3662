//! A training run in separate processes, with its measurements.
//!
//! In: a job, and threads or workers to compute with. Out: a [`Trial`]. Processes never outlive the trial, however it ends.

use std::fs::{self, File};
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::Duration;

use anyhow::{Context, Result, bail};
use basics::clock;
use basics::memory;
use serde::Serialize;
use serde_json::Value;

/// Where workers are started, if not as processes of this machine.
#[derive(Clone, Debug, Default)]
pub struct Hosts {
    /// The hosts, one worker on each, as often as it is named.
    pub names: Vec<String>,
    /// The command that runs another one on a host, word by word, with `{host}` for its name.
    pub launch: Vec<String>,
    /// Name or address of this machine there.
    pub address: String,
    /// Options of both sides that say who may connect.
    pub access: Vec<String>,
}

/// The place of `--launch` at which the name of the host stands.
const HOST: &str = "{host}";

impl Hosts {
    fn is_here(&self) -> bool {
        self.names.is_empty()
    }

    /// The command that starts the worker with this number.
    fn command(&self, program: &Path, number: usize) -> Command {
        if self.is_here() {
            return Command::new(program);
        }
        let host = &self.names[number % self.names.len()];
        let mut words = self.launch.iter().map(|word| word.replace(HOST, host));
        let mut command = Command::new(words.next().unwrap_or_default());
        command.args(words).arg(program);
        command
    }
}

/// Threads or workers that compute.
#[derive(Clone, Debug)]
pub enum BenchWorkers {
    /// Number of threads of the training process.
    Threads(u16),
    /// Number of worker processes, of one thread each.
    Workers(u16),
}

impl std::fmt::Display for BenchWorkers {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            BenchWorkers::Threads(n) => write!(f, "{n} threads"),
            BenchWorkers::Workers(n) => write!(f, "{n} workers"),
        }
    }
}

/// Measurements of a training run.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Trial {
    /// Number of sentences.
    pub sentences: u64,
    /// Number of symbols in all sentences.
    pub symbols: u64,
    /// `threads` or `workers`.
    pub by: &'static str,
    /// Number of threads or workers.
    pub n: u16,
    /// Time from the start to the first round.
    pub preparation_seconds: f64,
    /// Median time of the rounds after the first.
    pub round_seconds: f64,
    /// Sentences per second, by that time.
    pub sentences_per_second: f64,
    /// Compute time of a round, over all threads.
    pub cpu_seconds: f64,
    /// Parallel efficiency: time of a round with one thread of one process ÷ (number × time).
    pub efficiency: f64,
    /// Time of decoding all sentences after the last round.
    pub decoding_seconds: f64,
    /// Time of the whole run.
    pub total_seconds: f64,
    /// Digest of the parameters that were learned.
    pub parameters_sha256: String,
    /// Peak memory of the training process in bytes, if the system reports it.
    pub peak_bytes: Option<u64>,
}

/// Interval between polls of a process.
const ASK_AGAIN: Duration = Duration::from_millis(10);

/// Runs the training of `job` with the values of `set`. Files are written to `temporary`, a folder.
pub fn run(
    program: &Path,
    (job, set): (&Path, &[String]),
    temporary: &Path,
    hosts: &Hosts,
    bench_workers: &BenchWorkers,
) -> Result<Trial> {
    let folder = temporary.join("out");
    if folder.exists() {
        fs::remove_dir_all(&folder).context("cannot clear the temporary folder")?;
    }
    let errors = temporary.join("errors.txt");
    let said = temporary.join("worker.txt");
    let mut command = Command::new(program);
    command.arg("train").arg(job).args(["--json", "--out"]).arg(&folder);
    for value in set {
        command.args(["--set", value]);
    }
    let (by, n) = match bench_workers {
        BenchWorkers::Threads(n) => {
            command.args(["--workers", &n.to_string()]);
            ("threads", *n)
        }
        BenchWorkers::Workers(n) => {
            let listen = if hosts.is_here() { "127.0.0.1:0" } else { "0.0.0.0:0" };
            command.args(["--listen", listen, "--min-workers", &n.to_string()]).args(&hosts.access);
            ("workers", *n)
        }
    };
    let file = File::create(&errors).context("cannot write to the temporary folder")?;
    let begun = clock::instant();
    let mut trainer = Process::start(command.stdout(Stdio::piped()).stderr(file))?;
    let mut lines = BufReader::new(trainer.0.stdout.take().context("its output is piped")?).lines();
    let mut workers = Vec::new();
    if let BenchWorkers::Workers(n) = bench_workers {
        let first = lines.next().and_then(Result::ok).unwrap_or_default();
        let listens = event(&first);
        let port = listens["address"].as_str().and_then(|address| Some(address.rsplit_once(':')?.1));
        let url = format!("http://{}:{}", hosts.address, port.unwrap_or_default());
        let log = File::create(&said).context("cannot write to the temporary folder")?;
        for number in 0..usize::from(*n) {
            let name = format!("bench-{number}");
            let args = ["worker", "--coordinator", &url, "--threads", "1", "--name", &name];
            let mut command = hosts.command(program, number);
            let log = log.try_clone().context("cannot write to the temporary folder")?;
            workers.push(Process::start(command.args(args).args(&hosts.access).stderr(log))?);
        }
    }
    // The output is read to its end, since a full pipe would block the process.
    let reader = std::thread::spawn(move || {
        let lines = lines.map_while(Result::ok).map(|line| event(&line));
        lines.filter_map(|event| event["symbols"].as_u64()).last().unwrap_or(0)
    });
    let ended = trainer.wait(&mut workers);
    let last_line =
        |file: &Path| -> Option<String> { Some(fs::read_to_string(file).ok()?.lines().last()?.to_owned()) };
    let (status, peak_bytes) = match (ended, last_line(&said)) {
        (Err(error), Some(line)) => return Err(error.context(line)),
        (ended, _) => ended?,
    };
    if !status.success() {
        bail!(
            "{bench_workers}: {}",
            last_line(&errors).as_deref().unwrap_or("training failed without a message")
        );
    }
    let symbols = reader.join().unwrap_or(0);
    let rounds = fs::read_to_string(folder.join("metrics.jsonl")).context("training left no metrics")?;
    let rounds: Vec<Value> = rounds.lines().map(event).collect();
    let median = |key: &str| {
        let mut found: Vec<f64> = rounds.iter().skip(1).filter_map(|round| round[key].as_f64()).collect();
        found.sort_by(f64::total_cmp);
        found.get(found.len() / 2).copied().with_context(|| format!("the metrics of training have no {key}"))
    };
    let summary = fs::read_to_string(folder.join("summary.json")).context("training left no summary")?;
    let summary = event(&summary);
    let (round_seconds, timings) = (median("seconds")?, &summary["timings"]);
    let sentences = summary["sentences"].as_u64().context("the summary of training has no sentences")?;
    let timing = |phase: &str| timings[phase].as_f64().unwrap_or(f64::NAN);
    Ok(Trial {
        sentences,
        symbols,
        by,
        n,
        preparation_seconds: timing("preprocess"),
        round_seconds,
        sentences_per_second: sentences as f64 / round_seconds,
        cpu_seconds: median("busy_seconds")?,
        efficiency: 1.0,
        decoding_seconds: timing("decode"),
        total_seconds: begun.elapsed().as_secs_f64(),
        parameters_sha256: summary["parameters_sha256"].as_str().unwrap_or_default().to_owned(),
        peak_bytes,
    })
}

/// Parses a line of a training run; null if it is not JSON.
fn event(line: &str) -> Value {
    serde_json::from_str(line).unwrap_or_default()
}

/// A process that is killed when it is dropped.
#[derive(Debug)]
struct Process(Child);

impl Process {
    fn start(command: &mut Command) -> Result<Process> {
        command.stdin(Stdio::null()).env_remove(proto::token::TOKEN_VARIABLE);
        let program = command.get_program().to_owned();
        let child = command.spawn();
        Ok(Process(child.with_context(|| format!("{}: cannot be started", program.display()))?))
    }

    /// Waits for the end of the process, while its workers run; returns its status and the peak memory observed.
    fn wait(&mut self, workers: &mut [Process]) -> Result<(ExitStatus, Option<u64>)> {
        let mut peak = None;
        loop {
            peak = memory::peak(self.0.id()).max(peak);
            if let Some(status) = self.ended()? {
                return Ok((status, peak));
            }
            for worker in &mut *workers {
                if let Some(status) = worker.ended()?.filter(|status| !status.success()) {
                    bail!("a worker gave up ({status})");
                }
            }
            std::thread::sleep(ASK_AGAIN);
        }
    }

    fn ended(&mut self) -> Result<Option<ExitStatus>> {
        self.0.try_wait().context("cannot wait for training to end")
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // An error means that it has ended already.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
