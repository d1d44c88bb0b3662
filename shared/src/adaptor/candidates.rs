//! The strings that sticks begin with (§3.3 of the paper).
//!
//! Workers count constituents under the grammar with all weights one; the counts of all shards are added and the
//! strings ranked by c(A, s) = `Σ_x E[count] − ρ ln|s|` (Eq. 3 without its 1/n: with it, and ρ = −0.2, length alone would
//! rank; NOTES in `docs/MATHS.md`).

use rustc_hash::FxHashMap;

use crate::grammar::SymbolId;
use crate::num::special;
use crate::shard::StickStrings;
use crate::task::Candidate;

/// Adds up the candidates of shards.
#[derive(Default)]
pub struct Tally {
    expected: FxHashMap<(SymbolId, Vec<SymbolId>), f64>,
}

impl Tally {
    /// Adds the candidates of the next shard, in shard order.
    pub fn add(&mut self, candidates: Vec<Candidate>) {
        for candidate in candidates {
            *self.expected.entry((candidate.symbol, candidate.string)).or_insert(0.0) += candidate.expected;
        }
    }

    /// Number of distinct (nonterminal, string) pairs.
    pub fn len(&self) -> usize {
        self.expected.len()
    }

    /// Whether nothing was counted.
    pub fn is_empty(&self) -> bool {
        self.expected.is_empty()
    }

    /// The best `truncation` strings of every nonterminal in `adapted`, best first; ties by string.
    pub fn top(self, adapted: &[SymbolId], truncation: usize, rho: f64) -> Vec<StickStrings> {
        let mut scored: Vec<Vec<(f64, Vec<SymbolId>)>> = vec![Vec::new(); adapted.len()];
        for ((symbol, string), expected) in self.expected {
            if let Ok(stick) = adapted.binary_search(&symbol) {
                let score = expected - rho * special::ln(string.len() as f64);
                scored[stick].push((score, string));
            }
        }
        let choose = |(&symbol, mut scored): (&SymbolId, Vec<(f64, Vec<SymbolId>)>)| {
            scored.sort_unstable_by(|(a, s), (b, t)| b.total_cmp(a).then_with(|| s.cmp(t)));
            scored.truncate(truncation);
            StickStrings { symbol, strings: scored.into_iter().map(|(_, string)| string).collect() }
        };
        adapted.iter().zip(scored).map(choose).collect()
    }
}
