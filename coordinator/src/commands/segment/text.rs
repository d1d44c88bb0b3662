//! The text of `segment`: symbols, and lines that go back to the form in which they came.
//!
//! A symbol is a grapheme (a character with its combining marks and joiners), or a token. Nothing else is changed: phonemic transcriptions use
//! upper case, digits and punctuation for sounds.
//!
//! Law: without spaces, a segmented line is the line of the text without spaces; an empty line stays empty.

use std::path::Path;

use anyhow::{Context as _, Result, ensure};
use shared::data::corpus::{Corpus, Options, Unit, write_line};

use crate::input;
use crate::metrics::MBR_VOTE;

/// Utterances of symbols.
pub struct Text {
    corpus: Corpus,
    /// Lines of the text, empty ones among them.
    n_lines: u32,
}

impl Text {
    /// Reads the text at `path`; `-` is standard input.
    pub fn read(path: &Path, unit: Unit) -> Result<Text> {
        let graphemes = match unit {
            Unit::Char | Unit::Grapheme => Unit::Grapheme,
            Unit::Token => Unit::Token,
        };
        let (mut corpus, end) = input::corpus(path, &Options { unit: graphemes, ..Options::default() })?;
        ensure!(
            corpus.symbols.len() > 1,
            "{}: the text has a single symbol, so that every segmentation is as good as another; give a text of more",
            corpus.source_name
        );
        // Most texts have no marks, and any tool takes them apart.
        if graphemes == Unit::Grapheme && corpus.symbols.iter().all(|symbol| symbol.chars().count() == 1) {
            corpus.unit = Unit::Char;
        }
        Ok(Text { corpus, n_lines: end.n_lines })
    }

    /// Number of symbols of all utterances.
    pub fn length(&self) -> usize {
        self.corpus.sentences.iter().map(Vec::len).sum()
    }

    /// The line of the longest utterance, and its number of symbols.
    pub fn longest_line(&self) -> (u32, usize) {
        let lengths = self.corpus.sentences.iter().map(Vec::len).zip(&self.corpus.lines).rev();
        let (n_symbols, &line) = lengths.max_by_key(|(n, _)| *n).expect("a text has an utterance");
        (line, n_symbols)
    }

    /// The utterances.
    pub fn corpus(&self) -> &Corpus {
        &self.corpus
    }

    /// Value of `corpus.unit` for [`Text::corpus_file`].
    pub fn unit_name(&self) -> &'static str {
        match self.corpus.unit {
            Unit::Char => "char",
            Unit::Grapheme => "grapheme",
            Unit::Token => "token",
        }
    }

    /// The file that the job reads, with the lines of the text, and its gold segmentation if it has one.
    pub fn corpus_file(&self) -> Result<String> {
        self.lines(&self.corpus.segmentation())
    }

    /// The text as segmented by the vote of the chains in a folder of results of [`Text::corpus_file`].
    pub fn segmented_in(&self, dir: &Path) -> Result<String> {
        let options = Options { unit: self.corpus.unit, ..Options::default() };
        let (found, _) = input::corpus(&dir.join(format!("segmentation.{MBR_VOTE}.txt")), &options)?;
        self.lines(&found.segmentation())
    }

    /// Every line of the text cut at these ends, by sentence.
    fn lines(&self, ends: &[Vec<u32>]) -> Result<String> {
        let Corpus { symbols, sentences, lines, unit, .. } = &self.corpus;
        ensure!(ends.len() == sentences.len(), "internal error: utterances were lost; please report it");
        let mut written = vec![String::new(); self.n_lines as usize];
        for ((sentence, ends), &line) in sentences.iter().zip(ends).zip(lines) {
            let at = written
                .get_mut(line as usize - 1)
                .context("internal error: a line too many; please report it")?;
            *at = write_line(symbols, sentence, ends, *unit);
        }
        Ok(written.join("\n") + "\n")
    }
}
