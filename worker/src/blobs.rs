//! Grammars, lexicons, shards, what these carry, and decoding weights that the worker keeps from lease to lease, by content.
//!
//! In: blobs and leases as they arrive. Out: tasks, complete and consistent. The coordinator says what to
//! release; the worker forgets nothing by itself, so that both always agree on what is held. Invariant: what is held
//! is within the capacity, or the latest lease needs all of it.

use std::collections::{BTreeMap, BTreeSet};

use prost::bytes::Bytes;
use proto::convert::blob::{self, Blob};
use proto::convert::{WireError, fits};
use proto::v1;
use shared::grammar::Grammar;
use shared::shard::Lexicon;
use shared::task::{ContentHash, Named, Task, Work};

/// Blobs that one lease can need: grammar, lexicon, shard, and weights to decode with or what the shard carries.
const PER_LEASE: usize = 4;

/// What is held.
pub(crate) struct Blobs {
    /// Bytes that the coordinator was told it may leave here, beyond what the latest lease needs.
    capacity: u64,
    /// With the size on the wire.
    held: BTreeMap<ContentHash, (Blob, u64)>,
    /// Blobs that came since the latest lease.
    since_lease: usize,
    /// Pairs of blobs found to go with the grammar and lexicon named first; checked once.
    fits: BTreeSet<[ContentHash; 3]>,
}

impl Blobs {
    /// Nothing yet, and room for `capacity` bytes.
    pub fn new(capacity: u64) -> Blobs {
        Blobs { capacity, held: BTreeMap::new(), since_lease: 0, fits: BTreeSet::new() }
    }

    /// Hash and size of each.
    pub fn held(&self) -> impl Iterator<Item = (ContentHash, u64)> {
        self.held.iter().map(|(&hash, &(_, size))| (hash, size))
    }

    /// Readies them for a new connection, which can be told of at most `count`; any will do.
    pub fn ready(&mut self, count: usize) {
        self.since_lease = 0;
        while self.held.len() > count {
            self.held.pop_last();
        }
    }

    /// Notes that a blob is about to come; there are only so many to a lease.
    pub fn expect_blob(&mut self) -> Result<(), WireError> {
        self.since_lease += 1;
        let (found, expected) = (self.since_lease as u64, PER_LEASE as u64);
        if found > expected {
            return Err(WireError::Excess { field: "blobs of a lease", found, expected });
        }
        Ok(())
    }

    /// The most bytes that the payload of a lease with this head can have.
    pub fn largest_lease(&self, head: &v1::LeaseHead) -> Result<u64, WireError> {
        let grammar = self.grammar(head)?;
        Ok(fits::largest_lease(head.work(), &grammar.value, &self.lexicon(head)?.value))
    }

    /// Adds a blob from its head and payload.
    pub fn insert(&mut self, head: &v1::BlobHead, payload: Bytes) -> Result<(), WireError> {
        let hash = blob::hash_from_wire("blob.hash", &head.hash)?;
        let size = payload.len() as u64;
        let blob = Blob::from_bytes(head.kind, hash, payload)?;
        self.held.insert(hash, (blob, size));
        Ok(())
    }

    /// Forgets those that the coordinator releases.
    pub fn release(&mut self, release: &v1::Release) -> Result<(), WireError> {
        for hash in &release.hashes {
            let hash = blob::hash_from_wire("release.hashes", hash)?;
            self.held.remove(&hash);
            self.fits.retain(|fit| !fit.contains(&hash));
        }
        Ok(())
    }

    /// The task that is lent.
    pub fn task(&mut self, head: &v1::LeaseHead, payload: Bytes) -> Result<Task, WireError> {
        self.since_lease = 0;
        let (grammar, lexicon) = (self.grammar(head)?.clone(), self.lexicon(head)?.clone());
        let shard = match self.find("lease.shard", &head.shard)? {
            Blob::Shard(shard) => shard.clone(),
            _ => return Err(WireError::Missing { field: "lease.shard" }),
        };
        let work = blob::work_from_wire(head, payload, |field, hash| self.find(field, hash).cloned())?;
        let task = Task { grammar, lexicon, shard, work };
        self.check(&task)?;
        self.check_room(&task)?;
        Ok(task)
    }

    /// Whether the coordinator had everything released that is beyond the capacity and not needed.
    fn check_room(&self, task: &Task) -> Result<(), WireError> {
        let needed: Vec<ContentHash> = Blob::of_task(task).iter().map(Blob::hash).collect();
        let found = self.held.values().map(|(_, size)| size).sum();
        if found > self.capacity && self.held.keys().any(|hash| !needed.contains(hash)) {
            return Err(WireError::Excess { field: "bytes held", found, expected: self.capacity });
        }
        Ok(())
    }

    fn grammar(&self, head: &v1::LeaseHead) -> Result<&Named<Grammar>, WireError> {
        match self.find("lease.grammar", &head.grammar)? {
            Blob::Grammar(grammar) => Ok(grammar),
            _ => Err(WireError::Missing { field: "lease.grammar" }),
        }
    }

    fn lexicon(&self, head: &v1::LeaseHead) -> Result<&Named<Lexicon>, WireError> {
        match self.find("lease.lexicon", &head.lexicon)? {
            Blob::Lexicon(lexicon) => Ok(lexicon),
            _ => Err(WireError::Missing { field: "lease.lexicon" }),
        }
    }

    fn find(&self, field: &'static str, hash: &[u8]) -> Result<&Blob, WireError> {
        let hash = blob::hash_from_wire(field, hash)?;
        self.held.get(&hash).map(|(blob, _)| blob).ok_or(WireError::Missing { field })
    }

    fn check(&mut self, task: &Task) -> Result<(), WireError> {
        let (grammar, lexicon) = (&task.grammar, &task.lexicon);
        self.once([grammar.hash, lexicon.hash, lexicon.hash], || {
            fits::lexicon(&grammar.value, &lexicon.value)
        })?;
        self.once([grammar.hash, lexicon.hash, task.shard.hash], || {
            fits::shard(&grammar.value, &lexicon.value, &task.shard.value)
        })?;
        match &task.work {
            Work::Decode(decode) => self.once([grammar.hash, lexicon.hash, decode.hash], || fits::work(task)),
            _ => fits::work(task),
        }
    }

    fn once(
        &mut self,
        fit: [ContentHash; 3],
        check: impl FnOnce() -> Result<(), WireError>,
    ) -> Result<(), WireError> {
        if !self.fits.contains(&fit) {
            check()?;
            self.fits.insert(fit);
        }
        Ok(())
    }
}
