//! What a remote member keeps: which blobs it has, and which it need not keep any more.
//!
//! The coordinator alone decides what is kept, within the bytes that the worker offered, so both sides always
//! agree and no blob is asked for twice. What a shard carries comes to be held in another way too: the member that computed it
//! says that it keeps it.

use std::collections::BTreeMap;

use shared::task::ContentHash;

/// Blobs that a member has.
pub(super) struct Holdings {
    capacity: u64,
    total: u64,
    held: BTreeMap<ContentHash, Held>,
    /// Number of uses so far.
    uses: u64,
    /// Leases with whose answers the member may still say that it keeps something.
    lent: u64,
}

struct Held {
    size: u64,
    last_use: u64,
    /// Whether something has taken its place.
    outdated: bool,
}

impl Holdings {
    /// A member that keeps up to `capacity` bytes and has `held` already.
    pub fn new(capacity: u64, held: impl IntoIterator<Item = (ContentHash, u64)>) -> Holdings {
        let mut holdings = Holdings { capacity, total: 0, held: BTreeMap::new(), uses: 0, lent: 0 };
        for (hash, size) in held {
            holdings.insert(hash, size);
        }
        holdings
    }

    /// Notes a use of the blob; whether the member has it.
    pub fn touch(&mut self, hash: ContentHash) -> bool {
        self.uses += 1;
        let held = self.held.get_mut(&hash);
        held.map(|held| (held.last_use, held.outdated) = (self.uses, false)).is_some()
    }

    /// The member is lent a task.
    pub fn lend(&mut self) {
        self.lent += 1;
    }

    /// The member keeps this blob of its own from now on, in the place of the one that it was lent. Whether it may: once for
    /// each lease.
    pub fn keep(&mut self, before: Option<ContentHash>, hash: ContentHash, size: u64) -> bool {
        let Some(lent) = self.lent.checked_sub(1) else { return false };
        self.lent = lent;
        if let Some(held) = before.and_then(|before| self.held.get_mut(&before)) {
            held.outdated = true;
        }
        self.insert(hash, size);
        true
    }

    /// The member has this blob from now on.
    pub fn insert(&mut self, hash: ContentHash, size: u64) {
        self.uses += 1;
        // Sizes are what a peer says of itself: they must not overflow.
        self.total = self.total.saturating_add(size);
        if let Some(before) = self.held.insert(hash, Held { size, last_use: self.uses, outdated: false }) {
            self.total = self.total.saturating_sub(before.size);
        }
    }

    /// Forgets and returns the blobs in whose place there are others, and those least recently used, as many as are beyond the
    /// capacity; never those in `needed`.
    pub fn release(&mut self, needed: &[ContentHash]) -> Vec<ContentHash> {
        let mut released = Vec::new();
        loop {
            let spare = self.held.iter().filter(|(hash, _)| !needed.contains(hash));
            let Some((&hash, held)) = spare.min_by_key(|(_, held)| (!held.outdated, held.last_use)) else {
                return released;
            };
            if !held.outdated && self.total <= self.capacity {
                return released;
            }
            self.total = self.total.saturating_sub(held.size);
            self.held.remove(&hash);
            released.push(hash);
        }
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
    fn what_a_member_keeps_takes_the_place_of_what_it_was_lent() {
        let mut holdings = Holdings::new(100, [(hash(1), 4), (hash(2), 4)]);
        holdings.lend();
        holdings.lend();
        assert!(holdings.keep(Some(hash(1)), hash(3), 4));
        assert_eq!(holdings.release(&[hash(1)]), [], "it is needed still");
        assert_eq!(holdings.release(&[hash(2)]), [hash(1)]);
        assert!(holdings.touch(hash(3)) && !holdings.touch(hash(1)));
        assert!(holdings.keep(Some(hash(3)), hash(3), 4), "it came out as it was");
        assert_eq!(holdings.release(&[]), []);
        assert!(!holdings.keep(None, hash(4), 4), "for each lease there is one answer");
    }

    #[test]
    fn what_is_used_again_is_not_released() {
        let mut holdings = Holdings::new(100, [(hash(1), 4)]);
        holdings.lend();
        assert!(holdings.keep(Some(hash(1)), hash(2), 4) && holdings.touch(hash(1)));
        assert_eq!(holdings.release(&[]), []);
    }

    #[test]
    fn a_repeated_blob_counts_once() {
        let mut holdings = Holdings::new(10, [(hash(1), 6), (hash(1), 6)]);
        assert_eq!(holdings.release(&[]), []);
    }
}
