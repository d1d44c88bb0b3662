//! Training as the coordinator sees it: each method has a [`trainer`], which says what the shards are asked in a [`round`] and moves the
//! parameters by their answers.
//!
//! [`adaptor`] for adaptor grammars, [`pcfg`] for PCFGs, [`latent`] for latent annotations,
//! [`logistic_normal`] with its [`mixture`]s of components, [`chain`] for Markov chains; [`stochastic`] chooses the shards of a round,
//! [`anneal`] its temperature.

pub mod adaptor;
pub mod anneal;
pub mod chain;
pub mod latent;
pub mod logistic_normal;
pub mod mixture;
pub mod pcfg;
pub mod round;
pub mod state;
pub mod stochastic;
pub mod trainer;
