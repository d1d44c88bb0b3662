//! A file of segmented sentences, line by line: gold (`corpus.gold`), or annotations to learn from (`corpus.annotated`).
//!
//! In: lines that are segmented sentences, as `glad ly`; or words with their analyses, as `gladly<TAB>glad ly` ([`alternatives`]); or sentences with
//! marks at single positions, as `un|likely`. Out: of each line the sentence, and what is known of its positions.
//!
//! A line can often be read in two ways: `wiki wiki` is the sentence `wikiwiki`, or the word `wiki` with an analysis. That way counts in which it is a
//! sentence of the corpus; if that decides nothing, the way of most lines that it decides for, else the first.

use std::path::Path;

use anyhow::Result;
use grammaton::data::corpus::{Analyses, Cleaning, Corpus, Format, Layout, Marks, Options, Unit, write_line};
use grammaton::data::eval::alternatives;
use grammaton::models::crf::{Known, whole};
use rustc_hash::{FxHashMap, FxHashSet};

use crate::job::PositionMarks;

/// A sentence of the file as one way of reading sees it.
#[derive(Clone, PartialEq, Debug)]
pub struct Read {
    /// Numbers of its symbols.
    pub sentence: Vec<u32>,
    /// Its segmentations; none if positions are marked.
    pub analyses: Analyses,
    /// What is known of its positions: its marks, or its first segmentation.
    pub known: Known,
}

/// A line that is not empty.
#[derive(Clone, PartialEq, Debug)]
pub struct Line {
    /// From 1.
    pub number: u32,
    /// As a segmented or marked sentence, then as a word with analyses: at least one of them.
    ways: [Option<Read>; 2],
}

/// The lines of a file.
#[derive(Clone, PartialEq, Debug)]
pub struct SegmentedFile {
    /// Its name in messages.
    pub name: String,
    /// Names of the symbols, in the order of their numbers.
    pub symbols: Vec<String>,
    lines: Vec<Line>,
}

/// A line as it is read.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Resolved<'a> {
    /// From 1.
    pub number: u32,
    /// What it says.
    pub read: &'a Read,
    /// Whether it is a word with its analyses.
    pub is_word: bool,
    /// Whether its sentence is one of the corpus.
    pub is_there: bool,
}

impl SegmentedFile {
    /// Reads the file at `path`, whose lines have no layout.
    ///
    /// # Errors
    /// Those of reading, and marks that cannot be found.
    pub fn read(path: &Path, options: &Options, marks: &PositionMarks) -> Result<SegmentedFile> {
        SegmentedFile::of(options, marks, |options| Ok(super::corpus(path, options)?.0))
    }

    /// Likewise a file with this text; messages call it `name`.
    ///
    /// # Errors
    /// As for a file.
    pub fn parse(text: &str, name: &str, options: &Options, marks: &PositionMarks) -> Result<SegmentedFile> {
        SegmentedFile::of(options, marks, |options| Ok(Corpus::read(text.as_bytes(), name, options)?.0))
    }

    /// A file whose lines `read` reads by options.
    fn of(
        options: &Options,
        marks: &PositionMarks,
        read: impl Fn(&Options) -> Result<Corpus>,
    ) -> Result<SegmentedFile> {
        let (format, unit) = (Format::Segmented, options.effective_unit());
        let options = Options { layout: Layout::default(), format, unit, ..options.clone() };
        marks.check(&options)?;
        // Commas and hyphens are parts of analyses.
        let with_marks = Cleaning { punctuation: Marks::Keep, ..options.cleaning.clone() };
        let plain = read(&options)?;
        let of_words = read(&Options { cleaning: with_marks, ..options })?;
        let mut numbers: FxHashMap<String, u32> = FxHashMap::default();
        let mut symbols: Vec<String> = Vec::new();
        let mut lines: Vec<Line> = Vec::new();
        let mut numbered = |corpus: &Corpus, sentence: &[u32]| -> Vec<u32> {
            let name = |&symbol: &u32| &corpus.symbols[symbol as usize];
            let number = |name: &String| {
                *numbers.entry(name.clone()).or_insert_with(|| {
                    symbols.push(name.clone());
                    symbols.len() as u32 - 1
                })
            };
            sentence.iter().map(name).map(number).collect()
        };
        for (at, ends) in plain.segmentation().into_iter().enumerate() {
            let (sentence, known) = unmarked(&plain, at, &ends, marks);
            let sentence = numbered(&plain, &sentence);
            let read = match known {
                Some(known) => Read { sentence, analyses: Vec::new(), known },
                None => Read { sentence, known: whole(&ends), analyses: vec![ends] },
            };
            lines.push(Line {
                number: plain.lines[at],
                ways: [Some(read).filter(|read| !read.sentence.is_empty()), None],
            });
        }
        for (at, &number) in of_words.lines.iter().enumerate() {
            let Some((word, analyses)) = alternatives::word_with_analyses(&of_words, at) else { continue };
            let known = analyses.first().map(|ends| whole(ends)).unwrap_or_default();
            let read = Read { sentence: numbered(&of_words, &word), analyses, known };
            match lines.binary_search_by_key(&number, |line| line.number) {
                Ok(line) => lines[line].ways[1] = Some(read),
                Err(line) => lines.insert(line, Line { number, ways: [None, Some(read)] }),
            }
        }
        lines.retain(|line| line.ways.iter().any(Option::is_some));
        Ok(SegmentedFile { name: plain.source_name, symbols, lines })
    }

    /// Each line in the way that counts; `is_there`: whether a sentence is one of the corpus.
    pub fn resolved(&self, is_there: impl Fn(&[u32]) -> bool) -> Vec<Resolved<'_>> {
        let there = |line: &Line| {
            line.ways.each_ref().map(|way| way.as_ref().is_some_and(|read| is_there(&read.sentence)))
        };
        let there: Vec<[bool; 2]> = self.lines.iter().map(there).collect();
        let n_of = |way: [bool; 2]| there.iter().filter(|it| **it == way).count();
        let most = usize::from(n_of([false, true]) > n_of([true, false]));
        let way = |line: &Line, there: [bool; 2]| match there {
            [true, false] => 0,
            [false, true] => 1,
            _ if line.ways[most].is_some() => most,
            _ => 1 - most,
        };
        self.lines
            .iter()
            .zip(there)
            .map(|(line, there)| {
                let way = way(line, there);
                let read = line.ways[way].as_ref().expect("a line can be read in one way at least");
                Resolved { number: line.number, read, is_word: way == 1, is_there: there[way] }
            })
            .collect()
    }

    /// Writes sentences of the file in the symbols of a corpus, by their names; `None` of one with a symbol that is not among them.
    pub fn in_symbols(&self, symbols: &[String]) -> impl Fn(&[u32]) -> Option<Vec<u32>> + use<> {
        let ids: FxHashMap<&str, u32> = symbols.iter().map(String::as_str).zip(0..).collect();
        let ids: Vec<Option<u32>> = self.symbols.iter().map(|name| ids.get(name.as_str()).copied()).collect();
        move |sentence| sentence.iter().map(|&symbol| ids[symbol as usize]).collect()
    }

    /// What the file knows of sentences of `corpus`, in the symbols of the corpus.
    pub fn known_in(&self, corpus: &Corpus) -> Annotated {
        let in_corpus = self.in_symbols(&corpus.symbols);
        let there: FxHashSet<&Vec<u32>> = corpus.sentences.iter().collect();
        let mut annotated = Annotated::default();
        for line in self.resolved(|sentence| in_corpus(sentence).is_some_and(|it| there.contains(&it))) {
            let sentence = in_corpus(&line.read.sentence).filter(|_| line.is_there);
            sentence.into_iter().for_each(|sentence| add(&mut annotated, sentence, &line.read.known));
        }
        annotated
    }

    /// The sentences of all lines, in every way.
    pub fn sentences(&self) -> impl Iterator<Item = &[u32]> {
        self.lines.iter().flat_map(|line| line.ways.iter().flatten()).map(|read| &read.sentence[..])
    }

    /// A sentence without boundaries.
    pub fn text(&self, sentence: &[u32]) -> String {
        sentence.iter().map(|&symbol| self.symbols[symbol as usize].as_str()).collect()
    }
}

/// What is known of annotated sentences, which are named by their symbols.
pub type Annotated = FxHashMap<Vec<u32>, Known>;

/// Adds what a line says of a sentence; of a position that several lines know, the first one counts.
pub fn add(annotated: &mut Annotated, sentence: Vec<u32>, more: &Known) {
    let known = annotated.entry(sentence).or_insert_with(|| more.clone());
    known.iter_mut().zip(more).for_each(|(known, more)| *known = known.or(*more));
}

/// Whether there is something to learn: a boundary, or a position of which nothing is known.
pub fn teaches(annotated: &Annotated) -> bool {
    annotated.values().flatten().any(|known| *known != Some(false))
}

/// A sentence of a corpus, cut at `ends`, without marks, and what is known of its positions if it has some: spaces are boundaries as well.
pub fn unmarked(
    corpus: &Corpus,
    at: usize,
    ends: &[u32],
    marks: &PositionMarks,
) -> (Vec<u32>, Option<Known>) {
    let sentence = &corpus.sentences[at];
    let meaning = |symbol: u32| marks.meaning(&corpus.symbols[symbol as usize]);
    if !marks.any() || sentence.iter().all(|&symbol| meaning(symbol).is_none()) {
        return (sentence.clone(), None);
    }
    let (mut symbols, mut known): (Vec<u32>, Known) = (Vec::new(), Vec::new());
    let mut here = None;
    for (&symbol, position) in sentence.iter().zip(1..) {
        match meaning(symbol) {
            Some(is_end) => here = Some(is_end),
            None => {
                if !symbols.is_empty() {
                    known.push(here);
                }
                symbols.push(symbol);
                here = None;
            }
        }
        if here.is_none() && ends.binary_search(&position).is_ok() {
            here = Some(true);
        }
    }
    (symbols, Some(known))
}

/// A line of a file of annotations that is a word with its analysis; `segmented` is the line that is this analysis.
pub fn word_line(symbols: &[String], sentence: &[u32], segmented: &str, unit: Unit) -> String {
    let between = if unit == Unit::Token { unit.separators().1 } else { "\t" };
    [&write_line(symbols, sentence, &[sentence.len() as u32], unit), between, segmented].concat()
}

/// A line of a file of annotations with what is known of a sentence, whose symbols have these names; `None` if nothing is known.
pub fn line(
    symbols: &[String],
    sentence: &[u32],
    known: &Known,
    unit: Unit,
    marks: &PositionMarks,
) -> Option<String> {
    let (between_symbols, between_words) = unit.separators();
    let is_whole = known.iter().all(Option::is_some);
    if !is_whole && known.iter().all(Option::is_none) {
        return None;
    }
    let marked = |mark: &str| [between_symbols, mark, between_symbols].concat();
    let between = |known: &Option<bool>| match known {
        Some(true) if is_whole || marks.boundary.is_empty() => between_words.to_owned(),
        Some(true) => marked(&marks.boundary),
        Some(false) if !is_whole => marked(&marks.joined),
        _ => between_symbols.to_owned(),
    };
    let names = sentence.iter().map(|&symbol| symbols[symbol as usize].as_str());
    let before = std::iter::once(String::new()).chain(known.iter().map(between));
    Some(before.zip(names).map(|(before, name)| before + name).collect())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn file(text: &str, unit: Unit, marks: &PositionMarks) -> Result<SegmentedFile> {
        let file = tempfile::NamedTempFile::new()?;
        std::fs::write(file.path(), text)?;
        SegmentedFile::read(file.path(), &Options { unit, ..Options::default() }, marks)
    }

    fn marks(boundary: &str, joined: &str) -> PositionMarks {
        PositionMarks { boundary: boundary.to_owned(), joined: joined.to_owned() }
    }

    proptest! {
        /// Law: what is known of a sentence is what is read in the line that says it, unless it is nothing.
        #[test]
        fn a_line_says_what_is_known(
            sentence in prop::collection::vec(0..3_u32, 1..8),
            known in prop::collection::vec(prop::option::of(any::<bool>()), 8),
            is_of_tokens: bool,
            has_boundary_mark: bool,
        ) {
            let symbols = ["a", "b", if is_of_tokens { "cc" } else { "ŋ" }].map(str::to_owned);
            let unit = if is_of_tokens { Unit::Token } else { Unit::Char };
            let marks = marks(if has_boundary_mark { "+" } else { "" }, "~");
            let known: Known = known[1..sentence.len()].to_vec();
            let Some(line) = line(&symbols, &sentence, &known, unit, &marks) else {
                prop_assert!(known.iter().all(Option::is_none) && !known.is_empty());
                return Ok(());
            };
            let file = file(&line, unit, &marks).unwrap();
            let read = &file.resolved(|_| false)[0];
            let text: Vec<&str> = sentence.iter().map(|&symbol| symbols[symbol as usize].as_str()).collect();
            prop_assert_eq!(file.text(&read.read.sentence), text.concat());
            // A line in which spaces alone are boundaries, and nothing else is known, says that it is whole.
            let has_marks = line.contains(['+', '~']);
            let expected = known.iter().map(|known| if has_marks { *known } else { Some(*known == Some(true)) });
            prop_assert_eq!(&read.read.known, &expected.collect::<Known>(), "{}", line);
        }
    }

    #[test]
    fn each_line_is_read_in_the_way_in_which_it_is_of_the_corpus() {
        let file =
            file("glad ly\nunlikely un like ly, un likely\n\nwiki wiki\nda da\n", Unit::Char, &marks("", ""))
                .unwrap();
        let read = |corpus: &[&str]| -> Vec<(u32, String, Vec<Vec<u32>>, bool)> {
            let lines = file.resolved(|sentence| corpus.contains(&file.text(sentence).as_str())).into_iter();
            lines
                .map(|it| (it.number, file.text(&it.read.sentence), it.read.analyses.clone(), it.is_there))
                .collect()
        };
        let line = |number, text: &str, ends: &[&[u32]], is_there| {
            (number, text.to_owned(), ends.iter().map(|ends| ends.to_vec()).collect::<Vec<_>>(), is_there)
        };
        // A word and its analysis, of which the letters are the same, can be a sentence as well.
        let [first, second] =
            [line(1, "gladly", &[&[4, 6]], true), line(2, "unlikely", &[&[2, 6, 8], &[2, 8]], true)];
        let found = read(&["gladly", "unlikely", "wikiwiki"]);
        assert_eq!(
            found,
            [
                first.clone(),
                second.clone(),
                line(4, "wikiwiki", &[&[4, 8]], true),
                line(5, "dada", &[&[2, 4]], false)
            ]
        );
        let found = read(&["unlikely", "gladly", "wiki", "dada", "da"]);
        assert_eq!(found[2..], [line(4, "wiki", &[&[4]], true), line(5, "da", &[&[2]], true)]);
    }

    #[test]
    fn marks_that_cannot_be_found_are_refused() {
        let refused = |boundary: &str, joined: &str, unit| {
            file("a b\n", unit, &marks(boundary, joined)).unwrap_err().to_string()
        };
        for (boundary, joined, unit, why) in [
            ("++", "", Unit::Char, "corpus.boundary_mark: `++` is no single symbol of the unit char"),
            ("", "a b", Unit::Token, "corpus.joined_mark: `a b` is no single symbol"),
            ("+", "+", Unit::Char, "are both `+`"),
            ("|", "", Unit::Token, "separates the words of lines of tokens"),
        ] {
            let error = refused(boundary, joined, unit);
            assert!(error.contains(why), "{error}");
        }
        let cleaning = Cleaning { punctuation: Marks::Drop, ..Cleaning::default() };
        let error =
            marks("/", "").check(&Options { cleaning, ..Options::default() }).unwrap_err().to_string();
        assert!(error.contains("change `/` before it is read"), "{error}");
    }
}
