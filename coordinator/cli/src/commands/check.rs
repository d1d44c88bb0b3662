//! `grammaton check`: what training a job would do, without training it.
//!
//! Reads all input files, looks for sentences without a derivation, and measures a few rounds on one thread as [`super::plan`] does. Nothing
//! is written but temporary files.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context as _, Result};
use basics::clock;
use basics::human::{bytes, duration};
use basics::memory;
use basics::streams::{self, tell};
use fleet::{Fleet, FleetConfig};
use grammaton::data::corpus::UnknownSymbol;
use serde::Serialize;
use training::job::Job;
use training::train::group::Inputs;
use training::train::prepare::without_forest;

use super::Answer;
use super::plan::probe::{Measured, measure};

/// Arguments of `check`.
#[derive(clap::Args, Debug)]
#[command(
    after_help = "Exit codes: 0 the job can be trained, 1 some sentences, which are listed, cannot be derived or in too many ways, 2 the job or an input file is invalid.\n\n\
    Examples:\n\
    \x20 grammaton check job.toml\n\
    \x20 grammaton check job.toml --set inference.method=hastings --no-estimate"
)]
pub struct Args {
    /// The job file
    pub job: PathBuf,
    /// Set a value of the job, as in --set inference.seed=2; repeatable, the last one wins
    #[arg(long, value_name = "KEY=VALUE")]
    pub set: Vec<String>,
    /// Do not estimate time and memory, for which a few rounds run on one thread
    #[arg(long)]
    pub no_estimate: bool,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

/// Result of the command.
#[derive(Serialize)]
struct Report {
    /// The job with all values, as TOML.
    settings: String,
    notices: Vec<String>,
    /// File, line and text of each sentence without a derivation.
    underivable: Vec<String>,
    /// Sentences with more derivations than a forest can hold, as `FILE:LINE: text: reason`.
    too_ambiguous: Vec<String>,
    estimate: Option<Estimate>,
}

/// An estimate for this machine.
#[derive(Serialize)]
struct Estimate {
    cores: usize,
    /// Rounds of all runs together, if no run ends early.
    rounds: usize,
    preparing_cpu_seconds: f64,
    /// CPU time of a round of all runs.
    round_cpu_seconds: f64,
    /// Preparing and all rounds on all cores; decoding and scoring come on top.
    seconds: f64,
    /// Peak memory of the measurement.
    peak_bytes: Option<u64>,
}

/// Runs the command.
pub fn run(args: &Args) -> Result<Answer> {
    let job = Job::load(&args.job, &args.set)?;
    let folder = tempfile::tempdir().context("cannot create a temporary folder")?;
    let mut temporary = job.clone();
    temporary.output.dir = folder.path().to_owned();
    let (inputs, mut found) = match Inputs::load(&temporary) {
        Err(error) if error.is::<UnknownSymbol>() => Inputs::load_known(&temporary).map_err(|_| error)?,
        inputs => (inputs?, Vec::new()),
    };
    let fleet = Fleet::start(FleetConfig::default())?;
    let mut too_many = Vec::new();
    for group in &inputs.groups {
        let [of_group, more] = without_forest(&fleet.handle(), &group.input)?;
        found.extend(of_group);
        too_many.extend(more);
    }
    fleet.shutdown();
    let [underivable, too_ambiguous] = [found, too_many].map(|mut found: Vec<(u32, String)>| {
        found.sort();
        found.dedup(); // groups of a grid read the same corpus
        found.into_iter().map(|(_, described)| described).collect::<Vec<_>>()
    });
    let notices = [&job.notices[..], &inputs.notices()].concat();
    drop(inputs);
    let can_be_trained = underivable.is_empty() && too_ambiguous.is_empty();
    let estimate = if can_be_trained && !args.no_estimate {
        Some(estimate(&job.with_likely_grammars(), &folder)?)
    } else {
        None
    };
    let report = Report { settings: job.to_toml(), notices, underivable, too_ambiguous, estimate };
    if args.json {
        streams::show_json(&report)?;
    } else {
        report.notices.iter().for_each(|notice| tell(&format!("notice: {notice}")));
        streams::show(&text(&report))?;
    }
    Ok(if can_be_trained { Answer::Yes } else { Answer::No })
}

/// Rounds after the first that are measured.
const ROUNDS: usize = 2;

fn estimate(job: &Job, folder: &tempfile::TempDir) -> Result<Estimate> {
    let mut short = job.of_rounds(1 + ROUNDS);
    short.output.dir = folder.path().to_owned();
    let begun = clock::instant();
    let (_, measured) = measure(&short, &[[1, 1]], 1.0)?;
    let Measured { first_seconds, work_seconds, rounds, .. } = measured;
    let in_rounds = first_seconds + work_seconds * rounds as f64;
    let preparing = (begun.elapsed().as_secs_f64() - in_rounds).max(0.0);
    let n_rounds = job.points.iter().map(|point| point.inference.max_rounds).max();
    let n_rounds = n_rounds.unwrap_or(job.inference.max_rounds);
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let work = preparing + first_seconds + work_seconds * n_rounds.saturating_sub(1) as f64;
    Ok(Estimate {
        cores,
        rounds: n_rounds,
        preparing_cpu_seconds: preparing,
        round_cpu_seconds: work_seconds,
        seconds: work / cores as f64,
        peak_bytes: memory::peak(std::process::id()),
    })
}

fn text(report: &Report) -> String {
    let mut lines = vec![report.settings.trim_end().to_owned(), String::new()];
    let kinds = [
        ("the grammar cannot derive", &report.underivable),
        ("too many derivations for a forest have", &report.too_ambiguous),
    ];
    for (kind, sentences) in kinds.into_iter().filter(|(_, sentences)| !sentences.is_empty()) {
        let n = match sentences.len() {
            1 => "1 sentence".to_owned(),
            n => format!("{n} sentences"),
        };
        lines.push(format!("{kind} {n}:"));
        lines.extend(sentences.iter().map(|sentence| format!("  {sentence}")));
    }
    if let Some(estimate) = &report.estimate {
        let Estimate { cores, rounds, preparing_cpu_seconds, round_cpu_seconds, seconds, peak_bytes } =
            estimate;
        let seconds = Duration::from_secs_f64(*seconds).as_secs_f64();
        let time = match seconds {
            s if s < 0.1 => "less than 0.1 s".to_owned(),
            s => format!("about {}", duration(s)),
        };
        let round = match *round_cpu_seconds {
            s if s < 0.001 => "less than 0.001".to_owned(),
            s => format!("{s:.3}"),
        };
        lines.push("every sentence has a derivation".to_owned());
        lines.push(format!(
            "estimate: {time} on {cores} cores for preparing ({preparing_cpu_seconds:.1} CPU-s) and at most {rounds} rounds \
             ({round} CPU-s each, all runs together); decoding comes on top"
        ));
        let memory = peak_bytes.map(|size| format!("memory: about {}", bytes(size)));
        lines.extend(memory);
    }
    lines.push(String::new());
    lines.join("\n")
}
