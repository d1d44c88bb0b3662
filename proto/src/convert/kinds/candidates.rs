//! Candidate strings of sentences.

use grammaton::grammar::SymbolId;
use grammaton::limits::is_count;
use grammaton::work::task::{Candidates, Lengths, StringCounts};

use crate::convert::checks::{adapted, at_most, substrings, terminals, uses};
use crate::convert::items::Items;
use crate::convert::sizes::{DOUBLE, VARINT, item_lengths, labelled_substrings, sum};
use crate::convert::{
    COUNT, WireError, ascending, in_range, numbers, same_length, strings_to_wire, symbol_strings,
};
use crate::v1::{self, lease_head as head};

pub fn request_to_wire(lengths: &Lengths) -> head::Candidates {
    let Lengths { max_length, longer_than, up_to } = *lengths;
    head::Candidates { max_length, longer_than, up_to }
}

pub fn request_from_wire(message: &head::Candidates) -> Lengths {
    let head::Candidates { max_length, longer_than, up_to } = *message;
    Lengths { max_length, longer_than, up_to }
}

pub fn to_wire(candidates: &Candidates) -> v1::Candidates {
    let Candidates { counted, longer, longest, unparsable } = candidates;
    v1::Candidates {
        counted: Some(counts_to_wire(counted)),
        longer: Some(counts_to_wire(longer)),
        longest: *longest,
        unparsable: unparsable.clone(),
    }
}

fn counts_to_wire(counts: &StringCounts) -> v1::StringCounts {
    let StringCounts { symbols, strings, amounts } = counts;
    v1::StringCounts {
        symbols: symbols.iter().map(|symbol| symbol.0).collect(),
        strings: Some(strings_to_wire(strings.iter())),
        amounts: amounts.clone(),
    }
}

pub fn from_wire(message: v1::Candidates) -> Result<Candidates, WireError> {
    let v1::Candidates { counted, longer, longest, unparsable } = message;
    ascending("candidates.unparsable", &unparsable)?;
    let counted = counts_from_wire("candidates.counted", counted)?;
    let longer = counts_from_wire("candidates.longer", longer)?;
    Ok(Candidates { counted, longer, longest, unparsable })
}

fn counts_from_wire(
    field: &'static str,
    message: Option<v1::StringCounts>,
) -> Result<StringCounts, WireError> {
    let v1::StringCounts { symbols, strings, amounts } = message.ok_or(WireError::Missing { field })?;
    let strings = symbol_strings(field, strings)?;
    same_length(field, symbols.len(), strings.len())?;
    same_length(field, amounts.len(), strings.len())?;
    numbers(field, &amounts, COUNT, is_count)?;
    Ok(StringCounts { symbols: symbols.into_iter().map(SymbolId).collect(), strings, amounts })
}

pub fn check_answer(task: &Items<'_>, lengths: &Lengths, found: &Candidates) -> Result<(), WireError> {
    let grammar = task.grammar;
    let longest = item_lengths(task).max().unwrap_or(0);
    at_most("candidates.longest", u64::from(found.longest), longest)?;
    let n_items = task.shard.len() as u64;
    in_range("candidates.unparsable", found.unparsable.iter().copied(), 0..n_items)?;
    let up_to = u64::from(lengths.up_to);
    let counted = u64::from(lengths.longer_than).saturating_add(1)..up_to.saturating_add(1);
    let longer = up_to..up_to.saturating_add(1);
    for (field, counts, lengths) in
        [("candidates.counted", &found.counted, counted), ("candidates.longer", &found.longer, longer)]
    {
        for (at, (symbol, string, _)) in counts.iter().enumerate() {
            adapted(field, at, grammar, symbol)?;
            terminals(field, grammar, string)?;
        }
        in_range(field, counts.strings.iter().map(|string| string.len() as u32), lengths)?;
        uses(field, task, &counts.amounts)?;
        substrings(field, task.shard, counts.strings.iter())?;
    }
    Ok(())
}

pub fn largest_answer(task: &Items<'_>, lengths: &Lengths) -> u64 {
    // Each string is counted, or begins longer ones; those that go on are as long as the longest that is counted.
    let longest = u64::from(lengths.up_to.min(lengths.max_length));
    let of_item = |length| labelled_substrings(task.grammar, length, longest, DOUBLE).saturating_mul(2);
    sum(item_lengths(task).map(of_item)).saturating_add(task.shard.len() as u64 * VARINT)
}
