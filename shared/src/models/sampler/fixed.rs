//! Derivations without adapted nonterminals, shared by all sentences of a shard.
//!
//! A node whose derivations have no adapted nonterminal weighs the same wherever it occurs, as long as the probabilities of the rules
//! stay: `b o o k` as letters is one node, however many sentences have it. Nodes with the same edges are one.

use rustc_hash::FxHashMap;

use crate::forest::{Edge, Forest};

/// Nodes by number; 0 is the empty derivation.
pub(super) struct Fixed {
    /// All of them, without labels. Each can be a root.
    pub forest: Forest,
    /// `[n_nodes]`: whether the node has a single derivation.
    unique: Vec<bool>,
    by_edge: FxHashMap<Edge, u32>,
    /// Constituents of several edges.
    by_edges: FxHashMap<Box<[Edge]>, u32>,
}

impl Default for Fixed {
    fn default() -> Fixed {
        let forest = Forest { first_edge: vec![0, 0], ..Forest::default() };
        Fixed { forest, unique: vec![true], by_edge: FxHashMap::default(), by_edges: FxHashMap::default() }
    }
}

impl Fixed {
    /// The node with these edges, whose tails are nodes here.
    pub fn node(&mut self, edges: &[Edge]) -> u32 {
        let node = self.forest.n_nodes() as u32;
        let known = match edges {
            [only] => *self.by_edge.entry(*only).or_insert(node),
            _ => self.by_edges.get(edges).copied().unwrap_or(node),
        };
        if known != node {
            return known;
        }
        let is_unique = |edge: &Edge| edge.tails.iter().all(|&tail| self.unique[tail as usize]);
        self.unique.push(matches!(edges, [only] if is_unique(only)));
        self.forest.edges.extend_from_slice(edges);
        self.forest.first_edge.push(self.forest.edges.len() as u32);
        if edges.len() > 1 {
            self.by_edges.insert(edges.into(), node);
        }
        node
    }

    /// Whether `node` has a single derivation.
    pub fn is_unique(&self, node: u32) -> bool {
        self.unique[node as usize]
    }

    /// Forgets how nodes are found, once all sentences are read.
    pub fn close(&mut self) {
        self.by_edge = FxHashMap::default();
        self.by_edges = FxHashMap::default();
        self.forest.edges.shrink_to_fit();
        self.forest.first_edge.shrink_to_fit();
    }

    /// Bytes held.
    pub fn size(&self) -> usize {
        self.forest.size() + self.unique.len()
    }
}
