//! A grammar with at most two symbols on a right-hand side, made for building forests.
//!
//! A → X Y Z becomes A → X ⟨Y Z⟩ with the rule's parameter and ⟨Y Z⟩ → Y Z with weight one, or A → ⟨X Y⟩ Z if fewer
//! terminals can begin and end ⟨X Y⟩, since it is then found in fewer places; equal parts are shared. For every adapted A
//! there is also A°, which has A's rules: it is A seen from below, through its base distribution. How A itself expands is
//! up to the [`Adapted`] mode of the builder.
//!
//! A grammar has adapted nonterminals, or nonterminals that rewrite to substrings, not both.
//!
//! Cost: linear in the symbols of all right-hand sides, times the length of the longest, and in the sets of terminals
//! ([`crate::limits::MAX_TERMINAL_SETS`]).

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use rustc_hash::FxHashMap;

use super::{TooAmbiguous, bytes};
use crate::grammar::ParamId;
use crate::grammar::cycle::{components, is_cyclic};
use crate::grammar::{Grammar, RuleId, StickId, SymbolId};
use crate::limits::MAX_FOREST;
use crate::stop::{self, checked};

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

/// Origin of a symbol of the [`BinaryGrammar`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// Matches one token.
    Terminal,
    /// Expands by its productions: a plain nonterminal, a part of a right-hand side, or A° of an adapted A.
    Plain,
    /// An adapted nonterminal and the number of its stick.
    Adapted(StickId),
    /// A nonterminal that rewrites to substrings of the corpus, and the number of its stick.
    Substrings(StickId),
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
    /// `[n_symbols]`: terminals that a yield can begin with.
    first: Vec<Ends>,
    /// `[n_symbols]`: terminals that a yield can end with.
    last: Vec<Ends>,
    sets: TerminalSets,
    /// `[n_symbols]`: productions by their first terminal, of symbols with many that begin with terminals.
    by_terminal: Vec<Option<ByTerminal>>,
    /// Bytes of a forest, at most [`MAX_FOREST`].
    pub(super) forest_limit: usize,
}

/// Productions of a symbol, by the terminal that they begin with.
struct ByTerminal {
    /// Positions of the productions that begin with nonterminals, ascending.
    others: Vec<u32>,
    /// First terminal and position of the rest, sorted.
    rest: Vec<(u32, u32)>,
}

impl ByTerminal {
    /// Number of productions beyond which a look at each for every span takes longer than finding those that match.
    const MANY: usize = 64;

    fn new(productions: &[Production], grammar: &Grammar) -> Option<ByTerminal> {
        let terminals = grammar.n_nonterminals..grammar.symbols.len() as u32;
        let places = || (0..).zip(productions);
        let rest = places().filter(|(_, production)| terminals.contains(&production.left));
        let mut rest: Vec<(u32, u32)> = rest.map(|(at, production)| (production.left, at)).collect();
        rest.sort_unstable();
        let others = places().filter(|(_, production)| !terminals.contains(&production.left));
        let others = others.map(|(at, _)| at).collect();
        (rest.len() > ByTerminal::MANY).then_some(ByTerminal { others, rest })
    }

    /// Positions of the productions that begin with a nonterminal or with `first`, ascending.
    fn positions(&self, first: SymbolId) -> impl Iterator<Item = u32> + '_ {
        let from = self.rest.partition_point(|&(terminal, _)| terminal < first.0);
        let matching = self.rest[from..].iter().take_while(move |(terminal, _)| *terminal == first.0);
        let (mut matching, mut others) = (matching.peekable(), self.others.iter().peekable());
        std::iter::from_fn(move || match (matching.peek(), others.peek()) {
            (Some((_, at)), Some(&&other)) if *at < other => matching.next().map(|&(_, at)| at),
            (_, Some(_)) => others.next().copied(),
            (_, None) => matching.next().map(|&(_, at)| at),
        })
    }
}

impl BinaryGrammar {
    /// Bytes held, and those of the grammar that it was made of, which is about as large.
    pub fn size(&self) -> usize {
        let productions: usize = self.productions.iter().map(|of| size_of_val(&of[..])).sum();
        let sets = size_of_val(&self.sets.words[..])
            + size_of_val(&self.sets.sizes[..])
            + size_of_val(&self.sets.few[..]);
        let symbol = size_of::<(Kind, Vec<Production>, [u32; 5], [Ends; 2])>();
        2 * (productions + self.kinds.len() * symbol) + sets
    }

    /// Whether a forest of so many symbols has too many edges for every process if each production has one for every span and split.
    ///
    /// # Errors
    /// [`TooAmbiguous`] then.
    pub fn check_dense(&self, n_tokens: usize) -> Result<(), TooAmbiguous> {
        let n = n_tokens as u128;
        self.check_splits(n_tokens, (n + 1) * n * n.saturating_sub(1) / 6)
    }

    /// The same of a forest whose constituents have at most `longest` symbols.
    ///
    /// # Errors
    /// [`TooAmbiguous`] then.
    pub fn check_limited(&self, n_tokens: usize, longest: u32) -> Result<(), TooAmbiguous> {
        self.check_splits(n_tokens, n_tokens as u128 * u128::from(longest).pow(2) / 2)
    }

    fn check_splits(&self, n_tokens: usize, n_splits: u128) -> Result<(), TooAmbiguous> {
        let branching = self.productions.iter().flatten().filter(|production| production.right.is_some());
        let n_edges = (branching.count() as u128 * n_splits).min(u128::from(u32::MAX)) as usize;
        let limit = MAX_FOREST;
        if bytes(n_edges, 0) > limit { Err(TooAmbiguous { n_tokens, limit }) } else { Ok(()) }
    }

    /// Binarises `grammar`.
    pub fn new(grammar: &Grammar) -> BinaryGrammar {
        let n = grammar.symbols.len();
        let mut sets = TerminalSets::new(n, if n > MANY_SYMBOLS { FEW } else { 0 });
        let mut first = sets.of_yields(grammar, |children| children[0]);
        let mut last = sets.of_yields(grammar, |children| children[children.len() - 1]);
        let adapted: Vec<SymbolId> = grammar.adapted().collect();
        let of_substrings: Vec<RuleId> = grammar.substring_rules().collect();
        let mut kinds: Vec<Kind> = (0..n as u32)
            .map(|symbol| if symbol < grammar.n_nonterminals { Kind::Plain } else { Kind::Terminal })
            .collect();
        let mut printed: Vec<Option<SymbolId>> = (0..n as u32).map(|symbol| Some(SymbolId(symbol))).collect();
        let mut productions: Vec<Vec<Production>> = vec![Vec::new(); n];
        let mut base = Vec::new();
        for (number, &symbol) in adapted.iter().enumerate() {
            kinds[symbol.index()] = Kind::Adapted(StickId(number as u32));
            base.push(kinds.len() as u32);
            kinds.push(Kind::Plain);
            printed.push(Some(symbol));
            productions.push(Vec::new());
            first.push(first[symbol.index()]);
            last.push(last[symbol.index()]);
        }
        for (number, &rule) in of_substrings.iter().enumerate() {
            kinds[grammar.rule(rule).parent.index()] = Kind::Substrings(StickId(number as u32));
        }
        let mut parts: FxHashMap<&[SymbolId], u32> = FxHashMap::default();
        for (number, rule) in checked((0..).map(RuleId).zip(&grammar.rules)) {
            if of_substrings.binary_search(&number).is_ok() {
                continue;
            }
            let mut parent = match kinds[rule.parent.index()] {
                Kind::Adapted(stick) => base[stick.index()] as usize,
                _ => rule.parent.index(),
            };
            let mut param = ParamId::of_rule(number);
            let mut rest = &rule.children[..];
            loop {
                let (left, right) = (rest[0].0, rest[rest.len() - 1].0);
                if rest.len() <= 2 {
                    let right = (rest.len() == 2).then_some(right);
                    productions[parent].push(Production { param, left, right });
                    break;
                }
                let (prefix, suffix) = (&rest[..rest.len() - 1], &rest[1..]);
                let ends = |part: &[SymbolId]| [part[0], part[part.len() - 1]].map(SymbolId::index);
                let n_ends = |part| {
                    let [left, right] = ends(part);
                    sets.len(first[left]) * sets.len(last[right])
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
                first.push(first[leftmost]);
                last.push(last[rightmost]);
                parts.insert(part, symbol);
                kinds.push(Kind::Plain);
                printed.push(None);
                productions.push(Vec::new());
                (parent, param, rest) = (symbol as usize, ParamId::ONE, part);
            }
        }
        let ends_in = last.iter().map(|&last| sets.only(last)).collect();
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
            sets,
            by_terminal: productions.iter().map(|of| ByTerminal::new(of, grammar)).collect(),
            forest_limit: MAX_FOREST,
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
            Kind::Adapted(number) => &self.productions[self.base[number.index()] as usize],
            _ => &self.productions[symbol],
        }
    }

    /// The productions of `symbol` that a yield can have whose first token is `first`, in rule order; others may be among them.
    pub fn productions_from(&self, symbol: u32, first: SymbolId) -> impl Iterator<Item = &Production> {
        let (all, index) = (&self.productions[symbol as usize], &self.by_terminal[symbol as usize]);
        let listed = if index.is_some() { &[][..] } else { &all[..] };
        let found = index.iter().flat_map(move |index| index.positions(first));
        listed.iter().chain(found.map(|at| &all[at as usize]))
    }

    /// Whether a yield of `symbol` can be `tokens` as far as its length, first and last token tell.
    #[inline]
    pub fn admits(&self, symbol: u32, tokens: &[SymbolId]) -> bool {
        let symbol = symbol as usize;
        let n = tokens.len() as u32;
        self.min_length[symbol] <= n
            && n <= self.max_length[symbol]
            && self.sets.contains(self.first[symbol], tokens[0])
            && self.sets.contains(self.last[symbol], tokens[tokens.len() - 1])
    }

    /// For every symbol, the children of its productions that `keep` lets through, by rules.
    fn edges(&self, keep: impl Fn(&Production) -> bool) -> Vec<Vec<u32>> {
        let children = |symbol| {
            let kept = self.through_rules(symbol).iter().filter(|production| keep(production));
            kept.flat_map(|production| std::iter::once(production.left).chain(production.right)).collect()
        };
        (0..self.n_symbols()).map(children).collect()
    }

    /// Ranks, children first; unary chains have no cycles in a checked grammar.
    fn find_ranks(&mut self) {
        let mut edges = self.edges(|production| production.right.is_none());
        for (kind, edges) in self.kinds.iter().zip(&mut edges) {
            if let Kind::Adapted(number) = *kind {
                *edges = vec![self.base[number.index()]]; // A → A°
            }
        }
        for symbol in components(&edges).into_iter().flatten() {
            let children = edges[symbol as usize].iter();
            let above = children.map(|&child| self.rank[child as usize] + 1).max();
            self.rank[symbol as usize] = above.unwrap_or(0);
        }
        self.n_ranks += self.rank.iter().copied().max().unwrap_or(0) as usize;
    }

    fn find_strings(&mut self) {
        // Symbols of a component that reach a string at all reach it alike.
        let edges = self.edges(|_| true);
        for component in components(&edges) {
            let mut reached =
                component.iter().chain(component.iter().flat_map(|&node| &edges[node as usize]));
            let meets = reached.any(|&symbol| self.meets_strings[symbol as usize]);
            component.iter().for_each(|&symbol| self.meets_strings[symbol as usize] = meets);
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
        self.find_longest();
        self.find_shortest();
    }

    /// Once round a cycle makes a yield longer, since there are no unary ones.
    fn find_longest(&mut self) {
        let edges = self.edges(|_| true);
        for component in components(&edges) {
            for &symbol in &component {
                let longest = |symbol: u32| self.max_length[symbol as usize];
                let of_rule = |p: &Production| longest(p.left).saturating_add(p.right.map_or(0, longest));
                let rules = self.through_rules(symbol as usize).iter();
                let max = rules.map(of_rule).fold(longest(symbol), u32::max);
                self.max_length[symbol as usize] = if is_cyclic(&component, &edges) { u32::MAX } else { max };
            }
        }
    }

    /// Shortest first: a yield of a rule is no shorter than those of its children (Knuth 1977).
    fn find_shortest(&mut self) {
        let rules: Vec<(usize, Production)> = (0..self.n_symbols())
            .flat_map(|symbol| self.through_rules(symbol).iter().map(move |&production| (symbol, production)))
            .collect();
        let children = |production: Production| std::iter::once(production.left).chain(production.right);
        let mut used_in: Vec<Vec<usize>> = vec![Vec::new(); self.n_symbols()];
        let mut waits_for: Vec<usize> = Vec::with_capacity(rules.len());
        for (number, &(_, production)) in rules.iter().enumerate() {
            children(production).for_each(|child| used_in[child as usize].push(number));
            waits_for.push(children(production).count());
        }
        let known = (0..self.n_symbols()).filter(|&symbol| self.min_length[symbol] < u32::MAX);
        let mut open: BinaryHeap<Reverse<(u32, usize)>> =
            known.map(|symbol| Reverse((self.min_length[symbol], symbol))).collect();
        let mut is_final = vec![false; self.n_symbols()];
        while let Some(Reverse((length, symbol))) = open.pop() {
            if std::mem::replace(&mut is_final[symbol], true) {
                continue;
            }
            self.min_length[symbol] = length;
            for &number in &used_in[symbol] {
                waits_for[number] -= 1;
                let (parent, production) = rules[number];
                if waits_for[number] == 0 {
                    let lengths = children(production).map(|child| self.min_length[child as usize]);
                    open.push(Reverse((lengths.fold(0, u32::saturating_add), parent)));
                }
            }
        }
    }
}

/// A set of terminals.
#[derive(Clone, Copy)]
enum Ends {
    /// One terminal.
    One(SymbolId),
    /// A stretch of [`TerminalSets::few`].
    Few { start: u32, len: u32 },
    /// A row of [`TerminalSets`].
    Row(u32),
}

/// Symbols of a grammar beyond which sets of few terminals are lists: a bit for each symbol would be more to read.
const MANY_SYMBOLS: usize = 1 << 12;
/// Terminals of the longest list.
const FEW: usize = 32;

/// Sets of terminals that have several, each for all symbols that share it.
struct TerminalSets {
    n_symbols: usize,
    /// Most terminals of a list.
    most: usize,
    /// Lists of terminals, each sorted.
    few: Vec<SymbolId>,
    /// `[n_sets, n_words]`: a bit for each symbol.
    words: Vec<u64>,
    /// `[n_sets]`: elements.
    sizes: Vec<u64>,
}

impl TerminalSets {
    fn new(n_symbols: usize, most: usize) -> TerminalSets {
        TerminalSets { n_symbols, most, few: Vec::new(), words: Vec::new(), sizes: Vec::new() }
    }

    fn n_words(&self) -> usize {
        self.n_symbols.div_ceil(64)
    }

    /// By symbol of the grammar, the terminals at that end of its yields at which `end` of a right-hand side stands.
    fn of_yields(&mut self, grammar: &Grammar, end: impl Fn(&[SymbolId]) -> SymbolId) -> Vec<Ends> {
        let n = self.n_symbols;
        let mut ends: Vec<Ends> = (0..n as u32).map(|symbol| Ends::One(SymbolId(symbol))).collect();
        let mut edges = vec![Vec::new(); n];
        for rule in &grammar.rules {
            edges[rule.parent.index()].push(end(&rule.children).0);
        }
        let mut is_full = vec![false; n];
        grammar.substring_rules().for_each(|rule| is_full[grammar.rule(rule).parent.index()] = true);
        let mut set = vec![0; self.n_words()];
        // Symbols of a component have the same ends.
        for component in components(&edges) {
            stop::check();
            if !grammar.is_nonterminal(SymbolId(component[0])) {
                continue;
            }
            let full = component.iter().any(|&symbol| is_full[symbol as usize]);
            let mut inside = component.clone();
            inside.sort_unstable();
            let children = component.iter().flat_map(|&symbol| &edges[symbol as usize]);
            let children = children.filter(|child| inside.binary_search(child).is_err());
            if !full && let Some(few) = self.add_few(children.clone().map(|&child| ends[child as usize])) {
                component.iter().for_each(|&symbol| ends[symbol as usize] = few);
                continue;
            }
            set.fill(if full { u64::MAX } else { 0 });
            for &child in children {
                match ends[child as usize] {
                    Ends::One(SymbolId(terminal)) => set[terminal as usize / 64] |= 1 << (terminal % 64),
                    Ends::Few { start, len } => {
                        for &SymbolId(terminal) in self.list(start, len) {
                            set[terminal as usize / 64] |= 1 << (terminal % 64);
                        }
                    }
                    Ends::Row(row) => {
                        set.iter_mut().zip(self.row(row)).for_each(|(word, other)| *word |= other);
                    }
                }
            }
            let found = self.add(&set);
            component.iter().for_each(|&symbol| ends[symbol as usize] = found);
        }
        ends
    }

    /// The union of sets, if it is small enough for a list.
    fn add_few(&mut self, sets: impl Iterator<Item = Ends>) -> Option<Ends> {
        let mut all: Vec<SymbolId> = Vec::new();
        for ends in sets {
            match ends {
                Ends::One(terminal) => all.push(terminal),
                Ends::Few { start, len } => all.extend_from_slice(self.list(start, len)),
                Ends::Row(_) => return None,
            }
            if all.len() > 2 * self.most {
                all.sort_unstable();
                all.dedup();
            }
            if all.len() > 2 * self.most {
                return None;
            }
        }
        all.sort_unstable();
        all.dedup();
        match all[..] {
            [only] => Some(Ends::One(only)),
            ref several if several.len() <= self.most => {
                let start = self.few.len() as u32;
                self.few.extend_from_slice(several);
                Some(Ends::Few { start, len: several.len() as u32 })
            }
            _ => None,
        }
    }

    fn list(&self, start: u32, len: u32) -> &[SymbolId] {
        &self.few[start as usize..][..len as usize]
    }

    fn add(&mut self, set: &[u64]) -> Ends {
        let size = set.iter().map(|word| u64::from(word.count_ones())).sum();
        if let (1, Some(at)) = (size, set.iter().position(|&word| word != 0)) {
            return Ends::One(SymbolId(64 * at as u32 + set[at].trailing_zeros()));
        }
        self.words.extend_from_slice(set);
        self.sizes.push(size);
        Ends::Row(self.sizes.len() as u32 - 1)
    }

    fn row(&self, row: u32) -> &[u64] {
        &self.words[row as usize * self.n_words()..][..self.n_words()]
    }

    #[inline]
    fn contains(&self, ends: Ends, terminal: SymbolId) -> bool {
        match ends {
            Ends::One(only) => only == terminal,
            Ends::Few { start, len } => self.list(start, len).binary_search(&terminal).is_ok(),
            Ends::Row(row) => {
                let word = self.words[row as usize * self.n_words() + terminal.index() / 64];
                word >> (terminal.index() % 64) & 1 == 1
            }
        }
    }

    fn len(&self, ends: Ends) -> u64 {
        match ends {
            Ends::One(_) => 1,
            Ends::Few { len, .. } => len.into(),
            Ends::Row(row) => self.sizes[row as usize],
        }
    }

    /// Its element, if it has one only.
    fn only(&self, ends: Ends) -> Option<SymbolId> {
        match ends {
            Ends::One(only) => Some(only),
            Ends::Few { .. } | Ends::Row(_) => None,
        }
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

    /// Law: the productions found by the first terminal are those that begin with it or with a nonterminal, in rule order.
    #[test]
    fn productions_by_first_terminal_are_those_that_can_match() {
        for n_terminals in [3_u32, 70, 400] {
            let rule = |at: u32| match at % 7 {
                0 => "1 1 S --> S A\n".replace('A', &format!("A{}", at % 3)),
                1..4 => format!("1 1 S --> t{} S\n", at * 5 % n_terminals),
                _ => format!("1 1 S --> t{} t{at}\n", at * 3 % n_terminals),
            };
            let lexicon = (0..n_terminals).map(|at| format!("1 1 S --> t{at}\n1 1 A{} --> t{at}\n", at % 3));
            let all: String = lexicon.zip((0..).map(rule)).flat_map(<[String; 2]>::from).collect();
            let text = format!("1 1 S --> A0 A1\n1 1 S --> A2 S\n{all}");
            let (grammar, _) = syntax::parse(&text, "g").unwrap();
            let binary = BinaryGrammar::new(&grammar);
            assert_eq!(binary.by_terminal[0].is_some(), n_terminals > 3);
            for first in (grammar.n_nonterminals..grammar.symbols.len() as u32).map(SymbolId) {
                let can_match = |p: &&Production| {
                    p.left < grammar.n_nonterminals || p.left == first.0 || n_terminals == 3
                };
                let expected = binary.productions[0].iter().filter(can_match).map(|p| p.param);
                assert!(binary.productions_from(0, first).map(|p| p.param).eq(expected), "{first:?}");
            }
        }
    }

    /// Law: a set has the same terminals whether it is a list or bits.
    #[test]
    fn lists_and_bits_are_the_same_sets() {
        for seed in 0..200_u64 {
            let pick = |at: u64, n: u64| ((seed * 31 + at).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32) % n;
            let mut text = String::new();
            for parent in 0..6 {
                text += &format!("1 1 A{parent} --> t{parent}\n");
                for rule in 0..pick(parent, 4) % 4 {
                    let name = |at: u64| match pick(at, 12) % 12 {
                        child @ 0..6 => format!("A{child}"),
                        other => format!("t{other}"),
                    };
                    let at = 100 * parent + 10 * rule;
                    text += &format!("1 1 A{parent} --> {} x{parent}{rule} {}\n", name(at), name(at + 1));
                }
                if parent < 5 {
                    text += &format!("1 1 A{parent} --> A{} u{parent}\n", parent + 1);
                }
            }
            let grammar = syntax::parse(&text, "g").unwrap().0;
            let n = grammar.symbols.len();
            for end in
                [|children: &[SymbolId]| children[0], |children: &[SymbolId]| children[children.len() - 1]]
            {
                let (mut bits, mut lists) = (TerminalSets::new(n, 0), TerminalSets::new(n, 3));
                let (of_bits, of_lists) = (bits.of_yields(&grammar, end), lists.of_yields(&grammar, end));
                for (bit, list) in of_bits.into_iter().zip(of_lists) {
                    assert_eq!(
                        (bits.len(bit), bits.only(bit)),
                        (lists.len(list), lists.only(list)),
                        "{text}"
                    );
                    for terminal in (0..n as u32).map(SymbolId) {
                        assert_eq!(bits.contains(bit, terminal), lists.contains(list, terminal), "{text}");
                    }
                }
                assert!(!lists.few.is_empty() || !bits.sizes.iter().any(|&size| size <= 3), "{text}");
            }
        }
    }

    /// Law: preparing a grammar takes time linear in its size, however deep its rules and long its right-hand sides.
    #[test]
    fn depth_costs_no_more_than_size() {
        let n = 20_000;
        let chain = |rule: &dyn Fn(usize) -> String| -> String { (0..n).map(rule).collect() };
        let last = format!("1 1 C{n} --> a\n1 1 C{n} --> b\n");
        let unary = chain(&|at| format!("1 1 C{at} --> C{}\n", at + 1)) + &last;
        let binary = BinaryGrammar::new(&syntax::parse(&unary, "g").unwrap().0);
        assert_eq!((binary.n_ranks(), binary.rank[0], binary.max_length[0]), (n + 2, n as u32 + 1, 1));
        let branching = chain(&|at| format!("1 1 C{at} --> C{0} C{0}\n", at + 1)) + &last;
        let binary = BinaryGrammar::new(&syntax::parse(&branching, "g").unwrap().0);
        assert_eq!((binary.min_length[0], binary.min_length[n - 3]), (u32::MAX, 8));
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
