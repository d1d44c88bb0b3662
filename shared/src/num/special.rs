//! Special functions of positive arguments, in pure Rust, so that all machines agree on every bit.

pub use libm::{exp, log as ln, log1p as ln_1p, log10};

/// e^x of every element, in place. Relative error 4e-16; 0 below −708 and ∞ above 709.
///
/// For loops that take many: without branches or tables, so that compilers make vector instructions of it, and of sums and products
/// alone, so that all machines agree on every bit. x = k ln 2 + r with |r| ≤ ½ ln 2, and e^r is its Taylor series to r¹³, in
/// parts that do not wait for one another (Estrin's scheme).
#[inline(always)]
pub fn exp_each(values: &mut [f64]) {
    for value in values {
        let x = *value;
        // 1.5 · 2⁵²: added, it leaves the nearest integer in the lowest bits of the mantissa
        const SHIFT: f64 = 6_755_399_441_055_744.0;
        let shifted = x * std::f64::consts::LOG2_E + SHIFT;
        let k = shifted - SHIFT;
        let r = (x - k * LN_2_HIGH) - k * LN_2_LOW;
        let pair = |at: usize| INVERSE_FACTORIALS[at] + INVERSE_FACTORIALS[at + 1] * r;
        let square = r * r;
        let fourth = square * square;
        let low = pair(2) + pair(4) * square;
        let middle = pair(6) + pair(8) * square;
        let high = pair(10) + pair(12) * square;
        let rest = low + fourth * (middle + fourth * high);
        let series = 1.0 + (r + square * rest);
        let power_of_two = f64::from_bits(shifted.to_bits().wrapping_add(1023) << 52);
        let found = series * power_of_two;
        let found = if x < -708.0 { 0.0 } else { found };
        *value = if x > 709.0 { f64::INFINITY } else { found };
    }
}

/// ln 2, its leading bits, so that a multiple by an exponent is exact, and the rest (fdlibm).
pub(super) const LN_2_HIGH: f64 = 6.931_471_803_691_238e-1;
pub(super) const LN_2_LOW: f64 = 1.908_214_929_270_587_7e-10;

/// 1/0!, 1/1!, …, 1/13!
const INVERSE_FACTORIALS: [f64; 14] = [
    1.0,
    1.0,
    0.5,
    1.0 / 6.0,
    1.0 / 24.0,
    1.0 / 120.0,
    1.0 / 720.0,
    1.0 / 5_040.0,
    1.0 / 40_320.0,
    1.0 / 362_880.0,
    1.0 / 3_628_800.0,
    1.0 / 39_916_800.0,
    1.0 / 479_001_600.0,
    1.0 / 6_227_020_800.0,
];

/// ln Γ(x) for x > 0. Relative error 4e-16 (libm).
pub fn ln_gamma(x: f64) -> f64 {
    libm::lgamma(x)
}

/// Ψ(x) = d/dx ln Γ(x) for x > 0. Error ≤ 2e-15 · max(1, |Ψ(x)|).
///
/// Below 8 the recurrence Ψ(x) = Ψ(x + 8) − Σ_{k<8} 1/(x + k) is summed as one fraction; from there the asymptotic
/// series (Abramowitz & Stegun 6.3.18) with seven terms.
pub fn digamma(x: f64) -> f64 {
    if x >= 8.0 { digamma_series(x, ln) } else { digamma_series(x + 8.0, ln) - digamma_below(x) }
}

/// Σ_{k<8} 1/(x + k).
#[inline(always)]
pub(super) fn digamma_below(x: f64) -> f64 {
    let (mut numerator, mut denominator) = (1.0, x);
    for k in 1..8 {
        let factor = x + f64::from(k);
        numerator = numerator * factor + denominator;
        denominator *= factor;
    }
    numerator / denominator
}

/// Ψ(x) for x ≥ 8, given the logarithm.
#[inline(always)]
pub(super) fn digamma_series(x: f64, ln: impl Fn(f64) -> f64) -> f64 {
    let inverse = 1.0 / x;
    let z = inverse * inverse;
    let tail = 1.0 / 132.0 - z * (691.0 / 32760.0 - z * (1.0 / 12.0));
    let series = 1.0 / 12.0 - z * (1.0 / 120.0 - z * (1.0 / 252.0 - z * (1.0 / 240.0 - z * tail)));
    ln(x) - 0.5 * inverse - z * series
}

/// Ψ′(x) for x > 0. Error ≤ 2e-15 · max(1, Ψ′(x)).
///
/// Shifted to 10 by Ψ′(x) = Ψ′(x + 1) + 1/x², then the asymptotic series (Abramowitz & Stegun 6.4.12).
pub fn trigamma(mut x: f64) -> f64 {
    let mut shifted = 0.0;
    while x < 10.0 {
        shifted += 1.0 / (x * x);
        x += 1.0;
    }
    trigamma_series(x, shifted)
}

/// Ψ′(x) for x ≥ 10, and `shifted` more.
#[inline(always)]
pub(super) fn trigamma_series(x: f64, shifted: f64) -> f64 {
    let inverse = 1.0 / x;
    let z = inverse * inverse;
    let tail = 1.0 / 30.0 - z * (5.0 / 66.0 - z * (691.0 / 2730.0 - z * (7.0 / 6.0)));
    let series = 1.0 / 6.0 - z * (1.0 / 30.0 - z * (1.0 / 42.0 - z * tail));
    shifted + inverse + 0.5 * z + z * inverse * series
}

/// ln B(x, y) = ln Γ(x) + ln Γ(y) − ln Γ(x + y).
pub fn ln_beta(x: f64, y: f64) -> f64 {
    ln_gamma(x) + ln_gamma(y) - ln_gamma(x + y)
}

/// ln x(x + 1)⋯(x + n − 1) = ln Γ(x + n) − ln Γ(x) for x > 0.
///
/// From 1000 on by the difference of two Stirling series, in which what cancels is left out: the error stays below 1e-13 of
/// n · max(1, ln(x + n)), however large x is.
pub fn ln_rising(x: f64, n: u32) -> f64 {
    let n = f64::from(n);
    if x < 1000.0 {
        return if n == 0.0 { 0.0 } else { ln_gamma(x + n) - ln_gamma(x) };
    }
    let sum = x + n;
    // (x − ½) ln(1 + n/x) + n ln(x + n) − n + 1/12 (1/(x + n) − 1/x) − 1/360 (1/(x + n)³ − 1/x³)
    let series = |y: f64| (1.0 - 1.0 / (30.0 * y * y)) / (12.0 * y);
    (x - 0.5) * ln_1p(n / x) + n * ln(sum) - n + (series(sum) - series(x))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// (x, Ψ(x), Ψ′(x), ln Γ(x)) to 17 digits, from arbitrary-precision arithmetic.
    const REFERENCE: &[(f64, f64, f64, f64)] = &[
        (1e-06, -1000000.5772140201, 1000000000001.645, 13.815509980749432),
        (0.001, -1000.5755719318103, 1000001.6425331958, 6.907178885383853),
        (0.1, -10.423754940411076, 101.43329915079275, 2.252712651734206),
        (0.5, -1.9635100260214235, 4.934802200544679, 0.5723649429247001),
        (1.0, -0.5772156649015329, 1.6449340668482264, 0.0),
        (1.25, -0.22745353337626542, 1.1973291545071107, -0.09827183642181316),
        (2.0, 0.42278433509846713, 0.6449340668482264, 0.0),
        (3.7, 1.1671535393615113, 0.3100378576700383, 1.428072326665388),
        (7.999, 2.015508332090348, 0.1331547166131586, 8.523145786158915),
        (8.0, 2.01564147795561, 0.1331370146940314, 8.525161361065415),
        (9.5, 2.1977378764029494, 0.11099728846909904, 11.689333420797269),
        (10.0, 2.251752589066721, 0.10516633568168575, 12.801827480081469),
        (12.3, 2.468398400301138, 0.0846951702459164, 18.238983407092245),
        (55.5, 4.0073469585404435, 0.01818131736322176, 166.32150615984037),
        (1000.0, 6.907255195648812, 0.0010005001666666333, 5905.220423209181),
        (123456.75, 11.723642121279044, 8.100035437610752e-06, 1323901.5615730141),
    ];

    #[test]
    fn agrees_with_reference_values() {
        for &(x, psi, psi1, gamma) in REFERENCE {
            for (name, found, expected) in [
                ("digamma", digamma(x), psi),
                ("trigamma", trigamma(x), psi1),
                ("ln_gamma", ln_gamma(x), gamma),
            ] {
                let error = (found - expected).abs() / expected.abs().max(1.0);
                assert!(error < 3e-15, "{name}({x}) = {found}, expected {expected}");
            }
        }
    }

    #[test]
    fn exponentials_are_those_of_libm() {
        let step = |at: i32| f64::from(at) * 0.001_234_567;
        let arguments: Vec<f64> = (-573_000..574_000).map(step).collect();
        let mut found = arguments.clone();
        exp_each(&mut found);
        for (&x, &found) in arguments.iter().zip(&found) {
            let expected = exp(x);
            assert!((found - expected).abs() <= 4e-16 * expected, "e^{x} = {found:e}, expected {expected:e}");
        }
        let mut ends = [f64::NEG_INFINITY, -708.1, -0.0, 0.0, 709.1, f64::INFINITY, f64::NAN];
        exp_each(&mut ends);
        assert_eq!(ends[..6], [0.0, 0.0, 1.0, 1.0, f64::INFINITY, f64::INFINITY]);
        assert!(ends[6].is_nan());
    }

    #[test]
    fn rising_factorials_are_products() {
        for x in [1e-10, 0.3, 1.0, 57.5, 999.0, 1000.0, 1e5, 1e9, 1e14] {
            for n in [0u32, 1, 2, 7, 200, 3000] {
                let product: f64 = (0..n).map(|k| ln(x + f64::from(k))).sum();
                let error = (ln_rising(x, n) - product).abs() / product.abs().max(1.0);
                assert!(error < 1e-13 * f64::from(n).max(10.0), "{n} factors from {x}: error {error:e}");
            }
        }
    }

    #[test]
    fn recurrences_hold() {
        let mut x = 1e-6;
        while x < 1e6 {
            let scale = digamma(x).abs().max(1.0);
            assert!((digamma(x + 1.0) - digamma(x) - 1.0 / x).abs() / scale < 1e-14, "digamma at {x}");
            let scale = trigamma(x).max(1.0);
            assert!(
                (trigamma(x) - trigamma(x + 1.0) - 1.0 / (x * x)).abs() / scale < 1e-14,
                "trigamma at {x}"
            );
            x *= 1.37;
        }
    }
}
