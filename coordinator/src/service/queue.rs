//! Which jobs are in work, and which wait: a pure state machine over all records of a service.
//!
//! In: [`Event`]s. Out: [`Action`]s, for whoever owns disk and threads. Invariants (`Queue::check`, after each event): as many jobs are in
//! work as may be, or none waits; none that waits has a higher priority than another one had when that began while it waited; a record that changed is to be
//! saved before anything else is done about it.
//!
//! Deliberately absent: fairness between jobs in work, which is the fleet's business ([`crate::fleet::Account`]).

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;

use super::record::{JobId, Millis, Record, State};

/// What happened.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Event {
    /// A job was accepted: its record is written down, in state [`State::Queued`], with an id that was never used before.
    Accepted(Box<Record>),
    /// It is wanted no more.
    Cancelled(JobId),
    /// It is to go on.
    Resumed(JobId),
    /// A checkpoint of it was written.
    Checkpointed(JobId),
    /// The job has ended: with a result, or with the reason why there is none.
    Ended(JobId, Result<Done, String>),
    /// It was deleted; its record says so.
    Deleted(JobId),
    /// The service ends as it was told to: jobs in work are left for the next process, and no other begins.
    Closed,
}

/// The result of a job.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Done {
    /// The digest of the parameters.
    pub parameters_sha256: String,
    /// As in [`Record::results`].
    pub results: Vec<(String, u64)>,
}

/// What to do, in this order.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Action {
    /// Write the record down.
    Save(JobId),
    /// Begin to work on the job.
    Begin(JobId),
    /// Have whoever works on it end.
    Stop(JobId),
}

/// Why nothing happened.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum Refusal {
    /// No such job.
    #[error("{0}: there is no such job; `grammaton jobs` lists those there are")]
    Unknown(JobId),
    /// It is over already.
    #[error("{0}: the job is {1}, and cannot be cancelled any more")]
    Over(JobId, &'static str),
    /// It has a result, or is yet to have one.
    #[error("{0}: the job is {1}; only one that failed or was cancelled can go on")]
    NotResumable(JobId, &'static str),
    /// It is not over yet.
    #[error("{0}: the job is {1}; cancel it first, and delete it then")]
    NotOver(JobId, &'static str),
    /// There are too many that are not over.
    #[error(
        "{0} jobs wait or are in work, and the service takes no more for now; try again when some are over"
    )]
    Full(usize),
}

/// All jobs.
#[derive(Debug)]
pub struct Queue {
    jobs: BTreeMap<JobId, Record>,
    /// The newest job of each owner and key.
    keys: BTreeMap<(String, String), JobId>,
    /// Those that wait, the next one last.
    waiting: BTreeSet<(u32, std::cmp::Reverse<JobId>)>,
    /// Those in work, or stopping.
    working: BTreeSet<JobId>,
    /// How many may be in work at a time.
    room: usize,
    /// How many may wait or be in work.
    limit: usize,
}

/// How many times in a row the process of a service may die while a job runs, with no checkpoint between, before the job has failed.
const MAX_DEATHS: u32 = 3;

impl Queue {
    /// All there were when another process ended, however it did: those in work wait again, unless too many processes died under them, and
    /// those that were stopping are cancelled.
    pub fn new(
        records: impl IntoIterator<Item = Record>,
        room: usize,
        limit: usize,
        now: Millis,
    ) -> (Queue, Vec<Action>) {
        let (waiting, working) = (BTreeSet::new(), BTreeSet::new());
        let (jobs, keys) = (BTreeMap::new(), BTreeMap::new());
        let mut queue = Queue { jobs, keys, waiting, working, room: room.max(1), limit };
        let mut actions = Vec::new();
        for mut record in records {
            let id = record.id;
            match record.state {
                State::Running => {
                    record.deaths += 1;
                    record.state = State::Queued;
                    if record.deaths >= MAX_DEATHS {
                        let error = format!(
                            "the service's process died {} times in a row while the job ran, with no checkpoint between \
                             (killed, out of memory or aborted: the service's log may say more); resume the job to try again",
                            record.deaths
                        );
                        (record.state, record.ended) = (State::Failed { error }, Some(now));
                    }
                    actions.push(Action::Save(id));
                }
                State::Stopping => {
                    (record.state, record.ended) = (State::Cancelled, Some(now));
                    actions.push(Action::Save(id));
                }
                _ => {}
            }
            if record.state == State::Queued {
                queue.waiting.insert(place(&record));
            }
            queue.jobs.insert(id, record);
        }
        queue.keys = queue.jobs.values().map(|record| (key(record), record.id)).collect();
        queue.begin(now, &mut actions);
        (queue, actions)
    }

    /// Takes note of `event` and says what to do.
    pub fn handle(&mut self, now: Millis, event: Event) -> Result<Vec<Action>, Refusal> {
        let mut actions = Vec::new();
        match event {
            Event::Accepted(record) => {
                self.waiting.insert(place(&record));
                self.keys.insert(key(&record), record.id);
                self.jobs.insert(record.id, *record);
            }
            Event::Cancelled(id) => {
                let record = self.jobs.get_mut(&id).ok_or(Refusal::Unknown(id))?;
                match record.state {
                    State::Queued => {
                        self.waiting.remove(&place(record));
                        (record.state, record.ended) = (State::Cancelled, Some(now));
                        actions.push(Action::Save(id));
                    }
                    State::Running => {
                        record.state = State::Stopping;
                        actions.extend([Action::Save(id), Action::Stop(id)]);
                    }
                    State::Stopping | State::Cancelled => {}
                    ref over => return Err(Refusal::Over(id, over.name())),
                }
            }
            Event::Resumed(id) => {
                let record = self.jobs.get(&id).ok_or(Refusal::Unknown(id))?;
                if !matches!(record.state, State::Failed { .. } | State::Cancelled) {
                    return Err(Refusal::NotResumable(id, record.state.name()));
                }
                self.admit()?;
                let record = self.jobs.get_mut(&id).ok_or(Refusal::Unknown(id))?;
                (record.state, record.deaths, record.ended) = (State::Queued, 0, None);
                self.waiting.insert(place(record));
                actions.push(Action::Save(id));
            }
            Event::Checkpointed(id) => {
                let record = self.jobs.get_mut(&id).ok_or(Refusal::Unknown(id))?;
                if record.deaths > 0 {
                    record.deaths = 0;
                    actions.push(Action::Save(id));
                }
            }
            Event::Deleted(id) => {
                let key = key(self.deletable(id)?);
                self.jobs.remove(&id);
                if self.keys.get(&key) == Some(&id) {
                    self.keys.remove(&key);
                }
            }
            Event::Closed => {
                self.room = 0;
                for id in std::mem::take(&mut self.working) {
                    let Some(record) = self.jobs.get_mut(&id) else { continue };
                    if record.state == State::Stopping {
                        (record.state, record.ended) = (State::Cancelled, Some(now));
                    } else {
                        record.state = State::Queued;
                        self.waiting.insert(place(record));
                    }
                    actions.push(Action::Save(id));
                }
            }
            Event::Ended(id, how) => {
                let record = self.jobs.get_mut(&id).ok_or(Refusal::Unknown(id))?;
                self.working.remove(&id);
                self.waiting.remove(&place(record)); // the service may have closed meanwhile
                record.ended = Some(now);
                record.state = match (how, &record.state) {
                    // A result is a result, even if it came while the job was stopping.
                    (Ok(Done { parameters_sha256, results }), _) => {
                        record.results = results;
                        State::Done { parameters_sha256 }
                    }
                    (Err(_), State::Stopping) => State::Cancelled,
                    (Err(error), _) => State::Failed { error },
                };
                actions.push(Action::Save(id));
            }
        }
        self.begin(now, &mut actions);
        debug_assert_eq!(self.check(), Ok(()), "after {actions:?}");
        Ok(actions)
    }

    /// Whether one more may wait.
    pub fn admit(&self) -> Result<(), Refusal> {
        let n = self.waiting.len() + self.working.len();
        if n >= self.limit { Err(Refusal::Full(n)) } else { Ok(()) }
    }

    /// The record of a job that may be deleted.
    pub fn deletable(&self, id: JobId) -> Result<&Record, Refusal> {
        let record = self.jobs.get(&id).ok_or(Refusal::Unknown(id))?;
        if record.state.is_over() { Ok(record) } else { Err(Refusal::NotOver(id, record.state.name())) }
    }

    fn begin(&mut self, now: Millis, actions: &mut Vec<Action>) {
        while self.working.len() < self.room
            && let Some((_, std::cmp::Reverse(id))) = self.waiting.pop_last()
            && let Some(record) = self.jobs.get_mut(&id)
        {
            (record.state, record.begun) = (State::Running, Some(now));
            record.starts += 1;
            self.working.insert(id);
            actions.extend([Action::Save(id), Action::Begin(id)]);
        }
    }

    /// The record of a job.
    pub fn get(&self, id: JobId) -> Option<&Record> {
        self.jobs.get(&id)
    }

    /// All jobs, the newest first.
    pub fn iter(&self) -> impl Iterator<Item = &Record> {
        self.jobs.values().rev()
    }

    /// The job that this owner submitted with that key.
    pub fn with_key(&self, owner: &str, key: &str) -> Option<&Record> {
        let id = self.keys.get(&(owner.to_owned(), key.to_owned())).filter(|_| !key.is_empty());
        id.and_then(|id| self.jobs.get(id))
    }

    /// The jobs that are older than `before`, the newest first.
    pub fn older(&self, before: Option<JobId>) -> impl Iterator<Item = &Record> {
        let end = before.map_or(Bound::Unbounded, Bound::Excluded);
        self.jobs.range((Bound::Unbounded, end)).rev().map(|(_, record)| record)
    }

    /// The jobs in work, or stopping.
    pub fn working(&self) -> impl Iterator<Item = &Record> {
        self.working.iter().filter_map(|id| self.jobs.get(id))
    }

    /// How many jobs begin before each of `jobs` that waits: one pass over those that wait, whatever their number.
    pub fn ahead(&self, jobs: &BTreeSet<JobId>) -> BTreeMap<JobId, usize> {
        let ranks = self.waiting.iter().rev().enumerate();
        let ranks = ranks.map(|(rank, &(_, std::cmp::Reverse(id)))| (id, rank));
        ranks.filter(|(id, _)| jobs.contains(id)).collect()
    }

    /// How many jobs there are in each state, by its name.
    pub fn by_state(&self) -> BTreeMap<&'static str, usize> {
        let mut by_state = BTreeMap::new();
        self.jobs.values().for_each(|record| *by_state.entry(record.state.name()).or_default() += 1);
        by_state
    }

    /// The invariants; an error names the one that does not hold.
    fn check(&self) -> Result<(), &'static str> {
        let those = |is: fn(&State) -> bool| self.jobs.values().filter(move |record| is(&record.state));
        let waiting: BTreeSet<_> = those(|state| *state == State::Queued).map(place).collect();
        let working: BTreeSet<_> = those(|state| matches!(state, State::Running | State::Stopping))
            .map(|record| record.id)
            .collect();
        match () {
            () if waiting != self.waiting => Err("those that wait are not listed"),
            () if working != self.working => Err("those in work are not listed"),
            () if working.len() > self.room => Err("too many are in work"),
            () if working.len() < self.room && !waiting.is_empty() => Err("one waits while there is room"),
            () => Ok(()),
        }
    }
}

/// What a job is found by if it is submitted again.
fn key(record: &Record) -> (String, String) {
    (record.owner.clone(), record.key.clone())
}

/// Those of higher priority before others, and then the older ones.
fn place(record: &Record) -> (u32, std::cmp::Reverse<JobId>) {
    (record.priority, std::cmp::Reverse(record.id))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::service::record::tests::record;

    fn accepted(id: u64, priority: u32) -> Event {
        Event::Accepted(Box::new(Record { priority, ..record(id, State::Queued) }))
    }

    fn begun(actions: &[Action]) -> Vec<u64> {
        let begun = |action: &Action| if let Action::Begin(id) = action { Some(id.0) } else { None };
        actions.iter().filter_map(begun).collect()
    }

    #[test]
    fn the_highest_priority_begins_first_and_then_the_oldest() {
        let mut queue = Queue::new([], 1, 9, Millis(0)).0;
        let mut handle = |event| begun(&queue.handle(Millis(1), event).unwrap());
        assert_eq!(handle(accepted(1, 10)), [1]);
        for (id, priority) in [(2, 10), (3, 20), (4, 10), (5, 20)] {
            assert_eq!(handle(accepted(id, priority)), [0; 0]);
        }
        let order = [1, 3, 5, 2].map(|id| handle(Event::Ended(JobId(id), Ok(Done::default()))));
        assert_eq!(order, [[3], [5], [2], [4]]);
        assert!(queue.ahead(&[JobId(4)].into()).is_empty());
    }

    /// A job that waits has before it those of higher priority, and the older ones of its own.
    #[test]
    fn ranks_are_the_order_in_which_jobs_begin() {
        let waiting = (1..=50).map(|id| Record { priority: id as u32 % 5 + 1, ..record(id, State::Queued) });
        let (mut queue, actions) = Queue::new(waiting, 1, 99, Millis(0));
        let mut ranked: Vec<(usize, u64)> = queue
            .ahead(&queue.iter().map(|record| record.id).collect())
            .into_iter()
            .map(|(id, rank)| (rank, id.0))
            .collect();
        ranked.sort_unstable();
        let mut order = begun(&actions);
        while let Some(&id) = queue.working.first() {
            order.extend(begun(&queue.handle(Millis(1), Event::Ended(id, Ok(Done::default()))).unwrap()));
        }
        assert_eq!(ranked.iter().map(|(_, id)| *id).collect::<Vec<_>>(), order[1..]);
        assert!(ranked.iter().map(|(rank, _)| *rank).eq(0..49));
    }

    #[test]
    fn what_was_in_work_when_the_process_died_begins_again_and_what_was_stopping_does_not() {
        let mut queue = Queue::new([], 2, 9, Millis(0)).0;
        for event in [accepted(1, 1), accepted(2, 1), accepted(3, 9), Event::Cancelled(JobId(2))] {
            queue.handle(Millis(1), event).unwrap();
        }
        let (queue, actions) = Queue::new(queue.iter().cloned(), 2, 9, Millis(5));
        assert_eq!(begun(&actions), [3, 1]);
        let second = queue.get(JobId(2)).unwrap();
        assert_eq!((&second.state, second.ended), (&State::Cancelled, Some(Millis(5))));
    }

    #[test]
    fn refusals_say_why_and_change_nothing() {
        let mut queue = Queue::new([], 1, 2, Millis(0)).0;
        queue.handle(Millis(1), accepted(1, 10)).unwrap();
        let mut refused = |event| queue.handle(Millis(2), event).unwrap_err();
        assert_eq!(refused(Event::Cancelled(JobId(7))), Refusal::Unknown(JobId(7)));
        assert_eq!(refused(Event::Resumed(JobId(1))), Refusal::NotResumable(JobId(1), "running"));
        queue.handle(Millis(3), accepted(2, 10)).unwrap();
        assert_eq!(queue.admit().unwrap_err(), Refusal::Full(2));
        let refused = queue.handle(Millis(3), Event::Deleted(JobId(1))).unwrap_err().to_string();
        assert_eq!(refused, "1: the job is running; cancel it first, and delete it then");
        queue.handle(Millis(4), Event::Ended(JobId(1), Err("bad corpus".into()))).unwrap();
        assert_eq!(
            queue.handle(Millis(5), Event::Cancelled(JobId(1))).unwrap_err(),
            Refusal::Over(JobId(1), "failed")
        );
        queue.handle(Millis(6), Event::Resumed(JobId(1))).unwrap();
        assert_eq!(queue.get(JobId(1)).unwrap().state, State::Queued);
        queue.handle(Millis(7), Event::Cancelled(JobId(1))).unwrap();
        queue.handle(Millis(7), Event::Cancelled(JobId(1))).expect("twice is once");
    }

    #[test]
    fn a_result_counts_even_if_it_comes_while_stopping() {
        let mut queue = Queue::new([], 1, 2, Millis(0)).0;
        let done = Done { parameters_sha256: "ab".into(), results: vec![("summary.json".into(), 7)] };
        for event in [accepted(1, 10), Event::Cancelled(JobId(1)), Event::Ended(JobId(1), Ok(done.clone()))] {
            queue.handle(Millis(1), event).unwrap();
        }
        let record = queue.get(JobId(1)).unwrap();
        assert_eq!(record.state, State::Done { parameters_sha256: "ab".into() });
        assert_eq!(record.results, done.results);
    }

    /// What is on disk: records as they were saved.
    fn save(disk: &mut BTreeMap<JobId, Record>, queue: &Queue, actions: &[Action]) {
        let saved = actions.iter().filter_map(|action| match action {
            Action::Save(id) => queue.get(*id),
            Action::Begin(_) | Action::Stop(_) => None,
        });
        disk.extend(saved.map(|record| (record.id, record.clone())));
    }

    proptest! {
        /// A job has failed once the process died three times while it ran, with no checkpoint between; a process that closes first does
        /// not count; and of every start there is a record before it happens.
        #[test]
        fn a_job_fails_with_the_third_death_in_a_row(happens in proptest::collection::vec(0u8..5, 1..40)) {
            let first = record(1, State::Queued);
            let mut disk: BTreeMap<JobId, Record> = [(first.id, first)].into();
            let (mut queue, actions) = Queue::new(disk.values().cloned(), 1, 9, Millis(0));
            save(&mut disk, &queue, &actions);
            let (mut deaths, mut starts) = (0, 1);
            for what in happens {
                if what == 0 {
                    deaths = 0;
                    let actions = queue.handle(Millis(1), Event::Checkpointed(JobId(1))).unwrap();
                    save(&mut disk, &queue, &actions);
                    continue;
                }
                if what == 1 {
                    let actions = queue.handle(Millis(1), Event::Closed).unwrap();
                    save(&mut disk, &queue, &actions);
                } else {
                    deaths += 1;
                }
                let actions;
                (queue, actions) = Queue::new(disk.values().cloned(), 1, 9, Millis(2));
                save(&mut disk, &queue, &actions);
                let is_failed = matches!(disk[&JobId(1)].state, State::Failed { .. });
                prop_assert_eq!(is_failed, deaths == 3);
                if is_failed {
                    deaths = 0;
                    let actions = queue.handle(Millis(3), Event::Resumed(JobId(1))).unwrap();
                    save(&mut disk, &queue, &actions);
                }
                starts += 1;
                prop_assert_eq!((&disk[&JobId(1)].state, disk[&JobId(1)].starts), (&State::Running, starts));
            }
        }

        /// Whatever happens, and with a process that dies at any moment: nothing that was accepted is lost, and everything ends.
        #[test]
        fn nothing_is_lost(
            happens in proptest::collection::vec((0u8..5, 1u64..9, 1u32..4), 1..60), room in 1usize..4,
        ) {
            let mut queue = Queue::new([], room, 99, Millis(0)).0;
            let mut accepted_jobs = 0;
            for (what, id, priority) in happens {
                let id = JobId(id);
                let event = match what {
                    0 => { accepted_jobs += 1; accepted(accepted_jobs, priority) }
                    1 => Event::Cancelled(id),
                    2 => Event::Resumed(id),
                    3 if queue.working.contains(&id) => Event::Ended(id, if priority == 1 { Err("no".into()) } else { Ok(Done::default()) }),
                    _ => {
                        queue = Queue::new(queue.iter().cloned(), room, 99, Millis(0)).0;
                        continue;
                    }
                };
                let _refused = queue.handle(Millis(1), event);
                prop_assert_eq!(queue.check(), Ok(()));
                prop_assert_eq!(queue.jobs.len() as u64, accepted_jobs);
            }
            while let Some(&id) = queue.working.first() {
                queue.handle(Millis(2), Event::Ended(id, Ok(Done::default()))).unwrap();
            }
            prop_assert!(queue.iter().all(|record| record.state.is_over()));
        }
    }
}
