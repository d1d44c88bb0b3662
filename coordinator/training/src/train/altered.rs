//! Law: no answer of a worker makes the coordinator panic or run without end, whichever of its fields is altered. An altered answer is
//! refused when it arrives, or the job ends with a result or an error.
//!
//! Answers are altered as messages, one field at a time, under every model and method.

use std::collections::BTreeMap;
use std::mem::discriminant;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use fleet::{Compute, Inline};
use grammaton::work::engine::engine;
use grammaton::work::task::{Answer, Task};
use parking_lot::Mutex;
use proto::convert::{Wire as _, fits};
use proto::v1;

use super::group::Inputs;
use super::laws::{all, folder, job, parse};
use super::train;
use crate::events::All;
use crate::job::Job;
use crate::train::checkpoint::Checkpoints;

/// Jobs that are run with accepted answers, for each field of each kind of answer of a model and method.
const RUNS_PER_FIELD: usize = 2;

/// A field of a message.
enum Field<'m> {
    Double(&'m mut f64),
    Long(&'m mut u64),
    Int(&'m mut u32),
    Doubles(&'m mut Vec<f64>),
    Floats(&'m mut Vec<f32>),
    Longs(&'m mut Vec<u64>),
    Ints(&'m mut Vec<u32>),
    Texts(&'m mut Vec<String>),
}

/// Alters elements of a list, or the list itself. Returns whether alteration number `how` exists.
fn alter_list<T: Clone>(list: &mut Vec<T>, how: usize, zero: T, values: &[&dyn Fn(&T) -> T]) -> bool {
    match how {
        0 => list.clear(),
        1 => drop(list.pop()),
        2 => list.push(list.last().cloned().unwrap_or(zero)),
        3 => list.insert(0, zero),
        4 => list.extend_from_within(..),
        5 => list.reverse(),
        _ => {
            let Some(value) = values.get((how - 6) / 2) else { return false };
            let at = if how.is_multiple_of(2) { 0 } else { list.len().saturating_sub(1) };
            if let Some(element) = list.get_mut(at) {
                *element = value(element);
            }
        }
    }
    true
}

fn alter_element<T: Clone>(element: &mut T, how: usize, values: &[&dyn Fn(&T) -> T]) -> bool {
    let Some(value) = values.get(how) else { return false };
    *element = value(element);
    true
}

impl Field<'_> {
    /// Makes alteration number `how`. Returns whether it exists.
    fn alter(&mut self, how: usize) -> bool {
        let doubles: [&dyn Fn(&f64) -> f64; 12] = [
            &|_| f64::NAN,
            &|_| f64::INFINITY,
            &|_| f64::NEG_INFINITY,
            &|_| 0.0,
            &|_| -0.0,
            &|x| -x,
            &|_| 1e300,
            &|_| -1e99,
            &|x| x + 1.0,
            &|x| x * 2.0,
            &|x| x / 1e3,
            &|_| f64::MIN_POSITIVE,
        ];
        let floats: [&dyn Fn(&f32) -> f32; 5] =
            [&|_| f32::NAN, &|_| f32::INFINITY, &|x| -x, &|_| f32::MAX, &|x| x + 1.0];
        let longs: [&dyn Fn(&u64) -> u64; 5] =
            [&|_| 0, &|_| u64::MAX, &|n| n.wrapping_add(1), &|n| n.wrapping_sub(1), &|n| n ^ 3];
        let ints: [&dyn Fn(&u32) -> u32; 4] =
            [&|_| 0, &|_| u32::MAX, &|n| n.wrapping_add(1), &|n| n.wrapping_sub(1)];
        let texts: [&dyn Fn(&String) -> String; 4] =
            [&|_| String::new(), &|_| "(S a)".to_owned(), &|text| format!("({text}"), &|text| {
                text.replace(' ', " (")
            }];
        match self {
            Field::Double(number) => alter_element(*number, how, &doubles),
            Field::Long(number) => alter_element(*number, how, &longs),
            Field::Int(number) => alter_element(*number, how, &ints),
            Field::Doubles(list) => alter_list(list, how, 0.0, &doubles),
            Field::Floats(list) => alter_list(list, how, 0.0, &floats),
            Field::Longs(list) => alter_list(list, how, 0, &longs),
            Field::Texts(list) => alter_list(list, how, String::new(), &texts),
            Field::Ints(list) => {
                // Then each of some indexes alone, so that a claim about one of them may be plausible.
                let n_common = 6 + 2 * ints.len();
                match how.checked_sub(n_common) {
                    None => alter_list(list, how, 0, &ints),
                    Some(index) => {
                        **list = vec![index as u32];
                        index < 24
                    }
                }
            }
        }
    }
}

/// Passes every field of a message to `visit`, with its name.
fn fields(message: &mut v1::Answer, visit: &mut dyn FnMut(&str, Field<'_>)) {
    use v1::answer::Answer as Of;
    match message.answer.as_mut().expect("an answer was encoded") {
        Of::Candidates(found) => {
            for (name, counts) in [("counted", &mut found.counted), ("longer", &mut found.longer)] {
                let Some(v1::StringCounts { symbols, strings, amounts }) = counts else { continue };
                visit(&format!("{name}.symbols"), Field::Ints(symbols));
                of_strings(&format!("{name}.strings"), strings, visit);
                visit(&format!("{name}.amounts"), Field::Doubles(amounts));
            }
            visit("longest", Field::Int(&mut found.longest));
            visit("unparsable", Field::Ints(&mut found.unparsable));
        }
        Of::Missing(found) => {
            visit("symbols", Field::Ints(&mut found.symbols));
            of_strings("strings", &mut found.strings, visit);
        }
        Of::Index(found) => {
            visit("params", Field::Ints(&mut found.params));
            visit("unparsable", Field::Ints(&mut found.unparsable));
        }
        Of::Expectation(found) => of_expectation(found, visit),
        Of::Sampled(found) => {
            visit("counts", Field::Doubles(&mut found.counts));
            of_strings("ends", &mut found.ends, visit);
            visit("trees", Field::Texts(&mut found.trees));
            visit("missing", Field::Ints(&mut found.missing));
        }
        Of::Collapsed(found) => {
            found.expectation.iter_mut().for_each(|expectation| of_expectation(expectation, visit));
            of_state(&mut found.shard_state, visit);
        }
        Of::Chained(found) => {
            visit("uses", Field::Ints(&mut found.uses));
            visit("log_seating", Field::Double(&mut found.log_seating));
            for (name, moves) in
                [("tree_moves", &mut found.tree_moves), ("label_moves", &mut found.label_moves)]
            {
                let Some(v1::Moves { proposed, accepted, changed }) = moves else { continue };
                for number in [proposed, accepted, changed] {
                    visit(name, Field::Long(number));
                }
            }
            if let Some(v1::UsedStrings { symbols, strings, customers, tables }) = &mut found.strings {
                visit("strings.symbols", Field::Ints(symbols));
                of_strings("strings", strings, visit);
                visit("strings.customers", Field::Ints(customers));
                visit("strings.tables", Field::Ints(tables));
            }
            of_strings("ends", &mut found.ends, visit);
            visit("trees", Field::Texts(&mut found.trees));
            of_state(&mut found.shard_state, visit);
        }
        Of::Decoded(found) => {
            let last = found.sentences.len().saturating_sub(1);
            let ends = found.sentences.iter_mut().enumerate().filter(|(at, _)| *at == 0 || *at == last);
            for (_, sentence) in ends {
                visit("log_z", Field::Double(&mut sentence.log_z));
                of_strings("segmentations", &mut sentence.segmentations, visit);
                visit("trees", Field::Texts(&mut sentence.trees));
            }
        }
        Of::Annotated(found) => {
            visit("counts", Field::Doubles(&mut found.counts));
            visit("log_z", Field::Double(&mut found.log_z));
            of_state(&mut found.shard_state, visit);
        }
        Of::Fitted(found) => match found.fitted.as_mut().expect("it was encoded") {
            v1::fitted::Fitted::Unbounded(sentence) => visit("unbounded", Field::Int(sentence)),
            v1::fitted::Fitted::Statistics(found) => {
                visit("sentences", Field::Long(&mut found.sentences));
                visit("bound", Field::Double(&mut found.bound));
                visit("rounds", Field::Long(&mut found.rounds));
                visit("users", Field::Longs(&mut found.users));
                visit("outcomes", Field::Ints(&mut found.outcomes));
                visit("first", Field::Doubles(&mut found.first));
                visit("second", Field::Doubles(&mut found.second));
                visit("variance", Field::Doubles(&mut found.variance));
                visit("part_bounds", Field::Doubles(&mut found.part_bounds));
                visit("empty", Field::Longs(&mut found.empty));
            }
        },
    }
}

fn of_expectation(found: &mut v1::Expectation, visit: &mut dyn FnMut(&str, Field<'_>)) {
    visit("counts", Field::Doubles(&mut found.counts));
    visit("losses", Field::Doubles(&mut found.losses));
    visit("log_z", Field::Double(&mut found.log_z));
    visit("log_z_items", Field::Doubles(&mut found.log_z_items));
    visit("missing", Field::Ints(&mut found.missing));
}

fn of_strings(name: &str, strings: &mut Option<v1::Strings>, visit: &mut dyn FnMut(&str, Field<'_>)) {
    let Some(v1::Strings { lengths, symbols }) = strings else { return };
    visit(&format!("{name}.lengths"), Field::Ints(lengths));
    visit(&format!("{name}.symbols"), Field::Ints(symbols));
}

fn of_state(state: &mut Option<v1::ShardState>, visit: &mut dyn FnMut(&str, Field<'_>)) {
    use v1::shard_state::State;
    match state.as_mut().and_then(|state| state.state.as_mut()) {
        None => {}
        Some(State::Counts(v1::ShardStateCounts { params, counts })) => {
            of_strings("state.params", params, visit);
            visit("state.counts", Field::Doubles(counts));
        }
        Some(State::Trees(v1::ShardStateTrees { lengths, counts })) => {
            visit("state.lengths", Field::Ints(lengths));
            visit("state.counts", Field::Floats(counts));
        }
        Some(State::Chain(chain)) => of_chain(chain, visit),
        Some(State::Sweeping(v1::ShardStateSweeping { chain, random_low, random_high, left })) => {
            chain.iter_mut().for_each(|chain| of_chain(chain, visit));
            visit("state.random", Field::Long(random_low));
            visit("state.random", Field::Long(random_high));
            visit("state.left", Field::Int(left));
        }
    }
}

fn of_chain(chain: &mut v1::ShardStateChain, visit: &mut dyn FnMut(&str, Field<'_>)) {
    let v1::ShardStateChain { trees, symbols, labels, processes } = chain;
    for (name, derivations) in [("state.trees", trees), ("state.labels", labels)] {
        let Some(v1::Derivations { lengths, choices }) = derivations else { continue };
        visit(name, Field::Ints(lengths));
        visit(name, Field::Longs(choices));
    }
    visit("state.symbols", Field::Ints(symbols));
    for v1::Process { discount, concentration } in processes {
        visit("state.discount", Field::Double(discount));
        visit("state.concentration", Field::Double(concentration));
    }
}

/// Alteration number `how` of field number `field`.
#[derive(Clone, Copy, PartialEq, Debug)]
struct Alteration {
    field: usize,
    how: usize,
}

impl Alteration {
    /// The name of the field and the altered message; `None` if the alteration does not exist.
    fn of(self, answer: &Answer) -> Option<(String, v1::Answer)> {
        let mut message = answer.to_wire();
        let (mut at, mut altered) = (0, None);
        fields(&mut message, &mut |name, mut field| {
            if at == self.field {
                altered = field.alter(self.how).then(|| name.to_owned());
            }
            at += 1;
        });
        Some((altered?, message))
    }
}

fn n_fields(answer: &Answer) -> usize {
    let mut n = 0;
    fields(&mut answer.to_wire(), &mut |_, _| n += 1);
    n
}

/// The altered answer, as a coordinator receives it; `None` if it refuses it.
fn received(task: &Task, message: v1::Answer) -> Option<Answer> {
    use prost::Message as _;
    let answer = Answer::from_bytes(message.encode_to_vec().into()).ok()?;
    fits::answer(task, &answer).is_ok().then_some(answer)
}

/// Runs a job with that fleet; its result or error.
fn run(job: &Job, inputs: &Inputs, compute: Compute) -> Result<(), String> {
    let mut checkpoints = Checkpoints::none();
    let outcome = train(job, inputs, &Inline::new(compute), &mut checkpoints, &mut All(Vec::new()));
    outcome.map(drop).map_err(|error| format!("{error:#}"))
}

/// The tasks of an honest run, with their answers.
fn recorded(job: &Job, inputs: &Inputs) -> Vec<(Task, Answer)> {
    let (record, honest) = (Arc::new(Mutex::new(Vec::new())), engine());
    let kept = record.clone();
    let compute: Compute = Arc::new(move |task| {
        let answer = honest(task)?;
        kept.lock().push((task.clone(), answer.clone()));
        Ok(answer)
    });
    run(job, inputs, compute).unwrap();
    std::mem::take(&mut *record.lock())
}

#[derive(Default, Debug)]
struct Tried {
    altered: usize,
    refused: usize,
    jobs: usize,
    results: usize,
    errors: BTreeMap<String, usize>,
}

/// A job with answers altered from task number `first` on: one, or all of its kind. Panics if it does not end.
fn try_altered(
    job: &Job,
    inputs: &Inputs,
    (first, until): (usize, usize),
    most: usize,
    like: &Answer,
    alter: impl Fn(&Task, &Answer) -> Option<Answer> + Send + Sync + 'static,
) -> Result<(), String> {
    let (honest, n, like) = (engine(), AtomicUsize::new(0), like.clone());
    let compute: Compute = Arc::new(move |task| {
        let at = n.fetch_add(1, Ordering::Relaxed);
        assert!(at < most, "the job has run {at} tasks, and does not end");
        let answer = honest(task)?;
        if (first..until).contains(&at) && discriminant(&answer) == discriminant(&like) {
            return Ok(alter(task, &answer).unwrap_or(answer));
        }
        Ok(answer)
    });
    run(job, inputs, compute)
}

#[test]
#[ignore = "slow"]
fn altered_answers_neither_panic_nor_run_without_end() {
    let dir = folder();
    let mut tried = Tried::default();
    for (model, estimator) in all() {
        let mut job = parse(&job(model, estimator), dir.path(), &[]).unwrap();
        job.points.iter_mut().for_each(|point| point.inference.max_rounds = 4);
        let inputs = Inputs::load(&job).unwrap();
        let record = recorded(&job, &inputs);
        for (task, answer) in &record {
            assert_eq!(fits::answer(task, answer), Ok(()), "an honest answer, {model:?} {estimator:?}");
            assert_eq!(received(task, answer.to_wire()).as_ref(), Some(answer));
        }
        let most = 20 * record.len() + 1000;
        let mut outcome = |name: &str, what: &str, run: &dyn Fn() -> Result<(), String>| {
            tried.jobs += 1;
            match catch_unwind(AssertUnwindSafe(run)) {
                Ok(Ok(())) => tried.results += 1,
                Ok(Err(error)) => {
                    assert!(
                        !error.contains("internal error"),
                        "{model:?} {estimator:?}, {name}, {what}: {error}"
                    );
                    let error = error.chars().filter(|c| !c.is_ascii_digit()).take(60).collect();
                    *tried.errors.entry(error).or_default() += 1;
                }
                Err(_) => panic!("{model:?} {estimator:?}, field {name}, {what}"),
            }
        };
        let mut kinds: Vec<(usize, usize)> = Vec::new();
        for (at, (_, answer)) in record.iter().enumerate() {
            match kinds.iter_mut().find(|(first, _)| discriminant(&record[*first].1) == discriminant(answer))
            {
                Some((_, last)) => *last = at,
                None => kinds.push((at, at)),
            }
        }
        for (first, last) in kinds {
            let places = if first == last { vec![first] } else { vec![first, last] };
            for at in places {
                let (task, answer) = &record[at];
                for field in 0..n_fields(answer) {
                    let mut accepted = Vec::new();
                    for how in 0.. {
                        let alteration = Alteration { field, how };
                        let Some((name, message)) = alteration.of(answer) else { break };
                        tried.altered += 1;
                        match received(task, message) {
                            None => tried.refused += 1,
                            Some(altered) if altered == *answer => {}
                            Some(altered) => accepted.push((name, alteration, altered)),
                        }
                    }
                    // Some of them, spread over all.
                    let step = accepted.len().div_ceil(RUNS_PER_FIELD).max(1);
                    for (name, alteration, altered) in accepted.into_iter().step_by(step) {
                        outcome(&name, &format!("{alteration:?}, once"), &|| {
                            let altered = altered.clone();
                            let alter = move |_: &Task, _: &Answer| Some(altered.clone());
                            try_altered(&job, &inputs, (at, at + 1), most, answer, alter)
                        });
                        outcome(&name, &format!("{alteration:?}, always"), &|| {
                            let alter =
                                move |task: &Task, answer: &Answer| received(task, alteration.of(answer)?.1);
                            try_altered(&job, &inputs, (at, usize::MAX), most, answer, alter)
                        });
                    }
                }
                // The answer to another task of its kind.
                let others = record.iter().filter(|(_, other)| discriminant(other) == discriminant(answer));
                for (_, other) in others.filter(|(_, other)| other != answer).take(8) {
                    tried.altered += 1;
                    match received(task, other.to_wire()) {
                        None => tried.refused += 1,
                        Some(other) => outcome("all", "exchanged", &|| {
                            let other = other.clone();
                            let alter = move |_: &Task, _: &Answer| Some(other.clone());
                            try_altered(&job, &inputs, (at, at + 1), most, answer, alter)
                        }),
                    }
                }
            }
        }
    }
    println!("{tried:#?}");
    assert!(tried.altered > 10_000 && tried.refused * 2 > tried.altered, "{tried:?}");
}
