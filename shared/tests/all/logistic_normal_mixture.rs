//! Mixtures of constrained components as map and reduce: answers of shards against enumerated trees, and the course of rounds.

use std::sync::Arc;

use grammaton::grammar::ParamId;
use grammaton::models::dmv::constraint::{ArcClass, Component, Unsuited};
use grammaton::models::dmv::harmonic;
use grammaton::models::logistic_normal::{
    ComponentSums, Multinomials, PointEstimate, Prior, SentenceFitter, Statistics, StopRule,
};
use grammaton::num::Noise;
use grammaton::train::logistic_normal::{Constrained, Settings, State, Trainer};
use grammaton::train::mixture::{Limit, Mixture};
use grammaton::train::pcfg::Start;
use grammaton::train::round::{RoundReport, Step};
use grammaton::train::trainer::{self, Collect, Trainer as _};
use grammaton::work::engine::{ComputeError, Engine};
use grammaton::work::shard::Shard;
use grammaton::work::task::{Answer, Fit, Fitted, Language, Named, Task, Weighted, Work};

use crate::support::dependencies::{Model, all_trees, events};
use crate::support::{self, Run, assert_all_close, assert_close};

/// Some are equal, and some have no verb.
const SENTENCES: [&[u32]; 8] =
    [&[2, 0, 1], &[0, 1, 2, 0], &[0, 1], &[2, 0, 2, 0], &[0, 1], &[1], &[2, 0, 1, 2, 0], &[0]];
/// Of those, with multiplicity, in which no verb can be the root.
const N_WITHOUT_VERB: u64 = 2;

fn model() -> Model {
    Model::new(&["NOUN", "VERB", "DET"].map(str::to_owned))
}

fn corpus() -> Vec<Vec<u32>> {
    SENTENCES.map(<[u32]>::to_vec).to_vec()
}

fn multinomials(model: &Model) -> Multinomials {
    Multinomials::new(&model.prepared.grammar).unwrap()
}

/// Priors that are alike in nothing.
fn uneven_priors(model: &Model) -> Vec<Prior> {
    let noise = Noise::new(3, 0);
    let prior = |range: std::ops::Range<usize>| {
        let n = range.len();
        let at = |i: usize, j: usize| noise.symmetric((range.start * 100 + i * 10 + j) as u64);
        let entry = |i: usize, j: usize| if i == j { 2.0 + at(i, i) } else { 0.4 * at(i.max(j), i.min(j)) };
        let covariance = (0..n * n).map(|cell| entry(cell / n, cell % n)).collect();
        Prior::new((0..n).map(|i| 2.0 * at(i, 9)).collect(), covariance).unwrap()
    };
    multinomials(model).iter().map(prior).collect()
}

fn components() -> Vec<Component> {
    ["right-attach", "verb-as-root", "short-dep"].map(|name| Component::built_in(name).unwrap()).to_vec()
}

/// Whether a tree is of the base (0) or of a component, from their definitions; "short" is 4, which only trees of five words exceed.
fn obeys(component: usize, tags: &[u32], heads: &[u32]) -> bool {
    let arcs = || (1..).zip(heads).filter(|(_, head)| **head != 0).map(|(child, &head)| (head, child as u32));
    match component {
        0 => true,
        1 => arcs().all(|(head, child)| head > child),
        2 => heads.iter().zip(tags).all(|(&head, &tag)| head != 0 || tag == 1),
        3 => arcs().all(|(head, child)| head.abs_diff(child) <= 4),
        _ => unreachable!("there are three"),
    }
}

fn answer(run: &Run, engine: &Engine, shard: &Named<Shard>, fit: Fit) -> Statistics {
    match run.answer(engine, shard, Work::Fit(Named::new(fit))) {
        Answer::Fitted(Fitted::Statistics(statistics)) => statistics,
        other => panic!("{other:?}"),
    }
}

fn weighted(components: Vec<Component>, weights: &[f64]) -> Vec<Weighted> {
    components.into_iter().zip(weights).map(|(component, &weight)| Weighted { component, weight }).collect()
}

/// A fit to the trees of a sentence that `obeys`, each read by the definition of the model, with the multinomials of all trees.
fn enumerated(
    model: &Model,
    fitter: &mut SentenceFitter,
    priors: &[Prior],
    until: StopRule,
    tags: &[u32],
    component: usize,
) -> Option<grammaton::models::logistic_normal::sentence::Fit> {
    let multinomials = multinomials(model);
    let params = |heads: &Vec<u32>| -> Vec<ParamId> {
        events(model.layout, tags, heads).into_iter().map(|event| model.layout.param(event)).collect()
    };
    let trees = all_trees(tags.len());
    let uses = |at: usize| {
        let is_of = |param: ParamId| multinomials.outcome(param).unwrap().0 == at;
        trees.iter().flat_map(params).any(is_of)
    };
    let own: Vec<u32> = (0..multinomials.len()).filter(|&at| uses(at)).map(|at| at as u32).collect();
    let place = |param: ParamId| {
        let (multinomial, outcome) = multinomials.outcome(param).unwrap();
        let before = own.iter().take_while(|&&at| at < multinomial as u32);
        before.map(|&at| multinomials.n_outcomes(at as usize)).sum::<usize>() + outcome
    };
    let allowed = trees.iter().filter(|heads| obeys(component, tags, heads));
    let derivations: Vec<Vec<usize>> =
        allowed.map(|heads| params(heads).into_iter().map(place).collect()).collect();
    if derivations.is_empty() {
        return None;
    }
    let parse = |weights: &[f64], counts: &mut [f64]| {
        let shares: Vec<f64> = derivations
            .iter()
            .map(|places| places.iter().map(|&place| weights[place]).sum::<f64>().exp())
            .collect();
        let z: f64 = shares.iter().sum();
        counts.fill(0.0);
        for (places, share) in derivations.iter().zip(shares) {
            places.iter().for_each(|&place| counts[place] += share / z);
        }
        z.ln()
    };
    Some(fitter.fit(priors, &own, until, parse))
}

#[test]
fn a_shard_answers_what_enumeration_says() {
    let (model, until) = (model(), StopRule { tolerance: 1e-9, max_rounds: 100 });
    let (priors, weights) = (uneven_priors(&model), [0.2, 0.15, 0.05]);
    let mut expected = Statistics::new(priors.len());
    expected.parts = vec![ComponentSums::default(); 4];
    let mut fitter = SentenceFitter::default();
    for tags in SENTENCES {
        let mut fit = |component| {
            let fit = enumerated(&model, &mut fitter, &priors, until, tags, component);
            fit.map(|fit| (fitter.clone(), fit))
        };
        let (base, of_base) = fit(0).unwrap();
        expected.count(&base, 1);
        let mut left = 1.0;
        expected.parts[0].bound += of_base.bound;
        for (component, weight) in (1..).zip(weights) {
            let part = &mut expected.parts[component];
            match fit(component) {
                Some((own, fit)) => {
                    part.bound += fit.bound;
                    expected.mix(&priors, &own, fit, 1, weight);
                    left -= weight;
                }
                None => {
                    part.bound += of_base.bound;
                    part.n_empty += 1;
                }
            }
        }
        expected.mix(&priors, &base, of_base, 1, left);
    }
    let run = model.run(&corpus(), u32::MAX);
    let components = weighted(components(), &weights);
    let fit = Fit { priors: priors.clone(), until, components };
    let found = answer(&run, &Engine::default(), &run.shards[0], fit);
    assert_eq!(found.check(&priors), Ok(()));
    assert_eq!((found.n_sentences, found.n_rounds), (expected.n_sentences, expected.n_rounds));
    assert_close(found.bound, expected.bound, 1e-9, "bound");
    for (at, (found, expected)) in found.moments.iter().zip(&expected.moments).enumerate() {
        assert_eq!(found.n_sentences, expected.n_sentences, "multinomial {at}");
        assert_all_close(&found.first, &expected.first, 1e-9, &format!("first of {at}"));
        assert_all_close(&found.second, &expected.second, 1e-9, &format!("second of {at}"));
        assert_all_close(&found.variance, &expected.variance, 1e-9, &format!("variance of {at}"));
    }
    for (at, (found, expected)) in found.parts.iter().zip(&expected.parts).enumerate() {
        assert_eq!(found.n_empty, expected.n_empty, "component {at}");
        assert_close(found.bound, expected.bound, 1e-9, &format!("component {at}"));
    }
    assert_eq!(found.parts.iter().map(|part| part.n_empty).collect::<Vec<_>>(), [0, 0, N_WITHOUT_VERB, 0]);
    // The bound is linear in the weights, empty components and all.
    let bounds = found.part_bounds(&priors);
    let mixed: f64 = [0.6, 0.2, 0.15, 0.05].iter().zip(&bounds).map(|(weight, bound)| weight * bound).sum();
    assert_close(found.total_bound(&priors), mixed, 1e-12, "Σ λ_r F_r");
    assert!(bounds[1..].iter().all(|&bound| bound <= bounds[0]), "{bounds:?}");
}

#[test]
fn components_without_weight_or_without_trees_leave_all_to_the_base() {
    let (model, engine, until) = (model(), Engine::default(), StopRule::default());
    let (run, priors) = (model.run(&corpus(), u32::MAX), uneven_priors(&model));
    let ask = |components| {
        let priors = priors.clone();
        answer(&run, &engine, &run.shards[0], Fit { priors, until, components })
    };
    let alone = ask(Vec::new());
    assert_eq!(alone.parts, []);
    let any = || vec!["any".to_owned()];
    let no_tree = Component {
        name: "verb-alone".to_owned(),
        forbid: vec![ArcClass { head: any(), child: any(), side: None }],
        ..Component::built_in("verb-as-root").unwrap()
    };
    for (component, weight) in [(no_tree, 0.4), (Component::built_in("right-attach").unwrap(), 0.0)] {
        let mixed = ask(weighted(vec![component], &[weight]));
        let n_empty = if weight > 0.0 { 7 } else { 0 };
        assert_eq!(mixed.parts[1].n_empty, n_empty, "only the verb by itself is its own root");
        assert_eq!((mixed.n_sentences, mixed.parts.len()), (alone.n_sentences, 2));
        assert_close(mixed.parts[0].bound, alone.bound, 1e-14, "bound");
        assert_close(mixed.bound, alone.bound, if weight > 0.0 { 1e-12 } else { 0.0 }, "bound");
    }
}

#[test]
fn nothing_that_an_engine_keeps_changes_a_bit() {
    let (model, until) = (model(), StopRule::default());
    let (run, priors) = (model.run(&corpus(), 12), uneven_priors(&model));
    let (keeping, forgetting) = (Engine::default(), Engine::with_memory(0));
    let some = || weighted(components(), &[0.2, 0.15, 0.05]);
    let one = || weighted(components()[1..2].to_vec(), &[0.3]);
    for shard in &run.shards {
        for components in [some(), one(), Vec::new(), some()] {
            let ask = |engine| {
                let (priors, components) = (priors.clone(), components.clone());
                answer(&run, engine, shard, Fit { priors, until, components })
            };
            assert_eq!(ask(&keeping), ask(&forgetting));
        }
    }
}

#[test]
fn what_does_not_fit_is_refused() {
    let (model, until) = (model(), StopRule::default());
    let run = model.run(&corpus(), u32::MAX);
    let priors = uneven_priors(&model);
    let unknown = Component { roots: vec!["VREB".to_owned()], ..components()[1].clone() };
    let work = |component| {
        let components = weighted(vec![component], &[0.1]);
        Work::Fit(Named::new(Fit { priors: priors.clone(), until, components }))
    };
    let (grammar, lexicon, shard) = (run.grammar.clone(), run.lexicon.clone(), run.shards[0].clone());
    let task = Task {
        language: Some(Language { grammar, lexicon }),
        shard,
        work: work(unknown),
        further: Vec::new(),
    };
    let error = Engine::default().run(&task).unwrap_err().to_string();
    assert_eq!(
        error,
        "the components do not fit the grammar: `roots` of component `verb-as-root`: nothing in [\"VREB\"] is a tag of the \
         corpus, or a class with one; did you mean `VERB`?"
    );
    let other = support::grammar("1 1 S --> a S\n1 1 S --> a\n");
    let language = Some(Language { grammar: Named::new(other), lexicon: run.lexicon.clone() });
    let task = Task { language, work: work(components().remove(0)), ..task };
    assert_eq!(Engine::default().run(&task), Err(ComputeError::Components(Unsuited::Grammar)));
}

/// A run under way.
struct Training {
    engine: Engine,
    run: Run,
    trainer: Trainer,
}

impl Training {
    fn new(model: &Model, settings: Settings, state: Option<State>) -> Training {
        let counts = harmonic::counts(model.layout, &corpus(), &Default::default());
        let weights = Start::Counts(counts).weights(&model.groups(), 1, 1);
        let alone = vec![None; model.layout.n_params()];
        let new = || {
            let state = State::new(&multinomials(model), &weights, &alone).unwrap();
            match &settings.constrained {
                Some(those) => state.with_mixture(&those.mixture).unwrap(),
                None => state,
            }
        };
        let state = state.unwrap_or_else(new);
        assert_eq!((state.check(&multinomials(model)), state.suits(&settings)), (Ok(()), Ok(())));
        let trainer = Trainer::new(settings, state);
        Training { engine: Engine::default(), run: model.run(&corpus(), 20), trainer }
    }

    fn round(&mut self) -> RoundReport {
        let indexes = vec![Arc::default(); self.run.shards.len()];
        let answer = |shard: usize, work| self.run.answer(&self.engine, &self.run.shards[shard], work);
        match trainer::round(&mut self.trainer, &indexes, Collect::default(), answer).unwrap() {
            Step::Next(report) => report,
            step => panic!("{step:?}"),
        }
    }

    fn rounds(&mut self, n: usize) -> Vec<RoundReport> {
        (0..n).map(|_| self.round()).collect()
    }

    fn weight_of_base(&self) -> f64 {
        self.trainer.report().components[0].1.weight
    }
}

fn settings(until: StopRule, tolerance: f64, inequalities: &[&str], limit: Option<Limit>) -> Settings {
    let names: Vec<String> = components().into_iter().map(|component| component.name).collect();
    let inequalities: Vec<String> = inequalities.iter().map(|&text| text.to_owned()).collect();
    let mixture = Mixture::new(&names, &inequalities, limit).unwrap();
    let constrained = Some(Constrained { components: components(), mixture });
    Settings { until, estimate: PointEstimate::Softmax, tolerance, constrained }
}

const SAME: [&str; 2] = ["right-attach = verb-as-root", "verb-as-root = short-dep"];
/// So that a round falls short of no other for want of rounds within sentences.
const TO_THE_END: StopRule = StopRule { tolerance: 1e-13, max_rounds: 5000 };

#[test]
fn the_bound_never_falls_where_weights_have_the_same_choice() {
    let fixed = ["base = 0.7", SAME[0], SAME[1]];
    let free = ["base <= 0.8", "base >= 0.3"];
    for inequalities in [&fixed[..], &free[..]] {
        let mut training = Training::new(&model(), settings(TO_THE_END, 0.0, inequalities, None), None);
        let bounds: Vec<f64> = training.rounds(20).into_iter().map(|report| report.bound.unwrap()).collect();
        for pair in bounds.windows(2) {
            assert!(pair[1] >= pair[0] - 1e-9 * pair[0].abs(), "{} after {}", pair[1], pair[0]);
        }
        assert!(bounds[19] > bounds[0] + 1.0);
        let shares = training.trainer.report().components;
        let names: Vec<&str> = shares.iter().map(|(name, _)| *name).collect();
        assert_eq!(names, ["base", "right-attach", "verb-as-root", "short-dep"]);
        let sum: f64 = shares.iter().map(|(_, share)| share.weight * share.bound).sum();
        assert_close(sum, bounds[19], 1e-12, "Σ λ_r F_r");
        assert_eq!(shares[2].1.n_empty, N_WITHOUT_VERB);
    }
}

#[test]
fn a_run_does_not_converge_while_the_limit_rises() {
    let limit = Limit { from: 0.85, step: 0.05, to: 0.95 };
    let all_converge = settings(StopRule::default(), 1e9, &SAME, Some(limit));
    let mut training = Training::new(&model(), all_converge, None);
    for (base, converged) in [(0.85, false), (0.9, false), (0.95, false), (0.95, true)] {
        let report = training.round();
        assert_eq!(report.converged, converged);
        assert_close(training.weight_of_base(), base, 1e-12, "the base's weight");
    }
}

#[test]
fn a_saved_state_goes_on_to_the_same_bits() {
    let (model, settings) = (model(), settings(StopRule::default(), 0.0, &SAME, Some(Limit::default())));
    let mut whole = Training::new(&model, settings.clone(), None);
    let mut half = Training::new(&model, settings.clone(), None);
    whole.rounds(5);
    half.rounds(2);
    let config = bincode::config::legacy();
    let saved = bincode::serde::encode_to_vec(half.trainer.state(), config).unwrap();
    let (state, _): (State, usize) = bincode::serde::decode_from_slice(&saved, config).unwrap();
    let mut rest = Training::new(&model, settings.clone(), Some(state.clone()));
    rest.rounds(3);
    assert_eq!(rest.trainer.state(), whole.trainer.state());

    let alone = Settings { constrained: None, ..settings };
    assert_eq!(state.suits(&alone).unwrap_err().to_string(), "it has weights of 4 components, expected 0");
    for weights in [vec![0.5, 0.6, 0.0, 0.0], vec![1.5, -0.5, 0.0, 0.0], vec![f64::NAN; 4]] {
        let error = State { weights, ..state.clone() }.check(&multinomials(&model)).unwrap_err();
        assert_eq!(error.to_string(), "its weights of components are not of 0 or more with sum 1");
    }
}
