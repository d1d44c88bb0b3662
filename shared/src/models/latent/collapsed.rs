//! Collapsed variational Bayes: every tree is read with the posterior mean of all other trees.
//!
//! In: the totals of the last round, the trees of a shard, and their *own* counts, which the shard carries. Tree by tree the own
//! counts are taken from the totals, the tree is read with the posterior mean of what is left, and its new counts are added (Wang
//! & Blunsom 2013, Fig. 3). Out: the shard's counts, which are the sums of the own ones, and these.
//!
//! With one shard this is the paper's algorithm. With several, each goes on from the totals as they were sent and sees the others'
//! trees as they were a round ago.
//!
//! Own counts are kept as `f32` and in blocks, node by node, so that indices need no room: 4 bytes for each entry of each node's
//! block. What is counted is what is kept, so taking it back leaves nothing behind, but for rounding in `f64`, which one round
//! cannot pile up: each adds its totals anew. Counts that rounding makes negative are read as zero.

use serde::{Deserialize, Serialize};

use crate::data::treebank::RuleId;
use crate::limits::is_count;
use crate::num::Wide;
use crate::stop::{Meter, checked};

use super::passes::Passes;
use super::{Expectation, Layout, Shard, Weights};

/// The own counts of a shard's trees: what it carries from round to round.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct TreeCounts {
    /// For every tree, the blocks of its nodes, in preorder.
    pub trees: Vec<Vec<f32>>,
}

impl TreeCounts {
    /// Bytes that the counts take.
    pub fn n_bytes(&self) -> usize {
        self.trees.iter().map(|counts| counts.len() * size_of::<f32>()).sum()
    }

    /// Whether it belongs to the shard: a finite count ≥ 0 for each entry of each node.
    pub fn fits(&self, layout: &Layout, shard: &Shard) -> bool {
        self.trees.len() == shard.trees.len()
            && self.trees.iter().zip(&shard.trees).all(|(counts, tree)| {
                counts.len() == *starts(layout, tree).last().expect("there is one more start than nodes")
                    && counts.iter().all(|&count| is_count(f64::from(count)))
            })
    }

    /// The counts of the shard that it belongs to: the sums of the own ones. `[n_params]`
    pub fn counts(&self, layout: &Layout, shard: &Shard) -> Vec<f64> {
        let (mut counts, mut meter) = (vec![0.0; layout.n_params()], Meter::default());
        for (tree, own) in shard.trees.iter().zip(&self.trees) {
            for (rule, start) in tree.iter().zip(starts(layout, tree)) {
                let block = layout.blocks[rule.index()];
                meter.add(1 + block.n_entries());
                let sums = &mut counts[block.start..][..block.n_entries()];
                sums.iter_mut().zip(&own[start..]).for_each(|(sum, &count)| *sum += f64::from(count));
            }
        }
        counts
    }
}

/// Own counts to begin with: those under given weights.
pub fn begin(layout: &Layout, weights: &Weights, shard: &Shard) -> (Expectation, TreeCounts) {
    let mut reader = Reader::default();
    let mut own = TreeCounts::default();
    let mut ln_z = 0.0;
    for tree in checked(&shard.trees) {
        let starts = starts(layout, tree);
        reader.weights.clear();
        let mut meter = Meter::default();
        for rule in tree {
            let block = layout.blocks[rule.index()];
            meter.add(1 + block.n_entries());
            reader.weights.extend(&weights.values[block.start..][..block.n_entries()]);
        }
        let z = reader.read(layout, tree, &starts);
        ln_z += weights.unscaled(tree, z).ln();
        own.trees.push(reader.kept());
    }
    (Expectation { counts: own.counts(layout, shard), ln_z }, own)
}

/// Makes one pass over a shard, from the totals of all shards.
///
/// # Panics
/// If `own` is not that of the shard.
pub fn pass(
    layout: &Layout,
    totals: &[f64],
    alpha: f64,
    shard: &Shard,
    mut own: TreeCounts,
) -> (Expectation, TreeCounts) {
    assert_eq!(own.trees.len(), shard.trees.len(), "own counts for every tree");
    let mut reader = Reader::default();
    let mut others = Totals { layout, sums: layout.group_sums(totals), counts: totals.to_vec() };
    let mut ln_z = 0.0;
    for (tree, own) in shard.trees.iter().zip(&mut own.trees) {
        let starts = starts(layout, tree);
        others.add(tree, &starts, own, -1.0);
        others.mean(tree, alpha, &mut reader.weights);
        ln_z += reader.read(layout, tree, &starts).ln();
        *own = reader.kept();
        others.add(tree, &starts, own, 1.0);
    }
    (Expectation { counts: own.counts(layout, shard), ln_z }, own)
}

/// Where the blocks of a tree's nodes begin if they follow each other, and where they end. `[n_nodes + 1]`
fn starts(layout: &Layout, tree: &[RuleId]) -> Vec<usize> {
    let mut starts = vec![0];
    for rule in tree {
        starts.push(starts[starts.len() - 1] + layout.blocks[rule.index()].n_entries());
    }
    starts
}

/// Reads trees whose blocks follow each other.
#[derive(Default)]
struct Reader {
    passes: Passes,
    weights: Vec<f64>,
    counts: Vec<f64>,
}

impl Reader {
    fn read(&mut self, layout: &Layout, tree: &[RuleId], starts: &[usize]) -> Wide {
        self.counts.clear();
        self.counts.resize(self.weights.len(), 0.0);
        self.passes.run(layout, tree, |node| starts[node], &self.weights, &mut self.counts)
    }

    /// The counts just read, as they are kept.
    fn kept(&self) -> Vec<f32> {
        self.counts.iter().map(|&count| count as f32).collect()
    }
}

/// Counts of all trees but one, and their sums by group.
struct Totals<'a> {
    layout: &'a Layout,
    counts: Vec<f64>,
    sums: Vec<f64>,
}

impl Totals<'_> {
    /// Adds a tree's own counts, times `sign`.
    fn add(&mut self, tree: &[RuleId], starts: &[usize], own: &[f32], sign: f64) {
        let mut meter = Meter::default();
        for (rule, &start) in tree.iter().zip(starts) {
            let block = self.layout.blocks[rule.index()];
            meter.add(1 + block.n_entries());
            let own = own[start..][..block.n_entries()].chunks_exact(block.row());
            for (parent, own) in own.enumerate() {
                let counts = &mut self.counts[block.start + parent * block.row()..][..block.row()];
                let mut sum = 0.0;
                for (count, &own) in counts.iter_mut().zip(own) {
                    *count += sign * f64::from(own);
                    sum += f64::from(own);
                }
                self.sums[block.group + parent] += sign * sum;
            }
        }
    }

    /// (f + α) / Σ (f + α) of the blocks of a tree's nodes, in preorder.
    fn mean(&self, tree: &[RuleId], alpha: f64, weights: &mut Vec<f64>) {
        weights.clear();
        let mut meter = Meter::default();
        for rule in tree {
            let block = self.layout.blocks[rule.index()];
            meter.add(1 + block.n_entries());
            let counts = self.counts[block.start..][..block.n_entries()].chunks_exact(block.row());
            for (parent, counts) in counts.enumerate() {
                let group = block.group + parent;
                let sum = self.sums[group].max(0.0) + alpha * self.layout.group_sizes[group] as f64;
                weights.extend(counts.iter().map(|count| (count.max(0.0) + alpha) / sum));
            }
        }
    }
}
