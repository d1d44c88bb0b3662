//! Shards of trees, passes over them and their answers: what is refused.

use grammaton::data::treebank::{Classes, LabelId, RuleId, Rules, Treebank};
use grammaton::grammar::tree::Tree;
use grammaton::models::latent::{self, Layout, start};
use grammaton::work::engine::Engine;
use grammaton::work::shard::Shard;
use grammaton::work::task::{Annotate, Answer, Named, Pass, ShardState, Task, Work};
use proto::check::{self, Invalid};

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
        further: Vec::new(),
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
fn trees_that_are_no_derivations_are_refused() {
    let checked = |change: fn(&mut Rules, &mut latent::Shard)| {
        let Shard::Trees { mut rules, mut trees } = shard() else { panic!() };
        change(&mut rules, &mut trees);
        check::trees(&Shard::Trees { rules, trees })
    };
    assert_eq!(checked(|_, _| {}), Ok(()));
    type Change = fn(&mut Rules, &mut latent::Shard);
    let changes: [(Change, &str); 4] = [
        (|_, shard| shard.trees[0][0] = RuleId(99), "tree 0 is no derivation"),
        (|rules, _| rules.labels.swap(0, 1), "labels are not sorted, or not distinct"),
        (
            |rules, _| rules.rules.last_mut().unwrap().parent = LabelId(9),
            "a rule is of labels or words that are not there",
        ),
        (|rules, _| rules.occurrences[0] = 0, "rules and their occurrences differ"),
    ];
    for (change, problem) in changes {
        assert_eq!(checked(change), Err(Invalid::Trees { problem: problem.to_owned() }));
    }
}

#[test]
fn passes_and_answers_are_of_their_shard() {
    let answered = answered();
    let weights =
        |n: usize| std::sync::Arc::new(latent::Weights { values: vec![1.0; n], exponents: vec![0; 7] });
    assert!(check::work(&task(Pass::Expect { weights: weights(5) })).is_err());
    let foreign = Named::new(ShardState::Latent(latent::collapsed::TreeCounts { trees: vec![vec![1.0]] }));
    let n_params = Layout::new(&treebank().rules, N_SUBTYPES).n_params();
    let totals: std::sync::Arc<Vec<f64>> = vec![1.0; n_params].into();
    let of = |shard_state| Pass::Others { totals: totals.clone(), alpha: 0.1, shard_state };
    assert!(matches!(check::work(&task(of(foreign))), Err(Invalid::ShardState { .. })));
    let chain = Named::new(ShardState::Counts(Vec::new()));
    assert!(matches!(check::work(&task(of(chain))), Err(Invalid::ShardState { .. })));
    // The first answer carries no state, the second does; neither fits the other's task.
    assert!(check::answer(&answered[0].0, &answered[1].1).is_err());
    assert!(check::answer(&answered[1].0, &answered[0].1).is_err());
    let Answer::Annotated(mut short) = answered[0].1.clone() else { panic!() };
    short.expectation.counts.pop();
    assert!(check::answer(&answered[0].0, &Answer::Annotated(short)).is_err());
}

#[test]
fn numbers_of_works_are_checked() {
    let (others, _) = answered().remove(2);
    let checked = |change: fn(&mut usize, &mut Vec<f64>, &mut f64)| {
        let Work::Annotate(Annotate {
            mut n_subtypes,
            pass: Pass::Others { totals, mut alpha, shard_state },
        }) = others.work.clone()
        else {
            panic!("it is not the first pass")
        };
        let mut totals = totals.to_vec();
        change(&mut n_subtypes, &mut totals, &mut alpha);
        let pass = Pass::Others { totals: totals.into(), alpha, shard_state };
        check::work(&Task { work: Work::Annotate(Annotate { n_subtypes, pass }), ..others.clone() })
    };
    assert_eq!(checked(|_, _, _| {}), Ok(()));
    assert!(checked(|n_subtypes, _, _| *n_subtypes = 0).is_err());
    assert!(checked(|n_subtypes, _, _| *n_subtypes = 65).is_err());
    assert!(checked(|n_subtypes, _, _| *n_subtypes = usize::MAX).is_err());
    assert!(checked(|_, totals, _| totals[0] = f64::NAN).is_err());
    assert!(checked(|_, _, alpha| *alpha = 0.0).is_err());
    let layout = Layout::new(&treebank().rules, N_SUBTYPES);
    let weights = |value: f64, exponent: i64| {
        let (values, exponents) = (vec![value; layout.n_params()], vec![exponent; layout.blocks.len()]);
        check::work(&task(Pass::Expect { weights: latent::Weights { values, exponents }.into() }))
    };
    assert_eq!(weights(0.5, -7), Ok(()));
    for (value, exponent) in [(2.5, 0), (-0.5, 0), (f64::NAN, 0), (0.5, 1 << 40), (0.5, i64::MIN)] {
        assert!(weights(value, exponent).is_err(), "{value} {exponent}");
    }
}
