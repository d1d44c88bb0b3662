//! The work of a worker: what it is sent ([`shard`]), what it is asked and answers ([`task`]),
//! how it finds the answer ([`engine`]), and which of its answers is meant ([`lease`]).

pub mod engine;
pub mod lease;
pub mod shard;
pub mod task;
