//! Gold of a corpus in a file of its own (`corpus.gold`).
//!
//! In: a file of segmented sentences, or of words with their analyses ([`shared::data::eval::alternatives`]), and the corpus. Out: the analyses of those sentences of the
//! corpus that the file has; the others are not scored. Sentences are found by their symbols, wherever they stand. Of the two ways to read the file the one counts in which
//! more of its lines are sentences of the corpus.

use std::path::Path;

use anyhow::{Result, bail};
use rustc_hash::{FxHashMap, FxHashSet};
use shared::data::corpus::{Cleaning, Corpus, Layout, Marks, Normalise, Options, Unit};
use shared::data::eval::alternatives::with_analyses;

use super::text::{Gold, Source};
use crate::input;

/// Reads the file at `path` for the corpus of `source`. Returns a notice about its lines as well.
///
/// # Errors
/// Those of reading, and a file without a sentence of the corpus.
pub fn read(path: &Path, source: &Source) -> Result<(Gold, String)> {
    let layout = Layout::default();
    let options = Options { layout, ..source.options().clone() };
    // Commas and hyphens are parts of analyses.
    let with_marks = Cleaning { punctuation: Marks::Keep, ..options.cleaning.clone() };
    let (of_words, _) = input::corpus(path, &Options { cleaning: with_marks, ..options.clone() })?;
    let readings = [Some(input::corpus(path, &options)?.0), with_analyses(&of_words)];
    let sentences = sentences_among(source, readings.iter().flatten())?;
    let n_found = |corpus: &&Corpus| {
        (0..corpus.sentences.len()).filter(|&at| sentences.contains(&names(corpus, at))).count()
    };
    // Of equals the last one is taken, so the plain reading stands last.
    let gold = readings.iter().rev().flatten().max_by_key(n_found).expect("there is the plain reading");
    let ids: FxHashMap<&str, u32> = source.end.symbols.iter().map(String::as_str).zip(0..).collect();
    let mut found = Gold::default();
    let mut others = Vec::new();
    for at in 0..gold.sentences.len() {
        let symbols = names(gold, at);
        if !sentences.contains(&symbols) {
            others.push(at);
            continue;
        }
        let whole = || vec![vec![symbols.len() as u32]];
        let analyses = gold.gold.as_ref().map_or_else(whole, |gold| gold[at].clone());
        let sentence = symbols.iter().filter_map(|name| ids.get(name.as_str()).copied()).collect();
        let known = found.entry(sentence).or_default();
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
            names(gold, at).concat(),
            form(source, gold, at)?
        ),
    };
    if n == 0 {
        bail!("{}: none of {n_lines} lines is a sentence of {}{other}", path.display(), source.name());
    }
    let notice = format!(
        "{}: {n} of {n_lines} lines are sentences of the corpus, which are scored{other}",
        path.display()
    );
    Ok((found, notice))
}

/// The symbols of a sentence.
fn names(corpus: &Corpus, at: usize) -> Vec<String> {
    corpus.sentences[at].iter().map(|&symbol| corpus.symbols[symbol as usize].clone()).collect()
}

/// The sentences of these files that the corpus has.
fn sentences_among<'c>(
    source: &Source,
    files: impl Iterator<Item = &'c Corpus>,
) -> Result<FxHashSet<Vec<String>>> {
    let wanted: FxHashSet<Vec<String>> =
        files.flat_map(|file| (0..file.sentences.len()).map(move |at| names(file, at))).collect();
    let mut found = FxHashSet::default();
    source.blocks(|block| {
        found.extend(
            (0..block.sentences.len()).map(|at| names(&block, at)).filter(|names| wanted.contains(names)),
        );
        Ok(())
    })?;
    Ok(found)
}

/// What to do if a sentence is one of the corpus in another Unicode form.
fn form(source: &Source, gold: &Corpus, at: usize) -> Result<&'static str> {
    let nfkc = Cleaning { normalise: Normalise::Nfkc, ..Cleaning::default() };
    let normal = |corpus: &Corpus, at: usize| nfkc.line(&names(corpus, at).concat(), Unit::Char).into_owned();
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
