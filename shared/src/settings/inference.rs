//! The table `[inference]` of a job file: how a model is trained, with the default, help, range and readers of every key.
//!
//! To add a setting, add its declaration here; [`super::key`] lists what is derived from it.

use std::fmt;
use std::path::PathBuf;

use serde::de::Deserializer;
use serde::{Deserialize, Serialize, Serializer};

use super::key::{Need, OutOfRange, Rules};
use super::method::*;
use crate::models::dmv::Layout;
use crate::models::dmv::constraint::Component;
use crate::models::dmv::harmonic::{Harmonic, Stops};
use crate::models::dmv::rules::RuleSet;
use crate::models::logistic_normal::PointEstimate;
use crate::train::logistic_normal::Constrained;
use crate::train::mixture::{Limit, MAX_COMPONENTS, Mixture, MixtureError};

const HELD_OUT: Need = Need {
    text: "held-out sentences (`corpus.held_out` or `corpus.held_out_share`)",
    holds: |job, _| job.is_held_out(),
};
const RANDOM: Need = Need {
    text: "something random: a sampler, a method over samples of the corpus, a treebank, `restarts` above 1, or a random `start`",
    holds: |job, inference| {
        inference.method.is_sampler()
            || inference.method.is_stochastic()
            || job.model() == Model::PcfgLa
            || inference.restarts > 1
            || matches!(inference.start, Start::Jitter | Start::Noise)
    },
};
const JITTER: Need = Need {
    text: "`restarts` above 1 or `start = \"jitter\"`",
    holds: |_, inference| inference.restarts > 1 || inference.start == Start::Jitter,
};
const NOISE: Need =
    Need { text: "`start = \"noise\"`", holds: |_, inference| inference.start == Start::Noise };
const START_FROM: Need = Need {
    text: "`start = \"trees\"` or `start = \"model\"`",
    holds: |_, inference| inference.start.is_given(),
};
const HARMONIC: Need =
    Need { text: "`start = \"harmonic\"`", holds: |_, inference| inference.start == Start::Harmonic };
const HARMONIC_STOP: Need = Need {
    text: "`start = \"harmonic\"` and `harmonic_stops = \"fixed\"`",
    holds: |_, inference| {
        inference.start == Start::Harmonic && inference.harmonic_stops == HarmonicStops::Fixed
    },
};
const DROPS: Need =
    Need { text: "`selection = \"bound\"`", holds: |_, inference| inference.selection == Selection::Bound };
const UNCOUNTED: Need = Need {
    text: "a start without counts: `uniform`, `jitter` or `noise`",
    holds: |job, inference| {
        job.model().is_adapted() || !inference.start.is_given() && inference.start != Start::Harmonic
    },
};
const GROWS: Need = Need { text: "`grow_from` above 0", holds: |_, inference| inference.grow_from > 0 };
const ANNEALS: Need =
    Need { text: "`anneal_rounds` above 0", holds: |_, inference| inference.anneal_rounds > 0 };
const DISCOUNT: Need = Need {
    text: "`adaptor = \"pitman-yor\"`",
    holds: |_, inference| inference.adaptor == AdaptorPrior::PitmanYor,
};
const GAMMA: Need = Need {
    text: "`\"concentration\"` in `fit`",
    holds: |_, inference| inference.fit.contains(&Hyperparameter::Concentration),
};
const HAS_RULES: Need = Need { text: "`rules`", holds: |_, inference| !inference.rules.is_empty() };
const COMPONENTS: Need =
    Need { text: "`components`", holds: |_, inference| !inference.components.is_empty() };

crate::table! {
    /// A method of training and its settings, as in the table `[inference]` of a job file. Settings that the method or the model does not
    /// have are ignored.
    ///
    /// ```
    /// use grammaton::{Inference, Method};
    ///
    /// let settings = Inference { truncation: 200, tolerance: Some(1e-4), ..Method::vb() };
    /// assert_eq!((settings.method, settings.seed), (Method::Vb, 1));
    /// ```
    Inference = "inference";

    /// The method of inference.
    method: Method = Method::default(), Rules::read_by(EVERY).prepares(|_, inference| inference.method == Method::Hastings);

    /// The prior over an adapted nonterminal's strings; `dirichlet` has discount 0.
    adaptor: AdaptorPrior = AdaptorPrior::default(), Rules::read_by(ADAPTORS);

    /// Number of strings of each adapted nonterminal.
    truncation: usize = 15_000, Rules::read_by(STICKS).from_to(1.0, 1e8).prepares(|_, _| true);

    /// Penalty on the length of candidate strings in their ranking (Cohen, Blei & Smith 2010, Eq. 3); a bonus if negative.
    rho: f64 = 0.0, Rules::read_by(STICKS).from_to(-10.0, 10.0).prepares(|_, _| true);

    /// Maximum number of rounds; 0: the start of a PCFG is the result.
    max_rounds: usize = 40, Rules::read_by(EVERY).from_to(0.0, MAX_ROUNDS as f64);

    /// Relative change of the bound below which training has converged. If not set, 0.00001, and 0 with `pcfg-la`.
    tolerance: Option<f64> = None, Rules::read_by(CONVERGING).from_below(0.0, 1.0);

    /// Seed of all random choices except the held-out share.
    seed: u64 = 1, Rules::read_by(EVERY).with(RANDOM);

    /// Choice and order of the strings of sticks during training. `bound`: strings whose removal raises the bound are dropped, and
    /// sticks are sorted; `sorted`: sticks are only sorted; `fixed`: the paper's setting.
    selection: Selection = Selection::default(), Rules::read_by(STICKS);

    /// Maximum share of a stick's strings that a round may drop.
    drop_share: f64 = 0.2, Rules::read_by(STICKS).above_to(0.0, 1.0).with(DROPS);

    /// Hyper-parameters that are fitted; `[]`: none. Of `hastings` only the concentration is; the discount only with the Pitman–Yor adaptor.
    fit: Vec<Hyperparameter> =
        vec![Hyperparameter::Concentration, Hyperparameter::Discount, Hyperparameter::Alpha],
        Rules::read_by(ADAPTORS);

    /// Initial concentration of a stick or restaurant, unless the grammar gives it.
    concentration: f64 = 1.0, Rules::read_by(ADAPTORS).from_to(1e-3, 1e6);

    /// Initial discount of a stick or restaurant, unless the grammar gives it.
    discount: f64 = 0.0, Rules::read_by(ADAPTORS).from_to(0.0, 0.99).with(DISCOUNT);

    /// Maximum length of a candidate string, or with `<substrings>` of a substring, in symbols.
    max_string: u32 = 64, Rules::read_by(STRINGS).at_least(1.0).prepares(|_, _| true);

    /// Number of strings of a stick in the first round, if sticks grow; 0: all from the start.
    grow_from: usize = 0, Rules::read_by(STICKS);

    /// Number of strings added to each stick after every round.
    grow_by: usize = 400, Rules::read_by(STICKS).with(GROWS);

    /// Number of runs from different starts, of which the best is kept; for a sampler, number of chains.
    restarts: usize = 1, Rules::read_by(EVERY).from_to(1.0, 1000.0);

    /// Maximum |ln| of the noise on the initial weights of runs after the first, and with `start = "jitter"` of the first too.
    jitter: f64 = 0.5, Rules::read_by(STARTED).from_to(0.0, 10.0).with(JITTER);

    /// Pseudo-count of every rule and string, instead of the grammar's; with `pcfg-la`, of every split rule (0.01 if not set).
    alpha: Option<f64> = None, Rules::read_by(PSEUDO_COUNTS).from_to(1e-100, 1e6).prepares(|model, _| model == Model::AdaptedDmv);

    /// Start of training. `uniform`: equal weights; `jitter` and `noise`: with much or little noise; `trees`: counts of given trees, or
    /// with `hastings` these trees; `incremental`: trees drawn one after the other; `model`: counts of a trained model, or with
    /// `hastings` its most probable trees; `harmonic`: weights of heads fall with distance (Klein & Manning 2004).
    start: Start = Start::default(),
        Rules::read_by(EVERY)
            .defaults(&[(ModelKind::Dmv, "harmonic"), (ModelKind::PcfgLa, "noise")])
            .prepares(|_, inference| inference.start.is_given() || inference.method == Method::Hastings);

    /// File of bracketed trees, one per line, or a model, to start from.
    start_from: PathBuf = PathBuf::new(), Rules::read_by(GIVEN).file_unless(|_| false).with(START_FROM).prepares(|_, _| true);

    /// Maximum relative noise on the weights of the first round.
    noise: f64 = 0.01, Rules::read_by(NOISY).from_below(0.0, 1.0).with(NOISE);

    /// Temperature of the first round.
    anneal_from: f64 = 1.0, Rules::read_by(HEATED).from_to(0.01, 1000.0).with(ANNEALS);

    /// Temperature at the end of annealing and afterwards.
    anneal_to: f64 = 1.0, Rules::read_by(HEATED).from_to(0.01, 1000.0);

    /// Number of rounds of annealing; 0: no annealing.
    anneal_rounds: usize = 0, Rules::read_by(HEATED);

    /// Share of a sampler's rounds before the first kept sample.
    burn_in: f64 = 0.5, Rules::read_by(SAMPLERS).from_below(0.0, 1.0);

    /// Number of rounds between kept samples.
    keep_every: usize = 10, Rules::read_by(SAMPLERS).at_least(1.0);

    /// Number of sweeps of a round.
    sweeps: u32 = 1, Rules::read_by(CHAINS).from_to(1.0, 1e6);

    /// Whether a sweep resamples the labels of tables.
    relabel: bool = true, Rules::read_by(TABLES);

    /// Shape of the Gamma prior of concentrations.
    gamma_shape: f64 = 0.01, Rules::read_by(TABLES).above_to(0.0, 1e9).with(GAMMA);

    /// Scale of the Gamma prior of concentrations.
    gamma_scale: f64 = 100.0, Rules::read_by(TABLES).above_to(0.0, 1e9).with(GAMMA);

    /// Number of measurements on held-out sentences (every `output.score_every` rounds) without improvement after which a run ends; 0:
    /// unlimited.
    patience: usize = 0, Rules::read_by(WITHOUT_TREES).with(HELD_OUT);

    /// Number of shards of sentences in the sample of a round.
    sample_shards: usize = 16, Rules::read_by(STOCHASTIC).at_least(1.0);

    /// Number of rounds with the initial weights; 0: one pass over the corpus.
    first_rounds: usize = 0, Rules::read_by(STOCHASTIC).with(UNCOUNTED);

    /// Exponent κ of the learning rate (round + τ)^−κ.
    forget_power: f64 = 0.75, Rules::read_by(STOCHASTIC).from_to(0.0, 1.0);

    /// Delay τ of the learning rate (round + τ)^−κ.
    forget_delay: f64 = 0.0, Rules::read_by(STOCHASTIC).from_to(0.0, 1e9);

    /// Number of rounds between changes of the strings in use; 0: one pass over the corpus.
    select_every: usize = 0, Rules::read_by(STOCHASTIC_STICKS);

    /// Number of subtypes of every label.
    subtypes: usize = 2, Rules::read_by(TREES).from_to(1.0, 16.0);

    /// Offset in the weight of a head at distance d: 1 / (d + offset).
    harmonic_offset: f64 = 0.0, Rules::read_by(DEPENDENCIES).from_to(0.0, 1e6).with(HARMONIC).prepares(|_, inference| inference.method == Method::Hastings);

    /// Whether the weights of a word's heads are scaled to sum to 1 minus the root's share.
    harmonic_per_child: bool = true, Rules::read_by(DEPENDENCIES).with(HARMONIC).prepares(|_, inference| inference.method == Method::Hastings);

    /// Initial probabilities of stopping: from the expected numbers of children, from `harmonic_stop`, or 1/2 each.
    harmonic_stops: HarmonicStops = HarmonicStops::default(), Rules::read_by(DEPENDENCIES).with(HARMONIC).prepares(|_, inference| inference.method == Method::Hastings);

    /// Probabilities of stopping before the first child and before further children.
    harmonic_stop: [f64; 2] = [0.25, 0.75],
        Rules::read_by(DEPENDENCIES).above_below(0.0, 1.0).with(HARMONIC_STOP).prepares(|_, inference| inference.method == Method::Hastings);

    /// Number added to every count of the harmonic start.
    harmonic_smoothing: f64 = 0.1, Rules::read_by(DEPENDENCIES).above_to(0.0, 1e6).with(HARMONIC).prepares(|_, inference| inference.method == Method::Hastings);

    /// The prior of the rules of a nonterminal: Dirichlet, or a fitted logistic-normal (Cohen, Gimpel & Smith 2008; with `vb`).
    prior: RulePrior = RulePrior::default(), Rules::read_by(RULES);

    /// Families of tags whose attachments the initial prior correlates: `none`, the built-in families of the Penn Treebank (`ptb`) or of
    /// universal tags (`ud`), or a file with lines `family: TAG TAG …`.
    families: FamiliesSource = FamiliesSource::default(), Rules::read_by(NORMAL_DMV).file_unless(FamiliesSource::is_word);

    /// Point estimate for decoding after training: softmax(μ), or e^μ, which need not sum to 1.
    estimate: PointEstimate = PointEstimate::default(), Rules::read_by(NORMAL);

    /// Pseudo-counts of the children of a head on a side with extended valence (Headden, Johnson & McClosky 2009): stops tell no child, one, and more
    /// apart, and the outermost child has probabilities of its own; the priors of both kinds of children have the proportions of all together. 0: the
    /// model of Klein & Manning (2004).
    backoff: f64 = 0.0, Rules::read_by(EXTENDED).from_to(0.0, 1e9).prepares(|_, _| true);

    /// Rules that say which dependency trees are probable, before training and beside it: `none`, those of universal tags (`ud`), or a list of tables
    /// with a `weight` and `head`, `child`, `side`; or `leaf`; or `root`; or `longest_arc`; or `across`. Each multiplies a tree by
    /// e^(`rules_weight` · `weight`) as often as the tree obeys it, in every round and when sentences are parsed.
    rules: RuleSet = RuleSet::None, Rules::read_by(RULED).prepares(|_, _| true);

    /// Strength of the rules.
    rules_weight: f64 = 2.0, Rules::read_by(RULED).from_to(0.0, 10.0).with(HAS_RULES).prepares(|_, _| true);

    /// Components that are mixed with the model itself (`base`) during training, each restricted to some of its trees (Cohen & Smith
    /// 2009): names, or tables with `name`, `roots`, `longest_arc`, `phrases`, `forbid`.
    components: Vec<Component> = Vec::new(), Rules::read_by(NORMAL_DMV);

    /// Constraints on the weights of `base` and the components: `["right-attach = short-dep", "base >= 0.5"]`.
    mixture: Vec<String> = Vec::new(), Rules::read_by(NORMAL_DMV).with(COMPONENTS);

    /// Maximum weight of the base in the first round.
    base_from: f64 = Limit::default().from, Rules::read_by(NORMAL_DMV).with(COMPONENTS);

    /// Increase of the base's maximum weight in every later round.
    base_by: f64 = Limit::default().step, Rules::read_by(NORMAL_DMV).with(COMPONENTS);

    /// Final maximum weight of the base.
    base_to: f64 = Limit::default().to, Rules::read_by(NORMAL_DMV).with(COMPONENTS);
}

impl Method {
    /// [`Method::Vb`] with default settings: variational Bayes of an adaptor grammar (Cohen, Blei & Smith 2010) or a PCFG (Kurihara & Sato
    /// 2006).
    pub fn vb() -> Inference {
        Method::Vb.into()
    }

    /// [`Method::Em`] with default settings.
    pub fn em() -> Inference {
        Method::Em.into()
    }

    /// [`Method::Svb`] with default settings.
    pub fn svb() -> Inference {
        Method::Svb.into()
    }

    /// [`Method::Cvb`] with default settings: collapsed variational Bayes (Wang & Blunsom 2013).
    pub fn cvb() -> Inference {
        Method::Cvb.into()
    }

    /// [`Method::Hastings`] with default settings: the sampler of Johnson, Griffiths & Goldwater (2007), with adaptors that of py-cfg.
    pub fn hastings() -> Inference {
        Method::Hastings.into()
    }

    /// Variational EM with logistic-normal priors (Cohen, Gimpel & Smith 2008), with default settings.
    pub fn logistic_normal() -> Inference {
        Inference { prior: RulePrior::LogisticNormal, ..Method::vb() }
    }
}

/// A method with default settings.
impl From<Method> for Inference {
    fn from(method: Method) -> Inference {
        Inference { method, ..Inference::default() }
    }
}

impl Estimator {
    /// The estimator of a point; `None` for a method that is incompatible with the prior.
    pub fn of(inference: &Inference) -> Option<Estimator> {
        Some(match (inference.method, inference.prior) {
            (Method::Vb, RulePrior::LogisticNormal) => Estimator::LogisticNormal,
            (_, RulePrior::LogisticNormal) => return None,
            (Method::Em, _) => Estimator::Em,
            (Method::MapEm, _) => Estimator::MapEm,
            (Method::Vb, _) => Estimator::Vb,
            (Method::VbEm, _) => Estimator::VbEm,
            (Method::Svb, _) => Estimator::Svb,
            (Method::Oem, _) => Estimator::Oem,
            (Method::Cvb, _) => Estimator::Cvb,
            (Method::Gibbs, _) => Estimator::Gibbs,
            (Method::Hastings, _) => Estimator::Hastings,
        })
    }
}

/// A setting whose value is out of range, or does not go with the model or with other settings.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("inference.{key}: found {found}, expected {expected}")]
pub struct SettingError {
    /// Name of the setting.
    pub key: &'static str,
    /// Its value.
    pub found: String,
    /// The values that it may have.
    pub expected: String,
}

/// Maximum number of rounds of a run: each keeps a line of metrics in memory.
pub const MAX_ROUNDS: usize = 1_000_000;

impl Inference {
    #[doc(hidden)]
    /// Refuses numbers out of their range, and settings that do not go with the model or with each other.
    pub fn check(&self, model: Model) -> Result<(), SettingError> {
        self.check_ranges()?;
        self.check_method(model)
    }

    #[doc(hidden)]
    /// Refuses numbers out of their range.
    pub fn check_ranges(&self) -> Result<(), SettingError> {
        match self.out_of_range() {
            Some(OutOfRange { key, found, expected }) => Err(SettingError { key: key.name, found, expected }),
            None => Ok(()),
        }
    }

    #[doc(hidden)]
    /// Refuses settings that do not go with the model or with each other.
    pub fn check_method(&self, model: Model) -> Result<(), SettingError> {
        let holds = |key: &'static str, holds: bool, found: &dyn fmt::Display, expected: &str| {
            let misfit = || SettingError { key, found: found.to_string(), expected: expected.to_owned() };
            if holds { Ok(()) } else { Err(misfit()) }
        };
        let is_normal = self.prior == RulePrior::LogisticNormal;
        let suits = !is_normal || matches!(model, Model::Pcfg | Model::Dmv);
        holds(
            "prior",
            suits,
            &"\"logistic-normal\"",
            "\"dirichlet\", unless model.kind is \"pcfg\", or \"dmv\" without model.adapted",
        )?;
        let suits = !is_normal || self.method == Method::Vb;
        holds("method", suits, &"another", "\"vb\" with inference.prior = \"logistic-normal\"")?;
        let estimator = Estimator::of(self).filter(|estimator| model.estimators().contains(estimator));
        let methods = match model {
            Model::PcfgLa => "\"em\", \"vb\" or \"cvb\" for a PCFG with latent annotations",
            Model::AdaptedDmv => "\"vb\" or \"svb\" with adapted constituents (model.adapted)",
            Model::Adaptor | Model::Pcfg | Model::Dmv => {
                "\"vb\", \"svb\" or \"hastings\" for an adaptor grammar; the others are for model.kind = \"pcfg\""
            }
        };
        holds("method", estimator.is_some(), &"another", methods)?;
        if let Some(estimator) = estimator {
            let starts = Start::all().filter(|start| start.suits(model, estimator));
            let starts: Vec<String> = starts.map(|start| format!("\"{}\"", start.name())).collect();
            let one_of = if starts.len() > 1 { "one of " } else { "" };
            let expected = format!("{one_of}{} for {}", starts.join(", "), estimator.in_words(model));
            let found = format!("\"{}\"", self.start.name());
            holds("start", self.start.suits(model, estimator), &found, &expected)?;
        }
        let from_start = !model.is_adapted() && model != Model::PcfgLa && !self.method.is_sampler();
        let rounds = self.max_rounds;
        holds("max_rounds", rounds >= 1 || from_start, &rounds, "1 or more, with this model and method")?;
        if let (Some(alpha), Model::PcfgLa) = (self.alpha, model) {
            // Below, weights of a tree leave the range of exponents.
            holds("alpha", alpha >= 1e-9, &alpha, "1e-9 or more with latent annotations")?;
        }
        let named = !matches!(&self.families, FamiliesSource::File(path) if path.as_os_str().is_empty());
        holds("families", named, &"an empty one", "\"none\", \"ptb\", \"ud\" or a path")?;
        let n_components = self.components.len();
        let most = format!("at most {MAX_COMPONENTS} components");
        holds("components", n_components <= MAX_COMPONENTS, &n_components, &most)?;
        let suits = n_components > 0 || self.mixture.is_empty() || !is_normal;
        holds("mixture", suits, &"some", "[], unless there are inference.components")
    }

    #[doc(hidden)]
    /// The parameters of a dependency model of so many tags, with extended valence or without.
    pub fn layout(&self, n_tags: usize) -> Layout {
        match Estimator::of(self) {
            Some(Estimator::Vb) if self.backoff > 0.0 => Layout::extended(n_tags),
            _ => Layout::new(n_tags),
        }
    }

    #[doc(hidden)]
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

    #[doc(hidden)]
    /// The components and the constraints on their weights, if there are any.
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

/// Starts of training.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Start {
    /// Equal weights, with jitter in all runs but the first.
    #[default]
    Uniform,
    /// Weights with jitter in every run.
    Jitter,
    /// Weights with little noise in every run.
    Noise,
    /// Counts of given trees; for Hastings, these trees.
    Trees,
    /// For Hastings: trees drawn one after the other, each given the trees before it.
    Incremental,
    /// Counts of a trained model of the same grammar; for Hastings, its most probable trees.
    Model,
    /// For a dependency model: harmonic weights of heads (Klein & Manning 2004); for Hastings, the most probable trees under them.
    Harmonic,
}

impl Start {
    #[doc(hidden)]
    /// All starts.
    pub fn all() -> impl Iterator<Item = Start> {
        [
            Start::Uniform,
            Start::Jitter,
            Start::Noise,
            Start::Trees,
            Start::Incremental,
            Start::Model,
            Start::Harmonic,
        ]
        .into_iter()
    }

    #[doc(hidden)]
    /// Name in a job file.
    pub fn name(self) -> &'static str {
        match self {
            Start::Uniform => "uniform",
            Start::Jitter => "jitter",
            Start::Noise => "noise",
            Start::Trees => "trees",
            Start::Incremental => "incremental",
            Start::Model => "model",
            Start::Harmonic => "harmonic",
        }
    }

    #[doc(hidden)]
    /// Whether it reads trees or a model from `start_from`.
    pub fn is_given(self) -> bool {
        matches!(self, Start::Trees | Start::Model)
    }

    #[doc(hidden)]
    /// Whether a model with that estimator can start so.
    pub fn suits(self, model: Model, estimator: Estimator) -> bool {
        let of_rules = matches!(model, Model::Pcfg | Model::Dmv);
        let is_chain = estimator == Estimator::Hastings;
        match (self, model, estimator) {
            (Start::Noise, Model::PcfgLa, _) => true,
            (_, Model::PcfgLa, _) => false,
            (Start::Uniform, ..) => true,
            (Start::Trees | Start::Model, ..) => of_rules || is_chain,
            (Start::Incremental, ..) => is_chain,
            (Start::Harmonic, ..) => matches!(model, Model::Dmv | Model::AdaptedDmv),
            (Start::Jitter | Start::Noise, ..) => of_rules && !is_chain,
        }
    }
}

/// Initial probabilities of stopping, with a harmonic start.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum HarmonicStops {
    /// Computed from the expected numbers of children.
    #[default]
    Expected,
    /// The values of `harmonic_stop`.
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

/// Choice of strings during training.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Selection {
    /// Strings whose removal raises the bound are dropped, and sticks are sorted by expected uses if that raises it.
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

/// Source of families of tags.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub enum FamiliesSource {
    /// No families.
    #[default]
    None,
    /// Built-in families of the tags of the Penn Treebank.
    Ptb,
    /// Built-in families of the universal tags.
    Ud,
    /// A file with one family per line.
    File(PathBuf),
}

impl FamiliesSource {
    #[doc(hidden)]
    /// Whether a text is a keyword and not a file.
    pub fn is_word(text: &str) -> bool {
        !matches!(FamiliesSource::from(text), FamiliesSource::File(_))
    }
}

impl From<&str> for FamiliesSource {
    fn from(text: &str) -> FamiliesSource {
        match text {
            "none" => FamiliesSource::None,
            "ptb" => FamiliesSource::Ptb,
            "ud" => FamiliesSource::Ud,
            path => FamiliesSource::File(path.into()),
        }
    }
}

impl fmt::Display for FamiliesSource {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            FamiliesSource::None => write!(out, "none"),
            FamiliesSource::Ptb => write!(out, "ptb"),
            FamiliesSource::Ud => write!(out, "ud"),
            FamiliesSource::File(path) => write!(out, "{}", path.display()),
        }
    }
}

impl Serialize for FamiliesSource {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for FamiliesSource {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<FamiliesSource, D::Error> {
        let text = String::deserialize(deserializer)?;
        Ok(FamiliesSource::from(&text[..]))
    }
}
