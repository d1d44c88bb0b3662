//! Segmentations of sentences of a corpus in a separate file: gold (`corpus.gold`), or annotations to learn from (`corpus.annotated`).
//!
//! In: a file ([`SegmentedFile`]) and the corpus. Out: what the file says of those sentences of the corpus that it has. Sentences are found by their symbols,
//! wherever they stand.

use std::path::Path;

use anyhow::{Result, bail, ensure};
use grammaton::data::corpus::{Cleaning, Corpus, Normalise, Unit};
use rustc_hash::FxHashSet;

use super::text::{Gold, Source};
use crate::input::segmented_file::{self, Annotated, Read, Resolved, SegmentedFile};
use crate::job::PositionMarks;

/// Reads the gold at `path` for the corpus of `source`. Returns a notice about its lines as well.
///
/// # Errors
/// Those of reading, and a file without a sentence of the corpus.
pub fn read(path: &Path, source: &Source) -> Result<(Gold, String)> {
    let file = SegmentedFile::read(path, source.options(), &PositionMarks::default())?;
    let mut gold = Gold::default();
    let notice = each(&file, source, "scored", |sentence, read| {
        let known = gold.entry(sentence).or_default();
        read.analyses.iter().for_each(|ends| {
            if !known.contains(ends) {
                known.push(ends.clone());
            }
        });
    })?;
    Ok((gold, notice))
}

/// Reads the annotations at `path` for the corpus of `source`: of a position that has several the first one. Returns a notice about its lines as well.
///
/// # Errors
/// As for gold, and annotations without a boundary.
pub fn annotated(path: &Path, source: &Source, marks: &PositionMarks) -> Result<(Annotated, String)> {
    let file = SegmentedFile::read(path, source.options(), marks)?;
    let mut annotated = Annotated::default();
    let notice = each(&file, source, "learned from", |sentence, read| {
        segmented_file::add(&mut annotated, sentence, &read.known);
    })?;
    ensure!(
        segmented_file::teaches(&annotated),
        "{}: no line has a boundary, so that there is nothing to learn; put a space at each boundary, or a mark (corpus.boundary_mark)",
        path.display()
    );
    Ok((annotated, notice))
}

/// Hands each line of a file that is a sentence of the corpus to `each`, in the symbols of the corpus. Returns a notice about the others; these are `done`, as in
/// `scored`.
fn each(
    file: &SegmentedFile,
    source: &Source,
    done: &str,
    mut each: impl FnMut(Vec<u32>, &Read),
) -> Result<String> {
    let in_corpus = file.in_symbols(&source.end.symbols);
    let wanted: FxHashSet<Vec<u32>> = file.sentences().filter_map(&in_corpus).collect();
    let mut there: FxHashSet<Vec<u32>> = FxHashSet::default();
    source.blocks(|block| {
        there.extend(block.sentences.into_iter().filter(|sentence| wanted.contains(sentence)));
        Ok(())
    })?;
    let lines = file.resolved(|sentence| in_corpus(sentence).is_some_and(|it| there.contains(&it)));
    for Resolved { read, .. } in lines.iter().filter(|line| line.is_there) {
        each(in_corpus(&read.sentence).expect("a sentence of the corpus has its symbols"), read);
    }
    let (n, n_lines) = (lines.iter().filter(|line| line.is_there).count(), lines.len());
    let other = match lines.iter().find(|line| !line.is_there) {
        None => String::new(),
        Some(Resolved { number, read, .. }) => {
            let text = file.text(&read.sentence);
            let form = form(source, &text)?;
            format!("; no sentence is {}:{number}: `{text}`{form}", file.name)
        }
    };
    if n == 0 {
        bail!("{}: none of {n_lines} lines is a sentence of {}{other}", file.name, source.name());
    }
    Ok(format!("{}: {n} of {n_lines} lines are sentences of the corpus, which are {done}{other}", file.name))
}

/// What to do if a sentence is one of the corpus in another Unicode form.
fn form(source: &Source, sentence: &str) -> Result<&'static str> {
    let nfkc = Cleaning { normalise: Normalise::Nfkc, ..Cleaning::default() };
    let normal = |text: &str| nfkc.line(text, Unit::Char).into_owned();
    let text = |corpus: &Corpus, at: usize| -> String {
        corpus.sentences[at].iter().map(|&symbol| corpus.symbols[symbol as usize].as_str()).collect()
    };
    let (wanted, mut is_there) = (normal(sentence), false);
    source.blocks(|block| {
        is_there |= (0..block.sentences.len()).any(|at| normal(&text(&block, at)) == wanted);
        Ok(())
    })?;
    Ok(if is_there {
        ", which the corpus has in another Unicode form; set corpus.normalise = \"nfc\""
    } else {
        ""
    })
}
