//! Logistic-normal priors, components of mixtures, and the statistics of sentences under them.

use grammaton::grammar::Grammar;
use grammaton::limits::is_count;
use grammaton::models::dmv::constraint::Constraints;
use grammaton::models::logistic_normal::{Moments, Multinomials, Prior, Statistics, StopRule};
use grammaton::train::mixture::MAX_COMPONENTS;
use grammaton::work::task::{Fit, Fitted};

use crate::check::items::{Items, n_occurrences};
use crate::check::sizes::{DOUBLE, LONG, VARINT, sum};
use crate::check::values::at_most;
use crate::check::{COUNT, FINITE, Invalid, finite, in_range, non_negative, numbers, same_length};

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

pub fn check(task: &Items<'_>, with: &Fit) -> Result<(), Invalid> {
    let Fit { priors, until: StopRule { tolerance, max_rounds }, components } = with;
    for prior in priors {
        numbers("fit.means", prior.mean(), BOUNDED, bounded)?;
        numbers("fit.covariances", prior.covariance(), BOUNDED, bounded)?;
    }
    numbers("fit.tolerance", &[*tolerance], "that is finite and not negative", non_negative)?;
    in_range("fit.max_rounds", [*max_rounds], 1..MAX_ROUNDS + 1)?;
    at_most("fit.components", components.len() as u64, MAX_COMPONENTS as u64)?;
    let weights: Vec<f64> = components.iter().map(|component| component.weight).collect();
    numbers("fit.components.weight", &weights, SHARE, |weight| (0.0..=1.0).contains(&weight))?;
    numbers("fit.components.weight", &[weights.iter().sum()], SHARES, |sum| sum <= 1.0 + SLACK)?;
    fits(task.grammar, with)
}

pub fn check_answer(task: &Items<'_>, with: &Fit, found: &Fitted) -> Result<(), Invalid> {
    let n_items: Vec<usize> = task.each().map(|items| items.shard.len()).collect();
    answers(with, &n_items, task.each().map(|items| n_occurrences(items.shard)).sum(), found)
}

pub fn largest_answer(with: &Fit) -> u64 {
    let of_prior = |prior: &Prior| {
        let n = prior.n_outcomes() as u64;
        (n * (n + 1) / 2 + 2 * n) * DOUBLE + LONG + 3 * VARINT
    };
    sum(with.priors.iter().map(of_prior)).saturating_add(with.n_parts() as u64 * (DOUBLE + LONG))
}

/// Checks that priors match the multinomials of `grammar`, and that components name its tags.
fn fits(grammar: &Grammar, fit: &Fit) -> Result<(), Invalid> {
    let multinomials =
        Multinomials::new(grammar).map_err(|unsuited| Invalid::Fit { problem: unsuited.to_string() })?;
    multinomials.check(&fit.priors).map_err(|error| Invalid::Fit { problem: error.to_string() })?;
    if fit.components.is_empty() {
        return Ok(());
    }
    let components = fit.components.iter().map(|weighted| &weighted.component);
    let constraints = Constraints::new(grammar, components);
    constraints.map(drop).map_err(|unsuited| Invalid::Fit { problem: unsuited.to_string() })
}

/// Checks an answer for shards of `n_items` distinct sentences, and `n_occurrences` sentences in all.
fn answers(fit: &Fit, n_items: &[usize], n_occurrences: usize, found: &Fitted) -> Result<(), Invalid> {
    match found {
        Fitted::Statistics(statistics) => {
            let Statistics { bound, moments, parts, .. } = statistics;
            numbers("fitted.bound", &[*bound], FINITE, finite)?;
            for part in parts {
                numbers("fitted.part_bounds", &[part.bound], FINITE, finite)?;
            }
            for Moments { n_sentences: _, first, second, variance } in moments {
                numbers("fitted.first", first, FINITE, finite)?;
                numbers("fitted.second", second, FINITE, finite)?;
                numbers("fitted.variance", variance, COUNT, is_count)?;
            }
            at_most("fitted.sentences", statistics.n_sentences, n_occurrences as u64)?;
            same_length("fitted.part_bounds", statistics.parts.len(), fit.n_parts())?;
            let n_fits = (n_occurrences as u64).saturating_mul(fit.n_parts().max(1) as u64);
            let most = n_fits.saturating_mul(u64::from(fit.until.max_rounds));
            at_most("fitted.rounds", statistics.n_rounds, most)?;
            statistics.check(&fit.priors).map_err(|error| Invalid::Fit { problem: error.to_string() })
        }
        Fitted::Unbounded { shard, sentence } => {
            in_range("fitted.unbounded_shard", [*shard], 0..n_items.len() as u64)?;
            in_range("fitted.unbounded", [*sentence], 0..n_items[*shard as usize] as u64)
        }
    }
}
