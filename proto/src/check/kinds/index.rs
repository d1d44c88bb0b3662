//! The parameters that a shard touches.

use grammaton::work::task::Index;

use crate::check::items::Items;
use crate::check::sizes::VARINT;
use crate::check::{Invalid, ascending, in_range};

pub fn check_answer(task: &Items<'_>, index: &Index) -> Result<(), Invalid> {
    let n_params = task.lexicon.space(task.grammar).n_params() as u64;
    ascending("index.params", &index.params)?;
    ascending("index.unparsable", &index.unparsable)?;
    in_range("index.params", index.params.iter().map(|param| param.0), 0..n_params)?;
    in_range("index.unparsable", index.unparsable.iter().copied(), 0..task.shard.len() as u64)
}

pub fn largest_answer(task: &Items<'_>) -> u64 {
    let n_params = task.lexicon.space(task.grammar).n_params() as u64;
    (n_params + task.shard.len() as u64) * VARINT
}
