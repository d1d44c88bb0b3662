//! The model with adapted noun constituents: a noun with all below it is remembered as a whole.
//!
//! In: tags, and which of them are nouns. Out: the grammar of [`super::grammar()`], where for every noun c the constituent `c.L c.R`
//! is a nonterminal of its own, and an adapted one:
//!
//! ```text
//! c.phrase → c.L c.R             adapted
//! S        → c.phrase            root(c)
//! h.R.more → h.R.rest c.phrase   attach(c | h, right)
//! h.L.more → c.phrase h.L.rest   attach(c | h, left)
//! ```
//!
//! Other tags keep the rules that they have. So without its adaptors, or where nothing is remembered yet, it is the same model:
//! `c.phrase` has one rule. Noun constituents may be in one another, as adapted nonterminals may be recursive here.
//!
//! Cost: `c.phrase` does not tell where its head is, so an attachment looks at all places where it could begin, for every noun. That is
//! O(n³) as before, with the number of nouns among the tags as a factor where all strings may be phrases, and less
//! where only those of the sticks may.
//!
//! Decoders print strings down to their tokens, so [`heads`] reads arcs inside of strings off them like all others. [`arcs`] has the
//! posteriors of arcs, for MBR.
//!
//! Cohen, Blei & Smith (2010), §4.2, who adapt “nonterminals that define noun constituents”. [`crate::models::adaptor::start`] is where training starts.

pub mod arcs;
pub mod mbr;

use super::grammar::{BadTags, HALVES, grammar as plain, of_layout};
use super::heads::{self as derivations, NotDependencies};
use super::layout::Layout;
use crate::grammar::tree::{Node, Tree};
use crate::grammar::{Adaptor, Grammar, Rule, SymbolId};

/// Suffix of the tag in the name of a noun constituent.
const PHRASE: &str = ".phrase";

/// The grammar of `tags` with adapted constituents for those that are `nouns`, `[n_tags]`; all pseudo-counts are `alpha`.
///
/// ```
/// let tags = ["NN", "VB"].map(str::to_owned);
/// let made = grammaton::models::dmv::nouns::grammar(&tags, &[true, false], 0.5)?;
/// let printed = grammaton::grammar::syntax::print(&made);
/// assert!(printed.contains("0.5 1 VB.L.more --> NN.phrase VB.L.rest\n"));
/// assert!(printed.contains("NN.phrase --> NN.L NN.R\n"));
/// # Ok::<(), grammaton::models::dmv::grammar::BadTags>(())
/// ```
///
/// # Errors
/// [`BadTags`] as of the model without phrases, or if no tag is a noun, or `alpha` no pseudo-count.
pub fn grammar(tags: &[String], nouns: &[bool], alpha: f64) -> Result<Grammar, BadTags> {
    let plain = plain(tags)?;
    let nouns: Vec<usize> = (0..tags.len()).filter(|&tag| nouns.get(tag) == Some(&true)).collect();
    if nouns.is_empty() {
        return Err(BadTags::NoNouns);
    }
    // Phrases are the last nonterminals. Rule c of the start symbol is S → c.L c.R.
    let first_phrase = plain.n_nonterminals;
    let phrase = |noun: usize| SymbolId(first_phrase + noun as u32);
    let halves = |noun: usize| &plain.rules[nouns[noun]].children;
    let moved = |symbol: SymbolId| {
        if plain.is_nonterminal(symbol) { symbol } else { SymbolId(symbol.0 + nouns.len() as u32) }
    };
    let with_phrase = |rule: &Rule| {
        let mut children: Vec<SymbolId> = rule.children.iter().copied().map(moved).collect();
        let places = (0..nouns.len()).flat_map(|noun| (0..children.len()).map(move |at| (noun, at)));
        let place = places.into_iter().find(|&(noun, at)| children[at..].starts_with(halves(noun)));
        if let Some((noun, at)) = place {
            children.splice(at..at + 2, [phrase(noun)]);
        }
        Rule { parent: rule.parent, children, alpha }
    };
    let mut rules: Vec<Rule> = plain.rules.iter().map(with_phrase).collect();
    rules.extend((0..nouns.len()).map(|noun| Rule {
        parent: phrase(noun),
        children: halves(noun).clone(),
        alpha,
    }));
    let mut symbols = plain.symbols.clone();
    let names = nouns.iter().map(|&tag| format!("{}{PHRASE}", tags[tag]));
    symbols.splice(first_phrase as usize..first_phrase as usize, names);
    let mut adaptors = plain.adaptors.clone();
    adaptors.resize(adaptors.len() + nouns.len(), Some(Adaptor::default()));
    Ok(Grammar::new(symbols, first_phrase + nouns.len() as u32, rules, adaptors)?)
}

/// The tags of a grammar of dependencies, with phrases or extended valence or without; none if it is another one. Pseudo-counts and adaptors may be any.
pub fn tags(found: &Grammar) -> Option<Vec<String>> {
    let halves = found.symbols.get(found.n_nonterminals as usize..)?;
    let tags = halves.iter().step_by(2).map(|half| half.strip_suffix(HALVES[0]).map(str::to_owned));
    let tags: Vec<String> = tags.collect::<Option<_>>()?;
    let is_noun = |tag: &String| {
        found.symbol(&format!("{tag}{PHRASE}")).is_some_and(|symbol| found.is_nonterminal(symbol))
    };
    let nouns: Vec<bool> = tags.iter().map(is_noun).collect();
    let expected = if nouns.contains(&true) {
        grammar(&tags, &nouns, 1.0).ok()?
    } else {
        of_layout(&tags, Layout::of(tags.len(), found.n_nonterminals as usize)?).ok()?
    };
    let rules = |grammar: &Grammar| -> Vec<(SymbolId, Vec<SymbolId>)> {
        grammar.rules.iter().map(|rule| (rule.parent, rule.children.clone())).collect()
    };
    (expected.symbols == found.symbols && rules(&expected) == rules(found)).then_some(tags)
}

/// The two halves of every word of a sentence, `[2n]` of `[n]`, in a grammar with phrases or without.
pub fn tokens(grammar: &Grammar, tags: &[u32]) -> Vec<SymbolId> {
    let halves = tags.iter().flat_map(|tag| [2 * tag, 2 * tag + 1]);
    halves.map(|half| SymbolId(grammar.n_nonterminals + half)).collect()
}

/// The tags and heads of a derivation, `[n]` each, as [`derivations::heads`] has them for the model without phrases.
///
/// # Errors
/// [`NotDependencies`] if it is no such tree.
///
/// ```
/// let tree = "(S (NN.phrase (NN.L (NN.L.more (DT.L DT<) (DT.R DT>) (NN.L.rest NN<))) (NN.R NN>)))";
/// let tree = grammaton::grammar::tree::Tree::parse(tree).expect("a tree");
/// assert_eq!(grammaton::models::dmv::nouns::heads(&tree)?, (["DT", "NN"].map(str::to_owned).to_vec(), vec![2, 0]));
/// # Ok::<(), grammaton::models::dmv::heads::NotDependencies>(())
/// ```
pub fn heads(tree: &Tree) -> Result<(Vec<String>, Vec<u32>), NotDependencies> {
    let mut nodes: Vec<Node> = Vec::new();
    // Backwards through the preorder, the children of a node are the last ones on the stack; in place of a phrase stand its own.
    let mut n_left: Vec<u32> = Vec::new();
    for node in tree.nodes().iter().rev() {
        let n_children = n_left.split_off(n_left.len() - node.n_children as usize).iter().sum();
        if node.n_children > 0 && node.label.ends_with(PHRASE) {
            n_left.push(n_children);
        } else {
            nodes.push(Node { label: node.label.clone(), n_children });
            n_left.push(1);
        }
    }
    nodes.reverse();
    let without_phrases =
        Tree::new(nodes).map_err(|_| NotDependencies { label: tree.nodes()[0].label.clone() })?;
    derivations::heads(&without_phrases)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::grammar::syntax;

    fn tags(names: &str) -> Vec<String> {
        names.split(' ').map(str::to_owned).collect()
    }

    #[test]
    fn noun_constituents_are_adapted() {
        let expected = "\
0.5 1 S --> N.phrase\n0.5 1 S --> V.L V.R\n\
0.5 1 N.L --> N<\n0.5 1 N.L --> N.L.more\n0.5 1 N.L.rest --> N<\n0.5 1 N.L.rest --> N.L.more\n\
0.5 1 N.L.more --> N.phrase N.L.rest\n0.5 1 N.L.more --> V.L V.R N.L.rest\n\
0.5 1 N.R --> N>\n0.5 1 N.R --> N.R.more\n0.5 1 N.R.rest --> N>\n0.5 1 N.R.rest --> N.R.more\n\
0.5 1 N.R.more --> N.R.rest N.phrase\n0.5 1 N.R.more --> N.R.rest V.L V.R\n";
        let made = grammar(&tags("N V"), &[true, false], 0.5).unwrap();
        let printed = syntax::print(&made);
        assert!(printed.starts_with(expected), "{printed}");
        assert!(printed.ends_with("\n0.5 N.phrase --> N.L N.R\n"), "{printed}");
        let names: Vec<&str> = made.adapted().map(|symbol| made.name(symbol)).collect();
        assert_eq!(names, ["N.phrase"]);
        assert_eq!(syntax::parse(&printed, "printed").unwrap().0, made);
    }

    #[test]
    fn invalid_grammars_are_refused() {
        let error = |nouns: &[bool], alpha| grammar(&tags("N V"), nouns, alpha).unwrap_err().to_string();
        assert!(error(&[false, false], 1.0).contains("no tag is a noun"));
        assert!(error(&[true], 0.0).contains("must be from 1e-100 to 1e100, found 0.0"));
        assert!(grammar(&tags("N"), &[true], 1.0).is_err());
    }

    #[test]
    fn trees_that_are_no_derivations_are_refused() {
        for text in [
            "(N.phrase (N.L N<) (N.R N>))",
            "(S (N.phrase (N.L N<)))",
            "(S (N.phrase (N.L N<) (N.R N>)) (V.L V<))",
            "(S N.phrase)",
        ] {
            assert!(heads(&Tree::parse(text).unwrap()).is_err(), "{text}");
        }
    }
}
