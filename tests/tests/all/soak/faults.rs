//! Faults of workers, disks and cables, and recovery from them.

use std::path::Path;
use std::time::{Duration, Instant};

use grammaton::num::Noise;
use grammaton_tests::cluster::worker_command;
use grammaton_tests::lan::Lan;
use grammaton_tests::{Process, clock};

pub const HOSTS: usize = 4;
pub const TOKEN: &str = "a-token-of-the-soak";
/// Maximum time between two faults, in seconds.
const PAUSE: f64 = 1.5;
/// Maximum duration of a fault, in seconds: longer than the heartbeat timeout and the timeout of connections.
const DURATION: f64 = 12.0;

/// Random choices.
pub struct Random {
    noise: Noise,
    n_drawn: u64,
}

impl Random {
    /// The choices of `seed`; each `stream` has its own.
    pub fn new(seed: u64, stream: u64) -> Random {
        Random { noise: Noise::new(seed, stream), n_drawn: 0 }
    }

    /// Uniform random number in [0, 1).
    pub fn fraction(&mut self) -> f64 {
        self.n_drawn += 1;
        (self.noise.symmetric(self.n_drawn) + 1.0) / 2.0
    }

    /// Uniform random number below `n`.
    pub fn below(&mut self, n: usize) -> usize {
        ((self.fraction() * n as f64) as usize).min(n - 1)
    }

    /// Time of the next fault.
    pub fn next(&mut self) -> Instant {
        clock() + Duration::from_secs_f64(self.fraction() * PAUSE)
    }
}

/// Recoveries from faults, each with its time.
pub struct Pending<R>(Vec<(Instant, R)>);

impl<R> Pending<R> {
    pub fn new() -> Pending<R> {
        Pending(Vec::new())
    }

    /// Schedules `recovery` after a random time.
    pub fn schedule(&mut self, recovery: R, random: &mut Random) {
        let duration = Duration::from_secs_f64(0.2 + random.fraction() * DURATION);
        self.0.push((clock() + duration, recovery));
    }

    /// Removes and returns the recoveries that are due.
    pub fn due(&mut self) -> Vec<R> {
        let now = clock();
        self.0.extract_if(.., |&mut (at, _)| at <= now).map(|(_, recovery)| recovery).collect()
    }

    /// Removes and returns all recoveries.
    pub fn all(&mut self) -> Vec<R> {
        self.0.drain(..).map(|(_, recovery)| recovery).collect()
    }
}

/// Kinds of faults of workers.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum WorkerFault {
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
}

enum Recovery {
    /// A new worker joins from the host.
    Worker(usize),
    /// The worker continues.
    Continue(usize),
    /// The cable is repaired.
    Heal(usize),
}

/// Hosts with workers.
pub struct Hosts<'a> {
    lan: &'a Lan,
    /// URL of the coordinator or service.
    url: String,
    /// Workers by host; some hosts have none at times.
    workers: Vec<Vec<Process>>,
    pending: Pending<Recovery>,
    /// Hosts with a stopped worker, which is not stopped again.
    stopped: [bool; HOSTS],
    cut: [bool; HOSTS],
    n_workers: usize,
}

impl Hosts<'_> {
    /// A worker on each host.
    pub fn new(lan: &Lan, url: String) -> Hosts<'_> {
        let mut hosts = Hosts {
            lan,
            url,
            workers: (0..HOSTS).map(|_| Vec::new()).collect(),
            pending: Pending::new(),
            stopped: [false; HOSTS],
            cut: [false; HOSTS],
            n_workers: 0,
        };
        (0..HOSTS).for_each(|host| hosts.join(host));
        hosts
    }

    fn join(&mut self, host: usize) {
        self.n_workers += 1;
        let worker = worker_command(&self.url, &format!("host{host}-{}", self.n_workers));
        let mut command = self.lan.on(host, &worker);
        self.workers[host].push(Process::spawn(command.env("GRAMMATON_TOKEN", TOKEN)));
    }

    /// Causes a fault; returns whether it was possible.
    pub fn inject(&mut self, fault: WorkerFault, random: &mut Random) -> bool {
        let host = random.below(HOSTS);
        let free = !self.stopped[host] && !self.cut[host];
        // At least one worker must be able to work, or waiting would be right.
        let others =
            (0..HOSTS).filter(|&other| other != host && !self.stopped[other] && !self.cut[other]).count();
        match fault {
            WorkerFault::Kill => match self.workers[host].pop() {
                Some(mut worker) => {
                    worker.kill();
                    self.pending.schedule(Recovery::Worker(host), random);
                }
                None => return false,
            },
            WorkerFault::Stop if free && others > 0 && !self.workers[host].is_empty() => {
                self.workers[host].iter().for_each(|worker| worker.signal("STOP"));
                self.stopped[host] = true;
                self.pending.schedule(Recovery::Continue(host), random);
            }
            WorkerFault::Cut if free && others > 0 => {
                self.lan.cut(host);
                self.cut[host] = true;
                self.pending.schedule(Recovery::Heal(host), random);
            }
            WorkerFault::Drain if free => match self.workers[host].pop() {
                Some(mut worker) => {
                    worker.signal("TERM");
                    // One that has not said anything yet has not begun either, and ends by the signal itself.
                    let status = worker.wait();
                    let has_begun = !worker.log().is_empty();
                    assert!(status.success() || !has_begun, "{status}: {}", worker.log());
                    self.pending.schedule(Recovery::Worker(host), random);
                }
                None => return false,
            },
            WorkerFault::Join if free && self.workers[host].len() < 3 => self.join(host),
            _ => return false,
        }
        true
    }

    /// Recovers from the faults whose time is over.
    pub fn recover_due(&mut self) {
        for recovery in self.pending.due() {
            self.recover(recovery);
        }
    }

    /// Recovers from all faults.
    pub fn recover_all(&mut self) {
        for recovery in self.pending.all() {
            self.recover(recovery);
        }
    }

    fn recover(&mut self, recovery: Recovery) {
        match recovery {
            Recovery::Worker(host) => self.join(host),
            Recovery::Continue(host) => {
                self.workers[host].iter().for_each(|worker| worker.signal("CONT"));
                self.stopped[host] = false;
            }
            Recovery::Heal(host) => {
                self.lan.heal(host);
                self.cut[host] = false;
            }
        }
    }

    pub fn logs(&self) -> String {
        self.workers.iter().flatten().map(Process::log).collect()
    }
}

/// A small disk, which can be filled.
pub struct Disk<'a> {
    lan: &'a Lan,
    folder: String,
    pub is_full: bool,
}

impl Disk<'_> {
    /// Makes `folder` a disk of `megabytes` for the processes on the head.
    pub fn new<'a>(lan: &'a Lan, folder: &Path, megabytes: usize) -> Disk<'a> {
        std::fs::create_dir(folder).expect("a folder can be made");
        let folder = folder.display().to_string();
        lan.shell(&format!("mount -t tmpfs -o size={megabytes}m tmpfs {folder}"));
        Disk { lan, folder, is_full: false }
    }

    pub fn fill(&mut self) {
        self.lan.shell(&format!("cat /dev/zero > {}/filler 2>/dev/null; true", self.folder));
        self.is_full = true;
    }

    pub fn empty(&mut self) {
        self.lan.shell(&format!("rm -f {}/filler", self.folder));
        self.is_full = false;
    }
}
