//! Remote members: the gRPC service, one member per stream.
//!
//! In: connections from workers. Out: [`Input`]s for the driver; leases, and before them the blobs that the
//! member lacks, for the worker. Invariants: nobody joins without the token, if there is one; what reaches the
//! driver is valid; a connection that ends, for whatever reason, ends its member.

use std::collections::VecDeque;
use std::net::TcpListener;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use prost::Message;
use prost::bytes::Bytes;
use proto::convert::blob::{self, Blob};
use proto::convert::{Wire, WireError, fits};
use proto::lease::SessionId;
use proto::payload::{self, Assembly, PayloadError, Progress};
use proto::token::Token;
use proto::v1::status_server::StatusServer;
use proto::v1::work_server::{Work, WorkServer};
use proto::v1::{self, FromCoordinator, FromWorker, from_coordinator, from_worker, refusal};
use proto::{MAX_HELD, MAX_MESSAGE, MAX_SLOTS};
use shared::task::{Answer, ContentHash};
use tokio::sync::{mpsc, oneshot, watch};
use tokio_stream::wrappers::{ReceiverStream, TcpListenerStream};
use tonic::{Request, Response, Status, Streaming};
use tracing::warn;

use super::Traffic;
use super::driver::{Current, Desk, Input, Job, Order};
use super::holdings::Holdings;
use super::scheduler::{Cause, Event, MemberId};
use crate::status::service::StatusService;

/// How long a new connection may take to say hello.
const HELLO_WITHIN: Duration = Duration::from_secs(10);

/// Messages that may wait for a slow worker: a few pieces.
const UNDER_WAY: usize = 4;

/// Where workers come in.
#[derive(Clone)]
pub(super) struct Door {
    token: Option<Token>,
    session: SessionId,
    to_fleet: mpsc::Sender<Input>,
    traffic: Arc<Traffic>,
    current: watch::Receiver<Option<Current>>,
    encodings: Arc<Encodings>,
}

/// Listens until the runtime ends.
pub(super) async fn serve(listener: TcpListener, door: Door, status: StatusService) {
    let service =
        WorkServer::new(door).max_decoding_message_size(MAX_MESSAGE).max_encoding_message_size(MAX_MESSAGE);
    let served = async {
        let listener = tokio::net::TcpListener::from_std(listener)?;
        tonic::transport::Server::builder()
            .http2_keepalive_interval(Some(proto::KEEP_ALIVE_INTERVAL))
            .http2_keepalive_timeout(Some(proto::KEEP_ALIVE_TIMEOUT))
            .initial_stream_window_size(proto::WINDOW)
            .initial_connection_window_size(proto::WINDOW)
            .tcp_nodelay(true)
            .add_service(service)
            .add_service(StatusServer::new(status))
            .serve_with_incoming(TcpListenerStream::new(listener))
            .await?;
        Ok::<(), Box<dyn std::error::Error + Send + Sync>>(())
    };
    if let Err(error) = served.await {
        tracing::error!(error, "no longer listening for workers");
    }
}

#[tonic::async_trait]
impl Work for Door {
    type JoinStream = ReceiverStream<Result<FromCoordinator, Status>>;

    async fn join(
        &self,
        request: Request<Streaming<FromWorker>>,
    ) -> Result<Response<Self::JoinStream>, Status> {
        let (outgoing, stream) = mpsc::channel(UNDER_WAY);
        let header = request.metadata().get("authorization").and_then(|value| value.to_str().ok());
        let admitted = self.token.as_ref().is_none_or(|token| token.admits(header));
        let peer = request.remote_addr();
        let line = Line { outgoing, traffic: self.traffic.clone() };
        let (door, incoming) = (self.clone(), request.into_inner());
        tokio::spawn(async move {
            if !admitted {
                warn!(?peer, "a worker without the right token was refused");
                line.refuse(refusal::Reason::Token, "the token is not the coordinator's").await;
                return;
            }
            if let Err(Refused(reason, detail)) = door.receive(incoming, &line).await {
                warn!(?peer, detail, "a worker was refused");
                line.refuse(reason, &detail).await;
            }
        });
        Ok(Response::new(ReceiverStream::new(stream)))
    }
}

/// A worker that may not join, and why.
struct Refused(refusal::Reason, String);

/// A hello that was checked.
struct Guest {
    name: String,
    slots: u32,
    holds: Vec<ContentHash>,
    holdings: Holdings,
}

impl Door {
    /// A door to the fleet at the other end of `to_fleet`.
    pub fn new(
        token: Option<Token>,
        session: SessionId,
        to_fleet: mpsc::Sender<Input>,
        traffic: Arc<Traffic>,
        current: watch::Receiver<Option<Current>>,
    ) -> Door {
        Door { token, session, to_fleet, traffic, current, encodings: Arc::default() }
    }

    /// From hello to the end of the connection.
    async fn receive(&self, mut incoming: Streaming<FromWorker>, line: &Line) -> Result<(), Refused> {
        let first = tokio::time::timeout(HELLO_WITHIN, incoming.message()).await;
        let Ok(Ok(Some(FromWorker { message: Some(from_worker::Message::Hello(hello)) }))) = first else {
            return Err(Refused(refusal::Reason::Malformed, "the first message is not a hello".into()));
        };
        let guest = greet(hello)?;
        let (desk, orders, dismissed) = Desk::new(guest.slots, true);
        let (reply, joined) = oneshot::channel();
        let Guest { name, slots, holds, holdings } = guest;
        let joining = Input::Joined { name, slots, holds, desk, reply };
        if self.to_fleet.send(joining).await.is_err() {
            return Ok(()); // the fleet has stopped
        }
        let Ok(Some(member)) = joined.await else {
            return Err(Refused(refusal::Reason::TooManyMembers, "the coordinator takes no more".into()));
        };
        let session = Bytes::copy_from_slice(&self.session.0);
        let cause = if line.send(from_coordinator::Message::Welcome(v1::Welcome { session })).await {
            tokio::select! {
                cause = self.read(member, incoming) => cause,
                cause = self.write(orders, holdings, line) => cause,
                _ = dismissed => Cause::Left,
            }
        } else {
            Cause::Disconnected("closed before the welcome".into())
        };
        // An error means that the fleet has stopped.
        let _ = self.to_fleet.send(Input::Happened(Event::MemberLost { member, cause })).await;
        Ok(())
    }

    /// Reads what the member sends until it ends; why it did.
    async fn read(&self, member: MemberId, mut incoming: Streaming<FromWorker>) -> Cause {
        let mut draining = false;
        let mut answer: Option<(v1::AnswerHead, Assembly)> = None;
        loop {
            let message = match incoming.message().await {
                Ok(Some(message)) => message,
                Ok(None) if draining => return Cause::Left,
                Ok(None) => return Cause::Disconnected("closed by the worker".into()),
                Err(status) => return Cause::Disconnected(status.message().into()),
            };
            self.traffic.count_received(message.encoded_len());
            let input = match (message.message, answer.take()) {
                (Some(from_worker::Message::Beat(_)), unfinished) => {
                    answer = unfinished;
                    Ok(Input::Happened(Event::Heard { member }))
                }
                (Some(from_worker::Message::Answer(head)), None) => {
                    let begun = Assembly::begin(head.extent.clone());
                    self.advance(member, head, begun, &mut answer).await
                }
                (Some(from_worker::Message::Piece(piece)), Some((head, assembly))) => {
                    self.advance(member, head, assembly.push(&piece), &mut answer).await
                }
                (Some(from_worker::Message::Failure(failure)), None) => {
                    match blob::lease_id_from_wire(failure.id) {
                        Ok(lease) => {
                            Ok(Input::Happened(Event::Failed { member, lease, detail: failure.detail }))
                        }
                        Err(error) => Err(error.to_string()),
                    }
                }
                (Some(from_worker::Message::Drain(_)), None) => {
                    draining = true;
                    Ok(Input::Happened(Event::MemberDraining { member }))
                }
                _ => Err("a message out of order".into()),
            };
            let input = match input {
                Ok(input) => input,
                Err(broken) => return Cause::Protocol(broken),
            };
            if self.to_fleet.send(input).await.is_err() {
                return Cause::Left; // the fleet has stopped
            }
        }
    }

    /// What an answer's head or piece amounts to: a sign of life, or the whole answer.
    async fn advance(
        &self,
        member: MemberId,
        head: v1::AnswerHead,
        progress: Result<Progress, PayloadError>,
        answer: &mut Option<(v1::AnswerHead, Assembly)>,
    ) -> Result<Input, String> {
        let bytes = match progress.map_err(|error| error.to_string())? {
            Progress::Partial(assembly) => {
                *answer = Some((head, assembly));
                return Ok(Input::Happened(Event::Heard { member }));
            }
            Progress::Whole(bytes) => bytes,
        };
        let lease = blob::lease_id_from_wire(head.id).map_err(|error| error.to_string())?;
        // An answer to any other batch will be discarded, whatever it says.
        let current = self.current.borrow().clone().filter(|current| current.id == lease.batch);
        let decode = move || {
            let answer = Answer::from_bytes(bytes)?;
            if let Some(task) = current.as_ref().and_then(|current| current.tasks.get(lease.task.index())) {
                fits::answer(task, &answer)?;
            }
            Ok(answer)
        };
        let answer = tokio::task::spawn_blocking(decode).await;
        let answer = answer.map_err(|error| error.to_string())?;
        let answer = answer.map_err(|error: WireError| error.to_string())?;
        Ok(Input::Answered { member, lease, answer, busy: Duration::from_micros(head.busy_micros) })
    }

    /// Sends what the member is told until it is told nothing more, or cannot be.
    async fn write(&self, mut orders: mpsc::Receiver<Order>, mut holdings: Holdings, line: &Line) -> Cause {
        while let Some(order) = orders.recv().await {
            let sent = match order {
                Order::Leave => line.send(from_coordinator::Message::Finished(v1::Finished {})).await,
                Order::Compute(job) => self.send_job(job, &mut holdings, line).await,
            };
            if !sent {
                return Cause::Disconnected("closed by the worker".into());
            }
        }
        Cause::Left
    }

    /// The blobs that the member lacks, those it may forget, and the lease; whether they could be sent.
    async fn send_job(&self, job: Job, holdings: &mut Holdings, line: &Line) -> bool {
        let blobs = Blob::of_task(job.task());
        let needed: Vec<ContentHash> = blobs.iter().map(Blob::hash).collect();
        for blob in blobs {
            let hash = blob.hash();
            if holdings.touch(hash) {
                continue;
            }
            let encodings = self.encodings.clone();
            let encode = move || (blob.kind() as i32, encodings.of(&blob));
            let Ok((kind, bytes)) = tokio::task::spawn_blocking(encode).await else { return false };
            holdings.insert(hash, bytes.len() as u64);
            let extent = Some(payload::extent(&bytes));
            let head = v1::BlobHead { kind, hash: blob::hash_to_wire(hash), extent };
            if !line.send_payload(from_coordinator::Message::Blob(head), bytes).await {
                return false;
            }
        }
        let released = holdings.release(&needed);
        if !released.is_empty() {
            let hashes = released.into_iter().map(blob::hash_to_wire).collect();
            if !line.send(from_coordinator::Message::Release(v1::Release { hashes })).await {
                return false;
            }
        }
        let encode = move || blob::lease_to_wire(job.lease, job.task());
        let Ok((head, bytes)) = tokio::task::spawn_blocking(encode).await else { return false };
        line.send_payload(from_coordinator::Message::Lease(head), bytes).await
    }
}

fn greet(hello: v1::Hello) -> Result<Guest, Refused> {
    let v1::Hello { version, name, slots, cache_bytes, held } = hello;
    if version != proto::VERSION {
        let detail = format!(
            "the worker speaks version {version}, the coordinator {}; install the same release on both",
            proto::VERSION
        );
        return Err(Refused(refusal::Reason::Version, detail));
    }
    if !(1..=MAX_SLOTS).contains(&slots) || held.len() > MAX_HELD {
        let detail = format!("slots: {slots}, expected 1 to {MAX_SLOTS}; held: {}", held.len());
        return Err(Refused(refusal::Reason::Malformed, detail));
    }
    let entry = |held: v1::Held| Ok((blob::hash_from_wire("hello.held", &held.hash)?, held.size));
    let held: Result<Vec<_>, WireError> = held.into_iter().map(entry).collect();
    let held = held.map_err(|error| Refused(refusal::Reason::Malformed, error.to_string()))?;
    let holds = held.iter().map(|&(hash, _)| hash).collect();
    let name = name.chars().filter(|letter| !letter.is_control()).take(64).collect();
    Ok(Guest { name, slots, holds, holdings: Holdings::new(cache_bytes, held) })
}

/// The way to a worker.
struct Line {
    outgoing: mpsc::Sender<Result<FromCoordinator, Status>>,
    traffic: Arc<Traffic>,
}

impl Line {
    /// Whether the worker is still there to be sent to.
    async fn send(&self, message: from_coordinator::Message) -> bool {
        let message = FromCoordinator { message: Some(message) };
        self.traffic.count_sent(message.encoded_len());
        self.outgoing.send(Ok(message)).await.is_ok()
    }

    async fn send_payload(&self, head: from_coordinator::Message, payload: Bytes) -> bool {
        if !self.send(head).await {
            return false;
        }
        for piece in payload::pieces(payload) {
            if !self.send(from_coordinator::Message::Piece(piece)).await {
                return false;
            }
        }
        true
    }

    async fn refuse(&self, reason: refusal::Reason, detail: &str) {
        let refusal = v1::Refusal { reason: reason as i32, detail: detail.into() };
        // A worker that is gone need not be told.
        self.send(from_coordinator::Message::Refusal(refusal)).await;
    }
}

/// The latest encodings of blobs that all members need, so that a thousand members cost one encoding.
#[derive(Default)]
struct Encodings(Mutex<VecDeque<(ContentHash, Bytes)>>);

impl Encodings {
    /// A grammar, a lexicon and weights to decode with, and those of the batch before.
    const KEPT: usize = 6;

    fn of(&self, blob: &Blob) -> Bytes {
        if matches!(blob, Blob::Shard(_)) {
            return blob.to_bytes(); // mostly for one member only
        }
        // Held while encoding: whoever comes second waits for the first instead of repeating its work.
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, bytes)) = kept.iter().find(|(hash, _)| *hash == blob.hash()) {
            return bytes.clone();
        }
        let bytes = blob.to_bytes();
        kept.push_back((blob.hash(), bytes.clone()));
        if kept.len() > Self::KEPT {
            kept.pop_front();
        }
        bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hello() -> v1::Hello {
        v1::Hello { version: proto::VERSION, name: "a\nb".into(), slots: 2, ..v1::Hello::default() }
    }

    #[test]
    fn a_hello_is_checked_and_its_refusal_says_why() {
        let guest = greet(hello()).ok().unwrap();
        assert_eq!((&guest.name[..], guest.slots), ("ab", 2));

        let held = v1::Held { hash: Bytes::from_static(b"short"), size: 1 };
        let cases = [
            (v1::Hello { version: 99, ..hello() }, refusal::Reason::Version, "the worker speaks version 99"),
            (v1::Hello { slots: 0, ..hello() }, refusal::Reason::Malformed, "slots: 0"),
            (v1::Hello { slots: u32::MAX, ..hello() }, refusal::Reason::Malformed, "slots: 4294967295"),
            (v1::Hello { held: vec![held], ..hello() }, refusal::Reason::Malformed, "hello.held: length 5"),
        ];
        for (hello, reason, message) in cases {
            let Refused(found, detail) = greet(hello).err().unwrap();
            assert!(found == reason && detail.starts_with(message), "{found:?}: {detail}");
        }
    }
}
