//! Grammars: the rules, which nonterminals are adapted, and their printed form.
//!
//! A [`Grammar`] is always valid: every way to make one ([`syntax::parse`], [`auto`], the wire) goes through
//! [`Grammar::new`], which checks it. Nonterminals come first in the symbol table, the start symbol is
//! symbol 0, and rules are grouped by parent in the order in which parents first appear.

pub mod auto;
pub mod check;
mod cycle;
pub mod syntax;

use serde::{Deserialize, Serialize};

/// Index into [`Grammar::symbols`].
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub struct SymbolId(pub u32);

impl SymbolId {
    /// As an index.
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

/// A checked context-free grammar with adapted nonterminals.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Grammar {
    /// Names: the nonterminals first, the start symbol at 0, then the terminals.
    pub symbols: Vec<String>,
    /// How many of `symbols` are nonterminals.
    pub n_nonterminals: u32,
    /// Grouped by parent, parents in symbol order.
    pub rules: Vec<Rule>,
    /// One per nonterminal; `Some` if it is adapted.
    pub adaptors: Vec<Option<Adaptor>>,
}

impl Grammar {
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

    /// The name of `symbol`.
    pub fn name(&self, symbol: SymbolId) -> &str {
        &self.symbols[symbol.index()]
    }

    /// The symbol of that name.
    pub fn symbol(&self, name: &str) -> Option<SymbolId> {
        self.symbols.iter().position(|known| known == name).map(|at| SymbolId(at as u32))
    }
}
