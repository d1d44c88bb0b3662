//! The M-step of variational EM: hyper-parameters that maximise the bound with q fixed (§3, Fig. 2, corrected).
//!
//! Each moves by one Newton step a round, since q moves as well. The objectives are concave (ln Γ and ln B are convex, and
//! their arguments linear), so a step that does not pass the top raises them, and the bound never falls.

use std::ops::Range;

use super::params::{Params, Stick, groups};
use crate::grammar::Grammar;
use crate::num::blocks::{self, BLOCK};
use crate::num::bulk::{digamma_each, trigamma_each};
use crate::num::dirichlet;
use crate::num::newton::ascend;
use crate::num::special::{digamma, ln_gamma, trigamma};

/// The hyper-parameters to fit.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Fit {
    /// Concentration a of every stick.
    pub concentration: bool,
    /// Discount b of every stick.
    pub discount: bool,
    /// α of every nonterminal, scaled as a whole.
    pub alpha: bool,
}

const MAX_DISCOUNT: f64 = 0.99;
const MIN_CONCENTRATION: f64 = 1e-3;
const MAX_CONCENTRATION: f64 = 1e6;

impl Params {
    /// Moves the hyper-parameters uphill.
    pub fn fit(&mut self, grammar: &Grammar, fit: Fit) {
        for stick in self.sticks.iter_mut().filter(|stick| stick.order.len() > 1) {
            let (mut sum_e_ln_v, mut e_ln_1mv) = (0.0, Vec::with_capacity(stick.order.len()));
            stick.each_log(|e_ln_v, left| {
                sum_e_ln_v += e_ln_v;
                e_ln_1mv.push(left);
            });
            if fit.concentration {
                stick.fit_concentration(&e_ln_1mv);
            }
            if fit.discount {
                stick.fit_discount(sum_e_ln_v, &e_ln_1mv);
            }
        }
        if fit.alpha {
            for rules in groups(grammar).filter(|rules| rules.len() > 1) {
                let scale = dirichlet::scale(&self.alpha[rules.clone()], &self.tau[rules.clone()]);
                self.alpha[rules].iter_mut().for_each(|alpha| *alpha *= scale);
            }
        }
    }
}

impl Stick {
    fn fit_concentration(&mut self, e_ln_1mv: &[f64]) {
        let discount = self.discount;
        if discount == 0.0 {
            // Beta(1, a): Σ 1/a + Σ E[ln(1 − v_i)] = 0
            let a = -(e_ln_1mv.len() as f64) / e_ln_1mv.iter().sum::<f64>();
            let (low, high) =
                (self.concentration.min(MIN_CONCENTRATION), self.concentration.max(MAX_CONCENTRATION));
            self.concentration = a.clamp(low, high);
            return;
        }
        self.concentration = ascend(self.concentration, MIN_CONCENTRATION..=MAX_CONCENTRATION, |a| {
            let (mut slope, mut curvature) = (0.0, 0.0);
            let arguments = |i: f64| {
                let c = a + i * discount; // a + i·b, i from 1
                [c, 1.0 + c - discount] //   a + 1 + (i − 1)·b
            };
            for_each_atom(e_ln_1mv, arguments, |_, e_ln_1mv, [of_c, of_d]| {
                slope += of_d.digamma - of_c.digamma + e_ln_1mv;
                curvature += of_d.trigamma - of_c.trigamma;
            });
            (slope, curvature)
        });
    }

    fn fit_discount(&mut self, sum_e_ln_v: f64, e_ln_1mv: &[f64]) {
        let (a, n) = (self.concentration, e_ln_1mv.len() as f64);
        self.discount = ascend(self.discount, 0.0..=MAX_DISCOUNT, |b| {
            // −b·Σ E[ln v_i] belongs to the objective; Fig. 2 prints it without, which drives b to 0.
            let mut slope = n * digamma(1.0 - b) - sum_e_ln_v;
            let mut curvature = -n * trigamma(1.0 - b);
            let arguments = |i: f64| [a + i * b, a + 1.0 + (i - 1.0) * b];
            for_each_atom(e_ln_1mv, arguments, |i, e_ln_1mv, [of_c, of_d]| {
                slope += (i - 1.0) * of_d.digamma - i * of_c.digamma + i * e_ln_1mv;
                curvature += (i - 1.0) * (i - 1.0) * of_d.trigamma - i * i * of_c.trigamma;
            });
            (slope, curvature)
        });
    }
}

/// Ψ and Ψ′ of an argument.
struct Gammas {
    digamma: f64,
    trigamma: f64,
}

/// Calls `found(i, left_i, [of c, of d])` for the atoms i from 1, in order, where `arguments(i)` are c and d.
fn for_each_atom(
    e_ln_1mv: &[f64],
    arguments: impl Fn(f64) -> [f64; 2] + Sync,
    mut found: impl FnMut(f64, f64, [Gammas; 2]),
) {
    let make = |atoms: Range<usize>| {
        let n = atoms.len();
        let mut digammas = [[0.0; BLOCK]; 2];
        let [of_c, of_d] = &mut digammas;
        for (i, (c, d)) in atoms.zip(of_c.iter_mut().zip(of_d)) {
            [*c, *d] = arguments((i + 1) as f64);
        }
        let mut trigammas = digammas;
        digammas.iter_mut().for_each(|some| digamma_each(&mut some[..n]));
        trigammas.iter_mut().for_each(|some| trigamma_each(&mut some[..n]));
        (digammas, trigammas)
    };
    blocks::each(e_ln_1mv.len(), make, |atoms, (digammas, trigammas)| {
        for (at, i) in atoms.enumerate() {
            let of = |which: usize| Gammas { digamma: digammas[which][at], trigamma: trigammas[which][at] };
            found((i + 1) as f64, e_ln_1mv[i], [of(0), of(1)]);
        }
    });
}

/// Σ_{i<N} E_q[ln Beta(v_i; 1 − b, a + i·b)]: what the fits of a and b climb.
pub fn expected_log_prior(a: f64, b: f64, sum_e_ln_v: f64, e_ln_1mv: &[f64]) -> f64 {
    let first = ln_gamma(1.0 - b);
    let terms = e_ln_1mv.iter().enumerate().map(|(i, e_ln_1mv)| {
        let second = a + (i + 1) as f64 * b;
        (second - 1.0) * e_ln_1mv - (first + ln_gamma(second) - ln_gamma(1.0 - b + second))
    });
    terms.sum::<f64>() - b * sum_e_ln_v
}
