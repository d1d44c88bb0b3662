//! The C-step against enumeration of the vertices of its polyhedron.

use grammaton::train::mixture::{Limit, Mixture};
use proptest::prelude::*;

use crate::support::Examined;

/// Solves a square system by elimination; none if it is singular.
fn solve(mut rows: Vec<Vec<f64>>) -> Option<Vec<f64>> {
    let n = rows.len();
    for at in 0..n {
        let pivot = (at..n).max_by(|&a, &b| rows[a][at].abs().total_cmp(&rows[b][at].abs()))?;
        rows.swap(at, pivot);
        let row = rows[at].clone();
        if row[at].abs() < 1e-9 {
            return None;
        }
        for other in (0..n).filter(|&other| other != at) {
            let factor = rows[other][at] / row[at];
            rows[other].iter_mut().zip(&row).for_each(|(value, of_row)| *value -= factor * of_row);
        }
    }
    Some((0..n).map(|at| rows[at][n] / rows[at][at]).collect())
}

/// All ways to choose `k` of `n`.
fn choices(n: usize, k: usize) -> Vec<Vec<usize>> {
    let subsets = (0..1usize << n).filter(|subset| subset.count_ones() as usize == k);
    subsets.map(|subset| (0..n).filter(|at| subset >> at & 1 == 1).collect()).collect()
}

/// An inequality as text, and as weights that are at most a bound, from small whole numbers.
fn at_most(weights: &[i32], bound: i32) -> (String, Vec<f64>, f64) {
    let terms: Vec<String> = weights
        .iter()
        .zip(["base", "a", "b", "c"])
        .map(|(weight, name)| format!("{weight} * {name}"))
        .collect();
    let text = format!("{} <= {}", terms.join(" + "), f64::from(bound) / 8.0);
    (text, weights.iter().map(|&weight| f64::from(weight)).collect(), f64::from(bound) / 8.0)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(500))]
    fn the_best_vertex(
        n in 2usize..5,
        rows in prop::collection::vec((prop::collection::vec(-3i32..4, 4), -4i32..16), 0..4),
        bounds in prop::collection::vec(-5i32..1, 4),
        round in 1usize..9,
    ) {
        let limit = Limit { from: 0.5, step: 0.125, to: 0.875 };
        let bounds: Vec<f64> = bounds[..n].iter().map(|&bound| f64::from(bound)).collect();
        let rows: Vec<_> = rows.iter().map(|(weights, bound)| at_most(&weights[..n], *bound)).collect();
        prop_assume!(rows.iter().all(|(_, weights, _)| weights.iter().any(|&weight| weight != 0.0)));
        let texts: Vec<String> = rows.iter().map(|row| row.0.clone()).collect();
        let names = ["a", "b", "c"].map(str::to_owned);
        let made = Mixture::new(&names[..n - 1], &texts, Some(limit));

        // Σ λ ≤ bound, each as weights and bound: inequalities, limit, signs.
        let vertices = |round| {
            let unit = |at: usize, value: f64| (0..n).map(|of| if of == at { value } else { 0.0 }).collect::<Vec<_>>();
            let mut half_spaces: Vec<(Vec<f64>, f64)> = rows.iter().map(|row| (row.1.clone(), row.2)).collect();
            half_spaces.push((unit(0, 1.0), limit.at(round)));
            half_spaces.extend((0..n).map(|at| (unit(at, -1.0), 0.0)));
            let with_bound = |(weights, bound): &(Vec<f64>, f64)| [&weights[..], &[*bound]].concat();
            let vertex = |chosen: Vec<usize>| {
                let chosen = chosen.into_iter().map(|at| with_bound(&half_spaces[at]));
                solve(chosen.chain([vec![1.0; n + 1]]).collect())
            };
            let obeys = |weights: &Vec<f64>| half_spaces.iter().all(|(of, bound)| dot(of, weights) <= bound + 1e-9);
            choices(half_spaces.len(), n - 1).into_iter().filter_map(vertex).filter(obeys).collect::<Vec<_>>()
        };
        prop_assert_eq!(made.is_ok(), !vertices(1).is_empty(), "{:?}", made);
        let Ok(mixture) = made else { return Ok(()) };
        FEASIBLE.one();

        let found = mixture.best(round, &bounds).unwrap();
        let all = vertices(round);
        let best = all.iter().map(|weights| dot(weights, &bounds)).fold(f64::NEG_INFINITY, f64::max);
        prop_assert!((dot(&found, &bounds) - best).abs() < 1e-9, "{found:?}, best {best}");
        prop_assert!(all.iter().any(|weights| distance(weights, &found) < 1e-9), "{found:?} is no vertex of {all:?}");
        // Of those that are as good, the one that gives most to the first ones.
        let powers: Vec<f64> = (0..n as i32).map(|at| 0.5f64.powi(at)).collect();
        let ties = all.iter().filter(|weights| dot(weights, &bounds) > best - 1e-9);
        let most = ties.map(|weights| dot(weights, &powers)).fold(f64::NEG_INFINITY, f64::max);
        prop_assert!((dot(&found, &powers) - most).abs() < 1e-9, "{found:?} of {all:?}");
        prop_assert_eq!(mixture.best(round, &bounds).unwrap(), found);
    }
}

/// Mixtures whose inequalities leave some weights.
static FEASIBLE: Examined = Examined::none();

#[test]
fn the_best_vertex_is_found() {
    the_best_vertex();
    FEASIBLE.assert_at_least(200);
}

fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

fn distance(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| (a - b).abs()).sum()
}
