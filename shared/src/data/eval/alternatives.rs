//! Gold with several analyses of a word, as of Morfessor and the Morpho Challenge: `word<TAB>a b, a-b`.
//!
//! In: lines with a word, white space, and its analyses with commas between them; morphs are separated by spaces, or by hyphens that are not in the word. A
//! morph may have a label, `sad/STM` or `sad:sad_A`; `~` is a morph without letters. Out: the words, each with the boundaries of every analysis.

use super::segmentation::{EvalError, check_text};
use crate::data::corpus::{Analyses, Corpus};

/// The words of a corpus whose lines are words with their analyses, with these as gold; or the first line that is no such one, if most are.
fn with_analyses(corpus: &Corpus) -> Result<Corpus, Option<usize>> {
    let lines: Vec<_> = (0..corpus.sentences.len()).map(|at| word_with_analyses(corpus, at)).collect();
    if let Some(at) = lines.iter().position(Option::is_none) {
        let n_words = lines.iter().flatten().count();
        return Err(Some(at).filter(|_| 2 * n_words > lines.len()));
    }
    let (sentences, gold): (Vec<_>, Vec<Analyses>) = lines.into_iter().flatten().unzip();
    Ok(Corpus { sentences, gold: Some(gold), ..corpus.clone() })
}

/// The gold of a prediction, and whether its lines are words with their analyses rather than segmented sentences.
///
/// # Errors
/// A text that differs from the prediction's in more than boundaries, in either way, or a line that is no word with its analyses among others that are.
pub fn gold_of(gold: &Corpus, predicted: &Corpus) -> Result<(Corpus, bool), EvalError> {
    let Err(error) = check_text(gold, predicted) else { return Ok((gold.clone(), false)) };
    let words = with_analyses(gold).map_err(|line| match line {
        Some(at) => {
            let text =
                segments(gold, at).iter().map(|segment| segment.concat()).collect::<Vec<_>>().join(" ");
            EvalError::Analysis { gold_name: gold.source_name.clone(), gold_line: gold.lines[at], text }
        }
        None => error,
    })?;
    check_text(&words, predicted)?;
    Ok((words, true))
}

/// The word and the boundaries of its analyses in a line of a corpus, if it is such a line.
pub fn word_with_analyses(corpus: &Corpus, at: usize) -> Option<(Vec<u32>, Analyses)> {
    let Line { word, analyses } = Line::of(corpus, at)?;
    let ends = analyses.iter().map(|morphs| ends_in(&word, morphs)).collect::<Option<_>>()?;
    Some((corpus.sentences[at][..word.len()].to_vec(), ends))
}

/// The morphemes of each analysis of each word: labels after colons (`cat:cat_N`), or else the morphs; in a plain segmentation its segments.
pub fn morphemes(corpus: &Corpus, has_analyses: bool) -> Vec<Vec<Vec<String>>> {
    let name = |morph: &Vec<&str>| match morph.iter().position(|&letter| letter == ":") {
        Some(colon) if colon > 0 && colon + 1 < morph.len() => morph[colon + 1..].concat(),
        _ => morph.concat(),
    };
    let of_line = |at: usize| {
        let line = Line::of(corpus, at).filter(|_| has_analyses);
        let analyses = line.map_or_else(|| vec![segments(corpus, at)], |line| line.analyses);
        analyses.iter().map(|morphs| morphs.iter().map(name).collect()).collect()
    };
    (0..corpus.sentences.len()).map(of_line).collect()
}

/// The segments of a line, each as its symbols.
fn segments(corpus: &Corpus, at: usize) -> Vec<Vec<&str>> {
    let names: Vec<&str> =
        corpus.sentences[at].iter().map(|&symbol| corpus.symbols[symbol as usize].as_str()).collect();
    let whole = vec![names.len() as u32];
    let ends = corpus.gold.as_ref().and_then(|gold| gold[at].first()).unwrap_or(&whole);
    let starts = std::iter::once(&0).chain(ends);
    starts.zip(ends).map(|(&start, &end)| names[start as usize..end as usize].to_vec()).collect()
}

/// A word and its analyses, each as its morphs.
struct Line<'c> {
    word: Vec<&'c str>,
    analyses: Vec<Vec<Vec<&'c str>>>,
}

impl Line<'_> {
    fn of(corpus: &Corpus, at: usize) -> Option<Line<'_>> {
        let mut segments = segments(corpus, at).into_iter();
        let word = segments.next()?;
        let mut analyses = vec![Vec::new()];
        for mut morph in segments {
            let is_last = morph.len() > 1 && morph.pop_if(|letter| *letter == ",").is_some();
            analyses.last_mut()?.push(morph);
            if is_last {
                analyses.push(Vec::new());
            }
        }
        Some(Line { word, analyses })
    }
}

/// The ends of these morphs in a word, of which they must be all letters: as they stand, without their labels, or parted at hyphens.
fn ends_in(word: &[&str], morphs: &[Vec<&str>]) -> Option<Vec<u32>> {
    let plain: Vec<&[&str]> = morphs.iter().map(Vec::as_slice).collect();
    let label = |morph: &[&str]| morph.iter().position(|letter| ["/", ":"].contains(letter));
    let before = plain.iter().map(|morph| &morph[..label(morph).unwrap_or(morph.len())]);
    let before = before.filter(|morph| **morph != ["~"]).collect();
    let parted = plain.iter().flat_map(|morph| morph.split(|letter| *letter == "-")).collect();
    let morphs = [plain, before, parted].into_iter().find(|morphs| morphs.concat() == word)?;
    let ends = morphs.iter().scan(0, |end, morph| {
        *end += morph.len() as u32;
        Some(*end)
    });
    let mut ends: Vec<u32> = ends.filter(|&end| end > 0).collect();
    ends.dedup();
    Some(ends).filter(|ends| !ends.is_empty())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::data::corpus::Options;
    use crate::data::eval::segmentation::{Prf, SegmentationScores, score_corpora};

    fn corpus(text: &str, name: &str) -> Corpus {
        Corpus::read(text.as_bytes(), name, &Options::default()).unwrap().0
    }

    fn scores(gold: &str, predicted: &str) -> Result<SegmentationScores, EvalError> {
        let (gold, predicted) = (corpus(gold, "gold"), corpus(predicted, "predicted"));
        score_corpora(&gold_of(&gold, &predicted)?.0, &predicted)
    }

    fn prf(precision: f64, recall: f64) -> Prf {
        let f1 = 2.0 * precision * recall / (precision + recall);
        Prf { precision: Some(precision), recall: Some(recall), f1: Some(f1) }
    }

    #[test]
    fn the_best_analysis_counts() {
        let gold = "gladly glad ly, gladly\nkindness kind ness\nunlikely un like ly, un likely\n";
        let found = scores(gold, "glad ly\nkind ness\nun likely\n").unwrap();
        assert_eq!((found.exact, found.sentences), (3, 3));
        assert_eq!(found.by_line, prf(1.0, 1.0));
        // `gladly` is an analysis; of `un li ke ly` two boundaries of three are right.
        let found = scores(gold, "gladly\nkindness\nun li ke ly\n").unwrap();
        assert_eq!(found.exact, 1);
        assert_eq!(found.by_line, prf((1.0 + 1.0 + 2.0 / 3.0) / 3.0, (1.0 + 0.0 + 1.0) / 3.0));
    }

    #[test]
    fn an_analysis_of_another_word_is_named() {
        let gold = "gladly glad ly\nkindness kind, kind ness\nunlikely un likely\n";
        let error = scores(gold, "glad ly\nkind ness\nun likely\n").unwrap_err().to_string();
        assert!(error.starts_with("gold:2: `kindness kind, kind ness` has an analysis"), "{error}");
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
            assert_eq!(scores(gold, "cat s\n").unwrap().exact, 1, "{gold}");
        }
        assert_eq!(scores("t-shirt t - shirt, t-shirt\n", "t-shirt\n").unwrap().exact, 1);
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
            let plain = score_corpora(&gold, &predicted).unwrap();
            let found = score_corpora(&with_analyses(&with_words).unwrap(), &predicted).unwrap();
            prop_assert_eq!(found, plain);
            prop_assert_eq!(score_corpora(&gold, &gold).unwrap().by_line, Prf { precision: Some(1.0), recall: Some(1.0), f1: Some(1.0) });
        }
    }
}
