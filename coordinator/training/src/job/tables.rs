//! The tables of a job file: every key with its type, default, help, range and readers.
//!
//! To add a key, add its declaration here; [`super::key`] lists what is derived from it.

use std::fmt;
use std::path::PathBuf;

use anyhow::{Result, ensure};
use serde::{Deserialize, Serialize};
use shared::data::corpus::layout::{Column, Counts, LineKind, Separators};
use shared::data::corpus::{Cleaning, Format, Layout, Marks, Normalise, Options, Unit};
use shared::data::dependency::{Punctuation, Tags};
use shared::data::treebank::Classes;
use shared::grammar::auto::Auto;
use shared::models::decode::Decoder;
use shared::models::dmv::constraint::Component;
use shared::models::dmv::harmonic::{Harmonic, Stops};
use shared::models::logistic_normal::PointEstimate;
use shared::train::logistic_normal::Constrained;
use shared::train::mixture::{Limit, Mixture, MixtureError};
use shared::work::shard::{DEFAULT_SHARD_SYMBOLS, MAX_SHARD_SYMBOLS};

use super::key::{Key, Need, Rules, values_of};
use super::method::*;
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

const VOTERS: Need = Need {
    text: "`voters`, or `grammar = \"auto\"`",
    holds: |job, _| !job.model.voters.is_empty() || job.model.grammar == GrammarSource::Choose,
};
const SYLLABLES: Need = Need {
    text: "a `grammar` with syllables, such as `auto:colloc3-syllable`",
    holds: |job, _| job.model.grammars().any(|source| source.is_made(Auto::has_syllables)),
};
const STRESS: Need = Need {
    text: "a `grammar` with stress, such as `auto:colloc3-syllable-stress`",
    holds: |job, _| job.model.grammars().any(|source| source.is_made(Auto::has_stress)),
};
/// Marks of primary and secondary stress in the International Phonetic Alphabet.
pub const STRESS_MARKS: &str = "ˈ ˌ";
const MORPHEMES: Need = Need {
    text: "a `grammar` of morphemes, such as `auto:morph1`",
    holds: |job, _| job.model.grammars().any(|source| source.is_made(Auto::has_affixes)),
};
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
const TOKENS: Need = Need {
    text: "`unit = \"token\"` or `format = \"tokens\"`",
    holds: |job, _| job.corpus.options().effective_unit() == Unit::Token,
};
const COMPONENTS: Need =
    Need { text: "`components`", holds: |_, inference| !inference.components.is_empty() };

table! {
    /// `[model]`: the model to train.
    ModelTable = "model";

    /// The kind of model: an adaptor grammar, a PCFG, a PCFG with latent annotations on a treebank, or the dependency model with
    /// valence over tags.
    kind: ModelKind = ModelKind::default(), Rules::read_by(EVERY);

    /// The grammar: a file or URL in py-cfg's syntax, or a grammar made from the corpus, such as `auto:colloc3-syllable` (see below). With
    /// `auto`, short trials without gold choose it and a voter, as `grammaton segment` does.
    grammar: GrammarSource = GrammarSource::File(PathBuf::new()),
        Rules::read_by(EVERY)
            .required()
            .defaults(&[(ModelKind::PcfgLa, "auto:treebank"), (ModelKind::Dmv, "auto:dmv")])
            .file_unless(GrammarSource::is_word);

    /// Further grammars made from the corpus. Each has chains of its own with the same settings, and their models vote with those of
    /// `grammar` (`mbr-vote`); the model that is written is of `grammar`.
    voters: Vec<GrammarSource> = Vec::new(), Rules::read_by(TABLES);

    /// Number of chains of each voter; 0: as many as `inference.restarts`, and half as many with `grammar = "auto"`.
    voter_chains: usize = 0, Rules::read_by(TABLES).from_to(0.0, 1000.0).with(VOTERS);

    /// Vowels, with spaces between them, for a grammar with syllables; if empty, they are found by letters and their neighbours (Sukhotin 1962).
    vowels: String = String::new(), Rules::read_by(SENTENCES).with(SYLLABLES);

    /// Symbols that mark stress, with spaces between them, for a grammar with stress. A mark stands behind the nucleus of a stressed syllable:
    /// `bˈ` is no stressed syllable, `beˈt` is.
    stress: String = STRESS_MARKS.to_owned(), Rules::read_by(SENTENCES).with(STRESS);

    /// File of known prefixes, one per line, which a grammar of morphemes gets as rules; its prefixes are not adapted then.
    prefixes: PathBuf = PathBuf::new(), Rules::read_by(SENTENCES).file_unless(|_| false).with(MORPHEMES);

    /// File of known suffixes, likewise.
    suffixes: PathBuf = PathBuf::new(), Rules::read_by(SENTENCES).file_unless(|_| false).with(MORPHEMES);

    /// Number of prefixes and of suffixes, the most used ones of a first run with `auto:morph15`, that the run knows (a *cascade*; Eskander, Rambow
    /// & Yang 2016); 0: no first run. The first run has the same settings.
    cascade: usize = 0, Rules::read_by(TABLES).from_to(0.0, 100_000.0);

    /// Tags, or the classes `noun`, `proper`, `verb`, whose constituents are adapted.
    adapted: Vec<String> = Vec::new(), Rules::read_by(ADAPTABLE);
}

impl ModelTable {
    /// The kind of model, as keys distinguish it.
    pub fn model(&self) -> Model {
        Model::of(self.kind, !self.adapted.is_empty())
    }

    /// The grammar and those of the voters.
    pub fn grammars(&self) -> impl Iterator<Item = &GrammarSource> {
        std::iter::once(&self.grammar).chain(&self.voters)
    }

    /// Whether the model has adapted nonterminals.
    pub fn is_adapted(&self) -> bool {
        self.kind == ModelKind::Adaptor || !self.adapted.is_empty()
    }
}

table! {
    /// `[corpus]`: the training data.
    CorpusTable = "corpus";

    /// The text with one sentence per line, the trees of `pcfg-la`, or the tagged sentences of `dmv`: a file, plain, `.gz` or `.zst`, or the
    /// URL of an object (`s3://`, `gs://`, `az://`).
    path: PathBuf = PathBuf::new(), Rules::read_by(EVERY).required().file_unless(|_| false);

    /// Format of the lines. `segmented`: gold segmentation with marked words; `tokens`: symbols between spaces, without gold.
    format: Format = Format::default(), Rules::read_by(SENTENCES);

    /// Unit of the symbols of a segmented text. `char`: `yu want tu`; `grapheme`: the same, and combining marks belong to the character before
    /// them; `ipa`: segments of the IPA, with their modifiers, tones and tie bars; `token`: `y u | w a n t | t u`.
    unit: Unit = Unit::default(), Rules::read_by(SENTENCES);

    /// Kind of the lines. `text`: sentences, with a notice if a sample looks like something else; `plain`: sentences, whatever they look like; `hex`:
    /// hexadecimal code points, as MorphAGram writes words; `chat`: a transcript in CHAT, whose speakers and codes are left out.
    layout: LineKind = LineKind::default(), Rules::read_by(SENTENCES);

    /// The column with the sentence, if tabs separate columns: its number from 1, or its name in the first line. If empty, a tab is white space.
    column: Column = Column::default(), Rules::read_by(SENTENCES);

    /// Meaning of a number at the begin or end of each line, or in another column than `column`. `none`: there is none; `ones`: it is left out, and
    /// a sentence occurs once; `full`: the sentence occurs as often; `log`: log₂(n + 1) times, rounded. Scores count each line once.
    counts: Counts = Counts::default(), Rules::read_by(SENTENCES);

    /// Separator of phones, such as `_` in `h_ə_l_oʊ`; words are then between spaces, unless `word_separator` is set. If empty, white space.
    phone_separator: String = String::new(), Rules::read_by(SENTENCES).with(TOKENS);

    /// Separator of syllables, such as `;esyll`, which is left out.
    syllable_separator: String = String::new(), Rules::read_by(SENTENCES);

    /// Separator of words, such as `;eword`. If empty, the one of the unit.
    word_separator: String = String::new(), Rules::read_by(SENTENCES);

    /// Unicode normal form of the text: `nfc` makes one character of a letter and its mark, `nfkc` also replaces ligatures and full-width letters.
    normalise: Normalise = Normalise::default(), Rules::read_by(SENTENCES);

    /// Whether the text is read in lower case.
    lowercase: bool = false, Rules::read_by(SENTENCES);

    /// Punctuation, as Unicode defines it: `keep` it as symbols, `drop` it, or read it as a word `boundary` of the gold segmentation.
    punctuation: Marks = Marks::default(), Rules::read_by(SENTENCES);

    /// Sequences of characters that are one symbol, as in `["sh", "ch"]`; the longest one wins.
    digraphs: Vec<String> = Vec::new(), Rules::read_by(SENTENCES);

    /// Sentences that the grammar cannot derive, or in too many ways, and of a treebank or of tagged sentences what cannot be read: an `error`, or
    /// `skip` them. Results have skipped sentences unsegmented, without an analysis.
    on_unparsable: OnUnparsable = OnUnparsable::default(), Rules::read_by(EVERY);

    /// Maximum length of a sentence, in symbols.
    max_symbols: u32 = Options::default().max_symbols, Rules::read_by(SENTENCES).at_least(1.0);

    /// Number of symbols in a shard, the unit of work, at most 4194304; 0: all sentences in one shard, with which `cvb` and `hastings` are the
    /// published algorithms.
    shard_symbols: u32 = DEFAULT_SHARD_SYMBOLS, Rules::read_by(SHARDS);

    /// Gold segmentation, to score with, in place of the boundaries of the corpus: segmented sentences of the corpus, or words with their analyses, as in
    /// `gladly<TAB>glad ly, gladly`, of which the best counts. Sentences that it lacks are not scored.
    gold: PathBuf = PathBuf::new(), Rules::read_by(SENTENCES).file_unless(|_| false);

    /// Held-out sentences, to measure with: a file in the format of the corpus.
    held_out: PathBuf = PathBuf::new(), Rules::read_by(EVERY).file_unless(|_| false);

    /// Share of the corpus that is held out, if `held_out` is empty.
    held_out_share: f64 = 0.0, Rules::read_by(EVERY).from_below(0.0, 1.0);

    /// Seed of the choice of the held-out share; separate from `inference.seed`, so that runs with different seeds measure with the same
    /// sentences.
    held_out_seed: u64 = 1, Rules::read_by(EVERY).with(SHARE);

    /// Test sentences, which are scored at the end and affect neither training nor the choice of a round, run or setting: a file in the
    /// format of the corpus.
    test: PathBuf = PathBuf::new(), Rules::read_by(EVERY).file_unless(|_| false);

    /// Maximum number of words: longer trees are skipped, and longer sentences of a dependency model are not used in training.
    max_length: u32 = 40, Rules::read_by(BY_LENGTH);

    /// The column of the tags in a CoNLL-U file.
    tags: Tags = Tags::default(), Rules::read_by(DEPENDENCIES);

    /// Whether punctuation is kept. If not, its dependents are attached to its nearest ancestor that is kept.
    keep_punctuation: bool = false, Rules::read_by(DEPENDENCIES);

    /// Words that occur at most this often are unknown.
    unknown_threshold: u32 = 1, Rules::read_by(TREES);

    /// Classes of unknown words: by capitals, digits and suffixes, or one class.
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

    /// Symbols of a shard, for [`cut`](shared::work::shard::cut): `u32::MAX` for a single shard.
    pub fn symbols_of_shard(&self) -> u32 {
        if self.shard_symbols == 0 { u32::MAX } else { self.shard_symbols }
    }

    /// Refuses shards of more than [`MAX_SHARD_SYMBOLS`] in a corpus of so many symbols.
    pub fn check_shards(&self, n_symbols: usize) -> Result<()> {
        let largest = n_symbols.min(self.symbols_of_shard() as usize);
        ensure!(
            largest <= MAX_SHARD_SYMBOLS as usize,
            "{}: a shard would have {largest} symbols, which are one task of a worker, and may have {MAX_SHARD_SYMBOLS}; leave out \
             corpus.shard_symbols, or set a smaller number",
            self.path.display()
        );
        Ok(())
    }

    /// Refuses the first of the sentences or trees of a file that cannot be read, or names it in a notice if the job skips them; `what` they are.
    pub fn leave_out(
        &self,
        faults: Vec<impl fmt::Display>,
        what: &str,
        notices: &mut Vec<String>,
    ) -> Result<()> {
        let Some(first) = faults.first() else { return Ok(()) };
        let n = faults.len();
        ensure!(
            self.on_unparsable == OnUnparsable::Skip,
            "{first}; corpus.on_unparsable = \"skip\" leaves out such {what}, {n} of this file"
        );
        notices.push(format!("{first}; skipped {n} such {what}, this being the first"));
        Ok(())
    }

    /// Treatment of punctuation in a dependency model's sentences.
    pub fn punctuation(&self) -> Punctuation {
        if self.keep_punctuation { Punctuation::Kept } else { Punctuation::Removed }
    }

    /// Options for reading the corpus.
    pub fn options(&self) -> Options {
        let cleaning = Cleaning {
            normalise: self.normalise,
            lowercase: self.lowercase,
            punctuation: self.punctuation,
            digraphs: self.digraphs.clone(),
        };
        Options {
            format: self.format,
            unit: self.unit,
            max_symbols: self.max_symbols,
            layout: self.layout(),
            cleaning,
        }
    }

    /// How lines hold sentences.
    pub fn layout(&self) -> Layout {
        let separators = Separators {
            phone: self.phone_separator.clone(),
            syllable: self.syllable_separator.clone(),
            word: self.word_separator.clone(),
        };
        Layout { lines: self.layout, column: self.column.clone(), counts: self.counts, separators }
    }

    /// The same of a corpus whose lines are sentences, in the notation of the unit.
    pub fn of_plain_lines(self) -> CorpusTable {
        let CorpusTable {
            layout, column, counts, phone_separator, syllable_separator, word_separator, ..
        } = CorpusTable { layout: LineKind::Plain, ..CorpusTable::default() };
        CorpusTable { layout, column, counts, phone_separator, syllable_separator, word_separator, ..self }
    }
}

table! {
    /// `[inference]`: the method of training and its settings.
    InferenceTable = "inference";

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

/// Maximum number of rounds of a run: each keeps a line of metrics in memory.
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

table! {
    /// `[output]`: the results.
    OutputTable = "output";

    /// The folder of results; created if it does not exist.
    dir: PathBuf = "out".into(), Rules::read_by(EVERY).folder();

    /// Decoders whose output is scored and written: for text `viterbi`, `mbr` and `mbr-tree`; for dependencies `viterbi` and `mbr-arcs`
    /// (highest expected number of correct heads).
    decoders: Vec<Decoder> = vec![Decoder::Viterbi, Decoder::Mbr],
        Rules::read_by(WITHOUT_TREES).defaults(&[(ModelKind::Dmv, "[\"viterbi\", \"mbr-arcs\"]")]);

    /// Nonterminals whose constituents are the segments; if empty, `Word`.
    segments: Vec<String> = Vec::new(), Rules::read_by(SENTENCES);

    /// Number of rounds between evaluations on gold or held-out sentences; 0: only at the end.
    score_every: usize = 10, Rules::read_by(EVERY);

    /// Folder or URL (`s3://`, `gs://`, `az://`) of the checkpoints; if empty, `checkpoints` in `dir`.
    checkpoints: String = String::new(), Rules::read_by(EVERY).folder();

    /// Seconds between checkpoints; 0: a checkpoint after every round.
    checkpoint_seconds: f64 = 5.0, Rules::read_by(EVERY).from_to(0.0, 1e6);

    /// Number of latest checkpoints to keep, besides the one with the best bound; 0: no checkpoints.
    keep_checkpoints: usize = 2, Rules::read_by(EVERY);
}

impl OutputTable {
    /// Location of the checkpoints.
    pub fn checkpoints(&self) -> String {
        if self.checkpoints.is_empty() {
            self.dir.join("checkpoints").display().to_string()
        } else {
            self.checkpoints.clone()
        }
    }
}

/// Treatment of a job with sentences that the grammar cannot derive.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum OnUnparsable {
    /// The job is refused.
    #[default]
    Error,
    /// The sentences are not trained on.
    Skip,
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

    /// Name in a job file.
    pub fn name(self) -> String {
        serde_json::to_value(self).ok().and_then(|name| name.as_str().map(str::to_owned)).unwrap_or_default()
    }

    /// Whether it reads trees or a model from `start_from`.
    pub fn is_given(self) -> bool {
        matches!(self, Start::Trees | Start::Model)
    }

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
