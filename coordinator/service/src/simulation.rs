//! Histories of a service, drawn from seeds: submissions, cancellations, resumptions, deletions and restarts, while storage fails from one step
//! on, for one step, or is cut off by a kill, on disk and in an object store in memory.
//!
//! A client records the answers that it got. Laws, after every step:
//!
//! 1. A job that was acknowledged is there, unless its deletion was asked for.
//! 2. An id is that of one job: of a key it stays the same until the job is deleted, and new ids are higher than all before.
//! 3. A job that was reported as done is done, with the digest that `train` gives; it is cancelled only if that was asked for, and fails only
//!    by a fault of storage; what was reported as cancelled stays so until a resumption is asked for.
//! 4. At the end, without faults, every job comes to an end.
//!
//! `HISTORIES=5000 cargo nextest run histories` draws more of them.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;

use super::record::{JobId, State};
use super::tests::{Kill, Place, ann, histories, ids, over, submit};
use super::{Problem, Refusal, Service};

/// Histories of a test run, unless the environment says otherwise.
const HISTORIES: u64 = 300;
/// Steps of a history.
const STEPS: usize = 12;
/// Keys of submissions; each has a corpus of its own.
const KEYS: usize = 4;
/// Steps of storage among which the one that fails is drawn.
const FAULTS: usize = 30;
const CLOSE_WITHIN: Duration = Duration::from_secs(60);

/// The client's knowledge of a job.
#[derive(Clone, Default, Debug)]
struct Known {
    key: usize,
    /// Whether a cancellation was asked for, successful or not, since it was last reported to run.
    may_be_cancelled: bool,
    may_be_deleted: bool,
    /// Whether it was reported as cancelled, and no resumption was asked for since.
    is_cancelled: bool,
    /// Whether a stop of the job was reported, and may still have a result.
    is_stopped: bool,
    /// The digest, once it was reported as done.
    done: Option<String>,
}

/// Totals over all histories.
#[derive(Default, Debug)]
struct Tally {
    events: u64,
    failures: u64,
    kills: u64,
    restarts: u64,
    done: u64,
    cancelled: u64,
}

impl Tally {
    fn add(&mut self, other: &Tally) {
        self.events += other.events;
        self.failures += other.failures;
        self.kills += other.kills;
        self.restarts += other.restarts;
        self.done += other.done;
        self.cancelled += other.cancelled;
    }
}

struct World {
    random: Pcg64Mcg,
    place: Arc<Place>,
    service: Service,
    known: BTreeMap<JobId, Known>,
    /// The highest id that was reported, also of jobs that were deleted.
    highest: Option<JobId>,
    /// Digests of the jobs of all keys, undisturbed.
    expected: Vec<String>,
    /// Whether storage has failed so far.
    has_failed: bool,
    tally: Tally,
    /// The steps, for a message.
    history: Vec<String>,
}

/// A step of a client.
#[derive(Clone, Copy, Debug)]
enum Act {
    Submit(usize),
    Cancel(JobId),
    Resume(JobId),
    Delete(JobId),
    Await(JobId),
    Restart,
}

impl World {
    fn draw(&mut self) -> Act {
        let ids: Vec<JobId> = self.known.keys().copied().collect();
        let any = |random: &mut Pcg64Mcg| ids[random.random_range(0..ids.len())];
        match self.random.random_range(0..if ids.is_empty() { 3 } else { 12 }) {
            0..3 => Act::Submit(self.random.random_range(0..KEYS)),
            3 => Act::Restart,
            4 | 5 => Act::Cancel(any(&mut self.random)),
            6 | 7 => Act::Resume(any(&mut self.random)),
            8 => Act::Delete(any(&mut self.random)),
            _ => Act::Await(any(&mut self.random)),
        }
    }

    /// Does a step while storage fails from its `n`-th operation on, or in that one; or kills the process there.
    fn step(&mut self) {
        let act = self.draw();
        let fault = self.random.random_range(0..5);
        self.tally.events += 1;
        self.history.push(format!("{act:?} {fault}"));
        if fault > 1 || matches!(act, Act::Await(_) | Act::Restart) {
            self.execute(act);
        } else {
            let n = self.random.random_range(1..FAULTS);
            let kill = Kill::at(n, &self.place.clone(), fault == 0);
            let before = (self.known.clone(), self.highest);
            kill.during(|| self.execute(act));
            if let Some(killed) = kill.killed() {
                self.has_failed = true;
                if fault == 0 {
                    self.tally.failures += 1;
                } else {
                    self.tally.kills += 1;
                    self.follow(killed, before, act);
                }
            }
        }
        self.check();
    }

    /// Goes on where the process was killed. Its later answers did not arrive.
    fn follow(&mut self, killed: Place, before: (BTreeMap<JobId, Known>, Option<JobId>), act: Act) {
        self.service.close(CLOSE_WITHIN);
        self.place = Arc::new(killed);
        self.service = self.place.serve();
        let reported = std::mem::replace(&mut self.known, before.0);
        self.highest = before.1;
        // What the client may have asked for before the kill may have happened.
        for (id, known) in &mut self.known {
            let reported = reported.get(id).cloned().unwrap_or_default();
            known.may_be_cancelled |= reported.may_be_cancelled;
            known.may_be_deleted |= matches!(act, Act::Delete(of) if of == *id);
            known.is_cancelled &= reported.is_cancelled;
            known.is_stopped &= reported.is_stopped;
        }
        for id in ids(&self.service) {
            if let Act::Submit(key) = act {
                self.known.entry(id).or_insert(Known { key, ..Known::default() });
            }
        }
    }

    fn execute(&mut self, act: Act) {
        match act {
            Act::Submit(key) => self.submit(key),
            Act::Cancel(id) => {
                self.known.entry(id).or_default().may_be_cancelled = true;
                let answer = self.service.cancel(&ann(), id);
                if let Ok(view) = answer {
                    let state = view.record.state;
                    assert!(
                        matches!(state, State::Stopping | State::Cancelled),
                        "{id} {state:?}: {}",
                        self.history()
                    );
                }
            }
            Act::Resume(id) => {
                let known = self.known.entry(id).or_default();
                (known.is_cancelled, known.is_stopped) = (false, false);
                let is_resumed = self.service.resume(&ann(), id).is_ok();
                assert!(!(is_resumed && known.done.is_some()), "{id}: what is done is not resumed");
            }
            Act::Delete(id) => {
                self.known.entry(id).or_default().may_be_deleted = true;
                if self.service.delete(&ann(), id).is_ok() {
                    self.known.remove(&id);
                }
            }
            Act::Await(id) => {
                if self.service.job(id).is_ok() {
                    let state = over(&self.service, id).state;
                    self.record(id, &state);
                }
            }
            Act::Restart => {
                self.tally.restarts += 1;
                self.service.close(CLOSE_WITHIN);
                // The lease of the object store is not over: another place has what is stored.
                let killed = self.place.killed();
                self.place = Arc::new(killed);
                self.service = self.place.serve();
            }
        }
    }

    fn submit(&mut self, key: usize) {
        let Ok(id) = submit(&self.service, &name(key)) else {
            // It may have been accepted; the next one of this key says.
            return;
        };
        match self.known.get(&id) {
            Some(known) => assert_eq!(known.key, key, "{id} has two keys: {}", self.history()),
            None => {
                let same = self.known.iter().find(|(_, known)| known.key == key && !known.may_be_deleted);
                assert!(same.is_none(), "{key} has two jobs, {id} and {same:?}: {}", self.history());
                assert!(Some(id) > self.highest, "{id} was used before: {}", self.history());
                self.highest = Some(id);
                self.known.insert(id, Known { key, ..Known::default() });
            }
        }
    }

    /// Takes note of the state of a job.
    fn record(&mut self, id: JobId, state: &State) {
        let (history, has_failed) = (self.history(), self.has_failed);
        let known = self.known.entry(id).or_default();
        match state {
            State::Done { parameters_sha256 } => {
                assert_eq!(*parameters_sha256, self.expected[known.key], "{id}: {history}");
                assert!(!known.is_cancelled, "{id} was cancelled, and is done: {history}");
                self.tally.done += u64::from(known.done.is_none());
                known.done = Some(parameters_sha256.clone());
            }
            state => {
                assert!(known.done.is_none(), "{id} was done, and is {state:?}: {history}");
                let is_cancelled = std::mem::replace(&mut known.is_cancelled, *state == State::Cancelled);
                assert!(
                    !is_cancelled || known.is_cancelled,
                    "{id} was cancelled, and is {state:?}: {history}"
                );
                known.is_stopped |= matches!(state, State::Stopping | State::Cancelled);
                match state {
                    State::Queued | State::Running | State::Pausing => {
                        assert!(!known.is_stopped, "{id} was stopped, and is {state:?}: {history}");
                    }
                    State::Cancelled => {
                        assert!(known.may_be_cancelled, "{id}: {history}");
                        self.tally.cancelled += 1;
                    }
                    State::Failed { error } => assert!(has_failed, "{id}: {error}: {history}"),
                    State::Stopping => assert!(known.may_be_cancelled, "{id}: {history}"),
                    State::Done { .. } => {}
                }
            }
        }
    }

    /// The laws that hold at any time.
    fn check(&mut self) {
        let jobs: Vec<(JobId, Known)> = self.known.iter().map(|(&id, known)| (id, known.clone())).collect();
        for (id, known) in jobs {
            match self.service.job(id) {
                Ok(view) => self.record(id, &view.record.state),
                Err(Problem::Refused(Refusal::Unknown(_))) if known.may_be_deleted => {
                    self.known.remove(&id);
                }
                Err(problem) => panic!("{id} is lost: {problem}: {}", self.history()),
            }
        }
    }

    fn history(&self) -> String {
        self.history.join(", ")
    }
}

fn name(key: usize) -> String {
    format!("{}ba", "ab ".repeat(key + 1))
}

fn history(seed: u64, is_remote: bool, expected: &[String]) -> Tally {
    let place = Arc::new(Place::new(is_remote));
    let service = place.serve();
    let mut world = World {
        random: Pcg64Mcg::seed_from_u64(seed),
        place,
        service,
        known: BTreeMap::new(),
        highest: None,
        expected: expected.to_vec(),
        has_failed: false,
        tally: Tally::default(),
        history: vec![format!("seed {seed}, object store: {is_remote}")],
    };
    for _ in 0..STEPS {
        world.step();
    }
    let ids: Vec<JobId> = world.known.keys().copied().collect();
    ids.into_iter().for_each(|id| world.execute(Act::Await(id)));
    world.service.close(CLOSE_WITHIN);
    world.tally
}

#[test]
#[ignore = "slow"]
fn every_history_keeps_every_guarantee() {
    let undisturbed = Place::new(false);
    let service = undisturbed.serve();
    let expected: Vec<String> = (0..KEYS)
        .map(|key| {
            let id = submit(&service, &name(key)).unwrap();
            match over(&service, id).state {
                State::Done { parameters_sha256 } => parameters_sha256,
                state => panic!("{state:?}"),
            }
        })
        .collect();
    service.close(CLOSE_WITHIN);
    let n = std::env::var("HISTORIES").ok().and_then(|text| text.parse().ok()).unwrap_or(HISTORIES);
    let mut all = Tally::default();
    histories(n, |seed| history(seed, seed % 2 == 1, &expected)).iter().for_each(|tally| all.add(tally));
    println!("{n} histories: {all:?}");
    assert!(all.failures.min(all.kills).min(all.done) > n / 4 && all.cancelled > 0, "{all:?}");
}
