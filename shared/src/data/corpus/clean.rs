//! Changes to a line before its symbols are read, and the symbols of a word.
//!
//! In: a line of a corpus and its [`Cleaning`]. Out: the line in one Unicode normal form, in lower case, without punctuation, as far as that
//! is asked for; then the symbols of its words ([`symbols`]). Law: cleaning a line twice gives the line cleaned once.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};
use unicode_normalization::UnicodeNormalization as _;
use unicode_properties::{GeneralCategoryGroup, UnicodeGeneralCategory as _};
use unicode_segmentation::UnicodeSegmentation as _;

use super::Unit;
use crate::data::ipa::is_one_segment;

/// The token that stands between words in [`Unit::Token`].
pub const BOUNDARY: &str = "|";

/// Changes to a text before its symbols are read; by default none.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Cleaning {
    /// The Unicode normal form.
    pub normalise: Normalise,
    /// Whether letters become lower-case letters.
    pub lowercase: bool,
    /// Treatment of punctuation.
    pub punctuation: Marks,
    /// Sequences of symbols that are one symbol, as `sh`.
    pub digraphs: Vec<String>,
}

/// A Unicode normal form.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Normalise {
    /// The text as it is.
    #[default]
    None,
    /// A letter and its marks as one character where Unicode has one.
    Nfc,
    /// NFC with compatibility characters replaced: ligatures, full-width letters, superscripts.
    Nfkc,
}

/// Treatment of punctuation: characters of Unicode's categories P, and with tokens the tokens that consist of them.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Marks {
    /// Symbols like others.
    #[default]
    Keep,
    /// Marks are removed.
    Drop,
    /// Word boundaries of the gold segmentation.
    Boundary,
}

impl Cleaning {
    /// The line after all changes; `unit` is the unit of its symbols.
    pub fn line<'a>(&self, line: &'a str, unit: Unit) -> Cow<'a, str> {
        let line = self.letters(line);
        if self.punctuation == Marks::Keep || !line.chars().any(is_punctuation) {
            return line;
        }
        let instead = match (self.punctuation, unit) {
            (Marks::Boundary, Unit::Token) => BOUNDARY,
            (Marks::Boundary, _) => " ",
            _ => "",
        };
        let cleaned = match unit {
            Unit::Token => {
                let tokens = line.split_whitespace();
                let cleaned =
                    tokens.map(|token| if token.chars().all(is_punctuation) { instead } else { token });
                cleaned.filter(|token| !token.is_empty()).collect::<Vec<_>>().join(" ")
            }
            Unit::Char | Unit::Grapheme | Unit::Ipa => {
                line.chars().fold(String::with_capacity(line.len()), |mut cleaned, letter| {
                    if is_punctuation(letter) {
                        cleaned += instead;
                    } else {
                        cleaned.push(letter);
                    }
                    cleaned
                })
            }
        };
        // A mark may stand beside another letter now.
        Cow::Owned(self.letters(&cleaned).into_owned())
    }

    /// The text in the normal form and case.
    fn letters<'a>(&self, text: &'a str) -> Cow<'a, str> {
        if text.is_ascii() && !self.lowercase {
            return Cow::Borrowed(text); // every normal form of ASCII is itself
        }
        let normal = |text: &str| match self.normalise {
            Normalise::None => text.to_owned(),
            Normalise::Nfc => text.nfc().collect(),
            Normalise::Nfkc => text.nfkc().collect(),
        };
        match (self.lowercase, self.normalise) {
            (false, Normalise::None) => Cow::Borrowed(text),
            (false, _) => Cow::Owned(normal(text)),
            // Lower case may leave the normal form.
            (true, _) => Cow::Owned(normal(&normal(text).to_lowercase())),
        }
    }

    /// [`Cleaning::digraphs`] in the normal form and case of the text, longest first.
    pub fn digraphs(&self) -> Vec<String> {
        let mut digraphs: Vec<String> =
            self.digraphs.iter().map(|digraph| self.letters(digraph).into_owned()).collect();
        digraphs.sort_by_key(|digraph| std::cmp::Reverse(digraph.len()));
        digraphs
    }
}

fn is_punctuation(letter: char) -> bool {
    letter.general_category_group() == GeneralCategoryGroup::Punctuation
}

/// Calls `symbol` with each symbol of a word without white space: the longest of `digraphs` ([`Cleaning::digraphs`]) that begins there, or
/// else one unit. A token is one symbol.
pub fn symbols<'a>(word: &'a str, unit: Unit, digraphs: &[String], mut symbol: impl FnMut(&'a str)) {
    let mut rest = word;
    while !rest.is_empty() {
        let digraph = digraphs.iter().find(|digraph| rest.starts_with(digraph.as_str()));
        let mut length = match (unit, digraph) {
            (Unit::Token, _) => rest.len(),
            (_, Some(digraph)) => digraph.len(),
            (Unit::Char, None) => rest.chars().next().map_or(0, char::len_utf8),
            (Unit::Grapheme | Unit::Ipa, None) => grapheme(rest),
        };
        while unit == Unit::Ipa && length < rest.len() {
            let (before, after) = rest.split_at(length);
            let next = grapheme(after);
            if !is_one_symbol(before, &after[..next], unit) {
                break;
            }
            length += next;
        }
        let (first, others) = rest.split_at(length);
        symbol(first);
        rest = others;
    }
}

/// Length of the first grapheme.
fn grapheme(text: &str) -> usize {
    text.graphemes(true).next().map_or(0, str::len)
}

/// Whether a symbol that ends `before` continues in `after`, so that a cut between the two divides it.
pub fn is_one_symbol(before: &str, after: &str, unit: Unit) -> bool {
    match unit {
        Unit::Char | Unit::Token => false,
        Unit::Grapheme => is_one_grapheme(before, after),
        Unit::Ipa => is_one_grapheme(before, after) || is_one_segment(before, after),
    }
}

/// Whether a grapheme that ends `before` continues in `after`.
fn is_one_grapheme(before: &str, after: &str) -> bool {
    if before.is_ascii() && after.is_ascii() {
        return false;
    }
    let joined = [before, after].concat();
    !joined.grapheme_indices(true).any(|(at, _)| at == before.len())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn all() -> impl Strategy<Value = Cleaning> {
        let normalise = prop_oneof![Just(Normalise::None), Just(Normalise::Nfc), Just(Normalise::Nfkc)];
        let marks = prop_oneof![Just(Marks::Keep), Just(Marks::Drop), Just(Marks::Boundary)];
        (normalise, any::<bool>(), marks).prop_map(|(normalise, lowercase, punctuation)| Cleaning {
            normalise,
            lowercase,
            punctuation,
            digraphs: vec!["sh".into(), "Ch".into(), "tsh".into()],
        })
    }

    fn symbols_of(word: &str, unit: Unit, cleaning: &Cleaning) -> Vec<String> {
        let mut found = Vec::new();
        symbols(word, unit, &cleaning.digraphs(), |symbol| found.push(symbol.to_owned()));
        found
    }

    proptest! {
        #[test]
        fn cleaning_twice_is_cleaning_once(cleaning in all(), line in "(\\PC| |[shCct]|\u{301}|[.,!|'-]){0,30}") {
            for unit in Unit::ALL {
                let once = cleaning.line(&line, unit).into_owned();
                prop_assert_eq!(cleaning.line(&once, unit), once.as_str());
            }
        }

        #[test]
        fn symbols_are_the_word_in_pieces(cleaning in all(), word in "(\\PC|[shct]|\u{301}|\u{200d}){1,20}") {
            for unit in Unit::ALL {
                let found = symbols_of(&word, unit, &cleaning);
                prop_assert_eq!(found.concat(), word.as_str());
                prop_assert!(found.iter().all(|symbol| !symbol.is_empty()));
            }
        }
    }

    #[test]
    fn each_change_does_what_it_says() {
        let none = Cleaning::default();
        let line = |cleaning: &Cleaning, unit, line: &str| cleaning.line(line, unit).into_owned();
        assert_eq!(line(&none, Unit::Char, "E\u{301}t, ﬁ!"), "E\u{301}t, ﬁ!");
        let nfc = Cleaning { normalise: Normalise::Nfc, ..none.clone() };
        assert_eq!(line(&nfc, Unit::Char, "E\u{301}t ﬁ"), "Ét ﬁ");
        let nfkc = Cleaning { normalise: Normalise::Nfkc, lowercase: true, ..none.clone() };
        assert_eq!(line(&nfkc, Unit::Char, "E\u{301}t ﬁ ＡＢ"), "ét fi ab");
        let drop = Cleaning { punctuation: Marks::Drop, ..none.clone() };
        assert_eq!(line(&drop, Unit::Char, "don't, «no»。"), "dont no");
        assert_eq!(line(&drop, Unit::Token, "d o n ' t , | n o"), "d o n t | n o");
        let boundary = Cleaning { punctuation: Marks::Boundary, ..none.clone() };
        assert_eq!(line(&boundary, Unit::Grapheme, "a-b,c"), "a b c");
        assert_eq!(line(&boundary, Unit::Token, "a - b c"), "a | b c");
    }

    #[test]
    fn digraphs_are_one_symbol() {
        let cleaning =
            Cleaning { lowercase: true, digraphs: vec!["SH".into(), "tsh".into()], ..Cleaning::default() };
        assert_eq!(symbols_of("tshish", Unit::Char, &cleaning), ["tsh", "i", "sh"]);
        assert_eq!(symbols_of("e\u{301}sh", Unit::Grapheme, &cleaning), ["e\u{301}", "sh"]);
        assert_eq!(symbols_of("e\u{301}sh", Unit::Char, &cleaning), ["e", "\u{301}", "sh"]);
        assert_eq!(symbols_of("sha", Unit::Token, &cleaning), ["sha"]);
    }

    #[test]
    fn segments_of_the_ipa_have_their_modifiers() {
        let table: [(&str, &[&str]); 19] = [
            ("t\u{361}ʃat\u{35c}s", &["t\u{361}ʃ", "a", "t\u{35c}s"]),
            ("t\u{361}ʃʰa", &["t\u{361}ʃʰ", "a"]),
            ("pʰakʷi", &["pʰ", "a", "kʷ", "i"]),
            ("tʲuɫˠdˤ", &["tʲ", "u", "ɫˠ", "dˤ"]),
            ("aːeˑɪ", &["aː", "eˑ", "ɪ"]),
            ("ɚə˞", &["ɚ", "ə˞"]),
            ("tʼaʔ", &["tʼ", "a", "ʔ"]),
            ("ma˥˩ta˧˥", &["m", "a˥˩", "t", "a˧˥"]),
            ("ma⁵¹ŋ²", &["m", "a⁵¹", "ŋ²"]),
            ("ɛ\u{303}ːn\u{329}", &["ɛ\u{303}ː", "n\u{329}"]),
            ("ˈtʰeɪˌblə", &["ˈ", "tʰ", "e", "ɪ", "ˌ", "b", "l", "ə"]),
            ("ⁿdaⁿda", &["ⁿd", "a", "ⁿd", "a"]),
            ("aːᵐba", &["aː", "ᵐb", "a"]),
            ("tⁿadˡ", &["tⁿ", "a", "dˡ"]),
            ("ʰpaˈʰta", &["ʰp", "a", "ˈ", "ʰt", "a"]),
            ("ᵑɡ\u{361}ba", &["ᵑɡ\u{361}b", "a"]),
            ("kǃaǁʰ", &["k", "ǃ", "a", "ǁʰ"]),
            ("aⁿ", &["a", "ⁿ"]),
            ("a.ta", &["a", ".", "t", "a"]),
        ];
        for (word, expected) in table {
            assert_eq!(symbols_of(word, Unit::Ipa, &Cleaning::default()), expected, "{word}");
        }
    }
}
