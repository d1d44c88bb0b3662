//! Dense grammars: what is computed without forests is what forests give.

use std::fmt::Write;
use std::sync::Arc;

use grammaton::data::Sentence;
use grammaton::forest::Prepared;
use grammaton::forest::binary::{Adapted, BinaryGrammar};
use grammaton::forest::build::Builder;
use grammaton::forest::dense::Dense;
use grammaton::forest::inside::{Counts, Scratch, Weights, expect, real};
use grammaton::grammar::ParamId;
use grammaton::grammar::lexicon::Lexicon;
use grammaton::grammar::{Grammar, Rule, RuleId, SymbolId};
use grammaton::num::{Noise, Wide};
use grammaton::work::engine::Engine;
use grammaton::work::shard::Shard;
use grammaton::work::task::{Answer, Expectation, Language, Named, Task, Work};
use proptest::prelude::*;

use crate::support::{self, assert_all_close, assert_close};

/// A grammar of which `share` of the binary rules are there: nonterminals N, preterminals P, and M that are both.
fn grammar(n: [usize; 3], words: usize, share: f64, seed: u64) -> Grammar {
    let noise = Noise::new(seed, 0);
    let mut place = 0;
    let mut keep = |share: f64| {
        place += 1;
        noise.symmetric(place) < 2.0 * share - 1.0
    };
    let of = |letter: char, n: usize| (0..n).map(move |number| format!("{letter}{number}"));
    let (long, both): (Vec<String>, Vec<String>) = (of('N', n[0]).collect(), of('M', n[1]).collect());
    let parents: Vec<String> = long.iter().chain(&both).cloned().collect();
    let children: Vec<String> = parents.iter().cloned().chain(of('P', n[2])).collect();
    let mut text = String::new();
    parents.iter().for_each(|parent| writeln!(text, "1 1 S --> {parent}").unwrap());
    for parent in &parents {
        for left in &children {
            for right in &children {
                if keep(share) || (left, right) == (&children[0], &children[0]) || left == right {
                    writeln!(text, "1 1 {parent} --> {left} {right}").unwrap();
                }
            }
        }
    }
    for (at, symbol) in children[n[0]..].iter().enumerate() {
        for word in 0..words {
            if word == at % words || keep(0.6) {
                writeln!(text, "1 1 {symbol} --> w{word}").unwrap();
            }
        }
    }
    support::grammar(&text)
}

/// Weights of all parameters, normalised by parent: e to a uniform power down to −`peak`, before that.
fn weights(grammar: &Grammar, peak: f64, seed: u64) -> Vec<Wide> {
    let noise = Noise::new(seed, 1);
    let raw: Vec<f64> = (0..grammar.rules.len())
        .map(|rule| ((noise.symmetric(rule as u64) - 1.0) / 2.0 * peak).exp())
        .collect();
    let mut sums = vec![0.0; grammar.n_nonterminals as usize];
    grammar.rules.iter().zip(&raw).for_each(|(rule, weight)| sums[rule.parent.index()] += weight);
    let normalised = grammar.rules.iter().zip(&raw).map(|(rule, weight)| weight / sums[rule.parent.index()]);
    std::iter::once(1.0).chain(normalised).map(Wide::from_f64).collect()
}

/// Sentences of the given lengths, of any words.
fn sentences(grammar: &Grammar, lengths: &[usize], seed: u64) -> Vec<Sentence> {
    let noise = Noise::new(seed, 2);
    let words = grammar.symbols.len() as u32 - grammar.n_nonterminals;
    let mut place = 0;
    let mut word = || {
        place += 1;
        SymbolId(grammar.n_nonterminals + ((noise.symmetric(place) + 1.0) / 2.0 * f64::from(words)) as u32)
    };
    let sentence = |(at, &length): (usize, &usize)| {
        Sentence::new((0..length).map(|_| word()).collect(), 1 + at as u32 % 3)
    };
    lengths.iter().enumerate().map(sentence).collect()
}

/// log Z by sentence and counts by parameter, over forests.
fn by_forests(grammar: &Grammar, sentences: &[Sentence], weights: &[Wide]) -> (Vec<f64>, Vec<f64>) {
    let prepared = Prepared::new(Arc::new(grammar.clone()), Lexicon::default());
    let mut builder = Builder::new(&prepared.binary, &prepared.strings, Adapted::Strings);
    let weights = Weights { wide: weights, real: &real(weights) };
    let mut uses = vec![0.0; weights.wide.len()];
    let mut scratch = Scratch::default();
    let mut log_z = Vec::new();
    for sentence in sentences {
        let z = builder.build(0, &sentence.tokens).unwrap().map_or(Wide::ZERO, |forest| {
            let mut counts = Counts { uses: &mut uses, losses: &mut [] };
            expect(&forest, &weights, f64::from(sentence.multiplicity), &mut counts, &mut scratch)
        });
        log_z.push(z.ln());
    }
    uses[0] = 0.0;
    (log_z, uses)
}

/// The same without forests.
fn by_tensor(grammar: &Grammar, sentences: &[Sentence], weights: &[Wide]) -> (Vec<f64>, Vec<f64>) {
    let dense = Dense::new(&BinaryGrammar::new(grammar), sentences);
    let local: Vec<Wide> = dense.params().iter().map(|param| weights[param.index()]).collect();
    let expected = dense.expect(&local);
    let mut counts = vec![0.0; weights.len()];
    dense.params().iter().zip(&expected.counts).for_each(|(param, &count)| counts[param.index()] = count);
    counts[0] = 0.0;
    (expected.totals.iter().map(|total| total.ln()).collect(), counts)
}

fn assert_agree(grammar: &Grammar, sentences: &[Sentence], weights: &[Wide]) {
    let (log_z, counts) = by_forests(grammar, sentences, weights);
    let (found_log_z, found) = by_tensor(grammar, sentences, weights);
    for (found, expected) in found_log_z.into_iter().zip(log_z) {
        // The error of ln Z is the relative one of Z, also where Z is almost one.
        let close = (found - expected).abs() <= 1e-12 * expected.abs().max(1.0);
        assert!(found == expected || close, "{found} for {expected}");
    }
    assert_all_close(&found, &counts, 1e-11, "counts");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn agrees_with_forests(
        n in (1usize..4, 0usize..4, 1usize..5),
        words in 1usize..6,
        share in 0.2..1.0f64,
        peak in prop_oneof![Just(0.0), Just(3.0), Just(30.0), Just(70.0)],
        lengths in proptest::collection::vec(1usize..12, 1..40),
        seed in 0u64..1000,
    ) {
        let grammar = grammar([n.0, n.1, n.2], words, share, seed);
        let weights = weights(&grammar, peak, seed);
        assert_agree(&grammar, &sentences(&grammar, &lengths, seed), &weights);
    }
}

#[test]
fn agrees_with_forests_at_every_length_up_to_40() {
    let grammar = grammar([2, 1, 2], 3, 0.8, 5);
    let sentences = sentences(&grammar, &(1..=40).collect::<Vec<_>>(), 5);
    for peak in [1.0, 10.0, 70.0] {
        assert_agree(&grammar, &sentences, &weights(&grammar, peak, 5));
    }
}

#[test]
fn two_hundred_tokens_have_the_counts_of_the_closed_form() {
    const N: usize = 200;
    let grammar = support::grammar("1 1 X --> X X\n1 1 X --> a\n1 1 X --> b\n");
    let sentences = sentences(&grammar, &[N], 3);
    let b = sentences[0].tokens.iter().filter(|&&token| Some(token) == grammar.symbol("b")).count() as f64;
    // All Catalan(n − 1) derivations weigh the same.
    let ln_catalan: f64 = (1..N).map(|k| ((N - 1 + k) as f64 / k as f64).ln()).sum::<f64>() - (N as f64).ln();
    for ln in [[-1.5, -1e-30, -69.0], [-1e-9, -5000.0, -30.0]] {
        let weights: Vec<Wide> = [0.0, ln[0], ln[1], ln[2]].map(Wide::from_ln).to_vec();
        let (log_z, counts) = by_tensor(&grammar, &sentences, &weights);
        let expected = ln_catalan + (N as f64 - 1.0) * ln[0] + (N as f64 - b) * ln[1] + b * ln[2];
        assert_close(log_z[0], expected, 1e-12, "log Z");
        assert_all_close(&counts, &[0.0, N as f64 - 1.0, N as f64 - b, b], 1e-10, "counts");
    }
}

/// All A → B C over 8 nonterminals, from each of which comes `a`; `b` comes from N1 alone.
fn full() -> Grammar {
    let mut text = String::new();
    for parent in 0..8 {
        (0..64).for_each(|pair| writeln!(text, "1 1 N{parent} --> N{} N{}", pair / 8, pair % 8).unwrap());
        writeln!(text, "1 1 N{parent} --> a").unwrap();
    }
    text.push_str("1 1 N1 --> b\n");
    support::grammar(&text)
}

/// What an engine says about sentences: the index, those without a derivation, the counts.
fn answers(
    grammar: &Grammar,
    sentences: &[Sentence],
    weights: &[Wide],
) -> (Vec<ParamId>, Vec<u32>, Expectation) {
    let task = |work| Task {
        language: Some(Language {
            grammar: Named::new(grammar.clone()),
            lexicon: Named::new(Lexicon::default()),
        }),
        shard: Named::new(Shard::Sentences(sentences.to_vec())),
        work,
        further: Vec::new(),
    };
    let engine = Engine::default();
    let Ok(Answer::Index(index)) = engine.run(&task(Work::Index)) else { panic!("an index") };
    let weights = index.params.iter().map(|param| weights[param.index()]).collect();
    let work = Work::Expect { weights, losses: true };
    let Ok(Answer::Expectation(found)) = engine.run(&task(work)) else { panic!("counts") };
    (index.params, index.unparsable, found)
}

#[test]
fn an_engine_answers_as_over_forests() {
    let grammar = full();
    assert!(Dense::fits(&BinaryGrammar::new(&grammar)));
    let sentence = |text, multiplicity| Sentence::new(support::tokens(&grammar, text), multiplicity);
    let sentences =
        [sentence("a b a a", 3), sentence("b", 5), sentence("a", 1), sentence("b b", 1), sentence("", 1)];
    let mut weights = weights(&grammar, 2.0, 1);
    let (log_z, counts) = by_forests(&grammar, &sentences, &weights);
    let (params, unparsable, found) = answers(&grammar, &sentences, &weights);
    assert_eq!(unparsable, [1, 4]);
    assert_close(found.log_z, 3.0 * log_z[0] + log_z[2] + log_z[3], 1e-12, "log Z");
    let expected: Vec<f64> = params.iter().map(|param| counts[param.index()]).collect();
    assert_all_close(&found.counts, &expected, 1e-12, "counts");
    assert_eq!(found.losses, vec![0.0; params.len()]);
    assert!(found.missing.is_empty() && found.log_z_items.is_empty());
    // Without N1 → b the first and the last have no derivation, and the others keep theirs.
    let is_b = |rule: &Rule| grammar.name(rule.children[0]) == "b";
    let b = ParamId::of_rule(RuleId::at(grammar.rules.iter().position(is_b).expect("N1 → b")));
    weights[b.index()] = Wide::ZERO;
    let (_, _, found) = answers(&grammar, &sentences, &weights);
    assert_eq!(found.missing, [b]);
    assert_close(found.log_z, log_z[2], 1e-12, "log Z");
}

#[test]
fn the_cut_changes_no_more_than_rounding() {
    let grammar = full();
    let weights = weights(&grammar, 5.0, 2);
    let sentences = sentences(&grammar, &(0..60).map(|at| 1 + at * 7 % 12).collect::<Vec<_>>(), 2);
    let (log_z, counts) = by_tensor(&grammar, &sentences, &weights);
    let mut found_counts = vec![0.0; weights.len()];
    let mut found_log_z = Vec::new();
    for sentences in sentences.chunks(7) {
        let (log_z, counts) = by_tensor(&grammar, sentences, &weights);
        found_counts.iter_mut().zip(counts).for_each(|(sum, count)| *sum += count);
        found_log_z.extend(log_z);
    }
    // A sentence has a lane of its own, wherever it stands.
    assert_eq!(found_log_z, log_z);
    assert_all_close(&found_counts, &counts, 1e-12, "counts");
}
