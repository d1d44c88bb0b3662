//! Logistic-normal priors and their statistics: what is refused.

use grammaton::data::Sentence;
use grammaton::encoding::encode;
use grammaton::grammar::lexicon::Lexicon;
use grammaton::grammar::syntax;
use grammaton::models::dmv::Side;
use grammaton::models::dmv::constraint::{ArcClass, Component};
use grammaton::models::logistic_normal::{ComponentSums, Multinomials, Prior, StopRule};
use grammaton::work::engine::Engine;
use grammaton::work::shard::Shard;
use grammaton::work::task::{Answer, Fit, Fitted, Language, Named, Task, Weighted, Work};
use proto::check::{self, Invalid};

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
        Sentence::new(text.split(' ').map(symbol).collect(), multiplicity)
    };
    let sentences = vec![sentence("a b", 2), sentence("a b b", 1), sentence("b a", 1)];
    let until = StopRule { tolerance: 1e-6, max_rounds: 20 };
    Task {
        language: Some(Language { grammar: Named::new(grammar), lexicon: Named::new(Lexicon::default()) }),
        shard: Named::new(Shard::Sentences(sentences)),
        work: Work::Fit(Named::new(Fit { priors, until, components: Vec::new() })),
        further: Vec::new(),
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

/// A mixture with two components, one of which sets every field.
fn mixed() -> Task {
    let tags = ["NOUN", "VERB"].map(str::to_owned);
    let grammar = grammaton::models::dmv::grammar(&tags).unwrap();
    let sentence = |tags: &[u32], multiplicity| {
        let tokens = grammaton::models::dmv::Layout::new(2).tokens(tags);
        Sentence::new(tokens, multiplicity)
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
    let until = StopRule { tolerance: 1e-6, max_rounds: 20 };
    Task {
        language: Some(Language { grammar: Named::new(grammar), lexicon: Named::new(Lexicon::default()) }),
        shard: Named::new(Shard::Sentences(sentences)),
        work: Work::Fit(Named::new(Fit { priors, until, components })),
        further: Vec::new(),
    }
}

pub fn answered_mixture() -> (Task, Answer) {
    let task = mixed();
    let answer = Engine::default().run(&task).unwrap();
    (task, answer)
}

#[test]
fn answers_to_another_mixture_are_refused() {
    let (task, answer) = answered_mixture();
    let Answer::Fitted(Fitted::Statistics(statistics)) = answer else { panic!("{answer:?}") };
    assert_eq!(statistics.parts.iter().map(|part| part.n_empty).collect::<Vec<_>>(), [0, 1, 0]);
    let check = |change: fn(&mut grammaton::models::logistic_normal::Statistics)| {
        let mut statistics = statistics.clone();
        change(&mut statistics);
        check::answer(&task, &Answer::Fitted(Fitted::Statistics(statistics))).is_ok()
    };
    assert!(check(|_| {}));
    assert!(check(|statistics| statistics.n_rounds = 180), "three sentences, each fitted three times");
    assert!(!check(|statistics| statistics.n_rounds = 181));
    assert!(!check(|statistics| statistics.parts.truncate(2)));
    assert!(!check(|statistics| statistics.parts[1].n_empty = 4), "there are three sentences");
}

#[test]
fn invalid_mixtures_are_refused() {
    let with = |change: fn(&mut Task, &mut Fit)| {
        let (mut task, mut fit) = (mixed(), fit(&mixed()).value.as_ref().clone());
        change(&mut task, &mut fit);
        check::work(&Task { work: Work::Fit(Named::new(fit)), ..task }).unwrap_err().to_string()
    };
    let weight = with(|_, fit| fit.components[1].weight = -0.5);
    assert_eq!(weight, "fit.components.weight[1]: -0.5, expected a number from 0 to 1");
    let sum = with(|_, fit| fit.components[1].weight = 0.875);
    assert_eq!(sum, "fit.components.weight[0]: 1.125, expected a number of 1 or less, as the sum of all");
    let many = with(|_, fit| fit.components = vec![fit.components[0].clone(); 65]);
    assert_eq!(many, "fit.components: 65, expected at most 64");
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
    let with = |change: fn(&mut Fit)| {
        let mut fit = fit(&task).value.as_ref().clone();
        change(&mut fit);
        check::work(&Task { work: Work::Fit(Named::new(fit)), ..task.clone() })
            .map_err(|error| error.to_string())
    };
    assert_eq!(with(|_| {}), Ok(()));
    type Change = (fn(&mut Fit), &'static str);
    let changes: [Change; 5] = [
        (
            |fit| fit.priors[0] = Prior::independent(vec![0.0, 1e13, 0.0]).unwrap(),
            "fit.means[1]: 10000000000000, expected a number from -1e12 to 1e12",
        ),
        (
            |fit| fit.priors[1] = Prior::new(vec![0.0; 2], vec![1e13, 0.0, 0.0, 1e13]).unwrap(),
            "fit.covariances[0]: 10000000000000, expected a number from -1e12 to 1e12",
        ),
        (
            |fit| fit.until.tolerance = -1.0,
            "fit.tolerance[0]: -1, expected a number that is finite and not negative",
        ),
        (|fit| fit.until.max_rounds = 0, "fit.max_rounds[0]: 0, expected 1..1000001"),
        (|fit| fit.until.max_rounds = u32::MAX, "fit.max_rounds[0]: 4294967295, expected 1..1000001"),
    ];
    for (change, expected) in changes {
        assert_eq!(with(change), Err(expected.to_owned()));
    }

    // What is no prior at all is not decoded.
    type Numbers = (Vec<f64>, Vec<f64>);
    let decoded =
        |prior: Numbers| check::decoded::<Prior>("prior", &encode(&prior)).map_err(|error| error.to_string());
    assert!(decoded((vec![0.0], vec![1.0])).is_ok());
    for (prior, expected) in [
        ((vec![f64::NAN], vec![1.0]), "mean NaN"),
        ((vec![0.0, 0.0], vec![1.0]), "a covariance of 1 numbers"),
        ((vec![0.0], vec![-9.0]), "not positive definite"),
        ((vec![0.0; 2049], vec![]), "2049"),
    ] {
        let error = decoded(prior).unwrap_err();
        assert!(error.contains(expected), "{error}, expected {expected}");
    }
}

#[test]
fn priors_of_another_grammar_are_refused() {
    let error = |task: &Task| check::work(task).unwrap_err().to_string();
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
        check::answer(&task, &Answer::Fitted(Fitted::Statistics(statistics))).is_ok()
    };
    assert!(check(|_| {}));
    assert!(!check(|statistics| statistics.n_sentences = 5), "the shard has four");
    assert!(!check(|statistics| statistics.n_rounds = 81), "they have 20 each");
    assert!(!check(|statistics| statistics.moments[0].n_sentences = 5));
    assert!(!check(|statistics| statistics.moments.truncate(1)));
    assert!(!check(|statistics| statistics.moments[0].first.truncate(1)));
    assert!(!check(|statistics| statistics.moments[0].second.truncate(1)));
    let unbounded = Answer::Fitted(Fitted::Unbounded { shard: 0, sentence: 3 });
    assert!(matches!(check::answer(&task, &unbounded), Err(Invalid::Range { .. })));
    let unbounded = Answer::Fitted(Fitted::Unbounded { shard: 1, sentence: 0 });
    assert!(matches!(check::answer(&task, &unbounded), Err(Invalid::Range { .. })));
    let of_two = Task { further: vec![task.shard.clone()], ..task.clone() };
    assert_eq!(check::answer(&of_two, &unbounded), Ok(()));

    assert!(!check(|statistics| statistics.moments[0].second.push(0.0)));
    assert!(!check(|statistics| statistics.bound = f64::NAN));
    assert!(!check(|statistics| statistics.moments[0].variance[0] = -1.0));
    assert!(!check(|statistics| statistics.moments[0].first[0] = f64::INFINITY));
    assert!(!check(|statistics| statistics.moments[0].second[0] = f64::NAN));
    assert!(!check(|statistics| statistics.parts.push(ComponentSums { bound: f64::NAN, n_empty: 0 })));
}
