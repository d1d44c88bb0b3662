//! Best derivations: the most probable one, and the one that maximises a sum of scores of its nodes.
//!
//! One recursion over the forest, once with products ([`viterbi`]) and once with sums ([`max_sum`], [`min_cost`]). Of
//! equals the first edge wins, which is the order of the rules in the grammar, then the shorter left part.

use super::{Edge, Forest};
use crate::num::Wide;
use crate::stop::Meter;

/// A derivation: for every node, the edge that derives it (an index into [`Forest::edges`]); only those reachable
/// from the root are part of it.
pub struct Derivation(Vec<u32>);

impl Derivation {
    /// That of the given edges, which are all edges of a derivation of `forest`, by node.
    pub fn new<'f>(forest: &'f Forest, edges: impl IntoIterator<Item = (usize, &'f Edge)>) -> Derivation {
        let mut choices = vec![0; forest.n_nodes()];
        for (node, edge) in edges {
            let at = forest.edges_of(node).iter().position(|known| known == edge);
            choices[node] = forest.first_edge[node] + at.expect("the edge derives its node") as u32;
        }
        Derivation(choices)
    }

    /// The edge that derives `node`.
    pub fn edge<'f>(&self, forest: &'f Forest, node: usize) -> &'f Edge {
        &forest.edges[self.0[node] as usize]
    }

    /// The edges of the derivation, parents before children, left before right.
    pub fn edges<'f>(&self, forest: &'f Forest) -> Vec<(usize, &'f Edge)> {
        let (mut edges, mut open) = (Vec::new(), vec![forest.root()]);
        while let Some(node) = open.pop() {
            let edge = self.edge(forest, node);
            edges.push((node, edge));
            open.extend(edge.tails.iter().rev().filter(|&&tail| tail != 0).map(|&tail| tail as usize));
        }
        edges
    }
}

/// The most probable derivation and its weight; `None` if all weigh zero.
pub fn viterbi(forest: &Forest, weights: &[Wide]) -> Option<(Wide, Derivation)> {
    let value = |_, edge: &Edge, [left, right]: [Wide; 2]| weights[edge.param as usize] * left * right;
    let (best, derivation) = best(forest, Wide::ONE, value);
    (!best.is_zero()).then_some((best, derivation))
}

/// The derivation with the highest sum of `score` over its nodes, among edges of parameters that are `alive`.
pub fn max_sum(
    forest: &Forest,
    score: impl Fn(usize) -> f64,
    alive: impl Fn(u32) -> bool,
) -> Option<(f64, Derivation)> {
    let value = |node, edge: &Edge, [left, right]: [f64; 2]| {
        if alive(edge.param) { score(node) + left + right } else { f64::NEG_INFINITY }
    };
    let (best, derivation) = best(forest, 0.0, value);
    (best > f64::NEG_INFINITY).then_some((best, derivation))
}

/// The derivation with the lowest sum of `cost` over its edges; `cut` gives nodes whose derivation costs nothing.
pub fn min_cost(
    forest: &Forest,
    cost: impl Fn(usize, &Edge) -> f64,
    cut: impl Fn(usize) -> bool,
) -> Derivation {
    let value = |node, edge: &Edge, [left, right]: [f64; 2]| {
        if cut(node) { 0.0 } else { left + right - cost(node, edge) }
    };
    best(forest, 0.0, value).1
}

fn best<T: Copy + PartialOrd>(
    forest: &Forest,
    empty: T,
    value: impl Fn(usize, &Edge, [T; 2]) -> T,
) -> (T, Derivation) {
    let n = forest.n_nodes();
    let mut values = Vec::with_capacity(n);
    let mut choices = vec![0; n];
    values.push(empty);
    let mut meter = Meter::default();
    for (node, choice) in choices.iter_mut().enumerate().skip(1) {
        meter.add(1 + forest.edges_of(node).len());
        let first = forest.first_edge[node];
        let mut chosen: Option<T> = None;
        for (edge, at) in forest.edges_of(node).iter().zip(first..) {
            let candidate = value(node, edge, edge.tails.map(|tail| values[tail as usize]));
            if chosen.is_none_or(|best| candidate > best) {
                (chosen, *choice) = (Some(candidate), at);
            }
        }
        values.push(chosen.expect("every node of a forest has an edge"));
    }
    (values[n - 1], Derivation(choices))
}
