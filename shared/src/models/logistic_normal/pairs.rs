//! The inner E-step of multinomials with two outcomes, as stop and continue: its optimum, from the root of a function of one number.
//!
//! Letters as in [`super::posterior`], which has the general case. Where the slopes of B in λ, ν and ζ are 0,
//!
//! ```text
//! λ = μ + Σ (x, −x)ᵀ,   x = f₁ − N p₁,   ν_j = 1 / ((Σ⁻¹)_jj + N p_j),   p₁ = 1 / (1 + e^−u),   u = λ₁ − λ₂ + (ν₁ − ν₂)/2
//! ```
//!
//! All of it follows from u, and u is the one root of
//!
//! ```text
//! G(u) = u − δ − s x − (ν₁ − ν₂)/2,   with δ = μ₁ − μ₂ and s = Σ₁₁ + Σ₂₂ − 2 Σ₁₂,
//! G′(u) = 1 + N p₁ p₂ (s + (ν₁² + ν₂²)/2) ≥ 1.
//! ```
//!
//! Newton's method finds it. A step that leaves the interval between the last places to both sides of the root goes to its middle.
//!
//! `L` multinomials are fitted side by side, one in each lane of a vector; a lane that has arrived stands still.

use std::array::from_fn;

use pulp::{Arch, NullaryFnOnce};

use crate::num::bulk::ln;
use crate::num::special::exp_each;

use super::Prior;
use super::posterior::{Lane, SideBySide};

/// A step of u, at which it has arrived and which is not taken, unless rounding is coarser; what B lacks is about the square of it.
const LAST_STEP: f64 = 1e-6;
/// Bound of a loop that ends after a few steps, and after a thousand if the prior's variance is 10³⁰⁰.
const MAX_STEPS: usize = 2000;

/// q(η) of `L` multinomials of two outcomes in one sentence.
#[derive(Clone, Debug)]
pub struct Pairs<const L: usize> {
    /// μ.
    mean: [Lane<L>; 2],
    /// Σ (1, −1)ᵀ.
    contrast: [Lane<L>; 2],
    /// (Σ⁻¹)_jj.
    precision: [Lane<L>; 2],
    ln_determinant: Lane<L>,
    /// Where the last root was.
    u: Lane<L>,
    /// x there.
    x: Lane<L>,
    /// λ, the means of η.
    lambda: [Lane<L>; 2],
    /// ν, its variances.
    nu: [Lane<L>; 2],
    ln_zeta: Lane<L>,
}

impl<const L: usize> Default for Pairs<L> {
    fn default() -> Pairs<L> {
        let (none, two) = ([0.0; L], [[0.0; L]; 2]);
        Pairs {
            mean: two,
            contrast: two,
            precision: two,
            ln_determinant: none,
            u: none,
            x: none,
            lambda: two,
            nu: two,
            ln_zeta: none,
        }
    }
}

impl<const L: usize> SideBySide<L> for Pairs<L> {
    type Scratch = ();

    fn reset(&mut self, priors: &[&Prior; L]) {
        let of = |number: fn(&Prior) -> [f64; 2]| [0, 1].map(|j| priors.map(|prior| number(prior)[j]));
        self.mean = of(|prior| [prior.mean()[0], prior.mean()[1]]);
        self.precision = of(|prior| [prior.precision()[0], prior.precision()[1]]);
        self.contrast = of(|prior| match prior.covariance() {
            [first, covariance, _, second] => [first - covariance, covariance - second],
            _ => unreachable!("priors are of two outcomes"),
        });
        self.ln_determinant = priors.map(Prior::ln_determinant);
        self.lambda = self.mean;
        self.nu = self.precision.map(|of| of.map(|precision| 1.0 / precision));
        self.u = difference(&self.mean);
        let of_variances = difference(&self.nu);
        self.u = from_fn(|lane| self.u[lane] + 0.5 * of_variances[lane]);
    }

    /// Goes to the optimum of B, in one call.
    fn climb(&mut self, counts: &[Lane<L>], _: f64, (): &mut ()) {
        Arch::new().dispatch(Climb { pairs: self, counts: [counts[0], counts[1]] });
    }

    fn lambda(&self) -> &[Lane<L>] {
        &self.lambda
    }

    fn nu(&self) -> &[Lane<L>] {
        &self.nu
    }

    fn ln_zeta(&self) -> Lane<L> {
        self.ln_zeta
    }

    fn divergence(&self) -> Lane<L> {
        let s = difference(&self.contrast);
        from_fn(|lane| {
            let [first, second] = self.nu.map(|nu| nu[lane]);
            let traces = self.precision[0][lane] * first + self.precision[1][lane] * second - 2.0;
            let distance = s[lane] * self.x[lane] * self.x[lane];
            0.5 * (self.ln_determinant[lane] - ln(first) - ln(second) + traces + distance)
        })
    }
}

/// [`Pairs::climb`] with the widest vectors of the machine. A type and no closure, which would be compiled by itself, without them.
struct Climb<'a, const L: usize> {
    pairs: &'a mut Pairs<L>,
    counts: [Lane<L>; 2],
}

impl<const L: usize> NullaryFnOnce for Climb<'_, L> {
    type Output = ();

    #[inline(always)]
    fn call(self) {
        let Climb { pairs, counts } = self;
        pairs.find_root(&counts);
        pairs.fit_zeta();
    }
}

impl<const L: usize> Pairs<L> {
    #[inline(always)]
    fn find_root(&mut self, counts: &[Lane<L>; 2]) {
        let (delta, s) = (difference(&self.mean), difference(&self.contrast));
        let (mut low, mut high) = ([f64::NEG_INFINITY; L], [f64::INFINITY; L]);
        for _ in 0..MAX_STEPS {
            let [first, second] = shares(&self.u);
            let mut are_there = true;
            for lane in 0..L {
                let (u, s, p, q) = (self.u[lane], s[lane], first[lane], second[lane]);
                let [of_first, of_second] = counts.map(|counts| counts[lane]);
                let events = [(of_first + of_second) * p, (of_first + of_second) * q];
                let nu = [0, 1].map(|j| 1.0 / (self.precision[j][lane] + events[j]));
                let distance = u - delta[lane] - 0.5 * (nu[0] - nu[1]);
                // f₁ − N p₁
                let x = of_first * q - of_second * p;
                let value = distance - s * x;
                // N p q ν², in an order in which no factor is beyond an f64
                let bend = (events[0] * nu[0]) * (q * nu[0]) + (events[1] * nu[1]) * (p * nu[1]);
                let step = value / (1.0 + events[0] * q * s + 0.5 * bend);
                let is_there = step.abs() <= LAST_STEP.max(f64::EPSILON * u.abs());
                are_there &= is_there;
                // at the root both are the same; beside it one is nearer to x there
                self.x[lane] = if s > 1.0 { distance / s } else { x };
                [self.nu[0][lane], self.nu[1][lane]] = nu;
                low[lane] = if value > 0.0 { low[lane] } else { u };
                high[lane] = if value > 0.0 { u } else { high[lane] };
                let next = u - step;
                let is_between = low[lane] < next && next < high[lane];
                let next = if is_between { next } else { 0.5 * (low[lane] + high[lane]) };
                self.u[lane] = if is_there { u } else { next };
            }
            if are_there {
                break;
            }
        }
        for (lambda, (mean, contrast)) in self.lambda.iter_mut().zip(self.mean.iter().zip(&self.contrast)) {
            *lambda = from_fn(|lane| mean[lane] + contrast[lane] * self.x[lane]);
        }
    }

    /// ζ given λ and ν: Σ_j e^{λ_j + ν_j/2}.
    #[inline(always)]
    fn fit_zeta(&mut self) {
        let exponents: [Lane<L>; 2] =
            from_fn(|j| from_fn(|lane| self.lambda[j][lane] + 0.5 * self.nu[j][lane]));
        let mut apart = difference(&exponents).map(|apart| -apart.abs());
        exp_each(&mut apart);
        self.ln_zeta = from_fn(|lane| exponents[0][lane].max(exponents[1][lane]) + ln(1.0 + apart[lane]));
    }
}

/// p₁ = 1 / (1 + e^−u) and p₂ = 1 / (1 + e^u).
#[inline(always)]
fn shares<const L: usize>(u: &Lane<L>) -> [Lane<L>; 2] {
    let mut small = u.map(|u| -u.abs());
    exp_each(&mut small);
    let large = small.map(|small| 1.0 / (1.0 + small));
    let small: Lane<L> = from_fn(|lane| small[lane] * large[lane]);
    let of =
        |is_large: fn(f64) -> bool| from_fn(|lane| if is_large(u[lane]) { large[lane] } else { small[lane] });
    [of(|u| u > 0.0), of(|u| u <= 0.0)]
}

/// The first number less the second.
#[inline(always)]
fn difference<const L: usize>([first, second]: &[Lane<L>; 2]) -> Lane<L> {
    from_fn(|lane| first[lane] - second[lane])
}
