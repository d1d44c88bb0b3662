//! Candidate strings of sentences.

use grammaton::work::task::{Candidates, Lengths, StringCounts};

use crate::check::items::Items;
use crate::check::sizes::{DOUBLE, VARINT, item_lengths, labelled_substrings, sum};
use crate::check::values::{adapted, at_most, nonempty, substrings, terminals, uses};
use crate::check::{Invalid, ascending, in_range, same_length};

pub fn check_answer(task: &Items<'_>, lengths: &Lengths, found: &Candidates) -> Result<(), Invalid> {
    let grammar = task.grammar;
    let longest = item_lengths(task).max().unwrap_or(0);
    at_most("candidates.longest", u64::from(found.longest), longest)?;
    let n_items = task.shard.len() as u64;
    ascending("candidates.unparsable", &found.unparsable)?;
    in_range("candidates.unparsable", found.unparsable.iter().copied(), 0..n_items)?;
    let up_to = u64::from(lengths.up_to);
    let counted = u64::from(lengths.longer_than).saturating_add(1)..up_to.saturating_add(1);
    let longer = up_to..up_to.saturating_add(1);
    for (field, counts, lengths) in
        [("candidates.counted", &found.counted, counted), ("candidates.longer", &found.longer, longer)]
    {
        let StringCounts { symbols, strings, amounts } = counts;
        same_length(field, symbols.len(), strings.len())?;
        same_length(field, amounts.len(), strings.len())?;
        nonempty(field, strings.iter())?;
        for (at, (symbol, string, _)) in counts.iter().enumerate() {
            adapted(field, at, grammar, symbol)?;
            terminals(field, grammar, string)?;
        }
        in_range(field, strings.iter().map(|string| string.len() as u32), lengths)?;
        uses(field, task, amounts)?;
        substrings(field, task.shard, strings.iter())?;
    }
    Ok(())
}

pub fn largest_answer(task: &Items<'_>, lengths: &Lengths) -> u64 {
    // Each string is counted, or begins longer ones; those that go on are as long as the longest that is counted.
    let longest = u64::from(lengths.up_to.min(lengths.max_length));
    let of_item = |length| labelled_substrings(task.grammar, length, longest, DOUBLE).saturating_mul(2);
    sum(item_lengths(task).map(of_item)).saturating_add(task.shard.len() as u64 * VARINT)
}
