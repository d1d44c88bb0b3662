//! Grammars: the rules, which nonterminals are adapted, and their printed form.
//!
//! A [`Grammar`] is always valid: [`Grammar::new`] and parsing a text check it. Nonterminals come first in the symbol table, the start symbol
//! is symbol 0, and rules are grouped by parent in the order in which parents first appear.

#[doc(hidden)]
pub mod alike;
#[doc(hidden)]
pub mod auto;
#[doc(hidden)]
pub mod check;
pub(crate) mod cycle;
#[doc(hidden)]
pub mod expansions;
#[doc(hidden)]
pub mod factors;
#[doc(hidden)]
pub mod groups;
#[doc(hidden)]
pub mod lexicon;
mod params;
#[doc(hidden)]
pub mod syntax;
#[doc(hidden)]
pub mod tree;
#[doc(hidden)]
pub mod unsegmented;

use rustc_hash::FxHashSet;
use serde::{Deserialize, Serialize};

use factors::ArcFactors;

#[doc(inline)]
pub use check::Defect;
#[doc(hidden)]
pub use params::{ParamId, ParamSpace, RuleId, StickId};
#[doc(inline)]
pub use syntax::{GrammarError, GrammarErrorKind, Position};
#[doc(inline)]
pub use tree::{Node, TreeError};

/// The right-hand side that stands for every substring of the corpus.
pub const SUBSTRINGS: &str = "<substrings>";

/// Index into [`Grammar::symbols`].
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub struct SymbolId(pub u32);

impl SymbolId {
    /// Returns the id as an index.
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

/// A rule `parent --> children`, with the Dirichlet pseudo-count of its weight.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Rule {
    /// Left-hand side, a nonterminal.
    pub parent: SymbolId,
    /// Right-hand side, at least one symbol.
    pub children: Vec<SymbolId>,
    /// Dirichlet pseudo-count α > 0.
    pub alpha: f64,
}

/// How a nonterminal is adapted: initial values of its Pitman–Yor process; `None` leaves them to the job.
#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct Adaptor {
    /// Discount, 0 ≤ d < 1 (the papers' b, py-cfg's a).
    pub discount: Option<f64>,
    /// Concentration, > 0 (the papers' a, py-cfg's b).
    pub concentration: Option<f64>,
}

/// A checked context-free grammar with adapted nonterminals, read and printed in the syntax of py-cfg.
///
/// ```
/// use grammaton::Grammar;
///
/// // Two numbers make a plain rule, of a weight and a pseudo-count; `Word` has none, so it is adapted.
/// let text = "1 1 Words --> Word\n1 1 Words --> Word Words\nWord --> a b\nWord --> a\n";
/// let grammar: Grammar = text.parse()?;
/// let adapted: Vec<&str> = grammar.adapted().map(|symbol| grammar.name(symbol)).collect();
/// assert_eq!((adapted, grammar.rules.len()), (vec!["Word"], 4));
/// assert_eq!(grammar.to_string().parse::<Grammar>()?, grammar);
/// assert!("Words -> a".parse::<Grammar>().unwrap_err().to_string().starts_with("grammar:1:"));
/// # Ok::<(), grammaton::grammar::GrammarError>(())
/// ```
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Grammar {
    /// Names: the nonterminals first, the start symbol at 0, then the terminals.
    pub symbols: Vec<String>,
    /// Number of nonterminals in `symbols`; they come first.
    pub n_nonterminals: u32,
    /// Grouped by parent, parents in symbol order.
    pub rules: Vec<Rule>,
    /// One per nonterminal; `Some` if it is adapted.
    pub adaptors: Vec<Option<Adaptor>>,
    /// Fixed factors of arcs, of a grammar of [`crate::models::dmv`] without adapted nonterminals.
    pub factors: Option<ArcFactors>,
}

impl Grammar {
    #[doc(hidden)]
    /// Whether it has the symbols and rules of another one; pseudo-counts and adaptors may differ.
    pub fn has_rules_of(&self, other: &Grammar) -> bool {
        let rules = |grammar: &Grammar| -> Vec<(SymbolId, Vec<SymbolId>)> {
            grammar.rules.iter().map(|rule| (rule.parent, rule.children.clone())).collect()
        };
        self.symbols == other.symbols && rules(self) == rules(other)
    }

    /// Symbol 0.
    pub const START: SymbolId = SymbolId(0);

    /// Whether `symbol` is a nonterminal.
    pub fn is_nonterminal(&self, symbol: SymbolId) -> bool {
        symbol.0 < self.n_nonterminals
    }

    /// Whether `symbol` is an adapted nonterminal.
    pub fn is_adapted(&self, symbol: SymbolId) -> bool {
        self.is_nonterminal(symbol) && self.adaptors[symbol.index()].is_some()
    }

    /// The adapted nonterminals, in symbol order.
    pub fn adapted(&self) -> impl Iterator<Item = SymbolId> + '_ {
        (0..self.n_nonterminals).map(SymbolId).filter(|&symbol| self.is_adapted(symbol))
    }

    #[doc(hidden)]
    /// The parameters of the rules, without strings.
    pub fn space(&self) -> ParamSpace {
        ParamSpace::new(self.rules.len(), [])
    }

    #[doc(hidden)]
    /// The rule of that number.
    pub fn rule(&self, rule: RuleId) -> &Rule {
        &self.rules[rule.index()]
    }

    #[doc(hidden)]
    /// The rules `X --> <substrings>`: X rewrites to every substring of the corpus, each with the rule's
    /// pseudo-count.
    pub fn substring_rules(&self) -> impl Iterator<Item = RuleId> + '_ {
        let symbol = self.symbol(SUBSTRINGS).filter(|&symbol| !self.is_nonterminal(symbol));
        let of_symbol = move |rule: &Rule| symbol.is_some_and(|symbol| rule.children == [symbol]);
        (0..self.rules.len() as u32).map(RuleId).filter(move |&rule| of_symbol(self.rule(rule)))
    }

    #[doc(hidden)]
    /// The nonterminals that rewrite to strings of a [`crate::grammar::lexicon::Lexicon`], in symbol order: the adapted ones, and those
    /// that rewrite to substrings.
    pub fn with_strings(&self) -> impl Iterator<Item = SymbolId> + '_ {
        let mut with = vec![false; self.n_nonterminals as usize];
        self.adapted().for_each(|symbol| with[symbol.index()] = true);
        self.substring_rules().for_each(|rule| with[self.rule(rule).parent.index()] = true);
        (0..self.n_nonterminals).map(SymbolId).filter(move |symbol| with[symbol.index()])
    }

    #[doc(hidden)]
    /// Adds the symbols of a corpus to the terminals if a nonterminal rewrites to its substrings.
    pub fn with_vocabulary<'a>(mut self, names: impl IntoIterator<Item = &'a str>) -> Grammar {
        if self.substring_rules().next().is_some() {
            let mut known: FxHashSet<String> = self.symbols.iter().cloned().collect();
            self.symbols
                .extend(names.into_iter().map(str::to_owned).filter(|name| known.insert(name.clone())));
        }
        self
    }

    /// Returns the grammar without adaptors.
    pub fn without_adaptors(mut self) -> Grammar {
        self.adaptors.fill(None);
        self
    }

    /// Returns the grammar with these factors of arcs, or with none.
    ///
    /// # Errors
    /// [`Defect::Factors`] if they are not factors of a dependency grammar of so many tags.
    pub fn with_factors(mut self, factors: Option<ArcFactors>) -> Result<Grammar, check::Defect> {
        self.factors = factors;
        self.check_factors()?;
        Ok(self)
    }

    /// The name of `symbol`.
    pub fn name(&self, symbol: SymbolId) -> &str {
        &self.symbols[symbol.index()]
    }

    /// The terminals of a sentence, written with spaces between them; `None` if one of them is not of the grammar.
    pub fn tokens(&self, sentence: &str) -> Option<Vec<SymbolId>> {
        let token = |name| self.symbol(name).filter(|&symbol| !self.is_nonterminal(symbol));
        sentence.split_whitespace().map(token).collect()
    }

    /// The symbol of that name.
    pub fn symbol(&self, name: &str) -> Option<SymbolId> {
        self.symbols.iter().position(|known| known == name).map(|at| SymbolId(at as u32))
    }
}
