//! Amounts by substring and stick, for the sentences of a shard.
//!
//! Substrings are nodes of a trie, which a sentence is walked through from each of its tokens: a step looks up a node and a token, and a
//! string is written only when all are.

use rustc_hash::FxHashMap;

use super::{Begin, StringCounts};
use crate::grammar::{StickId, SymbolId};
use crate::stop::{Meter, checked};

/// Substrings of sentences, with amounts by stick.
pub struct Substrings {
    n_sticks: usize,
    /// The child of a node by a token.
    children: FxHashMap<(u32, SymbolId), u32>,
    /// Parent of each node but the root, and the token from there.
    from: Vec<(u32, SymbolId)>,
    /// Sums by node, then by stick.
    pub counted: Vec<Option<f64>>,
    /// Sums over longer strings, by node, then by stick.
    pub longer: Vec<Option<f64>>,
    /// Nodes of the last sentence's substrings, by start and then by length.
    nodes: Vec<u32>,
    /// First node of each start.
    first: Vec<usize>,
}

const ROOT: u32 = 0;

impl Substrings {
    /// Creates an empty tree.
    pub fn new(n_sticks: usize) -> Substrings {
        let amounts = vec![None; n_sticks];
        Substrings {
            n_sticks,
            children: FxHashMap::default(),
            from: Vec::new(),
            counted: amounts.clone(),
            longer: amounts,
            nodes: Vec::new(),
            first: Vec::new(),
        }
    }

    /// Finds the substrings of a sentence of up to `reach` symbols, by start, where some stick begins.
    pub fn walk(&mut self, tokens: &[SymbolId], reach: &[u32], begin: &Begin<'_>) {
        self.nodes.clear();
        self.first.clear();
        let mut meter = Meter::default();
        for (start, &reach) in reach.iter().enumerate() {
            self.first.push(self.nodes.len());
            if !begin.any(start) {
                continue;
            }
            meter.add(reach as usize);
            let mut node = ROOT;
            for &token in &tokens[start..start + reach as usize] {
                let fresh = self.from.len() as u32 + 1;
                let child = *self.children.entry((node, token)).or_insert(fresh);
                if child == fresh {
                    self.from.push((node, token));
                    self.counted.resize(self.counted.len() + self.n_sticks, None);
                    self.longer.resize(self.longer.len() + self.n_sticks, None);
                }
                node = child;
                self.nodes.push(node);
            }
        }
    }

    /// Position of the amounts of a substring of the last sentence.
    pub fn place(&self, stick: StickId, start: u32, length: u32) -> usize {
        let node = self.nodes[self.first[start as usize] + length as usize - 1];
        node as usize * self.n_sticks + stick.index()
    }

    /// Amounts by string, those that there are.
    pub fn strings(&self, adapted: &[SymbolId], amounts: &[Option<f64>]) -> StringCounts {
        let mut counts = StringCounts::default();
        let mut string = Vec::new();
        for (node, amounts) in checked((0..).zip(amounts.chunks(self.n_sticks.max(1)))) {
            if amounts.iter().all(Option::is_none) {
                continue;
            }
            string.clear();
            let mut at: u32 = node;
            while at != ROOT {
                let (parent, token) = self.from[at as usize - 1];
                string.push(token);
                at = parent;
            }
            string.reverse();
            for (&symbol, amount) in adapted.iter().zip(amounts) {
                if let Some(amount) = *amount {
                    counts.push(symbol, &string, amount);
                }
            }
        }
        counts
    }
}
