//! Corpora: sentences of symbols, with or without the words they are made of.
//!
//! In: text, one sentence a line, plain or compressed ([`Corpus::open`], [`Corpus::open_with`], [`Corpus::read`]). Out: a [`Corpus`] in file
//! order; then its sentences as terminals of a grammar ([`Corpus::tokens_for`]). [`Corpus::line`] writes a segmentation back in the format of the file.
//!
//! White space is any of Unicode's, so that an ideographic space separates words as well.

pub mod unpack;

pub mod decode;

pub mod clean;

pub mod chat;

pub mod layout;

pub mod read;

pub mod sniff;

use std::ops::Range;

use rustc_hash::FxHashMap;
use serde::{Deserialize, Serialize};

use crate::grammar::tree::Tree;
use crate::grammar::{Grammar, SymbolId};
use crate::num::Noise;
pub use clean::{Cleaning, Marks, Normalise};
pub use layout::Layout;
pub use read::{Notice, ReadError, Reader};

/// What stands between the analyses of a word, as in `gladly<TAB>glad ly, gladly`.
pub const BETWEEN_ANALYSES: &str = ", ";

/// How the lines are written.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Format {
    /// Words are marked ([`Unit`] says how), and are the gold segmentation; a file that marks none has no gold.
    #[default]
    Segmented,
    /// Symbols are separated by white space; there is no gold.
    Tokens,
}

/// Unit of symbols in a [`Format::Segmented`] file.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Unit {
    /// Each Unicode scalar value, words being separated by white space: `yu want tu`.
    #[default]
    Char,
    /// Each string between white space, words being separated by `|`: `y u | w a n t | t u`.
    Token,
    /// Each Unicode grapheme cluster: a character with its combining marks and joiners; words being separated by white space.
    Grapheme,
    /// Each segment of the International Phonetic Alphabet: a letter with its marks, modifier letters and tone, letters under a tie bar being one;
    /// words being separated by white space.
    Ipa,
}

impl Unit {
    /// All units.
    pub const ALL: [Unit; 4] = [Unit::Char, Unit::Grapheme, Unit::Ipa, Unit::Token];

    /// Its name in jobs and on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Unit::Char => "char",
            Unit::Grapheme => "grapheme",
            Unit::Ipa => "ipa",
            Unit::Token => "token",
        }
    }

    /// Its symbols in a few words.
    pub fn about(self) -> &'static str {
        match self {
            Unit::Char => "A character; spaces between words",
            Unit::Grapheme => "A character with its combining marks; spaces between words",
            Unit::Ipa => "A segment of the IPA, as t\u{361}ʃʰ or aː; spaces between words",
            Unit::Token => "A token between spaces; | between words",
        }
    }

    /// Separators of symbols and of words.
    pub fn separators(self) -> (&'static str, &'static str) {
        match self {
            Unit::Char | Unit::Grapheme | Unit::Ipa => ("", " "),
            Unit::Token => (" ", " | "),
        }
    }

    /// [`Unit::Char`] if every symbol is one character, else [`Unit::Token`].
    pub fn fitting<'a>(symbols: impl IntoIterator<Item = &'a str>) -> Unit {
        let single = |symbol: &str| symbol.chars().count() == 1;
        if symbols.into_iter().all(single) { Unit::Char } else { Unit::Token }
    }
}

/// How to read a corpus.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Options {
    /// How the lines are written.
    pub format: Format,
    /// Unit of symbols; [`Format::Tokens`] ignores it.
    pub unit: Unit,
    /// The most symbols a line may have (a longer one is an error), and 64 times as many bytes.
    pub max_symbols: u32,
    /// How lines hold sentences.
    pub layout: Layout,
    /// Changes to each sentence before its symbols are read.
    pub cleaning: Cleaning,
}

impl Options {
    /// Unit of symbols: a token in [`Format::Tokens`].
    pub fn effective_unit(&self) -> Unit {
        match self.format {
            Format::Segmented => self.unit,
            Format::Tokens => Unit::Token,
        }
    }
}

impl Default for Options {
    fn default() -> Options {
        Options {
            format: Format::default(),
            unit: Unit::default(),
            max_symbols: 10_000,
            layout: Layout::default(),
            cleaning: Cleaning::default(),
        }
    }
}

/// Sentences in the order of the file.
///
/// ```
/// use grammaton::Corpus;
///
/// let corpus = Corpus::of_tokens("the dog barks\nthe dog sees the cat\n")?;
/// assert_eq!(corpus.symbols, ["the", "dog", "barks", "sees", "cat"]);
/// assert_eq!(corpus.sentences[0], [0, 1, 2]);
/// # Ok::<(), grammaton::data::ReadError>(())
/// ```
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Corpus {
    /// Distinct symbols, in order of first occurrence.
    pub symbols: Vec<String>,
    /// Indices into `symbols`; no sentence is empty.
    pub sentences: Vec<Vec<u32>>,
    /// The gold analyses of each sentence.
    pub gold: Option<Vec<Analyses>>,
    /// Line of each sentence in the file, counted from 1.
    pub lines: Vec<u32>,
    /// Number of occurrences of each sentence; empty if each line is one.
    pub occurrences: Vec<u32>,
    /// Columns or the speaker before and after each sentence; empty unless the layout has them.
    pub beside: Vec<(String, String)>,
    /// Name of the file, for messages.
    pub source_name: String,
    /// How the file is written.
    pub format: Format,
    /// Unit of symbols.
    pub unit: Unit,
}

/// A sentence that a grammar lacks a terminal for.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error(
    "{source_name}:{line}: the grammar has no terminal `{symbol}` ({problem}), needed by the sentence `{sentence}`"
)]
pub struct UnknownSymbol {
    /// Name of the corpus.
    pub source_name: String,
    /// Line of the sentence.
    pub line: u32,
    /// The sentence, shortened if it is long.
    pub sentence: String,
    /// The symbol.
    pub symbol: String,
    /// How it differs from the terminals of the grammar.
    pub problem: UnknownSymbolProblem,
}

/// How an unknown symbol differs from the terminals of a grammar.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum UnknownSymbolProblem {
    /// A name that the grammar lacks.
    #[error("add a rule that has it as a child, or correct the text")]
    Absent,
    /// A terminal of that name in quotes.
    #[error("it has one in quotes, which are part of its name; leave them away in the grammar")]
    Quoted,
    /// A nonterminal of that name.
    #[error("it is a nonterminal; rename that")]
    Nonterminal,
}

/// Analyses of a sentence: of each the end positions of the words, ascending, the last one the sentence's length. A prediction is scored against the one
/// that agrees best; a sentence without any is not scored.
pub type Analyses = Vec<Vec<u32>>;

impl Corpus {
    /// The gold segmentation of a sentence, written down; of several the first.
    pub fn gold_line(&self, at: usize) -> Option<String> {
        Some(self.line(at, self.gold.as_ref()?[at].first()?))
    }

    /// Segmentations of a sentence, written down as the analyses of a word in gold.
    pub fn analyses_line(&self, at: usize, analyses: &[Vec<u32>]) -> String {
        let lines: Vec<String> = analyses.iter().map(|ends| self.line(at, ends)).collect();
        lines.join(BETWEEN_ANALYSES)
    }

    /// Number of symbols in all sentences.
    pub fn n_symbols(&self) -> usize {
        self.sentences.iter().map(Vec::len).sum()
    }

    /// The gold segmentation, the first where there are several, or a sentence as one word: for files that are a segmentation by intent, such as
    /// predictions, which may mark no boundary at all.
    pub fn segmentation(&self) -> Vec<Vec<u32>> {
        let whole = |at: usize| vec![self.sentences[at].len() as u32];
        let ends = |at: usize| self.gold.as_ref().and_then(|gold| gold[at].first().cloned());
        (0..self.sentences.len()).map(|at| ends(at).unwrap_or_else(|| whole(at))).collect()
    }

    /// The sentences at these positions, in this order.
    pub fn subset(&self, positions: &[usize]) -> Corpus {
        let gold = self.gold.as_ref();
        let some = |at: &usize| self.occurrences.get(*at).copied();
        Corpus {
            occurrences: positions.iter().filter_map(some).collect(),
            beside: positions.iter().filter_map(|&at| self.beside.get(at).cloned()).collect(),
            sentences: positions.iter().map(|&at| self.sentences[at].clone()).collect(),
            gold: gold.map(|gold| positions.iter().map(|&at| gold[at].clone()).collect()),
            lines: positions.iter().map(|&at| self.lines[at]).collect(),
            ..self.clone()
        }
    }

    #[doc(hidden)]
    /// The sentences as terminals of `grammar`, in corpus order.
    ///
    /// # Errors
    /// The first sentence with a symbol that is not a terminal of `grammar`.
    pub fn tokens_for(&self, grammar: &Grammar) -> Result<Vec<Vec<SymbolId>>, UnknownSymbol> {
        self.each_tokens_for(grammar).collect()
    }

    #[doc(hidden)]
    /// Each sentence as terminals of `grammar`, in corpus order, or the first of its symbols that is no terminal.
    pub fn each_tokens_for(
        &self,
        grammar: &Grammar,
    ) -> impl Iterator<Item = Result<Vec<SymbolId>, UnknownSymbol>> {
        self.each_tokens_in(0..self.sentences.len(), grammar)
    }

    #[doc(hidden)]
    /// The same of neighbouring sentences.
    pub fn each_tokens_in(
        &self,
        sentences: Range<usize>,
        grammar: &Grammar,
    ) -> impl Iterator<Item = Result<Vec<SymbolId>, UnknownSymbol>> {
        let ids: FxHashMap<&str, SymbolId> =
            grammar.symbols.iter().zip(0..).map(|(name, id)| (name.as_str(), SymbolId(id))).collect();
        let known: Vec<Option<SymbolId>> =
            self.symbols.iter().map(|name| ids.get(name.as_str()).copied()).collect();
        let is_quoted = move |name: &str| {
            ['"', '\''].iter().any(|quote| ids.contains_key(format!("{quote}{name}{quote}").as_str()))
        };
        let terminal = move |at: usize, symbol: u32| match known[symbol as usize] {
            Some(id) if !grammar.is_nonterminal(id) => Ok(id),
            found => Err(UnknownSymbol {
                source_name: self.source_name.clone(),
                line: self.lines[at],
                sentence: self.excerpt(at),
                symbol: self.symbols[symbol as usize].clone(),
                problem: match found {
                    Some(_) => UnknownSymbolProblem::Nonterminal,
                    None if is_quoted(&self.symbols[symbol as usize]) => UnknownSymbolProblem::Quoted,
                    None => UnknownSymbolProblem::Absent,
                },
            }),
        };
        let sentences =
            self.sentences[sentences.clone()].iter().zip(sentences).map(|(sentence, at)| (at, sentence));
        sentences.map(move |(at, sentence)| sentence.iter().map(|&symbol| terminal(at, symbol)).collect())
    }

    /// Sentence number `sentence` cut at `ends`, as a line in the format of the file, without a line break.
    ///
    /// `ends`: end positions of the words, ascending, the last one the sentence's length. A [`Format::Tokens`] line
    /// is written as [`Format::Segmented`] with [`Unit::Token`].
    pub fn line(&self, sentence: usize, ends: &[u32]) -> String {
        write_line(&self.symbols, &self.sentences[sentence], ends, self.effective_unit())
    }

    /// The segments of a line of [`Corpus::line`], each as it stands there.
    pub fn segments(&self, sentence: usize, ends: &[u32]) -> Vec<String> {
        let symbols = &self.sentences[sentence];
        let starts = [0].iter().chain(ends);
        let segment = |(&start, &end): (&u32, &u32)| {
            let symbols = &symbols[start as usize..end as usize];
            write_line(&self.symbols, symbols, &[end - start], self.effective_unit())
        };
        starts.zip(ends).map(segment).collect()
    }

    #[doc(hidden)]
    /// Unit of its symbols: a token in [`Format::Tokens`].
    pub fn effective_unit(&self) -> Unit {
        match self.format {
            Format::Segmented => self.unit,
            Format::Tokens => Unit::Token,
        }
    }

    /// The sentence, or its beginning, as it stands in the file but for word boundaries.
    fn excerpt(&self, sentence: usize) -> String {
        const SHOWN: usize = 60;
        let symbols = &self.sentences[sentence];
        let shown = &symbols[..symbols.len().min(SHOWN)];
        let mut text = write_line(&self.symbols, shown, &[shown.len() as u32], self.effective_unit());
        if shown.len() < symbols.len() {
            text.push('…');
        }
        text
    }
}

/// Writes `sentence`, indices into `symbols`, cut at `ends` (as in [`Corpus::gold`]), as a line of a
/// [`Format::Segmented`] file.
pub fn write_line(symbols: &[String], sentence: &[u32], ends: &[u32], unit: Unit) -> String {
    let (between_symbols, between_words) = unit.separators();
    let mut text = String::new();
    let mut start = 0;
    for &end in ends {
        if start > 0 {
            text += between_words;
        }
        for (place, &symbol) in sentence[start..end as usize].iter().enumerate() {
            if place > 0 {
                text += between_symbols;
            }
            text += &symbols[symbol as usize];
        }
        start = end as usize;
    }
    text
}

/// The sentence of a tree with its segments marked, as a line of a [`Format::Segmented`] file (see [`Tree::segment_ends`]).
///
/// [`Unit::fitting`] finds a unit that the reader takes apart again.
///
/// ```
/// use grammaton::data::corpus::{Unit, line_of_tree};
/// let tree = grammaton::grammar::tree::Tree::parse("(S (Word a b) (Word c))")?;
/// let line = |unit| line_of_tree(&tree, |label| label == "Word", unit);
/// assert_eq!((line(Unit::Char).as_str(), line(Unit::Token).as_str()), ("ab c", "a b | c"));
/// # Ok::<(), grammaton::grammar::tree::TreeError>(())
/// ```
pub fn line_of_tree(tree: &Tree, is_segment: impl Fn(&str) -> bool, unit: Unit) -> String {
    let symbols: Vec<String> = tree.terminals().map(str::to_owned).collect();
    let sentence: Vec<u32> = (0..symbols.len() as u32).collect();
    write_line(&symbols, &sentence, &tree.segment_ends(is_segment), unit)
}

/// The positions of all but a `share` of `n` items, and those of the rest, ascending; which these are is decided by `noise`.
pub fn hold_out(n: usize, share: f64, noise: Noise) -> (Vec<usize>, Vec<usize>) {
    let mut order: Vec<usize> = (0..n).collect();
    order.sort_by(|&a, &b| noise.symmetric(a as u64).total_cmp(&noise.symmetric(b as u64)));
    let mut kept = order.split_off((n as f64 * share).round() as usize);
    order.sort_unstable();
    kept.sort_unstable();
    (kept, order)
}
