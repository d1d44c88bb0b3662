//! Grammars, corpora, forests and variational inference: all of Grammaton's mathematics and data.
//!
//! Synchronous and pure: no clock, no entropy, no sockets; other cores only within a call ([`num::blocks`]). A result depends on its
//! arguments and nothing else, so the coordinator and every worker call the same functions and get the same bits.
//!
//! Reading order: [`num`] (numbers), [`grammar`], [`corpus`], [`shard`] (what travels), [`forest`]
//! (packed derivations and the algorithms on them), [`adaptor`] (Cohen, Blei & Smith 2010), [`pcfg`] (Johnson, Griffiths &
//! Goldwater 2007; Wang & Blunsom 2013), [`dmv`] (Klein & Manning 2004), [`sampler`] (trees given the rest, for all),
//! [`logistic_normal`] (a prior under which outcomes go together), [`mixture`] (components by weights), [`task`] (what a worker is asked and answers), [`compute`] (how it
//! answers), [`eval`].

pub mod num;

pub mod grammar;

pub mod corpus;

pub mod shard;

pub mod tree;

pub mod treebank;

pub mod dependency;

pub mod latent;

pub mod forest;

pub mod anneal;

pub mod round;

pub mod stochastic;

pub mod adaptor;

pub mod pcfg;

pub mod dmv;

pub mod sampler;

pub mod logistic_normal;

pub mod mixture;

pub mod model;

pub mod task;

pub mod compute;

pub mod sample;

pub mod eval;
