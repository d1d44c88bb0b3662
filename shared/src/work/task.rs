//! What a worker is asked, and what it answers.
//!
//! A [`Task`] names everything that its answer depends on; the same task has the same answer, bit for bit,
//! on any worker ([`crate::work::engine`]).

use std::io::BufWriter;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::grammar::ParamId;
use crate::grammar::lexicon::{Lexicon, Strings};
use crate::grammar::{Grammar, SymbolId};
use crate::limits::is_count;
use crate::models::decode::{Decode, Decoded};
use crate::models::dmv::constraint::Component;
use crate::models::latent;
use crate::models::logistic_normal::{Prior, Statistics, Until};
use crate::models::sampler;
use crate::models::tally::Analysis;
use crate::num::Wide;
use crate::work::shard::Shard;

mod size;

/// Hash of the content of a [`Named`] value (BLAKE3 of its bincode form).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub struct ContentHash(pub [u8; 32]);

/// An immutable value and the hash of its content, by which it is cached and asked for.
#[derive(Clone, Debug)]
pub struct Named<T> {
    /// Hash of `value`.
    pub hash: ContentHash,
    /// The value.
    pub value: Arc<T>,
}

/// Bytes: enough for all lanes of the hash.
const HASHED_AT_ONCE: usize = 64 << 10;

impl<T: Serialize> Named<T> {
    /// Names `value` by its content.
    pub fn new(value: T) -> Named<T> {
        // By itself the hasher would take number by number.
        let mut hasher = BufWriter::with_capacity(HASHED_AT_ONCE, blake3::Hasher::new());
        bincode::serde::encode_into_std_write(&value, &mut hasher, bincode::config::legacy())
            .expect("a hasher takes all bytes, and the types named here serialise");
        let hasher = hasher.into_inner().expect("a hasher takes all bytes");
        Named { hash: ContentHash(*hasher.finalize().as_bytes()), value: Arc::new(value) }
    }
}

/// A unit of work.
///
/// That on trees asks neither grammar nor lexicon, which are then [`latent::no_grammar`] and empty: one shape for all tasks costs
/// less than two.
#[derive(Clone, Debug)]
pub struct Task {
    /// The grammar.
    pub grammar: Named<Grammar>,
    /// The stick strings; an empty lexicon before they are chosen.
    pub lexicon: Named<Lexicon>,
    /// The items.
    pub shard: Named<Shard>,
    /// What to do with them.
    pub work: Work,
}

/// What to do with a shard.
#[derive(Clone, Debug)]
pub enum Work {
    /// Expected counts of constituents under the uniform grammar (sentences only) → [`Answer::Candidates`].
    Candidates {
        /// Longest string to count.
        max_length: u32,
    },
    /// Strings that sentences need and the lexicon lacks → [`Answer::Missing`].
    Cover,
    /// Which parameters the shard touches → [`Answer::Index`].
    Index,
    /// Inside–outside → [`Answer::Expectation`].
    Expect {
        /// Weights of the shard's parameters, in the order of its index.
        weights: Vec<Wide>,
        /// Whether to return [`Expectation::losses`].
        losses: bool,
    },
    /// A tree drawn for every occurrence of every sentence → [`Answer::Sampled`].
    Sample(Sample),
    /// Inside–outside of one sentence after the other, each with the counts of all others → [`Answer::Collapsed`].
    Collapse(Collapse),
    /// Sweeps of a Markov chain → [`Answer::Chained`].
    Sweep(Sweeps),
    /// Best analyses of sentences → [`Answer::Decoded`].
    Decode(Named<Decode>),
    /// Expected uses of split rules in trees → [`Answer::Annotated`].
    Annotate(Annotate),
    /// Sentences fitted to logistic-normal priors → [`Answer::Fitted`].
    Fit(Named<Fit>),
}

/// Draws trees from their distribution under the weights (Johnson, Griffiths & Goldwater 2007, §4).
#[derive(Clone, PartialEq, Debug)]
pub struct Sample {
    /// By the shard's index.
    pub weights: Vec<Wide>,
    /// Seed of the random numbers, of this shard in this round alone.
    pub stream: u64,
    /// The nonterminals whose constituents are the segments, if the trees are to be returned.
    pub keep: Option<Vec<SymbolId>>,
}

/// A pass of collapsed variational Bayes (Wang & Blunsom 2013, §3.2).
#[derive(Clone, Debug)]
pub enum Collapse {
    /// The first one, in which all sentences are read with the same weights.
    Start {
        /// By the shard's index.
        weights: Vec<Wide>,
    },
    /// Any other.
    Others {
        /// α and the counts of all other shards, by the shard's index.
        pseudo: Vec<f64>,
        /// The same summed over each multinomial, with the parameters that the shard does not touch.
        sums: Vec<f64>,
        /// Weights are taken to the power 1/temperature.
        temperature: f64,
        /// What the shard's last answer carried.
        carried: Named<ShardState>,
    },
}

/// Sweeps of a Markov chain over the trees of a shard ([`crate::models::sampler`]).
#[derive(Clone, Debug)]
pub struct Sweeps {
    /// What they go on from.
    pub from: ChainFrom,
    /// How many.
    pub n: u32,
    /// What each does.
    pub settings: sampler::Settings,
    /// α and the uses in other shards, `[n_params]`.
    pub pseudo: Vec<f64>,
    /// Seed of the random numbers, of this shard in this round alone.
    pub stream: u64,
    /// The nonterminals whose constituents are the segments, if the trees after the last sweep are to be returned.
    pub keep: Option<Vec<SymbolId>>,
}

/// A pass over trees whose labels have subtypes that nobody annotated ([`crate::models::latent`]).
#[derive(Clone, Debug)]
pub struct Annotate {
    /// Subtypes of every label but the root, at most [`latent::layout::MAX_SUBTYPES`].
    pub n_subtypes: usize,
    /// Which.
    pub pass: Pass,
}

/// What trees are read with.
#[derive(Clone, Debug)]
pub enum Pass {
    /// Weights.
    Expect {
        /// Of all split rules.
        weights: Arc<latent::Weights>,
    },
    /// Weights, and own counts are carried on: the first pass of collapsed variational Bayes.
    Begin {
        /// Of all split rules.
        weights: Arc<latent::Weights>,
    },
    /// The posterior mean of all other trees.
    Others {
        /// Expected uses in all shards. `[n_params]`
        totals: Arc<Vec<f64>>,
        /// The prior's count of every entry.
        alpha: f64,
        /// What the shard's last answer carried.
        carried: Named<ShardState>,
    },
}

/// What sentences are fitted to ([`crate::models::logistic_normal`]).
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Fit {
    /// One for each of the grammar's [`crate::models::logistic_normal::Multinomials`].
    pub priors: Vec<Prior>,
    /// When the rounds of a sentence end.
    pub until: Until,
    /// Components of a mixture beside the base, of a dependency grammar ([`crate::models::dmv`]) alone.
    pub components: Vec<Weighted>,
}

/// A component and its weight in a mixture, of which the base has the rest.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Weighted {
    /// The component.
    pub component: Component,
    /// Its λ.
    pub weight: f64,
}

impl Fit {
    /// Number of [`Statistics::parts`]: the components with the base, or none.
    pub fn n_parts(&self) -> usize {
        if self.components.is_empty() { 0 } else { 1 + self.components.len() }
    }
}

/// What sweeps go on from.
#[derive(Clone, Debug)]
pub enum ChainFrom {
    /// Nothing: trees are drawn from the prior.
    Start {
        /// Whether each is drawn given those before it.
        incremental: bool,
        /// Of processes of which the grammar says nothing.
        hyper: sampler::Hyper,
    },
    /// Given trees, bracketed, one per occurrence in the order of the sentences.
    Trees {
        /// The trees.
        trees: Arc<Vec<String>>,
        /// Of processes of which the grammar says nothing.
        hyper: sampler::Hyper,
    },
    /// What the shard's last answer carried.
    ShardState(Named<ShardState>),
}

/// What a shard carries from round to round.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub enum ShardState {
    /// Of collapsed variational Bayes: the expected counts of every occurrence of its sentences, in the order of the sentences, as
    /// positions in the shard's index, ascending, and uses.
    Counts(Vec<Vec<(u32, f64)>>),
    /// Of a Markov chain: trees and tables.
    Chain(sampler::State),
    /// Of collapsed variational Bayes over split rules.
    Latent(latent::collapsed::Own),
}

impl ShardState {
    /// The method that it is of, for messages.
    pub fn method(&self) -> &'static str {
        match self {
            ShardState::Counts(_) => "collapsed variational Bayes",
            ShardState::Chain(_) => "a Markov chain",
            ShardState::Latent(_) => "collapsed variational Bayes with latent annotations",
        }
    }

    /// Whether counts are of a shard with `n_params` parameters, as far as can be told without its sentences; an error says what
    /// does not hold.
    pub fn check(&self, n_params: usize) -> Result<(), String> {
        let ShardState::Counts(by_occurrence) = self else { return Ok(()) };
        for counts in by_occurrence {
            let ascending = counts.windows(2).all(|pair| pair[0].0 < pair[1].0);
            if !ascending || counts.last().is_some_and(|&(param, _)| param as usize >= n_params) {
                return Err("a sentence's counts are not of the shard's parameters".to_owned());
            }
            if !counts.iter().all(|&(_, count)| count > 0.0 && is_count(count)) {
                return Err("a sentence's counts are not counts".to_owned());
            }
        }
        Ok(())
    }
}

/// What a worker answers.
#[derive(Clone, PartialEq, Debug)]
pub enum Answer {
    /// To [`Work::Candidates`].
    Candidates(Candidates),
    /// To [`Work::Cover`]: sorted by (symbol, string), each once.
    Missing(Vec<(SymbolId, Vec<SymbolId>)>),
    /// To [`Work::Index`].
    Index(Index),
    /// To [`Work::Expect`].
    Expectation(Expectation),
    /// To [`Work::Sample`].
    Sampled(Sampled),
    /// To [`Work::Collapse`].
    Collapsed(Collapsed),
    /// To [`Work::Sweep`].
    Chained(Chained),
    /// To [`Work::Decode`]: one per sentence of the shard.
    Decoded(Vec<Decoded>),
    /// To [`Work::Annotate`].
    Annotated(Annotated),
    /// To [`Work::Fit`].
    Fitted(Fitted),
}

/// Strings of a shard of sentences that could be on a stick.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Candidates {
    /// Adapted nonterminals. `[n]`
    pub symbols: Vec<SymbolId>,
    /// Their yields: each pair once, in the order in which they are first found. `[n]`
    pub strings: Strings,
    /// Expected numbers of such constituents over the shard, multiplicities counted. `[n]`
    pub expected: Vec<f64>,
    /// Sentences (positions in the shard) that the grammar cannot derive.
    pub unparsable: Vec<u32>,
}

impl Candidates {
    /// Nonterminal, yield and expected number.
    pub fn iter(&self) -> impl Iterator<Item = (SymbolId, &[SymbolId], f64)> {
        let labelled = self.symbols.iter().zip(&self.strings);
        labelled.zip(&self.expected).map(|((&symbol, string), &expected)| (symbol, string, expected))
    }
}

/// The parameters that a shard touches.
#[derive(Clone, PartialEq, Debug)]
pub struct Index {
    /// Sorted; the order of weights and counts of this shard.
    pub params: Vec<ParamId>,
    /// Items (positions in the shard) that have no derivation at all.
    pub unparsable: Vec<u32>,
}

/// Expected counts of a shard.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Expectation {
    /// Expected uses, in the order of the shard's index; multiplicities counted.
    pub counts: Vec<f64>,
    /// Per parameter of the index, Σ over its uses of −ln(1 − posterior of the use): what log Z would lose
    /// without it. Empty if not asked for; +∞ where nothing could replace it.
    pub losses: Vec<f64>,
    /// Σ log Z over the items, multiplicities counted.
    pub log_z: f64,
    /// log Z of each item, only for [`Shard::Strings`]; 0 for strings that are not in use.
    pub log_z_items: Vec<f64>,
    /// Strings out of use (weight zero) without which some item has no derivation; sorted. The counts mean
    /// nothing if there are any.
    pub missing: Vec<ParamId>,
}

/// Trees drawn for the sentences of a shard.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Sampled {
    /// Uses in the trees, in the order of the shard's index.
    pub counts: Vec<f64>,
    /// One per occurrence of each sentence, in the order of the sentences; empty if not asked for.
    pub analyses: Vec<Analysis>,
    /// Parameters of weight zero without which some sentence has no derivation; sorted. The rest means nothing if there are
    /// any.
    pub missing: Vec<ParamId>,
}

/// Expected counts of a shard, and of each of its sentences.
#[derive(Clone, PartialEq, Debug)]
pub struct Collapsed {
    /// Of the shard; without losses.
    pub expectation: Expectation,
    /// For the next round.
    pub carried: ShardState,
}

/// Expected uses of split rules in a shard of trees.
#[derive(Clone, PartialEq, Debug)]
pub struct Annotated {
    /// Of the shard.
    pub expectation: latent::Expectation,
    /// [`ShardState::Latent`], for the next round; not of [`Pass::Expect`].
    pub carried: Option<ShardState>,
}

/// What the sentences of a shard say about their priors.
#[derive(Clone, PartialEq, Debug)]
pub enum Fitted {
    /// Sums over those that have a derivation.
    Statistics(Statistics),
    /// A sentence whose bound is not finite, so that the others do not matter.
    Unbounded {
        /// Position in the shard.
        sentence: u32,
    },
}

/// Where a Markov chain is after its sweeps.
#[derive(Clone, PartialEq, Debug)]
pub struct Chained {
    /// Uses of every parameter, `[n_params]`, each subtree of a table counted once.
    pub uses: Vec<u32>,
    /// The part of the log joint probability that is not of the parameters: seatings, concentrations.
    pub log_seating: f64,
    /// Of trees of sentences, in all sweeps.
    pub trees: sampler::Moves,
    /// Of labels of tables, in all sweeps.
    pub labels: sampler::Moves,
    /// The strings of adapted nonterminals in use, sorted by nonterminal and string; empty if no trees were asked for.
    pub strings: Vec<sampler::Uses>,
    /// One per occurrence of each sentence, in the order of the sentences; empty if not asked for.
    pub analyses: Vec<Analysis>,
    /// [`ShardState::Chain`], for the next round.
    pub carried: ShardState,
}
