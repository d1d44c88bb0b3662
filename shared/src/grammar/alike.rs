//! Terminals that the rules of a grammar do not tell apart.
//!
//! Two terminals are alike if each stands alone on the right-hand side of rules of the same parents, at the same place among the other
//! rules. Sentences that differ in such terminals alone have the same derivations but for these rules, in the same order: under
//! `auto:unigram` all sentences of a length do, under a grammar of syllables all with the same pattern of vowels and consonants.

use std::collections::BTreeMap;

use super::{Grammar, SymbolId};
use crate::stop::checked;

/// By symbol, the first terminal that is like it; nonterminals are like themselves alone.
pub fn representatives(grammar: &Grammar) -> Vec<SymbolId> {
    let n = grammar.symbols.len() as u32;
    let all_differ = grammar.substring_rules().next().is_some();
    // By symbol, its rules: their parents, and how many other rules these have before.
    let mut rules: Vec<Vec<(SymbolId, usize)>> = vec![Vec::new(); n as usize];
    let mut differs = vec![all_differ; n as usize];
    let (mut parent, mut n_others) = (Grammar::START, 0);
    for rule in checked(&grammar.rules) {
        if rule.parent != parent {
            (parent, n_others) = (rule.parent, 0);
        }
        match rule.children[..] {
            [only] if !grammar.is_nonterminal(only) => rules[only.index()].push((parent, n_others)),
            ref children => {
                children.iter().for_each(|child| differs[child.index()] = true);
                n_others += 1;
            }
        }
    }
    let mut first = BTreeMap::new();
    let representative = |symbol: SymbolId| {
        if grammar.is_nonterminal(symbol) || differs[symbol.index()] {
            return symbol;
        }
        *first.entry(&rules[symbol.index()]).or_insert(symbol)
    };
    checked(0..n).map(SymbolId).map(representative).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::grammar::syntax;

    #[test]
    fn terminals_are_alike_if_alone_under_the_same_parents_at_the_same_place() {
        let text = "1 1 S --> L S\n1 1 S --> L\n1 1 L --> a\n2 1 L --> b\n1 1 L --> c\n1 1 L --> M N\n1 1 L --> d\n1 1 L --> e\n\
                    1 1 S --> e\n1 1 M --> f g\n1 1 N --> g\n1 1 N --> h\n1 1 N --> i\n";
        let grammar = syntax::parse(text, "g").unwrap().0;
        let found = representatives(&grammar);
        let of = |name: &str| grammar.name(found[grammar.symbol(name).unwrap().index()]).to_owned();
        let names = ["a", "b", "c", "d", "e", "f", "g", "h", "i", "S", "L"];
        assert_eq!(names.map(of), ["a", "a", "a", "d", "e", "f", "g", "h", "h", "S", "L"]);
    }
}
