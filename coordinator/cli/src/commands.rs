//! The commands. Every command has its arguments and a function `run`, which returns whether the answer was positive. [`remote`]
//! connects to a service.

pub mod annotate;
pub mod bench;
pub mod cancel;
pub mod check;
pub mod compare;
pub mod completions;
pub mod demo;
pub mod dependencies;
pub mod eval;
pub mod export;
pub mod fetch;
pub mod grammars;
pub mod inspect;
pub mod job_process;
pub mod jobs;
pub mod keys;
pub mod logs;
pub mod man;
pub mod morphemes;
pub mod new;
pub mod parse;
pub mod plan;
pub mod remote;
pub mod run;
pub mod sample;
pub mod segment;
pub mod serve;
pub mod status;
pub mod submit;
pub mod suggest;
pub mod token;
pub mod train;
pub mod treebank;
pub mod up;
pub mod workers;

use crate::signals::Signal;

/// Outcome of a command without an error.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Answer {
    /// Done.
    Yes,
    /// Done, with a negative answer.
    No,
    /// Stopped by this signal, and reported as stopped.
    Stopped(Signal),
}
