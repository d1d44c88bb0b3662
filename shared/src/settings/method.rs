//! Models and methods: which methods train which models, and which of them read the same keys.
//!
//! A new method is declared here, and nowhere else in [`super`].

use serde::{Deserialize, Serialize};

use Estimator::{Cvb, Em, Gibbs, Hastings, LogisticNormal, MapEm, Oem, Svb, Vb, VbEm};
use Model::{AdaptedDmv, Adaptor, Dmv, Pcfg, PcfgLa};

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

/// Methods of training.
///
/// A method alone stands for its default settings; [`Method::em`] and its like return those, to be changed.
///
/// ```
/// use grammaton::{Inference, Method};
///
/// assert_eq!(Inference::from(Method::Gibbs), Inference { method: Method::Gibbs, ..Inference::default() });
/// assert_eq!(Inference { max_rounds: 10, ..Method::em() }.method, Method::Em);
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Method {
    /// Variational Bayes (Cohen, Blei & Smith 2010, with truncated sticks; Kurihara & Sato 2006).
    #[default]
    Vb,
    /// Expectation maximisation.
    Em,
    /// Maximum a posteriori expectation maximisation.
    MapEm,
    /// Variational Bayes with fitted pseudo-counts.
    VbEm,
    /// Stochastic variational Bayes: rounds over samples of the corpus (Hoffman et al. 2013; Zhai, Boyd-Graber & Cohen 2014).
    Svb,
    /// Stepwise online expectation maximisation: rounds over samples of the corpus (Liang & Klein 2009).
    Oem,
    /// Collapsed variational Bayes (Wang & Blunsom 2013).
    Cvb,
    /// Gibbs sampling of trees and probabilities (Johnson, Griffiths & Goldwater 2007, §3).
    Gibbs,
    /// Collapsed Metropolis–Hastings over trees (Johnson, Griffiths & Goldwater 2007, §5; with adaptors as py-cfg).
    Hastings,
}

impl Method {
    /// Whether the method is a sampler.
    pub fn is_sampler(self) -> bool {
        matches!(self, Method::Gibbs | Method::Hastings)
    }

    /// Whether each round reads a sample of the corpus.
    pub fn is_stochastic(self) -> bool {
        matches!(self, Method::Svb | Method::Oem)
    }

    #[doc(hidden)]
    /// Name of the objective that it reports after each round.
    pub fn objective(self, kind: ModelKind) -> &'static str {
        match self {
            Method::Vb | Method::VbEm => "Variational bound",
            Method::Svb => "Variational bound, estimated",
            Method::Em => "Log-likelihood",
            Method::Oem => "Log-likelihood, estimated",
            Method::MapEm => "Log posterior, up to a constant",
            Method::Cvb => "Log-likelihood of sentences given all others",
            Method::Hastings if kind == ModelKind::Adaptor => {
                "Log posterior of trees and tables, up to a constant"
            }
            Method::Gibbs | Method::Hastings => "Log posterior of trees, up to a constant",
        }
    }
}

/// Kinds of model that keys distinguish: [`ModelKind`], with a separate kind for dependency models with adapted constituents.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Model {
    /// `kind = "adaptor"`.
    Adaptor,
    /// `kind = "pcfg"`.
    Pcfg,
    /// `kind = "pcfg-la"`.
    PcfgLa,
    /// `kind = "dmv"`.
    Dmv,
    /// `kind = "dmv"` with `adapted`.
    AdaptedDmv,
}

/// Estimators that keys distinguish: [`Method`], with a separate one for logistic-normal priors.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Estimator {
    /// `method = "em"`.
    Em,
    /// `method = "map-em"`.
    MapEm,
    /// `method = "vb"`.
    Vb,
    /// `method = "vb-em"`.
    VbEm,
    /// `method = "svb"`.
    Svb,
    /// `method = "oem"`.
    Oem,
    /// `method = "cvb"`.
    Cvb,
    /// `method = "gibbs"`.
    Gibbs,
    /// `method = "hastings"`.
    Hastings,
    /// `method = "vb"` with `prior = "logistic-normal"`.
    LogisticNormal,
}

/// Estimators of each model.
const TRAINED: [(Model, &[Estimator]); 5] = [
    (Adaptor, &[Vb, Svb, Hastings]),
    (Pcfg, ALL),
    (PcfgLa, &[Em, Vb, Cvb]),
    (Dmv, ALL),
    (AdaptedDmv, &[Vb, Svb]),
];

/// Every estimator; PCFGs can be trained by all of them.
const ALL: &[Estimator] = &[Em, MapEm, Vb, VbEm, Svb, Oem, Cvb, Gibbs, Hastings, LogisticNormal];

impl Model {
    /// The estimators of this model.
    pub fn estimators(self) -> &'static [Estimator] {
        let (_, estimators) =
            TRAINED.iter().find(|(model, _)| *model == self).expect("every model is listed");
        estimators
    }

    /// Whether it has adapted nonterminals.
    pub fn is_adapted(self) -> bool {
        matches!(self, Model::Adaptor | Model::AdaptedDmv)
    }

    /// All models.
    pub fn all() -> impl Iterator<Item = Model> {
        TRAINED.iter().map(|(model, _)| *model)
    }

    /// The model of a job.
    pub fn of(kind: ModelKind, adapted: bool) -> Model {
        match kind {
            ModelKind::Adaptor => Model::Adaptor,
            ModelKind::Pcfg => Model::Pcfg,
            ModelKind::PcfgLa => Model::PcfgLa,
            ModelKind::Dmv if adapted => Model::AdaptedDmv,
            ModelKind::Dmv => Model::Dmv,
        }
    }

    /// Name for texts, in backquotes.
    pub fn name(self) -> &'static str {
        match self {
            Model::Adaptor => "`adaptor`",
            Model::Pcfg => "`pcfg`",
            Model::PcfgLa => "`pcfg-la`",
            Model::Dmv => "`dmv`",
            Model::AdaptedDmv => "`dmv` with `model.adapted`",
        }
    }
}

impl Estimator {
    /// Name for texts, with its method in backquotes.
    pub fn name(self) -> &'static str {
        match self {
            Estimator::Em => "`em`",
            Estimator::MapEm => "`map-em`",
            Estimator::Vb => "`vb`",
            Estimator::VbEm => "`vb-em`",
            Estimator::Svb => "`svb`",
            Estimator::Oem => "`oem`",
            Estimator::Cvb => "`cvb`",
            Estimator::Gibbs => "`gibbs`",
            Estimator::Hastings => "`hastings`",
            Estimator::LogisticNormal => "`vb` with logistic-normal priors",
        }
    }

    /// Name of this estimator with a model, for messages.
    pub fn in_words(self, model: Model) -> String {
        format!("{} by {}", model.name(), self.name()).replace('`', "")
    }
}

/// Models and estimators that read a key, in every combination.
pub type Readers = &'static [(&'static [Model], &'static [Estimator])];

// Readers of keys, from those of most keys to those of few.

/// All models and methods.
pub const EVERY: Readers = &[(&[Adaptor, Pcfg, PcfgLa, Dmv, AdaptedDmv], ALL)];
/// Models of sentences of text.
pub const SENTENCES: Readers = &[(&[Adaptor, Pcfg], ALL)];
/// All but models of treebanks.
pub const WITHOUT_TREES: Readers = &[(&[Adaptor, Pcfg, Dmv, AdaptedDmv], ALL)];
/// Models of treebanks.
pub const TREES: Readers = &[(&[PcfgLa], ALL)];
/// Dependency models.
pub const DEPENDENCIES: Readers = &[(&[Dmv, AdaptedDmv], ALL)];
/// Models of which long sentences are left out.
pub const BY_LENGTH: Readers = &[(&[PcfgLa, Dmv, AdaptedDmv], ALL)];
/// Readers of `shard_symbols`: all but chains over adaptor grammars, which keep all tables in one shard.
pub const SHARDS: Readers = &[(&[Adaptor], &[Vb, Svb]), (&[Pcfg, PcfgLa, Dmv, AdaptedDmv], ALL)];
pub(super) const STICKS: Readers = &[(&[Adaptor, AdaptedDmv], &[Vb, Svb])];
/// Readers of `adapted`: `dmv` without it becomes the model with adapted constituents.
pub const ADAPTABLE: Readers = &[(&[AdaptedDmv, Dmv], &[Vb, Svb])];
pub(super) const ADAPTORS: Readers = &[(&[Adaptor, AdaptedDmv], &[Vb, Svb, Hastings])];
/// Chains over an adaptor grammar.
pub const TABLES: Readers = &[(&[Adaptor], &[Hastings])];
pub(super) const STRINGS: Readers = &[
    (&[Adaptor, AdaptedDmv], &[Vb, Svb]),
    (&[Pcfg], &[Em, MapEm, Vb, VbEm, Svb, Oem, Cvb, Gibbs, Hastings]),
];
pub(super) const CONVERGING: Readers =
    &[(&[Adaptor, AdaptedDmv], &[Vb]), (&[Pcfg, PcfgLa, Dmv], &[Em, MapEm, Vb, VbEm, Cvb, LogisticNormal])];
pub(super) const STARTED: Readers = &[
    (&[Adaptor, AdaptedDmv], &[Vb, Svb]),
    (&[Pcfg, Dmv], &[Em, MapEm, Vb, VbEm, Svb, Oem, Cvb, Gibbs, LogisticNormal]),
];
pub(super) const NOISY: Readers =
    &[(&[PcfgLa], ALL), (&[Pcfg, Dmv], &[Em, MapEm, Vb, VbEm, Svb, Oem, Cvb, Gibbs, LogisticNormal])];
pub(super) const GIVEN: Readers = &[(&[Adaptor], &[Hastings]), (&[Pcfg, Dmv], ALL)];
pub(super) const PSEUDO_COUNTS: Readers = &[
    (&[Adaptor], &[Hastings]),
    (&[Pcfg, Dmv], &[MapEm, Vb, VbEm, Svb, Cvb, Gibbs, Hastings]),
    (&[PcfgLa], &[Vb, Cvb]),
    (&[AdaptedDmv], &[Vb, Svb]),
];
pub(super) const HEATED: Readers =
    &[(&[Adaptor], &[Hastings]), (&[Pcfg, Dmv], &[Em, MapEm, Vb, VbEm, Cvb, Gibbs, Hastings])];
pub(super) const SAMPLERS: Readers = &[(&[Adaptor, Pcfg, Dmv], &[Gibbs, Hastings])];
pub(super) const CHAINS: Readers = &[(&[Adaptor, Pcfg, Dmv], &[Hastings])];
pub(super) const STOCHASTIC: Readers = &[(&[Adaptor, AdaptedDmv], &[Svb]), (&[Pcfg, Dmv], &[Svb, Oem])];
pub(super) const STOCHASTIC_STICKS: Readers = &[(&[Adaptor, AdaptedDmv], &[Svb])];
/// Models of sentences whose constituents may be known.
pub const CONSTITUENTS: Readers = &[(&[Pcfg], ALL)];
pub(super) const RULES: Readers = &[(&[Pcfg, Dmv], ALL)];
/// Readers of `backoff`.
pub const EXTENDED: Readers = &[(&[Dmv], &[Vb])];
/// Methods that read factors of arcs and known heads: all but chains.
pub const RULED: Readers = &[(&[Dmv], &[Em, MapEm, Vb, VbEm, Svb, Oem, Cvb, Gibbs, LogisticNormal])];
pub(super) const NORMAL: Readers = &[(&[Pcfg, Dmv], &[LogisticNormal])];
pub(super) const NORMAL_DMV: Readers = &[(&[Dmv], &[LogisticNormal])];
