//! The queue of jobs: a pure state machine over the records of a service.
//!
//! In: [`Event`]s. Out: [`Step`]s, each the new record of a job and what to do once that record is stored. The queue itself changes when a
//! record is stored ([`Queue::commit`]) and not before, so it never shows what a crash would undo.
//!
//! Invariants (`Queue::check`, once all steps of an event are committed): as many jobs run as may, or none waits. Whose job begins, and whose is
//! paused for it, is decided in [`super::shares`].
//!
//! Deliberately absent: fairness between running jobs, which is the fleet's business ([`fleet::Account`]).

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;

use super::record::{JobId, Millis, Record, State};
use super::shares::{Room, Shares};
use crate::job_process::Reason;

/// Something that happened.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Event {
    /// A job was submitted and checked. Its record is in state [`State::Queued`] and has an id that no job had before.
    Accepted(Box<Record>),
    /// A user cancelled a job.
    Cancelled(JobId),
    /// A user resumed a job that had failed or was cancelled.
    Resumed(JobId),
    /// A checkpoint of a running job was stored.
    Checkpointed(JobId),
    /// The process of a running job was lost, and not because its service ended.
    Lost(JobId),
    /// A running job has ended, with a result or with the reason for its failure. Of a job that is over it changes nothing.
    Ended(JobId, Result<Done, Reason>),
    /// A user, or the end of its time, deleted a job.
    Deleted(JobId),
    /// The process of the service has started. Jobs that were running when the last one died wait again; jobs that were stopping are
    /// cancelled.
    Started,
    /// The process of the service is about to end. Running jobs are left to the next process.
    Closed,
    /// Time has passed: a record that could not be stored may be now, and users who wait may have their turn.
    Retried,
}

/// The result of a job.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Done {
    /// The digest of the parameters.
    pub parameters_sha256: String,
    /// Results, as in [`Record::results`].
    pub results: Vec<(String, u64)>,
    /// Checksums, as in [`Record::checksums`].
    pub checksums: BTreeMap<String, String>,
    /// Score, as in [`Record::score`].
    pub score: Option<(String, String)>,
}

/// A change of one job.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Step {
    /// The record to store, in the place of the one before.
    pub record: Record,
    /// Action once it is stored.
    pub then: Then,
}

/// Action once a record is stored.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Then {
    /// No action.
    Nothing,
    /// Begin to train the job.
    Begin,
    /// Stop its training.
    Stop,
}

/// Why an event is refused. Nothing changes then.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum Refusal {
    /// The id belongs to no job.
    #[error("{0}: there is no such job; `grammaton jobs` lists those there are")]
    Unknown(JobId),
    /// A job that is over cannot be cancelled.
    #[error("{0}: the job is {1}, and cannot be cancelled any more")]
    Over(JobId, &'static str),
    /// A job that has a result, or may yet have one, cannot be resumed.
    #[error("{0}: the job is {1}; only one that failed or was cancelled can go on")]
    NotResumable(JobId, &'static str),
    /// A job that is not over cannot be deleted.
    #[error("{0}: the job is {1}; cancel it first, and delete it then")]
    NotOver(JobId, &'static str),
    /// The limit of jobs that wait or run is reached.
    #[error(
        "{0} jobs wait or are in work, and the service takes no more for now; try again when some are over"
    )]
    Full(usize),
    /// The limit of the user's jobs that wait or run is reached.
    #[error(
        "{0} of your jobs wait or run, and the service takes no more of a user for now; try again when some have ended"
    )]
    UserFull(usize),
}

/// All jobs, as they are stored.
#[derive(Debug)]
pub struct Queue {
    jobs: BTreeMap<JobId, Record>,
    /// The newest job of each owner and idempotency key.
    keys: BTreeMap<(String, String), JobId>,
    /// Jobs that wait.
    waiting: BTreeSet<JobId>,
    /// Jobs that run, pause or stop.
    working: BTreeSet<JobId>,
    /// Places for running jobs.
    room: Room,
    /// When each user last got a place: the number of such events.
    served: BTreeMap<String, u64>,
    /// Maximum number of jobs that wait or run.
    most: Most,
}

/// Maximum number of jobs that wait or run.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Most {
    /// Jobs of all users.
    pub jobs: usize,
    /// Jobs of each user.
    pub of_user: usize,
}

/// Number of times in a row that the process of a job may be lost, without a checkpoint in between, before the job fails.
pub const MAX_LOSSES: u32 = 3;

impl Queue {
    /// The jobs of `records`, as another process left them; [`Event::Started`] has them go on.
    pub fn new(records: impl IntoIterator<Item = Record>, room: Room, most: Most) -> Queue {
        let (waiting, working) = (BTreeSet::new(), BTreeSet::new());
        let (jobs, keys, served) = (BTreeMap::new(), BTreeMap::new(), BTreeMap::new());
        let room = Room { n: room.n.max(1), ..room };
        let mut queue = Queue { jobs, keys, waiting, working, room, served, most };
        records.into_iter().for_each(|record| queue.commit(record));
        let begun = queue.jobs.values().filter_map(|record| Some((record.begun?, &record.owner)));
        let begun: BTreeSet<(Millis, &String)> = begun.collect();
        queue.served = begun.into_iter().zip(1..).map(|((_, owner), at)| (owner.clone(), at)).collect();
        queue
    }

    /// Returns the steps that `event` asks for, in their order; no job has two. Each is to be stored and then committed. Where a job that
    /// waits cannot begin because its record cannot be stored, [`Event::Retried`] returns that step again.
    pub fn plan(&self, now: Millis, event: Event) -> Result<Vec<Step>, Refusal> {
        let mut steps = Vec::new();
        let mut step = |record, then| steps.push(Step { record, then });
        match event {
            Event::Accepted(record) => step(*record, Then::Nothing),
            Event::Cancelled(id) => {
                let record = self.find(id)?.clone();
                match record.state {
                    State::Queued => step(record.over(State::Cancelled, now), Then::Nothing),
                    State::Running | State::Pausing => {
                        step(Record { state: State::Stopping, ..record }, Then::Stop);
                    }
                    State::Stopping | State::Cancelled => {}
                    ref over => return Err(Refusal::Over(id, over.name())),
                }
            }
            Event::Resumed(id) => {
                let record = self.find(id)?.clone();
                if !matches!(record.state, State::Failed { .. } | State::Cancelled) {
                    return Err(Refusal::NotResumable(id, record.state.name()));
                }
                self.admit(&record.owner)?;
                step(Record { state: State::Queued, deaths: 0, ended: None, ..record }, Then::Nothing);
            }
            Event::Checkpointed(id) => {
                let record = self.find(id)?.clone();
                if record.deaths > 0 {
                    step(Record { deaths: 0, ..record }, Then::Nothing);
                }
            }
            Event::Lost(id) => {
                let record = self.find(id)?.clone();
                if record.state == State::Running {
                    step(Record { deaths: record.deaths + 1, ..record }, Then::Nothing);
                }
            }
            Event::Deleted(id) => {
                let record = self.find(id)?.clone();
                if !record.state.is_over() {
                    return Err(Refusal::NotOver(id, record.state.name()));
                }
                step(Record { is_deleted: true, ..record }, Then::Nothing);
            }
            Event::Ended(id, how) => {
                let record = self.find(id)?.clone();
                if record.state.is_over() {
                    return Ok(steps);
                }
                if how.is_err() && record.state == State::Pausing {
                    step(Record { state: State::Queued, ..record }, Then::Nothing);
                    self.share(now, &mut steps);
                    return Ok(steps);
                }
                let (state, done) = match (how, &record.state) {
                    // A result counts even if it comes while the job stops.
                    (Ok(mut done), _) => {
                        let parameters_sha256 = std::mem::take(&mut done.parameters_sha256);
                        (State::Done { parameters_sha256 }, done)
                    }
                    (Err(_), State::Stopping) => (State::Cancelled, Done::default()),
                    (Err(Reason(error)), _) => (State::Failed { error }, Done::default()),
                };
                let Done { results, checksums, score, .. } = done;
                step(Record { results, checksums, score, ..record }.over(state, now), Then::Nothing);
            }
            Event::Started | Event::Closed => self.working().cloned().for_each(|record| match record.state {
                State::Stopping => step(record.over(State::Cancelled, now), Then::Nothing),
                _ => step(Record { state: State::Queued, ..record }, Then::Nothing),
            }),
            Event::Retried => {}
        }
        self.share(now, &mut steps);
        Ok(steps)
    }

    /// Adds the beginnings and pauses that follow from the shares of users once `steps` are done. A job has one step at most.
    fn share(&self, now: Millis, steps: &mut Vec<Step>) {
        let of: BTreeMap<JobId, usize> =
            steps.iter().enumerate().map(|(at, step)| (step.record.id, at)).collect();
        let unchanged = self.waiting.iter().chain(&self.working).filter(|id| !of.contains_key(id));
        let jobs = unchanged.filter_map(|id| self.jobs.get(id)).chain(steps.iter().map(|step| &step.record));
        let (begin, pause) = Shares::new(self.room, jobs, &self.served).decide(now);
        let begin = begin.into_iter().map(|record| {
            let (state, starts) = (State::Running, record.starts + 1);
            let record = Record { state, starts, begun: Some(now), ..record.clone() };
            Step { record, then: Then::Begin }
        });
        let pause = pause.into_iter().map(|record| {
            let record = Record { state: State::Pausing, ..record.clone() };
            Step { record, then: Then::Stop }
        });
        for step in begin.chain(pause).collect::<Vec<_>>() {
            match of.get(&step.record.id) {
                Some(&at) => steps[at] = step,
                None => steps.push(step),
            }
        }
    }

    /// Takes note of a record that is stored.
    pub fn commit(&mut self, record: Record) {
        let id = record.id;
        let before = self.jobs.remove(&id);
        self.waiting.remove(&id);
        self.working.remove(&id);
        let newest = self.keys.entry(key(&record)).or_insert(id);
        *newest = id.max(*newest);
        if record.is_deleted {
            if self.keys.get(&key(&record)) == Some(&id) {
                self.keys.remove(&key(&record));
            }
            return;
        }
        match record.state {
            State::Queued => drop(self.waiting.insert(id)),
            State::Running | State::Pausing | State::Stopping => drop(self.working.insert(id)),
            State::Done { .. } | State::Failed { .. } | State::Cancelled => {}
        }
        if record.state == State::Running && before.is_none_or(|before| before.starts < record.starts) {
            let latest = self.served.values().copied().max().unwrap_or(0);
            self.served.insert(record.owner.clone(), latest + 1);
        }
        self.jobs.insert(id, record);
    }

    /// Has no job begin any more.
    pub fn close(&mut self) {
        self.room.n = 0;
    }

    /// Refuses one more job if the limit is reached.
    pub fn admit(&self, owner: &str) -> Result<(), Refusal> {
        let n = self.waiting.len() + self.working.len();
        if n >= self.most.jobs {
            return Err(Refusal::Full(n));
        }
        let unfinished = self.waiting.iter().chain(&self.working);
        let of_user = unfinished.filter(|id| self.jobs[id].owner == owner).count();
        if of_user >= self.most.of_user { Err(Refusal::UserFull(of_user)) } else { Ok(()) }
    }

    /// The record of a job.
    pub fn find(&self, id: JobId) -> Result<&Record, Refusal> {
        self.jobs.get(&id).ok_or(Refusal::Unknown(id))
    }

    /// All jobs, the newest first.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = &Record> {
        self.jobs.values().rev()
    }

    /// The newest job that `owner` submitted with that key; none without a key.
    pub fn with_key(&self, owner: &str, key: &str) -> Option<&Record> {
        let id = self.keys.get(&(owner.to_owned(), key.to_owned())).filter(|_| !key.is_empty());
        id.and_then(|id| self.jobs.get(id))
    }

    /// The jobs that are older than `before`, the newest first.
    pub fn older(&self, before: Option<JobId>) -> impl Iterator<Item = &Record> {
        let end = before.map_or(Bound::Unbounded, Bound::Excluded);
        self.jobs.range((Bound::Unbounded, end)).rev().map(|(_, record)| record)
    }

    /// The jobs that run, pause or stop.
    pub fn working(&self) -> impl Iterator<Item = &Record> {
        self.working.iter().filter_map(|id| self.jobs.get(id))
    }

    /// Number of jobs that begin before each of `jobs` that waits, if nothing else happens, by one pass over all that wait.
    pub fn ahead(&self, jobs: &BTreeSet<JobId>) -> BTreeMap<JobId, usize> {
        if jobs.is_empty() {
            return BTreeMap::new();
        }
        let unfinished = self.waiting.iter().chain(&self.working).filter_map(|id| self.jobs.get(id));
        let order = Shares::new(self.room, unfinished, &self.served).order();
        order.zip(0..).filter(|(id, _)| jobs.contains(id)).collect()
    }

    /// Number of jobs in each state, by its name.
    pub fn by_state(&self) -> BTreeMap<&'static str, usize> {
        let mut by_state = BTreeMap::new();
        self.jobs.values().for_each(|record| *by_state.entry(record.state.name()).or_default() += 1);
        by_state
    }

    /// Checks the invariants; an error names the one that does not hold.
    pub fn check(&self) -> Result<(), &'static str> {
        let in_state = |is: fn(&State) -> bool| self.jobs.values().filter(move |record| is(&record.state));
        let waiting: BTreeSet<_> =
            in_state(|state| *state == State::Queued).map(|record| record.id).collect();
        let working: BTreeSet<_> = in_state(State::is_working).map(|record| record.id).collect();
        if waiting != self.waiting {
            Err("the waiting jobs are not listed")
        } else if working != self.working {
            Err("the running jobs are not listed")
        } else if working.len() > self.room.n {
            Err("too many jobs run")
        } else if working.len() < self.room.n && !waiting.is_empty() {
            Err("a job waits while there is room")
        } else {
            Ok(())
        }
    }
}

/// The owner of a job and its idempotency key, by which it is found if it is submitted again.
fn key(record: &Record) -> (String, String) {
    (record.owner.clone(), record.key.clone())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::record::tests::record;

    const MOST: Most = Most { jobs: 99, of_user: 99 };

    fn accepted(id: u64, priority: u32) -> Event {
        accepted_of("ann", id, priority)
    }

    fn accepted_of(owner: &str, id: u64, priority: u32) -> Event {
        Event::Accepted(Box::new(Record { priority, owner: owner.into(), ..record(id, State::Queued) }))
    }

    fn places(n: usize) -> Room {
        Room { n, priority_bound: 2 }
    }

    fn begun(steps: &[Step]) -> Vec<u64> {
        let begun = |step: &Step| (step.then == Then::Begin).then_some(step.record.id.0);
        steps.iter().filter_map(begun).collect()
    }

    /// Storage that never fails: commits each step at once.
    fn handle(queue: &mut Queue, now: u64, event: Event) -> Result<Vec<Step>, Refusal> {
        if event == Event::Closed {
            queue.close();
        }
        let steps = queue.plan(Millis(now), event)?;
        steps.iter().for_each(|step| queue.commit(step.record.clone()));
        assert_eq!(queue.check(), Ok(()), "after {steps:?}");
        Ok(steps)
    }

    /// A queue of `records`, in a process that has just started.
    fn start(records: impl IntoIterator<Item = Record>, room: usize, now: u64) -> (Queue, Vec<Step>) {
        let mut queue = Queue::new(records, places(room), MOST);
        let steps = handle(&mut queue, now, Event::Started).unwrap();
        (queue, steps)
    }

    #[test]
    fn of_a_user_the_highest_priority_begins_first_and_then_the_oldest() {
        let mut queue = start([], 1, 0).0;
        let mut handle = |event| begun(&handle(&mut queue, 1, event).unwrap());
        assert_eq!(handle(accepted(1, 10)), [1]);
        for (id, priority) in [(2, 10), (3, 20), (4, 10), (5, 20)] {
            assert_eq!(handle(accepted(id, priority)), [0; 0]);
        }
        let order = [1, 3, 5, 2].map(|id| handle(Event::Ended(JobId(id), Ok(Done::default()))));
        assert_eq!(order, [[3], [5], [2], [4]]);
        assert!(queue.ahead(&[JobId(4)].into()).is_empty());
    }

    #[test]
    fn a_job_that_begins_at_once_is_stored_once() {
        let mut queue = start([], 1, 0).0;
        let steps = handle(&mut queue, 1, accepted(1, 10)).unwrap();
        let [Step { record, then: Then::Begin }] = &steps[..] else { panic!("{steps:?}") };
        assert_eq!((&record.state, record.starts, record.begun), (&State::Running, 1, Some(Millis(1))));
        let steps = start(queue.iter().cloned(), 1, 2).1;
        let [Step { record, then: Then::Begin }] = &steps[..] else { panic!("{steps:?}") };
        assert_eq!((&record.state, record.starts, record.deaths), (&State::Running, 2, 0));
    }

    /// A job that waits has before it the jobs that begin before it, of its owner and of others.
    #[test]
    fn ranks_are_the_order_in_which_jobs_begin() {
        let waiting = (1..=50).map(|id| Record {
            priority: id as u32 % 5 + 1,
            owner: ["ann", "bob", "eve"][id as usize * 7 % 3].into(),
            ..record(id, State::Queued)
        });
        let (mut queue, steps) = start(waiting, 1, 0);
        let mut ranked: Vec<(usize, u64)> = queue
            .ahead(&queue.iter().map(|record| record.id).collect())
            .into_iter()
            .map(|(id, rank)| (rank, id.0))
            .collect();
        ranked.sort_unstable();
        let mut order = begun(&steps);
        while let Some(&id) = queue.working.first() {
            order.extend(begun(&handle(&mut queue, 1, Event::Ended(id, Ok(Done::default()))).unwrap()));
        }
        assert_eq!(ranked.iter().map(|(_, id)| *id).collect::<Vec<_>>(), order[1..]);
        assert!(ranked.iter().map(|(rank, _)| *rank).eq(0..49));
    }

    #[test]
    fn after_a_crash_running_jobs_begin_again_and_stopping_ones_are_cancelled() {
        let mut queue = start([], 2, 0).0;
        for event in [accepted(1, 1), accepted(2, 1), accepted(3, 9), Event::Cancelled(JobId(2))] {
            handle(&mut queue, 1, event).unwrap();
        }
        let (queue, steps) = start(queue.iter().cloned(), 2, 5);
        assert_eq!(begun(&steps), [1, 3]);
        let second = queue.find(JobId(2)).unwrap();
        assert_eq!((&second.state, second.ended), (&State::Cancelled, Some(Millis(5))));
    }

    #[test]
    fn a_user_with_as_many_jobs_as_allowed_leaves_places_to_others() {
        let mut queue = Queue::new([], places(1), Most { jobs: 3, of_user: 2 });
        for id in [1, 2] {
            handle(&mut queue, 1, accepted(id, 10)).unwrap();
        }
        let owner = queue.find(JobId(1)).unwrap().owner.clone();
        assert_eq!(queue.admit(&owner), Err(Refusal::UserFull(2)));
        assert_eq!(queue.admit("another"), Ok(()));
        handle(&mut queue, 2, Event::Cancelled(JobId(2))).unwrap();
        assert_eq!(queue.admit(&owner), Ok(()), "what has ended does not count");
    }

    #[test]
    fn refusals_say_why() {
        let mut queue = Queue::new([], places(1), Most { jobs: 2, of_user: 2 });
        handle(&mut queue, 1, accepted(1, 10)).unwrap();
        let refused = |queue: &Queue, event| queue.plan(Millis(2), event).unwrap_err();
        assert_eq!(refused(&queue, Event::Cancelled(JobId(7))), Refusal::Unknown(JobId(7)));
        assert_eq!(refused(&queue, Event::Resumed(JobId(1))), Refusal::NotResumable(JobId(1), "running"));
        handle(&mut queue, 3, accepted(2, 10)).unwrap();
        assert_eq!(queue.admit("ann").unwrap_err(), Refusal::Full(2));
        let not_over = refused(&queue, Event::Deleted(JobId(1))).to_string();
        assert_eq!(not_over, "1: the job is running; cancel it first, and delete it then");
        handle(&mut queue, 4, Event::Ended(JobId(1), Err("bad corpus".into()))).unwrap();
        assert_eq!(refused(&queue, Event::Cancelled(JobId(1))), Refusal::Over(JobId(1), "failed"));
        handle(&mut queue, 6, Event::Resumed(JobId(1))).unwrap();
        assert_eq!(queue.find(JobId(1)).unwrap().state, State::Queued);
        handle(&mut queue, 7, Event::Cancelled(JobId(1))).unwrap();
        handle(&mut queue, 7, Event::Cancelled(JobId(1))).expect("twice is once");
    }

    #[test]
    fn a_result_counts_even_if_it_comes_while_stopping() {
        let mut queue = start([], 1, 0).0;
        let score = Some(("token F1, mbr".to_owned(), "0.882".to_owned()));
        let results = vec![("summary.json".into(), 7)];
        let checksums = [("summary.json".to_owned(), "cd".to_owned())].into();
        let done = Done { parameters_sha256: "ab".into(), results, checksums, score: score.clone() };
        for event in [accepted(1, 10), Event::Cancelled(JobId(1)), Event::Ended(JobId(1), Ok(done.clone()))] {
            handle(&mut queue, 1, event).unwrap();
        }
        handle(&mut queue, 1, Event::Ended(JobId(1), Err("twice".into()))).unwrap();
        let record = queue.find(JobId(1)).unwrap();
        assert_eq!(record.state, State::Done { parameters_sha256: "ab".into() });
        assert_eq!(record.score, score);
        assert_eq!((&record.results, &record.checksums), (&done.results, &done.checksums));
    }

    #[test]
    fn a_deleted_job_frees_its_key() {
        let mut queue = start([], 1, 0).0;
        let keyed = Record { key: "k".into(), ..record(1, State::Queued) };
        for event in [Event::Accepted(Box::new(keyed)), Event::Ended(JobId(1), Err("no".into()))] {
            handle(&mut queue, 1, event).unwrap();
        }
        assert_eq!(queue.with_key("ann", "k").map(|record| record.id), Some(JobId(1)));
        handle(&mut queue, 2, Event::Deleted(JobId(1))).unwrap();
        assert!(queue.with_key("ann", "k").is_none() && queue.find(JobId(1)).is_err());
    }

    proptest! {
        /// Only the loss of its own process counts against a job, until there is a checkpoint: neither a service that ends nor one that
        /// dies, however often. And each start is stored before it happens.
        #[test]
        fn the_loss_of_its_own_process_counts_and_no_death_of_the_service(
            happens in proptest::collection::vec(0u8..5, 1..40),
        ) {
            let (mut queue, _) = start([record(1, State::Queued)], 1, 0);
            let (mut losses, mut starts) = (0, 1);
            for what in happens {
                match what {
                    0 => {
                        losses = 0;
                        handle(&mut queue, 1, Event::Checkpointed(JobId(1))).unwrap();
                    }
                    1 => {
                        losses += 1;
                        handle(&mut queue, 1, Event::Lost(JobId(1))).unwrap();
                    }
                    death => {
                        if death == 2 {
                            handle(&mut queue, 1, Event::Closed).unwrap();
                        }
                        queue = start(queue.iter().cloned(), 1, 2).0;
                        starts += 1;
                    }
                }
                let record = queue.find(JobId(1)).unwrap();
                prop_assert_eq!((&record.state, record.starts, record.deaths), (&State::Running, starts, losses));
            }
        }

        /// With any events, storage that fails at any step, and a process that dies at any moment: the queue shows what is stored, a job
        /// that was accepted is not lost, no event changes a job twice, and all jobs end.
        #[test]
        fn nothing_is_lost(
            happens in proptest::collection::vec((0u8..6, 1u64..9, 1u32..4, 0usize..4), 1..60), room in 1usize..4,
        ) {
            let mut queue = start([], room, 0).0;
            let mut disk: BTreeMap<JobId, Record> = BTreeMap::new();
            let mut next = 1;
            for (what, id, priority, stored) in happens {
                let id = JobId(id);
                let event = match what {
                    0 => accepted_of(["ann", "bob"][id.0 as usize % 2], next, priority),
                    1 => Event::Cancelled(id),
                    2 => Event::Resumed(id),
                    3 if queue.working.contains(&id) => {
                        Event::Ended(id, if priority == 1 { Err("no".into()) } else { Ok(Done::default()) })
                    }
                    4 => Event::Retried,
                    _ => {
                        queue = Queue::new(disk.values().cloned(), places(room), MOST);
                        Event::Started
                    }
                };
                let Ok(steps) = queue.plan(Millis(1), event) else { continue };
                let ids: BTreeSet<JobId> = steps.iter().map(|step| step.record.id).collect();
                prop_assert_eq!(ids.len(), steps.len(), "a job has one step");
                // Three of four times all are stored.
                let n = if stored == 0 { priority as usize - 1 } else { steps.len() };
                for Step { record, .. } in steps.iter().take(n) {
                    disk.insert(record.id, record.clone());
                    queue.commit(record.clone());
                }
                next += u64::from(what == 0 && n > 0);
                prop_assert!(queue.iter().rev().eq(disk.values()));
                prop_assert_eq!(queue.jobs.len() as u64, next - 1);
                if n >= steps.len() {
                    prop_assert_eq!(queue.check(), Ok(()));
                }
            }
            handle(&mut queue, 2, Event::Retried).unwrap();
            while let Some(&id) = queue.working.first() {
                handle(&mut queue, 2, Event::Ended(id, Ok(Done::default()))).unwrap();
            }
            prop_assert!(queue.iter().all(|record| record.state.is_over()));
        }
    }
}
