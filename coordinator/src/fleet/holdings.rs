//! What a remote member keeps: which blobs it has, and which it need not keep any more.
//!
//! The coordinator alone decides what is kept, within the bytes that the worker offered, so both sides always
//! agree and no blob is asked for twice.

use std::collections::BTreeMap;

use shared::task::ContentHash;

/// Blobs that a member has.
pub(super) struct Holdings {
    capacity: u64,
    total: u64,
    held: BTreeMap<ContentHash, Held>,
    /// Number of uses so far.
    uses: u64,
}

struct Held {
    size: u64,
    last_use: u64,
}

impl Holdings {
    /// A member that keeps up to `capacity` bytes and has `held` already.
    pub fn new(capacity: u64, held: impl IntoIterator<Item = (ContentHash, u64)>) -> Holdings {
        let mut holdings = Holdings { capacity, total: 0, held: BTreeMap::new(), uses: 0 };
        for (hash, size) in held {
            holdings.insert(hash, size);
        }
        holdings
    }

    /// Notes a use of the blob; whether the member has it.
    pub fn touch(&mut self, hash: ContentHash) -> bool {
        self.uses += 1;
        let held = self.held.get_mut(&hash);
        held.map(|held| held.last_use = self.uses).is_some()
    }

    /// The member has this blob from now on.
    pub fn insert(&mut self, hash: ContentHash, size: u64) {
        self.uses += 1;
        // Sizes are what a peer says of itself: they must not overflow.
        self.total = self.total.saturating_add(size);
        if let Some(before) = self.held.insert(hash, Held { size, last_use: self.uses }) {
            self.total = self.total.saturating_sub(before.size);
        }
    }

    /// Forgets and returns the blobs least recently used, as many as are beyond the capacity; never those in
    /// `needed`.
    pub fn release(&mut self, needed: &[ContentHash]) -> Vec<ContentHash> {
        let mut released = Vec::new();
        while self.total > self.capacity {
            let spare = self.held.iter().filter(|(hash, _)| !needed.contains(hash));
            let Some((&hash, _)) = spare.min_by_key(|(_, held)| held.last_use) else { break };
            if let Some(held) = self.held.remove(&hash) {
                self.total = self.total.saturating_sub(held.size);
            }
            released.push(hash);
        }
        released
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
        let mut holdings = Holdings::new(10, [(hash(1), 4), (hash(2), 4)]);
        assert!(holdings.touch(hash(1)) && !holdings.touch(hash(3)));
        holdings.insert(hash(3), 4);
        assert_eq!(holdings.release(&[hash(3)]), [hash(2)]);
        holdings.insert(hash(4), 99);
        assert_eq!(holdings.release(&[hash(1), hash(4)]), [hash(3)]);
        assert!(holdings.touch(hash(1)) && holdings.touch(hash(4)) && !holdings.touch(hash(3)));
    }

    #[test]
    fn a_repeated_blob_counts_once() {
        let mut holdings = Holdings::new(10, [(hash(1), 6), (hash(1), 6)]);
        assert_eq!(holdings.release(&[]), []);
    }
}
