//! The grammars of `examples/grammars`: valid, without notices, and able to derive what they are for.

use std::collections::BTreeSet;

use grammaton::data::corpus::{Corpus, Options};
use grammaton::grammar::auto::{Alphabet, auto};
use grammaton::grammar::{Grammar, SymbolId, syntax};

use crate::support::derives;

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
        [
            "Colloc3",
            "FuncWords3",
            "FuncWord3",
            "Colloc2",
            "FuncWords2",
            "FuncWord2",
            "Colloc1",
            "FuncWords1",
            "FuncWord1",
            "Word",
            "OnsetI",
            "Onset",
            "Nucleus",
            "Coda",
            "CodaF"
        ]
    );
    check(&colloc3, &utterances, "S\nstr\n");
}

/// The example differs from the member of the family in utterances without a vowel, which it does not derive.
#[test]
fn colloc3_syllable_is_the_member_of_the_family_for_its_symbols() {
    let example = example("colloc3-syllable");
    let terminal = |symbol: u32| example.name(SymbolId(symbol)).to_owned();
    let symbols: Vec<String> = (example.n_nonterminals..example.symbols.len() as u32).map(terminal).collect();
    let parent = |symbol: &String| {
        let child = example.symbol(symbol);
        let rule = example.rules.iter().find(|rule| rule.children.first() == child.as_ref()).unwrap();
        example.name(rule.parent)
    };
    let vowels: Vec<bool> = symbols.iter().map(|symbol| parent(symbol) == "Vowel").collect();
    let kind = "colloc3-syllable-functionwords-left".parse().unwrap();
    let made =
        auto(kind, &Alphabet { symbols: &symbols, vowels: &vowels, ..Alphabet::default() }).unwrap().grammar;
    let lines = |grammar: &Grammar| -> BTreeSet<String> {
        syntax::print(grammar).lines().map(str::to_owned).collect()
    };
    let (made, example) = (lines(&made), lines(&example));
    assert_eq!(
        made.difference(&example).collect::<Vec<_>>(),
        ["1 1 Sentence --> WithoutNucleus", "1 WithoutNucleus --> Consonants"]
    );
    assert!(example.is_subset(&made));
}

#[test]
fn morphology_derives_any_letters() {
    let morphology = example("morphology");
    assert_eq!(adapted(&morphology), ["Prefix", "Stem", "Suffix"]);
    check(&morphology, "a\nun break able\nabcdefghijklmnopqrstuvwxyz\n", "");
}
