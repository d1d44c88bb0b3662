//! Upper bounds on the encoded sizes of parts of an answer, in bytes.

use grammaton::data::Sentence;
use grammaton::grammar::{Grammar, ParamId};
use grammaton::work::shard::Shard;

use super::items::{Items, sentences};

/// Bytes of tags and lengths around the parts of a value.
pub const ENVELOPE: u64 = 128;
/// Bytes of an index or a length, at most.
pub const VARINT: u64 = 5;
/// Bytes of a number.
pub const DOUBLE: u64 = 8;
/// Bytes of a number in single precision.
pub const FLOAT: u64 = 4;
/// Bytes of a number of 64 bits, at most.
pub const LONG: u64 = 9;

pub fn sum(sizes: impl Iterator<Item = u64>) -> u64 {
    sizes.fold(0, u64::saturating_add)
}

/// Sum over all occurrences of sentences of `size` of the sentence's length.
pub fn of_occurrences(shard: &Shard, size: impl Fn(u64) -> u64) -> u64 {
    let of_sentence = |sentence: &Sentence| {
        size(sentence.tokens.len() as u64).saturating_mul(u64::from(sentence.multiplicity))
    };
    sum(sentences(shard).iter().map(of_sentence))
}

pub fn item_lengths(task: &Items<'_>) -> impl Iterator<Item = u64> {
    let (sentences, strings) = match task.shard {
        Shard::Sentences(sentences) => (&sentences[..], 0..0),
        Shard::Strings(params) => (&[][..], params.clone()),
        Shard::Trees { .. } => (&[][..], 0..0),
    };
    let string = |param| task.lexicon.string(task.grammar, ParamId(param));
    let strings = strings.filter_map(string).map(|(_, string)| string.len() as u64);
    sentences.iter().map(|sentence| sentence.tokens.len() as u64).chain(strings)
}

/// All substrings of an item of length at most `max_length`, once for every adapted nonterminal, with `extra` bytes each.
pub fn labelled_substrings(grammar: &Grammar, length: u64, max_length: u64, extra: u64) -> u64 {
    let n_labels = grammar.adaptors.iter().flatten().count() as u64;
    let of_length = |span: u64| (length - span + 1) * ((2 + span) * VARINT + extra);
    sum((1..=length.min(max_length)).map(of_length)).saturating_mul(n_labels)
}

/// The end positions of a sentence with a boundary after every token.
pub fn segmentation(length: u64) -> u64 {
    (1 + length) * VARINT
}

/// Largest number of nodes of a tree. A tree branches less often than it has leaves, and between two branchings it has
/// each nonterminal at most once, as grammars have no cycles.
pub fn n_nodes(grammar: &Grammar, length: u64) -> u64 {
    2 * length * (1 + u64::from(grammar.n_nonterminals))
}

/// The largest bracketed tree over a sentence of `length` tokens.
pub fn tree(grammar: &Grammar, length: u64) -> u64 {
    let longest = grammar.symbols.iter().map(|name| name.len() as u64).max().unwrap_or(0);
    // Every letter escaped, two brackets and a space.
    ENVELOPE + n_nodes(grammar, length).saturating_mul(2 * longest + 3)
}
