//! Builds the forest of one item: a context-free grammar with stick strings over a sequence of tokens.
//!
//! First goals (a symbol over a span) are opened from the root downwards, each with all its candidate edges. Then
//! they are closed in order of span length, which keeps those that derive their span; what the root does not reach
//! through these is dropped. So a right-recursive list opens only the suffixes of its span, and the forest holds only
//! what is part of a derivation.

mod brackets;

use rustc_hash::FxHashMap;

use self::brackets::{Brackets, Lacking};
use super::binary::{Adapted, BinaryGrammar, Kind};
use super::strings::StringIndex;
use super::turn::{LARGE, Turn};
use super::{Edge, Forest, Label, TooAmbiguous, bytes};
use crate::data::Bracket;
use crate::grammar::{ParamId, StickId, SymbolId};
use crate::stop::{self, Meter, checked};

/// Symbols of a sentence beyond which [`Builder::build_for_chain`] limits its adapted constituents,
pub const LONG_SENTENCE: usize = 128;
/// to that many symbols.
pub const LONG_YIELD: u32 = 64;

/// Places where a sentence of so many symbols can have a constituent of two parts, and where it can have a word: the number of edges of its
/// chart is proportional to one of them, or between.
pub fn places(n_symbols: usize) -> [f64; 2] {
    let n = n_symbols as f64;
    let longest = if n_symbols > LONG_SENTENCE { LONG_YIELD.into() } else { n };
    // Of the starts, lengths and places to cut; in a short sentence not every start has every length.
    let (constituents, words) = (n * longest * longest / 2.0, n * longest);
    if n_symbols > LONG_SENTENCE { [constituents, words] } else { [constituents / 3.0, words / 2.0] }
}

/// Builds forests, reusing its scratch memory from item to item.
pub struct Builder<'a> {
    binary: &'a BinaryGrammar,
    strings: &'a StringIndex,
    adapted: Adapted,
    /// Longest yield of an adapted nonterminal through its rules.
    max_yield: u32,
    found: Vec<Found>,
    /// `[n_tokens + 1]`: the strings found at token `i` are `found[first_found[i]..first_found[i + 1]]`.
    first_found: Vec<u32>,
    /// Tokens and where they end, sorted.
    ends: Vec<(SymbolId, u32)>,
    goals: Vec<Goal>,
    /// `[n_goals]`, or empty without labelled brackets: what a goal's derivations have to have below it, over the same span.
    lacking: Vec<Lacking>,
    open: Vec<GoalId>,
    known: Known,
    brackets: Brackets,
    candidates: Vec<Edge>,
    /// Goals in the order in which they are closed.
    order: Vec<GoalId>,
    /// Goals by rank.
    by_rank: Vec<GoalId>,
    /// `[n_keys]`: scratch of [`count_sort`].
    places: Vec<u32>,
    /// `[n_goals]`: the node of a goal; see [`UNPRODUCTIVE`], [`UNREACHED`] and [`REACHED`] before it has one.
    nodes: Vec<u32>,
    forest: Forest,
    meter: Meter,
    /// While the forest is large. The last field: its memory is returned before the turn is.
    turn: Option<Turn>,
}

/// A stick string that occurs in the item.
struct Found {
    stick: StickId,
    end: u32,
    param: ParamId,
}

/// A symbol over a span, and its candidate edges, whose tails are goals.
struct Goal {
    label: Label,
    edges: (u32, u32),
}

/// Index into [`Builder::goals`].
#[derive(Clone, Copy, PartialEq, Eq)]
struct GoalId(u32);

impl GoalId {
    /// Stands for the empty derivation.
    const EMPTY: GoalId = GoalId(u32::MAX);

    fn index(self) -> usize {
        self.0 as usize
    }
}

/// Stands in place of a node: a goal without a derivation.
const UNPRODUCTIVE: u32 = u32::MAX;
/// A goal with a derivation that is not known to be part of one of the root.
const UNREACHED: u32 = u32::MAX - 1;
/// A goal that is part of a derivation of the root.
const REACHED: u32 = u32::MAX - 2;

/// Goals by their labels and by what they lack: in a table with a place for each symbol and span, or in a map where that would be too large.
#[derive(Default)]
struct Known {
    /// [`GoalId::EMPTY`] where there is none.
    table: Vec<GoalId>,
    map: FxHashMap<u64, GoalId>,
    n_symbols: u64,
    /// Positions between tokens.
    n_positions: u64,
    uses_table: bool,
}

/// Places of the largest table, 4 MiB.
const MAX_TABLE: u64 = 1 << 20;

impl Known {
    /// Forgets `goals`, which are all that are known, with what they lack, and makes room for those of another item, which lack one of `n_lacking` sets.
    fn clear(
        &mut self,
        goals: &[Goal],
        lacking: &[Lacking],
        n_symbols: usize,
        n_tokens: usize,
        n_lacking: u64,
    ) {
        if self.uses_table {
            for (at, goal) in goals.iter().enumerate() {
                let place = self.place(goal.label, lacking.get(at).copied().unwrap_or_default());
                self.table[place as usize] = GoalId::EMPTY;
            }
        }
        self.map.clear();
        (self.n_symbols, self.n_positions) = (n_symbols as u64, n_tokens as u64 + 1);
        let n_places = n_lacking * self.n_symbols * self.n_positions * self.n_positions;
        self.uses_table = n_places <= MAX_TABLE;
        if self.uses_table && self.table.len() < n_places as usize {
            self.table.resize(n_places as usize, GoalId::EMPTY);
        }
    }

    fn place(&self, label: Label, lacking: Lacking) -> u64 {
        let Label { symbol, start, end } = label;
        let symbol = u64::from(lacking) * self.n_symbols + u64::from(symbol);
        (symbol * self.n_positions + u64::from(start)) * self.n_positions + u64::from(end)
    }

    /// The goal of that label that lacks these brackets: `fresh` if there is none yet.
    fn get_or_insert(&mut self, label: Label, lacking: Lacking, fresh: GoalId) -> GoalId {
        let place = self.place(label, lacking);
        if !self.uses_table {
            return *self.map.entry(place).or_insert(fresh);
        }
        let goal = &mut self.table[place as usize];
        if *goal == GoalId::EMPTY {
            *goal = fresh;
        }
        *goal
    }
}

impl<'a> Builder<'a> {
    /// A builder for sentences (`Adapted::Strings` or `Adapted::Rules`) and for stick strings.
    pub fn new(binary: &'a BinaryGrammar, strings: &'a StringIndex, adapted: Adapted) -> Builder<'a> {
        Builder {
            binary,
            strings,
            adapted,
            max_yield: u32::MAX,
            found: Vec::new(),
            first_found: Vec::new(),
            ends: Vec::new(),
            goals: Vec::new(),
            lacking: Vec::new(),
            open: Vec::new(),
            known: Known::default(),
            brackets: Brackets::default(),
            candidates: Vec::new(),
            order: Vec::new(),
            by_rank: Vec::new(),
            places: Vec::new(),
            nodes: Vec::new(),
            forest: Forest::default(),
            meter: Meter::default(),
            turn: None,
        }
    }

    /// A builder whose adapted nonterminals also expand through their rules; that costs the escape of their stick.
    pub fn open(binary: &'a BinaryGrammar, strings: &'a StringIndex) -> Builder<'a> {
        Builder::new(binary, strings, Adapted::Open)
    }

    /// Lets adapted nonterminals expand through their rules to at most `max_yield` tokens, which bounds the cost of long
    /// sentences.
    pub fn with_max_yield(self, max_yield: u32) -> Builder<'a> {
        Builder { max_yield, ..self }
    }

    /// All derivations of `tokens` from `root` (a symbol of the binary grammar; A° for a string of A's stick).
    /// `None` if there are none.
    ///
    /// # Errors
    /// [`TooAmbiguous`] beyond the limit of the process ([`super::Prepared::with_forest_limit`]), before more are in memory.
    pub fn build(&mut self, root: u32, tokens: &[SymbolId]) -> Result<Option<Forest>, TooAmbiguous> {
        Ok(self.build_here(root, tokens)?.cloned())
    }

    /// Builds a forest as [`Builder::build`] does, in memory that the next call uses again.
    ///
    /// # Errors
    /// [`Builder::build`] that returns a reference to the builder's own forest.
    pub fn build_here(&mut self, root: u32, tokens: &[SymbolId]) -> Result<Option<&Forest>, TooAmbiguous> {
        self.build_within(root, tokens, &[])
    }

    /// Builds a forest as [`Builder::build_here`] does, of the derivations whose constituents agree with `brackets`; those inside of stick strings are
    /// not looked at.
    ///
    /// # Errors
    /// [`Builder::build`].
    pub fn build_within(
        &mut self,
        root: u32,
        tokens: &[SymbolId],
        brackets: &[Bracket],
    ) -> Result<Option<&Forest>, TooAmbiguous> {
        stop::check();
        if self.turn.is_some() {
            // What the large forest took is returned, and then its turn.
            *self = Builder::new(self.binary, self.strings, self.adapted).with_max_yield(self.max_yield);
        }
        self.brackets.set(brackets, tokens.len());
        self.find_strings(root, tokens);
        self.ends.clear();
        self.ends.extend(tokens.iter().copied().zip(1..));
        self.ends.sort_unstable();
        let n_symbols = self.binary.n_symbols();
        self.known.clear(&self.goals, &self.lacking, n_symbols, tokens.len(), self.brackets.n_lacking());
        self.goals.clear();
        self.lacking.clear();
        // Left by a sentence that was refused.
        self.open.clear();
        self.candidates.clear();
        let lacking = self.brackets.required(0, tokens.len());
        if tokens.is_empty()
            || self.goal(root, 0, tokens.len(), lacking, tokens).is_none_or(|goal| goal == GoalId::EMPTY)
        {
            return Ok(None);
        }
        while let Some(goal) = self.open.pop() {
            let first = self.candidates.len() as u32;
            let lacking = self.lacking.get(goal.index()).copied().unwrap_or_default();
            self.expand(self.goals[goal.index()].label, lacking, tokens)?;
            self.goals[goal.index()].edges = (first, self.candidates.len() as u32);
        }
        Ok(self.close(tokens.len()).then_some(&self.forest))
    }

    /// Builds the forest of a sentence of a chain: as [`Builder::build_within`] does, but in one of more than [`LONG_SENTENCE`] symbols adapted
    /// nonterminals expand through their rules to at most [`LONG_YIELD`] of them, unless it then has no derivation. So the forest of a long
    /// sentence is as large as its length, and not as the cube of it.
    ///
    /// # Errors
    /// [`Builder::build`].
    pub fn build_for_chain(
        &mut self,
        root: u32,
        tokens: &[SymbolId],
        brackets: &[Bracket],
    ) -> Result<Option<&Forest>, TooAmbiguous> {
        if tokens.len() > LONG_SENTENCE {
            let max_yield = std::mem::replace(&mut self.max_yield, LONG_YIELD);
            let is_derived = self.build_within(root, tokens, brackets).map(|forest| forest.is_some());
            self.max_yield = max_yield;
            if is_derived? {
                return Ok(Some(&self.forest));
            }
        }
        self.build_within(root, tokens, brackets)
    }

    /// Whether an adapted nonterminal over that span may expand through its rules.
    fn uses_rules(&self, start: usize, end: usize) -> bool {
        self.adapted != Adapted::Strings && (end - start) as u32 <= self.max_yield
    }

    /// Returns the stick of a symbol that can only be one of its strings, over every span.
    fn only_strings(&self, symbol: u32) -> Option<StickId> {
        match self.binary.kinds[symbol as usize] {
            Kind::Adapted(stick) if self.adapted == Adapted::Strings => Some(stick),
            Kind::Substrings(stick) if self.adapted != Adapted::Open => Some(stick),
            _ => None,
        }
    }

    fn find_strings(&mut self, root: u32, tokens: &[SymbolId]) {
        self.found.clear();
        self.first_found.clear();
        self.first_found.push(0);
        let finds = (self.adapted != Adapted::Rules || self.binary.base.is_empty())
            && self.binary.meets_strings[root as usize];
        for start in checked(0..tokens.len()) {
            if finds {
                let found = &mut self.found;
                self.strings.matches(tokens, start, |stick, end, param| {
                    found.push(Found { stick, end: end as u32, param });
                });
            }
            self.first_found.push(self.found.len() as u32);
        }
    }

    fn found_at(&self, start: usize) -> std::ops::Range<usize> {
        self.first_found[start] as usize..self.first_found[start + 1] as usize
    }

    fn string(&self, stick: StickId, start: usize, end: usize) -> Option<ParamId> {
        let found = &self.found[self.found_at(start)];
        found.iter().find(|f| f.stick == stick && f.end == end as u32).map(|f| f.param)
    }

    /// The goal of `symbol` over `[start, end)`, opened if it is new; [`GoalId::EMPTY`] for a terminal that matches. `None` if
    /// a glance tells that it has no derivation. `lacking`: the labelled brackets of that span that no constituent above it has.
    fn goal(
        &mut self,
        symbol: u32,
        start: usize,
        end: usize,
        mut lacking: Lacking,
        tokens: &[SymbolId],
    ) -> Option<GoalId> {
        if let Some(printed) = self.binary.printed[symbol as usize]
            && self.binary.kinds[symbol as usize] != Kind::Terminal
        {
            if !self.brackets.allow(start, end) {
                return None;
            }
            lacking = self.brackets.without(lacking, printed, start, end);
        }
        match self.binary.kinds[symbol as usize] {
            Kind::Terminal => {
                let matches = lacking == 0 && end == start + 1 && tokens[start].0 == symbol;
                return matches.then_some(GoalId::EMPTY);
            }
            // Without its rules, it has to be a string.
            Kind::Adapted(stick) if !self.uses_rules(start, end) => {
                self.string(stick, start, end)?;
            }
            Kind::Substrings(stick) if self.adapted != Adapted::Open => {
                self.string(stick, start, end)?;
            }
            _ => {
                if !self.binary.admits(symbol, &tokens[start..end]) {
                    return None;
                }
            }
        }
        let label = Label { symbol, start: start as u32, end: end as u32 };
        let fresh = GoalId(self.goals.len() as u32);
        let goal = self.known.get_or_insert(label, lacking, fresh);
        if goal == fresh {
            self.goals.push(Goal { label, edges: (0, 0) });
            if self.brackets.are_labelled() {
                self.lacking.push(lacking);
            }
            self.open.push(goal);
        }
        Some(goal)
    }

    /// Pushes the candidate edges of a goal that lacks these brackets.
    fn expand(&mut self, label: Label, lacking: Lacking, tokens: &[SymbolId]) -> Result<(), TooAmbiguous> {
        let (start, end) = (label.start as usize, label.end as usize);
        let may_be_string = lacking == 0 && self.brackets.allow_no_constituents(start, end);
        if let Kind::Adapted(stick) = self.binary.kinds[label.symbol as usize] {
            if let Some(param) = self.string(stick, start, end).filter(|_| may_be_string) {
                self.candidates.push(Edge { param: param.0, tails: [GoalId::EMPTY.0; 2] });
            }
            if !self.uses_rules(start, end) {
                return Ok(());
            }
            let param = match self.adapted {
                Adapted::Open => self.strings.space().escape(stick).0,
                Adapted::Strings | Adapted::Rules => ParamId::ONE.0,
            };
            let base = self.binary.base[stick.index()];
            if let Some(goal) = self.goal(base, start, end, lacking, tokens) {
                self.candidates.push(Edge { param, tails: [goal.0, GoalId::EMPTY.0] });
            }
            return Ok(());
        }
        if let Kind::Substrings(stick) = self.binary.kinds[label.symbol as usize] {
            let known = self.string(stick, start, end);
            let param = known.map_or(self.strings.space().escape(stick).0, |param| param.0);
            if may_be_string {
                self.candidates.push(Edge { param, tails: [GoalId::EMPTY.0; 2] });
            }
            return Ok(());
        }
        let binary = self.binary;
        for production in binary.productions_from(label.symbol, tokens[start]) {
            self.meter.add(1);
            // A production has an edge for each place between two symbols, so that few are found beyond the limit.
            let bytes = bytes(self.candidates.len() + self.found.len(), self.goals.len());
            if bytes > binary.forest_limit {
                return Err(TooAmbiguous { n_tokens: tokens.len(), limit: binary.forest_limit });
            }
            if bytes > LARGE && self.turn.is_none() {
                self.turn = Some(Turn::take());
            }
            let (param, left) = (production.param.0, production.left);
            let Some(right) = production.right else {
                if let Some(goal) = self.goal(left, start, end, lacking, tokens) {
                    self.candidates.push(Edge { param, tails: [goal.0, GoalId::EMPTY.0] });
                }
                continue;
            };
            if lacking != 0 {
                continue;
            }
            match self.only_strings(left) {
                Some(stick) => {
                    for at in self.found_at(start) {
                        let (found, split) = (self.found[at].stick, self.found[at].end as usize);
                        if found == stick && split < end {
                            self.split(param, left, right, start, split, end, tokens);
                        }
                    }
                }
                None => {
                    let shortest = start + binary.min_length[left as usize] as usize;
                    let longest = binary.max_length[left as usize].min((end - start - 1) as u32) as usize;
                    let Some(terminal) = binary.ends_in[left as usize] else {
                        for split in shortest..=start + longest {
                            self.split(param, left, right, start, split, end, tokens);
                        }
                        continue;
                    };
                    let first = self.ends.partition_point(|&place| place < (terminal, shortest as u32));
                    for at in first..self.ends.len() {
                        let (token, split) = (self.ends[at].0, self.ends[at].1 as usize);
                        if token != terminal || split > start + longest {
                            break;
                        }
                        self.split(param, left, right, start, split, end, tokens);
                    }
                }
            }
        }
        Ok(())
    }

    #[expect(clippy::too_many_arguments, reason = "one edge: its parameter, two symbols, three positions")]
    fn split(
        &mut self,
        param: u32,
        left: u32,
        right: u32,
        i: usize,
        k: usize,
        j: usize,
        tokens: &[SymbolId],
    ) {
        self.meter.add(1);
        if !self.brackets.allow_split(i, k, j) {
            return;
        }
        let admits = |symbol: u32, span: &[SymbolId]| {
            self.only_strings(symbol).is_some() || self.binary.admits(symbol, span)
        };
        if !admits(left, &tokens[i..k]) || !admits(right, &tokens[k..j]) {
            return;
        }
        if let Some(left) = self.goal(left, i, k, self.brackets.required(i, k), tokens)
            && let Some(right) = self.goal(right, k, j, self.brackets.required(k, j), tokens)
        {
            self.candidates.push(Edge { param, tails: [left.0, right.0] });
        }
    }

    /// Puts the goals in order of length, then of rank, then of number.
    fn sort(&mut self, n_tokens: usize) {
        let Builder { binary, goals, order, by_rank, places, .. } = self;
        let label = |goal: GoalId| goals[goal.index()].label;
        let rank = |goal| binary.rank[label(goal).symbol as usize] as usize;
        let length = |goal| (label(goal).end - label(goal).start) as usize;
        by_rank.clear();
        by_rank.resize(goals.len(), GoalId::EMPTY);
        count_sort((0..goals.len() as u32).map(GoalId), by_rank, binary.n_ranks(), places, rank);
        stop::check();
        order.clear();
        order.resize(goals.len(), GoalId::EMPTY);
        count_sort(by_rank.iter().copied(), order, n_tokens + 1, places, length);
    }

    /// Makes a forest of the goals that derive their span and that the root (goal 0) reaches; whether there is one.
    fn close(&mut self, n_tokens: usize) -> bool {
        self.sort(n_tokens);
        let Builder { goals, candidates, order, nodes, forest, meter, .. } = self;
        let edges = |goal: GoalId| {
            let (first, end) = goals[goal.index()].edges;
            &candidates[first as usize..end as usize]
        };
        let derives = |edge: &Edge, nodes: &[u32]| {
            edge.tails.iter().all(|&tail| tail == GoalId::EMPTY.0 || nodes[tail as usize] != UNPRODUCTIVE)
        };
        nodes.clear();
        nodes.resize(goals.len(), UNPRODUCTIVE);
        for &goal in order.iter() {
            meter.add(1 + edges(goal).len());
            if edges(goal).iter().any(|edge| derives(edge, nodes)) {
                nodes[goal.index()] = UNREACHED;
            }
        }
        if nodes[0] == UNPRODUCTIVE {
            return false;
        }
        nodes[0] = REACHED;
        for &goal in order.iter().rev() {
            if nodes[goal.index()] == REACHED {
                meter.add(1 + edges(goal).len());
                for edge in edges(goal) {
                    if derives(edge, nodes) {
                        for &tail in edge.tails.iter().filter(|&&tail| tail != GoalId::EMPTY.0) {
                            nodes[tail as usize] = REACHED;
                        }
                    }
                }
            }
        }
        forest.clear();
        forest.labels.push(Label::NONE);
        for &goal in order.iter() {
            if nodes[goal.index()] == REACHED {
                meter.add(1 + edges(goal).len());
                for edge in edges(goal).iter().filter(|edge| derives(edge, nodes)) {
                    let tails =
                        edge.tails.map(|tail| if tail == GoalId::EMPTY.0 { 0 } else { nodes[tail as usize] });
                    forest.edges.push(Edge { param: edge.param, tails });
                }
                nodes[goal.index()] = forest.n_nodes() as u32;
                forest.end_node();
                forest.labels.push(goals[goal.index()].label);
            }
        }
        true
    }
}

/// Puts `items` into `sorted` by a key below `n_keys`; equal keys keep their order.
fn count_sort(
    items: impl Iterator<Item = GoalId> + Clone,
    sorted: &mut [GoalId],
    n_keys: usize,
    places: &mut Vec<u32>,
    key: impl Fn(GoalId) -> usize,
) {
    places.clear();
    places.resize(n_keys, 0);
    items.clone().for_each(|item| places[key(item)] += 1);
    let mut before = 0;
    for place in places.iter_mut() {
        (*place, before) = (before, before + *place);
    }
    for item in items {
        let place = &mut places[key(item)];
        sorted[*place as usize] = item;
        *place += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::forest::Prepared;
    use crate::grammar::lexicon::Lexicon;
    use crate::grammar::syntax;

    /// Law: a sentence has a forest within the limit, or is refused as soon as it is reached.
    #[test]
    fn sentences_with_too_many_derivations_are_refused() {
        let (grammar, _) = syntax::parse("1 1 S --> S S\n1 1 S --> a\n", "test").unwrap();
        let token = grammar.symbol("a").unwrap();
        let prepared = || Prepared::new(grammar.clone(), Lexicon::default());
        let (n_edges, n_spans) = (30 + 30 * 29 * 31 / 6, 30 * 31 / 2);
        let build = |limit, n_tokens| {
            let prepared = prepared().with_forest_limit(limit);
            let mut builder = prepared.builder(false);
            builder.build(0, &vec![token; n_tokens]).map(|forest| forest.map(|forest| forest.edges.len()))
        };
        assert_eq!(build(bytes(n_edges, n_spans), 30), Ok(Some(n_edges)));
        let limit = bytes(n_edges, n_spans) / 2;
        for n_tokens in [30, 3_000] {
            assert_eq!(build(limit, n_tokens), Err(TooAmbiguous { n_tokens, limit }));
        }
    }

    /// Law: the forest of a long sentence of a chain has the derivations of the whole forest without long constituents of adapted nonterminals;
    /// that of a short one, and of one without such derivations, is the whole forest.
    #[test]
    fn a_long_sentence_of_a_chain_has_no_long_adapted_constituents() {
        use crate::num::Wide;
        let of = |rules: &str, n_tokens: usize| {
            let (grammar, _) = syntax::parse(rules, "test").unwrap();
            let tokens = vec![grammar.symbol("a").unwrap(); n_tokens];
            let prepared = Prepared::new(grammar, Lexicon::default());
            let mut builder = Builder::open(&prepared.binary, &prepared.strings);
            let whole = builder.build(0, &tokens).unwrap().unwrap();
            let limited = builder.build_for_chain(0, &tokens, &[]).unwrap().unwrap().clone();
            let is_long = |label: Label| {
                let is_adapted = label != Label::NONE
                    && matches!(prepared.binary.kinds[label.symbol as usize], Kind::Adapted(_));
                is_adapted && label.end - label.start > LONG_YIELD
            };
            let count = |forest: &Forest, leaves_out_long: bool| {
                let mut counts = vec![Wide::ONE];
                for node in 1..forest.n_nodes() {
                    let mut sum = Wide::ZERO;
                    for edge in forest.edges_of(node) {
                        let [left, right] = edge.tails.map(|tail| counts[tail as usize]);
                        sum = sum + left * right;
                    }
                    counts.push(if leaves_out_long && is_long(forest.labels[node]) {
                        Wide::ZERO
                    } else {
                        sum
                    });
                }
                counts[forest.root()]
            };
            let has_long = (1..limited.n_nodes()).any(|node| is_long(limited.labels[node]));
            (whole.edges == limited.edges, has_long, count(&limited, false), count(&whole, true))
        };
        let words = "1 1 Words --> Word\n1 1 Words --> Word Words\nWord --> Letters\n1 1 Letters --> a\n1 1 Letters --> a Letters\n";
        let (is_whole, has_long, found, expected) = of(words, LONG_SENTENCE + 1);
        assert!(!is_whole && !has_long);
        assert_eq!(found, expected);
        assert!(of(words, LONG_SENTENCE).0);
        let one_word = "1 1 Words --> Word\nWord --> Letters\n1 1 Letters --> a\n1 1 Letters --> a Letters\n";
        let (is_whole, has_long, ..) = of(one_word, LONG_SENTENCE + 1);
        assert!(is_whole && has_long);
    }

    /// Bytes of a builder, all that was allocated, but for the table of goals, which is bounded.
    fn allocated(builder: &Builder<'_>) -> usize {
        fn of<T>(list: &Vec<T>) -> usize {
            list.capacity() * size_of::<T>()
        }
        let Builder { found, goals, open, known, candidates, order, by_rank, nodes, forest, .. } = builder;
        // A map has a byte beside each place, of which seven eighths are taken before it grows.
        let map = known.map.capacity() * 8 / 7 * (size_of::<(u64, GoalId)>() + 1);
        let scratch =
            of(found) + of(goals) + of(open) + map + of(candidates) + of(order) + of(by_rank) + of(nodes);
        scratch + of(&forest.first_edge) + of(&forest.edges) + of(&forest.labels)
    }

    proptest::proptest! {
        /// Law: what is allocated for a sentence is at most what its edges and spans are estimated to take.
        #[test]
        fn a_forest_takes_no_more_than_its_estimate(
            rules in proptest::collection::vec((0..4usize, proptest::collection::vec(0..6usize, 1..5)), 2..9),
            sentence in proptest::collection::vec(0..2usize, 1..60),
            folds in proptest::prelude::any::<bool>(),
        ) {
            use crate::forest::chains::Chains;
            use crate::forest::inside::expected_uses;
            use crate::num::Wide;
            const NAMES: [&str; 6] = ["S", "A", "B", "C", "a", "b"];
            let mut text: Vec<String> = (0..4).map(|parent| format!("1 1 {} --> {} a", NAMES[parent], NAMES[(parent + 1) % 4])).collect();
            text.extend((0..4).map(|parent| format!("1 1 {} --> {}", NAMES[parent], NAMES[4 + parent % 2])));
            for (parent, children) in rules {
                let children: Vec<&str> = children.into_iter().map(|child| NAMES[child]).collect();
                text.push(format!("1 1 {} --> a {}", NAMES[parent], children.join(" ")));
            }
            text.push("1 1 S --> S S".to_owned());
            text.sort();
            text.dedup();
            text.sort_by_key(|rule| NAMES.iter().position(|name| rule[4..].starts_with(name)));
            let Ok((grammar, _)) = syntax::parse(&text.join("\n"), "test") else { return Ok(()) };
            let tokens: Vec<SymbolId> = sentence.iter().map(|&at| grammar.symbol(NAMES[4 + at]).unwrap()).collect();
            let n_params = grammar.space().n_params();
            let prepared = Prepared::new(grammar, Lexicon::default());
            let mut builder = prepared.builder(false);
            let forest = builder.build(0, &tokens).unwrap();
            let estimate = bytes(builder.candidates.len() + builder.found.len(), builder.goals.len());
            let mut taken = allocated(&builder);
            if let Some(forest) = forest {
                taken += forest.size();
                if folds {
                    taken += 2 * Chains::default().fold(&forest, n_params as u32).size();
                } else {
                    expected_uses(&forest, &vec![Wide::ONE; n_params]);
                    taken += 2 * 48 * forest.n_nodes();
                }
            }
            // Lists have room for some before there are any.
            proptest::prop_assert!(taken <= estimate + 1024, "{} bytes, {} estimated", taken, estimate);
        }
    }
}
