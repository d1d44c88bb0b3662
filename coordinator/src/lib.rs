//! The coordinator and the command line `grammaton`.
//!
//! Modules in the order of reading; a module uses only modules before it (`tests/tests/all/order.rs`):
//!
//! - *basics*: [`human`] (formatting of numbers), [`nearest`], [`streams`], [`atomic_write`] (files written under a temporary name and renamed), [`clock`], [`store`] (folders and object stores), [`sealed`] (files with a
//!   checksum), [`access`] (tokens and roles), [`revocation`] (streams that end with a token), [`connection_limits`] (connections
//!   of unknown peers);
//! - *computing*: [`fleet`];
//! - *training*: [`job`] (the job file), [`input`], [`model`] (the model file), [`decoding`] (with a trained model), [`metrics`] and [`outcome`] (metrics of rounds, and
//!   results), [`baselines`] (scores below those of trivial analyses), [`snapshot`] (learned parameters for display), [`events`] (events of a run, and their readers), [`time_left`] (an estimate), [`train`], [`choice`] (of grammars, without gold), [`row`];
//! - *results*: [`progress`] and [`report`] (terminal and HTML), [`output`] (the folder of results), [`run`] (a job from its file to its
//!   results), [`job_process`] (the same in a process of its own);
//! - *service*: [`status`] (the status of a run), [`service`], [`web`] (its pages, and Prometheus metrics);
//! - *the command line*: [`signals`], [`commands`], [`cli`].

pub mod human;

pub mod nearest;

pub mod streams;

pub mod atomic_write;

pub mod clock;

/// Faults of storage, for tests.
mod faults;

pub mod store;

pub mod sealed;

pub mod access;

pub mod revocation;

pub mod connection_limits;

pub mod fleet;

pub mod job;

pub mod input;

pub mod model;

pub mod row;

pub mod metrics;

pub mod baselines;

pub mod outcome;

pub mod decoding;

pub mod snapshot;

pub mod events;

pub mod time_left;

pub mod train;

pub mod choice;

pub mod cascade;

pub mod progress;

pub mod report;

pub mod output;

pub mod run;

pub mod job_process;

pub mod status;

pub mod service;

pub mod web;

pub mod signals;

pub mod commands;

pub mod cli;

#[cfg(test)]
mod fixture;

#[cfg(test)]
#[path = "../../tests/src/requirement.rs"]
mod requirement;
