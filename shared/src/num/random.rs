//! Streams of random numbers, and what is drawn from them.
//!
//! A stream belongs to a seed, a run and a round, so that what is drawn depends on these alone.

use rand_pcg::Pcg64Mcg;
use rand_pcg::rand_core::{Rng, SeedableRng};

use super::Wide;

/// The stream of `round` of `run` under `seed`.
pub fn stream(seed: u64, run: u64, round: u64) -> Pcg64Mcg {
    let mut state = Pcg64Mcg::seed_from_u64(seed);
    for part in [run, round] {
        state = Pcg64Mcg::seed_from_u64(state.next_u64() ^ part.wrapping_mul(0x9e37_79b9_7f4a_7c15));
    }
    state
}

/// The seed of the stream of `shard` in `round` of `run` under `seed`.
pub fn shard_seed(seed: u64, run: u64, round: u64, shard: u64) -> u64 {
    stream(stream(seed, run, round).next_u64(), shard, 0).next_u64()
}

/// The state of a stream, its lower half first, from which [`resume`] goes on.
pub fn state(random: &Pcg64Mcg) -> [u64; 2] {
    let mut state = [0; 16];
    bincode::serde::encode_into_slice(random, &mut state, bincode::config::legacy())
        .expect("a generator is a number of 128 bits");
    let state = u128::from_le_bytes(state);
    [state as u64, (state >> 64) as u64]
}

/// The stream that goes on from a state.
pub fn resume([low, high]: [u64; 2]) -> Pcg64Mcg {
    Pcg64Mcg::new(u128::from(high) << 64 | u128::from(low))
}

/// Uniform in [0, 1): the upper 53 bits, so that the stream does not depend on a library's way of making floats.
pub fn uniform(random: &mut Pcg64Mcg) -> f64 {
    (random.next_u64() >> 11) as f64 * (1.0 / (1u64 << 53) as f64)
}

/// Uniform in 0..n, n ≥ 1; biased by less than n · 2^−53.
pub fn below(n: usize, random: &mut Pcg64Mcg) -> usize {
    ((uniform(random) * n as f64) as usize).min(n - 1)
}

/// The numbers below `n` in random order (Fisher & Yates 1938).
pub fn permutation(n: usize, random: &mut Pcg64Mcg) -> Vec<u32> {
    let mut order: Vec<u32> = (0..n as u32).collect();
    for at in (1..n).rev() {
        order.swap(at, below(at + 1, random));
    }
    order
}

/// Standard normal (Box & Muller 1958; one of the pair).
pub fn normal(random: &mut Pcg64Mcg) -> f64 {
    let radius = libm::sqrt(-2.0 * libm::log(1.0 - uniform(random)));
    radius * libm::cos(2.0 * std::f64::consts::PI * uniform(random))
}

/// The logarithm of a draw from Gamma(shape, 1), for any shape > 0: for small ones the draw itself would be 0.
///
/// Marsaglia & Tsang (2000); below one, ln G(a) = ln G(a + 1) + ln(U) / a.
pub fn ln_gamma_draw(shape: f64, random: &mut Pcg64Mcg) -> f64 {
    if shape < 1.0 {
        return ln_gamma_draw(shape + 1.0, random) + libm::log(1.0 - uniform(random)) / shape;
    }
    let d = shape - 1.0 / 3.0;
    let c = 1.0 / libm::sqrt(9.0 * d);
    loop {
        let x = normal(random);
        let v = 1.0 + c * x;
        if v > 0.0 {
            let ln_v = 3.0 * libm::log(v);
            let cube = v * v * v;
            if libm::log(1.0 - uniform(random)) < 0.5 * x * x + d * (1.0 - cube + ln_v) {
                return libm::log(d) + ln_v;
            }
        }
    }
}

/// A draw from Dirichlet(`alpha`), each α > 0; probabilities of any smallness.
pub fn dirichlet(alpha: &[f64], random: &mut Pcg64Mcg) -> Vec<Wide> {
    let logs: Vec<f64> = alpha.iter().map(|&alpha| ln_gamma_draw(alpha, random)).collect();
    let largest = logs.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let sum: f64 = logs.iter().map(|log| libm::exp(log - largest)).sum();
    let ln_sum = largest + libm::log(sum);
    logs.into_iter().map(|log| Wide::from_ln(log - ln_sum)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::num::special;

    #[test]
    fn gamma_draws_have_the_moments_of_their_logarithm() {
        // E[ln G] = Ψ(a), Var[ln G] = Ψ′(a); for tiny shapes these are −1/a and 1/a².
        let mut random = stream(3, 0, 0);
        for shape in [1e-10, 1e-5, 0.3, 1.0, 2.5, 400.0] {
            let draws: Vec<f64> = (0..20_000).map(|_| ln_gamma_draw(shape, &mut random)).collect();
            let (mean, sd) = (special::digamma(shape), special::trigamma(shape).sqrt());
            let found = draws.iter().sum::<f64>() / 2e4;
            assert!((found - mean).abs() < 4.0 * sd / 2e4f64.sqrt(), "{shape}: {found}, expected {mean}");
            let spread = (draws.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / 2e4).sqrt();
            assert!((spread / sd - 1.0).abs() < 0.05, "{shape}: {spread}, expected {sd}");
        }
    }

    #[test]
    fn dirichlet_draws_sum_to_one_and_have_the_means() {
        let mut random = stream(4, 0, 0);
        let alpha = [0.5, 1.5, 3.0];
        let mut means = [0.0; 3];
        for _ in 0..10_000 {
            let draw = dirichlet(&alpha, &mut random);
            assert!((draw.iter().map(|w| w.to_f64()).sum::<f64>() - 1.0).abs() < 1e-12);
            means.iter_mut().zip(&draw).for_each(|(mean, weight)| *mean += weight.to_f64() / 1e4);
        }
        for (mean, alpha) in means.iter().zip(alpha) {
            assert!((mean - alpha / 5.0).abs() < 0.01, "{means:?}");
        }
    }

    #[test]
    fn sparse_dirichlet_draws_have_one_large_and_many_tiny_probabilities() {
        let draw = dirichlet(&[1e-10; 50], &mut stream(5, 0, 0));
        assert!(draw.iter().all(|weight| !weight.is_zero() && weight.mantissa.is_finite()));
        assert_eq!(draw.iter().filter(|weight| weight.to_f64() > 1e-9).count(), 1);
    }

    #[test]
    fn seeds_runs_and_rounds_differ_and_repeat() {
        let first = |seed, run, round| stream(seed, run, round).next_u64();
        assert_eq!(first(1, 0, 5), first(1, 0, 5));
        let all = [first(1, 0, 5), first(1, 5, 0), first(1, 0, 6), first(1, 1, 5), first(2, 0, 5)];
        assert!((0..5).all(|i| (0..i).all(|j| all[i] != all[j])), "{all:?}");
    }

    #[test]
    fn all_orders_are_as_frequent() {
        let mut random = stream(1, 0, 0);
        let mut found = std::collections::BTreeMap::new();
        for _ in 0..6000 {
            *found.entry(permutation(3, &mut random)).or_insert(0) += 1;
        }
        assert_eq!(found.len(), 6);
        assert!(found.values().all(|&n| (900..1100).contains(&n)), "{found:?}");
    }
}
