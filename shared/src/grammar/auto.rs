//! Grammars made from the symbols of a corpus: `auto:unigram`, `auto:colloc3-syllable`, `auto:morph1` and the rest of the family.
//!
//! In: a name ([`Auto`], [`FAMILY`]) and the symbols of the corpus, which for grammars with syllables are vowels or consonants
//! ([`Alphabet`]). Out: a [`Grammar`] and its segments ([`AutoGrammar`]). The rules stand in `auto/templates`.
//!
//! Law: every member of the family derives every sentence of the symbols that it was made from (`shared/tests/all/auto.rs`); of a corpus
//! with the marks [`BEGIN`] and [`END`], every sentence that begins and ends with them.
//!
//! Sources: Johnson, Griffiths & Goldwater (2007), unigrams and collocations; Johnson & Goldwater (2009), levels of collocations and
//! syllables; Johnson, Christophe, Demuth & Dupoux (2014), function words; Börschinger & Johnson (2014), stress; Eskander, Rambow & Yang (2016), words of prefixes, stem and suffixes.

mod template;

use std::fmt;
use std::str::FromStr;

use super::check::Defect;
use super::{Grammar, SymbolId};

/// A member of the family, by its name, whose parts are options of its template.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Auto(&'static str);

impl Auto {
    /// Utterances of words of symbols.
    pub const UNIGRAM: Auto = Auto("unigram");
    /// Utterances of collocations of words of symbols.
    pub const COLLOC: Auto = Auto("colloc");
    /// Utterances of words of symbols whose probabilities differ by position.
    pub const UNIGRAM_POSITIONS: Auto = Auto("unigram-positions");
    /// Utterances of collocations of such words.
    pub const COLLOC_POSITIONS: Auto = Auto("colloc-positions");
    /// The same with three levels of collocations.
    pub const COLLOC3_POSITIONS: Auto = Auto("colloc3-positions");
    /// Utterances of collocations of words of syllables.
    pub const COLLOC_SYLLABLE: Auto = Auto("colloc-syllable");
    /// The same with three levels of collocations.
    pub const COLLOC3_SYLLABLE: Auto = Auto("colloc3-syllable");
    /// The same with function words at their left edges.
    pub const COLLOC3_SYLLABLE_FUNCTION_WORDS: Auto = Auto("colloc3-syllable-functionwords-left");
    /// Words of adapted prefixes, a stem and adapted suffixes.
    pub const MORPH1: Auto = Auto("morph1");
    /// Words of prefixes, stems and suffixes in any order.
    pub const MORPH2: Auto = Auto("morph2");
    /// Words of prefixes and an adapted stem with its suffixes.
    pub const MORPH15: Auto = Auto("morph15");
    /// Words of stems with prefixes, adapted together, and suffixes.
    pub const MORPH19: Auto = Auto("morph19");

    /// The adapted nonterminals of the prefixes and suffixes of [`Auto::MORPH15`].
    pub const AFFIXES: [&str; 2] = ["PrefixMorph", "SuffixMorph"];

    /// Whether known prefixes and suffixes can enter as rules.
    pub fn has_affixes(self) -> bool {
        self.0.starts_with("morph")
    }

    /// Whether words form collocations.
    pub fn has_collocations(self) -> bool {
        self.0.starts_with("colloc")
    }

    /// Whether the symbols of words have probabilities by position.
    pub fn has_positions(self) -> bool {
        self.has("positions")
    }

    /// Whether it distinguishes vowels from consonants.
    pub fn has_syllables(self) -> bool {
        self.has("syllable")
    }

    /// Whether it reads marks of stress.
    pub fn has_stress(self) -> bool {
        self.has("stress")
    }

    fn has(self, part: &str) -> bool {
        self.0.split('-').any(|known| known == part)
    }

    /// A description in one line.
    pub fn describe(self) -> String {
        let comments =
            self.template().lines().filter_map(|line| template::chosen(line, &|part| self.has(part)));
        let descriptions = comments.filter_map(|line| line.strip_prefix("# Description: "));
        descriptions.collect::<Vec<_>>().join(", ")
    }

    fn template(self) -> &'static str {
        if self.has_affixes() {
            include_str!("auto/templates/morphemes.gr")
        } else {
            include_str!("auto/templates/utterances.gr")
        }
    }
}

/// The names of the family, from the simplest on.
#[rustfmt::skip] // A row for each kind of words.
pub const NAMES: [&str; 39] = [
    "unigram", "colloc", "colloc2", "colloc3",
    "unigram-positions", "colloc-positions", "colloc2-positions", "colloc3-positions",
    "unigram-syllable", "colloc-syllable", "colloc2-syllable", "colloc3-syllable",
    "colloc-syllable-functionwords-left", "colloc-syllable-functionwords-right", "colloc-syllable-functionwords-both",
    "colloc2-syllable-functionwords-left", "colloc2-syllable-functionwords-right", "colloc2-syllable-functionwords-both",
    "colloc3-syllable-functionwords-left", "colloc3-syllable-functionwords-right", "colloc3-syllable-functionwords-both",
    "unigram-syllable-stress", "colloc-syllable-stress", "colloc2-syllable-stress", "colloc3-syllable-stress",
    "colloc-syllable-stress-functionwords-left", "colloc2-syllable-stress-functionwords-left",
    "colloc3-syllable-stress-functionwords-left", "colloc3-syllable-stress-functionwords-right",
    "colloc3-syllable-stress-functionwords-both",
    "morph0", "morph1", "morph2", "morph3", "morph4", "morph13", "morph15", "morph18", "morph19",
];

/// The members of the family by name.
pub const FAMILY: [(&str, Auto); NAMES.len()] = {
    let mut family = [("", Auto::UNIGRAM); NAMES.len()];
    let mut at = 0;
    while at < family.len() {
        family[at] = (NAMES[at], Auto(NAMES[at]));
        at += 1;
    }
    family
};

impl fmt::Display for Auto {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(self.0)
    }
}

/// A name outside of [`FAMILY`].
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("unknown grammar \"{0}\"; `grammaton grammars` lists them")]
pub struct UnknownName(pub String);

impl FromStr for Auto {
    type Err = UnknownName;

    fn from_str(name: &str) -> Result<Auto, UnknownName> {
        let known = NAMES.into_iter().find(|&known| known == name);
        known.map(Auto).ok_or_else(|| UnknownName(name.to_owned()))
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
    /// Whether each symbol is a vowel that begins no word inside an utterance, `[n_symbols]`, or empty if none is known; read as `vowels` is.
    pub inner: &'a [bool],
    /// Whether each symbol marks the stress of the vowels before it, `[n_symbols]`; [`Auto::has_stress`] says whether it is read.
    pub stress_marks: &'a [bool],
    /// Known prefixes, as indices of symbols, for grammars of morphemes.
    pub prefixes: &'a [Vec<usize>],
    /// Known suffixes, likewise.
    pub suffixes: &'a [Vec<usize>],
    /// Known stems, likewise.
    pub stems: &'a [Vec<usize>],
    /// Known words, likewise, for other grammars.
    pub words: &'a [Vec<usize>],
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

/// Makes a grammar of the symbols of a corpus, from a template. Adaptors are left to the job.
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
    let position = |name: &str| of.symbols.iter().position(|symbol| symbol == name);
    let marks = position(BEGIN).zip(position(END)).filter(|_| kind.has_affixes());
    let class = |at: usize| match of.symbols[at].as_str() {
        mark if marks.is_some_and(|(begin, end)| at == begin || at == end) => mark,
        _ if kind.has_stress() && of.stress_marks[at] => "stress",
        _ if kind.has_syllables() && of.vowels[at] => "vowel",
        _ if kind.has_syllables() => "consonant",
        _ => "symbol",
    };
    let is_inner = |at: usize| class(at) == "vowel" && of.inner.get(at) == Some(&true);
    let has_inner = (0..of.symbols.len()).any(is_inner);
    let all = |is_of: &dyn Fn(usize) -> bool| -> Vec<Vec<usize>> {
        (0..of.symbols.len()).filter(|&at| is_of(at)).map(|at| vec![at]).collect()
    };
    let strings = |set: &str| -> Vec<Vec<usize>> {
        match set {
            "inner" => all(&is_inner),
            "initial" => all(&|at| has_inner && class(at) == "vowel" && !is_inner(at)),
            "prefix" => of.prefixes.to_vec(),
            "suffix" => of.suffixes.to_vec(),
            "stem" => of.stems.to_vec(),
            "word" => of.words.to_vec(),
            "morph" => [of.prefixes, of.stems, of.suffixes].concat(),
            _ => all(&|at| class(at) == set),
        }
    };
    let holds = |option: &str| match option {
        "cascaded" => of.adapt_affixes,
        _ => kind.has(option) || !strings(option).is_empty(),
    };
    template::fill(kind.template(), of.symbols, &holds, &strings)
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
    fn symbols_have_probabilities_by_position() {
        assert_eq!(
            printed("unigram-positions", "a"),
            "1 1 Sentence --> Words\n1 1 Words --> Word\n1 1 Words --> Word Words\n\
             1 Word --> Only\n1 Word --> First Last\n1 Word --> First Middles Last\n\
             1 1 Middles --> Middle\n1 1 Middles --> Middle Middles\n\
             1 1 Only --> a\n1 1 First --> a\n1 1 Middle --> a\n1 1 Last --> a\n"
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
    fn no_word_but_the_first_begins_with_an_inner_vowel() {
        let symbols: Vec<String> = ["a", "i", "t"].map(str::to_owned).to_vec();
        let vowels = [true, true, false];
        let text = |inner: &[bool]| {
            let of = Alphabet { symbols: &symbols, vowels: &vowels, inner, ..Alphabet::default() };
            syntax::print(&auto(Auto::COLLOC_SYLLABLE, &of).unwrap().grammar)
        };
        assert_eq!(text(&[]), text(&[false, false, true]), "only vowels are inner ones");
        let rules = |text: &str, parent: &str| -> Vec<String> {
            let of = format!(" {parent} -->");
            text.lines().filter(|line| line.contains(&of)).map(str::to_owned).collect()
        };
        let one = text(&[false, true, false]);
        assert_eq!(
            rules(&one, "SyllableIF"),
            ["1 1 SyllableIF --> OnsetI RhymeF", "1 1 SyllableIF --> RhymeIF",]
        );
        assert_eq!(rules(&one, "RhymeIF"), ["1 1 RhymeIF --> NucleusI", "1 1 RhymeIF --> NucleusI CodaF"]);
        assert_eq!(
            rules(&one, "Sentence")[1..3],
            ["1 1 Sentence --> InnerWord", "1 1 Sentence --> InnerWord Collocs"]
        );
        assert_eq!(rules(&one, "InnerVowel"), ["1 1 InnerVowel --> i"]);
        assert_eq!(rules(&one, "VowelI"), ["1 1 VowelI --> a"]);
        assert_eq!(rules(&one, "RhymeF"), ["1 1 RhymeF --> NucleusF", "1 1 RhymeF --> Nucleus CodaF"]);
        // Where every word begins with a consonant.
        assert_eq!(rules(&text(&[true, true, false]), "SyllableI"), ["1 1 SyllableI --> OnsetI Rhyme"]);
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
