//! Letters that are vowels or consonants in whatever is written with them.

use unicode_normalization::UnicodeNormalization as _;
use unicode_properties::{GeneralCategory, GeneralCategoryGroup, UnicodeGeneralCategory as _};

/// Vowels of Latin, Cyrillic and Greek script and of the International Phonetic Alphabet. y and w are not among them, as they are consonants of
/// some languages.
const VOWELS: &str = "aeiouæøœɑɒɔəɛɜɞɤɨɪɵɶɯɐʉʊʌʏɘɚɝаеёиоуыэюяіїєαεηιουω";
/// Consonants likewise, without those that are nuclei in some languages (l, r) or have other values in some transcriptions (c, h, j, q, x).
/// Other capital letters than the sibilants and dentals of SAMPA, Klattese and DISC are not among them: in transcriptions they stand for any sound that
/// needs a sign.
const CONSONANTS: &str = "bdfgkmnpstvzSTZDŋɲɡʃʒθðβɸɣχɕʑʂʐɟʈɖбвгджзкмнпстфхцчшщβγδζθκμνξπσςτφχψ";
/// Glides of Cyrillic script that would be vowels without their mark.
const GLIDES: &str = "йў";

/// Whether a symbol is a vowel or a consonant by its letters, if they tell: a vowel comes first; or a consonant does, and no vowel follows. Accents,
/// modifiers (ː, ʰ, ˈ) and other signs do not count, but those of й and ў.
pub fn by_letters(symbol: &str) -> Option<bool> {
    let is_vowel = |letter: char| letter.to_lowercase().all(|letter| VOWELS.contains(letter));
    let is_letter = |sign: &char| {
        sign.general_category_group() == GeneralCategoryGroup::Letter
            && sign.general_category() != GeneralCategory::ModifierLetter
    };
    let mut letters = symbol.nfd().filter(is_letter);
    let first = letters.next()?;
    if symbol.nfc().flat_map(char::to_lowercase).next().is_some_and(|first| GLIDES.contains(first)) {
        return Some(false);
    }
    if is_vowel(first) {
        return Some(true);
    }
    (CONSONANTS.contains(first) && !letters.any(is_vowel)).then_some(false)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn letters_tell_in_any_of_their_scripts() {
        for (symbol, class) in [
            ("a", Some(true)),
            ("É", Some(true)),
            ("aɪ", Some(true)),
            ("ˈõː", Some(true)),
            ("AH0", Some(true)),
            ("ы", Some(true)),
            ("ώ", Some(true)),
            ("t", Some(false)),
            ("tʃʰ", Some(false)),
            ("ж", Some(false)),
            ("й", Some(false)),
            ("и\u{306}", Some(false)),
            ("Ў", Some(false)),
            ("ї", Some(true)),
            ("S", Some(false)),
            ("ta", None),
            ("ja", None),
            ("r̩", None),
            ("y", None),
            ("N", None),
            ("&", None),
            ("か", None),
        ] {
            assert_eq!(by_letters(symbol), class, "{symbol}");
        }
    }
}
