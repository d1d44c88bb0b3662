//! Checks of received values against each other: tokens against the grammar, an answer against its task.
//!
//! In: values that are valid by themselves. Out: nothing, or a [`WireError`]. What only inference can check is not
//! checked: whether sentences have derivations, and whether counts are right.
//!
//! [`largest_answer`] and [`largest_lease`] bound the size of a payload before it is received, so that a peer cannot
//! make the receiver allocate a gigabyte for ten numbers.

use grammaton::grammar::Grammar;
use grammaton::grammar::lexicon::Lexicon;
use grammaton::work::shard::Shard;
use grammaton::work::task::{Answer, Language, Task, Work};

use super::checks::terminals;
use super::items::Items;
use super::kinds::{annotate, candidates, collapse, cover, decode, expect, fit, index, sample, sweep};
use super::sizes::ENVELOPE;
use super::{WireError, in_range, same_length};
use crate::v1::lease_head::Work as Asked;

/// Checks that `lexicon` has one stick for each nonterminal of `grammar` that rewrites to strings, and that the strings
/// consist of terminals of `grammar`.
pub fn lexicon(grammar: &Grammar, lexicon: &Lexicon) -> Result<(), WireError> {
    same_length("lexicon.sticks", lexicon.sticks.len(), grammar.with_strings().count())?;
    for (at, (stick, symbol)) in lexicon.sticks.iter().zip(grammar.with_strings()).enumerate() {
        if stick.symbol != symbol {
            let found = i64::from(stick.symbol.0);
            let (start, end) = (u64::from(symbol.0), u64::from(symbol.0) + 1);
            return Err(WireError::Range { field: "lexicon.sticks", at, found, start, end });
        }
        terminals("lexicon.strings", grammar, stick.strings.iter().flatten())?;
    }
    Ok(())
}

/// Checks that the items consist of terminals of `grammar`, or are strings of `lexicon`.
pub fn shard(grammar: &Grammar, lexicon: &Lexicon, shard: &Shard) -> Result<(), WireError> {
    match shard {
        Shard::Sentences(sentences) => {
            terminals("shard.tokens", grammar, sentences.iter().flat_map(|sentence| &sentence.tokens))
        }
        // Trees are checked when they are decoded.
        Shard::Trees { .. } => Ok(()),
        Shard::Strings(params) if params.is_empty() => Ok(()),
        Shard::Strings(params) => {
            let strings = lexicon.space(grammar).strings();
            let strings = u64::from(strings.start)..u64::from(strings.end);
            in_range("shard.strings", [params.start, params.end - 1], strings)
        }
    }
}

/// Checks the request of a task against its grammar, lexicon and shard. The number of weights is checked when the task is
/// computed, since only the shard's index tells how many parameters the shard touches.
pub fn work(task: &Task) -> Result<(), WireError> {
    let items = || Items::of(task);
    match &task.work {
        Work::Candidates(_) | Work::Cover | Work::Index | Work::Expect { .. } => items().map(drop),
        Work::Sample(sample) => sample::check(&items()?, sample),
        Work::Collapse(collapse) => collapse::check(&items()?, collapse),
        Work::Sweep(sweeps) => sweep::check(&items()?, sweeps),
        Work::Decode(with) => decode::check(&items()?, &with.value),
        Work::Annotate(annotate) => annotate::check(&task.shard.value, annotate),
        Work::Fit(with) => fit::check(&items()?, &with.value),
    }
}

/// Checks the kind, the lengths and the indexes of `answer` against `task`.
pub fn answer(task: &Task, answer: &Answer) -> Result<(), WireError> {
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
        (work, answer) => Err(WireError::Kind { found: answer_kind(answer), expected: work_kind(work) }),
    }
}

/// Upper bound on the bytes of a lease's payload.
pub fn largest_lease(work: &Asked, language: Option<&Language>) -> u64 {
    match work {
        Asked::Candidates(_) | Asked::Cover(_) | Asked::Index(_) | Asked::Decode(_) | Asked::Fit(_) => 0,
        Asked::Expect(_) | Asked::Sample(_) | Asked::Collapse(_) => language.map_or(0, expect::largest_lease),
        Asked::Sweep(_) => sweep::LARGEST_LEASE,
        Asked::Annotate(_) => annotate::LARGEST_LEASE,
    }
}

/// Upper bound on the bytes of an answer to `task`.
pub fn largest_answer(task: &Task) -> u64 {
    // Without what it is to be computed with, a task has no answer.
    largest_body(task).unwrap_or(0).saturating_add(ENVELOPE)
}

fn largest_body(task: &Task) -> Result<u64, WireError> {
    let items = || Items::of(task);
    Ok(match &task.work {
        Work::Candidates(lengths) => candidates::largest_answer(&items()?, lengths),
        Work::Cover => cover::largest_answer(&items()?),
        Work::Index => index::largest_answer(&items()?),
        Work::Expect { weights, losses } => {
            expect::largest_answer(&items()?, weights.in_use().len(), *losses)
        }
        Work::Sample(sample) => sample::largest_answer(&items()?, sample),
        Work::Collapse(collapse) => collapse::largest_answer(&items()?, collapse),
        Work::Sweep(sweeps) => sweep::largest_answer(&items()?, sweeps),
        Work::Decode(with) => decode::largest_answer(&items()?, &with.value),
        Work::Annotate(annotate) => annotate::largest_answer(&task.shard.value, annotate),
        Work::Fit(with) => fit::largest_answer(&with.value),
    })
}

fn answer_kind(answer: &Answer) -> &'static str {
    match answer {
        Answer::Candidates(_) => "candidates",
        Answer::Missing(_) => "missing strings",
        Answer::Index(_) => "an index",
        Answer::Expectation(_) => "an expectation",
        Answer::Sampled(_) => "sampled trees",
        Answer::Collapsed(_) => "a collapsed pass",
        Answer::Chained(_) => "a Markov chain",
        Answer::Decoded(_) => "decoded sentences",
        Answer::Annotated(_) => "uses of split rules",
        Answer::Fitted(_) => "fitted sentences",
    }
}

fn work_kind(work: &Work) -> &'static str {
    match work {
        Work::Candidates(_) => "candidates",
        Work::Cover => "missing strings",
        Work::Index => "an index",
        Work::Expect { .. } => "an expectation",
        Work::Sample(_) => "sampled trees",
        Work::Collapse(_) => "a collapsed pass",
        Work::Sweep(_) => "a Markov chain",
        Work::Decode(_) => "decoded sentences",
        Work::Annotate(_) => "uses of split rules",
        Work::Fit(_) => "fitted sentences",
    }
}
