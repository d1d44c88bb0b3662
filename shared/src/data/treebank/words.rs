//! Unknown words: what stands for words that a treebank has rarely, and so for those that it never has.
//!
//! In: the words of a treebank, and the threshold up to which a word is rare. Out: a [`Vocabulary`] that maps each word to itself
//! or to its class: one class for all (Wang & Blunsom 2013, §4.3), or classes by capitals, digits, hyphens and endings, the
//! idea of Klein & Manning (2003) and Petrov et al. (2006).

use std::borrow::Cow;
use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// Classes of rare words.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Classes {
    /// `UNK` for all.
    Generic,
    /// `UNK` with what its letters tell, such as `UNK-LC-ed`.
    Signatures,
}

/// The class that all others begin with.
const UNKNOWN: &str = "UNK";
/// Endings that tell something, the first that fits counts.
const ENDINGS: [&str; 9] = ["ed", "ing", "ion", "er", "est", "ly", "ity", "y", "al"];

/// The words that are not rare, and what the others are.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Vocabulary {
    /// Known words, sorted.
    known: Vec<String>,
    classes: Classes,
}

impl Vocabulary {
    /// The vocabulary of a text; a word that occurs `threshold` times or less is rare.
    pub fn new<'a>(text: impl Iterator<Item = &'a str>, threshold: u32, classes: Classes) -> Vocabulary {
        let mut counts: BTreeMap<&str, u32> = BTreeMap::new();
        text.for_each(|word| *counts.entry(word).or_default() += 1);
        let known = counts.into_iter().filter(|&(_, count)| count > threshold);
        Vocabulary { known: known.map(|(word, _)| word.to_owned()).collect(), classes }
    }

    /// The word itself, or its class if it is not known; `first`: whether it begins a sentence.
    pub fn name<'a>(&self, word: &'a str, first: bool) -> Cow<'a, str> {
        if self.known.binary_search_by(|known| known.as_str().cmp(word)).is_ok() {
            return Cow::Borrowed(word);
        }
        match self.classes {
            Classes::Generic => Cow::Borrowed(UNKNOWN),
            Classes::Signatures => Cow::Owned(signature(word, first)),
        }
    }
}

/// The next wider class: `UNK-LC-ed`, `UNK-LC`, `UNK`, none.
pub fn wider(class: &str) -> Option<&str> {
    if class.starts_with(UNKNOWN) { class.rsplit_once('-').map(|(wider, _)| wider) } else { None }
}

fn signature(word: &str, first: bool) -> String {
    let has = |is: fn(char) -> bool| word.chars().any(is);
    let n_capitals = word.chars().filter(|letter| letter.is_uppercase()).count();
    let mut class = UNKNOWN.to_owned();
    if n_capitals > 0 {
        let begins = word.starts_with(char::is_uppercase);
        class += if first && begins && n_capitals == 1 { "-INITC" } else { "-CAPS" };
    } else if has(char::is_lowercase) {
        class += "-LC";
    }
    let (digits, hyphen) = (has(|letter| letter.is_ascii_digit()), word.contains('-'));
    if digits {
        class += "-NUM";
    }
    if hyphen {
        class += "-DASH";
    }
    let n_letters = word.chars().count();
    let lower = word.to_lowercase();
    if n_letters >= 3 && lower.ends_with('s') && !["ss", "is", "us"].iter().any(|end| lower.ends_with(end)) {
        class += "-s";
    } else if n_letters >= 5
        && !digits
        && !hyphen
        && let Some(ending) = ENDINGS.iter().find(|&&ending| lower.ends_with(ending))
    {
        class = class + "-" + ending;
    }
    class
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signatures_tell_what_letters_tell() {
        for (word, class) in [
            ("walked", "UNK-LC-ed"),
            ("Walking", "UNK-CAPS-ing"),
            ("houses", "UNK-LC-s"),
            ("boss", "UNK-LC"),
            ("IBM", "UNK-CAPS"),
            ("1980s", "UNK-LC-NUM-s"),
            ("12.5", "UNK-NUM"),
            ("ex-wife", "UNK-LC-DASH"),
            ("nicely", "UNK-LC-ly"),
            ("%", "UNK"),
            ("", "UNK"),
        ] {
            assert_eq!(signature(word, false), class, "for {word}");
        }
        assert_eq!(signature("Walking", true), "UNK-INITC-ing");
        assert_eq!(signature("IBM", true), "UNK-CAPS");
    }

    #[test]
    fn rare_words_become_their_class() {
        let text = ["the", "dog", "the", "cat", "the", "cat"];
        let name = |threshold, classes, word| {
            Vocabulary::new(text.into_iter(), threshold, classes).name(word, false).into_owned()
        };
        assert_eq!(name(1, Classes::Generic, "cat"), "cat");
        assert_eq!(name(1, Classes::Generic, "dog"), "UNK");
        assert_eq!(name(2, Classes::Signatures, "cat"), "UNK-LC");
        assert_eq!(name(0, Classes::Signatures, "dogs"), "UNK-LC-s");
    }

    #[test]
    fn classes_widen_up_to_all() {
        assert_eq!(wider("UNK-LC-ed"), Some("UNK-LC"));
        assert_eq!(wider("UNK-LC"), Some("UNK"));
        assert_eq!((wider("UNK"), wider("ex-wife")), (None, None));
    }
}
