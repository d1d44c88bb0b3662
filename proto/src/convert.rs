//! The one conversion between the wire and the domain.
//!
//! In: messages of `v1`, from a peer that may be old, broken or hostile. Out: domain values of which every
//! size, index, count and number has been checked, or a [`WireError`] that names the field, what was found
//! and what was expected.
//!
//! Two kinds of checks: [`Wire::from_wire`] checks what a value can say about itself; the `*_fits` functions
//! check what it says about others (tokens against the grammar, an answer against its task).
//! Does not check what only inference can: whether sentences have derivations, or whether counts are right.

use std::sync::Arc;

use prost::Message;
use prost::bytes::Bytes;
use shared::grammar::{Adaptor, Grammar, Rule, SymbolId};
use shared::num::Wide;
use shared::shard::{Lexicon, ParamId, Sentence, Shard, StickStrings};
use shared::task::{
    Answer, Candidate, ContentHash, Decode, Decoded, Decoder, Expectation, Index, Named, Task, Work,
};

use crate::lease::{Attempt, BatchId, LeaseId, SessionId, TaskIndex};
use crate::v1;

/// Why a message is not a value.
#[derive(Clone, PartialEq, Debug, thiserror::Error)]
pub enum WireError {
    /// Not a message of the expected type.
    #[error("{message}: {source}")]
    Malformed {
        /// The type.
        message: &'static str,
        /// Why.
        source: prost::DecodeError,
    },
    /// A field that must be there is not.
    #[error("{field}: missing")]
    Missing {
        /// The field.
        field: &'static str,
    },
    /// A string, list or name that must not be empty is.
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
    /// An index or enumerator outside its range.
    #[error("{field}[{at}]: {found}, expected {start}..{end}")]
    Range {
        /// The field.
        field: &'static str,
        /// Position in it.
        at: usize,
        /// The index.
        found: i64,
        /// Smallest that is allowed.
        start: u64,
        /// Smallest beyond what is allowed.
        end: u64,
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
        /// The domain, in words.
        expected: &'static str,
    },
    /// Elements that must ascend do not.
    #[error("{field}[{at}]: not above the element before it, expected ascending order without repeats")]
    Order {
        /// The field.
        field: &'static str,
        /// Position in it.
        at: usize,
    },
    /// The content is not what its name says.
    #[error("{field}: the content does not have the declared hash")]
    Hash {
        /// The field.
        field: &'static str,
    },
    /// An answer of another kind than the task asks for.
    #[error("answer: {found}, expected {expected}")]
    Kind {
        /// Kind of the answer.
        found: &'static str,
        /// Kind the task asks for.
        expected: &'static str,
    },
}

/// A domain value with a form on the wire.
pub trait Wire: Sized {
    /// Its form on the wire.
    type Message: Message + Default;
    /// Name of the form, for errors.
    const NAME: &'static str;

    /// To the wire.
    fn to_wire(&self) -> Self::Message;

    /// From the wire, checked.
    fn from_wire(message: Self::Message) -> Result<Self, WireError>;

    /// As a payload.
    fn to_bytes(&self) -> Bytes {
        self.to_wire().encode_to_vec().into()
    }

    /// From a payload, checked.
    fn from_bytes(bytes: Bytes) -> Result<Self, WireError> {
        let message = Self::Message::decode(bytes)
            .map_err(|source| WireError::Malformed { message: Self::NAME, source })?;
        Self::from_wire(message)
    }
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
        if let Some(at) = symbols.iter().position(String::is_empty) {
            return Err(WireError::Empty { field: "grammar.symbols", at });
        }
        let n_symbols = symbols.len() as u64;
        in_range("grammar.n_nonterminals", [n_nonterminals], 1..n_symbols + 1)?;
        in_range("grammar.parents", parents.iter().copied(), 0..u64::from(n_nonterminals))?;
        let children = symbol_strings("grammar.children", children)?;
        in_range("grammar.children", children.iter().flatten().map(|symbol| symbol.0), 0..n_symbols)?;
        same_length("grammar.children", children.len(), parents.len())?;
        same_length("grammar.alphas", alphas.len(), parents.len())?;
        numbers("grammar.alphas", &alphas, "finite and positive", |alpha| alpha.is_finite() && alpha > 0.0)?;
        same_length("grammar.adaptors", adaptors.len(), n_nonterminals as usize)?;
        let rules = parents.into_iter().zip(children).zip(alphas);
        Ok(Grammar {
            symbols,
            n_nonterminals,
            rules: rules
                .map(|((parent, children), alpha)| Rule { parent: SymbolId(parent), children, alpha })
                .collect(),
            adaptors: adaptors
                .into_iter()
                .enumerate()
                .map(|(at, adaptor)| adaptor_from_wire(at, adaptor))
                .collect::<Result<_, _>>()?,
        })
    }
}

fn adaptor_from_wire(at: usize, adaptor: v1::Adaptor) -> Result<Option<Adaptor>, WireError> {
    let v1::Adaptor { adapted, discount, concentration } = adaptor;
    if !adapted {
        return Ok(None);
    }
    if let Some(found) = discount.filter(|discount| !(0.0..1.0).contains(discount)) {
        return Err(WireError::Number { field: "adaptor.discount", at, found, expected: "in [0, 1)" });
    }
    if let Some(found) = concentration.filter(|a| !(a.is_finite() && *a > 0.0)) {
        return Err(WireError::Number {
            field: "adaptor.concentration",
            at,
            found,
            expected: "finite and positive",
        });
    }
    Ok(Some(Adaptor { discount, concentration }))
}

impl Wire for Lexicon {
    type Message = v1::Lexicon;
    const NAME: &'static str = "lexicon";

    fn to_wire(&self) -> v1::Lexicon {
        let stick = |stick: &StickStrings| v1::Stick {
            symbol: stick.symbol.0,
            strings: Some(strings_to_wire(stick.strings.iter().map(|string| &string[..]))),
        };
        v1::Lexicon { sticks: self.sticks.iter().map(stick).collect() }
    }

    fn from_wire(message: v1::Lexicon) -> Result<Lexicon, WireError> {
        ascending("lexicon.sticks", message.sticks.iter().map(|stick| stick.symbol))?;
        let stick = |stick: v1::Stick| {
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
        };
        v1::Shard { items: Some(items) }
    }

    fn from_wire(message: v1::Shard) -> Result<Shard, WireError> {
        match message.items.ok_or(WireError::Missing { field: "shard.items" })? {
            v1::shard::Items::Sentences(v1::Sentences { tokens, multiplicities }) => {
                let tokens = symbol_strings("shard.tokens", tokens)?;
                same_length("shard.multiplicities", multiplicities.len(), tokens.len())?;
                in_range("shard.multiplicities", multiplicities.iter().copied(), 1..u64::from(u32::MAX) + 1)?;
                let sentences = tokens.into_iter().zip(multiplicities);
                let sentence = |(tokens, multiplicity)| Sentence { tokens, multiplicity };
                Ok(Shard::Sentences(sentences.map(sentence).collect()))
            }
            v1::shard::Items::Strings(v1::ParamRange { start, end }) => {
                in_range("shard.strings", [start], 0..u64::from(end) + 1)?;
                Ok(Shard::Strings(start..end))
            }
        }
    }
}

impl Wire for Vec<Wide> {
    type Message = v1::Weights;
    const NAME: &'static str = "weights";

    fn to_wire(&self) -> v1::Weights {
        v1::Weights {
            mantissas: self.iter().map(|weight| weight.mantissa).collect(),
            exponents: self.iter().map(|weight| weight.exponent).collect(),
        }
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
        match weights.iter().position(|weight| weight.mantissa == 0.0 && weight.exponent != 0) {
            Some(at) => {
                let found = i64::from(weights[at].exponent);
                Err(WireError::Range { field: "weights.exponents", at, found, start: 0, end: 1 })
            }
            None => Ok(weights),
        }
    }
}

impl Wire for Decode {
    type Message = v1::Decode;
    const NAME: &'static str = "decode";

    fn to_wire(&self) -> v1::Decode {
        let decoder = |decoder: &Decoder| match decoder {
            Decoder::Viterbi => v1::decode::Decoder::Viterbi as i32,
            Decoder::Mbr => v1::decode::Decoder::Mbr as i32,
            Decoder::MbrTree => v1::decode::Decoder::MbrTree as i32,
        };
        v1::Decode {
            weights: Some(self.weights.to_wire()),
            segments: self.segments.iter().map(|symbol| symbol.0).collect(),
            decoders: self.decoders.iter().map(decoder).collect(),
            trees: self.trees,
        }
    }

    fn from_wire(message: v1::Decode) -> Result<Decode, WireError> {
        let weights = message.weights.ok_or(WireError::Missing { field: "decode.weights" })?;
        let decoder = |(at, &found): (usize, &i32)| match v1::decode::Decoder::try_from(found) {
            Ok(v1::decode::Decoder::Viterbi) => Ok(Decoder::Viterbi),
            Ok(v1::decode::Decoder::Mbr) => Ok(Decoder::Mbr),
            Ok(v1::decode::Decoder::MbrTree) => Ok(Decoder::MbrTree),
            Ok(v1::decode::Decoder::Unspecified) | Err(_) => {
                let found = i64::from(found);
                Err(WireError::Range { field: "decode.decoders", at, found, start: 1, end: 4 })
            }
        };
        Ok(Decode {
            weights: Vec::from_wire(weights)?,
            segments: message.segments.into_iter().map(SymbolId).collect(),
            decoders: message.decoders.iter().enumerate().map(decoder).collect::<Result<_, _>>()?,
            trees: message.trees,
        })
    }
}

impl Wire for Answer {
    type Message = v1::Answer;
    const NAME: &'static str = "answer";

    fn to_wire(&self) -> v1::Answer {
        let answer = match self {
            Answer::Candidates(candidates) => v1::answer::Answer::Candidates(v1::Candidates {
                symbols: candidates.iter().map(|candidate| candidate.symbol.0).collect(),
                strings: Some(strings_to_wire(candidates.iter().map(|candidate| &candidate.string[..]))),
                expected: candidates.iter().map(|candidate| candidate.expected).collect(),
            }),
            Answer::Missing(missing) => v1::answer::Answer::Missing(v1::Missing {
                symbols: missing.iter().map(|(symbol, _)| symbol.0).collect(),
                strings: Some(strings_to_wire(missing.iter().map(|(_, string)| &string[..]))),
            }),
            Answer::Index(index) => v1::answer::Answer::Index(v1::Index {
                params: index.params.iter().map(|param| param.0).collect(),
                unparsable: index.unparsable.clone(),
            }),
            Answer::Expectation(expectation) => v1::answer::Answer::Expectation(v1::Expectation {
                counts: expectation.counts.clone(),
                losses: expectation.losses.clone(),
                log_z: expectation.log_z,
                log_z_items: expectation.log_z_items.clone(),
                missing: expectation.missing.iter().map(|param| param.0).collect(),
            }),
            Answer::Decoded(sentences) => v1::answer::Answer::Decoded(v1::DecodedSentences {
                sentences: sentences.iter().map(decoded_to_wire).collect(),
            }),
        };
        v1::Answer { answer: Some(answer) }
    }

    fn from_wire(message: v1::Answer) -> Result<Answer, WireError> {
        match message.answer.ok_or(WireError::Missing { field: "answer" })? {
            v1::answer::Answer::Candidates(v1::Candidates { symbols, strings, expected }) => {
                let labelled = labelled_strings("candidates", symbols, strings)?;
                same_length("candidates.expected", expected.len(), labelled.len())?;
                numbers("candidates.expected", &expected, NON_NEGATIVE, non_negative)?;
                let candidates = labelled.into_iter().zip(expected);
                let candidate = |((symbol, string), expected)| Candidate { symbol, string, expected };
                Ok(Answer::Candidates(candidates.map(candidate).collect()))
            }
            v1::answer::Answer::Missing(v1::Missing { symbols, strings }) => {
                Ok(Answer::Missing(labelled_strings("missing", symbols, strings)?))
            }
            v1::answer::Answer::Index(v1::Index { params, unparsable }) => {
                ascending("index.params", &params)?;
                ascending("index.unparsable", &unparsable)?;
                Ok(Answer::Index(Index { params: params.into_iter().map(ParamId).collect(), unparsable }))
            }
            v1::answer::Answer::Expectation(message) => {
                let v1::Expectation { counts, losses, log_z, log_z_items, missing } = message;
                numbers("expectation.counts", &counts, NON_NEGATIVE, non_negative)?;
                numbers("expectation.losses", &losses, "that is not negative", |loss| loss >= 0.0)?;
                if !losses.is_empty() {
                    same_length("expectation.losses", losses.len(), counts.len())?;
                }
                numbers("expectation.log_z", &[log_z], LOGARITHM, logarithm)?;
                numbers("expectation.log_z_items", &log_z_items, LOGARITHM, logarithm)?;
                ascending("expectation.missing", &missing)?;
                let missing = missing.into_iter().map(ParamId).collect();
                Ok(Answer::Expectation(Expectation { counts, losses, log_z, log_z_items, missing }))
            }
            v1::answer::Answer::Decoded(v1::DecodedSentences { sentences }) => {
                Ok(Answer::Decoded(sentences.into_iter().map(decoded_from_wire).collect::<Result<_, _>>()?))
            }
        }
    }
}

fn decoded_to_wire(decoded: &Decoded) -> v1::DecodedSentence {
    let lengths = decoded.segmentations.iter().map(|ends| ends.len() as u32).collect();
    v1::DecodedSentence {
        log_z: decoded.log_z,
        segmentations: Some(v1::Strings { lengths, symbols: decoded.segmentations.concat() }),
        trees: decoded.trees.clone(),
    }
}

fn decoded_from_wire(message: v1::DecodedSentence) -> Result<Decoded, WireError> {
    numbers("decoded.log_z", &[message.log_z], LOGARITHM, logarithm)?;
    let segmentations = ragged("decoded.segmentations", message.segmentations)?;
    for ends in &segmentations {
        ascending("decoded.segmentations", ends)?;
    }
    Ok(Decoded { log_z: message.log_z, segmentations, trees: message.trees })
}

/// A value that is sent once and cached by its hash.
#[derive(Clone, Debug)]
pub enum Blob {
    /// A grammar.
    Grammar(Named<Grammar>),
    /// Stick strings.
    Lexicon(Named<Lexicon>),
    /// Items.
    Shard(Named<Shard>),
    /// What to decode with.
    Decode(Named<Decode>),
}

impl Blob {
    /// The blobs that `task` refers to.
    pub fn of_task(task: &Task) -> Vec<Blob> {
        let mut blobs = vec![
            Blob::Grammar(task.grammar.clone()),
            Blob::Lexicon(task.lexicon.clone()),
            Blob::Shard(task.shard.clone()),
        ];
        if let Work::Decode(decode) = &task.work {
            blobs.push(Blob::Decode(decode.clone()));
        }
        blobs
    }

    /// Hash of the content.
    pub fn hash(&self) -> ContentHash {
        match self {
            Blob::Grammar(named) => named.hash,
            Blob::Lexicon(named) => named.hash,
            Blob::Shard(named) => named.hash,
            Blob::Decode(named) => named.hash,
        }
    }

    /// Kind, for the head.
    pub fn kind(&self) -> v1::blob_head::Kind {
        match self {
            Blob::Grammar(_) => v1::blob_head::Kind::Grammar,
            Blob::Lexicon(_) => v1::blob_head::Kind::Lexicon,
            Blob::Shard(_) => v1::blob_head::Kind::Shard,
            Blob::Decode(_) => v1::blob_head::Kind::Decode,
        }
    }

    /// The payload.
    pub fn to_bytes(&self) -> Bytes {
        match self {
            Blob::Grammar(named) => named.value.to_bytes(),
            Blob::Lexicon(named) => named.value.to_bytes(),
            Blob::Shard(named) => named.value.to_bytes(),
            Blob::Decode(named) => named.value.to_bytes(),
        }
    }

    /// From kind and hash of the head, and the payload; checked to have the hash.
    pub fn from_bytes(kind: i32, hash: ContentHash, payload: Bytes) -> Result<Blob, WireError> {
        let blob = match v1::blob_head::Kind::try_from(kind) {
            Ok(v1::blob_head::Kind::Grammar) => Blob::Grammar(Named::new(Grammar::from_bytes(payload)?)),
            Ok(v1::blob_head::Kind::Lexicon) => Blob::Lexicon(Named::new(Lexicon::from_bytes(payload)?)),
            Ok(v1::blob_head::Kind::Shard) => Blob::Shard(Named::new(Shard::from_bytes(payload)?)),
            Ok(v1::blob_head::Kind::Decode) => Blob::Decode(Named::new(Decode::from_bytes(payload)?)),
            Ok(v1::blob_head::Kind::Unspecified) | Err(_) => {
                let found = i64::from(kind);
                return Err(WireError::Range { field: "blob.kind", at: 0, found, start: 1, end: 5 });
            }
        };
        if blob.hash() != hash {
            return Err(WireError::Hash { field: "blob.hash" });
        }
        Ok(blob)
    }
}

/// Head of the lease of `task`, and its payload.
pub fn lease_to_wire(id: LeaseId, task: &Task) -> (v1::LeaseHead, Bytes) {
    let mut payload = Bytes::new();
    let mut head = v1::LeaseHead {
        id: Some(lease_id_to_wire(id)),
        grammar: hash_to_wire(task.grammar.hash),
        lexicon: hash_to_wire(task.lexicon.hash),
        shard: hash_to_wire(task.shard.hash),
        ..v1::LeaseHead::default()
    };
    head.work = match &task.work {
        Work::Candidates => v1::lease_head::Work::Candidates,
        Work::Cover => v1::lease_head::Work::Cover,
        Work::Index => v1::lease_head::Work::Index,
        Work::Expect { weights, losses } => {
            payload = weights.to_bytes();
            head.losses = *losses;
            v1::lease_head::Work::Expect
        }
        Work::Decode(decode) => {
            head.decode = hash_to_wire(decode.hash);
            v1::lease_head::Work::Decode
        }
    } as i32;
    head.extent = Some(crate::payload::extent(&payload));
    (head, payload)
}

/// The work that a lease asks for; `decode` looks up what the head names.
pub fn work_from_wire(
    head: &v1::LeaseHead,
    payload: Bytes,
    decode: impl FnOnce(ContentHash) -> Result<Named<Decode>, WireError>,
) -> Result<Work, WireError> {
    match v1::lease_head::Work::try_from(head.work) {
        Ok(v1::lease_head::Work::Candidates) => Ok(Work::Candidates),
        Ok(v1::lease_head::Work::Cover) => Ok(Work::Cover),
        Ok(v1::lease_head::Work::Index) => Ok(Work::Index),
        Ok(v1::lease_head::Work::Expect) => {
            Ok(Work::Expect { weights: Vec::from_bytes(payload)?, losses: head.losses })
        }
        Ok(v1::lease_head::Work::Decode) => {
            Ok(Work::Decode(decode(hash_from_wire("lease.decode", &head.decode)?)?))
        }
        Ok(v1::lease_head::Work::Unspecified) | Err(_) => {
            let found = i64::from(head.work);
            Err(WireError::Range { field: "lease.work", at: 0, found, start: 1, end: 6 })
        }
    }
}

/// A lease's name to the wire.
pub fn lease_id_to_wire(id: LeaseId) -> v1::LeaseId {
    v1::LeaseId { batch: id.batch.0, task: id.task.0, attempt: id.attempt.0 }
}

/// A lease's name from the wire; whether there is such a lease is for the receiver to say.
pub fn lease_id_from_wire(id: Option<v1::LeaseId>) -> Result<LeaseId, WireError> {
    let v1::LeaseId { batch, task, attempt } = id.ok_or(WireError::Missing { field: "lease.id" })?;
    Ok(LeaseId { batch: BatchId(batch), task: TaskIndex(task), attempt: Attempt(attempt) })
}

/// A content hash to the wire.
pub fn hash_to_wire(hash: ContentHash) -> Bytes {
    Bytes::copy_from_slice(&hash.0)
}

/// A content hash from the wire.
pub fn hash_from_wire(field: &'static str, bytes: &[u8]) -> Result<ContentHash, WireError> {
    let expected = size_of::<ContentHash>() as u64;
    let length = |_| WireError::Length { field, found: bytes.len() as u64, expected };
    Ok(ContentHash(bytes.try_into().map_err(length)?))
}

/// A session's name from the wire.
pub fn session_from_wire(bytes: &[u8]) -> Result<SessionId, WireError> {
    let expected = size_of::<SessionId>() as u64;
    let length = |_| WireError::Length { field: "welcome.session", found: bytes.len() as u64, expected };
    Ok(SessionId(bytes.try_into().map_err(length)?))
}

/// Whether the sticks belong to adapted nonterminals of `grammar` and their strings are of its terminals.
pub fn lexicon_fits(grammar: &Grammar, lexicon: &Lexicon) -> Result<(), WireError> {
    for (at, stick) in lexicon.sticks.iter().enumerate() {
        adapted("lexicon.sticks", at, grammar, stick.symbol)?;
        terminals("lexicon.strings", grammar, stick.strings.iter().flatten())?;
    }
    Ok(())
}

/// Whether the items are made of terminals of `grammar`, or are strings of `lexicon`.
pub fn shard_fits(grammar: &Grammar, lexicon: &Lexicon, shard: &Shard) -> Result<(), WireError> {
    match shard {
        Shard::Sentences(sentences) => {
            terminals("shard.tokens", grammar, sentences.iter().flat_map(|sentence| &sentence.tokens))
        }
        Shard::Strings(params) if params.is_empty() => Ok(()),
        Shard::Strings(params) => {
            let strings = 1 + grammar.rules.len() as u64..lexicon.n_params(grammar) as u64;
            in_range("shard.strings", [params.start, params.end - 1], strings)
        }
    }
}

/// Whether there is a weight for each parameter, and the segments are nonterminals of `grammar`.
pub fn decode_fits(grammar: &Grammar, lexicon: &Lexicon, decode: &Decode) -> Result<(), WireError> {
    same_length("decode.weights", decode.weights.len(), lexicon.n_params(grammar))?;
    let segments = decode.segments.iter().map(|symbol| symbol.0);
    in_range("decode.segments", segments, 0..u64::from(grammar.n_nonterminals))
}

/// Whether `answer` can be one to `task`: its kind, its lengths, its indexes.
pub fn answer_fits(task: &Task, answer: &Answer) -> Result<(), WireError> {
    let (grammar, lexicon): (&Arc<Grammar>, &Arc<Lexicon>) = (&task.grammar.value, &task.lexicon.value);
    let (n_items, n_params) = (task.shard.value.len(), lexicon.n_params(grammar) as u64);
    match (&task.work, answer) {
        (Work::Candidates, Answer::Candidates(candidates)) => {
            for (at, candidate) in candidates.iter().enumerate() {
                adapted("candidates.symbols", at, grammar, candidate.symbol)?;
                terminals("candidates.strings", grammar, &candidate.string)?;
            }
            Ok(())
        }
        (Work::Cover, Answer::Missing(missing)) => {
            for (at, (symbol, string)) in missing.iter().enumerate() {
                adapted("missing.symbols", at, grammar, *symbol)?;
                terminals("missing.strings", grammar, string)?;
            }
            Ok(())
        }
        (Work::Index, Answer::Index(index)) => {
            in_range("index.params", index.params.iter().map(|param| param.0), 0..n_params)?;
            in_range("index.unparsable", index.unparsable.iter().copied(), 0..n_items as u64)
        }
        (Work::Expect { weights, losses }, Answer::Expectation(expectation)) => {
            in_range("expectation.missing", expectation.missing.iter().map(|param| param.0), 0..n_params)?;
            if !expectation.missing.is_empty() {
                return Ok(()); // the counts mean nothing
            }
            same_length("expectation.counts", expectation.counts.len(), weights.len())?;
            let n_losses = if *losses { weights.len() } else { 0 };
            same_length("expectation.losses", expectation.losses.len(), n_losses)?;
            let n_log_z = if matches!(*task.shard.value, Shard::Strings(_)) { n_items } else { 0 };
            same_length("expectation.log_z_items", expectation.log_z_items.len(), n_log_z)
        }
        (Work::Decode(_), Answer::Decoded(decoded)) => {
            same_length("decoded.sentences", decoded.len(), n_items)?;
            let Shard::Sentences(sentences) = &*task.shard.value else { return Ok(()) };
            for (sentence, decoded) in sentences.iter().zip(decoded) {
                let ends = decoded.segmentations.iter().filter_map(|ends| ends.last().copied());
                let length = sentence.tokens.len() as u64;
                in_range("decoded.segmentations", ends, length..length + 1)?;
            }
            Ok(())
        }
        (work, answer) => Err(WireError::Kind { found: answer_kind(answer), expected: work_kind(work) }),
    }
}

fn answer_kind(answer: &Answer) -> &'static str {
    match answer {
        Answer::Candidates(_) => "candidates",
        Answer::Missing(_) => "missing strings",
        Answer::Index(_) => "an index",
        Answer::Expectation(_) => "an expectation",
        Answer::Decoded(_) => "decoded sentences",
    }
}

fn work_kind(work: &Work) -> &'static str {
    match work {
        Work::Candidates => "candidates",
        Work::Cover => "missing strings",
        Work::Index => "an index",
        Work::Expect { .. } => "an expectation",
        Work::Decode(_) => "decoded sentences",
    }
}

const NON_NEGATIVE: &str = "that is finite and not negative";
const LOGARITHM: &str = "below +inf";

fn non_negative(number: f64) -> bool {
    number.is_finite() && number >= 0.0
}

fn logarithm(number: f64) -> bool {
    number < f64::INFINITY
}

fn strings_to_wire<'a>(strings: impl Iterator<Item = &'a [SymbolId]>) -> v1::Strings {
    let mut message = v1::Strings::default();
    for string in strings {
        message.lengths.push(string.len() as u32);
        message.symbols.extend(string.iter().map(|symbol| symbol.0));
    }
    message
}

fn ragged(field: &'static str, strings: Option<v1::Strings>) -> Result<Vec<Vec<u32>>, WireError> {
    let v1::Strings { lengths, symbols } = strings.ok_or(WireError::Missing { field })?;
    let expected = lengths.iter().map(|&length| u64::from(length)).sum();
    if symbols.len() as u64 != expected {
        return Err(WireError::Length { field, found: symbols.len() as u64, expected });
    }
    let mut rest = &symbols[..];
    let string = |length| {
        let (string, after) = rest.split_at(length as usize);
        rest = after;
        string.to_vec()
    };
    Ok(lengths.into_iter().map(string).collect())
}

/// Strings of symbols, none of them empty.
fn symbol_strings(
    field: &'static str,
    strings: Option<v1::Strings>,
) -> Result<Vec<Vec<SymbolId>>, WireError> {
    let strings = ragged(field, strings)?;
    if let Some(at) = strings.iter().position(Vec::is_empty) {
        return Err(WireError::Empty { field, at });
    }
    Ok(strings.into_iter().map(|string| string.into_iter().map(SymbolId).collect()).collect())
}

/// Pairs of symbol and string, sorted, each once.
fn labelled_strings(
    field: &'static str,
    symbols: Vec<u32>,
    strings: Option<v1::Strings>,
) -> Result<Vec<(SymbolId, Vec<SymbolId>)>, WireError> {
    let strings = symbol_strings(field, strings)?;
    same_length(field, strings.len(), symbols.len())?;
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

fn adapted(field: &'static str, at: usize, grammar: &Grammar, symbol: SymbolId) -> Result<(), WireError> {
    if grammar.is_adapted(symbol) {
        return Ok(());
    }
    let (found, end) = (i64::from(symbol.0), u64::from(grammar.n_nonterminals));
    Err(WireError::Range { field, at, found, start: 0, end })
}

fn terminals<'a>(
    field: &'static str,
    grammar: &Grammar,
    symbols: impl IntoIterator<Item = &'a SymbolId>,
) -> Result<(), WireError> {
    let terminals = u64::from(grammar.n_nonterminals)..grammar.symbols.len() as u64;
    in_range(field, symbols.into_iter().map(|symbol| symbol.0), terminals)
}
