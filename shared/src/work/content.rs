//! Values named by their content.

use std::io::{self, BufWriter, Write};
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::stop;

/// Hash of the content of a [`Named`] value (BLAKE3 of its bincode form).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub struct ContentHash(pub [u8; 32]);

/// An immutable value and the hash of its content, by which it is cached and asked for.
#[derive(Clone, Debug)]
pub struct Named<T> {
    /// Hash of `value`.
    pub hash: ContentHash,
    /// The value.
    pub value: Arc<T>,
}

/// Bytes: enough for all lanes of the hash.
const HASHED_AT_ONCE: usize = 64 << 10;

impl<T: Serialize> Named<T> {
    /// Names `value` by its content.
    pub fn new(value: T) -> Named<T> {
        // By itself the hasher would take number by number.
        let mut hasher = BufWriter::with_capacity(HASHED_AT_ONCE, Checked(blake3::Hasher::new()));
        bincode::serde::encode_into_std_write(&value, &mut hasher, bincode::config::legacy())
            .expect("a hasher takes all bytes, and the types named here serialise");
        let hasher = hasher.into_inner().expect("a hasher takes all bytes");
        Named { hash: ContentHash(*hasher.0.finalize().as_bytes()), value: Arc::new(value) }
    }
}

/// A hasher that checks whether its task was stopped.
#[derive(Debug)]
struct Checked(blake3::Hasher);

impl Write for Checked {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        stop::check();
        self.0.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}
