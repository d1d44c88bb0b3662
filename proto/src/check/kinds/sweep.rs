//! Sweeps of Markov chains.

use grammaton::grammar::expansions::Expansions;
use grammaton::models::sampler::state::{Choice, Derived};
use grammaton::models::sampler::{HyperPrior, Moves, Settings, State};
use grammaton::models::tally::Analysis;
use grammaton::work::task::{ChainFrom, Chained, ShardState, Sweeping, Sweeps};

use crate::check::items::{Items, n_occurrences, sentences};
use crate::check::sizes::{
    DOUBLE, ENVELOPE, VARINT, item_lengths, labelled_substrings, n_nodes, of_occurrences, segmentation, sum,
    tree,
};
use crate::check::values::{adapted, at_most, most_nodes, nonterminals};
use crate::check::{FINITE, Invalid, POSITIVE, finite, in_range, numbers, positive, same_length, state};

/// Maximum number of sweeps of a round.
const MAX_SWEEPS: u64 = 1_000_000;
/// Largest parameter of the prior of concentrations; far above it, the density overflows.
const MAX_HYPER: f64 = 1e9;
pub fn check(task: &Items<'_>, sweeps: &Sweeps) -> Result<(), Invalid> {
    let (grammar, lexicon) = (task.grammar, task.lexicon);
    let Sweeps { from, n, settings: Settings { temperature, relabel: _, hyper }, pseudo, stream: _, keep } =
        sweeps;
    in_range("sweeps.n", [*n], 1..MAX_SWEEPS + 1)?;
    numbers("sweeps.temperature", &[*temperature], POSITIVE, positive)?;
    numbers("sweeps.pseudo", pseudo, POSITIVE, positive)?;
    if let Some(HyperPrior { shape, scale }) = *hyper {
        let holds = |parameter: f64| parameter > 0.0 && parameter <= MAX_HYPER;
        numbers("sweeps.hyper", &[shape, scale], "above 0 and at most 1e9", holds)?;
    }
    same_length("sweeps.pseudo", pseudo.len(), lexicon.space(grammar).n_params())?;
    nonterminals("sweeps.segments", grammar, keep.iter().flatten())?;
    match from {
        ChainFrom::Start { hyper, .. } => state::process("start.process", 0, hyper),
        ChainFrom::Trees { trees, hyper } => {
            state::process("given.process", 0, hyper)?;
            same_length("given.trees", trees.len(), n_occurrences(task.shard))
        }
        ChainFrom::ShardState(shard_state) => chain(task, &shard_state.value).map(drop),
    }
}

/// Checks that `shard_state` is the state of a chain over the shard of `task`.
fn chain<'c>(task: &Items<'_>, shard_state: &'c ShardState) -> Result<&'c State, Invalid> {
    let (grammar, lexicon) = (task.grammar, task.lexicon);
    let state = match shard_state {
        ShardState::Chain(state) => state,
        ShardState::Sweeping(Sweeping { state, random: _, left }) => {
            in_range("sweeping.left", [*left], 1..u64::from(u32::MAX))?;
            state
        }
        other @ (ShardState::Counts(_) | ShardState::Latent(_)) => {
            return Err(Invalid::ShardState { problem: format!("it is of {}", other.method()) });
        }
    };
    state::chain(state)?;
    same_length("chain.trees", state.trees.len(), n_occurrences(task.shard))?;
    same_length("chain.processes", state.hyper.len(), grammar.adapted().count())?;
    for (at, table) in state.tables.iter().enumerate() {
        adapted("chain.symbols", at, grammar, table.symbol)?;
    }
    // The constant parameter is not a rule.
    let params = 1..lexicon.space(grammar).n_params() as u64;
    in_range("chain.trees", state.trees.iter().flatten().filter_map(param), params.clone())?;
    in_range("chain.labels", state.tables.iter().flat_map(|table| &table.label).filter_map(param), params)?;
    Ok(state)
}

fn param(choice: &Choice) -> Option<u32> {
    match choice {
        Choice::Param(param) => Some(param.0),
        Choice::Table(_) => None,
    }
}

/// Checks that these sweeps can have produced the answer: all but the moves and the seating follow from the state.
pub fn check_answer(
    task: &Items<'_>,
    Sweeps { n, keep, .. }: &Sweeps,
    found: &Chained,
) -> Result<(), Invalid> {
    let (grammar, lexicon) = (task.grammar, task.lexicon);
    let Chained { uses, trees, labels, strings, analyses, shard_state, log_seating } = found;
    numbers("chained.log_seating", &[*log_seating], FINITE, finite)?;
    for (field, Moves { proposed, accepted, changed }) in
        [("chained.tree_moves", trees), ("chained.label_moves", labels)]
    {
        at_most(field, *accepted, *proposed)?;
        at_most(field, *changed, *accepted)?;
    }
    let n_params = lexicon.space(grammar).n_params();
    same_length("chained.uses", uses.len(), n_params)?;
    let state = chain(task, shard_state)?;
    let n = u64::from(*n);
    at_most("chained.tree_moves", trees.proposed, n.saturating_mul(state.trees.len() as u64))?;
    at_most("chained.label_moves", labels.proposed, n.saturating_mul(most_nodes(task)))?;
    let occurrences = sentences(task.shard).iter().flat_map(|sentence| {
        let derived = Derived { tokens: &sentence.tokens, is_derivable: None };
        std::iter::repeat_n(derived, sentence.multiplicity as usize)
    });
    let occurrences: Vec<Derived<'_>> = occurrences.collect();
    let expansions = Expansions::new(grammar, lexicon);
    let yields = state.yields(&expansions, &occurrences);
    let yields = yields.map_err(|error| Invalid::ShardState { problem: error.to_string() })?;

    let mut of_params = vec![0; n_params];
    let labels = state.tables.iter().map(|table| &table.label);
    for param in state.trees.iter().chain(labels).flatten().filter_map(param) {
        of_params[param as usize] += 1;
    }
    let holds = |condition, field| if condition { Ok(()) } else { Err(Invalid::Inconsistent { field }) };
    holds(*uses == of_params, "chained.uses")?;
    // At least one sweep was made.
    at_most("chained.left", u64::from(found.n_left()), n.saturating_sub(1))?;
    let Some(segments) = keep.as_ref().filter(|_| found.n_left() == 0) else {
        same_length("chained.strings", strings.len(), 0)?;
        return same_length("chained.trees", analyses.len(), 0);
    };
    holds(state.uses(yields) == *strings, "chained.strings")?;
    let is_segment = |label: &str| segments.iter().any(|&symbol| grammar.name(symbol) == label);
    let of_state = (0..state.trees.len())
        .filter(|&occurrence| !state.trees[occurrence].is_empty())
        .filter_map(|occurrence| state.tree(&expansions, occurrence))
        .map(|tree| Analysis { ends: tree.segment_ends(is_segment), tree: tree.to_string() });
    holds(of_state.eq(analyses.iter().cloned()), "chained.trees")
}

/// Upper bound on the bytes of an answer: a state, and the trees if they are requested.
pub fn largest_answer(task: &Items<'_>, sweeps: &Sweeps) -> u64 {
    let (grammar, lexicon) = (task.grammar, task.lexicon);
    // A node is a choice of its tree. The first customer of a table also adds the choices of the label, with its symbol and
    // length.
    let derivation = |length| VARINT + n_nodes(grammar, length).saturating_mul(4 * VARINT);
    let state = of_occurrences(task.shard, derivation);
    let uses = lexicon.space(grammar).n_params() as u64 * VARINT;
    let processes = grammar.adapted().count() as u64 * (2 * DOUBLE + VARINT);
    let kept = if sweeps.keep.is_some() {
        let strings = |length| labelled_substrings(grammar, length, length, 2 * VARINT);
        let of_tree = |length| segmentation(length).saturating_add(tree(grammar, length));
        sum(item_lengths(task).map(strings)).saturating_add(of_occurrences(task.shard, of_tree))
    } else {
        0
    };
    state.saturating_add(uses).saturating_add(processes).saturating_add(kept).saturating_add(ENVELOPE)
}
