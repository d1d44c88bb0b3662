//! Faults in random order, over a service: workers are killed, stopped, cut off, drained, and join; the service is killed, stopped and ended,
//! its disk is full, checkpoints are damaged, processes of jobs are killed; clients are killed and cut off. Meanwhile each client submits,
//! cancels, resumes, reads, downloads, watches and deletes its jobs, and submits again under the same idempotency key.
//!
//! A client records the answers that it got. Laws:
//!
//! 1. A job that was acknowledged is there unless its deletion was asked for, under an id that no other job has, once for each key.
//! 2. A job that was reported as done stays done, and its results have the bits of an undisturbed `train`.
//! 3. A job is cancelled only if that was asked for, and stays cancelled until its resumption is asked for.
//! 4. A job fails only if the disk was full or its process was killed; then it can be resumed.
//! 5. Every request ends. Once the faults are over, every job does.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use grammaton_tests::folder::{Folder, Printed, Trained, examples};
use grammaton_tests::lan::{HEAD, Lan};
use grammaton_tests::serving::job_processes;
use grammaton_tests::{Lines, Process, binary, clock, requirement};
use serde_json::Value;

use super::faults::{Disk, HOSTS, Hosts, Pending, Random, TOKEN, WorkerFault};
use super::variable;
use crate::load::usage;

/// Clients; each has a host after those of the workers.
const CLIENTS: usize = 3;
/// Jobs of a client that may be unfinished, and that may be over.
const MAX_UNFINISHED: usize = 3;
const MAX_OVER: usize = 8;
/// Time after which a request or job that has not ended counts as hanging.
const HANG: Duration = Duration::from_secs(180);
/// Time between two looks at a job.
const LOOK: Duration = Duration::from_millis(300);
/// Size of the service's disk in mebibytes.
const DISK: usize = 256;

/// Jobs of several kinds: name of the file, `[model]`, and further keys of `[inference]`.
const KINDS: [(&str, &str, &str); 4] = [
    ("unigram", "grammar = \"auto:unigram\"", "truncation = 100\nmax_rounds = 60\ntolerance = 0\n"),
    (
        "colloc",
        "grammar = \"auto:colloc\"",
        "truncation = 100\nmax_rounds = 20\ntolerance = 0\nrestarts = 2\n",
    ),
    ("chain", "grammar = \"auto:unigram\"", "method = \"hastings\"\nmax_rounds = 20\nkeep_every = 5\n"),
    ("long", "grammar = \"auto:unigram\"", "truncation = 100\nmax_rounds = 250\ntolerance = 0\n"),
];

/// A kind of job with the result of an undisturbed run.
struct Kind {
    file: String,
    expected: Trained,
}

fn folder() -> Folder {
    let text = fs::read_to_string(examples().join("segmentation/corpus.txt")).unwrap();
    let corpus: String = text.split_inclusive('\n').take(120).collect();
    let folder = Folder::new(&[("corpus.txt", &corpus)]);
    for (name, model, inference) in KINDS {
        let shards = if name == "chain" { "" } else { "shard_symbols = 500\n" };
        let job = format!(
            "[model]\n{model}\n[corpus]\npath = \"corpus.txt\"\n{shards}[inference]\n{inference}\
             [output]\ndir = \"alone-{name}\"\ncheckpoint_seconds = 0\nkeep_checkpoints = 3\nscore_every = 7\n"
        );
        fs::write(folder.path(&format!("{name}.toml")), job).unwrap();
    }
    folder
}

fn kinds(folder: &Folder) -> Vec<Kind> {
    let train = |(name, ..): (&str, &str, &str)| {
        let file = format!("{name}.toml");
        folder.grammaton(&["train", &file, "--quiet", "--workers", "1"]);
        Kind { file, expected: Trained::read(&folder.path(&format!("alone-{name}"))) }
    };
    KINDS.into_iter().map(train).collect()
}

// Clients.

/// What a client knows of a job.
#[derive(Clone, Debug)]
struct Job {
    key: usize,
    /// Whether a cancellation was asked for.
    may_be_cancelled: bool,
    /// Whether a deletion was asked for.
    may_be_deleted: bool,
    /// Whether an unanswered resumption may take effect yet.
    may_be_resumed: bool,
    /// The state that it was reported to have and that it has for good, or until a resumption is asked for.
    last: Option<String>,
    is_over: bool,
}

/// A key of a submission.
struct Key {
    kind: usize,
    /// The job that was acknowledged under this key.
    id: Option<u64>,
}

/// A client, with the answers that it got.
struct Client<'a> {
    number: usize,
    lan: &'a Lan,
    folder: &'a Folder,
    url: &'a str,
    kinds: &'a [Kind],
    random: Random,
    keys: Vec<Key>,
    jobs: BTreeMap<u64, Job>,
    /// Ids of all jobs that were acknowledged, with their keys.
    acknowledged: BTreeMap<u64, usize>,
    /// Answered requests, by command, and those without an answer.
    requests: BTreeMap<&'static str, usize>,
    n_unanswered: usize,
    n_fetched: usize,
}

impl Client<'_> {
    /// Name of a key, which is also that of its job.
    fn name(&self, key: usize) -> String {
        format!("client-{}-job-{key}", self.number)
    }

    /// Runs a command on the client's host, and kills it after `kill_after` if that comes first. `None`: it has no answer.
    fn command(&mut self, args: &[&str], kill_after: Option<Duration>) -> Option<Printed> {
        let out = self.folder.path(&format!("out-of-client-{}", self.number));
        let mut command = Command::new(binary("grammaton"));
        command.args(args).args(["--coordinator", self.url]).current_dir(self.folder.path(""));
        let mut there = self.lan.on(HOSTS + self.number, &command);
        let file = File::create(&out).expect("a file can be made");
        let mut process = Process::spawn_to(there.env("GRAMMATON_TOKEN", TOKEN), file);
        let begun = clock();
        while process.ended().is_none() {
            if kill_after.is_some_and(|time| begun.elapsed() > time) {
                process.kill();
            }
            assert!(begun.elapsed() < HANG, "{args:?} does not end: {}", process.log());
            std::thread::sleep(Duration::from_millis(5));
        }
        let code = process.wait().code();
        let (out, log) = (fs::read_to_string(out).expect("it prints text"), process.log());
        // A message about the connection begins with the URL.
        let answer = code.filter(|&code| code == 0 || !log.contains(self.url));
        match answer {
            Some(_) => *self.requests.entry(name_of(args)).or_default() += 1,
            None => self.n_unanswered += 1,
        }
        answer.map(|code| Printed { code, out, log })
    }

    /// Runs a command, which is sometimes killed.
    fn ask(&mut self, args: &[&str]) -> Option<Printed> {
        let kill_after =
            (self.random.below(8) == 0).then(|| Duration::from_secs_f64(0.4 * self.random.fraction()));
        self.command(args, kill_after)
    }

    /// One of the client's jobs.
    fn any(&mut self) -> Option<u64> {
        let ids: Vec<u64> = self.jobs.keys().copied().collect();
        (!ids.is_empty()).then(|| ids[self.random.below(ids.len())])
    }

    /// A random request.
    fn step(&mut self) {
        let over = self.jobs.iter().filter(|(_, job)| job.is_over).map(|(&id, _)| id);
        let over: Vec<u64> = over.collect();
        let id = self.any();
        match (self.random.below(14), id) {
            _ if over.len() > MAX_OVER => self.delete(over[0]),
            (0..3, _) => {
                let unfinished = self.jobs.len() - over.len();
                if unfinished < MAX_UNFINISHED {
                    let kind = self.random.below(self.kinds.len());
                    self.keys.push(Key { kind, id: None });
                    self.submit(self.keys.len() - 1);
                }
            }
            (3, _) if !self.keys.is_empty() => {
                let key = self.random.below(self.keys.len());
                self.submit(key);
            }
            (4, Some(id)) => self.cancel(id),
            (5 | 6, Some(id)) => self.resume(id),
            (7, Some(id)) => self.delete(id),
            (8, _) => self.list(),
            (9 | 10, Some(id)) => self.fetch(id),
            (11, Some(id)) => {
                let time = Duration::from_secs_f64(3.0 * self.random.fraction());
                self.command(&["logs", &id.to_string(), "--follow"], Some(time));
            }
            (_, Some(id)) => drop(self.status(id)),
            _ => {}
        }
    }

    fn submit(&mut self, key: usize) {
        let (name, file) = (self.name(key), &self.kinds[self.keys[key].kind].file);
        let args = ["submit", file, "--name", &name, "--idempotency-key", &name];
        let Some(Printed { code, out, log }) = self.ask(&args) else { return };
        // The process that checks a job may be killed as well: the job is refused then.
        if code == 2 && log.contains("signal 9") {
            return;
        }
        assert_eq!(code, 0, "{args:?}: {log}");
        let id: u64 = out.trim_end().parse().expect("an id is a number");
        let known = self.keys[key].id.replace(id);
        if known == Some(id) && self.jobs.contains_key(&id) {
            return;
        }
        // A job whose deletion was asked for leaves its key to another one.
        if let Some(before) = known {
            let is_deleted = self.jobs.remove(&before).is_none_or(|job| job.may_be_deleted);
            assert!(is_deleted && before != id, "{name} is {id}, and was {before}");
        }
        let before = self.acknowledged.insert(id, key);
        assert!(before.is_none(), "{id} is the id of {name}, and was that of {before:?}");
        let job = Job {
            key,
            may_be_cancelled: false,
            may_be_deleted: false,
            may_be_resumed: false,
            last: None,
            is_over: false,
        };
        self.jobs.insert(id, job);
    }

    fn job(&mut self, id: u64) -> &mut Job {
        self.jobs.get_mut(&id).expect("the job is known")
    }

    fn cancel(&mut self, id: u64) {
        self.job(id).may_be_cancelled = true;
        if let Some(printed) = self.ask(&["cancel", &id.to_string()]) {
            let is_refused = printed.code == 2 && printed.log.contains("cannot be cancelled any more");
            assert!(printed.code == 0 || is_refused || self.is_gone(id, &printed), "{id}: {}", printed.log);
        }
    }

    fn resume(&mut self, id: u64) {
        let job = self.job(id);
        job.last.take_if(|state| state != "done");
        let printed = self.ask(&["resume", &id.to_string()]);
        let Some(printed) = printed else {
            self.job(id).may_be_resumed = true;
            return;
        };
        let is_refused = printed.code == 2 && printed.log.contains("only one that failed or was cancelled");
        assert!(printed.code == 0 || is_refused || self.is_gone(id, &printed), "{id}: {}", printed.log);
        if printed.code == 0 {
            let job = self.job(id);
            assert_ne!(job.last.as_deref(), Some("done"), "{id} is resumed");
            job.is_over = false;
        }
    }

    fn delete(&mut self, id: u64) {
        self.job(id).may_be_deleted = true;
        let Some(printed) = self.ask(&["delete", &id.to_string()]) else { return };
        let is_refused = printed.code == 2 && printed.log.contains("cancel it first");
        if printed.code == 0 {
            self.jobs.remove(&id);
        } else if !self.is_gone(id, &printed) {
            assert!(is_refused, "{id}: {}", printed.log);
        }
    }

    /// Whether the answer says that there is no such job; then its deletion was asked for.
    fn is_gone(&mut self, id: u64, printed: &Printed) -> bool {
        let is_gone = printed.code == 2 && printed.log.contains("there is no such job");
        if is_gone {
            let job = self.jobs.remove(&id);
            assert!(job.as_ref().is_none_or(|job| job.may_be_deleted), "{id} is lost: {job:?}");
        }
        is_gone
    }

    /// Reads a job; returns its state.
    fn status(&mut self, id: u64) -> Option<String> {
        let printed = self.ask(&["status", &id.to_string(), "--json"])?;
        if self.is_gone(id, &printed) {
            return None;
        }
        assert_eq!(printed.code, 0, "{id}: {}", printed.log);
        let reported: Value = serde_json::from_str(&printed.out).expect("a job is JSON");
        Some(self.tell(id, &reported))
    }

    /// Records what was reported of a job.
    fn tell(&mut self, id: u64, reported: &Value) -> String {
        let job = &self.jobs[&id];
        let (name, expected) = (self.name(job.key), &self.kinds[self.keys[job.key].kind].expected);
        assert_eq!(reported["name"], name, "{id}");
        let state = reported["state"].as_str().expect("a state is text").to_owned();
        assert!(job.last.as_ref().is_none_or(|last| *last == state), "{reported}, and {job:?}");
        match &state[..] {
            "done" => assert_eq!(reported["parameters_sha256"], expected.digest(), "{reported}"),
            "stopping" | "cancelled" => assert!(job.may_be_cancelled, "{reported}"),
            "failed" => {
                let error = reported["error"].as_str().unwrap_or_default();
                let is_by_fault = ["signal 9", "died 3 times", "No space left", "full"]
                    .iter()
                    .any(|reason| error.contains(reason));
                assert!(is_by_fault, "{reported}");
            }
            "queued" | "running" => {}
            state => panic!("{state} is no state"),
        }
        let job = self.job(id);
        job.is_over = ["done", "cancelled", "failed"].contains(&&state[..]);
        if state == "done" || job.is_over && !job.may_be_resumed {
            job.last = Some(state.clone());
        }
        state
    }

    fn list(&mut self) {
        let Some(printed) = self.ask(&["jobs", "--json"]) else { return };
        assert_eq!(printed.code, 0, "{}", printed.log);
        let reported: Vec<Value> = serde_json::from_str(&printed.out).expect("jobs are JSON");
        let reported: BTreeMap<u64, &Value> =
            reported.iter().map(|job| (job["id"].as_u64().expect("an id is a number"), job)).collect();
        let names: BTreeSet<&str> = reported.values().filter_map(|job| job["name"].as_str()).collect();
        assert_eq!(names.len(), reported.len(), "a key has two jobs: {reported:?}");
        for id in self.jobs.keys().copied().collect::<Vec<_>>() {
            match reported.get(&id) {
                Some(job) => drop(self.tell(id, job)),
                None => assert!(self.jobs[&id].may_be_deleted, "{id} is lost: {:?}", self.jobs[&id]),
            }
        }
    }

    fn fetch(&mut self, id: u64) {
        let out = format!("fetched-{id}");
        let Some(printed) = self.ask(&["fetch", &id.to_string(), "--out", &out, "--overwrite"]) else {
            return;
        };
        let job = &self.jobs[&id];
        if printed.code == 0 {
            let expected = &self.kinds[self.keys[job.key].kind].expected;
            let fetched = Trained::read(&self.folder.path(&out));
            assert_eq!(fetched.digest(), expected.digest(), "{id}");
            assert!(fetched.files == expected.files, "{id}: some file differs");
            self.n_fetched += 1;
            let _ = fs::remove_dir_all(self.folder.path(&out));
        } else {
            let is_early = printed.log.contains("there are results once it is done");
            assert!(
                is_early && job.last.as_deref() != Some("done") || self.is_gone(id, &printed),
                "{id}: {}",
                printed.log
            );
        }
    }

    /// Waits, after the faults, until all jobs have ended; those that failed are resumed. Downloads the results.
    fn finish(&mut self) {
        for key in 0..self.keys.len() {
            // What was asked for without an answer may be there: then the key has its job.
            if self.keys[key].id.is_none() {
                self.submit(key);
            }
        }
        let (mut begun, mut last) = (clock(), None);
        while let Some(id) = self.jobs.iter().find(|(_, job)| !job.is_over).map(|(&id, _)| id) {
            if last.replace(id) != Some(id) {
                begun = clock();
            }
            if self.status(id).is_some_and(|state| state == "failed") {
                self.resume(id);
            }
            assert!(begun.elapsed() < HANG, "{id} does not end: {:?}", self.jobs[&id]);
            std::thread::sleep(LOOK);
        }
        for id in self.jobs.keys().copied().collect::<Vec<_>>() {
            if self.jobs[&id].last.as_deref() == Some("done") {
                self.fetch(id);
            }
        }
        self.list();
    }
}

/// The command, for counts.
fn name_of(args: &[&str]) -> &'static str {
    let names = ["submit", "cancel", "resume", "delete", "status", "jobs", "fetch", "logs"];
    names.into_iter().find(|name| args.first() == Some(name)).unwrap_or("other")
}

// The service.

/// Kinds of faults.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Fault {
    Worker(WorkerFault),
    /// The service is killed, and another one begins later.
    ServiceKill,
    /// The service is stopped, and later continued.
    ServiceStop,
    /// The service is asked to end, and another one begins at once.
    ServiceEnd,
    /// The process of a job is killed.
    ProcessKill,
    /// The service is killed, and the newest checkpoints damaged before another one begins.
    Damage,
    /// The service's disk is full for a while.
    DiskFull,
    /// The cable of a client is cut, and later repaired.
    ClientCut,
}

const FAULTS: [Fault; 12] = [
    Fault::Worker(WorkerFault::Kill),
    Fault::Worker(WorkerFault::Stop),
    Fault::Worker(WorkerFault::Cut),
    Fault::Worker(WorkerFault::Drain),
    Fault::Worker(WorkerFault::Join),
    Fault::ServiceKill,
    Fault::ServiceStop,
    Fault::ServiceEnd,
    Fault::ProcessKill,
    Fault::Damage,
    Fault::DiskFull,
    Fault::ClientCut,
];

enum Recovery {
    Begin,
    Continue,
    Room,
    Cable(usize),
}

/// A service on the head under faults.
struct Scenario<'a> {
    lan: &'a Lan,
    folder: &'a Folder,
    random: Random,
    disk: Disk<'a>,
    address: String,
    /// The process; none while it is dead.
    process: Option<(Process, Lines)>,
    is_stopped: bool,
    is_cut: [bool; CLIENTS],
    pending: Pending<Recovery>,
    /// Whether the disk was full since the process began.
    was_full: bool,
    /// Largest memory of a process of the service, in mebibytes.
    memory: u64,
}

impl Scenario<'_> {
    /// Starts a process; with a full disk it may end, and begins later.
    fn begin(&mut self) {
        let args = ["serve", "--json", "--store", "disk/store", "--listen", &self.address];
        let more = ["--dead-after", "3", "--running", "4"];
        let command = self.folder.command(&[&args[..], &more].concat());
        let mut command = self.lan.on_head(&command);
        let (mut process, lines) = Process::spawn_read(command.env("GRAMMATON_TOKEN", TOKEN));
        self.was_full = self.disk.is_full;
        match lines.next() {
            Some(line) => {
                let event: Value = serde_json::from_str(&line).expect("lines are JSON");
                assert_eq!(event["event"], "listening");
                self.address = event["address"].as_str().expect("an address is text").to_owned();
                self.process = Some((process, lines));
            }
            None => {
                process.wait();
                assert!(self.disk.is_full, "{}", process.log());
                self.pending.schedule(Recovery::Begin, &mut self.random);
            }
        }
    }

    /// Ends the process at once.
    fn kill(&mut self) -> bool {
        let Some((mut process, _)) = self.process.take() else { return false };
        if process.ended().is_none() {
            self.memory = self.memory.max(usage(process.id()).1);
        }
        process.kill();
        process.wait();
        self.is_stopped = false;
        true
    }

    /// Damages the newest checkpoint of each job that has others, all of them whole.
    fn damage(&self) {
        self.lan.shell(&format!(
            "for folder in {}/store/work/*/out/checkpoints; do \
               [ $(ls $folder/*.ckpt 2>/dev/null | wc -l) -ge 2 ] || continue; \
               grep -q damage $folder/*.ckpt && continue; \
               printf damage | dd of=$(ls $folder/*.ckpt | tail -n 1) bs=1 seek=50 conv=notrunc 2>/dev/null; \
             done; true",
            self.folder.path("disk").display()
        ));
    }

    /// Causes a fault; returns whether it was possible.
    fn inject(&mut self, fault: Fault, hosts: &mut Hosts<'_>) -> bool {
        match fault {
            Fault::Worker(fault) => return hosts.inject(fault, &mut self.random),
            Fault::ServiceKill if self.kill() => self.pending.schedule(Recovery::Begin, &mut self.random),
            Fault::Damage if self.kill() => {
                self.damage();
                self.begin();
            }
            Fault::ServiceStop if !self.is_stopped => match &self.process {
                Some((process, _)) => {
                    process.signal("STOP");
                    self.is_stopped = true;
                    self.pending.schedule(Recovery::Continue, &mut self.random);
                }
                None => return false,
            },
            Fault::ServiceEnd if !self.is_stopped => match self.process.take() {
                Some((mut process, _)) => {
                    self.memory = self.memory.max(usage(process.id()).1);
                    process.signal("TERM");
                    assert_eq!(process.wait().code(), Some(0), "{}", process.log());
                    self.begin();
                }
                None => return false,
            },
            Fault::ProcessKill => {
                let service = self.process.as_ref().map(|(process, _)| process.id());
                let found = service.map(job_processes).unwrap_or_default();
                if found.is_empty() {
                    return false;
                }
                let (process, _) = found[self.random.below(found.len())];
                // It may have ended meanwhile.
                let _ = Command::new("kill").args(["-KILL", &process.to_string()]).output();
            }
            Fault::DiskFull if !self.disk.is_full => {
                self.disk.fill();
                self.was_full = true;
                self.pending.schedule(Recovery::Room, &mut self.random);
            }
            Fault::ClientCut => {
                let client = self.random.below(CLIENTS);
                if self.is_cut[client] {
                    return false;
                }
                self.lan.cut(HOSTS + client);
                self.is_cut[client] = true;
                self.pending.schedule(Recovery::Cable(client), &mut self.random);
            }
            _ => return false,
        }
        true
    }

    fn recover(&mut self, recovery: Recovery) {
        match recovery {
            Recovery::Begin if self.process.is_none() => self.begin(),
            Recovery::Begin => {}
            Recovery::Continue => {
                // One that was killed meanwhile needs no signal.
                if let Some((process, _)) = self.process.as_ref().filter(|_| self.is_stopped) {
                    process.signal("CONT");
                }
                self.is_stopped = false;
            }
            Recovery::Room => self.disk.empty(),
            Recovery::Cable(client) => {
                self.lan.heal(HOSTS + client);
                self.is_cut[client] = false;
            }
        }
    }

    /// Recovers from the faults whose time is over. A process that has ended by itself begins anew, which a full disk excuses.
    fn recover_due(&mut self) {
        for recovery in self.pending.due() {
            self.recover(recovery);
        }
        if let Some((process, _)) = &mut self.process
            && process.ended().is_some()
        {
            assert!(self.was_full, "the service has ended: {}", process.log());
            self.process = None;
            self.pending.schedule(Recovery::Begin, &mut self.random);
        }
    }

    fn recover_all(&mut self) {
        self.disk.empty();
        for recovery in self.pending.all() {
            self.recover(recovery);
        }
        if self.process.is_none() {
            self.begin();
        }
    }
}

/// Tells clients to finish once it is dropped, or to end at once if that is by a panic.
struct Running<'a> {
    is_over: &'a AtomicBool,
    has_failed: &'a AtomicBool,
}

impl Drop for Running<'_> {
    fn drop(&mut self) {
        self.has_failed.store(std::thread::panicking(), Ordering::Relaxed);
        self.is_over.store(true, Ordering::Relaxed);
    }
}

#[test]
#[ignore = "as long as SOAK_SECONDS says; see soak.rs"]
fn by_hand_a_service_under_every_fault_keeps_what_it_acknowledged() {
    let (seconds, seed) = (variable("SOAK_SECONDS", 300), variable("SEED", 1));
    let folder = folder();
    let lan = match Lan::new(HOSTS + CLIENTS) {
        Ok(lan) => lan,
        Err(why) => return requirement::missing("namespaces", &why),
    };
    let kinds = kinds(&folder);
    let disk = Disk::new(&lan, &folder.path("disk"), DISK);
    let mut scenario = Scenario {
        lan: &lan,
        folder: &folder,
        random: Random::new(seed, 0),
        disk,
        address: format!("{HEAD}:0"),
        process: None,
        is_stopped: false,
        is_cut: [false; CLIENTS],
        pending: Pending::new(),
        was_full: false,
        memory: 0,
    };
    scenario.begin();
    let url = format!("http://{}", scenario.address);
    let mut hosts = Hosts::new(&lan, url.clone());
    let mut survived: BTreeMap<Fault, usize> = BTreeMap::new();
    let (is_over, has_failed) = (AtomicBool::new(false), AtomicBool::new(false));
    let clients: Vec<Client<'_>> = std::thread::scope(|scope| {
        let clients: Vec<_> = (0..CLIENTS)
            .map(|number| {
                let mut client = Client {
                    number,
                    lan: &lan,
                    folder: &folder,
                    url: &url,
                    kinds: &kinds,
                    random: Random::new(seed, 1 + number as u64),
                    keys: Vec::new(),
                    jobs: BTreeMap::new(),
                    acknowledged: BTreeMap::new(),
                    requests: BTreeMap::new(),
                    n_unanswered: 0,
                    n_fetched: 0,
                };
                let (is_over, has_failed) = (&is_over, &has_failed);
                scope.spawn(move || {
                    while !is_over.load(Ordering::Relaxed) {
                        client.step();
                        let pause = client.random.fraction() * LOOK.as_secs_f64();
                        std::thread::sleep(Duration::from_secs_f64(pause));
                    }
                    if !has_failed.load(Ordering::Relaxed) {
                        client.finish();
                    }
                    client
                })
            })
            .collect();
        let running = Running { is_over: &is_over, has_failed: &has_failed };
        let (begun, mut next) = (clock(), clock() + Duration::from_secs(1));
        let lasts = |begun: Instant| begun.elapsed() < Duration::from_secs(seconds);
        while lasts(begun) && clients.iter().all(|client| !client.is_finished()) {
            std::thread::sleep(Duration::from_millis(20));
            scenario.recover_due();
            hosts.recover_due();
            if clock() >= next {
                let fault = FAULTS[scenario.random.below(FAULTS.len())];
                if scenario.inject(fault, &mut hosts) {
                    println!("    {:.1} s: {fault:?}", begun.elapsed().as_secs_f64());
                    *survived.entry(fault).or_default() += 1;
                }
                next = scenario.random.next();
            }
        }
        scenario.recover_all();
        hosts.recover_all();
        drop(running);
        let log = |scenario: &Scenario<'_>| {
            let log = scenario.process.as_ref().map(|(process, _)| process.log()).unwrap_or_default();
            println!("the service:\n{log}");
        };
        clients
            .into_iter()
            .map(|client| {
                client.join().unwrap_or_else(|panic| {
                    log(&scenario);
                    std::panic::resume_unwind(panic)
                })
            })
            .collect()
    });
    scenario.kill();
    let sum = |of: fn(&Client<'_>) -> usize| clients.iter().map(of).sum::<usize>();
    let mut requests: BTreeMap<&str, usize> = BTreeMap::new();
    for (&name, n) in clients.iter().flat_map(|client| &client.requests) {
        *requests.entry(name).or_default() += n;
    }
    println!(
        "seed {seed}: {} jobs acknowledged, {} results fetched with the bits of `train`; answered {requests:?}, {} requests without an answer; \
         at most {} MiB; {} faults survived: {survived:?}",
        sum(|client| client.acknowledged.len()),
        sum(|client| client.n_fetched),
        sum(|client| client.n_unanswered),
        scenario.memory,
        survived.values().sum::<usize>()
    );
}
