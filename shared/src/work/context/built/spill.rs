//! Built shards in files: for those that memory has no room for, since to read one is far less work than to build it.
//!
//! In: built shards by content, under a few grammars and lexicons at a time. Out: the same, or nothing, and then they are built anew: a
//! disk that is full or damaged costs time, and nothing else. The files are of use to this process alone.

use std::collections::VecDeque;
use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use bytemuck::{AnyBitPattern, NoUninit};
use parking_lot::Mutex;
use rustc_hash::FxHashSet;

use super::{BuiltShard, Item};
use crate::forest::Forest;
use crate::forest::chains::Chains;
use crate::stop::{self, checked};
use crate::work::content::ContentHash;
use crate::work::context::ModelKey;
use crate::work::counts::Index;

/// Models of which there are files at a time: the jobs that may take turns on one machine.
const MODELS: usize = 8;

/// A folder of built shards.
pub struct Spill {
    folder: PathBuf,
    /// Files by grammar and lexicon; the most recently used last.
    there: Mutex<VecDeque<(ModelKey, FxHashSet<ContentHash>)>>,
}

impl Spill {
    /// Into `folder`, which is empty and for this alone.
    pub fn new(folder: &Path) -> Spill {
        Spill { folder: folder.to_owned(), there: Mutex::default() }
    }

    /// The shard, if it was written.
    pub fn read(&self, model: ModelKey, shard: ContentHash) -> Option<BuiltShard> {
        if !self.with_shards(model, |shards| shards.contains(&shard)) {
            return None;
        }
        let read = read(&self.path(model, shard)).ok().and_then(|bytes| BuiltShard::from_bytes(&bytes));
        if read.is_none() {
            self.with_shards(model, |shards| shards.remove(&shard));
        }
        read
    }

    /// Writes the shard, unless it is there.
    pub fn write(&self, model: ModelKey, shard: ContentHash, built: &BuiltShard) {
        if built.is_dense() || self.with_shards(model, |shards| shards.contains(&shard)) {
            return;
        }
        let path = self.path(model, shard);
        let temporary = Temporary::beside(&path);
        let written = temporary.write(&built.to_bytes()).and_then(|()| fs::rename(&temporary.0, &path));
        if written.is_ok() {
            self.with_shards(model, |shards| shards.insert(shard));
        }
    }

    /// Returns what `with` returns for the shards of `model` that have files. Beyond [`MODELS`] models, the files of the one that was used
    /// least recently are removed.
    fn with_shards<R>(&self, model: ModelKey, with: impl FnOnce(&mut FxHashSet<ContentHash>) -> R) -> R {
        let mut there = self.there.lock();
        let at = there.iter().position(|(other, _)| *other == model);
        let (_, mut shards) = at.and_then(|at| there.remove(at)).unwrap_or((model, FxHashSet::default()));
        let said = with(&mut shards);
        there.push_back((model, shards));
        if there.len() > MODELS
            && let Some((oldest, shards)) = there.pop_front()
        {
            shards.into_iter().for_each(|shard| {
                // As above.
                let _ = fs::remove_file(self.path(oldest, shard));
            });
        }
        said
    }

    fn path(&self, (grammar, lexicon): ModelKey, shard: ContentHash) -> PathBuf {
        let name = [grammar, lexicon, shard].map(|hash| hash.0).concat();
        self.folder.join(blake3::hash(&name).to_hex().as_str())
    }
}

/// A file that is being written; what is left of it goes, also if the task is stopped.
struct Temporary(PathBuf);

impl Temporary {
    /// A file beside `path`, for this task alone.
    fn beside(path: &Path) -> Temporary {
        static WRITTEN: AtomicU64 = AtomicU64::new(0);
        Temporary(path.with_extension(WRITTEN.fetch_add(1, Ordering::Relaxed).to_string()))
    }

    fn write(&self, bytes: &[u8]) -> io::Result<()> {
        let mut file = File::create(&self.0)?;
        for chunk in bytes.chunks(CHUNK) {
            stop::check();
            file.write_all(chunk)?;
        }
        Ok(())
    }
}

impl Drop for Temporary {
    fn drop(&mut self) {
        // It is not there once it has its name; one that cannot be removed does no harm.
        let _ = fs::remove_file(&self.0);
    }
}

/// The bytes of a file.
fn read(path: &Path) -> io::Result<Vec<u8>> {
    let mut file = File::open(path)?;
    let mut bytes = Vec::with_capacity(file.metadata()?.len() as usize);
    loop {
        stop::check();
        if Read::by_ref(&mut file).take(CHUNK as u64).read_to_end(&mut bytes)? == 0 {
            return Ok(bytes);
        }
    }
}

/// Bytes that are read or written between two checks.
const CHUNK: usize = 4 << 20;

/// Stands for an item that is no string.
const NO_STRING: u32 = u32::MAX;

impl BuiltShard {
    /// Flat arrays of numbers, as this machine has them, each behind its length. It has forests, and none of components.
    fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(self.size());
        let (first, params, ln_factors) = self.chains.parts();
        put(&mut bytes, &[self.first_string, u32::from(self.is_strings)]);
        put(&mut bytes, &self.index.params);
        put(&mut bytes, &self.index.unparsable);
        put(&mut bytes, first);
        put(&mut bytes, params);
        put(&mut bytes, ln_factors);
        put(&mut bytes, &self.items.iter().map(|item| item.multiplicity).collect::<Vec<_>>());
        put(&mut bytes, &self.items.iter().map(|item| item.own.unwrap_or(NO_STRING)).collect::<Vec<_>>());
        let none = Forest::default();
        for Item { forest, .. } in checked(&self.items) {
            let Forest { first_edge, edges, .. } = forest.as_ref().unwrap_or(&none);
            put(&mut bytes, first_edge);
            put(&mut bytes, edges);
        }
        bytes
    }

    fn from_bytes(mut bytes: &[u8]) -> Option<BuiltShard> {
        let bytes = &mut bytes;
        let &[first_string, is_strings] = &take::<u32>(bytes)?[..] else { return None };
        let index = Index { params: take(bytes)?, unparsable: take(bytes)? };
        let chains = Chains::from_parts(take(bytes)?, take(bytes)?, take(bytes)?);
        let (multiplicities, own): (Vec<f64>, Vec<u32>) = (take(bytes)?, take(bytes)?);
        let mut items = Vec::with_capacity(own.len());
        for (multiplicity, own) in checked(multiplicities.into_iter().zip(own)) {
            let forest = Forest { first_edge: take(bytes)?, edges: take(bytes)?, labels: Vec::new() };
            let forest = Some(forest).filter(|forest| !forest.first_edge.is_empty());
            let own = Some(own).filter(|&own| own != NO_STRING);
            items.push(Item { forest, restricted: Vec::new(), multiplicity, own });
        }
        let (dense, compact) = (None, Mutex::new(None));
        let is_strings = is_strings != 0;
        bytes.is_empty().then_some(BuiltShard {
            index,
            dense,
            items,
            chains,
            compact,
            first_string,
            is_strings,
        })
    }
}

fn put<T: NoUninit>(bytes: &mut Vec<u8>, numbers: &[T]) {
    bytes.extend_from_slice(&(numbers.len() as u64).to_ne_bytes());
    bytes.extend_from_slice(bytemuck::cast_slice(numbers));
}

fn take<T: NoUninit + AnyBitPattern>(bytes: &mut &[u8]) -> Option<Vec<T>> {
    let (length, rest) = bytes.split_first_chunk()?;
    let size = usize::try_from(u64::from_ne_bytes(*length)).ok()?.checked_mul(size_of::<T>())?;
    let (numbers, rest) = rest.split_at_checked(size)?;
    *bytes = rest;
    Some(bytemuck::pod_collect_to_vec(numbers))
}
