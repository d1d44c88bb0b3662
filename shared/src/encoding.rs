//! Values as bytes.
//!
//! What travels between processes is bincode with integers of one to nine bytes ([`encode`], [`decode`]); the bodies of sealed files have integers
//! of fixed size ([`crate::sealed`]).
//!
//! Law: whatever lengths some bytes declare, decoding them takes memory of at most a small multiple of their number, or a mebibyte.

use std::io::Write;

use bincode::config::{legacy, standard};
use bincode::serde::{decode_from_slice, encode_into_std_write};
use serde::Serialize;
use serde::de::DeserializeOwned;

/// Why bytes are not a value.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum DecodeError {
    /// They end too early, or hold what no such value has.
    #[error("{0}")]
    Malformed(String),
    /// More bytes than the value has.
    #[error("{0} bytes left over")]
    LeftOver(usize),
}

/// The bytes of a value.
pub fn encode(value: &impl Serialize) -> Vec<u8> {
    let mut bytes = Vec::new();
    encode_into(value, &mut bytes);
    bytes
}

/// Writes the bytes of a value to a writer that takes all of them.
pub(crate) fn encode_into(value: &impl Serialize, to: &mut impl Write) {
    encode_into_std_write(value, to, standard())
        .expect("the writer takes all bytes, and the types here serialise");
}

/// Decodes with the smallest of these limits that `$size` is within. A limit is part of the type of a configuration.
macro_rules! decode_limited {
    ($bytes:expr, $size:expr, $config:expr) => {{
        const MIB: usize = 1 << 20;
        let (bytes, config): (&[u8], _) = ($bytes, $config);
        let decoded = match usize::div_ceil($size, MIB) {
            0..=1 => decode_from_slice(bytes, config.with_limit::<MIB>()),
            2..=16 => decode_from_slice(bytes, config.with_limit::<{ 16 * MIB }>()),
            17..=256 => decode_from_slice(bytes, config.with_limit::<{ 256 * MIB }>()),
            257..=4096 => decode_from_slice(bytes, config.with_limit::<{ 4096 * MIB }>()),
            _ => decode_from_slice(bytes, config.with_limit::<{ 65536 * MIB }>()),
        };
        let (value, read) = decoded.map_err(|error| DecodeError::Malformed(error.to_string()))?;
        if read == bytes.len() { Ok(value) } else { Err(DecodeError::LeftOver(bytes.len() - read)) }
    }};
}

/// The value that [`encode`] has turned into these bytes.
///
/// # Errors
///
/// [`DecodeError`] if they are not the bytes of one value.
pub fn decode<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, DecodeError> {
    // An integer counts as its full size, of up to eight bytes.
    decode_limited!(bytes, bytes.len().saturating_mul(8), standard())
}

/// The value of the body of a sealed file.
///
/// # Errors
///
/// [`DecodeError`] if they are not the bytes of one value.
pub(crate) fn decode_fixed<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, DecodeError> {
    decode_limited!(bytes, bytes.len(), legacy())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_return_and_declared_lengths_are_not_believed() {
        let value = (vec![vec![1u32, 300], vec![]], "text".to_owned(), vec![(-3i64, 0.5f64); 40]);
        let bytes = encode(&value);
        assert_eq!(decode(&bytes), Ok(value));
        let longer = [&bytes[..], &[0]].concat();
        type Value = (Vec<Vec<u32>>, String, Vec<(i64, f64)>);
        assert_eq!(decode::<Value>(&longer), Err(DecodeError::LeftOver(1)));
        for end in 0..bytes.len() {
            assert!(matches!(decode::<Value>(&bytes[..end]), Err(DecodeError::Malformed(_))), "{end}");
        }
        // A string and a list of 2^40 elements.
        let announced = encode(&(1u64 << 40));
        assert!(decode::<String>(&announced).is_err() && decode::<Vec<u64>>(&announced).is_err());
    }
}
