//! Bounded decompression of gzip.

use std::cell::Cell;
use std::io::{self, BufRead, Read};
use std::rc::Rc;

use flate2::bufread::MultiGzDecoder;

use crate::limits::{MAX_GROWTH, UNPACKED_ALWAYS, max_unpacked};

/// Reads gzip, and fails with [`io::ErrorKind::FileTooLarge`] where it unpacks to more than [`max_unpacked`] of the bytes read so far.
pub struct Unpack<R> {
    decoder: MultiGzDecoder<Counted<R>>,
    packed: Rc<Cell<u64>>,
    unpacked: u64,
}

impl<R: BufRead> Unpack<R> {
    /// A reader of the text packed in `packed`.
    pub fn new(packed: R) -> Unpack<R> {
        let n_bytes = Rc::new(Cell::new(0));
        let decoder = MultiGzDecoder::new(Counted { reader: packed, n_bytes: n_bytes.clone() });
        Unpack { decoder, packed: n_bytes, unpacked: 0 }
    }
}

impl<R: BufRead> Read for Unpack<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let n = self.decoder.read(buffer)?;
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
mod tests {
    use std::io::Write;

    use flate2::Compression;
    use flate2::write::GzEncoder;

    use super::*;

    fn unpacked(text: &[u8]) -> io::Result<usize> {
        let mut gzip = GzEncoder::new(Vec::new(), Compression::best());
        gzip.write_all(text).unwrap();
        io::copy(&mut Unpack::new(&gzip.finish().unwrap()[..]), &mut io::sink()).map(|n| n as usize)
    }

    #[test]
    fn a_bomb_is_refused_and_a_small_file_is_not() {
        let zeros = vec![0; 2 * UNPACKED_ALWAYS as usize];
        assert_eq!(unpacked(&zeros[..UNPACKED_ALWAYS as usize]).unwrap(), UNPACKED_ALWAYS as usize);
        let error = unpacked(&zeros).unwrap_err().to_string();
        assert!(error.contains("expected at most 256 times as many or 16777216"), "{error}");
    }
}
