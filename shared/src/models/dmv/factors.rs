//! Factors of arcs in forests: what is known of a tree before training, softly by tags and surely by sentence.
//!
//! In: the forest of a sentence, the [`ArcFactors`] of its grammar, and the [`TreeMarks`] of the sentence. Out: the forest of the trees that agree with the
//! marks, whose edges hold [`Slots`] where an arc has a factor. The factor of a tree is
//!
//! ```text
//! f(root) · Π over arcs f(head, child),   f(head, child) = 0 if the head of child is known to be another, else
//!     exp(arcs[tag of head, tag of child, side] + crossing · [punctuation between them] + Σ longer · [longer than that])
//! ```
//!
//! so that log Z and expected counts are those of all trees, weighed by this product too: of p(tree | words) ∝ p(tree, words) · f(tree). It is the
//! one mechanism for soft rules ([`super::rules`]) and for known heads.
//!
//! In folded forests the factors are in [`crate::forest::chains::Chains`], in others in [`Factored::weights`].

use super::constraint::{layout_of, restricted};
use super::decode::Arcs;
use super::layout::Layout;
use crate::data::{Sentence, TreeMarks, dependency};
use crate::forest::inside::{Scratch, Weights, edge_posteriors, real};
use crate::forest::slots::Slots;
use crate::forest::{Edge, Forest};
use crate::grammar::factors::ArcFactors;
use crate::grammar::{Grammar, SymbolId};
use crate::num::Wide;

/// Factors of the arcs of a grammar.
#[derive(Clone, Debug)]
pub struct Factors<'a> {
    layout: Layout,
    /// `None` if all are one.
    of_tags: Option<&'a ArcFactors>,
}

impl<'a> Factors<'a> {
    /// The factors of `grammar`; `None` if it has none, and no sentence is marked, or if it is no dependency grammar.
    pub fn new<'m>(
        grammar: &'a Grammar,
        mut marks: impl Iterator<Item = &'m TreeMarks>,
    ) -> Option<Factors<'a>> {
        let of_tags = grammar.factors.as_ref();
        if of_tags.is_none() && marks.all(TreeMarks::is_empty) {
            return None;
        }
        layout_of(grammar).map(|(layout, _)| Factors { layout, of_tags })
    }

    /// Factors of one, of a dependency grammar without adapted nonterminals; `None` for another one.
    pub fn ones(grammar: &'a Grammar) -> Option<Factors<'a>> {
        layout_of(grammar).map(|(layout, _)| Factors { layout, of_tags: None })
    }

    /// Those of a shard.
    pub fn of_sentences(grammar: &'a Grammar, sentences: &'a [Sentence]) -> Option<Factors<'a>> {
        Factors::new(grammar, sentences.iter().map(|sentence| &sentence.marks))
    }

    /// The trees of the forest of a sentence that agree with its marks; `None` if there are none. [`Layout::arc`] says of which kind the forest is.
    pub fn restrict(&self, forest: &Forest, marks: &TreeMarks) -> Option<Forest> {
        if marks.heads.is_empty() {
            return Some(forest.clone());
        }
        restricted(self.layout, forest, |head, child| marks.allows(head, child))
    }

    /// The forest of `tokens` with slots for the parameters of arcs that have a factor.
    pub fn apply(
        &self,
        forest: &Forest,
        tokens: &[SymbolId],
        marks: &TreeMarks,
        slots: &mut Slots,
    ) -> Forest {
        let mut factored = forest.clone();
        let Some(of_tags) = self.of_tags else { return factored };
        let tags = self.layout.tags(tokens);
        for node in 0..forest.n_nodes() {
            for at in forest.first_edge[node] as usize..forest.first_edge[node + 1] as usize {
                let edge = forest.edges[at];
                if let Some((head, child)) = self.layout.arc(forest, node, &edge) {
                    let ln_factor = ln_factor(of_tags, &tags, marks, head, child);
                    factored.edges[at].param = slots.number(edge.param, ln_factor);
                }
            }
        }
        factored
    }
}

/// What a grammar can use of what is known of a sentence: places of punctuation if it has a factor for arcs across, and the given heads if they
/// `constrain`.
pub fn marks(grammar: &Grammar, sentence: &dependency::Sentence, constrain: bool) -> TreeMarks {
    let crosses = grammar.factors.as_ref().is_some_and(|factors| factors.crossing != 0.0);
    let knows = constrain && sentence.given.iter().any(Option::is_some);
    TreeMarks {
        heads: if knows { sentence.given.clone() } else { Vec::new() },
        breaks: if crosses { sentence.breaks.clone() } else { Vec::new() },
        brackets: Vec::new(),
    }
}

/// The logarithm of the factor of an arc that marks allow; positions from 1, head 0 for the root.
pub fn ln_factor(factors: &ArcFactors, tags: &[u32], marks: &TreeMarks, head: usize, child: usize) -> f64 {
    let tag = |word: usize| tags[word - 1] as usize;
    if head == 0 {
        return factors.roots[tag(child)];
    }
    let mut sum = factors.arcs[tag(head) * factors.roots.len() + tag(child)][usize::from(child > head)];
    if factors.crossing != 0.0 && marks.separates(head, child) {
        sum += factors.crossing;
    }
    let length = head.abs_diff(child);
    sum + factors
        .longer
        .iter()
        .filter(|(longest, _)| length > *longest as usize)
        .map(|(_, ln)| ln)
        .sum::<f64>()
}

/// Factors for forests that are not folded, with the weights of their slots.
#[derive(Clone, Debug)]
pub struct Factored<'a> {
    factors: Factors<'a>,
    slots: Slots,
    n_params: usize,
    /// Weights by parameter, then by slot, in both forms.
    wide: Vec<Wide>,
    real: Vec<f64>,
}

impl<'a> Factored<'a> {
    /// Factors for weights by parameter.
    pub fn new(factors: Factors<'a>, weights: &[Wide]) -> Factored<'a> {
        let n_params = weights.len();
        let slots = Slots::from(n_params as u32);
        Factored { factors, slots, n_params, wide: weights.to_vec(), real: real(weights) }
    }

    /// The trees of the forest of a sentence that agree with its marks, and the same with slots; `None` if there are none. Nodes and edges have the
    /// same places in both, so that a derivation of one is one of the other.
    pub fn apply(
        &mut self,
        forest: &Forest,
        tokens: &[SymbolId],
        marks: &TreeMarks,
    ) -> Option<(Forest, Forest)> {
        let plain = self.factors.restrict(forest, marks)?;
        let factored = self.factors.apply(&plain, tokens, marks, &mut self.slots);
        for &(param, ln_factor) in &self.slots.all()[self.wide.len() - self.n_params..] {
            let weight = self.wide[param as usize] * Wide::from_ln(ln_factor);
            self.real.extend(real(&[weight]));
            self.wide.push(weight);
        }
        Some((plain, factored))
    }

    /// Weights by parameter and slot.
    pub fn weights(&self) -> Weights<'_> {
        Weights { wide: &self.wide, real: &self.real }
    }

    /// Posteriors of the arcs of a sentence in its forest with slots.
    pub fn arcs(&self, factored: &Forest, scratch: &mut Scratch) -> Arcs {
        let mut arcs = Arcs::new(factored.labels[factored.root()].end as usize / 2);
        edge_posteriors(factored, &self.weights(), scratch, |node, edge, posterior| {
            let edge = Edge { param: self.slots.resolve(edge.param).0, ..*edge };
            if let Some((head, child)) = self.factors.layout.arc(factored, node, &edge) {
                arcs.add(head, child, posterior);
            }
        });
        arcs
    }

    /// The layout of the grammar.
    pub fn layout(&self) -> Layout {
        self.factors.layout
    }

    /// The parameter of an edge with slots.
    pub fn param(&self, edge: &Edge) -> u32 {
        self.slots.resolve(edge.param).0
    }
}
