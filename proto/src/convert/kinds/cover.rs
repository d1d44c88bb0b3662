//! Strings that the lexicon lacks and some sentence needs for a derivation.

use grammaton::work::task::Missing;

use crate::convert::checks::{adapted, substrings, terminals};
use crate::convert::items::Items;
use crate::convert::sizes::{item_lengths, labelled_substrings, sum};
use crate::convert::{WireError, labelled_strings, strings_to_wire};
use crate::v1;

pub fn to_wire(missing: &Missing) -> v1::Missing {
    v1::Missing {
        symbols: missing.iter().map(|(symbol, _)| symbol.0).collect(),
        strings: Some(strings_to_wire(missing.iter().map(|(_, string)| &string[..]))),
    }
}

pub fn from_wire(v1::Missing { symbols, strings }: v1::Missing) -> Result<Missing, WireError> {
    labelled_strings("missing", symbols, strings)
}

pub fn check_answer(task: &Items<'_>, missing: &Missing) -> Result<(), WireError> {
    let grammar = task.grammar;
    for (at, (symbol, string)) in missing.iter().enumerate() {
        adapted("missing.symbols", at, grammar, *symbol)?;
        terminals("missing.strings", grammar, string)?;
    }
    substrings("missing.strings", task.shard, missing.iter().map(|(_, string)| &string[..]))
}

pub fn largest_answer(task: &Items<'_>) -> u64 {
    sum(item_lengths(task).map(|length| labelled_substrings(task.grammar, length, length, 0)))
}
