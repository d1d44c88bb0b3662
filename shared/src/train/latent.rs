//! The trainer of latent annotations: answers of a round, for every [`Method`].
//!
//! ```text
//! begin → work(shard) … add(answer) … → finish → begin …
//! ```
//!
//! In the first round all methods read the trees with the same weights, those of [`start`]. Between two rounds the [`State`] is all
//! that matters: a trainer made from a saved one goes on to the same bits.

use std::ops::Range;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::data::treebank::{Rules, Treebank};
use crate::limits::is_count;
use crate::models::latent::collapsed::TreeCounts;
use crate::models::latent::parse::Model;
use crate::models::latent::{Expectation, Layout, Method, Params, Shard, Weights, start};
use crate::num::random;
use crate::train::round::{Ask, BoundFell, ROUNDING, RoundReport, Step, relative_change};
use crate::train::state::{StateError, check_rounds};
use crate::train::trainer::{self, Collect, Failure, Learned, Past, Read, Report, Shards};
use crate::work::task::{Annotate, Answer, Named, Pass, ShardState, Work};

/// How to train.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Settings {
    /// How the parameters are estimated.
    pub method: Method,
    /// Subtypes of every label but the root.
    pub n_subtypes: usize,
    /// α, the prior's count of every entry; EM ignores it.
    pub alpha: f64,
    /// Largest relative noise on the weights of the first round.
    pub noise: f64,
    /// Relative change of the objective below which training has converged.
    pub tolerance: f64,
    /// Seed of the noise,
    pub seed: u64,
    /// and the run, which has its own part of it.
    pub run: u64,
}

/// State of a [`Trainer`] after a round.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct State {
    /// Totals of the last round; none before the first.
    pub totals: Vec<f64>,
    /// Counts of each shard in collapsed variational Bayes; empty for other methods and before the first round.
    pub own: Vec<TreeCounts>,
    /// The rounds so far.
    pub past: Past,
}

impl State {
    /// Before the first round.
    pub fn new() -> State {
        State { totals: Vec::new(), own: Vec::new(), past: Past::default() }
    }

    /// Checks that a trainer of these settings, rules and shards can go on from it.
    pub fn check(&self, settings: &Settings, rules: &Rules, shards: &[&Shard]) -> Result<(), StateError> {
        let layout = Layout::new(rules, settings.n_subtypes);
        check_rounds(self.past.rounds)?;
        if self.totals.len() != if self.past.rounds > 0 { layout.n_params() } else { 0 } {
            return Err("its counts are not those of its rules".into());
        }
        if !self.totals.iter().all(|&count| is_count(count)) {
            return Err("its counts are not counts".into());
        }
        let carries = settings.method == Method::Cvb && self.past.rounds > 0;
        let fits = self.own.iter().zip(shards).all(|(own, shard)| own.fits(&layout, shard));
        if self.own.len() != if carries { shards.len() } else { 0 } || !fits {
            return Err("its own counts are not those of its trees".into());
        }
        Ok(())
    }
}

impl Default for State {
    fn default() -> State {
        State::new()
    }
}

/// Moves the parameters from round to round.
pub struct Trainer {
    treebank: Arc<Treebank>,
    layout: Layout,
    settings: Settings,
    state: State,
    /// Weights of the current round.
    weights: Arc<Weights>,
    totals: Arc<Vec<f64>>,
    gathered: Expectation,
    own: Vec<TreeCounts>,
}

impl Trainer {
    /// Goes on from `state`, which [`State::check`] found in order.
    pub fn new(treebank: Arc<Treebank>, settings: Settings, state: State) -> Trainer {
        let layout = Layout::new(&treebank.rules, settings.n_subtypes);
        let gathered = Expectation::zero(&layout);
        let (weights, totals) = (Arc::new(Weights::default()), Arc::new(Vec::new()));
        Trainer { treebank, layout, settings, state, weights, totals, gathered, own: Vec::new() }
    }

    /// Returns the state between two rounds.
    pub fn state(&self) -> &State {
        &self.state
    }

    fn params(&self) -> Params {
        let Settings { method, alpha, .. } = self.settings;
        Params { method, alpha, totals: self.state.totals.clone() }
    }

    /// The work of a shard.
    fn work(&self, shard: usize) -> Work {
        let Settings { method, n_subtypes, alpha, .. } = self.settings;
        let pass = match (method, self.state.own.get(shard)) {
            (Method::Em | Method::Vb, _) => Pass::Expect { weights: self.weights.clone() },
            (Method::Cvb, None) => Pass::Begin { weights: self.weights.clone() },
            (Method::Cvb, Some(own)) => {
                let shard_state = Named::new(ShardState::Latent(own.clone()));
                Pass::Others { totals: self.totals.clone(), alpha, shard_state }
            }
        };
        Work::Annotate(Annotate { n_subtypes, pass })
    }
}

impl trainer::Trainer for Trainer {
    fn past(&self) -> Past {
        self.state.past
    }

    fn begin(&mut self, _: Collect) {
        let Settings { method, noise, seed, run, .. } = self.settings;
        self.gathered = Expectation::zero(&self.layout);
        self.own = Vec::new();
        match (self.state.past.rounds, method) {
            (0, _) => {
                let seed = random::shard_seed(seed, run, 0, 0);
                self.weights = Arc::new(start(&self.treebank.rules, &self.layout, noise, seed));
            }
            (_, Method::Cvb) => {
                self.weights = Arc::new(Weights::default());
                self.totals = Arc::new(self.state.totals.clone());
            }
            (_, Method::Em | Method::Vb) => self.weights = Arc::new(self.params().weights(&self.layout)),
        }
    }

    fn ask(&self, shards: &dyn Shards) -> Read<Ask> {
        Ok(Ask::Each((0..shards.len()).map(|shard| (shard, self.work(shard))).collect()))
    }

    fn add(&mut self, _: &dyn Shards, _: Range<usize>, answer: Answer) -> Read<bool> {
        let Answer::Annotated(annotated) = answer else { return Ok(false) };
        match (annotated.shard_state, self.settings.method) {
            (None, Method::Em | Method::Vb) => {}
            (Some(ShardState::Latent(own)), Method::Cvb) => self.own.push(own),
            _ => return Ok(false),
        }
        self.gathered.add(&annotated.expectation);
        Ok(true)
    }

    fn finish(&mut self) -> Result<Step, Failure> {
        let gathered = std::mem::replace(&mut self.gathered, Expectation::zero(&self.layout));
        let method = self.settings.method;
        let bound = match (self.state.past.rounds, method) {
            // The first weights come from no totals: they have a likelihood, and no bound.
            (0, Method::Em) => Some(gathered.ln_z),
            (0, Method::Vb | Method::Cvb) => None,
            _ => Some(self.params().bound(&self.layout, gathered.ln_z)),
        };
        let round = self.state.past.rounds + 1;
        let before = self.state.past.bound;
        if let (Some(before), Some(after), Method::Em | Method::Vb) = (before, bound, method)
            && after < before - ROUNDING * before.abs()
        {
            return Err(BoundFell { round, before, after }.into());
        }
        let change = relative_change(before, bound);
        let converged = change.is_some_and(|change| change.abs() < self.settings.tolerance);
        let own = std::mem::take(&mut self.own);
        self.state = State { totals: gathered.counts, own, past: Past { rounds: round, bound } };
        Ok(Step::Next(RoundReport { bound, change, converged, ..RoundReport::default() }))
    }

    fn learned(&self) -> Learned {
        let Treebank { rules, vocabulary, chains, .. } = &*self.treebank;
        let model = Model {
            rules: rules.clone(),
            vocabulary: vocabulary.clone(),
            chains: chains.clone(),
            n_subtypes: self.settings.n_subtypes,
            weights: self.params().estimate(&self.layout),
        };
        Learned::Treebank(model)
    }

    fn report(&self) -> Report<'_> {
        Report::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::treebank::Classes;
    use crate::grammar::tree::Tree;
    use crate::work::engine::Engine;
    use crate::work::shard;
    use crate::work::task::Task;

    const TREES: [&str; 4] = [
        "(ROOT (S (N a) (V (V b) (N c))))",
        "(ROOT (S (N c) (V (V b) (N a))))",
        "(ROOT (S (N a) (V b)))",
        "(ROOT (S (N c) (V b)))",
    ];

    fn treebank() -> Treebank {
        Treebank::new(&TREES.map(|text| Tree::parse(text).unwrap()), 0, Classes::Generic)
    }

    fn settings(method: Method) -> Settings {
        Settings { method, n_subtypes: 2, alpha: 0.1, noise: 0.01, tolerance: 0.0, seed: 1, run: 1 }
    }

    fn shards(treebank: &Treebank) -> Vec<Shard> {
        treebank.derivations.chunks(2).map(|trees| Shard { trees: trees.to_vec() }).collect()
    }

    /// Goes on for some rounds.
    fn run(treebank: &Treebank, method: Method, state: State, n_rounds: usize) -> State {
        let mut trainer = Trainer::new(Arc::new(treebank.clone()), settings(method), state);
        rounds(treebank, &mut trainer, n_rounds);
        trainer.state().clone()
    }

    /// Results of all rounds.
    fn rounds(treebank: &Treebank, trainer: &mut Trainer, n_rounds: usize) -> Vec<Step> {
        let engine = Engine::default();
        let shards = shards(treebank);
        let answer = |shard: usize, work| {
            let (rules, trees) = (treebank.rules.clone(), shards[shard].clone());
            let shard = Named::new(shard::Shard::Trees { rules, trees });
            let task = Task { language: None, shard, work, further: Vec::new() };
            engine.run(&task).unwrap()
        };
        let indexes = vec![Arc::default(); shards.len()];
        let round = |_| trainer::round(trainer, &indexes, Collect::default(), answer).unwrap();
        (0..n_rounds).map(round).collect()
    }

    /// Trees of which each is certain have a log-likelihood of 0 in every round, which is no change.
    #[test]
    fn em_converges_where_the_bound_is_zero() {
        let treebank = Treebank::new(&[Tree::parse("(ROOT a)").unwrap()], 0, Classes::Generic);
        let settings = Settings { tolerance: 1e-9, ..settings(Method::Em) };
        let mut trainer = Trainer::new(Arc::new(treebank.clone()), settings, State::new());
        let steps = rounds(&treebank, &mut trainer, 3);
        let Some(Step::Next(last)) = steps.last() else { panic!("{steps:?}") };
        assert_eq!((last.bound, last.change, last.converged), (Some(0.0), Some(0.0), true));
    }

    #[test]
    fn a_saved_state_goes_on_to_the_same_bits() {
        let treebank = treebank();
        for method in [Method::Em, Method::Vb, Method::Cvb] {
            let whole = run(&treebank, method, State::new(), 5);
            let half = run(&treebank, method, State::new(), 2);
            assert_eq!(run(&treebank, method, half, 3), whole, "{method:?}");
            assert!(whole.past.rounds == 5 && whole.past.bound.is_some());
        }
    }

    #[test]
    fn states_of_others_are_refused() {
        let treebank = treebank();
        let state = run(&treebank, Method::Cvb, State::new(), 2);
        let shards = shards(&treebank);
        let check = |state: &State, method| {
            state.check(&settings(method), &treebank.rules, &shards.iter().collect::<Vec<_>>())
        };
        assert_eq!(check(&state, Method::Cvb), Ok(()));
        assert!(check(&state, Method::Em).is_err(), "it carries nothing");
        let broken = |change: fn(&mut State)| {
            let mut state = state.clone();
            change(&mut state);
            check(&state, Method::Cvb).unwrap_err().to_string()
        };
        assert_eq!(
            broken(|state| state.past.rounds = usize::MAX),
            format!("it has {} rounds behind it", usize::MAX)
        );
        assert_eq!(broken(|state| state.totals.truncate(3)), "its counts are not those of its rules");
        assert_eq!(broken(|state| state.totals[0] = f64::NAN), "its counts are not counts");
        assert_eq!(broken(|state| state.own.truncate(1)), "its own counts are not those of its trees");
        assert_eq!(broken(|state| state.own.swap(0, 1)), "its own counts are not those of its trees");
    }
}
