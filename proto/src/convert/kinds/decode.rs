//! Best analyses of sentences.

use grammaton::grammar::{Grammar, SymbolId};
use grammaton::models::decode::{Decode, Decoded, Decoder};

use crate::convert::checks::{self, Trees, nonterminals, whole};
use crate::convert::items::{Items, sentences};
use crate::convert::sizes::{ENVELOPE, item_lengths, segmentation, sum, tree};
use crate::convert::{Wire, WireError, ends_from_wire, finite, numbers, ragged_to_wire, same_length};
use crate::v1;

impl Wire for Decode {
    type Message = v1::Decode;
    const NAME: &'static str = "decode";

    fn to_wire(&self) -> v1::Decode {
        let decoder = |decoder: &Decoder| match decoder {
            Decoder::Viterbi => v1::decode::Decoder::Viterbi as i32,
            Decoder::Mbr => v1::decode::Decoder::Mbr as i32,
            Decoder::MbrTree => v1::decode::Decoder::MbrTree as i32,
            Decoder::MbrArcs => v1::decode::Decoder::MbrArcs as i32,
        };
        v1::Decode {
            weights: Some(self.weights.to_wire()),
            segments: self.segments.iter().map(|symbol| symbol.0).collect(),
            decoders: self.decoders.iter().map(decoder).collect(),
            trees: self.trees,
            open: self.open,
        }
    }

    fn from_wire(message: v1::Decode) -> Result<Decode, WireError> {
        let weights = message.weights.ok_or(WireError::Missing { field: "decode.weights" })?;
        let decoder = |(at, &found): (usize, &i32)| match v1::decode::Decoder::try_from(found) {
            Ok(v1::decode::Decoder::Viterbi) => Ok(Decoder::Viterbi),
            Ok(v1::decode::Decoder::Mbr) => Ok(Decoder::Mbr),
            Ok(v1::decode::Decoder::MbrTree) => Ok(Decoder::MbrTree),
            Ok(v1::decode::Decoder::MbrArcs) => Ok(Decoder::MbrArcs),
            Ok(v1::decode::Decoder::Unspecified) | Err(_) => {
                let found = i64::from(found);
                Err(WireError::Range { field: "decode.decoders", at, found, start: 1, end: 5 })
            }
        };
        Ok(Decode {
            weights: Vec::from_wire(weights)?,
            segments: message.segments.into_iter().map(SymbolId).collect(),
            decoders: message.decoders.iter().enumerate().map(decoder).collect::<Result<_, _>>()?,
            trees: message.trees,
            open: message.open,
        })
    }
}

pub fn to_wire(sentences: &[Decoded]) -> v1::DecodedSentences {
    v1::DecodedSentences { sentences: sentences.iter().map(sentence_to_wire).collect() }
}

pub fn from_wire(message: v1::DecodedSentences) -> Result<Vec<Decoded>, WireError> {
    message.sentences.into_iter().map(sentence_from_wire).collect()
}

fn sentence_to_wire(decoded: &Decoded) -> v1::DecodedSentence {
    v1::DecodedSentence {
        log_z: decoded.log_z,
        segmentations: Some(ragged_to_wire(decoded.segmentations.iter().map(|ends| ends.iter().copied()))),
        trees: decoded.trees.clone(),
    }
}

fn sentence_from_wire(message: v1::DecodedSentence) -> Result<Decoded, WireError> {
    numbers("decoded.log_z", &[message.log_z], "of magnitude 1e100 at most, or -inf", |log_z| {
        finite(log_z) || log_z == f64::NEG_INFINITY
    })?;
    let segmentations = ends_from_wire("decoded.segmentations", message.segmentations)?;
    Ok(Decoded { log_z: message.log_z, segmentations, trees: message.trees })
}

pub fn check(task: &Items<'_>, decode: &Decode) -> Result<(), WireError> {
    let (grammar, lexicon) = (task.grammar, task.lexicon);

    let Decode { weights, segments, .. } = decode;
    same_length("decode.weights", weights.len(), lexicon.space(grammar).n_with_escapes())?;
    nonterminals("decode.segments", grammar, segments)
}

pub fn check_answer(task: &Items<'_>, with: &Decode, decoded: &[Decoded]) -> Result<(), WireError> {
    let n_items = task.shard.len();

    same_length("decoded.sentences", decoded.len(), n_items)?;
    let decoders = &with.decoders;
    let with_tree = |&&decoder: &&Decoder| with.trees && decoder.gives_trees();
    let n_trees = decoders.iter().filter(with_tree).count();
    let trees = Trees::new(task);
    for (sentence, decoded) in sentences(task.shard).iter().zip(decoded) {
        same_length("decoded.segmentations", decoded.segmentations.len(), decoders.len())?;
        same_length("decoded.trees", decoded.trees.len(), n_trees)?;
        whole("decoded.segmentations", &decoded.segmentations, sentence.tokens.len())?;
        let with_trees =
            decoders.iter().zip(&decoded.segmentations).filter(|(decoder, _)| with_tree(decoder));
        for (text, (decoder, ends)) in decoded.trees.iter().zip(with_trees) {
            let tokens = &sentence.tokens;
            let tree = match decoder {
                _ if decoded.log_z == f64::NEG_INFINITY => trees.read_flat(text, tokens)?,
                Decoder::MbrArcs => trees.read_dependencies(text, tokens)?,
                Decoder::Viterbi | Decoder::Mbr | Decoder::MbrTree => trees.read(text, tokens)?.0,
            };
            if decoded.log_z > f64::NEG_INFINITY {
                checks::segments("decoded.segmentations", task.grammar, &with.segments, &tree, ends)?;
            }
        }
    }
    Ok(())
}

pub fn largest_answer(task: &Items<'_>, decode: &Decode) -> u64 {
    sum(item_lengths(task).map(|length| decoded_sentence(task.grammar, decode, length)))
}

/// Upper bound on the bytes of a decoded sentence: one segmentation and one tree per decoder.
fn decoded_sentence(grammar: &Grammar, decode: &Decode, length: u64) -> u64 {
    let n_decoders = decode.decoders.len() as u64;
    let tree = if decode.trees { tree(grammar, length) } else { 0 };
    n_decoders.saturating_mul(segmentation(length).saturating_add(tree)).saturating_add(ENVELOPE)
}
