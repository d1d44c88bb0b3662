//! Segmentations of sentences of a corpus in a separate file: gold (`corpus.gold`), or annotations to learn from (`corpus.annotated`).
//!
//! In: a file of segmented sentences, or of words with their analyses ([`grammaton::data::eval::alternatives`]), and the corpus. Out: the analyses of those sentences of the
//! corpus that the file has. Sentences are found by their symbols, wherever they stand. Of the two ways to read the file the one counts in which
//! more of its lines are sentences of the corpus.

use std::path::Path;

use anyhow::{Result, bail};
use grammaton::data::corpus::{Cleaning, Corpus, Normalise, Unit};
use rustc_hash::{FxHashMap, FxHashSet};

use super::text::{Gold, Source};
use crate::input;

/// Reads the file at `path` for the corpus of `source`. Returns a notice about its lines as well, which says what is done with them, as in `scored`.
///
/// # Errors
/// Those of reading, and a file without a sentence of the corpus.
pub fn read(path: &Path, source: &Source, done: &str) -> Result<(Gold, String)> {
    let readings = input::segmentations(path, source.options())?;
    let ids: FxHashMap<&str, u32> = source.end.symbols.iter().map(String::as_str).zip(0..).collect();
    let read = |file| (file, in_symbols(file, &ids));
    let readings: Vec<(&Corpus, Vec<Option<Vec<u32>>>)> = readings.iter().map(read).collect();
    let wanted: FxHashSet<&Vec<u32>> =
        readings.iter().flat_map(|(_, sentences)| sentences).flatten().collect();
    let mut there: FxHashSet<Vec<u32>> = FxHashSet::default();
    source.blocks(|block| {
        there.extend(block.sentences.into_iter().filter(|sentence| wanted.contains(sentence)));
        Ok(())
    })?;
    let is_there = |sentence: &Option<Vec<u32>>| sentence.as_ref().is_some_and(|it| there.contains(it));
    let n_found = |(_, sentences): &&(&Corpus, Vec<Option<Vec<u32>>>)| {
        sentences.iter().filter(|sentence| is_there(sentence)).count()
    };
    // Of equals the last one is taken, so the plain reading stands last.
    let (gold, sentences) = readings.iter().rev().max_by_key(n_found).expect("there is the plain reading");
    let mut found = Gold::default();
    let mut others = Vec::new();
    for (at, sentence) in sentences.iter().enumerate() {
        let Some(sentence) = sentence.as_ref().filter(|it| there.contains(*it)) else {
            others.push(at);
            continue;
        };
        let whole = || vec![vec![sentence.len() as u32]];
        let analyses = gold.gold.as_ref().map_or_else(whole, |gold| gold[at].clone());
        let known = found.entry(sentence.clone()).or_default();
        analyses.into_iter().for_each(|ends| {
            if !known.contains(&ends) {
                known.push(ends);
            }
        });
    }
    let (n, n_lines) = (gold.sentences.len() - others.len(), gold.sentences.len());
    let other = match others.first() {
        None => String::new(),
        Some(&at) => format!(
            "; no sentence is {}:{}: `{}`{}",
            path.display(),
            gold.lines[at],
            text(gold, at),
            form(source, gold, at)?
        ),
    };
    if n == 0 {
        bail!("{}: none of {n_lines} lines is a sentence of {}{other}", path.display(), source.name());
    }
    let notice = format!(
        "{}: {n} of {n_lines} lines are sentences of the corpus, which are {done}{other}",
        path.display()
    );
    Ok((found, notice))
}

/// The sentences of a file in the symbols of the corpus; `None` where it lacks one.
fn in_symbols(file: &Corpus, ids: &FxHashMap<&str, u32>) -> Vec<Option<Vec<u32>>> {
    let known: Vec<Option<u32>> = file.symbols.iter().map(|name| ids.get(name.as_str()).copied()).collect();
    let sentence = |sentence: &Vec<u32>| sentence.iter().map(|&symbol| known[symbol as usize]).collect();
    file.sentences.iter().map(sentence).collect()
}

/// A sentence as text, without boundaries.
fn text(corpus: &Corpus, at: usize) -> String {
    corpus.sentences[at].iter().map(|&symbol| corpus.symbols[symbol as usize].as_str()).collect()
}

/// What to do if a sentence is one of the corpus in another Unicode form.
fn form(source: &Source, gold: &Corpus, at: usize) -> Result<&'static str> {
    let nfkc = Cleaning { normalise: Normalise::Nfkc, ..Cleaning::default() };
    let normal = |corpus: &Corpus, at: usize| nfkc.line(&text(corpus, at), Unit::Char).into_owned();
    let (wanted, mut is_there) = (normal(gold, at), false);
    source.blocks(|block| {
        is_there |= (0..block.sentences.len()).any(|at| normal(&block, at) == wanted);
        Ok(())
    })?;
    Ok(if is_there {
        ", which the corpus has in another Unicode form; set corpus.normalise = \"nfc\""
    } else {
        ""
    })
}
