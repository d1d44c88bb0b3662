//! The tables of a job file, key by key, with what each is if nobody says.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use shared::corpus::shards::DEFAULT_SHARD_SYMBOLS;
use shared::corpus::{Format, Options, Unit};
use shared::dependency::{Punctuation, Tags};
use shared::dmv::constraint::Component;
use shared::dmv::harmonic::{Harmonic, Stops};
use shared::logistic_normal::PointEstimate;
use shared::logistic_normal::trainer::Constrained;
use shared::mixture::{Limit, Mixture, MixtureError};
use shared::task::Decoder;
use shared::treebank::Classes;

use super::source::{FamiliesSource, GrammarSource};

/// `[model]`
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ModelTable {
    /// The kind of model.
    #[serde(default)]
    pub kind: ModelKind,
    /// The grammar.
    pub grammar: GrammarSource,
    /// The tags, or classes of tags, whose constituents are adapted, of a dependency model.
    #[serde(default)]
    pub adapted: Vec<String>,
}

impl ModelTable {
    /// Whether it has adapted nonterminals.
    pub fn is_adapted(&self) -> bool {
        self.kind == ModelKind::Adaptor || !self.adapted.is_empty()
    }
}

/// `[corpus]`
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CorpusTable {
    /// The text, one sentence a line; `.gz` is read as well.
    pub path: PathBuf,
    /// How the lines are written.
    #[serde(default)]
    pub format: Format,
    /// What a symbol is.
    #[serde(default)]
    pub unit: Unit,
    /// The longest sentence that is accepted, in symbols.
    #[serde(default = "CorpusTable::max_symbols")]
    pub max_symbols: u32,
    /// Symbols to a shard, the unit of work; 0: all sentences in one, over which collapsed methods run as published.
    #[serde(default = "CorpusTable::shard_symbols")]
    pub shard_symbols: u32,
    /// Sentences that are not trained on, to measure with; written as the corpus is. Empty: none.
    #[serde(default)]
    pub held_out: PathBuf,
    /// Share of the corpus that is held out, chosen by the seed; if `held_out` is empty.
    #[serde(default)]
    pub held_out_share: f64,
    /// Trees with more words are left out, with latent annotations; sentences with more are not trained on, of a dependency model.
    #[serde(default = "CorpusTable::max_length")]
    pub max_length: u32,
    /// Which tags of a CoNLL-U file are meant, for a dependency model.
    #[serde(default)]
    pub tags: Tags,
    /// Whether punctuation stays, for a dependency model; else what depends on it goes to the nearest word above.
    #[serde(default)]
    pub keep_punctuation: bool,
    /// Words that occur so often or less are unknown, with latent annotations.
    #[serde(default = "CorpusTable::unknown_threshold")]
    pub unknown_threshold: u32,
    /// The classes of unknown words, with latent annotations.
    #[serde(default = "CorpusTable::unknown")]
    pub unknown: Classes,
}

impl CorpusTable {
    fn max_symbols() -> u32 {
        Options::default().max_symbols
    }

    fn shard_symbols() -> u32 {
        DEFAULT_SHARD_SYMBOLS
    }

    fn max_length() -> u32 {
        40
    }

    fn unknown_threshold() -> u32 {
        1
    }

    fn unknown() -> Classes {
        Classes::Signatures
    }

    /// What happens to the punctuation of a dependency model's sentences.
    pub fn punctuation(&self) -> Punctuation {
        match self.keep_punctuation {
            true => Punctuation::Kept,
            false => Punctuation::Removed,
        }
    }

    /// How to read the corpus.
    pub fn options(&self) -> Options {
        Options { format: self.format, unit: self.unit, max_symbols: self.max_symbols }
    }
}

/// `[inference]`
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct InferenceTable {
    /// The method.
    pub method: Method,
    /// The prior over an adapted nonterminal's strings.
    pub adaptor: AdaptorPrior,
    /// Strings per adapted nonterminal.
    pub truncation: usize,
    /// Weight of the length penalty when candidate strings are ranked (Cohen, Blei & Smith 2010, Eq. 3).
    pub rho: f64,
    /// Rounds after which training stops even if it has not converged; 0: what a PCFG starts from is taken as it is.
    pub max_rounds: usize,
    /// Relative change of the bound below which training has converged; none: 1e-5, and 0 with latent annotations.
    pub tolerance: Option<f64>,
    /// Seed of all random choices.
    pub seed: u64,
    /// How the strings of the sticks and their order are chosen while training.
    pub selection: Selection,
    /// Share of a stick's strings that a round may drop, with selection by the bound.
    pub drop_share: f64,
    /// Hyper-parameters that are fitted; the discount only with the Pitman–Yor adaptor.
    pub fit: Vec<Hyperparameter>,
    /// Concentration that a stick begins with, unless the grammar gives it.
    pub concentration: f64,
    /// Discount that a stick begins with, unless the grammar gives it; 0 with the Dirichlet adaptor.
    pub discount: f64,
    /// Longest candidate string, in symbols.
    pub max_string: u32,
    /// Strings per stick in the first round, with sticks that grow; 0: all from the start.
    pub grow_from: usize,
    /// Strings added to each stick after every round, with sticks that grow.
    pub grow_by: usize,
    /// Runs from different starts, of which the best is kept; of a sampler: its chains.
    pub restarts: usize,
    /// Largest |ln| of the noise on the weights that runs after the first start from.
    pub jitter: f64,
    /// Pseudo-count of every rule and string, over what the grammar says.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub alpha: Option<f64>,
    /// What the first round runs with.
    pub start: Start,
    /// The trees or the model to start from, if `start` asks for it.
    pub start_from: PathBuf,
    /// Largest relative noise on the weights, with `start = "noise"`.
    pub noise: f64,
    /// Temperature of the first round.
    pub anneal_from: f64,
    /// Temperature at the end of annealing, and from then on.
    pub anneal_to: f64,
    /// Rounds that annealing takes; 0: none.
    pub anneal_rounds: usize,
    /// Share of a sampler's rounds of which no samples are kept.
    pub burn_in: f64,
    /// Rounds from one kept sample to the next.
    pub keep_every: usize,
    /// Sweeps of a round, of Hastings.
    pub sweeps: u32,
    /// Whether a sweep draws the labels of tables anew, of Hastings over adaptor grammars.
    pub relabel: bool,
    /// Shape of the Gamma prior of concentrations, of Hastings; if concentrations are not fitted, it is not used.
    pub gamma_shape: f64,
    /// Scale of the Gamma prior of concentrations, of Hastings.
    pub gamma_scale: f64,
    /// Measurements on held-out sentences without improvement after which a run ends; 0: it goes on.
    pub patience: usize,
    /// Shards of sentences that a round reads, of stochastic variational Bayes.
    pub sample_shards: usize,
    /// Rounds of it that all have the weights that training starts with; 0: as many as it takes to read the corpus once.
    pub first_rounds: usize,
    /// How fast its averages cease to forget: κ of the rate (round + τ)^−κ.
    pub forget_power: f64,
    /// How little its early rounds count: τ.
    pub forget_delay: f64,
    /// Rounds from one change of the strings in use to the next; 0: as many as it takes to read the corpus once.
    pub select_every: usize,
    /// Subtypes of every label, with latent annotations.
    pub subtypes: usize,
    /// How the harmonic start of a dependency model weighs a head at distance d: 1 / (d + offset).
    pub harmonic_offset: f64,
    /// Whether the weights of a word's heads are scaled to sum to one there, less the root's share.
    pub harmonic_per_child: bool,
    /// How the decisions to stop begin there.
    pub harmonic_stops: HarmonicStops,
    /// The probabilities of stopping before a first child and before another one, with `harmonic_stops = "fixed"`.
    pub harmonic_stop: [f64; 2],
    /// Added to every count there.
    pub harmonic_smoothing: f64,
    /// The prior of the rules of a PCFG or a dependency model.
    pub prior: RulePrior,
    /// Tags whose attachments the logistic-normal prior relates before training.
    pub families: FamiliesSource,
    /// What sentences are read with after training with that prior.
    pub estimate: PointEstimate,
    /// Components that are mixed with the dependency model itself while training, each with some of its trees (Cohen & Smith 2009).
    pub components: Vec<Component>,
    /// What their weights obey: inequalities between sums of names, that of the model being `base`.
    pub mixture: Vec<String>,
    /// The most that the base weighs in the first round,
    pub base_from: f64,
    /// how much more it may in every later one,
    pub base_by: f64,
    /// and the most that it ever does.
    pub base_to: f64,
}

impl InferenceTable {
    /// The harmonic start.
    pub fn harmonic(&self) -> Harmonic {
        let [no_child, has_child] = self.harmonic_stop;
        Harmonic {
            offset: self.harmonic_offset,
            per_child: self.harmonic_per_child,
            stops: match self.harmonic_stops {
                HarmonicStops::Expected => Stops::Expected,
                HarmonicStops::Fixed => Stops::Fixed { no_child, has_child },
                HarmonicStops::Even => Stops::Even,
            },
            smoothing: self.harmonic_smoothing,
        }
    }

    /// The components and what their weights obey, if there are any.
    pub fn constrained(&self) -> Result<Option<Constrained>, MixtureError> {
        if self.components.is_empty() {
            return Ok(None);
        }
        let limit = Limit { from: self.base_from, step: self.base_by, to: self.base_to };
        let names: Vec<String> = self.components.iter().map(|component| component.name.clone()).collect();
        let mixture = Mixture::new(&names, &self.mixture, Some(limit))?;
        Ok(Some(Constrained { components: self.components.clone(), mixture }))
    }
}

impl Default for InferenceTable {
    fn default() -> InferenceTable {
        InferenceTable {
            method: Method::default(),
            adaptor: AdaptorPrior::default(),
            truncation: 15_000,
            rho: -0.2,
            max_rounds: 40,
            tolerance: None,
            seed: 1,
            selection: Selection::default(),
            drop_share: 0.2,
            fit: vec![Hyperparameter::Concentration, Hyperparameter::Discount, Hyperparameter::Alpha],
            concentration: 1.0,
            discount: 0.0,
            max_string: 64,
            grow_from: 0,
            grow_by: 400,
            restarts: 1,
            jitter: 0.5,
            alpha: None,
            start: Start::default(),
            start_from: PathBuf::new(),
            noise: 0.01,
            anneal_from: 1.0,
            anneal_to: 1.0,
            anneal_rounds: 0,
            burn_in: 0.5,
            keep_every: 10,
            sweeps: 1,
            relabel: true,
            gamma_shape: 0.01,
            gamma_scale: 100.0,
            patience: 0,
            sample_shards: 16,
            first_rounds: 0,
            forget_power: 0.75,
            forget_delay: 0.0,
            select_every: 0,
            subtypes: 2,
            harmonic_offset: 0.0,
            harmonic_per_child: true,
            harmonic_stops: HarmonicStops::default(),
            harmonic_stop: [0.25, 0.75],
            harmonic_smoothing: 0.1,
            prior: RulePrior::default(),
            families: FamiliesSource::default(),
            estimate: PointEstimate::default(),
            components: Vec::new(),
            mixture: Vec::new(),
            base_from: Limit::default().from,
            base_by: Limit::default().step,
            base_to: Limit::default().to,
        }
    }
}

/// `[output]`
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct OutputTable {
    /// The folder that the results are written to; made if it is not there.
    pub dir: PathBuf,
    /// The decoders that are scored and written.
    pub decoders: Vec<Decoder>,
    /// The nonterminals whose constituents are the segments; none: `Word`.
    pub segments: Vec<String>,
    /// Rounds from one scoring against gold to the next; 0: only at the end.
    pub score_every: usize,
    /// Folder or URL of the checkpoints (`s3://`, `gs://`, `az://`); empty: `checkpoints` in `dir`.
    pub checkpoints: String,
    /// Seconds from one checkpoint to the next; 0: one after every round.
    pub checkpoint_seconds: f64,
    /// The latest checkpoints that are kept, beside the one with the best bound; 0: none is written.
    pub keep_checkpoints: usize,
}

impl OutputTable {
    /// Where the checkpoints are.
    pub fn checkpoints(&self) -> String {
        match self.checkpoints.is_empty() {
            true => self.dir.join("checkpoints").display().to_string(),
            false => self.checkpoints.clone(),
        }
    }
}

impl Default for OutputTable {
    fn default() -> OutputTable {
        OutputTable {
            dir: "out".into(),
            decoders: vec![Decoder::Viterbi, Decoder::Mbr],
            segments: Vec::new(),
            score_every: 10,
            checkpoints: String::new(),
            checkpoint_seconds: 5.0,
            keep_checkpoints: 2,
        }
    }
}

/// Kinds of model.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ModelKind {
    /// An adaptor grammar.
    #[default]
    Adaptor,
    /// A probabilistic context-free grammar.
    Pcfg,
    /// A probabilistic context-free grammar with latent annotations, of a treebank.
    PcfgLa,
    /// The dependency model with valence, over the tags of a treebank.
    Dmv,
}

/// Methods of inference.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Method {
    /// Variational Bayes (Cohen, Blei & Smith 2010, with truncated sticks; Kurihara & Sato 2006).
    #[default]
    Vb,
    /// Expectation maximisation.
    Em,
    /// Expectation maximisation with the prior.
    MapEm,
    /// Variational Bayes with fitted pseudo-counts.
    VbEm,
    /// Stochastic variational Bayes: rounds over samples of the corpus (Hoffman et al. 2013; Zhai, Boyd-Graber & Cohen 2014).
    Svb,
    /// Collapsed variational Bayes (Wang & Blunsom 2013).
    Cvb,
    /// Gibbs sampling of trees and probabilities (Johnson, Griffiths & Goldwater 2007, §3).
    Gibbs,
    /// Collapsed Metropolis–Hastings over trees (Johnson, Griffiths & Goldwater 2007, §5; with adaptors as py-cfg).
    Hastings,
}

impl Method {
    /// Whether it draws samples.
    pub fn is_sampler(self) -> bool {
        matches!(self, Method::Gibbs | Method::Hastings)
    }

    /// Whether models of that kind can be trained with it.
    pub(super) fn trains(self, kind: ModelKind) -> bool {
        match kind {
            ModelKind::Adaptor => matches!(self, Method::Vb | Method::Svb | Method::Hastings),
            ModelKind::Pcfg | ModelKind::Dmv => true,
            ModelKind::PcfgLa => matches!(self, Method::Em | Method::Vb | Method::Cvb),
        }
    }
}

/// What the first round runs with.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Start {
    /// All alike, and with jitter in all runs but the first.
    #[default]
    Uniform,
    /// With jitter in every run.
    Jitter,
    /// With little noise, in every run.
    Noise,
    /// The rules of given trees; of Hastings, these trees.
    Trees,
    /// Of Hastings: trees drawn one after the other, each given those before it.
    Incremental,
    /// What a trained model of the same grammar has counted; of Hastings, its most probable trees.
    Model,
    /// Of a dependency model: near words are heads of each other (Klein & Manning 2004); of Hastings, the most probable trees then.
    Harmonic,
}

/// How the decisions to stop begin, with a harmonic start.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum HarmonicStops {
    /// From the expected numbers of children.
    #[default]
    Expected,
    /// As `harmonic_stop` says.
    Fixed,
    /// 1/2 each.
    Even,
}

/// Priors of the rules of a nonterminal.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum RulePrior {
    /// Dirichlet, with the pseudo-counts of the grammar.
    #[default]
    Dirichlet,
    /// Logistic-normal, fitted (Cohen, Gimpel & Smith 2008).
    LogisticNormal,
}

/// Priors over an adapted nonterminal's strings.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum AdaptorPrior {
    /// The Pitman–Yor process; its discount is fitted.
    #[default]
    PitmanYor,
    /// The Dirichlet process: discount 0.
    Dirichlet,
}

/// How strings are chosen while training.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Selection {
    /// Strings that the bound is better off without are dropped, and sticks sorted by expected uses where that raises it.
    #[default]
    Bound,
    /// Sticks are sorted, but keep their strings.
    Sorted,
    /// Sticks stay as the candidates were ranked: the paper's setting.
    Fixed,
}

/// Hyper-parameters of the priors.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Hyperparameter {
    /// Concentration of the sticks (the papers' a).
    Concentration,
    /// Discount of the sticks (the papers' b).
    Discount,
    /// Pseudo-counts of the rules.
    Alpha,
}
