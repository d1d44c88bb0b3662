//! Parsing: trees of sentences without annotation.
//!
//! In: a trained [`Model`] and the words of a sentence. Out: a tree as people draw it. From coarse to fine:
//! - the grammar without subtypes, whose rules have their relative frequencies in the treebank, fills a chart ([`coarse`]);
//! - constituents with a posterior below a threshold are dropped, the rest is packed ([`packed`]);
//! - the split grammar goes over that ([`fine`]);
//! - a [`Decoder`] chooses the tree ([`best`]).
//!
//! As in training, there is at most one unary step per span. Words are named as in training; one of a class that training never
//! had takes the next wider class, and if there is none either, any tag.
//!
//! Petrov & Klein (2007), with one projection: relative frequencies are those of the split grammar projected by expected counts,
//! as every tree of the treebank was counted.

use serde::{Deserialize, Serialize};

use crate::data::treebank::{
    Chains, LabelId, ROOT, Rhs, Rules, RulesError, Vocabulary, WordId, restore, words,
};
use crate::forest::turn::{LARGE, Turn};
use crate::grammar::tree::{Node, Tree};
use crate::limits::MAX_FOREST;

use super::Layout;
use super::layout::{MAX_SUBTYPES, TooManyWeights};

pub mod coarse;

pub mod packed;

pub mod fine;

pub mod best;

pub mod n_best;

/// All that parsing needs.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Model {
    /// The rules, without subtypes.
    pub rules: Rules,
    /// Classes of unknown words.
    pub vocabulary: Vocabulary,
    /// Chains that unary steps stand for.
    pub chains: Chains,
    /// Number of subtypes.
    pub n_subtypes: usize,
    /// Probabilities of the split rules ([`super::Params::estimate`]). `[n_params]`
    pub weights: Vec<f64>,
}

/// Why a [`Model`] does not hold together.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum ModelError {
    /// The rules do not.
    #[error(transparent)]
    Rules(#[from] RulesError),
    /// Labels without subtypes, or with more than there can be.
    #[error("labels have {found} subtypes, expected 1 to {MAX_SUBTYPES}")]
    Subtypes {
        /// Subtypes of the model.
        found: usize,
    },
    /// Split rules with too many weights.
    #[error(transparent)]
    TooManyWeights(#[from] TooManyWeights),
    /// Weights are not as many as split rules.
    #[error("rules and their weights differ")]
    Length,
    /// A weight is negative or not finite.
    #[error("a rule has no weight")]
    Weight,
}

impl Model {
    /// Checks that every index points at something and every weight is one.
    pub fn check(&self) -> Result<(), ModelError> {
        self.rules.check()?;
        if !(1..=MAX_SUBTYPES).contains(&self.n_subtypes) {
            return Err(ModelError::Subtypes { found: self.n_subtypes });
        }
        Layout::check(&self.rules, self.n_subtypes)?;
        if self.weights.len() != Layout::new(&self.rules, self.n_subtypes).n_params() {
            return Err(ModelError::Length);
        }
        let is_weight = |weight: &f64| weight.is_finite() && *weight >= 0.0;
        if self.weights.iter().all(is_weight) { Ok(()) } else { Err(ModelError::Weight) }
    }
}

/// How the tree is chosen.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Decoder {
    /// The tree of the most probable annotated tree.
    Viterbi,
    /// The tree with the largest product of its rules' posteriors, subtypes summed out (max-rule-product; Petrov & Klein 2007).
    MaxRule,
}

/// Result of parsing a sentence.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Parse {
    /// The tree.
    pub tree: Tree,
    /// Whether no tree was found, because the grammar has none, the threshold left none or the chart would take more than
    /// [`MAX_FOREST`]; then this one is flat, and each word has its most frequent tag.
    pub flat: bool,
}

/// Posterior below which a constituent is dropped, if nothing else is wanted.
pub const THRESHOLD: f64 = 1e-5;

/// A model made ready to parse.
pub struct Parser<'a> {
    model: &'a Model,
    layout: Layout,
    coarse: coarse::Grammar,
    threshold: f64,
}

impl<'a> Parser<'a> {
    /// A parser that drops constituents whose posterior in the grammar without subtypes is below `threshold`.
    pub fn new(model: &'a Model, threshold: f64) -> Parser<'a> {
        let layout = Layout::new(&model.rules, model.n_subtypes);
        Parser { model, layout, coarse: coarse::Grammar::new(&model.rules), threshold }
    }

    /// Parses a sentence.
    ///
    /// # Panics
    /// If there are no words.
    pub fn parse(&self, words: &[&str], decoder: Decoder) -> Parse {
        assert!(!words.is_empty(), "a sentence has words");
        let ids = self.names(words);
        let weights = &self.model.weights;
        let tree = self.in_chart(&ids, |packed| best::tree(packed, &self.layout, weights, decoder));
        match tree {
            Some(steps) => {
                Parse { tree: restore(&self.draw(&steps, words), &self.model.chains), flat: false }
            }
            None => Parse { tree: self.flat(words, &ids), flat: true },
        }
    }

    /// The `n` best trees of a sentence by [`Decoder::Viterbi`] in order, each once, with its probability, subtypes summed out; all of the pruned chart if
    /// there are fewer, and none if [`Parser::parse`] finds none.
    ///
    /// # Panics
    /// If there are no words.
    pub fn n_best(&self, words: &[&str], n: usize) -> Vec<(f64, Tree)> {
        assert!(!words.is_empty(), "a sentence has words");
        let trees = self.in_chart(&self.names(words), |packed| {
            let trees = n_best::trees(packed, &self.layout, &self.model.weights, n);
            (!trees.is_empty()).then_some(trees)
        });
        let tree = |(probability, steps): (f64, Vec<best::Step>)| {
            (probability, restore(&self.draw(&steps, words), &self.model.chains))
        };
        trees.unwrap_or_default().into_iter().map(tree).collect()
    }

    /// What `find` finds in the pruned chart of a sentence; none without a chart.
    fn in_chart<T>(&self, ids: &[Option<WordId>], find: impl Fn(&packed::Packed) -> Option<T>) -> Option<T> {
        let bytes = coarse::Chart::bytes(&self.coarse, ids.len());
        // A large chart waits for the others of this process.
        let _turn = (bytes > LARGE).then(Turn::take);
        let chart = (bytes <= MAX_FOREST).then(|| coarse::Chart::fill(&self.coarse, ids)).flatten()?;
        // What the threshold drops may have been all; then it is squared, once.
        let mut thresholds = [self.threshold, self.threshold * self.threshold].into_iter();
        thresholds.find_map(|threshold| find(&packed::Packed::new(&self.coarse, &chart, threshold)))
    }

    /// The words of a sentence as the rules have them; none for a word of which nothing is known.
    fn names(&self, words: &[&str]) -> Vec<Option<WordId>> {
        let name = |(at, word): (usize, &&str)| {
            let name = self.model.vocabulary.name(word, at == 0);
            let mut class = Some(name.as_ref());
            while let Some(name) = class {
                if let Some(id) = self.model.rules.word(name) {
                    return Some(id);
                }
                class = words::wider(name);
            }
            None
        };
        words.iter().enumerate().map(name).collect()
    }

    /// The tree of rules in preorder.
    fn draw(&self, steps: &[best::Step], words: &[&str]) -> Tree {
        let mut words = words.iter();
        let mut nodes = Vec::new();
        for step in steps {
            let label = self.model.rules.labels[step.label.index()].clone();
            nodes.push(Node { label, n_children: step.n_children.max(1) });
            if step.n_children == 0 {
                let word = words.next().expect("a tree has as many tags as words");
                nodes.push(Node { label: (*word).to_owned(), n_children: 0 });
            }
        }
        Tree::new(nodes).expect("every rule has its children")
    }

    fn flat(&self, words: &[&str], ids: &[Option<WordId>]) -> Tree {
        let rules = &self.model.rules;
        let tag = |wanted: Option<WordId>| -> LabelId {
            let mut counts = vec![0; rules.labels.len()];
            for (rule, count) in rules.rules.iter().zip(&rules.occurrences) {
                if let Rhs::Lexical(word) = rule.right
                    && wanted.is_none_or(|wanted| wanted == word)
                {
                    counts[rule.parent.index()] += count;
                }
            }
            let most = (0..counts.len()).rev().max_by_key(|&label| counts[label]);
            LabelId(most.expect("there is a root") as u32)
        };
        let mut nodes = vec![Node { label: ROOT.to_owned(), n_children: words.len() as u32 }];
        for (word, &id) in words.iter().zip(ids) {
            nodes.push(Node { label: rules.labels[tag(id).index()].clone(), n_children: 1 });
            nodes.push(Node { label: (*word).to_owned(), n_children: 0 });
        }
        Tree::new(nodes).expect("tags and words alternate")
    }
}
