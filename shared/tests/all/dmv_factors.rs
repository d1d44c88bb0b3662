//! Factors of arcs and known heads against enumeration: every answer is that of all trees that agree, each weighed by the product of its factors.

use grammaton::data::{Sentence, TreeMarks};
use grammaton::grammar::factors::ArcFactors;
use grammaton::grammar::lexicon::Lexicon;
use grammaton::grammar::tree::Tree;
use grammaton::models::decode::{Decode, Decoder};
use grammaton::models::dmv::heads::heads;
use grammaton::models::logistic_normal::{Multinomials, Prior, StopRule};
use grammaton::num::{Noise, Wide};
use grammaton::work::engine::Engine;
use grammaton::work::shard::Shard;
use grammaton::work::task::{Answer, Collapse, Fit, Fitted, Index, Language, Named, Sample, Task, Work};
use proptest::prelude::*;

use crate::support::dependencies::{Model, all_trees, events, random_logs, random_tags};
use crate::support::{assert_all_close, assert_close, wide};

const N_TAGS: usize = 3;

/// A model whose grammar has random factors, a sentence, what is known of it, and log weights by parameter.
struct Case {
    model: Model,
    factors: ArcFactors,
    tags: Vec<u32>,
    marks: TreeMarks,
    logs: Vec<f64>,
}

/// All trees of a case that agree with the marks: the positions of their parameters, and their weights with factors.
struct Enumerated {
    trees: Vec<Vec<u32>>,
    weights: Vec<f64>,
}

impl Case {
    /// A sentence of `n` words; heads are known by `known`, out of all trees.
    fn new(n: usize, seed: u64, known: Option<(usize, u32)>) -> Case {
        let noise = Noise::new(seed, 7);
        let mut at = 0;
        let mut number = || {
            at += 1;
            1.5 * noise.symmetric(at)
        };
        let mut factors = ArcFactors::ones(N_TAGS);
        factors.roots.iter_mut().for_each(|root| *root = number());
        factors.arcs.as_flattened_mut().iter_mut().for_each(|arc| *arc = number());
        // Some pairs have none.
        factors.arcs[2] = [0.0; 2];
        factors.crossing = number();
        factors.longer = vec![(1, number()), (2, number())];
        let model = Model::new(&(0..N_TAGS).map(|tag| format!("T{tag}")).collect::<Vec<_>>());
        let tags = random_tags(n, N_TAGS, seed);
        let heads = match known {
            None => Vec::new(),
            Some((tree, which)) => {
                let trees = all_trees(n);
                let heads = trees[tree % trees.len()].iter().zip(0..);
                heads.map(|(&head, at)| (which >> at & 1 == 1).then_some(head)).collect()
            }
        };
        let breaks = (1..n as u32).filter(|at| noise.symmetric(100 + u64::from(*at)) > 0.3).collect();
        let logs = random_logs(model.layout, seed);
        Case { model, factors, tags, marks: TreeMarks { heads, breaks, ..TreeMarks::default() }, logs }
    }

    /// The factor of a tree, from the definition.
    fn ln_factor(&self, heads: &[u32]) -> f64 {
        let Case { factors, tags, marks, .. } = self;
        let arc = |(child, &head): (usize, &u32)| {
            let (tag, head) = (tags[child - 1] as usize, head as usize);
            if head == 0 {
                return factors.roots[tag];
            }
            let of_tags = factors.arcs[tags[head - 1] as usize * N_TAGS + tag];
            let between = head.min(child)..head.max(child);
            let crosses = marks.breaks.iter().any(|&at| between.contains(&(at as usize)));
            let length = head.abs_diff(child);
            of_tags[usize::from(child > head)]
                + if crosses { factors.crossing } else { 0.0 }
                + if length > 1 { factors.longer[0].1 } else { 0.0 }
                + if length > 2 { factors.longer[1].1 } else { 0.0 }
        };
        (1..).zip(heads).map(arc).sum()
    }

    fn params(&self, heads: &[u32]) -> Vec<usize> {
        events(self.model.layout, &self.tags, heads)
            .into_iter()
            .map(|event| self.model.layout.param(event).index())
            .collect()
    }

    fn enumerated(&self) -> Enumerated {
        let agrees = |heads: &Vec<u32>| {
            self.marks.heads.iter().zip(heads).all(|(known, head)| known.is_none() || *known == Some(*head))
        };
        let trees: Vec<Vec<u32>> = all_trees(self.tags.len()).into_iter().filter(agrees).collect();
        let weight = |heads: &Vec<u32>| {
            let rules: f64 = self.params(heads).into_iter().map(|at| self.logs[at]).sum();
            (rules + self.ln_factor(heads)).exp()
        };
        let weights = trees.iter().map(weight).collect();
        Enumerated { trees, weights }
    }

    fn task(&self, multiplicity: u32, work: Work) -> Task {
        let grammar = self.model.prepared.grammar.as_ref().clone();
        let grammar = grammar.with_factors(Some(self.factors.clone())).unwrap();
        let sentence = Sentence::new(self.model.layout.tokens(&self.tags), multiplicity);
        let sentence = sentence.with_marks(self.marks.clone());
        Task {
            language: Some(Language {
                grammar: Named::new(grammar),
                lexicon: Named::new(Lexicon::default()),
            }),
            shard: Named::new(Shard::Sentences(vec![sentence])),
            work,
            further: Vec::new(),
        }
    }

    fn answer(&self, multiplicity: u32, work: Work) -> Answer {
        Engine::default().run(&self.task(multiplicity, work)).unwrap()
    }

    fn index(&self) -> Index {
        let Answer::Index(index) = self.answer(1, Work::Index) else { panic!("an index") };
        index
    }
}

impl Enumerated {
    fn z(&self) -> f64 {
        self.weights.iter().sum()
    }

    /// Expected uses of the parameters `of` a tree.
    fn counts(&self, n: usize, of: impl Fn(&[u32]) -> Vec<usize>) -> Vec<f64> {
        let mut counts = vec![0.0; n];
        for (heads, weight) in self.trees.iter().zip(&self.weights) {
            of(heads).into_iter().for_each(|at| counts[at] += weight / self.z());
        }
        counts
    }
}

#[track_caller]
fn assert_as_enumerated(case: &Case, what: &str) {
    let expected = case.enumerated();
    let index = case.index();
    assert_eq!(index.unparsable.is_empty(), !expected.trees.is_empty(), "{what}");
    let counts = expected.counts(case.logs.len(), |heads| case.params(heads));
    let weights = wide(&case.logs);
    let of_shard: Vec<Wide> = index.params.iter().map(|param| weights[param.index()]).collect();
    let own_counts: Vec<f64> = index.params.iter().map(|param| counts[param.index()]).collect();

    let work = Work::Expect { weights: of_shard.iter().copied().collect(), losses: false };
    let Answer::Expectation(found) = case.answer(1, work) else { panic!("an expectation") };
    assert_close(found.log_z, expected.z().ln(), 1e-12, what);
    assert_all_close(&found.counts[1..], &own_counts[1..], 1e-11, what);

    // The first pass of collapsed variational Bayes has the same weights.
    let work = Work::Collapse(Collapse::Start { weights: of_shard.clone() });
    let Answer::Collapsed(found) = case.answer(1, work) else { panic!("counts") };
    assert_close(found.expectation.log_z, expected.z().ln(), 1e-12, what);
    assert_all_close(&found.expectation.counts[1..], &own_counts[1..], 1e-11, what);

    let decoders = vec![Decoder::Viterbi, Decoder::MbrArcs];
    let with = Decode { weights, segments: Vec::new(), decoders, trees: true, spans: false, open: true };
    let Answer::Decoded(decoded) = case.answer(1, Work::Decode(Named::new(with))) else { panic!("a parse") };
    let found: Vec<Vec<u32>> =
        decoded[0].trees.iter().map(|tree| heads(&Tree::parse(tree).unwrap()).unwrap().1).collect();
    assert_close(decoded[0].log_z, expected.z().ln(), 1e-12, what);
    let place = |heads: &Vec<u32>| expected.trees.iter().position(|tree| tree == heads).expect(what);
    let most = expected.weights.iter().copied().fold(0.0, f64::max);
    assert_close(expected.weights[place(&found[0])], most, 1e-12, what);
    let n = case.tags.len();
    let arcs =
        |heads: &[u32]| (1..).zip(heads).map(|(child, &head)| head as usize * (n + 1) + child).collect();
    let posteriors = expected.counts((n + 1) * (n + 1), arcs);
    let gain = |heads: &Vec<u32>| -> f64 { arcs(heads).into_iter().map(|at: usize| posteriors[at]).sum() };
    let most = expected.trees.iter().map(gain).fold(0.0, f64::max);
    assert_close(gain(&found[1]), most, 1e-11, what);
    place(&found[1]);
}

#[test]
fn factors_agree_with_enumeration() {
    for (n, seed) in (1..=5).flat_map(|n| (0..8).map(move |seed| (n, seed))) {
        assert_as_enumerated(&Case::new(n, seed, None), &format!("{n} words, seed {seed}"));
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Law: with some heads known, answers are those of the trees that agree.
    #[test]
    fn known_heads_agree_with_enumeration(n in 1..=5usize, seed in 0..1000u64, tree in 0..143usize, which in 0..32u32) {
        assert_as_enumerated(&Case::new(n, seed, Some((tree, which))), &format!("{n} words, seed {seed}"));
    }
}

/// Law: drawn trees are as frequent as they are probable, whether the trees are returned or only counted.
#[test]
fn drawn_trees_are_as_frequent_as_they_are_probable() {
    let case = Case::new(4, 3, Some((5, 0b0010)));
    let expected = case.enumerated();
    assert!(expected.trees.len() > 3);
    let index = case.index();
    let weights = wide(&case.logs);
    let counts = expected.counts(case.logs.len(), |heads| case.params(heads));
    const N: u32 = 4000;
    for keep in [None, Some(Vec::new())] {
        let of_shard = index.params.iter().map(|param| weights[param.index()]).collect();
        let with_trees = keep.is_some();
        let work = Work::Sample(Sample { weights: of_shard, stream: 11, keep });
        let Answer::Sampled(sampled) = case.answer(N, work) else { panic!("trees") };
        for (param, &uses) in index.params.iter().zip(&sampled.counts).skip(1) {
            let (found, expected) = (uses / f64::from(N), counts[param.index()]);
            assert!((found - expected).abs() < 0.05, "{found}, expected {expected}");
        }
        assert_eq!(sampled.analyses.len(), if with_trees { N as usize } else { 0 });
        for analysis in &sampled.analyses {
            let found = heads(&Tree::parse(&analysis.tree).unwrap()).unwrap().1;
            assert!(expected.trees.contains(&found), "{found:?}");
        }
    }
}

/// Law: with all heads known, factors add the logarithm of that tree's to the bound of a sentence that is fitted to logistic-normal priors.
#[test]
fn factors_raise_the_bound_of_a_fitted_sentence() {
    for (seed, scale) in (0..6).flat_map(|seed| [(seed, 1.0), (seed, -60.0)]) {
        let mut case = Case::new(5, seed, Some((17 * seed as usize, 0b11111)));
        // Far out of the range of floating-point numbers.
        case.factors.roots.iter_mut().for_each(|root| *root *= scale);
        let multinomials = Multinomials::new(&case.model.prepared.grammar).unwrap();
        let prior = |range: std::ops::Range<usize>| Prior::independent(vec![0.5; range.len()]).unwrap();
        let priors: Vec<Prior> = multinomials.iter().map(prior).collect();
        let until = StopRule { tolerance: 1e-6, max_rounds: 5 };
        let fit = Fit { priors, until, components: Vec::new() };
        let bound = |case: &Case| match case.answer(1, Work::Fit(Named::new(fit.clone()))) {
            Answer::Fitted(Fitted::Statistics(statistics)) => statistics.bound,
            other => panic!("{other:?}"),
        };
        let (with, tree) = (bound(&case), case.enumerated().trees.remove(0));
        let ln_factor = case.ln_factor(&tree);
        case.factors = ArcFactors::ones(N_TAGS);
        assert_close(with - bound(&case), ln_factor, 1e-10, &format!("seed {seed}"));
    }
}

/// Known heads that no projective tree has leave the sentence without a derivation; it is reported and not counted.
#[test]
fn heads_without_a_tree_are_reported() {
    let mut case = Case::new(4, 1, None);
    // 1 → 3 and 2 → 4 cross.
    case.marks.heads = vec![None, None, Some(1), Some(2)];
    assert_eq!(case.index().unparsable, [0]);
    let with = Decode {
        weights: wide(&case.logs),
        segments: Vec::new(),
        decoders: vec![Decoder::MbrArcs],
        trees: true,
        spans: false,
        open: true,
    };
    let Answer::Decoded(decoded) = case.answer(1, Work::Decode(Named::new(with))) else { panic!("a parse") };
    assert_eq!(decoded[0].log_z, f64::NEG_INFINITY);
}

#[test]
fn factors_of_other_grammars_are_refused() {
    let grammar = Model::new(&["N", "V"].map(str::to_owned)).prepared.grammar.as_ref().clone();
    assert!(grammar.clone().with_factors(Some(ArcFactors::ones(2))).is_ok());
    for wrong in [
        ArcFactors::ones(3),
        ArcFactors { crossing: f64::NAN, ..ArcFactors::ones(2) },
        ArcFactors { longer: vec![(1, 101.0)], ..ArcFactors::ones(2) },
    ] {
        let error = grammar.clone().with_factors(Some(wrong)).unwrap_err().to_string();
        assert!(error.starts_with("factors of arcs must be finite"), "{error}");
    }
}
