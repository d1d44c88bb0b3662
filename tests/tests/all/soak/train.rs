//! Faults in random order, over one job of `train` after the other. Law: each job ends with the bits of an undisturbed run.

use std::collections::BTreeMap;
use std::fs;
use std::time::Duration;

use grammaton_tests::cluster::Coordinator;
use grammaton_tests::folder::{Folder, Trained, examples};
use grammaton_tests::lan::{HEAD, Lan};
use grammaton_tests::{Heard, clock, requirement};
use serde_json::Value;

use super::faults::{Disk, HOSTS, Hosts, Pending, Random, TOKEN, WorkerFault};
use super::variable;

/// Time without output that counts as a hang, while a worker could work.
const HANG: Duration = Duration::from_secs(120);

/// Kinds of faults.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Fault {
    Worker(WorkerFault),
    /// The coordinator is killed; another one resumes at once.
    CoordinatorKill,
    /// The coordinator is killed, and its newest checkpoint damaged before another one resumes.
    Damage,
    /// The checkpoints' disk is full for a while.
    DiskFull,
}

const FAULTS: [Fault; 8] = [
    Fault::Worker(WorkerFault::Kill),
    Fault::Worker(WorkerFault::Stop),
    Fault::Worker(WorkerFault::Cut),
    Fault::Worker(WorkerFault::Drain),
    Fault::Worker(WorkerFault::Join),
    Fault::CoordinatorKill,
    Fault::Damage,
    Fault::DiskFull,
];

/// The disk has room again.
struct Room;

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
struct Scenario<'a> {
    lan: &'a Lan,
    folder: &'a Folder,
    random: &'a mut Random,
    coordinator: Coordinator,
    hosts: Hosts<'a>,
    disk: Disk<'a>,
    pending: Pending<Room>,
    rounds_since_damage: usize,
    rounds: usize,
}

impl Scenario<'_> {
    fn command(folder: &Folder, lan: &Lan, address: &str, more: &[&str]) -> Coordinator {
        let args = [&["--dead-after", "3", "--no-workers-grace", "100"], more].concat();
        let mut command = lan.on_head(&Coordinator::command(folder, "out", address, &args));
        Coordinator::spawn(command.env("GRAMMATON_TOKEN", TOKEN))
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
        let address = self.coordinator.address();
        self.coordinator = Scenario::command(self.folder, self.lan, &address, &["--resume"]);
    }

    /// Causes a fault; returns whether it was possible.
    fn inject(&mut self, fault: Fault) -> bool {
        match fault {
            Fault::Worker(fault) => return self.hosts.inject(fault, self.random),
            Fault::CoordinatorKill => self.replace_coordinator(false),
            Fault::Damage if self.rounds_since_damage > 3 && !self.disk.is_full => {
                self.replace_coordinator(true);
            }
            Fault::DiskFull if !self.disk.is_full && self.rounds > 3 => {
                self.disk.fill();
                self.pending.schedule(Room, self.random);
            }
            Fault::Damage | Fault::DiskFull => return false,
        }
        true
    }

    fn logs(&self) -> String {
        format!("coordinator:\n{}\nworkers:\n{}", self.coordinator.process.log(), self.hosts.logs())
    }

    /// Runs the job to its end, under faults.
    fn run(mut self, survived: &mut BTreeMap<Fault, usize>) -> Coordinator {
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
                Heard::Nothing => assert!(heard.elapsed() < HANG, "it hangs: {}", self.logs()),
                Heard::End => panic!("it ended early: {}", self.logs()),
            }
            self.hosts.recover_due();
            if !self.pending.due().is_empty() {
                self.disk.empty();
            }
            if clock() >= next {
                let fault = FAULTS[self.random.below(FAULTS.len())];
                if self.inject(fault) {
                    println!("    {fault:?}, {} rounds heard", self.rounds);
                    *survived.entry(fault).or_default() += 1;
                }
                next = self.random.next();
            }
        }
        self.hosts.recover_all();
        self.coordinator
    }
}

fn undisturbed(folder: &Folder) -> Trained {
    folder.train("one", &["--workers", "1", "--set", "output.keep_checkpoints=0"])
}

#[test]
#[ignore = "as long as SOAK_SECONDS says; see the top of the file"]
fn by_hand_every_fault_in_any_order_changes_nothing() {
    let (seconds, seed) = (variable("SOAK_SECONDS", 300), variable("SEED", 1));
    let mut random = Random::new(seed, 0);
    let (mut survived, mut n_jobs) = (BTreeMap::new(), 0);
    let begun = clock();
    while begun.elapsed() < Duration::from_secs(seconds) {
        let folder = job(n_jobs);
        let one = undisturbed(&folder);
        let lan = match Lan::new(HOSTS) {
            Ok(lan) => lan,
            Err(why) => return requirement::missing("namespaces", &why),
        };
        let disk = Disk::new(&lan, &folder.path("disk"), 4);
        println!("job {n_jobs} of seed {seed}, {} rounds", one.rounds.len());
        let coordinator = Scenario::command(&folder, &lan, &format!("{HEAD}:0"), &[]);
        let hosts = Hosts::new(&lan, coordinator.url.clone());
        let scenario = Scenario {
            lan: &lan,
            folder: &folder,
            random: &mut random,
            coordinator,
            hosts,
            disk,
            pending: Pending::new(),
            rounds_since_damage: 0,
            rounds: 0,
        };
        let mut coordinator = scenario.run(&mut survived);
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
