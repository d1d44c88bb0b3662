//! Dense grammars: what is computed without forests is what forests give.

mod support;

use std::fmt::Write;
use std::sync::Arc;

use proptest::prelude::*;
use shared::compute::Prepared;
use shared::forest::binary::{Adapted, BinaryGrammar};
use shared::forest::build::Builder;
use shared::forest::dense::{Dense, Precision};
use shared::forest::inside::{Counts, Scratch, Weights, expect, real};
use shared::grammar::{Grammar, SymbolId};
use shared::num::{Noise, Wide};
use shared::shard::{Lexicon, Sentence};
use support::{assert_all_close, assert_close};

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
    let sentence = |(at, &length): (usize, &usize)| Sentence {
        tokens: (0..length).map(|_| word()).collect(),
        multiplicity: 1 + at as u32 % 3,
    };
    lengths.iter().enumerate().map(sentence).collect()
}

/// log Z by sentence and counts by parameter, over forests.
fn by_forests(grammar: &Grammar, sentences: &[Sentence], weights: &[Wide]) -> (Vec<f64>, Vec<f64>) {
    let prepared = Prepared::new(Arc::new(grammar.clone()), Arc::new(Lexicon::default()));
    let mut builder = Builder::new(&prepared.binary, &prepared.strings, Adapted::Strings);
    let weights = Weights { wide: weights, real: &real(weights) };
    let mut uses = vec![0.0; weights.wide.len()];
    let mut scratch = Scratch::default();
    let mut log_z = Vec::new();
    for sentence in sentences {
        let z = builder.build(0, &sentence.tokens).map_or(Wide::ZERO, |forest| {
            let mut counts = Counts { uses: &mut uses, losses: &mut [] };
            expect(&forest, &weights, f64::from(sentence.multiplicity), &mut counts, &mut scratch)
        });
        log_z.push(z.ln());
    }
    uses[0] = 0.0;
    (log_z, uses)
}

/// The same without forests.
fn by_tensor(
    grammar: &Grammar,
    sentences: &[Sentence],
    weights: &[Wide],
    precision: Precision,
) -> (Vec<f64>, Vec<f64>) {
    let dense = Dense::new(&BinaryGrammar::new(grammar), sentences);
    let local: Vec<Wide> = dense.params().iter().map(|param| weights[param.index()]).collect();
    let expected = dense.expect_in(&local, precision);
    let mut counts = vec![0.0; weights.len()];
    dense.params().iter().zip(&expected.counts).for_each(|(param, &count)| counts[param.index()] = count);
    counts[0] = 0.0;
    (expected.totals.iter().map(|total| total.ln()).collect(), counts)
}

fn assert_agree(grammar: &Grammar, sentences: &[Sentence], weights: &[Wide]) {
    let (log_z, counts) = by_forests(grammar, sentences, weights);
    for (precision, tolerance) in [(Precision::Single, 1e-5), (Precision::Double, 1e-11)] {
        let (found_log_z, found) = by_tensor(grammar, sentences, weights, precision);
        for (found, expected) in found_log_z.into_iter().zip(&log_z) {
            if expected.is_finite() {
                assert_close(found, *expected, tolerance, "log Z");
            } else {
                assert_eq!(found, *expected);
            }
        }
        assert_all_close(&found, &counts, tolerance, &format!("counts, {precision:?}"));
    }
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
