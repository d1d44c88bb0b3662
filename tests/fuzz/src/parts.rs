//! Several inputs in one: each but the last has its length before it, in two bytes, little-endian.

/// Splits bytes into `N` parts, which may be truncated at the end.
pub fn split<const N: usize>(mut bytes: &[u8]) -> [&[u8]; N] {
    let mut parts = [&[][..]; N];
    for (at, part) in parts.iter_mut().enumerate() {
        let length = match bytes.split_first_chunk::<2>() {
            _ if at + 1 == N => bytes.len(),
            Some((length, rest)) => {
                bytes = rest;
                usize::from(u16::from_le_bytes(*length)).min(bytes.len())
            }
            None => bytes.len(),
        };
        (*part, bytes) = bytes.split_at(length);
    }
    parts
}

/// Joins parts for [`split`]; no part but the last may be longer than 65,535 bytes.
pub fn join(parts: &[&[u8]]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for (at, part) in parts.iter().enumerate() {
        if at + 1 < parts.len() {
            bytes.extend(u16::try_from(part.len()).expect("seeds are small").to_le_bytes());
        }
        bytes.extend(*part);
    }
    bytes
}
