//! Sweeps of a Markov chain over a shard ([`crate::models::sampler`]).

use rand_pcg::Pcg64Mcg;
use rand_pcg::rand_core::SeedableRng;

use crate::forest::Prepared;
use crate::grammar::SymbolId;
use crate::grammar::groups::Groups;
use crate::grammar::tree::Tree;
use crate::models::sampler;
use crate::models::sampler::{Chain, Items, Moves, Prior, Start, start};
use crate::models::tally::Analysis;
use crate::stop::{self, checked};
use crate::work::content::Named;
use crate::work::context::Context;
use crate::work::error::ComputeError;
use crate::work::heap::{flat, rows};
use crate::work::state::ShardState;
use std::sync::Arc;

/// Sweeps of a Markov chain over the trees of a shard ([`crate::models::sampler`]).
#[derive(Clone, Debug)]
pub struct Sweeps {
    /// Start of the sweeps.
    pub from: ChainFrom,
    /// Number of sweeps.
    pub n: u32,
    /// Settings of each sweep.
    pub settings: sampler::Settings,
    /// α and the uses in other shards, `[n_params]`.
    pub pseudo: Vec<f64>,
    /// Seed of the random numbers, of this shard in this round alone.
    pub stream: u64,
    /// The nonterminals whose constituents are the segments, if the trees after the last sweep are to be returned.
    pub keep: Option<Vec<SymbolId>>,
}

/// Starts of sweeps.
#[derive(Clone, Debug)]
pub enum ChainFrom {
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
    ShardState(Named<ShardState>),
}

/// Result of sweeps: the state of a Markov chain, and its samples.
#[derive(Clone, PartialEq, Debug)]
pub struct Chained {
    /// Uses of every parameter, `[n_params]`, each subtree of a table counted once.
    pub uses: Vec<u32>,
    /// The part of the log joint probability that is not of the parameters: seatings, concentrations.
    pub log_seating: f64,
    /// Proposals of trees of sentences, in all sweeps.
    pub trees: sampler::Moves,
    /// Proposals of labels of tables, in all sweeps.
    pub labels: sampler::Moves,
    /// The strings of adapted nonterminals in use, sorted by nonterminal and string; empty if no trees were asked for.
    pub strings: Vec<sampler::Uses>,
    /// Analysis of each occurrence of each sentence, in the order of the sentences; empty if not asked for.
    pub analyses: Vec<Analysis>,
    /// [`ShardState::Chain`], for the next round.
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

/// Sweeps over the trees of the shard.
pub fn run(context: &Context<'_>, sweeps: &Sweeps) -> Result<Chained, ComputeError> {
    context.sentences()?;
    let prepared = context.prepared();
    let n_params = prepared.space().n_params();
    if sweeps.pseudo.len() != n_params {
        return Err(ComputeError::Weights { found: sweeps.pseudo.len(), expected: n_params });
    }
    sweep(&prepared, &*context.chain_items()?, sweeps)
}

fn sweep(prepared: &Prepared, items: &Items, work: &Sweeps) -> Result<Chained, ComputeError> {
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
            ShardState::Chain(state) => {
                Chain::resume(items, &prior, state).map_err(|error| wrong(error.to_string()))?
            }
            other @ (ShardState::Counts(_) | ShardState::Latent(_)) => {
                return Err(wrong(format!("it is of {}", other.method())));
            }
        },
    };
    let (mut trees, mut labels) = (Moves::default(), Moves::default());
    let mut log_seating = 0.0;
    for _ in 0..work.n {
        stop::check();
        let sweep = chain.sweep(&work.settings, &mut random);
        trees += sweep.trees;
        labels += sweep.labels;
        log_seating = sweep.log_seating;
    }
    let (mut strings, mut analyses) = (Vec::new(), Vec::new());
    if let Some(segments) = &work.keep {
        strings = chain.strings();
        strings.sort_unstable_by(|a, b| (a.symbol, &a.string).cmp(&(b.symbol, &b.string)));
        let is_segment = |label: &str| segments.iter().any(|&symbol| prepared.grammar.name(symbol) == label);
        let occurrences = 0..items.occurrences().len();
        analyses.extend(
            checked(occurrences)
                .filter_map(|occurrence| chain.tree(occurrence))
                .map(|tree| Analysis { ends: tree.segment_ends(is_segment), tree: tree.to_string() }),
        );
    }
    let uses = chain.uses().to_vec();
    let shard_state = ShardState::Chain(chain.state());
    Ok(Chained { uses, log_seating, trees, labels, strings, analyses, shard_state })
}
