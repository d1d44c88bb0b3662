//! Counts of the rules that given trees use: a start for training (Johnson, Griffiths & Goldwater 2007, footnote 1).

use rustc_hash::{FxHashMap, FxHashSet};

use crate::grammar::expansions::Expansions;
use crate::grammar::lexicon::Lexicon;
use crate::grammar::tree::Tree;
use crate::grammar::{Grammar, ParamId, SymbolId};

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

/// Rules and strings of a grammar, as trees use them.
pub struct Derivations<'a> {
    grammar: &'a Grammar,
    symbols: FxHashMap<&'a str, SymbolId>,
    params: FxHashMap<(SymbolId, &'a [SymbolId]), ParamId>,
    /// Nonterminals that rewrite to any string of terminals.
    of_any_string: FxHashSet<SymbolId>,
}

/// Uses of every parameter in `trees`, `[n_params]`; an error comes with the position of its tree.
pub fn counts(grammar: &Grammar, lexicon: &Lexicon, trees: &[Tree]) -> Result<Vec<f64>, (usize, Foreign)> {
    let derivations = Derivations::new(grammar, lexicon);
    let mut counts = vec![0.0; lexicon.space(grammar).n_params()];
    for (at, tree) in trees.iter().enumerate() {
        derivations.each(tree, |param| counts[param.index()] += 1.0).map_err(|foreign| (at, foreign))?;
    }
    Ok(counts)
}

impl<'a> Derivations<'a> {
    /// The rules of `grammar` and the strings of `lexicon`.
    pub fn new(grammar: &'a Grammar, lexicon: &'a Lexicon) -> Derivations<'a> {
        let expansions = Expansions::new(grammar, lexicon);
        let (symbols, params) = (expansions.symbols(), expansions.params());
        Derivations { grammar, symbols, params, of_any_string: FxHashSet::default() }
    }

    /// The same, and strings that are not in the lexicon, of nonterminals that rewrite to substrings: for sentences never seen in training.
    pub fn open(grammar: &'a Grammar, lexicon: &'a Lexicon) -> Derivations<'a> {
        let of_any_string = grammar.substring_rules().map(|rule| grammar.rule(rule).parent).collect();
        Derivations { of_any_string, ..Derivations::new(grammar, lexicon) }
    }

    /// The symbol of that name.
    pub fn symbol(&self, name: &str) -> Result<SymbolId, Foreign> {
        self.symbols.get(name).copied().ok_or_else(|| Foreign::Symbol { name: name.to_owned() })
    }

    /// Passes the parameter of every inner node of `tree` to `visit`, the last one first; a string that is not in the lexicon has none.
    pub fn each(&self, tree: &Tree, mut visit: impl FnMut(ParamId)) -> Result<(), Foreign> {
        let name = |symbol: SymbolId| self.grammar.name(symbol).to_owned();
        let root = self.symbol(&tree.nodes()[0].label)?;
        if root != Grammar::START {
            return Err(Foreign::Root { found: name(root), start: name(Grammar::START) });
        }
        // Backwards through the preorder, the children of a node are the last ones on the stack.
        let mut done: Vec<SymbolId> = Vec::new();
        for node in tree.nodes().iter().rev() {
            let parent = self.symbol(&node.label)?;
            if node.n_children > 0 {
                let mut children = done.split_off(done.len() - node.n_children as usize);
                children.reverse();
                let is_string = || !children.iter().any(|&child| self.grammar.is_nonterminal(child));
                match self.params.get(&(parent, &children[..])) {
                    Some(&param) => visit(param),
                    None if self.of_any_string.contains(&parent) && is_string() => {}
                    None => {
                        let children: Vec<String> = children.into_iter().map(name).collect();
                        let rule = format!("{} --> {}", node.label, children.join(" "));
                        return Err(Foreign::Rule { rule });
                    }
                }
            }
            done.push(parent);
        }
        Ok(())
    }
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
