//! Makes a chart of a forest.

use super::chart::Leaf;
use super::charts::{Charts, Place};
use super::fixed::Fixed;
use super::packed::{self, Node, Seat};
use crate::forest::binary::{BinaryGrammar, Kind};
use crate::forest::{Edge, Forest, Label};
use crate::grammar::ParamId;
use crate::stop::Meter;

/// A chart in the making, reused from sentence to sentence.
#[derive(Default)]
pub(super) struct Layout {
    /// `[n_nodes]`.
    placed: Vec<Placed>,
    leaves: Vec<Leaf>,
    nodes: Vec<Node>,
    edges: Vec<packed::Edge>,
    /// The node of the forest of every node.
    of_nodes: Vec<u32>,
    fixed: Vec<Edge>,
}

/// The place of a node of the forest.
#[derive(Clone, Copy)]
enum Placed {
    Fixed(u32),
    /// The base of an adapted nonterminal, which is part of the node above it.
    Base,
    Leaf(u32),
    Node(u32),
}

impl Layout {
    /// Reads a forest. `strings` has the string of every node of an adapted nonterminal, 0 for others; nodes without such below them go
    /// to `fixed`, if there is one. The chart will be one of `charts`, which number its parameters.
    pub fn read(
        &mut self,
        forest: &Forest,
        binary: &BinaryGrammar,
        strings: &[u32],
        mut fixed: Option<&mut Fixed>,
        charts: &mut Charts,
    ) {
        self.clear();
        let Layout { placed, leaves, nodes, edges, of_nodes, fixed: fixed_edges } = self;
        placed.push(Placed::Fixed(0));
        let mut meter = Meter::default();
        for node in 1..forest.n_nodes() {
            meter.add(1 + forest.edges_of(node).len());
            let symbol = forest.labels[node].symbol;
            placed.push(match binary.kinds[symbol as usize] {
                Kind::Adapted(number) => match placed[base(forest, node)] {
                    Placed::Fixed(fixed) => {
                        leaves.push(Leaf {
                            fixed,
                            seat: Seat { string: strings[node], adapted: number.0 + 1 },
                        });
                        Placed::Leaf(leaves.len() as u32 - 1)
                    }
                    _ => Placed::Node(0),
                },
                _ => {
                    let of_it = forest.edges_of(node);
                    fixed_edges.clear();
                    fixed_edges.extend(of_it.iter().map_while(|edge| fixed_edge(edge, placed)));
                    match &mut fixed {
                        Some(fixed) if fixed_edges.len() == of_it.len() => {
                            Placed::Fixed(fixed.node(fixed_edges))
                        }
                        _ if binary.base.contains(&symbol) => Placed::Base,
                        _ => Placed::Node(0),
                    }
                }
            });
            if let Placed::Node(_) = placed[node] {
                of_nodes.push(node as u32);
            }
        }
        of_nodes.sort_by_cached_key(|&node| {
            let Label { symbol, start, end } = forest.labels[node as usize];
            let n_edges = edges_of(forest, node as usize, binary).len();
            (end - start, binary.rank[symbol as usize], symbol, n_edges)
        });
        for (number, &node) in (0..).zip(&*of_nodes) {
            placed[node as usize] = Placed::Node(number);
            let seat = match binary.kinds[forest.labels[node as usize].symbol as usize] {
                Kind::Adapted(number) => Seat { string: strings[node as usize], adapted: number.0 + 1 },
                _ => Seat::default(),
            };
            nodes.push(Node { end: 0, seat });
        }
        // Fixed nodes that others use are leaves as well.
        let mut leaf = |placed: &mut Placed| {
            if let Placed::Fixed(fixed) = *placed {
                leaves.push(Leaf { fixed, seat: Seat::default() });
                *placed = Placed::Leaf(leaves.len() as u32 - 1);
            }
        };
        for &node in &*of_nodes {
            meter.add(1 + forest.edges_of(node as usize).len());
            for tail in edges_of(forest, node as usize, binary).iter().flat_map(|edge| edge.tails) {
                if tail != 0 {
                    leaf(&mut placed[tail as usize]);
                }
            }
        }
        leaf(&mut placed[forest.root()]);
        let n_leaves = leaves.len() as u32;
        let value = |tail: u32| match placed[tail as usize] {
            Placed::Leaf(leaf) => 1 + leaf,
            Placed::Node(node) => 1 + n_leaves + node,
            Placed::Fixed(_) | Placed::Base => 0,
        };
        for (&head, node) in of_nodes.iter().zip(nodes) {
            meter.add(1 + forest.edges_of(head as usize).len());
            let mut edge = |edge: &Edge| packed::Edge {
                param: charts.number(ParamId(edge.param)),
                tails: edge.tails.map(value),
            };
            edges.extend(edges_of(forest, head as usize, binary).iter().map(&mut edge));
            node.end = edges.len() as u32;
        }
    }

    fn clear(&mut self) {
        self.placed.clear();
        self.leaves.clear();
        self.nodes.clear();
        self.edges.clear();
        self.of_nodes.clear();
    }

    /// The value of the whole sentence.
    pub fn root(&self) -> usize {
        match *self.placed.last().expect("a forest has a root") {
            Placed::Leaf(leaf) => 1 + leaf as usize,
            Placed::Node(node) => 1 + self.leaves.len() + node as usize,
            Placed::Fixed(_) | Placed::Base => unreachable!("the root has a value"),
        }
    }

    /// The strings of adapted nonterminals, each as often as it is derived.
    pub fn strings(&self) -> impl Iterator<Item = u32> + '_ {
        let strings = self
            .leaves
            .iter()
            .map(|leaf| leaf.seat.string)
            .chain(self.nodes.iter().map(|node| node.seat.string));
        strings.filter(|&string| string > 0)
    }

    /// Puts the chart of the forest that was read behind the others.
    pub fn add_to(&self, charts: &mut Charts) -> Place {
        charts.push(&self.leaves, &self.nodes, &self.edges)
    }
}

/// `edge` with tails that are fixed nodes, if they are.
fn fixed_edge(edge: &Edge, placed: &[Placed]) -> Option<Edge> {
    let mut tails = [0; 2];
    for (to, from) in tails.iter_mut().zip(edge.tails) {
        let Placed::Fixed(node) = placed[from as usize] else { return None };
        *to = node;
    }
    Some(Edge { param: edge.param, tails })
}

/// The base of a node of an adapted nonterminal.
fn base(forest: &Forest, node: usize) -> usize {
    let [Edge { tails: [base, _], .. }] = *forest.edges_of(node) else {
        unreachable!("an adapted node expands to its base alone")
    };
    base as usize
}

/// The edges that a node has in a chart: of an adapted nonterminal those of its base.
fn edges_of<'f>(forest: &'f Forest, node: usize, binary: &BinaryGrammar) -> &'f [Edge] {
    match binary.kinds[forest.labels[node].symbol as usize] {
        Kind::Adapted(_) => forest.edges_of(base(forest, node)),
        _ => forest.edges_of(node),
    }
}
