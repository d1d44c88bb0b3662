//! Laws of what travels: tasks and answers arrive as they were sent, and what is not valid is refused, never a panic.

use std::ops::Range;
use std::sync::{Arc, LazyLock};

use grammaton::data::{Bracket, Sentence, TreeMarks};
use grammaton::encoding::encode;
use grammaton::grammar::ParamId;
use grammaton::grammar::groups::Groups;
use grammaton::grammar::lexicon::{Lexicon, StickStrings, Strings};
use grammaton::grammar::{Grammar, SymbolId};
use grammaton::models::decode::{Decode, Decoder};
use grammaton::models::sampler::state::{Choice, TableId};
use grammaton::models::sampler::{Hyper, HyperPrior, Settings, State};
use grammaton::num::Wide;
use grammaton::num::tree_sum::MAX_GROUP;
use grammaton::work::counts::union;
use grammaton::work::lease::{Attempt, BatchId, LeaseId, TaskIndex};
use grammaton::work::shard::Shard;
use grammaton::work::task::{
    Answer, ChainFrom, Chained, Collapse, Collapsed, ContentHash, Language, Lengths, Named, Request, Sample,
    Sampled, ShardState, Sweeping, Sweeps, Task, TaskWeights, WeightsInUse, Work,
};
use proptest::collection::vec;
use proptest::prelude::*;
use prost::bytes::Bytes;
use proto::blob::Blob;
use proto::check::{self, Invalid};
use proto::{lease, v1};

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
    let sentence = |text| Sentence::new(symbols(text), 3);
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
        spans: true,
        open: true,
    };
    let engine = grammaton::work::engine::engine();
    let bare = Named::new(Lexicon { sticks: vec![StickStrings { symbol: word, strings: Strings::new() }] });
    let full = Named::new(lexicon);
    let on = |lexicon: &Named<Lexicon>, shard: &Named<Shard>, work| {
        let (grammar, lexicon, shard) = (grammar.clone(), lexicon.clone(), shard.clone());
        let task = Task { language: Some(Language { grammar, lexicon }), shard, work, further: Vec::new() };
        let answer = engine(&task).expect("the task has an answer");
        (task, answer)
    };
    let of_strings = Named::new(Shard::Strings(n_params as u32 - 4..n_params as u32));
    let mut all = vec![
        on(&bare, &shard, Work::Candidates(Lengths { max_length: 20, longer_than: 2, up_to: 7 })),
        on(&bare, &shard, Work::Cover),
        on(&full, &shard, Work::Decode(Named::new(decode))),
    ];
    // For chains: a sentence without a derivation, and no strings of adapted nonterminals.
    let shard_of_chains = Named::new(Shard::Sentences(["(é(", "x", "é"].map(sentence).into()));
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

/// Tasks of every kind, with their answers.
pub fn every_kind() -> Vec<(Task, Answer)> {
    let mut all = answered();
    all.extend([super::fit::answered(), super::fit::answered_mixture()]);
    all.extend(super::latent::answered());
    let of_group = of_a_group(&all);
    all.extend(of_group);
    all
}

/// Counts of the shards of all tasks that ask for some, as one task, with weights of its own and with shared ones.
fn of_a_group(all: &[(Task, Answer)]) -> [(Task, Answer); 2] {
    let engine = grammaton::work::engine::engine();
    let each = all.iter().map(|(task, _)| task).filter(|task| matches!(task.work, Work::Expect { .. }));
    let each: Vec<&Task> = each.collect();
    let index = |task: &&Task| match engine(&Task { work: Work::Index, ..(*task).clone() }) {
        Ok(Answer::Index(index)) => index.params,
        other => panic!("{other:?} is not an index"),
    };
    let indexes: Vec<Vec<ParamId>> = each.iter().map(index).collect();
    let params = union(indexes.iter().map(Vec::as_slice));
    let half = Wide::from_f64(0.5);
    let own = params.iter().map(|_| half).collect();
    let n_params = each[0].language.as_ref().expect("it counts sentences").n_params();
    let shared = shared(vec![half; n_params], params.len() as u32);
    [own, shared].map(|weights| {
        let task = Task {
            further: each[1..].iter().map(|task| task.shard.clone()).collect(),
            work: Work::Expect { weights, losses: true },
            ..each[0].clone()
        };
        let answer = engine(&task).expect("the task has an answer");
        (task, answer)
    })
}

/// Weights of all parameters, all in use, so many of which the shards of a task touch.
fn shared(all: Vec<Wide>, n_touched: u32) -> TaskWeights {
    TaskWeights::Shared { all: Named::new(all.into_iter().collect()), n_touched, n_in_use: n_touched }
}

/// Law: a task has several shards only if their answers can be added, and at most as many as a group.
#[test]
fn only_what_can_be_added_is_asked_of_groups() {
    for (task, _) in every_kind() {
        let with = |n: usize| Task { further: vec![task.shard.clone(); n], ..task.clone() };
        assert_eq!(check::group(&with(1)).is_ok(), task.work.is_summed(), "{:?}", task.work);
        assert!(check::group(&with(0)).is_ok() && check::group(&with(MAX_GROUP)).is_err());
        assert!(check::work(&with(MAX_GROUP)).is_err());
    }
}

/// Checks all of a task, as a worker does.
fn check_task(task: &Task) -> Result<(), Invalid> {
    match &task.language {
        None => check::trees(&task.shard.value)?,
        Some(language) => {
            check::grammar(&language.grammar.value)?;
            check::lexicon(&language.grammar.value, &language.lexicon.value)?;
            check::shard(language, &task.shard.value)?;
        }
    }
    check::work(task)
}

/// The task of a lease, from the bytes that it and its blobs travel as.
fn sent((head, payload): &(v1::LeaseHead, Bytes), blobs: &[(i32, Bytes)]) -> Result<Task, Invalid> {
    let blobs = blobs.iter().map(|(kind, bytes)| Blob::from_bytes(*kind, bytes));
    let blobs = blobs.collect::<Result<Vec<Blob>, Invalid>>()?;
    lease::task_from_wire(head, payload, |hash| blobs.iter().find(|blob| blob.hash() == hash))
}

const LEASE: LeaseId = LeaseId { batch: BatchId(1), task: TaskIndex(2), attempt: Attempt(3) };

fn blobs(task: &Task) -> Vec<(i32, Bytes)> {
    Blob::of_task(task).iter().map(|blob| (blob.kind() as i32, blob.to_bytes())).collect()
}

/// Law: a task and its answer arrive as they were sent; every blob has the hash of its bytes; no answer is larger than its task allows; a
/// lease without one of its blobs, or with one of another kind in its place, is refused.
#[test]
fn tasks_and_answers_arrive_as_they_were_sent() {
    for (task, answer) in every_kind() {
        let (lease, blobs) = (lease::to_wire(LEASE, &task), blobs(&task));
        let again = sent(&lease, &blobs).unwrap();
        assert_eq!(check_task(&again), Ok(()));
        assert_eq!((&lease::to_wire(LEASE, &again), &self::blobs(&again)), (&lease, &blobs));
        for (blob, (_, bytes)) in Blob::of_task(&task).iter().zip(&blobs) {
            assert_eq!(blob.hash(), ContentHash::of(bytes));
        }
        for at in 0..blobs.len() {
            let mut fewer = blobs.clone();
            let (kind, bytes) = fewer.remove(at);
            assert!(matches!(sent(&lease, &fewer), Err(Invalid::Missing { .. })));
            fewer.push((kind % 7 + 1, bytes));
            assert!(sent(&lease, &fewer).is_err());
        }

        assert_eq!(check::answer(&task, &answer), Ok(()));
        let bytes = encode(&answer);
        assert_eq!(check::decoded::<Answer>("answer", &bytes).as_ref(), Ok(&answer));
        let (found, most) = (bytes.len() as u64, check::largest_answer(&task));
        assert!(found <= most, "{:?}: {found} bytes, expected at most {most}", task.work);
    }
}

proptest! {
    /// Law: bytes that were changed on the way are refused, or are a value like any other: nothing panics.
    #[test]
    fn changed_bytes_never_panic(which in 0..21usize, part in 0..6usize, flips in vec((any::<usize>(), 0..8u8), 1..6)) {
        static ALL: LazyLock<Vec<(Task, Answer)>> = LazyLock::new(every_kind);
        let (task, answer) = &ALL[which % ALL.len()];
        let change = |bytes: &Bytes| {
            let mut bytes = bytes.to_vec();
            for &(at, bit) in &flips {
                let length = bytes.len();
                bytes[at % length] ^= 1 << bit;
            }
            Bytes::from(bytes)
        };
        let ((mut head, mut payload), mut blobs) = (lease::to_wire(LEASE, task), blobs(task));
        match blobs.get_mut(part) {
            Some((_, bytes)) => {
                let before = ContentHash::of(bytes).0;
                *bytes = change(bytes);
                // The lease names it, as if it had been meant.
                for hash in [&mut head.grammar, &mut head.lexicon, &mut head.shard] {
                    if hash[..] == before {
                        *hash = ContentHash::of(bytes).0.to_vec().into();
                    }
                }
            }
            None => payload = change(&payload),
        }
        if let Ok(task) = sent(&(head, payload), &blobs) {
            let _ = check_task(&task);
        }
        if let Ok(answer) = check::decoded("answer", &change(&encode(answer).into())) {
            let _ = check::answer(task, &answer);
        }
    }

    #[test]
    fn noise_never_panics(kind in 0..9, bytes in vec(any::<u8>(), 0..200)) {
        let _ = Blob::from_bytes(kind, &bytes);
        let _ = check::decoded::<Request>("work", &bytes);
        let _ = check::decoded::<Answer>("answer", &bytes);
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
        check::work(&Task { work: Work::Collapse(others), ..task.clone() })
    };
    let answered = |shard_state: ShardState| {
        check::answer(&task, &Answer::Collapsed(Collapsed { shard_state, ..collapsed.clone() }))
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
    assert!(check::answer(&task, &Answer::Collapsed(needy)).is_err(), "a pass has no weights of zero");
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
        check::work(&Task { work: Work::Sweep(Sweeps { from, ..sweeps.clone() }), ..resumed.clone() })
    };
    let answered = |state: State| {
        let shard_state = ShardState::Chain(state);
        check::answer(&started, &Answer::Chained(Chained { shard_state, ..chained.clone() }))
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
    assert!(check::work(&other).is_err(), "of another method");
}

#[test]
fn sweeps_and_their_answers_fit_their_shard() {
    let [(started, sweeps, chained), (given, of_trees, unkept), _] = swept();
    let asked = |task: &Task, sweeps: Sweeps| {
        let error = check::work(&Task { work: Work::Sweep(sweeps), ..task.clone() }).unwrap_err();
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
        let error = check::answer(&started, &Answer::Chained(chained)).unwrap_err().to_string();
        assert!(error.starts_with(message), "{error}, expected {message}");
    }
    let strings = Chained { strings: chained.strings.clone(), ..unkept.clone() };
    let analyses = Chained { analyses: chained.analyses.clone(), ..unkept };
    for unasked in [strings, analyses] {
        assert!(check::answer(&given, &Answer::Chained(unasked)).is_err(), "trees were not requested");
    }
}

#[test]
fn numbers_of_sweeps_and_chains_are_checked() {
    let [(started, sweeps, chained), ..] = swept();
    let asked = |sweeps: Sweeps| check::work(&Task { work: Work::Sweep(sweeps), ..started.clone() });
    type Breaks = fn(&mut Sweeps);
    fn start(discount: f64, concentration: f64) -> ChainFrom {
        ChainFrom::Start { incremental: true, hyper: Hyper { discount, concentration } }
    }
    let broken: [(&str, Breaks); 13] = [
        ("start.process[0]: 1, expected a number in [0, 1)", |sweeps| sweeps.from = start(1.0, 1.0)),
        ("start.process[0]: -0.5, expected", |sweeps| sweeps.from = start(-0.5, 1.0)),
        ("start.process[0]: NaN, expected", |sweeps| sweeps.from = start(f64::NAN, 1.0)),
        ("start.process[0]: 0, expected a number that is finite", |sweeps| sweeps.from = start(0.5, 0.0)),
        ("start.process[0]: inf, expected", |sweeps| sweeps.from = start(0.5, f64::INFINITY)),
        ("sweeps.n[0]: 0, expected 1..1000001", |sweeps| sweeps.n = 0),
        ("sweeps.n[0]: 1000001, expected", |sweeps| sweeps.n = 1_000_001),
        ("sweeps.temperature[0]: 0, expected", |sweeps| sweeps.settings.temperature = 0.0),
        ("sweeps.temperature[0]: NaN, expected", |sweeps| sweeps.settings.temperature = f64::NAN),
        ("sweeps.pseudo[0]: 0, expected", |sweeps| sweeps.pseudo[0] = 0.0),
        ("sweeps.pseudo[0]: inf, expected", |sweeps| sweeps.pseudo[0] = f64::INFINITY),
        ("sweeps.hyper[0]: 0, expected", |sweeps| {
            sweeps.settings.hyper = Some(HyperPrior { shape: 0.0, scale: 1.0 });
        }),
        ("sweeps.hyper[1]: 2000000000, expected", |sweeps| {
            sweeps.settings.hyper = Some(HyperPrior { shape: 1.0, scale: 2e9 });
        }),
    ];
    assert_eq!(asked(sweeps.clone()), Ok(()));
    for (message, break_it) in broken {
        let mut sweeps = sweeps.clone();
        break_it(&mut sweeps);
        let error = asked(sweeps).unwrap_err().to_string();
        assert!(error.starts_with(message), "{error}, expected {message}");
    }

    type BreaksAnswer = fn(&mut Chained);
    fn state(chained: &mut Chained) -> &mut State {
        let ShardState::Chain(state) = &mut chained.shard_state else { panic!("it is a chain's") };
        state
    }
    let broken: [(&str, BreaksAnswer); 8] = [
        ("chained.log_seating[0]: NaN", |chained| chained.log_seating = f64::NAN),
        ("chained.log_seating[0]: inf", |chained| chained.log_seating = f64::INFINITY),
        ("chained.tree_moves: ", |chained| chained.trees.accepted = chained.trees.proposed + 1),
        ("chained.label_moves: ", |chained| chained.labels.changed = chained.labels.accepted + 1),
        ("chain.processes[0]: 0, expected a number that is", |chained| {
            state(chained).hyper[0].concentration = 0.0
        }),
        ("chain.labels[0]: empty", |chained| state(chained).tables[0].label.clear()),
        // A table that sits at itself, and a tree at a table that is not there.
        ("chain.labels: 1, expected at most 0", |chained| {
            state(chained).tables[0].label[0] = Choice::Table(TableId(0));
        }),
        ("chain.trees: 4294967296, expected", |chained| {
            state(chained).trees[0][0] = Choice::Table(TableId(u32::MAX));
        }),
    ];
    for (message, break_it) in broken {
        let mut chained = chained.clone();
        break_it(&mut chained);
        let error = check::answer(&started, &Answer::Chained(chained)).unwrap_err().to_string();
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
    let fits = |task: &Task, sampled: &Sampled| check::answer(task, &Answer::Sampled(sampled.clone()));
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
    assert_eq!(check::lexicon(grammar, lexicon), Ok(()));
    let without = check::lexicon(grammar, &Lexicon::default()).unwrap_err().to_string();
    assert!(without.contains("lexicon.sticks"), "{without}");
    let start = SymbolId(0);
    let mut foreign = lexicon.clone();
    foreign.sticks[0].symbol = start;
    assert!(check::lexicon(grammar, &foreign).is_err(), "a stick of what is not adapted");
    let mut foreign = lexicon.clone();
    foreign.sticks[0].strings.push(&[start]);
    assert!(check::lexicon(grammar, &foreign).is_err(), "a string of nonterminals");

    assert_eq!(check::answer(&task, &answer), Ok(()));
    let Answer::Decoded(decoded) = answer else { panic!("it decodes") };
    for ends in [vec![], vec![1], vec![1, 99]] {
        let mut decoded = decoded.clone();
        decoded[0].segmentations[0] = ends;
        assert!(check::answer(&task, &Answer::Decoded(decoded)).is_err());
    }
}

#[test]
fn a_small_task_never_allows_a_large_answer() {
    let (mut task, _) = answered().swap_remove(2);
    task.work = Work::Expect { weights: [Wide::ONE; 10].into_iter().collect(), losses: false };
    assert!(check::largest_answer(&task) < 1024, "{}", check::largest_answer(&task));
}

#[test]
fn numbers_and_orders_are_checked() {
    let all = answered();
    let (expect, Answer::Expectation(_)) = &all[7] else { panic!("counts were asked for") };
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
        let weights = vec![Wide { mantissa, exponent }];
        let work = Work::Sample(Sample { weights, stream: 1, keep: None });
        assert!(check::work(&Task { work, ..expect.clone() }).is_err(), "{mantissa} {exponent}");
    }
    let runs = encode(&(vec![2u32], vec![Wide::ONE]));
    let few: WeightsInUse = check::decoded("weights", &runs).unwrap();
    let refusal = |weights| {
        let work = Work::Expect { weights, losses: false };
        check::work(&Task { work, ..expect.clone() }).unwrap_err().to_string()
    };
    let error = refusal(TaskWeights::Touched(few.clone()));
    assert!(error.starts_with("weights: runs of 2 weights in use, expected 1"), "{error}");

    let n_params = expect.language.as_ref().unwrap().n_params();
    let of = |n_params: usize, n_touched, n_in_use| {
        let all = Named::new(vec![Wide::ONE; n_params].into_iter().collect());
        refusal(TaskWeights::Shared { all, n_touched, n_in_use })
    };
    let n = n_params as u32;
    let length = format!("expect.weights: length {}, expected {n}", n + 1);
    assert_eq!(of(n_params + 1, 1, 1), length);
    assert_eq!(of(n_params, n + 1, 1), format!("expect.n_touched: {}, expected at most {n}", n + 1));
    assert_eq!(of(n_params, 2, 3), "expect.n_in_use: 3, expected at most 2");
    let beyond = Wide { mantissa: 1.0, exponent: i64::MAX };
    let error = refusal(shared(vec![beyond; n_params], n));
    assert!(error.starts_with("expect.weights[0]: 1, expected a number from 1 to 2"), "{error}");

    let grammar = &expect.language.as_ref().unwrap().grammar.value;
    type Breaks = fn(&mut Grammar);
    let broken: [(&str, Breaks); 4] = [
        ("grammar: symbol 1 has an empty name", |grammar| grammar.symbols[1].clear()),
        ("grammar: 6 symbols, 9 of them nonterminals", |grammar| grammar.n_nonterminals = 9),
        ("grammar: rule 0 names symbol 99", |grammar| grammar.rules[0].children[0] = SymbolId(99)),
        ("grammar: 6 symbols, 3 of them nonterminals, and 2 adaptors", |grammar| {
            grammar.adaptors.truncate(2)
        }),
    ];
    for (message, break_it) in broken {
        let mut grammar = Grammar::clone(grammar);
        break_it(&mut grammar);
        let error = check::grammar(&grammar).unwrap_err().to_string();
        assert!(error.starts_with(message), "{error}, expected {message}");
    }

    let language = expect.language.as_ref().unwrap();
    let sentence = |tokens, multiplicity| Shard::Sentences(vec![Sentence::new(tokens, multiplicity)]);
    let terminal = SymbolId(grammar.n_nonterminals);
    assert_eq!(check::shard(language, &sentence(vec![terminal], 1)), Ok(()));
    for (message, shard) in [
        ("shard.tokens[0]: empty", sentence(vec![], 1)),
        ("shard.tokens[0]: 0, expected 3..6", sentence(vec![SymbolId(0)], 1)),
        ("shard.multiplicities[0]: 0, expected 1..", sentence(vec![terminal], 0)),
        ("shard.marks[0]: a head, a place", {
            let marks = TreeMarks { heads: vec![None; 2], ..TreeMarks::default() };
            Shard::Sentences(vec![Sentence::new(vec![terminal; 2], 1).with_marks(marks)])
        }),
        ("shard.marks[0]: a head, a place", {
            let marks = TreeMarks { breaks: vec![1], ..TreeMarks::default() };
            Shard::Sentences(vec![Sentence::new(vec![terminal; 2], 1).with_marks(marks)])
        }),
        ("shard.marks[0]: a head, a place or a bracket", {
            let brackets = vec![Bracket { start: 1, end: 3, labels: Vec::new() }];
            let marks = TreeMarks { brackets, ..TreeMarks::default() };
            Shard::Sentences(vec![Sentence::new(vec![terminal; 2], 1).with_marks(marks)])
        }),
        ("shard.strings[0]: 9, expected 0..4", Shard::Strings(Range { start: 9, end: 3 })),
        ("shard.strings[0]: 0, expected ", Shard::Strings(0..1)),
        ("shard.strings[0]: 4294967294, expected ", Shard::Strings(11..u32::MAX)),
    ] {
        let error = check::shard(language, &shard).unwrap_err().to_string();
        assert!(error.starts_with(message), "{error}, expected {message}");
    }

    let (task, Answer::Collapsed(_)) = all.last().unwrap() else { panic!("a pass was asked for") };
    let Work::Collapse(Collapse::Others { pseudo, sums, temperature, shard_state }) = &task.work else {
        panic!("it is not the first pass")
    };
    let pass = |of: f64, sum: f64, temperature: f64, state: Option<(u32, f64)>| {
        let (mut pseudo, mut sums, mut shard_state) = (pseudo.clone(), sums.clone(), shard_state.clone());
        (pseudo[0], sums[0]) = (of, sum);
        if let Some(count) = state {
            let mut counts = vec![vec![]; 9];
            counts[0] = vec![(0, 1.0), count];
            shard_state = Named::new(ShardState::Counts(counts));
        }
        let others = Collapse::Others { pseudo, sums, temperature, shard_state };
        check::work(&Task { work: Work::Collapse(others), ..task.clone() })
    };
    assert_eq!(pass(0.5, 2.0, *temperature, Some((1, 1.0))), Ok(()));
    for (of, sum, temperature, state) in [
        (-0.5, 2.0, 1.0, None),
        (f64::NAN, 2.0, 1.0, None),
        (0.5, f64::INFINITY, 1.0, None),
        (0.5, 2.0, 0.0, None),
        (0.5, 2.0, f64::NAN, None),
        (0.5, 2.0, 1.0, Some((0, 1.0))),
        (0.5, 2.0, 1.0, Some((1, 0.0))),
        (0.5, 2.0, 1.0, Some((1, f64::NAN))),
        (0.5, 2.0, 1.0, Some((1, f64::INFINITY))),
    ] {
        assert!(pass(of, sum, temperature, state).is_err(), "{of} {sum} {temperature} {state:?}");
    }

    let (task, Answer::Index(index)) = &all[6] else { panic!("an index was asked for") };
    let mut repeated = index.clone();
    repeated.params[1] = repeated.params[0];
    let error = check::answer(task, &Answer::Index(repeated));
    assert_eq!(error, Err(Invalid::Order { field: "index.params", at: 1 }));
}
