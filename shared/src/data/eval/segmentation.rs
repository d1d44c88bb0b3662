//! Scores of a segmentation against the gold one: tokens, boundaries, lexicon.
//!
//! In: the sentences and, for each, the end positions of its segments in gold and prediction. Out:
//! [`SegmentationScores`], counted over the whole corpus (micro-averaged), as the `wordseg` tool defines them:
//!
//! - a *token* is right if both its edges are, and nothing cuts it;
//! - a *boundary* is a position between two symbols of a sentence; with *edges*, each sentence also has its
//!   beginning and its end, which are always right;
//! - *by line* are the shares of each line's boundaries that are right, averaged over lines, 1 for a line without any: the boundary precision and recall
//!   of Morfessor's evaluation, where lines are words (Virpioja, Turunen, Spiegler, Kohonen & Kurimo 2011);
//! - the *lexicon* is the set of distinct segments, right if it occurs in both lexicons, wherever.
//!
//! Of several gold analyses of a sentence the one that agrees best with the prediction counts, and by line the best for precision and the best for recall.
//!
//! A score whose denominator is 0 is `None`, never NaN.

use std::hash::Hash;
use std::ops::AddAssign;

use rustc_hash::FxHashSet;
use serde::{Deserialize, Serialize};
use unicode_normalization::UnicodeNormalization as _;

use crate::data::corpus::{Corpus, write_line};

/// Precision, recall and their harmonic mean.
#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct Prf {
    /// Right ones among those predicted; `None` if none were.
    pub precision: Option<f64>,
    /// Right ones among those of the gold; `None` if it has none.
    pub recall: Option<f64>,
    /// 2 · right / (predicted + gold); `None` if there are neither.
    pub f1: Option<f64>,
}

/// All scores of a segmentation.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
pub struct SegmentationScores {
    /// Segments, by position.
    pub token: Prf,
    /// Boundaries inside of sentences.
    pub boundary: Prf,
    /// Boundaries, beginnings and ends of sentences included.
    pub boundary_edges: Prf,
    /// Boundaries inside of sentences, averaged by sentence.
    pub by_line: Prf,
    /// Distinct segments.
    pub lexicon: Prf,
    /// Number of sentences.
    pub sentences: u64,
    /// Number of sentences that are segmented exactly as in the gold.
    pub exact: u64,
    /// Token F1 if every symbol were a segment, and if every sentence were one.
    pub baselines: [Option<f64>; 2],
}

/// Names of the baselines, in their order in [`SegmentationScores::baselines`].
pub const BASELINES: [&str; 2] = ["every symbol as a segment", "every sentence as a segment"];

/// Why two segmentations cannot be compared.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum EvalError {
    /// Different numbers of sentences.
    #[error(
        "{predicted_name} has {n_predicted} sentences, but {gold_name} has {n_gold}; expected the same text"
    )]
    Length {
        /// Name of the prediction.
        predicted_name: String,
        /// Its number of sentences.
        n_predicted: usize,
        /// Name of the gold.
        gold_name: String,
        /// Its number of sentences.
        n_gold: usize,
    },
    /// A sentence that differs by its Unicode form only.
    #[error(
        "{predicted_name}:{predicted_line}: the text is that of {gold_name}:{gold_line}, `{text}`, in another Unicode form (NFC, NFD, NFKC); bring both files into one, \
         for instance with `uconv -x any-nfc`"
    )]
    Form {
        /// Name of the prediction.
        predicted_name: String,
        /// Line of the sentence in it.
        predicted_line: u32,
        /// Name of the gold.
        gold_name: String,
        /// Line of the sentence in it.
        gold_line: u32,
        /// The sentence without boundaries.
        text: String,
    },
    /// An analysis of something else than its word.
    #[error(
        "{gold_name}:{gold_line}: `{text}` has an analysis with other letters than the word; correct it, or take it out"
    )]
    Analysis {
        /// Name of the gold.
        gold_name: String,
        /// Line of the word in it.
        gold_line: u32,
        /// The line.
        text: String,
    },
    /// A sentence of other symbols.
    #[error(
        "{predicted_name}:{predicted_line}: `{predicted}` is not the text of {gold_name}:{gold_line}, `{gold}`; \
         only the boundaries may differ"
    )]
    Text {
        /// Name of the prediction.
        predicted_name: String,
        /// Line of the sentence in it.
        predicted_line: u32,
        /// The sentence without boundaries.
        predicted: String,
        /// Name of the gold.
        gold_name: String,
        /// Line of the sentence in it.
        gold_line: u32,
        /// The sentence without boundaries.
        gold: String,
    },
}

/// Scores a corpus of predictions against a gold corpus; in one that marks no boundary, each sentence is one segment.
///
/// # Errors
/// [`EvalError`] if they differ in more than boundaries.
pub fn score_corpora(gold: &Corpus, predicted: &Corpus) -> Result<SegmentationScores, EvalError> {
    check_text(gold, predicted)?;
    let mut scorer = Scorer::default();
    let whole = |sentence: &Vec<u32>| vec![vec![sentence.len() as u32]];
    let of_gold = gold.gold.clone().unwrap_or_else(|| gold.sentences.iter().map(whole).collect());
    for ((sentence, gold), predicted) in
        predicted.sentences.iter().zip(&of_gold).zip(predicted.segmentation())
    {
        scorer.add(sentence, gold, &predicted);
    }
    Ok(scorer.scores())
}

/// Checks that two corpora have the same text.
///
/// # Errors
/// The first sentence that differs, or else their numbers.
pub fn check_text(gold: &Corpus, predicted: &Corpus) -> Result<(), EvalError> {
    let (n_gold, n_predicted) = (gold.sentences.len(), predicted.sentences.len());
    let (predicted_name, gold_name) = (predicted.source_name.clone(), gold.source_name.clone());
    for place in 0..n_gold.min(n_predicted) {
        let names = |corpus: &Corpus| -> Vec<String> {
            corpus.sentences[place].iter().map(|&symbol| corpus.symbols[symbol as usize].clone()).collect()
        };
        if names(gold) != names(predicted) {
            let text = |corpus: &Corpus| {
                let sentence = &corpus.sentences[place];
                write_line(&corpus.symbols, sentence, &[sentence.len() as u32], corpus.unit)
            };
            let (gold_line, predicted_line) = (gold.lines[place], predicted.lines[place]);
            let (gold, predicted) = (text(gold), text(predicted));
            if gold.nfkc().eq(predicted.nfkc()) {
                let text = gold.nfc().collect();
                return Err(EvalError::Form { predicted_name, predicted_line, gold_name, gold_line, text });
            }
            return Err(EvalError::Text {
                predicted_name,
                predicted_line,
                predicted,
                gold_name,
                gold_line,
                gold,
            });
        }
    }
    if n_gold != n_predicted {
        return Err(EvalError::Length { predicted_name, n_predicted, gold_name, n_gold });
    }
    Ok(())
}

/// Scores `predicted` against `gold`, both end positions of segments, one list per sentence, ascending, the last one
/// the sentence's length.
///
/// # Panics
/// If the three have different lengths, or a segment ends outside of its sentence.
pub fn score<T: Eq + Hash + Clone>(
    sentences: &[Vec<T>],
    gold: &[Vec<u32>],
    predicted: &[Vec<u32>],
) -> SegmentationScores {
    assert_eq!(sentences.len(), gold.len(), "one gold segmentation per sentence");
    assert_eq!(sentences.len(), predicted.len(), "one predicted segmentation per sentence");
    let mut scorer = Scorer::default();
    for ((sentence, gold), predicted) in sentences.iter().zip(gold).zip(predicted) {
        scorer.add(sentence, std::slice::from_ref(gold), predicted);
    }
    scorer.scores()
}

/// Scores sentence by sentence, so that a corpus need not be in memory; its lexicons are.
pub struct Scorer<T> {
    token: Count,
    boundary: Count,
    edges: Count,
    /// Sums over sentences of the shares of right boundaries: precision, recall.
    by_line: [f64; 2],
    gold_lexicon: FxHashSet<Vec<T>>,
    predicted_lexicon: FxHashSet<Vec<T>>,
    sentences: u64,
    exact: u64,
    /// Counts of tokens if every symbol were a segment, and if every sentence were one.
    baselines: [Count; 2],
}

impl<T> Default for Scorer<T> {
    fn default() -> Scorer<T> {
        Scorer {
            token: Count::default(),
            boundary: Count::default(),
            edges: Count::default(),
            by_line: [0.0; 2],
            gold_lexicon: FxHashSet::default(),
            predicted_lexicon: FxHashSet::default(),
            sentences: 0,
            exact: 0,
            baselines: Default::default(),
        }
    }
}

impl<T: Eq + Hash + Clone> Scorer<T> {
    /// Adds a sentence with its gold analyses and the predicted end positions of its segments, ascending, the last one its length. Without an analysis
    /// it is left out.
    ///
    /// # Panics
    /// If a segment ends outside of it.
    pub fn add(&mut self, sentence: &[T], analyses: &[Vec<u32>], predicted: &[u32]) {
        let Some(gold) = closest(analyses, predicted) else { return };
        let precision = analyses.iter().map(|gold| share(predicted, gold)).fold(0.0, f64::max);
        let recall = analyses.iter().map(|gold| share(gold, predicted)).fold(0.0, f64::max);
        self.by_line[0] += precision;
        self.by_line[1] += recall;
        self.sentences += 1;
        self.exact += u64::from(gold == predicted);
        let n_short = spans(gold).filter(|(start, end)| end - start == 1).count();
        let n_whole = usize::from(gold.len() == 1);
        for (count, right, predicted) in [(0, n_short, sentence.len()), (1, n_whole, 1)] {
            let baseline = &mut self.baselines[count];
            baseline.right += right;
            baseline.gold += gold.len();
            baseline.predicted += predicted;
        }
        self.token += tokens(gold, predicted);
        self.boundary += boundaries(gold, predicted);
        let edge = || std::iter::once(&0);
        self.edges += Count::of(edge().chain(gold), edge().chain(predicted));
        for (lexicon, ends) in [(&mut self.gold_lexicon, gold), (&mut self.predicted_lexicon, predicted)] {
            for (start, end) in spans(ends) {
                let segment = &sentence[start as usize..end as usize];
                if !lexicon.contains(segment) {
                    lexicon.insert(segment.to_vec());
                }
            }
        }
    }

    /// Scores of all sentences that were added.
    pub fn scores(&self) -> SegmentationScores {
        let lexicon = Count {
            right: self.gold_lexicon.intersection(&self.predicted_lexicon).count(),
            gold: self.gold_lexicon.len(),
            predicted: self.predicted_lexicon.len(),
        };
        let mean = |sum: f64| (self.sentences > 0).then(|| sum / self.sentences as f64);
        let [precision, recall] = self.by_line.map(mean);
        let f1 = precision.zip(recall).map(|(p, r)| if p + r > 0.0 { 2.0 * p * r / (p + r) } else { 0.0 });
        SegmentationScores {
            by_line: Prf { precision, recall, f1 },
            token: self.token.prf(),
            boundary: self.boundary.prf(),
            boundary_edges: self.edges.prf(),
            lexicon: lexicon.prf(),
            sentences: self.sentences,
            exact: self.exact,
            baselines: self.baselines.each_ref().map(|count| count.prf().f1),
        }
    }
}

/// Of the gold analyses of a sentence the one that agrees best with the prediction; `None` without an analysis.
pub fn closest<'a>(analyses: &'a [Vec<u32>], predicted: &[u32]) -> Option<&'a [u32]> {
    let agreement =
        |gold: &[u32]| [share(gold, predicted) * share(predicted, gold), f64::from(gold == predicted)];
    let better =
        |a: &&Vec<u32>, b: &&Vec<u32>| agreement(a).partial_cmp(&agreement(b)).expect("shares are numbers");
    analyses.iter().max_by(better).map(Vec::as_slice)
}

/// The share of the inner boundaries of a sentence that are among `others`; 1 if it has none.
fn share(ends: &[u32], others: &[u32]) -> f64 {
    let inner = &ends[..ends.len().saturating_sub(1)];
    let n_right = inner.iter().filter(|end| others.binary_search(end).is_ok()).count();
    if inner.is_empty() { 1.0 } else { n_right as f64 / inner.len() as f64 }
}

/// The segments that end at `ends`, as half-open spans.
pub fn spans(ends: &[u32]) -> impl Iterator<Item = (u32, u32)> + '_ {
    std::iter::once(0).chain(ends.iter().copied()).zip(ends.iter().copied())
}

/// Segments of a sentence that end at the same positions as those of the gold, and begin there.
pub fn tokens(gold: &[u32], predicted: &[u32]) -> Count {
    Count::of(spans(gold), spans(predicted))
}

/// Boundaries inside of a sentence.
pub fn boundaries(gold: &[u32], predicted: &[u32]) -> Count {
    let inner = |ends: &[u32]| ..ends.len().saturating_sub(1);
    Count::of(gold[inner(gold)].iter(), predicted[inner(predicted)].iter())
}

/// Numbers of items: right ones, those of the gold, and predicted ones.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Count {
    /// Items of both.
    pub right: usize,
    /// Items of the gold.
    pub gold: usize,
    /// Predicted items.
    pub predicted: usize,
}

impl AddAssign for Count {
    fn add_assign(&mut self, other: Count) {
        self.right += other.right;
        self.gold += other.gold;
        self.predicted += other.predicted;
    }
}

impl Count {
    /// Of distinct items, in ascending order.
    fn of<T: Ord>(gold: impl Iterator<Item = T>, predicted: impl Iterator<Item = T>) -> Count {
        let (mut count, mut predicted) = (Count::default(), predicted.peekable());
        for item in gold {
            count.gold += 1;
            while predicted.next_if(|other| *other < item).is_some() {
                count.predicted += 1;
            }
            let is_right = predicted.next_if(|other| *other == item).is_some();
            count += Count { right: usize::from(is_right), gold: 0, predicted: usize::from(is_right) };
        }
        count.predicted += predicted.count();
        count
    }

    fn prf(&self) -> Prf {
        let ratio = |part: usize, whole: usize| (whole > 0).then(|| part as f64 / whole as f64);
        Prf {
            precision: ratio(self.right, self.predicted),
            recall: ratio(self.right, self.gold),
            f1: ratio(2 * self.right, self.predicted + self.gold),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::corpus::Options;

    fn corpus(text: &str, name: &str) -> Corpus {
        Corpus::read(text.as_bytes(), name, &Options::default()).unwrap().0
    }

    fn scores(gold: &str, predicted: &str) -> SegmentationScores {
        score_corpora(&corpus(gold, "gold"), &corpus(predicted, "predicted")).unwrap()
    }

    fn prf(right: f64, predicted: f64, gold: f64) -> Prf {
        Prf {
            precision: Some(right / predicted),
            recall: Some(right / gold),
            f1: Some(2.0 * right / (predicted + gold)),
        }
    }

    #[test]
    fn a_case_done_by_hand() {
        // Gold tokens: the dog | the cat | dog. Predicted: the d og | thecat | dog.
        let scores = scores("the dog\nthe cat\ndog\n", "the d og\nthecat\ndog\n");
        assert_eq!(scores.token, prf(2.0, 5.0, 5.0));
        assert_eq!(scores.boundary, prf(1.0, 2.0, 2.0));
        assert_eq!(scores.boundary_edges, prf(7.0, 8.0, 8.0));
        // {the, dog, cat} and {the, d, og, thecat, dog}.
        assert_eq!(scores.lexicon, prf(2.0, 5.0, 3.0));
        assert_eq!((scores.sentences, scores.exact), (3, 1));
    }

    #[test]
    fn baselines_are_the_scores_of_their_segmentations() {
        for (gold, symbols, whole) in [
            ("a b cd\nef\n", "a b c d\ne f\n", "abcd\nef\n"),
            ("a\n", "a\n", "a\n"),
            ("ab cd\n", "a b c d\n", "abcd\n"),
        ] {
            let found = scores(gold, gold);
            assert_eq!(found.baselines, [symbols, whole].map(|text| scores(gold, text).token.f1));
        }
    }

    #[test]
    fn undefined_statistics_are_none() {
        let none = Prf::default();
        assert_eq!(scores("a\nb\n", "a\nb\n").boundary, none);
        let no_gold = scores("ab\n", "a b\n");
        assert_eq!(no_gold.boundary, Prf { precision: Some(0.0), recall: None, f1: Some(0.0) });
        assert_eq!(score::<u32>(&[], &[], &[]).token, none);
    }

    #[test]
    fn another_unicode_form_is_named() {
        let (composed, decomposed) = ("a\nn\u{e9} e\n", "a\nne\u{301} e\n");
        for (gold, predicted) in [(composed, decomposed), (decomposed, composed)] {
            let refused = score_corpora(&corpus(gold, "gold"), &corpus(predicted, "predicted"))
                .unwrap_err()
                .to_string();
            assert!(
                refused.starts_with(
                    "predicted:2: the text is that of gold:2, `n\u{e9}e`, in another Unicode form"
                ),
                "{refused}"
            );
        }
    }

    #[test]
    fn other_text_is_refused_by_line() {
        let gold = corpus("ab c\n\nd\n", "gold");
        let error = |text| score_corpora(&gold, &corpus(text, "predicted")).unwrap_err().to_string();
        assert_eq!(
            error("abc\nc d\n"),
            "predicted:2: `cd` is not the text of gold:3, `d`; only the boundaries may differ"
        );
        assert_eq!(error("a bc\n"), "predicted has 1 sentences, but gold has 2; expected the same text");
        assert!(score_corpora(&gold, &corpus("abc\nd\n", "predicted")).is_ok());
    }
}
