//! What each command does. Every command has the same two items: its arguments, and `run`, which answers whether
//! the answer was positive. [`remote`] is how some of them reach a service.

pub mod bench;
pub mod cancel;
pub mod eval;
pub mod fetch;
pub mod inspect;
pub mod jobs;
pub mod keys;
pub mod logs;
pub mod parse;
pub mod plan;
pub mod remote;
pub mod sample;
pub mod serve;
pub mod status;
pub mod submit;
pub mod token;
pub mod train;
pub mod treebank;
pub mod workers;

use crate::signals::Signal;

/// How a command ended that could do its work.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Answer {
    /// Done.
    Yes,
    /// Done, and the answer is no.
    No,
    /// Not done: this signal asked it to stop, which it did, and said so.
    Stopped(Signal),
}
