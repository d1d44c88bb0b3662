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
//!     any ──Finished, Refused, not taken in for give_up_after──> stopped
//! ```
//!
//! A refusal is permanent: the same worker would be refused again. A full fleet is not: it may have room later.
//!
//! Invariant: an answer is kept until it is sent to the session that asked for it, over any number of connections. If
//! the coordinator has assigned the task again meanwhile, the first answer counts.

use std::collections::BTreeSet;
use std::time::Duration;

use shared::work::lease::{LeaseId, SessionId};

/// First delay before dialing again.
const BACK_OFF_FIRST: Duration = Duration::from_millis(200);
/// Longest delay before dialing again.
const BACK_OFF_CAP: Duration = Duration::from_secs(5);

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
    /// Tasks were computed, or failed.
    Computed {
        /// The tasks.
        leases: Vec<SessionLease>,
    },
    /// Answers were passed to the network.
    Sent {
        /// The tasks that they answer.
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
    /// Connect and say hello.
    Dial,
    /// Send the answers; the next ones follow after [`Event::Sent`].
    Send(Vec<SessionLease>),
    /// Drop the answer, which no session waits for.
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
    Joined { session: SessionId },
    Draining { session: SessionId },
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
    /// Tasks of the current session that are being computed.
    running: BTreeSet<SessionLease>,
    /// Tasks of the current session that are computed and not sent.
    unsent: BTreeSet<SessionLease>,
    /// The tasks of `unsent` that are being sent.
    sending: Vec<SessionLease>,
}

impl Membership {
    /// A membership that dials at the first [`Event::Tick`]. `stagger` is any number that differs between workers.
    pub fn new(give_up_after: Duration, stagger: u32) -> Membership {
        Membership {
            state: State::Away { retry_at: Duration::ZERO },
            give_up_after,
            stagger: stagger % 1000,
            attempts: 0,
            present_at: Duration::ZERO,
            running: BTreeSet::new(),
            unsent: BTreeSet::new(),
            sending: Vec::new(),
        }
    }

    /// Updates the state and returns the actions.
    pub fn handle(&mut self, now: Duration, event: Event) -> Vec<Action> {
        let mut actions = Vec::new();
        match (self.state, event) {
            (State::Stopped, _) => {}
            (State::Away { retry_at }, Event::Tick) if retry_at <= now => {
                self.state = State::Dialing;
                self.attempts += 1;
                actions.push(Action::Dial);
            }
            (_, Event::Welcomed { session }) => self.enter(now, session, &mut actions),
            (_, Event::Refused { detail }) => self.stop(Outcome::Refused { detail }, &mut actions),
            (_, Event::Finished) => self.stop(Outcome::Finished, &mut actions),
            (State::Draining { .. }, Event::Disconnected { .. } | Event::Full { .. }) => {
                self.stop(Outcome::Left, &mut actions);
            }
            (state, Event::Disconnected { detail }) => {
                if matches!(state, State::Joined { .. }) {
                    self.present_at = now;
                }
                self.retreat(now, detail, self.back_off(), &mut actions);
            }
            // Retries after a full fleet are rare: its members are at work.
            (_, Event::Full { detail }) => {
                self.retreat(now, detail, self.staggered(BACK_OFF_CAP), &mut actions)
            }
            (_, Event::Assigned { lease }) => {
                self.running.insert(lease);
            }
            (_, Event::Computed { leases }) => {
                for lease in leases {
                    if self.running.remove(&lease) {
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
            (State::Joined { session }, Event::Terminated) => {
                self.state = State::Draining { session };
                actions.push(Action::Drain);
            }
            (State::Draining { .. }, Event::Terminated) => {}
            (_, Event::Terminated) => self.stop(Outcome::Left, &mut actions),
            (_, Event::Tick) => {}
        }
        self.send(&mut actions);
        actions
    }

    /// Time at which [`Event::Tick`] is due, if no other event happens before.
    pub fn next_deadline(&self) -> Option<Duration> {
        match self.state {
            State::Away { retry_at } => Some(retry_at),
            _ => None,
        }
    }

    fn enter(&mut self, now: Duration, session: SessionId, actions: &mut Vec<Action>) {
        self.state = State::Joined { session };
        self.attempts = 0;
        self.present_at = now;
        // A new process of the coordinator does not know the leases of the old one.
        self.running.retain(|lease| lease.session == session);
        let stale = self.unsent.iter().filter(|lease| lease.session != session);
        actions.extend(stale.map(|&lease| Action::Discard(lease)));
        self.unsent.retain(|lease| lease.session == session);
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

    /// Sends the answers if none is being sent, and leaves after the last one.
    fn send(&mut self, actions: &mut Vec<Action>) {
        let (State::Joined { session } | State::Draining { session }) = self.state else { return };
        debug_assert!(self.unsent.iter().all(|lease| lease.session == session));
        if self.sending.is_empty() && !self.unsent.is_empty() {
            self.sending.extend(&self.unsent);
            actions.push(Action::Send(self.sending.clone()));
        }
        let done = self.running.is_empty() && self.unsent.is_empty();
        if done && matches!(self.state, State::Draining { .. }) {
            self.stop(Outcome::Left, actions);
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
    use shared::work::lease::{Attempt, BatchId, TaskIndex};

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
        assert_eq!(membership.handle(at(0), Event::Tick), [Action::Dial]);
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
        assert_eq!(worker.handle(at(4), Event::Tick), [Action::Dial]);
        assert_eq!(worker.handle(at(4), Event::Welcomed { session: FIRST }), [Action::Send(vec![a])]);
        worker.handle(at(5), disconnected());
        worker.handle(at(6), Event::Tick);
        assert_eq!(worker.handle(at(6), Event::Welcomed { session: SECOND }), [Action::Discard(a)]);
    }

    #[test]
    fn an_answer_to_an_old_session_is_discarded_even_if_its_lease_id_is_reused() {
        let mut worker = joined();
        worker.handle(at(1), Event::Assigned { lease: lease(FIRST, 0) });
        worker.handle(at(2), disconnected());
        worker.handle(at(3), Event::Tick);
        worker.handle(at(3), Event::Welcomed { session: SECOND });
        worker.handle(at(4), Event::Assigned { lease: lease(SECOND, 0) });
        let (old, new) = (lease(FIRST, 0), lease(SECOND, 0));
        assert_eq!(worker.handle(at(5), Event::Computed { leases: vec![old] }), [Action::Discard(old)]);
        assert_eq!(worker.handle(at(6), Event::Computed { leases: vec![new] }), [Action::Send(vec![new])]);
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
        assert_eq!(worker.handle(at(0), Event::Tick), [Action::Dial]);
        assert_eq!(worker.handle(at(1), full()), []);
        let retry_at = worker.next_deadline().unwrap();
        assert_eq!(retry_at, at(1) + BACK_OFF_CAP / 2);
        assert_eq!(worker.handle(retry_at, Event::Tick), [Action::Dial]);
        assert_eq!(worker.handle(retry_at, Event::Welcomed { session: FIRST }), []);
        // Full again, after a while as a member: the time to wait starts again, and ends.
        assert_eq!(worker.handle(at(50), disconnected()), []);
        assert_eq!(worker.handle(at(59), Event::Tick), [Action::Dial]);
        assert_eq!(worker.handle(at(109), full()), []);
        assert_eq!(worker.handle(at(119), Event::Tick), [Action::Dial]);
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
}
