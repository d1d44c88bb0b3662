//! Inside and outside with subtypes, over what is left of a chart.
//!
//! In: [`Packed`], the layout and the weights of the split rules. Out: [`Fine`]: inside and outside of every node, `[n_nodes,
//! n_subtypes]`, and from them the posterior of every edge, its subtypes summed out. Cost: H³ multiply-adds per edge and pass.

use crate::latent::Layout;
use crate::latent::passes::weighted;

use super::packed::{By, Edge, Packed};

/// Weights of annotated constituents.
pub struct Fine {
    /// `[n_nodes + 1, n_subtypes]`; the last row stands for children that are not there, and is one.
    pub(super) inside: Vec<f64>,
    /// As `inside`, relative to Z; what arrives in the last row is not used.
    outside: Vec<f64>,
}

/// The child of a node, in a table of `n_subtypes` columns.
fn row(table: &[f64], node: u32, n_subtypes: usize) -> &[f64] {
    &table[node as usize * n_subtypes..][..n_subtypes]
}

impl Fine {
    /// Fills both tables; none if nothing has a weight.
    pub fn fill(packed: &Packed, layout: &Layout, weights: &[f64]) -> Option<Fine> {
        let h = layout.n_subtypes();
        let size = packed.n_nodes() * h;
        let mut fine = Fine { inside: vec![0.0; size], outside: vec![0.0; size + h] };
        fine.inside.resize(size + h, 1.0);
        let mut made = vec![0.0; h];
        for edge in &packed.edges {
            fine.make(edge, layout, weights, &mut made);
            let own = &mut fine.inside[edge.parent as usize * h..][..h];
            own.iter_mut().zip(&made).for_each(|(inside, made)| *inside += made);
        }
        // The root is the last node, and not split.
        let root = packed.n_nodes().checked_sub(1)? * h;
        if fine.inside[root] == 0.0 {
            return None;
        }
        fine.outside[root] = 1.0 / fine.inside[root];
        packed.edges.iter().rev().for_each(|edge| fine.pass_down(edge, layout, weights));
        Some(fine)
    }

    /// What an edge gives each subtype of its parent.
    fn make(&self, edge: &Edge, layout: &Layout, weights: &[f64], made: &mut [f64]) {
        let h = layout.n_subtypes();
        let (left, right) = (row(&self.inside, edge.left, h), row(&self.inside, edge.right, h));
        made.fill(0.0);
        match edge.by {
            By::Rule(rule) => {
                let block = layout.blocks[rule.index()];
                let entries = &weights[block.start..][..block.n_entries()];
                for (made, row) in made.iter_mut().zip(entries.chunks_exact(block.row())) {
                    *made = edge.scale * weighted(row, &left[..block.n_left], &right[..block.n_right]);
                }
            }
            By::Same | By::Unknown => {
                made.iter_mut().zip(left).for_each(|(made, inside)| *made = edge.scale * inside);
            }
        }
    }

    fn pass_down(&mut self, edge: &Edge, layout: &Layout, weights: &[f64]) {
        let h = layout.n_subtypes();
        let [parent, left, right] = [edge.parent, edge.left, edge.right].map(|node| node as usize * h);
        let By::Rule(rule) = edge.by else {
            for subtype in 0..h {
                self.outside[left + subtype] += edge.scale * self.outside[parent + subtype];
            }
            return;
        };
        let block = layout.blocks[rule.index()];
        if block.n_children == 0 {
            return;
        }
        let entries = &weights[block.start..][..block.n_entries()];
        for (a, row) in entries.chunks_exact(block.row()).enumerate() {
            let above = edge.scale * self.outside[parent + a];
            for (b, entries) in row.chunks_exact(block.n_right).enumerate() {
                let beside = above * self.inside[left + b];
                let mut through = 0.0;
                let outside = &mut self.outside[right..][..block.n_right];
                let inside = &self.inside[right..][..block.n_right];
                for ((entry, inside), outside) in entries.iter().zip(inside).zip(outside) {
                    through += entry * inside;
                    *outside += beside * entry;
                }
                self.outside[left + b] += above * through;
            }
        }
    }

    /// How probable it is that a tree uses an edge. `[n_edges]`
    pub fn posteriors(&self, packed: &Packed, layout: &Layout, weights: &[f64]) -> Vec<f64> {
        let h = layout.n_subtypes();
        let mut made = vec![0.0; h];
        let posterior = |edge: &Edge| {
            self.make(edge, layout, weights, &mut made);
            made.iter().zip(row(&self.outside, edge.parent, h)).map(|(made, outside)| made * outside).sum()
        };
        packed.edges.iter().map(posterior).collect()
    }
}
