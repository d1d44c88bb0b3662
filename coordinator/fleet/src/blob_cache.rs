//! The blob cache of a remote member: the blobs that it has, and those that it may drop.
//!
//! The coordinator alone decides which blobs are cached, within the bytes that the worker offered, so both sides always agree and no blob
//! is sent twice. A shard state is also cached without being sent: the member that computed it reports that it keeps it.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use grammaton::work::lease::BatchId;
use grammaton::work::task::ContentHash;

/// Number of batches whose own blobs are kept: what a round was computed with is of no use in the next one, but a worker may serve several
/// jobs in turn.
pub(super) const BATCHES: usize = 4;

/// Blobs that a member has.
pub(super) struct BlobCache {
    capacity: u64,
    total: u64,
    held: BTreeMap<ContentHash, Held>,
    /// All blobs in the order of eviction. Each lease asks for the first ones, and a member may hold thousands.
    order: BTreeSet<(EvictionKey, ContentHash)>,
    /// Number of uses so far.
    uses: u64,
    /// The latest batches of leases, with the blobs that no other batch needs.
    batches: VecDeque<(BatchId, Vec<ContentHash>)>,
    /// Number of assigned leases whose answers may still report a kept blob.
    assigned: u64,
}

struct Held {
    size: u64,
    key: EvictionKey,
}

/// Sort key of eviction.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct EvictionKey {
    /// Whether no newer blob replaces it, and its batch is not long over.
    is_current: bool,
    last_use: u64,
}

impl BlobCache {
    /// The cache of a member that keeps up to `capacity` bytes and holds the blobs `held`.
    pub fn new(capacity: u64, held: impl IntoIterator<Item = (ContentHash, u64)>) -> BlobCache {
        let mut blob_cache = BlobCache {
            capacity,
            total: 0,
            held: BTreeMap::new(),
            order: BTreeSet::new(),
            uses: 0,
            batches: VecDeque::new(),
            assigned: 0,
        };
        for (hash, size) in held {
            blob_cache.insert(hash, size, None);
        }
        blob_cache
    }

    /// Records a use of the blob. Returns whether the member has it.
    pub fn touch(&mut self, hash: ContentHash) -> bool {
        self.uses += 1;
        self.stand(hash, EvictionKey { is_current: true, last_use: self.uses })
    }

    /// Records that the member is assigned a task.
    pub fn assign(&mut self) {
        self.assigned += 1;
    }

    /// Records that the member keeps a blob that it made, in place of the one that it was assigned. Returns whether that is allowed: once
    /// for each lease.
    pub fn keep(&mut self, before: Option<ContentHash>, hash: ContentHash, size: u64) -> bool {
        let Some(assigned) = self.assigned.checked_sub(1) else { return false };
        self.assigned = assigned;
        if let Some(before) = before {
            self.replace(before);
        }
        self.insert(hash, size, None);
        true
    }

    /// Adds a blob that the member has from now on, and that only tasks of `batch` need, if it is of one.
    pub fn insert(&mut self, hash: ContentHash, size: u64, batch: Option<BatchId>) {
        self.remove(hash);
        self.uses += 1;
        // Sizes are what a peer says of itself: they must not overflow.
        self.total = self.total.saturating_add(size);
        let key = EvictionKey { is_current: true, last_use: self.uses };
        self.held.insert(hash, Held { size, key });
        self.order.insert((key, hash));
        let Some(batch) = batch else { return };
        match self.batches.iter_mut().find(|(known, _)| *known == batch) {
            Some((_, blobs)) => blobs.push(hash),
            None => self.batches.push_back((batch, vec![hash])),
        }
        if self.batches.len() > BATCHES
            && let Some((_, over)) = self.batches.pop_front()
        {
            over.into_iter().for_each(|hash| self.replace(hash));
        }
    }

    /// Removes and returns the replaced blobs, and the least recently used blobs beyond the capacity; never the blobs in `needed`.
    pub fn release(&mut self, needed: &[ContentHash]) -> Vec<ContentHash> {
        let mut released = Vec::new();
        loop {
            let mut spare = self.order.iter().filter(|(_, hash)| !needed.contains(hash));
            let Some(&(key, hash)) = spare.next() else { return released };
            if key.is_current && self.total <= self.capacity {
                return released;
            }
            self.remove(hash);
            released.push(hash);
        }
    }

    fn remove(&mut self, hash: ContentHash) {
        if let Some(Held { size, key }) = self.held.remove(&hash) {
            self.order.remove(&(key, hash));
            self.total = self.total.saturating_sub(size);
        }
    }

    /// Records that a blob is of no more use.
    fn replace(&mut self, hash: ContentHash) {
        if let Some(held) = self.held.get(&hash) {
            let key = EvictionKey { is_current: false, ..held.key };
            self.stand(hash, key);
        }
    }

    /// Changes the sort key of a blob. Returns whether the member has it.
    fn stand(&mut self, hash: ContentHash, key: EvictionKey) -> bool {
        let Some(held) = self.held.get_mut(&hash) else { return false };
        self.order.remove(&(held.key, hash));
        held.key = key;
        self.order.insert((key, hash));
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hash(name: u8) -> ContentHash {
        ContentHash([name; 32])
    }

    #[test]
    fn the_least_recently_used_is_released_but_never_what_is_needed() {
        let mut blob_cache = BlobCache::new(10, [(hash(1), 4), (hash(2), 4)]);
        assert!(blob_cache.touch(hash(1)) && !blob_cache.touch(hash(3)));
        blob_cache.insert(hash(3), 4, None);
        assert_eq!(blob_cache.release(&[hash(3)]), [hash(2)]);
        blob_cache.insert(hash(4), 99, None);
        assert_eq!(blob_cache.release(&[hash(1), hash(4)]), [hash(3)]);
        assert!(blob_cache.touch(hash(1)) && blob_cache.touch(hash(4)) && !blob_cache.touch(hash(3)));
    }

    #[test]
    fn a_kept_state_replaces_the_assigned_one() {
        let mut blob_cache = BlobCache::new(100, [(hash(1), 4), (hash(2), 4)]);
        blob_cache.assign();
        blob_cache.assign();
        assert!(blob_cache.keep(Some(hash(1)), hash(3), 4));
        assert_eq!(blob_cache.release(&[hash(1)]), [], "it is needed still");
        assert_eq!(blob_cache.release(&[hash(2)]), [hash(1)]);
        assert!(blob_cache.touch(hash(3)) && !blob_cache.touch(hash(1)));
        assert!(blob_cache.keep(Some(hash(3)), hash(3), 4), "it came out as it was");
        assert_eq!(blob_cache.release(&[]), []);
        assert!(!blob_cache.keep(None, hash(4), 4), "for each lease there is one answer");
    }

    /// Law: however many rounds of some jobs there are, a member keeps what the latest of them are computed with, and nothing of those before.
    #[test]
    fn what_a_round_was_computed_with_is_released_some_rounds_later() {
        let mut blob_cache = BlobCache::new(1000, [(hash(200), 4)]);
        for batch in 0..30u8 {
            let own = [hash(2 * batch), hash(2 * batch + 1)];
            own.iter().for_each(|&own| blob_cache.insert(own, 4, Some(BatchId(batch.into()))));
            let over = batch.checked_sub(BATCHES as u8).map(|over| [hash(2 * over), hash(2 * over + 1)]);
            assert_eq!(blob_cache.release(&own), over.into_iter().flatten().collect::<Vec<_>>());
            let kept = BATCHES.min(usize::from(batch) + 1);
            assert_eq!((blob_cache.total, blob_cache.batches.len()), (4 + 8 * kept as u64, kept));
        }
        assert!(blob_cache.touch(hash(200)) && blob_cache.touch(hash(58)) && !blob_cache.touch(hash(51)));
    }

    #[test]
    fn blobs_in_use_are_not_released() {
        let mut blob_cache = BlobCache::new(100, [(hash(1), 4)]);
        blob_cache.assign();
        assert!(blob_cache.keep(Some(hash(1)), hash(2), 4) && blob_cache.touch(hash(1)));
        assert_eq!(blob_cache.release(&[]), []);
    }

    #[test]
    fn a_repeated_blob_counts_once() {
        let mut blob_cache = BlobCache::new(10, [(hash(1), 6), (hash(1), 6)]);
        assert_eq!(blob_cache.release(&[]), []);
    }
}
