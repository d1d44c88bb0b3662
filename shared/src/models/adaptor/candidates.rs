//! The strings that sticks begin with (§3.3 of the paper).
//!
//! Workers count constituents under the grammar with all weights one; the counts of all shards are added and the
//! strings ranked by c(A, s) = `Σ_x E[count] − ρ ln|s|` (Eq. 3 without its 1/n: with it, and ρ = −0.2, length alone would
//! rank: `docs/MATHS.md`, "Corrections to the print").
//!
//! A [`Ranking`] takes the sums in any order, dealt out over any number of rankings: it comes out the same. With the sums of some of the
//! strings it has [`Limits`], which tell from an upper bound on the sums of others whether one of them can still be among the best: most
//! strings of a large corpus need not be counted.

use std::cmp::Ordering;
use std::ops::RangeInclusive;

use crate::grammar::SymbolId;
use crate::grammar::lexicon::{StickStrings, Strings};
use crate::num::special;

/// The best strings of every adapted nonterminal, so far.
pub struct Ranking {
    adapted: Vec<SymbolId>,
    truncation: usize,
    rho: f64,
    /// Best strings by adapted nonterminal.
    best: Vec<Best>,
}

/// Strings with their scores, among which are the best ones.
#[derive(Clone, Default)]
struct Best {
    strings: Strings,
    scores: Vec<f64>,
    /// Position of the last one of the best, which others have to beat; `None` while there is room for all.
    last: Option<usize>,
}

impl Ranking {
    /// A ranking of at most `truncation` strings for each nonterminal in `adapted`, which are ascending.
    pub fn new(adapted: &[SymbolId], truncation: usize, rho: f64) -> Ranking {
        let best = vec![Best::default(); adapted.len()];
        Ranking { adapted: adapted.to_vec(), truncation, rho, best }
    }

    /// Ranks a string among those of `symbol`; each comes once.
    pub fn add(&mut self, symbol: SymbolId, string: &[SymbolId], expected: f64) {
        let Ok(stick) = self.adapted.binary_search(&symbol) else { return };
        self.best[stick].add(string, expected + bonus(self.rho, string.len()), self.truncation);
    }

    /// Merges another ranking of the same kind.
    pub fn merge(&mut self, other: Ranking) {
        for (best, other) in self.best.iter_mut().zip(other.best) {
            let scored = other.strings.iter().zip(&other.scores);
            scored.for_each(|(string, &score)| best.add(string, score, self.truncation));
        }
    }

    /// Scores that other strings must reach, given all that were added.
    pub fn limits(&mut self) -> Limits {
        let least = self.best.iter_mut().map(|best| {
            best.truncate(self.truncation);
            match self.truncation {
                0 => f64::INFINITY,
                _ => best.last.map_or(f64::NEG_INFINITY, |last| best.scores[last]),
            }
        });
        Limits { least: least.collect(), adapted: self.adapted.clone(), rho: self.rho }
    }

    /// The best strings of every nonterminal, best first; ties by string.
    pub fn top(self) -> Vec<StickStrings> {
        let truncation = self.truncation;
        let top = |mut best: Best| -> Strings {
            best.truncate(truncation);
            let mut order: Vec<u32> = (0..best.scores.len() as u32).collect();
            order.sort_unstable_by(|&a, &b| best.compare(a, b));
            order.into_iter().map(|at| &best.strings[at as usize]).collect()
        };
        let sticks = self.adapted.iter().zip(self.best);
        sticks.map(|(&symbol, best)| StickStrings { symbol, strings: top(best) }).collect()
    }
}

/// Part of a score besides the expected number of constituents.
fn bonus(rho: f64, length: usize) -> f64 {
    -(rho * special::ln(length as f64))
}

/// Scores that strings must reach to be among the best.
pub struct Limits {
    adapted: Vec<SymbolId>,
    /// By adapted nonterminal: the score of the last one of the best; without bounds if there is room for more.
    least: Vec<f64>,
    rho: f64,
}

/// Sums of the same numbers in another order differ by less, relatively.
const ROUNDING: f64 = 1e-6;

impl Limits {
    /// Whether every nonterminal has as many strings as it may have, which others have to beat.
    pub fn are_finite(&self) -> bool {
        self.least.iter().all(|&least| least > f64::NEG_INFINITY)
    }

    /// Whether a string of `symbol` of so many symbols can be among the best, of which at most `expected` are expected.
    pub fn admit(&self, symbol: SymbolId, lengths: RangeInclusive<usize>, expected: f64) -> bool {
        let Ok(stick) = self.adapted.binary_search(&symbol) else { return false };
        // It rises or falls from one end to the other.
        let bonus = bonus(self.rho, *lengths.start()).max(bonus(self.rho, *lengths.end()));
        expected * (1.0 + ROUNDING) + bonus + ROUNDING >= self.least[stick]
    }
}

impl Best {
    /// Adds a string if it can be among the best `n`.
    fn add(&mut self, string: &[SymbolId], score: f64, n: usize) {
        let is_behind = |last: usize| {
            order((score, string), (self.scores[last], &self.strings[last])) == Ordering::Greater
        };
        if n == 0 || self.last.is_some_and(is_behind) {
            return;
        }
        self.scores.push(score);
        self.strings.push(string);
        // A quarter more, so that the cost of selecting the best is amortised.
        if self.scores.len() > n.saturating_add((n / 4).max(1 << 12)) {
            self.truncate(n);
        }
    }

    /// Compares two candidates by position.
    fn compare(&self, a: u32, b: u32) -> Ordering {
        let [a, b] = [a, b].map(|at| (self.scores[at as usize], &self.strings[at as usize]));
        order(a, b)
    }

    /// Leaves the best `n`, which stay where they are in memory.
    fn truncate(&mut self, n: usize) {
        let Some(before) = n.checked_sub(1).filter(|_| n <= self.scores.len()) else { return };
        let mut order: Vec<u32> = (0..self.scores.len() as u32).collect();
        let last = *order.select_nth_unstable_by(before, |&a, &b| self.compare(a, b)).1 as usize;
        let mut is_best = vec![false; order.len()];
        order[..n].iter().for_each(|&at| is_best[at as usize] = true);
        let mut of_scores = is_best.iter();
        self.scores.retain(|_| of_scores.next() == Some(&true));
        self.strings.retain(|at| is_best[at]);
        self.last = Some(is_best[..last].iter().filter(|&&is_best| is_best).count());
    }
}

/// Compares two candidates: a higher score is better, then the lesser string.
fn order((score, string): (f64, &[SymbolId]), (other_score, other): (f64, &[SymbolId])) -> Ordering {
    other_score.total_cmp(&score).then_with(|| string.cmp(other))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn string(text: &str) -> Vec<SymbolId> {
        text.bytes().map(|byte| SymbolId(u32::from(byte))).collect()
    }

    /// Many strings, with many ties.
    fn all() -> Vec<(SymbolId, Vec<SymbolId>, f64)> {
        let number =
            |at: usize| (SymbolId(2 + (at % 2) as u32 * 3), string(&format!("{at}")), (at % 97) as f64);
        (0..20_000).map(number).collect()
    }

    #[test]
    fn the_best_are_those_of_a_full_sort_in_any_order_of_arrival() {
        let adapted = [SymbolId(2), SymbolId(5)];
        for truncation in [0, 1, 7, 3000, 15_000] {
            let expected = adapted.map(|adapted| {
                let score = |string: &[SymbolId], count: f64| count + 0.2 * special::ln(string.len() as f64);
                let mut of_symbol: Vec<(f64, Vec<SymbolId>)> = all()
                    .into_iter()
                    .filter(|(symbol, ..)| *symbol == adapted)
                    .map(|(_, string, count)| (score(&string, count), string))
                    .collect();
                of_symbol.sort_by(|(a, s), (b, t)| b.total_cmp(a).then_with(|| s.cmp(t)));
                of_symbol.into_iter().take(truncation).map(|(_, string)| string).collect::<Vec<_>>()
            });
            let check = |ranking: Ranking| {
                for (stick, expected) in ranking.top().iter().zip(&expected) {
                    assert_eq!(stick.strings, expected.iter().collect());
                }
            };
            let new = || Ranking::new(&adapted, truncation, -0.2);
            let add = |ranking: &mut Ranking, (symbol, string, count): (SymbolId, Vec<SymbolId>, f64)| {
                ranking.add(symbol, &string, count);
            };
            let (mut forwards, mut backwards, mut parts) = (new(), new(), [new(), new(), new()]);
            all().into_iter().for_each(|one| add(&mut forwards, one));
            all().into_iter().rev().for_each(|one| add(&mut backwards, one));
            all().into_iter().enumerate().for_each(|(at, one)| add(&mut parts[at * at % 3], one));
            let mut merged = new();
            parts.into_iter().for_each(|part| merged.merge(part));
            [forwards, backwards, merged].into_iter().for_each(check);
        }
    }
}
