//! Grammars made from a corpus file.
//!
//! In: a member of the family (`shared/src/grammar/auto.rs`), the corpus, and what is known of the language, if anything. Out: the grammar
//! with its segments, and notices of the vowels that were found and of affixes that were left out.

use std::path::Path;

use anyhow::{Context, Result, ensure};
use grammaton::data::corpus::clean;
use grammaton::data::vowels::Sentences;
use grammaton::grammar::auto::{Alphabet, Auto, AutoGrammar, auto};

use super::text::Source;
use crate::input;
use crate::job::{Job, ModelTable};

/// Knowledge of a language besides the corpus.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Known {
    /// Vowels, with spaces between them; if empty, they are found.
    pub vowels: String,
    /// Symbols that mark stress, with spaces between them.
    pub stress: String,
    /// Prefixes; `None`: none are known.
    pub prefixes: Option<Affixes>,
    /// Suffixes, likewise.
    pub suffixes: Option<Affixes>,
    /// Whether a first run found these affixes.
    pub are_found: bool,
}

/// Known affixes of one kind.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Affixes {
    /// Their source, for messages.
    source: String,
    /// Each as the corpus is written.
    affixes: Vec<String>,
}

impl Known {
    /// What a job knows; affixes are read from its files, or were found by its first run.
    pub fn of(job: &Job) -> Result<Known> {
        let ModelTable { vowels, stress, prefixes, suffixes, .. } = &job.model;
        let known = |path: &Path, found: &[String]| match found {
            [] => Affixes::read(path),
            _ => Ok(Some(Affixes { source: "the first run".to_owned(), affixes: found.to_vec() })),
        };
        Ok(Known {
            vowels: vowels.clone(),
            stress: stress.clone(),
            prefixes: known(prefixes, &job.found.prefixes)?,
            suffixes: known(suffixes, &job.found.suffixes)?,
            are_found: job.model.cascade > 0,
        })
    }
}

impl Affixes {
    /// Those of the file at `path`, one per line; `None` if the path is empty.
    pub fn read(path: &Path) -> Result<Option<Affixes>> {
        if path.as_os_str().is_empty() {
            return Ok(None);
        }
        let source = path.display().to_string();
        let text = input::text(path, &source, "affixes")?;
        let affixes = text.lines().filter(|line| !line.trim().is_empty()).map(str::to_owned).collect();
        Ok(Some(Affixes { source, affixes }))
    }
}

/// Makes the grammar; notices go to `notices`.
pub fn auto_grammar(
    kind: Auto,
    source: &Source,
    known: &Known,
    notices: &mut Vec<String>,
) -> Result<AutoGrammar> {
    let symbols = &source.end.symbols;
    let mut stress_marks = vec![false; if kind.has_stress() { symbols.len() } else { 0 }];
    if kind.has_stress() {
        stress_marks = symbols.iter().map(|symbol| is_among(symbol, &known.stress)).collect();
        if !stress_marks.contains(&true) {
            notices.push(format!(
                "no stress mark in the corpus ({}), so that no syllable is stressed; model.stress names the marks",
                known.stress.trim()
            ));
        }
    }
    let vowels = if !kind.has_syllables() {
        Vec::new()
    } else if known.vowels.trim().is_empty() {
        let found = found(source, &stress_marks)?;
        notices.push(notice(symbols, &found));
        found
    } else {
        given(symbols, &known.vowels)?
    };
    let (mut prefixes, mut suffixes) = (Vec::new(), Vec::new());
    if kind.has_affixes() {
        prefixes = affixes(&known.prefixes, source, notices)?;
        suffixes = affixes(&known.suffixes, source, notices)?;
    }
    let of = Alphabet {
        symbols,
        vowels: &vowels,
        stress_marks: &stress_marks,
        prefixes: &prefixes,
        suffixes: &suffixes,
        adapt_affixes: known.are_found,
    };
    auto(kind, &of).context("cannot make a grammar for the corpus")
}

/// Whether each symbol is a vowel, as found in the corpus without its `stress_marks`.
fn found(source: &Source, stress_marks: &[bool]) -> Result<Vec<bool>> {
    let is_mark = |symbol: &u32| stress_marks.get(*symbol as usize) == Some(&true);
    let mut sentences = Sentences::default();
    source.blocks(|mut block| {
        if stress_marks.contains(&true) {
            block.sentences.iter_mut().for_each(|sentence| sentence.retain(|symbol| !is_mark(symbol)));
        }
        sentences.add(&block.sentences);
        Ok(())
    })?;
    Ok(sentences.vowels(&source.end.symbols))
}

/// Whether a symbol is among `symbols`, with spaces between them.
fn is_among(symbol: &str, symbols: &str) -> bool {
    symbols.split_whitespace().any(|one| one == symbol)
}

/// Whether each symbol is among the `vowels`.
fn given(symbols: &[String], vowels: &str) -> Result<Vec<bool>> {
    let is_vowel: Vec<bool> = symbols.iter().map(|symbol| is_among(symbol, vowels)).collect();
    ensure!(
        is_vowel.contains(&true),
        "model.vowels: none of these symbols is in the corpus; write symbols of the corpus with spaces between them, as in \"a e i o u\", \
         or leave it empty"
    );
    Ok(is_vowel)
}

/// Names the found vowels.
fn notice(symbols: &[String], found: &[bool]) -> String {
    let vowels: Vec<&str> =
        symbols.iter().zip(found).filter(|(_, is_vowel)| **is_vowel).map(|(symbol, _)| &symbol[..]).collect();
    if vowels.is_empty() {
        return "no vowels were found: every syllable is a sequence of symbols; model.vowels can name them"
            .to_owned();
    }
    let more = if vowels.len() > NAMED { ", …" } else { "" };
    let shown = vowels[..vowels.len().min(NAMED)].join(" ");
    format!("vowels found in the corpus: {shown}{more}; model.vowels can name others")
}

/// Vowels that a notice names.
const NAMED: usize = 60;

/// Hyphen-minus, hyphen, non-breaking hyphen, en dash, and the signs that stand for one in lists of affixes.
const HYPHENS: [char; 6] = ['-', '‐', '‑', '–', '+', '~'];

/// Affixes as indices of symbols. Those with other symbols occur nowhere, and are left out.
fn affixes(known: &Option<Affixes>, source: &Source, notices: &mut Vec<String>) -> Result<Vec<Vec<usize>>> {
    let Some(Affixes { source: name, affixes: lines }) = known else { return Ok(Vec::new()) };
    let position = |symbol: &str| source.end.symbols.iter().position(|known| known == symbol);
    let options = source.options();
    let (unit, digraphs) = (options.effective_unit(), options.cleaning.digraphs());
    let symbols = |line: &str| -> Option<Vec<usize>> {
        let mut found = Some(Vec::new());
        for word in options.cleaning.line(line, unit).split_whitespace() {
            clean::symbols(word, unit, &digraphs, |symbol| {
                found = found.take().zip(position(symbol)).map(|(mut found, symbol)| {
                    found.push(symbol);
                    found
                });
            });
        }
        found
    };
    // A hyphen at the edge shows where the affix joins, unless words of the corpus have it.
    let mut n_hyphens = 0;
    let mut affix = |line: &String| {
        symbols(line).or_else(|| {
            let bare = line.trim().trim_matches(HYPHENS);
            let found = Some(bare).filter(|bare| !bare.is_empty() && *bare != line.trim()).and_then(symbols);
            n_hyphens += usize::from(found.is_some());
            found
        })
    };
    let affixes: Vec<Vec<usize>> = lines.iter().filter_map(&mut affix).collect();
    ensure!(
        !affixes.is_empty(),
        "{name}: no affix of symbols of the corpus; write one per line, as the corpus is written"
    );
    if n_hyphens > 0 {
        notices.push(format!("{name}: the hyphens at the edge of {n_hyphens} affixes were left out"));
    }
    if affixes.len() < lines.len() {
        let n = lines.len() - affixes.len();
        notices.push(format!(
            "{name}: left out {n} of {} affixes, which have symbols that the corpus lacks",
            lines.len()
        ));
    }
    Ok(affixes)
}
