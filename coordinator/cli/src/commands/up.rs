//! `grammaton up`: submits a job to a cluster's scheduler, and follows it.
//!
//! The batch script is `deploy/slurm/grammaton.sbatch`, which this program contains, so that a cluster needs the two programs alone.

use std::ffi::OsStr;
use std::fs;
use std::io::{Read as _, Seek as _, SeekFrom};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use anyhow::{Context as _, Result, bail, ensure};
use basics::streams::{self, tell};
use training::job::Job;

use super::Answer;

/// Schedulers.
#[derive(clap::Subcommand, Debug)]
pub enum Args {
    /// Submit a batch job to Slurm, and follow its log until it ends
    Slurm(Box<Slurm>),
}

/// Arguments of `up slurm`.
#[derive(clap::Args, Debug)]
#[command(
    after_help = "A job that Slurm requeues resumes from its newest checkpoint; so does the same command, given again. Ctrl-C stops following the log, not the job.\n\n\
    Examples:\n\
    \x20 grammaton up slurm job.toml -n 16 --out results\n\
    \x20 grammaton up slurm job.toml -n 64 -c 4 --sbatch=--partition=long --sbatch=--time=2-0"
)]
pub struct Slurm {
    /// The job file
    pub job: PathBuf,
    /// Number of tasks, all of which compute
    #[arg(help_heading = "Workers", short = 'n', long, value_name = "N", default_value_t = 4, value_parser = clap::value_parser!(u32).range(1..))]
    pub ntasks: u32,
    /// Number of cores of each task
    #[arg(help_heading = "Workers", short = 'c', long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..))]
    pub cpus_per_task: u32,
    /// Folder for the results, instead of the job's output.dir; all nodes share it
    #[arg(help_heading = "Output", long, value_name = "DIR")]
    pub out: Option<PathBuf>,
    /// Replace the files of an earlier run in the folder
    #[arg(help_heading = "Output", long)]
    pub overwrite: bool,
    /// Set a value of the job, as in --set inference.seed=2; repeatable, the last one wins
    #[arg(long, value_name = "KEY=VALUE")]
    pub set: Vec<String>,
    /// Folder of certificates, as made by deploy/certs.sh, for mutual TLS between the tasks
    #[arg(help_heading = "Security", long, value_name = "DIR")]
    pub certs: Option<PathBuf>,
    /// Option for sbatch, as in --sbatch=--partition=long; repeatable
    #[arg(help_heading = "Workers", long, value_name = "OPTION", allow_hyphen_values = true)]
    pub sbatch: Vec<String>,
    /// Write the batch script, and print the command that submits it instead of running it
    #[arg(help_heading = "Output", long, conflicts_with = "detach")]
    pub print: bool,
    /// Print the job's number and end, instead of following the log
    #[arg(help_heading = "Output", long)]
    pub detach: bool,
}

/// Submits the job and follows it.
pub fn run(args: &Args) -> Result<Answer> {
    let Args::Slurm(args) = args;
    // A job file that cannot be trained is refused before it waits in a queue.
    let job = Job::load(&args.job, &args.set)?;
    let out = args.out.as_ref().unwrap_or(&job.output.dir);
    let launch = out.join(".launch");
    fs::create_dir_all(&launch).with_context(|| format!("{}: cannot be created", launch.display()))?;
    let full =
        |path: &Path| fs::canonicalize(path).with_context(|| format!("{}: cannot be read", path.display()));
    let (job_file, out, launch) = (full(&args.job)?, full(out)?, full(&launch)?);
    let script = launch.join("grammaton.sbatch");
    fs::write(&script, SCRIPT).with_context(|| format!("{}: cannot be written", script.display()))?;
    let log = launch.join("slurm.log");
    let followed_from = fs::metadata(&log).map_or(0, |log| log.len());

    let mut sbatch = Command::new("sbatch");
    sbatch.args(["--parsable", "--ntasks", &args.ntasks.to_string()]);
    sbatch.args(["--cpus-per-task", &args.cpus_per_task.to_string()]).arg("--output").arg(&log);
    sbatch.args(&args.sbatch).arg(&script).arg(&job_file).arg(&out);
    for set in &args.set {
        sbatch.args(["--set", set]);
    }
    if args.overwrite {
        sbatch.arg("--overwrite");
    }
    if let Some(certs) = &args.certs {
        sbatch.env("GRAMMATON_CERTS", full(certs)?);
    }
    if args.print {
        streams::print(&format!("{}\n", shell_line(&sbatch)))?;
        return Ok(Answer::Yes);
    }
    // The tasks run this program, wherever it is.
    let program = std::env::current_exe().context("the path of this program is unknown")?;
    let path = std::env::var_os("PATH").unwrap_or_default();
    let folders = program.parent().map(Path::to_path_buf).into_iter().chain(std::env::split_paths(&path));
    sbatch.env("PATH", std::env::join_paths(folders).context("PATH cannot hold the folder of this program")?);
    let submitted = sbatch.output().map_err(|error| match error.kind() {
        std::io::ErrorKind::NotFound => {
            anyhow::anyhow!(
                "sbatch is not in PATH: run this on a machine from which Slurm jobs are submitted"
            )
        }
        _ => anyhow::anyhow!("sbatch: {error}"),
    })?;
    let answer = String::from_utf8_lossy(&submitted.stderr).trim().to_owned();
    ensure!(submitted.status.success(), "sbatch refuses the job: {answer}");
    let printed = String::from_utf8_lossy(&submitted.stdout).trim().to_owned();
    let id = printed.split(';').next().unwrap_or_default().to_owned(); // NUMBER[;CLUSTER]
    ensure!(!id.is_empty(), "sbatch printed no job number: {answer}");
    if args.detach {
        streams::print(&format!("{id}\n"))?;
        return Ok(Answer::Yes);
    }
    tell(&format!(
        "job {id} is submitted; its log is {}. Ctrl-C stops following it, `scancel {id}` stops the job",
        log.display()
    ));
    let code = follow(&id, &log, followed_from)?;
    ensure!(code == 0, "Slurm job {id} ended with exit code {code}; its log is {}", log.display());
    streams::print(&format!("{}\n", out.join("report.html").display()))?;
    Ok(Answer::Yes)
}

/// A command as a line for a shell.
fn shell_line(command: &Command) -> String {
    let quoted = |word: &OsStr| {
        let word = word.to_string_lossy();
        let is_plain = |letter: char| letter.is_ascii_alphanumeric() || "-_./=:,+@%".contains(letter);
        if !word.is_empty() && word.chars().all(is_plain) {
            word.into_owned()
        } else {
            format!("'{}'", word.replace('\'', "'\\''"))
        }
    };
    let variables = command
        .get_envs()
        .filter_map(|(name, value)| Some(format!("{}={}", name.to_string_lossy(), quoted(value?))));
    let words = std::iter::once(command.get_program()).chain(command.get_args()).map(quoted);
    variables.chain(words).collect::<Vec<_>>().join(" ")
}

const SCRIPT: &str = include_str!("../../../../deploy/slurm/grammaton.sbatch");
const POLL: Duration = Duration::from_millis(500);
/// Polls of the log for each question to Slurm, whose controller serves many users.
const POLLS_PER_QUESTION: u32 = 10;

/// Prints the log from byte `from` on until the job ends; returns its exit code.
fn follow(id: &str, log: &Path, mut from: u64) -> Result<i32> {
    loop {
        let state = state(id)?;
        for _ in 0..if state.ended.is_some() { 1 } else { POLLS_PER_QUESTION } {
            from += print_from(log, from)?;
            std::thread::sleep(POLL);
        }
        if let Some(code) = state.ended {
            print_from(log, from)?;
            return Ok(code);
        }
    }
}

/// Copies the log from byte `from` on to standard error; returns the number of bytes.
fn print_from(log: &Path, from: u64) -> Result<u64> {
    let read = || -> std::io::Result<Vec<u8>> {
        let mut file = fs::File::open(log)?;
        file.seek(SeekFrom::Start(from))?;
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes)?;
        Ok(bytes)
    };
    match read() {
        // Only whole lines, so that no character is cut.
        Ok(bytes) => match bytes.iter().rposition(|byte| *byte == b'\n') {
            Some(end) => {
                tell(&String::from_utf8_lossy(&bytes[..end]));
                Ok(end as u64 + 1)
            }
            None => Ok(0),
        },
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(0), // the job has not begun
        Err(error) => Err(error).with_context(|| format!("{}: cannot be read", log.display())),
    }
}

#[derive(PartialEq, Eq, Debug)]
struct State {
    /// The exit code of a job that has ended.
    ended: Option<i32>,
}

/// Asks Slurm for the state of a job.
fn state(id: &str) -> Result<State> {
    let output = Command::new("scontrol")
        .args(["show", "job", "--oneliner", id])
        .stdin(Stdio::null())
        .output()
        .context("scontrol cannot be started")?;
    if !output.status.success() {
        bail!(
            "Slurm does not know the state of job {id}: {}; the job may go on",
            String::from_utf8_lossy(&output.stderr).trim()
        );
    }
    Ok(parse_state(&String::from_utf8_lossy(&output.stdout)))
}

/// The state in the output of `scontrol show job --oneliner`: fields as in `JobState=RUNNING`, `ExitCode=STATUS:SIGNAL`.
fn parse_state(text: &str) -> State {
    let field = |name: &str| {
        text.split_whitespace()
            .find_map(|field| field.strip_prefix(name)?.strip_prefix('='))
            .unwrap_or_default()
    };
    let going_on =
        ["PENDING", "RUNNING", "COMPLETING", "CONFIGURING", "REQUEUED", "REQUEUE_HOLD", "SUSPENDED"];
    if going_on.contains(&field("JobState")) {
        return State { ended: None };
    }
    let (status, signal) = field("ExitCode").split_once(':').unwrap_or_default();
    let code = match (status.parse().unwrap_or(0), signal.parse().unwrap_or(0), field("JobState")) {
        (0, 0, "COMPLETED") => 0,
        (0, 0, _) => 1, // cancelled, or out of time
        (0, signal, _) => 128 + signal,
        (status, ..) => status,
    };
    State { ended: Some(code) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_exit_code_comes_from_slurm() {
        let ended = |text: &str| parse_state(text).ended;
        assert_eq!(ended("JobId=7 JobState=RUNNING ExitCode=0:0"), None);
        assert_eq!(ended("JobId=7 JobState=PENDING ExitCode=0:0"), None);
        assert_eq!(ended("JobId=7 JobState=COMPLETED ExitCode=0:0"), Some(0));
        assert_eq!(ended("JobId=7 JobState=FAILED ExitCode=2:0"), Some(2));
        assert_eq!(ended("JobId=7 JobState=CANCELLED ExitCode=0:15"), Some(143));
        assert_eq!(ended("JobId=7 JobState=TIMEOUT ExitCode=0:0"), Some(1));
    }

    #[test]
    fn a_printed_command_is_one_for_a_shell() {
        let mut command = Command::new("sbatch");
        command.args(["--ntasks", "4", "--set", "a=[1, 'b']", ""]).env("GRAMMATON_CERTS", "/my certs");
        assert_eq!(
            shell_line(&command),
            "GRAMMATON_CERTS='/my certs' sbatch --ntasks 4 --set 'a=[1, '\\''b'\\'']' ''"
        );
    }

    #[test]
    fn the_log_is_printed_in_whole_lines() {
        let dir = tempfile::tempdir().unwrap();
        let log = dir.path().join("log");
        assert_eq!(print_from(&log, 0).unwrap(), 0, "before the job begins");
        fs::write(&log, "one\ntw").unwrap();
        assert_eq!(print_from(&log, 0).unwrap(), 4);
        assert_eq!(print_from(&log, 4).unwrap(), 0);
        fs::write(&log, "one\ntwo\n").unwrap();
        assert_eq!(print_from(&log, 4).unwrap(), 4);
    }
}
