//! Candidate strings of sentences.
//!
//! The grammar is that without its adaptors, where an adapted nonterminal expands through its rules, with all weights one (§3.3 of the
//! paper, G_heur).
//!
//! Strings are counted by length, the shortest first, in one pass after the other. A pass also bounds the counts of the strings that
//! begin with one of its longest and go on, so that the next one counts only those that can still rank
//! ([`crate::models::adaptor::candidates`]).

mod constituents;
mod substrings;

use std::sync::Arc;

use constituents::Constituents;
use serde::{Deserialize, Serialize};
use substrings::Substrings;

use crate::forest::binary::Adapted;
use crate::forest::build::{Builder, LONG_SENTENCE, LONG_YIELD};
use crate::forest::{Prepared, TooAmbiguous};
use crate::grammar::lexicon::Strings;
use crate::grammar::{StickId, SymbolId};
use crate::stop::{self, checked};
use crate::work::context::Context;
use crate::work::context::patterns::{Constituent, Patterns};
use crate::work::error::ComputeError;
use crate::work::heap::flat;

/// The strings that a pass counts.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Lengths {
    /// Symbols of the longest constituent of an adapted nonterminal, in sentences that can be derived with these.
    pub max_length: u32,
    /// Symbols of the longest strings that were counted before. Unless the lexicon is empty, longer ones are counted only if they begin
    /// with one of its strings, which are as long as this.
    pub longer_than: u32,
    /// Symbols of the longest strings to count.
    pub up_to: u32,
}

/// Strings of a shard of sentences that could be on a stick.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct Candidates {
    /// Expected numbers of constituents over the shard, multiplicities counted.
    pub counted: StringCounts,
    /// By string of [`Lengths::up_to`] symbols, an upper bound on the expected number of constituents of each longer string that begins
    /// with it.
    pub longer: StringCounts,
    /// Symbols of the longest constituent.
    pub longest: u32,
    /// Sentences (positions in the shard) that the grammar cannot derive, or in too many ways ([`crate::forest::TooAmbiguous`]).
    pub unparsable: Vec<u32>,
}

/// A number for each of some strings of adapted nonterminals.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct StringCounts {
    /// Adapted nonterminals. `[n]`
    pub symbols: Vec<SymbolId>,
    /// Their yields: each pair once. `[n]`
    pub strings: Strings,
    /// `[n]`
    pub amounts: Vec<f64>,
}

impl Candidates {
    /// Bytes on the heap.
    pub fn size(&self) -> usize {
        self.counted.size() + self.longer.size() + flat(&self.unparsable)
    }
}

impl StringCounts {
    /// Bytes on the heap.
    pub fn size(&self) -> usize {
        flat(&self.symbols) + self.strings.size() + flat(&self.amounts)
    }

    /// Nonterminal, string and amount.
    pub fn iter(&self) -> impl Iterator<Item = (SymbolId, &[SymbolId], f64)> {
        let labelled = self.symbols.iter().zip(&self.strings);
        labelled.zip(&self.amounts).map(|((&symbol, string), &amount)| (symbol, string, amount))
    }

    /// Puts a string behind the others.
    pub fn push(&mut self, symbol: SymbolId, string: &[SymbolId], amount: f64) {
        self.symbols.push(symbol);
        self.strings.push(string);
        self.amounts.push(amount);
    }
}

impl Lengths {
    /// No string: the pass finds the sentences that the grammar cannot derive.
    pub const NONE: Lengths = Lengths { max_length: 1, longer_than: 0, up_to: 0 };

    /// No string either, for chains, which hold all derivations of a sentence: the pass finds those too that have too many.
    pub const CHAINS: Lengths = Lengths { max_length: u32::MAX, ..Lengths::NONE };

    fn are_for_chains(&self) -> bool {
        *self == Lengths::CHAINS
    }

    /// All strings, in one pass.
    pub fn all(max_length: u32) -> Lengths {
        Lengths { max_length, longer_than: 0, up_to: u32::MAX }
    }
}

/// Symbols that words have in some derivation of most long sentences, at most.
const SHORT_YIELD: u32 = 4;

/// Counts constituents of adapted nonterminals.
pub fn run(context: &Context<'_>, lengths: &Lengths) -> Result<Candidates, ComputeError> {
    let (sentences, prepared) = (context.sentences()?, context.prepared());
    let adapted: Vec<SymbolId> = prepared.grammar.adapted().collect();
    let mut begin = Begin::new(&prepared, adapted.len());
    // The constituents of chains are found by the chains themselves, so those of patterns are not kept for other tasks.
    let patterns = if lengths.are_for_chains() {
        Arc::new(Patterns::new(&prepared.grammar, Lengths::NONE.max_length))
    } else {
        context.patterns(lengths.max_length)
    };
    let mut constituents = Constituents::new(&prepared, &patterns, *lengths);
    let mut short = rules_builder(&prepared).with_max_yield(SHORT_YIELD);
    let mut whole = rules_builder(&prepared);
    let mut substrings = Substrings::new(adapted.len());
    let mut found = Candidates::default();
    for (sentence, item) in sentences.iter().zip(0..) {
        stop::check();
        let tokens = sentence.tokens.as_slice();
        if !begin.find(tokens) {
            continue;
        }
        let is_long = tokens.len() > LONG_SENTENCE || prepared.binary.check_dense(tokens.len()).is_err();
        if is_long && lengths.are_for_chains() {
            // Its forest is another one than that of its pattern, and may be too large. If it is not, any derivation will do.
            let fits = prepared.binary.check_limited(tokens.len(), LONG_YIELD).is_ok();
            let is_derived = fits && TooAmbiguous::or_none(short.build_here(0, tokens))?.is_some();
            if !is_derived && TooAmbiguous::or_none(whole.build_for_chain(0, tokens, &[]))?.is_none() {
                found.unparsable.push(item);
            }
            continue;
        }
        let of_pattern = TooAmbiguous::or_none(constituents.of(tokens))?;
        let Some(of_pattern) = of_pattern else {
            found.unparsable.push(item);
            continue;
        };
        found.longest = found.longest.max(of_pattern.longest);
        substrings.walk(tokens, &of_pattern.reach, &begin);
        let multiplicity = f64::from(sentence.multiplicity);
        let add = |amounts: &mut [Option<f64>], place: usize, posterior: f64| {
            *amounts[place].get_or_insert(0.0) += multiplicity * posterior;
        };
        for &Constituent { stick, start, length, posterior } in checked(&of_pattern.counted) {
            if begin.on(stick, start) {
                let place = substrings.place(stick, start, length);
                add(&mut substrings.counted, place, posterior);
            }
        }
        for &Constituent { stick, start, length, posterior } in checked(&of_pattern.longer) {
            if begin.on(stick, start) && length > 0 {
                let place = substrings.place(stick, start, length);
                add(&mut substrings.longer, place, posterior);
            }
        }
    }
    found.counted = substrings.strings(&adapted, &substrings.counted);
    found.longer = substrings.strings(&adapted, &substrings.longer);
    Ok(found)
}

/// Positions at which counted strings begin.
struct Begin<'a> {
    prepared: &'a Prepared,
    /// Whether constituents may begin everywhere.
    all: bool,
    n_sticks: usize,
    /// By token of the last sentence, then by stick: whether a string may begin there.
    on: Vec<bool>,
}

impl Begin<'_> {
    fn new(prepared: &Prepared, n_sticks: usize) -> Begin<'_> {
        let all = n_sticks == 0 || prepared.space().strings().is_empty();
        Begin { prepared, all, n_sticks, on: Vec::new() }
    }

    /// Finds them in a sentence; whether there are any.
    fn find(&mut self, tokens: &[SymbolId]) -> bool {
        if self.all {
            return true;
        }
        let Begin { prepared, n_sticks, on, .. } = self;
        on.clear();
        on.resize(tokens.len() * *n_sticks, false);
        let mut any = false;
        for start in checked(0..tokens.len()) {
            prepared.strings.matches(tokens, start, |stick, _, _| {
                on[start * *n_sticks + stick.index()] = true;
                any = true;
            });
        }
        any
    }

    /// Whether there is one of that stick.
    fn on(&self, stick: StickId, start: u32) -> bool {
        self.all || self.on[start as usize * self.n_sticks + stick.index()]
    }

    /// Whether there is one of any stick.
    fn any(&self, start: usize) -> bool {
        self.all || self.on[start * self.n_sticks..(start + 1) * self.n_sticks].contains(&true)
    }
}

/// Forests of the grammar without its adaptors.
pub(super) fn rules_builder(prepared: &Prepared) -> Builder<'_> {
    Builder::new(&prepared.binary, &prepared.strings, Adapted::Rules)
}
