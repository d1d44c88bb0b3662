//! The trainer of Markov chains: answers of a round of sweeps.
//!
//! ```text
//! begin → work(shard) … add(shard, answer) … → finish ─┬─ sweeps of some shards are left → Step::Continue, of these shards
//!                                                      └─ else                           → Step::Next
//! ```
//!
//! The sweeps of a shard are one task after the other ([`ShardState::Sweeping`]), each of a bounded size: the sweeps that are left fall
//! with every answer.
//!
//! Each shard is a chain that sees the counts of the other shards as of the start of the round; over one shard the chain is
//! the published one. Between two rounds the [`State`] is all that matters.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::grammar::groups::{Estimate, Groups};
use crate::grammar::lexicon::{Lexicon, StickStrings};
use crate::grammar::{Grammar, SymbolId};
use crate::limits::{is_count, is_parameter};
use crate::models;
use crate::models::adaptor::{self, Stick};
use crate::models::pcfg::{self, collapsed};
use crate::models::sampler::{Hyper, HyperPrior, Moves, Settings as OfSweep};
use crate::models::tally::Analysis;
use crate::num::random;
use crate::train::anneal::Anneal;
use crate::train::round::{Ask, RoundReport, Step, relative_change};
use crate::train::state::{StateError, check_rounds};
use crate::train::trainer::{self, Collect, Failure, Learned, Past, Read, Report, Shards};
use crate::work::task::{Answer, ChainFrom, Chained, Named, ShardState, Sweeps, Work};

/// How to sample.
#[derive(Clone, PartialEq, Debug)]
pub struct Settings {
    /// Source of the first trees.
    pub start: Start,
    /// Hyper-parameters of processes whose own the grammar does not set.
    pub hyper: Hyper,
    /// Whether the hyper-parameters are drawn anew after each sweep, and under which prior.
    pub draw_hyper: Option<HyperPrior>,
    /// Whether the labels of tables are.
    pub relabel: bool,
    /// Sweeps of a round.
    pub sweeps: u32,
    /// The temperatures of the rounds.
    pub anneal: Anneal,
    /// Seed of all that is random,
    pub seed: u64,
    /// and the run, which has its own part of it.
    pub run: u64,
}

/// Sources of the first trees.
#[derive(Clone, PartialEq, Debug)]
pub enum Start {
    /// Drawn from the prior, all at once.
    Batch,
    /// Drawn from the prior, each given the trees before it.
    Incremental,
    /// Given, by shard and occurrence.
    Trees(Vec<Arc<Vec<String>>>),
}

/// State of a [`Trainer`] after a round.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct State {
    /// The rounds so far.
    pub past: Past,
    /// By shard; empty before the first round.
    shards: Vec<ShardChain>,
    /// Sums of the last round, if its trees were collected.
    last: Sums,
    /// Sums of the kept samples.
    kept: Sums,
}

/// A shard's chain.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
struct ShardChain {
    /// `[n_params]`.
    uses: Vec<u32>,
    shard_state: ShardState,
}

/// Sums over samples.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
struct Sums {
    samples: u32,
    /// `[n_params]`; empty without samples.
    uses: Vec<f64>,
    /// Customers by nonterminal and string.
    strings: BTreeMap<(SymbolId, Vec<SymbolId>), f64>,
}

impl Sums {
    fn add(&mut self, other: &Sums) {
        self.samples += other.samples;
        self.uses.resize(other.uses.len().max(self.uses.len()), 0.0);
        self.uses.iter_mut().zip(&other.uses).for_each(|(sum, uses)| *sum += uses);
        for (string, customers) in &other.strings {
            *self.strings.entry(string.clone()).or_default() += customers;
        }
    }

    fn check(&self, grammar: &Grammar, n_params: usize) -> Result<(), StateError> {
        let n_uses = if self.samples > 0 { n_params } else { 0 };
        if self.uses.len() != n_uses || self.samples == 0 && !self.strings.is_empty() {
            return Err("its samples are not of its parameters".into());
        }
        let is_terminal =
            |symbol: &SymbolId| symbol.0 >= grammar.n_nonterminals && symbol.index() < grammar.symbols.len();
        let is_string = |(symbol, string): &(SymbolId, Vec<SymbolId>)| {
            grammar.is_adapted(*symbol) && !string.is_empty() && string.iter().all(is_terminal)
        };
        let are_counts = self.uses.iter().chain(self.strings.values()).all(|&n| is_count(n));
        if self.strings.keys().all(is_string) && are_counts {
            Ok(())
        } else {
            Err("its samples are not of its grammar".into())
        }
    }
}

impl State {
    /// Checks that a trainer of this grammar can go on from it, as far as can be seen without the sentences (a worker checks the rest).
    pub fn check(&self, grammar: &Grammar, lexicon: &Lexicon) -> Result<(), StateError> {
        let n_params = lexicon.space(grammar).n_params();
        check_rounds(self.past.rounds)?;
        for share in &self.shards {
            let ShardState::Chain(state) = &share.shard_state else {
                return Err("a shard carries no trees".into());
            };
            let is_process =
                |hyper: &Hyper| (0.0..1.0).contains(&hyper.discount) && is_parameter(hyper.concentration);
            if share.uses.len() != n_params
                || state.hyper.len() != grammar.adapted().count()
                || !state.hyper.iter().all(is_process)
            {
                return Err("a shard's chain is of another grammar".into());
            }
        }
        if self.last.samples > 1 || self.kept.samples as usize > self.past.rounds {
            return Err("it has more samples than rounds".into());
        }
        self.last.check(grammar, n_params)?;
        self.kept.check(grammar, n_params)
    }
}

/// Moves a chain from round to round.
pub struct Trainer {
    grammar: Arc<Grammar>,
    groups: Groups,
    /// `[n_params]`.
    alpha: Vec<f64>,
    settings: Settings,
    state: State,
    /// Treatment of the trees of the current round.
    collect: Collect,
    /// Last answers of the shards in the current round.
    answers: BTreeMap<usize, Chained>,
    /// Proposals of trees in the current round.
    moves: Moves,
    /// Analyses of the last round, by shard and occurrence.
    samples: Vec<Vec<Analysis>>,
}

impl Trainer {
    /// A chain of that many shards with the pseudo-counts `alpha`, from its start or from a state that [`State::check`] found in
    /// order.
    pub fn new(
        grammar: Arc<Grammar>,
        lexicon: &Lexicon,
        alpha: Vec<f64>,
        settings: Settings,
        state: State,
    ) -> Trainer {
        let groups = Groups::new(&grammar, lexicon);
        let (collect, answers, samples) = (Collect::default(), BTreeMap::new(), Vec::new());
        let moves = Moves::default();
        Trainer { grammar, groups, alpha, settings, state, collect, answers, moves, samples }
    }

    /// The state.
    pub fn state(&self) -> &State {
        &self.state
    }

    /// Discount and concentration of the adapted nonterminals, in symbol order, in the first shard's chain.
    fn first_hyper(&self) -> &[Hyper] {
        match self.state.shards.first().map(|share| &share.shard_state) {
            Some(ShardState::Chain(state)) => &state.hyper,
            _ => &[],
        }
    }

    /// The work of a shard.
    fn work(&self, shard: usize) -> Work {
        let Settings { hyper, relabel, draw_hyper, ref anneal, seed, run, .. } = self.settings;
        let round = self.state.past.rounds + 1;
        let mut pseudo = self.alpha.clone();
        for (_, other) in self.state.shards.iter().enumerate().filter(|&(at, _)| at != shard) {
            pseudo.iter_mut().zip(&other.uses).for_each(|(pseudo, &uses)| *pseudo += f64::from(uses));
        }
        let last = self.answers.get(&shard).map(|last| &last.shard_state);
        let last = last.or(self.state.shards.get(shard).map(|share| &share.shard_state));
        let from = match (last, &self.settings.start) {
            (Some(state), _) => ChainFrom::ShardState(Named::new(state.clone())),
            (None, Start::Trees(trees)) => ChainFrom::Trees { trees: trees[shard].clone(), hyper },
            (None, start) => ChainFrom::Start { incremental: *start == Start::Incremental, hyper },
        };
        let settings = OfSweep { temperature: anneal.temperature(round), relabel, hyper: draw_hyper };
        let stream = random::shard_seed(seed, run, round as u64, shard as u64);
        let n = self.n_left(shard);
        Work::Sweep(Sweeps { from, n, settings, pseudo, stream, keep: self.collect.segments.clone() })
    }

    /// Sweeps of the current round that a shard has left.
    fn n_left(&self, shard: usize) -> u32 {
        self.answers.get(&shard).map_or(self.settings.sweeps, Chained::n_left)
    }

    /// Whether a round is under way.
    fn is_sweeping(&self) -> bool {
        self.answers.values().any(|last| last.n_left() > 0)
    }

    /// Mean uses over the samples that were kept, or of the last state without such.
    fn means(&self) -> Sums {
        let State { kept, last, .. } = &self.state;
        let sums = if kept.samples > 0 { kept } else { last };
        let n = f64::from(sums.samples.max(1));
        let uses = match sums.samples {
            0 => vec![0.0; self.alpha.len()],
            _ => sums.uses.iter().map(|uses| uses / n).collect(),
        };
        let strings = sums.strings.iter().map(|(string, customers)| (string.clone(), customers / n));
        Sums { samples: 1, uses, strings: strings.collect() }
    }

    /// The learned PCFG: the posterior mean, given the mean uses in the samples.
    fn pcfg(&self) -> pcfg::Params {
        let estimate = Estimate { alpha: self.alpha.clone(), counts: self.means().uses };
        let weights = collapsed::weights(&self.groups, &estimate);
        pcfg::Params::new(&self.groups, estimate, weights, false)
    }

    /// The learned adaptor grammar as variational parameters: the strings that samples have on sticks, the most used
    /// first, with their mean customers for expected uses.
    fn as_sticks(&self) -> (Lexicon, adaptor::Params) {
        let grammar = &self.grammar;
        let means = self.means();
        let mut by_symbol: BTreeMap<SymbolId, Vec<(&Vec<SymbolId>, f64)>> = BTreeMap::new();
        for ((symbol, string), &customers) in &means.strings {
            by_symbol.entry(*symbol).or_default().push((string, customers));
        }
        let mut lexicon = Lexicon::default();
        let mut uses: Vec<f64> = Vec::new();
        for symbol in grammar.adapted() {
            let mut strings = by_symbol.remove(&symbol).unwrap_or_default();
            strings.sort_by(|a, b| b.1.total_cmp(&a.1)); // stable: ties stay in order of their strings
            uses.extend(strings.iter().map(|&(_, customers)| customers));
            let strings = strings.into_iter().map(|(string, _)| string).collect();
            lexicon.sticks.push(StickStrings { symbol, strings });
        }
        let rules = grammar.space();
        let counts: Vec<f64> = means.uses[..rules.n_params()].iter().copied().chain(uses).collect();
        let hyper = self.first_hyper().iter().copied().chain(std::iter::repeat(self.settings.hyper));
        let space = lexicon.space(grammar);
        let sticks = space.sticks().zip(&lexicon.sticks).zip(hyper).map(|((params, strings), hyper)| {
            Stick::new(strings.symbol, params, hyper.discount, hyper.concentration)
        });
        let mut params = adaptor::Params::new(grammar, sticks.collect());
        params.alpha.copy_from_slice(&self.alpha[rules.rules()]);
        params.update(&counts);
        (lexicon, params)
    }
}

impl trainer::Trainer for Trainer {
    fn past(&self) -> Past {
        self.state.past
    }

    fn shards(&self, shards: &dyn Shards) -> Vec<usize> {
        let is_sweeping = self.is_sweeping();
        (0..shards.len()).filter(|&shard| !is_sweeping || self.n_left(shard) > 0).collect()
    }

    fn begin(&mut self, collect: Collect) {
        self.collect = collect;
        if !self.is_sweeping() {
            self.answers.clear();
            self.samples.clear();
            self.moves = Moves::default();
        }
    }

    fn ask(&self, shards: &dyn Shards) -> Read<Ask> {
        Ok(Ask::Each(self.shards(shards).into_iter().map(|shard| (shard, self.work(shard))).collect()))
    }

    fn add(&mut self, _: &dyn Shards, group: Range<usize>, answer: Answer) -> Read<bool> {
        let Answer::Chained(chained) = answer else { return Ok(false) };
        let shard = group.start;
        if chained.n_left() >= self.n_left(shard) {
            return Ok(false); // no sweep was made
        }
        self.moves += chained.trees;
        self.answers.insert(shard, chained);
        Ok(true)
    }

    fn finish(&mut self) -> Result<Step, Failure> {
        if self.is_sweeping() {
            return Ok(Step::Continue);
        }
        let mut sums = Sums { samples: 1, uses: vec![0.0; self.alpha.len()], ..Sums::default() };
        let mut log_seating = 0.0;
        self.state.shards.clear();
        for chained in std::mem::take(&mut self.answers).into_values() {
            log_seating += chained.log_seating;
            sums.uses.iter_mut().zip(&chained.uses).for_each(|(sum, &uses)| *sum += f64::from(uses));
            for found in chained.strings {
                *sums.strings.entry((found.symbol, found.string)).or_default() += f64::from(found.customers);
            }
            self.samples.push(chained.analyses);
            self.state.shards.push(ShardChain { uses: chained.uses, shard_state: chained.shard_state });
        }
        let estimate = Estimate { alpha: self.alpha.clone(), counts: sums.uses.clone() };
        let bound = Some(estimate.log_joint(&self.groups) + log_seating);
        let change = relative_change(self.state.past.bound, bound);
        self.state.past.rounds += 1;
        self.state.past.bound = bound;
        if self.collect.as_sample {
            self.state.kept.add(&sums);
        }
        self.state.last = if self.collect.segments.is_some() { sums } else { Sums::default() };
        let temperature = Some(self.settings.anneal.temperature(self.state.past.rounds));
        Ok(Step::Next(RoundReport {
            bound,
            change,
            temperature: temperature.filter(|&temperature| temperature != 1.0),
            moves: Some(self.moves),
            ..RoundReport::default()
        }))
    }

    fn learned(&self) -> Learned {
        if self.grammar.adapted().next().is_none() {
            return Learned::Grammar { lexicon: None, params: models::Params::Pcfg(self.pcfg()) };
        }
        let (lexicon, params) = self.as_sticks();
        Learned::Grammar { lexicon: Some(lexicon), params: models::Params::Adaptor(params) }
    }

    fn report(&self) -> Report<'_> {
        let n_of = |symbol| self.state.last.strings.keys().filter(|(of, _)| *of == symbol).count();
        let n_strings = match self.state.last.samples {
            0 => Vec::new(),
            _ => self.grammar.adapted().map(n_of).collect(),
        };
        let hyper = self.first_hyper().to_vec();
        Report { hyper, n_strings, samples: &self.samples, ..Report::default() }
    }
}
