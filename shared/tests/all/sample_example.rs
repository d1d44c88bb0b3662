//! `examples/segmentation` and `examples/morphemes`: the data are what the grammars and seed 1 give, as their READMEs say; and the languages
//! of `examples/languages`.

use std::collections::BTreeSet;

use grammaton::data::corpus::{Corpus, Options, Unit, line_of_tree};
use grammaton::data::generate;
use grammaton::data::vowels::Sentences;
use grammaton::grammar::syntax;

fn example(name: &str) -> String {
    let path = format!("{}/../examples/{name}", env!("CARGO_MANIFEST_DIR"));
    std::fs::read_to_string(path).expect("the example is in the repository")
}

/// 2,500 lines drawn from a grammar with seed 1.
fn drawn(grammar: &str, segments: &[&str]) -> Vec<String> {
    drawn_with(grammar, segments, 1)
}

fn drawn_with(grammar: &str, segments: &[&str], seed: u64) -> Vec<String> {
    let (grammar, notices) = syntax::parse(&example(grammar), grammar).unwrap();
    assert!(notices.is_empty(), "{}", notices[0]);
    let terminals = &grammar.symbols[grammar.n_nonterminals as usize..];
    let unit = Unit::fitting(terminals.iter().map(String::as_str));
    let trees = generate::sample(&grammar, 2500, seed, &generate::Options::default()).unwrap();
    let line = |tree| line_of_tree(tree, |label| segments.contains(&label), unit) + "\n";
    trees.iter().map(line).collect()
}

#[test]
fn drawing_the_corpus_again_gives_the_same_bytes() {
    let lines = drawn("segmentation/lexicon.gr", &["Word"]);
    assert!(
        lines.concat() == example("segmentation/corpus.txt"),
        "corpus.txt differs; draw it again as its README says"
    );
}

#[test]
fn drawing_the_words_again_gives_the_same_bytes() {
    let segments = ["Subject", "Tense", "Stem", "Extension", "Ending"];
    let words: BTreeSet<String> = drawn("morphemes/verbs.gr", &segments).into_iter().collect();
    let words: String = words.into_iter().collect();
    assert!(words == example("morphemes/words.txt"), "words.txt differs; draw it again as its README says");
}

#[test]
fn the_corpus_has_sentences_of_two_to_seven_words() {
    let (corpus, notices) =
        Corpus::read(example("segmentation/corpus.txt").as_bytes(), "corpus.txt", &Options::default())
            .unwrap();
    assert!(notices.is_empty());
    assert_eq!((corpus.sentences.len(), corpus.symbols.len()), (2500, 16));
    assert!(corpus.segmentation().iter().all(|ends| (2..=7).contains(&ends.len())));
}

const LANGUAGES: [(&str, &[&str]); 5] = [
    ("isolating", &["Word", "Particle"]),
    ("agglutinating", &["Word"]),
    ("poor-syllables", &["Word", "Particle"]),
    ("rich-syllables", &["Word", "Article"]),
    ("stressed", &["Word", "Particle"]),
];

#[test]
fn vowels_of_the_languages_are_found_by_letters() {
    for (name, segments) in LANGUAGES {
        for seed in 1..6 {
            let text = drawn_with(&format!("languages/{name}.gr"), segments, seed).concat();
            let (corpus, _) = Corpus::read(text.as_bytes(), name, &Options::default()).unwrap();
            let mut sentences = Sentences::default();
            sentences.add(&corpus.sentences);
            let found = sentences.vowels(&corpus.symbols).into_iter().zip(&corpus.symbols);
            let found: BTreeSet<&str> = found.filter(|(is, _)| *is).map(|(_, symbol)| &**symbol).collect();
            let all: BTreeSet<&str> = corpus.symbols.iter().map(String::as_str).collect();
            let vowels: BTreeSet<&str> = ["a", "e", "i", "o", "u", "y", "A", "E", "O"].into();
            assert_eq!(found, &all & &vowels, "{name}, seed {seed}");
        }
    }
}

#[test]
fn languages_are_of_their_kinds() {
    for (name, segments) in LANGUAGES {
        let lines = drawn(&format!("languages/{name}.gr"), segments);
        let words: Vec<&str> = lines.iter().flat_map(|line| line.split_whitespace()).collect();
        let is_vowel = |letter: char| "aeiouyAEO".contains(letter);
        let n_vowels = |word: &&str| word.chars().filter(|&letter| is_vowel(letter)).count();
        let n_short = words.iter().filter(|word| n_vowels(word) == 1).count();
        let is_isolating = 4 * n_short > 3 * words.len();
        assert_eq!(
            is_isolating,
            name == "isolating",
            "{name}: {n_short} of {} words have one vowel",
            words.len()
        );
        let types: BTreeSet<&str> = words.iter().copied().collect();
        assert!((300..1500).contains(&types.len()), "{name}: {} types", types.len());
        let is_stressed = words.iter().any(|word| word.contains('ˈ'));
        assert_eq!(is_stressed, name == "stressed");
    }
}
