//! `examples/segmentation`: the corpus is what the grammar and seed 1 give, and is what its README says.

use shared::data::corpus::{Corpus, Options, Unit, line_of_tree};
use shared::data::generate;
use shared::grammar::syntax;

fn example(name: &str) -> String {
    let path = format!("{}/../examples/segmentation/{name}", env!("CARGO_MANIFEST_DIR"));
    std::fs::read_to_string(path).expect("the example is in the repository")
}

#[test]
fn drawing_the_corpus_again_gives_the_same_bytes() {
    let (grammar, notices) = syntax::parse(&example("lexicon.gr"), "lexicon.gr").unwrap();
    assert!(notices.is_empty(), "{}", notices[0]);
    let terminals = &grammar.symbols[grammar.n_nonterminals as usize..];
    let unit = Unit::fitting(terminals.iter().map(String::as_str));
    let mut drawn = String::new();
    for tree in generate::sample(&grammar, 2500, 1, &generate::Options::default()).unwrap() {
        drawn += &line_of_tree(&tree, |label| label == "Word", unit);
        drawn.push('\n');
    }
    assert!(drawn == example("corpus.txt"), "corpus.txt differs; draw it again as its README says");
}

#[test]
fn the_corpus_has_sentences_of_two_to_seven_words() {
    let (corpus, notices) =
        Corpus::read(example("corpus.txt").as_bytes(), "corpus.txt", &Options::default()).unwrap();
    assert!(notices.is_empty());
    assert_eq!((corpus.sentences.len(), corpus.symbols.len()), (2500, 16));
    assert!(corpus.segmentation().iter().all(|ends| (2..=7).contains(&ends.len())));
}
