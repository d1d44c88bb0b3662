//! Inside and outside over the subtypes of one given tree.
//!
//! In: a tree, weights, and where the block of each node stands. Out: Z, the summed weight of all annotations, and the expected
//! uses of the entries of every block, added to the counts. Cost: a few multiply-adds per entry, so O(n·H³) for n words.
//!
//! Nothing underflows however long the tree: the inside of a node is brought to a largest value in [1, 2), which costs an
//! exponent. The outside of a node is kept relative to its inside, so that Σ outside · inside = 1 at every node, and the counts
//! of a node are a distribution without further ado.
//!
//! Matsuzaki et al. (2005); Petrov et al. (2006).

use crate::data::treebank::RuleId;
use crate::num::Wide;

use super::Layout;
use super::kernel::{pair, to_left, to_right};
use crate::num::rows::{add, dot};
use crate::stop::Meter;

/// Inside weights this small relative to the largest of their node count as zero, so that the outside cannot overflow.
const NEGLIGIBLE: f64 = 1e-290;

/// Scratch memory of the passes, used again from tree to tree.
#[derive(Default)]
pub struct Passes {
    /// Children of each node; the number of nodes for a missing child.
    children: Vec<[usize; 2]>,
    waiting: Vec<usize>,
    /// `[n_nodes + 1, n_subtypes]`; the last row stands for children that are not there, and is one.
    inside: Vec<f64>,
    /// Outside weights, laid out as `inside`; the last row is unused.
    outside: Vec<f64>,
    /// Factor of the inside weights of each node.
    scale: Vec<f64>,
    /// For one node, by pair of subtypes: products of the children's inside weights, and outside weights of both together.
    pairs: Vec<f64>,
    above: Vec<f64>,
    meter: Meter,
}

impl Passes {
    /// Runs both passes over `tree`, its rules in preorder. The block of node number `node` begins at `start(node)` of both
    /// `weights` and `counts`. A tree that has no weight adds no counts.
    pub fn run(
        &mut self,
        layout: &Layout,
        tree: &[RuleId],
        start: impl Fn(usize) -> usize,
        weights: &[f64],
        counts: &mut [f64],
    ) -> Wide {
        let z = self.inside(layout, tree, &start, weights);
        if !z.is_zero() {
            self.outside(layout, tree, &start, weights, counts);
        }
        z
    }

    fn inside(
        &mut self,
        layout: &Layout,
        tree: &[RuleId],
        start: impl Fn(usize) -> usize,
        weights: &[f64],
    ) -> Wide {
        let (n, h) = (tree.len(), layout.n_subtypes());
        self.children.resize(n, [n; 2]);
        self.scale.resize(n, 1.0);
        self.inside.resize((n + 1) * h, 0.0);
        self.inside[n * h..(n + 1) * h].fill(1.0);
        let mut exponent = 0;
        for (node, rule) in tree.iter().enumerate().rev() {
            let block = layout.blocks[rule.index()];
            self.meter.add(1 + block.n_entries());
            let mut child = |nth| if nth < block.n_children { self.waiting.pop() } else { None }.unwrap_or(n);
            let [left, right] = [child(0), child(1)];
            self.children[node] = [left, right];
            self.waiting.push(node);
            let (own, below) = self.inside.split_at_mut((node + 1) * h);
            let own = &mut own[node * h..][..block.n_parent];
            let left = &below[(left - node - 1) * h..][..block.n_left];
            let right = &below[(right - node - 1) * h..][..block.n_right];
            let entries = &weights[start(node)..][..block.n_entries()];
            pair(left, right, &mut self.pairs);
            for (inside, row) in own.iter_mut().zip(entries.chunks_exact(block.row())) {
                *inside = dot(row, &self.pairs);
            }
            let largest = Wide::from_f64(own.iter().copied().fold(0.0, f64::max));
            let shift = largest.exponent.max(-1023);
            self.scale[node] = Wide { mantissa: 1.0, exponent: -shift }.to_f64();
            exponent += shift;
            for inside in own.iter_mut() {
                *inside *= self.scale[node];
                *inside = if *inside < NEGLIGIBLE { 0.0 } else { *inside };
            }
        }
        self.waiting.clear();
        let n_root = tree.first().map_or(0, |rule| layout.blocks[rule.index()].n_parent);
        let z = Wide::from_f64(self.inside[..n_root].iter().sum());
        if z.is_zero() { z } else { Wide { exponent: z.exponent + exponent, ..z } }
    }

    fn outside(
        &mut self,
        layout: &Layout,
        tree: &[RuleId],
        start: impl Fn(usize) -> usize,
        weights: &[f64],
        counts: &mut [f64],
    ) {
        let h = layout.n_subtypes();
        self.outside.clear();
        self.outside.resize(self.inside.len(), 0.0);
        let n_root = layout.blocks[tree[0].index()].n_parent;
        let total: f64 = self.inside[..n_root].iter().sum();
        self.outside[..n_root].fill(1.0 / total);
        for (node, rule) in tree.iter().enumerate() {
            let block = layout.blocks[rule.index()];
            self.meter.add(1 + block.n_entries());
            let [left, right] = self.children[node];
            let entries = &weights[start(node)..][..block.n_entries()];
            let counts = &mut counts[start(node)..][..block.n_entries()];
            let inside_left = &self.inside[left * h..][..block.n_left];
            let inside_right = &self.inside[right * h..][..block.n_right];
            pair(inside_left, inside_right, &mut self.pairs);
            self.above.clear();
            self.above.resize(block.row(), 0.0);
            let rows = entries.chunks_exact(block.row()).zip(counts.chunks_exact_mut(block.row()));
            for (parent, (entries, counts)) in rows.enumerate() {
                let outside = self.outside[node * h + parent] * self.scale[node];
                if outside > 0.0 {
                    add(outside, entries, &mut self.above);
                    let uses = entries.iter().zip(&self.pairs).map(|(entry, pair)| outside * (entry * pair));
                    counts.iter_mut().zip(uses).for_each(|(count, uses)| *count += uses);
                }
            }
            to_left(&self.above, inside_right, &mut self.outside[left * h..][..block.n_left]);
            to_right(&self.above, inside_left, &mut self.outside[right * h..][..block.n_right]);
        }
    }
}
