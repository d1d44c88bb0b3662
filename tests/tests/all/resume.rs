//! Law: a run that is killed at any moment and resumed ends with the same bits as an undisturbed run.

use std::cell::Cell;
use std::fs;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;

use fleet::{Fleet, FleetConfig, FleetError, Map, MapReport, Stage, Tasks};
use grammaton::work::task::Answer;
use grammaton_tests::cluster::Coordinator;
use grammaton_tests::folder::{Folder, Trained, examples};
use grammaton_tests::{Process, binary, eventually, requirement};
use training::events::{Observer, RunEvent};
use training::job::Job;
use training::metrics::RoundMetrics;
use training::model::parameters_sha256;
use training::train::checkpoint::Checkpoints;
use training::train::group::Inputs;
use training::train::stopped::Stopped;
use training::train::train;

/// Two runs with selection of strings, and a checkpoint after every round.
const JOB: &str = "[model]\ngrammar = \"auto:colloc\"\n[corpus]\npath = \"corpus.txt\"\n\
    [inference]\ntruncation = 300\nmax_rounds = 12\ntolerance = 0\nrestarts = 2\n\
    [output]\ncheckpoint_seconds = 0\nscore_every = 5\n";
const ROUNDS: usize = 24;

fn folder() -> Folder {
    let corpus = fs::read_to_string(examples().join("segmentation/corpus.txt")).unwrap();
    let corpus: String = corpus.split_inclusive('\n').take(600).collect();
    Folder::new(&[("job.toml", JOB), ("corpus.txt", &corpus)])
}

fn undisturbed(folder: &Folder) -> Trained {
    let trained = folder.train("one", &["--set", "output.keep_checkpoints=0"]);
    assert_eq!((trained.rounds.len(), trained.summary["resumed"].as_u64()), (ROUNDS, Some(0)));
    assert!(!folder.path("one/checkpoints").exists());
    trained
}

/// Starts or resumes a run, and kills it when its metrics have `lines` lines, or it has ended.
fn run_to(folder: &Folder, out: &str, lines: usize) {
    let args = ["train", "job.toml", "--quiet", "--workers", "1", "--resume", "--out", out];
    let mut process = Process::spawn(&mut folder.command(&args));
    let written = || fs::read_to_string(folder.path(out).join("metrics.jsonl")).unwrap_or_default();
    eventually(&|| process.log(), || written().lines().count() >= lines);
    process.kill();
}

/// Names of the checkpoints, without temporary files of killed processes.
fn names(path: &Path) -> Vec<String> {
    let entries = fs::read_dir(path).unwrap();
    let names = entries.map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned());
    let mut names: Vec<String> = names.filter(|name| name.ends_with(".ckpt")).collect();
    names.sort();
    names
}

#[test]
fn a_run_killed_repeatedly_ends_with_the_same_bits() {
    let folder = folder();
    let one = undisturbed(&folder);
    for lines in [1, 2, 5, 11, 13, 20, 24] {
        run_to(&folder, "killed", lines);
    }
    let resumed = folder.train("killed", &["--resume"]);
    resumed.check_equals(&one);
    let times = resumed.summary["resumed"].as_u64().unwrap();
    assert!((1..=7).contains(&times), "resumed {times} times");
    assert!(names(&folder.path("killed/checkpoints")).len() <= 3);
}

#[test]
fn a_run_killed_while_it_writes_files_ends_with_the_same_bits() {
    let folder = folder();
    let one = undisturbed(&folder);
    let args = ["train", "job.toml", "--quiet", "--workers", "1", "--resume", "--out", "killed"];
    // The test waits for no round, so kills happen between rounds, during checkpoints, and while metrics are written.
    for millis in (0..12).map(|at| 40 + 37 * at) {
        let mut process = Process::spawn(&mut folder.command(&args));
        std::thread::sleep(std::time::Duration::from_millis(millis));
        process.kill();
    }
    folder.train("killed", &["--resume"]).check_equals(&one);
}

#[test]
fn a_finished_run_resumes_to_the_same_result_and_may_have_more_rounds() {
    let folder = folder();
    let more = ["--set", "inference.restarts=1", "--set", "inference.max_rounds=20"];
    let twenty = folder.train("twenty", &more);
    folder.train("grown", &["--set", "inference.restarts=1"]);
    let summary = folder.read("grown/summary.json");
    let same = ["train", "job.toml", "--out", "grown", "--set", "inference.restarts=1", "--resume"];
    let again = folder.run(&same);
    assert_eq!((again.code, &again.log[..]), (0, "notice: grown: already finished\n"));
    assert_eq!(folder.read("grown/summary.json"), summary);
    let grown = folder.train("grown", &[&more[..], &["--resume"]].concat());
    grown.check_equals(&twenty);
    assert_eq!(grown.summary["resumed"], 1);
    let other = folder.run(&[&same[..], &["--set", "inference.seed=2"]].concat());
    assert!(other.code == 2 && other.log.contains("it is of another job"), "{}", other.log);
}

/// A finished result is replaced only with `--overwrite`, and is complete until then.
#[test]
fn a_finished_result_is_not_overwritten_without_the_option() {
    let folder = folder();
    let one = ["train", "job.toml", "--quiet", "--out", "out", "--set", "inference.max_rounds=1"];
    folder.grammaton(&one);
    let before = Trained::read(&folder.path("out"));
    let refused = folder.run(&one);
    assert_eq!(
        (refused.code, &refused.log[..]),
        (
            2,
            "error: out: the folder has a finished result; replace it with --overwrite, or choose another folder with \
             --out DIR\n"
        )
    );
    Trained::read(&folder.path("out")).check_equals(&before);
    folder.grammaton(&[&one[..], &["--overwrite"]].concat());
    Trained::read(&folder.path("out")).check_equals(&before);
}

/// Starts `grammaton train` with `args` and unlimited rounds, and sends `signal` after round 3; returns its last line and the round after
/// which it stopped.
fn stopped(folder: &Folder, signal: &str, code: i32, args: &[&str]) -> (String, usize) {
    let endless = ["train", "job.toml", "--json", "--workers", "1", "--out", "out", "--set"];
    let args = [&endless[..], &["inference.max_rounds=1000000"], args].concat();
    let (mut process, lines) = Process::spawn_read(&mut folder.command(&args));
    let event = |line: String| serde_json::from_str::<serde_json::Value>(&line).expect("lines are JSON");
    let next = || lines.next().map(event);
    while next().expect("it has no end")["round"].as_u64() < Some(3) {}
    process.signal(signal);
    let mut last = serde_json::Value::Null;
    let mut round = 3;
    while let Some(event) = next() {
        if event["event"] == "round" {
            round = event["round"].as_u64().unwrap() as usize;
        }
        last = event;
    }
    assert_eq!(process.wait().code(), Some(code), "{}", process.log());
    let line = process.log().lines().last().unwrap_or_default().to_owned();
    assert_eq!((&last["event"], &last["text"]), (&"stopped".into(), &line[..].into()));
    assert!(!folder.path("out/summary.json").exists());
    (line, round)
}

/// A run that a signal stops reports the round; resumed, it ends with the bits of an undisturbed run.
#[test]
fn a_run_stopped_by_a_signal_resumes_to_the_same_bits() {
    let folder = folder();
    let settings = ["--set", "inference.restarts=1", "--set", "output.checkpoint_seconds=3600"];
    for (signal, code) in [("INT", 130), ("TERM", 143)] {
        let (line, round) = stopped(&folder, signal, code, &[&settings[..], &["--overwrite"]].concat());
        assert_eq!(line, format!("stopped after round {round}; resume with --resume"));
        assert_eq!(names(&folder.path("out/checkpoints")), ["000001.ckpt"]);
        let rounds = format!("inference.max_rounds={}", round + 2);
        let resumed = folder.run(
            &[&["train", "job.toml", "--resume", "--out", "out", "--set", &rounds], &settings[..]].concat(),
        );
        let message = format!("resumed after round {round} of checkpoint 000001.ckpt\n");
        assert!(resumed.code == 0 && resumed.log.contains(&message), "{}", resumed.log);
        let whole = folder.train("whole", &[&["--overwrite", "--set", &rounds], &settings[..]].concat());
        Trained::read(&folder.path("out")).check_equals(&whole);
    }
}

#[test]
fn a_stopped_run_without_checkpoints_reports_that_nothing_is_kept() {
    let folder = folder();
    let settings = ["--set", "inference.restarts=1", "--set", "output.keep_checkpoints=0"];
    let (line, round) = stopped(&folder, "TERM", 143, &settings);
    assert_eq!(
        line,
        format!("stopped after round {round}; nothing is kept, as output.keep_checkpoints is 0")
    );
}

#[test]
fn a_run_that_waits_for_workers_stops_at_a_signal() {
    let folder = folder();
    let mut coordinator = Coordinator::start(&folder, "out", &["--min-workers", "2"]);
    coordinator.process.signal("INT");
    assert_eq!(coordinator.process.wait().code(), Some(130), "{}", coordinator.process.log());
    assert_eq!(coordinator.process.log(), "stopped before the first round; nothing is kept\n");
    assert!(!folder.path("out/summary.json").exists());
}

#[test]
fn a_run_that_reads_its_corpus_stops_at_a_signal() {
    let folder = folder();
    fs::remove_file(folder.path("corpus.txt")).unwrap();
    let made = Command::new("mkfifo").arg(folder.path("corpus.txt")).status();
    assert!(made.is_ok_and(|status| status.success()), "mkfifo makes a file that is never written");
    let mut process = Process::spawn(&mut folder.command(&["train", "job.toml", "--resume", "--out", "out"]));
    let message = "notice: no checkpoint in out/checkpoints; starting from the beginning\n";
    eventually(&|| process.log(), || process.log() == message);
    process.signal("TERM");
    assert_eq!(process.wait().code(), Some(143), "{}", process.log());
    assert_eq!(process.log(), format!("{message}stopped before the first round; nothing is kept\n"));
}

/// A fleet whose job is cancelled at a call, as by a signal.
struct CancelledAt<'a> {
    fleet: &'a Fleet,
    calls_left: Cell<usize>,
}

impl Map for CancelledAt<'_> {
    fn map(
        &self,
        stage: Stage,
        tasks: Arc<dyn Tasks>,
        each: &mut dyn FnMut(usize, Answer),
    ) -> Result<MapReport, FleetError> {
        self.calls_left.set(self.calls_left.get().checked_sub(1).ok_or(FleetError::Cancelled)?);
        Map::map(self.fleet, stage, tasks, each)
    }
}

/// A job that is cancelled at any call of the fleet (preparing, rounds, measuring, decoding) and resumed ends with the same parameters,
/// scores and metrics.
#[test]
fn a_run_cancelled_at_any_call_of_the_fleet_resumes_to_the_same_bits() {
    let job = "[model]\ngrammar = \"auto:unigram\"\n[corpus]\npath = \"corpus.txt\"\nheld_out_share = 0.2\n\
        [inference]\ntruncation = 30\nmax_rounds = 4\ntolerance = 0\nrestarts = 2\n\
        [output]\nscore_every = 1\ncheckpoint_seconds = 3600\n";
    let corpus = fs::read_to_string(examples().join("segmentation/corpus.txt")).unwrap();
    let corpus: String = corpus.split_inclusive('\n').take(40).collect();
    let folder = Folder::new(&[("job.toml", job), ("corpus.txt", &corpus)]);
    let fleet = Fleet::start(FleetConfig { local_workers: 1, ..FleetConfig::default() }).unwrap();
    let train_on = |out: &str, resume, n_calls| {
        let dir = format!("output.dir={}", folder.path(out).display());
        let job = Job::load(&folder.path("job.toml"), &[dir]).unwrap();
        fs::create_dir_all(folder.path(out)).unwrap();
        let mut checkpoints = Checkpoints::open(&job.output, resume).unwrap();
        let map = CancelledAt { fleet: &fleet, calls_left: Cell::new(n_calls) };
        let mut rounds = Rounds::default();
        let outcome = train(&job, &Inputs::load(&job).unwrap(), &map, &mut checkpoints, &mut rounds);
        (
            outcome.map(|outcome| (parameters_sha256(&outcome.model), outcome.result.scores)),
            rounds.0,
            map.calls_left.get(),
        )
    };
    let (one, rounds, calls_left) = train_on("one", false, 1000);
    let (one, n_calls) = (one.unwrap(), 1000 - calls_left);
    assert!(n_calls > 20 && rounds.len() == 8, "{n_calls} calls");
    for at in 0..n_calls {
        let out = format!("cancelled-{at}");
        let (stopped, ..) = train_on(&out, false, at);
        let stopped = stopped.unwrap_err();
        assert!(stopped.is::<Stopped>(), "call {at}: {stopped}");
        let (resumed, again, _) = train_on(&out, true, 1000);
        assert_eq!(resumed.unwrap(), one, "call {at}: {stopped}");
        assert_eq!(again, rounds, "call {at}: {stopped}");
    }
    fleet.shutdown();
}

/// The rounds of a run, without times.
#[derive(Default)]
struct Rounds(Vec<RoundMetrics>);

impl Observer for Rounds {
    fn on(&mut self, event: &RunEvent) -> anyhow::Result<()> {
        let rounds = match event {
            RunEvent::Prepared { earlier } => &earlier[..],
            RunEvent::RoundFinished(round) => std::slice::from_ref(&**round),
            _ => &[],
        };
        let timeless = |round: &RoundMetrics| RoundMetrics {
            seconds: 0.0,
            busy_seconds: 0.0,
            sentences_per_second: 0.0,
            ..round.clone()
        };
        self.0.extend(rounds.iter().map(timeless));
        Ok(())
    }
}

#[test]
fn an_unfinished_run_is_not_overwritten_without_the_option() {
    let folder = folder();
    run_to(&folder, "out", 3);
    let before = names(&folder.path("out/checkpoints"));
    assert!(!before.is_empty());
    let refused = folder.run(&["train", "job.toml", "--quiet", "--out", "out"]);
    assert_eq!((refused.code, refused.log.lines().count()), (2, 1), "{}", refused.log);
    assert!(
        refused
            .log
            .contains("a run that is not finished; go on from it with --resume, start over with --overwrite"),
        "{}",
        refused.log
    );
    assert_eq!(names(&folder.path("out/checkpoints")), before);
    assert!(folder.read("out/metrics.jsonl").lines().count() >= 3);
    folder.train("out", &["--resume"]);
}

#[test]
fn a_folder_that_another_run_writes_to_is_refused() {
    let folder = folder();
    // Without workers the first run waits and keeps the folder locked.
    let coordinator = Coordinator::start(&folder, "out", &[]);
    let refused = folder.run(&["train", "job.toml", "--quiet", "--resume", "--out", "out"]);
    assert_eq!((refused.code, refused.log.lines().count()), (2, 1), "{}", refused.log);
    assert!(refused.log.contains("another run writes to this folder"), "{}", refused.log);
    drop(coordinator);
    folder.train("out", &[]);
}

#[test]
fn checkpoints_of_another_job_or_corpus_are_refused() {
    let folder = folder();
    run_to(&folder, "out", 3);
    let refusal = |args: &[&str]| {
        let all = [&["train", "job.toml", "--quiet", "--resume", "--out", "out"], args].concat();
        let printed = folder.run(&all);
        assert_eq!((printed.code, printed.log.lines().count()), (2, 1), "{}", printed.log);
        printed.log
    };
    let other = refusal(&["--set", "inference.seed=5"]);
    assert!(other.contains("another job, in which inference.seed is 1, not 5"), "{other}");
    let corpus = folder.read("corpus.txt");
    fs::write(folder.path("less.txt"), corpus.split_inclusive('\n').take(599).collect::<String>()).unwrap();
    assert!(refusal(&["--set", "corpus.path=less.txt"]).contains("it is of another corpus"));
    assert!(refusal(&["--set", "model.grammar=auto:unigram"]).contains("it is of another grammar"));
    // The same corpus may have moved.
    fs::rename(folder.path("corpus.txt"), folder.path("moved.txt")).unwrap();
    folder.train("out", &["--resume", "--set", "corpus.path=moved.txt"]);
}

#[test]
fn a_damaged_checkpoint_is_skipped() {
    let folder = folder();
    let one = undisturbed(&folder);
    run_to(&folder, "out", 8);
    let checkpoints = folder.path("out/checkpoints");
    let newest = names(&checkpoints).pop().unwrap();
    let mut bytes = fs::read(checkpoints.join(&newest)).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    fs::write(checkpoints.join(&newest), bytes).unwrap();
    let resumed = folder.train("out", &["--resume"]);
    assert_eq!(resumed.digest(), one.digest());
    let notices: Vec<&str> =
        resumed.summary["notices"].as_array().unwrap().iter().filter_map(|notice| notice.as_str()).collect();
    let is_skipped =
        |notice: &&str| notice.contains(&newest) && notice.ends_with("continuing with an older one");
    assert!(notices.iter().any(is_skipped), "{notices:?}");
}

#[test]
fn workers_wait_for_a_killed_coordinator_and_finish_with_the_next() {
    let folder = folder();
    let one = undisturbed(&folder);
    let mut coordinator = Coordinator::start(&folder, "out", &["--min-workers", "2"]);
    let mut workers = ["alice", "bob"].map(|name| coordinator.worker(name));
    let address = coordinator.address();
    for round in [2, 6, 9] {
        coordinator.read_to(round);
        coordinator.process.kill();
        coordinator.process.wait();
        coordinator = Coordinator::start_at(&folder, "out", &address, &["--resume"]);
    }
    let resumed = coordinator.finish(&folder, "out");
    resumed.check_equals(&one);
    assert!(resumed.summary["resumed"].as_u64() >= Some(1), "{}", resumed.summary);
    for worker in &mut workers {
        assert_eq!(worker.wait().code(), Some(0), "{}", worker.log());
    }
}

/// Starts `grammaton train` in a separate mount namespace in which `out/small` has room for one page; `None` if namespaces are not
/// allowed.
fn with_a_full_disk(folder: &Folder, args: &[&str]) -> Option<Process> {
    let allowed = Command::new("unshare").args(["-rm", "mount", "-t", "tmpfs", "tmpfs", "/mnt"]).output();
    if !allowed.is_ok_and(|output| output.status.success()) {
        requirement::missing("namespaces", "user namespaces are not allowed here");
        return None;
    }
    fs::create_dir_all(folder.path("small")).unwrap();
    let script = "mount -t tmpfs -o size=4k tmpfs small && exec \"$0\" \"$@\"";
    let mut command = folder.command(&[]);
    let mut inside = Command::new("unshare");
    inside.args(["-rm", "sh", "-c", script]).arg(binary("grammaton")).args(args);
    inside.current_dir(command.get_current_dir().unwrap());
    command = inside;
    Some(Process::spawn(&mut command))
}

#[test]
fn a_full_disk_at_a_checkpoint_is_reported_and_changes_no_bit() {
    let folder = folder();
    let one = undisturbed(&folder);
    let args = ["train", "job.toml", "--out", "out", "--set", "output.checkpoints=small"];
    let Some(mut process) = with_a_full_disk(&folder, &args) else { return };
    assert_eq!(process.wait().code(), Some(0), "{}", process.log());
    let trained = Trained::read(&folder.path("out"));
    assert_eq!(trained.digest(), one.digest());
    let log = process.log();
    let message = log.lines().filter(|line| line.contains("no checkpoint: small/0000")).count();
    assert_eq!(message, ROUNDS / 2, "both runs go on together: {log}");
    assert!(log.contains("No space left on device"), "{log}");
    let notices = trained.summary["notices"].as_array().unwrap();
    assert!(notices.iter().any(|notice| notice == "12 checkpoints could not be written"), "{notices:?}");
}

#[test]
fn a_full_disk_for_results_ends_the_run_which_can_be_resumed() {
    let folder = folder();
    let one = undisturbed(&folder);
    let args = ["train", "job.toml", "--quiet", "--out", "small", "--set", "output.checkpoints=roomy"];
    let Some(mut process) = with_a_full_disk(&folder, &args) else { return };
    assert_eq!(process.wait().code(), Some(2), "{}", process.log());
    let log = process.log();
    assert!(log.lines().count() == 1 && log.contains("free space or make it writable"), "{log}");
    let resumed = folder.train("out", &["--set", "output.checkpoints=roomy", "--resume"]);
    resumed.check_equals(&one);
    assert_eq!(resumed.summary["resumed"], 1);
}
