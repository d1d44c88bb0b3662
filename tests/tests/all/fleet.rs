//! Law: every fleet answers as the calling thread does, even if members are killed, stopped, slow or late.

mod faults;
mod jobs;
mod real_worker;

use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use fleet::access::Access;
use fleet::{
    Account, AccountId, Compute, Effort, Fleet, FleetConfig, FleetError, FleetEvent, FleetStatus, Handle,
    Inline, Listen, Map, MapReport, MemberState, Shards, Stage, Waiting, engine,
};
use grammaton::encoding::encode;
use grammaton::grammar::SymbolId;
use grammaton::grammar::groups::Groups;
use grammaton::grammar::lexicon::{Lexicon, StickStrings, Strings};
use grammaton::models::decode::{Decode, Decoder};
use grammaton::models::sampler::{Hyper, Settings};
use grammaton::num::Wide;
use grammaton::work::engine::ComputeError;
use grammaton::work::lease::TaskIndex;
use grammaton::work::task::{
    Answer, ChainFrom, Chained, Collapse, Collapsed, Language, Lengths, Named, Sample, Sweeps, Task,
    TaskWeights, Work,
};
use grammaton_tests::{
    Network, Process, binary, clock, echo, echo_at_once, echo_pass, echo_task, eventually,
};
use parking_lot::{Condvar, Mutex};
use proto::token::Token;
use scheduler::{Cause, Failure, Fault};
use worker::{RunError, WorkerConfig};

fn fake() -> Compute {
    Arc::new(echo)
}

/// A fleet of remote members only, on a free port of loopback.
fn remote_only() -> FleetConfig {
    let listen = Listen::at("127.0.0.1:0".parse().unwrap());
    FleetConfig { local_workers: 0, listen: Some(listen), compute: fake(), ..FleetConfig::default() }
}

fn url(fleet: &Fleet) -> String {
    format!("http://{}", fleet.address().expect("it listens"))
}

fn short_tasks(count: u32) -> Vec<Task> {
    (0..count).map(|name| echo_task(name, Duration::from_millis(u64::from(name % 4)), 5)).collect()
}

/// Runs the tasks, and checks that each is answered once, in order.
fn answers(fleet: &impl Map, tasks: Vec<Task>) -> Result<(Vec<Answer>, MapReport), FleetError> {
    let mut answers = Vec::new();
    let report = fleet.map(Stage::Decode, Arc::new(tasks), &mut |at, answer| {
        assert_eq!(at, answers.len(), "answers come in task order");
        answers.push(answer);
    })?;
    Ok((answers, report))
}

fn expected(tasks: Vec<Task>) -> Vec<Answer> {
    answers(&Inline::new(Arc::new(echo_at_once)), tasks).unwrap().0
}

/// Starts a worker in this process, with a separate thread and runtime.
fn start_worker(config: WorkerConfig) -> std::thread::JoinHandle<Result<(), RunError>> {
    std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build();
        let runtime = runtime.expect("a runtime can be made");
        let result = runtime.block_on(worker::run(config, std::future::pending()));
        runtime.shutdown_background();
        result
    })
}

fn echo_worker(coordinator: String, threads: u32) -> WorkerConfig {
    WorkerConfig { coordinator, threads, compute: fake(), ..WorkerConfig::default() }
}

/// Configuration of a worker of `fleet` with this name and computation.
fn named(name: &str, compute: Compute, fleet: &Fleet) -> WorkerConfig {
    WorkerConfig { name: name.into(), compute, ..echo_worker(url(fleet), 1) }
}

fn n_healthy(fleet: &Fleet) -> usize {
    fleet.members().iter().filter(|member| member.state == MemberState::Healthy).count()
}

fn await_members(fleet: &Fleet, count: usize) {
    eventually(&|| format!("{:?}", fleet.members()), || n_healthy(fleet) == count);
}

/// Blocks computations until it is opened.
#[derive(Clone, Default)]
struct Gate(Arc<(Mutex<bool>, Condvar)>);

impl Gate {
    fn pass(&self) {
        let (is_open, changed) = &*self.0;
        changed.wait_while(&mut is_open.lock(), |is_open| !*is_open);
    }

    fn open(&self) {
        *self.0.0.lock() = true;
        self.0.1.notify_all();
    }
}

#[test]
fn local_threads_answer_as_the_calling_thread_does() {
    let config = FleetConfig { local_workers: 3, compute: fake(), ..FleetConfig::default() };
    let fleet = Fleet::start(config).unwrap();
    for round in 0..3 {
        let (found, report) = answers(&fleet, short_tasks(40 + round)).unwrap();
        assert_eq!(found, expected(short_tasks(40 + round)));
        assert_eq!((report.attempts, report.losses), (40 + round as usize, vec![]));
    }
    assert_eq!(answers(&fleet, vec![]).unwrap().0, []);
    fleet.shutdown();
}

#[test]
fn remote_workers_answer_as_the_calling_thread_does_and_end_with_the_job() {
    let fleet = Fleet::start(FleetConfig { min_members: 2, ..remote_only() }).unwrap();
    let workers = [1, 2].map(|threads| start_worker(echo_worker(url(&fleet), threads)));
    let (found, first) = answers(&fleet, short_tasks(60)).unwrap();
    assert_eq!(found, expected(short_tasks(60)));
    let (found, second) = answers(&fleet, short_tasks(60)).unwrap();
    assert_eq!(found, expected(short_tasks(60)));
    assert!(second.bytes_sent < first.bytes_sent, "blobs travel once: {first:?}, then {second:?}");
    assert!(second.busy > Duration::ZERO && second.bytes_received > 0);
    fleet.shutdown();
    for worker in workers {
        worker.join().unwrap().unwrap();
    }
}

#[test]
fn values_larger_than_a_message_arrive_complete() {
    let fleet = Fleet::start(remote_only()).unwrap();
    let _worker = start_worker(echo_worker(url(&fleet), 1));
    let tasks = || (0..3).map(|name| echo_task(name, Duration::ZERO, 1_000_000)).collect::<Vec<_>>();
    let (found, report) = answers(&fleet, tasks()).unwrap();
    assert!(found == expected(tasks()));
    assert!(report.bytes_sent > 24_000_000 && report.bytes_received > 24_000_000, "{report:?}");
    fleet.shutdown();
}

#[test]
fn only_workers_with_the_token_may_join() {
    let token = Token::new("s3cret", "test").unwrap();
    let config = remote_only();
    let access = Access::One(token.clone());
    let listen = config.listen.clone().map(|listen| Listen { access, ..listen });
    let fleet = Fleet::start(FleetConfig { listen, max_members: 1, ..config }).unwrap();
    let worker = |token| start_worker(WorkerConfig { token, ..echo_worker(url(&fleet), 1) });
    let guess = Token::new("guess", "test").ok();
    for (wrong, why) in [
        (None, "a token is needed; give it with --token-file FILE, or in GRAMMATON_TOKEN"),
        (guess, "the token is not the coordinator's"),
    ] {
        let refused = worker(wrong).join().unwrap().unwrap_err().to_string();
        assert_eq!(refused, format!("the coordinator refused this worker: {why}"));
    }
    let right = worker(Some(token.clone()));
    await_members(&fleet, 1);
    // There may be room later, so the worker tries again, with a limit.
    let late =
        WorkerConfig { give_up_after: Duration::ZERO, token: Some(token), ..echo_worker(url(&fleet), 1) };
    let refused = start_worker(late).join().unwrap().unwrap_err().to_string();
    assert!(refused.contains("the coordinator takes no more members for now"), "{refused}");
    fleet.shutdown();
    right.join().unwrap().unwrap();
}

#[test]
fn the_status_of_a_fleet_lists_members_and_leases() {
    let gate = Gate::default();
    let within = gate.clone();
    let compute: Compute = Arc::new(move |task| {
        within.pass();
        echo(task)
    });
    let fleet = Fleet::start(FleetConfig { local_workers: 2, compute, ..FleetConfig::default() }).unwrap();
    let watcher = fleet.watcher();
    let idle = fleet.status();
    assert_eq!((idle.stage, idle.shards, idle.oldest), (None, Shards::default(), None));
    std::thread::scope(|scope| {
        let batch = scope.spawn(|| answers(&fleet, short_tasks(9)));
        eventually(&|| format!("{:?}", fleet.status()), || fleet.status().stage == Some(Stage::Decode));
        let busy = fleet.status();
        assert_eq!(busy.shards, Shards { free: 6, assigned: 3, done: 0 });
        let [local] = &busy.members[..] else { panic!("{busy:?}") };
        assert_eq!((&local.name[..], local.slots, local.leases, local.tasks_done), ("local", 2, 3, 0));
        let oldest = busy.oldest.clone().expect("three are assigned");
        assert_eq!((oldest.task, &oldest.member[..]), (TaskIndex(0), "local"));
        assert!(local.oldest_lease >= Some(oldest.age) && oldest.age <= busy.up, "{busy:?}");
        gate.open();
        batch.join().unwrap().unwrap();
    });
    let after = fleet.status();
    assert_eq!((after.attempts, after.accepted, after.discarded), (9, 9, 0));
    assert_eq!((after.members[0].tasks_done, after.members[0].leases), (9, 0));
    assert!(after.members[0].busy > Duration::ZERO);
    fleet.shutdown();
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    assert_eq!(runtime.block_on(watcher.status()), None);
}
