//! Candidate strings of sentences, and strings that sentences lack.
//!
//! Both look at the grammar without its adaptors, where an adapted nonterminal expands through its rules.

use std::collections::BTreeSet;
use std::collections::hash_map::Entry;

use rustc_hash::FxHashMap;

use crate::data::Sentence;
use crate::forest::Prepared;
use crate::forest::TooAmbiguous;
use crate::forest::binary::{Adapted, Kind};
use crate::forest::build::Builder;
use crate::forest::inside::{Scratch, Weights, edge_posteriors, real};
use crate::forest::{Forest, best};
use crate::grammar::SymbolId;
use crate::num::Wide;
use crate::work::task::Candidates;

/// Expected number of constituents of every adapted nonterminal and yield of at most `max_length` symbols, with all
/// rules of weight one (§3.3 of the paper, G_heur).
pub fn count(
    prepared: &Prepared,
    sentences: &[Sentence],
    max_length: u32,
) -> Result<Candidates, TooAmbiguous> {
    let mut limited = rules_builder(prepared).with_max_yield(max_length);
    let mut unlimited = rules_builder(prepared);
    let wide = vec![Wide::ONE; 1 + prepared.grammar.rules.len()];
    let weights = Weights { real: &real(&wide), wide: &wide };
    let mut scratch = Scratch::default();
    let mut known: FxHashMap<(SymbolId, &[SymbolId]), u32> = FxHashMap::default();
    let mut found = Candidates::default();
    for (sentence, item) in sentences.iter().zip(0..) {
        let tokens = sentence.tokens.as_slice();
        let mut forest = limited.build(0, tokens)?;
        if forest.is_none() {
            forest = unlimited.build(0, tokens)?;
        }
        let Some(forest) = forest else {
            found.unparsable.push(item);
            continue;
        };
        edge_posteriors(&forest, &weights, &mut scratch, |node, _, posterior| {
            let label = forest.labels[node];
            if let Kind::Adapted(_) = prepared.binary.kinds[label.symbol as usize] {
                let symbol = SymbolId(label.symbol);
                let string = &tokens[label.start as usize..label.end as usize];
                let expected = f64::from(sentence.multiplicity) * posterior;
                match known.entry((symbol, string)) {
                    Entry::Occupied(at) => found.expected[*at.get() as usize] += expected,
                    Entry::Vacant(new) => {
                        new.insert(found.expected.len() as u32);
                        found.symbols.push(symbol);
                        found.strings.push(string);
                        found.expected.push(expected);
                    }
                }
            }
        });
    }
    Ok(found)
}

/// Strings that the lexicon lacks and some sentence cannot do without: the fewest for each such sentence, then the
/// shortest; with the strings that these need in turn. Sentences that the grammar cannot derive need none.
pub fn missing(
    prepared: &Prepared,
    sentences: &[Sentence],
) -> Result<Vec<(SymbolId, Vec<SymbolId>)>, TooAmbiguous> {
    let mut with_strings = Builder::new(&prepared.binary, &prepared.strings, Adapted::Strings);
    let mut with_rules = rules_builder(prepared);
    let mut missing = BTreeSet::new();
    for tokens in sentences.iter().map(|sentence| sentence.tokens.as_slice()) {
        if with_strings.build(0, tokens)?.is_none()
            && let Some(forest) = with_rules.build(0, tokens)?
        {
            missing.extend(cheapest_missing(prepared, &forest, tokens));
        }
    }
    Ok(missing.into_iter().collect())
}

fn cheapest_missing(
    prepared: &Prepared,
    forest: &Forest,
    tokens: &[SymbolId],
) -> Vec<(SymbolId, Vec<SymbolId>)> {
    let yield_of = |node: usize| {
        let label = forest.labels[node];
        &tokens[label.start as usize..label.end as usize]
    };
    let stick_of = |node: usize| match prepared.binary.kinds[forest.labels[node].symbol as usize] {
        Kind::Adapted(stick) => Some(stick as usize),
        _ => None,
    };
    let known: Vec<bool> = (0..forest.n_nodes())
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

fn rules_builder(prepared: &Prepared) -> Builder<'_> {
    Builder::new(&prepared.binary, &prepared.strings, Adapted::Rules)
}
