//! Reading corpus files, line by line.
//!
//! In: bytes, plain or compressed, of unknown length and quality. Out: a [`Corpus`] or, by [`Reader`], one block of it after the other;
//! or the first [`ReadError`] with its line and byte. A line that is too long is refused before it is in memory, as is a file that
//! unpacks to too much.
//!
//! Byte offsets count from 0, in the text as decompressed.

use std::fmt;
use std::fs::File;
use std::io::{self, BufRead, Read};
use std::path::Path;

use rustc_hash::FxHashMap;
use unicode_normalization::UnicodeNormalization as _;

use super::clean::{BOUNDARY, is_one_symbol, symbols};
use super::decode::{Change, Container, Stream};
use super::layout::{Counts, Layout, LayoutError, LineKind};
use super::sniff::{Contents, Finding, Given, Reading, SAMPLE_LINES, look};
use super::{Corpus, Format, Options, Unit};
use crate::data::ipa::{is_ipa, modifiers};

/// Most occurrences of all sentences: samplers have a tree for each.
pub const MAX_OCCURRENCES: u64 = 1 << 26;

/// Why a file is not a corpus.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// The lines look like something else than sentences.
    #[error("{source_name}: {evidence}; say how it is to be read (Options), or give the sentences alone")]
    OtherFormat {
        /// Name of the corpus.
        source_name: String,
        /// What speaks for it.
        evidence: String,
    },
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
        "{source_name}:{line}: cannot decompress the corpus at byte {byte}: {error}; it is damaged, cut short or not compressed: \
         make it again, or name it without .gz or .zst if it is plain text"
    )]
    Damaged {
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
    /// An archive or compressed file that holds texts.
    #[error("{source_name}: {container}")]
    Packed {
        /// Name of the file.
        source_name: String,
        /// What it is.
        container: Container,
    },
    /// A line that does not have the layout of the corpus.
    #[error("{source_name}:{line}: {error}")]
    Layout {
        /// Name of the file.
        source_name: String,
        /// Line, counted from 1.
        line: u32,
        /// Difference from the layout.
        error: LayoutError,
    },
    /// Counts of too many occurrences.
    #[error(
        "{source_name}:{line}: the counts up to this line add up to {found}, expected at most {MAX_OCCURRENCES}; set corpus.counts = \"log\" or \"ones\""
    )]
    TooManyOccurrences {
        /// Name of the file.
        source_name: String,
        /// Line, counted from 1.
        line: u32,
        /// The sum.
        found: u64,
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
    /// The text was decoded.
    Decoded {
        /// Name of the file.
        source_name: String,
        /// What decoding changed.
        change: Change,
    },
    /// Characters without width that are no symbols.
    Invisible {
        /// Name of the file.
        source_name: String,
        /// The character.
        invisible: Invisible,
        /// Their number.
        n: u32,
        /// Line of the first of them.
        first_line: u32,
    },
    /// Symbols that Unicode considers equal, and that are different symbols here.
    MixedForms {
        /// Name of the file.
        source_name: String,
        /// One of them in NFC.
        example: String,
        /// Their number.
        n: usize,
    },
    /// Modifiers of the International Phonetic Alphabet that are symbols of their own, or letters without the rest of their tie.
    Modifiers {
        /// Name of the file.
        source_name: String,
        /// One of them.
        example: String,
        /// Their number.
        n: usize,
    },
    /// A [`Format::Segmented`] file that marks no word boundary.
    NoGold {
        /// Name of the file.
        source_name: String,
        /// Unit of symbols, which determines the boundary marks.
        unit: Unit,
    },
}

/// A character without width that is no symbol.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Invisible {
    /// U+FEFF after the begin of the file, as concatenation leaves it: dropped.
    ByteOrderMark,
    /// U+200B: white space, so a word boundary.
    ZeroWidthSpace,
}

impl Invisible {
    const ALL: [Invisible; 2] = [Invisible::ByteOrderMark, Invisible::ZeroWidthSpace];

    fn character(self) -> char {
        match self {
            Invisible::ByteOrderMark => '\u{feff}',
            Invisible::ZeroWidthSpace => '\u{200b}',
        }
    }

    fn instead(self) -> &'static str {
        match self {
            Invisible::ByteOrderMark => "",
            Invisible::ZeroWidthSpace => " ",
        }
    }
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
            Notice::Decoded { source_name, change } => write!(f, "{source_name}: {change}"),
            Notice::Invisible { source_name, invisible, n, first_line } => {
                let (s, were) = if *n == 1 { ("", "was") } else { ("s", "were") };
                write!(f, "{source_name}:{first_line}: ")?;
                match invisible {
                    Invisible::ByteOrderMark => {
                        write!(f, "{n} byte-order mark{s} (U+FEFF) inside the text {were} dropped")
                    }
                    Invisible::ZeroWidthSpace => {
                        write!(
                            f,
                            "{n} zero-width space{s} (U+200B) {were} read as white space, which separates words"
                        )
                    }
                }
            }
            Notice::MixedForms { source_name, example, n } => {
                let are = if *n == 1 { "1 symbol is".to_owned() } else { format!("{n} symbols are") };
                write!(
                    f,
                    "{source_name}: {are} written in two Unicode forms (NFC and NFD), the first being `{example}`, and count as different; \
                     normalise = \"nfc\" makes them one"
                )
            }
            Notice::Modifiers { source_name, example, n } => {
                let are = if *n == 1 { "1 symbol is".to_owned() } else { format!("{n} symbols are") };
                write!(
                    f,
                    "{source_name}: the text is in the International Phonetic Alphabet, and {are} part of a segment, the first being `{example}`; \
                     unit = \"ipa\" makes a symbol of each segment"
                )
            }
            Notice::NoGold { source_name, unit } => {
                let boundary = match unit {
                    Unit::Char | Unit::Grapheme | Unit::Ipa => "white space between words",
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
    /// Reads the file at `path`, plain or compressed, with notices of what may not be meant.
    ///
    /// # Errors
    /// See [`ReadError`].
    pub fn open_with(path: &Path, options: &Options) -> Result<(Corpus, Vec<Notice>), ReadError> {
        let (corpus, end) = Corpus::whole(Reader::open(path, options)?)?;
        Ok((corpus, end.notices))
    }

    /// Reads sentences of characters, one a line, whose words, if they are marked, stand between white space.
    ///
    /// # Errors
    /// See [`ReadError`]; [`ReadError::OtherFormat`] if the lines look like something else, which [`Corpus::open_with`] reads with the right
    /// options.
    pub fn open(path: impl AsRef<Path>) -> Result<Corpus, ReadError> {
        let (path, options) = (path.as_ref(), Options::default());
        let source_name = path.display().to_string();
        let file =
            File::open(path).map_err(|error| ReadError::Open { source_name: source_name.clone(), error })?;
        let packed = |container| ReadError::Packed { source_name: source_name.clone(), container };
        let stream = Stream::new(file, &source_name).map_err(packed)?;
        let sample = stream.sample(SAMPLE_LINES);
        let not_utf8 = |(line, byte)| ReadError::NotUtf8 { source_name: source_name.clone(), line, byte };
        let sample = sample.map_err(not_utf8)?;
        let (_, findings) = look(&sample, Contents::Utterances, Given::default(), &Reading::default());
        if let Some(Finding { evidence, .. }) = findings.into_iter().next() {
            return Err(ReadError::OtherFormat { source_name, evidence });
        }
        Ok(Corpus::whole(Reader::of(stream, &source_name, &options))?.0)
    }

    /// Reads sentences of tokens: one a line, its tokens between spaces.
    ///
    /// # Errors
    /// See [`ReadError`].
    pub fn of_tokens(text: &str) -> Result<Corpus, ReadError> {
        let options = Options { format: Format::Tokens, ..Options::default() };
        Ok(Corpus::read(text.as_bytes(), "text", &options)?.0)
    }

    /// Reads a corpus, plain or compressed, with notices of what may not be meant; `source_name` is what messages call it.
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

    #[doc(hidden)]
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
    /// [`Options::layout`], after the header with the number of the column.
    layout: Layout,
    /// [`Cleaning::digraphs`](super::Cleaning::digraphs), as they occur in the lines.
    digraphs: Vec<String>,
    is_packed: bool,
    changes: Vec<Change>,
    /// Occurrences of all sentences.
    n_occurrences: u64,
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
    occurrences: u32,
    /// Parts of the line before and after it.
    beside: (String, String),
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
    /// Begins with the file at `path`, which [`Stream::new`] decodes.
    ///
    /// # Errors
    /// [`ReadError::Open`] and [`ReadError::Packed`].
    pub fn open(path: &Path, options: &Options) -> Result<Reader<'static>, ReadError> {
        let source_name = path.display().to_string();
        match File::open(path) {
            Ok(file) => Reader::new(file, &source_name, options),
            Err(error) => Err(ReadError::Open { source_name, error }),
        }
    }

    /// Begins with bytes, which [`Stream::new`] decodes; `source_name` is what messages call the text.
    ///
    /// # Errors
    /// [`ReadError::Packed`].
    pub fn new(
        reader: impl Read + 'a,
        source_name: &str,
        options: &Options,
    ) -> Result<Reader<'a>, ReadError> {
        match Stream::new(reader, source_name) {
            Ok(stream) => Ok(Reader::of(stream, source_name, options)),
            Err(container) => Err(ReadError::Packed { source_name: source_name.to_owned(), container }),
        }
    }

    /// Begins with a decoded text.
    pub fn of(stream: Stream<'a>, source_name: &str, options: &Options) -> Reader<'a> {
        let Stream { text, is_packed, changes, .. } = stream;
        Reader {
            lines: Lines {
                text,
                source_name: source_name.to_owned(),
                options: options.clone(),
                line: 0,
                byte: 0,
                buffer: Vec::new(),
                visible: String::new(),
                invisible: [(0, 0); 2],
            },
            layout: options.layout.clone(),
            digraphs: options.cleaning.digraphs(),
            is_packed,
            changes,
            n_occurrences: 0,
            symbols: Symbols::new(),
            sentence: Vec::new(),
            ends: Vec::new(),
            n_sentences: 0,
            n_symbols: 0,
            marks_words: false,
            empty_lines: 0,
            first_empty: 0,
        }
    }

    /// The next sentences, up to the one that brings them to `n_symbols` symbols or more; `None` at the end. Its symbols are
    /// those seen so far, and it has a gold segmentation even if no line marks words.
    ///
    /// # Errors
    /// See [`ReadError`].
    pub fn block(&mut self, n_symbols: usize) -> Result<Option<Corpus>, ReadError> {
        let Options { format, unit, .. } = self.lines.options;
        let has_counts = !matches!(self.layout.counts, Counts::None | Counts::Ones);
        let has_parts = !self.layout.is_plain();
        let (mut sentences, mut gold, mut lines) = (Vec::new(), Vec::new(), Vec::new());
        let (mut occurrences, mut beside) = (Vec::new(), Vec::new());
        let mut n_read = 0;
        while n_read < n_symbols {
            let Some(sentence) = self.sentence()? else { break };
            n_read += sentence.symbols.len();
            sentences.push(sentence.symbols);
            gold.push(vec![sentence.ends]);
            lines.push(sentence.line);
            occurrences.extend(has_counts.then_some(sentence.occurrences));
            beside.extend(has_parts.then_some(sentence.beside));
        }
        if sentences.is_empty() {
            return Ok(None);
        }
        self.n_sentences += sentences.len();
        self.n_symbols += n_read;
        let (symbols, source_name) = (self.symbols.names.clone(), self.lines.source_name.clone());
        let gold = Some(gold);
        Ok(Some(Corpus { symbols, sentences, gold, lines, occurrences, beside, source_name, format, unit }))
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
                ReadError::Read { source_name, line, byte, error } if self.is_packed => {
                    ReadError::Damaged { source_name, line, byte, error }
                }
                other => other,
            })?;
            let Some((line, byte, text)) = next else { return Ok(None) };
            if self.layout.has_header() && !text.trim().is_empty() {
                match self.layout.with_header(text) {
                    Ok(layout) => self.layout = layout,
                    Err(error) => return Err(self.lines.fault(line, error)),
                }
                continue;
            }
            let place = match self.layout.place(text, effective_unit) {
                Ok(place) => place,
                Err(error) => return Err(self.lines.fault(line, error)),
            };
            let Some(place) = place else {
                if text.trim().is_empty() {
                    self.empty_lines += 1;
                    self.first_empty = if self.first_empty == 0 { line } else { self.first_empty };
                }
                continue;
            };
            let (sentence, ends) = (&mut self.sentence, &mut self.ends);
            sentence.clear();
            ends.clear();
            let symbol_ids = &mut self.symbols;
            let mut last = String::new(); // the last symbol, which the next word may continue
            for word in cleaning.line(&place.sentence, effective_unit).split_whitespace() {
                match (format, unit) {
                    (Format::Segmented, Unit::Char | Unit::Grapheme | Unit::Ipa) => {
                        // Segments of the IPA are joined below, as they may go on behind a space.
                        let pieces = if unit == Unit::Ipa { Unit::Grapheme } else { unit };
                        symbols(word, pieces, &self.digraphs, |symbol| {
                            // Symbols do not depend on the gold segmentation: a mark belongs to the letter before it, also behind a space.
                            if is_one_symbol(&last, symbol, unit) && !last.is_empty() {
                                ends.pop_if(|end| *end as usize > sentence.len());
                            } else if !last.is_empty() {
                                sentence.push(symbol_ids.id(&last));
                                last.clear();
                            }
                            last.push_str(symbol);
                        });
                        ends.push(sentence.len() as u32 + 1);
                    }
                    (Format::Segmented, Unit::Token) if word == BOUNDARY => {
                        self.marks_words = true;
                        let end = sentence.len() as u32;
                        ends.extend((end > ends.last().copied().unwrap_or(0)).then_some(end));
                    }
                    _ => sentence.push(symbol_ids.id(word)),
                }
                if sentence.len() + usize::from(!last.is_empty()) > max_symbols as usize {
                    return Err(self.lines.too_long(line, byte));
                }
            }
            if !last.is_empty() {
                sentence.push(symbol_ids.id(&last));
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
            self.n_occurrences = self.n_occurrences.saturating_add(place.occurrences);
            let (found, occurrences, beside) =
                (self.n_occurrences, place.occurrences as u32, (place.before, place.after));
            if found > MAX_OCCURRENCES {
                let source_name = self.lines.source_name.clone();
                return Err(ReadError::TooManyOccurrences { source_name, line, found });
            }
            let (symbols, ends) = (sentence.clone(), ends.clone());
            return Ok(Some(Sentence { line, symbols, ends, occurrences, beside }));
        }
    }

    /// Properties of the whole file, known once [`Reader::block`] has returned all blocks.
    ///
    /// # Errors
    /// [`ReadError::Empty`].
    pub fn finish(self) -> Result<End, ReadError> {
        let Reader { lines, symbols, changes, n_sentences, n_symbols, marks_words, empty_lines, .. } = self;
        let first_empty = self.first_empty;
        let invisible = Invisible::ALL.into_iter().zip(lines.invisible);
        let Options { format, unit, .. } = lines.options;
        let (source_name, n_lines) = (lines.source_name, lines.line);
        if n_sentences == 0 {
            return Err(ReadError::Empty { source_name, empty_lines });
        }
        let named = || source_name.clone();
        let mut notices: Vec<Notice> = changes
            .into_iter()
            .map(|change| Notice::Decoded { source_name: named(), change })
            .chain(invisible.filter(|(_, (n, _))| *n > 0).map(|(invisible, (n, first_line))| {
                Notice::Invisible { source_name: named(), invisible, n, first_line }
            }))
            .chain(mixed_forms(&symbols.names).map(|(example, n)| Notice::MixedForms {
                source_name: named(),
                example,
                n,
            }))
            .collect();
        if matches!(unit, Unit::Char | Unit::Grapheme) && is_ipa(&symbols.names) {
            let mut modifiers = modifiers(&symbols.names);
            notices.extend(modifiers.next().map(|example| Notice::Modifiers {
                source_name: named(),
                example: example.clone(),
                n: 1 + modifiers.count(),
            }));
        }
        if format == Format::Segmented && !marks_words {
            notices.push(Notice::NoGold { source_name: source_name.clone(), unit });
        }
        if empty_lines > 0 {
            notices.push(Notice::EmptyLines { source_name, n_lines: empty_lines, first_line: first_empty });
        }
        Ok(End { symbols: symbols.names, n_lines, n_sentences, n_symbols, marks_words, notices })
    }
}

/// Symbols that are equal in NFC and different as they are: the first one, in NFC, and their number. A base letter and a mark that are symbols of
/// their own also make a letter that is one symbol elsewhere.
fn mixed_forms(symbols: &[String]) -> Option<(String, usize)> {
    if symbols.iter().all(|symbol| symbol.is_ascii()) {
        return None;
    }
    let known: FxHashMap<String, usize> =
        symbols.iter().zip(0..).map(|(symbol, at)| (symbol.nfd().collect(), at)).collect();
    let is_mixed = |(at, symbol): &(usize, &String)| {
        let decomposed: String = symbol.nfd().collect();
        let is_composed = decomposed != **symbol;
        let marks = || decomposed.chars().skip(1).map(String::from);
        known[&decomposed] != *at || (is_composed && marks().any(|mark| symbols.contains(&mark)))
    };
    let mut mixed = symbols.iter().enumerate().filter(is_mixed).map(|(_, symbol)| symbol);
    let first = mixed.next()?;
    Some((first.nfc().collect(), 1 + mixed.count()))
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
    /// The line without invisible characters, if it had some.
    visible: String,
    /// Number and first line of each of [`Invisible::ALL`].
    invisible: [(u32, u32); 2],
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
        let is_chat = self.options.layout.lines == LineKind::Chat;
        while is_chat && self.continues(line)? {
            let left = limit.saturating_sub(self.buffer.len() as u64);
            let read = self.text.by_ref().take(left).read_until(b'\n', &mut self.buffer);
            let n = read.map_err(|error| self.unreadable(line, error))?;
            if n == 0 || self.buffer.len() as u64 >= limit {
                return Err(self.too_long(line, start));
            }
            self.line += 1;
            self.byte += n as u64;
        }
        let source_name = || self.source_name.clone();
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
        let is_time_mark = |letter: char| is_chat && letter == '\u{15}';
        let is_control =
            |letter: char| letter.is_control() && !letter.is_whitespace() && !is_time_mark(letter);
        let control = text.char_indices().find(|&(_, letter)| is_control(letter));
        if let Some((at, found)) = control {
            return Err(ReadError::Control {
                source_name: source_name(),
                line,
                byte: start + at as u64,
                found,
            });
        }
        if text.is_ascii() || !text.contains(Invisible::ALL.map(Invisible::character)) {
            return Ok(Some((line, start, text)));
        }
        self.visible = text.to_owned();
        for (invisible, (n, first_line)) in Invisible::ALL.into_iter().zip(&mut self.invisible) {
            let found = self.visible.matches(invisible.character()).count() as u32;
            if found > 0 {
                *first_line = if *n == 0 { line } else { *first_line };
                *n += found;
                self.visible = self.visible.replace(invisible.character(), invisible.instead());
            }
        }
        Ok(Some((line, start, &self.visible)))
    }

    /// Whether the next line continues the one at `line`, by the rule of transcripts.
    fn continues(&mut self, line: u32) -> Result<bool, ReadError> {
        match self.text.fill_buf() {
            Ok(next) => Ok(next.first() == Some(&b'\t')),
            Err(error) => Err(self.unreadable(line, error)),
        }
    }

    fn unreadable(&self, line: u32, error: io::Error) -> ReadError {
        ReadError::Read { source_name: self.source_name.clone(), line, byte: self.byte, error }
    }

    fn fault(&self, line: u32, error: LayoutError) -> ReadError {
        ReadError::Layout { source_name: self.source_name.clone(), line, error }
    }

    fn too_long(&self, line: u32, byte: u64) -> ReadError {
        let max_symbols = self.options.max_symbols;
        ReadError::TooLong { source_name: self.source_name.clone(), line, byte, max_symbols }
    }
}
