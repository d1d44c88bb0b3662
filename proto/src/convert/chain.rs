//! Markov chains: what sweeps are asked for, what they answer, and the state that is carried between them.
//!
//! A choice of a derivation travels as one number, so that most take a byte or two. Whether derivations are those of
//! sentences comes out when the chain goes on ([`State::check`]).

use std::sync::Arc;

use shared::grammar::ParamId;
use shared::grammar::SymbolId;
use shared::models::sampler::state::{Choice, Table, TableId};
use shared::models::sampler::{Hyper, HyperPrior, Moves, Settings, State, Uses};
use shared::work::task::{ChainFrom, Chained, Named, ShardState, Sweeps};

use super::{
    LOGARITHM, POSITIVE, Wire, WireError, analyses_from_wire, analyses_to_wire, cut, in_range,
    labelled_strings, logarithm, numbers, positive, same_length, strings_to_wire,
};
use crate::v1;

/// Most sweeps of a round.
const MAX_SWEEPS: u64 = 1_000_000;
/// Largest parameter of the prior of concentrations: far beyond it, the density is no number.
const MAX_HYPER: f64 = 1e9;

pub(super) fn sweeps_to_wire(sweeps: &Sweeps) -> v1::Sweeps {
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

pub(super) fn sweeps_from_wire(
    message: v1::Sweeps,
    carried: impl FnOnce() -> Result<Named<ShardState>, WireError>,
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
        v1::sweeps::From::Resume(v1::Resume {}) => ChainFrom::ShardState(carried()?),
    };
    let keep = keep.then(|| segments.into_iter().map(SymbolId).collect());
    Ok(Sweeps { from, n, settings, pseudo, stream, keep })
}

pub(super) fn state_to_wire(state: &State) -> v1::CarriedChain {
    v1::CarriedChain {
        trees: Some(derivations_to_wire(state.trees.iter().map(|tree| &tree[..]))),
        symbols: state.tables.iter().map(|table| table.symbol.0).collect(),
        labels: Some(derivations_to_wire(state.tables.iter().map(|table| &table.label[..]))),
        processes: state.hyper.iter().map(process_to_wire).collect(),
    }
}

pub(super) fn state_from_wire(message: v1::CarriedChain) -> Result<State, WireError> {
    let v1::CarriedChain { trees, symbols, labels, processes } = message;
    let trees = derivations_from_wire("chain.trees", trees, |_| symbols.len())?;
    // A label sits at tables before its own.
    let labels = derivations_from_wire("chain.labels", labels, |label| label)?;
    same_length("chain.labels", labels.len(), symbols.len())?;
    if let Some(at) = labels.iter().position(Vec::is_empty) {
        return Err(WireError::Empty { field: "chain.labels", at });
    }
    let table = |(symbol, label)| Table { symbol: SymbolId(symbol), label };
    let process = |(at, process)| process_from_wire("chain.processes", at, process);
    Ok(State {
        trees,
        tables: symbols.into_iter().zip(labels).map(table).collect(),
        hyper: processes.into_iter().enumerate().map(process).collect::<Result<_, _>>()?,
    })
}

pub(super) fn chained_to_wire(chained: &Chained) -> v1::Chained {
    let Chained { uses, log_seating, trees, labels, strings, analyses, carried } = chained;
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
        carried: Some(carried.to_wire()),
    }
}

pub(super) fn chained_from_wire(message: v1::Chained) -> Result<Chained, WireError> {
    let v1::Chained { uses, log_seating, tree_moves, label_moves, strings, ends, trees, carried } = message;
    numbers("chained.log_seating", &[log_seating], LOGARITHM, logarithm)?;
    let carried = carried.ok_or(WireError::Missing { field: "chained.carried" })?;
    Ok(Chained {
        uses,
        log_seating,
        trees: moves_from_wire("chained.tree_moves", tree_moves)?,
        labels: moves_from_wire("chained.label_moves", label_moves)?,
        strings: used_strings(strings.ok_or(WireError::Missing { field: "chained.strings" })?)?,
        analyses: analyses_from_wire(["chained.ends", "chained.trees"], ends, trees)?,
        carried: ShardState::from_wire(carried)?,
    })
}

/// Sorted, each once, with tables and at each of them somebody.
fn used_strings(message: v1::UsedStrings) -> Result<Vec<Uses>, WireError> {
    let v1::UsedStrings { symbols, strings, customers, tables } = message;
    let labelled = labelled_strings("chained.strings", symbols, strings)?;
    same_length("chained.customers", customers.len(), labelled.len())?;
    same_length("chained.tables", tables.len(), labelled.len())?;
    let uses = labelled.into_iter().zip(customers.into_iter().zip(tables)).enumerate();
    let uses = uses.map(|(at, ((symbol, string), (customers, tables)))| {
        let (found, end) = (i64::from(tables), u64::from(customers) + 1);
        match (1..=customers).contains(&tables) {
            true => Ok(Uses { symbol, string, customers, tables }),
            false => Err(WireError::Range { field: "chained.tables", at, found, start: 1, end }),
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

fn process_to_wire(&Hyper { discount, concentration }: &Hyper) -> v1::Process {
    v1::Process { discount, concentration }
}

fn process_from_wire(field: &'static str, at: usize, process: v1::Process) -> Result<Hyper, WireError> {
    let v1::Process { discount, concentration } = process;
    let number = |found, expected| Err(WireError::Number { field, at, found, expected });
    if !(0.0..1.0).contains(&discount) {
        return number(discount, "in [0, 1)");
    }
    if !positive(concentration) {
        return number(concentration, POSITIVE);
    }
    Ok(Hyper { discount, concentration })
}

fn derivations_to_wire<'a>(derivations: impl Iterator<Item = &'a [Choice]>) -> v1::Derivations {
    let mut message = v1::Derivations::default();
    for derivation in derivations {
        message.lengths.push(derivation.len() as u32);
        message.choices.extend(derivation.iter().map(|choice| match *choice {
            Choice::Param(param) => 2 * u64::from(param.0),
            Choice::Table(table) => 2 * u64::from(table.0) + 1,
        }));
    }
    message
}

/// The derivation at each position sits at tables below `n_tables` of it.
fn derivations_from_wire(
    field: &'static str,
    message: Option<v1::Derivations>,
    n_tables: impl Fn(usize) -> usize,
) -> Result<Vec<Vec<Choice>>, WireError> {
    let v1::Derivations { lengths, choices } = message.ok_or(WireError::Missing { field })?;
    let derivations = cut(field, lengths, &choices)?.into_iter().enumerate();
    let derivations = derivations.map(|(at, choices)| {
        let choice = |number: u64| {
            let (id, is_table) = (number / 2, number % 2 == 1);
            let end = if is_table { n_tables(at) as u64 } else { u64::from(u32::MAX) + 1 };
            match u32::try_from(id).ok().filter(|&id| u64::from(id) < end) {
                Some(id) if is_table => Ok(Choice::Table(TableId(id))),
                Some(id) => Ok(Choice::Param(ParamId(id))),
                // Half of a u64 is an i64.
                None => Err(WireError::Range { field, at, found: id as i64, start: 0, end }),
            }
        };
        choices.into_iter().map(choice).collect()
    });
    derivations.collect()
}
