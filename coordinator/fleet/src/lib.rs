//! The fleet: all members that compute tasks, in this process or on other machines, behind one blocking call.
//!
//! In: batches of [`Task`](grammaton::work::task::Task)s, of several jobs at a time. Out: their [`Answer`]s, in task order, and a [`MapReport`]. Invariant: a task
//! is answered exactly once, and equal from every member, so callers notice neither changes of the membership nor each other.
//!
//! - [`scheduler`] assigns tasks and never acts; `driver` owns clock and channels and acts; `messages` go between the driver, members and callers.
//! - `handle` is the interface of a job; `tasks` makes tasks when they are assigned; `backlog` bounds the answers that wait.
//! - `local` and `remote` are the two kinds of members; `blob_cache` is the cache of a remote member.
//! - `audit` has some tasks computed twice, to find machines that compute wrongly; `expulsion` refuses these machines.
//! - `fleet_events` tells jobs of members that join and are lost; `decisions` keeps the last decisions for the report of a failure; `status` is
//!   a snapshot for other threads.
//! - [`forecast`] simulates the scheduler on imaginary clusters.
//!
//! The fleet does not handle signals and never keeps a process alive: to stop a job, cancel its [`Handle`].

use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use grammaton::work::lease::TaskIndex;
use grammaton::work::task::Answer;
use proto::tls::ServerTls;
use serde::{Deserialize, Serialize};
use tokio::sync::{mpsc, oneshot};
use tonic::service::Routes;
use tracing::Instrument as _;

use crate::access::Access;

use self::handle::Link;
use self::messages::Input;
use self::tasks::Register;
use scheduler::{Cause, Failure, Timeouts};

pub mod access;
pub mod connection_limits;
pub mod forecast;
pub mod revocation;

mod audit;
mod backlog;
mod blob_cache;
mod decisions;
mod driver;
mod expulsion;
mod fleet_events;
mod handle;
mod inline;
mod local;
mod messages;
mod remote;
#[cfg(any(test, feature = "stand_in"))]
mod stand_in;
mod status;
mod tasks;
mod watcher;

pub use audit::digest;
pub use expulsion::{Expulsion, Expulsions};
pub use fleet_events::{FleetEvent, Waiting};
pub use grammaton::work::engine::{Compute, MEMORY, engine, engine_with};
pub use handle::Handle;
pub use inline::Inline;
pub use remote::{QUESTION, Visitor};
pub use scheduler::{Account, AccountId, MemberState, Shards, UserId};
pub use status::{AccountStatus, FleetStatus, MemberInfo, OldestLease};
pub use tasks::Tasks;
pub use watcher::Watcher;

/// [`FleetConfig::room`] by default.
pub const ROOM: usize = 512 << 20;

/// Settings of a fleet: members and timeouts.
#[derive(Clone)]
pub struct FleetConfig {
    /// Number of threads of this process that compute.
    pub local_workers: usize,
    /// Where remote workers join; `None`: nowhere.
    pub listen: Option<Listen>,
    /// Number of members to wait for before the first task is assigned; all local threads together are one.
    pub min_members: usize,
    /// Maximum number of members.
    pub max_members: usize,
    /// Time that a batch waits without members before it fails; without limit until the first ones have joined.
    pub no_workers_grace: Duration,
    /// Heartbeat timeout after which a member is assigned nothing more.
    pub suspect_after: Duration,
    /// Heartbeat timeout after which a member is removed.
    pub dead_after: Duration,
    /// Age of a lease at which its holder counts as stuck, despite its heartbeats.
    pub lease_deadline: Duration,
    /// Share of the tasks, 0 to 1, that two members compute to compare their answers.
    pub audit: f64,
    /// Maximum size of a batch's backlog of answers, in bytes; beyond it tasks are begun one by one, as the caller needs them. A thousand
    /// workers that answer 50 kB every .4 s fill [`ROOM`] in four seconds.
    pub room: usize,
    /// Computation of local threads, and of the arbiter of audits where the job has no process of its own.
    pub compute: Compute,
    /// Expelled workers, over the lives of several fleets.
    pub expulsions: Expulsions,
}

impl FleetConfig {
    /// Threads of this process alone: so many, or one for each core, with so many bytes for forests.
    pub fn local(threads: Option<u16>, memory: usize) -> FleetConfig {
        let defaults = FleetConfig::default();
        let local_workers = threads.map_or(defaults.local_workers, usize::from);
        FleetConfig { local_workers, room: FleetConfig::room_beside(memory), ..defaults }
    }

    /// [`FleetConfig::room`] beside so many bytes for forests: a small memory still has room for a few answers.
    pub fn room_beside(memory: usize) -> usize {
        memory.clamp(ROOM / 8, ROOM)
    }
}

impl Default for FleetConfig {
    fn default() -> FleetConfig {
        let timeouts = Timeouts::default();
        FleetConfig {
            local_workers: std::thread::available_parallelism().map_or(1, usize::from),
            listen: None,
            min_members: timeouts.min_members,
            max_members: 4096,
            no_workers_grace: timeouts.no_workers_grace,
            suspect_after: timeouts.suspect_after,
            dead_after: timeouts.dead_after,
            lease_deadline: timeouts.lease_deadline,
            audit: 0.0,
            room: ROOM,
            compute: engine(),
            expulsions: Expulsions::default(),
        }
    }
}

/// Address and access of remote workers.
#[derive(Clone)]
pub struct Listen {
    /// Address to bind; port 0 takes any free one.
    pub address: SocketAddr,
    /// Access of workers and clients.
    pub access: Access,
    /// TLS: the coordinator's certificate, and whether workers need one; `None`: unencrypted.
    pub tls: Option<ServerTls>,
    /// Allows an address beyond loopback without authentication.
    pub insecure: bool,
    /// Other services at the same address.
    pub services: Services,
}

/// Services at the address of the workers, made once the fleet can be watched.
pub type Services = Arc<dyn Fn(Watcher) -> Routes + Send + Sync>;

impl Listen {
    /// Listens at `address` without authentication.
    pub fn at(address: SocketAddr) -> Listen {
        let services = Arc::new(|_| Routes::default());
        Listen { address, access: Access::Open, tls: None, insecure: false, services }
    }
}

/// Why a fleet cannot start or a batch has no result.
#[derive(Debug, thiserror::Error)]
pub enum FleetError {
    /// The address is beyond loopback, and has no authentication.
    #[error(
        "{address}: refusing to listen beyond loopback without a token; give one (--token-file, or {}), or \
         demand certificates (--cert, --key, --ca), or say --insecure",
        proto::token::TOKEN_VARIABLE
    )]
    Exposed {
        /// Requested address.
        address: SocketAddr,
    },
    /// The address cannot be listened on.
    #[error("{address}: cannot listen: {source}")]
    Bind {
        /// Requested address.
        address: SocketAddr,
        /// Cause.
        source: std::io::Error,
    },
    /// The fleet can never have a member.
    #[error("no local workers and no address to listen on; allow at least one of them")]
    NoMembers,
    /// The fleet waits for more members than it allows.
    #[error(
        "waiting for {min} members and taking {max} at most; allow at least as many (--max-workers) as must be there \
         (--min-workers)"
    )]
    Bounds {
        /// Number of members to wait for.
        min: usize,
        /// Maximum number of members.
        max: usize,
    },
    /// The operating system refused a thread or a socket.
    #[error("cannot start the fleet: {0}")]
    Start(#[source] std::io::Error),
    /// A batch has no result.
    #[error("{stage}: {failure}")]
    Batch {
        /// Stage of the batch.
        stage: Stage,
        /// Cause.
        failure: Failure,
        /// The last events and decisions of the scheduler, a line each; empty if the task failed in this process.
        decisions: Vec<String>,
    },
    /// Two answers to one task differ: a machine computes wrongly.
    #[error("{stage}: {mismatch}")]
    Audit {
        /// Stage of the batch.
        stage: Stage,
        /// The task and its members.
        mismatch: Box<Mismatch>,
    },
    /// The job was cancelled.
    #[error("the job was cancelled")]
    Cancelled,
    /// The fleet has stopped.
    #[error("the fleet has stopped")]
    Stopped,
}

/// Two answers to one task that differ, compared with the coordinator's own; or reports that it cannot be computed, which the coordinator computed.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Mismatch {
    /// The task.
    pub task: TaskIndex,
    /// Members whose answer differs from the coordinator's; at most two.
    pub wrong: Vec<String>,
    /// Members that reported that the task cannot be computed.
    pub reported: Vec<String>,
    /// Ids of these members. An id is used once, and an expelled worker does not come back, so no other mismatch has them.
    pub expelled: Vec<u64>,
    /// The member whose answer equals the coordinator's, if there is one.
    pub right: Option<String>,
    /// Whether these members were expelled, so that the batch may be computed again.
    pub is_mended: bool,
}

impl std::fmt::Display for Mismatch {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let task = self.task.0;
        match (&self.wrong[..], &self.right) {
            ([], _) => write!(
                f,
                "{} reported that task {task} cannot be computed, and the coordinator computed it",
                self.reported.join(", ")
            )?,
            ([wrong], Some(right)) if wrong != right => write!(
                f,
                "worker {wrong}'s answer to task {task} differs from {right}'s and from the coordinator's own"
            )?,
            ([first, second], _) if first != second => write!(
                f,
                "the answers of workers {first} and {second} to task {task} differ from each other and from the coordinator's own"
            )?,
            ([wrong], None) => {
                write!(f, "worker {wrong}'s answer to task {task} differs from the coordinator's own")?
            }
            (wrong, _) => write!(
                f,
                "worker {} gave two answers to task {task}",
                wrong.first().map_or("", String::as_str)
            )?,
        }
        match (self.is_mended, self.wrong.len()) {
            (true, _) => f.write_str("; it is expelled: remove its machine"),
            (false, 1) => f.write_str("; remove its machine and resume with --resume"),
            (false, _) => {
                f.write_str("; remove their machines, or look at the coordinator's, and resume with --resume")
            }
        }
    }
}

/// Maximum number of losses in the report of a batch, which may be open for days.
pub const LOSSES: usize = 256;

/// Cost of a batch.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct MapReport {
    /// Time from submission to the last answer.
    pub wall: Duration,
    /// Sum of the computing times of the accepted answers.
    pub busy: Duration,
    /// Computing time of the accepted answer by task; replicas at the end.
    pub busy_by_task: Vec<Duration>,
    /// Number of leases, with backups and repeats.
    pub attempts: usize,
    /// Tasks that the members which were present in the end compute at the same time.
    pub slots: usize,
    /// Members in other processes that were present in the end.
    pub n_remote: usize,
    /// The first [`LOSSES`] members that were lost meanwhile.
    pub losses: Vec<Loss>,
    /// Bytes sent to remote members meanwhile, including other batches.
    pub bytes_sent: u64,
    /// Bytes received from remote members meanwhile, including other batches.
    pub bytes_received: u64,
    /// Number of tasks to which two members gave the same answer.
    pub audited: usize,
    /// Number of tasks that were chosen for an audit and that one member alone computed.
    pub unaudited: usize,
}

/// Effort of the batches of a job in this process.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Effort {
    /// Number of answered tasks; an audited one counts once.
    pub computed: u64,
    /// Number of tasks to which two workers gave the same answer.
    pub audited: u64,
    /// Number of tasks that were chosen for an audit and that one worker alone computed, since there was no other.
    pub unaudited: u64,
    /// Number of repeated leases: after a loss or failure, or as a backup of a late task.
    pub repeated: u64,
}

impl Effort {
    /// Adds the effort of a batch.
    fn add(&mut self, n_tasks: usize, n_audits: usize, report: &MapReport) {
        self.computed += n_tasks as u64;
        self.audited += report.audited as u64;
        self.unaudited += report.unaudited as u64;
        self.repeated += report.attempts.saturating_sub(n_tasks + n_audits) as u64;
    }
}

/// A lost member.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Loss {
    /// Its name.
    pub name: String,
    /// Cause of the loss.
    pub cause: Cause,
}

/// Stage of training that a batch belongs to, for logs, metrics and errors.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub enum Stage {
    /// Counting candidate strings.
    Candidates,
    /// Looking for sentences without a derivation.
    Cover,
    /// Listing the parameters that shards touch.
    Index,
    /// The E-step of a round.
    Round {
        /// The first of the job's runs in the batch, from 1.
        run: usize,
        /// Round of the first run, from 1.
        round: usize,
    },
    /// Measuring on held-out sentences.
    HeldOut,
    /// Decoding.
    Decode,
}

impl Stage {
    /// Run and round of an E-step.
    pub fn place(self) -> Option<(usize, usize)> {
        match self {
            Stage::Round { run, round } => Some((run, round)),
            _ => None,
        }
    }
}

impl std::fmt::Display for Stage {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Stage::Candidates => f.write_str("candidates"),
            Stage::Cover => f.write_str("cover"),
            Stage::Index => f.write_str("index"),
            Stage::Round { run: 1, round } => write!(f, "round {round}"),
            Stage::Round { run, round } => write!(f, "round {round} of run {run}"),
            Stage::HeldOut => f.write_str("held-out sentences"),
            Stage::Decode => f.write_str("decode"),
        }
    }
}

/// Computation of batches of tasks.
pub trait Map {
    /// Computes `tasks`. Passes each answer to `each` with its task's position, in task order, as soon as all answers
    /// before it have arrived. `stage` appears in logs and errors.
    fn map(
        &self,
        stage: Stage,
        tasks: Arc<dyn Tasks>,
        each: &mut dyn FnMut(usize, Answer),
    ) -> Result<MapReport, FleetError>;

    /// [`Map::map`] that passes the fleet's events since the call before to `hear`, on the calling thread. Fleets whose workers never change have no
    /// events.
    fn map_with_events(
        &self,
        stage: Stage,
        tasks: Arc<dyn Tasks>,
        each: &mut dyn FnMut(usize, Answer),
        _hear: &mut dyn FnMut(FleetEvent),
    ) -> Result<MapReport, FleetError> {
        self.map(stage, tasks, each)
    }

    /// Audits every task of later batches. Returns whether this is a change, and useful: there are several members.
    fn audit_all(&self) -> bool {
        false
    }

    /// Returns an error if the job was cancelled, for long work outside of [`Map::map`].
    fn check(&self) -> Result<(), FleetError> {
        Ok(())
    }
}

/// A fleet: its members, and the thread of its driver.
///
/// Dropped without [`Fleet::shutdown`], it closes its connections, and remote workers wait for another coordinator.
pub struct Fleet {
    link: Link,
    address: Option<SocketAddr>,
    /// Handle of the account [`Account::default`].
    own: Handle,
}

impl Fleet {
    /// Starts local workers, and listens for remote ones if configured. Must not be called within a runtime.
    pub fn start(config: FleetConfig) -> Result<Fleet, FleetError> {
        if config.local_workers == 0 && config.listen.is_none() {
            return Err(FleetError::NoMembers);
        }
        if config.min_members > config.max_members {
            return Err(FleetError::Bounds { min: config.min_members, max: config.max_members });
        }
        let listener = config.listen.as_ref().map(bind).transpose()?;
        let address = match &listener {
            Some(listener) => Some(listener.local_addr().map_err(FleetError::Start)?),
            None => None,
        };
        // Every member may have a few messages under way; a full channel slows down readers, never the driver.
        let (inputs, received) = mpsc::channel(1024);
        let runtime = tokio::runtime::Builder::new_multi_thread()
            // A second one only beside cores that compute: it would compete, and each message would wake it.
            .worker_threads(std::thread::available_parallelism().map_or(1, |n| (n.get() / 2).clamp(1, 2)))
            // They encode and decode; more of them than cores would only compete.
            .max_blocking_threads(std::thread::available_parallelism().map_or(2, |n| n.get().max(2)))
            .thread_name("fleet-io")
            .enable_all()
            .build()
            .map_err(FleetError::Start)?;
        let (to_fleet, span) = (inputs.clone(), tracing::Span::current());
        let register = Arc::new(Register::default());
        let (audit, room, compute) = (config.audit, config.room, config.compute.clone());
        let link = Link { inputs, register: register.clone(), audit, room, compute };
        std::thread::Builder::new()
            .name("fleet".into())
            .spawn(move || {
                let driver = driver::run(config, listener, register, to_fleet, received).instrument(span);
                // A task beside those of the connections: a message to it or from it wakes no other thread.
                let _ = runtime.block_on(runtime.spawn(driver));
                runtime.shutdown_background();
            })
            .map_err(FleetError::Start)?;
        let own = Handle::new(link.clone(), Account::default());
        Ok(Fleet { link, address, own })
    }

    /// Address at which remote workers join, with the actual port.
    pub fn address(&self) -> Option<SocketAddr> {
        self.address
    }

    /// Returns the handle of an account. There is one for each account, and the account is removed once the handle and its clones are
    /// dropped.
    pub fn account(&self, account: Account) -> Handle {
        Handle::new(self.link.clone(), account)
    }

    /// Handle of the account [`Account::default`], on which the fleet itself computes batches.
    pub fn handle(&self) -> Handle {
        self.own.clone()
    }

    /// [`Map::map`] on the account [`Account::default`].
    pub fn map(
        &self,
        stage: Stage,
        tasks: impl Tasks + 'static,
        mut each: impl FnMut(usize, Answer),
    ) -> Result<MapReport, FleetError> {
        Map::map(self, stage, Arc::new(tasks), &mut each)
    }

    /// Present members, and lost members with accepted answers.
    pub fn members(&self) -> Vec<MemberInfo> {
        self.status().members
    }

    /// The current status. Must not be called within a runtime; use [`Fleet::watcher`] there.
    pub fn status(&self) -> FleetStatus {
        self.watcher().blocking_status().unwrap_or_default()
    }

    /// A watcher, to ask for the status from other threads and tasks.
    pub fn watcher(&self) -> Watcher {
        Watcher::new(self.link.inputs.clone())
    }

    /// Effort of the batches on the account [`Account::default`] so far.
    pub fn effort(&self) -> Effort {
        self.own.effort()
    }

    /// Tells remote workers that the job is finished, so that they exit, and stops. Waits at most a few seconds for
    /// them.
    pub fn shutdown(self) {
        let (reply, stopped) = oneshot::channel();
        if self.link.inputs.blocking_send(Input::Finished { reply }).is_ok() {
            // An error means that the driver is gone, and so has stopped.
            let _ = stopped.blocking_recv();
        }
    }
}

impl Map for Fleet {
    fn check(&self) -> Result<(), FleetError> {
        self.own.check()
    }

    fn audit_all(&self) -> bool {
        self.own.audit_all()
    }

    fn map(
        &self,
        stage: Stage,
        tasks: Arc<dyn Tasks>,
        each: &mut dyn FnMut(usize, Answer),
    ) -> Result<MapReport, FleetError> {
        Map::map(&self.own, stage, tasks, each)
    }

    fn map_with_events(
        &self,
        stage: Stage,
        tasks: Arc<dyn Tasks>,
        each: &mut dyn FnMut(usize, Answer),
        hear: &mut dyn FnMut(FleetEvent),
    ) -> Result<MapReport, FleetError> {
        self.own.map_with_events(stage, tasks, each, hear)
    }
}

impl Drop for Fleet {
    fn drop(&mut self) {
        // A full channel is drained by the driver soon; one that is closed has no driver any more.
        let _ = self.link.inputs.blocking_send(Input::Abandoned);
    }
}

fn bind(listen: &Listen) -> Result<TcpListener, FleetError> {
    let address = listen.address;
    let demands_certificates = listen.tls.as_ref().is_some_and(ServerTls::is_mutual);
    let known = listen.access.is_guarded() || demands_certificates;
    if !address.ip().is_loopback() && !known && !listen.insecure {
        return Err(FleetError::Exposed { address });
    }
    let failed = |source| FleetError::Bind { address, source };
    let listener = TcpListener::bind(address).map_err(failed)?;
    listener.set_nonblocking(true).map_err(failed)?;
    Ok(listener)
}

/// Numbers of bytes to and from all remote members since the start.
#[derive(Default)]
struct Traffic {
    sent: AtomicU64,
    received: AtomicU64,
}

impl Traffic {
    fn count_sent(&self, bytes: usize) {
        self.sent.fetch_add(bytes as u64, Ordering::Relaxed);
    }

    fn count_received(&self, bytes: usize) {
        self.received.fetch_add(bytes as u64, Ordering::Relaxed);
    }

    /// Bytes sent and received so far.
    fn so_far(&self) -> (u64, u64) {
        (self.sent.load(Ordering::Relaxed), self.received.load(Ordering::Relaxed))
    }
}

#[cfg(test)]
mod tests {
    use grammaton::data::Sentence;
    use grammaton::grammar::SymbolId;
    use grammaton::grammar::lexicon::{Lexicon, StickStrings, Strings};
    use grammaton::work::shard::Shard;
    use grammaton::work::task::{Language, Named, Task, Work};
    use proto::token::Token;

    use super::*;

    #[test]
    fn listening_beyond_loopback_takes_a_token_or_insecure() {
        let address = "0.0.0.0:0".parse().unwrap();
        let open = Listen::at(address);
        assert!(matches!(bind(&open), Err(FleetError::Exposed { .. })));
        let access = Access::One(Token::new("s3cret", "test").unwrap());
        assert!(bind(&Listen { access, ..open.clone() }).is_ok());
        assert!(bind(&Listen { insecure: true, ..open.clone() }).is_ok());
        assert!(bind(&Listen { address: "127.0.0.1:0".parse().unwrap(), ..open }).is_ok());
    }

    #[test]
    fn a_mismatch_names_whose_answer_is_wrong_and_the_way_out() {
        let mismatch = |wrong: &[&str], right: Option<&str>| {
            let wrong = wrong.iter().map(|&name| name.to_owned()).collect();
            let right = right.map(str::to_owned);
            let (task, expelled) = (TaskIndex(17), Vec::new());
            let mismatch = Mismatch { task, wrong, reported: vec![], expelled, right, is_mended: false };
            FleetError::Audit { stage: Stage::Decode, mismatch: Box::new(mismatch) }.to_string()
        };
        assert_eq!(
            mismatch(&["bob"], Some("alice")),
            "decode: worker bob's answer to task 17 differs from alice's and from the coordinator's own; remove its \
             machine and resume with --resume"
        );
        assert_eq!(
            mismatch(&["alice", "bob"], None),
            "decode: the answers of workers alice and bob to task 17 differ from each other and from the \
             coordinator's own; remove their machines, or look at the coordinator's, and resume with --resume"
        );
        assert_eq!(
            mismatch(&["bob"], Some("bob")),
            "decode: worker bob gave two answers to task 17; remove its machine and resume with --resume"
        );
        assert_eq!(
            mismatch(&["bob"], None),
            "decode: worker bob's answer to task 17 differs from the coordinator's own; remove its machine and resume \
             with --resume"
        );
        let mismatch = Mismatch {
            task: TaskIndex(1),
            wrong: vec!["bob".into()],
            reported: vec![],
            expelled: vec![2],
            right: Some("eve".into()),
            is_mended: true,
        };
        assert!(mismatch.to_string().ends_with("the coordinator's own; it is expelled: remove its machine"));
        let reported = Mismatch { wrong: vec![], reported: vec!["bob".into()], right: None, ..mismatch };
        assert_eq!(
            reported.to_string(),
            "bob reported that task 1 cannot be computed, and the coordinator computed it; it is expelled: remove its \
             machine"
        );
    }

    #[test]
    fn a_fleet_that_takes_fewer_than_it_waits_for_is_refused() {
        let config = FleetConfig { min_members: 3, max_members: 2, ..FleetConfig::default() };
        assert!(matches!(Fleet::start(config), Err(FleetError::Bounds { min: 3, max: 2 })));
    }

    #[test]
    fn a_slow_caller_holds_up_the_tasks() {
        let begun = Arc::new(AtomicU64::new(0));
        let counted = begun.clone();
        let compute: Compute = Arc::new(move |_| {
            // The first one of all is late.
            let late = if counted.fetch_add(1, Ordering::Relaxed) == 0 { 50 } else { 0 };
            std::thread::sleep(Duration::from_millis(late));
            Ok(Answer::Missing(vec![(SymbolId(0), vec![SymbolId(1)])]))
        });
        let config = FleetConfig { local_workers: 2, room: 200, compute, ..FleetConfig::default() };
        let fleet = Fleet::start(config).unwrap();
        let shard = Named::new(Shard::Sentences(Vec::new()));
        let task = Task { language: None, shard, work: Work::Cover, further: Vec::new() };
        let mut taken = 0;
        let report = fleet.map(Stage::Cover, vec![task; 60], |at, _| {
            assert_eq!(at, taken);
            taken += 1;
            std::thread::sleep(Duration::from_millis(2));
            // Those that fill the room, and those that were begun before it was full.
            assert!(begun.load(Ordering::Relaxed) <= taken as u64 + 200 / 36 + 4);
        });
        assert_eq!((report.unwrap().attempts, taken), (60, 60));
    }

    /// A full backlog begins only the task that the caller waits for: here the replica, as the answer is there.
    #[test]
    fn claims_are_confirmed_though_the_backlog_is_full() {
        let grammar = grammaton::grammar::syntax::parse("1 1 S --> W\nW --> a\n", "g").unwrap().0;
        let [word, letter] = ["W", "a"].map(|name| grammar.symbol(name).unwrap());
        let sticks = vec![StickStrings { symbol: word, strings: Strings::new() }];
        let (grammar, lexicon) = (Named::new(grammar), Named::new(Lexicon { sticks }));
        let sentence = Sentence::new(vec![letter], 1);
        let task = Task {
            language: Some(Language { grammar, lexicon }),
            shard: Named::new(Shard::Sentences(vec![sentence])),
            work: Work::Cover,
            further: Vec::new(),
        };
        let listen = Some(Listen::at("127.0.0.1:0".parse().unwrap()));
        let config =
            FleetConfig { local_workers: 0, min_members: 2, listen, room: 1, ..FleetConfig::default() };
        let fleet = Fleet::start(config).unwrap();
        for (process, machine) in [(1, "a"), (2, "b")] {
            fleet.join(process, machine, engine()).unwrap();
        }
        let mut answers = 0;
        let report = fleet.map(Stage::Cover, vec![task; 20], |_, answer| {
            assert_eq!(answer, Answer::Missing(vec![(word, vec![letter])]));
            answers += 1;
        });
        let report = report.unwrap();
        assert_eq!((answers, report.audited, report.unaudited), (20, 20, 0));
    }

    #[test]
    fn a_fleet_without_members_is_refused() {
        let config = FleetConfig { local_workers: 0, listen: None, ..FleetConfig::default() };
        assert!(matches!(Fleet::start(config), Err(FleetError::NoMembers)));
    }
}
