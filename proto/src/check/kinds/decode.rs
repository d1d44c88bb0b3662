//! Best analyses of sentences.

use grammaton::grammar::Grammar;
use grammaton::models::decode::{Decode, Decoded, Decoder};
use grammaton::models::segments::Span;

use crate::check::items::{Items, sentences};
use crate::check::sizes::{DOUBLE, ENVELOPE, VARINT, item_lengths, segmentation, sum, tree};
use crate::check::values::{self, Trees, nonterminals, whole};
use crate::check::{self, Invalid, ascending, finite, in_range, numbers, same_length};

pub fn check(task: &Items<'_>, decode: &Decode) -> Result<(), Invalid> {
    let (grammar, lexicon) = (task.grammar, task.lexicon);

    let Decode { weights, segments, .. } = decode;
    check::weights("decode.weights", weights)?;
    same_length("decode.weights", weights.len(), lexicon.space(grammar).n_with_escapes())?;
    nonterminals("decode.segments", grammar, segments)
}

pub fn check_answer(task: &Items<'_>, with: &Decode, decoded: &[Decoded]) -> Result<(), Invalid> {
    let n_items = task.shard.len();

    same_length("decoded.sentences", decoded.len(), n_items)?;
    let decoders = &with.decoders;
    let with_tree = |&&decoder: &&Decoder| with.trees && decoder.gives_trees();
    let n_trees = decoders.iter().filter(with_tree).count();
    let trees = Trees::new(task);
    for (sentence, decoded) in sentences(task.shard).iter().zip(decoded) {
        numbers("decoded.log_z", &[decoded.log_z], "of magnitude 1e100 at most, or -inf", |log_z| {
            finite(log_z) || log_z == f64::NEG_INFINITY
        })?;
        same_length("decoded.segmentations", decoded.segmentations.len(), decoders.len())?;
        same_length("decoded.trees", decoded.trees.len(), n_trees)?;
        whole("decoded.segmentations", &decoded.segmentations, sentence.tokens.len())?;
        let has_spans = with.spans && decoded.log_z > f64::NEG_INFINITY;
        spans(if has_spans { &decoded.spans } else { &[] }, sentence.tokens.len())?;
        same_length("decoded.spans", if has_spans { 0 } else { decoded.spans.len() }, 0)?;
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
                values::segments("decoded.segmentations", task.grammar, &with.segments, &tree, ends)?;
            }
        }
    }
    Ok(())
}

/// Checks that spans lie within a sentence, and that each symbol is on one segment at most.
fn spans(spans: &[Span], length: usize) -> Result<(), Invalid> {
    ascending("decoded.spans", spans.iter().map(|&(start, end, _)| (start, end)))?;
    let mut on_symbol = vec![0.0; length + 1];
    for &(start, end, probability) in spans {
        in_range("decoded.spans", [start], 0..length as u64)?;
        in_range("decoded.spans", [end], u64::from(start) + 1..length as u64 + 1)?;
        numbers("decoded.spans", &[probability], PROBABILITY, |number| number > 0.0 && number < MOST)?;
        on_symbol[start as usize] += probability;
        on_symbol[end as usize] -= probability;
    }
    let mut sum = 0.0;
    on_symbol.iter_mut().for_each(|change| {
        sum += *change;
        *change = sum;
    });
    numbers("decoded.spans", &on_symbol, PROBABILITY, |number| number < MOST)
}

const PROBABILITY: &str = "that is a probability";
/// The highest probability, with the rounding of sums.
const MOST: f64 = 1.0 + 1e-6;

pub fn largest_answer(task: &Items<'_>, decode: &Decode) -> u64 {
    sum(item_lengths(task).map(|length| decoded_sentence(task.grammar, decode, length)))
}

/// Upper bound on the bytes of a decoded sentence: one segmentation and one tree per decoder, and all spans.
fn decoded_sentence(grammar: &Grammar, decode: &Decode, length: u64) -> u64 {
    let n_decoders = decode.decoders.len() as u64;
    let tree = if decode.trees { tree(grammar, length) } else { 0 };
    let n_spans = if decode.spans { length.saturating_mul(length + 1) / 2 } else { 0 };
    let spans = n_spans.saturating_mul(2 * VARINT + DOUBLE);
    let of_decoders = n_decoders.saturating_mul(segmentation(length).saturating_add(tree));
    of_decoders.saturating_add(spans).saturating_add(ENVELOPE)
}
