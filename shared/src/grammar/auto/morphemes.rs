//! Grammars of morphemes in words (MorphAGram; Eskander, Rambow & Yang 2016). With X* for an adapted X, X+ for one or more and (X) for none
//! or one:
//!
//! ```text
//! 1:  Word -> Prefix Stem Suffix     Prefix* -> ^^^ (PrefixMorph+)     Suffix* -> (SuffixMorph+) $$$
//!     PrefixMorph*, Stem*, SuffixMorph* -> SubMorph+                   SubMorph* -> Char+
//! 15: Word -> ^^^ (PrefixMorph+) StemSuffixMorphs $$$     StemSuffixMorphs* -> Stem (SuffixMorph+)     and the last line of 1
//! ```
//!
//! Known affixes are rules of PrefixMorph and SuffixMorph, of pseudo-count 1 each (the *scholar-seeded* setting).
//!
//! In a corpus without the marks `^^^` and `$$$` a string cannot be empty, so that in grammar 1 `Word -> (Prefix) Stem (Suffix)`.

use super::draft::Draft;
use super::{Alphabet, Morphemes};

/// Adds the rules of words.
pub(super) fn draft(draft: &mut Draft<'_>, kind: Morphemes, of: &Alphabet<'_>) {
    match kind {
        Morphemes::Grammar1 if draft.marks.is_some() => {
            draft.rules("Word", &["Prefix Stem Suffix"]);
            draft.adapted("Prefix", &["^^^", "^^^ PrefixMorphs"]);
            draft.adapted("Suffix", &["$$$", "SuffixMorphs $$$"]);
        }
        Morphemes::Grammar1 => {
            draft.rules("Word", &["Stem", "Prefix Stem", "Stem Suffix", "Prefix Stem Suffix"]);
            draft.adapted("Prefix", &["PrefixMorphs"]);
            draft.adapted("Suffix", &["SuffixMorphs"]);
        }
        Morphemes::Grammar15 => {
            draft.rules("Word", &["^^^ StemSuffixMorphs $$$", "^^^ PrefixMorphs StemSuffixMorphs $$$"]);
            draft.adapted("StemSuffixMorphs", &["Stem", "Stem SuffixMorphs"]);
        }
    }
    for (list, morph) in [("PrefixMorphs", "PrefixMorph"), ("SuffixMorphs", "SuffixMorph")] {
        draft.list(list, morph);
    }
    for (morph, known) in [("PrefixMorph", of.prefixes), ("Stem", &[]), ("SuffixMorph", of.suffixes)] {
        draft.adapted(morph, &["SubMorphs"]);
        draft.strings(morph, known);
        draft.segment(morph);
    }
    draft.list("SubMorphs", "SubMorph");
    draft.adapted("SubMorph", &["Chars"]);
    draft.list("Chars", "Char");
    let marks = draft.marks;
    draft.terminals("Char", |at| !marks.is_some_and(|marks| marks.contains(&at)));
}
