//! The grammar of a tag set.
//!
//! Names: tag `NN` makes the terminals `NN<` and `NN>` and the nonterminals `NN.L`, `NN.L.rest`, `NN.L.more` and likewise
//! `NN.R`; with extended valence ([`extended`]) also `NN.L.one` and `NN.L.first`. What is behind the tag tells its symbols apart, and none of these
//! endings is the end of another, so whatever tags are called, no two symbols have one name.

use super::layout::{Layout, Side};
use crate::grammar::check::Defect;
use crate::grammar::{Grammar, Rule, SymbolId};
use crate::limits::MAX_TAGS;

/// Name of the start symbol.
pub const START: &str = "S";

/// Nonterminals of a tag, in the order of their numbers: of either side, before its first child, before another one, and with
/// one to come.
pub(super) const STATES: [&str; 6] = [".L", ".L.rest", ".L.more", ".R", ".R.rest", ".R.more"];
/// The same with extended valence: of either side, before its first child, its second one, and another one; with the first one to come, and with
/// another one to come.
pub(super) const EXTENDED_STATES: [&str; 10] =
    [".L", ".L.one", ".L.rest", ".L.first", ".L.more", ".R", ".R.one", ".R.rest", ".R.first", ".R.more"];
/// Terminals of a tag, by side.
pub(super) const HALVES: [&str; 2] = ["<", ">"];

/// Why there is no grammar.
#[derive(Clone, PartialEq, Debug, thiserror::Error)]
pub enum BadTags {
    /// With one tag, there is nothing to tell apart, nor do the ends of a part of a rule tell where the child is
    /// ([`super::Layout::arc`]).
    #[error(
        "a dependency model needs two tags or more, found {found}; is there one tag a word in the corpus?"
    )]
    TooFew {
        /// Number found.
        found: usize,
    },
    /// A grammar of twice the square of the tags would be too large.
    #[error(
        "a dependency model needs {MAX_TAGS} tags or fewer, found {found}; is there a word in place of a tag in the corpus?"
    )]
    TooMany {
        /// Number found.
        found: usize,
    },
    /// Noun constituents to adapt, but no nouns ([`super::nouns`]).
    #[error("no tag is a noun, so there are no noun constituents to adapt; name nouns of the corpus")]
    NoNouns,
    /// A name that is repeated or has white space in it, for instance.
    #[error(transparent)]
    Defect(#[from] Defect),
}

/// The DMV of `tags`, all pseudo-counts 1; [`super::Layout`] says where its parameters are.
///
/// ```
/// let made = grammaton::models::dmv::grammar(&["NN".to_owned(), "VB".to_owned()])?;
/// assert_eq!(made.rules.len(), 2 + 4 * (4 + 2));
/// assert!(grammaton::grammar::syntax::print(&made).contains("1 1 NN.R.more --> NN.R.rest VB.L VB.R\n"));
/// # Ok::<(), grammaton::models::dmv::grammar::BadTags>(())
/// ```
///
/// # Errors
/// [`BadTags`] if there are fewer than two or more than [`MAX_TAGS`], or one has a name that is repeated or contains white space.
pub fn grammar(tags: &[String]) -> Result<Grammar, BadTags> {
    of_layout(tags, Layout::new(tags.len()))
}

/// The DMV of `tags` with extended valence ([`Layout::extended`]), all pseudo-counts 1.
///
/// ```
/// let made = grammaton::models::dmv::extended(&["NN".to_owned(), "VB".to_owned()])?;
/// assert_eq!(made.rules.len(), 2 + 4 * (6 + 2 * 2));
/// assert!(grammaton::grammar::syntax::print(&made).contains("1 1 NN.R.first --> NN.R.one VB.L VB.R\n"));
/// # Ok::<(), grammaton::models::dmv::grammar::BadTags>(())
/// ```
///
/// # Errors
/// [`BadTags`], as [`grammar()`].
pub fn extended(tags: &[String]) -> Result<Grammar, BadTags> {
    of_layout(tags, Layout::extended(tags.len()))
}

/// The grammar with the parameters of a layout.
pub fn of_layout(tags: &[String], layout: Layout) -> Result<Grammar, BadTags> {
    let n = tags.len() as u32;
    if n < 2 {
        return Err(BadTags::TooFew { found: tags.len() });
    }
    if tags.len() > MAX_TAGS {
        return Err(BadTags::TooMany { found: tags.len() });
    }
    let states: &'static [&str] = if layout.is_extended() { &EXTENDED_STATES } else { &STATES };
    let with = |endings: &'static [&str]| {
        tags.iter().flat_map(move |tag| endings.iter().map(move |ending| format!("{tag}{ending}")))
    };
    let symbols: Vec<String> =
        std::iter::once(START.to_owned()).chain(with(states)).chain(with(&HALVES)).collect();

    let per_side = states.len() as u32 / 2;
    let n_nonterminals = layout.n_nonterminals() as u32;
    let state = |tag: u32, side: Side| 1 + per_side * (2 * tag + side as u32);
    let words = |tag: u32| [state(tag, Side::Left), state(tag, Side::Right)];
    let mut rules: Vec<Rule> = (0..n).map(|root| rule(0, &words(root))).collect();
    for head in 0..n {
        for side in [Side::Left, Side::Right] {
            let none = state(head, side);
            let half = n_nonterminals + 2 * head + side as u32;
            let attach = |with: u32, then: u32| {
                (0..n).map(words).map(move |[left, right]| match side {
                    Side::Left => rule(with, &[left, right, then]),
                    Side::Right => rule(with, &[then, left, right]),
                })
            };
            let decide = |before: u32, with: u32| [rule(before, &[half]), rule(before, &[with])];
            if layout.is_extended() {
                let [one, rest, first, more] = [1, 2, 3, 4].map(|at| none + at);
                rules.extend([decide(none, first), decide(one, more), decide(rest, more)].concat());
                rules.extend(attach(first, one).chain(attach(more, rest)));
            } else {
                let (rest, more) = (none + 1, none + 2);
                rules.extend([decide(none, more), decide(rest, more)].concat());
                rules.extend(attach(more, rest));
            }
        }
    }
    Ok(Grammar::new(symbols, n_nonterminals, rules, vec![None; n_nonterminals as usize])?)
}

fn rule(parent: u32, children: &[u32]) -> Rule {
    Rule { parent: SymbolId(parent), children: children.iter().copied().map(SymbolId).collect(), alpha: 1.0 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::grammar::syntax;

    fn tags(names: &str) -> Vec<String> {
        names.split(' ').map(str::to_owned).collect()
    }

    #[test]
    fn the_grammar_is_that_of_the_model() {
        let expected = "\
1 1 S --> N.L N.R\n1 1 S --> V.L V.R\n\
1 1 N.L --> N<\n1 1 N.L --> N.L.more\n1 1 N.L.rest --> N<\n1 1 N.L.rest --> N.L.more\n\
1 1 N.L.more --> N.L N.R N.L.rest\n1 1 N.L.more --> V.L V.R N.L.rest\n\
1 1 N.R --> N>\n1 1 N.R --> N.R.more\n1 1 N.R.rest --> N>\n1 1 N.R.rest --> N.R.more\n\
1 1 N.R.more --> N.R.rest N.L N.R\n1 1 N.R.more --> N.R.rest V.L V.R\n";
        let made = grammar(&tags("N V")).unwrap();
        let printed = syntax::print(&made);
        assert!(printed.starts_with(expected), "{printed}");
        assert_eq!(syntax::parse(&printed, "printed").unwrap().0, made);
    }

    #[test]
    fn no_names_of_tags_collide() {
        let odd =
            "S S.L L R N N.L N< N> N.R.more .L .rest more L.N < > N.L.rest <substrings PRP$ '' -LRB- 1 --> (";
        let made = grammar(&tags(odd)).unwrap_err();
        assert!(made.to_string().contains("`<substrings>` must be all"), "one name is taken: {made}");
        assert!(grammar(&tags(&odd.replace(" <substrings", ""))).is_ok());
    }

    #[test]
    fn tags_that_are_none_are_refused() {
        for (names, expected) in [
            (vec![], "needs two tags or more, found 0"),
            (vec!["N"], "needs two tags or more, found 1"),
            (vec!["N", "V", "N"], "`N.L`"),
            (vec!["N", "a b"], "white space"),
        ] {
            let names: Vec<String> = names.into_iter().map(str::to_owned).collect();
            let error = grammar(&names).unwrap_err().to_string();
            assert!(error.contains(expected), "{error}");
        }
    }
}
