//! Constituents of adapted nonterminals, and their posteriors, under the grammar without its adaptors, with all weights one.
//!
//! They are the same for all sentences of a pattern: sentences whose terminals the rules do not tell apart ([`alike`]). So they are found
//! once for each pattern, from the sentence of its representatives, and kept for other shards and passes.

use std::sync::Arc;

use parking_lot::Mutex;
use rustc_hash::FxHashMap;

use crate::forest::binary::{Adapted, Kind};
use crate::forest::build::Builder;
use crate::forest::inside::{Scratch, Weights, edge_posteriors, real};
use crate::forest::{Prepared, TooAmbiguous};
use crate::grammar::{Grammar, StickId, SymbolId, alike};
use crate::num::Wide;

/// A constituent of an adapted nonterminal in a sentence.
#[derive(Clone, Copy)]
pub struct Constituent {
    pub stick: StickId,
    pub start: u32,
    pub length: u32,
    pub posterior: f64,
}

/// In the order in which their posteriors are added; `None` if the grammar does not derive the sentence.
pub type Constituents = Option<Arc<[Constituent]>>;

/// Constituents by pattern, for the tasks of a process under one grammar.
pub struct Patterns {
    /// Symbols of the longest constituent, in sentences that can be derived with these.
    max_length: u32,
    /// Representatives by symbol.
    representatives: Vec<SymbolId>,
    known: Mutex<Known>,
}

#[derive(Default)]
struct Known {
    by_pattern: FxHashMap<Box<[SymbolId]>, Constituents>,
    n_constituents: usize,
}

/// Constituents that are kept, some 24 MB: those of the first patterns.
const KEPT: usize = 1 << 20;

impl Patterns {
    pub fn new(grammar: &Grammar, max_length: u32) -> Patterns {
        Patterns { max_length, representatives: alike::representatives(grammar), known: Mutex::default() }
    }

    /// Puts the pattern of a sentence in the place of `pattern`.
    pub fn pattern(&self, tokens: &[SymbolId], pattern: &mut Vec<SymbolId>) {
        pattern.clear();
        pattern.extend(tokens.iter().map(|token| self.representatives[token.index()]));
    }

    fn get(&self, pattern: &[SymbolId]) -> Option<Constituents> {
        self.known.lock().by_pattern.get(pattern).cloned()
    }

    fn keep(&self, pattern: &[SymbolId], constituents: &Constituents) {
        let mut known = self.known.lock();
        let n = constituents.as_ref().map_or(0, |constituents| constituents.len());
        if known.n_constituents + n <= KEPT
            && known.by_pattern.insert(pattern.into(), constituents.clone()).is_none()
        {
            known.n_constituents += n;
        }
    }
}

/// Finds the constituents of patterns, reusing its memory.
pub struct Finder<'a> {
    prepared: &'a Prepared,
    patterns: &'a Patterns,
    limited: Builder<'a>,
    unlimited: Builder<'a>,
    /// All one, by parameter.
    wide: Vec<Wide>,
    real: Vec<f64>,
    scratch: Scratch,
}

impl<'a> Finder<'a> {
    pub fn new(prepared: &'a Prepared, patterns: &'a Patterns) -> Finder<'a> {
        let wide = vec![Wide::ONE; prepared.grammar.space().n_params()];
        let builder = || Builder::new(&prepared.binary, &prepared.strings, Adapted::Rules);
        Finder {
            prepared,
            patterns,
            limited: builder().with_max_yield(patterns.max_length),
            unlimited: builder(),
            real: real(&wide),
            wide,
            scratch: Scratch::default(),
        }
    }

    /// Returns the constituents of a pattern.
    pub fn find(&mut self, pattern: &[SymbolId]) -> Result<Constituents, TooAmbiguous> {
        if let Some(known) = self.patterns.get(pattern) {
            return Ok(known);
        }
        let constituents = self.parse(pattern)?;
        self.patterns.keep(pattern, &constituents);
        Ok(constituents)
    }

    fn parse(&mut self, pattern: &[SymbolId]) -> Result<Constituents, TooAmbiguous> {
        let mut forest = self.limited.build_here(0, pattern)?;
        if forest.is_none() {
            forest = self.unlimited.build_here(0, pattern)?;
        }
        let Some(forest) = forest else { return Ok(None) };
        let mut found = Vec::new();
        let weights = Weights { real: &self.real, wide: &self.wide };
        edge_posteriors(forest, &weights, &mut self.scratch, |node, _, posterior| {
            let label = forest.labels[node];
            if let Kind::Adapted(stick) = self.prepared.binary.kinds[label.symbol as usize] {
                let (start, length) = (label.start, label.end - label.start);
                found.push(Constituent { stick, start, length, posterior });
            }
        });
        Ok(Some(found.into()))
    }
}
