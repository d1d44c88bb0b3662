//! The model folder: `model.bin`, which `parse` loads, and the texts `grammar.txt` and `sticks.tsv`.
//!
//! `model.bin` is a [`sealed`] file whose body is bincode of a [`SavedModel`], with fixed-size
//! little-endian integers. A file that fails a check is refused with the reason; the indexes of a model that passes are in range.

use std::borrow::Cow;
use std::fmt::Write as _;
use std::io;
use std::path::{Path, PathBuf};

use basics::sealed::{self, Defect, Seal};
use grammaton::data::corpus::{Cleaning, Format, Unit};
use grammaton::data::treebank::{Rhs, Rule};
use grammaton::grammar::lexicon::Lexicon;
use grammaton::grammar::{Adaptor, Grammar, StickId, SymbolId, syntax};
use grammaton::models::adaptor::{self, Stick};
use grammaton::models::latent;
use grammaton::models::logistic_normal::{self, PointEstimate};
use grammaton::models::pcfg;
use grammaton::models::{Model, Params, Trained};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::job::CorpusTable;

/// Magic and versions of `model.bin`.
pub const SEAL: Seal = Seal { magic: *b"GRMTNMDL", oldest: 1, version: 3 };

/// A model, and the format of its sentences.
#[derive(Clone, PartialEq, Debug)]
pub struct SavedModel {
    /// Unit of a symbol; a token if the format is [`Format::Tokens`].
    pub unit: Unit,
    /// Format of the training corpus's lines.
    pub format: Format,
    /// Changes to each line of the training corpus before its symbols were read.
    pub cleaning: Cleaning,
    /// The model.
    pub model: Trained,
}

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
        /// The defect.
        defect: Defect,
    },
    /// A later version wrote the file.
    #[error("{path}: model {defect}; upgrade grammaton, or train again")]
    Newer {
        /// The file.
        path: PathBuf,
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

impl SavedModel {
    /// A saved model, with unit and format of its training corpus.
    pub fn new(model: Trained, corpus: &CorpusTable) -> SavedModel {
        let format = match model {
            // Sentences of treebanks are words between spaces.
            Trained::Treebank(_) => Format::Tokens,
            Trained::Grammar(_) => corpus.format,
        };
        let unit = match format {
            Format::Segmented => corpus.unit,
            Format::Tokens => Unit::Token,
        };
        // Treebanks are read as they are.
        let cleaning = match model {
            Trained::Treebank(_) => Cleaning::default(),
            Trained::Grammar(_) => corpus.options().cleaning,
        };
        SavedModel { unit, format, cleaning, model }
    }

    /// Encodes `model.bin`.
    pub fn to_bytes(&self) -> Vec<u8> {
        let body = (&self.cleaning, Body::from(self));
        SEAL.around(|bytes| {
            bincode::serde::encode_into_std_write(body, bytes, bincode::config::legacy())
                .expect("a model is plain data, which serialises");
        })
    }

    /// Loads a model from a model folder, an output folder, or a `model.bin`.
    pub fn load(path: &Path) -> Result<SavedModel, ModelError> {
        let path = [path.join("model.bin"), path.join("model/model.bin"), path.to_owned()]
            .into_iter()
            .find(|path| path.is_file())
            .ok_or_else(|| ModelError::Missing { path: path.to_owned() })?;
        let bytes = std::fs::read(&path).map_err(|source| ModelError::Read { path: path.clone(), source })?;
        SavedModel::from_bytes(&bytes, &path)
    }

    /// Decodes and checks the bytes of a `model.bin`; errors name `path`.
    pub fn from_bytes(bytes: &[u8], path: &Path) -> Result<SavedModel, ModelError> {
        SavedModel::open(bytes).map_err(|defect| ModelError::of(defect, path))
    }

    fn open(bytes: &[u8]) -> Result<SavedModel, Defect> {
        let saved: SavedModel = match SEAL.open(bytes)? {
            (1, body) => sealed::decode::<FirstFormat>(body)?.into(),
            (2, body) => sealed::decode::<Body<'_>>(body)?.read()?,
            (_, body) => {
                let (cleaning, body) = sealed::decode::<(Cleaning, Body<'_>)>(body)?;
                SavedModel { cleaning, ..body.read()? }
            }
        };
        saved.model.check().map_err(Defect::corrupt)?;
        Ok(saved)
    }
}

/// Format 2; format 3 has the [`Cleaning`] before it. It has no way to leave out the grammar of a model of a treebank, which holds [`latent::grammar_in_formats`] there.
#[derive(Serialize, Deserialize)]
struct Body<'a> {
    unit: Unit,
    format: Format,
    grammar: Cow<'a, Grammar>,
    lexicon: Cow<'a, Lexicon>,
    params: BodyParams<'a>,
    segments: Cow<'a, [SymbolId]>,
}

#[derive(Serialize, Deserialize)]
enum BodyParams<'a> {
    Adaptor(Cow<'a, adaptor::Params>),
    Pcfg(Cow<'a, pcfg::Params>),
    Latent(Cow<'a, latent::parse::Model>),
    LogisticNormal(Cow<'a, logistic_normal::Params>),
}

impl<'a> From<&'a SavedModel> for Body<'a> {
    fn from(&SavedModel { unit, format, ref model, cleaning: _ }: &'a SavedModel) -> Body<'a> {
        let Model { grammar, lexicon, params, segments } = match model {
            Trained::Grammar(model) => model,
            Trained::Treebank(model) => {
                return Body {
                    unit,
                    format,
                    grammar: Cow::Owned(latent::grammar_in_formats()),
                    lexicon: Cow::Owned(Lexicon::default()),
                    params: BodyParams::Latent(Cow::Borrowed(model)),
                    segments: Cow::Borrowed(&[]),
                };
            }
        };
        let params = match params {
            Params::Adaptor(params) => BodyParams::Adaptor(Cow::Borrowed(params)),
            Params::Pcfg(params) => BodyParams::Pcfg(Cow::Borrowed(params)),
            Params::LogisticNormal(params) => BodyParams::LogisticNormal(Cow::Borrowed(params)),
        };
        let (grammar, lexicon) = (Cow::Borrowed(grammar), Cow::Borrowed(lexicon));
        Body { unit, format, grammar, lexicon, params, segments: Cow::Borrowed(segments) }
    }
}

impl Body<'_> {
    fn read(self) -> Result<SavedModel, Defect> {
        let Body { unit, format, grammar, lexicon, params, segments } = self;
        let params = match params {
            BodyParams::Adaptor(params) => Params::Adaptor(params.into_owned()),
            BodyParams::Pcfg(params) => Params::Pcfg(params.into_owned()),
            BodyParams::LogisticNormal(params) => Params::LogisticNormal(params.into_owned()),
            BodyParams::Latent(model) => {
                let is_bare = lexicon.sticks.is_empty() && segments.is_empty();
                if !is_bare || *grammar != latent::grammar_in_formats() {
                    return Err(Defect::corrupt("the model of a treebank has a grammar"));
                }
                let model = Trained::Treebank(model.into_owned());
                return Ok(SavedModel { unit, format, cleaning: Cleaning::default(), model });
            }
        };
        let (grammar, lexicon) = (grammar.into_owned(), lexicon.into_owned());
        let model = Trained::Grammar(Model { grammar, lexicon, params, segments: segments.into_owned() });
        Ok(SavedModel { unit, format, cleaning: Cleaning::default(), model })
    }
}

/// Format 1, of adaptor grammars only.
#[derive(Deserialize)]
struct FirstFormat {
    unit: Unit,
    format: Format,
    model: FirstModel,
}

#[derive(Deserialize)]
struct FirstModel {
    grammar: Grammar,
    lexicon: Lexicon,
    params: adaptor::Params,
    segments: Vec<SymbolId>,
}

impl From<FirstFormat> for SavedModel {
    fn from(first: FirstFormat) -> SavedModel {
        let FirstFormat { unit, format, model: FirstModel { grammar, lexicon, params, segments } } = first;
        let params = Params::Adaptor(params);
        let model = Trained::Grammar(Model { grammar, lexicon, params, segments });
        SavedModel { unit, format, cleaning: Cleaning::default(), model }
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

/// A string of a stick, for display.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Entry {
    /// Rank, from 1.
    pub rank: usize,
    /// Symbols, joined without spaces if symbols are characters.
    pub string: String,
    /// Expected uses in corpus and strings: γ¹ − 1 + discount.
    pub uses: f64,
    /// Mean of its weight: `E[π]`.
    pub weight: f64,
}

/// A string of a stick with its numbers, as [`Entry`] has them.
struct Ranked {
    rank: usize,
    param: u32,
    uses: f64,
    weight: f64,
}

/// The strings of stick number `at`: of an adaptor grammar in stick order, of a PCFG the used strings.
fn ranked(model: &Model, at: usize) -> Box<dyn Iterator<Item = Ranked> + '_> {
    match &model.params {
        Params::Adaptor(params) => {
            let stick = &params.sticks[at];
            let atoms = mean_weights(stick).zip(&stick.order).zip(&stick.gamma1).zip(1..);
            Box::new(atoms.map(move |(((weight, param), gamma1), rank)| Ranked {
                rank,
                param: param.0,
                uses: (gamma1 - 1.0 + stick.discount).max(0.0),
                weight,
            }))
        }
        Params::Pcfg(pcfg::Params { estimate, .. }) => {
            let range = model.lexicon.space(&model.grammar).stick(StickId(at as u32));
            let posterior = |param: u32| estimate.alpha[param as usize] + estimate.counts[param as usize];
            let total: f64 = range.clone().map(posterior).sum();
            let used = range.filter(|&param| estimate.counts[param as usize] > LEAST_USE);
            Box::new(used.zip(1..).map(move |(param, rank)| Ranked {
                rank,
                param,
                uses: estimate.counts[param as usize],
                weight: posterior(param) / total,
            }))
        }
        Params::LogisticNormal(_) => Box::new(std::iter::empty()),
    }
}

/// Minimum expected uses of a listed string of a PCFG; most substrings of a corpus have fewer.
const LEAST_USE: f64 = 1e-3;

/// The `limit` strings with the most expected uses, the most used first.
pub fn top(saved: &SavedModel, at: usize, limit: usize) -> Vec<Entry> {
    let Trained::Grammar(model) = &saved.model else { return Vec::new() };
    let mut most: Vec<Ranked> = ranked(model, at).collect();
    most.sort_by(|a, b| b.uses.total_cmp(&a.uses).then(a.rank.cmp(&b.rank)));
    most.truncate(limit);
    most.into_iter().map(spelled(model, at, saved.unit)).collect()
}

/// Puts the strings of stick number `at` to their numbers.
fn spelled(model: &Model, at: usize, unit: Unit) -> impl Fn(Ranked) -> Entry + '_ {
    let first = model.lexicon.space(&model.grammar).stick(StickId(at as u32)).start;
    let strings = &model.lexicon.sticks[at].strings;
    move |Ranked { rank, param, uses, weight }| {
        let string = spell(&model.grammar, &strings[(param - first) as usize], unit);
        Entry { rank, string, uses, weight }
    }
}

/// E[π_i] = E[v_i] Π_{j<i} (1 − E[v_j]), the breaks being independent under q; the last break is 1.
fn mean_weights(stick: &Stick) -> impl Iterator<Item = f64> + '_ {
    let last = stick.order.len().saturating_sub(1);
    let mut left = 1.0;
    (0..stick.order.len()).map(move |at| {
        let (one, two) = (stick.gamma1[at], stick.gamma2[at]);
        let share = if at == last { 1.0 } else { one / (one + two) };
        let weight = left * share;
        left *= 1.0 - share;
        weight
    })
}

/// The symbols as text.
pub fn spell(grammar: &Grammar, symbols: &[SymbolId], unit: Unit) -> String {
    let names: Vec<&str> = symbols.iter().map(|&symbol| grammar.name(symbol)).collect();
    names.join(unit.separators().0)
}

/// Writes `sticks.tsv`: every string in use, stick by stick.
pub fn write_sticks(saved: &SavedModel, to: &mut dyn io::Write) -> io::Result<()> {
    writeln!(to, "nonterminal\trank\tstring\tuses\tweight")?;
    let Trained::Grammar(model) = &saved.model else { return Ok(()) };
    for (at, stick) in model.lexicon.sticks.iter().enumerate() {
        let name = model.grammar.name(stick.symbol);
        for Entry { rank, string, uses, weight } in ranked(model, at).map(spelled(model, at, saved.unit)) {
            writeln!(to, "{name}\t{rank}\t{string}\t{uses:.4}\t{weight:.6e}")?;
        }
    }
    Ok(())
}

/// Formats `grammar.txt`: the grammar with its learned hyper-parameters, as a valid grammar file, and in comments the probability
/// of every rule: the estimate of EM and MAP-EM, the posterior mean of other methods; for logistic-normal priors the weight of every rule in decoding; for latent annotations the rules of the treebank,
/// each with its relative frequency.
pub fn grammar_text(model: &Trained) -> String {
    let model = match model {
        Trained::Grammar(model) => model,
        Trained::Treebank(model) => return treebank_text(model),
    };
    let mut grammar = model.grammar.clone();
    let (alpha, heading, probabilities) = match &model.params {
        Params::Adaptor(params) => {
            for stick in &params.sticks {
                grammar.adaptors[stick.symbol.index()] = Some(Adaptor {
                    discount: Some(stick.discount),
                    concentration: Some(stick.concentration),
                });
            }
            let mut totals = vec![0.0; grammar.n_nonterminals as usize];
            for (rule, tau) in grammar.rules.iter().zip(&params.tau) {
                totals[rule.parent.index()] += tau;
            }
            let means = grammar.rules.iter().zip(&params.tau);
            let means = means.map(|(rule, tau)| tau / totals[rule.parent.index()]);
            (params.alpha.clone(), MEANS, means.collect::<Vec<f64>>())
        }
        Params::Pcfg(params) => {
            let heading = if params.is_point { "Probability of each rule" } else { MEANS };
            let alpha = params.estimate.alpha[grammar.space().rules()].to_vec();
            (alpha, heading, params.rule_probabilities(&grammar))
        }
        Params::LogisticNormal(params) => return syntax::print(&grammar) + &weights_text(&grammar, params),
    };
    for (rule, &alpha) in grammar.rules.iter_mut().zip(&alpha) {
        rule.alpha = alpha;
    }
    let mut text = format!("{}\n# {heading}:\n", syntax::print(&grammar));
    for (rule, probability) in grammar.rules.iter().zip(probabilities) {
        let children: Vec<&str> = rule.children.iter().map(|&child| grammar.name(child)).collect();
        let parent = grammar.name(rule.parent);
        writeln!(text, "# {probability:.6e} {parent} --> {}", children.join(" "))
            .expect("a string takes all text");
    }
    text
}

const MEANS: &str = "Mean probability of each rule";

/// Weights of all rules with logistic-normal priors.
fn weights_text(grammar: &Grammar, params: &logistic_normal::Params) -> String {
    let mut text = String::from(match params.estimate {
        PointEstimate::Softmax => "\n# Probability of each rule, softmax(μ):\n",
        PointEstimate::Raw => "\n# Weight of each rule, e^μ:\n",
    });
    let weights = params.decoding_weights(grammar);
    for (rule, weight) in grammar.rules.iter().zip(&weights[grammar.space().rules()]) {
        let children: Vec<&str> = rule.children.iter().map(|&child| grammar.name(child)).collect();
        let (weight, parent) = (weight.to_f64(), grammar.name(rule.parent));
        writeln!(text, "# {weight:.6e} {parent} --> {}", children.join(" "))
            .expect("a string takes all text");
    }
    text
}

/// The rules of a treebank. They are not a valid grammar file, since a word may have the name of a label.
fn treebank_text(model: &latent::parse::Model) -> String {
    let rules = &model.rules;
    let n = model.n_subtypes;
    let mut text = format!("# Every label has {n} subtypes, so each line is a block of rules.\n");
    for (Rule { parent, right }, frequency) in rules.rules.iter().zip(rules.relative_frequencies()) {
        let children: Vec<&str> = match right {
            Rhs::Lexical(word) => vec![&rules.words[word.0 as usize]],
            Rhs::Binary(..) | Rhs::Unary(_) => {
                right.labels().map(|label| rules.labels[label.index()].as_str()).collect()
            }
        };
        let parent = &rules.labels[parent.index()];
        writeln!(text, "{frequency:.6e} {parent} --> {}", children.join(" "))
            .expect("a string takes all text");
    }
    text
}

#[cfg(test)]
pub(crate) mod tests {
    use grammaton::data::corpus::{Marks, Normalise};
    use grammaton::data::treebank::{Classes, Treebank};
    use grammaton::grammar::ParamId;
    use grammaton::grammar::Rule;
    use grammaton::grammar::lexicon::StickStrings;
    use grammaton::grammar::tree::Tree;
    use grammaton::models::logistic_normal::Prior;

    use super::*;

    /// The grammar S → Word | Word S over the letters a and b, with three words.
    pub(crate) fn small() -> SavedModel {
        let symbol = SymbolId;
        let rule = |parent: u32, children: &[u32]| Rule {
            parent: symbol(parent),
            children: children.iter().map(|&at| symbol(at)).collect(),
            alpha: 1.0,
        };
        let grammar = Grammar {
            symbols: ["Sentence", "Word", "Phon", "a", "b"].map(str::to_owned).to_vec(),
            n_nonterminals: 3,
            rules: vec![
                rule(0, &[1]),
                rule(0, &[1, 0]),
                rule(1, &[2]),
                rule(1, &[2, 1]),
                rule(2, &[3]),
                rule(2, &[4]),
            ],
            adaptors: vec![None, Some(Adaptor::default()), None],
        };
        let strings = [vec![3], vec![3, 4], vec![4, 4, 3]];
        let strings = strings
            .map(|string: Vec<u32>| string.into_iter().map(symbol).collect::<Vec<_>>())
            .iter()
            .collect();
        let stick = Stick {
            symbol: symbol(1),
            order: vec![ParamId(8), ParamId(7), ParamId(9)],
            gamma1: vec![7.5, 3.5, 1.5],
            gamma2: vec![7.5, 3.5, 1.0],
            discount: 0.5,
            concentration: 1.0,
        };
        let (tau, alpha) = (vec![1.0, 3.0, 1.0, 1.0, 1.0, 1.0], vec![1.0; 6]);
        let params = Params::Adaptor(adaptor::Params { tau, alpha, sticks: vec![stick] });
        let lexicon = Lexicon { sticks: vec![StickStrings { symbol: symbol(1), strings }] };
        SavedModel {
            unit: Unit::Char,
            format: Format::Segmented,
            cleaning: Cleaning::default(),
            model: Trained::Grammar(Model { grammar, lexicon, params, segments: vec![symbol(1)] }),
        }
    }

    /// The grammar S → A | A S over the letters a and b, with one rule of A for each letter.
    fn normal() -> SavedModel {
        let text = "1 1 S --> A\n1 1 S --> A S\n1 1 A --> a\n1 1 A --> b\n";
        let (grammar, _) = syntax::parse(text, "g").unwrap();
        let prior = |mean: [f64; 2], variances: [f64; 2], covariance| {
            Prior::new(mean.to_vec(), vec![variances[0], covariance, covariance, variances[1]]).unwrap()
        };
        let priors = vec![prior([0.5, 0.5], [1.0, 1.0], 0.5), prior([0.0, -2.0], [0.25, 4.0], 0.0)];
        let params = Params::LogisticNormal(logistic_normal::Params { priors, estimate: PointEstimate::Raw });
        let model = Model { grammar, lexicon: Lexicon::default(), params, segments: Vec::new() };
        SavedModel {
            unit: Unit::Token,
            format: Format::Tokens,
            cleaning: Cleaning::default(),
            model: Trained::Grammar(model),
        }
    }

    impl SavedModel {
        /// The model, which is one of a grammar.
        pub(crate) fn of_grammar(&mut self) -> &mut Model {
            match &mut self.model {
                Trained::Grammar(model) => model,
                Trained::Treebank(_) => panic!("a model of a treebank"),
            }
        }
    }

    /// Two subtypes of each label of two trees.
    fn of_treebank() -> latent::parse::Model {
        let trees = ["(ROOT (S (N a) (V b)))", "(ROOT (N a))"].map(|text| Tree::parse(text).unwrap());
        let Treebank { rules, vocabulary, chains, .. } = Treebank::new(&trees, 0, Classes::Generic);
        let weights = vec![0.5; latent::Layout::new(&rules, 2).n_params()];
        latent::parse::Model { rules, vocabulary, chains, n_subtypes: 2, weights }
    }

    fn priors(model: &mut Model) -> &mut logistic_normal::Params {
        match &mut model.params {
            Params::LogisticNormal(params) => params,
            _ => panic!("no logistic-normal priors"),
        }
    }

    fn sticks(model: &mut Model) -> &mut adaptor::Params {
        match &mut model.params {
            Params::Adaptor(params) => params,
            _ => panic!("not an adaptor grammar"),
        }
    }

    fn refusal(bytes: &[u8]) -> String {
        SavedModel::from_bytes(bytes, Path::new("model.bin")).unwrap_err().to_string()
    }

    #[test]
    fn saved_models_load() {
        let cleaning = Cleaning {
            normalise: Normalise::Nfkc,
            lowercase: true,
            punctuation: Marks::Boundary,
            digraphs: vec!["sh".to_owned()],
        };
        let cleaned = SavedModel { unit: Unit::Grapheme, cleaning, ..small() };
        for saved in [small(), normal(), cleaned] {
            let loaded = SavedModel::from_bytes(&saved.to_bytes(), Path::new("model.bin")).unwrap();
            assert_eq!(loaded, saved);
        }
    }

    #[test]
    fn models_of_earlier_releases_load() {
        let golden: [&[u8]; 3] = [
            include_bytes!("../tests/golden/model-1.bin"),
            include_bytes!("../tests/golden/model-2.bin"),
            include_bytes!("../tests/golden/model-3.bin"),
        ];
        for golden in golden {
            assert_eq!(SavedModel::from_bytes(golden, Path::new("model.bin")).unwrap(), small());
        }
    }

    #[test]
    fn logistic_normal_priors_are_written_as_they_always_were() {
        let golden: [&[u8]; 2] = [
            include_bytes!("../tests/golden/model-2-logistic-normal.bin"),
            include_bytes!("../tests/golden/model-3-logistic-normal.bin"),
        ];
        for golden in golden {
            assert_eq!(SavedModel::from_bytes(golden, Path::new("model.bin")).unwrap(), normal());
        }
        assert_eq!(normal().to_bytes(), golden[1]);
    }

    #[test]
    fn a_model_of_a_treebank_is_written_with_a_grammar_that_nothing_reads() {
        let latent = of_treebank();
        let written = |grammar: Grammar| {
            let fields = (Unit::Token, Format::Tokens, grammar, Lexicon::default(), 2u32, &latent, [0u64; 1]);
            let fields = (Cleaning::default(), fields);
            SEAL.close(&bincode::serde::encode_to_vec(fields, bincode::config::legacy()).unwrap())
        };
        let model = Trained::Treebank(latent.clone());
        let saved =
            SavedModel { unit: Unit::Token, format: Format::Tokens, cleaning: Cleaning::default(), model };
        assert_eq!(saved.to_bytes(), written(latent::grammar_in_formats()));
        assert_eq!(SavedModel::from_bytes(&saved.to_bytes(), Path::new("model.bin")).unwrap(), saved);
        let other = refusal(&written(small().of_grammar().grammar.clone()));
        assert!(other.contains("the model of a treebank has a grammar"), "{other}");
    }

    #[test]
    #[ignore = "writes what the tests above read"]
    fn write_golden() {
        let path = format!("{}/tests/golden/model-{}", env!("CARGO_MANIFEST_DIR"), SEAL.version);
        std::fs::write(path.clone() + ".bin", small().to_bytes()).unwrap();
        std::fs::write(path + "-logistic-normal.bin", normal().to_bytes()).unwrap();
    }

    #[test]
    fn every_cut_and_every_flipped_byte_is_refused() {
        let bytes = small().to_bytes();
        for length in 0..bytes.len() {
            refusal(&bytes[..length]);
        }
        for at in 0..bytes.len() {
            let mut bytes = bytes.clone();
            bytes[at] ^= 0x40;
            refusal(&bytes);
        }
    }

    #[test]
    fn refusals_name_the_reason() {
        let bytes = small().to_bytes();
        assert!(refusal(b"PK\x03\x04 something else").contains("not a model file"));
        assert!(refusal(&bytes[..bytes.len() - 1]).contains("cut short"));
        let mut longer = bytes.clone();
        longer.push(0);
        assert!(refusal(&longer).contains("1 bytes too many"));
        let mut newer = bytes.clone();
        newer[8] = 9;
        assert!(refusal(&newer).contains("format 9 is newer than this build reads (3)"));
        let mut damaged = bytes;
        damaged[sealed::HEADER + 9] ^= 1;
        assert!(refusal(&damaged).contains("checksum"));
    }

    #[test]
    fn inconsistent_model_is_refused_even_with_a_good_checksum() {
        let mut saved = small();
        sticks(saved.of_grammar()).sticks[0].order[0] = ParamId(99);
        assert!(refusal(&saved.to_bytes()).contains("a stick has a string it lacks"));
    }

    #[test]
    fn numbers_and_symbols_that_make_no_model_are_refused_even_with_a_good_checksum() {
        type Edit = fn(&mut Model);
        let edits: [(&str, Edit); 9] = [
            ("a rule has no weight", |model| sticks(model).tau[0] = f64::NAN),
            ("a rule has no weight", |model| sticks(model).alpha[1] = 0.0),
            ("a stick has a string twice", |model| sticks(model).sticks[0].order[0] = ParamId(7)),
            ("a string of a stick has no weight", |model| sticks(model).sticks[0].gamma1[2] = -1.0),
            ("a string of a stick has no weight", |model| sticks(model).sticks[0].gamma2[0] = f64::INFINITY),
            ("a stick has no prior", |model| sticks(model).sticks[0].discount = 1.0),
            ("a stick has no prior", |model| sticks(model).sticks[0].concentration = -0.5),
            ("not of the grammar's terminals", |model| {
                model.lexicon.sticks[0].strings.push(&[SymbolId(0)]);
            }),
            ("segments are not nonterminals", |model| model.segments[0] = SymbolId(3)),
        ];
        for (why, edit) in edits {
            let mut saved = small();
            edit(saved.of_grammar());
            let refusal = refusal(&saved.to_bytes());
            assert!(refusal.contains(why), "{refusal}, expected {why}");
        }
    }

    #[test]
    fn entries_show_uses_and_mean_weights() {
        let rows = top(&small(), 0, 10);
        let rows: Vec<_> = rows.iter().map(|e| (e.string.as_str(), e.uses, e.weight)).collect();
        assert_eq!(rows, [("ab", 7.0, 0.5), ("a", 3.0, 0.25), ("bba", 1.0, 0.25)]);
        let mut sticks = Vec::new();
        write_sticks(&small(), &mut sticks).unwrap();
        assert!(String::from_utf8(sticks).unwrap().contains("\nWord\t1\tab\t7.0000\t5.000000e-1\n"));
    }

    #[test]
    fn grammar_text_is_a_grammar() {
        let text = grammar_text(&small().model);
        let (grammar, _) = syntax::parse(&text, "grammar.txt").unwrap();
        assert_eq!(grammar.symbols, small().of_grammar().grammar.symbols);
        assert_eq!(grammar.adaptors[1], Some(Adaptor { discount: Some(0.5), concentration: Some(1.0) }));
        assert!(text.contains("# 2.500000e-1 Sentence --> Word\n"));
    }

    #[test]
    fn weights_of_logistic_normal_priors_are_described() {
        let mut saved = normal();
        let text = grammar_text(&saved.model);
        let (grammar, _) = syntax::parse(&text, "grammar.txt").unwrap();
        assert_eq!(grammar, saved.of_grammar().grammar);
        let weights = "\n# Weight of each rule, e^μ:\n# 1.648721e0 S --> A\n# 1.648721e0 S --> A S\n\
            # 1.000000e0 A --> a\n# 1.353353e-1 A --> b\n";
        assert!(text.ends_with(weights), "{text}");
        priors(saved.of_grammar()).estimate = PointEstimate::Softmax;
        let text = grammar_text(&saved.model);
        let weights = "\n# Probability of each rule, softmax(μ):\n# 5.000000e-1 S --> A\n# 5.000000e-1 S --> A S\n\
            # 8.807971e-1 A --> a\n# 1.192029e-1 A --> b\n";
        assert!(text.ends_with(weights), "{text}");
        priors(saved.of_grammar()).priors.truncate(1);
        assert!(refusal(&saved.to_bytes()).contains("1 priors, expected 2"));
    }

    #[test]
    fn digest_sees_every_parameter_and_the_order_of_strings() {
        let saved = small();
        let digest = parameters_sha256(&saved.model);
        assert_eq!(digest.len(), 64);
        assert_eq!(digest, parameters_sha256(&saved.model.clone()));
        let change = |edit: &dyn Fn(&mut Model)| {
            let mut other = saved.clone();
            edit(other.of_grammar());
            parameters_sha256(&other.model)
        };
        assert_ne!(digest, change(&|m| sticks(m).tau[0] = 1.0 + f64::EPSILON));
        assert_ne!(digest, change(&|m| sticks(m).sticks[0].order.swap(0, 1)));
        assert_ne!(digest, change(&|m| sticks(m).sticks[0].discount = 0.25));
        let (saved, mut other) = (normal(), normal());
        priors(other.of_grammar()).priors[1] = Prior::independent(vec![0.0, -2.0]).unwrap();
        assert_ne!(parameters_sha256(&saved.model), parameters_sha256(&other.model));
    }
}
