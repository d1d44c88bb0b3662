//! `grammaton submit`: submits a job file with its input files to a service, and prints its id.

use std::path::PathBuf;

use anyhow::{Result, bail};
use basics::streams;
use client::connection::runtime;
use client::logs;
use client::submit::{Wishes, send, with_places};
use proto::v1;
use training::job::Job;

use super::Answer;
use super::remote::Reach;

/// Arguments of `submit`.
#[derive(clap::Args, Debug)]
#[command(
    after_help = "Prints the job's id. With --wait, exit code 0 means that the job is done, 1 that it was cancelled, 2 that it failed.\n\n\
    Examples:\n\
    \x20 grammaton submit job.toml --coordinator http://127.0.0.1:7600 --wait\n\
    \x20 grammaton submit job.toml --set inference.seed=2 --priority 20 --name second"
)]
pub struct Args {
    /// The job file
    pub job: PathBuf,
    /// Set a value of the job, as in --set inference.seed=2; repeatable, the last one wins
    #[arg(long, value_name = "KEY=VALUE")]
    pub set: Vec<String>,
    /// Name of the job [default: the name of the job file or its folder]
    #[arg(long)]
    pub name: Option<String>,
    /// Share of the workers relative to your other jobs, 1 to 100; of your queued jobs the one with the highest priority begins first [default: 10]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=100))]
    pub priority: Option<u32>,
    /// Maximum number of workers that compute for the job at the same time
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub max_workers: Option<u32>,
    /// Unique key; submitting again with the same key returns the same job
    #[arg(long, value_name = "KEY")]
    pub idempotency_key: Option<String>,
    /// Show the log of the job and wait for its end
    #[arg(help_heading = "Output", long)]
    pub wait: bool,
    /// Print the job as JSON
    #[arg(help_heading = "Output", long)]
    pub json: bool,
    /// The service
    #[command(flatten)]
    pub reach: Reach,
}

/// Runs the command.
pub fn run(args: &Args) -> Result<Answer> {
    let job = Job::load(&args.job, &args.set)?;
    job.notices.iter().for_each(|notice| streams::tell(&format!("notice: {notice}")));
    let wishes = Wishes {
        name: args.name.clone(),
        priority: args.priority,
        max_workers: args.max_workers,
        idempotency_key: args.idempotency_key.clone(),
    };
    let way = args.reach.way(None)?;
    let runtime = runtime()?;
    let (info, files) = runtime.block_on(send(&way, job, &args.job, wishes))?;
    let print = |info: &v1::JobInfo| {
        if args.json { streams::show_json(info) } else { streams::show(&info.id.to_string()) }
    };
    if !args.wait {
        print(&info)?;
        return Ok(Answer::Yes);
    }
    streams::tell(&format!("job {}", info.id));
    let info = runtime.block_on(logs::follow(&way, info.id, true, &mut |line| {
        streams::tell(&with_places(&line.text, &files));
        Ok(())
    }))?;
    match &info.state[..] {
        "failed" => bail!("{}", with_places(&info.error, &files)),
        state => {
            print(&info)?;
            Ok(if state == "done" { Answer::Yes } else { Answer::No })
        }
    }
}
