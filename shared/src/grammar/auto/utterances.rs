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
//! after Johnson, Christophe, Demuth & Dupoux (2014). A single level and its function words have names without a number.
//!
//! So that every utterance has a derivation, one without a vowel ("mhm", "sh") is a segment: `Sentence -> WithoutNucleus`,
//! `WithoutNucleus* -> Consonant+`. Words without a vowel beside others would be learned from the ends of words, as "t" and "z" in English, however small
//! their pseudo-count (docs/results/segment.md). If all symbols are consonants, words are sequences of them: `SyllableIF -> Consonant+`.
//!
//! With stress (Börschinger & Johnson 2014) a mark follows the nucleus of a stressed syllable, and a word has a rule for each pattern of
//! stressed and unstressed syllables, so that it learns which patterns are words:
//!
//! ```text
//! Word* -> SyllableIF | StressedSyllableIF | SyllableI SyllableF | StressedSyllableI SyllableF | …    (30 patterns)
//! StressedSyllableX -> (Onset) StressedRhymeX     StressedRhymeX -> Nucleus Stress (CodaX)     Stress -> a mark
//! FuncWordN* -> SyllableIF | StressedSyllableIF
//! ```
//!
//! A mark elsewhere is a consonant of pseudo-count [`STRAY_MARK`].

use super::draft::Draft;
use super::{Alphabet, Edge, Words};

/// Pseudo-count of a stress mark outside of a nucleus, so that every utterance has a derivation.
const STRAY_MARK: f64 = 0.01;

/// Adds the rules of utterances with that many levels of collocations.
pub(super) fn draft(draft: &mut Draft<'_>, levels: u8, words: Words, of: &Alphabet<'_>) {
    let number = |level: u8| if levels == 1 { String::new() } else { level.to_string() };
    let element = |level: u8| match level {
        0 => "Word".to_owned(),
        level => format!("Colloc{}", number(level)),
    };
    let list = |level: u8| element(level) + "s";
    draft.rules("Sentence", &[&list(levels)]);
    draft.list(&list(levels), &element(levels));
    let function_words = match words {
        Words::Syllables { function_words, .. } => function_words,
        Words::Symbols => None,
    };
    let monosyllables: &[&str] = match words {
        Words::Syllables { stress: true, .. } => &["SyllableIF", "StressedSyllableIF"],
        _ => &["SyllableIF"],
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
            draft.adapted(&word, monosyllables);
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
        Words::Syllables { stress, .. } => syllables(draft, stress, of),
    }
}

/// Adds the rules of words of syllables. I: first in the word; F: last in the word; IF: both.
fn syllables(draft: &mut Draft<'_>, has_stress: bool, of: &Alphabet<'_>) {
    let is_mark = |at: usize| has_stress && of.stress_marks[at];
    let stresses: &[&str] = if has_stress { &["", STRESSED] } else { &[""] };
    let words: Vec<String> = LENGTHS.iter().flat_map(|syllables| patterns(syllables, stresses)).collect();
    draft.adapted("Word", &words.iter().map(String::as_str).collect::<Vec<_>>());
    for stress in stresses {
        for (place, onset, last) in
            [("IF", "OnsetI", "F"), ("I", "OnsetI", ""), ("F", "Onset", "F"), ("", "Onset", "")]
        {
            let (syllable, rhyme) = (format!("{stress}Syllable{place}"), format!("{stress}Rhyme{last}"));
            draft.rules(&syllable, &[&rhyme, &format!("{onset} {rhyme}")]);
        }
        let nucleus = if stress.is_empty() { "Nucleus" } else { "Nucleus Stress" };
        draft.rules(&format!("{stress}Rhyme"), &[nucleus, &format!("{nucleus} Coda")]);
        draft.rules(&format!("{stress}RhymeF"), &[nucleus, &format!("{nucleus} CodaF")]);
    }
    let is_vowel = |at: usize| of.vowels[at] && !is_mark(at);
    if (0..of.symbols.len()).any(is_vowel) {
        draft.rules("Sentence", &["WithoutNucleus"]);
        draft.adapted("WithoutNucleus", &["Consonants"]);
        draft.segment("WithoutNucleus");
    } else {
        draft.rules("SyllableIF", &["Consonants"]);
    }
    for cluster in ["OnsetI", "Onset", "Coda", "CodaF"] {
        draft.adapted(cluster, &["Consonants"]);
    }
    draft.adapted("Nucleus", &["Vowels"]);
    draft.list("Consonants", "Consonant");
    draft.list("Vowels", "Vowel");
    draft.terminals("Consonant", |at| !of.vowels[at] && !is_mark(at));
    draft.weighted_terminals(STRAY_MARK, "Consonant", is_mark);
    draft.terminals("Vowel", is_vowel);
    draft.terminals("Stress", is_mark);
}

/// Prefix of the names of stressed syllables.
const STRESSED: &str = "Stressed";
/// The syllables of words of one to four syllables.
const LENGTHS: [&[&str]; 4] = [
    &["SyllableIF"],
    &["SyllableI", "SyllableF"],
    &["SyllableI", "Syllable", "SyllableF"],
    &["SyllableI", "Syllable", "Syllable", "SyllableF"],
];

/// Every sequence of `syllables`, each with one of the `stresses` before its name.
fn patterns(syllables: &[&str], stresses: &[&str]) -> Vec<String> {
    syllables.iter().fold(vec![String::new()], |before, syllable| {
        let one =
            |before: &String, stress: &&str| format!("{before} {stress}{syllable}").trim_start().to_owned();
        before.iter().flat_map(|before| stresses.iter().map(move |stress| one(before, stress))).collect()
    })
}
