//! Weights of the components of a mixture: the C-step of constrained mixture variational EM.
//!
//! A mixture is of a model, [`BASE`], and components that are the same model with fewer analyses allowed. In: the bounds F_r of all,
//! and a polyhedron of the simplex in which their weights λ have to be. Out: the λ in it with the largest Σ λ_r F_r, by linear
//! programming. As the base has the largest bound, something must keep it from taking all: a [`Limit`] that rises from round to
//! round, or an [`inequality`] that a user has written. Equations make fixed weights: `base = 0.85` of two components.
//!
//! If several λ are best, the result is the one that gives most to the first components: to every bound a little is added,
//! half as much to each as to the one before. The solver neither draws at random nor asks for the time, and adds, multiplies and divides in
//! one order, so every machine finds the same bits.
//!
//! Cohen & Smith (2009), §2.2, Eq. 8. Does not know what the components are, nor what the bounds are of.

pub mod inequality;

use microlp::{ComparisonOp, OptimizationDirection, Problem};
use serde::{Deserialize, Serialize};

use inequality::{BadInequality, Inequality, Relation};

/// Name of the component in which everything is allowed; it comes first.
pub const BASE: &str = "base";

/// Most components beside the base.
pub const MAX_COMPONENTS: usize = 64;

/// The most that the base may weigh, in every round: `from`, and `step` more in each, until `to`.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Limit {
    /// Limit of the first round.
    pub from: f64,
    /// Increase in every later round.
    pub step: f64,
    /// Final limit.
    pub to: f64,
}

impl Default for Limit {
    /// The limit of the paper, §3.
    fn default() -> Limit {
        Limit { from: 0.85, step: 0.01, to: 0.95 }
    }
}

impl Limit {
    /// The limit of a round, counted from 1.
    pub fn at(&self, round: usize) -> f64 {
        (self.from + self.step * (round - 1) as f64).min(self.to)
    }

    /// Whether it rises no more after this round.
    pub fn is_over(&self, round: usize) -> bool {
        self.at(round) == self.to
    }
}

/// Weights of components, and what they have to obey.
#[derive(Clone, PartialEq, Debug)]
pub struct Mixture {
    names: Vec<String>,
    inequalities: Vec<Inequality>,
    limit: Option<Limit>,
}

/// Why there are no weights.
#[derive(Clone, PartialEq, Debug, thiserror::Error)]
pub enum MixtureError {
    /// A name that two components have.
    #[error("two components are called `{0}`; give another name to one")]
    NameTwice(String),
    /// A text that is no inequality.
    #[error(transparent)]
    Inequality(#[from] BadInequality),
    /// A limit that does not rise within (0, 1].
    #[error(
        "the limit of `{BASE}` must rise within (0, 1], found from {}, step {}, to {}; choose 0 < from <= to <= 1 and step > 0",
        .0.from, .0.step, .0.to
    )]
    Limit(Limit),
    /// Inequalities that no weights obey together.
    #[error(
        "no weights of {names} obey {culprit} beside what is before it; all are at least 0 and sum to 1, so loosen one"
    )]
    Empty {
        /// Names of the components.
        names: String,
        /// The inequality, or limit, up to which there is none.
        culprit: String,
    },
    /// The base would take all.
    #[error(
        "nothing keeps `{BASE}` below 1, so that no other component would count; set a limit, or write `{BASE} <= 0.9`"
    )]
    Unlimited,
    /// Bounds that are no numbers, or too few or many.
    #[error("expected a finite bound for each of {names}, found {found:?}")]
    Bounds {
        /// Names of the components.
        names: String,
        /// The bounds.
        found: Vec<f64>,
    },
    /// The solver gave up.
    #[error("no best weights were found: {0}")]
    Solver(String),
}

impl Mixture {
    /// A mixture of the base and `components`, with weights that obey `inequalities` and, in every round, the limit.
    ///
    /// # Errors
    /// [`MixtureError`] if some round would have no weights to choose from, or would leave all to the base.
    ///
    /// ```
    /// use grammaton::train::mixture::{Limit, Mixture};
    ///
    /// let mixture = Mixture::new(&["short-dep".to_owned()], &[], Some(Limit::default()))?;
    /// let weights = mixture.best(1, &[-100.0, -120.0])?;
    /// assert!((weights[0] - 0.85).abs() < 1e-12 && (weights[1] - 0.15).abs() < 1e-12);
    /// # Ok::<(), grammaton::train::mixture::MixtureError>(())
    /// ```
    pub fn new(
        components: &[String],
        inequalities: &[String],
        limit: Option<Limit>,
    ) -> Result<Mixture, MixtureError> {
        let names: Vec<String> =
            std::iter::once(BASE).chain(components.iter().map(String::as_str)).map(str::to_owned).collect();
        if let Some(at) = (1..names.len()).find(|&at| names[..at].contains(&names[at])) {
            return Err(MixtureError::NameTwice(names[at].clone()));
        }
        let fits =
            |limit: &Limit| 0.0 < limit.from && limit.from <= limit.to && limit.to <= 1.0 && limit.step > 0.0;
        if let Some(limit) = limit.filter(|limit| !fits(limit)) {
            return Err(MixtureError::Limit(limit));
        }
        let inequalities =
            inequalities.iter().map(|text| Inequality::parse(text, &names)).collect::<Result<_, _>>()?;
        let mixture = Mixture { names, inequalities, limit };
        mixture.check()?;
        Ok(mixture)
    }

    /// Names of the components, the base's first.
    pub fn names(&self) -> &[String] {
        &self.names
    }

    /// The limit of the base, if there is one.
    pub fn limit(&self) -> Option<Limit> {
        self.limit
    }

    /// The weights of the first round, before any bound is known.
    ///
    /// # Errors
    /// [`MixtureError::Solver`] if the solver gives up.
    pub fn first(&self) -> Result<Vec<f64>, MixtureError> {
        self.best(1, &vec![0.0; self.names.len()])
    }

    /// The best weights of a round, counted from 1, for these bounds; `[n]`, in the order of [`Mixture::names`].
    ///
    /// # Errors
    /// [`MixtureError`] if a bound is missing or not finite, or if the solver gives up.
    pub fn best(&self, round: usize, bounds: &[f64]) -> Result<Vec<f64>, MixtureError> {
        if bounds.len() != self.names.len() || !bounds.iter().all(|bound| bound.is_finite()) {
            return Err(MixtureError::Bounds { names: self.names.join(", "), found: bounds.to_vec() });
        }
        self.maximise(&costs(bounds), self.limit_at(round), self.inequalities.len())
            .map_err(|error| MixtureError::Solver(error.to_string()))
    }

    fn limit_at(&self, round: usize) -> f64 {
        self.limit.map_or(1.0, |limit| limit.at(round))
    }

    /// Later rounds have more to choose from, so the first one tells.
    fn check(&self) -> Result<(), MixtureError> {
        let mut of_base = vec![0.0; self.names.len()];
        of_base[0] = 1.0;
        let mut most = 0.0;
        for used in 0..=self.inequalities.len() {
            let weights = self.maximise(&of_base, self.limit_at(1), used).map_err(|error| match error {
                microlp::Error::Infeasible => MixtureError::Empty {
                    names: self.names.join(", "),
                    culprit: match used.checked_sub(1) {
                        Some(last) => format!("`{}`", self.inequalities[last].text),
                        None => format!("the limit of `{BASE}`"),
                    },
                },
                other => MixtureError::Solver(other.to_string()),
            })?;
            most = weights[0];
        }
        if self.names.len() > 1 && most > 1.0 - 1e-6 { Err(MixtureError::Unlimited) } else { Ok(()) }
    }

    /// The λ of the simplex with the largest sum of `costs`, with λ_0 no more than `limit`, that obeys the first `used` inequalities.
    fn maximise(&self, costs: &[f64], limit: f64, used: usize) -> Result<Vec<f64>, microlp::Error> {
        let mut problem = Problem::new(OptimizationDirection::Maximize);
        let most = std::iter::once(limit).chain(std::iter::repeat(1.0));
        let variables: Vec<_> =
            costs.iter().zip(most).map(|(&cost, most)| problem.add_var(cost, (0.0, most))).collect();
        let terms = |weights: &[f64]| -> Vec<_> {
            variables
                .iter()
                .copied()
                .zip(weights.iter().copied())
                .filter(|&(_, weight)| weight != 0.0)
                .collect()
        };
        problem.add_constraint(terms(&vec![1.0; costs.len()]), ComparisonOp::Eq, 1.0);
        for inequality in &self.inequalities[..used] {
            let relation = match inequality.relation {
                Relation::AtLeast => ComparisonOp::Ge,
                Relation::AtMost => ComparisonOp::Le,
                Relation::Equal => ComparisonOp::Eq,
            };
            problem.add_constraint(terms(&inequality.weights), relation, inequality.bound);
        }
        let solution = problem.solve()?.into_solution().expect("no limit of time or nodes was set");
        // What is rounding is no weight.
        let weight = |weight: f64| if weight < 1e-12 { 0.0 } else { weight.min(1.0) };
        Ok(variables.into_iter().map(|variable| weight(solution.var_value(variable))).collect())
    }
}

/// Largest and smallest of scaled bounds differ by this, ...
const SPREAD: f64 = 1e6;
/// ... and the first one is raised by this to break ties, far less than any difference that matters, and far more than the solver neglects.
const RAISE: f64 = 1e-3;

/// Bounds on a scale of their own, ties broken.
fn costs(bounds: &[f64]) -> Vec<f64> {
    let most = bounds.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let least = bounds.iter().copied().fold(f64::INFINITY, f64::min);
    // Of halves no difference is beyond all numbers.
    let above_least = |bound: f64| bound / 2.0 - least / 2.0;
    let below_most = |bound: f64| bound / 2.0 - most / 2.0;
    let scaled =
        |bound: f64| if most > least { SPREAD * (below_most(bound) / above_least(most)) } else { 0.0 };
    let raises = std::iter::successors(Some(RAISE), |raise| Some(raise / 2.0));
    bounds.iter().zip(raises).map(|(&bound, raise)| scaled(bound) + raise).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn owned(texts: &[&str]) -> Vec<String> {
        texts.iter().map(|text| (*text).to_owned()).collect()
    }

    fn mixture(components: &[&str], inequalities: &[&str], limit: Option<Limit>) -> Mixture {
        Mixture::new(&owned(components), &owned(inequalities), limit).unwrap()
    }

    #[track_caller]
    fn assert_best(mixture: &Mixture, bounds: &[f64], expected: &[f64]) {
        let found = mixture.best(1, bounds).unwrap();
        let close = found.iter().zip(expected).all(|(found, expected)| (found - expected).abs() < 1e-12);
        assert!(close && found.len() == expected.len(), "{found:?}, expected {expected:?}");
    }

    #[test]
    fn two_components_bang_from_end_to_end() {
        let between = mixture(&["x"], &["base <= 0.85", "base >= 0.25"], None);
        assert_best(&between, &[-1e6, -1e6 - 1e-2], &[0.85, 0.15]);
        assert_best(&between, &[-1e6, -1e6], &[0.85, 0.15]);
        assert_best(&between, &[-1e6 - 1e-2, -1e6], &[0.25, 0.75]);
        assert_best(&between, &[f64::MIN, f64::MAX], &[0.25, 0.75]);
    }

    #[test]
    fn the_limit_rises_as_in_the_paper() {
        let limit = Limit::default();
        let annealed = mixture(&["x"], &[], Some(limit));
        let of_base = |round| annealed.best(round, &[-1.0, -3.0]).unwrap()[0];
        for (round, expected) in [(1, 0.85), (2, 0.86), (6, 0.9), (11, 0.95), (12, 0.95), (1000, 0.95)] {
            assert!((of_base(round) - expected).abs() < 1e-12, "round {round}");
        }
        assert!(!limit.is_over(10) && limit.is_over(11));
    }

    #[test]
    fn equations_fix_weights() {
        let same = ["base = 0.85", "x = y", "y = z"];
        for bounds in [[-1.0, -2.0, -3.0, -4.0], [-4.0, -3.0, -2.0, -1.0], [0.0; 4]] {
            assert_best(&mixture(&["x", "y", "z"], &same, None), &bounds, &[0.85, 0.05, 0.05, 0.05]);
        }
        let rest = mixture(&["x", "y", "z"], &same[1..], Some(Limit { from: 0.4, step: 0.1, to: 0.7 }));
        assert_best(&rest, &[-1.0, -2.0, -3.0, -4.0], &[0.4, 0.2, 0.2, 0.2]);
    }

    #[test]
    fn programs_by_hand() {
        // What the base leaves goes to the better one, as far as it may.
        let capped = mixture(&["x", "y"], &["base <= 0.5", "x <= 0.3"], None);
        assert_best(&capped, &[-1.0, -2.0, -3.0], &[0.5, 0.3, 0.2]);
        assert_best(&capped, &[-3.0, -2.0, -1.0], &[0.0, 0.0, 1.0]);
        // x may have twice what y has: 1/2, 1/3, 1/6.
        let tied = mixture(&["x", "y"], &["base <= 0.5", "x <= 2 * y"], None);
        assert_best(&tied, &[-1.0, -2.0, -30.0], &[0.5, 1.0 / 3.0, 1.0 / 6.0]);
        // Alone, x would be the worst; with y, which is the best, it is better than the base.
        let both = mixture(&["x", "y"], &["base <= 0.9", "x = y"], None);
        assert_best(&both, &[-3.0, -4.0, -1.0], &[0.0, 0.5, 0.5]);
    }

    #[test]
    fn of_the_best_the_first_components_get_most() {
        let names = ["x", "y", "z", "u", "v", "w"];
        let half = mixture(&names, &["base <= 0.5", "x <= 0.25"], None);
        assert_best(&half, &[-7.0; 7], &[0.5, 0.25, 0.25, 0.0, 0.0, 0.0, 0.0]);
        // The base and x are out, and the last four are equal.
        let bounds = [-9e8, -9e8, -9e8, -7.0, -7.0, -7.0, -7.0];
        assert_best(&half, &bounds, &[0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0]);
        let most = mixture(&names, &["base <= 0.5", "z + u <= 0.5", "v <= 0.25"], None);
        assert_best(&most, &bounds, &[0.0, 0.0, 0.0, 0.5, 0.0, 0.25, 0.25]);
    }

    #[test]
    fn what_leaves_no_choice_is_refused() {
        let error = |components: &[&str], inequalities: &[&str], limit| {
            Mixture::new(&owned(components), &owned(inequalities), limit).unwrap_err().to_string()
        };
        assert_eq!(
            error(&["x"], &["base <= 0.5", "x <= 0.4", "x >= 0"], None),
            "no weights of base, x obey `x <= 0.4` beside what is before it; all are at least 0 and sum to 1, so loosen one"
        );
        let low = Some(Limit { from: 0.5, ..Limit::default() });
        assert!(error(&["x"], &["base >= 0.7"], low).contains("obey `base >= 0.7` beside"));
        assert!(error(&[], &[], low).contains("obey the limit of `base` beside"));
        assert!(error(&["x"], &["base >= 0.7"], None).starts_with("nothing keeps `base` below 1"));
        assert!(error(&["x", "x"], &[], low).starts_with("two components are called `x`"));
        assert!(error(&["base"], &[], low).starts_with("two components are called `base`"));
        assert!(error(&["x"], &["y = 0"], low).starts_with("`y = 0`: found `y`"));
        for (from, step, to) in
            [(0.0, 0.1, 0.5), (0.5, 0.1, 0.4), (0.5, 0.0, 0.9), (0.5, 0.1, 1.5), (f64::NAN, 0.1, 0.9)]
        {
            let found = error(&["x"], &[], Some(Limit { from, step, to }));
            assert!(found.starts_with("the limit of `base` must rise within (0, 1], found from"), "{found}");
        }
        let fine = mixture(&["x"], &[], low);
        for bounds in [vec![], vec![-1.0], vec![-1.0, f64::NAN], vec![-1.0, f64::NEG_INFINITY]] {
            let error = fine.best(1, &bounds).unwrap_err().to_string();
            assert!(error.starts_with("expected a finite bound for each of base, x, found ["), "{error}");
        }
    }
}
