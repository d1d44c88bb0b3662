//! Cost of a round of a dense PCFG on one core.
//!
//! ```text
//! cargo bench -p grammaton --bench dense -- [SENTENCES [LENGTH]]
//! ```
//!
//! By default 2,000 sentences of length 10 over 45 words, one word per preterminal and then every word from every
//! preterminal; 30 nonterminals, 45 preterminals, all 30 · 75 · 75 binary rules, random weights. A round is inside, outside,
//! expected counts and EM's update; the cheapest of the rounds is printed, since others may use the machine as well.
//!
//! *Multiply-adds* are those of the factored algorithm: children gathered over splits, and the products with the rules, once
//! inside, once outside and once for the counts. *Rule evaluations* are what a program without the factoring does: an
//! evaluation per span, split and rule that can be there, inside, outside and for the counts.

use std::fmt::Write;

use grammaton::data::Sentence;
use grammaton::forest::binary::BinaryGrammar;
use grammaton::forest::dense::Dense;
use grammaton::grammar::ParamId;
use grammaton::grammar::{Grammar, SymbolId, syntax};
use grammaton::num::{Noise, Wide};
use grammaton::work::shard::DEFAULT_SHARD_SYMBOLS;

const NONTERMINALS: usize = 30;
const PRETERMINALS: usize = 45;
const ROUNDS: usize = 5;

fn main() {
    let args: Vec<usize> = std::env::args().filter_map(|arg| arg.parse().ok()).collect();
    let (n, length) = (args.first().copied().unwrap_or(2000), args.get(1).copied().unwrap_or(10));
    for (what, full) in [("one word per preterminal", false), ("every word from every preterminal", true)] {
        let grammar = grammar(full);
        println!("{what}: {} rules, {n} sentences of length {length}", grammar.rules.len());
        measure(&grammar, n, length);
    }
}

fn grammar(full_lexicon: bool) -> Grammar {
    let mut text = String::new();
    let symbol = |number: usize| match number.checked_sub(NONTERMINALS) {
        None => format!("N{number}"),
        Some(number) => format!("P{number}"),
    };
    for number in 0..NONTERMINALS {
        writeln!(text, "1 1 S --> N{number}").expect("strings take all");
    }
    for parent in 0..NONTERMINALS {
        for left in 0..NONTERMINALS + PRETERMINALS {
            for right in 0..NONTERMINALS + PRETERMINALS {
                writeln!(text, "1 1 N{parent} --> {} {}", symbol(left), symbol(right))
                    .expect("strings take all");
            }
        }
    }
    for number in 0..PRETERMINALS {
        for word in (0..PRETERMINALS).filter(|&word| full_lexicon || word == number) {
            writeln!(text, "1 1 P{number} --> w{word}").expect("strings take all");
        }
    }
    syntax::parse(&text, "dense").expect("the grammar is in order").0
}

fn measure(grammar: &Grammar, n: usize, length: usize) {
    let binary = BinaryGrammar::new(grammar);
    assert!(Dense::fits(&binary));
    let noise = Noise::new(1, 0);
    let words: Vec<SymbolId> = (grammar.n_nonterminals..grammar.symbols.len() as u32).map(SymbolId).collect();
    let word = |place: usize| words[(place * 7919 + place / 13) % words.len()];
    let sentences: Vec<Sentence> = (0..n)
        .map(|sentence| {
            let place = |at| ((noise.symmetric((sentence * length + at) as u64) + 1.0) * 1e6) as usize;
            Sentence::new((0..length).map(|at| word(place(at))).collect(), 1)
        })
        .collect();
    let shards: Vec<Dense> = sentences
        .chunks((DEFAULT_SHARD_SYMBOLS as usize).div_ceil(length))
        .map(|shard| Dense::new(&binary, shard))
        .collect();
    let n_params = grammar.space().n_params();
    let mut weights: Vec<f64> = (0..n_params).map(|rule| noise.symmetric(rule as u64) + 1.5).collect();
    normalise(grammar, &mut weights);
    let mut best = f64::INFINITY;
    for _ in 0..ROUNDS {
        let begun = seconds();
        let wide: Vec<Wide> = weights.iter().map(|&weight| Wide::from_f64(weight)).collect();
        let mut counts = vec![0.0; n_params];
        for shard in &shards {
            let local: Vec<Wide> = shard.params().iter().map(|param| wide[param.index()]).collect();
            let expected = shard.expect(&local);
            shard
                .params()
                .iter()
                .zip(&expected.counts)
                .for_each(|(param, count)| counts[param.index()] += count);
        }
        weights = counts;
        weights[ParamId::ONE.index()] = 1.0;
        normalise(grammar, &mut weights);
        best = best.min(seconds() - begun);
    }
    let (adds, evaluations) = work(length);
    let rate = n as f64 / best;
    println!(
        "  {best:.3} CPU s a round, {rate:.0} sentences, {:.2}e9 multiply-adds, {:.2}e9 rule evaluations per CPU s",
        rate * adds / 1e9,
        rate * evaluations / 1e9
    );
}

/// Multiply-adds and rule evaluations of a sentence.
fn work(length: usize) -> (f64, f64) {
    let (n, p) = (NONTERMINALS as f64, PRETERMINALS as f64);
    let (mut gathered, mut products, mut evaluations) = (0.0, 0.0, 0.0);
    for width in 2..=length {
        let spans = (length + 1 - width) as f64;
        let pairs = match width {
            2 => vec![(p * p, 1.0)],
            3 => vec![(2.0 * n * p, 1.0)],
            _ => vec![(2.0 * n * p, 1.0), (n * n, (width - 3) as f64)],
        };
        for (pairs, splits) in pairs {
            gathered += spans * pairs * splits;
            products += spans * pairs * n;
            evaluations += spans * pairs * splits * n;
        }
    }
    // Gathered inside and for the counts, and twice spread outside.
    (4.0 * gathered + 3.0 * products, 3.0 * evaluations)
}

fn normalise(grammar: &Grammar, weights: &mut [f64]) {
    let mut sums = vec![0.0; grammar.n_nonterminals as usize];
    for (rule, weight) in grammar.rules.iter().zip(&weights[1..]) {
        sums[rule.parent.index()] += weight;
    }
    for (rule, weight) in grammar.rules.iter().zip(&mut weights[1..]) {
        *weight /= sums[rule.parent.index()];
    }
}

/// Seconds that this thread has computed, which only Linux tells.
fn seconds() -> f64 {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").expect("Linux has this file");
    let nanos = text.split(' ').next().and_then(|nanos| nanos.parse::<f64>().ok());
    nanos.expect("it begins with nanoseconds") / 1e9
}
