//! The coordinator and the command line `grammaton`.
//!
//! Reading order: [`cli`] (what a user may ask), [`commands`] (how each is answered), [`job`] (the job file),
//! [`fleet`] (who computes), [`metrics`] and [`outcome`] (what training tells and gives; [`glimpse`] is what can be seen meanwhile), [`output`] (the folder of
//! results), [`model`] (the model file), [`progress`] and [`report`] (what a user sees), [`service`] (many jobs at once, for those whom
//! [`access`] lets in), [`page`] (the same in a browser).

pub mod cli;

pub mod commands;

pub mod job;

pub mod fleet;

pub mod train;

pub mod metrics;

pub mod glimpse;

pub mod outcome;

pub mod output;

pub mod run;

pub mod sealed;

pub mod model;

pub mod store;

pub mod access;

pub mod service;

pub mod checkpoint;

pub mod status;

pub mod page;

pub mod progress;

pub mod report;

pub mod input;

pub mod streams;

pub mod nearest;

#[cfg(test)]
mod fixture;
