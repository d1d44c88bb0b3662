//! What a training run gives: the model, the decoded corpus, and how it went.

use std::collections::BTreeMap;

use shared::dependency::Sentence;
use shared::model::Model;

use crate::metrics::{
    AttachmentByDecoder, BracketsByDecoder, ComponentMetrics, HeldOut, PointSummary, ScoresByDecoder,
    Summary, Timings,
};
use crate::model;

/// The result of training, before it is written.
#[derive(Clone, PartialEq, Debug)]
pub struct Outcome {
    /// The trained model.
    pub model: Model,
    /// Rounds run.
    pub rounds: usize,
    /// Whether the bound's change fell below the tolerance.
    pub converged: bool,
    /// The last bound.
    pub bound: Option<f64>,
    /// The run that was kept, from 1.
    pub run: usize,
    /// The last bound of every run.
    pub bounds: Vec<Option<f64>>,
    /// How many times the job went on from a checkpoint.
    pub resumed: u32,
    /// How well held-out sentences are predicted, if there are such.
    pub held_out: Option<HeldOut>,
    /// Split R-hat of the objective over the chains of the setting that was kept, of a sampler,
    pub r_hat: Option<f64>,
    /// and as how many independent draws they count.
    pub effective_sample_size: Option<f64>,
    /// All settings, if there are several.
    pub points: Vec<PointSummary>,
    /// Sentences of the corpus.
    pub sentences: usize,
    /// Scores against gold; empty without gold.
    pub scores: ScoresByDecoder,
    /// Scores of the trees found for held-out sentences, with latent annotations.
    pub brackets: BracketsByDecoder,
    /// Heads found for sentences, of a dependency model,
    pub heads: Heads,
    /// and their scores against gold ones, if there are such.
    pub attachment: AttachmentByDecoder,
    /// Components of a mixture by name, in the last round.
    pub components: BTreeMap<String, ComponentMetrics>,
    /// Where the time went.
    pub timings: Timings,
    /// One per decoder of the job, in its order.
    pub decodings: Vec<Decoding>,
    /// Gold segmentation, a line per sentence of the corpus; `None` without gold.
    pub gold: Option<Vec<String>>,
    /// What the user should know.
    pub notices: Vec<String>,
}

/// Who worked on a run.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Crew {
    /// Threads of this process, and remote workers that computed something.
    pub workers: usize,
    /// Workers lost, by kind of cause.
    pub losses: BTreeMap<String, u64>,
}

/// Heads of the sentences held out, or else of those trained on.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Heads {
    /// The sentences with the heads that each decoder found.
    pub by_decoder: Vec<(&'static str, Vec<Sentence>)>,
    /// The same with gold heads, if they have such.
    pub gold: Option<Vec<Sentence>>,
    /// Sentences that the model cannot derive, of which each word was hung on the next one.
    pub n_flat: usize,
}

impl Heads {
    /// Says so if the model of that setting cannot derive some sentences.
    pub fn flat_notice(&self, setting: &str) -> Option<String> {
        let setting = if setting.is_empty() { String::new() } else { format!("{setting}: ") };
        (self.n_flat > 0).then(|| {
            format!(
                "{setting}{} sentences have no derivation, as with arcs never seen in training; each of their words hangs on the next",
                self.n_flat
            )
        })
    }
}

/// The corpus as one decoder reads it.
#[derive(Clone, PartialEq, Debug)]
pub struct Decoding {
    /// Name of the decoder.
    pub name: &'static str,
    /// End positions of the segments, by sentence.
    pub ends: Vec<Vec<u32>>,
    /// A line per sentence of the corpus, spaces between segments; empty for models without segments.
    pub segmentations: Vec<String>,
    /// A bracketed tree per sentence of the corpus, with latent annotations of those held out; empty for decoders that give none.
    pub trees: Vec<String>,
}

impl Outcome {
    /// The summary of the run, which `crew` worked on.
    pub fn summary(&self, seed: u64, crew: &Crew) -> Summary {
        Summary {
            rounds: self.rounds,
            converged: self.converged,
            bound: self.bound,
            run: self.run,
            bounds: self.bounds.clone(),
            resumed: self.resumed,
            held_out: self.held_out,
            r_hat: self.r_hat,
            effective_sample_size: self.effective_sample_size,
            points: self.points.clone(),
            scores: self.scores.clone(),
            brackets: self.brackets.clone(),
            attachment: self.attachment.clone(),
            components: self.components.clone(),
            parameters_sha256: model::parameters_sha256(&self.model),
            timings: self.timings,
            workers: crew.workers,
            losses: crew.losses.clone(),
            seed,
            sentences: self.sentences,
            notices: self.notices.clone(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
        }
    }

    /// The first decoding that has trees.
    pub fn with_trees(&self) -> Option<&Decoding> {
        self.decodings.iter().find(|decoding| !decoding.trees.is_empty())
    }
}
