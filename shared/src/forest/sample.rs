//! Draws derivations in proportion to their weights.
//!
//! In: a [`Forest`], weights by edge parameter, a random stream. Out: the edges of one derivation, parents before children,
//! left before right. An inside pass, then from the root downwards an edge of each node is chosen in proportion to
//! w · β(left) · β(right) (Johnson, Griffiths & Goldwater 2007, §4, SAMPLE; Goodman 1998).
//!
//! The draw is exact, and the same in real space and with [`Wide`], which is used where real space underflows.

use rand_pcg::Pcg64Mcg;

use super::inside::{Number, Weights, in_range, inside_values};
use super::{Edge, Forest};
use crate::num::Wide;
use crate::num::random::uniform;

/// Inside values by node, reused from draw to draw.
#[derive(Default)]
pub struct Scratch {
    real: Vec<f64>,
    wide: Vec<Wide>,
    open: Vec<u32>,
}

/// Draws a derivation of the root, and calls `found(node, edge)` for each of its edges. Gives the total weight of the derivations; calls
/// nothing if that is zero.
pub fn sample(
    forest: &Forest,
    weights: &Weights,
    random: &mut Pcg64Mcg,
    scratch: &mut Scratch,
    found: impl FnMut(usize, &Edge),
) -> Wide {
    let Scratch { real, wide, open } = scratch;
    let (root, nodes) = (forest.root(), 1..=forest.root());
    let z = inside_values(forest, root, weights.real, nodes.clone(), real);
    if in_range(z) {
        descend(forest, root, weights.real, real, random, open, found);
        return Wide::from_f64(z);
    }
    let z = inside_values(forest, root, weights.wide, nodes, wide);
    if !z.is_zero() {
        descend(forest, root, weights.wide, wide, random, open, found);
    }
    z
}

/// Draws a derivation of `root` from its inside values and those of all nodes below it, and calls `found(node, edge)` for each of its edges.
pub(crate) fn descend<N: Number + PartialOrd>(
    forest: &Forest,
    root: usize,
    weights: &[N],
    beta: &[N],
    random: &mut Pcg64Mcg,
    open: &mut Vec<u32>,
    mut found: impl FnMut(usize, &Edge),
) {
    open.clear();
    open.push(root as u32);
    while let Some(node) = open.pop() {
        let node = node as usize;
        let edges = forest.edges_of(node);
        let edge = match edges {
            [only] => only,
            _ => choose(edges, weights, beta, N::from_f64(uniform(random)) * beta[node]),
        };
        open.extend(edge.tails.iter().rev().filter(|&&tail| tail != 0));
        found(node, edge);
    }
}

/// The first edge at which the running sum of the values, whose total is the node's own, exceeds `drawn`.
fn choose<'f, N: Number + PartialOrd>(edges: &'f [Edge], weights: &[N], beta: &[N], drawn: N) -> &'f Edge {
    let mut sum = N::ZERO;
    let mut last = &edges[0];
    for edge in edges {
        let [left, right] = edge.tails.map(|tail| beta[tail as usize]);
        let value = weights[edge.param as usize] * left * right;
        if value > N::ZERO {
            sum = sum + value;
            last = edge;
            if sum > drawn {
                break;
            }
        }
    }
    last // also where rounding brings `drawn` up to the total
}
