//! Posterior probabilities of the segments of a sentence, by one model or in the mean of several.
//!
//! In: the spans that may be segments, each with its probability. Out: the probabilities of boundaries, and of the segments of a segmentation; the segmentation
//! with the highest expected number of right segments. A symbol outside of all segments is one by itself, as in [`crate::grammar::tree::Tree::segment_ends`].
//!
//! ```
//! use grammaton::models::segments::Segments;
//!
//! // One model cuts three symbols after the first, another one does not cut.
//! let one = Segments::new(3, vec![(0, 1, 1.0), (1, 3, 1.0)]);
//! let other = Segments::new(3, vec![(0, 3, 1.0)]);
//! let mean = Segments::mean(&[one, other]);
//! assert_eq!(mean.boundaries(), [0.5, 0.0]);
//! assert_eq!((mean.best(), mean.of(&[1, 3])), (vec![1, 3], vec![0.5, 0.5]));
//! ```

/// Start and end of a span of symbols, and the probability that it is a segment.
pub type Span = (u32, u32, f64);

/// The price of a segment, which decides between equal sums for fewer segments.
const OF_SEGMENT: f64 = 1e-9;
/// The price of a symbol on no span, which is a segment by itself.
const OF_SYMBOL: f64 = 1e-6;
/// A symbol is on no span in no derivation if that is no more probable, for spans of lower probabilities may be missing.
const NEGLIGIBLE: f64 = 1e-8;

/// Probabilities of the segments of a sentence.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Segments {
    n_symbols: u32,
    /// Sorted, each span once.
    spans: Vec<Span>,
}

/// Probabilities of a segmentation.
#[derive(Clone, PartialEq, Debug)]
pub struct Probabilities {
    /// That a segment ends after the first symbol, after the second, and so on; not after the last.
    pub boundaries: Vec<f64>,
    /// Of each of its segments.
    pub segments: Vec<f64>,
}

impl Segments {
    /// Those of a sentence of so many symbols. `spans`: sorted, each once.
    pub fn new(n_symbols: u32, spans: Vec<Span>) -> Segments {
        Segments { n_symbols, spans }
    }

    /// Those of a segmentation that is certain. `ends`: ascending, the last one the sentence's length.
    pub fn certain(ends: &[u32]) -> Segments {
        let starts = [0].iter().chain(ends);
        let spans = starts.zip(ends).map(|(&start, &end)| (start, end, 1.0)).collect();
        Segments::new(ends.last().copied().unwrap_or_default(), spans)
    }

    /// The mean of several models' of the same sentence.
    pub fn mean(of: &[Segments]) -> Segments {
        let mut sum = Segments::default();
        of.iter().for_each(|segments| sum.add(segments, 1.0));
        sum.over(of.len() as f64)
    }

    /// Adds another model's, times its weight.
    pub fn add(&mut self, other: &Segments, weight: f64) {
        self.n_symbols = other.n_symbols;
        let mut spans = Vec::with_capacity(self.spans.len() + other.spans.len());
        let weighted = |&(from, to, probability): &Span| (from, to, weight * probability);
        let mut others = other.spans.iter().map(weighted).peekable();
        for &(start, end, sum) in &self.spans {
            while let Some(before) = others.next_if(|&(from, to, _)| (from, to) < (start, end)) {
                spans.push(before);
            }
            let same = others.next_if(|&(from, to, _)| (from, to) == (start, end));
            spans.push((start, end, sum + same.map_or(0.0, |(.., probability)| probability)));
        }
        spans.extend(others);
        self.spans = spans;
    }

    /// The mean of models with so much weight in all, of which these are the sums.
    pub fn over(mut self, weight: f64) -> Segments {
        self.spans.iter_mut().for_each(|(.., sum)| *sum /= weight);
        self
    }

    /// Start, end and probability of the spans.
    pub fn spans(&self) -> &[Span] {
        &self.spans
    }

    /// Probability of a boundary at each position between symbols: that no segment is on both sides of it.
    pub fn boundaries(&self) -> Vec<f64> {
        let (n, mut changes) = (self.n_symbols as usize, vec![0.0; self.n_symbols as usize + 1]);
        for &(start, end, probability) in self.spans.iter().filter(|(start, end, _)| end - start > 1) {
            changes[start as usize + 1] += probability;
            changes[end as usize] -= probability;
        }
        without(&changes[1..n.max(1)])
    }

    /// Probability of each segment of the segmentation that ends at `ends`.
    pub fn of(&self, ends: &[u32]) -> Vec<f64> {
        let alone = self.alone();
        let starts = [0].iter().chain(ends);
        let probability = |(&start, &end): (&u32, &u32)| {
            let found = self.spans.binary_search_by_key(&(start, end), |&(from, to, _)| (from, to));
            let of_span = found.map_or(0.0, |at| self.spans[at].2);
            let alone = if end - start == 1 { alone[start as usize] } else { 0.0 };
            (of_span + alone).clamp(0.0, 1.0)
        };
        starts.zip(ends).map(probability).collect()
    }

    /// Probability of each symbol that it is on no span.
    fn alone(&self) -> Vec<f64> {
        let mut changes = vec![0.0; self.n_symbols as usize + 1];
        for &(start, end, probability) in &self.spans {
            changes[start as usize] += probability;
            changes[end as usize] -= probability;
        }
        without(&changes[..self.n_symbols as usize])
    }

    /// Probabilities of all boundaries, and of the segments of the segmentation that ends at `ends`.
    pub fn probabilities(&self, ends: &[u32]) -> Probabilities {
        Probabilities { boundaries: self.boundaries(), segments: self.of(ends) }
    }

    /// The same, in which a symbol that is on no span is on one by itself.
    pub fn with_symbols(&self) -> Segments {
        let alone = self.alone().into_iter().zip(0..).filter(|(probability, _)| *probability > NEGLIGIBLE);
        let symbols = alone.map(|(probability, at)| (at, at + 1, probability)).collect();
        let mut all = self.clone();
        all.add(&Segments::new(self.n_symbols, symbols), 1.0);
        all
    }

    /// The expected number of segments.
    pub fn expected(&self) -> f64 {
        self.spans.iter().map(|(.., probability)| probability).sum()
    }

    /// The ends of the segments with the highest sum of probabilities; of equals, fewer segments. Symbols on no span are segments by themselves.
    pub fn best(&self) -> Vec<u32> {
        self.best_at(0.0)
    }

    /// The same, of probabilities less the price of a segment.
    pub fn best_at(&self, price: f64) -> Vec<u32> {
        self.n_best(1, price).swap_remove(0)
    }

    /// The ends of the segments of the `n` segmentations with the highest sums of probabilities less the price of a segment, in order, [`Segments::best_at`] first; all if there are fewer. Their
    /// segments are spans, and symbols that are on no span with a probability, or between spans that leave no other way.
    pub fn n_best(&self, n: usize, price: f64) -> Vec<Vec<u32>> {
        let alone = self.alone();
        let mut by_end: Vec<Vec<(u32, f64)>> = vec![Vec::new(); self.n_symbols as usize + 1];
        for &(start, end, probability) in &self.spans {
            by_end[end as usize].push((start, probability));
        }
        let mut prefixes: Vec<Prefixes> = vec![vec![(0.0, 0, 0)]];
        for (end, spans) in (1..).zip(&by_end[1..]) {
            let symbol = end - 1;
            let is_span = spans.iter().any(|&(from, _)| from == symbol);
            let may_be_alone = spans.is_empty() || !is_span && alone[symbol as usize] > NEGLIGIBLE;
            let by_itself = may_be_alone.then_some((symbol, -OF_SYMBOL - price));
            let of_spans =
                spans.iter().map(|&(start, probability)| (start, probability - OF_SEGMENT - price));
            let mut all = Prefixes::new();
            for (start, value) in by_itself.into_iter().chain(of_spans) {
                let ranked = prefixes[start as usize].iter().zip(0..);
                all.extend(ranked.map(|((sum, ..), rank)| (sum + value, start, rank)));
            }
            // Equal sums keep their order.
            all.sort_by(|(a, ..), (b, ..)| b.total_cmp(a));
            all.truncate(n);
            prefixes.push(all);
        }
        let last = prefixes.len() - 1;
        let segmentation = |mut rank: usize| {
            let (mut ends, mut end) = (Vec::new(), last);
            while end > 0 {
                ends.push(end as u32);
                let (_, start, of_start) = prefixes[end][rank];
                (end, rank) = (start as usize, of_start);
            }
            ends.reverse();
            ends
        };
        (0..prefixes[last].len()).map(segmentation).collect()
    }
}

/// What [`Segments::n_best`] knows of a position: the sum of the best segmentations up to it, the start of their last segment, and their rank there.
type Prefixes = Vec<(f64, u32, usize)>;

/// One minus each of the sums that change so, as a probability.
fn without(changes: &[f64]) -> Vec<f64> {
    let mut sum = 0.0;
    let next = |change: &f64| {
        sum += change;
        (1.0 - sum).clamp(0.0, 1.0)
    };
    changes.iter().map(next).collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Symbols of a sentence.
    const N: u32 = 6;

    /// The segmentation with this set of inner boundaries.
    fn ends(set: u32) -> Vec<u32> {
        (1..N).filter(|at| set >> (at - 1) & 1 == 1).chain([N]).collect()
    }

    fn spans(ends: &[u32]) -> Vec<(u32, u32)> {
        [0].iter().chain(ends).copied().zip(ends.iter().copied()).collect()
    }

    /// A distribution of segmentations, of which symbols by themselves are no spans if `is_outside` says so.
    fn segments(weighted: &[(u32, f64)], is_outside: bool) -> Segments {
        let z: f64 = weighted.iter().map(|(_, weight)| weight).sum();
        let mut sums = std::collections::BTreeMap::new();
        for (set, weight) in weighted {
            for span in spans(&ends(*set)).into_iter().filter(|(start, end)| !is_outside || end - start > 1) {
                *sums.entry(span).or_insert(0.0) += weight / z;
            }
        }
        Segments::new(N, sums.into_iter().map(|((start, end), sum)| (start, end, sum)).collect())
    }

    proptest! {
        /// Law: probabilities of boundaries and segments are the sums over all segmentations that have them, in the mean over models; the best segmentation has the
        /// highest sum of probabilities of its segments, and the n best are those with the highest sums, of those whose segments have a probability.
        #[test]
        fn probabilities_are_sums_over_segmentations(
            models in prop::collection::vec(prop::collection::vec((0..32_u32, 0.01..1.0_f64), 1..6), 1..4),
            chosen in 0..32_u32,
            is_outside in any::<bool>(),
        ) {
            let all: Vec<Segments> = models.iter().map(|model| segments(model, is_outside)).collect();
            let mean = Segments::mean(&all);
            let share = |has: &dyn Fn(&[u32]) -> bool| -> f64 {
                let of = |model: &Vec<(u32, f64)>| {
                    let z: f64 = model.iter().map(|(_, weight)| weight).sum();
                    model.iter().filter(|(set, _)| has(&ends(*set))).map(|(_, weight)| weight / z).sum::<f64>()
                };
                models.iter().map(of).sum::<f64>() / models.len() as f64
            };
            let Probabilities { boundaries, segments } = mean.probabilities(&ends(chosen));
            prop_assert_eq!(boundaries.len(), N as usize - 1);
            for (found, position) in boundaries.iter().zip(1..) {
                prop_assert!((found - share(&|ends: &[u32]| ends.contains(&position))).abs() < 1e-12);
                prop_assert!((0.0..=1.0).contains(found));
            }
            for (found, span) in segments.iter().zip(spans(&ends(chosen))) {
                prop_assert!((found - share(&|ends: &[u32]| spans(ends).contains(&span))).abs() < 1e-12);
            }
            if !is_outside {
                let value = |ends: &[u32]| -> f64 { mean.of(ends).iter().sum() };
                let is_made_of_spans = |ends: &Vec<u32>| mean.of(ends).iter().all(|share| *share > NEGLIGIBLE);
                let mut ordered: Vec<Vec<u32>> = (0..32).map(ends).filter(is_made_of_spans).collect();
                ordered.sort_by(|a, b| value(b).total_cmp(&value(a)));
                for n in [1, 3, 40] {
                    let found = mean.n_best(n, 0.0);
                    prop_assert_eq!(found.len(), n.min(ordered.len()));
                    prop_assert_eq!(&found[0], &mean.best());
                    for (at, (of_rank, expected)) in found.iter().zip(&ordered).enumerate() {
                        prop_assert!((value(of_rank) - value(expected)).abs() < 1e-5);
                        prop_assert!(is_made_of_spans(of_rank) && !found[..at].contains(of_rank));
                    }
                }
            }
            prop_assert_eq!(&Segments::mean(&all[..1]), &all[0]);
        }
    }

    #[test]
    fn sentences_without_spans_are_symbols_by_themselves() {
        let segments = Segments::new(3, Vec::new());
        assert_eq!((segments.best(), segments.boundaries()), (vec![1, 2, 3], vec![1.0, 1.0]));
        assert_eq!(segments.of(&[1, 3]), [1.0, 0.0]);
        assert_eq!(Segments::default().boundaries(), [0.0; 0]);
        assert_eq!(Segments::new(1, vec![(0, 1, 1.0)]).boundaries(), [0.0; 0]);
        let without_way = Segments::new(3, vec![(1, 3, 1.0)]);
        assert_eq!(without_way.n_best(2, 0.0), [[1, 3]]);
    }
}
