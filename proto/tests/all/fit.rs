//! Conversion of logistic-normal priors and their statistics: round trips, and refusals.

use grammaton::data::Sentence;
use grammaton::grammar::lexicon::Lexicon;
use grammaton::grammar::syntax;
use grammaton::models::dmv::Side;
use grammaton::models::dmv::constraint::{ArcClass, Component};
use grammaton::models::logistic_normal::{Multinomials, Prior, Until};
use grammaton::work::engine::Engine;
use grammaton::work::lease::{Attempt, BatchId, LeaseId, TaskIndex};
use grammaton::work::shard::Shard;
use grammaton::work::task::{Answer, Fit, Fitted, Language, Named, Task, Weighted, Work};
use proto::convert::blob::Blob;
use proto::convert::{Wire, WireError, fits, lease};
use proto::v1;

/// A grammar whose nonterminal T has one rule, and so no prior.
const GRAMMAR: &str = "1 1 S --> A S\n1 1 S --> A\n1 1 S --> T\n1 1 A --> a\n1 1 A --> b\n1 1 T --> a b\n";

fn priors() -> Vec<Prior> {
    let covariance = vec![1.0, 0.0, 0.0, 0.5, 2.0, 0.0, -0.25, 0.125, 1.5];
    vec![
        Prior::new(vec![-1.0, 0.25, -2.0], covariance).unwrap(),
        Prior::new(vec![0.0, -0.5], vec![1.0, 1.0, 1.0, 1.0]).unwrap(),
    ]
}

/// The first sentence twice, and one without a derivation.
fn task(priors: Vec<Prior>) -> Task {
    let grammar = syntax::parse(GRAMMAR, "g").unwrap().0;
    let sentence = |text: &str, multiplicity| {
        let symbol = |name| grammar.symbol(name).unwrap();
        Sentence { tokens: text.split(' ').map(symbol).collect(), multiplicity }
    };
    let sentences = vec![sentence("a b", 2), sentence("a b b", 1), sentence("b a", 1)];
    let until = Until { tolerance: 1e-6, max_rounds: 20 };
    Task {
        language: Some(Language { grammar: Named::new(grammar), lexicon: Named::new(Lexicon::default()) }),
        shard: Named::new(Shard::Sentences(sentences)),
        work: Work::Fit(Named::new(Fit { priors, until, components: Vec::new() })),
    }
}

pub fn answered() -> (Task, Answer) {
    let task = task(priors());
    let answer = Engine::default().run(&task).unwrap();
    (task, answer)
}

fn fit(task: &Task) -> Named<Fit> {
    match &task.work {
        Work::Fit(fit) => fit.clone(),
        _ => panic!("not a fit"),
    }
}

#[test]
fn works_and_answers_survive_the_wire() {
    let (task, answer) = answered();
    fits::work(&task).unwrap();
    let lease = LeaseId { batch: BatchId(1), task: TaskIndex(2), attempt: Attempt(3) };
    let (head, payload) = lease::to_wire(lease, &task);
    assert!(payload.is_empty());
    assert_eq!(fits::largest_lease(lease::asked(&head).unwrap(), task.language.as_ref()), 0);
    let sent = Blob::Fit(fit(&task));
    let arrived = Blob::from_bytes(sent.kind() as i32, sent.hash(), sent.to_bytes()).unwrap();
    let work = lease::work_from_wire(&head, payload.clone(), |field, hash| {
        assert_eq!((field, hash), ("lease.fit", &sent.hash().0[..]));
        Ok(arrived)
    });
    let Ok(Work::Fit(again)) = work else { panic!("{work:?}") };
    assert_eq!(again.value, fit(&task).value, "to the bit, with all that follows from Σ");
    let shard = |_, _: &[u8]| Ok(Blob::Shard(task.shard.clone()));
    assert!(lease::work_from_wire(&head, payload, shard).is_err());

    for answer in [answer, Answer::Fitted(Fitted::Unbounded { sentence: 2 })] {
        fits::answer(&task, &answer).unwrap();
        let bytes = answer.to_bytes();
        assert!(bytes.len() as u64 <= fits::largest_answer(&task));
        assert_eq!(Answer::from_bytes(bytes).unwrap(), answer);
    }
}

/// A mixture with two components, one of which sets every field.
fn mixed() -> Task {
    let tags = ["NOUN", "VERB"].map(str::to_owned);
    let grammar = grammaton::models::dmv::grammar(&tags).unwrap();
    let sentence = |tags: &[u32], multiplicity| {
        let tokens = grammaton::models::dmv::Layout::new(2).tokens(tags);
        Sentence { tokens, multiplicity }
    };
    let sentences = vec![sentence(&[0, 1, 0], 2), sentence(&[0], 1)];
    let noun = || vec!["noun".to_owned()];
    let sides = [None, Some(Side::Left), Some(Side::Right)];
    let own = Component {
        name: "own".to_owned(),
        roots: vec!["VERB".to_owned(), "ADV".to_owned()],
        longest_arc: Some(3),
        forbid: sides.map(|side| ArcClass { head: noun(), child: noun(), side }).to_vec(),
        phrases: noun(),
    };
    let all = [(own, 0.25), (Component::built_in("short-dep").unwrap(), 0.125)];
    let components = all.map(|(component, weight)| Weighted { component, weight }).to_vec();
    let outcomes = Multinomials::new(&grammar).unwrap();
    let prior = |range: std::ops::Range<usize>| Prior::independent(vec![0.5; range.len()]).unwrap();
    let priors = outcomes.iter().map(prior).collect();
    let until = Until { tolerance: 1e-6, max_rounds: 20 };
    Task {
        language: Some(Language { grammar: Named::new(grammar), lexicon: Named::new(Lexicon::default()) }),
        shard: Named::new(Shard::Sentences(sentences)),
        work: Work::Fit(Named::new(Fit { priors, until, components })),
    }
}

#[test]
fn mixtures_survive_the_wire() {
    let task = mixed();
    fits::work(&task).unwrap();
    let sent = fit(&task);
    let arrived = Fit::from_bytes(sent.value.to_bytes()).unwrap();
    assert_eq!((Named::new(arrived.clone()).hash, &arrived), (sent.hash, sent.value.as_ref()));
    let answer = Engine::default().run(&task).unwrap();
    fits::answer(&task, &answer).unwrap();
    let bytes = answer.to_bytes();
    assert!(bytes.len() as u64 <= fits::largest_answer(&task));
    assert_eq!(Answer::from_bytes(bytes).unwrap(), answer);
    let Answer::Fitted(Fitted::Statistics(statistics)) = answer else { panic!("{answer:?}") };
    assert_eq!(statistics.parts.iter().map(|part| part.n_empty).collect::<Vec<_>>(), [0, 1, 0]);
    let check = |change: fn(&mut grammaton::models::logistic_normal::Statistics)| {
        let mut statistics = statistics.clone();
        change(&mut statistics);
        fits::answer(&task, &Answer::Fitted(Fitted::Statistics(statistics))).is_ok()
    };
    assert!(check(|_| {}));
    assert!(check(|statistics| statistics.n_rounds = 180), "three sentences, each fitted three times");
    assert!(!check(|statistics| statistics.n_rounds = 181));
    assert!(!check(|statistics| statistics.parts.truncate(2)));
    assert!(!check(|statistics| statistics.parts[1].n_empty = 4), "there are three sentences");
}

#[test]
fn invalid_mixtures_are_refused() {
    let task = mixed();
    let sent = |change: fn(&mut v1::Fit)| {
        let mut message = fit(&task).value.to_wire();
        change(&mut message);
        Fit::from_wire(message).map_err(|error| error.to_string()).unwrap_err()
    };
    let weight = sent(|fit| fit.components[1].weight = -0.5);
    assert_eq!(weight, "fit.components.weight[1]: -0.5, expected a number from 0 to 1");
    let sum = sent(|fit| fit.components[1].weight = 0.875);
    assert_eq!(sum, "fit.components.weight[0]: 1.125, expected a number of 1 or less, as the sum of all");
    let side = sent(|fit| fit.components[0].forbid[1].side = 0);
    assert_eq!(side, "fit.components.forbid.side[1]: 0, expected 1..4");
    let many = sent(|fit| fit.components = vec![v1::Component::default(); 65]);
    assert_eq!(many, "fit.components: 65, expected at most 64");

    let with = |change: fn(&mut Task, &mut Fit)| {
        let (mut task, mut fit) = (mixed(), fit(&task).value.as_ref().clone());
        change(&mut task, &mut fit);
        fits::work(&Task { work: Work::Fit(Named::new(fit)), ..task }).unwrap_err().to_string()
    };
    let unknown = with(|_, fit| fit.components[0].component.roots = vec!["ADJ".to_owned()]);
    assert!(
        unknown.starts_with("fit: `roots` of component `own`: nothing in [\"ADJ\"] is a tag"),
        "{unknown}"
    );
    let other = with(|task, fit| {
        task.language.as_mut().unwrap().grammar = Named::new(syntax::parse(GRAMMAR, "g").unwrap().0);
        fit.priors = priors();
    });
    assert_eq!(other, "fit: components are of dependency trees, and this is another grammar");
}

#[test]
fn invalid_priors_are_refused() {
    let (task, _) = answered();
    let sent = |change: fn(&mut v1::Fit)| {
        let mut message = fit(&task).value.to_wire();
        change(&mut message);
        Fit::from_wire(message).map_err(|error| error.to_string())
    };
    assert!(sent(|_| {}).is_ok());
    type Change = (fn(&mut v1::Fit), &'static str);
    let changes: [Change; 9] = [
        (|fit| fit.means[1] = f64::NAN, "fit.means[1]: NaN, expected a number from -1e12 to 1e12"),
        (|fit| fit.means.truncate(4), "fit.means: length 4, expected 5"),
        (
            |fit| fit.covariances[0] = 1e13,
            "fit.covariances[0]: 10000000000000, expected a number from -1e12 to 1e12",
        ),
        (|fit| fit.covariances.push(1.0), "fit.covariances: length 10, expected 9"),
        (
            |fit| fit.covariances[0] = -9.0,
            "fit: the covariance is not positive definite, even with its mean variance added to the diagonal",
        ),
        (|fit| fit.outcomes[0] = 0, "fit.outcomes[0]: 0, expected 1..2049"),
        (|fit| fit.outcomes[0] = 4000, "fit.outcomes[0]: 4000, expected 1..2049"),
        (
            |fit| fit.tolerance = -1.0,
            "fit.tolerance[0]: -1, expected a number that is finite and not negative",
        ),
        (|fit| fit.max_rounds = 0, "fit.max_rounds[0]: 0, expected 1..1000001"),
    ];
    for (change, expected) in changes {
        assert_eq!(sent(change), Err(expected.to_owned()));
    }
}

#[test]
fn priors_of_another_grammar_are_refused() {
    let error = |task: &Task| fits::work(task).unwrap_err().to_string();
    assert_eq!(error(&task(priors()[1..].to_vec())), "fit: 1 priors, expected 2");
    let (mut adapted, _) = answered();
    adapted.language.as_mut().unwrap().grammar =
        Named::new(syntax::parse("1 1 S --> W\nW --> a\n", "g").unwrap().0);
    assert_eq!(
        error(&adapted),
        "fit: nonterminal `W` is adapted or rewrites to substrings; logistic-normal priors are of rules only"
    );
}

#[test]
fn answers_to_another_task_are_refused() {
    let (task, answer) = answered();
    let Answer::Fitted(Fitted::Statistics(statistics)) = answer else { panic!("{answer:?}") };
    assert_eq!(statistics.n_sentences, 4);
    let check = |change: fn(&mut grammaton::models::logistic_normal::Statistics)| {
        let mut statistics = statistics.clone();
        change(&mut statistics);
        fits::answer(&task, &Answer::Fitted(Fitted::Statistics(statistics))).is_ok()
    };
    assert!(check(|_| {}));
    assert!(!check(|statistics| statistics.n_sentences = 5), "the shard has four");
    assert!(!check(|statistics| statistics.n_rounds = 81), "they have 20 each");
    assert!(!check(|statistics| statistics.moments[0].n_sentences = 5));
    assert!(!check(|statistics| statistics.moments.truncate(1)));
    assert!(!check(|statistics| statistics.moments[0].first.truncate(1)));
    assert!(!check(|statistics| statistics.moments[0].second.truncate(1)));
    let unbounded = Answer::Fitted(Fitted::Unbounded { sentence: 3 });
    assert!(matches!(fits::answer(&task, &unbounded), Err(WireError::Range { .. })));

    let sent = |change: fn(&mut v1::Statistics)| {
        let mut message = Answer::Fitted(Fitted::Statistics(statistics.clone())).to_wire();
        let Some(v1::answer::Answer::Fitted(v1::Fitted { fitted: Some(fitted) })) = &mut message.answer
        else {
            panic!("{message:?}")
        };
        let v1::fitted::Fitted::Statistics(found) = fitted else { panic!("{fitted:?}") };
        change(found);
        Answer::from_wire(message).is_ok()
    };
    assert!(sent(|_| {}));
    assert!(!sent(|statistics| statistics.bound = f64::NAN));
    assert!(!sent(|statistics| statistics.variance[0] = -1.0));
    assert!(!sent(|statistics| statistics.first[0] = f64::INFINITY));
    assert!(!sent(|statistics| statistics.second.truncate(2)));
    assert!(!sent(|statistics| statistics.users.truncate(1)));
    assert!(!sent(|statistics| statistics.empty.push(1)));
    assert!(!sent(|statistics| {
        statistics.part_bounds.push(f64::NAN);
        statistics.empty.push(0);
    }));
    assert!(!sent(|statistics| statistics.outcomes[0] = u32::MAX));
}
