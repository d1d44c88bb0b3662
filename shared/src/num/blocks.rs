//! Long runs of numbers, block by block: on all cores where there are many, and in order, so that sums have the same bits.

use std::ops::Range;

use rayon::prelude::*;

/// Elements of a block: scratch memory for them stays in the first cache.
pub const BLOCK: usize = 256;

/// Number of elements from which parallel computation is faster.
const PARALLEL_FROM: usize = 1 << 16;

/// Blocks that are made before they are taken, where there are many.
const BLOCKS_IN_FLIGHT: usize = 256;

/// Makes something of every block of `n` elements, and hands it to `take` in order, with its elements.
pub fn each<T: Send>(
    n: usize,
    make: impl Fn(Range<usize>) -> T + Sync,
    mut take: impl FnMut(Range<usize>, T),
) {
    let n_blocks = n.div_ceil(BLOCK);
    let block = |at: usize| at * BLOCK..n.min((at + 1) * BLOCK);
    if n < PARALLEL_FROM {
        (0..n_blocks).map(block).for_each(|block| take(block.clone(), make(block)));
        return;
    }
    let mut wave = Vec::new();
    for first in (0..n_blocks).step_by(BLOCKS_IN_FLIGHT) {
        let blocks = first..n_blocks.min(first + BLOCKS_IN_FLIGHT);
        blocks.clone().into_par_iter().map(|at| make(block(at))).collect_into_vec(&mut wave);
        blocks.zip(wave.drain(..)).for_each(|(at, made)| take(block(at), made));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_are_complete_and_in_order() {
        for n in [
            0,
            1,
            BLOCK,
            BLOCK + 1,
            PARALLEL_FROM - 1,
            PARALLEL_FROM,
            PARALLEL_FROM + BLOCKS_IN_FLIGHT * BLOCK + 7,
        ] {
            let mut next = 0;
            each(
                n,
                |block| block.map(|at| at as f64).sum::<f64>(),
                |block, sum| {
                    assert_eq!(block.start, next);
                    assert!(block.len() == BLOCK || block.end == n);
                    let (first, last) = (block.start as f64, (block.end - 1) as f64);
                    assert_eq!(sum, (first + last) * block.len() as f64 / 2.0);
                    next = block.end;
                },
            );
            assert_eq!(next, n);
        }
    }
}
