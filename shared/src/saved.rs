//! The model file: what was learned, and how the sentences that it reads are written.
//!
//! A [`sealed`] file whose body is bincode of a [`Model`], with fixed-size little-endian integers. A file that fails a check is refused
//! with the reason; the indexes of a model that passes are in range.

pub mod reader;
pub mod texts;

use std::borrow::Cow;
use std::fmt::{self, Write as _};
use std::path::{Path, PathBuf};

use rayon::prelude::*;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::data;
use crate::data::corpus::{Cleaning, Corpus, Format, Unit};
use crate::data::dependency::Sentence;
use crate::data::treebank::{Rhs, Rule};
use crate::decoding::Decoding;
use crate::grammar::lexicon::Lexicon;
use crate::grammar::tree::Tree;
use crate::grammar::{Grammar, SymbolId};
use crate::models::adaptor;
use crate::models::baselines::Learned;
use crate::models::crf::Crf;
use crate::models::crf::contexts::Contexts;
use crate::models::decode::{Decoded, Decoder};
use crate::models::dmv::{factors, nouns};
use crate::models::logistic_normal;
use crate::models::{Model as GrammarModel, Params, Trained, latent, pcfg};
use crate::sealed::{self, Defect, Seal};
use crate::work::engine::ComputeError;
pub use texts::Entry;

/// Magic and versions of `model.bin`.
pub const SEAL: Seal = Seal { magic: *b"GRMTNMDL", oldest: 9, version: 9 };

/// A trained model: it parses, can be read, and is saved to a file.
///
/// The probabilities of a PCFG by EM (Lari & Young 1990):
///
/// ```
/// use grammaton::{Corpus, Decoder, Fit, Grammar, Method, Model};
///
/// let rules = ["S --> NP VP", "VP --> barks", "VP --> sees NP", "NP --> the N", "N --> dog", "N --> cat"];
/// let grammar: Grammar = rules.map(|rule| format!("1 1 {rule}\n")).concat().parse()?;
/// let corpus = Corpus::of_tokens("the dog barks\nthe dog sees the cat\nthe cat sees the dog\n")?;
/// let model = Fit::new(&grammar, Method::em()).run(&corpus)?;
/// assert!(model.grammar().contains("# 6.666667e-1 VP --> sees NP\n"));
///
/// let analysis = &model.parse(&corpus, Decoder::Viterbi)?[0];
/// assert_eq!(analysis.to_string(), "(S (NP the (N dog)) (VP barks))");
///
/// let bytes = model.to_bytes();
/// assert_eq!(Model::from_bytes(&bytes, "model.bin".as_ref())?, model);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, PartialEq, Debug)]
pub struct Model {
    /// Unit of a symbol; a token if the format is [`Format::Tokens`].
    pub unit: Unit,
    /// Format of the training corpus's lines.
    pub format: Format,
    /// Changes to each line of the training corpus before its symbols were read.
    pub cleaning: Cleaning,
    #[doc(hidden)]
    /// The model.
    pub model: Trained,
    #[doc(hidden)]
    /// Models of other chains, of the same grammar or of another one, which vote with `model` on the segments of new text.
    pub voters: Vec<GrammarModel>,
    #[doc(hidden)]
    /// What else decides on the segments of new text.
    pub segmenter: Segmenter,
}

/// What decides on the segments of new text beside the models, as it was learned of the text of the job.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct Segmenter {
    /// Names of the symbols, in the order of their numbers.
    pub symbols: Vec<String>,
    /// What votes with the models, each with its weight beside all models together.
    pub baselines: Vec<(Learned, f64)>,
    /// The price of a segment in the vote: half of the expected F1 on the text of the job.
    pub price: f64,
    /// The symbols around boundaries.
    pub contexts: Option<Contexts>,
    /// The probability from which on there is a boundary, if contexts decide alone; 0 if they vote, with the weight of models and baselines together.
    pub threshold: f64,
    /// What was learned from annotated sentences, above contexts that decide alone, else above the vote.
    pub crf: Option<Crf>,
}

impl Segmenter {
    /// Whether it votes with the models.
    pub fn votes(&self) -> bool {
        !self.baselines.is_empty() || self.contexts.is_some() && self.threshold == 0.0
    }

    /// Whether contexts decide alone.
    pub fn is_by_contexts(&self) -> bool {
        self.contexts.is_some() && self.threshold > 0.0
    }
}

/// A model that votes.
#[derive(Serialize, Deserialize)]
struct Other<'a> {
    grammar: Cow<'a, Grammar>,
    lexicon: Cow<'a, Lexicon>,
    params: BodyParams<'a>,
    segments: Cow<'a, [SymbolId]>,
}

/// What a model says of a sentence; printed, its tree, or its segments if there is no tree ([`Decoder`] has examples).
///
/// ```
/// use grammaton::{Corpus, Decoder, Fit, Grammar, Method};
///
/// let grammar: Grammar = "1 1 S --> a\n1 1 S --> a S\n1 1 S --> b\n".parse()?;
/// let model = Fit::new(&grammar, Method::em()).run(&Corpus::of_tokens("a b\na a\nb\na b\n")?)?;
/// let new = Corpus::of_tokens("b\nb a\n")?;
/// let analyses = model.parse(&new, Decoder::Viterbi)?;
/// assert!((analyses[0].log_probability - (3.0_f64 / 7.0).ln()).abs() < 1e-9);
/// assert_eq!((&analyses[1].tree, analyses[1].log_probability), (&None, f64::NEG_INFINITY));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, PartialEq, Debug)]
pub struct Analysis {
    /// The ends of its segments: ascending, the last one the sentence's length.
    pub ends: Vec<u32>,
    /// Its tree; `None` by [`Decoder::Mbr`], which gives segments alone, and without an analysis.
    pub tree: Option<Tree>,
    /// Log-probability; −∞ without an analysis. NaN with latent annotations.
    pub log_probability: f64,
    /// The sentence with its segments, in the notation of the corpus.
    pub line: String,
}

impl fmt::Display for Analysis {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.tree {
            Some(tree) => tree.fmt(out),
            None => out.write_str(&self.line),
        }
    }
}

/// The trees of sentences of words, by a model with latent annotations.
fn parse_words(model: &latent::parse::Model, corpus: &Corpus, decoder: Decoder) -> Vec<Analysis> {
    let decoder = match decoder {
        Decoder::Viterbi => latent::parse::Decoder::Viterbi,
        Decoder::Mbr | Decoder::MbrTree | Decoder::MbrArcs => latent::parse::Decoder::MaxRule,
    };
    let parser = latent::parse::Parser::new(model, latent::parse::THRESHOLD);
    let analysis = |(at, sentence): (usize, &Vec<u32>)| {
        let words: Vec<&str> = sentence.iter().map(|&word| &*corpus.symbols[word as usize]).collect();
        let tree = Some(parser.parse(&words, decoder).tree);
        let ends = vec![words.len() as u32];
        Analysis { line: corpus.line(at, &ends), ends, tree, log_probability: f64::NAN }
    };
    corpus.sentences.par_iter().enumerate().map(analysis).collect()
}

/// Why a corpus cannot be parsed: a sentence has too many derivations, or the decoder is for other models.
#[derive(Debug, thiserror::Error)]
#[error(transparent)]
pub struct ParseError(#[from] ComputeError);

/// An error in loading a model.
#[derive(Debug, thiserror::Error)]
pub enum ModelError {
    /// There is no model at the path.
    #[error(
        "{path}: no model here; give the folder `model` of a finished `grammaton train`, or its output folder"
    )]
    Missing {
        /// The path.
        path: PathBuf,
    },
    /// The file cannot be read.
    #[error("{path}: cannot read the model")]
    Read {
        /// The file.
        path: PathBuf,
        /// Cause.
        source: std::io::Error,
    },
    /// The file is of another kind.
    #[error("{path}: not a model file; give the model.bin that `grammaton train` wrote")]
    Foreign {
        /// The file.
        path: PathBuf,
    },
    /// The file is damaged or incomplete.
    #[error("{path}: model is {defect}; copy it again, or train again")]
    Broken {
        /// The file.
        path: PathBuf,
        #[doc(hidden)]
        /// The defect.
        defect: Defect,
    },
    /// A later version wrote the file.
    #[error("{path}: model {defect}; upgrade grammaton, or train again")]
    Newer {
        /// The file.
        path: PathBuf,
        #[doc(hidden)]
        /// The defect, with the versions.
        defect: Defect,
    },
}

impl ModelError {
    fn of(defect: Defect, path: &Path) -> ModelError {
        let path = path.to_owned();
        match defect {
            Defect::Foreign => ModelError::Foreign { path },
            Defect::Newer { .. } => ModelError::Newer { path, defect },
            Defect::Truncated { .. } | Defect::Older { .. } | Defect::Corrupt { .. } => {
                ModelError::Broken { path, defect }
            }
        }
    }
}

impl Model {
    #[doc(hidden)]
    /// A saved model, with format, unit and cleaning of its training corpus. Sentences of treebanks are words between spaces, as they are.
    pub fn new(model: Trained, format: Format, unit: Unit, cleaning: Cleaning) -> Model {
        let (format, cleaning) = match model {
            Trained::Treebank(_) => (Format::Tokens, Cleaning::default()),
            Trained::Grammar(_) => (format, cleaning),
        };
        let unit = match format {
            Format::Segmented => unit,
            Format::Tokens => Unit::Token,
        };
        Model { unit, format, cleaning, model, voters: Vec::new(), segmenter: Segmenter::default() }
    }

    /// The best analysis of every sentence of a corpus, in order. Symbols that the model lacks leave a sentence without one; strings that it
    /// has not learned are derived by the rules of their nonterminals.
    ///
    /// # Errors
    /// [`ParseError`] if a sentence has too many derivations, or the decoder is for other models.
    pub fn parse(&self, corpus: &Corpus, decoder: Decoder) -> Result<Vec<Analysis>, ParseError> {
        let model = match &self.model {
            Trained::Grammar(model) => model,
            Trained::Treebank(model) => return Ok(parse_words(model, corpus, decoder)),
        };
        let tokens: Vec<_> = corpus.each_tokens_for(&model.grammar).map(Result::ok).collect();
        let decoded = Decoding::new(model.clone(), decoder, true, false).all(&tokens)?;
        let analysis = |(sentence, decoded): (usize, Option<Decoded>)| {
            let n = corpus.sentences[sentence].len() as u32;
            let (mut ends, mut tree, mut log_probability) = (vec![n], None, f64::NEG_INFINITY);
            if let Some(decoded) = decoded {
                log_probability = decoded.log_z;
                tree = decoded.trees.first().and_then(|tree| Tree::parse(tree).ok());
                ends = decoded.segmentations.into_iter().next().unwrap_or(ends);
            }
            Analysis { line: corpus.line(sentence, &ends), ends, tree, log_probability }
        };
        Ok(decoded.into_iter().enumerate().map(analysis).collect())
    }

    /// The grammar with its learned hyper-parameters, as a valid grammar file, and in comments the probability of every rule; of a treebank
    /// its rules.
    pub fn grammar(&self) -> String {
        texts::grammar_text(&self.model)
    }

    /// The strings of an adapted nonterminal, or of one that rewrites to substrings, the most used first: `limit` at most. `None` if the model
    /// has no strings of a nonterminal of that name.
    pub fn strings(&self, nonterminal: &str, limit: usize) -> Option<Vec<Entry>> {
        let model = self.model.of_grammar()?;
        let mut sticks = model.lexicon.sticks.iter();
        let at = sticks.position(|stick| model.grammar.name(stick.symbol) == nonterminal)?;
        Some(texts::top(self, at, limit))
    }

    /// The heads of tagged sentences by a dependency model, by word: from 1, and 0 for the root. `None` where the model has no tree, or lacks a
    /// tag.
    ///
    /// # Errors
    /// [`ParseError`] if the model is of something else.
    pub fn heads(
        &self,
        sentences: &[Sentence],
        decoder: Decoder,
    ) -> Result<Vec<Option<Vec<u32>>>, ParseError> {
        let Trained::Grammar(model) = &self.model else { return Err(ComputeError::NotDependencies.into()) };
        let tags = nouns::tags(&model.grammar).ok_or(ComputeError::NotDependencies)?;
        let item = |sentence: &Sentence| {
            let number = |tag: &String| tags.iter().position(|known| known == tag).map(|at| at as u32);
            let numbers: Vec<u32> = sentence.tags.iter().map(number).collect::<Option<_>>()?;
            let tokens = nouns::tokens(&model.grammar, &numbers);
            Some(data::Sentence::new(tokens, 1).with_marks(factors::marks(&model.grammar, sentence, false)))
        };
        let items: Vec<_> = sentences.iter().map(item).collect();
        let decoded = Decoding::new(model.clone(), decoder, true, false).all_marked(&items)?;
        let heads = |decoded: Decoded| {
            let tree = Tree::parse(decoded.trees.first()?).ok()?;
            Some(nouns::heads(&tree).ok()?.1)
        };
        Ok(decoded.into_iter().map(|decoded| decoded.and_then(heads)).collect())
    }

    /// Writes the model to a file, which [`Model::load`] reads, as `grammaton parse` does. The file is whole or is not there: it is written
    /// under another name and renamed.
    ///
    /// # Errors
    /// Those of the file system.
    pub fn save(&self, path: impl AsRef<Path>) -> std::io::Result<()> {
        let path = path.as_ref();
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
        let mut file = tempfile::NamedTempFile::new_in(folder.unwrap_or(Path::new(".")))?;
        std::io::Write::write_all(&mut file, &self.to_bytes())?;
        file.as_file().sync_all()?;
        file.persist(path)?;
        Ok(())
    }

    /// Encodes `model.bin`.
    pub fn to_bytes(&self) -> Vec<u8> {
        SEAL.around(|bytes| {
            bincode::serde::encode_into_std_write(Body::from(self), bytes, bincode::config::legacy())
                .expect("a model is plain data, which serialises");
        })
    }

    /// Loads a model from a model folder, an output folder, or a `model.bin`.
    pub fn load(path: impl AsRef<Path>) -> Result<Model, ModelError> {
        let path = path.as_ref();
        let path = [path.join("model.bin"), path.join("model/model.bin"), path.to_owned()]
            .into_iter()
            .find(|path| path.is_file())
            .ok_or_else(|| ModelError::Missing { path: path.to_owned() })?;
        let bytes = std::fs::read(&path).map_err(|source| ModelError::Read { path: path.clone(), source })?;
        Model::from_bytes(&bytes, &path)
    }

    /// Decodes and checks the bytes of a `model.bin`; errors name `path`.
    pub fn from_bytes(bytes: &[u8], path: &Path) -> Result<Model, ModelError> {
        Model::open(bytes).map_err(|defect| ModelError::of(defect, path))
    }

    fn open(bytes: &[u8]) -> Result<Model, Defect> {
        let (_, body) = SEAL.open(bytes)?;
        let saved = sealed::decode::<Body<'_>>(body)?.read()?;
        let Segmenter { symbols: _, baselines, price, contexts, threshold, crf } = &saved.segmenter;
        saved.model.check().map_err(Defect::corrupt)?;
        saved.voters.iter().try_for_each(GrammarModel::check).map_err(Defect::corrupt)?;
        let is_alone = saved.voters.is_empty() && !saved.segmenter.votes();
        if !is_alone && saved.model.of_grammar().is_none() {
            return Err(Defect::corrupt("there are votes beside a model of a treebank"));
        }
        if !baselines.iter().all(|(_, weight)| weight.is_finite() && *weight >= 0.0) {
            return Err(Defect::corrupt("a baseline has no weight"));
        }
        if !(0.0..=0.5).contains(price) {
            return Err(Defect::corrupt("a segment has no price"));
        }
        if !(0.0..=1.0).contains(threshold) {
            return Err(Defect::corrupt("a threshold is not between 0 and 1"));
        }
        if !contexts.iter().all(Contexts::is_finite) || !crf.iter().all(Crf::is_finite) {
            return Err(Defect::corrupt("a weight is not finite"));
        }
        Ok(saved)
    }
}

/// The body of the file. It has no way to leave out the grammar of a model of a treebank, which holds [`latent::grammar_in_formats`] there.
#[derive(Serialize, Deserialize)]
struct Body<'a> {
    cleaning: Cow<'a, Cleaning>,
    unit: Unit,
    format: Format,
    grammar: Cow<'a, Grammar>,
    lexicon: Cow<'a, Lexicon>,
    params: BodyParams<'a>,
    segments: Cow<'a, [SymbolId]>,
    voters: Vec<Other<'a>>,
    segmenter: Cow<'a, Segmenter>,
}

#[derive(Serialize, Deserialize)]
enum BodyParams<'a> {
    Adaptor(Cow<'a, adaptor::Params>),
    Pcfg(Cow<'a, pcfg::Params>),
    Latent(Cow<'a, latent::parse::Model>),
    LogisticNormal(Cow<'a, logistic_normal::Params>),
}

impl<'a> From<&'a Params> for BodyParams<'a> {
    fn from(params: &'a Params) -> BodyParams<'a> {
        match params {
            Params::Adaptor(params) => BodyParams::Adaptor(Cow::Borrowed(params)),
            Params::Pcfg(params) => BodyParams::Pcfg(Cow::Borrowed(params)),
            Params::LogisticNormal(params) => BodyParams::LogisticNormal(Cow::Borrowed(params)),
        }
    }
}

impl<'a> From<&'a GrammarModel> for Other<'a> {
    fn from(GrammarModel { grammar, lexicon, params, segments }: &'a GrammarModel) -> Other<'a> {
        let (grammar, lexicon) = (Cow::Borrowed(grammar), Cow::Borrowed(lexicon));
        Other { grammar, lexicon, params: params.into(), segments: Cow::Borrowed(segments) }
    }
}

impl Other<'_> {
    fn read(self) -> Result<GrammarModel, Defect> {
        let Other { grammar, lexicon, params, segments } = self;
        let params = match params {
            BodyParams::Adaptor(params) => Params::Adaptor(params.into_owned()),
            BodyParams::Pcfg(params) => Params::Pcfg(params.into_owned()),
            BodyParams::LogisticNormal(params) => Params::LogisticNormal(params.into_owned()),
            BodyParams::Latent(_) => return Err(Defect::corrupt("a model of a treebank votes")),
        };
        let (grammar, lexicon) = (grammar.into_owned(), lexicon.into_owned());
        Ok(GrammarModel { grammar, lexicon, params, segments: segments.into_owned() })
    }
}

impl<'a> From<&'a Model> for Body<'a> {
    fn from(
        &Model { unit, format, ref model, ref cleaning, ref voters, ref segmenter }: &'a Model,
    ) -> Body<'a> {
        let (cleaning, segmenter) = (Cow::Borrowed(cleaning), Cow::Borrowed(segmenter));
        let voters = voters.iter().map(Other::from).collect();
        let (grammar, lexicon, params, segments) = match model {
            Trained::Grammar(GrammarModel { grammar, lexicon, params, segments }) => {
                (Cow::Borrowed(grammar), Cow::Borrowed(lexicon), params.into(), Cow::Borrowed(&segments[..]))
            }
            Trained::Treebank(model) => (
                Cow::Owned(latent::grammar_in_formats()),
                Cow::Owned(Lexicon::default()),
                BodyParams::Latent(Cow::Borrowed(model)),
                Cow::Borrowed(&[][..]),
            ),
        };
        Body { cleaning, unit, format, grammar, lexicon, params, segments, voters, segmenter }
    }
}

impl Body<'_> {
    fn read(self) -> Result<Model, Defect> {
        let Body { cleaning, unit, format, grammar, lexicon, params, segments, voters, segmenter } = self;
        let (cleaning, segmenter) = (cleaning.into_owned(), segmenter.into_owned());
        let voters = voters.into_iter().map(Other::read).collect::<Result<_, _>>()?;
        let model = match params {
            BodyParams::Latent(model) => {
                let is_bare = lexicon.sticks.is_empty() && segments.is_empty();
                if !is_bare || *grammar != latent::grammar_in_formats() {
                    return Err(Defect::corrupt("the model of a treebank has a grammar"));
                }
                Trained::Treebank(model.into_owned())
            }
            params => Trained::Grammar(Other { grammar, lexicon, params, segments }.read()?),
        };
        Ok(Model { unit, format, cleaning, model, voters, segmenter })
    }
}

/// SHA-256 of the parameters, in hexadecimal: two runs agree on it exactly if they agree on every bit.
///
/// Hashed in this order, numbers in little-endian: the symbols' names; of an adaptor grammar τ and α of every rule, and for
/// every stick its symbol, discount, concentration, and its strings in stick order, each with γ¹ and γ²; of a PCFG α, the
/// counts and the weights (mantissas, then exponents as i64) of every parameter, the constant one first, and for every stick
/// its symbol and its strings; with latent annotations the labels, the words, every rule (parent, then its labels, or its word),
/// the number of subtypes and the weights; with logistic-normal priors their number, then μ and Σ (its rows) of each. Lists begin with their length as u64; floats are their IEEE 754 bits.
pub fn parameters_sha256(model: &Trained) -> String {
    let mut hash = Sha256::new();
    let length = |hash: &mut Sha256, n: usize| hash.update((n as u64).to_le_bytes());
    let names = |hash: &mut Sha256, names: &[String]| {
        length(hash, names.len());
        for name in names {
            length(hash, name.len());
            hash.update(name.as_bytes());
        }
    };
    let floats = |hash: &mut Sha256, values: &mut dyn ExactSizeIterator<Item = f64>| {
        length(hash, values.len());
        values.for_each(|value| hash.update(value.to_le_bytes()));
    };
    let string = |hash: &mut Sha256, string: &[SymbolId]| {
        length(hash, string.len());
        string.iter().for_each(|symbol| hash.update(symbol.0.to_le_bytes()));
    };
    let model = match model {
        Trained::Grammar(model) => model,
        Trained::Treebank(model) => {
            for list in [&latent::grammar_in_formats().symbols, &model.rules.labels, &model.rules.words] {
                names(&mut hash, list);
            }
            length(&mut hash, model.rules.rules.len());
            for Rule { parent, right } in &model.rules.rules {
                hash.update(parent.0.to_le_bytes());
                right.labels().for_each(|label| hash.update(label.0.to_le_bytes()));
                if let Rhs::Lexical(word) = right {
                    hash.update(word.0.to_le_bytes());
                }
            }
            length(&mut hash, model.n_subtypes);
            floats(&mut hash, &mut model.weights.iter().copied());
            return hexadecimal(hash);
        }
    };
    names(&mut hash, &model.grammar.symbols);
    match &model.params {
        Params::Adaptor(params) => {
            floats(&mut hash, &mut params.tau.iter().copied());
            floats(&mut hash, &mut params.alpha.iter().copied());
            length(&mut hash, params.sticks.len());
            for stick in &params.sticks {
                hash.update(stick.symbol.0.to_le_bytes());
                hash.update(stick.discount.to_le_bytes());
                hash.update(stick.concentration.to_le_bytes());
                length(&mut hash, stick.order.len());
                for (rank, &param) in stick.order.iter().enumerate() {
                    string(
                        &mut hash,
                        model.lexicon.string(&model.grammar, param).map_or(&[], |(_, found)| found),
                    );
                    hash.update(stick.gamma1[rank].to_le_bytes());
                    hash.update(stick.gamma2[rank].to_le_bytes());
                }
            }
        }
        Params::Pcfg(params) => {
            floats(&mut hash, &mut params.estimate.alpha.iter().copied());
            floats(&mut hash, &mut params.estimate.counts.iter().copied());
            floats(&mut hash, &mut params.weights.iter().map(|weight| weight.mantissa));
            params.weights.iter().for_each(|weight| hash.update(weight.exponent.to_le_bytes()));
            length(&mut hash, model.lexicon.sticks.len());
            for stick in &model.lexicon.sticks {
                hash.update(stick.symbol.0.to_le_bytes());
                length(&mut hash, stick.strings.len());
                stick.strings.iter().for_each(|found| string(&mut hash, found));
            }
        }
        Params::LogisticNormal(params) => {
            length(&mut hash, params.priors.len());
            for prior in &params.priors {
                floats(&mut hash, &mut prior.mean().iter().copied());
                floats(&mut hash, &mut prior.covariance().iter().copied());
            }
        }
    }
    hexadecimal(hash)
}

fn hexadecimal(hash: Sha256) -> String {
    hash.finalize().iter().fold(String::with_capacity(64), |mut hex, byte| {
        write!(hex, "{byte:02x}").expect("a string takes all text");
        hex
    })
}
