//! The work of a worker: what it is sent ([`shard`]), what it is asked and answers ([`task`], with a file for each kind), how it finds
//! the answer ([`engine`]), and which of its answers counts ([`lease`]).

mod content;
mod context;
pub mod counts;
pub mod engine;
mod error;
mod heap;
mod kinds;
mod language;
pub mod lease;
pub mod queue;
pub mod shard;
mod state;
pub mod task;
mod weights;
