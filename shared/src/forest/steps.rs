//! From a derivation to a tree.
//!
//! A derivation of the binary grammar is walked as [`Step`]s, left to right: parts of rules and A° leave no trace, and what is below
//! a string may be given by its own analysis.

use std::sync::Arc;

use super::best::Derivation;
use super::binary::BinaryGrammar;
use super::{Edge, Forest};
use crate::grammar::tree::{Node, Tree, push_label};
use crate::grammar::{Grammar, SymbolId};
use crate::stop::Meter;

/// A step through a tree, left to right.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Step {
    /// A constituent begins.
    Open(SymbolId),
    /// A token.
    Leaf(SymbolId),
    /// The constituent that began last ends.
    Close,
}

/// Text of a node; `None` for parts of rules and for A°, which is part of its A.
pub fn printed(binary: &BinaryGrammar, forest: &Forest, node: usize) -> Option<SymbolId> {
    let symbol = forest.labels[node].symbol;
    binary.printed[symbol as usize].filter(|printed| printed.0 == symbol)
}

/// The steps through a derivation of `tokens`; without those of the root itself if it is left out. `below(edge, string)` gives
/// the steps below a node whose edge is a string; without, its tokens follow.
///
/// # Errors
/// Returns the steps of the edges that `below` gives.
pub fn steps<E>(
    binary: &BinaryGrammar,
    forest: &Forest,
    derivation: &Derivation,
    tokens: &[SymbolId],
    with_root: bool,
    mut below: impl FnMut(&Edge, &[SymbolId]) -> Result<Option<Arc<Vec<Step>>>, E>,
) -> Result<Vec<Step>, E> {
    enum Todo {
        Node(usize),
        Tokens(u32, u32),
        Close,
    }
    let (mut steps, mut open) = (Vec::new(), vec![Todo::Node(forest.root())]);
    let mut meter = Meter::default();
    while let Some(todo) = open.pop() {
        meter.add(1);
        let node = match todo {
            Todo::Close => {
                steps.push(Step::Close);
                continue;
            }
            Todo::Tokens(start, end) => {
                steps.extend(tokens[start as usize..end as usize].iter().map(|&token| Step::Leaf(token)));
                continue;
            }
            Todo::Node(node) => node,
        };
        let label = forest.labels[node];
        if let Some(symbol) = printed(binary, forest, node).filter(|_| with_root || node != forest.root()) {
            steps.push(Step::Open(symbol));
            open.push(Todo::Close);
        }
        let edge = derivation.edge(forest, node);
        if let Some(inner) = below(edge, &tokens[label.start as usize..label.end as usize])? {
            meter.add(inner.len());
            steps.extend(inner.iter().copied());
            continue;
        }
        let mut end = label.end;
        for &tail in edge.tails.iter().rev().filter(|&&tail| tail != 0) {
            let child = forest.labels[tail as usize];
            open.push(Todo::Tokens(child.end, end));
            open.push(Todo::Node(tail as usize));
            end = child.start;
        }
        open.push(Todo::Tokens(label.start, end));
    }
    Ok(steps)
}

/// The tree that the steps go through.
pub fn tree(grammar: &Grammar, steps: &[Step]) -> Tree {
    let node = |symbol: SymbolId| Node { label: grammar.name(symbol).to_owned(), n_children: 0 };
    let (mut nodes, mut parents): (Vec<Node>, Vec<usize>) = (Vec::new(), Vec::new());
    for step in steps {
        let (Step::Open(symbol) | Step::Leaf(symbol)) = *step else {
            parents.pop();
            continue;
        };
        if let Some(&parent) = parents.last() {
            nodes[parent].n_children += 1;
        }
        if let Step::Open(_) = step {
            parents.push(nodes.len());
        }
        nodes.push(node(symbol));
    }
    Tree::new(nodes).expect("steps open and close in pairs, and every constituent has a token")
}

/// Text that [`tree`] of the steps prints, without building the tree.
pub fn brackets(grammar: &Grammar, steps: &[Step]) -> String {
    let mut text = String::with_capacity(8 * steps.len());
    let mut is_first = true;
    for step in steps {
        let (Step::Open(symbol) | Step::Leaf(symbol)) = *step else {
            text.push(')');
            continue;
        };
        if !std::mem::take(&mut is_first) {
            text.push(' ');
        }
        if let Step::Open(_) = step {
            text.push('(');
        }
        push_label(&mut text, grammar.name(symbol));
    }
    text
}

/// The segment ends of the [`tree`] of the steps, as [`Tree::segment_ends`] finds them, without making the tree.
pub fn segment_ends(steps: &[Step], is_segment: impl Fn(SymbolId) -> bool) -> Vec<u32> {
    let (mut ends, mut n_terminals) = (Vec::new(), 0);
    // Constituents that are open, from the current segment on.
    let mut inside = 0u32;
    for step in steps {
        match *step {
            Step::Open(symbol) => inside += u32::from(inside > 0 || is_segment(symbol)),
            Step::Close => {
                if inside == 1 {
                    ends.push(n_terminals);
                }
                inside = inside.saturating_sub(1);
            }
            Step::Leaf(_) => {
                n_terminals += 1;
                if inside == 0 {
                    ends.push(n_terminals);
                }
            }
        }
    }
    ends
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::grammar::syntax;

    /// A grammar with terminals that need backslashes.
    fn grammar() -> Grammar {
        syntax::parse("1 1 S --> W b)\n1 1 S --> S W\n1 1 W --> a\n1 1 W --> é%'\n", "g").unwrap().0
    }

    proptest! {
        /// Law: text and segments are those of the tree.
        #[test]
        fn a_tree_need_not_be_made(shape in prop::collection::vec((0..3u8, 0..9usize), 0..40)) {
            let grammar = grammar();
            let (nonterminals, n) = (grammar.n_nonterminals as usize, grammar.symbols.len());
            let any = |from: usize, to: usize, at: usize| SymbolId((from + at % (to - from)) as u32);
            let leaf = |at: usize| Step::Leaf(any(nonterminals, n, at));
            // one constituent around all, in each of which a token comes first
            let (mut steps, mut depth) = (vec![Step::Open(SymbolId(0)), leaf(0)], 1);
            for (kind, at) in shape {
                match kind {
                    0 => {
                        steps.extend([Step::Open(any(0, nonterminals, at)), leaf(at)]);
                        depth += 1;
                    }
                    1 if depth > 1 => {
                        steps.push(Step::Close);
                        depth -= 1;
                    }
                    _ => steps.push(leaf(at)),
                }
            }
            steps.extend((0..depth).map(|_| Step::Close));
            let tree = tree(&grammar, &steps);
            prop_assert_eq!(brackets(&grammar, &steps), tree.to_string());
            for segment in 0..nonterminals as u32 {
                let label = grammar.name(SymbolId(segment));
                let expected = tree.segment_ends(|found| found == label);
                prop_assert_eq!(segment_ends(&steps, |symbol| symbol.0 == segment), expected);
            }
        }
    }
}
