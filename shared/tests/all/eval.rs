//! Laws of the segmentation scores.

use grammaton::data::eval::segmentation::{Prf, score};
use proptest::prelude::*;

use crate::support::Examined;

type Case = (Vec<Vec<u8>>, Vec<Vec<u32>>, Vec<Vec<u32>>);

/// Sentences over two symbols, each with two segmentations.
fn case() -> impl Strategy<Value = Case> {
    let sentence = prop::collection::vec((0..2u8, any::<bool>(), any::<bool>()), 1..9);
    prop::collection::vec(sentence, 1..6).prop_map(|sentences| {
        let ends = |cut: &dyn Fn(&(u8, bool, bool)) -> bool| -> Vec<Vec<u32>> {
            let of = |sentence: &Vec<(u8, bool, bool)>| {
                let n = sentence.len() as u32;
                (1..=n).filter(|&at| at == n || cut(&sentence[at as usize])).collect()
            };
            sentences.iter().map(of).collect()
        };
        let (gold, predicted) = (ends(&|symbol| symbol.1), ends(&|symbol| symbol.2));
        let text =
            sentences.iter().map(|sentence| sentence.iter().map(|symbol| symbol.0).collect()).collect();
        (text, gold, predicted)
    })
}

proptest! {
    #[test]
    fn the_gold_itself_is_perfect((text, gold, _) in case()) {
        let scores = score(&text, &gold, &gold);
        let perfect = Prf { precision: Some(1.0), recall: Some(1.0), f1: Some(1.0) };
        prop_assert_eq!(scores.token, perfect);
        prop_assert_eq!(scores.boundary_edges, perfect);
        prop_assert_eq!(scores.lexicon, perfect);
        prop_assert!(scores.boundary == perfect || scores.boundary == Prf::default());
        prop_assert_eq!(scores.exact, scores.sentences);
    }

    #[test]
    fn exchanging_the_two_exchanges_precision_and_recall((text, gold, predicted) in case()) {
        let (there, back) = (score(&text, &gold, &predicted), score(&text, &predicted, &gold));
        for (there, back) in [
            (there.token, back.token),
            (there.boundary, back.boundary),
            (there.boundary_edges, back.boundary_edges),
            (there.lexicon, back.lexicon),
        ] {
            let exchanged = Prf { precision: back.recall, recall: back.precision, f1: back.f1 };
            prop_assert_eq!(there, exchanged);
        }
        prop_assert_eq!(there.exact, back.exact);
    }

    fn f1_of_each((text, gold, predicted) in case()) {
        let scores = score(&text, &gold, &predicted);
        for prf in [scores.token, scores.boundary, scores.boundary_edges, scores.lexicon] {
            if let (Some(precision), Some(recall), Some(f1)) = (prf.precision, prf.recall, prf.f1) {
                WITH_F1.one();
                prop_assert!((0.0..=1.0).contains(&f1));
                let mean = 2.0 * precision * recall;
                prop_assert!((f1 * (precision + recall) - mean).abs() < 1e-12);
            }
        }
    }
}

static WITH_F1: Examined = Examined::none();

#[test]
fn f1_is_the_harmonic_mean() {
    f1_of_each();
    WITH_F1.assert_at_least(400);
}
