//! PCFGs with latent annotations: every label of a treebank is split into H subtypes, which are not annotated.
//!
//! A rule A → B C becomes a block of H·H·H weights, `A[a] → B[b] C[c]` ([`layout`]). The trees are given, so the passes go over the
//! nodes of a tree and there is no chart ([`passes`]). Training has the same verbs for each [`Method`], in this order: weights
//! ([`Params::weights`]), expect ([`expect`], [`collapsed::pass`]), update ([`Params::update`]), bound ([`Params::bound`]).
//! All of them begin with [`start`], an even split with a little noise, without which subtypes would stay alike. The coordinator's
//! part in a round is [`crate::train::latent`]. A trained grammar parses sentences ([`parse`]).
//!
//! An answer depends on what was sent (weights or totals), the [`Shard`], and, in collapsed variational Bayes, what the shard
//! carries. Counts are merged in shard order ([`Expectation::add`]).
//!
//! Matsuzaki, Miyao & Tsujii (2005); Petrov, Barrett, Thibaux & Klein (2006); Wang & Blunsom (2013), §4.3. Splits once, into as
//! many subtypes as wanted: does not split and merge.
//!
//! A round of EM, and a sentence parsed:
//!
//! ```
//! use grammaton::data::treebank::{Classes, Treebank};
//! use grammaton::grammar::tree::Tree;
//! use grammaton::models::latent::parse::{Decoder, Model, Parser, THRESHOLD};
//! use grammaton::models::latent::{Layout, Method, Params, Shard, expect, start};
//!
//! let tree = Tree::parse("(ROOT (S (N dogs) (V (V see) (N cats))))")?;
//! let Treebank { rules, vocabulary, chains, derivations } = Treebank::new(&[tree.clone()], 0, Classes::Generic);
//! let layout = Layout::new(&rules, 2);
//! let shard = Shard { trees: derivations };
//!
//! let found = expect(&layout, &start(&rules, &layout, 0.01, 1), &shard);
//! let mut params = Params { method: Method::Em, alpha: 0.0, totals: Vec::new() };
//! params.update(found);
//! let model = Model { rules, vocabulary, chains, n_subtypes: 2, weights: params.estimate(&layout) };
//! let parse = Parser::new(&model, THRESHOLD).parse(&["dogs", "see", "cats"], Decoder::MaxRule);
//! assert_eq!(parse.tree, tree);
//! # Ok::<(), grammaton::grammar::tree::TreeError>(())
//! ```

use serde::{Deserialize, Serialize};

use crate::data::treebank::{Derivation, ROOT, Rules};
use crate::grammar::{Grammar, Rule, SymbolId};
use crate::stop::checked;

pub mod layout;

mod kernel;

pub mod passes;

pub mod params;

pub mod collapsed;

pub mod parse;

pub use layout::Layout;
pub use params::{Method, Params, Weights, start};

use passes::Passes;

/// Trees, a unit of work.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct Shard {
    /// The trees.
    pub trees: Vec<Derivation>,
}

/// A tree of a [`Shard`] that is no derivation of the rules.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error("tree {tree} is no derivation")]
pub struct NoDerivation {
    /// Its position in the shard.
    pub tree: usize,
}

impl Shard {
    /// Checks that each tree is a derivation of `rules` from the root.
    pub fn check(&self, rules: &Rules) -> Result<(), NoDerivation> {
        match self.trees.iter().position(|tree| !rules.derive(tree)) {
            None => Ok(()),
            Some(tree) => Err(NoDerivation { tree }),
        }
    }
}

/// The grammar that files hold where there is none, since their formats have no way to leave it out: the root over what
/// stands for a tree. Nothing reads it.
pub fn grammar_in_formats() -> Grammar {
    let rule = Rule { parent: Grammar::START, children: vec![SymbolId(1)], alpha: 1.0 };
    Grammar::new(vec![ROOT.to_owned(), "tree".to_owned()], 1, vec![rule], vec![None])
        .expect("one rule over one terminal is a grammar")
}

/// The answer of a shard, and of all shards together.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Expectation {
    /// Expected uses of every split rule. `[n_params]`
    pub counts: Vec<f64>,
    /// Sum of ln Z over the trees; −∞ if the weights give a tree none.
    pub ln_z: f64,
}

impl Expectation {
    /// Returns counts of zero.
    pub fn zero(layout: &Layout) -> Expectation {
        Expectation { counts: vec![0.0; layout.n_params()], ln_z: 0.0 }
    }

    /// Adds what another shard answers; shards are added in order.
    pub fn add(&mut self, other: &Expectation) {
        self.counts.iter_mut().zip(&other.counts).for_each(|(sum, count)| *sum += count);
        self.ln_z += other.ln_z;
    }
}

/// Expected counts of a shard: the E-step of EM and of variational Bayes.
pub fn expect(layout: &Layout, weights: &Weights, shard: &Shard) -> Expectation {
    let mut expectation = Expectation::zero(layout);
    let mut passes = Passes::default();
    for tree in checked(&shard.trees) {
        let start = |node: usize| layout.blocks[tree[node].index()].start;
        let z = passes.run(layout, tree, start, &weights.values, &mut expectation.counts);
        expectation.ln_z += weights.unscaled(tree, z).ln();
    }
    expectation
}
