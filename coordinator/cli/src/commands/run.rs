//! `grammaton run`: the same command in every task of a cluster's job.
//!
//! Task 0 coordinates and computes. The other tasks read its address and token from the output folder, which all tasks share, and become
//! workers. The files of a launch are in `OUT/.launch/LAUNCH`, so that no task joins another launch of the same job:
//!
//! ```text
//! token      secret of the fleet, of this launch only
//! address    URL of task 0, once it listens
//! exit-code  exit code of task 0, once it has ended
//! ```

use std::fs;
use std::io::Write as _;
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use basics::clock;
use fleet::access;
use proto::log::Form;

use super::Answer;
use super::train::{self, FleetOptions, JobOptions, seconds};

/// Arguments of `run`.
#[derive(clap::Args, Debug)]
#[command(
    after_help = "The first example starts 16 tasks in a Slurm allocation. The second one is for other launchers, with another number in each task. \
    The output folder must be on a file system that all tasks share.\n\n\
    Examples:\n\
    \x20 srun -n 16 grammaton run job.toml --out results\n\
    \x20 grammaton run job.toml --out results --launch a1 --task 0"
)]
pub struct Args {
    /// The job, and its output
    #[command(flatten)]
    pub job: JobOptions,
    /// Number of compute threads in each task [default: SLURM_CPUS_PER_TASK, or all cores without Slurm]
    #[arg(help_heading = "Workers", long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    pub threads: Option<u16>,
    /// Mebibytes of memory in each task: for forests in task 0, elsewhere for shards (a quarter) and forests [default: 3072 and 4096]
    #[arg(help_heading = "Workers", long, value_name = "MIB")]
    pub memory: Option<u32>,
    /// Number of tasks besides task 0 that must have joined before training begins [default: 0]
    #[arg(help_heading = "Workers", long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub min_workers: Option<u32>,
    /// Address on which task 0 listens
    #[arg(help_heading = "Workers", long, value_name = "ADDR", default_value = "0.0.0.0:0", value_parser = train::address)]
    pub listen: std::net::SocketAddr,
    /// Folder of certificates, as made by deploy/certs.sh: coordinator.pem, worker.pem, their keys, and ca.pem
    #[arg(help_heading = "Security", long, value_name = "DIR")]
    pub certs: Option<PathBuf>,
    /// Number of this task, from 0 [default: from Slurm or PMIx]
    #[arg(help_heading = "Workers", long, value_name = "N", requires = "launch")]
    pub task: Option<u32>,
    /// Name that the tasks of this launch share and no other launch has [default: from Slurm or PMIx]
    #[arg(help_heading = "Workers", long, value_name = "NAME", requires = "task")]
    pub launch: Option<String>,
    /// Seconds to wait until task 0 listens
    #[arg(help_heading = "Workers", long, value_name = "SECONDS", default_value = "300", value_parser = seconds)]
    pub wait: Duration,
}

/// The place of this process in a launch.
#[derive(PartialEq, Eq, Debug)]
struct LaunchTask {
    task: u32,
    /// Name of a folder, different for each launch.
    launch: String,
    /// Threads that the scheduler gives to the task, if it says so.
    threads: Option<u16>,
}

impl LaunchTask {
    /// The place from `variable`s of the environment; `None` for a process that nothing has launched.
    fn find(variable: impl Fn(&str) -> Option<String>) -> Result<Option<LaunchTask>> {
        let number = |name: &str| -> Result<Option<u32>> {
            let Some(text) = variable(name) else { return Ok(None) };
            let found = text.parse().with_context(|| format!("{name}={text}: expected a number"))?;
            Ok(Some(found))
        };
        if let (Some(task), Some(job)) = (number("SLURM_PROCID")?, variable("SLURM_JOB_ID")) {
            let restart = number("SLURM_RESTART_COUNT")?.unwrap_or(0);
            let step = variable("SLURM_STEP_ID").unwrap_or_else(|| "batch".to_owned());
            let threads = number("SLURM_CPUS_PER_TASK")?.unwrap_or(1).clamp(1, u16::MAX.into());
            let launch = folder_name(&format!("slurm-{job}.{restart}.{step}"));
            return Ok(Some(LaunchTask { task, launch, threads: Some(threads as u16) }));
        }
        if let (Some(task), Some(namespace)) = (number("PMIX_RANK")?, variable("PMIX_NAMESPACE")) {
            return Ok(Some(LaunchTask {
                task,
                launch: folder_name(&format!("pmix-{namespace}")),
                threads: None,
            }));
        }
        Ok(None)
    }
}

/// `name` with a dash for every character that is special in paths.
fn folder_name(name: &str) -> String {
    let plain = |letter: char| letter.is_ascii_alphanumeric() || matches!(letter, '-' | '_' | '.');
    let name: String = name.chars().map(|letter| if plain(letter) { letter } else { '-' }).collect();
    name.trim_start_matches('.').to_owned()
}

/// Runs the task of this process.
pub fn run(args: &Args, log: Form) -> Result<Answer> {
    let place = match (args.task, &args.launch) {
        (Some(task), Some(launch)) if !folder_name(launch).is_empty() => {
            Some(LaunchTask { task, launch: folder_name(launch), threads: None })
        }
        (_, Some(launch)) => bail!("--launch {launch:?}: expected a name of letters and digits"),
        _ => LaunchTask::find(|name| std::env::var(name).ok())?,
    };
    let out = args.job.load()?.output.dir;
    match place {
        None => train::run(&training(args, FleetOptions { memory: args.memory, ..threads(args, None) }), log),
        Some(place) if place.task == 0 => coordinate(args, &place, &out, log),
        Some(place) => work(args, &place, &out, log),
    }
}

fn threads(args: &Args, place: Option<&LaunchTask>) -> FleetOptions {
    FleetOptions { workers: args.threads.or(place.and_then(|place| place.threads)), ..Default::default() }
}

fn training(args: &Args, fleet: FleetOptions) -> train::Args {
    train::Args { job: args.job.clone(), fleet }
}

/// Task 0: trains, with threads of its own and the workers that join.
fn coordinate(args: &Args, place: &LaunchTask, out: &Path, log: Form) -> Result<Answer> {
    let folder = launch_folder(out, place);
    let refused = || format!("{}: cannot write the files of this launch", folder.display());
    fs::DirBuilder::new().recursive(true).mode(0o700).create(&folder).with_context(refused)?;
    let token = folder.join("token");
    let secret = access::secret().context("the operating system gives no random bytes")?;
    fs::OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(true)
        .mode(0o600)
        .open(&token)
        .and_then(|mut file| file.write_all(secret.as_bytes()))
        .with_context(refused)?;
    let address = folder.join("address");
    let exit_code = folder.join("exit-code");
    let _ = fs::remove_file(&exit_code);
    let cores = std::thread::available_parallelism().map_or(1, |cores| cores.get().min(u16::MAX.into()));
    let of_task = threads(args, Some(place));
    let certificate = |name: &str| args.certs.as_ref().map(|certs| certs.join(name));
    let fleet = FleetOptions {
        workers: of_task.workers.or(Some(cores as u16)),
        memory: args.memory,
        listen: Some(args.listen),
        address_file: Some(address.clone()),
        min_workers: args.min_workers,
        token_file: Some(token.clone()),
        cert: certificate("coordinator.pem"),
        key: certificate("coordinator.key"),
        ca: certificate("ca.pem"),
        ..Default::default()
    };
    let answer = train::run(&training(args, fleet), log);
    for file in [&address, &token] {
        let _ = fs::remove_file(file);
    }
    let code = match &answer {
        Ok(Answer::Yes) => 0,
        Ok(Answer::No) => 1,
        Ok(Answer::Stopped(signal)) => signal.exit_code(),
        Err(_) => 2,
    };
    fs::write(&exit_code, format!("{code}\n")).with_context(refused)?;
    answer
}

/// Any other task: becomes a worker of task 0 once that listens.
fn work(args: &Args, place: &LaunchTask, out: &Path, log: Form) -> Result<Answer> {
    let folder = launch_folder(out, place);
    let begun = clock::instant();
    let url = loop {
        if let Ok(url) = fs::read_to_string(folder.join("address")) {
            break url;
        }
        // Task 0 may end without listening, for example if the job is finished already; it says why.
        if folder.join("exit-code").exists() {
            return Ok(Answer::Yes);
        }
        if begun.elapsed() > args.wait {
            bail!(
                "task {}: no address of task 0 in {} after {} s; is the output folder on a file system that all tasks share?",
                place.task,
                folder.display(),
                args.wait.as_secs()
            );
        }
        std::thread::sleep(Duration::from_millis(200));
    };
    let mut worker = Command::new(std::env::current_exe().context("the path of this program is unknown")?);
    worker.args(["worker", "--coordinator", url.trim(), "--give-up-after", "60", "--log", &log.to_string()]);
    worker.arg("--token-file").arg(folder.join("token"));
    if let Some(threads) = threads(args, Some(place)).workers {
        worker.args(["--threads", &threads.to_string()]);
    }
    if let Some(memory) = args.memory {
        worker.args(["--memory", &memory.to_string()]);
    }
    if let Some(certs) = &args.certs {
        for (option, file) in [("--cert", "worker.pem"), ("--key", "worker.key"), ("--ca", "ca.pem")] {
            worker.arg(option).arg(certs.join(file));
        }
    }
    let error = worker.exec(); // returns only if it fails
    Err(error).with_context(|| format!("{}: cannot be started", worker.get_program().display()))
}

fn launch_folder(out: &Path, place: &LaunchTask) -> PathBuf {
    out.join(".launch").join(&place.launch)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(variables: &[(&str, &str)]) -> Result<Option<LaunchTask>> {
        LaunchTask::find(|name| {
            variables.iter().find(|variable| variable.0 == name).map(|variable| variable.1.to_owned())
        })
    }

    #[test]
    fn the_place_comes_from_the_launcher() {
        let place =
            |task, launch: &str, threads| Some(LaunchTask { task, launch: launch.to_owned(), threads });
        assert_eq!(found(&[]).unwrap(), None);
        let slurm = [("SLURM_PROCID", "3"), ("SLURM_JOB_ID", "12"), ("SLURM_STEP_ID", "0")];
        assert_eq!(found(&slurm).unwrap(), place(3, "slurm-12.0.0", Some(1)));
        let requeued = [&slurm[..], &[("SLURM_RESTART_COUNT", "2"), ("SLURM_CPUS_PER_TASK", "8")]].concat();
        assert_eq!(found(&requeued).unwrap(), place(3, "slurm-12.2.0", Some(8)));
        let pmix = [("PMIX_RANK", "1"), ("PMIX_NAMESPACE", "prterun-a/b@1")];
        assert_eq!(found(&pmix).unwrap(), place(1, "pmix-prterun-a-b-1", None));
        assert!(found(&[("SLURM_PROCID", "x"), ("SLURM_JOB_ID", "12")]).is_err());
    }

    #[test]
    fn the_folder_of_a_launch_is_below_the_output_folder() {
        for name in ["../../etc", "a/b", "..", "/"] {
            assert!(!folder_name(name).contains('/') && !folder_name(name).starts_with('.'), "{name}");
        }
    }
}
