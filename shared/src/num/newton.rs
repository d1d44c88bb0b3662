//! Newton steps that go uphill.

use std::ops::RangeInclusive;

/// One Newton step up a concave objective from `x` within `limits`, given its slope and curvature: at most to a quarter or four
/// times of it, and halved until it does not go beyond the top, which makes it a step uphill. A start outside of the limits
/// moves them.
pub fn ascend(x: f64, limits: RangeInclusive<f64>, slopes: impl Fn(f64) -> (f64, f64)) -> f64 {
    let (low, high) = (limits.start().min(x), limits.end().max(x));
    let reach = 3.0 * x.max(0.01);
    let (slope, curvature) = slopes(x);
    let newton = if curvature < 0.0 { -slope / curvature } else { slope.signum() * reach };
    let mut step = newton.clamp(-0.75 * x, reach).clamp(low - x, high - x);
    while step.abs() > 1e-9 * x {
        if slopes(x + step).0 * slope >= 0.0 {
            return x + step;
        }
        step *= 0.5;
    }
    x
}
