//! Grammars of words in utterances. With X* for an adapted X, X+ for one or more and (X) for none or one, three levels are
//!
//! ```text
//! Sentence -> Colloc3+          Colloc3* -> (FuncWords3) Colloc2+     Colloc2* -> (FuncWords2) Colloc1+
//! Colloc1* -> (FuncWords1) Word+     FuncWordsN* -> FuncWordN+     FuncWordN* -> SyllableIF
//! Word*    -> SyllableIF | SyllableI Syllable{0,2} SyllableF          (without syllables: Word* -> Char+)
//! SyllableIF -> (OnsetI) RhymeF     SyllableI -> (OnsetI) Rhyme     SyllableF -> (Onset) RhymeF     Syllable -> (Onset) Rhyme
//! RhymeF -> Nucleus (CodaF)     Rhyme -> Nucleus (Coda)     OnsetI*, Onset*, Coda*, CodaF* -> Consonant+     Nucleus* -> Vowel+
//! ```
//!
//! after Johnson, Christophe, Demuth & Dupoux (2014), with one more rule, `SyllableIF -> Consonant+` of pseudo-count [`WITHOUT_NUCLEUS`].
//! A single level and its function words have names without a number.

use super::draft::Draft;
use super::{Edge, Words};

/// Pseudo-count of a syllable without a nucleus, so that an utterance without a vowel has a derivation.
pub(super) const WITHOUT_NUCLEUS: f64 = 0.01;

/// Adds the rules of utterances with that many levels of collocations.
pub(super) fn draft(draft: &mut Draft<'_>, levels: u8, words: Words, vowels: &[bool]) {
    let number = |level: u8| if levels == 1 { String::new() } else { level.to_string() };
    let element = |level: u8| match level {
        0 => "Word".to_owned(),
        level => format!("Colloc{}", number(level)),
    };
    let list = |level: u8| element(level) + "s";
    draft.rules("Sentence", &[&list(levels)]);
    draft.list(&list(levels), &element(levels));
    let function_words = match words {
        Words::Syllables { function_words } => function_words,
        Words::Symbols => None,
    };
    for level in (1..=levels).rev() {
        let (inner, number) = (list(level - 1), number(level));
        let run = format!("FuncWords{number}");
        let (before, after) = (format!("{run} {inner}"), format!("{inner} {run}"));
        let around = format!("{run} {inner} {run}");
        let alternatives: &[&str] = match function_words {
            None => &[&inner],
            Some(Edge::Left) => &[&inner, &before],
            Some(Edge::Right) => &[&inner, &after],
            Some(Edge::Both) => &[&inner, &before, &after, &around],
        };
        draft.adapted(&element(level), alternatives);
        if function_words.is_some() {
            let (word, sequence) = (format!("FuncWord{number}"), format!("FuncWordList{number}"));
            draft.adapted(&run, &[&sequence]);
            draft.list(&sequence, &word);
            draft.adapted(&word, &["SyllableIF"]);
            draft.segment(&word);
        }
        draft.list(&inner, &element(level - 1));
    }
    draft.segment("Word");
    match words {
        Words::Symbols => {
            draft.adapted("Word", &["Chars"]);
            draft.list("Chars", "Char");
            draft.terminals("Char", |_| true);
        }
        Words::Syllables { .. } => syllables(draft, vowels),
    }
}

/// Adds the rules of words of syllables. I: first in the word; F: last in the word; IF: both.
fn syllables(draft: &mut Draft<'_>, vowels: &[bool]) {
    let words = [
        "SyllableIF",
        "SyllableI SyllableF",
        "SyllableI Syllable SyllableF",
        "SyllableI Syllable Syllable SyllableF",
    ];
    draft.adapted("Word", &words);
    draft.rules("SyllableIF", &["RhymeF", "OnsetI RhymeF"]);
    draft.weighted(WITHOUT_NUCLEUS, "SyllableIF", "Consonants");
    draft.rules("SyllableI", &["Rhyme", "OnsetI Rhyme"]);
    draft.rules("SyllableF", &["RhymeF", "Onset RhymeF"]);
    draft.rules("Syllable", &["Rhyme", "Onset Rhyme"]);
    draft.rules("Rhyme", &["Nucleus", "Nucleus Coda"]);
    draft.rules("RhymeF", &["Nucleus", "Nucleus CodaF"]);
    for cluster in ["OnsetI", "Onset", "Coda", "CodaF"] {
        draft.adapted(cluster, &["Consonants"]);
    }
    draft.adapted("Nucleus", &["Vowels"]);
    draft.list("Consonants", "Consonant");
    draft.list("Vowels", "Vowel");
    draft.terminals("Consonant", |at| !vowels[at]);
    draft.terminals("Vowel", |at| vowels[at]);
}
