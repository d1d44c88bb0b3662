//! Grammars made from a corpus's symbols, for those who bring none.
//!
//! Both list the symbols under `Char`, and adapt `Word` (and `Colloc`): Johnson, Griffiths & Goldwater (2007),
//! the "unigram" and "collocation" grammars.

use serde::{Deserialize, Serialize};

use super::check::Defect;
use super::{Adaptor, Grammar, Rule, SymbolId};

/// Which grammar to make.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Auto {
    /// A sentence is words.
    Unigram,
    /// A sentence is collocations, and a collocation is words.
    Colloc,
}

/// What [`auto`] makes.
#[derive(Clone, PartialEq, Debug)]
pub struct AutoGrammar {
    /// The grammar.
    pub grammar: Grammar,
    /// The nonterminal whose constituents are the words: `Word`, unless the corpus has a symbol of that name.
    pub word: SymbolId,
}

/// Makes a grammar whose terminals are `terminals`, all pseudo-counts 1, the adaptors left to the job.
///
/// A nonterminal whose name is also a terminal's gets `_` appended until it is not.
///
/// ```
/// use shared::grammar::{auto::{auto, Auto}, syntax};
///
/// let made = auto(Auto::Unigram, &["a".to_owned(), "Word".to_owned()])?;
/// assert_eq!(made.grammar.name(made.word), "Word_");
/// assert_eq!(syntax::parse(&syntax::print(&made.grammar), "made").unwrap().0, made.grammar);
/// # Ok::<(), shared::grammar::check::Defect>(())
/// ```
///
/// # Errors
/// A [`Defect`] if `terminals` is empty, or has a name that is empty, repeated or contains white space.
pub fn auto(kind: Auto, terminals: &[String]) -> Result<AutoGrammar, Defect> {
    let names: &[&str] = match kind {
        Auto::Unigram => &["Sentence", "Words", "Word", "Chars", "Char"],
        Auto::Colloc => &["Sentence", "Collocs", "Colloc", "Words", "Word", "Chars", "Char"],
    };
    let n_nonterminals = names.len() as u32;
    let mut symbols: Vec<String> = names.iter().map(|name| free_name(name, terminals)).collect();
    symbols.extend(terminals.iter().cloned());

    // The start symbol, then pairs of a list and its adapted element, then the list of characters.
    let mut rules = vec![rule(0, &[1])];
    let mut adaptors = vec![None; names.len()];
    for list in (1..n_nonterminals).step_by(2) {
        let element = list + 1;
        rules.extend([rule(list, &[element]), rule(list, &[element, list])]);
        if element + 1 < n_nonterminals {
            rules.push(rule(element, &[element + 1]));
            adaptors[element as usize] = Some(Adaptor::default());
        }
    }
    let char = n_nonterminals - 1;
    rules.extend((0..terminals.len() as u32).map(|terminal| rule(char, &[n_nonterminals + terminal])));
    let grammar = Grammar::new(symbols, n_nonterminals, rules, adaptors)?;
    Ok(AutoGrammar { grammar, word: SymbolId(n_nonterminals - 3) })
}

fn free_name(name: &str, terminals: &[String]) -> String {
    let mut name = name.to_owned();
    while terminals.contains(&name) {
        name.push('_');
    }
    name
}

fn rule(parent: u32, children: &[u32]) -> Rule {
    Rule { parent: SymbolId(parent), children: children.iter().copied().map(SymbolId).collect(), alpha: 1.0 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::grammar::syntax;

    fn strings(names: &[&str]) -> Vec<String> {
        names.iter().map(|&name| name.to_owned()).collect()
    }

    #[test]
    fn the_grammars_are_those_of_the_paper() {
        let unigram = auto(Auto::Unigram, &strings(&["a", "b"])).unwrap();
        assert_eq!(
            syntax::print(&unigram.grammar),
            "1 1 Sentence --> Words\n1 1 Words --> Word\n1 1 Words --> Word Words\n1 Word --> Chars\n\
             1 1 Chars --> Char\n1 1 Chars --> Char Chars\n1 1 Char --> a\n1 1 Char --> b\n"
        );
        let colloc = auto(Auto::Colloc, &strings(&["a"])).unwrap();
        assert_eq!(
            syntax::print(&colloc.grammar),
            "1 1 Sentence --> Collocs\n1 1 Collocs --> Colloc\n1 1 Collocs --> Colloc Collocs\n\
             1 Colloc --> Words\n1 1 Words --> Word\n1 1 Words --> Word Words\n1 Word --> Chars\n\
             1 1 Chars --> Char\n1 1 Chars --> Char Chars\n1 1 Char --> a\n"
        );
        assert_eq!(colloc.grammar.name(colloc.word), "Word");
    }

    #[test]
    fn no_symbols_make_no_grammar() {
        assert!(auto(Auto::Unigram, &[]).is_err());
        assert!(auto(Auto::Unigram, &strings(&["a", "a"])).is_err());
    }
}
