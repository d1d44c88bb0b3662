//! Weights whose exponent has no bounds that matter.
//!
//! The tail of a long stick weighs e^−15000, and a sentence of 10,000 tokens has a probability to match, so
//! `f64` underflows. [`Wide`] keeps the mantissa of an `f64` and an exponent of its own. It adds and multiplies
//! with the rounding that `f64` would have if its exponent were unbounded: where `f64` neither overflows nor
//! underflows, both give the same bits. So the fast real-space passes and the wide ones are interchangeable,
//! no logarithm is taken per edge, and no scaling factor has to be carried along.

use std::cmp::Ordering;
use std::ops::{Add, Div, Mul};

use serde::{Deserialize, Serialize};

/// A non-negative number `mantissa · 2^exponent`.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
pub struct Wide {
    /// 0, or in [1, 2).
    pub mantissa: f64,
    /// 0 if the mantissa is 0.
    pub exponent: i64,
}

/// ln 2, its leading 32 bits (so that a multiple by an exponent is exact) and the rest.
const LN_2_HIGH: f64 = 6.931_471_803_691_238e-1;
const LN_2_LOW: f64 = 1.908_214_929_270_587_7e-10;

impl Wide {
    /// Zero.
    pub const ZERO: Wide = Wide { mantissa: 0.0, exponent: 0 };
    /// One.
    pub const ONE: Wide = Wide { mantissa: 1.0, exponent: 0 };
    /// Largest magnitude of a logarithm: the digamma function reaches it at 1e-12.
    pub const MAX_LN: f64 = 1e12;
    /// Largest magnitude of the exponent of a weight; MAX_LN / ln 2 is below it.
    pub const MAX_EXPONENT: i64 = 1 << 41;

    /// Whether it is in the one form that a weight has: zero, or a mantissa in [1, 2) and an exponent of at most
    /// [`Wide::MAX_EXPONENT`] in magnitude.
    pub fn is_weight(self) -> bool {
        match self.mantissa.to_bits() {
            0 => self.exponent == 0,
            _ => {
                (1.0..2.0).contains(&self.mantissa)
                    && self.exponent.unsigned_abs() <= Wide::MAX_EXPONENT as u64
            }
        }
    }

    /// e^`ln`; −∞ gives zero. Beyond [`Wide::MAX_LN`] in magnitude it counts as that, so that products of millions stay
    /// within their exponent.
    pub fn from_ln(ln: f64) -> Wide {
        if ln == f64::NEG_INFINITY {
            return Wide::ZERO;
        }
        let ln = ln.clamp(-Wide::MAX_LN, Wide::MAX_LN);
        let exponent = (ln / std::f64::consts::LN_2).floor();
        let rest = (ln - exponent * LN_2_HIGH) - exponent * LN_2_LOW;
        normalised(libm::exp(rest), exponent as i64)
    }

    /// From a finite non-negative number.
    pub fn from_f64(value: f64) -> Wide {
        normalised(value, 0)
    }

    /// Natural logarithm; −∞ for zero.
    pub fn ln(self) -> f64 {
        if self.is_zero() {
            return f64::NEG_INFINITY;
        }
        let exponent = self.exponent as f64;
        exponent * LN_2_HIGH + (exponent * LN_2_LOW + libm::log(self.mantissa))
    }

    /// Nearest `f64`: zero below 2^−1022, infinite from 2^1024 on.
    pub fn to_f64(self) -> f64 {
        match self.exponent {
            -1022..=1023 => self.mantissa * power_of_two(self.exponent),
            ..-1022 => 0.0,
            1024.. => f64::INFINITY,
        }
    }

    /// The product of `factors`, rounded as if multiplied one by one from the left.
    pub fn product(factors: impl Iterator<Item = Wide>) -> Wide {
        let (mut mantissa, mut exponent) = (1.0, 0);
        for factor in factors {
            mantissa *= factor.mantissa;
            exponent += factor.exponent;
            if mantissa > 1e300 {
                let product = normalised(mantissa, exponent);
                (mantissa, exponent) = (product.mantissa, product.exponent);
            }
        }
        normalised(mantissa, exponent)
    }

    /// Whether it is zero.
    pub fn is_zero(self) -> bool {
        self.mantissa == 0.0
    }
}

/// 2^exponent for −1022 ≤ exponent ≤ 1023.
fn power_of_two(exponent: i64) -> f64 {
    f64::from_bits(((exponent + 1023) as u64) << 52)
}

/// `mantissa · 2^exponent` with its mantissa brought into [1, 2).
fn normalised(mantissa: f64, exponent: i64) -> Wide {
    if mantissa == 0.0 {
        return Wide::ZERO;
    }
    if mantissa < f64::MIN_POSITIVE {
        return normalised(mantissa * power_of_two(60), exponent - 60);
    }
    let shift = ((mantissa.to_bits() >> 52) & 0x7ff) as i64 - 1023;
    let fraction = mantissa.to_bits() & ((1 << 52) - 1);
    Wide { mantissa: f64::from_bits(fraction | (1023 << 52)), exponent: exponent + shift }
}

impl Mul for Wide {
    type Output = Wide;

    #[inline]
    fn mul(self, other: Wide) -> Wide {
        let mantissa = self.mantissa * other.mantissa; // 0, or in [1, 4)
        let exponent = self.exponent + other.exponent;
        if mantissa >= 2.0 {
            Wide { mantissa: mantissa * 0.5, exponent: exponent + 1 }
        } else if mantissa == 0.0 {
            Wide::ZERO
        } else {
            Wide { mantissa, exponent }
        }
    }
}

impl Div for Wide {
    type Output = Wide;

    fn div(self, other: Wide) -> Wide {
        normalised(self.mantissa / other.mantissa, self.exponent - other.exponent)
    }
}

impl Add for Wide {
    type Output = Wide;

    #[inline]
    fn add(self, other: Wide) -> Wide {
        if other.is_zero() {
            return self;
        }
        if self.is_zero() {
            return other;
        }
        let (large, small) = if self.exponent >= other.exponent { (self, other) } else { (other, self) };
        let apart = large.exponent - small.exponent;
        if apart > 64 {
            return large; // less than half a unit in the last place
        }
        let mantissa = large.mantissa + small.mantissa * power_of_two(-apart); // in [1, 4)
        if mantissa >= 2.0 {
            Wide { mantissa: mantissa * 0.5, exponent: large.exponent + 1 }
        } else {
            Wide { mantissa, exponent: large.exponent }
        }
    }
}

impl PartialOrd for Wide {
    fn partial_cmp(&self, other: &Wide) -> Option<Ordering> {
        if self.is_zero() || other.is_zero() {
            return self.mantissa.partial_cmp(&other.mantissa);
        }
        match self.exponent.cmp(&other.exponent) {
            Ordering::Equal => self.mantissa.partial_cmp(&other.mantissa),
            unequal => Some(unequal),
        }
    }
}

/// Each weight to the power 1/τ.
pub fn heat(weights: &mut [Wide], temperature: f64) {
    if temperature != 1.0 {
        weights.iter_mut().filter(|weight| !weight.is_zero()).for_each(|weight| {
            *weight = Wide::from_ln(weight.ln() / temperature);
        });
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn logarithms_come_back_from_far_out() {
        for ln in [0.0, -1.0, -15_000.0, -1e6, -9e8, 700.0, 1e-9, -745.2] {
            let back = Wide::from_ln(ln).ln();
            assert!((back - ln).abs() <= 1e-15 * ln.abs().max(1.0) * 4.0, "{ln} came back as {back}");
        }
        assert!(Wide::from_ln(f64::NEG_INFINITY).is_zero());
    }

    #[test]
    fn products_of_the_smallest_weights_do_not_overflow() {
        // Ψ(1e-300), as of a rule with that pseudo-count which nothing uses.
        let smallest = Wide::from_ln(-1e300);
        assert_eq!(smallest, Wide::from_ln(-Wide::MAX_LN));
        assert!(smallest.exponent > -Wide::MAX_EXPONENT);
        let product = Wide::product(std::iter::repeat_n(smallest, 1 << 20));
        assert!(product < smallest && product.ln() <= -Wide::MAX_LN * 1e6);
    }

    proptest! {
        #[test]
        fn agrees_with_f64_bit_for_bit_in_its_range(a in 1e-100f64..1e100, b in 1e-100f64..1e100) {
            let (x, y) = (Wide::from_f64(a), Wide::from_f64(b));
            prop_assert_eq!((x + y).to_f64().to_bits(), (a + b).to_bits());
            prop_assert_eq!((x * y).to_f64().to_bits(), (a * b).to_bits());
            prop_assert_eq!((x / y).to_f64().to_bits(), (a / b).to_bits());
            prop_assert_eq!(x.partial_cmp(&y), a.partial_cmp(&b));
        }

        #[test]
        fn products_are_those_of_single_steps(lns in proptest::collection::vec(-1e4f64..1e4, 0..2000)) {
            let factors: Vec<Wide> = lns.iter().map(|&ln| Wide::from_ln(ln)).collect();
            let product = factors.iter().fold(Wide::ONE, |product, &factor| product * factor);
            prop_assert_eq!(Wide::product(factors.into_iter()), product);
        }

        #[test]
        fn adds_and_multiplies_beyond_the_range_of_f64(a in -1e5f64..1e5, apart in -30.0f64..30.0) {
            let (x, y) = (Wide::from_ln(a), Wide::from_ln(a + apart));
            let sum = a + apart.max(0.0) + (-apart.abs()).exp().ln_1p();
            prop_assert!(((x + y).ln() - sum).abs() < 1e-9);
            prop_assert!(((x * y).ln() - (2.0 * a + apart)).abs() < 1e-9);
        }
    }

    #[test]
    fn heat_takes_roots_and_leaves_zeros() {
        let mut weights = [Wide::from_f64(0.25), Wide::ZERO, Wide::ONE];
        heat(&mut weights, 2.0);
        assert!((weights[0].to_f64() - 0.5).abs() < 1e-15);
        assert!(weights[1].is_zero() && (weights[2].to_f64() - 1.0).abs() < 1e-15);
    }
}
