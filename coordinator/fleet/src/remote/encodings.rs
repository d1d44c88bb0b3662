//! Encoded blobs that all members need, encoded once.

use std::collections::VecDeque;
use std::sync::{Arc, OnceLock};

use grammaton::work::task::ContentHash;
use parking_lot::{Mutex, MutexGuard};
use prost::bytes::Bytes;
use proto::blob::Blob;

/// Cache of encoded blobs that all members need, so that a thousand members cost one encoding; the most recently used is last.
///
/// It is bounded by bytes, as number and size of the blobs depend on the job.
#[derive(Default)]
pub struct Encodings(Mutex<Kept>);

type Kept = VecDeque<(ContentHash, Arc<OnceLock<Bytes>>)>;

impl Encodings {
    /// Maximum size in bytes; a larger encoding is kept alone.
    const ROOM: usize = 512 << 20;

    /// Minimum size that an encoding counts as, which bounds their number.
    const LEAST: usize = 4 << 20;

    /// The encoding of a blob.
    pub fn of(&self, blob: &Blob) -> Bytes {
        if matches!(blob, Blob::Shard(_) | Blob::ShardState(_)) {
            return blob.to_bytes(); // mostly for one member only
        }
        let encoding = self.find(blob.hash());
        // A second task that needs the encoding waits for the first one; others do not.
        let bytes = encoding.get_or_init(|| blob.to_bytes()).clone();
        self.make_room();
        bytes
    }

    fn find(&self, hash: ContentHash) -> Arc<OnceLock<Bytes>> {
        let mut kept = self.kept();
        let at = kept.iter().position(|(known, _)| *known == hash);
        let (_, encoding) = at.and_then(|at| kept.remove(at)).unwrap_or((hash, Arc::default()));
        kept.push_back((hash, encoding.clone()));
        encoding
    }

    fn make_room(&self) {
        let mut kept = self.kept();
        let size = |encoding: &OnceLock<Bytes>| encoding.get().map_or(0, Bytes::len).max(Self::LEAST);
        while kept.len() > 1 && kept.iter().map(|(_, encoding)| size(encoding)).sum::<usize>() > Self::ROOM {
            kept.pop_front();
        }
    }

    fn kept(&self) -> MutexGuard<'_, Kept> {
        self.0.lock()
    }
}
