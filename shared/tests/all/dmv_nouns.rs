//! Adapted noun constituents: the same model without adaptors, and everything that adaptor grammars do with them.

use std::fs;
use std::sync::Arc;

use grammaton::data::dependency::{Punctuation, Tags, read, select};
use grammaton::data::tags::classes;
use grammaton::forest::Forest;
use grammaton::forest::Prepared;
use grammaton::forest::best;
use grammaton::forest::binary::Adapted;
use grammaton::forest::build::Builder;
use grammaton::forest::chains::Chains;
use grammaton::forest::inside::{Scratch, Weights, edge_posteriors, real};
use grammaton::forest::steps::{steps, tree};
use grammaton::grammar::ParamId;
use grammaton::grammar::lexicon::Lexicon;
use grammaton::grammar::tree::Tree;
use grammaton::grammar::{Grammar, StickId, SymbolId};
use grammaton::models::adaptor::hyper::Fit;
use grammaton::models::adaptor::start::{Start, base_weights};
use grammaton::models::decode::decode as decode_trees;
use grammaton::models::decode::{Decode, Decoder};
use grammaton::models::dmv::heads::check;
use grammaton::models::dmv::nouns::arcs::Reader;
use grammaton::models::dmv::nouns::{self, grammar, heads};
use grammaton::models::dmv::{Event, Layout, Side, Valence, decode};
use grammaton::num::Noise;
use grammaton::train::adaptor::{Settings, Trainer};
use grammaton::train::round::Step;
use grammaton::work::engine::Engine;

use crate::support::dependencies::{Model, all_trees, random_logs, random_tags};
use crate::support::{Run, assert_all_close, assert_close, choose, wide};

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
    Prepared::new(Arc::new(grammar(&tags, &nouns, 1.0).unwrap()), Lexicon::default())
}

/// The forest of a sentence whose phrases are any strings.
fn forest(prepared: &Prepared, numbers: &[u32]) -> (Vec<SymbolId>, Forest) {
    let names: Vec<String> = numbers.iter().map(|&tag| tags().0[tag as usize].clone()).collect();
    let tokens = tokens(&prepared.grammar, &names);
    let mut builder = Builder::new(&prepared.binary, &prepared.strings, Adapted::Rules);
    let forest = builder.build(0, &tokens).unwrap().expect("the grammar derives every sentence");
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
        let steps = steps(&prepared.binary, &forest, &derivation, &tokens, true, |_, _| {
            Ok::<_, std::convert::Infallible>(None)
        })
        .unwrap();
        let (names, found) = heads(&tree(&prepared.grammar, &steps)).unwrap();
        assert_eq!(found, expected.viterbi.1, "{what}");
        assert!(names.iter().zip(&numbers).all(|(name, &number)| *name == plain.tags[number as usize]));
    }
}

#[test]
fn every_tree_has_one_derivation() {
    let prepared = prepared();
    let ones = wide(&vec![0.0; prepared.grammar.space().n_params()]);
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

/// The weights of trees, from the definition: a noun and what is below it is a string of the stick, and of the trees that the
/// string can be, one in proportion to its weight; or, if `open`, any tree at the price of an escape.
struct Definition<'a> {
    names: &'a [String],
    prepared: &'a Prepared,
    layout: Layout,
    logs: &'a [f64],
    open: bool,
}

impl Definition<'_> {
    fn exp(&self, param: usize) -> f64 {
        self.logs[param].exp()
    }

    /// Of a word and all below it, by the rules of the model.
    fn by_rules(&self, tags: &[u32], heads: &[u32], word: usize) -> f64 {
        let weigh = |event: Event| self.exp(self.layout.param(event).index());
        let (head, mut weight) = (tags[word - 1], 1.0);
        for side in [Side::Left, Side::Right] {
            let mut valence = Valence::NoChild;
            let is_child =
                |&child: &usize| heads[child - 1] as usize == word && (child > word) == (side == Side::Right);
            for child in (1..=tags.len()).filter(is_child) {
                weight *= weigh(Event::Continue { head, side, valence });
                weight *= weigh(Event::Attach { head, side, child: tags[child - 1] });
                weight *= self.used(tags, heads, child);
                valence = Valence::HasChild;
            }
            weight *= weigh(Event::Stop { head, side, valence });
        }
        weight
    }

    /// Of a word and all below it, as a child or the root.
    fn used(&self, tags: &[u32], heads: &[u32], word: usize) -> f64 {
        let (grammar, lexicon) = (&self.prepared.grammar, &self.prepared.lexicon);
        let tag = tags[word - 1];
        let phrase = grammar.symbol(&format!("{}.phrase", self.names[tag as usize]));
        let Some(stick) = grammar.adapted().position(|adapted| Some(adapted) == phrase) else {
            return self.by_rules(tags, heads, word);
        };
        let below: Vec<usize> = (1..=tags.len()).filter(|&other| is_below(heads, other, word)).collect();
        let string: Vec<u32> = below.iter().map(|&at| tags[at - 1]).collect();
        let names: Vec<String> = string.iter().map(|&tag| self.names[tag as usize].clone()).collect();
        let as_tokens = tokens(grammar, &names);
        let is_string = |param: &ParamId| lexicon.string(grammar, *param).unwrap().1 == as_tokens.as_slice();
        let (own, base) = (self.by_rules(tags, heads, word), self.exp(self.layout.n_params() + stick));
        let as_string =
            lexicon.space(grammar).stick(StickId(stick as u32)).map(ParamId).find(is_string).map_or(
                0.0,
                |param| {
                    let trees = all_trees(string.len());
                    let roots = trees.iter().map(|heads| (heads, root(heads)));
                    let fit = roots.filter(|&(_, root)| string[root - 1] == tag);
                    let all: f64 = fit.map(|(heads, root)| base * self.by_rules(&string, heads, root)).sum();
                    self.exp(param.index()) * base * own / all
                },
            );
        let escape = lexicon.space(grammar).n_params() + stick;
        as_string + if self.open { self.exp(escape) * base * own } else { 0.0 }
    }

    fn tree(&self, tags: &[u32], heads: &[u32]) -> f64 {
        let root = root(heads);
        self.exp(self.layout.param(Event::Root(tags[root - 1])).index()) * self.used(tags, heads, root)
    }
}

fn root(heads: &[u32]) -> usize {
    1 + heads.iter().position(|&head| head == 0).unwrap()
}

/// Whether a word is another one or below it.
fn is_below(heads: &[u32], word: usize, other: usize) -> bool {
    let up = |&word: &usize| Some(heads[word - 1] as usize).filter(|&head| head != 0);
    std::iter::successors(Some(word), up).any(|above| above == other)
}

#[test]
fn arcs_are_those_of_the_trees_inside_of_strings() {
    let (names, nouns) = tags();
    let grammar = grammar(&names, &nouns, 1.0).unwrap();
    let sentences: Vec<Vec<u32>> = (0..12).map(|seed| random_tags(1 + seed as usize % 5, 4, seed)).collect();
    let named =
        |numbers: &Vec<u32>| numbers.iter().map(|&tag| names[tag as usize].clone()).collect::<Vec<_>>();
    let items: Vec<Vec<SymbolId>> =
        sentences.iter().map(|numbers| tokens(&grammar, &named(numbers))).collect();
    let lexicon = choose(&grammar, &items, 6, 0.0);
    let n_params = lexicon.space(&grammar).n_with_escapes();
    let prepared = Prepared::new(grammar, Arc::new(lexicon));
    let plain = Model::new(&names);
    let noise = Noise::new(4, 0);
    let mut logs: Vec<f64> = (0..n_params as u64).map(|at| 1.5 * noise.symmetric(at) - 1.5).collect();
    logs[0] = 0.0;
    let wide = wide(&logs);
    let real = real(&wide);
    for open in [false, true] {
        let mut reader = Reader::new(&prepared, Weights { wide: &wide, real: &real }, open);
        let definition =
            Definition { names: &names, prepared: &prepared, layout: plain.layout, logs: &logs, open };
        for (numbers, tokens) in sentences.iter().zip(&items) {
            let (n, what) = (numbers.len(), format!("{:?}, open: {open}", named(numbers)));
            let trees = all_trees(n);
            let weights: Vec<f64> = trees.iter().map(|heads| definition.tree(numbers, heads)).collect();
            let z: f64 = weights.iter().sum();
            let (found, arcs) = reader.arcs(tokens).unwrap().unwrap();
            assert_close(found.ln(), z.ln(), 1e-11, &what);
            for (head, child) in (0..=n).flat_map(|head| (1..=n).map(move |child| (head, child))) {
                let with_arc =
                    trees.iter().zip(&weights).filter(|(heads, _)| heads[child - 1] as usize == head);
                let expected = with_arc.map(|(_, weight)| weight).sum::<f64>() / z;
                assert_close(
                    arcs.posterior(head, child),
                    expected,
                    1e-11,
                    &format!("{what}: {head} → {child}"),
                );
            }
            let gain = |heads: &Vec<u32>| -> f64 {
                (1..).zip(heads).map(|(child, &head)| arcs.posterior(head as usize, child)).sum()
            };
            let best = trees.iter().map(gain).fold(0.0, f64::max);
            let (sum, heads) = decode::mbr(plain.layout, &plain.forest(numbers), &arcs);
            assert_close(sum, best, 1e-12, &what);
            assert!(check(n, &heads).is_ok());
        }
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
            start: Start::Uniform,
            samples: None,
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
            let weights =
                if open { trainer.params().decoding_weights(&grammar, &lexicon) } else { trainer.weights() };
            let decoders = vec![Decoder::Viterbi, Decoder::MbrTree, Decoder::MbrArcs];
            let with = Decode { weights, segments: Vec::new(), decoders, trees: true, spans: false, open };
            let given: Vec<&[SymbolId]> = items.iter().map(Vec::as_slice).collect();
            let mut n_strings = 0;
            for (decoded, expected) in decode_trees(&prepared, &with, &given).unwrap().iter().zip(&sentences)
            {
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

#[test]
fn with_base_weights_the_first_round_is_that_of_the_model() {
    let (sentences, tags, nouns) = corpus(30);
    let grammar = grammar(&tags, &nouns, 1.0).unwrap();
    let plain = Model::new(&tags);
    let numbers =
        |sentence: &Vec<String>| -> Vec<u32> { sentence.iter().map(|tag| plain.tag(tag).unwrap()).collect() };
    let numbers: Vec<Vec<u32>> = sentences.iter().map(numbers).collect();
    let items: Vec<Vec<SymbolId>> = numbers.iter().map(|tags| nouns::tokens(&grammar, tags)).collect();
    assert_eq!(nouns::tags(&grammar), Some(tags.clone()));
    assert_eq!(nouns::tags(&plain.prepared.grammar), Some(tags.clone()));
    let mut logs = random_logs(plain.layout, 3);
    let expected = plain.run(&numbers, 100).expect(&Engine::default(), &wide(&logs), false).log_z;
    logs.extend(vec![0.0; grammar.adapted().count()]);
    // Every noun constituent is on a stick.
    let lexicon = choose(&grammar, &items, 100_000, 0.0);
    let weights = base_weights(&grammar, &lexicon, &wide(&logs)).unwrap();
    let shards = Run::cut(&grammar, &lexicon, &items, 100, 1);
    let totals = shards.expect(&Engine::default(), &weights, false);
    // Strings are items too, each with what it weighs.
    let of_strings: f64 = weights[grammar.space().n_params()..].iter().map(|weight| weight.ln()).sum();
    assert_close(totals.log_z, expected + of_strings, 1e-10, "log Z");
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
        for param in lexicon.space(&grammar).stick(StickId(stick as u32)) {
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
