//! Sweeps of a Markov chain over a shard ([`crate::sampler`]).

use rand_pcg::Pcg64Mcg;
use rand_pcg::rand_core::SeedableRng;

use super::{ComputeError, Prepared};
use crate::pcfg::Groups;
use crate::sampler::{Chain, Items, Moves, Prior, Start, start};
use crate::task::{Analysis, Carried, ChainFrom, Chained, Sweeps};
use crate::tree::Tree;

/// Sweeps.
pub fn sweep(prepared: &Prepared, items: &Items, work: &Sweeps) -> Result<Chained, ComputeError> {
    let wrong = |problem: String| ComputeError::Carried { problem };
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
        ChainFrom::Carried(carried) => match &*carried.value {
            Carried::Chain(state) => Chain::resume(items, &prior, state).map_err(wrong)?,
            Carried::Counts(_) | Carried::Latent(_) => {
                return Err(wrong("it is of collapsed variational Bayes".to_owned()));
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
    let carried = Carried::Chain(chain.state());
    Ok(Chained { uses, log_seating, trees, labels, strings, analyses, carried })
}
