//! Significance of a difference between two outputs.
//!
//! [`sign_test`] asks it of single decisions, [`paired_bootstrap`] of sentences drawn again. Decisions within a sentence hang
//! together, which the sign test does not know: over words it is too sure of itself, and the bootstrap is the one to believe.

use serde::Serialize;

use crate::num::random::{below, stream};
use crate::num::special::{exp, ln_gamma};

/// The exact two-sided sign test: how probable it is that of `wins + losses` decisions in which two outputs differ, one or the other
/// output has at least as many as it does have, if either is as likely to win. 1 if they never differ.
///
/// 2 · P(X ≤ k) for X ~ Binomial(n, ½), k the smaller number, at most 1 (Dixon & Mood 1946).
pub fn sign_test(wins: u64, losses: u64) -> f64 {
    let (n, fewer) = ((wins + losses) as f64, wins.min(losses));
    let k = fewer as f64;
    let ln_choose = ln_gamma(n + 1.0) - ln_gamma(k + 1.0) - ln_gamma(n - k + 1.0);
    // Σ_{i ≤ k} C(n, i) / C(n, k), from the largest term down: C(n, i − 1) = C(n, i) · i / (n − i + 1).
    let (mut sum, mut term) = (1.0, 1.0);
    for i in (1..=fewer).rev() {
        term *= i as f64 / (n - i as f64 + 1.0);
        sum += term;
        if term < sum * f64::EPSILON / 4.0 {
            break;
        }
    }
    (2.0 * exp(ln_choose - n * std::f64::consts::LN_2) * sum).min(1.0)
}

/// Correct items of two outputs in the same sentence.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Paired {
    /// Decisions that each of the two has right.
    pub right: [u64; 2],
    /// All decisions, at least one.
    pub of: u64,
}

/// Result of a paired bootstrap of the first output against the second.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub struct Bootstrap {
    /// Accuracy of the first less that of the second, over all decisions.
    pub difference: f64,
    /// Lower end of the interval that has the middle 95 % of the differences in the resamples.
    pub low: f64,
    /// Its upper end.
    pub high: f64,
    /// Share of the resamples in which the first is not better than the second.
    pub not_better: f64,
    /// Number of resamples.
    pub resamples: u32,
}

/// Draws as many sentences as there are, with replacement, `resamples` times, and compares the two outputs on each; `None` if there
/// are no sentences or no resamples. Resample r has a stream of its own, which belongs to `seed` and r.
///
/// Efron & Tibshirani (1993), percentile interval; Koehn (2004) for pairs of outputs.
pub fn paired_bootstrap(sentences: &[Paired], resamples: u32, seed: u64) -> Option<Bootstrap> {
    if sentences.is_empty() || resamples == 0 {
        return None;
    }
    // Of each sentence by how many the first is ahead, and of how many.
    let ahead: Vec<(i64, u64)> = sentences
        .iter()
        .map(|sentence| (sentence.right[0] as i64 - sentence.right[1] as i64, sentence.of))
        .collect();
    let difference = |(ahead, of): (i64, u64)| ahead as f64 / of as f64;
    let add = |sum: (i64, u64), next: &(i64, u64)| (sum.0 + next.0, sum.1 + next.1);
    let mut differences: Vec<f64> = (0..resamples)
        .map(|resample| {
            let mut random = stream(seed, 0, u64::from(resample));
            let drawn = (0..ahead.len()).map(|_| &ahead[below(ahead.len(), &mut random)]);
            difference(drawn.fold((0, 0), add))
        })
        .collect();
    differences.sort_by(f64::total_cmp);
    let n = differences.len();
    let below_low = n / 40; // 2.5 %
    let not_better = differences.partition_point(|&difference| difference <= 0.0);
    Some(Bootstrap {
        difference: difference(ahead.iter().fold((0, 0), add)),
        low: differences[below_low],
        high: differences[n - 1 - below_low],
        not_better: not_better as f64 / n as f64,
        resamples,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sign_test_sums_the_tails_of_the_binomial() {
        for (wins, losses, expected) in [
            (0, 0, 1.0),
            (1, 0, 1.0),
            (5, 0, 2.0 / 32.0),
            (2, 8, 112.0 / 1024.0),
            (9, 9, 1.0),
            (0, 1074, 0.0),
        ] {
            let found = sign_test(wins, losses);
            assert!((found - expected).abs() < 1e-14, "{wins}, {losses}: {found}");
        }
        for n in 1..=100u64 {
            // Exact: C(100, 50) < 2^97.
            let mut choose: Vec<u128> = vec![1];
            for i in 1..=n {
                choose.push(choose[i as usize - 1] * u128::from(n - i + 1) / u128::from(i));
            }
            for wins in 0..=n {
                let tail: u128 = choose[..=wins.min(n - wins) as usize].iter().sum();
                let expected = (2.0 * tail as f64 / 2f64.powi(n as i32)).min(1.0);
                let found = sign_test(wins, n - wins);
                assert!(
                    (found / expected - 1.0).abs() < 1e-12,
                    "{wins} of {n}: {found}, expected {expected}"
                );
            }
        }
    }

    #[test]
    fn sign_test_of_many_is_that_of_the_normal_distribution() {
        // 3.0902 standard deviations, with the correction for continuity: 0.002 in two tails.
        let n = 1_000_000u64;
        let k = n / 2 - 1545;
        assert!((sign_test(k, n - k) / 0.002 - 1.0).abs() < 5e-3, "{}", sign_test(k, n - k));
    }

    fn sentences(right: &[[u64; 2]]) -> Vec<Paired> {
        right.iter().map(|&right| Paired { right, of: 4 }).collect()
    }

    #[test]
    fn a_constant_difference_has_no_spread() {
        let found = paired_bootstrap(&sentences(&[[3, 2], [1, 0], [4, 3]]), 100, 1).unwrap();
        let expected = Bootstrap { difference: 0.25, low: 0.25, high: 0.25, not_better: 0.0, resamples: 100 };
        assert_eq!(found, expected);
        assert_eq!(paired_bootstrap(&[], 100, 1), None);
        assert_eq!(paired_bootstrap(&sentences(&[[1, 1]]), 0, 1), None);
    }

    #[test]
    fn shares_are_those_of_all_resamples() {
        // Of two sentences four resamples are as likely: differences 1/4, 1/8, 1/8, 0.
        let found = paired_bootstrap(&sentences(&[[2, 1], [1, 1]]), 40_000, 7).unwrap();
        assert!((found.not_better - 0.25).abs() < 4.0 * (0.1875f64 / 4e4).sqrt(), "{found:?}");
        assert_eq!((found.difference, found.low, found.high), (0.125, 0.0, 0.25));
    }

    #[test]
    fn the_interval_is_that_of_the_mean() {
        // 400 sentences, every other one ahead by 2 of 4: mean 1/4, standard deviation 1/4 / 20.
        let ahead: Vec<[u64; 2]> = (0..400).map(|at| [2 * (at % 2), 0]).collect();
        let found = paired_bootstrap(&sentences(&ahead), 10_000, 3).unwrap();
        for (found, expected) in [(found.low, 0.25 - 1.96 / 80.0), (found.high, 0.25 + 1.96 / 80.0)] {
            assert!((found - expected).abs() < 0.0015, "{found}, expected {expected}");
        }
    }

    #[test]
    fn draws_belong_to_the_seed_and_exchanging_the_two_mirrors_them() {
        let right = [[3, 1], [0, 2], [4, 4], [2, 0], [1, 1]];
        let there = paired_bootstrap(&sentences(&right), 1000, 1).unwrap();
        assert_eq!(paired_bootstrap(&sentences(&right), 1000, 1), Some(there));
        let share = |seed| paired_bootstrap(&sentences(&right), 1000, seed).unwrap().not_better;
        assert!((2..9).any(|seed| share(seed) != share(1)));
        let back = paired_bootstrap(&sentences(&right.map(|[a, b]| [b, a])), 1000, 1).unwrap();
        assert_eq!((back.difference, back.low, back.high), (-there.difference, -there.high, -there.low));
    }
}
