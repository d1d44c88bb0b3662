//! The derivations of a sentence, laid out for the inside values that are computed anew for every draw.
//!
//! Values are numbered: 0 is one; then come the *leaves*, which are nodes without adapted nonterminals below them
//! ([`super::fixed`]), or adapted nonterminals right above such; then all other *nodes*, tails before heads.
//!
//! An adapted A and its base A° are one node: its value is opens(A) · β(A°) + joins(string), where β(A°) is the sum over the edges of A°.
//! Nodes of a symbol and a length stand together, those with fewer edges first, so that processors guess right how long loops are.
//!
//! Values are computed in real space first, and again with numbers of unbounded exponent if the root's is out of range
//! ([`crate::forest::inside`]).

use rand_pcg::Pcg64Mcg;

use super::fixed::Fixed;
use crate::forest::inside::Number;
use crate::forest::{Forest, sample};
use crate::grammar::ParamId;
use crate::num::Wide;
use crate::num::random::uniform;
use crate::num::wide::heat;
use crate::stop::{Meter, checked};

/// A number that can be heated.
pub(super) trait Weight: Number + PartialOrd {
    /// `weight` to the power 1/T.
    fn heated(weight: f64, temperature: f64) -> Self;
}

impl Weight for f64 {
    fn heated(weight: f64, temperature: f64) -> f64 {
        Wide::heated(weight, temperature).to_f64()
    }
}

impl Weight for Wide {
    fn heated(weight: f64, temperature: f64) -> Wide {
        let mut weights = [Wide::from_f64(weight)];
        heat(&mut weights, temperature);
        weights[0]
    }
}

/// The form in which a chart keeps its edges and nodes: small charts take less memory to read.
pub(super) trait Packed: Copy {
    /// Where the edges of a node end, and the number of its adapted nonterminal.
    type Index: Copy + TryFrom<u32> + Into<u32>;
    /// Packs an edge, if it is small enough.
    fn pack(edge: Edge) -> Option<Self>;
    fn edge(self) -> Edge;
}

/// A parameter of 8 bits, and tails of 12 each.
#[derive(Clone, Copy)]
pub(super) struct Word(u32);

impl Packed for Word {
    type Index = u16;

    fn pack(Edge { param, tails: [left, right] }: Edge) -> Option<Word> {
        let is_small = param < 1 << 8 && left.max(right) < 1 << 12;
        is_small.then_some(Word(param << 24 | left << 12 | right))
    }

    #[inline]
    fn edge(self) -> Edge {
        Edge { param: self.0 >> 24, tails: [self.0 >> 12 & 0xfff, self.0 & 0xfff] }
    }
}

/// A parameter and tails.
impl Packed for [u16; 3] {
    type Index = u32;

    fn pack(Edge { param, tails: [left, right] }: Edge) -> Option<[u16; 3]> {
        Some([param.try_into().ok()?, left.try_into().ok()?, right.try_into().ok()?])
    }

    #[inline]
    fn edge(self) -> Edge {
        let [param, left, right] = self;
        Edge { param: param.into(), tails: [left.into(), right.into()] }
    }
}

impl Packed for Edge {
    type Index = u32;

    fn pack(edge: Edge) -> Option<Edge> {
        Some(edge)
    }

    #[inline]
    fn edge(self) -> Edge {
        self
    }
}

/// A fixed node, or an adapted nonterminal whose base is one.
#[derive(Clone, Copy)]
pub(super) struct Leaf {
    pub fixed: u32,
    pub seat: Seat,
}

/// Any other node.
#[derive(Clone, Copy)]
pub(super) struct Node<I> {
    /// Where its edges end; they begin where those of the node before end.
    pub end: I,
    /// As in its [`Seat`].
    pub adapted: I,
    pub string: u32,
}

impl<I: Copy + Into<u32>> Node<I> {
    #[inline]
    pub fn seat(&self) -> Seat {
        Seat { string: self.string, adapted: self.adapted.into() }
    }

    #[inline]
    fn end(&self) -> usize {
        self.end.into() as usize
    }
}

/// The adapted nonterminal that a node is of.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub(super) struct Seat {
    /// Its string; 0 for one that no table can have while the node is drawn, and for nodes of no adapted nonterminal.
    pub string: u32,
    /// Its number and one; 0 for none.
    pub adapted: u32,
}

/// A way to derive a node.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) struct Edge {
    pub param: u32,
    /// Numbers of values; 0 stands in for an absent one.
    pub tails: [u32; 2],
}

/// See the module's documentation.
pub(super) struct Chart<'c, P: Packed> {
    leaves: &'c [Leaf],
    nodes: &'c [Node<P::Index>],
    edges: &'c [P],
}

/// Weights of derivations while a tree or label is drawn.
pub(super) struct Weights<'w, N, J> {
    /// Weights of rules by parameter.
    pub rules: &'w [N],
    /// Weights by fixed node.
    pub fixed: &'w [N],
    /// Weight of opening a table, by adapted nonterminal.
    pub opens: &'w [N],
    pub joins: J,
}

/// Weight of joining any table of a string.
pub(super) trait Joins<N> {
    fn weight(&self, seat: Seat) -> N;
}

/// Σ_k (n_k − d) / (n + c).
#[derive(Clone, Copy)]
pub(super) struct Shares<'w> {
    /// By string: Σ_k (n_k − d); 0 for string 0.
    pub shares: &'w [f64],
    /// 1 / (n + c) by adapted nonterminal.
    pub inverse_totals: &'w [f64],
}

/// Weights to the power 1/T.
#[derive(Clone, Copy)]
pub(super) struct Heated<'w> {
    pub shares: Shares<'w>,
    pub temperature: f64,
}

impl Joins<f64> for Shares<'_> {
    #[inline]
    fn weight(&self, seat: Seat) -> f64 {
        self.shares[seat.string as usize] * self.inverse_totals[seat.adapted as usize - 1]
    }
}

impl<N: Weight> Joins<N> for Heated<'_> {
    fn weight(&self, seat: Seat) -> N {
        N::heated(self.shares.weight(seat), self.temperature)
    }
}

/// A step of a leftmost derivation that was drawn.
#[derive(Clone, PartialEq, Debug)]
pub(super) enum SketchStep {
    Param(ParamId),
    /// Joins any of the tables with that string.
    Joins(u32),
    /// Opens a table; its label follows, up to the [`SketchStep::End`] of it.
    Opens(Seat),
    End,
}

/// A leftmost derivation that is drawn, in memory that is used again.
#[derive(Default)]
pub(super) struct Sketch {
    pub steps: Vec<SketchStep>,
    /// Remaining draws, last first.
    open: Vec<Open>,
    below: Vec<u32>,
}

enum Open {
    Value(usize),
    /// A value without its tables.
    Base(usize),
    /// A label ends.
    End,
}

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

impl<P: Packed> Chart<'_, P> {
    /// Number of values.
    pub fn len(&self) -> usize {
        1 + self.leaves.len() + self.nodes.len()
    }

    /// The edges of node number `node`.
    fn edges(&self, node: usize) -> &[P] {
        let start = node.checked_sub(1).map_or(0, |before| self.nodes[before].end());
        &self.edges[start..self.nodes[node].end()]
    }

    /// The places of the values that `value` is computed from.
    fn tails(&self, value: usize) -> impl Iterator<Item = usize> + '_ {
        let node = value.checked_sub(1 + self.leaves.len());
        let edges = node.map_or(&[][..], |node| self.edges(node));
        edges.iter().flat_map(|edge| edge.edge().tails).map(|tail| tail as usize)
    }

    /// Number of the edges of a value.
    fn n_edges(&self, value: usize) -> usize {
        let node = value.checked_sub(1 + self.leaves.len());
        node.map_or(0, |node| self.edges(node).len())
    }

    /// The adapted nonterminal of a value.
    fn seat(&self, value: usize) -> Seat {
        match (value - 1).checked_sub(self.leaves.len()) {
            None => self.leaves[value - 1].seat,
            Some(node) => self.nodes[node].seat(),
        }
    }

    fn seats(&self) -> impl Iterator<Item = (usize, Seat)> + '_ {
        let seats = self.leaves.iter().map(|leaf| leaf.seat).chain(self.nodes.iter().map(Node::seat));
        (1..).zip(seats).filter(|(_, seat)| seat.string > 0)
    }

    fn is_unique(&self, value: usize, fixed: &Fixed) -> bool {
        let Some(node) = (value - 1).checked_sub(self.leaves.len()) else {
            return fixed.is_unique(self.leaves[value - 1].fixed);
        };
        let is_fixed = |tail: u32| match (tail as usize).checked_sub(1) {
            None => true,
            Some(at) => {
                let leaf = self.leaves.get(at).filter(|leaf| leaf.seat.adapted == 0);
                leaf.is_some_and(|leaf| fixed.is_unique(leaf.fixed))
            }
        };
        matches!(self.edges(node), [only] if only.edge().tails.into_iter().all(is_fixed))
    }

    /// The values below the base of `value`, ascending.
    pub fn below(&self, value: usize) -> Box<[u32]> {
        let mut is_below = vec![false; value + 1];
        self.tails(value).for_each(|tail| is_below[tail] = true);
        let mut meter = Meter::default();
        for at in (1..value).rev() {
            if is_below[at] {
                meter.add(1 + self.n_edges(at));
                self.tails(at).for_each(|tail| is_below[tail] = true);
            }
        }
        (1..value as u32).filter(|&at| is_below[at as usize]).collect()
    }

    /// Fills in all values, and returns that of `root`; or the values that are `below` its base, and returns that of its base.
    pub fn inside<N: Weight>(
        &self,
        root: usize,
        below: Option<&[u32]>,
        weights: &Weights<N, impl Joins<N>>,
        beta: &mut Vec<N>,
    ) -> N {
        if beta.len() < self.len() {
            beta.resize(self.len(), N::ZERO);
        }
        let beta = &mut beta[..self.len()];
        beta[0] = N::ONE;
        let mut meter = Meter::default();
        if let Some(below) = below {
            for at in below.iter().map(|&at| at as usize) {
                meter.add(1 + self.n_edges(at));
                beta[at] = weights.seated(self.seat(at), self.base(at, weights, beta));
            }
            return self.base(root, weights, beta);
        }
        for (leaf, beta) in checked(self.leaves.iter().zip(&mut beta[1..])) {
            *beta = weights.seated(leaf.seat, weights.fixed[leaf.fixed as usize]);
        }
        let mut start = 0;
        for (at, node) in (1 + self.leaves.len()..).zip(self.nodes) {
            let end = node.end();
            meter.add(1 + end - start);
            let base = sum(&self.edges[start..end], weights.rules, beta);
            beta[at] = weights.seated(node.seat(), base);
            start = end;
        }
        beta[root]
    }

    /// The value at `at` but for its tables, whose tails are filled in.
    fn base<N: Weight>(&self, at: usize, weights: &Weights<N, impl Joins<N>>, beta: &[N]) -> N {
        match (at - 1).checked_sub(self.leaves.len()) {
            None => weights.fixed[self.leaves[at - 1].fixed as usize],
            Some(node) => sum(self.edges(node), weights.rules, beta),
        }
    }

    /// Draws a derivation of `root`, or of its base if it is a label, whose values are filled in.
    pub fn draw<N: Weight>(
        &self,
        (root, is_label): (usize, bool),
        fixed: &Forest,
        weights: &Weights<N, impl Joins<N>>,
        beta: &[N],
        sketch: &mut Sketch,
        random: &mut Pcg64Mcg,
    ) {
        let Sketch { steps: sketch, open, below } = sketch;
        sketch.clear();
        open.clear();
        open.push(if is_label { Open::Base(root) } else { Open::Value(root) });
        while let Some(next) = open.pop() {
            // Where the base of the value begins in what is drawn from, its factor there, the total, and the point if it is drawn.
            let (at, before, factor, total, point) = match next {
                Open::End => {
                    sketch.push(SketchStep::End);
                    continue;
                }
                Open::Base(at) => (at, N::ZERO, N::ONE, self.base(at, weights, beta), None),
                Open::Value(at) => {
                    let seat = self.seat(at);
                    let (joins, opens) = match seat.adapted {
                        0 => (N::ZERO, N::ONE),
                        adapted => (weights.joins.weight(seat), weights.opens[adapted as usize - 1]),
                    };
                    let point = (joins > N::ZERO).then(|| N::from_f64(uniform(random)) * beta[at]);
                    if point.is_some_and(|point| point < joins) {
                        sketch.push(SketchStep::Joins(seat.string));
                        continue;
                    }
                    if seat.adapted > 0 {
                        sketch.push(SketchStep::Opens(seat));
                        open.push(Open::End);
                    }
                    (at, joins, opens, beta[at], point)
                }
            };
            let Some(node) = (at - 1).checked_sub(self.leaves.len()) else {
                let root = self.leaves[at - 1].fixed as usize;
                sample::descend(fixed, root, weights.rules, weights.fixed, random, below, |_, edge| {
                    push_param(edge.param, sketch);
                });
                continue;
            };
            let edge = match self.edges(node) {
                [only] => only.edge(),
                edges => {
                    let point = point.unwrap_or_else(|| N::from_f64(uniform(random)) * total);
                    choose(edges, before, factor, point, weights.rules, beta)
                }
            };
            push_param(edge.param, sketch);
            let tails = edge.tails.into_iter().rev().map(|tail| tail as usize);
            open.extend(tails.filter(|&tail| tail != 0).map(Open::Value));
        }
    }
}

/// The first edge at which the running sum of the values, times `factor` and with `before` in front, exceeds `point`.
fn choose<N: Weight, P: Packed>(
    edges: &[P],
    before: N,
    factor: N,
    point: N,
    rules: &[N],
    beta: &[N],
) -> Edge {
    let (mut sum, mut last) = (before, edges[0].edge());
    for edge in edges.iter().map(|edge| edge.edge()) {
        let value = factor * edge.value(rules, beta);
        if value > N::ZERO {
            sum = sum + value;
            last = edge;
            if sum > point {
                break;
            }
        }
    }
    last // also where rounding brings the point up to the total
}

/// The sum of the values of `edges`.
#[inline]
fn sum<N: Weight, P: Packed>(edges: &[P], rules: &[N], beta: &[N]) -> N {
    edges.iter().fold(N::ZERO, |sum, edge| sum + edge.edge().value(rules, beta))
}

impl Edge {
    #[inline]
    fn value<N: Weight>(self, rules: &[N], beta: &[N]) -> N {
        let [left, right] = self.tails;
        rules[self.param as usize] * (beta[left as usize] * beta[right as usize])
    }
}

impl<N: Weight, J: Joins<N>> Weights<'_, N, J> {
    /// The value of a node with that base.
    #[inline]
    fn seated(&self, seat: Seat, base: N) -> N {
        match seat.adapted {
            0 => base,
            adapted => self.opens[adapted as usize - 1] * base + self.joins.weight(seat),
        }
    }
}

fn push_param(param: u32, sketch: &mut Vec<SketchStep>) {
    if param != ParamId::ONE.0 {
        sketch.push(SketchStep::Param(ParamId(param)));
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::models::sampler::fixed::Fixed;
    use crate::num::random::stream;

    fn packed<P: Packed>(edge: Edge) -> Option<Edge> {
        P::pack(edge).map(Packed::edge)
    }

    /// Law: a form keeps the edges that it has room for, and refuses all others.
    #[test]
    fn packed_edges_come_back() {
        let around = |bits: u32| [0, 1, (1 << bits) - 1, 1 << bits];
        for param in [around(8), around(16)].concat() {
            for left in [around(12), around(16)].concat() {
                for right in [around(12), around(16)].concat() {
                    let edge = Edge { param, tails: [left, right] };
                    let largest = left.max(right);
                    assert_eq!(packed::<Word>(edge), (param < 256 && largest < 4096).then_some(edge));
                    assert_eq!(packed::<[u16; 3]>(edge), (param.max(largest) < 65_536).then_some(edge));
                    assert_eq!(packed::<Edge>(edge), Some(edge));
                }
            }
        }
    }

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
