//! The copy of a job store in an object store, so that the machine it is on may be lost.
//!
//! Objects have the names that files have in the job store's folder. What decides is put there before it counts: a file before it is said to be
//! kept, a record before its job is accepted, results before the job is done. Logs and the audit log are copied every [`COPY_INTERVAL`].

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::io;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result};
use basics::store::Store;
use blake3::Hash;
use parking_lot::Mutex;

use super::record::JobId;

/// From one look after what follows, and after whose turn it is, to the next.
pub const COPY_INTERVAL: Duration = Duration::from_secs(10);

/// Objects below a URL.
pub struct Remote {
    store: Store,
    /// The files that jobs read.
    files: Mutex<BTreeSet<String>>,
    /// Bytes of what grows, when it was put there the last time.
    put: Mutex<BTreeMap<String, u64>>,
}

/// The name of a file that jobs read.
pub fn file_name(hash: Hash) -> String {
    format!("files/{}", hash.to_hex())
}

impl Remote {
    /// Opens the remote storage in `store`, where no other process writes any more.
    pub fn open(store: Store) -> Result<Remote> {
        let files = store.list_below("files")?.into_iter().map(|name| format!("files/{name}")).collect();
        Ok(Remote { store, files: Mutex::new(files), put: Mutex::default() })
    }

    /// The objects themselves.
    pub fn store(&self) -> &Store {
        &self.store
    }

    /// Whether a file that jobs read is there.
    pub fn has(&self, hash: Hash) -> bool {
        self.files.lock().contains(&file_name(hash))
    }

    /// Puts a file there that jobs read.
    pub fn keep(&self, hash: Hash, file: &Path) -> Result<()> {
        self.store.put_file(&file_name(hash), file)?;
        self.files.lock().insert(file_name(hash));
        Ok(())
    }

    /// Removes the files that jobs read, but for those that are `wanted`.
    pub fn forget_others(&self, wanted: &BTreeSet<String>) -> Result<()> {
        let others: BTreeSet<String> = self.files.lock().difference(wanted).cloned().collect();
        self.forget(&others)
    }

    /// Removes files that jobs read.
    pub fn forget(&self, files: &BTreeSet<String>) -> Result<()> {
        self.files.lock().retain(|name| !files.contains(name));
        files.iter().try_for_each(|name| self.store.remove(name))
    }

    /// Removes all objects in the folder of a job.
    pub fn remove_work(&self, id: JobId) -> Result<()> {
        let folder = format!("work/{id}");
        let names = self.store.list_below(&folder)?;
        names.iter().try_for_each(|name| self.store.remove(&format!("{folder}/{name}")))?;
        self.put.lock().retain(|name, _| !name.starts_with(&format!("{folder}/")));
        Ok(())
    }

    /// Puts a file there if it has grown since the last time; one that is not there yet has not.
    pub fn follow(&self, name: &str, file: &Path) -> Result<()> {
        let size = fs::metadata(file).map_or(0, |found| found.len());
        if size > self.put.lock().get(name).copied().unwrap_or(0) {
            self.store.put_file(name, file)?;
            self.put.lock().insert(name.to_owned(), size);
        }
        Ok(())
    }

    /// Downloads an object to `file`, whose folder is created if it does not exist.
    pub fn download(&self, name: &str, file: &Path) -> Result<()> {
        let copied = || -> io::Result<()> {
            file.parent().map_or(Ok(()), fs::create_dir_all)?;
            let mut to = File::create(file)?;
            io::copy(&mut self.store.download(name).map_err(io::Error::other)?, &mut to)?;
            to.sync_all()
        };
        copied().with_context(|| {
            format!("{}: cannot be downloaded to {}", self.store.describe(name), file.display())
        })
    }
}
