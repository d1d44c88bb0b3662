//! Payloads in pieces: a whole payload has the declared size and checksum, and memory use never exceeds the bytes that
//! arrived.

use prost::Message;
use prost::bytes::Bytes;
use proto::payload::{Assembly, MAX_PAYLOAD, Progress, extent, pieces};
use proto::v1::{Extent, Piece};

use crate::parts;

/// Input: a head, the lengths of the pieces, and the bytes. An empty head stands for the correct one.
pub fn run(data: &[u8]) {
    let [head, cuts, bytes] = parts::split(data);
    let declared = if head.is_empty() { Some(extent(bytes)) } else { Extent::decode(head).ok() };
    let mut progress = Assembly::begin(declared.clone(), MAX_PAYLOAD);
    let mut rest = bytes;
    for &cut in cuts.iter().chain(std::iter::repeat(&255)) {
        let Ok(Progress::Partial(assembly)) = progress else { break };
        if rest.is_empty() && cut != 0 {
            return; // the peer has disconnected
        }
        let (piece, after) = rest.split_at(usize::from(cut).min(rest.len()));
        rest = after;
        progress = assembly.push(&Piece { data: Bytes::copy_from_slice(piece) });
    }
    if let Ok(Progress::Whole(whole)) = progress {
        assert_eq!(Some(extent(&whole)), declared);
        assert_eq!(whole, bytes[..bytes.len() - rest.len()]);
        assert!(pieces(whole.clone()).flat_map(|piece| piece.data).eq(whole));
    }
}

/// Whole payloads in one and in many pieces, and one that declares more than the limit.
pub fn seeds() -> Vec<Vec<u8>> {
    let bytes: Vec<u8> = (0..=255).collect();
    let head = extent(&bytes).encode_to_vec();
    let huge = Extent { size: u64::MAX, ..extent(&bytes) }.encode_to_vec();
    vec![
        parts::join(&[&[], &[1, 2, 3], &bytes]),
        parts::join(&[&head, &[], &bytes]),
        parts::join(&[&huge, &[9], &bytes]),
        parts::join(&[&[], &[], &[]]),
    ]
}
