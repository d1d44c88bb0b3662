//! Conditions of a valid grammar, and the defects of an invalid one.
//!
//! In: a [`Grammar`] as built or received. Out: the first [`Defect`], by symbol and rule number;
//! [`super::syntax`] turns those into lines and columns.
//! Cost: linear in the size of the grammar, without recursion, so a hostile grammar cannot exhaust the stack.

use rustc_hash::FxHashSet;

use super::cycle::{on_cycle, shortest_cycle};
use super::{Adaptor, Grammar, Rule, SUBSTRINGS, SymbolId};
use crate::limits::{self, MAX_RIGHT_HAND_SIDE};

/// Why a grammar is not valid.
#[derive(Clone, PartialEq, Debug, thiserror::Error)]
pub enum Defect {
    /// Factors of arcs of a grammar that has no arcs, or of other tags.
    #[error(
        "factors of arcs must be finite, and belong to a dependency grammar without adapted nonterminals, one for each pair of its tags"
    )]
    Factors,
    /// There is nothing to derive.
    #[error("the grammar has no rules")]
    NoRules,
    /// The tables do not fit each other.
    #[error(
        "{n_symbols} symbols, {n_nonterminals} of them nonterminals, and {n_adaptors} adaptors do not fit: \
         expected 1 ≤ nonterminals ≤ symbols and one adaptor entry per nonterminal"
    )]
    Tables {
        /// Length of [`Grammar::symbols`].
        n_symbols: usize,
        /// [`Grammar::n_nonterminals`].
        n_nonterminals: u32,
        /// Length of [`Grammar::adaptors`].
        n_adaptors: usize,
    },
    /// More than a grammar may have.
    #[error("{found} {what}, expected at most {limit}")]
    TooLarge {
        /// The quantity that is too large.
        what: &'static str,
        /// Its value.
        found: u64,
        /// Its maximum.
        limit: u64,
    },
    /// A right-hand side that is too long.
    #[error(
        "the right-hand side of `{parent}` has {found} symbols, expected at most {MAX_RIGHT_HAND_SIDE}; split it with \
         a nonterminal of its own"
    )]
    LongRight {
        /// Index of the rule.
        rule: usize,
        /// Name of the parent.
        parent: String,
        /// Length of the right-hand side.
        found: usize,
    },
    /// A symbol without a name.
    #[error("symbol {} has an empty name", symbol.0)]
    EmptyName {
        /// The symbol.
        symbol: SymbolId,
    },
    /// A name that no rule could refer to, children being separated by white space.
    #[error("the symbol name {name:?} contains white space; choose a name without")]
    SpaceInName {
        /// The symbol.
        symbol: SymbolId,
        /// Its name.
        name: String,
    },
    /// Two symbols of one name.
    #[error("two symbols are called `{name}`")]
    DuplicateName {
        /// The later one.
        symbol: SymbolId,
        /// The name.
        name: String,
    },
    /// A rule that names a symbol outside of the table.
    #[error("rule {rule} names symbol {}, but there are only {n_symbols}", symbol.0)]
    OutOfRange {
        /// Index of the rule.
        rule: usize,
        /// The symbol.
        symbol: SymbolId,
        /// Length of the table.
        n_symbols: usize,
    },
    /// A parent in the terminals' part of the symbol table.
    #[error("rule {rule} has the terminal `{name}` as its parent")]
    ParentIsTerminal {
        /// Index of the rule.
        rule: usize,
        /// Name of the parent.
        name: String,
    },
    /// Rules that are not grouped by parent in symbol order.
    #[error(
        "rule {rule} of `{parent}` stands after rules of later symbols; group rules by parent, in symbol order"
    )]
    Ungrouped {
        /// Index of the rule.
        rule: usize,
        /// Name of its parent.
        parent: String,
    },
    /// A nonterminal that no rule rewrites.
    #[error("the nonterminal `{name}` has no rule")]
    NoRule {
        /// The symbol.
        symbol: SymbolId,
        /// Its name.
        name: String,
    },
    /// A terminal that no rule uses (unless some nonterminal rewrites to substrings), or uses before the terminals that precede it in the table.
    #[error("the terminal `{name}` is out of order: terminals are numbered as the rules first use them")]
    TerminalOrder {
        /// The symbol.
        symbol: SymbolId,
        /// Its name.
        name: String,
    },
    /// An empty right-hand side.
    #[error("the right-hand side of `{parent}` is empty, expected at least one symbol after `-->`")]
    EmptyRight {
        /// Index of the rule.
        rule: usize,
        /// Name of the parent.
        parent: String,
    },
    /// A pseudo-count that no Dirichlet distribution has.
    #[error("the weight of a rule of `{parent}` must be from 1e-100 to 1e100, found {alpha:?}")]
    Alpha {
        /// Index of the rule.
        rule: usize,
        /// Name of the parent.
        parent: String,
        /// The value found.
        alpha: f64,
    },
    /// A rule that occurs twice.
    #[error("the rule `{rule_text}` occurs twice; add the two weights and write it once")]
    DuplicateRule {
        /// Index of the later one.
        rule: usize,
        /// The rule.
        rule_text: String,
    },
    /// A discount outside of [0, 1).
    #[error("the discount of `{name}` must be at least 0 and less than 1, found {discount}")]
    Discount {
        /// The adapted nonterminal.
        symbol: SymbolId,
        /// Its name.
        name: String,
        /// The value found.
        discount: f64,
    },
    /// A concentration that is not positive.
    #[error("the concentration of `{name}` must be from 1e-100 to 1e100, found {concentration:?}")]
    Concentration {
        /// The adapted nonterminal.
        symbol: SymbolId,
        /// Its name.
        name: String,
        /// The value found.
        concentration: f64,
    },
    /// A concentration without a discount: a grammar file could not say it.
    #[error("`{name}` has a concentration but no discount; give both")]
    ConcentrationAlone {
        /// The adapted nonterminal.
        symbol: SymbolId,
        /// Its name.
        name: String,
    },
    /// `<substrings>` beside other symbols, or beside other rules, or below an adapted nonterminal.
    #[error(
        "`{SUBSTRINGS}` must be all that `{parent}` rewrites to, and `{parent}` not adapted; write \
         `1 1 {parent} --> {SUBSTRINGS}` and no other rule of it"
    )]
    Substrings {
        /// Index of the rule.
        rule: usize,
        /// Name of the parent.
        parent: String,
    },
    /// A nonterminal that derives no string of terminals.
    #[error("`{name}` derives no string of terminals, whichever of its rules is used; add a rule that ends")]
    Unproductive {
        /// The symbol.
        symbol: SymbolId,
        /// Its name.
        name: String,
    },
    /// A nonterminal that no derivation from the start symbol uses.
    #[error("`{name}` cannot be reached from the start symbol `{start}`; remove its rules, or use it in one")]
    Unreachable {
        /// The symbol.
        symbol: SymbolId,
        /// Its name.
        name: String,
        /// Name of the start symbol.
        start: String,
    },
    /// A nonterminal that derives itself alone, so that sentences have infinitely many derivations.
    #[error("unary cycle {}: a symbol must not derive itself alone; remove one of these rules", path.join(" → "))]
    UnaryCycle {
        /// Index of the rule that begins it.
        rule: usize,
        /// Names along the cycle, the first one repeated at the end.
        path: Vec<String>,
    },
}

/// The thing that a [`Defect`] is about.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Place {
    /// The grammar as a whole.
    Grammar,
    /// A symbol.
    Symbol(SymbolId),
    /// A rule, by index.
    Rule(usize),
}

impl Defect {
    #[doc(hidden)]
    /// Returns the part of the grammar that is wrong.
    pub fn place(&self) -> Place {
        match *self {
            Defect::NoRules | Defect::Tables { .. } | Defect::TooLarge { .. } | Defect::Factors => {
                Place::Grammar
            }
            Defect::EmptyName { symbol }
            | Defect::SpaceInName { symbol, .. }
            | Defect::DuplicateName { symbol, .. }
            | Defect::NoRule { symbol, .. }
            | Defect::TerminalOrder { symbol, .. }
            | Defect::Discount { symbol, .. }
            | Defect::Concentration { symbol, .. }
            | Defect::ConcentrationAlone { symbol, .. }
            | Defect::Unproductive { symbol, .. }
            | Defect::Unreachable { symbol, .. } => Place::Symbol(symbol),
            Defect::OutOfRange { rule, .. }
            | Defect::ParentIsTerminal { rule, .. }
            | Defect::Ungrouped { rule, .. }
            | Defect::EmptyRight { rule, .. }
            | Defect::LongRight { rule, .. }
            | Defect::Alpha { rule, .. }
            | Defect::DuplicateRule { rule, .. }
            | Defect::Substrings { rule, .. }
            | Defect::UnaryCycle { rule, .. } => Place::Rule(rule),
        }
    }
}

impl Grammar {
    /// Makes a grammar of its tables.
    ///
    /// # Errors
    /// The first [`Defect`] that [`Grammar::check`] finds.
    pub fn new(
        symbols: Vec<String>,
        n_nonterminals: u32,
        rules: Vec<Rule>,
        adaptors: Vec<Option<Adaptor>>,
    ) -> Result<Grammar, Defect> {
        let grammar = Grammar { symbols, n_nonterminals, rules, adaptors, factors: None };
        grammar.check()?;
        Ok(grammar)
    }

    /// Checks every invariant of a grammar that [`Grammar::new`] did not make, for instance a received one.
    ///
    /// # Errors
    /// The first [`Defect`]: tables before rules, rules before what they derive.
    pub fn check(&self) -> Result<(), Defect> {
        if self.rules.is_empty() {
            return Err(Defect::NoRules);
        }
        let (n_symbols, n_adaptors) = (self.symbols.len(), self.adaptors.len());
        let n_nonterminals = self.n_nonterminals;
        if n_nonterminals == 0 || n_nonterminals as usize > n_symbols || n_nonterminals as usize != n_adaptors
        {
            return Err(Defect::Tables { n_symbols, n_nonterminals, n_adaptors });
        }
        self.check_size()?;
        self.check_names()?;
        self.check_rules()?;
        self.check_adaptors()?;
        self.check_substrings()?;
        self.check_productive()?;
        self.check_reachable()?;
        self.check_unary_cycles()?;
        self.check_factors()
    }

    /// Whether factors of arcs have the sizes of a dependency grammar, whose words are two terminals each; that it is one is for
    /// [`crate::models::dmv::factors`] to see.
    pub(super) fn check_factors(&self) -> Result<(), Defect> {
        let Some(factors) = &self.factors else { return Ok(()) };
        let n_terminals = self.symbols.len() - self.n_nonterminals as usize;
        let is_plain = self.adapted().next().is_none() && n_terminals.is_multiple_of(2);
        if is_plain && factors.suits(n_terminals / 2) { Ok(()) } else { Err(Defect::Factors) }
    }

    /// Whether the tables are within [`limits`]; a look at their lengths.
    fn check_size(&self) -> Result<(), Defect> {
        let (n_symbols, n_nonterminals) = (self.symbols.len() as u64, u64::from(self.n_nonterminals));
        for (what, found, limit) in [
            ("symbols", n_symbols, limits::MAX_SYMBOLS as u64),
            ("rules", self.rules.len() as u64, limits::MAX_RULES as u64),
            ("pairs of a nonterminal and a symbol", n_nonterminals * n_symbols, limits::MAX_TERMINAL_SETS),
        ] {
            if found > limit {
                return Err(Defect::TooLarge { what, found, limit });
            }
        }
        Ok(())
    }

    /// The adapted nonterminals that occur below themselves (Cohen, Blei & Smith 2010, §3.1), in symbol order.
    pub fn recursive_adapted(&self) -> Vec<SymbolId> {
        let on_cycle = on_cycle(&self.edges(|_| true));
        self.adapted().filter(|symbol| on_cycle[symbol.index()]).collect()
    }

    fn check_names(&self) -> Result<(), Defect> {
        let mut seen = FxHashSet::default();
        for (symbol, name) in self.symbols.iter().enumerate() {
            let symbol = SymbolId(symbol as u32);
            if name.is_empty() {
                return Err(Defect::EmptyName { symbol });
            }
            if name.contains(char::is_whitespace) {
                return Err(Defect::SpaceInName { symbol, name: name.clone() });
            }
            if !seen.insert(name.as_str()) {
                return Err(Defect::DuplicateName { symbol, name: name.clone() });
            }
        }
        Ok(())
    }

    fn check_rules(&self) -> Result<(), Defect> {
        let n_symbols = self.symbols.len();
        let mut seen = FxHashSet::default();
        let mut parent = Grammar::START;
        let mut n_terminals = 0;
        for (index, rule) in self.rules.iter().enumerate() {
            for symbol in std::iter::once(rule.parent).chain(rule.children.iter().copied()) {
                if symbol.index() >= n_symbols {
                    return Err(Defect::OutOfRange { rule: index, symbol, n_symbols });
                }
            }
            let name = || self.name(rule.parent).to_owned();
            if !self.is_nonterminal(rule.parent) {
                return Err(Defect::ParentIsTerminal { rule: index, name: name() });
            }
            if rule.parent < parent {
                return Err(Defect::Ungrouped { rule: index, parent: name() });
            }
            let skipped = if index == 0 { Grammar::START } else { SymbolId(parent.0 + 1) };
            if rule.parent > skipped {
                return Err(Defect::NoRule { symbol: skipped, name: self.name(skipped).to_owned() });
            }
            parent = rule.parent;
            if rule.children.is_empty() {
                return Err(Defect::EmptyRight { rule: index, parent: name() });
            }
            if rule.children.len() > MAX_RIGHT_HAND_SIDE {
                return Err(Defect::LongRight { rule: index, parent: name(), found: rule.children.len() });
            }
            if !limits::is_parameter(rule.alpha) {
                return Err(Defect::Alpha { rule: index, parent: name(), alpha: rule.alpha });
            }
            if !seen.insert((rule.parent, rule.children.as_slice())) {
                return Err(Defect::DuplicateRule { rule: index, rule_text: self.rule_text(rule) });
            }
            for &child in &rule.children {
                let next = self.n_nonterminals + n_terminals;
                if child.0 > next {
                    let symbol = SymbolId(next);
                    return Err(Defect::TerminalOrder { symbol, name: self.name(symbol).to_owned() });
                }
                n_terminals += u32::from(child.0 == next);
            }
        }
        if parent.0 + 1 < self.n_nonterminals {
            let symbol = SymbolId(parent.0 + 1);
            return Err(Defect::NoRule { symbol, name: self.name(symbol).to_owned() });
        }
        let unused = SymbolId(self.n_nonterminals + n_terminals);
        match self.symbols.get(unused.index()) {
            // The symbols of a corpus, of which there are substrings.
            Some(_) if self.substring_rules().next().is_some() => Ok(()),
            Some(name) => Err(Defect::TerminalOrder { symbol: unused, name: name.clone() }),
            None => Ok(()),
        }
    }

    fn check_adaptors(&self) -> Result<(), Defect> {
        for symbol in self.adapted() {
            let Some(adaptor) = self.adaptors[symbol.index()] else { continue };
            let name = || self.name(symbol).to_owned();
            if let Some(discount) = adaptor.discount
                && !(0.0..1.0).contains(&discount)
            {
                return Err(Defect::Discount { symbol, name: name(), discount });
            }
            if let Some(concentration) = adaptor.concentration {
                if !limits::is_parameter(concentration) {
                    return Err(Defect::Concentration { symbol, name: name(), concentration });
                }
                if adaptor.discount.is_none() {
                    return Err(Defect::ConcentrationAlone { symbol, name: name() });
                }
            }
        }
        Ok(())
    }

    fn check_substrings(&self) -> Result<(), Defect> {
        let Some(substrings) = self.symbol(SUBSTRINGS).filter(|&symbol| !self.is_nonterminal(symbol)) else {
            return Ok(());
        };
        for (index, rule) in
            self.rules.iter().enumerate().filter(|(_, rule)| rule.children.contains(&substrings))
        {
            let mut siblings = [index.checked_sub(1), Some(index + 1)].into_iter().flatten();
            let is_sibling = |at: usize| self.rules.get(at).is_some_and(|other| other.parent == rule.parent);
            if rule.children.len() > 1 || siblings.any(is_sibling) || self.is_adapted(rule.parent) {
                return Err(Defect::Substrings { rule: index, parent: self.name(rule.parent).to_owned() });
            }
        }
        Ok(())
    }

    fn check_productive(&self) -> Result<(), Defect> {
        // Rules wait until all their nonterminal children are known to be productive.
        let mut waiting: Vec<usize> = Vec::with_capacity(self.rules.len());
        let mut waits_for: Vec<Vec<usize>> = vec![Vec::new(); self.n_nonterminals as usize];
        let mut ready = Vec::new();
        for (index, rule) in self.rules.iter().enumerate() {
            let nonterminals = rule.children.iter().filter(|&&child| self.is_nonterminal(child));
            waiting.push(nonterminals.clone().count());
            nonterminals.for_each(|child| waits_for[child.index()].push(index));
            if waiting[index] == 0 {
                ready.push(index);
            }
        }
        let mut productive = vec![false; self.n_nonterminals as usize];
        while let Some(index) = ready.pop() {
            let parent = self.rules[index].parent.index();
            if !std::mem::replace(&mut productive[parent], true) {
                for &rule in &waits_for[parent] {
                    waiting[rule] -= 1;
                    if waiting[rule] == 0 {
                        ready.push(rule);
                    }
                }
            }
        }
        if productive.iter().all(|&known| known) {
            return Ok(());
        }
        // Name a culprit, one that leads back to itself, not a symbol that merely needs one.
        let edges = self.edges(|rule| !productive[rule.parent.index()]);
        let on_cycle = on_cycle(&edges);
        let culprit = (0..productive.len()).find(|&symbol| !productive[symbol] && on_cycle[symbol]);
        let symbol = culprit.expect("without a cycle, some rule would end");
        Err(Defect::Unproductive { symbol: SymbolId(symbol as u32), name: self.symbols[symbol].clone() })
    }

    fn check_reachable(&self) -> Result<(), Defect> {
        let edges = self.edges(|_| true);
        let mut reached = vec![false; edges.len()];
        reached[Grammar::START.index()] = true;
        let mut open = vec![Grammar::START.0];
        while let Some(symbol) = open.pop() {
            for &child in &edges[symbol as usize] {
                if !std::mem::replace(&mut reached[child as usize], true) {
                    open.push(child);
                }
            }
        }
        match reached.iter().position(|&known| !known) {
            Some(symbol) => Err(Defect::Unreachable {
                symbol: SymbolId(symbol as u32),
                name: self.symbols[symbol].clone(),
                start: self.name(Grammar::START).to_owned(),
            }),
            None => Ok(()),
        }
    }

    fn check_unary_cycles(&self) -> Result<(), Defect> {
        let edges = self.edges(|rule| rule.children.len() == 1);
        let Some(first) = on_cycle(&edges).iter().position(|&found| found) else { return Ok(()) };
        let cycle = shortest_cycle(&edges, first as u32);
        let (parent, child) = (SymbolId(cycle[0]), SymbolId(cycle[1]));
        let rule = self
            .rules
            .iter()
            .position(|rule| rule.parent == parent && rule.children == [child])
            .expect("every edge comes from a rule");
        let path = cycle.iter().map(|&symbol| self.symbols[symbol as usize].clone()).collect();
        Err(Defect::UnaryCycle { rule, path })
    }

    /// For every nonterminal, its nonterminal children in the rules that `keep` lets through.
    fn edges(&self, keep: impl Fn(&Rule) -> bool) -> Vec<Vec<u32>> {
        let mut edges = vec![Vec::new(); self.n_nonterminals as usize];
        for rule in self.rules.iter().filter(|rule| keep(rule)) {
            let children = rule.children.iter().filter(|&&child| self.is_nonterminal(child));
            edges[rule.parent.index()].extend(children.map(|child| child.0));
        }
        edges
    }

    fn rule_text(&self, rule: &Rule) -> String {
        let children: Vec<&str> = rule.children.iter().map(|&child| self.name(child)).collect();
        format!("{} --> {}", self.name(rule.parent), children.join(" "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rule(parent: u32, children: &[u32]) -> Rule {
        Rule {
            parent: SymbolId(parent),
            children: children.iter().copied().map(SymbolId).collect(),
            alpha: 1.0,
        }
    }

    fn grammar(names: &str, n_nonterminals: u32, rules: Vec<Rule>) -> Result<Grammar, Defect> {
        let symbols = names.split(' ').map(str::to_owned).collect();
        Grammar::new(symbols, n_nonterminals, rules, vec![None; n_nonterminals as usize])
    }

    #[test]
    fn tables_that_do_not_fit_are_refused() {
        assert!(grammar("S a", 1, vec![rule(0, &[1])]).is_ok());
        assert!(matches!(grammar("S a", 3, vec![rule(0, &[1])]), Err(Defect::Tables { .. })));
        assert!(matches!(grammar("S a", 1, vec![]), Err(Defect::NoRules)));
        assert!(matches!(grammar("S S", 1, vec![rule(0, &[1])]), Err(Defect::DuplicateName { .. })));
        assert!(matches!(grammar("S a", 1, vec![rule(0, &[2])]), Err(Defect::OutOfRange { .. })));
        assert!(matches!(grammar("S a", 1, vec![rule(1, &[1])]), Err(Defect::ParentIsTerminal { .. })));
        assert!(matches!(grammar("S a", 1, vec![rule(0, &[])]), Err(Defect::EmptyRight { .. })));
        assert!(matches!(grammar("S T a", 2, vec![rule(0, &[2])]), Err(Defect::NoRule { .. })));
        assert!(matches!(grammar("S T a", 2, vec![rule(1, &[2])]), Err(Defect::NoRule { .. })));
        assert!(matches!(
            grammar("S T a", 2, vec![rule(0, &[1]), rule(1, &[2]), rule(0, &[2])]),
            Err(Defect::Ungrouped { rule: 2, .. })
        ));
        assert!(matches!(grammar("S a b", 1, vec![rule(0, &[2, 1])]), Err(Defect::TerminalOrder { .. })));
        assert!(matches!(grammar("S a b", 1, vec![rule(0, &[1])]), Err(Defect::TerminalOrder { .. })));
        assert!(matches!(
            grammar("S a", 1, vec![rule(0, &[1]), rule(0, &[1])]),
            Err(Defect::DuplicateRule { rule: 1, .. })
        ));
    }

    #[test]
    fn a_long_chain_needs_no_deep_stack() {
        let n = 60_000;
        let mut rules: Vec<Rule> = (0..n - 1).map(|at| rule(at, &[at + 1])).collect();
        rules.push(rule(n - 1, &[n]));
        let symbols = (0..=n).map(|at| format!("x{at}")).collect();
        assert!(Grammar::new(symbols, n, rules, vec![None; n as usize]).is_ok());
    }

    #[test]
    fn the_shortest_cycle_is_named() {
        let rules =
            vec![rule(0, &[1]), rule(0, &[3]), rule(1, &[2]), rule(1, &[1, 1]), rule(2, &[1]), rule(2, &[0])];
        let Err(Defect::UnaryCycle { rule: 0, path }) = grammar("A B C d", 3, rules) else {
            panic!("expected a unary cycle from rule 0");
        };
        assert_eq!(path, ["A", "B", "C", "A"]);
    }
}
