//! Result of a training run: the model, the decoded corpus, and metrics.

use std::collections::BTreeMap;
use std::io::{self, BufWriter, Seek as _, Write};
use std::path::Path;
use std::sync::Arc;

use grammaton::data::dependency::{Document, Sentence};
use grammaton::models::Model;
use grammaton::models::Trained;
use grammaton::saved::Segmenter;
use serde::{Deserialize, Serialize};
use tempfile::SpooledTempFile;

use fleet::{Effort, FleetStatus};
use scheduler::Cause;

use crate::baselines;
use crate::errors::Errors;
use crate::job::Job;
use crate::lexicon;
use crate::metrics::{PointSummary, RunResult, Summary, Timings, recommended};
use crate::model;
use crate::verdict;

/// The result of training, before it is written.
#[derive(Debug)]
pub struct Outcome {
    /// The trained model.
    pub model: Trained,
    /// Result of the run that was kept.
    pub result: RunResult,
    /// Number of times the job was resumed from a checkpoint.
    pub resumed: u32,
    /// The seed of that run's setting.
    pub seed: u64,
    /// All settings, if there are several.
    pub points: Vec<PointSummary>,
    /// Sentences of the corpus.
    pub sentences: usize,
    /// Heads that a dependency model found.
    pub heads: Heads,
    /// Wall time by phase.
    pub timings: Timings,
    /// One per decoder of the job, in its order.
    pub decodings: Vec<Decoding>,
    /// Distinct segments of the recommended decoder; `None` without segments.
    pub lexicon: Option<Vec<lexicon::Entry>>,
    /// A table of the positions between symbols; `None` without segments.
    pub boundaries: Option<Lines>,
    /// Errors of the recommended decoder; `None` without gold.
    pub errors: Option<Errors>,
    /// Models that vote with the model on new text.
    pub voters: Vec<Model>,
    /// What else decides on the segments of new text.
    pub segmenter: Segmenter,
    /// Sentences to show.
    pub samples: Vec<Sample>,
    /// Notices to the user.
    pub notices: Vec<String>,
}

/// Use of the fleet by a run.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct FleetUse {
    /// Number of threads of this process and of remote workers that computed something.
    pub workers: usize,
    /// Number of workers lost, by kind of cause.
    pub losses: BTreeMap<String, u64>,
    /// Numbers of tasks.
    pub effort: Effort,
}

impl FleetUse {
    /// Threads of this process, and remote members that computed something. Members that left in order are not counted as lost.
    pub fn of(local_workers: usize, fleet: &FleetStatus, effort: Effort) -> FleetUse {
        // This process is the first to join its own fleet.
        let local = fleet.members.iter().map(|member| member.id).min().filter(|_| local_workers > 0);
        let remote = fleet.members.iter().filter(|member| Some(member.id) != local && member.tasks_done > 0);
        let lost = fleet.losses.iter().filter(|(kind, _)| **kind != Cause::Left.kind());
        let losses = lost.map(|(kind, &count)| ((*kind).to_owned(), count)).collect();
        FleetUse { workers: local_workers + remote.count(), losses, effort }
    }

    /// A notice if tasks that were chosen for an audit were not audited.
    pub fn notice(&self) -> Option<String> {
        let Effort { audited, unaudited, .. } = self.effort;
        (unaudited > 0).then(|| {
            format!(
                "{unaudited} of {} tasks chosen for an audit were computed by one worker alone, since there was no other; keep \
                 two workers connected",
                audited + unaudited
            )
        })
    }
}

/// Heads of the sentences held out, or else of those trained on.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Heads {
    /// The sentences with the heads that each decoder found.
    pub by_decoder: Vec<(&'static str, Vec<Sentence>)>,
    /// The sentences with gold heads, if the file has them.
    pub gold: Option<Vec<Sentence>>,
    /// Number of sentences that the model cannot derive; the head of each of their words is the next word.
    pub n_flat: usize,
    /// The file that the sentences are of.
    pub document: Arc<Document>,
}

impl Heads {
    /// A notice if the model of that setting cannot derive some sentences.
    pub fn flat_notice(&self, setting: &str) -> Option<String> {
        let setting = if setting.is_empty() { String::new() } else { format!("{setting}: ") };
        (self.n_flat > 0).then(|| {
            format!(
                "{setting}{} sentences have no derivation, as with arcs never seen in training, or more than 200 words; each of their words hangs on the next",
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
    /// For each line of the corpus its segments, spaces between them; an empty line for an empty line.
    pub segmentations: Lines,
    /// The results as a table: names of the columns, then a [`crate::row::Row`] for each line of the corpus.
    pub table: Lines,
    /// For each line of the corpus a bracketed tree, with latent annotations for each held-out sentence; none at all for decoders
    /// that give no trees.
    pub trees: Lines,
}

/// Lines of text, in a file once there are many.
#[derive(Debug)]
pub struct Lines {
    text: BufWriter<SpooledTempFile>,
    is_empty: bool,
}

/// Bytes of lines that stay in memory.
const IN_MEMORY: usize = 1 << 20;

impl Default for Lines {
    fn default() -> Lines {
        Lines { text: BufWriter::new(SpooledTempFile::new(IN_MEMORY)), is_empty: true }
    }
}

impl Lines {
    /// None yet; the file that many of them need is made in `folder`.
    pub fn new_in(folder: &Path) -> Lines {
        Lines { text: BufWriter::new(tempfile::spooled_tempfile_in(IN_MEMORY, folder)), is_empty: true }
    }

    /// Adds a line.
    pub fn push(&mut self, line: &str) -> io::Result<()> {
        self.push_all(line)?;
        self.push_all("\n")
    }

    /// Adds lines, each with its end.
    pub fn push_all(&mut self, lines: &str) -> io::Result<()> {
        self.is_empty &= lines.is_empty();
        self.text.write_all(lines.as_bytes())
    }

    /// Whether there are no results.
    pub fn is_empty(&self) -> bool {
        self.is_empty
    }

    /// Writes all of them.
    pub fn copy_to(&mut self, to: &mut dyn Write) -> io::Result<()> {
        self.text.rewind()?; // what is buffered is written first
        io::copy(self.text.get_mut(), to)?;
        Ok(())
    }
}

/// A sentence to show: its gold segmentation and tree if there are such, and as every decoder segments it.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Sample {
    /// Number of its line, from 1; 0 if it is unknown.
    #[serde(default)]
    pub line: u32,
    /// Gold segmentation.
    pub gold: Option<String>,
    /// Segmentations by decoding.
    pub segmentations: Vec<String>,
    /// Bracketed, by the first decoder that gives trees.
    pub tree: Option<String>,
    /// Of each position between two symbols the number of characters before it, without spaces, and the probability of a boundary there in percent; empty if
    /// they are unknown.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub probabilities: Vec<(u32, u8)>,
}

/// [`Sample::probabilities`] of a sentence of these symbols.
pub fn percents<'a>(symbols: impl Iterator<Item = &'a str>, probabilities: &[f64]) -> Vec<(u32, u8)> {
    let n_letters = |symbol: &str| symbol.chars().filter(|letter| !letter.is_whitespace()).count() as u32;
    let ends = symbols.scan(0, |end, symbol| {
        *end += n_letters(symbol);
        Some(*end)
    });
    ends.zip(probabilities).map(|(end, found)| (end, (100.0 * found).round() as u8)).collect()
}

/// Selects sentences to show, of readable length and evenly over the corpus, in one pass.
#[derive(Default)]
pub struct Samples {
    kept: Vec<Sample>,
    /// Readable sentences so far.
    seen: usize,
    /// A power of two: one in so many of them is kept.
    stride_log2: u32,
}

/// Sentences shown, and half of those kept at most.
pub const SAMPLES: usize = 100;

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

    /// The samples to show.
    pub fn chosen(self) -> Vec<Sample> {
        let n = self.kept.len().min(SAMPLES);
        (0..n).map(|at| self.kept[(2 * at + 1) * self.kept.len() / (2 * n)].clone()).collect()
    }
}

impl Outcome {
    /// The summary of the run of `job`, with its `fleet_use`.
    pub fn summary(&self, job: &Job, fleet_use: &FleetUse) -> Summary {
        let result = self.result.clone();
        let summary = Summary {
            choice: String::new(),
            verdict: None,
            resumed: self.resumed,
            points: self.points.clone(),
            below_baseline: self.below_baseline(),
            timings: self.timings,
            workers: fleet_use.workers,
            losses: fleet_use.losses.clone(),
            tasks: fleet_use.effort,
            seed: self.seed,
            sentences: self.sentences,
            notices: self.notices.clone(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            result: RunResult { parameters_sha256: model::parameters_sha256(&self.model), ..result },
        };
        let verdict = verdict::of(&summary, job.method_of(self.result.run));
        let recommended = recommended(self.decodings.iter().map(|decoding| decoding.name));
        Summary { choice: summary.describe_choice(recommended), verdict: Some(verdict), ..summary }
    }

    /// Sentences on scores below those of trivial analyses.
    fn below_baseline(&self) -> Vec<String> {
        let RunResult { scores, brackets, attachment, test, .. } = &self.result;
        let of_test = test.iter().flat_map(baselines::of_test);
        baselines::of_all(scores, brackets, attachment).into_iter().chain(of_test).collect()
    }

    /// The first decoding that has trees.
    pub fn with_trees(&self) -> Option<&Decoding> {
        self.decodings.iter().find(|decoding| !decoding.trees.is_empty())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn probabilities_are_in_percent_behind_characters() {
        let symbols = ["a", "e\u{301}", "c d", "f"];
        assert_eq!(percents(symbols.into_iter(), &[0.0, 0.996, 0.125]), [(1, 0), (3, 100), (5, 13)]);
        assert_eq!(percents(symbols.into_iter(), &[]), []);
    }

    #[test]
    fn tasks_chosen_for_an_audit_and_not_audited_are_reported() {
        let notice = |audited, unaudited| {
            let effort = Effort { computed: 9, audited, unaudited, repeated: 0 };
            FleetUse { effort, ..FleetUse::default() }.notice()
        };
        assert_eq!((notice(0, 0), notice(3, 0)), (None, None));
        assert_eq!(
            notice(2, 1).unwrap(),
            "1 of 3 tasks chosen for an audit were computed by one worker alone, since there was no other; keep two \
             workers connected"
        );
    }
}
