//! A task of every kind of work, with one sentence as long as is asked for.

use std::fmt::Write;
use std::sync::Arc;

use grammaton::data::treebank::{Classes, Treebank};
use grammaton::data::{Sentence, TreeMarks};
use grammaton::grammar::factors::ArcFactors;
use grammaton::grammar::groups::Groups;
use grammaton::grammar::lexicon::{Lexicon, StickStrings, Strings};
use grammaton::grammar::tree::Tree;
use grammaton::grammar::{Grammar, SymbolId};
use grammaton::models::decode::{Decode, Decoder};
use grammaton::models::dmv;
use grammaton::models::dmv::constraint::Component;
use grammaton::models::latent;
use grammaton::models::logistic_normal::{Multinomials, Prior, StopRule};
use grammaton::models::sampler::{Hyper, HyperPrior, Settings};
use grammaton::num::Wide;
use grammaton::work::engine::Engine;
use grammaton::work::shard::Shard;
use grammaton::work::task::{
    Annotate, Answer, ChainFrom, Collapse, Fit, Language, Lengths, Named, Pass, Sample, Sweeps, Task,
    Weighted, Work,
};

/// A task, its answer, and a name for messages.
pub struct Case {
    pub name: &'static str,
    pub task: Task,
    pub answer: Answer,
}

/// Tasks of every kind and of every way through it. Each has some short sentences and one of `n` tokens, whose forest has some n³/6 edges
/// or is read as often.
pub fn every_kind(n: usize) -> Vec<Case> {
    let mut cases = adaptor_grammar(n);
    cases.extend(dense_grammar(n));
    cases.extend(dependencies(n));
    cases.extend(treebank(n));
    cases
}

fn case(name: &'static str, language: Option<&Language>, shard: &Named<Shard>, work: Work) -> Case {
    let task = Task { language: language.cloned(), shard: shard.clone(), work, further: Vec::new() };
    let answer = Engine::default().run(&task).unwrap_or_else(|error| panic!("{name}: {error}"));
    Case { name, task, answer }
}

fn sentences(grammar: &Grammar, texts: &[String]) -> Named<Shard> {
    let sentence = |text: &String| Sentence::new(grammar.tokens(text).unwrap(), 2);
    Named::new(Shard::Sentences(texts.iter().map(sentence).collect()))
}

fn text(pattern: &str, n: usize) -> String {
    let names: Vec<&str> = pattern.split(' ').cycle().take(n).collect();
    names.join(" ")
}

fn adaptor_grammar(n: usize) -> Vec<Case> {
    let text_of = "1 1 S --> S S\n1 1 S --> W\nW --> L\n1 1 L --> L L\n1 1 L --> a\n1 1 L --> b\n";
    let grammar = super::grammar(text_of);
    let word = grammar.symbol("W").unwrap();
    let shard = sentences(&grammar, &[text("a b", 3), text("b a a", n), text("a", 2)]);
    let strings: Strings =
        ["a", "b", "a b", "b a", "a a b"].map(|text| grammar.tokens(text).unwrap()).iter().collect();
    let language = |strings: Strings| Language {
        grammar: Named::new(grammar.clone()),
        lexicon: Named::new(Lexicon { sticks: vec![StickStrings { symbol: word, strings }] }),
    };
    let (none, full) = (language(Strings::new()), language(strings));
    let n_params = full.n_params();
    let of_strings = Named::new(Shard::Strings(n_params as u32 - 5..n_params as u32));
    let weights = |n| (0..n).map(|at| Wide::from_f64(1.0 / (2.0 + at as f64))).collect::<Vec<_>>();
    let mut cases = vec![
        case("candidates", Some(&none), &shard, Work::Candidates(Lengths::all(u32::MAX))),
        case("cover", Some(&none), &shard, Work::Cover),
        case("index", Some(&full), &shard, Work::Index),
    ];
    let n_touched = |cases: &[Case]| match &cases.last().expect("an index was asked for").answer {
        Answer::Index(index) => index.params.len(),
        other => panic!("{other:?}"),
    };
    let touched = weights(n_touched(&cases));
    let expect = |weights: &[Wide]| Work::Expect { weights: weights.iter().copied().collect(), losses: true };
    cases.push(case("expect", Some(&full), &shard, expect(&touched)));
    cases.push(case("index of strings", Some(&full), &of_strings, Work::Index));
    let of_string = weights(n_touched(&cases));
    cases.push(case("expect of strings", Some(&full), &of_strings, expect(&of_string)));
    for (name, keep) in [("sample", None), ("sample of trees", Some(vec![word]))] {
        let sample = Sample { weights: touched.clone(), stream: 1, keep };
        cases.push(case(name, Some(&full), &shard, Work::Sample(sample)));
    }
    let start = Collapse::Start { weights: touched.clone() };
    cases.push(case("first collapsed pass", Some(&full), &shard, Work::Collapse(start)));
    let Some(Case { answer: Answer::Collapsed(first), .. }) = cases.last() else { unreachable!() };
    let others = Collapse::Others {
        pseudo: vec![0.5; touched.len()],
        sums: vec![2.0; Groups::new(&full.grammar.value, &full.lexicon.value).len()],
        temperature: 1.5,
        shard_state: Named::new(first.shard_state.clone()),
    };
    cases.push(case("collapsed pass", Some(&full), &shard, Work::Collapse(others)));
    let decode = Decode {
        weights: weights(n_params + 1),
        segments: vec![word],
        decoders: vec![Decoder::Viterbi, Decoder::Mbr, Decoder::MbrTree],
        trees: true,
        spans: true,
        open: true,
    };
    cases.push(case("decode", Some(&full), &shard, Work::Decode(Named::new(decode))));
    let hyper = Hyper { discount: 0.5, concentration: 1.0 };
    let sweeps = |from, keep| {
        let prior = HyperPrior { shape: 1.0, scale: 10.0 };
        let settings = Settings { temperature: 1.5, relabel: true, hyper: Some(prior) };
        let pseudo = vec![0.5; none.n_params()];
        Work::Sweep(Sweeps { from, n: 2, settings, pseudo, stream: 7, keep })
    };
    let start = |incremental| ChainFrom::Start { incremental, hyper };
    cases.push(case("first sweeps, at once", Some(&none), &shard, sweeps(start(false), None)));
    let first = sweeps(start(true), Some(vec![word]));
    cases.push(case("first sweeps, one by one", Some(&none), &shard, first));
    let Some(Case { answer: Answer::Chained(first), .. }) = cases.last() else { unreachable!() };
    let trees = first.analyses.iter().map(|analysis| analysis.tree.clone()).collect();
    let trees = ChainFrom::Trees { trees: Arc::new(trees), hyper };
    let state = ChainFrom::ShardState(Named::new(first.shard_state.clone()));
    cases.push(case("sweeps from trees", Some(&none), &shard, sweeps(trees, None)));
    cases.push(case("sweeps", Some(&none), &shard, sweeps(state, None)));
    cases
}

fn dense_grammar(n: usize) -> Vec<Case> {
    let mut text_of = String::new();
    for rule in 0..512 {
        writeln!(text_of, "1 1 N{} --> N{} N{}", rule / 64, rule / 8 % 8, rule % 8).unwrap();
    }
    (0..8).for_each(|parent| writeln!(text_of, "1 1 N{parent} --> a\n1 1 N{parent} --> b").unwrap());
    let grammar = super::grammar(&text_of);
    let shard = sentences(&grammar, &[text("a b", 5), text("b a a", n.min(40)), text("a", 7)]);
    let language = Language { grammar: Named::new(grammar), lexicon: Named::new(Lexicon::default()) };
    let mut cases = vec![case("dense index", Some(&language), &shard, Work::Index)];
    let weights = vec![Wide::from_f64(1.0 / 66.0); language.n_params()];
    let work = Work::Expect { weights: weights.iter().copied().collect(), losses: false };
    cases.push(case("dense expect", Some(&language), &shard, work));
    cases
}

fn dependencies(n: usize) -> Vec<Case> {
    let tags = ["NN", "VB", "DT"].map(str::to_owned);
    let factors = ArcFactors { crossing: -0.5, longer: vec![(2, -1.0)], ..ArcFactors::ones(tags.len()) };
    let grammar = dmv::grammar(&tags).unwrap().with_factors(Some(factors)).unwrap();
    let halves = |n: usize| -> Vec<SymbolId> {
        let tags: Vec<u32> = (0..n as u32).map(|word| word * word % 3).collect();
        dmv::nouns::tokens(&grammar, &tags)
    };
    let sentence = |n| Sentence::new(halves(n), 2);
    let marks = TreeMarks { heads: vec![None, Some(0), None], breaks: vec![1], ..TreeMarks::default() };
    let marked = sentence(3).with_marks(marks);
    let shard = Named::new(Shard::Sentences(vec![marked, sentence(n / 2), sentence(2)]));
    let multinomials = Multinomials::new(&grammar).unwrap();
    let prior = |range: std::ops::Range<usize>| Prior::independent(vec![0.5; range.len()]).unwrap();
    let priors: Vec<Prior> = multinomials.iter().map(prior).collect();
    let component = Component::built_in("short-dep").unwrap();
    let until = StopRule { tolerance: 1e-6, max_rounds: 5 };
    let fit = |components| Work::Fit(Named::new(Fit { priors: priors.clone(), until, components }));
    let language = Language { grammar: Named::new(grammar.clone()), lexicon: Named::new(Lexicon::default()) };
    let decode = Decode {
        weights: vec![Wide::from_f64(0.1); language.n_params()],
        segments: Vec::new(),
        decoders: vec![Decoder::MbrArcs],
        trees: true,
        spans: true,
        open: false,
    };
    vec![
        case("fit", Some(&language), &shard, fit(Vec::new())),
        case("fit of components", Some(&language), &shard, fit(vec![Weighted { component, weight: 0.25 }])),
        case("decode of arcs", Some(&language), &shard, Work::Decode(Named::new(decode))),
    ]
}

fn treebank(n: usize) -> Vec<Case> {
    const N_SUBTYPES: usize = 12;
    let long = (0..4 * n).fold("(N a)".to_owned(), |inner, _| format!("(S (N b) {inner})"));
    let trees = ["(ROOT (S (N a) (V (V b) (N c))))", &format!("(ROOT {long})"), "(ROOT (N a))"];
    let trees = trees.map(|text| Tree::parse(text).unwrap());
    let Treebank { rules, derivations, .. } = Treebank::new(&trees, 0, Classes::Generic);
    let weights = Arc::new(latent::start(&rules, &latent::Layout::new(&rules, N_SUBTYPES), 0.01, 1));
    let shard = Named::new(Shard::Trees { rules, trees: latent::Shard { trees: derivations } });
    let annotate = |pass| Work::Annotate(Annotate { n_subtypes: N_SUBTYPES, pass });
    let mut cases = vec![
        case("annotate", None, &shard, annotate(Pass::Expect { weights: weights.clone() })),
        case("first collapsed pass over trees", None, &shard, annotate(Pass::Begin { weights })),
    ];
    let Some(Case { answer: Answer::Annotated(first), .. }) = cases.last() else { unreachable!() };
    let shard_state = first.shard_state.clone().expect("counts are kept");
    let others = Pass::Others {
        totals: Arc::new(first.expectation.counts.clone()),
        alpha: 0.1,
        shard_state: Named::new(shard_state),
    };
    cases.push(case("collapsed pass over trees", None, &shard, annotate(others)));
    cases
}
