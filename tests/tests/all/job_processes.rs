//! The processes of jobs of a service, killed and too large. Law: what ends the process of a job ends no other job and not the service, and
//! a process ends with its service.
#![cfg(target_os = "linux")]

use std::cell::Cell;
use std::fs;
use std::process::Command;

use grammaton_tests::eventually;
use grammaton_tests::folder::{Folder, Trained, examples};
use grammaton_tests::serving::{Serving, job_processes};

fn folder() -> Folder {
    let corpus = fs::read_to_string(examples().join("segmentation/corpus.txt")).unwrap();
    let corpus: String = corpus.split_inclusive('\n').take(300).collect();
    let job = "[model]\ngrammar = \"auto:unigram\"\n[corpus]\npath = \"corpus.txt\"\n\
               [inference]\ntruncation = 300\nmax_rounds = 600\ntolerance = 0\n\
               [output]\ncheckpoint_seconds = 0\nscore_every = 0\n";
    Folder::new(&[("job.toml", job), ("corpus.txt", &corpus)])
}

/// The process of a job, once it has begun to write results and is not `former`.
fn process_of(service: &Serving, job: &str, former: u32) -> u32 {
    let found = Cell::new(None);
    let find = || job_processes(service.id()).into_iter().find(|(id, of)| of == job && *id != former);
    eventually(&|| service.log(), || {
        found.set(find().map(|(id, _)| id));
        found.get().is_some()
    });
    found.get().expect("it was found")
}

/// How soon the system ends a process when there is no memory left.
fn oom_score(process: u32) -> i32 {
    let text = fs::read_to_string(format!("/proc/{process}/oom_score_adj")).unwrap();
    text.trim().parse().unwrap()
}

fn kill(process: u32) {
    assert!(Command::new("kill").args(["-KILL", &process.to_string()]).status().unwrap().success());
}

fn is_in(service: &Serving, folder: &Folder, id: &str, state: &str) {
    eventually(&|| service.log(), || service.job(folder, id)["state"] == state);
}

#[test]
#[ignore = "slow"]
fn a_process_that_is_killed_is_started_again_and_changes_no_bit() {
    let folder = folder();
    let service = Serving::start(&folder, &["--workers", "1"]);
    let [first, second] =
        ["first", "second"].map(|name| service.grammaton(&folder, &["submit", "job.toml", "--name", name]));
    // More kills than a job survives without a checkpoint in between.
    let checkpoint = || service.job(&folder, &first)["progress"]["checkpoint"]["round"].as_u64();
    let mut process = 0;
    let mut advanced_to = None;
    for kills in 1..=4 {
        eventually(&|| service.log(), || checkpoint() > advanced_to);
        advanced_to = checkpoint();
        process = process_of(&service, &first, process);
        assert!(oom_score(process) > oom_score(service.id()), "the service is ended sooner than its jobs");
        kill(process);
        let log = || service.grammaton(&folder, &["logs", &first]);
        let state = || format!("{}\n{}\n{}", service.log(), log(), service.job(&folder, &first));
        eventually(&state, || log().matches("starting again").count() == kills);
        assert!(log().contains("signal 9") && log().contains("--job-memory"), "{}", log());
    }
    is_in(&service, &folder, &first, "done");
    is_in(&service, &folder, &second, "done");
    folder.grammaton(&["train", "job.toml", "--quiet", "--out", "alone"]);
    let digest = Trained::read(&folder.path("alone")).digest().to_owned();
    for id in [first, second] {
        assert_eq!(service.job(&folder, &id)["parameters_sha256"], digest);
    }
}

#[test]
fn a_job_whose_process_is_lost_three_times_without_a_checkpoint_fails_and_can_be_resumed() {
    let folder = folder();
    let job = fs::read_to_string(folder.path("job.toml")).unwrap();
    fs::write(folder.path("job.toml"), job.replace("checkpoint_seconds = 0", "checkpoint_seconds = 3600"))
        .unwrap();
    // Without workers it waits before its first checkpoint.
    let service = Serving::start(&folder, &[]);
    let id = service.grammaton(&folder, &["submit", "job.toml"]);
    let mut process = 0;
    for _ in 0..3 {
        process = process_of(&service, &id, process);
        kill(process);
    }
    is_in(&service, &folder, &id, "failed");
    assert!(service.job(&folder, &id)["error"].to_string().contains("signal 9"));
    service.grammaton(&folder, &["resume", &id]);
    process_of(&service, &id, process);
    service.grammaton(&folder, &["cancel", &id]);
    is_in(&service, &folder, &id, "cancelled");
    assert!(job_processes(service.id()).is_empty());
}

#[test]
#[ignore = "slow"]
fn job_processes_end_with_a_killed_service_and_jobs_resume() {
    let folder = folder();
    let mut service = Serving::start(&folder, &["--workers", "1"]);
    let id = service.grammaton(&folder, &["submit", "job.toml"]);
    let process = process_of(&service, &id, 0);
    service.kill();
    let is_gone = || {
        let stat = fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
        stat.is_empty() || stat.contains(") Z ")
    };
    eventually(&String::new, is_gone);
    service.begin();
    is_in(&service, &folder, &id, "done");
    let (code, log) = service.stop();
    assert_eq!(code, Some(0), "{log}");
}

#[test]
#[ignore = "slow"]
fn a_corpus_beyond_the_memory_of_a_job_is_refused_and_others_are_served() {
    let folder = folder();
    let service = Serving::start(&folder, &["--workers", "1", "--job-memory", "64"]);
    let sentence = (0..200).map(|n| format!("w{n}")).collect::<Vec<_>>().join(" ");
    let large: String = (0..15_000).map(|n| format!("x{n} {sentence}\n")).collect();
    fs::write(folder.path("large.txt"), large).unwrap();
    let job = fs::read_to_string(folder.path("job.toml")).unwrap().replace("corpus.txt", "large.txt");
    fs::write(folder.path("large.toml"), job).unwrap();
    let refused = service.run(&folder, &["submit", "large.toml"]);
    assert_eq!(refused.code, 2, "{}", refused.log);
    assert!(refused.log.contains("--job-memory"), "{}", refused.log);
    assert_eq!(refused.log.lines().count(), 1, "{}", refused.log);
    let id = service.grammaton(&folder, &["submit", "job.toml"]);
    is_in(&service, &folder, &id, "done");
    assert!(job_processes(service.id()).is_empty());
}
