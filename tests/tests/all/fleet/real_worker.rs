//! The worker program with the real engine: answers, states of shards, signals, refusals.

use super::*;

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
        spans: false,
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
    let shared = Named::new(vec![one; 1 + 4 + 2].into_iter().collect());
    both(all(&|at| {
        let n_touched = n_touched(at) as u32;
        let weights = TaskWeights::Shared { all: shared.clone(), n_touched, n_in_use: n_touched };
        Work::Expect { weights, losses: true }
    }));
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
