//! Sums over shards, in an order that depends on no fleet: a binary tree over the numbers of the shards.
//!
//! The node at i of level k stands for the shards i·2ᵏ ≤ n < (i + 1)·2ᵏ. Its sum is that of its two halves; shards that are not asked
//! add nothing. So the shards of a node can be summed anywhere, also on a worker, which then answers for all of them at once, and every
//! division of the shards into nodes has the bits of any other.

use std::ops::Range;

/// Results of shards that can be added.
pub trait Sum {
    /// Adds the result of later shards. It has the same bits if the two are exchanged.
    fn add(&mut self, other: Self);
}

/// A sum over shards under way: nodes of the tree that are complete so far, each with its first shard.
pub struct TreeSum<T>(Vec<(usize, T)>);

impl<T> Default for TreeSum<T> {
    fn default() -> TreeSum<T> {
        TreeSum(Vec::new())
    }
}

impl<T: Sum> TreeSum<T> {
    /// Adds the sum of the next shards, which are all that are asked of a node of the tree; `first` is the number of the first.
    pub fn push(&mut self, first: usize, sum: T) {
        while let &[.., (before, _), (last, _)] = &self.0[..]
            && level(before, last) < level(last, first)
        {
            self.close();
        }
        self.0.push((first, sum));
    }

    /// The sum over all shards; `None` if there were none.
    pub fn finish(mut self) -> Option<T> {
        while self.0.len() > 1 {
            self.close();
        }
        self.0.pop().map(|(_, sum)| sum)
    }

    /// Adds the last two sums.
    fn close(&mut self) {
        if let Some((_, last)) = self.0.pop()
            && let Some((_, sum)) = self.0.last_mut()
        {
            sum.add(last);
        }
    }
}

/// The level of the lowest node that has both of two different shards.
fn level(one: usize, other: usize) -> u32 {
    (one ^ other).checked_ilog2().map_or(0, |level| level + 1)
}

/// The level of the largest groups.
pub const MAX_LEVEL: u32 = 6;

/// The most shards of a group.
pub const MAX_GROUP: usize = 1 << MAX_LEVEL;

/// Divides shards, which are in ascending order, into nodes of the tree of at most this level, all of whose shards are among them.
pub fn groups(shards: &[usize], level: u32) -> Vec<Range<usize>> {
    let mut groups = Vec::new();
    let mut rest = shards;
    while let Some(&first) = rest.first() {
        let is_whole = |&level: &u32| {
            let n = 1 << level;
            first.is_multiple_of(n) && rest.get(n - 1) == Some(&(first + n - 1))
        };
        let n = 1 << (1..=level).take_while(is_whole).last().unwrap_or(0);
        groups.push(first..first + n);
        rest = &rest[n..];
    }
    groups
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    impl Sum for f64 {
        fn add(&mut self, other: f64) {
            *self += other;
        }
    }

    /// The sum over the shards of the node at `first` of a level, as the module says it is.
    fn of_node(values: &[Option<f64>], first: usize, level: u32) -> Option<f64> {
        if level == 0 {
            return *values.get(first)?;
        }
        let halves = [first, first + (1 << (level - 1))].map(|first| of_node(values, first, level - 1));
        halves.into_iter().flatten().reduce(|one, other| one + other)
    }

    proptest! {
        /// Law: however shards are divided into nodes of the tree, and whichever of them are asked, the sum has the same bits.
        #[test]
        fn every_division_has_the_same_bits(
            values in prop::collection::vec(prop::option::weighted(0.8, 0.0..1.0f64), 0..200),
            level in 0..=MAX_LEVEL,
        ) {
            let asked: Vec<usize> = (0..values.len()).filter(|&shard| values[shard].is_some()).collect();
            let groups = groups(&asked, level);
            prop_assert_eq!(groups.iter().cloned().flatten().collect::<Vec<_>>(), asked);
            let mut sum = TreeSum::default();
            for group in groups {
                prop_assert!(group.len().is_power_of_two() && group.start.is_multiple_of(group.len()));
                prop_assert!(group.len() <= 1 << level);
                sum.push(group.start, of_node(&values, group.start, group.len().ilog2()).unwrap());
            }
            prop_assert_eq!(sum.finish().map(f64::to_bits), of_node(&values, 0, 8).map(f64::to_bits));
        }
    }

    #[test]
    fn groups_are_as_large_as_nodes_allow() {
        let all: Vec<usize> = (0..23).collect();
        assert_eq!(groups(&all, 3), [0..8, 8..16, 16..20, 20..22, 22..23]);
        assert_eq!(groups(&all[5..14], 2), [5..6, 6..8, 8..12, 12..14]);
        assert_eq!(groups(&[0, 1, 2, 4, 5, 7], 6), [0..2, 2..3, 4..6, 7..8]);
        assert_eq!(groups(&all[..2], 0), [0..1, 1..2]);
    }
}
