//! Law: no answer of a worker makes the coordinator panic or run without end, whichever of its fields is altered. An altered answer is
//! refused when it arrives, or the job ends with a result or an error.
//!
//! Answers are altered one field at a time, under every model and method.

use std::collections::BTreeMap;
use std::mem::discriminant;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use fleet::{Compute, Inline};
use grammaton::encoding::encode;
use grammaton::grammar::{ParamId, SymbolId};
use grammaton::models::logistic_normal::{ComponentSums, Moments};
use grammaton::models::sampler::state::Choice;
use grammaton::models::sampler::{Hyper, Moves, State, Uses};
use grammaton::models::tally::Analysis;
use grammaton::work::engine::engine;
use grammaton::work::task::{Answer, Expectation, Fitted, ShardState, StringCounts, Sweeping, Task};
use parking_lot::Mutex;
use proto::check;

use super::group::Inputs;
use super::laws::{all, folder, job, parse};
use super::train;
use crate::events::All;
use crate::job::Job;
use crate::train::checkpoint::Checkpoints;

/// Jobs that are run with accepted answers, for each field of each kind of answer of a model and method.
const RUNS_PER_FIELD: usize = 2;

/// A field of an answer.
enum Field<'a> {
    Double(&'a mut f64),
    Long(&'a mut u64),
    Int(&'a mut u32),
    Doubles(&'a mut Vec<f64>),
    Floats(&'a mut Vec<f32>),
    Longs(&'a mut Vec<u64>),
    Ints(&'a mut Vec<u32>),
    Texts(&'a mut Vec<String>),
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

type Visit<'a> = &'a mut dyn FnMut(&str, Field<'_>);

/// Passes every field of an answer to `visit`, with its name.
fn fields(answer: &mut Answer, visit: Visit<'_>) {
    match answer {
        Answer::Candidates(found) => {
            for (name, counts) in [("counted", &mut found.counted), ("longer", &mut found.longer)] {
                let StringCounts { symbols, strings, amounts } = counts;
                list(&format!("{name}.symbols"), symbols, visit);
                let mut rows: Vec<Vec<SymbolId>> = strings.iter().map(<[SymbolId]>::to_vec).collect();
                lists(&format!("{name}.strings"), &mut rows, visit);
                *strings = rows.iter().collect();
                visit(&format!("{name}.amounts"), Field::Doubles(amounts));
            }
            visit("longest", Field::Int(&mut found.longest));
            visit("unparsable", Field::Ints(&mut found.unparsable));
        }
        Answer::Missing(found) => {
            let (mut symbols, mut strings): (Vec<_>, Vec<_>) = std::mem::take(found).into_iter().unzip();
            list("symbols", &mut symbols, visit);
            lists("strings", &mut strings, visit);
            *found = symbols.into_iter().zip(strings).collect();
        }
        Answer::Index(found) => {
            list("params", &mut found.params, visit);
            visit("unparsable", Field::Ints(&mut found.unparsable));
        }
        Answer::Expectation(found) => of_expectation(found, visit),
        Answer::Sampled(found) => {
            visit("counts", Field::Doubles(&mut found.counts));
            of_analyses(&mut found.analyses, visit);
            list("missing", &mut found.missing, visit);
        }
        Answer::Collapsed(found) => {
            of_expectation(&mut found.expectation, visit);
            of_state(&mut found.shard_state, visit);
        }
        Answer::Chained(found) => {
            visit("uses", Field::Ints(&mut found.uses));
            visit("log_seating", Field::Double(&mut found.log_seating));
            for (name, moves) in [("tree_moves", &mut found.trees), ("label_moves", &mut found.labels)] {
                let Moves { proposed, accepted, changed } = moves;
                for number in [proposed, accepted, changed] {
                    visit(name, Field::Long(number));
                }
            }
            let mut strings: Vec<_> = found.strings.iter().map(|uses| uses.string.clone()).collect();
            lists("strings", &mut strings, visit);
            let uses =
                found.strings.iter().zip(strings).map(|(uses, string)| Uses { string, ..uses.clone() });
            found.strings = uses.collect();
            for (at, uses) in found.strings.iter_mut().enumerate().take(2) {
                visit(&format!("strings.symbols[{at}]"), Field::Int(&mut uses.symbol.0));
                visit(&format!("strings.customers[{at}]"), Field::Int(&mut uses.customers));
                visit(&format!("strings.tables[{at}]"), Field::Int(&mut uses.tables));
            }
            of_analyses(&mut found.analyses, visit);
            of_state(&mut found.shard_state, visit);
        }
        Answer::Decoded(found) => {
            let last = found.len().saturating_sub(1);
            for (_, sentence) in found.iter_mut().enumerate().filter(|(at, _)| *at == 0 || *at == last) {
                visit("log_z", Field::Double(&mut sentence.log_z));
                lists("segmentations", &mut sentence.segmentations, visit);
                visit("trees", Field::Texts(&mut sentence.trees));
                for (start, end, probability) in sentence.spans.iter_mut().take(2) {
                    visit("spans.start", Field::Int(start));
                    visit("spans.end", Field::Int(end));
                    visit("spans.probability", Field::Double(probability));
                }
            }
        }
        Answer::Annotated(found) => {
            visit("counts", Field::Doubles(&mut found.expectation.counts));
            visit("log_z", Field::Double(&mut found.expectation.ln_z));
            found.shard_state.iter_mut().for_each(|state| of_state(state, visit));
        }
        Answer::Fitted(Fitted::Unbounded { shard, sentence }) => {
            visit("unbounded shard", Field::Int(shard));
            visit("unbounded", Field::Int(sentence));
        }
        Answer::Fitted(Fitted::Statistics(found)) => {
            visit("sentences", Field::Long(&mut found.n_sentences));
            visit("bound", Field::Double(&mut found.bound));
            visit("rounds", Field::Long(&mut found.n_rounds));
            for Moments { n_sentences, first, second, variance } in found.moments.iter_mut().take(2) {
                visit("users", Field::Long(n_sentences));
                visit("first", Field::Doubles(first));
                visit("second", Field::Doubles(second));
                visit("variance", Field::Doubles(variance));
            }
            for ComponentSums { bound, n_empty } in found.parts.iter_mut().take(2) {
                visit("part_bounds", Field::Double(bound));
                visit("empty", Field::Long(n_empty));
            }
        }
    }
}

/// An index or a number, as a field.
trait Element: Clone {
    fn get(&self) -> u32;
    fn of(number: u32) -> Self;
}

macro_rules! element {
    ($($id:ident),*) => {
        $(impl Element for $id {
            fn get(&self) -> u32 {
                self.0
            }
            fn of(number: u32) -> $id {
                $id(number)
            }
        })*
    };
}
element!(SymbolId, ParamId);

impl Element for u32 {
    fn get(&self) -> u32 {
        *self
    }
    fn of(number: u32) -> u32 {
        number
    }
}

fn list<T: Element>(name: &str, list: &mut Vec<T>, visit: Visit<'_>) {
    let mut numbers: Vec<u32> = list.iter().map(T::get).collect();
    visit(name, Field::Ints(&mut numbers));
    *list = numbers.into_iter().map(T::of).collect();
}

/// The lengths of the lists, and their elements one after the other.
fn lists<T: Element>(name: &str, lists: &mut Vec<Vec<T>>, visit: Visit<'_>) {
    let mut lengths: Vec<u32> = lists.iter().map(|list| list.len() as u32).collect();
    let mut all = lists.concat();
    visit(&format!("{name}.lengths"), Field::Ints(&mut lengths));
    list(name, &mut all, visit);
    let mut rest = &all[..];
    let cut = |length: u32| {
        let (list, after) = rest.split_at(rest.len().min(length as usize));
        rest = after;
        list.to_vec()
    };
    *lists = lengths.into_iter().map(cut).collect();
}

fn of_expectation(found: &mut Expectation, visit: Visit<'_>) {
    visit("counts", Field::Doubles(&mut found.counts));
    visit("losses", Field::Doubles(&mut found.losses));
    visit("log_z", Field::Double(&mut found.log_z));
    visit("log_z_items", Field::Doubles(&mut found.log_z_items));
    list("missing", &mut found.missing, visit);
}

fn of_analyses(analyses: &mut Vec<Analysis>, visit: Visit<'_>) {
    let (mut ends, mut trees): (Vec<_>, Vec<_>) =
        std::mem::take(analyses).into_iter().map(|Analysis { ends, tree }| (ends, tree)).unzip();
    lists("ends", &mut ends, visit);
    visit("trees", Field::Texts(&mut trees));
    *analyses = ends.into_iter().zip(trees).map(|(ends, tree)| Analysis { ends, tree }).collect();
}

fn of_state(state: &mut ShardState, visit: Visit<'_>) {
    match state {
        ShardState::Counts(counts) => {
            let (mut params, mut uses): (Vec<Vec<u32>>, Vec<Vec<f64>>) =
                std::mem::take(counts).into_iter().map(|counts| counts.into_iter().unzip()).unzip();
            lists("state.params", &mut params, visit);
            uses.iter_mut().take(2).for_each(|uses| visit("state.counts", Field::Doubles(uses)));
            let pairs = |(params, uses): (Vec<u32>, Vec<f64>)| params.into_iter().zip(uses).collect();
            *counts = params.into_iter().zip(uses).map(pairs).collect();
        }
        ShardState::Latent(own) => {
            own.trees.iter_mut().take(2).for_each(|counts| visit("state.counts", Field::Floats(counts)));
        }
        ShardState::Chain(chain) => of_chain(chain, visit),
        ShardState::Sweeping(Sweeping { state, random, left }) => {
            of_chain(state, visit);
            random.iter_mut().for_each(|random| visit("state.random", Field::Long(random)));
            visit("state.left", Field::Int(left));
        }
    }
}

fn of_chain(State { trees, tables, hyper }: &mut State, visit: Visit<'_>) {
    trees.iter_mut().take(2).for_each(|tree| choices("state.trees", tree, visit));
    for table in tables.iter_mut().take(2) {
        visit("state.symbols", Field::Int(&mut table.symbol.0));
        choices("state.labels", &mut table.label, visit);
    }
    for Hyper { discount, concentration } in hyper {
        visit("state.discount", Field::Double(discount));
        visit("state.concentration", Field::Double(concentration));
    }
}

fn choices(name: &str, choices: &mut Vec<Choice>, visit: Visit<'_>) {
    let mut numbers: Vec<u64> = choices.iter().map(|&choice| choice.into()).collect();
    visit(name, Field::Longs(&mut numbers));
    *choices = numbers.into_iter().filter_map(|number| number.try_into().ok()).collect();
}

/// Alteration number `how` of field number `field`.
#[derive(Clone, Copy, PartialEq, Debug)]
struct Alteration {
    field: usize,
    how: usize,
}

impl Alteration {
    /// The name of the field and the altered answer; `None` if the alteration does not exist.
    fn of(self, answer: &Answer) -> Option<(String, Answer)> {
        let mut answer = answer.clone();
        let (mut at, mut altered) = (0, None);
        fields(&mut answer, &mut |name, mut field| {
            if at == self.field {
                altered = field.alter(self.how).then(|| name.to_owned());
            }
            at += 1;
        });
        Some((altered?, answer))
    }
}

fn n_fields(answer: &Answer) -> usize {
    let mut n = 0;
    fields(&mut answer.clone(), &mut |_, _| n += 1);
    n
}

/// An answer, as a coordinator receives it; `None` if it refuses it.
fn received(task: &Task, answer: &Answer) -> Option<Answer> {
    let answer = check::decoded("answer", &encode(answer)).ok()?;
    check::answer(task, &answer).is_ok().then_some(answer)
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
            assert_eq!(check::answer(task, answer), Ok(()), "an honest answer, {model:?} {estimator:?}");
            assert_eq!(received(task, answer).as_ref(), Some(answer));
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
                        let Some((name, altered)) = alteration.of(answer) else { break };
                        tried.altered += 1;
                        match received(task, &altered) {
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
                            // Groups of shards depend on time, so this may be another task, whose answer is checked as such.
                            let alter = move |task: &Task, _: &Answer| received(task, &altered);
                            try_altered(&job, &inputs, (at, at + 1), most, answer, alter)
                        });
                        outcome(&name, &format!("{alteration:?}, always"), &|| {
                            let alter =
                                move |task: &Task, answer: &Answer| received(task, &alteration.of(answer)?.1);
                            try_altered(&job, &inputs, (at, usize::MAX), most, answer, alter)
                        });
                    }
                }
                // The answer to another task of its kind.
                let others = record.iter().filter(|(_, other)| discriminant(other) == discriminant(answer));
                for (_, other) in others.filter(|(_, other)| other != answer).take(8) {
                    tried.altered += 1;
                    match received(task, other) {
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
