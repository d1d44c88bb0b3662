//! Payloads: values with a declared size and checksum; small ones in the head that declares them, others in pieces after it.
//!
//! In: a head with the payload's [`v1::Extent`] from a peer, and pieces in order. Out: the whole payload, or a
//! typed error. Invariants: memory use never exceeds the bytes received, nor the limit that the receiver sets; the
//! payload has the declared size and checksum. [`crate::blob`] and [`crate::lease`] decode the content.

use prost::bytes::Bytes;

use crate::v1;

/// Bytes of a full piece.
pub const PIECE: usize = 1 << 20;

/// Largest payload that is sent in its head, and decoded on the thread that received it, which takes a fraction of a millisecond.
pub const SMALL: usize = 64 << 10;

/// Largest payload that is accepted from a peer: 1 GiB.
pub const MAX_PAYLOAD: u64 = 1 << 30;

/// Why a payload is refused.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum PayloadError {
    /// The head declares no extent.
    #[error("a payload's head declares no extent")]
    NoExtent,
    /// The declared size is above the receiver's limit.
    #[error("payload of {found} bytes, expected at most {expected}")]
    TooLarge {
        /// Bytes declared.
        found: u64,
        /// The receiver's limit in bytes.
        expected: u64,
    },
    /// The declared checksum has the wrong length.
    #[error("checksum of {found} bytes, expected {}", blake3::OUT_LEN)]
    ChecksumLength {
        /// Bytes of the checksum.
        found: usize,
    },
    /// A piece is empty or larger than [`PIECE`].
    #[error("piece of {found} bytes, expected 1 to {PIECE}")]
    PieceLength {
        /// Bytes of the piece.
        found: usize,
    },
    /// More bytes arrived than were declared.
    #[error("payload grew to {found} bytes, expected {expected} as declared")]
    Overrun {
        /// Bytes declared.
        expected: u64,
        /// Bytes arrived.
        found: u64,
    },
    /// The bytes do not match the declared checksum.
    #[error("payload of {size} bytes does not match its checksum; the connection or the peer is broken")]
    Checksum {
        /// Bytes of the payload.
        size: u64,
    },
}

/// The extent to declare before `payload`, with all of it if it is small.
pub fn extent(payload: &Bytes) -> v1::Extent {
    v1::Extent {
        size: payload.len() as u64,
        checksum: Bytes::copy_from_slice(blake3::hash(payload).as_bytes()),
        whole: if payload.len() <= SMALL { payload.clone() } else { Bytes::new() },
    }
}

/// Cuts `payload` into pieces that share its memory, none of which is empty; a small payload has none.
pub fn pieces(payload: Bytes) -> impl Iterator<Item = v1::Piece> {
    let length = if payload.len() <= SMALL { 0 } else { payload.len() };
    (0..length).step_by(PIECE).map(move |start| {
        let end = payload.len().min(start + PIECE);
        v1::Piece { data: payload.slice(start..end) }
    })
}

/// A payload of which some pieces have not arrived.
#[derive(Debug)]
pub struct Assembly {
    /// Declared bytes; more than have arrived.
    size: u64,
    checksum: blake3::Hash,
    arrived: Vec<u8>,
}

/// State of a payload after its head or a piece.
#[derive(Debug)]
pub enum Progress {
    /// Some pieces have not arrived.
    Partial(Assembly),
    /// The whole payload, verified.
    Whole(Bytes),
}

impl Assembly {
    /// Starts to receive a payload of the declared extent, at most `largest` and [`MAX_PAYLOAD`] bytes. A small payload is complete at
    /// once.
    pub fn begin(extent: Option<v1::Extent>, largest: u64) -> Result<Progress, PayloadError> {
        let v1::Extent { size, checksum, whole } = extent.ok_or(PayloadError::NoExtent)?;
        let expected = largest.min(MAX_PAYLOAD);
        if size > expected {
            return Err(PayloadError::TooLarge { found: size, expected });
        }
        let checksum: [u8; blake3::OUT_LEN] =
            checksum[..].try_into().map_err(|_| PayloadError::ChecksumLength { found: checksum.len() })?;
        if whole.len() > SMALL {
            return Err(PayloadError::TooLarge { found: whole.len() as u64, expected: SMALL as u64 });
        }
        if whole.len() as u64 > size {
            return Err(PayloadError::Overrun { expected: size, found: whole.len() as u64 });
        }
        Assembly { size, checksum: blake3::Hash::from(checksum), arrived: whole.into() }.check()
    }

    /// Adds the next piece.
    pub fn push(mut self, piece: &v1::Piece) -> Result<Progress, PayloadError> {
        let length = piece.data.len();
        if length == 0 || length > PIECE {
            return Err(PayloadError::PieceLength { found: length });
        }
        let found = self.arrived.len() as u64 + length as u64;
        if found > self.size {
            return Err(PayloadError::Overrun { expected: self.size, found });
        }
        self.arrived.extend_from_slice(&piece.data);
        self.check()
    }

    fn check(self) -> Result<Progress, PayloadError> {
        if (self.arrived.len() as u64) < self.size {
            return Ok(Progress::Partial(self));
        }
        if blake3::hash(&self.arrived) != self.checksum {
            return Err(PayloadError::Checksum { size: self.size });
        }
        Ok(Progress::Whole(self.arrived.into()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn assemble(extent: v1::Extent, pieces: impl Iterator<Item = v1::Piece>) -> Result<Bytes, PayloadError> {
        let mut progress = Assembly::begin(Some(extent), MAX_PAYLOAD)?;
        for piece in pieces {
            match progress {
                Progress::Partial(assembly) => progress = assembly.push(&piece)?,
                Progress::Whole(_) => panic!("a piece after the last one"),
            }
        }
        match progress {
            Progress::Whole(bytes) => Ok(bytes),
            Progress::Partial(_) => panic!("pieces are missing"),
        }
    }

    #[test]
    fn pieces_assemble_to_the_whole() {
        for size in [0, 1, SMALL, SMALL + 1, PIECE - 1, PIECE, PIECE + 1, 3 * PIECE] {
            let whole: Bytes = (0..size).map(|at| (at % 251) as u8).collect::<Vec<_>>().into();
            let n_pieces = if size <= SMALL { 0 } else { size.div_ceil(PIECE) };
            assert_eq!(pieces(whole.clone()).count(), n_pieces);
            assert_eq!(assemble(extent(&whole), pieces(whole.clone())).unwrap(), whole);
        }
    }

    #[test]
    fn a_declared_size_beyond_the_limit_is_refused_before_any_piece() {
        for (largest, expected) in [(80, 80), (u64::MAX, MAX_PAYLOAD)] {
            let huge = v1::Extent { size: expected + 1, ..extent(&Bytes::new()) };
            let error = Assembly::begin(Some(huge), largest).unwrap_err();
            assert_eq!(error, PayloadError::TooLarge { found: expected + 1, expected });
        }
    }

    #[test]
    fn other_bytes_than_declared_are_refused() {
        let abc = extent(&Bytes::from_static(b"abc"));
        let refusal = |extent: v1::Extent, pieces: &[&'static [u8]]| {
            let pieces = pieces.iter().map(|&data| v1::Piece { data: Bytes::from_static(data) });
            assemble(extent, pieces).unwrap_err()
        };
        let changed = v1::Extent { whole: Bytes::from_static(b"abd"), ..abc.clone() };
        assert_eq!(refusal(changed, &[]), PayloadError::Checksum { size: 3 });
        let longer = v1::Extent { whole: Bytes::from_static(b"abcd"), ..abc.clone() };
        assert_eq!(refusal(longer, &[]), PayloadError::Overrun { expected: 3, found: 4 });

        let in_pieces = v1::Extent { whole: Bytes::new(), ..abc };
        assert_eq!(refusal(in_pieces.clone(), &[b"abd"]), PayloadError::Checksum { size: 3 });
        assert_eq!(
            refusal(in_pieces.clone(), &[b"ab", b"cd"]),
            PayloadError::Overrun { expected: 3, found: 4 }
        );
        assert_eq!(refusal(in_pieces, &[b""]), PayloadError::PieceLength { found: 0 });
    }
}
