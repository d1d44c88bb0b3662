//! Object stores of this process, as `memory://name`: with versions, as folders have none. In a thread with a [`Network`] requests and answers
//! take time and are lost, as a network loses them.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use object_store::memory::InMemory;
use object_store::path::Path;
use object_store::{
    CopyOptions, Error, GetOptions, GetResult, ListResult, MultipartUpload, ObjectMeta, ObjectStore,
    PutMultipartOptions, PutOptions, PutPayload, PutResult, Result,
};
use parking_lot::Mutex;
use tokio_stream::Stream;

use crate::clock::simulated;

type Stored<T> = Pin<Box<dyn Stream<Item = Result<T>> + Send>>;

static STORES: Mutex<BTreeMap<String, Arc<Memory>>> = Mutex::new(BTreeMap::new());

thread_local! {
    static NETWORK: RefCell<Option<Arc<dyn Network>>> = const { RefCell::new(None) };
}

/// Fates of a request.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Fate {
    /// The request arrives, and so does its answer.
    Arrives,
    /// The request is lost.
    RequestLost,
    /// The request arrives, and its answer is lost.
    AnswerLost,
    /// A write arrives so much later, after its sender got the error that it is lost.
    Late(Duration),
}

/// A network between a thread and the stores.
pub trait Network: Send + Sync {
    /// Waits as long as a request takes, and returns what happens to it.
    fn send(&self) -> Fate;

    /// Waits as long as an answer takes, or until there is none.
    fn receive(&self, fate: Fate);
}

/// Runs `work` with the stores behind `network`.
pub fn behind<T>(network: Arc<dyn Network>, work: impl FnOnce() -> T) -> T {
    NETWORK.set(Some(network));
    let done = work();
    NETWORK.set(None);
    done
}

fn name(url: &str) -> String {
    url.trim_start_matches("memory://").split('/').next().unwrap_or_default().to_owned()
}

/// The store that `url` names, which is made if it is not there.
pub fn store(url: &str) -> Arc<Memory> {
    STORES.lock().entry(name(url)).or_default().clone()
}

/// Makes `copy` what `url` is now.
pub fn copy(url: &str, copy: &str) {
    let copied = Memory { objects: store(url).objects.fork(), late: Mutex::default() };
    STORES.lock().insert(name(copy), Arc::new(copied));
}

/// Has all late writes to the store that `url` names arrive.
pub fn settle(url: &str) {
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    runtime.block_on(store(url).arrive_by(Duration::MAX));
}

/// Removes the store that `url` names.
pub fn remove(url: &str) {
    STORES.lock().remove(&name(url));
}

/// A store.
#[derive(Debug, Default)]
pub struct Memory {
    objects: InMemory,
    /// Writes under way, and when they arrive.
    late: Mutex<Vec<(Duration, Path, PutPayload, PutOptions)>>,
}

impl fmt::Display for Memory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.objects.fmt(f)
    }
}

fn lost<T>() -> Result<T> {
    Err(Error::Generic { store: "memory", source: "the connection is lost".into() })
}

impl Memory {
    /// Passes a request through the network of this thread. `later` is done with a request that arrives late.
    async fn pass<T>(
        &self,
        request: impl Future<Output = Result<T>> + Send,
        later: impl FnOnce(Duration) + Send,
    ) -> Result<T> {
        let Some(network) = NETWORK.with_borrow(Clone::clone) else { return request.await };
        let fate = network.send();
        self.arrive().await;
        let answer = match fate {
            Fate::Arrives => request.await,
            Fate::AnswerLost => request.await.and_then(|_| lost()),
            Fate::RequestLost => lost(),
            Fate::Late(late) => {
                later(simulated::true_time().unwrap_or_default() + late);
                lost()
            }
        };
        network.receive(fate);
        answer
    }

    /// Writes what has arrived by now.
    async fn arrive(&self) {
        self.arrive_by(simulated::true_time().unwrap_or_default()).await;
    }

    async fn arrive_by(&self, now: Duration) {
        let mut arrived: Vec<_> = self.late.lock().extract_if(.., |(at, ..)| *at <= now).collect();
        arrived.sort_by_key(|(at, ..)| *at);
        for (_, place, bytes, options) in arrived {
            // Its sender does not learn whether its condition held.
            let _ = self.objects.put_opts(&place, bytes, options).await;
        }
    }
}

#[async_trait::async_trait]
impl ObjectStore for Memory {
    async fn put_opts(&self, place: &Path, bytes: PutPayload, options: PutOptions) -> Result<PutResult> {
        let late = (place.clone(), bytes.clone(), options.clone());
        let later = |at| self.late.lock().push((at, late.0, late.1, late.2));
        self.pass(self.objects.put_opts(place, bytes, options), later).await
    }

    async fn put_multipart_opts(
        &self,
        place: &Path,
        options: PutMultipartOptions,
    ) -> Result<Box<dyn MultipartUpload>> {
        self.objects.put_multipart_opts(place, options).await
    }

    async fn get_opts(&self, place: &Path, options: GetOptions) -> Result<GetResult> {
        self.pass(self.objects.get_opts(place, options), drop).await
    }

    fn delete_stream(&self, places: Stored<Path>) -> Stored<Path> {
        self.objects.delete_stream(places)
    }

    fn list(&self, prefix: Option<&Path>) -> Stored<ObjectMeta> {
        self.objects.list(prefix)
    }

    async fn list_with_delimiter(&self, prefix: Option<&Path>) -> Result<ListResult> {
        self.pass(self.objects.list_with_delimiter(prefix), drop).await
    }

    async fn copy_opts(&self, from: &Path, to: &Path, options: CopyOptions) -> Result<()> {
        self.objects.copy_opts(from, to, options).await
    }
}
