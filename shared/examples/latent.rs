//! Latent annotations on a treebank: trains on the first sentences, parses the last ones, prints scores.
//!
//! `cargo run --release -p grammaton --example latent -- TREES.mrg [TRAIN_SHARE] [H,H,…] [ROUNDS] [THRESHOLD] [ALPHA]`
//!
//! Sentences of up to 40 words. Each method goes on for the same number of rounds; the test part is not looked at before.

#![expect(clippy::disallowed_methods, reason = "an experiment that says how long it took")]

use std::time::Instant;

use grammaton::data::eval::Source;
use grammaton::data::eval::brackets::score;
use grammaton::data::treebank::brackets::{Entry, read};
use grammaton::data::treebank::clean::clean;
use grammaton::data::treebank::{Classes, Treebank};
use grammaton::grammar::tree::Tree;
use grammaton::models::latent::parse::{Decoder, Model, Parser, THRESHOLD};
use grammaton::models::latent::{Layout, Method, Params, Shard, collapsed, expect, start};

const MAX_LENGTH: usize = 40;

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    let path = arguments.get(1).expect("the trees, in brackets of the Penn Treebank");
    let argument = |nth: usize, default: &str| arguments.get(nth).map_or(default, String::as_str).to_owned();
    let number = |nth: usize, default: &str| argument(nth, default).parse::<f64>().expect("a number");
    let text = std::fs::read_to_string(path).expect("a text file");
    let trees: Vec<Tree> = read(&text, path)
        .unwrap_or_else(|error| panic!("{error}"))
        .iter()
        .filter_map(|entry| entry.tree.as_ref().and_then(clean))
        .filter(|tree| tree.terminals().count() <= MAX_LENGTH)
        .collect();
    let n_train = (trees.len() as f64 * number(2, "0.9")) as usize;
    let (train, test) = trees.split_at(n_train);
    let n_words: usize = test.iter().map(|tree| tree.terminals().count()).sum();
    println!("{} trees to train on, {} with {n_words} words to parse", train.len(), test.len());
    let rounds = number(4, "30") as usize;
    for (threshold, classes) in [(1, Classes::Generic), (number(5, "1") as u32, Classes::Signatures)] {
        let treebank = Treebank::new(train, threshold, classes);
        println!("words up to {threshold}: {classes:?}; {} rules", treebank.rules.rules.len());
        for n_subtypes in argument(3, "1,2,4").split(',').map(|h| h.parse::<usize>().expect("a number")) {
            for method in [Method::Em, Method::Vb, Method::Cvb] {
                run(&treebank, test, n_subtypes, method, rounds, number(6, "0.01"));
            }
        }
    }
}

fn run(treebank: &Treebank, test: &[Tree], n_subtypes: usize, method: Method, rounds: usize, alpha: f64) {
    let layout = Layout::new(&treebank.rules, n_subtypes);
    let shard = Shard { trees: treebank.derivations.clone() };
    let weights = start(&treebank.rules, &layout, 0.01, 1);
    let begun = Instant::now();
    let (first, mut own) = collapsed::begin(&layout, &weights, &shard);
    let own_bytes = own.n_bytes();
    let mut params = Params { method, alpha, totals: first.counts };
    let mut bound = 0.0;
    for _ in 0..rounds {
        let expectation = if method == Method::Cvb {
            let (expectation, kept) = collapsed::pass(&layout, &params.totals, alpha, &shard, own);
            own = kept;
            expectation
        } else {
            expect(&layout, &params.weights(&layout), &shard)
        };
        bound = params.bound(&layout, expectation.ln_z);
        params.update(expectation);
    }
    let per_round = begun.elapsed().as_secs_f64() / (rounds + 1) as f64;
    let model = Model {
        weights: params.estimate(&layout),
        rules: treebank.rules.clone(),
        vocabulary: treebank.vocabulary.clone(),
        chains: treebank.chains.clone(),
        n_subtypes,
    };
    let parser = Parser::new(&model, THRESHOLD);
    for decoder in [Decoder::Viterbi, Decoder::MaxRule] {
        let begun = Instant::now();
        let parses =
            test.iter().map(|tree| parser.parse(&tree.terminals().collect::<Vec<_>>(), decoder).tree);
        let entries = |trees: Vec<Tree>| -> Vec<Entry> {
            trees.into_iter().map(|tree| Entry { line: 1, tree: Some(tree) }).collect()
        };
        let (predicted, gold) = (entries(parses.collect()), entries(test.to_vec()));
        let per_second = test.len() as f64 / begun.elapsed().as_secs_f64();
        let scores = score(
            Source { name: "gold", items: &gold },
            Source { name: "parses", items: &predicted },
            MAX_LENGTH,
        );
        let scores = scores.expect("the same sentences").all;
        let percent = |score: Option<f64>| 100.0 * score.unwrap_or(f64::NAN);
        println!(
            "H={n_subtypes:<2} {method:?} {decoder:?}: P {:.2} R {:.2} F {:.2} exact {:.2} tags {:.2} flat {} | bound {bound:.1}, \
             {per_round:.3} s/round, {per_second:.1} sentences/s, own {:.1} MiB",
            percent(scores.labelled.precision),
            percent(scores.labelled.recall),
            percent(scores.labelled.f1),
            percent(scores.exact),
            percent(scores.tagging),
            scores.unparsed,
            own_bytes as f64 / (1 << 20) as f64,
        );
    }
}
