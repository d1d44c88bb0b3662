//! `grammaton serve`: runs a service until it is stopped.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use basics::clock::FOREVER;
use basics::store::is_url;
use fleet::access::{Access, Tokens};
use fleet::{Fleet, FleetConfig, engine_with};
use proto::log::Form;
use proto::tls::{IdentityFiles, https};
use service::expulsions;
use service::job_process::Processes;
use service::job_process::limits::{half_of_memory, raise_open_files};
use service::job_store::JobStore;
use service::leader_lease::Timeouts;
use service::rpc::JobsService;
use service::shares::Room;
use service::status::{self, RunStatus};
use service::web::Bound;
use service::{DAY, Limits, Service};
use tracing::info;
use training::progress::{Progress, Style};
use training::train::spill;

use super::Answer;
use super::train::FleetOptions;
use crate::signals::Signals;

/// Time limit for running jobs to stop when the service ends.
const FAREWELL: Duration = Duration::from_secs(5);

/// Arguments of `serve`.
#[derive(clap::Args, Debug)]
#[command(
    after_help = "If the service is stopped or killed and started again with the same --store, each job resumes.\n\n\
    Examples:\n\
    \x20 grammaton serve --store jobs --listen 127.0.0.1:7600 --http 127.0.0.1:9600\n\
    \x20 grammaton serve --store s3://models/service --cache cache --listen 0.0.0.0:7600 --tokens tokens"
)]
pub struct Args {
    /// Folder or object store URL, as in s3://models/service, for jobs, their files and their results
    #[arg(long, value_name = "DIR|URL")]
    pub store: String,
    /// Folder for running jobs and uploads, with an object store; its loss is harmless
    #[arg(long, value_name = "DIR")]
    pub cache: Option<PathBuf>,
    /// File of tokens with their roles, written by `grammaton token`; without it, the one token has all roles
    #[arg(help_heading = "Security", long, value_name = "FILE", conflicts_with_all = ["token_file", "insecure"])]
    pub tokens: Option<PathBuf>,
    /// Maximum number of running jobs; others are queued
    #[arg(help_heading = "Limits", long, value_name = "N", default_value_t = 16, value_parser = clap::value_parser!(u16).range(1..=1000))]
    pub running: u16,
    /// Largest factor by which the priority of jobs weighs between users; 1: not at all
    #[arg(help_heading = "Limits", long, value_name = "N", default_value_t = 2, value_parser = clap::value_parser!(u32).range(1..=10))]
    pub priority_bound: u32,
    /// Maximum number of queued and running jobs; others are refused
    #[arg(help_heading = "Limits", long, value_name = "N", default_value_t = 10_000)]
    pub max_jobs: usize,
    /// Maximum number of queued and running jobs of each user [default: half of --max-jobs with --tokens, else all]
    #[arg(help_heading = "Limits", long, value_name = "N")]
    pub max_user_jobs: Option<usize>,
    /// Delete jobs with their results N days after their end [default: never]
    #[arg(help_heading = "Limits", long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=36_500))]
    pub keep_days: Option<u32>,
    /// Maximum size of an uploaded file in mebibytes
    #[arg(help_heading = "Limits", long, value_name = "MIB", default_value_t = 65_536)]
    pub max_upload: u32,
    /// Maximum size of all files that a user uploads within a day, in mebibytes [default: no limit]
    #[arg(help_heading = "Limits", long, value_name = "MIB")]
    pub max_daily_upload: Option<u32>,
    /// Memory that each job may take beside its workers, in mebibytes [default: half of the machine's]
    #[arg(help_heading = "Limits", long, value_name = "MIB", value_parser = clap::value_parser!(u32).range(64..))]
    pub job_memory: Option<u32>,
    /// Folder in an object store, or object, that jobs may read, as in s3://corpora/public; repeatable
    #[arg(help_heading = "Security", long, value_name = "URL")]
    pub allow_url: Vec<String>,
    /// The workers
    #[command(flatten)]
    pub fleet: FleetOptions,
    /// Print nothing
    #[arg(help_heading = "Output", long, short, conflicts_with = "json")]
    pub quiet: bool,
    /// Print the addresses it listens on as one JSON object per line on standard output
    #[arg(help_heading = "Output", long)]
    pub json: bool,
}

/// Serves until a signal asks it to stop.
pub fn run(args: &Args, log: Form) -> Result<Answer> {
    raise_open_files();
    let mut config = args.fleet.config()?;
    let Some(listen) = &mut config.listen else {
        bail!("no address to listen on; give one, as in --listen 127.0.0.1:7600");
    };
    if let Some(tokens) = &args.tokens {
        listen.access = Access::Roles(Tokens::read(tokens)?);
    }
    let runtime = JobsService::runtime().context("cannot start a runtime")?;
    let jobs = JobsService::new(listen.access.clone(), runtime.handle().clone());
    let status = status::service::services(RunStatus::default(), listen.access.clone());
    let with_jobs = jobs.clone();
    listen.services = Arc::new(move |watcher| with_jobs.add_to(status(watcher)));
    let access = listen.access.clone();
    if args.fleet.no_workers_grace.is_none() {
        config.no_workers_grace = FOREVER; // jobs wait
    }
    let mut progress = Progress::new(Style::choose(args.quiet || log == Form::Json && !args.json, args.json));
    let (folder, url) = places(args)?;
    let job_store = JobStore::open(folder, url.map(|url| (url, Timeouts::default())))?;
    spill::sweep(folder);
    let forests = spill::folder_in(folder).ok();
    let compute = engine_with(args.fleet.memory(), forests.as_ref().map(|forests| forests.path()));
    let page = args.fleet.http.map(|address| Bound::at(address, &access, args.fleet.insecure)).transpose()?;
    let tls = match (&args.fleet.cert, &args.fleet.key) {
        (Some(certificate), Some(key)) => Some(https(IdentityFiles { certificate, key })?),
        _ => None,
    };
    // Signals are handled from the moment at which the service can be reached.
    let mut signals = runtime.block_on(async { Signals::listen() })?;
    let local_workers = config.local_workers;
    let expulsions = expulsions::open(job_store.open_place()?)?;
    let fleet = Fleet::start(FleetConfig { compute, expulsions, ..config })?;
    let address = fleet.address().context("a fleet that listens has an address")?;
    let memory = args.job_memory.map_or_else(half_of_memory, |mebibytes| u64::from(mebibytes) << 20);
    let limits = Limits {
        room: Room { n: args.running.into(), priority_bound: args.priority_bound },
        jobs: args.max_jobs,
        user_jobs: args.max_user_jobs.unwrap_or(if args.tokens.is_some() {
            args.max_jobs.div_ceil(2)
        } else {
            args.max_jobs
        }),
        upload: u64::from(args.max_upload) << 20,
        daily_upload: args.max_daily_upload.map_or(u64::MAX, |mebibytes| u64::from(mebibytes) << 20),
        urls: args.allow_url.clone(),
        keep: args.keep_days.map(|days| DAY * days),
        processes: Processes::of_this_program(memory, log),
    };
    let service = Service::start(job_store, fleet, local_workers, limits)?;
    jobs.open(service.clone());
    info!(%address, "listening");
    progress.listening(address);
    args.fleet.announce(address)?;
    let _page = match page {
        Some(page) => {
            let (address, scheme) = (page.address(), if tls.is_some() { "https" } else { "http" });
            let page = page.serve(service.clone(), access, tls)?;
            info!(%address, "serving pages");
            progress.serving(address, &format!("page at {scheme}://{address}/"));
            Some(page)
        }
        None => None,
    };
    let ousted = runtime.block_on(async {
        tokio::select! {
            _ = signals.next() => None,
            ousted = service.ousted() => Some(ousted),
        }
    });
    info!("stopping");
    service.close(FAREWELL);
    runtime.shutdown_background();
    ousted.map_or(Ok(Answer::Yes), |reason| bail!(reason))
}

/// The working folder, and the object store, if there is one.
fn places(args: &Args) -> Result<(&Path, Option<&str>)> {
    match (&args.cache, is_url(&args.store)) {
        (None, false) => Ok((Path::new(&args.store), None)),
        (Some(cache), true) => Ok((cache, Some(&args.store))),
        (None, true) => bail!(
            "{}: with an object store the service needs a folder to work in; give one with --cache DIR",
            args.store
        ),
        (Some(_), false) => bail!("{}: a folder needs no --cache; leave it out", args.store),
    }
}
