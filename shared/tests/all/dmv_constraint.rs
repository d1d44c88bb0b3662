//! Constraints against enumeration: the trees of restricted forests are the allowed ones, no more and no fewer.

use std::collections::BTreeSet;

use grammaton::forest::inside::{Scratch, Weights, edge_posteriors, real};
use grammaton::models::dmv::Side;
use grammaton::models::dmv::constraint::{ArcClass, Component, restricted};
use proptest::prelude::*;

use crate::support::dependencies::{Model, all_trees, events, random_logs, random_tags};
use crate::support::{Examined, assert_all_close, assert_close, wide};

/// Two nouns, a verb and neither.
fn model() -> Model {
    Model::new(&["NN", "VBZ", "NNS", "IN"].map(str::to_owned))
}

/// Whether a tree obeys, from the definitions.
fn obeys(component: &Component, names: &[&str], heads: &[u32]) -> bool {
    let is_in = |list: &[String], tag: &str| {
        list.iter().any(|name| match name.as_str() {
            "any" => true,
            "noun" => tag.starts_with("NN"),
            "verb" => tag.starts_with("VB"),
            name => name == tag,
        })
    };
    let is_phrase = |words: &[&str]| words.iter().all(|tag| is_in(&component.phrases, tag));
    (0..names.len()).all(|child| {
        let Some(head) = (heads[child] as usize).checked_sub(1) else {
            return is_in(&component.roots, names[child]);
        };
        let side = if child < head { Side::Left } else { Side::Right };
        head.abs_diff(child) <= component.longest_arc.unwrap_or(u32::MAX) as usize
            && !component.forbid.iter().any(|arcs| {
                is_in(&arcs.head, names[head])
                    && is_in(&arcs.child, names[child])
                    && arcs.side.is_none_or(|only| only == side)
            })
    }) && (1..names.len()).all(|end| {
        // Of every phrase that goes on to `end` and no further.
        let goes_on = |end: usize| is_phrase(&names[end..=end]);
        let start = (0..=end).rev().take_while(|&at| goes_on(at)).last();
        let ends_here = end + 1 == names.len() || !goes_on(end + 1);
        start.is_none_or(|start| !ends_here || (start..end).all(|child| heads[child] as usize == end + 1))
    })
}

/// The restricted forest of a sentence is that of the trees that obey.
#[track_caller]
fn assert_as_enumerated(
    model: &Model,
    component: &Component,
    tags: &[u32],
    seed: u64,
    with_trees: &Examined,
) {
    let names: Vec<&str> = tags.iter().map(|&tag| model.tags[tag as usize].as_str()).collect();
    let what = format!("{component:?} on {names:?}");
    let logs = random_logs(model.layout, seed);
    let (mut z, mut counts) = (0.0, vec![0.0; logs.len()]);
    for heads in all_trees(tags.len()).iter().filter(|heads| obeys(component, &names, heads)) {
        let params =
            || events(model.layout, tags, heads).into_iter().map(|event| model.layout.param(event).index());
        let weight = params().map(|at| logs[at]).sum::<f64>().exp();
        z += weight;
        params().for_each(|at| counts[at] += weight);
    }
    let constraint = component.resolve(&model.tags).unwrap();
    let allowed = constraint.on(tags);
    let forest = restricted(model.layout, &model.forest(tags), |head, child| allowed.allows(head, child));
    let Some(forest) = forest else {
        assert_eq!(z, 0.0, "{what}: no tree is left");
        return;
    };
    with_trees.one();
    let (wide, mut found) = (wide(&logs), vec![0.0; logs.len()]);
    let weights = Weights { wide: &wide, real: &real(&wide) };
    let log_z = edge_posteriors(&forest, &weights, &mut Scratch::default(), |_, edge, posterior| {
        found[edge.param as usize] += posterior;
    });
    assert_close(log_z.ln(), z.ln(), 1e-12, &what);
    counts.iter_mut().for_each(|count| *count /= z);
    assert_all_close(&found[1..], &counts[1..], 1e-11, &what);
}

#[test]
fn built_in_components_agree_with_enumeration() {
    let (model, with_trees) = (model(), Examined::none());
    for (n, seed) in (1..=5).flat_map(|n| (0..6).map(move |seed| (n, seed))) {
        for name in Component::BUILT_IN {
            let component = Component::built_in(name).unwrap();
            assert_as_enumerated(&model, &component, &random_tags(n, 4, seed), seed, &with_trees);
        }
    }
    with_trees.assert_at_least(60);
}

#[test]
fn single_trees_are_single() {
    let model = model();
    for n in 1..=6 {
        let tags = random_tags(n, 4, n as u64);
        let heads_of = |name: &str| {
            let constraint = Component::built_in(name).unwrap().resolve(&model.tags).unwrap();
            let allowed = constraint.on(&tags);
            let forest = model.forest(&tags);
            let forest =
                restricted(model.layout, &forest, |head, child| allowed.allows(head, child)).unwrap();
            let mut heads = BTreeSet::new();
            for node in 1..forest.n_nodes() {
                heads.extend(
                    forest.edges_of(node).iter().filter_map(|edge| model.layout.arc(&forest, node, edge)),
                );
            }
            heads.into_iter().collect::<Vec<_>>()
        };
        let last: Vec<(usize, usize)> = (1..n).map(|child| (n, child)).collect();
        assert_eq!(heads_of("all-right"), [&[(0, n)], &last[..]].concat());
        let chain: Vec<(usize, usize)> = (1..n).map(|child| (child + 1, child)).collect();
        assert_eq!(heads_of("left-chain"), [&[(0, n)], &chain[..]].concat());
    }
}

fn list() -> impl Strategy<Value = Vec<String>> {
    let name = prop::sample::select(vec!["NN", "NNS", "VBZ", "IN", "noun", "verb", "any"]);
    prop::collection::vec(name.prop_map(str::to_owned), 1..3)
}

fn component() -> impl Strategy<Value = Component> {
    let side = prop::option::of(prop::sample::select(vec![Side::Left, Side::Right]));
    let arcs = (list(), list(), side).prop_map(|(head, child, side)| ArcClass { head, child, side });
    let phrases = prop_oneof![Just(Vec::new()), list()];
    let parts = (list(), prop::option::of(1u32..5), prop::collection::vec(arcs, 0..3), phrases);
    parts.prop_map(|(roots, longest_arc, forbid, phrases)| Component {
        name: "own".to_owned(),
        roots,
        longest_arc,
        forbid,
        phrases,
    })
}

proptest! {
    fn any_component(component in component(), n in 1usize..6, seed in 0u64..1000) {
        assert_as_enumerated(&model(), &component, &random_tags(n, 4, seed), seed, &WITH_TREES);
    }
}

/// Components that allow some tree.
static WITH_TREES: Examined = Examined::none();

#[test]
fn any_component_agrees_with_enumeration() {
    any_component();
    WITH_TREES.assert_at_least(60);
}
