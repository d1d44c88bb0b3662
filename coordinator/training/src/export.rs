//! A segmented text in the formats of other programs: `grammaton export`, and `grammaton parse --format`.
//!
//! In: lines as they are segmented ([`Line`]), of results ([`results`]) or of a model, and the file that the text was made of, if there is one ([`original`]).
//! Out: a file in a [`Format`]. JSON, CoNLL-U and LaTeX are written line by line; files with a table of times or speakers before their lines, once all lines are known.
//!
//! Law: a file is valid whatever the text, or the text is refused with its line. What the original file has stays.

pub mod line;

mod n_best;

pub mod json;

pub mod conllu;

pub mod latex;

pub mod scores;

mod xml;

pub mod document;

mod chat;

mod textgrid;

mod eaf;

mod flextext;

pub mod original;

pub mod results;

use std::path::{Path, PathBuf};

use anyhow::{Result, bail};

pub use line::{Alternative, Analysis, Level, Line, Segment};
use results::Results;

use crate::row::Row;

/// Formats of a text with its analyses: three of grammaton's own, then those of other programs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Format {
    /// The text cut into segments.
    Segmentation,
    /// Bracketed trees.
    Brackets,
    /// A table.
    Tsv,
    /// JSON Lines.
    Json,
    /// CoNLL-U.
    Conllu,
    /// Examples in LaTeX.
    Latex,
    /// CHAT, of CHILDES.
    Chat,
    /// TextGrid, of Praat.
    Textgrid,
    /// EAF, of ELAN.
    Eaf,
    /// FLExText, of FieldWorks.
    Flextext,
}

impl Format {
    /// All formats.
    pub const ALL: [Format; 10] = [
        Format::Segmentation,
        Format::Brackets,
        Format::Tsv,
        Format::Json,
        Format::Conllu,
        Format::Latex,
        Format::Chat,
        Format::Textgrid,
        Format::Eaf,
        Format::Flextext,
    ];

    /// Its name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Format::Segmentation => "segmentation",
            Format::Brackets => "brackets",
            Format::Tsv => "tsv",
            Format::Json => "json",
            Format::Conllu => "conllu",
            Format::Latex => "latex",
            Format::Chat => "chat",
            Format::Textgrid => "textgrid",
            Format::Eaf => "eaf",
            Format::Flextext => "flextext",
        }
    }

    /// What it is, in a few words.
    pub fn about(self) -> &'static str {
        match self {
            Format::Segmentation => "Sentences cut into segments",
            Format::Brackets => "Bracketed trees",
            Format::Tsv => "A table: number of the line, gold, segmentation, log-probability, status",
            Format::Json => "JSON Lines: an object for each line",
            Format::Conllu => "CoNLL-U: a token for each word, morphemes as MSeg",
            Format::Latex => "Numbered examples with a line for glosses (gb4e)",
            Format::Chat => "CHAT, of CHILDES: a tier %xseg below each utterance",
            Format::Textgrid => "TextGrid, of Praat: tiers of words and morphemes",
            Format::Eaf => "EAF, of ELAN: tiers that subdivide the text",
            Format::Flextext => "FLExText, of FieldWorks: words and morphemes",
        }
    }

    /// Whether it is one of other programs.
    pub fn is_of_other_programs(self) -> bool {
        !matches!(self, Format::Segmentation | Format::Brackets | Format::Tsv)
    }
}

/// Writes lines in a format.
pub struct Writer {
    format: Format,
    /// Code of the language, where the format has one.
    language: String,
    has_begun: bool,
    /// Whether lines are written as their best analyses, in a table or in JSON.
    ranks: bool,
    /// Lines of formats that are written as a whole.
    lines: Vec<Line>,
}

impl Writer {
    /// A writer of this format, of a text in the language of this code.
    pub fn new(format: Format, language: Option<&str>) -> Writer {
        let language = language.unwrap_or(flextext::UNKNOWN).to_owned();
        Writer { format, language, has_begun: false, ranks: false, lines: Vec::new() }
    }

    /// Writes the best analyses of each line instead: objects in [`Format::Json`], else a table.
    pub fn of_n_best(self) -> Writer {
        Writer { ranks: true, ..self }
    }

    /// Adds a line, and returns what is to be written for it now.
    ///
    /// # Errors
    /// A text that the format cannot have.
    pub fn line(&mut self, line: Line) -> Result<String> {
        let begin = self.begin();
        match self.format {
            Format::Json if self.ranks => n_best::object(&line),
            _ if self.ranks => Ok(begin + &n_best::rows(&line)),
            Format::Segmentation => Ok(line.segmentation() + "\n"),
            Format::Brackets => Ok(line.tree.unwrap_or_default() + "\n"),
            Format::Tsv => Ok(begin + &line.row() + "\n"),
            Format::Json => json::line(&line),
            Format::Conllu => conllu::line(&line),
            Format::Latex => Ok(begin + &latex::line(&line)?),
            Format::Chat | Format::Textgrid | Format::Eaf | Format::Flextext => {
                self.lines.push(line);
                Ok(String::new())
            }
        }
    }

    /// The begin of the file, once.
    fn begin(&mut self) -> String {
        let begin = match self.format {
            _ if std::mem::replace(&mut self.has_begun, true) => "",
            Format::Json => "",
            _ if self.ranks => n_best::HEADER,
            Format::Tsv => Row::HEADER,
            Format::Latex => return latex::BEGIN.to_owned(),
            _ => "",
        };
        if begin.is_empty() { String::new() } else { begin.to_owned() + "\n" }
    }

    /// The rest of the file.
    ///
    /// # Errors
    /// A text that the format cannot have.
    pub fn finish(mut self) -> Result<String> {
        let begin = self.begin();
        match self.format {
            Format::Latex => Ok(begin + latex::END),
            Format::Chat => chat::transcript(&self.lines, &self.language),
            Format::Textgrid => textgrid::grid(&self.lines),
            Format::Eaf => eaf::document(&self.lines),
            Format::Flextext => flextext::document(&self.lines, &self.language),
            _ => Ok(begin),
        }
    }
}

/// What is made of results.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// The text in a format of other programs.
    Text(Format),
    /// The table of the segmentation, as it is.
    Table,
    /// The scores as a table in LaTeX.
    Scores,
}

impl Kind {
    /// All of them.
    pub fn all() -> impl Iterator<Item = Kind> {
        Format::ALL
            .into_iter()
            .filter(|it| it.is_of_other_programs())
            .map(Kind::Text)
            .chain([Kind::Table, Kind::Scores])
    }

    /// Its name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Kind::Text(format) => format.name(),
            Kind::Table => Format::Tsv.name(),
            Kind::Scores => "latex-scores",
        }
    }

    /// What it is, in a few words.
    pub fn about(self) -> &'static str {
        match self {
            Kind::Text(format) => format.about(),
            Kind::Table => Format::Tsv.about(),
            Kind::Scores => "A table of the scores in LaTeX (booktabs), in percent",
        }
    }

    /// That of this name.
    pub fn of(name: &str) -> Option<Kind> {
        Kind::all().find(|kind| kind.name() == name)
    }
}

/// What to make of results, and how.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Request {
    /// What is made; `None`: the original file with its segments.
    pub kind: Option<Kind>,
    /// The file that the text was made of.
    pub original: Option<PathBuf>,
    /// Names of its tiers of text; none: its only one.
    pub tiers: Vec<String>,
    /// Decoder of the segmentation; `None`: the recommended one.
    pub decoder: Option<String>,
    /// What the segments are; `None`: what the names of their nonterminals say.
    pub level: Option<Level>,
    /// Code of the language.
    pub language: Option<String>,
}

/// Makes what is asked for of the results in a folder, and hands its text to `write`. Returns what there is to know about it.
///
/// # Errors
/// Results without it, an original file that the text is not of, and texts that the format cannot have.
pub fn export(
    results: &Path,
    request: &Request,
    write: &mut dyn FnMut(&str) -> Result<()>,
) -> Result<Vec<String>> {
    let Request { kind, original, tiers, decoder, level, language } = request;
    let open = || Results::open(results, decoder.as_deref());
    if let Some(kind @ (Kind::Table | Kind::Scores)) = kind {
        let of_scores = *kind == Kind::Scores && decoder.is_some();
        let given =
            [("--level", level.is_some()), ("--language", language.is_some()), ("--decoder", of_scores)];
        if let Some((option, _)) = given.into_iter().find(|(_, is_given)| *is_given) {
            bail!("{option} changes nothing in {}; leave it out", kind.name());
        }
    }
    let mut notices = Vec::new();
    match (kind, original) {
        (None, None) => bail!("give a format, or the file that the text was made of (--original)"),
        (Some(kind @ (Kind::Table | Kind::Scores)), Some(_)) => {
            bail!("{} has no place for an original file; leave out --original", kind.name())
        }
        (Some(Kind::Scores), None) => {
            let Some(table) = scores::of_run(&results::summary(results)?.result) else {
                bail!("{}: no scores, since the text has no gold", results.display())
            };
            write(&table)?;
        }
        (Some(Kind::Table), None) => write(&open()?.table()?)?,
        (Some(Kind::Text(format)), None) => {
            let found = open()?;
            let mut writer = Writer::new(*format, language.as_deref());
            let level = level.unwrap_or_else(|| found.level());
            found.lines(level, &mut |line| write(&writer.line(line)?))?;
            write(&writer.finish()?)?;
        }
        (Some(Kind::Text(_)) | None, Some(path)) => {
            let found = open()?;
            let (of_original, document) = original::read(path, tiers)?;
            let level = level.unwrap_or_else(|| found.level());
            let mut lines: Vec<Line> = Vec::new();
            found.lines(level, &mut |line| {
                lines.push(line);
                Ok(())
            })?;
            let name = path.display().to_string();
            let lines = original::associate(document.utterances(), lines, level, &name, &mut notices)?;
            match kind {
                Some(Kind::Text(format)) if *format != of_original => {
                    let mut writer = Writer::new(*format, language.as_deref());
                    lines.into_iter().flatten().try_for_each(|line| write(&writer.line(line)?))?;
                    write(&writer.finish()?)?;
                }
                _ => write(&document.with(&lines)?)?,
            }
        }
    }
    Ok(notices)
}
