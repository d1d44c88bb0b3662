//! What a conditional random field learns from annotated sentences (`corpus.annotated`), above what the models find.
//!
//! In: the segmentation of every sentence by the models, and the samples of their chains, if there are chains. Out: of every sentence the segmentation and its
//! probabilities; an annotated one is as it is annotated.

use anyhow::Result;
use grammaton::models::crf::statistics::Statistics;
use grammaton::models::crf::{Crf, Evidence, Reading};

use super::posterior::{Posterior, Probabilities};
use super::text::{Gold, Text};

/// Readings of all sentences of a text, in their order.
pub struct Learned(Vec<Reading>);

/// A sentence as the models find it: its symbols, shares of the boundaries, ends of the segments.
type Found = (Vec<u32>, Vec<f64>, Vec<u32>);

impl Learned {
    /// Learns from the sentences of `text` that are `annotated`, with their first analysis. `segmentations`: by the models; where there are no samples,
    /// they are all that is known.
    pub fn of(
        text: &Text,
        annotated: &Gold,
        segmentations: &[Vec<u32>],
        posterior: Option<&Posterior>,
    ) -> Result<Learned> {
        let mut found: Vec<Found> = Vec::with_capacity(text.n_sentences);
        text.blocks(|sentences, _, block| {
            for (place, symbols) in sentences.zip(&block.corpus.sentences) {
                let ends = &segmentations[place];
                let shares = match posterior {
                    Some(posterior) => posterior.probabilities(place, ends).boundaries,
                    None => certain(ends),
                };
                found.push((symbols.clone(), shares, ends.clone()));
            }
            Ok(())
        })?;
        let evidence = |at: usize| {
            let (symbols, shares, ends) = &found[at];
            Evidence { symbols, shares, ends }
        };
        let mut known: Vec<(&[u32], Evidence<'_>, Vec<u32>)> = Vec::new();
        for (at, (symbols, ..)) in found.iter().enumerate() {
            known.extend(analysis(annotated, symbols).map(|ends| (&symbols[..], evidence(at), ends.clone())));
        }
        // A sentence that occurs often is annotated once.
        known.sort_by_key(|(symbols, ..)| *symbols);
        known.dedup_by_key(|(symbols, ..)| *symbols);
        let known: Vec<(Evidence<'_>, Vec<u32>)> =
            known.into_iter().map(|(_, evidence, ends)| (evidence, ends)).collect();
        let crf = Crf::learn(Statistics::of(found.iter().map(|(symbols, ..)| &symbols[..])), &known);
        let reading = |at: usize| match analysis(annotated, &found[at].0) {
            Some(ends) => {
                Reading { probabilities: certain(ends), segments: vec![1.0; ends.len()], ends: ends.clone() }
            }
            None => crf.read(&evidence(at)),
        };
        Ok(Learned((0..found.len()).map(reading).collect()))
    }

    /// Ends of the segments of a sentence.
    pub fn ends(&self, sentence: usize) -> &[u32] {
        &self.0[sentence].ends
    }

    /// Probabilities of a sentence.
    pub fn probabilities(&self, sentence: usize) -> Probabilities {
        let Reading { probabilities, segments, .. } = &self.0[sentence];
        Probabilities { boundaries: probabilities.clone(), segments: segments.clone() }
    }
}

/// The analysis of a sentence that is learned, if it is annotated.
pub fn analysis<'a>(annotated: &'a Gold, symbols: &[u32]) -> Option<&'a Vec<u32>> {
    annotated.get(symbols).and_then(|analyses| analyses.first())
}

/// Probability 1 of the boundaries of a segmentation, and 0 of others.
fn certain(ends: &[u32]) -> Vec<f64> {
    let n = ends.last().copied().unwrap_or_default();
    (1..n).map(|at| f64::from(u8::from(ends.binary_search(&at).is_ok()))).collect()
}
