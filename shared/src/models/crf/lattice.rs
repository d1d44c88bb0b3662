//! All segmentations of a sentence, each with the sum of the values of its segments: a semi-Markov chain (Sarawagi & Cohen 2004).
//!
//! In: a value of each span of symbols up to a longest one. Out: with p(y) = exp(sum of y − log Z), log Z, the probability of each span, and the segmentations with the
//! highest sums. A span whose value is −∞ is in none.

/// Values of the spans of a sentence.
#[derive(Clone, Debug)]
pub struct Lattice {
    n: usize,
    longest: usize,
    /// By start, then by length less one; −∞ beyond the end. `[n · longest]`
    values: Vec<f64>,
}

/// Probabilities of spans.
#[derive(Debug)]
pub struct Marginals {
    /// The logarithm of the sum over all segmentations.
    pub log_z: f64,
    longest: usize,
    /// As the values. `[n · longest]`
    spans: Vec<f64>,
}

impl Lattice {
    /// The spans of a sentence of `n` symbols that have at most `longest`; `values` gives those that begin at a position, the shortest first.
    pub fn new<V: IntoIterator<Item = f64>>(
        n: usize,
        longest: usize,
        values: impl Fn(usize) -> V,
    ) -> Lattice {
        let longest = longest.clamp(1, n.max(1));
        let of_start = |start: usize| {
            let within = longest.min(n - start);
            let beyond = std::iter::repeat_n(f64::NEG_INFINITY, longest - within);
            values(start).into_iter().take(within).chain(beyond)
        };
        Lattice { n, longest, values: (0..n).flat_map(of_start).collect() }
    }

    /// The spans that begin at a position, by their ends, with their values.
    fn from(&self, start: usize) -> impl Iterator<Item = (usize, f64)> + Clone {
        let values = &self.values[start * self.longest..][..self.longest.min(self.n - start)];
        (start + 1..).zip(values.iter().copied())
    }

    /// The spans that end at a position, by their starts, with their values.
    fn to(&self, end: usize) -> impl Iterator<Item = (usize, f64)> + Clone {
        let value = move |start: usize| self.values[start * self.longest + (end - start - 1)];
        (end.saturating_sub(self.longest)..end).map(move |start| (start, value(start)))
    }

    /// The sum of the values of the segments that end at `ends`; −∞ with one that is longer than all spans.
    pub fn sum(&self, ends: &[u32]) -> f64 {
        let starts = std::iter::once(&0).chain(ends);
        let value = |(&start, &end): (&u32, &u32)| {
            let length = (end - start) as usize;
            if length > self.longest {
                f64::NEG_INFINITY
            } else {
                self.values[start as usize * self.longest + length - 1]
            }
        };
        starts.zip(ends).map(value).sum()
    }

    /// The probabilities of all spans. Some segmentation must have a finite sum.
    pub fn marginals(&self) -> Marginals {
        let Lattice { n, longest, .. } = *self;
        let mut before = vec![0.0; n + 1];
        for end in 1..=n {
            let sum = log_sum(self.to(end).map(|(start, value)| before[start] + value));
            before[end] = sum;
        }
        let mut after = vec![0.0; n + 1];
        for start in (0..n).rev() {
            let sum = log_sum(self.from(start).map(|(end, value)| value + after[end]));
            after[start] = sum;
        }
        let log_z = before[n];
        let mut spans = vec![0.0; self.values.len()];
        for start in 0..n {
            for (end, value) in self.from(start) {
                spans[start * longest + end - start - 1] =
                    libm::exp(before[start] + value + after[end] - log_z);
            }
        }
        Marginals { log_z, longest, spans }
    }

    /// The `n_best` segmentations with the highest sums that are finite, in order, with these; all if there are fewer.
    pub fn best(&self, n_best: usize) -> Vec<(f64, Vec<u32>)> {
        /// A sum up to a position, the start of its last segment, and the rank there.
        type Prefix = (f64, usize, usize);
        let mut prefixes: Vec<Vec<Prefix>> = vec![vec![(0.0, 0, 0)]];
        for end in 1..=self.n {
            let ranked = self.to(end).flat_map(|(start, value)| {
                let of_start = prefixes[start].iter().enumerate();
                of_start.map(move |(rank, (sum, ..))| (sum + value, start, rank))
            });
            let mut all: Vec<Prefix> = ranked.filter(|(sum, ..)| *sum > f64::NEG_INFINITY).collect();
            all.sort_by(|(a, ..), (b, ..)| b.total_cmp(a));
            all.truncate(n_best);
            prefixes.push(all);
        }
        let path = |(rank, &(sum, ..)): (usize, &Prefix)| {
            let (mut ends, mut end, mut rank) = (Vec::new(), self.n, rank);
            while end > 0 {
                ends.push(end as u32);
                (_, end, rank) = prefixes[end][rank];
            }
            ends.reverse();
            (sum, ends)
        };
        prefixes[self.n].iter().enumerate().map(path).collect()
    }
}

impl Marginals {
    /// The spans with their starts, ends and probabilities.
    pub fn spans(&self) -> impl Iterator<Item = (usize, usize, f64)> {
        let rows = self.spans.chunks_exact(self.longest).enumerate();
        let n = self.spans.len() / self.longest;
        rows.flat_map(move |(start, row)| {
            (start + 1..=n).zip(row).map(move |(end, &probability)| (start, end, probability))
        })
    }

    /// The probability of a span; 0 of one that is longer than all.
    pub fn span(&self, start: u32, end: u32) -> f64 {
        let length = (end - start) as usize;
        if length > self.longest { 0.0 } else { self.spans[start as usize * self.longest + length - 1] }
    }

    /// With yᵢ = 1 where a segment ends after symbol i, the probabilities of yᵢ₋₁ and yᵢ at each position.
    pub fn pairs(&self) -> Vec<[[f64; 2]; 2]> {
        let mut pairs = vec![[[0.0; 2]; 2]; self.spans.len() / self.longest];
        // Of spans that go on at both sides of a position: what is added at their second symbol is taken away at their last.
        let mut change = vec![0.0; pairs.len() + 1];
        for (start, end, probability) in self.spans() {
            if end == start + 1 {
                pairs[start][1][1] += probability;
            } else {
                pairs[start][1][0] += probability;
                pairs[end - 1][0][1] += probability;
                change[start + 1] += probability;
                change[end - 1] -= probability;
            }
        }
        let mut open = 0.0;
        for (pair, change) in pairs.iter_mut().zip(change) {
            open += change;
            pair[0][0] = open;
        }
        pairs
    }
}

/// The logarithm of a sum of exponentials.
fn log_sum(logs: impl Iterator<Item = f64> + Clone) -> f64 {
    let highest = logs.clone().fold(f64::NEG_INFINITY, f64::max);
    if highest == f64::NEG_INFINITY {
        return highest;
    }
    highest + libm::log(logs.map(|log| libm::exp(log - highest)).sum())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// Law: log Z, the probabilities of spans and of pairs, and the best segmentations are those of all segmentations, one by one.
        #[test]
        fn sums_are_those_of_all_segmentations(
            values in prop::collection::vec(-30.0..30.0_f64, 36), n in 1..7_usize, longest in 1..8_usize, n_best in 1..70_usize,
        ) {
            let lattice = Lattice::new(n, longest, |start| values[start * 6..][..6].iter().copied());
            let ends = |set: u32| -> Vec<u32> { (1..n as u32).filter(|at| set >> (at - 1) & 1 == 1).chain([n as u32]).collect() };
            let mut all: Vec<(f64, Vec<u32>)> = (0..1 << (n - 1)).map(ends).map(|ends| (lattice.sum(&ends), ends)).collect();
            all.retain(|(sum, _)| *sum > f64::NEG_INFINITY);
            all.sort_by(|(a, _), (b, _)| b.total_cmp(a));
            let z: f64 = all.iter().map(|(sum, _)| libm::exp(sum - all[0].0)).sum();
            let share = |has: &dyn Fn(&[u32]) -> bool| -> f64 {
                all.iter().filter(|(_, ends)| has(ends)).map(|(sum, _)| libm::exp(sum - all[0].0) / z).sum()
            };
            let found = lattice.marginals();
            prop_assert!((found.log_z - all[0].0 - libm::log(z)).abs() < 1e-9);
            let is_end = |ends: &[u32], at: usize| at == 0 || ends.contains(&(at as u32));
            let is_segment = |ends: &[u32], start: usize, end: usize| {
                is_end(ends, start) && is_end(ends, end) && (start + 1..end).all(|at| !is_end(ends, at))
            };
            for start in 0..n {
                for end in start + 1..=n {
                    let expected = share(&|ends| is_segment(ends, start, end));
                    prop_assert!((found.span(start as u32, end as u32) - expected).abs() < 1e-9);
                }
            }
            let listed: usize = found.spans().map(|(start, end, probability)| {
                assert_eq!(probability, found.span(start as u32, end as u32));
                1
            }).sum();
            prop_assert_eq!(listed, (0..n).map(|start| longest.min(n - start)).sum::<usize>());
            for (at, pair) in found.pairs().iter().enumerate() {
                for (a, b) in [(false, false), (false, true), (true, false), (true, true)] {
                    let expected = share(&|ends| is_end(ends, at) == a && is_end(ends, at + 1) == b);
                    prop_assert!((pair[usize::from(a)][usize::from(b)] - expected).abs() < 1e-9);
                }
            }
            let best = lattice.best(n_best);
            prop_assert_eq!(best.len(), n_best.min(all.len()));
            for ((sum, ends), (expected, _)) in best.iter().zip(&all) {
                prop_assert!((sum - expected).abs() < 1e-9 && (sum - lattice.sum(ends)).abs() < 1e-9);
            }
            prop_assert!(best.iter().enumerate().all(|(at, (_, ends))| best[..at].iter().all(|(_, other)| other != ends)));
        }
    }
}
