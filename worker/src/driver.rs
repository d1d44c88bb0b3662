//! Owns the worker's clock and channels: waits for one event, asks the membership, does what it says.

use std::collections::BTreeMap;
use std::future::Future;
use std::hash::{BuildHasher as _, RandomState};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use shared::work::lease::{InstanceId, SessionId};
use tokio::sync::mpsc;
use tracing::{debug, info, warn};

use crate::blobs::Blobs;
use crate::connection::{Dialer, News, Parcel};
use crate::membership::{Action, Errand, Event, Membership, Outcome};
use crate::pool::{self, Computed, Job};
use crate::{RunError, WorkerConfig};

/// How long the last answers may take to go out.
const FAREWELL: Duration = Duration::from_secs(5);

/// How soon the same trouble is told again.
const WARN_AGAIN: Duration = Duration::from_secs(30);

/// The present moment.
#[expect(clippy::disallowed_methods, reason = "the driver owns the worker's clock")]
pub(crate) fn clock() -> Instant {
    Instant::now()
}

/// A name for this process that no other one can guess: hashes under keys that the standard library draws from the operating system.
fn instance() -> InstanceId {
    let keys = RandomState::new();
    let mut instance = [0; 16];
    for (half, bytes) in instance.chunks_exact_mut(8).enumerate() {
        bytes.copy_from_slice(&keys.hash_one(half).to_le_bytes());
    }
    InstanceId(instance)
}

/// Works for the coordinator until the job is finished or `shutdown` is; then finishes the tasks it has,
/// answers them and leaves.
pub async fn run(config: WorkerConfig, shutdown: impl Future<Output = ()>) -> Result<(), RunError> {
    if !(1..=proto::MAX_SLOTS).contains(&config.threads) {
        return Err(RunError::Threads { found: config.threads });
    }
    if config.name.len() > proto::MAX_NAME {
        return Err(RunError::Name { found: config.name.len() });
    }
    let dialer = Dialer::new(&config, instance())?;
    let started = clock();
    // A thread waits here with its answer only if the driver is behind by one answer of every thread.
    let (to_driver, mut computed) = mpsc::channel(config.threads as usize);
    let jobs = pool::start(config.threads, config.compute.clone(), to_driver)?;
    // Few: a connection that brings more than the driver takes should slow down the coordinator.
    let (to_news, mut news) = mpsc::channel(16);
    let mut membership = Membership::new(config.give_up_after, std::process::id());
    let blobs = Arc::new(Mutex::new(Blobs::new(config.cache_bytes)));
    let mut desk = Desk { jobs, dialer, to_news, parcels: None, blobs, answers: BTreeMap::new() };
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
            Some(computed) = computed.recv() => desk.keep(computed),
            Some(news) = news.recv() => match desk.note(news, &mut session) {
                Some(event) => event,
                None => continue,
            },
            () = tokio::time::sleep_until(deadline.into()) => Event::Tick,
        };
        report(&event, &config, &mut warned);
        for action in membership.handle(started.elapsed(), event) {
            if let Some(outcome) = desk.perform(action) {
                break 'job outcome;
            }
        }
    };
    desk.close(&mut news).await;
    match outcome {
        Outcome::Finished => info!("the job is finished"),
        Outcome::Left => info!("left"),
        Outcome::Refused { detail } => return Err(RunError::Refused { detail }),
        Outcome::GaveUp { waited, detail } => {
            return Err(RunError::GaveUp { url: config.coordinator, waited, detail });
        }
    }
    Ok(())
}

/// Tells what happens; what happens again and again only now and then.
fn report(event: &Event, config: &WorkerConfig, warned: &mut Option<(String, Instant)>) {
    match event {
        Event::Welcomed { .. } => {
            *warned = None;
            info!(coordinator = config.coordinator, name = config.name, "joined");
        }
        Event::Disconnected { detail } | Event::Full { detail } => match warned {
            Some((told, at)) if told == detail && at.elapsed() < WARN_AGAIN => {
                debug!(coordinator = config.coordinator, detail, "not connected");
            }
            _ => {
                *warned = Some((detail.clone(), clock()));
                warn!(coordinator = config.coordinator, detail, "not connected");
            }
        },
        Event::Terminated => info!("asked to leave; finishing the tasks in work"),
        _ => {}
    }
}

struct Desk {
    jobs: std::sync::mpsc::Sender<Job>,
    dialer: Dialer,
    to_news: mpsc::Sender<News>,
    /// To the connection, if there is one.
    parcels: Option<mpsc::Sender<Parcel>>,
    blobs: Arc<Mutex<Blobs>>,
    /// Computed, and not sent or discarded.
    answers: BTreeMap<Errand, Computed>,
}

impl Desk {
    fn keep(&mut self, computed: Computed) -> Event {
        let errand = computed.errand;
        self.answers.insert(errand, computed);
        Event::Computed { errand }
    }

    /// What the news means to the membership, if anything; `session` is that of the latest welcome.
    fn note(&mut self, news: News, session: &mut Option<SessionId>) -> Option<Event> {
        match news {
            News::Happened(event) => {
                if let Event::Welcomed { session: welcomed } = &event {
                    *session = Some(*welcomed);
                }
                if let Event::Sent { errand } = &event {
                    self.answers.remove(errand);
                }
                Some(event)
            }
            News::Assigned(lease, task) => {
                let errand = Errand { session: (*session)?, lease };
                debug!(%lease, "assigned");
                // The threads live as long as this desk.
                let _ = self.jobs.send(Job { errand, task: *task });
                Some(Event::Assigned { errand })
            }
        }
    }

    fn perform(&mut self, action: Action) -> Option<Outcome> {
        match action {
            Action::Dial => {
                // One answer at a time, and the drain.
                let (parcels, received) = mpsc::channel(2);
                self.parcels = Some(parcels);
                tokio::spawn(self.dialer.clone().run(self.blobs.clone(), received, self.to_news.clone()));
            }
            Action::Send(errand) => {
                if let Some(computed) = self.answers.get(&errand) {
                    self.post(Parcel::Answer(computed.clone()));
                }
            }
            Action::Discard(errand) => {
                self.answers.remove(&errand);
            }
            Action::Drain => self.post(Parcel::Drain),
            Action::Stop(outcome) => return Some(outcome),
        }
        None
    }

    fn post(&mut self, parcel: Parcel) {
        if let Some(parcels) = &self.parcels {
            // There is room; a connection that has ended says so itself.
            let _ = parcels.try_send(parcel);
        }
    }

    /// Lets the connection send what it has, and waits for its end.
    async fn close(self, news: &mut mpsc::Receiver<News>) {
        let Desk { parcels, to_news, .. } = self;
        drop((parcels, to_news));
        let ended = async { while news.recv().await.is_some() {} };
        // A coordinator that does not answer need not be waited for.
        let _ = tokio::time::timeout(FAREWELL, ended).await;
    }
}
