//! Special functions of many arguments at once, by the widest vectors of the machine.
//!
//! Each gives the bits of its namesake in [`special`]: the same operations in the same order, without branches. Blocks in which an
//! argument is out of the range of the form without branches are done one by one.

use pulp::{Arch, NullaryFnOnce};

use super::special;

/// Arguments that are decided on together: some vectors of any machine.
const BLOCK: usize = 32;

/// A function of every element of a block, in place.
trait Each {
    fn on(&self, block: &mut [f64]);
}

/// A function of every element, block by block, with the widest vectors of the machine. Types and no closures, which would be compiled by
/// themselves, without them.
struct Blocks<'a, E>(&'a mut [f64], E);

impl<E: Each> NullaryFnOnce for Blocks<'_, E> {
    type Output = ();

    #[inline(always)]
    fn call(self) {
        for block in self.0.chunks_mut(BLOCK) {
            self.1.on(block);
        }
    }
}

struct Digamma;
struct Trigamma;
struct LnGamma;

impl Each for Digamma {
    #[inline(always)]
    fn on(&self, block: &mut [f64]) {
        if is_within(block, 8.0) {
            for x in block {
                *x = special::digamma_series(*x, ln);
            }
        } else if is_within(block, SMALL) {
            for x in block {
                *x = digamma(*x);
            }
        } else {
            block.iter_mut().for_each(|x| *x = special::digamma(*x));
        }
    }
}

impl Each for Trigamma {
    #[inline(always)]
    fn on(&self, block: &mut [f64]) {
        if is_within(block, 10.0) {
            for x in block {
                *x = special::trigamma_series(*x, 0.0);
            }
        } else {
            block.iter_mut().for_each(|x| *x = special::trigamma(*x));
        }
    }
}

impl Each for LnGamma {
    #[inline(always)]
    fn on(&self, block: &mut [f64]) {
        if is_within(block, 8.0) {
            for x in block {
                *x = ln_gamma_series(*x);
            }
        } else {
            block.iter_mut().for_each(|x| *x = special::ln_gamma(*x));
        }
    }
}

/// Whether all numbers are from `least` on and below [`LARGE`].
#[inline(always)]
fn is_within(block: &[f64], least: f64) -> bool {
    block.iter().all(|x| (least..LARGE).contains(x))
}

/// Ψ(x) of every element, in place.
pub fn digamma_each(values: &mut [f64]) {
    Arch::new().dispatch(Blocks(values, Digamma));
}

/// Ψ′(x) of every element, in place.
pub fn trigamma_each(values: &mut [f64]) {
    Arch::new().dispatch(Blocks(values, Trigamma));
}

/// ln Γ(x) of every element, in place.
pub fn ln_gamma_each(values: &mut [f64]) {
    Arch::new().dispatch(Blocks(values, LnGamma));
}

/// ln B(x, y) of every pair, in the place of the xs.
pub fn ln_beta_each(xs: &mut [f64], ys: &[f64]) {
    let (mut of_y, mut of_sum) = ([0.0; BLOCK], [0.0; BLOCK]);
    for (xs, ys) in xs.chunks_mut(BLOCK).zip(ys.chunks(BLOCK)) {
        let (of_y, of_sum) = (&mut of_y[..ys.len()], &mut of_sum[..ys.len()]);
        of_y.copy_from_slice(ys);
        of_sum.iter_mut().zip(xs.iter().zip(ys)).for_each(|(sum, (x, y))| *sum = x + y);
        [&mut *xs, of_y, of_sum].into_iter().for_each(ln_gamma_each);
        xs.iter_mut().zip(of_y.iter().zip(of_sum)).for_each(|(x, (y, sum))| *x = *x + *y - *sum);
    }
}

/// Below it, the product of x(x + 1)⋯ may lose digits to underflow.
const SMALL: f64 = 1e-300;
/// Beyond it ln Γ has another form (2⁵⁸), and no argument that occurs lies.
const LARGE: f64 = 288_230_376_151_711_744.0;

#[inline(always)]
fn digamma(x: f64) -> f64 {
    let below = special::digamma_below(x);
    let (shifted, below) = if x < 8.0 { (x + 8.0, below) } else { (x, 0.0) };
    special::digamma_series(shifted, ln) - below
}

/// Asymptotic series of fdlibm from 8 to 2⁵⁸ (`e_lgamma_r.c`).
#[inline(always)]
fn ln_gamma_series(x: f64) -> f64 {
    const W: [f64; 7] = [
        4.189_385_332_046_727e-1,
        8.333_333_333_333_297e-2,
        -2.777_777_777_287_755_4e-3,
        7.936_505_586_430_196e-4,
        -5.951_875_574_503_4e-4,
        8.363_399_189_962_821e-4,
        -1.630_929_340_965_752_7e-3,
    ];
    let z = 1.0 / x;
    let y = z * z;
    let w = W[0] + z * (W[1] + y * (W[2] + y * (W[3] + y * (W[4] + y * (W[5] + y * W[6])))));
    (x - 0.5) * (ln(x) - 1.0) + w
}

/// ln x for a normal x > 0: that of fdlibm (`e_log.c`), its exponent and mantissa taken apart without leaving vectors.
#[inline(always)]
pub(crate) fn ln(x: f64) -> f64 {
    const SQRT_HALF: u64 = 0x3fe6_a09e;
    const ONE: u64 = 0x3ff0_0000;
    const TWO_52: u64 = 0x4330_0000_0000_0000;
    const L: [f64; 7] = [
        6.666_666_666_666_735e-1,
        3.999_999_999_940_942e-1,
        2.857_142_874_366_239e-1,
        2.222_219_843_214_978_4e-1,
        1.818_357_216_161_805e-1,
        1.531_383_769_920_937_3e-1,
        1.479_819_860_511_658_6e-1,
    ];
    // x = 2^k · m with m in [√½, √2)
    let high = (x.to_bits() >> 32) + (ONE - SQRT_HALF);
    let k = f64::from_bits(TWO_52 | (high >> 20)) - (f64::from_bits(TWO_52) + 1023.0);
    let mantissa = (((high & 0xf_ffff) + SQRT_HALF) << 32) | (x.to_bits() & 0xffff_ffff);
    let f = f64::from_bits(mantissa) - 1.0;
    let half_square = 0.5 * f * f;
    let s = f / (2.0 + f);
    let z = s * s;
    let w = z * z;
    let even = w * (L[1] + w * (L[3] + w * L[5]));
    let odd = z * (L[0] + w * (L[2] + w * (L[4] + w * L[6])));
    s * (half_square + (odd + even)) + k * special::LN_2_LOW - half_square + f + k * special::LN_2_HIGH
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Arguments of all sizes, in runs of alike ones and mixed.
    fn arguments() -> Vec<f64> {
        let steps = |from: f64, by: f64, n: u32| (0..n).map(move |at| from * by.powi(at as i32));
        let mut all: Vec<f64> = steps(1e-12, 1.000_7, 100_000).collect();
        all.extend(steps(8.0, 1.000_1, 200_001));
        all.extend(
            (0..5_000).map(|at| if at % 3 == 0 { 0.3 + f64::from(at) } else { 1.0 + 1e-4 * f64::from(at) }),
        );
        all.extend([
            7.999_999_999_999_999,
            8.0,
            9.999_999_999_999_998,
            10.0,
            1.0,
            2.0,
            1e-310,
            1e-300,
            1e300,
            1e17,
            3e17,
        ]);
        all.extend([f64::INFINITY, f64::MIN_POSITIVE, 5e-324, f64::NAN, 0.0]);
        all
    }

    #[test]
    fn bits_are_those_of_single_calls() {
        type Function = (&'static str, fn(&mut [f64]), fn(f64) -> f64);
        let functions: [Function; 3] = [
            ("digamma", digamma_each, special::digamma),
            ("trigamma", trigamma_each, special::trigamma),
            ("ln_gamma", ln_gamma_each, special::ln_gamma),
        ];
        for (name, each, single) in functions {
            let arguments = arguments();
            let mut found = arguments.clone();
            each(&mut found);
            for (x, found) in arguments.into_iter().zip(found) {
                let expected = single(x);
                let same = found.to_bits() == expected.to_bits() || (found.is_nan() && expected.is_nan());
                assert!(same, "{name}({x:e}) = {found:e}, expected {expected:e}");
            }
        }
    }

    #[test]
    fn logarithms_and_betas_are_those_of_single_calls() {
        let arguments: Vec<f64> = arguments().into_iter().filter(|x| x.is_normal()).collect();
        for &x in &arguments {
            assert_eq!(ln(x).to_bits(), special::ln(x).to_bits(), "ln {x:e}");
        }
        let ys: Vec<f64> = arguments.iter().rev().copied().collect();
        let mut found = arguments.clone();
        ln_beta_each(&mut found, &ys);
        for ((x, y), found) in arguments.into_iter().zip(ys).zip(found) {
            assert_eq!(found.to_bits(), special::ln_beta(x, y).to_bits(), "ln B({x:e}, {y:e})");
        }
    }
}
