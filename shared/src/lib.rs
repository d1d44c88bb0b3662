#![doc = include_str!("../README.md")]
//!
//! # The modules
//!
//! Synchronous and pure: no clock, no entropy, no sockets; other cores only within a call ([`num::blocks`]). A result depends on its
//! arguments and nothing else, so the coordinator and every worker call the same functions and get the same bits.
//!
//! In the order of reading, in which a module uses those before it and none after it (`tests/tests/all/order.rs`):
//!
//! - *numbers and data*: [`limits`] (what is too large), [`stop`] (the end of a computation on request), [`sealed`] (files with a checksum),
//!   [`num`] (numbers), [`grammar`] (rules, trees, parameters), [`data`] (what is read, written and scored);
//! - *models*: [`forest`] (packed derivations and the algorithms on them), [`models`] (each with its paper);
//! - *training*: [`work`] (tasks and answers), [`train`] (trainers, which move the parameters by the answers), [`settings`] (what can be
//!   set), [`methods`] (which trainer a method has), [`prepare`] (what comes before the rounds);
//! - *in one process*: [`decoding`] (with a model in memory), [`saved`] (the model file), [`fit`].

pub mod limits;

pub mod stop;

pub mod encoding;

pub mod sealed;

pub mod num;

pub mod grammar;

pub mod data;

pub mod forest;

pub mod models;

pub mod work;

pub mod train;

pub mod settings;

pub mod methods;

pub mod prepare;

pub mod decoding;

pub mod saved;

pub mod fit;

pub use data::corpus::Corpus;
pub use data::treebank::Treebank;
pub use fit::{Fit, FitError};
pub use grammar::Grammar;
pub use grammar::tree::Tree;
pub use models::decode::Decoder;
pub use saved::{Analysis, SavedModel as Model};
pub use settings::{Inference, Method};
