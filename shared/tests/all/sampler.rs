//! Chains: how they start, stop, go on, and what is read from them.

use std::sync::Arc;

use grammaton::data::Sentence;
use grammaton::forest::Prepared;
use grammaton::grammar::ParamId;
use grammaton::grammar::lexicon::Lexicon;
use grammaton::grammar::tree::Tree;
use grammaton::grammar::{Grammar, RuleId, SymbolId};
use grammaton::models::sampler::start::{self, StartError};
use grammaton::models::sampler::state::{Choice, TableId};
use grammaton::models::sampler::{Chain, Hyper, HyperPrior, Items, Prior, Settings, Start, State};
use grammaton::num::random::stream;
use grammaton::train::anneal::Anneal;
use grammaton::train::chain;
use grammaton::train::round::Step;
use grammaton::train::trainer::{self, Collect, Trainer as _};
use grammaton::work::engine::Engine;
use grammaton::work::task::{Answer, Chained, ShardState, Sweeping, Sweeps, Work};

use crate::support::world::{hyper, items, items_of};
use crate::support::{self, Run, assert_close, draw};

const ALL: Settings =
    Settings { temperature: 1.0, relabel: true, hyper: Some(HyperPrior { shape: 1.0, scale: 10.0 }) };
const TREES: Settings = Settings { temperature: 1.0, relabel: false, hyper: None };

/// Words of letters, and collocations of words.
const COLLOC: &str = "1 1 S --> C\n1 1 S --> C S\n1 0.3 2 C --> Ws\n1 1 Ws --> W\n0.5 1 Ws --> W Ws\n1 0.4 3 W --> L\n\
                      1 1 L --> V\n2 1 L --> V L\n1 1 V --> a\n1 1 V --> b\n0.5 1 V --> c\n0.5 1 V --> d\n";

fn corpus(grammar: &Grammar, n: usize) -> Vec<Vec<SymbolId>> {
    let mut sentences = draw(grammar, 3 * n, 5);
    sentences.retain(|sentence| sentence.len() < 15);
    sentences.truncate(n);
    sentences
}

fn begin<'a>(items: &'a Items, prior: &'a Prior, grammar: &Grammar, from: Start) -> Chain<'a> {
    Chain::start(items, prior, &hyper(grammar), from, &mut stream(1, 0, 0)).unwrap()
}

#[test]
fn a_chain_that_goes_on_draws_the_same_bits() {
    let grammar = support::grammar(COLLOC);
    let (items, prior) =
        (items_of(&grammar, &corpus(&grammar, 40)), Prior::new(&grammar, &support::lexicon(&grammar, &[])));
    for from in [Start::Batch, Start::Incremental] {
        let mut undisturbed = begin(&items, &prior, &grammar, from);
        let mut state = undisturbed.state();
        for round in 0..6 {
            let expected = undisturbed.sweep(&ALL, &mut stream(1, 0, round));
            let config = bincode::config::standard();
            let bytes = bincode::serde::encode_to_vec(&state, config).unwrap();
            let (read, _): (State, usize) = bincode::serde::decode_from_slice(&bytes, config).unwrap();
            let mut resumed = Chain::resume(&items, &prior, &read).unwrap();
            let found = resumed.sweep(&ALL, &mut stream(1, 0, round));
            assert_eq!(found, expected, "round {round}");
            state = resumed.state();
        }
        assert_eq!(state, undisturbed.state());
        assert_eq!(Chain::resume(&items, &prior, &state).unwrap().uses(), undisturbed.uses());
    }
}

#[test]
fn proposals_are_accepted_and_the_posterior_rises() {
    let grammar = support::grammar(COLLOC);
    let (items, prior) =
        (items_of(&grammar, &corpus(&grammar, 150)), Prior::new(&grammar, &support::lexicon(&grammar, &[])));
    let mut chain = begin(&items, &prior, &grammar, Start::Batch);
    let first = chain.log_joint();
    let mut last = None;
    for round in 0..30 {
        last = Some(chain.sweep(&ALL, &mut stream(2, 0, round)));
    }
    let last = last.unwrap();
    assert!(last.log_posterior > first + 50.0, "{} after {first}", last.log_posterior);
    for moves in [last.trees, last.labels] {
        let share = moves.accepted as f64 / moves.proposed as f64;
        assert!(share > 0.97, "accepted {share} of {moves:?}");
        assert!(moves.changed <= moves.accepted);
    }
    assert_eq!(last.trees.proposed, items.occurrences().len() as u64);
    assert!(last.trees.changed > 10, "nothing moves: {last:?}");
}

#[test]
fn a_chain_that_is_all_but_frozen_climbs() {
    let grammar = support::grammar(COLLOC);
    let items = items_of(&grammar, &corpus(&grammar, 40));
    let prior = Prior::new(&grammar, items.lexicon());
    let mut chain = begin(&items, &prior, &grammar, Start::Batch);
    let mut before = chain.log_joint();
    let frozen = Settings { temperature: 1e-4, relabel: true, hyper: None };
    for round in 0..10 {
        let after = chain.sweep(&frozen, &mut stream(5, 0, round)).log_posterior;
        assert!(after > before - 1.0, "{after} after {before}");
        before = after;
    }
    chain.state().check(&items).unwrap();
}

#[test]
fn a_dirichlet_process_stays_one() {
    let grammar = support::grammar("1 1 S --> W\n1 1 S --> W S\n1 0 2 W --> L\n1 1 L --> a\n1 1 L --> a L\n");
    let (items, prior) =
        (items(&grammar, &["a a a", "a a"]), Prior::new(&grammar, &support::lexicon(&grammar, &[])));
    let mut chain = begin(&items, &prior, &grammar, Start::Incremental);
    let before = chain.state().hyper[0];
    chain.sweep(&ALL, &mut stream(4, 0, 0));
    let after = chain.state().hyper[0];
    assert_eq!(after.discount, 0.0);
    assert_ne!(after.concentration, before.concentration);
}

#[test]
fn given_trees_are_the_start() {
    let grammar = support::grammar(COLLOC);
    let texts = [
        "(S (C (Ws (W (L (V a))) (Ws (W (L (V a)))))) (S (C (Ws (W (L (V b)))))))",
        "(S (C (Ws (W (L (V b))))))",
        "(S (C (Ws (W (L (V a) (L (V b)))))))",
    ];
    let trees = texts.map(|text| Tree::parse(text).unwrap());
    let sentences = ["a a b", "b", "a b"];
    let (items, prior) =
        (items(&grammar, &sentences), Prior::new(&grammar, &support::lexicon(&grammar, &[])));
    let mut chain = begin(&items, &prior, &grammar, Start::Trees(&trees));
    for (occurrence, text) in texts.iter().enumerate() {
        assert_eq!(chain.tree(occurrence).unwrap().to_string(), *text);
    }
    // Equal subtrees share a table: C over `b` is one of two customers, W over `b` is counted in it alone.
    let of = |chain: &mut Chain, name: &str, string: &str| {
        let (symbol, string) = (grammar.symbol(name).unwrap(), support::tokens(&grammar, string));
        let state = chain.state();
        let uses = state.uses(state.check(&items).unwrap());
        let found = uses.into_iter().find(|uses| (uses.symbol, &uses.string) == (symbol, &string));
        found.map_or((0, 0), |uses| (uses.customers, uses.tables))
    };
    assert_eq!(
        [of(&mut chain, "C", "b"), of(&mut chain, "W", "b"), of(&mut chain, "W", "a")],
        [(2, 1), (1, 1), (2, 1)]
    );
    assert_eq!(of(&mut chain, "W", "c"), (0, 0));
    let rule = |text: &str| {
        let rules = support::grammar(COLLOC).rules;
        let written = |rule: &grammaton::grammar::Rule| {
            let children: Vec<&str> = rule.children.iter().map(|&child| grammar.name(child)).collect();
            format!("{} {}", grammar.name(rule.parent), children.join(" ")) == text
        };
        ParamId::of_rule(RuleId::at(rules.iter().position(written).unwrap()))
    };
    // S and Ws once in each tree's part that is not shared, letters once per word.
    assert_eq!([rule("S C"), rule("V a"), rule("V b")].map(|param| chain.uses()[param.index()]), [3, 2, 2]);
    // Many tables or few, states of the same trees go on the same way.
    let state = chain.state();
    state.check(&items).unwrap();
    assert_eq!(Chain::resume(&items, &prior, &state).unwrap().state(), state);
}

#[test]
fn trees_of_something_else_are_refused() {
    let grammar = support::grammar(COLLOC);
    let (items, prior) = (items(&grammar, &["a"]), Prior::new(&grammar, &support::lexicon(&grammar, &[])));
    let refused = |trees: &[&str]| {
        let trees: Vec<Tree> = trees.iter().map(|text| Tree::parse(text).unwrap()).collect();
        let start = Start::Trees(&trees);
        Chain::start(&items, &prior, &hyper(&grammar), start, &mut stream(1, 0, 0)).err().unwrap()
    };
    let other = StartError::OtherSentence { tree: 0 };
    assert_eq!(refused(&[]), StartError::Number { found: 0, expected: 1 });
    assert_eq!(refused(&["(S (C (Ws (W (L (V b))))))"]), other);
    assert_eq!(refused(&["(S (C (Ws (W (L (V e))))))"]), other);
    assert_eq!(refused(&["a"]), other);
    assert_eq!(refused(&["(C (Ws (W (L (V a)))))"]), other);
    assert_eq!(refused(&["(S (C (W (L (V a)))))"]).to_string(), "tree 0: no rule rewrites `C` as `W`");
}

#[test]
fn long_words_of_a_long_sentence_are_named() {
    let grammar = support::grammar("1 1 S --> W\n1 1 S --> W S\nW --> L\n1 1 L --> a\n1 1 L --> a L\n");
    let n = 150;
    let letters = |n: usize| (1..n).fold("(L a)".to_owned(), |inner, _| format!("(L a {inner})"));
    let (items, prior) =
        (items(&grammar, &[&"a ".repeat(n)]), Prior::new(&grammar, &support::lexicon(&grammar, &[])));
    let started = |first: usize| {
        let words = [first, 60, n - first - 60].map(|n| format!("(W {})", letters(n)));
        let tree = Tree::parse(&format!("(S {} (S {} (S {})))", words[0], words[1], words[2])).unwrap();
        let start = Start::Trees(&[tree]);
        Chain::start(&items, &prior, &hyper(&grammar), start, &mut stream(1, 0, 0)).err()
    };
    assert_eq!(started(60), None);
    let symbol = "W".to_owned();
    assert_eq!(started(70), Some(StartError::LongYield { tree: 0, symbol, found: 70 }));
}

#[test]
fn a_table_of_a_word_that_one_sentence_has_is_not_in_two() {
    let grammar = support::grammar("1 1 S --> W\n1 1 S --> W S\nW --> L\n1 1 L --> a\n1 1 L --> a L\n");
    let word =
        |n: usize| format!("(W {})", (1..n).fold("(L a)".to_owned(), |inner, _| format!("(L a {inner})")));
    // In the sentence of 140 symbols no word has more than 64.
    let texts = [format!("(S {} (S {} (S {})))", word(60), word(60), word(20)), format!("(S {})", word(80))];
    let trees = texts.map(|text| Tree::parse(&text).unwrap());
    let (items, prior) = (
        items(&grammar, &[&"a ".repeat(140), &"a ".repeat(80)]),
        Prior::new(&grammar, &support::lexicon(&grammar, &[])),
    );
    let mut state = begin(&items, &prior, &grammar, Start::Trees(&trees)).state();
    assert!(Chain::resume(&items, &prior, &state).is_ok());
    // Words of 80 and 60 in the place of 60, 60 and 20.
    state.tables = vec![state.tables[2].clone(), state.tables[0].clone()];
    let [long_word, word] = [0, 1].map(|table| Choice::Table(TableId(table)));
    let (goes_on, ends) = (state.trees[0][0], state.trees[0][4]);
    state.trees = vec![vec![goes_on, long_word, ends, word], vec![ends, long_word]];
    let refused = Chain::resume(&items, &prior, &state).err().expect("the state is refused");
    assert_eq!(refused.to_string(), "a string that is in one place has a table in two");
}

#[test]
fn states_of_something_else_are_refused() {
    let grammar = support::grammar(COLLOC);
    let (items, prior) =
        (items(&grammar, &["a b", "a a", "a b"]), Prior::new(&grammar, &support::lexicon(&grammar, &[])));
    let state = begin(&items, &prior, &grammar, Start::Incremental).state();
    assert!(state.check(&items).is_ok());
    let n_tables = state.tables.len() as u32;
    let table = |number: u32| Choice::Table(TableId(number));
    let first = |state: &State| {
        let choices = state.trees[0].iter().position(|choice| matches!(choice, Choice::Table(_)));
        choices.expect("a sentence has a collocation")
    };
    type Change<'c> = (&'c str, &'c dyn Fn(&mut State));
    let changes: [Change; 14] = [
        ("a tree too few", &|state| drop(state.trees.pop())),
        ("a process too many", &|state| state.hyper.push(state.hyper[0])),
        ("no discount", &|state| state.hyper[0].discount = 1.0),
        ("no concentration", &|state| state.hyper[0].concentration = f64::NAN),
        ("trees of each other", &|state| state.trees.swap(0, 1)),
        ("no tree", &|state| state.trees[0].clear()),
        ("a choice too few", &|state| state.trees[0].truncate(1)),
        ("a choice too many", &|state| state.trees[0].push(table(0))),
        ("a table that there is not", &|state| {
            let at = first(state);
            state.trees[0][at] = table(n_tables);
        }),
        ("a table that is its own", &|state| {
            let last = state.tables.len() - 1;
            state.tables[last].label[0] = table(last as u32);
        }),
        ("a parameter that there is not", &|state| state.trees[0][0] = Choice::Param(ParamId(1000))),
        ("the constant parameter", &|state| state.trees[0][0] = Choice::Param(ParamId::ONE)),
        ("a table of no adapted nonterminal", &|state| state.tables[0].symbol = Grammar::START),
        ("a table without customers", &|state| state.tables.push(state.tables[0].clone())),
    ];
    for (what, change) in changes {
        let mut changed = state.clone();
        change(&mut changed);
        let error = changed.check(&items).err();
        assert!(error.is_some(), "{what}: {changed:?}");
        assert_eq!(Chain::resume(&items, &prior, &changed).err(), error);
    }
}

#[test]
fn every_occurrence_has_a_tree_and_sentences_without_derivations_have_none() {
    let grammar = support::grammar(COLLOC);
    let prepared = Prepared::new(grammar.clone(), support::lexicon(&grammar, &[]));
    let sentence = |text, multiplicity| Sentence::new(support::tokens(&grammar, text), multiplicity);
    // S is no token, but a sentence may be anything.
    let items =
        Items::new(Arc::new(prepared), &[sentence("a b", 3), sentence("S", 2), sentence("c", 1)]).unwrap();
    assert_eq!(items.occurrences(), [0, 0, 0, 1, 1, 2]);
    assert_eq!(items.unparsable(), [1]);
    let prior = Prior::new(&grammar, &support::lexicon(&grammar, &[]));
    let mut chain = begin(&items, &prior, &grammar, Start::Batch);
    let sweep = chain.sweep(&ALL, &mut stream(6, 0, 0));
    assert_eq!(sweep.trees.proposed, 4);
    let words: Vec<Option<String>> =
        (0..6).map(|at| chain.tree(at).map(|tree| tree.terminals().collect::<Vec<_>>().concat())).collect();
    let word = |text: &str| Some(text.to_owned());
    assert_eq!(words, [word("ab"), word("ab"), word("ab"), None, None, word("c")]);
    chain.state().check(&items).unwrap();
}

#[test]
fn long_sentences_need_neither_range_nor_stack() {
    let grammar = support::grammar("1 1 S --> X\n1 1 S --> X S\n1 1 X --> a\n1 1 X --> Y\n1 1 Y --> a\n");
    let (items, prior) = (
        items(&grammar, &["a ".repeat(3000).as_str()]),
        Prior::new(&grammar, &support::lexicon(&grammar, &[])),
    );
    let mut chain = begin(&items, &prior, &grammar, Start::Batch);
    let sweep = chain.sweep(&TREES, &mut stream(7, 0, 0));
    assert_eq!(sweep.trees.proposed, 1);
    assert!(sweep.log_posterior < -2000.0, "{}", sweep.log_posterior);
    assert_eq!(chain.tree(0).unwrap().terminals().count(), 3000);
    chain.state().check(&items).unwrap();
}

#[test]
fn the_start_symbol_and_recursive_nonterminals_may_be_adapted() {
    let grammar = support::grammar("1 0.5 1 S --> a\n1 0.5 1 S --> S S\n1 0.5 1 S --> b\n");
    let (items, prior) = (
        items(&grammar, &["a b a b", "a b", "a b a"]),
        Prior::new(&grammar, &support::lexicon(&grammar, &[])),
    );
    let mut chain = begin(&items, &prior, &grammar, Start::Incremental);
    for round in 0..200 {
        chain.sweep(&ALL, &mut stream(8, 0, round));
        chain.state().check(&items).unwrap();
    }
    assert_eq!(chain.tree(1).unwrap().to_string(), "(S (S a) (S b))");
}

/// Shards that see each other's counts as they were before the round, as several machines do.
#[test]
fn shards_of_a_pcfg_stay_close_to_one_chain() {
    let grammar = support::grammar(
        "1 1 S --> W\n1 1 S --> W S\n0.1 1 W --> a\n0.1 1 W --> a b\n0.1 1 W --> b\n0.1 1 W --> b a\n0.1 1 W --> a a\n",
    );
    let sentences = corpus(&grammar, 120);
    let prior = Prior::new(&grammar, &support::lexicon(&grammar, &[]));
    let n_params = grammar.space().n_params();
    let run = |n_shards: usize, seed: u64| -> (Vec<f64>, f64) {
        let shards: Vec<Items> = sentences
            .chunks(sentences.len().div_ceil(n_shards))
            .map(|part| items_of(&grammar, part))
            .collect();
        let mut states: Vec<State> = shards
            .iter()
            .map(|items| {
                let start = Chain::start(items, &prior, &[], Start::Batch, &mut stream(seed, 0, 0));
                start.unwrap().state()
            })
            .collect();
        let mut uses: Vec<Vec<f64>> = shards
            .iter()
            .zip(&states)
            .map(|(items, state)| as_floats(Chain::resume(items, &prior, state).unwrap().uses()))
            .collect();
        let (mut means, mut mean_joint, n) = (vec![0.0; n_params], 0.0, 1000);
        let totals = |uses: &[Vec<f64>]| -> Vec<f64> {
            (0..n_params).map(|param| uses.iter().map(|uses| uses[param]).sum()).collect()
        };
        for round in 0..n + 100 {
            let before = totals(&uses);
            for (shard, items) in shards.iter().enumerate() {
                let others: Vec<f64> = before.iter().zip(&uses[shard]).map(|(all, own)| all - own).collect();
                let prior = prior.clone().with_others(&others);
                let mut chain = Chain::resume(items, &prior, &states[shard]).unwrap();
                chain.sweep(&TREES, &mut stream(seed, shard as u64, round));
                (states[shard], uses[shard]) = (chain.state(), as_floats(chain.uses()));
            }
            if round >= 100 {
                let after = totals(&uses);
                means.iter_mut().zip(&after).for_each(|(mean, uses)| *mean += uses / n as f64);
                let after: Vec<u32> = after.iter().map(|&uses| uses as u32).collect();
                mean_joint += prior.log_joint(&after) / n as f64;
            }
        }
        (means, mean_joint)
    };
    let (one, joint) = run(1, 1);
    for (n_shards, seed) in [(1, 2), (4, 3)] {
        let (several, its_joint) = run(n_shards, seed);
        println!("{n_shards} shards: {several:.1?} {its_joint:.2}, one: {one:.1?} {joint:.2}");
        for (found, expected) in several.iter().zip(&one) {
            assert!((found - expected).abs() < 0.1 * expected + 3.0, "{several:?}, one shard {one:?}");
        }
        assert!((its_joint - joint).abs() < 5.0, "{its_joint}, one shard {joint}");
    }
}

fn as_floats(uses: &[u32]) -> Vec<f64> {
    uses.iter().map(|&uses| f64::from(uses)).collect()
}

#[test]
fn defaults_are_for_what_the_grammar_leaves_open() {
    let grammar = support::grammar("1 1 S --> A B\n1 0.2 A --> a\nB --> b\n");
    let found = start::hyper(&grammar, Hyper { discount: 0.5, concentration: 7.0 });
    let concentrations: Vec<(f64, f64)> = found.iter().map(|h| (h.discount, h.concentration)).collect();
    assert_close(concentrations[0].0, 0.2, 1e-15, "given");
    assert_eq!((concentrations[0].1, concentrations[1]), (7.0, (0.5, 7.0)));
}

/// The substrings of the corpus as rules, and as strings that are found in a trie.
#[test]
fn substrings_are_as_good_as_written_out() {
    let words = "1 1 S --> X\n1 1 S --> X X\n";
    let sentences = ["a b a", "a b", "b a"];
    let strings = ["a", "a b", "a b a", "b", "b a"];
    let written: String = strings.iter().map(|string| format!("0.1 1 X --> {string}\n")).collect();
    let written = support::grammar(&format!("{words}{written}"));
    let found = support::grammar(&format!("{words}0.1 1 X --> <substrings>\n")).with_vocabulary(["a", "b"]);
    let run = |grammar: &Grammar| {
        let tokens: Vec<_> = sentences.iter().map(|text| support::tokens(grammar, text)).collect();
        let lexicon = Lexicon::substrings(grammar, &tokens, usize::MAX).unwrap();
        let prepared = Arc::new(Prepared::new(grammar.clone(), lexicon.clone()));
        let sentence = |tokens: &Vec<SymbolId>| Sentence::new(tokens.clone(), 1);
        let items = Items::new(prepared, &tokens.iter().map(sentence).collect::<Vec<_>>()).unwrap();
        let prior = Prior::new(grammar, &lexicon);
        let given =
            ["(S (X a) (X b a))", "(S (X a b))", "(S (X b a))"].map(|text| Tree::parse(text).unwrap());
        let mut chain = begin(&items, &prior, grammar, Start::Trees(&given));
        let joint = chain.log_joint();
        let (mut whole, n) = (0.0, 20_000);
        for round in 0..n {
            chain.sweep(&TREES, &mut stream(9, 0, round));
            let trees = (0..3).filter(|&at| chain.tree(at).unwrap().to_string().starts_with("(S (X a b"));
            whole += trees.count() as f64 / n as f64;
        }
        (joint, whole)
    };
    let ((joint, whole), (same_joint, same_whole)) = (run(&written), run(&found));
    assert_close(same_joint, joint, 1e-12, "log joint");
    assert!(
        (same_whole - whole).abs() < 0.05,
        "{same_whole} sentences begin with `a b`, written out {whole}"
    );
}

/// Law: a round asks each shard for its sweeps until none is left, and for no others; what a shard sees of the others stays as it was when
/// the round began.
#[test]
fn a_round_goes_on_until_no_sweep_is_left() {
    let grammar = support::grammar(COLLOC);
    let lexicon = support::lexicon(&grammar, &[]);
    let run = Run::cut(&grammar, &lexicon, &corpus(&grammar, 20), 60, 1);
    let (engine, n_shards) = (Engine::default(), run.shards.len());
    let settings = chain::Settings {
        start: chain::Start::Batch,
        hyper: Hyper { discount: 0.5, concentration: 1.0 },
        draw_hyper: None,
        relabel: true,
        sweeps: 5,
        anneal: Anneal::default(),
        seed: 1,
        run: 0,
    };
    let alpha = Prior::new(&grammar, &lexicon).pseudo;
    let mut trainer =
        chain::Trainer::new(Arc::new(grammar), &lexicon, alpha, settings, chain::State::default());
    // The first shard makes two sweeps at a time.
    let answer = |shard: usize, mut sweeps: Sweeps| {
        let n = sweeps.n;
        sweeps.n = if shard == 0 { n.min(2) } else { n };
        let left = n - sweeps.n;
        let Answer::Chained(chained) = run.answer(&engine, &run.shards[shard], Work::Sweep(sweeps)) else {
            panic!("sweeps were asked for")
        };
        let ShardState::Chain(state) = &chained.shard_state else { panic!("a few sweeps are a task") };
        let state = state.clone();
        match left {
            0 => chained,
            _ => Chained {
                shard_state: ShardState::Sweeping(Sweeping { state, random: [7, 7], left }),
                strings: Vec::new(),
                analyses: Vec::new(),
                ..chained
            },
        }
    };
    let collect = Collect { segments: Some(Vec::new()), as_sample: true };
    for round in 1..=3 {
        let mut asked = Vec::new();
        let mut of_first: Option<Vec<f64>> = None;
        let mut n_proposed = 0;
        let step =
            trainer::round(&mut trainer, &vec![Arc::default(); n_shards], collect.clone(), |shard, work| {
                let Work::Sweep(sweeps) = work else { panic!("sweeps are asked for") };
                asked.push((shard, sweeps.n));
                if shard == 0 {
                    assert_eq!(of_first.get_or_insert_with(|| sweeps.pseudo.clone()), &sweeps.pseudo);
                }
                let chained = answer(shard, sweeps);
                n_proposed += chained.trees.proposed;
                Answer::Chained(chained)
            });
        let Step::Next(report) = step.unwrap() else { panic!("the round ends") };
        let all = (0..n_shards).map(|shard| (shard, 5));
        assert_eq!(asked, all.chain([(0, 3), (0, 1)]).collect::<Vec<_>>());
        assert_eq!((report.moves.unwrap().proposed, trainer.past().rounds), (n_proposed, round));
        assert!(
            trainer.report().samples.iter().all(|of_shard| !of_shard.is_empty()),
            "samples of all shards"
        );
    }
    // An answer without a sweep is refused.
    trainer.begin(collect);
    let shards = vec![Arc::default(); n_shards];
    let Work::Sweep(sweeps) = trainer.ask(&shards).unwrap().work(0, &[], None) else { unreachable!() };
    let none = |left| {
        let chained = answer(0, Sweeps { n: 3, ..sweeps.clone() });
        let ShardState::Sweeping(sweeping) = chained.shard_state else { panic!("one is left") };
        Answer::Chained(Chained {
            shard_state: ShardState::Sweeping(Sweeping { left, ..sweeping }),
            ..chained
        })
    };
    assert!(!trainer.add(&shards, 0..1, none(5)).unwrap() && trainer.add(&shards, 0..1, none(4)).unwrap());
    assert!(!trainer.add(&shards, 0..1, none(4)).unwrap());
}
