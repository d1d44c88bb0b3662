//! The best tree in a pruned chart.
//!
//! In: [`Packed`] and the weights of the split rules. Out: the tree's rules in preorder. Of equals the first edge is taken.

use crate::data::treebank::LabelId;
use crate::models::latent::Layout;
use crate::num::special::ln;

use super::Decoder;
use super::fine;
use super::packed::{By, Edge, Packed};

/// A node of a tree.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Step {
    /// Its label.
    pub label: LabelId,
    /// Number of its children that are labels; 0 for a tag.
    pub n_children: u32,
}

/// The tree that `decoder` chooses, in preorder; none if no tree has a weight.
pub fn tree(packed: &Packed, layout: &Layout, weights: &[f64], decoder: Decoder) -> Option<Vec<Step>> {
    match decoder {
        Decoder::Viterbi => viterbi(packed, layout, weights),
        Decoder::MaxRule => max_rule(packed, layout, weights),
    }
}

/// An edge, and the subtypes of its children.
#[derive(Clone, Copy, Default)]
struct BestEdge {
    edge: usize,
    left: usize,
    right: usize,
}

/// The tree of the most probable annotated tree.
fn viterbi(packed: &Packed, layout: &Layout, weights: &[f64]) -> Option<Vec<Step>> {
    let (n, h) = (packed.n_nodes(), layout.n_subtypes());
    // As inside weights; the last row stands for children that are not there.
    let mut best = vec![0.0; n * h];
    best.resize((n + 1) * h, 1.0);
    let mut choices = vec![BestEdge::default(); n * h];
    for (number, edge) in packed.edges.iter().enumerate() {
        for a in 0..layout.n_subtypes_of(packed.labels[edge.parent as usize]) {
            let (value, left, right) = best_children(edge, a, &best, layout, weights);
            let place = edge.parent as usize * h + a;
            if value > best[place] {
                best[place] = value;
                choices[place] = BestEdge { edge: number, left, right };
            }
        }
    }
    let root = n.checked_sub(1)?;
    (best[root * h] > 0.0).then(|| walk(packed, layout, |node, subtype| choices[node * h + subtype]))
}

/// The best weight that an edge gives subtype `a` of its parent, and the subtypes of its children.
fn best_children(
    edge: &Edge,
    a: usize,
    best: &[f64],
    layout: &Layout,
    weights: &[f64],
) -> (f64, usize, usize) {
    let [left, right] = [edge.left, edge.right].map(|node| &best[node as usize * layout.n_subtypes()..]);
    let By::Rule(rule) = edge.by else {
        return (edge.scale * left[a], a, a);
    };
    let block = layout.blocks[rule.index()];
    let entries = &weights[block.start + a * block.row()..][..block.row()];
    let mut most = (0.0, 0, 0);
    for (b, entries) in entries.chunks_exact(block.n_right).enumerate() {
        for (c, entry) in entries.iter().enumerate() {
            let value = edge.scale * left[b] * (entry * right[c]);
            if value > most.0 {
                most = (value, b, c);
            }
        }
    }
    most
}

/// The tree with the largest product of posteriors of its rules (Petrov & Klein 2007, max-rule-product).
fn max_rule(packed: &Packed, layout: &Layout, weights: &[f64]) -> Option<Vec<Step>> {
    let posteriors = fine::posteriors(packed, layout, weights)?;
    let n = packed.n_nodes();
    // The last one stands for children that are not there.
    let mut best = vec![f64::NEG_INFINITY; n];
    best.push(0.0);
    let mut choices = vec![BestEdge::default(); n];
    for (number, (edge, posterior)) in packed.edges.iter().zip(posteriors).enumerate() {
        let own = if edge.by == By::Same { 0.0 } else { ln(posterior) };
        let value = own + best[edge.left as usize] + best[edge.right as usize];
        if value > best[edge.parent as usize] {
            best[edge.parent as usize] = value;
            choices[edge.parent as usize].edge = number;
        }
    }
    (best[n - 1] > f64::NEG_INFINITY).then(|| walk(packed, layout, |node, _| choices[node]))
}

/// The tree of the choices, from the root down.
fn walk(packed: &Packed, layout: &Layout, choice: impl Fn(usize, usize) -> BestEdge) -> Vec<Step> {
    let mut steps = Vec::new();
    // Nodes yet to be drawn with their subtypes, the leftmost last.
    let mut open = vec![(packed.n_nodes() - 1, 0)];
    while let Some((node, subtype)) = open.pop() {
        let choice = choice(node, subtype);
        let edge = packed.edges[choice.edge];
        let n_children = match edge.by {
            By::Same => 1,
            By::Unknown => 0,
            By::Rule(rule) => layout.blocks[rule.index()].n_children,
        };
        if edge.by != By::Same {
            steps.push(Step { label: packed.labels[node], n_children: n_children as u32 });
        }
        let children = [(edge.left as usize, choice.left), (edge.right as usize, choice.right)];
        open.extend(children[..n_children].iter().rev());
    }
    steps
}
