//! The trainer of PCFGs, for every method.
//!
//! ```text
//! begin → ask, work(shard) … add(answer) … → finish ─┬─ a sentence has no derivation → Step::Again, with what it lacks
//!                                                      └─ counts, α                    → Step::Next
//! ```
//!
//! With a [`Schedule`] each round reads a sample of the corpus, and the counts are averages over samples: EM is then stepwise (Liang & Klein
//! 2009, §3), and variational Bayes stochastic (Hoffman et al. 2013; of PCFGs Pate & Johnson 2016). Without one it is as if every round read all
//! shards at rate one.
//!
//! Between two rounds its [`State`] is all that matters: a trainer made from a saved one goes on to the same bits.

use std::ops::Range;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::grammar::ParamId;
use crate::grammar::groups::{Estimate, Groups};
use crate::limits::is_count;
use crate::models;
use crate::models::pcfg::backoff::Backoff;
use crate::models::pcfg::{Params, collapsed, em, gibbs, map_em, vb};
use crate::models::tally::Analysis;
use crate::num::dirichlet;
use crate::num::wide::heat;
use crate::num::{Noise, Wide};
use crate::train::anneal::Anneal;
use crate::train::round::{Ask, BoundFell, ROUNDING, RoundReport, Step, Summing, Totals};
use crate::train::round::{are_out_of_use, in_use, relative_change};
use crate::train::state::{StateError, check_rounds};
use crate::train::stochastic::{Schedule, averaged};
use crate::train::trainer::{self, Collect, Failure, Learned, Past, Read, Report, Shards};
use crate::work::task::{Answer, Collapse, Collapsed, Expectation, Named, Sampled, ShardState, Work};

/// How the probabilities of rules are estimated.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Method {
    /// [`em`].
    Em,
    /// [`map_em`].
    MapEm,
    /// [`vb`], and α fitted if so.
    Vb {
        /// Whether the pseudo-counts of each multinomial are scaled to raise the bound (variational EM).
        fit_alpha: bool,
    },
    /// Collapsed variational Bayes, [`collapsed`].
    CollapsedVb,
    /// [`gibbs`].
    Gibbs,
}

/// Start of the first round.
#[derive(Clone, PartialEq, Debug)]
pub enum Start {
    /// Equal probabilities within each multinomial.
    Uniform,
    /// Times e^{ju}, u uniform in (−1, 1).
    Jitter(f64),
    /// Times 1 + nu, u uniform in (−1, 1): n = 0.01 is the noise of 1 % of Wang & Blunsom (2013, §4.3).
    Noise(f64),
    /// The method's weights from these counts, those of given trees.
    Counts(Vec<f64>),
}

impl Start {
    /// Probabilities to start from, for every method; counts are normalised.
    pub fn weights(&self, groups: &Groups, seed: u64, run: u64) -> Vec<Wide> {
        let noise_at = Noise::new(seed, run);
        let numbers = (0..groups.n_params() as u64).map(|at| match self {
            Start::Uniform => 1.0,
            Start::Jitter(jitter) => libm::exp(jitter * noise_at.symmetric(at)),
            Start::Noise(noise) => 1.0 + noise * noise_at.symmetric(at),
            Start::Counts(counts) => counts[at as usize],
        });
        groups.normalised(&numbers.collect::<Vec<_>>())
    }
}

/// How to train.
#[derive(Clone, PartialEq, Debug)]
pub struct Settings {
    /// The method.
    pub method: Method,
    /// The start.
    pub start: Start,
    /// The samples that rounds read, of EM and variational Bayes; `None`: each reads all shards.
    pub schedule: Option<Schedule>,
    /// Multinomials whose pseudo-counts follow the counts, of variational Bayes.
    pub backoff: Option<Backoff>,
    /// The temperatures of the rounds.
    pub anneal: Anneal,
    /// Relative change of the objective below which training has converged; samplers never do, nor does an objective that is
    /// estimated.
    pub tolerance: f64,
    /// Seed of all that is random,
    pub seed: u64,
    /// and the run, which has its own part of it.
    pub run: u64,
}

/// State of a [`Trainer`] after a round.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct State {
    /// α and counts.
    pub estimate: Estimate,
    /// The rounds so far.
    pub past: Past,
    /// With a schedule, Σ log Z of the corpus, averaged over the rounds that have an objective.
    log_z: Option<f64>,
    /// Whether `estimate` has counts: those of a round, or of given trees.
    counted: bool,
    /// Parameters that are kept above zero because a sentence needs them ([`map_em`]), ascending.
    revived: Vec<ParamId>,
    /// The state of each shard in collapsed methods; empty before the first round.
    shard_state: Vec<ShardCounts>,
    /// Average of the kept samples.
    average: Average,
}

/// Counts of samples.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
struct Average {
    /// Number of samples.
    samples: usize,
    /// Their sum by parameter; empty without samples.
    counts: Vec<f64>,
}

/// A shard's part in the counts, and what it carries.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
struct ShardCounts {
    /// Counts by the shard's index.
    counts: Vec<f64>,
    shard_state: ShardState,
}

/// Probability of a parameter that is kept above zero, in a multinomial that sums to one.
const REVIVED: f64 = 1e-10;

/// The least weight of a parameter by stepwise EM. A rule that the samples so far did not use may be needed by the next one.
const LEAST: f64 = 1e-30;

impl State {
    /// Checks that a trainer of these multinomials and of shards that touch so many parameters each can go on from it.
    pub fn check(&self, groups: &Groups, n_touched: &[usize]) -> Result<(), StateError> {
        self.estimate.check(groups)?;
        check_rounds(self.past.rounds)?;
        if self.revived.iter().any(|param| param.index() >= groups.n_params()) {
            return Err("it keeps a parameter that is not there".into());
        }
        if !self.shard_state.is_empty() && self.shard_state.len() != n_touched.len() {
            return Err("its shards are others".into());
        }
        for (share, &n_touched) in self.shard_state.iter().zip(n_touched) {
            if share.counts.len() != n_touched {
                return Err("a shard's counts are not those of its parameters".into());
            }
            share.shard_state.check(n_touched)?;
        }
        let Average { samples, counts } = &self.average;
        if *samples > self.past.rounds || counts.len() != if *samples > 0 { groups.n_params() } else { 0 } {
            return Err("its samples are not of its parameters".into());
        }
        if !counts.iter().all(|&count| is_count(count)) {
            return Err("the counts of its samples are not counts".into());
        }
        Ok(())
    }
}

/// Moves the parameters from round to round.
pub struct Trainer {
    groups: Groups,
    settings: Settings,
    state: State,
    /// The state in which the round under way began, once it runs again.
    before_round: Option<State>,
    /// Weights of the current round.
    weights: Arc<Vec<Wide>>,
    collect: Collect,
    gathered: Gathered,
    /// Analyses of the last round, by shard and occurrence.
    samples: Vec<Vec<Analysis>>,
}

/// The answers of the round under way.
struct Gathered {
    sums: Summing,
    shard_state: Vec<ShardCounts>,
    /// Trees of each shard, by occurrence.
    samples: Vec<Vec<Analysis>>,
    /// The first shards with a sentence that has no derivation without parameters of weight zero.
    lacking: Option<Range<usize>>,
}

impl Gathered {
    fn new(n_params: usize) -> Gathered {
        let sums = Summing::new(n_params, false);
        Gathered { sums, shard_state: Vec::new(), samples: Vec::new(), lacking: None }
    }
}

impl Trainer {
    /// Starts with the pseudo-counts `alpha`.
    pub fn new(groups: Groups, alpha: Vec<f64>, settings: Settings) -> Trainer {
        let (counts, counted) = match &settings.start {
            Start::Counts(counts) => (counts.clone(), true),
            Start::Uniform | Start::Jitter(_) | Start::Noise(_) => (vec![0.0; groups.n_params()], false),
        };
        let mut estimate = Estimate { alpha, counts };
        if let Some(backoff) = &settings.backoff {
            backoff.apply(&mut estimate);
        }
        let state = State {
            estimate,
            past: Past::default(),
            log_z: None,
            counted,
            revived: Vec::new(),
            shard_state: Vec::new(),
            average: Average::default(),
        };
        Trainer::resume(groups, settings, state)
    }

    /// Goes on from `state`, which [`State::check`] found in order; all else as it was then.
    pub fn resume(groups: Groups, mut settings: Settings, state: State) -> Trainer {
        if let (Some(schedule), Start::Counts(_)) = (&mut settings.schedule, &settings.start) {
            schedule.first = 0; // counts are there to begin with
        }
        let gathered = Gathered::new(groups.n_params());
        let (weights, collect, samples) = (Arc::default(), Collect::default(), Vec::new());
        Trainer { groups, settings, state, before_round: None, weights, collect, gathered, samples }
    }

    /// Returns the state before the current round, which a resumed trainer begins anew.
    pub fn state(&self) -> &State {
        self.before_round.as_ref().unwrap_or(&self.state)
    }

    /// The temperature of the next round.
    pub fn temperature(&self) -> f64 {
        self.settings.anneal.temperature(self.state.past.rounds + 1)
    }

    /// α and counts to read other sentences with: of samplers, the mean counts of the samples that were kept.
    pub fn estimate(&self) -> Estimate {
        let State { estimate, average, .. } = &self.state;
        let mut estimate = estimate.clone();
        if average.samples > 0 {
            estimate.counts = average.counts.iter().map(|sum| sum / average.samples as f64).collect();
        }
        estimate
    }

    /// Weights for reading sentences that have no part in the counts, `[n_params]`.
    pub fn reading_weights(&self) -> Vec<Wide> {
        let (groups, estimate) = (&self.groups, &self.estimate());
        match self.settings.method {
            Method::Em if self.settings.schedule.is_some() => {
                let least = Wide::from_f64(LEAST);
                let weights = em::weights(groups, estimate).into_iter();
                weights.map(|weight| if weight < least { least } else { weight }).collect()
            }
            Method::Em => em::weights(groups, estimate),
            Method::MapEm => self.revive(map_em::weights(groups, estimate)),
            Method::Vb { .. } => vb::weights(groups, estimate),
            Method::CollapsedVb | Method::Gibbs => collapsed::weights(groups, estimate),
        }
    }

    /// Returns the parameters for decoding.
    pub fn params(&self) -> Params {
        let is_point = matches!(self.settings.method, Method::Em | Method::MapEm);
        Params::new(&self.groups, self.estimate(), self.reading_weights(), is_point)
    }

    /// The work of a shard with index `params`, for collapsed variational Bayes.
    fn collapse(&self, shard: usize, params: &[ParamId]) -> Collapse {
        let Some(share) = self.state.shard_state.get(shard) else {
            let weights = params.iter().map(|param| self.weights[param.index()]).collect();
            return Collapse::Start { weights };
        };
        let Estimate { alpha, counts } = &self.state.estimate;
        let mut others = counts.clone();
        for (param, own) in params.iter().zip(&share.counts) {
            others[param.index()] = (counts[param.index()] - own).max(0.0);
        }
        others.iter_mut().zip(alpha).for_each(|(count, alpha)| *count += alpha);
        Collapse::Others {
            pseudo: params.iter().map(|param| others[param.index()]).collect(),
            sums: self.groups.sums(&others),
            temperature: self.temperature(),
            shard_state: Named::new(share.shard_state.clone()),
        }
    }

    /// Whether a round has the weights that training starts with.
    fn is_first(&self, round: usize) -> bool {
        self.settings.schedule.map_or(!self.state.counted, |schedule| schedule.is_first(round))
    }

    /// The rate at which a round moves the counts, and the weight of a shard's sentences in it: both 1 over all shards.
    fn rate_and_scale(&self, round: usize) -> (f64, f64) {
        self.settings.schedule.map_or((1.0, 1.0), |schedule| (schedule.rate(round), schedule.scale(round)))
    }

    /// The objective under the weights of a round, whose sums are given.
    fn bound(&mut self, round: usize, totals: &Totals) -> Option<f64> {
        let is_first = self.is_first(round);
        if is_first && matches!(self.settings.method, Method::Vb { .. }) {
            return None; // the first weights come from no q
        }
        let (rate, scale) = self.rate_and_scale(round);
        let found = scale * totals.log_z;
        let log_z = self.state.log_z.map_or(found, |before| averaged(before, found, rate));
        self.state.log_z = self.settings.schedule.map(|_| log_z);
        let (groups, State { estimate, .. }) = (&self.groups, &self.state);
        match self.settings.method {
            Method::Em => Some(em::bound(log_z)),
            Method::MapEm => Some(map_em::bound(groups, estimate, &self.weights, log_z)),
            Method::Vb { .. } => Some(vb::bound(groups, estimate, log_z)),
            Method::CollapsedVb => Some(collapsed::bound(log_z)),
            Method::Gibbs => {
                let (alpha, counts) = (estimate.alpha.clone(), totals.counts.clone());
                Some(gibbs::bound(groups, &Estimate { alpha, counts }))
            }
        }
    }

    fn never_falls(&self) -> bool {
        match self.settings.method {
            _ if self.settings.schedule.is_some() || self.settings.backoff.is_some() => false,
            Method::Em | Method::Vb { .. } => true,
            Method::MapEm => self.state.estimate.alpha.iter().all(|&alpha| alpha >= 1.0),
            Method::CollapsedVb | Method::Gibbs => false,
        }
    }

    /// Keeps `params` above zero; returns how many of them were not before.
    fn keep_above_zero(&mut self, params: Vec<ParamId>) -> usize {
        let before = self.state.revived.len();
        self.state.revived.extend(params);
        self.state.revived.sort_unstable();
        self.state.revived.dedup();
        self.state.revived.len() - before
    }

    fn revive(&self, mut weights: Vec<Wide>) -> Vec<Wide> {
        for param in self.state.revived.iter().map(|param| param.index()) {
            if weights[param].is_zero() {
                weights[param] = Wide::from_f64(REVIVED);
            }
        }
        weights
    }

    /// Scales the pseudo-counts of every multinomial by one Newton step up the bound with q(θ) = Dirichlet(α + f), where f are
    /// the counts of this round (variational EM, Cohen, Gimpel & Smith 2008, §5).
    fn fit_alpha(&mut self, counts: &[f64]) {
        let alpha = &mut self.state.estimate.alpha;
        let tau: Vec<f64> = alpha.iter().zip(counts).map(|(alpha, count)| alpha + count).collect();
        for group in self.groups.iter().filter(|group| group.len() > 1) {
            let scale = dirichlet::scale(&alpha[group.clone()], &tau[group.clone()]);
            alpha[group].iter_mut().for_each(|alpha| *alpha *= scale);
        }
    }
}

impl trainer::Trainer for Trainer {
    fn past(&self) -> Past {
        self.state.past
    }

    fn shards(&self, shards: &dyn Shards) -> Vec<usize> {
        match self.settings.schedule {
            Some(schedule) => schedule.sampled(self.state.past.rounds + 1),
            None => (0..shards.len()).collect(),
        }
    }

    fn begin(&mut self, collect: Collect) {
        self.collect = collect;
        let Settings { seed, run, .. } = self.settings;
        let round = self.state.past.rounds as u64 + 1;
        let mut weights = match (!self.is_first(self.state.past.rounds + 1), self.settings.method) {
            (false, _) => self.settings.start.weights(&self.groups, seed, run),
            (true, Method::Gibbs) => gibbs::weights(&self.groups, &self.state.estimate, seed, run, round),
            (true, _) => self.reading_weights(),
        };
        let temperature = self.temperature();
        heat(&mut weights, temperature);
        self.weights = Arc::new(weights);
        self.gathered = Gathered::new(self.groups.n_params());
    }

    fn ask(&self, shards: &dyn Shards) -> Read<Ask> {
        let weights = self.weights.clone();
        Ok(match self.settings.method {
            Method::Em | Method::MapEm | Method::Vb { .. } => Ask::Expect { weights, losses: false },
            Method::Gibbs => {
                let Settings { seed, run, .. } = self.settings;
                let seeds = [seed, run, self.state.past.rounds as u64 + 1];
                Ask::Sample { weights, seeds, keep: self.collect.segments.clone() }
            }
            Method::CollapsedVb => {
                let work = |shard| Ok((shard, Work::Collapse(self.collapse(shard, &shards.params(shard)?))));
                Ask::Each((0..shards.len()).map(work).collect::<Read<_>>()?)
            }
        })
    }

    fn add(&mut self, shards: &dyn Shards, group: Range<usize>, answer: Answer) -> Read<bool> {
        let Gathered { sums, shard_state, samples, lacking } = &mut self.gathered;
        let (weights, params, first) = (&self.weights, shards.params_of_group(&group)?, group.start);
        let (found, is_of_all) = match (self.settings.method, answer) {
            (Method::Em | Method::MapEm | Method::Vb { .. }, Answer::Expectation(found)) => (found, false),
            (Method::CollapsedVb, Answer::Collapsed(Collapsed { expectation, shard_state: state })) => {
                shard_state.push(ShardCounts { counts: expectation.counts.clone(), shard_state: state });
                (expectation, true)
            }
            (Method::Gibbs, Answer::Sampled(Sampled { counts, analyses, missing })) => {
                samples.push(analyses);
                (Expectation { counts, missing, ..Expectation::default() }, true)
            }
            _ => return Ok(false),
        };
        if !are_out_of_use(weights, &params, &found.missing) {
            return Ok(false);
        }
        if !found.missing.is_empty() {
            lacking.get_or_insert(group);
        }
        Ok(if is_of_all {
            sums.add(first, None, params.iter().copied(), found)
        } else {
            sums.add(first, None, in_use(weights, &params), found)
        })
    }

    fn finish(&mut self) -> Result<Step, Failure> {
        let Gathered { sums, shard_state, samples, lacking } =
            std::mem::replace(&mut self.gathered, Gathered::new(self.groups.n_params()));
        let round = self.state.past.rounds + 1;
        let totals = sums.finish();
        if let Some(shards) = lacking {
            if self.settings.method != Method::MapEm {
                return Err(Failure::ZeroProbability { shards, weights: self.weights.clone() });
            }
            self.before_round.get_or_insert_with(|| self.state.clone());
            // A round runs again with more parameters above zero.
            return match self.keep_above_zero(totals.missing) {
                0 => Err(Failure::NoProgress { round }),
                restored => Ok(Step::Again { restored }),
            };
        }
        let bound = self.bound(round, &totals);
        let (rate, scale) = self.rate_and_scale(round);
        let anneal = self.settings.anneal;
        if let (Some(before), Some(after)) = (self.state.past.bound, bound)
            && self.never_falls()
            && anneal.is_over(round.saturating_sub(1).max(1))
            && after < before - ROUNDING * before.abs()
        {
            return Err(BoundFell { round, before, after }.into());
        }
        let change = relative_change(self.state.past.bound, bound);
        self.before_round = None;
        self.state.past.rounds = round;
        self.state.past.bound = bound;
        self.state.shard_state = shard_state;
        self.state.counted = true;
        self.samples = samples;
        if self.collect.as_sample {
            let Average { samples, counts } = &mut self.state.average;
            *samples += 1;
            counts.resize(totals.counts.len(), 0.0);
            counts.iter_mut().zip(&totals.counts).for_each(|(sum, count)| *sum += count);
        }
        if self.settings.method == (Method::Vb { fit_alpha: true }) {
            self.fit_alpha(&totals.counts);
        }
        for (count, found) in self.state.estimate.counts.iter_mut().zip(totals.counts) {
            *count = averaged(*count, scale * found, rate);
        }
        if let Some(backoff) = &self.settings.backoff {
            backoff.apply(&mut self.state.estimate);
        }
        let converged = self.settings.method != Method::Gibbs
            && self.settings.schedule.is_none()
            && anneal.is_over(round)
            && change.is_some_and(|change| change.abs() < self.settings.tolerance);
        let temperature = Some(anneal.temperature(round)).filter(|&temperature| temperature != 1.0);
        Ok(Step::Next(RoundReport { bound, change, converged, temperature, ..RoundReport::default() }))
    }

    fn learned(&self) -> Learned {
        Learned::Grammar { lexicon: None, params: models::Params::Pcfg(self.params()) }
    }

    fn report(&self) -> Report<'_> {
        Report { samples: &self.samples, ..Report::default() }
    }
}
