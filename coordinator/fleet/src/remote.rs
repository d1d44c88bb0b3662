//! Remote members: the gRPC service, one member per stream.
//!
//! In: connections from workers. Out: [`Input`]s for the driver; leases, and before them the blobs that the
//! member lacks, for the worker. Invariants: if there is a token, no worker joins without it; every input of the
//! driver is valid; the end of a connection, for any reason, ends its member; arriving answers take no more memory
//! than [`ROOM`], and each no more than its task can need.
//!
//! [`handshake`] accepts connections. Besides the workers' service there are the standard services for health and
//! reflection, which tell every client whether the coordinator accepts workers and which protocol it speaks, and nothing else.

use std::collections::VecDeque;
use std::net::TcpListener;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use basics::clock;
use grammaton::work::lease::{BatchId, LeaseId, SessionId};
use grammaton::work::task::{ContentHash, Task};
use parking_lot::Mutex;
use prost::Message;
use prost::bytes::Bytes;
use proto::MAX_MESSAGE;
use proto::blob::{self, Blob};
use proto::payload::{self, Assembly, Progress};
use proto::route;
use proto::tls::ServerTls;
use proto::v1::work_server::{Work, WorkServer};
use proto::v1::{self, FromCoordinator, FromWorker, from_coordinator, from_worker, refusal};
use proto::{check, lease};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc, oneshot, watch};
use tokio::time::MissedTickBehavior;
use tokio_stream::wrappers::ReceiverStream;
use tonic::codegen::http::header::{DATE, HeaderValue};
use tonic::service::Routes;
use tonic::{Code, Request, Response, Status, Streaming};
use tonic_health::ServingStatus;
use tonic_health::server::HealthReporter;
use tower_http::set_header::SetResponseHeaderLayer;
use tracing::{Instrument as _, Span, info, warn};

use self::answer_pieces::{Arriving, Body, CELL, ROOM, Step, due};
use self::breach::Breach;
use self::encodings::Encodings;
use self::greeting::{Guest, Refused, greet};
pub use self::handshake::Visitor;
use super::Traffic;
use super::blob_cache::BlobCache;
use super::messages::{Input, Job, MemberChannel, NotAdmitted, Order};
use super::tasks::Register;
use crate::access::{Access, Denied, Role};
use crate::revocation::Revocable;
use scheduler::{Cause, Event, Identity, MemberId, Process};

mod answer_pieces;
mod breach;
mod encodings;
mod greeting;
mod handshake;

/// Timeout for the hello of a new stream.
const HELLO_WITHIN: Duration = Duration::from_secs(10);

/// Timeout for a worker to close its connection after it ceased to be a member.
const LEAVE_WITHIN: Duration = Duration::from_secs(10);

/// Timeout for the last messages of a worker that accepts no more messages.
const LAST_WORDS: Duration = Duration::from_secs(1);

/// Maximum number of messages that wait for a slow worker: leases of short tasks that travel together, or pieces, which share the memory of
/// their payload.
const UNDER_WAY: usize = 32;

/// Maximum number of orders that are received at once.
const AT_ONCE: usize = 64;

/// Time for which tasks of a member are made before they are sent.
const MAKING: Duration = Duration::from_millis(1);

/// Flow-control window in bytes: two pieces. It bounds the bytes that wait while [`ROOM`] is full.
const WINDOW: u32 = 2 * payload::PIECE as u32;

/// Maximum number of concurrent streams of a connection; a worker has one, a probe few.
const STREAMS: u32 = 8;

/// Maximum size of a request's headers in bytes; the token is one of them.
const HEADERS: u32 = 16 << 10;

/// Maximum size of a request for health or reflection, in bytes.
pub const QUESTION: usize = 4 << 10;

/// Ends a connection that is of no more use, and is the worker's own to close first. It is a task of its own, since the state of a stay takes
/// kilobytes, and a worker may join and leave thousands of times meanwhile.
async fn dismiss_later(visitor: Visitor) {
    tokio::time::sleep(LEAVE_WITHIN).await;
    visitor.dismiss();
}

/// Text from a peer for the log: one line of at most that many letters.
fn printable(text: &str, letters: usize) -> String {
    text.chars().filter(|letter| !letter.is_control()).take(letters).collect()
}

/// Admission of workers.
#[derive(Clone)]
pub(super) struct Admission {
    access: Access,
    session: SessionId,
    to_fleet: mpsc::Sender<Input>,
    traffic: Arc<Traffic>,
    register: Arc<Register>,
    /// Whether workers may join.
    open: watch::Receiver<bool>,
    encodings: Arc<Encodings>,
    room: Arc<Semaphore>,
    /// Span of the run, for the log lines of all members.
    span: Span,
}

/// Listens until the runtime ends.
pub(super) async fn serve(
    listener: TcpListener,
    tls: Option<ServerTls>,
    admission: Admission,
    others: Routes,
) {
    let (reporter, health) = tonic_health::server::health_reporter();
    let (open, span) = (admission.open.clone(), admission.span.clone());
    let service = WorkServer::new(admission)
        .max_decoding_message_size(MAX_MESSAGE)
        .max_encoding_message_size(MAX_MESSAGE);
    let served = async {
        let listener = tokio::net::TcpListener::from_std(listener)?;
        // Handshakes wait here only if the services are slower than they are.
        let (inside, connections) = mpsc::channel(16);
        tokio::spawn(handshake::keep(listener, tls, inside).instrument(span));
        tokio::spawn(report_health(reporter, open));
        let reflection = || {
            tonic_reflection::server::Builder::configure()
                .register_encoded_file_descriptor_set(proto::DESCRIPTORS)
                .register_encoded_file_descriptor_set(tonic_health::pb::FILE_DESCRIPTOR_SET)
        };
        tonic::transport::Server::builder()
            .http2_keepalive_interval(Some(proto::KEEP_ALIVE_INTERVAL))
            .http2_keepalive_timeout(Some(proto::KEEP_ALIVE_TIMEOUT))
            .initial_stream_window_size(WINDOW)
            .initial_connection_window_size(WINDOW)
            .max_frame_size(proto::FRAME)
            .max_concurrent_streams(STREAMS)
            .http2_max_header_list_size(HEADERS)
            .layer(SetResponseHeaderLayer::if_not_present(DATE, |_: &Answered| early_date(today())))
            .add_routes(others)
            .add_service(service)
            .add_service(health.max_decoding_message_size(QUESTION))
            .add_service(reflection().build_v1()?.max_decoding_message_size(QUESTION))
            // What older tools ask for.
            .add_service(reflection().build_v1alpha()?.max_decoding_message_size(QUESTION))
            .serve_with_incoming(ReceiverStream::new(connections))
            .await?;
        Ok::<(), Box<dyn std::error::Error + Send + Sync>>(())
    };
    if let Err(error) = served.await {
        tracing::error!(error, "no longer listening for workers");
    }
}

type Answered = tonic::codegen::http::Response<tonic::body::Body>;

/// The date of an answer if the clock shows a time before 1970, over which hyper panics; it sets all others.
fn early_date(now: SystemTime) -> Option<HeaderValue> {
    let is_early = now < SystemTime::UNIX_EPOCH;
    is_early.then(|| HeaderValue::from_static("Thu, 01 Jan 1970 00:00:00 GMT"))
}

#[expect(clippy::disallowed_methods, reason = "the date of an answer; results do not depend on it")]
fn today() -> SystemTime {
    SystemTime::now()
}

/// Tells probes whether workers can join: as a whole, and by the name of the service.
async fn report_health(reporter: HealthReporter, mut open: watch::Receiver<bool>) {
    loop {
        let status =
            if *open.borrow_and_update() { ServingStatus::Serving } else { ServingStatus::NotServing };
        for service in ["", proto::v1::work_server::SERVICE_NAME] {
            reporter.set_service_status(service, status).await;
        }
        if open.changed().await.is_err() {
            return; // the fleet has stopped
        }
    }
}

#[tonic::async_trait]
impl Work for Admission {
    type JoinStream = Revocable<ReceiverStream<Result<FromCoordinator, Status>>>;

    async fn join(
        &self,
        request: Request<Streaming<FromWorker>>,
    ) -> Result<Response<Self::JoinStream>, Status> {
        let (outgoing, stream) = mpsc::channel(UNDER_WAY);
        let header = request.metadata().get("authorization").and_then(|value| value.to_str().ok());
        let visitor = request.extensions().get::<Visitor>().cloned();
        let visitor = visitor.ok_or_else(|| Status::internal("a connection without its visitor"))?;
        let admitted = visitor.admit_token(header, || self.access.admit(header, Role::Work));
        let revocable = |stream| match &admitted {
            Ok(_) => {
                let last = Err(Status::unauthenticated("the token was removed"));
                Revocable::new(stream, &self.access, header, Role::Work, Some(last))
            }
            // A refusal is sent in the stream.
            Err(_) => Revocable::new(stream, &Access::Open, None, Role::Work, None),
        };
        let stream = revocable(ReceiverStream::new(stream));
        let line = Line { outgoing, traffic: self.traffic.clone() };
        let (admission, incoming) = (self.clone(), request.into_inner());
        let span = self.span.clone();
        let stay = async move {
            let peer = visitor.peer;
            match admitted {
                Err(denied) => {
                    drop(incoming); // what it has sent already takes memory
                    if visitor.may_log() {
                        warn!(%peer, %denied, "a worker without the right token was refused");
                    }
                    let detail = match &denied {
                        Denied::Missing => {
                            "a token is needed; give it with --token-file FILE, or in GRAMMATON_TOKEN"
                                .to_owned()
                        }
                        Denied::Unknown => "the token is not the coordinator's".to_owned(),
                        Denied::Role { .. } | Denied::TooMany => denied.to_string(),
                    };
                    let reason = match denied {
                        // It may come again, as one that finds no place.
                        Denied::TooMany => refusal::Reason::TooManyMembers,
                        _ => refusal::Reason::Token,
                    };
                    line.refuse(reason, &detail).await;
                }
                Ok(identity) => {
                    let received = admission.receive(incoming, &line, &visitor, &identity.name).await;
                    if let Err(Refused(reason, detail)) = received {
                        match reason {
                            // It comes back once its threads are free.
                            refusal::Reason::OtherSession => {
                                info!(%peer, detail, "a worker has to stop tasks first");
                            }
                            _ if !visitor.may_log() => {}
                            _ => warn!(%peer, detail, "a worker was refused"),
                        }
                        line.refuse(reason, &detail).await;
                    }
                }
            }
            tokio::spawn(dismiss_later(visitor));
        };
        tokio::spawn(stay.instrument(span));
        Ok(Response::new(stream))
    }
}

impl Admission {
    /// The admission to the fleet at the other end of `to_fleet`.
    pub fn new(
        access: Access,
        session: SessionId,
        to_fleet: mpsc::Sender<Input>,
        traffic: Arc<Traffic>,
        register: Arc<Register>,
        open: watch::Receiver<bool>,
    ) -> Admission {
        let (encodings, room) = (Arc::default(), Arc::new(Semaphore::new((ROOM / CELL) as usize)));
        Admission {
            access,
            session,
            to_fleet,
            traffic,
            register,
            open,
            encodings,
            room,
            span: Span::current(),
        }
    }

    /// Serves a worker from its hello to the end of its connection.
    async fn receive(
        &self,
        mut incoming: Streaming<FromWorker>,
        line: &Line,
        visitor: &Visitor,
        token: &str,
    ) -> Result<(), Refused> {
        let first = tokio::time::timeout(HELLO_WITHIN, incoming.message()).await;
        let Ok(Ok(Some(FromWorker { message: Some(from_worker::Message::Hello(hello)) }))) = first else {
            return Err(Refused(refusal::Reason::Malformed, "the first message is not a hello".into()));
        };
        let guest = greet(hello, self.session)?;
        if !*self.open.borrow() {
            // Its job is done.
            line.send(from_coordinator::Message::Finished(v1::Finished {})).await;
            return Ok(());
        }
        let (channel, orders, dismissed) = MemberChannel::remote(guest.slots);
        let (reply, joined) = oneshot::channel();
        let Guest { name, instance, slots, holds, running, blob_cache } = guest;
        let machine = visitor.machine(token);
        let joining =
            Input::Joined { name, instance, machine: machine.clone(), slots, holds, running, channel, reply };
        if self.to_fleet.send(joining).await.is_err() {
            return Ok(()); // the fleet has stopped
        }
        let member = match joined.await {
            Ok(Ok(member)) => member,
            Ok(Err(NotAdmitted::Expelled(reason))) => {
                let detail =
                    format!("it was expelled: {reason}; its machine or its program computes wrongly");
                return Err(Refused(refusal::Reason::Unspecified, detail));
            }
            Ok(Err(NotAdmitted::Full)) | Err(_) => {
                let detail = "the coordinator takes no more members for now".into();
                return Err(Refused(refusal::Reason::TooManyMembers, detail));
            }
        };
        visitor.admit();
        let (peer, certificate) = (visitor.peer, visitor.certificate.as_deref());
        info!(member = member.0, %peer, certificate, "welcomed");
        let session = Bytes::copy_from_slice(&self.session.0);
        let cause = if line.send(from_coordinator::Message::Welcome(v1::Welcome { session })).await {
            let blob_cache = Mutex::new(blob_cache);
            let process = instance.map_or(Process::Unnamed(member), Process::Named);
            let read = self.read(member, Identity { process, machine }, incoming, &blob_cache);
            tokio::pin!(read);
            tokio::select! {
                cause = &mut read => cause,
                cause = self.write(member, orders, &blob_cache, line) => match cause {
                    // It takes nothing more. Why, its own last words may say: that it leaves.
                    Cause::Disconnected(_) => tokio::time::timeout(LAST_WORDS, read).await.unwrap_or(cause),
                    cause => cause,
                },
                _ = dismissed => Cause::Left,
            }
        } else {
            Cause::Disconnected("closed before the welcome".into())
        };
        // An error means that the fleet has stopped.
        let _ = self.to_fleet.send(Input::Happened(Event::MemberLost { member, cause })).await;
        Ok(())
    }

    /// Reads the member's messages until the connection ends. Returns the cause.
    async fn read(
        &self,
        member: MemberId,
        identity: Identity,
        mut incoming: Streaming<FromWorker>,
        blob_cache: &Mutex<BlobCache>,
    ) -> Cause {
        let mut draining = false;
        let mut arriving: Option<Arriving> = None;
        loop {
            let message = match &arriving {
                None => incoming.message().await,
                Some(answer) => match tokio::time::timeout_at(answer.due, incoming.message()).await {
                    Ok(message) => message,
                    Err(_) => return Cause::Protocol(Breach::Late(answer.lease).to_string()),
                },
            };
            let message = match message {
                Ok(Some(message)) => message,
                Ok(None) | Err(_) if draining => return Cause::Left,
                Ok(None) => return Cause::Disconnected("closed by the worker".into()),
                // Bytes that are no message, or too many of them.
                Err(status) if matches!(status.code(), Code::OutOfRange | Code::Internal) => {
                    return Cause::Protocol(printable(status.message(), 1000));
                }
                Err(status) => return Cause::Disconnected(printable(&route::why_ended(&status), 1000)),
            };
            self.traffic.count_received(message.encoded_len());
            let input = match (message.message, arriving.take()) {
                (Some(from_worker::Message::Heartbeat(_)), unfinished) => {
                    arriving = unfinished;
                    Ok(Input::Happened(Event::Heard { member }))
                }
                (Some(from_worker::Message::Answer(head)), None) => {
                    match self.begin(member, head, blob_cache).await {
                        Ok((answer, progress)) => self.advance(member, answer, progress, &mut arriving).await,
                        Err(breach) => Err(breach),
                    }
                }
                (Some(from_worker::Message::Piece(piece)), Some(mut answer)) => match answer.push(&piece) {
                    Ok(progress) => self.advance(member, answer, progress, &mut arriving).await,
                    Err(breach) => Err(breach),
                },
                (Some(from_worker::Message::Failure(failure)), None) => {
                    blob::lease_id_from_wire(failure.id).map_err(Breach::from).map(|lease| {
                        let detail = printable(&failure.detail, 1000);
                        Input::Happened(Event::Failed {
                            member,
                            lease,
                            detail,
                            lacks_memory: failure.lacks_memory,
                            is_certain: false,
                        })
                    })
                }
                (Some(from_worker::Message::Withdrawn(withdrawn)), None) => {
                    match blob::lease_ids_from_wire(withdrawn.leases) {
                        Ok(leases) => {
                            // Once the fleet has stopped, nothing is sent any more.
                            self.confirm(member, leases).await;
                            Ok(Input::Happened(Event::Heard { member }))
                        }
                        Err(error) => Err(error.into()),
                    }
                }
                (Some(from_worker::Message::Drain(_)), None) => {
                    draining = true;
                    Ok(Input::Happened(Event::MemberDraining { member }))
                }
                _ => Err(Breach::Order),
            };
            let input = match input {
                Ok(input) => input,
                Err(breach) => {
                    let reason = breach.to_string();
                    if breach.is_wrong_answer() {
                        let expelled = Input::Expelled { member, identity, reason: reason.clone() };
                        // An error means that the fleet has stopped.
                        let _ = self.to_fleet.send(expelled).await;
                    }
                    return Cause::Protocol(reason);
                }
            };
            if self.to_fleet.send(input).await.is_err() {
                return Cause::Left; // the fleet has stopped
            }
        }
    }

    /// Begins to receive an answer: finds its task, and room for its bytes.
    async fn begin(
        &self,
        member: MemberId,
        head: v1::AnswerHead,
        blob_cache: &Mutex<BlobCache>,
    ) -> Result<(Arriving, Step), Breach> {
        let lease = blob::lease_id_from_wire(head.id)?;
        let task = self.task(member, lease).await?;
        if let Some(kept) = head.kept {
            let hash = blob::hash_from_wire("answer.kept", &kept.hash)?;
            let before = task.as_ref().and_then(|task| task.work.shard_state()).map(|before| before.hash);
            if !blob_cache.lock().keep(before, hash, kept.size) {
                return Err(Breach::Kept(lease));
            }
        }
        let (size, arrived) =
            head.extent.as_ref().map_or((0, 0), |extent| (extent.size, extent.whole.len() as u64));
        let busy = Duration::from_micros(head.busy_micros);
        let Some(task) = task else {
            // The batch is over, so the answer is dropped without taking memory.
            let left = size.saturating_sub(arrived);
            let answer = Arriving { lease, busy, body: Body::Unwanted { left }, room: None, due: due(size) };
            let step = if left == 0 { Step::Whole(None) } else { Step::Partial };
            return Ok((answer, step));
        };
        let begun = Assembly::begin(head.extent, check::largest_answer(&task));
        let begun = begun.map_err(|error| Breach::Payload(lease, error))?;
        let room = self.find_room(member, size).await;
        let mut answer = Arriving { lease, busy, body: Body::Whole, room, due: due(size) };
        let step = match begun {
            Progress::Partial(assembly) => {
                answer.body = Body::Wanted { task, assembly };
                Step::Partial
            }
            Progress::Whole(bytes) => Step::Whole(Some((task, bytes))),
        };
        Ok((answer, step))
    }

    /// The task of a lease; `None` if its batch is over, or ends now because the coordinator cannot make the task again.
    async fn task(&self, member: MemberId, lease: LeaseId) -> Result<Option<Arc<Task>>, Breach> {
        if !self.register.knows(lease.batch) {
            return Err(Breach::UnknownBatch(lease));
        }
        let Some(tasks) = self.register.tasks(lease.batch) else { return Ok(None) };
        let n_tasks = tasks.len();
        if lease.task.index() >= n_tasks {
            return Err(Breach::UnknownTask { lease, n_tasks });
        }
        match tasks.task(lease.task) {
            Ok(task) => Ok(Some(task)),
            Err(error) => {
                self.cannot_make(member, lease, &error).await;
                Ok(None)
            }
        }
    }

    /// Reports that the coordinator cannot make a task, which ends its batch and is not the worker's failure. Returns whether the
    /// fleet goes on.
    async fn cannot_make(&self, member: MemberId, lease: LeaseId, error: &anyhow::Error) -> bool {
        let (detail, lacks_memory) = (format!("{error:#}"), false);
        let failed = Event::Failed { member, lease, detail, lacks_memory, is_certain: true };
        self.to_fleet.send(Input::Happened(failed)).await.is_ok()
    }

    /// Allots room for an answer of that many bytes. While it waits, the member counts as heard.
    async fn find_room(&self, member: MemberId, size: u64) -> Option<OwnedSemaphorePermit> {
        let found = self.room.clone().acquire_many_owned(size.div_ceil(CELL) as u32);
        tokio::pin!(found);
        let mut heartbeats = tokio::time::interval(proto::HEARTBEAT_INTERVAL);
        heartbeats.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                biased;
                // The room is never closed.
                room = &mut found => return room.ok(),
                _ = heartbeats.tick() => {
                    // An error means that the fleet has stopped.
                    let _ = self.to_fleet.send(Input::Happened(Event::Heard { member })).await;
                }
            }
        }
    }

    /// Converts a step of an answer to an input: a sign of life, or the complete answer.
    async fn advance(
        &self,
        member: MemberId,
        answer: Arriving,
        step: Step,
        arriving: &mut Option<Arriving>,
    ) -> Result<Input, Breach> {
        let (lease, busy) = (answer.lease, answer.busy);
        let (task, bytes) = match step {
            Step::Partial => {
                *arriving = Some(answer);
                return Ok(Input::Happened(Event::Heard { member }));
            }
            Step::Whole(None) => {
                return Ok(Input::Happened(Event::Answered { member, lease, claims: false }));
            }
            Step::Whole(Some(whole)) => whole,
        };
        let is_small = bytes.len() <= payload::SMALL;
        let decode = move || {
            let answer = check::decoded("answer", &bytes)?;
            check::answer(&task, &answer)?;
            Ok(answer)
        };
        let decoded = if is_small { decode() } else { tokio::task::spawn_blocking(decode).await? };
        let answer = decoded.map_err(|error| Breach::Answer(lease, error))?;
        Ok(Input::Answered { member, lease, answer, busy })
    }

    /// Sends orders to the member until there are no more, or the connection ends.
    async fn write(
        &self,
        member: MemberId,
        mut orders: mpsc::Receiver<Order>,
        blob_cache: &Mutex<BlobCache>,
        line: &Line,
    ) -> Cause {
        let mut next = Vec::new();
        while orders.recv_many(&mut next, AT_ONCE).await > 0 {
            let (mut jobs, mut withdrawn, mut unsent, mut leaves) =
                (Vec::new(), Vec::new(), Vec::new(), false);
            for order in next.drain(..) {
                match order {
                    Order::Compute(job) => jobs.push(job),
                    Order::Leave => leaves = true,
                    Order::Withdraw(lease) => match jobs.iter().position(|job: &Job| job.lease == lease) {
                        Some(at) => {
                            jobs.remove(at);
                            unsent.push(lease);
                        }
                        None => withdrawn.push(lease),
                    },
                }
            }
            let sent = self.confirm(member, unsent).await
                && send_withdrawals(withdrawn, line).await
                && self.send_jobs(member, jobs, blob_cache, line).await
                && (!leaves || line.send(from_coordinator::Message::Finished(v1::Finished {})).await);
            if !sent {
                return Cause::Disconnected("closed by the worker".into());
            }
        }
        Cause::Left
    }

    /// Reports that leases are no longer computed. Returns whether the fleet goes on.
    async fn confirm(&self, member: MemberId, leases: Vec<LeaseId>) -> bool {
        for lease in leases {
            if self.to_fleet.send(Input::Happened(Event::Withdrawn { member, lease })).await.is_err() {
                return false;
            }
        }
        true
    }

    /// Makes the tasks of `jobs` and sends them. Returns whether they could be sent.
    async fn send_jobs(
        &self,
        member: MemberId,
        jobs: Vec<Job>,
        blob_cache: &Mutex<BlobCache>,
        line: &Line,
    ) -> bool {
        let mut jobs = VecDeque::from(jobs);
        while !jobs.is_empty() {
            let make = move || (make_some(&mut jobs), jobs);
            let Ok((made, left)) = tokio::task::spawn_blocking(make).await else { return false };
            jobs = left;
            for (lease, made) in made {
                let sent = match made {
                    Ok((head, task)) => self.send_lease(lease.batch, head, &task, blob_cache, line).await,
                    Err(error) => self.cannot_make(member, lease, &error).await,
                };
                if !sent {
                    return false;
                }
            }
        }
        true
    }

    /// Sends the blobs that the member lacks, the hashes of blobs that it may drop, and the lease. Returns whether they could be sent.
    async fn send_lease(
        &self,
        batch: BatchId,
        (head, bytes): (v1::LeaseHead, Bytes),
        task: &Task,
        blob_cache: &Mutex<BlobCache>,
        line: &Line,
    ) -> bool {
        let blobs = Blob::of_task(task);
        let needed: Vec<ContentHash> = blobs.iter().map(Blob::hash).collect();
        for blob in blobs {
            let (hash, of_batch) = (blob.hash(), blob.is_of_batch().then_some(batch));
            if blob_cache.lock().touch(hash) {
                continue;
            }
            let encodings = self.encodings.clone();
            let encode = move || (blob.kind() as i32, encodings.of(&blob, of_batch));
            let Ok((kind, bytes)) = tokio::task::spawn_blocking(encode).await else { return false };
            blob_cache.lock().insert(hash, bytes.len() as u64, of_batch);
            let extent = Some(payload::extent(&bytes));
            let head = v1::BlobHead { kind, extent };
            if !line.send_payload(from_coordinator::Message::Blob(head), bytes).await {
                return false;
            }
        }
        let released = blob_cache.lock().release(&needed);
        if !released.is_empty() {
            let hashes = released.into_iter().map(blob::hash_to_wire).collect();
            if !line.send(from_coordinator::Message::Release(v1::Release { hashes })).await {
                return false;
            }
        }
        blob_cache.lock().assign();
        line.send_payload(from_coordinator::Message::Lease(head), bytes).await
    }
}

/// Sends withdrawals, if there are any. Returns whether they could be sent.
async fn send_withdrawals(leases: Vec<LeaseId>, line: &Line) -> bool {
    let leases = blob::lease_ids_to_wire(leases);
    leases.is_empty() || line.send(from_coordinator::Message::Withdraw(v1::Withdraw { leases })).await
}

/// A lease as it is sent, and its task.
type Made = anyhow::Result<((v1::LeaseHead, Bytes), Arc<Task>)>;

/// Makes the tasks of the first jobs, for as long as [`MAKING`], and removes those jobs.
fn make_some(jobs: &mut VecDeque<Job>) -> Vec<(LeaseId, Made)> {
    let (begun, mut all) = (clock::instant(), Vec::new());
    while begun.elapsed() < MAKING
        && let Some(job) = jobs.pop_front()
    {
        let made = job.task().map(|task| (lease::to_wire(job.lease, &task), task));
        all.push((job.lease, made));
    }
    all
}

/// Sender of messages to a worker.
struct Line {
    outgoing: mpsc::Sender<Result<FromCoordinator, Status>>,
    traffic: Arc<Traffic>,
}

impl Line {
    /// Sends a message. Returns whether the worker is still connected.
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
        // A worker that is gone needs no message.
        self.send(from_coordinator::Message::Refusal(refusal)).await;
    }
}

#[cfg(test)]
mod tests {
    use grammaton::work::lease::{Attempt, TaskIndex};

    use super::super::audit::Replicas;
    use super::super::tasks::{Open, Tasks};
    use super::*;

    #[test]
    fn a_member_that_waits_for_room_is_heard_of() {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let (to_fleet, mut inputs) = mpsc::channel(8);
            let (session, traffic) = (SessionId([0; 16]), Arc::default());
            let (_open, opened) = watch::channel(true);
            let admission = Admission::new(Access::Open, session, to_fleet, traffic, Arc::default(), opened);
            // An answer of the largest size takes all the room there is.
            let all = admission.find_room(MemberId(1), ROOM).await.unwrap();
            assert!(admission.room.available_permits() == 0 && inputs.try_recv().is_err());
            let waiting = tokio::spawn({
                let admission = admission.clone();
                async move { admission.find_room(MemberId(2), 1).await.is_some() }
            });
            for _ in 0..2 {
                let heard = inputs.recv().await;
                assert!(matches!(heard, Some(Input::Happened(Event::Heard { member: MemberId(2) }))));
            }
            drop(all);
            assert!(waiting.await.unwrap());
            assert_eq!(admission.room.available_permits() as u64, ROOM / CELL);
        });
    }

    #[test]
    fn a_worker_that_left_takes_no_kilobytes_while_its_connection_waits() {
        fn size<T, F>(_: fn(T) -> F) -> usize {
            size_of::<F>()
        }
        assert!(size(dismiss_later) < 1024);
    }

    /// Tasks that can no longer be made, as those of a disk that fails.
    struct Lost;

    impl Tasks for Lost {
        fn len(&self) -> usize {
            1
        }

        fn needs(&self, _: usize) -> scheduler::Needs {
            scheduler::Needs::shard(ContentHash([0; 32]))
        }

        fn make(&self, _: usize) -> anyhow::Result<Task> {
            anyhow::bail!("shards: cannot read the file")
        }
    }

    #[test]
    fn a_task_that_cannot_be_made_again_ends_its_batch_and_not_its_worker() {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let (to_fleet, mut inputs) = mpsc::channel(8);
            let (session, traffic, register) =
                (SessionId([0; 16]), Arc::default(), Arc::<Register>::default());
            let (_open, opened) = watch::channel(true);
            let admission =
                Admission::new(Access::Open, session, to_fleet, traffic, register.clone(), opened);
            let lease = LeaseId { batch: register.next(), task: TaskIndex(0), attempt: Attempt(0) };
            register.insert(lease.batch, Arc::new(Open::new(Arc::new(Lost), Replicas::choose(1, 0.0, 0))));
            let bytes = [7; 3];
            let head = v1::AnswerHead {
                id: Some(blob::lease_id_to_wire(lease)),
                extent: Some(payload::extent(&Bytes::copy_from_slice(&bytes))),
                ..v1::AnswerHead::default()
            };
            let member = MemberId(1);
            let blob_cache = Mutex::new(BlobCache::new(1 << 20, []));
            let (_, step) = admission.begin(member, head, &blob_cache).await.unwrap();
            assert!(matches!(step, Step::Whole(None) | Step::Partial));
            let Some(Input::Happened(Event::Failed { detail, is_certain, .. })) = inputs.recv().await else {
                panic!("no failure is reported");
            };
            assert_eq!((&detail[..], is_certain), ("shards: cannot read the file", true));
        });
    }
}
