//! `grammaton train`: trains a model from a job file.

use std::net::{SocketAddr, ToSocketAddrs as _};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use basics::clock::FOREVER;
use basics::streams;
use fleet::access::Access;
use fleet::{FleetConfig, Listen, MEMORY};
use proto::log::Form;
use proto::tls::{IdentityFiles, ServerTls};
use proto::token::Token;
use service::status::posting::Posting;
use service::status::{self, RunStatus};
use service::web::probes::Http;
use tracing::{info, info_span};
use training::events::{All, Observer as _, RunEvent};
use training::job::Job;
use training::progress::{Progress, Style};
use training::run::{Earlier, Run};
use training::train::group::Inputs;
use training::train::stopped::{Resumable, Stopped};

use super::Answer;
use crate::signals::{Signal, Stopper};

/// Arguments of `train`.
#[derive(clap::Args, Debug)]
#[command(after_help = "Examples:\n\
    \x20 grammaton train job.toml\n\
    \x20 grammaton train job.toml --out results --set inference.seed=2 --resume\n\
    \x20 grammaton train job.toml --set inference.alpha=1e-5,1e-3\n\
    \x20 grammaton train job.toml --listen 0.0.0.0:7600 --token-file token --min-workers 2")]
pub struct Args {
    /// The job, and its output
    #[command(flatten)]
    pub job: JobOptions,
    /// Options of the fleet
    #[command(flatten)]
    pub fleet: FleetOptions,
}

/// The job to train and its output, common to `train` and `run`.
#[derive(clap::Args, Clone, Debug)]
pub struct JobOptions {
    /// The job file
    #[arg(value_name = "JOB")]
    pub file: PathBuf,
    /// Folder for the results, instead of the job's output.dir
    #[arg(help_heading = "Output", long, value_name = "DIR")]
    pub out: Option<PathBuf>,
    /// Resume from the newest checkpoint, if there is one; a finished job stays as it is
    #[arg(long, conflicts_with = "overwrite")]
    pub resume: bool,
    /// Replace the files of an earlier run in the folder
    #[arg(help_heading = "Output", long)]
    pub overwrite: bool,
    /// Set a value of the job, as in --set inference.seed=2; repeatable, the last one wins
    #[arg(long, value_name = "KEY=VALUE")]
    pub set: Vec<String>,
    /// Show no progress
    #[arg(help_heading = "Output", long, short, conflicts_with = "json")]
    pub quiet: bool,
    /// Show progress as one JSON object per line on standard output
    #[arg(help_heading = "Output", long)]
    pub json: bool,
}

impl JobOptions {
    /// Reads the job file, with what the options change in it.
    pub fn load(&self) -> Result<Job> {
        let mut job = Job::load(&self.file, &self.set)?;
        if let Some(dir) = &self.out {
            ensure!(!dir.as_os_str().is_empty(), "--out must be the path of a folder, found an empty one");
            job.output.dir = dir.clone();
        }
        Ok(job)
    }
}

/// Options of the fleet.
#[derive(clap::Args, Clone, PartialEq, Debug, Default)]
pub struct FleetOptions {
    /// Number of compute threads in this process [default: all cores, or 0 with --listen]
    #[arg(help_heading = "Workers", long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    pub workers: Option<u16>,
    /// Mebibytes of memory for forests in this process; other forests go to files in the output folder. Answers that wait to be added take
    /// as much again, at most 512 [default: 3072]
    #[arg(help_heading = "Workers", long, value_name = "MIB")]
    pub memory: Option<u32>,
    /// Address to which workers connect, as in 127.0.0.1:7600 or 0.0.0.0:7600
    #[arg(help_heading = "Workers", long, value_name = "ADDR", value_parser = address)]
    pub listen: Option<SocketAddr>,
    /// File to which the URL for workers is written once this process listens
    #[arg(help_heading = "Workers", long, value_name = "FILE", requires = "listen")]
    pub address_file: Option<PathBuf>,
    /// Number of workers that must be connected before training begins [default: 1]
    #[arg(help_heading = "Workers", long, value_name = "N", requires = "listen", value_parser = clap::value_parser!(u32).range(1..))]
    pub min_workers: Option<u32>,
    /// Maximum number of workers; others are refused [default: 4096]
    #[arg(help_heading = "Workers", long, value_name = "N", requires = "listen", value_parser = clap::value_parser!(u32).range(1..))]
    pub max_workers: Option<u32>,
    /// Seconds to wait for a worker after all are gone, before giving up [default: 30]
    #[arg(help_heading = "Workers", long, value_name = "SECONDS", requires = "listen", value_parser = seconds)]
    pub no_workers_grace: Option<Duration>,
    /// Heartbeat timeout in seconds, after which the tasks of a worker are assigned to others [default: 15]
    #[arg(help_heading = "Workers", long, value_name = "SECONDS", requires = "listen", value_parser = heartbeat_timeout)]
    pub dead_after: Option<Duration>,
    /// Seconds after which a worker that computes a single task counts as stuck [default: 1800]
    #[arg(help_heading = "Workers", long, value_name = "SECONDS", value_parser = seconds)]
    pub lease_deadline: Option<Duration>,
    /// Share of the tasks, 0 to 1, that two workers compute, to detect faulty machines [default: 0]
    #[arg(help_heading = "Workers", long, value_name = "SHARE", requires = "listen", value_parser = share)]
    pub audit: Option<f64>,
    /// File with the token that workers must show [default: the variable GRAMMATON_TOKEN]
    #[arg(help_heading = "Security", long, value_name = "FILE", requires = "listen")]
    pub token_file: Option<PathBuf>,
    /// Address of the HTTP port: /metrics for Prometheus, /health for probes, and with `serve` pages for browsers
    #[arg(help_heading = "Output", long, value_name = "ADDR", value_parser = address)]
    pub http: Option<SocketAddr>,
    /// Certificate (PEM) to show to workers, which then connect with https://
    #[arg(help_heading = "Security", long, value_name = "FILE", requires_all = ["listen", "key"])]
    pub cert: Option<PathBuf>,
    /// Private key (PEM) of --cert
    #[arg(help_heading = "Security", long, value_name = "FILE", requires = "cert")]
    pub key: Option<PathBuf>,
    /// Certificate (PEM) of the authority that must have signed the workers' certificates; without it, workers need no certificate
    #[arg(help_heading = "Security", long, value_name = "FILE", requires = "cert")]
    pub ca: Option<PathBuf>,
    /// Allow connections without token or TLS on any address
    #[arg(help_heading = "Security", long, requires = "listen", conflicts_with = "token_file")]
    pub insecure: bool,
}

impl FleetOptions {
    /// Memory for forests in bytes.
    pub fn memory(&self) -> usize {
        self.memory.map_or(MEMORY, |mebibytes| (mebibytes as usize) << 20)
    }

    /// Writes the URL of `address` for workers to --address-file, if there is one.
    pub fn announce(&self, address: SocketAddr) -> Result<()> {
        let Some(file) = &self.address_file else { return Ok(()) };
        let scheme = if self.cert.is_some() { "https" } else { "http" };
        let port = address.port();
        let url = match address.ip() {
            // All addresses of this host.
            ip if ip.is_unspecified() => {
                let host = rustix::system::uname();
                format!("{scheme}://{}:{port}\n", host.nodename().to_string_lossy())
            }
            _ => format!("{scheme}://{address}\n"),
        };
        let refused = || format!("{}: cannot write the address", file.display());
        let folder = file.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(".".as_ref());
        let readable = std::fs::Permissions::from_mode(0o644);
        let temporary =
            tempfile::Builder::new().permissions(readable).tempfile_in(folder).with_context(refused)?;
        std::fs::write(&temporary, url).with_context(refused)?;
        temporary.persist(file).with_context(refused)?;
        Ok(())
    }

    /// Settings of the fleet.
    pub fn config(&self) -> Result<FleetConfig> {
        let defaults = FleetConfig::default();
        let local_workers = match (self.workers, self.listen) {
            (Some(workers), _) => workers.into(),
            (None, Some(_)) => 0,
            (None, None) => defaults.local_workers,
        };
        let wants_token = self.listen.is_some() && !self.insecure;
        let token = if wants_token { Token::find(self.token_file.as_deref())? } else { None };
        let identity = match (&self.cert, &self.key) {
            (Some(certificate), Some(key)) => Some(IdentityFiles { certificate, key }),
            _ => None,
        };
        let tls = identity.map(|identity| ServerTls::read(identity, self.ca.as_deref())).transpose()?;
        let access = token.map_or(Access::Open, Access::One);
        let insecure = self.insecure;
        let listen = self.listen.map(|address| Listen { access, tls, insecure, ..Listen::at(address) });
        // All threads of this process together are one member.
        let min_members = match self.min_workers {
            Some(remote) => remote as usize + usize::from(local_workers > 0),
            None => defaults.min_members,
        };
        let max_members = match self.max_workers {
            Some(remote) => remote as usize + usize::from(local_workers > 0),
            None => defaults.max_members,
        };
        let dead_after = self.dead_after.unwrap_or(defaults.dead_after);
        Ok(FleetConfig {
            local_workers,
            listen,
            min_members,
            max_members,
            no_workers_grace: self.no_workers_grace.unwrap_or(defaults.no_workers_grace),
            suspect_after: (dead_after / 3).max(2 * proto::HEARTBEAT_INTERVAL),
            dead_after,
            lease_deadline: self.lease_deadline.unwrap_or(defaults.lease_deadline),
            audit: self.audit.unwrap_or(defaults.audit),
            room: FleetConfig::room_beside(self.memory()),
            ..defaults
        })
    }
}

/// Parses a number of seconds.
pub fn seconds(text: &str) -> Result<Duration, String> {
    let found = text.parse().ok().and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
    let found = found.filter(|seconds| !seconds.is_zero() && *seconds <= FOREVER);
    found.ok_or_else(|| "expected a number of seconds, more than 0 and at most a year of them".to_owned())
}

fn heartbeat_timeout(text: &str) -> Result<Duration, String> {
    let least = 3 * proto::HEARTBEAT_INTERVAL;
    let found = seconds(text)?;
    if found < least {
        let heartbeat = proto::HEARTBEAT_INTERVAL;
        return Err(format!("workers send a heartbeat every {heartbeat:?}; give at least {least:?}"));
    }
    Ok(found)
}

pub(super) fn share(text: &str) -> Result<f64, String> {
    let found = text.parse().ok().filter(|share| (0.0..=1.0).contains(share));
    found.ok_or_else(|| "expected a number from 0 to 1, as in 0.05".to_owned())
}

/// Parses an address with its port.
pub fn address(text: &str) -> Result<SocketAddr, String> {
    let mut found =
        text.to_socket_addrs().map_err(|error| format!("{error}; write it as in 127.0.0.1:7600"))?;
    found.next().ok_or_else(|| "no address of that name; write it as in 127.0.0.1:7600".to_owned())
}

/// Runs the command; JSON logs include progress.
pub fn run(args: &Args, log: Form) -> Result<Answer> {
    let options = &args.job;
    let job = options.load()?;
    let style = Style::choose(options.quiet || log == Form::Json && !options.json, options.json);
    let earlier = match (options.resume, options.overwrite) {
        (true, _) => Earlier::Resume,
        (false, true) => Earlier::Overwrite,
        (false, false) => Earlier::Refuse,
    };
    match train_job(&job, &options.file, earlier, style, &args.fleet)? {
        End::Stopped(signal) => return Ok(Answer::Stopped(signal)),
        End::Finished if matches!(style, Style::Bar | Style::Lines) => {
            streams::print(&format!("{}\n", job.output.dir.join("report.html").display()))?;
        }
        End::Finished | End::Earlier => {}
    }
    Ok(Answer::Yes)
}

/// How training ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum End {
    /// Finished with a result in the output folder.
    Finished,
    /// The folder had the result already.
    Earlier,
    /// Stopped by a signal, and reported as stopped.
    Stopped(Signal),
}

/// Trains `job`, which was read from the file `job_file`, and writes its results.
pub fn train_job(
    job: &Job,
    job_file: &Path,
    earlier: Earlier,
    style: Style,
    options: &FleetOptions,
) -> Result<End> {
    train_with(job, job_file, earlier, Progress::new(style), options)
}

/// [`train_job`] with this progress.
pub fn train_with(
    job: &Job,
    job_file: &Path,
    earlier: Earlier,
    mut progress: Progress,
    options: &FleetOptions,
) -> Result<End> {
    let resume = earlier == Earlier::Resume;
    let name = job.output.dir.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let _span = info_span!("train", job = name.clone()).entered();
    let run_status = RunStatus::default();
    let run = Run::open(job, job_file, earlier)?;
    if resume && run.is_finished()? {
        progress.on(&RunEvent::Notice(format!("{}: already finished", run.folder().display())))?;
        return Ok(End::Earlier);
    }
    let stopper = Stopper::start(match run.checkpoint() {
        Some(checkpoint) => {
            format!("stopped before training resumed from {checkpoint}; resume with --resume")
        }
        None => Stopped { round: 0, kept: Resumable::Nothing }.to_string(),
    })?;
    if resume && run.checkpoint().is_none() {
        let place = job.output.checkpoints();
        let notice = format!("no checkpoint in {place}; starting from the beginning");
        progress.on(&RunEvent::Notice(notice.clone()))?;
    }
    let inputs = Inputs::load(job)?;
    let mut config = options.config()?;
    if let Some(listen) = &mut config.listen {
        listen.services = status::service::services(run_status.clone(), listen.access.clone());
    }
    let own = run.start_fleet(config, options.memory())?;
    let fleet = own.fleet();
    if let Some(address) = fleet.address() {
        info!(%address, "listening");
        progress.listening(address);
        options.announce(address)?;
    }
    let http =
        options.http.map(|address| Http::start(address, run_status.clone(), fleet.watcher())).transpose()?;
    if let Some(http) = &http {
        info!(address = %http.address(), "serving metrics");
        progress.serving(http.address(), &format!("metrics at http://{}/metrics", http.address()));
    }
    stopper.train_on(fleet.handle());
    let mut posting = Posting::new(name, run_status);
    let observers = &mut All(vec![&mut posting, &mut progress]);
    match (run.complete(inputs, own, observers), stopper.signal()) {
        (Err(error), Some(signal)) if error.is::<Stopped>() => {
            observers.on(&RunEvent::Stopped(error.to_string()))?;
            Ok(End::Stopped(signal))
        }
        (completed, _) => completed.map(|_| End::Finished),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_cores_work_unless_others_are_asked_for() {
        let listen = Some(([127, 0, 0, 1], 0).into());
        let config = |options: FleetOptions| options.config().unwrap();
        assert!(config(FleetOptions::default()).local_workers >= 1);
        assert_eq!(config(FleetOptions { workers: Some(3), ..Default::default() }).local_workers, 3);
        let remote = config(FleetOptions { listen, min_workers: Some(2), ..Default::default() });
        assert_eq!((remote.local_workers, remote.min_members), (0, 2));
        let both =
            config(FleetOptions { listen, workers: Some(1), min_workers: Some(2), ..Default::default() });
        assert_eq!((both.local_workers, both.min_members), (1, 3));
    }

    #[test]
    fn the_suspect_timeout_follows_from_the_dead_timeout() {
        let config = |dead_after| {
            let options = FleetOptions { dead_after, max_workers: Some(2), ..Default::default() };
            options.config().unwrap()
        };
        let seconds = Duration::from_secs;
        assert_eq!(config(None).suspect_after, FleetConfig::default().suspect_after);
        assert_eq!(config(Some(seconds(60))).suspect_after, seconds(20));
        assert_eq!(config(Some(seconds(3))).suspect_after, seconds(2));
        assert_eq!(config(None).max_members, 3, "this process is one of them");
        assert!(heartbeat_timeout("3").is_ok() && heartbeat_timeout("2.9").is_err());
        assert_eq!(super::seconds("0.5"), Ok(Duration::from_millis(500)));
        for wrong in ["0", "-1", "NaN", "inf", "1e300", "soon"] {
            assert!(super::seconds(wrong).is_err(), "{wrong}");
        }
        assert!(share("0").is_ok() && share("1").is_ok());
        for wrong in ["-0.1", "1.1", "NaN", "all"] {
            assert!(share(wrong).is_err(), "{wrong}");
        }
    }
}
