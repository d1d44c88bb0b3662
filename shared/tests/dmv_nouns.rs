//! Adapted noun constituents: the same model without adaptors, and everything that adaptor grammars do with them.

mod support;

use std::fs;
use std::sync::Arc;

use shared::adaptor::decode::decode;
use shared::adaptor::hyper::Fit;
use shared::adaptor::vb::{Settings, Trainer};
use shared::compute::{Engine, Prepared};
use shared::dependency::{Punctuation, Tags, read, select};
use shared::dmv::classes;
use shared::dmv::heads::check;
use shared::dmv::nouns::{grammar, heads};
use shared::forest::Forest;
use shared::forest::best;
use shared::forest::binary::Adapted;
use shared::forest::build::Builder;
use shared::forest::chains::Chains;
use shared::forest::inside::{Scratch, Weights, edge_posteriors, real};
use shared::forest::steps::{steps, tree};
use shared::grammar::{Grammar, SymbolId};
use shared::num::Noise;
use shared::round::Step;
use shared::shard::{Lexicon, ParamId};
use shared::task::{Decode, Decoder};
use shared::tree::Tree;
use support::dependencies::{Model, all_trees, random_logs, random_tags};
use support::{Run, assert_all_close, assert_close, choose, wide};

/// Tags, and which of them are nouns.
fn tags() -> (Vec<String>, Vec<bool>) {
    (["NN", "VB", "NNS", "IN"].map(str::to_owned).to_vec(), vec![true, false, true, false])
}

fn tokens(grammar: &Grammar, tags: &[String]) -> Vec<SymbolId> {
    let halves = tags.iter().flat_map(|tag| ["<", ">"].map(|half| format!("{tag}{half}")));
    halves.map(|name| grammar.symbol(&name).expect("a tag of the grammar")).collect()
}

fn prepared() -> Prepared {
    let (tags, nouns) = tags();
    Prepared::new(Arc::new(grammar(&tags, &nouns, 1.0).unwrap()), Arc::new(Lexicon::default()))
}

/// The forest of a sentence whose phrases are any strings.
fn forest(prepared: &Prepared, numbers: &[u32]) -> (Vec<SymbolId>, Forest) {
    let names: Vec<String> = numbers.iter().map(|&tag| tags().0[tag as usize].clone()).collect();
    let tokens = tokens(&prepared.grammar, &names);
    let mut builder = Builder::new(&prepared.binary, &prepared.strings, Adapted::Rules);
    let forest = builder.build(0, &tokens).expect("the grammar derives every sentence");
    (tokens, forest)
}

#[test]
fn without_adaptors_it_is_the_model() {
    let (prepared, plain) = (prepared(), Model::new(&tags().0));
    let n_phrases = prepared.grammar.adapted().count();
    for (n, seed) in (1..=7).flat_map(|n| (0..4).map(move |seed| (n, seed))) {
        let what = format!("{n} words, seed {seed}");
        let (numbers, mut logs) = (random_tags(n, 4, seed), random_logs(plain.layout, seed));
        let expected = plain.parse(&numbers, &wide(&logs)).unwrap();
        let counts = plain
            .run(std::slice::from_ref(&numbers), 100)
            .expect(&Engine::default(), &wide(&logs), false)
            .counts;

        // The rules of phrases come last.
        logs.extend(vec![0.0; n_phrases]);
        let (tokens, forest) = forest(&prepared, &numbers);
        let (weights, mut found) = (wide(&logs), vec![0.0; logs.len()]);
        let weights = Weights { wide: &weights, real: &real(&weights) };
        let z = edge_posteriors(&forest, &weights, &mut Scratch::default(), |_, edge, posterior| {
            found[edge.param as usize] += posterior;
        });
        assert_close(z.ln(), expected.log_z, 1e-12, &what);
        assert_all_close(&found[1..counts.len()], &counts[1..], 1e-11, &what);
        let (weight, derivation) = best::viterbi(&forest, weights.wide).unwrap();
        assert_close(weight.ln(), expected.viterbi.0, 1e-12, &what);
        let steps = steps(&prepared.binary, &forest, &derivation, &tokens, true, |_, _| None);
        let (names, found) = heads(&tree(&prepared.grammar, &steps)).unwrap();
        assert_eq!(found, expected.viterbi.1, "{what}");
        assert!(names.iter().zip(&numbers).all(|(name, &number)| *name == plain.tags[number as usize]));
    }
}

#[test]
fn every_tree_has_one_derivation() {
    let prepared = prepared();
    let ones = wide(&vec![0.0; 1 + prepared.grammar.rules.len()]);
    let weights = Weights { wide: &ones, real: &real(&ones) };
    for n in 1..=5 {
        let (_, forest) = forest(&prepared, &random_tags(n, 4, n as u64));
        let z = edge_posteriors(&forest, &weights, &mut Scratch::default(), |_, _, _| {});
        assert_close(z.ln(), (all_trees(n).len() as f64).ln(), 1e-12, &format!("{n} words"));
    }
}

#[test]
fn forests_are_cubic() {
    let prepared = prepared();
    for n in (1..=20).chain([60]) {
        let (_, forest) = forest(&prepared, &(0..n as u32).map(|at| at % 4).collect::<Vec<_>>());
        let n_edges = Chains::default().fold(&forest, u32::MAX).edges.len();
        // Other tags have what they have without phrases; two nouns are attached on two sides; phrases are put together.
        let expected = (4 + 2 * 2 + 1) * ((n + 2) * (n + 1) * n / 6) + n;
        assert!(n_edges <= expected, "{n} words: {n_edges} edges, {expected}");
    }
}

/// The tags of short sentences of the example, and which of all tags are nouns.
fn corpus(n: usize) -> (Vec<Vec<String>>, Vec<String>, Vec<bool>) {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../examples/dependency/train.conllu");
    let sentences = read(&fs::read(path).unwrap(), path, Tags::Upos).unwrap();
    let sentences = select(&sentences, Punctuation::Removed, 7).sentences;
    let sentences: Vec<Vec<String>> = sentences.into_iter().take(n).map(|sentence| sentence.tags).collect();
    let mut tags: Vec<String> = sentences.iter().flatten().cloned().collect();
    tags.sort();
    tags.dedup();
    let nouns = classes::among(&tags, &["noun", "proper"].map(str::to_owned), "nouns").unwrap();
    (sentences, tags, nouns)
}

#[test]
fn sticks_are_trained_and_trees_printed_down_to_the_tokens() {
    let (sentences, tags, nouns) = corpus(60);
    let grammar = grammar(&tags, &nouns, 1.0).unwrap();
    let of_sentence = |tags: &Vec<String>| tokens(&grammar, tags);
    let items: Vec<Vec<SymbolId>> = sentences.iter().map(of_sentence).collect();
    for (truncation, select_by_bound) in [(20, false), (200, true)] {
        let lexicon = choose(&grammar, &items, truncation, 0.0);
        assert!(lexicon.sticks.iter().all(|stick| !stick.strings.is_empty()));
        let settings = Settings {
            pitman_yor: true,
            select_by_bound,
            drop_share: 0.2,
            resort: true,
            fit: Fit { concentration: true, discount: true, alpha: true },
            discount: 0.1,
            concentration: 1.0,
            growth: None,
            tolerance: 0.0,
            jitter: 0.0,
        };
        let run = Run::new(&grammar, &lexicon, &items);
        let (shared_grammar, shared_lexicon) = (Arc::new(grammar.clone()), Arc::new(lexicon.clone()));
        let mut trainer =
            Trainer::new(shared_grammar.clone(), shared_lexicon.clone(), settings, Noise::new(1, 0));
        let engine = Engine::default();
        let mut bounds: Vec<f64> = Vec::new();
        while bounds.len() < 8 {
            // That a bound that fell is an error is the trainer's own law.
            let totals = run.expect(&engine, &trainer.weights(), trainer.wants_losses());
            if let Step::Next(report) = trainer.absorb(totals).unwrap_or_else(|error| panic!("{error}")) {
                bounds.extend(report.bound);
            }
        }
        assert!(bounds.windows(2).all(|pair| pair[1] >= pair[0] - 1e-9 * pair[0].abs()), "{bounds:?}");
        assert!(bounds[7] > bounds[0] + 10.0, "{bounds:?}");

        let prepared = Prepared::new(shared_grammar, shared_lexicon);
        for open in [false, true] {
            let weights = match open {
                false => trainer.weights(),
                true => trainer.params().decoding_weights(&grammar, &lexicon),
            };
            let decoders = vec![Decoder::Viterbi, Decoder::MbrTree];
            let with = Decode { weights, segments: Vec::new(), decoders, trees: true, open };
            let given: Vec<&[SymbolId]> = items.iter().map(Vec::as_slice).collect();
            let mut n_strings = 0;
            for (decoded, expected) in decode(&prepared, &with, &given).iter().zip(&sentences) {
                for text in &decoded.trees {
                    let tree = Tree::parse(text).unwrap();
                    n_strings += tree.nodes().iter().filter(|node| node.label.ends_with(".phrase")).count();
                    let (tags, heads) = heads(&tree).unwrap_or_else(|error| panic!("{error}: {text}"));
                    assert_eq!((&tags, check(tags.len(), &heads)), (expected, Ok(())), "{text}");
                }
            }
            assert!(n_strings > sentences.len(), "phrases are printed");
        }
    }
}

/// A string of a stick is a noun constituent: halves in pairs, its own tag among them.
#[test]
fn candidates_are_noun_constituents() {
    let (sentences, tags, nouns) = corpus(40);
    let grammar = grammar(&tags, &nouns, 1.0).unwrap();
    let items: Vec<Vec<SymbolId>> = sentences.iter().map(|tags| tokens(&grammar, tags)).collect();
    let lexicon = choose(&grammar, &items, 50, 0.0);
    for (stick, strings) in lexicon.sticks.iter().enumerate() {
        let noun = grammar.name(strings.symbol).strip_suffix(".phrase").unwrap();
        for param in lexicon.params(&grammar, stick) {
            let (_, string) = lexicon.string(&grammar, ParamId(param)).unwrap();
            let names: Vec<&str> = string.iter().map(|&token| grammar.name(token)).collect();
            let words: Vec<&str> =
                names.iter().step_by(2).map(|name| name.strip_suffix('<').unwrap()).collect();
            assert!(
                names.iter().skip(1).step_by(2).zip(&words).all(|(name, word)| *name == format!("{word}>"))
            );
            assert!(words.contains(&noun), "{names:?} of {noun}");
        }
    }
}
