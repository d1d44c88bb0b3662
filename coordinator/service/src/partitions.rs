//! Services that share an object store, in simulated time: requests and answers are lost, delayed, or arrive after their sender got the error that they
//! were lost; services are cut off, stand still, are killed and come back on the same machine or another; their clocks run fast and slow.
//!
//! Clients record the answers that they got, by any service that takes itself for the leader. Laws:
//!
//! 1. An epoch has one leader, and a service confirms nothing once a later one has.
//! 2. A job that was accepted is there, and its id is that of no other; the same key gives the same job.
//! 3. What was reported as done, failed or cancelled stays so until a resumption is asked for; it is cancelled only if that was asked for.
//!
//! What a simulated service does with the store is what the controller does: plan, store, commit, and only then confirm.
//! `SEEDS=5000 cargo nextest run partitions` draws more histories.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Result, ensure};
use basics::clock::simulated::{run, sleep, true_time};
use basics::store::TIMEOUT;
use basics::store::memory::{self, Fate, Network};
use parking_lot::{Mutex, MutexGuard};
use rand::{Rng, RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;

use super::acceptance::Acceptance;
use super::job_store::JobStore;
use super::leader_lease::{LeaderLease, Term, Timeouts};
use super::queue::{Done, Event, Most, Queue, Refusal};
use super::record::{JobId, Millis, Record, State};
use super::remote::COPY_INTERVAL;
use super::shares::Room;
use super::submission::Submission;
use super::tests::histories;

/// Histories of a test run, unless the environment says otherwise.
const SEEDS: u64 = 200;
/// Rates of their clocks, within the tolerance of the lease.
const RATES: [f64; 3] = [1.0, 0.9, 1.12];
/// The simulated time of a history.
const END: Duration = Duration::from_secs(900);

/// Totals over all histories.
#[derive(Default, Debug)]
struct Tally {
    requests: u64,
    lost: u64,
    late: u64,
    partitions: u64,
    pauses: u64,
    kills: u64,
    leaders: u64,
    accepted: u64,
    confirmed: u64,
}

/// The clients' knowledge of a job.
#[derive(Debug)]
struct Known {
    key: String,
    /// The state that it was reported to have for good, until a resumption is asked for.
    last: Option<State>,
    may_be_cancelled: bool,
    /// Whether a resumption was asked for whose outcome is unknown: it may take effect at any time.
    may_be_resumed: bool,
}

impl Known {
    /// Takes note that a client asks for a resumption. Returns whether an earlier one may yet take effect.
    fn ask_to_resume(&mut self) -> bool {
        self.last.take_if(|state| !matches!(state, State::Done { .. }));
        std::mem::replace(&mut self.may_be_resumed, true)
    }
}

impl Reported {
    /// The history of a job.
    fn of(&self, id: JobId) -> Vec<&String> {
        self.history.iter().filter(|line| line.starts_with(&format!("{id} "))).collect()
    }
}

#[derive(Default)]
struct Reported {
    jobs: BTreeMap<JobId, Known>,
    /// Keys that were submitted, successfully or not.
    keys: Vec<String>,
    /// The service that leads in each epoch.
    leaders: BTreeMap<u64, usize>,
    /// The latest epoch in which something was confirmed.
    epoch: u64,
    /// Attempts to store, and their results, for a message.
    history: Vec<String>,
    tally: Tally,
}

struct World {
    seed: u64,
    url: String,
    reported: Mutex<Reported>,
}

impl World {
    fn reported(&self) -> MutexGuard<'_, Reported> {
        self.reported.lock()
    }

    fn random(&self, purpose: u64) -> Pcg64Mcg {
        Pcg64Mcg::seed_from_u64(self.seed << 8 | purpose)
    }

    /// Takes note that a leader confirms something now, unless it refuses to.
    fn confirm(&self, term: &Term) -> Result<MutexGuard<'_, Reported>> {
        term.check()?;
        let mut reported = self.reported();
        assert!(
            reported.epoch <= term.epoch,
            "seed {}: {} confirms after {}",
            self.seed,
            term.epoch,
            reported.epoch
        );
        reported.epoch = term.epoch;
        reported.tally.confirmed += 1;
        Ok(reported)
    }

    /// Records the state that a job was reported to have.
    fn tell(&self, reported: &mut Reported, record: &Record) {
        let (id, state) = (record.id, &record.state);
        reported.history.push(format!("{id} is reported to be {state:?} in epoch {}", reported.epoch));
        let seed = format!("{}: {:#?}", self.seed, reported.of(id));
        let known = reported.jobs.entry(id).or_insert_with(|| Known {
            key: record.key.clone(),
            last: None,
            may_be_cancelled: false,
            may_be_resumed: false,
        });
        assert_eq!(known.key, record.key, "seed {seed}: {id} has two keys");
        if let Some(last) = &known.last {
            assert_eq!(last, state, "seed {seed}: {id}");
        }
        match state {
            State::Done { parameters_sha256 } => assert_eq!(*parameters_sha256, known.key, "seed {seed}"),
            State::Stopping | State::Cancelled => {
                assert!(known.may_be_cancelled, "seed {seed}: {id} is {state:?}");
            }
            State::Queued | State::Running | State::Pausing | State::Failed { .. } => {}
        }
        if matches!(state, State::Done { .. }) || state.is_over() && !known.may_be_resumed {
            known.last = Some(state.clone());
        }
    }
}

/// The network of a service, and the service's machine.
struct Machine {
    world: Arc<World>,
    state: Mutex<(Pcg64Mcg, Duration)>,
}

impl Machine {
    fn waits(&self) -> Duration {
        let random = &mut self.state.lock().0;
        if random.random_bool(0.01) {
            self.world.reported().tally.pauses += 1;
            return any(random, 120.0);
        }
        any(random, 0.1)
    }
}

impl Network for Machine {
    fn send(&self) -> Fate {
        sleep(self.waits());
        let now = true_time().unwrap();
        let (random, cut_off) = &mut *self.state.lock();
        let tally = &mut self.world.reported().tally;
        tally.requests += 1;
        if random.random_bool(0.004) {
            tally.partitions += 1;
            *cut_off = now + any(random, 150.0);
        }
        let fate = match random.random_range(0..100) {
            _ if now < *cut_off => Fate::RequestLost,
            0 | 1 => Fate::RequestLost,
            2 | 3 => Fate::AnswerLost,
            4 | 5 => Fate::Late(any(random, 200.0)),
            _ => Fate::Arrives,
        };
        tally.lost += u64::from(fate != Fate::Arrives);
        tally.late += u64::from(matches!(fate, Fate::Late(_)));
        fate
    }

    fn receive(&self, fate: Fate) {
        sleep(if fate == Fate::Arrives { self.waits() } else { TIMEOUT });
    }
}

/// A time from 0 to `seconds`.
fn any(random: &mut impl Rng, seconds: f64) -> Duration {
    Duration::from_secs_f64(random.random_range(0.0..seconds))
}

/// A service that is the leader.
struct Leader<'a> {
    world: &'a World,
    job_store: JobStore,
    lease: LeaderLease,
    acceptance: Acceptance,
    queue: Queue,
    random: Pcg64Mcg,
}

impl Leader<'_> {
    fn begin<'a>(
        world: &'a World,
        number: usize,
        mut job_store: JobStore,
        random: Pcg64Mcg,
    ) -> Result<Leader<'a>> {
        let lease = job_store.take_lease().unwrap();
        let before = world.reported().leaders.insert(lease.term().epoch, number);
        assert!(before.is_none(), "seed {}: an epoch has two leaders", world.seed);
        world.reported().tally.leaders += 1;
        let found = job_store.records().read()?;
        ensure!(found.damaged.is_empty(), "seed {}: {:?}", world.seed, found.damaged);
        let ids = found.records.iter().map(|record| record.id).collect();
        let used = job_store.remove_unaccepted(&ids)?.max(ids.last().copied());
        let mut acceptance = Acceptance::open(job_store.open_place()?, job_store.term(), used)?;
        acceptance.void_last(&job_store, &ids)?;
        let most = Most { jobs: 1000, of_user: 1000 };
        let (deleted, kept): (Vec<Record>, Vec<Record>) =
            found.records.into_iter().partition(|record| record.is_deleted);
        job_store.remove_all_deleted(&deleted, Millis(0));
        let queue = Queue::new(kept, Room { n: 2, priority_bound: 2 }, most);
        let mut leader = Leader { world, job_store, lease, acceptance, queue, random };
        leader.change(Event::Started)?;
        Ok(leader)
    }

    /// Leads until it is killed or another service takes over.
    fn lead(&mut self) {
        let mut renewal = Duration::ZERO;
        while true_time().unwrap() < END {
            if true_time().unwrap() >= renewal {
                let store = self.job_store.remote().unwrap().store();
                if matches!(self.lease.renew(store), Ok(false)) {
                    return;
                }
                renewal = true_time().unwrap() + COPY_INTERVAL;
            }
            // Clients get an error for what could not be done, and may ask another time.
            let _ = self.serve_one();
            if self.random.random_bool(0.005) {
                self.world.reported().tally.kills += 1;
                return;
            }
            sleep(any(&mut self.random, 4.0));
        }
    }

    fn serve_one(&mut self) -> Result<()> {
        let ids: Vec<JobId> = self.world.reported().jobs.keys().copied().collect();
        let id = ids.get(self.random.random_range(0..ids.len().max(1))).copied();
        let working = self.queue.working().next().map(|record| (record.id, record.key.clone()));
        match (self.random.random_range(0..10), id, working) {
            (0..3, ..) => self.submit(),
            (3, Some(id), _) => {
                if let Some(known) = self.world.reported().jobs.get_mut(&id) {
                    known.may_be_cancelled = true;
                }
                self.change(Event::Cancelled(id))?;
                self.read(id)
            }
            (4, Some(id), _) => {
                let might_be = self.world.reported().jobs.get_mut(&id).map(Known::ask_to_resume);
                let resumed = self.change(Event::Resumed(id));
                if let Some(known) = self.world.reported().jobs.get_mut(&id) {
                    known.may_be_resumed = match &resumed {
                        Ok(()) => false,
                        Err(error) if error.is::<Refusal>() => might_be.unwrap_or_default(),
                        Err(_) => true,
                    };
                }
                resumed?;
                self.read(id)
            }
            (5 | 6, _, Some((id, key))) => {
                let done = Done { parameters_sha256: key, ..Done::default() };
                let fails = self.random.random_bool(0.2);
                self.change(Event::Ended(id, if fails { Err("a fault".into()) } else { Ok(done) }))
            }
            (_, Some(id), _) => self.read(id),
            _ => Ok(()),
        }
    }

    fn submit(&mut self) -> Result<()> {
        let key = {
            let mut reported = self.world.reported();
            let fresh = reported.keys.len();
            let n = self.random.random_range(0..=fresh);
            if n == fresh {
                reported.keys.push(format!("key {n}"));
            }
            reported.keys[n].clone()
        };
        if let Some(record) = self.queue.with_key("ann", &key).cloned() {
            return self.accepted(&record);
        }
        let staging = self.job_store.lay_out("", &[])?;
        std::fs::write(staging.path().join("log.jsonl"), "")?;
        let submission = Submission { name: "job".into(), key, ..Submission::default() };
        let (queue, job_store) = (&self.queue, &self.job_store);
        let store = |id: JobId| {
            let record = submission.into_record(id, "ann".into(), Millis(0));
            let steps = queue.plan(Millis(0), Event::Accepted(Box::new(record)))?;
            job_store.records().save(&steps[0].record)?;
            Ok(steps)
        };
        let mut steps = self.acceptance.accept(job_store, staging, store)?.into_iter();
        let first = steps.next().unwrap().record;
        self.queue.commit(first.clone());
        for step in steps {
            self.job_store.records().save(&step.record)?;
            self.queue.commit(step.record);
        }
        self.accepted(&first)
    }

    /// Tells a client that its job is accepted.
    fn accepted(&self, record: &Record) -> Result<()> {
        let (world, mut reported) = (self.world, self.world.confirm(&self.lease.term())?);
        let same = reported.jobs.iter().find(|(_, known)| known.key == record.key).map(|(&id, _)| id);
        assert!(same.is_none_or(|same| same == record.id), "seed {}: {same:?} is {}", world.seed, record.id);
        reported.tally.accepted += u64::from(same.is_none());
        world.tell(&mut reported, record);
        Ok(())
    }

    fn change(&mut self, event: Event) -> Result<()> {
        for step in self.queue.plan(Millis(0), event)? {
            let stored = self.job_store.records().save(&step.record);
            let Record { id, state, .. } = &step.record;
            let (time, epoch) = (true_time().unwrap_or_default(), self.lease.term().epoch);
            let line = format!("{id} stored at {time:?} in epoch {epoch} as {state:?}: {stored:?}");
            self.world.reported().history.push(line);
            stored?;
            self.queue.commit(step.record);
        }
        Ok(())
    }

    fn read(&self, id: JobId) -> Result<()> {
        let mut reported = self.world.confirm(&self.lease.term())?;
        let record = self.queue.find(id);
        self.world
            .tell(&mut reported, record.unwrap_or_else(|_| panic!("seed {}: {id} is lost", self.world.seed)));
        Ok(())
    }
}

fn live(world: &World, number: usize) {
    let mut random = world.random(number as u64);
    let mut dir = tempfile::tempdir().unwrap();
    while true_time().unwrap() < END {
        if random.random_bool(0.3) {
            dir = tempfile::tempdir().unwrap();
        }
        let opened = JobStore::open(dir.path(), Some((&world.url, Timeouts::default())));
        let seed = Pcg64Mcg::seed_from_u64(random.next_u64());
        match opened.and_then(|job_store| Leader::begin(world, number, job_store, seed)) {
            Ok(mut leader) => leader.lead(),
            Err(error) => {
                let error = format!("{error:#}");
                assert!(!error.contains("does not honour"), "seed {}: {error}", world.seed);
            }
        }
        sleep(any(&mut random, 30.0));
    }
}

fn history(seed: u64) -> Tally {
    let url = format!("memory://partitions-{seed}");
    let world = Arc::new(World { seed, url, reported: Mutex::default() });
    run(&RATES, |number| {
        let state = Mutex::new((world.random(100 + number as u64), Duration::ZERO));
        let machine = Arc::new(Machine { world: world.clone(), state });
        memory::behind(machine, || live(&world, number));
    });
    // The next service finds all that was confirmed.
    memory::settle(&world.url);
    let dir = tempfile::tempdir().unwrap();
    let hasty = Timeouts { look: Duration::from_millis(1), unchanged_looks: 2, term: COPY_INTERVAL };
    let job_store = JobStore::open(dir.path(), Some((&world.url, hasty))).unwrap();
    let leader = Leader::begin(&world, RATES.len(), job_store, world.random(255)).unwrap();
    let ids: Vec<JobId> = world.reported().jobs.keys().copied().collect();
    ids.into_iter().for_each(|id| leader.read(id).unwrap());
    memory::remove(&world.url);
    drop(leader);
    std::mem::take(&mut world.reported().tally)
}

#[test]
#[ignore = "slow"]
fn partitioned_services_keep_every_guarantee() {
    let seeds = std::env::var("SEEDS").ok().and_then(|text| text.parse().ok()).unwrap_or(SEEDS);
    let tallies = histories(seeds, history);
    let sum = |of: fn(&Tally) -> u64| tallies.iter().map(of).sum::<u64>();
    let all = Tally {
        requests: sum(|tally| tally.requests),
        lost: sum(|tally| tally.lost),
        late: sum(|tally| tally.late),
        partitions: sum(|tally| tally.partitions),
        pauses: sum(|tally| tally.pauses),
        kills: sum(|tally| tally.kills),
        leaders: sum(|tally| tally.leaders),
        accepted: sum(|tally| tally.accepted),
        confirmed: sum(|tally| tally.confirmed),
    };
    println!("{seeds} histories: {all:?}");
    assert!(all.partitions.min(all.pauses).min(all.kills).min(all.late) > seeds / 2, "{all:?}");
    assert!(all.leaders > 3 * seeds && all.accepted > 5 * seeds, "{all:?}");
}
