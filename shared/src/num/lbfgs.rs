//! Minimum of a smooth convex function of many numbers, by limited-memory BFGS (Liu & Nocedal 1989) with a backtracking line search.

use std::collections::VecDeque;

use crate::stop;

/// Steps that the curvature is estimated from.
const MEMORY: usize = 8;
/// Share of the expected decrease that a step must reach (Armijo).
const SUFFICIENT: f64 = 1e-4;
/// Halvings of a step; a step beyond them is shorter than rounding.
const HALVINGS: usize = 40;
/// Relative decrease of a step below which the minimum is found.
const TOLERANCE: f64 = 1e-7;

/// A point with the value and the gradient there.
struct Point {
    x: Vec<f64>,
    value: f64,
    gradient: Vec<f64>,
}

/// The minimum of `objective` from `start` on, after `rounds` steps at most. `objective` returns the value at its first argument, and adds the gradient
/// to its second one, which is zero before. The value never rises; the same arguments give the same bits.
///
/// ```
/// use grammaton::num::lbfgs::minimise;
///
/// // (x − 3)² + 10 (y + 1)²
/// let found = minimise(vec![0.0, 0.0], 100, |at, gradient| {
///     gradient[0] += 2.0 * (at[0] - 3.0);
///     gradient[1] += 20.0 * (at[1] + 1.0);
///     (at[0] - 3.0).powi(2) + 10.0 * (at[1] + 1.0).powi(2)
/// });
/// assert!((found[0] - 3.0).abs() < 1e-3 && (found[1] + 1.0).abs() < 1e-3);
/// ```
pub fn minimise(
    start: Vec<f64>,
    rounds: usize,
    mut objective: impl FnMut(&[f64], &mut [f64]) -> f64,
) -> Vec<f64> {
    let mut evaluate = |x: Vec<f64>| {
        stop::check();
        let mut gradient = vec![0.0; x.len()];
        let value = objective(&x, &mut gradient);
        Point { x, value, gradient }
    };
    let mut at = evaluate(start);
    // Differences of neighbouring points and of their gradients.
    let mut steps: VecDeque<(Vec<f64>, Vec<f64>)> = VecDeque::new();
    for _ in 0..rounds {
        let direction = direction(&at.gradient, &steps);
        let slope = dot(&at.gradient, &direction);
        if slope >= 0.0 {
            break; // only at the minimum: the estimated curvature is positive
        }
        let lengths = (0..HALVINGS).map(|n| 0.5_f64.powi(n as i32));
        let next = lengths
            .map(|length| {
                let x = at.x.iter().zip(&direction).map(|(x, d)| x + length * d).collect();
                (length, evaluate(x))
            })
            .find(|(length, next)| next.value <= at.value + SUFFICIENT * length * slope);
        let Some((_, next)) = next else { break };
        let step = difference(&next.x, &at.x);
        let bend = difference(&next.gradient, &at.gradient);
        if dot(&step, &bend) > 0.0 {
            steps.push_back((step, bend));
            if steps.len() > MEMORY {
                steps.pop_front();
            }
        }
        let is_done = at.value - next.value <= TOLERANCE * at.value.abs().max(1.0);
        at = next;
        if is_done {
            break;
        }
    }
    at.x
}

/// The gradient times the estimated inverse curvature, downhill (Nocedal's two loops).
fn direction(gradient: &[f64], steps: &VecDeque<(Vec<f64>, Vec<f64>)>) -> Vec<f64> {
    let mut direction: Vec<f64> = gradient.iter().map(|slope| -slope).collect();
    let mut shares = Vec::with_capacity(steps.len());
    for (step, bend) in steps.iter().rev() {
        let share = dot(step, &direction) / dot(step, bend);
        add(&mut direction, -share, bend);
        shares.push(share);
    }
    let scale = match steps.back() {
        Some((step, bend)) => dot(step, bend) / dot(bend, bend),
        None => 1.0 / dot(gradient, gradient).sqrt().max(1.0),
    };
    direction.iter_mut().for_each(|d| *d *= scale);
    for ((step, bend), share) in steps.iter().zip(shares.into_iter().rev()) {
        let back = dot(bend, &direction) / dot(step, bend);
        add(&mut direction, share - back, step);
    }
    direction
}

fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

fn add(to: &mut [f64], times: f64, what: &[f64]) {
    to.iter_mut().zip(what).for_each(|(to, what)| *to += times * what);
}

fn difference(a: &[f64], b: &[f64]) -> Vec<f64> {
    a.iter().zip(b).map(|(a, b)| a - b).collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// Law: of a convex function, Σ log(1 + exp(aᵢ·x)) + ½ |x|², the gradient at what is found is nearly zero, and no value on the way is above one
        /// before it.
        #[test]
        fn the_gradient_is_zero_at_the_minimum(
            rows in prop::collection::vec(prop::collection::vec(-4.0..4.0_f64, 5), 1..12),
            start in prop::collection::vec(-9.0..9.0_f64, 5),
        ) {
            let objective = |x: &[f64], gradient: &mut [f64]| {
                add(gradient, 1.0, x);
                let mut value = 0.5 * dot(x, x);
                for row in &rows {
                    let score = dot(row, x);
                    value += score.max(0.0) + libm::log1p(libm::exp(-score.abs()));
                    add(gradient, 1.0 / (1.0 + libm::exp(-score)), row);
                }
                value
            };
            let first = objective(&start, &mut [0.0; 5]);
            let found = minimise(start, 500, objective);
            let mut gradient = vec![0.0; 5];
            prop_assert!(objective(&found, &mut gradient) <= first);
            prop_assert!(dot(&gradient, &gradient).sqrt() < 0.05, "{gradient:?}");
        }
    }
}
