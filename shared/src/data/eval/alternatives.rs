//! Gold with several analyses of a word, as of Morfessor and the Morpho Challenge: `word<TAB>a b, a-b`.
//!
//! In: a line with a word, white space, and its analyses with commas between them; morphs are separated by spaces, or by hyphens that are not in the word. A
//! morph may have a label, `sad/STM` or `sad:sad_A`; `~` is a morph without letters. Out: for each word the boundaries of every analysis.
//!
//! Of several analyses the one that agrees best with a prediction counts. Averages by line are those of Morfessor's evaluation (Virpioja, Turunen, Spiegler,
//! Kohonen & Kurimo 2011, boundary precision and recall): of every word the share of its boundaries that are right, 1 for a word without any, with
//! the best analysis for precision and the best for recall.

use super::segmentation::{EvalError, Prf, Scorer, SegmentationScores, check_text};
use crate::data::corpus::Corpus;

/// Scores against gold with one analysis or more of every line.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct LineScores {
    /// Scores over the whole text, of each line with the analysis that agrees best.
    pub whole: SegmentationScores,
    /// Boundaries inside of lines, averaged by line.
    pub by_line: Prf,
    /// Number of analyses of all lines, if the gold has words with their analyses.
    pub analyses: Option<u64>,
}

/// Scores a corpus of predictions against a gold corpus, which has lines of the same text, or of words with their analyses.
///
/// # Errors
/// [`EvalError`] if they differ in more than boundaries.
pub fn score_corpora(gold: &Corpus, predicted: &Corpus) -> Result<LineScores, EvalError> {
    let plain = check_text(gold, predicted);
    let score = |gold: &[_]| score(&predicted.sentences, gold, &predicted.segmentation());
    match plain {
        Ok(()) => Ok(score(&gold.segmentation().into_iter().map(|ends| vec![ends]).collect::<Vec<_>>())),
        Err(error) => {
            let (words, gold) = analyses(gold).ok_or(error)?;
            check_text(&words, predicted)?;
            let n_analyses = gold.iter().map(|line| line.len() as u64).sum();
            Ok(LineScores { analyses: Some(n_analyses), ..score(&gold) })
        }
    }
}

/// Scores `predicted` against the analyses of each line in `gold`, of which each has one at least; all are end positions of segments.
fn score(lines: &[Vec<u32>], gold: &[Vec<Vec<u32>>], predicted: &[Vec<u32>]) -> LineScores {
    let mut scorer = Scorer::default();
    let (mut precision, mut recall) = (0.0, 0.0);
    for ((line, analyses), predicted) in lines.iter().zip(gold).zip(predicted) {
        let best = analyses.iter().max_by(|a, b| {
            let agreement = |gold: &[u32]| {
                [share(gold, predicted) * share(predicted, gold), f64::from(gold == predicted)]
            };
            agreement(a).partial_cmp(&agreement(b)).expect("shares are numbers")
        });
        scorer.add(line, best.expect("a line has an analysis"), predicted);
        precision += analyses.iter().map(|gold| share(predicted, gold)).fold(0.0, f64::max);
        recall += analyses.iter().map(|gold| share(gold, predicted)).fold(0.0, f64::max);
    }
    let mean = |sum: f64| (!lines.is_empty()).then(|| sum / lines.len() as f64);
    let (precision, recall) = (mean(precision), mean(recall));
    let f1 = precision.zip(recall).filter(|(p, r)| p + r > 0.0).map(|(p, r)| 2.0 * p * r / (p + r));
    let by_line = Prf { precision, recall, f1: f1.or(precision.map(|_| 0.0)) };
    LineScores { whole: scorer.scores(), by_line, analyses: None }
}

/// The share of the inner boundaries of a line that are among `others`; 1 if it has none.
fn share(ends: &[u32], others: &[u32]) -> f64 {
    let inner = &ends[..ends.len().saturating_sub(1)];
    let n_right = inner.iter().filter(|end| others.contains(end)).count();
    if inner.is_empty() { 1.0 } else { n_right as f64 / inner.len() as f64 }
}

/// The words of a corpus whose lines are words with their analyses, and the ends of the segments of each analysis; nothing if some line is no such one.
fn analyses(corpus: &Corpus) -> Option<(Corpus, Vec<Vec<Vec<u32>>>)> {
    let segmentation = corpus.segmentation();
    let lines = corpus.sentences.iter().zip(&segmentation);
    let read = |(line, ends): (&Vec<u32>, &Vec<u32>)| {
        let names: Vec<&str> = line.iter().map(|&symbol| corpus.symbols[symbol as usize].as_str()).collect();
        let starts = std::iter::once(&0).chain(ends);
        let mut segments = starts.zip(ends).map(|(&start, &end)| &names[start as usize..end as usize]);
        let word = segments.next()?;
        let mut alternatives = vec![Vec::new()];
        for segment in segments {
            let (morph, is_last) = match segment {
                [morph @ .., ","] => (morph, true),
                morph => (morph, false),
            };
            alternatives.last_mut()?.push(morph);
            if is_last {
                alternatives.push(Vec::new());
            }
        }
        let ends = alternatives.iter().map(|morphs| ends_in(word, morphs)).collect::<Option<Vec<_>>>()?;
        Some((line[..word.len()].to_vec(), ends))
    };
    let (sentences, ends) = lines.map(read).collect::<Option<(Vec<_>, Vec<_>)>>()?;
    Some((Corpus { sentences, gold: None, ..corpus.clone() }, ends))
}

/// The ends of these morphs in a word, of which they must be all letters: as they stand, without their labels, or parted at hyphens.
fn ends_in(word: &[&str], morphs: &[&[&str]]) -> Option<Vec<u32>> {
    let plain = morphs.to_vec();
    let before = |marks: &[&str]| -> Vec<&[&str]> {
        let label =
            |morph: &[&str]| morph.iter().position(|letter| marks.contains(letter)).unwrap_or(morph.len());
        morphs.iter().map(|morph| &morph[..label(morph)]).filter(|morph| **morph != ["~"]).collect()
    };
    let parted = morphs.iter().flat_map(|morph| morph.split(|letter| *letter == "-")).collect();
    [plain, before(&["/", ":"]), parted]
        .into_iter()
        .find(|morphs| morphs.concat() == word)
        .map(|morphs| {
            let ends = morphs.iter().scan(0, |end, morph| {
                *end += morph.len() as u32;
                Some(*end)
            });
            let mut ends: Vec<u32> = ends.filter(|&end| end > 0).collect();
            ends.dedup();
            ends
        })
        .filter(|ends| !ends.is_empty())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::data::corpus::Options;
    use crate::data::eval::segmentation;

    fn corpus(text: &str, name: &str) -> Corpus {
        Corpus::read(text.as_bytes(), name, &Options::default()).unwrap().0
    }

    fn scores(gold: &str, predicted: &str) -> Result<LineScores, EvalError> {
        score_corpora(&corpus(gold, "gold"), &corpus(predicted, "predicted"))
    }

    fn prf(precision: f64, recall: f64) -> Prf {
        let f1 = 2.0 * precision * recall / (precision + recall);
        Prf { precision: Some(precision), recall: Some(recall), f1: Some(f1) }
    }

    #[test]
    fn the_best_analysis_counts() {
        let gold = "gladly glad ly, gladly\nkindness kind ness\nunlikely un like ly, un likely\n";
        let found = scores(gold, "glad ly\nkind ness\nun likely\n").unwrap();
        assert_eq!((found.whole.exact, found.whole.sentences, found.analyses), (3, 3, Some(5)));
        assert_eq!(found.by_line, prf(1.0, 1.0));
        // `gladly` is an analysis; of `un li ke ly` two boundaries of three are right.
        let found = scores(gold, "gladly\nkindness\nun li ke ly\n").unwrap();
        assert_eq!(found.whole.exact, 1);
        assert_eq!(found.by_line, prf((1.0 + 1.0 + 2.0 / 3.0) / 3.0, (1.0 + 0.0 + 1.0) / 3.0));
    }

    #[test]
    fn labels_hyphens_and_empty_morphs_are_no_letters() {
        for gold in [
            "cats cat s\n",
            "cats cat/STM s/SUF\n",
            "cats cat:cat_N s:+PL\n",
            "cats cat s ~:+PL\n",
            "cats cat-s\n",
            "cats ca-t-s, cat s\n",
            "cats\tcat s\n",
        ] {
            assert_eq!(scores(gold, "cat s\n").unwrap().whole.exact, 1, "{gold}");
        }
        assert_eq!(scores("t-shirt t - shirt, t-shirt\n", "t-shirt\n").unwrap().whole.exact, 1);
    }

    #[test]
    fn other_lines_are_refused_as_before() {
        for gold in ["gladly glad\n", "gladly glad ly,\n", "gladly glad ly, badly\n"] {
            let refused = scores(gold, "glad ly\nbadly\n").unwrap_err();
            assert!(
                matches!(refused, EvalError::Text { .. } | EvalError::Length { .. }),
                "{gold}: {refused}"
            );
        }
        let refused = scores("gladly glad ly\n", "bad ly\n").unwrap_err().to_string();
        assert_eq!(
            refused,
            "predicted:1: `badly` is not the text of gold:1, `gladly`; only the boundaries may differ"
        );
    }

    proptest! {
        #[test]
        fn one_analysis_scores_as_a_plain_segmentation(
            lines in proptest::collection::vec(proptest::collection::vec(("[abc]{1,4}", any::<bool>(), any::<bool>()), 1..5), 1..8),
        ) {
            let text = |at: usize| -> Vec<String> {
                lines.iter().map(|line| {
                    let parts = line.iter().map(|(part, gold, predicted)| {
                        format!("{part}{}", if [*gold, *predicted][at] { " " } else { "" })
                    });
                    parts.collect::<String>().trim().to_owned()
                }).collect()
            };
            let (gold, predicted) = (text(0), text(1));
            let with_words: Vec<String> = gold.iter().map(|line| format!("{}\t{line}", line.replace(' ', ""))).collect();
            let [gold, predicted, with_words] =
                [gold, predicted, with_words].map(|lines| corpus(&(lines.join("\n") + "\n"), "text"));
            let plain = segmentation::score_corpora(&gold, &predicted).unwrap();
            let found = score_corpora(&with_words, &predicted).unwrap();
            prop_assert_eq!(found.whole, plain);
            prop_assert_eq!(found.by_line, score_corpora(&gold, &predicted).unwrap().by_line);
            prop_assert_eq!(score_corpora(&gold, &gold).unwrap().by_line, Prf { precision: Some(1.0), recall: Some(1.0), f1: Some(1.0) });
        }
    }
}
