//! Loops over rows of numbers, for matrices held as rows one after the other.
//!
//! Sums have a fixed order, so results are the same on every machine.

/// Σ a_j b_j, as four sums side by side.
pub fn dot(a: &[f64], b: &[f64]) -> f64 {
    let mut sums = [0.0; 4];
    let (a, b) = (a.chunks_exact(4), b.chunks_exact(4));
    let rest: f64 = a.remainder().iter().zip(b.remainder()).map(|(a, b)| a * b).sum();
    for (a, b) in a.zip(b) {
        for lane in 0..4 {
            sums[lane] += a[lane] * b[lane];
        }
    }
    (sums[0] + sums[1]) + (sums[2] + sums[3]) + rest
}

/// Adds `factor` times `row` to `sums`.
pub fn add(factor: f64, row: &[f64], sums: &mut [f64]) {
    sums.iter_mut().zip(row).for_each(|(sum, entry)| *sum += factor * entry);
}
