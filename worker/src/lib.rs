//! The worker: joins a coordinator, computes what it is assigned, answers, and owns nothing worth losing.
//!
//! In: tasks over one stream that it opens itself. Out: their answers. Computing happens on threads of its
//! own, so that signs of life never wait for it.
//!
//! Reading order: [`membership`] (decides), `driver` (acts), `connection` (the stream), `blobs` (what is
//! kept), `pool` (the threads).

use std::time::Duration;

use proto::route::RouteError;
use proto::tls::ClientTls;
use proto::token::Token;

pub mod membership;

mod driver;

mod connection;

mod blobs;

mod pool;

pub use driver::run;
pub use shared::work::engine::{Compute, engine};

/// Which coordinator, and with what.
#[derive(Clone)]
pub struct WorkerConfig {
    /// `http://host:port` of the coordinator, or `https://`.
    pub coordinator: String,
    /// Threads that compute, at least 1.
    pub threads: u32,
    /// What the coordinator asks for.
    pub token: Option<Token>,
    /// Whom to trust over `https://`, and the own certificate.
    pub tls: Option<ClientTls>,
    /// What the coordinator calls this worker in logs and summaries.
    pub name: String,
    /// Allows a coordinator beyond loopback without token or TLS.
    pub insecure: bool,
    /// How long to look for a coordinator that cannot be reached, or has no room.
    pub give_up_after: Duration,
    /// Encoded bytes of grammars, lexicons and shards to keep.
    pub cache_bytes: u64,
    /// How tasks are computed.
    pub compute: Compute,
}

impl Default for WorkerConfig {
    fn default() -> WorkerConfig {
        WorkerConfig {
            coordinator: String::new(),
            threads: std::thread::available_parallelism().map_or(1, |n| n.get() as u32),
            token: None,
            tls: None,
            name: "worker".into(),
            insecure: false,
            give_up_after: Duration::from_secs(300),
            cache_bytes: 1 << 30,
            compute: engine(),
        }
    }
}

/// Why a worker ends without having been told that the job is finished, or to leave.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// The coordinator's address is not a way to it.
    #[error(transparent)]
    Route(#[from] RouteError),
    /// A coordinator beyond loopback, with neither token nor TLS.
    #[error(
        "{url}: refusing a coordinator beyond loopback without a token; give one (--token-file, or {}), or use \
         https:// with --ca, or say --insecure",
        proto::token::TOKEN_VARIABLE
    )]
    Exposed {
        /// As given.
        url: String,
    },
    /// A name that no coordinator takes.
    #[error("--name of {found} bytes, expected at most {}", proto::MAX_NAME)]
    Name {
        /// Bytes given.
        found: usize,
    },
    /// A number of threads that no coordinator takes.
    #[error("{found} threads, expected 1 to {}", proto::MAX_SLOTS)]
    Threads {
        /// As given.
        found: u32,
    },
    /// The coordinator does not want this worker, or this worker does not trust it.
    #[error("{detail}")]
    Refused {
        /// Who refused whom, and why.
        detail: String,
    },
    /// The coordinator could not be reached, or had no room, for too long.
    #[error("no place with a coordinator at {url} for {waited:?}, giving up: {detail}")]
    GaveUp {
        /// As given.
        url: String,
        /// For how long.
        waited: Duration,
        /// The last error.
        detail: String,
    },
    /// The operating system refused a thread.
    #[error("cannot start a compute thread: {0}")]
    Thread(#[source] std::io::Error),
}
