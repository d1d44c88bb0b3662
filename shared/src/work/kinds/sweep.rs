//! Sweeps of a Markov chain over a shard ([`crate::models::sampler`]).
//!
//! A task ends after as many sweeps as take some hundredths or tenths of a second, and at least one. Its answer then is [`ShardState::Sweeping`], and the sweeps
//! that are left are another task, which goes on from there with the same random numbers.
//!
//! Law: the sweeps of a round have the same result, bit for bit, wherever they are cut.

use rand_pcg::Pcg64Mcg;
use rand_pcg::rand_core::SeedableRng;
use serde::{Deserialize, Serialize};

use crate::forest::Prepared;
use crate::grammar::SymbolId;
use crate::grammar::groups::Groups;
use crate::grammar::tree::Tree;
use crate::models::sampler;
use crate::models::sampler::{Chain, Items, Moves, Prior, Start, start};
use crate::models::tally::Analysis;
use crate::num::random;
use crate::stop::{self, checked};
use crate::work::content::Named;
use crate::work::context::Context;
use crate::work::error::ComputeError;
use crate::work::heap::{flat, rows};
use crate::work::state::{ShardState, Sweeping};
use std::sync::Arc;

/// Sweeps of a Markov chain over the trees of a shard ([`crate::models::sampler`]).
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Sweeps<S = Named<ShardState>> {
    /// Start of the sweeps.
    pub from: ChainFrom<S>,
    /// Number of sweeps of the round that are left.
    pub n: u32,
    /// Settings of each sweep.
    pub settings: sampler::Settings,
    /// α and the uses in other shards, `[n_params]`.
    pub pseudo: Vec<f64>,
    /// Seed of the random numbers, of this shard in this round alone, if this is its first task.
    pub stream: u64,
    /// The nonterminals whose constituents are the segments, if the trees after the last sweep are to be returned.
    pub keep: Option<Vec<SymbolId>>,
}

/// Starts of sweeps.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub enum ChainFrom<S = Named<ShardState>> {
    /// No state: trees are drawn from the prior.
    Start {
        /// Whether each is drawn given those before it.
        incremental: bool,
        /// Hyper-parameters of processes whose own the grammar does not set.
        hyper: sampler::Hyper,
    },
    /// Given trees, bracketed, one per occurrence in the order of the sentences.
    Trees {
        /// The trees.
        trees: Arc<Vec<String>>,
        /// Hyper-parameters of processes whose own the grammar does not set.
        hyper: sampler::Hyper,
    },
    /// The state in the shard's last answer.
    ShardState(S),
}

impl<S> Sweeps<S> {
    /// The same sweeps, from the state that `find` returns for their own.
    pub(crate) fn with_state<T, E>(self, find: impl FnOnce(S) -> Result<T, E>) -> Result<Sweeps<T>, E> {
        let Sweeps { from, n, settings, pseudo, stream, keep } = self;
        let from = match from {
            ChainFrom::Start { incremental, hyper } => ChainFrom::Start { incremental, hyper },
            ChainFrom::Trees { trees, hyper } => ChainFrom::Trees { trees, hyper },
            ChainFrom::ShardState(state) => ChainFrom::ShardState(find(state)?),
        };
        Ok(Sweeps { from, n, settings, pseudo, stream, keep })
    }
}

/// Result of sweeps: the state of a Markov chain, and its samples.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Chained {
    /// Uses of every parameter, `[n_params]`, each subtree of a table counted once.
    pub uses: Vec<u32>,
    /// The part of the log joint probability that is not of the parameters: seatings, concentrations.
    pub log_seating: f64,
    /// Proposals of trees of sentences, in all sweeps of the task.
    pub trees: sampler::Moves,
    /// Proposals of labels of tables, in all sweeps of the task.
    pub labels: sampler::Moves,
    /// The strings of adapted nonterminals in use, sorted by nonterminal and string; empty if no trees were asked for, or sweeps are left.
    pub strings: Vec<sampler::Uses>,
    /// Analysis of each occurrence of each sentence, in the order of the sentences; empty if not asked for, or sweeps are left.
    pub analyses: Vec<Analysis>,
    /// [`ShardState::Chain`], for the next round, or [`ShardState::Sweeping`] if sweeps are left.
    pub shard_state: ShardState,
}

impl Chained {
    /// Bytes on the heap, but for what the shard carries, which stays.
    pub fn size(&self) -> usize {
        flat(&self.uses)
            + rows(&self.strings, |uses| flat(&uses.string))
            + rows(&self.analyses, Analysis::size)
    }
}

impl Chained {
    /// Sweeps of the round that are left.
    pub fn n_left(&self) -> u32 {
        match &self.shard_state {
            ShardState::Sweeping(sweeping) => sweeping.left,
            _ => 0,
        }
    }
}

/// Steps of a task ([`Items::n_steps`]), which take some tenths of a second.
const STEPS: u64 = 1 << 25;
/// Steps after which a task of [`ENOUGH_SWEEPS`] ends, some hundredths of a second, so that tasks of other users need not wait.
const SHORT: u64 = 1 << 21;
/// Sweeps beside which the reading of the state, which takes as long as one of them, does not count.
const ENOUGH_SWEEPS: u64 = 64;

/// Sweeps of a task, each of so many steps.
fn sweeps_at_once(n_steps: u64) -> u32 {
    let most = |steps: u64| steps / n_steps.max(1);
    let sweeps = most(STEPS).min(most(SHORT).max(ENOUGH_SWEEPS)).max(1);
    u32::try_from(sweeps).unwrap_or(u32::MAX)
}

/// Sweeps over the trees of the shard.
pub fn run(context: &Context<'_>, sweeps: &Sweeps) -> Result<Chained, ComputeError> {
    context.sentences()?;
    let prepared = context.prepared();
    let n_params = prepared.space().n_params();
    if sweeps.pseudo.len() != n_params {
        return Err(ComputeError::Weights { found: sweeps.pseudo.len(), expected: n_params });
    }
    let items = context.chain_items()?;
    sweep(&prepared, &items, sweeps, sweeps_at_once(items.n_steps()))
}

/// The first of these sweeps, not more than `at_once`.
fn sweep(prepared: &Prepared, items: &Items, work: &Sweeps, at_once: u32) -> Result<Chained, ComputeError> {
    let wrong = |problem: String| ComputeError::ShardState { problem };
    let groups = Groups::new(&prepared.grammar, &prepared.lexicon);
    let prior = Prior { groups, pseudo: work.pseudo.clone() };
    let mut random = Pcg64Mcg::seed_from_u64(work.stream);
    let mut begin = |from: Start<'_>, default| {
        let hyper = start::hyper(&prepared.grammar, default);
        Chain::start(items, &prior, &hyper, from, &mut random).map_err(|error| wrong(error.to_string()))
    };
    let mut chain = match &work.from {
        ChainFrom::Start { incremental: true, hyper } => begin(Start::Incremental, *hyper)?,
        ChainFrom::Start { incremental: false, hyper } => begin(Start::Batch, *hyper)?,
        ChainFrom::Trees { trees, hyper } => {
            let read = |text: &String| Tree::parse(text).map_err(|error| wrong(error.to_string()));
            let trees = trees.iter().map(read).collect::<Result<Vec<Tree>, _>>()?;
            begin(Start::Trees(&trees), *hyper)?
        }
        ChainFrom::ShardState(shard_state) => match &*shard_state.value {
            ShardState::Chain(state) | ShardState::Sweeping(Sweeping { state, .. }) => {
                if let ShardState::Sweeping(sweeping) = &*shard_state.value {
                    random = random::resume(sweeping.random);
                }
                Chain::resume(items, &prior, state).map_err(|error| wrong(error.to_string()))?
            }
            other @ (ShardState::Counts(_) | ShardState::Latent(_)) => {
                return Err(wrong(format!("it is of {}", other.method())));
            }
        },
    };
    let (mut trees, mut labels) = (Moves::default(), Moves::default());
    let mut log_seating = 0.0;
    let left = work.n.saturating_sub(at_once);
    for _ in left..work.n {
        stop::check();
        let sweep = chain.sweep(&work.settings, &mut random);
        trees += sweep.trees;
        labels += sweep.labels;
        log_seating = sweep.log_seating;
    }
    let state = chain.state();
    let (mut strings, mut analyses) = (Vec::new(), Vec::new());
    if let Some(segments) = work.keep.as_ref().filter(|_| left == 0) {
        strings = state.uses(state.check(items).expect("the state of a chain is one of its sentences"));
        let is_segment = |label: &str| segments.iter().any(|&symbol| prepared.grammar.name(symbol) == label);
        let occurrences = 0..items.occurrences().len();
        let trees = checked(occurrences).filter_map(|occurrence| chain.tree(occurrence));
        analyses.extend(trees.map(|tree| {
            let mut analysis = Analysis { ends: tree.segment_ends(is_segment), tree: tree.to_string() };
            analysis.ends.shrink_to_fit();
            analysis.tree.shrink_to_fit();
            analysis
        }));
    }
    let uses = chain.uses().to_vec();
    let shard_state = match left {
        0 => ShardState::Chain(state),
        _ => ShardState::Sweeping(Sweeping { state, random: random::state(&random), left }),
    };
    Ok(Chained { uses, log_seating, trees, labels, strings, analyses, shard_state })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::data::Sentence;
    use crate::grammar::lexicon::{Lexicon, StickStrings, Strings};
    use crate::grammar::syntax;
    use crate::models::sampler::{Hyper, HyperPrior, Settings};

    /// With and without adapted nonterminals, one within another, and a sentence in some that has no derivation.
    const GRAMMARS: [&str; 4] = [
        "1 1 S --> S S\n1 1 S --> a\n1 1 S --> b\n",
        "1 1 S --> W\n1 1 S --> W S\nW --> L\n1 1 L --> a\n1 1 L --> b\n1 1 L --> a L\n1 1 L --> b L\n",
        "1 1 S --> C\n1 1 S --> C S\nC --> W\nC --> W C\nW --> L\n1 1 L --> a\n1 1 L --> b\n1 1 L --> L L\n",
        "S --> A B\n1 1 A --> a\n1 1 A --> a A\n1 1 B --> b\n1 1 B --> A b\n1 1 B --> B B\n",
    ];

    /// Law: a task has a sweep at least, [`STEPS`] at most unless one sweep has more, and [`ENOUGH_SWEEPS`] wherever these limits allow it.
    #[test]
    fn tasks_are_short_but_not_so_short_that_reading_the_state_counts() {
        for n_steps in (0..40).map(|bits| 1_u64 << bits) {
            let sweeps = u64::from(sweeps_at_once(n_steps));
            assert!(sweeps >= 1 && (sweeps == 1 || sweeps * n_steps <= STEPS), "{sweeps} of {n_steps}");
            assert!(sweeps >= ENOUGH_SWEEPS.min(STEPS / n_steps), "{sweeps} of {n_steps}");
            assert!(sweeps <= ENOUGH_SWEEPS || sweeps * n_steps <= SHORT, "{sweeps} of {n_steps}");
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(48))]

        /// Law: the sweeps of a round have the same result wherever they are cut, all pieces alike or not.
        #[test]
        fn cuts_change_no_bit(
            grammar in 0..GRAMMARS.len(),
            texts in prop::collection::vec(("[ab]{1,7}", 1..4u32), 1..6),
            n in 2..7u32,
            cuts in prop::collection::vec(1..4u32, 6),
            (incremental, relabel, keep, hot) in any::<(bool, bool, bool, bool)>(),
            with_prior in any::<bool>(),
            stream in any::<u64>(),
        ) {
            let (grammar, _) = syntax::parse(GRAMMARS[grammar], "test").unwrap();
            let sentence = |(text, multiplicity): &(String, u32)| {
                let tokens = text.chars().map(|letter| grammar.symbol(&letter.to_string()).unwrap()).collect();
                Sentence::new(tokens, *multiplicity)
            };
            let sentences: Vec<Sentence> = texts.iter().map(sentence).collect();
            let stick = |symbol| StickStrings { symbol, strings: Strings::new() };
            let lexicon = Lexicon { sticks: grammar.adapted().map(stick).collect() };
            let prepared = Arc::new(Prepared::new(grammar, lexicon));
            let items = Items::new(prepared.clone(), &sentences).unwrap();
            let hyper = Hyper { discount: 0.4, concentration: 2.0 };
            let settings = Settings {
                temperature: if hot { 1.7 } else { 1.0 },
                relabel,
                hyper: with_prior.then_some(HyperPrior { shape: 1.0, scale: 10.0 }),
            };
            let whole = Sweeps {
                from: ChainFrom::Start { incremental, hyper },
                n,
                settings,
                pseudo: vec![0.5; prepared.space().n_params()],
                stream,
                keep: keep.then(|| vec![SymbolId(0)]),
            };
            let expected = sweep(&prepared, &items, &whole, u32::MAX).unwrap();
            let (mut work, mut trees, mut labels) = (whole, Moves::default(), Moves::default());
            for at_once in cuts.into_iter().cycle() {
                let mut found = sweep(&prepared, &items, &work, at_once).unwrap();
                trees += found.trees;
                labels += found.labels;
                prop_assert_eq!(found.n_left(), work.n.saturating_sub(at_once));
                if found.n_left() == 0 {
                    (found.trees, found.labels) = (trees, labels);
                    prop_assert_eq!(found, expected);
                    break;
                }
                prop_assert!(found.analyses.is_empty() && found.strings.is_empty());
                work = Sweeps {
                    n: found.n_left(),
                    from: ChainFrom::ShardState(Named::new(found.shard_state)),
                    ..work
                };
            }
        }
    }
}
