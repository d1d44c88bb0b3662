//! The inner E-step: q(η) of multinomials in one sentence, given the expected counts of their outcomes.
//!
//! q(η) = N(λ, diag ν). With f the counts, N = Σ f and p_j = e^{λ_j + ν_j/2} / ζ, the bound of Cohen, Gimpel & Smith (2008, Eqs. 7
//! and 8) is, as far as it depends on one multinomial,
//!
//! ```text
//! B(λ, ν, ζ) = Σ_j f_j (λ_j − ln ζ + 1 − Σ_i p_i) − KL(N(λ, diag ν) ‖ N(μ, Σ))
//! ```
//!
//! It is concave in λ, in each ν_j, and largest over ζ at Σ_j e^{λ_j + ν_j/2}, where Σ p = 1 and B = Σ f·λ − N ln ζ − KL, which is
//! concave in λ and ν together: there is one optimum, wherever one starts. [`Posteriors`] goes λ, ζ, ν, ζ, as Appendix A does:
//!
//! - λ by conjugate gradients with Σ as the preconditioner. The Hessian then is −(I + N Σ^½ diag(p) Σ^½), the identity and
//!   something small, since a sentence has few events of a multinomial. Few steps are enough; each costs one product with Σ, and none
//!   needs Σ⁻¹, which an ill-conditioned Σ would spoil. Newton's method would factor a new matrix, [n, n], at every step.
//! - ν_j by Newton's method. The left side of ν_j ((Σ⁻¹)_jj + N p_j(ν_j)) = 1 is convex and rising in ν_j, and at least 1 at the
//!   prior's variance 1/(Σ⁻¹)_jj. So steps that stay below that converge, from above once they are there. Where p_j could grow by
//!   orders of magnitude on the way, logarithms of the equation are taken first (`variance_from_afar`).
//!
//! Counts change from call to call, so a call need not end at the optimum: a step of λ that gained little is its last. Multinomials with
//! two outcomes have a shorter way, to the optimum itself ([`super::pairs`]).
//!
//! **Lanes.** A sentence has dozens of multinomials with few outcomes each, most of them two: too few to fill a vector. So `L` multinomials
//! of as many outcomes climb side by side, one in each lane, and the inner loops run over lanes. A lane that has arrived stands still
//! until all have: its result does not depend on its neighbours.
//!
//! No allocation once the vectors have grown. The order of sums is fixed.

use std::array::from_fn;

use pulp::{Arch, NullaryFnOnce};

use crate::num::Wide;
use crate::num::special::{exp, exp_each, ln};
use crate::stop;

use super::Prior;

/// A step of λ that promises less, in nats an event, is not taken.
const LEAST_GAIN: f64 = 1e-14;
/// Share of what the slope promises that a step must gain (Armijo's rule).
const ARMIJO: f64 = 1e-4;
/// ν to begin with, in every outcome.
const FIRST_NU: f64 = 10.0;
/// Variance of a prior from which ν is sought by logarithms first.
const LARGE_VARIANCE: f64 = 16.0;
/// A step of ν, as a share of it, after which it has arrived: what is left is about the square of it, and what B lacks the fourth
/// power.
const LAST_STEP: f64 = 1e-2;
/// Bounds of loops that end long before.
const MAX_STEPS: usize = 200;
const MAX_HALVINGS: usize = 40;

/// A number for each of `L` multinomials.
pub type Lane<const L: usize> = [f64; L];

/// Posteriors of `L` multinomials of as many outcomes in one sentence. The result for one does not depend on the others.
pub trait SideBySide<const L: usize>: Default {
    /// Memory for [`Self::climb`], used again and again.
    type Scratch: Default;

    /// Posteriors without events. The priors are of as many outcomes.
    fn reset(&mut self, priors: &[&Prior; L]);

    /// Raises B towards its optimum, given expected counts of the outcomes, `[n]`, until steps gain less than `least_gain` nats an event.
    ///
    /// B never falls, so if one call follows another as counts change, the bound of the sentence rises steadily.
    fn climb(&mut self, counts: &[Lane<L>], least_gain: f64, scratch: &mut Self::Scratch);

    /// λ, the means of η. `[n]`
    fn lambda(&self) -> &[Lane<L>];

    /// ν, the variances of η. `[n]`
    fn nu(&self) -> &[Lane<L>];

    /// The log weights to parse with are λ less this: ln φ_j = λ_j − ln ζ (Eq. 7 at the best ζ).
    fn ln_zeta(&self) -> Lane<L>;

    /// KL(N(λ, diag ν) ‖ N(μ, Σ)).
    fn divergence(&self) -> Lane<L>;
}

/// q(η) of `L` multinomials of any number of outcomes.
#[derive(Clone, Debug)]
pub struct Posteriors<const L: usize> {
    /// μ. `[n]`
    mean: Vec<Lane<L>>,
    /// Σ, by row. `[n, n]`
    covariance: Vec<Lane<L>>,
    /// (Σ⁻¹)_jj. `[n]`
    precision: Vec<Lane<L>>,
    ln_determinant: Lane<L>,
    /// λ, the means of η. `[n]`
    lambda: Vec<Lane<L>>,
    /// ν, its variances. `[n]`
    nu: Vec<Lane<L>>,
    ln_zeta: Lane<L>,
    /// Σ⁻¹ (λ − μ). `[n]`
    precision_residual: Vec<Lane<L>>,
    /// p. `[n]`
    shares: Vec<Lane<L>>,
}

/// Memory for the fits of posteriors, used again and again.
#[derive(Clone, Debug)]
pub struct Scratch<const L: usize> {
    /// ∂B/∂λ. `[n]`
    gradient: Vec<Lane<L>>,
    /// Σ · gradient. `[n]`
    ascent: Vec<Lane<L>>,
    /// Direction of λ, and Σ⁻¹ times it. `[n]` each
    direction: Vec<Lane<L>>,
    precision_direction: Vec<Lane<L>>,
    /// λ where a step leads, and p there. `[n]` each
    trial: Vec<Lane<L>>,
    trial_shares: Vec<Lane<L>>,
}

/// [`Posteriors::climb`] with the widest vectors of the machine. A type and no closure, which would be compiled by itself, without them.
struct Climb<'a, const L: usize> {
    posteriors: &'a mut Posteriors<L>,
    counts: &'a [Lane<L>],
    least_gain: f64,
    scratch: &'a mut Scratch<L>,
}

impl<const L: usize> NullaryFnOnce for Climb<'_, L> {
    type Output = ();

    #[inline(always)]
    fn call(self) {
        let Climb { posteriors, counts, least_gain, scratch } = self;
        let n_events = sum(counts);
        posteriors.climb_lambda(counts, n_events, least_gain, scratch);
        posteriors.fit_zeta();
        posteriors.climb_nu(n_events, scratch);
        posteriors.fit_zeta();
    }
}

impl<const L: usize> Default for Posteriors<L> {
    fn default() -> Posteriors<L> {
        let none = Vec::new;
        Posteriors {
            mean: none(),
            covariance: none(),
            precision: none(),
            ln_determinant: [0.0; L],
            lambda: none(),
            nu: none(),
            ln_zeta: [0.0; L],
            precision_residual: none(),
            shares: none(),
        }
    }
}

impl<const L: usize> Default for Scratch<L> {
    fn default() -> Scratch<L> {
        let none = Vec::new;
        Scratch {
            gradient: none(),
            ascent: none(),
            direction: none(),
            precision_direction: none(),
            trial: none(),
            trial_shares: none(),
        }
    }
}

impl<const L: usize> SideBySide<L> for Posteriors<L> {
    type Scratch = Scratch<L>;

    /// Where [`Self::climb`] begins in a sentence: ν = 10, and ζ at its best for λ = 0, as in JDageem. λ itself, which is fitted first,
    /// begins at μ.
    fn reset(&mut self, priors: &[&Prior; L]) {
        let n = priors[0].n_outcomes();
        interleave(&mut self.mean, priors.map(Prior::mean));
        interleave(&mut self.covariance, priors.map(Prior::covariance));
        interleave(&mut self.precision, priors.map(Prior::precision));
        self.ln_determinant = priors.map(Prior::ln_determinant);
        self.lambda.clone_from(&self.mean);
        refill(&mut self.precision_residual, n, 0.0);
        refill(&mut self.nu, n, FIRST_NU);
        self.ln_zeta = [ln(n as f64) + 0.5 * FIRST_NU; L];
        refill(&mut self.shares, n, 0.0);
        write_shares(&self.lambda, &self.nu, self.ln_zeta, &mut self.shares);
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
        let mut sum = self.ln_determinant;
        for j in 0..self.nu.len() {
            for (lane, sum) in sum.iter_mut().enumerate() {
                let distance = self.precision_residual[j][lane] * (self.lambda[j][lane] - self.mean[j][lane]);
                *sum += distance + self.precision[j][lane] * self.nu[j][lane] - 1.0;
            }
        }
        // Σ ln ν, by one logarithm
        from_fn(|lane| {
            let variances = Wide::product(self.nu.iter().map(|nu| Wide::from_f64(nu[lane])));
            0.5 * (sum[lane] - variances.ln())
        })
    }

    fn climb(&mut self, counts: &[Lane<L>], least_gain: f64, scratch: &mut Scratch<L>) {
        scratch.resize(self.mean.len());
        Arch::new().dispatch(Climb { posteriors: self, counts, least_gain, scratch });
    }
}

impl<const L: usize> Posteriors<L> {
    /// ζ given λ and ν: Σ_j e^{λ_j + ν_j/2}, with which shares sum to one. Found from the largest term, for all may be beyond an `f64`.
    #[inline(always)]
    fn fit_zeta(&mut self) {
        let mut largest = [f64::NEG_INFINITY; L];
        for (lambda, nu) in self.lambda.iter().zip(&self.nu) {
            largest = from_fn(|lane| -least(-largest[lane], -lambda[lane] - 0.5 * nu[lane]));
        }
        write_shares(&self.lambda, &self.nu, largest, &mut self.shares);
        let sum = sum(&self.shares);
        for share in &mut self.shares {
            *share = from_fn(|lane| share[lane] / sum[lane]);
        }
        self.ln_zeta = from_fn(|lane| largest[lane] + ln(sum[lane]));
    }

    /// λ given ν and ζ, by conjugate gradients (Polak & Ribière).
    #[inline(always)]
    fn climb_lambda(
        &mut self,
        counts: &[Lane<L>],
        n_events: Lane<L>,
        least_gain: f64,
        scratch: &mut Scratch<L>,
    ) {
        let mut before = [0.0; L];
        let mut is_moving = [true; L];
        scratch.direction.fill([0.0; L]);
        scratch.precision_direction.fill([0.0; L]);
        for _ in 0..MAX_STEPS {
            // ∂B/∂λ = f − N p − Σ⁻¹ (λ − μ) (Appendix A, corrected as `docs/MATHS.md` says)
            let slopes = counts.iter().zip(&self.shares).zip(&self.precision_residual);
            for (gradient, ((count, share), residual)) in scratch.gradient.iter_mut().zip(slopes) {
                *gradient = from_fn(|lane| count[lane] - n_events[lane] * share[lane] - residual[lane]);
            }
            let conjugate = dot(&scratch.gradient, &scratch.ascent);
            stop::check();
            product(&self.covariance, &scratch.gradient, &mut scratch.ascent);
            let square = dot(&scratch.gradient, &scratch.ascent);
            let mut beta_pr = [0.0; L];
            for lane in 0..L {
                let beta = ((square[lane] - conjugate[lane]) / before[lane]).max(0.0);
                beta_pr[lane] = if before[lane] > 0.0 { beta } else { 0.0 };
            }
            before = square;
            blend(&scratch.ascent, beta_pr, &mut scratch.direction);
            blend(&scratch.gradient, beta_pr, &mut scratch.precision_direction);
            let slope = dot(&scratch.gradient, &scratch.direction);
            let turned: [bool; L] = from_fn(|lane| slope[lane] <= 0.0);
            let slope = from_fn(|lane| if turned[lane] { square[lane] } else { slope[lane] });
            if turned.contains(&true) {
                restart(&scratch.ascent, turned, &mut scratch.direction);
                restart(&scratch.gradient, turned, &mut scratch.precision_direction);
            }
            self.step(slope, n_events, least_gain, &mut is_moving, scratch);
            if !is_moving.contains(&true) {
                break;
            }
        }
    }

    /// Moves λ along the direction, in which B has this `slope`, to where it would be highest if it were a parabola, or half as far, and
    /// so on, until B rises. Lanes stop moving where there is little to gain.
    #[inline(always)]
    fn step(
        &mut self,
        slope: Lane<L>,
        n_events: Lane<L>,
        least_gain: f64,
        is_moving: &mut [bool; L],
        scratch: &mut Scratch<L>,
    ) {
        // p·d and p·d²
        let (mut share, mut square) = ([0.0; L], [0.0; L]);
        for (of_share, direction) in self.shares.iter().zip(&scratch.direction) {
            let moved: Lane<L> = from_fn(|lane| of_share[lane] * direction[lane]);
            share = from_fn(|lane| share[lane] + moved[lane]);
            square = from_fn(|lane| square[lane] + moved[lane] * direction[lane]);
        }
        let curvature = dot(&scratch.precision_direction, &scratch.direction);
        let sum_before = sum(&self.shares);
        let mut length = [0.0; L];
        for lane in 0..L {
            let best = slope[lane] / (curvature[lane] + n_events[lane] * square[lane]);
            is_moving[lane] &= 0.5 * slope[lane] * best >= LEAST_GAIN * (1.0 + n_events[lane]);
            length[lane] = if is_moving[lane] { best } else { 0.0 };
        }
        if !is_moving.contains(&true) {
            return;
        }
        // f·d − Σ⁻¹(λ − μ)·d
        let linear: Lane<L> = from_fn(|lane| slope[lane] + n_events[lane] * share[lane]);
        let mut has_risen = is_moving.map(|is_moving| !is_moving);
        let mut gain = [0.0; L];
        for _ in 0..MAX_HALVINGS {
            let moves = self.lambda.iter().zip(&scratch.direction);
            for (trial, (lambda, direction)) in scratch.trial.iter_mut().zip(moves) {
                *trial = from_fn(|lane| lambda[lane] + scaled(length[lane], direction[lane]));
            }
            write_shares(&scratch.trial, &self.nu, self.ln_zeta, &mut scratch.trial_shares);
            let sum_after = sum(&scratch.trial_shares);
            for lane in 0..L {
                let rise = n_events[lane] * (sum_after[lane] - sum_before[lane]);
                gain[lane] = length[lane] * (linear[lane] - 0.5 * length[lane] * curvature[lane]) - rise;
                has_risen[lane] |= gain[lane] >= ARMIJO * length[lane] * slope[lane];
            }
            if !has_risen.contains(&false) {
                break;
            }
            (0..L).for_each(|lane| length[lane] *= if has_risen[lane] { 1.0 } else { 0.5 });
        }
        for lane in 0..L {
            is_moving[lane] &= has_risen[lane];
            length[lane] = if is_moving[lane] { length[lane] } else { 0.0 };
        }
        let trials = scratch.trial.iter().zip(&scratch.trial_shares).zip(&scratch.precision_direction);
        let now = self.lambda.iter_mut().zip(&mut self.shares).zip(&mut self.precision_residual);
        for (((lambda, share), residual), ((trial, trial_share), direction)) in now.zip(trials) {
            let chosen = |lane: usize, trial: f64, now: f64| if length[lane] > 0.0 { trial } else { now };
            *lambda = from_fn(|lane| chosen(lane, trial[lane], lambda[lane]));
            *share = from_fn(|lane| chosen(lane, trial_share[lane], share[lane]));
            *residual = from_fn(|lane| residual[lane] + scaled(length[lane], direction[lane]));
        }
        for lane in 0..L {
            is_moving[lane] &= gain[lane] >= least_gain * (1.0 + n_events[lane]);
        }
    }

    /// ν given λ and ζ (Appendix A, with (Σ⁻¹)_jj where Σ_jj is printed): the ν for which ν (c + w e^{(ν − ν₀)/2}) = 1, where c is the
    /// prior's precision, ν₀ the variance now, and w what events add to the precision there.
    #[inline(always)]
    fn climb_nu(&mut self, n_events: Lane<L>, scratch: &mut Scratch<L>) {
        let Scratch { trial: first, trial_shares: growth, ascent: most, gradient: events, .. } = scratch;
        first.copy_from_slice(&self.nu);
        for (j, nu) in self.nu.iter_mut().enumerate() {
            events[j] = from_fn(|lane| n_events[lane] * self.shares[j][lane]);
            most[j] = self.precision[j].map(|precision| 1.0 / precision);
            for lane in 0..L {
                if most[j][lane] > LARGE_VARIANCE {
                    nu[lane] = variance_from_afar(self.precision[j][lane], events[j][lane], nu[lane]);
                }
            }
            *nu = from_fn(|lane| least(nu[lane], most[j][lane]));
        }
        let mut is_moving = [1.0; L];
        for _ in 0..MAX_STEPS {
            // in most sentences a step or two are taken, and the first needs no exponentials
            if self.nu == *first {
                growth.fill([1.0; L]);
            } else {
                for ((growth, nu), first) in growth.iter_mut().zip(&self.nu).zip(&*first) {
                    *growth = from_fn(|lane| exponent(nu[lane], first[lane]));
                }
                exp_each(growth.as_flattened_mut());
            }
            let mut largest = [0.0_f64; L];
            let terms = self.precision.iter().zip(&*events).zip(&*growth).zip(&*most);
            for (nu, (((precision, events), growth), most)) in self.nu.iter_mut().zip(terms) {
                let events: Lane<L> = from_fn(|lane| events[lane] * growth[lane]);
                let product: Lane<L> = from_fn(|lane| nu[lane] * (precision[lane] + events[lane]));
                // the square may be beyond an f64 where there are no events
                let bend = |nu: f64, events: f64| if events > 0.0 { 0.5 * nu * nu * events } else { 0.0 };
                let slope: Lane<L> = from_fn(|lane| product[lane] + bend(nu[lane], events[lane]));
                let step: Lane<L> = from_fn(|lane| is_moving[lane] * (product[lane] - 1.0) / slope[lane]);
                largest = from_fn(|lane| -least(-largest[lane], -step[lane].abs()));
                *nu = from_fn(|lane| least(nu[lane] - step[lane] * nu[lane], most[lane]));
            }
            is_moving = from_fn(|lane| if largest[lane] < LAST_STEP { 0.0 } else { 1.0 });
            if is_moving == [0.0; L] {
                return;
            }
        }
    }
}

/// The lesser of two numbers; the first one if either is not a number. One instruction, which [`f64::min`] is not.
#[inline(always)]
fn least(a: f64, b: f64) -> f64 {
    if b < a { b } else { a }
}

/// length · direction, and 0 along any direction if there is no length.
#[inline(always)]
fn scaled(length: f64, direction: f64) -> f64 {
    if length > 0.0 { length * direction } else { 0.0 }
}

/// The exponent by which events grow as a variance goes from `first` to `nu`, cut where an `f64` would end; a root is never there.
#[inline(always)]
fn exponent(nu: f64, first: f64) -> f64 {
    least(0.5 * (nu - first), 500.0)
}

/// The ν for which ν (c + w e^{(ν − now)/2}) = 1, from anywhere: logarithms taken, the equation is convex and rising in ln ν, so Newton's
/// method converges, from above once it is there.
fn variance_from_afar(c: f64, w: f64, now: f64) -> f64 {
    let (mut nu, mut events) = (now, w);
    for _ in 0..MAX_STEPS {
        let product = nu * (c + events);
        // of ln ν, as a share of ν the same near the root
        let slope = 1.0 + 0.5 * nu * events / (c + events);
        let is_near = (0.5..1.5).contains(&product);
        let step = if is_near { (product - 1.0) / (product * slope) } else { ln(product) / slope };
        nu *= if is_near { 1.0 - step } else { exp(-step) };
        if step.abs() < LAST_STEP {
            break;
        }
        events = w * exp(exponent(nu, now));
    }
    nu
}

impl<const L: usize> Scratch<L> {
    fn resize(&mut self, n: usize) {
        for vector in [
            &mut self.gradient,
            &mut self.ascent,
            &mut self.direction,
            &mut self.precision_direction,
            &mut self.trial,
            &mut self.trial_shares,
        ] {
            refill(vector, n, 0.0);
        }
    }
}

/// Makes `n` rows of the same number.
fn refill<const L: usize>(rows: &mut Vec<Lane<L>>, n: usize, number: f64) {
    rows.clear();
    rows.resize(n, [number; L]);
}

/// Rows of the numbers of every lane, one list a lane.
fn interleave<const L: usize>(rows: &mut Vec<Lane<L>>, lists: [&[f64]; L]) {
    rows.clear();
    rows.extend((0..lists[0].len()).map(|at| lists.map(|list| list[at])));
}

/// Writes p_j = e^{λ_j + ν_j/2} / ζ.
#[inline(always)]
fn write_shares<const L: usize>(
    lambda: &[Lane<L>],
    nu: &[Lane<L>],
    ln_zeta: Lane<L>,
    shares: &mut [Lane<L>],
) {
    for ((share, lambda), nu) in shares.iter_mut().zip(lambda).zip(nu) {
        *share = from_fn(|lane| lambda[lane] + 0.5 * nu[lane] - ln_zeta[lane]);
    }
    exp_each(shares.as_flattened_mut());
}

/// Σ a_j.
#[inline(always)]
fn sum<const L: usize>(a: &[Lane<L>]) -> Lane<L> {
    let mut sum = [0.0; L];
    a.iter().for_each(|a| sum = from_fn(|lane| sum[lane] + a[lane]));
    sum
}

/// Σ a_j b_j.
#[inline(always)]
fn dot<const L: usize>(a: &[Lane<L>], b: &[Lane<L>]) -> Lane<L> {
    let mut sum = [0.0; L];
    a.iter().zip(b).for_each(|(a, b)| sum = from_fn(|lane| sum[lane] + a[lane] * b[lane]));
    sum
}

/// Writes Σ · vector, four sums of it side by side.
#[inline(always)]
fn product<const L: usize>(covariance: &[Lane<L>], vector: &[Lane<L>], out: &mut [Lane<L>]) {
    let n = vector.len();
    for (rows, outs) in covariance.chunks(4 * n).zip(out.chunks_mut(4)) {
        if let [a, b, c, d] = outs {
            let (first, rest) = rows.split_at(n);
            let (second, rest) = rest.split_at(n);
            let (third, fourth) = rest.split_at(n);
            [*a, *b, *c, *d] = [[0.0; L]; 4];
            let entries = first.iter().zip(second).zip(third.iter().zip(fourth)).zip(vector);
            for (((first, second), (third, fourth)), entry) in entries {
                *a = from_fn(|lane| a[lane] + first[lane] * entry[lane]);
                *b = from_fn(|lane| b[lane] + second[lane] * entry[lane]);
                *c = from_fn(|lane| c[lane] + third[lane] * entry[lane]);
                *d = from_fn(|lane| d[lane] + fourth[lane] * entry[lane]);
            }
        } else {
            outs.iter_mut().zip(rows.chunks(n)).for_each(|(out, row)| *out = dot(row, vector));
        }
    }
}

/// direction ← ascent + beta pr · direction.
#[inline(always)]
fn blend<const L: usize>(ascent: &[Lane<L>], beta_pr: Lane<L>, direction: &mut [Lane<L>]) {
    for (direction, ascent) in direction.iter_mut().zip(ascent) {
        *direction = from_fn(|lane| ascent[lane] + beta_pr[lane] * direction[lane]);
    }
}

/// direction ← ascent, in lanes that have `turned`.
fn restart<const L: usize>(ascent: &[Lane<L>], turned: [bool; L], direction: &mut [Lane<L>]) {
    for (direction, ascent) in direction.iter_mut().zip(ascent) {
        (0..L).filter(|&lane| turned[lane]).for_each(|lane| direction[lane] = ascent[lane]);
    }
}
