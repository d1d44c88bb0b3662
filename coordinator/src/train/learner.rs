//! One run, whatever is trained and however: the same verbs for every method.
//!
//! ```text
//! begin → ask → [workers] → add(shard, answer) → finish → begin …
//! ```
//!
//! Between two rounds its [`State`] is all that matters.

pub mod sampled;

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use shared::data::corpus::Unit;
use shared::data::treebank::Treebank;
use shared::forest::TooAmbiguous;
use shared::grammar::groups::{Estimate, Groups};
use shared::grammar::lexicon::Lexicon;
use shared::grammar::{Grammar, SymbolId};
use shared::models::Params;
use shared::models::adaptor::Stick;
use shared::models::adaptor::hyper::Fit;
use shared::models::adaptor::start::{Start as StickStart, base_weights};
use shared::models::latent;
use shared::models::logistic_normal::{Multinomials, Until};
use shared::models::pcfg::{self, em};
use shared::models::sampler::{self, HyperPrior};
use shared::models::tally::Analysis;
use shared::num::{Noise, Wide};
use shared::train;
use shared::train::anneal::Anneal;
use shared::train::round::{Ask, BoundFell, Step, Totals};
use shared::work::shard::Shard;
use shared::work::task::Answer;

use self::sampled::Sampled;
use super::plan::{Plan, PlannedShard};
use crate::job::{AdaptorPrior, Hyperparameter, InferenceTable, Method, RulePrior, Selection, Start};
use crate::snapshot;

/// A run between two rounds.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub enum State {
    /// Of an adaptor grammar by variational Bayes.
    Sticks(train::adaptor::State),
    /// Of a PCFG.
    Pcfg(train::pcfg::State),
    /// Of a Markov chain over trees.
    Chain(train::chain::State),
    /// Of a PCFG with latent annotations.
    Latent(train::latent::State),
    /// Of a PCFG with logistic-normal priors.
    Normal(train::logistic_normal::State),
    /// Of an adaptor grammar by stochastic variational Bayes.
    SampledSticks(train::adaptor_svb::State),
    /// Of a PCFG by the same.
    SampledPcfg(train::pcfg_svb::State),
}

/// Why a round came to nothing.
#[derive(Clone, PartialEq, Debug, thiserror::Error)]
pub enum Failure {
    /// A defect.
    #[error(transparent)]
    BoundFell(#[from] BoundFell),
    /// Of a PCFG with logistic-normal priors.
    #[error(transparent)]
    Normal(#[from] train::logistic_normal::Failure),
}

impl State {
    /// Rounds that counted.
    pub fn rounds(&self) -> usize {
        match self {
            State::Sticks(state) => state.rounds,
            State::Pcfg(state) => state.rounds,
            State::Chain(state) => state.rounds,
            State::Latent(state) => state.rounds,
            State::Normal(state) => state.rounds,
            State::SampledSticks(state) => state.rounds,
            State::SampledPcfg(state) => state.rounds,
        }
    }

    /// The last objective.
    pub fn bound(&self) -> Option<f64> {
        match self {
            State::Sticks(state) => state.bound,
            State::Pcfg(state) => state.bound,
            State::Chain(state) => state.bound,
            State::Latent(state) => state.bound,
            State::Normal(state) => state.bound,
            State::SampledSticks(state) => state.bound,
            State::SampledPcfg(state) => state.bound,
        }
    }

    /// Whether a run of this grammar and lexicon can go on from it, as far as can be told without the shards; an error says what
    /// does not hold.
    pub fn check(&self, grammar: &Grammar, lexicon: &Lexicon) -> Result<(), String> {
        if self.bound().is_some_and(|bound| bound.is_nan() || bound == f64::INFINITY) {
            return Err("its bound is no number".to_owned());
        }
        match self {
            State::Sticks(state) => state.check(grammar, lexicon),
            State::Pcfg(state) => state.estimate.check(&Groups::new(grammar, lexicon)),
            State::Chain(state) => state.check(grammar, lexicon),
            // All that it says is about its shards.
            State::Latent(_) => Ok(()),
            State::Normal(state) => state.check(&multinomials(grammar)?),
            State::SampledSticks(state) => state.check(grammar, lexicon),
            State::SampledPcfg(state) => state.check(&Groups::new(grammar, lexicon)),
        }
    }
}

/// A run.
pub enum Learner<'a> {
    /// Of an adaptor grammar by variational Bayes.
    Sticks(Box<Sticks>),
    /// Of a PCFG.
    Pcfg(Box<train::pcfg::Trainer>),
    /// A Markov chain over the trees of either.
    Chain(Box<train::chain::Trainer>),
    /// A PCFG with latent annotations, of a treebank.
    Latent(Box<train::latent::Trainer>, &'a Treebank),
    /// A PCFG with logistic-normal priors.
    Normal(Box<train::logistic_normal::Trainer>),
    /// An adaptor grammar or a PCFG by stochastic variational Bayes.
    Sampled(Box<Sampled>),
}

/// Variational Bayes over sticks, and the round under way.
pub struct Sticks {
    trainer: train::adaptor::Trainer,
    weights: Arc<Vec<Wide>>,
    totals: Totals,
}

/// How a run of a point begins.
pub struct Beginning<'a> {
    /// The point.
    pub inference: &'a InferenceTable,
    /// Which of the point's runs, from 1: its part of the seed.
    pub restart: usize,
    /// The trees that it starts from, if it starts from such.
    pub trees: Option<&'a GivenTrees>,
    /// The family of each parameter, if some have one.
    pub families: Option<&'a [Option<usize>]>,
}

/// Trees to start from, or counts alone.
#[derive(Default)]
pub struct GivenTrees {
    /// Uses of every parameter, for a PCFG.
    pub counts: Vec<f64>,
    /// Bracketed, by shard and occurrence.
    pub by_shard: Vec<Arc<Vec<String>>>,
}

impl<'a> Learner<'a> {
    /// A new run, or one that goes on.
    pub fn new(
        plan: &'a Plan,
        beginning: Beginning<'_>,
        state: Option<State>,
    ) -> Result<Learner<'a>, String> {
        let (grammar, lexicon) = (plan.grammar.value.clone(), plan.lexicon.value.clone());
        let Beginning { inference, restart, .. } = beginning;
        if inference.method == Method::Hastings {
            let state = match state {
                Some(State::Chain(state)) => state,
                Some(_) => return Err("it is of another method".to_owned()),
                None => train::chain::State::default(),
            };
            let alpha = alpha(&grammar, &lexicon, inference);
            let trainer = train::chain::Trainer::new(grammar, &lexicon, alpha, chain(&beginning), state);
            return Ok(Learner::Chain(Box::new(trainer)));
        }
        if let Some(treebank) = &plan.treebank {
            let settings = annotations(&beginning);
            let state = match state {
                Some(State::Latent(state)) => state,
                Some(_) => return Err("it is of another kind of model".to_owned()),
                None => train::latent::State::default(),
            };
            let shards = plan.shards.iter().map(|shard| shard.shard.value().map_err(told));
            let shards = shards.collect::<Result<Vec<_>, _>>()?;
            let trees = shards.iter().filter_map(|shard| match &**shard {
                Shard::Trees { trees, .. } => Some(trees),
                Shard::Sentences(_) | Shard::Strings(_) => None,
            });
            state.check(&settings, &treebank.rules, &trees.collect::<Vec<_>>())?;
            let trainer = train::latent::Trainer::new(treebank.rules.clone(), settings, state);
            return Ok(Learner::Latent(Box::new(trainer), treebank));
        }
        if inference.prior == RulePrior::LogisticNormal {
            let multinomials = multinomials(&grammar)?;
            let state = match state {
                Some(State::Normal(state)) => state,
                Some(_) => return Err("it is of another prior".to_owned()),
                None => normal_state(&grammar, &multinomials, &beginning)?,
            };
            let settings = normal(inference)?;
            state.check(&multinomials)?;
            state.suits(&settings)?;
            let trainer = train::logistic_normal::Trainer::new(settings, state);
            return Ok(Learner::Normal(Box::new(trainer)));
        }
        if inference.method == Method::Svb {
            return Ok(Learner::Sampled(Box::new(Sampled::new(plan, &beginning, state)?)));
        }
        match is_adapted(plan) {
            true => {
                let settings = train::adaptor::Settings {
                    start: first_of_sticks(&beginning, &grammar, &lexicon)
                        .map_err(|error| error.to_string())?,
                    ..sticks(inference)
                };
                let noise = Noise::new(inference.seed, restart as u64);
                let trainer = match state {
                    Some(State::Sticks(state)) => {
                        train::adaptor::Trainer::resume(grammar, lexicon, settings, noise, state)
                    }
                    Some(_) => return Err("it is of another kind of model".to_owned()),
                    None => train::adaptor::Trainer::new(grammar, lexicon, settings, noise),
                };
                let (weights, totals) = (Arc::default(), Totals::new(0));
                Ok(Learner::Sticks(Box::new(Sticks { trainer, weights, totals })))
            }
            false => {
                let groups = Groups::new(&grammar, &lexicon);
                let alpha = alpha(&grammar, &lexicon, inference);
                let settings = pcfg(&beginning);
                let trainer = match state {
                    Some(State::Pcfg(state)) => {
                        let n_touched = plan.shards.iter().map(|shard| Ok(shard.params.value()?.len()));
                        state
                            .check(&groups, &n_touched.collect::<anyhow::Result<Vec<_>>>().map_err(told)?)?;
                        train::pcfg::Trainer::resume(groups, settings, state)
                    }
                    Some(_) => return Err("it is of another kind of model".to_owned()),
                    None => train::pcfg::Trainer::new(groups, alpha, settings),
                };
                Ok(Learner::Pcfg(Box::new(trainer)))
            }
        }
    }

    /// What it knows.
    pub fn state(&self) -> State {
        match self {
            Learner::Sticks(sticks) => State::Sticks(sticks.trainer.state().clone()),
            Learner::Pcfg(trainer) => State::Pcfg(trainer.state().clone()),
            Learner::Chain(trainer) => State::Chain(trainer.state().clone()),
            Learner::Latent(trainer, _) => State::Latent(trainer.state().clone()),
            Learner::Normal(trainer) => State::Normal(trainer.state().clone()),
            Learner::Sampled(sampled) => sampled.state(),
        }
    }

    /// Rounds that counted.
    pub fn rounds(&self) -> usize {
        match self {
            Learner::Sticks(sticks) => sticks.trainer.state().rounds,
            Learner::Pcfg(trainer) => trainer.state().rounds,
            Learner::Chain(trainer) => trainer.state().rounds,
            Learner::Latent(trainer, _) => trainer.state().rounds,
            Learner::Normal(trainer) => trainer.state().rounds,
            Learner::Sampled(sampled) => sampled.rounds(),
        }
    }

    /// The shards that the next round reads, ascending.
    pub fn shards(&self, plan: &Plan) -> Vec<usize> {
        match self {
            Learner::Sampled(sampled) => sampled.shards(plan),
            Learner::Sticks(_)
            | Learner::Pcfg(_)
            | Learner::Chain(_)
            | Learner::Latent(..)
            | Learner::Normal(_) => (0..plan.shards.len()).collect(),
        }
    }

    /// Begins a round. With `trees`, samplers return theirs, of which these nonterminals are the segments; with `keep`, they count
    /// as a sample.
    pub fn begin(&mut self, trees: Option<&[SymbolId]>, keep: bool) {
        let trees = trees.map(<[SymbolId]>::to_vec);
        match self {
            Learner::Sticks(sticks) => {
                sticks.weights = Arc::new(sticks.trainer.weights());
                sticks.totals = Totals::new(sticks.weights.len());
            }
            Learner::Pcfg(trainer) => trainer.begin(trees, keep),
            Learner::Chain(trainer) => trainer.begin(trees, keep),
            Learner::Latent(trainer, _) => trainer.begin(),
            Learner::Normal(trainer) => trainer.begin(),
            Learner::Sampled(sampled) => sampled.begin(),
        }
    }

    /// What the round's shards are asked.
    pub fn ask(&self, plan: &Plan) -> anyhow::Result<Ask> {
        let n_shards = plan.shards.len();
        Ok(match self {
            Learner::Sticks(sticks) => {
                Ask::Expect { weights: sticks.weights.clone(), losses: sticks.trainer.wants_losses() }
            }
            Learner::Pcfg(trainer) => match trainer.ask() {
                Some(ask) => ask,
                None => {
                    let shards = plan.shards.iter().enumerate();
                    let works = shards.map(|(at, shard)| Ok(trainer.work(at, &shard.params.value()?)));
                    Ask::Each(works.collect::<anyhow::Result<_>>()?)
                }
            },
            Learner::Chain(trainer) => Ask::Each((0..n_shards).map(|at| trainer.work(at)).collect()),
            Learner::Latent(trainer, _) => Ask::Each((0..n_shards).map(|at| trainer.work(at)).collect()),
            Learner::Normal(trainer) => Ask::Same(trainer.work()),
            Learner::Sampled(sampled) => sampled.ask(),
        })
    }

    /// Takes in the answer of a shard; shards come in order. Whether it is one to what was asked.
    pub fn add(&mut self, plan: &Plan, shard: usize, answer: Answer) -> anyhow::Result<bool> {
        let PlannedShard { params, strings, .. } = &plan.shards[shard];
        Ok(match (self, answer) {
            (Learner::Sticks(sticks), Answer::Expectation(found)) => {
                sticks.totals.add(strings.as_ref(), &params.value()?, found);
                true
            }
            (Learner::Pcfg(trainer), answer) => trainer.add(&params.value()?, answer),
            (Learner::Chain(trainer), answer) => trainer.add(answer),
            (Learner::Latent(trainer, _), answer) => trainer.add(answer),
            (Learner::Normal(trainer), answer) => trainer.add(shard, answer),
            (Learner::Sampled(sampled), Answer::Expectation(found)) => {
                sampled.add(strings.as_ref(), &params.value()?, found);
                true
            }
            _ => false,
        })
    }

    /// Ends a round to which all its shards were added.
    pub fn finish(&mut self) -> Result<Step, Failure> {
        Ok(match self {
            Learner::Sticks(sticks) => {
                let totals = std::mem::replace(&mut sticks.totals, Totals::new(0));
                sticks.trainer.absorb(totals)?
            }
            Learner::Pcfg(trainer) => trainer.finish()?,
            Learner::Chain(trainer) => trainer.finish(),
            Learner::Latent(trainer, _) => trainer.finish()?,
            Learner::Normal(trainer) => trainer.finish()?,
            Learner::Sampled(sampled) => sampled.finish(),
        })
    }

    /// The trees of the last round, by shard and occurrence, if they were kept.
    pub fn samples(&self) -> &[Vec<Analysis>] {
        match self {
            Learner::Sticks(_) | Learner::Latent(..) | Learner::Normal(_) | Learner::Sampled(_) => &[],
            Learner::Pcfg(trainer) => trainer.samples(),
            Learner::Chain(trainer) => trainer.samples(),
        }
    }

    /// What was learned, and the strings that it is about.
    pub fn learned(&self, plan: &Plan) -> (Lexicon, Params) {
        let lexicon = || plan.lexicon.value.as_ref().clone();
        match (self, is_adapted(plan)) {
            (Learner::Sticks(sticks), _) => (lexicon(), Params::Adaptor(sticks.trainer.params().clone())),
            (Learner::Pcfg(trainer), _) => (lexicon(), Params::Pcfg(trainer.params())),
            (Learner::Normal(trainer), _) => (lexicon(), Params::LogisticNormal(trainer.params())),
            (Learner::Sampled(sampled), _) => (lexicon(), sampled.params()),
            (Learner::Latent(trainer, treebank), _) => {
                let model = latent::parse::Model {
                    rules: treebank.rules.clone(),
                    vocabulary: treebank.vocabulary.clone(),
                    chains: treebank.chains.clone(),
                    n_subtypes: trainer.n_subtypes(),
                    weights: trainer.estimate(),
                };
                (lexicon(), Params::Latent(Box::new(model)))
            }
            (Learner::Chain(trainer), false) => (lexicon(), Params::Pcfg(trainer.pcfg())),
            (Learner::Chain(trainer), true) => {
                let (lexicon, params) = trainer.sticks();
                (lexicon, Params::Adaptor(params))
            }
        }
    }

    /// Discount and concentration of the adapted nonterminals, in symbol order.
    pub fn hyper(&self) -> Vec<(f64, f64)> {
        match self {
            Learner::Chain(trainer) => {
                trainer.hyper().iter().map(|hyper| (hyper.discount, hyper.concentration)).collect()
            }
            _ => self.sticks().iter().map(|stick| (stick.discount, stick.concentration)).collect(),
        }
    }

    /// The components of a mixture by name, and what each came to in the last round; none without components.
    pub fn components(&self) -> Vec<(&str, train::logistic_normal::Share)> {
        match self {
            Learner::Normal(trainer) => trainer.shares().collect(),
            Learner::Sticks(_)
            | Learner::Pcfg(_)
            | Learner::Chain(_)
            | Learner::Latent(..)
            | Learner::Sampled(_) => Vec::new(),
        }
    }

    /// Strings in use, by adapted nonterminal in symbol order, where that is known.
    pub fn n_strings(&self) -> Vec<usize> {
        match self {
            Learner::Chain(trainer) => trainer.n_strings(),
            _ => self.sticks().iter().map(|stick| stick.order.len()).collect(),
        }
    }

    /// The strings or rules used most, for people.
    pub fn snapshot(&self, plan: &Plan, unit: Unit) -> (Vec<snapshot::Strings>, Vec<(String, f64)>) {
        let grammar = &plan.grammar.value;
        let rules =
            |params: pcfg::Params| (Vec::new(), snapshot::rules(grammar, &params.estimate, snapshot::SHOWN));
        match self {
            Learner::Chain(trainer) if is_adapted(plan) => {
                let (lexicon, params) = trainer.sticks();
                (snapshot::strings(grammar, &lexicon, &params.sticks, unit), Vec::new())
            }
            Learner::Chain(trainer) => rules(trainer.pcfg()),
            Learner::Pcfg(trainer) => rules(trainer.params()),
            Learner::Sampled(sampled) if !is_adapted(plan) => match sampled.params() {
                Params::Pcfg(params) => rules(params),
                Params::Adaptor(_) | Params::Latent(_) | Params::LogisticNormal(_) => Default::default(),
            },
            Learner::Sticks(_) | Learner::Sampled(_) => {
                (snapshot::strings(grammar, &plan.lexicon.value, self.sticks(), unit), Vec::new())
            }
            Learner::Latent(..) | Learner::Normal(_) => Default::default(),
        }
    }

    /// The sticks of variational Bayes; none of other methods.
    fn sticks(&self) -> &[Stick] {
        match self {
            Learner::Sticks(sticks) => &sticks.trainer.params().sticks,
            Learner::Sampled(sampled) => sampled.sticks(),
            Learner::Pcfg(_) | Learner::Chain(_) | Learner::Latent(..) | Learner::Normal(_) => &[],
        }
    }
}

/// What cannot be read.
fn told(error: anyhow::Error) -> String {
    format!("{error:#}")
}

/// Whether some nonterminals are adapted.
fn is_adapted(plan: &Plan) -> bool {
    plan.grammar.value.adapted().next().is_some()
}

/// What the first round of sticks runs with.
fn first_of_sticks(
    beginning: &Beginning<'_>,
    grammar: &Grammar,
    lexicon: &Lexicon,
) -> Result<StickStart, TooAmbiguous> {
    let Beginning { inference, restart, trees, .. } = beginning;
    match (inference.start, trees) {
        (Start::Harmonic, Some(given)) => {
            let plain = grammar.clone().without_adaptors();
            let groups = Groups::new(&plain, &Lexicon::default());
            // The rules of adapted constituents come last, and each is the only one of its own.
            let mut counts = given.counts.clone();
            counts.resize(groups.n_params(), 1.0);
            let estimate = Estimate { alpha: groups.alpha(&plain), counts };
            let weights = base_weights(grammar, lexicon, &em::weights(&groups, &estimate))?;
            Ok(StickStart::Weights(weights))
        }
        _ if *restart == 1 => Ok(StickStart::Uniform),
        _ => Ok(StickStart::Jitter(inference.jitter)),
    }
}

/// How sticks are trained, all but what they start with.
pub fn sticks(inference: &InferenceTable) -> train::adaptor::Settings {
    let fits = |which: Hyperparameter| inference.fit.contains(&which);
    let pitman_yor = inference.adaptor == AdaptorPrior::PitmanYor;
    let growth = train::adaptor::Growth { start: inference.grow_from, step: inference.grow_by };
    train::adaptor::Settings {
        select_by_bound: inference.selection == Selection::Bound,
        drop_share: inference.drop_share,
        resort: inference.selection != Selection::Fixed,
        fit: Fit {
            concentration: fits(Hyperparameter::Concentration),
            discount: pitman_yor && fits(Hyperparameter::Discount),
            alpha: fits(Hyperparameter::Alpha),
        },
        pitman_yor,
        discount: inference.discount,
        concentration: inference.concentration,
        growth: (inference.grow_from > 0).then_some(growth),
        tolerance: inference.tolerance.unwrap_or(TOLERANCE),
        start: StickStart::Uniform,
    }
}

/// How a PCFG is trained.
fn pcfg(beginning: &Beginning<'_>) -> train::pcfg::Settings {
    use train::pcfg::{Method as Estimator, Settings};
    let Beginning { inference, restart, .. } = *beginning;
    let method = match inference.method {
        Method::Em => Estimator::Em,
        Method::MapEm => Estimator::MapEm,
        Method::Vb => Estimator::Vb { fit_alpha: false },
        Method::VbEm => Estimator::Vb { fit_alpha: true },
        Method::Cvb => Estimator::CollapsedVb,
        Method::Gibbs => Estimator::Gibbs,
        Method::Svb | Method::Hastings => unreachable!("samples and chains have other learners"),
    };
    Settings {
        method,
        start: first(beginning),
        anneal: anneal(inference),
        tolerance: inference.tolerance.unwrap_or(TOLERANCE),
        seed: inference.seed,
        run: restart as u64,
    }
}

/// What a PCFG starts from.
fn first(beginning: &Beginning<'_>) -> train::pcfg::Start {
    use train::pcfg::Start as First;
    let Beginning { inference, restart, trees, .. } = *beginning;
    match (inference.start, trees) {
        (Start::Trees | Start::Model | Start::Harmonic, Some(trees)) => First::Counts(trees.counts.clone()),
        (Start::Uniform, _) if restart == 1 => First::Uniform,
        (Start::Noise, _) => First::Noise(inference.noise),
        _ => First::Jitter(inference.jitter),
    }
}

/// How a PCFG with logistic-normal priors is trained.
fn normal(inference: &InferenceTable) -> Result<train::logistic_normal::Settings, String> {
    Ok(train::logistic_normal::Settings {
        until: Until::default(),
        estimate: inference.estimate,
        tolerance: inference.tolerance.unwrap_or(TOLERANCE),
        constrained: inference.constrained().map_err(|error| error.to_string())?,
    })
}

/// Before its first round.
fn normal_state(
    grammar: &Grammar,
    multinomials: &Multinomials,
    beginning: &Beginning<'_>,
) -> Result<train::logistic_normal::State, String> {
    let groups = Groups::new(grammar, &Lexicon::default());
    let weights = first(beginning).weights(&groups, beginning.inference.seed, beginning.restart as u64);
    let alone = vec![None; groups.n_params()];
    let families = beginning.families.unwrap_or(&alone);
    let told = |failure: train::logistic_normal::Failure| match failure {
        train::logistic_normal::Failure::Prior { multinomial, source } => {
            format!("`{}`: {source}", grammar.name(multinomials.parent(grammar, multinomial)))
        }
        other => other.to_string(),
    };
    let state = train::logistic_normal::State::new(multinomials, &weights, families).map_err(told)?;
    match normal(beginning.inference)?.constrained {
        Some(those) => state.weighed(&those.mixture).map_err(told),
        None => Ok(state),
    }
}

fn multinomials(grammar: &Grammar) -> Result<Multinomials, String> {
    Multinomials::new(grammar).map_err(|unsuited| unsuited.to_string())
}

/// How latent annotations are trained.
fn annotations(beginning: &Beginning<'_>) -> train::latent::Settings {
    let Beginning { inference, restart, .. } = *beginning;
    train::latent::Settings {
        method: match inference.method {
            Method::Em => latent::Method::Em,
            Method::Vb => latent::Method::Vb,
            Method::Cvb => latent::Method::Cvb,
            Method::MapEm | Method::VbEm | Method::Svb | Method::Gibbs | Method::Hastings => {
                unreachable!("the job was checked: no such method with latent annotations")
            }
        },
        n_subtypes: inference.subtypes,
        alpha: inference.alpha.unwrap_or(ANNOTATION_ALPHA),
        noise: inference.noise,
        tolerance: inference.tolerance.unwrap_or(ANNOTATION_TOLERANCE),
        seed: inference.seed,
        run: restart as u64,
    }
}

/// Relative change below which a run has converged, unless the job says another.
const TOLERANCE: f64 = 1e-5;
/// None: subtypes that are nearly alike hardly move in the first rounds.
const ANNOTATION_TOLERANCE: f64 = 0.0;
/// Pseudo-count of every split rule, unless the job says another.
const ANNOTATION_ALPHA: f64 = 0.01;

/// The temperatures of a run.
fn anneal(inference: &InferenceTable) -> Anneal {
    let InferenceTable { anneal_from: from, anneal_to: to, anneal_rounds: rounds, .. } = *inference;
    Anneal { from, to, rounds }
}

/// How a Markov chain runs.
fn chain(beginning: &Beginning<'_>) -> train::chain::Settings {
    let Beginning { inference, restart, .. } = *beginning;
    let pitman_yor = inference.adaptor == AdaptorPrior::PitmanYor;
    let discount = if pitman_yor { inference.discount } else { 0.0 };
    let fits = inference.fit.contains(&Hyperparameter::Concentration);
    train::chain::Settings {
        start: match (inference.start, beginning.trees) {
            (Start::Trees | Start::Model | Start::Harmonic, Some(trees)) => {
                train::chain::Start::Trees(trees.by_shard.clone())
            }
            (Start::Incremental, _) => train::chain::Start::Incremental,
            _ => train::chain::Start::Batch,
        },
        hyper: sampler::Hyper { discount, concentration: inference.concentration },
        draw_hyper: fits.then_some(HyperPrior { shape: inference.gamma_shape, scale: inference.gamma_scale }),
        relabel: inference.relabel,
        sweeps: inference.sweeps,
        anneal: anneal(inference),
        seed: inference.seed,
        run: restart as u64,
    }
}

/// The pseudo-counts of all parameters.
fn alpha(grammar: &Grammar, lexicon: &Lexicon, inference: &InferenceTable) -> Vec<f64> {
    match inference.alpha {
        Some(alpha) => vec![alpha; lexicon.n_params(grammar)],
        None => Groups::new(grammar, lexicon).alpha(grammar),
    }
}
