//! Whether the probabilities of boundaries of a result are right, by a gold segmentation.
//!
//! In: the text of a folder of results, and a file of segmented sentences of it, or of words with their analyses. Out: the [`Reliability`] of the
//! probabilities, over all positions of all sentences that the file has. Of several analyses of a word the one that the probabilities are for counts.

use std::path::Path;

use anyhow::{Result, bail};
use grammaton::data::eval::reliability::Reliability;
use rustc_hash::FxHashMap;

use crate::input::segmented_file::SegmentedFile;
use crate::job::PositionMarks;
use crate::segmented::Segmented;

/// The reliability of the boundaries of `text`, and the number of its sentences in the file `gold`.
///
/// # Errors
/// Those of reading, and a file without a sentence of the text.
pub fn calibration(text: &Segmented, gold: &Path) -> Result<(Reliability, usize)> {
    let file = SegmentedFile::read(gold, &text.options, &PositionMarks::default())?;
    let in_symbols = file.in_symbols(&text.corpus.symbols);
    let in_text = |sentence: &[u32]| in_symbols(sentence).filter(|symbols| text.first(symbols).is_some());
    let mut known: FxHashMap<Vec<u32>, Vec<Vec<u32>>> = FxHashMap::default();
    for line in file.resolved(|sentence| in_text(sentence).is_some()) {
        if let Some(symbols) = in_text(&line.read.sentence) {
            known.entry(symbols).or_default().extend(line.read.analyses.iter().cloned());
        }
    }
    let (mut found, mut n_sentences) = (Reliability::default(), 0);
    for sentence in &text.sentences {
        let Some(analyses) = known.get(text.symbols(sentence)) else { continue };
        let boundaries = |ends: &Vec<u32>| -> Vec<bool> {
            (1..=sentence.probabilities.len() as u32).map(|at| ends.binary_search(&at).is_ok()).collect()
        };
        let agreement = |boundaries: &Vec<bool>| -> f64 {
            let said = |(&is_there, &p): (&bool, &f64)| if is_there { p } else { 1.0 - p };
            boundaries.iter().zip(&sentence.probabilities).map(said).sum()
        };
        let best = analyses.iter().map(boundaries).max_by(|a, b| agreement(a).total_cmp(&agreement(b)));
        let Some(best) = best else { continue };
        n_sentences += 1;
        best.into_iter().zip(&sentence.probabilities).for_each(|(is_there, &p)| found.add(p, is_there));
    }
    if n_sentences == 0 {
        bail!(
            "{}: no line is a sentence of the results with two symbols or more; give segmented lines of the same text",
            file.name
        );
    }
    Ok((found, n_sentences))
}
