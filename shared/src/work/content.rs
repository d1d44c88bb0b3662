//! Values named by their content.

use std::io::{self, BufWriter, Write};
use std::sync::Arc;

use serde::{Deserialize, Serialize, Serializer};

use crate::encoding::encode_into;
use crate::stop;

/// Hash of the content of a [`Named`] value: BLAKE3 of its bytes ([`encode`](crate::encoding::encode)).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub struct ContentHash(pub [u8; 32]);

impl ContentHash {
    /// The hash of the value of these bytes.
    pub fn of(bytes: &[u8]) -> ContentHash {
        ContentHash(*blake3::hash(bytes).as_bytes())
    }
}

/// An immutable value and the hash of its content, by which it is cached and asked for. In a message, the hash stands for it.
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
        encode_into(&value, &mut hasher);
        let hasher = hasher.into_inner().expect("a hasher takes all bytes");
        Named { hash: ContentHash(*hasher.0.finalize().as_bytes()), value: Arc::new(value) }
    }
}

impl<T> Serialize for Named<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.hash.serialize(serializer)
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
