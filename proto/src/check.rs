//! Checks of what a peer has sent: a peer may be old, broken or hostile.
//!
//! In: values as they were decoded, with any numbers. Out: nothing, or an [`Invalid`] that names the field, the value found and the value
//! expected. A worker checks [`grammar`], [`lexicon`], [`shard`] and [`work`], each before the next; a coordinator checks each [`answer`] against
//! its task, wherever it was computed but in its own process. What only inference can check is not checked: whether sentences have
//! derivations, and whether counts are right.
//!
//! [`largest_answer`] bounds the size of an answer before it is received, so that a peer cannot make the receiver allocate a gigabyte for ten
//! numbers. Each kind of work has a file in `check/kinds`.

use grammaton::data::Sentence;
use grammaton::encoding::{self, DecodeError};
use grammaton::grammar::Grammar;
use grammaton::grammar::check::Defect;
use grammaton::grammar::lexicon::Lexicon;
use grammaton::limits::is_count;
use grammaton::num::Wide;
use grammaton::num::tree_sum::MAX_GROUP;
use grammaton::work::shard::Shard;
use grammaton::work::task::{Answer, Language, RunsError, Task, Work};
use serde::de::DeserializeOwned;

use items::Items;
use kinds::{annotate, candidates, collapse, cover, decode, expect, fit, index, sample, sweep};
use sizes::ENVELOPE;
use values::{at_most, nonempty, terminals};

mod items;
mod kinds;
mod sizes;
mod state;
mod values;

/// Why what a peer sent is not what it should be.
#[derive(Clone, PartialEq, Debug, thiserror::Error)]
pub enum Invalid {
    /// Bytes that are not a value of the expected type.
    #[error("{what}: {source}")]
    Malformed {
        /// The expected value.
        what: &'static str,
        /// Cause.
        source: DecodeError,
    },
    /// A required field is missing.
    #[error("{field}: missing")]
    Missing {
        /// The field.
        field: &'static str,
    },
    /// A string, list or name is empty that must not be.
    #[error("{field}[{at}]: empty, expected at least one element")]
    Empty {
        /// The field.
        field: &'static str,
        /// Position in it.
        at: usize,
    },
    /// Lists that belong together differ in length.
    #[error("{field}: length {found}, expected {expected}")]
    Length {
        /// The field.
        field: &'static str,
        /// Elements found.
        found: u64,
        /// Elements expected.
        expected: u64,
    },
    /// A quantity above its limit.
    #[error("{field}: {found}, expected at most {expected}")]
    Excess {
        /// The field or quantity.
        field: &'static str,
        /// The value found.
        found: u64,
        /// The largest allowed value.
        expected: u64,
    },
    /// An index or enumerator outside its range.
    #[error("{field}[{at}]: {found}, expected {start}..{end}")]
    Range {
        /// The field.
        field: &'static str,
        /// Position in it.
        at: usize,
        /// The index.
        found: i64,
        /// Smallest allowed value.
        start: u64,
        /// End of the range, exclusive.
        end: u64,
    },
    /// A number outside its domain.
    #[error("{field}[{at}]: {found}, expected a number {expected}")]
    Number {
        /// The field.
        field: &'static str,
        /// Position in it.
        at: usize,
        /// The number.
        found: f64,
        /// Description of the domain.
        expected: &'static str,
    },
    /// Heads, places of punctuation or brackets that the sentence does not have.
    #[error(
        "shard.marks[{at}]: a head, a place or a bracket outside of the sentence, or not one head for each of its words"
    )]
    Marks {
        /// The sentence.
        at: usize,
    },
    /// Elements that are not in strictly ascending order.
    #[error("{field}[{at}]: not above the element before it, expected ascending order without repeats")]
    Order {
        /// The field.
        field: &'static str,
        /// Position in it.
        at: usize,
    },
    /// A string that occurs in no sentence of the shard.
    #[error("{field}[{at}]: a string that occurs in no sentence of the shard")]
    Foreign {
        /// The field.
        field: &'static str,
        /// Position in it.
        at: usize,
    },
    /// A field that differs from what follows from other fields.
    #[error("{field}: not what the rest of the answer gives")]
    Inconsistent {
        /// The field.
        field: &'static str,
    },
    /// Runs that do not fit the weights of a task.
    #[error("weights: {0}")]
    Runs(#[from] RunsError),
    /// The tables of a grammar do not form a valid grammar.
    #[error("grammar: {0}")]
    Grammar(#[from] Defect),
    /// The state of a shard is inconsistent, or belongs to another shard.
    #[error("shard_state: {problem}")]
    ShardState {
        /// The condition that fails.
        problem: String,
    },
    /// Rules of a treebank are inconsistent, or a tree is not one of the grammar and its sentence.
    #[error("trees: {problem}")]
    Trees {
        /// The condition that fails.
        problem: String,
    },
    /// Priors or their statistics are inconsistent, or belong to another grammar.
    #[error("fit: {problem}")]
    Fit {
        /// The condition that fails.
        problem: String,
    },
    /// An answer whose kind differs from that of its task.
    #[error("answer: of another kind than its task")]
    Kind,
}

/// Decodes a payload, which errors name.
pub fn decoded<T: DeserializeOwned>(what: &'static str, payload: &[u8]) -> Result<T, Invalid> {
    encoding::decode(payload).map_err(|source| Invalid::Malformed { what, source })
}

/// Checks a grammar by itself.
pub fn grammar(grammar: &Grammar) -> Result<(), Invalid> {
    Ok(grammar.check()?)
}

/// Checks that `lexicon` has one stick for each nonterminal of `grammar` that rewrites to strings, and that the strings
/// consist of terminals of `grammar`.
pub fn lexicon(grammar: &Grammar, lexicon: &Lexicon) -> Result<(), Invalid> {
    same_length("lexicon.sticks", lexicon.sticks.len(), grammar.with_strings().count())?;
    for (at, (stick, symbol)) in lexicon.sticks.iter().zip(grammar.with_strings()).enumerate() {
        if stick.symbol != symbol {
            let found = i64::from(stick.symbol.0);
            let (start, end) = (u64::from(symbol.0), u64::from(symbol.0) + 1);
            return Err(Invalid::Range { field: "lexicon.sticks", at, found, start, end });
        }
        nonempty("lexicon.strings", stick.strings.iter())?;
        terminals("lexicon.strings", grammar, stick.strings.iter().flatten())?;
    }
    Ok(())
}

/// Checks that the items consist of terminals of `grammar`, or are strings of `lexicon`.
pub fn shard(Language { grammar, lexicon }: &Language, shard: &Shard) -> Result<(), Invalid> {
    let (grammar, lexicon) = (&*grammar.value, &*lexicon.value);
    match shard {
        Shard::Sentences(sentences) => {
            let tokens = || sentences.iter().map(|sentence| &sentence.tokens[..]);
            nonempty("shard.tokens", tokens())?;
            terminals("shard.tokens", grammar, tokens().flatten())?;
            let multiplicities = sentences.iter().map(|sentence| sentence.multiplicity);
            in_range("shard.multiplicities", multiplicities, 1..u64::from(u32::MAX) + 1)?;
            // A word of a dependency grammar is two tokens.
            let suits =
                |Sentence { tokens, marks, .. }: &Sentence| marks.suits(tokens.len(), tokens.len() / 2);
            match sentences.iter().position(|sentence| !suits(sentence)) {
                None => Ok(()),
                Some(at) => Err(Invalid::Marks { at }),
            }
        }
        Shard::Trees { .. } => trees(shard),
        Shard::Strings(params) => {
            in_range("shard.strings", [params.start], 0..u64::from(params.end) + 1)?;
            let strings = lexicon.space(grammar).strings();
            let strings = u64::from(strings.start)..u64::from(strings.end);
            in_range("shard.strings", params.clone().take(1), strings.clone())?;
            in_range("shard.strings", params.clone().last(), strings)
        }
    }
}

/// Checks the rules of a shard of trees, and that the trees are made of them.
pub fn trees(shard: &Shard) -> Result<(), Invalid> {
    let Shard::Trees { rules, trees } = shard else {
        return Err(Invalid::Missing { field: "lease.grammar" });
    };
    let wrong = |problem: &dyn ToString| Invalid::Trees { problem: problem.to_string() };
    rules.check().map_err(|error| wrong(&error))?;
    trees.check(rules).map_err(|error| wrong(&error))
}

/// Checks that the task has several shards only if their answers can be added, and not too many.
pub fn group(task: &Task) -> Result<(), Invalid> {
    let most = if task.work.is_summed() { MAX_GROUP - 1 } else { 0 };
    at_most("lease.further", task.further.len() as u64, most as u64)
}

/// Checks the request of a task against its grammar, lexicon and shard. The number of weights is checked when the task is
/// computed, since only the shard's index tells how many parameters the shard touches.
pub fn work(task: &Task) -> Result<(), Invalid> {
    let items = || Items::of(task);
    group(task)?;
    match &task.work {
        Work::Candidates(_) | Work::Cover | Work::Index => items().map(drop),
        Work::Expect { weights, .. } => expect::check(&items()?, weights),
        Work::Sample(sample) => sample::check(&items()?, sample),
        Work::Collapse(collapse) => collapse::check(&items()?, collapse),
        Work::Sweep(sweeps) => sweep::check(&items()?, sweeps),
        Work::Decode(with) => decode::check(&items()?, &with.value),
        Work::Annotate(annotate) => annotate::check(&task.shard.value, annotate),
        Work::Fit(with) => fit::check(&items()?, &with.value),
    }
}

/// Checks the kind, the lengths and the indexes of `answer` against `task`.
pub fn answer(task: &Task, answer: &Answer) -> Result<(), Invalid> {
    let items = || Items::of(task);
    match (&task.work, answer) {
        (Work::Candidates(lengths), Answer::Candidates(found)) => {
            candidates::check_answer(&items()?, lengths, found)
        }
        (Work::Cover, Answer::Missing(found)) => cover::check_answer(&items()?, found),
        (Work::Index, Answer::Index(found)) => index::check_answer(&items()?, found),
        (Work::Expect { weights, losses }, Answer::Expectation(found)) => {
            expect::check_answer(&items()?, weights, *losses, found)
        }
        (Work::Sample(sample), Answer::Sampled(found)) => sample::check_answer(&items()?, sample, found),
        (Work::Collapse(collapse), Answer::Collapsed(found)) => {
            collapse::check_answer(&items()?, collapse, found)
        }
        (Work::Sweep(sweeps), Answer::Chained(found)) => sweep::check_answer(&items()?, sweeps, found),
        (Work::Decode(with), Answer::Decoded(found)) => decode::check_answer(&items()?, &with.value, found),
        (Work::Annotate(annotate), Answer::Annotated(found)) => {
            annotate::check_answer(&task.shard.value, annotate, found)
        }
        (Work::Fit(with), Answer::Fitted(found)) => fit::check_answer(&items()?, &with.value, found),
        _ => Err(Invalid::Kind),
    }
}

/// Upper bound on the bytes of an answer to `task`.
pub fn largest_answer(task: &Task) -> u64 {
    // Without what it is to be computed with, a task has no answer.
    largest_body(task).unwrap_or(0).saturating_add(ENVELOPE)
}

fn largest_body(task: &Task) -> Result<u64, Invalid> {
    let items = || Items::of(task);
    Ok(match &task.work {
        Work::Candidates(lengths) => candidates::largest_answer(&items()?, lengths),
        Work::Cover => cover::largest_answer(&items()?),
        Work::Index => index::largest_answer(&items()?),
        Work::Expect { weights, losses } => expect::largest_answer(&items()?, weights.n_in_use(), *losses),
        Work::Sample(sample) => sample::largest_answer(&items()?, sample),
        Work::Collapse(collapse) => collapse::largest_answer(&items()?, collapse),
        Work::Sweep(sweeps) => sweep::largest_answer(&items()?, sweeps),
        Work::Decode(with) => decode::largest_answer(&items()?, &with.value),
        Work::Annotate(annotate) => annotate::largest_answer(&task.shard.value, annotate),
        Work::Fit(with) => fit::largest_answer(&with.value),
    })
}

const COUNT: &str = "from 0 to 1e100";
const FINITE: &str = "from -1e100 to 1e100";
const NON_NEGATIVE: &str = "that is finite and not negative";
const WEIGHT: &str = "from 1 to 2, or 0, with an exponent that does not overflow";
const POSITIVE: &str = "that is finite and positive";

/// Whether sums of such numbers, one per shard, are finite.
fn finite(number: f64) -> bool {
    is_count(number.abs())
}

fn non_negative(number: f64) -> bool {
    number.is_finite() && number >= 0.0
}

fn positive(number: f64) -> bool {
    number.is_finite() && number > 0.0
}

/// Weights in the one form that they have.
fn weights(field: &'static str, weights: &[Wide]) -> Result<(), Invalid> {
    match weights.iter().position(|weight| !weight.is_weight()) {
        None => Ok(()),
        Some(at) => Err(Invalid::Number { field, at, found: weights[at].mantissa, expected: WEIGHT }),
    }
}

fn same_length(field: &'static str, found: usize, expected: usize) -> Result<(), Invalid> {
    if found == expected {
        return Ok(());
    }
    Err(Invalid::Length { field, found: found as u64, expected: expected as u64 })
}

fn in_range(
    field: &'static str,
    indexes: impl IntoIterator<Item = u32>,
    range: std::ops::Range<u64>,
) -> Result<(), Invalid> {
    match indexes.into_iter().enumerate().find(|&(_, index)| !range.contains(&u64::from(index))) {
        None => Ok(()),
        Some((at, index)) => {
            let (found, start, end) = (i64::from(index), range.start, range.end);
            Err(Invalid::Range { field, at, found, start, end })
        }
    }
}

fn numbers(
    field: &'static str,
    numbers: &[f64],
    expected: &'static str,
    valid: impl Fn(f64) -> bool,
) -> Result<(), Invalid> {
    match numbers.iter().position(|&number| !valid(number)) {
        None => Ok(()),
        Some(at) => Err(Invalid::Number { field, at, found: numbers[at], expected }),
    }
}

fn ascending<T: PartialOrd>(
    field: &'static str,
    elements: impl IntoIterator<Item = T>,
) -> Result<(), Invalid> {
    let mut before = None;
    for (at, element) in elements.into_iter().enumerate() {
        if before.is_some_and(|before| before >= element) {
            return Err(Invalid::Order { field, at });
        }
        before = Some(element);
    }
    Ok(())
}
