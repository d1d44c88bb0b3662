//! Expected counts of a shard, by the parameters that it touches.

use crate::grammar::ParamId;
use crate::work::heap::flat;
use serde::{Deserialize, Serialize};

/// The parameters that a shard touches.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Index {
    /// Sorted; the order of weights and counts of this shard.
    pub params: Vec<ParamId>,
    /// Items (positions in the shard) that have no derivation at all, or too many for a forest ([`crate::forest::TooAmbiguous`]).
    pub unparsable: Vec<u32>,
}

impl Index {
    /// Bytes on the heap.
    pub fn size(&self) -> usize {
        flat(&self.params) + flat(&self.unparsable)
    }
}

/// Expected counts of a shard.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct Expectation {
    /// Expected uses of the parameters in use (weight above zero), in the order of the shard's index; multiplicities counted.
    pub counts: Vec<f64>,
    /// Σ over the uses of each parameter in use of −ln(1 − posterior of the use): what log Z would lose without it. Empty if not asked for; +∞ where nothing could replace it.
    pub losses: Vec<f64>,
    /// Σ log Z over the items, multiplicities counted.
    pub log_z: f64,
    /// log Z of each item, only for [`crate::work::shard::Shard::Strings`]; 0 for strings that are not in use.
    pub log_z_items: Vec<f64>,
    /// Strings out of use (weight zero) without which some item has no derivation; sorted. The counts mean
    /// nothing if there are any.
    pub missing: Vec<ParamId>,
}

impl Expectation {
    /// Bytes on the heap.
    pub fn size(&self) -> usize {
        flat(&self.counts) + flat(&self.losses) + flat(&self.log_z_items) + flat(&self.missing)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn size_counts_all_lists() {
        let counts =
            Expectation { counts: vec![0.0; 5], missing: vec![ParamId(3)], ..Expectation::default() };
        assert_eq!(counts.size(), 44);
    }
}
