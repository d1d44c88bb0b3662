//! Decoding of sentences with a trained model, on the threads of the caller's pool.
//!
//! In: a model, and sentences as symbols. Out: segmentations or trees, a log-probability for each sentence. For commands and for programs that
//! hold a model in memory; training decodes its corpus on the fleet.

use std::sync::OnceLock;

use crate::data::{Sentence, TreeMarks};
use crate::forest::Prepared;
use crate::grammar::{Grammar, SymbolId};
use crate::models::Model;
use crate::models::decode::n_best::{self, Distinct, Ranked};
use crate::models::decode::{Decode, Decoded, Decoder};
use crate::work::engine::{ComputeError, Engine};
use crate::work::shard::Shard;
use crate::work::task::{Answer, Language, Named, Task, Work};
use rayon::prelude::*;

/// Number of sentences in a task.
pub const CHUNK: usize = 256;

/// A model prepared for decoding.
pub struct Decoding {
    engine: Engine,
    task: Task,
    /// The model for [`n_best`], once it is needed.
    prepared: OnceLock<Prepared>,
}

impl Decoding {
    /// Prepares a model. If `closed`, sentences are sequences of learned strings, as in training; otherwise adapted nonterminals may
    /// also generate new strings, at the cost of a new table.
    pub fn new(model: Model, decoder: Decoder, trees: bool, closed: bool) -> Decoding {
        Decoding::of(model, vec![decoder], trees, false, closed)
    }

    /// The same with any number of decoders; if `spans`, with the probabilities of segments.
    pub fn of(model: Model, decoders: Vec<Decoder>, trees: bool, spans: bool, closed: bool) -> Decoding {
        let (weights, open) = (model.decoding_weights(), !closed);
        let decode = Decode { weights, segments: model.segments, decoders, trees, spans, open };
        let task = Task {
            language: Some(Language {
                grammar: Named::new(model.grammar),
                lexicon: Named::new(model.lexicon),
            }),
            shard: Named::new(Shard::Sentences(Vec::new())),
            work: Work::Decode(Named::new(decode)),
            further: Vec::new(),
        };
        Decoding { engine: Engine::default(), task, prepared: OnceLock::new() }
    }

    /// The grammar, whose terminals sentences are made of.
    pub fn grammar(&self) -> &Grammar {
        &self.task.language.as_ref().expect("it was made with one").grammar.value
    }

    /// One answer per sentence, in order; `None` without an analysis.
    pub fn all(&self, sentences: &[Option<Vec<SymbolId>>]) -> Result<Vec<Option<Decoded>>, ComputeError> {
        let item = |tokens: &Option<Vec<SymbolId>>| Some(Sentence::new(tokens.clone()?, 1));
        self.all_marked(&sentences.iter().map(item).collect::<Vec<_>>())
    }

    /// [`Decoding::all`] of sentences of whose trees something may be known.
    pub fn all_marked(&self, sentences: &[Option<Sentence>]) -> Result<Vec<Option<Decoded>>, ComputeError> {
        let chunks: Vec<Vec<Option<Decoded>>> =
            sentences.par_chunks(CHUNK).map(|chunk| self.chunk(chunk)).collect::<Result<_, _>>()?;
        Ok(chunks.into_iter().flatten().collect())
    }

    /// Those of neighbouring sentences, on the caller's thread.
    pub fn chunk(&self, sentences: &[Option<Sentence>]) -> Result<Vec<Option<Decoded>>, ComputeError> {
        let shard = Named::new(Shard::Sentences(sentences.iter().flatten().cloned().collect()));
        let Answer::Decoded(decoded) = self.engine.run(&Task { shard, ..self.task.clone() })? else {
            unreachable!("the answer is to what was asked")
        };
        let mut decoded = decoded.into_iter();
        let answer = |sentence: &Option<Sentence>| sentence.as_ref().and_then(|_| decoded.next());
        let analysed = |decoded: &Decoded| decoded.log_z > f64::NEG_INFINITY;
        Ok(sentences.iter().map(answer).map(|decoded| decoded.filter(analysed)).collect())
    }

    /// The `n` most probable analyses of neighbouring sentences, on the caller's thread ([`n_best::most_probable`]).
    pub fn most_probable(
        &self,
        sentences: &[Option<Sentence>],
        n: usize,
        distinct: Distinct,
    ) -> Result<Vec<Vec<Ranked>>, ComputeError> {
        let (nothing, empty) = (TreeMarks::default(), Vec::new());
        let parts = sentences.iter().map(|sentence| match sentence {
            Some(sentence) => (&sentence.tokens, &sentence.marks),
            None => (&empty, &nothing),
        });
        let parts = parts.map(|(tokens, marks)| (&tokens[..], marks));
        Ok(n_best::most_probable(self.prepared(), self.decode(), parts, n, distinct)?)
    }

    /// The probabilities of segmentations of neighbouring sentences ([`n_best::probabilities`]), 0 without a sentence.
    pub fn probabilities(
        &self,
        sentences: &[(Option<&Sentence>, &[Vec<u32>])],
    ) -> Result<Vec<Vec<f64>>, ComputeError> {
        let known = sentences.iter().filter_map(|(sentence, of)| Some((&(*sentence)?.tokens[..], *of)));
        let mut found = n_best::probabilities(self.prepared(), self.decode(), known)?.into_iter();
        let answer = |(sentence, of): &(Option<&Sentence>, &[Vec<u32>])| {
            sentence.and_then(|_| found.next()).unwrap_or_else(|| vec![0.0; of.len()])
        };
        Ok(sentences.iter().map(answer).collect())
    }

    fn prepared(&self) -> &Prepared {
        let language = self.task.language.as_ref().expect("it was made with one");
        self.prepared
            .get_or_init(|| Prepared::new(language.grammar.value.clone(), language.lexicon.value.clone()))
    }

    fn decode(&self) -> &Decode {
        let Work::Decode(decode) = &self.task.work else { unreachable!("it was made to decode") };
        &decode.value
    }
}
