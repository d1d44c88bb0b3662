//! Random schedules of all kinds of faults, over one job after the other. Law: each job ends with the bits of an undisturbed run.
//!
//! `SOAK_SECONDS=600 SEED=7 cargo test --workspace --test all soak:: -- --ignored --nocapture` prints a line per fault, and counts at
//! the end. The seed determines the schedule. The time of a fault depends on the machine; the result must not.

use std::collections::BTreeMap;
use std::fs;
use std::time::{Duration, Instant};

use grammaton_tests::cluster::{Coordinator, worker_command};
use grammaton_tests::folder::{Folder, Trained, examples};
use grammaton_tests::lan::{HEAD, Lan};
use grammaton_tests::{Heard, Process, clock, requirement};
use serde_json::Value;
use shared::num::Noise;

const HOSTS: usize = 4;
const TOKEN: &str = "a-token-of-the-soak";
/// Time without output that counts as a hang, while a worker could work.
const HUNG: Duration = Duration::from_secs(120);
/// Maximum time between two faults, in seconds.
const PAUSE: f64 = 1.5;
/// Maximum duration of a fault, in seconds: longer than the heartbeat timeout and the timeout of connections.
const SPELL: f64 = 12.0;

/// Kinds of faults.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Fault {
    /// A worker is killed; later another one joins from its host.
    Kill,
    /// A worker is stopped, and later continued.
    Stop,
    /// The cable of a host is cut, and later repaired.
    Cut,
    /// A worker is drained; later another one joins from its host.
    Drain,
    /// An additional worker joins from a host.
    Join,
    /// The coordinator is killed; another one resumes at once.
    CoordinatorKill,
    /// The coordinator is killed, and its newest checkpoint damaged before another one resumes.
    Damage,
    /// The checkpoints' disk is full for a while.
    DiskFull,
}

const FAULTS: [Fault; 8] = [
    Fault::Kill,
    Fault::Stop,
    Fault::Cut,
    Fault::Drain,
    Fault::Join,
    Fault::CoordinatorKill,
    Fault::Damage,
    Fault::DiskFull,
];

/// Ends of faults.
#[derive(Clone, Copy, Debug)]
enum Relief {
    /// A new worker joins from the host.
    Worker(usize),
    /// The worker continues.
    Continue(usize),
    /// The cable is repaired.
    Heal(usize),
    /// The disk has room again.
    Room,
}

/// Random choices.
struct Dice {
    noise: Noise,
    thrown: u64,
}

impl Dice {
    /// Uniform random number in [0, 1).
    fn share(&mut self) -> f64 {
        self.thrown += 1;
        (self.noise.symmetric(self.thrown) + 1.0) / 2.0
    }

    fn below(&mut self, n: usize) -> usize {
        ((self.share() * n as f64) as usize).min(n - 1)
    }
}

/// Jobs that differ in grammar, restarts and strings.
fn job(number: usize) -> Folder {
    let grammar = ["auto:unigram", "auto:colloc", "words.gr"][number % 3];
    let (restarts, rounds) = [(1, 900), (2, 300), (3, 200)][number % 3];
    let lines = [900, 700, 1200][number % 3];
    let seed = 1 + number;
    let text = fs::read_to_string(examples().join("segmentation/corpus.txt")).unwrap();
    let corpus: String = text.split_inclusive('\n').skip(37 * number % 500).take(lines).collect();
    let mut letters: Vec<char> = corpus.chars().filter(|letter| !letter.is_whitespace()).collect();
    letters.sort_unstable();
    letters.dedup();
    let letters: String = letters.iter().map(|letter| format!("1 1 Letter --> {letter}\n")).collect();
    let words = format!(
        "1 1 Sentence --> Phrase\n1 1 Sentence --> Phrase Sentence\n1 0.3 2 Phrase --> Word\n1 0.3 2 Phrase --> Word Word\n\
         Word --> Letters\n1 1 Letters --> Letter\n1 1 Letters --> Letter Letters\n{letters}"
    );
    let job = format!(
        "[model]\ngrammar = \"{grammar}\"\n[corpus]\npath = \"corpus.txt\"\n\
         [inference]\ntruncation = 400\nmax_rounds = {rounds}\ntolerance = 0\nrestarts = {restarts}\nseed = {seed}\n\
         [output]\ncheckpoints = \"disk\"\ncheckpoint_seconds = 0\nkeep_checkpoints = 3\nscore_every = 7\n"
    );
    Folder::new(&[("job.toml", &job), ("corpus.txt", &corpus), ("words.gr", &words)])
}

/// A job under faults.
struct Story<'a> {
    lan: &'a Lan,
    folder: &'a Folder,
    dice: &'a mut Dice,
    coordinator: Coordinator,
    /// Workers by host; some hosts have none at times.
    workers: Vec<Vec<Process>>,
    pending: Vec<(Instant, Relief)>,
    /// Hosts with a stopped worker, which is not stopped again.
    stopped: [bool; HOSTS],
    cut: [bool; HOSTS],
    full: bool,
    rounds_since_damage: usize,
    rounds: usize,
    kills: u64,
    n_workers: usize,
}

impl Story<'_> {
    fn command(folder: &Folder, lan: &Lan, address: &str, more: &[&str]) -> Coordinator {
        let args = [&["--dead-after", "3", "--no-workers-grace", "100"], more].concat();
        let mut command = lan.on_head(&Coordinator::command(folder, "out", address, &args));
        Coordinator::spawn(command.env("GRAMMATON_TOKEN", TOKEN))
    }

    fn join(&mut self, host: usize) {
        self.n_workers += 1;
        let worker = worker_command(&self.coordinator.url, &format!("host{host}-{}", self.n_workers));
        let mut command = self.lan.on(host, &worker);
        self.workers[host].push(Process::spawn(command.env("GRAMMATON_TOKEN", TOKEN)));
    }

    fn later(&mut self, relief: Relief) {
        let spell = Duration::from_secs_f64(0.2 + self.dice.share() * SPELL);
        self.pending.push((clock() + spell, relief));
    }

    fn replace_coordinator(&mut self, damage: bool) {
        self.coordinator.process.kill();
        self.coordinator.process.wait();
        if damage {
            self.lan.shell(&format!(
                "newest=$(ls {}/*.ckpt | tail -n 1) && printf damage | dd of=$newest bs=1 seek=50 conv=notrunc 2>/dev/null",
                self.folder.path("disk").display()
            ));
            self.rounds_since_damage = 0;
        }
        self.kills += 1;
        let address = self.coordinator.address();
        self.coordinator = Story::command(self.folder, self.lan, &address, &["--resume"]);
    }

    /// Causes a fault; returns whether it was possible.
    fn strike(&mut self, fault: Fault) -> bool {
        let host = self.dice.below(HOSTS);
        let free = !self.stopped[host] && !self.cut[host];
        // At least one worker must be able to work, or waiting would be right.
        let others =
            (0..HOSTS).filter(|&other| other != host && !self.stopped[other] && !self.cut[other]).count();
        match fault {
            Fault::Kill => match self.workers[host].pop() {
                Some(mut worker) => {
                    worker.kill();
                    self.later(Relief::Worker(host));
                }
                None => return false,
            },
            Fault::Stop if free && others > 0 && !self.workers[host].is_empty() => {
                self.workers[host].iter().for_each(|worker| worker.signal("STOP"));
                self.stopped[host] = true;
                self.later(Relief::Continue(host));
            }
            Fault::Cut if free && others > 0 => {
                self.lan.cut(host);
                self.cut[host] = true;
                self.later(Relief::Heal(host));
            }
            Fault::Drain if free => match self.workers[host].pop() {
                Some(mut worker) => {
                    worker.signal("TERM");
                    assert_eq!(worker.wait().code(), Some(0), "{}", worker.log());
                    self.later(Relief::Worker(host));
                }
                None => return false,
            },
            Fault::Join if free && self.workers[host].len() < 3 => self.join(host),
            Fault::CoordinatorKill => self.replace_coordinator(false),
            Fault::Damage if self.rounds_since_damage > 3 && !self.full => self.replace_coordinator(true),
            Fault::DiskFull if !self.full && self.rounds > 3 => {
                let disk = self.folder.path("disk");
                self.lan.shell(&format!("cat /dev/zero > {}/filler 2>/dev/null; true", disk.display()));
                self.full = true;
                self.later(Relief::Room);
            }
            _ => return false,
        }
        true
    }

    fn relieve(&mut self) {
        let now = clock();
        let (due, pending): (Vec<_>, Vec<_>) = self.pending.drain(..).partition(|&(at, _)| at <= now);
        self.pending = pending;
        for (_, relief) in due {
            match relief {
                Relief::Worker(host) => self.join(host),
                Relief::Continue(host) => {
                    self.workers[host].iter().for_each(|worker| worker.signal("CONT"));
                    self.stopped[host] = false;
                }
                Relief::Heal(host) => {
                    self.lan.heal(host);
                    self.cut[host] = false;
                }
                Relief::Room => {
                    self.lan.shell(&format!("rm {}/filler", self.folder.path("disk").display()));
                    self.full = false;
                }
            }
        }
    }

    fn logs(&self) -> String {
        let workers = self.workers.iter().flatten().map(|worker| worker.log());
        format!("coordinator:\n{}\nworkers:\n{}", self.coordinator.process.log(), workers.collect::<String>())
    }

    /// Runs the job to its end, under faults.
    fn run(mut self, survived: &mut BTreeMap<Fault, usize>) -> Coordinator {
        (0..HOSTS).for_each(|host| self.join(host));
        let (mut heard, mut next) = (clock(), clock() + Duration::from_secs(1));
        loop {
            match self.coordinator.poll(Duration::from_millis(20)) {
                Heard::Line(line) => {
                    let event: Value = serde_json::from_str(&line).expect("lines are JSON");
                    if event["event"] == "round" {
                        self.rounds += 1;
                        self.rounds_since_damage += 1;
                    }
                    heard = clock();
                    if event["event"] == "finished" {
                        break;
                    }
                }
                Heard::Nothing => assert!(heard.elapsed() < HUNG, "it hangs: {}", self.logs()),
                Heard::End => panic!("it ended early: {}", self.logs()),
            }
            self.relieve();
            if clock() >= next {
                let fault = FAULTS[self.dice.below(FAULTS.len())];
                if self.strike(fault) {
                    println!("    {fault:?}, {} rounds heard", self.rounds);
                    *survived.entry(fault).or_default() += 1;
                }
                next = clock() + Duration::from_secs_f64(self.dice.share() * PAUSE);
            }
        }
        (0..HOSTS).for_each(|host| self.lan.heal(host));
        self.workers.iter().flatten().for_each(|worker| worker.signal("CONT"));
        self.coordinator
    }
}

fn undisturbed(folder: &Folder) -> Trained {
    folder.train("one", &["--workers", "1", "--set", "output.keep_checkpoints=0"])
}

fn variable(name: &str, default: u64) -> u64 {
    std::env::var(name).map_or(default, |text| text.parse().expect("it is a number"))
}

#[test]
#[ignore = "as long as SOAK_SECONDS says; see the top of the file"]
fn every_fault_in_any_order_changes_nothing() {
    let (seconds, seed) = (variable("SOAK_SECONDS", 300), variable("SEED", 1));
    let mut dice = Dice { noise: Noise::new(seed, 0), thrown: 0 };
    let (mut survived, mut n_jobs) = (BTreeMap::new(), 0);
    let begun = clock();
    while begun.elapsed() < Duration::from_secs(seconds) {
        let folder = job(n_jobs);
        let one = undisturbed(&folder);
        let lan = match Lan::new(HOSTS) {
            Ok(lan) => lan,
            Err(why) => return requirement::missing("namespaces", &why),
        };
        let disk = folder.path("disk");
        fs::create_dir(&disk).expect("a folder can be made");
        lan.shell(&format!("mount -t tmpfs -o size=4m tmpfs {}", disk.display()));
        println!("job {n_jobs} of seed {seed}, {} rounds", one.rounds.len());
        let coordinator = Story::command(&folder, &lan, &format!("{HEAD}:0"), &[]);
        let story = Story {
            lan: &lan,
            folder: &folder,
            dice: &mut dice,
            coordinator,
            workers: (0..HOSTS).map(|_| Vec::new()).collect(),
            pending: Vec::new(),
            stopped: [false; HOSTS],
            cut: [false; HOSTS],
            full: false,
            rounds_since_damage: 0,
            rounds: 0,
            kills: 0,
            n_workers: 0,
        };
        let mut coordinator = story.run(&mut survived);
        assert_eq!(coordinator.process.wait().code(), Some(0), "{}", coordinator.process.log());
        let disturbed = Trained::read(&folder.path("out"));
        assert_eq!(disturbed.digest(), one.digest(), "job {n_jobs} of seed {seed}");
        assert!(disturbed.files == one.files, "job {n_jobs} of seed {seed}: some file differs");
        n_jobs += 1;
        println!(
            "  the same bits after {:.0} s; survived so far: {survived:?}",
            begun.elapsed().as_secs_f64()
        );
    }
    println!("{n_jobs} jobs, {} faults survived: {survived:?}", survived.values().sum::<usize>());
}
