//! The kinds of work, one a file: what is asked of a shard, what is answered, what the answer takes in memory, and how it is
//! computed.
//!
//! To add a kind, write its file, and add it to [`Work`](super::task::Work), to [`Answer`](super::task::Answer) and to
//! [`Engine::run`](super::engine::Engine::run).

pub mod annotate;
pub mod candidates;
pub mod collapse;
pub mod cover;
pub mod decode;
pub mod expect;
pub mod fit;
pub mod index;
pub mod sample;
pub mod sweep;
