//! Owner of the worker's clock and channels: waits for an event, asks the membership, and performs its actions.

use std::collections::BTreeMap;
use std::future::Future;
use std::sync::Arc;
use std::time::{Duration, Instant};

use grammaton::work::lease::{InstanceId, SessionId};
use parking_lot::Mutex;
use tokio::sync::mpsc;
use tracing::{debug, info, warn};

use crate::blobs::Blobs;
use crate::connection::{ConnectionEvent, Dialer, Message};
use crate::membership::{Action, Event, Membership, Outcome, SessionLease};
use crate::pool::{Computed, Pool, Report};
use crate::{RunError, WorkerConfig};

/// Time limit for sending the last answers.
const FAREWELL: Duration = Duration::from_secs(5);

/// Interval between equal warnings.
const WARN_AGAIN: Duration = Duration::from_secs(30);

/// The current time.
#[expect(clippy::disallowed_methods, reason = "the driver owns the worker's clock")]
pub(crate) fn clock() -> Instant {
    Instant::now()
}

/// Unguessable id of this process.
fn instance() -> InstanceId {
    let mut instance = [0; 16];
    getrandom::fill(&mut instance).expect("an operating system that has started gives random bytes");
    InstanceId(instance)
}

/// Works for the coordinator until the job is finished or `shutdown` completes; then finishes its tasks, answers them and
/// leaves.
pub async fn run(config: WorkerConfig, shutdown: impl Future<Output = ()>) -> Result<(), RunError> {
    if !(1..=proto::MAX_SLOTS).contains(&config.threads) {
        return Err(RunError::Threads { found: config.threads });
    }
    if config.name.len() > proto::MAX_NAME {
        return Err(RunError::Name { found: config.name.len() });
    }
    let dialer = Dialer::new(&config, instance())?;
    let started = clock();
    // Room for the answers of every thread.
    let (to_driver, mut computed) = mpsc::channel(config.threads as usize);
    let pool = Pool::start(config.threads, config.compute.clone(), to_driver)?;
    // Small, so that a driver that falls behind slows down the coordinator.
    let (connection_events, mut events) = mpsc::channel(16);
    let mut membership = Membership::new(config.give_up_after, std::process::id());
    let blobs = Arc::new(Mutex::new(Blobs::new(config.cache_bytes)));
    let mut executor =
        Executor { pool, dialer, connection_events, messages: None, blobs, reports: BTreeMap::new() };
    let mut session = None;
    let (mut terminated, mut warned) = (false, None);
    tokio::pin!(shutdown);
    let outcome = 'job: loop {
        let far = started + started.elapsed() + Duration::from_secs(3600);
        let deadline = membership.next_deadline().map_or(far, |at| started + at);
        let event = tokio::select! {
            () = &mut shutdown, if !terminated => {
                terminated = true;
                Event::Terminated
            }
            Some(computed) = computed.recv() => executor.keep(computed),
            Some(event) = events.recv() => match executor.note(event, &mut session) {
                Some(event) => event,
                None => continue,
            },
            () = tokio::time::sleep_until(deadline.into()) => Event::Tick,
        };
        report(&event, &config, &mut warned);
        let mut happened = vec![event];
        while let Some(event) = happened.pop() {
            for action in membership.handle(started.elapsed(), event) {
                match executor.perform(action) {
                    Performed::Done => {}
                    Performed::Event(event) => happened.push(event),
                    Performed::Ended(outcome) => break 'job outcome,
                }
            }
        }
    };
    executor.close(&mut events).await;
    match outcome {
        Outcome::Finished => info!("the job is finished"),
        Outcome::Left => info!("left"),
        Outcome::Refused { detail } => return Err(RunError::Refused { detail }),
        Outcome::GaveUp { waited, detail } => {
            return Err(RunError::GaveUp { url: config.coordinator, waited, detail });
        }
        Outcome::Stuck { lease, waited } => return Err(RunError::Stuck { lease, waited }),
    }
    Ok(())
}

/// Logs an event; repeated warnings only at intervals.
fn report(event: &Event, config: &WorkerConfig, warned: &mut Option<(String, Instant)>) {
    match event {
        Event::Welcomed { .. } => {
            *warned = None;
            info!(coordinator = config.coordinator, name = config.name, "joined");
        }
        Event::Disconnected { detail } | Event::Full { detail } => match warned {
            Some((last, at)) if last == detail && at.elapsed() < WARN_AGAIN => {
                debug!(coordinator = config.coordinator, detail, "not connected");
            }
            _ => {
                *warned = Some((detail.clone(), clock()));
                warn!(coordinator = config.coordinator, detail, "not connected");
            }
        },
        Event::Terminated => info!("stopping; finishing the open tasks"),
        _ => {}
    }
}

struct Executor {
    pool: Pool,
    dialer: Dialer,
    connection_events: mpsc::Sender<ConnectionEvent>,
    /// Channel to the connection, if there is one.
    messages: Option<mpsc::Sender<Message>>,
    blobs: Arc<Mutex<Blobs>>,
    /// Reports that are neither sent nor discarded.
    reports: BTreeMap<SessionLease, Report>,
}

/// Effect of an action.
enum Performed {
    Done,
    /// It led to an event at once.
    Event(Event),
    /// The worker ends.
    Ended(Outcome),
}

impl Executor {
    fn keep(&mut self, computed: Vec<Computed>) -> Event {
        let leases = computed.iter().map(|computed| computed.lease).collect();
        self.reports.extend(computed.into_iter().map(|computed| (computed.lease, computed.report)));
        Event::Computed { leases }
    }

    /// Converts an event of the connection to one of the membership, unless it is a task; `session` is that of the latest welcome.
    fn note(&mut self, event: ConnectionEvent, session: &mut Option<SessionId>) -> Option<Event> {
        match event {
            ConnectionEvent::Happened(event) => {
                if let Event::Welcomed { session: welcomed } = &event {
                    *session = Some(*welcomed);
                }
                if let Event::Sent { leases } = &event {
                    self.reports.retain(|lease, _| !leases.contains(lease));
                }
                Some(event)
            }
            ConnectionEvent::Assigned(id, task) => {
                let lease = SessionLease { session: (*session)?, id };
                debug!(lease = %id, "assigned");
                self.pool.push(lease, *task);
                Some(Event::Assigned { lease })
            }
            ConnectionEvent::Withdrawn(ids) => {
                let session = (*session)?;
                debug!(leases = ids.len(), "withdrawn");
                let leases = ids.into_iter().map(|id| SessionLease { session, id }).collect();
                Some(Event::Withdrawn { leases })
            }
        }
    }

    fn perform(&mut self, action: Action) -> Performed {
        match action {
            Action::Dial(leases) => {
                // The reports of one action at a time, and the drain.
                let (messages, received) = mpsc::channel(2);
                self.messages = Some(messages);
                tokio::spawn(self.dialer.clone().run(
                    leases,
                    self.blobs.clone(),
                    received,
                    self.connection_events.clone(),
                ));
            }
            Action::Send(leases) => {
                let computed = |lease| {
                    let report = self.reports.get(&lease)?.clone();
                    Some(Computed { lease, report })
                };
                let reports = leases.into_iter().filter_map(computed).collect();
                self.post(Message::Reports(reports));
            }
            Action::Withdraw(leases) => {
                let (computed, running): (Vec<_>, Vec<_>) =
                    leases.into_iter().partition(|lease| self.reports.contains_key(lease));
                self.reports.extend(computed.into_iter().map(|lease| (lease, Report::Withdrawn)));
                return Performed::Event(self.keep(self.pool.withdraw(&running)));
            }
            Action::Discard(lease) => {
                self.reports.remove(&lease);
            }
            Action::Drain => self.post(Message::Drain),
            Action::Stop(outcome) => return Performed::Ended(outcome),
        }
        Performed::Done
    }

    fn post(&mut self, message: Message) {
        if let Some(messages) = &self.messages {
            // There is room; a connection that has ended reports it itself.
            let _ = messages.try_send(message);
        }
    }

    /// Lets the connection send its queued messages, and waits for its end.
    async fn close(self, events: &mut mpsc::Receiver<ConnectionEvent>) {
        let Executor { messages, connection_events, .. } = self;
        drop((messages, connection_events));
        let ended = async { while events.recv().await.is_some() {} };
        // An error means that the time limit has passed.
        let _ = tokio::time::timeout(FAREWELL, ended).await;
    }
}
