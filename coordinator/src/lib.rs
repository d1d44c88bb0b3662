//! The coordinator and the command line `grammaton`.
//!
//! In the order of reading, in which a module uses those before it and none after it (`tests/tests/all/order.rs`):
//!
//! - *ground*: [`human`] (numbers as people read them), [`nearest`], [`streams`], [`store`] (files and object stores), [`sealed`] (files with a checksum), [`access`] (who may do what);
//! - *who computes*: [`fleet`];
//! - *training*: [`job`] (the job file), [`input`], [`model`] (the model file), [`metrics`] and [`outcome`] (what training tells and gives),
//!   [`snapshot`] (what can be seen meanwhile), [`observer`] (who is told), [`train`], [`row`];
//! - *results*: [`progress`] and [`report`] (what a user sees), [`output`] (the folder of results), [`run`] (a job from its file to its results);
//! - *many jobs*: [`status`] (what goes on now), [`service`], [`web`] (the same in a browser, and for Prometheus);
//! - *the command line*: [`signals`], [`commands`], [`cli`].

pub mod human;

pub mod nearest;

pub mod streams;

/// Faults of storage, for tests.
mod faults;

pub mod store;

pub mod sealed;

pub mod access;

pub mod fleet;

pub mod job;

pub mod input;

pub mod model;

pub mod row;

pub mod metrics;

pub mod outcome;

pub mod snapshot;

pub mod observer;

pub mod train;

pub mod progress;

pub mod report;

pub mod output;

pub mod run;

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
