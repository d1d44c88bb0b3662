//! Estimators of PCFGs: what each may never do, and where they meet.

use std::rc::Rc;
use std::sync::Arc;

use grammaton::data::Sentence;
use grammaton::grammar::ParamId;
use grammaton::grammar::groups::{Estimate, Groups};
use grammaton::grammar::lexicon::Lexicon;
use grammaton::grammar::{Grammar, SymbolId, syntax};
use grammaton::train::anneal::Anneal;
use grammaton::train::pcfg::{Method, Settings, Start, State, Trainer};
use grammaton::train::round::{RoundReport, Step};
use grammaton::train::trainer::{self, Collect, Trainer as _};
use grammaton::work::engine::Engine;
use grammaton::work::shard::Shard;
use grammaton::work::task::{Answer, Language, Named, Task, Work};

use crate::support::{Derivation, Enumerator, Mode, assert_all_close, assert_close, sum};

/// S makes brackets and letters; ambiguous in every way.
const SYNTAX: &str = "0.5 1 S --> S S\n0.5 1 S --> A\n0.5 1 S --> A S B\n1 1 A --> a\n1 1 A --> b\n2 1 B --> b\n1 1 B --> a b\n";
const MORPHS: &str = "1 1 W --> V\n1 1 W --> V M\n1e-5 1 V --> <substrings>\n1e-5 1 M --> <substrings>\n";

/// A fleet of one thread.
struct Bench {
    engine: Engine,
    grammar: Named<Grammar>,
    lexicon: Named<Lexicon>,
    shards: Vec<Named<Shard>>,
    indexes: Vec<Arc<Vec<ParamId>>>,
}

impl Bench {
    /// Each inner list is a shard.
    fn new(text: &str, shards: &[&[(&str, u32)]]) -> Bench {
        let letters: std::collections::BTreeSet<String> = shards
            .iter()
            .flat_map(|s| s.iter())
            .flat_map(|(word, _)| word.chars().map(String::from))
            .collect();
        let grammar = syntax::parse(text, "g").unwrap().0.with_vocabulary(letters.iter().map(String::as_str));
        let tokens = |word: &str| -> Vec<SymbolId> {
            word.chars().map(|c| grammar.symbol(&c.to_string()).unwrap()).collect()
        };
        let all: Vec<Vec<SymbolId>> =
            shards.iter().flat_map(|s| s.iter()).map(|(word, _)| tokens(word)).collect();
        let lexicon = Named::new(Lexicon::substrings(&grammar, &all, 100).unwrap());
        let shards: Vec<Named<Shard>> = shards
            .iter()
            .map(|words| {
                let sentence =
                    |&(word, multiplicity): &(&str, u32)| Sentence::new(tokens(word), multiplicity);
                Named::new(Shard::Sentences(words.iter().map(sentence).collect()))
            })
            .collect();
        let (engine, grammar) = (Engine::default(), Named::new(grammar));
        let mut bench = Bench { engine, grammar, lexicon, shards, indexes: Vec::new() };
        bench.indexes = (0..bench.shards.len())
            .map(|shard| match bench.run(shard, Work::Index) {
                Answer::Index(index) => {
                    assert!(index.unparsable.is_empty());
                    Arc::new(index.params)
                }
                other => panic!("{other:?}"),
            })
            .collect();
        bench
    }

    fn run(&self, shard: usize, work: Work) -> Answer {
        let (grammar, lexicon) = (self.grammar.clone(), self.lexicon.clone());
        self.engine
            .run(&Task {
                language: Some(Language { grammar, lexicon }),
                shard: self.shards[shard].clone(),
                work,
                further: Vec::new(),
            })
            .unwrap()
    }

    fn groups(&self) -> Groups {
        Groups::new(&self.grammar.value, &self.lexicon.value)
    }

    fn trainer(&self, settings: Settings) -> Trainer {
        let groups = self.groups();
        let alpha = groups.alpha(&self.grammar.value);
        Trainer::new(groups, alpha, settings)
    }

    fn round(&self, trainer: &mut Trainer, keep: Option<Vec<SymbolId>>) -> RoundReport {
        for _ in 0..20 {
            let collect = Collect { as_sample: keep.is_some(), segments: keep.clone() };
            let step = trainer::round(trainer, &self.indexes, collect, |shard, work| self.run(shard, work));
            if let Step::Next(report) = step.unwrap() {
                return report;
            }
        }
        panic!("the round has no end");
    }

    fn rounds(&self, trainer: &mut Trainer, n: usize) {
        for _ in 0..n {
            self.round(trainer, None);
        }
    }

    fn bounds(&self, settings: Settings, rounds: usize) -> Vec<f64> {
        let mut trainer = self.trainer(settings);
        (0..rounds).filter_map(|_| self.round(&mut trainer, None).bound).collect()
    }
}

fn settings(method: Method) -> Settings {
    let (start, anneal) = (Start::Jitter(0.5), Anneal::default());
    Settings { method, start, schedule: None, backoff: None, anneal, tolerance: 0.0, seed: 1, run: 1 }
}

const WORDS: &[(&str, u32)] = &[("ab", 3), ("aabb", 2), ("abab", 1), ("ba", 2), ("aababb", 1), ("bbab", 4)];

#[test]
fn bounds_never_fall() {
    let shapes: [&[&[(&str, u32)]]; 2] = [&[WORDS], &[&WORDS[..3], &WORDS[3..]]];
    for shards in shapes {
        let bench = Bench::new(SYNTAX, shards);
        for method in [Method::Em, Method::Vb { fit_alpha: false }, Method::Vb { fit_alpha: true }] {
            // `finish` refuses a fall; that there is a rise is the test here.
            let bounds = bench.bounds(settings(method), 40);
            assert!(bounds.last() > bounds.first(), "{method:?} {bounds:?}");
            assert!(bounds.windows(2).all(|pair| pair[1] >= pair[0] - 1e-9 * pair[0].abs()), "{method:?}");
        }
    }
}

#[test]
fn shards_do_not_matter_to_stateless_methods() {
    let (one, two) = (Bench::new(SYNTAX, &[WORDS]), Bench::new(SYNTAX, &[&WORDS[..2], &WORDS[2..]]));
    for method in [Method::Em, Method::Vb { fit_alpha: true }] {
        for (a, b) in one.bounds(settings(method), 20).iter().zip(two.bounds(settings(method), 20)) {
            assert!((a - b).abs() < 1e-9 * a.abs());
        }
    }
}

#[test]
fn map_with_flat_pseudo_counts_is_em() {
    let flat = SYNTAX.replace("0.5 1", "1 1").replace("2 1", "1 1");
    let bench = Bench::new(&flat, &[WORDS]);
    for (a, b) in bench.bounds(settings(Method::MapEm), 15).iter().zip(bench.bounds(settings(Method::Em), 15))
    {
        assert!((a - b).abs() < 1e-9, "{a} {b}");
    }
    // And with α > 1 its posterior never falls.
    let bench = Bench::new(&flat.replace("1 1", "1.5 1"), &[WORDS]);
    let bounds = bench.bounds(settings(Method::MapEm), 30);
    assert!(
        bounds.windows(2).all(|pair| pair[1] >= pair[0] - 1e-9 * pair[0].abs()) && bounds[29] > bounds[0]
    );
}

#[test]
fn sparse_map_keeps_every_sentence_derivable() {
    // With α near 0, every morph with an expected count below 1 is lost at once, and with it words seen only once.
    let bench = Bench::new(MORPHS, &[&[("abc", 1), ("abd", 1), ("xyd", 1)]]);
    let mut trainer = bench.trainer(settings(Method::MapEm));
    for _ in 0..10 {
        bench.round(&mut trainer, None);
    }
    let uses: f64 = trainer.state().estimate.counts[1..=2].iter().sum();
    assert!((uses - 3.0).abs() < 1e-6, "each word has a tree: {uses}");
}

#[test]
fn pseudo_counts_of_any_smallness_underflow_nowhere() {
    for alpha in ["1e-5", "1e-10", "1e-100"] {
        let bench = Bench::new(&MORPHS.replace("1e-5", alpha), &[&[("abcab", 3), ("abcd", 1), ("xyd", 1)]]);
        for method in [Method::Vb { fit_alpha: false }, Method::CollapsedVb, Method::Gibbs, Method::Em] {
            let mut trainer = bench.trainer(settings(method));
            for _ in 0..12 {
                let report = bench.round(&mut trainer, None);
                assert!(report.bound.is_none_or(f64::is_finite), "{alpha} {method:?} {report:?}");
            }
            let uses: f64 = trainer.state().estimate.counts[1..=2].iter().sum();
            assert!((uses - 5.0).abs() < 1e-6, "{alpha} {method:?}: {uses} trees for 5 words");
        }
    }
}

/// The probabilities of the rules after some rounds.
fn means(bench: &Bench, method: Method, rounds: usize) -> Vec<f64> {
    let mut trainer = bench.trainer(Settings { start: Start::Jitter(0.2), ..settings(method) });
    bench.rounds(&mut trainer, rounds);
    let Estimate { alpha, counts } = trainer.estimate();
    let estimate = Estimate { alpha, counts };
    grammaton::models::pcfg::collapsed::weights(&bench.groups(), &estimate)
        .iter()
        .map(|w| w.to_f64())
        .collect()
}

#[test]
fn methods_meet_as_counts_grow() {
    let many: Vec<(&str, u32)> = WORDS.iter().map(|&(word, n)| (word, 300 * n)).collect();
    let bench = Bench::new(SYNTAX, &[&many]);
    let em = means(&bench, Method::Em, 150);
    for method in [Method::Vb { fit_alpha: false }, Method::MapEm, Method::CollapsedVb] {
        let other = means(&bench, method, 150);
        for (a, b) in em.iter().zip(&other) {
            assert!((a - b).abs() < 0.01, "{method:?}: {em:?} {other:?}");
        }
    }
}

/// Multinomials of [`SYNTAX`] as ranges of parameters, the constant one first; and the pseudo-counts that it gives.
const MULTINOMIALS: [std::ops::Range<usize>; 3] = [1..4, 4..6, 6..8];
const ALPHA: [f64; 8] = [0.0, 0.5, 0.5, 0.5, 1.0, 1.0, 2.0, 1.0];

/// Σ log Z and the expected counts of [`SYNTAX`] after every pass of Wang & Blunsom (2013, Fig. 3), over enumerated derivations.
/// A pass goes through the occurrences of each shard in order; other shards count as they were when it began.
fn enumerated_passes(bench: &Bench, start: &[f64], n_passes: usize) -> Vec<(f64, Vec<f64>)> {
    let (grammar, empty) = (&bench.grammar.value, Lexicon::default());
    // By shard and occurrence.
    let mut derivations: Vec<Vec<Rc<Vec<Derivation>>>> = Vec::new();
    for shard in &bench.shards {
        let Shard::Sentences(sentences) = shard.value.as_ref() else { panic!("a shard of sentences") };
        let of_sentence = |sentence: &Sentence| {
            let mut enumerator = Enumerator::new(grammar, &empty, Mode::Rules, &sentence.tokens);
            let all = enumerator.all(None);
            assert!(!enumerator.overflown && !all.is_empty());
            std::iter::repeat_n(all, sentence.multiplicity as usize)
        };
        derivations.push(sentences.iter().flat_map(of_sentence).collect());
    }
    let ln_means = |counts: &[f64]| {
        let mut ln = vec![0.0; ALPHA.len()];
        for group in MULTINOMIALS {
            let total: f64 = group.clone().map(|param| ALPHA[param] + counts[param]).sum();
            group.for_each(|param| ln[param] = ((ALPHA[param] + counts[param]) / total).ln());
        }
        ln
    };
    let add = |to: &mut [f64], counts: &[f64], sign: f64| {
        to.iter_mut().zip(counts).for_each(|(to, count)| *to += sign * count);
    };
    let first = ln_means(start);
    let mut own: Vec<Vec<Vec<f64>>> = Vec::new();
    let mut passes = Vec::new();
    for _ in 0..n_passes {
        let (before, mut log_z) = (std::mem::take(&mut own), 0.0);
        for (shard, occurrences) in derivations.iter().enumerate() {
            let mut others = vec![0.0; ALPHA.len()];
            before.iter().flatten().for_each(|counts| add(&mut others, counts, 1.0));
            let mut of_shard = Vec::new();
            for (at, derivations) in occurrences.iter().enumerate() {
                let ln_weights = match before.get(shard) {
                    Some(before) => {
                        add(&mut others, &before[at], -1.0);
                        ln_means(&others)
                    }
                    None => first.clone(),
                };
                let found = sum(derivations, &ln_weights).unwrap();
                add(&mut others, &found.counts, 1.0);
                log_z += found.log_z;
                of_shard.push(found.counts);
            }
            own.push(of_shard);
        }
        let mut counts = vec![0.0; ALPHA.len()];
        own.iter().flatten().for_each(|of_one| add(&mut counts, of_one, 1.0));
        passes.push((log_z, counts));
    }
    passes
}

#[test]
fn collapsed_passes_are_those_of_enumeration() {
    const PASSES: usize = 30;
    let shapes: [&[&[(&str, u32)]]; 2] = [&[WORDS], &[&WORDS[..3], &WORDS[3..]]];
    let start = [0.0, 1.0, 4.0, 2.0, 3.0, 1.0, 0.5, 2.5];
    for shards in shapes {
        let bench = Bench::new(SYNTAX, shards);
        let settings = Settings { start: Start::Counts(start.to_vec()), ..settings(Method::CollapsedVb) };
        let mut trainer = bench.trainer(settings);
        let expected = enumerated_passes(&bench, &start, PASSES);
        for (pass, (log_z, counts)) in expected.iter().enumerate() {
            let bound = bench.round(&mut trainer, None).bound.unwrap();
            assert_close(bound, *log_z, 1e-9, &format!("log Z of pass {pass}"));
            let found = &trainer.state().estimate.counts;
            assert_all_close(&found[1..], &counts[1..], 1e-9, &format!("counts of pass {pass}"));
        }
        let (first, last) = (expected[0].0, expected[PASSES - 1].0);
        assert!(last > first, "it rises: {first} {last}");
        let change = last - expected[PASSES - 2].0;
        assert!(change.abs() < 1e-3 * last.abs(), "it settles: {change}");
    }
}

#[test]
fn a_sentence_never_counts_for_itself() {
    // One word, so that all it can be read with is the prior: every pass gives the same counts.
    let bench = Bench::new(SYNTAX, &[&[("abab", 1)]]);
    let mut trainer = bench.trainer(settings(Method::CollapsedVb));
    let counts: Vec<Vec<f64>> = (0..4)
        .map(|_| {
            bench.round(&mut trainer, None);
            trainer.state().estimate.counts.clone()
        })
        .collect();
    assert_ne!(counts[0], counts[1], "the first pass reads with the start");
    for (a, b) in counts[1].iter().zip(&counts[3]) {
        assert!((a - b).abs() < 1e-12);
    }
}

#[test]
fn gibbs_visits_trees_as_often_as_the_posterior_says() {
    // Two words, each with two trees. P(trees | α) by hand: with x uses of `W --> V V` of 2, and letters as they fall.
    let text = "1 1 W --> V V\n1 1 W --> U\n1 1 V --> a\n1 1 V --> b\n1 1 U --> a b\n1 1 U --> b a\n";
    let bench = Bench::new(text, &[&[("ab", 1), ("ba", 1)]]);
    let groups = bench.groups();
    let alpha = groups.alpha(&bench.grammar.value);
    // Counts by parameter [1, W→VV, W→U, V→a, V→b, U→ab, U→ba] of (first word split?, second word split?).
    let trees = |first: bool, second: bool| -> Vec<f64> {
        let n = f64::from(u8::from(first) + u8::from(second));
        vec![0.0, n, 2.0 - n, n, n, f64::from(u8::from(!first)), f64::from(u8::from(!second))]
    };
    let all = [(false, false), (false, true), (true, false), (true, true)];
    let joint: Vec<f64> = all
        .iter()
        .map(|&(a, b)| Estimate { alpha: alpha.clone(), counts: trees(a, b) }.log_joint(&groups).exp())
        .collect();
    let total: f64 = joint.iter().sum();
    let mut trainer = bench.trainer(settings(Method::Gibbs));
    let mut found = [0.0; 4];
    let rounds = 40_000;
    for _ in 0..rounds {
        bench.round(&mut trainer, None);
        let counts = &trainer.state().estimate.counts;
        let at = all.iter().position(|&(a, b)| trees(a, b)[1..] == counts[1..]).unwrap();
        found[at] += 1.0 / f64::from(rounds);
    }
    for (found, joint) in found.iter().zip(&joint) {
        assert!((found - joint / total).abs() < 0.012, "{found}, expected {}", joint / total);
    }
}

#[test]
fn samplers_never_converge() {
    // One tree: the objective stays as it is.
    let bench = Bench::new("1 1 W --> a b\n", &[&[("ab", 2)]]);
    for (method, expected) in [(Method::Gibbs, false), (Method::Em, true)] {
        let mut trainer = bench.trainer(Settings { tolerance: 0.1, ..settings(method) });
        bench.rounds(&mut trainer, 2);
        assert_eq!(bench.round(&mut trainer, None).converged, expected, "{method:?}");
    }
}

#[test]
fn kept_samples_are_the_trees_that_are_counted() {
    let bench = Bench::new(SYNTAX, &[&WORDS[..3], &WORDS[3..]]);
    let segments = vec![bench.grammar.value.symbol("A").unwrap()];
    let mut with = bench.trainer(settings(Method::Gibbs));
    let mut without = bench.trainer(settings(Method::Gibbs));
    for _ in 0..5 {
        bench.round(&mut with, Some(segments.clone()));
        bench.round(&mut without, None);
        assert_eq!(with.state().estimate, without.state().estimate, "keeping changes nothing");
        let n_letters = |tree: &str| tree.matches("(A ").count() as f64;
        let trees: Vec<_> = with.report().samples.iter().flatten().collect();
        assert_eq!(trees.len(), 13);
        let found: f64 = trees.iter().map(|analysis| n_letters(&analysis.tree)).sum();
        let counts = &with.state().estimate.counts;
        assert_eq!(found, counts[4] + counts[5]);
        assert!(trees.iter().all(|analysis| !analysis.ends.is_empty()));
    }
    let mean = with.estimate();
    assert!(mean.counts != with.state().estimate.counts && mean.check(&bench.groups()).is_ok());
}

#[test]
fn going_on_from_a_state_changes_nothing() {
    let bench = Bench::new(SYNTAX, &[&WORDS[..3], &WORDS[3..]]);
    for method in
        [Method::Em, Method::MapEm, Method::Vb { fit_alpha: true }, Method::CollapsedVb, Method::Gibbs]
    {
        let anneal = Anneal { from: 3.0, to: 1.0, rounds: 4 };
        let settings = Settings { anneal, ..settings(method) };
        let mut whole = bench.trainer(settings.clone());
        bench.rounds(&mut whole, 3);
        let config = bincode::config::legacy();
        let saved = bincode::serde::encode_to_vec(whole.state(), config).unwrap();
        let (state, _): (State, usize) = bincode::serde::decode_from_slice(&saved, config).unwrap();
        let n_touched: Vec<usize> = bench.indexes.iter().map(|params| params.len()).collect();
        state.check(&bench.groups(), &n_touched).unwrap();
        let mut resumed = Trainer::resume(bench.groups(), settings, state);
        for _ in 0..4 {
            bench.round(&mut whole, None);
            bench.round(&mut resumed, None);
        }
        assert_eq!(whole.state(), resumed.state(), "{method:?}");
    }
}

#[test]
fn great_heat_makes_all_trees_alike() {
    let bench = Bench::new(SYNTAX, &[WORDS]);
    let counts = |anneal: Anneal, start: Start| {
        let mut trainer = bench.trainer(Settings { anneal, start, ..settings(Method::Em) });
        bench.round(&mut trainer, None);
        trainer.state().estimate.counts.clone()
    };
    let hot = counts(Anneal { from: 1e9, to: 1e9, rounds: 0 }, Start::Jitter(3.0));
    let weights = bench.indexes[0].iter().map(|_| grammaton::num::Wide::ONE).collect();
    let Answer::Expectation(alike) = bench.run(0, Work::Expect { weights, losses: false }) else { panic!() };
    assert!(hot[1..].iter().zip(&alike.counts[1..]).all(|(a, b)| (a - b).abs() < 1e-6), "{hot:?} {alike:?}");
    assert_ne!(hot, counts(Anneal::default(), Start::Jitter(3.0)));
}

#[test]
fn given_counts_are_the_start() {
    let bench = Bench::new(SYNTAX, &[WORDS]);
    let mut counts = vec![0.0; bench.groups().n_params()];
    counts[1..].fill(2.0);
    let start = Start::Counts(counts.clone());
    let mut trainer = bench.trainer(Settings { start, ..settings(Method::Vb { fit_alpha: false }) });
    let expected = grammaton::models::pcfg::vb::weights(
        &bench.groups(),
        &Estimate { alpha: bench.groups().alpha(&bench.grammar.value), counts },
    );
    assert_eq!(trainer.reading_weights(), expected);
    assert!(bench.round(&mut trainer, None).bound.is_some(), "its weights come from a q");
}

#[test]
fn dense_grammars_are_trained_by_every_method() {
    // All A → B C of seven symbols, each of which is a letter as well: no forests for inside–outside, but for all else.
    let symbols = ["S", "T", "U", "V", "X", "Y", "Z"];
    let mut text = String::new();
    for parent in symbols {
        for left in symbols {
            symbols.iter().for_each(|right| text += &format!("1 1 {parent} --> {left} {right}\n"));
        }
        ["a", "b"].iter().for_each(|letter| text += &format!("1 1 {parent} --> {letter}\n"));
    }
    let bench = Bench::new(&text, &[&WORDS[..3], &WORDS[3..]]);
    let letters: f64 = WORDS.iter().map(|&(word, n)| word.len() as f64 * f64::from(n)).sum();
    for method in [Method::Em, Method::Vb { fit_alpha: true }, Method::CollapsedVb, Method::Gibbs] {
        let mut trainer = bench.trainer(settings(method));
        bench.rounds(&mut trainer, 4);
        let counts = &trainer.state().estimate.counts;
        let of_letters = |rule: &usize| bench.grammar.value.rules[*rule].children.len() == 1;
        let found: f64 =
            (0..bench.grammar.value.rules.len()).filter(of_letters).map(|rule| counts[1 + rule]).sum();
        assert!((found - letters).abs() < 1e-6, "{method:?}: {found} of {letters}");
    }
}
