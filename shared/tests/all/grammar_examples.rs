//! The grammars of `examples/grammars`: valid, without notices, and able to derive what they are for.

use shared::data::corpus::{Corpus, Options};
use shared::grammar::{Grammar, SymbolId, syntax};

const PHONEMES: &str = "&679AEIOQUaeiou#%()*3RLM~DGNSTWZbcdfghklmnprstvwyz";

fn example(name: &str) -> Grammar {
    let path = format!("{}/../examples/grammars/{name}.gr", env!("CARGO_MANIFEST_DIR"));
    let text = std::fs::read_to_string(&path).expect("the example is in the repository");
    let (grammar, notices) = syntax::parse(&text, name).unwrap_or_else(|error| panic!("{error}"));
    assert!(notices.is_empty(), "{name}: {}", notices[0]);
    assert_eq!(syntax::parse(&syntax::print(&grammar), name).unwrap().0, grammar);
    grammar
}

fn adapted(grammar: &Grammar) -> Vec<&str> {
    grammar.adapted().map(|symbol| grammar.name(symbol)).collect()
}

/// Whether `grammar` derives `tokens`: over each span, the set of symbols that derive it, shortest spans first.
fn derives(grammar: &Grammar, tokens: &[SymbolId]) -> bool {
    let n = tokens.len();
    let mut chart = vec![vec![vec![false; grammar.symbols.len()]; n + 1]; n];
    for length in 1..=n {
        for start in 0..=n - length {
            let end = start + length;
            if length == 1 {
                chart[start][end][tokens[start].index()] = true;
            }
            // Unary rules may chain, in any order.
            loop {
                let fits = |rule: &&shared::grammar::Rule| {
                    !chart[start][end][rule.parent.index()] && covers(&chart, &rule.children, start, end)
                };
                let found: Vec<usize> =
                    grammar.rules.iter().filter(fits).map(|rule| rule.parent.index()).collect();
                if found.is_empty() {
                    break;
                }
                found.into_iter().for_each(|parent| chart[start][end][parent] = true);
            }
        }
    }
    chart[0][n][Grammar::START.index()]
}

fn covers(chart: &[Vec<Vec<bool>>], children: &[SymbolId], start: usize, end: usize) -> bool {
    match children {
        [] => start == end,
        [only] => start < end && chart[start][end][only.index()],
        [first, rest @ ..] => (start + 1..end)
            .any(|middle| chart[start][middle][first.index()] && covers(chart, rest, middle, end)),
    }
}

fn check(grammar: &Grammar, derived: &str, refused: &str) {
    for (text, expected) in [(derived, true), (refused, false)] {
        if !text.is_empty() {
            let (corpus, _) = Corpus::read(text.as_bytes(), "made up", &Options::default()).unwrap();
            for (place, tokens) in corpus.tokens_for(grammar).unwrap().iter().enumerate() {
                assert_eq!(derives(grammar, tokens), expected, "line {} of {text:?}", place + 1);
            }
        }
    }
}

#[test]
fn unigram_and_colloc_derive_any_phonemes() {
    let unigram = example("unigram");
    assert_eq!(adapted(&unigram), ["Word"]);
    check(&unigram, &format!("tu b6\n{PHONEMES}\nS\n"), "");
    let colloc = example("colloc");
    assert_eq!(adapted(&colloc), ["Colloc", "Word"]);
    check(&colloc, &format!("tu b6\n{PHONEMES}\nS\n"), "");
}

#[test]
fn syllable_grammars_derive_whatever_has_a_vowel() {
    let utterances = format!("{PHONEMES}\nI\nb6 lu\nstrENTs\nbatL\ntu strIN bib6 zmatLz\n&e\n");
    let syllable = example("syllable");
    assert_eq!(adapted(&syllable), ["Colloc", "Word", "OnsetI", "Onset", "Nucleus", "Coda", "CodaF"]);
    check(&syllable, &utterances, "S\nstr\n");
    let colloc3 = example("colloc3-syllable");
    assert_eq!(
        adapted(&colloc3),
        ["Colloc3", "Colloc2", "Colloc", "FuncWord", "Word", "OnsetI", "Onset", "Nucleus", "Coda", "CodaF"]
    );
    check(&colloc3, &utterances, "S\nstr\n");
}

#[test]
fn morphology_derives_any_letters() {
    let morphology = example("morphology");
    assert_eq!(adapted(&morphology), ["Prefix", "Stem", "Suffix"]);
    check(&morphology, "a\nun break able\nabcdefghijklmnopqrstuvwxyz\n", "");
}
