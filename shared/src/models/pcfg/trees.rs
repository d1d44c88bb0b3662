//! Counts of the rules that given trees use: a start for training (Johnson, Griffiths & Goldwater 2007, footnote 1).

use rustc_hash::FxHashMap;

use crate::grammar::ParamId;
use crate::grammar::lexicon::Lexicon;
use crate::grammar::tree::Tree;
use crate::grammar::{Grammar, RuleId, SymbolId};

/// Why a tree is not one of the grammar.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum Foreign {
    /// A label that the grammar does not have.
    #[error("the grammar has no symbol `{name}`")]
    Symbol {
        /// The label.
        name: String,
    },
    /// A node that no rule makes.
    #[error("the grammar has no rule `{rule}`")]
    Rule {
        /// The rule.
        rule: String,
    },
    /// Another root than the start symbol.
    #[error("the root is `{found}`, expected the start symbol `{start}`")]
    Root {
        /// Label of the root.
        found: String,
        /// The start symbol.
        start: String,
    },
}

/// Uses of every parameter in `trees`, `[n_params]`; an error comes with the position of its tree.
pub fn counts(grammar: &Grammar, lexicon: &Lexicon, trees: &[Tree]) -> Result<Vec<f64>, (usize, Foreign)> {
    let symbols: FxHashMap<&str, SymbolId> =
        grammar.symbols.iter().zip(0..).map(|(name, id)| (name.as_str(), SymbolId(id))).collect();
    let mut params: FxHashMap<(SymbolId, &[SymbolId]), ParamId> = FxHashMap::default();
    for (id, rule) in (0..).map(RuleId).zip(&grammar.rules) {
        params.insert((rule.parent, &rule.children), ParamId::of_rule(id));
    }
    let space = lexicon.space(grammar);
    for (of_stick, stick) in space.sticks().zip(&lexicon.sticks) {
        let strings = of_stick.map(ParamId).zip(&stick.strings);
        params.extend(strings.map(|(param, string)| ((stick.symbol, string), param)));
    }
    let mut counts = vec![0.0; space.n_params()];
    for (at, tree) in trees.iter().enumerate() {
        count(grammar, &symbols, &params, tree, &mut counts).map_err(|foreign| (at, foreign))?;
    }
    Ok(counts)
}

fn count(
    grammar: &Grammar,
    symbols: &FxHashMap<&str, SymbolId>,
    params: &FxHashMap<(SymbolId, &[SymbolId]), ParamId>,
    tree: &Tree,
    counts: &mut [f64],
) -> Result<(), Foreign> {
    let symbol =
        |name: &str| symbols.get(name).copied().ok_or_else(|| Foreign::Symbol { name: name.to_owned() });
    let root = symbol(&tree.nodes()[0].label)?;
    if root != Grammar::START {
        let (found, start) = (grammar.name(root).to_owned(), grammar.name(Grammar::START).to_owned());
        return Err(Foreign::Root { found, start });
    }
    // Backwards through the preorder, the children of a node are the last ones on the stack.
    let mut done: Vec<SymbolId> = Vec::new();
    for node in tree.nodes().iter().rev() {
        let parent = symbol(&node.label)?;
        if node.n_children > 0 {
            let mut children = done.split_off(done.len() - node.n_children as usize);
            children.reverse();
            let Some(param) = params.get(&(parent, &children[..])) else {
                let children: Vec<&str> = children.iter().map(|&child| grammar.name(child)).collect();
                return Err(Foreign::Rule { rule: format!("{} --> {}", node.label, children.join(" ")) });
            };
            counts[param.index()] += 1.0;
        }
        done.push(parent);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::grammar::syntax;

    fn of(trees: &[&str]) -> Result<Vec<f64>, String> {
        let text = "1 1 S --> A S b\n1 1 S --> A\n1 1 A --> <substrings>\n";
        let grammar = syntax::parse(text, "g").unwrap().0.with_vocabulary(["x", "y"]);
        let letter = |name: &str| grammar.symbol(name).unwrap();
        let strings = [vec![letter("x")], vec![letter("x"), letter("y")]].into_iter().collect();
        let symbol = grammar.symbol("A").unwrap();
        let lexicon = Lexicon { sticks: vec![crate::grammar::lexicon::StickStrings { symbol, strings }] };
        let trees: Vec<Tree> = trees.iter().map(|tree| Tree::parse(tree).unwrap()).collect();
        counts(&grammar, &lexicon, &trees).map_err(|(at, foreign)| format!("{at}: {foreign}"))
    }

    #[test]
    fn rules_and_strings_are_counted() {
        let counts = of(&["(S (A x y) (S (A x)) b)", "(S (A x))"]).unwrap();
        assert_eq!(counts, [0.0, 1.0, 2.0, 0.0, 2.0, 1.0]);
    }

    #[test]
    fn foreign_trees_are_refused_with_what_is_foreign() {
        for (tree, expected) in [
            ("(A x)", "1: the root is `A`, expected the start symbol `S`"),
            ("(S (A y))", "1: the grammar has no rule `A --> y`"),
            ("(S (A x) b)", "1: the grammar has no rule `S --> A b`"),
            ("(S (Q x))", "1: the grammar has no symbol `Q`"),
        ] {
            assert_eq!(of(&["(S (A x))", tree]).unwrap_err(), expected);
        }
    }
}
