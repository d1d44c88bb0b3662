//! A vote of several segmentations of a corpus, such as those by the models of several chains.
//!
//! In: for every sentence a segmentation by each voter, and the weight of each voter. Out: the segmentation of the corpus with the highest
//! expected F1 of its segments, if a voter drawn by weight is right, among those whose segments have a vote.
//!
//! ```
//! use grammaton::models::vote::vote;
//!
//! // Two of three voters cut a sentence of four symbols in the middle.
//! let sentence = vec![vec![2, 4], vec![4], vec![2, 4]];
//! assert_eq!(vote(&[sentence.clone()], &[1.0; 3]), [[2, 4]]);
//! // The other one has more weight than both.
//! assert_eq!(vote(&[sentence], &[1.0, 3.0, 1.0]), [[4]]);
//! ```

use std::collections::BTreeMap;

use super::baselines::{Baseline, Learned};
use crate::data::eval::segmentation::score;

/// The weights of votes for the segments of a sentence, by end and start.
type Votes = BTreeMap<(u32, u32), f64>;

/// The winners of models and of `baselines`, which are segmentations of the same `sentences` without training and err elsewhere than models.
///
/// Each model has weight one; a baseline has the weight of all models, times the square of its agreement with what they vote for (F1 of
/// segments): one that segments otherwise hardly counts.
///
/// With them what each baseline has learned and its weight beside all models, for new sentences.
pub fn vote_with(
    baselines: &[Baseline],
    sentences: &[Vec<u32>],
    mut segmentations: Vec<Vec<Vec<u32>>>,
) -> (Vec<Vec<u32>>, Vec<(Learned, f64)>) {
    let n_models = segmentations.first().map_or(0, Vec::len);
    let mut weights = vec![1.0; n_models];
    let of_models = vote(&segmentations, &weights);
    if baselines.is_empty() {
        return (of_models, Vec::new());
    }
    let mut learned = Vec::new();
    for baseline in baselines {
        let (found, of_text) = baseline.segment(sentences);
        let agreement = score(sentences, &of_models, &found).token.f1.unwrap_or(0.0);
        weights.push(n_models as f64 * agreement * agreement);
        learned.push((of_text, agreement * agreement));
        segmentations.iter_mut().zip(found).for_each(|(by_voter, ends)| by_voter.push(ends));
    }
    (vote(&segmentations, &weights), learned)
}

/// End and start of each segment.
fn segments(ends: &[u32]) -> impl Iterator<Item = (u32, u32)> {
    ends.iter().copied().zip([0].into_iter().chain(ends.iter().copied()))
}

/// The winners, as the ends of the segments of each sentence. `segmentations`: by sentence, then by voter, ends of segments, ascending, the
/// last one the length of the sentence; `weights`: by voter.
///
/// With C the expected number of correct segments, the sum of their shares of the votes, P the number of segments and G the expected number
/// of true ones, F = 2 C / (P + G) is highest where C − (F / 2) P is, which each sentence maximises by itself; F rises with every pass until
/// it is the highest (Dinkelbach 1967).
pub fn vote(segmentations: &[Vec<Vec<u32>>], weights: &[f64]) -> Vec<Vec<u32>> {
    let sentences: Vec<Votes> = segmentations.iter().map(|by_voter| votes(by_voter, weights)).collect();
    let all = Some(weights.iter().sum()).filter(|&all| all > 0.0).unwrap_or(1.0);
    let n_true: f64 = sentences.iter().map(|votes| votes.values().sum::<f64>() / all).sum();
    let mut f1 = 0.0;
    loop {
        let (mut winners, mut n_correct, mut n_segments) = (Vec::with_capacity(sentences.len()), 0.0, 0);
        for votes in &sentences {
            let (ends, share) = best(votes, all, f1 / 2.0);
            n_correct += share;
            n_segments += ends.len();
            winners.push(ends);
        }
        let higher = 2.0 * n_correct / (n_segments as f64 + n_true).max(1.0);
        if higher <= f1 {
            return winners;
        }
        f1 = higher;
    }
}

fn votes(by_voter: &[Vec<u32>], weights: &[f64]) -> Votes {
    let mut votes = Votes::new();
    for (ends, weight) in by_voter.iter().zip(weights) {
        segments(ends).for_each(|segment| *votes.entry(segment).or_default() += weight);
    }
    votes
}

/// The ends of the segments with the highest sum of shares of `all` votes less `price` each, and the sum of their shares; of equals, fewer segments.
fn best(votes: &Votes, all: f64, price: f64) -> (Vec<u32>, f64) {
    // By end: the highest sum, the number of segments, and the start of the last one. Segments come in order of their ends.
    let mut best: BTreeMap<u32, (f64, usize, u32)> = BTreeMap::from([(0, (0.0, 0, 0))]);
    for (&(end, start), &votes) in votes {
        let (sum, n_segments, _) = best[&start];
        let (sum, n_segments) = (sum + votes / all - price, n_segments + 1);
        let is_better = |&(known, of, _): &(f64, usize, u32)| sum > known || sum == known && n_segments < of;
        if best.get(&end).is_none_or(is_better) {
            best.insert(end, (sum, n_segments, start));
        }
    }
    let mut end = best.keys().next_back().copied().unwrap_or_default();
    let (mut ends, mut share) = (Vec::new(), 0.0);
    while end > 0 {
        let start = best[&end].2;
        ends.push(end);
        share += votes[&(end, start)] / all;
        end = start;
    }
    ends.reverse();
    (ends, share)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The segmentation of five symbols with this set of inner boundaries.
    fn ends(boundaries: u32) -> Vec<u32> {
        (1..5).filter(|at| boundaries >> (at - 1) & 1 == 1).chain([5]).collect()
    }

    /// Expected F1 over the voters, one of which, drawn by weight, is right.
    fn expected(corpus: &[Vec<Vec<u32>>], weights: &[f64], chosen: &[&Vec<u32>]) -> f64 {
        let all: f64 = weights.iter().sum();
        let (mut correct, mut n) = (0.0, 0.0);
        for (by_voter, ends) in corpus.iter().zip(chosen) {
            n += ends.len() as f64;
            for (voted, weight) in by_voter.iter().zip(weights) {
                let voted: Vec<_> = segments(voted).collect();
                let common = segments(ends).filter(|segment| voted.contains(segment)).count();
                correct += weight / all * common as f64;
                n += weight / all * voted.len() as f64;
            }
        }
        2.0 * correct / n
    }

    #[test]
    fn winners_have_the_highest_expected_f1() {
        let mut n_new = 0;
        for seed in 0..200u32 {
            let n_voters = 3 + seed % 2;
            let weights: Vec<f64> = (0..n_voters).map(|at| 1.0 + f64::from((seed + at) % 5) / 4.0).collect();
            let voted = |at: u32| ends((seed * 7 + at * 5 + seed / 3 * at) % 16);
            let corpus: Vec<Vec<Vec<u32>>> =
                [1, 6].map(|first| (first..first + n_voters).map(voted).collect()).to_vec();
            let all: Vec<Vec<Vec<u32>>> = corpus
                .iter()
                .map(|by_voter| {
                    let known: Vec<(u32, u32)> = by_voter.iter().flat_map(|ends| segments(ends)).collect();
                    let has_votes = |ends: &Vec<u32>| segments(ends).all(|one| known.contains(&one));
                    (0..16).map(ends).filter(has_votes).collect()
                })
                .collect();
            let highest = all[0]
                .iter()
                .flat_map(|one| all[1].iter().map(|other| expected(&corpus, &weights, &[one, other])));
            let highest = highest.max_by(f64::total_cmp).unwrap();
            let found = vote(&corpus, &weights);
            assert!(
                (expected(&corpus, &weights, &[&found[0], &found[1]]) - highest).abs() < 1e-12,
                "{corpus:?}: {found:?}"
            );
            n_new += usize::from(!corpus[0].contains(&found[0]));
        }
        assert!(n_new > 5, "winners need not be a voter's segmentation: {n_new}");
    }

    #[test]
    fn one_voter_wins_and_order_does_not_matter() {
        for boundaries in 0..16 {
            let (one, other, third) = (ends(boundaries), ends(boundaries / 3), ends(5));
            let alone = vec![vec![one.clone()]];
            assert_eq!(vote(&alone, &[1.0]), alone[0]);
            let forth = vote(&[vec![one.clone(), other.clone(), third.clone()]], &[1.0, 1.0, 0.5]);
            assert_eq!(forth, vote(&[vec![third, one, other]], &[0.5, 1.0, 1.0]));
        }
        assert_eq!(vote(&[Vec::new()], &[]), [[0u32; 0]]);
    }

    #[test]
    fn baselines_decide_where_models_do_not() {
        // PUDDLE knows "01" and "23" as sentences, and cuts them out.
        let sentences = [vec![0, 1], vec![2, 3], vec![0, 1, 2, 3]];
        let of_models = |whole: &[bool]| {
            let cut = |&whole: &bool| if whole { vec![4] } else { vec![2, 4] };
            vec![vec![vec![2]; whole.len()], vec![vec![2]; whole.len()], whole.iter().map(cut).collect()]
        };
        let with = |baselines: &[Baseline], whole: &[bool]| {
            vote_with(baselines, &sentences, of_models(whole)).0[2].clone()
        };
        assert_eq!(Baseline::Puddle.segment(&sentences).0[2], [2, 4]);
        assert_eq!(
            (with(&[], &[true, true, false]), with(&[Baseline::Puddle], &[true, true, false])),
            (vec![4], vec![2, 4])
        );
        assert_eq!(with(&[Baseline::Puddle], &[true, true]), [4], "all models together have more weight");
    }
}
