//! Texts whose format is looked at before they are read.
//!
//! In: a path. Out: an [`OpenText`] with a sample of its lines; then the reading that the sample speaks for, with a notice for each certain finding;
//! or [`Ambiguous`], with the two readings to choose from. Nothing is found out about what the caller knows.

use std::fmt;
use std::io;
use std::path::Path;

use anyhow::Result;
use basics::store::{self, Download};
use grammaton::data::corpus::decode::Stream;
use grammaton::data::corpus::read::End;
use grammaton::data::corpus::sniff::{Contents, Finding, Given, Reading, SAMPLE_LINES, look};
use grammaton::data::corpus::{Corpus, Options, ReadError, Reader};

use super::STANDARD_INPUT;

/// A text that was opened, and is read once.
pub struct OpenText {
    /// Its name in messages.
    pub name: String,
    stream: Stream<'static>,
}

impl OpenText {
    /// Opens the text at `path`; `-` is standard input.
    ///
    /// # Errors
    /// [`ReadError::Open`] and [`ReadError::Packed`]; errors of object stores.
    pub fn open(path: &Path) -> Result<OpenText> {
        let name = path.display().to_string();
        let stream = match store::url(path) {
            Some(url) => Stream::new(Download::open(url)?, &name),
            None if path.as_os_str() == "-" => {
                return OpenText::new(Stream::new(io::stdin(), ""), STANDARD_INPUT.to_owned());
            }
            None => match std::fs::File::open(path) {
                Ok(file) => Stream::new(file, &name),
                Err(error) => return Err(ReadError::Open { source_name: name, error }.into()),
            },
        };
        OpenText::new(stream, name)
    }

    fn new(
        stream: Result<Stream<'static>, grammaton::data::corpus::decode::Container>,
        name: String,
    ) -> Result<OpenText> {
        match stream {
            Ok(stream) => Ok(OpenText { name, stream }),
            Err(container) => Err(ReadError::Packed { source_name: name, container }.into()),
        }
    }

    /// Its first lines.
    ///
    /// # Errors
    /// [`ReadError::NotUtf8`].
    pub fn sample(&self) -> Result<Vec<String>, ReadError> {
        let sample = self.stream.sample(SAMPLE_LINES);
        sample.map_err(|(line, byte)| ReadError::NotUtf8 { source_name: self.name.clone(), line, byte })
    }

    /// Looks at the sample, and returns the reading of the text with the certain findings.
    ///
    /// # Errors
    /// [`Ambiguous`], [`ReadError::NotUtf8`].
    pub fn look(
        &self,
        contents: Contents,
        given: Given,
        reading: &Reading,
    ) -> Result<(Reading, Vec<Finding>)> {
        let (reading, findings) = look(&self.sample()?, contents, given, reading);
        match findings.iter().find(|finding| finding.other.is_some()) {
            Some(finding) => Err(Ambiguous { name: self.name.clone(), finding: finding.clone() }.into()),
            None => Ok((reading, findings)),
        }
    }

    /// Reads the whole text.
    ///
    /// # Errors
    /// See [`ReadError`].
    pub fn read(self, options: &Options) -> Result<(Corpus, End), ReadError> {
        Corpus::whole(Reader::of(self.stream, &self.name, options))
    }
}

/// The way out for a text in a format that is not read.
pub const SENTENCES_ALONE: &str = "give the sentences alone";

/// A text with two readings.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Ambiguous {
    name: String,
    finding: Finding,
}

impl std::error::Error for Ambiguous {}

impl fmt::Display for Ambiguous {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.choice(arguments))
    }
}

impl Ambiguous {
    /// The error with the commands to choose from: the beginning of the command, to which the options of a reading are added.
    pub fn of_command(&self, command: &str) -> String {
        self.choice(|reading| format!("{command} {}", options(reading)))
    }

    fn choice(&self, written: impl Fn(&Reading) -> String) -> String {
        let Finding { evidence, reading, other } = &self.finding;
        let one = written(reading);
        let or = match other {
            Some(other) if !self.finding.is_foreign() => format!("`{one}` or `{}`", written(other)),
            _ => format!("as it is, `{one}`, or {SENTENCES_ALONE}"),
        };
        format!("{}: {evidence}; choose how it is read: {or}", self.name)
    }
}

/// A reading as arguments of a function.
fn arguments(reading: &Reading) -> String {
    let argument = |(key, value): (&str, String)| format!("{key}={value:?}");
    reading.keys().into_iter().map(argument).collect::<Vec<_>>().join(", ")
}

/// A reading as options of a command.
pub fn options(reading: &Reading) -> String {
    let quoted = |value: &str| {
        if value.chars().all(|letter| letter.is_alphanumeric() || "-_".contains(letter)) {
            value.to_owned()
        } else {
            format!("'{value}'")
        }
    };
    let option = |(key, value): (&str, String)| format!("--{} {}", key.replace('_', "-"), quoted(&value));
    reading.keys().into_iter().map(option).collect::<Vec<_>>().join(" ")
}

/// A reading as keys of a job, with their table.
pub fn keys(reading: &Reading) -> String {
    let key = |(key, value): (&str, String)| format!("corpus.{key} = {}", toml::Value::from(value));
    reading.keys().into_iter().map(key).collect::<Vec<_>>().join(", ")
}

/// Notice of a reading that a command found.
pub fn found(name: &str, finding: &Finding) -> String {
    format!(
        "{name}: {}; read with {} (as it is: --layout plain)",
        finding.evidence,
        options(&finding.reading)
    )
}

/// Name of the text at `path`, and what its lines look like that `options` do not say.
fn unexpected(path: &Path, options: &Options, contents: Contents) -> Result<(String, Vec<Finding>)> {
    let text = OpenText::open(path)?;
    let reading = Reading { layout: options.layout.clone(), unit: Some(options.effective_unit()) };
    let is_of_tokens = options.effective_unit() == grammaton::data::corpus::Unit::Token;
    let given = Given { layout: !options.layout.is_plain(), unit: is_of_tokens };
    let (_, findings) = look(&text.sample()?, contents, given, &reading);
    Ok((text.name, findings))
}

/// Notices of a text that is read with a model, and looks as if its lines were no sentences of that model.
pub fn of_new_text(path: &Path, options: &Options) -> Result<Vec<String>> {
    let (name, findings) = unexpected(path, options, Contents::Utterances)?;
    let notice = |finding: &Finding| {
        format!("{name}: {}, and is read as text; if that is not meant, {SENTENCES_ALONE}", finding.evidence)
    };
    Ok(findings.iter().map(notice).collect())
}

/// Notices of findings that a job does not have.
pub fn undeclared(path: &Path, options: &Options, contents: Contents) -> Result<Vec<String>> {
    let (name, findings) = unexpected(path, options, contents)?;
    let notice = |finding: &Finding| {
        let Finding { evidence, reading, other } = finding;
        let or = other.as_ref().map(|other| format!(" or {}", keys(other))).unwrap_or_default();
        let leaves = "corpus.layout = \"plain\" leaves it";
        let way_out = if finding.is_foreign() {
            format!("{SENTENCES_ALONE}; {leaves}")
        } else if or.contains("plain") {
            format!("set {}{or}", keys(reading))
        } else {
            format!("set {}{or}; {leaves}", keys(reading))
        };
        format!("{name}: {evidence}, and is read as text; if that is not meant, {way_out}")
    };
    Ok(findings.iter().map(notice).collect())
}
