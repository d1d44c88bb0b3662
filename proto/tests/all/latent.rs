//! Conversion of shards of trees, passes over them and their answers: round trips, and refusals.

use grammaton::data::treebank::{Classes, Treebank};
use grammaton::grammar::tree::Tree;
use grammaton::models::latent::{self, Layout, start};
use grammaton::work::engine::Engine;
use grammaton::work::lease::{Attempt, BatchId, LeaseId, TaskIndex};
use grammaton::work::shard::Shard;
use grammaton::work::task::{Annotate, Answer, Named, Pass, ShardState, Task, Work};
use prost::Message as _;
use proto::convert::blob::{self, Blob};
use proto::convert::{Wire, WireError, fits, lease};
use proto::v1;

const N_SUBTYPES: usize = 3;

fn treebank() -> Treebank {
    let trees = ["(ROOT (S (N a) (V (V b) (N c))))", "(ROOT (S (N c) (V b)))", "(ROOT (N a))"];
    Treebank::new(&trees.map(|text| Tree::parse(text).unwrap()), 0, Classes::Generic)
}

fn shard() -> Shard {
    let Treebank { rules, derivations, .. } = treebank();
    Shard::Trees { rules, trees: latent::Shard { trees: derivations } }
}

fn task(pass: Pass) -> Task {
    Task {
        language: None,
        shard: Named::new(shard()),
        work: Work::Annotate(Annotate { n_subtypes: N_SUBTYPES, pass }),
    }
}

/// A task of each kind, with its answer.
pub fn answered() -> Vec<(Task, Answer)> {
    let rules = treebank().rules;
    let weights = std::sync::Arc::new(start(&rules, &Layout::new(&rules, N_SUBTYPES), 0.01, 1));
    let engine = Engine::default();
    let with_answer = |pass| {
        let task = task(pass);
        let answer = engine.run(&task).unwrap();
        (task, answer)
    };
    let first = with_answer(Pass::Begin { weights: weights.clone() });
    let Answer::Annotated(annotated) = &first.1 else { panic!() };
    let others = with_answer(Pass::Others {
        totals: annotated.expectation.counts.clone().into(),
        alpha: 0.1,
        shard_state: Named::new(annotated.shard_state.clone().unwrap()),
    });
    vec![with_answer(Pass::Expect { weights }), first, others]
}

#[test]
fn shards_works_and_answers_survive_the_wire() {
    for (task, answer) in answered() {
        fits::work(&task).unwrap();
        fits::answer(&task, &answer).unwrap();
        let bytes = answer.to_bytes();
        assert!(bytes.len() as u64 <= fits::largest_answer(&task));
        assert_eq!(Answer::from_bytes(bytes).unwrap(), answer);
        for blob in Blob::of_task(&task) {
            let again = Blob::from_bytes(blob.kind() as i32, blob.hash(), blob.to_bytes()).unwrap();
            assert_eq!(again.hash(), blob.hash());
        }
        let id = LeaseId { batch: BatchId(1), task: TaskIndex(2), attempt: Attempt(3) };
        let (head, payload) = lease::to_wire(id, &task);
        let work = lease::work_from_wire(&head, payload.clone(), |_, hash| {
            let shard_state =
                blob::shard_state(&task.work).expect("this work has something shard_state").clone();
            assert_eq!(shard_state.hash.0[..], hash[..]);
            Ok(Blob::ShardState(shard_state))
        });
        let language = lease::language_from_wire(&head, |_, _| panic!("trees have no grammar"));
        assert!(language.unwrap().is_none());
        let (_, again) = lease::to_wire(id, &Task { work: work.unwrap(), ..task.clone() });
        assert_eq!(again, payload);
    }
}

#[test]
fn trees_that_are_no_derivations_are_refused() {
    let sent = |change: fn(&mut v1::Trees)| {
        let mut message = shard().to_wire();
        let Some(v1::shard::Items::Trees(trees)) = &mut message.items else { panic!() };
        change(trees);
        Shard::from_wire(message)
    };
    assert_eq!(sent(|_| {}).unwrap(), shard());
    for (change, problem) in [
        (
            (|trees| trees.trees.as_mut().unwrap().symbols[0] = 99) as fn(&mut v1::Trees),
            "tree 0 is no derivation",
        ),
        (|trees| trees.labels.swap(0, 1), "labels are not sorted, or not distinct"),
        (|trees| *trees.parents.last_mut().unwrap() = 9, "a rule is of labels or words that are not there"),
        (|trees| trees.occurrences[0] = 0, "rules and their occurrences differ"),
    ] {
        let problem = problem.to_owned();
        assert!(
            matches!(sent(change), Err(WireError::Trees { problem: found }) if found == problem),
            "{problem}"
        );
    }
    assert!(sent(|trees| trees.lexical.truncate(1)).is_err());
    assert!(sent(|trees| trees.children = None).is_err());
}

#[test]
fn passes_and_answers_are_of_their_shard() {
    let answered = answered();
    let weights =
        |n: usize| std::sync::Arc::new(latent::Weights { values: vec![1.0; n], exponents: vec![0; 7] });
    assert!(fits::work(&task(Pass::Expect { weights: weights(5) })).is_err());
    let foreign = Named::new(ShardState::Latent(latent::collapsed::Own { trees: vec![vec![1.0]] }));
    let n_params = Layout::new(&treebank().rules, N_SUBTYPES).n_params();
    let totals: std::sync::Arc<Vec<f64>> = vec![1.0; n_params].into();
    let of = |shard_state| Pass::Others { totals: totals.clone(), alpha: 0.1, shard_state };
    assert!(matches!(fits::work(&task(of(foreign))), Err(WireError::ShardState { .. })));
    let chain = Named::new(ShardState::Counts(Vec::new()));
    assert!(matches!(fits::work(&task(of(chain))), Err(WireError::ShardState { .. })));
    // The first answer carries no state, the second does; neither fits the other's task.
    assert!(fits::answer(&answered[0].0, &answered[1].1).is_err());
    assert!(fits::answer(&answered[1].0, &answered[0].1).is_err());
    let Answer::Annotated(mut short) = answered[0].1.clone() else { panic!() };
    short.expectation.counts.pop();
    assert!(fits::answer(&answered[0].0, &Answer::Annotated(short)).is_err());
}

#[test]
fn numbers_of_works_are_checked() {
    let (task, _) = answered().remove(2);
    let id = LeaseId { batch: BatchId(1), task: TaskIndex(2), attempt: Attempt(3) };
    let (head, payload) = lease::to_wire(id, &task);
    let sent = |change: fn(&mut v1::Annotate)| {
        let mut message = v1::Annotate::decode(payload.clone()).unwrap();
        change(&mut message);
        let shard_state = blob::shard_state(&task.work).unwrap().clone();
        lease::work_from_wire(&head, message.encode_to_vec().into(), |_, _| Ok(Blob::ShardState(shard_state)))
    };
    assert!(sent(|_| {}).is_ok());
    for change in [
        (|annotate| annotate.n_subtypes = 0) as fn(&mut v1::Annotate),
        |annotate| annotate.n_subtypes = 65,
        |annotate| annotate.pass = None,
        |annotate| {
            let Some(v1::annotate::Pass::Others(others)) = &mut annotate.pass else { panic!() };
            others.alpha = 0.0;
        },
        |annotate| {
            let Some(v1::annotate::Pass::Others(others)) = &mut annotate.pass else { panic!() };
            others.totals[0] = f64::NAN;
        },
    ] {
        assert!(sent(change).is_err());
    }
}
