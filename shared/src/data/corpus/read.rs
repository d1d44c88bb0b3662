//! Reading corpus files, line by line.
//!
//! In: bytes, plain or gzip, of unknown length and quality. Out: a [`Corpus`] or, by [`Reader`], one block of it after the other;
//! or the first [`ReadError`] with its line and byte. A line that is too long is refused before it is in memory, as is gzip that
//! unpacks to too much.
//!
//! Byte offsets count from 0, in the text as decompressed.

use std::fmt;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::path::Path;

use rustc_hash::FxHashMap;

use super::clean::{BOUNDARY, is_one_grapheme, symbols};
use super::unpack::Unpack;
use super::{Corpus, Format, Options, Unit};

/// First bytes of gzip files.
pub const GZIP_MAGIC: [u8; 2] = [0x1f, 0x8b];

/// Why a file is not a corpus.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// A file that cannot be opened.
    #[error("{source_name}: cannot open the corpus: {error}")]
    Open {
        /// Name of the file.
        source_name: String,
        /// Cause.
        error: io::Error,
    },
    /// A file that cannot be read.
    #[error("{source_name}:{line}: cannot read the corpus at byte {byte}: {error}")]
    Read {
        /// Name of the file.
        source_name: String,
        /// Line, counted from 1.
        line: u32,
        /// Byte at which reading stopped.
        byte: u64,
        /// Cause.
        error: io::Error,
    },
    /// A file that cannot be decompressed.
    #[error(
        "{source_name}:{line}: cannot decompress the corpus at byte {byte}: {error}; it is damaged, cut short or not gzip: \
         make it again, or name it without .gz if it is plain text"
    )]
    Gzip {
        /// Name of the file.
        source_name: String,
        /// Line, counted from 1.
        line: u32,
        /// Byte at which the text stopped.
        byte: u64,
        /// Cause.
        error: io::Error,
    },
    /// A file that unpacks to too much.
    #[error("{source_name}:{line}: {error}; give the corpus as plain text")]
    Unpacked {
        /// Name of the file.
        source_name: String,
        /// Line, counted from 1.
        line: u32,
        /// Cause.
        error: io::Error,
    },
    /// A line that is not UTF-8.
    #[error("{source_name}:{line}: byte {byte} is not UTF-8; convert the file, for instance with iconv")]
    NotUtf8 {
        /// Name of the file.
        source_name: String,
        /// Line, counted from 1.
        line: u32,
        /// Offset of the first byte that is not.
        byte: u64,
    },
    /// A control character, such as NUL.
    #[error("{source_name}:{line}: control character U+{:04X} at byte {byte}, expected text; remove it", u32::from(*found))]
    Control {
        /// Name of the file.
        source_name: String,
        /// Line, counted from 1.
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
        /// Line, counted from 1.
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
        /// Number of lines skipped.
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
        /// Their number.
        n_lines: u32,
        /// The first of them.
        first_line: u32,
    },
    /// A [`Format::Segmented`] file that marks no word boundary.
    NoGold {
        /// Name of the file.
        source_name: String,
        /// Unit of symbols, which determines the boundary marks.
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
                    Unit::Char | Unit::Grapheme => "white space between words",
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
    /// Reads the file at `path`; gzip if it is named `.gz` or begins with gzip's magic bytes.
    ///
    /// # Errors
    /// See [`ReadError`].
    pub fn open(path: &Path, options: &Options) -> Result<(Corpus, Vec<Notice>), ReadError> {
        let (corpus, end) = Corpus::whole(Reader::open(path, options)?)?;
        Ok((corpus, end.notices))
    }

    /// Reads a corpus; `source_name` is what messages call it, and gzip if that ends with `.gz` or the content
    /// begins with gzip's magic bytes.
    ///
    /// # Errors
    /// See [`ReadError`].
    pub fn read(
        reader: impl Read,
        source_name: &str,
        options: &Options,
    ) -> Result<(Corpus, Vec<Notice>), ReadError> {
        let (corpus, end) = Corpus::whole(Reader::new(reader, source_name, options)?)?;
        Ok((corpus, end.notices))
    }

    /// All that `reader` has.
    ///
    /// # Errors
    /// See [`ReadError`].
    pub fn whole(mut reader: Reader<'_>) -> Result<(Corpus, End), ReadError> {
        let whole = reader.block(usize::MAX)?;
        let end = reader.finish()?;
        let mut corpus = whole.expect("a text without sentences was refused");
        corpus.gold = corpus.gold.filter(|_| end.marks_words);
        Ok((corpus, end))
    }
}

/// Reads a corpus in blocks of sentences that stand together, so that it is never in memory as a whole.
pub struct Reader<'a> {
    lines: Lines<'a>,
    /// [`Cleaning::digraphs`](super::Cleaning::digraphs), as they occur in the lines.
    digraphs: Vec<String>,
    gzip: bool,
    symbols: Symbols,
    /// Symbols of the current sentence; the buffer is reused.
    sentence: Vec<u32>,
    ends: Vec<u32>,
    n_sentences: usize,
    n_symbols: usize,
    marks_words: bool,
    empty_lines: u32,
    first_empty: u32,
}

/// Distinct symbols, in order of first occurrence.
struct Symbols {
    names: Vec<String>,
    ids: FxHashMap<String, u32>,
    /// Ids, plus one, of symbols that are a letter of ASCII, as most are: not hashed.
    ascii: [u32; 128],
}

impl Symbols {
    fn new() -> Symbols {
        Symbols { names: Vec::new(), ids: FxHashMap::default(), ascii: [0; 128] }
    }

    fn id(&mut self, symbol: &str) -> u32 {
        let letter = match symbol.as_bytes() {
            [letter] => Some(*letter as usize),
            _ => None,
        };
        if let Some(known) = letter.and_then(|letter| self.ascii[letter].checked_sub(1)) {
            return known;
        }
        let id = self.ids.get(symbol).copied().unwrap_or_else(|| {
            let id = self.names.len() as u32;
            self.names.push(symbol.to_owned());
            self.ids.insert(symbol.to_owned(), id);
            id
        });
        if let Some(letter) = letter {
            self.ascii[letter] = id + 1;
        }
        id
    }
}

/// A line that is not empty.
struct Sentence {
    line: u32,
    symbols: Vec<u32>,
    /// End positions of its words.
    ends: Vec<u32>,
}

/// Properties of a corpus that has been read to its end.
#[derive(Clone, PartialEq, Debug)]
pub struct End {
    /// Distinct symbols, in order of first occurrence.
    pub symbols: Vec<String>,
    /// Number of lines, empty ones included.
    pub n_lines: u32,
    /// Number of sentences.
    pub n_sentences: usize,
    /// Number of symbols in all of them.
    pub n_symbols: usize,
    /// Whether some line marks a word boundary; else there is no gold segmentation.
    pub marks_words: bool,
    /// Notices for the user.
    pub notices: Vec<Notice>,
}

impl<'a> Reader<'a> {
    /// Begins with the file at `path`; gzip if it is named `.gz` or begins with gzip's magic bytes.
    ///
    /// # Errors
    /// [`ReadError::Open`] and [`ReadError::Read`].
    pub fn open(path: &Path, options: &Options) -> Result<Reader<'static>, ReadError> {
        let source_name = path.display().to_string();
        match File::open(path) {
            Ok(file) => Reader::new(file, &source_name, options),
            Err(error) => Err(ReadError::Open { source_name, error }),
        }
    }

    /// Begins; `source_name` is what messages call the text, and gzip if that ends with `.gz` or the content begins as such
    /// files do.
    ///
    /// # Errors
    /// [`ReadError::Read`].
    pub fn new(
        reader: impl Read + 'a,
        source_name: &str,
        options: &Options,
    ) -> Result<Reader<'a>, ReadError> {
        let mut head = Vec::new();
        let mut reader = BufReader::with_capacity(1 << 16, reader);
        let read = reader.by_ref().take(GZIP_MAGIC.len() as u64).read_to_end(&mut head);
        let source_name = source_name.to_owned();
        if let Err(error) = read {
            return Err(ReadError::Read { source_name, line: 1, byte: 0, error });
        }
        let gzip = source_name.ends_with(".gz") || head == GZIP_MAGIC;
        let whole = io::Cursor::new(head).chain(reader);
        let text: Box<dyn BufRead + 'a> = match gzip {
            true => Box::new(BufReader::with_capacity(1 << 16, Unpack::new(whole))),
            false => Box::new(whole),
        };
        Ok(Reader {
            lines: Lines {
                text,
                source_name,
                options: options.clone(),
                line: 0,
                byte: 0,
                buffer: Vec::new(),
            },
            digraphs: options.cleaning.digraphs(),
            gzip,
            symbols: Symbols::new(),
            sentence: Vec::new(),
            ends: Vec::new(),
            n_sentences: 0,
            n_symbols: 0,
            marks_words: false,
            empty_lines: 0,
            first_empty: 0,
        })
    }

    /// The next sentences, up to the one that brings them to `n_symbols` symbols or more; `None` at the end. Its symbols are
    /// those seen so far, and it has a gold segmentation even if no line marks words.
    ///
    /// # Errors
    /// See [`ReadError`].
    pub fn block(&mut self, n_symbols: usize) -> Result<Option<Corpus>, ReadError> {
        let Options { format, unit, .. } = self.lines.options;
        let (mut sentences, mut gold, mut lines) = (Vec::new(), Vec::new(), Vec::new());
        let mut n_read = 0;
        while n_read < n_symbols {
            let Some(sentence) = self.sentence()? else { break };
            n_read += sentence.symbols.len();
            sentences.push(sentence.symbols);
            gold.push(sentence.ends);
            lines.push(sentence.line);
        }
        if sentences.is_empty() {
            return Ok(None);
        }
        self.n_sentences += sentences.len();
        self.n_symbols += n_read;
        let (symbols, source_name) = (self.symbols.names.clone(), self.lines.source_name.clone());
        Ok(Some(Corpus { symbols, sentences, gold: Some(gold), lines, source_name, format, unit }))
    }

    /// The next sentence.
    fn sentence(&mut self) -> Result<Option<Sentence>, ReadError> {
        let Options { format, unit, max_symbols, .. } = self.lines.options;
        let effective_unit = self.lines.options.effective_unit();
        let cleaning = self.lines.options.cleaning.clone();
        loop {
            let next = self.lines.next().map_err(|error| match error {
                ReadError::Read { source_name, line, error, .. }
                    if error.kind() == io::ErrorKind::FileTooLarge =>
                {
                    ReadError::Unpacked { source_name, line, error }
                }
                ReadError::Read { source_name, line, byte, error } if self.gzip => {
                    ReadError::Gzip { source_name, line, byte, error }
                }
                other => other,
            })?;
            let Some((line, byte, text)) = next else { return Ok(None) };
            let (sentence, ends) = (&mut self.sentence, &mut self.ends);
            sentence.clear();
            ends.clear();
            let symbol_ids = &mut self.symbols;
            for word in cleaning.line(text, effective_unit).split_whitespace() {
                match (format, unit) {
                    (Format::Segmented, Unit::Char | Unit::Grapheme) => {
                        symbols(word, unit, &self.digraphs, |symbol| {
                            // Symbols do not depend on the gold segmentation: a mark belongs to the letter before it, also behind a space.
                            let before =
                                sentence.last().map(|&last| symbol_ids.names[last as usize].as_str());
                            match before
                                .filter(|before| unit == Unit::Grapheme && is_one_grapheme(before, symbol))
                            {
                                Some(before) => {
                                    let joined = [before, symbol].concat();
                                    sentence.pop();
                                    ends.pop_if(|end| *end as usize > sentence.len());
                                    sentence.push(symbol_ids.id(&joined));
                                }
                                None => sentence.push(symbol_ids.id(symbol)),
                            }
                        });
                        ends.push(sentence.len() as u32);
                    }
                    (Format::Segmented, Unit::Token) if word == BOUNDARY => {
                        self.marks_words = true;
                        let end = sentence.len() as u32;
                        ends.extend((end > ends.last().copied().unwrap_or(0)).then_some(end));
                    }
                    _ => sentence.push(symbol_ids.id(word)),
                }
                if sentence.len() > max_symbols as usize {
                    return Err(self.lines.too_long(line, byte));
                }
            }
            let n_symbols = sentence.len() as u32;
            if n_symbols == 0 {
                self.empty_lines += 1;
                self.first_empty = if self.first_empty == 0 { line } else { self.first_empty };
                continue;
            }
            if ends.last() != Some(&n_symbols) {
                ends.push(n_symbols);
            }
            self.marks_words |= ends.len() > 1;
            return Ok(Some(Sentence { line, symbols: sentence.clone(), ends: ends.clone() }));
        }
    }

    /// Properties of the whole file, known once [`Reader::block`] has returned all blocks.
    ///
    /// # Errors
    /// [`ReadError::Empty`].
    pub fn finish(self) -> Result<End, ReadError> {
        let Reader { lines, symbols, n_sentences, n_symbols, marks_words, empty_lines, first_empty, .. } =
            self;
        let Options { format, unit, .. } = lines.options;
        let (source_name, n_lines) = (lines.source_name, lines.line);
        if n_sentences == 0 {
            return Err(ReadError::Empty { source_name, empty_lines });
        }
        let mut notices = Vec::new();
        if format == Format::Segmented && !marks_words {
            notices.push(Notice::NoGold { source_name: source_name.clone(), unit });
        }
        if empty_lines > 0 {
            notices.push(Notice::EmptyLines { source_name, n_lines: empty_lines, first_line: first_empty });
        }
        Ok(End { symbols: symbols.names, n_lines, n_sentences, n_symbols, marks_words, notices })
    }
}

/// The lines of a text, each within its limits and fit to be read.
struct Lines<'a> {
    text: Box<dyn BufRead + 'a>,
    source_name: String,
    options: Options,
    /// Lines read so far.
    line: u32,
    /// Bytes read so far.
    byte: u64,
    buffer: Vec<u8>,
}

impl Lines<'_> {
    /// The next line with its number and the offset of its first byte.
    fn next(&mut self) -> Result<Option<(u32, u64, &str)>, ReadError> {
        // Characters have at most 4 bytes, and tokens are rarely longer than 64; blanks count too.
        let limit = u64::from(self.options.max_symbols) * 64 + 64;
        self.buffer.clear();
        let read = self.text.by_ref().take(limit).read_until(b'\n', &mut self.buffer);
        let source_name = || self.source_name.clone();
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
        ReadError::TooLong { source_name: self.source_name.clone(), line, byte, max_symbols }
    }
}
