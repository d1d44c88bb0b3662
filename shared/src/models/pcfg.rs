//! PCFGs with Dirichlet priors, and the methods that estimate them (Johnson, Griffiths & Goldwater 2007; Wang & Blunsom 2013).
//!
//! A grammar is so many multinomials ([`Groups`](crate::grammar::groups::Groups)): one for the rules of each nonterminal, one for the strings of each that
//! rewrites to substrings. What a method knows is an [`Estimate`](crate::grammar::groups::Estimate): pseudo-counts α and (expected or sampled) counts f. Each
//! method is a file with the same two functions:
//!
//! - `weights`: what a round runs with, from α and f;
//! - `bound`: the objective, from α, f and the Σ log Z of a round that ran with the weights.
//!
//! | method | weight of a rule | what a round does with it | objective |
//! |---|---|---|---|
//! | [`em`] | f / F | expected counts | log-likelihood |
//! | [`map_em`] | max(0, f + α − 1), normalised | expected counts | log-posterior |
//! | [`vb`] | exp(Ψ(α + f) − Ψ(Σ α + f)) | expected counts | the variational bound |
//! | [`gibbs`] | a draw from Dirichlet(α + f) | one tree for each sentence | log P(trees \| α) |
//! | [`collapsed`] | (α + f) / Σ (α + f), f without the sentence itself | collapsed VB: expected counts; Hastings: one tree | Σ log Z; log P(trees \| α) |
//!
//! [`crate::train::pcfg`] takes them from round to round.
//!
//! Two rounds of variational Bayes on one sentence; the bound rises:
//!
//! ```
//! use grammaton::forest::Prepared;
//! use grammaton::forest::inside::expected_uses;
//! use grammaton::grammar::groups::{Estimate, Groups};
//! use grammaton::grammar::lexicon::Lexicon;
//! use grammaton::grammar::{Grammar, syntax};
//! use grammaton::models::pcfg::vb;
//!
//! let (grammar, _) = syntax::parse("1 1 S --> S S\n1 1 S --> a\n1 1 S --> b\n", "grammar").unwrap();
//! let tokens = grammar.tokens("a a b").unwrap();
//! let groups = Groups::new(&grammar, &Lexicon::default());
//! let mut estimate = Estimate { alpha: groups.alpha(&grammar), counts: vec![0.0; groups.n_params()] };
//! let prepared = Prepared::new(grammar, Lexicon::default());
//! let forest = prepared.builder(false).build(Grammar::START.0, &tokens)?.expect("a derivation");
//!
//! let mut bounds = Vec::new();
//! for _ in 0..2 {
//!     let (z, uses) = expected_uses(&forest, &vb::weights(&groups, &estimate));
//!     bounds.push(vb::bound(&groups, &estimate, z.ln()));
//!     estimate.counts = uses;
//! }
//! assert!(bounds[0] < bounds[1]);
//! # Ok::<(), grammaton::forest::TooAmbiguous>(())
//! ```

pub mod em;

pub mod map_em;

pub mod vb;

pub mod backoff;

pub mod gibbs;

pub mod collapsed;

pub mod params;

pub mod trees;

pub use params::{Params, ParamsError};
