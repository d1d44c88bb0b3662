//! New text as a model file reads it: by its first model, by the vote of all its models, by the symbols around boundaries, or as annotated lines correct what these find.
//!
//! In: a model file and the sentences of a corpus. Out: of each sentence its segments and log-probability, perhaps its tree, and the probabilities of its boundaries. A
//! sentence is read by itself, so that a text can be read part by part, and an answer does not depend on the number of threads.
//!
//! The vote: the mean of the models' exact probabilities of segments, the segmentations of baselines and the probabilities by contexts, by weight, and the segmentation with the highest sum of these
//! means less the price of a segment, as [on the text of the job](crate::models::vote). A model without an analysis of a sentence has no vote in it; if none has one, as
//! of a sentence with a symbol that is new, baselines and contexts read it.

use std::ops::Range;

use rayon::prelude::*;
use rustc_hash::FxHashMap;

use super::{Model, Segmenter};
use crate::data::Sentence;
use crate::data::corpus::{Corpus, UnknownSymbol};
use crate::decoding::{CHUNK, Decoding};
use crate::grammar::SymbolId;
use crate::models::Trained;
use crate::models::crf::Evidence;
use crate::models::decode::n_best::{Distinct, Ranked};
use crate::models::decode::{Decoded, Decoder};
use crate::models::segments::{Probabilities, Segments};
use crate::work::engine::ComputeError;

/// How sentences are read.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Criterion {
    /// By the first model.
    First(Decoder),
    /// By the vote of all models.
    Vote,
    /// By the symbols around boundaries.
    Contexts,
    /// By what was learned from annotated sentences.
    Crf,
}

impl Criterion {
    /// The one by default for segmentations: what was learned from annotated sentences, else from the symbols around boundaries, else a vote, else the most
    /// probable tree.
    pub fn of(model: &Model) -> Criterion {
        if model.segmenter.crf.is_some() {
            Criterion::Crf
        } else if model.segmenter.is_by_contexts() {
            Criterion::Contexts
        } else if model.voters.is_empty() && !model.segmenter.votes() {
            Criterion::First(Decoder::Viterbi)
        } else {
            Criterion::Vote
        }
    }

    /// Whether it has an order of several analyses of a sentence.
    pub fn ranks(self) -> bool {
        !matches!(self, Criterion::First(Decoder::MbrTree | Decoder::MbrArcs))
    }
}

/// What is asked for beside segmentations.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Asked {
    /// Trees, of a criterion that gives them.
    pub trees: bool,
    /// Probabilities of boundaries.
    pub probabilities: bool,
    /// Only strings that were learned, as in training.
    pub closed: bool,
    /// Number of the best analyses, of a criterion that [ranks](Criterion::ranks) them, and what differs between these by [`Decoder::Viterbi`].
    pub n_best: Option<(usize, Distinct)>,
}

/// A sentence as it is read.
#[derive(Clone, PartialEq, Debug)]
pub struct Reading {
    /// Ends of its segments: ascending, the last one the sentence's length.
    pub ends: Vec<u32>,
    /// Its bracketed tree.
    pub tree: Option<String>,
    /// Log-probability; of several models that of their mixture in equal parts. `None` if no model has an analysis.
    pub log_probability: Option<f64>,
    /// Probabilities of boundaries and of the segments, if they are asked for.
    pub probabilities: Option<Probabilities>,
    /// The best analyses in order, this one first, if they are asked for: of [`Decoder::Viterbi`] as [`most_probable`](crate::models::decode::n_best::most_probable) finds
    /// them, of [`Decoder::Mbr`] and of a vote as [`Segments::n_best`] orders them, with their probability in the mean over the models that have an analysis, and of
    /// contexts and a field those of [`Contexts::n_best`](crate::models::crf::contexts::Contexts::n_best) and [`Crf::n_best`](crate::models::crf::Crf::n_best).
    pub n_best: Vec<Ranked>,
    /// What the models, or contexts, found before annotated sentences corrected it: shares of the boundaries, ends of the segments.
    pub found: Option<(Vec<f64>, Vec<u32>)>,
    /// Why no model has an analysis, if none has one.
    pub unread: Option<Unread>,
}

/// Why no model has an analysis of a sentence.
#[derive(Clone, PartialEq, Debug)]
pub enum Unread {
    /// No model has all its symbols; the first one that the first model lacks.
    UnknownSymbol(UnknownSymbol),
    /// No model derives it.
    NoAnalysis,
}

impl Unread {
    /// The unknown symbol, if there is one.
    pub fn symbol(&self) -> Option<&UnknownSymbol> {
        match self {
            Unread::UnknownSymbol(symbol) => Some(symbol),
            Unread::NoAnalysis => None,
        }
    }
}

/// The models of a file, prepared to read.
pub struct ModelReader {
    /// The first one alone, or all that vote.
    models: Vec<Decoding>,
    criterion: Criterion,
    asked: Asked,
    /// What the criterion reads by beside models.
    segmenter: Segmenter,
}

impl ModelReader {
    /// Prepares a model file of segments. `None` of a treebank, and if there is not what the criterion reads by: for [`Criterion::Crf`] annotated sentences,
    /// for [`Criterion::Contexts`] contexts that decide alone.
    pub fn new(saved: &Model, criterion: Criterion, asked: Asked) -> Option<ModelReader> {
        let Trained::Grammar(first) = &saved.model else { return None };
        let mut segmenter = saved.segmenter.clone();
        match criterion {
            Criterion::Crf if segmenter.crf.is_none() => return None,
            Criterion::Contexts if !segmenter.is_by_contexts() => return None,
            Criterion::Crf => {}
            Criterion::Contexts => segmenter.crf = None,
            Criterion::Vote => {
                segmenter.crf = None;
                segmenter.contexts = segmenter.contexts.filter(|_| segmenter.threshold == 0.0);
            }
            Criterion::First(_) => segmenter = Segmenter::default(),
        }
        // Unless contexts decide, the models say where segments are.
        let spans = !segmenter.is_by_contexts();
        let Asked { trees, probabilities, closed, n_best } = asked;
        let models = match criterion {
            Criterion::First(decoder) => {
                let spans = probabilities || decoder == Decoder::Mbr && n_best.is_some();
                vec![Decoding::of(first.clone(), vec![decoder], trees, spans, closed)]
            }
            Criterion::Crf | Criterion::Contexts | Criterion::Vote => {
                let all = [first].into_iter().chain(&saved.voters);
                all.map(|model| Decoding::of(model.clone(), Vec::new(), false, spans, closed)).collect()
            }
        };
        Some(ModelReader { models, criterion, asked, segmenter })
    }

    /// Whether it reads sentences of which no model has an analysis. The n best of a vote have probabilities by models, so there are none of these.
    pub fn reads_all(&self) -> bool {
        let is_ranked_by_models = self.asked.n_best.is_some() && self.criterion == Criterion::Vote;
        let Segmenter { contexts, baselines, .. } = &self.segmenter;
        !is_ranked_by_models && (contexts.is_some() || !baselines.is_empty())
    }

    /// Reads neighbouring sentences of a corpus, on the threads of the caller's pool.
    ///
    /// # Errors
    /// If a sentence has too many derivations.
    pub fn read(
        &self,
        corpus: &Corpus,
        sentences: Range<usize>,
    ) -> Result<Vec<Result<Reading, Unread>>, ComputeError> {
        let numbers = numbers(&self.segmenter.symbols, corpus);
        let starts: Vec<usize> = sentences.clone().step_by(CHUNK).collect();
        let chunk = |start: &usize| self.chunk(corpus, *start..sentences.end.min(start + CHUNK), &numbers);
        let chunks: Vec<_> = starts.par_iter().map(chunk).collect::<Result<_, _>>()?;
        Ok(chunks.into_iter().flatten().collect())
    }

    fn chunk(
        &self,
        corpus: &Corpus,
        sentences: Range<usize>,
        numbers: &[u32],
    ) -> Result<Vec<Result<Reading, Unread>>, ComputeError> {
        let mut unknown: Vec<Option<UnknownSymbol>> = Vec::new();
        let (mut by_model, mut items) = (Vec::with_capacity(self.models.len()), Vec::new());
        let mut is_known = vec![false; sentences.len()];
        for model in &self.models {
            let tokens: Vec<Result<Vec<SymbolId>, UnknownSymbol>> =
                corpus.each_tokens_in(sentences.clone(), model.grammar()).collect();
            is_known.iter_mut().zip(&tokens).for_each(|(known, tokens)| *known |= tokens.is_ok());
            let of_model = tokens.into_iter().map(|tokens| match tokens {
                Ok(tokens) => (Some(Sentence::new(tokens, 1)), None),
                Err(symbol) => (None, Some(symbol)),
            });
            let (of_model, symbols): (Vec<_>, Vec<_>) = of_model.unzip();
            if unknown.is_empty() {
                unknown = symbols;
            }
            let found = model.chunk(&of_model)?;
            if self.asked.n_best.is_some() {
                let is_found = found.iter().map(Option::is_some);
                items
                    .push(of_model.into_iter().zip(is_found).map(|(item, is)| item.filter(|_| is)).collect());
            }
            by_model.push(found.into_iter());
        }
        let mut next = |((at, symbol), is_known): ((usize, Option<UnknownSymbol>), bool)| {
            let found: Vec<Decoded> =
                by_model.iter_mut().filter_map(|found| found.next().flatten()).collect();
            let symbols: Vec<u32> =
                corpus.sentences[at].iter().map(|&symbol| numbers[symbol as usize]).collect();
            let unread = found.is_empty().then(|| {
                let unknown = symbol.filter(|_| !is_known).map(Unread::UnknownSymbol);
                unknown.unwrap_or(Unread::NoAnalysis)
            });
            if let Some(unread) = unread.clone().filter(|_| !self.reads_all()) {
                return Err(unread);
            }
            let mut reading = Reading { unread, ..self.reading(found, &symbols) };
            if let Some(crf) = &self.segmenter.crf {
                let shares = match reading.probabilities.take() {
                    Some(probabilities) => probabilities.boundaries,
                    None => Evidence::shares_of(&reading.ends),
                };
                let evidence = Evidence { symbols: &symbols, shares: &shares, ends: &reading.ends };
                let corrected = crf.read(&evidence);
                if let Some((n, _)) = self.asked.n_best {
                    reading.n_best = ranked(crf.n_best(&evidence, n));
                }
                let found = std::mem::replace(&mut reading.ends, corrected.ends);
                let (boundaries, segments) = (corrected.probabilities, corrected.segments);
                let is_asked = self.asked.probabilities;
                reading.found = is_asked.then_some((shares, found));
                reading.probabilities = is_asked.then_some(Probabilities { boundaries, segments });
            }
            Ok(reading)
        };
        let mut readings: Vec<_> = sentences.zip(unknown).zip(is_known).map(&mut next).collect();
        if let Some(n_best) = self.asked.n_best {
            self.rank(&mut readings, &items, n_best)?;
        }
        Ok(readings)
    }

    /// Adds the best analyses of sentences, or their probabilities. `items`: by model, the sentences of which it has an analysis.
    fn rank(
        &self,
        readings: &mut [Result<Reading, Unread>],
        items: &[Vec<Option<Sentence>>],
        (n, distinct): (usize, Distinct),
    ) -> Result<(), ComputeError> {
        match self.criterion {
            Criterion::First(Decoder::Viterbi) => {
                let ranked = self.models[0].most_probable(&items[0], n, distinct)?;
                for (reading, ranked) in readings.iter_mut().zip(ranked) {
                    reading.iter_mut().for_each(|reading| reading.n_best.clone_from(&ranked));
                }
            }
            Criterion::First(Decoder::Mbr) | Criterion::Vote => {
                let ends = |reading: &Result<Reading, Unread>| -> Vec<Vec<u32>> {
                    let ranked = reading.iter().flat_map(|reading| &reading.n_best);
                    ranked.map(|ranked| ranked.ends.clone()).collect()
                };
                let ends: Vec<Vec<Vec<u32>>> = readings.iter().map(ends).collect();
                for (model, items) in self.models.iter().zip(items) {
                    let asked: Vec<_> =
                        items.iter().map(Option::as_ref).zip(ends.iter().map(Vec::as_slice)).collect();
                    for (reading, shares) in readings.iter_mut().zip(model.probabilities(&asked)?) {
                        let ranked = reading.iter_mut().flat_map(|reading| &mut reading.n_best);
                        ranked.zip(shares).for_each(|(ranked, share)| ranked.probability += share);
                    }
                }
                for (at, reading) in readings.iter_mut().enumerate() {
                    let n_models = items.iter().filter(|items| items[at].is_some()).count();
                    let ranked = reading.iter_mut().flat_map(|reading| &mut reading.n_best);
                    ranked.for_each(|ranked| ranked.probability /= n_models as f64);
                }
            }
            Criterion::First(Decoder::MbrTree | Decoder::MbrArcs) | Criterion::Contexts | Criterion::Crf => {}
        }
        Ok(())
    }

    /// A sentence by the analyses that models have, or by contexts alone. `symbols`: numbers of those that these know.
    fn reading(&self, found: Vec<Decoded>, symbols: &[u32]) -> Reading {
        let n_symbols = symbols.len() as u32;
        let logs: Vec<f64> = found.iter().map(|decoded| decoded.log_z).collect();
        let log_probability = (!logs.is_empty()).then(|| mixture(&logs, self.models.len()));
        let mut found = found.into_iter();
        if let Criterion::First(_) = self.criterion {
            let Decoded { segmentations, trees, spans, .. } = found.next().expect("the caller has looked");
            let ends = segmentations.into_iter().next().unwrap_or_else(|| vec![n_symbols]);
            let segments = Segments::new(n_symbols, spans);
            let probabilities = self.asked.probabilities.then(|| segments.probabilities(&ends));
            let n_best = match self.criterion {
                Criterion::First(Decoder::Mbr) => self.ranked(&segments),
                _ => Vec::new(),
            };
            let tree = trees.into_iter().next();
            return Reading { ends, tree, log_probability, probabilities, n_best, found: None, unread: None };
        }
        let Segmenter { baselines, price, contexts, threshold, crf, .. } = &self.segmenter;
        let is_asked = self.asked.probabilities || crf.is_some();
        let read = |ends, probabilities, n_best| Reading {
            ends,
            tree: None,
            log_probability,
            probabilities,
            n_best,
            found: None,
            unread: None,
        };
        if let Some(contexts) = contexts.as_ref().filter(|_| *threshold > 0.0) {
            let of_contexts = contexts.read(symbols, *threshold);
            let probabilities = is_asked.then(|| of_contexts.posterior());
            let n_best = self.asked.n_best.map(|(n, _)| ranked(contexts.n_best(symbols, *threshold, n)));
            return read(of_contexts.ends, probabilities, n_best.unwrap_or_default());
        }
        // All models together have weight one.
        let mut weight = 1.0;
        let all: Vec<Segments> = found.map(|decoded| Segments::new(n_symbols, decoded.spans)).collect();
        let has_models = !all.is_empty();
        let mut voted = Segments::mean(&all).with_symbols();
        for (baseline, of_baseline) in baselines {
            voted.add(&Segments::certain(&baseline.segment(symbols)), *of_baseline);
            weight += of_baseline;
        }
        if let Some(contexts) = contexts {
            voted.add(&contexts.segments(symbols), weight);
            weight *= 2.0;
        }
        let voted = voted.over(if has_models { weight } else { weight - 1.0 });
        let ends = voted.best_at(*price);
        let probabilities = is_asked.then(|| voted.probabilities(&ends));
        let n_best = if self.criterion == Criterion::Vote { self.ranked(&voted) } else { Vec::new() };
        read(ends, probabilities, n_best)
    }

    /// The best segmentations in order, their probability yet to be added.
    fn ranked(&self, segments: &Segments) -> Vec<Ranked> {
        let all = self.asked.n_best.map(|(n, _)| segments.n_best(n, self.segmenter.price));
        all.into_iter().flatten().map(|ends| Ranked { probability: 0.0, ends, tree: None }).collect()
    }
}

/// Segmentations with their probabilities.
fn ranked(all: Vec<(f64, Vec<u32>)>) -> Vec<Ranked> {
    all.into_iter().map(|(probability, ends)| Ranked { probability, ends, tree: None }).collect()
}

/// The logarithm of the mean probability by `n` models, of which these have one above 0.
fn mixture(logs: &[f64], n: usize) -> f64 {
    let highest = logs.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    match logs {
        [log] if n == 1 => *log,
        _ => {
            let sum: f64 = logs.iter().map(|log| libm::exp(log - highest)).sum();
            highest + libm::log(sum / n as f64)
        }
    }
}

/// The number of each symbol of a corpus among `symbols`; one beyond them of a symbol that is not there.
fn numbers(symbols: &[String], corpus: &Corpus) -> Vec<u32> {
    let known: FxHashMap<&str, u32> = symbols.iter().map(String::as_str).zip(0..).collect();
    let number = |name: &String| known.get(name.as_str()).copied().unwrap_or(symbols.len() as u32);
    corpus.symbols.iter().map(number).collect()
}
