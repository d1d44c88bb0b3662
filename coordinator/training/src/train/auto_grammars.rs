//! Grammars made from a corpus file.
//!
//! In: a member of the family (`shared/src/grammar/auto.rs`), the corpus, and what is known of the language, if anything. Out: the grammar
//! with its segments, and notices of the vowels that were found and of known strings that were left out.

use std::path::Path;

use anyhow::{Context, Result, ensure};
use grammaton::data::corpus::clean;
use grammaton::data::vowels::Sentences;
use grammaton::grammar::auto::{Alphabet, Auto, AutoGrammar, auto};
use rustc_hash::FxHashMap;

use super::text::Source;
use crate::input;
use crate::job::{Job, ModelTable};

/// Knowledge of a language besides the corpus.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Known {
    /// Vowels, with spaces between them; if empty, they are found.
    pub vowels: String,
    /// Whether vowels that begin hardly an utterance begin no word inside of one.
    pub inner_vowels: bool,
    /// Symbols that mark stress, with spaces between them.
    pub stress: String,
    /// Prefixes; `None`: none are known.
    pub prefixes: Option<Strings>,
    /// Suffixes, likewise.
    pub suffixes: Option<Strings>,
    /// Stems, likewise.
    pub stems: Option<Strings>,
    /// Words, likewise, of a grammar of utterances.
    pub words: Option<Strings>,
    /// Whether a first run found these affixes.
    pub are_found: bool,
}

/// Known strings of one kind.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Strings {
    /// Their source, for messages.
    source: String,
    /// Each as the corpus is written, perhaps with its count.
    lines: Vec<String>,
}

impl Known {
    /// What a job knows; strings are read from its files, or were found by its first run.
    pub fn of(job: &Job) -> Result<Known> {
        let ModelTable { vowels, inner_vowels, stress, prefixes, suffixes, stems, words, .. } = &job.model;
        let known = |path: &Path, found: &[String]| match found {
            [] => Strings::read(path),
            _ => Ok(Some(Strings { source: "the first run".to_owned(), lines: found.to_vec() })),
        };
        Ok(Known {
            vowels: vowels.clone(),
            inner_vowels: *inner_vowels,
            stress: stress.clone(),
            prefixes: known(prefixes, &job.found.prefixes)?,
            suffixes: known(suffixes, &job.found.suffixes)?,
            stems: Strings::read(stems)?,
            words: Strings::read(words)?,
            are_found: job.model.cascade > 0,
        })
    }
}

impl Strings {
    /// Those of the file at `path`, one per line; `None` if the path is empty.
    pub fn read(path: &Path) -> Result<Option<Strings>> {
        if path.as_os_str().is_empty() {
            return Ok(None);
        }
        let source = path.display().to_string();
        let text = input::text(path, &source, "list")?;
        let lines = text.lines().filter(|line| !line.trim().is_empty()).map(str::to_owned).collect();
        Ok(Some(Strings { source, lines }))
    }

    /// As indices of symbols of a corpus; `one` and `all` name them. Those with other symbols occur nowhere, and are left out.
    fn in_symbols(
        &self,
        source: &Source,
        [one, all]: [&str; 2],
        notices: &mut Vec<String>,
    ) -> Result<Vec<Vec<usize>>> {
        let Strings { source: name, lines } = self;
        let symbols = &source.end.symbols;
        let numbers: FxHashMap<&str, usize> = symbols.iter().map(String::as_str).zip(0..).collect();
        let options = source.options();
        let (unit, digraphs) = (options.effective_unit(), options.cleaning.digraphs());
        let in_symbols = |line: &str| -> Option<Vec<usize>> {
            let mut found = Some(Vec::new());
            for word in options.cleaning.line(line, unit).split_whitespace() {
                clean::symbols(word, unit, &digraphs, |symbol| {
                    found = found.take().zip(numbers.get(symbol)).map(|(mut found, &symbol)| {
                        found.push(symbol);
                        found
                    });
                });
            }
            found.filter(|found| !found.is_empty())
        };
        // A number behind a tab is a count, unless the corpus has it. A hyphen at the edge shows where an affix joins, unless words of the corpus have it.
        let (mut n_counts, mut n_hyphens) = (0, 0);
        let mut read = |line: &String| {
            let counted = line.split_once('\t').filter(|(_, count)| count.trim().parse::<f64>().is_ok());
            let counted = counted.map(|(string, _)| string).filter(|_| in_symbols(line).is_none());
            n_counts += usize::from(counted.is_some());
            let string = counted.unwrap_or(line).trim();
            in_symbols(string).or_else(|| {
                let bare = string.trim_matches(HYPHENS);
                let found =
                    Some(bare).filter(|bare| !bare.is_empty() && *bare != string).and_then(in_symbols);
                n_hyphens += usize::from(found.is_some());
                found
            })
        };
        let strings: Vec<Vec<usize>> = lines.iter().filter_map(&mut read).collect();
        ensure!(
            !strings.is_empty(),
            "{name}: no {one} of symbols of the corpus; write one per line, as the corpus is written"
        );
        if n_counts > 0 {
            notices.push(format!("{name}: the counts of {n_counts} {all} are not read"));
        }
        if n_hyphens > 0 {
            notices.push(format!("{name}: the hyphens at the edge of {n_hyphens} {all} were left out"));
        }
        if strings.len() < lines.len() {
            let n = lines.len() - strings.len();
            notices.push(format!(
                "{name}: left out {n} of {} {all}, which have symbols that the corpus lacks",
                lines.len()
            ));
        }
        Ok(strings)
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
    let (mut vowels, mut inner) = (Vec::new(), Vec::new());
    if kind.has_syllables() {
        let sentences = sentences(source, &stress_marks)?;
        if known.vowels.trim().is_empty() {
            vowels = sentences.vowels(symbols);
            notices.push(vowels_notice(symbols, &vowels));
        } else {
            vowels = given(symbols, &known.vowels)?;
        }
        if known.inner_vowels {
            inner = sentences.inner(&vowels);
            notices.extend(inner_notice(symbols, &inner));
        }
    }
    let mut strings = |known: &Option<Strings>, names: [&str; 2], is_read: bool| {
        let known = known.as_ref().filter(|_| is_read);
        known.map_or(Ok(Vec::new()), |known| known.in_symbols(source, names, notices))
    };
    let of_morphemes = kind.has_affixes();
    let [prefixes, suffixes] =
        [&known.prefixes, &known.suffixes].map(|known| strings(known, ["affix", "affixes"], of_morphemes));
    let stems = strings(&known.stems, ["stem", "stems"], of_morphemes)?;
    let words = strings(&known.words, ["word", "words"], !of_morphemes)?;
    let of = Alphabet {
        symbols,
        vowels: &vowels,
        inner: &inner,
        stress_marks: &stress_marks,
        prefixes: &prefixes?,
        suffixes: &suffixes?,
        stems: &stems,
        words: &words,
        adapt_affixes: known.are_found,
    };
    auto(kind, &of).context("cannot make a grammar for the corpus")
}

/// The distinct sentences of the corpus, without their `stress_marks`.
fn sentences(source: &Source, stress_marks: &[bool]) -> Result<Sentences> {
    let is_mark = |symbol: &u32| stress_marks.get(*symbol as usize) == Some(&true);
    let mut sentences = Sentences::default();
    source.blocks(|mut block| {
        if stress_marks.contains(&true) {
            block.sentences.iter_mut().for_each(|sentence| sentence.retain(|symbol| !is_mark(symbol)));
        }
        sentences.add(&block.sentences);
        Ok(())
    })?;
    Ok(sentences)
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
fn vowels_notice(symbols: &[String], found: &[bool]) -> String {
    match names(symbols, found) {
        None => "no vowels were found: every syllable is a sequence of symbols; model.vowels can name them"
            .to_owned(),
        Some(names) => format!("vowels found in the corpus: {names}; model.vowels can name others"),
    }
}

/// Names the vowels that begin no word, if there are any.
fn inner_notice(symbols: &[String], inner: &[bool]) -> Option<String> {
    let names = names(symbols, inner)?;
    Some(format!(
        "no word inside an utterance begins with {names}, as hardly an utterance does; model.inner_vowels = false lets them"
    ))
}

/// The symbols of a class with spaces between them; `None` if there are none.
fn names(symbols: &[String], is_of: &[bool]) -> Option<String> {
    let of: Vec<&str> =
        symbols.iter().zip(is_of).filter(|(_, is_of)| **is_of).map(|(symbol, _)| &symbol[..]).collect();
    let more = if of.len() > NAMED { ", …" } else { "" };
    (!of.is_empty()).then(|| of[..of.len().min(NAMED)].join(" ") + more)
}

/// Symbols that a notice names.
const NAMED: usize = 60;

/// Hyphen-minus, hyphen, non-breaking hyphen, en dash, and the signs that stand for one in lists of affixes.
const HYPHENS: [char; 6] = ['-', '‐', '‑', '–', '+', '~'];
