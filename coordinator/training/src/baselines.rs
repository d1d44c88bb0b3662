//! Sentences on scores below their baseline: the best of the trivial analyses of the same sentences.
//!
//! A segmentation is compared by token F1 with every symbol or every sentence as a segment, trees by unlabelled F1 with right-branching
//! ones, dependencies by directed accuracy over all lengths with the next or the previous word as the head.

use std::collections::BTreeMap;

use grammaton::data::eval::baseline::below;
use grammaton::data::eval::brackets::BracketScores;
use grammaton::data::eval::dependencies::{Attachment, ByLength};

use crate::metrics::{AttachmentByDecoder, BracketsByDecoder, Scores, ScoresByDecoder, TestScores};

/// Scores of a kind, each with the name of its decoder, which may be empty.
type Named<'a, T> = [(&'a str, &'a T)];

/// A sentence on segmentations of the same text with a lower token F1 than a baseline.
pub fn of_segmentation(scores: &Named<'_, Scores>) -> Option<String> {
    let (_, first) = scores.first()?;
    below("token F1", &values(scores, |scores| scores.token_f1), &first.baselines())
}

/// A sentence on trees over the same sentences with a lower unlabelled F1 than right-branching ones.
pub fn of_brackets(scores: &Named<'_, BracketScores>) -> Option<String> {
    let (_, first) = scores.first()?;
    let baseline = ("right-branching trees", first.right_branching);
    below("unlabelled bracket F1", &values(scores, |scores| scores.unlabelled.f1), &[baseline])
}

/// A sentence on heads of the same sentences with a lower directed accuracy than a baseline.
pub fn of_attachment(scores: &Named<'_, ByLength<Attachment>>) -> Option<String> {
    let (_, first) = scores.first()?;
    let baselines = [("attach-right", first.all.attach_right), ("attach-left", first.all.attach_left)];
    below("attachment", &values(scores, |scores| scores.all.directed), &baselines)
}

/// Sentences on the scores of `corpus.test`.
pub fn of_test(TestScores { scores, brackets, attachment, .. }: &TestScores) -> Vec<String> {
    of_all(scores, brackets, attachment).into_iter().map(|line| format!("corpus.test: {line}")).collect()
}

/// Sentences on scores of every kind, by decoder.
pub fn of_all(
    scores: &ScoresByDecoder,
    brackets: &BracketsByDecoder,
    attachment: &AttachmentByDecoder,
) -> Vec<String> {
    fn named<T>(by_decoder: &BTreeMap<String, T>) -> Vec<(&str, &T)> {
        by_decoder.iter().map(|(decoder, scores)| (decoder.as_str(), scores)).collect()
    }
    let found =
        [of_segmentation(&named(scores)), of_brackets(&named(brackets)), of_attachment(&named(attachment))];
    found.into_iter().flatten().collect()
}

fn values<'a, T>(scores: &Named<'a, T>, value: fn(&T) -> Option<f64>) -> Vec<(&'a str, Option<f64>)> {
    scores.iter().map(|&(decoder, scores)| (decoder, value(scores))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_kind_of_score_has_its_baselines() {
        let scores = Scores {
            token_f1: Some(0.25),
            token_f1_every_symbol: Some(0.125),
            token_f1_every_sentence: Some(0.5),
            ..Scores::default()
        };
        assert_eq!(
            of_segmentation(&[("", &scores)]).unwrap(),
            "token F1 0.2500 is below 0.5000, that of every sentence as a segment"
        );
        let attachment = |directed| {
            let all = Attachment {
                directed: Some(directed),
                undirected: None,
                exact: None,
                attach_right: Some(0.5),
                attach_left: Some(0.25),
                words: 8,
                sentences: 1,
            };
            ByLength { up_to_10: all, up_to_20: all, all }
        };
        let (low, high) = (attachment(0.375), attachment(0.5));
        assert_eq!(
            of_attachment(&[("mbr", &low), ("viterbi", &high)]).unwrap(),
            "attachment 0.3750 (mbr) is below 0.5000, that of attach-right"
        );
        assert_eq!(of_attachment(&[("viterbi", &high)]), None);
        assert_eq!((of_segmentation(&[]), of_brackets(&[]), of_attachment(&[])), (None, None, None));
    }
}
