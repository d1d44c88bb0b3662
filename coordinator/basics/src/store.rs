//! Store of whole objects: a folder, or a prefix of an object store. Large objects are read piece by piece ([`Download`]).
//!
//! Invariant: an object is complete or absent, and durable once [`Store::put`] has returned: in a folder it is written under a temporary
//! name, synced and renamed. A name may contain folders, as in `out/model.bin`. Calls block. If a disk or network does not answer they fail
//! after [`TIMEOUT`], which is longer for large objects. Credentials come from the environment as the store's own tools read
//! it (`AWS_ACCESS_KEY_ID`, `AWS_ENDPOINT`, …), never from a URL.

use std::fs::{File, Metadata};
use std::future::Future;
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use object_store::aws::AmazonS3Builder;
use object_store::azure::MicrosoftAzureBuilder;
use object_store::gcp::GoogleCloudStorageBuilder;
use object_store::local::LocalFileSystem;
use object_store::{
    ClientOptions, ObjectStore, ObjectStoreExt, PutMode, RetryConfig, UpdateVersion, WriteMultipart,
};
use tokio::runtime::Runtime;
use tokio_stream::StreamExt as _;

use crate::faults;

pub use self::download::Download;
pub use self::url::is_below;

mod download;
#[cfg(any(test, feature = "simulated"))]
pub mod memory;
mod url;

/// Time that a call waits for an answer of the store.
pub const TIMEOUT: Duration = Duration::from_secs(30);

/// Transfer rate in bytes per second below which a store counts as not answering.
const SLOWEST: u64 = 1 << 20;

/// Bytes up to which a file is put in one piece, and of a part of a larger one,
const PART: usize = 8 << 20;
/// of which there may be so many (S3 takes 10,000),
const MAX_PARTS: u64 = 9_000;
/// so many of them under way at a time.
const PARTS_UNDER_WAY: usize = 4;

/// Whether `location` is the URL of an object store, not a path.
pub fn is_url(location: &str) -> bool {
    location.contains("://")
}

/// The URL in `path`, if it is one.
pub fn url(path: &Path) -> Option<&str> {
    path.to_str().filter(|location| is_url(location))
}

/// The absolute form of `path`; a URL stays as it is.
pub fn absolute(path: &Path) -> PathBuf {
    let absolute = || std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    url(path).map_or_else(absolute, PathBuf::from)
}

/// Version of an object. A conditional write succeeds only if the object still has it.
#[derive(Clone, PartialEq, Debug)]
pub struct Version(UpdateVersion);

/// A folder or prefix.
pub struct Store {
    location: String,
    objects: Arc<dyn ObjectStore>,
    prefix: object_store::path::Path,
}

impl Store {
    /// Opens the store at `location`; creates a folder if it does not exist. Must not be called within a runtime.
    pub fn open(location: &str) -> Result<Store> {
        let (objects, prefix) = if is_url(location) {
            reach(location)?
        } else {
            (folder(Path::new(location))?, object_store::path::Path::default())
        };
        Ok(Store { location: location.to_owned(), objects, prefix })
    }

    /// The object's place: its URL, or its path.
    pub fn describe(&self, name: &str) -> String {
        format!("{}/{name}", self.location.trim_end_matches('/'))
    }

    /// Names of all objects directly in the store, sorted.
    pub fn list(&self) -> Result<Vec<String>> {
        let listed = ask(0, self.objects.list_with_delimiter(Some(&self.prefix)));
        let listed = listed.with_context(|| format!("{}: cannot be listed", self.location))?;
        let names = listed.objects.iter().filter_map(|object| object.location.filename().map(str::to_owned));
        let mut names: Vec<String> = names.filter(|name| self.check_regular(name).is_ok()).collect();
        names.sort_unstable();
        Ok(names)
    }

    /// Refuses what a folder has that is no file: to open a pipe would wait for its other end.
    fn check_regular(&self, name: &str) -> Result<()> {
        let is_other = |found: &Metadata| !is_url(&self.location) && !found.is_file() && !found.is_dir();
        let found = std::fs::metadata(Path::new(&self.location).join(name));
        ensure!(!found.is_ok_and(|found| is_other(&found)), "{}: not a regular file", self.describe(name));
        Ok(())
    }

    /// Names of all objects below `folder`, relative to it, sorted.
    pub fn list_below(&self, folder: &str) -> Result<Vec<String>> {
        let place = self.place(folder);
        let listing = async {
            let mut names = Vec::new();
            let mut objects = self.objects.list(Some(&place));
            while let Some(object) = objects.next().await.transpose()? {
                let below = object.location.prefix_match(&place).into_iter().flatten();
                names.push(below.map(|part| part.as_ref().to_owned()).collect::<Vec<String>>().join("/"));
            }
            Ok(names)
        };
        let listed = ask(0, listing);
        let mut names = listed.with_context(|| format!("{}: cannot be listed", self.describe(folder)))?;
        names.sort_unstable();
        Ok(names)
    }

    /// Names of all folders directly in `folder`, sorted.
    pub fn folders(&self, folder: &str) -> Result<Vec<String>> {
        let listed = ask(0, self.objects.list_with_delimiter(Some(&self.place(folder))));
        let listed = listed.with_context(|| format!("{}: cannot be listed", self.describe(folder)))?;
        let names = listed.common_prefixes.iter().filter_map(|place| place.filename().map(str::to_owned));
        let mut names: Vec<String> = names.collect();
        names.sort_unstable();
        Ok(names)
    }

    /// Opens an object to be read piece by piece.
    pub fn download(&self, name: &str) -> Result<Download> {
        self.check_regular(name)?;
        let download = Download::begin(&*self.objects, &self.place(name));
        download.with_context(|| format!("{}: cannot be read", self.describe(name)))
    }

    /// Reads an object.
    pub fn get(&self, name: &str) -> Result<Vec<u8>> {
        let found = self.find(name)?;
        found.with_context(|| format!("{}: cannot be read: there is no such object", self.describe(name)))
    }

    /// Reads an object, if it exists.
    pub fn find(&self, name: &str) -> Result<Option<Vec<u8>>> {
        self.check_regular(name)?;
        let place = self.place(name);
        let size = ask(0, self.objects.head(&place)).map_or(0, |found| found.size as usize);
        let get = async {
            match self.objects.get(&place).await {
                Err(object_store::Error::NotFound { .. }) => Ok(None),
                found => Ok(Some(found?.bytes().await?.to_vec())),
            }
        };
        ask(size, get).with_context(|| format!("{}: cannot be read", self.describe(name)))
    }

    /// Writes an object.
    pub fn put(&self, name: &str, bytes: Vec<u8>) -> Result<()> {
        let put = ask(bytes.len(), self.objects.put(&self.place(name), bytes.into()));
        put.map(drop).with_context(|| format!("{}: cannot be written", self.describe(name)))
    }

    /// Creates an object. `None` if it exists with other bytes.
    pub fn create(&self, name: &str, bytes: Vec<u8>) -> Result<Option<Version>> {
        self.put_if(name, bytes, PutMode::Create)
    }

    /// Replaces the version `known` of an object. `None` if the object has changed since, to other bytes.
    pub fn replace(&self, name: &str, bytes: Vec<u8>, known: &Version) -> Result<Option<Version>> {
        self.put_if(name, bytes, PutMode::Update(known.0.clone()))
    }

    fn put_if(&self, name: &str, bytes: Vec<u8>, mode: PutMode) -> Result<Option<Version>> {
        let place = self.place(name);
        let put = async {
            match self.objects.put_opts(&place, bytes.clone().into(), mode.into()).await {
                Err(object_store::Error::AlreadyExists { .. } | object_store::Error::Precondition { .. }) => {
                    Ok(None)
                }
                // What is to be replaced was removed.
                Err(object_store::Error::NotFound { .. }) => Ok(None),
                put => Ok(Some(Version(put?.into()))),
            }
        };
        let put = ask(bytes.len(), put);
        if let Some(version) = put.with_context(|| format!("{}: cannot be written", self.describe(name)))? {
            return Ok(Some(version));
        }
        // An attempt whose answer was lost is repeated, and then finds its own object.
        let found = self.find_version(name)?;
        Ok(found.filter(|(found, _)| *found == bytes).map(|(_, version)| version))
    }

    /// Reads an object and its version, if it exists.
    pub fn find_version(&self, name: &str) -> Result<Option<(Vec<u8>, Version)>> {
        let place = self.place(name);
        let get = async {
            match self.objects.get(&place).await {
                Err(object_store::Error::NotFound { .. }) => Ok(None),
                found => {
                    let found = found?;
                    let (e_tag, version) = (found.meta.e_tag.clone(), found.meta.version.clone());
                    let version = Version(UpdateVersion { e_tag, version });
                    Ok(Some((found.bytes().await?.to_vec(), version)))
                }
            }
        };
        ask(0, get).with_context(|| format!("{}: cannot be read", self.describe(name)))
    }

    /// Refuses a store that ignores conditions on versions, after a trial with an object of a new name.
    pub fn check_conditional(&self, name: &str) -> Result<()> {
        let first = self.create(name, b"first".to_vec());
        let is_conditional = || -> Result<bool> {
            let Some(first) = first? else { return Ok(false) };
            let is_created_once = self.create(name, b"second".to_vec())?.is_none();
            let is_replaced = self.replace(name, b"third".to_vec(), &first)?.is_some();
            Ok(is_created_once && is_replaced && self.replace(name, b"fourth".to_vec(), &first)?.is_none())
        };
        let checked = is_conditional();
        let removed = self.remove(name);
        ensure!(
            checked.with_context(|| format!("{}: conditional writes fail", self.location))?,
            "{}: the object store does not honour conditional writes (If-Match, If-None-Match), without which two services could overwrite \
             each other's jobs; choose another one with --store, or a folder",
            self.location
        );
        removed
    }

    /// Uploads a file, with no more than a few parts in memory.
    pub fn put_file(&self, name: &str, path: &Path) -> Result<()> {
        let mut file = File::open(path).with_context(|| format!("{}: cannot be read", path.display()))?;
        let size = file.metadata().map_or(0, |found| found.len());
        if size <= PART as u64 {
            let mut bytes = Vec::new();
            file.read_to_end(&mut bytes).with_context(|| format!("{}: cannot be read", path.display()))?;
            return self.put(name, bytes);
        }
        let part = PART.max(size.div_ceil(MAX_PARTS) as usize);
        let put = self.put_parts(name, file, part);
        put.with_context(|| format!("{}: cannot be written", self.describe(name)))
    }

    fn put_parts(&self, name: &str, mut file: File, part: usize) -> Result<()> {
        let upload = ask(0, self.objects.put_multipart(&self.place(name)))?;
        let mut upload = WriteMultipart::new_with_chunk_size(upload, part);
        let mut send = || -> Result<bool> {
            let mut bytes = Vec::with_capacity(part);
            (&mut file).take(part as u64).read_to_end(&mut bytes)?;
            let goes_on = !bytes.is_empty();
            let write = async {
                upload.wait_for_capacity(PARTS_UNDER_WAY).await?;
                upload.put(bytes.into());
                Ok(())
            };
            ask(part * PARTS_UNDER_WAY, write)?;
            Ok(goes_on)
        };
        let sent = loop {
            match send() {
                Ok(true) => {}
                Ok(false) => break Ok(()),
                Err(error) => break Err(error),
            }
        };
        if let Err(error) = sent {
            // What came so far is of no use; a store that does not hear of it forgets it some day.
            let _ = ask(0, upload.abort());
            return Err(error);
        }
        ask(part * PARTS_UNDER_WAY, upload.finish()).map(drop)
    }

    /// Removes an object, if it exists.
    pub fn remove(&self, name: &str) -> Result<()> {
        let place = self.place(name);
        let remove = async {
            match self.objects.delete(&place).await {
                Err(object_store::Error::NotFound { .. }) => Ok(()),
                removed => removed,
            }
        };
        ask(0, remove).with_context(|| format!("{}: cannot be removed", self.describe(name)))
    }

    fn place(&self, name: &str) -> object_store::path::Path {
        name.split('/').fold(self.prefix.clone(), |place, part| place.join(part))
    }
}

/// The runtime of all stores. Its thread serves connections also while nothing waits for them: a pool lends a connection to any call.
fn runtime() -> Result<&'static Runtime> {
    static RUNTIME: OnceLock<Runtime> = OnceLock::new();
    if let Some(runtime) = RUNTIME.get() {
        return Ok(runtime);
    }
    let mut builder = tokio::runtime::Builder::new_multi_thread();
    let runtime = builder.worker_threads(1).thread_name("store").enable_all().build();
    let runtime = runtime.context("cannot start a runtime for the store")?;
    Ok(RUNTIME.get_or_init(|| runtime))
}

/// Waits for the answer to a call that transfers so many `bytes`, up to the timeout.
fn ask<T>(bytes: usize, answer: impl Future<Output = object_store::Result<T>>) -> Result<T> {
    let timeout = TIMEOUT + Duration::from_secs(bytes as u64 / SLOWEST);
    faults::step()?;
    let answer = runtime()?.block_on(async { tokio::time::timeout(timeout, answer).await });
    let answer = answer.with_context(|| format!("no answer for {timeout:?}"))??;
    faults::step()?;
    Ok(answer)
}

/// The object store of `url`, and the path in it.
fn reach(url: &str) -> Result<(Arc<dyn ObjectStore>, object_store::path::Path)> {
    let (scheme, rest) = url.split_once("://").unwrap_or_default();
    let path = rest.split_once('/').map_or("", |(_, path)| path);
    let objects = bucket(scheme, url).with_context(|| format!("{url}: cannot use this object store"))?;
    let place = object_store::path::Path::parse(path.trim_end_matches('/'))
        .with_context(|| format!("{url}: not a place in an object store"))?;
    Ok((objects, place))
}

fn folder(path: &Path) -> Result<Arc<dyn ObjectStore>> {
    let refused = || format!("{}: cannot use this folder", path.display());
    std::fs::create_dir_all(path).with_context(refused)?;
    for half_written in half_written(path).with_context(refused)? {
        // A process that was killed while it wrote cannot remove it; it does no harm.
        let _ = std::fs::remove_file(half_written);
    }
    Ok(Arc::new(LocalFileSystem::new_with_prefix(path).with_context(refused)?.with_fsync(true)))
}

/// Whether a file is a temporary one of a killed process: `object#number`, as `object_store` names them.
fn half_written(folder: &Path) -> std::io::Result<Vec<PathBuf>> {
    let paths: std::io::Result<Vec<PathBuf>> =
        std::fs::read_dir(folder)?.map(|entry| entry.map(|entry| entry.path())).collect();
    let is_temporary = |path: &PathBuf| {
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        name.rsplit_once('#').is_some_and(|(_, number)| number.bytes().all(|byte| byte.is_ascii_digit()))
    };
    Ok(paths?.into_iter().filter(is_temporary).collect())
}

fn bucket(scheme: &str, url: &str) -> Result<Arc<dyn ObjectStore>> {
    #[cfg(any(test, feature = "simulated"))]
    if scheme == "memory" {
        return Ok(memory::store(url));
    }
    // An error means that the process has its provider already.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let retry = RetryConfig { retry_timeout: TIMEOUT, ..RetryConfig::default() };
    let client = ClientOptions::new().with_timeout_disabled().with_connect_timeout(TIMEOUT / 3);
    // Plain HTTP is a store on the same machine or network, as its operator says in the environment.
    let plain = |variable| std::env::var(variable).is_ok_and(|value| value == "true");
    Ok(match scheme {
        "s3" | "s3a" => {
            let client = client.with_allow_http(plain("AWS_ALLOW_HTTP"));
            let store = AmazonS3Builder::from_env().with_url(url);
            Arc::new(store.with_client_options(client).with_retry(retry).build()?)
        }
        "gs" => {
            let store = GoogleCloudStorageBuilder::from_env().with_url(url);
            Arc::new(store.with_client_options(client).with_retry(retry).build()?)
        }
        "az" | "abfs" | "abfss" => {
            let client = client.with_allow_http(plain("AZURE_ALLOW_HTTP"));
            let store = MicrosoftAzureBuilder::from_env().with_url(url);
            Arc::new(store.with_client_options(client).with_retry(retry).build()?)
        }
        other => {
            bail!("{other}:// is not an object store; use a path, s3://, gs:// or az://")
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_object_is_created_once_and_a_version_replaced_once() {
        let store = Store::open("memory://versions").unwrap();
        let bytes = |text: &str| text.as_bytes().to_vec();
        let first = store.create("a", bytes("one")).unwrap().unwrap();
        assert_eq!(store.create("a", bytes("two")).unwrap(), None);
        assert_eq!(store.create("a", bytes("one")).unwrap(), Some(first.clone()), "an answer was lost");
        let second = store.replace("a", bytes("two"), &first).unwrap().unwrap();
        assert_eq!(store.replace("a", bytes("three"), &first).unwrap(), None);
        assert_eq!(
            store.replace("a", bytes("two"), &first).unwrap(),
            Some(second.clone()),
            "an answer was lost"
        );
        assert_eq!(store.find_version("a").unwrap(), Some((bytes("two"), second.clone())));
        store.remove("a").unwrap();
        assert_eq!(store.replace("a", bytes("three"), &second).unwrap(), None);
        store.check_conditional("probe").unwrap();
        assert!(store.list().unwrap().is_empty());
        let folder = tempfile::tempdir().unwrap();
        let folder = Store::open(&folder.path().display().to_string()).unwrap();
        let refused = format!("{:#}", folder.check_conditional("probe").unwrap_err());
        assert!(refused.contains("conditional writes"), "{refused}");
    }

    #[test]
    fn a_folder_keeps_whole_objects() {
        let dir = tempfile::tempdir().unwrap();
        let place = dir.path().join("new/folder");
        let store = Store::open(&place.display().to_string()).unwrap();
        assert_eq!(store.list().unwrap(), [""; 0]);
        store.put("b", b"two".to_vec()).unwrap();
        store.put("a", b"one".to_vec()).unwrap();
        store.put("a", b"one again".to_vec()).unwrap();
        assert_eq!(store.list().unwrap(), ["a", "b"]);
        assert_eq!(store.get("a").unwrap(), b"one again");
        store.remove("a").unwrap();
        store.remove("a").unwrap();
        assert_eq!(store.find("a").unwrap(), None);
        let error = format!("{:#}", store.get("a").unwrap_err());
        assert!(error.contains("new/folder/a: cannot be read"), "{error}");
    }

    #[test]
    fn files_of_any_size_are_put_into_folders_as_they_are() {
        let dir = tempfile::tempdir().unwrap();
        let store = Store::open(&dir.path().join("store").display().to_string()).unwrap();
        let file = dir.path().join("file");
        for (name, size) in [("17/out/empty", 0), ("17/out/one of it", 1000), ("17/large", 2 * PART + 5)] {
            let bytes: Vec<u8> = (0..size).map(|at| ((at * at) >> 7) as u8).collect();
            std::fs::write(&file, &bytes).unwrap();
            store.put_file(name, &file).unwrap();
            assert!(store.get(name).unwrap() == bytes, "{name}");
        }
        assert_eq!(store.list_below("17").unwrap(), ["large", "out/empty", "out/one of it"]);
        assert_eq!(store.list_below("17/out").unwrap(), ["empty", "one of it"]);
        assert_eq!(store.list_below("18").unwrap(), [""; 0]);
        assert_eq!(store.folders("17").unwrap(), ["out"]);
        assert_eq!(store.folders("18").unwrap(), [""; 0]);
        let mut downloaded = Vec::new();
        store.download("17/large").unwrap().read_to_end(&mut downloaded).unwrap();
        assert!(downloaded == store.get("17/large").unwrap());
        let error = format!("{:#}", store.download("17/none").err().unwrap());
        assert!(error.contains("17/none: cannot be read"), "{error}");
        assert!(store.put_file("no", &dir.path().join("none")).is_err());
    }

    #[test]
    fn temporary_files_of_killed_processes_are_no_objects_and_are_removed() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("000001.ckpt#1"), "half").unwrap();
        let store = Store::open(&dir.path().display().to_string()).unwrap();
        assert_eq!(store.list().unwrap(), [""; 0]);
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0);
    }

    /// A pipe has no bytes until a process writes into it, which may never happen.
    #[test]
    fn what_is_no_file_is_no_object() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("000001.ckpt"), "state").unwrap();
        let made = std::process::Command::new("mkfifo").arg(dir.path().join("000002.ckpt")).status().unwrap();
        assert!(made.success());
        let store = Store::open(&dir.path().display().to_string()).unwrap();
        assert_eq!(store.list().unwrap(), ["000001.ckpt"]);
        let errors = [store.get("000002.ckpt").err(), store.download("000002.ckpt").err()];
        for error in errors {
            assert!(error.unwrap().to_string().ends_with("000002.ckpt: not a regular file"));
        }
    }

    #[test]
    fn other_schemes_are_refused_with_the_ones_there_are() {
        let error = format!("{:#}", Store::open("ftp://host/path").err().unwrap());
        assert_eq!(
            error,
            "ftp://host/path: cannot use this object store: ftp:// is not an object store; use a path, s3://, \
             gs:// or az://"
        );
    }
}
