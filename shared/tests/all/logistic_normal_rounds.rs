//! Logistic-normal training as map and reduce, on dependency models with valence: what shards answer, against enumerated trees, and
//! the course of rounds.

use std::sync::Arc;

use grammaton::data::Sentence;
use grammaton::data::tags::families::Families;
use grammaton::grammar::ParamId;
use grammaton::grammar::SymbolId;
use grammaton::models::dmv::families::of_params;
use grammaton::models::dmv::{Event, Side, harmonic};
use grammaton::models::logistic_normal::{
    Multinomials, PointEstimate, Prior, PriorsError, SentenceFitter, Statistics, StopRule,
};
use grammaton::num::{Noise, Wide};
use grammaton::train::logistic_normal::{Failure, Settings, State, Trainer};
use grammaton::train::pcfg::Start;
use grammaton::train::round::Step;
use grammaton::train::trainer::{self, Collect};
use grammaton::work::engine::{ComputeError, Engine};
use grammaton::work::shard::Shard;
use grammaton::work::task::{Answer, Fit, Fitted, Language, Named, Work};

use crate::support::dependencies::{Model, events};
use crate::support::{self, Run, assert_all_close, assert_close};

const TAGS: [&str; 3] = ["N", "V", "D"];

/// Sentences of tags by number; some are equal, and one has a tag alone.
const SENTENCES: [&[u32]; 9] = [
    &[2, 0, 1],
    &[0, 1, 2, 0],
    &[0, 1],
    &[2, 0, 1, 0],
    &[0, 1],
    &[1],
    &[1, 0, 2, 0],
    &[2, 0, 1, 2, 0],
    &[0, 1],
];

fn model() -> Model {
    Model::new(&TAGS.map(str::to_owned))
}

fn multinomials(model: &Model) -> Multinomials {
    Multinomials::new(&model.prepared.grammar).unwrap()
}

fn corpus() -> Vec<Vec<u32>> {
    SENTENCES.map(<[u32]>::to_vec).to_vec()
}

/// From the harmonic start.
fn begin(model: &Model, sentences: &[Vec<u32>], families: &[Option<usize>]) -> State {
    let counts = harmonic::counts(model.layout, sentences, &Default::default());
    let weights = Start::Counts(counts).weights(&model.groups(), 1, 1);
    State::new(&multinomials(model), &weights, families).unwrap()
}

fn alone(model: &Model) -> Vec<Option<usize>> {
    vec![None; model.layout.n_params()]
}

/// Two tags of one family.
fn related(model: &Model) -> Vec<Option<usize>> {
    let families = Families::parse("noun: N D\nverb: V\n", "families").unwrap();
    of_params(model.layout, &model.tags, &families)
}

/// Priors that are alike in nothing.
fn uneven_priors(model: &Model) -> Vec<Prior> {
    let noise = Noise::new(7, 0);
    let prior = |range: std::ops::Range<usize>| {
        let n = range.len();
        let at = |i: usize, j: usize| noise.symmetric((range.start * 100 + i * 10 + j) as u64);
        let mean = (0..n).map(|i| 2.0 * at(i, 9)).collect();
        let entry = |i: usize, j: usize| if i == j { 2.0 + at(i, i) } else { 0.4 * at(i.max(j), i.min(j)) };
        Prior::new(mean, (0..n * n).map(|cell| entry(cell / n, cell % n)).collect()).unwrap()
    };
    multinomials(model).iter().map(prior).collect()
}

fn fit(run: &Run, engine: &Engine, shard: &Named<Shard>, priors: &[Prior], until: StopRule) -> Statistics {
    let work = Work::Fit(Named::new(Fit { priors: priors.to_vec(), until, components: Vec::new() }));
    match run.answer(engine, shard, work) {
        Answer::Fitted(Fitted::Statistics(statistics)) => statistics,
        other => panic!("{other:?}"),
    }
}

/// Every projective tree with one root.
fn all_trees(n: usize) -> Vec<Vec<u32>> {
    let mut found: Vec<Vec<u32>> = vec![Vec::new()];
    for _ in 0..n {
        let longer = |some: Vec<u32>| (0..=n as u32).map(move |head| [&some[..], &[head]].concat());
        found = found.into_iter().flat_map(longer).collect();
    }
    let is_tree = |heads: &Vec<u32>| grammaton::models::dmv::heads::check(n, heads).is_ok();
    found.into_iter().filter(is_tree).collect()
}

fn assert_alike(found: &Statistics, expected: &Statistics, tolerance: f64) {
    assert_eq!(found.n_sentences, expected.n_sentences);
    assert_close(found.bound, expected.bound, tolerance, "bound");
    for (at, (found, expected)) in found.moments.iter().zip(&expected.moments).enumerate() {
        assert_eq!(found.n_sentences, expected.n_sentences, "multinomial {at}");
        assert_all_close(&found.first, &expected.first, tolerance, &format!("first of {at}"));
        assert_all_close(&found.second, &expected.second, tolerance, &format!("second of {at}"));
        assert_all_close(&found.variance, &expected.variance, tolerance, &format!("variance of {at}"));
    }
}

/// The trees of every sentence are listed, and read by the definition of the model.
#[test]
fn a_shard_answers_what_enumeration_says() {
    let (model, until) = (model(), StopRule { tolerance: 1e-9, max_rounds: 100 });
    let (multinomials, priors) = (multinomials(&model), uneven_priors(&model));
    let mut expected = Statistics::new(priors.len());
    let mut fitter = SentenceFitter::default();
    for tags in SENTENCES {
        let of_tree = |heads: &Vec<u32>| -> Vec<ParamId> {
            events(model.layout, tags, heads).into_iter().map(|event| model.layout.param(event)).collect()
        };
        let derivations: Vec<Vec<ParamId>> = all_trees(tags.len()).iter().map(of_tree).collect();
        let used = |&at: &u32| {
            let is_of = |param: &ParamId| multinomials.outcome(*param).unwrap().0 == at as usize;
            derivations.iter().flatten().any(is_of)
        };
        let own: Vec<u32> = (0..multinomials.len() as u32).filter(used).collect();
        let place = |param: ParamId| {
            let (multinomial, outcome) = multinomials.outcome(param).unwrap();
            let before = own.iter().take_while(|&&at| at < multinomial as u32);
            before.map(|&at| multinomials.n_outcomes(at as usize)).sum::<usize>() + outcome
        };
        let parse = |weights: &[f64], counts: &mut [f64]| {
            let ln = |params: &Vec<ParamId>| params.iter().map(|&param| weights[place(param)]).sum::<f64>();
            let shares: Vec<f64> = derivations.iter().map(|params| ln(params).exp()).collect();
            let z: f64 = shares.iter().sum();
            counts.fill(0.0);
            for (params, share) in derivations.iter().zip(shares) {
                params.iter().for_each(|&param| counts[place(param)] += share / z);
            }
            z.ln()
        };
        let found = fitter.fit(&priors, &own, until, parse);
        expected.add(&priors, &fitter, found, 1);
    }
    let run = model.run(&corpus(), u32::MAX);
    assert_eq!(run.shards.len(), 1);
    let found = fit(&run, &Engine::default(), &run.shards[0], &priors, until);
    assert_eq!(found.check(&priors), Ok(()));
    assert_alike(&found, &expected, 1e-9);
    let unused = Event::Attach { head: 2, side: Side::Left, child: 2 };
    let (multinomial, _) = multinomials.outcome(model.layout.param(unused)).unwrap();
    assert!(found.moments[multinomial].n_sentences < 9, "not all sentences have determiners");
}

#[test]
fn shards_add_up_to_the_corpus() {
    let (model, priors) = (model(), uneven_priors(&model()));
    let until = StopRule::default();
    let engine = Engine::default();
    let whole = model.run(&corpus(), u32::MAX);
    let whole = fit(&whole, &engine, &whole.shards[0], &priors, until);
    let cut = model.run(&corpus(), 8);
    assert!(cut.shards.len() > 2);
    let mut sum = Statistics::new(priors.len());
    cut.shards.iter().for_each(|shard| sum.merge(&fit(&cut, &engine, shard, &priors, until)));
    assert_alike(&sum, &whole, 1e-12);
    assert_eq!(sum.n_rounds, whole.n_rounds);
}

#[test]
fn nothing_that_an_engine_keeps_changes_a_bit() {
    let (model, priors) = (model(), uneven_priors(&model()));
    let run = model.run(&corpus(), 12);
    let (keeping, forgetting) = (Engine::default(), Engine::with_memory(0));
    for shard in &run.shards {
        let answers = [&keeping, &forgetting, &keeping]
            .map(|engine| fit(&run, engine, shard, &priors, StopRule::default()));
        assert_eq!(answers[0], answers[1]);
        assert_eq!(answers[0], answers[2]);
    }
}

/// Grammars that are read without forests elsewhere have them here.
#[test]
fn dense_grammars_are_fitted_as_others_are() {
    let names = ["A", "B", "C"];
    let rules = |a: &str| {
        let of_left = |b: &&str| names.map(|c| format!("1 1 {a} --> {b} {c}\n")).concat();
        names.iter().map(of_left).collect::<String>() + &format!("1 1 {a} --> x\n1 1 {a} --> y\n")
    };
    let grammar = support::grammar(&names.map(rules).concat());
    let sentences: Vec<_> = ["x y", "y x x", "x"].map(|text| support::tokens(&grammar, text)).to_vec();
    let run = Run::new(&grammar, &Default::default(), &sentences);
    let groups = grammaton::grammar::groups::Groups::new(&grammar, &Default::default());
    let multinomials = Multinomials::new(&grammar).unwrap();
    let weights = Start::Jitter(0.5).weights(&groups, 1, 1);
    let state = State::new(&multinomials, &weights, &vec![None; groups.n_params()]).unwrap();
    let found = fit(&run, &Engine::default(), &run.shards[0], &state.priors, StopRule::default());
    assert_eq!((found.n_sentences, found.moments.len()), (3, 3));
    assert!(found.total_bound(&state.priors) < 0.0);
}

#[test]
fn equal_sentences_count_as_often_as_they_occur() {
    let (model, priors) = (model(), uneven_priors(&model()));
    let run = model.run(&corpus(), u32::MAX);
    let shard = |multiplicity| {
        let tokens = model.layout.tokens(&[2, 0, 1]);
        Named::new(Shard::Sentences(vec![Sentence::new(tokens, multiplicity)]))
    };
    let engine = Engine::default();
    let [once, thrice] =
        [1, 3].map(|multiplicity| fit(&run, &engine, &shard(multiplicity), &priors, StopRule::default()));
    let mut sum = once.clone();
    (0..2).for_each(|_| sum.merge(&once));
    assert_alike(&thrice, &sum, 1e-14);
    assert_eq!(thrice.n_rounds, sum.n_rounds);
}

#[test]
fn what_does_not_fit_is_refused() {
    let model = model();
    let run = model.run(&corpus(), u32::MAX);
    let ask = |priors: Vec<Prior>, shard: Shard| {
        let work = Work::Fit(Named::new(Fit { priors, until: StopRule::default(), components: Vec::new() }));
        let (grammar, lexicon) = (run.grammar.clone(), run.lexicon.clone());
        Engine::default().run(&grammaton::work::task::Task {
            language: Some(Language { grammar, lexicon }),
            shard: Named::new(shard),
            work,
            further: Vec::new(),
        })
    };
    let priors = uneven_priors(&model);
    let sentences = || run.shards[0].value.as_ref().clone();
    let error = |problem: PriorsError| Err(ComputeError::Priors(problem));
    assert_eq!(
        ask(priors[1..].to_vec(), sentences()),
        error(PriorsError::Number { found: 18, expected: 19 })
    );
    let mut swapped = priors;
    swapped.swap(0, 1);
    let found = ask(swapped, sentences());
    assert_eq!(found, error(PriorsError::Outcomes { at: 0, found: 2, expected: 3 }));
}

/// Law: of any prior that is accepted, every sentence with a derivation has a finite bound.
#[test]
fn priors_at_the_limits_have_finite_bounds() {
    let model = model();
    let run = model.run(&corpus(), u32::MAX);
    for mean in [vec![0.0, 0.0, 0.0], vec![1e100, -1e100, 0.0]] {
        for variance in [1e-300, 1e-100, 1.0, 1e100, 1e300] {
            let mut priors = uneven_priors(&model);
            let variances = vec![variance, 0.0, 0.0, 0.0, variance, 0.0, 0.0, 0.0, variance];
            priors[0] = Prior::new(mean.clone(), variances).unwrap();
            let fit = Fit { priors, until: StopRule::default(), components: Vec::new() };
            let found = run.answer(&Engine::default(), &run.shards[0], Work::Fit(Named::new(fit)));
            let Answer::Fitted(Fitted::Statistics(statistics)) = found else {
                panic!("{mean:?}, {variance:e}: {found:?}")
            };
            assert!(statistics.bound.is_finite(), "{mean:?}, {variance:e}: {}", statistics.bound);
        }
    }
}

/// A run under way.
struct Training {
    engine: Engine,
    run: Run,
    trainer: Trainer,
}

impl Training {
    fn new(model: &Model, sentences: &[Vec<u32>], until: StopRule, state: State) -> Training {
        let settings =
            Settings { until, estimate: PointEstimate::Softmax, tolerance: 0.0, constrained: None };
        let trainer = Trainer::new(settings, state);
        Training { engine: Engine::default(), run: model.run(sentences, 40), trainer }
    }

    /// Goes on for some rounds; their bounds.
    fn rounds(&mut self, n: usize) -> Vec<f64> {
        let round = |_| {
            let indexes = vec![Arc::default(); self.run.shards.len()];
            let answer = |shard: usize, work| self.run.answer(&self.engine, &self.run.shards[shard], work);
            match trainer::round(&mut self.trainer, &indexes, Collect::default(), answer).unwrap() {
                Step::Next(report) => report.bound.unwrap(),
                step => panic!("{step:?}"),
            }
        };
        (0..n).map(round).collect()
    }
}

/// Sentences are fitted until nothing changes, so that a round falls short of no other for want of rounds within sentences.
#[test]
fn the_bound_never_falls() {
    let (model, until) = (model(), StopRule { tolerance: 1e-13, max_rounds: 5000 });
    for families in [alone(&model), related(&model)] {
        let state = begin(&model, &corpus(), &families);
        let bounds = Training::new(&model, &corpus(), until, state).rounds(30);
        for pair in bounds.windows(2) {
            assert!(pair[1] >= pair[0] - 1e-9 * pair[0].abs(), "{} after {}", pair[1], pair[0]);
        }
        assert!(bounds[29] > bounds[0] + 1.0);
    }
}

#[test]
fn a_saved_state_goes_on_to_the_same_bits() {
    let model = model();
    let state = begin(&model, &corpus(), &related(&model));
    let mut whole = Training::new(&model, &corpus(), StopRule::default(), state.clone());
    whole.rounds(5);
    let mut half = Training::new(&model, &corpus(), StopRule::default(), state);
    half.rounds(2);
    let saved = bincode::serde::encode_to_vec(half.trainer.state(), bincode::config::legacy()).unwrap();
    let (state, _): (State, usize) =
        bincode::serde::decode_from_slice(&saved, bincode::config::legacy()).unwrap();
    assert_eq!(state.check(&multinomials(&model)), Ok(()));
    let mut rest = Training::new(&model, &corpus(), StopRule::default(), state);
    rest.rounds(3);
    assert_eq!(rest.trainer.state(), whole.trainer.state());
}

#[test]
fn states_of_others_are_refused() {
    let model = model();
    let state = begin(&model, &corpus(), &alone(&model));
    let check = |change: fn(&mut State)| {
        let mut state = state.clone();
        change(&mut state);
        state.check(&multinomials(&model)).unwrap_err().to_string()
    };
    assert_eq!(check(|state| state.priors.truncate(3)), "3 priors, expected 19");
    assert_eq!(check(|state| state.past.bound = Some(f64::NAN)), "its bound is no number");
    let most = usize::MAX;
    assert_eq!(check(|state| state.past.rounds = usize::MAX), format!("it has {most} rounds behind it"));
}

#[test]
fn starts_without_a_weight_for_a_rule_are_refused() {
    let model = model();
    let mut weights = Start::Uniform.weights(&model.groups(), 1, 1);
    weights[2] = Wide::ZERO;
    let failure = State::new(&multinomials(&model), &weights, &alone(&model)).unwrap_err();
    assert!(matches!(failure, Failure::Prior { multinomial: 0, .. }));
    assert_eq!(
        failure.to_string(),
        "multinomial 0: outcome 1 has mean -inf, expected a number between -1e100 and 1e100; smooth the grammar to start from"
    );
}

#[test]
fn families_relate_attachments_and_nothing_else() {
    let model = model();
    let state = begin(&model, &corpus(), &related(&model));
    let multinomials = multinomials(&model);
    for (prior, range) in state.priors.iter().zip(multinomials.iter()) {
        let event = model.layout.event(ParamId(range.start as u32)).unwrap();
        let n = range.len();
        let mut expected = vec![0.0; n * n];
        (0..n).for_each(|at| expected[at * n + at] = 1.0);
        if matches!(event, Event::Attach { .. }) {
            // nouns are the first tag, determiners the third
            (expected[2], expected[6]) = (0.5, 0.5);
        }
        assert_eq!(prior.covariance(), expected, "{event:?}");
    }
    assert_eq!(multinomials.len(), 1 + 3 * 2 * 3);
}

/// Sentences are drawn from a grammar, and training begins at a flatter one.
#[test]
fn training_approaches_the_generating_parameters() {
    let model = model();
    let (groups, multinomials) = (model.groups(), multinomials(&model));
    let mut truth = model.prepared.grammar.as_ref().clone();
    let noise = Noise::new(11, 0);
    for (event, (rule, at)) in model.layout.events().zip(truth.rules.iter_mut().zip(0..)) {
        // heads have few children, so that sentences are short
        let stop = if matches!(event, Event::Stop { .. }) { 1.5 } else { 0.0 };
        rule.alpha = (stop + 2.0 * noise.symmetric(at)).exp();
    }
    let weights = groups.normalised(&groups.alpha(&truth));
    let flat: Vec<f64> = weights.iter().map(|weight| weight.to_f64().sqrt()).collect();
    let halves = support::draw(&truth, 400, 5);
    let first = model.layout.tokens(&[0])[0].0;
    let tags = |halves: Vec<SymbolId>| halves.iter().step_by(2).map(|half| (half.0 - first) / 2).collect();
    let sentences: Vec<Vec<u32>> =
        halves.into_iter().map(tags).filter(|tags: &Vec<u32>| tags.len() <= 8).collect();
    assert!(sentences.len() > 200);

    let start = Start::Counts(flat).weights(&groups, 1, 1);
    let state = State::new(&multinomials, &start, &alone(&model)).unwrap();
    let mut training = Training::new(&model, &sentences, StopRule::default(), state);
    // KL from the truth, of roots and of attachments to the right of nouns, which are many
    let distance = |trainer: &Trainer| -> f64 {
        let found = trainer.params().predictive_weights(&model.prepared.grammar);
        let attach = model.layout.param(Event::Attach { head: 0, side: Side::Right, child: 0 }).index();
        let divergence = |at: usize| weights[at].to_f64() * (weights[at].ln() - found[at].ln());
        (1..4).chain(attach..attach + 3).map(divergence).sum()
    };
    let before = distance(&training.trainer);
    training.rounds(60);
    let after = distance(&training.trainer);
    assert!(after < 0.7 * before, "{before} to {after}");
}
