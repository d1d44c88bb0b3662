//! Drawn derivations against enumerated ones.

use std::collections::BTreeMap;

use grammaton::forest::Forest;
use grammaton::forest::Prepared;
use grammaton::forest::binary::Adapted;
use grammaton::forest::build::Builder;
use grammaton::forest::inside::{Weights, real};
use grammaton::forest::sample::{Scratch, sample};
use grammaton::grammar::Grammar;
use grammaton::grammar::ParamId;
use grammaton::num::random::stream;
use grammaton::num::{Noise, Wide};

use crate::support::{self, Enumerator, Mode, assert_close, sum, tokens, wide};

const GRAMMAR: &str =
    "1 1 S --> S S\n1 1 S --> X\n1 1 X --> a\n1 1 X --> Y\n1 1 X --> a b a\n1 1 Y --> a\n1 1 Y --> b\n";

fn forest(grammar: &Grammar, text: &str) -> Forest {
    let prepared = Prepared::new(grammar.clone(), support::lexicon(grammar, &[]));
    let mut builder = Builder::new(&prepared.binary, &prepared.strings, Adapted::Rules);
    builder.build(Grammar::START.0, &tokens(grammar, text)).unwrap().expect("the grammar derives it")
}

/// Draws `n` derivations: how many of each, by its parameters in order.
fn draw(forest: &Forest, weights: &[Wide], n: u32, seed: u64) -> (Wide, BTreeMap<Vec<usize>, f64>) {
    let weights = Weights { wide: weights, real: &real(weights) };
    let (mut random, mut scratch) = (stream(seed, 0, 0), Scratch::default());
    let (mut found, mut z) = (BTreeMap::new(), Wide::ZERO);
    for _ in 0..n {
        let mut params = Vec::new();
        z = sample(forest, &weights, &mut random, &mut scratch, |_, edge| {
            params.extend((edge.param != ParamId::ONE.0).then_some(edge.param as usize));
        });
        *found.entry(params).or_insert(0.0) += 1.0 / f64::from(n);
    }
    (z, found)
}

#[test]
fn derivations_are_as_frequent_as_probable() {
    let grammar = support::grammar(GRAMMAR);
    let lexicon = support::lexicon(&grammar, &[]);
    for (text, seed) in [("a", 1), ("a b a", 2), ("b a b a", 3)] {
        let noise = Noise::new(seed, 0);
        let mut ln_weights: Vec<f64> =
            (0..=grammar.rules.len() as u64).map(|at| noise.symmetric(at)).collect();
        ln_weights[0] = 0.0;
        let tokens = tokens(&grammar, text);
        let derivations = Enumerator::new(&grammar, &lexicon, Mode::Rules, &tokens).all(None);
        let exact = sum(&derivations, &ln_weights).unwrap();
        let n = 20_000;
        let (z, mut found) = draw(&forest(&grammar, text), &wide(&ln_weights), n, seed);
        assert_close(z.ln(), exact.log_z, 1e-12, "log Z");
        for (derivation, &expected) in derivations.iter().zip(&exact.posteriors) {
            let share = found.remove(&derivation.params).unwrap_or(0.0);
            let error = (expected * (1.0 - expected) / f64::from(n)).sqrt();
            assert!((share - expected).abs() < 4.5 * error, "{text}: {share}, expected {expected} ± {error}");
        }
        assert!(found.is_empty(), "not derivations of the sentence: {found:?}");
    }
}

#[test]
fn draws_are_the_same_far_below_the_range_of_f64() {
    let grammar = support::grammar(GRAMMAR);
    let forest = forest(&grammar, "b a b a");
    // Every derivation has a factor of 2^−scale for each of its tokens.
    let weights = |scale: i64| -> Vec<Wide> {
        let of = |at: usize| Wide { mantissa: 1.0 + 0.1 * at as f64, exponent: -1 };
        let mut weights: Vec<Wide> = (0..=grammar.rules.len()).map(of).collect();
        weights[0] = Wide::ONE;
        (weights[3].exponent, weights[4].exponent) = (-1 - scale, -1 - scale);
        weights[5].exponent = -1 - 3 * scale;
        weights
    };
    let (near, found) = draw(&forest, &weights(0), 1000, 5);
    let (far, same) = draw(&forest, &weights(10_000), 1000, 5);
    assert_eq!(found, same);
    assert_eq!((near.mantissa, near.exponent - 40_000), (far.mantissa, far.exponent));
}

#[test]
fn nothing_is_drawn_from_nothing() {
    let grammar = support::grammar("1 1 S --> a\n");
    let (z, found) = draw(&forest(&grammar, "a"), &[Wide::ONE, Wide::ZERO], 1, 1);
    assert!(z.is_zero());
    assert_eq!(found.into_keys().collect::<Vec<_>>(), [Vec::<usize>::new()]);
}
