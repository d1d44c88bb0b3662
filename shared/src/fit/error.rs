//! Errors of training in one process.

use std::path::PathBuf;

use crate::data::corpus::UnknownSymbol;
use crate::data::tags::classes::UnknownTags;
use crate::data::tags::families::FamiliesError;
use crate::grammar::Defect;
use crate::grammar::lexicon::TooManySubstrings;
use crate::methods::MethodError;
use crate::models::dmv::grammar::BadTags;
use crate::models::dmv::rules;
use crate::models::latent::layout::TooManyWeights;
use crate::models::pcfg::trees::Foreign;
use crate::prepare::PrepareError;
use crate::settings::inference::SettingError;
use crate::train::trainer::Failure;
use crate::work::engine::ComputeError;

/// Why there is no model. Its text says what is wrong, with which line or setting, and what to do.
///
/// ```
/// use grammaton::{Corpus, Fit, Grammar, Method};
///
/// let grammar: Grammar = "1 1 S --> a\n1 1 S --> a S\n1 1 S --> b b\n".parse()?;
/// let error = Fit::new(&grammar, Method::em()).run(&Corpus::of_tokens("a a\na b\n")?).unwrap_err();
/// assert!(error.to_string().starts_with("text:2: the grammar cannot derive this sentence"), "{error}");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, thiserror::Error)]
#[error(transparent)]
pub struct FitError(#[from] Cause);

/// Why there is no model, by cause.
#[derive(Debug, thiserror::Error)]
pub enum Cause {
    /// Settings that are out of range, or that do not go together.
    #[error(transparent)]
    Setting(#[from] SettingError),
    /// The grammar lacks a symbol of the corpus.
    #[error(transparent)]
    Symbol(#[from] UnknownSymbol),
    /// The grammar has no segment of this name.
    #[error("the grammar has no nonterminal `{name}` to be a segment; choose from: {known}")]
    Segment {
        /// The name.
        name: String,
        /// Nonterminals of the grammar.
        known: String,
    },
    /// The grammar cannot derive a sentence, or in more ways than a forest can hold.
    #[error(
        "{source_name}:{line}: the grammar cannot derive this sentence, or in too many ways; add the rules that it lacks, or leave it out"
    )]
    Underivable {
        /// Name of the corpus.
        source_name: String,
        /// Line of the sentence.
        line: u32,
    },
    /// Nothing to train on.
    #[error("there are no sentences to train on")]
    Empty,
    /// Too many substrings for a grammar with `<substrings>`.
    #[error(transparent)]
    Substrings(#[from] TooManySubstrings),
    /// Tags that make no grammar.
    #[error(transparent)]
    Tags(#[from] BadTags),
    /// Adapted tags, or a component of a mixture, of which the sentences have none.
    #[error(transparent)]
    UnknownTags(#[from] UnknownTags),
    /// Rules that say nothing of the tags.
    #[error(transparent)]
    Rules(#[from] rules::Unsuited),
    /// Rules whose weights are too large together.
    #[error(transparent)]
    Factors(#[from] Defect),
    /// Families of tags that cannot be read.
    #[error(transparent)]
    Families(#[from] FamiliesError),
    /// A file that cannot be read.
    #[error("{path}: cannot read it")]
    Read {
        /// The file.
        path: PathBuf,
        /// Cause.
        source: std::io::Error,
    },
    /// More split rules than there may be.
    #[error(transparent)]
    SplitRules(#[from] TooManyWeights),
    /// The start asks for trees or a model, which were not given or are of something else.
    #[error("the start needs {expected}")]
    StartFrom {
        /// What it needs.
        expected: String,
    },
    /// A tree to start from is not one of the grammar.
    #[error("tree {number} to start from: {source}")]
    StartTree {
        /// Its number, from 1.
        number: usize,
        /// Cause.
        source: Foreign,
    },
    /// Model and method do not go together.
    #[error(transparent)]
    Method(#[from] MethodError),
    /// Strings cannot be chosen.
    #[error(transparent)]
    Prepare(#[from] PrepareError),
    /// A task cannot be computed.
    #[error(transparent)]
    Compute(#[from] ComputeError),
    /// A round has no result.
    #[error("round {round}: {source}")]
    Round {
        /// The round.
        round: usize,
        /// Cause.
        source: Failure,
    },
}
