//! Members that are killed, stopped, stuck or lying, and tasks that fail.

use super::*;

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
        tasks[7].work = Work::Expect { weights: std::iter::empty().collect(), losses: false };
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
