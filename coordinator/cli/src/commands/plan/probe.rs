//! Runs the first rounds of a job on one thread, and measures times and bytes of each task and of the coordinator.
//!
//! In: a job. Out: its [`Load`], and a summary, [`Measured`]. Every lease and answer is encoded and decoded as between
//! coordinator and worker, and the decoded answer is the one that is added up. So bytes are the bytes of real messages
//! (without the frames of HTTP/2 and TLS), and times are times of real code, without concurrency.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use grammaton::encoding::encode;
use grammaton::work::lease::{Attempt, BatchId, LeaseId, TaskIndex};
use grammaton::work::task::{Answer, Task};
use prost::Message as _;
use prost::bytes::Bytes;
use proto::blob::{self, Blob};
use proto::check::{self, Invalid};
use proto::cpu_time;
use proto::lease;
use proto::payload::{self, Assembly, MAX_PAYLOAD, Progress as Payload};
use proto::v1::{self, FromCoordinator, FromWorker, from_coordinator, from_worker};
use serde::Serialize;

use basics::clock;
use fleet::forecast::{Load, Message, TaskLoad};
use fleet::{Compute, Fleet, FleetConfig, FleetError, Inline, Map, MapReport, Stage, Tasks, engine};
use grammaton::prepare::Chosen;
use grammaton::prepare::candidates::StringChoice;
use scheduler::Failure;
use training::events::All;
use training::job::Job;
use training::train::checkpoint::{Checkpoints, Origin, Progress};
use training::train::checkpoint_writer::CheckpointWriter;
use training::train::group::{Inputs, Prepared};
use training::train::prepare::{self, Items};
use training::train::rounds::Training;
use training::train::text::Text;

/// Time of the coordinator for a lease or an answer besides encoding, decoding and scheduling: channels, gRPC, the system.
/// From the CPU-seconds of a coordinator with one worker on loopback and tiny shards; `docs/SCALING.md` has the command.
const MESSAGE: Duration = Duration::from_micros(65);

/// Measurements in seconds and bytes, summed over all tasks of a round unless noted.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Measured {
    /// Number of sentences of the corpus.
    pub sentences: usize,
    /// Number of shards of its sentences.
    pub shards: usize,
    /// Number of tasks of a round after the first, by all runs: groups of shards.
    pub tasks: usize,
    /// Number of measured rounds after the first.
    pub rounds: usize,
    /// Compute time of the first round, in which forests are built.
    pub first_seconds: f64,
    /// Compute time of a later round.
    pub work_seconds: f64,
    /// Compute time of the longest task of a later round.
    pub longest_seconds: f64,
    /// Bytes of leases, including weights.
    pub lease_bytes: u64,
    /// Bytes of answers, including counts.
    pub answer_bytes: u64,
    /// Bytes of all shards; each shard is sent once.
    pub shard_bytes: u64,
    /// Bytes that are sent once to every member.
    pub once_bytes: u64,
    /// Time to encode leases.
    pub encode_seconds: f64,
    /// Time to decode answers.
    pub decode_seconds: f64,
    /// Time to add up answers.
    pub add_seconds: f64,
    /// Time between rounds: the update, the next weights and tasks.
    pub between_seconds: f64,
}

/// Runs all rounds of `job` for fleets of so many workers and threads, which decide how many shards a task is on and what tasks share, and
/// measures them: a load for each, and what the first one came to. A core of a worker is `speed` times as fast as one of this machine. Large values are stored in the
/// job's output folder meanwhile.
pub fn measure(job: &Job, fleets: &[[usize; 2]], speed: f64) -> Result<(Vec<Load>, Measured)> {
    let inputs = Inputs::load(job)?;
    let mut probe = Probe::new(speed)?;
    let items: Vec<Items> = inputs.groups.iter().map(|group| Items::new(&group.input)).collect();
    let origin = Origin::new(job, &items);
    let (mut prepared, mut all_chosen): (Vec<Prepared<'_>>, Vec<Chosen>) = Default::default();
    for (group, items) in inputs.groups.iter().zip(items) {
        let choice = StringChoice::from(&group.job.inference);
        let (chosen, plan) = prepare::plan(&probe, &group.input, items, &choice, None)?;
        prepared.push(Prepared::new(group, plan));
        all_chosen.push(chosen);
    }
    let (mut loads, mut measured): (Vec<Load>, Option<Measured>) = Default::default();
    for &fleet in fleets {
        probe.begin(fleet);
        let mut checkpoints = Checkpoints::none();
        let writer = CheckpointWriter::new(&mut checkpoints, origin.clone(), all_chosen.clone());
        let no_observers = &mut All(Vec::new());
        Training::new(job, &prepared, &probe, writer, Progress::default())?.run(no_observers)?;
        let load = probe.load()?;
        let n_rounds = probe.rounds.borrow().len() - 1;
        measured.get_or_insert_with(|| Measured::of(&load, &inputs.first().text, n_rounds));
        loads.push(load);
    }
    Ok((loads, measured.context("no fleet was asked for")?))
}

impl Measured {
    fn of(load: &Load, text: &Text, rounds: usize) -> Measured {
        let bytes = |of: fn(&TaskLoad) -> u64| load.tasks.iter().map(of).sum();
        let seconds =
            |of: fn(&TaskLoad) -> Duration| load.tasks.iter().map(of).sum::<Duration>().as_secs_f64();
        let longest = load.tasks.iter().flat_map(|task| &task.again).max();
        Measured {
            sentences: text.n_sentences,
            shards: text.shards.len(),
            tasks: load.tasks.len(),
            rounds,
            first_seconds: seconds(|task| task.first),
            work_seconds: load.work().as_secs_f64(),
            longest_seconds: longest.map_or(0.0, Duration::as_secs_f64),
            lease_bytes: bytes(|task| task.lease.bytes),
            answer_bytes: bytes(|task| task.answer_bytes),
            shard_bytes: bytes(|task| task.shard.bytes),
            once_bytes: load.once.bytes,
            encode_seconds: seconds(|task| task.lease.encode),
            decode_seconds: seconds(|task| task.decode),
            add_seconds: seconds(|task| task.add),
            between_seconds: load.between.as_secs_f64(),
        }
    }
}

/// A fleet that computes a round on the calling thread, and everything before it on all cores.
struct Probe {
    /// The fleet until the first round.
    preparing: RefCell<Option<Fleet>>,
    /// Computes tasks with a separate cache of forests, so that the first round builds them.
    compute: Compute,
    /// Workers of the fleet that it stands for, and their threads.
    fleet: [usize; 2],
    /// Speed of each of them, where a thread of this machine has one.
    speed: f64,
    rounds: RefCell<Vec<RoundFound>>,
}

/// Measurements of a round.
struct RoundFound {
    tasks: Vec<TaskFound>,
    once: Message,
    every_round: Message,
    begun: Instant,
    ended: Instant,
}

#[derive(Clone, Default)]
struct TaskFound {
    busy: Duration,
    handling: Duration,
    shard: Message,
    shard_state: Option<Message>,
    lease: Message,
    answer_bytes: u64,
    decode: Duration,
    add: Duration,
}

impl Probe {
    fn new(speed: f64) -> Result<Probe> {
        let preparing = RefCell::new(Some(Fleet::start(FleetConfig::default())?));
        Ok(Probe { preparing, compute: engine(), fleet: [1, 1], speed, rounds: RefCell::default() })
    }

    /// Begins again, in the place of a fleet of so many workers and threads.
    fn begin(&mut self, fleet: [usize; 2]) {
        (self.compute, self.fleet) = (engine(), fleet);
        self.rounds.borrow_mut().clear();
    }

    /// A round of the job.
    fn round(
        &self,
        stage: Stage,
        tasks: &dyn Tasks,
        each: &mut dyn FnMut(usize, Answer),
    ) -> Result<MapReport, FleetError> {
        let begun = clock::instant();
        drop(self.preparing.take());
        let batch = BatchId(self.rounds.borrow().len() as u64);
        let (mut once, mut every_round) = (Message::default(), Message::default());
        let mut counted = BTreeSet::new();
        let mut found = Vec::with_capacity(tasks.len());
        for at in 0..tasks.len() {
            let task = TaskIndex(at as u32);
            let failed = |detail| FleetError::Batch {
                stage,
                failure: Failure::Task { task, detail, lacks_memory: false },
                decisions: Vec::new(),
            };
            let (task, making) = timed(|| tasks.make(at));
            let task = task.map_err(|error| failed(format!("{error:#}")))?;
            for blob in Blob::of_task(&task) {
                let of_many = match blob {
                    Blob::Grammar(_) | Blob::Lexicon(_) => &mut once,
                    Blob::Decode(_) | Blob::Fit(_) | Blob::Weights(_) => &mut every_round,
                    Blob::Shard(_) | Blob::ShardState(_) => continue,
                };
                if counted.insert(blob.hash()) {
                    *of_many = sum(*of_many, message(&blob));
                }
            }
            let lease = LeaseId { batch, task: TaskIndex(at as u32), attempt: Attempt(0) };
            let mut measured = assigned(lease, &task);
            measured.lease.encode += making;
            let computing = cpu_time::of_thread();
            let answer = (self.compute)(&task);
            measured.busy = cpu_time::of_thread() - computing;
            let answer = answer.map_err(|error| failed(error.to_string()))?;
            let answer = returned(lease, &task, &answer, &mut measured);
            for time in [&mut measured.busy, &mut measured.handling] {
                *time = time.div_f64(self.speed);
            }
            let unreadable = |error| format!("its answer cannot be read back, which is a bug: {error}");
            let answer = answer.map_err(|error| failed(unreadable(error)))?;
            ((), measured.add) = timed(|| each(at, answer));
            found.push(measured);
        }
        let busy_by_task: Vec<Duration> = found.iter().map(|task| task.busy).collect();
        let bytes_sent = found.iter().map(|task| task.lease.bytes).sum();
        let bytes_received = found.iter().map(|task| task.answer_bytes).sum();
        self.rounds.borrow_mut().push(RoundFound {
            tasks: found,
            once,
            every_round,
            begun,
            ended: clock::instant(),
        });
        let (busy, attempts) = (busy_by_task.iter().sum(), busy_by_task.len());
        let (wall, [n_remote, slots]) = (begun.elapsed().div_f64(self.speed), self.fleet);
        Ok(MapReport {
            wall,
            busy,
            busy_by_task,
            attempts,
            slots,
            n_remote,
            bytes_sent,
            bytes_received,
            ..MapReport::default()
        })
    }

    /// Summarises the rounds: the first separately; of the others all compute times, and the minimum of the coordinator's times.
    fn load(&self) -> Result<Load> {
        let rounds = self.rounds.borrow();
        let (first, again) =
            rounds.split_first().context("no round was run; is inference.max_rounds swept?")?;
        // Groups of shards grow in the first rounds.
        let Some(RoundFound { tasks, every_round, .. }) =
            again.last().filter(|round| !round.tasks.is_empty())
        else {
            bail!("no round after the first; is inference.max_rounds swept?");
        };
        let (n_tasks, every_round) = (tasks.len(), *every_round);
        // Nor did tasks share weights before.
        let is_like_last = |round: &&RoundFound| {
            round.tasks.len() == n_tasks && (round.every_round.bytes > 0) == (every_round.bytes > 0)
        };
        let again: Vec<&RoundFound> = again.iter().filter(is_like_last).collect();
        let work = |round: &RoundFound| round.tasks.iter().map(|task| task.busy.as_secs_f64()).sum::<f64>();
        let longer = work(first) / (again.iter().map(|round| work(round)).sum::<f64>() / again.len() as f64);
        let task = |at: usize| {
            let all = || again.iter().map(|round| &round.tasks[at]);
            // The minimum, since an operation of microseconds takes a thousand times as long when another thread gets the core.
            let time = |of: fn(&TaskFound) -> Duration| all().map(of).min().unwrap_or_default();
            let bytes = |of: fn(&TaskFound) -> u64| all().map(of).sum::<u64>() / again.len() as u64;
            let times: Vec<Duration> = all().map(|task| task.busy).collect();
            TaskLoad {
                // The tasks of the first round are others.
                first: times.iter().sum::<Duration>().mul_f64(longer / times.len() as f64),
                again: times,
                handling: time(|task| task.handling),
                shard: again[0].tasks[at].shard,
                shard_state: all().find_map(|task| task.shard_state),
                lease: Message {
                    bytes: bytes(|task| task.lease.bytes),
                    encode: time(|task| task.lease.encode),
                },
                answer_bytes: bytes(|task| task.answer_bytes),
                decode: time(|task| task.decode),
                add: time(|task| task.add),
            }
        };
        let gaps = rounds.windows(2).map(|pair| pair[1].begun - pair[0].ended);
        let between = gaps.sum::<Duration>() / (rounds.len() - 1) as u32;
        Ok(Load {
            tasks: (0..n_tasks).map(task).collect(),
            once: first.once,
            every_round,
            between,
            decide: Duration::ZERO,
            message: MESSAGE,
        })
    }
}

impl Map for Probe {
    fn map(
        &self,
        stage: Stage,
        tasks: Arc<dyn Tasks>,
        each: &mut dyn FnMut(usize, Answer),
    ) -> Result<MapReport, FleetError> {
        if let Stage::Round { .. } = stage {
            return self.round(stage, &*tasks, each);
        }
        match &*self.preparing.borrow() {
            Some(fleet) => Map::map(fleet, stage, tasks, each),
            None => Inline::new(self.compute.clone()).map(stage, tasks, each),
        }
    }
}

/// Runs `act`; returns its result and its duration.
fn timed<T>(act: impl FnOnce() -> T) -> (T, Duration) {
    let begun = clock::instant();
    let result = act();
    (result, begun.elapsed())
}

/// Encodes a lease as the coordinator does, and decodes it as a worker does.
fn assigned(id: LeaseId, task: &Task) -> TaskFound {
    let ((head, payload), encode) = timed(|| lease::to_wire(id, task));
    let bytes = bytes_down(from_coordinator::Message::Lease(head.clone()), &payload);
    let blobs = Blob::of_task(task);
    let find = |hash| blobs.iter().find(|blob| blob.hash() == hash);
    let begun = clock::instant();
    // Only the time matters: the value was just encoded, so it can be decoded.
    let _ = arrived(head.extent.clone(), payload).map(|payload| lease::task_from_wire(&head, &payload, find));
    let handling = begun.elapsed();
    let (mut shard, mut shard_state) = (Message::default(), None);
    for blob in &blobs {
        match blob {
            Blob::Shard(_) => shard = sum(shard, message(blob)),
            Blob::ShardState(_) => shard_state = Some(message(blob)),
            _ => {}
        }
    }
    TaskFound { handling, shard, shard_state, lease: Message { bytes, encode }, ..TaskFound::default() }
}

/// Encodes an answer as a worker does, and decodes it as the coordinator does; returns the decoded answer.
fn returned(id: LeaseId, task: &Task, answer: &Answer, found: &mut TaskFound) -> Result<Answer, Invalid> {
    let (payload, encode) = timed(|| Bytes::from(encode(answer)));
    let (extent, sum) = timed(|| Some(payload::extent(&payload)));
    found.handling += encode + sum;
    let (id, declared) = (Some(blob::lease_id_to_wire(id)), extent.clone());
    let busy_micros = 100_000; // a typical value
    let head = v1::AnswerHead { id, busy_micros, extent: declared, kept: None };
    found.answer_bytes = bytes_up(from_worker::Message::Answer(head), &payload);
    let decode = || {
        let answer = check::decoded("answer", &arrived(extent, payload)?)?;
        check::answer(task, &answer)?;
        Ok(answer)
    };
    let (answer, decode) = timed(decode);
    found.decode = decode;
    answer
}

/// Assembles and checks the payload from its pieces.
fn arrived(extent: Option<v1::Extent>, payload: Bytes) -> Result<Bytes, Invalid> {
    let mut progress = Assembly::begin(extent, MAX_PAYLOAD);
    for piece in payload::pieces(payload) {
        if let Ok(Payload::Partial(assembly)) = progress {
            progress = assembly.push(&piece);
        }
    }
    match progress {
        Ok(Payload::Whole(bytes)) => Ok(bytes),
        _ => Err(Invalid::Missing { field: "payload" }),
    }
}

/// Bytes of a blob on the wire.
fn message(blob: &Blob) -> Message {
    let encode = || {
        let payload = blob.to_bytes();
        (Some(payload::extent(&payload)), payload)
    };
    let ((extent, payload), encode) = timed(encode);
    let head = v1::BlobHead { kind: blob.kind() as i32, extent };
    Message { bytes: bytes_down(from_coordinator::Message::Blob(head), &payload), encode }
}

fn sum(one: Message, other: Message) -> Message {
    Message { bytes: one.bytes + other.bytes, encode: one.encode + other.encode }
}

/// Bytes of a head and the pieces of its payload, as the coordinator counts sent bytes.
fn bytes_down(head: from_coordinator::Message, payload: &Bytes) -> u64 {
    let message = |message| FromCoordinator { message: Some(message) }.encoded_len() as u64;
    let pieces = payload::pieces(payload.clone()).map(from_coordinator::Message::Piece);
    message(head) + pieces.map(message).sum::<u64>()
}

/// Bytes of a head and the pieces of its payload, as the coordinator counts received bytes.
fn bytes_up(head: from_worker::Message, payload: &Bytes) -> u64 {
    let message = |message| FromWorker { message: Some(message) }.encoded_len() as u64;
    let pieces = payload::pieces(payload.clone()).map(from_worker::Message::Piece);
    message(head) + pieces.map(message).sum::<u64>()
}
