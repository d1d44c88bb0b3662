//! Bounded decompression of gzip and zstd.

use std::cell::Cell;
use std::io::{self, BufRead, Read};
use std::rc::Rc;

use flate2::bufread::MultiGzDecoder;

use crate::limits::{MAX_GROWTH, UNPACKED_ALWAYS, ZSTD_WINDOW, max_unpacked};

/// A compressed format that is read.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Packing {
    /// `.gz`.
    Gzip,
    /// `.zst`.
    Zstd,
}

impl Packing {
    const ALL: [Packing; 2] = [Packing::Gzip, Packing::Zstd];

    /// How a file that begins with `head` is compressed, or is by its name.
    pub fn of(head: &[u8], name: &str) -> Option<Packing> {
        let by_content = Packing::ALL.into_iter().find(|packing| head.starts_with(packing.magic()));
        by_content.or_else(|| Packing::ALL.into_iter().find(|packing| name.ends_with(packing.ending())))
    }

    /// First bytes of its files.
    pub fn magic(self) -> &'static [u8] {
        match self {
            Packing::Gzip => b"\x1f\x8b",
            Packing::Zstd => b"\x28\xb5\x2f\xfd",
        }
    }

    fn ending(self) -> &'static str {
        match self {
            Packing::Gzip => ".gz",
            Packing::Zstd => ".zst",
        }
    }
}

/// Reads what is compressed, and fails with [`io::ErrorKind::FileTooLarge`] where it unpacks to more than [`max_unpacked`] of the bytes read
/// so far.
pub struct Unpack<R: BufRead> {
    decoder: Decoder<R>,
    packed: Rc<Cell<u64>>,
    unpacked: u64,
}

enum Decoder<R: BufRead> {
    Gzip(MultiGzDecoder<Counted<R>>),
    Zstd(zstd::Decoder<'static, Counted<R>>),
}

impl<R: BufRead> Unpack<R> {
    /// A reader of the text in `packed`.
    ///
    /// # Errors
    /// If memory ends.
    pub fn new(packing: Packing, packed: R) -> io::Result<Unpack<R>> {
        let n_bytes = Rc::new(Cell::new(0));
        let packed = Counted { reader: packed, n_bytes: n_bytes.clone() };
        let decoder = match packing {
            Packing::Gzip => Decoder::Gzip(MultiGzDecoder::new(packed)),
            Packing::Zstd => {
                let mut decoder = zstd::Decoder::with_buffer(packed)?;
                decoder.window_log_max(ZSTD_WINDOW)?;
                Decoder::Zstd(decoder)
            }
        };
        Ok(Unpack { decoder, packed: n_bytes, unpacked: 0 })
    }
}

impl<R: BufRead> Read for Unpack<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let n = match &mut self.decoder {
            Decoder::Gzip(decoder) => decoder.read(buffer)?,
            Decoder::Zstd(decoder) => decoder.read(buffer)?,
        };
        self.unpacked += n as u64;
        let packed = self.packed.get();
        if self.unpacked > max_unpacked(packed) {
            return Err(io::Error::new(
                io::ErrorKind::FileTooLarge,
                format!(
                    "{packed} bytes unpack to {} or more, expected at most {MAX_GROWTH} times as many or {UNPACKED_ALWAYS}",
                    self.unpacked
                ),
            ));
        }
        Ok(n)
    }
}

/// Counts the bytes that are consumed.
struct Counted<R> {
    reader: R,
    n_bytes: Rc<Cell<u64>>,
}

impl<R: BufRead> Read for Counted<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let n = self.reader.read(buffer)?;
        self.n_bytes.set(self.n_bytes.get() + n as u64);
        Ok(n)
    }
}

impl<R: BufRead> BufRead for Counted<R> {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        self.reader.fill_buf()
    }

    fn consume(&mut self, n: usize) {
        self.reader.consume(n);
        self.n_bytes.set(self.n_bytes.get() + n as u64);
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use std::io::Write;

    use flate2::Compression;
    use flate2::write::GzEncoder;

    use super::*;

    /// The text, compressed.
    pub fn pack(packing: Packing, text: &[u8]) -> Vec<u8> {
        match packing {
            Packing::Gzip => {
                let mut gzip = GzEncoder::new(Vec::new(), Compression::best());
                gzip.write_all(text).unwrap();
                gzip.finish().unwrap()
            }
            Packing::Zstd => zstd::encode_all(text, 19).unwrap(),
        }
    }

    #[test]
    fn what_unpacks_to_too_much_is_refused_and_a_small_file_is_not() {
        let zeros = vec![0; 2 * UNPACKED_ALWAYS as usize];
        let most = &zeros[..UNPACKED_ALWAYS as usize];
        for packing in Packing::ALL {
            let unpacked = |text| {
                let packed = pack(packing, text);
                assert_eq!(Packing::of(&packed, ""), Some(packing));
                io::copy(&mut Unpack::new(packing, &packed[..]).unwrap(), &mut io::sink())
            };
            assert_eq!(unpacked(most).unwrap(), UNPACKED_ALWAYS);
            let error = unpacked(&zeros).unwrap_err().to_string();
            assert!(error.contains("expected at most 256 times as many or 16777216"), "{error}");
        }
    }

    #[test]
    fn parts_that_were_compressed_alone_are_one_text() {
        for packing in Packing::ALL {
            let packed = [pack(packing, b"un "), pack(packing, b"do")].concat();
            let mut text = String::new();
            Unpack::new(packing, &packed[..]).unwrap().read_to_string(&mut text).unwrap();
            assert_eq!(text, "un do");
        }
    }
}
