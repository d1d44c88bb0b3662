//! A vote of several segmentations of a corpus, such as those by the models of several chains.
//!
//! In: for every sentence a segmentation by each voter. Out: the segmentation of the corpus with the highest expected F1 of its segments, if
//! a voter drawn at random is right, among those whose segments have a vote.
//!
//! ```
//! use grammaton::models::vote::vote;
//!
//! // Two of three voters cut a sentence of four symbols in the middle.
//! assert_eq!(vote(&[vec![vec![2, 4], vec![4], vec![2, 4]]]), [[2, 4]]);
//! ```

use std::collections::BTreeMap;

/// Votes for the segments of a sentence, by end and start.
type Votes = BTreeMap<(u32, u32), u32>;

/// The winners, as the ends of the segments of each sentence. `segmentations`: by sentence, then by voter, ends of segments, ascending, the
/// last one the length of the sentence.
///
/// With C the expected number of correct segments, the sum of their shares of the votes, P the number of segments and G the expected number
/// of true ones, F = 2 C / (P + G) is highest where C − (F / 2) P is, which each sentence maximises by itself; F rises with every pass until
/// it is the highest (Dinkelbach 1967).
pub fn vote(segmentations: &[Vec<Vec<u32>>]) -> Vec<Vec<u32>> {
    let sentences: Vec<(Votes, f64)> =
        segmentations.iter().map(|by_voter| (votes(by_voter), by_voter.len().max(1) as f64)).collect();
    let expected = |(votes, n): &(Votes, f64)| votes.values().map(|&votes| f64::from(votes)).sum::<f64>() / n;
    let n_true: f64 = sentences.iter().map(expected).sum();
    let mut f1 = 0.0;
    loop {
        let (mut winners, mut n_correct, mut n_segments) = (Vec::with_capacity(sentences.len()), 0.0, 0);
        for (votes, n_voters) in &sentences {
            let (ends, share) = best(votes, *n_voters, f1 / 2.0);
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

fn votes(by_voter: &[Vec<u32>]) -> Votes {
    let mut votes = Votes::new();
    for ends in by_voter {
        let starts = [0].iter().chain(ends);
        ends.iter().zip(starts).for_each(|(&end, &start)| *votes.entry((end, start)).or_default() += 1);
    }
    votes
}

/// The ends of the segments with the highest sum of shares less `price` each, and the sum of their shares; of equals, fewer segments.
fn best(votes: &Votes, n_voters: f64, price: f64) -> (Vec<u32>, f64) {
    // By end: the highest sum, the number of segments, and the start of the last one. Segments come in order of their ends.
    let mut best: BTreeMap<u32, (f64, usize, u32)> = BTreeMap::from([(0, (0.0, 0, 0))]);
    for (&(end, start), &votes) in votes {
        let (sum, n_segments, _) = best[&start];
        let (sum, n_segments) = (sum + f64::from(votes) / n_voters - price, n_segments + 1);
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
        share += f64::from(votes[&(end, start)]) / n_voters;
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

    fn segments(ends: &[u32]) -> Vec<(u32, u32)> {
        [0].iter().chain(ends).copied().zip(ends.iter().copied()).collect()
    }

    /// Expected F1 over the voters, each of which is right with the same probability.
    fn expected(corpus: &[Vec<Vec<u32>>], chosen: &[&Vec<u32>]) -> f64 {
        let (mut correct, mut n) = (0.0, 0.0);
        for (by_voter, ends) in corpus.iter().zip(chosen) {
            n += ends.len() as f64;
            for voted in by_voter {
                let voted = segments(voted);
                let common = segments(ends).iter().filter(|segment| voted.contains(segment)).count();
                correct += common as f64 / by_voter.len() as f64;
                n += voted.len() as f64 / by_voter.len() as f64;
            }
        }
        2.0 * correct / n
    }

    #[test]
    fn winners_have_the_highest_expected_f1() {
        let mut n_new = 0;
        for seed in 0..200u32 {
            let voted = |at: u32| ends((seed * 7 + at * 5 + seed / 3 * at) % 16);
            let corpus: Vec<Vec<Vec<u32>>> =
                [1, 6].map(|first| (first..first + 3 + seed % 2).map(voted).collect()).to_vec();
            let all: Vec<Vec<Vec<u32>>> = corpus
                .iter()
                .map(|by_voter| {
                    let known: Vec<(u32, u32)> = by_voter.iter().flat_map(|ends| segments(ends)).collect();
                    let has_votes = |ends: &Vec<u32>| segments(ends).iter().all(|one| known.contains(one));
                    (0..16).map(ends).filter(has_votes).collect()
                })
                .collect();
            let highest =
                all[0].iter().flat_map(|one| all[1].iter().map(|other| expected(&corpus, &[one, other])));
            let highest = highest.max_by(f64::total_cmp).unwrap();
            let found = vote(&corpus);
            assert!(
                (expected(&corpus, &[&found[0], &found[1]]) - highest).abs() < 1e-12,
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
            assert_eq!(vote(&alone), alone[0]);
            let forth = vote(&[vec![one.clone(), other.clone(), third.clone()]]);
            assert_eq!(forth, vote(&[vec![third, one, other]]));
        }
        assert_eq!(vote(&[Vec::new()]), [[0u32; 0]]);
    }
}
