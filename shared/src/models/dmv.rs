//! The dependency model with valence (Klein & Manning 2004), as a PCFG over doubled tags.
//!
//! Every word, known by its tag h, is two tokens: the half `h<` that its left children hang on and the half `h>` for the right
//! ones. The model is then an ordinary grammar ([`grammar()`]) whose multinomials are those of the DMV, one by one, so that every
//! estimator of [`crate::models::pcfg`], every forest and every sampler does for it what it does for others:
//!
//! ```text
//! S        → h.L h.R                     root(h)
//! h.R      → h>  | h.R.more              stop, or continue, without a child yet
//! h.R.rest → h>  | h.R.more              stop, or continue, with one already
//! h.R.more → h.R.rest c.L c.R            attach(c | h, right)
//! h.L      → h<  | h.L.more
//! h.L.rest → h<  | h.L.more
//! h.L.more → c.L c.R h.L.rest            attach(c | h, left)
//! ```
//!
//! Children come from the outermost to the innermost here, and from the innermost in the paper. Which way does not matter: k
//! children on a side cost continue(no child) once, continue(has child) k − 1 times and stop(has child) once in both.
//!
//! With extended valence ([`extended`]; Headden, Johnson & McClosky 2009) there are three decisions to stop on a side, before the first child, the second,
//! and another one, and the first child, the outermost, has probabilities of its own:
//!
//! ```text
//! h.R       → h>  | h.R.first             without a child yet
//! h.R.one   → h>  | h.R.more              with one
//! h.R.rest  → h>  | h.R.more              with two or more
//! h.R.first → h.R.one c.L c.R             attach first(c | h, right)
//! h.R.more  → h.R.rest c.L c.R            attach(c | h, right)
//! ```
//!
//! There are then too many probabilities for short texts, so the priors of both kinds of children have the proportions of all children together
//! ([`crate::models::pcfg::backoff`]).
//!
//! Each span has its head at an end, and the part `h.R.rest c.L` of a right-hand side, or `c.R h.L.rest`, is the trapezoid of
//! Eisner & Satta (1999), from the head to its child: a sentence of n words is parsed in O(n³).
//!
//! In this order: [`layout`] (which parameter is which event), [`heads`] (derivations as dependency trees, and back),
//! [`harmonic`] (where training starts), [`families`] (attachments that a prior relates), [`decode`] (the best trees), [`constraint`]
//! (trees that are not allowed), [`factors`] (what is known of arcs), [`rules`] (what is known of tags), [`biases`] (what the sentences
//! themselves say of their tags), [`nouns`] (noun constituents that are remembered). There are exactly one root and no crossing arcs.
//!
//! The harmonic start, and the best tree under it:
//!
//! ```
//! use grammaton::forest::Prepared;
//! use grammaton::grammar::groups::{Estimate, Groups};
//! use grammaton::grammar::lexicon::Lexicon;
//! use grammaton::grammar::Grammar;
//! use grammaton::models::dmv::{self, Layout, decode, harmonic};
//! use grammaton::models::pcfg::em;
//!
//! // The tags of three sentences, by number.
//! let tags = ["N", "V"].map(str::to_owned);
//! let (layout, sentences) = (Layout::new(tags.len()), [vec![0, 1], vec![0, 1, 0], vec![1, 0]]);
//! let grammar = dmv::grammar(&tags).unwrap();
//! let groups = Groups::new(&grammar, &Lexicon::default());
//! let counts = harmonic::counts(layout, &sentences, &Default::default());
//! let weights = em::weights(&groups, &Estimate { alpha: groups.alpha(&grammar), counts });
//!
//! let prepared = Prepared::new(grammar, Lexicon::default());
//! let tokens = layout.tokens(&sentences[1]);
//! let forest = prepared.builder(false).build(Grammar::START.0, &tokens)?.expect("a tree");
//! let (_, heads) = decode::viterbi(layout, &forest, &weights).expect("a tree that weighs something");
//! // Heads by position, counted from 1; 0 is the root's.
//! assert_eq!(heads.iter().filter(|&&head| head == 0).count(), 1);
//! # Ok::<(), grammaton::forest::TooAmbiguous>(())
//! ```

pub mod grammar;

pub mod layout;

pub mod heads;

pub mod harmonic;

pub mod families;

pub mod decode;

pub mod constraint;

pub mod factors;

pub mod rules;

pub mod biases;

pub mod nouns;

pub use grammar::{extended, grammar};
pub use layout::{Event, Layout, Side, Valence};
