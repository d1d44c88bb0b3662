//! The wire between coordinator and workers, and the checks of what arrives.
//!
//! In: bytes from a peer that may be old, broken or hostile. Out: values that are valid, or a typed error.
//! Messages are protobuf, which others can read; the values in their payloads are bincode of the library's own types.
//!
//! Reading order: `v1/work.proto` (the messages and their order), `v1/status.proto` (the status of a coordinator),
//! `v1/jobs.proto` (requests to a service), [`payload`] (large values in pieces), [`check`], [`blob`] and [`lease`] (a task and its parts), [`token`]
//! and [`tls`] (authentication), [`route`] (connecting to a coordinator).

/// Generated from `v1/*.proto`, where the messages are documented.
#[expect(missing_docs, reason = "documented in the .proto files")]
#[expect(clippy::all, reason = "generated")]
pub mod v1 {
    tonic::include_proto!("grammaton.v1");
}

pub mod payload;

pub mod check;

pub mod blob;

pub mod lease;

mod secret;

pub mod token;

pub mod tls;

pub mod route;

pub mod log;

pub mod cpu_time;

/// Encoded descriptors of the messages, for the gRPC reflection service.
pub const DESCRIPTORS: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/descriptors.bin"));

/// The version with the commit of a release build and the target, for `--version`.
pub const BUILD: &str = env!("GRAMMATON_BUILD");

/// The commit of a release build; empty if it is unknown.
pub const COMMIT: &str = env!("GRAMMATON_BUILT_COMMIT");

/// Version of the protocol, sent in every hello; peers of another version are refused.
pub const VERSION: u32 = 13;

/// Largest message that either side accepts, in bytes: a piece and its envelope.
pub const MAX_MESSAGE: usize = payload::PIECE + 64 * 1024;

/// Maximum number of tasks that a worker may compute at the same time.
pub const MAX_SLOTS: u32 = 1024;

/// Maximum length of a worker's name, in bytes.
pub const MAX_NAME: usize = 256;

/// Maximum number of blobs that a worker may claim to hold: a hello is one message.
pub const MAX_HELD: usize = 12 * 1024;

/// Interval between the heartbeats of a worker.
pub const HEARTBEAT_INTERVAL: std::time::Duration = std::time::Duration::from_secs(1);

/// Interval between HTTP/2 keep-alive pings. Without them neither side would notice that the network lost its peer.
pub const KEEP_ALIVE_INTERVAL: std::time::Duration = std::time::Duration::from_secs(5);

/// Time without an answer to a keep-alive ping after which the connection is closed.
pub const KEEP_ALIVE_TIMEOUT: std::time::Duration = std::time::Duration::from_secs(20);

/// Largest HTTP/2 frame in bytes: each is a system call of both sides.
pub const FRAME: u32 = 256 << 10;

/// HTTP/2 flow-control window in bytes: a few pieces.
pub const WINDOW: u32 = 8 << 20;
