//! Pruned chart: constituents that are probable enough, and the rules that join them.
//!
//! In: a chart and a threshold. Out: [`Packed`], a hypergraph: nodes are labels over spans, low or high, and edges are rules that
//! make a node of others, children first. Nothing in it knows of subtypes, so passes with any number of them can go over it.

use crate::data::treebank::{LabelId, RuleId};
use crate::stop;

use super::coarse::{Chart, Grammar, spans};

/// Key of a node.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum By {
    /// A rule over nodes, or over a word.
    Rule(RuleId),
    /// No rule: a high node is the low one.
    Same,
    /// An unknown word: any tag, with any subtype.
    Unknown,
}

/// A way to make a node.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Edge {
    /// The rule.
    pub by: By,
    /// The node that is made.
    pub parent: u32,
    /// The left or only child, or the number of nodes if there is none.
    pub left: u32,
    /// The right child, or the number of nodes if there is none.
    pub right: u32,
    /// Factor of its weight, a power of two, so that nothing underflows; the product over the edges of a tree is
    /// the same for all trees.
    pub scale: f64,
}

/// Constituents and the rules that join them.
#[derive(Clone, PartialEq, Debug)]
pub struct Packed {
    /// Label of each node, children before parents.
    pub labels: Vec<LabelId>,
    /// Sorted by parent.
    pub edges: Vec<Edge>,
}

/// No node.
const NONE: u32 = u32::MAX;

impl Packed {
    /// Keeps what has a posterior of `threshold` or more; the root is the last node.
    pub fn new(grammar: &Grammar, chart: &Chart, threshold: f64) -> Packed {
        let n = chart.n_words();
        let size = chart.low.inside.len();
        let (mut low, mut high) = (vec![NONE; size], vec![NONE; size]);
        let mut packed = Packed { labels: Vec::new(), edges: Vec::new() };
        let mut kept: Vec<Vec<LabelId>> = vec![Vec::new(); size / grammar.n_labels];
        let all = || (0..grammar.n_labels as u32).map(LabelId);
        for (i, j) in spans(n) {
            let at = chart.at(i, j);
            for label in all().filter(|label| chart.low.posterior(at + label.index()) >= threshold) {
                if chart.low.inside[at + label.index()] > 0.0 {
                    low[at + label.index()] = packed.node(label);
                }
            }
            stop::check();
            let first = packed.edges.len();
            packed.join(grammar, chart, (i, j), &low, &high, &kept);
            packed.edges[first..].sort_by_key(|edge| edge.parent);
            let is_kept = |label: &LabelId| {
                let at = at + label.index();
                let is_root = *label == grammar.root;
                is_root == (j - i == n)
                    && chart.high.inside[at] > 0.0
                    && chart.high.posterior(at) >= threshold
            };
            for label in all().filter(is_kept) {
                high[at + label.index()] = packed.node(label);
                kept[at / grammar.n_labels].push(label);
            }
            let first = packed.edges.len();
            for child in all().filter(|child| low[at + child.index()] != NONE) {
                let left = low[at + child.index()];
                let same = (By::Same, high[at + child.index()]);
                let steps = grammar.unary[child.index()]
                    .iter()
                    .map(|rule| (By::Rule(rule.rule), high[at + rule.parent.index()]));
                for (by, parent) in std::iter::once(same).chain(steps).filter(|&(_, parent)| parent != NONE) {
                    packed.edges.push(Edge { by, parent, left, right: NONE, scale: 1.0 });
                }
            }
            packed.edges[first..].sort_by_key(|edge| edge.parent);
        }
        packed.finish(high[chart.at(0, n) + grammar.root.index()])
    }

    fn node(&mut self, label: LabelId) -> u32 {
        self.labels.push(label);
        self.labels.len() as u32 - 1
    }

    /// Adds the edges to low nodes of a span.
    fn join(
        &mut self,
        grammar: &Grammar,
        chart: &Chart,
        (i, j): (usize, usize),
        low: &[u32],
        high: &[u32],
        kept: &[Vec<LabelId>],
    ) {
        let at = chart.at(i, j);
        if j == i + 1 {
            let scale = chart.word_scale(i);
            let rules: Vec<(LabelId, By)> = match chart.words[i] {
                None => grammar.tags.iter().map(|&tag| (tag, By::Unknown)).collect(),
                Some(word) => grammar.lexical[word.0 as usize]
                    .iter()
                    .map(|rule| (rule.parent, By::Rule(rule.rule)))
                    .collect(),
            };
            for (label, by) in rules {
                let parent = low[at + label.index()];
                if parent != NONE {
                    self.edges.push(Edge { by, parent, left: NONE, right: NONE, scale });
                }
            }
        }
        for k in i + 1..j {
            let (left_at, right_at) = (chart.at(i, k), chart.at(k, j));
            let scale = chart.scale(i, k, j);
            for left in &kept[left_at / grammar.n_labels] {
                for rule in &grammar.binary[left.index()] {
                    let (parent, right) =
                        (low[at + rule.parent.index()], high[right_at + rule.right.index()]);
                    if parent != NONE && right != NONE {
                        let (by, left) = (By::Rule(rule.rule), high[left_at + left.index()]);
                        self.edges.push(Edge { by, parent, left, right, scale });
                    }
                }
            }
        }
    }

    /// Gives absent children their number; without a root nothing is left.
    fn finish(mut self, root: u32) -> Packed {
        if root == NONE {
            return Packed { labels: Vec::new(), edges: Vec::new() };
        }
        let n = self.labels.len() as u32;
        for edge in &mut self.edges {
            edge.left = edge.left.min(n);
            edge.right = edge.right.min(n);
        }
        self
    }

    /// Number of nodes.
    pub fn n_nodes(&self) -> usize {
        self.labels.len()
    }
}
