//! Grammars, lexicons, shards and decoding weights that the worker keeps from lease to lease, by content.
//!
//! In: blobs and leases as they arrive. Out: tasks, complete and consistent. The coordinator says what to
//! release; the worker forgets nothing by itself, so that both always agree on what is held.

use std::collections::{BTreeMap, BTreeSet};

use prost::bytes::Bytes;
use proto::convert::blob::{self, Blob};
use proto::convert::{WireError, fits};
use proto::v1;
use shared::task::{ContentHash, Task, Work};

/// What is held.
#[derive(Default)]
pub(crate) struct Blobs {
    /// With the size on the wire.
    held: BTreeMap<ContentHash, (Blob, u64)>,
    /// Pairs of blobs found to go with the grammar and lexicon named first; checked once.
    fits: BTreeSet<[ContentHash; 3]>,
}

impl Blobs {
    /// Hash and size of each.
    pub fn held(&self) -> impl Iterator<Item = (ContentHash, u64)> {
        self.held.iter().map(|(&hash, &(_, size))| (hash, size))
    }

    /// Keeps at most `count` of them; any will do.
    pub fn shrink(&mut self, count: usize) {
        while self.held.len() > count {
            self.held.pop_last();
        }
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
        let grammar = match self.find("lease.grammar", &head.grammar)? {
            Blob::Grammar(grammar) => grammar.clone(),
            _ => return Err(WireError::Missing { field: "lease.grammar" }),
        };
        let lexicon = match self.find("lease.lexicon", &head.lexicon)? {
            Blob::Lexicon(lexicon) => lexicon.clone(),
            _ => return Err(WireError::Missing { field: "lease.lexicon" }),
        };
        let shard = match self.find("lease.shard", &head.shard)? {
            Blob::Shard(shard) => shard.clone(),
            _ => return Err(WireError::Missing { field: "lease.shard" }),
        };
        let work = blob::work_from_wire(head, payload, |hash| match self.held.get(&hash) {
            Some((Blob::Decode(decode), _)) => Ok(decode.clone()),
            _ => Err(WireError::Missing { field: "lease.decode" }),
        })?;
        let task = Task { grammar, lexicon, shard, work };
        self.check(&task)?;
        Ok(task)
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
            Work::Decode(decode) => self.once([grammar.hash, lexicon.hash, decode.hash], || {
                fits::decode(&grammar.value, &lexicon.value, &decode.value)
            }),
            _ => Ok(()),
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
