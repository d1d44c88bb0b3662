//! Where whole objects are kept: a folder, or a prefix of an object store; and objects that are read piece by piece ([`Download`]).
//!
//! An object is there as a whole or not at all, and once [`Store::put`] returns it stays: in a folder it is written
//! aside, synced and renamed. Calls block, but not for ever: a disk that hangs or a network that is gone is an error after
//! [`PATIENCE`], and a little more for large objects. Credentials come from the environment as the store's own tools read
//! it (`AWS_ACCESS_KEY_ID`, `AWS_ENDPOINT`, …), never from a URL.

use std::future::Future;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use object_store::aws::AmazonS3Builder;
use object_store::azure::MicrosoftAzureBuilder;
use object_store::gcp::GoogleCloudStorageBuilder;
use object_store::local::LocalFileSystem;
use object_store::{ClientOptions, ObjectStore, ObjectStoreExt, RetryConfig};
use tokio::runtime::Runtime;

pub use self::download::Download;

mod download;

/// How long a call waits for a store that does not answer.
pub const PATIENCE: Duration = Duration::from_secs(30);

/// Bytes a second below which a store counts as one that does not answer.
const SLOWEST: u64 = 1 << 20;

/// Whether `location` is a URL, in an object store; else it is a path.
pub fn is_url(location: &str) -> bool {
    location.contains("://")
}

/// The URL that `path` is, if it is one.
pub fn url(path: &Path) -> Option<&str> {
    path.to_str().filter(|location| is_url(location))
}

/// `path` from any folder; a URL is that as it stands.
pub fn absolute(path: &Path) -> PathBuf {
    let absolute = || std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    url(path).map_or_else(absolute, PathBuf::from)
}

/// A folder or prefix.
pub struct Store {
    location: String,
    objects: Arc<dyn ObjectStore>,
    prefix: object_store::path::Path,
    patient: Patient,
}

impl Store {
    /// The store at `location`; a folder is made if it is not there. Not to be called within a runtime.
    pub fn open(location: &str) -> Result<Store> {
        let (objects, prefix) = match is_url(location) {
            false => (folder(Path::new(location))?, object_store::path::Path::default()),
            true => reach(location)?,
        };
        Ok(Store { location: location.to_owned(), objects, prefix, patient: Patient::new()? })
    }

    /// The object's place, for messages.
    pub fn describe(&self, name: &str) -> String {
        format!("{}/{name}", self.location.trim_end_matches('/'))
    }

    /// Names of all objects directly in it, sorted.
    pub fn list(&self) -> Result<Vec<String>> {
        let listed = self.patient.ask(0, self.objects.list_with_delimiter(Some(&self.prefix)));
        let listed = listed.with_context(|| format!("{}: cannot be listed", self.location))?;
        let names = listed.objects.iter().filter_map(|object| object.location.filename().map(str::to_owned));
        let mut names: Vec<String> = names.collect();
        names.sort_unstable();
        Ok(names)
    }

    /// The bytes of an object.
    pub fn get(&self, name: &str) -> Result<Vec<u8>> {
        let place = self.prefix.clone().join(name);
        let size = self.patient.ask(0, self.objects.head(&place)).map_or(0, |found| found.size as usize);
        let bytes = self.patient.ask(size, async { self.objects.get(&place).await?.bytes().await });
        Ok(bytes.with_context(|| format!("{}: cannot be read", self.describe(name)))?.to_vec())
    }

    /// Puts a whole object there.
    pub fn put(&self, name: &str, bytes: Vec<u8>) -> Result<()> {
        let place = self.prefix.clone().join(name);
        let put = self.patient.ask(bytes.len(), self.objects.put(&place, bytes.into()));
        put.map(drop).with_context(|| format!("{}: cannot be written", self.describe(name)))
    }

    /// Removes an object; none there is as good.
    pub fn remove(&self, name: &str) -> Result<()> {
        let place = self.prefix.clone().join(name);
        let remove = async {
            match self.objects.delete(&place).await {
                Err(object_store::Error::NotFound { .. }) => Ok(()),
                removed => removed,
            }
        };
        self.patient.ask(0, remove).with_context(|| format!("{}: cannot be removed", self.describe(name)))
    }
}

/// Who waits for answers.
struct Patient {
    /// Always there until it is dropped.
    runtime: Option<Runtime>,
}

impl Patient {
    fn new() -> Result<Patient> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        Ok(Patient { runtime: Some(runtime.context("cannot start a runtime for the store")?) })
    }

    /// Waits for an answer about `bytes`, not for ever.
    fn ask<T>(&self, bytes: usize, answer: impl Future<Output = object_store::Result<T>>) -> Result<T> {
        let runtime = self.runtime.as_ref().context("the store is closed")?;
        let patience = PATIENCE + Duration::from_secs(bytes as u64 / SLOWEST);
        let answer = runtime.block_on(async { tokio::time::timeout(patience, answer).await });
        Ok(answer.with_context(|| format!("no answer for {patience:?}"))??)
    }
}

impl Drop for Patient {
    /// Without waiting for a disk that hangs.
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

/// The object store that `url` speaks of, and the place in it.
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
        // Whoever was killed while writing it cannot remove it; that it stays does no harm.
        let _ = std::fs::remove_file(half_written);
    }
    Ok(Arc::new(LocalFileSystem::new_with_prefix(path).with_context(refused)?.with_fsync(true)))
}

/// What a killed process left: `object#number`, as `object_store` names files that it writes aside.
fn half_written(folder: &Path) -> std::io::Result<Vec<PathBuf>> {
    let paths: std::io::Result<Vec<PathBuf>> =
        std::fs::read_dir(folder)?.map(|entry| entry.map(|entry| entry.path())).collect();
    let aside = |path: &PathBuf| {
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        name.rsplit_once('#').is_some_and(|(_, number)| number.bytes().all(|byte| byte.is_ascii_digit()))
    };
    Ok(paths?.into_iter().filter(aside).collect())
}

fn bucket(scheme: &str, url: &str) -> Result<Arc<dyn ObjectStore>> {
    // An error means that the process has its provider already.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let retry = RetryConfig { retry_timeout: PATIENCE, ..RetryConfig::default() };
    let client = ClientOptions::new().with_timeout_disabled().with_connect_timeout(PATIENCE / 3);
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
        let error = format!("{:#}", store.get("a").unwrap_err());
        assert!(error.contains("new/folder/a: cannot be read"), "{error}");
    }

    #[test]
    fn what_a_killed_process_left_is_not_an_object_and_goes() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("000001.ckpt#1"), "half").unwrap();
        let store = Store::open(&dir.path().display().to_string()).unwrap();
        assert_eq!(store.list().unwrap(), [""; 0]);
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0);
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
