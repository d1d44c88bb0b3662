//! The tables of a job file: every key with its type, default, help, range, and who reads it.
//!
//! To add a key, add its declaration here; [`super::key`] says what follows from it.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use shared::data::corpus::{Format, Options, Unit};
use shared::data::dependency::{Punctuation, Tags};
use shared::data::treebank::Classes;
use shared::models::decode::Decoder;
use shared::models::dmv::constraint::Component;
use shared::models::dmv::harmonic::{Harmonic, Stops};
use shared::models::logistic_normal::PointEstimate;
use shared::train::logistic_normal::Constrained;
use shared::train::mixture::{Limit, Mixture, MixtureError};
use shared::work::shard::DEFAULT_SHARD_SYMBOLS;

use super::key::Estimator::{self as E, Cvb, Em, Gibbs, Hastings, LogisticNormal, MapEm, Oem, Svb, Vb, VbEm};
use super::key::Model::{self as M, AdaptedDmv, Adaptor, Dmv, Pcfg, PcfgLa};
use super::key::{ALL, Key, Need, Readers, Rules, values_of};
use super::source::{FamiliesSource, GrammarSource};

/// Declares a table: a struct that serde reads, its defaults, and its [`Key`]s.
macro_rules! table {
    (
        $(#[$doc:meta])* $name:ident = $table:literal;
        $( $(#[doc = $help:literal])+ $key:ident: $type:ty = $default:expr, $rules:expr; )+
    ) => {
        $(#[$doc])*
        #[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
        #[serde(deny_unknown_fields, default)]
        pub struct $name {
            $( $(#[doc = $help])+ pub $key: $type, )+
        }

        impl Default for $name {
            fn default() -> $name {
                $name { $( $key: $default, )+ }
            }
        }

        impl $name {
            /// Its keys, in the order of the reference.
            pub fn keys() -> Vec<Key> {
                vec![ $( $rules.named($table, stringify!($key), &[$($help),+], values_of::<$type>()), )+ ]
            }
        }
    };
}

const EVERY: Readers = &[(&[Adaptor, Pcfg, PcfgLa, Dmv, AdaptedDmv], ALL)];
const SENTENCES: Readers = &[(&[Adaptor, Pcfg], ALL)];
const WITHOUT_TREES: Readers = &[(&[Adaptor, Pcfg, Dmv, AdaptedDmv], ALL)];
const TREES: Readers = &[(&[PcfgLa], ALL)];
const DEPENDENCIES: Readers = &[(&[Dmv, AdaptedDmv], ALL)];
const BY_LENGTH: Readers = &[(&[PcfgLa, Dmv, AdaptedDmv], ALL)];
/// Shards are those of the job, but for chains over adaptor grammars, which have all tables in one place.
const SHARDS: Readers = &[(&[Adaptor], &[Vb, Svb]), (&[Pcfg, PcfgLa, Dmv, AdaptedDmv], ALL)];
const STICKS: Readers = &[(&[Adaptor, AdaptedDmv], &[Vb, Svb])];
const ADAPTORS: Readers = &[(&[Adaptor, AdaptedDmv], &[Vb, Svb, Hastings])];
const TABLES: Readers = &[(&[Adaptor], &[Hastings])];
const STRINGS: Readers = &[
    (&[Adaptor, AdaptedDmv], &[Vb, Svb]),
    (&[Pcfg], &[Em, MapEm, Vb, VbEm, Svb, Oem, Cvb, Gibbs, Hastings]),
];
const CONVERGING: Readers =
    &[(&[Adaptor, AdaptedDmv], &[Vb]), (&[Pcfg, PcfgLa, Dmv], &[Em, MapEm, Vb, VbEm, Cvb, LogisticNormal])];
const STARTED: Readers = &[
    (&[Adaptor, AdaptedDmv], &[Vb, Svb]),
    (&[Pcfg, Dmv], &[Em, MapEm, Vb, VbEm, Svb, Oem, Cvb, Gibbs, LogisticNormal]),
];
const NOISY: Readers =
    &[(&[PcfgLa], ALL), (&[Pcfg, Dmv], &[Em, MapEm, Vb, VbEm, Svb, Oem, Cvb, Gibbs, LogisticNormal])];
const GIVEN: Readers = &[(&[Adaptor], &[Hastings]), (&[Pcfg, Dmv], ALL)];
const PSEUDO_COUNTS: Readers = &[
    (&[Adaptor], &[Hastings]),
    (&[Pcfg, Dmv], &[MapEm, Vb, VbEm, Svb, Cvb, Gibbs, Hastings]),
    (&[PcfgLa], &[Vb, Cvb]),
    (&[AdaptedDmv], &[Vb, Svb]),
];
const HEATED: Readers =
    &[(&[Adaptor], &[Hastings]), (&[Pcfg, Dmv], &[Em, MapEm, Vb, VbEm, Cvb, Gibbs, Hastings])];
const SAMPLERS: Readers = &[(&[Adaptor, Pcfg, Dmv], &[Gibbs, Hastings])];
const CHAINS: Readers = &[(&[Adaptor, Pcfg, Dmv], &[Hastings])];
const STOCHASTIC: Readers = &[(&[Adaptor, AdaptedDmv], &[Svb]), (&[Pcfg, Dmv], &[Svb, Oem])];
const STOCHASTIC_STICKS: Readers = &[(&[Adaptor, AdaptedDmv], &[Svb])];
const RULES: Readers = &[(&[Pcfg, Dmv], ALL)];
const NORMAL: Readers = &[(&[Pcfg, Dmv], &[LogisticNormal])];
const NORMAL_DMV: Readers = &[(&[Dmv], &[LogisticNormal])];

const HELD_OUT: Need = Need {
    text: "held-out sentences (`corpus.held_out` or `corpus.held_out_share`)",
    holds: |job, _| job.corpus.is_held_out(),
};
const SHARE: Need = Need {
    text: "`corpus.held_out_share` above 0, and no `corpus.held_out`",
    holds: |job, _| job.corpus.is_split(),
};
const RANDOM: Need = Need {
    text: "something random: a sampler, a method over samples of the corpus, a treebank, `restarts` above 1, or a random `start`",
    holds: |job, inference| {
        inference.method.is_sampler()
            || inference.method.is_stochastic()
            || job.model.kind == ModelKind::PcfgLa
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
        job.model.is_adapted() || !inference.start.is_given() && inference.start != Start::Harmonic
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
const COMPONENTS: Need =
    Need { text: "`components`", holds: |_, inference| !inference.components.is_empty() };

table! {
    /// `[model]`: what is trained.
    ModelTable = "model";

    /// The kind of model: an adaptor grammar, a PCFG, a PCFG with latent annotations on a treebank, or the dependency model with
    /// valence over tags.
    kind: ModelKind = ModelKind::default(), Rules::read_by(EVERY);

    /// The grammar: a file or URL in py-cfg's syntax, or `auto:unigram` or `auto:colloc`, made for the symbols of the corpus.
    grammar: GrammarSource = GrammarSource::File(PathBuf::new()),
        Rules::read_by(EVERY)
            .required()
            .defaults(&[(ModelKind::PcfgLa, "auto:treebank"), (ModelKind::Dmv, "auto:dmv")])
            .file_unless(GrammarSource::is_word);

    /// Tags, or the classes `noun`, `proper`, `verb`, whose constituents are adapted.
    adapted: Vec<String> = Vec::new(), Rules::read_by(&[(&[M::AdaptedDmv, M::Dmv], &[E::Vb, E::Svb])]);
}

impl ModelTable {
    /// The model that it describes.
    pub fn model(&self) -> M {
        M::of(self.kind, !self.adapted.is_empty())
    }

    /// Whether it has adapted nonterminals.
    pub fn is_adapted(&self) -> bool {
        self.kind == ModelKind::Adaptor || !self.adapted.is_empty()
    }
}

table! {
    /// `[corpus]`: what it is trained on.
    CorpusTable = "corpus";

    /// The text, one sentence a line, the trees of `pcfg-la`, or the sentences with tags of `dmv`: a file, plain or `.gz`, or the
    /// URL of an object (`s3://`, `gs://`, `az://`).
    path: PathBuf = PathBuf::new(), Rules::read_by(EVERY).required().file_unless(|_| false);

    /// How lines are written. `segmented`: words are marked, and are the gold; `tokens`: symbols between spaces, no gold.
    format: Format = Format::default(), Rules::read_by(SENTENCES);

    /// What a symbol of a segmented text is. `char`: `yu want tu`; `token`: `y u | w a n t | t u`.
    unit: Unit = Unit::default(), Rules::read_by(SENTENCES);

    /// The longest sentence that is accepted, in symbols.
    max_symbols: u32 = Options::default().max_symbols, Rules::read_by(SENTENCES).at_least(1.0);

    /// Symbols in a shard, the unit of work; 0: all sentences in one shard, over which `cvb` and `hastings` run as published.
    shard_symbols: u32 = DEFAULT_SHARD_SYMBOLS, Rules::read_by(SHARDS);

    /// Sentences that are not trained on, to measure with: a file written as the corpus is.
    held_out: PathBuf = PathBuf::new(), Rules::read_by(EVERY).file_unless(|_| false);

    /// Share of the corpus that is held out, if `held_out` is empty.
    held_out_share: f64 = 0.0, Rules::read_by(EVERY).from_below(0.0, 1.0);

    /// Seed of the choice of the held-out share. It is not `inference.seed`, so that runs with other seeds measure with the same sentences.
    held_out_seed: u64 = 1, Rules::read_by(EVERY).with(SHARE);

    /// Sentences that neither train nor choose a round, run or setting, to be scored at the end: a file written as the corpus is.
    test: PathBuf = PathBuf::new(), Rules::read_by(EVERY).file_unless(|_| false);

    /// Trees with more words are left out, and sentences of a dependency model with more words are not trained on.
    max_length: u32 = 40, Rules::read_by(BY_LENGTH);

    /// The column of the tags in a CoNLL-U file.
    tags: Tags = Tags::default(), Rules::read_by(DEPENDENCIES);

    /// Whether punctuation stays. If not, what depends on it is attached to the nearest word above.
    keep_punctuation: bool = false, Rules::read_by(DEPENDENCIES);

    /// Words that occur so often or less are unknown.
    unknown_threshold: u32 = 1, Rules::read_by(TREES);

    /// The classes of unknown words: by capitals, digits and endings, or one class.
    unknown: Classes = Classes::Signatures, Rules::read_by(TREES);
}

impl CorpusTable {
    /// Whether sentences are held out.
    pub fn is_held_out(&self) -> bool {
        !self.held_out.as_os_str().is_empty() || self.held_out_share > 0.0
    }

    /// Whether the held-out sentences are a share of the corpus.
    pub fn is_split(&self) -> bool {
        self.held_out.as_os_str().is_empty() && self.held_out_share > 0.0
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

table! {
    /// `[inference]`: how it is trained.
    InferenceTable = "inference";

    /// The method of inference.
    method: Method = Method::default(), Rules::read_by(EVERY).prepares(|_, inference| inference.method == Method::Hastings);

    /// The prior over an adapted nonterminal's strings; `dirichlet` has discount 0.
    adaptor: AdaptorPrior = AdaptorPrior::default(), Rules::read_by(ADAPTORS);

    /// Strings for each adapted nonterminal.
    truncation: usize = 15_000, Rules::read_by(STICKS).from_to(1.0, 1e8).prepares(|_, _| true);

    /// Penalty on the length of candidate strings when they are ranked (Cohen, Blei & Smith 2010, Eq. 3); below 0 a bonus.
    rho: f64 = -0.2, Rules::read_by(STICKS).from_to(-10.0, 10.0).prepares(|_, _| true);

    /// Rounds after which training stops even if it has not converged; 0: what a PCFG starts from is taken as it is.
    max_rounds: usize = 40, Rules::read_by(EVERY).from_to(0.0, MAX_ROUNDS as f64);

    /// Relative change of the bound below which training has converged. Without it 0.00001, and 0 with `pcfg-la`.
    tolerance: Option<f64> = None, Rules::read_by(CONVERGING).from_below(0.0, 1.0);

    /// Seed of all random choices but that of the held-out share.
    seed: u64 = 1, Rules::read_by(EVERY).with(RANDOM);

    /// How the strings of the sticks and their order are chosen while training. `bound`: strings that the bound is better off
    /// without are dropped, and sticks sorted; `sorted`: sticks are only sorted; `fixed`: the paper's setting.
    selection: Selection = Selection::default(), Rules::read_by(STICKS);

    /// Share of a stick's strings that a round may drop.
    drop_share: f64 = 0.2, Rules::read_by(STICKS).above_to(0.0, 1.0).with(DROPS);

    /// Hyper-parameters that are fitted; `[]`: none. Of `hastings` only the concentration is; the discount only with the Pitman–Yor adaptor.
    fit: Vec<Hyperparameter> =
        vec![Hyperparameter::Concentration, Hyperparameter::Discount, Hyperparameter::Alpha],
        Rules::read_by(ADAPTORS);

    /// Concentration that a stick or restaurant begins with, unless the grammar gives it.
    concentration: f64 = 1.0, Rules::read_by(ADAPTORS).from_to(1e-3, 1e6);

    /// Discount that a stick or restaurant begins with, unless the grammar gives it.
    discount: f64 = 0.0, Rules::read_by(ADAPTORS).from_to(0.0, 0.99).with(DISCOUNT);

    /// The longest candidate string, or with `<substrings>` the longest substring, in symbols.
    max_string: u32 = 64, Rules::read_by(STRINGS).at_least(1.0).prepares(|_, _| true);

    /// Strings of a stick in the first round, if sticks grow; 0: all from the start.
    grow_from: usize = 0, Rules::read_by(STICKS);

    /// Strings added to each stick after every round.
    grow_by: usize = 400, Rules::read_by(STICKS).with(GROWS);

    /// Runs from different starts, of which the best is kept; of a sampler: its chains.
    restarts: usize = 1, Rules::read_by(EVERY).from_to(1.0, 1000.0);

    /// Largest |ln| of the noise on the weights that runs after the first start from, and with `start = "jitter"` the first too.
    jitter: f64 = 0.5, Rules::read_by(STARTED).from_to(0.0, 10.0).with(JITTER);

    /// Pseudo-count of every rule and string, over what the grammar says; of `pcfg-la` of every split rule, 0.01 if left out.
    alpha: Option<f64> = None, Rules::read_by(PSEUDO_COUNTS).above_to(0.0, 1e6).prepares(|model, _| model == M::AdaptedDmv);

    /// What the first round runs with. `uniform`: all alike; `jitter` and `noise`: with much or little noise; `trees`: the rules of
    /// given trees, or of `hastings` these trees; `incremental`: trees drawn one after the other; `model`: what a trained model
    /// has counted, or of `hastings` its most probable trees; `harmonic`: near words are heads of each other (Klein & Manning 2004).
    start: Start = Start::default(),
        Rules::read_by(EVERY)
            .defaults(&[(ModelKind::Dmv, "harmonic"), (ModelKind::PcfgLa, "noise")])
            .prepares(|_, inference| inference.start.is_given() || inference.method == Method::Hastings);

    /// File of bracketed trees, one a line, or a model, to start from.
    start_from: PathBuf = PathBuf::new(), Rules::read_by(GIVEN).file_unless(|_| false).with(START_FROM).prepares(|_, _| true);

    /// Largest relative noise on the weights of the first round.
    noise: f64 = 0.01, Rules::read_by(NOISY).from_below(0.0, 1.0).with(NOISE);

    /// Temperature of the first round.
    anneal_from: f64 = 1.0, Rules::read_by(HEATED).from_to(0.01, 1000.0).with(ANNEALS);

    /// Temperature at the end of annealing, and from then on.
    anneal_to: f64 = 1.0, Rules::read_by(HEATED).from_to(0.01, 1000.0);

    /// Rounds that annealing takes; 0: none.
    anneal_rounds: usize = 0, Rules::read_by(HEATED);

    /// Share of a sampler's rounds of which no samples are kept.
    burn_in: f64 = 0.5, Rules::read_by(SAMPLERS).from_below(0.0, 1.0);

    /// Rounds from one kept sample to the next.
    keep_every: usize = 10, Rules::read_by(SAMPLERS).at_least(1.0);

    /// Sweeps of a round.
    sweeps: u32 = 1, Rules::read_by(CHAINS).from_to(1.0, 1e6);

    /// Whether a sweep draws the labels of tables anew.
    relabel: bool = true, Rules::read_by(TABLES);

    /// Shape of the Gamma prior of concentrations.
    gamma_shape: f64 = 0.01, Rules::read_by(TABLES).above_to(0.0, 1e9).with(GAMMA);

    /// Scale of the Gamma prior of concentrations.
    gamma_scale: f64 = 100.0, Rules::read_by(TABLES).above_to(0.0, 1e9).with(GAMMA);

    /// Measurements on held-out sentences (every `output.score_every` rounds) without improvement after which a run ends; 0: it goes on.
    patience: usize = 0, Rules::read_by(WITHOUT_TREES).with(HELD_OUT);

    /// Shards of sentences that a round reads.
    sample_shards: usize = 16, Rules::read_by(STOCHASTIC).at_least(1.0);

    /// Rounds that all have the weights that training starts with; 0: as many as it takes to read the corpus once.
    first_rounds: usize = 0, Rules::read_by(STOCHASTIC).with(UNCOUNTED);

    /// How fast averages cease to forget: κ of the rate (round + τ)^−κ.
    forget_power: f64 = 0.75, Rules::read_by(STOCHASTIC).from_to(0.0, 1.0);

    /// How little early rounds count: τ of the same rate.
    forget_delay: f64 = 0.0, Rules::read_by(STOCHASTIC).from_to(0.0, 1e9);

    /// Rounds from one change of the strings in use to the next; 0: as many as it takes to read the corpus once.
    select_every: usize = 0, Rules::read_by(STOCHASTIC_STICKS);

    /// Subtypes of every label.
    subtypes: usize = 2, Rules::read_by(TREES).from_to(1.0, 16.0);

    /// Offset in the weight of a head at distance d: 1 / (d + offset).
    harmonic_offset: f64 = 0.0, Rules::read_by(DEPENDENCIES).from_to(0.0, 1e6).with(HARMONIC).prepares(|_, inference| inference.method == Method::Hastings);

    /// Whether the weights of a word's heads are scaled to sum to one, less the root's share.
    harmonic_per_child: bool = true, Rules::read_by(DEPENDENCIES).with(HARMONIC).prepares(|_, inference| inference.method == Method::Hastings);

    /// How the decisions to stop begin: from the expected numbers of children, from `harmonic_stop`, or 1/2 each.
    harmonic_stops: HarmonicStops = HarmonicStops::default(), Rules::read_by(DEPENDENCIES).with(HARMONIC).prepares(|_, inference| inference.method == Method::Hastings);

    /// The probabilities of stopping before a first child and before another one.
    harmonic_stop: [f64; 2] = [0.25, 0.75],
        Rules::read_by(DEPENDENCIES).above_below(0.0, 1.0).with(HARMONIC_STOP).prepares(|_, inference| inference.method == Method::Hastings);

    /// Added to every count of the harmonic start.
    harmonic_smoothing: f64 = 0.1, Rules::read_by(DEPENDENCIES).above_to(0.0, 1e6).with(HARMONIC).prepares(|_, inference| inference.method == Method::Hastings);

    /// The prior of the rules of a nonterminal: Dirichlet, or logistic-normal and fitted (Cohen, Gimpel & Smith 2008; by `vb`).
    prior: RulePrior = RulePrior::default(), Rules::read_by(RULES);

    /// Tags whose attachments the prior relates before training: `none`, built-in ones of the Penn Treebank (`ptb`) or of universal
    /// tags (`ud`), or a file with lines `family: TAG TAG …`.
    families: FamiliesSource = FamiliesSource::default(), Rules::read_by(NORMAL_DMV).file_unless(FamiliesSource::is_word);

    /// What sentences are read with after training: softmax(μ), or e^μ, which need not sum to one.
    estimate: PointEstimate = PointEstimate::default(), Rules::read_by(NORMAL);

    /// Components that are mixed with the model itself (`base`) while training, each with some of its trees (Cohen & Smith 2009):
    /// names, or tables with `name`, `roots`, `longest_arc`, `phrases`, `forbid`.
    components: Vec<Component> = Vec::new(), Rules::read_by(NORMAL_DMV);

    /// Inequalities that the weights of `base` and the components obey: `["right-attach = short-dep", "base >= 0.5"]`.
    mixture: Vec<String> = Vec::new(), Rules::read_by(NORMAL_DMV).with(COMPONENTS);

    /// The most that the base weighs in the first round.
    base_from: f64 = Limit::default().from, Rules::read_by(NORMAL_DMV).with(COMPONENTS);

    /// How much more the base may weigh in every later round.
    base_by: f64 = Limit::default().step, Rules::read_by(NORMAL_DMV).with(COMPONENTS);

    /// The most that the base ever weighs.
    base_to: f64 = Limit::default().to, Rules::read_by(NORMAL_DMV).with(COMPONENTS);
}

/// The most rounds of a run: each leaves a line of metrics in memory.
pub const MAX_ROUNDS: usize = 1_000_000;

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

table! {
    /// `[output]`: where the result goes.
    OutputTable = "output";

    /// The folder of results; made if it is not there.
    dir: PathBuf = "out".into(), Rules::read_by(EVERY).folder();

    /// The decoders that are scored and written: of text `viterbi`, `mbr` and `mbr-tree`; of dependencies `viterbi` and `mbr-arcs`
    /// (most right heads expected).
    decoders: Vec<Decoder> = vec![Decoder::Viterbi, Decoder::Mbr],
        Rules::read_by(WITHOUT_TREES).defaults(&[(ModelKind::Dmv, "[\"viterbi\", \"mbr-arcs\"]")]);

    /// Nonterminals whose constituents are the segments; none: `Word`.
    segments: Vec<String> = Vec::new(), Rules::read_by(SENTENCES);

    /// Rounds from one scoring against gold or held-out sentences to the next; 0: only at the end.
    score_every: usize = 10, Rules::read_by(EVERY);

    /// Folder or URL (`s3://`, `gs://`, `az://`) of the checkpoints; empty: `checkpoints` in `dir`.
    checkpoints: String = String::new(), Rules::read_by(EVERY).folder();

    /// Seconds from one checkpoint to the next; 0: one after every round.
    checkpoint_seconds: f64 = 5.0, Rules::read_by(EVERY).from_to(0.0, 1e6);

    /// The latest checkpoints that are kept, beside the one with the best bound; 0: none is written.
    keep_checkpoints: usize = 2, Rules::read_by(EVERY);
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
    /// Whether it draws samples.
    pub fn is_sampler(self) -> bool {
        matches!(self, Method::Gibbs | Method::Hastings)
    }

    /// Whether its rounds read samples of the corpus.
    pub fn is_stochastic(self) -> bool {
        matches!(self, Method::Svb | Method::Oem)
    }

    /// The objective that it reports after each round.
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

impl Start {
    /// All of them.
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

    /// As it stands in a job file.
    pub fn name(self) -> String {
        serde_json::to_value(self).ok().and_then(|name| name.as_str().map(str::to_owned)).unwrap_or_default()
    }

    /// Whether it takes trees or a model from `start_from`.
    pub fn is_given(self) -> bool {
        matches!(self, Start::Trees | Start::Model)
    }

    /// Whether a model trained in that way can start so.
    pub fn suits(self, model: M, estimator: E) -> bool {
        let of_rules = matches!(model, Pcfg | Dmv);
        match (self, model, estimator) {
            (Start::Noise, PcfgLa, _) => true,
            (_, PcfgLa, _) => false,
            (Start::Uniform, ..) => true,
            (Start::Trees | Start::Model, ..) => of_rules || estimator == Hastings,
            (Start::Incremental, ..) => estimator == Hastings,
            (Start::Harmonic, ..) => matches!(model, Dmv | AdaptedDmv),
            (Start::Jitter | Start::Noise, ..) => of_rules && estimator != Hastings,
        }
    }
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
