//! Chains: what can be checked without the sentences. [`State::yields`] checks derivations against them when the chain continues.

use grammaton::models::sampler::state::Choice;
use grammaton::models::sampler::{Hyper, State};

use super::values::at_most;
use super::{Invalid, POSITIVE, positive};

/// Checks that trees sit at tables that there are, labels at tables before their own, and that processes are some.
pub fn chain(State { trees, tables, hyper }: &State) -> Result<(), Invalid> {
    for tree in trees {
        seats("chain.trees", tree, tables.len())?;
    }
    for (at, table) in tables.iter().enumerate() {
        if table.label.is_empty() {
            return Err(Invalid::Empty { field: "chain.labels", at });
        }
        seats("chain.labels", &table.label, at)?;
    }
    hyper.iter().enumerate().try_for_each(|(at, hyper)| process("chain.processes", at, hyper))
}

/// Checks that a derivation refers to the first `n_tables` tables alone.
fn seats(field: &'static str, derivation: &[Choice], n_tables: usize) -> Result<(), Invalid> {
    for choice in derivation {
        if let Choice::Table(table) = choice {
            at_most(field, u64::from(table.0) + 1, n_tables as u64)?;
        }
    }
    Ok(())
}

/// Checks the numbers of a Pitman-Yor process.
pub fn process(
    field: &'static str,
    at: usize,
    &Hyper { discount, concentration }: &Hyper,
) -> Result<(), Invalid> {
    let number = |found, expected| Err(Invalid::Number { field, at, found, expected });
    if !(0.0..1.0).contains(&discount) {
        return number(discount, "in [0, 1)");
    }
    if !positive(concentration) {
        return number(concentration, POSITIVE);
    }
    Ok(())
}
