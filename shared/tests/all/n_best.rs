//! The n best analyses against enumeration of all derivations.

use std::collections::BTreeMap;

use grammaton::data::TreeMarks;
use grammaton::forest::Prepared;
use grammaton::grammar::lexicon::Lexicon;
use grammaton::grammar::tree::Tree;
use grammaton::grammar::{Grammar, SymbolId};
use grammaton::models::decode::n_best::{Distinct, Ranked, most_probable, probabilities};
use grammaton::models::decode::{Decode, Decoder, decode};
use grammaton::num::Noise;
use proptest::prelude::*;

use crate::brackets::constituents;
use crate::support::{
    self, Derivation, Enumerator, Examined, Mode, assert_close, lexicon, sum, tokens, wide,
};

/// Rules that derive the same in many ways, of one to three symbols.
const TREES: [&str; 2] = [
    "1 1 S --> S S\n1 1 S --> X\n1 1 S --> a\n1 1 S --> b\n1 1 X --> a\n1 1 X --> S X\n1 1 X --> b\n",
    "1 1 S --> X X\n1 1 S --> X Y X\n1 1 S --> X\n1 1 X --> Y\n1 1 X --> a\n1 1 X --> b\n1 1 Y --> X X\n1 1 Y --> a\n1 1 Y --> b\n",
];

/// Words in collocations, some of which have their own strings, and symbols outside of words.
const WORDS: &str = "1 1 S --> C\n1 1 S --> C S\n1 1 S --> b S\nC --> W\n1 1 C --> W C\n1 1 C --> b W\nW --> L\n1 1 W --> L W\n\
    1 1 L --> a\n1 1 L --> b\n";

/// Segmentations with their probabilities.
type Segmentations = BTreeMap<Vec<u32>, f64>;

/// A nonterminal and its span.
type Constituent = (SymbolId, usize, usize);

struct Case {
    grammar: Grammar,
    lexicon: Lexicon,
    logs: Vec<f64>,
    mode: Mode,
    tokens: Vec<SymbolId>,
}

impl Case {
    fn new(rules: &str, strings: &[(&str, &str)], mode: Mode, text: &str, seed: u64) -> Case {
        let grammar = support::grammar(rules);
        let lexicon = lexicon(&grammar, strings);
        let noise = Noise::new(seed, 5);
        let n = lexicon.space(&grammar).n_with_escapes();
        let log = |at: usize| if at == 0 { 0.0 } else { 1.5 * noise.symmetric(at as u64) - 1.0 };
        let (logs, tokens) = ((0..n).map(log).collect(), tokens(&grammar, text));
        Case { grammar, lexicon, logs, mode, tokens }
    }

    fn with(&self) -> Decode {
        Decode {
            weights: wide(&self.logs),
            segments: self.grammar.symbol("W").into_iter().collect(),
            decoders: vec![Decoder::Viterbi],
            trees: true,
            spans: true,
            open: self.mode == Mode::Open,
        }
    }

    fn prepared(&self) -> Prepared {
        Prepared::new(self.grammar.clone(), self.lexicon.clone())
    }

    fn n_best(&self, n: usize, distinct: Distinct) -> Vec<Ranked> {
        let nothing = TreeMarks::default();
        let sentence = [(&self.tokens[..], &nothing)].into_iter();
        most_probable(&self.prepared(), &self.with(), sentence, n, distinct).unwrap().remove(0)
    }

    fn derivations(&self, tokens: &[SymbolId], base: Option<SymbolId>) -> Vec<Derivation> {
        let mut enumerator = Enumerator::new(&self.grammar, &self.lexicon, self.mode, tokens);
        let all = enumerator.all(base).to_vec();
        assert!(!enumerator.overflown, "too ambiguous for this test");
        all
    }

    /// The segmentations of a derivation of so many tokens with their probabilities, where `inside` gives those of its strings.
    fn segmentations(
        &self,
        derivation: &Derivation,
        n: usize,
        inside: &dyn Fn(&[SymbolId], SymbolId) -> Segmentations,
    ) -> Segmentations {
        let word = self.grammar.symbol("W").unwrap();
        // Parents come before children.
        let mut outermost: Vec<(usize, usize)> = Vec::new();
        for &(symbol, start, end) in &derivation.constituents {
            if symbol == word && !outermost.iter().any(|&(from, to)| from <= start && end <= to) {
                outermost.push((start, end));
            }
        }
        let mut pieces: BTreeMap<usize, (usize, Segmentations)> = BTreeMap::new();
        for &(start, end) in &outermost {
            pieces.insert(start, (end, BTreeMap::from([(vec![end as u32], 1.0)])));
        }
        for &(param, start, end) in &derivation.strings {
            let (symbol, string) = self.lexicon.string(&self.grammar, param).unwrap();
            if !outermost.iter().any(|&(from, to)| from <= start && end <= to) {
                let shifted = inside(string, symbol).into_iter().map(|(ends, probability)| {
                    (ends.iter().map(|at| at + start as u32).collect(), probability)
                });
                pieces.insert(start, (end, shifted.collect()));
            }
        }
        let (mut all, mut at) = (BTreeMap::from([(Vec::new(), 1.0)]), 0);
        while at < n {
            let alone = (at + 1, BTreeMap::from([(vec![at as u32 + 1], 1.0)]));
            let (end, below) = pieces.get(&at).unwrap_or(&alone);
            let join = |(before, p): (&Vec<u32>, &f64)| {
                let (before, p) = (before.clone(), *p);
                below.iter().map(move |(ends, q)| ([&before[..], ends].concat(), p * q)).collect::<Vec<_>>()
            };
            all = all.iter().flat_map(join).collect();
            at = *end;
        }
        all
    }

    /// The probability of each segmentation, summed over all derivations, inside of strings too.
    fn shares(&self, tokens: &[SymbolId], base: Option<SymbolId>) -> Segmentations {
        let derivations = self.derivations(tokens, base);
        let mut shares = BTreeMap::new();
        let Some(sums) = sum(&derivations, &self.logs) else {
            return BTreeMap::from([((1..=tokens.len() as u32).collect(), 1.0)]);
        };
        for (derivation, posterior) in derivations.iter().zip(sums.posteriors) {
            let inside = |string: &[SymbolId], symbol| self.shares(string, Some(symbol));
            for (ends, share) in self.segmentations(derivation, tokens.len(), &inside) {
                *shares.entry(ends).or_insert(0.0) += share * posterior;
            }
        }
        shares
    }

    /// The segmentations by the best derivation of a string.
    fn best(&self, tokens: &[SymbolId], base: SymbolId) -> Segmentations {
        let derivations = self.derivations(tokens, Some(base));
        let weight = |it: &&Derivation| it.ln_weight(&self.logs);
        match derivations.iter().max_by(|a, b| weight(a).total_cmp(&weight(b))) {
            Some(best) => self.segmentations(best, tokens.len(), &|string, symbol| self.best(string, symbol)),
            None => BTreeMap::from([((1..=tokens.len() as u32).collect(), 1.0)]),
        }
    }

    /// Segmentations with the probability of the best derivation of each, in order.
    fn ranked(&self) -> Vec<(f64, Vec<u32>)> {
        let derivations = self.derivations(&self.tokens, None);
        let Some(sums) = sum(&derivations, &self.logs) else { return Vec::new() };
        let mut best = Segmentations::new();
        for (derivation, posterior) in derivations.iter().zip(sums.posteriors) {
            let inside = |string: &[SymbolId], symbol| self.best(string, symbol);
            for ends in self.segmentations(derivation, self.tokens.len(), &inside).into_keys() {
                let known = best.entry(ends).or_insert(0.0);
                *known = known.max(posterior);
            }
        }
        let mut ranked: Vec<(f64, Vec<u32>)> = best.into_iter().map(|(ends, p)| (p, ends)).collect();
        ranked.sort_by(|a, b| b.0.total_cmp(&a.0));
        ranked
    }
}

fn assert_trees_as_enumerated(case: &Case) -> usize {
    let derivations = case.derivations(&case.tokens, None);
    let Some(sums) = sum(&derivations, &case.logs) else {
        assert!(case.n_best(3, Distinct::Trees).is_empty());
        return 0;
    };
    let mut by_tree: Vec<(f64, Vec<Constituent>)> = Vec::new();
    for (derivation, posterior) in derivations.iter().zip(sums.posteriors) {
        let mut constituents = derivation.constituents.clone();
        constituents.sort_unstable();
        by_tree.push((posterior, constituents));
    }
    by_tree.sort_by(|a, b| b.0.total_cmp(&a.0));
    for n in [1, 2, 7, 10_000] {
        let found = case.n_best(n, Distinct::Trees);
        assert_eq!(found.len(), n.min(by_tree.len()));
        let trees: Vec<&str> = found.iter().map(|ranked| ranked.tree.as_deref().unwrap()).collect();
        for (at, ranked) in found.iter().enumerate() {
            assert_close(ranked.probability, by_tree[at].0, 1e-11, "the probability of that rank");
            let own = constituents(&case.grammar, &Tree::parse(trees[at]).unwrap());
            let known = by_tree.iter().find(|(_, constituents)| *constituents == own);
            assert_close(ranked.probability, known.expect("a tree").0, 1e-11, "the probability of the tree");
            assert!(!trees[..at].contains(&trees[at]), "{} twice", trees[at]);
        }
        let viterbi = decode(&case.prepared(), &case.with(), &[&case.tokens]).unwrap().remove(0);
        assert_eq!(trees[0], viterbi.trees[0]);
    }
    by_tree.len()
}

fn assert_segmentations_as_enumerated(case: &Case) {
    let (ranked, shares) = (case.ranked(), case.shares(&case.tokens, None));
    let viterbi = decode(&case.prepared(), &case.with(), &[&case.tokens]).unwrap().remove(0);
    for n in [1, 2, 5, 10_000] {
        let found = case.n_best(n, Distinct::Segmentations);
        assert_eq!(found.len(), n.min(ranked.len()));
        for (at, (found_at, expected)) in found.iter().zip(&ranked).enumerate() {
            assert_close(found_at.probability, expected.0, 1e-11, "the probability of that rank");
            let own = ranked.iter().find(|(_, ends)| *ends == found_at.ends);
            assert_close(found_at.probability, own.expect("a segmentation").0, 1e-11, "its own probability");
            assert!(found[..at].iter().all(|other| other.ends != found_at.ends), "twice");
        }
        assert!(found.first().is_none_or(|first| first.ends == viterbi.segmentations[0]));
    }
    // Trees are the same list with repeats: each tree once, at the rank of its best derivation.
    let trees = case.n_best(200, Distinct::Trees);
    let first_of = |ends: &Vec<u32>| trees.iter().find(|tree| tree.ends == *ends);
    for (probability, ends) in ranked.iter().filter(|_| trees.len() < 200) {
        assert_close(
            first_of(ends).unwrap().probability,
            *probability,
            1e-11,
            "the best tree of a segmentation",
        );
    }
    let is_repeated = |at: usize| trees[..at].iter().any(|other| other.tree == trees[at].tree);
    assert!(!(0..trees.len()).any(is_repeated));
    if ranked.is_empty() {
        return;
    }
    let n = case.tokens.len() as u32;
    let ends = |set: u32| -> Vec<u32> { (1..n).filter(|at| set >> (at - 1) & 1 == 1).chain([n]).collect() };
    let all: Vec<Vec<u32>> = (0..1 << (n - 1)).map(ends).collect();
    let asked = [(&case.tokens[..], &all[..])].into_iter();
    let found = probabilities(&case.prepared(), &case.with(), asked).unwrap().remove(0);
    for (probability, ends) in found.iter().zip(&all) {
        let expected = shares.get(ends).copied().unwrap_or(0.0);
        assert!((probability - expected).abs() < 1e-11, "{ends:?}: {probability}, expected {expected}");
    }
}

fn text(n: usize, letters: u32) -> String {
    (0..n).map(|at| if letters >> at & 1 == 1 { "a " } else { "b " }).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Law: the n best trees of a grammar are the n most probable of all, in order, each once; all, if n is larger. The first is that of Viterbi decoding.
    #[test]
    fn the_n_best_trees_are_the_most_probable_of_all(
        rules in prop::sample::select(TREES.to_vec()),
        n in 1..6_usize,
        letters in 0..32_u32,
        seed in 0..1000_u64,
    ) {
        assert_trees_as_enumerated(&Case::new(rules, &[], Mode::Strings, &text(n, letters), seed));
    }

    /// Law: the n best segmentations are those of the most probable derivations, each once; and the probability of any segmentation is the sum over all derivations that
    /// have it, strings and their own analyses included.
    #[test]
    fn the_n_best_segmentations_are_those_of_the_most_probable_derivations(
        strings in prop::sample::subsequence(
            vec![("C", "a b"), ("C", "a"), ("C", "b a b"), ("W", "a"), ("W", "a b"), ("W", "b"), ("W", "b a")], 0..8,
        ),
        is_open in any::<bool>(),
        n in 1..6_usize,
        letters in 0..32_u32,
        seed in 0..1000_u64,
    ) {
        let mode = if is_open { Mode::Open } else { Mode::Strings };
        assert_segmentations_as_enumerated(&Case::new(WORDS, &strings, mode, &text(n, letters), seed));
    }
}

#[test]
fn the_laws_examine_ambiguous_sentences() {
    let examined = Examined::none();
    for rules in TREES {
        let n_trees = assert_trees_as_enumerated(&Case::new(rules, &[], Mode::Strings, "a b a b", 1));
        (0..n_trees).for_each(|_| examined.one());
    }
    let case = Case::new(WORDS, &[("C", "a b"), ("W", "a"), ("W", "b")], Mode::Open, "a b a b", 1);
    let (n_segmentations, n_derivations) = (case.ranked().len(), case.derivations(&case.tokens, None).len());
    assert!(
        n_segmentations > 5 && n_derivations > 2 * n_segmentations,
        "{n_segmentations} of {n_derivations}"
    );
    assert_segmentations_as_enumerated(&case);
    examined.assert_at_least(40);
}
