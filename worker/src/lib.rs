//! The worker: joins a coordinator, computes the tasks that it is assigned, and answers them. It holds no state that the
//! coordinator could not rebuild.
//!
//! In: tasks over one stream that it opens itself. Out: their answers. Tasks are computed on separate threads, so that
//! heartbeats never wait for them; a task that the coordinator withdraws is stopped.
//!
//! Reading order: [`membership`] (decides), `driver` (acts), `connection` (the stream), `blobs` (the cache), `pool` (the
//! threads), [`restart`] (a process whose thread does not stop), [`command`] (its command line).

use std::time::Duration;

use grammaton::work::lease::LeaseId;
use proto::route::RouteError;
use proto::tls::ClientTls;
use proto::token::Token;

pub mod membership;

mod driver;

mod connection;

mod blobs;

mod pool;

pub mod restart;

pub mod command;

pub use driver::run;
pub use grammaton::work::engine::{Compute, engine};

/// Settings of a worker.
#[derive(Clone)]
pub struct WorkerConfig {
    /// `http://host:port` of the coordinator, or `https://`.
    pub coordinator: String,
    /// Threads that compute, at least 1.
    pub threads: u32,
    /// Token to show to the coordinator.
    pub token: Option<Token>,
    /// Authority to trust over `https://`, and the own certificate.
    pub tls: Option<ClientTls>,
    /// Name of this worker in the coordinator's logs and summaries.
    pub name: String,
    /// Allows a coordinator beyond loopback without token or TLS.
    pub insecure: bool,
    /// Time after which the worker exits if it cannot reach a coordinator, or its fleet is full.
    pub give_up_after: Duration,
    /// Encoded bytes of grammars, lexicons and shards to keep.
    pub cache_bytes: u64,
    /// Function that computes a task.
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

/// Errors that end a worker.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// The coordinator's address is invalid, or does not match the TLS settings.
    #[error(transparent)]
    Route(#[from] RouteError),
    /// The coordinator is beyond loopback, and there is neither token nor TLS.
    #[error(
        "{url}: refusing a coordinator beyond loopback without a token; give one (--token-file, or {}), or use \
        https:// with --ca, or give --insecure",
        proto::token::TOKEN_VARIABLE
    )]
    Exposed {
        /// The URL.
        url: String,
    },
    /// The name is too long.
    #[error("--name of {found} bytes, expected at most {}", proto::MAX_NAME)]
    Name {
        /// Bytes given.
        found: usize,
    },
    /// The number of threads is out of range.
    #[error("{found} threads, expected 1 to {}", proto::MAX_SLOTS)]
    Threads {
        /// The number of threads.
        found: u32,
    },
    /// The coordinator refused this worker, or this worker does not trust the coordinator.
    #[error("{detail}")]
    Refused {
        /// The side that refused, and the reason.
        detail: String,
    },
    /// The coordinator could not be reached, or its fleet was full, for too long.
    #[error("could not join the coordinator at {url} for {:.0} s, giving up: {detail}", .waited.as_secs_f64())]
    GaveUp {
        /// The URL.
        url: String,
        /// Time since the worker was last a member, or since its start.
        waited: Duration,
        /// The last error.
        detail: String,
    },
    /// A thread does not stop. The process is to be replaced by a new one: its other threads are of no use to a coordinator that counts the
    /// slot of this one as taken.
    #[error(
        "task {lease} did not stop within {:.0} s after the coordinator withdrew it, so its thread is lost", .waited.as_secs_f64()
    )]
    Stuck {
        /// The task.
        lease: LeaseId,
        /// Time since its withdrawal.
        waited: Duration,
    },
    /// The operating system refused a thread.
    #[error("cannot start a compute thread: {0}")]
    Thread(#[source] std::io::Error),
}
