//! What each command does. Every command has the same two items: its arguments, and `run`, which answers whether
//! the answer was positive.

pub mod bench;
pub mod eval;
pub mod inspect;
pub mod parse;
pub mod plan;
pub mod sample;
pub mod status;
pub mod train;
pub mod treebank;

/// How a command ended that could do its work.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Answer {
    /// Done.
    Yes,
    /// Done, and the answer is no.
    No,
}
