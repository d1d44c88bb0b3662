//! Law: every fleet answers as the calling thread does, even if members are killed, stopped, slow or late.

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
    Answer, ChainFrom, Chained, Collapse, Collapsed, Language, Lengths, Named, Sample, ShardWeights, Sweeps,
    Task, Work,
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

/// A handle for job number `id`.
fn account(fleet: &Fleet, id: u64) -> Handle {
    fleet.account(Account { id: AccountId(id), ..Account::default() })
}

/// Runs jobs of three rounds concurrently, one of them with a task that fails, and checks their answers.
fn several_at_once(fleet: &Fleet) {
    let rounds = |id: u64| {
        let handle = account(fleet, id);
        for round in 0..3 {
            let tasks = || short_tasks(30 + 7 * id as u32 + round);
            assert_eq!(answers(&handle, tasks()).unwrap().0, expected(tasks()), "job {id}");
        }
    };
    let impossible = || {
        let mut tasks = short_tasks(30);
        tasks[17].work = Work::Expect { weights: ShardWeights::default(), losses: false };
        let error = answers(&account(fleet, 9), tasks).unwrap_err();
        let is_its_own = |failure: &Failure| {
            let (Failure::Task { task, .. } | Failure::GivenUp { task, .. }) = failure else { return false };
            *task == TaskIndex(17)
        };
        assert!(matches!(&error, FleetError::Batch { failure, .. } if is_its_own(failure)), "{error}");
    };
    std::thread::scope(|scope| {
        let jobs: Vec<_> = (1..4).map(|id| scope.spawn(move || rounds(id))).collect();
        (0..3).for_each(|_| impossible());
        jobs.into_iter().for_each(|job| job.join().unwrap());
    });
}

#[test]
fn several_jobs_at_once_are_answered_as_each_alone() {
    let config = FleetConfig { local_workers: 3, compute: fake(), ..FleetConfig::default() };
    let fleet = Fleet::start(config).unwrap();
    several_at_once(&fleet);
    fleet.shutdown();
    let fleet = Fleet::start(FleetConfig { min_members: 2, ..remote_only() }).unwrap();
    let workers = [1, 2].map(|threads| start_worker(echo_worker(url(&fleet), threads)));
    several_at_once(&fleet);
    let status = fleet.status();
    assert_eq!((status.stage, status.shards), (None, Shards::default()));
    // Members lost before the last submission are removed from the list.
    assert_eq!(status.accounts, []);
    fleet.shutdown();
    for worker in workers {
        worker.join().unwrap().unwrap();
    }
}

/// Runs some tasks of a job, and gives what it hears meanwhile; `waits` is called when it hears that it waits.
fn heard(job: &Handle, waits: impl Fn()) -> Vec<FleetEvent> {
    let mut heard = Vec::new();
    let hear = &mut |event| {
        if let FleetEvent::Waiting(_) = event {
            waits();
        }
        heard.push(event);
    };
    job.map_with_events(Stage::Decode, Arc::new(short_tasks(5)), &mut |_, _| {}, hear).unwrap();
    heard
}

#[test]
fn jobs_hear_while_they_wait_and_what_happened_between_their_batches() {
    let fleet = Fleet::start(remote_only()).unwrap();
    let (waits, waiting) = std::sync::mpsc::channel();
    let jobs = [1, 2].map(|id| account(&fleet, id));
    let alice = std::thread::scope(|scope| {
        let threads = jobs.each_ref().map(|job| {
            let waits = waits.clone();
            scope.spawn(move || heard(job, || waits.send(()).unwrap()))
        });
        // A worker joins once both jobs know that they wait.
        jobs.iter().for_each(|_| waiting.recv().unwrap());
        let alice = start_worker(named("alice", fake(), &fleet));
        for thread in threads {
            let heard = thread.join().unwrap();
            let [FleetEvent::Waiting(waits), joined, FleetEvent::WaitingOver { .. }] = &heard[..] else {
                panic!("{heard:?}")
            };
            assert_eq!(*waits, Waiting { stage: Stage::Decode, workers: 0, wanted: 1 });
            assert_eq!(*joined, FleetEvent::WorkerJoined { name: "alice".into(), slots: 1, workers: 1 });
        }
        alice
    });
    let bob = start_worker(named("bob", fake(), &fleet));
    await_members(&fleet, 2);
    let joined = FleetEvent::WorkerJoined { name: "bob".into(), slots: 1, workers: 2 };
    assert_eq!(heard(&jobs[0], || {}), [joined]);
    assert_eq!(heard(&jobs[0], || {}), []);
    fleet.shutdown();
    for worker in [alice, bob] {
        worker.join().unwrap().unwrap();
    }
}

#[test]
fn a_job_that_is_cancelled_while_it_waits_waits_no_more() {
    let fleet = Fleet::start(remote_only()).unwrap();
    let job = account(&fleet, 1);
    let mut heard = Vec::new();
    let hear = &mut |event| {
        job.cancel();
        heard.push(event);
    };
    let cancelled = job.map_with_events(Stage::Decode, Arc::new(short_tasks(5)), &mut |_, _| {}, hear);
    assert!(matches!(cancelled, Err(FleetError::Cancelled)));
    assert!(matches!(heard[..], [FleetEvent::Waiting(_), FleetEvent::WaitingOver { .. }]), "{heard:?}");
    fleet.shutdown();
}

#[test]
fn a_job_is_cancelled_at_once_and_another_one_continues() {
    let gate = Gate::default();
    let within = gate.clone();
    let compute: Compute = Arc::new(move |task| {
        // Tasks of the other job are short.
        if matches!(&task.work, Work::Expect { weights, .. } if weights.n_params() == 6) {
            within.pass();
        }
        echo(task)
    });
    let fleet = Fleet::start(FleetConfig { local_workers: 2, compute, ..FleetConfig::default() }).unwrap();
    let bounded = Account { id: AccountId(1), max_members: Some(1), ..Account::default() };
    let (cancelled, stays) = (fleet.account(bounded), account(&fleet, 2));
    std::thread::scope(|scope| {
        let job = scope.spawn(|| answers(&cancelled, vec![echo_task(0, Duration::ZERO, 6)]));
        eventually(&|| format!("{:?}", fleet.status()), || fleet.status().of(AccountId(1)).oldest.is_some());
        let status = fleet.status();
        let [of_job] = &status.accounts[..] else { panic!("{status:?}") };
        assert_eq!((of_job.account, of_job.stage, of_job.members), (bounded, Some(Stage::Decode), 1));
        assert_eq!(status.of(AccountId(2)).shards, Shards::default());
        let other = scope.spawn(|| answers(&stays, short_tasks(200)));
        cancelled.clone().cancel();
        assert!(matches!(job.join().unwrap(), Err(FleetError::Cancelled)), "while its task is in work");
        assert_eq!(other.join().unwrap().unwrap().0, expected(short_tasks(200)));
    });
    assert!(cancelled.is_cancelled() && !stays.is_cancelled());
    assert!(matches!(answers(&cancelled, short_tasks(1)), Err(FleetError::Cancelled)));
    gate.open();
    assert_eq!(answers(&stays, short_tasks(9)).unwrap().0, expected(short_tasks(9)));
    // The thread of the withdrawn task is free again.
    let is_free = || fleet.status().members.iter().all(|member| member.leases == 0);
    eventually(&|| format!("{:?}", fleet.status()), is_free);
    fleet.shutdown();
    assert!(matches!(answers(&stays, short_tasks(1)), Err(FleetError::Stopped)));
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
#[ignore = "slow"]
fn workers_may_be_killed_and_stopped() {
    let config = FleetConfig {
        suspect_after: Duration::from_secs(2),
        dead_after: Duration::from_secs(4),
        min_members: 3,
        ..remote_only()
    };
    let fleet = Fleet::start(config).unwrap();
    let mut workers = ["alice", "bob", "carol"].map(|name| {
        Process::spawn(Command::new(env!("CARGO_BIN_EXE_echo-worker")).args([&url(&fleet), name]))
    });
    await_members(&fleet, 3);
    let tasks = || (0..90).map(|name| echo_task(name, Duration::from_millis(100), 5)).collect::<Vec<_>>();
    let mut found = Vec::new();
    let report = fleet.map(Stage::Decode, tasks(), |at, answer| {
        assert_eq!(at, found.len(), "answers come in task order");
        found.push(answer);
        match at {
            5 => workers[0].kill(),
            10 => workers[1].signal("STOP"),
            _ => {}
        }
    });
    let report = report.unwrap();
    assert_eq!(found, expected(tasks()));
    assert!(report.losses.iter().any(|loss| loss.name == "alice"), "{report:?}");
    eventually(&|| format!("{:?}", fleet.members()), || {
        let bob = |state: &MemberState| matches!(state, MemberState::Gone(Cause::Silent(_)));
        fleet.members().iter().any(|member| member.name == "bob" && bob(&member.state))
    });

    // The stopped worker continues, is refused as an unknown member, and joins again.
    workers[1].signal("CONT");
    await_members(&fleet, 2);
    let members = fleet.members();
    let bobs: Vec<_> = members.iter().filter(|member| member.name == "bob").collect();
    assert!(bobs.len() == 1 && bobs[0].losses >= 1, "a worker that reconnects is listed once: {bobs:?}");
    let (again, _) = answers(&fleet, short_tasks(20)).unwrap();
    assert_eq!(again, expected(short_tasks(20)));
    fleet.shutdown();
    assert_eq!(workers[1].wait().code(), Some(0), "{}", workers[1].log());
    assert_eq!(workers[2].wait().code(), Some(0), "{}", workers[2].log());
}

#[test]
fn a_worker_outlives_its_coordinator() {
    let fleet = Fleet::start(remote_only()).unwrap();
    let address = fleet.address().unwrap();
    let worker = start_worker(echo_worker(url(&fleet), 2));
    let (_, first) = answers(&fleet, short_tasks(20)).unwrap();
    drop(fleet);
    let listen = Some(Listen::at(address));
    let config = || FleetConfig { listen: listen.clone(), ..remote_only() };
    let mut fleet = None;
    eventually(&|| "the port is still in use".into(), || {
        fleet = Fleet::start(config()).ok();
        fleet.is_some()
    });
    let fleet = fleet.unwrap();
    let (found, second) = answers(&fleet, short_tasks(20)).unwrap();
    assert_eq!(found, expected(short_tasks(20)));
    assert!(second.bytes_sent < first.bytes_sent, "it still has its blobs: {first:?}, then {second:?}");
    fleet.shutdown();
    worker.join().unwrap().unwrap();
}

#[test]
fn answers_survive_repeated_disconnections() {
    let fleet = Fleet::start(FleetConfig { min_members: 2, ..remote_only() }).unwrap();
    let network = Network::to(fleet.address().unwrap());
    let workers = [1, 2].map(|threads| start_worker(echo_worker(network.url(), threads)));
    let tasks = || (0..60).map(|name| echo_task(name, Duration::from_millis(20), 50_000)).collect::<Vec<_>>();
    let mut found = Vec::new();
    let report = fleet.map(Stage::Decode, tasks(), |at, answer| {
        assert_eq!(at, found.len(), "answers come in task order");
        found.push(answer);
        if at % 20 == 10 {
            network.cut();
        }
    });
    let report = report.unwrap();
    assert!(found == expected(tasks()));
    assert!(report.losses.len() >= 2, "{report:?}");
    // The job may end between two connections.
    await_members(&fleet, 2);
    fleet.shutdown();
    for worker in workers {
        worker.join().unwrap().unwrap();
    }
}

#[test]
fn a_task_without_an_answer_fails_the_batch_at_once() {
    for local_workers in [2, 0] {
        let fleet = Fleet::start(FleetConfig { local_workers, ..remote_only() }).unwrap();
        let _worker = (local_workers == 0).then(|| start_worker(echo_worker(url(&fleet), 1)));
        let mut tasks = short_tasks(10);
        tasks[7].work = Work::Expect { weights: ShardWeights::default(), losses: false };
        let Err(FleetError::Batch { failure, .. }) = answers(&fleet, tasks) else {
            panic!("the batch has a result")
        };
        let expected_detail = ComputeError::Weights { found: 0, expected: 1 }.to_string();
        match failure {
            Failure::Task { task, detail, lacks_memory: false } if local_workers > 0 => {
                assert_eq!((task.0, detail), (7, expected_detail));
            }
            Failure::GivenUp { task, attempts } if local_workers == 0 => {
                let how = Fault::Reported(expected_detail);
                assert_eq!(task.0, 7);
                assert!(attempts.len() == 3 && attempts.iter().all(|attempt| attempt.how == how));
            }
            failure => panic!("{failure}"),
        }
        // The fleet still works.
        assert_eq!(answers(&fleet, short_tasks(9)).unwrap().0, expected(short_tasks(9)));
        fleet.shutdown();
    }
}

#[test]
fn a_panic_fails_only_its_batch() {
    let compute: Compute = Arc::new(|task| match &task.work {
        Work::Expect { .. } => echo(task),
        _ => panic!("as the test wants it"),
    });
    let config = FleetConfig { local_workers: 1, compute, ..FleetConfig::default() };
    let fleet = Fleet::start(config).unwrap();
    let task = Task { work: Work::Index, ..short_tasks(1).remove(0) };
    let failure = answers(&fleet, vec![task]).unwrap_err().to_string();
    assert!(failure.starts_with("decode: task 0: the computation panicked"), "{failure}");
    assert_eq!(answers(&fleet, short_tasks(9)).unwrap().0, expected(short_tasks(9)));
}

#[test]
fn a_batch_without_workers_fails_after_the_grace_period() {
    let config = FleetConfig { no_workers_grace: Duration::from_millis(300), ..remote_only() };
    let fleet = Fleet::start(config).unwrap();
    let mut worker =
        Process::spawn(Command::new(env!("CARGO_BIN_EXE_echo-worker")).args([&url(&fleet), "dora"]));
    await_members(&fleet, 1);
    worker.kill();
    await_members(&fleet, 0);
    let error = answers(&fleet, short_tasks(3)).unwrap_err();
    assert!(matches!(error, FleetError::Batch { failure: Failure::NoMembers { .. }, .. }), "{error}");
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
fn the_real_worker_answers_as_the_engine_does() {
    // The fleet computes what its only worker claims.
    let fleet = Fleet::start(FleetConfig { compute: engine(), ..remote_only() }).unwrap();
    let mut worker =
        Process::spawn(Command::new(binary("grammaton-worker")).args(["--coordinator", &url(&fleet)]));
    let stick =
        StickStrings { symbol: SymbolId(1), strings: [[SymbolId(2)], [SymbolId(3)]].iter().collect() };
    let lexicon = Named::new(Lexicon { sticks: vec![stick] });
    let one = Wide { mantissa: 1.0, exponent: 0 };
    let decode = Named::new(Decode {
        weights: vec![one; 1 + 4 + 2 + 1],
        segments: vec![SymbolId(1)],
        decoders: vec![Decoder::Viterbi, Decoder::Mbr, Decoder::MbrTree],
        trees: true,
        open: false,
    });
    let all = |work: &dyn Fn(usize) -> Work| {
        let tasks = short_tasks(7).into_iter().enumerate();
        tasks.map(|(at, task)| Task { work: work(at), ..with_lexicon(task, &lexicon) }).collect::<Vec<_>>()
    };
    let both = |tasks: Vec<Task>| {
        let found = answers(&fleet, tasks.clone()).unwrap().0;
        assert_eq!(found, answers(&Inline::default(), tasks).unwrap().0);
        found
    };
    both(all(&|_| Work::Candidates(Lengths::all(4))));
    both(all(&|_| Work::Cover));
    both(all(&|_| Work::Decode(decode.clone())));
    let index = both(all(&|_| Work::Index));
    let n_touched = |at: usize| match &index[at] {
        Answer::Index(index) => index.params.len(),
        other => panic!("{other:?} is not an index"),
    };
    let weights = |at| vec![one; n_touched(at)];
    both(all(&|at| Work::Expect { weights: weights(at).into_iter().collect(), losses: true }));
    for keep in [None, Some(vec![SymbolId(1)])] {
        let sample =
            |at| Work::Sample(Sample { weights: weights(at), stream: at as u64, keep: keep.clone() });
        both(all(&sample));
    }
    let grammar = short_tasks(1).remove(0).language.expect("it has one").grammar;
    let groups = Groups::new(&grammar.value, &lexicon.value);
    let mut passed = both(all(&|at| Work::Collapse(Collapse::Start { weights: weights(at) })));
    for _ in 0..3 {
        passed = both(all(&|at| {
            let Answer::Collapsed(Collapsed { shard_state, .. }) = &passed[at] else {
                panic!("nothing is shard_state")
            };
            Work::Collapse(Collapse::Others {
                pseudo: vec![0.5; n_touched(at)],
                sums: vec![2.0; groups.len()],
                temperature: 1.5,
                shard_state: Named::new(shard_state.clone()),
            })
        }));
    }
    let stick = StickStrings { symbol: SymbolId(1), strings: Strings::new() };
    let bare = Named::new(Lexicon { sticks: vec![stick] });
    let sweep = |from: &dyn Fn(usize) -> ChainFrom| {
        let sweeps = |at| Sweeps {
            from: from(at),
            n: 2,
            settings: Settings { temperature: 1.5, relabel: true, hyper: None },
            pseudo: vec![0.5; bare.value.space(&grammar.value).n_params()],
            stream: at as u64,
            keep: Some(vec![SymbolId(1)]),
        };
        let tasks = all(&|at| Work::Sweep(sweeps(at))).into_iter();
        both(tasks.map(|task| with_lexicon(task, &bare)).collect())
    };
    let hyper = Hyper { discount: 0.5, concentration: 1.0 };
    let mut chains = sweep(&|_| ChainFrom::Start { incremental: true, hyper });
    for _ in 0..3 {
        chains = sweep(&|at| {
            let Answer::Chained(Chained { shard_state, .. }) = &chains[at] else {
                panic!("nothing is shard_state")
            };
            ChainFrom::ShardState(Named::new(shard_state.clone()))
        });
    }
    fleet.shutdown();
    assert_eq!(worker.wait().code(), Some(0), "{}", worker.log());
}

#[test]
fn states_of_shards_stay_with_the_worker_that_computed_them() {
    let fleet = Fleet::start(remote_only()).unwrap();
    let network = Network::to(fleet.address().unwrap());
    let spawn = |name: &str| {
        Process::spawn(Command::new(env!("CARGO_BIN_EXE_echo-worker")).args([&network.url(), name]))
    };
    let mut alice = spawn("alice");
    // States in the answers of a round are in the tasks of the next round.
    let tasks =
        |round: u32| (0..8).map(|name| echo_pass(name, 1000, 1.0 + f64::from(round))).collect::<Vec<_>>();
    let states: u64 = tasks(0).iter().map(carried_bytes).sum();
    let run = |round| {
        let (found, report) = answers(&fleet, tasks(round)).unwrap();
        assert_eq!(found, expected(tasks(round)));
        report
    };
    let first = run(0);
    assert!(first.bytes_sent > states, "{states} bytes of shard states: {first:?}");
    for round in 1..3 {
        let next = run(round);
        assert!(next.bytes_sent < states / 10, "{states} bytes of shard states: {next:?}");
        assert!(next.bytes_received > states, "checkpoints need them: {next:?}");
    }
    // A worker that reconnects still has them.
    network.cut();
    eventually(&|| format!("{:?}", fleet.status()), || fleet.status().losses.get("disconnected") == Some(&1));
    await_members(&fleet, 1);
    let after_cut = run(3);
    assert!(after_cut.bytes_sent < states / 10, "{states} bytes of shard states: {after_cut:?}");
    // Another worker receives them.
    alice.kill();
    await_members(&fleet, 0);
    let mut bob = spawn("bob");
    let moved = run(4);
    assert!(moved.bytes_sent > states, "{states} bytes of shard states: {moved:?}");
    assert!(run(5).bytes_sent < states / 10);
    fleet.shutdown();
    assert_eq!(bob.wait().code(), Some(0), "{}", bob.log());
}

fn carried_bytes(task: &Task) -> u64 {
    let shard_state = task.work.shard_state().expect("it carries something");
    encode(&*shard_state.value).len() as u64
}

#[test]
fn a_worker_without_room_for_states_receives_them_in_every_round() {
    let fleet = Fleet::start(remote_only()).unwrap();
    let _worker = start_worker(WorkerConfig { cache_bytes: 1000, ..echo_worker(url(&fleet), 2) });
    let tasks =
        |round: u32| (0..8).map(|name| echo_pass(name, 1000, 1.0 + f64::from(round))).collect::<Vec<_>>();
    for round in 0..3 {
        let (found, report) = answers(&fleet, tasks(round)).unwrap();
        assert_eq!((found, report.losses), (expected(tasks(round)), vec![]));
        assert!(report.bytes_sent > tasks(round).iter().map(carried_bytes).sum());
    }
    fleet.shutdown();
}

#[test]
fn a_worker_with_room_for_a_few_states_keeps_a_few() {
    let fleet = Fleet::start(FleetConfig { audit: 0.5, ..remote_only() }).unwrap();
    let tasks =
        |round: u32| (0..8).map(|name| echo_pass(name, 1000, 1.0 + f64::from(round))).collect::<Vec<_>>();
    let room = tasks(0).iter().map(carried_bytes).sum::<u64>() / 2;
    let _workers = [1, 3]
        .map(|threads| start_worker(WorkerConfig { cache_bytes: room, ..echo_worker(url(&fleet), threads) }));
    for round in 0..20 {
        let (found, report) = answers(&fleet, tasks(round)).unwrap();
        assert_eq!((found, report.losses), (expected(tasks(round)), vec![]));
    }
    fleet.shutdown();
}

#[test]
fn the_real_worker_leaves_on_a_signal() {
    let fleet = Fleet::start(remote_only()).unwrap();
    let mut worker =
        Process::spawn(Command::new(binary("grammaton-worker")).args(["--coordinator", &url(&fleet)]));
    await_members(&fleet, 1);
    worker.signal("TERM");
    assert_eq!(worker.wait().code(), Some(0), "{}", worker.log());
    await_members(&fleet, 0);
}

#[test]
fn the_real_worker_logs_why_it_is_refused() {
    let config = remote_only();
    let access = Access::One(Token::new("s3cret", "test").unwrap());
    let listen = config.listen.clone().map(|listen| Listen { access, ..listen });
    let fleet = Fleet::start(FleetConfig { listen, ..config }).unwrap();
    let mut worker = Process::spawn(
        Command::new(binary("grammaton-worker"))
            .args(["--coordinator", &url(&fleet)])
            .env_remove(proto::token::TOKEN_VARIABLE),
    );
    assert_eq!(worker.wait().code(), Some(2), "{}", worker.log());
    eventually(&|| worker.log(), || worker.log().contains("a token is needed"));
}

fn with_lexicon(task: Task, lexicon: &Named<Lexicon>) -> Task {
    let language = task.language.map(|language| Language { lexicon: lexicon.clone(), ..language });
    Task { language, ..task }
}

#[test]
fn a_task_that_does_not_fit_its_grammar_is_never_computed() {
    let fleet = Fleet::start(FleetConfig { min_members: 1, ..remote_only() }).unwrap();
    let _worker = start_worker(echo_worker(url(&fleet), 1));
    let mut task = short_tasks(1).remove(0);
    let grammar =
        grammaton::grammar::syntax::parse("S --> a", "smaller.lt").expect("the text is a grammar").0;
    task.language.as_mut().expect("it has one").grammar = Named::new(grammar);
    // The string is not of this grammar: the worker disconnects each time, until the task is given up.
    let error = answers(&fleet, vec![task]).unwrap_err();
    let FleetError::Batch { failure: Failure::GivenUp { .. }, decisions, .. } = error else {
        panic!("{error}")
    };
    // What led to it is printed, from the first worker on.
    let count = |text: &str| decisions.iter().filter(|line| line.contains(text)).count();
    assert!(count("joined as member") >= 1 && count("submitted, 1 tasks") == 1, "{decisions:#?}");
    assert!(count("lost: ") >= 1 && count("assign ") >= 3 && count("failed: task 0") == 1, "{decisions:#?}");
}

#[test]
fn audited_answers_of_honest_workers_are_equal() {
    let patient = Duration::from_secs(600);
    let config = FleetConfig { audit: 0.25, min_members: 2, suspect_after: patient, ..remote_only() };
    let fleet = Fleet::start(FleetConfig { dead_after: 2 * patient, ..config }).unwrap();
    let workers = ["alice", "bob"].map(|name| start_worker(named(name, fake(), &fleet)));
    for _ in 0..3 {
        let (found, report) = answers(&fleet, short_tasks(40)).unwrap();
        assert_eq!(found, expected(short_tasks(40)));
        assert_eq!((report.audited, report.unaudited, report.losses), (10, 0, vec![]));
        assert!(report.attempts >= 50, "audited tasks are assigned twice: {}", report.attempts);
    }
    let Effort { computed, audited, unaudited, .. } = fleet.effort();
    assert_eq!((computed, audited, unaudited), (120, 30, 0));
    fleet.shutdown();
    for worker in workers {
        worker.join().unwrap().unwrap();
    }
}

#[test]
fn a_single_worker_cannot_be_audited_and_the_batch_continues() {
    let fleet = Fleet::start(FleetConfig { audit: 1.0, ..remote_only() }).unwrap();
    let _worker = start_worker(named("alice", fake(), &fleet));
    let (found, report) = answers(&fleet, short_tasks(20)).unwrap();
    assert_eq!(found, expected(short_tasks(20)));
    assert_eq!((report.audited, report.unaudited), (0, 20));
    let effort = Effort { computed: 20, audited: 0, unaudited: 20, repeated: 0 };
    assert_eq!(fleet.effort(), effort, "the missing audits are counted");
}

#[test]
fn a_worker_whose_answers_differ_by_one_bit_is_named_and_expelled() {
    let flipped: Compute = Arc::new(|task| {
        echo(task).map(|answer| match answer {
            Answer::Expectation(mut expectation) => {
                expectation.counts[0] = f64::from_bits(expectation.counts[0].to_bits() ^ 1);
                Answer::Expectation(expectation)
            }
            other => other,
        })
    });
    let fleet = Fleet::start(FleetConfig { audit: 1.0, min_members: 2, ..remote_only() }).unwrap();
    let _workers = [("alice", fake()), ("bob", flipped)]
        .map(|(name, compute)| start_worker(named(name, compute, &fleet)));
    let error = answers(&fleet, short_tasks(40)).unwrap_err();
    let FleetError::Audit { stage: Stage::Decode, mismatch } = &error else { panic!("{error}") };
    assert_eq!((&mismatch.wrong[..], mismatch.right.as_deref()), (&["bob".to_owned()][..], Some("alice")));
    let message = format!(
        "decode: worker bob's answer to task {} differs from alice's and from the coordinator's own; it is expelled: \
         remove its machine",
        mismatch.task.0
    );
    assert_eq!(error.to_string(), message);
    // He may not come back, and others compute his tasks.
    let (found, report) = answers(&fleet, short_tasks(40)).unwrap();
    assert_eq!((found, report.audited), (expected(short_tasks(40)), 0));
    assert_eq!(fleet.status().losses, [("expelled", 1)].into());
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
fn a_worker_with_heartbeats_but_no_answer_loses_its_task() {
    let (gate, is_first) = (Gate::default(), AtomicBool::new(true));
    let within = gate.clone();
    let stuck_once: Compute = Arc::new(move |task| {
        if is_first.swap(false, Ordering::Relaxed) {
            within.pass();
        }
        echo(task)
    });
    let fleet =
        Fleet::start(FleetConfig { lease_deadline: Duration::from_secs(3), ..remote_only() }).unwrap();
    let _worker = start_worker(WorkerConfig { threads: 2, ..named("mallory", stuck_once, &fleet) });
    let (found, report) = answers(&fleet, short_tasks(1)).unwrap();
    assert_eq!(found, expected(short_tasks(1)));
    assert_eq!(report.attempts, 2);
    // It overran its time on one thread, and goes on with the other.
    let status = fleet.status();
    assert!(status.members.iter().all(|member| member.failures == 1), "{status:?}");
    gate.open();
}

#[test]
fn a_stuck_thread_of_this_process_fails_the_batch_and_names_the_task() {
    let gate = Gate::default();
    let within = gate.clone();
    let stuck: Compute = Arc::new(move |task| {
        within.pass();
        echo(task)
    });
    let lease_deadline = Duration::from_millis(300);
    let config = FleetConfig { local_workers: 1, compute: stuck, lease_deadline, ..FleetConfig::default() };
    let fleet = Fleet::start(config).unwrap();
    let error = answers(&fleet, short_tasks(1)).unwrap_err();
    let message = error.to_string();
    assert!(message.starts_with("decode: task 0: local (this process) computed it for"), "{message}");
    assert!(matches!(error, FleetError::Batch { failure: Failure::GivenUp { .. }, .. }));
    gate.open();
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

#[test]
#[ignore = "slow"]
fn new_members_get_tasks_and_tasks_of_lost_members_are_assigned_again() {
    let config = FleetConfig {
        suspect_after: Duration::from_secs(2),
        dead_after: Duration::from_secs(4),
        ..remote_only()
    };
    let fleet = Fleet::start(config).unwrap();
    let spawn = |name: &str| {
        Process::spawn(Command::new(env!("CARGO_BIN_EXE_echo-worker")).args([&url(&fleet), name]))
    };
    let long = |count: u32, millis: u64| {
        (0..count).map(|name| echo_task(name, Duration::from_millis(millis), 5)).collect::<Vec<_>>()
    };
    let member = |status: &FleetStatus, name: &str| {
        status
            .members
            .iter()
            .find(|member| member.name == name && !matches!(member.state, MemberState::Gone(_)))
            .cloned()
    };
    let mut workers = vec![spawn("alice")];
    await_members(&fleet, 1);

    // A worker that joins during a round is assigned a task at once.
    std::thread::scope(|scope| {
        let batch = scope.spawn(|| answers(&fleet, long(100, 100)).unwrap());
        eventually(&|| format!("{:?}", fleet.status()), || fleet.status().shards.done >= 5);
        workers.push(spawn("bob"));
        let mut joined = None;
        eventually(&|| format!("{:?}", fleet.status()), || {
            joined = member(&fleet.status(), "bob");
            joined.is_some()
        });
        let bob = joined.expect("it was waited for");
        assert!(bob.leases as u64 + bob.tasks_done >= 1, "{bob:?}");
        eprintln!("joined in the middle of a round: had a task {:?} later at most", bob.joined);
        assert_eq!(batch.join().unwrap().0, expected(long(100, 100)));
    });

    // When a worker is killed, an idle worker is assigned its task at once.
    workers.push(spawn("carol"));
    await_members(&fleet, 3);
    std::thread::scope(|scope| {
        let batch = scope.spawn(|| answers(&fleet, long(2, 5000)).unwrap());
        eventually(&|| format!("{:?}", fleet.status()), || fleet.status().shards.assigned == 2);
        let before = fleet.status();
        let idle = before.members.iter().find(|member| member.leases == 0).expect("one has nothing to do");
        let at = ["alice", "bob", "carol"]
            .iter()
            .position(|name| member(&before, name).is_some_and(|member| member.leases > 0));
        let at = at.expect("two have something to do");
        let killed = clock();
        let gone = workers.remove(at);
        let name = ["alice", "bob", "carol"][at];
        drop(gone);
        let mut found = None;
        eventually(&|| format!("{:?}", fleet.status()), || {
            let status = fleet.status();
            found = Some(status.clone());
            member(&status, name).is_none()
        });
        let status = found.expect("it was waited for");
        let heir = member(&status, &idle.name).expect("it lives");
        assert!(heir.leases > 0 || heir.tasks_done > idle.tasks_done, "{status:?}");
        assert_eq!(status.shards.free, 0);
        eprintln!("killed: its task was assigned again {:?} later at most", killed.elapsed());
        let (found, report) = batch.join().unwrap();
        assert_eq!(found, expected(long(2, 5000)));
        assert!(report.losses.iter().any(|loss| loss.name == name), "{report:?}");
    });

    // When a worker is silent, its task is assigned again as soon as it is suspect.
    std::thread::scope(|scope| {
        let batch = scope.spawn(|| answers(&fleet, long(1, 1000)).unwrap());
        eventually(&|| format!("{:?}", fleet.status()), || fleet.status().shards.assigned == 1);
        let before = fleet.status();
        let holder =
            before.members.iter().find(|member| member.leases > 0).expect("it is assigned").name.clone();
        let names: Vec<&str> =
            ["alice", "bob", "carol"].into_iter().filter(|name| member(&before, name).is_some()).collect();
        let at = names.iter().position(|name| *name == holder).expect("it is one of them");
        workers[at].signal("STOP");
        let stopped = clock();
        let (found, report) = batch.join().unwrap();
        assert_eq!(found, expected(long(1, 1000)));
        assert!(report.attempts >= 2, "{report:?}");
        eprintln!("stopped: its task was assigned again and answered {:?} later", stopped.elapsed());
    });
}
