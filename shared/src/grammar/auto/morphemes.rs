//! Grammars of morphemes in words (MorphAGram; Eskander, Rambow & Yang 2016; Eskander, Callejas, Nichols, Klavans & Muresan 2020). The numbers
//! and names are theirs. With X* for an adapted X, X+ for one or more and (X) for none or one:
//!
//! ```text
//! 0, PrStSu:         Word -> Prefix Stem Suffix     Prefix* -> ^^^ (PrefixMorph+)     Suffix* -> (SuffixMorph+) $$$
//! 1, PrStSu+SM:      the same, with morphs of submorphs
//! 2, PrStSu+Co+SM:   Word -> ^^^ Compound+ $$$      Compound* -> PrefixMorph+ | Stem | SuffixMorph+
//! 3, Simple:         Word -> Prefix Stem Suffix     Prefix* -> ^^^ (Char+)     Stem* -> Char+     Suffix* -> (Char+) $$$
//! 4, Simple+SM:      the same, with SubMorph+ for Char+
//! 13, Morph+SM:      Word -> ^^^ Morph+ $$$
//! 15, PrStSu2a+SM:   Word -> ^^^ (PrefixMorph+) StemSuffixMorphs $$$     StemSuffixMorphs* -> Stem (SuffixMorph+)
//! 18, PrStSu2b+SM:   Word -> ^^^ StemPrefixMorphs (SuffixMorph+) $$$     StemPrefixMorphs* -> (PrefixMorph+) Stem
//! 19, PrStSu2b+Co+SM: Word -> ^^^ Compound+ $$$     Compound* -> StemPrefixMorphs (SuffixMorph+)
//! all but 0 and 3:   PrefixMorph*, Stem*, SuffixMorph*, Morph* -> SubMorph+     SubMorph* -> Char+
//! ```
//!
//! Known affixes are rules of PrefixMorph and SuffixMorph, of Prefix and Suffix, or of Morph, of pseudo-count 1 each. In the *scholar-seeded*
//! setting PrefixMorph and SuffixMorph with known affixes are not adapted, in the *cascaded* one, where a first run found them, they are.
//!
//! In a corpus without the marks `^^^` and `$$$` a string cannot be empty, so that in grammars 0, 1, 3 and 4 `Word -> (Prefix) StemSuffix` and
//! `StemSuffix -> Stem (Suffix)`.

use super::draft::Draft;
use super::{Alphabet, Morphemes};

/// Adds the rules of words.
pub(super) fn draft(draft: &mut Draft<'_>, kind: Morphemes, of: &Alphabet<'_>) {
    use Morphemes::{
        MorphSm, PrStSu, PrStSu2aSm, PrStSu2bCoSm, PrStSu2bSm, PrStSuCoSm, PrStSuSm, Simple, SimpleSm,
    };
    let list = if matches!(kind, PrStSu | Simple) { "Chars" } else { "SubMorphs" };
    match kind {
        PrStSu | PrStSuSm => around_stem(draft, "PrefixMorphs", "SuffixMorphs"),
        Simple | SimpleSm => around_stem(draft, list, list),
        MorphSm => {
            draft.rules("Word", &["^^^ Morphs $$$"]);
            draft.list("Morphs", "Morph");
        }
        PrStSuCoSm => {
            draft.rules("Word", &["^^^ Compounds $$$"]);
            draft.list("Compounds", "Compound");
            draft.adapted("Compound", &["PrefixMorphs", "Stem", "SuffixMorphs"]);
        }
        PrStSu2aSm => {
            draft.rules("Word", &["^^^ StemSuffixMorphs $$$", "^^^ PrefixMorphs StemSuffixMorphs $$$"]);
            draft.adapted("StemSuffixMorphs", &["Stem", "Stem SuffixMorphs"]);
        }
        PrStSu2bSm => {
            draft.rules("Word", &["^^^ StemPrefixMorphs $$$", "^^^ StemPrefixMorphs SuffixMorphs $$$"]);
            draft.adapted("StemPrefixMorphs", &["Stem", "PrefixMorphs Stem"]);
        }
        PrStSu2bCoSm => {
            draft.rules("Word", &["^^^ Compounds $$$"]);
            draft.list("Compounds", "Compound");
            draft.adapted("Compound", &["StemPrefixMorphs", "StemPrefixMorphs SuffixMorphs"]);
            draft.adapted("StemPrefixMorphs", &["Stem", "PrefixMorphs Stem"]);
        }
    }
    match kind {
        MorphSm => {
            draft.adapted("Morph", &[list]);
            draft.strings("Morph", &[of.prefixes, of.suffixes].concat());
            draft.segment("Morph");
        }
        Simple | SimpleSm => {
            // Affixes have marks, which known ones lack.
            draft.adapted("Stem", &[list]);
            draft.rules("Prefix", &["^^^ KnownPrefix"]);
            draft.strings("KnownPrefix", of.prefixes);
            draft.rules("Suffix", &["KnownSuffix $$$"]);
            draft.strings("KnownSuffix", of.suffixes);
            ["Prefix", "Stem", "Suffix"].iter().for_each(|segment| draft.segment(segment));
        }
        _ => {
            for (list, morph) in [("PrefixMorphs", "PrefixMorph"), ("SuffixMorphs", "SuffixMorph")] {
                draft.list(list, morph);
            }
            for (morph, known) in [("PrefixMorph", of.prefixes), ("Stem", &[]), ("SuffixMorph", of.suffixes)]
            {
                if known.is_empty() || of.adapt_affixes {
                    draft.adapted(morph, &[list])
                } else {
                    draft.rules(morph, &[list])
                }
                draft.strings(morph, known);
                draft.segment(morph);
            }
        }
    }
    if list == "SubMorphs" {
        draft.list("SubMorphs", "SubMorph");
        draft.adapted("SubMorph", &["Chars"]);
    }
    draft.list("Chars", "Char");
    let marks = draft.marks;
    draft.terminals("Char", |at| !marks.is_some_and(|marks| marks.contains(&at)));
}

/// Adds words of a prefix, a stem and a suffix; what prefixes and suffixes are made of are lists with these names.
fn around_stem(draft: &mut Draft<'_>, prefixes: &str, suffixes: &str) {
    if draft.marks.is_some() {
        draft.rules("Word", &["Prefix Stem Suffix"]);
        draft.adapted("Prefix", &["^^^", &format!("^^^ {prefixes}")]);
        draft.adapted("Suffix", &["$$$", &format!("{suffixes} $$$")]);
    } else {
        // Not four rules of Word: whether there is a prefix does not depend on whether there is a suffix, as with marks.
        draft.rules("Word", &["StemSuffix", "Prefix StemSuffix"]);
        draft.rules("StemSuffix", &["Stem", "Stem Suffix"]);
        draft.adapted("Prefix", &[prefixes]);
        draft.adapted("Suffix", &[suffixes]);
    }
}
