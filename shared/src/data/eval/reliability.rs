//! Whether probabilities are right: what is said with probability p should be so in a share p of the cases.
//!
//! In: probabilities, each with what was so. Out: the Brier score, the expected calibration error, and a table by probability (a reliability diagram).
//!
//! ```
//! use grammaton::data::eval::reliability::Reliability;
//!
//! let mut found = Reliability::default();
//! for is_so in [true, true, true, false] {
//!     found.add(0.75, is_so);
//! }
//! assert_eq!(found.expected_calibration_error(), Some(0.0));
//! assert_eq!(found.brier(), Some(0.1875));
//! ```

/// Number of intervals of probabilities, all of the same length.
pub const N_BINS: usize = 10;

/// The cases of an interval of probabilities.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct Bin {
    /// Number of cases.
    pub n: u64,
    /// Number of those that were so.
    pub n_true: u64,
    /// Sum of the probabilities.
    pub sum: f64,
}

impl Bin {
    /// Mean of the probabilities; `None` without cases.
    pub fn mean(&self) -> Option<f64> {
        (self.n > 0).then(|| self.sum / self.n as f64)
    }

    /// Share of cases that were so; `None` without cases.
    pub fn share(&self) -> Option<f64> {
        (self.n > 0).then(|| self.n_true as f64 / self.n as f64)
    }
}

/// Cases so far.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct Reliability {
    /// By probability: `[k / 10, (k + 1) / 10)`, the last one with 1.
    pub bins: [Bin; N_BINS],
    squares: f64,
}

impl Reliability {
    /// Adds a case.
    pub fn add(&mut self, probability: f64, is_so: bool) {
        let bin = &mut self.bins[((probability * N_BINS as f64) as usize).min(N_BINS - 1)];
        bin.n += 1;
        bin.n_true += u64::from(is_so);
        bin.sum += probability;
        let error = probability - f64::from(u8::from(is_so));
        self.squares += error * error;
    }

    /// Number of cases.
    pub fn n(&self) -> u64 {
        self.bins.iter().map(|bin| bin.n).sum()
    }

    /// Mean square of p − what was so (1 or 0; Brier 1950); `None` without cases.
    pub fn brier(&self) -> Option<f64> {
        (self.n() > 0).then(|| self.squares / self.n() as f64)
    }

    /// The Brier score of the share of all cases that were so, said of each; `None` without cases.
    pub fn brier_of_share(&self) -> Option<f64> {
        let n_true: u64 = self.bins.iter().map(|bin| bin.n_true).sum();
        let share = (self.n() > 0).then(|| n_true as f64 / self.n() as f64)?;
        Some(share * (1.0 - share))
    }

    /// The distance between mean probability and share, averaged over the cases; `None` without cases.
    pub fn expected_calibration_error(&self) -> Option<f64> {
        let error =
            |bin: &Bin| bin.mean().zip(bin.share()).map(|(mean, share)| bin.n as f64 * (mean - share).abs());
        let sum: f64 = self.bins.iter().filter_map(error).sum();
        (self.n() > 0).then(|| sum / self.n() as f64)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// Law: Brier = Σ over cases, and it is what one gets by the definition; the calibration error is at most 1, and 0 of what is certain and right.
        #[test]
        fn scores_are_those_of_the_definition(cases in prop::collection::vec((0.0..=1.0_f64, any::<bool>()), 1..40)) {
            let mut found = Reliability::default();
            cases.iter().for_each(|&(probability, is_so)| found.add(probability, is_so));
            let square = |&(probability, is_so): &(f64, bool)| {
                if is_so { (1.0 - probability) * (1.0 - probability) } else { probability * probability }
            };
            let mean = cases.iter().map(square).sum::<f64>() / cases.len() as f64;
            prop_assert!((found.brier().unwrap() - mean).abs() < 1e-12);
            prop_assert_eq!(found.n(), cases.len() as u64);
            prop_assert!((0.0..=1.0).contains(&found.expected_calibration_error().unwrap()));
            let mut right = Reliability::default();
            cases.iter().for_each(|&(_, is_so)| right.add(f64::from(u8::from(is_so)), is_so));
            prop_assert_eq!((right.brier(), right.expected_calibration_error()), (Some(0.0), Some(0.0)));
            prop_assert!(found.brier_of_share().unwrap() <= 0.25);
        }
    }

    #[test]
    fn without_cases_there_are_no_scores() {
        let none = Reliability::default();
        assert_eq!(
            (none.brier(), none.brier_of_share(), none.expected_calibration_error()),
            (None, None, None)
        );
    }
}
