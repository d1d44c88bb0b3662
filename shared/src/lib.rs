//! Grammars, corpora, forests and variational inference: all of Grammaton's mathematics and data.
//!
//! Synchronous and pure: no clock, no entropy, no sockets; other cores only within a call ([`num::blocks`]). A result depends on its
//! arguments and nothing else, so the coordinator and every worker call the same functions and get the same bits.
//!
//! In the order of reading, in which a module uses those before it and none after it (`tests/tests/all/order.rs`): [`limits`] (what is too large),
//! [`stop`] (the end of a computation on request), [`num`] (numbers), [`grammar`] (rules, trees, parameters), [`data`] (what is read,
//! written and scored), [`forest`] (packed derivations and the algorithms on them), [`models`] (each with its paper), [`work`] (what a worker is asked, and how it answers), [`train`] (what
//! becomes of the answers). Everything up to [`models`] is a library that knows of no worker.

pub mod limits;

pub mod stop;

pub mod num;

pub mod grammar;

pub mod data;

pub mod forest;

pub mod models;

pub mod work;

pub mod train;

pub mod settings;
