//! The best dependency trees of a sentence.
//!
//! In: the forest of its tokens ([`crate::forest::build::Builder`]; unfolded, with parameters of the whole grammar), and weights.
//! Out: heads, as [`super::heads`] has them, and posteriors of arcs. Cost: two passes over the forest each.
//!
//! - *Viterbi*: the tree of the most probable derivation.
//! - *MBR*: the tree with the largest sum of posteriors of its arcs, the root's included, which is the largest expected number of
//!   words with the right head. Arcs that the weights make impossible are not forbidden, but earn nothing.

use super::layout::Layout;
use crate::forest::best::{self, Derivation};
use crate::forest::inside::{Scratch, Weights, edge_posteriors};
use crate::forest::{Edge, Forest};
use crate::num::Wide;

/// Posterior probabilities of arcs, valences summed out.
#[derive(Clone, PartialEq, Debug)]
pub struct Arcs {
    n: usize,
    /// `[n + 1, n]`: by head, 0 for the root, and child.
    posteriors: Vec<f64>,
}

impl Arcs {
    /// Creates posteriors of zero for a sentence of `n` words.
    pub(super) fn new(n: usize) -> Arcs {
        Arcs { n, posteriors: vec![0.0; (n + 1) * n] }
    }

    pub(super) fn add(&mut self, head: usize, child: usize, posterior: f64) {
        self.posteriors[head * self.n + child - 1] += posterior;
    }

    /// Length of the sentence.
    pub fn n(&self) -> usize {
        self.n
    }

    /// p(head → child), as positions counted from 1; of head 0, that the child is the root.
    pub fn posterior(&self, head: usize, child: usize) -> f64 {
        self.posteriors[head * self.n + child - 1]
    }
}

/// The total weight of all trees and the posteriors of their arcs; `None` if no tree weighs more than zero.
pub fn arcs(
    layout: Layout,
    forest: &Forest,
    weights: &Weights,
    scratch: &mut Scratch,
) -> Option<(Wide, Arcs)> {
    let mut arcs = Arcs::new(forest.labels[forest.root()].end as usize / 2);
    let z = edge_posteriors(forest, weights, scratch, |node, edge, posterior| {
        if let Some((head, child)) = layout.arc(forest, node, edge) {
            arcs.add(head, child, posterior);
        }
    });
    (!z.is_zero()).then_some((z, arcs))
}

/// The derivation of the heads with the largest sum of posteriors.
pub fn mbr_derivation(layout: Layout, forest: &Forest, arcs: &Arcs) -> Derivation {
    let gain = |node, edge: &Edge| {
        layout.arc(forest, node, edge).map_or(0.0, |(head, child)| arcs.posterior(head, child))
    };
    best::min_cost(forest, |node, edge| -gain(node, edge), |_| false)
}

/// The heads with the largest sum of posteriors, and that sum.
pub fn mbr(layout: Layout, forest: &Forest, arcs: &Arcs) -> (f64, Vec<u32>) {
    let derivation = mbr_derivation(layout, forest, arcs);
    let heads = heads(layout, forest, &derivation);
    let sum = (1..).zip(&heads).map(|(child, &head)| arcs.posterior(head as usize, child)).sum();
    (sum, heads)
}

/// The heads of the most probable derivation, and its weight; `None` if all weigh zero.
pub fn viterbi(layout: Layout, forest: &Forest, weights: &[Wide]) -> Option<(Wide, Vec<u32>)> {
    let (weight, derivation) = best::viterbi(forest, weights)?;
    Some((weight, heads(layout, forest, &derivation)))
}

/// The heads of a derivation, `[n]`.
pub fn heads(layout: Layout, forest: &Forest, derivation: &Derivation) -> Vec<u32> {
    let mut heads = vec![0; forest.labels[forest.root()].end as usize / 2];
    for (node, edge) in derivation.edges(forest) {
        if let Some((head, child)) = layout.arc(forest, node, edge) {
            heads[child - 1] = head as u32;
        }
    }
    heads
}
