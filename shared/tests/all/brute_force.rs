//! Enumeration as the oracle, for every grammar that is shipped: candidates, log Z and expected counts.

use std::collections::BTreeMap;

use grammaton::data::Sentence;
use grammaton::grammar::lexicon::Lexicon;
use grammaton::grammar::{Grammar, StickId, SymbolId, syntax};
use grammaton::num::Wide;
use grammaton::work::engine::Engine;
use grammaton::work::shard::Shard;
use grammaton::work::task::{Answer, Lengths, Named, Work};

use crate::support::{self, Enumerator, Mode, Run, assert_all_close, assert_close, choose, sum, wide};

/// Grammar and made-up sentences, one symbol a character.
const CASES: &[(&str, &[&str])] = &[
    ("unigram", &["ab", "babab", "aa", "cabba", "ab"]),
    ("colloc", &["aba", "baab", "ab", "aaaa"]),
    ("syllable", &["bad", "abida", "ad", "a", "stiks"]),
    ("colloc3-syllable", &["bad", "ab", "ada", "a"]),
    ("morphology", &["unseen", "seen", "reds", "re"]),
];

fn example(name: &str) -> Grammar {
    let path = format!("{}/../examples/grammars/{name}.gr", env!("CARGO_MANIFEST_DIR"));
    let text = std::fs::read_to_string(path).expect("the example is in the repository");
    syntax::parse(&text, name).unwrap_or_else(|error| panic!("{error}")).0
}

fn cases() -> impl Iterator<Item = (&'static str, Grammar, Vec<Vec<SymbolId>>)> {
    CASES.iter().map(|(name, sentences)| {
        let grammar = example(name);
        let of = |c: char| grammar.symbol(&c.to_string()).expect("a symbol of the grammar");
        let sentences = sentences.iter().map(|sentence| sentence.chars().map(of).collect()).collect();
        (*name, grammar, sentences)
    })
}

#[test]
fn every_shipped_grammar_has_a_case() {
    let folder = format!("{}/../examples/grammars", env!("CARGO_MANIFEST_DIR"));
    let mut files: Vec<String> = std::fs::read_dir(folder)
        .unwrap()
        .map(|file| file.unwrap().file_name().into_string().unwrap().replace(".gr", ""))
        .filter(|name| name != "verbs") // nothing is adapted in it: `substrings.rs` has its cases
        .collect();
    files.sort();
    let mut names: Vec<&str> = CASES.iter().map(|(name, _)| *name).collect();
    names.sort_unstable();
    assert_eq!(files, names);
}

#[test]
fn candidates_are_expected_under_unit_weights() {
    for (name, grammar, sentences) in cases() {
        for max_length in [u32::MAX, 2] {
            let mut expected: BTreeMap<(SymbolId, Vec<SymbolId>), f64> = BTreeMap::new();
            for sentence in &sentences {
                let empty = Lexicon::default();
                let mut enumerator = Enumerator::new(&grammar, &empty, Mode::Rules, sentence);
                let mut derivations = enumerator.all(None).to_vec();
                assert!(!enumerator.overflown, "{name}: too ambiguous for this test");
                let adapted = |symbol| grammar.is_adapted(symbol);
                let within = |&(symbol, start, end): &(SymbolId, usize, usize)| {
                    !adapted(symbol) || end - start <= max_length as usize
                };
                let all_within = |d: &support::Derivation| d.constituents.iter().all(within);
                if derivations.iter().any(all_within) {
                    derivations.retain(all_within);
                }
                let n = derivations.len() as f64;
                for &(symbol, start, end) in derivations.iter().flat_map(|d| &d.constituents) {
                    if adapted(symbol) {
                        *expected.entry((symbol, sentence[start..end].to_vec())).or_default() += 1.0 / n;
                    }
                }
            }
            let run = Run::new(&grammar, &Lexicon::default(), &sentences);
            let work = Work::Candidates(Lengths::all(max_length));
            let Answer::Candidates(found) = run.answer(&Engine::default(), &run.shards[0], work) else {
                unreachable!()
            };
            let n_found = found.counted.amounts.len();
            let found: BTreeMap<_, f64> = found
                .counted
                .iter()
                .map(|(symbol, string, expected)| ((symbol, string.to_vec()), expected))
                .collect();
            assert_eq!(n_found, found.len(), "{name}, {max_length}: each once");
            assert!(found.keys().eq(expected.keys()), "{name}, {max_length}");
            let (found, expected): (Vec<f64>, Vec<f64>) =
                (found.into_values().collect(), expected.into_values().collect());
            assert_all_close(&found, &expected, 1e-12, name);
        }
    }
}

#[test]
fn rounds_are_those_of_enumeration() {
    for (name, grammar, sentences) in cases() {
        let lexicon = choose(&grammar, &sentences, 1000, -0.2);
        let n_params = lexicon.space(&grammar).n_params();
        let ln_weights: Vec<f64> =
            (0..n_params).map(|at| if at == 0 { 0.0 } else { -(at as f64 * 0.7).sin() - 1.5 }).collect();
        let run = Run::new(&grammar, &lexicon, &sentences);
        let found = run.expect(&Engine::default(), &wide(&ln_weights), false);
        assert!(found.missing.is_empty(), "{name}");
        let (mut log_z, mut counts) = (0.0, vec![0.0; n_params]);
        let mut add = |base, tokens: &[SymbolId]| {
            let mut enumerator = Enumerator::new(&grammar, &lexicon, Mode::Strings, tokens);
            let sums = sum(&enumerator.all(base), &ln_weights).expect("it has a derivation");
            assert!(!enumerator.overflown, "{name}: too ambiguous for this test");
            log_z += sums.log_z;
            counts.iter_mut().zip(sums.counts).for_each(|(count, more)| *count += more);
            sums.log_z
        };
        sentences.iter().for_each(|sentence| {
            add(None, sentence);
        });
        for (number, stick) in lexicon.sticks.iter().enumerate() {
            for (param, string) in lexicon.space(&grammar).stick(StickId(number as u32)).zip(&stick.strings) {
                let log_z = add(Some(stick.symbol), string);
                assert_close(found.log_z_strings[param as usize], log_z, 1e-12, name);
            }
        }
        assert_close(found.log_z, log_z, 1e-12, name);
        assert_all_close(&found.counts[1..], &counts[1..], 1e-12, name);
    }
}

#[test]
fn missing_strings_are_the_fewest_then_the_shortest() {
    let grammar =
        support::grammar("1 1 S --> W\n1 1 S --> W S\nW --> V\nW --> V W\nV --> a\nV --> b\nV --> c\n");
    let lexicon = support::lexicon(&grammar, &[("W", "a"), ("W", "b c")]);
    let sentence = |text| support::tokens(&grammar, text);
    let run = Run::new(&grammar, &lexicon, &[sentence("a b c"), sentence("a b a")]);
    let Answer::Missing(found) = run.answer(&Engine::default(), &run.shards[0], Work::Cover) else {
        unreachable!()
    };
    // `a b a` lacks the word `b`; the word needs V over `b`.
    let [w, v] = ["W", "V"].map(|name| grammar.symbol(name).unwrap());
    assert_eq!(found, [(w, sentence("b")), (v, sentence("b"))]);
}

#[test]
fn strings_out_of_use_that_items_need_are_named() {
    let grammar = support::grammar(
        "1 1 S --> W\n1 1 S --> W S\nW --> L\n1 1 L --> V\n1 1 L --> V L\nV --> a\nV --> b\n",
    );
    let strings = [("W", "a"), ("W", "b"), ("W", "a b"), ("V", "a"), ("V", "b")];
    let lexicon = support::lexicon(&grammar, &strings);
    let sentence = support::tokens(&grammar, "a b");
    let run = Run::new(&grammar, &lexicon, &[sentence.clone(), sentence]);
    let param = |name, string| support::param(&grammar, &lexicon, name, string);
    let missing = |gone: &[_]| {
        let mut weights = vec![Wide::ONE; lexicon.space(&grammar).n_params()];
        gone.iter().for_each(|&(name, string)| weights[param(name, string).index()] = Wide::ZERO);
        run.expect(&Engine::default(), &weights, false).missing
    };
    assert_eq!(missing(&[("W", "a b")]), []);
    assert_eq!(missing(&[("W", "a"), ("W", "b")]), []);
    // One string is fewer than two.
    assert_eq!(missing(&[("W", "a"), ("W", "b"), ("W", "a b")]), [param("W", "a b")]);
    // The string W over `b` is in use, and so needs V over `b`.
    assert_eq!(missing(&[("V", "b")]), [param("V", "b")]);
    // No string in use needs it.
    assert_eq!(missing(&[("W", "b"), ("W", "a b"), ("V", "b")]), [param("W", "a b")]);
}

#[test]
fn multiplicities_multiply() {
    let (_, grammar, sentences) = cases().next().unwrap();
    let lexicon = choose(&grammar, &sentences, 1000, -0.2);
    let n_rules = grammar.rules.len() as u32;
    let mut run = Run::new(&grammar, &lexicon, &sentences);
    let weights =
        wide(&(0..lexicon.space(&grammar).n_params()).map(|at| -(at as f64 % 3.0)).collect::<Vec<_>>());
    let merged = run.expect(&Engine::default(), &weights, true);
    let singly = sentences.iter().map(|tokens| Sentence::new(tokens.clone(), 1));
    run.shards[0] = Named::new(Shard::Sentences(singly.collect()));
    let single = run.expect(&Engine::default(), &weights, true);
    assert_close(merged.log_z, single.log_z, 1e-13, "log Z");
    assert_all_close(&merged.counts, &single.counts, 1e-12, "counts");
    let strings = 1 + n_rules as usize..;
    for (&merged, &single) in merged.losses[strings.clone()].iter().zip(&single.losses[strings]) {
        assert!(merged == single || (merged - single).abs() < 1e-6, "losses {merged} and {single}");
    }
}
