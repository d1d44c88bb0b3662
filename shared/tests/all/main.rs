//! Tests of the mathematics, through the public items of the crate. One binary: each file is a module.
//! `docs/MATHS.md` says which test stands for which equation.

#![allow(clippy::disallowed_methods, reason = "references are computed by functions of std")]

mod support;

mod auto;
mod corpus;
mod grammar;
mod grammar_examples;
mod sample;
mod sample_example;
mod substrings;

mod brute_force;
mod candidates;
mod decode;
mod dense;
mod determinism;
mod forest_sample;
mod laws;
mod n_best;
mod stop;

mod bound;
mod brackets;
mod paper;
mod pcfg;
mod svb;

mod sampler;
mod sampler_exact;
mod sampler_geweke;

mod latent;
mod latent_parse;

mod dependency_example;
mod dmv;
mod dmv_constraint;
mod dmv_factors;
mod dmv_nouns;
mod dmv_parity;

mod logistic_normal;
mod logistic_normal_dmv;
mod logistic_normal_mixture;
mod logistic_normal_rounds;
mod mixture;

mod eval;
mod fit;
mod reader;
