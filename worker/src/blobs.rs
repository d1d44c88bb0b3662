//! Cache of blobs between leases, by content hash: grammars, lexicons, shards, their states, weights, decoding weights and priors.
//!
//! In: blobs and leases as they arrive, and new states of shards from answers. Out: complete and consistent tasks. The
//! coordinator decides what to release. The worker evicts nothing by itself, and reports the states that it keeps, so that
//! both sides agree on the content of the cache. Invariants: blobs that were sent fit the capacity, or the latest lease
//! needs all of them; a state that was computed here is kept only if it fits beside everything else.

use std::collections::{BTreeMap, BTreeSet};

use grammaton::num::tree_sum::MAX_GROUP;
use grammaton::work::task::{Answer, ContentHash, Named, Task, TaskWeights, Work};
use proto::blob::{self, Blob};
use proto::check::{self, Invalid};
use proto::lease;
use proto::v1;

/// Maximum number of blobs of a lease: grammar, lexicon, shards, and weights, decoding weights, priors or the shard's state.
const PER_LEASE: usize = 3 + MAX_GROUP;

/// The new state of a shard, from an answer.
#[derive(Clone)]
pub(crate) struct KeptState {
    blob: Blob,
    /// Encoded size in bytes.
    size: u64,
    /// The state that it replaces, which the coordinator releases.
    before: Option<ContentHash>,
}

impl KeptState {
    /// Takes the state from the answer to `task`, if the answer has one.
    pub fn of(task: &Task, answer: Answer) -> Option<KeptState> {
        let blob = Blob::ShardState(Named::new(answer.shard_state()?));
        let before = task.work.shard_state().map(|before| before.hash);
        Some(KeptState { size: blob.to_bytes().len() as u64, blob, before })
    }
}

struct Held {
    blob: Blob,
    /// Encoded size in bytes.
    size: u64,
    /// Whether the coordinator sent it.
    sent: bool,
}

/// The cache.
pub(crate) struct Blobs {
    /// Capacity in encoded bytes. Blobs that the latest lease needs may exceed it.
    capacity: u64,
    held: BTreeMap<ContentHash, Held>,
    /// Number of blobs that arrived since the latest lease.
    since_lease: usize,
    /// Hashes of grammar, lexicon and a blob that was checked against them.
    fits: BTreeSet<[ContentHash; 3]>,
}

impl Blobs {
    /// An empty cache of `capacity` bytes.
    pub fn new(capacity: u64) -> Blobs {
        Blobs { capacity, held: BTreeMap::new(), since_lease: 0, fits: BTreeSet::new() }
    }

    /// Hash and encoded size of each blob.
    pub fn held(&self) -> impl Iterator<Item = (ContentHash, u64)> {
        self.held.iter().map(|(&hash, held)| (hash, held.size))
    }

    /// Prepares for a new connection, whose hello can list at most `count` blobs; evicts any others.
    pub fn ready(&mut self, count: usize) {
        self.since_lease = 0;
        while self.held.len() > count {
            self.held.pop_last();
        }
    }

    /// Counts a blob that is about to arrive; an error if a lease cannot need so many.
    pub fn expect_blob(&mut self) -> Result<(), Invalid> {
        self.since_lease += 1;
        let (found, expected) = (self.since_lease as u64, PER_LEASE as u64);
        if found > expected {
            return Err(Invalid::Excess { field: "blobs of a lease", found, expected });
        }
        Ok(())
    }

    /// Adds a blob that was sent.
    pub fn insert(&mut self, blob: Blob, size: u64) {
        self.held.insert(blob.hash(), Held { blob, size, sent: true });
    }

    /// Stores a state that was computed here, if there is room after it replaces its predecessor. Returns the message for the
    /// coordinator; `None` if there is no room, or the coordinator knows of the state.
    pub fn keep(&mut self, shard_state: KeptState) -> Option<v1::Held> {
        let KeptState { blob, size, before } = shard_state;
        let hash = blob.hash();
        let others = self.held.iter().filter(|(hash, _)| before != Some(**hash));
        let total: u64 = others.map(|(_, held)| held.size).sum();
        if self.held.contains_key(&hash) || total + size > self.capacity {
            return None;
        }
        self.held.insert(hash, Held { blob, size, sent: false });
        Some(v1::Held { hash: blob::hash_to_wire(hash), size })
    }

    /// Removes the blobs that the coordinator releases.
    pub fn release(&mut self, release: &v1::Release) -> Result<(), Invalid> {
        for hash in &release.hashes {
            let hash = blob::hash_from_wire("release.hashes", hash)?;
            self.held.remove(&hash);
            self.fits.retain(|fit| !fit.contains(&hash));
        }
        Ok(())
    }

    /// Assembles and checks an assigned task.
    pub fn task(&mut self, head: &v1::LeaseHead, payload: &[u8]) -> Result<Task, Invalid> {
        self.since_lease = 0;
        let task = lease::task_from_wire(head, payload, |hash| self.held.get(&hash).map(|held| &held.blob))?;
        self.check(&task)?;
        self.check_room(&task)?;
        Ok(task)
    }

    /// Checks that the coordinator has released the blobs beyond the capacity that the task does not need.
    fn check_room(&self, task: &Task) -> Result<(), Invalid> {
        let needed: Vec<ContentHash> = Blob::of_task(task).iter().map(Blob::hash).collect();
        let sent = || self.held.iter().filter(|(_, held)| held.sent);
        let found = sent().map(|(_, held)| held.size).sum();
        if found > self.capacity && sent().any(|(hash, _)| !needed.contains(hash)) {
            return Err(Invalid::Excess { field: "bytes held", found, expected: self.capacity });
        }
        Ok(())
    }

    fn check(&mut self, task: &Task) -> Result<(), Invalid> {
        check::group(task)?;
        let Some(language) = &task.language else {
            self.once([task.shard.hash; 3], || check::trees(&task.shard.value))?;
            return check::work(task);
        };
        let (grammar, lexicon) = (language.grammar.hash, language.lexicon.hash);
        self.once([grammar; 3], || check::grammar(&language.grammar.value))?;
        self.once([grammar, lexicon, lexicon], || {
            check::lexicon(&language.grammar.value, &language.lexicon.value)
        })?;
        for shard in task.shards() {
            self.once([grammar, lexicon, shard.hash], || check::shard(language, &shard.value))?;
        }
        match &task.work {
            Work::Decode(decode) => self.once([grammar, lexicon, decode.hash], || check::work(task)),
            Work::Fit(fit) => self.once([grammar, lexicon, fit.hash], || check::work(task)),
            Work::Expect { weights: TaskWeights::Shared { all, .. }, .. } => {
                self.once([grammar, lexicon, all.hash], || check::work(task))
            }
            _ => check::work(task),
        }
    }

    fn once(
        &mut self,
        fit: [ContentHash; 3],
        check: impl FnOnce() -> Result<(), Invalid>,
    ) -> Result<(), Invalid> {
        if !self.fits.contains(&fit) {
            check()?;
            self.fits.insert(fit);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use grammaton::work::task::{Collapsed, Expectation, Language, ShardState};

    use super::*;

    /// A state of `n` occurrences without counts, of `n` bytes and a few.
    fn kept_state(n: usize, before: Option<&KeptState>) -> KeptState {
        let blob = Blob::ShardState(Named::new(ShardState::Counts(vec![vec![]; n])));
        let before = before.map(|before| before.blob.hash());
        KeptState { size: blob.to_bytes().len() as u64, blob, before }
    }

    #[test]
    fn a_state_is_kept_once_and_only_if_there_is_room() {
        let [first, second, third] = [100, 101, 102].map(|n| kept_state(n, None));
        let mut blobs = Blobs::new(250);
        let reported = blobs.keep(first.clone()).expect("there is room");
        assert_eq!((&reported.hash[..], reported.size), (&first.blob.hash().0[..], first.size));
        assert_eq!(blobs.keep(first.clone()), None, "the coordinator knows");
        assert!(blobs.keep(second.clone()).is_some() && blobs.keep(third.clone()).is_none());
        let next = kept_state(102, Some(&second));
        assert!(blobs.keep(next).is_some(), "there is room when the state before is released");
        assert_eq!(blobs.held().count(), 3);
    }

    #[test]
    fn states_computed_here_take_no_room_from_blobs_that_are_sent() {
        let mut blobs = Blobs::new(250);
        assert!(blobs.keep(kept_state(200, None)).is_some());
        let sent = kept_state(201, None);
        blobs.insert(sent.blob, sent.size);
        let task = task();
        assert_eq!(blobs.check_room(&task), Ok(()));
        let more = kept_state(202, None);
        blobs.insert(more.blob, more.size);
        let excess = blobs.check_room(&task).unwrap_err().to_string();
        assert!(excess.starts_with("bytes held: ") && excess.ends_with("expected at most 250"), "{excess}");
    }

    #[test]
    fn only_an_answer_with_a_state_is_kept() {
        let task = task();
        assert!(KeptState::of(&task, Answer::Expectation(Expectation::default())).is_none());
        let shard_state = ShardState::Counts(vec![]);
        let collapsed = Collapsed { expectation: Expectation::default(), shard_state: shard_state.clone() };
        let passed = KeptState::of(&task, Answer::Collapsed(collapsed)).expect("it carries");
        assert_eq!((passed.blob.hash(), passed.before), (Named::new(shard_state).hash, None));
    }

    fn task() -> Task {
        let grammar = grammaton::grammar::syntax::parse("S --> a", "test").expect("the text is a grammar").0;
        let lexicon = Named::new(grammaton::grammar::lexicon::Lexicon::default());
        Task {
            language: Some(Language { grammar: Named::new(grammar), lexicon }),
            shard: Named::new(grammaton::work::shard::Shard::Sentences(vec![])),
            work: Work::Index,
            further: Vec::new(),
        }
    }
}
