//! Constituents of a sentence, as a pass needs them, once for each pattern of a shard.

use rustc_hash::FxHashMap;

use super::Lengths;
use crate::forest::{Prepared, TooAmbiguous};
use crate::grammar::{StickId, SymbolId};
use crate::stop::checked;
use crate::work::context::patterns::{Constituent, Finder, Patterns};

/// Finds the constituents of sentences.
pub struct Constituents<'a> {
    patterns: &'a Patterns,
    finder: Finder<'a>,
    lengths: Lengths,
    n_sticks: usize,
    pattern: Vec<SymbolId>,
    /// Constituents by pattern; `None` for a pattern that the grammar does not derive.
    known: FxHashMap<Box<[SymbolId]>, Option<Found>>,
    /// Constituents in `known`.
    n_known: usize,
}

/// Constituents of one pattern.
#[derive(Default)]
pub struct Found {
    /// Constituents of the lengths that are counted, in the order in which their posteriors are added.
    pub counted: Vec<Constituent>,
    /// By stick and start, the most probable of the constituents that are longer, cut to the longest that is counted.
    pub longer: Vec<Constituent>,
    /// By start: symbols of the longest in `counted` or `longer`. `[n_tokens]`
    pub reach: Vec<u32>,
    /// Symbols of the longest constituent.
    pub longest: u32,
}

/// Constituents that are kept for a shard: some 24 MB.
const KEPT: usize = 1 << 20;

impl<'a> Constituents<'a> {
    pub fn new(prepared: &'a Prepared, patterns: &'a Patterns, lengths: Lengths) -> Constituents<'a> {
        Constituents {
            patterns,
            finder: Finder::new(prepared, patterns),
            lengths,
            n_sticks: prepared.binary.base.len(),
            pattern: Vec::new(),
            known: FxHashMap::default(),
            n_known: 0,
        }
    }

    /// Returns the constituents of a sentence; `None` if the grammar does not derive it.
    pub fn of(&mut self, tokens: &[SymbolId]) -> Result<Option<&Found>, TooAmbiguous> {
        self.patterns.pattern(tokens, &mut self.pattern);
        if !self.known.contains_key(&self.pattern[..]) {
            if self.n_known > KEPT {
                self.known.clear();
                self.n_known = 0;
            }
            let all = self.finder.find(&self.pattern)?;
            let found = all.map(|all| self.select(&all));
            self.n_known += found.as_ref().map_or(0, |found| found.counted.len() + found.longer.len());
            self.known.insert(self.pattern[..].into(), found);
        }
        Ok(self.known[&self.pattern[..]].as_ref())
    }

    /// Selects constituents from all of a pattern.
    fn select(&self, all: &[Constituent]) -> Found {
        let Lengths { longer_than, up_to, .. } = self.lengths;
        let n_tokens = self.pattern.len();
        let mut found = Found { reach: vec![0; n_tokens], ..Found::default() };
        let mut longer: Vec<Option<f64>> = vec![None; n_tokens * self.n_sticks];
        for &constituent in checked(all) {
            let Constituent { stick, start, length, posterior } = constituent;
            found.longest = found.longest.max(length);
            if length > up_to {
                let most = &mut longer[start as usize * self.n_sticks + stick.index()];
                *most = Some(most.map_or(posterior, |most| most.max(posterior)));
            } else if length > longer_than {
                found.counted.push(constituent);
            }
        }
        for (at, posterior) in longer.into_iter().enumerate() {
            if let Some(posterior) = posterior {
                let (start, stick) = ((at / self.n_sticks) as u32, StickId((at % self.n_sticks) as u32));
                found.longer.push(Constituent { stick, start, length: up_to, posterior });
            }
        }
        for &Constituent { start, length, .. } in found.counted.iter().chain(&found.longer) {
            let reach = &mut found.reach[start as usize];
            *reach = length.max(*reach);
        }
        found
    }
}
