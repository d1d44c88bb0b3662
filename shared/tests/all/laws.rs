//! Laws of forests and of the passes over them, for random grammars, strings and weights.

use std::collections::BTreeSet;
use std::rc::Rc;
use std::sync::Arc;

use grammaton::forest::Prepared;
use grammaton::forest::best::{max_sum, viterbi};
use grammaton::forest::binary::Adapted;
use grammaton::forest::build::Builder;
use grammaton::forest::chains::Chains;
use grammaton::forest::inside::{Counts, Scratch, Weights, edge_posteriors, expect, real};
use grammaton::forest::{Forest, Label};
use grammaton::grammar::lexicon::{Lexicon, StickStrings};
use grammaton::grammar::{Grammar, SymbolId};
use grammaton::num::Wide;
use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::TestRunner;

use crate::support::{
    self, Derivation, Enumerator, Examined, Mode, Sums, assert_all_close, assert_close, sum, wide,
};

/// A grammar of up to four nonterminals over `a` and `b`, a sentence, and a lexicon of some of the strings that its
/// adapted nonterminals derive.
#[derive(Clone, Debug)]
struct Case {
    grammar: Grammar,
    lexicon: Lexicon,
    sentence: Vec<SymbolId>,
    /// ln, `[n_params + n_adapted]`, the constant one first.
    ln_weights: Vec<f64>,
}

/// Symbols 0..4 are nonterminals, 4 and 5 the terminals.
type RawRule = (usize, Vec<usize>);

fn text_of(rules: &[RawRule], adapted: &[bool]) -> String {
    let mut by_parent: Vec<BTreeSet<Vec<usize>>> = vec![BTreeSet::new(); 4];
    for (number, (parent, children)) in rules.iter().enumerate() {
        let mut right = children.clone();
        if right.len() == 1 && right[0] <= *parent {
            right.push(4 + number % 2); // else there could be cycles of unary rules
        }
        by_parent[*parent].insert(right);
    }
    for (parent, rights) in by_parent.iter_mut().enumerate() {
        rights.insert(vec![4 + parent % 2]);
    }
    let (mut reached, mut open) = (BTreeSet::from([0]), vec![0]);
    while let Some(parent) = open.pop() {
        for &child in by_parent[parent].iter().flatten().filter(|&&child| child < 4) {
            if reached.insert(child) {
                open.push(child);
            }
        }
    }
    let name = |symbol: &usize| ["S", "A", "B", "C", "a", "b"][*symbol];
    let mut text = String::new();
    for &parent in &reached {
        for right in &by_parent[parent] {
            let children: Vec<&str> = right.iter().map(name).collect();
            let numbers = if adapted[parent] { "" } else { "1 1 " };
            text += &format!("{numbers}{} --> {}\n", name(&parent), children.join(" "));
        }
    }
    text
}

prop_compose! {
    fn case()(
        rules in prop::collection::vec((0..4usize, prop::collection::vec(0..6usize, 1..5)), 2..9),
        adapted in prop::collection::vec(any::<bool>(), 3),
        sentence in prop::collection::vec(any::<bool>(), 1..6),
        chosen in prop::collection::vec(0.0..1.0f64, 3 * 30),
        ln_weights in prop::collection::vec(-3.0..0.5f64, 140),
    ) -> Case {
        let adapted = [&[false], adapted.as_slice()].concat();
        let grammar = support::grammar(&text_of(&rules, &adapted));
        let terminals: Vec<SymbolId> = ["a", "b"].iter().filter_map(|name| grammar.symbol(name)).collect();
        let terminal = |second: bool| terminals[usize::from(second) % terminals.len()];
        let empty = Lexicon::default();
        let mut chosen = chosen.into_iter();
        let mut stick = |symbol| {
            let all = (1..=4u32).flat_map(|n| (0..1 << n).map(move |bits| (n, bits)));
            let string = |(n, bits)| (0..n).map(|at| terminal(bits >> at & 1 == 1)).collect::<Vec<_>>();
            let derived = |string: &Vec<SymbolId>| {
                !Enumerator::new(&grammar, &empty, Mode::Rules, string).all(Some(symbol)).is_empty()
            };
            let some: BTreeSet<Vec<SymbolId>> = all.map(string).filter(|_| chosen.next() > Some(0.4)).collect();
            StickStrings { symbol, strings: some.into_iter().filter(derived).collect() }
        };
        let sticks = grammar.adapted().map(&mut stick).collect();
        let sentence = sentence.into_iter().map(terminal).collect();
        let mut case = Case { grammar, lexicon: Lexicon { sticks }, sentence, ln_weights };
        case.ln_weights.truncate(case.n_params() + case.lexicon.sticks.len());
        case.ln_weights[0] = 0.0;
        case
    }
}

/// An item with its forest and, independently, its derivations.
struct Item {
    forest: Forest,
    derivations: Rc<Vec<Derivation>>,
    sums: Sums,
}

impl Case {
    fn n_params(&self) -> usize {
        self.lexicon.space(&self.grammar).n_params()
    }

    fn prepared(&self) -> Prepared {
        Prepared::new(Arc::new(self.grammar.clone()), Arc::new(self.lexicon.clone()))
    }

    /// The sentence with strings, with rules and with both; every string through its rules.
    fn items(&self) -> Vec<Item> {
        let prepared = self.prepared();
        let (binary, strings) = (&prepared.binary, &prepared.strings);
        let mut items = Vec::new();
        let mut add = |builder: &mut Builder, mode, base: Option<usize>, tokens: &[SymbolId]| {
            let symbol = base.map(|stick| self.lexicon.sticks[stick].symbol);
            let mut enumerator = Enumerator::new(&self.grammar, &self.lexicon, mode, tokens);
            let derivations = enumerator.all(symbol);
            if enumerator.overflown {
                return;
            }
            let forest = builder.build(base.map_or(0, |stick| binary.base[stick]), tokens).unwrap();
            assert_eq!(forest.is_some(), !derivations.is_empty(), "{mode:?}: derivable");
            if let Some((forest, sums)) = forest.zip(sum(&derivations, &self.ln_weights)) {
                items.push(Item { forest, derivations, sums });
            }
        };
        let mut builder = Builder::new(binary, strings, Adapted::Strings);
        add(&mut builder, Mode::Strings, None, &self.sentence);
        for (stick, string) in self.strings() {
            add(&mut builder, Mode::Strings, Some(stick), string);
        }
        add(&mut Builder::new(binary, strings, Adapted::Rules), Mode::Rules, None, &self.sentence);
        let mut builder = Builder::open(binary, strings);
        add(&mut builder, Mode::Open, None, &self.sentence);
        for (stick, string) in self.strings() {
            add(&mut builder, Mode::Open, Some(stick), string);
        }
        items
    }

    fn strings(&self) -> impl Iterator<Item = (usize, &[SymbolId])> {
        let sticks = self.lexicon.sticks.iter().enumerate();
        sticks.flat_map(|(number, stick)| stick.strings.iter().map(move |string| (number, string)))
    }

    fn first_string(&self) -> u32 {
        self.grammar.space().first_string().0
    }

    /// A symbol of the grammar, rather than one that binarisation adds.
    fn is_constituent(&self, label: &Label) -> bool {
        label.symbol < self.grammar.n_nonterminals
    }
}

/// log Z, counts and losses.
fn passes(forest: &Forest, weights: &[Wide]) -> (f64, Vec<f64>, Vec<f64>) {
    passes_with(forest, weights, &real(weights))
}

fn passes_with(forest: &Forest, weights: &[Wide], real: &[f64]) -> (f64, Vec<f64>, Vec<f64>) {
    let (mut uses, mut losses) = (vec![0.0; weights.len()], vec![0.0; weights.len()]);
    let mut counts = Counts { uses: &mut uses, losses: &mut losses };
    let z = expect(forest, &Weights { wide: weights, real }, 1.0, &mut counts, &mut Scratch::default());
    (z.ln(), uses, losses)
}

/// A forest as a set of edges, independent of the order of its nodes.
fn edges_of(forest: &Forest, param: impl Fn(u32) -> u32) -> BTreeSet<(String, u32, [String; 2])> {
    let name = |node: u32| format!("{:?}", forest.labels[node as usize]);
    let of = |node: usize| {
        let edges = forest.edges_of(node).iter();
        edges.map(move |edge| (name(node as u32), edge.param, edge.tails.map(name)))
    };
    (1..forest.n_nodes()).flat_map(of).map(|(head, p, tails)| (head, param(p), tails)).collect()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 150, ..ProptestConfig::default() })]

    #[test]
    fn inside_and_counts_are_those_of_enumeration(case in case()) {
        let weights = wide(&case.ln_weights);
        for item in case.items() {
            let (log_z, mut counts, _) = passes(&item.forest, &weights);
            assert_close(log_z, item.sums.log_z, 1e-12, "log Z");
            counts[0] = 0.0; // the constant one, which binarisation uses
            assert_all_close(&counts, &item.sums.counts, 1e-12, "counts");
        }
    }

    #[test]
    fn derivations_are_counted_once(case in case()) {
        let ones = vec![Wide::ONE; case.ln_weights.len()];
        for item in case.items() {
            let (log_z, _, _) = passes(&item.forest, &ones);
            assert_close(log_z.exp(), item.derivations.len() as f64, 1e-12, "number of derivations");
        }
    }

    #[test]
    fn counts_are_derivatives_of_log_z(case in case()) {
        const STEP: f64 = 1e-5;
        let weights = wide(&case.ln_weights);
        for item in case.items() {
            let (_, counts, _) = passes(&item.forest, &weights);
            let used: BTreeSet<u32> = item.forest.edges.iter().map(|edge| edge.param).collect();
            for param in used {
                let moved = |step: f64| {
                    let mut weights = weights.clone();
                    weights[param as usize] = Wide::from_ln(case.ln_weights[param as usize] + step);
                    passes(&item.forest, &weights).0
                };
                let slope = (moved(STEP) - moved(-STEP)) / (2.0 * STEP);
                assert_close(counts[param as usize], slope, 1e-7, "count");
            }
        }
    }

    #[test]
    fn root_is_used_once_and_posteriors_are_at_most_one(case in case()) {
        let weights = wide(&case.ln_weights);
        for item in case.items() {
            let mut nodes = vec![0.0; item.forest.n_nodes()];
            let weights = Weights { wide: &weights, real: &real(&weights) };
            edge_posteriors(&item.forest, &weights, &mut Scratch::default(), |node, _, p| nodes[node] += p);
            assert_close(nodes[item.forest.root()], 1.0, 1e-13, "root");
            prop_assert!(nodes.iter().all(|&posterior| posterior < 1.0 + 1e-12));
        }
    }

    #[test]
    fn viterbi_is_the_best_of_enumeration(case in case()) {
        let weights = wide(&case.ln_weights);
        for item in case.items() {
            let (best, derivation) = viterbi(&item.forest, &weights).expect("no weight is zero");
            assert_close(best.ln(), item.sums.best, 1e-12, "best");
            prop_assert!(best.ln() <= item.sums.log_z + 1e-12);
            let edges = derivation.edges(&item.forest);
            let product: f64 = edges.iter().map(|(_, edge)| case.ln_weights[edge.param as usize]).sum();
            assert_close(product, item.sums.best, 1e-12, "product of its edges");
        }
    }

    #[test]
    fn max_sum_is_the_best_of_enumeration(case in case(), alive in prop::collection::vec(0..8u8, 140)) {
        let weights = wide(&case.ln_weights);
        let alive = |param: usize| param == 0 || alive[param] > 0;
        for item in case.items() {
            let mut nodes = vec![0.0; item.forest.n_nodes()];
            let weights = Weights { wide: &weights, real: &real(&weights) };
            edge_posteriors(&item.forest, &weights, &mut Scratch::default(), |node, _, p| nodes[node] += p);
            let score = |node: usize| {
                if case.is_constituent(&item.forest.labels[node]) { nodes[node] } else { 0.0 }
            };
            let found = max_sum(&item.forest, score, |param| alive(param as usize)).map(|(best, _)| best);
            // Posteriors of constituents, from the derivations.
            let of = |constituent| -> f64 {
                let all = item.derivations.iter().zip(&item.sums.posteriors);
                let with = all.filter(|(derivation, _)| derivation.constituents.contains(constituent));
                with.map(|(_, posterior)| posterior).sum()
            };
            let living = item.derivations.iter().filter(|d| d.params.iter().all(|&param| alive(param)));
            let values = living.map(|d| d.constituents.iter().map(of).sum::<f64>());
            let best = values.reduce(f64::max);
            prop_assert_eq!(found.is_some(), best.is_some());
            if let Some((found, best)) = found.zip(best) {
                assert_close(found, best, 1e-12, "sum of posteriors");
            }
        }
    }

    #[test]
    fn folding_changes_nothing(case in case()) {
        let weights = wide(&case.ln_weights);
        let mut chains = Chains::default();
        // All forests first: chains are shared.
        let items = case.items();
        let folded: Vec<Forest> =
            items.iter().map(|item| chains.fold(&item.forest, case.first_string())).collect();
        chains.close();
        let of_chains = chains.weights(&weights);
        for (item, folded) in items.iter().zip(&folded) {
            prop_assert!(folded.edges.len() <= item.forest.edges.len());
            let (log_z, counts, losses) = passes(&item.forest, &weights);
            let (folded_log_z, by_chain, losses_by_chain) = passes(folded, &of_chains);
            assert_close(folded_log_z, log_z, 1e-13, "log Z");
            let mut distributed = vec![0.0; weights.len()];
            chains.distribute(&by_chain, &mut distributed);
            assert_all_close(&distributed[1..], &counts[1..], 1e-12, "counts");
            let mut distributed = vec![0.0; weights.len()];
            chains.distribute(&losses_by_chain, &mut distributed);
            for param in case.first_string() as usize..weights.len() {
                let (found, expected) = (distributed[param], losses[param]);
                // Near a posterior of one, a loss has no digits left.
                prop_assert!(found == expected || (found - expected).abs() < 1e-6 || expected > 20.0);
            }
        }
    }

    #[test]
    fn pruning_is_building_without(case in case(), gone in prop::collection::vec(any::<bool>(), 140)) {
        let first = case.first_string() as usize;
        let prepared = case.prepared();
        let mut builder = Builder::new(&prepared.binary, &prepared.strings, Adapted::Strings);
        let Some(forest) = builder.build(0, &case.sentence).unwrap() else { return Ok(()) };
        let mut fewer = case.clone();
        let mut params = first..;
        let mut kept = Vec::new();
        for stick in &mut fewer.lexicon.sticks {
            let some = stick.strings.iter().filter(|_| {
                let param = params.next().unwrap();
                if !gone[param] {
                    kept.push(param as u32);
                }
                !gone[param]
            });
            stick.strings = some.collect();
        }
        let prepared = fewer.prepared();
        let mut builder = Builder::new(&prepared.binary, &prepared.strings, Adapted::Strings);
        let expected = builder.build(0, &case.sentence).unwrap();
        let pruned = forest.pruned(|param| (param as usize) < first || !gone[param as usize]);
        let old = |param: u32| if (param as usize) < first { param } else { kept[param as usize - first] };
        prop_assert_eq!(
            pruned.as_ref().map(|forest| edges_of(forest, |param| param)),
            expected.as_ref().map(|forest| edges_of(forest, old))
        );
        if let Some(pruned) = pruned {
            let mut weights = wide(&case.ln_weights);
            let without = passes(&pruned, &weights);
            (first..weights.len()).filter(|&param| gone[param]).for_each(|param| weights[param] = Wide::ZERO);
            prop_assert_eq!(passes(&forest, &weights), without);
        }
    }

    #[test]
    fn real_and_wide_passes_agree_bit_for_bit(case in case()) {
        let weights = wide(&case.ln_weights);
        let nothing = vec![0.0; weights.len()]; // sends every item to the wide pass
        for item in case.items() {
            prop_assert_eq!(passes(&item.forest, &weights), passes_with(&item.forest, &weights, &nothing));
        }
    }

    #[test]
    fn far_weights_only_move_log_z(case in case(), ln in -4000.0..1500.0f64) {
        // e^ln per token of the item: every derivation is multiplied alike.
        let weights = wide(&case.ln_weights);
        for item in case.items() {
            let n = f64::from(item.forest.labels[item.forest.root()].end);
            let mut terminals = item.forest.clone();
            let far = weights.len() as u32;
            // A new parameter, once at the root.
            let first = terminals.first_edge[terminals.root()] as usize;
            for at in first..terminals.edges.len() {
                terminals.edges[at].param = far + (at - first) as u32;
            }
            let root = item.forest.edges_of(item.forest.root());
            let of_root = root.iter().map(|edge| case.ln_weights[edge.param as usize] + n * ln);
            let weights = [weights.clone(), of_root.map(Wide::from_ln).collect()].concat();
            let (log_z, counts, _) = passes(&terminals, &weights);
            assert_close(log_z, item.sums.log_z + n * ln, 1e-12, "log Z");
            let mut expected = item.sums.counts.clone();
            for (edge, count) in root.iter().zip(&counts[far as usize..]) {
                expected[edge.param as usize] -= count;
            }
            assert_all_close(&counts[1..far as usize], &expected[1..], 1e-11, "counts");
        }
    }

    #[test]
    fn loss_of_a_use_is_what_log_z_loses_without_it(case in case()) {
        let weights = wide(&case.ln_weights);
        for item in case.items() {
            let (log_z, counts, losses) = passes(&item.forest, &weights);
            for param in case.first_string()..case.n_params() as u32 {
                let edges = item.forest.edges.iter().filter(|edge| edge.param == param).count();
                let found = losses[param as usize];
                if edges == 0 {
                    prop_assert_eq!(found, 0.0);
                } else if edges == 1 {
                    let mut without = weights.clone();
                    without[param as usize] = Wide::ZERO;
                    let expected = log_z - passes(&item.forest, &without).0;
                    let posterior = counts[param as usize];
                    prop_assert!(
                        found == expected || (found - expected).abs() < 1e-9 / (1.0 - posterior).max(1e-12),
                        "loss {} for {}", found, expected
                    );
                }
            }
        }
    }
}

/// What the laws above examine: they skip items with too many derivations to enumerate, and sentences without a derivation.
#[test]
fn generated_cases_have_what_the_laws_examine() {
    let (items, ambiguous, of_strings, sentences, used_once) = Default::default();
    let all: [&Examined; 5] = [&items, &ambiguous, &of_strings, &sentences, &used_once];
    let mut runner = TestRunner::deterministic();
    for _ in 0..150 {
        let case = case().new_tree(&mut runner).unwrap().current();
        let prepared = case.prepared();
        let mut builder = Builder::new(&prepared.binary, &prepared.strings, Adapted::Strings);
        if builder.build(0, &case.sentence).unwrap().is_some() {
            sentences.one();
        }
        for item in case.items() {
            items.one();
            if item.derivations.len() > 1 {
                ambiguous.one();
            }
            if item.derivations.iter().any(|derivation| !derivation.strings.is_empty()) {
                of_strings.one();
            }
            let mut uses = vec![0; case.n_params() + case.lexicon.sticks.len()];
            item.forest.edges.iter().for_each(|edge| uses[edge.param as usize] += 1);
            if uses[case.first_string() as usize..case.n_params()].contains(&1) {
                used_once.one();
            }
        }
    }
    for (examined, floor) in all.into_iter().zip([300, 80, 120, 15, 100]) {
        examined.assert_at_least(floor);
    }
}

/// Words over `a` and `b`: S → W S | W.
fn unigram() -> Grammar {
    support::grammar(
        "1 1 S --> W S\n1 1 S --> W\nW --> L\n1 1 L --> C L\n1 1 L --> C\n1 1 C --> a\n1 1 C --> b\n",
    )
}

#[test]
fn ten_thousand_tokens_keep_their_counts() {
    const N: usize = 10_000;
    let grammar = unigram();
    let lexicon = support::lexicon(&grammar, &[("W", "a"), ("W", "a a")]);
    let prepared = Prepared::new(Arc::new(grammar.clone()), Arc::new(lexicon.clone()));
    let tokens = vec![grammar.symbol("a").unwrap(); N];
    let mut builder = Builder::new(&prepared.binary, &prepared.strings, Adapted::Strings);
    let forest = builder.build(0, &tokens).unwrap().unwrap();
    // S → W S and S → W weigh 1, so Z_n = x Z_{n−1} + y Z_{n−2}, with Z_0 = 1. For x = e^−2.5 and y = p·e^−5,
    // Z_n = e^−2.5n · F_n, where F_n = F_{n−1} + p·F_{n−2}, and d ln F_n / d ln p is the number of long words.
    let p = 0.3f64;
    let mut ln_weights = vec![0.0; lexicon.space(&grammar).n_params()];
    let [one, two] = ["a", "a a"].map(|string| support::param(&grammar, &lexicon, "W", string).index());
    (ln_weights[one], ln_weights[two]) = (-2.5, p.ln() - 5.0);
    let (log_z, counts, _) = passes(&forest, &wide(&ln_weights));
    // F_n = (r^{n+1} − s^{n+1}) / (r − s) for the roots r > s of x² = x + p; the share of s is nothing here.
    let root = (1.0 + 4.0 * p).sqrt();
    let r = (1.0 + root) / 2.0;
    let ln_f = (N as f64 + 1.0) * r.ln() - root.ln();
    assert!(log_z < -20_000.0);
    assert_close(log_z, ln_f - 2.5 * N as f64, 1e-12, "log Z");
    // p · d/dp of the above, with dr/dp = 1 / root and d root/dp = 2 / root.
    let long = p * ((N as f64 + 1.0) / (r * root) - 2.0 / (root * root));
    assert_close(counts[two], long, 1e-10, "words of two");
    assert_close(counts[one], N as f64 - 2.0 * long, 1e-10, "words of one");
    assert_close(viterbi(&forest, &wide(&ln_weights)).unwrap().0.ln(), -2.5 * N as f64, 1e-12, "best");
}

#[test]
fn tails_of_sticks_keep_their_counts() {
    let grammar = unigram();
    let lexicon = support::lexicon(&grammar, &[("W", "a"), ("W", "b"), ("W", "b b"), ("W", "a b")]);
    let sentence = support::tokens(&grammar, "a b b");
    let mut ln_weights = vec![-0.5; lexicon.space(&grammar).n_params()];
    ln_weights[0] = 0.0;
    for (string, ln) in [("a", -1.0), ("b", -15_000.0), ("b b", -30_000.5), ("a b", -15_001.5)] {
        ln_weights[support::param(&grammar, &lexicon, "W", string).index()] = ln;
    }
    let prepared = Prepared::new(Arc::new(grammar.clone()), Arc::new(lexicon.clone()));
    let mut builder = Builder::new(&prepared.binary, &prepared.strings, Adapted::Strings);
    let forest = builder.build(0, &sentence).unwrap().unwrap();
    let derivations = Enumerator::new(&grammar, &lexicon, Mode::Strings, &sentence).all(None);
    let expected = sum(&derivations, &ln_weights).unwrap();
    let (log_z, counts, _) = passes(&forest, &wide(&ln_weights));
    assert_eq!(derivations.len(), 3);
    assert_close(log_z, expected.log_z, 1e-13, "log Z");
    assert_all_close(&counts, &expected.counts, 1e-10, "counts");
}

#[test]
fn edge_of_the_range_of_f64_is_not_felt() {
    let grammar = unigram();
    let lexicon = support::lexicon(&grammar, &[("W", "a"), ("W", "b"), ("W", "a b")]);
    let prepared = Prepared::new(Arc::new(grammar.clone()), Arc::new(lexicon.clone()));
    let mut builder = Builder::new(&prepared.binary, &prepared.strings, Adapted::Strings);
    let forest = builder.build(0, &support::tokens(&grammar, "a b")).unwrap().unwrap();
    let string = |string| support::param(&grammar, &lexicon, "W", string).index();
    for ln in (-600..600).map(f64::from) {
        let mut ln_weights = vec![0.0; lexicon.space(&grammar).n_params()];
        [("a", ln), ("b", ln), ("a b", 2.0 * ln)].iter().for_each(|&(s, ln)| ln_weights[string(s)] = ln);
        let (log_z, counts, _) = passes(&forest, &wide(&ln_weights));
        assert_close(log_z, 2.0 * ln + 2.0f64.ln(), 1e-13, "log Z");
        for word in ["a", "b", "a b"] {
            assert_close(counts[string(word)], 0.5, 1e-10, &format!("uses of {word} at e^{ln}"));
        }
    }
}

/// What both passes say of a forest, and which of them is trusted.
struct BothPasses {
    /// log Z, counts and losses as `expect` gives them.
    found: (f64, Vec<f64>, Vec<f64>),
    /// The same by the wide pass.
    wide: (f64, Vec<f64>, Vec<f64>),
    /// Whether `found` is from the real pass.
    is_real: bool,
}

impl BothPasses {
    fn of(forest: &Forest, weights: &[Wide]) -> BothPasses {
        let real = real(weights);
        let nothing = vec![Wide::ZERO; weights.len()]; // the wide pass finds no derivation
        let (log_z, ..) = passes_with(forest, &nothing, &real);
        BothPasses {
            found: passes_with(forest, weights, &real),
            wide: passes_with(forest, weights, &vec![0.0; weights.len()]),
            is_real: log_z > f64::NEG_INFINITY,
        }
    }

    /// Both are the exact sums; log Z has the same bits, and counts differ by less than 2^−100.
    fn check(&self, expected: &Sums, what: &str) {
        for (log_z, counts, _) in [&self.found, &self.wide] {
            assert_close(*log_z, expected.log_z, 1e-13, &format!("{what}: log Z"));
            assert_all_close(&counts[1..], &expected.counts[1..], 1e-12, &format!("{what}: counts"));
        }
        assert_eq!(self.found.0.to_bits(), self.wide.0.to_bits(), "{what}: log Z of both passes");
        for (a, b) in self.found.1.iter().zip(&self.wide.1) {
            assert!(a.to_bits() == b.to_bits() || (a - b).abs() < 2f64.powi(-100), "{what}: {a} {b}");
        }
    }
}

/// Eight tokens with 2^4 derivations, whose total weight passes the limit 2^−400 of the real pass and the cutoff 2^−500 of weights.
#[test]
fn the_real_pass_hands_over_to_the_wide_one_at_its_limit() {
    let grammar = unigram();
    let lexicon = support::lexicon(&grammar, &[("W", "a"), ("W", "b"), ("W", "a b")]);
    let prepared = Prepared::new(Arc::new(grammar.clone()), Arc::new(lexicon.clone()));
    let sentence = support::tokens(&grammar, "a b a b a b a b");
    let mut builder = Builder::new(&prepared.binary, &prepared.strings, Adapted::Strings);
    let forest = builder.build(0, &sentence).unwrap().unwrap();
    let derivations = Enumerator::new(&grammar, &lexicon, Mode::Strings, &sentence).all(None);
    assert_eq!(derivations.len(), 16);
    let string = |string| support::param(&grammar, &lexicon, "W", string).index();
    let (mut n_real, mut n_wide) = (0, 0);
    for quarter in 160..280 {
        let bits = -f64::from(quarter) / 4.0;
        let mut ln_weights = vec![-0.25; lexicon.space(&grammar).n_params()];
        ln_weights[0] = 0.0;
        for (word, bits) in [("a", bits), ("b", bits - 1.5), ("a b", 2.0 * bits + 0.5)] {
            ln_weights[string(word)] = bits * std::f64::consts::LN_2;
        }
        let expected = sum(&derivations, &ln_weights).unwrap();
        let passes = BothPasses::of(&forest, &wide(&ln_weights));
        passes.check(&expected, &format!("2^{bits} a token"));
        let log_2_z = expected.log_z / std::f64::consts::LN_2;
        assert_eq!(passes.is_real, log_2_z >= -400.0, "of a total weight of 2^{log_2_z}");
        *if passes.is_real { &mut n_real } else { &mut n_wide } += 1;
    }
    assert!(n_real > 20 && n_wide > 20, "{n_real} by the real pass, {n_wide} by the wide one");
}

/// A word that weighs 2^−480 to 2^−520, beside another reading that weighs 2^−300 to 2^−530.
#[test]
fn weights_around_the_cutoff_keep_log_z_and_counts() {
    let grammar = unigram();
    let lexicon = support::lexicon(&grammar, &[("W", "a"), ("W", "b"), ("W", "a b")]);
    let prepared = Prepared::new(Arc::new(grammar.clone()), Arc::new(lexicon.clone()));
    let sentence = support::tokens(&grammar, "a b");
    let mut builder = Builder::new(&prepared.binary, &prepared.strings, Adapted::Strings);
    let forest = builder.build(0, &sentence).unwrap().unwrap();
    let derivations = Enumerator::new(&grammar, &lexicon, Mode::Strings, &sentence).all(None);
    let string = |string| support::param(&grammar, &lexicon, "W", string).index();
    let (mut n_cut, mut n_uncut, mut n_wide) = (0, 0, 0);
    for half in 960..=1040 {
        for rival in (300..=530).step_by(10) {
            let (bits, rival) = (-f64::from(half) / 2.0, -f64::from(rival));
            let mut ln_weights = vec![0.0; lexicon.space(&grammar).n_params()];
            for (word, bits) in [("a b", bits), ("a", rival), ("b", 0.0)] {
                ln_weights[string(word)] = bits * std::f64::consts::LN_2;
            }
            let weights = wide(&ln_weights);
            let passes = BothPasses::of(&forest, &weights);
            passes.check(&sum(&derivations, &ln_weights).unwrap(), &format!("2^{bits} beside 2^{rival}"));
            match (passes.is_real, real(&weights)[string("a b")] == 0.0) {
                (true, true) => n_cut += 1,
                (true, false) => n_uncut += 1,
                (false, _) => n_wide += 1,
            }
        }
    }
    let n_all = [n_cut, n_uncut, n_wide];
    assert!(n_all.iter().all(|&n| n > 300), "cut, not cut, by the wide pass: {n_all:?}");
}
