//! Tasks and answers of workers.
//!
//! A [`Task`] names everything that its answer depends on; the same task has the same answer, bit for bit,
//! on any worker ([`crate::work::engine`]).

pub use super::content::{ContentHash, Named};
pub use super::counts::{Expectation, Index};
pub use super::kinds::annotate::{Annotate, Annotated, Pass};
pub use super::kinds::candidates::{Candidates, Lengths, StringCounts};
pub use super::kinds::collapse::{Collapse, Collapsed};
pub use super::kinds::cover::Missing;
pub use super::kinds::fit::{Fit, Fitted, Weighted};
pub use super::kinds::sample::{Sample, Sampled};
pub use super::kinds::sweep::{ChainFrom, Chained, Sweeps};
use super::kinds::{cover, decode};
pub use super::language::Language;
pub use super::state::{CountsError, ShardState, Sweeping};
pub use super::weights::{RunsError, TaskWeights, WeightsInUse};
use crate::models::decode::{Decode, Decoded};
use crate::work::shard::Shard;
use serde::{Deserialize, Serialize};

/// A unit of work.
#[derive(Clone, Debug)]
pub struct Task {
    /// The grammar and strings; `None` for trees, which contain their rules.
    pub language: Option<Language>,
    /// The items.
    pub shard: Named<Shard>,
    /// The shards after it whose answers are added to its own ([`crate::num::tree_sum`]); only for [`Work::is_summed`].
    pub further: Vec<Named<Shard>>,
    /// The work.
    pub work: Work,
}

/// Work on a shard. What many tasks share, and the state of the shard, are named by their content.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub enum Work<S = Named<ShardState>, D = Named<Decode>, F = Named<Fit>, W = Named<WeightsInUse>> {
    /// Expected counts of constituents under the uniform grammar (sentences only) → [`Answer::Candidates`].
    Candidates(Lengths),
    /// Strings that sentences need and the lexicon lacks → [`Answer::Missing`].
    Cover,
    /// Parameters that the shard touches → [`Answer::Index`].
    Index,
    /// Inside–outside → [`Answer::Expectation`].
    Expect {
        /// Weights of the parameters that the shards touch.
        weights: TaskWeights<W>,
        /// Whether to return [`Expectation::losses`].
        losses: bool,
    },
    /// A tree drawn for every occurrence of every sentence → [`Answer::Sampled`].
    Sample(Sample),
    /// Inside–outside of one sentence after the other, each with the counts of all others → [`Answer::Collapsed`].
    Collapse(Collapse<S>),
    /// Sweeps of a Markov chain → [`Answer::Chained`].
    Sweep(Sweeps<S>),
    /// Best analyses of sentences → [`Answer::Decoded`].
    Decode(D),
    /// Expected uses of split rules in trees → [`Answer::Annotated`].
    Annotate(Annotate<S>),
    /// Sentences fitted to logistic-normal priors → [`Answer::Fitted`].
    Fit(F),
}

/// Work as it travels: with the names of values in their place.
pub type Request = Work<ContentHash, ContentHash, ContentHash, ContentHash>;

impl Task {
    /// All its shards.
    pub fn shards(&self) -> impl Iterator<Item = &Named<Shard>> {
        std::iter::once(&self.shard).chain(&self.further)
    }
}

impl Work {
    /// Whether the answers of several shards can be added, so that one task may be on all of them.
    pub fn is_summed(&self) -> bool {
        matches!(self, Work::Expect { .. } | Work::Fit(_))
    }

    /// The state of the shard that the work starts from, if it needs one.
    pub fn shard_state(&self) -> Option<&Named<ShardState>> {
        match self {
            Work::Collapse(Collapse::Others { shard_state, .. })
            | Work::Sweep(Sweeps { from: ChainFrom::ShardState(shard_state), .. })
            | Work::Annotate(Annotate { pass: Pass::Others { shard_state, .. }, .. }) => Some(shard_state),
            _ => None,
        }
    }
}

impl Request {
    /// The work, with the values that these functions find by their names.
    pub fn resolve<E>(
        self,
        state: impl FnOnce(ContentHash) -> Result<Named<ShardState>, E>,
        decode: impl FnOnce(ContentHash) -> Result<Named<Decode>, E>,
        fit: impl FnOnce(ContentHash) -> Result<Named<Fit>, E>,
        weights_of_all: impl FnOnce(ContentHash) -> Result<Named<WeightsInUse>, E>,
    ) -> Result<Work, E> {
        Ok(match self {
            Work::Candidates(lengths) => Work::Candidates(lengths),
            Work::Cover => Work::Cover,
            Work::Index => Work::Index,
            Work::Expect { weights, losses } => {
                Work::Expect { weights: weights.resolve(weights_of_all)?, losses }
            }
            Work::Sample(sample) => Work::Sample(sample),
            Work::Collapse(collapse) => Work::Collapse(collapse.with_state(state)?),
            Work::Sweep(sweeps) => Work::Sweep(sweeps.with_state(state)?),
            Work::Decode(hash) => Work::Decode(decode(hash)?),
            Work::Annotate(annotate) => Work::Annotate(annotate.with_state(state)?),
            Work::Fit(hash) => Work::Fit(fit(hash)?),
        })
    }
}

/// Answers of workers.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub enum Answer {
    /// Answer to [`Work::Candidates`].
    Candidates(Candidates),
    /// Answer to [`Work::Cover`].
    Missing(Missing),
    /// Answer to [`Work::Index`].
    Index(Index),
    /// Answer to [`Work::Expect`].
    Expectation(Expectation),
    /// Answer to [`Work::Sample`].
    Sampled(Sampled),
    /// Answer to [`Work::Collapse`].
    Collapsed(Collapsed),
    /// Answer to [`Work::Sweep`].
    Chained(Chained),
    /// Answer to [`Work::Decode`]: one result per sentence of the shard.
    Decoded(Vec<Decoded>),
    /// Answer to [`Work::Annotate`].
    Annotated(Annotated),
    /// Answer to [`Work::Fit`].
    Fitted(Fitted),
}

impl Answer {
    /// The new state of the shard, if the answer has one.
    pub fn shard_state(self) -> Option<ShardState> {
        match self {
            Answer::Collapsed(Collapsed { shard_state, .. })
            | Answer::Chained(Chained { shard_state, .. }) => Some(shard_state),
            Answer::Annotated(Annotated { shard_state, .. }) => shard_state,
            _ => None,
        }
    }

    /// Bytes on the heap, but for what the shard carries, which stays.
    pub fn size(&self) -> usize {
        match self {
            Answer::Candidates(candidates) => candidates.size(),
            Answer::Missing(missing) => cover::size(missing),
            Answer::Index(index) => index.size(),
            Answer::Expectation(expectation) => expectation.size(),
            Answer::Sampled(sampled) => sampled.size(),
            Answer::Collapsed(collapsed) => collapsed.size(),
            Answer::Chained(chained) => chained.size(),
            Answer::Decoded(decoded) => decode::size(decoded),
            Answer::Annotated(annotated) => annotated.size(),
            Answer::Fitted(fitted) => fitted.size(),
        }
    }

    /// Whether the answer says something that would end, repeat or restart its job if it were believed: that items have no derivation, that
    /// strings are missing, or that a number is beyond all bounds. A single worker is not believed in this.
    pub fn claims(&self) -> bool {
        let expectation = |found: &Expectation| !found.missing.is_empty() || !found.log_z.is_finite();
        match self {
            Answer::Candidates(candidates) => !candidates.unparsable.is_empty(),
            // Asked for only because items have no derivation; what is not named leaves them without one.
            Answer::Missing(_) => true,
            Answer::Index(index) => !index.unparsable.is_empty(),
            Answer::Expectation(found) => expectation(found),
            Answer::Sampled(sampled) => !sampled.missing.is_empty(),
            Answer::Collapsed(collapsed) => expectation(&collapsed.expectation),
            Answer::Chained(chained) => !chained.log_seating.is_finite(),
            // A sentence without an analysis is a result like any other.
            Answer::Decoded(_) => false,
            Answer::Annotated(annotated) => !annotated.expectation.ln_z.is_finite(),
            Answer::Fitted(Fitted::Unbounded { .. }) => true,
            Answer::Fitted(Fitted::Statistics(statistics)) => !statistics.bound.is_finite(),
        }
    }
}
