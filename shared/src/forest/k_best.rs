//! The most probable analyses of a forest, in order, each once.
//!
//! In: a [`Hypergraph`] in topological order, and how its derivations are distinguished. Out: the k best analyses, each with the weight of its best derivation.
//!
//! Lazy k best parsing (Huang & Chiang 2005, algorithm 3), in which a derivation that is analysed as a better one of its node is passed over. What a
//! derivation is analysed as depends on its edge and on the analyses of its tails alone, so that each node passes over its own, and the number of derivations looked at grows
//! with k² per edge, not with the number of derivations. Of equals the first edge comes first, as in [`super::best`], so that the first analysis is the best derivation there.
//!
//! There is no recursion: a node that needs an analysis of a tail is put aside until it is known.

use std::cmp::Ordering;
use std::collections::BinaryHeap;
use std::hash::Hash;

use rustc_hash::{FxHashMap, FxHashSet};

use super::inside::Number;
use crate::stop::Meter;

/// Number of an analysis: equal numbers, equal analyses.
pub type Analysis = u32;

/// Packed derivations, and what each is analysed as. Node 0 is the empty derivation of weight one, whose analysis is [`EMPTY`]; the root is the last node, and tails come
/// before their heads.
pub trait Hypergraph {
    /// Weight of a derivation.
    type Weight: Number + PartialOrd;
    /// An edge, without its tails.
    type Edge: Copy;
    /// Why an analysis is not known.
    type Error;

    /// Number of nodes, the empty one included.
    fn n_nodes(&self) -> usize;

    /// Calls `each` for the edges of a node, in order.
    fn edges(&self, node: usize, each: impl FnMut(Self::Edge, [usize; 2]));

    /// Weight of the derivation by an edge over derivations of its tails.
    fn weight(&self, edge: Self::Edge, tails: [Self::Weight; 2]) -> Self::Weight;

    /// Analysis of the derivation of `node` by an edge over derivations of its tails of these analyses.
    ///
    /// # Errors
    /// If it is not known.
    fn analysis(
        &mut self,
        node: usize,
        edge: Self::Edge,
        tails: [Analysis; 2],
    ) -> Result<Analysis, Self::Error>;

    /// Whether all derivations of a node have one analysis.
    fn has_one_analysis(&self, _node: usize) -> bool {
        false
    }
}

/// The analysis of the empty derivation.
pub const EMPTY: Analysis = 0;

/// The `k` best analyses of the root with the weights of their best derivations, in order; all of them if there are fewer. Derivations that weigh zero count for nothing.
///
/// # Errors
/// If the graph does not know an analysis.
pub fn k_best<H: Hypergraph>(graph: &mut H, k: usize) -> Result<Vec<(H::Weight, Analysis)>, H::Error> {
    let root = graph.n_nodes() - 1;
    let mut search = Search { best: best_weights(graph), nodes: FxHashMap::default() };
    // Nodes, and the number of analyses that are wanted of each; the last one comes first.
    let mut wanted = vec![(root, k)];
    let mut meter = Meter::default();
    while let Some(&(node, n)) = wanted.last() {
        meter.add(1);
        let state = search.nodes.entry(node).or_insert_with(|| State::new(graph, node, &search.best));
        if state.is_complete || state.found.len() >= n {
            wanted.pop();
        } else if let Some(missing) = search.advance(graph, node)? {
            wanted.push(missing);
        }
    }
    Ok(search.nodes.remove(&root).map(|state| state.found).unwrap_or_default())
}

/// Weight of the best derivation of each node.
fn best_weights<H: Hypergraph>(graph: &H) -> Vec<H::Weight> {
    let mut best = vec![H::Weight::ONE];
    let mut meter = Meter::default();
    for node in 1..graph.n_nodes() {
        let mut highest = H::Weight::ZERO;
        graph.edges(node, |edge, tails| {
            meter.add(1);
            let weight = graph.weight(edge, tails.map(|tail| best[tail]));
            if weight > highest {
                highest = weight;
            }
        });
        best.push(highest);
    }
    best
}

/// A derivation by an edge of a node, over the derivations of these ranks of its tails.
#[derive(Clone, Copy)]
struct Candidate<W> {
    weight: W,
    edge: usize,
    ranks: [usize; 2],
}

impl<W: PartialOrd> Ord for Candidate<W> {
    fn cmp(&self, other: &Self) -> Ordering {
        let by_weight = self.weight.partial_cmp(&other.weight).unwrap_or(Ordering::Equal);
        by_weight.then_with(|| (other.edge, other.ranks).cmp(&(self.edge, self.ranks)))
    }
}

impl<W: PartialOrd> PartialOrd for Candidate<W> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl<W: PartialOrd> PartialEq for Candidate<W> {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl<W: PartialOrd> Eq for Candidate<W> {}

/// What is known of a node.
struct State<H: Hypergraph> {
    edges: Vec<(H::Edge, [usize; 2])>,
    /// Those that may be next.
    candidates: BinaryHeap<Candidate<H::Weight>>,
    /// Edge and ranks of derivations that become candidates, once the derivations of their tails are known.
    successors: Vec<(usize, [usize; 2])>,
    /// The best analyses, in order.
    found: Vec<(H::Weight, Analysis)>,
    known: FxHashSet<Analysis>,
    /// Whether there are no others.
    is_complete: bool,
}

impl<H: Hypergraph> State<H> {
    /// The candidates of a node are its edges over the best derivations of their tails.
    fn new(graph: &H, node: usize, best: &[H::Weight]) -> State<H> {
        let (mut edges, mut candidates) = (Vec::new(), Vec::new());
        graph.edges(node, |edge, tails| {
            let weight = graph.weight(edge, tails.map(|tail| best[tail]));
            if weight > H::Weight::ZERO {
                candidates.push(Candidate { weight, edge: edges.len(), ranks: [0, 0] });
            }
            edges.push((edge, tails));
        });
        State {
            edges,
            candidates: candidates.into(),
            successors: Vec::new(),
            found: Vec::new(),
            known: FxHashSet::default(),
            is_complete: false,
        }
    }
}

/// A derivation of a tail.
enum Tail<T> {
    Known(T),
    /// It is not known yet whether there is one.
    Missing,
    None,
}

struct Search<H: Hypergraph> {
    /// `[n_nodes]`: weight of the best derivation.
    best: Vec<H::Weight>,
    /// Those that were wanted.
    nodes: FxHashMap<usize, State<H>>,
}

impl<H: Hypergraph> Search<H> {
    /// The derivation of this rank of a tail, from 0.
    fn tail(&self, tail: usize, rank: usize) -> Tail<(H::Weight, Analysis)> {
        if tail == 0 {
            return if rank == 0 { Tail::Known((H::Weight::ONE, EMPTY)) } else { Tail::None };
        }
        match self.nodes.get(&tail) {
            Some(state) => match state.found.get(rank) {
                Some(&found) => Tail::Known(found),
                None if state.is_complete => Tail::None,
                None => Tail::Missing,
            },
            None => Tail::Missing,
        }
    }

    /// Finds the next derivation of a node. Returns the node and the number of its analyses that have to be known before, if any.
    fn advance(&mut self, graph: &mut H, node: usize) -> Result<Option<(usize, usize)>, H::Error> {
        let mut state = self.nodes.remove(&node).expect("the caller has put it there");
        let missing = self.next(graph, node, &mut state);
        self.nodes.insert(node, state);
        missing
    }

    fn next(
        &self,
        graph: &mut H,
        node: usize,
        state: &mut State<H>,
    ) -> Result<Option<(usize, usize)>, H::Error> {
        while let Some(&(number, ranks)) = state.successors.last() {
            let (edge, tails) = state.edges[number];
            match self.tails(tails, ranks) {
                Ok(Some(found)) => {
                    let weight = graph.weight(edge, found.map(|(weight, _)| weight));
                    if weight > H::Weight::ZERO {
                        state.candidates.push(Candidate { weight, edge: number, ranks });
                    }
                }
                Ok(None) => {}
                Err(missing) => return Ok(Some(missing)),
            }
            state.successors.pop();
        }
        let Some(&Candidate { weight, edge, ranks: [left, right] }) = state.candidates.peek() else {
            state.is_complete = true;
            return Ok(None);
        };
        let (of_graph, tails) = state.edges[edge];
        let tails = match self.tails(tails, [left, right]) {
            Ok(found) => found.expect("a candidate has derivations of its tails"),
            Err(missing) => return Ok(Some(missing)),
        };
        let analysis = graph.analysis(node, of_graph, tails.map(|(_, analysis)| analysis))?;
        state.candidates.pop();
        // Each pair of ranks follows one other.
        state.successors.push((edge, [left, right + 1]));
        state.successors.extend((right == 0).then_some((edge, [left + 1, 0])));
        if state.known.insert(analysis) {
            state.found.push((weight, analysis));
            state.is_complete = graph.has_one_analysis(node);
        }
        Ok(None)
    }

    /// The derivations of these ranks of the tails, `None` if one of them has none; or the tail that has to be known before, and how many of its analyses.
    #[expect(clippy::type_complexity, reason = "two derivations, or none, or what is missing")]
    fn tails(
        &self,
        tails: [usize; 2],
        ranks: [usize; 2],
    ) -> Result<Option<[(H::Weight, Analysis); 2]>, (usize, usize)> {
        let mut found = [(H::Weight::ONE, EMPTY); 2];
        for at in 0..2 {
            match self.tail(tails[at], ranks[at]) {
                Tail::Known(known) => found[at] = known,
                Tail::None => return Ok(None),
                Tail::Missing => return Err((tails[at], ranks[at] + 1)),
            }
        }
        Ok(Some(found))
    }
}

/// Lists with shared ends, each with a number as an [`Analysis`]: equal lists have equal numbers.
#[derive(Debug)]
pub struct Lists<T> {
    /// The first item of a list and the list of the others; that of [`EMPTY`] has no meaning.
    cells: Vec<Option<(T, Analysis)>>,
    numbers: FxHashMap<(T, Analysis), Analysis>,
}

impl<T> Default for Lists<T> {
    fn default() -> Lists<T> {
        Lists { cells: vec![None], numbers: FxHashMap::default() }
    }
}

impl<T: Copy + Eq + Hash> Lists<T> {
    /// The list of `item`, then of the items of `rest`.
    pub fn prepend(&mut self, item: T, rest: Analysis) -> Analysis {
        let cells = &mut self.cells;
        *self.numbers.entry((item, rest)).or_insert_with(|| {
            cells.push(Some((item, rest)));
            cells.len() as Analysis - 1
        })
    }

    /// The list of the items, then of those of `rest`.
    pub fn prepend_all(&mut self, items: &[T], rest: Analysis) -> Analysis {
        items.iter().rev().fold(rest, |rest, &item| self.prepend(item, rest))
    }

    /// The list of the items of `first`, then of those of `rest`.
    pub fn concatenate(&mut self, first: Analysis, rest: Analysis) -> Analysis {
        if rest == EMPTY { first } else { self.prepend_all(&self.items(first), rest) }
    }

    /// The items of a list.
    pub fn items(&self, list: Analysis) -> Vec<T> {
        std::iter::successors(self.cells[list as usize], |(_, rest)| self.cells[*rest as usize])
            .map(|(item, _)| item)
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use proptest::prelude::*;

    use super::*;

    /// Weight, tails and name.
    type NamedEdge = (f64, [usize; 2], Option<u8>);

    /// A graph whose derivations are analysed as lists of the names of their edges, some of which have the same name, or none.
    #[derive(Debug)]
    struct Named {
        /// By node.
        edges: Vec<Vec<NamedEdge>>,
        lists: Lists<u8>,
    }

    impl Hypergraph for Named {
        type Weight = f64;
        type Edge = (f64, Option<u8>);
        type Error = Infallible;

        fn n_nodes(&self) -> usize {
            self.edges.len()
        }

        fn edges(&self, node: usize, mut each: impl FnMut((f64, Option<u8>), [usize; 2])) {
            self.edges[node].iter().for_each(|&(weight, tails, name)| each((weight, name), tails));
        }

        fn weight(&self, (weight, _): (f64, Option<u8>), [left, right]: [f64; 2]) -> f64 {
            weight * left * right
        }

        fn analysis(
            &mut self,
            _: usize,
            (_, name): (f64, Option<u8>),
            [left, right]: [Analysis; 2],
        ) -> Result<Analysis, Infallible> {
            let list = self.lists.concatenate(left, right);
            Ok(name.map_or(list, |name| self.lists.prepend(name, list)))
        }
    }

    impl Named {
        /// All derivations of a node.
        fn all(&self, node: usize) -> Vec<(f64, Vec<u8>)> {
            if node == 0 {
                return vec![(1.0, Vec::new())];
            }
            let mut all = Vec::new();
            for &(weight, [left, right], name) in &self.edges[node] {
                for (of_left, left) in self.all(left) {
                    for (of_right, right) in self.all(right) {
                        let names = name.into_iter().chain(left.iter().copied()).chain(right);
                        all.push((weight * of_left * of_right, names.collect()));
                    }
                }
            }
            all
        }
    }

    fn graph() -> impl Strategy<Value = Named> {
        let node = |node: usize| {
            // Weights that are often equal, and zero at times.
            let edge = (0..5_u8, [0..node, 0..node], prop::option::of(0..3_u8));
            let edge = edge.prop_map(|(weight, tails, name)| (f64::from(weight) / 4.0, tails, name));
            prop::collection::vec(edge, 1..4)
        };
        (1..5_usize).prop_flat_map(move |n| (1..=n).map(node).collect::<Vec<_>>()).prop_map(|mut edges| {
            edges.insert(0, Vec::new());
            Named { edges, lists: Lists::default() }
        })
    }

    proptest! {
        /// Law: the k best analyses are the first k of all, each once with the weight of its best derivation; and all, if k is larger.
        #[test]
        fn they_are_the_best_of_all_analyses(mut graph in graph(), k in 0..9_usize) {
            let mut all: Vec<(f64, Vec<u8>)> = Vec::new();
            let mut derivations = graph.all(graph.edges.len() - 1);
            derivations.sort_by(|a, b| b.0.total_cmp(&a.0));
            for (weight, names) in derivations {
                if weight > 0.0 && all.iter().all(|(_, known)| *known != names) {
                    all.push((weight, names));
                }
            }
            let found = k_best(&mut graph, k).unwrap();
            let found: Vec<(f64, Vec<u8>)> =
                found.into_iter().map(|(weight, list)| (weight, graph.lists.items(list))).collect();
            prop_assert_eq!(found.len(), k.min(all.len()));
            for (at, (weight, names)) in found.iter().enumerate() {
                prop_assert_eq!(*weight, all[at].0);
                prop_assert!(all.contains(&(*weight, names.clone())), "{:?}", names);
                prop_assert!(found[..at].iter().all(|(_, other)| other != names));
            }
        }
    }
}
