//! Sampling: frequencies against exact probabilities, adapted nonterminals, limits.

use std::collections::BTreeMap;

use grammaton::data::generate::{Options, SampleError, sample};
use grammaton::grammar::{Grammar, syntax};

fn grammar(text: &str) -> Grammar {
    syntax::parse(text, "g").unwrap_or_else(|error| panic!("{error}")).0
}

fn frequencies(grammar: &Grammar, n: usize, seed: u64) -> BTreeMap<String, f64> {
    let mut counts = BTreeMap::new();
    for tree in sample(grammar, n, seed, &Options::default()).unwrap() {
        *counts.entry(tree.terminals().collect::<String>()).or_default() += 1.0 / n as f64;
    }
    counts
}

#[test]
fn frequencies_are_the_exact_probabilities() {
    // S → T T (3/4) | c (1/4); T → a (1/5) | b (4/5).
    let grammar = grammar("3 1 S --> T T\n1 1 S --> c\n0.5 1 T --> a\n2 1 T --> b\n");
    let found = frequencies(&grammar, 40_000, 5);
    let expected = [("aa", 0.03), ("ab", 0.12), ("ba", 0.12), ("bb", 0.48), ("c", 0.25)];
    assert_eq!(found.len(), expected.len());
    for (string, probability) in expected {
        // Four standard deviations.
        let error = (probability * (1.0 - probability) / 40_000.0f64).sqrt() * 4.0;
        assert!((found[string] - probability).abs() < error, "{string}: {} for {probability}", found[string]);
    }
}

#[test]
fn the_same_seed_draws_the_same_and_a_longer_draw_begins_alike() {
    let grammar =
        grammar("1 1 S --> W S\n1 1 S --> W\n1 0.5 1 W --> C W\n1 W --> C\n1 1 C --> a\n1 1 C --> b\n");
    let draw = |n, seed| sample(&grammar, n, seed, &Options::default()).unwrap();
    assert_eq!(draw(20, 3), draw(20, 3));
    assert_ne!(draw(20, 3), draw(20, 4));
    assert_eq!(draw(20, 3)[..], draw(50, 3)[..20]);
}

#[test]
fn adapted_nonterminals_reuse_strings() {
    let text = |adaptor| {
        format!(
            "1 1 S --> W\n1 {adaptor} W --> C W_\n1 1 W_ --> C C C C C C\n1 1 C --> a\n1 1 C --> b\n1 1 C --> c\n"
        )
    };
    let distinct = |adaptor| frequencies(&grammar(&text(adaptor)), 1000, 9).len();
    // Without an adaptor, 1000 draws of 2187 strings; with a concentration of 1 and no discount, about ln 1000.
    assert!(distinct("1") > 700);
    assert!((3..15).contains(&distinct("0 1")));
    assert!((30..150).contains(&distinct("0.5 1")));
}

#[test]
fn runaway_recursion_is_an_error_with_a_way_out() {
    let deep = grammar("1000000 1 S --> a S\n1 1 S --> a\n");
    assert_eq!(
        sample(&deep, 1, 1, &Options::default()).unwrap_err().to_string(),
        "sentence 1: more than 2000 rules are nested below `S`; lower the weights of its recursive rules, or raise max_depth"
    );
    let options = Options { max_symbols: 100, ..Options::default() };
    assert!(matches!(
        sample(&deep, 1, 1, &options),
        Err(SampleError::TooLong { sentence: 1, max_symbols: 100 })
    ));
    let wide = grammar("9 1 S --> S S\n1 1 S --> a\n");
    assert!(sample(&wide, 100, 1, &Options::default()).is_err());
    let options = Options { discount: 1.0, ..Options::default() };
    assert!(matches!(sample(&wide, 1, 1, &options), Err(SampleError::Discount { .. })));
}

#[test]
fn recursive_adapted_nonterminals_can_be_drawn() {
    let grammar = grammar("1 0.5 1 S --> S S\n3 S --> a\n2 S --> b\n");
    let trees = sample(&grammar, 200, 2, &Options::default()).unwrap();
    assert!(trees.iter().all(|tree| tree.to_string().starts_with("(S ")));
}
