//! Several jobs on one fleet: answers, events, cancellation.

use super::*;

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
        tasks[17].work = Work::Expect { weights: std::iter::empty().collect(), losses: false };
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
        if matches!(&task.work, Work::Expect { weights, .. } if weights.n_touched() == 6) {
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
