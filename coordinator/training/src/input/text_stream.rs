//! A text to parse that arrives over time, as over a pipe from another program.
//!
//! In: bytes, plain or compressed. Out: parts of all complete lines that have arrived. The parts depend on timing; the sentences, their lines and
//! their gold segmentation do not.

use std::io::{self, Read};

use anyhow::{Context as _, Result};
use grammaton::data::corpus::decode::is_encoded;
use grammaton::data::corpus::{Analyses, Corpus, Options, ReadError, Reader};

use super::{STANDARD_INPUT, TextPart};

/// Number of bytes that are read at a time.
const PIECE: usize = 1 << 16;

/// Parts of standard input.
pub struct Arriving<R> {
    bytes: R,
    options: Options,
    /// Bytes after the last complete line.
    rest: Vec<u8>,
    /// Number of lines of earlier parts.
    n_lines: u32,
    /// Number of bytes of earlier parts.
    n_bytes: u64,
    /// Whether a line has marked a word boundary: from there on sentences have a gold segmentation.
    marks_words: bool,
    /// Sentences from the first one with a gold segmentation on, if the part began before it.
    next: Option<TextPart>,
    ended: bool,
}

impl<R: Read> Arriving<R> {
    /// Parts of `bytes`.
    pub fn new(bytes: R, options: &Options) -> Arriving<R> {
        let options = options.clone();
        Arriving {
            bytes,
            options,
            rest: Vec::new(),
            n_lines: 0,
            n_bytes: 0,
            marks_words: false,
            next: None,
            ended: false,
        }
    }

    /// Waits for a complete line; returns all complete lines. The last line needs no end, a compressed text is returned whole, and a line
    /// beyond the limits is returned without its end, for the reader to refuse.
    fn lines(&mut self) -> Result<Vec<u8>> {
        let longest = self.options.max_symbols as usize * 64 + PIECE;
        let mut piece = vec![0; PIECE];
        loop {
            let n = match self.bytes.read(&mut piece) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                read => read.with_context(|| format!("{STANDARD_INPUT}: cannot read the corpus"))?,
            };
            self.ended = n == 0;
            let before = self.rest.len();
            self.rest.extend_from_slice(&piece[..n]);
            let is_packed = self.n_bytes == 0 && is_encoded(&self.rest);
            if self.ended || (!is_packed && self.rest.len() > longest) {
                return Ok(std::mem::take(&mut self.rest));
            }
            let last = piece[..n].iter().rposition(|&byte| byte == b'\n');
            if let Some(last) = last.filter(|_| !is_packed) {
                let rest = self.rest.split_off(before + last + 1);
                return Ok(std::mem::replace(&mut self.rest, rest));
            }
        }
    }

    fn part(&mut self) -> Result<Option<TextPart>> {
        if let Some(next) = self.next.take() {
            return Ok(Some(next));
        }
        if self.ended {
            return Ok(None);
        }
        let lines = self.lines()?;
        if lines.is_empty() && self.n_lines > 0 {
            return Ok(None);
        }
        let mut reader = Reader::new(&lines[..], STANDARD_INPUT, &self.options)?;
        let read = reader.block(usize::MAX).and_then(|corpus| Ok((corpus, reader.finish()?.n_lines)));
        let (mut corpus, n_lines) = match read {
            Err(ReadError::Empty { empty_lines, .. }) if empty_lines > 0 => (None, empty_lines),
            read => read.map_err(|error| later(error, self.n_lines, self.n_bytes))?,
        };
        for line in corpus.iter_mut().flat_map(|corpus| &mut corpus.lines) {
            *line += self.n_lines;
        }
        self.n_lines += n_lines;
        self.n_bytes += lines.len() as u64;
        Ok(Some(self.with_gold(corpus)))
    }

    /// The part with the gold segmentation of the lines from the first one on that marks words.
    fn with_gold(&mut self, corpus: Option<Corpus>) -> TextPart {
        let n_lines = self.n_lines;
        let part = |corpus: Option<Corpus>| TextPart { corpus, n_lines };
        if self.marks_words {
            return part(corpus);
        }
        let Some(mut corpus) = corpus else { return part(None) };
        let marks_words = |gold: &Analyses| gold.iter().any(|ends| ends.len() > 1);
        let first = corpus.gold.as_ref().and_then(|gold| gold.iter().position(marks_words));
        self.marks_words = first.is_some();
        if let Some(first) = first {
            let (before, from): (Vec<usize>, Vec<usize>) =
                (0..corpus.sentences.len()).partition(|&at| at < first);
            let with_gold = part(Some(corpus.subset(&from)));
            if before.is_empty() {
                return with_gold;
            }
            self.next = Some(with_gold);
            corpus = corpus.subset(&before);
        }
        corpus.gold = None;
        part(Some(corpus))
    }
}

impl<R: Read> Iterator for Arriving<R> {
    type Item = Result<TextPart>;

    fn next(&mut self) -> Option<Result<TextPart>> {
        self.part().transpose()
    }
}

/// The error in a part, with its place in the whole text: `lines` and `bytes` are those of earlier parts.
fn later(mut error: ReadError, lines: u32, bytes: u64) -> ReadError {
    match &mut error {
        ReadError::Read { line, byte, .. }
        | ReadError::Damaged { line, byte, .. }
        | ReadError::NotUtf8 { line, byte, .. }
        | ReadError::Control { line, byte, .. }
        | ReadError::TooLong { line, byte, .. } => {
            *line += lines;
            *byte += bytes;
        }
        ReadError::Unpacked { line, .. }
        | ReadError::Layout { line, .. }
        | ReadError::TooManyOccurrences { line, .. } => *line += lines,
        ReadError::Open { .. }
        | ReadError::OtherFormat { .. }
        | ReadError::Packed { .. }
        | ReadError::Empty { .. } => {}
    }
    error
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::io::Write as _;

    use super::*;

    /// Bytes that arrive in pieces.
    struct Pieces<'a> {
        pieces: Vec<&'a [u8]>,
        n_read: &'a Cell<usize>,
    }

    impl Read for Pieces<'_> {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            let piece = self.pieces.get(self.n_read.get()).copied().unwrap_or_default();
            self.n_read.set(self.n_read.get() + 1);
            buffer[..piece.len()].copy_from_slice(piece);
            Ok(piece.len())
        }
    }

    /// Lines with their numbers, texts and gold segmentations, and the number of lines.
    type Found = (Vec<(u32, String, Option<String>)>, u32);

    fn read(bytes: &[u8], size: usize) -> Result<Found> {
        let mut found = (Vec::new(), 0);
        let options = Options { max_symbols: 100, ..Options::default() };
        let pieces = Pieces { pieces: bytes.chunks(size).collect(), n_read: &Cell::new(0) };
        for part in Arriving::new(pieces, &options) {
            let TextPart { corpus, n_lines } = part?;
            found.1 = n_lines;
            if let Some(corpus) = corpus {
                for (at, sentence) in corpus.sentences.iter().enumerate() {
                    let text = corpus.line(at, &[sentence.len() as u32]);
                    let gold = corpus.gold_line(at);
                    found.0.push((corpus.lines[at], text, gold));
                }
            }
        }
        Ok(found)
    }

    #[test]
    fn sentences_do_not_depend_on_when_they_arrive() {
        let text = "ab\n\nc\na b\nab\n\n\nb a\n\ncab".as_bytes();
        let whole = read(text, text.len()).unwrap();
        let gold: Vec<Option<&str>> = whole.0.iter().map(|(_, _, gold)| gold.as_deref()).collect();
        assert_eq!(gold, [None, None, Some("a b"), Some("ab"), Some("b a"), Some("cab")]);
        assert_eq!(whole.0.iter().map(|&(line, ..)| line).collect::<Vec<_>>(), [1, 3, 4, 5, 8, 10]);
        assert_eq!(whole.1, 10);
        for size in 1..text.len() {
            assert_eq!(read(text, size).unwrap(), whole, "{size}");
        }
        let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
        gzip.write_all(text).unwrap();
        let packed = [gzip.finish().unwrap(), zstd::encode_all(text, 1).unwrap()];
        for (packed, size) in
            packed.iter().flat_map(|packed| (1..packed.len()).map(move |size| (packed, size)))
        {
            assert_eq!(read(packed, size).unwrap(), whole, "packed, {size}");
        }
    }

    #[test]
    fn complete_lines_are_given_before_the_text_ends() {
        let n_read = Cell::new(0);
        let pieces = ["ab\nc", "d\n", "\n", "e"].map(str::as_bytes).to_vec();
        let mut arriving = Arriving::new(Pieces { pieces, n_read: &n_read }, &Options::default());
        for (n_lines, pieces) in [(1, 1), (2, 2), (3, 3), (4, 5)] {
            assert_eq!(arriving.next().unwrap().unwrap().n_lines, n_lines);
            assert_eq!(n_read.get(), pieces);
        }
        assert!(arriving.next().is_none());
    }

    #[test]
    fn errors_name_the_place_in_the_whole_text() {
        let long = [b"ab\nc\n".to_vec(), vec![b'a'; 200_000]].concat();
        for size in [1, 2, 5, 7, 1 << 16] {
            let error = |bytes: &[u8]| read(bytes, size).unwrap_err().to_string();
            assert!(error(b"ab\n\nc\n\xff\n").starts_with("standard input:4: byte 6 is not UTF-8"));
            assert!(error(b"ab\nc\n\0").starts_with("standard input:3: control character U+0000 at byte 5"));
            assert!(error(&long).starts_with("standard input:3: the line that begins at byte 5"));
            assert!(error(b"").starts_with("standard input: the corpus has no sentences"));
            assert_eq!(read(b"\n\n", size).unwrap(), (Vec::new(), 2));
        }
    }
}
