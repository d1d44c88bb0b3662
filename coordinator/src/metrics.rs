//! What is measured: a line per round (`metrics.jsonl`), and the whole (`summary.json`).
//!
//! The names of the fields are a contract: scripts and papers read them. Scores are by decoder, under the name
//! that the job file gives it: `scores.viterbi.token_f1`.

use std::collections::BTreeMap;
use std::ops::Range;

use serde::{Deserialize, Deserializer, Serialize};
use shared::data::eval::brackets::BracketScores;
use shared::data::eval::dependencies::{Attachment, ByLength};
use shared::data::eval::segmentation::SegmentationScores;
use shared::models::decode::Decoder;
pub use shared::models::sampler::Hyper;
use shared::train::trainer::Share;

use crate::fleet::Effort;

/// Scores by the name of the decoder.
pub type ScoresByDecoder = BTreeMap<String, Scores>;

/// Scores of trees by the name of the decoder.
pub type BracketsByDecoder = BTreeMap<String, BracketScores>;

/// Accuracies of dependency trees by the name of the decoder.
pub type AttachmentByDecoder = BTreeMap<String, ByLength<Attachment>>;

/// The decoder's name in job files, metrics and file names.
pub fn decoder_name(decoder: Decoder) -> &'static str {
    match decoder {
        Decoder::Viterbi => "viterbi",
        Decoder::Mbr => "mbr",
        Decoder::MbrTree => "mbr-tree",
        Decoder::MbrArcs => "mbr-arcs",
    }
}

/// The tree that most samples have, beside the decoders (Johnson & Goldwater 2009).
pub const SAMPLE_AVERAGE: &str = "sample-average";
/// The segmentation that most samples have.
pub const MAXIMUM_MARGINAL: &str = "maximum-marginal";
/// The vote of the MBR segmentations by the models of all chains.
pub const MBR_VOTE: &str = "mbr-vote";

/// What a round came to.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct RoundMetrics {
    /// Which of the job's runs, from 1.
    pub run: usize,
    /// From 1.
    pub round: usize,
    /// The objective under which this round's counts were taken: the variational bound (none in the first round, whose weights
    /// come from no q), the log-likelihood, or of samplers log P(trees).
    pub bound: Option<f64>,
    /// Change of the bound relative to the round before.
    pub change: Option<f64>,
    /// Wall time of the round.
    pub seconds: f64,
    /// Time that computing took, summed over workers.
    #[serde(default)]
    pub busy_seconds: f64,
    /// Sentences, each occurrence counted, by wall time.
    pub sentences_per_second: f64,
    /// Strings in use, by adapted nonterminal.
    pub strings: BTreeMap<String, usize>,
    /// Hyper-parameters, by adapted nonterminal.
    pub hyper: BTreeMap<String, Hyper>,
    /// Scores against gold, where there is gold and the round was decoded.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub scores: ScoresByDecoder,
    /// Scores of the heads found by decoder, of a dependency model.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub attachment: AttachmentByDecoder,
    /// Components of a mixture by name, the model itself being `base`, in this round; none without a mixture.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub components: BTreeMap<String, ComponentMetrics>,
    /// Strings that went out of use in this round.
    pub dropped: usize,
    /// Strings that came back because a sentence needed them.
    pub restored: usize,
    /// Whether the strings were put into a new order.
    pub resorted: bool,
    /// The temperature, where it is not 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub temperature: Option<f64>,
    /// How well held-out sentences are predicted, where there are such and the round was measured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub held_out: Option<HeldOut>,
    /// Share of the proposed trees that were accepted, of Metropolis–Hastings,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub acceptance: Option<f64>,
    /// and of those that were accepted and differ from the tree before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub changed: Option<f64>,
    /// Split R-hat of `bound` over the chains of this setting, in the second half of the rounds so far; with the last chain's
    /// metrics.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub r_hat: Option<f64>,
}

/// How well sentences are predicted that were not trained on.
#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct HeldOut {
    /// Natural logarithm of the probability of all sentences that have a derivation.
    pub log_likelihood: f64,
    /// exp(−log-likelihood / symbols), per symbol of those sentences; beyond all numbers it is `null` in JSON.
    #[serde(deserialize_with = "infinite_if_null")]
    pub perplexity: f64,
    /// Sentences.
    pub sentences: usize,
    /// Those without a derivation, which are left out.
    pub without: usize,
}

fn infinite_if_null<'de, D: Deserializer<'de>>(deserializer: D) -> Result<f64, D::Error> {
    match deserializer.is_human_readable() {
        true => Ok(Option::deserialize(deserializer)?.unwrap_or(f64::INFINITY)),
        false => f64::deserialize(deserializer),
    }
}

impl HeldOut {
    /// Whether it is better: of those with the fewest sentences without a derivation, the most probable.
    pub fn is_better_than(&self, other: &HeldOut) -> bool {
        self.without < other.without
            || self.without == other.without && self.log_likelihood > other.log_likelihood
    }
}

/// The objective along each of `runs`, the first half of its rounds left out.
pub fn traces(rounds: &[RoundMetrics], runs: Range<usize>) -> Vec<Vec<f64>> {
    let of = |run: usize| rounds.iter().filter(move |round| round.run == run);
    let last = |run: usize| of(run).map(|round| round.round).max().unwrap_or(0);
    let trace = |run: usize| {
        let half = last(run) / 2;
        of(run).filter(|round| round.round > half).filter_map(|round| round.bound).collect()
    };
    runs.map(trace).collect()
}

/// Why a run had no more rounds.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Ending {
    /// The bound's change fell below the tolerance.
    Converged,
    /// It had as many as `inference.max_rounds` allows.
    #[default]
    MaxRounds,
    /// Held-out sentences were predicted no better for as long as `inference.patience` allows.
    Patience,
}

/// How well the sentences of `corpus.test` are analysed, which neither train nor choose anything.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct TestScores {
    /// How well they are predicted; none with latent annotations.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub predicted: Option<HeldOut>,
    /// Scores of segmentations by decoder, where there is gold.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub scores: ScoresByDecoder,
    /// Scores of trees by decoder, with latent annotations.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub brackets: BracketsByDecoder,
    /// Scores of heads by decoder, of a dependency model, where there is gold.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub attachment: AttachmentByDecoder,
}

/// One setting of the inference, and what the best of its runs came to.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct PointSummary {
    /// Its values of the keys that vary, in words.
    pub name: String,
    /// The same by key.
    #[serde(default)]
    pub settings: BTreeMap<String, serde_json::Value>,
    /// Digest of the parameters of its best run: that of the same job without a grid.
    #[serde(default)]
    pub parameters_sha256: String,
    /// The best of its runs, from 1 among all of the job.
    pub run: usize,
    /// The round of that run that is kept.
    pub rounds: usize,
    /// Rounds that the run had.
    #[serde(default)]
    pub rounds_run: usize,
    /// Why it had no more.
    #[serde(default)]
    pub ending: Ending,
    /// Whether that run converged.
    pub converged: bool,
    /// The last objective of that run.
    pub bound: Option<f64>,
    /// The last objective of each of its runs.
    pub bounds: Vec<Option<f64>>,
    /// Of that run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub held_out: Option<HeldOut>,
    /// Split R-hat of the objective over its chains, of a sampler,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub r_hat: Option<f64>,
    /// and as how many independent draws they count; both without the first half of the rounds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub effective_sample_size: Option<f64>,
    /// Scores against gold by decoder; empty without gold.
    pub scores: ScoresByDecoder,
    /// Scores of the trees found for held-out sentences by decoder, with latent annotations.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub brackets: BracketsByDecoder,
    /// Scores of the heads found by decoder, of a dependency model.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub attachment: AttachmentByDecoder,
    /// Components of a mixture by name, the model itself being `base`, in the last round of that run; none without a mixture.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub components: BTreeMap<String, ComponentMetrics>,
    /// Scores of `corpus.test`, if there is such.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub test: Option<TestScores>,
    /// Seconds that computing its rounds took, summed over workers.
    pub busy_seconds: f64,
}

/// What a component of a mixture came to in a round.
#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct ComponentMetrics {
    /// Its weight (the paper's λ).
    pub weight: f64,
    /// Its variational bound, with that of `base` for sentences in which it is empty.
    pub bound: f64,
    /// Sentences in which it is: it allows none of their trees.
    pub empty: u64,
}

impl From<Share> for ComponentMetrics {
    fn from(Share { weight, bound, n_empty }: Share) -> ComponentMetrics {
        ComponentMetrics { weight, bound, empty: n_empty }
    }
}

/// Agreement of a segmentation with gold, flat, as it is written. A score without a denominator is `null`.
#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct Scores {
    /// Share of the segments found that are gold.
    pub token_precision: Option<f64>,
    /// Share of the gold segments that were found.
    pub token_recall: Option<f64>,
    /// Harmonic mean of the two.
    pub token_f1: Option<f64>,
    /// Boundaries inside sentences.
    pub boundary_precision: Option<f64>,
    /// Boundaries inside sentences.
    pub boundary_recall: Option<f64>,
    /// Boundaries inside sentences.
    pub boundary_f1: Option<f64>,
    /// Boundaries with the edges of the sentences counted.
    pub boundary_edges_precision: Option<f64>,
    /// Boundaries with the edges of the sentences counted.
    pub boundary_edges_recall: Option<f64>,
    /// Boundaries with the edges of the sentences counted.
    pub boundary_edges_f1: Option<f64>,
    /// Distinct segments.
    pub lexicon_precision: Option<f64>,
    /// Distinct segments.
    pub lexicon_recall: Option<f64>,
    /// Distinct segments.
    pub lexicon_f1: Option<f64>,
    /// Sentences scored.
    pub sentences: u64,
    /// Sentences without an error.
    pub exact: u64,
}

impl From<&SegmentationScores> for Scores {
    fn from(scores: &SegmentationScores) -> Scores {
        let SegmentationScores { token, boundary, boundary_edges, lexicon, sentences, exact } = *scores;
        Scores {
            token_precision: token.precision,
            token_recall: token.recall,
            token_f1: token.f1,
            boundary_precision: boundary.precision,
            boundary_recall: boundary.recall,
            boundary_f1: boundary.f1,
            boundary_edges_precision: boundary_edges.precision,
            boundary_edges_recall: boundary_edges.recall,
            boundary_edges_f1: boundary_edges.f1,
            lexicon_precision: lexicon.precision,
            lexicon_recall: lexicon.recall,
            lexicon_f1: lexicon.f1,
            sentences,
            exact,
        }
    }
}

impl Scores {
    /// Kinds of unit that are scored, each with precision, recall and F1.
    pub fn kinds(&self) -> [(&'static str, [Option<f64>; 3]); 4] {
        [
            ("tokens", [self.token_precision, self.token_recall, self.token_f1]),
            ("boundaries", [self.boundary_precision, self.boundary_recall, self.boundary_f1]),
            (
                "boundaries with edges",
                [self.boundary_edges_precision, self.boundary_edges_recall, self.boundary_edges_f1],
            ),
            ("lexicon", [self.lexicon_precision, self.lexicon_recall, self.lexicon_f1]),
        ]
    }
}

/// A score with its digits, or a dash.
pub fn score_text(score: Option<f64>, digits: usize) -> String {
    score.map_or("–".to_owned(), |score| format!("{score:.digits$}"))
}

/// What a training run came to.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct Summary {
    /// The round that is kept: with held-out sentences the one that predicts them best, else the last one.
    pub rounds: usize,
    /// Rounds that the run had.
    #[serde(default)]
    pub rounds_run: usize,
    /// Why it had no more.
    #[serde(default)]
    pub ending: Ending,
    /// What was chosen by what, and whether the scores are of sentences that had a part in it; empty if nothing was chosen.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub choice: String,
    /// Whether the bound's change fell below the tolerance.
    pub converged: bool,
    /// The last bound.
    pub bound: Option<f64>,
    /// The run that was kept, from 1.
    pub run: usize,
    /// The last bound of every run.
    pub bounds: Vec<Option<f64>>,
    /// How many times the job went on from a checkpoint.
    #[serde(default)]
    pub resumed: u32,
    /// How well held-out sentences are predicted, if there are such.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub held_out: Option<HeldOut>,
    /// Split R-hat of the objective over the chains of the setting that was kept, of a sampler,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub r_hat: Option<f64>,
    /// and as how many independent draws they count.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub effective_sample_size: Option<f64>,
    /// All settings, if there are several; what stands beside is that of the best.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub points: Vec<PointSummary>,
    /// Scores against gold by decoder; empty without gold.
    pub scores: ScoresByDecoder,
    /// Scores of the trees found for held-out sentences by decoder, with latent annotations.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub brackets: BracketsByDecoder,
    /// Scores of the heads found by decoder, of a dependency model.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub attachment: AttachmentByDecoder,
    /// Components of a mixture by name, the model itself being `base`, in the last round; none without a mixture.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub components: BTreeMap<String, ComponentMetrics>,
    /// Scores of `corpus.test`, if there is such.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub test: Option<TestScores>,
    /// Digest of the parameters: equal for equal job, data and seed, on all machines.
    pub parameters_sha256: String,
    /// Where the time went.
    pub timings: Timings,
    /// Threads of this process that worked, and remote workers that did.
    pub workers: usize,
    /// Workers lost by this process, by kind of cause.
    #[serde(default)]
    pub losses: BTreeMap<String, u64>,
    /// Tasks computed by this process: how many, and how many of them were audited, were not though they were chosen for it, and
    /// were begun again.
    #[serde(default)]
    pub tasks: Effort,
    /// The job's seed.
    pub seed: u64,
    /// Sentences of the corpus.
    pub sentences: usize,
    /// What the user should know about this run.
    pub notices: Vec<String>,
    /// The version that ran it.
    pub version: String,
}

impl Summary {
    /// How many rounds were run, why there were no more, and which one is kept.
    pub fn ended(&self) -> String {
        let (run, kept) = (self.rounds_run, self.rounds);
        let ended = match self.ending {
            Ending::Converged => format!("converged after {run} rounds"),
            Ending::MaxRounds => format!("stopped after {run} rounds, as inference.max_rounds says"),
            Ending::Patience => {
                format!("stopped after {run} rounds, as inference.patience says of held-out sentences")
            }
        };
        if kept == run { ended } else { format!("{ended}; round {kept} is kept") }
    }

    /// The text of `choice`.
    pub fn describe_choice(&self) -> String {
        let setting = self.points.iter().find(|point| point.run == self.run).map(|point| &point.name);
        let chosen: Vec<String> = [
            self.held_out.map(|_| format!("round {} of {}", self.rounds, self.rounds_run)),
            (self.bounds.len() > 1).then(|| format!("run {}", self.run)),
            setting.map(|name| format!("setting {name}")),
        ]
        .into_iter()
        .flatten()
        .collect();
        let was = match chosen.len() {
            0 => return String::new(),
            1 => "was",
            _ => "were",
        };
        let by = if self.held_out.is_some() { "held-out log-likelihood" } else { "the objective" };
        let chosen = format!("{} {was} chosen by {by}", chosen.join(" and "));
        match (&self.test, self.held_out) {
            (Some(_), _) => format!("{chosen}; corpus.test had no part in it"),
            (None, Some(_)) if !self.attachment.is_empty() => format!(
                "{chosen}; the scores are of the same held-out sentences, and so optimistic: give others with corpus.test"
            ),
            _ => chosen,
        }
    }
}

/// Wall seconds by phase.
#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct Timings {
    /// Candidate strings, shards.
    pub preprocess: f64,
    /// All rounds.
    pub rounds: f64,
    /// All decoders, last round.
    pub decode: f64,
}

/// A part of a training run.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Phase {
    /// Reading, candidate strings, shards.
    Preprocess,
    /// Rounds of inference.
    Rounds,
    /// Decoding of the corpus.
    Decode,
}

impl Phase {
    /// In metrics and JSON.
    pub const fn key(self) -> &'static str {
        match self {
            Phase::Preprocess => "preprocess",
            Phase::Rounds => "rounds",
            Phase::Decode => "decode",
        }
    }

    /// In words.
    pub fn name(self) -> &'static str {
        match self {
            Phase::Preprocess => "preparing",
            Phase::Rounds => "training",
            Phase::Decode => "decoding",
        }
    }
}

/// A checkpoint that was written.
#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct CheckpointStatus {
    /// The run whose round ended last before it; it holds all runs.
    pub run: usize,
    /// That round.
    pub round: usize,
    /// Its size in bytes.
    pub bytes: u64,
    /// Wall seconds that writing it took.
    pub seconds: f64,
}

/// What is known when training begins.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct Start {
    /// Sentences of the corpus.
    pub sentences: usize,
    /// Symbols of the corpus.
    pub symbols: usize,
    /// Rules of the grammar.
    pub rules: usize,
    /// Names of the adapted nonterminals.
    pub adapted: Vec<String>,
    /// The highest limit of its points.
    pub max_rounds: usize,
    /// Runs, of all settings together.
    pub runs: usize,
    /// The name of the setting of every run; empty if nothing varies. `[runs]`.
    pub points: Vec<String>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_the_contract() {
        let mut summary = Summary::default();
        for decoder in [Decoder::Viterbi, Decoder::Mbr] {
            summary.scores.insert(decoder_name(decoder).to_owned(), Scores::default());
        }
        let json = serde_json::to_value(&summary).unwrap();
        for path in [
            "/rounds",
            "/converged",
            "/bound",
            "/scores/viterbi/token_f1",
            "/scores/mbr/token_f1",
            "/parameters_sha256",
            "/timings/preprocess",
            "/timings/rounds",
            "/timings/decode",
            "/workers",
            "/tasks/computed",
            "/tasks/audited",
            "/tasks/unaudited",
            "/tasks/repeated",
            "/seed",
        ] {
            assert!(json.pointer(path).is_some(), "{path}");
        }
    }

    const NONE: Attachment = Attachment {
        directed: None,
        undirected: None,
        exact: None,
        attach_right: None,
        attach_left: None,
        words: 0,
        sentences: 0,
    };

    #[test]
    fn the_end_and_the_choice_are_told() {
        let mut summary =
            Summary { rounds: 40, rounds_run: 40, run: 1, bounds: vec![None], ..Summary::default() };
        assert_eq!(summary.ended(), "stopped after 40 rounds, as inference.max_rounds says");
        assert_eq!(summary.describe_choice(), "");
        summary.ending = Ending::Converged;
        assert_eq!(summary.ended(), "converged after 40 rounds");
        (summary.rounds, summary.held_out) = (30, Some(HeldOut::default()));
        summary.ending = Ending::Patience;
        assert_eq!(
            summary.ended(),
            "stopped after 40 rounds, as inference.patience says of held-out sentences; round 30 is kept"
        );
        assert_eq!(summary.describe_choice(), "round 30 of 40 was chosen by held-out log-likelihood");
        summary.attachment =
            [("viterbi".to_owned(), ByLength { up_to_10: NONE, up_to_20: NONE, all: NONE })].into();
        assert_eq!(
            summary.describe_choice(),
            "round 30 of 40 was chosen by held-out log-likelihood; the scores are of the same held-out sentences, and so \
             optimistic: give others with corpus.test"
        );
        summary.points =
            vec![PointSummary { name: "alpha=0.1".to_owned(), run: 1, ..PointSummary::default() }];
        summary.test = Some(TestScores::default());
        assert_eq!(
            summary.describe_choice(),
            "round 30 of 40 and setting alpha=0.1 were chosen by held-out log-likelihood; corpus.test had no part in it"
        );
        (summary.held_out, summary.bounds) = (None, vec![None, None]);
        assert_eq!(
            summary.describe_choice(),
            "run 1 and setting alpha=0.1 were chosen by the objective; corpus.test had no part in it"
        );
    }

    #[test]
    fn first_round_has_no_bound_and_unscored_rounds_no_scores() {
        let json = serde_json::to_value(RoundMetrics { round: 1, ..RoundMetrics::default() }).unwrap();
        assert!(json["bound"].is_null());
        assert!(json.get("scores").is_none());
    }

    #[test]
    fn perplexities_beyond_all_numbers_are_read_back() {
        for perplexity in [9.25, f64::INFINITY] {
            let held_out = Some(HeldOut { perplexity, log_likelihood: -3e7, sentences: 9, without: 1 });
            let round = RoundMetrics { held_out, ..Default::default() };
            let json = serde_json::to_string(&round).unwrap();
            assert_eq!(serde_json::from_str::<RoundMetrics>(&json).unwrap(), round, "{json}");
        }
    }

    #[test]
    fn traces_are_of_the_second_half() {
        let round = |run, round| RoundMetrics {
            run,
            round,
            bound: (round > 1).then_some(-(round as f64)),
            ..Default::default()
        };
        let rounds = [round(1, 1), round(2, 1), round(1, 2), round(3, 1), round(1, 3), round(1, 4)];
        assert_eq!(traces(&rounds, 1..3), [vec![-3.0, -4.0], vec![]]);
    }

    #[test]
    fn decoder_names_are_those_of_the_job_file() {
        for decoder in [Decoder::Viterbi, Decoder::Mbr, Decoder::MbrTree, Decoder::MbrArcs] {
            assert_eq!(serde_json::to_value(decoder).unwrap(), decoder_name(decoder));
        }
    }
}
