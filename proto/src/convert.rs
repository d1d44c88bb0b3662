//! The one conversion between the wire and the domain.
//!
//! In: messages of `v1`, from a peer that may be old, broken or hostile. Out: domain values whose sizes, indexes,
//! counts and numbers are all checked, or a [`WireError`] that names the field, the value found and the value expected.
//!
//! Here, [`Wire::from_wire`] checks a value by itself; [`fits`] checks values against each other (tokens against the
//! grammar, an answer against its task). A task travels as a [`lease`] and [`blob`]s. Each kind of work has a file in
//! `convert/kinds`.

use grammaton::data::Sentence;
use grammaton::grammar::ParamId;
use grammaton::grammar::check::Defect;
use grammaton::grammar::lexicon::{Lexicon, StickStrings, Strings};
use grammaton::grammar::{Adaptor, Grammar, Rule, SymbolId};
use grammaton::limits::is_count;
use grammaton::models::tally::Analysis;
use grammaton::num::Wide;
use grammaton::work::shard::Shard;
use grammaton::work::task::RunsError;
use prost::Message;
use prost::bytes::Bytes;

use crate::v1;

mod answer;
pub mod blob;
mod checks;
pub mod fits;
mod items;
mod kinds;
pub mod lease;
mod sizes;
mod state;
mod trees;

/// A message that does not encode a valid value.
#[derive(Clone, PartialEq, Debug, thiserror::Error)]
pub enum WireError {
    /// Bytes that are not a message of the expected type.
    #[error("{message}: {source}")]
    Malformed {
        /// The expected type of message.
        message: &'static str,
        /// Cause.
        source: prost::DecodeError,
    },
    /// A required field is missing.
    #[error("{field}: missing")]
    Missing {
        /// The field.
        field: &'static str,
    },
    /// A string, list or name is empty that must not be.
    #[error("{field}[{at}]: empty, expected at least one element")]
    Empty {
        /// The field.
        field: &'static str,
        /// Position in it.
        at: usize,
    },
    /// Lists that belong together differ in length.
    #[error("{field}: length {found}, expected {expected}")]
    Length {
        /// The field.
        field: &'static str,
        /// Elements found.
        found: u64,
        /// Elements expected.
        expected: u64,
    },
    /// A quantity above its limit.
    #[error("{field}: {found}, expected at most {expected}")]
    Excess {
        /// The field or quantity.
        field: &'static str,
        /// The value found.
        found: u64,
        /// The largest allowed value.
        expected: u64,
    },
    /// An index or enumerator outside its range.
    #[error("{field}[{at}]: {found}, expected {start}..{end}")]
    Range {
        /// The field.
        field: &'static str,
        /// Position in it.
        at: usize,
        /// The index.
        found: i64,
        /// Smallest allowed value.
        start: u64,
        /// End of the range, exclusive.
        end: u64,
    },
    /// An exponent so large that products overflow, or a nonzero exponent of the number zero.
    #[error("{field}[{at}]: {found}, expected at most {largest} in magnitude")]
    Exponent {
        /// The field.
        field: &'static str,
        /// Position in it.
        at: usize,
        /// The exponent.
        found: i64,
        /// Largest allowed magnitude.
        largest: i64,
    },
    /// A number outside its domain.
    #[error("{field}[{at}]: {found}, expected a number {expected}")]
    Number {
        /// The field.
        field: &'static str,
        /// Position in it.
        at: usize,
        /// The number.
        found: f64,
        /// Description of the domain.
        expected: &'static str,
    },
    /// Elements that are not in strictly ascending order.
    #[error("{field}[{at}]: not above the element before it, expected ascending order without repeats")]
    Order {
        /// The field.
        field: &'static str,
        /// Position in it.
        at: usize,
    },
    /// A string that occurs in no sentence of the shard.
    #[error("{field}[{at}]: a string that occurs in no sentence of the shard")]
    Foreign {
        /// The field.
        field: &'static str,
        /// Position in it.
        at: usize,
    },
    /// A field that differs from what follows from other fields.
    #[error("{field}: not what the rest of the answer gives")]
    Inconsistent {
        /// The field.
        field: &'static str,
    },
    /// Runs that do not fit the weights of a shard.
    #[error("shard weights: {0}")]
    Runs(#[from] RunsError),
    /// The tables of a grammar do not form a valid grammar.
    #[error("grammar: {0}")]
    Grammar(#[from] Defect),
    /// The state of a shard is inconsistent, or belongs to another shard.
    #[error("shard_state: {problem}")]
    ShardState {
        /// The condition that fails.
        problem: String,
    },
    /// Rules of a treebank are inconsistent, or a tree is not one of the grammar and its sentence.
    #[error("trees: {problem}")]
    Trees {
        /// The condition that fails.
        problem: String,
    },
    /// Priors or their statistics are inconsistent, or belong to another grammar.
    #[error("fit: {problem}")]
    Fit {
        /// The condition that fails.
        problem: String,
    },
    /// The content does not match its hash.
    #[error("{field}: the content does not have the declared hash")]
    Hash {
        /// The field.
        field: &'static str,
    },
    /// An answer whose kind differs from that of its task.
    #[error("answer: {found}, expected {expected}")]
    Kind {
        /// Kind of the answer.
        found: &'static str,
        /// Kind of the task.
        expected: &'static str,
    },
}

/// A domain value that can be sent as a message.
pub trait Wire: Sized {
    /// The type of the message.
    type Message: Message + Default;
    /// Name of the message in errors.
    const NAME: &'static str;

    /// Converts the value to a message.
    fn to_wire(&self) -> Self::Message;

    /// Checks a message and converts it to a value.
    fn from_wire(message: Self::Message) -> Result<Self, WireError>;

    /// Encodes the value as a payload.
    fn to_bytes(&self) -> Bytes {
        self.to_wire().encode_to_vec().into()
    }

    /// Decodes and checks a payload.
    fn from_bytes(bytes: Bytes) -> Result<Self, WireError> {
        Self::from_wire(decoded(Self::NAME, bytes)?)
    }
}

fn decoded<M: Message + Default>(message: &'static str, bytes: Bytes) -> Result<M, WireError> {
    M::decode(bytes).map_err(|source| WireError::Malformed { message, source })
}

impl Wire for Grammar {
    type Message = v1::Grammar;
    const NAME: &'static str = "grammar";

    fn to_wire(&self) -> v1::Grammar {
        let adaptor = |adaptor: &Option<Adaptor>| v1::Adaptor {
            adapted: adaptor.is_some(),
            discount: adaptor.and_then(|adaptor| adaptor.discount),
            concentration: adaptor.and_then(|adaptor| adaptor.concentration),
        };
        v1::Grammar {
            symbols: self.symbols.clone(),
            n_nonterminals: self.n_nonterminals,
            parents: self.rules.iter().map(|rule| rule.parent.0).collect(),
            children: Some(strings_to_wire(self.rules.iter().map(|rule| &rule.children[..]))),
            alphas: self.rules.iter().map(|rule| rule.alpha).collect(),
            adaptors: self.adaptors.iter().map(adaptor).collect(),
        }
    }

    fn from_wire(message: v1::Grammar) -> Result<Grammar, WireError> {
        let v1::Grammar { symbols, n_nonterminals, parents, children, alphas, adaptors } = message;
        let children = ragged("grammar.children", children)?;
        same_length("grammar.children", children.len(), parents.len())?;
        same_length("grammar.alphas", alphas.len(), parents.len())?;
        let rule = |((parent, children), alpha): ((u32, Vec<u32>), f64)| Rule {
            parent: SymbolId(parent),
            children: children.into_iter().map(SymbolId).collect(),
            alpha,
        };
        let rules = parents.into_iter().zip(children).zip(alphas).map(rule).collect();
        let adaptor = |adaptor: v1::Adaptor| {
            let v1::Adaptor { adapted, discount, concentration } = adaptor;
            adapted.then_some(Adaptor { discount, concentration })
        };
        let adaptors = adaptors.into_iter().map(adaptor).collect();
        Ok(Grammar::new(symbols, n_nonterminals, rules, adaptors)?)
    }
}

impl Wire for Lexicon {
    type Message = v1::Lexicon;
    const NAME: &'static str = "lexicon";

    fn to_wire(&self) -> v1::Lexicon {
        let stick = |stick: &StickStrings| v1::Stick {
            symbol: stick.symbol.0,
            strings: Some(strings_to_wire(stick.strings.iter())),
        };
        v1::Lexicon { sticks: self.sticks.iter().map(stick).collect() }
    }

    fn from_wire(message: v1::Lexicon) -> Result<Lexicon, WireError> {
        ascending("lexicon.sticks", message.sticks.iter().map(|stick| stick.symbol))?;
        let stick = |stick: v1::Stick| -> Result<StickStrings, WireError> {
            let strings = symbol_strings("lexicon.strings", stick.strings)?;
            Ok(StickStrings { symbol: SymbolId(stick.symbol), strings })
        };
        Ok(Lexicon { sticks: message.sticks.into_iter().map(stick).collect::<Result<_, _>>()? })
    }
}

impl Wire for Shard {
    type Message = v1::Shard;
    const NAME: &'static str = "shard";

    fn to_wire(&self) -> v1::Shard {
        let items = match self {
            Shard::Sentences(sentences) => v1::shard::Items::Sentences(v1::Sentences {
                tokens: Some(strings_to_wire(sentences.iter().map(|sentence| &sentence.tokens[..]))),
                multiplicities: sentences.iter().map(|sentence| sentence.multiplicity).collect(),
            }),
            Shard::Strings(params) => {
                v1::shard::Items::Strings(v1::ParamRange { start: params.start, end: params.end })
            }
            Shard::Trees { rules, trees } => v1::shard::Items::Trees(self::trees::to_wire(rules, trees)),
        };
        v1::Shard { items: Some(items) }
    }

    fn from_wire(message: v1::Shard) -> Result<Shard, WireError> {
        match message.items.ok_or(WireError::Missing { field: "shard.items" })? {
            v1::shard::Items::Sentences(v1::Sentences { tokens, multiplicities }) => {
                let tokens = symbol_strings("shard.tokens", tokens)?;
                same_length("shard.multiplicities", multiplicities.len(), tokens.len())?;
                in_range("shard.multiplicities", multiplicities.iter().copied(), 1..u64::from(u32::MAX) + 1)?;
                let sentences = tokens.iter().map(<[SymbolId]>::to_vec).zip(multiplicities);
                let sentence = |(tokens, multiplicity)| Sentence { tokens, multiplicity };
                Ok(Shard::Sentences(sentences.map(sentence).collect()))
            }
            v1::shard::Items::Strings(v1::ParamRange { start, end }) => {
                in_range("shard.strings", [start], 0..u64::from(end) + 1)?;
                Ok(Shard::Strings(start..end))
            }
            v1::shard::Items::Trees(message) => trees::from_wire(message),
        }
    }
}

impl Wire for Vec<Wide> {
    type Message = v1::Weights;
    const NAME: &'static str = "weights";

    fn to_wire(&self) -> v1::Weights {
        weights_to_wire(self)
    }

    fn from_wire(message: v1::Weights) -> Result<Vec<Wide>, WireError> {
        let v1::Weights { mantissas, exponents } = message;
        same_length("weights.exponents", exponents.len(), mantissas.len())?;
        numbers("weights.mantissas", &mantissas, "0 or in [1, 2)", |mantissa| {
            mantissa.to_bits() == 0 || (1.0..2.0).contains(&mantissa)
        })?;
        let weights: Vec<Wide> = mantissas
            .into_iter()
            .zip(exponents)
            .map(|(mantissa, exponent)| Wide { mantissa, exponent })
            .collect();
        let largest = |weight: &Wide| if weight.is_zero() { 0 } else { Wide::MAX_EXPONENT };
        match weights.iter().position(|weight| weight.exponent.abs_diff(0) > largest(weight) as u64) {
            Some(at) => {
                let (weight, largest) = (weights[at], largest(&weights[at]));
                let found = weight.exponent;
                Err(WireError::Exponent { field: "weights.exponents", at, found, largest })
            }
            None => Ok(weights),
        }
    }
}

fn weights_to_wire(weights: &[Wide]) -> v1::Weights {
    v1::Weights {
        mantissas: weights.iter().map(|weight| weight.mantissa).collect(),
        exponents: weights.iter().map(|weight| weight.exponent).collect(),
    }
}

/// Checks that parameters are sorted and distinct.
fn params(field: &'static str, params: Vec<u32>) -> Result<Vec<ParamId>, WireError> {
    ascending(field, &params)?;
    Ok(params.into_iter().map(ParamId).collect())
}

const COUNT: &str = "from 0 to 1e100";
const FINITE: &str = "from -1e100 to 1e100";
const NON_NEGATIVE: &str = "that is finite and not negative";
const POSITIVE: &str = "that is finite and positive";

/// Whether sums of such numbers, one per shard, are finite.
fn finite(number: f64) -> bool {
    is_count(number.abs())
}

fn non_negative(number: f64) -> bool {
    number.is_finite() && number >= 0.0
}

fn positive(number: f64) -> bool {
    number.is_finite() && number > 0.0
}

fn strings_to_wire<'a>(strings: impl Iterator<Item = &'a [SymbolId]>) -> v1::Strings {
    ragged_to_wire(strings.map(|string| string.iter().map(|symbol| symbol.0)))
}

fn ragged_to_wire(strings: impl Iterator<Item = impl ExactSizeIterator<Item = u32>>) -> v1::Strings {
    let mut message = v1::Strings::default();
    for string in strings {
        message.lengths.push(string.len() as u32);
        message.symbols.extend(string);
    }
    message
}

fn ragged(field: &'static str, strings: Option<v1::Strings>) -> Result<Vec<Vec<u32>>, WireError> {
    let v1::Strings { lengths, symbols } = strings.ok_or(WireError::Missing { field })?;
    cut(field, lengths, &symbols)
}

/// Cuts `elements` into pieces of the given lengths.
fn cut<T: Clone>(field: &'static str, lengths: Vec<u32>, elements: &[T]) -> Result<Vec<Vec<T>>, WireError> {
    Ok(pieces(field, lengths, elements)?.map(<[T]>::to_vec).collect())
}

fn pieces<'a, T>(
    field: &'static str,
    lengths: Vec<u32>,
    elements: &'a [T],
) -> Result<impl Iterator<Item = &'a [T]>, WireError> {
    let expected = lengths.iter().map(|&length| u64::from(length)).sum();
    if elements.len() as u64 != expected {
        return Err(WireError::Length { field, found: elements.len() as u64, expected });
    }
    let mut rest = elements;
    Ok(lengths.into_iter().map(move |length| {
        let (piece, after) = rest.split_at(length as usize);
        rest = after;
        piece
    }))
}

/// Strings of symbols; none is empty.
fn symbol_strings(field: &'static str, strings: Option<v1::Strings>) -> Result<Strings, WireError> {
    let v1::Strings { lengths, symbols } = strings.ok_or(WireError::Missing { field })?;
    let symbols: Vec<SymbolId> = symbols.into_iter().map(SymbolId).collect();
    let empty = lengths.iter().position(|&length| length == 0);
    let strings = pieces(field, lengths, &symbols)?.collect();
    match empty {
        Some(at) => Err(WireError::Empty { field, at }),
        None => Ok(strings),
    }
}

/// Pairs of symbol and string, sorted and distinct.
fn labelled_strings(
    field: &'static str,
    symbols: Vec<u32>,
    strings: Option<v1::Strings>,
) -> Result<Vec<(SymbolId, Vec<SymbolId>)>, WireError> {
    let strings = symbol_strings(field, strings)?;
    same_length(field, strings.len(), symbols.len())?;
    let strings = strings.iter().map(<[SymbolId]>::to_vec);
    let labelled: Vec<_> = symbols.into_iter().map(SymbolId).zip(strings).collect();
    ascending(field, &labelled)?;
    Ok(labelled)
}

fn same_length(field: &'static str, found: usize, expected: usize) -> Result<(), WireError> {
    if found == expected {
        return Ok(());
    }
    Err(WireError::Length { field, found: found as u64, expected: expected as u64 })
}

fn in_range(
    field: &'static str,
    indexes: impl IntoIterator<Item = u32>,
    range: std::ops::Range<u64>,
) -> Result<(), WireError> {
    match indexes.into_iter().enumerate().find(|&(_, index)| !range.contains(&u64::from(index))) {
        None => Ok(()),
        Some((at, index)) => {
            let (found, start, end) = (i64::from(index), range.start, range.end);
            Err(WireError::Range { field, at, found, start, end })
        }
    }
}

fn numbers(
    field: &'static str,
    numbers: &[f64],
    expected: &'static str,
    valid: impl Fn(f64) -> bool,
) -> Result<(), WireError> {
    match numbers.iter().position(|&number| !valid(number)) {
        None => Ok(()),
        Some(at) => Err(WireError::Number { field, at, found: numbers[at], expected }),
    }
}

fn ascending<T: PartialOrd>(
    field: &'static str,
    elements: impl IntoIterator<Item = T>,
) -> Result<(), WireError> {
    let mut before = None;
    for (at, element) in elements.into_iter().enumerate() {
        if before.is_some_and(|before| before >= element) {
            return Err(WireError::Order { field, at });
        }
        before = Some(element);
    }
    Ok(())
}

fn analyses_to_wire(analyses: &[Analysis]) -> (v1::Strings, Vec<String>) {
    let ends = ragged_to_wire(analyses.iter().map(|analysis| analysis.ends.iter().copied()));
    (ends, analyses.iter().map(|analysis| analysis.tree.clone()).collect())
}

/// Analyses from two parallel fields, which errors name.
fn analyses_from_wire(
    [ends_field, trees_field]: [&'static str; 2],
    ends: Option<v1::Strings>,
    trees: Vec<String>,
) -> Result<Vec<Analysis>, WireError> {
    let ends = ends_from_wire(ends_field, ends)?;
    same_length(trees_field, trees.len(), ends.len())?;
    Ok(ends.into_iter().zip(trees).map(|(ends, tree)| Analysis { ends, tree }).collect())
}

/// End positions of segments, by tree.
fn ends_from_wire(field: &'static str, trees: Option<v1::Strings>) -> Result<Vec<Vec<u32>>, WireError> {
    let trees = ragged(field, trees)?;
    for ends in &trees {
        ascending(field, ends)?;
    }
    Ok(trees)
}
