//! Known constituents against enumeration: every answer is that of all trees that agree with the brackets of a sentence.

use grammaton::data::{Bracket, Sentence, TreeMarks};
use grammaton::grammar::lexicon::Lexicon;
use grammaton::grammar::tree::Tree;
use grammaton::grammar::{Grammar, SymbolId};
use grammaton::models::decode::{Decode, Decoder};
use grammaton::num::Noise;
use grammaton::work::engine::Engine;
use grammaton::work::shard::Shard;
use grammaton::work::task::{Answer, Collapse, Index, Language, Named, Sample, Task, Work};
use proptest::prelude::*;

use crate::support::{
    Derivation, Enumerator, Mode, assert_all_close, assert_close, grammar, sum, tokens, wide,
};

/// With a right-hand side of three symbols, which is binarised, and a chain of unary rules.
const GRAMMAR: &str = "1 1 S --> X X\n1 1 S --> X Y X\n1 1 S --> X\n1 1 X --> Y\n1 1 X --> a\n1 1 X --> b\n\
    1 1 Y --> X X\n1 1 Y --> a\n1 1 Y --> b\n";

struct Case {
    grammar: Grammar,
    tokens: Vec<SymbolId>,
    brackets: Vec<Bracket>,
    logs: Vec<f64>,
}

impl Case {
    fn new(text: &str, brackets: Vec<Bracket>, seed: u64) -> Case {
        let grammar = grammar(GRAMMAR);
        let tokens = tokens(&grammar, text);
        let noise = Noise::new(seed, 3);
        let n = grammar.space().n_params();
        let logs =
            (0..n).map(|at| if at == 0 { 0.0 } else { 1.5 * noise.symmetric(at as u64) - 1.0 }).collect();
        Case { grammar, tokens, brackets, logs }
    }

    /// Whether the constituents of a tree agree with all brackets, from the definition: none crosses one, and each with labels has one with its span and a label.
    fn allows(&self, constituents: &[(SymbolId, usize, usize)]) -> bool {
        self.brackets.iter().all(|bracket| {
            let (first, last) = (bracket.start as usize, bracket.end as usize);
            let crosses = |&(_, start, end): &(SymbolId, usize, usize)| {
                let overlap = start.max(first) < end.min(last);
                let nested = start <= first && last <= end || first <= start && end <= last;
                overlap && !nested
            };
            let has = |&(symbol, start, end): &(SymbolId, usize, usize)| {
                (start, end) == (first, last) && bracket.labels.contains(&symbol)
            };
            !constituents.iter().any(crosses) && (bracket.labels.is_empty() || constituents.iter().any(has))
        })
    }

    fn derivations(&self) -> Vec<Derivation> {
        let empty = Lexicon::default();
        let mut enumerator = Enumerator::new(&self.grammar, &empty, Mode::Rules, &self.tokens);
        let all = enumerator.all(None).to_vec();
        assert!(!enumerator.overflown, "too ambiguous for this test");
        all.into_iter().filter(|it| self.allows(&it.constituents)).collect()
    }

    fn answer(&self, multiplicity: u32, work: Work) -> Answer {
        let marks = TreeMarks { brackets: self.brackets.clone(), ..TreeMarks::default() };
        let sentence = Sentence::new(self.tokens.clone(), multiplicity).with_marks(marks);
        let (grammar, lexicon) = (Named::new(self.grammar.clone()), Named::new(Lexicon::default()));
        let shard = Named::new(Shard::Sentences(vec![sentence]));
        Engine::default()
            .run(&Task { language: Some(Language { grammar, lexicon }), shard, work, further: Vec::new() })
            .unwrap()
    }

    fn index(&self) -> Index {
        let Answer::Index(index) = self.answer(1, Work::Index) else { panic!("an index") };
        index
    }
}

fn assert_as_enumerated(case: &Case) {
    let derivations = case.derivations();
    let index = case.index();
    assert_eq!(index.unparsable.is_empty(), !derivations.is_empty());
    let weights = wide(&case.logs);
    let with = |decoders: &[Decoder]| Decode {
        spans: false,
        weights: weights.clone(),
        segments: Vec::new(),
        decoders: decoders.to_vec(),
        trees: true,
        open: false,
    };
    let decode = Work::Decode(Named::new(with(&[Decoder::Viterbi, Decoder::MbrTree])));
    let Answer::Decoded(decoded) = case.answer(1, decode) else { panic!("a parse") };
    let Some(sums) = sum(&derivations, &case.logs) else {
        assert_eq!(decoded[0].log_z, f64::NEG_INFINITY);
        return;
    };
    let of_shard = || index.params.iter().map(|param| weights[param.index()]);
    let own_counts: Vec<f64> = index.params.iter().map(|param| sums.counts[param.index()]).collect();

    let Answer::Expectation(found) =
        case.answer(1, Work::Expect { weights: of_shard().collect(), losses: false })
    else {
        panic!("an expectation")
    };
    assert_close(found.log_z, sums.log_z, 1e-12, "log Z");
    assert_all_close(&found.counts[1..], &own_counts[1..], 1e-11, "expected counts");

    // The first pass of collapsed variational Bayes has the same weights.
    let work = Work::Collapse(Collapse::Start { weights: of_shard().collect() });
    let Answer::Collapsed(found) = case.answer(1, work) else { panic!("counts") };
    assert_all_close(&found.expectation.counts[1..], &own_counts[1..], 1e-11, "counts of the first pass");

    assert_close(decoded[0].log_z, sums.log_z, 1e-12, "log Z of decoding");
    let most = derivations.iter().map(|it| it.ln_weight(&case.logs)).fold(f64::NEG_INFINITY, f64::max);
    let constituents = |tree: &str| constituents(&case.grammar, &Tree::parse(tree).unwrap());
    let found = constituents(&decoded[0].trees[0]);
    let probability = |it: &Derivation| {
        let mut own = it.constituents.clone();
        own.sort_unstable();
        (own == found).then(|| it.ln_weight(&case.logs))
    };
    let found = derivations.iter().filter_map(probability).fold(f64::NEG_INFINITY, f64::max);
    assert_close(found, most, 1e-12, "the most probable tree");
    // The tree with the highest sum of posteriors of its constituents.
    let value = |own: &[(SymbolId, usize, usize)]| -> f64 {
        let posterior = |one: &(SymbolId, usize, usize)| -> f64 {
            let with =
                derivations.iter().zip(&sums.posteriors).filter(|(it, _)| it.constituents.contains(one));
            with.map(|(_, posterior)| posterior).sum()
        };
        own.iter().map(posterior).sum()
    };
    let found = constituents(&decoded[0].trees[1]);
    assert!(case.allows(&found), "{}", decoded[0].trees[1]);
    let most = derivations.iter().map(|it| value(&it.constituents)).fold(0.0, f64::max);
    assert_close(value(&found), most, 1e-11, "the sum of posteriors");

    for keep in [None, Some(Vec::new())] {
        let work = Work::Sample(Sample { weights: of_shard().collect(), stream: 11, keep });
        let Answer::Sampled(sampled) = case.answer(20, work) else { panic!("trees") };
        for (&drawn, expected) in sampled.counts.iter().zip(&own_counts).skip(1) {
            assert!(drawn == 0.0 || *expected > 0.0, "a rule that no agreeing tree has was drawn");
        }
        for analysis in &sampled.analyses {
            assert!(case.allows(&constituents(&analysis.tree)), "{}", analysis.tree);
        }
    }
}

/// Constituents of a tree, sorted.
pub fn constituents(grammar: &Grammar, tree: &Tree) -> Vec<(SymbolId, usize, usize)> {
    /// Adds those of the next node, and returns the number of terminals up to its end.
    fn add(
        nodes: &mut std::slice::Iter<'_, grammaton::grammar::tree::Node>,
        start: usize,
        found: &mut Vec<(String, usize, usize)>,
    ) -> usize {
        let node = nodes.next().expect("as many nodes as children");
        if node.n_children == 0 {
            return start + 1;
        }
        let end = (0..node.n_children).fold(start, |start, _| add(nodes, start, found));
        found.push((node.label.clone(), start, end));
        end
    }
    let mut found = Vec::new();
    add(&mut tree.nodes().iter(), 0, &mut found);
    let symbol =
        |(label, start, end): (String, usize, usize)| (grammar.symbol(&label).expect("a symbol"), start, end);
    let mut found: Vec<_> = found.into_iter().map(symbol).collect();
    found.sort_unstable();
    found
}

fn bracket(n: usize) -> impl Strategy<Value = Bracket> {
    (0..n, 1..=n, prop::collection::vec(0..3_u32, 0..3)).prop_map(move |(start, length, labels)| {
        let end = (start + length).min(n) as u32;
        Bracket { start: start as u32, end, labels: labels.into_iter().map(SymbolId).collect() }
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    /// Law: answers are those of the trees that agree, whatever is known, also if no tree agrees with all of it.
    #[test]
    fn known_constituents_agree_with_enumeration(
        (n, brackets) in (1..6_usize).prop_flat_map(|n| (Just(n), prop::collection::vec(bracket(n), 0..4))),
        letters in 0..32_u32,
        seed in 0..1000_u64,
    ) {
        let text: Vec<&str> = (0..n).map(|at| if letters >> at & 1 == 1 { "a" } else { "b" }).collect();
        assert_as_enumerated(&Case::new(&text.join(" "), brackets, seed));
    }
}

/// A label that is met in a chain of constituents over its span: at the top, below, or both of them. Without it no tree is left.
#[test]
fn a_label_is_that_of_any_constituent_in_a_chain() {
    let bracket = |labels: &[u32]| {
        let labels = labels.iter().copied().map(SymbolId).collect();
        Bracket { start: 1, end: 2, labels }
    };
    let n_of = |brackets: Vec<Bracket>| {
        let case = Case::new("a b", brackets, 1);
        assert_as_enumerated(&case);
        case.derivations().len()
    };
    // S → X X, X → b or X → Y → b; S → X → Y → X X.
    let all = n_of(Vec::new());
    let (with_x, with_y) = (n_of(vec![bracket(&[1])]), n_of(vec![bracket(&[2])]));
    assert!(with_x == all && 0 < with_y && with_y < all, "{all} {with_x} {with_y}");
    assert_eq!(n_of(vec![bracket(&[1]), bracket(&[2])]), with_y);
    assert_eq!(n_of(vec![bracket(&[1, 2])]), all);
    assert_eq!((n_of(vec![bracket(&[0])]), n_of(vec![bracket(&[0]), bracket(&[2])])), (0, 0));
}
