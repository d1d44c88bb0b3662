//! Every kind of work ends on request, wherever it is, and leaves an engine that gives the same answers.

use std::sync::mpsc;
use std::thread;

use grammaton::stop::{Stop, Stopped, until};
use grammaton::work::engine::Engine;

use crate::support::every_kind::{Case, every_kind};

/// Number of checks of a task on an engine.
fn n_checks(engine: &Engine, case: &Case) -> u64 {
    let stop = Stop::default();
    let answer = until(&stop, || engine.run(&case.task));
    assert_eq!(answer, Ok(Ok(case.answer.clone())), "{}", case.name);
    stop.n_checks()
}

#[test]
fn a_stopped_task_leaves_nothing_behind() {
    for case in every_kind(16) {
        let folder = tempfile::tempdir().unwrap();
        let engines: [&dyn Fn() -> Engine; 2] =
            [&Engine::default, &|| Engine::with_memory(0).spilling_to(folder.path())];
        for engine in engines {
            let in_all = n_checks(&engine(), &case);
            assert!(in_all >= 1, "{}: {in_all} checks", case.name);
            // All of the first, and some of many.
            let numbers = (1..=in_all).filter(|number| *number < 30 || number % (1 + in_all / 30) == 0);
            let mut last = engine();
            for number in numbers {
                let engine = engine();
                let stopped = until(&Stop::at_check(number), || engine.run(&case.task));
                assert_eq!(stopped, Err(Stopped), "{}, check {number} of {in_all}", case.name);
                // From what was built before it was stopped.
                assert_eq!(
                    engine.run(&case.task).as_ref(),
                    Ok(&case.answer),
                    "{}, check {number}",
                    case.name
                );
                last = engine;
            }
            for number in 1..=n_checks(&last, &case) {
                let stopped = until(&Stop::at_check(number), || last.run(&case.task));
                assert_eq!(stopped, Err(Stopped), "{}, check {number} once it is built", case.name);
            }
            n_checks(&last, &case);
        }
        let left = std::fs::read_dir(folder.path())
            .unwrap()
            .filter_map(|file| file.unwrap().path().extension().map(drop));
        assert_eq!(left.count(), 0, "{}: files that were being written", case.name);
    }
}

/// Law: the steps between two checks are bounded, within a single sentence too. A sentence four times as long has many more
/// steps in every kind of work.
#[test]
fn checks_keep_step_with_the_work() {
    for (short, long) in every_kind(40).into_iter().zip(every_kind(160)) {
        // Strings and dense sentences are as long in both.
        if short.name.ends_with("of strings") || short.name.starts_with("dense") {
            continue;
        }
        let engine = Engine::default();
        let (few, many) = (n_checks(&engine, &short), n_checks(&engine, &long));
        assert!(many >= few + 4, "{}: {few} checks, then {many}", short.name);
    }
}

#[test]
fn another_thread_stops_a_task() {
    for case in every_kind(60) {
        let (engine, stop) = (Engine::default(), Stop::default());
        let (begun, has_begun) = mpsc::channel();
        thread::scope(|scope| {
            let computing = scope.spawn(|| {
                until(&stop, || {
                    loop {
                        assert_eq!(engine.run(&case.task).as_ref(), Ok(&case.answer), "{}", case.name);
                        begun.send(()).unwrap();
                    }
                })
            });
            has_begun.recv().unwrap();
            stop.request();
            assert_eq!(computing.join().unwrap(), Err::<(), _>(Stopped), "{}", case.name);
        });
        n_checks(&engine, &case);
    }
}
