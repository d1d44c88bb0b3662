//! Random numbers that depend on a seed and a place, never on who asks first.

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

    /// The stream of an item in a round, for any number of draws ([`draws`](super::draws)).
    pub fn stream(&self, round: u64, item: u64) -> Pcg64Mcg {
        let high = mixed(mixed(self.seed).wrapping_add(round));
        let low = mixed(high.wrapping_add(item));
        Pcg64Mcg::new(u128::from(high) << 64 | u128::from(low))
    }
}

/// All bits changed by all bits, one to one (Steele, Lea & Flood 2014, `mix64variant13` of Stafford).
fn mixed(bits: u64) -> u64 {
    let bits = bits.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let bits = (bits ^ bits >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let bits = (bits ^ bits >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    bits ^ bits >> 31
}

#[cfg(test)]
mod tests {
    use super::super::draws;
    use super::*;

    #[test]
    fn places_seeds_and_runs_differ_and_repeat() {
        let at = |seed, run, place| Noise::new(seed, run).symmetric(place);
        assert_eq!(at(1, 0, 5), at(1, 0, 5));
        let all = [at(1, 0, 5), at(1, 0, 6), at(1, 1, 5), at(2, 0, 5)];
        assert!((0..4).all(|i| (0..i).all(|j| all[i] != all[j])), "{all:?}");
    }

    #[test]
    fn streams_of_places_seeds_and_runs_differ_and_repeat() {
        let at = |seed, run, round, item| Noise::new(seed, run).stream(round, item).next_u64();
        assert_eq!(at(1, 0, 5, 2), at(1, 0, 5, 2));
        let places = (0..20).flat_map(|round| (0..20).map(move |item| at(1, 0, round, item)));
        let mut all: Vec<u64> = places.chain([at(2, 0, 0, 0), at(1, 1, 0, 0)]).collect();
        all.sort_unstable();
        all.dedup();
        assert_eq!(all.len(), 402);
    }

    #[test]
    fn first_draws_of_neighbouring_streams_are_not_alike() {
        let noise = Noise::new(3, 1);
        let first: Vec<f64> =
            (0..10_000).map(|item| draws::uniform(&mut noise.stream(4, item)) - 0.5).collect();
        let mean = first.iter().sum::<f64>() / 1e4;
        let lag = first.windows(2).map(|pair| pair[0] * pair[1]).sum::<f64>() / 1e4;
        assert!(mean.abs() < 0.015 && lag.abs() < 0.004, "mean {mean}, of neighbours {lag}");
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
