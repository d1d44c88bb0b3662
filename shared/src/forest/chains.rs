//! Runs of parameters that are always used together, and forests made smaller by them.
//!
//! A node with one derivation that has at most one tail is no choice: it is folded into the edges that use it, whose
//! parameter becomes a *chain*. So `Words → Word Words` with `Word → "the"` is one edge, and a string with a single
//! derivation is a forest of one edge. The weight of a chain is the product of the weights of its parameters, and its
//! uses are uses of each of them.
//!
//! A node that holds a string is folded only where one edge alone uses it, so that the posterior of a use of the string is
//! that of one edge still.

use rustc_hash::FxHashMap;

use super::{Edge, Forest};
use crate::num::Wide;

/// Chains of parameters, by number.
#[derive(Default)]
pub struct Chains {
    /// `[n_chains + 1]`: chain `c` is `params[first[c]..first[c + 1]]`.
    first: Vec<u32>,
    params: Vec<u32>,
    known: FxHashMap<Box<[u32]>, u32>,
}

/// Longer chains are not made: they would be copied too often on the way up.
const MAX_CHAIN: usize = 256;

impl Chains {
    /// Number of chains.
    pub fn len(&self) -> usize {
        self.first.len().saturating_sub(1)
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The parameters of `chain`.
    pub fn params(&self, chain: u32) -> &[u32] {
        &self.params[self.first[chain as usize] as usize..self.first[chain as usize + 1] as usize]
    }

    /// The weight of every chain, from weights by parameter.
    pub fn weights(&self, weights: &[Wide]) -> Vec<Wide> {
        let product = |params: &[u32]| {
            params.iter().fold(Wide::ONE, |product, &param| product * weights[param as usize])
        };
        (0..self.len() as u32).map(|chain| product(self.params(chain))).collect()
    }

    /// Adds what was gathered by chain to what is gathered by parameter.
    pub fn distribute(&self, by_chain: &[f64], by_param: &mut [f64]) {
        for (chain, &amount) in by_chain.iter().enumerate() {
            if amount != 0.0 {
                for &param in self.params(chain as u32) {
                    by_param[param as usize] += amount;
                }
            }
        }
    }

    /// Forgets how chains were found, once all forests are folded.
    pub fn close(&mut self) {
        self.known = FxHashMap::default();
    }

    /// Bytes held.
    pub fn size(&self) -> usize {
        4 * (self.first.len() + self.params.len())
    }

    fn number(&mut self, chain: Vec<u32>) -> u32 {
        if self.first.is_empty() {
            self.first.push(0);
        }
        if let Some(&number) = self.known.get(chain.as_slice()) {
            return number;
        }
        let number = self.len() as u32;
        self.params.extend_from_slice(&chain);
        self.first.push(self.params.len() as u32);
        self.known.insert(chain.into_boxed_slice(), number);
        number
    }

    /// `forest` with chains for parameters, where parameter 0 is the constant one and strings begin at `first_string`.
    pub fn fold(&mut self, forest: &Forest, first_string: u32) -> Forest {
        let n = forest.n_nodes();
        let mut uses = vec![0u32; n];
        forest.edges.iter().flat_map(|edge| edge.tails).for_each(|tail| uses[tail as usize] += 1);
        let mut folded: Vec<Option<(Vec<u32>, u32)>> = vec![None; n];
        let mut renamed = vec![0u32; n];
        let mut result = Forest::empty();
        for node in 1..n {
            let edges = forest.edges_of(node);
            let may_fold = edges.len() == 1 && node != forest.root();
            for edge in edges {
                let mut chain: Vec<u32> = Vec::new();
                chain.extend((edge.param != 0).then_some(edge.param));
                let mut tails = [0; 2];
                for (place, &tail) in edge.tails.iter().enumerate() {
                    match &folded[tail as usize] {
                        Some((params, below)) => {
                            chain.extend_from_slice(params);
                            tails[place] = *below;
                        }
                        None => tails[place] = renamed[tail as usize],
                    }
                }
                let once = uses[node] == 1 || chain.iter().all(|&param| param < first_string);
                if may_fold && once && chain.len() <= MAX_CHAIN && tails.contains(&0) {
                    folded[node] = Some((chain, tails[0] + tails[1]));
                } else {
                    let param = self.number(chain);
                    result.edges.push(Edge { param, tails });
                }
            }
            if folded[node].is_none() {
                renamed[node] = result.n_nodes() as u32;
                result.end_node(forest.labels[node]);
            }
        }
        result.edges.shrink_to_fit();
        result
    }
}
