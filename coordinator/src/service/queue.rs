//! Which jobs are in work, and which wait: a pure state machine over all records of a service.
//!
//! In: [`Event`]s. Out: [`Action`]s, for whoever owns disk and threads. Invariants (`Queue::check`, after each event): as many jobs are in
//! work as may be, or none waits; none that waits has a higher priority than another one had when that began while it waited; a record that changed is to be
//! saved before anything else is done about it.
//!
//! Deliberately absent: fairness between jobs in work, which is the fleet's business ([`crate::fleet::Account`]).

use std::collections::{BTreeMap, BTreeSet};

use super::record::{JobId, Millis, Record, State};

/// What happened.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Event {
    /// A job was accepted; it is in state [`State::Queued`], and its id was never used before.
    Accepted(Box<Record>),
    /// It is wanted no more.
    Cancelled(JobId),
    /// It is to go on.
    Resumed(JobId),
    /// Whoever worked on it has ended: with the digest of the parameters, or why there is none.
    Ended(JobId, Result<String, String>),
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
    /// Those that wait, the next one last.
    waiting: BTreeSet<(u32, std::cmp::Reverse<JobId>)>,
    /// Those in work, or stopping.
    working: BTreeSet<JobId>,
    /// How many may be in work at a time.
    room: usize,
    /// How many may wait or be in work.
    limit: usize,
}

impl Queue {
    /// All there were when another process ended, however it did: those in work wait again, and those that were stopping are cancelled.
    pub fn new(
        records: impl IntoIterator<Item = Record>,
        room: usize,
        limit: usize,
        now: Millis,
    ) -> (Queue, Vec<Action>) {
        let (waiting, working) = (BTreeSet::new(), BTreeSet::new());
        let mut queue = Queue { jobs: BTreeMap::new(), waiting, working, room: room.max(1), limit };
        let mut actions = Vec::new();
        for mut record in records {
            let id = record.id;
            match record.state {
                State::Running => record.state = State::Queued,
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
        queue.begin(now, &mut actions);
        (queue, actions)
    }

    /// Takes note of `event` and says what to do.
    pub fn handle(&mut self, now: Millis, event: Event) -> Result<Vec<Action>, Refusal> {
        let mut actions = Vec::new();
        match event {
            Event::Accepted(record) => {
                self.admit()?;
                self.waiting.insert(place(&record));
                actions.push(Action::Save(record.id));
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
                (record.state, record.ended) = (State::Queued, None);
                self.waiting.insert(place(record));
                actions.push(Action::Save(id));
            }
            Event::Ended(id, how) => {
                let record = self.jobs.get_mut(&id).ok_or(Refusal::Unknown(id))?;
                self.working.remove(&id);
                record.ended = Some(now);
                record.state = match (how, &record.state) {
                    // A result is a result, even if it came while the job was stopping.
                    (Ok(parameters_sha256), _) => State::Done { parameters_sha256 },
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

    fn begin(&mut self, now: Millis, actions: &mut Vec<Action>) {
        while self.working.len() < self.room
            && let Some((_, std::cmp::Reverse(id))) = self.waiting.pop_last()
            && let Some(record) = self.jobs.get_mut(&id)
        {
            (record.state, record.begun) = (State::Running, Some(now));
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

    /// The id of the next job.
    pub fn next_id(&self) -> JobId {
        JobId(self.jobs.last_key_value().map_or(1, |(last, _)| last.0 + 1))
    }

    /// The job that this owner submitted with that key.
    pub fn with_key(&self, owner: &str, key: &str) -> Option<&Record> {
        self.iter().find(|record| !key.is_empty() && record.owner == owner && record.key == key)
    }

    /// How many begin before it, if it waits.
    pub fn ahead(&self, record: &Record) -> usize {
        if record.state != State::Queued {
            return 0;
        }
        self.waiting.range((std::ops::Bound::Excluded(place(record)), std::ops::Bound::Unbounded)).count()
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

/// Those of higher priority before others, and then the older ones.
fn place(record: &Record) -> (u32, std::cmp::Reverse<JobId>) {
    (record.priority, std::cmp::Reverse(record.id))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn record(id: u64, priority: u32) -> Record {
        Record {
            id: JobId(id),
            name: format!("job {id}"),
            owner: "ann".into(),
            priority,
            max_workers: None,
            key: String::new(),
            inputs: Vec::new(),
            state: State::Queued,
            submitted: Millis(id),
            begun: None,
            ended: None,
        }
    }

    fn accepted(id: u64, priority: u32) -> Event {
        Event::Accepted(Box::new(record(id, priority)))
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
        let order = [1, 3, 5, 2].map(|id| handle(Event::Ended(JobId(id), Ok(String::new()))));
        assert_eq!(order, [[3], [5], [2], [4]]);
        assert_eq!(queue.ahead(queue.get(JobId(4)).unwrap()), 0);
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
        assert_eq!(queue.handle(Millis(3), accepted(3, 10)).unwrap_err(), Refusal::Full(2));
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
        for event in [accepted(1, 10), Event::Cancelled(JobId(1)), Event::Ended(JobId(1), Ok("ab".into()))] {
            queue.handle(Millis(1), event).unwrap();
        }
        assert_eq!(queue.get(JobId(1)).unwrap().state, State::Done { parameters_sha256: "ab".into() });
    }

    proptest! {
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
                    3 if queue.working.contains(&id) => Event::Ended(id, if priority == 1 { Err("no".into()) } else { Ok("yes".into()) }),
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
                queue.handle(Millis(2), Event::Ended(id, Ok(String::new()))).unwrap();
            }
            prop_assert!(queue.iter().all(|record| record.state.is_over()));
        }
    }
}
