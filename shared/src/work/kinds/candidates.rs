//! Candidate strings of sentences, and strings that sentences lack.
//!
//! Both look at the grammar without its adaptors, where an adapted nonterminal expands through its rules.

use std::collections::hash_map::Entry;

use rustc_hash::FxHashMap;

use crate::forest::Prepared;
use crate::forest::binary::{Adapted, Kind};
use crate::forest::build::Builder;
use crate::forest::inside::{Scratch, Weights, edge_posteriors, real};
use crate::grammar::SymbolId;
use crate::grammar::lexicon::Strings;
use crate::num::Wide;
use crate::work::context::Context;
use crate::work::error::ComputeError;
use crate::work::heap::flat;

/// Strings of a shard of sentences that could be on a stick.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Candidates {
    /// Adapted nonterminals. `[n]`
    pub symbols: Vec<SymbolId>,
    /// Their yields: each pair once, in the order in which they are first found. `[n]`
    pub strings: Strings,
    /// Expected numbers of such constituents over the shard, multiplicities counted. `[n]`
    pub expected: Vec<f64>,
    /// Sentences (positions in the shard) that the grammar cannot derive.
    pub unparsable: Vec<u32>,
}

impl Candidates {
    /// Bytes on the heap.
    pub fn size(&self) -> usize {
        flat(&self.symbols) + self.strings.size() + flat(&self.expected) + flat(&self.unparsable)
    }

    /// Nonterminal, yield and expected number.
    pub fn iter(&self) -> impl Iterator<Item = (SymbolId, &[SymbolId], f64)> {
        let labelled = self.symbols.iter().zip(&self.strings);
        labelled.zip(&self.expected).map(|((&symbol, string), &expected)| (symbol, string, expected))
    }
}

/// Expected number of constituents of every adapted nonterminal and yield of at most `max_length` symbols, with all
/// rules of weight one (§3.3 of the paper, G_heur).
pub fn run(context: &Context<'_>, max_length: u32) -> Result<Candidates, ComputeError> {
    let (sentences, prepared) = (context.sentences()?, context.prepared());
    let mut limited = rules_builder(&prepared).with_max_yield(max_length);
    let mut unlimited = rules_builder(&prepared);
    let wide = vec![Wide::ONE; prepared.grammar.space().n_params()];
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

/// Forests of the grammar without its adaptors.
pub(super) fn rules_builder(prepared: &Prepared) -> Builder<'_> {
    Builder::new(&prepared.binary, &prepared.strings, Adapted::Rules)
}
