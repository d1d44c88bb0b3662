//! When to dial, answer, leave and give up: a pure state machine.
//!
//! In: [`Event`]s with the time at which they happened. Out: [`Action`]s for the driver. No clock, no sockets,
//! no values.
//!
//! ```text
//!     away ──retry──> dialing ──Welcomed──> joined ──Terminated──> draining ──all answered──> stopped
//!      ^                 │                    │                        │
//!      └─── Disconnected ┴────────────────────┘                        └─ Disconnected ──> stopped
//!
//!     any ──Finished, Refused, not taken in for give_up_after, a thread does not stop──> stopped
//! ```
//!
//! A refusal is permanent: the same worker would be refused again. A full fleet is not: it may have room later.
//!
//! A task is *running* from its assignment until its thread is free, then *unsent* until its report is passed to the network: an answer, a
//! failure, or the confirmation that it was withdrawn.
//!
//! Invariants:
//! - A report is kept until it is sent to the session that assigned the task, over any number of connections. If the coordinator has
//!   assigned the task again meanwhile, the first answer counts.
//! - Every hello names the tasks of its session that are running or unsent, so that the coordinator counts their slots as taken. The worker
//!   does not dial while a task of another session is running: such tasks are withdrawn, since no coordinator counts them.
//! - A task that is still running `STUCK_AFTER` its withdrawal ends the worker, which can rejoin as a new process with all its threads. It
//!   leaves by a drain, so its other tasks are assigned again and are not failures.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use grammaton::work::lease::{LeaseId, SessionId};

/// First delay before dialing again.
const BACK_OFF_FIRST: Duration = Duration::from_millis(200);
/// Longest delay before dialing again.
const BACK_OFF_CAP: Duration = Duration::from_secs(5);
/// Time for the thread of a withdrawn task to stop. Less than the coordinator grants, which would count the worker as lost.
const STUCK_AFTER: Duration = Duration::from_secs(5);

/// A lease and the session that gave it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct SessionLease {
    /// The session.
    pub session: SessionId,
    /// The id of the lease in its session.
    pub id: LeaseId,
}

/// Input of the state machine.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Event {
    /// The coordinator accepted this worker.
    Welcomed {
        /// Session of the coordinator.
        session: SessionId,
    },
    /// The coordinator refused this worker, or this worker does not trust the coordinator; dialing again cannot help.
    Refused {
        /// Reason, as a line of text.
        detail: String,
    },
    /// The fleet is full for now; the connection has ended.
    Full {
        /// The coordinator's explanation.
        detail: String,
    },
    /// The coordinator is a process that did not assign the tasks that the hello named; the connection has ended.
    OtherSession,
    /// The connection ended, or could not be opened.
    Disconnected {
        /// Reason, as a line of text.
        detail: String,
    },
    /// A task was assigned.
    Assigned {
        /// The task.
        lease: SessionLease,
    },
    /// The coordinator withdrew tasks.
    Withdrawn {
        /// The tasks.
        leases: Vec<SessionLease>,
    },
    /// Tasks were computed, failed or were stopped: their threads are free.
    Computed {
        /// The tasks.
        leases: Vec<SessionLease>,
    },
    /// Reports were passed to the network.
    Sent {
        /// The tasks that they report.
        leases: Vec<SessionLease>,
    },
    /// The process was asked to end.
    Terminated,
    /// The coordinator reports that the job is finished.
    Finished,
    /// Time passed.
    Tick,
}

/// Output of the state machine.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Action {
    /// Connect and say hello, naming these tasks of one session.
    Dial(Vec<SessionLease>),
    /// Send the reports; the next ones follow after [`Event::Sent`].
    Send(Vec<SessionLease>),
    /// Stop computing the tasks, or drop their answers; [`Event::Computed`] follows for each that is running.
    Withdraw(Vec<SessionLease>),
    /// Drop the report, which no session waits for.
    Discard(SessionLease),
    /// Tell the coordinator to assign nothing more.
    Drain,
    /// End with that outcome.
    Stop(Outcome),
}

/// How a membership ended.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Outcome {
    /// The job is finished.
    Finished,
    /// The process was asked to end.
    Left,
    /// A thread did not stop computing a withdrawn task.
    Stuck {
        /// The task.
        lease: LeaseId,
        /// Time since its withdrawal.
        waited: Duration,
    },
    /// A permanent refusal, by either side.
    Refused {
        /// Reason, as a line of text.
        detail: String,
    },
    /// No coordinator accepted this worker for too long.
    GaveUp {
        /// Time since the worker was last a member, or since its start.
        waited: Duration,
        /// The last error.
        detail: String,
    },
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum State {
    Away { retry_at: Duration },
    Dialing,
    Joined,
    Draining,
    Stopped,
}

/// State machine of a worker's membership.
#[derive(Debug)]
pub struct Membership {
    state: State,
    give_up_after: Duration,
    /// Share of the second half of the back-off that this worker waits, in thousandths, so that workers do not dial all at
    /// once.
    stagger: u32,
    /// Attempts since the last welcome.
    attempts: u32,
    /// Last time at which this worker was a member; at first, its start.
    present_at: Duration,
    /// Session of the last welcome, unless it is over.
    session: Option<SessionId>,
    /// Assigned tasks whose threads are not free; tasks of other sessions are withdrawn.
    running: BTreeSet<SessionLease>,
    /// Running tasks that are withdrawn, with the times of their withdrawals.
    stopping: BTreeMap<SessionLease, Duration>,
    /// Tasks of the session whose reports have not been passed to the network.
    unsent: BTreeSet<SessionLease>,
    /// Unsent tasks whose reports are being sent.
    sending: BTreeSet<SessionLease>,
}

impl Membership {
    /// A membership that has not begun; `stagger` is any number that differs between workers.
    pub fn new(give_up_after: Duration, stagger: u32) -> Membership {
        Membership {
            state: State::Away { retry_at: Duration::ZERO },
            give_up_after,
            stagger: stagger % 1000,
            attempts: 0,
            present_at: Duration::ZERO,
            session: None,
            running: BTreeSet::new(),
            stopping: BTreeMap::new(),
            unsent: BTreeSet::new(),
            sending: BTreeSet::new(),
        }
    }

    /// Updates the state and returns the actions.
    pub fn handle(&mut self, now: Duration, event: Event) -> Vec<Action> {
        let mut actions = Vec::new();
        match (self.state, event) {
            (State::Stopped, _) => return actions,
            (_, Event::Welcomed { session }) => self.enter(now, session, &mut actions),
            (_, Event::Refused { detail }) => self.stop(Outcome::Refused { detail }, &mut actions),
            (_, Event::Finished) => self.stop(Outcome::Finished, &mut actions),
            (State::Draining, Event::Disconnected { .. } | Event::Full { .. } | Event::OtherSession) => {
                self.stop(Outcome::Left, &mut actions);
            }
            (state, Event::Disconnected { detail }) => {
                if state == State::Joined {
                    self.present_at = now;
                }
                self.retreat(now, detail, self.back_off(), &mut actions);
            }
            // Retries after a full fleet are rare: its members are at work.
            (_, Event::Full { detail }) => {
                self.retreat(now, detail, self.staggered(BACK_OFF_CAP), &mut actions)
            }
            (_, Event::OtherSession) => {
                self.leave_session(now, None, &mut actions);
                self.state = State::Away { retry_at: now };
            }
            (_, Event::Assigned { lease }) => {
                self.running.insert(lease);
            }
            (_, Event::Withdrawn { leases }) => self.withdraw(now, leases, &mut actions),
            (_, Event::Computed { leases }) => {
                for lease in leases {
                    self.stopping.remove(&lease);
                    if self.running.remove(&lease) && self.session == Some(lease.session) {
                        self.unsent.insert(lease);
                    } else {
                        actions.push(Action::Discard(lease));
                    }
                }
            }
            (_, Event::Sent { leases }) => {
                self.sending.clear();
                self.unsent.retain(|lease| !leases.contains(lease));
            }
            (State::Joined, Event::Terminated) => {
                self.state = State::Draining;
                actions.push(Action::Drain);
            }
            (State::Draining, Event::Terminated) => {}
            (_, Event::Terminated) => self.stop(Outcome::Left, &mut actions),
            (_, Event::Tick) => {}
        }
        self.dial(now, &mut actions);
        self.send(&mut actions);
        self.give_up_stuck(now, &mut actions);
        actions
    }

    /// Time at which [`Event::Tick`] is due, if no other event happens before.
    pub fn next_deadline(&self) -> Option<Duration> {
        let dial = match self.state {
            State::Stopped => return None,
            State::Away { retry_at } => Some(retry_at).filter(|_| !self.is_held_back()),
            State::Dialing | State::Joined | State::Draining => None,
        };
        let stuck = self.stopping.values().min().map(|&since| since + STUCK_AFTER);
        [dial, stuck].into_iter().flatten().min()
    }

    fn enter(&mut self, now: Duration, session: SessionId, actions: &mut Vec<Action>) {
        self.state = State::Joined;
        self.attempts = 0;
        self.present_at = now;
        if self.session != Some(session) {
            self.leave_session(now, Some(session), actions);
        }
    }

    /// Withdraws the tasks of the last session and drops their reports.
    fn leave_session(&mut self, now: Duration, next: Option<SessionId>, actions: &mut Vec<Action>) {
        self.session = next;
        self.sending.clear();
        actions.extend(std::mem::take(&mut self.unsent).into_iter().map(Action::Discard));
        self.withdraw(now, self.running.iter().copied().collect(), actions);
    }

    /// Withdraws the tasks that are not reported yet.
    fn withdraw(&mut self, now: Duration, mut leases: Vec<SessionLease>, actions: &mut Vec<Action>) {
        leases.retain(|lease| {
            if self.running.contains(lease) {
                !self.stopping.contains_key(lease)
            } else {
                self.unsent.contains(lease) && !self.sending.contains(lease)
            }
        });
        let running = leases.iter().filter(|lease| self.running.contains(lease));
        self.stopping.extend(running.map(|&lease| (lease, now)));
        if !leases.is_empty() {
            actions.push(Action::Withdraw(leases));
        }
    }

    /// Whether a task of another session is running.
    fn is_held_back(&self) -> bool {
        self.running.iter().any(|lease| self.session != Some(lease.session))
    }

    /// Dials if it is time.
    fn dial(&mut self, now: Duration, actions: &mut Vec<Action>) {
        if matches!(self.state, State::Away { retry_at } if retry_at <= now) && !self.is_held_back() {
            self.state = State::Dialing;
            self.attempts += 1;
            actions.push(Action::Dial(self.running.union(&self.unsent).copied().collect()));
        }
    }

    /// Dials again after `delay`, unless no coordinator accepted this worker for too long.
    fn retreat(&mut self, now: Duration, detail: String, delay: Duration, actions: &mut Vec<Action>) {
        self.sending.clear();
        let waited = now.saturating_sub(self.present_at);
        if waited >= self.give_up_after {
            self.stop(Outcome::GaveUp { waited, detail }, actions);
        } else {
            self.state = State::Away { retry_at: now + delay };
        }
    }

    /// Sends the reports if none is being sent, and leaves after the last one.
    fn send(&mut self, actions: &mut Vec<Action>) {
        if !matches!(self.state, State::Joined | State::Draining) {
            return;
        }
        debug_assert!(self.unsent.iter().all(|lease| Some(lease.session) == self.session));
        if self.sending.is_empty() && !self.unsent.is_empty() {
            self.sending.clone_from(&self.unsent);
            actions.push(Action::Send(self.sending.iter().copied().collect()));
        }
        if self.state == State::Draining && self.running.is_empty() && self.unsent.is_empty() {
            self.stop(Outcome::Left, actions);
        }
    }

    /// Ends the worker if a thread did not stop in time.
    fn give_up_stuck(&mut self, now: Duration, actions: &mut Vec<Action>) {
        let oldest = self.stopping.iter().min_by_key(|(_, since)| **since);
        let Some((lease, waited)) = oldest.map(|(lease, &since)| (lease.id, now.saturating_sub(since)))
        else {
            return;
        };
        if waited < STUCK_AFTER || self.state == State::Stopped {
            return;
        }
        match self.state {
            State::Draining => self.stop(Outcome::Left, actions),
            state => {
                actions.extend((state == State::Joined).then_some(Action::Drain));
                self.stop(Outcome::Stuck { lease, waited }, actions);
            }
        }
    }

    fn stop(&mut self, outcome: Outcome, actions: &mut Vec<Action>) {
        self.state = State::Stopped;
        actions.push(Action::Stop(outcome));
    }

    /// Delay before the next attempt: doubles with each attempt, up to a cap.
    fn back_off(&self) -> Duration {
        let doublings = self.attempts.saturating_sub(1).min(10);
        self.staggered((BACK_OFF_FIRST * (1 << doublings)).min(BACK_OFF_CAP))
    }

    /// Delay between half of `full` and `full`.
    fn staggered(&self, full: Duration) -> Duration {
        full / 2 + full / 2 * self.stagger / 1000
    }
}

#[cfg(test)]
mod tests {
    use grammaton::work::lease::{Attempt, BatchId, TaskIndex};
    use proptest::prelude::*;

    use super::*;

    const FIRST: SessionId = SessionId([1; 16]);
    const SECOND: SessionId = SessionId([2; 16]);

    fn lease(session: SessionId, task: u32) -> SessionLease {
        let id = LeaseId { batch: BatchId(0), task: TaskIndex(task), attempt: Attempt(0) };
        SessionLease { session, id }
    }

    fn at(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    fn joined() -> Membership {
        let mut membership = Membership::new(at(300), 999);
        assert_eq!(membership.handle(at(0), Event::Tick), [Action::Dial(vec![])]);
        assert_eq!(membership.handle(at(0), Event::Welcomed { session: FIRST }), []);
        membership
    }

    fn disconnected() -> Event {
        Event::Disconnected { detail: "cut".into() }
    }

    #[test]
    fn answers_that_come_while_others_are_sent_follow_together() {
        let mut worker = joined();
        let [a, b, c] = [0, 1, 2].map(|task| lease(FIRST, task));
        assert_eq!(worker.handle(at(1), Event::Assigned { lease: a }), []);
        assert_eq!(worker.handle(at(1), Event::Assigned { lease: b }), []);
        assert_eq!(worker.handle(at(1), Event::Assigned { lease: c }), []);
        assert_eq!(worker.handle(at(2), Event::Computed { leases: vec![a] }), [Action::Send(vec![a])]);
        assert_eq!(worker.handle(at(3), Event::Computed { leases: vec![c] }), []);
        assert_eq!(worker.handle(at(3), Event::Computed { leases: vec![b] }), []);
        assert_eq!(worker.handle(at(4), Event::Sent { leases: vec![a] }), [Action::Send(vec![b, c])]);
        assert_eq!(worker.handle(at(5), Event::Sent { leases: vec![b, c] }), []);
    }

    #[test]
    fn an_answer_outlives_the_connection_but_not_the_session() {
        let mut worker = joined();
        let a = lease(FIRST, 0);
        worker.handle(at(1), Event::Assigned { lease: a });
        worker.handle(at(2), Event::Computed { leases: vec![a] });
        worker.handle(at(3), disconnected());
        assert_eq!(worker.handle(at(4), Event::Tick), [Action::Dial(vec![a])]);
        assert_eq!(worker.handle(at(4), Event::Welcomed { session: FIRST }), [Action::Send(vec![a])]);
        worker.handle(at(5), disconnected());
        worker.handle(at(6), Event::Tick);
        assert_eq!(worker.handle(at(6), Event::Welcomed { session: SECOND }), [Action::Discard(a)]);
    }

    #[test]
    fn tasks_of_an_old_session_are_stopped_before_the_worker_joins_another() {
        let mut worker = joined();
        let (old, queued) = (lease(FIRST, 0), lease(FIRST, 1));
        worker.handle(at(1), Event::Assigned { lease: old });
        worker.handle(at(1), Event::Assigned { lease: queued });
        worker.handle(at(2), disconnected());
        assert_eq!(worker.handle(at(3), Event::Tick), [Action::Dial(vec![old, queued])]);
        assert_eq!(worker.handle(at(3), Event::OtherSession), [Action::Withdraw(vec![old, queued])]);
        let discarded = |lease| Action::Discard(lease);
        assert_eq!(worker.handle(at(3), Event::Computed { leases: vec![queued] }), [discarded(queued)]);
        assert_eq!(worker.handle(at(4), Event::Tick), [], "a thread is still busy");
        let stopped = worker.handle(at(4), Event::Computed { leases: vec![old] });
        assert_eq!(stopped, [discarded(old), Action::Dial(vec![])]);
        assert_eq!(worker.handle(at(5), Event::Welcomed { session: SECOND }), []);
        // The ids of leases are used again.
        let new = lease(SECOND, 0);
        worker.handle(at(6), Event::Assigned { lease: new });
        assert_eq!(worker.handle(at(7), Event::Computed { leases: vec![new] }), [Action::Send(vec![new])]);
    }

    #[test]
    fn a_withdrawn_task_is_reported_once_in_every_state() {
        let mut worker = joined();
        let [a, b, c] = [0, 1, 2].map(|task| lease(FIRST, task));
        let withdrawn = |lease| Event::Withdrawn { leases: vec![lease] };
        for lease in [a, b, c] {
            worker.handle(at(1), Event::Assigned { lease });
        }
        assert_eq!(worker.handle(at(2), Event::Computed { leases: vec![a] }), [Action::Send(vec![a])]);
        assert_eq!(worker.handle(at(2), withdrawn(a)), [], "its answer is on the way");
        assert_eq!(worker.handle(at(2), Event::Computed { leases: vec![b] }), []);
        assert_eq!(worker.handle(at(2), withdrawn(b)), [Action::Withdraw(vec![b])], "its answer is dropped");
        assert_eq!(worker.handle(at(2), withdrawn(c)), [Action::Withdraw(vec![c])], "its thread is stopped");
        assert_eq!(worker.handle(at(3), withdrawn(c)), [], "once");
        assert_eq!(worker.handle(at(3), Event::Computed { leases: vec![c] }), []);
        assert_eq!(worker.handle(at(3), Event::Sent { leases: vec![a] }), [Action::Send(vec![b, c])]);
        assert_eq!(worker.handle(at(4), Event::Sent { leases: vec![b, c] }), []);
        assert_eq!(worker.handle(at(5), withdrawn(c)), [], "it is reported");
        assert_eq!(worker.next_deadline(), None);
    }

    #[test]
    fn a_thread_that_does_not_stop_ends_the_worker_without_failing_its_other_tasks() {
        let [a, b] = [0, 1].map(|task| lease(FIRST, task));
        let withdrawn = |leases| Event::Withdrawn { leases };
        let busy = || {
            let mut worker = joined();
            worker.handle(at(1), Event::Assigned { lease: a });
            worker.handle(at(1), Event::Assigned { lease: b });
            assert_eq!(worker.handle(at(2), withdrawn(vec![a])), [Action::Withdraw(vec![a])]);
            assert_eq!(worker.next_deadline(), Some(at(2) + STUCK_AFTER));
            worker
        };
        let stuck = Action::Stop(Outcome::Stuck { lease: a.id, waited: STUCK_AFTER });
        let due = at(2) + STUCK_AFTER;
        assert_eq!(busy().handle(due, Event::Tick), [Action::Drain, stuck.clone()]);
        let mut away = busy();
        away.handle(at(3), disconnected());
        assert_eq!(away.handle(at(4), Event::Tick), [Action::Dial(vec![a, b])]);
        assert_eq!(away.handle(due, Event::Tick), [stuck]);
        let mut leaving = busy();
        leaving.handle(at(3), Event::Terminated);
        assert_eq!(leaving.handle(due, Event::Tick), [Action::Stop(Outcome::Left)]);
    }

    #[test]
    fn a_terminated_worker_answers_what_it_has_and_leaves() {
        let mut worker = joined();
        let a = lease(FIRST, 0);
        worker.handle(at(1), Event::Assigned { lease: a });
        assert_eq!(worker.handle(at(2), Event::Terminated), [Action::Drain]);
        assert_eq!(worker.handle(at(2), Event::Terminated), []);
        assert_eq!(worker.handle(at(3), Event::Computed { leases: vec![a] }), [Action::Send(vec![a])]);
        assert_eq!(worker.handle(at(4), Event::Sent { leases: vec![a] }), [Action::Stop(Outcome::Left)]);

        let idle = joined().handle(at(1), Event::Terminated);
        assert_eq!(idle, [Action::Drain, Action::Stop(Outcome::Left)]);
    }

    #[test]
    fn a_refusal_is_permanent_and_a_full_fleet_is_not() {
        let detail = || "as the test wants it".to_owned();
        let refused = joined().handle(at(1), Event::Refused { detail: detail() });
        assert_eq!(refused, [Action::Stop(Outcome::Refused { detail: detail() })]);

        let mut worker = Membership::new(at(60), 0);
        let full = || Event::Full { detail: detail() };
        assert_eq!(worker.handle(at(0), Event::Tick), [Action::Dial(vec![])]);
        assert_eq!(worker.handle(at(1), full()), []);
        let retry_at = worker.next_deadline().unwrap();
        assert_eq!(retry_at, at(1) + BACK_OFF_CAP / 2);
        assert_eq!(worker.handle(retry_at, Event::Tick), [Action::Dial(vec![])]);
        assert_eq!(worker.handle(retry_at, Event::Welcomed { session: FIRST }), []);
        // Full again, after a while as a member: the time to wait starts again, and ends.
        assert_eq!(worker.handle(at(50), disconnected()), []);
        assert_eq!(worker.handle(at(59), Event::Tick), [Action::Dial(vec![])]);
        assert_eq!(worker.handle(at(109), full()), []);
        assert_eq!(worker.handle(at(119), Event::Tick), [Action::Dial(vec![])]);
        let gave_up = Outcome::GaveUp { waited: at(70), detail: detail() };
        assert_eq!(worker.handle(at(120), full()), [Action::Stop(gave_up)]);
    }

    #[test]
    fn it_backs_off_and_gives_up() {
        let mut worker = Membership::new(at(60), 999);
        let (mut now, mut delays) = (at(0), Vec::new());
        let outcome = loop {
            worker.handle(now, Event::Tick);
            let actions = worker.handle(now, disconnected());
            if let [Action::Stop(outcome)] = &actions[..] {
                break outcome.clone();
            }
            let retry_at = worker.next_deadline().unwrap();
            delays.push(retry_at - now);
            now = retry_at;
        };
        assert!(delays[0] >= BACK_OFF_FIRST / 2 && delays[0] <= BACK_OFF_FIRST);
        assert!(delays.is_sorted() && delays.iter().all(|&delay| delay <= BACK_OFF_CAP));
        assert!(matches!(outcome, Outcome::GaveUp { waited, .. } if waited >= at(60) && waited < at(66)));
    }

    /// A coordinator that counts the slots of one worker.
    #[derive(Default)]
    struct Coordinator {
        session: u8,
        n_assigned: u32,
        held: BTreeSet<SessionLease>,
    }

    /// Threads and network of one worker. Each step is drawn: what happens next is up to the numbers.
    struct World {
        slots: usize,
        worker: Membership,
        coordinator: Coordinator,
        now: Duration,
        /// Tasks named by the hello of a connection that is not accepted yet.
        hello: Option<Vec<SessionLease>>,
        is_connected: bool,
        /// Tasks that the threads compute, or that wait for them.
        busy: Vec<SessionLease>,
        /// Reports on their way.
        under_way: Vec<Vec<SessionLease>>,
        ended: Option<Outcome>,
    }

    impl World {
        fn new(slots: usize) -> World {
            World {
                slots,
                worker: Membership::new(at(1 << 30), 0),
                coordinator: Coordinator::default(),
                now: Duration::ZERO,
                hello: None,
                is_connected: false,
                busy: Vec::new(),
                under_way: Vec::new(),
                ended: None,
            }
        }

        fn tell(&mut self, event: Event) {
            for action in self.worker.handle(self.now, event) {
                match action {
                    Action::Dial(named) => self.hello = Some(named),
                    Action::Send(leases) => self.under_way.push(leases),
                    Action::Stop(outcome) => self.ended = Some(outcome),
                    Action::Withdraw(_) | Action::Discard(_) | Action::Drain => {}
                }
            }
            assert!(self.busy.len() <= self.slots, "{:?} on {} slots", self.busy, self.slots);
        }

        fn disconnect(&mut self) {
            if self.is_connected || self.hello.is_some() {
                (self.is_connected, self.hello) = (false, None);
                self.coordinator.held.clear();
                self.under_way.clear();
                self.tell(disconnected());
            }
        }

        fn greet(&mut self) {
            let Some(named) = self.hello.take() else { return };
            let session = SessionId([self.coordinator.session; 16]);
            if named.iter().any(|lease| lease.session != session) {
                return self.tell(Event::OtherSession);
            }
            (self.is_connected, self.coordinator.held) = (true, named.into_iter().collect());
            self.tell(Event::Welcomed { session });
        }

        fn assign(&mut self) {
            if self.is_connected && self.coordinator.held.len() < self.slots {
                let session = SessionId([self.coordinator.session; 16]);
                let lease = lease(session, self.coordinator.n_assigned);
                self.coordinator.n_assigned += 1;
                self.coordinator.held.insert(lease);
                self.busy.push(lease);
                self.tell(Event::Assigned { lease });
            }
        }

        fn withdraw(&mut self, which: usize) {
            let held = self.coordinator.held.iter().nth(which).copied();
            if let Some(lease) = held.filter(|_| self.is_connected) {
                self.tell(Event::Withdrawn { leases: vec![lease] });
            }
        }

        fn compute(&mut self, which: usize) {
            if which < self.busy.len() {
                let lease = self.busy.remove(which);
                self.tell(Event::Computed { leases: vec![lease] });
            }
        }

        fn deliver(&mut self) {
            if let Some(leases) = self.under_way.pop() {
                for lease in &leases {
                    assert!(self.coordinator.held.remove(lease), "{lease:?} is reported twice");
                }
                self.tell(Event::Sent { leases });
            }
        }

        fn step(&mut self, step: u8) {
            let which = usize::from(step / 8);
            match step % 8 {
                0 => self.disconnect(),
                1 if which < 4 => {
                    self.disconnect();
                    self.coordinator.session += 1;
                }
                1 | 2 => self.greet(),
                3 => self.assign(),
                4 => self.withdraw(which % 4),
                5 => self.compute(which % 4),
                6 => self.deliver(),
                _ => {
                    self.now += Duration::from_millis(100);
                    self.tell(Event::Tick);
                }
            }
        }
    }

    proptest! {
        /// Law: over any connections and sessions, no slot has two tasks while its thread is busy, each lease is reported once, and a
        /// worker whose threads end is never stuck.
        #[test]
        fn slots_are_free_only_if_their_threads_are(
            slots in 1..4usize,
            steps in prop::collection::vec(any::<u8>(), 0..300),
        ) {
            let mut world = World::new(slots);
            for step in steps {
                world.step(step);
                if let Some(outcome) = &world.ended {
                    let is_stuck = matches!(outcome, Outcome::Stuck { waited, .. } if *waited >= STUCK_AFTER);
                    prop_assert!(is_stuck && !world.busy.is_empty(), "{:?}", outcome);
                    return Ok(());
                }
            }
            // Without further disturbance everything is reported.
            for round in 0..100 {
                let is_over = world.busy.is_empty() && world.coordinator.held.is_empty() && world.is_connected;
                if is_over {
                    return Ok(());
                }
                prop_assert!(round < 99, "{:?} {:?}", world.busy, world.coordinator.held);
                (0..slots).for_each(|_| world.compute(0));
                world.deliver();
                world.now += BACK_OFF_CAP;
                world.tell(Event::Tick);
                world.greet();
            }
        }
    }
}
