//! Lies of workers, for tests in one process and over gRPC.

use grammaton::grammar::ParamId;
use grammaton::work::engine::ComputeError;
use grammaton::work::task::{Answer, Fitted, Task};

/// A lie about an answer to a task.
pub type Lie = fn(&Task, Answer) -> Result<Answer, ComputeError>;

/// Lies by name, each of which a worker may tell in every answer.
pub const LIES: [(&str, Lie); 8] = [
    ("a rule is missing", |_, answer| Ok(missing(answer, ParamId(0)))),
    ("a string is missing", |task, answer| {
        let strings = task.language.as_ref().map(|of| of.lexicon.value.space(&of.grammar.value).strings());
        match strings.filter(|strings| !strings.is_empty()) {
            Some(strings) => Ok(missing(answer, ParamId(strings.start))),
            None => Ok(answer),
        }
    }),
    ("items have no derivation", |_, mut answer| {
        match &mut answer {
            Answer::Index(index) => index.unparsable = vec![0],
            Answer::Candidates(candidates) => candidates.unparsable = vec![0],
            _ => {}
        }
        Ok(answer)
    }),
    ("no string covers a sentence", |_, mut answer| {
        if let Answer::Missing(missing) = &mut answer {
            missing.clear();
        }
        Ok(answer)
    }),
    ("the probability is zero", |_, mut answer| {
        match &mut answer {
            Answer::Expectation(found) => found.log_z = f64::NEG_INFINITY,
            Answer::Collapsed(found) => found.expectation.log_z = f64::NEG_INFINITY,
            Answer::Annotated(found) => found.expectation.ln_z = f64::NEG_INFINITY,
            Answer::Chained(found) => found.log_seating = f64::NEG_INFINITY,
            _ => {}
        }
        Ok(answer)
    }),
    ("a sentence has no bound", |_, answer| match answer {
        Answer::Fitted(_) => Ok(Answer::Fitted(Fitted::Unbounded { shard: 0, sentence: 0 })),
        other => Ok(other),
    }),
    ("a shard has one parameter fewer", |_, mut answer| {
        if let Answer::Index(index) = &mut answer {
            index.params.pop();
        }
        Ok(answer)
    }),
    ("no task can be computed", |_, _| Err(ComputeError::NoGrammar)),
];

fn missing(mut answer: Answer, param: ParamId) -> Answer {
    match &mut answer {
        Answer::Expectation(found) => found.missing = vec![param],
        Answer::Sampled(found) => found.missing = vec![param],
        Answer::Collapsed(found) => found.expectation.missing = vec![param],
        _ => {}
    }
    answer
}
