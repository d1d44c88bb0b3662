//! Draws from the distributions that samplers need.
//!
//! In: parameters and a stream ([`Noise::stream`](super::Noise::stream)). Out: the same bits on every machine, since all that
//! is not `+ − × ÷ √` comes from [`special`].
//!
//! Gamma and Dirichlet draws stay in log space: with a shape of 10⁻¹⁰ most of them are below e^−10⁹.

use rand::Rng;
use rand_pcg::Pcg64Mcg;

use super::{Wide, special};

/// 2^−53, the distance of neighbours.
const STEP: f64 = 1.0 / (1u64 << 53) as f64;

/// Uniform in [0, 1).
pub fn uniform(random: &mut Pcg64Mcg) -> f64 {
    (random.next_u64() >> 11) as f64 * STEP
}

/// ln of a uniform draw from (0, 1).
fn ln_uniform(random: &mut Pcg64Mcg) -> f64 {
    special::ln(uniform(random) + 0.5 * STEP)
}

/// Normal with mean 0 and variance 1 (Marsaglia & Bray 1964, polar method; the second of each pair is thrown away).
pub fn normal(random: &mut Pcg64Mcg) -> f64 {
    loop {
        let (x, y) = (2.0 * uniform(random) - 1.0, 2.0 * uniform(random) - 1.0);
        let square = x * x + y * y;
        if square > 0.0 && square < 1.0 {
            return x * (-2.0 * special::ln(square) / square).sqrt();
        }
    }
}

/// ln of a draw from Gamma(`shape`, 1), for shape > 0; `f64::MIN` if it is below that.
///
/// From shape 1 on by Marsaglia & Tsang (2000), section 4; below, ln G(a) = ln G(a + 1) + ln U / a, their section 6.
pub fn ln_gamma(shape: f64, random: &mut Pcg64Mcg) -> f64 {
    if shape < 1.0 {
        let above = ln_gamma(shape + 1.0, random);
        return (above + ln_uniform(random) / shape).max(f64::MIN);
    }
    let d = shape - 1.0 / 3.0;
    let c = 1.0 / (9.0 * d).sqrt();
    loop {
        let x = normal(random);
        let root = 1.0 + c * x;
        if root > 0.0 {
            let ln_v = 3.0 * special::ln(root);
            if ln_uniform(random) < 0.5 * x * x + d - d * (root * root * root) + d * ln_v {
                return special::ln(d) + ln_v;
            }
        }
    }
}

/// A draw from Dirichlet(`shapes`), shapes > 0: weights that sum to one. With shapes near zero all but one of them are tiny,
/// and none is zero.
pub fn dirichlet(shapes: &[f64], random: &mut Pcg64Mcg) -> Vec<Wide> {
    let lns: Vec<f64> = shapes.iter().map(|&shape| ln_gamma(shape, random)).collect();
    let most = lns.iter().copied().fold(f64::MIN, f64::max);
    let sum: f64 = lns.iter().map(|ln| special::exp(ln - most)).sum();
    let ln_sum = special::ln(sum);
    lns.iter().map(|ln| Wide::from_ln(ln - most - ln_sum)).collect()
}

/// An index with probability in proportion to its weight; never one of weight zero. `None` unless the weights, ≥ 0, sum to
/// something positive and finite.
pub fn categorical(weights: &[f64], random: &mut Pcg64Mcg) -> Option<usize> {
    let total: f64 = weights.iter().sum();
    if !(total > 0.0 && total.is_finite()) {
        return None;
    }
    let mut left = uniform(random) * total;
    let mut last = None;
    for (at, &weight) in weights.iter().enumerate().filter(|&(_, &weight)| weight > 0.0) {
        last = Some(at);
        if left < weight {
            break;
        }
        left -= weight;
    }
    last // rounding may leave something over at the end
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::num::Noise;

    const N: usize = 40_000;

    fn stream(item: u64) -> Pcg64Mcg {
        Noise::new(11, 0).stream(0, item)
    }

    /// Mean of `draw`, which has to be within five standard errors of `mean`, for a variance of `variance`.
    #[track_caller]
    fn assert_mean(item: u64, mean: f64, variance: f64, mut draw: impl FnMut(&mut Pcg64Mcg) -> f64) {
        let mut random = stream(item);
        let found = (0..N).map(|_| draw(&mut random)).sum::<f64>() / N as f64;
        let error = (variance / N as f64).sqrt();
        assert!((found - mean).abs() < 5.0 * error, "mean {found}, expected {mean} ± {error}");
    }

    #[test]
    fn uniform_and_normal_have_their_moments() {
        assert_mean(0, 0.5, 1.0 / 12.0, uniform);
        assert_mean(1, 1.0 / 3.0, 4.0 / 45.0, |random| uniform(random).powi(2));
        assert_mean(2, 0.0, 1.0, normal);
        assert_mean(3, 1.0, 2.0, |random| normal(random).powi(2));
        assert_mean(4, 3.0, 96.0, |random| normal(random).powi(4));
    }

    #[test]
    fn logarithms_of_gamma_draws_have_mean_digamma_and_variance_trigamma() {
        for (item, shape) in [1e-10, 1e-5, 0.01, 0.3, 0.999, 1.0, 1.5, 7.0, 1e4].into_iter().enumerate() {
            let (mean, variance) = (special::digamma(shape), special::trigamma(shape));
            assert_mean(item as u64, mean, variance, |random| ln_gamma(shape, random));
            // The variance of a square is E x⁴ − (E x²)²; that of ln G is at most that of an exponential's.
            let square = |random: &mut Pcg64Mcg| (ln_gamma(shape, random) - mean).powi(2);
            assert_mean(100 + item as u64, variance, 8.0 * variance * variance, square);
        }
        for shape in [0.3, 2.5] {
            assert_mean(200, shape, shape, |random| special::exp(ln_gamma(shape, random)));
        }
    }

    #[test]
    fn dirichlet_draws_have_their_moments() {
        let shapes = [0.2, 1.0, 3.8];
        for (at, shape) in shapes.into_iter().enumerate() {
            let mean = shape / 5.0;
            let variance = mean * (1.0 - mean) / 6.0;
            assert_mean(at as u64, mean, variance, |random| dirichlet(&shapes, random)[at].to_f64());
        }
    }

    #[test]
    fn dirichlet_draws_of_tiny_shapes_are_one_and_almost_nothing() {
        for shape in [1e-10, 1e-5, 1e-300, f64::MIN_POSITIVE] {
            let mut random = stream(7);
            let mut first = 0;
            for _ in 0..2_000 {
                let weights = dirichlet(&[shape; 4], &mut random);
                let sum = weights.iter().fold(Wide::ZERO, |sum, &weight| sum + weight);
                assert!((sum.to_f64() - 1.0).abs() < 1e-14, "{weights:?}");
                assert!(weights.iter().all(|weight| !weight.is_zero() && weight.mantissa.is_finite()));
                first += usize::from(weights[0].to_f64() > 0.9);
            }
            // Each is the one alike often: 500 ± 19. Where all are below f64::MIN they are equal, and none is.
            assert!(shape == f64::MIN_POSITIVE || (400..600).contains(&first), "{first} at {shape}");
        }
    }

    #[test]
    fn categorical_draws_are_in_proportion() {
        let weights = [0.0, 1.0, 0.0, 2.0, 5.0, 0.0];
        for (at, weight) in weights.into_iter().enumerate() {
            let share = weight / 8.0;
            let variance = share * (1.0 - share) + 1e-12;
            assert_mean(9, share, variance, |random| f64::from(categorical(&weights, random) == Some(at)));
        }
        let mut random = stream(3);
        for weights in [&[][..], &[0.0], &[f64::NAN, 1.0], &[f64::INFINITY, 1.0]] {
            assert_eq!(categorical(weights, &mut random), None);
        }
        assert_eq!(categorical(&[0.0, 1e-310, 0.0], &mut random), Some(1));
    }

    #[test]
    fn draws_are_these_on_every_machine() {
        let mut random = stream(1);
        let draws = [
            uniform(&mut random),
            normal(&mut random),
            ln_gamma(1e-10, &mut random),
            ln_gamma(4.5, &mut random),
            dirichlet(&[0.5, 2.0], &mut random)[0].ln(),
        ];
        let expected = [
            0.695_797_713_853_331_6,
            -0.704_673_677_266_676_1,
            -10_304_788_137.734_327,
            1.695_845_245_798_768,
            -1.903_510_320_870_726_5,
        ];
        assert_eq!(draws, expected);
    }
}
