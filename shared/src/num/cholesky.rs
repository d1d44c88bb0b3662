//! Cholesky factors of small symmetric matrices, in plain loops of a fixed order.
//!
//! Own code, because the bits must be the same on every machine: libraries of linear algebra choose kernels, and with them the
//! order of sums, by processor. Matrices are row-major, `[n, n]`; a factor costs n³/6 products, which is little for the n < 100
//! of tag sets, once a round.

/// L with L Lᵀ = A, lower triangular.
#[derive(Clone, PartialEq, Debug)]
pub struct Cholesky {
    /// Rows of L, without what is above the diagonal: row i begins at i(i + 1)/2.
    rows: Vec<f64>,
    n: usize,
}

/// Start of row `i` in a packed triangle.
fn row(i: usize) -> usize {
    i * (i + 1) / 2
}

impl Cholesky {
    /// The factor of `matrix`, of which the lower triangle is read. `None` if a pivot (the variance of an outcome given those
    /// before it) is not above `floor`.
    pub fn new(matrix: &[f64], n: usize, floor: f64) -> Option<Cholesky> {
        let mut rows: Vec<f64> = Vec::with_capacity(row(n));
        for i in 0..n {
            for j in 0..i {
                let products = (0..j).map(|k| rows[row(i) + k] * rows[row(j) + k]);
                let rest = matrix[i * n + j] - products.sum::<f64>();
                rows.push(rest / rows[row(j) + j]);
            }
            let squares = rows[row(i)..].iter().map(|entry| entry * entry);
            let pivot = matrix[i * n + i] - squares.sum::<f64>();
            if pivot <= floor || !pivot.is_finite() {
                return None;
            }
            rows.push(pivot.sqrt());
        }
        Some(Cholesky { rows, n })
    }

    /// The diagonal of L.
    pub fn diagonal(&self) -> impl Iterator<Item = f64> {
        (0..self.n).map(|i| self.rows[row(i) + i])
    }

    /// The diagonal of A⁻¹ = L⁻ᵀ L⁻¹: the sums of squares of the columns of L⁻¹. `[n]`
    pub fn inverse_diagonal(&self) -> Vec<f64> {
        let mut column = vec![0.0; self.n];
        let square_of_column = |j: usize| {
            // L x = e_j, whose first j entries are 0
            for i in j..self.n {
                let start = row(i);
                let products = (j..i).map(|k| self.rows[start + k] * column[k]);
                let right = if i == j { 1.0 } else { 0.0 };
                column[i] = (right - products.sum::<f64>()) / self.rows[start + i];
            }
            column[j..].iter().map(|entry| entry * entry).sum()
        };
        (0..self.n).map(square_of_column).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_matrix_factored_by_hand() {
        // L = (2; 1 3; −1 2 0.5)
        let matrix = [4.0, 2.0, -2.0, 2.0, 10.0, 5.0, -2.0, 5.0, 5.25];
        let factor = Cholesky::new(&matrix, 3, 0.0).unwrap();
        assert_eq!(factor.rows, [2.0, 1.0, 3.0, -1.0, 2.0, 0.5]);
        assert_eq!(factor.diagonal().collect::<Vec<_>>(), [2.0, 3.0, 0.5]);
        // cofactors over |A| = 9
        let expected = [27.5 / 9.0, 17.0 / 9.0, 36.0 / 9.0];
        for (found, expected) in factor.inverse_diagonal().iter().zip(expected) {
            assert!((found - expected).abs() < 1e-14, "{found}, expected {expected}");
        }
    }

    #[test]
    fn matrices_that_are_not_positive_definite_have_no_factor() {
        let singular = [1.0, 1.0, 1.0, 1.0];
        assert_eq!(Cholesky::new(&singular, 2, 0.0), None);
        assert_eq!(Cholesky::new(&[1.0, 0.0, 0.0, 1e-12], 2, 1e-10), None);
        assert_eq!(Cholesky::new(&[f64::NAN], 1, 0.0), None);
        assert_eq!(Cholesky::new(&[f64::INFINITY], 1, 0.0), None);
    }
}
