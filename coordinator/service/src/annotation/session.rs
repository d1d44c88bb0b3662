//! A text whose lines are annotated and learned from.
//!
//! In: a result, and the place of its file of annotations. Out: the state as JSON, after each change of a line and each learning.

use std::collections::BTreeMap;
use std::sync::Arc;

use anyhow::{Error, Result};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use basics::store::Version;
use grammaton::models::crf::Known;
use parking_lot::{Mutex, RwLock};
use serde::{Deserialize, Serialize};
use tokio::sync::OwnedMutexGuard;
use training::annotation_file::AnnotationFile;
use training::input::segmented_file::teaches;
use training::relearn::relearn;
use training::segmented::Segmented;
use training::suggest::suggest;

/// Number of suggested lines.
const SUGGESTED: usize = 50;

/// Where a file of annotations is kept.
pub trait Place: Send + Sync {
    /// Its name in messages.
    fn name(&self) -> String;

    /// Its bytes, none if there is no such file yet.
    fn read(&self) -> Result<Stored, Failed>;

    /// Puts `bytes` there in the place of `stored`; they are on disk when this returns.
    fn write(&self, bytes: &[u8], stored: &Stored) -> Result<(), Failed>;
}

/// What a place has.
#[derive(Default)]
pub struct Stored {
    /// The file.
    pub bytes: Vec<u8>,
    /// Its version in an object store.
    pub version: Option<Version>,
}

/// Why a request is refused, in one line.
#[derive(Debug)]
pub struct Failed(pub StatusCode, pub String);

impl From<Error> for Failed {
    fn from(error: Error) -> Failed {
        Failed(StatusCode::INTERNAL_SERVER_ERROR, format!("{error:#}"))
    }
}

impl IntoResponse for Failed {
    fn into_response(self) -> Response {
        (self.0, self.1).into_response()
    }
}

impl Failed {
    /// A request that makes no sense.
    fn bad(words: impl Into<String>) -> Failed {
        Failed(StatusCode::BAD_REQUEST, words.into())
    }

    /// A request that the file does not allow.
    fn conflict(words: impl Into<String>) -> Failed {
        Failed(StatusCode::CONFLICT, words.into())
    }

    /// An answer to a request whose work goes on.
    pub fn at_work() -> Failed {
        Failed(StatusCode::ACCEPTED, "still at work; ask again".to_owned())
    }
}

/// The annotation of a result.
pub struct Session {
    place: Box<dyn Place>,
    text: RwLock<Arc<Text>>,
    /// Held while the file is changed.
    writing: Arc<Mutex<()>>,
    /// Held while a field learns.
    learning: Arc<tokio::sync::Mutex<()>>,
}

/// A text as it is segmented now.
struct Text {
    segmented: Segmented,
    /// Version of the file that was learned from, if one was.
    learned: Option<String>,
}

/// A distinct line of the text.
#[derive(Serialize)]
struct Line<'a> {
    symbols: Vec<&'a str>,
    /// Of a boundary after each symbol but the last, in percent; empty if the line was not trained on.
    probabilities: Vec<u8>,
    ends: Vec<u32>,
    /// Number of its occurrences.
    times: u32,
    /// What is known of each position between symbols, as in [`written`], if anything is.
    known: Option<String>,
}

/// What the page shows.
#[derive(Serialize)]
struct View<'a> {
    version: String,
    /// Separators of symbols and of segments.
    separators: (&'static str, &'static str),
    lines: Vec<Line<'a>>,
    /// Numbers of lines whose annotation would teach most.
    suggested: Vec<usize>,
}

/// A change of a line.
#[derive(Deserialize)]
struct Said {
    /// Number of the line.
    line: usize,
    /// What is known of it, as in [`written`]; `None` if it is no longer annotated.
    known: Option<String>,
    /// Version of the file that the page knows.
    version: String,
}

/// The answer to a change.
#[derive(Serialize)]
struct Kept {
    version: String,
    /// Whether the page did not know what the file had.
    stale: bool,
}

/// What is known of positions, a letter each: `1` for a boundary, `0` for none, `?` if nothing is known.
fn written(known: &Known) -> String {
    known.iter().map(|known| known.map_or('?', |is_end| if is_end { '1' } else { '0' })).collect()
}

/// The inverse of [`written`], of a line of `n` symbols.
fn read(known: &str, n: usize) -> Result<Known, Failed> {
    let position = |letter| match letter {
        '1' => Some(Some(true)),
        '0' => Some(Some(false)),
        '?' => Some(None),
        _ => None,
    };
    let read: Option<Known> = known.chars().map(position).collect();
    let read = read.filter(|known| known.len() + 1 == n);
    let read = read.ok_or_else(|| Failed::bad("expected one of 0, 1 and ? for each position of the line"))?;
    if n > 1 && read.iter().all(Option::is_none) {
        return Err(Failed::bad("expected at least one position that is known"));
    }
    Ok(read)
}

/// Positions in the corpus of the first occurrence of each distinct sentence.
fn distinct(text: &Segmented) -> Vec<usize> {
    (0..text.corpus.sentences.len())
        .filter(|&at| text.first(&text.corpus.sentences[at]) == Some(at))
        .collect()
}

/// The state as JSON.
fn view(text: &Segmented, file: &AnnotationFile) -> Result<Vec<u8>> {
    let distinct = distinct(text);
    let numbers: BTreeMap<usize, usize> = distinct.iter().copied().zip(0..).collect();
    let number = |symbols: &[u32]| text.first(symbols).map(|at| numbers[&at]);
    let gold = text.corpus.gold.as_deref().unwrap_or_default();
    let line = |&at: &usize| {
        let symbols = &text.corpus.sentences[at];
        let known = file.annotated.get(symbols);
        let printed = gold.get(at).and_then(|analyses| analyses.first());
        let is_end = |end: &u32| {
            let said = known.and_then(|known| known.get(*end as usize - 1).copied().flatten());
            said.unwrap_or_else(|| {
                *end as usize == symbols.len() || printed.is_some_and(|ends| ends.binary_search(end).is_ok())
            })
        };
        Line {
            symbols: symbols.iter().map(|&symbol| text.corpus.symbols[symbol as usize].as_str()).collect(),
            probabilities: Vec::new(),
            ends: (1..=symbols.len() as u32).filter(is_end).collect(),
            times: 0,
            known: known.map(written),
        }
    };
    let mut lines: Vec<Line<'_>> = distinct.iter().map(line).collect();
    for symbols in &text.corpus.sentences {
        number(symbols).into_iter().for_each(|at| lines[at].times += 1);
    }
    let percent = |probability: &f64| (probability * 100.0).round() as u8;
    for sentence in text.sentences.iter().rev() {
        let number = number(text.symbols(sentence));
        let percents = || sentence.probabilities.iter().map(percent).collect();
        number.into_iter().for_each(|at| lines[at].probabilities = percents());
    }
    let suggested = suggest(text, SUGGESTED).into_iter();
    let suggested = suggested.filter_map(|at| number(text.symbols(&text.sentences[at]))).collect();
    let separators = text.options.effective_unit().separators();
    Ok(serde_json::to_vec(&View { version: file.version(), separators, lines, suggested })?)
}

impl Session {
    /// Begins with a result, and learns from the file in `place` if there is something to learn. All sessions that change this file hold `writing` meanwhile.
    pub fn open(
        segmented: Segmented,
        place: impl Place + 'static,
        writing: Arc<Mutex<()>>,
    ) -> Result<Session, Failed> {
        let session = Session {
            place: Box::new(place),
            text: RwLock::new(Arc::new(Text { segmented, learned: None })),
            writing,
            learning: Arc::default(),
        };
        if teaches(&session.file(&session.text())?.1.annotated) {
            session.learn()?;
        }
        Ok(session)
    }

    fn text(&self) -> Arc<Text> {
        self.text.read().clone()
    }

    /// The file as it is now.
    fn file(&self, text: &Text) -> Result<(Stored, AnnotationFile), Failed> {
        let stored = self.place.read()?;
        let file = AnnotationFile::parse(stored.bytes.clone(), &self.place.name(), &text.segmented);
        let file = file.map_err(|error| Failed::conflict(format!("{error:#}")))?;
        Ok((stored, file))
    }

    /// All lines, and which are suggested, as JSON.
    pub fn state(&self) -> Result<Vec<u8>, Failed> {
        let text = self.text();
        Ok(view(&text.segmented, &self.file(&text)?.1)?)
    }

    /// Changes what is known of a line, as the JSON of a request says.
    pub fn say(&self, request: &[u8]) -> Result<Vec<u8>, Failed> {
        let said: Said = serde_json::from_slice(request)
            .map_err(|error| Failed::bad(format!("expected a change of a line: {error}")))?;
        let text = self.text();
        let of = &text.segmented;
        let at = *distinct(of).get(said.line).ok_or_else(|| Failed::bad("there is no such line"))?;
        let symbols = &of.corpus.sentences[at];
        let known = said.known.map(|known| read(&known, symbols.len())).transpose()?;
        let _writing = self.writing.lock();
        let (stored, file) = self.file(&text)?;
        let stale = file.version() != said.version;
        let next = file.said(symbols, known.as_ref(), of);
        let next = next.map_err(|error| Failed::conflict(format!("{error:#}")))?;
        if next != file {
            self.place.write(next.text.as_bytes(), &stored)?;
        }
        Ok(serde_json::to_vec(&Kept { version: next.version(), stale }).map_err(Error::from)?)
    }

    /// Waits for the end of a learning that goes on; one at a time begins.
    pub async fn turn(&self) -> OwnedMutexGuard<()> {
        self.learning.clone().lock_owned().await
    }

    /// Learns from the file, unless that was done already, and returns the new state as JSON. The caller has a [turn](Session::turn).
    pub fn learn(&self) -> Result<Vec<u8>, Failed> {
        let text = self.text();
        let (_, file) = self.file(&text)?;
        if text.learned.as_ref() == Some(&file.version()) {
            return Ok(view(&text.segmented, &file)?);
        }
        if !teaches(&file.annotated) {
            return Err(Failed::conflict(
                "no annotated line has a boundary yet, so that there is nothing to learn; annotate some that have",
            ));
        }
        let mut segmented = text.segmented.clone();
        relearn(&mut segmented, &file.annotated);
        let text = Arc::new(Text { segmented, learned: Some(file.version()) });
        *self.text.write() = text.clone();
        // Lines may have been annotated meanwhile.
        Ok(view(&text.segmented, &self.file(&text)?.1)?)
    }

    /// The text as it is segmented now.
    pub fn segmented(&self) -> String {
        self.text().segmented.lines()
    }

    /// The file of annotations.
    pub fn annotated(&self) -> Result<Vec<u8>, Failed> {
        Ok(self.place.read()?.bytes)
    }
}
