//! Answers, by kind of work.

use grammaton::work::task::{Answer, Expectation};

use super::kinds::{annotate, candidates, collapse, cover, decode, fit, index, sample, sweep};
use super::{Wire, WireError};
use crate::v1;
use crate::v1::answer::Answer as Found;

impl Wire for Answer {
    type Message = v1::Answer;
    const NAME: &'static str = "answer";

    fn to_wire(&self) -> v1::Answer {
        let answer = match self {
            Answer::Candidates(found) => Found::Candidates(candidates::to_wire(found)),
            Answer::Missing(found) => Found::Missing(cover::to_wire(found)),
            Answer::Index(found) => Found::Index(index::to_wire(found)),
            Answer::Expectation(found) => Found::Expectation(found.to_wire()),
            Answer::Sampled(found) => Found::Sampled(sample::to_wire(found)),
            Answer::Collapsed(found) => Found::Collapsed(collapse::to_wire(found)),
            Answer::Chained(found) => Found::Chained(sweep::to_wire(found)),
            Answer::Decoded(found) => Found::Decoded(decode::to_wire(found)),
            Answer::Annotated(found) => Found::Annotated(annotate::to_wire(found)),
            Answer::Fitted(found) => Found::Fitted(fit::to_wire(found)),
        };
        v1::Answer { answer: Some(answer) }
    }

    fn from_wire(message: v1::Answer) -> Result<Answer, WireError> {
        Ok(match message.answer.ok_or(WireError::Missing { field: "answer" })? {
            Found::Candidates(message) => Answer::Candidates(candidates::from_wire(message)?),
            Found::Missing(message) => Answer::Missing(cover::from_wire(message)?),
            Found::Index(message) => Answer::Index(index::from_wire(message)?),
            Found::Expectation(message) => Answer::Expectation(Expectation::from_wire(message)?),
            Found::Sampled(message) => Answer::Sampled(sample::from_wire(message)?),
            Found::Collapsed(message) => Answer::Collapsed(collapse::from_wire(message)?),
            Found::Chained(message) => Answer::Chained(sweep::from_wire(message)?),
            Found::Decoded(message) => Answer::Decoded(decode::from_wire(message)?),
            Found::Annotated(message) => Answer::Annotated(annotate::from_wire(message)?),
            Found::Fitted(message) => Answer::Fitted(fit::from_wire(message)?),
        })
    }
}
