//! The bytes of a file as UTF-8 text with line feeds, and a sample of its first lines.
//!
//! In: bytes of unknown kind. Out: a [`Stream`] of text, or the name of the container that holds it. The first bytes decide, so that the same
//! file is read alike everywhere:
//!
//! | first bytes | text |
//! |---|---|
//! | gzip or zstd, or a name that ends in `.gz` or `.zst` | unpacked |
//! | xz, bzip2, zip, tar and others | refused by name ([`Container`]) |
//! | a UTF-16 byte-order mark, or a NUL as exactly one of the first two bytes | UTF-8 |
//! | a carriage return and no line feed in the first [`SAMPLE`] bytes | each carriage return is a line end |

use std::fmt;
use std::io::{self, BufRead, BufReader, Cursor, Read};

use super::unpack::{Packing, Unpack};

/// Bytes of a text that are looked at before it is read.
pub const SAMPLE: usize = 1 << 18;

/// Bytes of a file that show what holds the text; tar's magic bytes are at 257.
const HEAD: usize = 512;

/// A text decoded to UTF-8 with line feeds.
pub struct Stream<'a> {
    /// The text.
    pub text: Box<dyn BufRead + 'a>,
    /// Whether it is unpacked.
    pub is_packed: bool,
    /// Changes that decoding makes.
    pub changes: Vec<Change>,
    /// The first [`SAMPLE`] bytes of the text, or all of it.
    head: Vec<u8>,
}

/// A change that decoding makes to a text.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Change {
    /// UTF-16 becomes UTF-8.
    Utf16,
    /// Carriage returns become line ends.
    CarriageReturns,
}

impl fmt::Display for Change {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(match self {
            Change::Utf16 => "the text is UTF-16 and was read as such",
            Change::CarriageReturns => {
                "the lines end with carriage returns alone, which were read as line ends"
            }
        })
    }
}

/// A file that holds texts and has to be unpacked first.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Container {
    /// Its name with an article.
    name: &'static str,
    /// What to do with it.
    advice: &'static str,
}

impl fmt::Display for Container {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "this is {}; {}", self.name, self.advice)
    }
}

/// Containers by their magic bytes and where these are.
const CONTAINERS: [(usize, &[u8], Container); 8] = [
    (0, b"\xfd7zXZ\0", Container { name: "an xz file", advice: "decompress it with xz -d" }),
    (0, b"BZh", Container { name: "a bzip2 file", advice: "decompress it with bzip2 -d" }),
    (0, b"\x04\x22\x4d\x18", Container { name: "an lz4 file", advice: "decompress it with lz4 -d" }),
    (
        0,
        b"PK\x03\x04",
        Container { name: "a zip archive", advice: "unpack it with unzip, and give the text in it" },
    ),
    (
        0,
        b"7z\xbc\xaf\x27\x1c",
        Container { name: "a 7z archive", advice: "unpack it with 7z x, and give the text in it" },
    ),
    (0, b"%PDF-", Container { name: "a PDF file", advice: "save its text with pdftotext" }),
    (
        257,
        b"ustar",
        Container { name: "a tar archive", advice: "unpack it with tar -xf, and give the text in it" },
    ),
    (
        0,
        b"\xff\xfe\0\0",
        Container { name: "a text in UTF-32", advice: "convert it with iconv -f UTF-32 -t UTF-8" },
    ),
];

impl Container {
    /// The container of a file that begins with `head`.
    fn of(head: &[u8]) -> Option<Container> {
        let begins = |(at, magic, _): &&(usize, &[u8], Container)| {
            head.get(*at..).is_some_and(|head| head.starts_with(magic))
        };
        let found = CONTAINERS.iter().find(begins).map(|(.., container)| *container);
        // "BZh" and "7z" may begin a text, whose next letter is no level of compression.
        found.filter(|container| {
            !container.name.contains("bzip2") || head.get(3).is_some_and(u8::is_ascii_digit)
        })
    }
}

/// Whether a text that begins with `head` cannot be cut at line feeds before it is decoded.
pub fn is_encoded(head: &[u8]) -> bool {
    Packing::of(head, "").is_some() || Order::of(head).is_some() || matches!(head, [0x1f | 0xfe | 0xff])
}

impl<'a> Stream<'a> {
    /// Decodes a text; its name matters if it ends in `.gz` or `.zst`. Errors of reading are returned when the text is read.
    ///
    /// # Errors
    /// The container that holds the text.
    pub fn new(bytes: impl Read + 'a, name: &str) -> Result<Stream<'a>, Container> {
        let bytes = Ahead::new(BufReader::with_capacity(1 << 16, bytes), HEAD);
        let packing = Packing::of(bytes.head(), name);
        let text: Box<dyn BufRead + 'a> = match packing {
            Some(packing) => Box::new(BufReader::with_capacity(1 << 16, unpack(packing, bytes))),
            None => Box::new(bytes),
        };
        let mut changes = Vec::new();
        let text = Ahead::new(text, HEAD);
        if let Some(container) = Container::of(text.head()) {
            return Err(container);
        }
        let text: Box<dyn BufRead + 'a> = match Order::of(text.head()) {
            None => Box::new(text),
            Some(order) => {
                changes.push(Change::Utf16);
                Box::new(BufReader::new(Utf16 { bytes: text, order, high: None, decoded: Cursor::default() }))
            }
        };
        let text = Ahead::new(text, SAMPLE);
        let mut head = text.head().to_vec();
        let has_returns_only = head.contains(&b'\r') && !head.contains(&b'\n');
        let text: Box<dyn BufRead + 'a> = if has_returns_only {
            changes.push(Change::CarriageReturns);
            returns_as_feeds(&mut head);
            Box::new(BufReader::new(LineEnds(text)))
        } else {
            Box::new(text)
        };
        Ok(Stream { text, is_packed: packing.is_some(), changes, head })
    }

    /// The complete lines among the first [`SAMPLE`] bytes, `n` at most, without their ends.
    ///
    /// # Errors
    /// The first line that is not UTF-8, counted from 1, and the byte.
    pub fn sample(&self, n: usize) -> Result<Vec<String>, (u32, u64)> {
        let is_whole = self.head.len() < SAMPLE;
        let end = match self.head.iter().rposition(|&byte| byte == b'\n') {
            Some(last) if !is_whole => last,
            _ => self.head.len(),
        };
        let mut byte = 0;
        let mut text = |(line, number): (&[u8], u32)| {
            let text =
                std::str::from_utf8(line).map_err(|error| (number, byte + error.valid_up_to() as u64))?;
            byte += line.len() as u64 + 1;
            Ok(text.replace('\u{feff}', "").trim_end_matches('\r').to_owned())
        };
        self.head[..end].split(|&byte| byte == b'\n').zip(1..).take(n).map(&mut text).collect()
    }
}

/// The text in `bytes`; an error of the decoder is returned when it is read.
fn unpack<'a>(packing: Packing, bytes: impl BufRead + 'a) -> Box<dyn Read + 'a> {
    match Unpack::new(packing, bytes) {
        Ok(unpack) => Box::new(unpack),
        Err(error) => Box::new(Ahead { head: Cursor::default(), failed: Some(error), rest: io::empty() }),
    }
}

/// Why a file is no text.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum Fault {
    /// A file that holds texts.
    #[error("{0}")]
    Packed(Container),
    /// A file that cannot be read or is not what it is named.
    #[error("cannot read what follows: {0}; the file is damaged or cut short: make it again")]
    Damaged(String),
    /// A compressed file that unpacks to too much.
    #[error("{0}; give it uncompressed")]
    Unpacked(String),
    /// Bytes that are no text.
    #[error("byte {0} is not UTF-8; convert the file, for instance with iconv")]
    NotUtf8(usize),
}

/// A whole file as text.
///
/// # Errors
/// The line, counted from 1, and its fault.
pub fn whole(bytes: impl Read, name: &str) -> Result<String, (u32, Fault)> {
    let line_after = |bytes: &[u8]| 1 + bytes.iter().filter(|&&byte| byte == b'\n').count() as u32;
    let mut stream = Stream::new(bytes, name).map_err(|container| (1, Fault::Packed(container)))?;
    let mut text = Vec::new();
    let read = stream.text.read_to_end(&mut text);
    read.map_err(|error| {
        let fault = match error.kind() {
            io::ErrorKind::FileTooLarge => Fault::Unpacked(error.to_string()),
            _ => Fault::Damaged(error.to_string()),
        };
        (line_after(&text), fault)
    })?;
    String::from_utf8(text).map_err(|error| {
        let valid = error.utf8_error().valid_up_to();
        (line_after(&error.as_bytes()[..valid]), Fault::NotUtf8(valid))
    })
}

/// A reader whose first bytes have been looked at.
struct Ahead<R> {
    head: Cursor<Vec<u8>>,
    /// The error that ended the look, which reading returns in its place.
    failed: Option<io::Error>,
    rest: R,
}

impl<R: Read> Ahead<R> {
    fn new(mut rest: R, n: usize) -> Ahead<R> {
        let mut head = Vec::new();
        let failed = rest.by_ref().take(n as u64).read_to_end(&mut head).err();
        Ahead { head: Cursor::new(head), failed, rest }
    }

    fn head(&self) -> &[u8] {
        self.head.get_ref()
    }

    fn is_past_head(&self) -> bool {
        self.head.position() as usize >= self.head.get_ref().len()
    }
}

impl<R: BufRead> Read for Ahead<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let n = self.fill_buf()?.read(buffer)?;
        self.consume(n);
        Ok(n)
    }
}

impl<R: BufRead> BufRead for Ahead<R> {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        if !self.is_past_head() {
            return self.head.fill_buf();
        }
        match self.failed.take() {
            Some(failed) => Err(failed),
            None => self.rest.fill_buf(),
        }
    }

    fn consume(&mut self, n: usize) {
        if self.is_past_head() { self.rest.consume(n) } else { self.head.consume(n) }
    }
}

/// The order of the two bytes of a unit of UTF-16.
#[derive(Clone, Copy)]
enum Order {
    LowFirst,
    HighFirst,
}

impl Order {
    /// The order in a text of UTF-16; `None` for other texts.
    fn of(head: &[u8]) -> Option<Order> {
        match head {
            [0xff, 0xfe, ..] => Some(Order::LowFirst),
            [0xfe, 0xff, ..] => Some(Order::HighFirst),
            [1..=255, 0, 1..=255, 0, ..] => Some(Order::LowFirst),
            [0, 1..=255, 0, 1..=255, ..] => Some(Order::HighFirst),
            _ => None,
        }
    }
}

/// UTF-16 read as UTF-8.
struct Utf16<R> {
    bytes: R,
    order: Order,
    /// The first half of a pair of surrogates whose second half is to come.
    high: Option<u16>,
    decoded: Cursor<Vec<u8>>,
}

impl<R: Read> Utf16<R> {
    /// The next unit; `None` at the end.
    fn unit(&mut self) -> io::Result<Option<u16>> {
        let mut unit = [0; 2];
        match self.bytes.read(&mut unit[..1])? {
            0 => return Ok(None),
            _ => self.bytes.read_exact(&mut unit[1..]).map_err(|_| not_utf16())?,
        }
        Ok(Some(match self.order {
            Order::LowFirst => u16::from_le_bytes(unit),
            Order::HighFirst => u16::from_be_bytes(unit),
        }))
    }
}

fn not_utf16() -> io::Error {
    io::Error::new(
        io::ErrorKind::InvalidData,
        "it begins as UTF-16 does, and is not; convert it with iconv -t UTF-8",
    )
}

impl<R: Read> Read for Utf16<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        const AT_ONCE: usize = 1 << 13;
        if self.decoded.position() as usize >= self.decoded.get_ref().len() {
            let mut text = String::new();
            while text.len() < AT_ONCE {
                let Some(unit) = self.unit()? else { break };
                let units = self.high.take().into_iter().chain([unit]);
                if (0xd800..0xdc00).contains(&unit) {
                    self.high = Some(unit);
                    if units.count() == 2 {
                        return Err(not_utf16());
                    }
                    continue;
                }
                for letter in char::decode_utf16(units) {
                    text.push(letter.map_err(|_| not_utf16())?);
                }
            }
            if text.is_empty() && self.high.is_some() {
                return Err(not_utf16());
            }
            self.decoded = Cursor::new(text.into_bytes());
        }
        self.decoded.read(buffer)
    }
}

/// A text whose carriage returns are line ends.
struct LineEnds<R>(R);

impl<R: Read> Read for LineEnds<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let n = self.0.read(buffer)?;
        returns_as_feeds(&mut buffer[..n]);
        Ok(n)
    }
}

fn returns_as_feeds(bytes: &mut [u8]) {
    bytes.iter_mut().filter(|byte| **byte == b'\r').for_each(|byte| *byte = b'\n');
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use flate2::Compression;
    use flate2::write::GzEncoder;
    use proptest::prelude::*;

    use super::*;

    fn text(bytes: &[u8]) -> (String, Vec<Change>) {
        let mut stream = Stream::new(bytes, "text").unwrap();
        let mut text = String::new();
        stream.text.read_to_string(&mut text).unwrap();
        (text, stream.changes)
    }

    fn utf16(text: &str, order: Order, marked: bool) -> Vec<u8> {
        let mark = if marked { "\u{feff}" } else { "" };
        let units = mark.encode_utf16().chain(text.encode_utf16());
        units
            .flat_map(|unit| match order {
                Order::LowFirst => unit.to_le_bytes(),
                Order::HighFirst => unit.to_be_bytes(),
            })
            .collect()
    }

    proptest! {
        #[test]
        fn a_text_is_the_same_in_any_encoding(line in "(\\PC|\n){0,40}", low in any::<bool>()) {
            let order = if low { Order::LowFirst } else { Order::HighFirst };
            let (found, changes) = text(&utf16(&line, order, true));
            prop_assert_eq!(found, format!("\u{feff}{line}"));
            prop_assert_eq!(changes, [Change::Utf16]);
            let mut gzip = GzEncoder::new(Vec::new(), Compression::fast());
            gzip.write_all(line.as_bytes()).unwrap();
            prop_assert_eq!(text(&gzip.finish().unwrap()).0, line.clone());
            prop_assert_eq!(text(line.as_bytes()), (line, vec![]));
        }
    }

    #[test]
    fn encodings_are_found_by_the_first_bytes() {
        for order in [Order::LowFirst, Order::HighFirst] {
            assert_eq!(text(&utf16("ab\ncd", order, false)), ("ab\ncd".to_owned(), vec![Change::Utf16]));
        }
        assert_eq!(text(b"ab\rcd\r"), ("ab\ncd\n".to_owned(), vec![Change::CarriageReturns]));
        assert_eq!(text(b"ab\r\ncd\re"), ("ab\r\ncd\re".to_owned(), vec![]));
        for broken in [&b"\xff\xfea"[..], b"\xff\xfe\x00\xd8", b"\xff\xfe\x00\xd8a\0", b"\xff\xfe\x00\xdc"] {
            let mut stream = Stream::new(broken, "text").unwrap();
            assert!(stream.text.read_to_string(&mut String::new()).is_err(), "{broken:?}");
        }
    }

    #[test]
    fn containers_are_named() {
        let mut tar = vec![0; 257];
        tar[0] = b'a';
        tar.extend(b"ustar\0");
        let mut gzip = GzEncoder::new(Vec::new(), Compression::fast());
        gzip.write_all(&tar).unwrap();
        for (bytes, expected) in [
            (&b"\xfd7zXZ\0..."[..], "this is an xz file; decompress it with xz -d"),
            (b"BZh9...", "this is a bzip2 file; decompress it with bzip2 -d"),
            (b"PK\x03\x04..", "this is a zip archive; unpack it with unzip, and give the text in it"),
            (&tar, "this is a tar archive; unpack it with tar -xf, and give the text in it"),
            (
                &gzip.finish().unwrap(),
                "this is a tar archive; unpack it with tar -xf, and give the text in it",
            ),
        ] {
            assert_eq!(Stream::new(bytes, "text").err().unwrap().to_string(), expected);
        }
        for plain in ["BZhou is a name", "PK", "7z", "", "a"] {
            assert_eq!(text(plain.as_bytes()).0, plain);
        }
    }

    #[test]
    fn a_sample_is_complete_lines() {
        let sample_of = |text: &[u8]| Stream::new(text, "text").unwrap().sample(3);
        let sample = |text: &[u8]| sample_of(text).unwrap();
        assert_eq!(sample(b"\xef\xbb\xbfa\r\nb\n\nd\n"), ["a", "b", ""]);
        assert_eq!(sample(b"a\nb"), ["a", "b"]);
        assert_eq!(sample_of(b"a\nb\xff\nb\n"), Err((2, 3)));
        let long = ["ab\n".as_bytes(), &vec![b'c'; SAMPLE]].concat();
        assert_eq!(sample(&long), ["ab"]);
    }
}
