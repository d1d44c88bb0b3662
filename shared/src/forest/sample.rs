//! Draws derivations in proportion to their weights.
//!
//! In: a [`Forest`], weights by edge parameter, a random stream. Out: the edges of one derivation, parents before children,
//! left before right. An inside pass, then from the root downwards an edge of each node is chosen in proportion to
//! w · β(left) · β(right) (Johnson, Griffiths & Goldwater 2007, §4, SAMPLE; Goodman 1998).
//!
//! The draw is exact, and the same in real space and with [`Wide`], which is used where real space underflows. It can begin at any node,
//! with the inside values of the nodes below it alone ([`Below`]).

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
    mut found: impl FnMut(usize, &Edge),
) -> Wide {
    let nodes = || 1..=forest.root();
    sample_real(forest, nodes(), weights.real, random, scratch, &mut found)
        .map_or_else(|| sample_wide(forest, nodes(), weights.wide, random, scratch, found), Wide::from_f64)
}

/// As [`sample`], of the last of `nodes`: ascending, and with each the tails of its edges. `None` if the total weight is out of the range
/// in which real space can be trusted: nothing is called or drawn then.
pub fn sample_real(
    forest: &Forest,
    nodes: impl DoubleEndedIterator<Item = usize> + Clone,
    weights: &[f64],
    random: &mut Pcg64Mcg,
    scratch: &mut Scratch,
    found: impl FnMut(usize, &Edge),
) -> Option<f64> {
    let Scratch { real, open, .. } = scratch;
    let root = nodes.clone().next_back()?;
    let z = inside_values(forest, root, weights, nodes, real);
    in_range(z).then(|| {
        descend(forest, root, weights, real, random, open, found);
        z
    })
}

/// As [`sample_real`], with weights of any size.
pub fn sample_wide(
    forest: &Forest,
    nodes: impl DoubleEndedIterator<Item = usize> + Clone,
    weights: &[Wide],
    random: &mut Pcg64Mcg,
    scratch: &mut Scratch,
    found: impl FnMut(usize, &Edge),
) -> Wide {
    let Scratch { wide, open, .. } = scratch;
    let Some(root) = nodes.clone().next_back() else { return Wide::ONE };
    let z = inside_values(forest, root, weights, nodes, wide);
    if !z.is_zero() {
        descend(forest, root, weights, wide, random, open, found);
    }
    z
}

/// The nodes below a root, reused from root to root.
#[derive(Default)]
pub struct Below {
    /// A bit for each node, set if it was reached and not yet visited.
    open: Vec<u64>,
    /// Descending.
    nodes: Vec<u32>,
}

impl Below {
    /// Finds the nodes below `root`, and calls `used` for each of their edges.
    pub fn find(&mut self, forest: &Forest, root: usize, mut used: impl FnMut(&Edge)) {
        let Below { open, nodes } = self;
        nodes.clear();
        open.clear();
        open.resize(root / 64 + 1, 0);
        open[root / 64] = 1 << (root % 64);
        for word in (0..open.len()).rev() {
            while let Some(highest) = open[word].checked_ilog2() {
                open[word] ^= 1 << highest;
                let node = 64 * word + highest as usize;
                if node == 0 {
                    break;
                }
                nodes.push(node as u32);
                for edge in forest.edges_of(node) {
                    edge.tails.iter().for_each(|&tail| open[tail as usize / 64] |= 1 << (tail % 64));
                    used(edge);
                }
            }
        }
    }

    /// Ascending: the root is the last one.
    pub fn nodes(&self) -> impl DoubleEndedIterator<Item = usize> + Clone + '_ {
        self.nodes.iter().rev().map(|&node| node as usize)
    }
}

fn descend<N: Number + PartialOrd>(
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
