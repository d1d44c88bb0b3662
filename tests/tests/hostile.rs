//! Hostile peers: each is refused or dropped with its cause, and an honest worker beside it finishes the batch with the right result.
//!
//! Sockets and fleet are real. [`CASES`] lists the name, behaviour and expected result of each peer.
//!
//! This is a separate target, since the law bounds the peak memory of the process.

use std::future::Future;
use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use fleet::access::Access;
use fleet::{Fleet, FleetConfig, FleetError, Inline, Listen, Map, Stage};
use grammaton::encoding::encode;
use grammaton::work::task::{Answer, Collapsed, Expectation, Index, ShardState, Task};
use grammaton_tests::{SOON, echo_at_once, echo_pass, echo_task};
use parking_lot::{Condvar, Mutex};
use proto::payload::{self, PIECE};
use proto::token::Token;
use proto::v1::refusal::Reason;
use proto::v1::work_client::WorkClient;
use proto::v1::{self, FromWorker, from_coordinator, from_worker};
use scheduler::Cause;
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;
use tonic::{Request, Streaming};
use worker::WorkerConfig;

const SECRET: &str = "s3cret";
/// Maximum number of unauthenticated connections of the coordinator.
const MAX_UNKNOWN: usize = 256;

/// Behaviour of a peer.
#[derive(Clone, Copy)]
enum Does {
    /// Connects with the token, and sends this hello.
    Greets(fn() -> v1::Hello),
    /// Joins, and sends these messages on the first lease and its task.
    Tells(fn(v1::LeaseId, &Task) -> Vec<from_worker::Message>),
    /// As `Tells`, with shards that have a state.
    Carries(fn(v1::LeaseId, &Task) -> Vec<from_worker::Message>),
    /// Anything else.
    Acts(fn(Place) -> Doing),
}

/// Expected result of a peer.
#[derive(Clone, Copy, Debug)]
enum Gets {
    /// It does not become a member, and receives this reason.
    Refused(Reason, &'static str),
    /// It was a member, and is lost because it broke the protocol in this way.
    Broke(&'static str),
    /// It was a member, and is lost because of its silence.
    Silent,
    /// It was a member until it disconnected, without harm.
    Went,
    /// It was never a member.
    Nothing,
}

use Does::{Acts, Carries, Greets, Tells};
use Gets::{Broke, Nothing, Refused, Silent, Went};
use Reason::{Malformed, OtherSession, Token as BadToken, Version};

/// Reason that a refused peer receives.
type Heard = Option<(Reason, String)>;
type Doing = Pin<Box<dyn Future<Output = Heard> + Send>>;

/// Name, behaviour and expected result of each peer.
const CASES: [(&str, Does, Gets); 48] = [
    // Strangers.
    ("garbage on the port", Acts(|place| Box::pin(garbage(place, b"\0\x01garbage\xff"))), Nothing),
    ("a browser", Acts(|place| Box::pin(garbage(place, b"GET / HTTP/1.1\r\n\r\n"))), Nothing),
    ("TLS to a plain port", Acts(|place| Box::pin(garbage(place, b"\x16\x03\x01\x02\0\x01\0"))), Nothing),
    ("half a preface, then silence", Acts(|place| Box::pin(half_a_preface(place))), Nothing),
    ("a thousand connections that say nothing", Acts(|place| Box::pin(crowd(place))), Nothing),
    ("headers of 64 KiB", Acts(|place| Box::pin(large_header(place))), Nothing),
    ("no token", Acts(|place| Box::pin(knock(place, None, hello()))), Refused(BadToken, "a token is needed")),
    (
        "most of the token",
        Acts(|place| Box::pin(knock(place, Some("s3cre"), hello()))),
        Refused(BadToken, "the token is not"),
    ),
    (
        "wrong version",
        Greets(|| v1::Hello { version: 99, ..hello() }),
        Refused(Version, "the worker speaks version 99"),
    ),
    ("no slots", Greets(|| v1::Hello { slots: 0, ..hello() }), Refused(Malformed, "slots: 0")),
    (
        "too many slots",
        Greets(|| v1::Hello { slots: u32::MAX, ..hello() }),
        Refused(Malformed, "slots: 4294967295"),
    ),
    (
        "a name of 1 MiB",
        Greets(|| v1::Hello { name: "n".repeat(1 << 20), ..hello() }),
        Refused(Malformed, "name of 1048576 bytes"),
    ),
    ("blobs without names", Greets(|| holding(1)), Refused(Malformed, "hello.held: length 0, expected 32")),
    (
        "too many blobs",
        Greets(|| holding(100_000)),
        Refused(Malformed, "slots: 1, expected 1 to 1024; held: 100000"),
    ),
    (
        "leases of another session",
        Greets(|| v1::Hello { session: vec![7; 16].into(), ..running(1) }),
        Refused(OtherSession, "it still computes 1 tasks of another session"),
    ),
    (
        "leases of no session",
        Greets(|| running(1)),
        Refused(Malformed, "hello.session: length 0, expected 16"),
    ),
    (
        "more leases than slots",
        Greets(|| running(18)),
        Refused(Malformed, "hello.running: length 18, expected at most 17"),
    ),
    (
        "a heartbeat, not a hello",
        Acts(|place| Box::pin(first(place, Some(heartbeat())))),
        Refused(Malformed, "the first message is not"),
    ),
    ("no hello", Acts(|place| Box::pin(first(place, None))), Refused(Malformed, "the first message is not")),
    // Members.
    (
        "hello twice",
        Tells(|_, _| vec![from_worker::Message::Hello(hello())]),
        Broke("a message out of order"),
    ),
    ("an empty message", Acts(|place| Box::pin(empty_message(place))), Broke("a message out of order")),
    (
        "a message of 2 MiB",
        Tells(|_, _| vec![piece(2 << 20)]),
        Broke("Error, decoded message length too large"),
    ),
    ("a piece of nothing", Tells(|_, _| vec![piece(1)]), Broke("a message out of order")),
    (
        "an answer of 1 GiB",
        Tells(|lease, _| vec![head(lease, 1 << 30)]),
        Broke("answer 1.0.0: payload of 1073741824 bytes"),
    ),
    (
        "an endless answer",
        Tells(|lease, _| vec![head(lease, u64::MAX)]),
        Broke("answer 1.0.0: payload of 18446744073709551615 bytes"),
    ),
    ("an empty answer", Tells(|lease, _| bytes(lease, vec![])), Broke("answer 1.0.0: answer: ")),
    ("an answer of noise", Tells(|lease, _| bytes(lease, vec![0xff; 40])), Broke("answer 1.0.0: answer: ")),
    (
        "NaN",
        Tells(|lease, task| counts(lease, task, f64::NAN)),
        Broke("answer 1.0.0: expectation.counts[0]: NaN, expected"),
    ),
    (
        "infinity",
        Tells(|lease, task| counts(lease, task, f64::INFINITY)),
        Broke("answer 1.0.0: expectation.counts[0]: inf, expected"),
    ),
    (
        "a negative count",
        Tells(|lease, task| counts(lease, task, -1.0)),
        Broke("answer 1.0.0: expectation.counts[0]: -1, expected"),
    ),
    (
        "too few counts",
        Tells(|lease, _| value(lease, &four_counts())),
        Broke("answer 1.0.0: expectation.counts: length 4, expected 5"),
    ),
    (
        "another kind",
        Tells(|lease, _| value(lease, &no_params())),
        Broke("answer 1.0.0: answer: of another kind than its task"),
    ),
    (
        "another task",
        Tells(|lease, task| right(v1::LeaseId { task: 999, ..lease }, task)),
        Broke("answer 1.999.0 is to a task that its batch lacks"),
    ),
    (
        "a batch to come",
        Tells(|lease, task| right(v1::LeaseId { batch: 2, ..lease }, task)),
        Broke("answer 2.0.0 is to a batch that was never submitted"),
    ),
    ("another checksum", Tells(broken), Broke("answer 1.0.0: payload of")),
    (
        "more than declared",
        Tells(|lease, _| vec![head(lease, 10), piece(11)]),
        Broke("answer 1.0.0: payload grew to 11 bytes, expected 10"),
    ),
    (
        "a state of fewer sentences",
        Carries(|lease, task| passed(lease, task, |counts| drop(counts.pop()))),
        Broke("answer 1.0.0: shard_state.counts: length 0, expected 1"),
    ),
    (
        "a state of another shard",
        Carries(|lease, task| passed(lease, task, |counts| counts[0].push((5, 1.0)))),
        Broke("answer 1.0.0: shard_state: a sentence's counts are not of the shard's parameters"),
    ),
    (
        "a state of NaN",
        Carries(|lease, task| passed(lease, task, |counts| counts[0][0].1 = f64::NAN)),
        Broke("answer 1.0.0: shard_state: a sentence's counts are not counts"),
    ),
    (
        "counts without a state",
        Carries(|lease, _| value(lease, &four_counts())),
        Broke("answer 1.0.0: answer: of another kind than its task"),
    ),
    ("a worker that keeps and keeps", Acts(|place| Box::pin(hoarder(place))), Broke("answer 0.")),
    (
        "a state kept without a name",
        Carries(|lease, _| vec![keeping(lease, b"short")]),
        Broke("answer.kept: length 5, expected 32"),
    ),
    ("half a payload, then silence", Tells(|lease, _| vec![head(lease, 60), piece(30)]), Silent),
    ("half a payload, then gone", Acts(|place| Box::pin(gone(place))), Went),
    (
        "an answer for an unknown attempt",
        Tells(|lease, task| right(v1::LeaseId { attempt: 7, ..lease }, task)),
        Broke("it answered lease 1.0.7, which was not given to it"),
    ),
    (
        "a failure for an unknown attempt",
        Tells(|lease, _| vec![failure(v1::LeaseId { attempt: 9, ..lease }, &"no\nsuch ".repeat(1000))]),
        Broke("it answered lease 1.0.9, which was not given to it"),
    ),
    // Members that exceed what is allowed.
    ("1 GiB for a batch that is over", Acts(|place| Box::pin(late(place))), Went),
    ("the same answer thrice", Acts(|place| Box::pin(thrice(place))), Went),
];

#[test]
fn hostile_peers_are_refused_or_dropped_and_the_batch_finishes() {
    let failed: Vec<&str> = std::thread::scope(|scope| {
        let start = |&(name, does, gets): &(&'static str, Does, Gets)| {
            let run = std::thread::Builder::new().name(name.into());
            (name, run.spawn_scoped(scope, move || check(does, gets)).unwrap())
        };
        let running: Vec<_> = CASES.iter().map(start).collect();
        running.into_iter().filter_map(|(name, run)| run.join().is_err().then_some(name)).collect()
    });
    assert_eq!(failed, [""; 0]);
    // Peak memory of all fleets of this process.
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    let kib: u64 = peak.trim().trim_end_matches(" kB").parse().unwrap();
    assert!(kib < 512 << 10, "{kib} KiB at most");
}

/// Surroundings of a peer.
#[derive(Clone)]
struct Place {
    address: String,
    /// Notified when the peer is a member and may be assigned a task.
    joined: std::sync::mpsc::Sender<()>,
    tasks: Arc<Vec<Task>>,
}

/// Runs a fleet with an honest worker, which holds back its answers until the peer has acted.
fn check(does: Does, gets: Gets) {
    let access = Access::One(Token::new(SECRET, "test").unwrap());
    let listen = Listen { access, ..Listen::at("127.0.0.1:0".parse().unwrap()) };
    let mut config = FleetConfig { local_workers: 0, listen: Some(listen), ..FleetConfig::default() };
    if matches!(gets, Silent) {
        (config.suspect_after, config.dead_after) = (Duration::from_secs(2), Duration::from_secs(4));
    }
    let fleet = Fleet::start(config).unwrap();
    let address = fleet.address().unwrap().to_string();
    let hold = Arc::new((Mutex::new(false), Condvar::new()));
    let good = good_worker(format!("http://{address}"), hold.clone());

    let task = |name| match does {
        Carries(_) => echo_pass(name, 1, 1.0),
        Greets(_) | Tells(_) | Acts(_) => echo_task(name, Duration::ZERO, 5),
    };
    let tasks = |count| (0..count).map(task).collect::<Vec<_>>();
    set(&hold, false);
    let answers = |tasks: Vec<Task>| {
        let mut answers = Vec::new();
        let report = fleet.map(Stage::Decode, tasks, |at, answer| {
            assert_eq!(at, answers.len(), "answers come in task order, each once");
            answers.push(answer);
        });
        (answers, report.unwrap())
    };
    // A finished batch, for late answers.
    answers(tasks(2));
    set(&hold, true);
    let (joined, is_in) = std::sync::mpsc::channel();
    let is_in = Mutex::new(is_in);
    let place = Place { address, joined, tasks: Arc::new(tasks(8)) };
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    let (refusal, found, report) = std::thread::scope(|scope| {
        let batch = scope.spawn(|| {
            if matches!(gets, Broke(_) | Silent | Went) {
                is_in.lock().recv_timeout(SOON).expect("a member joins");
            }
            answers(tasks(8))
        });
        let doing: Doing = match does {
            Greets(hello) => Box::pin(knock(place, Some(SECRET), hello())),
            Tells(says) | Carries(says) => Box::pin(tell(place, says)),
            Acts(act) => act(place),
        };
        let refusal = runtime.block_on(async { tokio::time::timeout(SOON, doing).await });
        set(&hold, false);
        let (found, report) = batch.join().unwrap();
        (refusal.expect("it is dealt with soon"), found, report)
    });
    let mut expected = Vec::new();
    let inline = Inline::new(Arc::new(echo_at_once));
    inline.map(Stage::Decode, Arc::new(tasks(8)), &mut |_, answer| expected.push(answer)).unwrap();
    assert_eq!(found, expected, "the good worker's result is right");
    let lost: Vec<&Cause> =
        report.losses.iter().filter(|loss| loss.name == "mallory").map(|loss| &loss.cause).collect();
    match (gets, &lost[..], &refusal) {
        (Refused(reason, detail), [], Some((found, said))) => {
            assert!(*found == reason && said.starts_with(detail), "{found:?}: {said}");
        }
        (Broke(how), [Cause::Protocol(found) | Cause::Expelled(found)], None) => {
            assert!(found.starts_with(how), "{found}")
        }
        (Broke(how), [cause @ Cause::NotHolder { .. }], None) => {
            assert!(cause.to_string().contains(how), "{cause}");
        }
        (Silent, [Cause::Silent(_)], None)
        | (Went, [] | [Cause::Disconnected(_)], None)
        | (Nothing, [], None) => {}
        _ => panic!("expected {gets:?}, found {lost:?}, {refusal:?}"),
    }
    fleet.shutdown();
    good.join().unwrap();
}

/// A fleet with an honest worker that has answered once and then holds back its answers.
struct Setup {
    fleet: Fleet,
    hold: Arc<(Mutex<bool>, Condvar)>,
    good: std::thread::JoinHandle<()>,
    place: Place,
    runtime: tokio::runtime::Runtime,
}

impl Setup {
    /// The answers of an honest worker.
    fn expected(&self) -> Vec<Answer> {
        let (inline, mut expected) = (Inline::new(Arc::new(echo_at_once)), Vec::new());
        let tasks = Arc::new(self.place.tasks.to_vec());
        inline.map(Stage::Decode, tasks, &mut |_, answer| expected.push(answer)).unwrap();
        expected
    }

    fn new(n_tasks: u32, config: FleetConfig) -> Setup {
        let access = Access::One(Token::new(SECRET, "test").unwrap());
        let listen = Listen { access, ..Listen::at("127.0.0.1:0".parse().unwrap()) };
        let compute = Arc::new(echo_at_once);
        let config = FleetConfig { local_workers: 0, listen: Some(listen), compute, ..config };
        let fleet = Fleet::start(config).unwrap();
        let address = fleet.address().unwrap().to_string();
        let hold = Arc::new((Mutex::new(false), Condvar::new()));
        let good = good_worker(format!("http://{address}"), hold.clone());
        fleet.map(Stage::Decode, vec![echo_task(0, Duration::ZERO, 5)], |_, _| {}).unwrap();
        set(&hold, true);
        let tasks = Arc::new((0..n_tasks).map(|name| echo_task(name, Duration::ZERO, 5)).collect());
        let place = Place { address, joined: std::sync::mpsc::channel().0, tasks };
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build();
        Setup { fleet, hold, good, place, runtime: runtime.unwrap() }
    }

    /// Computes the batch while the peer acts; the honest worker answers after that.
    fn map_during(&self, peer: impl Future<Output = ()>) -> Result<Vec<Answer>, FleetError> {
        std::thread::scope(|scope| {
            let batch = scope.spawn(|| {
                let mut answers = Vec::new();
                let tasks = self.place.tasks.to_vec();
                self.fleet.map(Stage::Decode, tasks, |_, answer| answers.push(answer)).map(|_| answers)
            });
            self.runtime.block_on(async { tokio::time::timeout(SOON, peer).await }).expect("it is soon done");
            set(&self.hold, false);
            batch.join().unwrap()
        })
    }

    fn end(self) {
        self.fleet.shutdown();
        self.good.join().unwrap();
    }
}

/// Law: only the holder of a replica may answer it, so that a worker that answers both is detected.
#[test]
fn a_worker_that_answers_both_leases_of_an_audited_task_with_wrong_counts_is_named() {
    let n_tasks = 4;
    let setup = Setup::new(n_tasks, FleetConfig { audit: 1.0, ..FleetConfig::default() });
    let place = setup.place.clone();
    let found = setup.map_during(async move {
        let (peer, own) = Peer::join(&place).await;
        let replica = v1::LeaseId { task: (own.task + n_tasks) % (2 * n_tasks), attempt: 0, ..own };
        for lease in [own, replica] {
            for message in counts(lease, &place.tasks[(lease.task % n_tasks) as usize], 1.25) {
                peer.say(message).await;
            }
        }
        peer.end().await;
    });
    let Err(FleetError::Audit { mismatch, .. }) = found else { panic!("{found:?}") };
    assert_eq!(
        (&mismatch.wrong[..], mismatch.right.as_deref()),
        (&["mallory".to_owned()][..], Some("alice"))
    );
    setup.end();
}

/// Law: one attacker that fails tasks or disconnects ends no batch while another worker is present.
#[test]
fn an_attacker_that_fails_tasks_and_disconnects_repeatedly_ends_no_batch() {
    let setup = Setup::new(40, FleetConfig::default());
    let place = setup.place.clone();
    let found = setup.map_during(async move {
        for _ in 0..4 {
            let (peer, lease) = Peer::join(&place).await;
            assert!(peer.say(failure(lease, "no")).await);
        }
    });
    assert_eq!(found.unwrap(), setup.expected());
    setup.end();
}

/// Law: what a worker answers after it was declared dead changes no result, on its own connection or on a new one.
#[test]
fn answers_of_a_worker_that_was_declared_dead_change_nothing() {
    let (suspect_after, dead_after) = (Duration::from_secs(2), Duration::from_secs(4));
    let setup = Setup::new(40, FleetConfig { suspect_after, dead_after, ..FleetConfig::default() });
    let place = setup.place.clone();
    let found = setup.map_during(async move {
        let (mut dead, lease) = Peer::join(&place).await;
        let wrong = counts(lease, &place.tasks[lease.task as usize], 1.25);
        while dead.incoming.message().await.is_ok_and(|message| message.is_some()) {}
        for message in wrong.clone() {
            dead.say(message).await;
        }
        let (back, _) = Peer::join(&place).await;
        for message in wrong {
            back.say(message).await;
        }
        back.end().await;
    });
    assert_eq!(found.unwrap(), setup.expected());
    setup.end();
}

fn set(hold: &(Mutex<bool>, Condvar), held: bool) {
    *hold.0.lock() = held;
    hold.1.notify_all();
}

fn good_worker(coordinator: String, hold: Arc<(Mutex<bool>, Condvar)>) -> std::thread::JoinHandle<()> {
    let compute = move |task: &Task| {
        hold.1.wait_while(&mut hold.0.lock(), |held| *held);
        echo_at_once(task)
    };
    let config = WorkerConfig {
        coordinator,
        threads: 1,
        name: "alice".into(),
        token: Token::new(SECRET, "test").ok(),
        compute: Arc::new(compute),
        ..WorkerConfig::default()
    };
    std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build();
        let runtime = runtime.unwrap();
        let ended = runtime.block_on(worker::run(config, std::future::pending()));
        runtime.shutdown_background();
        ended.unwrap();
    })
}

// Messages of peers.

fn hello() -> v1::Hello {
    v1::Hello { version: proto::VERSION, name: "mallory".into(), slots: 1, ..v1::Hello::default() }
}

fn heartbeat() -> from_worker::Message {
    from_worker::Message::Heartbeat(v1::Heartbeat {})
}

fn piece(length: usize) -> from_worker::Message {
    from_worker::Message::Piece(v1::Piece { data: vec![1; length].into() })
}

/// A hello that claims blobs without valid names.
fn holding(blobs: usize) -> v1::Hello {
    v1::Hello { held: vec![v1::Held::default(); blobs], ..hello() }
}

/// A hello that names leases of an earlier connection.
fn running(leases: usize) -> v1::Hello {
    v1::Hello { running: vec![v1::LeaseId::default(); leases], ..hello() }
}

fn four_counts() -> Answer {
    Answer::Expectation(Expectation { counts: vec![1.0; 4], ..Expectation::default() })
}

fn no_params() -> Answer {
    Answer::Index(Index { params: vec![], unparsable: vec![] })
}

fn head(lease: v1::LeaseId, size: u64) -> from_worker::Message {
    let extent = v1::Extent { size, ..payload::extent(&Default::default()) };
    from_worker::Message::Answer(v1::AnswerHead {
        id: Some(lease),
        busy_micros: 1,
        extent: Some(extent),
        kept: None,
    })
}

/// An empty answer that claims to keep a state.
fn keeping(lease: v1::LeaseId, name: &'static [u8]) -> from_worker::Message {
    let kept = Some(v1::Held { hash: name.into(), size: 0 });
    let extent = Some(payload::extent(&Default::default()));
    from_worker::Message::Answer(v1::AnswerHead { id: Some(lease), busy_micros: 1, extent, kept })
}

/// An answer of these bytes.
fn bytes(lease: v1::LeaseId, payload: Vec<u8>) -> Vec<from_worker::Message> {
    let payload = payload.into();
    let extent = Some(payload::extent(&payload));
    let head = v1::AnswerHead { id: Some(lease), busy_micros: u64::MAX, extent, kept: None };
    let pieces = payload::pieces(payload).map(from_worker::Message::Piece);
    std::iter::once(from_worker::Message::Answer(head)).chain(pieces).collect()
}

fn failure(lease: v1::LeaseId, detail: &str) -> from_worker::Message {
    from_worker::Message::Failure(v1::Failure {
        id: Some(lease),
        detail: detail.into(),
        ..v1::Failure::default()
    })
}

fn value(lease: v1::LeaseId, answer: &Answer) -> Vec<from_worker::Message> {
    bytes(lease, encode(answer))
}

fn right(lease: v1::LeaseId, task: &Task) -> Vec<from_worker::Message> {
    value(lease, &echo_at_once(task).unwrap())
}

/// As [`right`], with a different first count.
fn counts(lease: v1::LeaseId, task: &Task, first: f64) -> Vec<from_worker::Message> {
    let Answer::Expectation(mut expectation) = echo_at_once(task).unwrap() else { panic!("not counts") };
    expectation.counts[0] = first;
    value(lease, &Answer::Expectation(expectation))
}

/// As [`right`], for a task whose shard has a state, with a change.
fn passed(
    lease: v1::LeaseId,
    task: &Task,
    change: fn(&mut Vec<Vec<(u32, f64)>>),
) -> Vec<from_worker::Message> {
    let mut answer = echo_at_once(task).unwrap();
    let Answer::Collapsed(Collapsed { shard_state: ShardState::Counts(counts), .. }) = &mut answer else {
        panic!("nothing is shard_state")
    };
    change(counts);
    value(lease, &answer)
}

fn broken(lease: v1::LeaseId, task: &Task) -> Vec<from_worker::Message> {
    let mut messages = right(lease, task);
    if let from_worker::Message::Answer(head) = &mut messages[0] {
        let checksum = payload::extent(&b"something else".as_slice().into()).checksum;
        head.extent = head.extent.take().map(|extent| v1::Extent { checksum, ..extent });
    }
    messages
}

// Behaviour of peers.

/// A stream to the coordinator.
struct Peer {
    outgoing: mpsc::Sender<FromWorker>,
    incoming: Streaming<v1::FromCoordinator>,
}

impl Peer {
    async fn dial(place: &Place, token: Option<&str>) -> Peer {
        let url = format!("http://{}", place.address);
        let channel = tonic::transport::Endpoint::from_shared(url).unwrap().connect().await.unwrap();
        let (outgoing, stream) = mpsc::channel(4);
        let mut request = Request::new(ReceiverStream::new(stream));
        if let Some(token) = token {
            request.metadata_mut().insert("authorization", format!("Bearer {token}").parse().unwrap());
        }
        let mut client = WorkClient::new(channel).max_encoding_message_size(usize::MAX);
        Peer { outgoing, incoming: client.join(request).await.unwrap().into_inner() }
    }

    /// Sends a message; returns whether the connection is open.
    async fn say(&self, message: from_worker::Message) -> bool {
        self.outgoing.send(FromWorker { message: Some(message) }).await.is_ok()
    }

    /// Joins, starts the batch, and waits for the first lease.
    async fn join(place: &Place) -> (Peer, v1::LeaseId) {
        let mut peer = Peer::dial(place, Some(SECRET)).await;
        peer.say(from_worker::Message::Hello(hello())).await;
        loop {
            let message = peer.incoming.message().await.unwrap().expect("it is taken in").message;
            match message {
                // Some cases do not wait for this.
                Some(from_coordinator::Message::Welcome(_)) => drop(place.joined.send(())),
                Some(from_coordinator::Message::Lease(head)) => return (peer, head.id.unwrap()),
                _ => {}
            }
        }
    }

    /// Listens until the coordinator closes the connection; returns the reason, if it sends one.
    async fn end(mut self) -> Heard {
        let mut refusal = None;
        while let Ok(Some(message)) = self.incoming.message().await {
            if let Some(from_coordinator::Message::Refusal(said)) = message.message {
                refusal = Some((said.reason(), said.detail));
            }
        }
        refusal
    }
}

async fn knock(place: Place, token: Option<&str>, hello: v1::Hello) -> Heard {
    let peer = Peer::dial(&place, token).await;
    peer.say(from_worker::Message::Hello(hello)).await;
    peer.end().await
}

async fn first(place: Place, message: Option<from_worker::Message>) -> Heard {
    let peer = Peer::dial(&place, Some(SECRET)).await;
    if let Some(message) = message {
        peer.say(message).await;
    }
    peer.end().await
}

/// Joins, sends the messages of `says` for the first task, and returns the reaction.
async fn tell(place: Place, says: fn(v1::LeaseId, &Task) -> Vec<from_worker::Message>) -> Heard {
    let (peer, lease) = Peer::join(&place).await;
    // The lease of this member, which the case names.
    let lease = v1::LeaseId { batch: lease.batch, task: 0, attempt: 0 };
    for message in says(lease, &place.tasks[0]) {
        peer.say(message).await;
    }
    peer.end().await
}

async fn empty_message(place: Place) -> Heard {
    let (peer, _) = Peer::join(&place).await;
    peer.outgoing.send(FromWorker { message: None }).await.unwrap();
    peer.end().await
}

async fn gone(place: Place) -> Heard {
    let (peer, lease) = Peer::join(&place).await;
    peer.say(head(lease, 60)).await;
    peer.say(piece(30)).await;
    None
}

/// Sends much data for a finished batch. None of it may be kept.
async fn late(place: Place) -> Heard {
    let (peer, lease) = Peer::join(&place).await;
    peer.say(head(v1::LeaseId { batch: 0, ..lease }, 1 << 30)).await;
    for _ in 0..1000 {
        assert!(peer.say(piece(PIECE)).await, "it is a member still");
    }
    None
}

/// Claims repeatedly to keep states, with answers for a finished batch.
async fn hoarder(place: Place) -> Heard {
    let (peer, lease) = Peer::join(&place).await;
    let late = v1::LeaseId { batch: 0, ..lease };
    for _ in 0..proto::MAX_SLOTS {
        if !peer.say(keeping(late, &[7; 32])).await {
            break;
        }
    }
    peer.end().await
}

async fn thrice(place: Place) -> Heard {
    let (peer, lease) = Peer::join(&place).await;
    for _ in 0..3 {
        for message in right(lease, &place.tasks[lease.task as usize]) {
            assert!(peer.say(message).await, "it is a member still");
        }
    }
    None
}

async fn large_header(place: Place) -> Heard {
    let url = format!("http://{}", place.address);
    let channel = tonic::transport::Endpoint::from_shared(url).unwrap().connect().await.unwrap();
    let (_outgoing, stream) = mpsc::channel(1);
    let mut request = Request::new(ReceiverStream::<FromWorker>::new(stream));
    let token = format!("Bearer {}", "x".repeat(64 << 10));
    request.metadata_mut().insert("authorization", token.parse().unwrap());
    assert!(WorkClient::new(channel).join(request).await.is_err(), "a token of this length is invalid");
    None
}

/// Sends bytes that are not HTTP/2; the coordinator answers so and closes the connection.
async fn garbage(place: Place, words: &[u8]) -> Heard {
    let mut tcp = TcpStream::connect(&place.address).unwrap();
    tcp.set_read_timeout(Some(SOON)).unwrap();
    tcp.write_all(words).unwrap();
    let mut answer = String::new();
    tcp.read_to_string(&mut answer).unwrap();
    assert!(answer.contains("this port speaks gRPC without TLS"), "{answer}");
    None
}

async fn half_a_preface(place: Place) -> Heard {
    let mut tcp = TcpStream::connect(&place.address).unwrap();
    tcp.write_all(b"PRI * HTTP/2.0\r\n").unwrap();
    None
}

/// Opens many silent connections. The coordinator closes the oldest of them, but not the honest worker's.
async fn crowd(place: Place) -> Heard {
    let mut waiting = std::collections::VecDeque::new();
    for _ in 0..1000 {
        let tcp = TcpStream::connect(&place.address).unwrap();
        tcp.set_read_timeout(Some(SOON)).unwrap();
        waiting.push_back(tcp);
        if waiting.len() > MAX_UNKNOWN {
            let mut oldest = waiting.pop_front().unwrap();
            // The connection was closed: an end or an error.
            let cut = oldest.read(&mut [0]);
            assert!(!matches!(&cut, Err(error) if error.kind() == std::io::ErrorKind::WouldBlock), "{cut:?}");
        }
    }
    // A new connection is still accepted.
    assert!(knock(place, Some(SECRET), v1::Hello { version: 99, ..hello() }).await.is_some());
    None
}
