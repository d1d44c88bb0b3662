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
use super::packed::{Edge, Form, Packed, Seat};
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

/// A fixed node, or an adapted nonterminal whose base is one.
#[derive(Clone, Copy)]
pub(super) struct Leaf {
    pub fixed: u32,
    pub seat: Seat,
}

/// See the module's documentation.
pub(super) struct Chart<'c, F: Form> {
    /// The parameters of edges, by number.
    pub params: &'c [ParamId],
    pub leaves: &'c [Leaf],
    pub nodes: &'c [F::Node],
    pub edges: &'c [F::Edge],
}

/// Weights of derivations while a tree or label is drawn.
pub(super) struct Weights<'w, N, J> {
    /// Weights of rules by parameter,
    pub rules: &'w [N],
    /// and by number among those of edges.
    pub edges: &'w [N],
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

impl<F: Form> Chart<'_, F> {
    /// Number of values.
    pub fn len(&self) -> usize {
        1 + self.leaves.len() + self.nodes.len()
    }

    /// The edges of node number `node`.
    fn edges(&self, node: usize) -> &[F::Edge] {
        let end = |node: usize| self.nodes[node].unpack().end as usize;
        &self.edges[node.checked_sub(1).map_or(0, end)..end(node)]
    }

    /// The places of the values that `value` is computed from.
    fn tails(&self, value: usize) -> impl Iterator<Item = usize> + '_ {
        let node = value.checked_sub(1 + self.leaves.len());
        let edges = node.map_or(&[][..], |node| self.edges(node));
        edges.iter().flat_map(|edge| edge.unpack().tails).map(|tail| tail as usize)
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
            Some(node) => self.nodes[node].unpack().seat,
        }
    }

    /// The values of strings that tables can have.
    pub fn seats(&self) -> impl Iterator<Item = (usize, Seat)> + '_ {
        let of_nodes = self.nodes.iter().map(|node| node.unpack().seat);
        let seats = self.leaves.iter().map(|leaf| leaf.seat).chain(of_nodes);
        (1..).zip(seats).filter(|(_, seat)| seat.string > 0)
    }

    /// Whether the base of the adapted nonterminal at `value` has a single derivation.
    pub fn is_unique(&self, value: usize, fixed: &Fixed) -> bool {
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
        matches!(self.edges(node), [only] if only.unpack().tails.into_iter().all(is_fixed))
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
            let node = node.unpack();
            let end = node.end as usize;
            meter.add(1 + end - start);
            let base = sum(&self.edges[start..end], weights.edges, beta);
            beta[at] = weights.seated(node.seat, base);
            start = end;
        }
        beta[root]
    }

    /// The value at `at` but for its tables, whose tails are filled in.
    fn base<N: Weight>(&self, at: usize, weights: &Weights<N, impl Joins<N>>, beta: &[N]) -> N {
        match (at - 1).checked_sub(self.leaves.len()) {
            None => weights.fixed[self.leaves[at - 1].fixed as usize],
            Some(node) => sum(self.edges(node), weights.edges, beta),
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
                [only] => only.unpack(),
                edges => {
                    let point = point.unwrap_or_else(|| N::from_f64(uniform(random)) * total);
                    choose(edges, before, factor, point, weights.edges, beta)
                }
            };
            push_param(self.params[edge.param as usize].0, sketch);
            let tails = edge.tails.into_iter().rev().map(|tail| tail as usize);
            open.extend(tails.filter(|&tail| tail != 0).map(Open::Value));
        }
    }
}

/// The first edge at which the running sum of the values, times `factor` and with `before` in front, exceeds `point`.
fn choose<N: Weight, P: Packed<Edge>>(
    edges: &[P],
    before: N,
    factor: N,
    point: N,
    weights: &[N],
    beta: &[N],
) -> Edge {
    let (mut sum, mut last) = (before, edges[0].unpack());
    for edge in edges.iter().map(|edge| edge.unpack()) {
        let value = factor * edge.value(weights, beta);
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
fn sum<N: Weight, P: Packed<Edge>>(edges: &[P], weights: &[N], beta: &[N]) -> N {
    edges.iter().fold(N::ZERO, |sum, edge| sum + edge.unpack().value(weights, beta))
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

impl Edge {
    #[inline]
    fn value<N: Weight>(self, weights: &[N], beta: &[N]) -> N {
        let [left, right] = self.tails;
        weights[self.param as usize] * (beta[left as usize] * beta[right as usize])
    }
}

fn push_param(param: u32, sketch: &mut Vec<SketchStep>) {
    if param != ParamId::ONE.0 {
        sketch.push(SketchStep::Param(ParamId(param)));
    }
}
