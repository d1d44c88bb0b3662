//! Metrics: a line per round (`metrics.jsonl`), and a summary of the run (`summary.json`).
//!
//! The names of the fields are a contract, as scripts and papers read them. Scores are by decoder, under its name in the job file:
//! `scores.viterbi.token_f1`.

use std::collections::BTreeMap;
use std::ops::Range;

use fleet::Effort;
use grammaton::data::eval::brackets::BracketScores;
use grammaton::data::eval::dependencies::{Attachment, ByLength};
use grammaton::data::eval::segmentation::{BASELINES, SegmentationScores};
use grammaton::models::decode::Decoder;
pub use grammaton::models::sampler::Hyper;
use grammaton::train::trainer::ComponentResult;
use serde::{Deserialize, Deserializer, Serialize};

use crate::certainty::Certainty;

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

/// The segmentation whose boundaries enough samples have (`output.threshold`).
pub const BOUNDARY_VOTE: &str = "boundary-vote";

/// The boundaries that are likely by the symbols around them, as learned from the shares of samples (`output.contexts`).
pub const CONTEXTS: &str = "contexts";

/// What a conditional random field learned from annotated sentences, above the others (`corpus.annotated`).
pub const CRF: &str = "crf";

/// Decoders, the recommended ones first: those that maximise the expected score before those that maximise a probability, those that
/// use all chains before those that use one, and what annotations correct, or the job asks for, first. No scores decided the order.
const BY_RECOMMENDATION: [&str; 11] = [
    CRF,
    CONTEXTS,
    BOUNDARY_VOTE,
    MBR_VOTE,
    MAXIMUM_MARGINAL,
    "mbr",
    "mbr-arcs",
    "max-rule",
    "mbr-tree",
    SAMPLE_AVERAGE,
    "viterbi",
];

/// The recommended one of these decoders; `None` if there are none.
pub fn recommended<'a>(names: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let place = |name: &&str| BY_RECOMMENDATION.iter().position(|known| known == name);
    names.into_iter().min_by_key(|name| place(name).unwrap_or(usize::MAX))
}

/// Names of decoders, the recommended one first.
pub fn recommended_first<'a>(names: impl IntoIterator<Item = &'a str>) -> Vec<&'a str> {
    let mut names: Vec<&str> = names.into_iter().collect();
    if let Some(first) = recommended(names.iter().copied()) {
        names.sort_by_key(|name| *name != first);
    }
    names
}

/// Name and value of the main score by the recommended decoder, of each kind that there is.
pub fn recommended_scores(
    scores: &ScoresByDecoder,
    brackets: &BracketsByDecoder,
    attachment: &AttachmentByDecoder,
) -> Vec<(String, String)> {
    fn best<T>(
        what: &str,
        by_decoder: &BTreeMap<String, T>,
        score: fn(&T) -> Option<f64>,
    ) -> Option<(String, String)> {
        let decoder = recommended(by_decoder.keys().map(String::as_str))?;
        Some((format!("{what}, {decoder}"), score_text(score(&by_decoder[decoder]), 3)))
    }
    let found = [
        best("token F1", scores, |scores| scores.token_f1),
        best("bracket F1", brackets, |scores| scores.labelled.f1),
        best("attachment", attachment, |scores| scores.all.directed),
    ];
    found.into_iter().flatten().collect()
}

/// R-hat up to which chains have mixed.
pub const MIXED: f64 = 1.01;
/// R-hat above which chains have not mixed.
pub const NOT_MIXED: f64 = 1.1;

/// Metrics of a round.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct RoundMetrics {
    /// Number of the run, from 1.
    pub run: usize,
    /// Number of the round, from 1.
    pub round: usize,
    /// The objective at the weights of this round: the variational bound (`None` in the first round, whose weights
    /// are not those of a posterior), the log-likelihood, or for samplers log P(trees).
    pub bound: Option<f64>,
    /// Change of the bound relative to the round before.
    pub change: Option<f64>,
    /// Wall time of the round.
    pub seconds: f64,
    /// Compute time in seconds, summed over workers.
    #[serde(default)]
    pub busy_seconds: f64,
    /// Sentences per second of wall time, each occurrence counted.
    pub sentences_per_second: f64,
    /// Number of strings in use, by adapted nonterminal.
    pub strings: BTreeMap<String, usize>,
    /// Hyper-parameters, by adapted nonterminal.
    pub hyper: BTreeMap<String, Hyper>,
    /// Scores against gold, if the corpus has gold and the round was decoded.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub scores: ScoresByDecoder,
    /// Attachment scores of a dependency model, by decoder.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub attachment: AttachmentByDecoder,
    /// Components of a mixture in this round, by name; the model itself is `base`. Empty without a mixture.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub components: BTreeMap<String, ComponentMetrics>,
    /// Number of strings dropped in this round.
    pub dropped: usize,
    /// Number of strings restored because a sentence had no derivation without them.
    pub restored: usize,
    /// Whether the sticks were sorted.
    pub resorted: bool,
    /// The temperature, if it is not 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub temperature: Option<f64>,
    /// Measurement on held-out sentences, if there are any and the round was measured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub held_out: Option<HeldOut>,
    /// Share of the proposed trees that Metropolis–Hastings accepted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub acceptance: Option<f64>,
    /// Share of the proposed trees that were accepted and differ from the tree before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub changed: Option<f64>,
    /// Split R-hat of `bound` over the chains of this setting, in the second half of the rounds so far; in the metrics of the last
    /// chain.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub r_hat: Option<f64>,
}

/// Probability of sentences that were not trained on.
#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct HeldOut {
    /// Natural logarithm of the probability of all sentences that have a derivation.
    pub log_likelihood: f64,
    /// exp(−log-likelihood / symbols), per symbol of those sentences; `null` in JSON if it is infinite.
    #[serde(deserialize_with = "infinite_if_null")]
    pub perplexity: f64,
    /// Number of sentences.
    pub sentences: usize,
    /// Number of sentences without a derivation, which are left out.
    pub without: usize,
}

fn infinite_if_null<'de, D: Deserializer<'de>>(deserializer: D) -> Result<f64, D::Error> {
    if deserializer.is_human_readable() {
        Ok(Option::deserialize(deserializer)?.unwrap_or(f64::INFINITY))
    } else {
        f64::deserialize(deserializer)
    }
}

impl HeldOut {
    /// Whether it is better than `other`: fewer sentences without a derivation, or equally many and a higher probability.
    pub fn is_better_than(&self, other: &HeldOut) -> bool {
        self.without < other.without
            || self.without == other.without && self.log_likelihood > other.log_likelihood
    }
}

/// The objective of each of `runs` by round, without the first half of its rounds.
pub fn traces(rounds: &[RoundMetrics], runs: Range<usize>) -> Vec<Vec<f64>> {
    let of = |run: usize| rounds.iter().filter(move |round| round.run == run);
    let last = |run: usize| of(run).map(|round| round.round).max().unwrap_or(0);
    let trace = |run: usize| {
        let half = last(run) / 2;
        of(run).filter(|round| round.round > half).filter_map(|round| round.bound).collect()
    };
    runs.map(trace).collect()
}

/// Why a run ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Ending {
    /// The bound's change fell below the tolerance.
    Converged,
    /// The run reached `inference.max_rounds`.
    #[default]
    MaxRounds,
    /// Held-out sentences did not become more probable in `inference.patience` measurements.
    Patience,
}

/// Scores of `corpus.test`, whose sentences affect neither training nor any choice.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct TestScores {
    /// Probability of the sentences; `None` with latent annotations.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub predicted: Option<HeldOut>,
    /// Scores of segmentations by decoder, if the file has gold.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub scores: ScoresByDecoder,
    /// Scores of trees by decoder, with latent annotations.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub brackets: BracketsByDecoder,
    /// Attachment scores of a dependency model by decoder, if the file has gold.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub attachment: AttachmentByDecoder,
}

/// What a run came to: of a setting its best run, of a job that of its best setting.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct RunResult {
    /// Its number among all runs of the job, from 1.
    pub run: usize,
    /// The kept round: with held-out sentences the one that predicts them best, else the last one.
    pub rounds: usize,
    /// Number of its rounds.
    #[serde(default)]
    pub rounds_run: usize,
    /// Why it ended.
    #[serde(default)]
    pub ending: Ending,
    /// Whether the change of the objective fell below the tolerance.
    pub converged: bool,
    /// The last objective.
    pub bound: Option<f64>,
    /// The last objective of every run of its setting.
    pub bounds: Vec<Option<f64>>,
    /// Measurement on held-out sentences, if there are any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub held_out: Option<HeldOut>,
    /// Split R-hat of the objective over the chains of a sampler, without the first half of the rounds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub r_hat: Option<f64>,
    /// Number of independent draws of the objective that the chains are worth, without the first half of the rounds.
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
    /// How sure the boundaries of a segmentation are; `None` if their probabilities are unknown, and of settings that were not kept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub certainty: Option<Certainty>,
    /// Components of a mixture by name, the model itself being `base`, in the last round; none without a mixture.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub components: BTreeMap<String, ComponentMetrics>,
    /// Scores of `corpus.test`, if the job has it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub test: Option<TestScores>,
    /// Digest of the parameters, equal for equal job, data and seed on all machines, in a grid and alone.
    #[serde(default)]
    pub parameters_sha256: String,
}

/// A setting of a grid, and the result of its best run.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct PointSummary {
    /// Values of the keys that vary, as text.
    pub name: String,
    /// Values of the keys that vary.
    #[serde(default)]
    pub settings: BTreeMap<String, serde_json::Value>,
    /// Compute time of its rounds in seconds, summed over workers.
    pub busy_seconds: f64,
    /// Result of its best run.
    #[serde(flatten)]
    pub result: RunResult,
}

/// Metrics of a component of a mixture in a round.
#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct ComponentMetrics {
    /// Its weight (the paper's λ).
    pub weight: f64,
    /// Its variational bound, with that of `base` for sentences in which it is empty.
    pub bound: f64,
    /// Number of sentences of which it allows no tree.
    pub empty: u64,
}

impl From<ComponentResult> for ComponentMetrics {
    fn from(ComponentResult { weight, bound, n_empty }: ComponentResult) -> ComponentMetrics {
        ComponentMetrics { weight, bound, empty: n_empty }
    }
}

/// Scores of a segmentation against gold, as they are written. A score without a denominator is `null`.
#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct Scores {
    /// Share of the segments found that are gold.
    pub token_precision: Option<f64>,
    /// Share of the gold segments that were found.
    pub token_recall: Option<f64>,
    /// Harmonic mean of the two.
    pub token_f1: Option<f64>,
    /// Token F1 if every symbol were a segment, a baseline.
    #[serde(default)]
    pub token_f1_every_symbol: Option<f64>,
    /// Token F1 if every sentence were a segment, a baseline.
    #[serde(default)]
    pub token_f1_every_sentence: Option<f64>,
    /// Precision of boundaries inside sentences.
    pub boundary_precision: Option<f64>,
    /// Recall of boundaries inside sentences.
    pub boundary_recall: Option<f64>,
    /// F1 of boundaries inside sentences.
    pub boundary_f1: Option<f64>,
    /// Precision of boundaries, with the edges of sentences.
    pub boundary_edges_precision: Option<f64>,
    /// Recall of boundaries, with the edges of sentences.
    pub boundary_edges_recall: Option<f64>,
    /// F1 of boundaries, with the edges of sentences.
    pub boundary_edges_f1: Option<f64>,
    /// Share of the boundaries found inside a sentence that are right, averaged over sentences.
    #[serde(default)]
    pub boundary_by_line_precision: Option<f64>,
    /// Share of the gold boundaries inside a sentence that were found, averaged over sentences.
    #[serde(default)]
    pub boundary_by_line_recall: Option<f64>,
    /// Harmonic mean of the two.
    #[serde(default)]
    pub boundary_by_line_f1: Option<f64>,
    /// Precision of distinct segments.
    pub lexicon_precision: Option<f64>,
    /// Recall of distinct segments.
    pub lexicon_recall: Option<f64>,
    /// F1 of distinct segments.
    pub lexicon_f1: Option<f64>,
    /// Number of scored sentences.
    pub sentences: u64,
    /// Number of sentences without an error.
    pub exact: u64,
}

impl From<&SegmentationScores> for Scores {
    fn from(scores: &SegmentationScores) -> Scores {
        let SegmentationScores {
            token,
            boundary,
            boundary_edges,
            by_line,
            lexicon,
            sentences,
            exact,
            baselines,
        } = *scores;
        Scores {
            token_precision: token.precision,
            token_recall: token.recall,
            token_f1: token.f1,
            token_f1_every_symbol: baselines[0],
            token_f1_every_sentence: baselines[1],
            boundary_precision: boundary.precision,
            boundary_recall: boundary.recall,
            boundary_f1: boundary.f1,
            boundary_edges_precision: boundary_edges.precision,
            boundary_edges_recall: boundary_edges.recall,
            boundary_edges_f1: boundary_edges.f1,
            boundary_by_line_precision: by_line.precision,
            boundary_by_line_recall: by_line.recall,
            boundary_by_line_f1: by_line.f1,
            lexicon_precision: lexicon.precision,
            lexicon_recall: lexicon.recall,
            lexicon_f1: lexicon.f1,
            sentences,
            exact,
        }
    }
}

impl Scores {
    /// Token F1 of the baselines, by name.
    pub fn baselines(&self) -> [(&'static str, Option<f64>); 2] {
        let [symbol, sentence] = BASELINES;
        [(symbol, self.token_f1_every_symbol), (sentence, self.token_f1_every_sentence)]
    }

    /// Kinds of unit that are scored, each with precision, recall and F1.
    pub fn kinds(&self) -> [(&'static str, [Option<f64>; 3]); 5] {
        [
            ("tokens", [self.token_precision, self.token_recall, self.token_f1]),
            ("boundaries", [self.boundary_precision, self.boundary_recall, self.boundary_f1]),
            (
                "boundaries with edges",
                [self.boundary_edges_precision, self.boundary_edges_recall, self.boundary_edges_f1],
            ),
            (
                "boundaries by line",
                [self.boundary_by_line_precision, self.boundary_by_line_recall, self.boundary_by_line_f1],
            ),
            ("lexicon", [self.lexicon_precision, self.lexicon_recall, self.lexicon_f1]),
        ]
    }
}

/// A score with its digits, or a dash.
pub fn score_text(score: Option<f64>, digits: usize) -> String {
    score.map_or("–".to_owned(), |score| format!("{score:.digits$}"))
}

/// The conclusion on a result ([`crate::verdict`]).
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Verdict {
    /// How good it is.
    pub grade: Grade,
    /// What is known of its quality, in sentences.
    pub text: String,
    /// What would make it better, in sentences; empty if it is good.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub advice: String,
}

/// Grade of a result, the best one first.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Grade {
    /// Nothing known speaks against it.
    #[default]
    Good,
    /// It may change with more training, or is hardly better than a trivial analysis.
    Doubtful,
    /// It is no better than a trivial analysis.
    Bad,
}

/// Summary of a job.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct Summary {
    /// How round, run and setting were chosen, and whether the scored sentences affected the choice; empty without a choice.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub choice: String,
    /// Number of times the job was resumed from a checkpoint.
    #[serde(default)]
    pub resumed: u32,
    /// All settings of a grid. The other fields are those of the best setting.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub points: Vec<PointSummary>,
    /// The conclusion (`None` in summaries of earlier versions).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub verdict: Option<Verdict>,
    /// Sentences on scores below those of a trivial analysis; empty if there are none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub below_baseline: Vec<String>,
    /// Wall time by phase.
    pub timings: Timings,
    /// Number of compute threads of this process and of remote workers that computed something.
    pub workers: usize,
    /// Workers lost by this process, by kind of cause.
    #[serde(default)]
    pub losses: BTreeMap<String, u64>,
    /// Numbers of tasks of this process: computed, audited, chosen for an audit but not audited, and repeated.
    #[serde(default)]
    pub tasks: Effort,
    /// The job's seed.
    pub seed: u64,
    /// Number of sentences of the corpus.
    pub sentences: usize,
    /// Notices to the user.
    pub notices: Vec<String>,
    /// Version of the program.
    pub version: String,
    /// Result of the kept run.
    #[serde(flatten)]
    pub result: RunResult,
}

impl Summary {
    /// Text on the number of rounds, why the run ended, and which round is kept.
    pub fn ended(&self) -> String {
        let (run, kept) = (self.result.rounds_run, self.result.rounds);
        let ended = match self.result.ending {
            Ending::Converged => format!("converged after {run} rounds"),
            Ending::MaxRounds => format!("stopped after {run} rounds, as inference.max_rounds says"),
            Ending::Patience => {
                format!("stopped after {run} rounds, as inference.patience says of held-out sentences")
            }
        };
        if kept == run { ended } else { format!("{ended}; round {kept} is kept") }
    }

    /// The text of `choice`. `recommended`: the decoder whose segmentation is printed.
    pub fn describe_choice(&self, recommended: Option<&str>) -> String {
        let grammars = self.points.iter().map(|point| point.settings.get("grammar"));
        let has_voters = grammars.clone().any(|grammar| grammar != self.points[0].settings.get("grammar"));
        let of_run = self.points.iter().find(|point| point.result.run == self.result.run);
        if let Some(name) =
            of_run.and_then(|point| point.settings.get("grammar")?.as_str()).filter(|_| has_voters)
        {
            let best = match self.result.bounds.len() {
                1 => String::new(),
                n => format!(", the one of {n} chains with the highest objective"),
            };
            let other = recommended.filter(|&name| name != MBR_VOTE);
            let printed = other.map(|name| format!("; {name} is recommended")).unwrap_or_default();
            return format!(
                "the model written is of {name}, run {}{best}; the models of all chains of all grammars vote ({MBR_VOTE}){printed}",
                self.result.run
            );
        }
        let setting =
            self.points.iter().find(|point| point.result.run == self.result.run).map(|point| &point.name);
        let chosen: Vec<String> = [
            self.result
                .held_out
                .map(|_| format!("round {} of {}", self.result.rounds, self.result.rounds_run)),
            (self.result.bounds.len() > 1).then(|| format!("run {}", self.result.run)),
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
        let by = if self.result.held_out.is_some() { "held-out log-likelihood" } else { "the objective" };
        let chosen = format!("{} {was} chosen by {by}", chosen.join(" and "));
        match (&self.result.test, self.result.held_out) {
            (Some(_), _) => format!("{chosen}; corpus.test had no part in it"),
            (None, Some(_)) if !self.result.attachment.is_empty() => format!(
                "{chosen}; the scores are of the same held-out sentences, and so optimistic: give others with corpus.test"
            ),
            _ => chosen,
        }
    }
}

/// Wall seconds by phase.
#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct Timings {
    /// Reading, candidate strings, shards.
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
    /// Key in metrics and JSON.
    pub const fn key(self) -> &'static str {
        match self {
            Phase::Preprocess => "preprocess",
            Phase::Rounds => "rounds",
            Phase::Decode => "decode",
        }
    }

    /// Name for messages.
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
    /// The round.
    pub round: usize,
    /// Its size in bytes.
    pub bytes: u64,
    /// Wall seconds that writing it took.
    pub seconds: f64,
}

/// Facts known when training begins.
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
    /// Bytes that the chains of the job will take, estimated, in all processes together; `None` for other jobs, and unless an observer
    /// [shows it](crate::events::Observer::shows_memory).
    pub memory: Option<u64>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_the_contract() {
        let mut summary = Summary::default();
        for decoder in [Decoder::Viterbi, Decoder::Mbr] {
            summary.result.scores.insert(decoder_name(decoder).to_owned(), Scores::default());
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

    fn of(result: RunResult) -> Summary {
        Summary { result, ..Summary::default() }
    }

    #[test]
    fn the_end_and_the_choice_are_reported() {
        let mut summary =
            of(RunResult { rounds: 40, rounds_run: 40, run: 1, bounds: vec![None], ..RunResult::default() });
        assert_eq!(summary.ended(), "stopped after 40 rounds, as inference.max_rounds says");
        assert_eq!(summary.describe_choice(None), "");
        summary.result.ending = Ending::Converged;
        assert_eq!(summary.ended(), "converged after 40 rounds");
        (summary.result.rounds, summary.result.held_out) = (30, Some(HeldOut::default()));
        summary.result.ending = Ending::Patience;
        assert_eq!(
            summary.ended(),
            "stopped after 40 rounds, as inference.patience says of held-out sentences; round 30 is kept"
        );
        assert_eq!(summary.describe_choice(None), "round 30 of 40 was chosen by held-out log-likelihood");
        summary.result.attachment =
            [("viterbi".to_owned(), ByLength { up_to_10: NONE, up_to_20: NONE, all: NONE })].into();
        assert_eq!(
            summary.describe_choice(None),
            "round 30 of 40 was chosen by held-out log-likelihood; the scores are of the same held-out sentences, and so \
             optimistic: give others with corpus.test"
        );
        summary.points = vec![PointSummary {
            name: "alpha=0.1".to_owned(),
            result: RunResult { run: 1, ..RunResult::default() },
            ..PointSummary::default()
        }];
        summary.result.test = Some(TestScores::default());
        assert_eq!(
            summary.describe_choice(None),
            "round 30 of 40 and setting alpha=0.1 were chosen by held-out log-likelihood; corpus.test had no part in it"
        );
        (summary.result.held_out, summary.result.bounds) = (None, vec![None, None]);
        assert_eq!(
            summary.describe_choice(None),
            "run 1 and setting alpha=0.1 were chosen by the objective; corpus.test had no part in it"
        );
    }

    #[test]
    fn objectives_of_different_grammars_are_not_compared() {
        let point = |run: usize, grammar: &str| PointSummary {
            result: RunResult { run, ..RunResult::default() },
            settings: [("grammar".to_owned(), grammar.into())].into(),
            ..PointSummary::default()
        };
        let points = vec![point(2, "auto:colloc"), point(3, "auto:unigram")];
        let summary = Summary {
            points,
            ..of(RunResult { run: 2, bounds: vec![Some(-3.0), Some(-2.0)], ..RunResult::default() })
        };
        assert_eq!(
            summary.describe_choice(None),
            "the model written is of auto:colloc, run 2, the one of 2 chains with the highest objective; the models of all chains of all grammars vote \
             (mbr-vote)"
        );
        let result = RunResult { bounds: vec![Some(-3.0)], ..summary.result };
        let summary = Summary { result, ..summary };
        assert_eq!(
            summary.describe_choice(None),
            "the model written is of auto:colloc, run 2; the models of all chains of all grammars vote (mbr-vote)"
        );
        assert_eq!(summary.describe_choice(Some(MBR_VOTE)), summary.describe_choice(None));
        assert_eq!(
            summary.describe_choice(Some(CONTEXTS)),
            "the model written is of auto:colloc, run 2; the models of all chains of all grammars vote (mbr-vote); contexts is recommended"
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
