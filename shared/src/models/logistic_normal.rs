//! The logistic-normal prior over multinomials: η ~ N(μ, Σ), θ = softmax(η), with a draw of every η for each sentence.
//!
//! Unlike a Dirichlet prior it knows which outcomes go together: if Σ relates two of them, what makes one likely in a sentence makes
//! the other likely too. A model is a list of multinomials, each with its [`Prior`]; a sentence is a function from log weights to log Z
//! and expected counts; in between stand, knowing no grammar:
//!
//! - [`prior`]: μ, Σ and what follows from them, on [`crate::num::cholesky`];
//! - [`posterior`]: q(η) of multinomials in one sentence, given expected counts (the inner E-step); [`pairs`]: those of two outcomes;
//! - [`sentence`]: that and parsing in turn, until the sentence's bound stands still (the E-step);
//! - [`statistics`]: what a shard answers, how answers are merged, and the M-step.
//!
//! For PCFGs, [`multinomials`] says which rules are the outcomes of which multinomial, [`crate::train::logistic_normal`] goes from round to round, and
//! [`params`] is what was learned. How a shard is read is in [`crate::work::engine`].
//!
//! A multinomial whose events cannot occur in a sentence keeps its prior there, as far as q can: λ = μ, ν_j = 1 / (Σ⁻¹)_jj
//! ([`Prior::divergence_unused`]). Sentences leave such multinomials out, and [`statistics`] puts them back.
//!
//! ```
//! use grammaton::models::logistic_normal::{Prior, SentenceFitter, Statistics, StopRule};
//!
//! let priors = [Prior::independent(vec![0.0, 0.0])?];
//! let mut sentence = SentenceFitter::default();
//! let fit = sentence.fit(&priors, &[0], StopRule::default(), |weights, counts| {
//!     // a single derivation, which uses outcome 0 twice and outcome 1 once
//!     counts.copy_from_slice(&[2.0, 1.0]);
//!     2.0 * weights[0] + weights[1]
//! });
//! let mut statistics = Statistics::new(priors.len());
//! statistics.add(&priors, &sentence, fit, 1);
//! let priors = statistics.maximise(&priors)?;
//! assert!(priors[0].mean()[0] > priors[0].mean()[1]);
//! # Ok::<(), grammaton::models::logistic_normal::prior::PriorError>(())
//! ```
//!
//! Cohen, Gimpel & Smith (2008), §3 and Appendix A; Cohen & Smith (2009). Letters as in Blei & Lafferty (2006): λ, ν for the
//! papers' μ̃, σ̃². Does not tie multinomials to one another (shared logistic normals).

pub mod prior;

pub mod posterior;

pub mod pairs;

pub mod sentence;

pub mod statistics;

pub mod multinomials;

pub mod params;

pub use multinomials::{Multinomials, PriorsError};
pub use params::Params;
pub use posterior::Posteriors;
pub use prior::{PointEstimate, Prior};
pub use sentence::{Posterior, SentenceFitter, StopRule};
pub use statistics::{ComponentSums, Moments, Statistics, StatisticsError};
