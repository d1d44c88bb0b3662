//! The trainer of a method: what every method offers to the rounds.
//!
//! ```text
//! begin → ask → [workers] → add(shard, answer) … → finish → begin …
//! ```
//!
//! A [`Trainer`] says what each shard is asked in a round, sums the answers over the shards, and moves the parameters.
//! Every method has a file beside this one with its settings, its state and its trainer. Between two rounds the state is all that
//! matters: a trainer that is made from a saved state computes the same bits as one that was never interrupted.
//!
//! [`crate::Fit`] runs one in this process.

use std::error::Error;
use std::ops::Range;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::round::{Ask, BoundFell, Step};
use crate::grammar::lexicon::Lexicon;
use crate::grammar::{ParamId, SymbolId};
use crate::models::Params;
use crate::models::adaptor::Stick;
use crate::models::latent;
use crate::models::sampler::Hyper;
use crate::models::tally::Analysis;
use crate::num::Wide;
use crate::work::counts::union;
use crate::work::task::{Answer, Work};

/// The shards of a run: first the shards of sentences or trees, then the shards of strings.
pub trait Shards {
    /// The number of shards.
    fn len(&self) -> usize;

    /// Whether the list is empty.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The parameters that shard number `shard` touches, in the order of its weights and counts. An error says why they cannot be
    /// read.
    fn params(&self, shard: usize) -> Read<Arc<Vec<ParamId>>>;

    /// The parameters that a group of shards touches, which are asked at once ([`crate::num::tree_sum`]).
    fn params_of_group(&self, group: &Range<usize>) -> Read<Arc<Vec<ParamId>>> {
        if group.len() == 1 {
            return self.params(group.start);
        }
        let indexes = group.clone().map(|shard| self.params(shard)).collect::<Read<Vec<_>>>()?;
        Ok(Arc::new(union(indexes.iter().map(|params| params.as_slice()))))
    }

    /// The strings of shard number `shard`, as a range of parameters; `None` for a shard of sentences or trees.
    fn strings(&self, shard: usize) -> Option<Range<u32>>;

    /// The strings of a group of shards.
    fn strings_of_group(&self, group: &Range<usize>) -> Option<Range<u32>> {
        let (first, last) = (self.strings(group.start)?, self.strings(group.end - 1)?);
        Some(first.start..last.end)
    }
}

/// A value that was read, or why it could not be.
pub type Read<T> = Result<T, Box<dyn Error + Send + Sync>>;

/// Shards of sentences in memory, by the parameters that they touch.
impl Shards for Vec<Arc<Vec<ParamId>>> {
    fn len(&self) -> usize {
        self.as_slice().len()
    }

    fn params(&self, shard: usize) -> Read<Arc<Vec<ParamId>>> {
        Ok(self[shard].clone())
    }

    fn strings(&self, _: usize) -> Option<Range<u32>> {
        None
    }
}

/// Treatment of the trees of a round by a sampler. Other methods draw none.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Collect {
    /// The nonterminals whose constituents are the segments, if the trees are to be returned.
    pub segments: Option<Vec<SymbolId>>,
    /// Whether the trees count as a sample of the posterior.
    pub as_sample: bool,
}

/// The learned model of a run.
#[derive(Clone, PartialEq, Debug)]
pub enum Learned {
    /// Parameters of a grammar.
    Grammar {
        /// The strings that the parameters belong to, if the run's lexicon has others.
        lexicon: Option<Lexicon>,
        /// The parameters.
        params: Params,
    },
    /// The rules of a treebank, split into subtypes.
    Treebank(latent::parse::Model),
}

/// A run by one method.
pub trait Trainer: Send {
    /// The rounds so far.
    fn past(&self) -> Past;

    /// The shards that the next round reads, ascending: all of them, unless the method samples.
    fn shards(&self, shards: &dyn Shards) -> Vec<usize> {
        (0..shards.len()).collect()
    }

    /// Begins a round, or goes on with one after [`Step::Continue`].
    fn begin(&mut self, collect: Collect);

    /// The questions of the round to the shards.
    fn ask(&self, shards: &dyn Shards) -> Read<Ask>;

    /// Takes in the answer of a shard, or of a group of shards that were asked at once; they come in ascending order. Returns whether it is an
    /// answer to what was asked.
    fn add(&mut self, shards: &dyn Shards, group: Range<usize>, answer: Answer) -> Read<bool>;

    /// Ends a round to which all its shards were added, or asks to go on with it.
    fn finish(&mut self) -> Result<Step, Failure>;

    /// Returns the parameters learned so far.
    fn learned(&self) -> Learned;

    /// What the last round has to show.
    fn report(&self) -> Report<'_>;
}

/// The rounds of a run so far.
#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct Past {
    /// Rounds that counted.
    pub rounds: usize,
    /// The objective after the last one.
    pub bound: Option<f64>,
}

/// What a round has to show. Lists are empty where a method has no such thing.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Report<'a> {
    /// The sticks of variational Bayes, in symbol order.
    pub sticks: &'a [Stick],
    /// Discount and concentration of the adapted nonterminals, in symbol order.
    pub hyper: Vec<Hyper>,
    /// The number of strings in use, by adapted nonterminal in symbol order.
    pub n_strings: Vec<usize>,
    /// The trees of the round, by shard and occurrence, if they were collected.
    pub samples: &'a [Vec<Analysis>],
    /// The components of a mixture by name, and the results of each.
    pub components: Vec<(&'a str, ComponentResult)>,
}

/// Runs one round of `trainer`, with `answer` in place of the workers: it is given the number of a shard, and what the shard is asked.
///
/// # Panics
///
/// If `shards` cannot be read, or an answer is not one to what was asked.
pub fn round(
    trainer: &mut dyn Trainer,
    shards: &dyn Shards,
    collect: Collect,
    mut answer: impl FnMut(usize, Work) -> Answer,
) -> Result<Step, Failure> {
    loop {
        trainer.begin(collect.clone());
        let ask = trainer.ask(shards).expect("shards can be read");
        for shard in trainer.shards(shards) {
            let work = ask.work(shard, &shards.params(shard).expect("shards can be read"), None);
            let answer = answer(shard, work);
            let is_answer = trainer.add(shards, shard..shard + 1, answer).expect("shards can be read");
            assert!(is_answer, "shard {shard}: the answer is not one to what was asked");
        }
        match trainer.finish()? {
            Step::Continue => {}
            step => return Ok(step),
        }
    }
}

/// Result of a mixture's component in a round.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct ComponentResult {
    /// Its weight λ.
    pub weight: f64,
    /// Its part F of the bound; in sentences where it is empty, the base's part.
    pub bound: f64,
    /// The number of sentences in which it is empty: it allows none of their trees.
    pub n_empty: u64,
}

/// Why a round has no result.
#[derive(Debug, thiserror::Error)]
pub enum Failure {
    /// A defect of the program.
    #[error(transparent)]
    BoundFell(#[from] BoundFell),
    /// A sentence has no bound.
    #[error(
        "the bound of a sentence is not finite: its weights are beyond all bounds; start from other weights, or leave the sentence out"
    )]
    Unbounded {
        /// The shard,
        shard: usize,
        /// and the position in it.
        sentence: usize,
    },
    /// An answer that does not fit its task.
    #[error(
        "shard {shard}: the answer does not fit its task: a worker computes wrongly; connect another worker"
    )]
    WrongAnswer {
        /// The shard, or the first of its group.
        shard: usize,
    },
    /// A sentence has probability 0, and the method never raises a probability from 0.
    #[error("a sentence has probability 0 under the start, and EM keeps probabilities of 0")]
    ZeroProbability {
        /// The shards among which it is.
        shards: Range<usize>,
        /// Weights of the round. `[n_params]`
        weights: Arc<Vec<Wide>>,
    },
    /// A round would run again, though nothing changed. It runs again only with more strings or rules in use, or after a drop was taken
    /// back.
    #[error("round {round} would run again unchanged; this is a defect of the program, please report it")]
    NoProgress {
        /// The round.
        round: usize,
    },
    /// A failure of the method.
    #[error(transparent)]
    Method(Box<dyn Error + Send + Sync>),
}
