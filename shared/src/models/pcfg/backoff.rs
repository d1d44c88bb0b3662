//! Priors of multinomials that are cases of one another: their means are the shares of the outcomes in all cases together.
//!
//! In: an [`Estimate`], and sets of multinomials of the same outcomes. Out: the same with other pseudo-counts. Of the outcome c in every case k of a set,
//!
//! ```text
//! α_kc = B · (α + Σ_k f_kc) / Σ_c (α + Σ_k f_kc)
//! ```
//!
//! so that a case with fewer counts than B is near to what all cases have, and one with more goes its own way: a backoff, which Headden, Johnson &
//! McClosky (2009) learn as weights of a mixture. The counts are those of the last round, as if they were data; so the prior moves with them, and
//! a bound need not rise.

use std::ops::Range;

use crate::grammar::groups::Estimate;

/// Which multinomials back off, and how much.
#[derive(Clone, PartialEq, Debug)]
pub struct Backoff {
    /// Parameters of the cases of each set; all cases of a set have the same number, in the same order of outcomes.
    pub sets: Vec<[Range<usize>; 2]>,
    /// B: pseudo-counts of a case.
    pub strength: f64,
    /// α: pseudo-counts of an outcome in all cases together.
    pub alpha: f64,
}

impl Backoff {
    /// Changes the pseudo-counts to those of the formula.
    pub fn apply(&self, Estimate { alpha, counts }: &mut Estimate) {
        for cases in &self.sets {
            let n = cases[0].len();
            let all = |at: usize| self.alpha + cases.iter().map(|case| counts[case.start + at]).sum::<f64>();
            let pooled: Vec<f64> = (0..n).map(all).collect();
            let sum: f64 = pooled.iter().sum();
            for case in cases {
                let with = alpha[case.clone()].iter_mut().zip(&pooled);
                with.for_each(|(alpha, pooled)| *alpha = self.strength * pooled / sum);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn priors_have_the_shares_of_all_cases() {
        let backoff = Backoff { sets: vec![[1..3, 3..5]], strength: 10.0, alpha: 1.0 };
        let mut estimate = Estimate { alpha: vec![1.0; 6], counts: vec![0.0, 3.0, 0.0, 1.0, 4.0, 7.0] };
        backoff.apply(&mut estimate);
        assert_eq!(estimate.alpha, [1.0, 5.0, 5.0, 5.0, 5.0, 1.0]);
        estimate.counts[2] = 10.0;
        backoff.apply(&mut estimate);
        assert_eq!(estimate.alpha, [1.0, 2.5, 7.5, 2.5, 7.5, 1.0]);
    }
}
