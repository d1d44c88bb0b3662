//! The coordinator and the command line `grammaton`.
//!
//! Reading order: [`cli`] (what a user may ask), [`commands`] (how each is answered), [`job`] (the job file),
//! [`metrics`] (what is measured), [`output`] (the folder of results), [`model`] (the model file),
//! [`progress`] and [`report`] (what a user sees).

pub mod cli;

pub mod commands;

pub mod job;

pub mod fleet;

pub mod train;

pub mod metrics;

pub mod outcome;

pub mod model;

pub mod input;

pub mod output;

pub mod progress;

pub mod report;

pub mod streams;

pub mod nearest;

#[cfg(test)]
mod fixture;
