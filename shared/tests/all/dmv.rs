//! The dependency model with valence against its definition: enumerated trees, sums of counts, slopes, trainers.

use std::sync::Arc;

use grammaton::data::Sentence;
use grammaton::data::generate;
use grammaton::forest::chains::Chains;
use grammaton::forest::dense::Dense;
use grammaton::grammar::lexicon::Lexicon;
use grammaton::grammar::tree::Tree;
use grammaton::models::decode::{Decode, Decoder};
use grammaton::models::dmv::heads::{NotProjective, check, heads, tree};
use grammaton::models::dmv::{Layout, harmonic};
use grammaton::models::pcfg::trees;
use grammaton::models::sampler::Hyper;
use grammaton::num::Wide;
use grammaton::train::anneal::Anneal;
use grammaton::train::chain as sampler;
use grammaton::train::chain::Trainer;
use grammaton::train::pcfg::{Method, Start};
use grammaton::train::round::Step;
use grammaton::train::trainer::{self, Collect, Trainer as _};
use grammaton::work::engine::{ComputeError, Engine};
use grammaton::work::shard::Shard;
use grammaton::work::task::{Answer, Language, Named, Task, Work};
use proptest::prelude::*;

use crate::support::dependencies::{
    Model, Training, all_trees, events, is_projective, random_logs, random_tags, sums,
};
use crate::support::{Examined, assert_all_close, assert_close, wide};

fn model(n_tags: usize) -> Model {
    Model::new(&(0..n_tags).map(|tag| format!("T{tag}")).collect::<Vec<_>>())
}

fn extended(n_tags: usize) -> Model {
    Model::of_layout(&model(n_tags).tags, Layout::extended(n_tags))
}

#[test]
fn the_number_of_trees_is_exact() {
    // Binomial(3n − 2, n − 1) / n of them.
    let counts: Vec<usize> = (1..=5).map(|n| all_trees(n).len()).collect();
    assert_eq!(counts, [1, 2, 7, 30, 143]);
    for model in [model(3), extended(3)] {
        let ones = vec![Wide::ONE; model.layout.n_params()];
        for (n, &count) in (1..).zip(&counts) {
            let z = model.parse(&random_tags(n, 3, 1), &ones).unwrap().log_z;
            assert_close(z, (count as f64).ln(), 1e-13, "one derivation a tree");
        }
    }
}

#[test]
fn posteriors_and_trees_agree_with_enumeration() {
    [model(3), extended(3)].iter().for_each(assert_agrees_with_enumeration);
}

fn assert_agrees_with_enumeration(model: &Model) {
    for (n, seed) in (1..=5).flat_map(|n| (0..4).map(move |seed| (n, seed))) {
        let (tags, logs) = (random_tags(n, 3, seed), random_logs(model.layout, seed));
        let what = format!("{n} words, seed {seed}");
        let trees = all_trees(n);
        let params = |heads: &Vec<u32>| -> Vec<usize> {
            events(model.layout, &tags, heads)
                .into_iter()
                .map(|event| model.layout.param(event).index())
                .collect()
        };
        let weights: Vec<f64> = trees
            .iter()
            .map(|heads| params(heads).into_iter().map(|at| logs[at]).sum::<f64>().exp())
            .collect();
        let z: f64 = weights.iter().sum();
        let mut counts = vec![0.0; logs.len()];
        let mut arcs = vec![vec![0.0; n + 1]; n + 1];
        for (heads, weight) in trees.iter().zip(&weights) {
            params(heads).into_iter().for_each(|at| counts[at] += weight / z);
            (1..).zip(heads).for_each(|(child, &head)| arcs[head as usize][child] += weight / z);
        }
        let sum = |heads: &[u32]| -> f64 {
            (1..).zip(heads).map(|(child, &head)| arcs[head as usize][child]).sum()
        };

        let totals =
            model.run(std::slice::from_ref(&tags), 100).expect(&Default::default(), &wide(&logs), false);
        assert_close(totals.log_z, z.ln(), 1e-13, &what);
        assert_all_close(&totals.counts[1..], &counts[1..], 1e-12, &what);
        let parsed = model.parse(&tags, &wide(&logs)).unwrap();
        assert_close(parsed.log_z, z.ln(), 1e-13, &what);
        for (head, child) in (0..=n).flat_map(|head| (1..=n).map(move |child| (head, child))) {
            assert_close(parsed.arcs.posterior(head, child), arcs[head][child], 1e-12, &what);
        }
        let best = weights.iter().copied().fold(0.0, f64::max);
        assert_close(parsed.viterbi.0, best.ln(), 1e-13, &what);
        let found = trees.iter().position(|heads| *heads == parsed.viterbi.1).unwrap();
        assert_close(weights[found].ln(), best.ln(), 1e-13, &what);
        let best = trees.iter().map(|heads| sum(heads)).fold(0.0, f64::max);
        assert_close(parsed.mbr.0, best, 1e-12, &what);
        assert_close(sum(&parsed.mbr.1), best, 1e-12, &what);
        assert!(check(n, &parsed.mbr.1).is_ok(), "{what}: {:?}", parsed.mbr.1);
    }
}

#[test]
fn tasks_are_answered_with_the_same_trees() {
    [model(3), extended(3)].iter().for_each(assert_answers_with_the_same_trees);
}

fn assert_answers_with_the_same_trees(model: &Model) {
    let logs = random_logs(model.layout, 8);
    let sentences: Vec<Vec<u32>> = (1..=6).map(|n| random_tags(n, 3, n as u64)).collect();
    let items = sentences.iter().map(|tags| Sentence::new(model.layout.tokens(tags), 1));
    let decoders = vec![Decoder::Viterbi, Decoder::MbrArcs];
    let with = Decode {
        weights: wide(&logs),
        segments: Vec::new(),
        decoders,
        trees: true,
        spans: false,
        open: true,
    };
    let mut task = Task {
        language: Some(Language {
            grammar: Named::new(model.prepared.grammar.as_ref().clone()),
            lexicon: Named::new(Lexicon::default()),
        }),
        shard: Named::new(Shard::Sentences(items.collect())),
        work: Work::Decode(Named::new(with)),
        further: Vec::new(),
    };
    let Ok(Answer::Decoded(decoded)) = Engine::default().run(&task) else { panic!("a decoding") };
    for (tags, decoded) in sentences.iter().zip(decoded) {
        let expected = model.parse(tags, &wide(&logs)).unwrap();
        assert_close(decoded.log_z, expected.log_z, 1e-12, "log Z");
        let found = |tree: &String| heads(&Tree::parse(tree).unwrap()).unwrap().1;
        assert_eq!(decoded.trees.iter().map(found).collect::<Vec<_>>(), [expected.viterbi.1, expected.mbr.1]);
    }
    let mut other = model.prepared.grammar.as_ref().clone();
    other.symbols[0] = "T".to_owned();
    task.language.as_mut().unwrap().grammar = Named::new(other);
    assert_eq!(Engine::default().run(&task), Err(ComputeError::NotDependencies));
}

#[test]
fn arcs_that_cannot_be_do_not_keep_mbr_from_a_tree() {
    // All weight is on the chain 1 → 2 → 3.
    let model = model(3);
    let mut weights = vec![Wide::ZERO; model.layout.n_params()];
    weights[0] = Wide::ONE;
    for event in events(model.layout, &[0, 1, 2], &[0, 1, 2]) {
        weights[model.layout.param(event).index()] = Wide::ONE;
    }
    let parsed = model.parse(&[0, 1, 2], &weights).unwrap();
    assert_eq!((parsed.log_z, parsed.mbr.0, &parsed.mbr.1), (0.0, 3.0, &vec![0, 1, 2]));
    assert!(model.parse(&[0, 2, 1], &weights).is_none());
}

#[test]
fn counts_are_slopes_of_log_z() {
    let model = model(3);
    let logs = random_logs(model.layout, 7);
    let run = model.run(&[random_tags(7, 3, 7), random_tags(4, 3, 8), random_tags(4, 3, 8)], 100);
    let engine = Default::default();
    let counts = run.expect(&engine, &wide(&logs), false).counts;
    assert!(counts[1..].iter().filter(|&&count| count > 0.0).count() > 30, "{counts:?}");
    for at in 1..logs.len() {
        let log_z = |step: f64| {
            let mut logs = logs.clone();
            logs[at] += step;
            run.expect(&engine, &wide(&logs), false).log_z
        };
        let slope = (log_z(1e-4) - log_z(-1e-4)) / 2e-4;
        assert!((slope - counts[at]).abs() < 1e-6, "{at}: {slope}, {}", counts[at]);
    }
}

#[track_caller]
fn assert_laws(layout: Layout, counts: &[f64], sentences: &[Vec<u32>], what: &str) {
    let (m, n) = (sentences.len() as f64, sentences.iter().map(Vec::len).sum::<usize>() as f64);
    let [roots, stops, first, later, attachments] = sums(layout, counts);
    assert_close(roots, m, 1e-11, &format!("{what}: a root a sentence"));
    assert_close(stops, 2.0 * n, 1e-11, &format!("{what}: two stops a word"));
    assert_close(first + later, n - m, 1e-11, &format!("{what}: a word that is no root is a child"));
    assert_close(attachments, n - m, 1e-11, &format!("{what}: and is attached"));
    // What is decided first is decided for either side of every word.
    let none: f64 = (0..layout.n_tags() as u32)
        .flat_map(|head| {
            [(head, grammaton::models::dmv::Side::Left), (head, grammaton::models::dmv::Side::Right)]
        })
        .flat_map(|(head, side)| {
            let valence = grammaton::models::dmv::Valence::NoChild;
            use grammaton::models::dmv::Event::{Continue, Stop};
            [Stop { head, side, valence }, Continue { head, side, valence }]
        })
        .map(|event| counts[layout.param(event).index()])
        .sum();
    assert_close(none, 2.0 * n, 1e-11, &format!("{what}: first decisions"));
}

#[test]
fn long_sentences_keep_the_laws() {
    let model = model(5);
    let sentences = vec![random_tags(40, 5, 1), random_tags(25, 5, 2), random_tags(1, 5, 3)];
    let totals =
        model.run(&sentences, 30).expect(&Default::default(), &wide(&random_logs(model.layout, 3)), false);
    assert_laws(model.layout, &totals.counts, &sentences, "expected");
}

fn small_corpus() -> Vec<Vec<u32>> {
    (0..30).map(|seed| random_tags(1 + seed as usize % 7, 4, seed)).collect()
}

#[test]
fn every_method_trains_it() {
    let (model, sentences) = (model(4), small_corpus());
    let start = || Start::Counts(harmonic::counts(model.layout, &sentences, &Default::default()));
    for method in [
        Method::Em,
        Method::MapEm,
        Method::Vb { fit_alpha: false },
        Method::Vb { fit_alpha: true },
        Method::CollapsedVb,
        Method::Gibbs,
    ] {
        for start in [start(), Start::Jitter(0.5)] {
            let mut training = Training::new(&model, model.run(&sentences, 50), method, start);
            // That the bound never falls is checked by the trainer itself; that it rises is the test here.
            let bounds: Vec<f64> = (0..15).filter_map(|_| training.round()).collect();
            if !matches!(method, Method::CollapsedVb | Method::Gibbs) {
                assert!(
                    bounds.windows(2).all(|pair| pair[1] >= pair[0] - 1e-9 * pair[0].abs()),
                    "{bounds:?}"
                );
                assert!(bounds[bounds.len() - 1] > bounds[0] + 1.0, "{method:?}: {bounds:?}");
            }
            let counts = &training.trainer.state().estimate.counts;
            assert_laws(model.layout, counts, &sentences, &format!("{method:?}"));
        }
    }
}

#[test]
fn chains_go_on_from_given_heads() {
    let model = model(4);
    let mut sentences = small_corpus();
    sentences.sort();
    sentences.dedup();
    // Each word is the head of the next.
    let chain = |tags: &Vec<u32>| {
        let heads: Vec<u32> = (0..tags.len() as u32).collect();
        let names: Vec<String> = tags.iter().map(|&tag| model.tags[tag as usize].clone()).collect();
        tree(&names, &heads).unwrap().to_string()
    };
    let given = vec![Arc::new(sentences.iter().map(chain).collect::<Vec<_>>())];
    let settings = sampler::Settings {
        start: sampler::Start::Trees(given.clone()),
        hyper: Hyper { discount: 0.0, concentration: 1.0 },
        draw_hyper: None,
        relabel: false,
        sweeps: 1,
        anneal: Anneal::default(),
        seed: 1,
        run: 0,
    };
    let (engine, run) = (Engine::default(), model.run(&sentences, u32::MAX));
    let alpha = model.groups().alpha(&model.prepared.grammar);
    let mut trainer = Trainer::new(
        model.prepared.grammar.clone(),
        &Lexicon::default(),
        alpha,
        settings,
        Default::default(),
    );
    let mut n_moved = 0;
    for _ in 0..5 {
        let collect = Collect { segments: Some(Vec::new()), as_sample: true };
        let answer = |shard: usize, work| run.answer(&engine, &run.shards[shard], work);
        let step = trainer::round(&mut trainer, &vec![Arc::default()], collect, answer).unwrap();
        let Step::Next(report) = step else { panic!("a chain has no second try") };
        n_moved += report.moves.expect("trees are proposed").changed;
        for (analysis, numbers) in trainer.report().samples[0].iter().zip(&sentences) {
            let (tags, found) = heads(&Tree::parse(&analysis.tree).unwrap()).unwrap();
            assert!(tags.iter().zip(numbers).all(|(tag, &number)| *tag == model.tags[number as usize]));
            assert!(is_projective(&found), "{found:?}");
        }
    }
    assert!(n_moved > 0, "no tree was drawn anew");
}

#[test]
fn trees_and_heads_are_the_same_thing() {
    let model = model(3);
    for n in 1..=5 {
        let numbers = random_tags(n, 3, 9);
        let tags: Vec<String> = numbers.iter().map(|&tag| model.tags[tag as usize].clone()).collect();
        for given in all_trees(n) {
            let made = tree(&tags, &given).unwrap();
            assert_eq!(heads(&made), Ok((tags.clone(), given.clone())));
            // It is a derivation of the grammar, with the rules that the definition says.
            let counts = trees::counts(&model.prepared.grammar, &Lexicon::default(), &[made]).unwrap();
            let mut expected = vec![0.0; counts.len()];
            for event in events(model.layout, &numbers, &given) {
                expected[model.layout.param(event).index()] += 1.0;
            }
            assert_eq!(counts, expected);
        }
    }
}

#[test]
fn drawn_sentences_have_heads() {
    let mut grammar = (*model(4).prepared.grammar).clone();
    // Stops are four times as likely as children.
    for rule in grammar.rules.iter_mut().filter(|rule| rule.children.len() == 1) {
        rule.alpha = if grammar.symbols[rule.children[0].index()].ends_with("more") { 1.0 } else { 4.0 };
    }
    for made in generate::sample(&grammar, 200, 5, &generate::Options::default()).unwrap() {
        let (tags, found) = heads(&made).unwrap();
        assert_eq!(tree(&tags, &found), Ok(made));
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1000))]

    /// The other way: any heads are refused, or come back.
    fn any_heads(given in prop::collection::vec(0u32..6, 1..6), within in any::<bool>()) {
        let n_places = given.len() as u32 + 1;
        let given: Vec<u32> = given.into_iter().map(|head| if within { head % n_places } else { head }).collect();
        let tags = vec!["T0".to_owned(); given.len()];
        let made = tree(&tags, &given);
        prop_assert_eq!(made.is_ok(), is_projective(&given));
        match made {
            Ok(made) => {
                prop_assert_eq!(heads(&made), Ok((tags, given)));
                COME_BACK.one();
            }
            Err(NotProjective::Crossing { first, second }) => {
                CROSSING.one();
                for (head, child) in [first, second] {
                    prop_assert_eq!(given[child - 1] as usize, head);
                }
            }
            Err(_) => {}
        }
    }
}

static COME_BACK: Examined = Examined::none();
static CROSSING: Examined = Examined::none();

#[test]
fn heads_are_refused_or_round_trip() {
    any_heads();
    COME_BACK.assert_at_least(60);
    CROSSING.assert_at_least(5);
}

#[test]
fn forests_are_cubic() {
    let model = model(3);
    for n in 1..=15 {
        let forest = Chains::default().fold(&model.forest(&random_tags(n, 3, n as u64)), u32::MAX);
        // On either side trapezoids, and what is made of them; then the roots.
        let expected = 4 * ((n + 1) * n * (n - 1) / 6) + n;
        assert!(forest.edges.len() <= expected, "{n} words: {} edges, {expected}", forest.edges.len());
    }
}

#[test]
fn the_grammar_is_never_taken_for_a_dense_one() {
    for n_tags in [2, 3, 6, 12, 17, 30, 45] {
        assert!(!Dense::fits(&model(n_tags).prepared.binary), "{n_tags} tags");
    }
}
