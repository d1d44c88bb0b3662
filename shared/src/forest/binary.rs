//! A grammar with at most two symbols on a right-hand side, made for building forests.
//!
//! A → X Y Z becomes A → X ⟨Y Z⟩ with the rule's parameter and ⟨Y Z⟩ → Y Z with weight one; equal suffixes are
//! shared. For every adapted A there is also A°, which has A's rules: it is A seen from below, through its
//! base distribution. How A itself expands is up to the [`Adapted`] mode of the builder.
//!
//! A grammar has adapted nonterminals or such that rewrite to substrings, not both.

use rustc_hash::FxHashMap;

use crate::grammar::{Grammar, SymbolId};
use crate::shard::ParamId;

/// How adapted nonterminals expand.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Adapted {
    /// Only to strings of their stick: the variational family of a training round.
    Strings,
    /// Only through their rules: the grammar without its adaptors.
    Rules,
    /// To strings, and through their rules by the escape parameter: for sentences never seen in training.
    Open,
}

/// What a symbol of the [`BinaryGrammar`] is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// Matches one token.
    Terminal,
    /// Expands by its productions: a plain nonterminal, a suffix, or A° of an adapted A.
    Plain,
    /// An adapted nonterminal and the number of its stick.
    Adapted(u32),
    /// A nonterminal that rewrites to substrings of the corpus, and the number of its stick.
    Substrings(u32),
}

/// `parent → left` or `parent → left right`, weighted by `param`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Production {
    /// A rule's parameter, or [`ParamId::ONE`].
    pub param: ParamId,
    /// First symbol.
    pub left: u32,
    /// Second symbol.
    pub right: Option<u32>,
}

/// See the module's documentation. Symbols of the grammar keep their numbers; suffixes and A° follow.
pub struct BinaryGrammar {
    /// `[n_symbols]`.
    pub kinds: Vec<Kind>,
    /// `[n_symbols]`: productions of plain symbols, in rule order; none for others.
    pub productions: Vec<Vec<Production>>,
    /// `[n_symbols]`: the grammar's symbol that a constituent is printed as; `None` for suffixes.
    pub printed: Vec<Option<SymbolId>>,
    /// `[n_adapted]`: the symbol A°.
    pub base: Vec<u32>,
    /// `[n_symbols]`: in a chain of unary productions, children have smaller ranks than parents.
    pub rank: Vec<u32>,
    /// `[n_symbols]`: length of the shortest yield, through the rules.
    pub min_length: Vec<u32>,
    /// `[n_symbols]`: length of the longest yield, `u32::MAX` if there is none.
    pub max_length: Vec<u32>,
    /// `[n_symbols]`: terminals that a yield can begin with, as a set.
    first: Vec<TerminalSet>,
    /// `[n_symbols]`: terminals that a yield can end with, as a set.
    last: Vec<TerminalSet>,
}

impl BinaryGrammar {
    /// Binarises `grammar`.
    pub fn new(grammar: &Grammar) -> BinaryGrammar {
        let n = grammar.symbols.len();
        let adapted: Vec<SymbolId> = grammar.adapted().collect();
        let of_substrings: Vec<usize> = grammar.substring_rules().collect();
        let mut kinds: Vec<Kind> = (0..n as u32)
            .map(|symbol| if symbol < grammar.n_nonterminals { Kind::Plain } else { Kind::Terminal })
            .collect();
        let mut printed: Vec<Option<SymbolId>> = (0..n as u32).map(|symbol| Some(SymbolId(symbol))).collect();
        let mut productions: Vec<Vec<Production>> = vec![Vec::new(); n];
        let mut base = Vec::new();
        for (number, &symbol) in adapted.iter().enumerate() {
            kinds[symbol.index()] = Kind::Adapted(number as u32);
            base.push(kinds.len() as u32);
            kinds.push(Kind::Plain);
            printed.push(Some(symbol));
            productions.push(Vec::new());
        }
        for (number, &rule) in of_substrings.iter().enumerate() {
            kinds[grammar.rules[rule].parent.index()] = Kind::Substrings(number as u32);
        }
        let mut suffixes: FxHashMap<Vec<u32>, u32> = FxHashMap::default();
        for (number, rule) in grammar.rules.iter().enumerate() {
            if of_substrings.binary_search(&number).is_ok() {
                continue;
            }
            let mut parent = match kinds[rule.parent.index()] {
                Kind::Adapted(stick) => base[stick as usize] as usize,
                _ => rule.parent.index(),
            };
            let mut param = ParamId::of_rule(number);
            let children: Vec<u32> = rule.children.iter().map(|child| child.0).collect();
            let mut rest = children.as_slice();
            loop {
                let (left, tail) = (rest[0], &rest[1..]);
                if tail.len() <= 1 {
                    productions[parent].push(Production { param, left, right: tail.first().copied() });
                    break;
                }
                let known = suffixes.get(tail).copied();
                let suffix = known.unwrap_or(kinds.len() as u32);
                productions[parent].push(Production { param, left, right: Some(suffix) });
                if known.is_some() {
                    break;
                }
                suffixes.insert(tail.to_vec(), suffix);
                kinds.push(Kind::Plain);
                printed.push(None);
                productions.push(Vec::new());
                (parent, param, rest) = (suffix as usize, ParamId::ONE, tail);
            }
        }
        let mut binary = BinaryGrammar {
            rank: vec![0; kinds.len()],
            min_length: vec![u32::MAX; kinds.len()],
            max_length: vec![0; kinds.len()],
            first: vec![TerminalSet::new(n); kinds.len()],
            last: vec![TerminalSet::new(n); kinds.len()],
            kinds,
            productions,
            printed,
            base,
        };
        binary.find_ranks();
        binary.find_lengths();
        binary.find_edges_of_yields();
        binary
    }

    /// Number of symbols.
    pub fn n_symbols(&self) -> usize {
        self.kinds.len()
    }

    /// The productions of `symbol` through rules: those of A° for an adapted A.
    fn through_rules(&self, symbol: usize) -> &[Production] {
        match self.kinds[symbol] {
            Kind::Adapted(number) => &self.productions[self.base[number as usize] as usize],
            _ => &self.productions[symbol],
        }
    }

    /// Whether a yield of `symbol` can be `tokens` as far as its length, first and last token tell.
    #[inline]
    pub fn admits(&self, symbol: u32, tokens: &[SymbolId]) -> bool {
        let symbol = symbol as usize;
        let n = tokens.len() as u32;
        self.min_length[symbol] <= n
            && n <= self.max_length[symbol]
            && self.first[symbol].contains(tokens[0])
            && self.last[symbol].contains(tokens[tokens.len() - 1])
    }

    /// Ranks by repeated relaxation; unary chains have no cycles in a checked grammar.
    fn find_ranks(&mut self) {
        for _ in 0..self.n_symbols() {
            let mut changed = false;
            for symbol in 0..self.n_symbols() {
                let above = |child: u32| self.rank[child as usize] + 1;
                let children = self.through_rules(symbol).iter().filter(|p| p.right.is_none());
                let mut rank = children.map(|p| above(p.left)).max().unwrap_or(0);
                if let Kind::Adapted(number) = self.kinds[symbol] {
                    rank = above(self.base[number as usize]); // A → A°
                }
                changed |= rank > self.rank[symbol];
                self.rank[symbol] = rank.max(self.rank[symbol]);
            }
            if !changed {
                break;
            }
        }
    }

    fn find_lengths(&mut self) {
        for symbol in 0..self.n_symbols() {
            match self.kinds[symbol] {
                Kind::Terminal => (self.min_length[symbol], self.max_length[symbol]) = (1, 1),
                Kind::Substrings(_) => (self.min_length[symbol], self.max_length[symbol]) = (1, u32::MAX),
                Kind::Plain | Kind::Adapted(_) => {}
            }
        }
        // Without recursion, the longest yield is known after as many passes as there are symbols; a symbol whose
        // bound still grows then is recursive, or has a recursive descendant.
        let passes = self.n_symbols() + 1;
        for pass in 0..2 * passes {
            for symbol in 0..self.n_symbols() {
                let (mut min, mut max) = (self.min_length[symbol], self.max_length[symbol]);
                for p in self.through_rules(symbol) {
                    let right_min = p.right.map_or(0, |right| self.min_length[right as usize]);
                    let right_max = p.right.map_or(0, |right| self.max_length[right as usize]);
                    min = min.min(self.min_length[p.left as usize].saturating_add(right_min));
                    max = max.max(self.max_length[p.left as usize].saturating_add(right_max));
                }
                if pass >= passes && max > self.max_length[symbol] {
                    max = u32::MAX;
                }
                (self.min_length[symbol], self.max_length[symbol]) = (min, max);
            }
        }
    }

    fn find_edges_of_yields(&mut self) {
        let all = TerminalSet(vec![u64::MAX; self.first[0].0.len()]);
        for symbol in 0..self.n_symbols() {
            match self.kinds[symbol] {
                Kind::Terminal => {
                    self.first[symbol].insert(SymbolId(symbol as u32));
                    self.last[symbol].insert(SymbolId(symbol as u32));
                }
                Kind::Substrings(_) => (self.first[symbol], self.last[symbol]) = (all.clone(), all.clone()),
                Kind::Plain | Kind::Adapted(_) => {}
            }
        }
        let mut changed = true;
        while changed {
            changed = false;
            for symbol in 0..self.n_symbols() {
                let (mut first, mut last) = (self.first[symbol].clone(), self.last[symbol].clone());
                for p in self.through_rules(symbol) {
                    first.union(&self.first[p.left as usize]);
                    last.union(&self.last[p.right.unwrap_or(p.left) as usize]);
                }
                changed |= first != self.first[symbol] || last != self.last[symbol];
                (self.first[symbol], self.last[symbol]) = (first, last);
            }
        }
    }
}

#[derive(Clone, PartialEq)]
struct TerminalSet(Vec<u64>);

impl TerminalSet {
    fn new(n_symbols: usize) -> TerminalSet {
        TerminalSet(vec![0; n_symbols.div_ceil(64)])
    }

    fn insert(&mut self, symbol: SymbolId) {
        self.0[symbol.index() / 64] |= 1 << (symbol.index() % 64);
    }

    #[inline]
    fn contains(&self, symbol: SymbolId) -> bool {
        self.0[symbol.index() / 64] >> (symbol.index() % 64) & 1 == 1
    }

    fn union(&mut self, other: &TerminalSet) {
        self.0.iter_mut().zip(&other.0).for_each(|(a, b)| *a |= b);
    }
}
