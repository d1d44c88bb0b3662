//! Decoding of sentences with a trained model, on the threads of the caller's pool.
//!
//! In: a model, and sentences as symbols. Out: segmentations or trees, a log-probability for each sentence. For commands and for programs that
//! hold a model in memory; training decodes its corpus on the fleet.

use anyhow::{Result, bail, ensure};
use grammaton::data::Sentence;
use grammaton::grammar::SymbolId;
use grammaton::models::Model;
use grammaton::models::decode::{Decode, Decoded, Decoder};
use grammaton::work::engine::Engine;
use grammaton::work::shard::Shard;
use grammaton::work::task::{Answer, Language, Named, Task, Work};
use rayon::prelude::*;

/// Number of sentences in a task.
const CHUNK: usize = 256;

/// A model prepared for decoding.
pub struct Decoding {
    engine: Engine,
    task: Task,
}

impl Decoding {
    /// Prepares a model. If `closed`, sentences are sequences of learned strings, as in training; otherwise adapted nonterminals may
    /// also generate new strings, at the cost of a new table.
    pub fn new(model: Model, decoder: Decoder, trees: bool, closed: bool) -> Decoding {
        let weights = model.decoding_weights();
        let decode =
            Decode { weights, segments: model.segments, decoders: vec![decoder], trees, open: !closed };
        let task = Task {
            language: Some(Language {
                grammar: Named::new(model.grammar),
                lexicon: Named::new(model.lexicon),
            }),
            shard: Named::new(Shard::Sentences(Vec::new())),
            work: Work::Decode(Named::new(decode)),
        };
        Decoding { engine: Engine::default(), task }
    }

    /// One answer per sentence, in order; `None` without an analysis.
    pub fn all(&self, sentences: &[Option<Vec<SymbolId>>]) -> Result<Vec<Option<Decoded>>> {
        let chunks: Vec<Vec<Option<Decoded>>> =
            sentences.par_chunks(CHUNK).map(|chunk| self.chunk(chunk)).collect::<Result<_>>()?;
        Ok(chunks.into_iter().flatten().collect())
    }

    fn chunk(&self, sentences: &[Option<Vec<SymbolId>>]) -> Result<Vec<Option<Decoded>>> {
        let known = sentences.iter().flatten();
        let items: Vec<Sentence> =
            known.map(|tokens| Sentence { tokens: tokens.clone(), multiplicity: 1 }).collect();
        let n_known = items.len();
        let shard = Named::new(Shard::Sentences(items));
        let Answer::Decoded(decoded) = self.engine.run(&Task { shard, ..self.task.clone() })? else {
            bail!("internal error: not a decoding; please report it")
        };
        ensure!(decoded.len() == n_known, "internal error: sentences were lost; please report it");
        let mut decoded = decoded.into_iter();
        let answer = |tokens: &Option<Vec<SymbolId>>| tokens.as_ref().and_then(|_| decoded.next());
        let analysed = |decoded: &Decoded| decoded.log_z > f64::NEG_INFINITY;
        Ok(sentences.iter().map(answer).map(|decoded| decoded.filter(analysed)).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::tests::small;

    fn segmentation(decoder: Decoder, sentence: &str, closed: bool) -> Option<Vec<u32>> {
        let model = small().of_grammar().clone();
        let letter = |letter: char| model.grammar.symbol(&letter.to_string()).unwrap();
        let tokens: Vec<SymbolId> = sentence.chars().map(letter).collect();
        let decoded = Decoding::new(model, decoder, true, closed).all(&[Some(tokens)]).unwrap().remove(0);
        decoded.map(|decoded| decoded.segmentations[0].clone())
    }

    #[test]
    fn learned_strings_are_preferred() {
        for decoder in [Decoder::Viterbi, Decoder::Mbr, Decoder::MbrTree] {
            assert_eq!(segmentation(decoder, "ababbbaa", true), Some(vec![2, 4, 7, 8]));
        }
    }

    #[test]
    fn sentence_that_needs_new_strings_gets_them() {
        assert_eq!(segmentation(Decoder::Viterbi, "abbb", true), None);
        let ends = segmentation(Decoder::Viterbi, "abbb", false).unwrap();
        assert_eq!(ends.last(), Some(&4));
    }
}
