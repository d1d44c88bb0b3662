//! Cost of the index of strings: memory, building, and finding all strings of a stick in sentences.
//!
//! ```text
//! cargo bench -p grammaton --bench strings -- [STRINGS …]
//! ```
//!
//! By default 15,000, 1 and 10 million distinct strings, drawn from a Zipf distribution over 50 symbols, letters of words of up to 20, and
//! over 20,000, words of phrases of up to 6. Sentences are runs of twenty of these strings, a million symbols together. The cheapest of
//! three passes is printed, since others may use the machine as well.

use std::sync::Arc;

use grammaton::forest::strings::StringIndex;
use grammaton::grammar::auto::{Alphabet, Auto, auto};
use grammaton::grammar::lexicon::{Lexicon, StickStrings, Strings};
use grammaton::grammar::{Grammar, SymbolId};
use grammaton::num::random::{below, stream, uniform};
use rand_pcg::Pcg64Mcg;
use rustc_hash::FxHashSet;

const SENTENCE: usize = 20;
const SYMBOLS: usize = 1_000_000;

fn main() {
    let mut sizes: Vec<usize> = std::env::args().filter_map(|arg| arg.parse().ok()).collect();
    if sizes.is_empty() {
        sizes = vec![15_000, 1_000_000, 10_000_000];
    }
    for (what, n_symbols, more, longest) in [("letters", 50, 0.85, 20), ("words", 20_000, 0.6, 6)] {
        for &n in &sizes {
            measure(what, n, &Drawn { n_symbols, more, longest });
        }
    }
}

/// How strings are drawn: symbols by Zipf's law, another one with probability `more`.
struct Drawn {
    n_symbols: usize,
    more: f64,
    longest: usize,
}

fn measure(what: &str, n: usize, drawn: &Drawn) {
    let names: Vec<String> = (0..drawn.n_symbols).map(|number| format!("s{number}")).collect();
    let made = auto(Auto::UNIGRAM, &Alphabet { symbols: &names, ..Alphabet::default() })
        .expect("symbols make a grammar");
    let (grammar, symbol) = (made.grammar, made.segments[0]);
    let mut random = stream(1, 0, n as u64);
    let strings = strings(n, drawn, &grammar, &mut random);
    let sentences = sentences(&strings, &mut random);
    let lexicon = Arc::new(Lexicon { sticks: vec![StickStrings { symbol, strings }] });
    let n_symbols = lexicon.sticks[0].strings.n_symbols();

    let begun = seconds();
    let index = StringIndex::new(&grammar, lexicon.clone());
    let built = seconds() - begun;
    let mut n_found = 0;
    let passes = (0..3).map(|_| {
        let begun = seconds();
        n_found = 0;
        for sentence in &sentences {
            (0..sentence.len()).for_each(|start| index.matches(sentence, start, |_, _, _| n_found += 1));
        }
        seconds() - begun
    });
    let best = passes.fold(f64::INFINITY, f64::min);
    println!(
        "{what:8} {n:>9} strings of {:.1} symbols: lexicon {:.1} B, index {:.1} B a string, built in {built:.2} CPU s; {:.0} ns a symbol of a sentence, {:.1} strings found",
        n_symbols as f64 / n as f64,
        4.0 + 4.0 * n_symbols as f64 / n as f64,
        index.size() as f64 / n as f64,
        1e9 * best / SYMBOLS as f64,
        n_found as f64 / SYMBOLS as f64,
    );
}

/// Distinct strings, in the order in which they were drawn first.
fn strings(n: usize, drawn: &Drawn, grammar: &Grammar, random: &mut Pcg64Mcg) -> Strings {
    let mut cumulative = Vec::with_capacity(drawn.n_symbols);
    let mut total = 0.0;
    for rank in 0..drawn.n_symbols {
        total += 1.0 / (rank as f64 + 2.7);
        cumulative.push(total);
    }
    let mut known = FxHashSet::default();
    let mut strings = Strings::new();
    let mut string = Vec::new();
    while strings.len() < n {
        string.clear();
        while string.is_empty() || (string.len() < drawn.longest && uniform(random) < drawn.more) {
            let at = uniform(random) * total;
            let rank = cumulative.partition_point(|&sum| sum <= at).min(drawn.n_symbols - 1);
            string.push(SymbolId(grammar.n_nonterminals + rank as u32));
        }
        let mix = |hash: u64, symbol: &SymbolId| {
            (hash ^ u64::from(symbol.0)).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(29)
        };
        if known.insert(string.iter().fold(string.len() as u64, mix)) {
            strings.push(&string);
        }
    }
    strings
}

fn sentences(strings: &Strings, random: &mut Pcg64Mcg) -> Vec<Vec<SymbolId>> {
    let (mut sentences, mut n) = (Vec::new(), 0);
    while n < SYMBOLS {
        let some = (0..SENTENCE).flat_map(|_| strings[below(strings.len(), random)].iter().copied());
        let sentence: Vec<SymbolId> = some.take(SYMBOLS - n).collect();
        n += sentence.len();
        sentences.push(sentence);
    }
    sentences
}

/// Seconds that this thread has computed, which only Linux tells.
fn seconds() -> f64 {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").expect("Linux has this file");
    let nanos = text.split(' ').next().and_then(|nanos| nanos.parse::<f64>().ok());
    nanos.expect("it begins with nanoseconds") / 1e9
}
