//! Equal tasks have equal answers, independent of the engine's caches, and nearly independent of the cut of the corpus.

use grammaton::data::Sentence;
use grammaton::grammar::ParamId;
use grammaton::grammar::lexicon::{Lexicon, StickStrings, Strings};
use grammaton::grammar::{Grammar, SymbolId};
use grammaton::models::decode::{Decode, Decoder};
use grammaton::num::Wide;
use grammaton::num::tree_sum::{MAX_LEVEL, groups};
use grammaton::train::round::{Summing, Totals, in_use};
use grammaton::work::counts::union;
use grammaton::work::engine::{ComputeError, Engine};
use grammaton::work::shard::Shard;
use grammaton::work::task::{Answer, Language, Lengths, Named, Task, TaskWeights, WeightsInUse, Work};

use crate::support::{self, Run, assert_all_close, assert_close, choose, draw};

fn setting() -> (Grammar, Lexicon, Vec<Vec<SymbolId>>) {
    let grammar = support::grammar(
        "1 1 S --> Cs\n1 1 Cs --> C\n1 1 Cs --> C Cs\nC --> Ws\n2 1 Ws --> W\n1 1 Ws --> W Ws\nW --> Ls\n\
         2 1 Ls --> L\n1 1 Ls --> L Ls\n1 1 L --> a\n1 1 L --> b\n1 1 L --> c\n",
    );
    let mut sentences = draw(&grammar, 150, 4);
    sentences.retain(|sentence| sentence.len() <= 14);
    let lexicon = choose(&grammar, &sentences, 120, 0.0);
    (grammar, lexicon, sentences)
}

/// Weights by parameter, those that `gone` accepts zero.
fn weights(grammar: &Grammar, lexicon: &Lexicon, gone: impl Fn(usize) -> bool) -> Vec<Wide> {
    let weight = |at: usize| match at {
        0 => Wide::ONE,
        _ if gone(at) => Wide::ZERO,
        _ => Wide::from_ln(-(at as f64 * 1.3).sin().abs() - 0.2),
    };
    (0..lexicon.space(grammar).n_params()).map(weight).collect()
}

/// Strings of more than one symbol that are not among every `nth`.
fn long_strings<'a>(grammar: &'a Grammar, lexicon: &'a Lexicon, nth: usize) -> impl Fn(usize) -> bool + 'a {
    move |at| {
        let string = lexicon.string(grammar, ParamId(at as u32));
        at % nth != 0 && string.is_some_and(|(_, string)| string.len() > 1)
    }
}

fn bits(totals: &Totals) -> Vec<u64> {
    let values = [&totals.counts, &totals.losses, &totals.log_z_strings];
    values.into_iter().flatten().chain([&totals.log_z]).map(|value| value.to_bits()).collect()
}

#[test]
fn the_cut_changes_no_more_than_rounding() {
    let (grammar, lexicon, sentences) = setting();
    let weights = weights(&grammar, &lexicon, |_| false);
    let expect = |symbols, strings| {
        Run::cut(&grammar, &lexicon, &sentences, symbols, strings).expect(&Engine::default(), &weights, true)
    };
    let whole = expect(u32::MAX, 100_000);
    for (symbols, strings) in [(1, 1), (30, 7), (200, 50)] {
        let cut = expect(symbols, strings);
        assert_close(cut.log_z, whole.log_z, 1e-12, "log Z");
        assert_all_close(&cut.counts, &whole.counts, 1e-12, "counts");
        assert_all_close(&cut.log_z_strings, &whole.log_z_strings, 1e-12, "log Z of strings");
        for (&cut, &whole) in cut.losses.iter().zip(&whole.losses) {
            assert!(cut == whole || (cut - whole).abs() < 1e-6, "losses {cut} and {whole}");
        }
    }
}

#[test]
fn caches_of_an_engine_change_no_bit() {
    let (grammar, lexicon, sentences) = setting();
    let run = Run::new(&grammar, &lexicon, &sentences);
    let other = Run::new(&grammar, &choose(&grammar, &sentences, 20, 0.2), &sentences);
    let kept = Engine::default();
    let folder = tempfile::tempdir().unwrap();
    let spilled = Engine::with_memory(0).spilling_to(folder.path());
    let n_files = || std::fs::read_dir(folder.path()).unwrap().count();
    // The last one of each kind is in use for the rest; then some come back.
    let schedule = [1000, 3, 5, 7, 7, 5, 2, 3, 1000, 1];
    for (round, nth) in schedule.into_iter().enumerate() {
        let weights = weights(&grammar, &lexicon, long_strings(&grammar, &lexicon, nth));
        let expected = run.expect(&Engine::default(), &weights, true);
        assert!(expected.log_z.is_finite() && expected.missing.is_empty());
        let without = Engine::with_memory(0);
        for (what, engine) in [("kept", &kept), ("spilled", &spilled), ("without memory", &without)] {
            let found = run.expect(engine, &weights, true);
            assert_eq!(bits(&found), bits(&expected), "{what}, round {round}, every {nth}");
        }
        assert_eq!(
            n_files(),
            run.shards.len() + if [5, 6].contains(&round) { other.shards.len() } else { 0 }
        );
        match round {
            // What is damaged or gone is built anew.
            2 => std::fs::read_dir(folder.path()).unwrap().for_each(|file| {
                std::fs::write(file.unwrap().path(), "damaged").unwrap();
            }),
            6 => std::fs::read_dir(folder.path()).unwrap().for_each(|file| {
                std::fs::remove_file(file.unwrap().path()).unwrap();
            }),
            _ => {}
        }
        // Another lexicon in between.
        if round == 4 {
            let n = other.lexicon.value.space(&grammar).n_params();
            other.expect(&kept, &vec![Wide::ONE; n], false);
            other.expect(&spilled, &vec![Wide::ONE; n], false);
            assert_eq!(n_files(), run.shards.len() + other.shards.len());
        }
    }
}

#[test]
fn little_memory_keeps_some_shards_and_changes_no_bit() {
    let (grammar, lexicon, sentences) = setting();
    let run = Run::cut(&grammar, &lexicon, &sentences, 20, 10);
    let weights = weights(&grammar, &lexicon, |_| false);
    let expected = bits(&run.expect(&Engine::default(), &weights, true));
    let engine = Engine::with_memory(20_000);
    for _ in 0..3 {
        assert_eq!(bits(&run.expect(&engine, &weights, true)), expected);
    }
}

#[test]
fn models_that_take_turns_change_no_bit() {
    let (grammar, lexicon, sentences) = setting();
    let short = choose(&grammar, &sentences, 20, 0.2);
    let models = [&lexicon, &short].map(|lexicon| {
        (Run::cut(&grammar, lexicon, &sentences, 20, 10), weights(&grammar, lexicon, |_| false))
    });
    let alone = models.each_ref().map(|(run, weights)| bits(&run.expect(&Engine::default(), weights, true)));
    for engine in [Engine::default(), Engine::with_memory(20_000)] {
        for _ in 0..3 {
            for ((run, weights), alone) in models.iter().zip(&alone) {
                assert_eq!(&bits(&run.expect(&engine, weights, true)), alone);
            }
        }
    }
}

#[test]
fn threads_share_an_engine() {
    let (grammar, lexicon, sentences) = setting();
    let run = Run::new(&grammar, &lexicon, &sentences);
    let rounds: Vec<Vec<Wide>> =
        [1000, 3, 1].map(|nth| weights(&grammar, &lexicon, long_strings(&grammar, &lexicon, nth))).into();
    let expected: Vec<_> = rounds.iter().map(|w| bits(&run.expect(&Engine::default(), w, true))).collect();
    let engine = Engine::default();
    std::thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| {
                for (weights, expected) in rounds.iter().zip(&expected) {
                    assert_eq!(&bits(&run.expect(&engine, weights, true)), expected);
                }
            });
        }
    });
}

#[test]
fn tasks_that_cannot_be_done_say_so() {
    let (grammar, lexicon, sentences) = setting();
    let run = Run::new(&grammar, &lexicon, &sentences);
    let engine = Engine::default();
    let task = |shard: usize, work| {
        let (grammar, lexicon) = (run.grammar.clone(), run.lexicon.clone());
        Task {
            language: Some(Language { grammar, lexicon }),
            shard: run.shards[shard].clone(),
            work,
            further: Vec::new(),
        }
    };
    let strings = run.shards.len() - 1;
    for work in [Work::Cover, Work::Candidates(Lengths::all(3))] {
        assert_eq!(engine.run(&task(strings, work)), Err(ComputeError::NotSentences));
    }
    let Ok(Answer::Index(index)) = engine.run(&task(0, Work::Index)) else { panic!("an index") };
    let expected = index.params.len();
    let work = Work::Expect { weights: [Wide::ONE; 2].into_iter().collect(), losses: false };
    assert_eq!(engine.run(&task(0, work)), Err(ComputeError::Weights { found: 2, expected }));
    let decode = Decode {
        weights: vec![Wide::ONE; 3],
        segments: Vec::new(),
        decoders: vec![Decoder::Viterbi],
        trees: false,
        spans: true,
        open: true,
    };
    let expected = lexicon.space(&grammar).n_params() + 2;
    let found = engine.run(&task(0, Work::Decode(Named::new(decode))));
    assert_eq!(found, Err(ComputeError::Weights { found: 3, expected }));
    let bare = Language { grammar: run.grammar.clone(), lexicon: Named::new(Lexicon::default()) };
    let bare = Task { language: Some(bare), ..task(strings, Work::Index) };
    assert!(matches!(engine.run(&bare), Err(ComputeError::NoSuchStrings { .. })));
    let without = Task { language: None, ..task(0, Work::Index) };
    assert_eq!(engine.run(&without), Err(ComputeError::NoGrammar));
}

/// Law: the answer of a group of shards is the sum of theirs over the tree, bit for bit; so a round has the same bits by any groups, with
/// strings out of use, losses, much or little memory, and weights of its own or shared ones.
#[test]
fn groups_of_shards_have_the_bits_of_their_shards() {
    let (grammar, lexicon, sentences) = setting();
    let run = Run::cut(&grammar, &lexicon, &sentences, 20, 10);
    let is_sentences = |shard: &&Named<Shard>| matches!(*shard.value, Shard::Sentences(_));
    let (n, n_sentences) = (run.shards.len(), run.shards.iter().filter(is_sentences).count());
    assert!(n_sentences > 8 && n > n_sentences + 2, "{n_sentences} of {n} shards");
    let index = |shard| match run.answer(&Engine::default(), shard, Work::Index) {
        Answer::Index(index) => index.params,
        _ => unreachable!(),
    };
    let indexes: Vec<Vec<ParamId>> = run.shards.iter().map(index).collect();
    let all: Vec<usize> = (0..n).collect();
    for nth in [1000, 3, 1] {
        let weights = weights(&grammar, &lexicon, long_strings(&grammar, &lexicon, nth));
        let shared = Named::new(weights.iter().copied().collect::<WeightsInUse>());
        let round = |engine: &Engine, level, is_shared: bool| {
            let (of_sentences, of_strings) = all.split_at(n_sentences);
            let mut sums = Summing::new(weights.len(), true);
            for group in [groups(of_sentences, level), groups(of_strings, level)].concat() {
                let params = union(indexes[group.clone()].iter().map(Vec::as_slice));
                let local = if is_shared {
                    TaskWeights::Shared {
                        all: shared.clone(),
                        n_touched: params.len() as u32,
                        n_in_use: in_use(&weights, &params).count() as u32,
                    }
                } else {
                    params.iter().map(|param| weights[param.index()]).collect()
                };
                let task = Task {
                    language: Some(Language { grammar: run.grammar.clone(), lexicon: run.lexicon.clone() }),
                    shard: run.shards[group.start].clone(),
                    further: run.shards[group.start + 1..group.end].to_vec(),
                    work: Work::Expect { weights: local, losses: true },
                };
                let Ok(Answer::Expectation(found)) = engine.run(&task) else { panic!("no answer") };
                let strings = run.shards[group.clone()].iter().filter_map(|shard| shard.value.strings());
                let strings = strings.cloned().reduce(|first, last| first.start..last.end);
                assert!(sums.add(group.start, strings.as_ref(), in_use(&weights, &params), found));
            }
            bits(&sums.finish())
        };
        let expected = round(&Engine::default(), 0, false);
        for level in 0..=MAX_LEVEL {
            for engine in [Engine::default(), Engine::with_memory(0), Engine::with_memory(20_000)] {
                for is_shared in [false, true] {
                    assert_eq!(round(&engine, level, is_shared), expected, "level {level}, every {nth}");
                }
            }
        }
    }
}

/// Law: what any shard of a group lacks, the group lacks.
#[test]
fn a_group_lacks_what_its_shards_lack() {
    let grammar =
        support::grammar("1 1 S --> W\n1 1 S --> W S\nW --> L\n1 1 L --> a\n1 1 L --> b\n1 1 L --> L L\n");
    let word = grammar.symbol("W").unwrap();
    let strings: Strings = ["a", "b"].map(|text| grammar.tokens(text).unwrap()).iter().collect();
    let lexicon = Lexicon { sticks: vec![StickStrings { symbol: word, strings }] };
    let language = Language { grammar: Named::new(grammar.clone()), lexicon: Named::new(lexicon) };
    let shard = |text| Named::new(Shard::Sentences(vec![Sentence::new(grammar.tokens(text).unwrap(), 1)]));
    let shards = ["a a", "b a", "a b"].map(shard);
    let run = |shard: &Named<Shard>, further: &[Named<Shard>], work: Work| {
        let task =
            Task { language: Some(language.clone()), shard: shard.clone(), further: further.to_vec(), work };
        Engine::default().run(&task)
    };
    let indexes: Vec<Vec<ParamId>> = shards
        .iter()
        .map(|shard| match run(shard, &[], Work::Index) {
            Ok(Answer::Index(index)) => index.params,
            _ => unreachable!(),
        })
        .collect();
    let params = union(indexes.iter().map(Vec::as_slice));
    let out = ParamId(language.n_params() as u32 - 1);
    let weight = |param: &ParamId| if *param == out { Wide::ZERO } else { Wide::from_f64(0.25) };
    let work = Work::Expect { weights: params.iter().map(weight).collect(), losses: false };
    let Ok(Answer::Expectation(found)) = run(&shards[0], &shards[1..], work.clone()) else { panic!() };
    assert_eq!(found.missing, [out]);
    // Weights of the first shard alone are too few.
    let few = Work::Expect { weights: indexes[0].iter().map(weight).collect(), losses: false };
    assert!(run(&shards[0], &shards[1..], few).is_err());
    // And so are shared weights that are not of all parameters.
    let all = Named::new(params.iter().skip(1).map(weight).collect());
    let weights = TaskWeights::Shared { all, n_touched: params.len() as u32, n_in_use: 1 };
    assert!(run(&shards[0], &shards[1..], Work::Expect { weights, losses: false }).is_err());
}
