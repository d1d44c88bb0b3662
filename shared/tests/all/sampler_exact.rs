//! The sampler against enumeration: all states of a few short sentences, with their exact probabilities.

use std::collections::BTreeMap;

use grammaton::grammar::Grammar;
use grammaton::models::sampler::state::{Choice, Table};
use grammaton::models::sampler::{Chain, Prior, Settings, Start, State};
use grammaton::num::random::stream;

use crate::support::world::{World, hyper, items};
use crate::support::{self, assert_close, tokens};

const PLAIN: Settings = Settings { temperature: 1.0, relabel: false, hyper: None };
const RELABEL: Settings = Settings { relabel: true, ..PLAIN };

const PCFG: &str =
    "1 1 S --> W\n0.5 1 S --> W S\n0.3 1 W --> a\n1 1 W --> a a\n0.2 1 W --> a b\n2 1 W --> b\n";
/// Words with two derivations each.
const WORDS: &str = "1 1 S --> W\n0.5 1 S --> W S\n1 0.4 0.7 W --> X\n0.6 0.4 0.7 W --> Y\n1 1 X --> V\n2 1 X --> V X\n\
                     1 1 Y --> V\n1 1 Y --> V Y\n1 1 V --> a\n0.5 1 V --> b\n";
/// Adapted nonterminals in adapted ones.
const NESTED: &str = "1 1 S --> C\n0.7 1 S --> C S\n1 0.3 1.5 C --> W\n0.5 0.3 1.5 C --> W W\n1 0 0.8 W --> V\n\
                      1 0 0.8 W --> V V\n1 1 V --> a\n0.5 1 V --> b\n";

type Key = (Vec<Vec<Choice>>, Vec<Table>);

/// Every state and its probability given the sentences.
fn enumerate(grammar: &Grammar, sentences: &[&str], power: f64) -> BTreeMap<Key, (f64, f64)> {
    let mut worlds = vec![World::default()];
    for sentence in sentences {
        let sentence = tokens(grammar, sentence);
        worlds = worlds.iter().flat_map(|world| world.extended(grammar, &sentence)).collect();
    }
    let hyper = hyper(grammar);
    let n = worlds.len();
    let joint = |world: World| {
        let ln_joint = world.ln_joint(grammar, &hyper);
        ((world.trees, world.tables), (ln_joint, (power * ln_joint).exp()))
    };
    let mut states: BTreeMap<Key, (f64, f64)> = worlds.into_iter().map(joint).collect();
    assert_eq!(states.len(), n, "a state was enumerated twice");
    let total: f64 = states.values().map(|(_, weight)| weight).sum();
    states.values_mut().for_each(|(_, weight)| *weight /= total);
    states
}

/// Runs a chain, and compares how often it is in each state with how probable that is.
fn compare(grammar: &str, sentences: &[&str], settings: Settings, from: Start, n_sweeps: usize) {
    let grammar = support::grammar(grammar);
    let exact = enumerate(&grammar, sentences, 1.0 / settings.temperature);
    let (items, prior) = (items(&grammar, sentences), Prior::new(&grammar, &support::lexicon(&grammar, &[])));
    let mut random = stream(1, 0, 0);
    let mut chain = Chain::start(&items, &prior, &hyper(&grammar), from, &mut random).unwrap();
    const BATCHES: usize = 40;
    let mut found: BTreeMap<Key, [f64; BATCHES]> = BTreeMap::new();
    let per_batch = n_sweeps / BATCHES;
    for batch in 0..BATCHES {
        for _ in 0..per_batch {
            let sweep = chain.sweep(&settings, &mut random);
            let State { trees, tables, .. } = chain.state();
            let key = (trees, tables);
            if !found.contains_key(&key) {
                let (ln_joint, _) = exact.get(&key).unwrap_or_else(|| panic!("no such state: {key:?}"));
                assert_close(sweep.log_posterior, *ln_joint, 1e-12, "log posterior");
            }
            found.entry(key).or_insert([0.0; BATCHES])[batch] += 1.0 / per_batch as f64;
        }
    }
    let (mut distance, mut worst, mut n_likely) = (0.0, (0.0f64, String::new()), 0);
    for (key, &(_, expected)) in &exact {
        let shares = found.get(key).copied().unwrap_or([0.0; BATCHES]);
        let mean = shares.iter().sum::<f64>() / BATCHES as f64;
        let variance = shares.iter().map(|share| (share - mean).powi(2)).sum::<f64>() / (BATCHES - 1) as f64;
        distance += 0.5 * (mean - expected).abs();
        if expected > 0.004 {
            n_likely += 1;
            // A state that was never seen has no variance of its own.
            let error = (variance / BATCHES as f64).sqrt().max((expected / n_sweeps as f64).sqrt());
            let z = (mean - expected).abs() / error;
            if z > worst.0 {
                worst = (z, format!("{key:?}: {mean}, expected {expected}, error {error}"));
            }
        }
    }
    println!("{} states, {n_likely} likely, distance {distance:.4}, worst z {:.2}", exact.len(), worst.0);
    assert!(n_likely >= 5, "the test needs states to compare: {n_likely}");
    assert!(worst.0 < 4.5, "{} standard errors off: {}", worst.0, worst.1);
    assert!(distance < 0.05, "total variation distance {distance}");
}

#[test]
fn trees_of_a_pcfg_are_as_frequent_as_probable() {
    compare(PCFG, &["a a b", "a a", "a b a", "b"], PLAIN, Start::Batch, 20_000);
}

#[test]
fn hot_and_cold_chains_follow_the_power_of_the_probability() {
    for temperature in [3.0, 0.5] {
        compare(PCFG, &["a a b", "a a a"], Settings { temperature, ..PLAIN }, Start::Incremental, 20_000);
        compare(WORDS, &["a a", "a"], Settings { temperature, ..RELABEL }, Start::Incremental, 20_000);
    }
}

#[test]
fn seatings_of_words_are_as_frequent_as_probable() {
    for settings in [PLAIN, RELABEL] {
        compare(WORDS, &["a b", "a b", "b"], settings, Start::Incremental, 40_000);
        compare(WORDS, &["a a a"], settings, Start::Batch, 40_000);
    }
}

#[test]
fn seatings_within_seatings_are_as_frequent_as_probable() {
    for settings in [PLAIN, RELABEL] {
        compare(NESTED, &["a a", "a a"], settings, Start::Batch, 40_000);
        compare(NESTED, &["a b a b"], settings, Start::Incremental, 40_000);
    }
}
