//! The n best trees in a pruned chart.
//!
//! In: [`Packed`] and the weights of the split rules. Out: the trees of the most probable annotated trees, each once, in order; the first is that of Viterbi decoding. The
//! probability is that of the tree, the sum over its annotations, among all trees in the chart.

use std::convert::Infallible;

use crate::forest::k_best::{Analysis, Hypergraph, Lists, k_best};
use crate::models::latent::Layout;
use crate::models::latent::kernel::pair;
use crate::num::rows::dot;

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
    let tree = |(_, list): (f64, Analysis)| {
        let edges = graph.lists.items(list);
        let probability = (graph.total(&edges) / z).min(1.0);
        (probability, edges.into_iter().map(|edge| graph.step(edge)).collect())
    };
    found.into_iter().map(tree).collect()
}

/// A chart as its derivations are distinguished: nodes are those of the chart with each subtype, after the empty one, up to the root with its only subtype.
struct Graph<'a> {
    packed: &'a Packed,
    layout: &'a Layout,
    weights: &'a [f64],
    /// `[n_nodes + 1]`: the edges of a node of the chart are `packed.edges[first_edge[node]..first_edge[node + 1]]`.
    first_edge: Vec<usize>,
    /// Trees, as the numbers of their edges in preorder.
    lists: Lists<u32>,
}

impl Graph<'_> {
    /// The node of the chart with that subtype; the empty one of an absent child.
    fn node(&self, node: u32, subtype: usize) -> usize {
        let node = node as usize;
        if node == self.packed.n_nodes() { 0 } else { 1 + node * self.layout.n_subtypes() + subtype }
    }

    fn step(&self, edge: u32) -> Step {
        let Edge { by, parent, .. } = self.packed.edges[edge as usize];
        let n_children = match by {
            By::Rule(rule) => self.layout.blocks[rule.index()].n_children as u32,
            By::Same | By::Unknown => 0,
        };
        Step { label: self.packed.labels[parent as usize], n_children }
    }

    /// The weight of all annotations of a tree.
    fn total(&self, edges: &[u32]) -> f64 {
        // By subtype, the weights of trees that have no parent yet, the leftmost last.
        let mut inside: Vec<Vec<f64>> = Vec::new();
        let mut pairs = Vec::new();
        for &edge in edges.iter().rev() {
            let Edge { by, parent, scale, .. } = self.packed.edges[edge as usize];
            let n_subtypes = self.layout.n_subtypes_of(self.packed.labels[parent as usize]);
            let By::Rule(rule) = by else {
                inside.push(vec![scale; n_subtypes]);
                continue;
            };
            let block = self.layout.blocks[rule.index()];
            let mut child = |at| if at < block.n_children { inside.pop() } else { None };
            let [left, right] = [child(0), child(1)].map(|child| child.unwrap_or_else(|| vec![1.0]));
            pair(&left, &right, &mut pairs);
            let entries = &self.weights[block.start..][..block.n_entries()];
            inside.push(entries.chunks_exact(block.row()).map(|row| scale * dot(row, &pairs)).collect());
        }
        inside.pop().map_or(0.0, |root| root[0])
    }
}

/// An edge of the chart, by number, with the entry of its rule for some subtypes.
#[derive(Clone, Copy)]
struct Split {
    edge: u32,
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
        for edge in self.first_edge[at]..self.first_edge[at + 1] {
            let Edge { by, left, right, scale, .. } = self.packed.edges[edge];
            let edge = edge as u32;
            let By::Rule(rule) = by else {
                each(Split { edge, scale, entry: 1.0 }, [self.node(left, subtype), 0]);
                continue;
            };
            let block = self.layout.blocks[rule.index()];
            let entries = &self.weights[block.start + subtype * block.row()..][..block.row()];
            for (b, entries) in entries.chunks_exact(block.n_right).enumerate() {
                for (c, &entry) in entries.iter().enumerate() {
                    each(Split { edge, scale, entry }, [self.node(left, b), self.node(right, c)]);
                }
            }
        }
    }

    fn weight(&self, Split { scale, entry, .. }: Split, [left, right]: [f64; 2]) -> f64 {
        scale * left * (entry * right)
    }

    fn analysis(
        &mut self,
        _: usize,
        Split { edge, .. }: Split,
        [left, right]: [Analysis; 2],
    ) -> Result<Analysis, Infallible> {
        if self.packed.edges[edge as usize].by == By::Same {
            return Ok(left);
        }
        let below = self.lists.concatenate(left, right);
        Ok(self.lists.prepend(edge, below))
    }
}
