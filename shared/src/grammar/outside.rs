//! What a segmentation would leave out: symbols that have no segment above them.

use super::{Grammar, SymbolId};

/// The adapted nonterminals, in symbol order, that the start symbol derives outside of all `segments`, and that derive a terminal
/// with neither a segment nor another adapted nonterminal between. If there are any, a sentence may have symbols that belong to no segment.
pub fn outside(grammar: &Grammar, segments: &[SymbolId]) -> Vec<SymbolId> {
    let n = grammar.n_nonterminals as usize;
    let mut reached = vec![false; n];
    let mut open = vec![Grammar::START];
    while let Some(symbol) = open.pop() {
        if grammar.is_nonterminal(symbol) && !segments.contains(&symbol) && !reached[symbol.index()] {
            reached[symbol.index()] = true;
            let rules = grammar.rules.iter().filter(|rule| rule.parent == symbol);
            open.extend(rules.flat_map(|rule| &rule.children));
        }
    }
    let mut near = vec![false; n];
    loop {
        let is_near = |&child: &SymbolId| {
            !grammar.is_nonterminal(child) || near[child.index()] && !grammar.is_adapted(child)
        };
        let fresh = grammar.rules.iter().filter(|rule| {
            let parent = rule.parent.index();
            reached[parent] && !near[parent] && rule.children.iter().any(is_near)
        });
        let fresh: Vec<usize> = fresh.map(|rule| rule.parent.index()).collect();
        if fresh.is_empty() {
            return grammar.adapted().filter(|symbol| near[symbol.index()]).collect();
        }
        fresh.into_iter().for_each(|parent| near[parent] = true);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::grammar::syntax::parse;

    #[test]
    fn what_no_segment_covers_is_named() {
        let text = "1 1 S --> Colloc\n1 1 S --> Colloc S\nColloc --> Function Word\nColloc --> Word\n\
                    Function --> Sounds\nWord --> Onset Sounds\nOnset --> x\n1 1 Sounds --> x\n1 1 Sounds --> x Sounds\n";
        let (grammar, _) = parse(text, "t").unwrap();
        let names = |segments: &[&str]| -> Vec<&str> {
            let segments: Vec<SymbolId> = segments.iter().map(|name| grammar.symbol(name).unwrap()).collect();
            outside(&grammar, &segments).into_iter().map(|symbol| grammar.name(symbol)).collect()
        };
        assert_eq!(names(&["Word"]), ["Function"]);
        assert_eq!(names(&["Onset"]), ["Function", "Word"]);
        assert!(names(&["Word", "Function"]).is_empty());
        assert!(names(&["Colloc"]).is_empty());
    }
}
