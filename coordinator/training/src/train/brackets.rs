//! Constituents of sentences that are known before training (`corpus.brackets`).
//!
//! In: a file ([`bracketed_file`]) and the grammar. Out: what is known of the trees of those sentences of the corpus that the file has. Sentences are found by
//! their symbols, wherever they stand.

use std::path::Path;

use anyhow::{Result, bail, ensure};
use grammaton::data::corpus::Options;
use grammaton::data::{MAX_LABELLED, TreeMarks};
use grammaton::grammar::{Grammar, SymbolId};
use rustc_hash::FxHashMap;

use crate::input::bracketed_file::{self, Bracketed};

/// What is known of sentences, and which of them the corpus has.
pub struct Brackets {
    name: String,
    lines: Vec<Bracketed>,
    /// By the symbols of the grammar.
    sentences: FxHashMap<Vec<SymbolId>, Known>,
}

/// What is known of a sentence.
#[derive(Default)]
struct Known {
    marks: TreeMarks,
    /// Positions of its lines.
    lines: Vec<usize>,
    is_there: bool,
}

impl Brackets {
    /// Reads the file at `path` for a corpus that is read by `options`.
    ///
    /// # Errors
    /// Those of reading.
    pub fn read(path: &Path, options: &Options, grammar: &Grammar) -> Result<Brackets> {
        let is_nonterminal = |symbol: &SymbolId| symbol.0 < grammar.n_nonterminals;
        let lines = bracketed_file::read(path, options, |name| grammar.symbol(name).filter(is_nonterminal))?;
        let mut sentences: FxHashMap<Vec<SymbolId>, Known> = FxHashMap::default();
        for (at, line) in lines.iter().enumerate() {
            let tokens = line.symbols.iter().map(|name| grammar.symbol(name));
            if let Some(tokens) = tokens.collect::<Option<Vec<SymbolId>>>() {
                let known = sentences.entry(tokens).or_default();
                for bracket in &line.brackets {
                    if !known.marks.brackets.contains(bracket) {
                        known.marks.brackets.push(bracket.clone());
                    }
                }
                ensure!(
                    known.marks.most_labelled() <= MAX_LABELLED,
                    "{}:{}: the same symbols have more than {MAX_LABELLED} labels; leave some out",
                    path.display(),
                    line.number
                );
                known.lines.push(at);
            }
        }
        Ok(Brackets { name: path.display().to_string(), lines, sentences })
    }

    /// What is known of a sentence of the corpus.
    pub fn of(&mut self, tokens: &[SymbolId]) -> TreeMarks {
        let Some(known) = self.sentences.get_mut(tokens) else { return TreeMarks::default() };
        known.is_there = true;
        known.marks.clone()
    }

    /// The places of the lines that say something of a sentence; `None` if there are none.
    pub fn places(&self, tokens: &[SymbolId]) -> Option<String> {
        let lines = &self.sentences.get(tokens).filter(|known| !known.marks.is_empty())?.lines;
        let places = lines.iter().map(|&at| format!("{}:{}", self.name, self.lines[at].number));
        Some(places.collect::<Vec<_>>().join(", "))
    }

    /// A notice about the lines, after all sentences of the corpus were looked for.
    ///
    /// # Errors
    /// If none of them is one.
    pub fn notice(&self, corpus: &Path) -> Result<String> {
        let mut is_there = vec![false; self.lines.len()];
        let there = self.sentences.values().filter(|known| known.is_there);
        there.flat_map(|known| &known.lines).for_each(|&at| is_there[at] = true);
        let (name, n) = (&self.name, is_there.iter().filter(|&&is_there| is_there).count());
        let other = match is_there.iter().position(|is_there| !is_there) {
            Some(at) => {
                let line = &self.lines[at];
                format!("; no sentence is {name}:{}: `{}`", line.number, line.text())
            }
            None => String::new(),
        };
        let (n_lines, corpus) = (self.lines.len(), corpus.display());
        if n == 0 {
            bail!(
                "{name}: none of {n_lines} lines is a sentence of {corpus}{other}; labels are nonterminals of the grammar, and stand right after `(`"
            );
        }
        Ok(format!(
            "{name}: {n} of {n_lines} lines are sentences of the corpus, whose trees agree with their brackets{other}"
        ))
    }
}
