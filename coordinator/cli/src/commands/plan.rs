//! `grammaton plan`: estimates the duration of a job's rounds on clusters of given sizes.
//!
//! The job is prepared and a few of its rounds run here on one thread, with the code of training ([`probe`]). The measurements are the
//! input of [`forecast`](fleet::forecast), which simulates a cluster with the real scheduler. All files are temporary.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use basics::clock;
use basics::human::megabytes;
use basics::streams;
use fleet::forecast::{Cluster, Forecast, Load, forecast, n_events};
use serde::Serialize;
use training::job::Job;

use self::probe::{Measured, measure};
use super::Answer;

pub mod probe;

/// Arguments of `plan`.
#[derive(clap::Args, Debug)]
#[command(after_help = "Examples:\n\
    \x20 grammaton plan job.toml --workers 20,100,1000\n\
    \x20 grammaton plan job.toml --workers 100 --cpu-seconds 60 --bandwidth 1")]
pub struct Args {
    /// The job file
    pub job: PathBuf,
    /// Set a value of the job, as in --set corpus.shard_symbols=65536; repeatable, the last one wins
    #[arg(long, value_name = "KEY=VALUE")]
    pub set: Vec<String>,
    /// Numbers of workers, separated by commas
    #[arg(
        help_heading = "Cluster",
        long,
        value_name = "N,N",
        value_delimiter = ',',
        default_value = "20,100,1000"
    )]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub workers: Vec<u32>,
    /// Number of threads of each worker
    #[arg(help_heading = "Cluster", long, value_name = "N", default_value_t = 1)]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=i64::from(proto::MAX_SLOTS)))]
    pub threads: u32,
    /// Speed of a core of a worker, where a core of this machine has speed 1
    #[arg(help_heading = "Cluster", long, value_name = "X", default_value_t = 1.0, value_parser = speed)]
    pub worker_speed: f64,
    /// Bandwidth of the coordinator's network in Gbit/s, both directions together
    #[arg(help_heading = "Cluster", long, value_name = "GBIT", default_value_t = 10.0, value_parser = positive)]
    pub bandwidth: f64,
    /// One-way latency between coordinator and worker in milliseconds
    #[arg(help_heading = "Cluster", long, value_name = "MS", default_value_t = 0.5, value_parser = milliseconds)]
    pub latency: f64,
    /// Number of cores of the coordinator's machine [default: as this machine]
    #[arg(help_heading = "Cluster", long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    pub cores: Option<u16>,
    /// Work of a round per worker in CPU-seconds, with the corpus scaled accordingly [default: the corpus as it is]
    #[arg(help_heading = "Cluster", long, value_name = "S", value_parser = positive)]
    pub cpu_seconds: Option<f64>,
    /// Number of rounds to measure after the first
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u16).range(1..=1000))]
    pub rounds: u16,
    /// Seed of the simulation
    #[arg(long, value_name = "S", default_value_t = 1)]
    pub seed: u64,
    /// Print JSON
    #[arg(help_heading = "Output", long)]
    pub json: bool,
}

fn positive(text: &str) -> Result<f64, String> {
    let found = text.parse().ok().filter(|&number| number > 0.0 && f64::is_finite(number));
    found.ok_or_else(|| "expected a number above 0".to_owned())
}

fn speed(text: &str) -> Result<f64, String> {
    let found = text.parse().ok().filter(|number| (0.001..=1000.0).contains(number));
    found.ok_or_else(|| "expected a number from .001 to 1000".to_owned())
}

fn milliseconds(text: &str) -> Result<f64, String> {
    let found = text.parse().ok().filter(|number| (0.0..=1e6).contains(number));
    found.ok_or_else(|| "expected a number of milliseconds, from 0 to a million".to_owned())
}

/// Maximum number of simulated tasks of a round.
const MOST_TASKS: f64 = 2e6;

/// Default capacity of a worker's blob cache in bytes.
const WORKER_CACHE: u64 = 1 << 30;

/// Result of the command.
#[derive(Serialize)]
struct Report<'a> {
    measured: &'a Measured,
    threads: u32,
    worker_speed: f64,
    bandwidth_gbit: f64,
    latency_ms: f64,
    cores: usize,
    cpu_seconds: Option<f64>,
    seed: u64,
    forecasts: Vec<Forecast>,
}

/// Runs the command.
pub fn run(args: &Args) -> Result<Answer> {
    let mut job = Job::load(&args.job, &args.set)?.with_likely_grammars().of_rounds(1 + args.rounds as usize);
    let folder = tempfile::tempdir().context("cannot create a temporary folder")?;
    job.output.dir = folder.path().to_owned();
    let fleet = |&workers: &u32| [workers as usize, workers as usize * args.threads as usize];
    let fleets: Vec<[usize; 2]> = match args.cpu_seconds {
        // A larger corpus has as many shards for each thread as this one has for few.
        Some(_) => vec![[1, 1]; args.workers.len().min(1)],
        None => args.workers.iter().map(fleet).collect(),
    };
    let (loads, measured) = measure(&job, &fleets, args.worker_speed)?;
    let mut report = Report {
        measured: &measured,
        threads: args.threads,
        worker_speed: args.worker_speed,
        bandwidth_gbit: args.bandwidth,
        latency_ms: args.latency,
        cores: args.cores.map_or_else(cores, usize::from),
        cpu_seconds: args.cpu_seconds,
        seed: args.seed,
        forecasts: Vec::new(),
    };
    for (&workers, load) in args.workers.iter().zip(loads.iter().cycle()) {
        let cluster = Cluster {
            workers: workers as usize,
            threads: args.threads,
            bandwidth: args.bandwidth * 1e9 / 8.0,
            latency: Duration::from_secs_f64(args.latency / 1e3),
            cores: report.cores,
            cache: WORKER_CACHE,
        };
        let n_tasks = n_tasks(load, workers, args.cpu_seconds)?;
        let load = Load { decide: time_to_decide(load, n_tasks, &cluster, args.seed), ..load.clone() };
        report.forecasts.push(forecast(&load, n_tasks, &cluster, args.seed));
    }
    let text = if args.json {
        serde_json::to_string_pretty(&report).context("the forecast does not serialise")? + "\n"
    } else {
        text(&report)
    };
    streams::print(&text)?;
    Ok(Answer::Yes)
}

fn cores() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

/// Tasks of a round: the tasks of the job, or as many as make up the given work per worker.
fn n_tasks(load: &Load, workers: u32, cpu_seconds: Option<f64>) -> Result<usize> {
    let Some(seconds) = cpu_seconds else { return Ok(load.tasks.len()) };
    let mean = load.work().as_secs_f64() / load.tasks.len() as f64;
    let n_tasks = (seconds * f64::from(workers) / mean).round().max(1.0);
    if n_tasks > MOST_TASKS {
        bail!(
            "--cpu-seconds {seconds}: a round of {workers} workers would have {n_tasks:.1e} tasks of {:.1} ms; take larger \
             shards (--set corpus.shard_symbols=…), or fewer seconds",
            mean * 1e3
        );
    }
    Ok(n_tasks as usize)
}

/// Time of the scheduler per event, with that many members and tasks; includes the overhead of the simulation.
fn time_to_decide(load: &Load, n_tasks: usize, cluster: &Cluster, seed: u64) -> Duration {
    let begun = clock::instant();
    let n_events = n_events(load, n_tasks, cluster, seed);
    begun.elapsed().div_f64(n_events.max(1) as f64)
}

fn text(report: &Report<'_>) -> String {
    let Report { measured, threads, bandwidth_gbit, latency_ms, cores, .. } = report;
    let Measured { sentences, shards, tasks, rounds, .. } = measured;
    let milliseconds = |seconds: f64| seconds * 1e3;
    let mut lines = vec![
        format!(
            "measured on one thread, {rounds} rounds after the first: {sentences} sentences in {shards} shards; a round is \
             {tasks} tasks, {:.3} CPU-s of work",
            measured.work_seconds
        ),
        format!(
            "  a task        {:.1} ms (the longest {:.1}), in the first round {:.1} ms",
            milliseconds(measured.work_seconds / *tasks as f64),
            milliseconds(measured.longest_seconds),
            milliseconds(measured.first_seconds / *tasks as f64),
        ),
        format!(
            "  bytes         a round {:.2} MB of weights down, {:.2} MB of counts up; once {:.2} MB of shards, and {:.2} MB \
             to every worker",
            megabytes(measured.lease_bytes),
            megabytes(measured.answer_bytes),
            megabytes(measured.shard_bytes),
            megabytes(measured.once_bytes),
        ),
        format!(
            "  coordinator   a round {:.1} ms to encode, {:.1} to decode, {:.1} to add up, {:.1} between rounds",
            milliseconds(measured.encode_seconds),
            milliseconds(measured.decode_seconds),
            milliseconds(measured.add_seconds),
            milliseconds(measured.between_seconds),
        ),
        String::new(),
        format!(
            "forecast for workers of {threads} threads, {bandwidth_gbit} Gbit/s, {latency_ms} ms, a coordinator of {cores} \
             cores"
        ),
        format!(
            "{:>8} {:>8} {:>10} {:>6} {:>10} {:>9} {:>9} {:>9} | {:>9} {:>9} {:>11} {:>9} {:>9}  bottleneck",
            "workers",
            "tasks",
            "round, s",
            "±",
            "efficiency",
            "first, s",
            "down, MB",
            "up, MB",
            "compute",
            "network",
            "coordinator",
            "latency",
            "waiting"
        ),
    ];
    lines.extend(report.forecasts.iter().map(|forecast| {
        let Forecast { workers, tasks, first, round, error, efficiency, share, bottleneck } = forecast;
        let error = error.map_or_else(|| "–".to_owned(), |error| format!("{:.0} %", 100.0 * error));
        format!(
            "{workers:>8} {tasks:>8} {:>10.4} {error:>6} {:>8.1} % {:>9.3} {:>9.1} {:>9.1} | {:>9.4} {:>9.4} {:>11.4} {:>9.4} {:>9.4}  {}",
            round.seconds,
            100.0 * efficiency,
            first.seconds,
            megabytes(round.bytes_down),
            megabytes(round.bytes_up),
            share.compute,
            share.network,
            share.coordinator,
            share.latency,
            share.waiting,
            bottleneck.name(),
        )
    }));
    lines.push(
        "±: twice the standard error of the measured rounds; docs/SCALING.md has how far forecasts were from real workers"
            .to_owned(),
    );
    lines.push(String::new());
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;
    use fleet::forecast::TaskLoad;

    #[test]
    fn cpu_seconds_are_those_of_each_worker() {
        let task = |millis| TaskLoad { again: vec![Duration::from_millis(millis)], ..TaskLoad::default() };
        let load = Load { tasks: vec![task(100), task(300)], ..Load::default() };
        assert_eq!(n_tasks(&load, 7, None).unwrap(), 2);
        assert_eq!(n_tasks(&load, 7, Some(6.0)).unwrap(), 7 * 30);
        assert_eq!(n_tasks(&load, 1, Some(1e-6)).unwrap(), 1);
        let refusal = n_tasks(&load, 1000, Some(1e4)).unwrap_err().to_string();
        assert!(refusal.contains("5.0e7 tasks of 200.0 ms; take larger shards"), "{refusal}");
    }
}
