//! Conversion of logistic-normal priors, components of mixtures, and the statistics of sentences under them.
//!
//! Numbers of all multinomials are packed fields, one multinomial after the other. A symmetric matrix travels as its
//! lower triangle; the receiver derives its factors again, to the same bits.

use grammaton::grammar::Grammar;
use grammaton::limits::is_count;
use grammaton::models::dmv::Side;
use grammaton::models::dmv::constraint::{ArcClass, Component, Constraints};
use grammaton::models::logistic_normal::multinomials::MAX_OUTCOMES;
use grammaton::models::logistic_normal::{Moments, Multinomials, Part, Prior, Statistics, Until};
use grammaton::train::mixture::MAX_COMPONENTS;
use grammaton::work::task::{Fit, Fitted, Weighted};

use crate::convert::checks::at_most;
use crate::convert::items::{Items, n_occurrences};
use crate::convert::sizes::{DOUBLE, EXPONENT, VARINT, sum};
use crate::convert::{
    COUNT, FINITE, Wire, WireError, cut, finite, in_range, non_negative, numbers, same_length,
};
use crate::v1;

/// Largest magnitude of means and covariances, so that no sum over a shard overflows.
const LARGEST: f64 = 1e12;
/// Maximum number of rounds of a sentence.
const MAX_ROUNDS: u64 = 1_000_000;
const BOUNDED: &str = "from -1e12 to 1e12";
const SHARE: &str = "from 0 to 1";
const SHARES: &str = "of 1 or less, as the sum of all";
/// Tolerance of the sum of weights above 1, for the rounding of the solver.
const SLACK: f64 = 1e-6;

fn bounded(number: f64) -> bool {
    number.abs() <= LARGEST
}

/// Number of elements of the lower triangle of a matrix of `n` rows.
fn triangle(n: u32) -> u32 {
    n * (n + 1) / 2
}

impl Wire for Fit {
    type Message = v1::Fit;
    const NAME: &'static str = "fit";

    fn to_wire(&self) -> v1::Fit {
        let lower = |prior: &Prior| {
            let n = prior.n_outcomes();
            (0..n).flat_map(|row| prior.covariance()[row * n..=row * n + row].to_vec()).collect::<Vec<_>>()
        };
        v1::Fit {
            outcomes: self.priors.iter().map(|prior| prior.n_outcomes() as u32).collect(),
            means: self.priors.iter().flat_map(|prior| prior.mean().to_vec()).collect(),
            covariances: self.priors.iter().flat_map(lower).collect(),
            tolerance: self.until.tolerance,
            max_rounds: self.until.max_rounds,
            components: self.components.iter().map(component_to_wire).collect(),
        }
    }

    fn from_wire(message: v1::Fit) -> Result<Fit, WireError> {
        let v1::Fit { outcomes, means, covariances, tolerance, max_rounds, components } = message;
        in_range("fit.outcomes", outcomes.iter().copied(), 1..MAX_OUTCOMES as u64 + 1)?;
        numbers("fit.means", &means, BOUNDED, bounded)?;
        numbers("fit.covariances", &covariances, BOUNDED, bounded)?;
        numbers("fit.tolerance", &[tolerance], "that is finite and not negative", non_negative)?;
        in_range("fit.max_rounds", [max_rounds], 1..MAX_ROUNDS + 1)?;
        at_most("fit.components", components.len() as u64, MAX_COMPONENTS as u64)?;
        let weights: Vec<f64> = components.iter().map(|component| component.weight).collect();
        numbers("fit.components.weight", &weights, SHARE, |weight| (0.0..=1.0).contains(&weight))?;
        numbers("fit.components.weight", &[weights.iter().sum()], SHARES, |sum| sum <= 1.0 + SLACK)?;
        let components = components.into_iter().map(component_from_wire).collect::<Result<_, _>>()?;
        let means = cut("fit.means", outcomes.clone(), &means)?;
        let triangles = outcomes.into_iter().map(triangle).collect();
        let covariances = cut("fit.covariances", triangles, &covariances)?;
        let prior = |(mean, lower): (Vec<f64>, Vec<f64>)| {
            let n = mean.len();
            let mut covariance = vec![0.0; n * n];
            let mut rest = &lower[..];
            for row in 0..n {
                let (own, after) = rest.split_at(row + 1);
                covariance[row * n..=row * n + row].copy_from_slice(own);
                rest = after;
            }
            Prior::new(mean, covariance).map_err(|problem| WireError::Fit { problem: problem.to_string() })
        };
        let priors = means.into_iter().zip(covariances).map(prior).collect::<Result<_, _>>()?;
        Ok(Fit { priors, until: Until { tolerance, max_rounds }, components })
    }
}

fn component_to_wire(weighted: &Weighted) -> v1::Component {
    let Weighted { component, weight } = weighted;
    let Component { name, roots, longest_arc, forbid, phrases } = component.clone();
    let side = |side: Option<Side>| match side {
        Some(Side::Left) => v1::arc_class::Side::Left,
        Some(Side::Right) => v1::arc_class::Side::Right,
        None => v1::arc_class::Side::Both,
    };
    let arcs = |arcs: ArcClass| {
        let side = side(arcs.side) as i32;
        v1::ArcClass { head: arcs.head, child: arcs.child, side }
    };
    let forbid = forbid.into_iter().map(arcs).collect();
    v1::Component { name, weight: *weight, roots, longest_arc, forbid, phrases }
}

fn component_from_wire(message: v1::Component) -> Result<Weighted, WireError> {
    let v1::Component { name, weight, roots, longest_arc, forbid, phrases } = message;
    let arcs = |(at, arcs): (usize, v1::ArcClass)| {
        let side = match v1::arc_class::Side::try_from(arcs.side) {
            Ok(v1::arc_class::Side::Left) => Some(Side::Left),
            Ok(v1::arc_class::Side::Right) => Some(Side::Right),
            Ok(v1::arc_class::Side::Both) => None,
            Ok(v1::arc_class::Side::Unspecified) | Err(_) => {
                let (field, found) = ("fit.components.forbid.side", i64::from(arcs.side));
                return Err(WireError::Range { field, at, found, start: 1, end: 4 });
            }
        };
        Ok(ArcClass { head: arcs.head, child: arcs.child, side })
    };
    let forbid = forbid.into_iter().enumerate().map(arcs).collect::<Result<_, _>>()?;
    Ok(Weighted { component: Component { name, roots, longest_arc, forbid, phrases }, weight })
}

pub fn to_wire(fitted: &Fitted) -> v1::Fitted {
    let fitted = match fitted {
        Fitted::Statistics(statistics) => v1::fitted::Fitted::Statistics(statistics_to_wire(statistics)),
        Fitted::Unbounded { sentence } => v1::fitted::Fitted::Unbounded(*sentence),
    };
    v1::Fitted { fitted: Some(fitted) }
}

pub fn from_wire(message: v1::Fitted) -> Result<Fitted, WireError> {
    match message.fitted.ok_or(WireError::Missing { field: "fitted" })? {
        v1::fitted::Fitted::Statistics(statistics) => {
            Ok(Fitted::Statistics(statistics_from_wire(statistics)?))
        }
        v1::fitted::Fitted::Unbounded(sentence) => Ok(Fitted::Unbounded { sentence }),
    }
}

fn statistics_to_wire(statistics: &Statistics) -> v1::Statistics {
    let Statistics { n_sentences, bound, n_rounds, moments, parts } = statistics;
    let all = |of: fn(&Moments) -> &Vec<f64>| moments.iter().flat_map(of).copied().collect();
    v1::Statistics {
        sentences: *n_sentences,
        bound: *bound,
        rounds: *n_rounds,
        users: moments.iter().map(|moments| moments.n_sentences).collect(),
        outcomes: moments.iter().map(|moments| moments.first.len() as u32).collect(),
        first: all(|moments| &moments.first),
        second: all(|moments| &moments.second),
        variance: all(|moments| &moments.variance),
        part_bounds: parts.iter().map(|part| part.bound).collect(),
        empty: parts.iter().map(|part| part.n_empty).collect(),
    }
}

fn statistics_from_wire(message: v1::Statistics) -> Result<Statistics, WireError> {
    let v1::Statistics {
        sentences,
        bound,
        rounds,
        users,
        outcomes,
        first,
        second,
        variance,
        part_bounds,
        empty,
    } = message;
    numbers("fitted.part_bounds", &part_bounds, FINITE, finite)?;
    same_length("fitted.empty", empty.len(), part_bounds.len())?;
    let part = |(bound, n_empty)| Part { bound, n_empty };
    let parts = part_bounds.into_iter().zip(empty).map(part).collect();
    numbers("fitted.bound", &[bound], FINITE, finite)?;
    same_length("fitted.outcomes", outcomes.len(), users.len())?;
    in_range("fitted.outcomes", outcomes.iter().copied(), 0..MAX_OUTCOMES as u64 + 1)?;
    numbers("fitted.first", &first, FINITE, finite)?;
    numbers("fitted.second", &second, FINITE, finite)?;
    numbers("fitted.variance", &variance, COUNT, is_count)?;
    let first = cut("fitted.first", outcomes.clone(), &first)?;
    let variance = cut("fitted.variance", outcomes.clone(), &variance)?;
    let second = cut("fitted.second", outcomes.into_iter().map(triangle).collect(), &second)?;
    let sums = first.into_iter().zip(second).zip(variance);
    let moments =
        |(n_sentences, ((first, second), variance))| Moments { n_sentences, first, second, variance };
    let moments = users.into_iter().zip(sums).map(moments).collect();
    Ok(Statistics { n_sentences: sentences, bound, n_rounds: rounds, moments, parts })
}

pub fn check(task: &Items<'_>, with: &Fit) -> Result<(), WireError> {
    fits(task.grammar, with)
}

pub fn check_answer(task: &Items<'_>, with: &Fit, found: &Fitted) -> Result<(), WireError> {
    answers(with, task.shard.len(), n_occurrences(task.shard), found)
}

pub fn largest_answer(with: &Fit) -> u64 {
    let of_prior = |prior: &Prior| {
        let n = prior.n_outcomes() as u64;
        (n * (n + 1) / 2 + 2 * n) * DOUBLE + EXPONENT + VARINT
    };
    sum(with.priors.iter().map(of_prior)).saturating_add(with.n_parts() as u64 * (DOUBLE + EXPONENT))
}

/// Checks that priors match the multinomials of `grammar`, and that components name its tags.
fn fits(grammar: &Grammar, fit: &Fit) -> Result<(), WireError> {
    let multinomials =
        Multinomials::new(grammar).map_err(|unsuited| WireError::Fit { problem: unsuited.to_string() })?;
    multinomials.check(&fit.priors).map_err(|error| WireError::Fit { problem: error.to_string() })?;
    if fit.components.is_empty() {
        return Ok(());
    }
    let components = fit.components.iter().map(|weighted| &weighted.component);
    let constraints = Constraints::new(grammar, components);
    constraints.map(drop).map_err(|unsuited| WireError::Fit { problem: unsuited.to_string() })
}

/// Checks an answer for a shard of `n_items` distinct sentences and `n_occurrences` sentences in all.
fn answers(fit: &Fit, n_items: usize, n_occurrences: usize, found: &Fitted) -> Result<(), WireError> {
    match found {
        Fitted::Statistics(statistics) => {
            at_most("fitted.sentences", statistics.n_sentences, n_occurrences as u64)?;
            same_length("fitted.part_bounds", statistics.parts.len(), fit.n_parts())?;
            let n_fits = (n_occurrences as u64).saturating_mul(fit.n_parts().max(1) as u64);
            let most = n_fits.saturating_mul(u64::from(fit.until.max_rounds));
            at_most("fitted.rounds", statistics.n_rounds, most)?;
            statistics.check(&fit.priors).map_err(|error| WireError::Fit { problem: error.to_string() })
        }
        Fitted::Unbounded { sentence } => in_range("fitted.unbounded", [*sentence], 0..n_items as u64),
    }
}
