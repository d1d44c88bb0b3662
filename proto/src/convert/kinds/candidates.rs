//! Candidate strings of sentences.

use shared::grammar::SymbolId;
use shared::work::task::Candidates;

use crate::convert::checks::{Items, adapted, terminals};
use crate::convert::sizes::{DOUBLE, VARINT, item_lengths, labelled_substrings, sum};
use crate::convert::{
    NON_NEGATIVE, WireError, ascending, in_range, non_negative, numbers, same_length, strings_to_wire,
    symbol_strings,
};
use crate::v1;

pub fn to_wire(candidates: &Candidates) -> v1::Candidates {
    let Candidates { symbols, strings, expected, unparsable } = candidates;
    v1::Candidates {
        symbols: symbols.iter().map(|symbol| symbol.0).collect(),
        strings: Some(strings_to_wire(strings.iter())),
        expected: expected.clone(),
        unparsable: unparsable.clone(),
    }
}

pub fn from_wire(message: v1::Candidates) -> Result<Candidates, WireError> {
    let v1::Candidates { symbols, strings, expected, unparsable } = message;
    let strings = symbol_strings("candidates.strings", strings)?;
    same_length("candidates.symbols", symbols.len(), strings.len())?;
    same_length("candidates.expected", expected.len(), strings.len())?;
    numbers("candidates.expected", &expected, NON_NEGATIVE, non_negative)?;
    ascending("candidates.unparsable", &unparsable)?;
    let symbols = symbols.into_iter().map(SymbolId).collect();
    Ok(Candidates { symbols, strings, expected, unparsable })
}

pub fn check_answer(task: &Items<'_>, found: &Candidates) -> Result<(), WireError> {
    let grammar = task.grammar;
    let n_items = task.shard.len() as u64;
    in_range("candidates.unparsable", found.unparsable.iter().copied(), 0..n_items)?;
    for (at, (symbol, string, _)) in found.iter().enumerate() {
        adapted("candidates.symbols", at, grammar, symbol)?;
        terminals("candidates.strings", grammar, string)?;
    }
    Ok(())
}

pub fn largest_answer(task: &Items<'_>, max_length: u32) -> u64 {
    let of_item = |length| labelled_substrings(task.grammar, length, u64::from(max_length), DOUBLE);
    sum(item_lengths(task).map(of_item)).saturating_add(task.shard.len() as u64 * VARINT)
}
