//! Keys of a job about a text: how its lines are read, how they are cleaned, and further ones.
//!
//! In: assignments of keys. Out: the table `[corpus]` with which the text is read, checked as that of a job; and the assignments of the keys that
//! its job has as well.

use std::path::Path;

use anyhow::{Result, bail};
use grammaton::data::corpus::Unit;
use grammaton::data::corpus::sniff::{Given, Reading};
use training::job::{CorpusTable, Job};

/// Assignments of keys of a job, as in `corpus.unit=token`; the last one of a key wins.
#[derive(Clone, Debug, Default)]
pub struct Keys(Vec<String>);

/// Keys of `[corpus]` that are of the user's text, and not of the file that is written for the job.
const OF_TEXT: [&str; 7] =
    ["unit", "layout", "column", "counts", "phone_separator", "syllable_separator", "word_separator"];

/// Keys that the commands have an argument for.
const OF_COMMAND: [(&str, &str); 2] =
    [("corpus.path", "the text is the argument"), ("output.dir", "the folder is --out")];

impl Keys {
    /// Takes assignments. Phones that a mark separates are tokens, unless a unit is assigned.
    ///
    /// # Errors
    /// If a key is that of an argument: the text, or the folder of results.
    pub fn new(mut assignments: Vec<String>) -> Result<Keys> {
        let sets = |key: &str| assignments.iter().any(|set| key_of(set) == key);
        if let Some((key, instead)) = OF_COMMAND.iter().find(|(key, _)| sets(key)) {
            bail!("--set {key}: {instead}");
        }
        if sets("corpus.phone_separator") && !sets("corpus.unit") {
            assignments.push("corpus.unit=token".to_owned());
        }
        Ok(Keys(assignments))
    }

    /// The table with which the text is read, and what it leaves to be found.
    ///
    /// # Errors
    /// [`JobError`](training::job::JobError), if a value is invalid.
    pub fn table(&self) -> Result<(CorpusTable, Given)> {
        let of_corpus: Vec<String> =
            self.0.iter().filter(|set| set.trim().starts_with("corpus.")).cloned().collect();
        let any = "[model]\ngrammar = \"auto:unigram\"\n[corpus]\npath = \"text\"\nunit = \"grapheme\"\n";
        let table = Job::parse(any, "the command line", Path::new(""), &of_corpus)?.corpus;
        let is_set = |key: &&str| of_corpus.iter().any(|set| key_of(set) == format!("corpus.{key}"));
        let [unit, layout @ ..] = &OF_TEXT;
        Ok((table, Given { unit: is_set(unit), layout: layout.iter().any(is_set) }))
    }

    /// Assignments of keys of the job that is written.
    pub fn of_job(&self) -> Vec<String> {
        // The job has annotations in a file of its own, with those of the text.
        let is_of_job = |set: &&String| {
            let is = |key: &&str| key_of(set) == format!("corpus.{key}");
            !OF_TEXT.iter().chain(&["annotated"]).any(is)
        };
        self.0.iter().filter(is_of_job).cloned().collect()
    }
}

/// The key of an assignment.
fn key_of(assignment: &str) -> &str {
    assignment.split('=').next().unwrap_or_default().trim()
}

/// The reading of a table.
pub fn reading(table: &CorpusTable, given: Given) -> Reading {
    Reading { layout: table.layout(), unit: given.unit.then_some(table.unit) }
}

/// The unit of a text that is of `unit` by the command line: characters are kept with their marks.
pub fn with_marks(unit: Unit) -> Unit {
    if unit == Unit::Char { Unit::Grapheme } else { unit }
}
