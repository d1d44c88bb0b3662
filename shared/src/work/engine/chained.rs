//! Sweeps of a Markov chain over a shard ([`crate::models::sampler`]).

use rand_pcg::Pcg64Mcg;
use rand_pcg::rand_core::SeedableRng;

use super::ComputeError;
use crate::forest::Prepared;
use crate::grammar::groups::Groups;
use crate::grammar::tree::Tree;
use crate::models::sampler::{Chain, Items, Moves, Prior, Start, start};
use crate::models::tally::Analysis;
use crate::work::task::{ChainFrom, Chained, ShardState, Sweeps};

/// Sweeps.
pub fn sweep(prepared: &Prepared, items: &Items, work: &Sweeps) -> Result<Chained, ComputeError> {
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
        ChainFrom::ShardState(carried) => match &*carried.value {
            ShardState::Chain(state) => Chain::resume(items, &prior, state).map_err(wrong)?,
            other @ (ShardState::Counts(_) | ShardState::Latent(_)) => {
                return Err(wrong(format!("it is of {}", other.method())));
            }
        },
    };
    let (mut trees, mut labels) = (Moves::default(), Moves::default());
    let mut log_seating = 0.0;
    for _ in 0..work.n {
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
            occurrences
                .filter_map(|occurrence| chain.tree(occurrence))
                .map(|tree| Analysis { ends: tree.segment_ends(is_segment), tree: tree.to_string() }),
        );
    }
    let uses = chain.uses().to_vec();
    let carried = ShardState::Chain(chain.state());
    Ok(Chained { uses, log_seating, trees, labels, strings, analyses, carried })
}
