//! Random numbers that depend on a seed and a place, never on the order of calls.

use rand::{Rng, SeedableRng};
use rand_pcg::Pcg64Mcg;

/// A family of random numbers, one per place.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Noise {
    seed: u64,
}

impl Noise {
    /// The family of `seed` and `run`.
    pub fn new(seed: u64, run: u64) -> Noise {
        Noise { seed: seed.wrapping_mul(0x9e37_79b9_7f4a_7c15).wrapping_add(run) }
    }

    /// Uniform in (−1, 1): the number at `place`.
    pub fn symmetric(&self, place: u64) -> f64 {
        let seed = self.seed.wrapping_mul(0xbf58_476d_1ce4_e5b9) ^ place.wrapping_mul(0x94d0_49bb_1331_11eb);
        let bits = Pcg64Mcg::seed_from_u64(seed).next_u64() >> 11; // 53 of them
        (bits as f64 + 0.5) / (1u64 << 52) as f64 - 1.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_seeds_and_runs_differ_and_repeat() {
        let at = |seed, run, place| Noise::new(seed, run).symmetric(place);
        assert_eq!(at(1, 0, 5), at(1, 0, 5));
        let all = [at(1, 0, 5), at(1, 0, 6), at(1, 1, 5), at(2, 0, 5)];
        assert!((0..4).all(|i| (0..i).all(|j| all[i] != all[j])), "{all:?}");
    }

    #[test]
    fn is_uniform() {
        let noise = Noise::new(7, 0);
        let draws: Vec<f64> = (0..10_000).map(|place| noise.symmetric(place)).collect();
        let mean = draws.iter().sum::<f64>() / 1e4;
        let square = draws.iter().map(|x| x * x).sum::<f64>() / 1e4;
        assert!(mean.abs() < 0.02 && (square - 1.0 / 3.0).abs() < 0.01, "mean {mean}, square {square}");
    }
}
