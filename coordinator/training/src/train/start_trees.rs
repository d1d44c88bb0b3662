//! Trees that training starts from: read from a file, and checked against the grammar and the sentences.
//!
//! A label of py-cfg's option `-A`, such as `Word#12`, is read without the number of customers.

use std::path::Path;

use anyhow::{Context as _, Result, anyhow, ensure};
use grammaton::grammar::Grammar;
use grammaton::grammar::lexicon::Lexicon;
use grammaton::grammar::tree::{Node, Tree};
use grammaton::models::pcfg::trees::Derivations;
use grammaton::work::shard::Shard;

use super::text::{Text, described};
use crate::input;

/// Trees with the lines that they are on.
pub struct StartTrees {
    name: String,
    trees: Vec<(u32, Tree)>,
}

impl StartTrees {
    /// Reads trees of the grammar and `strings`, one per line. If there are as many as `n_sentences`, those of the sentences at
    /// the positions `left_out` are left out.
    pub fn read(
        path: &Path,
        grammar: &Grammar,
        strings: &Lexicon,
        left_out: &[usize],
        n_sentences: usize,
    ) -> Result<StartTrees> {
        let name = path.display().to_string();
        let text = input::text(path, &name, "trees")?;
        let lines = || text.lines().zip(1..).filter(|(line, _)| !line.trim().is_empty());
        let left_out = if lines().count() == n_sentences { left_out } else { &[] };
        let derivations = Derivations::new(grammar, strings);
        let tree = |(_, (line, number)): (usize, (&str, u32))| {
            let tree = Tree::parse(line).with_context(|| {
                format!("{name}:{number}: not a tree; write one per line, as parses.txt is")
            })?;
            let tree = without_customers(grammar, tree);
            derivations.each(&tree, |_| {}).map_err(|foreign| anyhow!("{name}:{number}: {foreign}"))?;
            Ok((number, tree))
        };
        let kept = lines().enumerate().filter(|(at, _)| left_out.binary_search(at).is_err());
        let trees = kept.map(tree).collect::<Result<_>>()?;
        Ok(StartTrees { name, trees })
    }

    /// Checks that they are the trees of all sentences of `text`, in order.
    pub fn check(&self, grammar: &Grammar, text: &Text) -> Result<()> {
        let (found, expected) = (self.trees.len(), text.n_sentences);
        ensure!(
            found == expected,
            "{}: found {found} trees, expected one for each of the {expected} sentences to train on, in their order",
            self.name
        );
        text.blocks(|sentences, shards, block| {
            let trees = &self.trees[sentences];
            for (shard, positions) in text.shards[shards].iter().zip(&block.positions) {
                let Shard::Sentences(distinct) = &*shard.value()? else { continue };
                let occurrences = distinct.iter().zip(positions);
                let occurrences = occurrences.flat_map(|(sentence, at)| at.iter().map(move |&at| (sentence, at)));
                for (sentence, position) in occurrences {
                    let (number, tree) = &trees[position as usize];
                    let tokens = sentence.tokens.iter().map(|&token| grammar.name(token));
                    ensure!(
                        tree.terminals().eq(tokens),
                        "{}:{number}: this tree is not of its sentence, {}; give trees in the order of the sentences",
                        self.name,
                        described(&block.corpus, position as usize)
                    );
                }
            }
            Ok(())
        })
    }

    /// The trees.
    pub fn into_trees(self) -> Vec<Tree> {
        self.trees.into_iter().map(|(_, tree)| tree).collect()
    }
}

/// The tree with `Word` for each label `Word#12` that is no symbol of the grammar, if `Word` is a nonterminal.
fn without_customers(grammar: &Grammar, tree: Tree) -> Tree {
    let known = |label: &str| grammar.symbols.iter().any(|symbol| symbol == label);
    let name = |label: &str| -> Option<String> {
        let (name, customers) = label.rsplit_once('#')?;
        let is_number = !customers.is_empty() && customers.bytes().all(|digit| digit.is_ascii_digit());
        let is_nonterminal = grammar.symbol(name).is_some_and(|symbol| grammar.is_nonterminal(symbol));
        (is_number && is_nonterminal && !known(label)).then(|| name.to_owned())
    };
    let relabelled = |node: &Node| match name(&node.label) {
        Some(label) if node.n_children > 0 => Node { label, n_children: node.n_children },
        _ => node.clone(),
    };
    let nodes = tree.nodes().iter().map(relabelled).collect();
    Tree::new(nodes).unwrap_or(tree)
}

#[cfg(test)]
mod tests {
    use super::*;
    use grammaton::grammar::syntax;

    #[test]
    fn numbers_of_customers_are_dropped_where_the_grammar_lacks_the_label() {
        let text = "1 1 S --> W W#2\nW --> a\n1 1 W#2 --> b#1\n";
        let grammar = syntax::parse(text, "g").unwrap().0;
        let read = |tree| without_customers(&grammar, Tree::parse(tree).unwrap()).to_string();
        assert_eq!(read("(S#1 (W#12 a) (W#2 b#1))"), "(S (W a) (W#2 b#1))");
        assert_eq!(read("(S (W# a) (X#1 a))"), "(S (W# a) (X#1 a))");
    }
}
