//! The grammar of a treebank, and trees as sequences of its rules.
//!
//! In: binarised trees whose leaves hang alone under tags. Out: [`Rules`], binary, unary and lexical, in one order, and each tree
//! as a [`Derivation`]: its rules in preorder.
//!
//! A label is what rewrites; tags are labels as well.

use std::collections::BTreeSet;
use std::ops::Range;

use rustc_hash::FxHashMap;
use serde::{Deserialize, Serialize};

use crate::grammar::tree::{Node, Tree};

use super::{ROOT, Vocabulary};

/// Index of a label.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub struct LabelId(pub u32);

/// Index of a word, or of a class of words.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub struct WordId(pub u32);

/// Index of a rule.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub struct RuleId(pub u32);

impl LabelId {
    /// Returns the id as an index.
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

impl RuleId {
    /// Returns the id as an index.
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

/// Right-hand side of a rule.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub enum Rhs {
    /// Two labels.
    Binary(LabelId, LabelId),
    /// One label.
    Unary(LabelId),
    /// A word.
    Lexical(WordId),
}

impl Rhs {
    /// The labels, left to right.
    pub fn labels(self) -> impl Iterator<Item = LabelId> {
        let (left, right) = match self {
            Rhs::Binary(left, right) => (Some(left), Some(right)),
            Rhs::Unary(child) => (Some(child), None),
            Rhs::Lexical(_) => (None, None),
        };
        left.into_iter().chain(right)
    }
}

/// A label and what it rewrites to.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub struct Rule {
    /// The label that is rewritten.
    pub parent: LabelId,
    /// The right-hand side.
    pub right: Rhs,
}

/// The rules of a tree, in preorder.
pub type Derivation = Vec<RuleId>;

/// The rules of a treebank.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Rules {
    /// Sorted, distinct; [`ROOT`] is among them.
    pub labels: Vec<String>,
    /// Words and classes of words; sorted, distinct.
    pub words: Vec<String>,
    /// Sorted, distinct, and so grouped by parent.
    pub rules: Vec<Rule>,
    /// Number of occurrences of each rule in the treebank, ≥ 1. `[n_rules]`
    pub occurrences: Vec<u64>,
}

/// Why [`Rules`] do not hold together.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{0}")]
pub struct RulesError(&'static str);

impl Rules {
    /// The rules of binarised trees, and the trees as derivations.
    ///
    /// # Panics
    /// If a node has more than two children, or a word a sibling.
    pub fn read(trees: &[Tree], vocabulary: &Vocabulary) -> (Rules, Vec<Derivation>) {
        let named: Vec<Vec<Node>> = trees.iter().map(|tree| with_classes(tree, vocabulary)).collect();
        let names = |word: bool| -> Vec<String> {
            let nodes = named.iter().flatten().filter(|node| (node.n_children == 0) == word);
            let top = (!word).then_some(ROOT).into_iter();
            let distinct: BTreeSet<&str> = nodes.map(|node| node.label.as_str()).chain(top).collect();
            distinct.into_iter().map(str::to_owned).collect()
        };
        let (labels, words) = (names(false), names(true));
        let ids = |names: &[String]| -> FxHashMap<String, u32> { names.iter().cloned().zip(0..).collect() };
        let (label_ids, word_ids) = (ids(&labels), ids(&words));
        let label = |node: &Node| LabelId(label_ids[&node.label]);
        let drawn: Vec<Vec<Rule>> = named
            .iter()
            .map(|nodes| {
                // The nodes not yet claimed by a parent, from right to left.
                let mut waiting: Vec<&Node> = Vec::new();
                let mut rules = Vec::new();
                for node in nodes.iter().rev() {
                    let children = waiting.split_off(waiting.len() - node.n_children as usize);
                    let right = match children[..] {
                        [] => None,
                        [child] if child.n_children == 0 => {
                            Some(Rhs::Lexical(WordId(word_ids[&child.label])))
                        }
                        [child] => Some(Rhs::Unary(label(child))),
                        [right, left] if left.n_children > 0 && right.n_children > 0 => {
                            Some(Rhs::Binary(label(left), label(right)))
                        }
                        _ => panic!("`{}` is not binary, or has a word beside a node", node.label),
                    };
                    rules.extend(right.map(|right| Rule { parent: label(node), right }));
                    waiting.push(node);
                }
                rules.reverse();
                rules
            })
            .collect();
        let rules: Vec<Rule> = drawn.iter().flatten().copied().collect::<BTreeSet<_>>().into_iter().collect();
        let rule_ids: FxHashMap<Rule, u32> = rules.iter().copied().zip(0..).collect();
        let derivations: Vec<Derivation> =
            drawn.iter().map(|rules| rules.iter().map(|rule| RuleId(rule_ids[rule])).collect()).collect();
        let mut occurrences = vec![0; rules.len()];
        derivations.iter().flatten().for_each(|rule| occurrences[rule.index()] += 1);
        (Rules { labels, words, rules, occurrences }, derivations)
    }

    /// Checks that they are as [`Rules::read`] makes them, so that every index points at something.
    pub fn check(&self) -> Result<(), RulesError> {
        let holds = |condition: bool, otherwise| if condition { Ok(()) } else { Err(otherwise) };
        holds(self.labels.is_sorted_by(|a, b| a < b), RulesError("labels are not sorted, or not distinct"))?;
        holds(self.words.is_sorted_by(|a, b| a < b), RulesError("words are not sorted, or not distinct"))?;
        holds(self.rules.is_sorted_by(|a, b| a < b), RulesError("rules are not sorted, or not distinct"))?;
        holds(self.label(ROOT).is_some(), RulesError("there is no root"))?;
        let is_label = |label: LabelId| label.index() < self.labels.len();
        let is_word = |right| !matches!(right, Rhs::Lexical(word) if word.0 as usize >= self.words.len());
        let is_rule =
            |rule: &Rule| is_label(rule.parent) && rule.right.labels().all(is_label) && is_word(rule.right);
        holds(self.rules.iter().all(is_rule), RulesError("a rule is of labels or words that are not there"))?;
        let same = self.occurrences.len() == self.rules.len();
        holds(
            same && self.occurrences.iter().all(|&count| count > 0),
            RulesError("rules and their occurrences differ"),
        )
    }

    /// The label of that name.
    pub fn label(&self, name: &str) -> Option<LabelId> {
        let found = self.labels.binary_search_by(|label| label.as_str().cmp(name));
        found.ok().map(|at| LabelId(at as u32))
    }

    /// The word or class of that name.
    pub fn word(&self, name: &str) -> Option<WordId> {
        let found = self.words.binary_search_by(|word| word.as_str().cmp(name));
        found.ok().map(|at| WordId(at as u32))
    }

    /// The label on top of every tree.
    pub fn root(&self) -> LabelId {
        self.label(ROOT).expect("the labels were read with it")
    }

    /// The rules of `parent`.
    pub fn of(&self, parent: LabelId) -> Range<usize> {
        let before = |label: LabelId| self.rules.partition_point(|rule| rule.parent < label);
        before(parent)..before(LabelId(parent.0 + 1))
    }

    /// Whether `tree` is one whole derivation from the root.
    pub fn derive(&self, tree: &[RuleId]) -> bool {
        // What is yet to be rewritten, the leftmost last.
        let mut open = vec![self.root()];
        let fits = tree.iter().all(|rule| {
            let (rule, label) = (self.rules.get(rule.index()), open.pop());
            rule.filter(|rule| Some(rule.parent) == label).is_some_and(|rule| {
                let children: Vec<LabelId> = rule.right.labels().collect();
                open.extend(children.into_iter().rev());
                true
            })
        });
        fits && open.is_empty()
    }

    /// Relative frequency of each rule among those of its parent. `[n_rules]`
    pub fn relative_frequencies(&self) -> Vec<f64> {
        let mut totals = vec![0u64; self.labels.len()];
        let with_counts = || self.rules.iter().zip(&self.occurrences);
        with_counts().for_each(|(rule, count)| totals[rule.parent.index()] += count);
        with_counts().map(|(rule, &count)| count as f64 / totals[rule.parent.index()] as f64).collect()
    }
}

/// The nodes of a tree, with classes for unknown words.
fn with_classes(tree: &Tree, vocabulary: &Vocabulary) -> Vec<Node> {
    let mut first = true;
    let mut nodes = tree.nodes().to_vec();
    for node in nodes.iter_mut().filter(|node| node.n_children == 0) {
        node.label = vocabulary.name(&node.label, first).into_owned();
        first = false;
    }
    nodes
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::treebank::Classes;

    #[test]
    fn rules_and_derivations_by_hand() {
        let trees =
            ["(ROOT (S (N a) (V b)))", "(ROOT (S (N b) (V b)))"].map(|text| Tree::parse(text).unwrap());
        let vocabulary = Vocabulary::new(trees.iter().flat_map(Tree::terminals), 1, Classes::Generic);
        let (rules, derivations) = Rules::read(&trees, &vocabulary);
        assert_eq!(rules.labels, ["N", "ROOT", "S", "V"]);
        assert_eq!(rules.words, ["UNK", "b"]);
        let rule = |parent, right| Rule { parent: LabelId(parent), right };
        let expected = [
            rule(0, Rhs::Lexical(WordId(0))),
            rule(0, Rhs::Lexical(WordId(1))),
            rule(1, Rhs::Unary(LabelId(2))),
            rule(2, Rhs::Binary(LabelId(0), LabelId(3))),
            rule(3, Rhs::Lexical(WordId(1))),
        ];
        assert_eq!(rules.rules, expected);
        assert_eq!(rules.occurrences, [1, 1, 2, 2, 2]);
        assert_eq!(derivations, [[2, 3, 0, 4].map(RuleId), [2, 3, 1, 4].map(RuleId)]);
        assert_eq!(rules.relative_frequencies(), [0.5, 0.5, 1.0, 1.0, 1.0]);
        assert_eq!(rules.of(LabelId(0)), 0..2);
        assert_eq!((rules.root(), rules.word("c")), (LabelId(1), None));
        assert_eq!(rules.check(), Ok(()));
        let broken = |change: fn(&mut Rules)| {
            let mut rules = rules.clone();
            change(&mut rules);
            rules.check().unwrap_err().to_string()
        };
        assert_eq!(broken(|rules| rules.words.swap(0, 1)), "words are not sorted, or not distinct");
        assert_eq!(broken(|rules| rules.labels[1] = "R".to_owned()), "there is no root");
        assert_eq!(
            broken(|rules| rules.rules[4].right = Rhs::Lexical(WordId(2))),
            "a rule is of labels or words that are not there"
        );
        assert_eq!(broken(|rules| rules.occurrences[0] = 0), "rules and their occurrences differ");
        assert!(derivations.iter().all(|tree| rules.derive(tree)));
        for wrong in [&[2, 3, 0][..], &[2, 3, 0, 4, 4], &[3, 0, 4], &[2, 3, 4, 0], &[2, 9], &[]] {
            let tree: Derivation = wrong.iter().map(|&rule| RuleId(rule)).collect();
            assert!(!rules.derive(&tree), "{wrong:?}");
        }
    }
}
