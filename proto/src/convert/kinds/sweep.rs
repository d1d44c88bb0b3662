//! Sweeps of Markov chains.

use std::collections::BTreeMap;
use std::sync::Arc;

use grammaton::grammar::SymbolId;
use grammaton::grammar::expansions::Expansions;
use grammaton::models::sampler::state::{Choice, Derived};
use grammaton::models::sampler::{HyperPrior, Moves, Settings, State, Uses};
use grammaton::models::tally::Analysis;
use grammaton::work::task::{ChainFrom, Chained, Named, ShardState, Sweeping, Sweeps};

use crate::convert::checks::{adapted, at_most, most_nodes, nonterminals};
use crate::convert::items::{Items, n_occurrences, sentences};
use crate::convert::sizes::{
    DOUBLE, ENVELOPE, VARINT, item_lengths, labelled_substrings, n_nodes, of_occurrences, segmentation, sum,
    tree,
};
use crate::convert::state::{process_from_wire, process_to_wire};
use crate::convert::{
    FINITE, POSITIVE, Wire, WireError, analyses_from_wire, analyses_to_wire, finite, in_range,
    labelled_strings, numbers, positive, same_length, strings_to_wire,
};
use crate::payload::MAX_PAYLOAD;
use crate::v1;

/// Maximum number of sweeps of a round.
const MAX_SWEEPS: u64 = 1_000_000;
/// Largest parameter of the prior of concentrations; far above it, the density overflows.
const MAX_HYPER: f64 = 1e9;
/// Upper bound on the bytes of a request, which may hold trees of all sentences.
pub const LARGEST_LEASE: u64 = MAX_PAYLOAD;

pub fn request_to_wire(sweeps: &Sweeps) -> v1::Sweeps {
    let Sweeps { from, n, settings: Settings { temperature, relabel, hyper }, pseudo, stream, keep } = sweeps;
    let from = match from {
        &ChainFrom::Start { incremental, hyper } => {
            v1::sweeps::From::Start(v1::Start { incremental, process: Some(process_to_wire(&hyper)) })
        }
        ChainFrom::Trees { trees, hyper } => {
            let (trees, process) = (trees.to_vec(), Some(process_to_wire(hyper)));
            v1::sweeps::From::Given(v1::Given { trees, process })
        }
        ChainFrom::ShardState(_) => v1::sweeps::From::Resume(v1::Resume {}),
    };
    v1::Sweeps {
        from: Some(from),
        n: *n,
        temperature: *temperature,
        relabel: *relabel,
        hyper: hyper.map(|HyperPrior { shape, scale }| v1::HyperPrior { shape, scale }),
        pseudo: pseudo.clone(),
        stream: *stream,
        keep: keep.is_some(),
        segments: keep.iter().flatten().map(|symbol| symbol.0).collect(),
    }
}

pub fn request_from_wire(
    message: v1::Sweeps,
    shard_state: impl FnOnce() -> Result<Named<ShardState>, WireError>,
) -> Result<Sweeps, WireError> {
    let v1::Sweeps { from, n, temperature, relabel, hyper, pseudo, stream, keep, segments } = message;
    in_range("sweeps.n", [n], 1..MAX_SWEEPS + 1)?;
    numbers("sweeps.temperature", &[temperature], POSITIVE, positive)?;
    numbers("sweeps.pseudo", &pseudo, POSITIVE, positive)?;
    let hyper = hyper.map(|v1::HyperPrior { shape, scale }| HyperPrior { shape, scale });
    if let Some(HyperPrior { shape, scale }) = hyper {
        let holds = |parameter: f64| parameter > 0.0 && parameter <= MAX_HYPER;
        numbers("sweeps.hyper", &[shape, scale], "above 0 and at most 1e9", holds)?;
    }
    let settings = Settings { temperature, relabel, hyper };
    let from = match from.ok_or(WireError::Missing { field: "sweeps.from" })? {
        v1::sweeps::From::Start(v1::Start { incremental, process }) => {
            let process = process.ok_or(WireError::Missing { field: "start.process" })?;
            ChainFrom::Start { incremental, hyper: process_from_wire("start.process", 0, process)? }
        }
        v1::sweeps::From::Given(v1::Given { trees, process }) => {
            let process = process.ok_or(WireError::Missing { field: "given.process" })?;
            let hyper = process_from_wire("given.process", 0, process)?;
            ChainFrom::Trees { trees: Arc::new(trees), hyper }
        }
        v1::sweeps::From::Resume(v1::Resume {}) => ChainFrom::ShardState(shard_state()?),
    };
    let keep = keep.then(|| segments.into_iter().map(SymbolId).collect());
    Ok(Sweeps { from, n, settings, pseudo, stream, keep })
}

pub fn to_wire(chained: &Chained) -> v1::Chained {
    let Chained { uses, log_seating, trees, labels, strings, analyses, shard_state } = chained;
    let moves = |&Moves { proposed, accepted, changed }: &Moves| v1::Moves { proposed, accepted, changed };
    let strings = v1::UsedStrings {
        symbols: strings.iter().map(|uses| uses.symbol.0).collect(),
        strings: Some(strings_to_wire(strings.iter().map(|uses| &uses.string[..]))),
        customers: strings.iter().map(|uses| uses.customers).collect(),
        tables: strings.iter().map(|uses| uses.tables).collect(),
    };
    let (ends, brackets) = analyses_to_wire(analyses);
    v1::Chained {
        uses: uses.clone(),
        log_seating: *log_seating,
        tree_moves: Some(moves(trees)),
        label_moves: Some(moves(labels)),
        strings: Some(strings),
        ends: Some(ends),
        trees: brackets,
        shard_state: Some(shard_state.to_wire()),
    }
}

pub fn from_wire(message: v1::Chained) -> Result<Chained, WireError> {
    let v1::Chained { uses, log_seating, tree_moves, label_moves, strings, ends, trees, shard_state } =
        message;
    numbers("chained.log_seating", &[log_seating], FINITE, finite)?;
    let shard_state = shard_state.ok_or(WireError::Missing { field: "chained.shard_state" })?;
    Ok(Chained {
        uses,
        log_seating,
        trees: moves_from_wire("chained.tree_moves", tree_moves)?,
        labels: moves_from_wire("chained.label_moves", label_moves)?,
        strings: used_strings(strings.ok_or(WireError::Missing { field: "chained.strings" })?)?,
        analyses: analyses_from_wire(["chained.ends", "chained.trees"], ends, trees)?,
        shard_state: ShardState::from_wire(shard_state)?,
    })
}

/// Strings in use, sorted and distinct; each has at least as many customers as tables.
fn used_strings(message: v1::UsedStrings) -> Result<Vec<Uses>, WireError> {
    let v1::UsedStrings { symbols, strings, customers, tables } = message;
    let labelled = labelled_strings("chained.strings", symbols, strings)?;
    same_length("chained.customers", customers.len(), labelled.len())?;
    same_length("chained.tables", tables.len(), labelled.len())?;
    let uses = labelled.into_iter().zip(customers.into_iter().zip(tables)).enumerate();
    let uses = uses.map(|(at, ((symbol, string), (customers, tables)))| {
        let (found, end) = (i64::from(tables), u64::from(customers) + 1);
        if (1..=customers).contains(&tables) {
            Ok(Uses { symbol, string, customers, tables })
        } else {
            Err(WireError::Range { field: "chained.tables", at, found, start: 1, end })
        }
    });
    uses.collect()
}

fn moves_from_wire(field: &'static str, message: Option<v1::Moves>) -> Result<Moves, WireError> {
    let v1::Moves { proposed, accepted, changed } = message.ok_or(WireError::Missing { field })?;
    for (found, expected) in [(accepted, proposed), (changed, accepted)] {
        if found > expected {
            return Err(WireError::Excess { field, found, expected });
        }
    }
    Ok(Moves { proposed, accepted, changed })
}

pub fn check(task: &Items<'_>, sweeps: &Sweeps) -> Result<(), WireError> {
    let (grammar, lexicon) = (task.grammar, task.lexicon);
    let Sweeps { from, pseudo, keep, .. } = sweeps;

    same_length("sweeps.pseudo", pseudo.len(), lexicon.space(grammar).n_params())?;
    nonterminals("sweeps.segments", grammar, keep.iter().flatten())?;
    match from {
        ChainFrom::Start { .. } => Ok(()),
        ChainFrom::Trees { trees, .. } => same_length("given.trees", trees.len(), n_occurrences(task.shard)),
        ChainFrom::ShardState(shard_state) => chain(task, &shard_state.value).map(drop),
    }
}

/// Checks that `shard_state` is the state of a chain over the shard of `task`.
fn chain<'c>(task: &Items<'_>, shard_state: &'c ShardState) -> Result<&'c State, WireError> {
    let (grammar, lexicon) = (task.grammar, task.lexicon);
    let state = match shard_state {
        ShardState::Chain(state) | ShardState::Sweeping(Sweeping { state, .. }) => state,
        other @ (ShardState::Counts(_) | ShardState::Latent(_)) => {
            return Err(WireError::ShardState { problem: format!("it is of {}", other.method()) });
        }
    };
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
) -> Result<(), WireError> {
    let (grammar, lexicon) = (task.grammar, task.lexicon);
    let Chained { uses, trees, labels, strings, analyses, shard_state, log_seating: _ } = found;
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
    let yields = yields.map_err(|error| WireError::ShardState { problem: error.to_string() })?;

    let mut of_params = vec![0; n_params];
    let mut customers = vec![0; yields.len()];
    let labels = state.tables.iter().map(|table| &table.label);
    for choice in state.trees.iter().chain(labels).flatten() {
        match choice {
            Choice::Param(param) => of_params[param.index()] += 1,
            Choice::Table(table) => customers[table.index()] += 1,
        }
    }
    let holds = |condition, field| if condition { Ok(()) } else { Err(WireError::Inconsistent { field }) };
    holds(*uses == of_params, "chained.uses")?;
    // At least one sweep was made.
    at_most("chained.left", u64::from(found.n_left()), n.saturating_sub(1))?;
    let Some(segments) = keep.as_ref().filter(|_| found.n_left() == 0) else {
        same_length("chained.strings", strings.len(), 0)?;
        return same_length("chained.trees", analyses.len(), 0);
    };
    let mut of_strings: BTreeMap<(SymbolId, Vec<SymbolId>), (u32, u32)> = BTreeMap::new();
    for ((table, string), customers) in state.tables.iter().zip(yields).zip(customers) {
        let (all, tables) = of_strings.entry((table.symbol, string)).or_default();
        (*all, *tables) = (*all + customers, *tables + 1);
    }
    let of_strings = of_strings.into_iter().map(|((symbol, string), (customers, tables))| Uses {
        symbol,
        string,
        customers,
        tables,
    });
    holds(of_strings.eq(strings.iter().cloned()), "chained.strings")?;
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
