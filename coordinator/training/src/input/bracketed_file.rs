//! A file of bracketed sentences, one per line: constituents that are known (`corpus.brackets`; Pereira & Schabes 1992).
//!
//! In: lines as `(the dog) sees (NP the cat)`. A name right after `(` is a label if it is a nonterminal of the grammar; all else is text, which is read as the
//! corpus is. Out: of each line its symbols and its brackets.

use std::path::Path;

use anyhow::{Result, bail, ensure};
use grammaton::data::Bracket;
use grammaton::data::corpus::{Corpus, Layout, Options};
use grammaton::grammar::SymbolId;

/// A line that is not empty.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Bracketed {
    /// From 1.
    pub number: u32,
    /// Names of its symbols.
    pub symbols: Vec<String>,
    /// Its brackets, in the order of their ends.
    pub brackets: Vec<Bracket>,
}

/// A part of a line.
enum Part<'a> {
    /// `(`, perhaps with a label.
    Open(Option<SymbolId>),
    Close,
    /// Between two brackets.
    Text(&'a str),
}

/// Reads the file at `path`; `nonterminal` is the one of a name.
///
/// # Errors
/// Those of reading, and brackets that do not match or have nothing between them, with their line.
pub fn read(
    path: &Path,
    options: &Options,
    nonterminal: impl Fn(&str) -> Option<SymbolId>,
) -> Result<Vec<Bracketed>> {
    let name = path.display().to_string();
    let text = super::text(path, &name, "bracketed sentences")?;
    let lines = text.lines().map(|line| parts(line, &nonterminal));
    let lines: Vec<Vec<Part<'_>>> = lines.collect();
    // Each part is a line of a corpus, so that it is read as one.
    let of_parts = lines.iter().flatten().filter_map(|part| match part {
        Part::Text(text) => Some(*text),
        Part::Open(_) | Part::Close => None,
    });
    let of_parts: String = of_parts.flat_map(|text| [text, "\n"]).collect();
    ensure!(!of_parts.is_empty(), "{name}: no bracketed sentence; give lines as `(the dog) barks`");
    let options = Options { layout: Layout::default(), ..options.clone() };
    let (corpus, _) = Corpus::read(of_parts.as_bytes(), &name, &options)?;
    let mut symbols = Symbols { corpus: &corpus, next: 0, part: 0 };
    let read = (1..).zip(&lines).filter(|(_, parts)| !parts.is_empty());
    read.map(|(number, parts)| bracketed(&name, number, parts, &mut symbols)).collect()
}

fn parts<'a>(line: &'a str, nonterminal: &impl Fn(&str) -> Option<SymbolId>) -> Vec<Part<'a>> {
    let mut parts = Vec::new();
    let mut rest = line.trim_start_matches('\u{feff}').trim();
    while !rest.is_empty() {
        if let Some(inner) = rest.strip_prefix('(') {
            let end = inner.find(|symbol: char| symbol.is_whitespace() || "()".contains(symbol));
            let (label, after) = inner.split_at(end.unwrap_or(inner.len()));
            let label = nonterminal(label);
            parts.push(Part::Open(label));
            rest = if label.is_some() { after } else { inner };
        } else if let Some(after) = rest.strip_prefix(')') {
            parts.push(Part::Close);
            rest = after;
        } else {
            let (text, after) = rest.split_at(rest.find(['(', ')']).unwrap_or(rest.len()));
            parts.push(Part::Text(text.trim_end()));
            rest = after;
        }
        rest = rest.trim_start();
    }
    parts
}

/// The symbols of the texts between brackets, in their order.
struct Symbols<'a> {
    corpus: &'a Corpus,
    /// Position of the next sentence.
    next: usize,
    /// Number of texts so far.
    part: u32,
}

impl Symbols<'_> {
    /// Names of the symbols of the next text: none if all of it is left out.
    fn next(&mut self) -> Vec<String> {
        self.part += 1;
        if self.corpus.lines.get(self.next) != Some(&self.part) {
            return Vec::new();
        }
        self.next += 1;
        let symbols = self.corpus.sentences[self.next - 1].iter();
        symbols.map(|&symbol| self.corpus.symbols[symbol as usize].clone()).collect()
    }
}

fn bracketed(name: &str, number: u32, parts: &[Part<'_>], symbols: &mut Symbols<'_>) -> Result<Bracketed> {
    let mut line = Bracketed { number, ..Bracketed::default() };
    let mut open: Vec<(u32, Option<SymbolId>)> = Vec::new();
    for part in parts {
        let here = line.symbols.len() as u32;
        match part {
            Part::Text(_) => line.symbols.extend(symbols.next()),
            Part::Open(label) => open.push((here, *label)),
            Part::Close => {
                let Some((start, label)) = open.pop() else {
                    bail!(
                        "{name}:{number}: found `)`, expected a `(` before it; a sentence and its brackets are one line"
                    )
                };
                ensure!(start < here, "{name}:{number}: found `()`, expected symbols between brackets");
                let labels = label.into_iter().collect();
                line.brackets.push(Bracket { start, end: here, labels });
            }
        }
    }
    ensure!(
        open.is_empty(),
        "{name}:{number}: found the end of the line, expected `)`; a sentence and its brackets are one line"
    );
    Ok(line)
}

impl Bracketed {
    /// Its text without brackets.
    pub fn text(&self) -> String {
        self.symbols.join(" ")
    }
}

#[cfg(test)]
mod tests {
    use grammaton::data::corpus::Format;
    use proptest::prelude::*;

    use super::*;

    fn read_text(text: &str) -> Result<Vec<Bracketed>> {
        let file = tempfile::NamedTempFile::new()?;
        std::fs::write(file.path(), text)?;
        let options = Options { format: Format::Tokens, ..Options::default() };
        read(file.path(), &options, |name| {
            ["S", "NP"].iter().position(|it| *it == name).map(|at| SymbolId(at as u32))
        })
    }

    /// Start, end, labels.
    fn spans(line: &Bracketed) -> Vec<(u32, u32, Vec<u32>)> {
        let labels = |bracket: &Bracket| bracket.labels.iter().map(|label| label.0).collect();
        line.brackets.iter().map(|bracket| (bracket.start, bracket.end, labels(bracket))).collect()
    }

    #[test]
    fn brackets_are_spans_with_labels() {
        let lines =
            read_text("(S (NP the dog) sees ( NP (NP the cat)))\n\nno bracket\n((NP a))( S)\n").unwrap();
        assert_eq!(lines.iter().map(|line| line.number).collect::<Vec<_>>(), [1, 3, 4]);
        assert_eq!(lines[0].text(), "the dog sees NP the cat");
        assert_eq!(spans(&lines[0]), [(0, 2, vec![1]), (4, 6, vec![1]), (3, 6, vec![]), (0, 6, vec![0])]);
        assert_eq!(spans(&lines[1]), []);
        assert_eq!(
            (lines[2].text(), spans(&lines[2])),
            ("a S".to_owned(), vec![(0, 1, vec![1]), (0, 1, vec![]), (1, 2, vec![])])
        );
    }

    #[test]
    fn brackets_that_do_not_match_are_refused() {
        for (text, why) in [
            ("a b\n(a b\n", ":2: found the end of the line"),
            ("a) b\n", ":1: found `)`"),
            ("a ( ) b\n", ":1: found `()`"),
            ("(NP) b\n", ":1: found `()`"),
            (" \n\n", "no bracketed sentence"),
            ("()\n", "no bracketed sentence"),
        ] {
            let error = read_text(text).unwrap_err().to_string();
            assert!(error.contains(why), "{error}, expected {why}");
        }
    }

    proptest! {
        /// Law: whatever the file has, it is read or refused in one line.
        #[test]
        fn any_text_is_read_or_refused(text in "[ab S(NP)\u{feff}\t\r\n]{0,40}") {
            match read_text(&text) {
                Ok(lines) => for line in lines {
                    let n = line.symbols.len() as u32;
                    prop_assert!(line.brackets.iter().all(|bracket| bracket.start < bracket.end && bracket.end <= n));
                },
                Err(error) => prop_assert!(!error.to_string().contains('\n')),
            }
        }
    }
}
