//! The tables of a job file: every key with its type, default, help, range and readers.
//!
//! To add a key, add its declaration here; [`grammaton::settings::key`] lists what is derived from it.

use std::fmt;
use std::path::PathBuf;

use anyhow::{Result, ensure};
use grammaton::data::corpus::layout::{Column, Counts, LineKind, Separators};
use grammaton::data::corpus::{Cleaning, Format, Layout, Marks, Normalise, Options, Unit};
use grammaton::data::dependency::{Punctuation, Tags};
use grammaton::data::treebank::Classes;
use grammaton::grammar::auto::Auto;
use grammaton::models::Trained;
use grammaton::models::baselines::Baseline;
use grammaton::models::decode::Decoder;
use grammaton::saved::Model as SavedModel;
use grammaton::settings::key::{Need, Rules};
use grammaton::settings::method::*;
use grammaton::table;
use grammaton::work::shard::{DEFAULT_SHARD_SYMBOLS, MAX_SHARD_SYMBOLS};
use serde::{Deserialize, Serialize};

use super::position_marks::PositionMarks;
use super::source::GrammarSource;

const VOTERS: Need = Need { text: "`voters`, or `grammar = \"auto\"`", holds: |job, _| job.has_voters() };
const SYLLABLES: Need = Need {
    text: "a `grammar` with syllables, such as `auto:colloc3-syllable`",
    holds: |job, _| job.has_grammar(Auto::has_syllables),
};
const STRESS: Need = Need {
    text: "a `grammar` with stress, such as `auto:colloc3-syllable-stress`",
    holds: |job, _| job.has_grammar(Auto::has_stress),
};
/// Marks of primary and secondary stress in the International Phonetic Alphabet.
pub const STRESS_MARKS: &str = "ˈ ˌ";
const MORPHEMES: Need = Need {
    text: "a `grammar` of morphemes, such as `auto:morph1`",
    holds: |job, _| job.has_grammar(Auto::has_affixes),
};
const UTTERANCES: Need = Need {
    text: "a `grammar` of utterances, such as `auto:unigram`",
    holds: |job, _| job.has_grammar(|grammar| !grammar.has_affixes()),
};
const SHARE: Need = Need {
    text: "`corpus.held_out_share` above 0, and no `corpus.held_out`",
    holds: |job, _| job.is_split(),
};
const TOKENS: Need =
    Need { text: "`unit = \"token\"` or `format = \"tokens\"`", holds: |job, _| job.has_tokens() };
table! {
    /// `[model]`: the model to train.
    ModelTable = "model";

    /// The kind of model: an adaptor grammar, a PCFG, a PCFG with latent annotations on a treebank, or the dependency model with
    /// valence over tags.
    kind: ModelKind = ModelKind::default(), Rules::read_by(EVERY);

    /// The grammar: a file or URL in py-cfg's syntax, or a grammar made from the corpus, such as `auto:colloc3-syllable` (see below). With
    /// `auto`, short trials without gold choose it and all that votes with it (`voters`, `baselines`, `output.contexts`, or `output.threshold`), as `grammaton segment` does.
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

    /// Segmentations without training that vote too (`mbr-vote`): `puddle`, `dibs`, `tp`, `mi` of `grammaton eval baselines`. Each has the weight of all
    /// models, times the square of its agreement with what they vote for (F1 of segments), and with less where they are sure.
    baselines: Vec<Baseline> = Vec::new(), Rules::read_by(TABLES);

    /// Vowels, with spaces between them, for a grammar with syllables; if empty, they are found by letters and their neighbours (Sukhotin 1962).
    vowels: String = String::new(), Rules::read_by(SENTENCES).with(SYLLABLES);

    /// Whether vowels with which hardly an utterance begins, though ten or more would if they began with any symbol, begin no word inside of one (see below).
    inner_vowels: bool = false, Rules::read_by(SENTENCES).with(SYLLABLES);

    /// Symbols that mark stress, with spaces between them, for a grammar with stress. A mark stands behind the nucleus of a stressed syllable:
    /// `bˈ` is no stressed syllable, `beˈt` is.
    stress: String = STRESS_MARKS.to_owned(), Rules::read_by(SENTENCES).with(STRESS);

    /// File of known prefixes, one per line, which a grammar of morphemes gets as rules; its prefixes are not adapted then.
    prefixes: PathBuf = PathBuf::new(), Rules::read_by(SENTENCES).file_unless(|_| false).with(MORPHEMES);

    /// File of known suffixes, likewise.
    suffixes: PathBuf = PathBuf::new(), Rules::read_by(SENTENCES).file_unless(|_| false).with(MORPHEMES);

    /// File of known stems, one per line, which a grammar of morphemes gets as rules beside what it learns.
    stems: PathBuf = PathBuf::new(), Rules::read_by(SENTENCES).file_unless(|_| false).with(MORPHEMES);

    /// File of known words, one per line, which a grammar of utterances gets as rules beside what it learns.
    words: PathBuf = PathBuf::new(), Rules::read_by(SENTENCES).file_unless(|_| false).with(UTTERANCES);

    /// Number of prefixes and of suffixes, the most used ones of a first run with `auto:morph15`, that the run knows (a *cascade*; Eskander, Rambow
    /// & Yang 2016); 0: no first run. The first run has a quarter of the chains and half the rounds.
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

    /// Sentences of the corpus with their segmentation, in the forms of `gold`, from which a conditional random field learns to correct what the model
    /// finds (`segmentation.crf.txt`). They are not scored.
    annotated: PathBuf = PathBuf::new(), Rules::read_by(SENTENCES).file_unless(|_| false);

    /// Symbol that marks a boundary in a line of `annotated` of which not all is known: in `un|likely` one position is, and of the others nothing. Lines without a mark
    /// are known whole.
    boundary_mark: String = String::new(), Rules::read_by(SENTENCES);

    /// Symbol that marks a position without a boundary in a line of `annotated`, as in `li~kely`; otherwise as `boundary_mark`.
    joined_mark: String = String::new(), Rules::read_by(SENTENCES);

    /// Sentences of the corpus with constituents that are known, as `(the dog) sees (NP the cat)`: their trees are those without constituents that cross a
    /// bracket, and with one over each bracket that has the name of a nonterminal, of this name.
    brackets: PathBuf = PathBuf::new(), Rules::read_by(CONSTITUENTS).file_unless(|_| false);

    /// Held-out sentences, to measure with: a file in the format of the corpus. Of `dmv` it may be the corpus itself, and then heads of its
    /// sentences of every length are found, and nothing is measured.
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

    /// Use of the heads that the corpus and held-out sentences have: to `score` with, if all words have one, or to `constrain` trees to those with
    /// these heads; words whose head is `_` may then have any.
    heads: GivenHeads = GivenHeads::default(), Rules::read_by(RULED);

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

    /// Symbols of a shard, for [`cut`](grammaton::work::shard::cut): `u32::MAX` for a single shard.
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

    /// Leaves out annotations.
    pub fn remove_annotations(&mut self) {
        (self.annotated, self.boundary_mark, self.joined_mark) = Default::default();
    }

    /// Marks of single positions.
    pub fn position_marks(&self) -> PositionMarks {
        PositionMarks { boundary: self.boundary_mark.clone(), joined: self.joined_mark.clone() }
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

    /// A model of this corpus, to be saved.
    pub fn saved(&self, model: Trained) -> SavedModel {
        SavedModel::new(model, self.format, self.unit, self.options().cleaning)
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
    /// `[output]`: the results.
    OutputTable = "output";

    /// The folder of results; created if it does not exist.
    dir: PathBuf = "out".into(), Rules::read_by(EVERY).folder();

    /// Title of the report; if empty, the name of the corpus.
    title: String = String::new(), Rules::read_by(EVERY);

    /// Decoders whose output is scored and written: for text `viterbi`, `mbr` and `mbr-tree`; for dependencies `viterbi` and `mbr-arcs`
    /// (highest expected number of correct heads).
    decoders: Vec<Decoder> = vec![Decoder::Viterbi, Decoder::Mbr],
        Rules::read_by(WITHOUT_TREES).defaults(&[(ModelKind::Dmv, "[\"viterbi\", \"mbr-arcs\"]")]);

    /// Nonterminals whose constituents are the segments; if empty, `Word`.
    segments: Vec<String> = Vec::new(), Rules::read_by(SENTENCES);

    /// Models in `model.bin`: those of `all` chains, which vote on new text (eight at most, and beside the first one 256 MiB), or the best `one`.
    models: KeptModels = KeptModels::default(), Rules::read_by(SENTENCES);

    /// Share of the samples that must have a boundary for it to be in a further segmentation, `boundary-vote`, which is the recommended one; the lower, the
    /// more boundaries. 0: without it, the models vote on segments (`mbr-vote`).
    threshold: f64 = 0.0, Rules::read_by(TABLES).from_to(0.0, 1.0);

    /// Boundaries by the symbols around them, as these are learned from what samples and models find in all sentences; of new text as well. They vote, with as much
    /// weight as models and baselines together; with a `threshold` they have a segmentation of their own, `contexts`, which is the recommended one: boundaries whose
    /// probability is at least that. Where all that vote are unsure, as in languages with many affixes, they have one as well, from .5 on, learned with how sentences begin and end.
    contexts: bool = false, Rules::read_by(TABLES);

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

/// Models that a model file has.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum KeptModels {
    /// Those of all chains.
    #[default]
    All,
    /// The best one.
    One,
}

/// Use of the heads of the sentences to train on.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum GivenHeads {
    /// They are gold, to score with.
    #[default]
    Score,
    /// Trees have them.
    Constrain,
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
