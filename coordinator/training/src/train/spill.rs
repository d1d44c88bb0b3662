//! Store of a job's large values: in memory up to `HELD` bytes, beyond it in files that are named by the hash of their content and read on
//! demand.
//!
//! The process that wrote a file is the only one to use it, and removes it when it ends. [`sweep`] removes files of killed processes.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use anyhow::{Context, Result, ensure};
use grammaton::encoding::{decode, encode};
use grammaton::work::task::{ContentHash, Named};
use parking_lot::Mutex;
use serde::Serialize;
use serde::de::DeserializeOwned;
use tempfile::TempDir;

/// Store of values of any size.
#[derive(Debug)]
pub struct SpillStore {
    folder: PathBuf,
    /// Folder of the files, created on first use.
    files: Mutex<Option<Arc<Files>>>,
    /// Bytes that may still stay in memory.
    room: AtomicUsize,
}

/// Bytes, as written, of values that stay in memory: jobs of that size touch no disk.
const HELD: usize = 64 << 20;

#[derive(Debug)]
struct Files {
    dir: TempDir,
}

/// Prefix of the folders' names.
const PREFIX: &str = ".shards-";

/// Creates a folder inside `folder`, which is created if it does not exist. It is removed when it is dropped, or by [`sweep`].
pub fn folder_in(folder: &Path) -> std::io::Result<TempDir> {
    fs::create_dir_all(folder)?;
    tempfile::Builder::new().prefix(PREFIX).tempdir_in(folder)
}

/// Removes the folders that killed processes left in `folder`. No other process may use it.
pub fn sweep(folder: &Path) {
    let left = fs::read_dir(folder).into_iter().flatten().flatten();
    for entry in left.filter(|entry| entry.file_name().to_string_lossy().starts_with(PREFIX)) {
        if let Err(error) = fs::remove_dir_all(entry.path()) {
            tracing::warn!(path = %entry.path().display(), %error, "cannot remove what an earlier run left");
        }
    }
}

/// A value in memory or in a file.
#[derive(Debug)]
pub struct Stored<T> {
    /// Hash of the value, as [`Named`] has it.
    pub hash: ContentHash,
    storage: Storage<T>,
}

#[derive(Debug)]
enum Storage<T> {
    Memory(Arc<T>),
    File(Arc<Files>),
}

impl SpillStore {
    /// An empty store with files in `folder`.
    pub fn new_in(folder: &Path) -> SpillStore {
        SpillStore::with_room(folder, HELD)
    }

    fn with_room(folder: &Path, room: usize) -> SpillStore {
        SpillStore { folder: folder.to_owned(), files: Mutex::default(), room: AtomicUsize::new(room) }
    }

    /// Folder of the files.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Stores a value.
    pub fn keep<T: Serialize>(&self, value: T) -> Result<Stored<T>> {
        let bytes = encode(&value);
        let hash = ContentHash::of(&bytes);
        let taken = self.room.fetch_update(Relaxed, Relaxed, |room| room.checked_sub(bytes.len()));
        if taken.is_ok() {
            return Ok(Stored { hash, storage: Storage::Memory(Arc::new(value)) });
        }
        let files = self.files()?;
        let path = files.path(hash);
        if !path.exists() {
            fs::write(&path, &bytes)
                .with_context(|| format!("{}: cannot keep a shard; {WAY_OUT}", path.display()))?;
        }
        Ok(Stored { hash, storage: Storage::File(files) })
    }

    fn files(&self) -> Result<Arc<Files>> {
        let mut files = self.files.lock();
        if let Some(files) = &*files {
            return Ok(files.clone());
        }
        let dir = folder_in(&self.folder)
            .with_context(|| format!("{}: cannot keep shards there; {WAY_OUT}", self.folder.display()))?;
        Ok(files.insert(Arc::new(Files { dir })).clone())
    }
}

impl Files {
    fn path(&self, hash: ContentHash) -> PathBuf {
        self.dir.path().join(blake3::Hash::from_bytes(hash.0).to_hex().as_str())
    }
}

const WAY_OUT: &str = "free space or allow it, or choose another folder with --out DIR";

impl<T> Stored<T> {
    /// A value in memory.
    pub fn in_memory(named: Named<T>) -> Stored<T> {
        Stored { hash: named.hash, storage: Storage::Memory(named.value) }
    }
}

impl<T: DeserializeOwned> Stored<T> {
    /// Returns the value; reads it if it is in a file.
    pub fn value(&self) -> Result<Arc<T>> {
        match &self.storage {
            Storage::Memory(value) => Ok(value.clone()),
            Storage::File(files) => {
                let path = files.path(self.hash);
                let damaged = || format!("{}: cannot be read again; start once more", path.display());
                let bytes = fs::read(&path).with_context(damaged)?;
                ensure!(ContentHash::of(&bytes) == self.hash, "{}", damaged());
                Ok(Arc::new(decode(&bytes).with_context(damaged)?))
            }
        }
    }

    /// The value with its name.
    pub fn named(&self) -> Result<Named<T>> {
        Ok(Named { hash: self.hash, value: self.value()? })
    }
}

impl<T> Clone for Stored<T> {
    fn clone(&self) -> Stored<T> {
        let storage = match &self.storage {
            Storage::Memory(value) => Storage::Memory(value.clone()),
            Storage::File(files) => Storage::File(files.clone()),
        };
        Stored { hash: self.hash, storage }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spilled_values_are_found_by_content_and_removed_with_the_store() {
        let dir = tempfile::tempdir().unwrap();
        let spill = SpillStore::with_room(dir.path(), 10);
        let value = vec![(3u32, "abc".to_owned())];
        let held = spill.keep(value.clone()).unwrap();
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 0);
        let kept = spill.keep(value.clone()).unwrap();
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1);
        assert_eq!((held.hash, kept.hash), (Named::new(value.clone()).hash, held.hash));
        assert_eq!((&*held.value().unwrap(), &*kept.clone().value().unwrap()), (&value, &value));
        let Storage::File(files) = &kept.storage else { panic!("there is no room for two") };
        fs::write(files.path(kept.hash), "damaged").unwrap();
        assert!(kept.value().unwrap_err().to_string().contains("start once more"));
        drop((spill, kept));
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 0);
        let spill = SpillStore::with_room(dir.path(), 0);
        std::mem::forget(spill.keep(value).unwrap());
        drop(spill);
        sweep(dir.path());
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 0);
    }
}
