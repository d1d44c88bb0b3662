//! What a conditional random field learns from annotated sentences (`corpus.annotated`), above what the models find.
//!
//! In: the segmentation of every sentence by the models, and the probabilities of boundaries. Out: of every sentence the segmentation and its probabilities; of an
//! annotated one what is known stays.

use anyhow::Result;
use grammaton::models::crf::statistics::Statistics;
use grammaton::models::crf::words::Words;
use grammaton::models::crf::{Crf, Evidence, Known, Reading};

use super::posterior::Probabilities;
use super::text::Text;
use crate::input::segmented_file::Annotated;

/// A sentence as the models find it: its symbols, shares of the boundaries, ends of the segments.
pub type Found = (Vec<u32>, Vec<f64>, Vec<u32>);

/// The sentences of a text as the models find them, in their order.
pub struct Sentences(Vec<Found>);

/// Readings of all sentences of a text, in their order.
pub struct Learned {
    found: Sentences,
    /// The field that reads them.
    pub crf: Crf,
    readings: Vec<Reading>,
}

impl Sentences {
    /// Those of `text`, each with shares of its boundaries and ends of its segments by the models.
    pub fn of(text: &Text, of_sentence: impl Fn(usize) -> (Vec<f64>, Vec<u32>)) -> Result<Sentences> {
        let mut found = Vec::with_capacity(text.n_sentences);
        text.blocks(|sentences, _, block| {
            for (place, symbols) in sentences.zip(&block.corpus.sentences) {
                let (shares, ends) = of_sentence(place);
                found.push((symbols.clone(), shares, ends));
            }
            Ok(())
        })?;
        Ok(Sentences(found))
    }

    /// Those of a result that is read again.
    pub fn again(found: Vec<Found>) -> Sentences {
        Sentences(found)
    }

    /// The field that learns from the sentences that are `annotated`.
    pub fn field(&self, annotated: &Annotated) -> Crf {
        let known = (self.0.iter()).filter_map(|found| Some((found, annotated.get(&found.0)?.clone())));
        let mut known: Vec<(&Found, Known)> = known.collect();
        // A sentence that occurs often is annotated once.
        known.sort_by_key(|((symbols, ..), _)| symbols);
        known.dedup_by_key(|((symbols, ..), _)| symbols);
        let known: Vec<(Evidence<'_>, Known)> =
            known.into_iter().map(|(found, known)| (evidence(found), known)).collect();
        let statistics = Statistics::of(self.0.iter().map(|(symbols, ..)| &symbols[..]));
        let words = Words::found(self.0.iter().map(|(symbols, _, ends)| (&symbols[..], &ends[..])));
        Crf::learn(statistics, words, &known)
    }

    /// Each sentence as the field reads it, in agreement with what is annotated.
    pub fn learned(self, annotated: &Annotated) -> Learned {
        let crf = self.field(annotated);
        let reading = |found: &Found| match annotated.get(&found.0) {
            Some(known) => crf.read_known(&evidence(found), known),
            None => crf.read(&evidence(found)),
        };
        let readings = self.0.iter().map(reading).collect();
        Learned { found: self, crf, readings }
    }
}

fn evidence((symbols, shares, ends): &Found) -> Evidence<'_> {
    Evidence { symbols, shares, ends }
}

impl Learned {
    /// Ends of the segments of a sentence.
    pub fn ends(&self, sentence: usize) -> &[u32] {
        &self.readings[sentence].ends
    }

    /// Probabilities of a sentence.
    pub fn probabilities(&self, sentence: usize) -> Probabilities {
        self.readings[sentence].posterior()
    }

    /// What the models found in a sentence.
    pub fn evidence(&self, sentence: usize) -> Evidence<'_> {
        evidence(&self.found.0[sentence])
    }
}
