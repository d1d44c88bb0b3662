//! The International Phonetic Alphabet (2020): its segments and their modifiers, its vowels, and whether a text is written in it.

use std::collections::BTreeSet;

use unicode_normalization::UnicodeNormalization as _;
use unicode_properties::{GeneralCategory, GeneralCategoryGroup, UnicodeGeneralCategory as _};

use super::letters::by_letters;

/// Vowels of the alphabet beside those of [`by_letters`].
const VOWELS: &str = "yɶᵻᵿ";
/// Marks below or above a consonant that is a nucleus.
const SYLLABIC: [char; 2] = ['\u{329}', '\u{30d}'];
/// Letters and signs of the alphabet that orthographies do not use. Those of Africa have ɛ, ɔ, ŋ, ə, ɓ, ɗ, ɣ, ɲ, ɩ, ɪ, ʋ, ʊ, ʃ, ʒ and ʔ.
const NOT_IN_ORTHOGRAPHIES: &str = "ɑɒɐɕɘɚɜɝɞɟɡɢɥʜɦɧɫɬɭɮɯɰɱɳɴɵɶɸɹɺɻɽɾʀʁʂʈʉʌʍʎʐʑʕʝʟʡʢχðθːˈˌʰʲʷ\u{361}";
/// Different ones of these from which a text is in the alphabet.
const EVIDENCE: usize = 3;

/// Tie bars, above and below.
const TIES: [char; 2] = ['\u{361}', '\u{35c}'];
/// Marks of primary and secondary stress: symbols of their own, as they belong to a syllable.
const STRESS: [char; 2] = ['ˈ', 'ˌ'];
/// Small nasals: after a consonant its release (`dⁿ`), else the beginning of the next segment (`ⁿd`).
const NASALS: [char; 6] = ['ᵐ', 'ᶬ', 'ⁿ', 'ᶮ', 'ᶯ', 'ᵑ'];

/// Whether a text with these symbols is in the alphabet: they have three signs that orthographies do not use.
pub fn is_ipa(symbols: &[String]) -> bool {
    let signs = symbols.iter().flat_map(|symbol| symbol.chars());
    let found: BTreeSet<char> = signs.filter(|&sign| NOT_IN_ORTHOGRAPHIES.contains(sign)).collect();
    found.len() >= EVIDENCE
}

/// Whether a symbol of a text in the alphabet is a vowel or a consonant; `None` for signs without a letter. A vowel comes first, or a consonant that is marked
/// as syllabic, or another consonant and no vowel after it.
pub fn is_vowel(symbol: &str) -> Option<bool> {
    let first = symbol.chars().find(|&sign| is_base(sign))?;
    let is_nucleus = VOWELS.contains(first) || symbol.contains(SYLLABIC);
    match by_letters(symbol) {
        None if is_nucleus => Some(true),
        None => {
            (!symbol.nfd().any(|sign| VOWELS.contains(sign) || by_letters(&sign.to_string()) == Some(true)))
                .then_some(false)
        }
        Some(class) => Some(class || is_nucleus),
    }
}

/// Modifiers among symbols: signs that are no symbols of their own in the alphabet, and letters that a tie bar leaves unfinished.
pub fn modifiers(symbols: &[String]) -> impl Iterator<Item = &String> {
    symbols.iter().filter(|symbol| symbol.starts_with(is_modifier) || symbol.ends_with(TIES))
}

/// Whether a character modifies a segment: modifier letters, tone letters and numbers, length, rhoticity.
fn is_modifier(sign: char) -> bool {
    let is_spacing =
        matches!(sign, '\u{2b0}'..='\u{2ff}' | '\u{a700}'..='\u{a721}' | '¹' | '²' | '³' | '⁰' | '⁴'..='⁹');
    (is_spacing || sign.general_category() == GeneralCategory::ModifierLetter) && !STRESS.contains(&sign)
}

/// Whether a character is a letter that modifiers belong to.
fn is_base(sign: char) -> bool {
    sign.general_category_group() == GeneralCategoryGroup::Letter
        && !is_modifier(sign)
        && !STRESS.contains(&sign)
}

/// Whether two graphemes are parts of a segment: a tie bar joins the next letter, a modifier the segment before it. A modifier without a segment
/// before it (at the start of a line, after stress) joins the letter after it, as do small nasals not after a consonant.
pub fn is_one_segment(before: &str, after: &str) -> bool {
    let Some(first) = after.chars().next() else { return false };
    let base = before.rfind(is_base);
    if is_base(first) {
        let is_tied = before.rfind(TIES) > base;
        let is_leading = base.is_none() && before.starts_with(is_modifier);
        return is_tied || is_leading;
    }
    let is_vowel = || by_letters(&before[base.unwrap_or(0)..]) == Some(true);
    match base {
        Some(_) => is_modifier(first) && !(NASALS.contains(&first) && is_vowel()),
        None => is_modifier(first) && before.starts_with(is_modifier),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn symbols(text: &str) -> Vec<String> {
        text.split(' ').map(str::to_owned).collect()
    }

    #[test]
    fn a_text_is_in_the_alphabet_by_its_signs() {
        assert!(is_ipa(&symbols("t h ɹ ʌ ɡ a")));
        assert!(is_ipa(&symbols("t\u{361}ʃʰ aː b")));
        // Mboshi, Akan, Hausa, Hawaiian; SAMPA.
        for text in ["a b ɛ ɔ ŋ ə", "ɛ ɔ ɩ ʋ ŋ ɣ", "ɓ ɗ ƙ ʼ y", "ʻ ā ē k", "D 6 b U k &"] {
            assert!(!is_ipa(&symbols(text)), "{text}");
        }
    }

    #[test]
    fn all_letters_are_vowels_or_consonants() {
        for (symbol, class) in [
            ("y", Some(true)),
            ("yː", Some(true)),
            ("ɶ", Some(true)),
            ("ɛ\u{303}", Some(true)),
            ("aɪ", Some(true)),
            ("j", Some(false)),
            ("w", Some(false)),
            ("l", Some(false)),
            ("q", Some(false)),
            ("ʔ", Some(false)),
            ("ǁʰ", Some(false)),
            ("ⁿd", Some(false)),
            ("t\u{361}ʃʰ", Some(false)),
            ("n\u{329}", Some(true)),
            ("ja", None),
            ("ʰ", None),
            ("ˈ", None),
            ("|", None),
        ] {
            assert_eq!(is_vowel(symbol), class, "{symbol}");
        }
    }

    #[test]
    fn modifiers_are_no_symbols_of_their_own() {
        let symbols = symbols("a ː t\u{361} ʃ ʰ ˈ ˥ ʰp");
        assert_eq!(modifiers(&symbols).collect::<Vec<_>>(), ["ː", "t\u{361}", "ʰ", "˥", "ʰp"]);
    }
}
