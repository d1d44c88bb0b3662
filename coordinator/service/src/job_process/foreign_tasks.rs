//! Tasks that the process of a job makes, for the fleet of the service.
//!
//! A task is asked for when the fleet assigns it. Blobs are asked for once and kept, up to a number of bytes, for all jobs together; they are named by
//! their content.

use std::collections::BTreeMap;
use std::sync::Arc;

use anyhow::{Result, ensure};
use fleet::{Compute, Tasks};
use grammaton::stop::Stop;
use grammaton::work::task::{ContentHash, Task};
use parking_lot::Mutex;
use prost::Message;
use proto::blob::Blob;
use proto::lease;
use proto::v1;
use rustc_hash::FxHashMap;

use super::exchange::Exchange;
use scheduler::Needs;

/// Encoded bytes of blobs that are kept.
const KEPT: usize = 64 << 20;

/// The tasks of a batch.
pub struct ForeignTasks {
    /// The process that makes them.
    pub job: Arc<Exchange>,
    /// The number of the batch there.
    pub batch: u64,
    /// Needs by task.
    pub needs: Vec<Needs>,
    /// Blobs that are kept.
    pub blobs: Arc<Blobs>,
}

impl Tasks for ForeignTasks {
    fn len(&self) -> usize {
        self.needs.len()
    }

    fn needs(&self, at: usize) -> Needs {
        self.needs[at]
    }

    fn make(&self, at: usize) -> Result<Task> {
        let (head, hashes, payload) = self.job.task(self.batch, at)?;
        let head = v1::LeaseHead::decode(&head[..])?;
        let blob = |hash: ContentHash| {
            self.blobs.get_or_insert(hash, || {
                let (kind, bytes) = self.job.blob(self.batch, at, hash)?;
                let size = bytes.len();
                let blob = Blob::from_bytes(kind, &bytes)?;
                ensure!(blob.hash() == hash, "a job's process sent another blob than was asked for");
                Ok((blob, size))
            })
        };
        let blobs = hashes.into_iter().map(blob).collect::<Result<Vec<Blob>>>()?;
        let find = |hash| blobs.iter().find(|blob| blob.hash() == hash);
        Ok(lease::task_from_wire(&head, &payload, find)?)
    }

    /// The process of the job computes the task, within its limits.
    fn digest(&self, at: usize, _: &Compute, stop: &Stop) -> Result<blake3::Hash> {
        self.job.digest(self.batch, at, stop)
    }
}

/// Blobs, the least recently used of which are dropped.
#[derive(Default)]
pub struct Blobs(Mutex<Held>);

#[derive(Default)]
struct Held {
    /// Blob, encoded bytes, last use.
    blobs: FxHashMap<ContentHash, (Blob, usize, u64)>,
    /// Hashes by last use.
    order: BTreeMap<u64, ContentHash>,
    /// Uses so far.
    uses: u64,
    /// Sum of the bytes.
    bytes: usize,
}

impl Blobs {
    /// Returns the blob, which `load` gives with its encoded size if it is not there.
    fn get_or_insert(&self, hash: ContentHash, load: impl FnOnce() -> Result<(Blob, usize)>) -> Result<Blob> {
        let lock = || self.0.lock();
        if let Some(blob) = lock().touch(hash) {
            return Ok(blob);
        }
        // Not under the lock. Two threads may load the same blob.
        let (blob, size) = load()?;
        lock().insert(hash, blob.clone(), size);
        Ok(blob)
    }
}

impl Held {
    fn touch(&mut self, hash: ContentHash) -> Option<Blob> {
        let (blob, _, last_use) = self.blobs.get_mut(&hash)?;
        self.order.remove(last_use);
        self.uses += 1;
        *last_use = self.uses;
        self.order.insert(self.uses, hash);
        Some(blob.clone())
    }

    fn insert(&mut self, hash: ContentHash, blob: Blob, size: usize) {
        if self.touch(hash).is_some() {
            return;
        }
        self.uses += 1;
        self.blobs.insert(hash, (blob, size, self.uses));
        self.order.insert(self.uses, hash);
        self.bytes += size;
        while self.bytes > KEPT
            && let Some((_, oldest)) = self.order.pop_first()
        {
            self.bytes -= self.blobs.remove(&oldest).map_or(0, |(_, size, _)| size);
        }
    }
}

#[cfg(test)]
mod tests {
    use grammaton::work::shard::Shard;
    use grammaton::work::task::Named;
    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// The blobs that are kept never exceed the limit, are those used last, and each is loaded only if it is not there.
        #[test]
        fn the_blobs_used_last_are_kept(uses: Vec<(u8, u8)>) {
            let blobs = Blobs::default();
            // Most recently used first.
            let mut expected: Vec<(ContentHash, usize)> = Vec::new();
            for (name, size) in uses {
                let named = Named::new(Shard::Strings(u32::from(name)..u32::from(name) + 1));
                let (hash, size) = (named.hash, usize::from(size) << 19);
                let mut is_loaded = false;
                let found = blobs.get_or_insert(hash, || {
                    is_loaded = true;
                    Ok((Blob::Shard(named), size))
                });
                prop_assert_eq!(found.unwrap().hash(), hash);
                let before = expected.iter().position(|&(other, _)| other == hash);
                prop_assert_eq!(is_loaded, before.is_none());
                let entry = before.map_or((hash, size), |at| expected.remove(at));
                expected.insert(0, entry);
                while expected.iter().map(|entry| entry.1).sum::<usize>() > KEPT {
                    expected.pop();
                }
                let held = blobs.0.lock();
                prop_assert!(held.bytes <= KEPT && held.order.len() == held.blobs.len());
                let kept: Vec<ContentHash> = held.order.values().rev().copied().collect();
                prop_assert_eq!(kept, expected.iter().map(|entry| entry.0).collect::<Vec<_>>());
            }
        }
    }
}
