//! The lines of a text whose annotation would teach most.
//!
//! In: the sentences of a result, with the probability p of a boundary at each position. Out: n of them, the most instructive first. A sentence is worth
//!
//! ```text
//! Σᵢ H(pᵢ) ln(1 + m(cᵢ)) / (1 + n(cᵢ))        H(p) = −p log₂ p − (1 − p) log₂(1 − p)
//! ```
//!
//! over its positions, where cᵢ are the two symbols on each side of position i, m(c) is the number of unsure positions of the text with these, and n(c) that of
//! chosen sentences with one. So long sentences with many unsure positions of which there are more come first, but what a chosen one teaches counts less in
//! the next. Without m rare positions come first, which teach little of others (docs/results/annotations.md). The best one is chosen at each step.
//! Values only fall, so the one whose current value is at least the last known value of all others is the best (Minoux 1978).
//!
//! Law: the choice is that of plain greedy search. Of equal sentences the first of the text is chosen; each distinct one once.

use std::cmp::{Ordering, Reverse};
use std::collections::BinaryHeap;

use rustc_hash::{FxHashMap, FxHashSet};

use crate::segmented::{Segmented, Sentence};

/// The two symbols on each side of a position; [`OUTSIDE`] beyond the ends of the sentence.
type Context = [u32; 4];

const OUTSIDE: u32 = u32::MAX;

/// The unsure positions of a sentence.
struct Unsure {
    contexts: Vec<Context>,
    /// What each is worth, above 0.
    worths: Vec<f64>,
}

/// Positions in `text.sentences` of at most `n` sentences to annotate, in the order in which they are chosen. Sentences without an unsure boundary are not chosen.
pub fn suggest(text: &Segmented, n: usize) -> Vec<usize> {
    let mut distinct: FxHashSet<&[u32]> = FxHashSet::default();
    let first = text.sentences.iter().enumerate();
    let first = first.filter(|(_, sentence)| distinct.insert(&text.corpus.sentences[sentence.at]));
    let (places, mut unsure): (Vec<usize>, Vec<Unsure>) =
        first.map(|(place, sentence)| (place, unsure(&text.corpus.sentences[sentence.at], sentence))).unzip();
    weigh(&mut unsure);
    chosen(&unsure, n).into_iter().map(|at| places[at]).collect()
}

/// Weighs entropies by how often their contexts occur.
fn weigh(sentences: &mut [Unsure]) {
    let mut counts = Counts::default();
    for context in sentences.iter().flat_map(|sentence| &sentence.contexts) {
        *counts.entry(*context).or_default() += 1;
    }
    for Unsure { contexts, worths } in sentences {
        let weights = contexts.iter().map(|context| libm::log1p(f64::from(counts[context])));
        worths.iter_mut().zip(weights).for_each(|(worth, weight)| *worth *= weight);
    }
}

/// The unsure positions of a sentence, each worth its entropy.
fn unsure(symbols: &[u32], sentence: &Sentence) -> Unsure {
    let symbol = |at: usize| symbols.get(at).copied().unwrap_or(OUTSIDE);
    let positions = sentence.probabilities.iter().zip(1..).map(|(&probability, at): (_, usize)| {
        let context = [at.wrapping_sub(2), at - 1, at, at + 1].map(symbol);
        (context, entropy(probability))
    });
    let (contexts, worths) = positions.filter(|(_, entropy)| *entropy > 0.0).unzip();
    Unsure { contexts, worths }
}

/// Entropy of a boundary with this probability, in bits.
fn entropy(probability: f64) -> f64 {
    let of = |p: f64| if p > 0.0 { -p * libm::log2(p) } else { 0.0 };
    of(probability) + of(1.0 - probability)
}

/// Numbers of positions, or of chosen sentences, by context.
type Counts = FxHashMap<Context, u32>;

impl Unsure {
    fn value(&self, counts: &Counts) -> f64 {
        let n = |context| f64::from(counts.get(context).copied().unwrap_or_default());
        self.contexts.iter().zip(&self.worths).map(|(context, worth)| worth / (1.0 + n(context))).sum()
    }

    /// Counts each of its contexts once.
    fn count(&self, counts: &mut Counts) {
        let distinct: FxHashSet<Context> = self.contexts.iter().copied().collect();
        distinct.into_iter().for_each(|context| *counts.entry(context).or_default() += 1);
    }
}

/// The last known value of a sentence, and its position.
#[derive(PartialEq)]
struct Candidate(f64, Reverse<usize>);

impl Eq for Candidate {}

impl Ord for Candidate {
    fn cmp(&self, other: &Candidate) -> Ordering {
        self.0.total_cmp(&other.0).then(self.1.cmp(&other.1))
    }
}

impl PartialOrd for Candidate {
    fn partial_cmp(&self, other: &Candidate) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

fn chosen(sentences: &[Unsure], n: usize) -> Vec<usize> {
    let mut counts = Counts::default();
    let values = sentences.iter().enumerate();
    let mut heap: BinaryHeap<Candidate> = values
        .filter(|(_, sentence)| !sentence.contexts.is_empty())
        .map(|(at, sentence)| Candidate(sentence.value(&counts), Reverse(at)))
        .collect();
    let mut chosen = Vec::new();
    while let Some(Candidate(_, Reverse(at))) = heap.pop().filter(|_| chosen.len() < n) {
        let current = Candidate(sentences[at].value(&counts), Reverse(at));
        if heap.peek().is_some_and(|next| *next > current) {
            heap.push(current);
            continue;
        }
        sentences[at].count(&mut counts);
        chosen.push(at);
    }
    chosen
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// The best sentence at each step, by the values of all.
    fn greedy(sentences: &[Unsure], n: usize) -> Vec<usize> {
        let mut counts = Counts::default();
        let mut left: Vec<usize> =
            (0..sentences.len()).filter(|&at| !sentences[at].contexts.is_empty()).collect();
        let mut chosen = Vec::new();
        while chosen.len() < n && !left.is_empty() {
            let value = |at: usize| sentences[at].value(&counts);
            let best = left.iter().copied().reduce(|a, b| if value(b) > value(a) { b } else { a });
            let best = best.expect("some are left");
            left.retain(|&at| at != best);
            sentences[best].count(&mut counts);
            chosen.push(best);
        }
        chosen
    }

    proptest! {
        /// Law: the choice is that of plain greedy search, sure positions are never a reason, and fewer sentences are a prefix of more.
        #[test]
        fn lazy_search_is_greedy_search(
            sentences in prop::collection::vec(prop::collection::vec((0..3_u32, 0..5_u8), 0..6), 0..20),
            n in 0..25_usize,
        ) {
            let mut sentences: Vec<Unsure> = sentences
                .iter()
                .map(|positions| {
                    let symbols: Vec<u32> = positions.iter().map(|(symbol, _)| *symbol).chain([0]).collect();
                    let probabilities = positions.iter().map(|(_, p)| f64::from(*p) / 4.0).collect();
                    unsure(&symbols, &Sentence { probabilities, ..Sentence::default() })
                })
                .collect();
            weigh(&mut sentences);
            let found = chosen(&sentences, n);
            prop_assert_eq!(&found, &greedy(&sentences, n));
            prop_assert!(found.iter().all(|&at| sentences[at].worths.iter().all(|worth| *worth > 0.0)));
            prop_assert!(chosen(&sentences, usize::MAX).starts_with(&found));
        }
    }

    #[test]
    fn entropy_is_one_bit_at_most() {
        assert_eq!([0.0, 0.5, 1.0].map(entropy), [0.0, 1.0, 0.0]);
        assert!((entropy(0.25) - entropy(0.75)).abs() < 1e-15 && entropy(0.25) < 1.0);
    }
}
