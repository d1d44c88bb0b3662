//! What comes before the rounds: the strings of the sticks are chosen (Cohen, Blei & Smith 2010, §3.3), and every shard is indexed.
//!
//! ```text
//! candidates → strings → index ─┬─ a string has no derivation from the others → fewer strings ──┐
//!                               ├─ a sentence has none                        → strings added ──┤→ index
//!                               └─ else                                       → Prepared        │
//! ```
//!
//! In: a grammar, and [`Workers`], which hold the sentences and compute: this process ([`crate::fit`]), or a fleet. Out: the strings, and
//! by shard the parameters that it touches. The result does not depend on the workers.

pub mod candidates;
mod shuffle;

use std::collections::BTreeSet;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::grammar::lexicon::{Lexicon, StickStrings};
use crate::grammar::{Grammar, ParamId, SymbolId};
use crate::models::Model;
use crate::models::decode::{Decode, Decoder};
use crate::work::shard::{DEFAULT_SHARD_SYMBOLS, Shard};
use crate::work::task::{Answer, Index, Language, Lengths, Named, Work};
use candidates::StringChoice;

/// Those that hold the sentences, in shards, and compute.
pub trait Workers {
    /// Why there is no result.
    type Error: From<PrepareError>;
    /// The parameters of a shard, wherever they are kept.
    type Params;

    /// Does `work` on some shards. Passes each answer with the position of its shard among these, in order.
    fn compute(
        &self,
        language: &Language,
        on: ShardSet<'_>,
        work: Work,
        each: &mut dyn FnMut(usize, Answer) -> Result<(), Self::Error>,
    ) -> Result<(), Self::Error>;

    /// Keeps the parameters of a shard.
    fn keep(&self, params: Vec<ParamId>) -> Result<Self::Params, Self::Error>;

    /// Accepts that the grammar cannot derive these sentences, given by shard and position in it; there may be none. An error names the
    /// first one.
    fn accept(&self, unparsable: &[(usize, u32)]) -> Result<(), Self::Error>;

    /// A folder for files that exist while strings are counted.
    fn folder(&self) -> &Path;
}

/// Shards that work is done on.
#[derive(Clone, Copy, Debug)]
pub enum ShardSet<'a> {
    /// All shards of sentences.
    Sentences,
    /// Some of them, by number.
    SomeSentences(&'a [usize]),
    /// Shards of strings.
    Strings(&'a [Range<u32>]),
}

/// Why strings cannot be chosen.
#[derive(Debug, thiserror::Error)]
pub enum PrepareError {
    /// Counts of candidate strings cannot be written or read.
    #[error(
        "{folder}: cannot keep candidate strings; free space there, or choose another folder for results"
    )]
    Strings {
        /// The folder.
        folder: PathBuf,
        /// Cause.
        source: std::io::Error,
    },
    /// An answer names strings that are on no stick.
    #[error(
        "strings without a derivation that are not on the sticks: a worker computes wrongly; connect another worker"
    )]
    ForeignStrings,
    /// A sentence lacks a string of a nonterminal that is not adapted.
    #[error("internal error: a string of no stick; please report it")]
    NoStick,
}

/// The strings of the sticks, and what was done on the way to them.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct Chosen {
    /// The strings.
    pub lexicon: Lexicon,
    /// Strings left out because their own nonterminal cannot derive them from the others.
    pub underivable: usize,
    /// Strings added so that every sentence has a derivation.
    pub added: usize,
}

/// Strings, and the parameters of every shard.
pub struct Prepared<P> {
    /// The strings.
    pub chosen: Chosen,
    /// The grammar with the strings.
    pub language: Language,
    /// The parameters of every shard of sentences.
    pub sentences: Vec<P>,
    /// Shards of strings, with their parameters.
    pub strings: Vec<(Range<u32>, P)>,
}

/// Index of a shard: the parameters that it touches.
struct Indexed<P> {
    params: P,
    unparsable: Vec<u32>,
}

/// Chooses the strings, and indexes all shards.
pub fn choose<W: Workers>(
    workers: &W,
    grammar: &Named<Grammar>,
    choice: &StringChoice,
) -> Result<Prepared<W::Params>, W::Error> {
    let with = |lexicon| Language { grammar: grammar.clone(), lexicon: Named::new(lexicon) };
    let mut language = with(candidates::choose(workers, grammar, choice)?);
    let mut underivable = 0;
    let (mut strings, mut of_strings);
    loop {
        strings = string_shards(&language);
        of_strings = index(workers, &language, ShardSet::Strings(&strings))?;
        let gone = unparsable_strings(&strings, &of_strings);
        if gone.is_empty() {
            break;
        }
        underivable += gone.len();
        let fewer = with(without(&language, &gone));
        if fewer.n_params() >= language.n_params() {
            return Err(PrepareError::ForeignStrings.into());
        }
        language = fewer;
    }

    let mut of_sentences = index(workers, &language, ShardSet::Sentences)?;
    let missing = missing(workers, &language, &of_sentences)?;
    let added = missing.len();
    if added > 0 {
        let mut covered = language.lexicon.value.as_ref().clone();
        for (symbol, string) in missing {
            let stick = covered.sticks.iter_mut().find(|stick| stick.symbol == symbol);
            stick.ok_or(PrepareError::NoStick)?.strings.push(&string);
        }
        language = with(covered);
        strings = string_shards(&language);
        of_strings = index(workers, &language, ShardSet::Strings(&strings))?;
        of_sentences = index(workers, &language, ShardSet::Sentences)?;
    }
    workers.accept(&unparsable_items(&of_sentences))?;
    let chosen = Chosen { lexicon: language.lexicon.value.as_ref().clone(), underivable, added };
    Ok(prepared(chosen, language, of_sentences, strings, of_strings))
}

/// Indexes all shards, with strings that were chosen before.
pub fn with_chosen<W: Workers>(
    workers: &W,
    grammar: &Named<Grammar>,
    chosen: Chosen,
) -> Result<Prepared<W::Params>, W::Error> {
    let language = Language { grammar: grammar.clone(), lexicon: Named::new(chosen.lexicon.clone()) };
    let strings = string_shards(&language);
    let of_strings = index(workers, &language, ShardSet::Strings(&strings))?;
    let of_sentences = index(workers, &language, ShardSet::Sentences)?;
    Ok(prepared(chosen, language, of_sentences, strings, of_strings))
}

/// Indexes the sentences of a PCFG, whose strings are those of the corpus.
pub fn with_strings<W: Workers>(
    workers: &W,
    grammar: &Named<Grammar>,
    strings: &Lexicon,
) -> Result<Prepared<W::Params>, W::Error> {
    let language = Language { grammar: grammar.clone(), lexicon: Named::new(strings.clone()) };
    let of_sentences = index(workers, &language, ShardSet::Sentences)?;
    workers.accept(&unparsable_items(&of_sentences))?;
    let chosen = Chosen { lexicon: strings.clone(), ..Chosen::default() };
    Ok(prepared(chosen, language, of_sentences, Vec::new(), Vec::new()))
}

/// The grammar without strings, for chains, whose strings are those of their tables. Every sentence must have a derivation.
pub fn with_tables<W: Workers>(workers: &W, grammar: &Named<Grammar>) -> Result<Language, W::Error> {
    let lexicon = Named::new(candidates::no_strings(&grammar.value));
    let language = Language { grammar: grammar.clone(), lexicon };
    workers.accept(&without_forest(workers, &language, Work::Candidates(Lengths::CHAINS))?)?;
    Ok(language)
}

/// Sentences without a forest, by shard and position there; found by indexes, or by candidate strings.
pub fn without_forest<W: Workers>(
    workers: &W,
    language: &Language,
    work: Work,
) -> Result<Vec<(usize, u32)>, W::Error> {
    let mut found = Vec::new();
    workers.compute(language, ShardSet::Sentences, work, &mut |shard, answer| {
        let unparsable = match answer {
            Answer::Candidates(candidates) => candidates.unparsable,
            Answer::Index(index) => index.unparsable,
            _ => Vec::new(),
        };
        found.extend(unparsable.into_iter().map(|item| (shard, item)));
        Ok(())
    })?;
    Ok(found)
}

/// Trees of all sentences, for chains to start from.
#[derive(Default)]
pub struct MostProbable {
    /// By shard, the tree of every sentence, as often as the sentence occurs.
    pub by_shard: Vec<Arc<Vec<String>>>,
    /// Number of distinct sentences without a tree.
    pub without: usize,
}

/// The most probable trees of all sentences by a model of the grammar; `shard` returns the sentences of a shard.
pub fn most_probable_trees<W: Workers>(
    workers: &W,
    model: &Model,
    shard: impl Fn(usize) -> Result<Arc<Shard>, W::Error>,
) -> Result<MostProbable, W::Error> {
    let with = Decode {
        weights: model.decoding_weights(),
        segments: Vec::new(),
        decoders: vec![Decoder::Viterbi],
        trees: true,
        spans: false,
        open: true,
    };
    let (grammar, lexicon) = (Named::new(model.grammar.clone()), Named::new(model.lexicon.clone()));
    let mut found = MostProbable::default();
    let work = Work::Decode(Named::new(with));
    workers.compute(&Language { grammar, lexicon }, ShardSet::Sentences, work, &mut |at, answer| {
        let (Shard::Sentences(sentences), Answer::Decoded(decoded)) = (&*shard(at)?, answer) else {
            return Ok(());
        };
        let mut trees = Vec::new();
        for (sentence, decoded) in sentences.iter().zip(decoded) {
            found.without += usize::from(decoded.log_z == f64::NEG_INFINITY);
            let tree = decoded.trees.into_iter().next().unwrap_or_default();
            trees.extend(std::iter::repeat_n(tree, sentence.multiplicity as usize));
        }
        found.by_shard.push(Arc::new(trees));
        Ok(())
    })?;
    Ok(found)
}

fn prepared<P>(
    chosen: Chosen,
    language: Language,
    of_sentences: Vec<Indexed<P>>,
    strings: Vec<Range<u32>>,
    of_strings: Vec<Indexed<P>>,
) -> Prepared<P> {
    let sentences = of_sentences.into_iter().map(|index| index.params).collect();
    let strings = strings.into_iter().zip(of_strings.into_iter().map(|index| index.params)).collect();
    Prepared { chosen, language, sentences, strings }
}

fn index<W: Workers>(
    workers: &W,
    language: &Language,
    on: ShardSet<'_>,
) -> Result<Vec<Indexed<W::Params>>, W::Error> {
    let mut indexes = Vec::new();
    workers.compute(language, on, Work::Index, &mut |_, answer| {
        if let Answer::Index(Index { params, unparsable }) = answer {
            indexes.push(Indexed { params: workers.keep(params)?, unparsable });
        }
        Ok(())
    })?;
    Ok(indexes)
}

/// The strings that sentences without a derivation need, each once.
fn missing<W: Workers>(
    workers: &W,
    language: &Language,
    indexes: &[Indexed<W::Params>],
) -> Result<BTreeSet<(SymbolId, Vec<SymbolId>)>, W::Error> {
    let uncovered = indexes.iter().enumerate().filter(|(_, index)| !index.unparsable.is_empty());
    let uncovered: Vec<usize> = uncovered.map(|(shard, _)| shard).collect();
    let mut missing = BTreeSet::new();
    workers.compute(language, ShardSet::SomeSentences(&uncovered), Work::Cover, &mut |_, answer| {
        if let Answer::Missing(strings) = answer {
            missing.extend(strings);
        }
        Ok(())
    })?;
    Ok(missing)
}

/// Sentences without a forest, by shard and position there.
fn unparsable_items<P>(indexes: &[Indexed<P>]) -> Vec<(usize, u32)> {
    let of_shard = |(shard, index): (usize, &Indexed<P>)| -> Vec<(usize, u32)> {
        index.unparsable.iter().map(|&item| (shard, item)).collect()
    };
    indexes.iter().enumerate().flat_map(of_shard).collect()
}

/// Runs of stick strings, in parameter order: one ends with the string that brings it to the size of a shard.
fn string_shards(language: &Language) -> Vec<Range<u32>> {
    let lexicon = &language.lexicon.value;
    let mut shards = Vec::new();
    for (params, stick) in lexicon.space(&language.grammar.value).sticks().zip(&lexicon.sticks) {
        let (mut start, mut n_symbols) = (params.start, 0);
        for (param, string) in params.clone().zip(&stick.strings) {
            n_symbols += string.len();
            if n_symbols >= DEFAULT_SHARD_SYMBOLS as usize {
                shards.push(start..param + 1);
                (start, n_symbols) = (param + 1, 0);
            }
        }
        if start < params.end {
            shards.push(start..params.end);
        }
    }
    shards
}

/// Parameters of the strings that have no derivation, ascending.
fn unparsable_strings<P>(shards: &[Range<u32>], indexes: &[Indexed<P>]) -> Vec<u32> {
    let of_shard = |(strings, index): (&Range<u32>, &Indexed<P>)| -> Vec<u32> {
        index.unparsable.iter().map(|&item| strings.start.saturating_add(item)).collect()
    };
    shards.iter().zip(indexes).flat_map(of_shard).collect()
}

/// The strings but for some, given by their parameters.
fn without(language: &Language, gone: &[u32]) -> Lexicon {
    let lexicon = &language.lexicon.value;
    let space = lexicon.space(&language.grammar.value);
    let sticks = space.sticks().zip(&lexicon.sticks).map(|(params, stick)| {
        let kept = params.zip(&stick.strings);
        let kept = kept.filter(|(param, _)| gone.binary_search(param).is_err());
        StickStrings { symbol: stick.symbol, strings: kept.map(|(_, string)| string).collect() }
    });
    Lexicon { sticks: sticks.collect() }
}
