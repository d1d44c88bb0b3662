//! Laws of the conversion: values are unchanged after a round trip, and broken bytes are errors, never panics.

use std::sync::Arc;

use grammaton::data::Sentence;
use grammaton::grammar::ParamId;
use grammaton::grammar::groups::Groups;
use grammaton::grammar::lexicon::{Lexicon, StickStrings, Strings};
use grammaton::grammar::{Grammar, SymbolId};
use grammaton::models::decode::{Decode, Decoded, Decoder};
use grammaton::models::sampler::state::{Choice, Table, TableId};
use grammaton::models::sampler::{Hyper, HyperPrior, Moves, Settings, State, Uses};
use grammaton::models::tally::Analysis;
use grammaton::num::Wide;
use grammaton::work::lease::{Attempt, BatchId, LeaseId, TaskIndex};
use grammaton::work::shard::Shard;
use grammaton::work::task::{
    Answer, Candidates, ChainFrom, Chained, Collapse, Collapsed, Expectation, Index, Language, Lengths,
    Named, Sample, Sampled, ShardState, StringCounts, Sweeping, Sweeps, Task, Work,
};
use proptest::collection::{btree_set, vec};
use proptest::prelude::*;
use prost::Message as _;
use proto::convert::blob::Blob;
use proto::convert::{Wire, WireError, fits, lease};
use proto::v1;

fn string() -> impl Strategy<Value = Vec<SymbolId>> {
    vec((0..9u32).prop_map(SymbolId), 1..5)
}

/// Sentences of words, some of them adapted, of random pseudo-counts.
fn grammar() -> impl Strategy<Value = Grammar> {
    let adaptor = prop_oneof![
        Just("1".to_owned()),
        Just("1 1".to_owned()),
        (0.0..0.99f64, 0.01..100.0f64)
            .prop_map(|(discount, concentration)| format!("1 {discount} {concentration}")),
    ];
    (adaptor, 1e-5..10.0f64, btree_set("[a-zé]{1,4}", 1..5)).prop_map(|(adaptor, alpha, words)| {
        let words: Vec<String> = words.iter().map(|word| format!("{adaptor} W --> {word}\n")).collect();
        let text = format!("{alpha} 1 S --> W\n1 1 S --> W S\n{}", words.concat());
        grammaton::grammar::syntax::parse(&text, "test").expect("the text is a grammar").0
    })
}

fn lexicon() -> impl Strategy<Value = Lexicon> {
    let sticks = proptest::collection::btree_map(0..9u32, vec(string(), 0..4), 0..4);
    sticks.prop_map(|sticks| Lexicon {
        sticks: sticks
            .into_iter()
            .map(|(symbol, strings)| StickStrings {
                symbol: SymbolId(symbol),
                strings: strings.iter().collect(),
            })
            .collect(),
    })
}

fn shard() -> impl Strategy<Value = Shard> {
    let sentence = (string(), 1..9u32).prop_map(|(tokens, multiplicity)| Sentence { tokens, multiplicity });
    prop_oneof![
        vec(sentence, 0..5).prop_map(Shard::Sentences),
        (0..99u32, 0..99u32).prop_map(|(start, length)| Shard::Strings(start..start + length)),
    ]
}

fn weights() -> impl Strategy<Value = Vec<Wide>> {
    let weight = prop_oneof![
        Just(Wide { mantissa: 0.0, exponent: 0 }),
        (1.0..2.0f64, -Wide::MAX_EXPONENT..=Wide::MAX_EXPONENT)
            .prop_map(|(mantissa, exponent)| Wide { mantissa, exponent }),
    ];
    vec(weight, 0..9)
}

fn decode() -> impl Strategy<Value = Decode> {
    let decoder = prop_oneof![Just(Decoder::Viterbi), Just(Decoder::Mbr), Just(Decoder::MbrTree)];
    (weights(), string(), vec(decoder, 0..4), any::<bool>(), any::<bool>()).prop_map(
        |(weights, segments, decoders, trees, open)| Decode { weights, segments, decoders, trees, open },
    )
}

fn finite() -> impl Strategy<Value = f64> {
    -1e6..1e3f64
}

fn log_z() -> impl Strategy<Value = f64> {
    prop_oneof![-1e6..1e3f64, Just(f64::NEG_INFINITY)]
}

fn params() -> impl Strategy<Value = Vec<ParamId>> {
    btree_set((0..99u32).prop_map(ParamId), 0..6).prop_map(|params| params.into_iter().collect())
}

fn expectation() -> impl Strategy<Value = Expectation> {
    (vec((0.0..1e9f64, 0.0..9.0f64), 0..6), any::<bool>(), finite(), vec(finite(), 0..4), params()).prop_map(
        |(pairs, infinite, log_z, log_z_items, missing)| Expectation {
            counts: pairs.iter().map(|pair| pair.0).collect(),
            losses: pairs.iter().map(|pair| if infinite { f64::INFINITY } else { pair.1 }).collect(),
            log_z,
            log_z_items,
            missing,
        },
    )
}

fn sample() -> impl Strategy<Value = Sample> {
    (weights(), any::<u64>(), proptest::option::of(string())).prop_map(|(weights, stream, keep)| Sample {
        weights,
        stream,
        keep,
    })
}

fn shard_state() -> impl Strategy<Value = ShardState> {
    let counts = proptest::collection::btree_map(0..99u32, f64::MIN_POSITIVE..9.0f64, 0..4);
    let counts = vec(counts, 0..5).prop_map(|sentences| {
        ShardState::Counts(sentences.into_iter().map(|counts| counts.into_iter().collect()).collect())
    });
    let sweeping = (state(), any::<[u64; 2]>(), 1..u32::MAX)
        .prop_map(|(state, random, left)| ShardState::Sweeping(Sweeping { state, random, left }));
    prop_oneof![counts, state().prop_map(ShardState::Chain), sweeping]
}

/// States whose labels refer only to earlier tables.
fn state() -> impl Strategy<Value = State> {
    let choices = |at_least| vec((any::<bool>(), any::<u32>()), at_least..4);
    let hyper = (0.0..0.99f64, f64::MIN_POSITIVE..9.0f64)
        .prop_map(|(discount, concentration)| Hyper { discount, concentration });
    (vec(choices(0), 0..4), vec((0..9u32, choices(1)), 0..4), vec(hyper, 0..3)).prop_map(
        |(trees, tables, hyper)| {
            let choice = |n_tables: usize| {
                move |(is_table, id): (bool, u32)| {
                    if is_table && n_tables > 0 {
                        Choice::Table(TableId(id % n_tables as u32))
                    } else {
                        Choice::Param(ParamId(id))
                    }
                }
            };
            let n_tables = tables.len();
            let tree = |tree: Vec<(bool, u32)>| tree.into_iter().map(choice(n_tables)).collect();
            let table = |(at, (symbol, label)): (usize, (u32, Vec<(bool, u32)>))| Table {
                symbol: SymbolId(symbol),
                label: label.into_iter().map(choice(at)).collect(),
            };
            State {
                trees: trees.into_iter().map(tree).collect(),
                tables: tables.into_iter().enumerate().map(table).collect(),
                hyper,
            }
        },
    )
}

fn analyses() -> impl Strategy<Value = Vec<Analysis>> {
    let ends = btree_set(1..30u32, 0..4).prop_map(|ends| ends.into_iter().collect());
    vec((ends, "[(a-c) ]{0,8}").prop_map(|(ends, tree)| Analysis { ends, tree }), 0..4)
}

fn chained() -> impl Strategy<Value = Chained> {
    let moves = || {
        any::<[u64; 3]>().prop_map(|mut numbers| {
            numbers.sort_unstable();
            let [changed, accepted, proposed] = numbers;
            Moves { proposed, accepted, changed }
        })
    };
    let strings = btree_set(((0..9u32).prop_map(SymbolId), string()), 0..5).prop_map(|labelled| {
        let uses = |(symbol, string)| Uses { symbol, string, customers: u32::MAX, tables: 1 };
        labelled.into_iter().map(uses).collect()
    });
    (vec(any::<u32>(), 0..6), finite(), moves(), moves(), strings, analyses(), shard_state()).prop_map(
        |(uses, log_seating, trees, labels, strings, analyses, shard_state)| Chained {
            uses,
            log_seating,
            trees,
            labels,
            strings,
            analyses,
            shard_state,
        },
    )
}

fn sampled() -> impl Strategy<Value = Sampled> {
    (vec(0.0..1e9f64, 0..6), analyses(), params()).prop_map(|(counts, analyses, missing)| Sampled {
        counts,
        analyses,
        missing,
    })
}

fn answer() -> impl Strategy<Value = Answer> {
    let labelled = || btree_set(((0..9u32).prop_map(SymbolId), string()), 0..5);
    let counts = || {
        labelled().prop_map(|labelled| {
            let amounts = vec![0.25; labelled.len()];
            let (symbols, strings): (_, Vec<Vec<SymbolId>>) = labelled.into_iter().unzip();
            StringCounts { symbols, strings: strings.iter().collect(), amounts }
        })
    };
    let candidates = (counts(), counts(), 0..99u32, btree_set(0..99u32, 0..4)).prop_map(
        |(counted, longer, longest, unparsable)| {
            let unparsable = unparsable.into_iter().collect();
            Answer::Candidates(Candidates { counted, longer, longest, unparsable })
        },
    );
    let index = (params(), btree_set(0..99u32, 0..4)).prop_map(|(params, unparsable)| {
        Answer::Index(Index { params, unparsable: unparsable.into_iter().collect() })
    });
    let ends = btree_set(1..30u32, 0..4).prop_map(|ends| ends.into_iter().collect());
    let decoded = (log_z(), vec(ends, 0..3), vec("[(a-c) ]{0,8}", 0..3))
        .prop_map(|(log_z, segmentations, trees)| Decoded { log_z, segmentations, trees });
    prop_oneof![
        candidates,
        labelled().prop_map(|labelled| Answer::Missing(labelled.into_iter().collect())),
        index,
        expectation().prop_map(Answer::Expectation),
        sampled().prop_map(Answer::Sampled),
        (expectation(), shard_state()).prop_map(|(expectation, shard_state)| {
            Answer::Collapsed(Collapsed { expectation, shard_state })
        }),
        chained().prop_map(Answer::Chained),
        vec(decoded, 0..4).prop_map(Answer::Decoded),
    ]
}

/// Every blob reads back under its own hash, and no other bytes do.
fn check_blob(blob: &Blob, flip: usize, bit: u8) -> Result<(), TestCaseError> {
    let (kind, bytes) = (blob.kind() as i32, blob.to_bytes());
    let back = Blob::from_bytes(kind, blob.hash(), bytes.clone()).expect("its own bytes are valid");
    prop_assert_eq!(back.hash(), blob.hash());
    prop_assert_eq!(back.to_bytes(), bytes.clone());
    let mut broken = bytes.to_vec();
    if !broken.is_empty() {
        let at = flip % broken.len();
        broken[at] ^= 1 << bit;
        if let Ok(read) = Blob::from_bytes(kind, blob.hash(), broken.into()) {
            prop_assert_eq!(read.to_bytes(), bytes, "other content passed under this hash");
        }
    }
    Ok(())
}

proptest! {
    #[test]
    fn blobs_survive_the_wire(
        grammar in grammar(), lexicon in lexicon(), shard in shard(), decode in decode(), shard_state in shard_state(),
        flip in any::<usize>(), bit in 0..8u8,
    ) {
        check_blob(&Blob::Grammar(Named::new(grammar)), flip, bit)?;
        check_blob(&Blob::Lexicon(Named::new(lexicon)), flip, bit)?;
        check_blob(&Blob::Shard(Named::new(shard)), flip, bit)?;
        check_blob(&Blob::Decode(Named::new(decode)), flip, bit)?;
        check_blob(&Blob::ShardState(Named::new(shard_state)), flip, bit)?;
    }

    #[test]
    fn answers_and_weights_survive_the_wire(answer in answer(), weights in weights(), sample in sample()) {
        prop_assert_eq!(Answer::from_bytes(answer.to_bytes()).unwrap(), answer);
        prop_assert_eq!(Vec::<Wide>::from_bytes(weights.to_bytes()).unwrap(), weights);
        prop_assert_eq!(Sample::from_bytes(sample.to_bytes()).unwrap(), sample);
    }

    #[test]
    fn broken_answers_never_panic(answer in answer(), flips in vec((any::<usize>(), 0..8u8), 1..6)) {
        let mut bytes = answer.to_bytes().to_vec();
        for (at, bit) in flips {
            let length = bytes.len().max(1);
            if let Some(byte) = bytes.get_mut(at % length) {
                *byte ^= 1 << bit;
            }
        }
        // Either an error, or a valid value, which has a round trip of its own.
        if let Ok(read) = Answer::from_bytes(bytes.into()) {
            prop_assert_eq!(Answer::from_bytes(read.to_bytes()).unwrap(), read);
        }
    }

    #[test]
    fn noise_never_panics(bytes in vec(any::<u8>(), 0..200)) {
        let _ = Answer::from_bytes(bytes.clone().into());
        let _ = Grammar::from_bytes(bytes.clone().into());
        let _ = Lexicon::from_bytes(bytes.clone().into());
        let _ = Shard::from_bytes(bytes.clone().into());
        let _ = Decode::from_bytes(bytes.clone().into());
        let _ = ShardState::from_bytes(bytes.clone().into());
        let _ = Sample::from_bytes(bytes.clone().into());
        let _ = Vec::<Wide>::from_bytes(bytes.into());
    }
}

/// Tasks over a small grammar, each with the answer that the engine gives.
pub fn answered() -> Vec<(Task, Answer)> {
    let text = "1 1 S --> W\n1 1 S --> W S\nW --> L\n1 1 L --> (\n1 1 L --> é\n1 1 L --> ( L\n1 1 L --> é L\n\
         1 1 L --> x x\n";
    let grammar =
        Named::new(grammaton::grammar::syntax::parse(text, "test").expect("the text is a grammar").0);
    let symbols = |text: &str| -> Vec<SymbolId> {
        text.chars()
            .map(|letter| grammar.value.symbol(&letter.to_string()).expect("a letter of it"))
            .collect()
    };
    let sentences = ["(é(é(éé", "é", "(((((((((((((((((((("];
    let sentence = |text| Sentence { tokens: symbols(text), multiplicity: 3 };
    let shard = Named::new(Shard::Sentences(sentences.map(sentence).into()));
    let word = grammar.value.symbol("W").expect("it is there");
    let strings = ["(é", "é", "(", "(éé"].map(symbols).iter().collect();
    let lexicon = Lexicon { sticks: vec![StickStrings { symbol: word, strings }] };
    let n_params = lexicon.space(&grammar.value).n_params();
    let one = Wide { mantissa: 1.0, exponent: 0 };
    let decode = Decode {
        weights: vec![one; n_params + 1],
        segments: vec![word],
        decoders: vec![Decoder::Viterbi, Decoder::Mbr, Decoder::MbrTree],
        trees: true,
        open: true,
    };
    let engine = grammaton::work::engine::engine();
    let (none, full) = (Named::new(Lexicon::default()), Named::new(lexicon));
    let on = |lexicon: &Named<Lexicon>, shard: &Named<Shard>, work| {
        let (grammar, lexicon, shard) = (grammar.clone(), lexicon.clone(), shard.clone());
        let task = Task { language: Some(Language { grammar, lexicon }), shard, work };
        let answer = engine(&task).expect("the task has an answer");
        (task, answer)
    };
    let of_strings = Named::new(Shard::Strings(n_params as u32 - 4..n_params as u32));
    let mut all = vec![
        on(&none, &shard, Work::Candidates(Lengths { max_length: 20, longer_than: 2, up_to: 7 })),
        on(&none, &shard, Work::Cover),
        on(&full, &shard, Work::Decode(Named::new(decode))),
    ];
    // For chains: a sentence without a derivation, and no strings of adapted nonterminals.
    let shard_of_chains = Named::new(Shard::Sentences(["(é(", "x", "é"].map(sentence).into()));
    let bare = Named::new(Lexicon { sticks: vec![StickStrings { symbol: word, strings: Strings::new() }] });
    let sweep = |from, keep| {
        let prior = HyperPrior { shape: 1.0, scale: 10.0 };
        let settings = Settings { temperature: 1.5, relabel: true, hyper: Some(prior) };
        let pseudo = vec![0.5; bare.value.space(&grammar.value).n_params()];
        let sweeps = Sweeps { from, n: 2, settings, pseudo, stream: 7, keep };
        on(&bare, &shard_of_chains, Work::Sweep(sweeps))
    };
    let hyper = Hyper { discount: 0.5, concentration: 1.0 };
    all.push(sweep(ChainFrom::Start { incremental: true, hyper }, Some(vec![word])));
    let Some((_, Answer::Chained(first))) = all.last() else { panic!("sweeps were asked for") };
    let mut trees: Vec<String> = first.analyses.iter().map(|analysis| analysis.tree.clone()).collect();
    trees.splice(3..3, vec!["(S x)".to_owned(); 3]);
    let shard_state = Named::new(first.shard_state.clone());
    all.push(sweep(ChainFrom::Trees { trees: Arc::new(trees), hyper }, None));
    all.push(sweep(ChainFrom::ShardState(shard_state), Some(vec![])));
    for shard in [&shard, &of_strings] {
        let (index, answer) = on(&full, shard, Work::Index);
        let Answer::Index(found) = &answer else { panic!("{answer:?} is not an index") };
        let weights = vec![one; found.params.len()];
        all.push((index, answer.clone()));
        all.push(on(&full, shard, Work::Expect { weights: weights.into_iter().collect(), losses: true }));
    }
    let n_touched = match &all[all.len() - 3].1 {
        Answer::Expectation(expectation) => expectation.counts.len(),
        other => panic!("{other:?} has no counts"),
    };
    let weights = vec![Wide::from_f64(0.25); n_touched];
    for keep in [None, Some(vec![word])] {
        all.push(on(&full, &shard, Work::Sample(Sample { weights: weights.clone(), stream: 1, keep })));
    }
    all.push(on(&full, &shard, Work::Collapse(Collapse::Start { weights })));
    let Some((_, Answer::Collapsed(first))) = all.last() else { panic!("a pass was asked for") };
    let others = Collapse::Others {
        pseudo: vec![0.5; n_touched],
        sums: vec![2.0; Groups::new(&grammar.value, &full.value).len()],
        temperature: 1.5,
        shard_state: Named::new(first.shard_state.clone()),
    };
    all.push(on(&full, &shard, Work::Collapse(others)));
    all
}

#[test]
fn no_answer_is_larger_than_its_task_allows() {
    for (task, answer) in answered() {
        fits::answer(&task, &answer).unwrap();
        let (found, most) = (answer.to_bytes().len() as u64, fits::largest_answer(&task));
        assert!(found <= most, "{:?}: {found} bytes, expected at most {most}", task.work);
        let lease = LeaseId { batch: BatchId(1), task: TaskIndex(2), attempt: Attempt(3) };
        let (head, payload) = lease::to_wire(lease, &task);
        let most = fits::largest_lease(lease::asked(&head).unwrap(), task.language.as_ref());
        assert!(
            payload.len() as u64 <= most,
            "{:?}: {} bytes, expected at most {most}",
            task.work,
            payload.len()
        );
    }
}

#[test]
fn a_lease_names_its_blobs_and_its_payload_has_the_rest() {
    for (task, _) in answered() {
        let lease = LeaseId { batch: BatchId(1), task: TaskIndex(2), attempt: Attempt(3) };
        let (head, payload) = lease::to_wire(lease, &task);
        let blobs = Blob::of_task(&task);
        let find = |field, hash: &[u8]| {
            let found = blobs.iter().find(|blob| blob.hash().0 == hash);
            found.cloned().ok_or(WireError::Missing { field })
        };
        let work = lease::work_from_wire(&head, payload.clone(), find).unwrap();
        let again = Task { work, ..task.clone() };
        assert_eq!(fits::work(&again), Ok(()));
        assert_eq!(lease::to_wire(lease, &again), (head.clone(), payload.clone()));

        // A blob of another kind is refused.
        let shard = |_, _: &[u8]| Ok(Blob::Shard(task.shard.clone()));
        let fourth = blobs.len() > 3;
        assert_eq!(lease::work_from_wire(&head, payload, shard).is_err(), fourth, "{:?}", task.work);
    }
}

#[test]
fn the_state_of_another_shard_is_refused() {
    let (task, answer) = answered().pop().unwrap();
    let Answer::Collapsed(collapsed) = answer else { panic!("a pass was asked for") };
    let Work::Collapse(Collapse::Others { pseudo, sums, temperature, .. }) = &task.work else {
        panic!("it is not the first pass")
    };
    let n_touched = pseudo.len() as u32;
    let sent = |shard_state: ShardState| {
        let (pseudo, sums, shard_state) = (pseudo.clone(), sums.clone(), Named::new(shard_state));
        let others = Collapse::Others { pseudo, sums, temperature: *temperature, shard_state };
        fits::work(&Task { work: Work::Collapse(others), ..task.clone() })
    };
    let answered = |shard_state: ShardState| {
        fits::answer(&task, &Answer::Collapsed(Collapsed { shard_state, ..collapsed.clone() }))
    };
    let ShardState::Counts(counts) = &collapsed.shard_state else {
        panic!("the state of this shard is its counts")
    };
    assert_eq!(counts.len(), 9, "three sentences, three times each");
    let shard_state = ShardState::Counts(counts.clone());
    assert_eq!((sent(shard_state.clone()), answered(shard_state)), (Ok(()), Ok(())));
    type Breaks = fn(&mut Vec<Vec<(u32, f64)>>, u32);
    let broken: [(&str, Breaks); 3] = [
        ("shard_state.counts: length 8, expected 9", |counts, _| drop(counts.pop())),
        ("shard_state.counts: length 10, expected 9", |counts, _| counts.push(vec![])),
        ("shard_state: a sentence's counts are not of", |counts, end| counts[0].push((end, 1.0))),
    ];
    for (message, break_it) in broken {
        let mut counts = counts.clone();
        break_it(&mut counts, n_touched);
        let shard_state = ShardState::Counts(counts);
        for error in [sent(shard_state.clone()).unwrap_err(), answered(shard_state).unwrap_err()] {
            assert!(error.to_string().starts_with(message), "{error}, expected {message}");
        }
    }
    let chain = ShardState::Chain(State::default());
    assert!(sent(chain.clone()).is_err() && answered(chain).is_err(), "of another method");
    let mut needy = collapsed.clone();
    needy.expectation.missing = vec![ParamId(1)];
    assert!(fits::answer(&task, &Answer::Collapsed(needy)).is_err(), "a pass has no weights of zero");
}

/// Tasks of sweeps from a start, from given trees, and from a state, with their answers.
fn swept() -> [(Task, Sweeps, Chained); 3] {
    let swept = answered().into_iter().filter_map(|(task, answer)| match (task.work.clone(), answer) {
        (Work::Sweep(sweeps), Answer::Chained(chained)) => Some((task, sweeps, chained)),
        _ => None,
    });
    swept.collect::<Vec<_>>().try_into().expect("there are three")
}

#[test]
fn chains_of_another_shard_are_refused() {
    let [(started, sweeps, chained), (_, _, unkept), (resumed, ..)] = swept();
    let ShardState::Chain(state) = &chained.shard_state else { panic!("a chain is shard_state") };
    assert_eq!((state.trees.len(), chained.analyses.len()), (9, 6), "three sentences, three times each");
    assert!(!chained.strings.is_empty() && unkept.strings.is_empty() && unkept.analyses.is_empty());
    let sent = |state: State| {
        let from = ChainFrom::ShardState(Named::new(ShardState::Chain(state)));
        fits::work(&Task { work: Work::Sweep(Sweeps { from, ..sweeps.clone() }), ..resumed.clone() })
    };
    let answered = |state: State| {
        let shard_state = ShardState::Chain(state);
        fits::answer(&started, &Answer::Chained(Chained { shard_state, ..chained.clone() }))
    };
    assert_eq!((sent(state.clone()), answered(state.clone())), (Ok(()), Ok(())));
    let n_params = sweeps.pseudo.len() as u32;
    type Breaks = fn(&mut State, u32);
    let broken: [(&str, Breaks); 7] = [
        ("chain.trees: length 8, expected 9", |state, _| drop(state.trees.pop())),
        ("chain.processes: length 2, expected 1", |state, _| state.hyper.push(state.hyper[0])),
        ("chain.symbols[0]: 0, expected 0..3", |state, _| state.tables[0].symbol = SymbolId(0)),
        ("chain.symbols[0]: 99, expected 0..3", |state, _| state.tables[0].symbol = SymbolId(99)),
        ("chain.trees[0]: 0, expected 1..", |state, _| state.trees[0][0] = Choice::Param(ParamId::ONE)),
        ("chain.trees[0]: ", |state, end| state.trees[0][0] = Choice::Param(ParamId(end))),
        ("chain.labels[0]: ", |state, end| state.tables[0].label[0] = Choice::Param(ParamId(end))),
    ];
    for (message, break_it) in broken {
        let mut state = state.clone();
        break_it(&mut state, n_params);
        for error in [sent(state.clone()).unwrap_err(), answered(state).unwrap_err()] {
            assert!(error.to_string().starts_with(message), "{error}, expected {message}");
        }
    }
    let from = ChainFrom::ShardState(Named::new(ShardState::Counts(vec![vec![]; 9])));
    let other = Task { work: Work::Sweep(Sweeps { from, ..sweeps }), ..resumed };
    assert!(fits::work(&other).is_err(), "of another method");
}

#[test]
fn sweeps_and_their_answers_fit_their_shard() {
    let [(started, sweeps, chained), (given, of_trees, unkept), _] = swept();
    let asked = |task: &Task, sweeps: Sweeps| {
        let error = fits::work(&Task { work: Work::Sweep(sweeps), ..task.clone() }).unwrap_err();
        error.to_string()
    };
    let mut fewer = sweeps.clone();
    fewer.pseudo.pop();
    let message = asked(&started, fewer);
    assert!(message.starts_with("sweeps.pseudo: length"), "{message}");
    let message = asked(&started, Sweeps { keep: Some(vec![SymbolId(3)]), ..sweeps.clone() });
    assert_eq!(message, "sweeps.segments[0]: 3, expected 0..3");
    let ChainFrom::Trees { trees, hyper } = &of_trees.from else { panic!("trees are given") };
    let from = ChainFrom::Trees { trees: Arc::new(trees[1..].to_vec()), hyper: *hyper };
    let message = asked(&given, Sweeps { from, ..of_trees.clone() });
    assert_eq!(message, "given.trees: length 8, expected 9");

    type Breaks = fn(&mut Chained);
    let broken: [(&str, Breaks); 12] = [
        ("chained.uses: length", |chained| chained.uses.push(0)),
        ("chained.tree_moves: 19, expected at most 18", |chained| chained.trees.proposed = 19),
        ("chained.label_moves: ", |chained| chained.labels.proposed = u64::MAX),
        ("chained.uses: not what", |chained| chained.uses[1] += 1),
        ("chained.strings: not what", |chained| chained.strings[0].symbol = SymbolId(0)),
        ("chained.strings: not what", |chained| chained.strings[0].string[0] = SymbolId(0)),
        ("chained.strings: not what", |chained| chained.strings[0].customers += 1),
        ("chained.trees: not what", |chained| drop(chained.analyses.pop())),
        ("chained.trees: not what", |chained| chained.analyses.push(chained.analyses[5].clone())),
        ("chained.trees: not what", |chained| chained.analyses[3].ends.push(99)),
        ("chained.trees: not what", |chained| chained.analyses.swap(0, 5)),
        ("chained.left: 2, expected at most 1", |chained| {
            let ShardState::Chain(state) = chained.shard_state.clone() else {
                panic!("the state of a chain")
            };
            chained.shard_state = ShardState::Sweeping(Sweeping { state, random: [1, 2], left: 2 });
        }),
    ];
    for (message, break_it) in broken {
        let mut chained = chained.clone();
        break_it(&mut chained);
        let error = fits::answer(&started, &Answer::Chained(chained)).unwrap_err().to_string();
        assert!(error.starts_with(message), "{error}, expected {message}");
    }
    let strings = Chained { strings: chained.strings.clone(), ..unkept.clone() };
    let analyses = Chained { analyses: chained.analyses.clone(), ..unkept };
    for unasked in [strings, analyses] {
        assert!(fits::answer(&given, &Answer::Chained(unasked)).is_err(), "trees were not requested");
    }
}

#[test]
fn a_chain_is_checked_by_itself() {
    let derivations = |lengths: &[u32], choices: &[u64]| {
        Some(v1::Derivations { lengths: lengths.into(), choices: choices.into() })
    };
    let process = |discount, concentration| v1::Process { discount, concentration };
    // Parameter 4, table 1, and labels: parameter 2, table 0.
    let state = v1::ShardStateChain {
        trees: derivations(&[2, 0], &[8, 3]),
        symbols: vec![1, 1],
        labels: derivations(&[1, 1], &[4, 1]),
        processes: vec![process(0.0, 1.0)],
    };
    let read = |state: v1::ShardStateChain| {
        ShardState::from_wire(v1::ShardState { state: Some(v1::shard_state::State::Chain(state)) })
    };
    assert!(read(state.clone()).is_ok());
    let with_process = |process| v1::ShardStateChain { processes: vec![process], ..state.clone() };
    let broken: [(&str, v1::ShardStateChain); 13] = [
        ("chain.trees: missing", v1::ShardStateChain { trees: None, ..state.clone() }),
        (
            "chain.trees: length 1, expected 2",
            v1::ShardStateChain { trees: derivations(&[2], &[8]), ..state.clone() },
        ),
        (
            "chain.trees[1]: 2, expected 0..2",
            v1::ShardStateChain { trees: derivations(&[0, 1], &[5]), ..state.clone() },
        ),
        (
            "chain.trees[0]: 4294967296, expected 0..4294967296",
            v1::ShardStateChain { trees: derivations(&[1], &[1 << 33]), ..state.clone() },
        ),
        (
            "chain.trees[0]: 9223372036854775807, expected 0..2",
            v1::ShardStateChain { trees: derivations(&[1], &[u64::MAX]), ..state.clone() },
        ),
        // A table that sits at itself.
        (
            "chain.labels[1]: 1, expected 0..1",
            v1::ShardStateChain { labels: derivations(&[1, 1], &[4, 3]), ..state.clone() },
        ),
        (
            "chain.labels[1]: empty",
            v1::ShardStateChain { labels: derivations(&[1, 0], &[4]), ..state.clone() },
        ),
        (
            "chain.labels: length 2, expected 1",
            v1::ShardStateChain { symbols: vec![1], trees: derivations(&[], &[]), ..state.clone() },
        ),
        ("chain.processes[0]: 1, expected a number in [0, 1)", with_process(process(1.0, 1.0))),
        ("chain.processes[0]: -0.5, expected", with_process(process(-0.5, 1.0))),
        ("chain.processes[0]: NaN, expected", with_process(process(f64::NAN, 1.0))),
        (
            "chain.processes[0]: 0, expected a number that is finite and positive",
            with_process(process(0.5, 0.0)),
        ),
        ("chain.processes[0]: inf, expected", with_process(process(0.5, f64::INFINITY))),
    ];
    for (message, state) in broken {
        let error = read(state).unwrap_err().to_string();
        assert!(error.starts_with(message), "{error}, expected {message}");
    }

    let start = v1::Start { incremental: true, process: Some(process(0.5, 1.0)) };
    let sweeps = v1::Sweeps {
        from: Some(v1::sweeps::From::Start(start)),
        n: 1_000_000,
        temperature: 1.0,
        hyper: Some(v1::HyperPrior { shape: 1.0, scale: 10.0 }),
        pseudo: vec![0.5],
        ..v1::Sweeps::default()
    };
    let work = Some(v1::lease_head::Work::Sweep(v1::lease_head::Sweep::default()));
    let head = v1::LeaseHead { work, ..v1::LeaseHead::default() };
    let lease = |sweeps: v1::Sweeps| {
        let unnamed = |field, _: &[u8]| Err(WireError::Missing { field });
        lease::work_from_wire(&head, sweeps.encode_to_vec().into(), unnamed).map(drop)
    };
    assert_eq!(lease(sweeps.clone()), Ok(()));
    let from = |from| v1::Sweeps { from: Some(from), ..sweeps.clone() };
    let prior = |shape, scale| v1::Sweeps { hyper: Some(v1::HyperPrior { shape, scale }), ..sweeps.clone() };
    let broken: [(&str, v1::Sweeps); 13] = [
        ("sweeps.from: missing", v1::Sweeps { from: None, ..sweeps.clone() }),
        ("start.process: missing", from(v1::sweeps::From::Start(v1::Start::default()))),
        ("given.process: missing", from(v1::sweeps::From::Given(v1::Given::default()))),
        ("lease.shard_state: missing", from(v1::sweeps::From::Resume(v1::Resume {}))),
        ("sweeps.n[0]: 0, expected 1..1000001", v1::Sweeps { n: 0, ..sweeps.clone() }),
        ("sweeps.n[0]: 1000001, expected", v1::Sweeps { n: 1_000_001, ..sweeps.clone() }),
        ("sweeps.temperature[0]: 0, expected", v1::Sweeps { temperature: 0.0, ..sweeps.clone() }),
        ("sweeps.temperature[0]: NaN, expected", v1::Sweeps { temperature: f64::NAN, ..sweeps.clone() }),
        ("sweeps.pseudo[0]: 0, expected", v1::Sweeps { pseudo: vec![0.0], ..sweeps.clone() }),
        ("sweeps.pseudo[0]: inf, expected", v1::Sweeps { pseudo: vec![f64::INFINITY], ..sweeps.clone() }),
        ("sweeps.hyper[0]: 0, expected", prior(0.0, 1.0)),
        ("sweeps.hyper[1]: -1, expected", prior(1.0, -1.0)),
        ("sweeps.hyper[1]: 2000000000, expected", prior(1.0, 2e9)),
    ];
    for (message, sweeps) in broken {
        let error = lease(sweeps).unwrap_err().to_string();
        assert!(error.starts_with(message), "{error}, expected {message}");
    }

    let [(_, _, chained), ..] = swept();
    type Breaks = fn(&mut Chained);
    let broken: [(&str, Breaks); 7] = [
        ("chained.log_seating[0]: NaN", |chained| chained.log_seating = f64::NAN),
        ("chained.log_seating[0]: inf", |chained| chained.log_seating = f64::INFINITY),
        ("chained.tree_moves: ", |chained| chained.trees.accepted = chained.trees.proposed + 1),
        ("chained.label_moves: ", |chained| chained.labels.changed = chained.labels.accepted + 1),
        ("chained.tables[0]: 0, expected 1..", |chained| chained.strings[0].tables = 0),
        ("chained.tables[0]: ", |chained| chained.strings[0].tables = chained.strings[0].customers + 1),
        ("chained.strings[", |chained| chained.strings.push(chained.strings[0].clone())),
    ];
    for (message, break_it) in broken {
        let mut chained = chained.clone();
        break_it(&mut chained);
        let error = Answer::from_bytes(Answer::Chained(chained).to_bytes()).unwrap_err().to_string();
        assert!(error.starts_with(message), "{error}, expected {message}");
    }
}

#[test]
fn sampled_trees_fit_their_sentences_and_the_request() {
    let mut all = answered();
    let (kept, Answer::Sampled(sampled)) = all.remove(all.len() - 3) else { panic!("trees were asked for") };
    let (unkept, Answer::Sampled(counted)) = all.remove(all.len() - 3) else {
        panic!("counts were asked for")
    };
    assert_eq!((sampled.analyses.len(), counted.analyses.len()), (9, 0));
    let fits = |task: &Task, sampled: &Sampled| fits::answer(task, &Answer::Sampled(sampled.clone()));
    assert_eq!((fits(&kept, &sampled), fits(&unkept, &counted)), (Ok(()), Ok(())));
    assert!(fits(&unkept, &sampled).is_err() && fits(&kept, &counted).is_err());
    let mut longer = sampled.clone();
    longer.analyses[3].ends.push(99);
    let error = fits(&kept, &longer).unwrap_err().to_string();
    assert!(error.starts_with("sampled.ends[0]: 99, expected 1..2"), "{error}");
    let mut fewer = sampled.clone();
    fewer.counts.pop();
    assert!(fits(&kept, &fewer).is_err());
    let mut exchanged = sampled.clone();
    exchanged.analyses.swap(0, 3);
    assert!(fits(&kept, &exchanged).is_err());
    let mut miscounted = sampled.clone();
    miscounted.counts[1] += 1.0;
    assert_eq!(
        fits(&kept, &miscounted).unwrap_err().to_string(),
        "sampled.counts: not what the rest of the answer gives"
    );
    // Only strings of weight zero can be missing, and no weight is zero.
    let missing = fits(&kept, &Sampled { missing: vec![ParamId(1)], ..sampled.clone() });
    assert_eq!(missing.unwrap_err().to_string(), "sampled.missing: 1, expected at most 0");
}

#[test]
fn lexicons_fit_their_grammar_and_segmentations_cover_their_sentences() {
    let (task, answer) = answered().swap_remove(2);
    let Language { grammar, lexicon } = task.language.clone().unwrap();
    let (grammar, lexicon) = (&*grammar.value, &*lexicon.value);
    assert_eq!(fits::lexicon(grammar, lexicon), Ok(()));
    let without = fits::lexicon(grammar, &Lexicon::default()).unwrap_err().to_string();
    assert!(without.contains("lexicon.sticks"), "{without}");
    let start = SymbolId(0);
    let mut foreign = lexicon.clone();
    foreign.sticks[0].symbol = start;
    assert!(fits::lexicon(grammar, &foreign).is_err(), "a stick of what is not adapted");
    let mut foreign = lexicon.clone();
    foreign.sticks[0].strings.push(&[start]);
    assert!(fits::lexicon(grammar, &foreign).is_err(), "a string of nonterminals");

    assert_eq!(fits::answer(&task, &answer), Ok(()));
    let Answer::Decoded(decoded) = answer else { panic!("it decodes") };
    for ends in [vec![], vec![1], vec![1, 99]] {
        let mut decoded = decoded.clone();
        decoded[0].segmentations[0] = ends;
        assert!(fits::answer(&task, &Answer::Decoded(decoded)).is_err());
    }
}

#[test]
fn a_small_task_never_allows_a_large_answer() {
    let (mut task, _) = answered().swap_remove(2);
    task.work = Work::Expect { weights: [Wide::ONE; 10].into_iter().collect(), losses: false };
    assert!(fits::largest_answer(&task) < 1024, "{}", fits::largest_answer(&task));
}

#[test]
fn a_value_is_checked_by_itself() {
    let weights = |mantissa, exponent| v1::Weights { mantissas: vec![mantissa], exponents: vec![exponent] };
    for (mantissa, exponent) in [
        (2.0, 0),
        (0.5, 0),
        (-1.0, 0),
        (-0.0, 0),
        (f64::NAN, 0),
        (0.0, 1),
        (1.0, Wide::MAX_EXPONENT + 1),
        (1.0, i64::MIN),
    ] {
        assert!(Vec::from_wire(weights(mantissa, exponent)).is_err(), "{mantissa} {exponent}");
    }

    let strings = |lengths: &[u32], symbols: &[u32]| {
        Some(v1::Strings { lengths: lengths.into(), symbols: symbols.into() })
    };
    let grammar = v1::Grammar {
        symbols: vec!["S".into(), "a".into()],
        n_nonterminals: 1,
        parents: vec![0],
        children: strings(&[1], &[1]),
        alphas: vec![1.0],
        adaptors: vec![v1::Adaptor::default()],
    };
    assert!(Grammar::from_wire(grammar.clone()).is_ok());
    let broken: [(&str, v1::Grammar); 6] = [
        (
            "grammar: symbol 1 has an empty name",
            v1::Grammar { symbols: vec!["S".into(), "".into()], ..grammar.clone() },
        ),
        ("grammar: 2 symbols, 3 of them nonterminals", v1::Grammar { n_nonterminals: 3, ..grammar.clone() }),
        ("grammar: rule 0 names symbol 2", v1::Grammar { children: strings(&[1], &[2]), ..grammar.clone() }),
        (
            "grammar.children: length 1",
            v1::Grammar { children: strings(&[u32::MAX], &[1]), ..grammar.clone() },
        ),
        ("grammar.alphas: length 2", v1::Grammar { alphas: vec![1.0, 1.0], ..grammar.clone() }),
        (
            "grammar: 2 symbols, 1 of them nonterminals, and 0 adaptors",
            v1::Grammar { adaptors: vec![], ..grammar },
        ),
    ];
    for (message, grammar) in broken {
        let error = Grammar::from_wire(grammar).unwrap_err().to_string();
        assert!(error.starts_with(message), "{error}, expected {message}");
    }

    let counts = |lengths: &[u32], params: &[u32], counts: &[f64]| {
        let counts = v1::ShardStateCounts { params: strings(lengths, params), counts: counts.into() };
        ShardState::from_wire(v1::ShardState { state: Some(v1::shard_state::State::Counts(counts)) })
    };
    assert!(counts(&[2, 0, 1], &[3, 7, 0], &[0.5, 1.0, 2.0]).is_ok());
    type Fields<'a> = (&'a [u32], &'a [u32], &'a [f64]);
    let broken: [(&str, Fields<'_>); 6] = [
        ("shard_state.counts: length 1, expected 2", (&[2], &[3, 7], &[0.5])),
        ("shard_state.params: length 2, expected 3", (&[3], &[3, 7], &[0.5, 0.5])),
        ("shard_state: a sentence's counts are not of", (&[2], &[7, 7], &[0.5, 0.5])),
        ("shard_state: a sentence's counts are not counts", (&[1], &[7], &[0.0])),
        ("shard_state: a sentence's counts are not counts", (&[1], &[7], &[f64::NAN])),
        ("shard_state: a sentence's counts are not counts", (&[1], &[7], &[f64::INFINITY])),
    ];
    for (message, (lengths, params, numbers)) in broken {
        let error = counts(lengths, params, numbers).unwrap_err().to_string();
        assert!(error.starts_with(message), "{error}, expected {message}");
    }
    assert_eq!(
        ShardState::from_wire(v1::ShardState::default()),
        Err(WireError::Missing { field: "shard_state" })
    );

    let pass = |pseudo: f64, sum: f64, temperature: f64| {
        let others = v1::Others { pseudo: vec![pseudo], sums: vec![sum], temperature };
        let payload = v1::Collapse { pass: Some(v1::collapse::Pass::Others(others)) }.encode_to_vec();
        let work = Some(v1::lease_head::Work::Collapse(v1::lease_head::Collapse::default()));
        let head = v1::LeaseHead { work, ..v1::LeaseHead::default() };
        let shard_state = Blob::ShardState(Named::new(ShardState::Counts(Vec::new())));
        lease::work_from_wire(&head, payload.into(), |_, _| Ok(shard_state)).map(drop)
    };
    assert_eq!(pass(0.5, 2.0, 1.0), Ok(()));
    for (pseudo, sum, temperature) in [
        (-0.5, 2.0, 1.0),
        (f64::NAN, 2.0, 1.0),
        (0.5, f64::INFINITY, 1.0),
        (0.5, 2.0, 0.0),
        (0.5, 2.0, f64::NAN),
    ] {
        assert!(pass(pseudo, sum, temperature).is_err(), "{pseudo} {sum} {temperature}");
    }

    let repeated = v1::Index { params: vec![3, 3], unparsable: vec![] };
    let answer = v1::Answer { answer: Some(v1::answer::Answer::Index(repeated)) };
    assert_eq!(Answer::from_wire(answer), Err(WireError::Order { field: "index.params", at: 1 }));
}
