//! The parameters that a shard touches.

use grammaton::work::task::Index;

use crate::convert::items::Items;
use crate::convert::sizes::VARINT;
use crate::convert::{WireError, ascending, in_range, params};
use crate::v1;

pub fn to_wire(index: &Index) -> v1::Index {
    v1::Index {
        params: index.params.iter().map(|param| param.0).collect(),
        unparsable: index.unparsable.clone(),
    }
}

pub fn from_wire(message: v1::Index) -> Result<Index, WireError> {
    let v1::Index { params: touched, unparsable } = message;
    let params = params("index.params", touched)?;
    ascending("index.unparsable", &unparsable)?;
    Ok(Index { params, unparsable })
}

pub fn check_answer(task: &Items<'_>, index: &Index) -> Result<(), WireError> {
    let n_params = task.lexicon.space(task.grammar).n_params() as u64;
    in_range("index.params", index.params.iter().map(|param| param.0), 0..n_params)?;
    in_range("index.unparsable", index.unparsable.iter().copied(), 0..task.shard.len() as u64)
}

pub fn largest_answer(task: &Items<'_>) -> u64 {
    let n_params = task.lexicon.space(task.grammar).n_params() as u64;
    (n_params + task.shard.len() as u64) * VARINT
}
