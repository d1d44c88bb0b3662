//! `grammaton train`: job file in, output folder out.

use std::net::{SocketAddr, ToSocketAddrs as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Result, bail, ensure};
use proto::log::Form;
use proto::tls::{IdentityFiles, ServerTls};
use proto::token::Token;
use tracing::{info, info_span, warn};

use super::Answer;
use crate::checkpoint::Checkpoints;
use crate::fleet::scheduler::Cause;
use crate::fleet::{Fleet, FleetConfig, FleetStatus, Listen, MEMORY, Map, ROOM, engine_with};
use crate::job::Job;
use crate::metrics::{Observer, Phase, RoundMetrics, Start, Summary};
use crate::outcome::{Crew, Outcome};
use crate::output::Output;
use crate::progress::{Progress, Style};
use crate::status::http::Http;
use crate::status::{Board, CheckpointStatus, JobStatus};
use crate::streams;
use crate::train::input::Input;
use crate::train::{shelf, train};

/// Arguments of `train`.
#[derive(clap::Args, Debug)]
pub struct Args {
    /// The job file
    pub job: PathBuf,
    /// Folder for the results, instead of the job's output.dir
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
    /// Go on from the newest checkpoint, if there is one
    #[arg(long)]
    pub resume: bool,
    /// Set a value of the job, as in --set inference.seed=2; may be repeated, the last one wins
    #[arg(long, value_name = "KEY=VALUE")]
    pub set: Vec<String>,
    /// Where the work is done
    #[command(flatten)]
    pub fleet: FleetOptions,
    /// Show no progress
    #[arg(long, short, conflicts_with = "json")]
    pub quiet: bool,
    /// Show progress as one JSON object per line on standard output
    #[arg(long)]
    pub json: bool,
}

/// Where the work is done.
#[derive(clap::Args, Clone, PartialEq, Debug, Default)]
pub struct FleetOptions {
    /// Workers in this process; all cores by default, none with --listen
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    pub workers: Option<u16>,
    /// Mebibytes of forests that workers in this process keep in memory, others go to files in the output folder; 512 at most also
    /// bound answers that wait [default: 4096]
    #[arg(long, value_name = "MIB")]
    pub memory: Option<u32>,
    /// Address to which workers connect, as in 127.0.0.1:7600 or 0.0.0.0:7600
    #[arg(long, value_name = "ADDR", value_parser = address)]
    pub listen: Option<SocketAddr>,
    /// Workers that must have connected before training begins [default: 1]
    #[arg(long, value_name = "N", requires = "listen", value_parser = clap::value_parser!(u32).range(1..))]
    pub min_workers: Option<u32>,
    /// Workers beyond which others are refused [default: 4096]
    #[arg(long, value_name = "N", requires = "listen", value_parser = clap::value_parser!(u32).range(1..))]
    pub max_workers: Option<u32>,
    /// How long to wait for a worker once all are gone, before giving up [default: 30]
    #[arg(long, value_name = "SECONDS", requires = "listen", value_parser = seconds)]
    pub no_workers_grace: Option<Duration>,
    /// Silence after which a worker counts as dead, and its work is given to others [default: 15]
    #[arg(long, value_name = "SECONDS", requires = "listen", value_parser = silence)]
    pub dead_after: Option<Duration>,
    /// How long a worker may compute a single task before it counts as stuck [default: 1800]
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    pub lease_deadline: Option<Duration>,
    /// Share of the work, 0 to 1, that two workers compute, to find machines that compute wrongly [default: 0]
    #[arg(long, value_name = "SHARE", requires = "listen", value_parser = share)]
    pub audit: Option<f64>,
    /// File with the secret that workers must know; without it, the variable GRAMMATON_TOKEN
    #[arg(long, value_name = "FILE", requires = "listen")]
    pub token_file: Option<PathBuf>,
    /// Address of the HTTP port: /metrics for Prometheus, /health for probes
    #[arg(long, value_name = "ADDR", value_parser = address)]
    pub http: Option<SocketAddr>,
    /// Certificate (PEM) to show to workers, which then connect with https://
    #[arg(long, value_name = "FILE", requires_all = ["listen", "key"])]
    pub cert: Option<PathBuf>,
    /// Private key (PEM) of --cert
    #[arg(long, value_name = "FILE", requires = "cert")]
    pub key: Option<PathBuf>,
    /// Certificate (PEM) of the authority that must have signed the workers' certificates; without it, they need none
    #[arg(long, value_name = "FILE", requires = "cert")]
    pub ca: Option<PathBuf>,
    /// Let anyone who reaches the address connect
    #[arg(long, requires = "listen", conflicts_with = "token_file")]
    pub insecure: bool,
}

impl FleetOptions {
    /// Bytes of forests to keep.
    fn memory(&self) -> usize {
        self.memory.map_or(MEMORY, |mebibytes| (mebibytes as usize) << 20)
    }

    /// The fleet that they ask for.
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
        let listen = self.listen.map(|address| Listen { address, token, tls, insecure: self.insecure });
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
            suspect_after: (dead_after / 3).max(2 * proto::BEAT),
            dead_after,
            lease_deadline: self.lease_deadline.unwrap_or(defaults.lease_deadline),
            audit: self.audit.unwrap_or(defaults.audit),
            // Small ones keep a few answers waiting still.
            room: self.memory().clamp(ROOM / 8, ROOM),
            ..defaults
        })
    }
}

fn seconds(text: &str) -> Result<Duration, String> {
    let found = text.parse().ok().and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
    let found = found.filter(|seconds| !seconds.is_zero() && *seconds <= FOREVER);
    found.ok_or_else(|| "expected a number of seconds, more than 0 and at most a year of them".to_owned())
}

/// Longer than any job; times add up without overflow.
const FOREVER: Duration = Duration::from_secs(366 * 24 * 60 * 60);

fn silence(text: &str) -> Result<Duration, String> {
    let least = 3 * proto::BEAT;
    let found = seconds(text)?;
    if found < least {
        let beat = proto::BEAT;
        return Err(format!("a worker gives a sign of life every {beat:?}; allow for {least:?} at least"));
    }
    Ok(found)
}

fn share(text: &str) -> Result<f64, String> {
    let found = text.parse().ok().filter(|share| (0.0..=1.0).contains(share));
    found.ok_or_else(|| "expected a number from 0 to 1, as in 0.05".to_owned())
}

fn address(text: &str) -> Result<SocketAddr, String> {
    let mut found =
        text.to_socket_addrs().map_err(|error| format!("{error}; write it as in 127.0.0.1:7600"))?;
    found.next().ok_or_else(|| "no address of that name; write it as in 127.0.0.1:7600".to_owned())
}

/// Trains; with logs for programs they also tell what progress would show.
pub fn run(args: &Args, log: Form) -> Result<Answer> {
    run_with(args, log, Input::load, train)
}

fn run_with<I>(
    args: &Args,
    log: Form,
    load: impl FnOnce(&Job) -> Result<I>,
    train: impl FnOnce(&Job, &I, &dyn Map, &mut Checkpoints, &mut dyn Observer) -> Result<Outcome>,
) -> Result<Answer> {
    let mut job = Job::load(&args.job, &args.set)?;
    if let Some(dir) = &args.out {
        ensure!(!dir.as_os_str().is_empty(), "--out must be the path of a folder, found an empty one");
        job.output.dir = dir.clone();
    }
    let style = Style::choose(args.quiet || log == Form::Json && !args.json, args.json);
    let name = job.output.dir.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let _span = info_span!("train", job = name.clone()).entered();
    let output = Output::open(&job.output.dir)?;
    let mut checkpoints = Checkpoints::open(&job.output, args.resume)?;
    if let (Some(newest), false) = (checkpoints.newest(), args.resume || output.is_finished()) {
        bail!(
            "{newest}: a checkpoint of a run that is not finished; go on from it with --resume, remove it to start over, \
             or choose another folder with --out DIR"
        );
    }
    let mut recorder = Recorder {
        name,
        job: &job,
        job_file: &args.job,
        output,
        progress: Progress::new(style),
        board: Board::default(),
        rounds: Vec::new(),
    };
    let input = load(&job)?;
    let board = recorder.board.clone();
    let config = FleetConfig { board: board.clone(), ..args.fleet.config()? };
    let local_workers = config.local_workers;
    // Without it, forests beyond the memory are built anew.
    let forests = shelf::folder_in(recorder.output.dir()).ok();
    let compute = engine_with(args.fleet.memory(), forests.as_ref().map(|forests| forests.path()));
    let config = FleetConfig { compute, ..config };
    let fleet = Fleet::start(config)?;
    if let Some(address) = fleet.address() {
        info!(%address, "listening");
        recorder.progress.listening(address);
    }
    let http = args.fleet.http.map(|address| Http::start(address, board, fleet.watcher())).transpose()?;
    if let Some(http) = &http {
        info!(address = %http.address(), "serving metrics");
        recorder.progress.serving(http.address());
    }
    let mut outcome = train(&job, &input, &fleet, &mut checkpoints, &mut recorder)?;
    let crew = crew(local_workers, &fleet.status());
    fleet.shutdown();
    let summary = recorder.output.finish(&job, &recorder.rounds, &mut outcome, &crew)?;
    recorder.finished(&summary);
    if matches!(style, Style::Bar | Style::Lines) {
        let report = recorder.output.dir().join("report.html");
        streams::print(&format!("{}\n", report.display()))?;
    }
    Ok(Answer::Yes)
}

/// Who worked: threads of this process, and remote members that computed something. Whoever left as it should is not lost.
fn crew(local_workers: usize, fleet: &FleetStatus) -> Crew {
    // This process is the first to join its own fleet.
    let local = fleet.members.iter().map(|member| member.id).min().filter(|_| local_workers > 0);
    let remote = fleet.members.iter().filter(|member| Some(member.id) != local && member.tasks_done > 0);
    let lost = fleet.losses.iter().filter(|(kind, _)| **kind != Cause::Left.kind());
    let losses = lost.map(|(kind, &count)| ((*kind).to_owned(), count)).collect();
    Crew { workers: local_workers + remote.count(), losses }
}

/// Shows and keeps what training tells.
struct Recorder<'a> {
    /// That of the output folder.
    name: String,
    job: &'a Job,
    job_file: &'a Path,
    output: Output,
    progress: Progress,
    board: Board,
    rounds: Vec<RoundMetrics>,
}

impl Observer for Recorder<'_> {
    fn started(&mut self, start: &Start) -> Result<()> {
        let name = self.name.clone();
        self.board.update(|status| {
            *status = JobStatus {
                name,
                runs: start.runs,
                max_rounds: start.max_rounds,
                sentences: start.sentences,
                ..JobStatus::default()
            };
        });
        self.progress.started(start)
    }

    fn prepared(&mut self, earlier: &[RoundMetrics]) -> Result<()> {
        self.output.begin(self.job, self.job_file, earlier)?;
        self.rounds = earlier.to_vec();
        self.progress.prepared(earlier)
    }

    fn phase(&mut self, phase: Phase) {
        info!(phase = phase.key(), "phase");
        self.board.update(|status| status.phase = Some(phase));
        self.progress.phase(phase);
    }

    fn round(&mut self, round: &RoundMetrics) -> Result<()> {
        self.output.round(round)?;
        let RoundMetrics { run, round: number, bound, seconds, sentences_per_second, .. } = *round;
        info!(run, round = number, bound, seconds, sentences_per_second, "round");
        self.rounds.push(round.clone());
        self.board.update(|status| {
            (status.run, status.round, status.bound) = (round.run, round.round, round.bound);
            status.sentences_per_second = round.sentences_per_second;
            (status.round_seconds, status.busy_seconds) = (round.seconds, round.busy_seconds);
            // All runs go on together.
            let left = status.max_rounds.saturating_sub(round.round) * status.runs;
            status.seconds_left = Some(left as f64 * round.seconds);
        });
        self.progress.round(round)
    }

    fn checkpoint(&mut self, written: Result<&CheckpointStatus, &anyhow::Error>) {
        match written {
            Ok(CheckpointStatus { run, round, bytes, seconds }) => {
                info!(run, round, bytes, seconds, "checkpoint");
            }
            Err(error) => warn!("no checkpoint: {error:#}; the job goes on without"),
        }
        self.board.update(|status| match written {
            Ok(written) => {
                status.checkpoint = Some(*written);
                status.written_checkpoints += 1;
            }
            Err(_) => status.failed_checkpoints += 1,
        });
        self.progress.checkpoint(written);
    }

    fn notice(&mut self, text: &str) {
        info!(text, "notice");
        self.progress.notice(text);
    }

    fn finished(&mut self, summary: &Summary) {
        let Summary { rounds, converged, bound, parameters_sha256, .. } = summary;
        info!(rounds, converged, bound, parameters_sha256, "finished");
        self.progress.finished(summary);
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::fixture;
    use crate::model::SavedModel;

    fn args(dir: &Path) -> Args {
        let job = dir.join("job.toml");
        fs::write(&job, "[model]\ngrammar = \"auto:unigram\"\n[corpus]\npath = \"corpus.txt\"\n").unwrap();
        Args {
            job,
            out: Some(dir.join("out")),
            set: vec!["inference.seed=7".to_owned()],
            fleet: FleetOptions { workers: Some(2), ..FleetOptions::default() },
            resume: false,
            quiet: true,
            json: false,
        }
    }

    fn nothing(_: &Job) -> Result<()> {
        Ok(())
    }

    #[test]
    fn a_run_leaves_a_whole_folder() {
        let dir = tempfile::tempdir().unwrap();
        let answer = run_with(&args(dir.path()), Form::Text, nothing, |_, (), _, _, observer| {
            fixture::train(observer)
        })
        .unwrap();
        assert_eq!(answer, Answer::Yes);
        let out = dir.path().join("out");
        let read = |name: &str| fs::read_to_string(out.join(name)).unwrap();
        let rounds: Vec<RoundMetrics> =
            read("metrics.jsonl").lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        assert_eq!(rounds.len(), 40);
        assert_eq!(rounds[0].bound, None);
        let summary: Summary = serde_json::from_str(&read("summary.json")).unwrap();
        assert_eq!((summary.rounds, summary.seed, summary.workers), (40, 7, 2));
        assert!(summary.scores["mbr"].token_f1 > summary.scores["viterbi"].token_f1);
        assert!(read("job.toml").contains("seed = 7"));
        for name in ["segmentation.viterbi.txt", "segmentation.mbr.txt", "parses.txt"] {
            assert_eq!(read(name).lines().count(), fixture::GOLD.len(), "{name}");
        }
        let saved = SavedModel::load(&out).unwrap();
        assert_eq!(crate::model::parameters_sha256(&saved.model), summary.parameters_sha256);
        assert!(read("model/sticks.tsv").lines().count() > 20);
        assert!(read("model/grammar.txt").contains("Word"));
        let left: Vec<_> = fs::read_dir(&out).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        assert!(left.iter().all(|name| !name.to_string_lossy().starts_with('.')), "{left:?}");
    }

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
    fn who_is_suspect_follows_from_who_is_dead() {
        let config = |dead_after| {
            let options = FleetOptions { dead_after, max_workers: Some(2), ..Default::default() };
            options.config().unwrap()
        };
        let seconds = Duration::from_secs;
        assert_eq!(config(None).suspect_after, FleetConfig::default().suspect_after);
        assert_eq!(config(Some(seconds(60))).suspect_after, seconds(20));
        assert_eq!(config(Some(seconds(3))).suspect_after, seconds(2));
        assert_eq!(config(None).max_members, 3, "this process is one of them");
        assert!(silence("3").is_ok() && silence("2.9").is_err());
        assert_eq!(super::seconds("0.5"), Ok(Duration::from_millis(500)));
        for wrong in ["0", "-1", "NaN", "inf", "1e300", "soon"] {
            assert!(super::seconds(wrong).is_err(), "{wrong}");
        }
        assert!(share("0").is_ok() && share("1").is_ok());
        for wrong in ["-0.1", "1.1", "NaN", "all"] {
            assert!(share(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_failed_run_keeps_the_old_result_until_it_is_prepared() {
        let dir = tempfile::tempdir().unwrap();
        run_with(&args(dir.path()), Form::Text, nothing, |_, (), _, _, observer| fixture::train(observer))
            .unwrap();
        let summary = dir.path().join("out/summary.json");
        run_with(&args(dir.path()), Form::Text, nothing, |_, (), _, _, observer| {
            observer.started(&Start::default())?;
            anyhow::bail!("no derivation")
        })
        .unwrap_err();
        assert!(summary.exists());
        run_with(&args(dir.path()), Form::Text, nothing, |_, (), _, _, observer| {
            observer.prepared(&[])?;
            anyhow::bail!("interrupted")
        })
        .unwrap_err();
        assert!(!summary.exists() && !dir.path().join("out/report.html").exists());
    }

    #[test]
    fn job_file_in_the_output_folder_stays_as_it_is() {
        let dir = tempfile::tempdir().unwrap();
        let args = Args { out: Some(dir.path().to_owned()), ..args(dir.path()) };
        let before = fs::read(&args.job).unwrap();
        run_with(&args, Form::Text, nothing, |_, (), _, _, observer| fixture::train(observer)).unwrap();
        assert_eq!(fs::read(&args.job).unwrap(), before);
        assert!(dir.path().join("summary.json").exists());
    }

    #[test]
    fn report_shows_the_run_and_escapes_its_symbols() {
        let dir = tempfile::tempdir().unwrap();
        run_with(&args(dir.path()), Form::Text, nothing, |_, (), _, _, observer| fixture::train(observer))
            .unwrap();
        let page = fs::read_to_string(dir.path().join("out/report.html")).unwrap();
        for expected in
            ["corpus.txt", "token F1, mbr", "<svg class=\"chart\"", "<svg class=\"tree\"", "h&amp;t", "&lt;"]
        {
            assert!(page.contains(expected), "{expected}");
        }
        for unwanted in ["h&t", "NaN", "<script", "http://", "https://"] {
            assert!(!page.contains(unwanted), "{unwanted}");
        }
    }
}
