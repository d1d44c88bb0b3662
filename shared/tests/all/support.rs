//! What the tests of inference share: an enumerator of derivations that reads nothing but the grammar, and a
//! coordinator small enough to read.

pub mod dependencies;
pub mod every_kind;
pub mod reference_fit;
pub mod world;

use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;
use std::sync::atomic::{AtomicUsize, Ordering};

use grammaton::data::generate;
use grammaton::grammar::ParamId;
use grammaton::grammar::lexicon::{Lexicon, StickStrings};
use grammaton::grammar::{Grammar, Rule, StickId, SymbolId, syntax};
use grammaton::models::adaptor::candidates::Ranking;
use grammaton::num::Wide;
use grammaton::train::round::{Totals, in_use};
use grammaton::work::engine::Engine;
use grammaton::work::shard;
use grammaton::work::shard::Shard;
use grammaton::work::task::{Answer, Language, Lengths, Named, Task, Work};

pub fn grammar(text: &str) -> Grammar {
    syntax::parse(text, "g").unwrap_or_else(|error| panic!("{error}\n{text}")).0
}

/// The terminals that are the words of `text`.
pub fn tokens(grammar: &Grammar, text: &str) -> Vec<SymbolId> {
    text.split_whitespace().map(|name| grammar.symbol(name).expect("a symbol of the grammar")).collect()
}

/// Whether `grammar` derives `tokens`: over each span, the set of symbols that derive it, shortest spans first.
pub fn derives(grammar: &Grammar, tokens: &[SymbolId]) -> bool {
    let n = tokens.len();
    let mut chart = vec![vec![vec![false; grammar.symbols.len()]; n + 1]; n];
    for length in 1..=n {
        for start in 0..=n - length {
            let end = start + length;
            if length == 1 {
                chart[start][end][tokens[start].index()] = true;
            }
            // Unary rules may chain, in any order.
            loop {
                let fits = |rule: &&Rule| {
                    !chart[start][end][rule.parent.index()] && covers(&chart, &rule.children, start, end)
                };
                let found: Vec<usize> =
                    grammar.rules.iter().filter(fits).map(|rule| rule.parent.index()).collect();
                if found.is_empty() {
                    break;
                }
                found.into_iter().for_each(|parent| chart[start][end][parent] = true);
            }
        }
    }
    chart[0][n][Grammar::START.index()]
}

fn covers(chart: &[Vec<Vec<bool>>], children: &[SymbolId], start: usize, end: usize) -> bool {
    match children {
        [] => start == end,
        [only] => start < end && chart[start][end][only.index()],
        [first, rest @ ..] => (start + 1..end)
            .any(|middle| chart[start][middle][first.index()] && covers(chart, rest, middle, end)),
    }
}

/// A lexicon of `strings`, (nonterminal, terminals) each, in this order on their sticks.
pub fn lexicon(grammar: &Grammar, strings: &[(&str, &str)]) -> Lexicon {
    let of = |symbol| StickStrings {
        symbol,
        strings: strings
            .iter()
            .filter(|(name, _)| grammar.symbol(name) == Some(symbol))
            .map(|(_, string)| tokens(grammar, string))
            .collect(),
    };
    Lexicon { sticks: grammar.adapted().map(of).collect() }
}

/// The parameter of a string.
pub fn param(grammar: &Grammar, lexicon: &Lexicon, name: &str, string: &str) -> ParamId {
    let wanted = (grammar.symbol(name).unwrap(), tokens(grammar, string));
    let params = (0..lexicon.space(grammar).n_params() as u32).map(ParamId);
    let mut found =
        params.filter(|&param| lexicon.string(grammar, param) == Some((wanted.0, wanted.1.as_slice())));
    found.next().expect("a string of the lexicon")
}

/// How adapted nonterminals expand; as `forest::binary::Adapted`, said once more.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Mode {
    Strings,
    Rules,
    Open,
}

/// One derivation of an item.
#[derive(Clone, Debug, Default)]
pub struct Derivation {
    /// Parameters used, with repeats.
    pub params: Vec<usize>,
    /// Nonterminals and their spans; not the root of a stick string's own derivation, and nothing below strings.
    pub constituents: Vec<(SymbolId, usize, usize)>,
    /// Strings used and where.
    pub strings: Vec<(ParamId, usize, usize)>,
}

impl Derivation {
    fn and(&self, other: &Derivation) -> Derivation {
        let mut both = self.clone();
        both.params.extend(&other.params);
        both.constituents.extend(&other.constituents);
        both.strings.extend(&other.strings);
        both
    }

    pub fn ln_weight(&self, ln_weights: &[f64]) -> f64 {
        self.params.iter().map(|&param| ln_weights[param]).sum()
    }
}

/// Lists all derivations, from the rules as they are written.
pub struct Enumerator<'a> {
    grammar: &'a Grammar,
    lexicon: &'a Lexicon,
    mode: Mode,
    tokens: &'a [SymbolId],
    known: BTreeMap<(SymbolId, bool, usize, usize), Rc<Vec<Derivation>>>,
    limit: usize,
    /// Whether a symbol had more derivations than the limit: then nothing found means anything.
    pub overflown: bool,
}

impl<'a> Enumerator<'a> {
    pub fn new(
        grammar: &'a Grammar,
        lexicon: &'a Lexicon,
        mode: Mode,
        tokens: &'a [SymbolId],
    ) -> Enumerator<'a> {
        let known = BTreeMap::new();
        Enumerator { grammar, lexicon, mode, tokens, known, limit: 4000, overflown: false }
    }

    /// All derivations of the tokens from the start symbol, or through the rules of `base`.
    pub fn all(&mut self, base: Option<SymbolId>) -> Rc<Vec<Derivation>> {
        self.derive(base.unwrap_or(Grammar::START), base.is_some(), 0, self.tokens.len())
    }

    fn derive(&mut self, symbol: SymbolId, base: bool, start: usize, end: usize) -> Rc<Vec<Derivation>> {
        if let Some(known) = self.known.get(&(symbol, base, start, end)) {
            return known.clone();
        }
        let mut found = Vec::new();
        if !self.grammar.is_nonterminal(symbol) {
            if end == start + 1 && self.tokens[start] == symbol {
                found.push(Derivation::default());
            }
        } else if self.grammar.is_adapted(symbol) && !base {
            let stick = self.grammar.adapted().position(|adapted| adapted == symbol).unwrap();
            let itself = Derivation { constituents: vec![(symbol, start, end)], ..Derivation::default() };
            if self.mode != Mode::Rules {
                for param in self.lexicon.space(self.grammar).stick(StickId(stick as u32)).map(ParamId) {
                    if self.lexicon.string(self.grammar, param).unwrap().1 == &self.tokens[start..end] {
                        let mut derivation = itself.clone();
                        derivation.params.push(param.index());
                        derivation.strings.push((param, start, end));
                        found.push(derivation);
                    }
                }
            }
            if self.mode != Mode::Strings {
                let escape = self.lexicon.space(self.grammar).n_params() + stick;
                for below in self.derive(symbol, true, start, end).iter() {
                    let mut derivation = itself.and(below);
                    derivation.params.extend((self.mode == Mode::Open).then_some(escape));
                    found.push(derivation);
                }
            }
        } else {
            let grammar = self.grammar;
            for (number, rule) in grammar.rules.iter().enumerate().filter(|(_, rule)| rule.parent == symbol) {
                for below in self.sequence(&rule.children, start, end) {
                    let mut derivation = Derivation::default();
                    derivation.params.push(1 + number);
                    derivation.constituents.extend((!base).then_some((symbol, start, end)));
                    found.push(derivation.and(&below));
                }
            }
        }
        if found.len() > self.limit {
            self.overflown = true;
            found.clear();
        }
        let found = Rc::new(found);
        self.known.insert((symbol, base, start, end), found.clone());
        found
    }

    fn sequence(&mut self, symbols: &[SymbolId], start: usize, end: usize) -> Vec<Derivation> {
        let (first, rest) = (symbols[0], &symbols[1..]);
        if rest.is_empty() {
            return self.derive(first, false, start, end).to_vec();
        }
        let mut found = Vec::new();
        for split in start + 1..end {
            let left = self.derive(first, false, start, split);
            if left.is_empty() || end - split < rest.len() {
                continue;
            }
            let right = self.sequence(rest, split, end);
            found.extend(left.iter().flat_map(|left| right.iter().map(|right| left.and(right))));
            if found.len() > self.limit {
                self.overflown = true;
                return Vec::new();
            }
        }
        found
    }
}

/// What enumeration says about an item.
pub struct Sums {
    pub log_z: f64,
    /// By parameter.
    pub counts: Vec<f64>,
    /// ln of the weight of the best derivation.
    pub best: f64,
    /// By derivation.
    pub posteriors: Vec<f64>,
}

/// `None` if there is no derivation, or all weigh zero.
pub fn sum(derivations: &[Derivation], ln_weights: &[f64]) -> Option<Sums> {
    let weights: Vec<f64> = derivations.iter().map(|derivation| derivation.ln_weight(ln_weights)).collect();
    let best = weights.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    if best == f64::NEG_INFINITY {
        return None;
    }
    let total: f64 = weights.iter().map(|weight| (weight - best).exp()).sum();
    let posteriors: Vec<f64> = weights.iter().map(|weight| (weight - best).exp() / total).collect();
    let mut counts = vec![0.0; ln_weights.len()];
    for (derivation, posterior) in derivations.iter().zip(&posteriors) {
        derivation.params.iter().for_each(|&param| counts[param] += posterior);
    }
    Some(Sums { log_z: best + total.ln(), counts, best, posteriors })
}

pub fn wide(ln_weights: &[f64]) -> Vec<Wide> {
    ln_weights.iter().map(|&ln| Wide::from_ln(ln)).collect()
}

#[track_caller]
pub fn assert_close(found: f64, expected: f64, tolerance: f64, what: &str) {
    let error = (found - expected).abs() / expected.abs().max(1.0);
    assert!(error <= tolerance, "{what}: found {found}, expected {expected}, relative error {error:e}");
}

#[track_caller]
pub fn assert_all_close(found: &[f64], expected: &[f64], tolerance: f64, what: &str) {
    assert_eq!(found.len(), expected.len(), "{what}: length");
    for (at, (&found, &expected)) in found.iter().zip(expected).enumerate() {
        assert_close(found, expected, tolerance, &format!("{what}, at {at}"));
    }
}

/// `n` sentences drawn from `grammar`.
pub fn draw(grammar: &Grammar, n: usize, seed: u64) -> Vec<Vec<SymbolId>> {
    let trees =
        generate::sample(grammar, n, seed, &generate::Options::default()).expect("the grammar is tame");
    let symbol = |name| grammar.symbol(name).unwrap();
    trees.iter().map(|tree| tree.terminals().map(symbol).collect()).collect()
}

/// Grammar, strings and shards of a run: what a coordinator holds.
pub struct Run {
    pub grammar: Named<Grammar>,
    pub lexicon: Named<Lexicon>,
    /// Sentences, then strings.
    pub shards: Vec<Named<Shard>>,
}

impl Run {
    /// Cuts sentences into shards of `shard_symbols`, and strings into shards of `shard_strings`.
    pub fn cut(
        grammar: &Grammar,
        lexicon: &Lexicon,
        sentences: &[Vec<SymbolId>],
        shard_symbols: u32,
        shard_strings: u32,
    ) -> Run {
        let mut shards: Vec<Shard> =
            shard::cut(sentences, shard_symbols).into_iter().map(|cut| cut.shard).collect();
        let (mut start, end) = (grammar.space().first_string().0, lexicon.space(grammar).n_params() as u32);
        while start < end {
            shards.push(Shard::Strings(start..end.min(start + shard_strings)));
            start += shard_strings;
        }
        Run {
            grammar: Named::new(grammar.clone()),
            lexicon: Named::new(lexicon.clone()),
            shards: shards.into_iter().map(Named::new).collect(),
        }
    }

    pub fn new(grammar: &Grammar, lexicon: &Lexicon, sentences: &[Vec<SymbolId>]) -> Run {
        Run::cut(grammar, lexicon, sentences, 200, 40)
    }

    pub fn answer(&self, engine: &Engine, shard: &Named<Shard>, work: Work) -> Answer {
        let (grammar, lexicon) = (self.grammar.clone(), self.lexicon.clone());
        let task = Task {
            language: Some(Language { grammar, lexicon }),
            shard: shard.clone(),
            work,
            further: Vec::new(),
        };
        engine.run(&task).unwrap_or_else(|error| panic!("{error}"))
    }

    /// A round: every shard asked with its own weights, the answers added in shard order.
    pub fn expect(&self, engine: &Engine, weights: &[Wide], losses: bool) -> Totals {
        let n = weights.len();
        let mut totals = Totals {
            counts: vec![0.0; n],
            losses: vec![0.0; n],
            log_z_strings: vec![0.0; n],
            log_z: 0.0,
            missing: Vec::new(),
        };
        let mut missing = BTreeSet::new();
        for shard in &self.shards {
            let Answer::Index(index) = self.answer(engine, shard, Work::Index) else { unreachable!() };
            let local = index.params.iter().map(|param| weights[param.index()]).collect();
            let work = Work::Expect { weights: local, losses };
            let Answer::Expectation(found) = self.answer(engine, shard, work) else { unreachable!() };
            for (at, param) in in_use(weights, &index.params).enumerate() {
                totals.counts[param.index()] += found.counts[at];
                totals.losses[param.index()] += found.losses.get(at).copied().unwrap_or(0.0);
            }
            if let Shard::Strings(params) = shard.value.as_ref() {
                for (param, log_z) in params.clone().zip(found.log_z_items) {
                    totals.log_z_strings[param as usize] = log_z;
                }
            }
            totals.log_z += found.log_z;
            missing.extend(found.missing);
        }
        totals.missing = missing.into_iter().collect();
        totals
    }

    /// Strings that have no derivation through the rules of their own nonterminal.
    fn underivable(&self, engine: &Engine) -> Vec<ParamId> {
        let of_shard = |shard: &Named<Shard>| {
            let Shard::Strings(params) = shard.value.as_ref() else { return Vec::new() };
            let Answer::Index(index) = self.answer(engine, shard, Work::Index) else { unreachable!() };
            index.unparsable.iter().map(|&item| ParamId(params.start + item)).collect()
        };
        self.shards.iter().flat_map(of_shard).collect()
    }
}

/// Stick strings as a job chooses them: the best by Eq. 3, those that sentences lack, none without a derivation.
pub fn choose(grammar: &Grammar, sentences: &[Vec<SymbolId>], truncation: usize, rho: f64) -> Lexicon {
    let engine = Engine::default();
    let adapted: Vec<SymbolId> = grammar.adapted().collect();
    let mut sums: BTreeMap<(SymbolId, Vec<SymbolId>), f64> = BTreeMap::new();
    let run = Run::new(grammar, &Lexicon::default(), sentences);
    for shard in &run.shards {
        let work = Work::Candidates(Lengths::all(u32::MAX));
        let Answer::Candidates(found) = run.answer(&engine, shard, work) else { unreachable!() };
        for (symbol, string, expected) in found.counted.iter() {
            *sums.entry((symbol, string.to_vec())).or_default() += expected;
        }
    }
    let mut ranking = Ranking::new(&adapted, truncation, rho);
    sums.iter().for_each(|((symbol, string), &sum)| ranking.add(*symbol, string, sum));
    let mut lexicon = Lexicon { sticks: ranking.top() };
    for _ in 0..20 {
        let run = Run::new(grammar, &lexicon, sentences);
        let without: BTreeSet<ParamId> = run.underivable(&engine).into_iter().collect();
        for (number, stick) in lexicon.sticks.iter_mut().enumerate() {
            let mut params = run.lexicon.value.space(grammar).stick(StickId(number as u32));
            let kept = stick.strings.iter().filter(|_| !without.contains(&ParamId(params.next().unwrap())));
            stick.strings = kept.collect();
        }
        if !without.is_empty() {
            continue;
        }
        let mut missing = BTreeSet::new();
        for shard in run.shards.iter().filter(|shard| matches!(*shard.value, Shard::Sentences(_))) {
            let Answer::Missing(found) = run.answer(&engine, shard, Work::Cover) else { unreachable!() };
            missing.extend(found);
        }
        if missing.is_empty() {
            return lexicon;
        }
        for (symbol, string) in missing {
            let stick = adapted.binary_search(&symbol).unwrap();
            lexicon.sticks[stick].strings.push(&string);
        }
    }
    panic!("no set of strings was found that covers the sentences");
}

/// The number of inputs that a law examined. A generator that makes inputs which the law skips fails it.
#[derive(Default)]
pub struct Examined(AtomicUsize);

impl Examined {
    pub const fn none() -> Examined {
        Examined(AtomicUsize::new(0))
    }

    /// Counts an input that was examined.
    pub fn one(&self) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }

    #[track_caller]
    pub fn assert_at_least(&self, floor: usize) {
        let examined = self.0.load(Ordering::Relaxed);
        assert!(examined >= floor, "the law examined {examined} inputs, expected at least {floor}");
    }
}
