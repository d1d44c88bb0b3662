//! Floods: a user or worker of a service sends as much as it can of one thing. Law: the service takes at most 200 MiB more than before, the
//! calls and pages of another user are answered, and their job ends with the bits of `train`.
//!
//! `FLOOD=pages` runs floods with such names only. `FLOOD_SECONDS=10 cargo test --workspace --test all every_flood -- --ignored --nocapture` prints
//! the table of `docs/results/cluster.md`, each flood of so many seconds.

use std::fs;
use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use flate2::Compression;
use flate2::write::GzEncoder;
use grammaton_tests::cluster::worker_command;
use grammaton_tests::folder::{Folder, examples};
use grammaton_tests::serving::Serving;
use grammaton_tests::{Process, clock};
use proto::v1::jobs_client::JobsClient;
use proto::v1::upload_message::Message;
use proto::v1::work_client::WorkClient;
use proto::v1::{self, FromWorker, from_worker};
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;
use tonic::Request;
use tonic::transport::{Channel, Endpoint};

use super::load::{spread, usage};

/// MiB that a service may take over what it had before.
const ROOM: u64 = 200;

/// A service under attack, as the attacker sees it.
struct Target {
    url: String,
    /// `host:port` of the page.
    page: String,
    /// Tokens of a user and of a worker.
    user: String,
    worker: String,
    /// The job of another user.
    job: u64,
    over: AtomicBool,
    /// What was sent so far: streams, joins, submissions.
    sent: AtomicU64,
}

impl Target {
    fn is_over(&self) -> bool {
        self.over.load(Ordering::Relaxed)
    }

    fn count(&self, n: u64) {
        self.sent.fetch_add(n, Ordering::Relaxed);
    }

    async fn wait(&self) {
        while !self.is_over() {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }
}

/// A request that shows a token.
pub(super) fn with_token<T>(token: &str, message: T) -> Request<T> {
    let mut request = Request::new(message);
    request.metadata_mut().insert("authorization", format!("Bearer {token}").parse().unwrap());
    request
}

async fn connect(url: &str) -> Option<Channel> {
    Endpoint::from_shared(url.to_owned()).unwrap().connect().await.ok()
}

/// Name of a flood, and the task of each of its connections: service, number of the connection.
struct Flood {
    name: &'static str,
    connections: u64,
    /// Blocking, on a thread of its own.
    run: fn(&Target, u64),
}

const FLOODS: [Flood; 14] = [
    Flood { name: "streams opened and reset (HTTP/2)", connections: 4, run: resets },
    Flood {
        name: "workers that join and leave",
        connections: 16,
        run: |target, at| block_on(joins(target, at)),
    },
    Flood {
        name: "pages that are watched and not read",
        connections: 500,
        run: |target, _| mute_pages(target, &format!("jobs/{}/events", target.job)),
    },
    Flood {
        name: "lists of jobs that are watched, each another page",
        connections: 500,
        run: |target, at| mute_pages(target, &format!("events?page={}", at + 1)),
    },
    Flood {
        name: "logs that are followed and not read",
        connections: 4,
        run: |target, _| block_on(mute_logs(target)),
    },
    Flood { name: "gzip bombs", connections: 2, run: |target, _| block_on(bombs(target)) },
    Flood { name: "a job of 1,000,000 rounds", connections: 1, run: |target, _| block_on(endless(target)) },
    Flood {
        name: "submits cancelled by deadline",
        connections: 1,
        run: |target, _| block_on(deadlines(target)),
    },
    Flood {
        name: "uploads of 64 GiB, a byte each",
        connections: 16,
        run: |target, _| block_on(slow_upload(target)),
    },
    Flood {
        name: "calls of unknown peers that never end, 1.9 MiB each",
        connections: 250,
        run: |target, _| endless_call(target, ""),
    },
    Flood {
        name: "calls that never end, 1.9 MiB each",
        connections: 400,
        run: |target, _| endless_call(target, &target.user),
    },
    Flood { name: "requests of pages that never end", connections: 520, run: half_requests },
    Flood { name: "wrong tokens", connections: 16, run: |target, at| block_on(guesses(target, at)) },
    Flood {
        name: "forty endless jobs of the highest priority",
        connections: 1,
        run: |target, _| block_on(endless_jobs(target)),
    },
];

fn block_on(flood: impl Future<Output = ()>) {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(flood);
}

/// A frame of HTTP/2.
fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let length = (payload.len() as u32).to_be_bytes();
    [&length[1..], &[kind, flags], &stream.to_be_bytes(), payload].concat()
}

const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
/// Kinds of frames.
const DATA: u8 = 0;
const HEADERS: u8 = 1;
const RESET: u8 = 3;
const SETTINGS: u8 = 4;
/// A flag of headers.
const END_HEADERS: u8 = 4;

/// Headers of a call, in HPACK without an index: POST, http, and literals.
fn headers(path: &str, token: &str) -> Vec<u8> {
    let literal = |name: &[u8], value: &str| [name, &[value.len() as u8], value.as_bytes()].concat();
    [
        vec![0x83, 0x86],
        literal(&[0x04], path),
        literal(&[0x01], "x"),
        literal(&[0x0f, 0x10], "application/grpc"),
        literal(&[0x0f, 0x08], &format!("Bearer {token}")),
    ]
    .concat()
}

/// Opens calls and resets each at once, on connection after connection, without reading.
fn resets(target: &Target, _: u64) {
    const CANCEL: [u8; 4] = [0, 0, 0, 8];
    let head = headers("/grammaton.v1.Jobs/List", &target.user);
    while !target.is_over() {
        let Ok(mut tcp) = TcpStream::connect(target.url.trim_start_matches("http://")) else { continue };
        tcp.set_write_timeout(Some(Duration::from_secs(1))).unwrap();
        let preface = [PREFACE, &frame(SETTINGS, 0, 0, &[])].concat();
        let mut stream = 1;
        let mut burst = || {
            let calls = (0..100).flat_map(|_| {
                let call =
                    [frame(HEADERS, END_HEADERS, stream, &head), frame(RESET, 0, stream, &CANCEL)].concat();
                stream += 2;
                call
            });
            calls.collect::<Vec<u8>>()
        };
        if tcp.write_all(&preface).is_err() {
            continue;
        }
        while !target.is_over() && tcp.write_all(&burst()).is_ok() {
            target.count(100);
        }
    }
}

/// Sends most of a message of 2 MiB, and no more of it until the connection is closed.
fn endless_call(target: &Target, token: &str) {
    const PIECE: usize = 16 << 10;
    let head = frame(HEADERS, END_HEADERS, 1, &headers("/grammaton.v1.Jobs/Submit", token));
    let first = [PREFACE, &frame(SETTINGS, 0, 0, &[]), &head].concat();
    let mut message = vec![b'x'; 1900 << 10];
    message[..5].copy_from_slice(&[0, 0, 31, 0, 0]);
    let call = || -> std::io::Result<()> {
        let mut tcp = TcpStream::connect(target.url.trim_start_matches("http://"))?;
        tcp.set_read_timeout(Some(Duration::from_secs(10)))?;
        tcp.set_write_timeout(Some(Duration::from_secs(1)))?;
        tcp.write_all(&first)?;
        // The service enlarges the windows before it reads anything.
        let mut answer = [0; 1024];
        let _ = tcp.read(&mut answer)?;
        message.chunks(PIECE).try_for_each(|piece| tcp.write_all(&frame(DATA, 0, 1, piece)))?;
        target.count(1);
        tcp.set_read_timeout(Some(Duration::from_millis(200)))?;
        while !target.is_over() && !matches!(tcp.read(&mut answer), Ok(0)) {}
        Ok(())
    };
    while !target.is_over() {
        if call().is_err() {
            target.count(1);
        }
        // This is no flood of connections.
        std::thread::sleep(Duration::from_secs(1));
    }
}

/// Joins under a new name and leaves as soon as it is welcome, again and again.
async fn joins(target: &Target, at: u64) {
    let mut n = 0_u64;
    while !target.is_over() {
        n += 1;
        let Some(channel) = connect(&target.url).await else { continue };
        let instance = [at.to_le_bytes(), n.to_le_bytes()].concat().into();
        let name = format!("mallory-{at}-{n}-{}", "x".repeat(40));
        let hello = v1::Hello { version: proto::VERSION, name, slots: 1, instance, ..v1::Hello::default() };
        let (outgoing, stream) = mpsc::channel(1);
        let hello = FromWorker { message: Some(from_worker::Message::Hello(hello)) };
        outgoing.send(hello).await.unwrap();
        let request = with_token(&target.worker, ReceiverStream::new(stream));
        if let Ok(joined) = WorkClient::new(channel).join(request).await {
            target
                .count(u64::from(joined.into_inner().message().await.is_ok_and(|welcome| welcome.is_some())));
        }
    }
}

fn mute_pages(target: &Target, path: &str) {
    let mut tcp = TcpStream::connect(&target.page).unwrap();
    let request = format!(
        "GET /{path} HTTP/1.1\r\nHost: {}\r\nAuthorization: Bearer {}\r\n\r\n",
        target.page, target.user
    );
    tcp.write_all(request.as_bytes()).unwrap();
    let mut first = [0; 12];
    tcp.read_exact(&mut first).unwrap();
    assert_eq!(&first, b"HTTP/1.1 200");
    target.count(1);
    block_on(target.wait());
}

async fn mute_logs(target: &Target) {
    let channel = connect(&target.url).await.unwrap();
    let mut open = Vec::new();
    for _ in 0..60 {
        let follow = v1::LogsRequest { id: target.job, skip: 0, follow: true };
        let logs = JobsClient::new(channel.clone()).logs(with_token(&target.user, follow)).await;
        open.push(logs.unwrap());
        target.count(1);
    }
    target.wait().await;
}

const JOB: &str = "[model]\ngrammar = \"auto:unigram\"\n[corpus]\npath = \"file\"\n";

/// Uploads a file; returns the submission of a job that reads it.
async fn upload(target: &Target, jobs: &mut JobsClient<Channel>, file: &[u8]) -> v1::SubmitRequest {
    let hash = blake3::hash(file).as_bytes().to_vec();
    let head = Message::Head(v1::InputFile { hash: hash.clone().into(), size: file.len() as u64 });
    let pieces = file.chunks(1 << 20).map(|piece| Message::Data(piece.to_vec().into()));
    let messages: Vec<_> = std::iter::once(head)
        .chain(pieces)
        .map(|message| v1::UploadMessage { message: Some(message) })
        .collect();
    // The quota of a day may be used up: then the file is there already.
    let _ = jobs.upload(with_token(&target.user, tokio_stream::iter(messages))).await;
    let inputs = vec![v1::JobInput { path: "file".to_owned(), hash: hash.into() }];
    v1::SubmitRequest { job: JOB.to_owned(), name: "mallory".to_owned(), inputs, ..Default::default() }
}

async fn bombs(target: &Target) {
    let mut gzip = GzEncoder::new(Vec::new(), Compression::best());
    gzip.write_all(&[&b"a\n"[..], &vec![b'\n'; 24 << 20]].concat()).unwrap();
    let file = gzip.finish().unwrap();
    let mut jobs = JobsClient::new(connect(&target.url).await.unwrap());
    while !target.is_over() {
        let request = upload(target, &mut jobs, &file).await;
        jobs.submit(with_token(&target.user, request)).await.expect_err("it is refused");
        target.count(1);
    }
}

async fn endless(target: &Target) {
    let mut jobs = JobsClient::new(connect(&target.url).await.unwrap());
    let mut request = upload(target, &mut jobs, b"ab\nab a\n").await;
    request.job.push_str("[inference]\nmax_rounds = 1000000\ntolerance = 0\n");
    let id = jobs.submit(with_token(&target.user, request)).await.unwrap().into_inner().id;
    target.count(1);
    target.wait().await;
    jobs.cancel(with_token(&target.user, v1::JobRef { id })).await.unwrap();
}

/// Tokens that no user has, one after the other.
async fn guesses(target: &Target, at: u64) {
    let mut jobs = JobsClient::new(connect(&target.url).await.unwrap());
    let mut n = 0_u64;
    while !target.is_over() {
        n += 1;
        let guess = with_token(&format!("{at}-{n}"), v1::JobRef { id: target.job });
        let refused = jobs.get(guess).await.expect_err("it is refused");
        if refused.code() == tonic::Code::Unavailable {
            jobs = JobsClient::new(connect(&target.url).await.unwrap());
        }
        target.count(1);
    }
}

/// Jobs without end that take all places for running jobs.
async fn endless_jobs(target: &Target) {
    let mut jobs = JobsClient::new(connect(&target.url).await.unwrap());
    let mut request = upload(target, &mut jobs, b"ab\nab a\n").await;
    request.job.push_str("[inference]\nmax_rounds = 1000000\ntolerance = 0\n");
    request.priority = 100;
    let mut ids = Vec::new();
    for _ in 0..40 {
        ids.push(jobs.submit(with_token(&target.user, request.clone())).await.unwrap().into_inner().id);
        target.count(1);
    }
    target.wait().await;
    for id in ids {
        jobs.cancel(with_token(&target.user, v1::JobRef { id })).await.unwrap();
    }
}

/// Sixty submissions at a time whose client gives up while they are checked.
async fn deadlines(target: &Target) {
    let mut jobs = JobsClient::new(connect(&target.url).await.unwrap());
    let lines: String = (0..60_000).map(|n| format!("w{} v{} u{n}\n", n % 977, n % 89)).collect();
    let request = upload(target, &mut jobs, lines.as_bytes()).await;
    while !target.is_over() {
        let submits: Vec<_> = (0..60)
            .map(|_| {
                let (mut jobs, mut request) = (jobs.clone(), with_token(&target.user, request.clone()));
                request.set_timeout(Duration::from_millis(50));
                tokio::spawn(async move { jobs.submit(request).await.is_ok() })
            })
            .collect();
        for submit in submits {
            submit.await.unwrap();
            target.count(1);
        }
    }
}

async fn slow_upload(target: &Target) {
    let mut jobs = JobsClient::new(connect(&target.url).await.unwrap());
    while !target.is_over() {
        let (outgoing, stream) = mpsc::channel(2);
        let head = v1::InputFile { hash: vec![7; 32].into(), size: 64 << 30 };
        for message in [Message::Head(head), Message::Data(vec![1].into())] {
            outgoing.send(v1::UploadMessage { message: Some(message) }).await.unwrap();
        }
        target.count(1);
        tokio::select! {
            _ = jobs.upload(with_token(&target.user, ReceiverStream::new(stream))) => {}
            () = target.wait() => {}
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

/// Loads the page of a job as another user.
fn load_page(target: &Target, job: u64, token: &str) {
    let mut tcp = TcpStream::connect(&target.page).unwrap();
    let request = format!(
        "GET /jobs/{job} HTTP/1.1\r\nHost: {}\r\nAuthorization: Bearer {token}\r\nConnection: close\r\n\r\n",
        target.page
    );
    tcp.write_all(request.as_bytes()).unwrap();
    let mut page = String::new();
    tcp.read_to_string(&mut page).expect("another user is answered");
    assert!(page.starts_with("HTTP/1.1 200"), "{page}");
}

fn half_requests(target: &Target, _: u64) {
    let mut tcp = TcpStream::connect(&target.page).unwrap();
    // The service may close it at once.
    let _ = tcp.write_all(b"GET / HTTP/1.1\r\nHost: x\r\nX-More: ");
    target.count(1);
    block_on(target.wait());
}

/// A folder with a job, and the secrets of its users.
struct Setup {
    folder: Folder,
    /// Of the job's parameters, trained alone.
    digest: String,
    honest: String,
    user: String,
    worker: String,
}

impl Setup {
    fn new() -> Setup {
        let corpus = fs::read_to_string(examples().join("segmentation/corpus.txt")).unwrap();
        let corpus: String = corpus.split_inclusive('\n').take(60).collect();
        let job = "[model]\ngrammar = \"auto:unigram\"\n[corpus]\npath = \"corpus.txt\"\n[inference]\ntruncation = 100\n\
                   max_rounds = 200\ntolerance = 0\n[output]\nscore_every = 0\n";
        let folder = Folder::new(&[("corpus.txt", &corpus), ("job.toml", job)]);
        let digest = folder.train("alone", &["--workers", "1"]).digest().to_owned();
        let token = |name: &str, role: &str| {
            let secret = folder.grammaton(&["token", name, role, "--tokens", "tokens"]);
            fs::write(folder.path(name), &secret).unwrap();
            secret.trim_end().to_owned()
        };
        let [honest, user, worker, _] =
            [("ann", "submit"), ("mallory", "submit"), ("mallory-worker", "work"), ("node", "work")]
                .map(|(name, role)| token(name, role));
        Setup { folder, digest, honest, user, worker }
    }

    /// Trains another user's job under a flood, and checks its result.
    fn train_under(&self, Flood { name, connections, run }: Flood, seconds: u64) -> Flooded {
        let Setup { folder, digest, honest, user, worker } = self;
        let args = ["--http", "127.0.0.1:0", "--tokens", "tokens"];
        let service = Serving::start_at(folder, &name.replace('/', "-"), &args, &[]);
        let page = service.serving();
        let _worker =
            Process::spawn(worker_command(&service.url, "node").arg("--token-file").arg(folder.path("node")));
        // A worker that has answered is known: tasks that strangers leave are left to it.
        let submit = ["submit", "job.toml", "--token-file", "ann"];
        service.grammaton(folder, &[&submit[..], &["--wait"]].concat());
        let id = service.grammaton(folder, &submit);
        let (idle, ..) = usage(service.id());
        let (url, id) = (service.url.clone(), id.parse().unwrap());
        let (over, sent) = (AtomicBool::new(false), AtomicU64::new(0));
        let target = Target { url, page, user: user.clone(), worker: worker.clone(), job: id, over, sent };
        let (lasted, took, took_pages, job) = std::thread::scope(|scope| {
            for at in 0..connections {
                let target = &target;
                std::thread::Builder::new()
                    .stack_size(1 << 20)
                    .spawn_scoped(scope, move || run(target, at))
                    .unwrap();
            }
            let (begun, mut took, mut took_pages) = (clock(), Vec::new(), Vec::new());
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
            let job = loop {
                let begun_call = clock();
                let job = runtime.block_on(async {
                    let channel = connect(&service.url).await.expect("the service takes connections");
                    JobsClient::new(channel).get(with_token(honest, v1::JobRef { id })).await
                });
                let job = job.expect("another user is answered").into_inner();
                took.push(begun_call.elapsed());
                let begun_page = clock();
                load_page(&target, id, honest);
                took_pages.push(begun_page.elapsed());
                let is_over = ["done", "failed", "cancelled"].contains(&&job.state[..]);
                let has_begun = target.sent.load(Ordering::Relaxed) >= connections;
                if is_over && has_begun && begun.elapsed() >= Duration::from_secs(seconds) {
                    break job;
                }
                assert!(
                    begun.elapsed() < Duration::from_secs(300 + seconds),
                    "{name}: {job:?}\n{}",
                    service.log()
                );
                std::thread::sleep(Duration::from_millis(20));
            };
            target.over.store(true, Ordering::Relaxed);
            (begun.elapsed(), took, took_pages, job)
        });
        assert_eq!((&job.state[..], &job.parameters_sha256), ("done", digest), "{name}: {}", job.error);
        let (_, most, cpu) = usage(service.id());
        let more = most.saturating_sub(idle);
        let sent = target.sent.into_inner();
        assert!(more <= ROOM, "{name}: {more} MiB more");
        Flooded { sent, lasted, idle, more, cpu, calls: spread(took), pages: spread(took_pages) }
    }
}

/// What a service took under a flood.
struct Flooded {
    sent: u64,
    lasted: Duration,
    /// MiB before, and more than that.
    idle: u64,
    more: u64,
    /// CPU seconds.
    cpu: f64,
    /// Times of another user's calls and pages.
    calls: String,
    pages: String,
}

/// Floods whose names contain the variable FLOOD, or all.
fn floods() -> impl Iterator<Item = Flood> {
    let only = std::env::var("FLOOD").unwrap_or_default();
    FLOODS.into_iter().filter(move |flood| flood.name.contains(&only))
}

#[test]
#[ignore = "slow"]
fn a_flood_takes_no_memory_and_keeps_no_other_user_out() {
    let setup = Setup::new();
    floods().for_each(|flood| drop(setup.train_under(flood, 1)));
}

/// Prints the table of `docs/results/cluster.md`.
#[test]
#[ignore = "a measurement"]
fn by_hand_memory_of_a_service_under_every_flood() {
    let seconds = std::env::var("FLOOD_SECONDS").map_or(10, |text| text.parse().expect("a number"));
    let setup = Setup::new();
    println!(
        "| flood | sent | a second | MiB over idle | CPU s of the service | calls: median, 99 % within, ms | pages: median, 99 % within, ms |"
    );
    println!("|---|---|---|---|---|---|---|");
    let mut most_idle = 0;
    for flood in floods() {
        let name = flood.name;
        let Flooded { sent, lasted, idle, more, cpu, calls, pages } = setup.train_under(flood, seconds);
        let rate = sent as f64 / lasted.as_secs_f64();
        println!("| {name} | {sent} | {rate:.0} | {more} | {cpu:.1} | {calls} | {pages} |");
        most_idle = most_idle.max(idle);
    }
    println!("idle: {most_idle} MiB at most");
}
