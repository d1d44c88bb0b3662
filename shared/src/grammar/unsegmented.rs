//! Symbols outside of segments: symbols that have no segment above them.

use super::{Grammar, Rule, SymbolId};

/// The adapted nonterminals, in symbol order, that the start symbol derives outside of all `segments`, and that derive a terminal
/// with neither a segment nor another adapted nonterminal between. If there are any, a sentence may have symbols that belong to no segment.
pub fn unsegmented(grammar: &Grammar, segments: &[SymbolId]) -> Vec<SymbolId> {
    let n = grammar.n_nonterminals as usize;
    let mut is_segment = vec![false; n];
    segments.iter().for_each(|segment| is_segment[segment.index()] = true);
    // Rules by parent, and by child those that use it.
    let mut rules_of: Vec<Vec<&Rule>> = vec![Vec::new(); n];
    let mut used_by: Vec<Vec<SymbolId>> = vec![Vec::new(); n];
    let mut near: Vec<SymbolId> = Vec::new();
    for rule in &grammar.rules {
        rules_of[rule.parent.index()].push(rule);
        for &child in &rule.children {
            if grammar.is_nonterminal(child) {
                used_by[child.index()].push(rule.parent)
            } else {
                near.push(rule.parent)
            }
        }
    }
    let mut reached = vec![false; n];
    let mut open = vec![Grammar::START];
    while let Some(symbol) = open.pop() {
        if grammar.is_nonterminal(symbol) && !is_segment[symbol.index()] && !reached[symbol.index()] {
            reached[symbol.index()] = true;
            open.extend(rules_of[symbol.index()].iter().flat_map(|rule| &rule.children));
        }
    }
    let mut is_near = vec![false; n];
    while let Some(symbol) = near.pop() {
        if reached[symbol.index()] && !is_near[symbol.index()] {
            is_near[symbol.index()] = true;
            if !grammar.is_adapted(symbol) {
                near.extend(&used_by[symbol.index()]);
            }
        }
    }
    grammar.adapted().filter(|symbol| is_near[symbol.index()]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::grammar::syntax::parse;

    #[test]
    fn symbols_outside_segments_are_named() {
        let text = "1 1 S --> Colloc\n1 1 S --> Colloc S\nColloc --> Function Word\nColloc --> Word\n\
                    Function --> Sounds\nWord --> Onset Sounds\nOnset --> x\n1 1 Sounds --> x\n1 1 Sounds --> x Sounds\n";
        let (grammar, _) = parse(text, "t").unwrap();
        let names = |segments: &[&str]| -> Vec<&str> {
            let segments: Vec<SymbolId> = segments.iter().map(|name| grammar.symbol(name).unwrap()).collect();
            unsegmented(&grammar, &segments).into_iter().map(|symbol| grammar.name(symbol)).collect()
        };
        assert_eq!(names(&["Word"]), ["Function"]);
        assert_eq!(names(&["Onset"]), ["Function", "Word"]);
        assert!(names(&["Word", "Function"]).is_empty());
        assert!(names(&["Colloc"]).is_empty());
    }
}
