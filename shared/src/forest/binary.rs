//! A grammar with at most two symbols on a right-hand side, made for building forests.
//!
//! A → X Y Z becomes A → X ⟨Y Z⟩ with the rule's parameter and ⟨Y Z⟩ → Y Z with weight one, or A → ⟨X Y⟩ Z if fewer
//! terminals can begin and end ⟨X Y⟩, since it is then found in fewer places; equal parts are shared. For every adapted A
//! there is also A°, which has A's rules: it is A seen from below, through its base distribution. How A itself expands is
//! up to the [`Adapted`] mode of the builder.
//!
//! A grammar has adapted nonterminals or such that rewrite to substrings, not both.

use rustc_hash::FxHashMap;

use crate::grammar::cycle::on_cycle;
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
    /// Expands by its productions: a plain nonterminal, a part of a right-hand side, or A° of an adapted A.
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

/// See the module's documentation. Symbols of the grammar keep their numbers; A° and parts follow.
pub struct BinaryGrammar {
    /// `[n_symbols]`.
    pub kinds: Vec<Kind>,
    /// `[n_symbols]`: productions of plain symbols, in rule order; none for others.
    pub productions: Vec<Vec<Production>>,
    /// `[n_symbols]`: the grammar's symbol that a constituent is printed as; `None` for parts.
    pub printed: Vec<Option<SymbolId>>,
    /// `[n_adapted]`: the symbol A°.
    pub base: Vec<u32>,
    /// `[n_symbols]`: in a chain of unary productions, children have smaller ranks than parents.
    pub rank: Vec<u32>,
    n_ranks: usize,
    /// `[n_symbols]`: length of the shortest yield, through the rules.
    pub min_length: Vec<u32>,
    /// `[n_symbols]`: length of the longest yield, `u32::MAX` if there is none.
    pub max_length: Vec<u32>,
    /// `[n_symbols]`: the terminal that all yields end with; `None` if there are several.
    pub ends_in: Vec<Option<SymbolId>>,
    /// `[n_symbols]`: whether a string of some stick can be part of a yield.
    pub meets_strings: Vec<bool>,
    /// `[n_symbols]`: terminals that a yield can begin with, as a set.
    first: Vec<TerminalSet>,
    /// `[n_symbols]`: terminals that a yield can end with, as a set.
    last: Vec<TerminalSet>,
}

impl BinaryGrammar {
    /// Bytes held, and those of the grammar that it was made of, which is about as large.
    pub fn size(&self) -> usize {
        let productions: usize = self.productions.iter().map(|of| size_of_val(&of[..])).sum();
        let sets = self.first.iter().chain(&self.last).map(|set| size_of_val(&set.0[..])).sum::<usize>();
        let symbol = size_of::<(Kind, Vec<Production>, [u32; 5], [TerminalSet; 2])>();
        2 * (productions + self.kinds.len() * symbol) + sets
    }

    /// Binarises `grammar`.
    pub fn new(grammar: &Grammar) -> BinaryGrammar {
        let n = grammar.symbols.len();
        let (mut first, mut last) = ends_of_yields(grammar);
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
            first.push(first[symbol.index()].clone());
            last.push(last[symbol.index()].clone());
        }
        for (number, &rule) in of_substrings.iter().enumerate() {
            kinds[grammar.rules[rule].parent.index()] = Kind::Substrings(number as u32);
        }
        let mut parts: FxHashMap<Vec<u32>, u32> = FxHashMap::default();
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
                let (left, right) = (rest[0], rest[rest.len() - 1]);
                if rest.len() <= 2 {
                    let right = (rest.len() == 2).then_some(right);
                    productions[parent].push(Production { param, left, right });
                    break;
                }
                let (prefix, suffix) = (&rest[..rest.len() - 1], &rest[1..]);
                let ends = |part: &[u32]| [part[0], part[part.len() - 1]].map(|symbol| symbol as usize);
                let n_ends = |part| {
                    let [left, right] = ends(part);
                    first[left].len() * last[right].len()
                };
                let is_prefix = n_ends(prefix) < n_ends(suffix);
                let part = if is_prefix { prefix } else { suffix };
                let known = parts.get(part).copied();
                let symbol = known.unwrap_or(kinds.len() as u32);
                let (left, right) = if is_prefix { (symbol, right) } else { (left, symbol) };
                productions[parent].push(Production { param, left, right: Some(right) });
                if known.is_some() {
                    break;
                }
                let [leftmost, rightmost] = ends(part);
                first.push(first[leftmost].clone());
                last.push(last[rightmost].clone());
                parts.insert(part.to_vec(), symbol);
                kinds.push(Kind::Plain);
                printed.push(None);
                productions.push(Vec::new());
                (parent, param, rest) = (symbol as usize, ParamId::ONE, part);
            }
        }
        let ends_in = last.iter().map(TerminalSet::only).collect();
        let mut binary = BinaryGrammar {
            rank: vec![0; kinds.len()],
            n_ranks: 1,
            min_length: vec![u32::MAX; kinds.len()],
            max_length: vec![0; kinds.len()],
            meets_strings: kinds
                .iter()
                .map(|kind| matches!(kind, Kind::Adapted(_) | Kind::Substrings(_)))
                .collect(),
            ends_in,
            first,
            last,
            kinds,
            productions,
            printed,
            base,
        };
        binary.find_ranks();
        binary.find_lengths();
        binary.find_strings();
        binary
    }

    /// Number of symbols.
    pub fn n_symbols(&self) -> usize {
        self.kinds.len()
    }

    /// One more than the largest rank.
    pub fn n_ranks(&self) -> usize {
        self.n_ranks
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
        self.n_ranks += self.rank.iter().copied().max().unwrap_or(0) as usize;
    }

    fn find_strings(&mut self) {
        let mut changed = true;
        while changed {
            changed = false;
            for symbol in 0..self.n_symbols() {
                let meets = |p: &Production| {
                    let right = p.right.is_some_and(|right| self.meets_strings[right as usize]);
                    right || self.meets_strings[p.left as usize]
                };
                if !self.meets_strings[symbol] && self.productions[symbol].iter().any(meets) {
                    self.meets_strings[symbol] = true;
                    changed = true;
                }
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
        // Once round a cycle makes a yield longer, since there are no unary ones.
        let children = |symbol| {
            self.through_rules(symbol).iter().flat_map(|p| std::iter::once(p.left).chain(p.right)).collect()
        };
        let recursive = on_cycle(&(0..self.n_symbols()).map(children).collect::<Vec<Vec<u32>>>());
        let unbounded = recursive.iter().zip(&mut self.max_length).filter(|(recursive, _)| **recursive);
        unbounded.for_each(|(_, max)| *max = u32::MAX);
        let mut changed = true;
        while changed {
            changed = false;
            for symbol in 0..self.n_symbols() {
                let (mut min, mut max) = (self.min_length[symbol], self.max_length[symbol]);
                for p in self.through_rules(symbol) {
                    let right_min = p.right.map_or(0, |right| self.min_length[right as usize]);
                    let right_max = p.right.map_or(0, |right| self.max_length[right as usize]);
                    min = min.min(self.min_length[p.left as usize].saturating_add(right_min));
                    max = max.max(self.max_length[p.left as usize].saturating_add(right_max));
                }
                changed |= (min, max) != (self.min_length[symbol], self.max_length[symbol]);
                (self.min_length[symbol], self.max_length[symbol]) = (min, max);
            }
        }
    }
}

/// By symbol of the grammar, the terminals that its yields can begin and end with.
fn ends_of_yields(grammar: &Grammar) -> (Vec<TerminalSet>, Vec<TerminalSet>) {
    let n = grammar.symbols.len();
    let mut first = vec![TerminalSet::new(n); n];
    for terminal in (grammar.n_nonterminals..n as u32).map(SymbolId) {
        first[terminal.index()].insert(terminal);
    }
    for rule in grammar.substring_rules() {
        first[grammar.rules[rule].parent.index()] = TerminalSet::full(n);
    }
    let mut last = first.clone();
    let mut changed = true;
    while changed {
        changed = false;
        for rule in &grammar.rules {
            let [parent, left, right] =
                [rule.parent, rule.children[0], rule.children[rule.children.len() - 1]].map(SymbolId::index);
            changed |= union(&mut first, parent, left) | union(&mut last, parent, right);
        }
    }
    (first, last)
}

/// Adds what is in the set of `other`; whether that was new.
fn union(sets: &mut [TerminalSet], symbol: usize, other: usize) -> bool {
    let mut changed = false;
    for word in 0..sets[symbol].0.len() {
        let added = sets[other].0[word] & !sets[symbol].0[word];
        sets[symbol].0[word] |= added;
        changed |= added != 0;
    }
    changed
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

    fn full(n_symbols: usize) -> TerminalSet {
        TerminalSet(vec![u64::MAX; n_symbols.div_ceil(64)])
    }

    fn len(&self) -> u64 {
        self.0.iter().map(|word| u64::from(word.count_ones())).sum()
    }

    /// Its element, if it has one only.
    fn only(&self) -> Option<SymbolId> {
        let at = self.0.iter().position(|&word| word != 0)?;
        (self.len() == 1).then(|| SymbolId(64 * at as u32 + self.0[at].trailing_zeros()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::grammar::syntax;

    #[test]
    fn long_rules_are_cut_where_parts_are_found_in_fewer_places() {
        // X is anything; `a` and `b` are themselves.
        let text =
            "1 1 S --> X a b\n1 1 S --> b a X\n1 1 S --> b X a X\n1 1 X --> a\n1 1 X --> b\n1 1 X --> S\n";
        let grammar = syntax::parse(text, "g").unwrap().0;
        let binary = BinaryGrammar::new(&grammar);
        let n = grammar.symbols.len() as u32;
        let symbol = |name: &str| grammar.symbol(name).unwrap().0;
        let found = |parent: u32| -> Vec<(u32, u32)> {
            let productions = &binary.productions[parent as usize];
            productions.iter().map(|p| (p.left, p.right.expect("these are binary"))).collect()
        };
        let (x, a, b) = (symbol("X"), symbol("a"), symbol("b"));
        assert_eq!(found(0), [(x, n), (n + 1, x), (n + 2, x)]);
        assert_eq!(found(n), [(a, b)]);
        assert_eq!(found(n + 1), [(b, a)]);
        assert_eq!(found(n + 2), [(b, n + 3)], "⟨b X⟩ and ⟨X a⟩ are alike");
        assert_eq!(found(n + 3), [(x, a)]);
        let ends = |symbol: u32| binary.ends_in[symbol as usize].map(|terminal| terminal.0);
        assert_eq!(
            [n, n + 1, n + 2, n + 3, x, a].map(ends),
            [Some(b), Some(a), Some(a), Some(a), None, Some(a)]
        );
    }

    #[test]
    fn strings_are_met_above_what_is_adapted_and_not_below() {
        let text = "1 1 S --> T W\n1 1 T --> a b T\n1 1 T --> b\nW --> T T\n1 1 V --> W a b\n1 1 S --> V\n";
        let binary = BinaryGrammar::new(&syntax::parse(text, "g").unwrap().0);
        let grammar = syntax::parse(text, "g").unwrap().0;
        let meets = |name: &str| binary.meets_strings[grammar.symbol(name).unwrap().index()];
        assert_eq!(["S", "T", "W", "V", "a"].map(meets), [true, false, true, true, false]);
        assert!(!binary.meets_strings[binary.base[0] as usize], "a string of W is made of rules alone");
    }

    #[test]
    fn lengths_are_those_of_the_shortest_and_longest_yield() {
        let text = "1 1 S --> T T\n1 1 S --> L\n1 1 T --> a\n1 1 T --> a a\n1 1 L --> T T T L\n1 1 L --> b\n";
        let binary = BinaryGrammar::new(&syntax::parse(text, "g").unwrap().0);
        let lengths: Vec<(u32, u32)> =
            (0..5).map(|symbol| (binary.min_length[symbol], binary.max_length[symbol])).collect();
        assert_eq!(lengths, [(1, u32::MAX), (1, 2), (1, u32::MAX), (1, 1), (1, 1)]);
    }
}
