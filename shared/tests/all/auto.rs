//! Laws of grammars made from a corpus, for every member of the family.

use grammaton::data::vowels::Sentences;
use grammaton::grammar::auto::{Alphabet, Auto, AutoGrammar, BEGIN, END, FAMILY, auto};
use grammaton::grammar::{Grammar, SymbolId};
use proptest::prelude::*;

use crate::support::derives;

/// The member of the family made for a corpus, sentences as indices of `symbols`, with found vowels, of which every other one is an inner one; and the
/// sentences.
fn made(kind: Auto, symbols: &[String], corpus: &[Vec<u32>]) -> (AutoGrammar, Vec<Vec<SymbolId>>) {
    let mut sentences = Sentences::default();
    sentences.add(corpus);
    let vowels = sentences.vowels(symbols);
    let inner: Vec<bool> = (0..symbols.len()).map(|at| at % 2 == 0).collect();
    // The third symbol, a vowel or not, marks stress.
    let stress_marks: Vec<bool> = (0..symbols.len()).map(|at| at == 2).collect();
    let of = Alphabet {
        symbols,
        vowels: &vowels,
        inner: &inner,
        stress_marks: &stress_marks,
        ..Alphabet::default()
    };
    let made = auto(kind, &of).unwrap();
    let terminal = |&symbol: &u32| made.grammar.symbol(&symbols[symbol as usize]).unwrap();
    let corpus = corpus.iter().map(|sentence| sentence.iter().map(terminal).collect()).collect();
    (made, corpus)
}

/// Symbols of a corpus numbered in order of first use, as a reader numbers them, and their names.
fn renumbered(mut corpus: Vec<Vec<u32>>) -> (Vec<String>, Vec<Vec<u32>>) {
    let mut known: Vec<u32> = Vec::new();
    for symbol in corpus.iter_mut().flatten() {
        let at = known.iter().position(|known| known == symbol).unwrap_or_else(|| {
            known.push(*symbol);
            known.len() - 1
        });
        *symbol = at as u32;
    }
    ((0..known.len()).map(|at| format!("s{at}")).collect(), corpus)
}

fn corpora() -> impl Strategy<Value = Vec<Vec<u32>>> {
    (1..6u32).prop_flat_map(|n| prop::collection::vec(prop::collection::vec(0..n, 1..8), 1..6))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn every_member_derives_every_sentence_of_its_corpus(corpus in corpora()) {
        let (symbols, corpus) = renumbered(corpus);
        for (name, kind) in FAMILY {
            let (made, sentences) = made(kind, &symbols, &corpus);
            for sentence in &sentences {
                prop_assert!(derives(&made.grammar, sentence), "{name}: {sentence:?} of {symbols:?}");
            }
        }
    }

    #[test]
    fn every_sentence_lies_in_segments(corpus in corpora()) {
        let (symbols, corpus) = renumbered(corpus);
        for (name, kind) in FAMILY {
            let (made, _) = made(kind, &symbols, &corpus);
            let outside = grammaton::grammar::unsegmented::unsegmented(&made.grammar, &made.segments);
            prop_assert!(outside.is_empty(), "{name}: {outside:?}");
        }
    }
}

#[test]
fn corpora_without_one_of_the_classes_are_derived() {
    let corpora: [&[&[u32]]; 5] = [
        &[&[0]],
        &[&[0, 0, 0, 0, 0, 0]],
        &[&[0, 1]],
        &[&[0], &[1], &[2]],
        &[&[0, 1, 0], &[1, 1], &[2, 2, 2]],
    ];
    for corpus in corpora {
        let corpus: Vec<Vec<u32>> = corpus.iter().map(|sentence| sentence.to_vec()).collect();
        let (symbols, corpus) = renumbered(corpus);
        for (name, kind) in FAMILY {
            let (made, sentences) = made(kind, &symbols, &corpus);
            assert!(sentences.iter().all(|sentence| derives(&made.grammar, sentence)), "{name}: {corpus:?}");
        }
    }
}

#[test]
fn given_vowels_may_leave_utterances_without_a_nucleus() {
    let symbols: Vec<String> = ["m", "a", "t"].map(str::to_owned).to_vec();
    for vowels in [[false, true, false], [false; 3], [true; 3]] {
        for (name, kind) in FAMILY {
            let of = Alphabet {
                symbols: &symbols,
                vowels: &vowels,
                stress_marks: &[false; 3],
                ..Alphabet::default()
            };
            let grammar = auto(kind, &of).unwrap().grammar;
            for sentence in ["m", "m m m m m m", "a", "a a a a a a a", "m a t m t a m", "t m a"] {
                let tokens = grammar.tokens(sentence).unwrap();
                assert!(derives(&grammar, &tokens), "{name}, {vowels:?}: {sentence}");
            }
        }
    }
}

#[test]
fn morph_grammars_derive_marked_words_alone() {
    let symbols: Vec<String> = [BEGIN, "u", "n", END].map(str::to_owned).to_vec();
    let derived = |grammar: &Grammar, word: &str| derives(grammar, &grammar.tokens(word).unwrap());
    for (name, kind) in FAMILY.iter().filter(|(_, kind)| kind.has_affixes()) {
        let grammar = auto(*kind, &Alphabet { symbols: &symbols, ..Alphabet::default() }).unwrap().grammar;
        for word in ["^^^ u $$$", "^^^ u n n u $$$"] {
            assert!(derived(&grammar, word), "{name}: {word}");
        }
        for word in ["u", "^^^ u", "u $$$", "^^^ $$$", "^^^ u ^^^ $$$"] {
            assert!(!derived(&grammar, word), "{name}: {word}");
        }
    }
}

/// A change of this digest is a change of grammars that jobs name.
#[test]
fn grammars_of_the_family_do_not_change() {
    // With and without the marks of words, with names of nonterminals and of the syntax of templates, and with what is no symbol.
    let alphabets = "|a|a a|t a|a t ˈ|t ˈ a s|a  t|^^^ a t $$$|$$$ t a ^^^|^^^ $$$|a ^^^ t|Word Char Word_ Sentence|# ( <1> [left] -->|a t\t1 s";
    let affixes: [[&[Vec<usize>]; 2]; 4] = [
        [&[], &[]],
        [&[vec![0]], &[]],
        [&[vec![1, 0], vec![0, 1], vec![1, 0]], &[vec![0]]],
        [&[], &[vec![0, 1, 1], vec![]]],
    ];
    let mut digest = blake3::Hasher::new();
    for alphabet in alphabets.split('|') {
        let symbols: Vec<String> = alphabet.split_terminator(' ').map(str::to_owned).collect();
        let class = |bits: usize| -> Vec<bool> { (0..symbols.len()).map(|at| bits >> at & 1 == 1).collect() };
        for (low, high) in (0..4).flat_map(|low| [(low, 0), (low, 1)]) {
            let [prefixes, suffixes] = affixes[if symbols.len() < 2 { 0 } else { low }];
            let (vowels, stress_marks, adapt_affixes) = (&class(low)[..], &class(4 * high)[..], high == 1);
            let symbols = &symbols[..];
            let of = Alphabet {
                symbols,
                vowels,
                stress_marks,
                prefixes,
                suffixes,
                adapt_affixes,
                ..Alphabet::default()
            };
            for (name, kind) in FAMILY {
                digest.update(format!("{name} {:?}\n", auto(kind, &of)).as_bytes());
            }
        }
    }
    assert_eq!(
        digest.finalize().to_hex().as_str(),
        "8d0a16f4c66d5c8fedb31f98a1807116aaf73cafcec5c038305f9a3f47078c68"
    );
}
