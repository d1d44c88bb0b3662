#![doc = include_str!("../README.md")]
//!
//! # What is promised
//!
//! The items of this documentation: they change only with the version. All other modules are public for the crates of this workspace alone,
//! which train on many machines, and may change at any time.
//!
//! A result depends on its arguments and nothing else: there is no clock, no entropy and no socket, and other cores work only within a call.

#![cfg_attr(test, allow(clippy::disallowed_methods, reason = "tests compare with functions of std"))]

// In the order of reading, in which a module uses those before it and none after it (`tests/tests/all/order.rs`).

// Numbers and data.

#[doc(hidden)]
pub mod limits;

#[doc(hidden)]
pub mod stop;

#[doc(hidden)]
pub mod encoding;

#[doc(hidden)]
pub mod sealed;

#[doc(hidden)]
pub mod num;

pub mod grammar;

pub mod data;

// Models.

#[doc(hidden)]
pub mod forest;

#[doc(hidden)]
pub mod models;

// Training: tasks and answers, trainers, which move the parameters by the answers, and what can be set.

#[doc(hidden)]
pub mod work;

#[doc(hidden)]
pub mod train;

pub mod settings;

#[doc(hidden)]
pub mod methods;

#[doc(hidden)]
pub mod prepare;

// In one process.

#[doc(hidden)]
pub mod decoding;

#[doc(hidden)]
pub mod saved;

#[doc(hidden)]
pub mod fit;

#[doc(inline)]
pub use data::corpus::Corpus;
#[doc(inline)]
pub use data::dependency::Sentence;
#[doc(inline)]
pub use data::treebank::Treebank;
#[doc(inline)]
pub use fit::{Dataset, Fit, FitError, Round};
#[doc(inline)]
pub use grammar::Grammar;
#[doc(inline)]
pub use grammar::tree::Tree;
#[doc(inline)]
pub use models::decode::Decoder;
#[doc(inline)]
pub use saved::{Analysis, Entry, Model, ModelError, ParseError};
#[doc(inline)]
pub use settings::{Inference, Method};
