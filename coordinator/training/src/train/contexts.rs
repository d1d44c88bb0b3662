//! The sentences of a job by the symbols around their boundaries (`output.contexts`).
//!
//! In: the shares of the samples that have a boundary, of all sentences, or what was learned from others. Out: of each sentence the segmentation and its probabilities, and what was learned, for new text.

use anyhow::Result;
use grammaton::models::crf::Reading;
use grammaton::models::crf::contexts::Contexts;

use super::posterior::Posterior;
use super::text::Text;

/// Readings of all sentences of a text, in their order.
pub struct ByContexts {
    /// What reads them.
    pub contexts: Contexts,
    /// A boundary has at least this probability.
    pub threshold: f64,
    readings: Vec<Reading>,
}

impl ByContexts {
    /// Those of `text` by its samples.
    pub fn learn(text: &Text, posterior: &Posterior, threshold: f64) -> Result<ByContexts> {
        let mut sentences = Vec::with_capacity(text.n_sentences);
        text.blocks(|places, _, block| {
            for (place, symbols) in places.zip(&block.corpus.sentences) {
                let shares = posterior.probabilities(place, &[symbols.len() as u32]).boundaries;
                sentences.push((symbols.clone(), shares));
            }
            Ok(())
        })?;
        let contexts = Contexts::learn(sentences.iter().map(|(symbols, shares)| (&symbols[..], &shares[..])));
        ByContexts::read(text, contexts, threshold)
    }

    /// Those of `text` by these contexts.
    pub fn read(text: &Text, contexts: Contexts, threshold: f64) -> Result<ByContexts> {
        let mut readings = Vec::with_capacity(text.n_sentences);
        text.blocks(|_, _, block| {
            readings.extend(block.corpus.sentences.iter().map(|symbols| contexts.read(symbols, threshold)));
            Ok(())
        })?;
        Ok(ByContexts { contexts, threshold, readings })
    }

    /// A sentence.
    pub fn reading(&self, sentence: usize) -> &Reading {
        &self.readings[sentence]
    }
}
