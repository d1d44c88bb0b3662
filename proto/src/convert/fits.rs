//! What values from the wire say about each other: tokens about the grammar, an answer about its task.
//!
//! In: values that are valid by themselves. Out: nothing, or a [`WireError`]. Does not check what only
//! inference can: whether sentences have derivations, or whether counts are right.
//!
//! And, before a payload is taken, how large it can be at most ([`largest_answer`], [`largest_lease`]), so that
//! nobody makes a peer set aside a gigabyte for ten numbers.

use shared::grammar::{Grammar, SymbolId};
use shared::shard::{Lexicon, ParamId, Shard};
use shared::task::{Answer, Candidates, Decode, Decoder, Task, Work};

use super::{WireError, in_range, same_length};
use crate::v1;

/// Whether there is a stick for each nonterminal of `grammar` that rewrites to strings, of strings of its terminals.
pub fn lexicon(grammar: &Grammar, lexicon: &Lexicon) -> Result<(), WireError> {
    same_length("lexicon.sticks", lexicon.sticks.len(), grammar.with_strings().count())?;
    for (at, (stick, symbol)) in lexicon.sticks.iter().zip(grammar.with_strings()).enumerate() {
        if stick.symbol != symbol {
            let found = i64::from(stick.symbol.0);
            let (start, end) = (u64::from(symbol.0), u64::from(symbol.0) + 1);
            return Err(WireError::Range { field: "lexicon.sticks", at, found, start, end });
        }
        terminals("lexicon.strings", grammar, stick.strings.iter().flatten())?;
    }
    Ok(())
}

/// Whether the items are made of terminals of `grammar`, or are strings of `lexicon`.
pub fn shard(grammar: &Grammar, lexicon: &Lexicon, shard: &Shard) -> Result<(), WireError> {
    match shard {
        Shard::Sentences(sentences) => {
            terminals("shard.tokens", grammar, sentences.iter().flat_map(|sentence| &sentence.tokens))
        }
        Shard::Strings(params) if params.is_empty() => Ok(()),
        Shard::Strings(params) => {
            let strings = 1 + grammar.rules.len() as u64..lexicon.n_params(grammar) as u64;
            in_range("shard.strings", [params.start, params.end - 1], strings)
        }
    }
}

/// Whether there is a weight for each parameter and for each stick's escape, and the segments are nonterminals of `grammar`.
pub fn decode(grammar: &Grammar, lexicon: &Lexicon, decode: &Decode) -> Result<(), WireError> {
    same_length("decode.weights", decode.weights.len(), lexicon.n_params(grammar) + lexicon.sticks.len())?;
    let segments = decode.segments.iter().map(|symbol| symbol.0);
    in_range("decode.segments", segments, 0..u64::from(grammar.n_nonterminals))
}

/// Whether `answer` can be one to `task`: its kind, its lengths, its indexes.
pub fn answer(task: &Task, answer: &Answer) -> Result<(), WireError> {
    let (grammar, lexicon) = (&*task.grammar.value, &*task.lexicon.value);
    let (n_items, n_params) = (task.shard.value.len(), lexicon.n_params(grammar) as u64);
    match (&task.work, answer) {
        (Work::Candidates { .. }, Answer::Candidates(Candidates { found, unparsable })) => {
            in_range("candidates.unparsable", unparsable.iter().copied(), 0..n_items as u64)?;
            for (at, candidate) in found.iter().enumerate() {
                adapted("candidates.symbols", at, grammar, candidate.symbol)?;
                terminals("candidates.strings", grammar, &candidate.string)?;
            }
            Ok(())
        }
        (Work::Cover, Answer::Missing(missing)) => {
            for (at, (symbol, string)) in missing.iter().enumerate() {
                adapted("missing.symbols", at, grammar, *symbol)?;
                terminals("missing.strings", grammar, string)?;
            }
            Ok(())
        }
        (Work::Index, Answer::Index(index)) => {
            in_range("index.params", index.params.iter().map(|param| param.0), 0..n_params)?;
            in_range("index.unparsable", index.unparsable.iter().copied(), 0..n_items as u64)
        }
        (Work::Expect { weights, losses }, Answer::Expectation(expectation)) => {
            in_range("expectation.missing", expectation.missing.iter().map(|param| param.0), 0..n_params)?;
            if !expectation.missing.is_empty() {
                return Ok(()); // the counts mean nothing
            }
            same_length("expectation.counts", expectation.counts.len(), weights.len())?;
            let n_losses = if *losses { weights.len() } else { 0 };
            same_length("expectation.losses", expectation.losses.len(), n_losses)?;
            let n_log_z = if matches!(*task.shard.value, Shard::Strings(_)) { n_items } else { 0 };
            same_length("expectation.log_z_items", expectation.log_z_items.len(), n_log_z)
        }
        (Work::Decode(with), Answer::Decoded(decoded)) => {
            same_length("decoded.sentences", decoded.len(), n_items)?;
            let Shard::Sentences(sentences) = &*task.shard.value else { return Ok(()) };
            let decoders = &with.value.decoders;
            let with_tree = |&&decoder: &&Decoder| with.value.trees && decoder != Decoder::Mbr;
            let n_trees = decoders.iter().filter(with_tree).count();
            for (sentence, decoded) in sentences.iter().zip(decoded) {
                same_length("decoded.segmentations", decoded.segmentations.len(), decoders.len())?;
                same_length("decoded.trees", decoded.trees.len(), n_trees)?;
                let ends = decoded.segmentations.iter().map(|ends| ends.last().copied().unwrap_or(0));
                let length = sentence.tokens.len() as u64;
                in_range("decoded.segmentations", ends, length..length + 1)?;
            }
            Ok(())
        }
        (work, answer) => Err(WireError::Kind { found: answer_kind(answer), expected: work_kind(work) }),
    }
}

/// Bytes of tags and lengths around the fields of a message.
const ENVELOPE: u64 = 128;
/// Bytes of an index or a length, at most.
const VARINT: u64 = 5;
/// Bytes of a number.
const DOUBLE: u64 = 8;
/// Bytes of an exponent, at most.
const EXPONENT: u64 = 10;

/// The most bytes that the payload of a lease can have.
pub fn largest_lease(work: v1::lease_head::Work, grammar: &Grammar, lexicon: &Lexicon) -> u64 {
    match work {
        v1::lease_head::Work::Expect => ENVELOPE + lexicon.n_params(grammar) as u64 * (DOUBLE + EXPONENT),
        _ => 0,
    }
}

/// The most bytes that an answer to `task` can have.
pub fn largest_answer(task: &Task) -> u64 {
    let (grammar, lexicon) = (&*task.grammar.value, &*task.lexicon.value);
    let (n_items, n_params) = (task.shard.value.len() as u64, lexicon.n_params(grammar) as u64);
    let body = match &task.work {
        Work::Candidates { max_length } => {
            let of_item = |length| labelled_substrings(grammar, length, u64::from(*max_length), DOUBLE);
            sum(item_lengths(task).map(of_item)).saturating_add(n_items * VARINT)
        }
        Work::Cover => sum(item_lengths(task).map(|length| labelled_substrings(grammar, length, length, 0))),
        Work::Index => (n_params + n_items) * VARINT,
        Work::Expect { weights, losses } => {
            let n_numbers = weights.len() as u64 * (1 + u64::from(*losses)) + n_items;
            n_numbers * DOUBLE + n_params * VARINT
        }
        Work::Decode(decode) => {
            sum(item_lengths(task).map(|length| decoded_sentence(grammar, &decode.value, length)))
        }
    };
    body.saturating_add(ENVELOPE)
}

fn sum(sizes: impl Iterator<Item = u64>) -> u64 {
    sizes.fold(0, u64::saturating_add)
}

fn item_lengths(task: &Task) -> impl Iterator<Item = u64> {
    let (sentences, strings) = match &*task.shard.value {
        Shard::Sentences(sentences) => (&sentences[..], 0..0),
        Shard::Strings(params) => (&[][..], params.clone()),
    };
    let string = |param| task.lexicon.value.string(&task.grammar.value, ParamId(param));
    let strings = strings.filter_map(string).map(|(_, string)| string.len() as u64);
    sentences.iter().map(|sentence| sentence.tokens.len() as u64).chain(strings)
}

/// All substrings of an item of up to `max_length`, once for every adapted nonterminal, and `extra` bytes each.
fn labelled_substrings(grammar: &Grammar, length: u64, max_length: u64, extra: u64) -> u64 {
    let n_labels = grammar.adaptors.iter().flatten().count() as u64;
    let of_length = |span: u64| (length - span + 1) * ((2 + span) * VARINT + extra);
    sum((1..=length.min(max_length)).map(of_length)).saturating_mul(n_labels)
}

/// Segmentations of a sentence that is cut everywhere, and trees that go through every nonterminal at each node.
fn decoded_sentence(grammar: &Grammar, decode: &Decode, length: u64) -> u64 {
    let n_decoders = decode.decoders.len() as u64;
    let longest = grammar.symbols.iter().map(|name| name.len() as u64).max().unwrap_or(0);
    // A tree branches less often than it has leaves, and without cycles passes each nonterminal once between.
    let n_nodes = 2 * length * (1 + u64::from(grammar.n_nonterminals));
    // Every letter escaped, two brackets and a space.
    let tree = if decode.trees { ENVELOPE + n_nodes.saturating_mul(2 * longest + 3) } else { 0 };
    let segmentation = (1 + length) * VARINT;
    n_decoders.saturating_mul(segmentation.saturating_add(tree)).saturating_add(ENVELOPE)
}

fn answer_kind(answer: &Answer) -> &'static str {
    match answer {
        Answer::Candidates(_) => "candidates",
        Answer::Missing(_) => "missing strings",
        Answer::Index(_) => "an index",
        Answer::Expectation(_) => "an expectation",
        Answer::Decoded(_) => "decoded sentences",
    }
}

fn work_kind(work: &Work) -> &'static str {
    match work {
        Work::Candidates { .. } => "candidates",
        Work::Cover => "missing strings",
        Work::Index => "an index",
        Work::Expect { .. } => "an expectation",
        Work::Decode(_) => "decoded sentences",
    }
}

fn adapted(field: &'static str, at: usize, grammar: &Grammar, symbol: SymbolId) -> Result<(), WireError> {
    if grammar.is_adapted(symbol) {
        return Ok(());
    }
    let (found, end) = (i64::from(symbol.0), u64::from(grammar.n_nonterminals));
    Err(WireError::Range { field, at, found, start: 0, end })
}

fn terminals<'a>(
    field: &'static str,
    grammar: &Grammar,
    symbols: impl IntoIterator<Item = &'a SymbolId>,
) -> Result<(), WireError> {
    let terminals = u64::from(grammar.n_nonterminals)..grammar.symbols.len() as u64;
    in_range(field, symbols.into_iter().map(|symbol| symbol.0), terminals)
}
