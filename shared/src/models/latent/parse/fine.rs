//! Inside and outside with subtypes, over a pruned chart.
//!
//! In: [`Packed`], the layout and the weights of the split rules. Out: how probable each edge is, its subtypes summed out. Cost:
//! two multiply-adds per edge and entry of its rule's block.
//!
//! Petrov & Klein (2007).

use crate::models::latent::Layout;
use crate::models::latent::kernel::{pair, to_left, to_right};
use crate::num::rows::{add, dot};
use crate::stop::Meter;

use super::packed::{By, Edge, Packed};

/// The posterior of every edge, `[n_edges]`; none if nothing has a weight.
pub fn posteriors(packed: &Packed, layout: &Layout, weights: &[f64]) -> Option<Vec<f64>> {
    let (mut fine, root) = inside(packed, layout, weights)?;
    fine.outside[root] = 1.0 / fine.inside[root];
    let mut posteriors: Vec<f64> = packed.edges.iter().rev().map(|edge| fine.down(edge)).collect();
    posteriors.reverse();
    Some(posteriors)
}

/// The weight of all annotated trees, scaled as the edges are; none if nothing has a weight.
pub fn total(packed: &Packed, layout: &Layout, weights: &[f64]) -> Option<f64> {
    inside(packed, layout, weights).map(|(fine, root)| fine.inside[root])
}

/// Inside weights, and the place of the root; none if nothing has a weight.
fn inside<'a>(packed: &Packed, layout: &'a Layout, weights: &'a [f64]) -> Option<(Fine<'a>, usize)> {
    let mut fine = Fine::new(packed, layout, weights);
    packed.edges.iter().for_each(|edge| fine.up(edge));
    // The root is the last node, and not split.
    let root = packed.n_nodes().checked_sub(1)? * layout.n_subtypes();
    (fine.inside[root] > 0.0).then_some((fine, root))
}

/// Weights of annotated constituents.
struct Fine<'a> {
    layout: &'a Layout,
    weights: &'a [f64],
    /// `[n_nodes + 1, n_subtypes]`; the last row stands for children that are not there, and is one.
    inside: Vec<f64>,
    /// Outside weights relative to Z, laid out as `inside`; the last row is unused.
    outside: Vec<f64>,
    /// For one edge, by pair of subtypes of the children: products of inside weights, and outside weights.
    pairs: Vec<f64>,
    above: Vec<f64>,
    meter: Meter,
}

impl<'a> Fine<'a> {
    fn new(packed: &Packed, layout: &'a Layout, weights: &'a [f64]) -> Fine<'a> {
        let h = layout.n_subtypes();
        let size = packed.n_nodes() * h;
        let mut inside = vec![0.0; size];
        inside.resize(size + h, 1.0);
        let (outside, meter) = (vec![0.0; size + h], Meter::default());
        Fine { layout, weights, inside, outside, pairs: Vec::new(), above: Vec::new(), meter }
    }

    /// Adds what an edge gives the inside of its parent.
    fn up(&mut self, edge: &Edge) {
        let h = self.layout.n_subtypes();
        let [parent, left, right] = [edge.parent, edge.left, edge.right].map(|node| node as usize * h);
        let By::Rule(rule) = edge.by else {
            for subtype in 0..h {
                self.inside[parent + subtype] += edge.scale * self.inside[left + subtype];
            }
            return;
        };
        let block = self.layout.blocks[rule.index()];
        self.meter.add(1 + block.n_entries());
        let entries = &self.weights[block.start..][..block.n_entries()];
        pair(&self.inside[left..][..block.n_left], &self.inside[right..][..block.n_right], &mut self.pairs);
        let own = &mut self.inside[parent..][..block.n_parent];
        for (inside, row) in own.iter_mut().zip(entries.chunks_exact(block.row())) {
            *inside += edge.scale * dot(row, &self.pairs);
        }
    }

    /// Adds what an edge gives the outside of its children; returns its posterior.
    fn down(&mut self, edge: &Edge) -> f64 {
        let h = self.layout.n_subtypes();
        let [parent, left, right] = [edge.parent, edge.left, edge.right].map(|node| node as usize * h);
        let By::Rule(rule) = edge.by else {
            let mut posterior = 0.0;
            for subtype in 0..h {
                let outside = edge.scale * self.outside[parent + subtype];
                posterior += outside * self.inside[left + subtype];
                self.outside[left + subtype] += outside;
            }
            return posterior;
        };
        let block = self.layout.blocks[rule.index()];
        self.meter.add(1 + block.n_entries());
        let entries = &self.weights[block.start..][..block.n_entries()];
        let inside_left = &self.inside[left..][..block.n_left];
        let inside_right = &self.inside[right..][..block.n_right];
        pair(inside_left, inside_right, &mut self.pairs);
        self.above.clear();
        self.above.resize(block.row(), 0.0);
        for (outside, row) in self.outside[parent..].iter().zip(entries.chunks_exact(block.row())) {
            add(edge.scale * outside, row, &mut self.above);
        }
        to_left(&self.above, inside_right, &mut self.outside[left..][..block.n_left]);
        to_right(&self.above, inside_left, &mut self.outside[right..][..block.n_right]);
        dot(&self.above, &self.pairs)
    }
}
