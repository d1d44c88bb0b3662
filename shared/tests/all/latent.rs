//! Latent annotations: passes against enumeration, laws of the methods, and collapsed counts by hand.

use grammaton::data::treebank::{Classes, RuleId, Rules, Treebank};
use grammaton::grammar::tree::Tree;
use grammaton::models::latent::{
    Expectation, Layout, Method, Params, Shard, Weights, collapsed, expect, start,
};
use grammaton::num::Noise;

const TREES: [&str; 5] = [
    "(ROOT (S (NP (D the) (N dog)) (VP (V barks))))",
    "(ROOT (S (NP (N dogs)) (VP (V see) (NP (D the) (J old) (N dog)))))",
    "(ROOT (NP (D the) (J old) (J old) (N cat)))",
    "(ROOT (S (NP (NP (D the) (N cat)) (PP (P of) (NP (N dogs)))) (VP (V barks))))",
    "(ROOT (S (S (NP (N dogs)) (VP (V see))) (S (NP (N cat)) (VP (V barks)))))",
];

fn treebank() -> Treebank {
    Treebank::new(&TREES.map(|text| Tree::parse(text).unwrap()), 0, Classes::Generic)
}

fn shard(treebank: &Treebank) -> Shard {
    Shard { trees: treebank.derivations.clone() }
}

fn random_weights(layout: &Layout, seed: u64) -> Weights {
    let noise = Noise::new(seed, 0);
    let values = (0..layout.n_params() as u64).map(|place| (2.0 * noise.symmetric(place)).exp()).collect();
    Weights { values, exponents: vec![0; layout.blocks.len()] }
}

/// Children of every node, by preorder position.
fn children(rules: &Rules, tree: &[RuleId]) -> Vec<Vec<usize>> {
    let mut waiting: Vec<usize> = Vec::new();
    let mut all = vec![Vec::new(); tree.len()];
    for node in (0..tree.len()).rev() {
        let n_children = rules.rules[tree[node].index()].right.labels().count();
        let mut own = waiting.split_off(waiting.len() - n_children);
        own.reverse();
        all[node] = own;
        waiting.push(node);
    }
    all
}

/// The entry that a node uses if its parent and children have these subtypes.
fn entry(layout: &Layout, rule: RuleId, subtypes: &[usize], node: usize, children: &[usize]) -> usize {
    let block = layout.blocks[rule.index()];
    let of = |nth: usize| children.get(nth).map_or(0, |&child| subtypes[child]);
    block.start + (subtypes[node] * block.n_left + of(0)) * block.n_right + of(1)
}

/// Z and expected counts of a tree, by enumeration of all annotations.
fn enumerate(layout: &Layout, rules: &Rules, weights: &[f64], tree: &[RuleId]) -> (f64, Vec<f64>) {
    let children = children(rules, tree);
    let sizes: Vec<usize> = tree.iter().map(|rule| layout.blocks[rule.index()].n_parent).collect();
    let (mut z, mut counts) = (0.0, vec![0.0; layout.n_params()]);
    let mut subtypes = vec![0; tree.len()];
    loop {
        let entries: Vec<usize> =
            (0..tree.len()).map(|node| entry(layout, tree[node], &subtypes, node, &children[node])).collect();
        let weight: f64 = entries.iter().map(|&entry| weights[entry]).product();
        z += weight;
        entries.iter().for_each(|&entry| counts[entry] += weight);
        let Some(node) = (0..tree.len()).find(|&node| subtypes[node] + 1 < sizes[node]) else { break };
        subtypes[..node].fill(0);
        subtypes[node] += 1;
    }
    counts.iter_mut().for_each(|count| *count /= z);
    (z, counts)
}

fn assert_near(found: &[f64], expected: &[f64], tolerance: f64) {
    assert_eq!(found.len(), expected.len());
    for (at, (found, expected)) in found.iter().zip(expected).enumerate() {
        let error = (found - expected).abs() / expected.abs().max(1.0);
        assert!(error <= tolerance, "{at}: {found}, expected {expected}");
    }
}

#[test]
fn passes_agree_with_enumeration() {
    let treebank = treebank();
    for n_subtypes in 1..=2 {
        let layout = Layout::new(&treebank.rules, n_subtypes);
        let weights = random_weights(&layout, 3);
        for tree in treebank.derivations.iter().filter(|tree| tree.len() < 16) {
            let (z, counts) = enumerate(&layout, &treebank.rules, &weights.values, tree);
            let found = expect(&layout, &weights, &Shard { trees: vec![tree.clone()] });
            assert_near(&[found.ln_z], &[z.ln()], 1e-13);
            assert_near(&found.counts, &counts, 1e-13);
        }
    }
}

#[test]
fn counts_are_the_gradient_of_the_likelihood() {
    let treebank = treebank();
    let layout = Layout::new(&treebank.rules, 3);
    let (weights, shard) = (random_weights(&layout, 5), shard(&treebank));
    let counts = expect(&layout, &weights, &shard).counts;
    let step = 1e-5;
    for (entry, &count) in counts.iter().enumerate() {
        let ln_z = |factor: f64| {
            let mut moved = weights.clone();
            moved.values[entry] *= factor;
            expect(&layout, &moved, &shard).ln_z
        };
        let slope = (ln_z(f64::exp(step)) - ln_z(f64::exp(-step))) / (2.0 * step);
        assert_near(&[slope], &[count], 1e-7);
    }
}

#[test]
fn every_node_is_counted_once() {
    let treebank = treebank();
    let layout = Layout::new(&treebank.rules, 4);
    let counts = expect(&layout, &random_weights(&layout, 7), &shard(&treebank)).counts;
    for (block, &occurrences) in layout.blocks.iter().zip(&treebank.rules.occurrences) {
        let sum: f64 = counts[block.start..block.start + block.n_entries()].iter().sum();
        assert_near(&[sum], &[occurrences as f64], 1e-13);
    }
}

/// The bounds of `n` rounds after the first.
fn bounds(treebank: &Treebank, n_subtypes: usize, method: Method, alpha: f64, n: usize) -> Vec<f64> {
    let layout = Layout::new(&treebank.rules, n_subtypes);
    let shard = shard(treebank);
    let first = expect(&layout, &start(&treebank.rules, &layout, 0.01, 1), &shard);
    let mut params = Params { method, alpha, totals: first.counts };
    let round = |params: &mut Params| {
        let expectation = expect(&layout, &params.weights(&layout), &shard);
        let bound = params.bound(&layout, expectation.ln_z);
        params.update(expectation);
        bound
    };
    (0..n).map(|_| round(&mut params)).collect()
}

#[test]
fn neither_likelihood_nor_bound_ever_falls() {
    let treebank = treebank();
    for (method, alpha) in [(Method::Em, 0.0), (Method::Vb, 1.0), (Method::Vb, 0.1), (Method::Vb, 1e-3)] {
        for n_subtypes in [1, 2, 4] {
            let bounds = bounds(&treebank, n_subtypes, method, alpha, 60);
            assert!(
                bounds.iter().all(|bound| bound.is_finite()),
                "{method:?} {alpha} {n_subtypes}: {bounds:?}"
            );
            for (round, pair) in bounds.windows(2).enumerate() {
                let fall = pair[0] - pair[1];
                assert!(
                    fall < 1e-9 * pair[0].abs(),
                    "{method:?} {alpha} {n_subtypes}, round {round}: fell by {fall}"
                );
            }
        }
    }
    // Subtypes learn something.
    let likelihood = |n_subtypes| bounds(&treebank, n_subtypes, Method::Em, 0.0, 60)[59];
    assert!(likelihood(4) > likelihood(1) + 1.0, "{} {}", likelihood(4), likelihood(1));
}

#[test]
fn em_without_subtypes_gives_relative_frequencies() {
    let treebank = treebank();
    let layout = Layout::new(&treebank.rules, 1);
    let frequencies = treebank.rules.relative_frequencies();
    let first = expect(&layout, &random_weights(&layout, 1), &shard(&treebank));
    let params = Params { method: Method::Em, alpha: 0.0, totals: first.counts };
    assert_near(&params.weights(&layout).values, &frequencies, 1e-14);
    assert_near(&start(&treebank.rules, &layout, 0.0, 1).values, &frequencies, 1e-14);
}

#[test]
fn a_bound_done_by_hand() {
    // One rule each but for N → a | b, so ROOT → N is certain and the bound is that of a Dirichlet–multinomial: VB with given
    // trees is exact.
    let trees = ["(ROOT (N a))", "(ROOT (N a))", "(ROOT (N b))"].map(|text| Tree::parse(text).unwrap());
    let treebank = Treebank::new(&trees, 0, Classes::Generic);
    let alpha = 0.5;
    let bounds = bounds(&treebank, 1, Method::Vb, alpha, 2);
    // P(a, a, b) = (½ · 3/2 · ½) / (1 · 2 · 3).
    assert_near(&bounds, &[f64::ln(0.5 * 1.5 * 0.5 / 6.0); 2], 1e-13);
}

#[test]
fn collapsed_counts_leave_the_own_tree_out() {
    let treebank = treebank();
    let layout = Layout::new(&treebank.rules, 2);
    let (alpha, shard) = (0.3, shard(&treebank));
    let begun = start(&treebank.rules, &layout, 0.5, 9);
    let (first, own) = collapsed::begin(&layout, &begun, &shard);
    assert!(own.fits(&layout, &shard));
    assert_near(&first.counts, &expect(&layout, &begun, &shard).counts, 1e-6);

    // By hand: each tree's counts are an expectation under the mean of the others.
    let alone = |weights: &Weights, tree: usize| {
        expect(&layout, weights, &Shard { trees: vec![shard.trees[tree].clone()] })
    };
    let mut by_tree: Vec<Vec<f64>> = (0..TREES.len()).map(|tree| alone(&begun, tree).counts).collect();
    let mut ln_z = 0.0;
    for tree in 0..TREES.len() {
        let mut others = Expectation::zero(&layout);
        for other in (0..TREES.len()).filter(|&other| other != tree) {
            others.add(&Expectation { counts: by_tree[other].clone(), ln_z: 0.0 });
        }
        let params = Params { method: Method::Cvb, alpha, totals: others.counts };
        let found = alone(&params.weights(&layout), tree);
        ln_z += found.ln_z;
        by_tree[tree] = found.counts;
    }
    let mut expected = Expectation::zero(&layout);
    by_tree.into_iter().for_each(|counts| expected.add(&Expectation { counts, ln_z: 0.0 }));

    let (second, own) = collapsed::pass(&layout, &first.counts, alpha, &shard, own);
    assert_near(&second.counts, &expected.counts, 1e-5);
    assert_near(&[second.ln_z], &[ln_z], 1e-5);
    assert!(own.fits(&layout, &shard));
    let entries: usize =
        shard.trees.iter().flatten().map(|rule| layout.blocks[rule.index()].n_entries()).sum();
    assert_eq!(own.n_bytes(), 4 * entries);
}

#[test]
fn collapsed_shards_go_on_from_the_same_totals() {
    let treebank = treebank();
    let layout = Layout::new(&treebank.rules, 2);
    let weights = start(&treebank.rules, &layout, 0.01, 2);
    let shards: Vec<Shard> =
        treebank.derivations.chunks(2).map(|trees| Shard { trees: trees.to_vec() }).collect();
    let mut shard_state = Vec::new();
    let mut totals = Expectation::zero(&layout);
    for shard in &shards {
        let (expectation, own) = collapsed::begin(&layout, &weights, shard);
        totals.add(&expectation);
        shard_state.push(own);
    }
    for round in 0..40 {
        let mut next = Expectation::zero(&layout);
        for (shard, own) in shards.iter().zip(&mut shard_state) {
            let (expectation, kept) =
                collapsed::pass(&layout, &totals.counts, 0.1, shard, std::mem::take(own));
            next.add(&expectation);
            *own = kept;
        }
        totals = next;
        // Every rule is counted as often as it occurs, in every round: nothing drifts.
        for (block, &occurrences) in layout.blocks.iter().zip(&treebank.rules.occurrences) {
            let sum: f64 = totals.counts[block.start..block.start + block.n_entries()].iter().sum();
            assert!((sum - occurrences as f64).abs() < 1e-5, "round {round}: {sum} of {occurrences}");
        }
        assert!(totals.counts.iter().all(|&count| count >= 0.0));
    }
}

#[test]
fn a_long_sentence_does_not_underflow() {
    let n = 5_000;
    let text = format!("(ROOT {})", "(N a) (V b) ".repeat(n / 2));
    let treebank = Treebank::new(&[Tree::parse(&text).unwrap()], 0, Classes::Generic);
    let layout = Layout::new(&treebank.rules, 2);
    let mut weights = random_weights(&layout, 4);
    weights.values.iter_mut().for_each(|weight| *weight *= 1e-60);
    let expectation = expect(&layout, &weights, &shard(&treebank));
    let nodes = treebank.derivations[0].len() as f64;
    assert!(expectation.ln_z < -60.0 * nodes, "{}", expectation.ln_z);
    assert_near(&[expectation.counts.iter().sum()], &[nodes], 1e-10);
}

#[test]
fn a_small_prior_does_not_underflow() {
    let treebank = treebank();
    for method in [Method::Vb, Method::Cvb] {
        let bounds = bounds(&treebank, 16, method, 1e-5, 5);
        assert!(bounds.iter().all(|bound| bound.is_finite()), "{method:?}: {bounds:?}");
    }
}

#[test]
fn shards_from_elsewhere_are_checked() {
    let treebank = treebank();
    let mut shard = shard(&treebank);
    assert_eq!(shard.check(&treebank.rules), Ok(()));
    shard.trees[2].pop();
    assert_eq!(shard.check(&treebank.rules), Err(grammaton::models::latent::NoDerivation { tree: 2 }));
}

#[test]
fn one_tree_among_many_equal_ones_hardly_changes_the_counts() {
    let treebank = treebank();
    let layout = Layout::new(&treebank.rules, 2);
    let (one, weights) = (shard(&treebank), start(&treebank.rules, &layout, 0.9, 1));
    let (first, own) = collapsed::begin(&layout, &weights, &one);
    let n = 1e6;
    let totals: Vec<f64> = first.counts.iter().map(|count| n * count).collect();
    let (collapsed, _) = collapsed::pass(&layout, &totals, 1e-3, &one, own);
    let params = Params { method: Method::Cvb, alpha: 1e-3, totals };
    let plain = expect(&layout, &params.weights(&layout), &one);
    assert_near(&collapsed.counts, &plain.counts, 1e-5);
    assert_near(&[collapsed.ln_z], &[plain.ln_z], 1e-5);
}
