//! The n best trees in a pruned chart.
//!
//! In: [`Packed`] and the weights of the split rules. Out: the trees of the most probable annotated trees, each once, in order; the first is that of Viterbi decoding. The
//! probability is that of the annotated tree, among all annotated trees in the chart.

use std::convert::Infallible;

use crate::forest::k_best::{Analysis, Hypergraph, Lists, k_best};
use crate::models::latent::Layout;

use super::best::Step;
use super::fine;
use super::packed::{By, Edge, Packed};

/// The rules of the `n` best trees in preorder, each with its probability.
pub fn trees(packed: &Packed, layout: &Layout, weights: &[f64], n: usize) -> Vec<(f64, Vec<Step>)> {
    let Some(z) = fine::total(packed, layout, weights) else { return Vec::new() };
    let mut first_edge = vec![0; packed.n_nodes() + 1];
    packed.edges.iter().for_each(|edge| first_edge[edge.parent as usize + 1] += 1);
    (0..packed.n_nodes()).for_each(|node| first_edge[node + 1] += first_edge[node]);
    let mut graph = Graph { packed, layout, weights, first_edge, lists: Lists::default() };
    let Ok(found) = k_best(&mut graph, n);
    found.into_iter().map(|(weight, list)| ((weight / z).min(1.0), graph.lists.items(list))).collect()
}

/// A chart as its derivations are distinguished: nodes are those of the chart with each subtype, after the empty one, up to the root with its only subtype.
struct Graph<'a> {
    packed: &'a Packed,
    layout: &'a Layout,
    weights: &'a [f64],
    /// `[n_nodes + 1]`: the edges of a node of the chart are `packed.edges[first_edge[node]..first_edge[node + 1]]`.
    first_edge: Vec<usize>,
    lists: Lists<Step>,
}

impl Graph<'_> {
    /// The node of the chart with that subtype; the empty one of an absent child.
    fn node(&self, node: u32, subtype: usize) -> usize {
        let node = node as usize;
        if node == self.packed.n_nodes() { 0 } else { 1 + node * self.layout.n_subtypes() + subtype }
    }
}

/// An edge of the chart with the entry of its rule for some subtypes.
#[derive(Clone, Copy)]
struct Split {
    by: By,
    scale: f64,
    entry: f64,
}

impl Hypergraph for Graph<'_> {
    type Weight = f64;
    type Edge = Split;
    type Error = Infallible;

    fn n_nodes(&self) -> usize {
        (self.packed.n_nodes() - 1) * self.layout.n_subtypes() + 2
    }

    fn edges(&self, node: usize, mut each: impl FnMut(Split, [usize; 2])) {
        let (at, subtype) = ((node - 1) / self.layout.n_subtypes(), (node - 1) % self.layout.n_subtypes());
        if subtype >= self.layout.n_subtypes_of(self.packed.labels[at]) {
            return;
        }
        for &Edge { by, left, right, scale, .. } in
            &self.packed.edges[self.first_edge[at]..self.first_edge[at + 1]]
        {
            let By::Rule(rule) = by else {
                each(Split { by, scale, entry: 1.0 }, [self.node(left, subtype), 0]);
                continue;
            };
            let block = self.layout.blocks[rule.index()];
            let entries = &self.weights[block.start + subtype * block.row()..][..block.row()];
            for (b, entries) in entries.chunks_exact(block.n_right).enumerate() {
                for (c, &entry) in entries.iter().enumerate() {
                    each(Split { by, scale, entry }, [self.node(left, b), self.node(right, c)]);
                }
            }
        }
    }

    fn weight(&self, Split { scale, entry, .. }: Split, [left, right]: [f64; 2]) -> f64 {
        scale * left * (entry * right)
    }

    fn analysis(
        &mut self,
        node: usize,
        edge: Split,
        [left, right]: [Analysis; 2],
    ) -> Result<Analysis, Infallible> {
        let n_children = match edge.by {
            By::Same => return Ok(left),
            By::Unknown => 0,
            By::Rule(rule) => self.layout.blocks[rule.index()].n_children,
        };
        let label = self.packed.labels[(node - 1) / self.layout.n_subtypes()];
        let below = self.lists.concatenate(left, right);
        Ok(self.lists.prepend(Step { label, n_children: n_children as u32 }, below))
    }
}
