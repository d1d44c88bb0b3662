//! Forests: the packed derivations of one item, the one currency between formalisms and algorithms.
//!
//! A [`Forest`] is a flat hypergraph in topological order. Formalisms only build forests ([`build`]); inference
//! only reads them ([`inside`], [`best`], [`k_best`], [`sample`]). It depends on the structure of the grammar, not on weights, so it is
//! built once and read in every round.
//!
//! ```
//! use grammaton::forest::inside::expected_uses;
//! use grammaton::forest::{Prepared, best};
//! use grammaton::grammar::lexicon::Lexicon;
//! use grammaton::grammar::{Grammar, syntax};
//! use grammaton::num::Wide;
//!
//! let (grammar, _) = syntax::parse("1 1 S --> S S\n1 1 S --> a\n1 1 S --> b\n", "grammar").unwrap();
//! let tokens = grammar.tokens("a a b").unwrap();
//! let prepared = Prepared::new(grammar, Lexicon::default());
//! let forest = prepared.builder(false).build(Grammar::START.0, &tokens)?.expect("a derivation");
//!
//! // P(S → S S) = 1/2, P(S → a) = P(S → b) = 1/4: two trees of weight 2^−2 · 2^−6 each.
//! let weights = [1.0, 0.5, 0.25, 0.25].map(Wide::from_f64);
//! let (inside, uses) = expected_uses(&forest, &weights);
//! assert_eq!(inside.to_f64(), 2.0 * 0.5_f64.powi(8));
//! assert_eq!(uses[1..], [2.0, 2.0, 1.0]);
//! let (probability, _) = best::viterbi(&forest, &weights).expect("a tree");
//! assert_eq!(probability.to_f64(), 0.5_f64.powi(8));
//! # Ok::<(), grammaton::forest::TooAmbiguous>(())
//! ```

pub mod best;
pub mod binary;
pub mod build;
pub mod chains;
pub mod dense;
pub mod inside;
pub mod k_best;
pub mod prepared;
pub mod sample;
pub mod slots;
pub mod steps;
pub mod strings;
pub(crate) mod turn;

pub use prepared::Prepared;

use bytemuck::{Pod, Zeroable};

use crate::grammar::ParamId;
use crate::limits::MAX_FOREST;
use crate::stop::Meter;

/// The packed derivations of one item.
///
/// Node 0 is the empty derivation of weight one, which stands in for absent tails; the root is the last node.
/// Invariant: the tails of an edge come before its head; every node has an edge and is part of a derivation.
#[derive(Clone, Debug, Default)]
pub struct Forest {
    /// `[n_nodes + 1]`: the edges of node `v` are `edges[first_edge[v]..first_edge[v + 1]]`.
    pub first_edge: Vec<u32>,
    /// Grouped by head.
    pub edges: Vec<Edge>,
    /// `[n_nodes]`: what each node derives; empty once the forest is folded ([`chains`]), as nothing reads it then.
    pub labels: Vec<Label>,
}

/// A sentence with more derivations than a forest can hold.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error(
    "a sentence of {n_tokens} symbols has too many derivations, which would take more than {} MiB; {}",
    limit >> 20,
    if self.is_everywhere() {
"split the sentence, or give the grammar fewer rules that derive the same"
} else {
"this process has no more for forests (--memory)"
}
)]
pub struct TooAmbiguous {
    /// Symbols of the sentence.
    pub n_tokens: usize,
    /// Bytes that a forest may take in this process, at most [`MAX_FOREST`].
    pub limit: usize,
}

impl TooAmbiguous {
    /// Whether every process refuses the sentence, so that its shard has results without it.
    pub fn is_everywhere(&self) -> bool {
        self.limit >= MAX_FOREST
    }

    /// `None` in the place of a sentence that every process refuses; an error if another process may have more memory.
    pub(crate) fn or_none<T>(found: Result<Option<T>, TooAmbiguous>) -> Result<Option<T>, TooAmbiguous> {
        match found {
            Err(too_ambiguous) if too_ambiguous.is_everywhere() => Ok(None),
            found => found,
        }
    }
}

/// Upper bound of the bytes that a forest takes while it is found, folded and read, from the edges and the spans with a symbol that are
/// found, of which the forest has some. A growing list may be twice as long as it needs to be.
pub fn bytes(n_edges: usize, n_spans: usize) -> usize {
    /// Candidates, those of the forest, its copy, the folded ones and their copy.
    const EDGE: usize = 2 * 12 + 2 * 12 + 12 + 2 * 12 + 12;
    /// Goals with their index and orders, nodes with labels, places in the folded forest, and values of both passes.
    const SPAN: usize = 2 * 20 + 48 + 4 * 8 + 2 * 20 + 64 + 2 * 48;
    n_edges * EDGE + n_spans * SPAN
}

/// One way to derive a node: weight of `param` times the values of `tails`.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Pod, Zeroable)]
#[repr(C)]
pub struct Edge {
    /// A [`ParamId`], or a position in a shard's index once the forest is indexed.
    pub param: u32,
    /// Nodes that the edge joins.
    pub tails: [u32; 2],
}

/// A constituent: `symbol` over the tokens `[start, end)`.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Pod, Zeroable)]
#[repr(C)]
pub struct Label {
    /// A symbol of the [`binary::BinaryGrammar`].
    pub symbol: u32,
    /// First token.
    pub start: u32,
    /// One past the last token.
    pub end: u32,
}

impl Label {
    /// Label of the empty derivation.
    const NONE: Label = Label { symbol: u32::MAX, start: 0, end: 0 };
}

impl Forest {
    /// Number of nodes, the empty one included.
    pub fn n_nodes(&self) -> usize {
        self.first_edge.len() - 1
    }

    /// The last node.
    pub fn root(&self) -> usize {
        self.n_nodes() - 1
    }

    /// The edges of `node`.
    #[inline]
    pub fn edges_of(&self, node: usize) -> &[Edge] {
        &self.edges[self.first_edge[node] as usize..self.first_edge[node + 1] as usize]
    }

    /// The parameters of all edges, with repeats, as global ids.
    pub fn params(&self) -> impl Iterator<Item = ParamId> + '_ {
        self.edges.iter().map(|edge| ParamId(edge.param))
    }

    /// Returns the forest without edges whose parameter is not `alive`, and without nodes that only these used;
    /// `None` if no derivation is left. The remaining derivations keep their order.
    pub fn pruned(&self, alive: impl Fn(u32) -> bool) -> Option<Forest> {
        self.filtered(|_, edge| alive(edge.param))
    }

    /// Returns the forest with the edges that `kept` accepts, as [`Forest::pruned`] does.
    pub fn filtered(&self, kept: impl Fn(usize, &Edge) -> bool) -> Option<Forest> {
        let (n, mut meter) = (self.n_nodes(), Meter::default());
        let mut productive = vec![false; n];
        productive[0] = true;
        let live = |node: usize, edge: &Edge, productive: &[bool]| {
            kept(node, edge) && edge.tails.iter().all(|&tail| productive[tail as usize])
        };
        for node in 1..n {
            meter.add(1 + self.edges_of(node).len());
            productive[node] = self.edges_of(node).iter().any(|edge| live(node, edge, &productive));
        }
        if !productive[self.root()] {
            return None;
        }
        let mut reached = vec![false; n];
        reached[self.root()] = true;
        for node in (1..n).rev().filter(|&node| productive[node]) {
            if reached[node] {
                meter.add(1 + self.edges_of(node).len());
                for edge in self.edges_of(node).iter().filter(|edge| live(node, edge, &productive)) {
                    edge.tails.iter().for_each(|&tail| reached[tail as usize] = true);
                }
            }
        }
        let mut forest = Forest::default();
        forest.clear();
        forest.labels.extend(self.labels.first());
        let mut renamed = vec![0u32; n];
        for node in (1..n).filter(|&node| reached[node] && productive[node]) {
            meter.add(1 + self.edges_of(node).len());
            renamed[node] = forest.n_nodes() as u32;
            for edge in self.edges_of(node).iter().filter(|edge| live(node, edge, &productive)) {
                let tails = edge.tails.map(|tail| renamed[tail as usize]);
                forest.edges.push(Edge { param: edge.param, tails });
            }
            forest.end_node();
            forest.labels.extend(self.labels.get(node));
        }
        forest.edges.shrink_to_fit();
        Some(forest)
    }

    /// Leaves the empty derivation alone, without a label; nodes are added by [`Forest::end_node`].
    fn clear(&mut self) {
        let Forest { first_edge, edges, labels } = self;
        first_edge.clear();
        first_edge.extend([0, 0]);
        edges.clear();
        labels.clear();
    }

    /// Closes a node: the edges pushed since the last call are its own.
    fn end_node(&mut self) {
        self.first_edge.push(self.edges.len() as u32);
    }

    /// Bytes held.
    pub fn size(&self) -> usize {
        4 * self.first_edge.len()
            + size_of::<Edge>() * self.edges.len()
            + size_of::<Label>() * self.labels.len()
            + size_of::<Forest>()
    }
}
