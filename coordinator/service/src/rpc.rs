//! The gRPC service `Jobs`: what the commands `submit`, `jobs`, `logs` and so on call.
//!
//! In: requests of anybody who reaches the port. Out: answers to those whose token allows them. Invariants: nothing is read from or written to
//! disk on threads that the fleet needs; a call that uploads or fetches a file or follows a log takes one of a bounded number of places
//! (`places`); a reader who takes nothing for `IDLE` and an upload that is too slow (`minimum_rate`) are ended.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use anyhow::Context as _;
use blake3::Hash;
use fleet::Visitor;
use fleet::access::{Access, Identity, Role};
use fleet::revocation::Revocable;
use prost::Message as _;
use prost::bytes::Bytes;
use proto::MAX_MESSAGE;
use proto::payload::PIECE;
use proto::v1;
use proto::v1::jobs_server::{Jobs, JobsServer};
use proto::v1::{file_message, upload_message};
use tokio::runtime::{Handle, Runtime};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tokio::time::Instant;
use tokio_stream::wrappers::ReceiverStream;
use tonic::service::Routes;
use tonic::service::interceptor::InterceptedService;
use tonic::{Code, Request, Response, Status, Streaming};

use super::job_store::ResultFile;
use super::minimum_rate::MinimumRate;
use super::outgoing::Outgoing;
use super::permits::{CallPermit, CallPermits};
use super::record::{Input, JobId, View};
use super::submission::{MAX_INPUTS, MAX_JOB, Submission};
use super::{Problem, Service};
use crate::status::snapshot;

/// Maximum time in which a reader takes nothing.
const IDLE: Duration = Duration::from_secs(60);
/// Uploads at the same time, of all users and of each; others wait.
const UPLOADS: [usize; 2] = [16, 8];
/// Checks of jobs at the same time, of all users and of each; others wait.
const CHECKS: [usize; 2] = [2, 1];
/// Results that are fetched at the same time, of all users and of each; others wait.
const FETCHES: [usize; 2] = [16, 8];
/// Logs that are read or followed at the same time, of all users and of each; others are refused, since a log may be followed for days.
const READERS: [usize; 2] = [1024, 512];
/// Calls whose messages are read at the same time, of all users and of each; others are refused. A message takes 2 MiB at most.
const READING: [usize; 2] = [256, 64];
/// Changes of jobs at the same time, of all users and of each, which storage may keep waiting; others wait for them.
const CHANGES: [usize; 2] = [8, 4];
/// Threads that may block: uploads, checks, fetches and changes hold one each, and some are left for logs.
const THREADS: usize = UPLOADS[0] + CHECKS[0] + FETCHES[0] + CHANGES[0] + 16;
/// The least time from one reading of a log to the next.
const PAUSE: Duration = Duration::from_millis(100);
/// Messages that may wait for a slow reader.
const UNDER_WAY: usize = 4;
/// Jobs that are listed at a time,
const PAGE: usize = 500;
/// and their bytes, which have to fit into a message.
const PAGE_BYTES: usize = 1 << 20;

/// The calls.
#[derive(Clone)]
pub struct JobsService {
    /// The service; empty while it starts.
    service: Arc<OnceLock<Service>>,
    access: Access,
    /// Runtime with threads that may block.
    runtime: Handle,
    uploads: CallPermits,
    checks: CallPermits,
    fetches: CallPermits,
    readers: CallPermits,
    reading: CallPermits,
    changes: CallPermits,
}

impl JobsService {
    /// For those whom `access` lets in, once there is a service; what blocks runs on `runtime`, which [`JobsService::runtime`] makes.
    pub fn new(access: Access, runtime: Handle) -> JobsService {
        let service = Arc::default();
        let [uploads, checks, fetches] = [UPLOADS, CHECKS, FETCHES].map(CallPermits::new);
        let [changes, readers, reading] = [CHANGES, READERS, READING].map(CallPermits::new);
        JobsService { service, access, runtime, uploads, checks, fetches, readers, reading, changes }
    }

    /// A runtime with threads enough.
    pub fn runtime() -> std::io::Result<Runtime> {
        let mut builder = tokio::runtime::Builder::new_multi_thread();
        builder.worker_threads(1).max_blocking_threads(THREADS).thread_name("service-io").enable_all().build()
    }

    /// They, beside other services. A call is admitted before its message is read, which may be large.
    pub fn add_to(&self, routes: Routes) -> Routes {
        let server = JobsServer::new(self.clone()).max_decoding_message_size(MAX_MESSAGE + MAX_JOB);
        let jobs = self.clone();
        routes.add_service(InterceptedService::new(server, move |mut request: Request<()>| {
            let who = jobs.admit(&request, Role::Read)?;
            let place = jobs.reading.try_take(&who.name).ok_or_else(|| {
                Status::resource_exhausted("too many calls at the same time; try again in a while")
            })?;
            // Held until the message is read.
            request.extensions_mut().insert(Arc::new(place));
            Ok(request)
        }))
    }

    /// The service has started.
    pub fn open(&self, service: Service) {
        let _twice = self.service.set(service);
    }

    fn service(&self) -> Result<&Service, Status> {
        self.service
            .get()
            .ok_or_else(|| Status::unavailable("the service is starting; try again in a moment"))
    }

    /// Identifies the caller, and checks the role. The connection then counts as the user's.
    fn admit<T>(&self, request: &Request<T>, needed: Role) -> Result<Identity, Status> {
        let header = header_of(request);
        let admit = || self.access.admit(header.as_deref(), needed);
        let Some(visitor) = request.extensions().get::<Visitor>() else { return Ok(admit()?) };
        let identity = visitor.admit_token(header.as_deref(), admit)?;
        visitor.admit_user(&identity.name);
        Ok(identity)
    }

    /// Runs `work` on a thread that may block.
    async fn blocking<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Service) -> Result<T, Problem> + Send + 'static,
    ) -> Result<T, Status> {
        let service = self.service()?.clone();
        let done = self.runtime.spawn_blocking(move || work(&service)).await;
        done.map_err(|_| Status::internal("internal error; the service's log says more"))?
            .map_err(Status::from)
    }
}

/// Tells work that its caller is gone: set when this is dropped.
#[derive(Default)]
struct Caller(Arc<AtomicBool>);

impl Drop for Caller {
    fn drop(&mut self) {
        self.0.store(true, Ordering::SeqCst);
    }
}

/// Streams of answers that end with the token of their reader.
trait Revoke<M>:
    FnOnce(ReceiverStream<Result<M, Status>>) -> Revocable<ReceiverStream<Result<M, Status>>>
{
}

impl<M, F> Revoke<M> for F where
    F: FnOnce(ReceiverStream<Result<M, Status>>) -> Revocable<ReceiverStream<Result<M, Status>>>
{
}

impl JobsService {
    /// Admits a reader; returns who it is, and what has its stream end with its token.
    fn revocable<T, M: Send + 'static>(
        &self,
        request: &Request<T>,
    ) -> Result<(Identity, impl Revoke<M> + use<T, M>), Status> {
        let who = self.admit(request, Role::Read)?;
        let (access, header) = (self.access.clone(), header_of(request));
        let revoke = move |stream: ReceiverStream<Result<M, Status>>| {
            let last = Err(Status::unauthenticated("the token was removed"));
            Revocable::new(stream, &access, header.as_deref(), Role::Read, Some(last))
        };
        Ok((who, revoke))
    }

    /// Runs `work` for a user's change, which waits for storage.
    async fn changing(
        &self,
        who: Identity,
        work: impl FnOnce(&Service, &Identity) -> Result<View, Problem> + Send + 'static,
    ) -> Result<Response<v1::JobInfo>, Status> {
        let place = self.changes.take(&who.name).await.ok_or_else(too_many)?;
        let change = self.blocking(move |service| {
            let _place = place; // for as long as the change takes, whether the caller waits or not
            work(service, &who)
        });
        Ok(Response::new(change.await?.to_wire(None)))
    }

    /// Returns the result of `work`, unless the token of the caller is removed before.
    async fn while_admitted<T>(
        &self,
        header: Option<&str>,
        needed: Role,
        work: impl Future<Output = Result<T, Status>>,
    ) -> Result<T, Status> {
        tokio::select! {
            done = work => done,
            () = self.access.revoked(header, needed) => Err(Status::unauthenticated("the token was removed")),
        }
    }

    /// Receives a file that a user uploads. The place is held until the file is stored, whether the caller waits or not.
    async fn receive(
        &self,
        who: Identity,
        place: CallPermit,
        mut incoming: Streaming<v1::UploadMessage>,
    ) -> Result<Response<v1::Uploaded>, Status> {
        let mut rate = MinimumRate::begin();
        let Some(v1::UploadMessage { message: Some(upload_message::Message::Head(head)) }) =
            rate.next(incoming.message()).await?
        else {
            return Err(Status::invalid_argument("the first message says which file it is"));
        };
        let (hash, size) = (hash_of(&head.hash)?, head.size);
        rate.expect(size);
        let (pieces, received) = mpsc::channel::<Bytes>(UNDER_WAY);
        let kept = self.store(who, place, (hash, size), received);
        while let Some(message) = rate.next(incoming.message()).await? {
            let Some(upload_message::Message::Data(data)) = message.message else {
                return Err(Status::invalid_argument("a file after the file"));
            };
            rate.received(data.len());
            let begun = Instant::now();
            if pieces.send(data).await.is_err() {
                break; // it was refused, and says why
            }
            rate.extend(begun.elapsed());
        }
        drop(pieces);
        kept.await.map_err(|_| Status::internal("internal error; the service's log says more"))??;
        Ok(Response::new(v1::Uploaded {}))
    }

    /// Stores the file of this hash and size, whose bytes come through a channel.
    fn store(
        &self,
        who: Identity,
        place: CallPermit,
        (hash, size): (Hash, u64),
        mut received: mpsc::Receiver<Bytes>,
    ) -> JoinHandle<Result<(), Status>> {
        let service = self.clone();
        let keep = move |service: &Service| {
            let _place = place;
            let mut file = service.receive(&who, hash, size)?;
            while let Some(piece) = received.blocking_recv() {
                file.push(&piece).map_err(|error| Problem::Invalid(format!("{error:#}")))?;
            }
            service.keep(file)
        };
        tokio::spawn(async move { service.blocking(keep).await })
    }
}

impl From<Problem> for Status {
    fn from(problem: Problem) -> Status {
        use super::queue::Refusal;
        let code = match &problem {
            Problem::Denied(_) => Code::PermissionDenied,
            Problem::Refused(Refusal::Unknown(_)) => Code::NotFound,
            Problem::Refused(Refusal::Full(_) | Refusal::UserFull(_)) | Problem::Quota(_) => {
                Code::ResourceExhausted
            }
            Problem::Refused(_) => Code::FailedPrecondition,
            Problem::Lacking { .. } => Code::Aborted,
            Problem::Invalid(_) => Code::InvalidArgument,
            Problem::Failed(error) => {
                tracing::error!("{error:#}");
                Code::Internal
            }
        };
        Status::new(code, problem.to_string())
    }
}

/// The first `n` of `jobs`, or fewer if these are large, but one at least.
fn page(jobs: impl Iterator<Item = v1::JobInfo>, n: usize) -> v1::ListReply {
    let (mut page, mut bytes) = (v1::ListReply::default(), 0);
    for job in jobs {
        bytes += job.encoded_len();
        if let Some(last) = page.jobs.last().filter(|_| page.jobs.len() == n || bytes > PAGE_BYTES) {
            page.next_page_token = last.id.to_string();
            break;
        }
        page.jobs.push(job);
    }
    page
}

/// Why a call does not wait for its place.
fn too_many() -> Status {
    Status::resource_exhausted("too many calls of yours wait at the same time; try again in a while")
}

/// The `authorization` header of a request.
fn header_of<T>(request: &Request<T>) -> Option<String> {
    let header = request.metadata().get("authorization").and_then(|value| value.to_str().ok());
    header.map(str::to_owned)
}

fn hash_of(bytes: &[u8]) -> Result<Hash, Status> {
    let bytes: [u8; 32] =
        bytes.try_into().map_err(|_| Status::invalid_argument("a hash of other than 32 bytes"))?;
    Ok(Hash::from_bytes(bytes))
}

#[tonic::async_trait]
impl Jobs for JobsService {
    type LogsStream = Revocable<ReceiverStream<Result<v1::LogLine, Status>>>;
    type FetchStream = Revocable<ReceiverStream<Result<v1::FileMessage, Status>>>;

    async fn lacking(
        &self,
        request: Request<v1::LackingRequest>,
    ) -> Result<Response<v1::LackingReply>, Status> {
        self.admit(&request, Role::Submit)?;
        let files = request.into_inner().files;
        if files.len() > MAX_INPUTS {
            return Err(Status::invalid_argument(format!("expected {MAX_INPUTS} files at most, each once")));
        }
        let files = files.into_iter().map(|file| Ok((hash_of(&file.hash)?, file.hash)));
        let files = files.collect::<Result<Vec<_>, Status>>()?;
        let lacking = self.blocking(|service| {
            let lacking = files.into_iter().filter(|(hash, _)| !service.has(*hash));
            Ok(lacking.map(|(_, bytes)| bytes).collect())
        });
        let hashes = lacking.await?;
        Ok(Response::new(v1::LackingReply { hashes }))
    }

    async fn upload(
        &self,
        request: Request<Streaming<v1::UploadMessage>>,
    ) -> Result<Response<v1::Uploaded>, Status> {
        let who = self.admit(&request, Role::Submit)?;
        let (header, incoming) = (header_of(&request), request.into_inner());
        let place = self.uploads.take(&who.name).await.ok_or_else(too_many)?;
        let received = self.receive(who, place, incoming);
        self.while_admitted(header.as_deref(), Role::Submit, received).await
    }

    async fn submit(&self, request: Request<v1::SubmitRequest>) -> Result<Response<v1::JobInfo>, Status> {
        let who = self.admit(&request, Role::Submit)?;
        let header = header_of(&request);
        let v1::SubmitRequest { job, inputs, name, priority, max_workers, key } = request.into_inner();
        let input = |input: v1::JobInput| Ok(Input { path: input.path, hash: hash_of(&input.hash)? });
        let inputs = inputs.into_iter().map(input).collect::<Result<_, Status>>()?;
        let submission = Submission { job, inputs, name, priority, max_workers, key };
        let place = self.checks.take(&who.name).await.ok_or_else(too_many)?;
        let caller = Caller::default();
        let is_gone = caller.0.clone();
        let check = move |service: &Service| {
            let _place = place; // for as long as the check goes on, whether the caller waits or not
            service.submit(&who, submission, &|| !is_gone.load(Ordering::SeqCst))
        };
        let view = self.while_admitted(header.as_deref(), Role::Submit, self.blocking(check)).await?;
        Ok(Response::new(view.to_wire(None)))
    }

    async fn list(&self, request: Request<v1::ListRequest>) -> Result<Response<v1::ListReply>, Status> {
        self.admit(&request, Role::Read)?;
        let v1::ListRequest { page_size, page_token } = request.into_inner();
        let before = match &page_token[..] {
            "" => None,
            token => Some(token.parse().map_err(|_| {
                let expected = "expected next_page_token of the page before, or nothing for the first page";
                Status::invalid_argument(format!("page_token {token:?}: {expected}"))
            })?),
        };
        let n = if page_size == 0 { PAGE } else { PAGE.min(page_size as usize) };
        // One more tells whether there is another page.
        let jobs = self.service()?.jobs(before, n + 1)?;
        let fleet = self.service()?.watcher().status().await;
        Ok(Response::new(page(jobs.iter().map(|view| view.to_wire(fleet.as_ref())), n)))
    }

    async fn get(&self, request: Request<v1::JobRef>) -> Result<Response<v1::JobInfo>, Status> {
        self.admit(&request, Role::Read)?;
        let view = self.service()?.job(JobId(request.into_inner().id))?;
        let fleet = self.service()?.watcher().status().await;
        Ok(Response::new(view.to_wire(fleet.as_ref())))
    }

    async fn logs(&self, request: Request<v1::LogsRequest>) -> Result<Response<Self::LogsStream>, Status> {
        let (who, revocable) = self.revocable(&request)?;
        let place = self.readers.try_take(&who.name).ok_or_else(|| {
            Status::resource_exhausted("too many logs at the same time; try again in a while")
        })?;
        let v1::LogsRequest { id, skip, follow } = request.into_inner();
        let id = JobId(id);
        let mut log = self.blocking(move |service| service.log(id)).await?;
        let (lines, stream) = mpsc::channel(UNDER_WAY);
        let (jobs, mut notifier) = (self.clone(), self.service()?.notifier().listen());
        tokio::spawn(async move {
            let _place = place;
            let mut number = 0;
            loop {
                notifier.borrow_and_update();
                let read = move |service: &Service| {
                    // In this order: a job that is over says nothing more.
                    let is_over = service.job(id)?.record.state.is_over();
                    let found = log.read().with_context(|| format!("{id}: cannot read the log"))?;
                    Ok((is_over, found, log))
                };
                let (is_over, found);
                (is_over, found, log) = match jobs.blocking(read).await {
                    Ok(read) => read,
                    Err(status) => return drop(lines.send(Err(status)).await),
                };
                let is_end = found.is_empty();
                for line in found {
                    number += 1;
                    if number <= skip {
                        continue;
                    }
                    let line = v1::LogLine { number, millis: line.at.0, text: line.text };
                    if lines.send(Ok(line)).await.is_err() {
                        return; // the reader has gone
                    }
                }
                if !is_end {
                    continue;
                }
                let changed = async {
                    let rings = notifier.changed().await.is_ok();
                    tokio::time::sleep(PAUSE).await; // one reading for all that happens at once
                    rings
                };
                let goes_on = !is_over
                    && follow
                    && tokio::select! {
                        changed = changed => changed,
                        () = lines.closed() => false,
                    };
                if !goes_on {
                    return;
                }
            }
        });
        Ok(Response::new(revocable(ReceiverStream::new(stream))))
    }

    async fn cancel(&self, request: Request<v1::JobRef>) -> Result<Response<v1::JobInfo>, Status> {
        let who = self.admit(&request, Role::Submit)?;
        let id = JobId(request.into_inner().id);
        self.changing(who, move |service, who| service.cancel(who, id)).await
    }

    async fn resume(&self, request: Request<v1::JobRef>) -> Result<Response<v1::JobInfo>, Status> {
        let who = self.admit(&request, Role::Submit)?;
        let id = JobId(request.into_inner().id);
        self.changing(who, move |service, who| service.resume(who, id)).await
    }

    async fn delete(&self, request: Request<v1::JobRef>) -> Result<Response<v1::JobInfo>, Status> {
        let who = self.admit(&request, Role::Submit)?;
        let id = JobId(request.into_inner().id);
        self.changing(who, move |service, who| service.delete(who, id)).await
    }

    async fn fetch(&self, request: Request<v1::FetchRequest>) -> Result<Response<Self::FetchStream>, Status> {
        let (who, revocable) = self.revocable(&request)?;
        let id = JobId(request.into_inner().id);
        let place = self.fetches.take(&who.name).await.ok_or_else(too_many)?;
        // The place is held as long as the work, whether the caller waits or not.
        let ((folder, files), place) =
            self.blocking(move |service| Ok((service.results(id)?, place))).await?;
        let (outgoing, stream) = Outgoing::new(IDLE);
        self.runtime.spawn_blocking(move || {
            let _place = place;
            let message = |message| Ok(v1::FileMessage { message: Some(message) });
            for ResultFile { path, size, hash } in files {
                let blake3 = hash.map_or_else(Bytes::new, |hash| hash.as_bytes().to_vec().into());
                let head = v1::FileHead { path: path.clone(), size, blake3 };
                let data = |bytes| message(file_message::Message::Data(bytes));
                let sent = if outgoing.send(message(file_message::Message::Head(head))) {
                    outgoing.send_file(&folder.join(&path), size, PIECE, data)
                } else {
                    Ok(false)
                };
                match sent {
                    Ok(true) => {}
                    Ok(false) => return, // the reader has gone
                    Err(error) => {
                        outgoing.send(Err(Status::internal(format!("{path}: cannot be read: {error}"))));
                        return;
                    }
                }
            }
        });
        Ok(Response::new(revocable(stream)))
    }

    async fn workers(
        &self,
        request: Request<v1::WorkersRequest>,
    ) -> Result<Response<v1::FleetSnapshot>, Status> {
        self.admit(&request, Role::Read)?;
        let fleet = self.service()?.watcher().status().await;
        let fleet = fleet.ok_or_else(|| Status::unavailable("the service is about to end"))?;
        Ok(Response::new(snapshot::of_fleet(&fleet)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests;

    /// An upload whose caller has gone keeps its place until the file is stored: callers who give up cannot have more of them under way.
    #[test]
    fn a_place_is_held_until_the_work_ends() {
        let folder = tests::Place::new(false);
        let service = folder.serve();
        let runtime = JobsService::runtime().unwrap();
        let jobs = JobsService::new(Access::Open, runtime.handle().clone());
        jobs.open(service.clone());
        let hash = blake3::hash(b"12345");
        runtime.block_on(async {
            let (pieces, received) = mpsc::channel(UNDER_WAY);
            let place = jobs.uploads.take("ann").await.unwrap();
            drop(jobs.store(tests::ann(), place, (hash, 5), received));
            pieces.send(Bytes::from_static(b"12345")).await.unwrap();
            assert_eq!(jobs.uploads.n_free(), UPLOADS[0] - 1);
            drop(pieces);
            while jobs.uploads.n_free() < UPLOADS[0] {
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
            assert!(service.has(hash));
        });
        service.close(Duration::from_secs(60));
    }

    /// However many jobs there are and however long their errors, pages are small, and together they have each job once.
    #[test]
    fn pages_are_bounded_and_together_complete() {
        let jobs: Vec<v1::JobInfo> = (1..=2000)
            .rev()
            .map(|id| v1::JobInfo { id, error: "x".repeat((id * id % 9000) as usize), ..Default::default() })
            .collect();
        for n in [1, 7, PAGE] {
            let (mut listed, mut token): (Vec<u64>, Option<u64>) = (Vec::new(), None);
            loop {
                let older = jobs.iter().filter(|job| token.is_none_or(|token| job.id < token));
                let page = page(older.take(n + 1).cloned(), n);
                assert!((1..=n).contains(&page.jobs.len()) && page.encoded_len() < PAGE_BYTES + 10_000);
                listed.extend(page.jobs.iter().map(|job| job.id));
                match &page.next_page_token[..] {
                    "" => break,
                    next => token = Some(next.parse().unwrap()),
                }
            }
            assert!(listed.iter().copied().eq((1..=2000).rev()));
        }
    }
}
