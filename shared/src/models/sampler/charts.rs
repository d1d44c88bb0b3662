//! The charts of a shard, each in the smallest form that it has room in, in a few large blocks.

use super::chart::{Chart, Leaf, Node, Seat};
use super::edge::{Edge, Packed, Word};
use super::fixed::Fixed;
use crate::stop::checked;

/// A chart of some form.
pub(super) enum AnyChart<'c> {
    Small(Chart<'c, Word>),
    Medium(Chart<'c, [u16; 3]>),
    Large(Chart<'c, Edge>),
}

/// Charts, each in the smallest form that it has room in.
#[derive(Default)]
pub(super) struct Charts {
    leaves: Blocks<Leaf>,
    small: OfForm<Word>,
    medium: OfForm<[u16; 3]>,
    large: OfForm<Edge>,
}

/// Nodes and edges of the charts of a form.
struct OfForm<P: Packed> {
    nodes: Blocks<Node<P::Index>>,
    edges: Blocks<P>,
}

/// Where a chart is.
#[derive(Clone, Copy)]
pub(super) struct Place {
    form: Form,
    leaves: Slice,
    nodes: Slice,
    edges: Slice,
}

#[derive(Clone, Copy)]
enum Form {
    Small,
    Medium,
    Large,
}

/// Slices one behind the other, in blocks that do not move, each twice as large as the one before it. A list that grows would be in memory
/// twice, and small blocks would leave holes when the charts of a trial go; large ones go back to the system.
struct Blocks<T>(Vec<Vec<T>>);

/// Where a slice is.
#[derive(Clone, Copy)]
struct Slice {
    block: u32,
    start: u32,
    end: u32,
}

impl<T> Blocks<T> {
    /// Items of the first block.
    const FIRST: usize = (1 << 16) / size_of::<T>();

    /// Puts `n` items behind the others; `None` if there are fewer.
    fn push(&mut self, n: usize, items: impl Iterator<Item = T>) -> Option<Slice> {
        let capacity = self.0.last().map_or(0, Vec::capacity);
        if self.0.last().is_none_or(|last| capacity - last.len() < n) {
            self.0.push(Vec::with_capacity(n.max(2 * capacity).max(Self::FIRST)));
        }
        let block = self.0.len() - 1;
        let start = self.0[block].len();
        self.0[block].extend(items.take(n));
        let end = self.0[block].len();
        if end - start < n {
            self.0[block].truncate(start);
            return None;
        }
        Some(Slice { block: block as u32, start: start as u32, end: end as u32 })
    }

    fn get(&self, Slice { block, start, end }: Slice) -> &[T] {
        &self.0[block as usize][start as usize..end as usize]
    }

    fn iter_mut(&mut self) -> impl Iterator<Item = &mut T> {
        self.0.iter_mut().flatten()
    }

    /// Bytes held.
    fn size(&self) -> usize {
        self.0.iter().map(|block| size_of_val(&**block)).sum()
    }
}

impl<T> Default for Blocks<T> {
    fn default() -> Blocks<T> {
        Blocks(Vec::new())
    }
}

/// Does the same with a chart of every form.
macro_rules! with_chart {
    ($any:expr, $chart:ident => $what:expr) => {
        match $any {
            AnyChart::Small($chart) => $what,
            AnyChart::Medium($chart) => $what,
            AnyChart::Large($chart) => $what,
        }
    };
}
pub(super) use with_chart;

impl Charts {
    /// Puts a chart of these values and edges behind the others.
    pub fn push(&mut self, leaves: &[Leaf], nodes: &[Node<u32>], edges: &[Edge]) -> Place {
        let Charts { leaves: all_leaves, small, medium, large } = self;
        let small = small.push(nodes, edges).map(|parts| (Form::Small, parts));
        let medium = || medium.push(nodes, edges).map(|parts| (Form::Medium, parts));
        let large = || large.push(nodes, edges).map(|parts| (Form::Large, parts));
        let pushed =
            small.or_else(medium).or_else(large).zip(all_leaves.push(leaves.len(), leaves.iter().copied()));
        let ((form, [nodes, edges]), leaves) = pushed.expect("a large chart has room for every number");
        Place { form, leaves, nodes, edges }
    }

    pub fn get(&self, place: Place) -> AnyChart<'_> {
        let leaves = self.leaves.get(place.leaves);
        match place.form {
            Form::Small => AnyChart::Small(self.small.get(leaves, place)),
            Form::Medium => AnyChart::Medium(self.medium.get(leaves, place)),
            Form::Large => AnyChart::Large(self.large.get(leaves, place)),
        }
    }

    /// Replaces the numbers of strings by their `names`.
    pub fn rename(&mut self, names: &[u32]) {
        checked(self.leaves.iter_mut()).for_each(|leaf| leaf.seat.string = names[leaf.seat.string as usize]);
        self.small.rename(names);
        self.medium.rename(names);
        self.large.rename(names);
    }

    /// Bytes held.
    pub fn size(&self) -> usize {
        self.leaves.size() + self.small.size() + self.medium.size() + self.large.size()
    }
}

impl<P: Packed> Default for OfForm<P> {
    fn default() -> OfForm<P> {
        OfForm { nodes: Blocks::default(), edges: Blocks::default() }
    }
}

impl<P: Packed> OfForm<P> {
    /// Puts the nodes and edges of a chart behind the others, if the form has room for their numbers.
    fn push(&mut self, nodes: &[Node<u32>], edges: &[Edge]) -> Option<[Slice; 2]> {
        let narrow = |node: &Node<u32>| {
            let [end, adapted] = [node.end, node.adapted].map(|number| P::Index::try_from(number).ok());
            Some(Node { end: end?, adapted: adapted?, string: node.string })
        };
        // Edges first: it is they that have no room in a smaller form.
        let packed = self.edges.push(edges.len(), edges.iter().map_while(|&edge| P::pack(edge)))?;
        let narrowed = self.nodes.push(nodes.len(), nodes.iter().map_while(narrow))?;
        Some([narrowed, packed])
    }

    fn get<'c>(&'c self, leaves: &'c [Leaf], place: Place) -> Chart<'c, P> {
        Chart { leaves, nodes: self.nodes.get(place.nodes), edges: self.edges.get(place.edges) }
    }

    fn rename(&mut self, names: &[u32]) {
        checked(self.nodes.iter_mut()).for_each(|node| node.string = names[node.string as usize]);
    }

    fn size(&self) -> usize {
        self.nodes.size() + self.edges.size()
    }
}

impl AnyChart<'_> {
    /// Number of edges.
    pub fn n_edges(&self) -> usize {
        with_chart!(self, chart => chart.edges.len())
    }

    /// The values of strings that tables can have.
    pub fn seats(&self) -> Vec<(usize, Seat)> {
        with_chart!(self, chart => chart.seats().collect())
    }

    /// Whether the base of the adapted nonterminal at `value` has a single derivation.
    pub fn is_unique(&self, value: usize, fixed: &Fixed) -> bool {
        with_chart!(self, chart => chart.is_unique(value, fixed))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::models::sampler::chart::{Shares, Sketch, SketchStep, Weights};
    use crate::num::random::stream;

    /// The value of the last node in a chart of that form, and a tree that is drawn from it.
    fn value_and_tree<P: Packed>(
        (leaves, nodes, edges): (&[Leaf], &[Node<u32>], &[Edge]),
        rules: &[f64],
    ) -> (f64, Vec<SketchStep>) {
        let mut fixed = Fixed::default();
        fixed.node(&[crate::forest::Edge { param: 1, tails: [0, 0] }]);
        let mut of_form = OfForm::<P>::default();
        let [nodes, edges] = of_form.push(nodes, edges).expect("it is small");
        let chart = Chart { leaves, nodes: of_form.nodes.get(nodes), edges: of_form.edges.get(edges) };
        let shares = Shares { shares: &[0.0, 0.5, 1.5], inverse_totals: &[0.25, 0.5] };
        let weights = Weights { rules, fixed: &[1.0, rules[1]], opens: &[0.75, 0.5], joins: shares };
        let (mut beta, mut sketch, root) = (Vec::new(), Sketch::default(), chart.len() - 1);
        let value = chart.inside(root, None, &weights, &mut beta);
        let random = &mut stream(5, 0, 0);
        chart.draw((root, false), &fixed.forest, &weights, &beta, &mut sketch, random);
        (value, sketch.steps)
    }

    proptest! {
        /// Law: all forms of a chart have the same values and trees.
        #[test]
        fn charts_of_all_forms_are_alike(
            heads in prop::collection::vec((0..3_u32, prop::collection::vec((0..4_u32, any::<[u8; 2]>()), 1..4)), 1..12),
            rules in prop::collection::vec(0.01..1.0, 4),
        ) {
            let leaf = |string| Leaf { fixed: 1, seat: Seat { string, adapted: string } };
            let leaves = [leaf(0), leaf(1)];
            let (mut nodes, mut edges) = (Vec::new(), Vec::new());
            for (adapted, of_it) in heads {
                let n_values = 3 + nodes.len() as u32;
                edges.extend(of_it.into_iter().map(|(param, [left, right])| Edge {
                    param,
                    tails: [1 + u32::from(left) % (n_values - 1), u32::from(right) % n_values],
                }));
                nodes.push(Node { end: edges.len() as u32, adapted, string: adapted });
            }
            let chart = (&leaves[..], &nodes[..], &edges[..]);
            let large = value_and_tree::<Edge>(chart, &rules);
            prop_assert_eq!(&value_and_tree::<Word>(chart, &rules), &large);
            prop_assert_eq!(&value_and_tree::<[u16; 3]>(chart, &rules), &large);
        }
    }
}
