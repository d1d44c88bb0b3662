//! Laws of launches: all tasks of `grammaton run` train together, whichever are killed, with the bits of one process; no task joins
//! another launch; and `grammaton up slurm` ends as the job does. Slurm's commands are scripts here; `deploy/slurm/test.sh` has the
//! real ones.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::process::Command;

use grammaton_tests::folder::{Folder, Trained, examples};
use grammaton_tests::{Process, eventually};

const ROUNDS: usize = 40;

fn folder() -> Folder {
    let corpus = fs::read_to_string(examples().join("segmentation/corpus.txt")).unwrap();
    let corpus: String = corpus.split_inclusive('\n').take(600).collect();
    let job = format!(
        "[model]\ngrammar = \"auto:colloc\"\n[corpus]\npath = \"corpus.txt\"\n\
        [inference]\ntruncation = 300\nmax_rounds = {ROUNDS}\ntolerance = 0\n[output]\nscore_every = 5\n"
    );
    Folder::new(&[("job.toml", &job), ("corpus.txt", &corpus)])
}

/// Command of a task of a launch on this host.
fn task(folder: &Folder, launch: &str, number: u32, more: &[&str]) -> Command {
    let number = number.to_string();
    let args = [
        "run",
        "job.toml",
        "--quiet",
        "--threads",
        "1",
        "--listen",
        "127.0.0.1:0",
        "--launch",
        launch,
        "--task",
        &number,
    ];
    let mut command = folder.command(&[&args, more].concat());
    for variable in ["SLURM_PROCID", "SLURM_JOB_ID", "PMIX_RANK"] {
        command.env_remove(variable);
    }
    command
}

#[test]
fn tasks_of_a_launch_train_together() {
    let folder = folder();
    let one = folder.train("one", &[]);
    let out = ["--out", "together"];
    let start =
        |number, more: &[&str]| Process::spawn(&mut task(&folder, "a", number, &[&out[..], more].concat()));
    let mut others = [1, 2].map(|number| start(number, &[]));
    let mut first = start(0, &["--min-workers", "2"]);
    let metrics = || fs::read_to_string(folder.path("together/metrics.jsonl")).unwrap_or_default();
    eventually(&|| first.log(), || metrics().lines().count() >= 2);
    others[0].kill();
    assert_eq!(first.wait().code(), Some(0), "{}", first.log());
    assert_eq!(others[1].wait().code(), Some(0), "{}", others[1].log());
    let together = Trained::read(&folder.path("together"));
    together.check_equals(&one);
    assert_eq!(together.summary["workers"], 3, "task 0 computes too");
    let left: Vec<_> = fs::read_dir(folder.path("together/.launch/a")).unwrap().collect();
    assert_eq!(left.len(), 1, "token and address are gone");
    assert_eq!(folder.read("together/.launch/a/exit-code"), "0\n");

    // Task 0 of a finished job does not listen, and the other tasks end with it.
    let finished = [&out[..], &["--resume"]].concat();
    let mut other = Process::spawn(&mut task(&folder, "b", 1, &finished));
    assert_eq!(Process::spawn(&mut task(&folder, "b", 0, &finished)).wait().code(), Some(0));
    assert_eq!(other.wait().code(), Some(0), "{}", other.log());
}

#[test]
fn a_task_joins_no_other_launch() {
    let folder = folder();
    let mut first = Process::spawn(&mut task(&folder, "a", 0, &["--out", "out", "--min-workers", "1"]));
    eventually(&|| first.log(), || folder.path("out/.launch/a/address").exists());
    let mode = |name: &str| fs::metadata(folder.path(name)).unwrap().permissions().mode() & 0o777;
    assert_eq!((mode("out/.launch/a/token"), mode("out/.launch/a")), (0o600, 0o700));
    let mut stranger = Process::spawn(&mut task(&folder, "b", 1, &["--out", "out", "--wait", "1"]));
    assert_eq!(stranger.wait().code(), Some(2));
    assert!(stranger.log().contains("no address of task 0 in out/.launch/b after 1 s"), "{}", stranger.log());
    first.signal("TERM");
    assert_eq!(first.wait().code(), Some(143), "{}", first.log());
    assert_eq!(folder.read("out/.launch/a/exit-code"), "143\n");
}

/// Scripts with the names of Slurm's commands: `sbatch` starts the batch script, `srun` a process for each task.
fn slurm(folder: &Folder) -> String {
    let bin = folder.path("bin");
    fs::create_dir(&bin).unwrap();
    let scripts = [
        (
            "sbatch",
            "echo \"$@\" >bin/submitted\n\
            while [ \"${1#-}\" != \"$1\" ]; do\n\
              case $1 in --ntasks) export SLURM_NTASKS=$2; shift ;; --output) log=$2; shift ;; --cpus-per-task) shift ;; esac\n\
              shift\n\
            done\n\
            (export SLURM_JOB_ID=7; bash \"$@\" >>\"$log\" 2>&1; echo $? >bin/code) >/dev/null 2>&1 &\n\
            echo 7\n",
        ),
        (
            "srun",
            "while [ \"${1#--}\" != \"$1\" ]; do shift; done\n\
            trap 'kill $(jobs -p)' TERM\n\
            for task in $(seq 0 $((SLURM_NTASKS - 1))); do\n\
              SLURM_PROCID=$task SLURM_STEP_ID=0 \"$@\" --quiet --listen 127.0.0.1:0 &\n\
            done\n\
            wait\n\
            exit 137\n",
        ),
        (
            "scontrol",
            "if ! [ -s bin/code ]; then echo 'JobId=7 JobState=RUNNING ExitCode=0:0'\n\
            elif [ \"$(cat bin/code)\" = 0 ]; then echo 'JobId=7 JobState=COMPLETED ExitCode=0:0'\n\
            else echo \"JobId=7 JobState=FAILED ExitCode=$(cat bin/code):0\"; fi\n",
        ),
    ];
    for (name, script) in scripts {
        fs::write(bin.join(name), format!("#!/usr/bin/env bash\n{script}")).unwrap();
        fs::set_permissions(bin.join(name), fs::Permissions::from_mode(0o755)).unwrap();
    }
    let path = std::env::var("PATH").unwrap();
    format!("{}:{path}", bin.display())
}

#[test]
#[ignore = "slow"]
fn up_slurm_ends_as_the_job_does() {
    let folder = folder();
    let one = folder.train("one", &[]);
    let path = slurm(&folder);
    let up = |more: &[&str]| {
        let args = ["up", "slurm", "job.toml", "-n", "3", "--out", "out", "--sbatch=--time=1"];
        let mut command = folder.command(&[&args, more].concat());
        command.env("PATH", &path);
        let _ = fs::remove_file(folder.path("bin/code"));
        let mut process = Process::spawn(&mut command);
        (process.wait().code(), process.log())
    };
    let (code, log) = up(&[]);
    assert_eq!(code, Some(0), "the exit code is the coordinator's, not srun's 137: {log}");
    Trained::read(&folder.path("out")).check_equals(&one);
    let submitted = folder.read("bin/submitted");
    assert!(submitted.starts_with("--parsable --ntasks 3 --cpus-per-task 1 --output"), "{submitted}");
    assert!(submitted.contains("--time=1"), "{submitted}");

    // A finished job stays as it is, and is replaced only when that is asked for.
    let summary = || fs::metadata(folder.path("out/summary.json")).unwrap().modified().unwrap();
    let before = summary();
    let (code, log) = up(&[]);
    assert!(code == Some(0) && summary() == before, "{log}");
    let (code, log) = up(&["--overwrite", "--set", "inference.max_rounds=3"]);
    assert!(code == Some(0) && summary() != before, "{log}");
    assert_eq!(Trained::read(&folder.path("out")).rounds.len(), 3);

    // An error of the coordinator is in the log that is followed.
    fs::write(folder.path("corpus.txt"), "").unwrap();
    let (code, log) = up(&["--overwrite"]);
    assert_eq!(code, Some(2), "{log}");
    assert!(log.contains("corpus.txt") && log.contains("Slurm job 7 ended with exit code 2"), "{log}");
}

#[test]
fn a_missing_slurm_is_reported() {
    let folder = folder();
    let mut command = folder.command(&["up", "slurm", "job.toml"]);
    command.env("PATH", folder.path("."));
    let mut process = Process::spawn(&mut command);
    assert_eq!(process.wait().code(), Some(2));
    assert!(process.log().contains("sbatch is not in PATH"), "{}", process.log());
}
