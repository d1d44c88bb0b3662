//! Best analyses of sentences.

use crate::models::decode::{Decode, Decoded, Decoder, decode_marked};
use crate::models::dmv::nouns;
use crate::work::context::Context;
use crate::work::error::ComputeError;
use crate::work::heap::{flat, rows};

/// The analyses of every sentence of the shard.
pub fn run(context: &Context<'_>, with: &Decode) -> Result<Vec<Decoded>, ComputeError> {
    let (sentences, prepared) = (context.sentences()?, context.prepared());
    let expected = prepared.space().n_with_escapes();
    if with.weights.len() != expected {
        return Err(ComputeError::Weights { found: with.weights.len(), expected });
    }
    if with.decoders.contains(&Decoder::MbrArcs) && nouns::tags(&prepared.grammar).is_none() {
        return Err(ComputeError::NotDependencies);
    }
    let sentences = sentences.iter().map(|sentence| (&sentence.tokens[..], &sentence.marks));
    Ok(decode_marked(&prepared, with, sentences)?)
}

/// Bytes of an answer on the heap.
pub fn size(decoded: &[Decoded]) -> usize {
    rows(decoded, |Decoded { segmentations, trees, spans, .. }| {
        rows(segmentations, |ends| flat(ends)) + rows(trees, String::len) + flat(spans)
    })
}
