//! A sentence of the corpus as every decoding reads it.

use grammaton::data::corpus::{Analyses, Corpus};
use grammaton::data::eval::segmentation::closest;
use grammaton::models::crf::Evidence;
use grammaton::models::decode::{Decoded, Decoder};

use super::posterior::Probabilities;
use crate::outcome::{Sample, percents};
use crate::row::Status;

/// Sentences whose texts one thread makes together.
pub const TOGETHER: usize = 256;

/// The tree of a sentence without an analysis.
const NO_TREE: &str = "()";

/// A sentence as one decoding reads it.
pub struct Reading<'t> {
    /// End positions of its segments; one segment if it was not analysed.
    pub ends: Vec<u32>,
    /// Its bracketed tree, from decodings that give trees.
    pub tree: Option<&'t str>,
    /// Natural logarithm of its inside value, where it is known.
    pub log_probability: Option<f64>,
    /// Whether it has an analysis.
    pub analysed: bool,
}

/// A sentence as every decoding reads it.
pub struct Sentence<'t> {
    /// The corpus that it is of.
    pub corpus: &'t Corpus,
    /// Its position in there.
    pub at: usize,
    /// Its position among all that are trained on; `None` if it is not.
    pub place: Option<usize>,
    /// By each decoding.
    pub readings: Vec<Reading<'t>>,
    /// Position of the recommended one.
    pub best: usize,
    /// Probabilities of its boundaries, and of the segments of the recommended reading, if they are known.
    pub probabilities: Option<Probabilities>,
    /// What was found before something was learned from annotated sentences.
    pub evidence: Option<Evidence<'t>>,
}

impl<'t> Reading<'t> {
    /// A segmentation without a tree.
    pub fn of(ends: Vec<u32>) -> Reading<'t> {
        Reading { ends, tree: None, log_probability: None, analysed: true }
    }

    /// A sentence of `n_symbols` without an analysis, by a decoding with trees or without.
    pub fn none(n_symbols: u32, has_trees: bool) -> Reading<'t> {
        Reading { tree: has_trees.then_some(NO_TREE), analysed: false, ..Reading::of(vec![n_symbols]) }
    }

    /// A sentence as each decoder reads it.
    pub fn by(decoders: &[Decoder], decoded: &'t Decoded) -> Vec<Reading<'t>> {
        let analysed = decoded.log_z > f64::NEG_INFINITY;
        let mut trees = decoded.trees.iter().map(String::as_str);
        let reading = |(decoder, ends): (&Decoder, &Vec<u32>)| Reading {
            ends: ends.clone(),
            tree: decoder
                .gives_trees()
                .then(|| trees.next())
                .flatten()
                .map(|tree| if analysed { tree } else { NO_TREE }),
            log_probability: analysed.then_some(decoded.log_z),
            analysed,
        };
        decoders.iter().zip(&decoded.segmentations).map(reading).collect()
    }
}

impl Sentence<'_> {
    /// Number of its line, from 1.
    pub fn line(&self) -> u32 {
        self.corpus.lines[self.at]
    }

    /// Its symbols.
    pub fn symbols(&self) -> &[u32] {
        &self.corpus.sentences[self.at]
    }

    /// Its gold analyses; none without gold.
    pub fn gold(&self) -> Option<&Analyses> {
        Some(&self.corpus.gold.as_ref()?[self.at])
    }

    /// As the recommended decoding reads it.
    pub fn best(&self) -> &Reading<'_> {
        &self.readings[self.best]
    }

    /// Its line as it is read.
    pub fn segmented(&self, reading: &Reading<'_>) -> String {
        self.corpus.line(self.at, &reading.ends)
    }

    /// The sentence to show.
    pub fn sample(&self) -> Sample {
        let Sentence { corpus, at, readings, probabilities, .. } = self;
        let gold = self.gold().and_then(|gold| closest(gold, &self.best().ends));
        let symbols = self.symbols().iter().map(|&symbol| &corpus.symbols[symbol as usize][..]);
        let in_percent = |found: &Probabilities| percents(symbols, &found.boundaries);
        Sample {
            line: self.line(),
            gold: gold.map(|gold| corpus.line(*at, gold)),
            tree: readings.iter().find_map(|reading| reading.tree).map(str::to_owned),
            segmentations: readings.iter().map(|reading| self.segmented(reading)).collect(),
            probabilities: probabilities.as_ref().map(in_percent).unwrap_or_default(),
        }
    }

    /// The status of one of its readings.
    pub fn status(&self, reading: &Reading<'_>) -> Status {
        match (reading.analysed, self.place) {
            (false, _) => Status::NoAnalysis,
            (true, Some(_)) => Status::Ok,
            (true, None) => Status::HeldOut,
        }
    }
}
