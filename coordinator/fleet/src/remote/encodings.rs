//! Encoded blobs that all members need, encoded once.

use std::collections::VecDeque;
use std::sync::{Arc, OnceLock};

use grammaton::work::lease::BatchId;
use grammaton::work::task::ContentHash;
use parking_lot::Mutex;
use prost::bytes::Bytes;
use proto::blob::Blob;

use crate::blob_cache::BATCHES;

/// Cache of encoded blobs that all members need, so that a thousand members cost one encoding; the most recently used is last.
///
/// It is bounded by bytes, as number and size of the blobs depend on the job, and has nothing of batches that are over.
#[derive(Default)]
pub struct Encodings(Mutex<VecDeque<Kept>>);

struct Kept {
    hash: ContentHash,
    /// The latest batch that needed it, if it is of no use to later ones.
    batch: Option<BatchId>,
    encoding: Arc<OnceLock<Bytes>>,
}

impl Encodings {
    /// Maximum size in bytes; a larger encoding is kept alone.
    const ROOM: usize = 512 << 20;

    /// Minimum size that an encoding counts as, which bounds their number.
    const LEAST: usize = 4 << 20;

    /// The encoding of a blob, which only tasks of `batch` need if it is of one.
    pub fn of(&self, blob: &Blob, batch: Option<BatchId>) -> Bytes {
        if matches!(blob, Blob::Shard(_) | Blob::ShardState(_)) {
            return blob.to_bytes(); // mostly for one member only
        }
        let encoding = self.find(blob.hash(), batch);
        // A second task that needs the encoding waits for the first one; others do not.
        let bytes = encoding.get_or_init(|| blob.to_bytes()).clone();
        self.make_room();
        bytes
    }

    fn find(&self, hash: ContentHash, batch: Option<BatchId>) -> Arc<OnceLock<Bytes>> {
        let mut kept = self.0.lock();
        let at = kept.iter().position(|known| known.hash == hash);
        let known = at.and_then(|at| kept.remove(at));
        let encoding = known.map(|known| known.encoding).unwrap_or_default();
        kept.push_back(Kept { hash, batch, encoding: encoding.clone() });
        if let Some(batch) = batch {
            let is_over = |of: BatchId| of.0.saturating_add(BATCHES as u64) <= batch.0;
            kept.retain(|known| !known.batch.is_some_and(is_over));
        }
        encoding
    }

    fn make_room(&self) {
        let mut kept = self.0.lock();
        let size = |encoding: &OnceLock<Bytes>| encoding.get().map_or(0, Bytes::len).max(Self::LEAST);
        while kept.len() > 1 && kept.iter().map(|known| size(&known.encoding)).sum::<usize>() > Self::ROOM {
            kept.pop_front();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use grammaton::grammar::lexicon::Lexicon;
    use grammaton::num::Wide;
    use grammaton::work::task::Named;

    use super::*;

    /// Law: however many rounds there are, what the latest of them and all together are computed with is encoded once, and what earlier ones were
    /// computed with takes no memory.
    #[test]
    fn nothing_is_kept_of_batches_that_are_over() {
        let encodings = Encodings::default();
        let lexicon = Blob::Lexicon(Named::new(Lexicon::default()));
        let weights = |round: u64| {
            Blob::Weights(Named::new([Wide::from_f64(1.0 + round as f64)].into_iter().collect()))
        };
        let address = |blob: &Blob, batch| {
            let batch = blob.is_of_batch().then_some(BatchId(batch));
            encodings.of(blob, batch).as_ptr() as usize
        };
        let of_lexicon: BTreeSet<usize> = (0..50)
            .map(|round| {
                assert_eq!(address(&weights(round), round), address(&weights(round), round));
                assert!(encodings.0.lock().len() <= BATCHES + 1);
                address(&lexicon, round)
            })
            .collect();
        assert_eq!(of_lexicon.len(), 1);
    }
}
