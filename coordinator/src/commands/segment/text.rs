//! The text of `segment`: symbols, and lines that go back to the form in which they came.
//!
//! A symbol is a character with the combining marks and joiners after it, or a token. Nothing else is changed: phonemic transcriptions use
//! upper case, digits and punctuation for sounds.
//!
//! Law: without spaces, a segmented line is the line of the text without spaces; an empty line stays empty.

use std::path::Path;

use anyhow::{Context as _, Result, bail, ensure};
use rustc_hash::FxHashMap;
use shared::data::corpus::read::BOUNDARY;
use shared::data::corpus::{Corpus, Options, Unit, write_line};
use unicode_width::UnicodeWidthChar as _;

use crate::input;

/// Utterances of symbols.
pub struct Text {
    corpus: Corpus,
    /// Lines of the text, empty ones among them.
    n_lines: u32,
    /// The unit of the file that the job reads.
    file_unit: Unit,
}

impl Text {
    /// Reads the text at `path`; `-` is standard input.
    pub fn read(path: &Path, unit: Unit) -> Result<Text> {
        let (corpus, end) = input::corpus(path, &Options { unit, ..Options::default() })?;
        let corpus = match unit {
            Unit::Char => with_marks_joined(corpus),
            Unit::Token => corpus,
        };
        let file_unit = match unit {
            Unit::Char => Unit::fitting(corpus.symbols.iter().map(String::as_str)),
            Unit::Token => Unit::Token,
        };
        if unit == Unit::Char
            && file_unit == Unit::Token
            && corpus.symbols.iter().any(|symbol| symbol == BOUNDARY)
        {
            bail!(
                "{}: a text with combining marks cannot have `{BOUNDARY}`, which stands for word boundaries between symbols; replace it",
                corpus.source_name
            );
        }
        Ok(Text { corpus, n_lines: end.n_lines, file_unit })
    }

    /// Number of different symbols.
    pub fn n_symbols(&self) -> usize {
        self.corpus.symbols.len()
    }

    /// Name of the text, for messages.
    pub fn name(&self) -> &str {
        &self.corpus.source_name
    }

    /// Value of `corpus.unit` for [`Text::corpus_file`].
    pub fn unit_name(&self) -> &'static str {
        match self.file_unit {
            Unit::Char => "char",
            Unit::Token => "token",
        }
    }

    /// The file that the job reads, with the lines of the text, and its gold segmentation if it has one.
    pub fn corpus_file(&self) -> Result<String> {
        self.lines(&self.corpus.segmentation(), self.file_unit)
    }

    /// The text as segmented in the file at `path`, which has the lines and the unit of [`Text::corpus_file`].
    pub fn segmented(&self, path: &Path) -> Result<String> {
        let options = Options { unit: self.file_unit, ..Options::default() };
        let (found, _) = input::corpus(path, &options)?;
        self.lines(&found.segmentation(), self.corpus.unit)
    }

    /// A line of other text, such as an affix, as one word of the corpus file.
    pub fn symbols_of(&self, line: &str) -> String {
        match (self.corpus.unit, self.file_unit) {
            (Unit::Char, Unit::Token) => clusters(line.chars().filter(|c| !c.is_whitespace())).join(" "),
            _ => line.trim().to_owned(),
        }
    }

    /// Every line of the text cut at these ends, by sentence.
    fn lines(&self, ends: &[Vec<u32>], unit: Unit) -> Result<String> {
        let Corpus { symbols, sentences, lines, .. } = &self.corpus;
        ensure!(ends.len() == sentences.len(), "internal error: utterances were lost; please report it");
        let mut written = vec![String::new(); self.n_lines as usize];
        for ((sentence, ends), &line) in sentences.iter().zip(ends).zip(lines) {
            let at = written
                .get_mut(line as usize - 1)
                .context("internal error: a line too many; please report it")?;
            *at = write_line(symbols, sentence, ends, unit);
        }
        Ok(written.join("\n") + "\n")
    }
}

/// Whether a character belongs to the one before it: combining marks and joiners.
fn is_mark(character: char) -> bool {
    character.width() == Some(0)
}

/// Characters with the marks after them.
fn clusters(characters: impl Iterator<Item = char>) -> Vec<String> {
    let mut clusters: Vec<String> = Vec::new();
    for character in characters {
        match clusters.last_mut() {
            Some(last) if is_mark(character) => last.push(character),
            _ => clusters.push(character.to_string()),
        }
    }
    clusters
}

/// Joins marks with the symbol before them, within a word of the gold segmentation.
fn with_marks_joined(corpus: Corpus) -> Corpus {
    if !corpus.symbols.iter().any(|symbol| symbol.chars().all(is_mark)) {
        return corpus;
    }
    let (mut symbols, mut ids): (Vec<String>, FxHashMap<String, u32>) = Default::default();
    let (mut sentences, mut gold) = (Vec::new(), Vec::new());
    for (sentence, words) in corpus.sentences.iter().zip(corpus.segmentation()) {
        let (mut joined, mut ends): (Vec<u32>, Vec<u32>) = Default::default();
        let mut start = 0;
        for end in words {
            let word = &sentence[start..end as usize];
            let characters = word.iter().flat_map(|&symbol| corpus.symbols[symbol as usize].chars());
            joined.extend(clusters(characters).into_iter().map(|name| {
                *ids.entry(name).or_insert_with_key(|name| {
                    symbols.push(name.clone());
                    symbols.len() as u32 - 1
                })
            }));
            ends.push(joined.len() as u32);
            start = end as usize;
        }
        sentences.push(joined);
        gold.push(ends);
    }
    let gold = corpus.gold.as_ref().map(|_| gold);
    Corpus { symbols, sentences, gold, ..corpus }
}
