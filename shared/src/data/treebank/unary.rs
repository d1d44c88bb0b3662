//! Unary chains: at most one unary step between two branchings.
//!
//! A chain is a run of nodes with one child each, down to a node that branches or is a tag: ROOT → S → VP, NP → NN. It is cut to
//! its first and last label, and to one of them if they are equal; loops, such as NP → PRN → NP, go. What lay between is kept as a
//! statistic, so that [`Chains::restore`] puts back what lay most often between the two. So a parser needs one unary step per
//! span, and no closure.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::grammar::tree::{Node, Tree};

/// Chains of labels between two ends, with their counts.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Chains {
    /// By first and last label, then by the labels between; the counts are positive.
    counts: BTreeMap<(String, String), BTreeMap<Vec<String>, u32>>,
}

/// Cuts the chains of a tree, and counts them.
pub fn cut(tree: &Tree, chains: &mut Chains) -> Tree {
    let nodes = tree.nodes();
    let mut short = Vec::with_capacity(nodes.len());
    let mut at = 0;
    while at < nodes.len() {
        let mut labels: Vec<&str> = Vec::new();
        loop {
            let label = nodes[at].label.as_str();
            let seen = labels.iter().position(|&earlier| earlier == label);
            labels.truncate(seen.unwrap_or(labels.len()));
            labels.push(label);
            if !is_step(nodes, at) {
                break;
            }
            at += 1;
        }
        if let [first, between @ .., last] = &labels[..] {
            let between = between.iter().map(|&label| label.to_owned()).collect();
            let ends = ((*first).to_owned(), (*last).to_owned());
            *chains.counts.entry(ends).or_default().entry(between).or_default() += 1;
            short.push(Node { label: (*first).to_owned(), n_children: 1 });
        }
        let label = labels[labels.len() - 1].to_owned();
        short.push(Node { label, n_children: nodes[at].n_children });
        at += 1;
    }
    Tree::new(short).expect("nodes with one child were left out")
}

/// Whether the node's only child is not a word.
fn is_step(nodes: &[Node], at: usize) -> bool {
    nodes[at].n_children == 1 && nodes[at + 1].n_children > 0
}

impl Chains {
    /// Puts into every unary step of a tree what most often lay there; of equals the shortest, then the first by alphabet.
    pub fn restore(&self, tree: &Tree) -> Tree {
        let nodes = tree.nodes();
        let mut long = Vec::with_capacity(nodes.len());
        for (at, node) in nodes.iter().enumerate() {
            long.push(node.clone());
            if is_step(nodes, at) {
                let between = self.between(&node.label, &nodes[at + 1].label);
                long.extend(between.iter().map(|label| Node { label: label.clone(), n_children: 1 }));
            }
        }
        Tree::new(long).expect("nodes with one child were put in")
    }

    fn between(&self, first: &str, last: &str) -> &[String] {
        let ends = (first.to_owned(), last.to_owned());
        let most = self.counts.get(&ends).and_then(|counts| {
            let rank = |(between, count): &(&Vec<String>, &u32)| (**count, std::cmp::Reverse(between.len()));
            // Of equals `max_by_key` takes the last.
            counts.iter().rev().max_by_key(rank)
        });
        most.map_or(&[], |(between, _)| between)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::treebank::brackets::{line, read};

    fn tree(text: &str) -> Tree {
        read(text, "t").unwrap().remove(0).tree.unwrap()
    }

    #[test]
    fn chains_are_cut_and_loops_go() {
        for (text, expected) in [
            ("(ROOT (S (VP (VB go) (RB on))))", "(ROOT (VP (VB go) (RB on)))"),
            ("(ROOT (NP (NP (NN x))))", "(ROOT (NN x))"),
            ("(A (A (B (A (X x) (Y y)))))", "(A (X x) (Y y))"),
            ("(A (B (C (B (X x)))))", "(A (X x))"),
            ("(A (X x) (B (X x)))", "(A (X x) (B (X x)))"),
            ("(A (X X))", "(A (X X))"),
        ] {
            assert_eq!(line(&cut(&tree(text), &mut Chains::default())), expected, "for {text}");
        }
    }

    #[test]
    fn the_most_frequent_chain_is_restored() {
        let mut chains = Chains::default();
        for text in [
            "(A (B (X x)))",
            "(A (C (D (X x))))",
            "(A (C (D (X x))))",
            "(A (X x))",
            "(E (F (X x)))",
            "(E (X x))",
        ] {
            cut(&tree(text), &mut chains);
        }
        let restored = |text| line(&chains.restore(&tree(text)));
        assert_eq!(restored("(A (X x))"), "(A (C (D (X x))))");
        assert_eq!(restored("(E (X x))"), "(E (X x))", "of equals the shortest");
        assert_eq!(restored("(G (A (X x)) (X x))"), "(G (A (C (D (X x)))) (X x))");
        assert_eq!(restored("(G (X x))"), "(G (X x))", "a chain never seen");
    }
}
