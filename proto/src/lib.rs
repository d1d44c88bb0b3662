//! The wire between coordinator and workers, and its one conversion to and from the domain.
//!
//! In: bytes from a peer that may be old, broken or hostile. Out: values that are valid, or a typed error.
//! Invariant: only [`convert`] turns messages into domain values, and past it nothing is checked again.
//!
//! Reading order: `v1/work.proto` (the messages and their order), `v1/status.proto` (what watchers see),
//! `v1/jobs.proto` (what is asked of a service), [`payload`] (large values in pieces), [`convert`], [`token`] and [`tls`] (who may join),
//! [`route`] (how a coordinator is dialed).

/// Generated from `v1/*.proto`, where the messages are documented.
#[expect(missing_docs, reason = "documented in the .proto files")]
#[expect(clippy::all, reason = "generated")]
pub mod v1 {
    tonic::include_proto!("grammaton.v1");
}

pub mod payload;

pub mod convert;

mod secret;

pub mod token;

pub mod tls;

pub mod route;

pub mod log;

/// The messages' description, for the reflection service.
pub const DESCRIPTORS: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/descriptors.bin"));

/// Version of the protocol, sent in every hello; peers of another version are refused.
pub const VERSION: u32 = 4;

/// Largest message either side takes: a piece and its envelope.
pub const MAX_MESSAGE: usize = payload::PIECE + 64 * 1024;

/// Most tasks that a worker may compute at the same time.
pub const MAX_SLOTS: u32 = 4096;

/// Most bytes of a worker's name.
pub const MAX_NAME: usize = 256;

/// Most blobs that a worker may claim to hold: a hello is one message.
pub const MAX_HELD: usize = 16 * 1024;

/// How often a worker gives a sign of life.
pub const BEAT: std::time::Duration = std::time::Duration::from_secs(1);

/// How often either side makes sure of the connection; HTTP/2 does not by itself, and a peer that was cut off
/// would never be noticed.
pub const KEEP_ALIVE_INTERVAL: std::time::Duration = std::time::Duration::from_secs(5);

/// Silence on the connection, after such a question, that ends it.
pub const KEEP_ALIVE_TIMEOUT: std::time::Duration = std::time::Duration::from_secs(20);

/// Bytes under way before the receiver has taken them: a few pieces.
pub const WINDOW: u32 = 8 << 20;
