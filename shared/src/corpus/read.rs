//! Reading corpus files, line by line.
//!
//! In: bytes, plain or gzip, of unknown length and quality. Out: a [`Corpus`], or the first [`ReadError`] with its
//! line and byte. A line that is too long is refused before it is in memory.
//!
//! Byte offsets count from 0, in the text as decompressed.

use std::fmt;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::path::Path;

use flate2::bufread::MultiGzDecoder;
use rustc_hash::FxHashMap;

use super::{Corpus, Format, Options, Unit};

/// What gzip files begin with.
pub(crate) const GZIP_MAGIC: [u8; 2] = [0x1f, 0x8b];

/// The token that stands between words in [`Unit::Token`].
pub const BOUNDARY: &str = "|";

/// Why a file is not a corpus.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// It could not be opened.
    #[error("{source_name}: cannot open the corpus: {error}")]
    Open {
        /// Name of the file.
        source_name: String,
        /// Why.
        error: io::Error,
    },
    /// It could not be read.
    #[error("{source_name}:{line}: cannot read the corpus at byte {byte}: {error}")]
    Read {
        /// Name of the file.
        source_name: String,
        /// Line.
        line: u32,
        /// Where reading stopped.
        byte: u64,
        /// Why.
        error: io::Error,
    },
    /// It could not be decompressed.
    #[error(
        "{source_name}:{line}: cannot decompress the corpus at byte {byte}: {error}; it is damaged, cut short or not gzip: \
         make it again, or name it without .gz if it is plain text"
    )]
    Gzip {
        /// Name of the file.
        source_name: String,
        /// Line.
        line: u32,
        /// Where the text stopped.
        byte: u64,
        /// Why.
        error: io::Error,
    },
    /// A line that is not UTF-8.
    #[error("{source_name}:{line}: byte {byte} is not UTF-8; convert the file, for instance with iconv")]
    NotUtf8 {
        /// Name of the file.
        source_name: String,
        /// Line.
        line: u32,
        /// Offset of the first byte that is not.
        byte: u64,
    },
    /// A control character, such as NUL.
    #[error("{source_name}:{line}: control character U+{:04X} at byte {byte}, expected text; remove it", u32::from(*found))]
    Control {
        /// Name of the file.
        source_name: String,
        /// Line.
        line: u32,
        /// Offset of the character.
        byte: u64,
        /// The character.
        found: char,
    },
    /// A line with too many symbols.
    #[error(
        "{source_name}:{line}: the line that begins at byte {byte} is longer than {max_symbols} symbols (of 64 bytes); \
         split it, or raise max_symbols"
    )]
    TooLong {
        /// Name of the file.
        source_name: String,
        /// Line.
        line: u32,
        /// Offset of the line.
        byte: u64,
        /// [`Options::max_symbols`].
        max_symbols: u32,
    },
    /// A file without sentences.
    #[error("{source_name}: the corpus has no sentences ({}), expected one a line", n_empty(*.empty_lines))]
    Empty {
        /// Name of the file.
        source_name: String,
        /// How many lines were skipped.
        empty_lines: u32,
    },
}

/// Something in a corpus file that is accepted, but may not be meant.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Notice {
    /// Lines without symbols were skipped.
    EmptyLines {
        /// Name of the file.
        source_name: String,
        /// How many.
        n_lines: u32,
        /// The first of them.
        first_line: u32,
    },
    /// A [`Format::Segmented`] file that marks no word boundary.
    NoGold {
        /// Name of the file.
        source_name: String,
        /// What a symbol is, and so what a boundary would be.
        unit: Unit,
    },
}

fn n_empty(n_lines: u32) -> String {
    format!("{n_lines} empty line{}", if n_lines == 1 { "" } else { "s" })
}

impl fmt::Display for Notice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Notice::EmptyLines { source_name, n_lines, first_line } => {
                let more = if *n_lines == 1 { "" } else { ", this being the first" };
                write!(f, "{source_name}:{first_line}: skipped {}{more}", n_empty(*n_lines))
            }
            Notice::NoGold { source_name, unit } => {
                let boundary = match unit {
                    Unit::Char => "white space between words",
                    Unit::Token => "`|` between words",
                };
                write!(
                    f,
                    "{source_name}: no line has {boundary}, so there is no gold segmentation to score against"
                )
            }
        }
    }
}

impl Corpus {
    /// Reads the file at `path`; gzip if it is named `.gz` or begins as such files do.
    ///
    /// # Errors
    /// See [`ReadError`].
    pub fn open(path: &Path, options: &Options) -> Result<(Corpus, Vec<Notice>), ReadError> {
        let source_name = path.display().to_string();
        match File::open(path) {
            Ok(file) => Corpus::read(file, &source_name, options),
            Err(error) => Err(ReadError::Open { source_name, error }),
        }
    }

    /// Reads a corpus; `source_name` is what messages call it, and gzip if that ends with `.gz` or the content
    /// begins as such files do.
    ///
    /// # Errors
    /// See [`ReadError`].
    pub fn read(
        reader: impl Read,
        source_name: &str,
        options: &Options,
    ) -> Result<(Corpus, Vec<Notice>), ReadError> {
        let mut head = Vec::new();
        let mut reader = BufReader::with_capacity(1 << 16, reader);
        let read = reader.by_ref().take(GZIP_MAGIC.len() as u64).read_to_end(&mut head);
        read.map_err(|error| ReadError::Read {
            source_name: source_name.to_owned(),
            line: 1,
            byte: 0,
            error,
        })?;
        let gzip = source_name.ends_with(".gz") || head == GZIP_MAGIC;
        let whole = io::Cursor::new(head).chain(reader);
        if gzip {
            let text = BufReader::with_capacity(1 << 16, MultiGzDecoder::new(whole));
            read_text(text, source_name, options).map_err(|error| match error {
                ReadError::Read { source_name, line, byte, error } => {
                    ReadError::Gzip { source_name, line, byte, error }
                }
                other => other,
            })
        } else {
            read_text(whole, source_name, options)
        }
    }
}

fn read_text(
    text: impl BufRead,
    source_name: &str,
    options: &Options,
) -> Result<(Corpus, Vec<Notice>), ReadError> {
    let mut lines = Lines { text, source_name, options, line: 0, byte: 0, buffer: Vec::new() };
    let mut corpus = Corpus {
        symbols: Vec::new(),
        sentences: Vec::new(),
        gold: None,
        lines: Vec::new(),
        source_name: source_name.to_owned(),
        format: options.format,
        unit: options.unit,
    };
    let mut ids: FxHashMap<String, u32> = FxHashMap::default();
    let mut gold = Vec::new();
    let mut marks_words = false;
    let (mut empty_lines, mut first_empty) = (0, 0);
    while let Some((line, byte, text)) = lines.next()? {
        let (mut sentence, mut ends) = (Vec::new(), Vec::new());
        let mut push = |symbol: &str| {
            let id = ids.get(symbol).copied().unwrap_or_else(|| {
                let id = corpus.symbols.len() as u32;
                corpus.symbols.push(symbol.to_owned());
                ids.insert(symbol.to_owned(), id);
                id
            });
            sentence.push(id);
            sentence.len() as u32
        };
        let mut n_symbols = 0;
        for word in text.split_whitespace() {
            match (options.format, options.unit) {
                (Format::Segmented, Unit::Char) => {
                    let mut utf8 = [0; 4];
                    for letter in word.chars() {
                        n_symbols = push(letter.encode_utf8(&mut utf8));
                    }
                    ends.push(n_symbols);
                }
                (Format::Segmented, Unit::Token) if word == BOUNDARY => {
                    marks_words = true;
                    ends.extend((n_symbols > ends.last().copied().unwrap_or(0)).then_some(n_symbols));
                }
                _ => n_symbols = push(word),
            }
            if n_symbols > options.max_symbols {
                return Err(lines.too_long(line, byte));
            }
        }
        if n_symbols == 0 {
            empty_lines += 1;
            first_empty = if first_empty == 0 { line } else { first_empty };
            continue;
        }
        if ends.last() != Some(&n_symbols) {
            ends.push(n_symbols);
        }
        marks_words |= ends.len() > 1;
        gold.push(ends);
        corpus.sentences.push(sentence);
        corpus.lines.push(line);
    }
    let source_name = source_name.to_owned();
    if corpus.sentences.is_empty() {
        return Err(ReadError::Empty { source_name, empty_lines });
    }
    corpus.gold = marks_words.then_some(gold);
    let mut notices = Vec::new();
    if options.format == Format::Segmented && !marks_words {
        notices.push(Notice::NoGold { source_name: source_name.clone(), unit: options.unit });
    }
    if empty_lines > 0 {
        notices.push(Notice::EmptyLines { source_name, n_lines: empty_lines, first_line: first_empty });
    }
    Ok((corpus, notices))
}

/// The lines of a text, each within its limits and fit to be read.
struct Lines<'a, R> {
    text: R,
    source_name: &'a str,
    options: &'a Options,
    /// Lines read so far.
    line: u32,
    /// Bytes read so far.
    byte: u64,
    buffer: Vec<u8>,
}

impl<R: BufRead> Lines<'_, R> {
    /// The next line with its number and the offset of its first byte.
    fn next(&mut self) -> Result<Option<(u32, u64, &str)>, ReadError> {
        // Characters have at most 4 bytes, and tokens are rarely longer than 64; blanks count too.
        let limit = u64::from(self.options.max_symbols) * 64 + 64;
        self.buffer.clear();
        let read = self.text.by_ref().take(limit).read_until(b'\n', &mut self.buffer);
        let source_name = || self.source_name.to_owned();
        let mut start = self.byte;
        let length = read.map_err(|error| ReadError::Read {
            source_name: source_name(),
            line: self.line + 1,
            byte: start,
            error,
        })?;
        if length == 0 {
            return Ok(None);
        }
        self.line += 1;
        self.byte += length as u64;
        let line = self.line;
        if length as u64 == limit && self.buffer.last() != Some(&b'\n') {
            return Err(self.too_long(line, start));
        }
        let mut bytes = self.buffer.as_slice();
        if line == 1
            && let Some(rest) = bytes.strip_prefix("\u{feff}".as_bytes())
        {
            start += (bytes.len() - rest.len()) as u64;
            bytes = rest;
        }
        let text = std::str::from_utf8(bytes).map_err(|error| ReadError::NotUtf8 {
            source_name: source_name(),
            line,
            byte: start + error.valid_up_to() as u64,
        })?;
        let control = text.char_indices().find(|(_, letter)| letter.is_control() && !letter.is_whitespace());
        if let Some((at, found)) = control {
            return Err(ReadError::Control {
                source_name: source_name(),
                line,
                byte: start + at as u64,
                found,
            });
        }
        Ok(Some((line, start, text)))
    }

    fn too_long(&self, line: u32, byte: u64) -> ReadError {
        let max_symbols = self.options.max_symbols;
        ReadError::TooLong { source_name: self.source_name.to_owned(), line, byte, max_symbols }
    }
}
