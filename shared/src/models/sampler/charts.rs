//! The charts of a shard, each in the smallest form that it has room in, in a few large blocks.

use rustc_hash::FxHashMap;

use super::chart::{Chart, Leaf};
use super::fixed::Fixed;
use super::packed::{Edge, Form, Large, Medium, Node, Packed, Seat, Small};
use crate::grammar::ParamId;
use crate::stop::checked;

/// A chart of some form.
pub(super) enum AnyChart<'c> {
    Small(Chart<'c, Small>),
    Medium(Chart<'c, Medium>),
    Large(Chart<'c, Large>),
}

/// Charts, each in the smallest form that it has room in.
#[derive(Default)]
pub(super) struct Charts {
    /// The parameters of edges, in the order in which they were found, and the number of each: there are few beside those of the grammar.
    params: Vec<ParamId>,
    numbers: FxHashMap<ParamId, u32>,
    leaves: Blocks<Leaf>,
    small: OfForm<Small>,
    medium: OfForm<Medium>,
    large: OfForm<Large>,
}

/// Nodes and edges of the charts of a form.
struct OfForm<F: Form> {
    nodes: Blocks<F::Node>,
    edges: Blocks<F::Edge>,
}

/// Where a chart is.
#[derive(Clone, Copy)]
pub(super) struct Place {
    size: Size,
    leaves: Slice,
    nodes: Slice,
    edges: Slice,
}

#[derive(Clone, Copy)]
enum Size {
    Small,
    Medium,
    Large,
}

/// Slices one behind the other, in blocks that do not move: a list that grows would be in memory twice. Each is eight times as large as the one before it,
/// until they are so large that every allocator gives them back to the system; of the last one only what is used takes memory.
struct Blocks<T>(Vec<Vec<T>>);

/// Where a slice is.
#[derive(Clone, Copy)]
struct Slice {
    block: u32,
    start: u32,
    end: u32,
}

impl<T> Blocks<T> {
    /// Items of the first block,
    const FIRST: usize = (1 << 16) / size_of::<T>();
    /// and of the largest ones: the C library of Linux keeps what has up to 32 MiB.
    const LARGEST: usize = (33 << 20) / size_of::<T>();

    /// Puts `n` items behind the others; `None` if there are fewer.
    fn push(&mut self, n: usize, items: impl Iterator<Item = T>) -> Option<Slice> {
        let capacity = self.0.last().map_or(0, Vec::capacity);
        if self.0.last().is_none_or(|last| capacity - last.len() < n) {
            let next = (8 * capacity).clamp(Self::FIRST, Self::LARGEST);
            self.0.push(Vec::with_capacity(n.max(next)));
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
    /// The number of a parameter among those of edges.
    pub fn number(&mut self, param: ParamId) -> u32 {
        *self.numbers.entry(param).or_insert_with(|| {
            self.params.push(param);
            self.params.len() as u32 - 1
        })
    }

    /// The parameters of edges, by number.
    pub fn params(&self) -> &[ParamId] {
        &self.params
    }

    /// Puts a chart of these values and edges behind the others.
    pub fn push(&mut self, leaves: &[Leaf], nodes: &[Node], edges: &[Edge]) -> Place {
        let Charts { leaves: all_leaves, small, medium, large, .. } = self;
        let small = small.push(nodes, edges).map(|parts| (Size::Small, parts));
        let medium = || medium.push(nodes, edges).map(|parts| (Size::Medium, parts));
        let large = || large.push(nodes, edges).map(|parts| (Size::Large, parts));
        let pushed =
            small.or_else(medium).or_else(large).zip(all_leaves.push(leaves.len(), leaves.iter().copied()));
        let ((size, [nodes, edges]), leaves) = pushed.expect("a large chart has room for every number");
        Place { size, leaves, nodes, edges }
    }

    pub fn get(&self, place: Place) -> AnyChart<'_> {
        let shared = (&self.params[..], self.leaves.get(place.leaves));
        match place.size {
            Size::Small => AnyChart::Small(self.small.get(shared, place)),
            Size::Medium => AnyChart::Medium(self.medium.get(shared, place)),
            Size::Large => AnyChart::Large(self.large.get(shared, place)),
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

impl<F: Form> Default for OfForm<F> {
    fn default() -> OfForm<F> {
        OfForm { nodes: Blocks::default(), edges: Blocks::default() }
    }
}

impl<F: Form> OfForm<F> {
    /// Puts the nodes and edges of a chart behind the others, if the form has room for their numbers.
    fn push(&mut self, nodes: &[Node], edges: &[Edge]) -> Option<[Slice; 2]> {
        // Edges first: it is they that have no room in a smaller form.
        let edges = self.edges.push(edges.len(), edges.iter().map_while(|&edge| F::Edge::pack(edge)))?;
        let nodes = self.nodes.push(nodes.len(), nodes.iter().map_while(|&node| F::Node::pack(node)))?;
        Some([nodes, edges])
    }

    fn get<'c>(&'c self, (params, leaves): (&'c [ParamId], &'c [Leaf]), place: Place) -> Chart<'c, F> {
        Chart { params, leaves, nodes: self.nodes.get(place.nodes), edges: self.edges.get(place.edges) }
    }

    fn rename(&mut self, names: &[u32]) {
        for packed in checked(self.nodes.iter_mut()) {
            let mut node = packed.unpack();
            node.seat.string = names[node.seat.string as usize];
            *packed = F::Node::pack(node).expect("names are no larger than the numbers before");
        }
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
    fn value_and_tree<F: Form>(
        (leaves, nodes, edges): (&[Leaf], &[Node], &[Edge]),
        rules: &[f64],
    ) -> (f64, Vec<SketchStep>) {
        let mut fixed = Fixed::default();
        fixed.node(&[crate::forest::Edge { param: 1, tails: [0, 0] }]);
        let mut of_form = OfForm::<F>::default();
        let [nodes, edges] = of_form.push(nodes, edges).expect("it is small");
        let params = [0, 1, 2, 3].map(ParamId);
        let (nodes, edges) = (of_form.nodes.get(nodes), of_form.edges.get(edges));
        let chart = Chart::<F> { params: &params, leaves, nodes, edges };
        let shares = Shares { shares: &[0.0, 0.5, 1.5], inverse_totals: &[0.25, 0.5] };
        let weights =
            Weights { rules, edges: rules, fixed: &[1.0, rules[1]], opens: &[0.75, 0.5], joins: shares };
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
                nodes.push(Node { end: edges.len() as u32, seat: Seat { string: adapted, adapted } });
            }
            let chart = (&leaves[..], &nodes[..], &edges[..]);
            let large = value_and_tree::<Large>(chart, &rules);
            prop_assert_eq!(&value_and_tree::<Small>(chart, &rules), &large);
            prop_assert_eq!(&value_and_tree::<Medium>(chart, &rules), &large);
        }
    }
}
