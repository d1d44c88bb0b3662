//! The Pitman–Yor Chinese restaurant (Pitman 1995; Johnson, Griffiths & Goldwater 2007, §3).
//!
//! With n customers at m tables, discount d and concentration c, the next customer joins table k, which has n_k customers, with
//! probability (n_k − d) / (n + c), and opens a table with probability (m·d + c) / (n + c). Seatings are exchangeable: their probability
//! does not depend on the order of the customers.

use serde::{Deserialize, Serialize};

use super::special::{ln, ln_rising};

/// Discount and concentration of a Pitman–Yor process.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
pub struct Hyper {
    /// d, 0 ≤ d < 1; with 0 it is a Dirichlet process.
    pub discount: f64,
    /// c > 0.
    pub concentration: f64,
}

/// Numbers of customers and tables of a restaurant. The caller keeps the customers of each table.
///
/// ```
/// use grammaton::num::pitman_yor::{Hyper, Restaurant};
///
/// let mut restaurant = Restaurant::new(Hyper { discount: 0.5, concentration: 1.0 });
/// let mut table = 0;
/// assert_eq!(restaurant.predict(table), 1.0);
/// restaurant.seat(&mut table);
/// assert_eq!((restaurant.predict(table), restaurant.predict(0)), (0.25, 0.75));
/// ```
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Restaurant {
    /// Parameters of the process.
    pub hyper: Hyper,
    /// n, the customers of all tables.
    pub customers: u32,
    /// m, the tables that have customers.
    pub tables: u32,
}

impl Restaurant {
    /// A restaurant without customers.
    pub fn new(hyper: Hyper) -> Restaurant {
        Restaurant { hyper, customers: 0, tables: 0 }
    }

    /// The probability that the next customer sits at a certain table that has `customers`, or opens a table if this is 0.
    #[inline]
    pub fn predict(&self, customers: u32) -> f64 {
        if customers == 0 { self.opens() } else { self.share(customers) / self.total() }
    }

    /// The probability that the next customer opens a table.
    #[inline]
    pub fn opens(&self) -> f64 {
        self.opening_share() / self.total()
    }

    /// m·d + c, the share of a new table in [`Restaurant::total`].
    #[inline]
    pub fn opening_share(&self) -> f64 {
        f64::from(self.tables) * self.hyper.discount + self.hyper.concentration
    }

    /// n_k − d, the share of a table that has `customers` in [`Restaurant::total`].
    #[inline]
    pub fn share(&self, customers: u32) -> f64 {
        f64::from(customers) - self.hyper.discount
    }

    /// n + c, the sum of all shares.
    #[inline]
    pub fn total(&self) -> f64 {
        f64::from(self.customers) + self.hyper.concentration
    }

    /// Seats a customer at a table that has `customers`; the first customer opens it.
    #[inline]
    pub fn seat(&mut self, customers: &mut u32) {
        self.tables += u32::from(*customers == 0);
        *customers += 1;
        self.customers += 1;
    }

    /// Removes a customer from a table that has `customers`; the last customer closes it.
    #[inline]
    pub fn unseat(&mut self, customers: &mut u32) {
        *customers -= 1;
        self.customers -= 1;
        self.tables -= u32::from(*customers == 0);
    }

    /// ln of the probability of the seating. `sizes` lists (customers of a table, number of tables of this size):
    /// Π_{k<m} (c + k·d) / Π_{j<n} (c + j) · Π_k Π_{0<j<n_k} (j − d).
    pub fn log_joint(&self, sizes: &[(u32, u32)]) -> f64 {
        let Hyper { discount, concentration } = self.hyper;
        let m = self.tables;
        let opened = if discount * 1e15 > concentration {
            f64::from(m) * ln(discount) + ln_rising(concentration / discount, m)
        } else {
            f64::from(m) * ln(concentration)
        };
        let joined = |&(size, n): &(u32, u32)| f64::from(n) * ln_rising(1.0 - discount, size - 1);
        opened - ln_rising(concentration, self.customers) + sizes.iter().map(joined).sum::<f64>()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HYPERS: [Hyper; 4] = [
        Hyper { discount: 0.0, concentration: 3.0 },
        Hyper { discount: 0.5, concentration: 1.0 },
        Hyper { discount: 0.9, concentration: 0.01 },
        Hyper { discount: 1e-18, concentration: 100.0 },
    ];

    /// All seatings of `n` customers, as the table of each customer, in order of arrival.
    fn seatings(n: usize) -> Vec<Vec<usize>> {
        (0..n).fold(vec![vec![]], |shorter, _| {
            let longer = |seating: Vec<usize>| {
                let tables = seating.iter().max().map_or(0, |last| last + 1);
                (0..=tables).map(move |table| [&seating[..], &[table]].concat())
            };
            shorter.into_iter().flat_map(longer).collect()
        })
    }

    /// The product of the predictions, and the restaurant with the customers of each table at the end.
    fn seat_all(hyper: Hyper, seating: &[usize]) -> (f64, Restaurant, Vec<u32>) {
        let (mut restaurant, mut tables, mut product) = (Restaurant::new(hyper), vec![0; seating.len()], 1.0);
        for &table in seating {
            product *= restaurant.predict(tables[table]);
            restaurant.seat(&mut tables[table]);
        }
        (product, restaurant, tables)
    }

    #[test]
    fn seatings_sum_to_one_and_agree_with_the_closed_form() {
        for hyper in HYPERS {
            let mut sum = 0.0;
            for seating in seatings(7) {
                let (product, restaurant, tables) = seat_all(hyper, &seating);
                let sizes: Vec<_> = tables.into_iter().filter(|&n| n > 0).map(|n| (n, 1)).collect();
                let log_joint = restaurant.log_joint(&sizes);
                assert!(
                    (ln(product) - log_joint).abs() < 1e-9,
                    "{seating:?}: {} and {log_joint}",
                    ln(product)
                );
                sum += product;
            }
            assert!((sum - 1.0).abs() < 1e-12, "{hyper:?}: {sum}");
        }
    }

    #[test]
    fn unseating_undoes_seating() {
        for hyper in HYPERS {
            for seating in seatings(6) {
                let (_, mut restaurant, mut tables) = seat_all(hyper, &seating);
                for &table in &seating {
                    restaurant.unseat(&mut tables[table]);
                }
                assert_eq!((restaurant, tables), (Restaurant::new(hyper), vec![0; 6]));
            }
        }
    }
}
