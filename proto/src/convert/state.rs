//! The state of a shard between rounds.
//!
//! It travels as packed fields, in which most indexes and most choices of derivations take one or two bytes, and every
//! length is checked. [`State::check`] checks derivations against the sentences when the chain continues.

use grammaton::grammar::{ParamId, SymbolId};
use grammaton::models::latent::collapsed::Own;
use grammaton::models::sampler::state::{Choice, Table, TableId};
use grammaton::models::sampler::{Hyper, State};
use grammaton::work::task::{ShardState, Sweeping};

use super::{POSITIVE, Wire, WireError, cut, in_range, positive, ragged, ragged_to_wire, same_length};
use crate::v1;

impl Wire for ShardState {
    type Message = v1::ShardState;
    const NAME: &'static str = "shard_state";

    fn to_wire(&self) -> v1::ShardState {
        let state = match self {
            ShardState::Counts(counts) => v1::shard_state::State::Counts(counts_to_wire(counts)),
            ShardState::Chain(state) => v1::shard_state::State::Chain(chain_to_wire(state)),
            ShardState::Latent(own) => v1::shard_state::State::Trees(trees_to_wire(own)),
            ShardState::Sweeping(sweeping) => v1::shard_state::State::Sweeping(sweeping_to_wire(sweeping)),
        };
        v1::ShardState { state: Some(state) }
    }

    fn from_wire(message: v1::ShardState) -> Result<ShardState, WireError> {
        match message.state.ok_or(WireError::Missing { field: "shard_state" })? {
            v1::shard_state::State::Counts(counts) => counts_from_wire(counts),
            v1::shard_state::State::Chain(state) => Ok(ShardState::Chain(chain_from_wire(state)?)),
            v1::shard_state::State::Trees(own) => Ok(ShardState::Latent(trees_from_wire(own)?)),
            v1::shard_state::State::Sweeping(sweeping) => {
                Ok(ShardState::Sweeping(sweeping_from_wire(sweeping)?))
            }
        }
    }
}

fn counts_to_wire(counts: &[Vec<(u32, f64)>]) -> v1::ShardStateCounts {
    let params = counts.iter().map(|counts| counts.iter().map(|&(param, _)| param));
    let counts = counts.iter().flatten().map(|&(_, count)| count).collect();
    v1::ShardStateCounts { params: Some(ragged_to_wire(params)), counts }
}

fn counts_from_wire(message: v1::ShardStateCounts) -> Result<ShardState, WireError> {
    let v1::ShardStateCounts { params, counts } = message;
    let n_params = params.as_ref().map_or(0, |params| params.symbols.len());
    same_length("shard_state.counts", counts.len(), n_params)?;
    let mut counts = counts.into_iter();
    let pairs = |params: Vec<u32>| params.into_iter().zip(&mut counts).collect();
    let shard_state =
        ShardState::Counts(ragged("shard_state.params", params)?.into_iter().map(pairs).collect());
    // The number of parameters is checked against the task.
    shard_state.check(usize::MAX).map_err(|error| WireError::ShardState { problem: error.to_string() })?;
    Ok(shard_state)
}

fn chain_to_wire(state: &State) -> v1::ShardStateChain {
    v1::ShardStateChain {
        trees: Some(derivations_to_wire(state.trees.iter().map(|tree| &tree[..]))),
        symbols: state.tables.iter().map(|table| table.symbol.0).collect(),
        labels: Some(derivations_to_wire(state.tables.iter().map(|table| &table.label[..]))),
        processes: state.hyper.iter().map(process_to_wire).collect(),
    }
}

fn chain_from_wire(message: v1::ShardStateChain) -> Result<State, WireError> {
    let v1::ShardStateChain { trees, symbols, labels, processes } = message;
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

fn sweeping_to_wire(Sweeping { state, random: [low, high], left }: &Sweeping) -> v1::ShardStateSweeping {
    let chain = Some(chain_to_wire(state));
    v1::ShardStateSweeping { chain, random_low: *low, random_high: *high, left: *left }
}

fn sweeping_from_wire(message: v1::ShardStateSweeping) -> Result<Sweeping, WireError> {
    let v1::ShardStateSweeping { chain, random_low, random_high, left } = message;
    let chain = chain.ok_or(WireError::Missing { field: "sweeping.chain" })?;
    in_range("sweeping.left", [left], 1..u64::from(u32::MAX))?;
    Ok(Sweeping { state: chain_from_wire(chain)?, random: [random_low, random_high], left })
}

fn trees_to_wire(own: &Own) -> v1::ShardStateTrees {
    v1::ShardStateTrees {
        lengths: own.trees.iter().map(|tree| tree.len() as u32).collect(),
        counts: own.trees.concat(),
    }
}

/// Converts own counts of trees; their number and their values are checked against the task.
fn trees_from_wire(message: v1::ShardStateTrees) -> Result<Own, WireError> {
    let v1::ShardStateTrees { lengths, counts } = message;
    Ok(Own { trees: cut("shard_state.trees", lengths, &counts)? })
}

pub fn process_to_wire(&Hyper { discount, concentration }: &Hyper) -> v1::Process {
    v1::Process { discount, concentration }
}

pub fn process_from_wire(field: &'static str, at: usize, process: v1::Process) -> Result<Hyper, WireError> {
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

/// Converts derivations; the one at position `at` may only refer to tables below `n_tables(at)`.
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
