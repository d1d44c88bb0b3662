//! Options about the text of `segment` and `morphemes`: how its lines are read, how they are cleaned, and further keys of the job.
//!
//! Every option is a key of a job file. In: the options. Out: the table `[corpus]` with which the text is read, checked as that of a job; and the
//! assignments of the keys that its job has as well.

use std::path::{Path, PathBuf};

use anyhow::{Result, bail};
use shared::data::corpus::Unit;
use shared::data::corpus::sniff::{Given, Reading};
use training::job::{CorpusTable, Job};

use crate::commands::eval::unit_parser;

/// Options about the text.
#[derive(clap::Args, Clone, Debug, Default)]
pub struct ReadingOptions {
    /// Unit of a symbol [default: grapheme, unless the text is seen to be of tokens]
    #[arg(help_heading = "Text", long, value_parser = unit_parser())]
    pub unit: Option<Unit>,
    /// Kind of the lines: plain, whatever they look like; hex (code points, as of MorphAGram); chat (a transcript) [default: as they look]
    #[arg(help_heading = "Text", long, value_name = "KIND", value_parser = ["plain", "hex", "chat"])]
    pub layout: Option<String>,
    /// The column of the text, if tabs separate columns: its number from 1, or its name in the first line
    #[arg(help_heading = "Text", long, value_name = "N|NAME")]
    pub column: Option<String>,
    /// Meaning of a number beside each text: it is left out (ones), or the text occurs as often (full) or log₂(n + 1) times (log)
    #[arg(help_heading = "Text", long, value_parser = ["ones", "log", "full"])]
    pub counts: Option<String>,
    /// Separator of phones, such as _; words are then between spaces
    #[arg(help_heading = "Text", long, value_name = "MARK")]
    pub phone_separator: Option<String>,
    /// Separator of syllables, such as ;esyll, which is left out
    #[arg(help_heading = "Text", long, value_name = "MARK")]
    pub syllable_separator: Option<String>,
    /// Separator of words, such as ;eword
    #[arg(help_heading = "Text", long, value_name = "MARK")]
    pub word_separator: Option<String>,
    /// Unicode normal form
    #[arg(help_heading = "Text", long, value_name = "FORM", value_parser = ["nfc", "nfkc"])]
    pub normalise: Option<String>,
    /// Read the text in lower case
    #[arg(help_heading = "Text", long)]
    pub lowercase: bool,
    /// Punctuation: keep it as symbols, drop it, or read it as a word boundary
    #[arg(help_heading = "Text", long, value_name = "WHAT", value_parser = ["keep", "drop", "boundary"])]
    pub punctuation: Option<String>,
    /// Sequences of characters that are one symbol, with spaces between them, as in 'sh ch'
    #[arg(help_heading = "Text", long, value_name = "SYMBOLS")]
    pub digraphs: Option<String>,
    /// Gold segmentation to score against, in place of the spaces of the text: segmented lines of the text, or words with their analyses, as in
    /// `gladly<TAB>glad ly, gladly`, of which the best counts; lines that it lacks are not scored
    #[arg(help_heading = "Text", long, value_name = "FILE")]
    pub gold: Option<PathBuf>,
    /// Set a value of the job, as in --set inference.concentration=100; repeatable, the last one wins
    #[arg(long, value_name = "KEY=VALUE")]
    pub set: Vec<String>,
}

/// Keys of `[corpus]` that are of the user's text, and not of the file that is written for the job.
const OF_TEXT: [&str; 7] =
    ["unit", "layout", "column", "counts", "phone_separator", "syllable_separator", "word_separator"];

/// Keys that the commands have an argument for.
const OF_COMMAND: [(&str, &str); 2] =
    [("corpus.path", "the text is the argument"), ("output.dir", "the folder is --out")];

impl ReadingOptions {
    /// All options as assignments of keys, those of `--set` last.
    fn assignments(&self) -> Result<Vec<String>> {
        let digraphs = self.digraphs.as_ref().map(|digraphs| {
            toml::Value::from(digraphs.split_whitespace().map(str::to_owned).collect::<Vec<_>>())
        });
        let text = |value: &Option<String>| value.clone().map(toml::Value::from);
        let gold = self.gold.as_ref().map(std::path::absolute).transpose()?;
        let gold = gold.map(|path| toml::Value::from(path.to_string_lossy().into_owned()));
        let keys = [
            ("unit", self.unit.map(|unit| toml::Value::from(unit.name()))),
            ("layout", text(&self.layout)),
            ("column", text(&self.column)),
            ("counts", text(&self.counts)),
            ("phone_separator", text(&self.phone_separator)),
            ("syllable_separator", text(&self.syllable_separator)),
            ("word_separator", text(&self.word_separator)),
            ("normalise", text(&self.normalise)),
            ("lowercase", self.lowercase.then_some(toml::Value::from(true))),
            ("punctuation", text(&self.punctuation)),
            ("digraphs", digraphs),
            ("gold", gold),
        ];
        let assigned = |(key, value): (&str, Option<toml::Value>)| Some(format!("corpus.{key}={}", value?));
        let options = keys.into_iter().filter_map(assigned);
        for (key, instead) in OF_COMMAND {
            if self.set.iter().any(|set| key_of(set) == key) {
                bail!("--set {key}: {instead}");
            }
        }
        let mut assignments: Vec<String> = options.chain(self.set.iter().cloned()).collect();
        let sets = |key: &str| assignments.iter().any(|set| key_of(set) == key);
        if sets("corpus.phone_separator") && !sets("corpus.unit") {
            assignments.push("corpus.unit=token".to_owned());
        }
        Ok(assignments)
    }

    /// The table with which the text is read, and what it leaves to be found.
    pub fn table(&self) -> Result<(CorpusTable, Given)> {
        let assignments = self.assignments()?;
        let of_corpus: Vec<String> =
            assignments.iter().filter(|set| set.trim().starts_with("corpus.")).cloned().collect();
        let any = "[model]\ngrammar = \"auto:unigram\"\n[corpus]\npath = \"text\"\nunit = \"grapheme\"\n";
        let table = Job::parse(any, "the command line", Path::new(""), &of_corpus)?.corpus;
        let is_set = |key: &&str| of_corpus.iter().any(|set| key_of(set) == format!("corpus.{key}"));
        let [unit, layout @ ..] = &OF_TEXT;
        Ok((table, Given { unit: is_set(unit), layout: layout.iter().any(is_set) }))
    }

    /// Assignments of keys of the job that is written.
    pub fn of_job(&self) -> Result<Vec<String>> {
        let is_of_job = |set: &String| !OF_TEXT.iter().any(|key| key_of(set) == format!("corpus.{key}"));
        Ok(self.assignments()?.into_iter().filter(is_of_job).collect())
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
