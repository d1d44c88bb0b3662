//! Posterior probabilities of the boundaries and segments of a sentence: the shares of the samples that have them.
//!
//! In: the samples of the chains of one or several grammars. Out: a number for each position inside a sentence and for each segment of a
//! segmentation. Every chain has the same weight, as in the vote of their models, however many samples it keeps.

use std::sync::Arc;

pub use grammaton::models::segments::Probabilities;
use grammaton::models::tally::Tally;

/// Samples of every sentence, by grammar.
#[derive(Default)]
pub struct Posterior(Vec<Chains>);

/// The chains of one grammar.
struct Chains {
    n: usize,
    /// Samples of all of them, by sentence.
    tallies: Arc<Vec<Tally>>,
}

impl Posterior {
    /// Adds the samples of `n` chains, possibly none.
    pub fn add(&mut self, n: usize, tallies: Arc<Vec<Tally>>) {
        if !tallies.is_empty() {
            self.0.push(Chains { n, tallies });
        }
    }

    /// Probabilities in a sentence, which is cut at `ends`; its last end is its length.
    pub fn probabilities(&self, sentence: usize, ends: &[u32]) -> Probabilities {
        let n_symbols = ends.last().copied().unwrap_or_default() as usize;
        let mut boundaries = vec![0.0; n_symbols.saturating_sub(1)];
        let mut segments = vec![0.0; ends.len()];
        let n_chains = self.0.iter().map(|chains| chains.n).sum::<usize>() as f64;
        for Chains { n, tallies } in &self.0 {
            let (of_boundaries, of_segments) = counts(&tallies[sentence], ends);
            let n_samples = f64::from(tallies[sentence].len());
            let chains = |count: u32| *n as f64 * f64::from(count) / n_samples;
            boundaries.iter_mut().zip(of_boundaries).for_each(|(sum, count)| *sum += chains(count));
            segments.iter_mut().zip(of_segments).for_each(|(sum, count)| *sum += chains(count));
        }
        // One division, so that what all samples have is 1 exactly.
        boundaries.iter_mut().chain(&mut segments).for_each(|sum| *sum /= n_chains);
        Probabilities { boundaries, segments }
    }

    /// The ends of the segments of a sentence of `n_symbols` that is cut where a boundary has at least the probability `threshold`.
    pub fn ends(&self, sentence: usize, n_symbols: u32, threshold: f64) -> Vec<u32> {
        let boundaries = self.probabilities(sentence, &[n_symbols]).boundaries;
        let is_end = |end: &u32| boundaries.get(*end as usize - 1).is_none_or(|found| *found >= threshold);
        (1..=n_symbols).filter(is_end).collect()
    }
}

/// Numbers of samples with a boundary at each position, and with each segment of the segmentation that ends at `ends`.
fn counts(tally: &Tally, ends: &[u32]) -> (Vec<u32>, Vec<u32>) {
    let n_symbols = ends.last().copied().unwrap_or_default() as usize;
    let (mut boundaries, mut segments) = (vec![0; n_symbols], vec![0; ends.len()]);
    for (sampled, n) in tally.segmentations() {
        let (mut at, mut start, mut sampled_start) = (0, 0, 0);
        for sampled_end in sampled {
            boundaries[sampled_end as usize - 1] += n;
            while ends[at] < sampled_end {
                (start, at) = (ends[at], at + 1);
            }
            if (start, ends[at]) == (sampled_start, sampled_end) {
                segments[at] += n;
            }
            sampled_start = sampled_end;
        }
    }
    boundaries.pop(); // the end of the sentence
    (boundaries, segments)
}

#[cfg(test)]
mod tests {
    use grammaton::models::tally::Analysis;
    use proptest::prelude::*;

    use super::*;

    /// The segmentation of `n` symbols with this set of inner boundaries.
    fn ends(n: u32, boundaries: u32) -> Vec<u32> {
        (1..n).filter(|at| boundaries >> (at - 1) & 1 == 1).chain([n]).collect()
    }

    fn spans(ends: &[u32]) -> Vec<(u32, u32)> {
        [0].iter().chain(ends).copied().zip(ends.iter().copied()).collect()
    }

    fn posterior(n_symbols: u32, grammars: &[(usize, Vec<u32>)]) -> Posterior {
        let mut posterior = Posterior::default();
        for (n, samples) in grammars {
            let mut tally = Tally::default();
            let tree = || "()".to_owned();
            samples.iter().for_each(|&at| tally.add(&Analysis { ends: ends(n_symbols, at), tree: tree() }));
            posterior.add(*n, Arc::new(vec![tally]));
        }
        posterior
    }

    proptest! {
        /// Law: a probability is the mean over chains of the share of samples. It is in [0, 1], 0 or 1 only if no sample differs, and that of a segment is at
        /// most that of its edges. The segmentation that most samples have is that of the boundaries that most samples have.
        #[test]
        fn probabilities_are_shares_of_samples(
            n in 1..7_u32,
            grammars in prop::collection::vec((1..4_usize, prop::collection::vec(0..64_u32, 1..9)), 1..4),
            chosen in 0..64_u32,
        ) {
            let posterior_of_all = posterior(n, &grammars);
            let cut = ends(n, chosen);
            let Probabilities { boundaries, segments } = posterior_of_all.probabilities(0, &cut);
            prop_assert_eq!((boundaries.len(), segments.len()), (n as usize - 1, cut.len()));
            let n_chains: usize = grammars.iter().map(|(chains, _)| chains).sum();
            let mean = |has: &dyn Fn(&[u32]) -> bool| -> f64 {
                let of_grammar = |(chains, samples): &(usize, Vec<u32>)| {
                    let n_with = samples.iter().filter(|&&sample| has(&ends(n, sample))).count();
                    *chains as f64 * n_with as f64 / samples.len() as f64
                };
                grammars.iter().map(of_grammar).sum::<f64>() / n_chains as f64
            };
            for threshold in boundaries.iter().copied().chain([0.5, 1.0]) {
                let expected: Vec<u32> = (1..n).filter(|&at| boundaries[at as usize - 1] >= threshold).chain([n]).collect();
                prop_assert_eq!(posterior_of_all.ends(0, n, threshold), expected);
            }
            for (found, position) in boundaries.iter().zip(1..) {
                let has = |ends: &[u32]| ends.contains(&position);
                prop_assert!((found - mean(&has)).abs() < 1e-12);
                prop_assert!((0.0..=1.0).contains(found));
                let mut samples = grammars.iter().flat_map(|(_, samples)| samples).map(|&sample| ends(n, sample));
                prop_assert_eq!(*found == 1.0, samples.clone().all(|ends| has(&ends)));
                prop_assert_eq!(*found == 0.0, !samples.any(|ends| has(&ends)));
            }
            let edge = |at: u32| if at == 0 || at == n { 1.0 } else { boundaries[at as usize - 1] };
            for (found, span) in segments.iter().zip(spans(&cut)) {
                prop_assert!((found - mean(&|ends: &[u32]| spans(ends).contains(&span))).abs() < 1e-12);
                prop_assert!(*found <= edge(span.0).min(edge(span.1)) + 1e-12);
            }
            if mean(&|ends: &[u32]| ends == cut) > 0.5 {
                let likely: Vec<u32> = (1..=n).filter(|&at| edge(at) > 0.5).collect();
                prop_assert_eq!(likely, cut);
                prop_assert!(segments.iter().all(|&share| share > 0.5));
            }
        }
    }

    #[test]
    fn chains_count_the_same_however_many_samples_they_keep() {
        // One chain of three samples has a boundary in the middle; of two chains half of the samples have.
        let posterior = posterior(2, &[(1, vec![1, 1, 1]), (2, vec![1, 0])]);
        let Probabilities { boundaries, segments } = posterior.probabilities(0, &[2]);
        assert!((boundaries[0] - 2.0 / 3.0).abs() < 1e-15 && (segments[0] - 1.0 / 3.0).abs() < 1e-15);
        assert_eq!(posterior.probabilities(0, &[1, 2]).boundaries, boundaries);
    }
}
