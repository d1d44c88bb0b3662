//! One connection to the coordinator, from dialing to its end.
//!
//! In: parcels to send. Out: [`News`] for the driver, in the order of the stream; the last one says why the
//! connection ended. A sign of life goes out every second unless something else does.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use prost::bytes::Bytes;
use proto::convert::WireError;
use proto::convert::blob;
use proto::lease::{LeaseId, SessionId};
use proto::payload::{self, Assembly, Progress};
use proto::v1::work_client::WorkClient;
use proto::v1::{self, FromCoordinator, FromWorker, from_coordinator, from_worker};
use proto::{MAX_HELD, MAX_MESSAGE};
use shared::task::Task;
use tokio::sync::mpsc;
use tokio::time::MissedTickBehavior;
use tokio_stream::wrappers::ReceiverStream;
use tonic::transport::Endpoint;
use tonic::{Request, Streaming};

use crate::blobs::Blobs;
use crate::membership::{Errand, Event};
use crate::{RunError, WorkerConfig};

/// How long a connection may take to come about.
const DIAL_WITHIN: Duration = Duration::from_secs(5);

/// Messages that may wait for a slow network: a few pieces.
const UNDER_WAY: usize = 4;

/// What the driver hears from the connection.
pub(crate) enum News {
    /// Something for the membership.
    Happened(Event),
    /// A task was lent, by the session that welcomed this worker.
    Lent(LeaseId, Box<Task>),
}

/// What the driver sends.
pub(crate) enum Parcel {
    /// An answer, or why there is none.
    Answer {
        /// To which lease.
        errand: Errand,
        /// Encoded.
        answer: Result<Bytes, String>,
        /// Time spent.
        busy: Duration,
    },
    /// Lend nothing more.
    Drain,
}

/// Where to dial and how; the address is checked.
#[derive(Clone)]
pub(crate) struct Dialer {
    endpoint: Endpoint,
    config: WorkerConfig,
}

impl Dialer {
    /// Checks address and identity.
    pub fn new(config: &WorkerConfig) -> Result<Dialer, RunError> {
        let url = || config.coordinator.clone();
        let endpoint =
            Endpoint::from_shared(config.coordinator.clone()).map_err(|_| RunError::Url { url: url() })?;
        let host = endpoint.uri().host().map(|host| host.trim_matches(['[', ']']).to_owned());
        let (Some(host), Some("http")) = (host, endpoint.uri().scheme_str()) else {
            return Err(RunError::Url { url: url() });
        };
        let loopback = host.parse::<std::net::IpAddr>().map_or(host == "localhost", |ip| ip.is_loopback());
        if !loopback && config.token.is_none() && !config.insecure {
            return Err(RunError::Exposed { url: url() });
        }
        let endpoint = endpoint
            .connect_timeout(DIAL_WITHIN)
            .http2_keep_alive_interval(proto::KEEP_ALIVE_INTERVAL)
            .keep_alive_timeout(proto::KEEP_ALIVE_TIMEOUT)
            .keep_alive_while_idle(true)
            .initial_stream_window_size(proto::WINDOW)
            .initial_connection_window_size(proto::WINDOW)
            .tcp_nodelay(true);
        Ok(Dialer { endpoint, config: config.clone() })
    }

    /// Dials and stays connected until either side ends it; dropping the sender of `parcels` does, after all
    /// of them were sent.
    pub async fn run(
        self,
        blobs: Arc<Mutex<Blobs>>,
        parcels: mpsc::Receiver<Parcel>,
        news: mpsc::Sender<News>,
    ) {
        let detail = match self.dial(&blobs).await {
            Ok((outgoing, incoming)) => {
                let sender = tokio::spawn(send(parcels, outgoing, news.clone()));
                let Err(detail) = receive(incoming, blobs, &news).await;
                sender.abort();
                detail
            }
            Err(detail) => detail,
        };
        // An error means that the driver has ended.
        let _ = news.send(News::Happened(Event::Disconnected { detail })).await;
    }

    async fn dial(
        &self,
        blobs: &Mutex<Blobs>,
    ) -> Result<(mpsc::Sender<FromWorker>, Streaming<FromCoordinator>), String> {
        let channel = self.endpoint.connect().await.map_err(|error| chain(&error))?;
        let mut client = WorkClient::new(channel)
            .max_decoding_message_size(MAX_MESSAGE)
            .max_encoding_message_size(MAX_MESSAGE);
        let (outgoing, stream) = mpsc::channel(UNDER_WAY);
        let hello = from_worker::Message::Hello(self.hello(blobs));
        // The channel has just been made, and has room.
        let _ = outgoing.try_send(FromWorker { message: Some(hello) });
        let mut request = Request::new(ReceiverStream::new(stream));
        if let Some(token) = &self.config.token {
            let header = token.header().parse().map_err(|_| "the token cannot be sent".to_owned())?;
            request.metadata_mut().insert("authorization", header);
        }
        let joining = tokio::time::timeout(DIAL_WITHIN, client.join(request)).await;
        let response = joining.map_err(|_| "the coordinator does not answer".to_owned())?;
        Ok((outgoing, response.map_err(|status| status.message().to_owned())?.into_inner()))
    }

    fn hello(&self, blobs: &Mutex<Blobs>) -> v1::Hello {
        let mut blobs = blobs.lock().unwrap_or_else(PoisonError::into_inner);
        blobs.shrink(MAX_HELD);
        let held = |(hash, size)| v1::Held { hash: blob::hash_to_wire(hash), size };
        v1::Hello {
            version: proto::VERSION,
            name: self.config.name.clone(),
            slots: self.config.threads,
            cache_bytes: self.config.cache_bytes,
            held: blobs.held().map(held).collect(),
        }
    }
}

/// An error and its causes, on one line.
fn chain(error: &dyn std::error::Error) -> String {
    let mut line = error.to_string();
    let mut source = error.source();
    while let Some(error) = source {
        line = format!("{line}: {error}");
        source = error.source();
    }
    line
}

/// Sends parcels and signs of life until there are no more parcels, or nobody to send them to.
async fn send(
    mut parcels: mpsc::Receiver<Parcel>,
    outgoing: mpsc::Sender<FromWorker>,
    news: mpsc::Sender<News>,
) {
    let mut beats = tokio::time::interval(proto::BEAT);
    beats.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        let parcel = tokio::select! {
            parcel = parcels.recv() => match parcel {
                Some(parcel) => Some(parcel),
                None => return,
            },
            _ = beats.tick() => None,
        };
        let sent = match parcel {
            None => send_message(&outgoing, from_worker::Message::Beat(v1::Beat {})).await,
            Some(Parcel::Drain) => send_message(&outgoing, from_worker::Message::Drain(v1::Drain {})).await,
            Some(Parcel::Answer { errand, answer, busy }) => {
                let sent = send_answer(&outgoing, errand.lease, answer, busy).await;
                sent && news.send(News::Happened(Event::Sent { errand })).await.is_ok()
            }
        };
        if !sent {
            return; // the receiving side knows why
        }
    }
}

async fn send_message(outgoing: &mpsc::Sender<FromWorker>, message: from_worker::Message) -> bool {
    outgoing.send(FromWorker { message: Some(message) }).await.is_ok()
}

async fn send_answer(
    outgoing: &mpsc::Sender<FromWorker>,
    lease: LeaseId,
    answer: Result<Bytes, String>,
    busy: Duration,
) -> bool {
    let id = Some(blob::lease_id_to_wire(lease));
    let payload = match answer {
        Ok(payload) => payload,
        Err(detail) => {
            let failure = v1::Failure { id, detail };
            return send_message(outgoing, from_worker::Message::Failure(failure)).await;
        }
    };
    let (busy_micros, extent) = (busy.as_micros() as u64, Some(payload::extent(&payload)));
    let head = v1::AnswerHead { id, busy_micros, extent };
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

/// Whose payload is arriving.
enum Head {
    Blob(v1::BlobHead),
    Lease(v1::LeaseHead),
}

/// Receives until the connection ends; why it did.
async fn receive(
    mut incoming: Streaming<FromCoordinator>,
    blobs: Arc<Mutex<Blobs>>,
    news: &mpsc::Sender<News>,
) -> Result<std::convert::Infallible, String> {
    let mut arriving: Option<(Head, Assembly)> = None;
    loop {
        let message = incoming.message().await.map_err(|status| status.message().to_owned())?;
        let message = message.ok_or("closed by the coordinator")?.message;
        let (head, progress) = match (message, arriving.take()) {
            (Some(from_coordinator::Message::Welcome(welcome)), None) => {
                let session: SessionId = wire(blob::session_from_wire(&welcome.session))?;
                tell(news, News::Happened(Event::Welcomed { session })).await?;
                continue;
            }
            (Some(from_coordinator::Message::Refusal(refusal)), None) => {
                tell(news, News::Happened(Event::Refused { detail: refusal.detail })).await?;
                continue;
            }
            (Some(from_coordinator::Message::Finished(_)), None) => {
                tell(news, News::Happened(Event::Finished)).await?;
                continue;
            }
            (Some(from_coordinator::Message::Release(release)), None) => {
                wire(blobs.lock().unwrap_or_else(PoisonError::into_inner).release(&release))?;
                continue;
            }
            (Some(from_coordinator::Message::Blob(head)), None) => {
                let progress = Assembly::begin(head.extent.clone());
                (Head::Blob(head), progress)
            }
            (Some(from_coordinator::Message::Lease(head)), None) => {
                let progress = Assembly::begin(head.extent.clone());
                (Head::Lease(head), progress)
            }
            (Some(from_coordinator::Message::Piece(piece)), Some((head, assembly))) => {
                (head, assembly.push(&piece))
            }
            _ => return Err("the coordinator sent a message out of order".into()),
        };
        match progress.map_err(|error| error.to_string())? {
            Progress::Partial(assembly) => arriving = Some((head, assembly)),
            Progress::Whole(payload) => {
                let blobs = blobs.clone();
                let take =
                    move || take(head, payload, &mut blobs.lock().unwrap_or_else(PoisonError::into_inner));
                // Large values take a while to decode; signs of life must not wait for them.
                let taken = tokio::task::spawn_blocking(take).await.map_err(|error| error.to_string())?;
                if let Some(lent) = taken? {
                    tell(news, lent).await?;
                }
            }
        }
    }
}

fn take(head: Head, payload: Bytes, blobs: &mut Blobs) -> Result<Option<News>, String> {
    match head {
        Head::Blob(head) => wire(blobs.insert(&head, payload)).map(|()| None),
        Head::Lease(head) => {
            let task = wire(blobs.task(&head, payload))?;
            Ok(Some(News::Lent(wire(blob::lease_id_from_wire(head.id))?, Box::new(task))))
        }
    }
}

fn wire<T>(result: Result<T, WireError>) -> Result<T, String> {
    result.map_err(|error| format!("the coordinator broke the protocol: {error}"))
}

async fn tell(news: &mpsc::Sender<News>, item: News) -> Result<(), String> {
    news.send(item).await.map_err(|_| "this worker has ended".into())
}
