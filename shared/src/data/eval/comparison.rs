//! Segmentations of a text beside each other: scored against gold with intervals, and their differences with a paired test.
//!
//! In: of each sentence its gold analyses, and the end positions of its segments in every output. Out: a [`Comparison`]:
//! - the scores of each output, and the middle 95 % of them over sentences drawn again ([`Resamples`]);
//! - of the first output against each other one the differences with intervals and p-values, from the same draws, and a sign test over the
//!   positions that only one of them has right.
//!
//! Lexicon scores have no interval: sentences that are drawn again have fewer distinct segments.
//!
//! Laws: an output compared with itself differs by 0, with p = 1; exchanged outputs have the negative difference and the same p. Of several gold analyses the one
//! that agrees best with an output counts for it; sentences without any are left out.

use std::collections::BTreeMap;
use std::hash::Hash;

use serde::Serialize;

use super::segmentation::{Count, Scorer, SegmentationScores, boundaries, closest, tokens};
use super::significance::{Bootstrap, Interval, Resamples, Share, sign_test};
use crate::data::corpus::Analyses;

/// The scores with intervals, under their names in results.
pub const MEASURES: [&str; 7] = [
    "token_precision",
    "token_recall",
    "token_f1",
    "boundary_precision",
    "boundary_recall",
    "boundary_f1",
    "exact_share",
];

/// Outputs and their differences.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Comparison {
    /// In the order in which they were given.
    pub outputs: Vec<Output>,
    /// Of the first output, less each of the others.
    pub differences: Vec<Difference>,
}

/// An output, scored.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Output {
    /// Its scores.
    pub scores: SegmentationScores,
    /// Those of [`MEASURES`] that are defined.
    pub intervals: BTreeMap<&'static str, Interval>,
}

/// The first of two outputs less the second.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Difference {
    /// Those of [`MEASURES`] that are defined for both.
    pub measures: BTreeMap<&'static str, Bootstrap>,
    /// Positions between symbols that the first alone has right.
    pub only_first: u64,
    /// Positions that the second alone has right.
    pub only_second: u64,
    /// Two-sided sign test over the positions that one of them alone has right.
    pub sign_test: f64,
}

/// Counts of a sentence by one output: tokens that are right, predicted, gold; boundaries likewise; and whether it is exact.
const COLUMNS: usize = 7;

/// Scores `outputs` of the same sentences; the bootstrap draws `resamples` times, from streams of `seed`.
///
/// # Panics
/// If an output or `gold` has another number of sentences.
pub fn compare<T: Eq + Hash + Clone>(
    sentences: &[Vec<T>],
    gold: &[Analyses],
    outputs: &[&[Vec<u32>]],
    resamples: u32,
    seed: u64,
) -> Comparison {
    let lengths = outputs.iter().map(|output| output.len());
    assert!(lengths.chain([gold.len()]).all(|n| n == sentences.len()), "one analysis per sentence");
    let mut scorers: Vec<Scorer<T>> = outputs.iter().map(|_| Scorer::default()).collect();
    let mut only = vec![[0, 0]; outputs.len()];
    let mut rows = Vec::new();
    for (at, (sentence, analyses)) in sentences.iter().zip(gold).enumerate() {
        let predicted = || outputs.iter().map(|output| &output[at][..]);
        scorers.iter_mut().zip(predicted()).for_each(|(scorer, ends)| scorer.add(sentence, analyses, ends));
        let golds: Option<Vec<&[u32]>> = predicted().map(|ends| closest(analyses, ends)).collect();
        let Some(golds) = golds else { continue };
        let counts = golds.iter().zip(predicted()).flat_map(|(gold, ends)| counts(gold, ends));
        rows.push(counts.chain([1]).collect());
        let is_right = |output: usize, position: u32| {
            let has = |ends: &[u32]| ends.binary_search(&position).is_ok();
            has(golds[output]) == has(&outputs[output][at])
        };
        for position in 1..sentence.len() as u32 {
            for (other, only) in only.iter_mut().enumerate().skip(1) {
                let right = [is_right(0, position), is_right(other, position)];
                only[0] += u64::from(right == [true, false]);
                only[1] += u64::from(right == [false, true]);
            }
        }
    }
    let drawn = Resamples::draw(&rows, resamples, seed);
    let of = |output: usize, measure: usize| move |sums: &[u64]| share(sums, output, measure);
    let named = || MEASURES.iter().copied().zip(0..);
    let intervals = |output: usize| -> BTreeMap<&'static str, Interval> {
        let drawn = drawn.iter().flat_map(|drawn| named().map(move |measure| (drawn, measure)));
        drawn
            .filter_map(|(drawn, (name, measure))| Some((name, drawn.interval(of(output, measure))?)))
            .collect()
    };
    let difference = |(other, &[only_first, only_second]): (usize, &[u64; 2])| Difference {
        measures: drawn
            .iter()
            .flat_map(|drawn| named().map(move |measure| (drawn, measure)))
            .filter_map(|(drawn, (name, measure))| {
                Some((name, drawn.difference(of(0, measure), of(other, measure))?))
            })
            .collect(),
        only_first,
        only_second,
        sign_test: sign_test(only_first, only_second),
    };
    let output = |(output, scorer): (usize, &Scorer<T>)| Output {
        scores: scorer.scores(),
        intervals: intervals(output),
    };
    Comparison {
        outputs: scorers.iter().enumerate().map(output).collect(),
        differences: only.iter().enumerate().skip(1).map(difference).collect(),
    }
}

fn counts(gold: &[u32], predicted: &[u32]) -> [u64; COLUMNS] {
    let [tokens, boundaries] = [tokens(gold, predicted), boundaries(gold, predicted)];
    let of = |Count { right, gold, predicted }: Count| [right, predicted, gold].map(|n| n as u64);
    let ([a, b, c], [d, e, f]) = (of(tokens), of(boundaries));
    [a, b, c, d, e, f, u64::from(gold == predicted)]
}

/// A measure of an output, of summed counts of all outputs and the number of sentences.
fn share(sums: &[u64], output: usize, measure: usize) -> Share {
    let counts = &sums[output * COLUMNS..][..COLUMNS];
    let [right, predicted, gold] = [0, 1, 2].map(|at| counts[3 * (measure / 3).min(1) + at]);
    match measure {
        6 => (counts[6], sums[sums.len() - 1]),
        _ => [(right, predicted), (right, gold), (2 * right, predicted + gold)][measure % 3],
    }
}

/// The number of positions inside of a sentence at which some of its segmentations have a boundary and others have not.
pub fn n_differing(segmentations: &[&[u32]]) -> u32 {
    let mut uses: BTreeMap<u32, usize> = BTreeMap::new();
    segmentations.iter().copied().flatten().for_each(|&end| *uses.entry(end).or_default() += 1);
    uses.values().filter(|&&n| n < segmentations.len()).count() as u32
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Ends of the segments of a sentence of six symbols, by the bits of a number.
    fn ends(bits: u8) -> Vec<u32> {
        (1..6).filter(|at| bits >> at & 1 == 1).chain([6]).collect()
    }

    fn of(bits: &[u8]) -> Vec<Vec<u32>> {
        bits.iter().map(|&bits| ends(bits)).collect()
    }

    fn compared(gold: &[Analyses], outputs: &[&[Vec<u32>]]) -> Comparison {
        let sentences = vec![b"abcdef".to_vec(); gold.len()];
        compare(&sentences, gold, outputs, 400, 1)
    }

    #[test]
    fn a_case_done_by_hand() {
        // Gold ab|cdef, abcdef; first ab|cd|ef, abcdef; second abcdef, abcdef.
        let gold = [vec![vec![2, 6]], vec![vec![6]]];
        let found = compared(&gold, &[&[vec![2, 4, 6], vec![6]], &[vec![6], vec![6]]]);
        let intervals = &found.outputs[0].intervals;
        assert_eq!(intervals["token_precision"].score, 0.5);
        assert_eq!(intervals["token_f1"].score, 4.0 / 7.0);
        assert_eq!((intervals["boundary_precision"].score, intervals["boundary_recall"].score), (0.5, 1.0));
        assert_eq!((intervals["exact_share"].low, intervals["exact_share"].high), (0.0, 1.0));
        let difference = &found.differences[0];
        assert_eq!(difference.measures["token_recall"].difference, 2.0 / 3.0 - 1.0 / 3.0);
        // Position 2 the first alone has right, position 4 the second.
        assert_eq!((difference.only_first, difference.only_second, difference.sign_test), (1, 1, 1.0));
        assert!(!difference.measures.contains_key("boundary_precision"), "the second has no boundary");
    }

    proptest! {
        /// Laws of a comparison, with several gold analyses and sentences without any.
        #[test]
        fn outputs_are_compared_alike_in_any_order(
            bits in prop::collection::vec((prop::collection::vec(0..64_u8, 0..3), 0..64_u8, 0..64_u8), 1..12),
        ) {
            let gold: Vec<Analyses> = bits.iter().map(|(gold, ..)| of(gold)).collect();
            let [a, b] = [0, 1].map(|output| of(&bits.iter().map(|(_, a, b)| [*a, *b][output]).collect::<Vec<_>>()));
            let (there, back) = (compared(&gold, &[&a, &b]), compared(&gold, &[&b, &a]));
            prop_assert_eq!(&there.outputs[0], &back.outputs[1]);
            let [one, other] = [&there.differences[0], &back.differences[0]];
            prop_assert_eq!((one.only_first, one.only_second), (other.only_second, other.only_first));
            prop_assert_eq!(one.measures.len(), other.measures.len());
            for (name, one) in &one.measures {
                let other = other.measures[name];
                prop_assert_eq!((one.difference, one.low, one.high), (-other.difference, -other.high, -other.low));
                prop_assert_eq!(one.p, other.p);
                prop_assert!(one.p > 0.0 && one.p <= 1.0);
            }
            for Output { scores, intervals } in &there.outputs {
                let score = |name: &str| intervals.get(name).map(|interval| interval.score);
                prop_assert_eq!(score("token_f1"), scores.token.f1);
                prop_assert_eq!(score("token_precision"), scores.token.precision);
                prop_assert_eq!(score("boundary_recall"), scores.boundary.recall);
                prop_assert_eq!(score("boundary_f1"), scores.boundary.f1);
                let exact = |share: f64| (share * scores.sentences as f64).round() as u64;
                prop_assert_eq!(score("exact_share").map_or(0, exact), scores.exact);
                let is_inside = |interval: &Interval| interval.low <= interval.score && interval.score <= interval.high;
                prop_assert!(intervals.values().all(is_inside), "{:?}", intervals);
            }
            // An output compared with itself, and with itself again.
            let same = compared(&gold, &[&a, &a, &a]);
            for difference in &same.differences {
                prop_assert_eq!((difference.only_first, difference.only_second, difference.sign_test), (0, 0, 1.0));
                prop_assert!(difference.measures.values().all(|found| (found.difference, found.low, found.high, found.p) == (0.0, 0.0, 0.0, 1.0)));
            }
        }

        #[test]
        fn positions_differ_where_not_all_agree(a in 0..64_u8, b in 0..64_u8) {
            let (x, y) = (ends(a), ends(b));
            let expected = (1..6).filter(|at| a >> at & 1 != b >> at & 1).count() as u32;
            prop_assert_eq!(n_differing(&[&x, &y]), expected);
            prop_assert_eq!(n_differing(&[&x, &y, &x]), expected);
            prop_assert_eq!(n_differing(&[&x, &x]), 0);
        }
    }
}
