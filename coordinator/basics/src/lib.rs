//! What all other crates of the coordinator use: files and stores, the clock, and texts for people.
//!
//! - *texts*: [`human`] (formatting of numbers), [`nearest`] (the known name that a misspelt one is nearest to), [`streams`] (standard output and
//!   error);
//! - *files*: [`atomic_write`] (files written under a temporary name and renamed), [`paths`] (those that others send), [`store`] (folders and
//!   object stores), [`faults`] (faults of storage, for tests);
//! - [`clock`], and [`memory`] of processes.

pub mod human;

pub mod nearest;

pub mod streams;

pub mod atomic_write;

pub mod paths;

pub mod clock;

pub mod memory;

pub mod faults;

pub mod store;
