//! Reads a PCFG off a treebank: one rule for every node and its children, as many children as there are.
//!
//! The grammar is one of [`crate::grammar`], so the estimators of [`crate::models::pcfg`] can go on from the trees. On the way
//! - of a unary chain the topmost label stays, and the tag if it is another one: S → VP → VB is S → VB, and X → X is X. So no label is above itself
//!   alone;
//! - words lose the backslashes of the Penn Treebank (`1\/2`);
//! - a label that is a word as well, as of punctuation, gets a mark: `(,^ ,)`.

use std::collections::BTreeSet;

use rustc_hash::FxHashMap;

use super::ROOT;
use crate::grammar::check::Defect;
use crate::grammar::tree::{Node, Tree};
use crate::grammar::{Grammar, Rule, SymbolId};

/// Terminals of the sentences.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Terminals {
    /// The words of the trees.
    Words,
    /// Their tags, in the place of words.
    Tags,
}

/// Added to labels that are words.
const MARK: char = '^';

/// Trees as the grammar derives them.
pub fn trees(cleaned: &[Tree], terminals: Terminals) -> Vec<Tree> {
    let trees: Vec<Vec<Node>> = cleaned.iter().map(|tree| shortened(tree, terminals)).collect();
    let is_word = |node: &&Node| node.n_children == 0;
    let words: BTreeSet<String> =
        trees.iter().flatten().filter(is_word).map(|node| node.label.clone()).collect();
    let marked = |mut node: Node| {
        while node.n_children > 0 && words.contains(&node.label) {
            node.label.push(MARK);
        }
        node
    };
    let tree = |nodes: Vec<Node>| Tree::new(nodes.into_iter().map(marked).collect());
    trees.into_iter().map(tree).collect::<Result<_, _>>().expect("nodes with one child were left out")
}

/// The rules of `trees`, each with pseudo-count 1; their first label is the start symbol.
///
/// # Errors
/// [`Defect`] if the rules are no grammar, as without trees.
pub fn grammar(trees: &[Tree]) -> Result<Grammar, Defect> {
    let mut symbols = Symbols::default();
    for node in trees.iter().flat_map(Tree::nodes).filter(|node| node.n_children > 0) {
        symbols.id(&node.label);
    }
    let n_nonterminals = symbols.names.len();
    let mut written: BTreeSet<(SymbolId, Vec<&str>)> = BTreeSet::new();
    for tree in trees {
        // Of the nodes behind, those without a parent yet, the next one last.
        let mut orphans: Vec<&str> = Vec::new();
        for node in tree.nodes().iter().rev() {
            let mut children = orphans.split_off(orphans.len() - node.n_children as usize);
            children.reverse();
            if node.n_children > 0 {
                written.insert((symbols.id(&node.label), children));
            }
            orphans.push(&node.label);
        }
    }
    let mut rules = Vec::with_capacity(written.len());
    for (parent, children) in written {
        let children = children.into_iter().map(|child| symbols.id(child)).collect();
        rules.push(Rule { parent, children, alpha: 1.0 });
    }
    Grammar::new(symbols.names, n_nonterminals as u32, rules, vec![None; n_nonterminals])
}

/// Names in the order in which they were first seen.
#[derive(Default)]
struct Symbols {
    names: Vec<String>,
    ids: FxHashMap<String, SymbolId>,
}

impl Symbols {
    fn id(&mut self, name: &str) -> SymbolId {
        *self.ids.entry(name.to_owned()).or_insert_with(|| {
            self.names.push(name.to_owned());
            SymbolId(self.names.len() as u32 - 1)
        })
    }
}

/// The nodes of a tree whose chains have a label and a tag at most.
fn shortened(tree: &Tree, terminals: Terminals) -> Vec<Node> {
    let nodes = tree.nodes();
    let is_word = |at: usize| nodes[at].n_children == 0;
    let is_tag = |at: usize| nodes[at].n_children == 1 && is_word(at + 1);
    let mut short: Vec<Node> = Vec::with_capacity(nodes.len());
    for (at, node) in nodes.iter().enumerate() {
        let above = at.checked_sub(1).filter(|&above| !is_word(above) && nodes[above].n_children == 1);
        match above {
            _ if is_word(at) => {
                let label = match terminals {
                    Terminals::Words => node.label.replace('\\', ""),
                    Terminals::Tags => nodes[at - 1].label.clone(),
                };
                short.push(Node { label, n_children: 0 });
            }
            // The label above stands for this one as well.
            Some(above)
                if nodes[above].label != ROOT
                    && let Some(last) = short.last_mut()
                    && (!is_tag(at) || last.label == node.label) =>
            {
                last.n_children = node.n_children;
            }
            _ => short.push(node.clone()),
        }
    }
    short
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::treebank::brackets::{line, read};
    use crate::data::treebank::clean::clean;
    use crate::grammar::syntax;

    fn cleaned(text: &str) -> Vec<Tree> {
        let entries = read(text, "t").unwrap();
        entries.iter().map(|entry| clean(entry.tree.as_ref().unwrap()).unwrap()).collect()
    }

    fn lines(trees: &[Tree]) -> Vec<String> {
        trees.iter().map(line).collect()
    }

    const TREES: &str = "(S (NP (NN dog)) (VP (VP (VB barks) (, ,))))\n(S (VP (S (VB go) (CD 1\\/2))))\n(FRAG (NP (FRAG (NP (NN NP)))))";

    #[test]
    fn chains_keep_their_topmost_label_and_the_tag() {
        assert_eq!(
            lines(&trees(&cleaned(TREES), Terminals::Words)),
            [
                "(ROOT (S (NP^ (NN dog)) (VP (VB barks) (,^ ,))))",
                "(ROOT (S (VB go) (CD 1/2)))",
                "(ROOT (FRAG (NN NP)))"
            ]
        );
        assert_eq!(
            lines(&trees(&cleaned(TREES), Terminals::Tags)),
            [
                "(ROOT (S (NP (NN^ NN)) (VP (VB^ VB) (,^ ,))))",
                "(ROOT (S (VB^ VB) (CD^ CD)))",
                "(ROOT (FRAG (NN^ NN)))"
            ]
        );
    }

    #[test]
    fn a_chain_over_the_same_tag_is_the_tag() {
        let text = "(S (X (X foo)) (NN dog))\n(X (NP (X bar)))\n(S (X (Y (X baz))) (NN cat))";
        for (terminals, expected) in [
            (
                Terminals::Words,
                ["(ROOT (S (X foo) (NN dog)))", "(ROOT (X bar))", "(ROOT (S (X baz) (NN cat)))"],
            ),
            (Terminals::Tags, ["(ROOT (S (X^ X) (NN^ NN)))", "(ROOT (X^ X))", "(ROOT (S (X^ X) (NN^ NN)))"]),
        ] {
            let trees = trees(&cleaned(text), terminals);
            assert_eq!(lines(&trees), expected);
            assert!(grammar(&trees).is_ok());
        }
    }

    #[test]
    fn every_tree_is_one_of_the_grammar() {
        let trees = trees(&cleaned(TREES), Terminals::Words);
        let grammar = grammar(&trees).unwrap();
        assert_eq!(grammar.symbols[0], ROOT);
        let counts = crate::models::pcfg::trees::counts(
            &grammar,
            &crate::grammar::lexicon::Lexicon::default(),
            &trees,
        )
        .unwrap();
        assert_eq!(counts.iter().sum::<f64>(), trees.iter().map(rules).sum::<f64>());
        let (again, _) = syntax::parse(&syntax::print(&grammar), "printed").unwrap();
        assert_eq!(again, grammar, "it can be written and read");
        assert!(super::grammar(&[]).is_err(), "no trees, no grammar");
    }

    fn rules(tree: &Tree) -> f64 {
        tree.nodes().iter().filter(|node| node.n_children > 0).count() as f64
    }
}
