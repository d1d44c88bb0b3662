//! Strings that sentences need and the lexicon lacks.

use std::collections::BTreeSet;

use super::candidates::rules_builder;
use crate::forest::binary::{Adapted, Kind};
use crate::forest::build::Builder;
use crate::forest::{Forest, Prepared, best};
use crate::grammar::SymbolId;
use crate::stop::checked;
use crate::work::context::Context;
use crate::work::error::ComputeError;
use crate::work::heap::{flat, rows};

/// Adapted nonterminals and strings, sorted, each pair once.
pub type Missing = Vec<(SymbolId, Vec<SymbolId>)>;

/// Bytes of an answer on the heap.
pub fn size(missing: &Missing) -> usize {
    rows(missing, |(_, string)| flat(string))
}

/// Strings that the lexicon lacks and some sentence cannot do without: the fewest for each such sentence, then the
/// shortest; with the strings that these need in turn. Sentences that the grammar cannot derive need none.
pub fn run(context: &Context<'_>) -> Result<Missing, ComputeError> {
    let (sentences, prepared) = (context.sentences()?, context.prepared());
    let mut with_strings = Builder::new(&prepared.binary, &prepared.strings, Adapted::Strings);
    let mut with_rules = rules_builder(&prepared);
    let mut missing = BTreeSet::new();
    for tokens in sentences.iter().map(|sentence| sentence.tokens.as_slice()) {
        if with_strings.build(0, tokens)?.is_none()
            && let Some(forest) = with_rules.build(0, tokens)?
        {
            missing.extend(cheapest_missing(&prepared, &forest, tokens));
        }
    }
    Ok(missing.into_iter().collect())
}

fn cheapest_missing(prepared: &Prepared, forest: &Forest, tokens: &[SymbolId]) -> Missing {
    let yield_of = |node: usize| {
        let label = forest.labels[node];
        &tokens[label.start as usize..label.end as usize]
    };
    let stick_of = |node: usize| match prepared.binary.kinds[forest.labels[node].symbol as usize] {
        Kind::Adapted(stick) => Some(stick),
        _ => None,
    };
    let known: Vec<bool> = checked(0..forest.n_nodes())
        .map(|node| {
            node > 0
                && stick_of(node).is_some_and(|stick| prepared.strings.param(stick, yield_of(node)).is_some())
        })
        .collect();
    // A thousandth per symbol only decides between equally many strings.
    let cost = |node: usize, _: &_| match stick_of(node) {
        Some(_) => 1.0 + yield_of(node).len() as f64 / 1000.0,
        None => 0.0,
    };
    let cheapest = best::min_cost(forest, cost, |node| known[node]);
    let (mut missing, mut open) = (Vec::new(), vec![forest.root()]);
    while let Some(node) = open.pop() {
        if known[node] {
            continue;
        }
        if stick_of(node).is_some() {
            missing.push((SymbolId(forest.labels[node].symbol), yield_of(node).to_vec()));
        }
        let tails = cheapest.edge(forest, node).tails;
        open.extend(tails.iter().filter(|&&tail| tail != 0).map(|&tail| tail as usize));
    }
    missing
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn size_counts_pairs_and_strings() {
        let strings = [vec![SymbolId(1); 7], vec![SymbolId(2)]];
        let missing: Missing = strings.map(|string| (SymbolId(0), string)).to_vec();
        assert_eq!(size(&missing), 2 * size_of::<(SymbolId, Vec<SymbolId>)>() + 32);
    }
}
