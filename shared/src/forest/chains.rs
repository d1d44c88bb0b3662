//! Runs of parameters that are always used together, and forests made smaller by them.
//!
//! A node with one derivation that has at most one tail is no choice: it is folded into the edges that use it, whose
//! parameter becomes a *chain*. So `Words → Word Words` with `Word → "the"` is one edge, and a string with a single
//! derivation is a forest of one edge. The weight of a chain is the product of the weights of its parameters, and its
//! uses are uses of each of them.
//!
//! A node that holds a string is folded only where one edge alone uses it, so that the posterior of a use of the string is
//! that of one edge still.
//!
//! Edges may hold [`Slots`] in place of parameters. The factor of a chain is the product of those of its slots.

use rustc_hash::FxHashMap;

use super::slots::Slots;
use super::{Edge, Forest};
use crate::num::Wide;
use crate::stop::{Meter, checked};

/// Chains of parameters, by number.
#[derive(Default)]
pub struct Chains {
    /// `[n_chains + 1]`: chain `c` is `params[first[c]..first[c + 1]]`.
    first: Vec<u32>,
    params: Vec<u32>,
    /// `[n_chains]`: the logarithm of the factor of each; empty if all factors are one.
    ln_factors: Vec<f64>,
    /// What edges hold in place of parameters, until [`Chains::renumber`] resolves it.
    pub(crate) slots: Slots,
    known: FxHashMap<Box<[u32]>, u32>,
    scratch: Scratch,
}

/// The chains of one forest at a time, each once, in the order of their first use.
pub struct ActiveChains {
    chains: Vec<u32>,
    /// By chain, whether the forest has it.
    is_here: Vec<bool>,
}

/// Reused from forest to forest.
#[derive(Default)]
struct Scratch {
    /// `[n_nodes]`: edges that have the node as a tail.
    uses: Vec<u32>,
    /// `[n_nodes]`: the place of the node in the folded forest.
    placements: Vec<Placement>,
    /// The chains of folded nodes, end to end.
    folded: Vec<u32>,
    chain: Vec<u32>,
    result: Forest,
}

/// The place of a node in the folded forest.
#[derive(Clone, Copy)]
enum Placement {
    /// A node of the folded forest.
    Kept(u32),
    /// A stretch of [`Scratch::folded`] on the edges that use the node, with this tail.
    Folded { first: u32, end: u32, tail: u32 },
}

impl ActiveChains {
    /// Chains without a forest.
    pub fn new(chains: &Chains) -> ActiveChains {
        ActiveChains { chains: Vec::new(), is_here: vec![false; chains.len()] }
    }

    /// Loads the chains of another forest.
    pub fn load(&mut self, forest: &Forest) {
        self.chains.drain(..).for_each(|chain| self.is_here[chain as usize] = false);
        for edge in &forest.edges {
            if !std::mem::replace(&mut self.is_here[edge.param as usize], true) {
                self.chains.push(edge.param);
            }
        }
    }

    /// The chains.
    pub fn iter(&self) -> impl Iterator<Item = u32> + '_ {
        self.chains.iter().copied()
    }
}

/// Longer chains are not made: they would be copied too often on the way up.
const MAX_CHAIN: usize = 256;

impl Chains {
    /// Number of chains.
    pub fn len(&self) -> usize {
        self.first.len().saturating_sub(1)
    }

    /// Whether there are no chains.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The parameters of `chain`.
    pub fn params(&self, chain: u32) -> &[u32] {
        &self.params[self.first[chain as usize] as usize..self.first[chain as usize + 1] as usize]
    }

    /// The logarithm of the factor of `chain`.
    pub fn ln_factor(&self, chain: u32) -> f64 {
        self.ln_factors.get(chain as usize).copied().unwrap_or(0.0)
    }

    /// A weight of `chain` without its factor, times the factor.
    pub fn with_factor(&self, chain: u32, weight: Wide) -> Wide {
        match self.ln_factor(chain) {
            0.0 => weight,
            ln_factor => weight * Wide::from_ln(ln_factor),
        }
    }

    /// The weight of every chain, from weights by parameter.
    pub fn weights(&self, weights: &[Wide]) -> Vec<Wide> {
        let product = |chain| {
            let product = Wide::product(self.params(chain).iter().map(|&param| weights[param as usize]));
            self.with_factor(chain, product)
        };
        checked(0..self.len() as u32).map(product).collect()
    }

    /// Adds what was gathered by chain to what is gathered by parameter.
    pub fn distribute(&self, by_chain: &[f64], by_param: &mut [f64]) {
        for (chain, &amount) in checked(by_chain).enumerate() {
            if amount != 0.0 {
                for &param in self.params(chain as u32) {
                    by_param[param as usize] += amount;
                }
            }
        }
    }

    /// The parameters of all chains, with repeats.
    pub fn all_params(&self) -> impl Iterator<Item = u32> + '_ {
        self.params.iter().map(|&param| self.slots.resolve(param).0)
    }

    /// Calls parameters what `number` calls them, once all forests are folded.
    pub fn renumber(&mut self, number: impl Fn(u32) -> u32) {
        if !self.slots.is_empty() {
            let ln_factor =
                |chain| self.params(chain).iter().map(|&param| self.slots.resolve(param).1).sum::<f64>();
            self.ln_factors = checked(0..self.len() as u32).map(ln_factor).collect();
        }
        let slots = std::mem::take(&mut self.slots);
        checked(&mut self.params).for_each(|param| *param = number(slots.resolve(*param).0));
    }

    /// Forgets how chains were found, once all forests are folded.
    pub fn close(&mut self) {
        self.known = FxHashMap::default();
        self.scratch = Scratch::default();
    }

    /// Where each chain begins, with the end of the last one, their parameters, end to end, and the logarithms of their factors.
    pub fn parts(&self) -> (&[u32], &[u32], &[f64]) {
        (&self.first, &self.params, &self.ln_factors)
    }

    /// Closed chains of these parts.
    pub fn from_parts(first: Vec<u32>, params: Vec<u32>, ln_factors: Vec<f64>) -> Chains {
        Chains { first, params, ln_factors, ..Chains::default() }
    }

    /// Bytes held.
    pub fn size(&self) -> usize {
        4 * (self.first.len() + self.params.len()) + 8 * self.ln_factors.len()
    }

    fn number(&mut self, chain: &[u32]) -> u32 {
        if self.first.is_empty() {
            self.first.push(0);
        }
        if let Some(&number) = self.known.get(chain) {
            return number;
        }
        let number = self.len() as u32;
        self.params.extend_from_slice(chain);
        self.first.push(self.params.len() as u32);
        self.known.insert(chain.into(), number);
        number
    }

    /// `forest` with chains for parameters and without labels, where parameter 0 is the constant one and strings begin at `first_string`.
    pub fn fold(&mut self, forest: &Forest, first_string: u32) -> Forest {
        let (n, mut meter) = (forest.n_nodes(), Meter::default());
        let Scratch { mut uses, mut placements, mut folded, mut chain, mut result } =
            std::mem::take(&mut self.scratch);
        uses.clear();
        uses.resize(n, 0);
        forest.edges.iter().flat_map(|edge| edge.tails).for_each(|tail| uses[tail as usize] += 1);
        placements.clear();
        placements.push(Placement::Kept(0));
        folded.clear();
        result.clear();
        for (node, &uses) in uses.iter().enumerate().skip(1) {
            let edges = forest.edges_of(node);
            meter.add(1 + edges.len());
            let may_fold = edges.len() == 1 && node != forest.root();
            let mut placement = Placement::Kept(result.n_nodes() as u32);
            for edge in edges {
                chain.clear();
                chain.extend((edge.param != 0).then_some(edge.param));
                let tails = edge.tails.map(|tail| match placements[tail as usize] {
                    Placement::Kept(tail) => tail,
                    Placement::Folded { first, end, tail } => {
                        chain.extend_from_slice(&folded[first as usize..end as usize]);
                        tail
                    }
                });
                let is_string = |&number: &u32| self.slots.resolve(number).0 >= first_string;
                let once = uses == 1 || !chain.iter().any(is_string);
                if may_fold && once && chain.len() <= MAX_CHAIN && tails.contains(&0) {
                    let first = folded.len() as u32;
                    folded.extend_from_slice(&chain);
                    placement =
                        Placement::Folded { first, end: folded.len() as u32, tail: tails[0] + tails[1] };
                } else {
                    let param = self.number(&chain);
                    result.edges.push(Edge { param, tails });
                }
            }
            if let Placement::Kept(_) = placement {
                result.end_node();
            }
            placements.push(placement);
        }
        let forest = result.clone(); // in as little memory as there can be
        self.scratch = Scratch { uses, placements, folded, chain, result };
        forest
    }
}
