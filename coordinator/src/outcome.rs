//! What a training run gives: the model, the decoded corpus, and how it went.

use std::collections::BTreeMap;
use std::io::{self, Seek as _, Write};
use std::path::Path;

use serde::{Deserialize, Serialize};
use shared::dependency::Sentence;
use shared::model::Model;
use tempfile::SpooledTempFile;

use crate::metrics::{
    AttachmentByDecoder, BracketsByDecoder, ComponentMetrics, HeldOut, PointSummary, ScoresByDecoder,
    Summary, Timings,
};
use crate::model;

/// The result of training, before it is written.
#[derive(Debug)]
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
    /// Sentences to show.
    pub samples: Vec<Sample>,
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
#[derive(Debug)]
pub struct Decoding {
    /// Name of the decoder.
    pub name: &'static str,
    /// A line per sentence of the corpus, spaces between segments; empty for models without segments.
    pub segmentations: Lines,
    /// A bracketed tree per sentence of the corpus, with latent annotations of those held out; empty for decoders that give none.
    pub trees: Lines,
}

/// Lines of text, in a file once there are many.
#[derive(Debug)]
pub struct Lines {
    text: SpooledTempFile,
    n: usize,
}

/// Bytes of lines that stay in memory.
const IN_MEMORY: usize = 1 << 20;

impl Default for Lines {
    fn default() -> Lines {
        Lines { text: SpooledTempFile::new(IN_MEMORY), n: 0 }
    }
}

impl Lines {
    /// None yet; the file that many of them need is made in `folder`.
    pub fn new_in(folder: &Path) -> Lines {
        Lines { text: tempfile::spooled_tempfile_in(IN_MEMORY, folder), n: 0 }
    }

    /// Adds a line.
    pub fn push(&mut self, line: &str) -> io::Result<()> {
        self.n += 1;
        self.text.write_all(line.as_bytes())?;
        self.text.write_all(b"\n")
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.n == 0
    }

    /// Writes all of them.
    pub fn copy_to(&mut self, to: &mut dyn Write) -> io::Result<()> {
        self.text.rewind()?;
        io::copy(&mut self.text, to)?;
        Ok(())
    }
}

/// A sentence to show: its gold segmentation and tree if there are such, and as every decoder segments it.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Sample {
    /// Gold segmentation.
    pub gold: Option<String>,
    /// By decoding.
    pub segmentations: Vec<String>,
    /// Bracketed, by the first decoder that gives trees.
    pub tree: Option<String>,
}

/// Chooses sentences to show while they pass by: those of readable length, evenly over the corpus.
#[derive(Default)]
pub struct Samples {
    kept: Vec<Sample>,
    /// Readable sentences so far.
    seen: usize,
    /// A power of two: one in so many of them is kept.
    stride_log2: u32,
}

/// Sentences shown, and half of those kept at most.
const SAMPLES: usize = 12;

impl Samples {
    /// Offers the next sentence, which looks like `line`.
    pub fn offer(&mut self, line: &str, sample: impl FnOnce() -> Sample) {
        if !(8..=70).contains(&line.chars().count()) {
            return;
        }
        if self.seen.trailing_zeros() >= self.stride_log2 {
            self.kept.push(sample());
        }
        self.seen += 1;
        if self.kept.len() > 2 * SAMPLES {
            let mut at = 0;
            self.kept.retain(|_| {
                at += 1;
                at % 2 == 1
            });
            self.stride_log2 += 1;
        }
    }

    /// Those to show.
    pub fn chosen(self) -> Vec<Sample> {
        let n = self.kept.len().min(SAMPLES);
        (0..n).map(|at| self.kept[(2 * at + 1) * self.kept.len() / (2 * n)].clone()).collect()
    }
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
