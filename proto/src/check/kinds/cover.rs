//! Strings that the lexicon lacks and some sentence needs for a derivation.

use grammaton::work::task::Missing;

use crate::check::items::Items;
use crate::check::sizes::{item_lengths, labelled_substrings, sum};
use crate::check::values::{adapted, nonempty, substrings, terminals};
use crate::check::{Invalid, ascending};

pub fn check_answer(task: &Items<'_>, missing: &Missing) -> Result<(), Invalid> {
    let grammar = task.grammar;
    ascending("missing", missing)?;
    nonempty("missing.strings", missing.iter().map(|(_, string)| &string[..]))?;
    for (at, (symbol, string)) in missing.iter().enumerate() {
        adapted("missing.symbols", at, grammar, *symbol)?;
        terminals("missing.strings", grammar, string)?;
    }
    substrings("missing.strings", task.shard, missing.iter().map(|(_, string)| &string[..]))
}

pub fn largest_answer(task: &Items<'_>) -> u64 {
    sum(item_lengths(task).map(|length| labelled_substrings(task.grammar, length, length, 0)))
}
