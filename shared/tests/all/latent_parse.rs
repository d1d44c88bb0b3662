//! The parser against enumeration of all trees of short sentences, and what it does with words and sentences that it does not know.

use std::collections::BTreeMap;

use grammaton::data::treebank::{Chains, Classes, LabelId, Rhs, RuleId, Rules, Treebank, binary};
use grammaton::grammar::tree::{Node, Tree};
use grammaton::models::latent::parse::{Decoder, Model, Parser, THRESHOLD};
use grammaton::models::latent::{Layout, Method, Params, Shard, Weights, expect, start};
use grammaton::num::Noise;

use crate::support::Examined;

const TREES: [&str; 6] = [
    "(ROOT (S (A x) (S (A y) (B x))))",
    "(ROOT (S (S (A x) (B y)) (B x)))",
    "(ROOT (S (A (B y) (A x)) (B (A y))))",
    "(ROOT (A (S (A x) (A y)) (B x)))",
    "(ROOT (S (A x) (B y) (A y)))",
    "(ROOT (S (A (S (A x) (B x))) (B y)))",
];

fn treebank(texts: &[&str]) -> Treebank {
    let trees: Vec<Tree> = texts.iter().map(|text| Tree::parse(text).unwrap()).collect();
    Treebank::new(&trees, 0, Classes::Generic)
}

/// A model with random weights, which puts nothing into unary steps.
fn random_model(treebank: &Treebank, n_subtypes: usize, seed: u64) -> Model {
    let layout = Layout::new(&treebank.rules, n_subtypes);
    let noise = Noise::new(seed, 0);
    let values = (0..layout.n_params() as u64).map(|place| (2.0 * noise.symmetric(place)).exp());
    let totals: Vec<f64> = values.collect();
    Model {
        weights: Params { method: Method::Em, alpha: 0.0, totals }.estimate(&layout),
        rules: treebank.rules.clone(),
        vocabulary: treebank.vocabulary.clone(),
        chains: Chains::default(),
        n_subtypes,
    }
}

/// A rule over a span.
type Anchored = (RuleId, usize, usize, usize);
/// A derivation, with spans and splits.
type Anchors = Vec<Anchored>;

/// All derivations of [i, j) from `label`; `high`: with a unary step on top or none.
fn derivations(rules: &Rules, words: &[u32], label: LabelId, i: usize, j: usize, high: bool) -> Vec<Anchors> {
    let mut all = Vec::new();
    for number in rules.of(label) {
        let rule = RuleId(number as u32);
        match rules.rules[number].right {
            Rhs::Lexical(word) => {
                if j == i + 1 && words[i] == word.0 {
                    all.push(vec![(rule, i, i, j)]);
                }
            }
            Rhs::Unary(child) => {
                if high {
                    let below = derivations(rules, words, child, i, j, false);
                    all.extend(below.into_iter().map(|tree| [&[(rule, i, i, j)][..], &tree].concat()));
                }
            }
            Rhs::Binary(left, right) => {
                for k in i + 1..j {
                    let lefts = derivations(rules, words, left, i, k, true);
                    let rights = derivations(rules, words, right, k, j, true);
                    for left in &lefts {
                        all.extend(rights.iter().map(|right| [&[(rule, i, k, j)][..], left, right].concat()));
                    }
                }
            }
        }
    }
    all
}

fn rules_of(tree: &Anchors) -> Vec<RuleId> {
    tree.iter().map(|&(rule, ..)| rule).collect()
}

fn draw(rules: &Rules, tree: &Anchors) -> Tree {
    let mut nodes = Vec::new();
    for &(rule, ..) in tree {
        let rule = rules.rules[rule.index()];
        let n_children = rule.right.labels().count().max(1) as u32;
        nodes.push(Node { label: rules.labels[rule.parent.index()].clone(), n_children });
        if let Rhs::Lexical(word) = rule.right {
            nodes.push(Node { label: rules.words[word.0 as usize].clone(), n_children: 0 });
        }
    }
    binary::debinarise(&Tree::new(nodes).unwrap())
}

/// The weight of the best annotation of a tree with that subtype on top; reads the tree's rules from the front.
fn best_annotation(layout: &Layout, weights: &[f64], tree: &mut &[RuleId]) -> Vec<f64> {
    let block = layout.blocks[tree[0].index()];
    *tree = &tree[1..];
    let mut children = (0..block.n_children).map(|_| best_annotation(layout, weights, tree));
    let left = children.next().unwrap_or(vec![1.0]);
    let right = children.next().unwrap_or(vec![1.0]);
    let value = |a: usize, b: usize, c: usize| {
        weights[block.start + (a * block.n_left + b) * block.n_right + c] * left[b] * right[c]
    };
    let best = |a| {
        let pairs = (0..block.n_left).flat_map(|b| (0..block.n_right).map(move |c| (b, c)));
        pairs.map(|(b, c)| value(a, b, c)).fold(0.0, f64::max)
    };
    (0..block.n_parent).map(best).collect()
}

#[test]
fn both_decoders_agree_with_enumeration() {
    let treebank = treebank(&TREES);
    let rules = &treebank.rules;
    let (mut differ, examined) = (0, Examined::none());
    for (seed, sentence) in (0..).zip(["x", "x y", "y x y", "x y x y", "y y x x", "x y x y x"]) {
        for n_subtypes in [1, 2, 3] {
            let model = random_model(&treebank, n_subtypes, seed);
            let layout = Layout::new(rules, n_subtypes);
            let words: Vec<&str> = sentence.split(' ').collect();
            let ids: Vec<u32> = words.iter().map(|word| rules.word(word).unwrap().0).collect();
            let trees = derivations(rules, &ids, rules.root(), 0, words.len(), true);
            let parser = Parser::new(&model, 0.0);
            let viterbi = parser.parse(&words, Decoder::Viterbi);
            let max_rule = parser.parse(&words, Decoder::MaxRule);
            assert_eq!((viterbi.flat, max_rule.flat), (trees.is_empty(), trees.is_empty()), "{sentence}");
            if trees.is_empty() {
                continue;
            }
            examined.one();
            // Viterbi: the best annotation of all trees.
            let annotated =
                |tree: &Anchors| best_annotation(&layout, &model.weights, &mut rules_of(tree).as_slice())[0];
            let best = trees.iter().map(annotated).fold(0.0, f64::max);
            let found = trees.iter().find(|tree| draw(rules, tree) == viterbi.tree);
            let found = annotated(found.unwrap_or_else(|| panic!("{} is no tree", viterbi.tree)));
            assert!((found / best - 1.0).abs() < 1e-12, "{sentence}: {found}, but the best has {best}");
            // The n best: all trees by their best annotations, each with its probability, which is the sum over its annotations.
            let weights = Weights { values: model.weights.clone(), exponents: vec![0; layout.blocks.len()] };
            let z =
                |tree: &Anchors| expect(&layout, &weights, &Shard { trees: vec![rules_of(tree)] }).ln_z.exp();
            let total: f64 = trees.iter().map(z).sum();
            let mut expected: Vec<(f64, f64, Tree)> =
                trees.iter().map(|tree| (annotated(tree), z(tree) / total, draw(rules, tree))).collect();
            expected.sort_by(|a, b| b.0.total_cmp(&a.0));
            for n in [1, 2, 1000] {
                let found = parser.n_best(&words, n);
                assert_eq!(found.len(), n.min(trees.len()), "{sentence}");
                assert_eq!(found[0].1, viterbi.tree);
                for ((probability, tree), (best_of_rank, ..)) in found.iter().zip(&expected) {
                    let (best, own, _) = expected.iter().find(|(.., known)| known == tree).unwrap();
                    assert!((best / best_of_rank - 1.0).abs() < 1e-11, "{sentence}");
                    assert!((probability / own - 1.0).abs() < 1e-11, "{sentence}: {tree}");
                    assert_eq!(found.iter().filter(|(_, other)| other == tree).count(), 1);
                }
            }
            // Max-rule: posteriors of anchored rules, subtypes and trees summed out, and their products.
            let inside: Vec<f64> = trees.iter().map(z).collect();
            let mut posteriors: BTreeMap<Anchored, f64> = BTreeMap::new();
            for (tree, z) in trees.iter().zip(inside) {
                tree.iter().for_each(|&anchored| *posteriors.entry(anchored).or_default() += z / total);
            }
            let product = |tree: &Anchors| tree.iter().map(|anchored| posteriors[anchored]).product::<f64>();
            let best = trees.iter().map(product).fold(0.0, f64::max);
            let found = trees.iter().find(|tree| draw(rules, tree) == max_rule.tree).unwrap();
            assert!((product(found) / best - 1.0).abs() < 1e-12, "{sentence}: {}, {best}", product(found));
            differ += usize::from(viterbi.tree != max_rule.tree);
        }
    }
    examined.assert_at_least(12);
    assert!(differ > 0, "the decoders should differ somewhere, else one would do");
}

/// Trained a little by EM.
fn trained(treebank: &Treebank, n_subtypes: usize) -> Model {
    let layout = Layout::new(&treebank.rules, n_subtypes);
    let shard = Shard { trees: treebank.derivations.clone() };
    let mut weights = start(&treebank.rules, &layout, 0.01, 1);
    let mut params = Params { method: Method::Em, alpha: 0.0, totals: Vec::new() };
    for _ in 0..20 {
        params.update(expect(&layout, &weights, &shard));
        weights = params.weights(&layout);
    }
    Model {
        rules: treebank.rules.clone(),
        vocabulary: treebank.vocabulary.clone(),
        chains: treebank.chains.clone(),
        n_subtypes,
        weights: weights.values,
    }
}

#[test]
fn trees_of_a_treebank_round_trip() {
    let texts = [
        "(ROOT (S (NP (D the) (J old) (N dog)) (VP (V barks))))",
        "(ROOT (S (NP (PN Kim)) (VP (V sees) (NP (D the) (N dog)))))",
        "(ROOT (NP (D the) (N dog)))",
    ];
    let model = trained(&treebank(&texts), 2);
    for text in texts {
        let tree = Tree::parse(text).unwrap();
        let words: Vec<&str> = tree.terminals().collect();
        for (decoder, threshold) in
            [(Decoder::Viterbi, THRESHOLD), (Decoder::MaxRule, THRESHOLD), (Decoder::MaxRule, 0.9)]
        {
            let parse = Parser::new(&model, threshold).parse(&words, decoder);
            assert_eq!((parse.tree.to_string().as_str(), parse.flat), (text, false));
        }
    }
}

#[test]
fn models_from_elsewhere_are_checked() {
    let model = random_model(&treebank(&TREES), 2, 1);
    assert_eq!(model.check(), Ok(()));
    let refused = |change: fn(&mut Model)| {
        let mut model = model.clone();
        change(&mut model);
        model.check().unwrap_err().to_string()
    };
    assert_eq!(refused(|model| model.n_subtypes = 0), "labels have 0 subtypes, expected 1 to 64");
    assert_eq!(refused(|model| model.n_subtypes = 3), "rules and their weights differ");
    assert_eq!(refused(|model| model.weights[0] = f64::NAN), "a rule has no weight");
    assert_eq!(refused(|model| model.rules.occurrences.clear()), "rules and their occurrences differ");
}

#[test]
fn sentences_without_a_tree_are_flat_and_marked() {
    let model = trained(
        &treebank(&["(ROOT (S (N a) (V b)))", "(ROOT (S (N a) (V a)))", "(ROOT (S (N a) (V b)))"]),
        2,
    );
    let parser = Parser::new(&model, THRESHOLD);
    let parse = parser.parse(&["b", "a", "c"], Decoder::MaxRule);
    assert!(parse.flat);
    assert_eq!(parse.tree.to_string(), "(ROOT (V b) (N a) (N c))");
}

/// A chart of 20,000 words and three labels would take 18 GiB.
#[test]
fn a_sentence_whose_chart_is_too_large_is_flat() {
    let model =
        trained(&treebank(&["(ROOT (S (N a) (V b)))", "(ROOT (S (S (N a) (V b)) (S (N a) (V b))))"]), 1);
    let flat = |n| Parser::new(&model, THRESHOLD).parse(&["a", "b"].repeat(n), Decoder::MaxRule).flat;
    assert_eq!((flat(2), flat(10_000)), (false, true));
}

#[test]
fn a_threshold_that_leaves_no_tree_is_squared_once() {
    // Two trees, alike in probability, so each constituent that they do not share has a posterior of one half.
    let model =
        trained(&treebank(&["(ROOT (S (N a) (V b)))", "(ROOT (S (S (N a) (V b)) (S (N a) (V b))))"]), 1);
    let flat = |threshold| Parser::new(&model, threshold).parse(&["a", "b"].repeat(3), Decoder::MaxRule).flat;
    assert_eq!((flat(0.4), flat(0.6), flat(0.8)), (false, false, true));
}

#[test]
fn unknown_words_take_the_class_and_else_any_tag() {
    let texts = ["(ROOT (S (N a) (V b)))", "(ROOT (S (N dog) (V b)))"];
    let trees = texts.map(|text| Tree::parse(text).unwrap());
    let treebank = Treebank::new(&trees, 1, Classes::Signatures);
    assert_eq!(treebank.rules.words, ["UNK-LC", "b"]);
    let model = trained(&treebank, 2);
    let parser = Parser::new(&model, THRESHOLD);
    let parsed = |words: &[&str], decoder| parser.parse(words, decoder).tree.to_string();
    for decoder in [Decoder::Viterbi, Decoder::MaxRule] {
        assert_eq!(parsed(&["cat", "b"], decoder), "(ROOT (S (N cat) (V b)))");
        assert_eq!(parsed(&["walking", "b"], decoder), "(ROOT (S (N walking) (V b)))", "the wider class");
        assert_eq!(parsed(&["dog", "7"], decoder), "(ROOT (S (N dog) (V 7)))", "no class has digits");
    }
}

#[test]
fn a_long_sentence_does_not_underflow() {
    let model =
        trained(&treebank(&["(ROOT (S (N a) (V b)))", "(ROOT (S (S (N a) (V b)) (S (N a) (V b))))"]), 2);
    let words = ["a", "b"].repeat(60);
    for decoder in [Decoder::Viterbi, Decoder::MaxRule] {
        let parse = Parser::new(&model, 1e-3).parse(&words, decoder);
        assert!(!parse.flat);
        assert_eq!(parse.tree.terminals().count(), 120);
    }
}
