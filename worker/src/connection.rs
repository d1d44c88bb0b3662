//! One connection to the coordinator, from dialing to its end.
//!
//! In: messages to send. Out: [`ConnectionEvent`] for the driver, in the order of the stream; the last one is why the
//! connection ended. The connection sends a heartbeat every second unless it sends something else.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use grammaton::work::lease::{InstanceId, LeaseId, SessionId, max_leases};
use grammaton::work::task::Task;
use parking_lot::Mutex;
use prost::bytes::Bytes;
use proto::blob::{self, Blob};
use proto::check::Invalid;
use proto::payload::{self, Assembly, MAX_PAYLOAD, Progress};
use proto::route::{self, DIAL_WITHIN, Route, Verdict};
use proto::v1::work_client::WorkClient;
use proto::v1::{self, FromCoordinator, FromWorker, from_coordinator, from_worker, refusal};
use proto::{MAX_HELD, MAX_MESSAGE};
use tokio::sync::mpsc;
use tokio::time::MissedTickBehavior;
use tokio_stream::wrappers::ReceiverStream;
use tonic::{Request, Streaming};
use tracing::warn;

use crate::blobs::Blobs;
use crate::membership::{Event, SessionLease};
use crate::pool::{Computed, Report};
use crate::{RunError, WorkerConfig};

/// Timeout of the coordinator's welcome; many workers may join at once.
const WELCOME_WITHIN: Duration = Duration::from_secs(30);

/// Capacity of the channel to the network, in messages, which share their memory with the answers that are kept until they are sent.
const UNDER_WAY: usize = 64;

/// Events that the connection reports to the driver.
pub(crate) enum ConnectionEvent {
    /// An event for the membership.
    Happened(Event),
    /// A task that the session that welcomed this worker assigned.
    Assigned(LeaseId, Box<Task>),
    /// Tasks that this session withdrew.
    Withdrawn(Vec<LeaseId>),
}

/// Messages from the driver to the coordinator.
pub(crate) enum Message {
    /// Reports on leases.
    Reports(Vec<Computed>),
    /// A request for no more tasks.
    Drain,
}

/// Why a connection ended.
enum End {
    /// A permanent refusal.
    Refused(String),
    /// The fleet is full for now.
    Full(String),
    /// The coordinator did not assign the tasks that the hello named.
    OtherSession,
    /// Anything else; dialing again may help.
    Lost(String),
}

impl From<String> for End {
    fn from(detail: String) -> End {
        End::Lost(detail)
    }
}

/// Leases of a connection that are not reported.
type Assigned = Arc<Mutex<BTreeSet<LeaseId>>>;

/// Dials the coordinator.
#[derive(Clone)]
pub(crate) struct Dialer {
    route: Route,
    config: WorkerConfig,
    /// Id of this process, the same for every connection.
    instance: InstanceId,
}

impl Dialer {
    /// Checks address and identity; warns if the token would travel unencrypted beyond loopback.
    pub fn new(config: &WorkerConfig, instance: InstanceId) -> Result<Dialer, RunError> {
        let route = Route::new(&config.coordinator, config.tls.as_ref())?;
        if route.is_open() && config.token.is_some() {
            warn!(
                "{}: the token travels unencrypted, and can be read on the way; use TLS, or a network \
                that you trust",
                config.coordinator
            );
        } else if route.is_open() && !config.insecure {
            return Err(RunError::Exposed { url: config.coordinator.clone() });
        }
        Ok(Dialer { route, config: config.clone(), instance })
    }

    /// Dials and stays connected until either side closes the connection. The hello names `running`, tasks of one session. Dropping the
    /// sender of `messages` closes the connection after all of them are sent.
    pub async fn run(
        self,
        running: Vec<SessionLease>,
        blobs: Arc<Mutex<Blobs>>,
        messages: mpsc::Receiver<Message>,
        events: mpsc::Sender<ConnectionEvent>,
    ) {
        let verdict = Verdict::default();
        let end = match self.dial(running, &blobs, &verdict).await {
            Ok((outgoing, incoming)) => {
                let assigned = Assigned::default();
                let sender =
                    tokio::spawn(send(messages, outgoing, assigned.clone(), blobs.clone(), events.clone()));
                let Err(end) = receive(incoming, blobs, &assigned, self.config.threads, &events).await;
                sender.abort();
                end
            }
            Err(end) => end,
        };
        let event = match (verdict.get(), end) {
            (Some(distrust), _) => {
                Event::Refused { detail: format!("coordinator {}: {distrust}", self.config.coordinator) }
            }
            (None, End::Refused(detail)) => Event::Refused { detail },
            (None, End::Full(detail)) => Event::Full { detail },
            (None, End::OtherSession) => Event::OtherSession,
            (None, End::Lost(detail)) => Event::Disconnected { detail },
        };
        // An error means that the driver has ended.
        let _ = events.send(ConnectionEvent::Happened(event)).await;
    }

    async fn dial(
        &self,
        running: Vec<SessionLease>,
        blobs: &Mutex<Blobs>,
        verdict: &Verdict,
    ) -> Result<(mpsc::Sender<FromWorker>, Streaming<FromCoordinator>), End> {
        let channel = self.route.open(verdict).await.map_err(|error| route::why_not_open(&error))?;
        let mut client = WorkClient::new(channel)
            .max_decoding_message_size(MAX_MESSAGE)
            .max_encoding_message_size(MAX_MESSAGE);
        let (outgoing, stream) = mpsc::channel(UNDER_WAY);
        let hello = from_worker::Message::Hello(self.hello(running, blobs));
        // The channel is new, and has room.
        let _ = outgoing.try_send(FromWorker { message: Some(hello) });
        let mut request = Request::new(ReceiverStream::new(stream));
        if let Some(token) = &self.config.token {
            request.metadata_mut().insert("authorization", token.header());
        }
        let joining = tokio::time::timeout(DIAL_WITHIN, client.join(request)).await;
        let response = joining.map_err(|_| "the coordinator does not answer".to_owned())?;
        Ok((outgoing, response.map_err(|status| route::why_ended(&status))?.into_inner()))
    }

    fn hello(&self, running: Vec<SessionLease>, blobs: &Mutex<Blobs>) -> v1::Hello {
        let session = running.first().map(|lease| Bytes::copy_from_slice(&lease.session.0));
        let mut blobs = blobs.lock();
        blobs.ready(MAX_HELD);
        let held = |(hash, size)| v1::Held { hash: blob::hash_to_wire(hash), size };
        v1::Hello {
            version: proto::VERSION,
            name: self.config.name.clone(),
            slots: self.config.threads,
            cache_bytes: self.config.cache_bytes,
            held: blobs.held().map(held).collect(),
            instance: self.instance.0.to_vec().into(),
            session: session.unwrap_or_default(),
            running: blob::lease_ids_to_wire(running.into_iter().map(|lease| lease.id)),
        }
    }
}

/// Sends messages and heartbeats until there are no more messages, or the connection has ended.
async fn send(
    mut messages: mpsc::Receiver<Message>,
    outgoing: mpsc::Sender<FromWorker>,
    assigned: Assigned,
    blobs: Arc<Mutex<Blobs>>,
    events: mpsc::Sender<ConnectionEvent>,
) {
    let mut heartbeats = tokio::time::interval(proto::HEARTBEAT_INTERVAL);
    heartbeats.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        let message = tokio::select! {
            message = messages.recv() => match message {
                Some(message) => Some(message),
                None => return,
            },
            _ = heartbeats.tick() => None,
        };
        let sent = match message {
            None => send_message(&outgoing, from_worker::Message::Heartbeat(v1::Heartbeat {})).await,
            Some(Message::Drain) => send_message(&outgoing, from_worker::Message::Drain(v1::Drain {})).await,
            Some(Message::Reports(mut reports)) => {
                // The coordinator waits for confirmations, and an answer may be large.
                reports.sort_by_key(|computed| !matches!(computed.report, Report::Withdrawn));
                let leases = reports.iter().map(|computed| computed.lease).collect();
                let mut sent = true;
                for computed in reports {
                    sent = sent && send_report(&outgoing, computed, &assigned, &blobs).await;
                }
                sent && events.send(ConnectionEvent::Happened(Event::Sent { leases })).await.is_ok()
            }
        };
        if !sent {
            return; // the receiving side reports the reason
        }
    }
}

async fn send_message(outgoing: &mpsc::Sender<FromWorker>, message: from_worker::Message) -> bool {
    outgoing.send(FromWorker { message: Some(message) }).await.is_ok()
}

async fn send_report(
    outgoing: &mpsc::Sender<FromWorker>,
    Computed { lease, report }: Computed,
    assigned: &Mutex<BTreeSet<LeaseId>>,
    blobs: &Mutex<Blobs>,
) -> bool {
    // The coordinator may assign the next task as soon as it has the report.
    let is_here = assigned.lock().remove(&lease.id);
    let id = blob::lease_id_to_wire(lease.id);
    let (payload, shard_state, busy) = match report {
        Report::Answer { bytes, shard_state, busy } => (bytes, shard_state, busy),
        Report::Failure { detail, lacks_memory } => {
            let failure = v1::Failure { id: Some(id), detail, lacks_memory };
            return send_message(outgoing, from_worker::Message::Failure(failure)).await;
        }
        Report::Withdrawn => {
            let withdrawn = v1::Withdrawn { leases: vec![id] };
            return send_message(outgoing, from_worker::Message::Withdrawn(withdrawn)).await;
        }
    };
    // Reported in the order in which blobs are stored, so that both sides agree on the content of the cache.
    let keep = |shard_state| blobs.lock().keep(shard_state);
    let kept = shard_state.filter(|_| is_here).and_then(keep);
    let (busy_micros, extent) = (busy.as_micros() as u64, Some(payload::extent(&payload)));
    let head = v1::AnswerHead { id: Some(id), busy_micros, extent, kept };
    if !send_message(outgoing, from_worker::Message::Answer(head)).await {
        return false;
    }
    for piece in payload::pieces(payload) {
        if !send_message(outgoing, from_worker::Message::Piece(piece)).await {
            return false;
        }
    }
    true
}

/// Head of the payload that is arriving.
enum Head {
    Blob(v1::BlobHead),
    Lease(v1::LeaseHead),
}

/// Receives until the connection ends, and returns the reason.
async fn receive(
    mut incoming: Streaming<FromCoordinator>,
    blobs: Arc<Mutex<Blobs>>,
    assigned: &Assigned,
    slots: u32,
    events: &mpsc::Sender<ConnectionEvent>,
) -> Result<std::convert::Infallible, End> {
    let mut arriving: Option<(Head, Assembly)> = None;
    let mut welcomed = false;
    loop {
        let message = if welcomed {
            incoming.message().await
        } else {
            tokio::time::timeout(WELCOME_WITHIN, incoming.message())
                .await
                .map_err(|_| "the coordinator sent no welcome in time".to_owned())?
        };
        let message = message.map_err(|status| route::why_ended(&status))?;
        let message = message.ok_or_else(|| "closed by the coordinator".to_owned())?.message;
        let (head, progress) = match (message, arriving.take()) {
            (Some(from_coordinator::Message::Welcome(welcome)), None) => {
                let session: SessionId = wire(blob::session_from_wire("welcome.session", &welcome.session))?;
                welcomed = true;
                tell(events, ConnectionEvent::Happened(Event::Welcomed { session })).await?;
                continue;
            }
            (Some(from_coordinator::Message::Refusal(refusal)), None) => {
                return Err(refused(&refusal));
            }
            (Some(from_coordinator::Message::Finished(_)), None) => {
                tell(events, ConnectionEvent::Happened(Event::Finished)).await?;
                continue;
            }
            (Some(from_coordinator::Message::Withdraw(withdraw)), None) => {
                let leases = wire(blob::lease_ids_from_wire(withdraw.leases))?;
                tell(events, ConnectionEvent::Withdrawn(leases)).await?;
                continue;
            }
            (Some(from_coordinator::Message::Release(release)), None) => {
                wire(blobs.lock().release(&release))?;
                continue;
            }
            (Some(from_coordinator::Message::Blob(head)), None) => {
                wire(blobs.lock().expect_blob())?;
                let progress = Assembly::begin(head.extent.clone(), MAX_PAYLOAD);
                (Head::Blob(head), progress)
            }
            (Some(from_coordinator::Message::Lease(head)), None) => {
                let lease = wire(blob::lease_id_from_wire(head.id))?;
                if !admit(assigned, lease, max_leases(slots)) {
                    return Err(format!("the coordinator assigned too many tasks for {slots} threads").into());
                }
                let progress = Assembly::begin(head.extent.clone(), MAX_PAYLOAD);
                (Head::Lease(head), progress)
            }
            (Some(from_coordinator::Message::Piece(piece)), Some((head, assembly))) => {
                (head, assembly.push(&piece))
            }
            _ => return Err("the coordinator sent a message out of order".to_owned().into()),
        };
        match progress.map_err(|error| error.to_string())? {
            Progress::Partial(assembly) => arriving = Some((head, assembly)),
            Progress::Whole(payload) => {
                let blobs = blobs.clone();
                let is_small = payload.len() <= payload::SMALL;
                let take = move || take(head, payload, &blobs);
                // Large values take a while to decode; heartbeats must not wait for them.
                let taken = if is_small {
                    take()
                } else {
                    tokio::task::spawn_blocking(take).await.map_err(|error| error.to_string())?
                };
                if let Some(assigned) = taken? {
                    tell(events, assigned).await?;
                }
            }
        }
    }
}

/// Adds the lease unless there are `limit` already; returns whether it was added.
fn admit(assigned: &Assigned, lease: LeaseId, limit: usize) -> bool {
    let mut assigned = assigned.lock();
    assigned.len() < limit && assigned.insert(lease)
}

fn refused(refusal: &v1::Refusal) -> End {
    // The peer's text must fit one line of a log.
    let said: String = refusal.detail.chars().filter(|letter| !letter.is_control()).take(500).collect();
    let detail = format!("the coordinator refused this worker: {said}");
    match refusal.reason() {
        refusal::Reason::TooManyMembers => End::Full(detail),
        refusal::Reason::OtherSession => End::OtherSession,
        refusal::Reason::Unspecified
        | refusal::Reason::Version
        | refusal::Reason::Token
        | refusal::Reason::Malformed => End::Refused(detail),
    }
}

fn take(head: Head, payload: Bytes, blobs: &Mutex<Blobs>) -> Result<Option<ConnectionEvent>, End> {
    let lock = || blobs.lock();
    match head {
        Head::Blob(head) => {
            // Decoded before the lock is taken: heartbeats must not wait for that either.
            let blob = wire(Blob::from_bytes(head.kind, &payload))?;
            lock().insert(blob, payload.len() as u64);
            Ok(None)
        }
        Head::Lease(head) => {
            let task = wire(lock().task(&head, &payload))?;
            Ok(Some(ConnectionEvent::Assigned(wire(blob::lease_id_from_wire(head.id))?, Box::new(task))))
        }
    }
}

fn wire<T>(result: Result<T, Invalid>) -> Result<T, End> {
    result.map_err(|error| End::Lost(format!("the coordinator broke the protocol: {error}")))
}

async fn tell(events: &mpsc::Sender<ConnectionEvent>, event: ConnectionEvent) -> Result<(), End> {
    events.send(event).await.map_err(|_| End::Lost("this worker has ended".into()))
}
