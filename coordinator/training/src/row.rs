//! Rows of a tab-separated table, one per line of a text: number, gold, prediction, log-probability and status.

use std::fmt;
use std::ops::Range;

use grammaton::saved::reader::{Reading, Unread};

/// A line of a text and its analysis.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Row<'t> {
    /// Number of the line, from 1.
    pub line: u32,
    /// The gold segmentation, if the text has one.
    pub gold: Option<&'t str>,
    /// The predicted segmentation, if there is one.
    pub predicted: Option<&'t str>,
    /// Natural logarithm of the inside value of the sentence: the summed weight of all its derivations.
    pub log_probability: Option<f64>,
    /// Status of the prediction.
    pub status: Status,
}

/// Status of a prediction.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Status {
    /// The sentence has an analysis.
    Ok,
    /// The sentence has an analysis, and was not trained on.
    HeldOut,
    /// No model has an analysis of the sentence, and it is segmented by what votes beside models.
    NoModel,
    /// The sentence has no analysis.
    NoAnalysis,
    /// The sentence has no analysis, since the model lacks one of its symbols.
    UnknownSymbol,
    /// The line has no symbols.
    Empty,
}

impl From<&Result<Reading, Unread>> for Status {
    fn from(read: &Result<Reading, Unread>) -> Status {
        match read {
            Ok(Reading { unread: None, .. }) => Status::Ok,
            Ok(Reading { unread: Some(_), .. }) => Status::NoModel,
            Err(Unread::UnknownSymbol(_)) => Status::UnknownSymbol,
            Err(Unread::NoAnalysis) => Status::NoAnalysis,
        }
    }
}

impl Row<'_> {
    /// Names of the columns.
    pub const HEADER: &'static str = "line\tgold\tpredicted\tlog_probability\tstatus";

    /// The row of an empty line.
    pub fn empty(line: u32) -> Row<'static> {
        Row { line, gold: None, predicted: None, log_probability: None, status: Status::Empty }
    }
}

impl fmt::Display for Row<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Row { line, gold, predicted, log_probability, status } = self;
        let (gold, predicted) = (gold.unwrap_or_default(), predicted.unwrap_or_default());
        let log_probability = log_probability.map_or(String::new(), |number| number.to_string());
        write!(f, "{line}\t{gold}\t{predicted}\t{log_probability}\t{status}")
    }
}

impl Status {
    /// All of them.
    const ALL: [Status; 6] = [
        Status::Ok,
        Status::HeldOut,
        Status::NoModel,
        Status::NoAnalysis,
        Status::UnknownSymbol,
        Status::Empty,
    ];

    /// The status that is written like this.
    pub fn of(text: &str) -> Option<Status> {
        Status::ALL.into_iter().find(|status| status.in_words() == text)
    }

    fn in_words(self) -> &'static str {
        match self {
            Status::Ok => "ok",
            Status::HeldOut => "held out",
            Status::NoModel => "no model",
            Status::NoAnalysis => "no analysis",
            Status::UnknownSymbol => "unknown symbol",
            Status::Empty => "empty",
        }
    }
}

impl fmt::Display for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.in_words())
    }
}

/// Finds the empty lines between sentences, whose lines are in ascending order.
#[derive(Debug, Default)]
pub struct Gaps {
    /// Number of lines so far.
    done: u32,
}

impl Gaps {
    /// The lines up to this one are done.
    pub fn after(line: u32) -> Gaps {
        Gaps { done: line }
    }

    /// Empty lines between the last sentence and the one in `line`; with the number of lines plus one, the empty lines at the end.
    pub fn before(&mut self, line: u32) -> Range<u32> {
        let gap = self.done + 1..line;
        self.done = line;
        gap
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_row_has_a_value_for_each_column() {
        let row = Row {
            line: 3,
            gold: Some("a b"),
            predicted: Some("ab"),
            log_probability: Some(-2.5),
            status: Status::Ok,
        };
        assert_eq!(row.to_string(), "3\ta b\tab\t-2.5\tok");
        assert_eq!(Row::empty(4).to_string(), "4\t\t\t\tempty");
        assert_eq!(Row::HEADER.split('\t').count(), 5);
        assert!(Status::ALL.iter().all(|status| Status::of(&status.to_string()) == Some(*status)));
        assert_eq!(Status::of(""), None);
    }

    #[test]
    fn gaps_and_sentences_are_all_lines() {
        let mut gaps = Gaps::default();
        let found: Vec<Range<u32>> = [2, 3, 6, 8].into_iter().map(|line| gaps.before(line)).collect();
        assert_eq!(found, [1..2, 3..3, 4..6, 7..8]);
    }
}
