//! Reading of corpora, grammars, families of tags, trees and dependencies, from files, object stores and, for commands, standard input.

use std::io::{self, Read};
use std::iter;
use std::path::Path;

use anyhow::{Context, Result, anyhow, bail};
use basics::store::{self, Download};
use grammaton::data::corpus::decode::whole;
use grammaton::data::corpus::read::End;
use grammaton::data::corpus::{Corpus, Options, ReadError, Reader};
use grammaton::data::dependency::{Document, Tags, of_text};
use grammaton::data::tags::families::Families;
use grammaton::data::treebank::brackets::{self, Entry};
use grammaton::grammar::Grammar;
use grammaton::grammar::syntax::{self, Notice};

pub mod bracketed_file;
pub mod format;
pub mod segmented_file;
mod text_stream;

use text_stream::Arriving;

/// Name of standard input in messages.
const STANDARD_INPUT: &str = "standard input";

/// Reads the corpus at `path`; `-` is standard input.
pub fn corpus(path: &Path, options: &Options) -> Result<(Corpus, End)> {
    Ok(Corpus::whole(given(path, options)?)?)
}

/// A part of a text to parse.
pub struct TextPart {
    /// Sentences; `None` if all lines of the part are empty.
    pub corpus: Option<Corpus>,
    /// Number of lines of the text, up to the end of the part.
    pub n_lines: u32,
}

/// Reads a text to parse at `path`. Standard input (`-`) has a part for each group of lines that arrive together; a file is one part.
pub fn text_to_parse(path: &Path, options: &Options) -> Result<Box<dyn Iterator<Item = Result<TextPart>>>> {
    if path.as_os_str() == "-" {
        return Ok(Box::new(Arriving::new(io::stdin().lock(), options)));
    }
    let part = match Corpus::whole(reader(path, options)?) {
        Ok((corpus, end)) => TextPart { corpus: Some(corpus), n_lines: end.n_lines },
        Err(ReadError::Empty { empty_lines, .. }) if empty_lines > 0 => {
            TextPart { corpus: None, n_lines: empty_lines }
        }
        Err(error) => return Err(error.into()),
    };
    Ok(Box::new(iter::once(Ok(part))))
}

/// Opens the corpus at `path`; `-` is standard input.
fn given(path: &Path, options: &Options) -> Result<Reader<'static>> {
    if path.as_os_str() == "-" {
        Ok(Reader::new(io::stdin().lock(), STANDARD_INPUT, options)?)
    } else {
        reader(path, options)
    }
}

/// Opens the corpus at `path`, for several passes.
pub fn reader(path: &Path, options: &Options) -> Result<Reader<'static>> {
    Ok(match store::url(path) {
        Some(url) => Reader::new(Download::open(url)?, url, options)?,
        None => Reader::open(path, options)?,
    })
}

/// Reads the grammar at `path`; returns notices as well.
pub fn grammar(path: &Path) -> Result<(Grammar, Vec<Notice>)> {
    let name = path.display().to_string();
    Ok(syntax::parse(&text(path, &name, "grammar")?, &name)?)
}

/// Reads the families of tags at `path`.
pub fn families(path: &Path) -> Result<Families> {
    let name = path.display().to_string();
    Ok(Families::parse(&text(path, &name, "families")?, &name)?)
}

/// Reads the text at `path`; messages call it `name` and `what`.
pub fn text(path: &Path, name: &str, what: &str) -> Result<String> {
    let bytes = bytes(path).with_context(|| format!("{name}: cannot read the {what}"))?;
    decoded(&bytes, name)
}

/// The text of a file with these bytes and this name.
pub fn decoded(bytes: &[u8], name: &str) -> Result<String> {
    whole(bytes, name).map_err(|(line, fault)| anyhow!("{name}:{line}: {fault}"))
}

/// Reads trees at `path`, all of which must be sound; `-` is standard input. Returns the file's name for messages as well.
pub fn trees(path: &Path) -> Result<(String, Vec<Entry>)> {
    let (name, bytes) = named_bytes(path, "trees")?;
    let entries = brackets::read(&decoded(&bytes, &name)?, &name)?;
    Ok((name, entries))
}

/// Reads the sound trees at `path`, and says what is wrong with the others.
pub fn sound_trees(path: &Path) -> Result<(Vec<Entry>, Vec<brackets::TreebankError>)> {
    let name = path.display().to_string();
    Ok(brackets::read_sound(&text(path, &name, "trees")?, &name)?)
}

/// Reads sentences with heads at `path`, each of which must be sound but for its heads; `-` is standard input. Returns the file's name for messages as
/// well.
pub fn dependencies(path: &Path, tags: Tags) -> Result<(String, Document)> {
    let (name, bytes) = named_bytes(path, "sentences")?;
    let document = Document::read(&bytes, &name, tags)?.complete()?;
    Ok((name, document))
}

/// The sentences of a file whose tags do not matter: one with columns, or if no tab separates any, a text with one sentence a line.
///
/// # Errors
/// If the sentences cannot be read, or look like CoNLL-U without tabs.
pub fn untagged(bytes: &[u8], name: &str) -> Result<Document> {
    let text = decoded(bytes, name)?;
    if text.contains('\t') {
        return Ok(Document::read(bytes, name, Tags::Xpos)?);
    }
    let is_conllu = |line: &str| line.starts_with("1 ") && line.split_whitespace().count() == 10;
    if let Some(at) = text.lines().position(is_conllu) {
        bail!("{name}:{}: found 10 columns between spaces, expected tabs between them (CoNLL-U)", at + 1);
    }
    Ok(Document::read(of_text(&text).as_bytes(), &format!("{name} as CoNLL-U"), Tags::Xpos)?)
}

/// Reads the sound sentences with heads at `path`, and says what is wrong with the others.
pub fn sound_dependencies(path: &Path, tags: Tags) -> Result<Document> {
    let name = path.display().to_string();
    let bytes = bytes(path).with_context(|| format!("{name}: cannot read the sentences"))?;
    Ok(Document::read(&bytes, &name, tags)?)
}

/// Reads the bytes at `path`; `-` is standard input. Returns the file's name for messages as well.
pub fn named_bytes(path: &Path, what: &str) -> Result<(String, Vec<u8>)> {
    let standard = path.as_os_str() == "-";
    let name = if standard { STANDARD_INPUT.to_owned() } else { path.display().to_string() };
    let read = if standard { all(io::stdin()) } else { bytes(path) };
    let bytes = read.with_context(|| format!("{name}: cannot read the {what}"))?;
    Ok((name, bytes))
}

/// Reads the bytes of the file or object at `path`.
fn bytes(path: &Path) -> Result<Vec<u8>> {
    match store::url(path) {
        Some(url) => all(Download::open(url)?),
        None => Ok(std::fs::read(path)?),
    }
}

fn all(mut reader: impl Read) -> Result<Vec<u8>> {
    let mut bytes = Vec::new();
    reader.read_to_end(&mut bytes)?;
    Ok(bytes)
}
