//! Slice sampling of the discounts and concentrations, given the seating (Neal 2003, Fig. 3 and 5).
//!
//! A discount of 0 is a Dirichlet process, and stays. A concentration moves on the scale of its logarithm, as its prior may be spread
//! over many orders of magnitude.

use rand_pcg::Pcg64Mcg;

use super::prior::HyperPrior;
use super::seating::Seating;
use crate::num::pitman_yor::Restaurant;
use crate::num::random::uniform;
use crate::num::special::{exp, ln};
use crate::stop;

/// Number of draws of each hyper-parameter in turn.
const PASSES: usize = 10;
/// First guess of the width of a slice.
const WIDTH: f64 = 1.0;
/// Bounds of the discounts that are drawn.
const DISCOUNTS: (f64, f64) = (1e-6, 1.0 - 1e-6);
/// Bounds of ln c: c from 1e-9 to 1e9.
const LN_CONCENTRATIONS: (f64, f64) = (-20.72, 20.72);

impl Seating<'_> {
    /// Draws the hyper-parameters of every process from their joint probability with all else, to the power `power`.
    pub fn draw_hyper(&mut self, prior: &HyperPrior, power: f64, random: &mut Pcg64Mcg) {
        let sizes = self.sizes();
        for (restaurant, sizes) in self.restaurants.iter_mut().zip(&sizes) {
            draw_hyper(restaurant, sizes, prior, power, random);
        }
        self.share_out();
    }
}

/// Draws the hyper-parameters of a restaurant whose tables have `sizes`.
fn draw_hyper(
    restaurant: &mut Restaurant,
    sizes: &[(u32, u32)],
    prior: &HyperPrior,
    power: f64,
    random: &mut Pcg64Mcg,
) {
    for _ in 0..PASSES {
        stop::check();
        let mut drawn = *restaurant;
        let of_concentration = |x| {
            drawn.hyper.concentration = exp(x);
            // dc = c d(ln c)
            power * (drawn.log_joint(sizes) + prior.ln_density(exp(x))) + x
        };
        let x = ln(restaurant.hyper.concentration);
        restaurant.hyper.concentration = exp(slice(x, LN_CONCENTRATIONS, of_concentration, random));
        if restaurant.hyper.discount > 0.0 {
            let mut drawn = *restaurant;
            let of_discount = |discount| {
                drawn.hyper.discount = discount;
                power * drawn.log_joint(sizes)
            };
            restaurant.hyper.discount = slice(restaurant.hyper.discount, DISCOUNTS, of_discount, random);
        }
    }
}

/// A point after `from` under the density whose logarithm is given, within `bounds`: steps out by [`WIDTH`], then shrinks.
fn slice(
    from: f64,
    bounds: (f64, f64),
    mut ln_density: impl FnMut(f64) -> f64,
    random: &mut Pcg64Mcg,
) -> f64 {
    let from = from.clamp(bounds.0, bounds.1);
    let level = ln_density(from) + ln(1.0 - uniform(random));
    let mut low = from - WIDTH * uniform(random);
    let mut high = low + WIDTH;
    while low > bounds.0 && ln_density(low) > level {
        low -= WIDTH;
    }
    while high < bounds.1 && ln_density(high) > level {
        high += WIDTH;
    }
    (low, high) = (low.max(bounds.0), high.min(bounds.1));
    loop {
        let point = low + (high - low) * uniform(random);
        if ln_density(point) >= level {
            return point;
        }
        if point < from {
            low = point;
        } else {
            high = point;
        }
        if high - low <= 1e-12 * from.abs().max(1e-12) {
            return from; // what is left of the slice is `from`
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::models::sampler::Hyper;
    use crate::num::random::stream;

    #[test]
    fn generating_hyper_parameters_are_recovered() {
        let mut random = stream(2, 0, 0);
        for (discount, concentration) in [(0.5, 10.0), (0.8, 0.5)] {
            let mut restaurant = Restaurant::new(Hyper { discount, concentration });
            let mut tables = vec![];
            for _ in 0..20_000 {
                let mut left = uniform(&mut random) - restaurant.predict(0);
                let opens_one = left < 0.0;
                let mut joins = |&customers: &u32| {
                    left -= restaurant.predict(customers);
                    left < 0.0
                };
                let joined = if opens_one { None } else { tables.iter().position(&mut joins) };
                let table = joined.unwrap_or(tables.len());
                tables.resize(tables.len().max(table + 1), 0);
                restaurant.seat(&mut tables[table]);
            }
            let sizes: Vec<(u32, u32)> = tables.iter().map(|&customers| (customers, 1)).collect();
            restaurant.hyper = Hyper { discount: 0.1, concentration: 1.0 };
            let prior = HyperPrior { shape: 1.0, scale: 100.0 };
            let (mut mean, rounds) = (0.0, 20);
            for _ in 0..rounds {
                draw_hyper(&mut restaurant, &sizes, &prior, 1.0, &mut random);
                mean += restaurant.hyper.discount / f64::from(rounds);
            }
            assert!((mean - discount).abs() < 0.05, "discount {mean}, seated with {discount}");
        }
    }

    #[test]
    fn slices_follow_the_density() {
        // Gamma(3, 1) on (0, 60): mean 3, variance 3.
        let mut random = stream(3, 0, 0);
        let (mut x, mut sum, mut square, n) = (1.0, 0.0, 0.0, 40_000);
        for _ in 0..n {
            x = slice(x, (1e-9, 60.0), |x| 2.0 * ln(x) - x, &mut random);
            sum += x;
            square += x * x;
        }
        let mean = sum / f64::from(n);
        let variance = square / f64::from(n) - mean * mean;
        assert!(
            (mean - 3.0).abs() < 0.05 && (variance - 3.0).abs() < 0.15,
            "mean {mean}, variance {variance}"
        );
    }

    #[test]
    fn bounds_hold() {
        let mut random = stream(4, 0, 0);
        let mut x = 0.5;
        let mut sum = 0.0;
        for _ in 0..20_000 {
            x = slice(x, (0.0, 1.0), |_| 0.0, &mut random);
            assert!((0.0..=1.0).contains(&x));
            sum += x;
        }
        assert!((sum / 2e4 - 0.5).abs() < 0.01, "mean {}", sum / 2e4);
    }
}
