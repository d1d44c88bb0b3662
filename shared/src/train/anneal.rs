//! Annealing: the weights of a round to the power 1/τ, with a temperature τ that falls to 1 (Johnson, Griffiths & Goldwater 2007, §6).

use serde::{Deserialize, Serialize};

/// A temperature for every round: from `from` to `to` by equal factors in `rounds` rounds, and `to` after that.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
pub struct Anneal {
    /// Temperature of the first round, > 0.
    pub from: f64,
    /// Temperature after the schedule, > 0; 1 is the distribution itself, below 1 it is sharpened.
    pub to: f64,
    /// Length of the schedule; 0: `to` from the start.
    pub rounds: usize,
}

impl Default for Anneal {
    /// Returns temperature 1 in every round.
    fn default() -> Anneal {
        Anneal { from: 1.0, to: 1.0, rounds: 0 }
    }
}

impl Anneal {
    /// The temperature of a round, counted from 1.
    pub fn temperature(&self, round: usize) -> f64 {
        if round > self.rounds || self.from == self.to {
            return self.to;
        }
        let done = (round - 1) as f64 / self.rounds as f64;
        libm::exp(libm::log(self.from) * (1.0 - done) + libm::log(self.to) * done)
    }

    /// Whether every round from this one on has temperature 1.
    pub fn is_over(&self, round: usize) -> bool {
        self.to == 1.0 && (round > self.rounds || self.from == 1.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn falls_by_equal_factors_and_stays() {
        let anneal = Anneal { from: 8.0, to: 1.0, rounds: 3 };
        let temperatures: Vec<f64> = (1..=5).map(|round| anneal.temperature(round)).collect();
        for (found, expected) in temperatures.iter().zip([8.0, 4.0, 2.0, 1.0, 1.0]) {
            assert!((found - expected).abs() < 1e-12, "{temperatures:?}");
        }
        assert!(!anneal.is_over(3) && anneal.is_over(4));
        assert!(Anneal::default().is_over(1) && Anneal::default().temperature(1) == 1.0);
        assert!(!Anneal { to: 0.5, ..Anneal::default() }.is_over(9));
    }
}
