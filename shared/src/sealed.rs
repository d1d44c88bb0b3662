//! The envelope of files that are read back: model files and checkpoints.
//!
//! A sealed file is a magic, the format's version (u32), the length of the body (u64), the body, and the BLAKE3 hash of
//! everything before it; integers are little-endian. Opening it returns the body as it was written, or a [`Defect`]. A checksum
//! detects damage, not malice: [`decode`] accepts any body, with memory in proportion to it.

use serde::de::DeserializeOwned;

use crate::encoding::decode_fixed;

/// Magic and versions of a kind of file.
#[derive(Clone, Copy, Debug)]
pub struct Seal {
    /// First bytes of the file.
    pub magic: [u8; 8],
    /// Oldest version that can be read.
    pub oldest: u32,
    /// Version that is written, and the latest that can be read.
    pub version: u32,
}

/// Bytes before the body.
pub const HEADER: usize = 8 + 4 + 8;
/// Bytes after the body.
const HASH: usize = blake3::OUT_LEN;

/// Defect of a sealed file.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum Defect {
    /// The file is of another kind.
    #[error("another kind of file")]
    Foreign,
    /// The file ends too early.
    #[error("cut short, found {found} bytes of {expected}")]
    Truncated {
        /// Size in bytes.
        found: u64,
        /// Expected size in bytes.
        expected: u64,
    },
    /// The bytes differ from those that were written.
    #[error("damaged ({what})")]
    Corrupt {
        /// The check that failed.
        what: String,
    },
    /// The format is older than this build reads.
    #[error("format {found} is older than this build reads ({known})")]
    Older {
        /// Version of the file.
        found: u32,
        /// Oldest known version.
        known: u32,
    },
    /// The format is newer than this build reads.
    #[error("format {found} is newer than this build reads ({known})")]
    Newer {
        /// Version of the file.
        found: u32,
        /// Latest known version.
        known: u32,
    },
}

impl Defect {
    /// A [`Defect::Corrupt`], with the check that failed.
    pub fn corrupt(what: impl ToString) -> Defect {
        Defect::Corrupt { what: what.to_string() }
    }
}

impl Seal {
    /// Wraps `body` in its envelope.
    pub fn close(&self, body: &[u8]) -> Vec<u8> {
        self.around(|bytes| bytes.extend(body))
    }

    /// The envelope of the body that `write` puts behind what is there, so that a large body is in memory once.
    pub fn around(&self, write: impl FnOnce(&mut Vec<u8>)) -> Vec<u8> {
        let mut bytes = Vec::new();
        bytes.extend(self.magic);
        bytes.extend(self.version.to_le_bytes());
        let length = bytes.len();
        bytes.extend([0; 8]);
        write(&mut bytes);
        let body = (bytes.len() - HEADER) as u64;
        bytes[length..HEADER].copy_from_slice(&body.to_le_bytes());
        bytes.extend(blake3::hash(&bytes).as_bytes());
        bytes
    }

    /// Checks the envelope; returns version and body.
    pub fn open<'a>(&self, bytes: &'a [u8]) -> Result<(u32, &'a [u8]), Defect> {
        if !bytes.starts_with(&self.magic[..bytes.len().min(8)]) || bytes.is_empty() {
            return Err(Defect::Foreign);
        }
        let truncated = |expected: u64| Defect::Truncated { found: bytes.len() as u64, expected };
        let Some((header, rest)) = bytes.split_at_checked(HEADER) else {
            return Err(truncated((HEADER + HASH) as u64));
        };
        let version = u32::from_le_bytes(header[8..12].try_into().expect("four bytes"));
        if version > self.version {
            return Err(Defect::Newer { found: version, known: self.version });
        }
        if version < self.oldest {
            return Err(Defect::Older { found: version, known: self.oldest });
        }
        let length = u64::from_le_bytes(header[12..20].try_into().expect("eight bytes"));
        let expected = length.saturating_add((HEADER + HASH) as u64);
        if (bytes.len() as u64) < expected {
            return Err(truncated(expected));
        }
        if bytes.len() as u64 > expected {
            return Err(Defect::corrupt(format!("{} bytes too many", bytes.len() as u64 - expected)));
        }
        let (body, hash) = rest.split_at(length as usize);
        if blake3::hash(&bytes[..HEADER + body.len()]).as_bytes() != hash {
            return Err(Defect::corrupt("its checksum does not fit"));
        }
        Ok((version, body))
    }
}

/// Decodes a whole body. Whatever lengths it declares, memory is at most a small multiple of its bytes.
pub fn decode<T: DeserializeOwned>(body: &[u8]) -> Result<T, Defect> {
    decode_fixed(body).map_err(Defect::corrupt)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SEAL: Seal = Seal { magic: *b"GRMTNTST", oldest: 1, version: 2 };

    #[test]
    fn sealed_bytes_open() {
        for body in [&b""[..], b"body"] {
            assert_eq!(SEAL.open(&SEAL.close(body)), Ok((2, body)));
        }
        let older = Seal { version: 1, ..SEAL };
        assert_eq!(SEAL.open(&older.close(b"body")), Ok((1, &b"body"[..])));
        let strict = Seal { oldest: 2, ..SEAL };
        assert_eq!(strict.open(&older.close(b"body")), Err(Defect::Older { found: 1, known: 2 }));
        assert_eq!(older.open(&SEAL.close(b"body")), Err(Defect::Newer { found: 2, known: 1 }));
    }

    #[test]
    fn every_cut_flip_and_addition_is_noticed() {
        let bytes = SEAL.close(b"body");
        for length in 0..bytes.len() {
            SEAL.open(&bytes[..length]).unwrap_err();
        }
        for at in 0..bytes.len() {
            let mut bytes = bytes.clone();
            bytes[at] ^= 0x40;
            SEAL.open(&bytes).unwrap_err();
        }
        let mut longer = bytes.clone();
        longer.push(0);
        assert_eq!(SEAL.open(&longer), Err(Defect::corrupt("1 bytes too many")));
        assert_eq!(SEAL.open(b"PK\x03\x04"), Err(Defect::Foreign));
    }

    #[test]
    fn a_false_length_allocates_no_memory() {
        let claim = (1u64 << 40).to_le_bytes();
        for body in [&claim[..], &[&claim[..], &[b'a'; 99]].concat()] {
            assert!(matches!(decode::<String>(body), Err(Defect::Corrupt { .. })));
            assert!(matches!(decode::<Vec<u64>>(body), Err(Defect::Corrupt { .. })));
        }
        assert_eq!(decode::<u8>(&[7]), Ok(7));
        assert_eq!(decode::<u8>(&[7, 7]), Err(Defect::corrupt("1 bytes left over")));
    }
}
