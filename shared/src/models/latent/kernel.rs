//! The loops over one block of weights, `[parent][left][right]`, that all passes share.
//!
//! They run over pairs (left, right) as one dimension, so that there is one contiguous inner loop, which compilers turn into vector
//! instructions. Sums have a fixed order, so results are the same on every machine.

use crate::num::rows::{add, dot};

/// left[b] · right[c]. `[n_left · n_right]`
pub(super) fn pair(left: &[f64], right: &[f64], pairs: &mut Vec<f64>) {
    pairs.clear();
    pairs.extend(left.iter().flat_map(|left| right.iter().map(move |right| left * right)));
}

/// Adds to the outside weights of the left child: Σ_c above[b][c] · right[c].
pub(super) fn to_left(above: &[f64], right: &[f64], outside: &mut [f64]) {
    let rows = above.chunks_exact(right.len());
    outside.iter_mut().zip(rows).for_each(|(outside, row)| *outside += dot(row, right));
}

/// Adds to the outside weights of the right child: Σ_b above[b][c] · left[b].
pub(super) fn to_right(above: &[f64], left: &[f64], outside: &mut [f64]) {
    let rows = above.chunks_exact(outside.len());
    rows.zip(left).for_each(|(row, &left)| add(left, row, outside));
}
