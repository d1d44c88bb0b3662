//! Significance of a difference between two outputs.
//!
//! [`sign_test`] asks it of single decisions, [`Resamples`] of sentences drawn again. Decisions within a sentence hang
//! together, which the sign test does not know: over words it is too sure of itself, and the bootstrap is the one to believe.

use rayon::prelude::*;
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

/// Right decisions and all of them: a share, summed over sentences.
pub type Share = (u64, u64);

/// A share, and the interval that has the middle 95 % of its values in the resamples.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub struct Interval {
    /// The share over all sentences.
    pub score: f64,
    /// Lower end of the interval.
    pub low: f64,
    /// Its upper end.
    pub high: f64,
}

/// Result of a paired bootstrap of the first output against the second.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub struct Bootstrap {
    /// Share of the first less that of the second, over all decisions.
    pub difference: f64,
    /// Lower end of the interval that has the middle 95 % of the differences in the resamples.
    pub low: f64,
    /// Its upper end.
    pub high: f64,
    /// Share of the resamples in which the first is not better than the second.
    pub not_better: f64,
    /// Two-sided p-value: twice the share of the resamples in which the first is not better, or not worse, whichever is smaller, the two outputs as they
    /// are being counted as one more resample. 1 for equal outputs.
    pub p: f64,
    /// Number of resamples in which both shares are defined.
    pub resamples: u32,
}

/// Counts of a text, summed over sentences that are drawn from it with replacement, as many as it has, again and again.
///
/// In: a row of counts per sentence. Out: intervals of shares and of differences of shares, which are functions of summed counts; all of them see the same
/// draws. Resample r has a stream of its own, which belongs to the seed and r. Resamples in which a share has no decisions are left out.
///
/// Efron & Tibshirani (1993), percentile interval; Koehn (2004) for pairs of outputs; Davison & Hinkley (1997), §4.2, for the p-value.
#[derive(Debug)]
pub struct Resamples {
    /// Sums over all sentences.
    totals: Vec<u64>,
    /// Sums over the sentences of each resample.
    drawn: Vec<Vec<u64>>,
}

impl Resamples {
    /// Draws `resamples` times; `None` if there are no sentences or no resamples. All rows have the same length.
    pub fn draw(sentences: &[Vec<u64>], resamples: u32, seed: u64) -> Option<Resamples> {
        let n_columns = sentences.first().filter(|_| resamples > 0)?.len();
        let sum = |rows: &mut dyn Iterator<Item = &Vec<u64>>| {
            let mut sums = vec![0; n_columns];
            rows.for_each(|row| sums.iter_mut().zip(row).for_each(|(sum, count)| *sum += count));
            sums
        };
        let drawn = |resample: u32| {
            let mut random = stream(seed, 0, u64::from(resample));
            sum(&mut (0..sentences.len()).map(|_| &sentences[below(sentences.len(), &mut random)]))
        };
        let drawn = (0..resamples).into_par_iter().map(drawn).collect();
        Some(Resamples { totals: sum(&mut sentences.iter()), drawn })
    }

    /// A share with its interval; `None` if there are no decisions.
    pub fn interval(&self, share: impl Fn(&[u64]) -> Share) -> Option<Interval> {
        let value = |counts: &Vec<u64>| {
            let (right, of) = share(counts);
            (of > 0).then(|| right as f64 / of as f64)
        };
        let score = value(&self.totals)?;
        let (low, high) = middle(&sorted(self.drawn.iter().filter_map(value)))?;
        Some(Interval { score, low, high })
    }

    /// The difference of two shares, the first less the second; `None` if one of them has no decisions.
    pub fn difference(
        &self,
        first: impl Fn(&[u64]) -> Share,
        second: impl Fn(&[u64]) -> Share,
    ) -> Option<Bootstrap> {
        // Of one fraction, so that the differences of exchanged outputs are each other's negatives.
        let value = |counts: &Vec<u64>| {
            let [(a, of_a), (b, of_b)] =
                [first(counts), second(counts)].map(|(right, of)| (i128::from(right), i128::from(of)));
            (of_a > 0 && of_b > 0).then(|| (a * of_b - b * of_a) as f64 / (of_a * of_b) as f64)
        };
        let difference = value(&self.totals)?;
        let differences = sorted(self.drawn.iter().filter_map(value));
        let (low, high) = middle(&differences)?;
        let n = differences.len();
        let not_better = differences.partition_point(|&difference| difference <= 0.0);
        let not_worse = n - differences.partition_point(|&difference| difference < 0.0);
        Some(Bootstrap {
            difference,
            low,
            high,
            not_better: not_better as f64 / n as f64,
            p: (2.0 * (not_better.min(not_worse) + 1) as f64 / (n + 1) as f64).min(1.0),
            resamples: n as u32,
        })
    }
}

fn sorted(values: impl Iterator<Item = f64>) -> Vec<f64> {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    values
}

/// Ends of the middle 95 % of sorted values.
fn middle(sorted: &[f64]) -> Option<(f64, f64)> {
    let n_below = sorted.len() / 40; // 2.5 %
    Some((*sorted.get(n_below)?, sorted[sorted.len() - 1 - n_below]))
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

    /// Of sentences of four decisions, of which each of two outputs has so many right.
    fn paired_bootstrap(right: &[[u64; 2]], resamples: u32, seed: u64) -> Option<Bootstrap> {
        let rows: Vec<Vec<u64>> = right.iter().map(|&[a, b]| vec![a, b, 4]).collect();
        Resamples::draw(&rows, resamples, seed)?
            .difference(|sums| (sums[0], sums[2]), |sums| (sums[1], sums[2]))
    }

    #[test]
    fn a_constant_difference_has_no_spread() {
        let found = paired_bootstrap(&[[3, 2], [1, 0], [4, 3]], 100, 1).unwrap();
        let p = 2.0 / 101.0;
        let expected =
            Bootstrap { difference: 0.25, low: 0.25, high: 0.25, not_better: 0.0, p, resamples: 100 };
        assert_eq!(found, expected);
        assert_eq!(paired_bootstrap(&[], 100, 1), None);
        assert_eq!(paired_bootstrap(&[[1, 1]], 0, 1), None);
    }

    #[test]
    fn shares_are_those_of_all_resamples() {
        // Of two sentences four resamples are as likely: differences 1/4, 1/8, 1/8, 0.
        let found = paired_bootstrap(&[[2, 1], [1, 1]], 40_000, 7).unwrap();
        assert!((found.not_better - 0.25).abs() < 4.0 * (0.1875f64 / 4e4).sqrt(), "{found:?}");
        assert_eq!((found.difference, found.low, found.high), (0.125, 0.0, 0.25));
    }

    #[test]
    fn the_interval_is_that_of_the_mean() {
        // 400 sentences, every other one ahead by 2 of 4: mean 1/4, standard deviation 1/4 / 20.
        let ahead: Vec<[u64; 2]> = (0..400).map(|at| [2 * (at % 2), 0]).collect();
        let found = paired_bootstrap(&ahead, 10_000, 3).unwrap();
        for (found, expected) in [(found.low, 0.25 - 1.96 / 80.0), (found.high, 0.25 + 1.96 / 80.0)] {
            assert!((found - expected).abs() < 0.0015, "{found}, expected {expected}");
        }
    }

    #[test]
    fn draws_belong_to_the_seed_and_exchanging_the_two_mirrors_them() {
        let right = [[3, 1], [0, 2], [4, 4], [2, 0], [1, 1]];
        let there = paired_bootstrap(&right, 1000, 1).unwrap();
        assert_eq!(paired_bootstrap(&right, 1000, 1), Some(there));
        let share = |seed| paired_bootstrap(&right, 1000, seed).unwrap().not_better;
        assert!((2..9).any(|seed| share(seed) != share(1)));
        let back = paired_bootstrap(&right.map(|[a, b]| [b, a]), 1000, 1).unwrap();
        assert_eq!((back.difference, back.low, back.high), (-there.difference, -there.high, -there.low));
        assert_eq!(back.p, there.p);
    }

    #[test]
    fn equal_outputs_differ_by_nothing() {
        let found = paired_bootstrap(&[[3, 3], [0, 0], [2, 2]], 1000, 1).unwrap();
        assert_eq!((found.difference, found.low, found.high, found.p), (0.0, 0.0, 0.0, 1.0));
    }

    #[test]
    fn p_is_that_of_the_normal_distribution() {
        // 1,600 sentences, 53 of 100 ahead by one half and the others behind: a mean of 0.06 halves, of a standard error of nearly 1/40.
        let right: Vec<[u64; 2]> = (0..1600).map(|at| if at % 100 < 53 { [2, 0] } else { [0, 2] }).collect();
        let found = paired_bootstrap(&right, 20_000, 5).unwrap();
        let error = (0.06 * 40.0) / (1.0f64 - 0.06 * 0.06).sqrt();
        // 2.404 standard errors: 0.0162 in two tails.
        assert!((error - 2.404).abs() < 1e-3 && (found.p - 0.0162).abs() < 0.004, "{found:?}");
    }

    #[test]
    fn shares_without_decisions_are_left_out() {
        // A share is defined in three of four resamples of two sentences.
        let resamples = Resamples::draw(&[vec![1, 2], vec![0, 0]], 4000, 1).unwrap();
        let share = |sums: &[u64]| (sums[0], sums[1]);
        assert_eq!(resamples.interval(share), Some(Interval { score: 0.5, low: 0.5, high: 0.5 }));
        let found = resamples.difference(share, share).unwrap();
        assert!((f64::from(found.resamples) / 4000.0 - 0.75).abs() < 0.03, "{found:?}");
        assert_eq!(resamples.interval(|_| (0, 0)), None);
        assert_eq!(resamples.difference(share, |_| (0, 0)), None);
    }
}
