//! Payloads in heads and in pieces: a whole payload has the declared size and checksum, and memory use never exceeds the bytes that
//! arrived.

use prost::Message;
use prost::bytes::Bytes;
use proto::payload::{Assembly, MAX_PAYLOAD, Progress, extent, pieces};
use proto::v1::{Extent, Piece};

use crate::parts;

/// Input: a head, the lengths of the pieces, and the bytes. An empty head stands for the correct one.
pub fn run(data: &[u8]) {
    let [head, cuts, bytes] = parts::split(data);
    let in_pieces = |bytes| Extent { whole: Bytes::new(), ..extent(&Bytes::copy_from_slice(bytes)) };
    let declared = if head.is_empty() { Some(in_pieces(bytes)) } else { Extent::decode(head).ok() };
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
        let (again, declared) = (extent(&whole), declared.expect("without an extent nothing is assembled"));
        assert_eq!((again.size, again.checksum), (declared.size, declared.checksum));
        assert!(whole.iter().eq(declared.whole.iter().chain(&bytes[..bytes.len() - rest.len()])));
        assert!(again.whole.into_iter().chain(pieces(whole.clone()).flat_map(|piece| piece.data)).eq(whole));
    }
}

/// Whole payloads in the head, in one piece and in many, and one that declares more than the limit.
pub fn seeds() -> Vec<Vec<u8>> {
    let bytes: Bytes = (0..=255).collect();
    let whole = extent(&bytes);
    let head = Extent { whole: Bytes::new(), ..whole.clone() }.encode_to_vec();
    let huge = Extent { size: u64::MAX, ..whole.clone() }.encode_to_vec();
    let whole = whole.encode_to_vec();
    vec![
        parts::join(&[&[], &[1, 2, 3], &bytes]),
        parts::join(&[&head, &[], &bytes]),
        parts::join(&[&huge, &[9], &bytes]),
        parts::join(&[&whole, &[], &[]]),
        parts::join(&[&[], &[], &[]]),
    ]
}
