//! Grammars made from the symbols of a corpus: `auto:unigram`, `auto:colloc3-syllable`, `auto:morph1` and the rest of the family.
//!
//! In: the parts that a name spells ([`Auto`], [`FAMILY`]) and the symbols of the corpus, which for grammars with syllables are vowels or
//! consonants ([`Alphabet`]). Out: a [`Grammar`] and its segments ([`AutoGrammar`]).
//!
//! Law: every member of the family derives every sentence of the symbols that it was made from (`shared/tests/all/auto.rs`); of a corpus
//! with the marks [`BEGIN`] and [`END`], every sentence that begins and ends with them.
//!
//! Sources: Johnson, Griffiths & Goldwater (2007), unigrams and collocations; Johnson & Goldwater (2009), levels of collocations and
//! syllables; Johnson, Christophe, Demuth & Dupoux (2014), function words; Börschinger & Johnson (2014), stress; Eskander, Rambow & Yang (2016), words of prefixes, stem and suffixes.

mod draft;
mod morphemes;
mod utterances;

use std::fmt;
use std::str::FromStr;

use super::check::Defect;
use super::{Grammar, SymbolId};
use draft::Draft;

/// A member of the family.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Auto {
    /// Words in unsegmented utterances.
    Utterances {
        /// Levels of collocations, 0 to 3: 0 for utterances that are a sequence of words.
        levels: u8,
        /// Units of words.
        words: Words,
    },
    /// Morphemes in words.
    Morphemes(Morphemes),
}

/// Units of the words of an utterance.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Words {
    /// A sequence of symbols.
    Symbols,
    /// One to four syllables.
    Syllables {
        /// Where function words stand in collocations of every level, if there are function words.
        function_words: Option<Edge>,
        /// Whether syllables are stressed or unstressed, as marks after their nuclei say.
        stress: bool,
    },
}

/// An edge of a collocation.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Edge {
    /// Before its words.
    Left,
    /// After its words.
    Right,
    /// Before, after, or on both sides.
    Both,
}

/// How a word is made of prefixes, a stem and suffixes; the names are MorphAGram's: SM, morphs of submorphs; Co, compounds.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Morphemes {
    /// Grammar 0: all prefixes of a word are adapted as one string, and all suffixes.
    PrStSu,
    /// Grammar 1: the same, with morphs of submorphs.
    PrStSuSm,
    /// Grammar 2: a word is a sequence of prefixes, stems and suffixes in any order.
    PrStSuCoSm,
    /// Grammar 3: one prefix, one stem, one suffix.
    Simple,
    /// Grammar 4: the same, of submorphs.
    SimpleSm,
    /// Grammar 13: a sequence of morphs of one kind.
    MorphSm,
    /// Grammar 15: a stem and its suffixes are adapted as one string.
    PrStSu2aSm,
    /// Grammar 18: a stem and its prefixes are.
    PrStSu2bSm,
    /// Grammar 19: the same, and words may have several stems.
    PrStSu2bCoSm,
}

impl Morphemes {
    fn describe(self) -> &'static str {
        match self {
            Morphemes::PrStSu => {
                "words of prefixes, a stem and suffixes, of letters; all prefixes are one adapted string, all suffixes another"
            }
            Morphemes::PrStSuSm => {
                "words of prefixes, a stem and suffixes; all prefixes are one adapted string, all suffixes another"
            }
            Morphemes::PrStSuCoSm => "words of prefixes, stems and suffixes in any order",
            Morphemes::Simple => "words of one prefix, a stem and one suffix, of letters",
            Morphemes::SimpleSm => "words of one prefix, a stem and one suffix",
            Morphemes::MorphSm => "words of morphs of one kind",
            Morphemes::PrStSu2aSm => {
                "words of prefixes, a stem and suffixes; the stem and its suffixes are one adapted string"
            }
            Morphemes::PrStSu2bSm => {
                "words of prefixes, a stem and suffixes; the stem and its prefixes are one adapted string"
            }
            Morphemes::PrStSu2bCoSm => {
                "words of one or more stems with prefixes and suffixes; a stem and its prefixes are one adapted string"
            }
        }
    }
}

impl Auto {
    /// Utterances of words of symbols.
    pub const UNIGRAM: Auto = words(0);
    /// Utterances of collocations of words of symbols.
    pub const COLLOC: Auto = words(1);
    /// Utterances of collocations of words of syllables.
    pub const COLLOC_SYLLABLE: Auto = syllables(1);
    /// The same with three levels of collocations.
    pub const COLLOC3_SYLLABLE: Auto = syllables(3);
    /// The same with function words at their left edges.
    pub const COLLOC3_SYLLABLE_FUNCTION_WORDS: Auto = function_words(3, Edge::Left);
    /// Words of prefixes and an adapted stem with its suffixes.
    pub const MORPH15: Auto = Auto::Morphemes(Morphemes::PrStSu2aSm);

    /// The adapted nonterminals of the prefixes and suffixes of [`Auto::MORPH15`].
    pub const AFFIXES: [&str; 2] = ["PrefixMorph", "SuffixMorph"];

    /// Whether known prefixes and suffixes can enter as rules.
    pub fn has_affixes(self) -> bool {
        matches!(self, Auto::Morphemes(_))
    }

    /// Whether it distinguishes vowels from consonants.
    pub fn has_syllables(self) -> bool {
        matches!(self, Auto::Utterances { words: Words::Syllables { .. }, .. })
    }

    /// Whether it reads marks of stress.
    pub fn has_stress(self) -> bool {
        matches!(self, Auto::Utterances { words: Words::Syllables { stress: true, .. }, .. })
    }

    /// A description in one line.
    pub fn describe(self) -> String {
        let (levels, words) = match self {
            Auto::Morphemes(kind) => return kind.describe().to_owned(),
            Auto::Utterances { levels, words } => (levels, words),
        };
        let levels = match levels {
            0 => "utterances of words",
            1 => "utterances of collocations of words",
            2 => "utterances of collocations on two levels",
            _ => "utterances of collocations on three levels",
        };
        let (edge, stress) = match words {
            Words::Symbols => return format!("{levels}, words of symbols"),
            Words::Syllables { function_words, stress } => {
                (function_words, if stress { "stressed and unstressed " } else { "" })
            }
        };
        match edge {
            None => format!("{levels}, words of one to four {stress}syllables"),
            Some(edge) => {
                let edge = match edge {
                    Edge::Left => "the left edge",
                    Edge::Right => "the right edge",
                    Edge::Both => "both edges",
                };
                format!("{levels}, words of {stress}syllables, function words at {edge} of collocations")
            }
        }
    }
}

const fn words(levels: u8) -> Auto {
    Auto::Utterances { levels, words: Words::Symbols }
}

const fn syllables(levels: u8) -> Auto {
    Auto::Utterances { levels, words: Words::Syllables { function_words: None, stress: false } }
}

const fn function_words(levels: u8, edge: Edge) -> Auto {
    Auto::Utterances { levels, words: Words::Syllables { function_words: Some(edge), stress: false } }
}

const fn stress(levels: u8, function_words: Option<Edge>) -> Auto {
    Auto::Utterances { levels, words: Words::Syllables { function_words, stress: true } }
}

/// The members of the family by name, from the simplest on.
pub const FAMILY: [(&str, Auto); 35] = [
    ("unigram", Auto::UNIGRAM),
    ("colloc", Auto::COLLOC),
    ("colloc2", words(2)),
    ("colloc3", words(3)),
    ("unigram-syllable", syllables(0)),
    ("colloc-syllable", Auto::COLLOC_SYLLABLE),
    ("colloc2-syllable", syllables(2)),
    ("colloc3-syllable", Auto::COLLOC3_SYLLABLE),
    ("colloc-syllable-functionwords-left", function_words(1, Edge::Left)),
    ("colloc-syllable-functionwords-right", function_words(1, Edge::Right)),
    ("colloc-syllable-functionwords-both", function_words(1, Edge::Both)),
    ("colloc2-syllable-functionwords-left", function_words(2, Edge::Left)),
    ("colloc2-syllable-functionwords-right", function_words(2, Edge::Right)),
    ("colloc2-syllable-functionwords-both", function_words(2, Edge::Both)),
    ("colloc3-syllable-functionwords-left", Auto::COLLOC3_SYLLABLE_FUNCTION_WORDS),
    ("colloc3-syllable-functionwords-right", function_words(3, Edge::Right)),
    ("colloc3-syllable-functionwords-both", function_words(3, Edge::Both)),
    ("unigram-syllable-stress", stress(0, None)),
    ("colloc-syllable-stress", stress(1, None)),
    ("colloc2-syllable-stress", stress(2, None)),
    ("colloc3-syllable-stress", stress(3, None)),
    ("colloc-syllable-stress-functionwords-left", stress(1, Some(Edge::Left))),
    ("colloc2-syllable-stress-functionwords-left", stress(2, Some(Edge::Left))),
    ("colloc3-syllable-stress-functionwords-left", stress(3, Some(Edge::Left))),
    ("colloc3-syllable-stress-functionwords-right", stress(3, Some(Edge::Right))),
    ("colloc3-syllable-stress-functionwords-both", stress(3, Some(Edge::Both))),
    ("morph0", Auto::Morphemes(Morphemes::PrStSu)),
    ("morph1", Auto::Morphemes(Morphemes::PrStSuSm)),
    ("morph2", Auto::Morphemes(Morphemes::PrStSuCoSm)),
    ("morph3", Auto::Morphemes(Morphemes::Simple)),
    ("morph4", Auto::Morphemes(Morphemes::SimpleSm)),
    ("morph13", Auto::Morphemes(Morphemes::MorphSm)),
    ("morph15", Auto::MORPH15),
    ("morph18", Auto::Morphemes(Morphemes::PrStSu2bSm)),
    ("morph19", Auto::Morphemes(Morphemes::PrStSu2bCoSm)),
];

/// The names of the family.
pub const NAMES: [&str; FAMILY.len()] = {
    let mut names = [""; FAMILY.len()];
    let mut at = 0;
    while at < names.len() {
        names[at] = FAMILY[at].0;
        at += 1;
    }
    names
};

impl fmt::Display for Auto {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let member = FAMILY.iter().find(|(_, auto)| auto == self);
        // No job can have another one.
        out.write_str(member.map_or("unnamed", |(name, _)| name))
    }
}

/// A name outside of [`FAMILY`].
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("unknown grammar \"{0}\"; `grammaton grammars` lists them")]
pub struct UnknownName(pub String);

impl FromStr for Auto {
    type Err = UnknownName;

    fn from_str(name: &str) -> Result<Auto, UnknownName> {
        let member = FAMILY.iter().find(|(known, _)| *known == name);
        member.map(|(_, auto)| *auto).ok_or_else(|| UnknownName(name.to_owned()))
    }
}

/// The mark at the beginning of every word of a corpus for MorphAGram.
pub const BEGIN: &str = "^^^";
/// The mark at the end of every word of a corpus for MorphAGram.
pub const END: &str = "$$$";

/// Symbols of a corpus, from which a grammar is made.
#[derive(Clone, Copy, Debug, Default)]
pub struct Alphabet<'a> {
    /// Distinct symbols of the corpus.
    pub symbols: &'a [String],
    /// Whether each symbol is a vowel, `[n_symbols]`; [`Auto::has_syllables`] says whether it is read.
    pub vowels: &'a [bool],
    /// Whether each symbol marks the stress of the vowels before it, `[n_symbols]`; [`Auto::has_stress`] says whether it is read.
    pub stress_marks: &'a [bool],
    /// Known prefixes, as indices of symbols, for grammars of morphemes.
    pub prefixes: &'a [Vec<usize>],
    /// Known suffixes, likewise.
    pub suffixes: &'a [Vec<usize>],
    /// Whether categories with known affixes are adapted, as if none were known; of those that a first run found, which are less certain.
    pub adapt_affixes: bool,
}

/// A grammar made from a corpus.
#[derive(Clone, PartialEq, Debug)]
pub struct AutoGrammar {
    /// The grammar.
    pub grammar: Grammar,
    /// The nonterminals whose constituents are the segments, the words or morphemes, in symbol order.
    pub segments: Vec<SymbolId>,
}

/// Makes a grammar of the symbols of a corpus. Pseudo-counts are 1 except where `utterances` says otherwise, and adaptors are left to
/// the job.
///
/// A nonterminal whose name is also a symbol's gets `_` appended until it is not.
///
/// ```
/// use grammaton::grammar::{auto::{Alphabet, Auto, auto}, syntax};
///
/// let symbols = ["a".to_owned(), "Word".to_owned()];
/// let made = auto(Auto::UNIGRAM, &Alphabet { symbols: &symbols, ..Alphabet::default() })?;
/// assert_eq!(made.grammar.name(made.segments[0]), "Word_");
/// assert_eq!(syntax::parse(&syntax::print(&made.grammar), "made").unwrap().0, made.grammar);
///
/// let symbols = ["a".to_owned(), "t".to_owned()];
/// let of = Alphabet { symbols: &symbols, vowels: &[true, false], ..Alphabet::default() };
/// let made = auto("colloc3-syllable-functionwords-left".parse().unwrap(), &of)?;
/// let segments: Vec<&str> = made.segments.iter().map(|&segment| made.grammar.name(segment)).collect();
/// assert_eq!(segments, ["FuncWord3", "FuncWord2", "FuncWord1", "Word", "WithoutNucleus"]);
/// # Ok::<(), grammaton::grammar::check::Defect>(())
/// ```
///
/// # Errors
/// A [`Defect`] if there are no symbols, or one has a name that is empty, repeated or contains white space.
pub fn auto(kind: Auto, of: &Alphabet<'_>) -> Result<AutoGrammar, Defect> {
    let mut draft = Draft::new(of.symbols);
    match kind {
        Auto::Utterances { levels, words } => utterances::draft(&mut draft, levels, words, of),
        Auto::Morphemes(kind) => morphemes::draft(&mut draft, kind, of),
    }
    draft.finish()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::grammar::syntax;

    fn made(name: &str, letters: &str) -> AutoGrammar {
        let symbols: Vec<String> = letters.split_whitespace().map(str::to_owned).collect();
        let vowels: Vec<bool> = symbols.iter().map(|symbol| "aeiou".contains(symbol.as_str())).collect();
        let stress_marks: Vec<bool> = symbols.iter().map(|symbol| symbol == "ˈ").collect();
        let of = Alphabet {
            symbols: &symbols,
            vowels: &vowels,
            stress_marks: &stress_marks,
            ..Alphabet::default()
        };
        auto(name.parse().unwrap(), &of).unwrap()
    }

    fn printed(name: &str, letters: &str) -> String {
        syntax::print(&made(name, letters).grammar)
    }

    #[test]
    fn unigram_and_colloc_are_those_of_the_paper() {
        assert_eq!(
            printed("unigram", "a b"),
            "1 1 Sentence --> Words\n1 1 Words --> Word\n1 1 Words --> Word Words\n1 Word --> Chars\n\
             1 1 Chars --> Char\n1 1 Chars --> Char Chars\n1 1 Char --> a\n1 1 Char --> b\n"
        );
        assert_eq!(
            printed("colloc", "a"),
            "1 1 Sentence --> Collocs\n1 1 Collocs --> Colloc\n1 1 Collocs --> Colloc Collocs\n\
             1 Colloc --> Words\n1 1 Words --> Word\n1 1 Words --> Word Words\n1 Word --> Chars\n\
             1 1 Chars --> Char\n1 1 Chars --> Char Chars\n1 1 Char --> a\n"
        );
    }

    #[test]
    fn function_words_stand_at_their_edge_on_every_level() {
        let rules = |edge: &str| -> Vec<String> {
            let text = printed(&format!("colloc2-syllable-functionwords-{edge}"), "a t");
            text.lines().filter(|line| line.starts_with("1 Colloc")).map(str::to_owned).collect()
        };
        let left = ["1 Colloc2 --> Colloc1s", "1 Colloc2 --> FuncWords2 Colloc1s"];
        assert_eq!(rules("left")[..2], left);
        assert_eq!(rules("right")[1..3], ["1 Colloc2 --> Colloc1s FuncWords2", "1 Colloc1 --> Words"]);
        assert_eq!(rules("both").len(), 8);
        assert_eq!(rules("both")[3], "1 Colloc2 --> FuncWords2 Colloc1s FuncWords2");
    }

    #[test]
    fn stress_follows_the_nucleus_and_words_have_every_pattern() {
        let text = printed("colloc-syllable-stress-functionwords-left", "a t ˈ");
        let rules = |of: &str| text.lines().filter(|line| line.split(" --> ").next() == Some(of)).count();
        assert_eq!((rules("1 Word"), rules("1 FuncWord")), (30, 2), "{text}");
        assert!(text.contains("1 Word --> StressedSyllableI Syllable SyllableF\n"), "{text}");
        assert!(text.contains("1 1 StressedRhymeF --> Nucleus Stress CodaF\n1"), "{text}");
        assert!(text.contains("1 1 Stress --> ˈ\n") && text.contains("0.01 1 Consonant --> ˈ"), "{text}");
        assert!(
            !printed("colloc-syllable-stress", "a t").contains("Stress"),
            "no marks, no stressed syllables"
        );
        assert!(printed("colloc-syllable", "a t ˈ").contains("1 1 Consonant --> ˈ"), "a symbol as others");
    }

    #[test]
    fn classes_without_symbols_leave_no_rules() {
        let consonants = printed("colloc-syllable", "t s");
        assert!(!consonants.contains("Nucleus") && consonants.contains("1 1 SyllableIF --> Consonants"));
        let vowels = printed("colloc-syllable", "a");
        assert!(!vowels.contains("Onset") && vowels.contains("SyllableI Syllable SyllableF"));
        assert!(!vowels.contains("WithoutNucleus"));
    }

    #[test]
    fn an_utterance_without_a_vowel_is_one_segment_and_no_word_is_without_one() {
        let text = printed("colloc-syllable", "a t");
        assert!(text.contains("1 1 Sentence --> WithoutNucleus\n"), "{text}");
        let parents: Vec<&str> = text.lines().filter(|line| line.ends_with("--> Consonants")).collect();
        assert_eq!(
            parents,
            [
                "1 WithoutNucleus --> Consonants",
                "1 OnsetI --> Consonants",
                "1 Onset --> Consonants",
                "1 Coda --> Consonants",
                "1 CodaF --> Consonants"
            ]
        );
    }

    #[test]
    fn segments_are_words_with_function_words_or_morphemes() {
        let segments = |name: &str| -> Vec<String> {
            let AutoGrammar { grammar, segments } = made(name, "a t ^^^ $$$");
            segments.iter().map(|&segment| grammar.name(segment).to_owned()).collect()
        };
        assert_eq!(segments("colloc3"), ["Word"]);
        assert_eq!(segments("colloc3-syllable"), ["Word", "WithoutNucleus"]);
        assert_eq!(segments("colloc-syllable-functionwords-both"), ["FuncWord", "Word", "WithoutNucleus"]);
        for name in ["morph0", "morph1", "morph2", "morph15", "morph18", "morph19"] {
            assert_eq!(
                segments(name),
                ["PrefixMorph", "Stem", "SuffixMorph"].map(str::to_owned).to_vec(),
                "{name}"
            );
        }
        assert_eq!((segments("morph3").len(), segments("morph13")), (3, vec!["Morph".to_owned()]));
    }

    #[test]
    fn morph_grammars_use_marks_if_the_corpus_has_them() {
        assert!(printed("morph1", "^^^ a $$$").contains("1 Prefix --> ^^^\n1 Prefix --> ^^^ PrefixMorphs\n"));
        assert!(printed("morph1", "a").starts_with(
            "1 1 Word --> StemSuffix\n1 1 Word --> Prefix StemSuffix\n1 1 StemSuffix --> Stem\n1 1 StemSuffix --> Stem Suffix\n"
        ));
        assert!(printed("morph15", "^^^ a $$$").contains("1 1 Word --> ^^^ StemSuffixMorphs $$$\n"));
        assert!(printed("morph15", "a").starts_with("1 1 Word --> StemSuffixMorphs\n"));
        assert!(!printed("morph15", "^^^ a $$$").contains("Char --> ^^^"));
        assert!(printed("morph15", "^^^ a").contains("Char --> ^^^"), "a mark alone is a symbol");
    }

    #[test]
    fn known_affixes_are_rules_once_each() {
        let symbols: Vec<String> = ["u", "n", "s"].map(str::to_owned).to_vec();
        let (prefixes, suffixes) = ([vec![0, 1], vec![0, 1]], [vec![2]]);
        let of =
            Alphabet { symbols: &symbols, prefixes: &prefixes, suffixes: &suffixes, ..Alphabet::default() };
        let morph1 = |of| syntax::print(&auto("morph1".parse().unwrap(), &of).unwrap().grammar);
        let text = morph1(of);
        assert!(text.contains("1 1 PrefixMorph --> SubMorphs\n1 1 PrefixMorph --> u n\n1 Stem"), "{text}");
        assert!(
            text.contains("1 1 SuffixMorph --> SubMorphs\n1 1 SuffixMorph --> s\n1 1 SubMorphs"),
            "{text}"
        );
        let text = morph1(Alphabet { adapt_affixes: true, ..of });
        assert!(text.contains("1 PrefixMorph --> SubMorphs\n1 PrefixMorph --> u n\n1 Stem"), "{text}");
        assert!(text.contains("1 SuffixMorph --> SubMorphs\n1 SuffixMorph --> s\n1 1 SubMorphs"), "{text}");
        let text = morph1(Alphabet { suffixes: &[], ..of });
        assert!(
            text.contains("\n1 SuffixMorph --> SubMorphs\n"),
            "only the category with known affixes: {text}"
        );
        let printed = |name: &str| syntax::print(&auto(name.parse().unwrap(), &of).unwrap().grammar);
        assert!(
            printed("morph13").contains("1 Morph --> s\n1 Morph --> u n\n")
                || printed("morph13").contains("1 Morph --> u n\n1 Morph --> s\n")
        );
        assert!(
            printed("morph3").contains("1 1 KnownPrefix --> u n\n")
                && printed("morph3").contains("1 Suffix --> KnownSuffix\n")
        );
    }

    #[test]
    fn names_and_members_are_one_to_one() {
        for (at, (name, auto)) in FAMILY.iter().enumerate() {
            assert_eq!((name.parse(), auto.to_string().as_str(), NAMES[at]), (Ok(*auto), *name, *name));
        }
        assert!("colloc4".parse::<Auto>().is_err());
    }

    #[test]
    fn no_symbols_make_no_grammar() {
        let none = [false; 2];
        for (_, kind) in FAMILY {
            assert!(auto(kind, &Alphabet::default()).is_err());
            let twice = ["a".to_owned(), "a".to_owned()];
            let of = Alphabet { symbols: &twice, vowels: &none, stress_marks: &none, ..Alphabet::default() };
            assert!(auto(kind, &of).is_err());
        }
    }
}
