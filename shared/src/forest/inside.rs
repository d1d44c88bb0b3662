//! Inside and outside passes, and expected counts.
//!
//! In: a [`Forest`] in topological order, weights by edge parameter, scratch memory. Out: the total weight of all
//! derivations, and the expected number of uses of every parameter (Lari & Young 1990; Baker 1979).
//! Cost: two multiplications and an addition per edge inside, five multiplications outside; no allocation once the
//! scratch has grown.
//!
//! Both passes are written once over [`Number`]. They run in real space first, where weights below 2^−500 count as zero
//! ([`real`]). The result is trusted if the root's inside value is between 2^−400 and 2^900. Else the item is computed again
//! with [`Wide`], whose exponent has no bounds that matter. Real and wide arithmetic round alike.
//!
//! What the real pass loses: in a round without annealing, the weights of a nonterminal sum to at most one. Then no inside
//! value exceeds one, and no outside value exceeds one over the root's inside value. So an edge that weighs less than 2^−500
//! has a posterior below 2^−100, and so has a node whose value underflows. Counts may lack these posteriors, and the root's
//! inside value a share of 2^−100, which is far below its rounding. Unit weights and annealed weights can sum to more, and
//! values can exceed one; the bound on the posterior then grows by the factor by which they do.
//!
//! The weights of an item alone decide which pass it takes, so results are the same on every machine.

use std::ops::{Add, Mul};

use super::{Edge, Forest};
use crate::num::{Wide, special};
use crate::stop::Meter;

/// Operations on a number that the passes need.
pub trait Number: Copy + Add<Output = Self> + Mul<Output = Self> {
    /// Zero.
    const ZERO: Self;
    /// One.
    const ONE: Self;
    /// From a finite non-negative number.
    fn from_f64(value: f64) -> Self;
    /// Nearest `f64`.
    fn to_f64(self) -> f64;
}

impl Number for f64 {
    const ZERO: f64 = 0.0;
    const ONE: f64 = 1.0;
    fn from_f64(value: f64) -> f64 {
        value
    }
    fn to_f64(self) -> f64 {
        self
    }
}

impl Number for Wide {
    const ZERO: Wide = Wide::ZERO;
    const ONE: Wide = Wide::ONE;
    fn from_f64(value: f64) -> Wide {
        Wide::from_f64(value)
    }
    fn to_f64(self) -> f64 {
        Wide::to_f64(self)
    }
}

/// Weights by parameter, in both forms.
pub struct Weights<'a> {
    /// The exact weights.
    pub wide: &'a [Wide],
    /// The weights rounded to `f64` ([`real`]).
    pub real: &'a [f64],
}

/// Logarithm below which a weight is zero in real space, 2^−500: products with larger ones rarely become subnormal numbers, which are slow.
pub const LEAST_LN: f64 = -500.0 * std::f64::consts::LN_2;

/// `weights` in real space, zero below 2^−500.
pub fn real(weights: &[Wide]) -> Vec<f64> {
    weights.iter().map(|weight| if weight.exponent < -500 { 0.0 } else { weight.to_f64() }).collect()
}

/// Node values, reused from item to item.
#[derive(Default)]
pub struct Scratch {
    real: Values<f64>,
    wide: Values<Wide>,
}

struct Values<N> {
    /// Inside value of every node.
    beta: Vec<N>,
    /// Outside value of every node, over the root's inside value.
    alpha: Vec<N>,
}

impl<N> Default for Values<N> {
    fn default() -> Values<N> {
        Values { beta: Vec::new(), alpha: Vec::new() }
    }
}

/// Totals of expected counts.
pub struct Counts<'a> {
    /// By parameter: expected uses are added, times the item's multiplicity.
    pub uses: &'a mut [f64],
    /// By parameter: Σ −ln(1 − posterior of the use) is added, unless empty.
    pub losses: &'a mut [f64],
}

/// Above this, nothing can take the place of a use: its loss is infinite.
const CERTAIN: f64 = 1.0 - 1e-13;
/// Below this, −ln(1 − p) is p.
const NEGLIGIBLE: f64 = 1e-9;

/// The total weight of all derivations of one item, and the expected uses of every parameter. `[weights.len()]`
///
/// [`expect`] does the same for many items, in memory that is used again.
pub fn expected_uses(forest: &Forest, weights: &[Wide]) -> (Wide, Vec<f64>) {
    let (mut uses, real) = (vec![0.0; weights.len()], real(weights));
    let mut counts = Counts { uses: &mut uses, losses: &mut [] };
    let z =
        expect(forest, &Weights { wide: weights, real: &real }, 1.0, &mut counts, &mut Scratch::default());
    (z, uses)
}

/// Adds the expected counts of an item that occurs `multiplicity` times, and gives the total weight of its
/// derivations. Adds nothing if that is zero.
pub fn expect(
    forest: &Forest,
    weights: &Weights,
    multiplicity: f64,
    counts: &mut Counts,
    scratch: &mut Scratch,
) -> Wide {
    if counts.losses.is_empty() {
        return edge_posteriors(forest, weights, scratch, |_, edge, posterior| {
            counts.uses[edge.param as usize] += multiplicity * posterior;
        });
    }
    edge_posteriors(forest, weights, scratch, |_, edge, posterior| {
        counts.uses[edge.param as usize] += multiplicity * posterior;
        counts.losses[edge.param as usize] += multiplicity * loss(posterior);
    })
}

/// Calls `found(node, edge, posterior)` for every edge, heads before tails, where the posterior is the expected number
/// of times that the edge is part of the derivation; gives the total weight of the derivations, and calls nothing if
/// that is zero.
pub fn edge_posteriors(
    forest: &Forest,
    weights: &Weights,
    scratch: &mut Scratch,
    mut found: impl FnMut(usize, &Edge, f64),
) -> Wide {
    match real_posteriors(forest, weights.real, scratch, &mut found) {
        Some(z) => Wide::from_f64(z),
        None => wide_posteriors(forest, weights.wide, scratch, found),
    }
}

/// [`edge_posteriors`] in real space. `None`, and no calls, if its result could not be trusted.
pub fn real_posteriors(
    forest: &Forest,
    weights: &[f64],
    scratch: &mut Scratch,
    found: impl FnMut(usize, &Edge, f64),
) -> Option<f64> {
    let z = inside_values(forest, forest.root(), weights, 1..=forest.root(), &mut scratch.real.beta);
    in_range(z).then(|| {
        outside(forest, weights, 1.0 / z, &mut scratch.real, found);
        z
    })
}

/// [`edge_posteriors`] of [`Wide`] numbers.
pub fn wide_posteriors(
    forest: &Forest,
    weights: &[Wide],
    scratch: &mut Scratch,
    found: impl FnMut(usize, &Edge, f64),
) -> Wide {
    let z = inside_values(forest, forest.root(), weights, 1..=forest.root(), &mut scratch.wide.beta);
    if !z.is_zero() {
        outside(forest, weights, Wide::ONE / z, &mut scratch.wide, found);
    }
    z
}

/// The total weight of the derivations, as [`edge_posteriors`] gives it, without outside values.
pub fn total_weight(forest: &Forest, weights: &Weights, scratch: &mut Scratch) -> Wide {
    let z = inside_values(forest, forest.root(), weights.real, 1..=forest.root(), &mut scratch.real.beta);
    if in_range(z) {
        return Wide::from_f64(z);
    }
    inside_values(forest, forest.root(), weights.wide, 1..=forest.root(), &mut scratch.wide.beta)
}

/// Whether a root value in real space can be trusted, see the module's documentation.
pub(crate) fn in_range(z: f64) -> bool {
    const LOW: f64 = f64::from_bits((1023 - 400) << 52); // 2^−400
    const HIGH: f64 = f64::from_bits((1023 + 900) << 52); // 2^900
    (LOW..=HIGH).contains(&z)
}

/// `beta[v] = Σ_{edges of v} w · beta[left] · beta[right]`, of `nodes`, which are ascending and end with `root`; returns the
/// root's. The values of other nodes have no meaning.
pub(crate) fn inside_values<N: Number>(
    forest: &Forest,
    root: usize,
    weights: &[N],
    nodes: impl Iterator<Item = usize>,
    beta: &mut Vec<N>,
) -> N {
    if beta.len() <= root {
        beta.resize(root + 1, N::ZERO);
    }
    let beta = &mut beta[..=root];
    beta[0] = N::ONE;
    let mut meter = Meter::default();
    for node in nodes {
        meter.add(1 + forest.edges_of(node).len());
        let mut sum = N::ZERO;
        for edge in forest.edges_of(node) {
            let [left, right] = edge.tails.map(|tail| beta[tail as usize]);
            sum = sum + weights[edge.param as usize] * left * right;
        }
        beta[node] = sum;
    }
    beta[root]
}

/// `alpha[tail] += alpha[head] · w · beta[other tail]` from the root down, where `alpha[root]` = 1/Z, so that the
/// posterior of an edge is `alpha[head] · w · beta[left] · beta[right]`.
fn outside<N: Number>(
    forest: &Forest,
    weights: &[N],
    inverse_z: N,
    values: &mut Values<N>,
    mut found: impl FnMut(usize, &Edge, f64),
) {
    let Values { beta, alpha } = values;
    alpha.clear();
    alpha.resize(forest.n_nodes(), N::ZERO);
    alpha[forest.root()] = inverse_z;
    let mut meter = Meter::default();
    for node in (1..forest.n_nodes()).rev() {
        meter.add(1 + forest.edges_of(node).len());
        let outside = alpha[node];
        for edge in forest.edges_of(node) {
            let [left, right] = edge.tails.map(|tail| tail as usize);
            let outer = outside * weights[edge.param as usize];
            let (by_left, by_right) = (outer * beta[left], outer * beta[right]);
            alpha[left] = alpha[left] + by_right;
            alpha[right] = alpha[right] + by_left;
            found(node, edge, (by_left * beta[right]).to_f64());
        }
    }
}

/// −ln(1 − p).
fn loss(posterior: f64) -> f64 {
    if posterior < NEGLIGIBLE {
        posterior
    } else if posterior < CERTAIN {
        -special::ln_1p(-posterior)
    } else {
        f64::INFINITY
    }
}
