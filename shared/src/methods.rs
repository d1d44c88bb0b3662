//! The methods of training: which trainer a run has, and with which settings.
//!
//! [`trainer`] has one line for each model and method that go together. The mathematics of a method is in its file of
//! [`crate::train`]; its settings come from [`Inference`] here, and its state has a variant in [`State`].

use std::error::Error;
use std::sync::Arc;

use crate::data::treebank::Treebank;
use crate::forest::TooAmbiguous;
use crate::grammar::groups::{Estimate, Groups};
use crate::grammar::lexicon::Lexicon;
use crate::grammar::{Grammar, SymbolId};
use crate::models::adaptor::hyper::Fit;
use crate::models::adaptor::start::{Start as StickStart, base_weights};
use crate::models::dmv::Layout;
use crate::models::dmv::constraint::layout_of;
use crate::models::latent::Method as OfTrees;
use crate::models::logistic_normal::multinomials::Unsuited;
use crate::models::logistic_normal::prior::PriorError;
use crate::models::logistic_normal::{Multinomials, StopRule};
use crate::models::pcfg::backoff::Backoff;
use crate::models::pcfg::em;
use crate::models::sampler::{Hyper, HyperPrior};
use crate::models::{Model, Trained};
use crate::num::Noise;
use crate::train;
use crate::train::anneal::Anneal;
use crate::train::mixture::MixtureError;
use crate::train::pcfg::Method as OfRules;
use crate::train::state::StateError;
use crate::train::stochastic::Schedule;
use crate::train::trainer::{Learned, Past, Read, Shards, Trainer};
use crate::work::shard::Shard;
use crate::work::task::Language;
use serde::{Deserialize, Serialize};

use crate::settings::inference::{AdaptorPrior, Hyperparameter, Selection, Start};
use crate::settings::{Estimator as E, Inference, Model as M};

/// Grammar and strings, or treebank.
#[derive(Clone, Debug)]
pub enum Basis {
    /// A grammar and its strings, for sentences and strings.
    Language(Language),
    /// A treebank, whose shards contain its rules.
    Treebank(Arc<Treebank>),
}

impl Basis {
    /// The grammar and the strings. An error says that there are trees instead.
    pub fn language(&self) -> Result<&Language, MethodError> {
        match self {
            Basis::Language(language) => Ok(language),
            Basis::Treebank(_) => Err(MethodError::NoGrammar),
        }
    }
}

/// What a run trains on: first the shards of sentences or trees, then those of strings.
pub trait Data: Shards {
    /// Grammar and strings, or treebank.
    fn basis(&self) -> &Basis;

    /// The contents of shard number `shard`.
    fn shard(&self, shard: usize) -> Read<Arc<Shard>>;
}

/// The number of shards that are not of strings.
fn n_of_sentences(data: &dyn Data) -> usize {
    (0..data.len()).filter(|&shard| data.strings(shard).is_none()).count()
}

/// Declares the state of a run, with a variant for each method's, and how each trainer is saved.
macro_rules! states {
    ($( $(#[$doc:meta])* $method:ident: $module:ident, )+) => {
        /// A run between two rounds, by method. Its serialized form is a part of checkpoints: variants keep their order.
        #[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
        pub enum State {
            $( $(#[$doc])* $method(train::$module::State), )+
        }

        impl State {
            /// The rounds so far.
            pub fn past(&self) -> Past {
                match self {
                    $( State::$method(state) => state.past, )+
                }
            }
        }

        $(
            impl Run for train::$module::Trainer {
                fn saved(&self) -> State {
                    State::$method(self.state().clone())
                }
            }
        )+
    };
}

/// A trainer whose state can be saved.
pub trait Run: Trainer {
    /// The state that the run can go on from.
    fn saved(&self) -> State;
}

states! {
    /// An adaptor grammar by variational Bayes.
    Adaptor: adaptor,
    /// A PCFG by EM, variational Bayes or Gibbs sampling.
    Pcfg: pcfg,
    /// A Markov chain over trees.
    Chain: chain,
    /// A PCFG with latent annotations.
    Latent: latent,
    /// A PCFG with logistic-normal priors.
    LogisticNormal: logistic_normal,
}

/// Why a run has no trainer: the job asks for none there is, or a saved state is of something else.
#[derive(Debug, thiserror::Error)]
pub enum MethodError {
    /// The prior is learned by other methods.
    #[error("the prior has no such method")]
    Prior,
    /// The model is learned by other methods.
    #[error("there is no {method}")]
    Method {
        /// Method and model, in words.
        method: String,
    },
    /// Trees are to be annotated, and there are none.
    #[error("the job has no treebank")]
    NoTreebank,
    /// Another method saved the state.
    #[error("it is of another method or kind of model")]
    Other,
    /// The saved state does not hold together, or is of other data.
    #[error(transparent)]
    State(#[from] StateError),
    /// The grammar cannot have logistic-normal priors.
    #[error(transparent)]
    Priors(#[from] Unsuited),
    /// A string has too many derivations for the weights to start from.
    #[error(transparent)]
    TooAmbiguous(#[from] TooAmbiguous),
    /// Sentences are to be trained on, and there is no grammar.
    #[error("internal error: trees are computed without a grammar; please report it")]
    NoGrammar,
    /// The first prior of a nonterminal's rules.
    #[error("`{parent}`: {source}")]
    FirstPrior {
        /// The nonterminal.
        parent: String,
        /// Cause.
        source: PriorError,
    },
    /// The weights of components.
    #[error(transparent)]
    Mixture(#[from] MixtureError),
    /// A shard cannot be read.
    #[error("{0}")]
    Shards(Box<dyn Error + Send + Sync>),
}

impl State {
    /// Checks that a run can go on from it, as far as can be seen without the shards: with this grammar and lexicon, or, without
    /// them, on trees.
    pub fn check(&self, language: Option<(&Grammar, &Lexicon)>) -> Result<(), MethodError> {
        if self.past().bound.is_some_and(|bound| bound.is_nan() || bound == f64::INFINITY) {
            return Err(StateError::from("its bound is no number").into());
        }
        let Some((grammar, lexicon)) = language else {
            return match self {
                // All of its checks need the shards.
                State::Latent(_) => Ok(()),
                _ => Err(MethodError::Other),
            };
        };
        match self {
            State::Adaptor(state) => state.check(grammar, lexicon)?,
            State::Pcfg(state) => {
                state.estimate.check(&Groups::new(grammar, lexicon)).map_err(StateError::from)?;
            }
            State::Chain(state) => state.check(grammar, lexicon)?,
            State::Latent(_) => return Err(MethodError::Other),
            State::LogisticNormal(state) => state.check(&Multinomials::new(grammar)?)?,
        }
        Ok(())
    }
}

/// How a run of a point begins.
#[derive(Clone, Copy)]
pub struct RunStart<'a> {
    /// The model of the job.
    pub model: M,
    /// The point.
    pub inference: &'a Inference,
    /// The number of the run within its point, from 1. It selects the run's part of the seed.
    pub restart: usize,
    /// The trees that it starts from, if the job gives any.
    pub trees: Option<&'a GivenTrees>,
    /// The family of each parameter, if the job gives families.
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

/// The trainer of a new run, or of one that goes on from `state`. An error says what does not fit.
pub fn trainer(
    data: &dyn Data,
    beginning: &RunStart<'_>,
    state: Option<State>,
) -> Result<Box<dyn Run>, MethodError> {
    let RunStart { model, inference, .. } = *beginning;
    let estimator = E::of(inference).ok_or(MethodError::Prior)?;
    match (model, estimator) {
        (M::Adaptor | M::AdaptedDmv, E::Vb | E::Svb) => adaptor(data, beginning, state),
        (M::Pcfg | M::Dmv, E::Em | E::Oem) => pcfg(data, beginning, OfRules::Em, state),
        (M::Pcfg | M::Dmv, E::MapEm) => pcfg(data, beginning, OfRules::MapEm, state),
        (M::Pcfg | M::Dmv, E::Vb | E::Svb) => pcfg(data, beginning, OfRules::Vb { fit_alpha: false }, state),
        (M::Pcfg | M::Dmv, E::VbEm) => pcfg(data, beginning, OfRules::Vb { fit_alpha: true }, state),
        (M::Pcfg | M::Dmv, E::Cvb) => pcfg(data, beginning, OfRules::CollapsedVb, state),
        (M::Pcfg | M::Dmv, E::Gibbs) => pcfg(data, beginning, OfRules::Gibbs, state),
        (M::Pcfg | M::Dmv, E::LogisticNormal) => logistic_normal(data, beginning, state),
        (M::Adaptor | M::Pcfg | M::Dmv, E::Hastings) => chain(data, beginning, state),
        (M::PcfgLa, E::Em) => latent(data, beginning, OfTrees::Em, state),
        (M::PcfgLa, E::Vb) => latent(data, beginning, OfTrees::Vb, state),
        (M::PcfgLa, E::Cvb) => latent(data, beginning, OfTrees::Cvb, state),
        _ => Err(MethodError::Method { method: estimator.in_words(model) }),
    }
}

/// The state of the method itself, which `own` takes out of the saved one; `None` for a new run.
fn saved<T>(state: Option<State>, own: impl FnOnce(State) -> Option<T>) -> Result<Option<T>, MethodError> {
    state.map(|state| own(state).ok_or(MethodError::Other)).transpose()
}

/// Takes the state of one method out of the saved one.
macro_rules! own {
    ($state:expr, $method:ident) => {
        saved($state, |state| match state {
            State::$method(own) => Some(own),
            _ => None,
        })
    };
}

type Made = Result<Box<dyn Run>, MethodError>;

fn adaptor(data: &dyn Data, beginning: &RunStart<'_>, state: Option<State>) -> Made {
    let Language { grammar, lexicon } = data.basis().language()?;
    let (grammar, lexicon) = (grammar.value.clone(), lexicon.value.clone());
    let settings = stick_settings(data, beginning)?;
    let noise = Noise::new(beginning.inference.seed, beginning.restart as u64);
    Ok(Box::new(match own!(state, Adaptor)? {
        Some(state) => train::adaptor::Trainer::resume(grammar, lexicon, settings, noise, state),
        None => train::adaptor::Trainer::new(grammar, lexicon, settings, noise),
    }))
}

fn pcfg(data: &dyn Data, beginning: &RunStart<'_>, method: OfRules, state: Option<State>) -> Made {
    let RunStart { inference, restart, .. } = *beginning;
    let groups = groups(data)?;
    let settings = train::pcfg::Settings {
        method,
        start: first(beginning),
        schedule: inference
            .method
            .is_stochastic()
            .then(|| schedule(inference, n_of_sentences(data), restart)),
        backoff: backoff(data, inference)?,
        anneal: anneal(inference),
        tolerance: inference.tolerance.unwrap_or(TOLERANCE),
        seed: inference.seed,
        run: restart as u64,
    };
    Ok(Box::new(match own!(state, Pcfg)? {
        Some(state) => {
            let n_touched = (0..data.len()).map(|shard| Ok(data.params(shard)?.len()));
            let n_touched = n_touched.collect::<Read<Vec<_>>>().map_err(MethodError::Shards)?;
            state.check(&groups, &n_touched)?;
            train::pcfg::Trainer::resume(groups, settings, state)
        }
        None => train::pcfg::Trainer::new(groups, alpha(data, inference)?, settings),
    }))
}

fn logistic_normal(data: &dyn Data, beginning: &RunStart<'_>, state: Option<State>) -> Made {
    let grammar = &*data.basis().language()?.grammar.value;
    let multinomials = Multinomials::new(grammar)?;
    let settings = normal(beginning.inference)?;
    let state = match own!(state, LogisticNormal)? {
        Some(state) => state,
        None => normal_state(grammar, &multinomials, beginning)?,
    };
    state.check(&multinomials)?;
    state.suits(&settings)?;
    Ok(Box::new(train::logistic_normal::Trainer::new(settings, state)))
}

fn chain(data: &dyn Data, beginning: &RunStart<'_>, state: Option<State>) -> Made {
    let state = own!(state, Chain)?.unwrap_or_default();
    let Language { grammar, lexicon } = data.basis().language()?;
    let (alpha, settings) = (alpha(data, beginning.inference)?, chain_settings(beginning));
    Ok(Box::new(train::chain::Trainer::new(grammar.value.clone(), &lexicon.value, alpha, settings, state)))
}

fn latent(data: &dyn Data, beginning: &RunStart<'_>, method: OfTrees, state: Option<State>) -> Made {
    let RunStart { inference, restart, .. } = *beginning;
    let Basis::Treebank(treebank) = data.basis() else {
        return Err(MethodError::NoTreebank);
    };
    let settings = train::latent::Settings {
        method,
        n_subtypes: inference.subtypes,
        alpha: inference.alpha.unwrap_or(ANNOTATION_ALPHA),
        noise: inference.noise,
        tolerance: inference.tolerance.unwrap_or(ANNOTATION_TOLERANCE),
        seed: inference.seed,
        run: restart as u64,
    };
    let state = own!(state, Latent)?.unwrap_or_default();
    let shards = (0..data.len()).map(|shard| data.shard(shard)).collect::<Read<Vec<_>>>();
    let shards = shards.map_err(MethodError::Shards)?;
    let trees = shards.iter().filter_map(|shard| match &**shard {
        Shard::Trees { trees, .. } => Some(trees),
        Shard::Sentences(_) | Shard::Strings(_) => None,
    });
    state.check(&settings, &treebank.rules, &trees.collect::<Vec<_>>())?;
    Ok(Box::new(train::latent::Trainer::new(treebank.clone(), settings, state)))
}

/// Schedule by which the rounds of a run read shards of sentences.
fn schedule(inference: &Inference, shards: usize, restart: usize) -> Schedule {
    let schedule = Schedule {
        shards,
        sample: inference.sample_shards,
        delay: inference.forget_delay,
        power: inference.forget_power,
        first: inference.first_rounds,
        seed: inference.seed,
        run: restart as u64,
    };
    Schedule { first: or_epoch(schedule.first, &schedule), ..schedule }
}

/// Rounds, or the rounds of an epoch where the job says 0.
fn or_epoch(rounds: usize, schedule: &Schedule) -> usize {
    if rounds == 0 { schedule.epoch() } else { rounds }
}

/// A notice if a run over so many shards of sentences ends before it learns from what it read.
pub fn notice(inference: &Inference, shards: usize) -> Option<String> {
    let Inference { method, max_rounds, .. } = *inference;
    if !method.is_stochastic() {
        return None;
    }
    let Schedule { first, .. } = schedule(inference, shards, 1);
    (max_rounds <= first).then(|| {
        format!(
            "all {max_rounds} rounds have the weights that training starts with, as the first {first} do; raise inference.max_rounds \
             to several times that, or set inference.first_rounds"
        )
    })
}

/// The settings of sticks, and the weights of their first round.
fn stick_settings(
    data: &dyn Data,
    beginning: &RunStart<'_>,
) -> Result<train::adaptor::Settings, MethodError> {
    let RunStart { inference, restart, trees, .. } = *beginning;
    let Language { grammar, lexicon } = data.basis().language()?;
    let (grammar, lexicon) = (&*grammar.value, &*lexicon.value);
    let start = match (inference.start, trees) {
        (Start::Harmonic, Some(given)) => {
            let plain = grammar.clone().without_adaptors();
            let groups = Groups::new(&plain, &Lexicon::default());
            // The rules of adapted constituents come last, and each is the only one of its own.
            let mut counts = given.counts.clone();
            counts.resize(groups.n_params(), 1.0);
            let estimate = Estimate { alpha: groups.alpha(&plain), counts };
            let weights = base_weights(grammar, lexicon, &em::weights(&groups, &estimate));
            StickStart::Weights(weights?)
        }
        _ if restart == 1 => StickStart::Uniform,
        _ => StickStart::Jitter(inference.jitter),
    };
    let samples = inference.method.is_stochastic().then(|| {
        let schedule = schedule(inference, n_of_sentences(data), restart);
        train::adaptor::Samples { schedule, select_every: or_epoch(inference.select_every, &schedule) }
    });
    let fits = |which: Hyperparameter| inference.fit.contains(&which);
    let pitman_yor = inference.adaptor == AdaptorPrior::PitmanYor;
    let growth = train::adaptor::Growth { start: inference.grow_from, step: inference.grow_by };
    Ok(train::adaptor::Settings {
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
        start,
        samples,
    })
}

/// Start of a PCFG.
fn first(beginning: &RunStart<'_>) -> train::pcfg::Start {
    use train::pcfg::Start as First;
    let RunStart { inference, restart, trees, .. } = *beginning;
    match (inference.start, trees) {
        (Start::Trees | Start::Model | Start::Harmonic, Some(trees)) => First::Counts(trees.counts.clone()),
        (Start::Uniform, _) if restart == 1 => First::Uniform,
        (Start::Noise, _) => First::Noise(inference.noise),
        _ => First::Jitter(inference.jitter),
    }
}

/// How a PCFG with logistic-normal priors is trained.
fn normal(inference: &Inference) -> Result<train::logistic_normal::Settings, MethodError> {
    Ok(train::logistic_normal::Settings {
        until: StopRule::default(),
        estimate: inference.estimate,
        tolerance: inference.tolerance.unwrap_or(TOLERANCE),
        constrained: inference.constrained()?,
    })
}

/// Before its first round.
fn normal_state(
    grammar: &Grammar,
    multinomials: &Multinomials,
    beginning: &RunStart<'_>,
) -> Result<train::logistic_normal::State, MethodError> {
    let groups = Groups::new(grammar, &Lexicon::default());
    let mut start = first(beginning);
    if let (Start::Model, train::pcfg::Start::Counts(counts)) = (beginning.inference.start, &mut start) {
        // Events that a model never had would have μ = −∞.
        counts.iter_mut().for_each(|count| *count += MODEL_SMOOTHING);
    }
    let weights = start.weights(&groups, beginning.inference.seed, beginning.restart as u64);
    let alone = vec![None; groups.n_params()];
    let families = beginning.families.unwrap_or(&alone);
    let error = |failure: train::logistic_normal::Failure| match failure {
        train::logistic_normal::Failure::Prior { multinomial, source } => {
            let parent = grammar.name(multinomials.parent(grammar, multinomial)).to_owned();
            MethodError::FirstPrior { parent, source }
        }
        train::logistic_normal::Failure::Mixture(error) => error.into(),
    };
    let state = train::logistic_normal::State::new(multinomials, &weights, families).map_err(error)?;
    match normal(beginning.inference)?.constrained {
        Some(those) => state.with_mixture(&those.mixture).map_err(error),
        None => Ok(state),
    }
}

/// Added to the counts of a model from which logistic-normal priors start, as to those of the harmonic start.
const MODEL_SMOOTHING: f64 = 0.1;
/// Relative change below which a run has converged, unless the job says another.
const TOLERANCE: f64 = 1e-5;
/// Tolerance of latent annotations: 0, as subtypes that are nearly alike hardly move in the first rounds.
const ANNOTATION_TOLERANCE: f64 = 0.0;
/// Pseudo-count of every split rule, unless the job says another.
pub const ANNOTATION_ALPHA: f64 = 0.01;

/// The temperatures of a run.
fn anneal(inference: &Inference) -> Anneal {
    let Inference { anneal_from: from, anneal_to: to, anneal_rounds: rounds, .. } = *inference;
    Anneal { from, to, rounds }
}

/// How a Markov chain runs.
fn chain_settings(beginning: &RunStart<'_>) -> train::chain::Settings {
    let RunStart { inference, restart, .. } = *beginning;
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
        hyper: Hyper { discount, concentration: inference.concentration },
        draw_hyper: fits.then_some(HyperPrior { shape: inference.gamma_shape, scale: inference.gamma_scale }),
        relabel: inference.relabel,
        sweeps: inference.sweeps,
        anneal: anneal(inference),
        seed: inference.seed,
        run: restart as u64,
    }
}

/// The pseudo-counts of all parameters.
fn alpha(data: &dyn Data, inference: &Inference) -> Result<Vec<f64>, MethodError> {
    let language = data.basis().language()?;
    Ok(match inference.alpha {
        Some(alpha) => vec![alpha; language.n_params()],
        None => groups(data)?.alpha(&language.grammar.value),
    })
}

/// The pseudo-counts that follow the counts, of a grammar with extended valence.
fn backoff(data: &dyn Data, inference: &Inference) -> Result<Option<Backoff>, MethodError> {
    let grammar = &data.basis().language()?.grammar.value;
    let layout = layout_of(grammar).map(|(layout, _)| layout).filter(Layout::is_extended);
    let alpha = inference.alpha.unwrap_or(1.0);
    Ok(layout.map(|layout| Backoff { sets: layout.cases(), strength: inference.backoff, alpha }))
}

/// The multinomials of the plan's grammar.
fn groups(data: &dyn Data) -> Result<Groups, MethodError> {
    let Language { grammar, lexicon } = data.basis().language()?;
    Ok(Groups::new(&grammar.value, &lexicon.value))
}

/// Whether the samples of a round are kept: those after the burn-in, so many rounds apart, the last one among them.
pub fn keeps(inference: &Inference, round: usize) -> bool {
    let Inference { max_rounds, burn_in, keep_every, .. } = *inference;
    inference.method.is_sampler()
        && round as f64 > burn_in * max_rounds as f64
        && (max_rounds - round).is_multiple_of(keep_every)
}

/// The model that a run has learned so far; `segments` are its nonterminals whose constituents are the segments.
pub fn model(basis: &Basis, segments: &[SymbolId], trainer: &dyn Trainer) -> Result<Trained, MethodError> {
    let (lexicon, params) = match trainer.learned() {
        Learned::Grammar { lexicon, params } => (lexicon, params),
        Learned::Treebank(model) => return Ok(Trained::Treebank(model)),
    };
    let language = basis.language()?;
    let lexicon = lexicon.unwrap_or_else(|| language.lexicon.value.as_ref().clone());
    let (grammar, segments) = (language.grammar.value.as_ref().clone(), segments.to_vec());
    Ok(Trained::Grammar(Model { grammar, lexicon, params, segments }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::Method;

    #[test]
    fn a_run_that_ends_with_its_first_rounds_is_reported() {
        let inference = |max_rounds| Inference {
            method: Method::Svb,
            sample_shards: 4,
            max_rounds,
            ..Inference::default()
        };
        assert_eq!(notice(&inference(6), 20), None);
        let text = notice(&inference(5), 20).unwrap();
        assert!(text.contains("as the first 5 do; raise inference.max_rounds"), "{text}");
        assert_eq!(notice(&Inference { first_rounds: 4, ..inference(5) }, 20), None);
        assert_eq!(notice(&Inference { method: Method::Vb, ..inference(5) }, 20), None);
    }
}
